//! Counter-examples of the models as schedules of the simulator: each file in `models/schedules` breaks its
//! rule with its mutation and keeps every rule without.

use rota_proto::mutated::{ALL, Mutation, mutate};
use rota_sim::check::Violation;
use rota_sim::scenario::schedule;
use rota_sim::sweep;

/// The copy of this crate lies in `target/mutated/models/mutations`.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../models/schedules");

/// The rules that a schedule breaks with this mutation, or with none, in the simulator's world of a seed.
fn broken(text: &str, mutation: Option<Mutation>, seed: u64) -> Vec<Violation> {
    let scenario = schedule::read(text).unwrap_or_else(|error| panic!("{error:?} in\n{text}"));
    mutate(mutation);
    let outcome = sweep::run(seed, &scenario);
    mutate(None);
    outcome.violations
}

#[test]
fn every_committed_schedule_breaks_its_rule_with_its_mutation_and_none_without() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(FOLDER).expect("the folder is there") {
        let path = entry.expect("readable").path();
        let text = std::fs::read_to_string(&path).expect("readable");
        let mut words = text.lines().next().unwrap_or("").split([' ', ':']).skip(2);
        let (name, rule) = (words.next().unwrap_or(""), words.nth(1).unwrap_or(""));
        let mutation = ALL.iter().find(|(_, known, _)| *known == name).map(|(mutation, ..)| *mutation);
        assert!(mutation.is_some(), "{path:?} names no mutation: {name}");
        let found: Vec<Violation> = (1..=5).flat_map(|seed| broken(&text, mutation, seed)).collect();
        if !found.iter().any(|found| found.rule == rule) {
            let rules: std::collections::BTreeSet<_> = found.iter().map(|found| found.rule).collect();
            wrong.push(format!("{path:?}: {name} does not break {rule} in any of five seeds, but {rules:?}"));
        }
        for seed in 1..=5 {
            let without = broken(&text, None, seed);
            if !without.is_empty() {
                wrong.push(format!("{path:?}, seed {seed}, without the mutation: {without:?}"));
            }
        }
        count += 1;
    }
    let _ = std::panic::take_hook();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(count, 6);
}
