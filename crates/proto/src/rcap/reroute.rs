//! Another path for an open channel whose path has failed (`TENET-2-8`, `TENET-2-9`, `TENET-7-5`). The paper
//! names a protocol of its own for this, RTCMP, and built none; here RCAP does it.
//!
//! ```text
//! source       Open ──path fails──► looks for another way ──accept──► Open
//!                                     └────no way in time, close────► Closed, with the first cause
//! destination  Open ──path fails──► keeps its end ──request again──► Open
//!                                     └────nobody asks in time──────► Closed, with the first cause
//! ```
//!
//! Each end learns of the failure as before, and all that the old path holds is given back at once. The
//! source asks anew for the same channel under the next number of an attempt: at once, and then after random
//! times, which performed best of the schemes that Tenet compared. The request says that it comes again, so
//! that the destination gives it to the program that has the channel and not to one that listens, and which
//! node failed, so that others pass it by although they may not have heard of that.
//!
//! A node that still has the old attempt gives it up for the new one. The old one's packets are dropped from
//! then on: none comes twice, and none overtakes another one.

use super::Rcap;
use super::call::Call;
use super::change::units_within;
use super::establish::Attempt;
use super::io::{ChannelKey, EntryId, RcapEvent, counted, simply};
use super::ledger::{Entry, State, key};
use super::record::{Demand, Record};
use super::routes::{Route, Routes};
use rota_contract::{ChannelId, CloseCause, NodeId};
use rota_units::{Instant, Span};
use rota_wire::{RcapClose, RcapDenied, RcapTest};

/// A session without an answer ends within this time, at each of its ends by itself.
pub(super) const SILENT_MAX: Span = Span::from_millis(2_000);

/// The end of a path that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    entry: EntryId,
    pub(super) cause: CloseCause,
    pub(super) node: NodeId,
    /// That node, where it is none of the ends.
    pub(super) avoid: Option<NodeId>,
}

/// The end of a channel at its destination, which waits for another path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    broken: Broken,
    demand: Demand,
    memory: u64,
    /// The promise by the path that failed.
    promise: Span,
    /// The neighbours that the packets came from, on this path and on the one before.
    ways: [Option<NodeId>; 2],
    pub(super) until: Instant,
}

/// True if an open channel ends because its path has failed, and not because somebody wants it to.
pub(super) fn is_failure(entry: &Entry, close: &RcapClose) -> bool {
    is_of_path(entry, close) && entry.demand.request.reroute > Span::ZERO
}

/// The same whether another path is looked for or not.
pub(super) fn is_of_path(entry: &Entry, close: &RcapClose) -> bool {
    let request = &entry.demand.request;
    let is_of_end = close.node == entry.of.origin || close.node == request.destination;
    match close.cause {
        CloseCause::PeerGone | CloseCause::ReservationLost | CloseCause::PortGone | CloseCause::WasSilent => {
            true
        }
        CloseCause::PeerStopped => !is_of_end,
        // An attempt for another path, which the destination has accepted, ended on the way back.
        CloseCause::NoAnswer | CloseCause::Refused => entry.first.is_some(),
        _ => false,
    }
}

impl Rcap {
    /// The path of an open channel has ended here. True if another one is looked for.
    pub(super) fn broke(&mut self, now: Instant, id: EntryId, entry: &Entry, close: &RcapClose) -> bool {
        if !is_failure(entry, close) {
            return false;
        }
        if now < entry.orphan_until {
            // Nobody is there to ask for another one.
            let (key, cause, node) = (entry.key(), CloseCause::PeerDied, entry.of.origin);
            self.tell(RcapEvent::Closed { key, entry: id, sending: false, cause, node, denied: None });
            return true;
        }
        let is_of_attempt = matches!(close.cause, CloseCause::NoAnswer | CloseCause::Refused);
        let first = entry.first.filter(|_| is_of_attempt);
        let (cause, node) = first.unwrap_or((close.cause, close.node));
        let (key, demand, sending) = (entry.key(), entry.demand, entry.before.is_none());
        let ends = [key.origin, demand.request.destination];
        let avoid = Some(node).filter(|node| !ends.contains(node));
        let broken = Broken { entry: id, cause, node, avoid };
        let reroute = demand.request.reroute;
        if sending {
            let call = Call::new(demand, now + reroute);
            let (attempts, retry_at) = (entry.newest, Some(now));
            let call = Call { attempts, retry_at, broken: Some((broken, 0)), ..call };
            self.calls.insert(key.channel, call);
        } else if self.kept.len() < self.limits.entries {
            // The source may have learned of the failure later, by as much as a silent session takes.
            let until = now + reroute + SILENT_MAX;
            let (memory, promise) = (entry.memory, entry.promise);
            let ways = [entry.before, entry.former];
            self.kept.insert(key, Kept { broken, demand, memory, promise, ways, until });
        } else {
            return false;
        }
        self.tell(RcapEvent::Broken { key, sending, cause, node });
        true
    }

    /// The source has found no other path.
    pub(super) fn no_way(&mut self, channel: ChannelId, broken: &Broken, denied: Option<RcapDenied>) {
        let key = ChannelKey { origin: self.own, channel };
        self.tell_closed(key, true, broken, denied);
    }

    fn tell_closed(&mut self, key: ChannelKey, sending: bool, broken: &Broken, denied: Option<RcapDenied>) {
        let Broken { entry, cause, node, .. } = *broken;
        self.tell(RcapEvent::Closed { key, entry, sending, cause, node, denied });
    }

    /// Ends at this destination for which nobody has asked again in time.
    pub(super) fn give_up_kept(&mut self, now: Instant) {
        let over = self.kept.extract_if(.., |_, kept| kept.until <= now).collect::<Vec<_>>();
        over.into_iter().for_each(|(key, kept)| self.tell_closed(key, false, &kept.broken, None));
    }

    /// The source has never opened the channel, and sets it up once more: an end of before is over.
    pub(super) fn begins_anew(&mut self, key: ChannelKey) {
        if let Some(kept) = self.kept.remove(&key) {
            self.tell_closed(key, false, &kept.broken, None);
        }
    }

    /// Ends a channel that waits for another path at this destination. True if there is one.
    pub(super) fn close_kept(&mut self, of: ChannelKey, cause: CloseCause) -> bool {
        let Some(kept) = self.kept.remove(&of) else { return false };
        let broken = Broken { cause, node: self.own, ..kept.broken };
        self.tell_closed(of, false, &broken, None);
        true
    }

    /// True if a channel waits for another path at this destination, and packets came from this neighbour.
    pub(super) fn is_kept_from(&self, of: &ChannelKey, from: NodeId) -> bool {
        self.kept.get(of).is_some_and(|kept| kept.ways.contains(&Some(from)))
    }

    /// Ends a channel that waits for another path at this destination, since none can come.
    pub(super) fn end_kept(&mut self, of: ChannelKey, close: RcapClose) {
        if let Some(kept) = self.kept.remove(&of) {
            let RcapClose { cause, node } = close;
            self.tell_closed(of, false, &Broken { cause, node, ..kept.broken }, None);
        }
    }

    /// All that wait, since this node stops.
    pub(super) fn close_all_kept(&mut self, cause: CloseCause) {
        while let Some((key, _)) = self.kept.first_key_value() {
            self.close_kept(*key, cause);
        }
    }

    /// At the destination: the program that has the channel gets it by another path, without being asked.
    pub(super) fn arrive_again(&mut self, now: Instant, attempt: Attempt) -> Result<EntryId, RcapDenied> {
        let key = key(&attempt.of);
        let refused = Err(simply(self.own, RcapTest::ReceiverRefused));
        let Some(kept) = self.kept.get(&key) else { return refused };
        let (before, asked) = (&kept.demand.request, &attempt.demand.request);
        // Packets may be smaller now, and the source may have changed the channel before its path failed.
        // The room in the program's memory stays.
        if before.service != asked.service || asked.messages.s_max > before.room {
            return Err(simply(self.own, RcapTest::Garbage));
        }
        let first = (kept.broken.cause, kept.broken.node);
        let promise = attempt.demand.promise_at_end(&attempt.records);
        // A longer path may lose units in the memory that there is, and is better than none. A shorter X_min
        // was tested before the source had it, so that a sound one fits.
        let units = units_within(promise.min(kept.promise), asked.messages.x_min);
        if asked.messages.x_min < before.messages.x_min && units > kept.memory {
            return Err(counted(self.own, RcapTest::Room, (units, kept.memory)));
        }
        let (room, memory, [former, _], mut attempt) = (before.room, kept.memory, kept.ways, attempt);
        attempt.demand.request.room = room;
        let request = attempt.demand.request;
        self.kept.remove(&key);
        let id = self.add(now, attempt, None, State::Answering);
        if let Some(entry) = self.ledger.get_mut(id) {
            (entry.first, entry.memory, entry.promise) = (Some(first), memory, promise);
            entry.former = former;
        }
        self.tell(RcapEvent::Again { key, entry: id, request, promise });
        self.accept(now, id);
        Ok(id)
    }

    /// The next hop of a request.
    pub(super) fn route_of(&self, demand: &Demand, records: &[Record]) -> Option<Route> {
        let passed: Vec<NodeId> = records.iter().map(|record| record.node).collect();
        let (end, via, is_again) = (demand.request.destination, demand.path.nodes(), demand.again.is_some());
        let towards = Towards { end, via, passed: &passed, around: &demand.around(), is_again };
        self.route_towards(&towards, demand.again.is_none_or(|again| !again.apart.is_some()))
    }

    /// The next hop on a way. One that comes again passes by the node that failed, and by those that it has
    /// passed, where another way is known: the graph of this node may be older than the failure. One that
    /// names nodes leads through them. Where there is no such way and the shortest one will do it is that.
    pub(super) fn route_towards(&self, towards: &Towards<'_>, or_shortest: bool) -> Option<Route> {
        let Towards { end, via, passed, around, is_again } = *towards;
        let shortest = self.routes.route(end);
        if !is_again && via.is_empty() {
            return shortest;
        }
        let mut down = self.down.clone();
        down.extend(around.iter().filter(|node| **node != self.own));
        down.extend(passed);
        let is_passed = |node: &NodeId| *node == self.own || passed.contains(node);
        let ahead: Vec<NodeId> = via.iter().copied().filter(|node| !is_passed(node)).chain([end]).collect();
        down.extend(&ahead[1..]);
        let around = Routes::shortest(&self.graph, self.own, &self.up, &down).route(ahead[0]);
        let further = u32::try_from(ahead.len() - 1).unwrap_or(u32::MAX);
        let around = around.map(|route| Route { hops: route.hops.saturating_add(further), ..route });
        around.or(shortest.filter(|_| or_shortest && via.is_empty()))
    }
}

/// A way that a request is to take.
pub(super) struct Towards<'a> {
    pub(super) end: NodeId,
    /// The nodes that it leads through; none where each node chooses the next one.
    pub(super) via: &'a [NodeId],
    /// Those that it has passed.
    pub(super) passed: &'a [NodeId],
    /// Those that it passes by.
    pub(super) around: &'a [NodeId],
    /// It is a way for a channel that is there already.
    pub(super) is_again: bool,
}
