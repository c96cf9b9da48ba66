//! RCAP: sets channels up across segments, takes them down, and tells of their state (Tenet paper, sections
//! 3.1 and 4.1). One machine of a node; it plays source, gateway and destination.
//!
//! **Order of calls.** A neighbour's session begins with [`Rcap::neighbour_up`] at both ends and ends with
//! [`Rcap::neighbour_lost`] at both; in between its messages arrive in order and none is missing. A transport
//! that cannot deliver a message ends the session, and so it does when [`Rcap::on_message`] returns an error.
//! The local medium is asked by outputs and answers by methods whenever it can: [`RcapOutput::Reserve`] by
//! [`Rcap::reserved`] or [`Rcap::denied`], [`RcapOutput::Relax`] by [`Rcap::relaxed`]. An answer for an entry
//! that is gone is answered by [`RcapOutput::Release`], which is harmless when repeated. After each call the
//! parent polls until drained, and then asks [`Rcap::deadline`].
//!
//! **Two phases** (`TENET-R9`). The request goes hop by hop, and each node reserves the best it can give.
//! Until the accept comes back the reservation has a lease; every node's ends by itself. The destination
//! tests the whole path; on the way back each node computes its share of what is left from the records
//! alone, relaxes, tells RTIP, and passes the accept on. From then on the channel is hard state, as in the
//! paper: it ends by a close, by the loss of a neighbour or of a share, and never by a timer. Where the path
//! has failed another one is looked for (`reroute.rs`). An open channel changes by a pass of
//! its own (`change.rs`).
//!
//! **Every ending** goes through one function, `release`. It gives back what the entry holds, tells the
//! neighbours that have not told it, and the program.
//!
//! **Branches.** A channel to several receivers is a tree of channels here, one for each receiver. At a node,
//! those that have come over the same nodes and ports have one label, and those that go to the same next node
//! one reservation, which the last of them gives back (`ledger.rs`). Both ends of a hop decide that from the
//! records. The source asks for one branch after another: two at once would each reserve, and waste.
//!
//! Departures from the paper:
//! * Tentative reservations have leases, and attempts have numbers, so that a repeated message does nothing
//!   and a late accept is answered by a close (`TENET-R9`).
//! * A request that was denied because of another one's tentative reservation tries again after a random
//!   time; the denial says which of the two goes first (`TENET-R10`).
//! * A close is final, also for an accept that crosses it (`TENET-R11`).
//! * A hop that carries smaller packets only says so, and the source tries again with these.
//! * Buffers are not overbooked: all packets that come in time have room. One is lost only where late ones
//!   have taken it, so that the smaller of 1 − Z_min and 1 − W_min is divided, over the hops that are left
//!   and the packets of a message. Without a chance of loss each hop is asked for a guarantee.
//! * A receiver asks a source for a channel by two messages of ours (`invite.rs`).
//! * A word goes ahead of a request, so that segments switch to token mode at the same time (`approach.rs`).

mod accept;
mod approach;
mod backup;
mod call;
mod change;
mod died;
mod end;
mod establish;
mod invite;
mod io;
mod labels;
mod ledger;
mod limits;
mod other;
mod record;
mod reroute;
mod routes;
mod search;
mod status;
#[cfg(test)]
pub(crate) mod tests;

pub use io::{
    ChannelKey, ChannelRequest, Ending, EntryId, Former, HopDenied, HopOffer, Installed, Invitation, NextHop,
    Promise, RcapCallError, RcapEvent, RcapOutput, StatusCounts,
};
pub use limits::{Quota, RcapLimits};
pub use record::{LINK, Record, TUNNEL};
pub use rota_wire::{RCAP_OCTETS_MAX, RcapDenied, RcapInitiation, RcapPart, RcapStanding, RcapTest};
pub use routes::{Graph, Route, Routes};
pub use search::Nodes;

pub(crate) use change::{units_within, with_spare};
pub(crate) use io::{part_of, simply};

use approach::Ahead;
use call::{Call, Question};
use died::Failed;
use end::Side;
use invite::Invites;
use ledger::Ledger;
use reroute::Kept;
use rota_admission::rtip::Messages;
use rota_contract::{ChannelId, NodeId};
use rota_medium::Rng;
use rota_medium::door::Life;
use rota_units::{Instant, Octets, Span};
use rota_wire::{Malformed, RcapBody, RcapChannel, RcapMessage};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The counts of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RcapCounters {
    /// Messages that were no messages.
    pub malformed: u64,
    /// Sound messages that fit no entry, or came from the wrong side or from a stranger.
    pub stray: u64,
    /// Requests that were repeated or late.
    pub repeated: u64,
    /// Attempts after the first one.
    pub retries: u64,
    /// Tentative reservations whose lease ended.
    pub lapsed: u64,
}

/// The machine of one node.
#[derive(Clone, Debug)]
pub struct Rcap {
    own: NodeId,
    limits: RcapLimits,
    rng: Rng,
    ledger: Ledger,
    /// The calls of programs that wait for their outcome.
    calls: BTreeMap<ChannelId, Call>,
    questions: BTreeMap<ChannelId, Question>,
    /// Channels that are received here and wait for another path.
    kept: BTreeMap<ChannelKey, Kept>,
    /// Words of requests that have not gone on.
    ahead: BTreeMap<RcapChannel, Ahead>,
    /// Channels through this node whose destinations wait for another path.
    failed: Vec<Failed>,
    last_question: u32,
    /// The program that waits on each service.
    listeners: BTreeMap<u16, u64>,
    invites: Invites,
    graph: Graph,
    up: BTreeSet<NodeId>,
    down: BTreeSet<NodeId>,
    routes: Routes,
    outputs: VecDeque<RcapOutput>,
    counters: RcapCounters,
}

impl Rcap {
    /// The machine of a node without neighbours. `seed` differs at each boot, so that no channel gets the
    /// number of one of a former life.
    pub fn new(own: NodeId, limits: RcapLimits, graph: Graph, seed: u64) -> Self {
        assert!(own.is_known(), "a node has an id");
        assert!(limits.entries < usize::from(u16::MAX), "each entry has a label");
        let limits = RcapLimits { patience: limits.patience.min(RcapLimits::LEASE_MAX), ..limits };
        let rng = Rng::new(seed);
        Self {
            own,
            limits,
            rng,
            ledger: Ledger::new(),
            calls: BTreeMap::new(),
            questions: BTreeMap::new(),
            kept: BTreeMap::new(),
            ahead: BTreeMap::new(),
            failed: Vec::new(),
            last_question: 0,
            listeners: BTreeMap::new(),
            invites: Invites::default(),
            graph,
            up: BTreeSet::new(),
            down: BTreeSet::new(),
            routes: Routes::default(),
            outputs: VecDeque::new(),
            counters: RcapCounters::default(),
        }
    }

    /// The next thing to do; `None` when drained.
    pub fn poll(&mut self) -> Option<RcapOutput> {
        self.outputs.pop_front()
    }

    /// When to call [`Self::handle_deadline`]; [`Instant::FAR`] if never.
    pub fn deadline(&self) -> Instant {
        let entries = self.ledger.first_due().map(|(at, _)| at);
        let calls = self.calls.values().filter_map(|call| call.retry_at);
        let questions = self.questions.values().map(|question| question.until);
        let kept = self.kept.values().map(|kept| kept.until);
        let first = entries.into_iter().chain(calls).chain(questions).chain(kept).min();
        first.unwrap_or(Instant::FAR).min(self.invites.deadline())
    }

    /// Leases, retries and questions whose time has come. Harmless when early.
    pub fn handle_deadline(&mut self, now: Instant) {
        while let Some((at, entry)) = self.ledger.first_due()
            && at <= now
        {
            self.lapse(now, entry);
        }
        self.retry(now);
        self.give_up_questions(now);
        self.give_up_kept(now);
        self.tick_invites(now);
    }

    /// One message of a neighbour.
    ///
    /// # Errors
    /// It is no message: the field that is wrong. The session with that neighbour is then to be ended.
    pub fn on_message(&mut self, now: Instant, from: NodeId, octets: &[u8]) -> Result<(), Malformed> {
        let message = match RcapMessage::parse(octets) {
            Ok(message) => message,
            Err(malformed) => {
                self.counters.malformed += 1;
                return Err(malformed);
            }
        };
        if !self.up.contains(&from) {
            self.counters.stray += 1;
            return Ok(());
        }
        let of = &message.of;
        match &message.body {
            RcapBody::EstablishRequest(request) => self.on_request(now, from, of, request),
            RcapBody::EstablishAccept(accept) => self.on_accept(now, from, of, accept),
            RcapBody::EstablishDenied(denied) => {
                self.on_end(now, from, of, Ending::Denied(*denied), Side::Behind);
            }
            RcapBody::StatusRequest(status) => self.on_status_request(from, of, status),
            RcapBody::StatusReport(status) => self.on_status_report(from, of, status),
            RcapBody::CloseForward(close) => self.on_end(now, from, of, (*close).into(), Side::Before),
            RcapBody::CloseReverse(close) => self.on_end(now, from, of, (*close).into(), Side::Behind),
            RcapBody::Invite(invite) => self.on_invite(now, from, of, invite),
            RcapBody::InviteDenied(denied) => self.on_invite_denied(from, of, denied),
            RcapBody::Approach(approach) => self.on_approach(now, from, of, approach),
        }
        Ok(())
    }

    /// A session with a neighbour begins.
    pub fn neighbour_up(&mut self, now: Instant, node: NodeId) {
        if self.up.contains(&node) {
            self.neighbour_lost(now, node);
        }
        self.up.insert(node);
        self.find_routes();
    }

    /// The session with a neighbour has ended. Channels through it end here, and the other side is told.
    pub fn neighbour_lost(&mut self, now: Instant, node: NodeId) {
        if self.up.remove(&node) {
            self.find_routes();
            self.release_through(now, node);
        }
    }

    /// A node is known to be down, or to be back: ways through it are not, or again, taken.
    pub fn set_down(&mut self, node: NodeId, is_down: bool) {
        match is_down {
            true => self.down.insert(node),
            false => self.down.remove(&node),
        };
        self.find_routes();
    }

    /// Another graph. Channels that are there keep their way.
    pub fn set_graph(&mut self, graph: Graph) {
        self.graph = graph;
        self.find_routes();
    }

    fn find_routes(&mut self) {
        self.routes = Routes::shortest(&self.graph, self.own, &self.up, &self.down);
    }

    /// The next node on the way from one node to another one, where nothing is guaranteed on that hop.
    pub fn withdrawn_hop(&self, from: NodeId, to: NodeId) -> Option<NodeId> {
        let near = self.graph.neighbours(from).map(|hop| hop.node).collect();
        let next = Routes::shortest(&self.graph, from, &near, &self.down).route(to)?.hop.node;
        Some(next).filter(|next| self.graph.is_withdrawn(from, *next))
    }

    /// The ways that are taken now.
    pub const fn routes(&self) -> &Routes {
        &self.routes
    }

    /// The neighbours with a session.
    pub fn neighbours(&self) -> impl Iterator<Item = NodeId> {
        self.up.iter().copied()
    }

    /// True if an entry is for another contract of a channel that is open.
    pub fn is_change(&self, entry: EntryId) -> bool {
        self.ledger.get(entry).is_some_and(|entry| entry.demand.is_change())
    }

    /// When the source of an entry sends, by this node's clock, which is its source's.
    pub fn own_life(&self, entry: EntryId) -> Option<Life> {
        Some(self.ledger.get(entry)?.demand.own_life())
    }

    /// The channel of an entry whose source is here.
    pub fn source_of(&self, entry: EntryId) -> Option<ChannelId> {
        let entry = self.ledger.get(entry).filter(|entry| entry.before.is_none())?;
        Some(entry.key().channel)
    }

    /// The number by which people know the channel of an entry: all branches of a channel to several
    /// receivers are one channel.
    pub fn called(&self, entry: EntryId) -> Option<ChannelId> {
        let entry = self.ledger.get(entry)?;
        let tree = entry.demand.request.tree;
        Some(if tree.is_some() { tree } else { entry.key().channel })
    }

    /// The channel of an entry that is received here.
    pub fn received_by(&self, entry: EntryId) -> Option<ChannelKey> {
        self.ledger.get(entry).filter(|entry| entry.hop.is_none()).map(|entry| entry.key())
    }

    /// At the destination: the delay that is to be expected, D_max where a node before may relax its bound.
    pub fn promised(&self, entry: EntryId) -> Option<Span> {
        Some(self.ledger.get(entry)?.promise)
    }

    /// The arrival of the packets of an entry whose program has been asked: the node before, and their local
    /// id, which the entry has from now on, before it is open. None of a branch, which may share that of
    /// another one.
    pub fn name_arrival(&mut self, entry: EntryId) -> Option<(NodeId, u16, Octets)> {
        let label = self.ledger.name(entry)?;
        let entry = self.ledger.get(entry)?;
        Some((entry.before?, label, entry.demand.packets.octets))
    }

    /// A program's frames are sorted out by this local id from now on, or no more: no other channel gets it
    /// meanwhile.
    pub fn face(&mut self, label: u16, is_faced: bool) {
        self.ledger.labels.face(label, is_faced);
    }

    /// Local ids by which frames of programs are sorted out.
    pub fn faced(&self) -> usize {
        self.ledger.labels.faced()
    }

    /// True if the hop of an entry leads to the destination.
    pub fn is_last_hop(&self, entry: EntryId) -> bool {
        let entry = self.ledger.get(entry);
        entry.is_some_and(|of| of.hop.map(|hop| hop.node) == Some(of.demand.request.destination))
    }

    /// The node before, on the path of an entry; none at the source.
    pub fn before(&self, entry: EntryId) -> Option<NodeId> {
        self.ledger.get(entry)?.before
    }

    /// The messages of an entry, and the payload of its largest packet so far.
    pub(crate) fn messages_of(&self, entry: EntryId) -> Option<(Messages, Octets)> {
        let request = &self.ledger.get(entry)?.demand.request;
        Some((request.messages, request.packet_max))
    }

    /// The longest life that an entry could be given, where there is room up to this moment.
    pub(crate) fn nearest_end(&self, now: Instant, entry: EntryId, free_until: Instant) -> Span {
        self.ledger.get(entry).map_or(Span::ZERO, |entry| entry.demand.nearest_end(now, free_until))
    }

    /// The nodes of an entry's path, as far as this node has heard of them.
    pub fn records(&self, entry: EntryId) -> &[Record] {
        self.ledger.get(entry).map_or(&[], |entry| &entry.records)
    }

    /// The counters.
    pub const fn counters(&self) -> RcapCounters {
        self.counters
    }

    /// The entries of the ledger: each with its channel, whether it is open, and the next hop.
    pub fn entries(&self) -> impl Iterator<Item = (EntryId, ChannelKey, bool, Option<NextHop>)> {
        let entries = self.ledger.iter();
        entries.map(|(id, entry)| (id, entry.key(), entry.state.is_open(), entry.hop))
    }

    /// Octets of the buffers of all entries.
    pub const fn buffer_octets(&self) -> u64 {
        self.ledger.buffer_octets()
    }

    /// Computes each count of the ledger again and panics where one is wrong.
    pub fn audit(&self) {
        self.ledger.assert_counts();
    }

    /// Sends a message to a neighbour. One without a session has lost the channel already, or will.
    fn send(&mut self, to: NodeId, of: RcapChannel, body: RcapBody<'_>) {
        if !self.up.contains(&to) {
            return;
        }
        let message = RcapMessage { of, body };
        let mut octets = vec![0; message.octets()];
        let written = message.emit(&mut octets);
        assert!(written.is_some(), "terms are cut to what a message holds");
        self.outputs.push_back(RcapOutput::Send { to, message: octets });
    }

    fn tell(&mut self, event: RcapEvent) {
        self.outputs.push_back(RcapOutput::Event(event));
    }
}
