use super::*;
use rota_admission::Clocks;
use rota_admission::path::Goal;
use rota_admission::rtip::{Chance, Messages, Regulator};
use rota_admission::subnet::Offer;
use rota_contract::CloseCause;
use rota_medium::door::PortId;
use rota_units::{Octets, Span};
use rota_wire::{
    RcapAccept, RcapAgain, RcapClose, RcapInvite, RcapInviteDenied, RcapKind, RcapRecord, RcapRecords,
    RcapRequest, RcapRoute, RcapStatus,
};

mod approach;
mod change;
mod died;
mod ends;
mod garbage;
mod other;
mod reroute;

thread_local! {
    static LAST: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Asks for a channel by a number of its own.
fn numbered(rcap: &mut Rcap, request: ChannelRequest) -> Result<ChannelId, RcapCallError> {
    let channel = ChannelId(LAST.get() + 1);
    LAST.set(channel.0);
    rcap.establish(at(1), channel, request).map(|()| channel)
}

const A: NodeId = NodeId(1);
const B: NodeId = NodeId(2);
const C: NodeId = NodeId(3);
const D: NodeId = NodeId(4);
const SERVICE: u16 = 5;

fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// The machine of B between A and C, on a line A - B - C - D.
fn machine(limits: RcapLimits) -> Rcap {
    let mut graph = Graph::default();
    for (one, other) in [(A, B), (B, C), (C, D)] {
        graph.join((one, PortId(other.0 as u8)), (other, PortId(one.0 as u8)));
    }
    let mut rcap = Rcap::new(B, limits, graph, 1);
    rcap.neighbour_up(at(0), A);
    rcap.neighbour_up(at(0), C);
    rcap.register(SERVICE, 77).unwrap();
    rcap
}

fn b() -> Rcap {
    machine(RcapLimits::default())
}

fn drain(rcap: &mut Rcap) -> Vec<RcapOutput> {
    rcap.audit();
    std::iter::from_fn(|| rcap.poll()).collect()
}

fn of(channel: u64, attempt: u16) -> RcapChannel {
    RcapChannel { origin: A, channel: ChannelId(channel), attempt }
}

fn key_of(channel: u64) -> ChannelKey {
    ChannelKey { origin: A, channel: ChannelId(channel) }
}

/// A request to this node: a message of 1,000 octets each 10 ms, within 60 ms.
pub(crate) fn ask(destination: NodeId) -> ChannelRequest {
    let x = ms(10);
    ChannelRequest {
        destination,
        service: SERVICE,
        uid: 9,
        messages: Messages { x_min: x, x_ave: x, interval: x, s_max: Octets::new(1_000) },
        shortest: Octets::new(100),
        goal: Goal { delay: ms(60), jitter: None },
        late_most: Chance::NEVER,
        loss_most: Chance::NEVER,
        packet_max: Octets::new(1_400),
        host_slack: Span::ZERO,
        reroute: Span::ZERO,
        allows_withdrawn: false,
        partition: None,
        life: (Span::ZERO, None),
        tree: ChannelId::NONE,
        group: None,
        room: Octets::new(1_000),
        initiation: RcapInitiation::Source,
        has_second: false,
        via: Nodes::default(),
    }
}

fn offer() -> Offer {
    let [delay, service_least, link_least, link_most] = [5_000, 100, 10, 20].map(Span::from_micros);
    Offer { delay, service_least, link_least, link_most }
}

fn hop() -> HopOffer {
    let (host_slack, late) = (Span::ZERO, Chance::NEVER);
    HopOffer { offer: offer(), regulator: Regulator::Rate, host_slack, late, medium: 2, percent: 0 }
}

fn record(node: NodeId) -> Record {
    let (counts, terms) = (StatusCounts::default(), Vec::new());
    Record { node, port: PortId(1), is_open: false, hop: hop(), buffers: 3, counts, terms }
}

fn octets(of: RcapChannel, body: RcapBody<'_>) -> Vec<u8> {
    let message = RcapMessage { of, body };
    let mut octets = vec![0; message.octets()];
    message.emit(&mut octets).unwrap();
    octets
}

/// A request as `from` sends it after these nodes.
fn request_of(of: RcapChannel, request: ChannelRequest, nodes: &[NodeId], lease: Span) -> Vec<u8> {
    let records: Vec<Record> = nodes.iter().map(|node| record(*node)).collect();
    let records = record::written(&records, RCAP_OCTETS_MAX);
    let nodes = RcapRecords::parse(&records, nodes.len()).unwrap();
    let wire: RcapRequest<'_> =
        record::Demand::of(at(0), request).unwrap().to_wire(at(0), lease, nodes, Default::default());
    octets(of, RcapBody::EstablishRequest(wire))
}

/// A request for an open channel, beside its contract or around a node that has failed.
fn anew(is_change: bool, avoid: NodeId) -> RcapAgain<'static> {
    RcapAgain { is_change, takes_place: false, avoid, apart: RcapRoute::default() }
}

fn request(channel: u64, attempt: u16) -> Vec<u8> {
    request_of(of(channel, attempt), ask(C), &[A], ms(2_000))
}

/// The messages among the outputs, by receiver and kind.
fn sent(outputs: &[RcapOutput]) -> Vec<(NodeId, RcapKind)> {
    let of = |output: &RcapOutput| match output {
        RcapOutput::Send { to, message } => Some((*to, RcapMessage::parse(message).unwrap().body.kind())),
        _ => None,
    };
    outputs.iter().filter_map(of).collect()
}

fn denial(outputs: &[RcapOutput]) -> Option<RcapDenied> {
    outputs.iter().find_map(|output| match output {
        RcapOutput::Send { message, .. } => match RcapMessage::parse(message).unwrap().body {
            RcapBody::EstablishDenied(denied) => Some(denied),
            _ => None,
        },
        RcapOutput::Event(RcapEvent::Refused { denied, .. }) => Some(*denied),
        _ => None,
    })
}

fn event(outputs: &[RcapOutput]) -> Option<&RcapEvent> {
    outputs.iter().find_map(|output| if let RcapOutput::Event(event) = output { Some(event) } else { None })
}

fn reserved(outputs: &[RcapOutput]) -> Option<EntryId> {
    outputs.iter().find_map(|output| match output {
        RcapOutput::Reserve { entry, .. } => Some(*entry),
        _ => None,
    })
}

/// The request of channel 1 has passed B.
fn forwarded(rcap: &mut Rcap) -> EntryId {
    rcap.on_message(at(1), A, &request(1, 1)).unwrap();
    let entry = reserved(&drain(rcap)).expect("the medium is asked");
    rcap.reserved(at(2), entry, hop());
    assert_eq!(sent(&drain(rcap)), [(C, RcapKind::EstablishRequest)]);
    entry
}

/// The accept of C, which is the destination.
fn accept(of: RcapChannel, records: &[Record]) -> Vec<u8> {
    let written = record::written(records, RCAP_OCTETS_MAX);
    let nodes = RcapRecords::parse(&written, records.len()).unwrap();
    octets(of, RcapBody::EstablishAccept(RcapAccept { label: 33, nodes }))
}

fn own() -> Record {
    Record { port: PortId(3), ..record(B) }
}

/// Channel 1 is open at B.
fn open(rcap: &mut Rcap) -> EntryId {
    let entry = forwarded(rcap);
    rcap.on_message(at(3), C, &accept(of(1, 1), &[record(A), own()])).unwrap();
    let outputs = drain(rcap);
    let [RcapOutput::Relax { delay, .. }] = outputs[..] else { panic!("{outputs:?}") };
    rcap.relaxed(at(4), entry, Offer { delay, ..offer() }, b"terms".to_vec());
    let outputs = drain(rcap);
    let RcapOutput::Install { channel, .. } = &outputs[0] else { panic!("{outputs:?}") };
    assert_eq!((channel.label_in, channel.way), (Some(1), Some((NextHop { node: C, port: PortId(3) }, 33))));
    assert_eq!(sent(&outputs), [(A, RcapKind::EstablishAccept)]);
    entry
}

/// TENET-3.1-16: half of the 49.948 ms that two nodes leave is B's; room is reserved for all of it before.
#[test]
fn a_node_takes_its_equal_share_and_gives_back_buffers() {
    let mut rcap = b();
    let entry = forwarded(&mut rcap);
    // B: eligible up to 5 ms + 10 us ahead, and 5 ms and all slack behind: 60 ms less host and 2 · 20 us.
    // Clocks add a packet.
    assert_eq!(rcap.buffer_octets(), 7 * 1_000);
    rcap.on_message(at(3), C, &accept(of(1, 1), &[record(A), own()])).unwrap();
    let outputs = drain(&mut rcap);
    assert_eq!(outputs, [RcapOutput::Relax { entry, delay: Span::from_micros(5_000 + 49_948 / 2) }]);
    rcap.relaxed(at(4), entry, offer(), Vec::new());
    let outputs = drain(&mut rcap);
    let RcapOutput::Install { channel, .. } = &outputs[0] else { panic!("{outputs:?}") };
    assert_eq!((channel.delay, channel.octets), (offer().delay, Octets::new(1_000)));
    assert_eq!(
        channel.upstream,
        Span::from_micros(60_000 - 5_020),
        "the nodes before get what B did not use"
    );
}

/// Room for all of D_max is reserved on the way there; what C has taken of it for itself needs none here.
#[test]
fn a_node_keeps_no_buffers_for_the_time_that_nodes_behind_it_have_taken() {
    let mut rcap = b();
    rcap.on_message(at(1), A, &request_of(of(1, 1), ask(D), &[A], ms(2_000))).unwrap();
    let entry = reserved(&drain(&mut rcap)).expect("the medium is asked");
    rcap.reserved(at(2), entry, hop());
    drain(&mut rcap);
    assert_eq!(rcap.buffer_octets(), 7 * 1_000);
    let longer = HopOffer { offer: Offer { delay: ms(25), ..offer() }, ..hop() };
    let behind = Record { hop: longer, ..record(C) };
    rcap.on_message(at(3), C, &accept(of(1, 1), &[record(A), own(), behind])).unwrap();
    drain(&mut rcap);
    rcap.relaxed(at(4), entry, offer(), Vec::new());
    let outputs = drain(&mut rcap);
    let RcapOutput::Install { channel, .. } = &outputs[0] else { panic!("{outputs:?}") };
    // 5 ms ahead, 5 ms here and some 25 ms that are left, in packets each 10 ms.
    assert_eq!((channel.buffers, rcap.buffer_octets()), (4, 4 * 1_000));
}

/// B of a statistical channel with this D_max, behind a node with this record.
fn upstream_behind(before: &Record, delay: Span) -> Span {
    let one_in = Chance::of_down(1, 100);
    let goal = Goal { delay, jitter: None };
    let request = ChannelRequest { goal, late_most: one_in, loss_most: one_in, ..ask(C) };
    let records = record::written(std::slice::from_ref(before), RCAP_OCTETS_MAX);
    let nodes = RcapRecords::parse(&records, 1).unwrap();
    let demand = record::Demand::of(at(0), request).unwrap();
    let wire = demand.to_wire(at(0), ms(2_000), nodes, Default::default());
    let mut rcap = b();
    rcap.on_message(at(1), A, &octets(of(1, 1), RcapBody::EstablishRequest(wire))).unwrap();
    let entry = reserved(&drain(&mut rcap)).expect("the medium is asked");
    rcap.reserved(at(2), entry, hop());
    drain(&mut rcap);
    rcap.on_message(at(3), C, &accept(of(1, 1), &[before.clone(), own()])).unwrap();
    drain(&mut rcap);
    rcap.relaxed(at(4), entry, offer(), Vec::new());
    let outputs = drain(&mut rcap);
    let RcapOutput::Install { channel, .. } = &outputs[0] else { panic!("{outputs:?}") };
    channel.upstream
}

/// A gateway took D_max less its own bound for the leeway of its meter: 0.99 s of 1 s, where the node before
/// keeps 201 ms at most.
#[test]
fn the_leeway_of_a_meter_is_what_the_hops_before_may_be_relaxed_to() {
    let us = Span::from_micros;
    let node = |medium, late, delay| {
        let offer = Offer { delay, ..offer() };
        let hop = HopOffer { offer, late, medium, host_slack: ms(1), ..hop() };
        Record { hop, ..record(A) }
    };
    let (late, second) = (Chance::of_down(1, 1_000), ms(1_000));
    let by_hop = |delay: Span| Clocks::APART.longer(delay + us(20));
    let of_goal = |goal: Span| goal.minus(us(5_020));
    // A link of the statistical class, one with a longer offer, a RETHER segment, whose offer stays.
    assert_eq!(upstream_behind(&node(2, late, ms(5)), second), by_hop(ms(201)));
    assert_eq!(upstream_behind(&node(4, late, ms(300)), second), by_hop(ms(300)));
    assert_eq!(upstream_behind(&node(1, Chance::NEVER, ms(5)), second), by_hop(ms(5)));
    // The rest of D_max may be less, and a level of a guaranteed link has no such limit.
    assert_eq!(upstream_behind(&node(2, late, ms(5)), ms(60)), of_goal(ms(60)));
    assert_eq!(upstream_behind(&node(2, Chance::NEVER, ms(5)), second), of_goal(second));
}

#[test]
fn an_accept_carries_labels_terms_and_relaxed_bounds() {
    let mut rcap = b();
    let entry = forwarded(&mut rcap);
    rcap.on_message(at(3), C, &accept(of(1, 1), &[record(A), own()])).unwrap();
    drain(&mut rcap);
    rcap.relaxed(at(4), entry, Offer { delay: ms(20), ..offer() }, b"terms".to_vec());
    let outputs = drain(&mut rcap);
    let RcapOutput::Send { message, .. } = &outputs[1] else { panic!("{outputs:?}") };
    let RcapBody::EstablishAccept(accept) = RcapMessage::parse(message).unwrap().body else { panic!() };
    let nodes: Vec<RcapRecord<'_>> = accept.nodes.iter().collect();
    assert_eq!((accept.label, nodes.len(), nodes[0].delay_ns), (1, 2, 5_000_000));
    assert_eq!((nodes[1].delay_ns, nodes[1].terms, nodes[1].is_open), (20_000_000, &b"terms"[..], true));
    assert_eq!(rcap.deadline(), Instant::FAR, "no lease any more");
}

/// TENET-R9: by channel and attempt.
#[test]
fn a_repeated_request_does_nothing_new() {
    let mut rcap = b();
    forwarded(&mut rcap);
    rcap.on_message(at(3), A, &request(1, 1)).unwrap();
    assert_eq!((drain(&mut rcap), rcap.counters().repeated), (vec![], 1));
    let close = RcapClose { cause: CloseCause::Finished, node: A };
    rcap.on_message(at(4), A, &octets(of(1, 1), RcapBody::CloseForward(close))).unwrap();
    assert_eq!(sent(&drain(&mut rcap)), [(C, RcapKind::CloseForward)]);
    rcap.on_message(at(5), A, &request(1, 1)).unwrap();
    assert_eq!((drain(&mut rcap), rcap.counters().repeated), (vec![], 2), "it has ended");
    rcap.on_message(at(6), A, &request(1, 2)).unwrap();
    assert!(reserved(&drain(&mut rcap)).is_some(), "another attempt is none");
    rcap.on_message(at(7), A, &request(1, 3)).unwrap();
    let outputs = drain(&mut rcap);
    assert!(matches!(outputs[0], RcapOutput::Release { ending: Ending::Superseded, .. }), "{outputs:?}");
    assert!(reserved(&outputs).is_some());
    rcap.on_message(at(8), A, &request(1, 2)).unwrap();
    assert_eq!(drain(&mut rcap), [], "an old one");
    for (message, from) in [(RcapBody::CloseForward(close), A), (RcapBody::CloseReverse(close), C)] {
        rcap.on_message(at(9), from, &octets(of(1, 2), message)).unwrap();
        assert_eq!((drain(&mut rcap), rcap.entries().count()), (vec![], 1), "of an old attempt");
    }
}

/// TENET-R9: what is forgotten of an earlier attempt takes nothing of a later one with it.
#[test]
fn each_attempt_that_has_ended_is_remembered_for_its_own_time() {
    let mut rcap = b();
    let close = RcapClose { cause: CloseCause::Finished, node: A };
    for (attempt, now) in [(1, 10), (2, 1_000)] {
        rcap.on_message(at(now), A, &request(1, attempt)).unwrap();
        rcap.on_message(at(now), A, &octets(of(1, attempt), RcapBody::CloseForward(close))).unwrap();
        drain(&mut rcap);
    }
    rcap.on_message(at(11) + RcapLimits::LEASE_MAX, A, &request(1, 2)).unwrap();
    assert_eq!(drain(&mut rcap), [], "it ended almost a second behind the first one");
    rcap.on_message(at(1_001) + RcapLimits::LEASE_MAX, A, &request(1, 2)).unwrap();
    assert!(reserved(&drain(&mut rcap)).is_some(), "nothing is remembered for ever");
}

/// TENET-R9, fault 45: each lease ends by itself, and both neighbours are told.
#[test]
fn a_lease_ends_and_a_late_accept_is_closed() {
    let mut rcap = b();
    let entry = forwarded(&mut rcap);
    assert_eq!(rcap.deadline(), at(2_001));
    rcap.handle_deadline(at(2_000));
    assert_eq!(drain(&mut rcap), []);
    rcap.handle_deadline(at(2_001));
    let outputs = drain(&mut rcap);
    assert!(matches!(outputs[0], RcapOutput::Release { entry: id, .. } if id == entry));
    assert_eq!(sent(&outputs), [(A, RcapKind::EstablishDenied), (C, RcapKind::CloseForward)]);
    assert_eq!(denial(&outputs).unwrap().test, RcapTest::LeaseOver);
    rcap.on_message(at(2_002), C, &accept(of(1, 1), &[record(A), own()])).unwrap();
    assert_eq!(sent(&drain(&mut rcap)), [(C, RcapKind::CloseForward)]);
    assert_eq!((rcap.deadline(), rcap.buffer_octets()), (Instant::FAR, 0));
}

#[test]
fn an_answer_of_the_medium_for_an_entry_that_is_gone_is_released() {
    let mut rcap = b();
    rcap.on_message(at(1), A, &request(1, 1)).unwrap();
    let entry = reserved(&drain(&mut rcap)).unwrap();
    rcap.neighbour_lost(at(2), A);
    let outputs = drain(&mut rcap);
    assert!(matches!(outputs[..], [RcapOutput::Release { .. }]), "C has heard of nothing: {outputs:?}");
    rcap.reserved(at(3), entry, hop());
    assert!(matches!(drain(&mut rcap)[..], [RcapOutput::Release { entry: id, .. }] if id == entry));
    rcap.relaxed(at(3), entry, offer(), Vec::new());
    assert!(matches!(drain(&mut rcap)[..], [RcapOutput::Release { entry: id, .. }] if id == entry));
    rcap.share_lost(at(3), entry);
    assert_eq!(drain(&mut rcap), []);
}

/// TENET-R11.
#[test]
fn a_close_that_races_with_an_accept_is_final() {
    let mut rcap = b();
    let entry = forwarded(&mut rcap);
    rcap.on_message(at(3), C, &accept(of(1, 1), &[record(A), own()])).unwrap();
    drain(&mut rcap);
    let close = RcapClose { cause: CloseCause::Finished, node: A };
    rcap.on_message(at(4), A, &octets(of(1, 1), RcapBody::CloseForward(close))).unwrap();
    assert_eq!(sent(&drain(&mut rcap)), [(C, RcapKind::CloseForward)]);
    rcap.relaxed(at(5), entry, offer(), Vec::new());
    let outputs = drain(&mut rcap);
    assert!(matches!(outputs[..], [RcapOutput::Release { .. }]), "no accept goes on: {outputs:?}");
}

#[test]
fn the_loss_of_a_neighbour_or_a_share_is_told_to_the_other_side() {
    let told = |act: fn(&mut Rcap, EntryId)| {
        let mut rcap = b();
        let entry = open(&mut rcap);
        act(&mut rcap, entry);
        let outputs = drain(&mut rcap);
        assert!(matches!(outputs[0], RcapOutput::Release { entry: id, .. } if id == entry));
        assert_eq!((rcap.entries().count(), rcap.buffer_octets()), (0, 0));
        sent(&outputs)
    };
    assert_eq!(told(|rcap, _| rcap.neighbour_lost(at(9), A)), [(C, RcapKind::CloseForward)]);
    assert_eq!(told(|rcap, _| rcap.neighbour_lost(at(9), C)), [(A, RcapKind::CloseReverse)]);
    assert_eq!(told(|rcap, _| rcap.neighbour_up(at(9), C)), [(A, RcapKind::CloseReverse)], "a new session");
    let both = [(A, RcapKind::CloseReverse), (C, RcapKind::CloseForward)];
    assert_eq!(told(|rcap, entry| rcap.share_lost(at(9), entry)), both);
    assert_eq!(told(|rcap, _| rcap.close_all(at(9))), both);
}

#[test]
fn a_request_that_cannot_pass_is_denied_by_the_test_that_fails() {
    let denied = |from: NodeId, message: &[u8]| {
        let mut rcap = b();
        rcap.on_message(at(1), from, message).unwrap();
        let outputs = drain(&mut rcap);
        assert_eq!((rcap.entries().count(), sent(&outputs)), (0, vec![(from, RcapKind::EstablishDenied)]));
        denial(&outputs).unwrap().test
    };
    let of_a = |request, nodes: &[NodeId]| request_of(of(1, 1), request, nodes, ms(9));
    assert_eq!(denied(C, &of_a(ask(D), &[A, B, C])), RcapTest::Loop);
    assert_eq!(denied(C, &of_a(ask(D), &[A, C])), RcapTest::Loop, "D is behind C");
    assert_eq!(denied(A, &of_a(ask(D), &[C])), RcapTest::Garbage, "the last record is not the sender's");
    assert_eq!(denied(A, &of_a(ask(D), &[])), RcapTest::Garbage);
    assert_eq!(denied(C, &of_a(ask(D), &[D, C])), RcapTest::Garbage, "the origin is not the first one");
    assert_eq!(denied(A, &of_a(ask(NodeId(99)), &[A])), RcapTest::NoRoute);
    assert_eq!(denied(A, &of_a(ChannelRequest { service: 6, ..ask(B) }, &[A])), RcapTest::NoListener);
    let long: Vec<NodeId> = [A].into_iter().chain((0..14).map(|node| NodeId(50 + node))).collect();
    let mut rcap = b();
    rcap.neighbour_up(at(0), NodeId(63));
    rcap.on_message(at(1), NodeId(63), &of_a(ask(C), &long)).unwrap();
    assert_eq!(denial(&drain(&mut rcap)).unwrap().test, RcapTest::PathTooLong);
    let initiation = RcapInitiation::Receiver(ChannelId(3));
    let of_nobody = ChannelRequest { initiation, ..ask(B) };
    assert_eq!(denied(A, &of_a(of_nobody, &[A])), RcapTest::ReceiverRefused, "nobody has invited");
}

#[test]
fn garbage_is_an_error_and_a_stranger_is_not_heard() {
    let mut rcap = b();
    let mut message = request(1, 1);
    message[1] = rota_wire::RCAP_VERSION + 1;
    assert_eq!(rcap.on_message(at(1), A, &message), Err(Malformed::Version(rota_wire::RCAP_VERSION + 1)));
    assert_eq!(rcap.on_message(at(1), D, &request(1, 1)), Ok(()));
    assert_eq!((drain(&mut rcap), rcap.counters().malformed, rcap.counters().stray), (vec![], 1, 1));
    // Ends that come from the wrong side.
    open(&mut rcap);
    let close = RcapClose { cause: CloseCause::Finished, node: A };
    for (from, body) in [
        (C, RcapBody::CloseForward(close)),
        (A, RcapBody::CloseReverse(close)),
        (A, RcapBody::EstablishDenied(io::simply(A, RcapTest::Load))),
    ] {
        rcap.on_message(at(5), from, &octets(of(1, 1), body)).unwrap();
        assert_eq!((drain(&mut rcap), rcap.entries().count()), (vec![], 1));
    }
    let other = accept(of(1, 1), &[record(A), own()]);
    rcap.on_message(at(6), C, &other).unwrap();
    assert_eq!(drain(&mut rcap), [], "a second accept");
}

/// A node behind that changes what was offered, or leaves no slack, is not believed.
#[test]
fn an_accept_that_lies_ends_the_channel() {
    let lie = |records: &[Record]| {
        let mut rcap = b();
        forwarded(&mut rcap);
        rcap.on_message(at(3), C, &accept(of(1, 1), records)).unwrap();
        let outputs = drain(&mut rcap);
        assert_eq!(sent(&outputs), [(A, RcapKind::EstablishDenied), (C, RcapKind::CloseForward)]);
        assert_eq!(denial(&outputs).unwrap().test, RcapTest::Garbage);
    };
    let longer =
        |of: Record| Record { hop: HopOffer { offer: Offer { delay: ms(6), ..offer() }, ..hop() }, ..of };
    lie(&[record(A)]);
    lie(&[record(A), longer(own())]);
    lie(&[longer(record(A)), own()]);
    let late = Record { hop: HopOffer { offer: Offer { delay: ms(70), ..offer() }, ..hop() }, ..record(D) };
    lie(&[record(A), own(), late]);
}

#[test]
fn a_medium_that_relaxes_by_more_than_is_left_ends_the_channel() {
    let mut rcap = b();
    let entry = forwarded(&mut rcap);
    rcap.on_message(at(3), C, &accept(of(1, 1), &[record(A), own()])).unwrap();
    drain(&mut rcap);
    rcap.relaxed(at(4), entry, Offer { delay: ms(60), ..offer() }, Vec::new());
    let outputs = drain(&mut rcap);
    assert_eq!(denial(&outputs).unwrap().test, RcapTest::ShareLost);
    assert_eq!(sent(&outputs), [(A, RcapKind::EstablishDenied), (C, RcapKind::CloseForward)]);
}

/// The best bounds so far are too long already: the destination is asked all the same, since it alone knows
/// the nearest request that fits. The bounds of this node were told as if they were all.
#[test]
fn a_path_that_is_too_long_is_denied_where_the_whole_of_it_is_known() {
    let nearest = |goal: Goal| {
        let mut rcap = b();
        let request = ChannelRequest { goal, ..ask(C) };
        rcap.on_message(at(1), A, &request_of(of(1, 1), request, &[A], ms(9))).unwrap();
        let entry = reserved(&drain(&mut rcap)).unwrap();
        rcap.reserved(at(2), entry, hop());
        assert_eq!(sent(&drain(&mut rcap)), [(C, RcapKind::EstablishRequest)]);
    };
    nearest(Goal { delay: ms(10), jitter: None });
    nearest(Goal { delay: ms(60), jitter: Some(ms(9)) });
}

/// A hop behind a gateway may remove jitter that exceeds J_max there, and relaxing then makes use of D_max.
#[test]
fn a_gateway_has_buffers_for_all_of_the_delay_where_jitter_is_too_much_so_far() {
    let buffers = |jitter| {
        let mut rcap = b();
        let request = ChannelRequest { goal: Goal { delay: ms(300), jitter }, ..ask(C) };
        rcap.on_message(at(1), A, &request_of(of(1, 1), request, &[A], ms(9))).unwrap();
        let entry = reserved(&drain(&mut rcap)).unwrap();
        rcap.reserved(at(2), entry, hop());
        rcap.buffer_octets()
    };
    assert!(buffers(None) > 0);
    assert_eq!(buffers(Some(ms(1))), buffers(None));
}

#[test]
fn chances_add_up_along_the_path() {
    let mut rcap = b();
    let late_most = Chance::of_down(1, 1_000);
    let loss_most = Chance::of_down(1, 500);
    let request = ChannelRequest { late_most, loss_most, ..ask(C) };
    rcap.on_message(at(1), A, &request_of(of(1, 1), request, &[A], ms(9))).unwrap();
    let outputs = drain(&mut rcap);
    let [RcapOutput::Reserve { entry, late_most: given, .. }] = outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(given, late_most, "one hop is left, and a message is one packet");
    rcap.reserved(at(2), entry, HopOffer { late: Chance::of_up(2, 1_000), ..hop() });
    assert_eq!(denial(&drain(&mut rcap)).unwrap().test, RcapTest::PathChance);
    // A message of several packets is late if one of them is, and nothing may be late that may not be lost.
    let given = |request: ChannelRequest| {
        let mut rcap = b();
        rcap.on_message(at(1), A, &request_of(of(1, 1), request, &[A], ms(9))).unwrap();
        let outputs = drain(&mut rcap);
        let [RcapOutput::Reserve { late_most, .. }] = outputs[..] else { panic!("{outputs:?}") };
        late_most
    };
    let packet_max = Octets::new(request.messages.s_max.get().div_ceil(4));
    assert_eq!(given(ChannelRequest { packet_max, ..request }).get(), late_most.get() / 4);
    assert_eq!(given(ChannelRequest { loss_most: Chance::NEVER, ..request }), Chance::NEVER);
}

/// Fault 39: by user and by neighbour.
#[test]
fn quotas_and_limits_refuse_by_name() {
    let quota = Quota { channels: 2, octets_a_second: 250_000 };
    let mut rcap = machine(RcapLimits { quota, waiting_of_neighbour: 3, ..RcapLimits::default() });
    let mut test = |channel, uid| {
        let request = ChannelRequest { uid, ..ask(C) };
        rcap.on_message(at(1), A, &request_of(of(channel, 1), request, &[A], ms(9))).unwrap();
        denial(&drain(&mut rcap)).map(|denied| (denied.test, denied.standing, (denied.needed, denied.most)))
    };
    assert_eq!((test(1, 9), test(2, 9)), (None, None));
    assert_eq!(test(3, 9), Some((RcapTest::QuotaChannels, RcapStanding::RaceLast, (3, 2))));
    assert_eq!(
        (test(4, 10), test(5, 11)),
        (None, Some((RcapTest::TableFull, RcapStanding::RaceLast, (0, 0))))
    );
    let quota = Quota { channels: 9, octets_a_second: 250_000 };
    let quotas = BTreeMap::from([(9, quota)]);
    let mut rcap = machine(RcapLimits { quotas, attempts: 1, ..RcapLimits::default() });
    let mut test = |uid| {
        numbered(&mut rcap, ChannelRequest { uid, ..ask(C) }).unwrap();
        denial(&drain(&mut rcap))
            .map(|denied| (denied.test, denied.nearest_octets, (denied.needed, denied.most)))
    };
    // Each has 100,000 octets a second, in 1,000 each 10 ms.
    assert_eq!(
        (test(9), test(9), test(9)),
        (None, None, Some((RcapTest::QuotaReserved, 500, (300_000, 250_000))))
    );
    assert_eq!(test(8), None, "another user has another quota");
    let mut rcap = machine(RcapLimits { buffer_octets: 5_999, ..RcapLimits::default() });
    rcap.on_message(at(1), A, &request(1, 1)).unwrap();
    let entry = reserved(&drain(&mut rcap)).unwrap();
    rcap.reserved(at(2), entry, hop());
    assert_eq!(denial(&drain(&mut rcap)).unwrap().test, RcapTest::PortBuffer);
}

/// It was refused without a word on what would fit.
#[test]
fn too_few_buffers_are_refused_with_the_longest_delay_that_they_hold() {
    let asks = |delay| {
        let mut rcap = machine(RcapLimits { channel_buffers: 40, ..RcapLimits::default() });
        let request = ChannelRequest { goal: Goal { delay, jitter: None }, ..ask(C) };
        rcap.on_message(at(1), A, &request_of(of(1, 1), request, &[A], ms(9))).unwrap();
        let entry = reserved(&drain(&mut rcap)).unwrap();
        rcap.reserved(at(2), entry, hop());
        denial(&drain(&mut rcap))
    };
    let denied = asks(ms(1_000)).unwrap();
    let nearest = Span::from_nanos(denied.nearest_delay_ns);
    assert!(denied.test == RcapTest::PortBuffer && ms(300) < nearest && nearest < ms(400), "{denied:?}");
    assert_eq!(asks(nearest), None);
    assert!(asks(nearest + Span::from_nanos(1)).is_some(), "it is the longest one");
}
