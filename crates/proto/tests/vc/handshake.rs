//! Handshakes: a listener and its senders, lost and repeated steps, and ends that are not sound.

use super::{LIMITS, PACE, PEER, Pair, listener, request};
use rota_proto::vc::{End, Listener, Offer, Request, Sink, Source, SourceEvent, Timer, Unsound, WINDOW_MAX};
use rota_units::{BitRate, Instant, Octets};
use rota_wire::{FlowControl, Quality, Refusal, Terms, Tpdu, TpduBody};

/// TRANSPORT-R38, TRANSPORT-R39: whichever step is lost, and however often.
#[test]
fn each_step_of_the_handshake_is_sent_again_until_it_is_answered() {
    let steps: [fn(&TpduBody) -> bool; 4] = [
        |body| matches!(body, TpduBody::Open(_)),
        |body| matches!(body, TpduBody::Accept(_)),
        |body| matches!(body, TpduBody::Confirm(_)),
        |body| matches!(body, TpduBody::Ack { .. }),
    ];
    for (step, is_it) in steps.iter().enumerate() {
        let (mut pair, mut lost) = (Pair::new(&request(FlowControl::Window, false)), 0);
        while pair.told.0.is_empty() {
            pair.settle(|tpdu| {
                lost += u32::from(is_it(&tpdu.body) && lost < 3);
                !is_it(&tpdu.body) || lost == 3
            });
            if pair.told.0.is_empty() {
                assert_eq!(pair.wait(), Some(Timer::Handshake), "step {step}");
            }
        }
        assert_eq!((pair.told.0.len(), pair.listener.half_open()), (1, 0), "step {step}");
        let terms = pair.source.terms();
        assert_eq!((terms.window, terms.tpdu), (8, 100), "the smaller of both");
        pair.write(b"hello", true);
        assert_eq!((&pair.read[..], &pair.lengths[..]), (&b"hello"[..], &[5][..]));
    }
}

/// TRANSPORT-R39: a duplicate of a step opens no second circuit.
#[test]
fn duplicates_of_a_handshake_are_answered_from_state() {
    let mut listener = listener();
    let terms = Terms { serial: 0, ..*Pair::new(&request(FlowControl::Open, false)).source.terms() };
    let open = Tpdu { to: 0, circuit: 0, body: TpduBody::Open(terms) };
    let now = Instant::from_nanos(5);
    let mut ask = |tpdu: &Tpdu| {
        listener.handle(now, PEER, tpdu, true);
        (listener.poll(now), listener.offer())
    };
    let (first, second) = (ask(&open), ask(&open));
    assert_eq!(first, second, "one handshake");
    let Some((PEER, Tpdu { circuit, body: TpduBody::Accept(agreed), to: 5 })) = first.0 else {
        panic!("{first:?}")
    };
    let confirm = Tpdu { to: agreed.from, circuit, body: TpduBody::Confirm(Terms { from: 5, ..agreed }) };
    let offer = ask(&confirm).1.expect("the circuit is open");
    let mut sink = Sink::new(now, &offer, PACE);
    let mut out = [0; 64];
    let mut answers = || {
        let length = sink.transmit(now, &mut out).expect("an answer");
        let tpdu = Tpdu::parse(&out[..length]).expect("a sound TPDU").0;
        sink.handle(now, &confirm, &[]);
        tpdu
    };
    let first = answers();
    assert_eq!(first.body, TpduBody::Ack { cum: 0, cause: 0, limit: 8 });
    assert_eq!(answers(), first, "the third step came again");
    // TRANSPORT-R70: the listener itself opens nothing a second time, also where the circuit is long gone.
    let again = ask(&confirm);
    assert_eq!(again.1, None);
    assert!(matches!(again.0, Some((_, Tpdu { body: TpduBody::Refuse { why: Refusal::Expired, .. }, .. }))));
}

/// TRANSPORT-R70: a hundred thousand first steps that nobody goes on with, forged and stale third steps.
#[test]
fn a_flood_of_half_open_handshakes_takes_no_memory_and_keeps_nobody_out() {
    let mut listener = listener();
    let now = Instant::from_nanos(5);
    let terms = *Pair::new(&request(FlowControl::Open, false)).source.terms();
    let mut last = None;
    for source in 0..100_000 {
        let open = Tpdu { to: 0, circuit: 0, body: TpduBody::Open(Terms { source, ..terms }) };
        listener.handle(now, source, &open, true);
        last = listener.poll(now);
        assert!(listener.half_open() <= LIMITS.half_open);
    }
    // The last of them is sound, and nothing of it was kept.
    let Some((99_999, Tpdu { circuit, body: TpduBody::Accept(agreed), .. })) = last else {
        panic!("{last:?}")
    };
    let confirm = |circuit, terms| Tpdu { to: 0, circuit, body: TpduBody::Confirm(terms) };
    let expired = |listener: &mut Listener, now, peer, tpdu: &Tpdu| {
        listener.handle(now, peer, tpdu, true);
        let answer = listener.poll(now).expect("an answer").1.body;
        matches!(answer, TpduBody::Refuse { why: Refusal::Expired, .. }) && listener.offer().is_none()
    };
    let sound = confirm(circuit, agreed);
    assert!(expired(&mut listener, now, 1, &sound), "another peer's");
    assert!(expired(&mut listener, now, 99_999, &confirm(circuit ^ 1, agreed)), "forged");
    let larger = confirm(circuit, Terms { window: WINDOW_MAX, ..agreed });
    assert!(expired(&mut listener, now, 99_999, &larger), "other terms");
    assert!(expired(&mut listener, now + PACE.silence * 2, 99_999, &sound), "too late");
    listener.handle(now + PACE.silence, 99_999, &sound, true);
    assert!(listener.offer().is_some(), "in the next period it still counts");
    // Half-open handshakes are given up by themselves.
    let mut now = now;
    while let Some((at, Timer::Handshake)) = listener.deadline(now) {
        now = at;
        listener.handle_deadline(now);
        while listener.poll(now).is_some() {}
    }
    assert_eq!(listener.half_open(), 0);
}

/// One station used up the 4,096 serial numbers of a listener, and all others had to begin again.
#[test]
fn a_station_that_opens_thousands_of_circuits_keeps_nobody_out() {
    let mut listener = listener();
    let now = Instant::from_nanos(5);
    let terms = *Pair::new(&request(FlowControl::Open, false)).source.terms();
    let accepted = |listener: &mut Listener, peer: u64, source: u64| {
        let open = Tpdu { to: 0, circuit: 0, body: TpduBody::Open(Terms { source, ..terms }) };
        listener.handle(now, peer, &open, true);
        match listener.poll(now) {
            Some((_, Tpdu { circuit, body: TpduBody::Accept(agreed), .. })) => {
                Tpdu { to: 0, circuit, body: TpduBody::Confirm(agreed) }
            }
            other => panic!("{other:?}"),
        }
    };
    let waits = accepted(&mut listener, 1, 1);
    for source in 2..6_000 {
        let confirm = accepted(&mut listener, 2, source);
        listener.handle(now, 2, &confirm, true);
        assert!(listener.offer().is_some(), "{source}");
        listener.handle(now, 2, &confirm, true);
        assert!(listener.offer().is_none(), "{source} opens one circuit");
        let _ = listener.poll(now);
    }
    listener.handle(now, 1, &waits, true);
    assert!(listener.offer().is_some(), "its number is as good as ever");
}

/// TRANSPORT-R71, TRANSPORT-R76.
#[test]
fn impossible_requests_are_refused_with_the_reason_at_the_right_end() {
    let sound = request(FlowControl::Open, false);
    let open = |request: Request| Source::open(Instant::ZERO, &request, 1, PACE).map(|_| ()).unwrap_err();
    for window in [0, u64::from(WINDOW_MAX) + 1, 1 << 32] {
        assert_eq!(open(Request { window, ..sound }), Unsound::Window(window));
    }
    assert_eq!(open(Request { tpdu: 0, ..sound }), Unsound::TpduSize);
    let bucket = Some((Octets::new(131), BitRate::from_mbit(1)));
    assert_eq!(open(Request { bucket, ..sound }), Unsound::Bucket);
    let deep = Quality { flow: FlowControl::Bucket, ..sound.quality };
    assert_eq!(open(Request { bucket, quality: deep, ..sound }), Unsound::Depth(131, 132));
    // The listener refuses the request of a sender that is not sound.
    let terms = *Pair::new(&sound).source.terms();
    for (terms, expected) in [
        (Terms { window: 0, ..terms }, Refusal::Window),
        (Terms { tpdu: 0, ..terms }, Refusal::TpduSize),
        (Terms { service: 9, ..terms }, Refusal::NoService),
    ] {
        let mut listener = listener();
        let tpdu = Tpdu { to: 0, circuit: 0, body: TpduBody::Open(terms) };
        listener.handle(Instant::ZERO, PEER, &tpdu, true);
        let answer = listener.poll(Instant::ZERO).expect("an answer").1;
        assert_eq!(answer.body, TpduBody::Refuse { source: 77, why: expected });
        let mut source = Source::open(Instant::ZERO, &sound, 77, PACE).expect("a sound request");
        source.handle(Instant::ZERO, &answer);
        assert_eq!(source.event(), Some(SourceEvent::Ended(End::Refused(expected))));
    }
}

#[test]
fn an_offer_names_its_circuit_for_the_peer() {
    let terms = *Pair::new(&request(FlowControl::Open, false)).source.terms();
    let offer = Offer { peer: 1, circuit: 2, terms: Terms { serial: (7 << 32) + 3, ..terms } };
    assert_eq!(offer.number(), 3);
}
