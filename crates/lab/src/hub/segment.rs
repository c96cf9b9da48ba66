//! The segment without its interfaces: the simulator's medium, wires and faults, in real time.

use rota_sim::faults::{Evil, Injected, Passed, Strike};
use rota_sim::media::{Frame, Medium, MediumCounters, Step, Steps, WireEvent, wire_time};
use rota_sim::{
    Engine, Fault, Happened, HappenedCounts, Select, Stamped, Stream, Timed, WireFault, Wires, WorldSpec,
};
use rota_units::{Instant, Span};
use rota_wire::MacAddr;

/// A flood leaves a real machine some of its processor.
const BEAT_MIN: Span = Span::from_micros(20);

/// What a segment is to be like.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The world of the simulator whose medium it is; its stations are the ports.
    pub world: WorldSpec,
    /// What is wrong with all frames all the time.
    pub standing: Vec<WireFault>,
    /// The seed of all randomness.
    pub seed: u64,
}

enum Event {
    Medium(WireEvent),
    Arrive { to: usize, from: usize, frame: Frame },
    Late { to: usize, frame: Frame },
    Begin(Entry),
    Beat { entry: Entry, until: Instant, down: bool },
    End(Entry),
}

/// A fault of one reading of the script; those of an older reading are over.
#[derive(Clone, Copy)]
struct Entry {
    reading: u32,
    index: usize,
}

/// Real time leaves no fingerprint: nobody compares two runs of a hub.
impl Stamped for Event {
    fn stamp(&self) -> u64 {
        0
    }
}

/// A frame on its way out of the segment, or something to tell the user.
pub enum SegmentOutput {
    /// A frame is whole at a station.
    Deliver {
        /// Which port.
        to: usize,
        /// The frame.
        frame: Frame,
    },
    /// A fault of the script, from 1, begins (or ends).
    Fault {
        /// Which.
        number: usize,
        /// When, from the start.
        at: Span,
        /// It begins.
        begins: bool,
    },
}

/// The segment.
pub struct Segment {
    plan: Plan,
    start: Instant,
    engine: Engine<Event>,
    medium: Medium,
    wires: Wires,
    happened: HappenedCounts,
    script: Vec<Timed>,
    reading: u32,
    /// Partitions that have begun and not ended.
    partitions: u64,
    /// Who sends frames that no station sent, at whom, and where the stations are by what they sent.
    evil: Evil,
    targets: Stream,
    macs: Vec<(usize, MacAddr)>,
    remembers: bool,
    steps: Steps,
    passed: Vec<Passed>,
    strikes: Vec<Strike>,
}

impl Segment {
    /// A segment that begins now.
    pub fn new(now: Instant, plan: Plan) -> Self {
        let (settings, medium) = (&plan.world.settings, plan.world.medium(plan.seed));
        let mut segment = Self {
            start: now,
            engine: Engine::new(now),
            medium,
            wires: Wires::new(settings.ether_type, settings.delay_max),
            happened: HappenedCounts::default(),
            script: Vec::new(),
            reading: 0,
            partitions: 0,
            evil: Evil::new(Stream::named(plan.seed, "evil")),
            targets: Stream::named(plan.seed, "evil targets"),
            macs: (0..plan.world.stations).map(|port| (port, MacAddr([0; 6]))).collect(),
            remembers: false,
            steps: Steps::new(),
            passed: Vec::new(),
            strikes: Vec::new(),
            plan,
        };
        segment.follow(Vec::new());
        segment
    }

    /// Follows this script from now on, and no other.
    pub fn follow(&mut self, script: Vec<Timed>) {
        self.reading += 1;
        self.wires.heal();
        (0..std::mem::take(&mut self.partitions)).for_each(|_| self.happened.count(Happened::Merged));
        for (index, fault) in self.plan.standing.iter().enumerate() {
            let random = Stream::named(self.plan.seed, &format!("standing {index}"));
            self.wires.disturb(*fault, Select::all(), Instant::FAR, random);
        }
        let now = self.engine.now();
        for (index, timed) in script.iter().enumerate() {
            let entry = Entry { reading: self.reading, index };
            self.engine.schedule(now + timed.at, Event::Begin(entry));
        }
        let evil = |timed: &Timed| matches!(timed.fault, Fault::Replay { .. } | Fault::Forge { .. });
        self.remembers = script.iter().any(evil);
        self.script = script;
    }

    /// When something is due.
    pub fn next_at(&self) -> Instant {
        self.engine.next_at().unwrap_or(Instant::FAR)
    }

    /// What went wrong, and how often.
    pub fn happened(&self) -> &HappenedCounts {
        &self.happened
    }

    /// What became of the frames.
    pub fn medium(&self) -> &MediumCounters {
        self.medium.counters()
    }

    /// The station at port `from` sends a frame; what was due before has been seen to.
    pub fn take(&mut self, from: usize, frame: &[u8]) {
        if let Some(source) = frame.get(6..).and_then(<[u8]>::first_chunk)
            && source[0] & 1 == 0
        {
            self.macs[from].1 = MacAddr(*source);
        }
        self.medium.send(self.engine.now(), from, frame.into(), &mut self.steps);
        self.schedule_steps();
    }

    /// Lets happen what is due until `now`, and hands out what comes of it.
    pub fn advance(&mut self, now: Instant, mut out: impl FnMut(SegmentOutput)) {
        while let Some(event) = self.engine.next(now) {
            self.happen(event, &mut out);
        }
    }

    fn happen(&mut self, event: Event, out: &mut impl FnMut(SegmentOutput)) {
        let now = self.engine.now();
        match event {
            Event::Medium(event) => {
                self.medium.happen(now, event, &mut self.steps);
                self.schedule_steps();
            }
            Event::Arrive { to, from, frame } => self.pass(to, from, frame, out),
            Event::Late { to, frame } => out(SegmentOutput::Deliver { to, frame }),
            Event::Begin(entry) if entry.reading == self.reading => self.begin(entry, out),
            Event::Beat { entry, until, down } if entry.reading == self.reading => {
                self.beat(entry, until, down, out);
            }
            Event::End(entry) if entry.reading == self.reading => {
                if let Fault::Partition { .. } = self.script[entry.index].fault {
                    self.partitions -= 1;
                    self.happened.count(Happened::Merged);
                }
                out(SegmentOutput::Fault {
                    number: entry.index + 1,
                    at: now.since(self.start),
                    begins: false,
                });
            }
            Event::Begin(_) | Event::Beat { .. } | Event::End(_) => {}
        }
    }

    fn schedule_steps(&mut self) {
        for (at, step) in self.steps.drain(..) {
            let event = match step {
                Step::Later(event) => Event::Medium(event),
                Step::Arrive { to, from, frame } => Event::Arrive { to, from, frame },
                // Only the simulator asks whether a card is empty, and follows each copy to its end.
                Step::CardEmpty { .. } | Step::Split { .. } | Step::Gone { .. } => continue,
            };
            self.engine.schedule(at, event);
        }
    }

    /// A frame is at the end of its wire: it passes through whatever is wrong there.
    fn pass(&mut self, to: usize, from: usize, frame: Frame, out: &mut impl FnMut(SegmentOutput)) {
        // Nobody listens at a stranger's port.
        if to >= self.plan.world.stations {
            return;
        }
        let now = self.engine.now();
        if self.remembers && frame.get(12..14) == Some(&self.plan.world.settings.ether_type.to_be_bytes()) {
            self.evil.remember(to, &frame);
        }
        self.wires.pass(now, from, to, frame, &mut self.strikes, &mut self.passed);
        for strike in self.strikes.drain(..) {
            self.happened.count(strike.what);
        }
        for Passed { late, frame, .. } in self.passed.drain(..) {
            if late == Span::ZERO {
                out(SegmentOutput::Deliver { to, frame });
            } else {
                self.engine.schedule(now + late, Event::Late { to, frame });
            }
        }
    }

    fn begin(&mut self, entry: Entry, out: &mut impl FnMut(SegmentOutput)) {
        let (now, number) = (self.engine.now(), entry.index + 1);
        let Timed { lasts, fault, .. } = &self.script[entry.index];
        let until = end(now, *lasts);
        let random = Stream::named(self.plan.seed, &format!("fault {}", entry.index));
        let what =
            self.wires.begin(fault, self.plan.world.stations, &self.plan.world.settings, until, &random);
        what.into_iter().for_each(|what| self.happened.count(what));
        self.partitions += u64::from(what == Some(Happened::Partitioned));
        if self.gap(&self.script[entry.index].fault).is_some() {
            self.engine.schedule(now, Event::Beat { entry, until, down: true });
        }
        if until != Instant::FAR {
            self.engine.schedule(until, Event::End(entry));
        }
        out(SegmentOutput::Fault { number, at: now.since(self.start), begins: true });
    }

    /// How often a fault does what it does again, if it does.
    fn gap(&self, fault: &Fault) -> Option<Span> {
        let octets = if let Fault::Flood { octets, .. } = fault { usize::from(*octets) } else { 0 };
        let beat = fault.beat(wire_time(self.plan.world.settings.link.rate, octets))?;
        Some(beat.max(BEAT_MIN))
    }

    /// A flapping link goes down or comes up; or somebody sends what he should not.
    fn beat(&mut self, entry: Entry, until: Instant, down: bool, out: &mut impl FnMut(SegmentOutput)) {
        let now = self.engine.now();
        let fault = &self.script[entry.index].fault;
        let Some(gap) = self.gap(fault).filter(|_| now < until) else { return };
        if let Fault::Flap { host, .. } = fault {
            self.happened.count(Happened::Flapped);
            if down {
                self.wires.unplug(*host, now + gap, &Stream::named(self.plan.seed, "flap"));
            }
        }
        let (settings, stranger) = (&self.plan.world.settings, self.macs.len());
        let injected = self.evil.inject(fault, settings, &self.macs, stranger, &mut self.targets);
        if let Some((what, injected)) = injected {
            self.happened.count(what);
            match injected {
                Injected::Arrived { to, frame, .. } => out(SegmentOutput::Deliver { to, frame }),
                Injected::Sent { from, frame } => {
                    self.medium.send(now, from, frame, &mut self.steps);
                    self.schedule_steps();
                }
            }
        }
        self.engine.schedule(now + gap, Event::Beat { entry, until, down: !down });
    }
}

/// A fault without an end lasts as long as the hub.
fn end(begin: Instant, lasts: Span) -> Instant {
    if lasts == Span::ZERO { Instant::FAR } else { begin + lasts }
}
