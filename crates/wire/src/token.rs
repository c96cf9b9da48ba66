//! The token: cycle clock, reservations in slots, dead stations, and where the rounds stand.
//!
//! Fulfils RETHER-2.2.3-1, RETHER-2.2.3-20, RETHER-2.2.3-21, RETHER-2.2.3-22.

use crate::MacAddr;
use crate::fields::{Malformed, Reader, Writer};
use crate::leases::Leases;

/// Most stations on one segment; station numbers run from 1 to this.
pub const MAX_STATIONS: u16 = 255;
/// Most slots in one token, so that it fits one frame of 1,500 octets.
pub const MAX_SLOTS: usize = 220;

/// A set of station numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StationSet([u64; 4]);

impl StationSet {
    /// The empty set.
    pub const EMPTY: Self = Self([0; 4]);

    /// Whether `station` is in the set.
    pub const fn contains(&self, station: u16) -> bool {
        station <= MAX_STATIONS && self.0[station as usize / 64] >> (station % 64) & 1 == 1
    }

    /// Adds a station; numbers above [`MAX_STATIONS`] are ignored.
    pub fn insert(&mut self, station: u16) {
        if station <= MAX_STATIONS {
            self.0[usize::from(station) / 64] |= 1 << (station % 64);
        }
    }

    /// Removes a station.
    pub fn remove(&mut self, station: u16) {
        if station <= MAX_STATIONS {
            self.0[usize::from(station) / 64] &= !(1 << (station % 64));
        }
    }

    /// How many stations are in the set.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// The intersection with `other`.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        Self(core::array::from_fn(|at| self.0[at] & other.0[at]))
    }

    /// The difference to `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(core::array::from_fn(|at| self.0[at] & !other.0[at]))
    }

    /// The stations in rising order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (0u16..).zip(self.0).flat_map(|(at, word)| {
            // Only as many turns as there are stations: every hop looks at sets that are mostly empty.
            let left = core::iter::successors(Some(word), |left| Some(left & left.wrapping_sub(1)));
            left.take_while(|left| *left != 0).map(move |left| at * 64 + left.trailing_zeros() as u16)
        })
    }

    fn octets_needed(&self) -> usize {
        (0..32).rev().find(|at| self.octet(*at) != 0).map_or(0, |at| at + 1)
    }

    fn octet(&self, at: usize) -> u8 {
        (self.0[at / 8] >> (at % 8 * 8)) as u8
    }
}

/// One reservation: a station's turn in each cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Slot {
    /// The station whose turn it is.
    pub station: u16,
    /// How long it may hold the token, ns; zero marks a slot about to be compacted.
    pub tht_ns: u32,
    /// Whether the station's session is periodic: then the ring keeps the strict period.
    pub periodic: bool,
    /// The number of its partition of the segment, at most [`Slot::PARTITION_MAX`]; 0 for the rest.
    pub partition: u8,
}

impl Slot {
    /// The largest number of a partition.
    pub const PARTITION_MAX: u8 = 7;
}

/// The slots in the order of their turns.
#[derive(Clone, Copy)]
pub struct SlotList {
    slots: [Slot; MAX_SLOTS],
    len: usize,
}

impl SlotList {
    /// No reservation.
    pub const EMPTY: Self =
        Self { slots: [Slot { station: 0, tht_ns: 0, periodic: false, partition: 0 }; MAX_SLOTS], len: 0 };

    /// The slots.
    pub fn as_slice(&self) -> &[Slot] {
        &self.slots[..self.len]
    }

    /// The slots, to change.
    pub fn as_mut_slice(&mut self) -> &mut [Slot] {
        &mut self.slots[..self.len]
    }

    /// Whether a periodic session is among them: then the ring keeps the strict period.
    pub fn is_strict(&self) -> bool {
        self.as_slice().iter().any(|slot| slot.periodic)
    }

    /// Appends a slot; false when the list is full.
    pub fn push(&mut self, slot: Slot) -> bool {
        if self.len == MAX_SLOTS {
            return false;
        }
        self.slots[self.len] = slot;
        self.len += 1;
        true
    }

    fn copy_from(&mut self, other: &Self) {
        self.slots[..other.len].copy_from_slice(other.as_slice());
        self.len = other.len;
    }

    /// Keeps the slots for which `keep` says so, in order: every other station only gets earlier.
    pub fn retain(&mut self, mut keep: impl FnMut(&Slot) -> bool) {
        let mut kept = 0;
        for at in 0..self.len {
            if keep(&self.slots[at]) {
                self.slots[kept] = self.slots[at];
                kept += 1;
            }
        }
        self.len = kept;
    }
}

impl PartialEq for SlotList {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SlotList {}

impl core::fmt::Debug for SlotList {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// Where in the cycle the token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The first rotation after a mode switch: no data, every live station.
    First,
    /// Among the reservations.
    RealTime,
    /// In the non-real-time round.
    NonRealTime,
    /// On its way back to the cycle master.
    Home,
}

/// Why a live station is left out of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foul {
    /// It kept the token too long, again and again.
    Held,
    /// It sent outside its slots, again and again.
    Sent,
}

/// A live station that was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Struck {
    /// The station.
    pub station: u16,
    /// The reason.
    pub why: Foul,
}

/// The token's contents; the reservation list that the cycle master broadcasts has the same form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Raised by every change of mode.
    pub mode_epoch: u32,
    /// The cycle's number.
    pub cycle: u32,
    /// Time left in the cycle when this frame was sent, ns (paper section 2.2.3).
    pub residual_ns: u32,
    /// Target token rotation time, ns.
    pub trt_ns: u32,
    /// Where in the cycle the token is.
    pub phase: Phase,
    /// True if the token rested in the last cycle because no station had data.
    pub rested: bool,
    /// An audited token goes to all stations, so that each can measure the holds of others; only this address
    /// takes it. In a list and in a held token the field tells only that the token is audited.
    pub audit: Option<MacAddr>,
    /// The station that was left out in this cycle or the one before, and the reason.
    pub struck: Option<Struck>,
    /// The slot whose turn it is.
    pub position: u16,
    /// The station that is first in the next non-real-time round (paper section 2.2.3).
    pub next_nrt: u16,
    /// Non-real-time visits in a row that found no data.
    pub idle_visits: u16,
    /// Stations that the token skips (paper section 2.4).
    pub dead: StationSet,
    /// The reservations.
    pub slots: SlotList,
    /// The leases, on a ring whose timers follow the stalls of the hosts.
    pub leases: Option<Leases>,
}

const FIXED_OCTETS: usize = 28;
const SLOT_OCTETS: usize = 6;
const PERIODIC: u16 = 0x8000;
/// The partition of a slot, above its station.
const PARTITION_SHIFT: u32 = 12;
const STATION: u16 = 0x0fff;
const RESTED: u8 = 1;
const AUDITED: u8 = 2;
const STRUCK_HELD: u8 = 4;
const STRUCK_SENT: u8 = 8;
/// Leases follow the slots.
const LEASES: u8 = 0x80;
const MARKS_OCTETS: usize = 6 + 2;
/// With a longer dead set, leases would exceed the token that admission charges.
const DEAD_BESIDE_LEASES: usize = 32 - Leases::OCTETS;

impl Token {
    /// Octets of the largest token, with every slot in use, an addressee and a strike.
    pub const MAX_OCTETS: usize = FIXED_OCTETS + 32 + MAX_SLOTS * SLOT_OCTETS + MARKS_OCTETS;

    /// Octets of a token with `slots` slots and stations up to number `stations`, without addressee and
    /// strike.
    pub const fn octets_for(slots: usize, stations: usize) -> usize {
        FIXED_OCTETS + stations / 8 + 1 + slots * SLOT_OCTETS
    }

    /// Reads a token or a reservation list.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(body);
        let mode_epoch = reader.u32()?;
        let cycle = reader.u32()?;
        let residual_ns = reader.u32()?;
        let trt_ns = reader.u32()?;
        if trt_ns == 0 || residual_ns > trt_ns {
            return Err(Malformed::Field("residual time"));
        }
        let phase = match reader.u8()? {
            0 => Phase::First,
            1 => Phase::RealTime,
            2 => Phase::NonRealTime,
            3 => Phase::Home,
            _ => return Err(Malformed::Field("phase")),
        };
        let flags = reader.u8()?;
        let position = reader.u16()?;
        let next_nrt = reader.u16()?;
        let idle_visits = reader.u16()?;
        let dead = Self::parse_dead(&mut reader)?;
        let rested = flags & RESTED != 0;
        let mut token = Self {
            mode_epoch,
            cycle,
            residual_ns,
            trt_ns,
            phase,
            rested,
            audit: None,
            struck: None,
            position,
            next_nrt,
            idle_visits,
            dead,
            slots: SlotList::EMPTY,
            leases: None,
        };
        Self::parse_slots(&mut reader, &mut token.slots)?;
        if flags & LEASES != 0 {
            if token.dead.octets_needed() > DEAD_BESIDE_LEASES {
                return Err(Malformed::Field("leases"));
            }
            token.leases = Some(Leases::parse(&mut reader)?);
        }
        if flags & AUDITED != 0 {
            token.audit = Some(MacAddr(reader.mac()?));
        }
        let why = match flags & (STRUCK_HELD | STRUCK_SENT) {
            0 => None,
            STRUCK_HELD => Some(Foul::Held),
            STRUCK_SENT => Some(Foul::Sent),
            _ => return Err(Malformed::Field("struck")),
        };
        if let Some(why) = why {
            let station = reader.u16()?;
            if station == 0 || station > MAX_STATIONS {
                return Err(Malformed::Field("struck"));
            }
            token.struck = Some(Struck { station, why });
        }
        reader.end()?;
        Ok(token)
    }

    /// Becomes the same as `other`, at the cost of the slots in use: a plain copy moves all of them.
    pub fn copy_from(&mut self, other: &Self) {
        let Self { mode_epoch, cycle, residual_ns, trt_ns, phase, rested, audit, struck, .. } = *other;
        let Self { position, next_nrt, idle_visits, dead, ref slots, leases, .. } = *other;
        (self.mode_epoch, self.cycle, self.residual_ns, self.trt_ns) =
            (mode_epoch, cycle, residual_ns, trt_ns);
        (self.phase, self.rested, self.position, self.next_nrt) = (phase, rested, position, next_nrt);
        (self.idle_visits, self.dead, self.audit, self.struck) = (idle_visits, dead, audit, struck);
        self.leases = leases;
        self.slots.copy_from(slots);
    }

    fn parse_dead(reader: &mut Reader<'_>) -> Result<StationSet, Malformed> {
        let octets = usize::from(reader.u16()?);
        if octets > 32 {
            return Err(Malformed::Field("dead set"));
        }
        let mut dead = StationSet::EMPTY;
        for (at, octet) in reader.take(octets)?.iter().enumerate() {
            dead.0[at / 8] |= u64::from(*octet) << (at % 8 * 8);
        }
        if dead.octets_needed() != octets {
            return Err(Malformed::Field("dead set"));
        }
        Ok(dead)
    }

    fn parse_slots(reader: &mut Reader<'_>, slots: &mut SlotList) -> Result<(), Malformed> {
        let count = reader.u16()?;
        for _ in 0..count {
            let word = reader.u16()?;
            let (station, periodic) = (word & STATION, word & PERIODIC != 0);
            let partition = (word >> PARTITION_SHIFT) as u8 & Slot::PARTITION_MAX;
            let slot = Slot { station, tht_ns: reader.u32()?, periodic, partition };
            if slot.station == 0 || slot.station > MAX_STATIONS || !slots.push(slot) {
                return Err(Malformed::Field("slot"));
            }
        }
        Ok(())
    }

    /// Writes the token and returns its length. If a station beyond number 207 is dead, it carries no
    /// leases, and they count as [`Leases::SAFE`].
    pub fn emit(&self, body: &mut [u8]) -> usize {
        let phase = match self.phase {
            Phase::First => 0,
            Phase::RealTime => 1,
            Phase::NonRealTime => 2,
            Phase::Home => 3,
        };
        let dead_octets = self.dead.octets_needed();
        let leases = self.leases.filter(|_| dead_octets <= DEAD_BESIDE_LEASES);
        let flags = self.flags() | if leases.is_some() { LEASES } else { 0 };
        let mut writer = Writer::new(body);
        writer.u32(self.mode_epoch).u32(self.cycle).u32(self.residual_ns).u32(self.trt_ns);
        writer.u8(phase).u8(flags).u16(self.position);
        writer.u16(self.next_nrt).u16(self.idle_visits).u16(dead_octets as u16);
        for at in 0..dead_octets {
            writer.u8(self.dead.octet(at));
        }
        writer.u16(self.slots.len as u16);
        for slot in self.slots.as_slice() {
            let partition = u16::from(slot.partition & Slot::PARTITION_MAX) << PARTITION_SHIFT;
            let periodic = if slot.periodic { PERIODIC } else { 0 };
            writer.u16(slot.station | partition | periodic).u32(slot.tht_ns);
        }
        if let Some(leases) = &leases {
            leases.emit(&mut writer);
        }
        if let Some(mac) = self.audit {
            writer.bytes(&mac.0);
        }
        if let Some(struck) = self.struck {
            writer.u16(struck.station);
        }
        writer.written()
    }

    fn flags(&self) -> u8 {
        let struck = match self.struck.map(|struck| struck.why) {
            None => 0,
            Some(Foul::Held) => STRUCK_HELD,
            Some(Foul::Sent) => STRUCK_SENT,
        };
        let flag = |is, bit| if is { bit } else { 0 };
        struck | flag(self.rested, RESTED) | flag(self.audit.is_some(), AUDITED)
    }
}

const _: () = assert!(28 + Token::MAX_OCTETS + 16 <= 1500, "a full token fits one frame");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_lists_the_stations_that_it_contains_and_no_others() {
        let mut set = StationSet::EMPTY;
        assert_eq!(set.iter().count(), 0);
        for station in [1, 63, 64, 65, 127, 128, 191, 192, MAX_STATIONS, MAX_STATIONS + 1] {
            set.insert(station);
        }
        set.remove(65);
        let contained: Vec<u16> = (0..=u16::MAX).filter(|station| set.contains(*station)).collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), contained);
        assert_eq!(contained, [1, 63, 64, 127, 128, 191, 192, 255]);
        let mut all = StationSet::EMPTY;
        (0..=MAX_STATIONS).for_each(|station| all.insert(station));
        assert!(all.iter().eq(0..=MAX_STATIONS));
    }

    #[test]
    fn a_token_copied_into_a_longer_one_is_the_same_token() {
        let slot = |station| Slot {
            station,
            tht_ns: 1_000_000 + u32::from(station),
            periodic: station > 2,
            partition: 0,
        };
        let token = |slots: u16| {
            let mut dead = StationSet::EMPTY;
            dead.insert(slots + 1);
            let mut list = SlotList::EMPTY;
            (1..=slots).for_each(|station| assert!(list.push(slot(station))));
            Token {
                mode_epoch: 7 + u32::from(slots),
                cycle: 8 + u32::from(slots),
                residual_ns: 9 + u32::from(slots),
                trt_ns: 10 + u32::from(slots),
                phase: if slots > 2 { Phase::NonRealTime } else { Phase::Home },
                rested: slots > 2,
                audit: (slots > 2).then_some(MacAddr([2, 3, 4, 5, 6, 7])),
                struck: (slots > 2).then_some(Struck { station: 1, why: Foul::Held }),
                position: 11 + slots,
                next_nrt: 12 + slots,
                idle_visits: 13 + slots,
                dead,
                slots: list,
                leases: (slots > 2).then_some(Leases { hold: 1, ..Leases::SAFE }),
            }
        };
        for (from, into) in [(2, 5), (5, 2), (0, 3)] {
            let mut copy = token(into);
            copy.copy_from(&token(from));
            assert_eq!(copy, token(from));
        }
    }
}
