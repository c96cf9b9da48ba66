//! Circuits of the native-mode transport on a bad wire: the shipping machines of `rota_proto::vc` between two
//! programs that die, stand still and come back (TRANSPORT-R81).
//!
//! The sender's program sends numbered messages over one circuit after the other. It keeps the number of the
//! first message that was not certainly taken, and begins the next circuit with that. The receiver's program
//! keeps the number of the message that it wants next, and leaves out what it has had: an end that is not in
//! order leaves messages in doubt. The onlooker sees both, and asserts at each message.

mod pair;
mod receiver;
pub mod recovery;
pub mod resends;
mod sender;
pub mod shared;

pub use pair::Pair;
pub use rota_proto::vc::Pace;

use crate::engine::{Digest, Engine, Stamped, Stream};
use crate::faults::{Happened, Select, WireFault, Wires};
use receiver::Receiver;
use rota_units::{Instant, Span};
use rota_wire::{
    DEFAULT_ETHERTYPE, ETHERNET_HEADER_OCTETS, FrameView, Generation, Key, Kind, LINK_HEADER_OCTETS,
    LinkHeader, MacAddr, PayloadKind, TAG_OCTETS, TPDU_HEADER_OCTETS, Tpdu, emit_frame, verify,
};
use sender::Sender;

/// Octets of data in a TPDU: small, so that many messages have several.
const TPDU: u16 = 256;
const BODY_AT: usize = ETHERNET_HEADER_OCTETS + LINK_HEADER_OCTETS;
const FRAME_MAX: usize = BODY_AT + TPDU_HEADER_OCTETS + TPDU as usize + TAG_OCTETS;
/// No node has this kind: what carries TPDUs on a real wire is not built yet.
const CARRIER: Kind = Kind::Unknown(0x7e);
const WIRE: Span = Span::from_micros(50);
/// The time of an octet at 100 Mbit/s.
const OCTET: Span = Span::from_nanos(80);
const PACE: Pace = Pace {
    first: Span::from_millis(1),
    least: Span::from_micros(500),
    most: Span::from_millis(50),
    silence: Span::from_millis(400),
    reorder: 3,
};
const SENDER: usize = 0;
const RECEIVER: usize = 1;

/// The plan of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Messages in all.
    pub messages: u64,
    /// Frames lost, of a million.
    pub loss_ppm: u32,
    /// Frames that come more than once, of a million.
    pub double_ppm: u32,
    /// Frames that are overtaken, of a million.
    pub late_ppm: u32,
    /// Frames whose octets are changed, of a million.
    pub corrupt_ppm: u32,
    /// The wire is cut once in this time, for up to half a second.
    pub partition: Option<Span>,
    /// Each end dies once in this time, and begins anew.
    pub restart: Option<Span>,
}

impl Plan {
    /// All that can go wrong.
    pub const fn all(messages: u64) -> Self {
        Self {
            messages,
            loss_ppm: 30_000,
            double_ppm: 20_000,
            late_ppm: 30_000,
            corrupt_ppm: 10_000,
            partition: Some(Span::from_millis(400)),
            restart: Some(Span::from_millis(150)),
        }
    }
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Messages taken, each once.
    pub taken: u64,
    /// Messages that were sent again over a new circuit because nobody knew whether they had been taken, and
    /// had been.
    pub doubts: u64,
    /// Circuits that were opened, and ended in order by the sender, by the receiver, and otherwise.
    pub circuits: u64,
    /// See `circuits`.
    pub finished: u64,
    /// See `circuits`.
    pub stopped: u64,
    /// See `circuits`.
    pub broken: u64,
    /// TPDUs of data that were sent again.
    pub resent: u64,
    /// Frames that were lost or cut, doubled, overtaken, and altered.
    pub faults: [u64; 4],
    /// Frames that were altered, and refused for their tag.
    pub refused: u64,
    /// Lives of the two ends that have ended.
    pub deaths: [u64; 2],
    /// How long it took, in virtual time.
    pub took: Span,
    /// The same seed and plan give the same.
    pub hash: Digest,
}

enum Event {
    Arrives {
        to: usize,
        frame: Vec<u8>,
    },
    Deadline,
    Port {
        end: usize,
    },
    /// The receiver's program of this life reads.
    Reads {
        life: u64,
    },
    Dies {
        end: usize,
    },
    Parts,
}

impl Stamped for Event {
    fn stamp(&self) -> u64 {
        match self {
            Self::Arrives { to, frame } => 100 + *to as u64 + frame.len() as u64,
            Self::Deadline => 1,
            Self::Port { end } => 2 + *end as u64,
            Self::Reads { life } => life.rotate_left(8),
            Self::Dies { end } => 4 + *end as u64,
            Self::Parts => 6,
        }
    }
}

/// The messages of a run: the size and octets of each follow from its number.
#[derive(Clone, Copy)]
struct Messages {
    seed: u64,
    all: u64,
}

impl Messages {
    /// Most are small, and one in a hundred is longer than a window.
    fn octets(self, number: u64) -> usize {
        let drawn = Stream::named(self.seed ^ number, "size").draw();
        let longest = if drawn.is_multiple_of(100) { 30_000 } else { 900 };
        8 + (drawn >> 8) as usize % longest
    }

    fn octet(number: u64, at: usize) -> u8 {
        let mixed = (number ^ (at as u64 >> 3)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if at < 8 { number.to_be_bytes()[at] } else { mixed.to_be_bytes()[at & 7] }
    }
}

/// Two ends, the wire between them, and an onlooker.
pub struct Circuits {
    plan: Plan,
    engine: Engine<Event>,
    wires: Wires,
    random: Stream,
    key: Key,
    sender: Sender,
    receiver: Receiver,
    armed: Instant,
    port_free: [Instant; 2],
    port_asked: [bool; 2],
    seen: Seen,
}

impl Circuits {
    /// Before the first message.
    pub fn new(seed: u64, plan: Plan) -> Self {
        let mut wires = Wires::new(DEFAULT_ETHERTYPE, Span::ZERO);
        let late = Span::from_millis(2);
        let faults = [
            WireFault::Loss { ppm: plan.loss_ppm, burst: 2 },
            WireFault::Duplicate { ppm: plan.double_ppm, copies: 2, delay: Span::from_millis(5) },
            WireFault::Delay { ppm: plan.late_ppm, min: Span::ZERO, max: late },
            WireFault::Corrupt { ppm: plan.corrupt_ppm, bits: 6 },
            WireFault::Resize { ppm: plan.corrupt_ppm / 10 },
        ];
        for (k, fault) in faults.into_iter().enumerate() {
            wires.disturb(fault, Select::all(), Instant::FAR, Stream::named(seed, &format!("fault {k}")));
        }
        let mut random = Stream::named(seed, "programs");
        let mut engine = Engine::new(Instant::ZERO);
        for end in [SENDER, RECEIVER] {
            if let Some(at) = plan.restart.map(|life| Instant::ZERO + within(&mut random, life * 2)) {
                engine.schedule(at, Event::Dies { end });
            }
        }
        if let Some(at) = plan.partition.map(|every| Instant::ZERO + within(&mut random, every * 2)) {
            engine.schedule(at, Event::Parts);
        }
        let messages = Messages { seed, all: plan.messages };
        Self {
            plan,
            engine,
            wires,
            key: Key::new([7; 32]),
            sender: Sender::new(messages),
            receiver: Receiver::new(messages, random.draw()),
            random,
            armed: Instant::FAR,
            port_free: [Instant::ZERO; 2],
            port_asked: [false; 2],
            seen: Seen::default(),
        }
    }

    /// The counts so far.
    pub fn seen(&self) -> Seen {
        let (hash, took) = (self.engine.event_hash(), self.engine.now().since(Instant::ZERO));
        let (resent, [finished, stopped, broken]) = (self.sender.resent(), self.sender.ends);
        let circuits = self.sender.circuits;
        let (taken, doubts) = (self.receiver.wanted, self.receiver.doubts);
        Seen { taken, doubts, circuits, finished, stopped, broken, resent, took, hash, ..self.seen }
    }

    /// Goes on for so many events; false when all messages have been taken and their sender knows it. Panics
    /// where a message is lost, doubled, reordered or altered, or where an end says what is not so.
    pub fn step(&mut self, events: u64) -> bool {
        for _ in 0..events {
            if self.sender.is_done() {
                return false;
            }
            self.drain();
            let event = self.engine.next(Instant::FAR).expect("a circuit that waits has a deadline");
            assert!(!self.engine.is_stuck(), "time stands still at {:?}", self.engine.now());
            self.happens(event);
        }
        true
    }

    /// Runs to the end.
    pub fn run(mut self) -> Seen {
        while self.step(100_000) {}
        self.seen()
    }

    fn happens(&mut self, event: Event) {
        let now = self.engine.now();
        match event {
            Event::Arrives { to, frame } => self.arrives(to, &frame),
            Event::Deadline => {
                self.sender.handle_deadline(now);
                self.receiver.handle_deadline(now);
            }
            Event::Port { end } => self.sends(end),
            Event::Reads { life } => self.receiver.reads(life, &mut self.random),
            Event::Dies { end } => self.dies(end),
            Event::Parts => self.parts(),
        }
    }

    /// Lets both programs hear and do what they can, asks the port for what waits, and sets the clock.
    fn drain(&mut self) {
        let now = self.engine.now();
        self.sender.drain(now, &mut self.random, &self.receiver);
        if let Some(pause) = self.receiver.drain(now, &mut self.random) {
            self.engine.schedule(now + pause, Event::Reads { life: self.receiver.life });
        }
        for (end, wants) in [self.sender.wants(now), self.receiver.wants(now)].into_iter().enumerate() {
            if wants && !self.port_asked[end] {
                self.port_asked[end] = true;
                self.engine.schedule(self.port_free[end], Event::Port { end });
            }
        }
        let at = self.sender.deadline(now).min(self.receiver.deadline(now));
        if at != self.armed {
            self.armed = at;
            if at < Instant::FAR {
                self.engine.schedule(at, Event::Deadline);
            }
        }
    }

    /// The port has a grant for one TPDU of this end.
    fn sends(&mut self, end: usize) {
        let now = self.engine.now();
        self.port_asked[end] = false;
        let mut frame = [0; FRAME_MAX];
        let body = &mut frame[BODY_AT..];
        let sent =
            if end == SENDER { self.sender.transmit(now, body) } else { self.receiver.transmit(now, body) };
        let Some(octets) = sent else { return };
        let generation = Generation { counter: 0, station: 0 };
        let (payload, source) = (PayloadKind::None, end as u16 + 1);
        let (key_epoch, segment, incarnation, seq) = (0, 0, 1, 0);
        let header =
            LinkHeader { kind: CARRIER, key_epoch, payload, source, segment, incarnation, generation, seq };
        let mac = |end: usize| MacAddr([2, 0, 0, 0, 0, end as u8]);
        let (to, from) = (mac(1 - end), mac(end));
        let length = emit_frame(&mut frame, to, from, DEFAULT_ETHERTYPE, &header, octets, &self.key);
        self.port_free[end] = now + OCTET * length as u64;
        self.passes(end, frame[..length].into());
    }

    fn passes(&mut self, from: usize, frame: Vec<u8>) {
        let (mut strikes, mut passed) = (Vec::new(), Vec::new());
        let leaves = self.port_free[from];
        self.wires.pass(self.engine.now(), from, 1 - from, frame.into(), &mut strikes, &mut passed);
        for strike in strikes {
            let place = match strike.what {
                Happened::FrameLost | Happened::Cut => 0,
                Happened::Duplicated => 1,
                Happened::DelayedWithin | Happened::DelayedBeyond => 2,
                _ => 3,
            };
            self.seen.faults[place] += 1;
        }
        for copy in passed {
            let event = Event::Arrives { to: 1 - from, frame: copy.frame.to_vec() };
            self.engine.schedule(leaves + WIRE + copy.late, event);
        }
    }

    /// A frame came. Only one with a right tag is read, so all that is read was sent.
    fn arrives(&mut self, to: usize, frame: &[u8]) {
        let view = FrameView::parse(frame, DEFAULT_ETHERTYPE).ok().filter(|view| verify(view, &self.key));
        let Some(view) = view else {
            self.seen.refused += 1;
            return;
        };
        let (tpdu, data) = Tpdu::parse(view.body()).expect("what is proven was written by a machine");
        let now = self.engine.now();
        if to == SENDER {
            self.sender.handle(now, &tpdu);
        } else {
            self.receiver.handle(now, &tpdu, data);
        }
    }

    fn dies(&mut self, end: usize) {
        self.seen.deaths[end] += 1;
        if end == SENDER {
            self.sender.dies();
        } else {
            self.receiver.dies(self.random.draw());
        }
        if let Some(life) = self.plan.restart {
            let at = self.engine.now() + within(&mut self.random, life * 2);
            self.engine.schedule(at, Event::Dies { end });
        }
    }

    fn parts(&mut self) {
        let now = self.engine.now();
        let until = now + within(&mut self.random, Span::from_millis(500));
        self.wires.disturb(WireFault::Cut, Select::all(), until, Stream::named(0, "cut"));
        if let Some(every) = self.plan.partition {
            let at = until + within(&mut self.random, every * 2);
            self.engine.schedule(at, Event::Parts);
        }
    }
}

fn within(random: &mut Stream, span: Span) -> Span {
    Span::from_nanos(random.below(span.as_nanos()))
}
