//! Tests of the table itself.

use super::*;
use rota_units::Span;
use rota_wire::{MacAddr, TPDU_CONTROL_OCTETS_MAX, TpduBody};

const SERVICE: Listening = Listening { service: 7, window: 8, backlog: 1 };
const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
/// The place of the only listener.
const LISTENER: u16 = 1;

fn terms() -> Terms {
    let quality = Quality::RELIABLE;
    Terms { source: 5, serial: 0, from: 3, service: SERVICE.service, window: 8, tpdu: 100, quality }
}

/// The second step of a handshake was sent again only when its listener was touched once more.
#[test]
fn a_step_of_a_listener_that_is_due_stays_due_when_an_end_changes() {
    let start = Instant::ZERO + Span::from_millis(1_000);
    let mut out = [0; TPDU_CONTROL_OCTETS_MAX];
    let mut circuits = Circuits::new(0, 1_000, &CircuitSettings::USUAL, 1);
    circuits.listen(&SERVICE).expect("nobody else listens");
    let open = Tpdu { to: 0, circuit: 0, body: TpduBody::Open(terms()) };
    circuits.on_tpdu(start, PEER, &open, &[]);
    let is_of_listener = |want| matches!(want, Some(Want::Queue { place: LISTENER, .. }));
    assert!(is_of_listener(circuits.next_want()), "the second step has its turn");
    assert!(circuits.transmit(start, LISTENER, &mut out).is_some());
    let due = circuits.deadline();
    assert!(start < due && due < Instant::FAR, "the step is sent again then");

    // It is time, and an end changes before the parent says so.
    let request =
        CircuitRequest { service: 9, window: 8, quality: Quality::RELIABLE, bucket: None, level: 0 };
    circuits.open(due, PEER, &request).expect("a sound request");
    assert_eq!(circuits.deadline(), due);
    assert!(!is_of_listener(circuits.next_want()), "that is the new end's");
    circuits.tick(due);
    assert!(is_of_listener(circuits.next_want()), "the step has its turn again");
    // It waits for its turn, and for no deadline.
    assert!(circuits.deadline() > due);
    assert!(circuits.transmit(due, LISTENER, &mut out).is_some());
    assert!(circuits.deadline() > due && circuits.deadline() < Instant::FAR, "and then for its next time");
}
