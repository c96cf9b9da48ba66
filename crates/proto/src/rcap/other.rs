//! Other paths for a request that its path cannot serve (`TENET-7-5`).
//!
//! ```text
//! source   first path ──denied: a link or a node cannot──► next path around that link ──accept──► Open
//!                                                             └──denied──► … 4 paths in all ──► refused
//! ```
//!
//! The paths come in the order of their hops ([`Search`]), without the links that have refused, each once and
//! at once: a denial has given back what its path had reserved. The request names the nodes of its path. They
//! are attempts like any other: one deadline counts for all of them. Where none is accepted the program hears
//! the refusal of the first path, with its nearest request.
//!
//! A program may name gateways (`--via`): then all paths lead through these, the one of a re-establishment
//! among them, and that of a change from then on. Only the path in reserve does not, as it shares no gateway.

use super::Rcap;
use super::call::Call;
use super::search::{Nodes, Search};
use rota_contract::NodeId;
use rota_wire::{RcapDenied, RcapStanding, RcapTest};
use std::collections::BTreeSet;

/// Paths of one call, the first one among them.
const PATHS_MAX: usize = 4;

/// The paths of a call.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths {
    /// The nodes that the next attempt leads through; none where each node chooses the next one.
    pub(super) named: Nodes,
    /// The paths so far: all nodes behind the source.
    tried: Vec<Vec<NodeId>>,
    refused: BTreeSet<(NodeId, NodeId)>,
    full: BTreeSet<NodeId>,
    /// The refusal of the first path, once there was another one.
    first: Option<RcapDenied>,
}

/// The part of a path that cannot serve a request.
enum Part {
    /// The hop of the node that denies.
    Hop,
    /// That node.
    Node,
    /// All of the path together.
    Whole,
}

/// The part that a denial speaks of; none where another path would not help.
fn part_of(denied: &RcapDenied) -> Option<Part> {
    use RcapTest as Test;
    match denied.test {
        Test::Load | Test::EdfExact | Test::DeddSum | Test::DeddSorted | Test::RcspLevel | Test::FifoPort => {
            Some(Part::Hop)
        }
        Test::PortBuffer | Test::RetherShare | Test::Overflow | Test::Undecided => Some(Part::Hop),
        // A link has no cycle.
        Test::CyclePackets => Some(Part::Hop),
        Test::Packet | Test::Withdrawn | Test::NoRoute | Test::Loop => Some(Part::Hop),
        Test::TableFull | Test::QuotaChannels | Test::QuotaReserved => Some(Part::Node),
        Test::PathDelay | Test::PathJitter | Test::PathChance | Test::PathTooLong | Test::Partition => {
            Some(Part::Whole)
        }
        _ => None,
    }
}

impl Paths {
    /// The denial that the program of a call hears: that of the first path, unless the last one came from
    /// the receiver or says that there is none.
    pub(super) fn heard(&self, last: RcapDenied) -> RcapDenied {
        let is_of_path = part_of(&last).is_some()
            || matches!(last.test, RcapTest::LeaseOver | RcapTest::NeighbourLost | RcapTest::ShareLost);
        self.first.filter(|_| is_of_path).unwrap_or(last)
    }
}

impl Rcap {
    /// The path of a call through the gateways that its program has named.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn path_as_named(&self, call: &Call) -> Result<Option<Vec<NodeId>>, ()> {
        let is_named = call.demand.request.via.is_some() && call.pending.is_none();
        if !is_named || call.paths.named.is_some() {
            return Ok(None);
        }
        // Another path without a guarantee is denied by the node before it, which names both ends.
        self.search(call, true).map(Some).ok_or(())
    }

    /// Has a call go on over another path, if one may serve it.
    pub(super) fn turns(&self, call: &mut Call, denied: &RcapDenied) -> bool {
        let Some(part) = part_of(denied).filter(|_| denied.standing == RcapStanding::Final) else {
            return false;
        };
        if call.demand.request.tree.is_some() {
            return false;
        }
        if call.paths.tried.is_empty() {
            // The path that the nodes have chosen, each by the same graph.
            call.paths.tried.extend(self.search(call, true));
        }
        let Some(last) = call.paths.tried.last() else { return false };
        if call.paths.tried.len() >= PATHS_MAX {
            return false;
        }
        let node = denied.node;
        let place = if node == self.own { Some(0) } else { last.iter().position(|of| *of == node) };
        let next = place.map(|place| place + usize::from(node != self.own)).and_then(|place| last.get(place));
        match (part, next.copied()) {
            (Part::Hop, Some(next)) => _ = call.paths.refused.insert((node, next)),
            (Part::Node | Part::Hop, _) if node != self.own && node != call.demand.request.destination => {
                call.paths.full.insert(node);
            }
            (Part::Whole, _) => {}
            // All paths begin and end there.
            _ => return false,
        }
        let allows = call.demand.request.allows_withdrawn;
        let Some(path) = self.search(call, allows) else { return false };
        call.paths.first.get_or_insert(*denied);
        call.paths.go(path);
        true
    }

    fn search(&self, call: &Call, allows_withdrawn: bool) -> Option<Vec<NodeId>> {
        let mut down = self.down.clone();
        down.extend(&call.paths.full);
        down.extend(call.passed_by());
        let (graph, own, up, refused) = (&self.graph, self.own, &self.up, &call.paths.refused);
        let request = &call.demand.request;
        let via = if call.pending.is_some() { &[] } else { request.via.nodes() };
        let search = Search { graph, own, up, down, refused, allows_withdrawn };
        search.next(via, request.destination, &call.paths.tried)
    }
}

impl Paths {
    /// The next attempt leads over this path.
    pub(super) fn go(&mut self, path: Vec<NodeId>) {
        let (_, between) = path.split_last().expect("a path leads to its destination");
        self.named = Nodes::of(between.iter().copied());
        self.tried.push(path);
    }
}
