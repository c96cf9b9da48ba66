//! Units from programs: their numbers on the wire, and what became of each.

use super::Data;
use super::rings::Rings;
use crate::commands::{Note, SourceMemory};
use crate::gate::Egress;
use crate::trace::Tracer;
use rota_contract::UnitRef;
use rota_driver::clock::now;
use rota_driver::device::FrameDevice;
use rota_proto::{ChannelId, HeardChannel, Input, Node, Stated, UnitFate};
use rota_shm::{ChannelCounter, SlotMark, WaitingUnit};
use rota_units::{Instant, Span};
use rota_wire::MacAddr;
use std::collections::VecDeque;

/// The numbers of two units in a row differ by no more: a receiver sees the lower 16 bits only, and takes a
/// step of 2^15 and more for one back. 30 units in a row behind such steps may be lost on the wire.
const STEP_MAX: u64 = 1 << 10;

/// How far from now a program's schedule may lie: beyond that it is no lateness of a unit, but a clock of
/// another kind.
const SCHEDULE_FAR: Span = Span::from_millis(60_000);

/// The program wrote into a unit that it had handed over.
const CHANGED: &str = "a unit changed while it was sent";

/// The ring of a channel that sends, and the units at its head.
pub(super) struct Source {
    pub(super) channel: ChannelId,
    /// The station that it goes to; the machine forgets the channel before its end is told.
    hop: Option<MacAddr>,
    pub(super) memory: SourceMemory,
    pub(super) token: u64,
    /// The units that the machine knows of, in their order; no more than the ring holds. A slot may carry
    /// several, and the next ones are offered when the machines are drained.
    pub(super) offered: VecDeque<Offered>,
    /// The newest unit of which any octet has left.
    pub(super) begun: Option<u64>,
    /// The work that a slot has called for.
    pub(super) due: Due,
    numbers: Numbers,
    /// Units left out by the program of which the machine knows at least.
    left_out_stated: u64,
    /// The newest report for monitors that was taken.
    reported_at: Instant,
    /// How often its program had asked for its bell when that was last looked at.
    armed: u64,
    /// Its program is gone: no other unit is taken from it.
    withdrawn: bool,
    /// The ring was empty when it was last looked at: its next unit is handed over after that.
    is_empty: bool,
    /// The opening of the channel: no unit is due before it.
    since: Instant,
    /// Units of which the last frame has left.
    sent: u64,
    slots: u64,
    /// When the newest slot began: several units may leave in one.
    slot_at: Instant,
}

/// The work on a ring that is due once the machines are drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// A slot is over: its next units are offered.
    Offer,
    /// The channel goes on over another path: those that have not left are offered again first.
    OfferAgain,
    /// A unit has changed while it was sent: its channel ends, and no other octet is taken from it.
    End,
}

/// A unit of the ring, and what the machine was told of it: the number is the one on the wire.
pub(super) struct Offered {
    pub(super) unit: WaitingUnit,
    pub(super) told: UnitRef,
    /// It waits for those before it, which have not left whole.
    pub(super) has_left: bool,
}

/// The numbers of the units of one channel on the wire.
///
/// A program numbers the units that it leaves out as well. These numbers are the ones on the wire, except
/// after a gap of more than [`STEP_MAX`]: its rest follows with the units after it, or with the end.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    /// The program's number of its next unit, if it leaves out none.
    expected: u64,
    /// The next number on the wire.
    next: u64,
    /// Units left out so far, with a number on the wire and without one yet.
    left_out: u64,
    owed: u64,
    /// Units left out that an event has told before the unit behind them was taken.
    told: u64,
}

impl Numbers {
    /// The program hands over the unit with this number of its own. Returns the unit's number on the wire and
    /// how many units were left out since the unit before it, without those that are told already.
    fn take(&mut self, own: u64) -> (u64, u64) {
        let gap = own.saturating_sub(self.expected);
        self.expected = own.saturating_add(1);
        self.owed = self.owed.saturating_add(gap);
        let step = self.owed.min(STEP_MAX);
        self.owed -= step;
        self.left_out = self.left_out.saturating_add(step);
        let number = self.next.saturating_add(step);
        self.next = number.saturating_add(1);
        let known = gap.min(self.told);
        self.told -= known;
        (number, gap - known)
    }

    /// Units left out that no event has told, if the program has left out so many in all; they count as told.
    fn untold(&mut self, left_out: u64) -> u64 {
        let known = self.left_out.saturating_add(self.owed).saturating_add(self.told);
        let more = left_out.saturating_sub(known);
        self.told = self.told.saturating_add(more);
        more
    }
}

/// A program's schedule, as far as it can be one.
fn bounded(schedule: Instant, since: Instant, now: Instant) -> Instant {
    schedule.max(since).max(now.minus(SCHEDULE_FAR)).min(now + SCHEDULE_FAR)
}

impl Source {
    pub(super) fn new(
        (channel, hop): (ChannelId, Option<MacAddr>),
        memory: SourceMemory,
        token: u64,
        since: Instant,
    ) -> Self {
        let offered = VecDeque::with_capacity(memory.ring.slots() as usize);
        let (due, numbers, is_empty) = (Due::Nothing, Numbers::default(), true);
        let (slot_at, reported_at) = (Instant::ZERO, Instant::ZERO);
        Self {
            channel,
            hop,
            memory,
            token,
            offered,
            begun: None,
            due,
            numbers,
            left_out_stated: 0,
            reported_at,
            armed: 0,
            withdrawn: false,
            is_empty,
            since,
            sent: 0,
            slots: 0,
            slot_at,
        }
    }

    /// The units that this report for monitors states as come, if it is of the receiver's station and was
    /// made since the channel opened; 0 otherwise, and where it was taken before: the receiver may have told
    /// since that some of these units were not read. Another station's word about this channel counts for
    /// nothing.
    pub(super) fn reported(&mut self, heard: &HeardChannel, own: MacAddr) -> u64 {
        let is_other_end = Some(heard.mac) == self.hop && heard.peer_mac == Some(own) && !heard.said.sending;
        let is_it = is_other_end && heard.said.channel == self.channel && heard.at >= self.since;
        let is_new = is_it && heard.at > self.reported_at;
        self.reported_at = if is_new { heard.at } else { self.reported_at };
        if is_new { heard.said.units } else { 0 }
    }

    /// Nothing more of a unit leaves. The memory of units is given back in their order: where the channel has
    /// just changed, a unit of the new contract may leave before the last one of the old contract.
    fn left(&mut self, number: u64) {
        if let Some(of) = self.offered.iter_mut().find(|of| of.told.number == number) {
            of.has_left = true;
        }
        while self.offered.front().is_some_and(|first| first.has_left)
            && let Some(first) = self.offered.pop_front()
        {
            self.memory.ring.release(&first.unit);
        }
        self.sent += 1;
        self.memory.board.set_units_sent(self.sent);
    }

    /// The units that the program has handed over or left out, those included that wait.
    fn stated(&self) -> Stated {
        let (written, left_out) = self.memory.ring.stated();
        Stated { units: written.saturating_add(left_out), left_out, unsent: 0 }
    }
}

impl Rings {
    /// Tells the machine all units that a program has handed over or left out: its channel is about to end.
    pub(super) fn state_units(
        &mut self,
        at: Instant,
        channel: ChannelId,
        node: &mut Node,
        tracer: &mut Tracer,
    ) {
        let Some(source) = self.sources.iter().find(|source| source.channel == channel) else {
            return;
        };
        let stated = source.stated();
        node.state_units(channel, stated);
        self.trace_untold(at, channel, stated, tracer);
    }

    /// Notes the units that the program left out since the last unit of the ring.
    pub(super) fn trace_untold(
        &mut self,
        at: Instant,
        channel: ChannelId,
        stated: Stated,
        tracer: &mut Tracer,
    ) {
        let mut sources = self.sources.iter_mut();
        let Some(source) = sources.find(|source| source.channel == channel) else { return };
        let untold = source.numbers.untold(stated.left_out);
        if untold > 0 {
            tracer.left_out(at, channel, stated.units.saturating_sub(untold), untold);
        }
    }

    /// No other unit is taken from the ring of this channel: its program is gone.
    fn withdraw(&mut self, channel: ChannelId) {
        if let Some(source) = self.sources.iter_mut().find(|source| source.channel == channel) {
            source.withdrawn = true;
        }
    }

    /// States the units of all channels that have left out some since it was last stated. Where no slot comes
    /// no unit is taken from a ring, and its program goes on to leave out units.
    pub(super) fn state_left_out(&mut self, node: &mut Node) {
        for source in self.sources.iter_mut().filter(|source| !source.withdrawn) {
            let stated = source.stated();
            if stated.left_out > source.left_out_stated {
                source.left_out_stated = stated.left_out;
                node.state_units(source.channel, stated);
            }
        }
    }
}

impl<D: FrameDevice, G: Egress> Data<D, G> {
    /// Offers the machine the next units of a ring, as many as the slots of one cycle can carry. True if it
    /// was told anything.
    pub(super) fn offer(&mut self, at: Instant, index: usize) -> bool {
        let channel = self.rings.sources[index].channel;
        let ahead = self.node.units_ahead(channel);
        let mut told = false;
        loop {
            let source = &mut self.rings.sources[index];
            if source.withdrawn || source.due == Due::End || source.offered.len() >= ahead {
                return told;
            }
            match source.memory.ring.show() {
                Ok(Some(unit)) => self.offer_unit(at, index, unit),
                Ok(None) => {
                    source.is_empty = true;
                    return told;
                }
                Err(hostile) => {
                    self.end_hostile(at, channel, &hostile.to_string());
                    return true;
                }
            }
            told = true;
        }
    }

    fn offer_unit(&mut self, at: Instant, index: usize, unit: WaitingUnit) {
        let source = &mut self.rings.sources[index];
        let (channel, own) = (source.channel, unit.number);
        let (number, left_out) = source.numbers.take(own);
        let stated = source.stated();
        let schedule = bounded(unit.schedule, source.since, at);
        // Until the ring was last looked at the program had not handed it over.
        let late = if source.is_empty { self.rings.looked.since(schedule) } else { Span::ZERO };
        source.is_empty = false;
        self.told.tracer.handed_over(channel, number, late);
        let described = UnitRef {
            number,
            octets: unit.octets,
            schedule_ns: schedule.as_nanos(),
            left_out: source.numbers.left_out as u16,
        };
        source.offered.push_back(Offered { unit, told: described, has_left: false });
        if left_out > 0 {
            self.told.tracer.left_out(at, channel, own.saturating_sub(left_out), left_out);
        }
        // An end that the machine finds itself counts the units that wait, too.
        self.node.state_units(channel, stated);
        self.node.handle(at, Input::UnitReady { channel, unit: described });
    }

    /// Does what slots have called for, once the machines are drained. True if the machines were told
    /// anything.
    pub(super) fn follow_up(&mut self) -> bool {
        if !std::mem::take(&mut self.rings.has_due) {
            return false;
        }
        let (at, mut told) = (now(), false);
        // From the last one: a channel that ends here gives its place to the last ring.
        for index in (0..self.rings.sources.len()).rev() {
            let source = &mut self.rings.sources[index];
            match source.due {
                Due::Nothing => {}
                Due::Offer => {
                    source.due = Due::Nothing;
                    told |= self.offer(at, index);
                }
                Due::OfferAgain => {
                    source.due = Due::Nothing;
                    self.offer_again(at, index);
                    self.offer(at, index);
                    told = true;
                }
                Due::End => {
                    let channel = source.channel;
                    self.end_hostile(at, channel, CHANGED);
                    told = true;
                }
            }
        }
        told
    }

    /// The machine has dropped the units of a channel with the path that they were to take. One that had
    /// begun to leave is lost, so that none of its octets comes twice; the receiver counts it.
    fn offer_again(&mut self, at: Instant, index: usize) {
        let source = &mut self.rings.sources[index];
        let begun = source.begun;
        while source.offered.front().is_some_and(|first| begun >= Some(first.told.number))
            && let Some(first) = source.offered.pop_front()
        {
            source.memory.ring.release(&first.unit);
            self.rings.wakes.notify(&source.memory.sleeper);
        }
        let channel = source.channel;
        for place in 0..source.offered.len() {
            let unit = self.rings.sources[index].offered[place].told;
            self.node.handle(at, Input::UnitReady { channel, unit });
        }
    }

    /// Ends the channel of a program that breaks the rules of its ring.
    fn end_hostile(&mut self, at: Instant, channel: ChannelId, why: &str) {
        self.control.say(Note::Hostile { channel, why: why.to_owned() });
        self.node.abort(at, channel);
        self.rings.forget(channel, &self.waits, &self.control);
    }

    /// The program of a channel is gone, at either end.
    pub(super) fn abort(&mut self, at: Instant, channel: ChannelId) {
        let tracer = &mut self.told.tracer;
        self.rings.state_units(at, channel, &mut self.node, tracer);
        self.rings.abandon(channel, &mut self.node, tracer);
        if self.node.abort(at, channel) {
            // The rest of a unit is read from the ring, which goes with the channel's end.
            self.rings.withdraw(channel);
        } else {
            self.rings.forget(channel, &self.waits, &self.control);
        }
    }

    /// A slot of a channel is over. The machines are amid a drain: what this calls for is noted, and done by
    /// [`Data::follow_up`].
    pub(super) fn slot(&mut self, at: Instant, channel: ChannelId, unit: Option<(u64, UnitFate)>) {
        let Some(source) = self.rings.sources.iter_mut().find(|source| source.channel == channel) else {
            return;
        };
        source.slots += u64::from(source.slot_at != at);
        source.slot_at = at;
        self.rings.has_due = true;
        match unit {
            // Its number would stay a gap that the receiver takes for a loss on the wire.
            Some((_, UnitFate::Dropped)) => {
                source.due = Due::End;
                return;
            }
            // The receiver counts one that was beyond its contract as lost. The program has broken no rule of
            // its ring: it may not have known yet that its contract had become less.
            Some((number, UnitFate::Sent | UnitFate::Beyond)) => source.left(number),
            None => source.memory.board.count(ChannelCounter::SlotsEmpty, 1),
        }
        if source.due == Due::Nothing {
            source.due = Due::Offer;
        }
        source.memory.board.set_slot(SlotMark { number: source.slots, at });
        self.rings.wakes.notify(&source.memory.sleeper);
        let ring = &source.memory.ring;
        source.memory.sleeper.ring_if_armed(&mut source.armed, || ring.armed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The receiver knew nothing of a unit that the program left out.
    #[test]
    fn a_unit_that_is_left_out_has_a_number() {
        let mut numbers = Numbers::default();
        assert_eq!([0, 1, 5, 6].map(|own| numbers.take(own)), [(0, 0), (1, 0), (5, 3), (6, 0)]);
        assert_eq!((numbers.left_out, numbers.untold(3), numbers.untold(10)), (3, 0, 7));
        assert_eq!(numbers.untold(10), 0, "once");
    }

    /// The gap before a unit that still waited at the end of its channel counted twice.
    #[test]
    fn a_gap_that_the_end_has_told_counts_once() {
        let mut numbers = Numbers::default();
        assert_eq!((numbers.take(0), numbers.untold(3)), ((0, 0), 3));
        assert_eq!((numbers.take(4), numbers.left_out, numbers.untold(3)), ((4, 0), 3, 0));
        assert_eq!((numbers.untold(5), numbers.take(8), numbers.left_out), (2, (8, 1), 6));
    }

    /// A schedule of 0 made every unit as late as the host had been up.
    #[test]
    fn a_schedule_is_not_before_the_channel_nor_far_from_now() {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let of = |schedule| bounded(schedule, at(1_000_000), at(1_020_000));
        assert_eq!(of(Instant::ZERO), at(1_000_000));
        assert_eq!(
            [at(1_000_001), at(1_019_000), at(1_030_000)].map(of),
            [1_000_001, 1_019_000, 1_030_000].map(at)
        );
        assert_eq!(of(Instant::from_nanos(u64::MAX)), at(1_080_000));
        assert_eq!(bounded(at(1), at(0), at(1_000_000)), at(940_000));
    }

    proptest! {
        /// Any gaps: numbers on the wire grow by less than half of what their 16 bits tell apart, and in
        /// the end all units left out are among them.
        #[test]
        fn gaps_of_any_size_reach_the_wire(gaps in prop::collection::vec(0u64..100_000, 1..20)) {
            let (mut numbers, mut own, mut before) = (Numbers::default(), 0, None::<u64>);
            let all: u64 = gaps.iter().sum();
            for gap in gaps.iter().copied().chain([0; 2_000]) {
                own += gap;
                let (number, told) = numbers.take(own);
                prop_assert_eq!(told, gap);
                let step = number - before.map_or(0, |before| before + 1);
                prop_assert!(step <= STEP_MAX);
                before = Some(number);
                own += 1;
            }
            prop_assert_eq!((numbers.left_out, numbers.owed, numbers.next), (all, 0, own));
        }

        /// A hostile program says any number.
        #[test]
        fn no_number_overflows(owns in prop::collection::vec(any::<u64>(), 1..20), left_out in any::<u64>()) {
            let mut numbers = Numbers::default();
            owns.into_iter().for_each(|own| _ = numbers.take(own));
            numbers.untold(left_out);
            prop_assert!(numbers.next < 1 << 32);
        }
    }
}
