//! The sessions of a node with its neighbours, and the ways that it learns over them.

use super::super::Node;
use crate::across::Across;
use crate::io::Way;
use crate::rcap::{Graph, RcapLimits};
use rota_contract::NodeId;
use rota_units::{Instant, Span};
use rota_wire::{LINK_STATE_KIND, LINK_STATE_OCTETS_MAX, Malformed, RCAP_REROUTE_MAX_NS};

/// Links of the graph by which ways are found: computing them takes the data thread's time.
const LINKS_MAX: usize = 4_096;

impl Node {
    /// Takes part in channels across segments from now on, under this name; a gateway `forwards`.
    pub fn begin_across(&mut self, name: &str, forwards: bool, seed: u64) {
        self.begin_across_within(name, forwards, RcapLimits::default(), seed);
    }

    /// The same, with limits of its own.
    pub fn begin_across_within(&mut self, name: &str, forwards: bool, limits: RcapLimits, seed: u64) {
        let own = self.medium().node_id();
        self.across = Some(Box::new(Across::new(own, name, forwards, limits, seed)));
        self.hops.keep_cut();
    }

    /// For so long, a minute at most, another path is looked for when that of a channel fails which states no
    /// time of its own; zero for not at all.
    pub fn set_reroute(&mut self, time: Span) {
        if let Some(across) = &mut self.across {
            across.reroute = time.min(Span::from_nanos(RCAP_REROUTE_MAX_NS));
        }
    }

    /// A session with a neighbour begins. Its messages come in order, and none is missing until it ends.
    pub fn neighbour_up(&mut self, now: Instant, node: NodeId) {
        self.tell_across(now, |across| {
            across.links.connected(node);
            across.rcap.neighbour_up(now, node);
        });
    }

    /// It has ended: the channels through that neighbour end.
    pub fn neighbour_lost(&mut self, now: Instant, node: NodeId) {
        self.tell_across(now, |across| {
            across.links.disconnected(node);
            across.rcap.neighbour_lost(now, node);
            // Other ways are looked for at once, and the others are told that this one is gone.
            across.look = now;
            // These messages are of the session that has ended.
            across.outbox.retain(|(to, _)| *to != node);
        });
    }

    /// One message of a neighbour.
    ///
    /// # Errors
    /// It is none: the field that is wrong. The session is to be ended.
    pub fn on_neighbour_message(
        &mut self,
        now: Instant,
        from: NodeId,
        octets: &[u8],
    ) -> Result<(), Malformed> {
        let is_statement = octets.first() == Some(&LINK_STATE_KIND);
        if !is_statement {
            self.register_listeners();
        }
        let told = self.tell_across(now, |across| match is_statement {
            true => across.links.on_message(from, octets),
            false => across.rcap.on_message(now, from, octets),
        });
        told.unwrap_or(Ok(()))
    }

    /// The next message for a neighbour; take them until there is none.
    pub fn next_neighbour_message(&mut self) -> Option<(NodeId, Vec<u8>)> {
        let across = self.across.as_mut()?;
        across.outbox.pop_front().or_else(|| {
            let left = across.statements.checked_sub(1)?;
            let mut octets = [0; LINK_STATE_OCTETS_MAX];
            let (to, len) = across.links.poll(&mut octets)?;
            across.statements = left;
            Some((to, octets[..len].to_vec()))
        })
    }

    /// This node stops: its neighbours are told of the end of each channel.
    pub(in super::super) fn leave_across(&mut self, now: Instant) {
        self.tell_across(now, |across| across.rcap.close_all(now));
    }

    /// The first listener to each service that takes channels of any sender.
    pub(super) fn register_listeners(&mut self) {
        let Some(across) = &mut self.across else { return };
        let listeners = self.lines[0].channels.listeners();
        let open: Vec<(u16, u64)> =
            listeners.filter(|of| of.from.is_none()).map(|of| (of.service, of.id)).collect();
        across.rcap.set_listeners(open.into_iter());
        across.rcap.set_listening(self.lines[0].channels.listeners().map(|of| of.id));
    }

    /// Neighbours with a session that are members of a segment of this node are one hop away.
    pub(super) fn find_ways(&mut self, now: Instant) {
        let Some(across) = &self.across else { return };
        let way = |node| self.way_to(node).map(|way| (node, way, self.is_withdrawn(way.port)));
        let near: Vec<(NodeId, Way, bool)> = across.rcap.neighbours().filter_map(way).collect();
        let own = self.medium().node_id();
        let Some(across) = &mut self.across else { return };
        across.begin_look(now);
        across.met.retain(|_, met| near.iter().all(|(_, way, _)| way != met));
        across.met.extend(near.iter().map(|(node, way, _)| (*node, *way)));
        across.links.adjacent(near.iter().map(|(node, _, withdrawn)| (*node, *withdrawn)));
        if across.routed == Some(across.links.changes()) {
            return;
        }
        across.routed = Some(across.links.changes());
        let mut graph = Graph::default();
        for (from, to, withdrawn) in across.links.ways().take(LINKS_MAX) {
            // The ports of other nodes are their own affair.
            let port = near.iter().find(|(node, ..)| from == own && *node == to).map(|(_, way, _)| way.port);
            graph.lead((from, port.unwrap_or_default()), to);
            if withdrawn {
                graph.withdraw(from, to);
            }
        }
        across.rcap.set_graph(graph);
    }
}
