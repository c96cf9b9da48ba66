//! The paper's recovery rule yields two holders after a single fault; without faults it does not.

use rota_models::paper::{PaperAction, PaperRing};
use stateright::{Checker, Model};

/// The shortest way to two holders, if there is one.
fn two_holders(ring: PaperRing) -> Option<Vec<PaperAction>> {
    let checker = ring.checker().spawn_bfs().join();
    let path = checker.discovery("one holder").map(|path| path.into_actions());
    println!("{ring:?}: {} states, two holders: {}", checker.unique_state_count(), path.is_some());
    for action in path.iter().flatten() {
        println!("    {action:?}");
    }
    path
}

fn ring(stations: u8) -> PaperRing {
    PaperRing { stations, ..PaperRing::default() }
}

#[test]
fn without_faults_the_paper_has_one_holder() {
    for stations in [3, 4] {
        assert_eq!(two_holders(ring(stations)), None);
    }
}

#[test]
fn after_one_lost_acknowledgement_the_paper_has_two_holders() {
    for stations in [3, 4] {
        let path = two_holders(PaperRing { lost_acks: 1, ..ring(stations) }).expect("two holders");
        let losses = path.iter().filter(|action| matches!(action, PaperAction::LoseAck(_))).count();
        assert_eq!(losses, 1);
    }
}

#[test]
fn after_one_doubled_frame_the_paper_has_two_holders() {
    assert!(two_holders(PaperRing { doubles: 1, ..ring(3) }).is_some());
}

#[test]
fn after_one_pause_the_paper_has_two_holders() {
    assert!(two_holders(PaperRing { pauses: 1, ..ring(3) }).is_some());
}
