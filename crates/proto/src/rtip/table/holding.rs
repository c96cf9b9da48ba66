//! The ends of channels that get another contract, or have a path in reserve: what is held goes on once the
//! packets before it have come, or can come no more.
//!
//! Several contracts may wait at one end: the path in reserve, the contract of a change, and the path in
//! reserve of that one. The first of them whose turn comes is the channel's from then on. Those that were
//! entered before it are over; those behind it go on waiting.

use super::{EVENTS, Key, Meaning, Sink, Table};
use crate::io::{ChannelId, Delivery};
use crate::rtip::door::HopEvent;
use crate::rtip::hold::Hold;
use rota_units::{Instant, Span};

impl Sink {
    /// The contract whose packets wait for those before them, if these have come.
    fn has_waited(&self) -> Option<Key> {
        let has = |hold: &&Hold| {
            let first = hold.first().map(|(first, _)| first).filter(|first| first.fragment == 0);
            // One that joins others and has had none of their units knows of none before.
            first.zip(if self.joins { self.joined_at } else { Some(0) }).is_some_and(|(first, number)| {
                self.follow.has_all_before(first.number.wrapping_sub(number), first.left_out)
            })
        };
        self.holds.iter().filter(|hold| !hold.is_over).find(has).map(|hold| hold.key)
    }
}

impl Table {
    /// Packets of another contract of an incoming channel come in by this id from now on. They wait for those
    /// that still come by the contracts before; there is room for so many.
    pub(crate) fn enter_change(&mut self, id: ChannelId, key: Key, octets: u32, bound: Span, packets: usize) {
        self.events.reserve(EVENTS);
        self.drop_hold(id, key);
        let sink = self.sinks.entry(id).or_default();
        let former = sink.holds.iter().map(|hold| hold.bound).fold(sink.bound, Span::max);
        sink.holds.push(Hold::new(key, (former, bound), packets, octets));
        self.holding += 1;
        self.arrive_here(id, key, octets);
    }

    fn drop_hold(&mut self, id: ChannelId, key: Key) {
        let Some(sink) = self.sinks.get_mut(&id) else { return };
        let all = sink.holds.len();
        sink.holds.retain(|hold| hold.key != key);
        self.holding -= all - sink.holds.len();
    }

    pub(super) fn drop_holds(&mut self, id: ChannelId) {
        let holds = self.sinks.get_mut(&id).map(|sink| std::mem::take(&mut sink.holds));
        self.holding -= holds.map_or(0, |holds| holds.len());
    }

    /// An incoming channel of this host gets no more packets by this local id.
    pub(crate) fn leave(&mut self, id: ChannelId, key: Key) {
        if self.arrivals.get(&key).is_some_and(|arrival| arrival.hop == id) {
            self.part(key, id);
        }
        self.drop_hold(id, key);
        if self.has_current(id) {
            return;
        }
        // Nothing before the others comes any more. Of several the first one to come is the next.
        let Some(sink) = self.sinks.get(&id) else { return };
        let waiting = || sink.holds.iter().filter(|hold| !hold.is_over);
        let only = waiting().next().filter(|_| waiting().count() == 1);
        let next = waiting().find(|hold| !hold.is_empty()).or(only).map(|hold| hold.key);
        next.into_iter().for_each(|key| self.end_hold(id, key));
    }

    /// True if packets come to an end by the contract that it goes by.
    fn has_current(&self, id: ChannelId) -> bool {
        let Some(sink) = self.sinks.get(&id) else { return false };
        let waits = |key: &Key| sink.holds.iter().any(|hold| hold.key == *key && !hold.is_over);
        self.destinations(id).any(|key| !waits(&key))
    }

    /// The packets of a contract that an end holds go to its program: the channel goes by that one.
    fn end_hold(&mut self, id: ChannelId, key: Key) {
        let Some(sink) = self.sinks.get_mut(&id) else { return };
        let Some(place) = sink.holds.iter().position(|hold| hold.key == key) else { return };
        self.holding -= sink.holds.drain(..place).count();
        let hold = &mut sink.holds[0];
        hold.is_over = true;
        self.events.push_back(HopEvent::Begun { hop: id, label: key.2 });
        if hold.is_empty() {
            sink.bound = hold.bound;
            sink.holds.remove(0);
            self.holding -= 1;
        }
        // None of the packets before overtakes them any more. Those for other receivers go on.
        let waits: Vec<Key> = sink.holds.iter().map(|hold| hold.key).chain([key]).collect();
        let over: Vec<Key> = self.destinations(id).filter(|of| !waits.contains(of)).collect();
        over.into_iter().for_each(|of| self.part(of, id));
    }

    /// A contract whose packets wait for nothing more begins: true if there is one.
    pub(super) fn end_waits(&mut self, id: ChannelId) -> bool {
        if self.holding == 0 {
            return false;
        }
        let next = self.sinks.get(&id).and_then(Sink::has_waited);
        next.into_iter().for_each(|key| self.end_hold(id, key));
        next.is_some()
    }

    // ---- packets --------------------------------------------------------------------------------------

    /// The meaning of a packet for a program.
    pub(super) fn meaning_here(&self, id: ChannelId, key: Key, octets: u32) -> Meaning {
        let is_held = |sink: &Sink| sink.holds.iter().any(|hold| hold.key == key);
        match self.holding > 0 && self.sinks.get(&id).is_some_and(is_held) {
            true => Meaning::Keep(id),
            false => Meaning::Deliver(id, octets),
        }
    }

    /// A packet of a contract that follows has come to its end. False where there is no room for it.
    pub(crate) fn keep(&mut self, now: Instant, (id, key): (ChannelId, Key), packet: &[u8]) -> bool {
        let Some(sink) = self.sinks.get_mut(&id) else { return false };
        let is_kept = sink.holds.iter_mut().find(|hold| hold.key == key).map(|hold| hold.keep(now, packet));
        if !self.end_waits(id) && !self.has_current(id) {
            self.end_hold(id, key);
        }
        is_kept == Some(true)
    }

    /// True if an end has packets that are to go to its program.
    pub(crate) fn has_kept(&self) -> bool {
        self.holding > 0 && self.sinks.values().flat_map(|sink| &sink.holds).any(|hold| hold.is_over)
    }

    /// The next one of them, its octets in `bytes`. False if its channel is gone.
    pub(crate) fn next_kept(&mut self, now: Instant, bytes: &mut [u8]) -> bool {
        self.kept = self.go_on(now, bytes);
        self.kept.is_some()
    }

    /// The packet of the newest call.
    pub(crate) const fn take_kept(&mut self) -> Option<Delivery> {
        self.kept.take()
    }

    fn go_on(&mut self, now: Instant, bytes: &mut [u8]) -> Option<Delivery> {
        // Of the contracts of one end the first one alone can be over.
        let is_over = |sink: &Sink| sink.holds.first().is_some_and(|hold| hold.is_over);
        let (id, sink) = self.sinks.iter_mut().find(|(_, sink)| is_over(sink))?;
        let (id, hold) = (*id, sink.holds.first_mut()?);
        let (key, first) = (hold.key, hold.first());
        let found = first.and_then(|(unit, fragment)| {
            let len = fragment.len();
            bytes.get_mut(..len)?.copy_from_slice(fragment);
            Some((unit, len))
        });
        if let Some((unit, _)) = found
            && !hold.is_begun
        {
            hold.is_begun = true;
            (sink.bound, sink.eased) = (hold.bound, Some(hold.eased(unit.schedule_ns)));
        }
        hold.drop_first();
        if hold.is_empty() {
            self.drop_hold(id, key);
        }
        let (mut unit, len) = found?;
        if !self.joins_with(id, &mut unit) {
            return None;
        }
        let descriptor = self.describe(key, &unit, len, Some(now))?;
        Some(Delivery { channel: id, descriptor, offset: 0, octets: len as u16 })
    }

    /// When packets that are held go on although some before them have not come.
    pub(crate) fn deadline(&self) -> Instant {
        if self.holding == 0 {
            return Instant::FAR;
        }
        let waits = self.sinks.values().flat_map(|sink| &sink.holds).filter(|hold| !hold.is_over);
        waits.map(|hold| hold.until).min().unwrap_or(Instant::FAR)
    }

    /// Those whose time has come go on.
    pub(crate) fn handle_deadline(&mut self, now: Instant) {
        let due = |sink: &Sink| {
            // Packets of one that has just begun go to their program before another one begins.
            let mut holds = sink.holds.iter().take_while(|hold| !hold.is_over);
            holds.find(|hold| hold.until <= now).map(|hold| hold.key)
        };
        while let Some((id, key)) = self.sinks.iter().find_map(|(id, sink)| Some((*id, due(sink)?))) {
            self.end_hold(id, key);
        }
    }
}
