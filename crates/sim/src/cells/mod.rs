//! Circuits over cells: the shipping machines of `rota_proto::vc`, AAL5, adaptors, a cell switch and hosts
//! that take their time, on which the experiments of the native-mode paper run (TRANSPORT-R17,
//! TRANSPORT-R49).
//!
//! Each host has one wire to the switch, at the port of its number. A TPDU is the payload of one AAL5 frame.
//! The programs send messages whose octets follow from their numbers; the receiving ones assert that each
//! came whole, once, in order and unaltered, or, without error control, whole and in order or not at all.

mod ends;
mod host;
mod pcap;
mod switch;

pub use host::{HostCosts, Intake, Spent, picos};
pub use pcap::{CAPTURE_LINK_TYPE, Capture};
pub use switch::{CellCounts, CellShape, CellSwitch, DropRule, Route};

use crate::engine::{Digest, Engine, Stamped, Stream};
use ends::{SendEnd, TakeEnd, Worth};
use host::{Host, Job};
use rota_proto::vc::End;
use rota_units::{BitRate, Instant, Span};
use rota_wire::aal5::{Aal5Trailer, CELL_PAYLOAD_OCTETS, aal5_cells};
use rota_wire::atm::CellHeader;
use rota_wire::cells::{Reassembly, cut};
use rota_wire::{FlowControl, TPDU_CONTROL_OCTETS_MAX, TPDU_HEADER_OCTETS, Tpdu};

/// A cell of 53 octets at the 100 Mbps of the paper's links (TAXI).
pub const CELL_TIME: Span = Span::from_nanos(4_240);
/// The first virtual circuit that a user has.
const VCI: u16 = 32;

/// The service of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Error control; a window of so many TPDUs.
    Reliable {
        /// What holds the sender beside that.
        flow: FlowControl,
        /// TPDUs.
        window: u64,
    },
    /// No error control; a leaky bucket of two TPDUs, whose rate counts headers of TPDUs.
    Guaranteed {
        /// ρ.
        rate: BitRate,
    },
    /// Neither.
    BestEffort,
}

/// A circuit and its programs.
#[derive(Clone, Copy, Debug)]
pub struct CircuitPlan {
    /// The host that sends.
    pub from: usize,
    /// The host that receives.
    pub to: usize,
    /// The service.
    pub service: Service,
    /// Octets of a message.
    pub octets: usize,
    /// Messages in all.
    pub messages: u64,
    /// Octets of data in a TPDU at most.
    pub tpdu: u16,
    /// Its shaping in the switch.
    pub shape: Option<CellShape>,
}

/// The plan of a run.
#[derive(Clone, Debug)]
pub struct CellPlan {
    /// All circuits.
    pub circuits: Vec<CircuitPlan>,
    /// Hosts.
    pub hosts: usize,
    /// The time of a cell on a wire.
    pub cell: Span,
    /// From end to end of a wire.
    pub wire: Span,
    /// Cells lost on the wires to the switch, of a million.
    pub loss_ppm: u32,
    /// Cells that a circuit may have waiting in the switch; a port has room for four times as many.
    pub room: usize,
    /// What the switch drops.
    pub rule: DropRule,
    /// The costs of every host.
    pub costs: HostCosts,
    /// Hosts that send data take no time: the rate that they are asked for is that which they send at.
    pub free_senders: bool,
    /// The intake of every host.
    pub intake: Intake,
    /// When the run ends, however far it is.
    pub until: Span,
}

impl CellPlan {
    /// The laboratory of the paper: two hosts that take no time, and one switch.
    pub fn new(circuits: Vec<CircuitPlan>) -> Self {
        let hosts = circuits.iter().map(|circuit| circuit.from.max(circuit.to) + 1).max().unwrap_or(2);
        Self {
            circuits,
            hosts,
            cell: CELL_TIME,
            wire: Span::from_nanos(500),
            loss_ppm: 0,
            room: 2_000,
            rule: DropRule::Tail,
            costs: HostCosts::NONE,
            free_senders: false,
            intake: Intake::Watermarks { high: 64, low: 16 },
            until: Span::from_millis(600_000),
        }
    }

    fn costs_of(&self, host: usize) -> HostCosts {
        let is_free = self.free_senders && self.circuits.iter().any(|circuit| circuit.from == host);
        if is_free { HostCosts::NONE } else { self.costs }
    }
}

/// The first packet of a run, step by step (Figure 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `t_send` has it.
    Sent,
    /// The task scheduler of the sender is active.
    Active,
    /// The adaptor has it.
    Given,
    /// Its last cell has reached the other host.
    Arrived,
    /// The service routine has ended.
    Interrupted,
    /// The task scheduler of the receiver is active.
    Noticed,
    /// The program has it.
    Taken,
}

/// What one circuit has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CircuitSeen {
    /// Whole messages written and taken.
    pub written: u64,
    /// See `written`.
    pub taken: u64,
    /// When the first and the last one were taken.
    pub first: Span,
    /// See `first`.
    pub last: Span,
    /// TPDUs that left, those sent again included.
    pub tpdus: u64,
    /// TPDUs that were sent again.
    pub resent: u64,
    /// True if it has ended in order.
    pub is_finished: bool,
    /// In the switch, on the way of its data.
    pub cells: CellCounts,
}

impl CircuitSeen {
    /// Bits of messages of so many octets in a second, from the first one that was taken to the last.
    pub fn rate_bps(&self, octets: usize) -> u64 {
        let bits = u128::from(self.taken.saturating_sub(1)) * octets as u128 * 8 * 1_000_000_000;
        (bits / u128::from(self.last.minus(self.first).as_nanos().max(1))) as u64
    }
}

/// The counts of a run.
#[derive(Clone, Debug)]
pub struct CellsSeen {
    /// Circuit by circuit.
    pub circuits: Vec<CircuitSeen>,
    /// Host by host: what its processor did.
    pub spent: Vec<Spent>,
    /// Frames that the adaptors and service routines have dropped.
    pub dropped: u64,
    /// Frames that were not sound when they came.
    pub unsound: u64,
    /// Cells lost on wires.
    pub lost: u64,
    /// The steps of the first packet.
    pub steps: Vec<(Step, Span)>,
    /// How long it took.
    pub took: Span,
    /// The same seed and plan give the same.
    pub hash: Digest,
}

enum Event {
    Cell {
        host: usize,
    },
    Port {
        port: usize,
    },
    Frame {
        host: usize,
        frame: Vec<u8>,
    },
    Job {
        host: usize,
    },
    /// The task scheduler of a host is active.
    Awake {
        host: usize,
    },
    Deadline,
}

impl Stamped for Event {
    fn stamp(&self) -> u64 {
        match self {
            Self::Cell { host } => 1 + *host as u64 * 8,
            Self::Port { port } => 2 + *port as u64 * 8,
            Self::Frame { host, frame } => 3 + *host as u64 * 8 + ((frame.len() as u64) << 20),
            Self::Job { host } => 4 + *host as u64 * 8,
            Self::Awake { host } => 6 + *host as u64 * 8,
            Self::Deadline => 5,
        }
    }
}

/// Octet `at` of message `number`.
fn octet(number: u64, at: usize) -> u8 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8 ^ (at as u8).wrapping_mul(167) ^ (at >> 8) as u8
}

/// Hosts, their wires and the switch.
pub struct Cells {
    plan: CellPlan,
    engine: Engine<Event>,
    random: Stream,
    switch: CellSwitch,
    port_armed: Vec<bool>,
    reassembly: Vec<Reassembly>,
    hosts: Vec<Host>,
    sends: Vec<SendEnd>,
    takes: Vec<TakeEnd>,
    seen: CellsSeen,
    armed: Instant,
    capture: Option<Capture>,
}

impl Cells {
    /// Before the first message. Circuit `n` has the virtual circuit 32 + 2n for its data, and the next one
    /// for what comes back.
    pub fn new(seed: u64, plan: &CellPlan) -> Self {
        let mut switch = CellSwitch::new(plan.hosts, plan.cell, plan.room * 4, plan.rule);
        let mut names = vec![vec![]; plan.hosts];
        let mut longest = TPDU_CONTROL_OCTETS_MAX;
        for (number, circuit) in plan.circuits.iter().enumerate() {
            let CircuitPlan { from, to, shape, .. } = *circuit;
            let [data, back] = [0, 1].map(|way| VCI + 2 * number as u16 + way);
            let room = plan.room;
            switch.open(Route { from: (from, 0, data), to: (to, 0, data), room, shape });
            switch.open(Route { from: (to, 0, back), to: (from, 0, back), room, shape: None });
            names[to].push((0, data));
            names[from].push((0, back));
            longest = longest.max(TPDU_HEADER_OCTETS + usize::from(circuit.tpdu));
        }
        let numbered = || plan.circuits.iter().enumerate();
        Self {
            engine: Engine::new(Instant::ZERO),
            random: Stream::named(seed, "cells"),
            switch,
            port_armed: vec![false; plan.hosts],
            reassembly: names.iter().map(|names| Reassembly::new(names, longest as u16)).collect(),
            hosts: (0..plan.hosts).map(|host| Host::new(plan.costs_of(host), plan.intake)).collect(),
            sends: numbered().map(|(number, circuit)| SendEnd::new(circuit, number)).collect(),
            takes: numbered().map(|(number, circuit)| TakeEnd::new(circuit, number)).collect(),
            seen: CellsSeen {
                circuits: vec![CircuitSeen::default(); plan.circuits.len()],
                spent: vec![],
                dropped: 0,
                unsound: 0,
                lost: 0,
                steps: vec![],
                took: Span::ZERO,
                hash: Digest::default(),
            },
            armed: Instant::FAR,
            capture: None,
            plan: plan.clone(),
        }
    }

    /// Keeps every cell that reaches a host, up to so many, and the frames that they complete.
    pub fn capturing(mut self, cells: usize) -> Self {
        self.capture = Some(Capture::new(cells));
        self
    }

    /// Runs to the end: all messages have been taken, or the time is over.
    pub fn run(mut self) -> (CellsSeen, Option<Capture>) {
        let until = Instant::ZERO + self.plan.until;
        self.drain();
        while !self.is_done() {
            // Nothing more happens where the last messages without error control are lost.
            if self.engine.next_at().is_none() {
                break;
            }
            let Some(event) = self.engine.next(until) else { break };
            assert!(!self.engine.is_stuck(), "time stands still at {:?}", self.engine.now());
            let is_cell = matches!(event, Event::Cell { .. } | Event::Port { .. });
            self.happens(event);
            if !is_cell {
                self.drain();
            }
        }
        let ends = self.sends.iter().zip(&self.takes);
        for (number, ((send, take), seen)) in ends.zip(&mut self.seen.circuits).enumerate() {
            (seen.written, seen.taken) = (send.written(), take.messages);
            seen.resent = send.resent();
            seen.is_finished = matches!(send.end, Some(End::Finished { .. }));
            let from = (self.plan.circuits[number].from, 0, VCI + 2 * number as u16);
            seen.cells = self.switch.counts(from);
        }
        self.seen.spent = self.hosts.iter().map(|host| host.spent).collect();
        self.seen.dropped = self.hosts.iter().map(|host| host.dropped).sum();
        self.seen.took = self.engine.now().since(Instant::ZERO);
        self.seen.hash = self.engine.event_hash();
        (self.seen, self.capture)
    }

    /// Reliable circuits have ended; of others all messages were taken.
    fn is_done(&self) -> bool {
        let mut all = self.plan.circuits.iter().zip(&self.sends).zip(&self.takes);
        all.all(|((plan, send), take)| match plan.service {
            Service::Reliable { .. } => send.end.is_some(),
            _ => take.messages == plan.messages,
        })
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Cell { host } => self.cell_leaves(host),
            Event::Port { port } => self.cell_passes(port),
            Event::Frame { host, frame } => {
                self.step(Step::Arrived, &frame);
                self.hosts[host].receives(frame);
            }
            Event::Job { host } => self.job_ends(host),
            Event::Awake { host } => {
                let is_sender = self.plan.circuits[0].from == host;
                self.step(if is_sender { Step::Active } else { Step::Noticed }, &[]);
                (self.hosts[host].is_awake, self.hosts[host].is_waking) = (true, false);
            }
            Event::Deadline => {
                let now = self.engine.now();
                self.sends.iter_mut().for_each(|end| end.handle_deadline(now));
                self.takes.iter_mut().for_each(|end| end.handle_deadline(now));
            }
        }
    }

    fn step(&mut self, step: Step, frame: &[u8]) {
        if self.seen.steps.len() < 7 && (frame.is_empty() || frame.len() > TPDU_HEADER_OCTETS) {
            self.seen.steps.push((step, self.engine.now().since(Instant::ZERO)));
        }
    }

    // ---- cells ----------------------------------------------------------------------------------------

    /// The next cell of an adaptor goes to the switch.
    fn cell_leaves(&mut self, host: usize) {
        let Some(cell) = self.hosts[host].sending.pop_front() else {
            self.hosts[host].is_sending = false;
            // The driver may have waited for this.
            return self.drain();
        };
        let now = self.engine.now();
        self.engine.schedule(now + self.plan.cell, Event::Cell { host });
        if self.random.happens(self.plan.loss_ppm) {
            self.seen.lost += 1;
        } else if let Some(port) = self.switch.arrives(host, &cell) {
            self.arm(port);
        }
        if self.hosts[host].job.is_none() && self.hosts[host].has_room() {
            self.drain();
        }
    }

    fn arm(&mut self, port: usize) {
        if !self.port_armed[port]
            && let Some(at) = self.switch.next_at(port)
        {
            self.port_armed[port] = true;
            self.engine.schedule(at, Event::Port { port });
        }
    }

    /// A cell leaves the switch. The frame that it completes reaches the host one wire later.
    fn cell_passes(&mut self, port: usize) {
        let now = self.engine.now();
        self.port_armed[port] = false;
        if let Some(cell) = self.switch.leaves(now, port) {
            let at = now + self.plan.cell + self.plan.wire;
            if let Some(capture) = &mut self.capture {
                capture.cell(at, port, &cell);
            }
            match self.reassembly[port].handle(&cell) {
                Ok(Some(frame)) => {
                    if let Some(capture) = &mut self.capture {
                        capture.frame(at, port, frame.circuit, frame.pdu);
                    }
                    // The first two octets say of which circuit it came.
                    let told = [&frame.circuit.1.to_be_bytes()[..], frame.payload].concat();
                    self.engine.schedule(at, Event::Frame { host: port, frame: told });
                }
                Ok(None) => {}
                Err(_) => self.seen.unsound += 1,
            }
        }
        self.arm(port);
    }

    // ---- processors -----------------------------------------------------------------------------------

    /// Gives every processor that rests its next job, and sets the clock.
    fn drain(&mut self) {
        let now = self.engine.now();
        for host in 0..self.hosts.len() {
            if self.hosts[host].job.is_none()
                && let Some((job, cost)) = self.next_job(host)
            {
                self.hosts[host].job = Some((job, now + cost));
                self.engine.schedule(now + cost, Event::Job { host });
            }
        }
        let sends = self.sends.iter_mut().map(|end| end.deadline(now)).min();
        let takes = self.takes.iter().map(|end| end.deadline(now)).min();
        let at = sends.into_iter().chain(takes).min().unwrap_or(Instant::FAR);
        if at != self.armed {
            self.armed = at;
            if at < Instant::FAR {
                self.engine.schedule(at, Event::Deadline);
            }
        }
    }

    /// Interrupts first, then what goes back, then frames, then TPDUs, then programs.
    fn next_job(&mut self, place: usize) -> Option<(Job, Span)> {
        let now = self.engine.now();
        let host = &mut self.hosts[place];
        let costs = host.costs;
        if host.wants_interrupt() {
            let cost = host.interrupt_cost();
            return Some((Job::Interrupt, cost));
        }
        let (has_room, count) = (host.has_room(), self.sends.len());
        let order: Vec<usize> = (host.turn..host.turn + count).map(|at| at % count).collect();
        let circuits = &self.plan.circuits;
        let (sends, takes) = (&mut self.sends, &mut self.takes);
        let answers = |at: &&usize| circuits[**at].to == place && takes[**at].wants(now);
        let answer = order.iter().find(answers).copied();
        let frame = host.waiting.front().map(Vec::len);
        let sender = |at: &&usize| circuits[**at].from == place && sends[**at].wants(now).is_some();
        let sender = order.iter().find(sender).copied();
        let host = &mut self.hosts[place];
        let has_task = answer.is_some() || frame.is_some() || sender.is_some();
        if has_task && !host.is_awake && !host.is_waking {
            host.is_waking = true;
            self.engine.schedule(now + costs.wake, Event::Awake { host: place });
        }
        if host.is_awake {
            if let Some(at) = answer.filter(|_| has_room) {
                return Some((Job::Transmit(at, false), costs.transmit(TPDU_HEADER_OCTETS)));
            }
            if frame.is_some() {
                return Some((Job::Frame, self.frame_cost(place)));
            }
            if let Some(at) = sender.filter(|_| has_room) {
                let octets = self.sends[at].wants(now).unwrap_or(0);
                return Some((Job::Transmit(at, true), costs.transmit(octets)));
            }
        }
        let host = &mut self.hosts[place];
        // A scheduler that waits for the adaptor does not sleep.
        host.is_awake &= has_task;
        let writer = |at: &&usize| circuits[**at].from == place && self.sends[**at].can_write().is_some();
        let at = order.iter().find(writer).copied()?;
        let (octets, first) = self.sends[at].can_write()?;
        let call = if first { costs.call } else { Span::ZERO };
        let send = costs.send(octets, first);
        (host.spent.call, host.spent.send) = (host.spent.call + call, host.spent.send + send);
        Some((Job::Write(at), call + send))
    }

    /// The work on the oldest frame. One whose message has a gap costs none, and is dropped here.
    fn frame_cost(&mut self, place: usize) -> Span {
        let host = &mut self.hosts[place];
        let Some(frame) = host.waiting.front_mut() else { return Span::ZERO };
        let Some((number, is_data, tpdu, data)) = read(frame) else { return Span::ZERO };
        match self.takes[number].judge(&tpdu) {
            Worth::Work(before, complete) if is_data => {
                let call = if complete { host.costs.take_call } else { Span::ZERO };
                host.costs.take(data.len(), before) + call
            }
            Worth::Work(..) => host.costs.take(data.len(), 0),
            Worth::Nothing => {
                // Nothing is left of it for the end of the job.
                frame.truncate(2);
                Span::ZERO
            }
        }
    }

    fn job_ends(&mut self, place: usize) {
        let now = self.engine.now();
        let host = &mut self.hosts[place];
        let Some((job, ends)) = host.job.take() else { return };
        if now < ends {
            // Interrupts came between.
            host.job = Some((job, ends));
            return self.engine.schedule(ends, Event::Job { host: place });
        }
        match job {
            Job::Interrupt => {
                self.step(Step::Interrupted, &[]);
                self.hosts[place].interrupted();
            }
            Job::Frame => self.frame_done(place),
            Job::Transmit(circuit, is_sender) => self.transmits(place, circuit, is_sender),
            Job::Write(circuit) => {
                self.sends[circuit].write();
                self.step(Step::Sent, &[]);
                // The program goes on when the transport has had its turn.
                self.hosts[place].turn = circuit + 1;
            }
        }
    }

    fn frame_done(&mut self, place: usize) {
        let now = self.engine.now();
        let host = &mut self.hosts[place];
        let Some(frame) = host.waiting.pop_front() else { return };
        host.backlog.done(1);
        let Some((number, is_data, tpdu, data)) = read(&frame) else { return };
        if is_data {
            let before = self.takes[number].messages;
            self.takes[number].handle(now, &tpdu, data);
            if self.takes[number].messages > before {
                let seen = &mut self.seen.circuits[number];
                seen.last = now.since(Instant::ZERO);
                if before == 0 {
                    seen.first = seen.last;
                }
                self.step(Step::Taken, &[]);
            }
        } else {
            self.sends[number].handle(now, &tpdu);
        }
    }

    /// Task and driver: a TPDU goes to the adaptor, which cuts it.
    fn transmits(&mut self, place: usize, circuit: usize, is_sender: bool) {
        let now = self.engine.now();
        let room =
            TPDU_CONTROL_OCTETS_MAX.max(TPDU_HEADER_OCTETS + usize::from(self.plan.circuits[circuit].tpdu));
        let mut pdu = vec![0; aal5_cells(room) * CELL_PAYLOAD_OCTETS];
        let written = if is_sender {
            self.sends[circuit].transmit(now, &mut pdu)
        } else {
            self.takes[circuit].transmit(now, &mut pdu)
        };
        let Some(length) = written else { return };
        let vci = VCI + 2 * circuit as u16 + u16::from(!is_sender);
        let host = &mut self.hosts[place];
        let task = host.costs.task;
        host.spent.task += task;
        host.spent.driver += host.costs.transmit(length).minus(task);
        host.turn = circuit + 1;
        let end = Aal5Trailer { uu: 0, cpi: 0, length: length as u16 }.emit(&mut pdu);
        let header = CellHeader { gfc: 0, vpi: 0, vci, pti: 0, clp: false };
        host.sending.extend(cut(header, &pdu[..end]));
        if !host.is_sending {
            host.is_sending = true;
            self.engine.schedule(now + self.plan.cell, Event::Cell { host: place });
        }
        if is_sender {
            self.seen.circuits[circuit].tpdus += 1;
            self.step(Step::Given, &[]);
        }
    }
}

/// A frame with its circuit: the circuit's number, whether it is on the way of data, the TPDU and its data.
fn read(frame: &[u8]) -> Option<(usize, bool, Tpdu, &[u8])> {
    let (vci, payload) = frame.split_first_chunk()?;
    let (tpdu, data) = Tpdu::parse(payload).ok()?;
    let number = usize::from(u16::from_be_bytes(*vci) - VCI);
    Some((number / 2, number.is_multiple_of(2), tpdu, data))
}
