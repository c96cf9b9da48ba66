//! Planted bugs are found; those that take long are in the table of `RESULTS.md` only.

use rota_models::planted::{Bug, HUNTS, hunt};

fn finds(bug: Bug, walks: u64) {
    let found = HUNTS.into_iter().find_map(|faults| hunt(bug, faults, walks).expect("a ring"));
    let (seed, walk) = found.unwrap_or_else(|| panic!("{bug:?} was not found in {walks} walks"));
    println!("{bug:?}: walk {seed}: {:?}", walk.violation);
}

#[test]
fn planted_bugs_are_found() {
    for bug in [
        Bug::StaleTokenBelieved,
        Bug::TokenForked,
        Bug::AckIgnored,
        Bug::AckNotSent,
        Bug::RevivalForgotten,
        Bug::TokenNotRepeated,
        Bug::RetransmissionRenumbered,
    ] {
        finds(bug, 2_000);
    }
}
