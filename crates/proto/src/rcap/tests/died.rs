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
