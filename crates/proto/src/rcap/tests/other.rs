use super::*;

const E: NodeId = NodeId(5);

/// The machine of A on A - B - D - E with a way around B - D over C, and one around D over 6 and 7.
fn source() -> Rcap {
    let mut graph = Graph::default();
    let links = [(1, 2), (2, 4), (2, 3), (3, 4), (4, 5), (2, 6), (6, 7), (7, 5)];
    for (one, other) in links {
        graph.join((NodeId(one), PortId(other as u8)), (NodeId(other), PortId(one as u8)));
    }
    let mut rcap = Rcap::new(A, RcapLimits::default(), graph, 1);
    rcap.neighbour_up(at(0), B);
    rcap
}

/// The nodes that the request of an attempt names, and its number, once the own medium has reserved.
fn goes(rcap: &mut Rcap, now: Instant) -> Option<(Vec<u64>, u16)> {
    rcap.handle_deadline(now);
    let entry = reserved(&drain(rcap))?;
    rcap.reserved(now, entry, hop());
    drain(rcap).iter().find_map(|output| match output {
        RcapOutput::Send { message, .. } => {
            let RcapMessage { of, body } = RcapMessage::parse(message).unwrap();
            let RcapBody::EstablishRequest(request) = body else { return None };
            Some((request.way.via.iter().map(|node| node.0).collect(), of.attempt))
        }
        _ => None,
    })
}

fn denied(node: NodeId, test: RcapTest, nearest_octets: u32) -> RcapDenied {
    RcapDenied { nearest_octets, ..io::simply(node, test) }
}

fn deny(rcap: &mut Rcap, channel: ChannelId, attempt: u16, denied: RcapDenied) {
    let of = RcapChannel { origin: A, channel, attempt };
    rcap.on_message(at(2), B, &octets(of, RcapBody::EstablishDenied(denied))).unwrap();
}

/// Three other paths in the order of their hops, none over a link that has refused, each once; then the
/// program hears the first refusal.
#[test]
fn a_refused_request_takes_other_paths_and_tells_the_first_refusal() {
    let mut rcap = source();
    let channel = numbered(&mut rcap, ask(E)).unwrap();
    assert_eq!(goes(&mut rcap, at(1)), Some((vec![], 1)), "each node chooses the next one");
    let first = denied(B, RcapTest::Load, 700);
    deny(&mut rcap, channel, 1, first);
    assert_eq!(goes(&mut rcap, at(2)), Some((vec![2, 3, 4], 2)), "B - D has refused; this is as long, 3 < 6");
    // Too long in all: no link of it is at fault.
    deny(&mut rcap, channel, 2, denied(E, RcapTest::PathDelay, 0));
    assert_eq!(goes(&mut rcap, at(2)), Some((vec![2, 6, 7], 3)));
    deny(&mut rcap, channel, 3, denied(NodeId(7), RcapTest::EdfExact, 0));
    let outputs = drain(&mut rcap);
    assert_eq!(denial(&outputs), Some(first), "there is no further one");
    assert_eq!((rcap.entries().count(), rcap.deadline()), (0, Instant::FAR));
}

#[test]
fn a_node_that_is_full_is_passed_by_and_not_tried_by_its_other_links() {
    let mut rcap = source();
    let channel = numbered(&mut rcap, ask(E)).unwrap();
    goes(&mut rcap, at(1));
    deny(&mut rcap, channel, 1, denied(D, RcapTest::TableFull, 0));
    assert_eq!(goes(&mut rcap, at(2)), Some((vec![2, 6, 7], 2)));
}

/// The quota of the user here counts on all paths, and the receiver stands at the end of each.
#[test]
fn what_another_path_cannot_change_ends_the_request() {
    let of_path = denied(B, RcapTest::Load, 700);
    for (node, test) in [(E, RcapTest::ReceiverRefused), (E, RcapTest::NoListener), (E, RcapTest::TableFull)]
    {
        let mut rcap = source();
        let channel = numbered(&mut rcap, ask(E)).unwrap();
        goes(&mut rcap, at(1));
        deny(&mut rcap, channel, 1, denied(node, test, 0));
        assert_eq!(denial(&drain(&mut rcap)).map(|denied| denied.test), Some(test));
        // Behind the refusal of a path the word of the receiver is the one that counts.
        let channel = numbered(&mut rcap, ask(E)).unwrap();
        goes(&mut rcap, at(1));
        deny(&mut rcap, channel, 1, of_path);
        goes(&mut rcap, at(2)).expect("another path");
        deny(&mut rcap, channel, 2, denied(node, test, 0));
        let told = if test == RcapTest::TableFull { RcapTest::Load } else { test };
        assert_eq!(denial(&drain(&mut rcap)).map(|denied| denied.test), Some(told));
    }
    let quota = Quota { channels: 0, octets_a_second: 0 };
    let mut rcap = source();
    rcap.limits.quota = quota;
    numbered(&mut rcap, ask(E)).unwrap();
    assert_eq!(denial(&drain(&mut rcap)).map(|denied| denied.test), Some(RcapTest::QuotaChannels));
}

/// A gateway sends a request on to the next node that it names, whatever is shorter, and never back.
#[test]
fn a_gateway_follows_the_nodes_that_a_request_names() {
    let via = |nodes: &[u64], passed: &[NodeId]| {
        let mut rcap = source();
        rcap.own = B;
        [A, C, D, NodeId(6)].into_iter().for_each(|node| rcap.neighbour_up(at(0), node));
        let path = Nodes::of(nodes.iter().map(|node| NodeId(*node)));
        let demand = record::Demand { path, ..record::Demand::of(at(0), ask(E)).unwrap() };
        let records: Vec<Record> = passed.iter().map(|node| record(*node)).collect();
        rcap.route_of(&demand, &records).map(|route| (route.hop.node.0, route.hops))
    };
    assert_eq!(via(&[], &[A]), Some((4, 2)));
    assert_eq!(via(&[2, 3, 4], &[A]), Some((3, 3)));
    assert_eq!(via(&[2, 6, 7], &[A]), Some((6, 3)));
    assert_eq!(via(&[7], &[A]), Some((6, 3)), "nodes between may be left out");
    assert_eq!(via(&[3, 4], &[A, C]), Some((4, 2)), "C is passed");
    assert_eq!(via(&[3, 8], &[A, C]), None, "8 is unknown");
}
