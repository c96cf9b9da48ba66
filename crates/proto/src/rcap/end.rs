//! Endings. Every one goes through [`Rcap::release`].

use super::Rcap;
use super::io::{ChannelKey, Ending, EntryId, RcapCallError, RcapEvent, RcapOutput, simply};
use super::ledger::{Entry, State};
use super::limits::RcapLimits;
use rota_contract::{CloseCause, NodeId};
use rota_units::Instant;
use rota_wire::{RcapBody, RcapChannel, RcapClose, RcapDenied, RcapTest};

/// The side that an ending was heard from, and that need not be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The node before.
    Before,
    /// The node behind.
    Behind,
    /// This node's own program.
    Program,
}

impl Rcap {
    /// Ends an entry: takes it out of the ledger, gives back what it holds, tells the neighbours, then the
    /// program.
    pub(super) fn release(&mut self, now: Instant, id: EntryId, ending: Ending, told_by: Option<Side>) {
        self.part_with_other(now, id, &ending);
        let until = now + RcapLimits::LEASE_MAX;
        let Some(entry) = self.ledger.remove(id, until, self.limits.remembered) else { return };
        self.outputs.push_back(RcapOutput::Release { entry: id, ending });
        // An open path that gives way to another attempt has failed, as its source says.
        let ending = match ending {
            Ending::Superseded if entry.state.is_open() => {
                Ending::Closed { cause: CloseCause::ReservationLost, node: self.own }
            }
            ending => ending,
        };
        if let Some(before) = entry.before.filter(|_| told_by != Some(Side::Before)) {
            let body = match entry.state.is_open() {
                true => RcapBody::CloseReverse(self.close_of(&ending)),
                false => RcapBody::EstablishDenied(self.denied_of(&ending)),
            };
            self.send(before, entry.of, body);
        }
        self.remember_failed(now, &entry, &self.close_of(&ending));
        if entry.state == State::Reserving {
            self.take_back(&entry.of, &ending);
        }
        let has_gone_on = entry.state != State::Reserving && told_by != Some(Side::Behind);
        if let Some(hop) = entry.hop.filter(|_| has_gone_on) {
            self.send(hop.node, entry.of, RcapBody::CloseForward(self.close_of(&ending)));
        }
        self.tell_end(now, id, &entry, ending, told_by);
    }

    fn tell_end(&mut self, now: Instant, id: EntryId, entry: &Entry, ending: Ending, told_by: Option<Side>) {
        let (is_source, is_destination) = (entry.before.is_none(), entry.hop.is_none());
        let key = entry.key();
        let standing = self.ledger.find(&key).and_then(|id| self.ledger.get(id));
        // A question is answered by the contract that stands, whatever becomes of another one.
        if is_source && standing.is_none_or(|entry| !entry.state.is_open()) {
            self.question_ended(key.channel);
        }
        if is_source && entry.is_pending {
            return self.end_pending(now, entry, self.denied_of(&ending));
        }
        if entry.state.is_open()
            && (is_source || is_destination)
            && self.goes_on(now, entry, (&ending, told_by))
        {
            return;
        }
        match (is_source || is_destination, entry.state.is_open()) {
            (true, true) => {
                let close = self.close_of(&ending);
                if !self.broke(now, id, entry, &close) {
                    let (RcapClose { cause, node }, sending, denied) = (close, is_source, None);
                    self.tell(RcapEvent::Closed { key, entry: id, sending, cause, node, denied });
                }
            }
            (true, false) if is_source => self.settle(now, key.channel, self.denied_of(&ending)),
            (true, false) if told_by != Some(Side::Program) => {
                self.tell(RcapEvent::IncomingGone { key, ending });
            }
            _ => {}
        }
    }

    /// An ending in the words of a close.
    pub(super) fn close_of(&self, ending: &Ending) -> RcapClose {
        match ending {
            Ending::Closed { cause, node } => RcapClose { cause: *cause, node: *node },
            Ending::Superseded => RcapClose { cause: CloseCause::Refused, node: self.own },
            Ending::Denied(denied) => {
                let cause = match denied.test {
                    RcapTest::LeaseOver | RcapTest::ReceiverSilent => CloseCause::NoAnswer,
                    RcapTest::NeighbourLost => CloseCause::PeerGone,
                    RcapTest::ShareLost => CloseCause::ReservationLost,
                    RcapTest::Closed => CloseCause::Finished,
                    _ => CloseCause::Refused,
                };
                RcapClose { cause, node: denied.node }
            }
        }
    }

    /// An ending in the words of a denial.
    pub(super) fn denied_of(&self, ending: &Ending) -> RcapDenied {
        match ending {
            Ending::Denied(denied) => *denied,
            Ending::Superseded => simply(self.own, RcapTest::Closed),
            Ending::Closed { cause, node } => {
                let test = match cause {
                    CloseCause::PeerGone | CloseCause::PeerDied => RcapTest::NeighbourLost,
                    CloseCause::ReservationLost => RcapTest::ShareLost,
                    CloseCause::ReceiverClosed | CloseCause::ReceiverDied => RcapTest::ReceiverRefused,
                    CloseCause::NoAnswer => RcapTest::LeaseOver,
                    _ => RcapTest::Closed,
                };
                simply(*node, test)
            }
        }
    }

    /// The entry of this channel and attempt.
    pub(super) fn entry_of(&self, of: &RcapChannel) -> Option<EntryId> {
        self.ledger.exactly(of)
    }

    /// A neighbour believes in a channel that is not here: it is to release it.
    pub(super) fn close_unknown(&mut self, to: NodeId, of: RcapChannel) {
        self.counters.stray += 1;
        let close = RcapClose { cause: CloseCause::NoAnswer, node: self.own };
        self.send(to, of, RcapBody::CloseForward(close));
    }

    /// The local medium has answered for an entry that is gone.
    pub(super) fn release_again(&mut self, entry: EntryId) {
        let ending = Ending::Denied(simply(self.own, RcapTest::LeaseOver));
        self.outputs.push_back(RcapOutput::Release { entry, ending });
    }

    /// A neighbour on this side ends an attempt, or a channel.
    pub(super) fn on_end(
        &mut self,
        now: Instant,
        from: NodeId,
        of: &RcapChannel,
        ending: Ending,
        side: Side,
    ) {
        let is_from = |entry: &Entry| match side {
            Side::Before => entry.before == Some(from),
            _ => entry.hop.is_some_and(|hop| hop.node == from) && entry.state != State::Reserving,
        };
        let id = self.entry_of(of).filter(|id| self.ledger.get(*id).is_some_and(is_from));
        match (id, &ending) {
            (Some(id), _) => self.release(now, id, ending, Some(side)),
            (None, _) if side == Side::Before && self.has_word(of, from) => self.take_back(of, &ending),
            (None, Ending::Closed { cause, node })
                if side == Side::Before
                    && self.source_died(now, from, of, RcapClose { cause: *cause, node: *node }) => {}
            (None, _) => self.counters.stray += 1,
        }
    }

    /// A lease or the time for an answer has ended.
    pub(super) fn lapse(&mut self, now: Instant, id: EntryId) {
        let Some(entry) = self.ledger.get(id) else { return };
        if entry.state.is_open() {
            return self.release(now, id, self.given_up(), None);
        }
        let answering = entry.state == State::Answering;
        let test = if answering { RcapTest::ReceiverSilent } else { RcapTest::LeaseOver };
        self.counters.lapsed += 1;
        self.release(now, id, Ending::Denied(simply(self.own, test)), None);
    }

    /// Ends an entry by a fault that this node sees.
    pub(super) fn fail(
        &mut self,
        now: Instant,
        id: EntryId,
        test: RcapTest,
        end: (CloseCause, NodeId),
        side: Option<Side>,
    ) {
        let Some(entry) = self.ledger.get(id) else { return };
        let (cause, node) = end;
        let ending = match entry.state.is_open() {
            true => Ending::Closed { cause, node },
            false => Ending::Denied(simply(self.own, test)),
        };
        self.release(now, id, ending, side);
    }

    /// The local medium has lost the share of an entry.
    pub fn share_lost(&mut self, now: Instant, id: EntryId) {
        self.hop_ended(now, id, CloseCause::ReservationLost);
    }

    /// The hop of an entry has ended by itself.
    pub fn hop_ended(&mut self, now: Instant, id: EntryId, cause: CloseCause) {
        let entry = self.ledger.get(id).filter(|entry| entry.before.is_none());
        let node = self.blamed(cause, entry.and_then(|entry| entry.hop).map(|hop| hop.node));
        self.fail(now, id, RcapTest::ShareLost, (cause, node), None);
    }

    /// The last hop of a channel that is received here, by this local id, has ended by itself.
    pub fn arrival_ended(&mut self, now: Instant, of: ChannelKey, label: u16, cause: CloseCause) {
        let is_it = |id: &EntryId| self.ledger.get(*id).is_some_and(|entry| entry.label == label);
        let Some(id) = self.ledger.all_of(&of).find(is_it) else { return };
        let node = self.blamed(cause, self.ledger.get(id).and_then(|entry| entry.before));
        self.fail(now, id, RcapTest::ShareLost, (cause, node), None);
    }

    /// The node that failed: the neighbour where the cause is of it, this one otherwise.
    fn blamed(&self, cause: CloseCause, neighbour: Option<NodeId>) -> NodeId {
        let is_of_peer = matches!(cause, CloseCause::PeerGone | CloseCause::PeerStopped);
        neighbour.filter(|_| is_of_peer).unwrap_or(self.own)
    }

    /// Ends all entries through a neighbour whose session has ended.
    pub(super) fn release_through(&mut self, now: Instant, node: NodeId) {
        let side = |entry: &Entry| match entry.before == Some(node) {
            true => Some(Side::Before),
            false => entry.hop.filter(|hop| hop.node == node).map(|_| Side::Behind),
        };
        let through: Vec<(EntryId, Side)> =
            self.ledger.iter().filter_map(|(id, entry)| Some((id, side(entry)?))).collect();
        for (id, side) in through {
            self.fail(now, id, RcapTest::NeighbourLost, (CloseCause::PeerGone, node), Some(side));
        }
    }

    /// Ends a channel whose source or destination is here (`TENET-4.1-8`), also one that is not open yet.
    ///
    /// # Errors
    /// [`RcapCallError::NoChannel`].
    pub fn close(&mut self, now: Instant, of: ChannelKey, cause: CloseCause) -> Result<(), RcapCallError> {
        let ends_here = |entry: &Entry| entry.before.is_none() || entry.hop.is_none();
        let id = self.ledger.find(&of).filter(|id| self.ledger.get(*id).is_some_and(ends_here));
        let is_own = of.origin == self.own;
        if is_own && let Some(call) = self.calls.get_mut(&of.channel) {
            // No attempt follows this one.
            call.is_over = true;
            if let Some((broken, _)) = &mut call.broken {
                (broken.cause, broken.node) = (cause, of.origin);
            }
            if id.is_none() {
                self.settle(now, of.channel, simply(self.own, RcapTest::Closed));
                return Ok(());
            }
        }
        if id.is_none() && self.close_kept(of, cause) {
            return Ok(());
        }
        let id = id.ok_or(RcapCallError::NoChannel)?;
        let ending = Ending::Closed { cause, node: self.own };
        // At a destination the channel ends with the contract that stood first.
        let newer: Vec<EntryId> = self.ledger.all_of(&of).filter(|_| !is_own).collect();
        for newer in newer.into_iter().rev() {
            self.release(now, newer, ending, Some(Side::Program));
        }
        self.release(now, id, ending, Some(Side::Program));
        Ok(())
    }

    /// Ends all channels through this node, which stops.
    pub fn close_all(&mut self, now: Instant) {
        self.calls.values_mut().for_each(|call| call.is_over = true);
        let all: Vec<EntryId> = self.ledger.iter().map(|(id, _)| id).collect();
        for id in all {
            self.release(now, id, Ending::Closed { cause: CloseCause::PeerStopped, node: self.own }, None);
        }
        self.close_all_kept(CloseCause::PeerStopped);
        let waiting: Vec<_> = self.calls.keys().copied().collect();
        for channel in waiting {
            self.settle(now, channel, simply(self.own, RcapTest::Closed));
        }
        self.end_invites(now);
    }
}
