//! Channels to several receivers at one node: where their packets part.
//!
//! A packet comes in once, by the one local id of all branches that have come the same way, and goes on once
//! over each hop of these branches, or to a program. At the source each hop cuts the program's units for
//! itself, and a unit is over when all hops have sent it. All room is taken when a hop is entered.

use super::table::Key;
use crate::io::{ChannelId, Output, PortId, UnitFate};
use rota_medium::door::UNITS_WAITING_MAX;
use rota_units::Instant;
use std::collections::{BTreeMap, VecDeque};

/// The hops of a program that sends to several receivers.
#[derive(Clone, Debug)]
struct Source {
    /// Those of a contract before have an end.
    hops: Vec<SourceHop>,
    /// The number behind the newest unit that was offered.
    next: u64,
    /// The first unit of hops that begin now; the next one where it is `None`.
    begin: Option<u64>,
    /// Units that some hop has yet to send.
    ready: VecDeque<Ready>,
    /// Units that are over at all hops, of which the parent has not heard.
    over: VecDeque<(u64, UnitFate)>,
    /// The newest slot.
    at: Instant,
}

/// A hop of a program.
#[derive(Clone, Copy, Debug)]
struct SourceHop {
    id: ChannelId,
    /// The number behind the newest unit that it has sent.
    next: u64,
    /// The number behind the last unit that it sends.
    end: u64,
}

impl SourceHop {
    /// The units of the contract that stands have no end.
    const fn is_current(&self) -> bool {
        self.end == u64::MAX
    }
}

/// A unit of which some hop has not told yet.
#[derive(Clone, Copy, Debug)]
struct Ready {
    number: u64,
    /// Some hop has sent it, or has gone before it could tell.
    may_be_sent: bool,
    /// The fate at a hop that has not sent it.
    failed: Option<UnitFate>,
}

impl Ready {
    /// A hop that could not send it harms its own receivers, who count it as lost. With all hops the program
    /// has failed, or its channel; a hop that was removed is no evidence of that.
    const fn fate(self) -> UnitFate {
        match self.failed {
            Some(fate) if !self.may_be_sent => fate,
            _ => UnitFate::Sent,
        }
    }
}

impl Source {
    /// The hops of the contract that stands.
    fn current(&self) -> impl Iterator<Item = ChannelId> {
        self.hops.iter().filter(|hop| hop.is_current()).map(|hop| hop.id)
    }

    /// The first unit of hops that begin now.
    fn first(&self) -> u64 {
        self.begin.unwrap_or(self.next)
    }

    fn settle(&mut self) {
        let waits = self.hops.iter().filter(|hop| hop.next < hop.end).map(|hop| hop.next);
        let sent = waits.min().unwrap_or(self.first());
        while self.over.len() < self.over.capacity()
            && let Some(unit) = self.ready.front().copied().filter(|unit| unit.number < sent)
        {
            self.ready.pop_front();
            self.over.push_back((unit.number, unit.fate()));
        }
    }

    /// A hop is done with a unit.
    fn note(&mut self, hop: ChannelId, number: u64, fate: UnitFate) {
        let own = self.hops.iter_mut().filter(|of| of.id == hop);
        own.for_each(|of| of.next = number.saturating_add(1));
        if let Some(unit) = self.ready.iter_mut().find(|unit| unit.number == number) {
            match fate {
                UnitFate::Sent => unit.may_be_sent = true,
                // Octets that cannot be read weigh more than a contract that is over.
                UnitFate::Beyond if unit.failed.is_some() => {}
                UnitFate::Dropped | UnitFate::Beyond => unit.failed = Some(fate),
            }
        }
        self.settle();
    }
}

/// The places of a node where packets part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fans {
    /// Hops over which packets go on beside the way that their arrival has.
    further: BTreeMap<Key, Vec<(PortId, ChannelId)>>,
    sources: BTreeMap<ChannelId, Source>,
}

impl Fans {
    // ---- gateways -------------------------------------------------------------------------------------

    /// Packets that come in by this id go on over this hop, too.
    pub(super) fn add(&mut self, key: Key, hop: (PortId, ChannelId)) {
        self.further.entry(key).or_default().push(hop);
    }

    /// They do so no more.
    pub(super) fn drop_hop(&mut self, key: Key, hop: ChannelId) {
        let Some(hops) = self.further.get_mut(&key) else { return };
        hops.retain(|(_, id)| *id != hop);
        if hops.is_empty() {
            self.further.remove(&key);
        }
    }

    /// One of the further hops of this id, which is one no more.
    pub(super) fn take(&mut self, key: Key) -> Option<(PortId, ChannelId)> {
        let first = self.further.get(&key)?.first().copied()?;
        self.drop_hop(key, first.1);
        Some(first)
    }

    /// The further hop of this id at this place.
    pub(crate) fn at(&self, key: Key, place: usize) -> Option<(PortId, ChannelId)> {
        if self.further.is_empty() { None } else { self.further.get(&key)?.get(place).copied() }
    }

    // ---- sources --------------------------------------------------------------------------------------

    /// A program sends on this hop, too, from its next unit on. So many units may wait for the hop.
    pub(crate) fn send_on(&mut self, program: ChannelId, hop: ChannelId, units: usize) {
        let room = 2 * units.max(UNITS_WAITING_MAX);
        let source = self.sources.entry(program).or_insert_with(|| Source {
            hops: Vec::new(),
            next: 0,
            begin: None,
            ready: VecDeque::new(),
            over: VecDeque::new(),
            at: Instant::ZERO,
        });
        source.ready.reserve(room.saturating_sub(source.ready.len()));
        source.over.reserve(room.saturating_sub(source.over.len()));
        source.hops.push(SourceHop { id: hop, next: source.first(), end: u64::MAX });
    }

    /// The units of a program from this number on go over other hops, which begin until [`Self::has_begun`].
    pub(crate) fn begin_anew(&mut self, program: ChannelId, number: u64) {
        let Some(source) = self.sources.get_mut(&program) else { return };
        source.hops.iter_mut().filter(|hop| hop.is_current()).for_each(|hop| hop.end = number);
        source.begin = Some(number);
    }

    /// They have begun.
    pub(crate) fn has_begun(&mut self, program: ChannelId) {
        if let Some(source) = self.sources.get_mut(&program) {
            source.begin = None;
            source.settle();
        }
    }

    /// A hop of some program is gone.
    pub(super) fn drop_source_hop(&mut self, hop: ChannelId) {
        for source in self.sources.values_mut() {
            let Some(gone) = source.hops.iter().find(|of| of.id == hop) else { continue };
            let untold = source.ready.iter_mut().filter(|unit| (gone.next..gone.end).contains(&unit.number));
            untold.for_each(|unit| unit.may_be_sent = true);
            source.hops.retain(|of| of.id != hop);
            source.settle();
        }
    }

    /// The program sends no more.
    pub(crate) fn forget(&mut self, program: ChannelId) {
        self.sources.remove(&program);
    }

    /// The hop of a program at this place.
    pub(crate) fn hop(&self, program: ChannelId, place: usize) -> Option<ChannelId> {
        if self.sources.is_empty() {
            return None;
        }
        self.sources.get(&program)?.current().nth(place)
    }

    /// All hops of a program.
    pub(crate) fn hops(&self, program: ChannelId) -> Vec<ChannelId> {
        self.sources.get(&program).map_or(Vec::new(), |source| source.current().collect())
    }

    /// True for a program that sends to several receivers.
    pub(crate) fn has(&self, program: ChannelId) -> bool {
        !self.sources.is_empty() && self.sources.contains_key(&program)
    }

    /// The number behind the newest unit that a program has offered.
    pub(crate) fn offered_by(&self, program: ChannelId) -> u64 {
        self.sources.get(&program).map_or(0, |source| source.next)
    }

    /// A unit is offered to all hops of a program.
    pub(crate) fn offered(&mut self, program: ChannelId, number: u64) {
        if let Some(source) = self.sources.get_mut(&program) {
            source.next = number.saturating_add(1);
            if source.ready.len() < source.ready.capacity() {
                source.ready.push_back(Ready { number, may_be_sent: false, failed: None });
            }
        }
    }

    /// True if the outputs of ports are to be merged.
    #[inline]
    pub(crate) fn has_sources(&self) -> bool {
        !self.sources.is_empty()
    }

    /// The output of a port for the parent, to whom all hops of a program are one channel. `None` where it
    /// waits for other hops.
    pub(crate) fn merge(&mut self, output: Output) -> Option<Output> {
        let Output::Slot { channel: hop, at, unit } = output else { return Some(output) };
        let is_its = |source: &Source| source.hops.iter().any(|of| of.id == hop);
        let Some((program, source)) = self.sources.iter_mut().find(|(_, source)| is_its(source)) else {
            return Some(output);
        };
        let channel = *program;
        source.at = at;
        match unit {
            Some((number, fate)) => {
                source.note(hop, number, fate);
                self.next_over()
            }
            // The empty slots of one hop stand for those of all.
            None if source.current().next() != Some(hop) => None,
            None => Some(Output::Slot { channel, at, unit }),
        }
    }

    /// The next unit that is over at all hops of its program.
    pub(crate) fn next_over(&mut self) -> Option<Output> {
        let (channel, source) = self.sources.iter_mut().find(|(_, source)| !source.over.is_empty())?;
        let (unit, at) = (source.over.pop_front()?, source.at);
        source.settle();
        Some(Output::Slot { channel: *channel, at, unit: Some(unit) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: ChannelId = ChannelId(9);
    const AT: Instant = Instant::from_nanos(5);

    fn sent(hop: u64, number: u64) -> Output {
        Output::Slot { channel: ChannelId(hop), at: AT, unit: Some((number, UnitFate::Sent)) }
    }

    fn of_tree(number: u64) -> Option<Output> {
        Some(Output::Slot { channel: TREE, at: AT, unit: Some((number, UnitFate::Sent)) })
    }

    #[test]
    fn a_unit_is_over_when_all_hops_have_sent_it() {
        let mut fans = Fans::default();
        fans.send_on(TREE, ChannelId(1), 1);
        fans.send_on(TREE, ChannelId(2), 1);
        [0, 1].into_iter().for_each(|number| fans.offered(TREE, number));
        assert_eq!([fans.merge(sent(1, 0)), fans.merge(sent(1, 1)), fans.next_over()], [None, None, None]);
        assert_eq!([fans.merge(sent(2, 0)), fans.next_over()], [of_tree(0), None]);
        // Another hop begins with the next unit, and one that ends is waited for no more.
        fans.send_on(TREE, ChannelId(3), 1);
        fans.offered(TREE, 2);
        assert_eq!([fans.merge(sent(3, 2)), fans.merge(sent(1, 2))], [None, None]);
        fans.drop_source_hop(ChannelId(2));
        assert_eq!([fans.next_over(), fans.next_over(), fans.next_over()], [of_tree(1), of_tree(2), None]);
        assert_eq!(
            (fans.offered_by(TREE), fans.hop(TREE, 0), fans.hop(TREE, 2)),
            (3, Some(ChannelId(1)), None)
        );
    }

    /// A unit that one hop gave up ended the channel of all receivers.
    #[test]
    fn a_unit_that_one_hop_gives_up_ends_nothing_for_the_others() {
        let gave_up = |hop, number| {
            let unit = Some((number, UnitFate::Dropped));
            Output::Slot { channel: ChannelId(hop), at: AT, unit }
        };
        let mut fans = Fans::default();
        fans.send_on(TREE, ChannelId(1), 1);
        fans.send_on(TREE, ChannelId(2), 1);
        [0, 1, 2].into_iter().for_each(|number| fans.offered(TREE, number));
        assert_eq!([fans.merge(gave_up(1, 0)), fans.merge(sent(2, 0))], [None, of_tree(0)]);
        assert_eq!([fans.merge(sent(2, 1)), fans.merge(gave_up(1, 1))], [None, of_tree(1)]);
        // No hop can send it: its octets cannot be read, say.
        let none = Output::Slot { channel: TREE, at: AT, unit: Some((2, UnitFate::Dropped)) };
        assert_eq!([fans.merge(gave_up(1, 2)), fans.merge(gave_up(2, 2))], [None, Some(none)]);
        // The contract of one hop was over before it had sent the unit, and the other one cannot read it.
        let unit = |channel, fate| Output::Slot { channel, at: AT, unit: Some((3, fate)) };
        let beyond = |hop| unit(ChannelId(hop), UnitFate::Beyond);
        fans.offered(TREE, 3);
        let dropped = unit(TREE, UnitFate::Dropped);
        assert_eq!([fans.merge(gave_up(1, 3)), fans.merge(beyond(2))], [None, Some(dropped)]);
    }

    /// The receiver of one hop left while the other hop gave a unit up: the channel of all ended.
    #[test]
    fn a_hop_that_leaves_is_no_evidence_that_all_have_failed() {
        let unit = |channel, number, fate| Output::Slot { channel, at: AT, unit: Some((number, fate)) };
        let gave_up = |hop, number| unit(ChannelId(hop), number, UnitFate::Dropped);
        let mut fans = Fans::default();
        fans.send_on(TREE, ChannelId(1), 1);
        fans.send_on(TREE, ChannelId(2), 1);
        (4..7).for_each(|number| fans.offered(TREE, number));
        // The second hop has given unit 4 up itself, and has told nothing of the others.
        assert_eq!([fans.merge(gave_up(2, 4)), fans.merge(sent(1, 4))], [None, of_tree(4)]);
        assert_eq!(fans.merge(gave_up(1, 5)), None);
        fans.drop_source_hop(ChannelId(2));
        assert_eq!([fans.next_over(), fans.next_over()], [of_tree(5), None]);
        // It still had to send unit 6. Of the next one the hop that is left decides alone.
        fans.offered(TREE, 7);
        let ended = unit(TREE, 7, UnitFate::Dropped);
        assert_eq!([fans.merge(gave_up(1, 6)), fans.merge(gave_up(1, 7))], [of_tree(6), Some(ended)]);
    }

    /// The hop of an old contract has nothing to tell of the units behind its end.
    #[test]
    fn a_hop_whose_contract_has_ended_speaks_for_no_later_unit() {
        let unit = |hop, number, fate| Output::Slot { channel: hop, at: AT, unit: Some((number, fate)) };
        let mut fans = Fans::default();
        fans.send_on(TREE, ChannelId(1), 1);
        [0, 1].into_iter().for_each(|number| fans.offered(TREE, number));
        fans.begin_anew(TREE, 1);
        fans.send_on(TREE, ChannelId(2), 1);
        fans.has_begun(TREE);
        assert_eq!(fans.merge(sent(1, 0)), of_tree(0));
        fans.drop_source_hop(ChannelId(1));
        // Of unit 1 the new hop decides alone.
        let dropped = |hop| unit(hop, 1, UnitFate::Dropped);
        assert_eq!(fans.merge(dropped(ChannelId(2))), Some(dropped(TREE)));
    }

    /// More units wait than a hop takes: the room was taken when it was entered.
    #[test]
    fn parting_packets_allocate_nothing() {
        let mut fans = Fans::default();
        (1..4).for_each(|hop| fans.send_on(TREE, ChannelId(hop), 1));
        let key = (PortId(0), rota_wire::MacAddr([2; 6]), 7);
        (5..8).for_each(|hop| fans.add(key, (PortId(1), ChannelId(hop))));
        let mut over = 0;
        let counted = allocation_counter::measure(|| {
            for number in 0..1_000 {
                fans.offered(TREE, number);
                assert_eq!((0..9).map_while(|place| fans.at(key, place)).count(), 3);
                if number >= UNITS_WAITING_MAX as u64 {
                    let gone = number - UNITS_WAITING_MAX as u64;
                    over += (1..4).filter_map(|hop| fans.merge(sent(hop, gone))).count();
                }
            }
        });
        assert_eq!((counted.count_total, over), (0, 1_000 - UNITS_WAITING_MAX));
    }

    #[test]
    fn slots_of_other_channels_and_empty_ones_pass() {
        let mut fans = Fans::default();
        fans.send_on(TREE, ChannelId(1), 1);
        fans.send_on(TREE, ChannelId(2), 1);
        assert_eq!(fans.merge(sent(7, 3)), Some(sent(7, 3)));
        let empty = |hop| Output::Slot { channel: ChannelId(hop), at: AT, unit: None };
        assert_eq!([fans.merge(empty(2)), fans.merge(empty(1))], [None, Some(empty(9))]);
        fans.forget(TREE);
        assert!(!fans.has(TREE) && !fans.has_sources());
    }
}
