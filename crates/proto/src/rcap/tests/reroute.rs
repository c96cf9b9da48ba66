use super::*;

/// A request for a channel to B that looks for another path for 100 ms.
fn lasting() -> ChannelRequest {
    ChannelRequest { reroute: ms(100), ..ask(B) }
}

/// The request of an attempt, as A sends it after the path of the one before has failed.
fn again(attempt: u16, request: ChannelRequest) -> Vec<u8> {
    let records = record::written(&[record(A)], RCAP_OCTETS_MAX);
    let nodes = RcapRecords::parse(&records, 1).unwrap();
    let wire = record::Demand::of(at(0), request).unwrap().to_wire(at(0), ms(50), nodes, Default::default());
    let wire = RcapRequest { again: Some(anew(false, C)), ..wire };
    octets(of(1, attempt), RcapBody::EstablishRequest(wire))
}

/// Channel 1 is received at B, and has lost the session with A at 10 ms.
fn broken() -> Rcap {
    let mut rcap = b();
    rcap.on_message(at(1), A, &request_of(of(1, 1), lasting(), &[A], ms(50))).unwrap();
    drain(&mut rcap);
    rcap.answer(at(2), key_of(1), true).unwrap();
    drain(&mut rcap);
    rcap.neighbour_lost(at(10), A);
    let outputs = drain(&mut rcap);
    let (sending, cause) = (false, CloseCause::PeerGone);
    assert_eq!(event(&outputs), Some(&RcapEvent::Broken { key: key_of(1), sending, cause, node: A }));
    rcap.neighbour_up(at(11), A);
    rcap.unregister(SERVICE);
    rcap
}

fn closed(outputs: &[RcapOutput]) -> Option<(CloseCause, NodeId)> {
    match event(outputs) {
        Some(RcapEvent::Closed { sending: false, cause, node, .. }) => Some((*cause, *node)),
        _ => None,
    }
}

/// TENET-2-9: nobody listens any more, and the program that has the channel gets it again.
#[test]
fn a_request_that_comes_again_goes_to_the_program_that_has_the_channel() {
    let mut rcap = broken();
    rcap.on_message(at(20), A, &again(1, lasting())).unwrap();
    assert_eq!(drain(&mut rcap), [], "the attempt that has failed");
    let (more, room) = (Messages { s_max: Octets::new(2_000), ..lasting().messages }, Octets::new(2_000));
    rcap.on_message(at(20), A, &again(2, ChannelRequest { messages: more, room, ..lasting() })).unwrap();
    assert_eq!(denial(&drain(&mut rcap)).map(|denied| denied.test), Some(RcapTest::Garbage), "another one");
    rcap.on_message(at(21), A, &again(3, lasting())).unwrap();
    let outputs = drain(&mut rcap);
    assert!(matches!(event(&outputs), Some(RcapEvent::Again { .. })), "{outputs:?}");
    assert_eq!(sent(&outputs), [(A, RcapKind::EstablishAccept)]);
    assert_eq!((rcap.entries().count(), rcap.deadline()), (1, Instant::FAR));
    // The accept came too late for its source: the program keeps the first cause, and its end.
    let close = RcapClose { cause: CloseCause::NoAnswer, node: A };
    rcap.on_message(at(30), A, &octets(of(1, 3), RcapBody::CloseForward(close))).unwrap();
    drain(&mut rcap);
    rcap.handle_deadline(rcap.deadline());
    assert_eq!(closed(&drain(&mut rcap)), Some((CloseCause::PeerGone, A)));
}

/// It ends by itself, and by its program; then the other path is refused, whoever listens.
#[test]
fn an_end_that_is_kept_ends_in_time_or_with_its_program() {
    let mut rcap = broken();
    let until = at(10) + ms(100) + ms(2_000);
    assert_eq!(rcap.deadline(), until);
    rcap.handle_deadline(until);
    assert_eq!(closed(&drain(&mut rcap)), Some((CloseCause::PeerGone, A)));
    let mut rcap = broken();
    rcap.close(at(20), key_of(1), CloseCause::ReceiverDied).unwrap();
    assert_eq!(closed(&drain(&mut rcap)), Some((CloseCause::ReceiverDied, B)));
    assert_eq!(rcap.deadline(), Instant::FAR);
    rcap.register(SERVICE, 78).unwrap();
    rcap.on_message(at(21), A, &again(2, lasting())).unwrap();
    assert_eq!(denial(&drain(&mut rcap)).map(|denied| denied.test), Some(RcapTest::ReceiverRefused));
}

/// A node that has the channel still gives it up for the attempt that comes again.
#[test]
fn an_open_attempt_gives_way_to_the_one_that_comes_again() {
    let mut rcap = b();
    rcap.on_message(at(1), A, &request_of(of(1, 1), lasting(), &[A], ms(50))).unwrap();
    rcap.answer(at(2), key_of(1), true).unwrap();
    drain(&mut rcap);
    rcap.on_message(at(5), A, &again(2, lasting())).unwrap();
    let outputs = drain(&mut rcap);
    assert!(matches!(outputs[0], RcapOutput::Release { .. }), "{outputs:?}");
    assert_eq!(sent(&outputs), [(A, RcapKind::CloseReverse), (A, RcapKind::EstablishAccept)]);
    assert_eq!(rcap.entries().count(), 1);
    // A channel that asked for no other path ends at once, whatever the cause.
    let mut rcap = b();
    rcap.on_message(at(1), A, &request_of(of(1, 1), ask(B), &[A], ms(50))).unwrap();
    rcap.answer(at(2), key_of(1), true).unwrap();
    rcap.neighbour_lost(at(10), A);
    assert_eq!(closed(&drain(&mut rcap)[2..]), Some((CloseCause::PeerGone, A)));
}

/// A path that comes again with a shorter X_min met no test of the memory that its program has.
#[test]
fn a_shorter_period_that_the_memory_does_not_hold_is_no_other_path() {
    let mut rcap = broken();
    let x = ms(1);
    let dense = Messages { x_min: x, x_ave: x, interval: x, ..lasting().messages };
    rcap.on_message(at(20), A, &again(2, ChannelRequest { messages: dense, ..lasting() })).unwrap();
    assert_eq!(denial(&drain(&mut rcap)).map(|denied| denied.test), Some(RcapTest::Room), "62 units");
    rcap.on_message(at(21), A, &again(3, lasting())).unwrap();
    assert!(matches!(event(&drain(&mut rcap)), Some(RcapEvent::Again { .. })));
}
