//! Messages in several fragments: what the wire, the sender and the receiving program can do to them.

use crate::lan::{FOREIGN, Lan, SECOND, both, fragment, mac};
use rota_proto::llc::ASSEMBLIES;
use rota_units::Span;
use rota_wire::MacAddr;
use rota_wire::llc::{AckStatus, Control, LLC_INFORMATION, LlcHeader, SAP_SNAP, emit_llc};

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

/// A station alone whose socket 2 is open, with fragments of messages 0 to 99 on the way.
fn receiver() -> Lan {
    let mut lan = Lan::plain(1);
    lan.next = 100;
    lan
}

fn source(k: u16) -> MacAddr {
    MacAddr([6, 0, 0, 0, 0, k as u8])
}

/// The same frame as an acknowledged command with this bit.
fn acknowledged(frame: &[u8], bit: bool) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let information = usize::from(u16::from_be_bytes([frame[12], frame[13]])) - 3;
    let control = Control::Ac { bit, poll: false };
    let header = LlcHeader { dsap: SAP_SNAP, ssap: SAP_SNAP, response: false, control };
    frame.resize(frame.len().max(LLC_INFORMATION + information), 0);
    emit_llc(&mut frame, mac(0), FOREIGN, &header, information);
    frame
}

#[test]
fn fragments_in_any_order_make_the_message_whole() {
    let orders: [&dyn Fn(usize) -> usize; 4] =
        [&|at| at, &|at| 11 - at, &|at| at * 5 % 12, &|at| (at * 7 + 3) % 12];
    for (number, order) in orders.into_iter().enumerate() {
        let mut lan = receiver();
        for at in 0..12 {
            assert!(lan.got.is_empty(), "order {number}: whole after {at} of 12");
            lan.hear(0, &fragment(source(1), number as u16, 16_384, order(at) as u8));
        }
        assert_eq!(lan.got(number as u64), [(0, 16_384)], "order {number}");
        assert_eq!(lan.nodes[0].llc().counters().messages_received, 1);
    }
}

#[test]
fn a_fragment_that_comes_twice_is_taken_once() {
    let mut lan = receiver();
    for index in [0, 0, 2, 1, 1, 2, 0] {
        lan.hear(0, &fragment(source(1), 7, 5_000, index));
    }
    assert!(lan.got.is_empty());
    lan.hear(0, &fragment(source(1), 7, 5_000, 3));
    assert_eq!(lan.got(7), [(0, 5_000)]);
    // One that comes when the message is over begins another one, which is never whole.
    lan.hear(0, &fragment(source(1), 7, 5_000, 3));
    lan.run(SECOND * 2);
    assert_eq!((lan.got.len(), lan.nodes[0].llc().counters().incomplete), (1, 1));
}

#[test]
fn a_message_with_a_lost_or_late_fragment_is_given_up_and_delivered_to_nobody() {
    for missing in 0..4 {
        let mut lan = receiver();
        for index in (0..4).filter(|index| *index != missing) {
            lan.hear(0, &fragment(source(1), 7, 5_000, index));
        }
        lan.run(ms(1_100));
        assert_eq!(lan.nodes[0].llc().counters().incomplete, 1, "without {missing}");
        lan.hear(0, &fragment(source(1), 7, 5_000, missing));
        lan.run(SECOND * 2);
        assert!(lan.got.is_empty(), "without {missing}");
        // The next message under the same number has nothing of it.
        (0..4).for_each(|index| lan.hear(0, &fragment(source(1), 7, 5_000, index)));
        assert_eq!(lan.got(7), [(0, 5_000)], "without {missing}");
    }
}

#[test]
fn fragments_of_as_many_senders_as_there_is_room_for_do_not_mix() {
    let senders = ASSEMBLIES as u16;
    let mut lan = receiver();
    for index in 0..12 {
        (0..senders).for_each(|k| lan.hear(0, &fragment(source(k), k, 16_384, (index + k as u8) % 12)));
    }
    (0..u64::from(senders)).for_each(|k| assert_eq!(lan.got(k), [(0, 16_384)], "sender {k}"));
    // Two messages of one sender are told apart by their number.
    for index in 0..4 {
        (20..22).for_each(|message| lan.hear(0, &fragment(source(1), message, 5_000, index)));
    }
    assert_eq!((lan.got(20), lan.got(21)), (vec![(0, 5_000)], vec![(0, 5_000)]));
}

#[test]
fn a_sender_that_dies_amid_a_message_keeps_no_room() {
    for ack in [false, true] {
        for mut lan in both() {
            lan.run(SECOND);
            lan.loses = |at| at % 12 >= 3;
            (0..10).for_each(|_| _ = lan.send(1, 1, 16_384, |request| request.ack = ack));
            lan.run(ms(5));
            lan.dead.push(1);
            lan.loses = |_| false;
            lan.run(SECOND * 4);
            let number = lan.send(2, 1, 16_384, |_| ());
            lan.run(SECOND * 2);
            assert_eq!(lan.got(number), [(0, 16_384)], "acknowledged {ack}");
        }
    }
}

/// The rest of a message came to the next program that opened the socket, together with what had come before.
#[test]
fn a_socket_that_closes_amid_a_message_gives_nothing_of_it_to_the_next_program() {
    let mut lan = receiver();
    (0..3).for_each(|index| lan.hear(0, &fragment(source(1), 7, 5_000, index)));
    lan.nodes[0].llc_close(lan.now, 2);
    assert_eq!(lan.nodes[0].llc().counters().incomplete, 1);
    lan.nodes[0].llc_open(2);
    lan.hear(0, &fragment(source(1), 7, 5_000, 3));
    lan.run(SECOND * 2);
    assert!(lan.got.is_empty());
    (0..4).for_each(|index| lan.hear(0, &fragment(source(1), 8, 5_000, index)));
    assert_eq!(lan.got(8), [(0, 5_000)]);
}

#[test]
fn the_rest_of_an_acknowledged_message_is_refused_once_its_socket_has_closed() {
    let mut lan = receiver();
    let mut bit = false;
    let mut say = |lan: &mut Lan, message, index| {
        lan.hear(0, &acknowledged(&fragment(FOREIGN, message, 5_000, index), bit));
        bit = !bit;
    };
    say(&mut lan, 7, 0);
    say(&mut lan, 7, 1);
    lan.nodes[0].llc_close(lan.now, 2);
    say(&mut lan, 7, 2);
    lan.nodes[0].llc_open(2);
    say(&mut lan, 7, 3);
    (0..4).for_each(|index| say(&mut lan, 8, index));
    lan.run(ms(100));
    let said: Vec<u8> = lan.answers().iter().map(|view| view.information[0]).collect();
    let (ok, gone) = (AckStatus::OK.0, AckStatus::PROTOCOL.0);
    assert_eq!(said, [ok, ok, AckStatus::UNACTIVATED.0, gone, ok, ok, ok, ok]);
    assert_eq!((lan.got(7), lan.got(8)), (vec![], vec![(0, 5_000)]));
}
