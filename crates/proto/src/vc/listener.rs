//! The end that answers handshakes (TRANSPORT-5.3.2-17, TRANSPORT-R38, TRANSPORT-R39, TRANSPORT-R70).
//!
//! Memory is bounded whatever comes. So many half-open handshakes are kept, and their second step is sent
//! again; beyond them nothing is kept, and the third step alone opens the circuit: it carries all terms and a
//! cookie over them. Each handshake has a serial number that opens one circuit at most (`serials.rs`), or an
//! old third step would open a second one to which old data could come.

use super::serials::Serials;
use super::trip::{Pace, Retry, Trip};
use super::{Timer, WINDOW_MAX};
use rota_units::Instant;
use rota_wire::{CookieKey, Refusal, Terms, Tpdu, TpduBody};

/// The most that a listener grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerLimits {
    /// TPDUs of a window, at most [`WINDOW_MAX`].
    pub window: u32,
    /// Octets of data in a TPDU.
    pub tpdu: u16,
    /// Handshakes that are kept half open.
    pub half_open: usize,
}

/// A handshake that is complete: give it to a `Sink`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The sender.
    pub peer: u64,
    /// The circuit's name.
    pub circuit: u64,
    /// The agreement.
    pub terms: Terms,
}

impl Offer {
    /// The number that the peer writes as [`Tpdu::to`].
    pub const fn number(&self) -> u32 {
        number(&self.terms)
    }
}

/// The listener's number of a circuit: it differs from those of the 2^32 handshakes of its station around it.
const fn number(terms: &Terms) -> u32 {
    terms.serial as u32
}

#[derive(Clone, Debug)]
struct Half {
    peer: u64,
    circuit: u64,
    terms: Terms,
    retry: Retry,
}

/// The listener of one service.
#[derive(Clone, Debug)]
pub struct Listener {
    service: u32,
    key: CookieKey,
    limits: ListenerLimits,
    pace: Pace,
    trip: Trip,
    serials: Serials,
    half: Box<[Option<Half>]>,
    answer: Option<(u64, Tpdu)>,
    offer: Option<Offer>,
    refused: u64,
}

impl Listener {
    /// A listener that remembers nothing. `key` is random and new in each life: no cookie of a former one
    /// counts.
    pub fn new(service: u32, key: CookieKey, limits: ListenerLimits, pace: Pace) -> Self {
        let window = limits.window.clamp(1, WINDOW_MAX);
        let limits = ListenerLimits { window, tpdu: limits.tpdu.max(1), ..limits };
        Self {
            service,
            key,
            limits,
            pace,
            trip: Trip::new(pace),
            serials: Serials::new(),
            half: vec![None; limits.half_open].into(),
            answer: None,
            offer: None,
            refused: 0,
        }
    }

    /// Handshakes that are half open and kept.
    pub fn half_open(&self) -> usize {
        self.half.iter().flatten().count()
    }

    /// Steps that were refused.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// A first or third step came from `peer`, an identity that its frame proves. `has_room`: there is memory
    /// for one circuit more. A third step with the name of a circuit that is open belongs to its `Sink`.
    pub fn handle(&mut self, now: Instant, peer: u64, tpdu: &Tpdu, has_room: bool) {
        match tpdu.body {
            TpduBody::Open(terms) => self.on_open(now, peer, &terms, has_room),
            TpduBody::Confirm(terms) => self.on_confirm(now, peer, tpdu.circuit, &terms, has_room),
            _ => self.refused += 1,
        }
    }

    fn on_open(&mut self, now: Instant, peer: u64, terms: &Terms, has_room: bool) {
        let is_it = |half: &&Half| half.peer == peer && half.terms.source == terms.source;
        if let Some(half) = self.half.iter().flatten().find(is_it) {
            self.answer = Some((peer, accept(half.circuit, &half.terms, terms.from)));
            return;
        }
        if let Err(why) = self.judge(terms, has_room) {
            return self.refuse(peer, terms, 0, why);
        }
        let agreed = Terms {
            serial: self.serials.give(peer),
            window: terms.window.min(self.limits.window),
            tpdu: terms.tpdu.min(self.limits.tpdu),
            ..*terms
        };
        let circuit = self.key.cookie(peer, self.period(now), &agreed);
        self.answer = Some((peer, accept(circuit, &agreed, terms.from)));
        if let Some(free) = self.half.iter_mut().find(|half| half.is_none()) {
            let mut retry = Retry::DUE;
            retry.leaves(now, &self.trip);
            *free = Some(Half { peer, circuit, terms: agreed, retry });
        }
    }

    const fn judge(&self, terms: &Terms, has_room: bool) -> Result<(), Refusal> {
        match terms {
            Terms { service, .. } if *service != self.service => Err(Refusal::NoService),
            Terms { window: 0, .. } => Err(Refusal::Window),
            Terms { tpdu: 0, .. } => Err(Refusal::TpduSize),
            _ if !has_room => Err(Refusal::Busy),
            _ => Ok(()),
        }
    }

    fn on_confirm(&mut self, now: Instant, peer: u64, circuit: u64, terms: &Terms, has_room: bool) {
        let period = self.period(now);
        let is_ours = [period, period.saturating_sub(1)]
            .iter()
            .any(|period| self.key.cookie(peer, *period, terms) == circuit);
        if !is_ours || terms.service != self.service || self.serials.has(peer, terms.serial) {
            return self.refuse(peer, terms, circuit, Refusal::Expired);
        }
        if !has_room || self.offer.is_some() {
            return self.refuse(peer, terms, circuit, Refusal::Busy);
        }
        self.serials.note(peer, terms.serial);
        for half in &mut self.half {
            half.take_if(|half| half.circuit == circuit);
        }
        self.offer = Some(Offer { peer, circuit, terms: *terms });
    }

    fn refuse(&mut self, peer: u64, terms: &Terms, circuit: u64, why: Refusal) {
        self.refused += 1;
        let body = TpduBody::Refuse { source: terms.source, why };
        self.answer = Some((peer, Tpdu { to: terms.from, circuit, body }));
    }

    /// A cookie counts in its period and in the next one.
    const fn period(&self, now: Instant) -> u64 {
        let length = self.pace.silence.as_nanos();
        now.as_nanos() / if length == 0 { 1 } else { length }
    }

    /// It may be time for something.
    pub fn handle_deadline(&mut self, now: Instant) {
        for half in &mut self.half {
            half.take_if(|half| half.retry.is_over(now));
        }
    }

    /// When to call [`Listener::handle_deadline`], and to poll.
    pub fn deadline(&self, now: Instant) -> Option<(Instant, Timer)> {
        // A step that is due already waits for a grant, and for no deadline.
        let waits = self.half.iter().flatten().filter(|half| !half.retry.is_due(now));
        Some((waits.map(|half| half.retry.at).min()?, Timer::Handshake))
    }

    /// A circuit that is open now.
    pub const fn offer(&mut self) -> Option<Offer> {
        self.offer.take()
    }

    /// True if [`Listener::poll`] would write a TPDU now.
    pub fn wants(&self, now: Instant) -> bool {
        self.answer.is_some() || self.half.iter().flatten().any(|half| half.retry.is_due(now))
    }

    /// The next TPDU, and for whom it is.
    pub fn poll(&mut self, now: Instant) -> Option<(u64, Tpdu)> {
        if let Some(answer) = self.answer.take() {
            return Some(answer);
        }
        let half = self.half.iter_mut().flatten().find(|half| half.retry.is_due(now))?;
        half.retry.leaves(now, &self.trip);
        Some((half.peer, accept(half.circuit, &half.terms, half.terms.from)))
    }
}

fn accept(circuit: u64, agreed: &Terms, to: u32) -> Tpdu {
    let terms = Terms { from: number(agreed), ..*agreed };
    Tpdu { to, circuit, body: TpduBody::Accept(terms) }
}
