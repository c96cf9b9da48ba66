//! Channels across segments whose program takes their frames itself, from a queue that the kernel fills.

use crate::hops::{Net, ms, packet_of};
use rota_contract::NodeId;
use rota_proto::MediumKind::{Link, Rether};
use rota_proto::{
    Beyond, ChannelEvent, ChannelId, DataFacts, Destination, Facing, MediumKind, OpenRequest, ReaderCounts,
    TrafficSpec,
};
use rota_units::Span;
use rota_wire::{DEFAULT_ETHERTYPE, FrameView, HALF_OCTETS, PayloadKind};

const PERIOD: Span = Span::from_millis(40);
const SERVICE: u16 = 7;

/// A chain with a channel from the first node to the last one, and what the last one knows of its frames
/// when its program is asked: its number there.
fn open(kinds: &[MediumKind]) -> (Net, ChannelId, ChannelId, Option<Facing>) {
    let mut net = Net::new(kinds);
    let last = net.last();
    let links: Vec<_> = (0..last).map(|node| (node, node + 1)).collect();
    net.meet(0..=last, &links);
    net.nodes[last].listen(SERVICE);
    let to = Destination::Node(NodeId(last as u64 + 1));
    let request = OpenRequest { to, service: SERVICE, traffic: TrafficSpec::fixed(5_000, PERIOD, false) };
    let sending = net.nodes[0].open_beyond(net.now, &request, Beyond::default()).expect("sound");
    net.drain(0);
    let incoming = |net: &Net| {
        net.told.iter().find_map(|(of, event)| match event {
            ChannelEvent::Incoming { channel, .. } if *of == last => Some(*channel),
            _ => None,
        })
    };
    let receiving = (0..3_000).find_map(|_| {
        net.run(ms(1));
        incoming(&net)
    });
    let receiving = receiving.expect("its program is asked");
    let facing = net.nodes[last].facing(receiving);
    assert!(net.nodes[last].accept(net.now, receiving));
    net.drain(last);
    net.run(ms(200));
    (net, sending, receiving, facing)
}

/// The kernel has to know a channel before its first packet comes: its local id was given with the accept.
#[test]
fn the_frames_of_a_channel_are_known_before_its_sender_may_send() {
    let (mut net, sending, receiving, facing) = open(&[Link, Link]);
    let facing = facing.expect("it ends behind a link");
    let now = net.nodes[2].facing(receiving).expect("it is open");
    let facts = facing.facts;
    assert_eq!((now.port, now.fragment_octets), (facing.port, facing.fragment_octets));
    assert_eq!(now.facts, DataFacts { counter: now.facts.counter, ..facts.clone() }, "nothing else changes");
    assert_eq!((facts.payload, facing.one_clock), (PayloadKind::Rtip, false));
    for number in 0..3 {
        net.unit(sending, number, 5_000);
        net.run(PERIOD);
    }
    let by_gateway = net.sent.iter().filter(|sent| sent.node == 1);
    let mut counter = facts.counter;
    let mut packets = 0;
    for sent in by_gateway {
        let view = FrameView::parse(&sent.frame, DEFAULT_ETHERTYPE).expect("a frame of ours");
        let header = view.header();
        assert_eq!(packet_of(&sent.frame).map(|packet| packet.local_id), Some(facts.label));
        assert_eq!((view.source_mac(), header.source), (facts.from, facts.source));
        assert_eq!((header.segment, header.incarnation), (facts.segment, facts.incarnation));
        assert_eq!((header.key_epoch, header.generation), (facts.key_epoch, facts.generation));
        assert!(header.seq > counter, "the counter rises");
        counter = header.seq;
        let end = view.body_offset() + view.body().len();
        let tags = &sent.frame[end..];
        assert_eq!(tags[..HALF_OCTETS], facts.header_key.tag(facts.payload, &sent.frame[..end]));
        assert_eq!(tags[HALF_OCTETS..2 * HALF_OCTETS], facts.channel_key.tag(&sent.frame[..end]));
        packets += 1;
    }
    assert!(packets >= 12, "{packets} packets of three units");
}

/// It was free for another channel once its own one had another path or contract, and the kernel still knew
/// it.
#[test]
fn a_channel_keeps_the_local_id_of_its_first_path_until_it_ends() {
    let (mut net, sending, ..) = open(&[Link, Link]);
    assert_eq!(net.nodes[2].holdings().faced, 1);
    let now = net.now;
    net.nodes[0].close(now, sending);
    net.drain(0);
    net.run(ms(3_000));
    assert_eq!(net.nodes[2].holdings(), rota_proto::Holdings::default());
}

/// The stations of a RETHER segment read each frame of data.
#[test]
fn no_frames_of_a_channel_are_known_that_ends_on_a_ring() {
    let (.., facing) = open(&[Link, Rether]);
    assert_eq!(facing, None);
}

/// The counts of the program take the place of those made of packets: the status of the path has them, and no
/// count falls.
#[test]
fn a_node_believes_the_program_of_a_channel_across_segments() {
    let (mut net, sending, receiving, _) = open(&[Link, Link]);
    let counts = ReaderCounts { units: 7, lost: 2, fragments: 28, next: 9, ..ReaderCounts::default() };
    net.nodes[2].take_counts(receiving, &counts);
    let fewer = ReaderCounts { units: 5, lost: 1, fragments: 20, next: 6, ..ReaderCounts::default() };
    net.nodes[2].take_counts(receiving, &fewer);
    let came = net.nodes[2].received(receiving).expect("it is open");
    assert_eq!((came.units, came.lost), (7, 2));
    assert_eq!(net.packets(2, 1).received, 0, "the port's count is the node's own");
    // Its packets come by the node now: the program counts them as it takes them.
    net.unit(sending, 0, 5_000);
    net.run(ms(1_500));
    assert_eq!(net.came.len(), 1, "it came");
    assert_eq!(net.nodes[2].received(receiving), Some(came));
    let told = net.told.iter().rev().find_map(|(of, event)| match event {
        ChannelEvent::Told { channel, tally } if (*of, *channel) == (0, sending) => Some(*tally),
        _ => None,
    });
    assert_eq!(told.map(|tally| tally.lost), Some(2), "its sender is told");
}
