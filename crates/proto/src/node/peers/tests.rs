//! Stations that are named, and nodes that are reached.

use super::*;
use crate::channels::OpenRequest;
use crate::io::{ChannelId, FrameBuf, PortId};
use crate::node::PortSpec;
use crate::{Identity, Settings};
use rota_contract::TrafficSpec;
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::bodies::StationState;
use rota_wire::{Announce, Key};

const A: PortId = PortId(0);
const B: PortId = PortId(1);
const OWN: NodeId = NodeId(0xa0);

fn mac(last: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, last])
}

fn station(last: u8, node: NodeId) -> Sender {
    Sender::Station { mac: mac(last), node }
}

fn way(port: PortId, last: u8) -> Way {
    Way { port, hop: mac(last) }
}

/// A station that says that it is there.
struct Said(PortId, u16, u8, u64, &'static str);

/// A node "own" of two ports, 0xa0 and 0xa1, that hears other stations.
struct Host {
    node: Node,
    now: Instant,
}

impl Host {
    fn new(all: &[Said]) -> Self {
        let settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
        let me = Identity { node_id: OWN, boot_id: 9, mac: mac(0xa0), name: "own".to_owned() };
        let secret = Key::new([1; 32]);
        let spec = |last| PortSpec { mac: mac(last), settings: settings.clone(), secret: secret.clone() };
        let now = Instant::from_nanos(1);
        let node = Node::with_ports(now, &me, &[spec(0xa0), spec(0xa1)], 1).expect("two ports");
        let mut host = Self { node, now };
        while host.node.ports().any(|port| port.medium().station() == 0) {
            host.now += Span::from_millis(5);
            host.node.handle_deadline(host.now);
            let mut bytes = [0; 1_600];
            let mut frame = FrameBuf { bytes: &mut bytes, payloads: &mut crate::drive::Zeros };
            while host.node.poll(host.now, &mut frame).is_some() {
                while host.node.next_event().is_some() {}
            }
        }
        all.iter().for_each(|said| host.hear(said));
        host
    }

    fn hear(&mut self, &Said(port, station, last, id, name): &Said) {
        let said = Announce::new(NodeId(id), 7, id >> 8, StationState::Plain, name);
        let line = self.node.lines.iter_mut().find(|line| line.port.id() == port).expect("a port");
        let rether = line.port.medium_mut().rether_mut().expect("RETHER");
        rether.meet_as(self.now, station, mac(last), &said);
    }

    fn open(&mut self, node: NodeId, way: Option<Way>) -> Result<ChannelId, RequestError> {
        let request = OpenRequest {
            to: Destination::Node(node),
            service: 7,
            traffic: TrafficSpec::fixed(100, crate::TRT_30_HZ, false),
        };
        self.node.go_on(self.now, way, &request, 0)
    }

    /// As a program opens a channel.
    fn open_to(&mut self, called: &str) -> Result<ChannelId, NotFound> {
        let Found { node, way } = self.node.find(called)?;
        Ok(self.open(node, Some(way))?)
    }
}

#[test]
fn a_name_a_number_and_an_address_mean_one_node() {
    let host = Host::new(&[Said(A, 2, 2, 0xb2, "b"), Said(B, 3, 3, 0xb3, "c")]);
    for called in ["c", "3", "02:00:00:00:00:03"] {
        assert_eq!(host.node.find(called), Ok(Found { node: NodeId(0xb3), way: way(B, 3) }), "{called}");
    }
    let known = vec!["b".to_owned(), "c".to_owned()];
    assert_eq!(host.node.find("d"), Err(NotFound::Unknown { known }));
    assert_eq!(host.node.find("own"), Err(RequestError::OwnStation(mac(0xa0)).into()));
}

/// Its channel was known by an address alone; a name is what its station says now.
#[test]
fn a_channel_stays_that_of_a_node_whose_name_changes() {
    let mut host = Host::new(&[Said(A, 2, 2, 0xb2, "b")]);
    let channel = host.open_to("b").expect("it is there");
    host.hear(&Said(A, 2, 2, 0xb2, "renamed"));
    assert_eq!((host.node.peer(channel), host.node.hop(channel)), (Some(NodeId(0xb2)), Some(mac(2))));
    assert_eq!(host.node.find("renamed").map(|found| found.node), Ok(NodeId(0xb2)));
    // Another node has its old name.
    host.hear(&Said(A, 3, 3, 0xb3, "b"));
    assert_eq!(host.node.find("b").map(|found| found.node), Ok(NodeId(0xb3)));
    assert_eq!(host.node.peer(channel), Some(NodeId(0xb2)));
}

#[test]
fn a_channel_to_an_id_of_two_nodes_is_refused_with_both_addresses() {
    let two = |other: Said| Host::new(&[Said(A, 2, 2, 0xb2, "b"), other]);
    for (port, name) in [(A, "c"), (B, "c")] {
        let mut host = two(Said(port, 3, 3, 0xb2, name));
        let refused = RequestError::DoubleNode { node: NodeId(0xb2), one: mac(2), other: mac(3) };
        for called in ["b", "c", "02:00:00:00:00:03"] {
            assert_eq!(host.open_to(called), Err(refused.into()), "{called}");
        }
        assert_eq!(host.open(NodeId(0xb2), None), Err(refused));
        let said = refused.to_string();
        assert!(said.contains("00000000000000b2, at 02:00:00:00:00:02 and 02:00:00:00:00:03"), "{said}");
    }
    // This one's own id.
    let mut host = two(Said(A, 3, 3, OWN.0, "c"));
    let refused = RequestError::DoubleNode { node: OWN, one: mac(0xa0), other: mac(3) };
    assert_eq!(host.open_to("c"), Err(refused.into()));
    assert!(host.open_to("b").is_ok(), "other nodes are reached");
}

#[test]
fn a_node_on_two_ports_is_reached_by_the_way_that_is_meant() {
    let mut host = Host::new(&[Said(A, 2, 2, 0xb2, "b"), Said(B, 3, 3, 0xb2, "b")]);
    let (node, one, other) = (NodeId(0xb2), way(A, 2), way(B, 3));
    let refused = RequestError::TwoWays { node, one, other };
    assert_eq!((host.open_to("b"), host.open(node, None)), (Err(refused.into()), Err(refused)));
    for meant in [one, other] {
        let channel = host.open_to(&meant.hop.to_string()).expect("its address is its way");
        assert_eq!((host.node.port_of(channel), host.node.hop(channel)), (Some(meant.port), Some(meant.hop)));
        assert_eq!(host.node.peer(channel), Some(node));
    }
    assert_eq!(host.open(node, Some(way(PortId(7), 2))), Err(RequestError::NoPort(PortId(7))));
}

#[test]
fn a_station_without_an_announcement_is_reached_and_its_node_is_learned() {
    let mut host = Host::new(&[Said(A, 2, 2, 0, "")]);
    let channel = host.open_to("2").expect("its number is known");
    assert_eq!(host.node.peer(channel), Some(NodeId::UNKNOWN));
    assert_eq!(host.node.find_sender("2"), Ok(station(2, NodeId::UNKNOWN)));
    host.hear(&Said(A, 2, 2, 0xb2, "b"));
    assert_eq!(host.node.peer(channel), Some(NodeId(0xb2)));
    assert_eq!(host.open(NodeId::UNKNOWN, None), Err(RequestError::NoSuchNode(NodeId::UNKNOWN)));
}

#[test]
fn a_sender_is_meant_by_its_name_or_else_by_its_address_and_its_node() {
    let host = Host::new(&[Said(A, 2, 2, 0xb2, "b")]);
    assert_eq!(host.node.find_sender("b"), Ok(Sender::Named("b".to_owned())), "another may take its place");
    for called in ["2", "02:00:00:00:00:02"] {
        assert_eq!(host.node.find_sender(called), Ok(station(2, NodeId(0xb2))), "{called}");
    }
    assert!(host.node.find_sender("c").is_err());
}

/// A listener for the address of one of two nodes of one id took channels of the other one; and one for a
/// node that draws another id at each start waited for ever.
#[test]
fn of_two_nodes_of_one_id_a_listener_waits_for_the_station_that_was_named() {
    let host = Host::new(&[Said(A, 2, 2, 0xb2, "b"), Said(B, 3, 3, 0xb2, "c")]);
    assert_eq!(host.node.find_sender("3"), Ok(station(3, NodeId::UNKNOWN)));
    let members = host.node.medium().members();
    let meant = |sender: Sender| sender.is(&members[0]);
    assert!(meant(station(2, NodeId(0xdd))) && meant(station(9, NodeId(0xb2))), "its address, or its id");
    assert!(!meant(station(3, NodeId::UNKNOWN)) && !meant(station(3, NodeId(0xdd))));
}

/// An announcement with settings in it has no name: the other port of the host was a second node.
#[test]
fn a_station_whose_name_is_not_known_is_a_port_of_the_same_host() {
    let mut host = Host::new(&[Said(A, 2, 2, 0xb2, ""), Said(B, 3, 3, 0xb2, "b")]);
    let refused = RequestError::TwoWays { node: NodeId(0xb2), one: way(A, 2), other: way(B, 3) };
    assert_eq!(host.open(NodeId(0xb2), None), Err(refused));
    assert!(host.open(NodeId(0xb2), Some(way(B, 3))).is_ok());
}

/// In a ring the dead stay members: a machine that had come back under another address was not found while
/// its old self had the lower number.
#[test]
fn of_two_stations_of_one_name_the_one_that_lives_is_meant() {
    let host = Host::new(&[Said(A, 2, 2, 0xb2, "b"), Said(A, 3, 3, 0xb2, "b")]);
    let members = host.node.medium().members();
    for (dead, found) in [(2, 3), (3, 2)] {
        let meant = meant(members, "b", |station| station == dead).map(|member| member.station);
        assert_eq!(meant, Some(found));
    }
    assert_eq!(meant(members, "b", |_| true).map(|member| member.station), Some(2));
    assert!(meant(members, "c", |_| false).is_none());
    assert_eq!(host.node.find("b"), Err(RequestError::DoubleName(mac(2), mac(3)).into()), "both live");
}
