//! Another contract for an open channel: its traffic, its service or its way (`TENET-7-4`). The paper names
//! it dynamic connection management, and no messages for it; here it is a second pass of RCAP for the same
//! channel.
//!
//! ```text
//! source       Open ──request, change──► Open beside it ──accept──► Open by the new contract
//!                                          └──denied──► as it was     the old one ends when all is there
//! destination  Open ──request, change──► both open ──close of one of them──► Open by the other one
//! ```
//!
//! The request goes under the channel's next attempt. On the hops from the source on which both contracts
//! come the same way the new one *takes the place* of the old one: the node reserves the greater of both
//! ([`Ledger::former`]), and the packets of both wait in one queue, in their order. Decision 038 has the
//! proof. On every other hop the node reserves the whole new contract *beside* the old one and tests it as it
//! tests a new channel. Quotas count one of the two. The destination asks no program: it tests the memory
//! that the program has. With the accept the source gives its next unit to the new contract, so that the
//! first packet of that one names the unit with which the contract begins. The old one ends when its last
//! packet has had the time that was promised to it.
//!
//! Behind a hop where both are reserved packets of the new contract may be quicker than the last ones of the
//! old one. Each contract keeps its own bound there, since none serves the other one's packets. So only the
//! destination restores the order: it holds what comes too early (`rtip/hold.rs`).
//!
//! A denial, a lease that ends, a failure of the new way: the new entry goes, and the old one was never
//! touched. The failure of the old way before the accept ends the change, and the channel looks for another
//! way by the contract that it had. Of two open entries at a destination the one that stays is the channel;
//! the source, which alone decides, closes the other one.
//!
//! The change of a channel with a path in reserve goes over at the source once the new contract has such a
//! path, too (`backup.rs`).
//!
//! A change that no node can have in the place of the old contract is asked for once more, beside it on every
//! hop: one with a shorter bound than the old one leaves to its links, say. A change of a statistical channel
//! and of a member of a group is asked for so from the beginning.
//!
//! Each branch of a tree changes so, too, beside its contract on every hop: in the place of that one a hop
//! would have the entries of all branches by two contracts, each of which may come to nothing by itself. An
//! accept waits at the source for those of all other branches ([`Rcap::go_over`]).

use super::Rcap;
use super::call::{ATTEMPTS_MAX, Call};
use super::end::Side;
use super::establish::Attempt;
use super::io::{
    ChannelKey, ChannelRequest, Ending, EntryId, Promise, RcapCallError, RcapEvent, counted, simply,
};
use super::ledger::{Entry, State, key};
use super::record::{Demand, Record};
use rota_admission::Clocks;
use rota_contract::{ChannelId, CloseCause};
use rota_units::{Instant, Span};
use rota_wire::{RcapChannel, RcapDenied, RcapTest};

/// The old contract stays by so long behind its bound: a close overtakes no packet, also on another clock.
const PARTING: Span = Span::from_millis(50);
/// Units for which each receiver has memory at least.
const MEMORY_LEAST: u64 = 4;

/// Units that wait in the memory of a program, at most: those of the bound, the one that is read and the one
/// that comes.
pub(crate) fn units_within(bound: Span, period: Span) -> u64 {
    bound.as_nanos().div_ceil(period.as_nanos().max(1)).saturating_add(2)
}

/// The units for which the memory of a receiving program is made, where `units` may wait: with a quarter
/// more a later contract may bring them somewhat closer, or take somewhat longer.
pub(crate) const fn with_spare(units: u64) -> u64 {
    units.saturating_add(units.div_ceil(4))
}

/// True if a change that was refused in the place of its contract may fit beside it: room, bounds, or a hop
/// that cannot grow.
pub(super) const fn may_fit_beside(denied: &RcapDenied) -> bool {
    use RcapTest as Test;
    matches!(
        denied.test,
        Test::Load
            | Test::EdfExact
            | Test::RcspLevel
            | Test::RetherShare
            | Test::CyclePackets
            | Test::PathDelay
            | Test::PathJitter
            | Test::Undecided
            | Test::TableFull
            | Test::Unsupported
    )
}

impl Entry {
    /// At the destination of a change: packets that it may hold.
    pub(super) fn held_packets(&self) -> u64 {
        self.buffer_octets / self.demand.packets.octets.get().max(1)
    }
}

impl Rcap {
    /// Asks for another contract of an open channel whose source is here. Destination, service, user and room
    /// stay what they are. The outcome is one event: changed or not.
    ///
    /// # Errors
    /// The request can be seen to be wrong without asking anybody, or a change is under way.
    pub fn change(
        &mut self,
        now: Instant,
        channel: ChannelId,
        request: ChannelRequest,
    ) -> Result<(), RcapCallError> {
        let key = ChannelKey { origin: self.own, channel };
        let id = self.ledger.find(&key).ok_or(RcapCallError::NoChannel)?;
        let entry = self.ledger.get(id).filter(|entry| entry.state.is_open());
        let entry = entry.ok_or(RcapCallError::NoChannel)?;
        let ChannelRequest { destination, service, uid, room, reroute, .. } = entry.demand.request;
        if request.messages.s_max > room {
            let asked = request.messages.s_max.get();
            return Err(RcapCallError::Room { asked, room: room.get() });
        }
        let life = entry.demand.request.life;
        let request = ChannelRequest { destination, service, uid, room, reroute, life, ..request };
        // In packets of the size that it has, less is less of each share, too.
        let (heard, packets) = (entry.demand.heard, entry.demand.packets);
        let packet_max = request.packet_max.min(packets.octets);
        let alike = Demand::of(heard, ChannelRequest { packet_max, ..request });
        let alike = alike.ok().filter(|of| packets.traffic.carries(&of.packets.traffic));
        let demand = alike.map_or_else(|| Demand::of(heard, request), Ok)?;
        if self.calls.contains_key(&channel) {
            return Err(RcapCallError::Changing);
        }
        if self.calls.len() >= self.limits.calls {
            return Err(RcapCallError::Full);
        }
        let (newest, agreed) = (entry.newest, Some(entry.agreed).filter(|at| *at > now));
        if newest > ATTEMPTS_MAX {
            return Err(RcapCallError::Attempts);
        }
        // The change before this one is over when its old contract has ended.
        let parts = self.ledger.all_of(&key).filter_map(|id| self.ledger.get(id)).map(|entry| entry.due);
        let parts = parts.filter(|due| *due < Instant::FAR).max();
        // A call that waits takes the place of others.
        if parts.is_some_and(|due| due > now + self.limits.patience) {
            return Err(RcapCallError::Changing);
        }
        let waits = parts.into_iter().chain(agreed).max();
        let call = Call::new(demand, waits.unwrap_or(now) + self.limits.patience);
        self.calls.insert(channel, Call { attempts: newest, retry_at: waits, change: Some(newest), ..call });
        if waits.is_none() {
            self.attempt(now, channel);
        }
        Ok(())
    }

    /// An attempt begins: the number of a later one is greater, whatever becomes of this one.
    pub(super) fn note_attempt(&mut self, of: &RcapChannel) {
        let standing = self.ledger.find(&key(of));
        if let Some(entry) = standing.and_then(|id| self.ledger.get_mut(id)) {
            entry.newest = entry.newest.max(of.attempt);
        }
    }

    /// The accept of a change has come back to the source. Units that were handed over before have come
    /// within the bound of before, or within `former` if that is longer.
    pub(super) fn changed(
        &mut self,
        now: Instant,
        channel: ChannelId,
        entry: EntryId,
        (promise, nodes): (Promise, Vec<Record>),
        former: Span,
    ) {
        let key = ChannelKey { origin: self.own, channel };
        let olds: Vec<EntryId> = self.ledger.all_of(&key).filter(|id| *id < entry).collect();
        for id in olds {
            let Some(old) = self.ledger.get_mut(id) else { continue };
            if old.standby.take().is_some() {
                // Nothing has left by it, and nothing will.
                self.release(now, id, self.given_up(), None);
            } else {
                let due = now + former.max(old.promise) + PARTING;
                self.ledger.end_at(id, due);
            }
        }
        let Some(own) = self.ledger.get(entry) else { return };
        let request = own.demand.request;
        self.tell(RcapEvent::Changed { channel, entry, request, promise, nodes });
    }

    /// The new contract of a branch that has told [`RcapEvent::Ready`] is that by which its source sends.
    /// Units that were handed over before have come within `former`, to all receivers: the old contract of
    /// all branches ends at one time, so that none of a later change finds it.
    pub fn go_over(&mut self, now: Instant, channel: ChannelId, former: Span) {
        let Some(call) = self.calls.get_mut(&channel) else { return };
        let Some(pending) = call.pending.take() else { return };
        self.calls.remove(&channel);
        self.goes_over(now, channel, *pending, former);
    }

    /// The change of a branch comes to nothing, because of another branch: it keeps the contract that it has,
    /// without a word.
    pub fn drop_change(&mut self, now: Instant, channel: ChannelId) {
        if self.calls.get(&channel).is_none_or(|call| call.change.is_none()) {
            return;
        }
        self.calls.remove(&channel);
        let key = ChannelKey { origin: self.own, channel };
        if let Some(standing) = self.ledger.find(&key).and_then(|id| self.ledger.get(id)) {
            let attempt = standing.of.attempt;
            self.drop_attempts_behind(now, &key, attempt);
        }
    }

    /// The attempts of a channel that is sent here behind this one come to nothing.
    pub(super) fn drop_attempts_behind(&mut self, now: Instant, key: &ChannelKey, attempt: u16) {
        let is_later = |id: &EntryId| self.ledger.get(*id).is_some_and(|of| of.of.attempt > attempt);
        for id in self.ledger.all_of(key).filter(is_later).collect::<Vec<_>>() {
            self.release(now, id, Ending::Denied(simply(self.own, RcapTest::LeaseOver)), None);
        }
    }

    /// The end of a contract that another one has followed. A destination that has not heard of that one, or
    /// has lost it, takes this for the failure of its path.
    pub(super) const fn given_up(&self) -> Ending {
        Ending::Closed { cause: CloseCause::ReservationLost, node: self.own }
    }

    /// The contract by which a source sends ends: so does the change that is under way, or the contract that
    /// stood before.
    pub(super) fn part_with_other(&mut self, now: Instant, id: EntryId, ending: &Ending) {
        let Some(entry) = self.ledger.get(id) else { return };
        let key = entry.key();
        let is_spare = entry.standby.is_some();
        if entry.before.is_some() || !entry.state.is_open() || is_spare || self.ledger.find(&key) != Some(id)
        {
            return;
        }
        let close = self.close_of(ending);
        let goes_on = super::reroute::is_failure(entry, &close);
        let is_of_path = super::reroute::is_of_path(entry, &close);
        let is_spare = |id: &EntryId| self.ledger.get(*id).is_some_and(|other| other.standby.is_some());
        let others =
            self.ledger.all_of(&key).filter(|other| *other != id && !(is_of_path && is_spare(other)));
        let others: Vec<EntryId> = others.collect();
        if entry.is_pending {
            // Its end is that of the call, too, and no attempt follows.
            self.calls.remove(&key.channel);
        } else if self.calls.get(&key.channel).is_some_and(|call| call.change.is_some()) {
            self.calls.remove(&key.channel);
            let denied = self.denied_of(ending);
            self.tell(RcapEvent::NotChanged { channel: key.channel, denied });
        }
        for other in others {
            let is_open = self.ledger.get(other).is_some_and(|other| other.state.is_open());
            let lapsed = Ending::Denied(simply(self.own, RcapTest::LeaseOver));
            let ending = match (goes_on, is_open) {
                (false, _) => *ending,
                (true, true) => self.given_up(),
                (true, false) => lapsed,
            };
            self.release(now, other, ending, None);
        }
    }

    /// An open contract has ended at one of its ends: true if the channel goes on by another one, and no
    /// program hears of this end.
    pub(super) fn goes_on(
        &mut self,
        now: Instant,
        entry: &Entry,
        (ending, told_by): (&Ending, Option<Side>),
    ) -> bool {
        let key = entry.key();
        let other = self.ledger.find(&key).and_then(|id| Some((id, self.ledger.get(id)?)));
        let Some((id, other)) = other.filter(|(_, other)| other.state.is_open()) else { return false };
        let close = self.close_of(ending);
        if entry.standby.is_some() || other.standby.is_some() {
            let is_wanted = entry.standby.is_none() && !super::reroute::is_of_path(entry, &close);
            let goes_on = self.switches(now, entry, (id, close, told_by));
            if entry.before.is_none() || is_wanted {
                return goes_on;
            }
        }
        let Some(other) = self.ledger.get(id) else { return true };
        let is_newer = other.standby.is_none() && other.of.attempt > entry.of.attempt;
        // The source of a change whose first path has failed may go on by the path in reserve of before.
        if entry.before.is_some() && is_newer && self.ledger.all_of(&key).next() == Some(id) {
            let is_given_up = close.node == key.origin && close.cause == CloseCause::ReservationLost;
            // Its source may not know of the change yet, and give it up: the channel has failed then.
            let first = (!is_given_up).then_some((close.cause, close.node));
            if let Some(other) = self.ledger.get_mut(id) {
                other.first = first;
            }
            let is_less = self.ledger.set_buffers(id, 0, u64::MAX);
            assert!(is_less, "nothing is held any more");
            self.tell(RcapEvent::ChangedHere { key, entry: id });
        }
        true
    }

    /// At the destination, the promise to a new channel, and the units for which its program makes memory. A
    /// node before that sends over a link has yet to relax its bound.
    pub(super) fn promise_here(&mut self, id: EntryId) {
        let Some(entry) = self.ledger.get_mut(id) else { return };
        entry.promise = entry.demand.promise_at_end(&entry.records);
        let units = units_within(entry.promise, entry.demand.request.messages.x_min);
        entry.memory = with_spare(units).max(MEMORY_LEAST);
    }

    /// The memory of a program that receives holds so many units.
    pub(crate) fn state_memory(&mut self, of: ChannelKey, units: u64) {
        let id = self.ledger.find(&of);
        if let Some(entry) = id.and_then(|id| self.ledger.get_mut(id)) {
            entry.memory = entry.memory.max(units);
        }
    }

    /// At the destination: the program that has the channel gets it by another contract, without being asked,
    /// if its memory is large enough.
    pub(super) fn arrive_changed(&mut self, now: Instant, attempt: Attempt) -> Result<EntryId, RcapDenied> {
        let Attempt { of, demand, records, .. } = &attempt;
        let key = key(of);
        let deny = |test| simply(self.own, test);
        let standing = self.ledger.find(&key).and_then(|id| self.ledger.get(id));
        let standing = standing.filter(|entry| entry.state.is_open() && entry.hop.is_none());
        // Its path has failed here, and its source is about to hear of that.
        let absent =
            if self.kept.contains_key(&key) { RcapTest::NeighbourLost } else { RcapTest::ReceiverRefused };
        let standing = standing.ok_or(deny(absent))?;
        let (before, asked) = (&standing.demand.request, &demand.request);
        if before.service != asked.service {
            return Err(deny(RcapTest::Garbage));
        }
        if asked.messages.s_max > before.room {
            let nearest_octets = u32::try_from(before.room.get()).unwrap_or(u32::MAX);
            return Err(RcapDenied { nearest_octets, ..deny(RcapTest::Room) });
        }
        let promise = demand.promise_at_end(records);
        // A second path is for a failure: units that do not fit are lost then.
        let is_second = demand.is_second();
        let (x_min, memory) = (asked.messages.x_min, standing.memory);
        let units = units_within(promise.max(standing.promise), x_min);
        if !is_second && units > memory {
            // The longest D_max whose units it holds.
            let held = x_min * memory.saturating_sub(2);
            let is_kept = held >= demand.delay(records).max(standing.promise);
            let nearest_delay_ns = if is_kept { held.as_nanos() } else { 0 };
            return Err(RcapDenied {
                nearest_delay_ns,
                ..counted(self.own, RcapTest::Room, (units, memory))
            });
        }
        // Packets that may come until the last one of the old contract has: each may be early by its bound.
        let traffic = Clocks::APART.counted(&demand.packets.traffic);
        let packets = traffic.closed(standing.promise + promise);
        let octets = packets.saturating_mul(demand.packets.octets.get());
        let sum = self.ledger.buffer_octets().saturating_add(octets);
        if packets > self.limits.channel_buffers || sum > self.limits.buffer_octets {
            let left = self.limits.buffer_octets.saturating_sub(self.ledger.buffer_octets());
            let most = self.limits.channel_buffers.min(left / demand.packets.octets.get().max(1));
            return Err(counted(self.own, RcapTest::PortBuffer, (packets, most)));
        }
        let (room, memory, gone) = (before.room, standing.memory, (standing.former, standing.orphan_until));
        let mut attempt = attempt;
        attempt.demand.request.room = room;
        let request = attempt.demand.request;
        let entry = self.add(now, attempt, None, State::Answering);
        if let Some(added) = self.ledger.get_mut(entry) {
            (added.promise, added.memory) = (promise, memory);
            // A word of the death of its source on a path before counts for this contract, too.
            (added.former, added.orphan_until) = gone;
        }
        let is_taken = self.ledger.set_buffers(entry, octets, self.limits.buffer_octets);
        assert!(is_taken, "it was looked at just now");
        self.tell(RcapEvent::Changing { key, entry, request, promise });
        self.accept(now, entry);
        Ok(entry)
    }
}
