//! The share of the CPU that programs leave to others, with real doorbells.

use super::*;
use crate::data::ease::PAUSE;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::sync::atomic::{AtomicBool, Ordering};

const PATIENCE: Span = Span::from_millis(10_000);

fn to(socket: u8, node: u8) -> u64 {
    MessageRoute { socket, node, ..MessageRoute::default() }.pack()
}

/// The turns until the thread has paused so often, or until patience ends. In each turn a program has as many
/// messages for its own station as its ring holds, another one sends over the wire, and both ring.
fn flooded(full: bool, pauses: u64) -> u64 {
    let (mut data, mut flooder) = station();
    let mut sender = program(&mut data, 4, SOCKET + 1, 64);
    data.ways[0].wire.device.full = full;
    data.work.leaving = Some(Leaving::at(now() + PATIENCE * 6));
    let (begin, mut turns) = (now(), 0);
    while data.work.ease.pauses < pauses && now().since(begin) < PATIENCE {
        let _ = sender.messages.try_write_to(&[7; 40], Instant::ZERO, to(4, 255));
        while flooder.messages.try_write_to(&[7; 16_000], Instant::ZERO, to(2, 1)).is_ok() {}
        sender.ring_doorbell();
        flooder.ring_doorbell();
        assert!(matches!(data.turn(now()), Ok(Some(_))), "it goes on");
        turns += 1;
    }
    assert!(data.work.ease.pauses >= pauses, "{} pauses in {turns} turns", data.work.ease.pauses);
    turns
}

#[test]
fn a_frame_that_the_card_did_not_take_has_not_left() {
    let (mut data, _program) = station();
    for (full, left) in [(false, 1), (true, 0)] {
        let (own, before) = (data.own_frames, data.frames_left());
        data.ways[0].wire.device.full = full;
        assert!(data.perform(now(), Output::Transmit { port: PortId(0), len: 64 }).is_ok());
        assert_eq!((data.own_frames - own, data.frames_left() - before), (1, left), "full: {full}");
    }
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

/// The time for which this thread has had a CPU.
fn on_cpu() -> Span {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("of this thread");
    let micros = (usage.user_time() + usage.system_time()).num_microseconds();
    Span::from_micros(u64::try_from(micros).expect("none below zero"))
}

/// Takes turns while another thread rings, until in one window the pauses made a twentieth of the time on the
/// CPU. A window in which the machine had no CPU for one of the threads says little, so there are others.
fn leaves_a_share_while(mut ring: impl FnMut() + Send, data: &mut Data<Sink, NoGate>) {
    data.work.leaving = Some(Leaving::at(now() + PATIENCE * 6));
    let (over, mut goes_on) = (AtomicBool::new(false), true);
    let seen = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                ring();
            }
        });
        let (begin, mut seen) = (now(), Vec::new());
        while seen.len() < 3 || now().since(begin) < PATIENCE {
            let (window, worked, paused) = (now(), on_cpu(), data.work.ease.pauses);
            while now().since(window) < Span::from_millis(200) {
                goes_on &= matches!(data.turn(now()), Ok(Some(_)));
            }
            let (pauses, worked) = (data.work.ease.pauses - paused, on_cpu().minus(worked));
            seen.push((pauses, worked));
            if pauses > 0 && PAUSE * pauses * 20 >= worked {
                seen.clear();
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
        seen
    });
    assert!(goes_on && seen.is_empty(), "pauses, and time on the CPU: {seen:?}");
}

/// Each wait returned at once, and counted as ten times its length: five pauses came in two seconds.
#[test]
fn a_program_that_rings_from_another_thread_leaves_a_share_of_the_cpu() {
    let (mut data, ringer) = station();
    leaves_a_share_while(|| ringer.ring_doorbell(), &mut data);
}

#[test]
fn a_program_that_writes_from_another_thread_leaves_a_share_of_the_cpu() {
    let (mut data, mut ringer) = station();
    let write = move || {
        let _ = ringer.messages.try_write_to(&[7; 40], Instant::ZERO, to(4, 255));
        ringer.ring_doorbell();
    };
    leaves_a_share_while(write, &mut data);
}

/// A bell that rings without a message leaves no work behind.
#[test]
fn a_program_that_only_rings_leaves_a_share_of_the_cpu() {
    let (mut data, ringer) = station();
    data.work.leaving = Some(Leaving::at(now() + PATIENCE * 6));
    let begin = now();
    while data.work.ease.pauses < 3 && now().since(begin) < PATIENCE {
        ringer.ring_doorbell();
        assert!(matches!(data.turn(now()), Ok(Some(_))), "it goes on");
    }
    assert!(data.work.ease.pauses >= 3, "{} pauses", data.work.ease.pauses);
}
