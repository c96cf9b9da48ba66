//! Circuits without error control: what arrives is whole, in order and unaltered, and what does not is told.

use crate::vc_path::{Net, Path, QUIET, TPDU, messages, request};
use proptest::prelude::*;
use rota_proto::vc::{Arrival, Counts, End, LooseInbox, Losses, Piece, SinkEvent};
use rota_units::Span;
use rota_wire::{FlowControl, Quality, Tpdu, TpduBody};

const FLOWS: [FlowControl; 4] =
    [FlowControl::Open, FlowControl::Bucket, FlowControl::Window, FlowControl::PacketPair];

fn loose(flow: FlowControl, stream: bool) -> Quality {
    Quality { error_control: false, flow, stream }
}

/// The counts of both ends, when the circuit has ended in order at both.
fn finished(path: &Path) -> (Counts, Counts) {
    let (Some(End::Finished { own: sent, other: taken }), Some(End::Finished { own, other })) = path.ends
    else {
        panic!("{:?}", path.ends)
    };
    assert_eq!((sent, taken), (other, own), "both ends say the same");
    (sent, taken)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// TRANSPORT-2-6, TRANSPORT-R67, TRANSPORT-8-5: over loss, duplication and reordering, with a reader that
    /// is slow, and each flow control.
    #[test]
    fn whole_messages_arrive_in_order_and_all_others_are_counted(
        seed in any::<u64>(),
        (lost, ack_lost, doubled) in (0u64..300, 0u64..300, 0u64..200),
        (jitter, window, reads) in (0u64..1_000_000, 1u64..40, 1u64..4),
        flow in prop::sample::select(FLOWS.to_vec()),
        sizes in prop::collection::vec(prop_oneof![0usize..250, 0usize..5_000], 1..60),
    ) {
        let net = Net { lost, ack_lost, doubled, jitter, ..QUIET };
        let mut path = Path::new(seed, net, &request(loose(flow, false), window));
        path.reads = reads;
        let sent = messages(&sizes);
        path.send(&sent);
        // A path that loses so much may break the handshake or the close.
        if let (Some(End::Finished { .. }), Some(End::Finished { .. })) = path.ends {
            let (all, taken) = finished(&path);
            prop_assert_eq!(all.messages, sent.len() as u64);
            prop_assert_eq!(taken.messages, path.read.len() as u64);
            let Losses { tpdus, dropped, messages } = path.losses;
            prop_assert_eq!(taken.tpdus + tpdus + dropped, all.tpdus, "each TPDU has one fate");
            prop_assert_eq!(taken.messages + messages, all.messages, "each message has one fate");
        }
        // Each that came is one of those behind the last one.
        let mut rest = sent.iter();
        for (_, message) in &path.read {
            prop_assert!(rest.any(|sent| sent == message), "altered, doubled or reordered");
        }
        prop_assert_eq!(path.source.resent(), 0, "nothing is sent again");
    }

    /// TRANSPORT-2-6: the gaps of a stream are told where they are.
    #[test]
    fn a_stream_tells_each_gap_before_the_octets_behind_it(
        seed in any::<u64>(),
        (lost, jitter, window) in (0u64..300, 0u64..1_000_000, 1u64..40),
        flow in prop::sample::select(FLOWS.to_vec()),
    ) {
        let net = Net { lost, jitter, ..QUIET };
        let mut path = Path::new(seed, net, &request(loose(flow, true), window));
        let all = messages(&[usize::from(TPDU) * 300]);
        path.send(&all);
        let mut at = 0;
        for (gap, octets) in &path.read {
            at += *gap as usize * usize::from(TPDU);
            prop_assert_eq!(&all[0][at..at + octets.len()], &octets[..], "at {}", at);
            at += octets.len();
        }
        if path.ends.0.is_some_and(|end| matches!(end, End::Finished { .. })) {
            let (sent, taken) = finished(&path);
            prop_assert_eq!(taken.tpdus + path.losses.tpdus, sent.tpdus);
            prop_assert_eq!((path.losses.messages, path.losses.dropped), (0, 0));
        }
    }

    /// TRANSPORT-R70 to R74: any TPDUs of data leave the inbox sound.
    #[test]
    fn no_tpdus_in_any_order_break_the_inbox(
        all in prop::collection::vec((0u64..60, 0u32..20, 0u32..8, any::<bool>(), 0usize..101), 1..80),
        (window, reorder, takes) in (1u32..20, 1u32..5, 0usize..3),
        far in any::<u64>(),
    ) {
        let mut inbox = LooseInbox::new(window, TPDU, false, reorder);
        for (at, (sequence, message, index, last, octets)) in all.into_iter().enumerate() {
            let sequence = if sequence == 59 { far } else { sequence }.max(1);
            if inbox.accept(sequence, Piece { message, index, last }, &[7; 101][..octets]) == Arrival::Lies {
                return Ok(());
            }
            prop_assert!(inbox.cum() <= inbox.limit());
            for _ in 0..takes {
                let whole = inbox.peek().is_some();
                prop_assert_eq!(inbox.take(), whole);
            }
            if at == 70 && inbox.all_sent(70, true) {
                while inbox.take() {}
                prop_assert!(inbox.base() <= 73);
            }
        }
    }
}

/// One such TPDU, or a close, made a node panic or count for ever.
#[test]
fn numbers_at_the_end_of_all_are_lies() {
    for window in 1..6 {
        for number in [u64::MAX, u64::MAX - 1, u64::MAX - 2, u64::MAX - 3, u64::MAX - 4, u64::MAX / 2] {
            let new = || LooseInbox::new(window, TPDU, false, 3);
            let piece = Piece { message: 0, index: 0, last: true };
            assert_eq!(new().accept(number, piece, &[7]), Arrival::Lies, "{window} {number}");
            assert!(!new().all_sent(number, false) && !new().all_sent(number, true), "{window} {number}");
        }
        // The greatest that is believed is no trouble either.
        let mut inbox = LooseInbox::new(window, TPDU, true, 3);
        inbox.accept(1 << 62, Piece::default(), &[7]);
        assert!(inbox.all_sent(1 << 62, true));
        while inbox.take() {}
        assert!(inbox.limit() >= 1 << 62);
    }
}

/// TRANSPORT-2-6: without flow control by feedback no acknowledgement of data is sent.
#[test]
fn data_that_needs_no_answer_gets_none() {
    for quality in [Quality::BEST_EFFORT, Quality::GUARANTEED] {
        let mut path = Path::new(1, QUIET, &request(quality, 16));
        path.send(&messages(&[150; 400]));
        let (all, taken) = finished(&path);
        assert_eq!((all, all), (taken, Counts { tpdus: 800, messages: 400 }));
        // The answer to the third step, and to the asks that show that the sender lives.
        assert!(path.sent[1] <= 1 + path.sent[2], "{:?}", path.sent);
        assert_eq!(path.sent[0], 800);
    }
}

/// A part of a message is worth nothing to its reader: TRANSPORT-R67.
#[test]
fn a_message_of_which_one_tpdu_is_lost_is_dropped_whole_and_told() {
    let piece = |message, index, last| Piece { message, index, last };
    let mut inbox = LooseInbox::new(8, TPDU, false, 1);
    assert_eq!(inbox.accept(1, piece(0, 0, false), &[1; 100]), Arrival::New);
    assert_eq!(inbox.accept(3, piece(0, 2, true), &[1; 100]), Arrival::New, "the second one is lost");
    assert_eq!((inbox.peek(), inbox.gap()), (None, 1));
    assert_eq!(inbox.losses(), Losses { tpdus: 1, dropped: 2, messages: 1 });
    assert_eq!(inbox.accept(2, piece(0, 1, false), &[1; 100]), Arrival::Double, "it comes too late");
    assert_eq!(inbox.accept(4, piece(1, 0, true), b"whole"), Arrival::New);
    assert_eq!(inbox.peek(), Some((piece(1, 0, true), &b"whole"[..])));
    assert!(inbox.take() && !inbox.take());
    assert_eq!(inbox.gap(), 0);
    // Messages 2 to 4 never came, and message 5 has lost its beginning.
    assert_eq!(inbox.accept(9, piece(5, 1, true), &[1; 100]), Arrival::New);
    assert_eq!(inbox.losses(), Losses { tpdus: 5, dropped: 3, messages: 5 });
}

/// A carrier copies what is whole before its program has taken it; what is behind a gap waits for that.
#[test]
fn whole_messages_are_seen_ahead_up_to_the_next_gap() {
    let piece = |message, index, last| Piece { message, index, last };
    let mut inbox = LooseInbox::new(8, TPDU, false, 1);
    inbox.accept(1, piece(0, 0, true), b"first");
    inbox.accept(2, piece(1, 0, true), b"second");
    inbox.accept(4, piece(3, 0, true), b"fourth");
    let ahead = |inbox: &LooseInbox, ahead| inbox.peek_ahead(ahead).map(|(_, data)| data.to_vec());
    assert_eq!(ahead(&inbox, 0), Some(b"first".to_vec()));
    assert_eq!(ahead(&inbox, 1), Some(b"second".to_vec()));
    assert_eq!((ahead(&inbox, 2), ahead(&inbox, u64::MAX)), (None, None));
    assert!(inbox.take() && inbox.take());
    assert_eq!((inbox.gap(), ahead(&inbox, 0)), (1, Some(b"fourth".to_vec())));
}

/// The close may overtake data: what is missing then is lost only when the close comes again.
#[test]
fn what_the_close_has_overtaken_is_waited_for_until_it_comes_again() {
    for comes in [true, false] {
        let mut path = Path::new(1, QUIET, &request(Quality::BEST_EFFORT, 8));
        while path.opened.is_none() {
            path.step();
        }
        let (now, circuit) = (path.now, path.source.circuit());
        let sink = path.sink.as_mut().expect("it is open");
        let mut handle = |body, octets: &[u8]| {
            sink.handle(now, &Tpdu { to: 0, circuit, body }, octets);
            while sink.take() {}
            sink.event()
        };
        let data = |sequence, message| TpduBody::Data { sequence, message, index: 0, last: true };
        let close = TpduBody::Close { tpdus: 3, messages: 3 };
        let own = |messages| Counts { tpdus: messages, messages };
        handle(data(1, 0), b"one");
        handle(data(3, 2), b"three");
        assert_eq!(handle(close, b""), None, "the second one may be on its way");
        if comes {
            let end = End::Finished { own: own(3), other: own(3) };
            assert_eq!(handle(data(2, 1), b"two"), Some(SinkEvent::Ended(end)));
            assert_eq!((sink.counts(), sink.losses()), (own(3), Losses::default()));
        } else {
            handle(close, b"");
            assert!(sink.is_ended());
            assert_eq!(
                (sink.counts(), sink.losses()),
                (own(2), Losses { tpdus: 1, dropped: 0, messages: 1 })
            );
        }
    }
}

/// One that is longer than the window can never be there whole, and holds up no other one.
#[test]
fn a_message_longer_than_the_window_is_dropped_and_those_behind_it_arrive() {
    let mut path = Path::new(1, QUIET, &request(Quality::BEST_EFFORT, 4));
    while path.opened.is_none() {
        path.step();
    }
    assert_eq!(path.source.message_max(), Some(400), "the sender's carrier can say so before");
    path.send(&messages(&[400, 401, 5_000, 60]));
    let (all, taken) = finished(&path);
    assert_eq!((all.messages, taken.messages), (4, 2));
    let lengths: Vec<_> = path.read.iter().map(|(_, message)| message.len()).collect();
    assert_eq!(lengths, [400, 60]);
    assert_eq!(path.losses, Losses { tpdus: 0, dropped: 5 + 50, messages: 2 });
}

/// A program that writes all the time must not keep the question back whose answer shows that the other end
/// lives.
#[test]
fn a_sender_that_never_rests_learns_that_its_peer_lives_and_that_it_is_gone() {
    let net = Net { slot: 2_000_000, ..QUIET };
    let mut path = Path::new(1, net, &request(Quality::BEST_EFFORT, 8));
    let start = path.now;
    let mut dies = false;
    while path.ends.0.is_none() {
        while path.source.write(&[1; 100], true).ended {}
        path.step();
        // Three times the time of silence; then the path is cut.
        if path.now.since(start) > Span::from_millis(6_000) && !dies {
            (dies, path.net.lost, path.net.ack_lost) = (true, 1_000, 1_000);
        }
    }
    assert!(dies, "{:?}", path.ends);
    assert_eq!(path.ends.0, Some(End::Silent));
    assert!(path.now.since(start) < Span::from_millis(9_000));
}

/// TRANSPORT-8-5: feedback without error control. A receiver that reads slowly holds the sender, and one that
/// loses all of a window does not hold it for ever.
#[test]
fn feedback_without_error_control_holds_the_sender_to_its_receiver() {
    for flow in [FlowControl::Window, FlowControl::PacketPair] {
        let mut path = Path::new(3, QUIET, &request(loose(flow, false), 8));
        path.reads = 0;
        let start = path.now;
        while path.now.since(start) < Span::from_millis(500) {
            while path.source.write(&[1; 100], true).ended {}
            path.step();
        }
        // Those for which there was room, and the data that asked for more, ever less often.
        assert!((8..40).contains(&path.sent[0]), "{flow:?}: {}", path.sent[0]);
        path.reads = 1;
        // The path loses all for a while, and with it whole windows.
        path.net.lost = 1_000;
        let cut = path.now;
        while path.now.since(cut) < Span::from_millis(100) {
            while path.source.write(&[1; 100], true).ended {}
            path.step();
        }
        path.net.lost = 0;
        let (healed, before) = (path.now, path.read.len());
        while path.now.since(healed) < Span::from_millis(500) {
            while path.source.write(&[1; 100], true).ended {}
            path.step();
        }
        let read = path.read.len() - before;
        assert!(read > 1_000, "{flow:?}: {read} in half a second, {:?}", path.ends);
        assert_eq!(path.source.resent(), 0);
    }
}
