//! The share of the CPU that programs leave to others, with real doorbells.

use super::*;

const PATIENCE: Span = Span::from_millis(10_000);

fn to(socket: u8, node: u8) -> u64 {
    MessageRoute { socket, node, ..MessageRoute::default() }.pack()
}

/// The turns until the thread has paused so often, or until patience ends. In each turn a program has as many
/// messages for its own station as its ring holds, another one sends over the wire, and both ring.
fn flooded(full: bool, pauses: u64) -> u64 {
    let (mut data, mut flooder) = station();
    let mut sender = program(&mut data, 4, SOCKET + 1, 64);
    data.device.full = full;
    data.leaving = Some(now() + PATIENCE * 6);
    let (begin, mut turns) = (now(), 0);
    while data.ease.pauses < pauses && now().since(begin) < PATIENCE {
        let _ = sender.messages.try_write_to(&[7; 40], Instant::ZERO, to(4, 255));
        while flooder.messages.try_write_to(&[7; 16_000], Instant::ZERO, to(2, 1)).is_ok() {}
        sender.ring_doorbell();
        flooder.ring_doorbell();
        assert!(matches!(data.turn(), Ok(true)), "it goes on");
        turns += 1;
    }
    assert!(data.ease.pauses >= pauses, "{} pauses in {turns} turns", data.ease.pauses);
    turns
}

/// Frames that the card did not take counted as sent, and none of these turns ended with a pause.
#[test]
fn a_turn_whose_frames_do_not_leave_ends_with_a_pause() {
    let turns = flooded(true, 50);
    assert!(turns < 100, "{turns} turns for 50 pauses");
}

/// One frame in each turn was enough to avoid every pause.
#[test]
fn a_program_that_also_sends_over_the_wire_leaves_a_share_of_the_cpu() {
    flooded(false, 3);
}

/// A bell that rings without a message leaves no work behind.
#[test]
fn a_program_that_only_rings_leaves_a_share_of_the_cpu() {
    let (mut data, ringer) = station();
    data.leaving = Some(now() + PATIENCE * 6);
    let begin = now();
    while data.ease.pauses < 3 && now().since(begin) < PATIENCE {
        ringer.ring_doorbell();
        assert!(matches!(data.turn(), Ok(true)), "it goes on");
    }
    assert!(data.ease.pauses >= 3, "{} pauses", data.ease.pauses);
}
