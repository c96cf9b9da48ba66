//! The two ends of a circuit, and their programs: the shipping machines where it is reliable, and whole
//! messages or none where it has no error control.

use super::{CircuitPlan, Service, octet};
use rota_proto::vc::{
    End, LeakyBucket, Listener, ListenerLimits, Pace, Request, Sink, SinkEvent, Source, SourceEvent,
};
use rota_proto::watermarks::{Fate, WholeMessages};
use rota_units::{Instant, Octets, Span};
use rota_wire::{CookieKey, Quality, TPDU_HEADER_OCTETS, Tpdu, TpduBody};

/// Times of a host of the paper: its round trip is milliseconds, and a path of cells keeps the order.
const PACE: Pace = Pace {
    first: Span::from_millis(10),
    least: Span::from_millis(2),
    most: Span::from_millis(500),
    silence: Span::from_millis(20_000),
    reorder: 1,
};

/// TPDUs without error control that the transport has from its program at most.
const QUEUE: u64 = 8;

/// The machine of a sender.
#[derive(Debug)]
enum Sends {
    Reliable(Box<Source>),
    /// The bucket, the place of the TPDU that is next, how many wait, and the number of the last one.
    Plain {
        bucket: Option<LeakyBucket>,
        next: (u64, usize),
        ready: u64,
        sequence: u64,
    },
}

/// The sending end and its program.
#[derive(Debug)]
pub(super) struct SendEnd {
    plan: CircuitPlan,
    name: u64,
    machine: Sends,
    /// The message that is being written, and how many of its octets have been.
    writing: (u64, usize),
    is_open: bool,
    /// The transport had no more room: the program sleeps until something comes.
    is_asleep: bool,
    pub(super) end: Option<End>,
}

/// Octets of the TPDU of a message that begins there.
fn part(plan: &CircuitPlan, at: usize) -> usize {
    (plan.octets - at).min(plan.tpdu.into())
}

impl SendEnd {
    pub(super) fn new(plan: &CircuitPlan, number: usize) -> Self {
        let machine = match plan.service {
            Service::Reliable { flow, window } => {
                let quality = Quality { flow, ..Quality::RELIABLE };
                let (service, number) = (number as u32, number as u32 + 1);
                let request = Request { service, number, window, tpdu: plan.tpdu, quality, bucket: None };
                let source = Source::open(Instant::ZERO, &request, u64::from(number), PACE);
                Sends::Reliable(Box::new(source.unwrap_or_else(|unsound| panic!("{unsound}"))))
            }
            Service::Guaranteed { rate } => {
                let depth = Octets::new(2 * (u64::from(plan.tpdu) + TPDU_HEADER_OCTETS as u64));
                let bucket = Some(LeakyBucket::new(Instant::ZERO, depth, rate));
                Sends::Plain { bucket, next: (0, 0), ready: 0, sequence: 0 }
            }
            Service::BestEffort => Sends::Plain { bucket: None, next: (0, 0), ready: 0, sequence: 0 },
        };
        Self {
            plan: *plan,
            name: number as u64 + 1,
            machine,
            writing: (0, 0),
            is_open: false,
            is_asleep: false,
            end: None,
        }
    }

    /// Octets of the TPDU that the program can write now, and whether it begins a message.
    pub(super) fn can_write(&self) -> Option<(usize, bool)> {
        let (number, at) = self.writing;
        if number >= self.plan.messages {
            return None;
        }
        let has_room = match &self.machine {
            Sends::Reliable(source) => {
                let (ready, taken) = (source.counts().tpdus, source.counts_taken().tpdus);
                self.is_open && !self.is_asleep && ready - taken < u64::from(source.terms().window)
            }
            Sends::Plain { ready, .. } => *ready < QUEUE,
        };
        has_room.then(|| (part(&self.plan, at), at == 0))
    }

    /// The program writes one TPDU, as far as there is room.
    pub(super) fn write(&mut self) {
        let (number, at) = self.writing;
        let count = part(&self.plan, at);
        let is_end = at + count == self.plan.octets;
        let (octets, ended) = match &mut self.machine {
            Sends::Reliable(source) => {
                let octets: Vec<u8> = (at..at + count).map(|at| octet(number, at)).collect();
                let written = source.write(&octets, is_end);
                (written.octets, written.ended)
            }
            Sends::Plain { ready, .. } => {
                *ready += 1;
                (count, is_end)
            }
        };
        self.is_asleep = octets < count || ended != is_end;
        self.writing = if ended { (number + 1, 0) } else { (number, at + octets) };
        if self.writing.0 == self.plan.messages
            && let Sends::Reliable(source) = &mut self.machine
        {
            source.close().expect("the last message has its end");
        }
    }

    pub(super) fn handle(&mut self, now: Instant, tpdu: &Tpdu) {
        if let Sends::Reliable(source) = &mut self.machine {
            source.handle(now, tpdu);
            self.is_asleep = false;
            self.hears();
        }
    }

    pub(super) fn handle_deadline(&mut self, now: Instant) {
        if let Sends::Reliable(source) = &mut self.machine {
            source.handle_deadline(now);
            self.hears();
        }
    }

    fn hears(&mut self) {
        let Sends::Reliable(source) = &mut self.machine else { return };
        match source.event() {
            Some(SourceEvent::Opened(_)) => self.is_open = true,
            Some(SourceEvent::Ended(end)) => self.end = Some(end),
            None => {}
        }
    }

    /// Octets of the TPDU that may leave now.
    pub(super) fn wants(&mut self, now: Instant) -> Option<usize> {
        match &mut self.machine {
            Sends::Reliable(source) => source.wants(now).map(usize::from),
            Sends::Plain { bucket, next, ready, .. } if *ready > 0 => {
                let size = TPDU_HEADER_OCTETS + part(&self.plan, next.1);
                let at = bucket.as_ref().map(|bucket| bucket.earliest(now, Octets::new(size as u64)));
                at.is_none_or(|at| at <= now).then_some(size)
            }
            Sends::Plain { .. } => None,
        }
    }

    /// When to look again.
    pub(super) fn deadline(&mut self, now: Instant) -> Instant {
        match &mut self.machine {
            Sends::Reliable(source) => source.deadline(now).map_or(Instant::FAR, |(at, _)| at),
            Sends::Plain { bucket: Some(bucket), next, ready, .. } if *ready > 0 => {
                let size = Octets::new((TPDU_HEADER_OCTETS + part(&self.plan, next.1)) as u64);
                Some(bucket.earliest(now, size)).filter(|at| *at > now).unwrap_or(Instant::FAR)
            }
            Sends::Plain { .. } => Instant::FAR,
        }
    }

    /// Writes the next TPDU.
    pub(super) fn transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<usize> {
        let size = self.wants(now)?;
        match &mut self.machine {
            Sends::Reliable(source) => source.transmit(now, out),
            Sends::Plain { bucket, next, ready, sequence } => {
                if let Some(bucket) = bucket {
                    bucket.take(now, Octets::new(size as u64));
                }
                let (number, at) = *next;
                let count = part(&self.plan, at);
                let last = at + count == self.plan.octets;
                let index = (at / usize::from(self.plan.tpdu)) as u32;
                *sequence += 1;
                let sequence = *sequence;
                let body = TpduBody::Data { sequence, message: number as u32, index, last };
                let head = Tpdu { to: 0, circuit: self.name, body }.emit(count as u16, out);
                for (place, to) in out[head..head + count].iter_mut().enumerate() {
                    *to = octet(number, at + place);
                }
                (*next, *ready) = (if last { (number + 1, 0) } else { (number, at + count) }, *ready - 1);
                Some(head + count)
            }
        }
    }

    /// TPDUs that were sent again.
    pub(super) fn resent(&self) -> u64 {
        match &self.machine {
            Sends::Reliable(source) => source.resent(),
            Sends::Plain { .. } => 0,
        }
    }

    /// Whole messages that its program has written.
    pub(super) const fn written(&self) -> u64 {
        self.writing.0
    }
}

/// The machine of a receiver.
#[derive(Debug)]
enum Takes {
    Reliable { listener: Box<Listener>, answer: Option<Tpdu>, sink: Option<Box<Sink>> },
    Plain(WholeMessages),
}

/// The receiving end and its program.
#[derive(Debug)]
pub(super) struct TakeEnd {
    plan: CircuitPlan,
    machine: Takes,
    /// The message that is coming: its number, and the octets of it that have.
    coming: (u64, usize),
    /// Whole messages.
    pub(super) messages: u64,
}

/// What a TPDU of data is to its receiver.
pub(super) enum Worth {
    /// Work, behind so many TPDUs of its message; if true the message is complete and is taken by a call.
    Work(u32, bool),
    /// Not even that: its message has a gap.
    Nothing,
}

impl TakeEnd {
    pub(super) fn new(plan: &CircuitPlan, number: usize) -> Self {
        let machine = match plan.service {
            Service::Reliable { .. } => {
                let limits = ListenerLimits { window: 16_384, tpdu: plan.tpdu, half_open: 1 };
                let listener = Listener::new(number as u32, CookieKey::new([7; 16]), limits, PACE);
                Takes::Reliable { listener: Box::new(listener), answer: None, sink: None }
            }
            _ => Takes::Plain(WholeMessages::default()),
        };
        Self { plan: *plan, machine, coming: (0, 0), messages: 0 }
    }

    /// A TPDU is looked at, before any work.
    pub(super) fn judge(&mut self, tpdu: &Tpdu) -> Worth {
        let TpduBody::Data { message, index, last, .. } = tpdu.body else { return Worth::Work(0, false) };
        let Takes::Plain(whole) = &mut self.machine else { return Worth::Work(index, last) };
        match whole.judge(message, index, last).0 {
            Fate::Kept(complete) => Worth::Work(index, complete),
            Fate::Dropped => Worth::Nothing,
        }
    }

    /// The work on a TPDU is done; it was worth it.
    pub(super) fn handle(&mut self, now: Instant, tpdu: &Tpdu, data: &[u8]) {
        match &mut self.machine {
            Takes::Plain(_) => {
                let TpduBody::Data { message, index, last, .. } = tpdu.body else { return };
                if index == 0 {
                    self.coming = (message.into(), 0);
                }
                self.program(message.into(), data, last);
            }
            Takes::Reliable { listener, sink, .. } => {
                if let Some(sink) = sink
                    && sink.circuit() == tpdu.circuit
                {
                    sink.handle(now, tpdu, data);
                } else {
                    listener.handle(now, 1, tpdu, true);
                    if let Some(offer) = listener.offer() {
                        *sink = Some(Box::new(Sink::new(now, &offer, PACE)));
                    }
                }
                self.reads();
            }
        }
    }

    /// The program takes all that is in sequence.
    fn reads(&mut self) {
        let Takes::Reliable { sink: Some(sink), .. } = &mut self.machine else { return };
        if let Some(SinkEvent::Ended(End::Violated)) = sink.event() {
            panic!("the sender is sound");
        }
        let mut taken = vec![];
        while let Some((piece, data)) = sink.peek() {
            taken.push((data.to_vec(), piece.last));
            sink.take();
        }
        for (data, last) in taken {
            self.program(self.messages, &data, last);
        }
    }

    /// The program has the next octets of a message. Panics where they are not those that were sent.
    fn program(&mut self, message: u64, data: &[u8], last: bool) {
        let (number, at) = self.coming;
        assert_eq!(number, message, "a message was lost, doubled or reordered");
        let is_same = |(place, is): (usize, &u8)| *is == octet(message, at + place);
        assert!(data.iter().enumerate().all(is_same), "message {message} was altered");
        self.coming.1 += data.len();
        if last {
            assert_eq!(self.coming.1, self.plan.octets, "message {message} was cut or grew");
            self.coming = (message + 1, 0);
            self.messages += 1;
        }
    }

    pub(super) fn handle_deadline(&mut self, now: Instant) {
        if let Takes::Reliable { listener, sink, .. } = &mut self.machine {
            listener.handle_deadline(now);
            if let Some(sink) = sink {
                sink.handle_deadline(now);
            }
        }
    }

    pub(super) fn deadline(&self, now: Instant) -> Instant {
        let Takes::Reliable { listener, sink, .. } = &self.machine else { return Instant::FAR };
        let sink = sink.as_ref().and_then(|sink| sink.deadline(now));
        sink.into_iter().chain(listener.deadline(now)).map(|(at, _)| at).min().unwrap_or(Instant::FAR)
    }

    /// Writes what is to go back.
    pub(super) fn transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<usize> {
        let Takes::Reliable { answer, sink, .. } = &mut self.machine else { return None };
        if let Some(answer) = answer.take() {
            return Some(answer.emit(0, out));
        }
        sink.as_mut().and_then(|sink| sink.transmit(now, out))
    }

    /// True if something is to go back.
    pub(super) fn wants(&mut self, now: Instant) -> bool {
        let Takes::Reliable { listener, answer, sink } = &mut self.machine else { return false };
        if answer.is_none() {
            *answer = listener.poll(now).map(|(_, tpdu)| tpdu);
        }
        answer.is_some() || sink.as_ref().is_some_and(|sink| sink.wants(now).is_some())
    }
}
