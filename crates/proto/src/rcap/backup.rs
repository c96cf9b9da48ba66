//! A second path for a channel, reserved before the first one fails (`TENET-7-6`).
//!
//! ```text
//! source       first path open ──request, apart──► second path open beside it: the program hears of both
//!                                 └──denied──► the first one is closed, the program is refused
//!              first path fails ──► sends on the second one at once
//! destination  both open ──first one fails, or a packet comes by the second one──► open by the second one
//! ```
//!
//! The request for the second path is a pass of its own for the same channel, under the next attempt, as that
//! of a change is (`change.rs`), and the destination has both entries as it has those of a change. It names
//! the nodes of the first path, and every node passes them by: there is no second path through any of them.
//! Two paths may share a segment, where it has several gateways.
//!
//! The source tells RTIP of its part of the second path when it switches, and not before: until then no
//! packet can leave by it. Both paths are reserved all the time. The failure of the second one is no failure
//! of the channel. After a switch the channel has no second path any more, and looks for another one as any
//! other. Behind a switch a change waits until the destination, too, has seen the first path fail: until then
//! that one would be the contract beside which it opens the new one.
//!
//! A change before a switch (`change.rs`) renews both paths. The accept of the new contract waits at the
//! source until there is a second path apart from it, and the channel goes by it then. Both old paths are
//! what they were until then, and are given up behind that. A destination may have all four, and does not
//! know which of them the source goes on by: packets tell.

use super::Rcap;
use super::call::Call;
use super::end::Side;
use super::io::{Ending, EntryId, Installed, Promise, RcapEvent, RcapOutput, simply};
use super::ledger::{Entry, key};
use super::record::{Again, Demand, Record};
use super::reroute::{SILENT_MAX, is_of_path};
use super::search::Nodes;
use rota_contract::{ChannelId, CloseCause, NodeId};
use rota_units::{Instant, Span};
use rota_wire::{RcapChannel, RcapClose, RcapDenied, RcapTest};

/// The nodes behind a failure pass the word on within this time.
const TOLD: Span = Span::from_millis(100);

/// The end of a second path. At the source: what RTIP and the program will be told.
#[derive(Clone, Debug, Default)]
pub(super) struct Standby {
    installed: Option<Installed>,
    path: Option<(Promise, Vec<Record>)>,
}

/// A channel whose first path is open at its source, and waits for the second one.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) entry: EntryId,
    pub(super) promise: Promise,
    pub(super) nodes: Vec<Record>,
    /// Of a change: what RTIP will be told.
    pub(super) installed: Option<Installed>,
}

impl Pending {
    /// The nodes of the first path, without its ends.
    pub(super) fn between(&self) -> impl Iterator<Item = NodeId> {
        self.nodes.iter().skip(1).map(|record| record.node)
    }

    /// The request for the second path.
    pub(super) fn demand(&self, first: Demand) -> Demand {
        let apart = Nodes::of(self.between());
        Demand { again: Some(Again { avoid: None, apart, ..Again::default() }), ..first }
    }
}

impl Rcap {
    /// True if an entry is that of a second path, or was before its source switched.
    pub fn is_second_path(&self, entry: EntryId) -> bool {
        self.ledger.get(entry).is_some_and(|entry| entry.demand.is_second())
    }

    /// An accept that has come to its source waits there for others. Its demand.
    fn set_pending(&mut self, channel: ChannelId, accepted: Pending, until: Instant) -> Option<Demand> {
        let own = self.ledger.get_mut(accepted.entry)?;
        own.is_pending = true;
        let (demand, newest, pending) = (own.demand, own.newest, Some(Box::new(accepted)));
        let call = Call::new(demand, until);
        self.calls.insert(channel, Call { attempts: newest, change: Some(newest), pending, ..call });
        Some(demand)
    }

    /// The new contract of a branch is open up to its source, which goes by it when all branches do.
    pub(super) fn await_others(&mut self, channel: ChannelId, branch: Pending) {
        if let Some(demand) = self.set_pending(channel, branch, Instant::FAR) {
            self.tell(RcapEvent::Ready { channel, octets: demand.packets.octets });
        }
    }

    /// True if a channel that is sent here has a path in reserve.
    pub(super) fn has_spare(&self, of: &RcapChannel) -> bool {
        let is_spare = |id| self.ledger.get(id).is_some_and(|entry| entry.standby.is_some());
        self.ledger.all_of(&key(of)).any(is_spare)
    }

    /// The first path is open: the second one is asked for before the program hears of that.
    pub(super) fn ask_second(&mut self, now: Instant, channel: ChannelId, first: Pending, until: Instant) {
        let has_between = first.nodes.len() >= 2;
        // The program has its outcome in the time that it has for any channel.
        match self.set_pending(channel, first, until) {
            None => {}
            Some(_) if has_between => self.attempt(now, channel),
            // Nothing between that a second path could pass by.
            Some(_) => self.settle(now, channel, simply(self.own, RcapTest::NoSecondPath)),
        }
    }

    /// The second path was denied: the channel or its change is refused, and the first one is given back.
    pub(super) fn no_second(
        &mut self,
        now: Instant,
        (channel, pending): (ChannelId, &Pending),
        denied: RcapDenied,
    ) {
        self.release(now, pending.entry, Ending::Denied(denied), None);
        if pending.installed.is_some() {
            self.tell(RcapEvent::NotChanged { channel, denied });
        }
    }

    /// The accept of the second path has come back to the source: the program may send.
    pub(super) fn has_second(
        &mut self,
        now: Instant,
        (channel, entry): (ChannelId, EntryId),
        path: (Promise, Vec<Record>),
        call: Option<Call>,
    ) {
        self.end_answer(now, channel, None);
        if let Some(standby) = self.ledger.get_mut(entry).and_then(|own| own.standby.as_mut()) {
            standby.path = Some(path);
        }
        let Some(pending) = call.and_then(|call| call.pending) else { return };
        let newest = self.ledger.get(entry).map_or(0, |second| second.of.attempt);
        if let Some(first) = self.ledger.get_mut(pending.entry) {
            first.newest = first.newest.max(newest);
        }
        self.goes_over(now, channel, *pending, Span::ZERO);
    }

    /// A channel goes by an accept that had to wait for others. Units that were handed over before have come
    /// within its bound, or within `former` if that is longer.
    pub(super) fn goes_over(&mut self, now: Instant, channel: ChannelId, pending: Pending, former: Span) {
        let Pending { entry: first, promise, nodes, installed } = pending;
        if let Some(first) = self.ledger.get_mut(first) {
            first.is_pending = false;
        }
        match installed {
            None => self.tell(RcapEvent::Opened { channel, entry: first, promise, nodes }),
            Some(installed) => {
                self.outputs.push_back(RcapOutput::Install { entry: first, channel: installed });
                self.changed(now, channel, first, (promise, nodes), former);
            }
        }
    }

    /// The entry that opens is that of a second path at one of its ends. At the source RTIP is not told yet.
    pub(super) fn stand_by(&mut self, entry: EntryId, installed: Option<Installed>) {
        if let Some(own) = self.ledger.get_mut(entry) {
            own.standby = Some(Standby { installed, path: None });
        }
    }

    /// An open path has ended at one of its ends, and the channel has another one: true if it goes on by
    /// that.
    pub(super) fn switches(
        &mut self,
        now: Instant,
        entry: &Entry,
        (id, close, told_by): (EntryId, RcapClose, Option<Side>),
    ) -> bool {
        let (key, sending) = (entry.key(), entry.before.is_none());
        let RcapClose { cause, node } = close;
        // An attempt that came to nothing on the way back is no end of the channel.
        let is_wanted =
            !is_of_path(entry, &close) && !matches!(cause, CloseCause::NoAnswer | CloseCause::Refused);
        if entry.standby.is_some() {
            if sending && is_of_path(entry, &close) {
                self.tell(RcapEvent::SecondLost { channel: key.channel, cause, node });
            }
            if sending && is_wanted && told_by == Some(Side::Behind) {
                // The destination ends the channel. By the first path its word may never come: it may have
                // seen a failure there that this node has not heard of yet, and not have that path any more
                // (seed 62000006557 of the product's timers).
                self.release(now, id, Ending::Closed { cause, node }, None);
            }
            if !sending && is_wanted {
                // The source ends the channel. By the first path its word may never come: it may have
                // switched because of a failure that this node has not seen yet.
                self.release(now, id, Ending::Closed { cause, node }, None);
            }
            return true;
        }
        if !is_of_path(entry, &close) {
            // An end that somebody wants: the other path ends, too, and then the channel.
            return !sending;
        }
        let standby = self.ledger.get_mut(id).and_then(|other| other.standby.take());
        if sending && let Some(Standby { installed: Some(channel), path: Some((promise, nodes)) }) = standby {
            if let Some(used) = self.ledger.get_mut(id) {
                used.agreed = now + SILENT_MAX + TOLD;
                // Attempts to change the channel were noted at the path that was used then.
                used.newest = used.newest.max(entry.newest);
            }
            self.tell(RcapEvent::Broken { key, sending, cause, node });
            self.outputs.push_back(RcapOutput::Install { entry: id, channel });
            self.tell(RcapEvent::Switched { channel: key.channel, entry: id, promise, nodes });
        }
        true
    }

    /// A channel that waits for its second path, or the change of one, has ended: its program hears of a
    /// refusal.
    pub(super) fn end_pending(&mut self, now: Instant, entry: &Entry, denied: RcapDenied) {
        let (channel, attempts) = (entry.of.channel, entry.of.attempt);
        if entry.demand.is_change() {
            let was_asked = self.calls.remove(&channel).is_some();
            self.drop_attempts_behind(now, &entry.key(), attempts);
            if was_asked {
                self.tell(RcapEvent::NotChanged { channel, denied });
            }
            return;
        }
        self.end_answer(now, channel, Some(denied));
        self.tell(RcapEvent::Refused { channel, denied, attempts });
    }
}
