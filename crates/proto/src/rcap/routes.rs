//! Next hops, by the shortest path over a graph that is stated.
//!
//! Each node computes its own next hop from the same graph. Nodes that know of different faults may so send a
//! request in a circle for a while; the records in it show that, and it is denied.

use super::io::NextHop;
use rota_contract::NodeId;
use rota_medium::door::PortId;
use std::collections::{BTreeMap, BTreeSet};

/// The nodes of a network and how they are joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The neighbours of each node, with the node's own port towards each.
    neighbours: BTreeMap<NodeId, BTreeMap<NodeId, PortId>>,
    /// The hops on which nothing is guaranteed.
    withdrawn: BTreeSet<(NodeId, NodeId)>,
}

impl Graph {
    /// Joins two nodes, each by its port. Of two ways between two nodes the one by the lower ports stays.
    pub fn join(&mut self, (one, one_port): (NodeId, PortId), (other, other_port): (NodeId, PortId)) {
        for (from, to, port) in [(one, other, one_port), (other, one, other_port)] {
            let ports = self.neighbours.entry(from).or_default();
            let kept = ports.get(&to).map_or(port, |before| port.min(*before));
            ports.insert(to, kept);
        }
    }

    /// One node leads to another one, by its port.
    pub fn lead(&mut self, (from, port): (NodeId, PortId), to: NodeId) {
        self.neighbours.entry(from).or_default().entry(to).or_insert(port);
    }

    /// On this hop nothing is guaranteed.
    pub fn withdraw(&mut self, from: NodeId, to: NodeId) {
        self.withdrawn.insert((from, to));
    }

    /// True if nothing is guaranteed on this hop.
    pub fn is_withdrawn(&self, from: NodeId, to: NodeId) -> bool {
        self.withdrawn.contains(&(from, to))
    }

    /// All hops, from one node to the next.
    pub fn hops(&self) -> impl Iterator<Item = (NodeId, NodeId)> {
        self.neighbours.iter().flat_map(|(from, ports)| ports.keys().map(|to| (*from, *to)))
    }

    /// The neighbours of a node, with its port towards each.
    pub fn neighbours(&self, node: NodeId) -> impl Iterator<Item = NextHop> {
        let ports = self.neighbours.get(&node).into_iter().flatten();
        ports.map(|(node, port)| NextHop { node: *node, port: *port })
    }
}

/// The way from one node to one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The first hop.
    pub hop: NextHop,
    /// How many hops there are.
    pub hops: u32,
    /// On how many of them nothing is guaranteed.
    pub withdrawn: u32,
}

/// The ways from one node to all others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    to: BTreeMap<NodeId, Route>,
}

impl Routes {
    /// The ways with the fewest hops (Dijkstra 1959) from `own` whose first hop is one of `up`, and that
    /// pass no node of `down`. Of two such ways the one by the smaller node id is taken. A way with fewer
    /// hops on which nothing is guaranteed goes before one with more, however long it is.
    pub fn shortest(graph: &Graph, own: NodeId, up: &BTreeSet<NodeId>, down: &BTreeSet<NodeId>) -> Self {
        let mut to: BTreeMap<NodeId, Route> = BTreeMap::new();
        let mut nearest = BTreeSet::new();
        let gap = |from, to| u32::from(graph.is_withdrawn(from, to));
        for hop in graph.neighbours(own).filter(|hop| up.contains(&hop.node)) {
            nearest.insert(((gap(own, hop.node), 1), hop.node, hop));
        }
        while let Some(((withdrawn, hops), node, hop)) = nearest.pop_first() {
            if node == own || down.contains(&node) || to.contains_key(&node) {
                continue;
            }
            to.insert(node, Route { hop, hops, withdrawn });
            let cost = |next| (withdrawn + gap(node, next), hops + 1);
            nearest.extend(graph.neighbours(node).map(|next| (cost(next.node), next.node, hop)));
        }
        Self { to }
    }

    /// All ways, by their destinations.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, Route)> {
        self.to.iter().map(|(node, route)| (*node, *route))
    }

    /// The way to a node.
    pub fn route(&self, to: NodeId) -> Option<Route> {
        self.to.get(&to).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nodes: &[u64]) -> BTreeSet<NodeId> {
        nodes.iter().map(|node| NodeId(*node)).collect()
    }

    /// 1 - 2 - 3 - 6 and 1 - 4 - 5 - 6, and 2 - 6 by two ports.
    fn graph() -> Graph {
        let mut graph = Graph::default();
        for (one, other) in [(1, 2), (2, 3), (3, 6), (1, 4), (4, 5), (5, 6), (2, 6)] {
            graph.join((NodeId(one), PortId(other as u8)), (NodeId(other), PortId(one as u8)));
        }
        graph.join((NodeId(2), PortId(9)), (NodeId(6), PortId(9)));
        graph
    }

    /// The same with a tunnel between 2 and 6.
    fn withdrawn() -> Graph {
        let mut graph = graph();
        graph.withdraw(NodeId(2), NodeId(6));
        graph.withdraw(NodeId(6), NodeId(2));
        graph
    }

    fn route(up: &[u64], down: &[u64], to: u64) -> Option<(u64, u8, u32)> {
        let routes = Routes::shortest(&graph(), NodeId(1), &of(up), &of(down));
        routes.route(NodeId(to)).map(|route| (route.hop.node.0, route.hop.port.0, route.hops))
    }

    #[test]
    fn the_shortest_way_that_is_up_is_taken() {
        assert_eq!(route(&[2, 4], &[], 6), Some((2, 2, 2)));
        assert_eq!(route(&[2, 4], &[], 5), Some((4, 4, 2)));
        assert_eq!(route(&[2, 4], &[2], 6), Some((4, 4, 3)));
        assert_eq!(route(&[4], &[], 6), Some((4, 4, 3)), "no session with 2");
        assert_eq!(route(&[4], &[], 2), Some((4, 4, 4)), "another way to a neighbour");
        assert_eq!(route(&[2, 4], &[2, 5], 6), None);
        assert_eq!(route(&[2, 4], &[], 1), None, "none to itself");
        assert_eq!(route(&[2, 4], &[], 7), None);
        let guaranteed = Routes::shortest(&withdrawn(), NodeId(1), &of(&[2, 4]), &of(&[]));
        let around = guaranteed.route(NodeId(6)).map(|route| (route.hop.node.0, route.hops, route.withdrawn));
        assert_eq!(around, Some((2, 3, 0)), "a longer way with a guarantee goes before");
        let no_other = Routes::shortest(&withdrawn(), NodeId(1), &of(&[2, 4]), &of(&[3, 5]));
        let through = no_other.route(NodeId(6)).map(|route| (route.hop.node.0, route.hops, route.withdrawn));
        assert_eq!(through, Some((2, 2, 1)));
        let two = graph().neighbours(NodeId(2)).map(|hop| hop.port.0).collect::<Vec<_>>();
        assert_eq!(two, [1, 3, 6], "of two ports the lower one");
    }

    /// The first hop counts as any other one.
    #[test]
    fn a_tunnel_to_a_neighbour_is_taken_only_where_no_guarantee_leads_around() {
        let mut graph = graph();
        graph.withdraw(NodeId(1), NodeId(2));
        graph.withdraw(NodeId(2), NodeId(1));
        let to_2 = |up: &[u64]| {
            let route = Routes::shortest(&graph, NodeId(1), &of(up), &of(&[])).route(NodeId(2));
            route.map(|route| (route.hop.node.0, route.hops, route.withdrawn))
        };
        assert_eq!(to_2(&[2, 4]), Some((4, 4, 0)));
        assert_eq!(to_2(&[2]), Some((2, 1, 1)));
    }
}
