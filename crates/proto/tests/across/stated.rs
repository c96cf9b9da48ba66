//! The parts of a certificate that the nodes of a way state (TENET-R16).

use super::suite::parted;
use super::{PERIOD, SERVICE, chain, id, incoming, meet, opened, request, until};
use crate::hops::Net;
use rota_admission::Clocks;
use rota_admission::certificate::{FrameTerms, PortPart, RetherTerms, SlotsTerms, Standing};
use rota_admission::rtip::{Discipline, Hold, Scheduler};
use rota_proto::MediumKind::{Link, Rether};
use rota_proto::{ChannelDetail, ChannelEvent, OpenRequest, TrafficSpec};
use rota_units::Span;

/// The port of a link that the second node of a way states, with all that is served there. The flow of the
/// channel has the bound of the hop.
fn port_of(detail: &ChannelDetail) -> (PortPart, Vec<Standing>) {
    let (record, _) = &detail.hops[1];
    let terms = rota_wire::RcapTerms::parse(&record.terms).expect("a node of a link states its part");
    let mut flows = Vec::new();
    let part = PortPart::read(&mut terms.numbers(), &mut |flow| flows.push(flow), &mut |_, _| ());
    let part = part.expect("its numbers are a port");
    assert_eq!(terms.medium, 2);
    assert_eq!(flows[part.own].delay + Span::from_nanos(part.frame.host_slack), record.hop.offer.delay);
    (part, flows)
}

/// A gateway to a link states its port with all that is served there, from its own grant.
#[test]
fn a_node_states_its_port_of_a_link_for_the_certificate() {
    let mut net = chain(&[Rether, Link, Rether]);
    opened(&mut net, 3_000);
    net.told.clear();
    let (sending, _, _) = opened(&mut net, 5_000);
    let detail = net.nodes[0].detail(sending).expect("it is sent here");
    let (part, flows) = port_of(&detail);
    let packets = detail.terms.messages.packets(detail.terms.packet_max).expect("sound");
    let own = flows[part.own].ask;
    assert_eq!((own.traffic, own.octets), (Clocks::APART.counted(&packets.traffic), packets.octets));
    // The share of ordinary traffic, and two channels.
    assert_eq!(flows.len(), 3);
    assert!(!part.load.by_levels && part.load.work > Span::ZERO, "announcements go first");
    let levels = Discipline::of(Some(Scheduler::Rcsp), Some(Hold::RateJitter)).expect("usual");
    let mut net = meet(Net::with(&[Rether, Link], levels));
    let (sending, _, _) = opened(&mut net, 3_000);
    let (part, flows) = port_of(&net.nodes[0].detail(sending).expect("as before"));
    assert!(part.load.by_levels && flows.len() == 2);
}

/// The source knows each hop: its part of the certificate, its counts, and the destination's.
#[test]
fn each_node_of_the_way_states_its_part_of_the_certificate() {
    let mut net = chain(&[Rether, Rether]);
    let (sending, receiving, bound) = opened(&mut net, 5_000);
    let detail = net.nodes[0].detail(sending).expect("it is sent here");
    assert!(net.nodes[2].detail(receiving).is_none(), "the way is known at the source");
    let nodes: Vec<_> = detail.hops.iter().map(|(record, name)| (record.node, &**name)).collect();
    assert_eq!(nodes, [(id(0), "n0"), (id(1), "n1")]);
    for (record, _) in &detail.hops {
        let part = rota_wire::RcapTerms::parse(&record.terms).expect("a node of RETHER states its part");
        let count = FrameTerms::NAMES.len() + RetherTerms::NAMES.len();
        assert_eq!((part.medium, part.numbers().count()), (1, count));
        assert!(record.terms.len() < 200, "a record stays small: {}", record.terms.len());
    }
    let hops: Span = detail.hops.iter().map(|(record, _)| record.hop.offer.delay).sum();
    let packets = detail.terms.messages.packets(detail.terms.packet_max).expect("sound");
    let sum = Clocks::APART.longer(hops + packets.spread);
    assert_eq!(sum, bound, "the promise is the sum of the hops and the spread, on any clock");
    for number in 0..30 {
        net.unit(sending, number, 5_000);
        net.run(PERIOD);
    }
    net.run(Span::from_millis(1_200));
    let detail = net.nodes[0].detail(sending).expect("as before");
    let counts: Vec<_> = detail.hops.iter().map(|(record, _)| record.counts).collect();
    let packets = 30 * packets.count;
    assert!(counts.iter().all(|counts| (counts.packets, counts.dropped) == (packets, 0)), "{counts:?}");
    let (came, _) = detail.destination.expect("it has told");
    assert_eq!((came.node, came.counts.packets, came.counts.dropped), (id(2), 30, 0));
}

/// A channel of one segment states its share as it is, also after each change, whatever else its port serves.
#[test]
fn a_channel_of_one_segment_states_its_share_after_each_change() {
    let levels = Discipline::of(Some(Scheduler::Rcsp), Some(Hold::RateJitter)).expect("usual");
    let shares = parted(&[("studio", 40)]);
    let links = [chain(&[Link]), meet(Net::with(&[Link], levels)), meet(Net::parted(&[Link], shares))];
    let rings = [chain(&[Rether]), meet(Net::parted(&[Rether], shares))];
    for (mut net, medium) in links.map(|net| (net, 2)).into_iter().chain(rings.map(|net| (net, 1))) {
        net.nodes[1].listen(SERVICE);
        let traffic = TrafficSpec::fixed(2_000, PERIOD, false).with_room(9_000);
        let (now, request) = (net.now, OpenRequest { traffic, ..request(1, 2_000) });
        let sending = net.nodes[0].open(now, &request).expect("sound");
        net.drain(0);
        let (receiving, ..) = until(&mut net, 1, incoming);
        let now = net.now;
        assert!(net.nodes[1].accept(now, receiving));
        net.drain(1);
        let granted = |event: &ChannelEvent| match event {
            ChannelEvent::Opened { granted, .. } | ChannelEvent::Changed { granted, .. } => Some(*granted),
            _ => None,
        };
        let mut of_each = Vec::new();
        for octets in [2_000, 9_000, 500] {
            if octets != 2_000 {
                let now = net.now;
                net.nodes[0].resize(now, sending, octets).expect("it has room");
                net.drain(0);
            }
            let promised = until(&mut net, 0, granted);
            net.told.clear();
            let detail = net.nodes[0].detail(sending).expect("it is sent here");
            let (record, _) = &detail.hops[0];
            let part = rota_wire::RcapTerms::parse(&record.terms).expect("its part");
            let mut numbers = part.numbers();
            let time = if medium == 2 {
                assert_eq!(numbers.next(), Some(0), "it is no flow");
                FrameTerms::read(&mut numbers).and_then(|_| SlotsTerms::read(&mut numbers)).map(|of| of.slot)
            } else {
                FrameTerms::read(&mut numbers).and_then(|_| RetherTerms::read(&mut numbers)).map(|of| of.tht)
            };
            assert_eq!((part.medium, numbers.next()), (medium, None));
            let offer = record.hop.offer;
            assert_eq!(offer.delay + offer.link_most, promised.bound());
            assert_eq!(u64::from(promised.contract.unit_octets_max), detail.terms.messages.s_max.get());
            of_each.push(time.expect("its numbers"));
        }
        assert!(of_each[0] < of_each[1] && of_each[2] < of_each[0], "{of_each:?}");
    }
}
