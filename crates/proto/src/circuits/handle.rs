//! TPDUs that come, time that passes, and the turn of each end.

use super::{Circuit, CircuitEvent, CircuitId, Circuits, Loss, Machine, Want};
use crate::vc::{Sink, SinkEvent, SourceEvent, stranger};
use rota_units::Instant;
use rota_wire::{MacAddr, Refusal, Tpdu, TpduBody};

/// The place of answers to strangers.
const STRANGERS: u16 = 0;

/// The identity of a peer for cookies: its address, which its proven frames state.
fn peer_of(mac: MacAddr) -> u64 {
    mac.0.iter().fold(0, |peer, octet| peer << 8 | u64::from(*octet))
}

fn mac_of(peer: u64) -> MacAddr {
    let [_, _, mac @ ..] = peer.to_be_bytes();
    MacAddr(mac)
}

impl Circuits {
    // ---- places ---------------------------------------------------------------------------------------

    /// The place of a listener; the ends are behind all of them.
    fn place_of_service(at: usize) -> u16 {
        (1 + at) as u16
    }

    fn place_of_end(&self, at: usize) -> u16 {
        (1 + self.services.len() + at) as u16
    }

    pub(super) fn service(&self, service: u32) -> Option<usize> {
        self.services.iter().position(|some| some.as_ref().is_some_and(|it| it.listening.service == service))
    }

    pub(super) fn place_of(&self, circuit: CircuitId) -> Option<usize> {
        self.ends.iter().position(|end| end.as_ref().is_some_and(|end| end.id == circuit && end.owned))
    }

    pub(super) fn end_mut(&mut self, circuit: CircuitId) -> Option<&mut Circuit> {
        let at = self.place_of(circuit)?;
        self.ends[at].as_deref_mut()
    }

    /// A free place, else that of the end which has lingered for the longest: it answers a close that comes
    /// again, and has told both programs already.
    pub(super) fn free_end(&self) -> Option<usize> {
        let lingers = |at: &usize| {
            let end = self.ends[*at].as_deref();
            end.is_some_and(|end| !end.owned && end.is_ended() && end.queued.is_none())
        };
        let lingering = || (0..self.ends.len()).filter(lingers).min_by_key(|at| self.due[*at]);
        self.ends.iter().position(Option::is_none).or_else(lingering)
    }

    pub(super) fn next_id(&mut self) -> CircuitId {
        self.numbers += 1;
        CircuitId::new(self.port, self.numbers)
    }

    pub(super) fn put(&mut self, now: Instant, at: usize, circuit: Circuit) {
        self.ends[at] = Some(Box::new(circuit));
        self.settle(now, at);
    }

    // ---- TPDUs that come ------------------------------------------------------------------------------

    /// A TPDU came in a proven frame of that station.
    pub(crate) fn on_tpdu(&mut self, now: Instant, from: MacAddr, tpdu: &Tpdu, data: &[u8]) {
        if self.ends.is_empty() {
            return;
        }
        match tpdu.body {
            TpduBody::Open(terms) => self.on_handshake(now, from, tpdu, terms.service, terms.from),
            TpduBody::Confirm(terms) => match self.named(from, tpdu.circuit, true) {
                Some(at) => self.on_end(now, at, tpdu, data),
                None => self.on_handshake(now, from, tpdu, terms.service, terms.from),
            },
            TpduBody::Accept(terms) => self.on_answer(now, from, tpdu, terms.source),
            TpduBody::Refuse { source, .. } => self.on_answer(now, from, tpdu, source),
            TpduBody::Data { .. } | TpduBody::Ask => self.on_named(now, from, tpdu, data, Some(true)),
            TpduBody::Ack { .. } | TpduBody::Decline { .. } => {
                self.on_named(now, from, tpdu, data, Some(false));
            }
            TpduBody::Close { .. } | TpduBody::Closed { .. } | TpduBody::Reset { .. } => {
                self.on_named(now, from, tpdu, data, None);
            }
        }
    }

    /// The end with that name, whose peer this is.
    fn named(&self, from: MacAddr, name: u64, is_sink: bool) -> Option<usize> {
        self.ends.iter().position(|end| {
            end.as_ref().is_some_and(|end| {
                let is_kind = matches!(end.machine, Machine::Sink(_)) == is_sink;
                name != 0 && end.name() == name && end.peer == from && is_kind
            })
        })
    }

    fn on_named(&mut self, now: Instant, from: MacAddr, tpdu: &Tpdu, data: &[u8], is_sink: Option<bool>) {
        let found = match is_sink {
            Some(is_sink) => self.named(from, tpdu.circuit, is_sink),
            None => self.named(from, tpdu.circuit, true).or_else(|| self.named(from, tpdu.circuit, false)),
        };
        if let Some(at) = found {
            return self.on_end(now, at, tpdu, data);
        }
        self.unknown += 1;
        if let Some(answer) = stranger(tpdu) {
            self.answer_stranger(from, answer);
        }
    }

    /// The second step of a handshake, or a refusal: for the attempt of that word.
    fn on_answer(&mut self, now: Instant, from: MacAddr, tpdu: &Tpdu, word: u64) {
        let is_it = |end: &Circuit| {
            matches!(&end.machine, Machine::Source(source) if source.terms().source == word)
                && end.peer == from
        };
        let found = self.ends.iter().position(|end| end.as_deref().is_some_and(is_it));
        match found {
            Some(at) => self.on_end(now, at, tpdu, &[]),
            None => self.unknown += 1,
        }
    }

    fn on_end(&mut self, now: Instant, at: usize, tpdu: &Tpdu, data: &[u8]) {
        let Some(end) = self.ends[at].as_deref_mut() else { return };
        match &mut end.machine {
            Machine::Source(source) => source.handle(now, tpdu),
            Machine::Sink(sink) => sink.handle(now, tpdu, data),
        }
        self.settle(now, at);
    }

    /// The first or third step of a handshake.
    fn on_handshake(&mut self, now: Instant, from: MacAddr, tpdu: &Tpdu, service: u32, number: u32) {
        let Some(at) = self.service(service) else {
            let (TpduBody::Open(terms) | TpduBody::Confirm(terms)) = tpdu.body else { return };
            let body = TpduBody::Refuse { source: terms.source, why: Refusal::NoService };
            return self.answer_stranger(from, Tpdu { to: number, circuit: tpdu.circuit, body });
        };
        let free = self.free_end().filter(|_| self.has_backlog(service));
        let Some(listener) = self.services[at].as_deref_mut() else { return };
        listener.machine.handle(now, peer_of(from), tpdu, free.is_some());
        if let (Some(offer), Some(place)) = (listener.machine.offer(), free) {
            let id = self.next_id();
            let sink = Sink::new(now, &offer, self.settings.pace);
            self.events.push_back(CircuitEvent::Offered { circuit: id, from, terms: offer.terms });
            let machine = Machine::Sink(sink);
            let (level, queued, owned, offered) = (0, None, true, true);
            let (told, progress, peer) = (false, 0, from);
            self.put(
                now,
                place,
                Circuit { id, machine, peer, level, queued, owned, offered, told, progress },
            );
        }
        self.settle_service(now, at);
    }

    fn has_backlog(&self, service: u32) -> bool {
        let Some(at) = self.service(service) else { return false };
        let backlog = self.services[at].as_ref().map_or(0, |service| service.listening.backlog);
        let waits = |end: &&Circuit| end.offered && end.terms().service == service;
        self.ends.iter().flatten().map(|end| &**end).filter(waits).count() < usize::from(backlog)
    }

    fn answer_stranger(&mut self, to: MacAddr, tpdu: Tpdu) {
        if self.strangers.len() < super::STRANGERS_MAX {
            self.strangers.push_back((to, tpdu));
            self.settle_strangers();
        }
    }

    // ---- time -----------------------------------------------------------------------------------------

    /// It may be time for something.
    pub(crate) fn tick(&mut self, now: Instant) {
        if self.deadline > now {
            return;
        }
        for at in 0..self.services.len() {
            if let Some(service) = &mut self.services[at] {
                service.machine.handle_deadline(now);
                self.settle_service(now, at);
            }
        }
        for at in 0..self.ends.len() {
            if self.due[at] <= now {
                if let Some(end) = &mut self.ends[at] {
                    end.handle_deadline(now);
                }
                self.settle(now, at);
            }
        }
        self.find_deadline();
    }

    /// When each listener wants to be called. A step that is due stays due until [`Self::tick`] has served
    /// it.
    fn services_due(&self) -> impl Iterator<Item = Instant> {
        self.services.iter().flatten().map(|service| service.due)
    }

    pub(super) fn find_deadline(&mut self) {
        let ends = self.due.iter().copied();
        self.deadline = self.services_due().chain(ends).min().unwrap_or(Instant::FAR);
    }

    // ---- turns ----------------------------------------------------------------------------------------

    /// After each change of an end: its event is told, what it has to say is queued, and what is over goes.
    pub(super) fn settle(&mut self, now: Instant, at: usize) {
        let place = self.place_of_end(at);
        let Some(end) = self.ends[at].as_deref_mut() else {
            self.due[at] = Instant::FAR;
            return self.find_deadline();
        };
        let circuit = end.id;
        // A receiver's program hears of each TPDU in sequence, for it may have read ahead of what it takes; a
        // sender's of what was taken, and of what has left where nothing is kept to be sent again.
        let progress = end.progress();
        if progress != end.progress && !end.told && end.owned {
            (end.told, end.progress) = (true, progress);
            self.events.push_back(CircuitEvent::News { circuit });
        }
        let event = match &mut end.machine {
            Machine::Source(source) => source.event().map(|event| match event {
                SourceEvent::Opened(terms) => CircuitEvent::Opened { circuit, terms },
                SourceEvent::Ended(end) => CircuitEvent::Ended { circuit, end },
            }),
            Machine::Sink(sink) => sink.event().and_then(|event| match event {
                // Told with each arrival.
                SinkEvent::Readable => None,
                SinkEvent::Ended(end) => Some(CircuitEvent::Ended { circuit, end }),
            }),
        };
        if end.owned {
            self.events.extend(event);
        }
        let wanted = end.wants(now);
        if let (Some(octets), None) = (wanted, end.queued) {
            end.queued = Some(octets);
            self.wants.push(Want::Queue { place, octets, level: end.level });
        }
        let is_over = !end.owned && end.is_over() && wanted.is_none();
        self.due[at] = end.deadline(now).map_or(Instant::FAR, |(at, _)| at);
        if is_over && end.queued.is_none() {
            self.ends[at] = None;
            self.due[at] = Instant::FAR;
        }
        self.find_deadline();
    }

    fn settle_service(&mut self, now: Instant, at: usize) {
        let place = Self::place_of_service(at);
        if let Some(service) = self.services[at].as_deref_mut() {
            if !service.queued && service.machine.wants(now) {
                service.queued = true;
                let octets = rota_wire::TPDU_CONTROL_OCTETS_MAX as u16;
                self.wants.push(Want::Queue { place, octets, level: 0 });
            }
            // Its steps that are due have their entry in the queue now, so that the others remain.
            service.due = service.machine.deadline(now).map_or(Instant::FAR, |(at, _)| at);
        }
        self.find_deadline();
    }

    fn settle_strangers(&mut self) {
        if !self.strangers_queued && !self.strangers.is_empty() {
            self.strangers_queued = true;
            let octets = rota_wire::TPDU_CONTROL_OCTETS_MAX as u16;
            self.wants.push(Want::Queue { place: STRANGERS, octets, level: 0 });
        }
    }

    /// The entry of a place leaves the queue: writes the TPDU that it is for now into `out`, and says to whom
    /// and how long it is. `None` where there is nothing to say any more, or more than was queued, which is
    /// queued anew.
    pub(crate) fn transmit(&mut self, now: Instant, place: u16, out: &mut [u8]) -> Option<(MacAddr, usize)> {
        let place = usize::from(place);
        if place == usize::from(STRANGERS) {
            self.strangers_queued = false;
            let said = self.strangers.pop_front().map(|(to, tpdu)| (to, tpdu.emit(0, out)));
            self.settle_strangers();
            return said;
        }
        if let Some(service) = self.services.get_mut(place - 1) {
            let service = service.as_deref_mut()?;
            service.queued = false;
            let said = service.machine.poll(now).map(|(peer, tpdu)| (mac_of(peer), tpdu.emit(0, out)));
            self.settle_service(now, place - 1);
            return said;
        }
        let at = place - 1 - self.services.len();
        let end = self.ends.get_mut(at)?.as_deref_mut()?;
        let queued = end.queued.take().unwrap_or(0);
        let fits = end.wants(now).is_some_and(|wants| wants <= queued);
        let (peer, said) = (end.peer, if fits { end.transmit(now, out) } else { None });
        self.settle(now, at);
        said.map(|octets| (peer, octets))
    }

    /// The node of that station has ended: so have its circuits.
    pub(crate) fn lose_peer(&mut self, now: Instant, peer: MacAddr, why: Loss) {
        for at in 0..self.ends.len() {
            let Some(end) = self.ends[at].as_deref_mut().filter(|end| end.peer == peer) else { continue };
            if !end.is_ended() {
                end.abort();
                end.forget_event();
                if end.owned {
                    self.events.push_back(CircuitEvent::Lost { circuit: end.id, why });
                }
            }
            self.settle(now, at);
        }
    }

    /// The port is gone: what is to be told of its circuits.
    pub(crate) fn end_with_port(self) -> impl Iterator<Item = CircuitEvent> {
        let lost = |end: Box<Circuit>| CircuitEvent::Lost { circuit: end.id, why: Loss::PortGone };
        self.ends.into_iter().flatten().filter(|end| end.owned && !end.is_ended()).map(lost)
    }

    pub(super) fn release_at(&mut self, now: Instant, at: usize) {
        let Some(end) = self.ends[at].as_deref_mut() else { return };
        (end.owned, end.offered) = (false, false);
        end.abort();
        let circuit = end.id;
        let is_of_it = |event: &CircuitEvent| match event {
            CircuitEvent::Opened { circuit: of, .. }
            | CircuitEvent::Offered { circuit: of, .. }
            | CircuitEvent::News { circuit: of }
            | CircuitEvent::Lost { circuit: of, .. }
            | CircuitEvent::Ended { circuit: of, .. } => *of == circuit,
        };
        self.events.retain(|event| !is_of_it(event));
        self.settle(now, at);
    }
}
