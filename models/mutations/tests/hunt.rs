//! Every mutation of `MUTATIONS.md` is found again at its seed; without it the same seed keeps every rule.

use rota_mutations::table::{PAGE, read};
use rota_mutations::{GROUNDS, first_violation};
use rota_proto::mutated::ALL;

#[test]
fn every_mutation_is_found_at_its_seed_and_only_with_it() {
    std::panic::set_hook(Box::new(|_| {}));
    let rows = read(&std::fs::read_to_string(PAGE).expect("the hunt has written its page"));
    let rows = rows.expect("every row can be read");
    let mut wrong = Vec::new();
    for row in &rows {
        let Some(rule) = &row.rule else { continue };
        let ground = GROUNDS.iter().find(|ground| ground.name == row.ground).expect("a world of the hunt");
        let scenario = (ground.scenario)(row.seed);
        let found = first_violation(Some(row.mutation), row.seed, &scenario);
        // Which rule is broken first may change with the machines; that one is, may not.
        if found.is_none() {
            wrong.push(format!(
                "{:?} broke {rule} in {} {}: run its hunt again",
                row.mutation, row.ground, row.seed
            ));
        }
        if let Some(found) = first_violation(None, row.seed, &scenario) {
            wrong.push(format!("{} {} without {:?}: {found:?}", row.ground, row.seed, row.mutation));
        }
    }
    let _ = std::panic::take_hook();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let missing: Vec<&str> =
        ALL.iter().filter(|all| rows.iter().all(|row| row.mutation != all.0)).map(|all| all.1).collect();
    assert!(missing.is_empty(), "mutations without a row: {missing:?}");
    assert!(rows.iter().filter(|row| row.rule.is_some()).count() >= 24);
}
