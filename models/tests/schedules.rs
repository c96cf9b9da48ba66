//! Counter-examples as schedules of the simulator: each file in `schedules/` breaks its rule with its
//! planted bug and keeps every rule without. `SCHEDULES=write cargo test -p rota-models --test schedules`
//! writes them.

use rota_models::for_simulator;
use rota_models::paper::{self, PaperRing};
use rota_models::planted::{Bug as ModelBug, hunt};
use rota_models::schedule::read_spec;
use rota_models::world::Action;
use rota_proto::planted::{ALL, Bug, plant};
use rota_sim::check::Violation;
use rota_sim::scenario::schedule;
use rota_sim::sweep;
use stateright::{Checker, Model};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schedules")
}

/// The rules that a schedule breaks with this bug, or with none, in the simulator's world of a seed.
fn broken(text: &str, bug: Option<Bug>, seed: u64) -> Vec<Violation> {
    let scenario = schedule::read(text).unwrap_or_else(|error| panic!("{error:?} in\n{text}"));
    plant(bug);
    let outcome = sweep::run(seed, &scenario);
    plant(None);
    outcome.violations
}

/// Writes a schedule where that was asked for.
fn keep(name: &str, text: &str) {
    if std::env::var_os("SCHEDULES").is_some() {
        std::fs::write(folder().join(name), text).expect("the folder can be written");
    }
}

#[test]
fn the_papers_counter_examples_are_the_committed_schedules() {
    let three = PaperRing { stations: 3, ..PaperRing::default() };
    for (name, rule, ring) in [
        ("paper-lost-ack", "S1", PaperRing { lost_acks: 1, ..three }),
        ("paper-lost-ack-of-four", "S1", PaperRing { stations: 4, lost_acks: 1, ..three }),
        ("paper-doubled-token", "S2", PaperRing { doubles: 1, ..three }),
    ] {
        let path = ring.checker().spawn_bfs().join().discovery("one holder").expect("two holders");
        let text = paper::schedule(&ring, &path.into_actions());
        let head =
            format!("# bug PaperRecovery breaks {rule}: the shortest way to two holders of\n# {ring:?}\n");
        keep(&format!("{name}.schedule"), &(head.clone() + &text));
        let known = std::fs::read_to_string(folder().join(format!("{name}.schedule")));
        assert_eq!(known.expect("it is committed"), head + &text, "{name} is not what the model finds");
    }
}

/// Which walk finds a bug first changes with the machine, so the committed ones are those of their day.
#[test]
fn a_counter_example_of_our_machine_becomes_a_schedule() {
    let faults = "3 loss=3 dup=2 crash=1 pause=1 channels=3";
    let parted = "3 loss=2 dup=2 pause=1 split=1 channels=3";
    for (name, rule, faults, bug) in [
        ("stale-token", "S1", faults, ModelBug::StaleTokenBelieved),
        ("revival-forgotten", "L4", parted, ModelBug::RevivalForgotten),
        ("token-not-repeated", "L6", faults, ModelBug::TokenNotRepeated),
    ] {
        let (seed, walk) = hunt(bug, faults, 200).expect("a ring").expect("a violation");
        let mut spec = read_spec(faults.split(' ')).expect("a sound specification");
        spec.bug = Some(bug);
        let text = for_simulator::write(&spec, &walk.actions).expect("a schedule");
        let found = walk.violation.unwrap_or_default();
        let head = format!("# bug {bug:?} breaks {rule}: walk {seed} of\n# {faults}\n# {found}\n");
        keep(&format!("{name}.schedule"), &(head + &text));
        let scenario = schedule::read(&text).expect("what the model writes can be read");
        let faults = |action: &&Action| !matches!(action, Action::Tick | Action::Deliver(_));
        let told = walk.actions.iter().filter(faults).count();
        // A second copy that never comes is nobody's fault, and a pause and its end are one line.
        assert!((1..=told).contains(&scenario.faults.len()), "{name}: {told} faults in\n{text}");
    }
}

#[test]
fn every_committed_schedule_breaks_its_rule_with_its_bug_and_none_without() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).expect("the folder is there") {
        let path = entry.expect("readable").path();
        let text = std::fs::read_to_string(&path).expect("readable");
        let mut words = text.lines().next().unwrap_or("").split([' ', ':']).skip(2);
        let (name, rule) = (words.next().unwrap_or(""), words.nth(1).unwrap_or(""));
        let bug = ALL.iter().find(|(_, known, _)| *known == name).map(|(bug, ..)| *bug);
        assert!(bug.is_some(), "{path:?} names no bug: {name}");
        let found: Vec<Violation> = (1..=5).flat_map(|seed| broken(&text, bug, seed)).collect();
        if !found.iter().any(|found| found.rule == rule) {
            let rules: std::collections::BTreeSet<_> = found.iter().map(|found| found.rule).collect();
            wrong.push(format!("{path:?}: {name} does not break {rule} in any of five seeds, but {rules:?}"));
        }
        for seed in 1..=5 {
            let without = broken(&text, None, seed);
            if !without.is_empty() {
                wrong.push(format!("{path:?}, seed {seed}, without the bug: {without:?}"));
            }
        }
        count += 1;
    }
    let _ = std::panic::take_hook();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(count, 6);
}
