//! Link control between whole nodes, in plain mode and under the token, on a wire that loses what it is told.

use crate::lan::{FOREIGN, Lan, Pattern, SECOND, both, mac, octet};
use rota_contract::{MessageFailure, MessageOutcome};
use rota_proto::{
    FrameBuf, HostTag, Input, LLC_BROADCAST, LlcAddress, LlcRequest, ModeName, Output, PortId, Settings,
};
use rota_units::{Instant, Span};
use rota_wire::llc::{AckStatus, Control, LlcHeader, LlcMalformed};

#[test]
fn a_datagram_of_any_length_arrives_whole_in_both_modes() {
    for mut lan in both() {
        for octets in [0, 1, 100, 1_497, 1_498, 2_000, 16_384] {
            let number = lan.send(0, 2, octets, |_| ());
            lan.run(SECOND);
            assert_eq!(lan.got(number), [(1, octets as usize)], "{octets} octets");
            assert_eq!(lan.outcome(number), Some(MessageOutcome::Sent));
        }
        let number = lan.send(0, 2, 16_385, |_| ());
        lan.run(SECOND);
        assert_eq!(lan.outcome(number), Some(MessageOutcome::Failed(MessageFailure::Impossible)));
        assert_eq!(lan.got.last().map(|got| got.from), Some(LlcAddress { socket: 2, node: 1 }));
    }
}

/// Fragments had the size of the usual MTU's frames: on a smaller one messages beyond one frame failed.
#[test]
fn messages_of_any_length_arrive_whole_at_every_mtu() {
    for mtu in [576, 1_400, 1_499, 1_501, 9_000] {
        let other = |settings: &mut Settings| {
            let llc = std::mem::take(&mut settings.llc);
            let (rate, port_queue) = (settings.link.rate, settings.port_queue);
            *settings = Settings { llc, ..Settings::ethernet_of(rate, port_queue, mtu) };
        };
        let one = u32::from(mtu.min(1_500) - 3);
        for mut lan in [Lan::plain_with(3, other), Lan::token_with(3, other)] {
            for (octets, ack) in [
                (0, true),
                (one, false),
                (one + 1, false),
                (one + 1, true),
                (one * 2, false),
                (16_384, false),
                (16_384, true),
            ] {
                let number = lan.send(0, 2, octets, |request| request.ack = ack);
                lan.run(SECOND * 2);
                assert_eq!(lan.got(number), [(1, octets as usize)], "{octets} octets at {mtu}");
                let due = if ack { MessageOutcome::Acknowledged } else { MessageOutcome::Sent };
                assert_eq!(lan.outcome(number), Some(due), "{octets} octets at {mtu}");
            }
        }
    }
}

#[test]
fn an_acknowledged_message_of_any_length_arrives_once_in_both_modes() {
    for mut lan in both() {
        for octets in [0, 100, 1_497, 1_498, 16_384] {
            let number = lan.send(0, 3, octets, |request| request.ack = true);
            lan.run(SECOND * 2);
            assert_eq!(lan.got(number), [(2, octets as usize)], "{octets} octets");
            assert_eq!(lan.outcome(number), Some(MessageOutcome::Acknowledged));
        }
    }
}

#[test]
fn everybody_gets_a_broadcast_and_its_sender_too() {
    for mut lan in both() {
        for octets in [100, 2_000] {
            let number = lan.send(0, LLC_BROADCAST, octets, |_| ());
            lan.run(SECOND);
            let mut got = lan.got(number);
            got.sort_unstable();
            assert_eq!(got, [0, 1, 2].map(|k| (k, octets as usize)));
            assert_eq!(lan.outcome(number), Some(MessageOutcome::Sent));
        }
        let number = lan.send(0, LLC_BROADCAST, 10, |request| request.ack = true);
        lan.run(SECOND);
        assert_eq!(lan.outcome(number), Some(MessageOutcome::Failed(MessageFailure::AckFromAll)));
    }
}

#[test]
fn a_message_to_the_own_station_never_sees_the_wire() {
    let mut lan = Lan::plain(2);
    let plain = lan.send(0, 1, 3_000, |_| ());
    let acked = lan.send(0, 1, 10, |request| request.ack = true);
    let nobody = lan.send(0, 1, 10, |request| (request.ack, request.to.socket) = (true, 4));
    lan.run(SECOND);
    assert_eq!(lan.got(plain), [(0, 3_000)]);
    assert_eq!(lan.outcome(plain), Some(MessageOutcome::Sent));
    assert_eq!(lan.outcome(acked), Some(MessageOutcome::Acknowledged));
    let refused = MessageFailure::Refused(AckStatus::UNACTIVATED.0);
    assert_eq!(lan.outcome(nobody), Some(MessageOutcome::Failed(refused)));
    assert!(lan.left.is_empty());
}

#[test]
fn a_lost_command_and_a_lost_acknowledgement_are_repaired_and_nothing_comes_twice() {
    // Frames 0, 1, 2, … are: command, its answer, and so on; each of the first four is lost in turn.
    let losses: [fn(usize) -> bool; 4] = [|at| at == 0, |at| at == 1, |at| at < 2, |at| at == 1 || at == 3];
    for (case, loses) in losses.into_iter().enumerate() {
        for octets in [50, 4_000] {
            let mut lan = Lan::plain(2);
            lan.loses = loses;
            let number = lan.send(0, 2, octets, |request| (request.ack, request.tries) = (true, 5));
            lan.run(SECOND);
            assert_eq!(lan.outcome(number), Some(MessageOutcome::Acknowledged), "case {case}");
            assert_eq!(lan.got(number).len(), 1, "case {case}");
            assert!(lan.nodes[0].llc().counters().frames_repeated > 0);
        }
    }
}

/// The answer to a refused command is lost: the command that is repeated is refused again.
#[test]
fn a_command_that_was_refused_is_refused_when_it_comes_again() {
    let mut lan = Lan::plain(2);
    lan.loses = |at| at == 1;
    let closed = lan.send(0, 2, 10, |request| (request.ack, request.tries, request.to.socket) = (true, 5, 8));
    lan.run(SECOND);
    let refused = MessageFailure::Refused(AckStatus::UNACTIVATED.0);
    assert_eq!(lan.outcome(closed), Some(MessageOutcome::Failed(refused)));
    assert_eq!(lan.nodes[1].llc().counters().duplicates, 1);
    assert_eq!(lan.got(closed), []);
}

#[test]
fn tries_are_attempts_in_all_and_zero_means_one() {
    for (tries, attempts) in [(0, 1), (1, 1), (3, 3)] {
        let mut lan = Lan::plain(2);
        lan.loses = |_| true;
        let number = lan.send(0, 2, 50, |request| (request.ack, request.tries) = (true, tries));
        lan.run(SECOND);
        assert_eq!(lan.left.len(), attempts);
        assert_eq!(lan.outcome(number), Some(MessageOutcome::Failed(MessageFailure::NoAnswer)));
    }
}

#[test]
fn after_an_unanswered_command_the_next_message_is_not_taken_for_its_repetition() {
    // The sender cannot know whether the command or its answer was lost.
    for loses in [(|at| at == 0) as fn(usize) -> bool, |at| at == 1] {
        let mut lan = Lan::plain(2);
        lan.loses = loses;
        let lost = lan.send(0, 2, 50, |request| request.ack = true);
        let next = lan.send(0, 2, 60, |request| request.ack = true);
        lan.run(SECOND * 4);
        assert_eq!(lan.outcome(lost), Some(MessageOutcome::Failed(MessageFailure::NoAnswer)));
        assert_eq!(lan.outcome(next), Some(MessageOutcome::Acknowledged));
        assert_eq!(lan.got(next).len(), 1, "an acknowledged message has arrived");
    }
}

#[test]
fn acknowledged_messages_to_one_station_keep_their_order_and_those_to_others_do_not_wait() {
    let mut lan = Lan::plain(3);
    lan.loses = |at| at == 0;
    let ack = |request: &mut LlcRequest| (request.ack, request.tries) = (true, 9);
    let numbers: Vec<u64> = (0..40).map(|_| lan.send(0, 2, 20, ack)).collect();
    let other = lan.send(0, 3, 20, ack);
    lan.run(Span::from_millis(40));
    assert_eq!(
        lan.outcome(other),
        Some(MessageOutcome::Acknowledged),
        "while the first waits for its repetition"
    );
    assert_eq!(lan.outcome(numbers[0]), None);
    lan.run(SECOND);
    let got: Vec<u64> = lan.got.iter().filter(|got| got.station == 1).map(|got| got.number).collect();
    assert_eq!(got, numbers);
}

#[test]
fn a_time_limit_ends_a_message_wherever_it_is() {
    let mut lan = Lan::token(2);
    lan.loses = |_| true;
    let until = lan.now + Span::from_micros(10);
    let queued = lan.send(0, 2, 50, |request| request.until = until);
    let waiting = lan.send(0, 2, 50, |request| {
        (request.ack, request.tries, request.until) = (true, 200, until + Span::from_millis(500));
    });
    lan.run(SECOND);
    assert_eq!(lan.outcome(queued), Some(MessageOutcome::TimedOut));
    assert_eq!(lan.outcome(waiting), Some(MessageOutcome::TimedOut));
    assert!(lan.got.is_empty());
}

#[test]
fn nobody_s_socket_and_nobody_s_address_are_told() {
    let mut lan = Lan::plain(2);
    let closed = lan.send(0, 2, 10, |request| (request.ack, request.to.socket) = (true, 8));
    let nobody = lan.send(0, 99, 10, |_| ());
    let snap = lan.send(0, 2, 10, |request| request.to.socket = 0xaa);
    lan.run(SECOND);
    let refused = MessageFailure::Refused(AckStatus::UNACTIVATED.0);
    assert_eq!(lan.outcome(closed), Some(MessageOutcome::Failed(refused)));
    assert_eq!(lan.outcome(nobody), Some(MessageOutcome::Failed(MessageFailure::NoSuchNode)));
    assert_eq!(lan.outcome(snap), Some(MessageOutcome::Failed(MessageFailure::Impossible)));
    assert_eq!(lan.nodes[1].llc().counters().no_socket, 1);
}

#[test]
fn the_highest_level_leaves_first_among_messages_and_the_host_s_frames() {
    let mut lan = Lan::token(2);
    let mut order = Vec::new();
    for level in [0u8, 7, 3, 7, 5] {
        let number = lan.send(0, 2, 600, |request| request.level = level);
        order.push((u8::MAX - level, number));
    }
    let frame = Input::HostFrame { port: PortId(0), tag: HostTag(1), octets: 1_514, level: 6 };
    lan.nodes[0].handle(lan.now, frame);
    lan.run(SECOND);
    order.sort_unstable();
    let wanted: Vec<u64> = order.into_iter().map(|(_, number)| number).collect();
    let got: Vec<u64> = lan.got.iter().map(|got| got.number).collect();
    assert_eq!(got, wanted);
    assert_eq!(lan.host_left, [(0, 1)]);
}

#[test]
fn a_socket_that_closes_leaves_nothing_behind() {
    let mut lan = Lan::token(2);
    lan.loses = |_| true;
    for ack in [false, true, true] {
        lan.send(0, 2, 3_000, |request| (request.ack, request.tries) = (ack, 200));
    }
    lan.nodes[0].llc_close(lan.now, 2);
    lan.run(SECOND);
    assert_eq!((lan.left.len(), lan.events.len()), (0, 0));
    lan.loses = |_| false;
    lan.nodes[0].llc_open(2);
    // Every place has come back: as many messages as there are places can be queued again.
    let numbers: Vec<u64> = (0..1_024).map(|_| lan.send(0, 2, 10, |_| ())).collect();
    lan.run(SECOND * 8);
    assert!(numbers.iter().all(|number| lan.outcome(*number) == Some(MessageOutcome::Sent)));
}

#[test]
fn xid_and_test_are_answered_as_the_standard_says() {
    for mut lan in both() {
        let ask = |dsap, control| LlcHeader { dsap, ssap: 0x20, response: false, control };
        lan.foreign(0, &ask(2, Control::Xid { poll: true }), &[0x81, 1, 0]);
        lan.foreign(0, &ask(0, Control::Test { poll: false }), b"echo me");
        lan.foreign(0, &ask(8, Control::Test { poll: true }), b"nobody there");
        lan.foreign(0, &ask(2, Control::Test { poll: true }), &[0x55; 1_497]);
        lan.run(SECOND);
        let answers = lan.answers();
        let said: Vec<_> = answers.iter().map(|view| (view.header, view.information)).collect();
        let answer = |ssap, control| LlcHeader { dsap: 0x20, ssap, response: true, control };
        assert_eq!(said.len(), 3);
        assert_eq!(said[0], (answer(2, Control::Xid { poll: true }), &[0x81, 5, 0][..]));
        assert_eq!(said[1], (answer(0, Control::Test { poll: false }), &b"echo me"[..]));
        assert_eq!(said[2], (answer(2, Control::Test { poll: true }), &[0x55; 1_497][..]));
    }
}

/// XID to everybody at 35 Mbit/s made units of others late: each was answered as fast as it came.
#[test]
fn questions_without_end_get_so_many_answers_a_second_and_the_rest_is_counted() {
    for mut lan in both() {
        let header =
            LlcHeader { dsap: 0, ssap: 0x20, response: false, control: Control::Xid { poll: false } };
        for _ in 0..2_000 {
            lan.foreign(0, &header, &[0x81, 1, 0]);
            lan.run(Span::from_millis(1));
        }
        lan.run(SECOND);
        let answers = lan.answers().len();
        assert!((200..=264).contains(&answers), "{answers} answers in two seconds");
        assert_eq!(lan.nodes[0].llc().counters().answers_dropped as usize, 2_000 - answers);
    }
}

#[test]
fn a_foreign_station_is_reached_by_its_static_address_and_acknowledged() {
    let mut lan = Lan::plain(1);
    let number = lan.send(0, 0x77, 10, |_| ());
    lan.run(SECOND);
    assert_eq!(lan.outcome(number), Some(MessageOutcome::Sent));
    assert_eq!(lan.answers().len(), 1);
    lan.next = 5;
    let octets: Vec<u8> = (0..20).map(|at| octet(4, at)).collect();
    let command = |bit, poll| {
        let control = Control::Ac { bit, poll };
        LlcHeader { dsap: 2, ssap: 6, response: false, control }
    };
    lan.foreign(0, &command(true, false), &octets);
    lan.foreign(0, &command(true, true), &octets);
    lan.foreign(0, &command(false, false), &octets);
    assert_eq!(
        lan.got.iter().map(|got| got.from).collect::<Vec<_>>(),
        [LlcAddress { socket: 6, node: 0x77 }; 2]
    );
    let answers = lan.answers();
    let said: Vec<_> = answers[1..].iter().map(|view| (view.header.control, view.information)).collect();
    let ac = |bit, poll| Control::Ac { bit, poll };
    assert_eq!(
        said,
        [(ac(false, false), &[0x40][..]), (ac(false, true), &[0x30]), (ac(true, false), &[0x40])]
    );
}

#[test]
fn malformed_frames_of_every_kind_are_counted_and_dropped() {
    let mut lan = Lan::plain(1);
    let base = |pdu: &[u8]| {
        let mut frame = [mac(0).0, FOREIGN.0].concat();
        frame.extend((pdu.len() as u16).to_be_bytes());
        frame.extend(pdu);
        frame.resize(frame.len().max(60), 0);
        frame
    };
    let lying = |length: u16| {
        let mut frame = base(&[2, 4, 3]);
        frame[12..14].copy_from_slice(&length.to_be_bytes());
        frame
    };
    let mut group = base(&[2, 4, 3]);
    group[6] |= 1;
    let mut all = base(&[2, 4, 0x67, 0]);
    all[..6].fill(0xff);
    let frames = [
        lying(1_510),
        lying(1_400),
        lying(1),
        base(&[0xff, 0xff, 0, 0]),
        group,
        base(&[3, 4, 3]),
        base(&[2, 4, 0x13]),
        base(&[2, 5, 3]),
        base(&[2, 4, 0, 0]),
        base(&[2, 4, 0x6f]),
        base(&[2, 4, 0xaf, 1]),
        base(&[2, 5, 0x67]),
        all,
        base(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]),
        base(&[0xaa, 0xaa, 3, 2, 0x52, 0x4f, 0, 1, 2, 2, 0x10, 9, 0, 1, 0, 5]),
    ];
    for frame in &frames {
        lan.hear(0, frame);
    }
    lan.run(SECOND);
    let counted = lan.nodes[0].llc().counters().malformed;
    // A frame too short for its addresses and one with an EtherType are not link control's to count.
    let kinds = LlcMalformed::ALL.map(|(kind, _)| kind);
    for (kind, count) in kinds.iter().zip(counted) {
        let elsewhere = matches!(kind, LlcMalformed::Truncated | LlcMalformed::NotALength);
        assert_eq!(count, u64::from(!elsewhere), "{kind:?}");
    }
    assert!(lan.got.is_empty() && lan.left.is_empty());
}

#[test]
fn incomplete_messages_are_given_up_and_a_flood_of_them_blocks_nobody_for_long() {
    let mut lan = Lan::plain(2);
    // The first fragment of each of nine messages arrives, the others do not.
    lan.loses = |at| at % 2 == 1;
    for _ in 0..9 {
        lan.send(0, 2, 2_000, |_| ());
    }
    lan.run(Span::from_millis(10));
    let counters = lan.nodes[1].llc().counters();
    assert_eq!((counters.fragments_dropped, counters.incomplete), (1, 0));
    lan.run(SECOND * 2);
    assert_eq!(lan.nodes[1].llc().counters().incomplete, 8);
    lan.loses = |_| false;
    let number = lan.send(0, 2, 2_000, |_| ());
    lan.run(SECOND);
    assert_eq!(lan.got(number), [(1, 2_000)]);
}

#[test]
fn link_control_allocates_nothing_once_it_runs() {
    for mut lan in both() {
        let mut bytes = [0; 1_600];
        let mut frames = 0;
        lan.run(SECOND);
        let (now, node) = (lan.now, &mut lan.nodes[0]);
        let counted = allocation_counter::measure(|| {
            for number in 0..2_000u64 {
                let to = LlcAddress { socket: 2, node: if number % 3 == 0 { LLC_BROADCAST } else { 2 } };
                let (ack, octets) = (number % 3 == 1, 3_000);
                let (until, level) = (Instant::FAR, (number % 8) as u8);
                let request = LlcRequest { socket: 2, number, octets, to, level, ack, tries: 1, until };
                let _ = node.llc_send(now, &request);
                let mut frame = FrameBuf { bytes: &mut bytes, payloads: &mut Pattern };
                while let Some(output) = node.poll(now, &mut frame) {
                    frames += u32::from(matches!(output, Output::Transmit { .. }));
                    while node.next_llc_event().is_some() || node.next_event().is_some() {}
                }
            }
        });
        assert_eq!(counted.count_total, 0, "allocations on the frame path");
        assert!(frames > 0 || node.rether().mode() == ModeName::Token);
    }
}
