//! Floods of frames that no key proves, from which the device keeps nothing out.

use super::*;
use crate::data::ease::PAUSE;

/// Frames in one look: fewer than a turn takes.
const A_LOOK: u32 = 32;

/// Each frame had a turn of its own, and at 89,000 a second they took 58 % of a core.
#[test]
fn strangers_behind_a_closed_door_are_taken_many_at_once() {
    let (mut data, _control) = alone();
    let look = |data: &mut Data<Sink, NoGate>| {
        data.ways[0].wire.device.strange = A_LOOK;
        data.node.handle_deadline(now());
        assert!(data.receive(0).is_ok() && data.drain().is_ok());
        let (began, before) = (now(), data.work.ease.pauses);
        let until = data.pause(began).unwrap_or_else(|_| panic!("a pause"));
        (data.work.ease.pauses - before, until.since(began))
    };
    for nth in 0..512 / A_LOOK - 1 {
        assert_eq!(look(&mut data).0, 0, "look {nth}: the door is open");
    }
    let slept: Vec<_> = (0..8).map(|_| look(&mut data)).filter(|(pauses, _)| *pauses > 0).collect();
    assert!(slept.len() >= 4 && slept.iter().any(|(_, slept)| *slept >= PAUSE), "{slept:?}");
    data.ways[0].wire.heard_nothing();
    let before = data.work.ease.pauses;
    assert!(data.pause(now()).is_ok());
    assert_eq!(data.work.ease.pauses, before, "no frame of a stranger waits");
}
