//! The two ends: the calls of programs and their outcomes.

use super::*;

fn establish(rcap: &mut Rcap) -> (ChannelId, EntryId) {
    let channel = numbered(rcap, ask(C)).unwrap();
    (channel, reserved(&drain(rcap)).expect("the medium is asked"))
}

fn busy(rcap: &mut Rcap, now: u64, entry: EntryId, test: RcapTest, tentative: bool, nearest: Option<u64>) {
    let nearest_octets = nearest.map(Octets::new);
    let denied = HopDenied { nearest_octets, others_tentative: tentative, ..HopDenied::new(test, ms(1)) };
    rcap.denied(at(now), entry, denied);
}

fn denied_by_c(rcap: &mut Rcap, now: u64, of: RcapChannel, standing: RcapStanding) {
    let denied = RcapDenied { standing, ..io::simply(C, RcapTest::Load) };
    rcap.on_message(at(now), C, &octets(of, RcapBody::EstablishDenied(denied))).unwrap();
}

/// A channel to C that C has accepted, and has yet to be relaxed here.
pub(super) fn accepted(rcap: &mut Rcap) -> (ChannelId, EntryId, Vec<RcapOutput>) {
    let (channel, entry) = establish(rcap);
    rcap.reserved(at(2), entry, hop());
    drain(rcap);
    let of = RcapChannel { origin: B, channel, attempt: 1 };
    rcap.on_message(at(3), C, &accept(of, &[own()])).unwrap();
    (channel, entry, drain(rcap))
}

/// TENET-3.1-18: the source's program has promise and path.
#[test]
fn a_source_opens_with_the_promise_of_the_whole_path() {
    let mut rcap = b();
    let (channel, entry, outputs) = accepted(&mut rcap);
    let [RcapOutput::Relax { delay, .. }] = outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(delay, Span::from_micros(59_988 - 20), "one node has all of D_max on the slowest clock");
    rcap.relaxed(at(4), entry, Offer { delay, ..offer() }, b"t".to_vec());
    let outputs = drain(&mut rcap);
    let Some(RcapEvent::Opened { promise, nodes, .. }) = event(&outputs) else { panic!("{outputs:?}") };
    assert_eq!((promise.delay, promise.jitter), (ms(60), Span::from_micros(59_988 - 20 - 100 + 10 + 24)));
    assert_eq!((promise.octets, &nodes[0].terms[..]), (Octets::new(1_000), &b"t"[..]));
    let key = ChannelKey { origin: B, channel };
    assert_eq!(rcap.close(at(5), key, CloseCause::SenderDied), Ok(()));
    let outputs = drain(&mut rcap);
    assert_eq!(sent(&outputs), [(C, RcapKind::CloseForward)]);
    let cause = CloseCause::SenderDied;
    let (sending, denied) = (true, None);
    let closed = RcapEvent::Closed { key, entry, sending, cause, node: B, denied };
    assert_eq!(event(&outputs), Some(&closed));
    assert_eq!(rcap.close(at(6), key, cause), Err(RcapCallError::NoChannel));
}

/// TENET-7-3: a booking was over while its last messages were on their way, or before its source closed.
#[test]
fn a_channel_that_ends_is_charged_until_its_messages_have_come_and_its_source_has_closed() {
    let mut rcap = b();
    let life = (ms(10_000), Some(ms(20_000)));
    numbered(&mut rcap, ChannelRequest { life, ..ask(C) }).unwrap();
    let outputs = drain(&mut rcap);
    let [RcapOutput::Reserve { life, .. }] = outputs[..] else { panic!("{outputs:?}") };
    // Clocks that differ by 200 ppm are apart by so much in 10 s, and in 20 s.
    let apart = [2_000_401, 4_000_801].map(Span::from_nanos);
    assert_eq!(life.from, at(1 + 10_000).minus(RcapLimits::LEASE_MAX + apart[0]));
    // D_max to leave and D_max to arrive, and three seconds to count and to close.
    assert_eq!(life.until, at(1 + 20_000) + apart[1] + ms(60) * 2 + ms(3_000));
}

/// A delay of 100,000 s was refused for the packets that may wait within it.
#[test]
fn a_delay_too_long_for_the_buffers_of_the_way_is_shortened() {
    let mut rcap = b();
    let (channel, entry) = establish(&mut rcap);
    rcap.reserved(at(2), entry, hop());
    drain(&mut rcap);
    let deny = |rcap: &mut Rcap, attempt, denied: RcapDenied| {
        let of = RcapChannel { origin: B, channel, attempt };
        rcap.on_message(at(3), C, &octets(of, RcapBody::EstablishDenied(denied))).unwrap();
        let mut outputs = drain(rcap);
        rcap.handle_deadline(at(3));
        outputs.extend(drain(rcap));
        outputs
    };
    let full = io::counted(C, RcapTest::PortBuffer, (9, 6));
    let full = RcapDenied { nearest_delay_ns: ms(40).as_nanos(), ..full };
    let outputs = deny(&mut rcap, 1, full);
    let entry = reserved(&outputs).expect("it is asked for again");
    rcap.reserved(at(3), entry, hop());
    let asked = drain(&mut rcap).iter().find_map(|output| match output {
        RcapOutput::Send { message, .. } => match RcapMessage::parse(message).unwrap().body {
            RcapBody::EstablishRequest(request) => Some(request.delay_max_ns),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(asked, Some(ms(40).as_nanos()));
    // No path keeps so short a delay: the buffers are the reason.
    let late = RcapDenied { nearest_delay_ns: ms(50).as_nanos(), ..io::simply(C, RcapTest::PathDelay) };
    let outputs = deny(&mut rcap, 2, late);
    let Some(RcapEvent::Refused { denied, .. }) = event(&outputs) else { panic!("{outputs:?}") };
    assert_eq!(*denied, RcapDenied { nearest_delay_ns: 0, ..full });
}

/// A program that asked for changes without end would have ended its node: attempts have 16 bits.
#[test]
fn a_channel_whose_attempts_are_used_up_changes_no_more() {
    let mut rcap = b();
    let (channel, entry, _) = accepted(&mut rcap);
    rcap.relaxed(at(4), entry, offer(), Vec::new());
    drain(&mut rcap);
    rcap.ledger.get_mut(entry).unwrap().newest = call::ATTEMPTS_MAX;
    rcap.change(at(5), channel, ask(C)).unwrap();
    for _ in 0..2 {
        rcap.handle_deadline(at(6));
        let asked = reserved(&drain(&mut rcap)).expect("the medium is asked");
        busy(&mut rcap, 6, asked, RcapTest::Load, false, None);
    }
    let outputs = drain(&mut rcap);
    assert!(matches!(event(&outputs), Some(RcapEvent::NotChanged { .. })), "{outputs:?}");
    assert_eq!(rcap.change(at(7), channel, ask(C)), Err(RcapCallError::Attempts));
    assert_eq!(rcap.close(at(8), ChannelKey { origin: B, channel }, CloseCause::Finished), Ok(()));
}

/// TENET-R10: a random time that grows, and no more attempts than allowed, all within the patience.
#[test]
fn a_race_is_tried_again_after_a_random_time_and_a_final_denial_is_not() {
    let mut rcap = machine(RcapLimits { attempts: 4, ..RcapLimits::default() });
    let (channel, mut entry) = establish(&mut rcap);
    let (mut now, mut waits) = (2, Vec::new());
    for attempt in 1..=4 {
        rcap.reserved(at(now), entry, hop());
        drain(&mut rcap);
        denied_by_c(&mut rcap, now, RcapChannel { origin: B, channel, attempt }, RcapStanding::RaceLast);
        let outputs = drain(&mut rcap);
        if attempt == 4 {
            let Some(RcapEvent::Refused { denied, attempts: 4, .. }) = event(&outputs) else { panic!() };
            assert_eq!(denied.test, RcapTest::Load);
            break;
        }
        assert_eq!(event(&outputs), None);
        let due = rcap.deadline();
        waits.push(due.since(at(now)).as_nanos() / 1_000_000);
        now = due.as_nanos() / 1_000_000 + 1;
        rcap.handle_deadline(at(now));
        entry = reserved(&drain(&mut rcap)).expect("another attempt");
    }
    for (wait, window) in waits.iter().zip([20, 40, 80]) {
        assert!((window..2 * window).contains(wait), "{waits:?}: the other one goes first");
    }
    assert_eq!((rcap.counters().retries, rcap.deadline()), (3, Instant::FAR));
    let (channel, entry) = establish(&mut rcap);
    rcap.reserved(at(now), entry, hop());
    drain(&mut rcap);
    denied_by_c(&mut rcap, now, RcapChannel { origin: B, channel, attempt: 1 }, RcapStanding::Final);
    assert!(matches!(event(&drain(&mut rcap)), Some(RcapEvent::Refused { attempts: 1, .. })));
}

/// Of two requests one goes first, in the same order at each node.
#[test]
fn the_refusal_of_a_race_says_who_goes_first() {
    let mut standings = Vec::new();
    for (standing, refused) in [(1, 2), (2, 1)] {
        let mut rcap = b();
        rcap.on_message(at(1), A, &request(standing, 1)).unwrap();
        let first = reserved(&drain(&mut rcap)).unwrap();
        rcap.reserved(at(1), first, hop());
        drain(&mut rcap);
        rcap.on_message(at(2), A, &request(refused, 1)).unwrap();
        let second = reserved(&drain(&mut rcap)).unwrap();
        busy(&mut rcap, 3, second, RcapTest::Load, false, None);
        standings.push(denial(&drain(&mut rcap)).unwrap().standing);
    }
    assert_eq!(standings, [RcapStanding::RaceLast, RcapStanding::RaceFirst]);
    let mut rcap = b();
    open(&mut rcap);
    for (tentative, standing) in [(false, RcapStanding::Final), (true, RcapStanding::RaceLast)] {
        rcap.on_message(at(2), A, &request(5 + u64::from(tentative), 1)).unwrap();
        let second = reserved(&drain(&mut rcap)).unwrap();
        busy(&mut rcap, 3, second, RcapTest::RetherShare, tentative, None);
        assert_eq!(denial(&drain(&mut rcap)).unwrap().standing, standing, "an open channel stays");
    }
}

#[test]
fn no_attempt_begins_behind_the_patience() {
    let mut rcap = b();
    let (channel, entry) = establish(&mut rcap);
    rcap.reserved(at(2), entry, hop());
    drain(&mut rcap);
    denied_by_c(&mut rcap, 2_000, RcapChannel { origin: B, channel, attempt: 1 }, RcapStanding::RaceLast);
    assert!(matches!(event(&drain(&mut rcap)), Some(RcapEvent::Refused { attempts: 1, .. })));
    assert_eq!(rcap.deadline(), Instant::FAR);
}

#[test]
fn packets_become_as_small_as_a_hop_needs() {
    let mut rcap = b();
    let (_, entry) = establish(&mut rcap);
    busy(&mut rcap, 2, entry, RcapTest::Packet, false, Some(400));
    assert_eq!(event(&drain(&mut rcap)), None);
    rcap.handle_deadline(rcap.deadline());
    let outputs = drain(&mut rcap);
    let [RcapOutput::Reserve { entry, ask, .. }] = outputs[..] else { panic!("{outputs:?}") };
    assert_eq!((ask.octets, ask.octets_least), (Octets::new(334), Octets::new(1)), "three for 1,000 octets");
    busy(&mut rcap, 3, entry, RcapTest::Packet, false, Some(400));
    assert!(matches!(event(&drain(&mut rcap)), Some(RcapEvent::Refused { attempts: 2, .. })), "no smaller");
}

#[test]
fn a_call_that_cannot_be_is_an_error_and_a_closed_one_has_an_outcome() {
    let mut rcap = machine(RcapLimits { calls: 2, listeners: 1, ..RcapLimits::default() });
    let messages = Messages { x_min: Span::ZERO, ..ask(C).messages };
    let bad = |request| numbered(&mut b(), request).unwrap_err();
    assert!(matches!(bad(ChannelRequest { messages, ..ask(C) }), RcapCallError::Traffic(_)));
    assert_eq!(bad(ask(B)), RcapCallError::OwnNode);
    assert_eq!(bad(ask(NodeId::UNKNOWN)), RcapCallError::Field("to"));
    assert_eq!(bad(ChannelRequest { shortest: Octets::new(1_001), ..ask(C) }), RcapCallError::Field("smin"));
    assert_eq!(bad(ChannelRequest { late_most: Chance::ONE, ..ask(C) }), RcapCallError::Field("timely"));
    let goal = Goal { delay: Span::ZERO, jitter: None };
    assert_eq!(bad(ChannelRequest { goal, ..ask(C) }), RcapCallError::Field("delay"));
    assert_eq!(rcap.register(SERVICE, 1), Err(RcapCallError::ServiceTaken(SERVICE)));
    assert_eq!(rcap.register(6, 1), Err(RcapCallError::Full));
    let (channel, entry) = establish(&mut rcap);
    rcap.reserved(at(2), entry, hop());
    let (second, _) = establish(&mut rcap);
    assert_eq!(numbered(&mut rcap, ask(C)), Err(RcapCallError::Full));
    drain(&mut rcap);
    for (channel, told) in [(channel, vec![(C, RcapKind::CloseForward)]), (second, vec![])] {
        rcap.close(at(3), ChannelKey { origin: B, channel }, CloseCause::Finished).unwrap();
        let outputs = drain(&mut rcap);
        let Some(RcapEvent::Refused { denied, .. }) = event(&outputs) else { panic!("{outputs:?}") };
        assert_eq!((denied.test, sent(&outputs)), (RcapTest::Closed, told));
    }
    // One that waits for its next attempt.
    let (channel, entry) = establish(&mut rcap);
    busy(&mut rcap, 4, entry, RcapTest::Load, true, None);
    drain(&mut rcap);
    rcap.close(at(5), ChannelKey { origin: B, channel }, CloseCause::Finished).unwrap();
    assert!(matches!(event(&drain(&mut rcap)), Some(RcapEvent::Refused { .. })));
    assert_eq!((rcap.deadline(), rcap.calls.len()), (Instant::FAR, 0));
}

/// A request for B itself has come from A.
fn incoming(rcap: &mut Rcap, channel: u64) -> Vec<RcapOutput> {
    rcap.on_message(at(1), A, &request_of(of(channel, 1), ask(B), &[A], ms(2_000))).unwrap();
    drain(rcap)
}

/// TENET-4.1-3 to TENET-4.1-6.
#[test]
fn a_receiver_is_asked_and_its_answer_is_final() {
    let mut rcap = b();
    let outputs = incoming(&mut rcap, 1);
    let Some(RcapEvent::Incoming { key, listener: 77, best, request, .. }) = event(&outputs) else {
        panic!()
    };
    assert_eq!((*key, *best), (key_of(1), Span::from_nanos(5_021_005)));
    assert_eq!(*request, ask(B));
    let key = *key;
    rcap.answer(at(2), key, true).unwrap();
    let outputs = drain(&mut rcap);
    let RcapOutput::Install { channel, .. } = &outputs[0] else { panic!("{outputs:?}") };
    assert_eq!((channel.label_in, channel.way, channel.buffers), (Some(1), None, 0));
    assert_eq!(sent(&outputs), [(A, RcapKind::EstablishAccept)]);
    assert_eq!(rcap.answer(at(3), key, false), Err(RcapCallError::NoChannel));
    rcap.unregister(SERVICE);
    assert_eq!(denial(&incoming(&mut rcap, 2)).unwrap().test, RcapTest::NoListener);
    assert_eq!(rcap.entries().count(), 1, "channels that are there go on");
    rcap.close(at(4), key, CloseCause::ReceiverClosed).unwrap();
    let outputs = drain(&mut rcap);
    assert_eq!(sent(&outputs), [(A, RcapKind::CloseReverse)]);
    assert!(matches!(event(&outputs), Some(RcapEvent::Closed { sending: false, .. })));
}

#[test]
fn a_receiver_that_refuses_or_says_nothing_is_named() {
    let mut rcap = machine(RcapLimits { incoming: 2, ..RcapLimits::default() });
    incoming(&mut rcap, 1);
    incoming(&mut rcap, 2);
    assert_eq!(denial(&incoming(&mut rcap, 3)).unwrap().test, RcapTest::ReceiverSilent, "two wait already");
    rcap.answer(at(2), key_of(1), false).unwrap();
    let outputs = drain(&mut rcap);
    assert_eq!((denial(&outputs).unwrap().test, event(&outputs)), (RcapTest::ReceiverRefused, None));
    assert_eq!(rcap.deadline(), at(1_001), "a second, not the whole lease");
    rcap.handle_deadline(at(1_001));
    let outputs = drain(&mut rcap);
    assert_eq!(denial(&outputs).unwrap().test, RcapTest::ReceiverSilent);
    assert!(matches!(event(&outputs), Some(RcapEvent::IncomingGone { .. })));
    assert_eq!(rcap.answer(at(1_002), key_of(2), true), Err(RcapCallError::NoChannel));
    let goal = Goal { delay: ms(4), jitter: None };
    let hasty = request_of(of(9, 1), ChannelRequest { goal, ..ask(B) }, &[A], ms(9));
    rcap.on_message(at(1_003), A, &hasty).unwrap();
    let denied = denial(&drain(&mut rcap)).unwrap();
    assert_eq!((denied.test, denied.nearest_delay_ns), (RcapTest::PathDelay, 5_021_005));
}

/// TENET-4.1-7: collected on the way, reported on the way back.
#[test]
fn a_status_passes_each_node_once() {
    let mut rcap = b();
    let entry = open(&mut rcap);
    let asked = |nodes: &[Record]| {
        let written = record::written(nodes, RCAP_OCTETS_MAX);
        let nodes = RcapRecords::parse(&written, nodes.len()).unwrap();
        let status = RcapStatus { question: 6, nodes };
        [RcapBody::StatusRequest(status), RcapBody::StatusReport(status)].map(|body| octets(of(1, 1), body))
    };
    let [request, report] = asked(&[record(A)]);
    rcap.on_message(at(5), A, &request).unwrap();
    assert_eq!(drain(&mut rcap), [RcapOutput::Inspect { entry }]);
    rcap.inspected(entry, StatusCounts { packets: 12, dropped: 3, held: 1 });
    let outputs = drain(&mut rcap);
    let [RcapOutput::Send { to: C, message }] = &outputs[..] else { panic!("{outputs:?}") };
    let RcapBody::StatusRequest(status) = RcapMessage::parse(message).unwrap().body else { panic!() };
    let own = status.nodes.iter().last().unwrap();
    assert_eq!((status.question, status.nodes.count(), own.node), (6, 2, B));
    assert_eq!((own.packets, own.dropped, own.is_open, own.port), (12, 3, true, 3));
    rcap.inspected(entry, StatusCounts::default());
    assert_eq!(drain(&mut rcap), [], "one answer");
    rcap.on_message(at(6), C, &report).unwrap();
    assert_eq!(sent(&drain(&mut rcap)), [(A, RcapKind::StatusReport)]);
    rcap.on_message(at(7), A, &report).unwrap();
    assert_eq!(drain(&mut rcap), [], "from the wrong side");
    rcap.on_message(at(8), A, &octets(of(2, 1), RcapMessage::parse(&request).unwrap().body)).unwrap();
    assert_eq!(sent(&drain(&mut rcap)), [(A, RcapKind::CloseReverse)], "a channel that is not here");
}

#[test]
fn a_question_without_an_answer_ends() {
    let mut rcap = b();
    let (channel, entry) = establish(&mut rcap);
    assert_eq!(rcap.status(at(1), channel), Err(RcapCallError::NoChannel), "not open");
    rcap.reserved(at(2), entry, hop());
    rcap.on_message(at(3), C, &accept(RcapChannel { origin: B, channel, attempt: 1 }, &[own()])).unwrap();
    rcap.relaxed(at(4), entry, offer(), Vec::new());
    drain(&mut rcap);
    assert_eq!(rcap.status(at(5), channel), Ok(()));
    assert_eq!(rcap.status(at(5), channel), Err(RcapCallError::StatusPending));
    rcap.inspected(entry, StatusCounts::default());
    assert_eq!(rcap.deadline(), at(1_005));
    drain(&mut rcap);
    rcap.handle_deadline(at(1_005));
    assert_eq!(drain(&mut rcap), [RcapOutput::Event(RcapEvent::NoStatus { channel })]);
    rcap.status(at(1_006), channel).unwrap();
    rcap.neighbour_lost(at(1_007), C);
    let outputs = drain(&mut rcap);
    let events = outputs.iter().filter(|output| matches!(output, RcapOutput::Event(_))).count();
    assert_eq!(events, 2, "no status, and the end: {outputs:?}");
}

/// A failed node on the way: the next attempt goes another way.
#[test]
fn another_way_is_taken_when_the_first_one_is_lost() {
    let mut graph = Graph::default();
    for (one, other) in [(B, C), (C, D), (B, A), (A, NodeId(5)), (NodeId(5), D)] {
        graph.join((one, PortId(other.0 as u8)), (other, PortId(one.0 as u8)));
    }
    let mut rcap = b();
    rcap.set_graph(graph);
    numbered(&mut rcap, ask(D)).unwrap();
    let outputs = drain(&mut rcap);
    let [RcapOutput::Reserve { entry, hop: next, .. }] = outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(next.node, C);
    rcap.reserved(at(2), entry, hop());
    rcap.neighbour_lost(at(3), C);
    assert_eq!(event(&drain(&mut rcap)), None);
    rcap.handle_deadline(rcap.deadline());
    let outputs = drain(&mut rcap);
    let [RcapOutput::Reserve { hop: next, .. }] = outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(next.node, A);
    rcap.set_down(NodeId(5), true);
    assert_eq!(rcap.routes().route(D), None);
}

/// It counted as answered once the first path was open, and its receiver heard nothing of the refusal.
#[test]
fn an_invitation_is_answered_once_the_path_in_reserve_is_decided() {
    let mut rcap = b();
    rcap.add_invitee(5, SERVICE, 9).unwrap();
    let of = RcapChannel { origin: D, channel: ChannelId(40), attempt: 1 };
    let way = RcapRoute::written(&[D, C]);
    let (source, lease_ns, pair) = (B, 3_000_000_000, ChannelId::NONE);
    let way = RcapRoute::parse(&way).unwrap();
    let invite = RcapInvite { source, service: SERVICE, lease_ns, pair, way };
    rcap.on_message(at(1), C, &octets(of, RcapBody::Invite(invite))).unwrap();
    assert!(matches!(event(&drain(&mut rcap)), Some(RcapEvent::Invited { .. })));
    let initiation = RcapInitiation::Receiver(ChannelId(40));
    let request = ChannelRequest { has_second: true, initiation, ..ask(D) };
    let channel = numbered(&mut rcap, request).unwrap();
    let entry = reserved(&drain(&mut rcap)).unwrap();
    rcap.reserved(at(2), entry, hop());
    drain(&mut rcap);
    let answers = RcapChannel { origin: B, channel, attempt: 1 };
    rcap.on_message(at(3), C, &accept(answers, &[own(), record(C)])).unwrap();
    drain(&mut rcap);
    rcap.relaxed(at(4), entry, offer(), Vec::new());
    // There is no second path on a line.
    let outputs = drain(&mut rcap);
    assert_eq!(denial(&outputs).map(|denied| denied.test), Some(RcapTest::NoSecondPath));
    let denied = (C, RcapKind::InviteDenied);
    assert!(sent(&outputs).contains(&denied), "{:?}", sent(&outputs));
}

/// A refusal by a neighbour that was not asked is no answer.
#[test]
fn an_invitation_is_refused_by_the_neighbour_that_was_asked_alone() {
    let mut rcap = b();
    let (number, listener) = (ChannelId(40), 4);
    let invitation = Invitation { source: D, service: SERVICE, listener, pair: ChannelId::NONE };
    rcap.invite(at(1), number, invitation).unwrap();
    assert_eq!(sent(&drain(&mut rcap)), [(C, RcapKind::Invite)]);
    let of = RcapChannel { origin: B, channel: number, attempt: 1 };
    let (denied, way) = (io::simply(D, RcapTest::NoSource), RcapRoute::default());
    let refusal = octets(of, RcapBody::InviteDenied(RcapInviteDenied { denied, way }));
    rcap.on_message(at(2), A, &refusal).unwrap();
    assert_eq!(drain(&mut rcap), []);
    rcap.on_message(at(3), C, &refusal).unwrap();
    assert_eq!(event(&drain(&mut rcap)), Some(&RcapEvent::NotInvited { listener, denied }));
}

/// The last packets of the old contract have the time that it promised, however quick the new one is.
#[test]
fn an_old_contract_stays_for_its_own_promise() {
    let mut rcap = b();
    let (channel, entry, _) = accepted(&mut rcap);
    rcap.relaxed(at(4), entry, Offer { delay: ms(50), ..offer() }, Vec::new());
    let outputs = drain(&mut rcap);
    let Some(RcapEvent::Opened { promise: old, .. }) = event(&outputs) else { panic!("{outputs:?}") };
    rcap.change(at(5), channel, ask(C)).unwrap();
    let beside = reserved(&drain(&mut rcap)).expect("the medium is asked");
    rcap.reserved(at(6), beside, hop());
    drain(&mut rcap);
    let of = RcapChannel { origin: B, channel, attempt: 2 };
    rcap.on_message(at(7), C, &accept(of, &[own()])).unwrap();
    drain(&mut rcap);
    rcap.relaxed(at(8), beside, offer(), Vec::new());
    let outputs = drain(&mut rcap);
    let Some(RcapEvent::Changed { promise: new, .. }) = event(&outputs) else { panic!("{outputs:?}") };
    assert!(new.delay < old.delay);
    assert_eq!(rcap.deadline(), at(8) + old.delay + ms(50));
}

/// An attempt for another path that a node swallows leaves time for the next one.
#[test]
fn an_attempt_for_another_path_has_half_of_the_patience() {
    let mut graph = Graph::default();
    for (one, other) in [(B, C), (C, D), (B, A), (A, NodeId(5)), (NodeId(5), D)] {
        graph.join((one, PortId(other.0 as u8)), (other, PortId(one.0 as u8)));
    }
    let mut rcap = b();
    rcap.set_graph(graph);
    let channel = numbered(&mut rcap, ChannelRequest { reroute: ms(10_000), ..ask(D) }).unwrap();
    let entry = reserved(&drain(&mut rcap)).expect("the medium is asked");
    rcap.reserved(at(2), entry, hop());
    drain(&mut rcap);
    let of = RcapChannel { origin: B, channel, attempt: 1 };
    rcap.on_message(at(3), C, &accept(of, &[own(), record(C)])).unwrap();
    drain(&mut rcap);
    rcap.relaxed(at(4), entry, offer(), Vec::new());
    drain(&mut rcap);
    rcap.neighbour_lost(at(10), C);
    assert!(matches!(event(&drain(&mut rcap)), Some(RcapEvent::Broken { sending: true, .. })));
    rcap.handle_deadline(at(10));
    let entry = reserved(&drain(&mut rcap)).expect("another way");
    rcap.reserved(at(10), entry, hop());
    let outputs = drain(&mut rcap);
    let RcapOutput::Send { to, message } = &outputs[0] else { panic!("{outputs:?}") };
    let RcapBody::EstablishRequest(request) = RcapMessage::parse(message).unwrap().body else { panic!() };
    assert_eq!(*to, A);
    assert_eq!(request.lease_ns, 1_000_000_000, "of two seconds");
}

/// A channel that ends before it is open is denied to those who asked, by what has ended it and where.
#[test]
fn an_end_behind_a_channel_that_is_not_open_is_denied_by_its_cause() {
    let tests = [
        (CloseCause::PeerGone, RcapTest::NeighbourLost),
        (CloseCause::PeerDied, RcapTest::NeighbourLost),
        (CloseCause::ReservationLost, RcapTest::ShareLost),
        (CloseCause::ReceiverClosed, RcapTest::ReceiverRefused),
        (CloseCause::ReceiverDied, RcapTest::ReceiverRefused),
        (CloseCause::NoAnswer, RcapTest::LeaseOver),
        (CloseCause::Revoked, RcapTest::Closed),
    ];
    for (cause, test) in tests {
        let mut rcap = b();
        forwarded(&mut rcap);
        let close = RcapClose { cause, node: D };
        rcap.on_message(at(3), C, &octets(of(1, 1), RcapBody::CloseReverse(close))).unwrap();
        let outputs = drain(&mut rcap);
        assert_eq!(sent(&outputs), [(A, RcapKind::EstablishDenied)]);
        let denied = denial(&outputs).expect("it is denied");
        assert_eq!((denied.test, denied.node), (test, D), "{cause:?}");
    }
}

/// One look without a way is borne once the invitation has gone out, and a way that is found makes it good.
#[test]
fn an_invitation_bears_one_look_without_a_way_after_each_that_found_one() {
    let mut rcap = b();
    let invitation = Invitation { source: D, service: SERVICE, listener: 5, pair: ChannelId::NONE };
    rcap.invite(at(1), ChannelId(900), invitation).unwrap();
    assert_eq!(sent(&drain(&mut rcap)), [(C, RcapKind::Invite)]);
    for _ in 0..2 {
        let now = rcap.deadline();
        rcap.neighbour_lost(now, C);
        rcap.handle_deadline(now);
        assert!(drain(&mut rcap).is_empty(), "its way may come back");
        let now = rcap.deadline();
        rcap.neighbour_up(now, C);
        rcap.handle_deadline(now);
        assert_eq!(sent(&drain(&mut rcap)), [(C, RcapKind::Invite)]);
    }
    rcap.neighbour_lost(rcap.deadline(), C);
    for _ in 0..2 {
        rcap.handle_deadline(rcap.deadline());
    }
    let outputs = drain(&mut rcap);
    let Some(RcapEvent::NotInvited { listener: 5, denied }) = event(&outputs) else { panic!("{outputs:?}") };
    assert_eq!((denied.test, denied.node), (RcapTest::NoRoute, B));
}
