use super::*;

/// A request for a channel that looks for another path for 100 ms.
fn lasting(destination: NodeId) -> ChannelRequest {
    ChannelRequest { reroute: ms(100), ..ask(destination) }
}

/// Channel 1 of A is received at B.
fn received() -> Rcap {
    let mut rcap = b();
    rcap.on_message(at(1), A, &request_of(of(1, 1), lasting(B), &[A], ms(50))).unwrap();
    drain(&mut rcap);
    rcap.answer(at(2), key_of(1), true).unwrap();
    drain(&mut rcap);
    rcap
}

/// Channel 1 of A goes on at B, to C.
fn passed() -> Rcap {
    let mut rcap = b();
    rcap.on_message(at(1), A, &request_of(of(1, 1), lasting(C), &[A], ms(2_000))).unwrap();
    let entry = reserved(&drain(&mut rcap)).expect("a share is asked for");
    rcap.reserved(at(2), entry, hop());
    drain(&mut rcap);
    rcap.on_message(at(3), C, &accept(of(1, 1), &[record(A), own()])).unwrap();
    let outputs = drain(&mut rcap);
    let [RcapOutput::Relax { delay, .. }] = outputs[..] else { panic!("{outputs:?}") };
    rcap.relaxed(at(4), entry, Offer { delay, ..offer() }, Vec::new());
    drain(&mut rcap);
    rcap
}

fn closed(outputs: &[RcapOutput]) -> Option<(CloseCause, NodeId)> {
    match event(outputs) {
        Some(RcapEvent::Closed { sending: false, cause, node, .. }) => Some((*cause, *node)),
        _ => None,
    }
}

/// The causes of the closes among the outputs, and their receivers.
fn closes(outputs: &[RcapOutput]) -> Vec<(NodeId, CloseCause)> {
    let of = |output: &RcapOutput| match output {
        RcapOutput::Send { to, message } => match RcapMessage::parse(message).unwrap().body {
            RcapBody::CloseForward(close) => Some((*to, close.cause)),
            _ => None,
        },
        _ => None,
    };
    outputs.iter().filter_map(of).collect()
}

fn close(rcap: &mut Rcap, now: u64, cause: CloseCause) {
    let close = RcapClose { cause, node: A };
    rcap.on_message(at(now), A, &octets(of(1, 1), RcapBody::CloseForward(close))).unwrap();
}

/// Its destination waited for another path for two seconds, and for the time that the source asks for.
#[test]
fn a_channel_ends_with_the_death_of_its_source_whatever_is_known_first() {
    let mut rcap = received();
    rcap.neighbour_died(at(10), A);
    assert_eq!(closed(&drain(&mut rcap)[1..]), Some((CloseCause::PeerDied, A)), "by its will");
    let mut rcap = received();
    rcap.neighbour_lost(at(10), A);
    assert_eq!(closed(&drain(&mut rcap)[1..]), None, "it waits");
    rcap.neighbour_died(at(11), A);
    assert_eq!(closed(&drain(&mut rcap)), Some((CloseCause::PeerDied, A)));
    assert_eq!(rcap.deadline(), Instant::FAR);
    rcap.neighbour_died(at(12), A);
    assert_eq!(drain(&mut rcap), [], "once");
}

#[test]
fn a_node_on_the_way_tells_of_the_death_behind_the_failure_and_the_destination_hears_it() {
    let mut rcap = passed();
    rcap.neighbour_died(at(10), A);
    assert_eq!(closes(&drain(&mut rcap)), [(C, CloseCause::PeerDied)]);
    let mut rcap = passed();
    rcap.neighbour_lost(at(10), A);
    assert_eq!(closes(&drain(&mut rcap)), [(C, CloseCause::PeerGone)]);
    rcap.neighbour_died(at(11), C);
    assert_eq!(closes(&drain(&mut rcap)), [], "it is no source");
    rcap.neighbour_died(at(12), A);
    assert_eq!(closes(&drain(&mut rcap)), [(C, CloseCause::PeerDied)]);
    // The node before tells: of the source, and only where the path was, while the destination waits.
    for (later, told) in [(20, vec![(C, CloseCause::PeerDied)]), (5_000, vec![])] {
        let mut rcap = passed();
        close(&mut rcap, 10, CloseCause::PeerGone);
        drain(&mut rcap);
        close(&mut rcap, 11, CloseCause::PeerGone);
        assert_eq!(closes(&drain(&mut rcap)), [], "nothing that it has not told");
        close(&mut rcap, later, CloseCause::PeerDied);
        assert_eq!(closes(&drain(&mut rcap)), told);
    }
    let mut rcap = received();
    close(&mut rcap, 10, CloseCause::PeerGone);
    assert_eq!(closed(&drain(&mut rcap)[1..]), None, "it waits");
    close(&mut rcap, 11, CloseCause::PeerDied);
    assert_eq!(closed(&drain(&mut rcap)), Some((CloseCause::PeerDied, A)));
}

/// A channel that its program closed has no path that failed.
#[test]
fn an_end_that_is_wanted_is_no_failure_and_a_death_behind_it_is_no_news() {
    let mut rcap = passed();
    close(&mut rcap, 10, CloseCause::Finished);
    drain(&mut rcap);
    rcap.neighbour_died(at(11), A);
    assert_eq!(drain(&mut rcap), []);
}

/// Channel 1 of D, in this attempt.
fn of_d(attempt: u16) -> RcapChannel {
    RcapChannel { origin: D, channel: ChannelId(1), attempt }
}

fn key_of_d() -> ChannelKey {
    ChannelKey { origin: D, channel: ChannelId(1) }
}

/// Another path or another contract of it comes by this neighbour.
fn comes(rcap: &mut Rcap, now: u64, from: NodeId, attempt: u16, is_change: bool) -> Vec<RcapOutput> {
    let records = record::written(&[record(D), record(from)], RCAP_OCTETS_MAX);
    let nodes = RcapRecords::parse(&records, 2).unwrap();
    let demand = record::Demand::of(at(0), lasting(B)).unwrap();
    let wire = demand.to_wire(at(0), ms(50), nodes, Default::default());
    let again = Some(anew(is_change, NodeId::UNKNOWN));
    let request = RcapRequest { again, ..wire };
    rcap.on_message(at(now), from, &octets(of_d(attempt), RcapBody::EstablishRequest(request))).unwrap();
    drain(rcap)
}

/// Another path of it comes by this neighbour.
fn come_again(rcap: &mut Rcap, now: u64, from: NodeId, attempt: u16) {
    let outputs = comes(rcap, now, from, attempt, false);
    assert!(matches!(event(&outputs), Some(RcapEvent::Again { .. })), "it goes on");
}

/// A neighbour says of an attempt how it ended, and by which node.
fn say(rcap: &mut Rcap, now: u64, from: NodeId, attempt: u16, (cause, node): (CloseCause, NodeId)) {
    let close = RcapBody::CloseForward(RcapClose { cause, node });
    rcap.on_message(at(now), from, &octets(of_d(attempt), close)).unwrap();
}

const DEATH: (CloseCause, NodeId) = (CloseCause::PeerDied, D);
const BREAK: (CloseCause, NodeId) = (CloseCause::PeerGone, D);

/// Channel 1 of D came to B by A, and comes by C now.
fn moved() -> Rcap {
    let mut rcap = b();
    rcap.on_message(at(1), A, &request_of(of_d(1), lasting(B), &[D, A], ms(50))).unwrap();
    drain(&mut rcap);
    rcap.answer(at(2), key_of_d(), true).unwrap();
    drain(&mut rcap);
    say(&mut rcap, 10, A, 1, BREAK);
    assert_eq!(closed(&drain(&mut rcap)[1..]), None, "it waits");
    come_again(&mut rcap, 20, C, 2);
    rcap
}

/// The word came by the first path, before the second one broke, and was forgotten: the destination waited
/// four seconds.
#[test]
fn a_death_that_is_told_on_the_path_before_counts_when_the_newest_one_breaks() {
    let mut rcap = moved();
    say(&mut rcap, 30, A, 1, DEATH);
    assert_eq!(drain(&mut rcap), [], "the path stands");
    say(&mut rcap, 31, C, 2, BREAK);
    assert_eq!(closed(&drain(&mut rcap)[1..]), Some(DEATH));
    assert_eq!(rcap.deadline(), Instant::FAR, "nobody waits");
    // The other way round.
    let mut rcap = moved();
    say(&mut rcap, 31, C, 2, BREAK);
    assert_eq!(closed(&drain(&mut rcap)[1..]), None, "it waits");
    say(&mut rcap, 32, A, 1, DEATH);
    assert_eq!(closed(&drain(&mut rcap)), Some(DEATH));
}

/// One word, true or not, closed the channel at its next failure however much later that came.
#[test]
fn a_death_is_forgotten_where_the_path_stands_beyond_it() {
    let mut rcap = moved();
    say(&mut rcap, 30, A, 1, DEATH);
    say(&mut rcap, 30 + 2_000, C, 2, BREAK);
    assert_eq!(closed(&drain(&mut rcap)[1..]), None, "it waits");
    let mut rcap = moved();
    say(&mut rcap, 30, A, 1, DEATH);
    say(&mut rcap, 30 + 1_999, C, 2, BREAK);
    assert_eq!(closed(&drain(&mut rcap)[1..]), Some(DEATH));
}

/// The contract that followed knew nothing of it, and its destination waited.
#[test]
fn a_death_that_is_told_on_the_path_before_outlives_a_change_of_the_contract() {
    // Before the change, while there are two contracts, and behind it.
    for told in 0..3u64 {
        let mut rcap = moved();
        let tell = |rcap: &mut Rcap, step| {
            if step == told {
                say(rcap, 30 + step, A, 1, DEATH);
                assert_eq!(drain(rcap), [], "the path stands");
            }
        };
        tell(&mut rcap, 0);
        let outputs = comes(&mut rcap, 31, C, 3, true);
        assert!(matches!(event(&outputs), Some(RcapEvent::Changing { .. })), "{outputs:?}");
        tell(&mut rcap, 1);
        say(&mut rcap, 32, C, 2, (CloseCause::ReservationLost, D));
        drain(&mut rcap);
        tell(&mut rcap, 2);
        say(&mut rcap, 40, C, 3, BREAK);
        let outputs = drain(&mut rcap);
        assert_eq!(closed(&outputs[1..]), Some(DEATH), "told {told}: {outputs:?}");
    }
}

/// Any neighbour could end a channel that waited for another path.
#[test]
fn a_death_is_believed_from_neighbours_that_the_packets_came_from() {
    let mut rcap = b();
    rcap.on_message(at(1), A, &request_of(of_d(1), lasting(B), &[D, A], ms(50))).unwrap();
    drain(&mut rcap);
    rcap.answer(at(2), key_of_d(), true).unwrap();
    drain(&mut rcap);
    // Nobody ends, by such a word, a channel whose path stands.
    for (from, attempt) in [(C, 1), (C, 7)] {
        let before = rcap.counters().stray;
        say(&mut rcap, 5, from, attempt, DEATH);
        assert_eq!((drain(&mut rcap), rcap.counters().stray), (vec![], before + 1));
    }
    say(&mut rcap, 10, A, 1, BREAK);
    drain(&mut rcap);
    say(&mut rcap, 11, C, 1, DEATH);
    assert_eq!(drain(&mut rcap), [], "no packet came from there");
    come_again(&mut rcap, 20, C, 2);
    // Of the newest attempt only the neighbour of the newest path knows.
    say(&mut rcap, 21, A, 2, DEATH);
    say(&mut rcap, 22, C, 2, BREAK);
    assert_eq!(closed(&drain(&mut rcap)[1..]), None, "it waits still");
    say(&mut rcap, 23, C, 2, DEATH);
    assert_eq!(closed(&drain(&mut rcap)), Some(DEATH));
}

/// Of the path before, the neighbour of the newest one knows nothing.
#[test]
fn a_death_on_the_path_before_is_believed_from_the_neighbour_of_that_path_alone() {
    let mut rcap = moved();
    let before = rcap.counters().stray;
    say(&mut rcap, 30, C, 1, DEATH);
    assert_eq!((drain(&mut rcap), rcap.counters().stray), (vec![], before + 1));
    say(&mut rcap, 31, C, 2, BREAK);
    assert_eq!(closed(&drain(&mut rcap)[1..]), None, "it waits");
}

/// A channel that is open here again ended with two words, of which one went along the old way.
#[test]
fn a_node_on_the_way_of_two_attempts_tells_of_a_death_once() {
    let mut rcap = passed();
    close(&mut rcap, 10, CloseCause::PeerGone);
    drain(&mut rcap);
    let again = Some(anew(false, NodeId::UNKNOWN));
    let records = record::written(&[record(A)], RCAP_OCTETS_MAX);
    let nodes = RcapRecords::parse(&records, 1).unwrap();
    let demand = record::Demand::of(at(0), lasting(C)).unwrap();
    let wire = demand.to_wire(at(0), ms(2_000), nodes, Default::default());
    let request = RcapBody::EstablishRequest(RcapRequest { again, ..wire });
    rcap.on_message(at(20), A, &octets(of(1, 2), request)).unwrap();
    let entry = reserved(&drain(&mut rcap)).expect("a share is asked for");
    rcap.reserved(at(21), entry, hop());
    drain(&mut rcap);
    let mut early = rcap.clone();
    rcap.on_message(at(22), C, &accept(of(1, 2), &[record(A), own()])).unwrap();
    let outputs = drain(&mut rcap);
    let [RcapOutput::Relax { delay, .. }] = outputs[..] else { panic!("{outputs:?}") };
    rcap.relaxed(at(23), entry, Offer { delay, ..offer() }, Vec::new());
    drain(&mut rcap);
    let mut broken = rcap.clone();
    rcap.neighbour_died(at(30), A);
    assert_eq!(closes(&drain(&mut rcap)), [(C, CloseCause::PeerDied)], "once");
    // Behind a second failure there is one word, too.
    broken.neighbour_lost(at(30), A);
    assert_eq!(closes(&drain(&mut broken)), [(C, CloseCause::PeerGone)]);
    broken.neighbour_died(at(31), A);
    assert_eq!(closes(&drain(&mut broken)), [(C, CloseCause::PeerDied)]);
    // Its destination waits for an attempt that is not open yet: the word about the path before ends that.
    early.neighbour_died(at(30), A);
    assert!(closes(&drain(&mut early)).contains(&(C, CloseCause::PeerDied)));
}
