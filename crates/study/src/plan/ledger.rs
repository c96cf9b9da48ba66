//! All that stands on the network of a plan: at each port the reservations of channels, each with the time in
//! which it is needed, its partition and its group.
//!
//! *Time* (`TENET-7-3`; Ferrari, Gupta, Ventre 1995). A channel is needed from its start to its end, and has
//! one bound all the while. The set of channels changes at starts and ends only. So the tests run at the
//! channel's own start, and at each start and end of another one in its life. At an end the set is smaller,
//! but on a RETHER segment the slot behind it may begin a visit of its own then, which takes longer.
//!
//! *A set that changes.* Packets of a channel that has ended may still wait, and make others wait longer
//! than the set behind it would. A channel stays in the ledger for D_max behind its end, until its last
//! packet has arrived, and then for [`QUIET`]. On a cable a busy period of the sets before takes L at most,
//! on any clock, and the plan refuses a set with L > QUIET where any channel ends. So a busy period with a
//! packet of the channel ends before another one takes its place, and each busy period has the packets of
//! one accepted set. On a RETHER segment a channel has slots of its own, which only move to the front when
//! another one ends. An earlier channel goes before a later one in the list, also where the later one
//! starts first.

use super::route::Step;
use rota_admission::Slot;
use rota_admission::rtip::Chance;
use rota_admission::subnet::{Ask, RetherShare};
use rota_units::Span;
use std::collections::{BTreeMap, BTreeSet};

/// No busy period of a cable on which a channel ends is longer.
pub const QUIET: Span = Span::from_millis(1_000);

/// The time in which a channel is needed, from the beginning of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// The first moment.
    pub start: Span,
    /// The last message is handed over before; a channel without an end stays.
    pub end: Option<Span>,
}

impl Life {
    /// From the beginning, and for ever.
    pub const WHOLE: Self = Self { start: Span::ZERO, end: None };

    /// With the time until nothing is left of the channel whose messages take `delay` at most.
    pub fn charged(self, delay: Span) -> Self {
        Self { end: self.end.map(|end| end + delay + QUIET), ..self }
    }

    /// True if both are charged at some moment.
    pub fn meets(&self, other: &Self) -> bool {
        let before = |one: &Self, next: &Self| one.end.is_some_and(|end| end <= next.start);
        !before(self, other) && !before(other, self)
    }

    /// True if the channel is charged at this moment.
    pub fn has(&self, at: Span) -> bool {
        self.start <= at && self.end.is_none_or(|end| at < end)
    }
}

/// Where a channel wants to stand: its time, its partition by name, its group, its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The number of the channel in the plan.
    pub channel: usize,
    /// When.
    pub life: Life,
    /// The partition, on each segment that has one of this name.
    pub partition: Option<String>,
    /// Its group, and how many members of it send at once.
    pub group: Option<(usize, usize)>,
    /// The chance of a late packet at one hop; in the guaranteed class, and where a hop is guaranteed, none.
    pub late: Chance,
}

impl Seat {
    /// Channels of its traffic that send at once.
    pub fn at_once(&self) -> u64 {
        self.group.map_or(1, |(_, at_once)| at_once as u64)
    }
}

/// The reservation of one channel at one port.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where it stands.
    pub seat: Seat,
    /// The number of its partition there.
    pub part: u8,
    /// The sending station, and those that receive.
    pub station: usize,
    /// The receiving stations.
    pub next: Vec<usize>,
    /// The packets.
    pub ask: Ask,
    /// The bound.
    pub delay: Span,
    /// The longest THT that it has at any moment, on a segment under a token. Members of a group that one
    /// station sends have one slot, and each of them this. On a cable the slots of a channel of that cable
    /// take so long in each window; none of a channel whose packets are scheduled there.
    pub tht: Option<Span>,
    /// The share behind it, as its test has found it.
    pub share: Option<RetherShare>,
}

impl Entry {
    /// The group and the station of an entry: its members have one slot on a segment under a token.
    fn shared(&self) -> Option<(usize, usize)> {
        self.seat.group.map(|(group, _)| (group, self.station))
    }
}

/// The entries of each segment, in the order in which they were accepted.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    segments: BTreeMap<usize, Vec<Entry>>,
}

impl Ledger {
    fn on(&self, segment: usize) -> &[Entry] {
        self.segments.get(&segment).map_or(&[], Vec::as_slice)
    }

    /// The entries of a segment at a moment, those before the one of `own`, if it stands already.
    pub fn at(&self, segment: usize, at: Span, own: usize) -> impl Iterator<Item = &Entry> {
        let all = self.on(segment).iter();
        all.take_while(move |entry| entry.seat.channel != own).filter(move |entry| entry.seat.life.has(at))
    }

    /// The entries of the statistical class at a port, before the channel `own`. Each is there for ever.
    pub fn statistical(&self, step: &Step, own: usize) -> impl Iterator<Item = &Entry> {
        self.of_port(step, own).filter(|entry| entry.seat.late > Chance::NEVER)
    }

    /// All others whose packets are scheduled there, whenever they are there.
    pub fn guaranteed(&self, step: &Step, own: usize) -> impl Iterator<Item = &Entry> {
        let is_flow = |entry: &&Entry| entry.tht.is_none() && entry.seat.late == Chance::NEVER;
        self.of_port(step, own).filter(is_flow)
    }

    /// How long the slots of each channel of a cable itself take in a window. Each is there for ever.
    pub fn loads(&self, step: &Step, own: usize) -> impl Iterator<Item = Span> {
        self.of_port(step, own).filter_map(|entry| entry.tht)
    }

    fn of_port(&self, step: &Step, own: usize) -> impl Iterator<Item = &Entry> {
        let station = step.station;
        let before = self.on(step.segment).iter().take_while(move |entry| entry.seat.channel != own);
        before.filter(move |entry| entry.station == station)
    }

    /// The moments at which a channel is tested on a segment.
    pub fn moments(&self, segment: usize, seat: &Seat) -> Vec<Span> {
        let others = self.on(segment).iter().map(|entry| entry.seat.life);
        let changes = others.flat_map(|life| [Some(life.start), life.end]).flatten();
        let mut all: Vec<Span> = changes.filter(|at| seat.life.has(*at)).chain([seat.life.start]).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// True if a channel that sends there ends.
    pub fn has_end(&self, step: &Step) -> bool {
        self.on(step.segment)
            .iter()
            .any(|entry| entry.station == step.station && entry.seat.life.end.is_some())
    }

    /// The entries that have a slot in the list of a token at a moment, before the channel `own`. A group has
    /// one for each station that sends members of it.
    pub fn slots(&self, segment: usize, at: Span, own: usize) -> impl Iterator<Item = &Entry> {
        let mut known = BTreeSet::new();
        let is_first = move |entry: &&Entry| entry.shared().is_none_or(|shared| known.insert(shared));
        self.at(segment, at, own).filter(is_first)
    }

    /// The list of a token at a moment, before the channel `own`, with the stations that receive.
    pub fn ring(&self, segment: usize, at: Span, own: usize) -> (Vec<Slot>, Vec<usize>) {
        let slot = |entry: &Entry| {
            let tht = entry.tht?;
            let (station, partition) = (super::engine::number(entry.station), entry.part);
            Some(Slot { station, tht, periodic: false, partition })
        };
        let slots = self.slots(segment, at, own).filter_map(slot).collect();
        (slots, self.at(segment, at, own).flat_map(|entry| entry.next.iter().copied()).collect())
    }

    /// The first member of a group that a station sends into a segment.
    pub fn member(&self, step: &Step, group: usize) -> Option<&Entry> {
        self.on(step.segment).iter().find(|entry| entry.shared() == Some((group, step.station)))
    }

    /// A reservation stands from now on.
    pub fn add(&mut self, segment: usize, entry: Entry) {
        self.segments.entry(segment).or_default().push(entry);
    }

    /// Members of a group have this bound at a port from now on.
    pub fn shorten(&mut self, step: &Step, group: usize, delay: Span) {
        for entry in self.segments.entry(step.segment).or_default() {
            let is_member = entry.seat.group.is_some_and(|(of, _)| of == group);
            if entry.station == step.station && is_member {
                entry.delay = entry.delay.min(delay);
            }
        }
    }

    /// Other receivers of the reservation of a channel; without any it ends. The slot behind it may begin a
    /// visit of its own then, which takes `visit`: that much of the time stays with it.
    pub fn set_receivers(&mut self, segment: usize, channel: usize, next: Vec<usize>, visit: Span) {
        let entries = self.segments.entry(segment).or_default();
        let Some(at) = entries.iter().position(|entry| entry.seat.channel == channel) else { return };
        if !next.is_empty() {
            entries[at].next = next;
            return;
        }
        let gone = entries[at].shared().filter(|_| entries[at].tht.is_some());
        let is_other = |(place, entry): (usize, &Entry)| place != at && entry.shared() == gone;
        let other = gone.and_then(|_| entries.iter().enumerate().position(is_other));
        let Entry { station, part, tht, .. } = match other {
            // The slot goes on under the next member, in its place.
            Some(heir) if heir > at => {
                let Entry { tht, .. } = entries[at];
                entries[at] = Entry { tht, ..entries.remove(heir) };
                return;
            }
            Some(_) => return drop(entries.remove(at)),
            None => entries.remove(at),
        };
        let first = |of: &Entry| entries.iter().position(|entry| entry.shared() == of.shared());
        let has_slot = |(place, of): &(usize, &Entry)| of.shared().is_none() || first(of) == Some(*place);
        // Slots of one partition alone share a visit.
        let is_behind = |entry: &Entry| (entry.station, entry.part) == (station, part);
        let mut behind = entries.iter().enumerate().skip(at).filter(|(_, entry)| is_behind(entry));
        let behind = behind.find(has_slot).map(|(place, _)| place);
        let behind = behind.map(|place| &mut entries[place]);
        if let (Some(gone), Some(Entry { tht: Some(tht), .. })) = (tht, behind) {
            *tht += gone.min(visit);
        }
    }

    /// The moments at which some channel starts, the latest first.
    pub fn starts(&self) -> Vec<Span> {
        let mut all: Vec<Span> =
            self.segments.values().flatten().map(|entry| entry.seat.life.start).collect();
        all.sort_unstable();
        all.dedup();
        all.reverse();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_admission::rtip::Traffic;
    use rota_units::Octets;

    /// The bound of a group's members at one port is none of theirs at another port of the cable.
    #[test]
    fn a_bound_becomes_shorter_at_its_own_port_alone() {
        let traffic = Traffic::periodic(Span::from_millis(10)).expect("a sound period");
        let (octets, delay) = (Octets::new(100), Span::from_millis(9));
        let ask = Ask { traffic, octets, octets_least: octets };
        let mut ledger = Ledger::default();
        for (channel, (station, group)) in [(0, 5), (1, 5), (0, 6), (0, 5)].into_iter().enumerate() {
            let group = Some((group, 1));
            let seat = Seat { channel, life: Life::WHOLE, partition: None, group, late: Chance::NEVER };
            let next = vec![1 - station];
            let entry = Entry { seat, part: 0, station, next, ask, delay, tht: None, share: None };
            ledger.add(3, entry);
        }
        let delays = |ledger: &Ledger| {
            let all = ledger.at(3, Span::ZERO, usize::MAX);
            all.map(|entry| entry.delay.as_nanos() / 1_000_000).collect::<Vec<_>>()
        };
        let step = Step { station: 0, segment: 3, next: 1 };
        ledger.shorten(&step, 5, Span::from_millis(4));
        assert_eq!(delays(&ledger), [4, 9, 9, 4]);
        ledger.shorten(&step, 5, Span::from_millis(7));
        assert_eq!(delays(&ledger), [4, 9, 9, 4], "no bound becomes longer");
    }
}
