//! The circuits of a port (`specs/transport.md`): its listeners, and the ends of circuits of this host's
//! programs. The machines of one end are in [`crate::vc`]; here is what they share: a bounded table, names
//! and numbers, the turn at which a TPDU leaves, and the answer to TPDUs of circuits that nobody has here.
//!
//! A TPDU is an entry of the node's one queue of eight levels, as a frame of link control is. Each end has
//! one entry there at most, and gets the next one behind the others' when it has left: so ends of a level
//! take turns, and none fills the queue. A TPDU is written at the moment at which it leaves
//! (`Circuits::transmit`).
//!
//! All room is taken when a circuit opens, and given back when its program has let it go and the other end
//! has heard of it.

mod handle;
mod table;
#[cfg(test)]
mod tests;

pub use table::{CircuitView, EndRole};

use crate::segment::Wants;
use crate::vc::{Counts, End, Listener, Pace, Request, Sink, Source, Timer, Unfinished, Unsound, Written};
use rota_units::{BitRate, Instant, Octets};
use rota_wire::{CookieKey, MacAddr, Quality, Terms, Tpdu};
use std::collections::VecDeque;

/// Most ends of circuits of a port.
pub const ENDS_MAX: usize = 256;
/// Most listeners of a port.
pub const LISTENERS_MAX: usize = 64;
/// Places that may have something to say: all ends, all listeners, and the answers to strangers.
pub(crate) const PLACES_MAX: usize = ENDS_MAX + LISTENERS_MAX + 1;
/// Answers to strangers that wait for their grant; more are not given, and are asked for again.
const STRANGERS_MAX: usize = 16;

/// The limits of a node's circuits on each of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitSettings {
    /// Ends of circuits, at most [`ENDS_MAX`]; 0 where this station has none.
    pub ends: usize,
    /// Listeners, at most [`LISTENERS_MAX`].
    pub listeners: usize,
    /// Half-open handshakes that a listener keeps.
    pub half_open: usize,
    /// How long the ends wait.
    pub pace: Pace,
}

impl CircuitSettings {
    /// Those of a station without circuits.
    pub const NONE: Self = Self { ends: 0, listeners: 0, half_open: 0, pace: Pace::ETHERNET };
    /// Those of a station whose programs may have some.
    pub const USUAL: Self = Self { ends: 64, listeners: 16, half_open: 16, pace: Pace::ETHERNET };
}

/// One end of a circuit here: its port, and its number there, which no other end has or had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CircuitId(pub u64);

impl CircuitId {
    const PORT_AT: u32 = 56;

    const fn new(port: u8, number: u64) -> Self {
        Self((port as u64) << Self::PORT_AT | number)
    }

    /// The number of its port.
    pub const fn port(self) -> u8 {
        (self.0 >> Self::PORT_AT) as u8
    }
}

/// The wish of a program that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitRequest {
    /// Which listener at the other node.
    pub service: u32,
    /// TPDUs on their way at most.
    pub window: u64,
    /// The service of the circuit.
    pub quality: Quality,
    /// The leaky bucket, σ and ρ, where the quality has one.
    pub bucket: Option<(Octets, BitRate)>,
    /// The level of the queue at which its TPDUs wait, 0 to 7.
    pub level: u8,
}

/// The wish of a program that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listening {
    /// Its service.
    pub service: u32,
    /// The largest window that it grants.
    pub window: u32,
    /// Circuits that may wait for the program to accept them.
    pub backlog: u16,
}

/// Why a circuit or a listener is impossible here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CircuitError {
    /// The request itself.
    #[error(transparent)]
    Unsound(#[from] Unsound),
    /// The table of ends is full.
    #[error("this node has {0} ends of circuits on that port, which is the limit; close one")]
    Full(usize),
    /// The table of listeners is full.
    #[error("this node has {0} listeners for circuits, which is the limit; close one")]
    FullOfListeners(usize),
    /// Somebody listens to this service.
    #[error("service {0} of circuits has a listener at this node already")]
    Taken(u32),
    /// No circuit is waited for.
    #[error("a listener needs a window of 1 TPDU and a backlog of 1 circuit at least")]
    Nothing,
    /// This node was told to have none.
    #[error("this node has no circuits")]
    None,
}

/// How a circuit can be lost whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Its port is gone.
    PortGone,
    /// The other node has left its segment in order.
    NodeStopped,
    /// The process of the other node has ended.
    NodeDied,
}

/// What happened to the circuits of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CircuitEvent {
    /// A circuit that a program here has asked for is open.
    Opened {
        /// Which.
        circuit: CircuitId,
        /// The agreement.
        terms: Terms,
    },
    /// A circuit leads to a service here; its first octets may have come. It waits to be accepted.
    Offered {
        /// This end of it.
        circuit: CircuitId,
        /// The station of the segment that sends.
        from: MacAddr,
        /// The agreement.
        terms: Terms,
    },
    /// Something has come, or was taken at the other end.
    News {
        /// Of which circuit.
        circuit: CircuitId,
    },
    /// It has ended here without a word of the other end.
    Lost {
        /// Which.
        circuit: CircuitId,
        /// Why.
        why: Loss,
    },
    /// It has ended.
    Ended {
        /// Which.
        circuit: CircuitId,
        /// How.
        end: End,
    },
}

/// What the table wants of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// A TPDU of so many octets waits at this level.
    Queue { place: u16, octets: u16, level: u8 },
}

/// One of the two machines.
#[derive(Clone, Debug)]
enum Machine {
    Source(Source),
    Sink(Sink),
}

/// One end.
#[derive(Clone, Debug)]
struct Circuit {
    id: CircuitId,
    machine: Machine,
    /// The station at the other end.
    peer: MacAddr,
    level: u8,
    /// An entry of it is in the queue, for a TPDU of so many octets.
    queued: Option<u16>,
    /// A program has it, or is to accept it.
    owned: bool,
    /// It waits to be accepted.
    offered: bool,
    /// Its parent was told of news, and has not looked since.
    told: bool,
    /// How far its machine was then.
    progress: u64,
}

/// A listener.
#[derive(Clone, Debug)]
struct Service {
    listening: Listening,
    machine: Listener,
    queued: bool,
    /// When it wants to be called.
    due: Instant,
}

/// All circuits of a port.
#[derive(Clone, Debug)]
pub struct Circuits {
    settings: CircuitSettings,
    port: u8,
    /// Octets of data in a TPDU at most.
    tpdu: u16,
    /// Draws the words of attempts and the keys of listeners.
    secret: CookieKey,
    drawn: u64,
    numbers: u64,
    ends: Box<[Option<Box<Circuit>>]>,
    /// Of each end when it wants to be called.
    due: Box<[Instant]>,
    services: Box<[Option<Box<Service>>]>,
    strangers: VecDeque<(MacAddr, Tpdu)>,
    strangers_queued: bool,
    events: VecDeque<CircuitEvent>,
    wants: Wants<Want>,
    deadline: Instant,
    /// TPDUs of circuits that nobody has here.
    unknown: u64,
}

impl Circuits {
    pub(crate) fn new(port: u8, tpdu: u16, settings: &CircuitSettings, seed: u64) -> Self {
        let settings = CircuitSettings {
            ends: settings.ends.min(ENDS_MAX),
            listeners: settings.listeners.min(LISTENERS_MAX),
            ..*settings
        };
        let is_none = settings.ends == 0;
        let room = |some: usize| if is_none { 0 } else { some };
        let mut key = [0; 16];
        key[..8].copy_from_slice(&seed.to_be_bytes());
        key[8..].copy_from_slice(&seed.rotate_left(29).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        Self {
            settings,
            port,
            tpdu,
            secret: CookieKey::new(key),
            drawn: 0,
            numbers: 0,
            ends: vec![None; settings.ends].into(),
            due: vec![Instant::FAR; settings.ends].into(),
            services: vec![None; room(settings.listeners)].into(),
            strangers: VecDeque::with_capacity(room(STRANGERS_MAX)),
            strangers_queued: false,
            // Each end has one news, its opening and its end there at most.
            events: VecDeque::with_capacity(settings.ends * 4),
            wants: Wants::new(room(PLACES_MAX)),
            deadline: Instant::FAR,
            unknown: 0,
        }
    }

    /// A number that nobody can foretell.
    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        let quality = Quality::RELIABLE;
        let (source, serial, from, service, window, tpdu) = (self.drawn, 0, 0, 0, 0, 0);
        let terms = Terms { source, serial, from, service, window, tpdu, quality };
        self.secret.cookie(u64::MAX, u64::from(self.port), &terms)
    }

    // ---- programs -------------------------------------------------------------------------------------

    /// Takes circuits of this service.
    pub(crate) fn listen(&mut self, listening: &Listening) -> Result<(), CircuitError> {
        if self.settings.ends == 0 {
            return Err(CircuitError::None);
        }
        if listening.window == 0 || listening.backlog == 0 {
            return Err(CircuitError::Nothing);
        }
        if self.service(listening.service).is_some() {
            return Err(CircuitError::Taken(listening.service));
        }
        let mut key = [0; 16];
        key[..8].copy_from_slice(&self.draw().to_be_bytes());
        key[8..].copy_from_slice(&self.draw().to_be_bytes());
        let limits = crate::vc::ListenerLimits {
            window: listening.window,
            tpdu: self.tpdu,
            half_open: self.settings.half_open,
        };
        let Some(free) = self.services.iter_mut().find(|service| service.is_none()) else {
            return Err(CircuitError::FullOfListeners(self.settings.listeners));
        };
        let key = CookieKey::new(key);
        let machine = Listener::new(listening.service, key, limits, self.settings.pace);
        *free = Some(Box::new(Service { listening: *listening, machine, queued: false, due: Instant::FAR }));
        Ok(())
    }

    /// Takes no more, and gives up those that nobody has accepted.
    pub(crate) fn unlisten(&mut self, now: Instant, service: u32) {
        let Some(at) = self.service(service) else { return };
        self.services[at] = None;
        for at in 0..self.ends.len() {
            let is_of_it = |end: &Circuit| end.offered && end.terms().service == service;
            if self.ends[at].as_deref().is_some_and(is_of_it) {
                self.release_at(now, at);
            }
        }
        self.find_deadline();
    }

    /// False where this port has no circuits.
    pub(crate) const fn has_any(&self) -> bool {
        self.settings.ends > 0
    }

    /// A program accepts a circuit that was offered; false if it is not there any more.
    pub(crate) fn accept(&mut self, circuit: CircuitId) -> bool {
        let Some(end) = self.end_mut(circuit) else { return false };
        end.offered = false;
        true
    }

    /// A program does not take a circuit that was offered: its sender is told why.
    pub(crate) fn decline(&mut self, now: Instant, circuit: CircuitId, reason: u32) {
        let Some(at) = self.place_of(circuit) else { return };
        if let Some(Machine::Sink(sink)) = self.ends[at].as_mut().map(|end| &mut end.machine) {
            sink.decline(reason);
        }
        self.release_at(now, at);
    }

    /// Asks the listener at that station for a circuit; the outcome comes as an event.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        to: MacAddr,
        request: &CircuitRequest,
    ) -> Result<CircuitId, CircuitError> {
        if self.settings.ends == 0 {
            return Err(CircuitError::None);
        }
        let at = self.free_end().ok_or(CircuitError::Full(self.settings.ends))?;
        let id = self.next_id();
        let CircuitRequest { service, window, quality, bucket, level } = *request;
        let number = id.0 as u32;
        let request = Request { service, number, window, tpdu: self.tpdu, quality, bucket };
        let source = Source::open(now, &request, self.draw(), self.settings.pace)?;
        self.put(
            now,
            at,
            Circuit {
                id,
                machine: Machine::Source(source),
                peer: to,
                level: level.min(7),
                queued: None,
                owned: true,
                offered: false,
                told: false,
                progress: 0,
            },
        );
        Ok(id)
    }

    /// Takes what fits of a sender's octets; see [`Source::write`].
    pub(crate) fn write(&mut self, now: Instant, circuit: CircuitId, octets: &[u8], end: bool) -> Written {
        let none = Written { octets: 0, ended: false };
        let Some(at) = self.place_of(circuit) else { return none };
        let Some(Machine::Source(source)) = self.ends[at].as_mut().map(|end| &mut end.machine) else {
            return none;
        };
        let written = source.write(octets, end);
        self.settle(now, at);
        written
    }

    /// The parent looks now: the next news is told again.
    pub(crate) fn heard(&mut self, circuit: CircuitId) {
        if let Some(end) = self.end_mut(circuit) {
            end.told = false;
        }
    }

    /// A receiver's TPDU in sequence, so many behind the next one that its program takes.
    pub(crate) fn peek(&self, circuit: CircuitId, ahead: u64) -> Option<(crate::vc::Piece, &[u8])> {
        match &self.ends[self.place_of(circuit)?].as_ref()?.machine {
            Machine::Sink(sink) => sink.peek_ahead(ahead),
            Machine::Source(_) => None,
        }
    }

    /// TPDUs that are lost in front of what [`Self::peek`] shows with nothing ahead of it.
    pub(crate) fn gap(&self, circuit: CircuitId) -> u64 {
        let end = self.place_of(circuit).and_then(|at| self.ends[at].as_ref());
        match end.map(|end| &end.machine) {
            Some(Machine::Sink(sink)) => sink.gap(),
            _ => 0,
        }
    }

    /// A receiver's program has taken so many TPDUs; false where there were not as many.
    pub(crate) fn take(&mut self, now: Instant, circuit: CircuitId, tpdus: u64) -> bool {
        let Some(at) = self.place_of(circuit) else { return false };
        let Some(Machine::Sink(sink)) = self.ends[at].as_mut().map(|end| &mut end.machine) else {
            return false;
        };
        let took = (0..tpdus).all(|_| sink.take());
        self.settle(now, at);
        took
    }

    /// The sender's program writes no more, or the receiver's wants no more.
    pub(crate) fn close(&mut self, now: Instant, circuit: CircuitId) -> Result<(), Unfinished> {
        let Some(at) = self.place_of(circuit) else { return Ok(()) };
        let closed = match self.ends[at].as_mut().map(|end| &mut end.machine) {
            Some(Machine::Source(source)) => source.close(),
            Some(Machine::Sink(sink)) => {
                sink.close();
                Ok(())
            }
            None => Ok(()),
        };
        self.settle(now, at);
        closed
    }

    /// Its program has let it go: what has not ended is given up, and the other end is told.
    pub(crate) fn release(&mut self, now: Instant, circuit: CircuitId) {
        if let Some(at) = self.place_of(circuit) {
            self.release_at(now, at);
        }
    }

    /// The next event.
    pub(crate) fn next_event(&mut self) -> Option<CircuitEvent> {
        self.events.pop_front()
    }

    pub(crate) fn has_event(&self) -> bool {
        !self.events.is_empty()
    }

    pub(crate) fn next_want(&mut self) -> Option<Want> {
        self.wants.next()
    }

    pub(crate) fn has_want(&self) -> bool {
        !self.wants.is_empty()
    }

    /// When to call [`Circuits::tick`].
    pub(crate) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// TPDUs of circuits that nobody has here, which were answered with a reset.
    pub const fn unknown(&self) -> u64 {
        self.unknown
    }
}

impl Circuit {
    const fn terms(&self) -> &Terms {
        match &self.machine {
            Machine::Source(source) => source.terms(),
            Machine::Sink(sink) => sink.terms(),
        }
    }

    const fn name(&self) -> u64 {
        match &self.machine {
            Machine::Source(source) => source.circuit(),
            Machine::Sink(sink) => sink.circuit(),
        }
    }

    fn wants(&mut self, now: Instant) -> Option<u16> {
        match &mut self.machine {
            Machine::Source(source) => source.wants(now),
            Machine::Sink(sink) => sink.wants(now),
        }
    }

    fn transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<usize> {
        match &mut self.machine {
            Machine::Source(source) => source.transmit(now, out),
            Machine::Sink(sink) => sink.transmit(now, out),
        }
    }

    fn deadline(&mut self, now: Instant) -> Option<(Instant, Timer)> {
        match &mut self.machine {
            Machine::Source(source) => source.deadline(now),
            Machine::Sink(sink) => sink.deadline(now),
        }
    }

    fn handle_deadline(&mut self, now: Instant) {
        match &mut self.machine {
            Machine::Source(source) => source.handle_deadline(now),
            Machine::Sink(sink) => sink.handle_deadline(now),
        }
    }

    fn abort(&mut self) {
        match &mut self.machine {
            Machine::Source(source) => source.abort(),
            Machine::Sink(sink) => sink.abort(),
        }
    }

    /// Changes whenever its program may have something to do.
    fn progress(&self) -> u64 {
        match &self.machine {
            Machine::Source(source) => source.progress(),
            Machine::Sink(sink) => sink.progress(),
        }
    }

    const fn is_ended(&self) -> bool {
        match &self.machine {
            Machine::Source(source) => source.is_ended(),
            Machine::Sink(sink) => sink.is_ended(),
        }
    }

    const fn forget_event(&mut self) {
        match &mut self.machine {
            Machine::Source(source) => _ = source.event(),
            Machine::Sink(sink) => _ = sink.event(),
        }
    }

    const fn is_over(&self) -> bool {
        match &self.machine {
            Machine::Source(source) => source.is_over(),
            Machine::Sink(sink) => sink.is_over(),
        }
    }

    /// TPDUs and messages: at this end, and those that the receiver's program is known to have taken.
    const fn counts(&self) -> (Counts, Counts) {
        match &self.machine {
            Machine::Source(source) => (source.counts(), source.counts_taken()),
            Machine::Sink(sink) => (sink.counts(), sink.counts_taken()),
        }
    }
}
