//! Circuits that share one bottleneck (TRANSPORT-R32, TRANSPORT-R89, TRANSPORT-R90, TRANSPORT-R93): the
//! shipping machines of `rota_proto::vc`, each with an access line of its own, in front of one slow server.
//! The server serves circuits in turn, or has one queue. Behind it a line may lose frames at random. The
//! programs write and read all the time.

use super::Digest;
use crate::engine::{Engine, Stamped, Stream};
use rota_proto::vc::{Listener, ListenerLimits, Pace, Request, Sink, SinkEvent, Source, SourceEvent};
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::{CookieKey, FlowControl, Quality, TPDU_HEADER_OCTETS, Tpdu};
use std::collections::VecDeque;

/// Octets of data in a TPDU.
pub const TPDU: u16 = 1_400;
const FRAME_MAX: usize = TPDU_HEADER_OCTETS + TPDU as usize;
const MESSAGE: [u8; TPDU as usize] = [0x5a; TPDU as usize];
const SERVICE: u32 = 7;
/// So much faster than the bottleneck each access line is.
const ACCESS: u64 = 10;
const PACE: Pace = Pace { first: Span::from_millis(30), ..Pace::ETHERNET };

/// How the bottleneck serves circuits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// One frame of each circuit in turn.
    Turns,
    /// In the order of arrival.
    OneQueue,
}

/// The plan of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedPlan {
    /// Circuits.
    pub circuits: usize,
    /// Their flow control.
    pub flow: FlowControl,
    /// How the bottleneck serves them.
    pub discipline: Discipline,
    /// Its rate.
    pub rate: BitRate,
    /// Frames that it has room for: of each circuit, or in the one queue.
    pub room: usize,
    /// One way without queues.
    pub delay: Span,
    /// Frames lost behind it, of a million.
    pub loss_ppm: u32,
    /// TPDUs of the error-control window.
    pub window: u32,
    /// Octets that are taken before this are not counted.
    pub warm: Span,
    /// How long is counted.
    pub span: Span,
}

/// Eight circuits through 20 Mbit/s and 10 ms one way.
pub const EIGHT: SharedPlan = SharedPlan {
    circuits: 8,
    flow: FlowControl::PacketPair,
    discipline: Discipline::Turns,
    rate: BitRate::from_mbit(20),
    room: 100,
    delay: Span::from_millis(10),
    loss_ppm: 0,
    window: 256,
    warm: Span::from_millis(5_000),
    span: Span::from_millis(30_000),
};

/// One circuit through 50 Mbit/s and 10 ms one way, of whose frames 1 % are lost.
pub const LOSSY: SharedPlan = SharedPlan {
    circuits: 1,
    rate: BitRate::from_mbit(50),
    loss_ppm: 10_000,
    window: 1_024,
    span: Span::from_millis(20_000),
    ..EIGHT
};

/// Octets that a window of additive increase and multiplicative decrease carries in the time of a plan with
/// 1 % loss: 1.22·MSS/(RTT·√p), and 1/√p is 10.
pub const fn aimd_octets(plan: &SharedPlan) -> u64 {
    let trip = 2 * plan.delay.as_nanos();
    122 * 10 * TPDU as u64 * plan.span.as_nanos() / (100 * trip)
}

/// What one circuit had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Octets that its program took in the time that counts.
    pub octets: u64,
    /// TPDUs that were sent again.
    pub resent: u64,
    /// The flow control that was in force at the end.
    pub flow: FlowControl,
}

/// What a run showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Of each circuit.
    pub each: Vec<Share>,
    /// Frames for which the bottleneck had no room.
    pub dropped: u64,
    /// The same seed and plan give the same.
    pub hash: Digest,
}

impl Shares {
    /// Octets of all circuits.
    pub fn octets(&self) -> u64 {
        self.each.iter().map(|share| share.octets).sum()
    }

    /// Jain's index in thousandths, rounded down.
    pub fn jain(&self) -> u64 {
        let of = |share: &Share| u128::from(share.octets);
        let (sum, squares) = self
            .each
            .iter()
            .fold((0, 0), |(sum, squares), share| (sum + of(share), squares + of(share) * of(share)));
        let index = 1_000 * sum * sum / (squares * self.each.len() as u128).max(1);
        u64::try_from(index).unwrap_or(0)
    }

    /// How far the share farthest from the mean is from it, in thousandths of the mean, rounded up.
    pub fn farthest(&self) -> u64 {
        let (count, sum) = (self.each.len() as u64, self.octets().max(1));
        let off = self.each.iter().map(|share| (share.octets * count).abs_diff(sum)).max().unwrap_or(0);
        (off * 1_000).div_ceil(sum)
    }
}

struct Frame {
    circuit: usize,
    octets: Vec<u8>,
}

enum Event {
    /// The program of a circuit begins.
    Begins(usize),
    /// A sender has a grant.
    Port(usize),
    /// A frame comes to the bottleneck.
    Comes(Frame),
    /// It has served one.
    Served(Frame),
    /// A frame comes to an end; true: the receiver.
    Arrives(Frame, bool),
    Deadline(usize),
}

impl Stamped for Event {
    fn stamp(&self) -> u64 {
        match self {
            Self::Begins(circuit) => 1 + *circuit as u64,
            Self::Port(circuit) => 100 + *circuit as u64,
            Self::Comes(frame) => 200 + frame.circuit as u64,
            Self::Served(frame) => 300 + frame.circuit as u64,
            Self::Arrives(frame, receiver) => 400 + frame.circuit as u64 + 100 * u64::from(*receiver),
            Self::Deadline(circuit) => 600 + *circuit as u64,
        }
    }
}

/// The slow server.
struct Bottleneck {
    queues: Vec<VecDeque<Frame>>,
    room: usize,
    /// The queue that was served last.
    turn: usize,
    busy: bool,
    dropped: u64,
}

impl Bottleneck {
    fn new(plan: &SharedPlan) -> Self {
        let count = if plan.discipline == Discipline::Turns { plan.circuits } else { 1 };
        let queues = (0..count).map(|_| VecDeque::new()).collect();
        Self { queues, room: plan.room, turn: 0, busy: false, dropped: 0 }
    }

    fn put(&mut self, frame: Frame) {
        let count = self.queues.len();
        let queue = &mut self.queues[frame.circuit % count];
        if queue.len() < self.room {
            queue.push_back(frame);
        } else {
            self.dropped += 1;
        }
    }

    /// The next frame to be served.
    fn next(&mut self) -> Option<Frame> {
        let count = self.queues.len();
        let turn = (1..=count).map(|k| (self.turn + k) % count).find(|at| !self.queues[*at].is_empty())?;
        self.turn = turn;
        self.queues[turn].pop_front()
    }
}

/// One circuit and its two programs.
struct Circuit {
    source: Source,
    listener: Listener,
    sink: Option<Sink>,
    port_free: Instant,
    port_asked: bool,
    armed: Instant,
    begun: bool,
    octets: u64,
}

struct World {
    plan: SharedPlan,
    engine: Engine<Event>,
    random: Stream,
    bottleneck: Bottleneck,
    circuits: Vec<Circuit>,
    counts_from: Instant,
}

/// Runs the plan. Panics where a circuit ends.
pub fn share(seed: u64, plan: &SharedPlan) -> Shares {
    let mut world = World::new(seed, *plan);
    let until = world.counts_from + plan.span;
    while let Some(event) = world.engine.next(until) {
        assert!(!world.engine.is_stuck(), "time stands still at {:?}", world.engine.now());
        world.happens(event);
    }
    let each = world.circuits.iter().map(|circuit| Share {
        octets: circuit.octets,
        resent: circuit.source.resent(),
        flow: circuit.source.flow(),
    });
    Shares { each: each.collect(), dropped: world.bottleneck.dropped, hash: world.engine.event_hash() }
}

impl World {
    fn new(seed: u64, plan: SharedPlan) -> Self {
        let mut engine = Engine::new(Instant::ZERO);
        let mut random = Stream::named(seed, "shared");
        let quality = Quality { flow: plan.flow, ..Quality::RELIABLE };
        let limits = ListenerLimits { window: plan.window, tpdu: TPDU, half_open: 1 };
        let circuits = (0..plan.circuits).map(|k| {
            let begins = Instant::ZERO + Span::from_nanos(random.below(plan.warm.as_nanos() / 4));
            engine.schedule(begins, Event::Begins(k));
            let window = u64::from(plan.window);
            let request =
                Request { service: SERVICE, number: k as u32, window, tpdu: TPDU, quality, bucket: None };
            Circuit {
                source: Source::open(begins, &request, random.draw(), PACE).expect("a sound request"),
                listener: Listener::new(SERVICE, CookieKey::new([k as u8; 16]), limits, PACE),
                sink: None,
                port_free: begins,
                port_asked: false,
                armed: Instant::FAR,
                begun: false,
                octets: 0,
            }
        });
        let circuits = circuits.collect();
        let (bottleneck, counts_from) = (Bottleneck::new(&plan), Instant::ZERO + plan.warm);
        Self { plan, engine, random, bottleneck, circuits, counts_from }
    }

    fn happens(&mut self, event: Event) {
        let now = self.engine.now();
        let circuit = match event {
            Event::Begins(circuit) => {
                self.circuits[circuit].begun = true;
                circuit
            }
            Event::Port(circuit) => {
                self.sends(circuit);
                circuit
            }
            Event::Comes(frame) => {
                self.bottleneck.put(frame);
                return self.serves();
            }
            Event::Served(frame) => {
                self.bottleneck.busy = false;
                if !self.random.happens(self.plan.loss_ppm) {
                    self.engine.schedule(now + self.plan.delay.div_down(2), Event::Arrives(frame, true));
                }
                return self.serves();
            }
            Event::Arrives(frame, to_receiver) => {
                self.arrives(&frame, to_receiver);
                frame.circuit
            }
            Event::Deadline(circuit) => {
                let at = &mut self.circuits[circuit];
                if at.armed != now {
                    // An earlier one has taken its place.
                    return;
                }
                at.armed = Instant::FAR;
                at.source.handle_deadline(now);
                at.sink.iter_mut().for_each(|sink| sink.handle_deadline(now));
                at.listener.handle_deadline(now);
                circuit
            }
        };
        self.drain(circuit);
    }

    fn serves(&mut self) {
        if self.bottleneck.busy {
            return;
        }
        if let Some(frame) = self.bottleneck.next() {
            self.bottleneck.busy = true;
            let takes = self.plan.rate.span_of_up(Octets::new(frame.octets.len() as u64));
            self.engine.schedule(self.engine.now() + takes, Event::Served(frame));
        }
    }

    fn arrives(&mut self, frame: &Frame, to_receiver: bool) {
        let now = self.engine.now();
        let (tpdu, data) = Tpdu::parse(&frame.octets).expect("a machine wrote it");
        let circuit = &mut self.circuits[frame.circuit];
        match &mut circuit.sink {
            _ if !to_receiver => circuit.source.handle(now, &tpdu),
            Some(sink) if sink.circuit() == tpdu.circuit => sink.handle(now, &tpdu, data),
            _ => circuit.listener.handle(now, frame.circuit as u64, &tpdu, true),
        }
    }

    /// The sender of this circuit has a grant for one TPDU.
    fn sends(&mut self, at: usize) {
        let now = self.engine.now();
        let circuit = &mut self.circuits[at];
        circuit.port_asked = false;
        let mut out = [0; FRAME_MAX];
        let Some(length) = circuit.source.transmit(now, &mut out) else { return };
        let takes = self.plan.rate.span_of_up(Octets::new(length as u64)).div_down(ACCESS);
        circuit.port_free = now + takes;
        let comes = circuit.port_free + self.plan.delay.div_down(2);
        self.engine.schedule(comes, Event::Comes(Frame { circuit: at, octets: out[..length].into() }));
    }

    /// Lets both programs of a circuit do what they can, and sets its clock.
    fn drain(&mut self, at: usize) {
        let (now, counts) = (self.engine.now(), self.engine.now() >= self.counts_from);
        let circuit = &mut self.circuits[at];
        if !circuit.begun {
            return;
        }
        if let Some(offer) = circuit.listener.offer() {
            circuit.sink = Some(Sink::new(now, &offer, PACE));
        }
        if let Some(SourceEvent::Ended(end)) = circuit.source.event() {
            panic!("circuit {at} has ended: {end:?}");
        }
        while circuit.source.write(&MESSAGE, true).ended {}
        let mut answers = vec![];
        let mut out = [0; 64];
        if let Some(sink) = &mut circuit.sink {
            while let Some((_, data)) = sink.peek() {
                circuit.octets += if counts { data.len() as u64 } else { 0 };
                sink.take();
            }
            if let Some(SinkEvent::Ended(end)) = sink.event() {
                panic!("circuit {at} has ended: {end:?}");
            }
            while let Some(length) = sink.transmit(now, &mut out) {
                answers.push(out[..length].to_vec());
            }
        }
        while let Some((_, tpdu)) = circuit.listener.poll(now) {
            let length = tpdu.emit(0, &mut out);
            answers.push(out[..length].to_vec());
        }
        for octets in answers {
            let frame = Frame { circuit: at, octets };
            self.engine.schedule(now + self.plan.delay, Event::Arrives(frame, false));
        }
        if !circuit.port_asked && circuit.source.wants(now).is_some() {
            circuit.port_asked = true;
            self.engine.schedule(circuit.port_free, Event::Port(at));
        }
        let sink = circuit.sink.as_ref().and_then(|sink| sink.deadline(now));
        let all = [circuit.source.deadline(now), sink, circuit.listener.deadline(now)];
        let due = all.into_iter().flatten().map(|(at, _)| at).min().unwrap_or(Instant::FAR);
        if due < circuit.armed {
            circuit.armed = due;
            self.engine.schedule(due, Event::Deadline(at));
        }
    }
}
