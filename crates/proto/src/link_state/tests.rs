//! A graph of nodes whose connections stand, break and are repaired in any order.

use super::*;
use crate::rcap::{Graph, Route, Routes};
use proptest::prelude::*;
use rota_medium::door::PortId;

/// Nodes with ids from 1 on. The last ones do not forward.
struct World {
    nodes: Vec<LinkState>,
    links: BTreeSet<(usize, usize)>,
}

fn id(place: usize) -> NodeId {
    NodeId(place as u64 + 1)
}

/// The way from a node by what it knows.
fn first_hop(node: &LinkState, to: NodeId, avoid: &[NodeId]) -> Option<Route> {
    let mut graph = Graph::default();
    node.ways().for_each(|(from, to, _)| graph.lead((from, PortId(0)), to));
    let up = node.nodes().map(|(node, _)| node).collect();
    Routes::shortest(&graph, node.own, &up, &avoid.iter().copied().collect()).route(to)
}

impl World {
    fn new(nodes: usize, hosts: usize) -> Self {
        let node =
            |place: usize| LinkState::new(id(place), &format!("n{}", place + 1), place + hosts < nodes);
        Self { nodes: (0..nodes).map(node).collect(), links: BTreeSet::new() }
    }

    fn tell_adjacent(&mut self, place: usize) {
        let of = |(one, other): &(usize, usize)| match place {
            _ if *one == place => Some(id(*other)),
            _ if *other == place => Some(id(*one)),
            _ => None,
        };
        let adjacent: Vec<NodeId> = self.links.iter().filter_map(of).collect();
        self.nodes[place].adjacent(adjacent.into_iter().map(|node| (node, false)));
    }

    fn link(&mut self, one: usize, other: usize) {
        self.links.insert((one, other));
        self.nodes[one].connected(id(other));
        self.nodes[other].connected(id(one));
        [one, other].into_iter().for_each(|place| self.tell_adjacent(place));
    }

    fn cut(&mut self, one: usize, other: usize) {
        self.links.remove(&(one, other));
        self.nodes[one].disconnected(id(other));
        self.nodes[other].disconnected(id(one));
        [one, other].into_iter().for_each(|place| self.tell_adjacent(place));
    }

    /// A node dies and comes back with nothing in its memory, its links cut.
    fn restart(&mut self, place: usize) {
        let links: Vec<_> = self.links.iter().copied().filter(|(a, b)| *a == place || *b == place).collect();
        links.iter().for_each(|(one, other)| self.cut(*one, *other));
        let old = &self.nodes[place];
        let (name, forwards) = (old.stated[&id(place)].name.clone(), old.stated[&id(place)].forwards);
        self.nodes[place] = LinkState::new(id(place), &name, forwards);
        links.iter().for_each(|(one, other)| self.link(*one, *other));
    }

    /// Delivers one statement of each node in turn until none is left. Panics if that never ends.
    fn settle(&mut self) -> usize {
        let mut sent = 0;
        loop {
            let before = sent;
            for place in 0..self.nodes.len() {
                let mut octets = [0; LINK_STATE_OCTETS_MAX];
                let Some((to, len)) = self.nodes[place].poll(&mut octets) else { continue };
                sent += 1;
                self.nodes[to.0 as usize - 1].on_message(id(place), &octets[..len]).unwrap();
            }
            if sent == before {
                return sent;
            }
            assert!(sent < 100_000, "statements go round for ever");
        }
    }

    /// Hops between two nodes by a search of its own: all walks without a node twice.
    fn shortest(&self, from: usize, to: usize, seen: &mut Vec<usize>) -> Option<usize> {
        if from == to {
            return Some(0);
        }
        seen.push(from);
        let forwards = seen.len() == 1 || self.nodes[from].stated[&id(from)].forwards;
        let mut best = None;
        for next in (0..self.nodes.len()).filter(|_| forwards) {
            let linked = self.links.contains(&(from, next)) || self.links.contains(&(next, from));
            if linked && !seen.contains(&next) {
                let hops = self.shortest(next, to, seen).map(|hops| hops + 1);
                best = [best, hops].into_iter().flatten().min();
            }
        }
        seen.pop();
        best
    }

    /// The nodes of the way that packets take: each node sends them by its own ways.
    fn path(&self, from: usize, to: usize, avoid: &[NodeId]) -> Option<Vec<NodeId>> {
        let (mut at, mut path) = (from, Vec::new());
        while at != to {
            let next = first_hop(&self.nodes[at], id(to), avoid)?.hop.node;
            path.push(next);
            assert!(path.len() < 100, "packets go round for ever");
            at = next.0 as usize - 1;
        }
        Some(path)
    }

    fn check(&self) {
        for from in 0..self.nodes.len() {
            for to in (0..self.nodes.len()).filter(|to| *to != from) {
                let path = self.path(from, to, &[]);
                let hops = self.shortest(from, to, &mut Vec::new());
                assert_eq!(path.as_ref().map(Vec::len), hops, "from {from} to {to}: {path:?}");
                let route = first_hop(&self.nodes[from], id(to), &[]);
                assert_eq!(route.map(|route| route.hops as usize), hops);
                let walk: Vec<NodeId> = [id(from)].into_iter().chain(path.into_iter().flatten()).collect();
                for pair in walk.windows(2) {
                    let [one, other] = [pair[0], pair[1]].map(|node| node.0 as usize - 1);
                    assert!(self.links.contains(&(one, other)) || self.links.contains(&(other, one)));
                }
            }
        }
    }
}

#[test]
fn a_line_of_three_and_a_way_round() {
    let mut world = World::new(4, 0);
    world.link(0, 1);
    world.link(1, 2);
    world.settle();
    assert_eq!(world.path(0, 2, &[]), Some(vec![id(1), id(2)]));
    assert_eq!(world.path(0, 3, &[]), None);
    assert_eq!(world.path(0, 0, &[]), Some(vec![]));
    assert_eq!(world.nodes[2].called("n1").collect::<Vec<_>>(), [id(0)]);
    world.link(0, 3);
    world.link(2, 3);
    world.settle();
    assert_eq!(world.path(0, 2, &[]), Some(vec![id(1), id(2)]), "of two ways the lower id");
    assert_eq!(world.path(0, 2, &[id(1)]), Some(vec![id(3), id(2)]));
    assert_eq!(world.path(0, 2, &[id(1), id(3)]), None);
    world.cut(0, 1);
    world.settle();
    assert_eq!(world.path(0, 1, &[]), Some(vec![id(3), id(2), id(1)]));
}

#[test]
fn a_host_forwards_nothing_and_a_link_that_one_end_states_is_none() {
    let mut world = World::new(3, 2);
    world.link(0, 1);
    world.link(1, 2);
    world.settle();
    assert_eq!(world.path(0, 2, &[]), None, "node 2 does not forward");
    assert_eq!(world.path(1, 2, &[]), Some(vec![id(2)]));
    world.nodes[2].adjacent([].into_iter());
    world.settle();
    assert_eq!(world.path(1, 2, &[]), None);
}

#[test]
fn a_node_that_comes_back_states_itself_anew() {
    let mut world = World::new(3, 0);
    world.link(0, 1);
    world.link(1, 2);
    world.settle();
    (0..5).for_each(|_| {
        world.cut(0, 1);
        world.link(0, 1);
        world.settle();
    });
    world.restart(0);
    world.settle();
    world.check();
    assert_eq!(world.path(2, 0, &[]), Some(vec![id(1), id(0)]));
    world.cut(1, 2);
    world.settle();
    assert_eq!(world.path(2, 0, &[]), None);
}

/// Both statements had one number, and each side kept its own.
#[test]
fn a_statement_of_the_boot_before_with_the_same_number_does_not_stay() {
    let mut world = World::new(4, 0);
    world.link(1, 3);
    world.link(0, 3);
    world.settle();
    world.cut(0, 3);
    world.restart(0);
    world.restart(1);
    world.link(0, 1);
    world.settle();
    world.check();
}

#[test]
fn a_neighbour_that_invents_nodes_takes_no_more_memory() {
    let mut node = LinkState::new(id(0), "n1", true);
    let mut octets = [0; LINK_STATE_OCTETS_MAX];
    let mut tell = |node: &mut LinkState, origin: u64, neighbour: u64| {
        let named = (NodeId(origin), 1);
        let len =
            LinkStatement::emit(&mut octets, named, true, "x", [(NodeId(neighbour), false)].into_iter());
        node.on_message(id(1), &octets[..len]).unwrap();
    };
    tell(&mut node, 77, 2);
    assert_eq!(node.nodes().count(), 1, "nobody is connected");
    node.connected(id(1));
    // Each names the one before, which does not name it.
    (100..3_000).for_each(|origin| tell(&mut node, origin, origin - 1));
    assert!((1..=NODES_MAX).contains(&node.nodes().count()));
    assert_eq!(node.refused(), 0, "those that no link leads to make room");
    // A neighbour whose nodes hang together fills the room and no more.
    node.adjacent([(id(1), false)].into_iter());
    let mut octets = [0; LINK_STATE_OCTETS_MAX];
    for origin in 2..2_000u64 {
        let ids = if origin == 2 { [1, 3] } else { [origin - 1, origin + 1] };
        let named = (NodeId(origin), 1);
        let len =
            LinkStatement::emit(&mut octets, named, true, "x", ids.map(|id| (NodeId(id), false)).into_iter());
        node.on_message(id(1), &octets[..len]).unwrap();
    }
    assert_eq!(node.nodes().count(), NODES_MAX);
    assert_eq!(node.refused(), 2_000 - 1 - NODES_MAX as u64);
    assert!(first_hop(&node, NodeId(NODES_MAX as u64 - 1), &[]).is_some());
    assert!(node.on_message(id(1), &[1, 2, 3]).is_err());
}

proptest! {
    #[test]
    fn all_nodes_find_the_shortest_ways_whatever_breaks(
        nodes in 2usize..7, hosts in 0usize..3,
        steps in prop::collection::vec((0u8..6, 0usize..7, 0usize..7, any::<bool>()), 0..40)
    ) {
        let mut world = World::new(nodes, hosts.min(nodes - 1));
        for (kind, one, other, settles) in steps {
            let (one, other) = (one % nodes, other % nodes);
            let (one, other) = (one.min(other), one.max(other));
            match kind {
                _ if one == other => world.restart(one),
                0..4 => world.link(one, other),
                _ if world.links.contains(&(one, other)) => world.cut(one, other),
                _ => {}
            }
            if settles {
                world.settle();
            }
        }
        world.settle();
        world.check();
    }
}

/// One end of a link says that nothing is guaranteed on it: nothing is, for all who hear of both.
#[test]
fn the_word_of_one_end_withdraws_a_link() {
    let mut world = World::new(3, 0);
    world.link(0, 1);
    world.link(1, 2);
    world.nodes[2].adjacent([(id(1), true)].into_iter());
    world.settle();
    let withdrawn: Vec<_> = world.nodes[0].ways().filter(|(.., withdrawn)| *withdrawn).collect();
    assert_eq!(withdrawn, [(id(1), id(2), true), (id(2), id(1), true)]);
    assert_eq!(world.nodes[0].ways().count(), 4);
}
