use super::queue::{Entry, Origin, SIGNALLING};
use super::spend::Sent;
use super::*;
use crate::io::{ChannelId, Payloads, ShareRequest};
use rota_contract::NodeId;
use rota_medium::ModeName;
use rota_medium::door::Share;
use rota_units::BitRate;
use rota_wire::{MacAddr, Signal, Verb};

struct Nothing;

impl Payloads for Nothing {
    fn copy_unit(&mut self, _: ChannelId, _: u64, _: u32, _: &mut [u8]) -> bool {
        false
    }
}

fn port(now: Instant) -> Port {
    let me = Identity { node_id: NodeId(1), boot_id: 1, mac: MacAddr([2; 6]), name: "n1".to_owned() };
    let settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
    Port::new(now, PortId(0), me, &Key::new([1; 32]), settings, 1)
}

fn signals(port: &Port) -> usize {
    port.own.signals().count()
}

/// A station whose card does not empty gives a switch up, and goes back to plain mode.
#[test]
fn a_switch_that_is_given_up_strands_nothing_in_the_queue() {
    let mut now = Instant::from_nanos(1);
    let mut port = port(now);
    let (mut bytes, mut sent) = ([0; 1_600], 0);
    let mut frame = FrameBuf { bytes: &mut bytes, payloads: &mut Nothing };
    while port.medium.mode() != ModeName::Plain {
        now = now.max(port.deadline().at);
        port.handle_deadline(now);
        while port.poll(now, &mut frame).is_some() || port.next_event().is_some() {}
    }
    let (to, pace) = (MacAddr([3; 6]), rota_admission::Pace::EVERY_CYCLE);
    let share = Share { unit_octets_max: 100, pace, periodic: false, partition: 0, flow: None };
    let asked = ShareRequest { to, label: 1, share };
    port.reserve(now, ChannelId(1), &asked);
    assert_eq!(port.medium.mode(), ModeName::Switching);
    let signal = Signal::new(Verb::Close, ChannelId(7), 1);
    port.send_signal(now, to, signal);
    port.on_host_frame(now, HostTag(5), 100, 0);
    while port.poll(now, &mut frame).is_some() || port.next_event().is_some() {}
    assert_eq!((port.queued_frames(), signals(&port)), (2, 1));
    while port.medium.mode() != ModeName::Plain {
        now = now.max(port.deadline().at);
        port.handle_deadline(now);
    }
    assert_eq!(port.queued_frames(), 1, "the host's frame leaves in its turn");
    assert_eq!(signals(&port), 0, "the same signal can be sent again");
    assert!(!port.own.is_drained());
    // Also what comes into the queue while nothing is diverted is written, and not dropped.
    port.enqueue(now, SIGNALLING, Entry { origin: Origin::Announce, octets: 149 });
    while let Some(output) = port.poll(now, &mut frame) {
        sent += u32::from(matches!(output, Output::Transmit { .. }));
    }
    assert_eq!(sent, 1, "an introduction; of the signal's receiver nobody has heard");
    assert_eq!(port.counters.host_frames_flushed, 1);
    assert!(port.queue.is_empty() && port.own.is_drained());
}

/// Of two visits signalling has one at most: one that has sent others too is none of those.
#[test]
fn a_visit_that_has_sent_others_is_none_of_signalling() {
    let port = port(Instant::ZERO);
    let after = |visit: &[bool]| {
        let send = |(left, sent), is_signal: &bool| port.with_frame(*is_signal, 100, left, sent);
        visit.iter().try_fold((3, Sent::Nothing), send)
    };
    assert!(matches!(after(&[true, true]), Some((2, Sent::Signalling(_)))));
    assert!(matches!(after(&[true, false]), Some((1, Sent::Others(_)))));
    assert!(matches!(after(&[false, true]), Some((1, Sent::Others(_)))));
}

/// Frames that share a place take as long as one full frame, and not a nanosecond more.
#[test]
fn frames_share_a_place_up_to_the_time_of_a_full_one() {
    let port = port(Instant::ZERO);
    let link = port.medium.settings().link;
    let full = link.frame_cost_max();
    let room = full - link.frame_cost(port.frame_time(100));
    let more = room + Span::from_nanos(1);
    let with = |is_signal, sent| port.with_frame(is_signal, 100, 0, sent);
    assert_eq!(with(true, Sent::Signalling(room)), Some((0, Sent::Signalling(full))));
    assert_eq!(with(false, Sent::Others(room)), Some((0, Sent::Others(full))));
    assert_eq!((with(true, Sent::Signalling(more)), with(false, Sent::Others(more))), (None, None));
}
