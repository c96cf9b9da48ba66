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
//!
//! A request that is refused before it has gone on takes its word back: the node that refuses it closes it
//! forward, and each node that has passed the word on does so with the close, by the way of the word. Where
//! that close is lost with a session the lease ends what was prepared.

use super::Rcap;
use super::io::{Ending, EntryId, RcapOutput};
use super::ledger::State;
use super::reroute::Towards;
use rota_contract::{CloseCause, NodeId};
use rota_units::{Instant, Span};
use rota_wire::{RCAP_NODES_MAX, RcapApproach, RcapBody, RcapChannel, RcapRoute};

/// A word that was heard or sent here, of a request that has not gone on yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    /// The neighbour that it came from; none where this node waits for its medium.
    from: Option<NodeId>,
    /// The neighbour that it went on to.
    to: Option<NodeId>,
    until: Instant,
}

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
        self.note_ahead(now, of, Ahead { from: None, to: Some(hop.node), until: now + lease });
        self.send_ahead(hop.node, of, demand.request.destination, lease, way);
    }

    /// One that finds no place among those that are remembered is ended by its lease.
    fn note_ahead(&mut self, now: Instant, of: RcapChannel, word: Ahead) {
        self.ahead.retain(|_, word| word.until > now);
        if self.ahead.len() < self.limits.remembered || self.ahead.contains_key(&of) {
            self.ahead.insert(of, word);
        }
    }

    /// The request of a word goes on to this node, which may be another one than its word went to.
    pub(super) fn follows(&mut self, of: &RcapChannel, to: NodeId) {
        if self.ahead.get(of).is_some_and(|word| word.to == Some(to)) {
            self.ahead.remove(of);
        } else {
            let ending = Ending::Closed { cause: CloseCause::Refused, node: self.own };
            self.take_back(of, &ending);
        }
    }

    /// No request follows its word from here.
    pub(super) fn take_back(&mut self, of: &RcapChannel, ending: &Ending) {
        let Some(word) = self.ahead.remove(of) else { return };
        self.outputs.push_back(RcapOutput::Forgo { of: *of });
        if let Some(to) = word.to {
            self.send(to, *of, RcapBody::CloseForward(self.close_of(ending)));
        }
    }

    /// True if this node has heard a word of a request from this one, and not the request.
    pub(super) fn has_word(&self, of: &RcapChannel, from: NodeId) -> bool {
        self.ahead.get(of).is_some_and(|word| word.from == Some(from))
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
        // The word of a request comes one way: another neighbour can neither take it over nor take it back.
        if self.ahead.get(of).is_some_and(|word| word.until > now && word.from != Some(from)) {
            self.counters.stray += 1;
            return;
        }
        if self.ledger.exactly(of).is_some() || self.ledger.has_ended(now, of) {
            // The request has overtaken it.
            self.counters.repeated += 1;
            return;
        }
        let (end, lease) = (approach.destination, Span::from_nanos(approach.lease_ns));
        let is_again = !around.is_empty();
        let towards = Towards { end, via: &via, passed: &passed, around: &around, is_again };
        let is_short = passed.len() + 2 <= RCAP_NODES_MAX;
        let route = if end == self.own || !is_short { None } else { self.route_towards(&towards, true) };
        // The request ends here, or there, or finds a network that has no modes.
        let hop = route
            .map(|route| route.hop)
            .filter(|hop| !passed.contains(&hop.node) && !self.graph.is_withdrawn(self.own, hop.node));
        let until = now + lease;
        self.note_ahead(now, *of, Ahead { from: Some(from), to: hop.map(|hop| hop.node), until });
        let Some(hop) = hop else { return };
        self.outputs.push_back(RcapOutput::Prepare { of: *of, hop, until });
        passed.push(self.own);
        self.send_ahead(hop.node, *of, end, lease, [&passed, &via, &around]);
    }
}
