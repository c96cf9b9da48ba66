//! The sending program, and what survives its death.

use super::receiver::Receiver;
use super::{Messages, PACE, TPDU};
use crate::engine::Stream;
use rota_proto::vc::{End, Request, Source, SourceEvent, stranger};
use rota_units::{BitRate, Instant, Octets};
use rota_wire::{FlowControl, Quality, Tpdu};

/// The service of the only listener.
pub(super) const SERVICE: u32 = 7;
/// The identity of this end.
pub(super) const PEER: u64 = 0x5e;

pub(super) struct Sender {
    messages: Messages,
    source: Option<Source>,
    /// Circuits that have ended, and still answer.
    ended: Vec<Source>,
    /// The first message of this circuit.
    base: u64,
    /// The message that is being written, and how many of its octets have been.
    writing: (u64, usize),
    /// Behind this one the circuit is closed.
    last: u64,
    /// Survives a death: all messages below were certainly taken.
    kept: u64,
    answer: Option<Tpdu>,
    /// Circuits ended in order by this end, by the other one, and otherwise.
    pub(super) ends: [u64; 3],
    pub(super) circuits: u64,
    resent: u64,
}

impl Sender {
    pub(super) fn new(messages: Messages) -> Self {
        Self {
            messages,
            source: None,
            ended: vec![],
            base: 0,
            writing: (0, 0),
            last: 0,
            kept: 0,
            answer: None,
            ends: [0; 3],
            circuits: 0,
            resent: 0,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.kept >= self.messages.all
    }

    pub(super) fn resent(&self) -> u64 {
        self.resent + self.source.as_ref().map_or(0, Source::resent)
    }

    pub(super) fn dies(&mut self) {
        self.resent = self.resent();
        (self.source, self.answer) = (None, None);
        self.ended.clear();
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Source> {
        self.ended.iter_mut().chain(&mut self.source)
    }

    /// Begins a circuit with the first message that was not certainly taken.
    fn open(&mut self, now: Instant, random: &mut Stream) {
        let flows = [FlowControl::Open, FlowControl::Window, FlowControl::Bucket, FlowControl::PacketPair];
        let flow = flows[random.below(4) as usize];
        let bucket = (flow == FlowControl::Bucket).then(|| (Octets::new(4_000), BitRate::from_mbit(20)));
        let request = Request {
            service: SERVICE,
            number: random.draw() as u32,
            window: random.between(1, 64),
            tpdu: TPDU,
            quality: Quality { flow, ..Quality::RELIABLE },
            bucket,
        };
        self.source = Some(Source::open(now, &request, random.draw(), PACE).expect("a sound request"));
        (self.base, self.writing) = (self.kept, (self.kept, 0));
        self.last = self.messages.all.min(self.kept + random.between(1, 600));
        self.circuits += 1;
    }

    pub(super) fn handle(&mut self, now: Instant, tpdu: &Tpdu) {
        if let Some(source) = self.all().find(|source| source.circuit() == tpdu.circuit) {
            return source.handle(now, tpdu);
        }
        match &mut self.source {
            // A circuit without a name yet hears what is for its attempt.
            Some(source) if source.circuit() == 0 => source.handle(now, tpdu),
            _ => self.answer = stranger(tpdu),
        }
    }

    pub(super) fn handle_deadline(&mut self, now: Instant) {
        self.all().for_each(|source| source.handle_deadline(now));
    }

    pub(super) fn drain(&mut self, now: Instant, random: &mut Stream, receiver: &Receiver) {
        self.ended.retain_mut(|source| !(source.is_over() && source.wants(now).is_none()));
        if self.source.is_none() && !self.is_done() {
            self.open(now, random);
        }
        let Some(source) = &mut self.source else { return };
        let taken = self.base + source.counts_taken().messages;
        let known = receiver.taken_of(source.circuit()).map_or(taken, |messages| self.base + messages);
        assert!(taken <= known, "it says that {taken} were taken, and {known} were");
        self.kept = self.kept.max(taken);
        if let Some(SourceEvent::Ended(end)) = source.event() {
            return self.ended(end, receiver);
        }
        self.writes();
    }

    fn writes(&mut self) {
        let Some(source) = &mut self.source else { return };
        let mut part = [0; 1_000];
        while self.writing.0 < self.last {
            let (number, at) = self.writing;
            let all = self.messages.octets(number);
            let count = (all - at).min(part.len());
            for (place, octet) in part[..count].iter_mut().enumerate() {
                *octet = Messages::octet(number, at + place);
            }
            let written = source.write(&part[..count], at + count == all);
            self.writing = if written.ended { (number + 1, 0) } else { (number, at + written.octets) };
            if written.octets < count || (!written.ended && at + count == all) {
                return;
            }
        }
        // It may say no only before the circuit is open.
        if source.counts().messages == self.last - self.base {
            source.close().expect("the last message has its end");
        }
    }

    fn ended(&mut self, end: End, receiver: &Receiver) {
        match end {
            End::Finished { own, other } => {
                assert_eq!(own, other);
                assert_eq!(own.messages, self.last - self.base, "all of it was taken");
                assert!(receiver.wanted >= self.last, "all of it was taken");
                self.kept = self.last;
                self.ends[0] += 1;
            }
            End::Stopped { other } => {
                self.kept = self.kept.max(self.base + other.messages);
                assert!(receiver.wanted >= self.kept, "{} of {} were taken", receiver.wanted, self.kept);
                self.ends[1] += 1;
            }
            End::Violated | End::Aborted => panic!("both ends are sound: {end:?}"),
            End::Refused(_) | End::Reset(_) | End::Declined(_) | End::NoAnswer | End::Silent => {
                self.ends[2] += 1
            }
        }
        self.resent = self.resent();
        self.ended.extend(self.source.take());
    }

    pub(super) fn wants(&mut self, now: Instant) -> bool {
        self.answer.is_some() || self.all().any(|source| source.wants(now).is_some())
    }

    pub(super) fn transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<usize> {
        if let Some(answer) = self.answer.take() {
            return Some(answer.emit(0, out));
        }
        self.all().find_map(|source| source.transmit(now, out))
    }

    pub(super) fn deadline(&mut self, now: Instant) -> Instant {
        let all = self.all().filter_map(|source| source.deadline(now));
        all.map(|(at, _)| at).min().unwrap_or(Instant::FAR)
    }
}
