//! A word ahead of a request (`RETHER-2.5-5`): segments on the way that are in plain mode switch to token
//! mode at the same time, not each when the request has come.
//!
//! ```text
//! source   asks its medium, which takes its time ──approach──► next node ──approach──► … destination
//!          has its share ──request──► next node, whose segment is in token mode by then ──request──► …
//! ```
//!
//! A node sends it when its medium is asked and does not answer at once, and a node that hears it passes it
//! on at once. It reserves nothing for the channel, no entry of the ledger knows of it, and no answer
//! follows: a wrong word costs a segment a switch, and back. A medium is prepared until the reservation of
//! the request, or until the end of the lease, which is that of the request.

use super::Rcap;
use super::io::{EntryId, RcapOutput};
use super::ledger::State;
use super::reroute::Towards;
use rota_contract::NodeId;
use rota_units::{Instant, Span};
use rota_wire::{RCAP_NODES_MAX, RcapApproach, RcapBody, RcapChannel, RcapRoute};

impl Rcap {
    /// The local medium takes its time for an entry: the next node may prepare its own.
    pub fn takes_time(&mut self, now: Instant, id: EntryId) {
        let Some(entry) = self.ledger.get(id).filter(|entry| entry.state == State::Reserving) else { return };
        let (Some(hop), lease) = (entry.hop, entry.due.since(now)) else { return };
        if lease == Span::ZERO {
            return;
        }
        let (of, demand) = (entry.of, entry.demand);
        let passed = entry.records.iter().map(|record| record.node).chain([self.own]).collect::<Vec<_>>();
        let mut around = demand.around();
        around.truncate(RCAP_NODES_MAX);
        let way = [&passed, demand.path.nodes(), &around];
        self.send_ahead(hop.node, of, demand.request.destination, lease, way);
    }

    /// `way` has the nodes that are passed, those that it leads through, and those that it passes by.
    fn send_ahead(&mut self, to: NodeId, of: RcapChannel, end: NodeId, lease: Span, way: [&[NodeId]; 3]) {
        let way = way.map(RcapRoute::written);
        let [Ok(passed), Ok(via), Ok(around)] = way.each_ref().map(|nodes| RcapRoute::parse(nodes)) else {
            return;
        };
        let (destination, lease_ns) = (end, lease.as_nanos());
        let approach = RcapApproach { destination, lease_ns, passed, via, around };
        self.send(to, of, RcapBody::Approach(approach));
    }

    pub(super) fn on_approach(
        &mut self,
        now: Instant,
        from: NodeId,
        of: &RcapChannel,
        approach: &RcapApproach<'_>,
    ) {
        let [mut passed, via, around] =
            [approach.passed, approach.via, approach.around].map(|way| way.iter().collect::<Vec<_>>());
        let is_sound = passed.last() == Some(&from) && passed.first() == Some(&of.origin);
        if !is_sound || passed.contains(&self.own) {
            self.counters.stray += 1;
            return;
        }
        if self.ledger.exactly(of).is_some() || self.ledger.has_ended(now, of) {
            // The request has overtaken it.
            self.counters.repeated += 1;
            return;
        }
        let (end, lease) = (approach.destination, Span::from_nanos(approach.lease_ns));
        if end == self.own || passed.len() + 2 > RCAP_NODES_MAX {
            return;
        }
        let is_again = !around.is_empty();
        let towards = Towards { end, via: &via, passed: &passed, around: &around, is_again };
        let Some(hop) = self.route_towards(&towards, true).map(|route| route.hop) else { return };
        // The request ends there, or finds a network that has no modes.
        if passed.contains(&hop.node) || self.graph.is_withdrawn(self.own, hop.node) {
            return;
        }
        self.outputs.push_back(RcapOutput::Prepare { hop, until: now + lease });
        passed.push(self.own);
        self.send_ahead(hop.node, *of, end, lease, [&passed, &via, &around]);
    }
}
