//! The packets of one hop. They are held until they are eligible; from then on they *join* those that wait
//! for a slot of the hop's share. Both are one queue: eligibility times never fall, so that the first packets
//! have joined and the others are held.
//!
//! At a gateway the octets stand in buffers of this hop alone, taken when the hop is entered. A packet gives
//! its place back when it leaves: no buffer of one channel serves another one (TENET-4.2-3). At a source
//! packets are cut from the units that wait in their program's memory, each when it becomes eligible.

mod contracts;

use self::contracts::Next;
use super::door::{HopCounts, HopSpec};
use super::pacer::{Pacer, Times};
use crate::io::{ChannelId, Payloads, UnitRef};
use rota_admission::rtip::{RateJitter, Regulator, Traffic};
use rota_admission::{Clocks, FRAGMENTS_MAX, Pace, path};
use rota_medium::door::{Due, Life, UNITS_WAITING_MAX};
use rota_units::{Instant, Span};
use rota_wire::{RTIP_HEADER_OCTETS, RtipHeader, UNIT_HEADER_OCTETS, UnitHeader};
use std::collections::VecDeque;

/// Most buffers of one hop.
pub(crate) const BUFFERS_MAX: usize = path::BUFFERS_MAX as usize;
/// Packets that have joined: a medium counts no more. Those behind them join as others leave.
const JOINED_MAX: usize = UNITS_WAITING_MAX;
/// Units of a source that wait, unless its bound allows more.
const UNITS_MAX: usize = UNITS_WAITING_MAX;
const NANOS_A_MICRO: u64 = 1_000;

/// The part of a unit that a packet of a source carries.
#[derive(Clone, Copy, Debug)]
struct Fragment {
    unit: UnitRef,
    index: u16,
    /// Where it begins in the unit.
    offset: u32,
    last: bool,
}

/// Where the octets of a packet are.
#[derive(Clone, Copy, Debug)]
enum Content {
    /// In the memory of the program.
    Unit(Fragment),
    /// In a buffer of its contract at this hop.
    Buffer(usize),
}

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
struct Packet {
    header: RtipHeader,
    /// Octets behind the RTIP header.
    octets: usize,
    times: Times,
    /// It is one of the contract that takes the place of the other one.
    is_of_next: bool,
    content: Content,
}

/// The buffers of a contract, each of which a packet takes behind the one before it.
#[derive(Clone, Debug)]
struct Ring {
    octets: Box<[u8]>,
    stride: usize,
    places: usize,
    next: usize,
    used: usize,
}

impl Ring {
    /// Takes so many buffers now, for packets of so many octets.
    fn new(places: usize, octets: u32) -> Self {
        let stride = UNIT_HEADER_OCTETS + octets as usize;
        Self { octets: vec![0; stride * places].into_boxed_slice(), stride, places, next: 0, used: 0 }
    }

    fn has_room(&self, payload: &[u8]) -> bool {
        self.used < self.places && payload.len() <= self.stride
    }

    /// A packet takes the next place.
    fn keep(&mut self, payload: &[u8]) -> usize {
        let place = self.next;
        (self.next, self.used) = ((place + 1) % self.places, self.used + 1);
        self.octets[place * self.stride..][..payload.len()].copy_from_slice(payload);
        place
    }

    fn get(&self, place: usize, octets: usize) -> &[u8] {
        &self.octets[place * self.stride..][..octets]
    }
}

/// Where packets come from.
#[derive(Clone, Debug)]
enum Origin {
    Source(Source),
    Gateway(Ring),
}

/// The units of a source.
#[derive(Clone, Debug)]
struct Source {
    /// Each with the time at which it was handed over.
    units: VecDeque<(UnitRef, Instant)>,
    /// How many of them may wait.
    room: usize,
    /// How many wait while the program keeps its contract, at most.
    ahead: usize,
    /// The next fragment of the first one, and where it begins.
    index: u16,
    offset: u32,
    /// Payload of a whole packet of that unit.
    octets: usize,
    /// That unit goes by the contract that takes the place of the other one.
    is_of_next: bool,
    /// So many units were handed over before it did, and go by the other one.
    former: usize,
    /// The channel of the program: its memory has the octets.
    program: ChannelId,
    /// The channel that is told of each slot: the program's, or this hop where several have one program.
    told: ChannelId,
    /// When that is eligible, and its deadline.
    next: Option<Times>,
    sequence: u16,
    /// No packet is eligible before it begins, and no unit is taken when it has ended.
    life: Life,
}

/// The packet that has left, or was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// Packets that do not wait any more.
    pub(crate) packets: u64,
    /// The unit that is over with them, at its source.
    pub(crate) unit: Option<UnitRef>,
}

/// Why a gateway does not take a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// All buffers are full, or it is longer than one.
    Buffers,
    /// It is beyond its contract.
    Policed,
}

/// The outcome of a call for one packet of a member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    /// Its times: it waits for its turn.
    At(Due),
    /// The group is beyond its contract: the packet waits until the group's regulator lets it go.
    Held,
    /// None is eligible.
    None,
}

impl Source {
    /// The first unit is cut, or given up.
    fn pop_unit(&mut self) {
        self.units.pop_front();
        (self.index, self.offset, self.former) = (0, 0, self.former.saturating_sub(1));
    }

    /// How many units packets have been cut from: the first one, or none.
    fn cut(&self) -> usize {
        usize::from(self.index > 0)
    }

    /// Units have gone elsewhere: without any nothing is planned.
    fn plan_ends(&mut self) {
        self.next = self.next.filter(|_| !self.units.is_empty());
    }
}

impl Times {
    /// As a medium knows them.
    const fn as_due(self) -> Due {
        Due { eligible: self.eligible, deadline: self.due }
    }
}

/// The packets that leave within the bound of a source, and one: a unit has a packet at least.
fn units_within(spec: &HopSpec) -> usize {
    let within = spec.traffic.closed(spec.delay).saturating_add(1);
    within.min(Pace::PACKETS_MAX.into()) as usize
}

/// The packets of one hop.
#[derive(Clone, Debug)]
pub(crate) struct Packets {
    local_id: u16,
    /// Payload of the largest packet.
    octets: usize,
    buffers: usize,
    pacer: Pacer,
    origin: Origin,
    next: Option<Box<Next>>,
    waiting: VecDeque<Packet>,
    joined: usize,
    /// The newest packet came before it was eligible.
    is_ahead: bool,
    /// The first one that is held has its time from the regulator of its group.
    is_booked: bool,
    counts: HopCounts,
}

impl Packets {
    /// A source, which cuts the units of a program into packets of so many octets at most. It polices by the
    /// rate.
    pub(crate) fn of_source(spec: &HopSpec, octets: u32, program: ChannelId) -> Self {
        let ahead = units_within(spec);
        let (room, life) = (ahead.max(UNITS_MAX), Life::ALWAYS);
        let (units, told) = (VecDeque::with_capacity(room), program);
        let source = Source {
            units,
            room,
            ahead,
            index: 0,
            offset: 0,
            octets: octets as usize,
            is_of_next: false,
            former: 0,
            program,
            told,
            next: None,
            sequence: 0,
            life,
        };
        let regulated = HopSpec { regulator: Regulator::Rate, buffers: JOINED_MAX, ..*spec };
        Self::new(&regulated, octets, Origin::Source(source), false)
    }

    /// The same for a source that sends in this time only.
    pub(crate) fn during(mut self, of: Life) -> Self {
        if let Origin::Source(source) = &mut self.origin {
            source.life = of;
        }
        self
    }

    /// A source takes so many units at least, in memory that is taken now.
    pub(crate) fn take_room(&mut self, units: usize) {
        if let Origin::Source(source) = &mut self.origin
            && units > source.room
        {
            source.room = units;
            source.units.reserve_exact(units);
        }
    }

    /// Units that a program is to offer ahead of their slots: so many wait while it keeps its contract.
    pub(crate) const fn units_ahead(&self) -> usize {
        match &self.origin {
            Origin::Source(source) => source.ahead,
            Origin::Gateway(_) => 0,
        }
    }

    /// Units of a source that may wait. A gateway has none.
    pub(crate) const fn units_room(&self) -> usize {
        match &self.origin {
            Origin::Source(source) => source.room,
            Origin::Gateway(_) => 0,
        }
    }

    /// The same where several hops have one program: each slot is told as one of this hop.
    pub(crate) const fn beside_others(mut self, hop: ChannelId) -> Self {
        if let Origin::Source(source) = &mut self.origin {
            source.told = hop;
        }
        self
    }

    /// A gateway, which takes its buffers now. Packets of the statistical class are only held until the time
    /// that they state, and policed by a meter.
    pub(crate) fn of_gateway(spec: &HopSpec, octets: u32, is_statistical: bool) -> Self {
        Self::new(spec, octets, Origin::Gateway(Ring::new(spec.buffers, octets)), is_statistical)
    }

    fn new(spec: &HopSpec, octets: u32, origin: Origin, is_statistical: bool) -> Self {
        let HopSpec { traffic, regulator, buffers, delay, upstream, local_id } = *spec;
        Self {
            local_id,
            octets: octets as usize,
            buffers,
            pacer: if is_statistical {
                Pacer::of_statistical(traffic, upstream, delay)
            } else {
                Pacer::new(traffic, regulator, delay)
            },
            origin,
            next: None,
            waiting: VecDeque::with_capacity(buffers),
            joined: 0,
            is_ahead: false,
            is_booked: false,
            counts: HopCounts::default(),
        }
    }

    /// By which the group of a member is policed: a source's members behind other clocks must not be held
    /// for these alone.
    pub(crate) fn traffic_of_group(&self) -> Traffic {
        let traffic = self.pacer.traffic();
        match self.origin {
            Origin::Source(_) => Clocks::APART.held(&traffic),
            Origin::Gateway(_) => traffic,
        }
    }

    /// The counts of this hop.
    pub(crate) fn counts(&self) -> HopCounts {
        HopCounts { waiting: self.waiting.len(), ..self.counts }
    }

    /// True if nothing waits, held packets and uncut units included.
    pub(crate) fn is_empty(&self) -> bool {
        let uncut = matches!(&self.origin, Origin::Source(source) if !source.units.is_empty());
        self.waiting.is_empty() && !uncut
    }

    /// The next node has another local id for them from now on.
    pub(crate) const fn set_local_id(&mut self, local_id: u16) {
        self.local_id = local_id;
    }

    /// At a source the channel that hears of each slot.
    pub(crate) const fn told(&self) -> Option<ChannelId> {
        match &self.origin {
            Origin::Source(source) => Some(source.told),
            Origin::Gateway(_) => None,
        }
    }

    /// The next unit that no packet has been cut from goes elsewhere.
    pub(crate) fn take_uncut(&mut self) -> Option<UnitRef> {
        let Origin::Source(source) = &mut self.origin else { return None };
        let (unit, _) = source.units.remove(source.cut())?;
        source.plan_ends();
        Some(unit)
    }

    /// The number of the first unit that no packet has been cut from.
    pub(crate) fn first_uncut(&self) -> Option<u64> {
        let Origin::Source(source) = &self.origin else { return None };
        source.units.get(source.cut()).map(|(unit, _)| unit.number)
    }

    /// The units from this number on, of which no packet has been cut, go elsewhere.
    pub(crate) fn take_uncut_from(&mut self, number: u64) -> Vec<UnitRef> {
        let Origin::Source(source) = &mut self.origin else { return Vec::new() };
        let cut = source.cut();
        let at = source.units.iter().skip(cut).take_while(|(unit, _)| unit.number < number).count() + cut;
        let units = source.units.drain(at.min(source.units.len())..).map(|(unit, _)| unit).collect();
        source.plan_ends();
        units
    }

    // ---- what comes -----------------------------------------------------------------------------------

    /// A unit waits in the program's memory. False where too many wait already.
    pub(crate) fn offer(&mut self, now: Instant, unit: UnitRef) -> bool {
        let Origin::Source(source) = &mut self.origin else { return false };
        if source.units.len() >= source.room || now >= source.life.until {
            return false;
        }
        source.units.push_back((unit, now.max(source.life.from)));
        self.plan();
        true
    }

    /// A packet has come in a frame: its octets are copied into a buffer.
    ///
    /// # Errors
    /// [`NotTaken`], counted.
    pub(crate) fn take(
        &mut self,
        arrival: Instant,
        header: RtipHeader,
        payload: &[u8],
    ) -> Result<(), NotTaken> {
        let Origin::Gateway(ring) = &mut self.origin else { return Err(NotTaken::Buffers) };
        let next = self.next.as_mut().filter(|next| next.label_in == Some(header.local_id));
        let (is_of_next, ring) = match next.and_then(|next| next.ring.as_mut()) {
            Some(ring) => (true, ring),
            None => (false, ring),
        };
        // A source sends by one contract behind the other: the end of the old one relies on it.
        if !is_of_next && self.waiting.back().is_some_and(|packet| packet.is_of_next) {
            self.counts.policed += 1;
            return Err(NotTaken::Policed);
        }
        // One that finds no buffer leaves no trace in the meter.
        if !ring.has_room(payload) {
            self.counts.over_buffers += 1;
            return Err(NotTaken::Buffers);
        }
        let ahead = Span::from_micros(header.ahead_us());
        let Some(times) = self.pacer.next(arrival, ahead, is_of_next) else {
            self.counts.policed += 1;
            return Err(NotTaken::Policed);
        };
        let content = Content::Buffer(ring.keep(payload));
        self.is_ahead = times.eligible > arrival;
        self.wait(Packet { header, octets: payload.len(), times, is_of_next, content });
        Ok(())
    }

    fn wait(&mut self, packet: Packet) {
        self.waiting.push_back(packet);
        self.counts.taken += 1;
        self.counts.most = self.counts.most.max(self.waiting.len());
    }

    /// Asks the regulator about the packet that is cut next.
    fn plan(&mut self) {
        let Origin::Source(source) = &mut self.origin else { return };
        if let (None, Some((_, handed))) = (source.next, source.units.front()) {
            if source.index == 0 {
                let next = self.next.as_ref().filter(|_| source.former == 0);
                (source.is_of_next, source.octets) =
                    (next.is_some(), next.map_or(self.octets, |next| next.octets));
            }
            source.next = self.pacer.next(*handed, Span::ZERO, source.is_of_next);
        }
    }

    /// Cuts the next packet of a source, if it is eligible and there is room.
    fn cut(&mut self, now: Instant) -> bool {
        let Origin::Source(source) = &mut self.origin else { return false };
        let Some(times) = source.next.filter(|times| times.eligible <= now) else { return false };
        if self.waiting.len() >= self.buffers {
            return false;
        }
        let Some((unit, handed)) = source.units.front().copied() else { return false };
        let offset = source.offset.min(unit.octets);
        let rest = (unit.octets - offset) as usize;
        let (index, octets) = (source.index, rest.min(source.octets));
        // The header has twelve bits for the index: what is behind them never leaves.
        let last = rest <= source.octets || u64::from(index) + 1 >= FRAGMENTS_MAX;
        let timestamp_us = (handed.as_nanos() / NANOS_A_MICRO) as u32;
        let header = RtipHeader::new(self.local_id, source.sequence, timestamp_us);
        source.sequence = source.sequence.wrapping_add(1);
        source.next = None;
        (source.index, source.offset) = (index + 1, offset + octets as u32);
        if last {
            source.pop_unit();
        }
        let (is_of_next, octets) = (source.is_of_next, UNIT_HEADER_OCTETS + octets);
        let content = Content::Unit(Fragment { unit, index, offset, last });
        self.wait(Packet { header, octets, times, is_of_next, content });
        self.plan();
        true
    }

    // ---- what leaves ----------------------------------------------------------------------------------

    /// Lets those join that are eligible; how many.
    pub(crate) fn join(&mut self, now: Instant) -> usize {
        while self.cut(now) {}
        let held = self.waiting.iter().skip(self.joined).take(JOINED_MAX - self.joined);
        let joining = held.take_while(|packet| packet.times.eligible <= now).count();
        self.joined += joining;
        joining
    }

    /// One packet of a member of a group: if it is eligible, the group's regulator is asked, once for each
    /// packet, and lets it join or holds it.
    pub(crate) fn join_next(&mut self, now: Instant, group: &mut RateJitter<Box<[Instant]>>) -> Joined {
        if self.waiting.len() == self.joined && !self.cut(now) || self.joined >= JOINED_MAX {
            return Joined::None;
        }
        let packet = self.waiting.get_mut(self.joined).filter(|packet| packet.times.eligible <= now);
        let Some(packet) = packet else { return Joined::None };
        if !self.is_booked {
            let eligible = group.eligible(packet.times.eligible);
            let held = eligible.since(packet.times.eligible);
            let Times { deadline, due, .. } = packet.times;
            packet.times = Times { eligible, deadline: deadline + held, due: due + held };
            self.is_booked = true;
            // One that was only looked at late does not wait for the group.
            if eligible > now {
                self.counts.held += 1;
                return Joined::Held;
            }
        }
        let due = packet.times.as_due();
        (self.joined, self.is_booked) = (self.joined + 1, false);
        Joined::At(due)
    }

    /// The times of the `back`-th of those that have joined, from the last one on, which is 1.
    pub(crate) fn joined_last(&self, back: usize) -> Option<Due> {
        let packet = self.waiting.get(self.joined.checked_sub(back)?)?;
        Some(packet.times.as_due())
    }

    /// When another one joins, unless one leaves before.
    pub(crate) fn due(&self) -> Instant {
        if self.joined >= JOINED_MAX {
            return Instant::FAR;
        }
        let held = self.waiting.get(self.joined).map(|packet| packet.times.eligible);
        let uncut = match &self.origin {
            Origin::Source(source) if self.waiting.len() < self.buffers => {
                source.next.map(|times| times.eligible)
            }
            _ => None,
        };
        held.or(uncut).unwrap_or(Instant::FAR)
    }

    /// At a gateway the time before which no packet that comes joins, if its channel comes ahead of its
    /// times; of another one nobody knows when its next packet is due.
    pub(crate) fn lull(&self) -> Option<Instant> {
        let is_gateway = matches!(self.origin, Origin::Gateway(_));
        is_gateway.then(|| if self.is_ahead { self.pacer.earliest() } else { Instant::ZERO })
    }

    /// When the first packet that has joined became eligible.
    pub(crate) fn first_eligible(&self) -> Option<Instant> {
        self.waiting.front().filter(|_| self.joined > 0).map(|packet| packet.times.eligible)
    }

    /// Octets of the first packet that has joined, its RTIP header included: a unit of the medium.
    pub(crate) fn first_octets(&self) -> Option<usize> {
        let first = self.waiting.front().filter(|_| self.joined > 0)?;
        Some(first.octets - UNIT_HEADER_OCTETS + RTIP_HEADER_OCTETS)
    }

    /// Writes the first packet to the front of `body` and returns its length. It is at the next node `ends`
    /// at the latest. `None` if its octets cannot be had.
    pub(crate) fn write(&self, body: &mut [u8], payloads: &mut dyn Payloads, ends: Instant) -> Option<usize> {
        let packet = self.waiting.front().filter(|_| self.joined > 0)?;
        let into = &mut body[RTIP_HEADER_OCTETS..RTIP_HEADER_OCTETS + packet.octets];
        let next = self.next.as_ref().filter(|_| packet.is_of_next);
        match (packet.content, &self.origin) {
            (Content::Unit(fragment), Origin::Source(source)) => {
                self.write_fragment(into, source.program, payloads, &fragment)?;
            }
            (Content::Buffer(place), Origin::Gateway(ring)) => {
                let ring = match next {
                    Some(next) => next.ring.as_ref()?,
                    None => ring,
                };
                into.copy_from_slice(ring.get(place, packet.octets));
            }
            (Content::Buffer(_), Origin::Source(_)) | (Content::Unit(_), Origin::Gateway(_)) => {
                return None;
            }
        }
        let ahead = packet.times.deadline.since(ends).as_nanos() / NANOS_A_MICRO;
        let mut header = packet.header.with_ahead_us(ahead);
        header.local_id = next.map_or(self.local_id, |next| next.local_id);
        header.emit(body, packet.octets)?;
        Some(RTIP_HEADER_OCTETS + packet.octets)
    }

    fn write_fragment(
        &self,
        into: &mut [u8],
        channel: ChannelId,
        payloads: &mut dyn Payloads,
        fragment: &Fragment,
    ) -> Option<()> {
        let Fragment { unit, index, offset, last } = *fragment;
        let header = UnitHeader {
            label: 0,
            number: unit.number as u16,
            fragment: index,
            last,
            left_out: unit.left_out,
            unit_octets: unit.octets,
            schedule_ns: unit.schedule_ns,
        };
        header.emit(into);
        let octets = &mut into[UNIT_HEADER_OCTETS..];
        payloads.copy_unit(channel, unit.number, offset, octets).then_some(())
    }

    /// The first packet has left.
    pub(crate) fn leave(&mut self) -> Left {
        self.counts.sent += u64::from(self.joined > 0);
        self.pop()
    }

    fn pop(&mut self) -> Left {
        let Some(packet) = self.waiting.pop_front() else { return Left { packets: 0, unit: None } };
        self.is_booked &= self.joined > 0;
        self.joined = self.joined.saturating_sub(1);
        if matches!(packet.content, Content::Buffer(_))
            && let Origin::Gateway(ring) = &mut self.origin
        {
            let next = self.next.as_mut().filter(|_| packet.is_of_next);
            next.and_then(|next| next.ring.as_mut()).unwrap_or(ring).used -= 1;
        }
        let unit = match packet.content {
            Content::Unit(Fragment { unit, last: true, .. }) => Some(unit),
            _ => None,
        };
        Left { packets: 1, unit }
    }

    /// The first packet is given up. At a source the rest of its unit goes with it: nobody can use it.
    pub(crate) fn give_up(&mut self) -> Left {
        let Some(Content::Unit(Fragment { unit, last, .. })) =
            self.waiting.front().map(|packet| packet.content)
        else {
            return self.pop();
        };
        let mut left = self.pop();
        if last {
            return left;
        }
        let is_same = |packet: &Packet| matches!(packet.content, Content::Unit(of) if of.unit == unit);
        while self.waiting.front().is_some_and(is_same) {
            left.packets += self.pop().packets;
        }
        if let Origin::Source(source) = &mut self.origin
            && source.units.front().is_some_and(|(of, _)| source.index > 0 && *of == unit)
        {
            // The time that the regulator has planned is the next unit's.
            source.pop_unit();
            source.plan_ends();
        }
        Left { unit: Some(unit), ..left }
    }
}
