//! The receiving host of the end-host paper: a card with a ring (`rota_proto::copyout`), one processor, and
//! the owners of packets (ENDHOST-2.2-5, ENDHOST-3.3-1 to 14, ENDHOST-4-1 to 4, ENDHOST-R39).
//!
//! An interrupt comes whatever the processor does, and what it does takes so much longer. Everything else is
//! done one thing after the other: copies out of the card first, then the owners in their order.

mod costs;
mod traffic;

pub use costs::{HostCosts, Spent};
pub use traffic::{
    BURST, GAP, OCTET, Offer, PAGE, PERIOD, PERIODS, Packet, SHORTEST, flood, on_the_wire, video, web,
};

use crate::engine::{Digest, Engine, Stamped};
pub use rota_proto::copyout::{Buffers, Marks, Pace, RingCounts, theta};
use rota_proto::copyout::{Place, Ring};
use rota_units::{Instant, Span};
use std::collections::VecDeque;

/// The thread that does the work of the layers (ENDHOST-4.1-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A network thread, which hands the message to its owner's thread.
    Standard,
    /// The owner's receive call.
    Lrp,
    /// Nobody, for a message of one packet: the filter has done what is needed.
    Bypass,
}

/// When an owner reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// All that has come by then, once in each period, beginning with the first one at this time.
    Periodically(Span, Span),
    /// Whenever the processor has nothing before it: the network thread, or a program that blocks.
    AtOnce,
}

/// A host and its traffic.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// Of the processor.
    pub costs: HostCosts,
    /// The thread that does the work.
    pub way: Way,
    /// The card's way to its next buffer.
    pub buffers: Buffers,
    /// How many it has.
    pub size: u32,
    /// The copy-out rule; none of it if there is none.
    pub marks: Option<Marks>,
    /// Packets of an owner in the host's memory.
    pub copied_max: usize,
    /// When each owner reads, those before the others first.
    pub owners: Vec<Reads>,
    /// Packets by their time.
    pub packets: Vec<Packet>,
    /// The end of the run.
    pub until: Span,
}

impl HostPlan {
    /// A LANCE of 128 buffers without a copy-out, and one owner that blocks.
    pub fn new(packets: Vec<Packet>, until: Span) -> Self {
        Self {
            costs: HostCosts::PAPER,
            way: Way::Lrp,
            buffers: Buffers::Circular,
            size: 128,
            marks: None,
            copied_max: 4_096,
            owners: vec![Reads::AtOnce],
            packets,
            until,
        }
    }

    /// Every packet leaves the card at once, as where the host takes two copies.
    pub fn two_copies(self) -> Self {
        Self { marks: Some(Marks { theta: self.size - 1, theta_hi: self.size }), ..self }
    }
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSeen {
    /// Of the ring.
    pub ring: RingCounts,
    /// Packets that owners have taken.
    pub taken: u64,
    /// Of these behind a later one of the same owner.
    pub disordered: u64,
    /// Messages, by their last packets.
    pub messages: u64,
    /// Octets of data that were taken, and how many such octets were copied for that, out of the card or to a
    /// program.
    pub octets: u64,
    /// See `octets`.
    pub octets_copied: u64,
    /// The longest time from a packet's arrival to its owner.
    pub waited: Span,
    /// The work of the processor.
    pub spent: Spent,
    /// The same plan gives the same.
    pub hash: Digest,
}

#[derive(Clone, Copy)]
enum Event {
    Comes(u32),
    Period(u16),
    Done,
}

impl Stamped for Event {
    fn stamp(&self) -> u64 {
        match self {
            Self::Done => 1,
            Self::Period(owner) => 2 + u64::from(*owner),
            Self::Comes(number) => 100_000 + u64::from(*number),
        }
    }
}

#[derive(Clone, Copy)]
enum Job {
    /// The rest of interrupts that found an idle processor.
    Interrupt,
    CopyOut,
    /// The network thread takes a packet of this owner.
    Layers(u16),
    /// The owner takes a packet.
    Take(u16),
}

struct Host {
    plan: HostPlan,
    engine: Engine<Event>,
    ring: Ring<Packet>,
    /// Behind the network thread.
    sockets: Vec<VecDeque<Packet>>,
    /// Packets before this number, which each owner reads now.
    reads: Vec<u32>,
    /// Packets that have come.
    came: u32,
    job: Option<(Job, Instant)>,
    last: Vec<Option<u32>>,
    seen: HostSeen,
}

/// Runs a host to the end of its plan.
///
/// # Panics
/// The marks make no sense.
pub fn run(plan: HostPlan) -> HostSeen {
    let end = Instant::ZERO + plan.until;
    let mut host = Host::new(plan);
    while let Some(event) = host.engine.next(end) {
        assert!(!host.engine.is_stuck(), "time stands still at {:?}", host.engine.now());
        host.happens(event);
        host.go_on();
    }
    host.seen.hash = host.engine.event_hash();
    host.seen.ring = host.ring.counts();
    host.seen
}

impl Host {
    fn new(plan: HostPlan) -> Self {
        let owners = plan.owners.len();
        let marks = plan.marks.unwrap_or(Marks { theta: 0, theta_hi: 1 });
        let ring = Ring::new(plan.buffers, plan.size, marks, owners as u16, plan.copied_max)
            .unwrap_or_else(|bad| panic!("{bad}"));
        let mut engine = Engine::new(Instant::ZERO);
        for (owner, reads) in (0..).zip(&plan.owners) {
            if let Reads::Periodically(first, _) = reads {
                engine.schedule(Instant::ZERO + *first, Event::Period(owner));
            }
        }
        if let Some(first) = plan.packets.first() {
            engine.schedule(first.at, Event::Comes(0));
        }
        let seen = HostSeen {
            ring: ring.counts(),
            taken: 0,
            disordered: 0,
            messages: 0,
            octets: 0,
            octets_copied: 0,
            waited: Span::ZERO,
            spent: Spent::default(),
            hash: engine.event_hash(),
        };
        Self {
            engine,
            ring,
            sockets: vec![VecDeque::new(); owners],
            reads: plan
                .owners
                .iter()
                .map(|reads| if *reads == Reads::AtOnce { u32::MAX } else { 0 })
                .collect(),
            came: 0,
            job: None,
            last: vec![None; owners],
            seen,
            plan,
        }
    }

    fn happens(&mut self, event: Event) {
        let now = self.engine.now();
        match event {
            Event::Comes(number) => self.comes(number),
            Event::Period(owner) => {
                self.reads[usize::from(owner)] = self.came;
                if let Reads::Periodically(_, period) = self.plan.owners[usize::from(owner)] {
                    self.engine.schedule(now + period, Event::Period(owner));
                }
            }
            Event::Done => match self.job {
                // Interrupts have come meanwhile.
                Some((_, ends)) if ends > now => self.engine.schedule(ends, Event::Done),
                Some((job, _)) => {
                    self.job = None;
                    self.ends(now, job);
                }
                None => {}
            },
        }
    }

    /// The card has the next packet.
    fn comes(&mut self, number: u32) {
        let packet = self.plan.packets[number as usize];
        self.came = number + 1;
        if let Some(next) = self.plan.packets.get(number as usize + 1) {
            self.engine.schedule(next.at, Event::Comes(number + 1));
        }
        if self.ring.arrive(packet.owner, packet).is_err() {
            return;
        }
        let interrupt = self.plan.costs.interrupt;
        self.seen.spent.interrupt += interrupt;
        match &mut self.job {
            Some((_, ends)) => *ends += interrupt,
            None => self.begin(Job::Interrupt, interrupt),
        }
    }

    fn begin(&mut self, job: Job, takes: Span) {
        let ends = self.engine.now() + takes;
        self.job = Some((job, ends));
        self.engine.schedule(ends, Event::Done);
    }

    /// The processor takes up the next thing.
    fn go_on(&mut self) {
        if self.job.is_some() {
            return;
        }
        let costs = self.plan.costs;
        if self.plan.marks.is_some() && self.ring.is_short() {
            let takes = self.ring.oldest().map_or(Span::ZERO, |packet| costs.copy(packet.octets));
            self.seen.spent.copy_out += takes;
            return self.begin(Job::CopyOut, takes);
        }
        for owner in 0..self.plan.owners.len() as u16 {
            let before = self.reads[usize::from(owner)];
            if let Some(packet) = self.ready(owner).filter(|packet| packet.number < before) {
                let takes = self.take_cost(&packet);
                return self.begin(Job::Take(owner), takes);
            }
        }
        if self.plan.way == Way::Standard {
            let waits = (0..self.plan.owners.len() as u16)
                .find_map(|owner| self.ring.next_of(owner).map(|(packet, _)| (owner, *packet)));
            if let Some((owner, packet)) = waits {
                let takes = self.layers_cost(&packet);
                self.begin(Job::Layers(owner), takes);
            }
        }
    }

    /// The packet that an owner takes next.
    fn ready(&self, owner: u16) -> Option<Packet> {
        match self.plan.way {
            Way::Standard => self.sockets[usize::from(owner)].front().copied(),
            Way::Lrp | Way::Bypass => self.ring.next_of(owner).map(|(packet, _)| *packet),
        }
    }

    fn layers_cost(&mut self, packet: &Packet) -> Span {
        let costs = self.plan.costs;
        let layers = costs.layers(packet.is_first);
        let switch = if packet.is_first { costs.switch } else { Span::ZERO };
        self.seen.spent.layers += layers;
        self.seen.spent.switch += switch;
        layers + switch
    }

    fn take_cost(&mut self, packet: &Packet) -> Span {
        let costs = self.plan.costs;
        let of = |is: bool, cost: Span| if is { cost } else { Span::ZERO };
        let is_short = packet.is_first && packet.is_last;
        let has_layers = match self.plan.way {
            Way::Standard => false,
            Way::Lrp => true,
            Way::Bypass => !is_short,
        };
        let layers = of(has_layers, costs.layers(packet.is_first));
        let socket = of(packet.is_first, costs.socket + costs.call);
        let switch = of(packet.is_first, costs.switch);
        let copy = costs.copy(packet.data);
        let spent = &mut self.seen.spent;
        spent.layers += layers;
        spent.socket += socket;
        spent.switch += switch;
        spent.copy += copy;
        layers + socket + switch + copy
    }

    fn ends(&mut self, now: Instant, job: Job) {
        match job {
            Job::Interrupt => {}
            Job::CopyOut => {
                let data = self.ring.oldest().map_or(0, |packet| packet.data);
                self.seen.octets_copied += u64::from(data);
                self.ring.copy_out();
            }
            Job::Layers(owner) => {
                if let Some((packet, place)) = self.ring.read(owner) {
                    assert_eq!(place, Place::Host, "a network thread reads the host's memory");
                    self.sockets[usize::from(owner)].push_back(packet);
                }
            }
            Job::Take(owner) => {
                let packet = match self.plan.way {
                    Way::Standard => self.sockets[usize::from(owner)].pop_front(),
                    Way::Lrp | Way::Bypass => self.ring.read(owner).map(|(packet, _)| packet),
                };
                packet.iter().for_each(|packet| self.taken(now, packet));
            }
        }
    }

    fn taken(&mut self, now: Instant, packet: &Packet) {
        let last = &mut self.last[usize::from(packet.owner)];
        self.seen.disordered += u64::from(*last >= Some(packet.number));
        *last = Some(packet.number);
        self.seen.taken += 1;
        self.seen.messages += u64::from(packet.is_last);
        self.seen.octets += u64::from(packet.data);
        self.seen.octets_copied += u64::from(packet.data);
        self.seen.waited = self.seen.waited.max(now.since(packet.at));
    }
}
