//! Counter-examples as schedules of the simulator: `cargo xtask hunt` runs each file in `schedules/`
//! with its mutation and without. `SCHEDULES=write cargo test -p rota-models --test all schedules`
//! writes them.

use rota_models::for_simulator;
use rota_models::paper::{self, PaperRing};
use rota_models::planted::{Bug as ModelBug, hunt};
use rota_models::schedule::read_spec;
use rota_models::world::Action;
use rota_sim::scenario::schedule;
use stateright::{Checker, Model};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schedules")
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
