//! The end that receives.

use super::listener::Offer;
use super::loose::{LooseInbox, Losses};
use super::segment::{Arrival, Inbox, Piece};
use super::trip::{Pace, Retry, Trip};
use super::{Counts, End, Standing, Timer};
use rota_contract::{CircuitStage, CircuitWait};
use rota_units::Instant;
use rota_wire::{FlowControl, ResetCause, Terms, Tpdu, TpduBody};
use std::collections::VecDeque;

/// News for a receiver's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkEvent {
    /// There is something to read, where there was nothing.
    Readable,
    /// The circuit has ended.
    Ended(End),
}

/// Acknowledgements that wait for their grants beyond one for each TPDU of the window. Older ones give way.
const SPARE_ACKS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The program wants no more: a close is sent until it is answered.
    Closing,
    /// It has ended in order; the close of the other end is answered if it comes again.
    Lingering,
    /// The program did not take it: the sender is told at whatever it sends.
    Declined(u32),
    Ended,
}

/// The octets in hand: with error control, or without.
#[derive(Clone, Debug)]
enum Kept {
    Sure(Inbox),
    Loose(LooseInbox),
}

impl Kept {
    fn new(terms: &Terms, pace: Pace) -> Self {
        let Terms { window, tpdu, quality, .. } = *terms;
        if quality.error_control {
            Self::Sure(Inbox::new(window, tpdu, quality.stream))
        } else {
            Self::Loose(LooseInbox::new(window, tpdu, quality.stream, pace.reorder))
        }
    }

    const fn cum(&self) -> u64 {
        match self {
            Self::Sure(inbox) => inbox.cum(),
            Self::Loose(inbox) => inbox.cum(),
        }
    }

    const fn limit(&self) -> u64 {
        match self {
            Self::Sure(inbox) => inbox.limit(),
            Self::Loose(inbox) => inbox.limit(),
        }
    }

    const fn counts(&self) -> Counts {
        let tpdus = match self {
            Self::Sure(inbox) => inbox.cum(),
            Self::Loose(inbox) => inbox.taken().0,
        };
        Counts { tpdus, messages: self.messages_taken() }
    }

    const fn taken(&self) -> u64 {
        match self {
            Self::Sure(inbox) => inbox.taken(),
            Self::Loose(inbox) => inbox.taken().0,
        }
    }

    /// TPDUs in sequence that wait for the program, and whether some behind a missing one do.
    const fn held(&self) -> (u64, bool) {
        match self {
            Self::Sure(inbox) => (inbox.cum() - inbox.taken(), inbox.top() > inbox.cum()),
            Self::Loose(inbox) => (inbox.cum() - inbox.base(), inbox.top() > inbox.cum()),
        }
    }

    const fn messages_taken(&self) -> u64 {
        match self {
            Self::Sure(inbox) => inbox.messages_taken(),
            Self::Loose(inbox) => inbox.taken().1,
        }
    }

    fn accept(&mut self, sequence: u64, piece: Piece, data: &[u8]) -> Arrival {
        match self {
            Self::Sure(inbox) => inbox.accept(sequence, piece, data),
            Self::Loose(inbox) => inbox.accept(sequence, piece, data),
        }
    }

    fn peek_ahead(&self, ahead: u64) -> Option<(Piece, &[u8])> {
        match self {
            Self::Sure(inbox) => inbox.peek_ahead(ahead),
            Self::Loose(inbox) => inbox.peek_ahead(ahead),
        }
    }

    fn take(&mut self) -> bool {
        match self {
            Self::Sure(inbox) => inbox.take(),
            Self::Loose(inbox) => inbox.take(),
        }
    }

    /// The sender has stated all that it sent; whether that can be.
    fn all_sent(&mut self, tpdus: u64, again: bool) -> bool {
        match self {
            Self::Sure(inbox) => tpdus >= inbox.cum(),
            Self::Loose(inbox) => inbox.all_sent(tpdus, again),
        }
    }

    /// True if all of it was taken or is lost.
    const fn is_done(&self, all: &Counts) -> bool {
        match self {
            Self::Sure(inbox) => all.tpdus == inbox.taken(),
            Self::Loose(inbox) => all.tpdus == inbox.base(),
        }
    }

    /// All of it was; whether its messages can be as many as the sender says.
    fn agrees(&mut self, all: &Counts) -> bool {
        match self {
            Self::Sure(inbox) => all.messages == inbox.messages_taken(),
            Self::Loose(inbox) => inbox.all_over(all.messages),
        }
    }

    fn close(&mut self) {
        match self {
            Self::Sure(inbox) => inbox.close(),
            Self::Loose(inbox) => inbox.close(),
        }
    }
}

/// The receiving end of a circuit.
#[derive(Clone, Debug)]
pub struct Sink {
    circuit: u64,
    peer: u32,
    terms: Terms,
    pace: Pace,
    state: State,
    inbox: Kept,
    /// TPDUs that came and are not acknowledged yet; 0: an acknowledgement that none caused.
    causes: VecDeque<u64>,
    causes_max: usize,
    /// How many of them are 0, which tell of room alone.
    zeros: usize,
    /// The program has not closed this end.
    wants_more: bool,
    /// The room that the sender has been told of.
    limit_told: u64,
    /// The counts that the sender's close has stated.
    announced: Option<Counts>,
    retry: Retry,
    trip: Trip,
    heard_at: Instant,
    answer: Option<TpduBody>,
    event: Option<SinkEvent>,
    readable: bool,
    seen: Seen,
}

#[derive(Clone, Debug, Default)]
struct Seen {
    /// Octets of data that have come, each once.
    octets: u64,
    /// TPDUs that had come before.
    doubles: u64,
    /// TPDUs that no sound sender sends.
    bad: u64,
}

impl Sink {
    /// The receiving end of a handshake that is complete. All room is taken here.
    pub fn new(now: Instant, offer: &Offer, pace: Pace) -> Self {
        let causes_max = offer.terms.window as usize + SPARE_ACKS;
        let mut causes = VecDeque::with_capacity(causes_max);
        // The answer to the third step.
        causes.push_back(0);
        Self {
            circuit: offer.circuit,
            peer: offer.terms.from,
            terms: offer.terms,
            pace,
            state: State::Open,
            inbox: Kept::new(&offer.terms, pace),
            causes,
            causes_max,
            zeros: 1,
            wants_more: true,
            limit_told: 0,
            announced: None,
            retry: Retry::DUE,
            trip: Trip::new(pace),
            heard_at: now,
            answer: None,
            event: None,
            readable: false,
            seen: Seen::default(),
        }
    }

    /// The circuit's name at both ends.
    pub const fn circuit(&self) -> u64 {
        self.circuit
    }

    /// The agreement.
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// TPDUs that had come before.
    pub const fn doubles(&self) -> u64 {
        self.seen.doubles
    }

    /// TPDUs that no sound sender sends.
    pub const fn bad(&self) -> u64 {
        self.seen.bad
    }

    /// TPDUs that have come in sequence, and messages that the program has taken. Without error control those
    /// TPDUs that the program has taken.
    pub const fn counts(&self) -> Counts {
        self.inbox.counts()
    }

    /// TPDUs and messages that the program has taken.
    pub const fn counts_taken(&self) -> Counts {
        Counts { tpdus: self.inbox.taken(), messages: self.inbox.messages_taken() }
    }

    /// A number that changes whenever there may be more for the program to see.
    pub fn progress(&self) -> u64 {
        let Losses { tpdus, dropped, messages } = self.losses();
        self.inbox.cum() + tpdus + dropped + messages
    }

    /// What is lost of a circuit without error control; nothing with it.
    pub fn losses(&self) -> Losses {
        match &self.inbox {
            Kept::Sure(_) => Losses::default(),
            Kept::Loose(inbox) => inbox.losses(),
        }
    }

    /// TPDUs that are lost between what the program took last and what [`Sink::peek`] shows.
    pub const fn gap(&self) -> u64 {
        match &self.inbox {
            Kept::Sure(_) => 0,
            Kept::Loose(inbox) => inbox.gap(),
        }
    }

    /// How it stands, to look at; `offered`: no program has accepted it.
    pub fn standing(&self, offered: bool) -> Standing {
        let stage = match self.state {
            State::Open if offered => CircuitStage::Offered,
            State::Open if self.announced.is_none() => CircuitStage::Open,
            State::Open | State::Closing => CircuitStage::Closing,
            State::Lingering | State::Declined(_) | State::Ended => CircuitStage::Ended,
        };
        let (held, has_missing) = self.inbox.held();
        let waits_for = match stage {
            CircuitStage::Offered => CircuitWait::Acceptance,
            CircuitStage::Ended => CircuitWait::Nothing,
            _ if self.state == State::Closing => CircuitWait::Answer,
            _ if self.peek().is_some() => CircuitWait::Program,
            _ if has_missing => CircuitWait::Missing,
            _ => CircuitWait::Peer,
        };
        Standing {
            stage,
            waits_for,
            window: self.terms.window,
            flying: held as u32,
            octets: self.seen.octets,
        }
    }

    /// True if the sender waits for answers to its data.
    const fn answers(&self) -> bool {
        let quality = &self.terms.quality;
        quality.error_control || matches!(quality.flow, FlowControl::Window | FlowControl::PacketPair)
    }

    /// True if it has ended, and at most answers what comes again: it has no buffers any more.
    pub const fn is_ended(&self) -> bool {
        matches!(self.state, State::Lingering | State::Declined(_) | State::Ended)
    }

    /// True if it may be forgotten.
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// A TPDU with the name of this circuit came.
    pub fn handle(&mut self, now: Instant, tpdu: &Tpdu, data: &[u8]) {
        if tpdu.circuit != self.circuit || self.state == State::Ended {
            self.seen.bad += 1;
            return;
        }
        if let State::Declined(reason) = self.state {
            match tpdu.body {
                TpduBody::Reset { .. } => self.state = State::Ended,
                _ => self.answer = Some(TpduBody::Decline { reason }),
            }
            return;
        }
        // An end that lingers is forgotten, however often the peer asks.
        if self.state != State::Lingering {
            self.heard_at = now;
        }
        match tpdu.body {
            TpduBody::Data { sequence, message, index, last } if self.state == State::Open => {
                self.on_data(sequence, Piece { message, index, last }, data);
            }
            TpduBody::Confirm(_) | TpduBody::Ask if self.state == State::Open => self.note_cause(0),
            TpduBody::Close { tpdus, messages } => self.on_close(Counts { tpdus, messages }),
            TpduBody::Closed { tpdus, messages } if self.state == State::Closing => {
                self.end(End::Stopped { other: Counts { tpdus, messages } });
            }
            TpduBody::Reset { why } if self.state != State::Lingering => self.end(End::Reset(why)),
            TpduBody::Data { .. }
            | TpduBody::Confirm(_)
            | TpduBody::Ask
            | TpduBody::Closed { .. }
            | TpduBody::Reset { .. } => {}
            _ => self.seen.bad += 1,
        }
    }

    fn on_data(&mut self, sequence: u64, piece: Piece, data: &[u8]) {
        if self.announced.is_some_and(|all| sequence > all.tpdus) {
            return self.violated();
        }
        match self.inbox.accept(sequence, piece, data) {
            Arrival::New => {
                self.seen.octets += data.len() as u64;
                self.note_arrival(sequence);
            }
            Arrival::Double => {
                self.seen.doubles += 1;
                self.note_arrival(sequence);
            }
            // Without error control it is lost, and no fault: the sender does not always know the room.
            Arrival::Beyond if !self.terms.quality.error_control => self.note_arrival(sequence),
            Arrival::Beyond => self.seen.bad += 1,
            Arrival::Lies => return self.violated(),
        }
        self.note_readable();
        // The last of those that were overtaken by the close.
        self.finish();
    }

    fn note_arrival(&mut self, sequence: u64) {
        if self.answers() {
            self.note_cause(sequence);
        }
    }

    fn note_readable(&mut self) {
        if !self.readable && self.event.is_none() && self.inbox.peek_ahead(0).is_some() {
            self.readable = true;
            self.event = Some(SinkEvent::Readable);
        }
    }

    fn note_cause(&mut self, cause: u64) {
        if self.causes.len() == self.causes_max {
            self.next_cause();
        }
        self.zeros += usize::from(cause == 0);
        self.causes.push_back(cause);
    }

    fn next_cause(&mut self) -> Option<u64> {
        let cause = self.causes.pop_front()?;
        self.zeros -= usize::from(cause == 0);
        Some(cause)
    }

    fn on_close(&mut self, all: Counts) {
        match self.state {
            State::Open => {
                let again = self.announced.replace(all) == Some(all);
                if !self.inbox.all_sent(all.tpdus, again) {
                    return self.violated();
                }
                self.note_readable();
                if !self.finish() {
                    // It waits for the program; the sender is told that this end lives.
                    self.note_cause(0);
                }
            }
            // Not all has been taken: its own close is the answer, and the sender answers that.
            State::Closing => self.retry = Retry::DUE,
            State::Lingering => self.answer_closed(),
            State::Declined(_) | State::Ended => {}
        }
    }

    fn answer_closed(&mut self) {
        let Counts { tpdus, messages } = self.counts();
        self.answer = Some(TpduBody::Closed { tpdus, messages });
    }

    /// Ends the circuit in order, if all that was announced has come and been taken.
    fn finish(&mut self) -> bool {
        let Some(all) = self.announced.filter(|all| self.inbox.is_done(all)) else { return false };
        if !self.inbox.agrees(&all) {
            self.violated();
            return true;
        }
        self.answer_closed();
        self.end(End::Finished { own: self.counts(), other: all });
        self.state = State::Lingering;
        self.inbox.close();
        true
    }

    fn violated(&mut self) {
        self.seen.bad += 1;
        self.reset(ResetCause::Violation);
        self.end(End::Violated);
    }

    fn reset(&mut self, why: ResetCause) {
        self.answer = Some(TpduBody::Reset { why });
    }

    fn end(&mut self, end: End) {
        self.state = State::Ended;
        (self.causes, self.zeros) = (VecDeque::new(), 0);
        self.event = Some(SinkEvent::Ended(end));
    }

    /// The next octets in sequence. The program takes them with [`Sink::take`]; until then a sender that
    /// closes is not told that all was taken. After an end out of order what had come can still be read;
    /// after a close of this end nothing, since the sender is told what had been taken.
    pub fn peek(&self) -> Option<(Piece, &[u8])> {
        self.peek_ahead(0)
    }

    /// The same of the TPDU so many behind it, which is not taken yet.
    pub fn peek_ahead(&self, ahead: u64) -> Option<(Piece, &[u8])> {
        if self.wants_more { self.inbox.peek_ahead(ahead) } else { None }
    }

    /// The program has taken them; true if there were any.
    pub fn take(&mut self) -> bool {
        if !self.wants_more || !self.inbox.take() {
            return false;
        }
        self.readable = self.inbox.peek_ahead(0).is_some();
        if self.state == State::Open {
            // The sender is told of new room when it is worth a TPDU, or when it could stand still.
            let (limit, quarter) = (self.inbox.limit(), u64::from(self.terms.window).div_ceil(4));
            let is_worth = limit >= self.limit_told + quarter && self.answers();
            if is_worth && self.zeros == 0 {
                self.note_cause(0);
            }
            self.finish();
        }
        true
    }

    /// The program wants no more: the circuit ends in order, with what has been taken.
    pub fn close(&mut self) {
        if self.state == State::Open {
            (self.state, self.wants_more) = (State::Closing, false);
            self.causes.clear();
            self.zeros = 0;
            self.retry = Retry::DUE;
        }
    }

    /// The program does not take the circuit: the sender is told why, again at whatever it sends.
    pub fn decline(&mut self, reason: u32) {
        if self.state == State::Open {
            (self.state, self.wants_more) = (State::Declined(reason), false);
            (self.causes, self.zeros) = (VecDeque::new(), 0);
            self.inbox.close();
            (self.answer, self.event) = (Some(TpduBody::Decline { reason }), None);
        }
    }

    /// The program has died or given up: the sender is told once, and nothing is kept.
    pub fn abort(&mut self) {
        if matches!(self.state, State::Open | State::Closing) {
            self.reset(ResetCause::Aborted);
            self.end(End::Aborted);
        }
    }

    /// It may be time for something.
    pub fn handle_deadline(&mut self, now: Instant) {
        if self.state == State::Ended {
            return;
        }
        if self.heard_at + self.pace.silence <= now {
            if matches!(self.state, State::Lingering | State::Declined(_)) {
                self.state = State::Ended;
            } else {
                self.reset(ResetCause::Silent);
                self.end(End::Silent);
            }
        } else if self.state == State::Closing && self.retry.is_over(now) {
            self.end(End::Silent);
        }
    }

    /// When to call [`Sink::handle_deadline`], and to poll.
    pub fn deadline(&self, now: Instant) -> Option<(Instant, Timer)> {
        let silent = (self.heard_at + self.pace.silence, Timer::Silence);
        match self.state {
            State::Ended => None,
            // A close that is due already waits for a grant, and for no deadline.
            State::Closing if !self.retry.is_due(now) => Some(silent.min((self.retry.at, Timer::Close))),
            _ => Some(silent),
        }
    }

    /// The next thing that the program is to hear.
    pub const fn event(&mut self) -> Option<SinkEvent> {
        self.event.take()
    }

    /// Octets of the TPDU that [`Sink::transmit`] would write now.
    pub fn wants(&self, now: Instant) -> Option<u16> {
        let body = self.next_body(now)?;
        Some(body.octets() as u16)
    }

    fn next_body(&self, now: Instant) -> Option<TpduBody> {
        if self.answer.is_some() {
            return self.answer;
        }
        if let Some(&cause) = self.causes.front() {
            return Some(TpduBody::Ack { cum: self.inbox.cum(), cause, limit: self.inbox.limit() });
        }
        let Counts { tpdus, messages } = self.counts();
        let closes = self.state == State::Closing && self.retry.is_due(now);
        closes.then_some(TpduBody::Close { tpdus, messages })
    }

    /// Writes the next TPDU into `out`, which has room for a control TPDU, and returns its length.
    pub fn transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<usize> {
        let body = self.next_body(now)?;
        if self.answer.take().is_none() && self.next_cause().is_none() {
            self.retry.leaves(now, &self.trip);
        }
        if let TpduBody::Ack { limit, .. } = body {
            self.limit_told = limit;
        }
        Some(Tpdu { to: self.peer, circuit: self.circuit, body }.emit(0, out))
    }
}
