//! The ends of a circuit, one against the other and against ends that are not sound.

mod handshake;

use proptest::prelude::*;
use rota_proto::vc::{
    Counts, End, Listener, ListenerLimits, Pace, Request, Sink, SinkEvent, Source, SourceEvent, Timer,
    Unfinished, Written, stranger,
};
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::{CookieKey, FlowControl, Quality, ResetCause, Tpdu, TpduBody};

const PEER: u64 = 0xabc;
const PACE: Pace = Pace {
    first: Span::from_millis(2),
    least: Span::from_millis(1),
    most: Span::from_millis(100),
    silence: Span::from_millis(1_000),
    reorder: 3,
};
const LIMITS: ListenerLimits = ListenerLimits { window: 16, tpdu: 100, half_open: 4 };

fn request(flow: FlowControl, stream: bool) -> Request {
    let bucket = (flow == FlowControl::Bucket).then(|| (Octets::new(400), BitRate::from_mbit(1)));
    let quality = Quality { error_control: true, flow, stream };
    Request { service: 1, number: 5, window: 8, tpdu: 100, quality, bucket }
}

fn listener() -> Listener {
    Listener::new(1, CookieKey::new([3; 16]), LIMITS, PACE)
}

/// A source, a listener and the sink that comes of it, without a wire.
struct Pair {
    now: Instant,
    source: Source,
    listener: Listener,
    sink: Option<Sink>,
    /// The news of the two programs.
    told: (Vec<SourceEvent>, Vec<SinkEvent>),
    /// The octets that the sink's program has read, and the lengths of messages.
    read: Vec<u8>,
    lengths: Vec<usize>,
    reads: bool,
    /// TPDUs that the sender may send each time, of those that it wants to.
    sent: Vec<(Instant, usize)>,
}

impl Pair {
    fn new(request: &Request) -> Self {
        let now = Instant::from_nanos(1_000);
        Self {
            now,
            source: Source::open(now, request, 77, PACE).expect("a sound request"),
            listener: listener(),
            sink: None,
            told: (vec![], vec![]),
            read: vec![],
            lengths: vec![],
            reads: true,
            sent: vec![],
        }
    }

    /// A pair whose circuit is open.
    fn open(request: &Request) -> Self {
        let mut pair = Self::new(request);
        pair.settle(|_| true);
        assert!(matches!(pair.told.0[..], [SourceEvent::Opened(_)]), "{:?}", pair.told);
        pair
    }

    fn sink(&mut self) -> &mut Sink {
        self.sink.as_mut().expect("it is open")
    }

    /// Carries TPDUs to and fro at this instant until nothing is left, but those that `passes` denies.
    fn settle(&mut self, mut passes: impl FnMut(&Tpdu) -> bool) {
        let mut out = [0; 200];
        for turn in 0.. {
            assert!(turn < 2_000, "both talk for ever: {:?} {:?}", self.source, self.sink);
            let mut idle = true;
            let wanted = self.source.wants(self.now);
            if let Some(length) = self.source.transmit(self.now, &mut out) {
                assert_eq!(wanted, Some(length as u16), "the port was told how long it is");
                idle = false;
                self.sent.push((self.now, length));
                let (tpdu, data) = Tpdu::parse(&out[..length]).expect("a sound TPDU");
                if passes(&tpdu) {
                    self.reaches_receiver(&tpdu, data);
                }
            }
            let wanted = self.sink.as_ref().and_then(|sink| sink.wants(self.now));
            let length = self.sink.as_mut().and_then(|sink| sink.transmit(self.now, &mut out));
            assert_eq!(wanted.map(usize::from), length);
            let back = length.map(|length| Tpdu::parse(&out[..length]).expect("a sound TPDU").0);
            for tpdu in back.into_iter().chain(self.listener.poll(self.now).map(|(_, tpdu)| tpdu)) {
                idle = false;
                if passes(&tpdu) {
                    self.source.handle(self.now, &tpdu);
                }
            }
            self.hear();
            if idle {
                return;
            }
        }
    }

    fn reaches_receiver(&mut self, tpdu: &Tpdu, data: &[u8]) {
        match &mut self.sink {
            Some(sink) if sink.circuit() == tpdu.circuit => sink.handle(self.now, tpdu, data),
            _ => self.listener.handle(self.now, PEER, tpdu, true),
        }
    }

    fn hear(&mut self) {
        if let Some(offer) = self.listener.offer() {
            self.sink = Some(Sink::new(self.now, &offer, PACE));
        }
        self.told.0.extend(self.source.event());
        let Some(sink) = &mut self.sink else { return };
        self.told.1.extend(sink.event());
        while self.reads {
            let Some((piece, data)) = sink.peek() else { break };
            self.read.extend(data);
            sink.take();
            if piece.last {
                self.lengths.push(self.read.len() - self.lengths.iter().sum::<usize>());
            }
        }
        self.told.1.extend(sink.event());
    }

    /// Time goes on to the next deadline, whose reason is returned.
    fn wait(&mut self) -> Option<Timer> {
        let source = self.source.deadline(self.now);
        let sink = self.sink.as_ref().and_then(|sink| sink.deadline(self.now));
        let all = [source, sink, self.listener.deadline(self.now)];
        let (at, timer) = all.into_iter().flatten().min()?;
        assert!(at >= self.now, "{timer:?} is of the past");
        self.now = at;
        self.source.handle_deadline(at);
        self.sink.iter_mut().for_each(|sink| sink.handle_deadline(at));
        self.listener.handle_deadline(at);
        Some(timer)
    }

    /// Writes all of it, waiting where need be.
    fn write(&mut self, octets: &[u8], end: bool) {
        let mut rest = octets;
        loop {
            let Written { octets, ended } = self.source.write(rest, end);
            rest = &rest[octets..];
            self.settle(|_| true);
            if rest.is_empty() && (ended || !end) {
                return;
            }
            self.wait();
        }
    }
}

/// TRANSPORT-5.3.1-1: a message far longer than the window, and many short ones.
#[test]
fn messages_pass_through_a_window_of_any_size() {
    for window in [1, 2, 8] {
        for flow in [FlowControl::Open, FlowControl::Window, FlowControl::Bucket, FlowControl::PacketPair] {
            let mut pair = Pair::open(&Request { window, ..request(flow, false) });
            let message: Vec<u8> = (0..10_000u32).map(|n| ((n * 7) >> 3) as u8).collect();
            for size in [10_000, 0, 1, 100, 101, 800] {
                pair.write(&message[..size], true);
            }
            while pair.lengths.len() < 6 {
                pair.settle(|_| true);
                pair.wait();
            }
            assert_eq!(pair.lengths, [10_000, 0, 1, 100, 101, 800], "{window} {flow:?}");
            assert_eq!(pair.read[..10_000], message);
            assert_eq!(pair.source.resent(), 0);
        }
    }
}

#[test]
fn a_stream_keeps_its_octets_and_needs_no_ends() {
    let mut pair = Pair::open(&request(FlowControl::Window, true));
    let octets: Vec<u8> = (0..5_000u32).map(|n| ((n * 5) >> 2) as u8).collect();
    for part in octets.chunks(77) {
        pair.write(part, false);
    }
    assert_eq!(pair.read, octets);
    pair.source.close().expect("a stream ends anywhere");
    pair.settle(|_| true);
    let counts = pair.source.counts();
    assert_eq!(pair.told.0.last(), Some(&SourceEvent::Ended(End::Finished { own: counts, other: counts })));
    assert_eq!(pair.told.1.last(), Some(&SinkEvent::Ended(End::Finished { own: counts, other: counts })));
}

/// The close of the sender waits for the program; lost ones are repeated, and a duplicate finds its answer.
#[test]
fn a_sender_that_closes_learns_that_all_was_taken() {
    let mut pair = Pair::open(&request(FlowControl::Open, false));
    assert_eq!(pair.source.write(b"begun", false), Written { octets: 5, ended: false });
    assert_eq!(pair.source.close(), Err(Unfinished));
    pair.reads = false;
    pair.source.write(b"", true);
    pair.source.close().expect("the message has its end");
    for _ in 0..30 {
        pair.settle(|_| true);
        pair.wait();
    }
    assert_eq!(pair.told.0.len(), 1, "its program has not read: {:?}", pair.told);
    pair.reads = true;
    let mut lost = 0;
    while pair.told.0.len() < 2 {
        pair.settle(|tpdu| {
            lost += u32::from(matches!(tpdu.body, TpduBody::Closed { .. }));
            !matches!(tpdu.body, TpduBody::Closed { .. }) || lost > 2
        });
        if pair.told.0.len() < 2 {
            pair.wait();
        }
    }
    let one = Counts { tpdus: 1, messages: 1 };
    assert_eq!(pair.told.0[1], SourceEvent::Ended(End::Finished { own: one, other: one }));
    assert_eq!(pair.told.1.last(), Some(&SinkEvent::Ended(End::Finished { own: one, other: one })));
    // The sink answers for a while, and is then forgotten.
    assert!(!pair.sink().is_over());
    while pair.wait().is_some() {}
    assert!(pair.sink().is_over() && pair.source.is_over());
}

#[test]
fn a_receiver_that_closes_says_what_it_has_taken_and_both_may_at_once() {
    for both in [false, true] {
        let mut pair = Pair::open(&request(FlowControl::Open, false));
        pair.write(b"one", true);
        pair.sink().close();
        pair.source.write(b"two", true);
        if both {
            pair.source.close().expect("the message has its end");
        }
        pair.settle(|tpdu| !matches!(tpdu.body, TpduBody::Close { .. }));
        assert!(matches!(pair.wait(), Some(Timer::Close | Timer::Probe)));
        while !pair.told.0.iter().any(|event| matches!(event, SourceEvent::Ended(_))) {
            pair.settle(|_| true);
            pair.wait();
        }
        pair.settle(|_| true);
        let taken = Counts { tpdus: 1, messages: 1 };
        assert_eq!(pair.told.0.last(), Some(&SourceEvent::Ended(End::Stopped { other: taken })));
        let sent = Counts { tpdus: 2, messages: 2 };
        assert_eq!(pair.told.1.last(), Some(&SinkEvent::Ended(End::Stopped { other: sent })));
        assert_eq!(pair.lengths, [3], "nothing behind the close is taken");
    }
}

/// A reader's finding: the receiver answered the sender's close with what had come, not with what was taken,
/// and the sender threw the rest away, or called a stream finished that was not read.
#[test]
fn a_receiver_that_closes_with_messages_unread_is_not_said_to_have_taken_them() {
    for stream in [false, true] {
        let mut pair = Pair::open(&request(FlowControl::Open, stream));
        pair.reads = false;
        pair.write(b"one", !stream);
        pair.settle(|_| true);
        pair.write(b"two", !stream);
        pair.settle(|_| true);
        assert!(pair.sink().take());
        pair.sink().close();
        assert!(!pair.sink().take(), "nothing behind the close is taken");
        pair.source.close().expect("messages have their ends");
        // The receiver's close is lost, and the sender's comes first.
        let mut lost = false;
        pair.settle(|tpdu| {
            let is_first = matches!(tpdu.body, TpduBody::Close { messages: 0 | 1, .. }) && !lost;
            lost |= is_first;
            !is_first
        });
        while !pair.told.0.iter().any(|event| matches!(event, SourceEvent::Ended(_))) {
            pair.wait();
            pair.settle(|_| true);
        }
        pair.settle(|_| true);
        // TPDUs that have come in sequence, and messages that were taken.
        let other = Counts { tpdus: 2, messages: u64::from(!stream) };
        assert_eq!(pair.told.0.last(), Some(&SourceEvent::Ended(End::Stopped { other })));
        assert!(
            matches!(pair.told.1.last(), Some(SinkEvent::Ended(End::Stopped { .. }))),
            "{:?}",
            pair.told.1
        );
    }
}

/// A reader's finding: eight asks within half a second, and never another one.
#[test]
fn an_idle_circuit_outlives_an_outage_shorter_than_its_silence() {
    let mut pair = Pair::open(&request(FlowControl::Window, false));
    pair.settle(|_| true);
    let (mut first, mut heals) = (None, false);
    let start = pair.now;
    while pair.now.since(start) < PACE.silence * 3 {
        let now = pair.now;
        pair.settle(|tpdu| {
            if tpdu.body == TpduBody::Ask {
                first = first.or(Some(now));
            }
            heals |= first.is_some_and(|first| now.since(first) > PACE.silence.div_down(2));
            first.is_none() || heals
        });
        if pair.wait().is_none() {
            break;
        }
    }
    assert!(heals, "it was cut");
    assert!(!pair.told.0.iter().any(|event| matches!(event, SourceEvent::Ended(_))), "{:?}", pair.told.0);
}

/// TRANSPORT-R75: the peer never reads. The sender stands still, asks now and then, and goes on.
#[test]
fn a_receiver_that_does_not_read_holds_its_sender_and_loses_nothing() {
    let mut pair = Pair::open(&request(FlowControl::Window, false));
    pair.reads = false;
    let message = [9; 3_000];
    let mut written = 0;
    let (start, mut asked) = (pair.now, 0);
    while pair.now.since(start) < PACE.silence * 5 {
        written += pair.source.write(&message[written..], true).octets;
        pair.settle(|tpdu| {
            asked += u32::from(tpdu.body == TpduBody::Ask);
            true
        });
        pair.wait();
    }
    assert!((800..=1_600).contains(&written), "no more than the room of both: {written}");
    assert!((10..1_000).contains(&asked), "{asked}");
    assert_eq!(pair.told.0.len(), 1, "it is no error: {:?}", pair.told);
    pair.reads = true;
    pair.hear();
    let rest = message[written..].to_vec();
    pair.write(&rest, true);
    while pair.lengths.is_empty() {
        pair.settle(|_| true);
        pair.wait();
    }
    assert_eq!(pair.lengths, [3_000]);
    assert_eq!(pair.source.resent(), 0, "a receiver without room is no loss");
}

/// TRANSPORT-R75: the peer dies behind each number of TPDUs.
#[test]
fn a_peer_that_dies_at_any_step_leaves_no_end_behind() {
    for steps in 0..40 {
        for dies in ["sender", "receiver", "wire"] {
            let mut pair = Pair::new(&request(FlowControl::Window, false));
            let (mut passed, mut written) = (0, 0);
            let start = pair.now;
            loop {
                if written < 12 && pair.source.write(&[1; 90], true).ended {
                    written += 1;
                }
                if written == 12 {
                    pair.source.close().expect("each message has its end");
                }
                pair.settle(|tpdu| {
                    passed += 1;
                    let back = matches!(
                        tpdu.body,
                        TpduBody::Ack { .. }
                            | TpduBody::Accept(_)
                            | TpduBody::Closed { .. }
                            | TpduBody::Reset { .. }
                    );
                    passed <= steps || (dies == "sender" && back) || (dies == "receiver" && !back)
                });
                if pair.wait().is_none() {
                    break;
                }
                assert!(pair.now.since(start) < PACE.silence * 10, "{steps} {dies}: it never ends");
            }
            assert!(pair.source.is_over(), "{steps} {dies}");
            assert!(pair.sink.as_ref().is_none_or(Sink::is_over), "{steps} {dies}");
            assert_eq!(pair.listener.half_open(), 0, "{steps} {dies}");
            assert!(matches!(pair.told.0.last(), Some(SourceEvent::Ended(_))), "{steps} {dies}");
        }
    }
}

#[test]
fn a_program_that_dies_ends_the_circuit_at_the_other_end() {
    let mut pair = Pair::open(&request(FlowControl::Open, false));
    pair.source.abort();
    pair.settle(|_| true);
    assert_eq!(pair.told.1, [SinkEvent::Ended(End::Reset(ResetCause::Aborted))]);
    let mut pair = Pair::open(&request(FlowControl::Open, false));
    pair.sink().abort();
    pair.settle(|_| true);
    assert_eq!(pair.told.0[1], SourceEvent::Ended(End::Reset(ResetCause::Aborted)));
    // An end that has begun anew knows nothing, and says so.
    let mut pair = Pair::open(&request(FlowControl::Open, false));
    pair.source.write(b"x", true);
    let mut out = [0; 200];
    let length = pair.source.transmit(pair.now, &mut out).expect("a TPDU");
    let answer = stranger(&Tpdu::parse(&out[..length]).expect("a sound TPDU").0).expect("it is told");
    assert_eq!(stranger(&answer), None, "no answer to an answer");
    pair.source.handle(pair.now, &answer);
    assert_eq!(pair.source.event(), Some(SourceEvent::Ended(End::Reset(ResetCause::Unknown))));
}

/// TRANSPORT-R72, TRANSPORT-R73, TRANSPORT-R74.
#[test]
fn tpdus_that_no_sound_end_sends_do_no_harm_or_end_the_circuit_by_name() {
    let data = |sequence, message, index, last| TpduBody::Data { sequence, message, index, last };
    let mut pair = Pair::open(&request(FlowControl::Open, false));
    let (now, circuit) = (pair.now, pair.source.circuit());
    let to_sink = |pair: &mut Pair, body, octets: &[u8]| {
        pair.sink().handle(now, &Tpdu { to: 0, circuit, body }, octets);
    };
    for sequence in [9, 1 << 40, u64::MAX] {
        to_sink(&mut pair, data(sequence, 0, 0, true), b"beyond");
    }
    assert_eq!(pair.sink().bad(), 3);
    for (cum, cause) in [(1, 1), (u64::MAX, 0), (0, u64::MAX)] {
        let body = TpduBody::Ack { cum, cause, limit: u64::MAX };
        pair.source.handle(now, &Tpdu { to: 0, circuit, body });
    }
    assert_eq!(pair.source.bad(), 3);
    pair.source.handle(
        now,
        &Tpdu { to: 0, circuit: circuit ^ 1, body: TpduBody::Reset { why: ResetCause::Aborted } },
    );
    pair.write(b"still sound", true);
    assert_eq!(pair.read, b"still sound");
    // The same message ends twice.
    to_sink(&mut pair, data(2, 0, 1, true), b"again");
    pair.settle(|_| true);
    assert_eq!(pair.told.1.last(), Some(&SinkEvent::Ended(End::Violated)));
    assert_eq!(pair.told.0.last(), Some(&SourceEvent::Ended(End::Reset(ResetCause::Violation))));
    // More TPDUs than the close has stated, and fewer.
    for (body, octets) in
        [(data(2, 1, 0, true), &b"late"[..]), (TpduBody::Close { tpdus: 0, messages: 0 }, b"")]
    {
        let mut pair = Pair::open(&request(FlowControl::Open, false));
        let circuit = pair.source.circuit();
        pair.reads = false;
        pair.write(b"one", true);
        let close = TpduBody::Close { tpdus: 1, messages: 1 };
        pair.sink().handle(now, &Tpdu { to: 0, circuit, body: close }, &[]);
        pair.sink().handle(now, &Tpdu { to: 0, circuit, body }, octets);
        pair.hear();
        assert_eq!(pair.told.1.last(), Some(&SinkEvent::Ended(End::Violated)), "{body:?}");
    }
}

/// TRANSPORT-5.3.4-8, TRANSPORT-R36: the rate is kept, and the sender sleeps until it is time.
#[test]
fn a_leaky_bucket_holds_the_sender_to_its_rate_and_says_until_when() {
    let mut pair = Pair::open(&request(FlowControl::Bucket, false));
    let (start, mut left) = (pair.now, 100);
    pair.sent.clear();
    while pair.lengths.len() < 100 {
        while left > 0 && pair.source.write(&[1; 68], true).ended {
            left -= 1;
        }
        pair.settle(|_| true);
        if pair.lengths.len() < 100 && pair.source.counts().tpdus > pair.source.counts_taken().tpdus {
            assert_eq!(pair.wait(), Some(Timer::Bucket));
        }
    }
    // TPDUs of 100 octets at 1 Mbit/s take 800 us each; four of them may leave at once.
    assert_eq!(pair.now.since(start), Span::from_micros(800) * 96);
    for first in 0..pair.sent.len() {
        let octets: usize = pair.sent[first..].iter().map(|(_, octets)| octets).sum();
        let span = pair.sent[pair.sent.len() - 1].0.since(pair.sent[first].0);
        assert!(octets as u64 * 8 <= 400 * 8 + span.as_nanos() / 1_000, "σ + ρ·t");
    }
}

fn any_body() -> impl Strategy<Value = TpduBody> {
    let (small, reason) = (0u64..24, prop::sample::select(vec![ResetCause::Unknown, ResetCause::Violation]));
    let counts = (small.clone(), small.clone());
    prop_oneof![
        6 => (1u64..24, 0u32..6, 0u32..4, any::<bool>())
            .prop_map(|(sequence, message, index, last)| TpduBody::Data { sequence, message, index, last }),
        6 => (small.clone(), small.clone(), small)
            .prop_map(|(cum, cause, more)| TpduBody::Ack { cum, cause, limit: cum + more }),
        1 => reason.prop_map(|why| TpduBody::Reset { why }),
        1 => any::<u32>().prop_map(|reason| TpduBody::Decline { reason }),
        1 => counts.clone().prop_map(|(tpdus, messages)| TpduBody::Close { tpdus, messages }),
        1 => counts.prop_map(|(tpdus, messages)| TpduBody::Closed { tpdus, messages }),
        1 => Just(TpduBody::Ask),
    ]
}

proptest! {
    /// TRANSPORT-R70 to R75: an end that says anything makes no machine panic, and no end live for ever.
    #[test]
    fn no_tpdus_in_any_order_break_an_end(
        bodies in prop::collection::vec((any_body(), 0usize..110, 0u64..3_000_000), 1..60),
        flow in prop::sample::select(vec![
            FlowControl::Open,
            FlowControl::Window,
            FlowControl::Bucket,
            FlowControl::PacketPair,
        ]),
    ) {
        let mut pair = Pair::open(&request(flow, false));
        let circuit = pair.source.circuit();
        let mut out = [0; 200];
        for (body, octets, pause) in bodies {
            pair.now += Span::from_nanos(pause);
            let tpdu = Tpdu { to: 0, circuit, body };
            let now = pair.now;
            pair.sink().handle(now, &tpdu, &[1; 110][..octets]);
            pair.source.handle(now, &tpdu);
            pair.source.write(&[2; 150], true);
            pair.source.handle_deadline(now);
            pair.sink().handle_deadline(now);
            pair.hear();
            while pair.source.transmit(now, &mut out).is_some() {}
            while pair.sink().transmit(now, &mut out).is_some() {}
            prop_assert!(pair.source.deadline(now).is_none_or(|(at, _)| at >= now));
        }
        let start = pair.now;
        while pair.wait().is_some() {
            let now = pair.now;
            while pair.source.transmit(now, &mut out).is_some() {}
            while pair.sink().transmit(now, &mut out).is_some() {}
            prop_assert!(now.since(start) < PACE.silence * 10);
        }
    }
}
