//! The loop of simple parents serves every medium and every MTU.

use rota_contract::{NodeId, TrafficSpec};
use rota_proto::drive::{Duty, Given, Zeros, drain};
use rota_proto::{
    ChannelEvent, Destination, Identity, Input, Listener, MediumKind, Node, OpenRequest, Output, PortId,
    Settings, TRT_30_HZ, UnitRef,
};
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::{Key, MacAddr};

fn mac(k: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, k as u8 + 1])
}

fn node(now: Instant, k: usize) -> Node {
    let mut settings = Settings::ethernet_of(BitRate::from_mbit(100), Octets::new(150_000), 9_000);
    settings.medium.medium = MediumKind::Link;
    let identity = Identity { node_id: NodeId(k as u64 + 1), boot_id: 9, mac: mac(k), name: format!("n{k}") };
    Node::new(now, identity, &Key::new([1; 32]), settings, k as u64)
}

/// Does all that a node calls for; its frames, and the channel that has opened.
fn serve(node: &mut Node, now: Instant) -> (Vec<Vec<u8>>, bool) {
    let (mut frames, mut is_open) = (Vec::new(), false);
    drain(node, now, &mut Zeros, |given, duties| {
        duties.extend(given.duty().filter(|duty| !matches!(duty, Duty::ListenAgain(_))));
        match given {
            Given::Output(Output::Transmit { .. }, frame) => frames.push(frame.to_vec()),
            Given::Channel(ChannelEvent::Opened { .. }) => is_open = true,
            _ => {}
        }
    });
    (frames, is_open)
}

/// A node with an MTU of 9,000 had a buffer of 1,600 octets.
#[test]
fn two_nodes_of_a_link_send_long_frames() {
    let mut now = Instant::from_nanos(1_000_000_000);
    let mut nodes = [node(now, 0), node(now, 1)];
    nodes[1].listen(Listener { id: 1, service: 7, from: None });
    let (mut channel, mut longest, mut is_ready, mut wire) = (None, 0, false, Vec::new());
    for round in 0..6_000 {
        if round == 3_000 {
            let traffic = TrafficSpec::fixed(20_000, TRT_30_HZ, false);
            let request = OpenRequest { to: Destination::Node(NodeId(2)), service: 7, traffic };
            channel = Some(nodes[0].open(now, &request).expect("they have met"));
        }
        for k in [0, 1] {
            nodes[k].handle_deadline(now);
            let (frames, is_open) = serve(&mut nodes[k], now);
            if let Some(channel) = channel.filter(|_| is_open) {
                let unit = UnitRef { number: 0, octets: 20_000, schedule_ns: now.as_nanos(), left_out: 0 };
                nodes[k].handle(now, Input::UnitReady { channel, unit });
                is_ready = true;
            }
            wire.extend(frames.into_iter().map(|frame| (1 - k, frame)));
        }
        for (to, data) in core::mem::take(&mut wire) {
            longest = longest.max(data.len());
            nodes[to].handle(now, Input::Frame { port: PortId(0), at: Some(now), data: &data });
        }
        now += Span::from_millis(1);
    }
    assert!(is_ready && longest == 9_014, "{is_ready}, {longest}");
}
