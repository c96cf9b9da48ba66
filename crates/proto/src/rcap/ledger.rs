//! The ledger: one numbered entry for each channel that this node has a part in. An entry keeps its holdings,
//! here or in a table beside, from [`Ledger::add`] to [`Ledger::remove`].

use super::backup::Standby;
use super::io::{ChannelKey, EntryId, Former, HopOffer, NextHop};
use super::labels::Labels;
use super::limits::RcapLimits;
use super::record::{Demand, Record};
use rota_contract::{CloseCause, NodeId};
use rota_units::{Instant, Octets, Span};
use rota_wire::{RcapChannel, RcapTest};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How far an entry has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The local medium is asked for its best.
    Reserving,
    /// The request has gone on; what is reserved here is tentative.
    Forwarded,
    /// At the destination: its program is asked.
    Answering,
    /// The accept has come, and the local medium is asked to relax its share.
    Relaxing {
        /// The label of the next node.
        label: u16,
        /// The nodes behind.
        behind: Vec<Record>,
    },
    /// The channel is open here. It has no lease.
    Open,
}

impl State {
    pub(super) const fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }
}

/// A question for the status of a channel that waits for this node's counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) question: u32,
    pub(super) nodes: Vec<Record>,
}

/// The part of this node in one channel.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) of: RcapChannel,
    /// The neighbour that the request came from; none at the source.
    pub(super) before: Option<NodeId>,
    /// The next node; none at the destination.
    pub(super) hop: Option<NextHop>,
    pub(super) demand: Demand,
    /// The nodes before, and this one once its medium has answered.
    pub(super) records: Vec<Record>,
    pub(super) state: State,
    /// When a tentative reservation ends, or the receiving program must have answered.
    pub(super) due: Instant,
    /// The local id of packets that come in; 0 where none do.
    pub(super) label: u16,
    /// Octets of the buffers that it has.
    pub(super) buffer_octets: u64,
    pub(super) asked: Option<Asked>,
    /// At a destination that has accepted another path: how the one before ended.
    pub(super) first: Option<(CloseCause, NodeId)>,
    /// At such a destination: the neighbour that the packets of the path before came from.
    pub(super) former: Option<NodeId>,
    /// At a destination: until when it counts that a node of that path has said that the source has died. A
    /// path that stands beyond that has a source.
    pub(super) orphan_until: Instant,
    /// At the ends: what the program is promised.
    pub(super) promise: Span,
    /// At a destination: the units that its program's memory was made for.
    pub(super) memory: u64,
    /// At a source: the newest attempt of the channel, those that were denied among them.
    pub(super) newest: u16,
    /// At the ends of a second path that is not used.
    pub(super) standby: Option<Standby>,
    /// At a source: neither the program nor RTIP is told before there is a second path.
    pub(super) is_pending: bool,
    /// At a source that has gone over to its second path: when the destination has seen the first one fail,
    /// too.
    pub(super) agreed: Instant,
}

impl Entry {
    /// The place of this node on the path, from 0.
    pub(super) fn place(&self) -> usize {
        self.records.len().saturating_sub(1)
    }

    pub(super) fn key(&self) -> ChannelKey {
        key(&self.of)
    }

    /// The nodes before this one.
    fn stem(&self) -> &[Record] {
        let has_own = self.hop.is_some() && self.state != State::Reserving;
        &self.records[..self.records.len() - usize::from(has_own)]
    }

    /// True if the packets of both have come over the same nodes and ports.
    fn comes_as(&self, other: &Self) -> bool {
        let is_same = |(a, b): (&Record, &Record)| (a.node, a.port) == (b.node, b.port);
        let (one, two) = (self.stem(), other.stem());
        self.before == other.before && one.len() == two.len() && one.iter().zip(two).all(is_same)
    }

    /// True if both are branches of one tree whose packets reach this node as one. Those of the contract
    /// before a change share nothing with those of the one behind it.
    fn is_of_one_stem(&self, other: &Self) -> bool {
        self.demand.is_branch()
            && self.demand.request.is_of_one_contract(&other.demand.request)
            && (self.of.origin, self.demand.request.tree) == (other.of.origin, other.demand.request.tree)
            && self.demand.packets == other.demand.packets
            && self.demand.request.partition == other.demand.request.partition
            && self.demand.request.group == other.demand.request.group
            && self.comes_as(other)
    }
}

pub(super) const fn key(of: &RcapChannel) -> ChannelKey {
    ChannelKey { origin: of.origin, channel: of.channel }
}

/// The limit that one more entry would exceed.
pub(super) struct Excess {
    pub(super) test: RcapTest,
    /// The largest S_max that is within it; 0 where that is unknown.
    pub(super) nearest_octets: u32,
    /// The amount that the user would have, and the one that is allowed; 0 where the refusal needs neither.
    pub(super) count: (u64, u64),
}

impl From<RcapTest> for Excess {
    fn from(test: RcapTest) -> Self {
        Self { test, nearest_octets: 0, count: (0, 0) }
    }
}

/// The holdings of one user here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used {
    channels: u32,
    octets_a_second: u128,
}

/// All entries, and what is counted over them.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    entries: BTreeMap<EntryId, Entry>,
    /// By channel and attempt. A channel that changes has two entries for a while.
    by_key: BTreeMap<(ChannelKey, u16), EntryId>,
    dues: BTreeSet<(Instant, EntryId)>,
    users: BTreeMap<(NodeId, u32), Used>,
    /// Entries of each neighbour's requests that are not open.
    waiting: BTreeMap<NodeId, usize>,
    pub(super) labels: Labels,
    buffer_octets: u64,
    last_id: u64,
    ended: Ended,
}

/// Attempts that ended a short while ago.
#[derive(Clone, Debug, Default)]
struct Ended {
    last: BTreeMap<ChannelKey, u16>,
    order: VecDeque<(Instant, ChannelKey, u16)>,
}

impl Ledger {
    pub(super) const fn new() -> Self {
        Self {
            entries: BTreeMap::new(),
            by_key: BTreeMap::new(),
            dues: BTreeSet::new(),
            users: BTreeMap::new(),
            waiting: BTreeMap::new(),
            labels: Labels::new(),
            buffer_octets: 0,
            last_id: 0,
            ended: Ended { last: BTreeMap::new(), order: VecDeque::new() },
        }
    }

    /// Tests if one more entry of this user and neighbour is allowed; the limit that it exceeds if not.
    pub(super) fn allows(
        &self,
        limits: &RcapLimits,
        own: NodeId,
        of: &RcapChannel,
        before: Option<NodeId>,
        demand: &Demand,
    ) -> Result<(), Excess> {
        let waiting = before.and_then(|node| self.waiting.get(&node)).copied().unwrap_or(0);
        if self.entries.len() >= limits.entries || waiting >= limits.waiting_of_neighbour {
            return Err(RcapTest::TableFull.into());
        }
        let uid = demand.request.uid;
        let quota = limits.quota_of(uid, of.origin == own);
        let mut used = self.users.get(&(of.origin, uid)).copied().unwrap_or_default();
        // A change takes the place of what the channel has. Its second path takes that of all but the first
        // path of the new contract, which shares nothing with it but the ends.
        let is_end = before.is_none() || demand.request.destination == own;
        let stays = self.all_of(&key(of)).next_back().filter(|_| is_end);
        let gives_way = |id: &EntryId| match demand.is_change() {
            true => self.find(&key(of)) == Some(*id),
            false => demand.is_second() && stays != Some(*id),
        };
        for former in self.all_of(&key(of)).filter(gives_way).filter_map(|id| self.get(id)) {
            if former.demand.request.uid != uid {
                continue;
            }
            used.channels -= 1;
            used.octets_a_second -= u128::from(former.demand.octets_a_second());
        }
        if used.channels >= quota.channels {
            let count = (u64::from(used.channels) + 1, u64::from(quota.channels));
            return Err(Excess { count, ..RcapTest::QuotaChannels.into() });
        }
        let left = u128::from(quota.octets_a_second).saturating_sub(used.octets_a_second);
        if u128::from(demand.octets_a_second()) > left {
            let nearest = demand.octets_within_rate(left).map_or(0, Octets::get);
            let nearest_octets = u32::try_from(nearest).unwrap_or(u32::MAX);
            let would_have = used.octets_a_second + u128::from(demand.octets_a_second());
            let count = (u64::try_from(would_have).unwrap_or(u64::MAX), quota.octets_a_second);
            return Err(Excess { test: RcapTest::QuotaReserved, nearest_octets, count });
        }
        Ok(())
    }

    /// Adds an entry under the next number. The caller has seen that the channel has none of this attempt
    /// here, and one other at most.
    pub(super) fn add(&mut self, entry: Entry) -> EntryId {
        self.last_id += 1;
        let id = EntryId(self.last_id);
        let place = (entry.key(), entry.of.attempt);
        assert!(self.by_key.insert(place, id).is_none(), "an attempt has one entry at a node");
        assert!(self.all_of(&place.0).count() <= 4, "two contracts of a channel, each with two paths");
        let used = self.users.entry((entry.of.origin, entry.demand.request.uid)).or_default();
        used.channels += 1;
        used.octets_a_second += u128::from(entry.demand.octets_a_second());
        if let Some(before) = entry.before {
            *self.waiting.entry(before).or_default() += 1;
        }
        self.dues.insert((entry.due, id));
        self.entries.insert(id, entry);
        id
    }

    /// Takes an entry out, with all that is counted for it. Its attempt is remembered for `until`.
    pub(super) fn remove(&mut self, id: EntryId, until: Instant, remembered: usize) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        self.by_key.remove(&(entry.key(), entry.of.attempt));
        self.dues.remove(&(entry.due, id));
        let user = (entry.of.origin, entry.demand.request.uid);
        let used = self.users.get_mut(&user).expect("an entry counts for its user");
        used.channels -= 1;
        used.octets_a_second -= u128::from(entry.demand.octets_a_second());
        if used.channels == 0 {
            self.users.remove(&user);
        }
        if !entry.state.is_open() {
            self.count_waiting(entry.before);
        }
        let is_labelled = |other: &Entry| other.label == entry.label && entry.label > 0;
        if !entry.demand.is_branch() || !self.entries.values().any(is_labelled) {
            self.labels.free(entry.label);
        }
        self.buffer_octets -= entry.buffer_octets;
        self.ended.note(entry.key(), entry.of.attempt, until, remembered);
        Some(entry)
    }

    fn count_waiting(&mut self, before: Option<NodeId>) {
        let Some(before) = before else { return };
        let waiting = self.waiting.get_mut(&before).expect("it was counted");
        *waiting -= 1;
        if *waiting == 0 {
            self.waiting.remove(&before);
        }
    }

    pub(super) fn get(&self, id: EntryId) -> Option<&Entry> {
        self.entries.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: EntryId) -> Option<&mut Entry> {
        self.entries.get_mut(&id)
    }

    /// The entries of a channel, that of the oldest attempt first.
    pub(super) fn all_of(&self, key: &ChannelKey) -> impl DoubleEndedIterator<Item = EntryId> + use<'_> {
        self.by_key.range((*key, 0)..=(*key, u16::MAX)).map(|(_, id)| *id)
    }

    /// The entry by which a channel stands: the newest one that is open and in use, or else the newest one
    /// that is open, or else the newest one.
    pub(super) fn find(&self, key: &ChannelKey) -> Option<EntryId> {
        let is_open = |id: &EntryId| self.get(*id).is_some_and(|entry| entry.state.is_open());
        let is_used =
            |id: &EntryId| self.get(*id).is_some_and(|entry| entry.standby.is_none() && !entry.is_pending);
        let used = self.all_of(key).rfind(|id| is_open(id) && is_used(id));
        used.or_else(|| self.all_of(key).rfind(is_open)).or_else(|| self.all_of(key).next_back())
    }

    /// The entry of one attempt.
    pub(super) fn exactly(&self, of: &RcapChannel) -> Option<EntryId> {
        self.by_key.get(&(key(of), of.attempt)).copied()
    }

    /// An open entry at its source ends by itself at this time.
    pub(super) fn end_at(&mut self, id: EntryId, due: Instant) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        self.dues.remove(&(entry.due, id));
        entry.due = due;
        self.dues.insert((due, id));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (EntryId, &Entry)> {
        self.entries.iter().map(|(id, entry)| (*id, entry))
    }

    /// Takes so many octets of buffers for an entry in the place of those that it has; false if there is no
    /// room.
    pub(super) fn set_buffers(&mut self, id: EntryId, octets: u64, most: u64) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        let others = self.buffer_octets - entry.buffer_octets;
        let Some(sum) = others.checked_add(octets).filter(|sum| *sum <= most) else { return false };
        (self.buffer_octets, entry.buffer_octets) = (sum, octets);
        true
    }

    /// The entry is open: it has a label where packets come in, and no lease.
    pub(super) fn open(&mut self, id: EntryId) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        assert!(!entry.state.is_open(), "an entry opens once");
        self.dues.remove(&(entry.due, id));
        (entry.state, entry.due) = (State::Open, Instant::FAR);
        let before = entry.before;
        self.count_waiting(before);
        if before.is_some() && self.name(id).is_none() {
            let label = self.label_of_stem(id).unwrap_or_else(|| self.labels.give());
            self.entries.get_mut(&id).expect("as above").label = label;
        }
    }

    /// The label of an entry that is no branch, from now on if it has none.
    pub(super) fn name(&mut self, id: EntryId) -> Option<u16> {
        let entry = self.entries.get(&id).filter(|entry| entry.before.is_some())?;
        if entry.label > 0 || entry.demand.is_branch() {
            return Some(entry.label).filter(|label| *label > 0);
        }
        let label = self.labels.give();
        self.entries.get_mut(&id)?.label = label;
        Some(label)
    }

    /// The reservation that a new branch of a tree finds at this node, and what it offers: packets of another
    /// branch come the same way and go to the same next node.
    pub(super) fn shared(&self, id: EntryId) -> Option<(EntryId, HopOffer)> {
        let entry = self.entries.get(&id).filter(|entry| entry.demand.is_branch())?;
        let has_it = |other: &Entry| {
            other.hop == entry.hop && other.state != State::Reserving && other.is_of_one_stem(entry)
        };
        let (with, other) = self.entries.iter().find(|(of, other)| **of != id && has_it(other))?;
        Some((*with, other.records.last()?.hop))
    }

    /// The open contract whose place a change takes at this node: its packets have come over the same nodes
    /// and ports, and go to the same next node. So they stand in one order at all hops before, too.
    pub(super) fn former(&self, id: EntryId) -> Option<Former> {
        let entry = self.entries.get(&id).filter(|entry| entry.demand.takes_place())?;
        let with = self.find(&entry.key()).filter(|other| *other != id)?;
        let old = self.entries.get(&with).filter(|old| old.state.is_open() && old.standby.is_none())?;
        let is_one_way = entry.hop == old.hop && entry.comes_as(old);
        let is_alike =
            old.demand.is_plain() && old.demand.request.partition == entry.demand.request.partition;
        let traffic = old.demand.packets.traffic.greater(&entry.demand.packets.traffic);
        let offer = old.records.last()?.hop;
        (is_one_way && is_alike).then_some(Former { entry: with, offer, traffic })
    }

    /// True if another branch of that tree ends here: one program of a node gets its packets.
    pub(super) fn has_branch_here(&self, of: &RcapChannel, tree: rota_contract::ChannelId) -> bool {
        self.entries.values().any(|other| {
            let is_of_tree = (other.of.origin, other.demand.request.tree) == (of.origin, tree);
            other.hop.is_none() && is_of_tree && other.key() != key(of)
        })
    }

    /// The label by which packets of this branch come already, for another branch.
    fn label_of_stem(&self, id: EntryId) -> Option<u16> {
        let entry = self.entries.get(&id).filter(|entry| entry.demand.is_branch())?;
        let others = self.entries.values().filter(|other| other.label > 0 && other.is_of_one_stem(entry));
        others.map(|other| other.label).next()
    }

    /// The entry whose time ends first.
    pub(super) fn first_due(&self) -> Option<(Instant, EntryId)> {
        self.dues.first().copied()
    }

    /// True if this attempt, or a later one, has ended a short while ago.
    pub(super) fn has_ended(&mut self, now: Instant, of: &RcapChannel) -> bool {
        self.ended.forget(now);
        self.ended.last.get(&key(of)).is_some_and(|attempt| of.attempt <= *attempt)
    }

    /// Octets of buffers of all entries.
    pub(super) const fn buffer_octets(&self) -> u64 {
        self.buffer_octets
    }

    /// Each count, computed again. For tests.
    pub(super) fn assert_counts(&self) {
        let buffers: u64 = self.entries.values().map(|entry| entry.buffer_octets).sum();
        assert_eq!(buffers, self.buffer_octets, "buffers");
        let waiting = self.entries.values().filter(|entry| !entry.state.is_open() && entry.before.is_some());
        assert_eq!(waiting.count(), self.waiting.values().sum::<usize>(), "waiting entries");
        let channels: u32 = self.users.values().map(|used| used.channels).sum();
        assert_eq!(
            (channels as usize, self.by_key.len()),
            (self.entries.len(), self.entries.len()),
            "users, keys"
        );
        let labelled: BTreeSet<u16> =
            self.entries.values().map(|entry| entry.label).filter(|label| *label > 0).collect();
        let dues = self.entries.values().filter(|entry| entry.due < Instant::FAR).count();
        assert_eq!((labelled.len(), dues), (self.labels.of_entries(), self.dues.len()), "labels, leases");
    }
}

impl Ended {
    fn note(&mut self, key: ChannelKey, attempt: u16, until: Instant, most: usize) {
        while self.order.len() >= most.max(1) {
            self.drop_first();
        }
        let last = self.last.entry(key).or_default();
        *last = attempt.max(*last);
        self.order.push_back((until, key, attempt));
    }

    fn forget(&mut self, now: Instant) {
        while self.order.front().is_some_and(|(until, ..)| *until <= now) {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        let Some((_, key, attempt)) = self.order.pop_front() else { return };
        if self.last.get(&key) == Some(&attempt) {
            self.last.remove(&key);
        }
    }
}
