//! The hops of a node, and the local ids that it has given.
//!
//! ```text
//! Asked ──Reserved──► Reserved ──enter──► Source or Gateway ──end, loss──► Ending ──Released──► gone
//!   └────refused, lost, port gone: gone at once ─────────────────────────────┘
//! ```
//!
//! A local id names an incoming channel by the port and the station that it comes from. Ids are given in
//! turn, so that a packet of a channel that has ended finds no other one for as long as can be.

use super::door::{HopError, HopEvent};
use crate::channels::follow::Follow;
use crate::channels::lateness::OneWay;
use crate::io::{ChannelId, PortId, UnitDescriptor};
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
}

/// Where an incoming packet goes.
#[derive(Clone, Debug)]
enum Way {
    Port(PortId),
    Program(Sink),
}

/// The end of a channel at its destination.
#[derive(Clone, Debug, Default)]
struct Sink {
    last_number: u64,
    follow: Follow,
    tally: Tally,
    /// The promise to each unit; zero where there is none.
    bound: Span,
    clocks: OneWay,
}

impl Sink {
    /// A unit is whole: late or in time, as far as the clocks of two hosts say.
    fn judge(&mut self, arrived: Option<Instant>, schedule_ns: u64) {
        let Some(arrived) = arrived.filter(|_| self.bound > Span::ZERO) else { return };
        let took = self.clocks.delay(arrived, schedule_ns, false).max(0);
        let took = Span::from_nanos(u64::try_from(took).unwrap_or(u64::MAX));
        if took > self.bound {
            self.tally.late = self.tally.late.saturating_add(1);
            self.tally.latest_by_ns = self.tally.latest_by_ns.max(took.minus(self.bound).as_nanos());
        }
    }
}

#[derive(Clone, Debug)]
struct Arrival {
    hop: ChannelId,
    octets: u32,
    newest: Option<u16>,
    way: Way,
}

/// The meaning of an incoming packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// It goes on over this port.
    Forward(PortId, ChannelId),
    /// It is for a program.
    Deliver(ChannelId, u32),
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
    /// Ends of channels that have lost their path and may get another one.
    parked: BTreeMap<ChannelId, Sink>,
    /// An end that is cut off is parked.
    keeps_cut: bool,
    next_local: u16,
    events: VecDeque<HopEvent>,
}

impl Table {
    /// Ends whose path was cut off, and that wait for another one.
    pub(crate) fn parked(&self) -> usize {
        self.parked.len()
    }

    pub(crate) fn new() -> Self {
        Self {
            hops: Vec::new(),
            arrivals: BTreeMap::new(),
            parked: BTreeMap::new(),
            keeps_cut: false,
            next_local: 1,
            events: VecDeque::new(),
        }
    }

    // ---- to look at -----------------------------------------------------------------------------------

    pub(crate) fn hop(&self, id: ChannelId) -> Option<&Hop> {
        self.hops.iter().find(|hop| hop.id == id)
    }

    /// True if it has no hop and no incoming channel.
    pub(crate) fn is_empty(&self) -> bool {
        self.hops.is_empty() && self.arrivals.is_empty()
    }

    /// The incoming channels, by what they are known.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.arrivals.keys()
    }

    /// The counts of the units of a channel that ends here.
    pub(crate) fn tally(&self, id: ChannelId) -> Option<Tally> {
        let parked = self.parked.get(&id).map(|sink| sink.tally);
        let entered = self.arrivals.values().find_map(|arrival| match &arrival.way {
            Way::Program(sink) if arrival.hop == id => Some(sink.tally),
            _ => None,
        });
        entered.or(parked)
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
        self.arrivals.insert(key, arrival);
        self.set(hop.id, State::Gateway(key));
    }

    /// They are for a program of this host. One whose path was lost goes on with its numbers and counts.
    pub(crate) fn enter_destination(&mut self, id: ChannelId, key: Key, octets: u32, bound: Span) {
        self.events.reserve(EVENTS);
        let way = Way::Program(Sink { bound, ..self.parked.remove(&id).unwrap_or_default() });
        self.arrivals.insert(key, Arrival { hop: id, octets, newest: None, way });
    }

    /// From now on the ends of channels that are cut off stay until [`Self::end`].
    pub(crate) fn keep_cut(&mut self) {
        self.keeps_cut = true;
    }

    /// An incoming channel of this host gets no more packets by its local id, and may get another one.
    pub(crate) fn park(&mut self, id: ChannelId) {
        let arrival = self.destination(id).and_then(|key| self.arrivals.remove(&key));
        if let Some(Way::Program(sink)) = arrival.map(|arrival| arrival.way) {
            self.parked.insert(id, sink);
        }
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
        match arrival.way {
            Way::Port(port) => Meaning::Forward(port, arrival.hop),
            Way::Program(_) => Meaning::Deliver(arrival.hop, arrival.octets),
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
        let arrival = self.arrivals.get_mut(&key)?;
        let Way::Program(sink) = &mut arrival.way else { return None };
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
        let found = sink.follow.fragment(&descriptor, octets as u64);
        sink.tally.lost = sink.tally.lost.saturating_add(found.lost.1);
        sink.tally.incomplete += u64::from(found.in_part.is_some());
        if found.whole {
            sink.tally.units += 1;
            sink.judge(arrived, unit.schedule_ns);
        }
        Some(descriptor)
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
            Some(_) => self.tell(HopEvent::Ended { hop: id, cause }),
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

    /// The parent ends a hop or an incoming channel. Its share is to be given back, if it has one.
    pub(crate) fn end(&mut self, id: ChannelId) -> Option<Release> {
        let parked = self.parked.remove(&id);
        let key = self.destination(id);
        if key.and_then(|key| self.arrivals.remove(&key)).is_some() || parked.is_some() {
            self.tell(HopEvent::Released { hop: id });
            return None;
        }
        self.begin_ending(id, false)
    }

    fn destination(&self, id: ChannelId) -> Option<Key> {
        let is_it = |arrival: &Arrival| arrival.hop == id && matches!(arrival.way, Way::Program(_));
        self.arrivals.iter().find(|(_, arrival)| is_it(arrival)).map(|(key, _)| *key)
    }

    fn begin_ending(&mut self, id: ChannelId, told: bool) -> Option<Release> {
        let hop = *self.hop(id).filter(|hop| !matches!(hop.state, State::Ending { .. }))?;
        if let State::Gateway(key) = hop.state {
            self.arrivals.remove(&key);
        }
        self.set(id, State::Ending { told });
        Some(Release { port: hop.port, hop: id })
    }

    /// Forgets a hop, and the local id that led to it.
    fn remove(&mut self, id: ChannelId) -> Option<State> {
        let at = self.hops.iter().position(|hop| hop.id == id)?;
        let hop = self.hops.swap_remove(at);
        if let State::Gateway(key) = hop.state {
            self.arrivals.remove(&key);
        }
        Some(hop.state)
    }

    /// One hop or incoming channel that has lost the station next to it, or its port; it ends with this
    /// cause. Its share is to be given back, if it has one. Asked until there is no more.
    pub(crate) fn end_next(
        &mut self,
        cause: CloseCause,
        is_cut: impl Fn(PortId, MacAddr) -> bool,
    ) -> Option<Option<Release>> {
        let cut = self.arrivals.iter().find(|((port, from, _), _)| is_cut(*port, *from));
        if let Some((key, arrival)) = cut.map(|(key, arrival)| (*key, arrival)) {
            let id = arrival.hop;
            if matches!(arrival.way, Way::Program(_)) {
                match self.keeps_cut {
                    true => self.park(id),
                    false => _ = self.arrivals.remove(&key),
                }
                self.tell(HopEvent::Ended { hop: id, cause });
                return Some(None);
            }
            self.tell(HopEvent::Ended { hop: id, cause });
            return Some(self.begin_ending(id, true));
        }
        let is_live = |hop: &Hop| !matches!(hop.state, State::Ending { .. });
        let id = self.hops.iter().find(|hop| is_live(hop) && is_cut(hop.port, hop.to))?.id;
        self.tell(HopEvent::Ended { hop: id, cause });
        Some(self.begin_ending(id, true))
    }

    /// Hops that end have no share to wait for any more: their port is gone. Those whose parent waits for
    /// that are told.
    pub(crate) fn forget_ending(&mut self, port: PortId) {
        let is_ending = |hop: &Hop| hop.port == port && matches!(hop.state, State::Ending { .. });
        while let Some(id) = self.hops.iter().find(|hop| is_ending(hop)).map(|hop| hop.id) {
            self.on_released(id);
        }
    }
}
