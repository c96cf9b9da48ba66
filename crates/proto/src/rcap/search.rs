//! The loop-free paths between two nodes, one after another, by the fewest hops.
//!
//! A* over loop-free paths, as in A*Prune (Liu and Ramakrishnan 2001): a path that has begun is taken
//! further in the order of the least that it can come to, which Dijkstra's distances to its end say exactly.
//! Admission is the constraint: a hop that has refused is left out, and the next path is looked for when it
//! is needed.

use super::routes::Graph;
use rota_contract::NodeId;
use rota_wire::RCAP_NODES_MAX;
use std::collections::{BTreeMap, BTreeSet};

/// Paths that are taken further in one search, at most: a hostile graph takes no longer.
const STEPS_MAX: usize = 2_000;

/// Nodes in an order, as many as a path has at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    nodes: [NodeId; RCAP_NODES_MAX],
    count: usize,
}

impl Nodes {
    /// The most that there may be.
    pub const MOST: usize = RCAP_NODES_MAX;

    /// These nodes; those behind [`Self::MOST`] are left out.
    pub fn of(nodes: impl Iterator<Item = NodeId>) -> Self {
        let mut all = Self::default();
        for (place, node) in all.nodes.iter_mut().zip(nodes) {
            *place = node;
            all.count += 1;
        }
        all
    }

    /// The nodes.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes[..self.count]
    }

    /// True if there is one.
    pub const fn is_some(&self) -> bool {
        self.count > 0
    }
}

/// Hops without a guarantee, then all hops.
type Cost = (u32, u32);

/// The network in which a path is looked for.
pub(super) struct Search<'a> {
    pub(super) graph: &'a Graph,
    pub(super) own: NodeId,
    /// The nodes to which the first hop may lead.
    pub(super) up: &'a BTreeSet<NodeId>,
    /// The nodes that no path leads through or to.
    pub(super) down: BTreeSet<NodeId>,
    /// The hops that no path has.
    pub(super) refused: &'a BTreeSet<(NodeId, NodeId)>,
    /// Paths may have hops on which nothing is guaranteed.
    pub(super) allows_withdrawn: bool,
}

impl Search<'_> {
    /// The path with the fewest hops through `via`, in this order, to `to` that is none of `tried`: all nodes
    /// behind this one. Of two such paths the one by the smaller node ids, which is the one that the nodes
    /// choose by themselves.
    pub(super) fn next(&self, via: &[NodeId], to: NodeId, tried: &[Vec<NodeId>]) -> Option<Vec<NodeId>> {
        let legs: Vec<NodeId> = via.iter().copied().chain([to]).collect();
        let far: Vec<BTreeMap<NodeId, Cost>> = legs.iter().map(|end| self.distances(*end)).collect();
        // The least that is left behind a node of this leg.
        let left = |node: NodeId, leg: usize| -> Option<Cost> {
            let rest = (leg + 1..legs.len()).map(|next| far[next].get(&legs[next - 1]));
            let mut all = std::iter::once(far[leg].get(&node)).chain(rest);
            all.try_fold((0, 0), |all, one| Some(sum(all, *one?)))
        };
        let mut begun = BTreeSet::from([((0, 0), Vec::new(), (0, 0), 0)]);
        for _ in 0..STEPS_MAX {
            let (_, path, cost, leg) = begun.pop_first()?;
            if leg == legs.len() {
                if tried.contains(&path) {
                    continue;
                }
                return Some(path);
            }
            let from = path.last().copied().unwrap_or(self.own);
            for node in self.graph.neighbours(from).map(|hop| hop.node) {
                if !self.may_go(from, node) || path.contains(&node) || legs[leg + 1..].contains(&node) {
                    continue;
                }
                let cost = sum(cost, self.cost(from, node));
                let leg = leg + usize::from(node == legs[leg]);
                let rest = if leg == legs.len() { Some((0, 0)) } else { left(node, leg) };
                // A path of n nodes behind this one has n + 1 of them.
                if let Some(rest) = rest.filter(|_| path.len() + 2 <= RCAP_NODES_MAX) {
                    let further = path.iter().copied().chain([node]).collect();
                    begun.insert((sum(cost, rest), further, cost, leg));
                }
            }
        }
        None
    }

    fn may_go(&self, from: NodeId, to: NodeId) -> bool {
        let is_known = from != self.own || self.up.contains(&to);
        let is_kept = self.allows_withdrawn || !self.graph.is_withdrawn(from, to);
        to != self.own
            && is_known
            && is_kept
            && !self.down.contains(&to)
            && !self.refused.contains(&(from, to))
    }

    fn cost(&self, from: NodeId, to: NodeId) -> Cost {
        (u32::from(self.graph.is_withdrawn(from, to)), 1)
    }

    /// The least from each node to `end` (Dijkstra 1959).
    fn distances(&self, end: NodeId) -> BTreeMap<NodeId, Cost> {
        let mut before: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
        for (from, to) in self.graph.hops().filter(|(from, to)| self.may_go(*from, *to)) {
            before.entry(to).or_default().push(from);
        }
        let mut far = BTreeMap::new();
        let mut nearest = BTreeSet::from([((0, 0), end)]);
        while let Some((cost, node)) = nearest.pop_first() {
            if far.contains_key(&node) {
                continue;
            }
            far.insert(node, cost);
            let further = before.get(&node).into_iter().flatten();
            nearest.extend(further.map(|from| (sum(cost, self.cost(*from, node)), *from)));
        }
        far
    }
}

const fn sum(one: Cost, other: Cost) -> Cost {
    (one.0 + other.0, one.1 + other.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_medium::door::PortId;

    fn ids(nodes: &[u64]) -> Vec<NodeId> {
        nodes.iter().map(|node| NodeId(*node)).collect()
    }

    /// 1 - 2 - 3 - 9 and 1 - 4 - 9, 2 - 5 - 3, 3 - 4, and a tunnel 1 - 6 - 9.
    fn graph() -> Graph {
        let mut graph = Graph::default();
        for (one, other) in [(1, 2), (2, 3), (3, 9), (1, 4), (4, 9), (2, 5), (5, 3), (3, 4), (1, 6), (6, 9)] {
            graph.join((NodeId(one), PortId(0)), (NodeId(other), PortId(0)));
        }
        graph.withdraw(NodeId(6), NodeId(9));
        graph.withdraw(NodeId(9), NodeId(6));
        graph
    }

    /// All paths from 1 to 9, as they come.
    fn all(via: &[u64], refused: &[(u64, u64)], down: &[u64], allows_withdrawn: bool) -> Vec<Vec<NodeId>> {
        let (graph, up) = (graph(), ids(&[2, 4, 6]).into_iter().collect());
        let refused = refused.iter().map(|(from, to)| (NodeId(*from), NodeId(*to))).collect();
        let down = ids(down).into_iter().collect();
        let search =
            Search { graph: &graph, own: NodeId(1), up: &up, down, refused: &refused, allows_withdrawn };
        let mut tried = Vec::new();
        while let Some(path) = search.next(&ids(via), NodeId(9), &tried) {
            tried.push(path);
        }
        tried
    }

    #[test]
    fn paths_come_by_their_hops_and_each_once() {
        let paths = [&[4, 9][..], &[2, 3, 9], &[4, 3, 9], &[2, 3, 4, 9], &[2, 5, 3, 9], &[2, 5, 3, 4, 9]];
        assert_eq!(all(&[], &[], &[], false), paths.map(ids));
        let last = ids(&[6, 9]);
        assert_eq!(all(&[], &[], &[], true).last(), Some(&last), "one without a guarantee comes last");
    }

    #[test]
    fn a_hop_that_refused_and_a_node_that_is_down_are_passed_by() {
        let around = [&[2, 3, 9][..], &[4, 3, 9], &[2, 5, 3, 9]];
        assert_eq!(all(&[], &[(4, 9)], &[], false), around.map(ids));
        assert_eq!(all(&[], &[(3, 9), (4, 9)], &[], false), Vec::<Vec<NodeId>>::new());
        assert_eq!(all(&[], &[], &[4], false), [&[2, 3, 9][..], &[2, 5, 3, 9]].map(ids));
    }

    #[test]
    fn a_path_leads_through_the_nodes_that_are_named_in_their_order() {
        assert_eq!(all(&[3], &[], &[], false)[0], ids(&[2, 3, 9]), "4, 3 is as long");
        assert_eq!(all(&[4, 3], &[], &[], false), [ids(&[4, 3, 9])], "9 cannot be passed");
        assert_eq!(all(&[3, 4], &[], &[], false), [ids(&[2, 3, 4, 9]), ids(&[2, 5, 3, 4, 9])]);
        assert!(all(&[5, 2], &[], &[], false).is_empty(), "2 would come twice");
        assert!(all(&[7], &[], &[], false).is_empty(), "nobody knows 7");
    }

    /// Each node next to each other one: the search ends although there are more paths than it takes up.
    #[test]
    fn a_full_graph_ends_the_search() {
        let mut graph = Graph::default();
        for one in 1..30 {
            (one + 1..=30).for_each(|other| graph.join((NodeId(one), PortId(0)), (NodeId(other), PortId(0))));
        }
        let up = (2..=30).map(NodeId).collect();
        let refused: BTreeSet<_> = (1..30).map(|from| (NodeId(from), NodeId(30))).collect();
        let (own, down) = (NodeId(1), BTreeSet::new());
        let none = Search { graph: &graph, own, up: &up, down, refused: &refused, allows_withdrawn: false };
        assert_eq!(none.next(&[], NodeId(30), &[]), None);
        let (down, refused) = (BTreeSet::new(), BTreeSet::from([(own, NodeId(30))]));
        let around = Search { graph: &graph, own, up: &up, down, refused: &refused, allows_withdrawn: false };
        assert_eq!(around.next(&[], NodeId(30), &[]), Some(ids(&[2, 30])));
    }
}
