//! Circuits of programs: who listens, who has which end. A connection has one listener or one end, so that
//! the death of its program ends that one alone.

use super::Control;
use crate::circuits::{CircuitCommand, CircuitMemory, CircuitNote, CircuitRing, flow_name};
use crate::commands::Command;
use crate::commands::ControlEnd;
use crate::ledger::Charge;
use crate::limits::Limit;
use crate::log::{Level, say};
use crate::session::{Asked, Question, Session};
use rota_proto::circuits::{CircuitError, CircuitId, CircuitRequest, CircuitSettings, Listening};
use rota_proto::vc::WINDOW_MAX;
use rota_proto::{CircuitOpenError, NotFound};
use rota_shm::control::{
    CircuitAnswer, CircuitAsk, CircuitFlow, CircuitInfo, CircuitQuality, CircuitTerms, Reply,
};
use rota_shm::{CircuitEnd, CircuitShape, MemoryError, NodeCircuitSink, NodeCircuitSource};
use rota_units::{BitRate, Instant, Octets};
use rota_wire::{FlowControl, Quality, Refusal, Terms};
use std::collections::VecDeque;

/// Circuits that may wait for one listener's program at most.
const BACKLOG_MAX: u16 = 64;
/// Ends at one port that the programs of one user have at most, so that some are left for others.
const ENDS_OF_USER: usize = CircuitSettings::USUAL.ends / 2;
/// Listeners of one user at most.
const LISTENERS_OF_USER: usize = CircuitSettings::USUAL.listeners / 2;
/// Octets of a part's slot beside the part.
const SLOT_OCTETS: u64 = 128;

/// The part of a session in circuits.
#[derive(Default)]
pub(crate) struct OwnCircuits {
    listens: Option<Listens>,
    /// The service of which it waits for a circuit, and the number of that request.
    accepts: Option<(u32, u64)>,
    asks: Option<Asks>,
    owned: Option<OwnedEnd>,
}

struct Listens {
    service: u32,
    _charge: Charge,
    /// The data thread has answered.
    is_open: bool,
    /// Our number for the request, and the program's.
    ask: u64,
    number: u64,
}

/// A circuit that is asked for.
struct Asks {
    ask: u64,
    number: u64,
    to: String,
    service: u32,
    circuit: Option<CircuitId>,
    charge: Charge,
}

/// An end that its program has.
struct OwnedEnd {
    circuit: CircuitId,
    peer: String,
    /// Until its program has mapped it.
    memory: Option<Made>,
    charge: Option<Charge>,
}

enum Made {
    Source(NodeCircuitSource),
    Sink(NodeCircuitSink),
}

/// A circuit that no program has accepted yet.
pub(crate) struct Offered {
    circuit: CircuitId,
    from: String,
    terms: Terms,
    name: u64,
    /// The user of its listener.
    user: u32,
}

/// The question for the circuits of the data thread.
pub(super) struct Listing {
    /// It has been asked and has not answered yet.
    is_asked: bool,
    next: Instant,
}

impl Listing {
    pub(super) const fn new() -> Self {
        Self { is_asked: false, next: Instant::ZERO }
    }
}

fn is_of_circuits(question: &Question) -> bool {
    matches!(question.asked, Asked::Circuits)
}

/// Circuits that wait for a program, the oldest first.
pub(crate) type Offers = VecDeque<Offered>;

impl OwnCircuits {
    /// What counts against its user.
    pub(crate) fn weight(&self) -> usize {
        let has_end = self.accepts.is_some() || self.asks.is_some() || self.owned.is_some();
        usize::from(self.listens.is_some() || has_end)
    }

    fn is_free(&self) -> bool {
        self.weight() == 0
    }

    /// The data thread takes circuits of that service for its program.
    fn is_open_for(&self, service: u32) -> bool {
        self.listens.as_ref().is_some_and(|listens| listens.is_open && listens.service == service)
    }

    /// The circuit of its end.
    fn circuit(&self) -> Option<CircuitId> {
        let owned = self.owned.as_ref().map(|owned| owned.circuit);
        owned.or_else(|| self.asks.as_ref()?.circuit)
    }

    /// Its program is gone: returns the service to which it listened.
    pub(crate) fn forget(&mut self, data: &ControlEnd) -> Option<u32> {
        let asked = self.asks.take().and_then(|asks| asks.circuit);
        let owned = self.owned.take().map(|owned| owned.circuit);
        for circuit in asked.into_iter().chain(owned) {
            tell(data, CircuitCommand::Release { circuit });
        }
        let service = self.listens.take()?.service;
        tell(data, CircuitCommand::Unlisten { service });
        Some(service)
    }
}

fn tell(data: &ControlEnd, command: CircuitCommand) {
    data.say(Command::Circuit(command));
}

fn full_of(what: &str, most: usize) -> String {
    format!("this user already has {most} {what}, which is the share of one user; close one")
}

fn quality_of(asked: CircuitQuality) -> Result<(Quality, Option<(Octets, BitRate)>), String> {
    let CircuitQuality { error_control, stream, flow } = asked;
    let (flow, bucket) = match flow {
        CircuitFlow::Open => (FlowControl::Open, None),
        CircuitFlow::Window => (FlowControl::Window, None),
        CircuitFlow::PacketPair => (FlowControl::PacketPair, None),
        CircuitFlow::Bucket { octets, bps } => {
            let rate = BitRate::new(bps).ok_or("a leaky bucket needs a rate above 0 bit/s")?;
            (FlowControl::Bucket, Some((Octets::new(octets), rate)))
        }
    };
    Ok((Quality { error_control, flow, stream }, bucket))
}

fn terms_of(terms: &Terms, circuit: u64) -> CircuitTerms {
    CircuitTerms {
        circuit,
        service: terms.service,
        window: terms.window,
        octets: u32::from(terms.tpdu),
        error_control: terms.quality.error_control,
        stream: terms.quality.stream,
        flow: flow_name(terms.quality.flow),
    }
}

fn shape_of(terms: &Terms) -> CircuitShape {
    CircuitShape { parts: terms.window, octets: u32::from(terms.tpdu) }
}

impl Control<'_> {
    pub(super) fn circuit_asked(&mut self, at: usize, ask: u64, had: usize, asked: CircuitAsk) {
        let session = &self.sessions[at];
        let is_new =
            matches!(asked, CircuitAsk::Listen { .. } | CircuitAsk::Open { .. } | CircuitAsk::Accept { .. });
        if is_new && !session.circuits.is_free() {
            return session.error("this connection has a circuit already; each needs one of its own", true);
        }
        if let (true, Err(sentence)) = (is_new, self.facts.quota.one_more_channel(had)) {
            return session.error(sentence, false);
        }
        match asked {
            CircuitAsk::Listen { service, window, backlog } => {
                self.circuit_listen(at, ask, Listening { service, window, backlog });
            }
            CircuitAsk::Accept { service } => self.circuit_accept(at, service),
            CircuitAsk::Open { to, service, window, quality, level } => {
                self.circuit_open(at, ask, to, (service, window, quality, level));
            }
            CircuitAsk::Decline { reason } => self.circuit_decline(at, reason),
            CircuitAsk::Mapped => self.circuit_mapped(at),
            CircuitAsk::List => {
                self.sessions[at].wait_for(ask, Asked::Circuits);
            }
        }
    }

    /// Memory of so many parts, here and in the machine.
    fn charge_parts(&self, at: usize, what: &str, parts: u64) -> Option<Charge> {
        let part = u64::from(self.facts.payload_max) + SLOT_OCTETS;
        match self.facts.ledger.charge(self.sessions[at].user, parts.saturating_mul(part)) {
            Ok(charge) => Some(charge),
            Err(short) => {
                self.data.refusals().count(Limit::Memory);
                let sentence = short.sentence(what);
                let hint = "a smaller window takes less; see --memory of 'rota node'";
                self.sessions[at].error(format!("{sentence}; {hint}"), false);
                None
            }
        }
    }

    fn circuit_listen(&mut self, at: usize, ask: u64, listening: Listening) {
        let Listening { service, window, backlog } = listening;
        if !(1..=WINDOW_MAX).contains(&window) || !(1..=BACKLOG_MAX).contains(&backlog) {
            let sentence = format!(
                "a listener for circuits takes a window of 1 to {WINDOW_MAX} TPDUs and a backlog of 1 to \
                 {BACKLOG_MAX} circuits, not {window} and {backlog}"
            );
            return self.sessions[at].error(sentence, true);
        }
        let is_taken = |session: &Session| {
            session.circuits.listens.as_ref().is_some_and(|listens| listens.service == service)
        };
        // Decided here: the end of a program that was refused must not take the service from another one.
        if self.sessions.iter().any(is_taken) {
            return self.sessions[at].error(CircuitError::Taken(service).to_string(), true);
        }
        let user = self.sessions[at].user;
        let is_own = |session: &&Session| session.user == user && session.circuits.listens.is_some();
        if self.sessions.iter().filter(is_own).count() >= LISTENERS_OF_USER {
            return self.sessions[at].error(full_of("listeners for circuits", LISTENERS_OF_USER), false);
        }
        // More than its share would be offered in vain.
        let backlog = backlog.min(ENDS_OF_USER as u16);
        let listening = Listening { backlog, ..listening };
        // Each port has a backlog of its own.
        let parts = u64::from(window) * u64::from(backlog) * self.ports_with_circuits();
        let Some(charge) = self.charge_parts(at, "a listener for circuits", parts) else { return };
        let session = &mut self.sessions[at];
        let number = session.number();
        session.circuits.listens = Some(Listens { service, _charge: charge, is_open: false, ask, number });
        tell(self.data, CircuitCommand::Listen { ask, listening });
    }

    /// A tunnel has none.
    fn ports_with_circuits(&self) -> u64 {
        self.facts.ports.iter().filter(|port| port.trouble.is_none()).count().max(1) as u64
    }

    /// The next circuit of a service is for this connection, if its user listens to it.
    fn circuit_accept(&mut self, at: usize, service: u32) {
        let user = self.sessions[at].user;
        let listens = |session: &Session| session.user == user && session.circuits.is_open_for(service);
        if !self.sessions.iter().any(listens) {
            let sentence = format!("no program of yours listens to service {service} of circuits");
            return self.sessions[at].error(sentence, true);
        }
        let number = self.sessions[at].number();
        self.sessions[at].circuits.accepts = Some((service, number));
        self.hand_out_offers();
    }

    /// Gives circuits that wait to the programs that wait for them.
    pub(super) fn hand_out_offers(&mut self) {
        let mut place = 0;
        while let Some(offer) = self.offers.get(place) {
            let service = offer.terms.service;
            let waits = |session: &Session| {
                session.circuits.accepts.is_some_and(|(of, _)| of == service) && !session.is_over()
            };
            let Some(at) = self.sessions.iter().position(waits) else {
                place += 1;
                continue;
            };
            if let Some(offer) = self.offers.remove(place) {
                self.give(at, &offer);
            }
        }
    }

    fn give(&mut self, at: usize, offer: &Offered) {
        let Offered { circuit, terms, name, .. } = *offer;
        let Some((_, number)) = self.sessions[at].circuits.accepts.take() else { return };
        self.sessions[at].to(number);
        let charge = self.charge_parts(at, "a circuit", u64::from(terms.window) * 2);
        let made =
            charge.map(|charge| (charge, self.count_kernel(NodeCircuitSink::create(shape_of(&terms)))));
        let session = &mut self.sessions[at];
        match made {
            Some((charge, Ok(memory))) => {
                let (from, terms) = (offer.from.clone(), terms_of(&terms, name));
                let reply = Reply::Circuit(CircuitAnswer::Accepted { from: from.clone(), terms });
                session.reply(&reply, &memory.descriptors());
                let memory = Some(Made::Sink(memory));
                session.circuits.owned = Some(OwnedEnd { circuit, peer: from, memory, charge: Some(charge) });
                tell(self.data, CircuitCommand::Accept { circuit });
            }
            Some((_, Err(error))) => {
                session.error(error.to_string(), false);
                tell(self.data, CircuitCommand::Release { circuit });
            }
            None => tell(self.data, CircuitCommand::Release { circuit }),
        }
    }

    fn circuit_open(
        &mut self,
        at: usize,
        ask: u64,
        to: String,
        (service, window, quality, level): (u32, u64, CircuitQuality, u8),
    ) {
        let (quality, bucket) = match quality_of(quality) {
            Ok(both) => both,
            Err(sentence) => return self.sessions[at].error(sentence, true),
        };
        if level > 7 {
            return self.sessions[at].error(format!("level {level} is none; there are 0 to 7"), true);
        }
        let (user, most) = (self.sessions[at].user, self.facts.quota.level);
        if level > most && !self.may_all(user) {
            let sentence = format!(
                "circuits of user {user} have levels 0 to {most} at this node, and not {level}, which root \
                 and the user that the node runs as may have; a larger --user-level of 'rota node' gives more"
            );
            return self.sessions[at].error(sentence, false);
        }
        // A window that is too large is refused by the machine, with what is possible.
        let parts = window.min(u64::from(WINDOW_MAX)) * 2;
        let Some(charge) = self.charge_parts(at, "a circuit", parts) else { return };
        let number = self.sessions[at].number();
        let asks = Asks { ask, number, to: to.clone(), service, circuit: None, charge };
        self.sessions[at].circuits.asks = Some(asks);
        let request = CircuitRequest { service, window, quality, bucket, level };
        tell(self.data, CircuitCommand::Open { ask, to, request });
    }

    /// The program has looked at the circuit that it was given, and does not take it.
    fn circuit_decline(&mut self, at: usize, reason: u32) {
        let session = &mut self.sessions[at];
        let is_new = |owned: &mut OwnedEnd| matches!(owned.memory, Some(Made::Sink(_)));
        let Some(OwnedEnd { circuit, .. }) = session.circuits.owned.take_if(is_new) else {
            return session.error("no circuit of yours waits to be taken", true);
        };
        tell(self.data, CircuitCommand::Decline { circuit, reason });
        session.answer(&Reply::Circuit(CircuitAnswer::Done));
    }

    /// The program has mapped its memory: nobody else can change it from now on, and octets may flow.
    fn circuit_mapped(&mut self, at: usize) {
        let waker = self.data.waker();
        let session = &mut self.sessions[at];
        let taken = session
            .circuits
            .owned
            .as_mut()
            .and_then(|owned| Some((owned.circuit, owned.memory.take()?, owned.charge.take())));
        let Some((circuit, memory, charge)) = taken else {
            return session.error("no circuit of yours waits to be mapped", true);
        };
        let attached = |ring, board: rota_shm::Board, bell, doorbell| {
            let sleeper = waker.sleeper(board.clone(), Some(bell));
            Box::new(CircuitMemory { ring, board, sleeper, doorbell, _charge: charge })
        };
        let memory = match memory {
            Made::Source(NodeCircuitSource { mut source, bell, .. }) => {
                if let Err(error) = source.mapped() {
                    session.circuits.owned = None;
                    tell(self.data, CircuitCommand::Release { circuit });
                    return session.error(error.to_string(), false);
                }
                attached(CircuitRing::Source(source.ring), source.board, bell, source.doorbell)
            }
            Made::Sink(NodeCircuitSink { ring, board, doorbell, bell, .. }) => {
                attached(CircuitRing::Sink(ring), board, bell, doorbell)
            }
        };
        session.answer(&Reply::Circuit(CircuitAnswer::Mapped));
        tell(self.data, CircuitCommand::Attach { circuit, memory });
    }

    // ---- news from the data thread --------------------------------------------------------------------

    pub(super) fn on_circuit(&mut self, note: CircuitNote) {
        match note {
            CircuitNote::Listening { ask, result } => self.on_circuit_listening(ask, result),
            CircuitNote::Asked { ask, result } => self.on_circuit_asked(ask, result),
            CircuitNote::Opened { circuit, terms, name } => self.on_circuit_opened(circuit, &terms, name),
            CircuitNote::Offered { circuit, from, terms, name } => {
                self.on_circuit_offered(circuit, from, terms, name);
            }
            CircuitNote::Ended { circuit, end } => self.on_circuit_ended(circuit, end),
            CircuitNote::Hostile { circuit, why } => {
                let has_it = |session: &&mut Session| {
                    session.circuits.owned.as_ref().is_some_and(|owned| owned.circuit == circuit)
                };
                if let Some(session) = self.sessions.iter_mut().find(has_it) {
                    let peer = session.circuits.owned.take().map(|owned| owned.peer).unwrap_or_default();
                    let text = format!("the circuit with {peer} was ended: {why}");
                    say(Level::Warn, "hostile", &format!("{text}; {}", session.program()));
                    tell(self.data, CircuitCommand::Release { circuit });
                }
            }
            CircuitNote::Listed { ask, all } => self.on_circuits_listed(ask, &all),
        }
    }

    /// Its listener may have gone while the note was on its way. The next listener of that service may be
    /// another user's, and must not get what the former one was offered.
    fn on_circuit_offered(&mut self, circuit: CircuitId, from: String, terms: Terms, name: u64) {
        let listens = |session: &&Session| session.circuits.is_open_for(terms.service);
        let Some(user) = self.sessions.iter().find(listens).map(|session| session.user) else {
            return tell(self.data, CircuitCommand::Release { circuit });
        };
        // Not more than its share: a peer could take the ends of all users through one listener.
        if self.ends_of(user, circuit.port()) >= ENDS_OF_USER {
            return tell(self.data, CircuitCommand::Release { circuit });
        }
        self.offers.push_back(Offered { circuit, from, terms, name, user });
        self.hand_out_offers();
    }

    /// Ends at a port that the programs of a user have, and those that its listeners are offered.
    fn ends_of(&self, user: u32, port: u8) -> usize {
        let of_programs = self.sessions.iter().filter(|session| session.user == user);
        let of_programs = of_programs.filter_map(|session| session.circuits.circuit());
        let offered = self.offers.iter().filter(|offer| offer.user == user).map(|offer| offer.circuit);
        of_programs.chain(offered).filter(|circuit| circuit.port() == port).count()
    }

    /// Asks the data thread for its circuits if somebody wants them, as it is asked for its state: for all
    /// who want them at once, and not more often than it can bear. Returns when to try again.
    pub(super) fn ask_for_circuits(&mut self, now: Instant) -> Instant {
        let wanted = |session: &Session| session.asked.iter().any(is_of_circuits);
        if self.listing.is_asked || !self.sessions.iter().any(wanted) {
            return Instant::FAR;
        }
        if now < self.listing.next {
            return self.listing.next;
        }
        self.listing = Listing { is_asked: true, next: now + super::SNAPSHOT_EVERY };
        tell(self.data, CircuitCommand::List { ask: self.next });
        Instant::FAR
    }

    /// Answers all who asked before the list was made.
    fn on_circuits_listed(&mut self, ask: u64, all: &[CircuitInfo]) {
        self.listing.is_asked = false;
        for session in &mut self.sessions {
            let is_due = |question: &mut Question| question.ask <= ask && is_of_circuits(question);
            let due: Vec<_> = session.asked.extract_if(.., is_due).collect();
            for question in due {
                session.to(question.number).answer(&Reply::Circuit(CircuitAnswer::List(all.to_vec())));
            }
        }
    }

    fn on_circuit_listening(&mut self, ask: u64, result: Result<(), String>) {
        let is_it =
            |session: &&mut Session| session.circuits.listens.as_ref().is_some_and(|it| it.ask == ask);
        // Where its program is gone, its service was taken back behind the request.
        let Some(session) = self.sessions.iter_mut().find(is_it) else { return };
        let Some(listens) = &mut session.circuits.listens else { return };
        listens.is_open = result.is_ok();
        let number = listens.number;
        match result {
            Ok(()) => session.to(number).answer(&Reply::Circuit(CircuitAnswer::Listening)),
            Err(sentence) => {
                session.circuits.listens = None;
                session.to(number).error(sentence, true);
            }
        }
    }

    fn on_circuit_asked(&mut self, ask: u64, result: Result<CircuitId, CircuitOpenError>) {
        let is_it = |session: &&mut Session| session.circuits.asks.as_ref().is_some_and(|it| it.ask == ask);
        let Some(session) = self.sessions.iter_mut().find(is_it) else {
            // The program left while its request was on its way.
            if let Ok(circuit) = result {
                tell(self.data, CircuitCommand::Release { circuit });
            }
            return;
        };
        match (result, &mut session.circuits.asks) {
            (Ok(circuit), Some(asks)) => {
                asks.circuit = Some(circuit);
                let (user, number) = (session.user, asks.number);
                if self.ends_of(user, circuit.port()) > ENDS_OF_USER
                    && let Some((at, _)) = self.asker_of(circuit)
                {
                    let sentence = full_of("circuits at this port", ENDS_OF_USER);
                    self.sessions[at].to(number).error(sentence, false);
                    tell(self.data, CircuitCommand::Release { circuit });
                }
            }
            (Err(error), asks) => {
                let Some(Asks { number, to, .. }) = asks.take() else { return };
                let session = session.to(number);
                match error {
                    CircuitOpenError::NotFound(NotFound::Unknown { known }) => {
                        session.answer(&super::no_station(&to, &known));
                    }
                    error => session.error(error.to_string(), true),
                }
            }
            (Ok(_), None) => {}
        }
    }

    fn asker_of(&mut self, circuit: CircuitId) -> Option<(usize, Asks)> {
        let is_it =
            |session: &Session| session.circuits.asks.as_ref().is_some_and(|it| it.circuit == Some(circuit));
        let at = self.sessions.iter().position(is_it)?;
        Some((at, self.sessions[at].circuits.asks.take()?))
    }

    fn on_circuit_opened(&mut self, circuit: CircuitId, terms: &Terms, name: u64) {
        // Where its program is gone it was released.
        let Some((at, asks)) = self.asker_of(circuit) else { return };
        let made = self.count_kernel(NodeCircuitSource::create(shape_of(terms)));
        let session = &mut self.sessions[at];
        session.to(asks.number);
        match made {
            Ok(memory) => {
                let reply = Reply::Circuit(CircuitAnswer::Opened(terms_of(terms, name)));
                session.reply(&reply, &memory.descriptors());
                let (memory, charge) = (Some(Made::Source(memory)), Some(asks.charge));
                session.circuits.owned = Some(OwnedEnd { circuit, peer: asks.to, memory, charge });
            }
            Err(error @ MemoryError::Shape { .. } | error) => {
                session.error(error.to_string(), false);
                tell(self.data, CircuitCommand::Release { circuit });
            }
        }
    }

    /// One that no program has in its memory yet. One that is about to be mapped is told of it there.
    fn on_circuit_ended(&mut self, circuit: CircuitId, end: CircuitEnd) {
        if let Some(place) = self.offers.iter().position(|offer| offer.circuit == circuit) {
            self.offers.remove(place);
        }
        let Some((at, asks)) = self.asker_of(circuit) else {
            // Nobody has it or waits for it: the data thread must not keep its end for a program.
            let has_it = |session: &Session| session.circuits.circuit() == Some(circuit);
            if !self.sessions.iter().any(has_it) {
                tell(self.data, CircuitCommand::Release { circuit });
            }
            return;
        };
        tell(self.data, CircuitCommand::Release { circuit });
        let Asks { number, to, service, .. } = asks;
        let session = self.sessions[at].to(number);
        match end {
            CircuitEnd::Refused(Refusal::NoService) => session.answer(&Reply::NoListener {
                sentence: format!(
                    "nobody on {to} listens to service {service} of circuits; run 'rota pipe --listen \
                     {service}' there first"
                ),
            }),
            CircuitEnd::Declined(reason) => {
                session.answer(&Reply::Circuit(CircuitAnswer::Declined { reason }));
            }
            CircuitEnd::NoAnswer => session
                .error(format!("{to} does not answer; see with 'rota status' whether it is alive"), false),
            end => session.error(format!("no circuit to {to}: {end}"), false),
        }
    }

    /// A listener is gone: circuits that waited for it end, and who waits for one is told.
    pub(super) fn forget_service(&mut self, service: u32) {
        self.offers.retain(|offer| offer.terms.service != service);
        for session in &mut self.sessions {
            if let Some((_, number)) = session.circuits.accepts.take_if(|(of, _)| *of == service) {
                session.to(number).error("the listener of this service is gone", false);
            }
        }
    }
}

#[cfg(test)]
mod tests;
