use super::ends::accepted;
use super::*;

/// A request that looks for another path for 100 ms, for messages of up to 2,000 octets in the end.
fn lasting() -> ChannelRequest {
    ChannelRequest { reroute: ms(100), room: Octets::new(2_000), ..ask(B) }
}

fn sized(octets: u64) -> ChannelRequest {
    ChannelRequest { messages: Messages { s_max: Octets::new(octets), ..lasting().messages }, ..lasting() }
}

/// A change as A sends it, towards the destination of the request.
fn change(attempt: u16, request: ChannelRequest) -> Vec<u8> {
    let records = record::written(&[record(A)], RCAP_OCTETS_MAX);
    let nodes = RcapRecords::parse(&records, 1).unwrap();
    let wire =
        record::Demand::of(at(0), request).unwrap().to_wire(at(0), ms(2_000), nodes, Default::default());
    let wire = RcapRequest { again: Some(anew(true, NodeId::UNKNOWN)), ..wire };
    octets(of(1, attempt), RcapBody::EstablishRequest(wire))
}

/// Channel 1 is received at B.
fn received() -> Rcap {
    let mut rcap = b();
    rcap.on_message(at(1), A, &request_of(of(1, 1), lasting(), &[A], ms(50))).unwrap();
    rcap.answer(at(2), key_of(1), true).unwrap();
    drain(&mut rcap);
    rcap
}

fn closes(rcap: &mut Rcap, attempt: u16, cause: CloseCause, node: NodeId) -> Vec<RcapOutput> {
    let close = RcapClose { cause, node };
    rcap.on_message(at(30), A, &octets(of(1, attempt), RcapBody::CloseForward(close))).unwrap();
    drain(rcap)
}

fn test_of(rcap: &mut Rcap, message: &[u8]) -> Option<RcapTest> {
    rcap.on_message(at(20), A, message).unwrap();
    denial(&drain(rcap)).map(|denied| denied.test)
}

/// Of two contracts the one that stays is the channel, and its program hears of no end.
#[test]
fn a_receiver_has_both_contracts_until_one_of_them_is_closed() {
    let mut rcap = received();
    rcap.on_message(at(20), A, &change(2, sized(1_500))).unwrap();
    let outputs = drain(&mut rcap);
    let Some(RcapEvent::Changing { entry, request, .. }) = event(&outputs) else { panic!("{outputs:?}") };
    let newer = *entry;
    assert_eq!(request.messages.s_max, Octets::new(1_500));
    let installed = outputs.iter().find_map(|output| match output {
        RcapOutput::Install { channel, .. } => Some(channel),
        _ => None,
    });
    // Two packets a message, of 120 ms: D of both contracts. Clocks add some.
    assert!(installed.is_some_and(|channel| (24..=28).contains(&channel.buffers)), "{installed:?}");
    assert_eq!((sent(&outputs), rcap.entries().count()), (vec![(A, RcapKind::EstablishAccept)], 2));
    let held = installed.map_or(0, |channel| channel.buffers * channel.octets.get());
    assert_eq!(rcap.buffer_octets(), held, "room for what may come too early");
    let outputs = closes(&mut rcap, 1, CloseCause::ReservationLost, A);
    assert_eq!(event(&outputs), Some(&RcapEvent::ChangedHere { key: key_of(1), entry: newer }));
    assert_eq!((sent(&outputs), rcap.buffer_octets()), (vec![], 0), "all packets before have come");
    let outputs = closes(&mut rcap, 2, CloseCause::Finished, A);
    assert!(matches!(event(&outputs), Some(RcapEvent::Closed { sending: false, .. })), "{outputs:?}");

    let mut rcap = received();
    rcap.on_message(at(20), A, &change(2, sized(1_500))).unwrap();
    drain(&mut rcap);
    let outputs = closes(&mut rcap, 2, CloseCause::NoAnswer, A);
    assert_eq!((event(&outputs), rcap.entries().count(), rcap.buffer_octets()), (None, 1, 0));
    // The change that did not come about has used its attempt.
    assert_eq!(test_of(&mut rcap, &change(2, sized(1_500))), None);
    rcap.on_message(at(40), A, &change(3, sized(500))).unwrap();
    assert!(matches!(event(&drain(&mut rcap)), Some(RcapEvent::Changing { .. })));
    // Its program ends both.
    rcap.close(at(50), key_of(1), CloseCause::ReceiverDied).unwrap();
    let outputs = drain(&mut rcap);
    assert_eq!(sent(&outputs), [(A, RcapKind::CloseReverse), (A, RcapKind::CloseReverse)]);
    let closed = |output: &&RcapOutput| matches!(output, RcapOutput::Event(RcapEvent::Closed { .. }));
    assert_eq!((outputs.iter().filter(closed).count(), rcap.entries().count()), (1, 0));
}

#[test]
fn a_change_that_the_receivers_memory_does_not_hold_is_denied_as_room() {
    let mut rcap = received();
    let larger = ChannelRequest { room: Octets::new(3_000), ..sized(2_001) };
    assert_eq!(test_of(&mut rcap, &change(2, larger)), Some(RcapTest::Room));
    let dense = Messages { x_min: ms(1), x_ave: ms(1), interval: ms(1), ..lasting().messages };
    let dense = ChannelRequest { messages: dense, ..lasting() };
    assert_eq!(test_of(&mut rcap, &change(3, dense)), Some(RcapTest::Room), "62 units, and memory for 10");
    rcap.state_memory(key_of(1), 62);
    assert_eq!(test_of(&mut rcap, &change(4, dense)), None);
    // A channel that is not here, and one whose path has failed.
    let mut rcap = b();
    assert_eq!(test_of(&mut rcap, &change(2, sized(400))), Some(RcapTest::ReceiverRefused));
    let mut rcap = received();
    rcap.neighbour_lost(at(10), A);
    rcap.neighbour_up(at(11), A);
    drain(&mut rcap);
    assert_eq!(test_of(&mut rcap, &change(2, sized(400))), Some(RcapTest::NeighbourLost));
}

/// From 20 to 19 ms was too close for a memory without a spare unit, and no number said so.
#[test]
fn a_receivers_memory_has_a_spare_quarter_and_its_refusal_counts_units() {
    let closer = Messages { x_min: ms(9), x_ave: ms(9), interval: ms(9), ..lasting().messages };
    let mut rcap = received();
    assert_eq!(test_of(&mut rcap, &change(2, ChannelRequest { messages: closer, ..lasting() })), None);
    let mut rcap = received();
    let goal = Goal { delay: ms(100), jitter: None };
    rcap.on_message(at(20), A, &change(2, ChannelRequest { goal, ..lasting() })).unwrap();
    let denied = denial(&drain(&mut rcap)).unwrap();
    assert_eq!((denied.test, denied.needed, denied.most), (RcapTest::Room, 12, 10));
    assert_eq!(denied.nearest_delay_ns, ms(80).as_nanos());
}

/// The source had gone over to the new contract when its path failed: the receiver takes that one.
#[test]
fn a_path_that_fails_behind_a_change_comes_again_by_the_new_contract() {
    let mut rcap = received();
    let outputs = closes(&mut rcap, 1, CloseCause::ReservationLost, A);
    assert!(matches!(event(&outputs), Some(RcapEvent::Broken { sending: false, .. })), "{outputs:?}");
    let records = record::written(&[record(A)], RCAP_OCTETS_MAX);
    let nodes = RcapRecords::parse(&records, 1).unwrap();
    let wire =
        record::Demand::of(at(0), sized(1_500)).unwrap().to_wire(at(0), ms(50), nodes, Default::default());
    let wire = RcapRequest { again: Some(anew(false, C)), ..wire };
    rcap.on_message(at(40), A, &octets(of(1, 4), RcapBody::EstablishRequest(wire))).unwrap();
    let outputs = drain(&mut rcap);
    let Some(RcapEvent::Again { request, .. }) = event(&outputs) else { panic!("{outputs:?}") };
    assert_eq!(request.messages.s_max, Octets::new(1_500));
}

/// Of the two contracts quotas count the one that stays.
#[test]
fn a_change_counts_once_for_its_user() {
    let quota = Quota { channels: 1, octets_a_second: 150_000 };
    let mut rcap = machine(RcapLimits { quota, ..RcapLimits::default() });
    let to_c = |octets| ChannelRequest { destination: C, ..sized(octets) };
    rcap.on_message(at(1), A, &request_of(of(1, 1), to_c(1_000), &[A], ms(2_000))).unwrap();
    let entry = reserved(&drain(&mut rcap)).expect("it is within the quota");
    rcap.reserved(at(2), entry, hop());
    rcap.on_message(at(3), C, &accept(of(1, 1), &[record(A), own()])).unwrap();
    drain(&mut rcap);
    rcap.relaxed(at(4), entry, offer(), Vec::new());
    drain(&mut rcap);
    assert_eq!(test_of(&mut rcap, &change(2, to_c(1_600))), Some(RcapTest::QuotaReserved));
    rcap.on_message(at(20), A, &change(3, to_c(1_400))).unwrap();
    assert!(reserved(&drain(&mut rcap)).is_some(), "beside the one that stands");
    rcap.on_message(at(21), A, &request_of(of(2, 1), to_c(100), &[A], ms(9))).unwrap();
    assert_eq!(denial(&drain(&mut rcap)).map(|denied| denied.test), Some(RcapTest::QuotaChannels));
}

/// A change that no hop can have in the place of the open contract is asked for once more, beside it. The
/// program hears the first refusal, unless that says only that a share does not grow.
#[test]
fn a_change_is_asked_for_in_the_place_of_the_contract_and_then_beside_it() {
    for (first, told) in [(RcapTest::PathDelay, RcapTest::PathDelay), (RcapTest::Unsupported, RcapTest::Load)]
    {
        let mut rcap = b();
        let (channel, open, _) = accepted(&mut rcap);
        rcap.relaxed(at(4), open, offer(), Vec::new());
        drain(&mut rcap);
        rcap.change(at(5), channel, ask(C)).unwrap();
        let mut asked = |place: bool| {
            rcap.handle_deadline(at(6));
            let outputs = drain(&mut rcap);
            let found = outputs.iter().find_map(|output| match output {
                RcapOutput::Reserve { entry, former, .. } => Some((*entry, former.map(|of| of.entry))),
                _ => None,
            });
            let (entry, former) = found.expect("the medium is asked");
            assert_eq!(former, Some(open).filter(|_| place));
            let test = if place { first } else { RcapTest::Load };
            rcap.denied(at(6), entry, HopDenied::new(test, ms(3)));
        };
        asked(true);
        asked(false);
        let outputs = drain(&mut rcap);
        let Some(RcapEvent::NotChanged { denied, .. }) = event(&outputs) else { panic!("{outputs:?}") };
        assert_eq!(denied.test, told);
        rcap.audit();
    }
}

/// Units by the old contract may take its whole bound while those by a quicker one come.
#[test]
fn a_receivers_memory_holds_the_units_of_the_longer_bound_of_both_contracts() {
    let messages = Messages { x_min: ms(6), x_ave: ms(6), interval: ms(6), ..lasting().messages };
    let quicker = ChannelRequest { messages, goal: Goal { delay: ms(30), jitter: None }, ..lasting() };
    let mut rcap = received();
    rcap.on_message(at(20), A, &change(2, quicker)).unwrap();
    let denied = denial(&drain(&mut rcap)).expect("60 ms of units each 6 ms");
    assert_eq!((denied.test, denied.needed, denied.most), (RcapTest::Room, 12, 10));
    rcap.state_memory(key_of(1), 12);
    assert_eq!(test_of(&mut rcap, &change(3, quicker)), None);
}

/// Its first path stays, and is one of two.
#[test]
fn a_second_path_counts_for_its_user_beside_the_first_one() {
    for (channels, test) in [(1, Some(RcapTest::QuotaChannels)), (2, None)] {
        let quota = Quota { channels, octets_a_second: 1_000_000 };
        let mut rcap = machine(RcapLimits { quota, ..RcapLimits::default() });
        let with_second = ChannelRequest { has_second: true, ..lasting() };
        rcap.on_message(at(1), A, &request_of(of(1, 1), with_second, &[A], ms(50))).unwrap();
        rcap.answer(at(2), key_of(1), true).unwrap();
        drain(&mut rcap);
        let records = record::written(&[record(A), record(C)], RCAP_OCTETS_MAX);
        let nodes = RcapRecords::parse(&records, 2).unwrap();
        let wire = record::Demand::of(at(0), with_second).unwrap();
        let wire = wire.to_wire(at(0), ms(50), nodes, Default::default());
        let passed = RcapRoute::written(&[D]);
        let apart = RcapRoute::parse(&passed).unwrap();
        let wire = RcapRequest { again: Some(RcapAgain { apart, ..anew(false, NodeId::UNKNOWN) }), ..wire };
        rcap.on_message(at(20), C, &octets(of(1, 2), RcapBody::EstablishRequest(wire))).unwrap();
        assert_eq!(denial(&drain(&mut rcap)).map(|denied| denied.test), test, "{channels}");
    }
}
