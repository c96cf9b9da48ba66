//! The hops of a node, and the local ids that it has given.
//!
//! ```text
//! Asked ──Reserved──► Reserved ──enter──► Source or Gateway ──end, loss──► Ending ──Released──► gone
//!   └────refused, lost, port gone: gone at once ─────────────────────────────┘
//! ```
//!
//! A local id names an incoming channel by the port and the station that it comes from. Ids are given in
//! turn, so that a packet of a channel that has ended finds no other one for as long as can be.

mod ending;
mod holding;

use super::door::{HopError, HopEvent};
use super::fan::Fans;
use super::hold::Hold;
use crate::channels::follow::Follow;
use crate::channels::lateness::OneWay;
use crate::io::{ChannelId, Delivery, PortId, ReaderCounts, UnitDescriptor};
use rota_admission::Admitted;
use rota_contract::{CloseCause, Tally};
use rota_units::{Instant, Span};
use rota_wire::{MacAddr, UnitHeader};
use std::collections::{BTreeMap, VecDeque};

/// Hops of a node, and incoming channels.
const HOPS_MAX: usize = 512;
const EVENTS: usize = 1_024;

/// By what an incoming channel is known: the port, the station that sends, and the local id.
pub(crate) type Key = (PortId, MacAddr, u16);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The medium has not answered.
    Asked,
    /// It waits for its entry.
    Reserved,
    /// A program of this host sends on it.
    Source,
    /// Packets of this incoming channel go on.
    Gateway(Key),
    /// Its share is given back. Its parent waits for that, or knows of its end already.
    Ending { told: bool },
}

/// The way of a channel out of this node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub(crate) id: ChannelId,
    pub(crate) port: PortId,
    pub(crate) to: MacAddr,
    /// Payload of the largest packet.
    pub(crate) octets: u32,
    pub(crate) state: State,
    /// The number by which people know its channel.
    pub(crate) called: ChannelId,
    /// The local id of the next node, once it is entered.
    pub(crate) local_out: u16,
}

/// Where an incoming packet goes.
#[derive(Clone, Copy, Debug)]
enum Way {
    Port(PortId),
    Program,
}

/// The end of a channel at its destination.
#[derive(Clone, Debug, Default)]
struct Sink {
    last_number: u64,
    follow: Follow,
    tally: Tally,
    /// The promise to each unit; zero where there is none.
    bound: Span,
    /// The promise to units up to this schedule, if they wait for those of a contract before.
    eased: Option<(Span, u64)>,
    clocks: OneWay,
    /// It may join others whose units have come for long: the first unit of which the first fragment comes is
    /// its number 0, and had this number.
    joins: bool,
    joined_at: Option<u16>,
    /// Packets of contracts that may follow, the oldest one first: one that the channel goes by soon, and
    /// paths in reserve.
    holds: Vec<Hold>,
    /// The counts of a program that takes its frames itself.
    apart: Option<ReaderCounts>,
}

impl Sink {
    /// A unit is whole: late or in time, as far as the clocks of two hosts say.
    fn judge(&mut self, arrived: Option<Instant>, schedule_ns: u64) {
        let Some(arrived) = arrived.filter(|_| self.bound > Span::ZERO) else { return };
        let took = self.clocks.delay(arrived, schedule_ns, false).max(0);
        let took = Span::from_nanos(u64::try_from(took).unwrap_or(u64::MAX));
        let eased = self.eased.filter(|(_, until)| schedule_ns <= *until).map(|(bound, _)| bound);
        let bound = eased.unwrap_or(Span::ZERO).max(self.bound);
        if took > bound {
            self.tally.late = self.tally.late.saturating_add(1);
            self.tally.latest_by_ns = self.tally.latest_by_ns.max(took.minus(bound).as_nanos());
        }
    }

    /// A unit that has come by here states how many were left out, modulo 2^16. The program's own count does
    /// not have those before this one.
    fn hear_left_out(&mut self, stated: u16) {
        let Some(counts) = &mut self.apart else { return };
        // An older unit states fewer.
        let more = stated.wrapping_sub(counts.left_out as u16).cast_signed();
        counts.left_out = counts.left_out.saturating_add(more.max(0).unsigned_abs().into());
    }
}

#[derive(Clone, Debug)]
struct Arrival {
    hop: ChannelId,
    octets: u32,
    newest: Option<u16>,
    way: Way,
}

impl Arrival {
    /// True if its packets go on over this hop.
    fn goes_over(&self, hop: ChannelId) -> bool {
        self.hop == hop && matches!(self.way, Way::Port(_))
    }
}

/// The meaning of an incoming packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// It goes on over this port.
    Forward(PortId, ChannelId),
    /// It is for a program.
    Deliver(ChannelId, u32),
    /// It is for a program that waits for packets before it.
    Keep(ChannelId),
    /// No channel has this id.
    Unknown,
    /// It came before, or is overtaken.
    Repeated,
    /// It is longer than its channel allows.
    TooLong,
}

/// A share that is to be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    pub(crate) port: PortId,
    pub(crate) hop: ChannelId,
}

/// The hops of a node.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    hops: Vec<Hop>,
    arrivals: BTreeMap<Key, Arrival>,
    /// The ends of channels here. One without an arrival has lost its path, and may get another one.
    sinks: BTreeMap<ChannelId, Sink>,
    /// The hops of programs whose channels have changed: the others have the number of the channel.
    programs: BTreeMap<ChannelId, ChannelId>,
    /// Where packets to several receivers part.
    pub(crate) fans: Fans,
    /// Contracts whose packets are held, or may be.
    holding: usize,
    /// The newest packet that was held and goes to its program.
    kept: Option<Delivery>,
    /// An end that is cut off is parked.
    keeps_cut: bool,
    next_local: u16,
    events: VecDeque<HopEvent>,
}

impl Table {
    /// Ends whose path was cut off, and that wait for another one.
    pub(crate) fn parked(&self) -> usize {
        self.sinks.keys().filter(|id| self.destinations(**id).next().is_none()).count()
    }

    pub(crate) fn new() -> Self {
        Self {
            hops: Vec::new(),
            arrivals: BTreeMap::new(),
            sinks: BTreeMap::new(),
            programs: BTreeMap::new(),
            fans: Fans::default(),
            holding: 0,
            kept: None,
            keeps_cut: false,
            next_local: 1,
            events: VecDeque::new(),
        }
    }

    // ---- to look at -----------------------------------------------------------------------------------

    pub(crate) fn hop(&self, id: ChannelId) -> Option<&Hop> {
        self.hops.iter().find(|hop| hop.id == id)
    }

    /// People know the channel of a hop by this number.
    pub(crate) fn call(&mut self, id: ChannelId, called: ChannelId) {
        if let Some(hop) = self.hops.iter_mut().find(|hop| hop.id == id) {
            hop.called = called;
        }
    }

    /// The next node has this local id for the packets of a hop.
    pub(crate) fn lead_to(&mut self, id: ChannelId, local_out: u16) {
        if let Some(hop) = self.hops.iter_mut().find(|hop| hop.id == id) {
            hop.local_out = local_out;
        }
    }

    /// The number by which people know the channel of packets that leave by this local id of the next node.
    pub(crate) fn called_out(&self, (port, to, local): Key) -> Option<ChannelId> {
        let is_it = |hop: &&Hop| (hop.port, hop.to, hop.local_out) == (port, to, local);
        self.hops.iter().find(is_it).map(|hop| hop.called).filter(|called| called.is_some())
    }

    /// The same of packets that come in, or the end here that they are for.
    pub(crate) fn called_in(&self, key: Key) -> Option<Result<ChannelId, ChannelId>> {
        let arrival = self.arrivals.get(&key)?;
        match arrival.way {
            Way::Program => Some(Err(arrival.hop)),
            Way::Port(_) => self.hop(arrival.hop).map(|hop| hop.called).filter(|id| id.is_some()).map(Ok),
        }
    }

    /// True if it has no hop and no incoming channel.
    pub(crate) fn is_empty(&self) -> bool {
        self.hops.is_empty() && self.arrivals.is_empty()
    }

    /// How many hops stand here.
    pub(crate) fn count(&self) -> usize {
        self.hops.len()
    }

    /// True if a channel ends at a program of this host.
    pub(crate) fn receives(&self) -> bool {
        !self.sinks.is_empty()
    }

    /// The incoming channels, by what they are known.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.arrivals.keys()
    }

    /// The counts of the units of a channel that ends here.
    pub(crate) fn tally(&self, id: ChannelId) -> Option<Tally> {
        self.sinks.get(&id).map(|sink| sink.tally)
    }

    /// The hop on which a program sends; the first one of several.
    pub(crate) fn hop_of(&self, program: ChannelId) -> ChannelId {
        if let Some(first) = self.fans.hop(program, 0) {
            return first;
        }
        if self.programs.is_empty() { program } else { *self.programs.get(&program).unwrap_or(&program) }
    }

    /// A program sends on this hop from now on.
    pub(crate) fn send_on(&mut self, program: ChannelId, hop: ChannelId) {
        match program == hop {
            true => _ = self.programs.remove(&program),
            false => _ = self.programs.insert(program, hop),
        }
    }

    pub(crate) fn has_event(&self) -> bool {
        !self.events.is_empty()
    }

    pub(crate) fn next_event(&mut self) -> Option<HopEvent> {
        self.events.pop_front()
    }

    fn tell(&mut self, event: HopEvent) {
        self.events.push_back(event);
    }

    // ---- entries --------------------------------------------------------------------------------------

    /// Fails where there is no room for one more hop or incoming channel.
    pub(crate) fn has_room(&self) -> Result<(), HopError> {
        let full = self.hops.len() >= HOPS_MAX || self.arrivals.len() >= HOPS_MAX;
        if full { Err(HopError::TooMany(HOPS_MAX)) } else { Ok(()) }
    }

    /// A share is asked for.
    pub(crate) fn ask(&mut self, hop: Hop) {
        self.events.reserve(EVENTS);
        self.hops.push(hop);
    }

    /// The hop, if its share is granted and nothing is entered yet.
    pub(crate) fn reserved(&self, id: ChannelId) -> Result<Hop, HopError> {
        let hop = self.hop(id).filter(|hop| hop.state == State::Reserved);
        hop.copied().ok_or(HopError::NoHop(id))
    }

    /// A program of this host sends on the hop from now on.
    pub(crate) fn enter_source(&mut self, id: ChannelId) {
        self.set(id, State::Source);
    }

    /// Packets that come in by the new local id go on over the hop from now on.
    pub(crate) fn enter_gateway(&mut self, hop: &Hop, key: Key) {
        let arrival = Arrival { hop: hop.id, octets: hop.octets, newest: None, way: Way::Port(hop.port) };
        match self.arrivals.contains_key(&key) {
            true => self.fans.add(key, (hop.port, hop.id)),
            false => _ = self.arrivals.insert(key, arrival),
        }
        self.set(hop.id, State::Gateway(key));
    }

    /// Packets of a contract that takes the place of another one come in by this id, and go on over the same
    /// hop.
    pub(crate) fn join_gateway(&mut self, id: ChannelId, key: Key, octets: u32) {
        let Some(port) = self.hop(id).map(|hop| hop.port) else { return };
        self.arrivals.insert(key, Arrival { hop: id, octets, newest: None, way: Way::Port(port) });
    }

    /// Of two contracts of a hop the packets of this id come no more.
    pub(crate) fn part_gateway(&mut self, id: ChannelId, key: Key) {
        if self.arrivals.get(&key).is_some_and(|arrival| arrival.hop == id) {
            self.part(key, id);
        }
        let left = self.arrivals.iter().find(|(_, arrival)| arrival.goes_over(id));
        if let Some((key, octets)) = left.map(|(key, arrival)| (*key, arrival.octets)) {
            self.set(id, State::Gateway(key));
            self.hops.iter_mut().filter(|hop| hop.id == id).for_each(|hop| hop.octets = octets);
        }
    }

    /// They are for a program of this host. One whose path was lost goes on with its numbers and counts.
    pub(crate) fn enter_destination(&mut self, id: ChannelId, key: Key, octets: u32, bound: Span) {
        self.events.reserve(EVENTS);
        let sink = self.sinks.entry(id).or_default();
        (sink.bound, sink.eased) = (bound, None);
        self.drop_holds(id);
        self.arrive_here(id, key, octets);
    }

    /// A program of this host gets the packets of an id, beside the hops over which they go on.
    fn arrive_here(&mut self, id: ChannelId, key: Key, octets: u32) {
        let mut arrival = Arrival { hop: id, octets, newest: None, way: Way::Program };
        if let Some(former) = self.arrivals.get(&key)
            && let Way::Port(port) = former.way
        {
            arrival.newest = former.newest;
            self.fans.add(key, (port, former.hop));
        }
        self.arrivals.insert(key, arrival);
    }

    /// A program that joins others counts from the first unit that it gets.
    pub(crate) fn begin_anywhere(&mut self, id: ChannelId) {
        if let Some(sink) = self.sinks.get_mut(&id) {
            sink.joins = true;
        }
    }

    /// A unit for a program that joins others: false if it came in part before. Its number counts from the
    /// first unit.
    pub(crate) fn joins_with(&mut self, id: ChannelId, unit: &mut UnitHeader) -> bool {
        let Some(sink) = self.sinks.get_mut(&id).filter(|sink| sink.joins) else { return true };
        if sink.joined_at.is_none() && unit.fragment > 0 {
            return false;
        }
        let first = *sink.joined_at.get_or_insert(unit.number);
        unit.number = unit.number.wrapping_sub(first);
        true
    }

    /// The packets of a hop that is entered come by another id than before.
    pub(crate) fn come_by(&mut self, hop: ChannelId, former: Key, key: Key) {
        let Some(hop) = self.hop(hop).copied().filter(|_| former != key) else { return };
        self.part(former, hop.id);
        self.enter_gateway(&hop, key);
    }

    /// Packets of an id go no more to a program, or over a hop, of this number.
    fn part(&mut self, key: Key, id: ChannelId) {
        let Some(arrival) = self.arrivals.get_mut(&key) else { return };
        if arrival.hop != id {
            return self.fans.drop_hop(key, id);
        }
        match self.fans.take(key) {
            Some((port, hop)) => (arrival.hop, arrival.way) = (hop, Way::Port(port)),
            None => _ = self.arrivals.remove(&key),
        }
    }

    /// From now on the ends of channels that are cut off stay until [`Self::end`].
    pub(crate) fn keep_cut(&mut self) {
        self.keeps_cut = true;
    }

    /// An incoming channel of this host gets no more packets by its local id, and may get another one.
    pub(crate) fn park(&mut self, id: ChannelId) {
        let keys: Vec<Key> = self.destinations(id).collect();
        keys.into_iter().for_each(|key| self.part(key, id));
        self.drop_holds(id);
    }

    /// The parent waits for the end of a hop of which it knows already.
    pub(crate) fn await_release(&mut self, id: ChannelId) {
        if self.hop(id).is_some_and(|hop| hop.state == State::Ending { told: true }) {
            self.set(id, State::Ending { told: false });
        }
    }

    /// A local id that no channel from that station has.
    pub(crate) fn free_local_id(&mut self, (port, from): (PortId, MacAddr)) -> u16 {
        // There are fewer entries than ids.
        while self.arrivals.contains_key(&(port, from, self.next_local)) {
            self.next_local = self.next_local.checked_add(1).unwrap_or(1);
        }
        let local = self.next_local;
        self.next_local = local.checked_add(1).unwrap_or(1);
        local
    }

    fn set(&mut self, id: ChannelId, state: State) {
        if let Some(hop) = self.hops.iter_mut().find(|hop| hop.id == id) {
            hop.state = state;
        }
    }

    // ---- packets --------------------------------------------------------------------------------------

    /// The meaning of a packet that has come.
    pub(crate) fn look_up(&mut self, key: Key, sequence: u16, octets: usize) -> Meaning {
        let Some(arrival) = self.arrivals.get_mut(&key) else { return Meaning::Unknown };
        let is_behind = |newest: u16| sequence.wrapping_sub(newest).cast_signed() > 0;
        if !arrival.newest.is_none_or(is_behind) {
            return Meaning::Repeated;
        }
        if octets > arrival.octets as usize {
            return Meaning::TooLong;
        }
        arrival.newest = Some(sequence);
        let Arrival { hop, octets, way, .. } = *arrival;
        match way {
            Way::Port(port) => Meaning::Forward(port, hop),
            Way::Program => self.meaning_here(hop, key, octets),
        }
    }

    /// A fragment for a program: what it is. None if there is no such unit.
    pub(crate) fn describe(
        &mut self,
        key: Key,
        unit: &UnitHeader,
        octets: usize,
        arrived: Option<Instant>,
    ) -> Option<UnitDescriptor> {
        let arrival = self.arrivals.get(&key).filter(|arrival| matches!(arrival.way, Way::Program))?;
        let sink = self.sinks.get_mut(&arrival.hop)?;
        // Sixteen bits on the wire; the rest follows from the last unit, either side of it.
        let step = unit.number.wrapping_sub(sink.last_number as u16).cast_signed();
        let number = sink.last_number.checked_add_signed(i64::from(step))?;
        sink.last_number = number;
        let descriptor = UnitDescriptor {
            number,
            unit_octets: unit.unit_octets,
            fragment: unit.fragment,
            fragment_offset: u32::from(unit.fragment).checked_mul(arrival.octets)?,
            last: unit.last,
            schedule_ns: unit.schedule_ns,
            arrived,
            left_out: unit.left_out,
        };
        let id = arrival.hop;
        if sink.apart.is_some() {
            // Its program counts this one, too, behind those that it has still to take from its queue.
            sink.hear_left_out(unit.left_out);
            return Some(descriptor);
        }
        let found = sink.follow.fragment(&descriptor, octets as u64);
        sink.tally.lost = sink.tally.lost.saturating_add(found.lost.1);
        sink.tally.incomplete += u64::from(found.in_part.is_some());
        if found.whole {
            sink.tally.units += 1;
            sink.judge(arrived, unit.schedule_ns);
        }
        self.end_waits(id);
        Some(descriptor)
    }

    /// The program of a channel that ends here takes its frames itself.
    pub(crate) fn take_apart(&mut self, id: ChannelId) {
        if let Some(sink) = self.sinks.get_mut(&id) {
            sink.apart.get_or_insert_default();
        }
    }

    /// Such a program counts so far: true if packets that have waited go on. None if no channel of this
    /// number ends here.
    pub(crate) fn take_counts(&mut self, id: ChannelId, counts: &ReaderCounts) -> Option<bool> {
        let sink = self.sinks.get_mut(&id)?;
        let known = sink.apart.get_or_insert_default();
        let counts = counts.sound().not_below(known);
        if *known == counts {
            return Some(false);
        }
        *known = counts;
        let ReaderCounts { units, lost, incomplete, late, latest_by_ns, .. } = counts;
        sink.tally = Tally { units, lost, incomplete, late, latest_by_ns, ..sink.tally };
        sink.last_number = sink.last_number.max(counts.next.saturating_sub(1));
        sink.follow.reach(counts.next, counts.missing, counts.left_out);
        Some(self.end_waits(id))
    }

    // ---- ends -----------------------------------------------------------------------------------------

    /// The medium has granted the share of a hop.
    pub(crate) fn on_reserved(&mut self, id: ChannelId, admitted: Admitted) {
        if self.hop(id).is_some_and(|hop| hop.state == State::Asked) {
            self.set(id, State::Reserved);
            self.tell(HopEvent::Reserved { hop: id, admitted });
        }
    }

    /// The medium has refused it.
    pub(crate) fn on_refused(&mut self, id: ChannelId, refusal: rota_admission::Refusal) {
        match self.remove(id) {
            Some(State::Ending { told: true }) | None => {}
            Some(State::Ending { told: false }) => self.tell(HopEvent::Released { hop: id }),
            Some(_) => self.tell(HopEvent::Refused { hop: id, refusal }),
        }
    }

    /// The share is gone without having been given back.
    pub(crate) fn on_lost(&mut self, id: ChannelId, cause: CloseCause) {
        match self.remove(id) {
            Some(State::Ending { told: true }) | None => {}
            Some(State::Ending { told: false }) => self.tell(HopEvent::Released { hop: id }),
            Some(_) => self.tell(HopEvent::Ended { hop: id, label: None, cause }),
        }
    }

    /// The share has been given back.
    pub(crate) fn on_released(&mut self, id: ChannelId) {
        if let Some(state) = self.remove(id)
            && state != (State::Ending { told: true })
        {
            self.tell(HopEvent::Released { hop: id });
        }
    }
}
