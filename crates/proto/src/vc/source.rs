//! The end that sends.

mod look;

use super::flow::Flow;
use super::segment::{Outbox, Written};
use super::smart::{Expiry, Smart};
use super::trip::{Pace, Retry, TRIES_MAX};
use super::{Aimd, Counts, End, Timer, WINDOW_MAX};
use rota_units::{BitRate, Instant, Octets};
use rota_wire::{FlowControl, Quality, Refusal, ResetCause, TPDU_HEADER_OCTETS, Terms, Tpdu, TpduBody};

/// The request of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which listener.
    pub service: u32,
    /// This end's number of the circuit: what the other end writes as [`Tpdu::to`].
    pub number: u32,
    /// TPDUs on their way at most, 1 to [`WINDOW_MAX`].
    pub window: u64,
    /// Octets of data in a TPDU at most: what a frame of the device holds.
    pub tpdu: u16,
    /// The service of the circuit.
    pub quality: Quality,
    /// The leaky bucket, σ and ρ, where the quality has one. Headers of TPDUs count.
    pub bucket: Option<(Octets, BitRate)>,
}

/// Why a request is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsound {
    /// The window.
    #[error("a window of {0} TPDUs is impossible; ask for 1 to {WINDOW_MAX}")]
    Window(u64),
    /// The size of a TPDU.
    #[error("a TPDU needs room for one octet at least")]
    TpduSize,
    /// The bucket is missing, or there is one that the quality does not name.
    #[error("a leaky bucket needs σ and ρ, and no other flow control has them")]
    Bucket,
    /// No TPDU of full size would ever leave.
    #[error("a leaky bucket of {0} octets never lets a TPDU of {1} octets out; ask for a larger σ")]
    Depth(u64, u64),
}

/// News for a sender's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceEvent {
    /// The circuit is open: octets can be written.
    Opened(Terms),
    /// It has ended.
    Ended(End),
}

/// The end of the last message is missing, so the circuit cannot end in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the last message has no end yet")]
pub struct Unfinished;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Opening,
    Confirming,
    Open,
    /// The program writes no more.
    Closing,
    /// It has ended in order; the close of the other end is answered if it comes again.
    Lingering,
    Ended,
}

/// The sending end of a circuit.
#[derive(Clone, Debug)]
pub struct Source {
    terms: Terms,
    pace: Pace,
    circuit: u64,
    /// The other end's number.
    peer: u32,
    state: State,
    smart: Smart,
    outbox: Outbox,
    flow: Flow,
    /// The highest TPDU for which the other end has room.
    limit: u64,
    /// Of the handshake, then of a close.
    retry: Retry,
    ask: Retry,
    heard_at: Instant,
    sent_at: Instant,
    answer: Option<TpduBody>,
    event: Option<SourceEvent>,
    /// Attempts of the handshake that have expired at the other end.
    attempts: u32,
    /// The program had more to write than there was room.
    blocked: bool,
    /// Asks since the other end last told of more room.
    stood: u32,
    /// Without error control: the counts that the other end's program has taken, which its close tells.
    told: Counts,
    seen: Seen,
}

#[derive(Clone, Debug, Default)]
struct Seen {
    /// Octets of data that have left, each once.
    octets: u64,
    /// TPDUs that no sound receiver sends, and old news.
    bad: u64,
}

/// The next TPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Answer,
    Step,
    Again(u64),
    New(u64),
    Close,
    Ask,
}

impl Source {
    /// Begins a handshake. `source` is random: no other attempt of any sender has it. All room is taken here.
    ///
    /// # Errors
    /// Why the request is impossible.
    pub fn open(now: Instant, request: &Request, source: u64, pace: Pace) -> Result<Self, Unsound> {
        let Request { service, number, tpdu, quality, .. } = *request;
        let window = u32::try_from(request.window).ok().filter(|window| (1..=WINDOW_MAX).contains(window));
        let window = window.ok_or(Unsound::Window(request.window))?;
        if tpdu == 0 {
            return Err(Unsound::TpduSize);
        }
        let flow = Flow::new(now, request, window)?;
        Ok(Self {
            terms: Terms { source, serial: 0, from: number, service, window, tpdu, quality },
            pace,
            circuit: 0,
            peer: 0,
            state: State::Opening,
            smart: Smart::new(window, pace),
            outbox: Outbox::new(window, tpdu, quality.stream),
            flow,
            limit: 0,
            retry: Retry::DUE,
            ask: Retry::DUE,
            heard_at: now,
            sent_at: now,
            answer: None,
            event: None,
            attempts: 0,
            blocked: false,
            stood: 0,
            told: Counts::default(),
            seen: Seen::default(),
        })
    }

    /// The circuit's name at both ends; 0 until the other end has told it.
    pub const fn circuit(&self) -> u64 {
        self.circuit
    }

    /// The agreement, or the request until then.
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The counts of writing: whole messages, and TPDUs that are ready.
    pub const fn counts(&self) -> Counts {
        Counts { tpdus: self.outbox.ready(), messages: self.outbox.messages().0 }
    }

    /// A number that changes whenever there may be more room, or more is known to be taken.
    pub const fn progress(&self) -> u64 {
        self.outbox.taken() + self.counts_taken().tpdus
    }

    /// The counts that the other end's program has taken, as far as is known: without error control nothing
    /// is before the end.
    pub const fn counts_taken(&self) -> Counts {
        if !self.terms.quality.error_control {
            return self.told;
        }
        Counts { tpdus: self.outbox.taken(), messages: self.outbox.messages().1 }
    }

    /// How often a TPDU was sent again.
    pub const fn resent(&self) -> u64 {
        self.smart.resent()
    }

    /// The flow control in force. A circuit of packet-pair whose estimate does not fit what arrives has taken
    /// the window.
    pub const fn flow(&self) -> FlowControl {
        self.flow.kind()
    }

    /// Octets of the longest message that can arrive: without error control a message arrives whole or not at
    /// all, so that the receiver's room must hold it. `None`: there is no limit.
    pub fn message_max(&self) -> Option<u64> {
        let Terms { window, tpdu, quality, .. } = self.terms;
        (!quality.error_control && !quality.stream).then(|| u64::from(window) * u64::from(tpdu))
    }

    /// TPDUs that no sound receiver sends, and those that are old news.
    pub const fn bad(&self) -> u64 {
        self.seen.bad
    }

    /// True if it has ended, and at most answers what comes again.
    pub const fn is_ended(&self) -> bool {
        matches!(self.state, State::Lingering | State::Ended)
    }

    /// True if it may be forgotten.
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Takes what fits of `octets`, and the end of the message if `end` and all fits; nothing before the
    /// circuit is open and behind its close.
    pub fn write(&mut self, octets: &[u8], end: bool) -> Written {
        if self.state != State::Open {
            return Written { octets: 0, ended: false };
        }
        let written = self.outbox.write(octets, end);
        self.blocked = written.octets < octets.len() || (end && !written.ended);
        written
    }

    /// The program writes no more: the circuit ends in order when all has been taken.
    ///
    /// # Errors
    /// The end of the last message is missing.
    pub fn close(&mut self) -> Result<(), Unfinished> {
        match self.state {
            State::Open if self.outbox.is_in_message() => Err(Unfinished),
            State::Open => {
                self.outbox.flush();
                (self.state, self.retry) = (State::Closing, Retry::DUE);
                Ok(())
            }
            State::Opening | State::Confirming => {
                self.abort();
                Ok(())
            }
            State::Closing | State::Lingering | State::Ended => Ok(()),
        }
    }

    /// The program has died or given up: the other end is told once, and nothing is kept.
    pub fn abort(&mut self) {
        if matches!(self.state, State::Ended | State::Lingering) {
            return;
        }
        if self.circuit != 0 {
            self.answer = Some(TpduBody::Reset { why: ResetCause::Aborted });
        }
        self.end(End::Aborted);
    }

    fn end(&mut self, end: End) {
        self.state = State::Ended;
        self.event = Some(SourceEvent::Ended(end));
    }

    /// A TPDU for this circuit came, by its number or its name.
    pub fn handle(&mut self, now: Instant, tpdu: &Tpdu) {
        match tpdu.body {
            TpduBody::Accept(terms) if terms.source == self.terms.source => {
                return self.on_accept(now, tpdu.circuit, &terms);
            }
            TpduBody::Refuse { source, why } if source == self.terms.source => {
                return self.on_refuse(tpdu.circuit, why);
            }
            _ => {}
        }
        let is_known = self.circuit != 0 && tpdu.circuit == self.circuit;
        if !is_known || self.state == State::Ended {
            self.seen.bad += 1;
            return;
        }
        // An end that lingers is forgotten, however often the peer closes.
        if self.state != State::Lingering {
            self.heard_at = now;
        }
        self.ask = Retry::DUE;
        match tpdu.body {
            TpduBody::Ack { cum, cause, limit } => self.on_ack(now, cum, cause, limit),
            TpduBody::Close { tpdus, messages } => self.on_close(Counts { tpdus, messages }),
            TpduBody::Closed { tpdus, messages } if self.is_close_sent() => {
                let (own, other) = (self.counts(), Counts { tpdus, messages });
                let is_less = other.tpdus <= own.tpdus && other.messages <= own.messages;
                if !is_less || (own != other && self.terms.quality.error_control) {
                    return self.violated();
                }
                self.outbox.release(other.tpdus);
                self.told = other;
                self.end(End::Finished { own, other });
            }
            TpduBody::Reset { why } if self.state != State::Lingering => self.end(End::Reset(why)),
            TpduBody::Decline { reason } if self.state != State::Lingering => self.end(End::Declined(reason)),
            _ => self.seen.bad += 1,
        }
    }

    /// The other end says what no sound one does. It is told, and nothing that it says counts.
    fn violated(&mut self) {
        self.seen.bad += 1;
        self.answer = Some(TpduBody::Reset { why: ResetCause::Violation });
        self.end(End::Violated);
    }

    const fn is_close_sent(&self) -> bool {
        matches!(self.state, State::Closing) && self.retry.tries > 0
    }

    fn on_accept(&mut self, now: Instant, circuit: u64, terms: &Terms) {
        let own = &self.terms;
        let is_sound = circuit != 0
            && (1..=own.window).contains(&terms.window)
            && (1..=own.tpdu).contains(&terms.tpdu)
            && (terms.service, terms.quality) == (own.service, own.quality);
        match self.state {
            State::Opening if is_sound => {
                if self.retry.tries == 1 {
                    self.smart.guess(now.since(self.sent_at));
                }
                self.outbox.shrink(terms.window, terms.tpdu);
                (self.circuit, self.peer, self.heard_at) = (circuit, terms.from, now);
                self.terms = Terms { from: own.from, ..*terms };
                (self.state, self.retry) = (State::Confirming, Retry::DUE);
            }
            // The second step came again: the third one was lost, or is on its way.
            State::Confirming if circuit == self.circuit => self.answer = Some(TpduBody::Confirm(self.terms)),
            _ => self.seen.bad += 1,
        }
    }

    fn on_refuse(&mut self, circuit: u64, why: Refusal) {
        match self.state {
            State::Opening if circuit == 0 => self.end(End::Refused(why)),
            State::Confirming if circuit == self.circuit => {
                self.attempts += 1;
                if why != Refusal::Expired || self.attempts >= super::TRIES_MAX {
                    return self.end(End::Refused(why));
                }
                // Nothing has been sent yet, so a new attempt is safe. Its word must be new.
                self.terms.source = self.terms.source.wrapping_add(0x9e37_79b9_7f4a_7c15);
                self.terms.serial = 0;
                (self.circuit, self.peer) = (0, 0);
                (self.state, self.retry) = (State::Opening, Retry::DUE);
            }
            _ => self.seen.bad += 1,
        }
    }

    fn on_ack(&mut self, now: Instant, cum: u64, cause: u64, limit: u64) {
        let is_sure = self.terms.quality.error_control;
        // Without error control the other end's `cum` passes over what is lost: the cause alone tells.
        let known = if is_sure { cum } else { self.smart.cum() };
        let is_possible = cum <= self.smart.top();
        let learned = if is_possible { self.smart.acknowledge(now, known, cause) } else { None };
        let Some(learned) = learned else {
            self.seen.bad += 1;
            return;
        };
        if self.state == State::Confirming {
            self.state = State::Open;
            self.event = Some(SourceEvent::Opened(self.terms));
        }
        if self.is_close_sent() {
            // The other end lives, and its program has yet to take the rest: the close comes less often.
            let wait = (self.smart.trip().answer() * 8).min(self.pace.silence.div_down(16));
            self.retry = Retry { at: now + wait, tries: 1 };
        }
        let window = u64::from(self.terms.window);
        if limit.min(cum + window) > self.limit {
            (self.limit, self.stood) = (limit.min(cum + window), 0);
        }
        if is_sure {
            self.outbox.release(self.limit - window.min(self.limit));
        }
        if !self.flow.on_ack(now, cause, learned, &self.smart) {
            self.take_window();
        }
        if !is_sure {
            self.smart.write_off();
        }
    }

    /// Packet-pair does not fit this path: its server does not serve circuits in turn.
    fn take_window(&mut self) {
        self.flow = Flow::Window(Aimd::new(self.terms.window));
    }

    fn on_close(&mut self, other: Counts) {
        let Counts { tpdus, messages } = self.counts();
        match self.state {
            State::Confirming | State::Open | State::Closing => {
                if other.tpdus > tpdus || other.messages > messages {
                    return self.violated();
                }
                self.told = other;
                self.end(End::Stopped { other });
                self.state = State::Lingering;
            }
            State::Lingering => {}
            State::Opening | State::Ended => {
                self.seen.bad += 1;
                return;
            }
        }
        self.answer = Some(TpduBody::Closed { tpdus, messages });
    }

    // ---- time -----------------------------------------------------------------------------------------

    /// It may be time for something.
    pub fn handle_deadline(&mut self, now: Instant) {
        match self.state {
            State::Opening | State::Confirming if self.retry.is_over(now) => self.end(End::NoAnswer),
            State::Open | State::Closing => {
                if self.heard_at + self.pace.silence <= now {
                    return self.give_up();
                }
                // Time-out and probe may both be due.
                while let Some(expiry) = self.smart.handle_deadline(now) {
                    if self.expires(now, expiry) {
                        return self.give_up();
                    }
                }
            }
            State::Lingering if self.heard_at + self.pace.silence <= now => self.state = State::Ended,
            _ => {}
        }
    }

    /// SMART's time has come for something; true if that is the end.
    fn expires(&mut self, now: Instant, expiry: Expiry) -> bool {
        match expiry {
            Expiry::GivenUp => return true,
            Expiry::TimeOut => {
                if !self.flow.on_time_out(now, &self.smart) {
                    self.take_window();
                }
            }
            Expiry::Probe => {
                let head = self.smart.cum() + 1;
                if self.smart.next_lost() == Some(head) {
                    self.flow.on_probe(head, &self.smart);
                }
            }
        }
        if !self.terms.quality.error_control {
            self.smart.write_off();
        }
        false
    }

    fn give_up(&mut self) {
        self.answer = Some(TpduBody::Reset { why: ResetCause::Silent });
        self.end(End::Silent);
    }

    /// When to call [`Source::handle_deadline`], and to poll.
    pub fn deadline(&mut self, now: Instant) -> Option<(Instant, Timer)> {
        match self.state {
            State::Ended => None,
            State::Lingering => Some((self.heard_at + self.pace.silence, Timer::Silence)),
            State::Opening | State::Confirming => {
                (!self.retry.is_due(now)).then_some((self.retry.at, Timer::Handshake))
            }
            State::Open | State::Closing => {
                let (at, is_time_out) = self.smart.deadline();
                let smart = (at, if is_time_out { Timer::TimeOut } else { Timer::Probe });
                let silent = (self.heard_at + self.pace.silence, Timer::Silence);
                // A TPDU that is due already waits for a grant, and for no deadline.
                let mut first = smart.min(silent);
                let mut later = |at: Instant, timer| {
                    if at > now {
                        first = first.min((at, timer));
                    }
                };
                later(self.ask_at(), Timer::Ask);
                if self.is_close_sent() && self.retry.tries < super::TRIES_MAX {
                    later(self.retry.at, Timer::Close);
                }
                if let Some((_, size)) = self.next_data() {
                    later(self.flow.earliest(now, size, &self.smart), Timer::Bucket);
                }
                Some(first)
            }
        }
    }

    /// When to ask the other end where it is. One without room is asked as soon as data would be sent again,
    /// since its word of new room may be lost; then after twice the time, as long as it has none.
    fn ask_at(&self) -> Instant {
        if self.ask.tries > 0 {
            return self.ask.at;
        }
        let longest = self.pace.silence.div_down(4);
        let soon = self.smart.waits().1 * (1 << self.stood.min(TRIES_MAX));
        self.heard_at.min(self.sent_at) + if self.stands() { soon.min(longest) } else { longest }
    }

    /// True if there is more to send, nothing is on its way, and the other end has no room that is known.
    const fn stands(&self) -> bool {
        let has_more = self.blocked || self.outbox.ready() > self.smart.top();
        has_more && self.is_answered() && self.smart.is_idle() && self.smart.top() >= self.limit
    }

    /// The question where the other end is. Without error control it does not know of what is lost at the end
    /// of all that was sent, and would keep room for it: there the next TPDU of data is the question.
    const fn question(&self) -> Next {
        let next = self.smart.top() + 1;
        let is_sure = self.terms.quality.error_control;
        if !is_sure && self.stands() && next <= self.outbox.ready() { Next::New(next) } else { Next::Ask }
    }

    /// True if the other end answers data: then it holds this one by its room.
    const fn is_answered(&self) -> bool {
        self.terms.quality.error_control || matches!(self.flow, Flow::Window(_) | Flow::Pair(_))
    }

    // ---- TPDUs ----------------------------------------------------------------------------------------

    /// The next thing that the program is to hear.
    pub const fn event(&mut self) -> Option<SourceEvent> {
        self.event.take()
    }

    /// The TPDU of data that is next in turn, and its octets, where windows allow one.
    fn next_data(&mut self) -> Option<(Next, u64)> {
        if !self.flow.has_turn(&mut self.smart) {
            return None;
        }
        let size = |outbox: &Outbox, sequence| (TPDU_HEADER_OCTETS + outbox.get(sequence).1.len()) as u64;
        if let Some(sequence) = self.smart.next_lost() {
            return Some((Next::Again(sequence), size(&self.outbox, sequence)));
        }
        let sequence = self.smart.top() + 1;
        if !self.may_send_new(sequence) {
            return None;
        }
        if sequence > self.outbox.ready() {
            self.outbox.flush();
        }
        (sequence <= self.outbox.ready()).then(|| (Next::New(sequence), size(&self.outbox, sequence)))
    }

    /// True if both windows have room for this new TPDU.
    const fn may_send_new(&self, sequence: u64) -> bool {
        self.smart.has_room_for(sequence) && (sequence <= self.limit || !self.is_answered())
    }

    fn next(&mut self, now: Instant) -> Option<Next> {
        if self.answer.is_some() {
            return Some(Next::Answer);
        }
        match self.state {
            State::Opening | State::Confirming => return self.retry.is_due(now).then_some(Next::Step),
            State::Open | State::Closing => {}
            State::Lingering | State::Ended => return None,
        }
        // Data that nobody answers shows no end that is gone: it must not keep the question back.
        if !self.is_answered() && self.ask_at() <= now {
            return Some(Next::Ask);
        }
        if let Some((next, size)) = self.next_data()
            && self.flow.earliest(now, size, &self.smart) <= now
        {
            return Some(next);
        }
        let is_done = self.smart.is_idle() && self.smart.top() == self.outbox.ready();
        if self.state == State::Closing && is_done && self.retry.is_due(now) {
            return Some(Next::Close);
        }
        (self.ask_at() <= now).then(|| self.question())
    }

    /// Octets of the TPDU that [`Source::transmit`] would write now.
    pub fn wants(&mut self, now: Instant) -> Option<u16> {
        let next = self.next(now)?;
        let (body, data) = self.body(next);
        Some((body.octets() + data.len()) as u16)
    }

    fn body(&self, next: Next) -> (TpduBody, &[u8]) {
        let Counts { tpdus, messages } = self.counts();
        let body = match next {
            Next::Answer => self.answer.unwrap_or(TpduBody::Ask),
            Next::Step if self.state == State::Opening => TpduBody::Open(self.terms),
            Next::Step => TpduBody::Confirm(self.terms),
            Next::Close => TpduBody::Close { tpdus, messages },
            Next::Ask => TpduBody::Ask,
            Next::Again(sequence) | Next::New(sequence) => {
                let (piece, data) = self.outbox.get(sequence);
                let (message, index, last) = (piece.message, piece.index, piece.last);
                return (TpduBody::Data { sequence, message, index, last }, data);
            }
        };
        (body, &[])
    }

    /// Writes the next TPDU into `out`, which has room for the longest one, and returns its length.
    pub fn transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<usize> {
        let next = self.next(now)?;
        let (body, data) = self.body(next);
        let tpdu = Tpdu { to: self.peer, circuit: self.circuit, body };
        let head = tpdu.emit(data.len() as u16, out);
        out[head..head + data.len()].copy_from_slice(data);
        let length = head + data.len();
        self.left(now, next, length as u64);
        Some(length)
    }

    /// It has left.
    fn left(&mut self, now: Instant, next: Next, octets: u64) {
        self.sent_at = now;
        match next {
            Next::Answer => self.answer = None,
            Next::Step | Next::Close => self.retry.leaves(now, self.smart.trip()),
            Next::Ask => {
                self.ask.leaves(now, self.smart.trip());
                self.stood = self.stood.saturating_add(1);
            }
            Next::Again(sequence) => {
                self.flow.left(now, sequence, octets, false, &self.smart);
                self.smart.send_again(now);
            }
            Next::New(sequence) => self.left_new(now, sequence, octets),
        }
    }

    fn left_new(&mut self, now: Instant, sequence: u64, octets: u64) {
        self.stood = if sequence > self.limit { self.stood.saturating_add(1) } else { 0 };
        let behind = sequence + 1;
        let more = !self.smart.has_lost()
            && self.may_send_new(behind)
            && (behind <= self.outbox.ready() || self.outbox.has_part());
        self.flow.left(now, sequence, octets, more, &self.smart);
        self.seen.octets += octets.saturating_sub(TPDU_HEADER_OCTETS as u64);
        self.smart.send(now);
        if !self.terms.quality.error_control {
            self.outbox.release(sequence);
        }
        if !self.is_answered() {
            self.smart.write_off_all();
        }
    }
}
