//! The paper's laboratory: 486 machines with programmed I/O, on one shared 10 Mbit/s segment.
//!
//! A host is one processor that does one thing at a time, interrupts first; a packet reaches the card only
//! when the processor has copied it there, and leaves the card's memory of two packets one after another, 140
//! µs (a of eq. 7) after the one before. Copies take what Table 3 says. A cost that the paper does not print
//! is not charged: UDP and IP, system calls, the scheduler.

use super::profile::{FIRST_BESIDE_COPY, PER_PACKET, copy_to_nic};
use crate::media::csma_cd::{Card, CsmaCd, FrameFate, Spec};
use rota_units::{Instant, Octets, Span};
use std::collections::{BTreeMap, VecDeque};

/// Packets that a card of the testbed holds.
const CARD_PACKETS: usize = 2;
/// Ethernet header and check sequence.
const FRAMING: u64 = 18;
/// Rows 1 and 3 of Table 2: what a received packet costs beside its copy.
const RECEIVE_BESIDE_COPY: Span = Span::from_micros(27 + 12);

/// One packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// To whom; `None` is everybody.
    pub to: Option<usize>,
    /// Payload octets.
    pub octets: u64,
    /// What the driver of the experiment calls it.
    pub tag: u64,
}

/// What an experiment is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// An alarm that it set.
    Alarm(u64),
    /// A host has received and copied a packet.
    Received {
        /// Who.
        host: usize,
        /// What it was sent as.
        packet: Packet,
    },
    /// A packet was given up after 16 collisions.
    Lost {
        /// Whose.
        host: usize,
        /// Which.
        packet: Packet,
    },
    /// The processor has done what [`Testbed::work`] asked for.
    Worked {
        /// Who.
        host: usize,
        /// Which work.
        tag: u64,
    },
}

#[derive(Clone, Copy, Debug)]
enum Job {
    Copy(Packet),
    Started,
    Receive(Packet),
    Work(u64),
}

#[derive(Debug, Default)]
struct Host {
    interrupts: VecDeque<(Span, Job)>,
    jobs: VecDeque<(Span, Job)>,
    /// What the processor does now, and until when.
    running: Option<(Instant, Job)>,
    /// Packets in the card, the first of them on the wire or about to be.
    card: VecDeque<Packet>,
    on_wire: bool,
}

/// The laboratory.
#[derive(Debug)]
pub struct Testbed {
    medium: CsmaCd,
    hosts: Vec<Host>,
    now: Instant,
    alarms: BTreeMap<(Instant, u64), Happened>,
    arrivals: BTreeMap<(Instant, u64), (usize, Packet)>,
    order: u64,
    told: VecDeque<Happened>,
}

impl Testbed {
    /// So many idle machines.
    pub fn new(hosts: usize, seed: u64) -> Self {
        // The specification is sound by construction, so this never fails; an empty segment would show it.
        let mut medium = CsmaCd::new(Spec::ethernet_10(seed)).expect("the standard's own slot");
        for _ in 0..hosts {
            medium.attach(Card::standard(1));
        }
        Self {
            medium,
            hosts: (0..hosts).map(|_| Host::default()).collect(),
            now: Instant::ZERO,
            alarms: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            order: 0,
            told: VecDeque::new(),
        }
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Transmissions cut short by collisions so far.
    pub fn aborted(&self) -> u64 {
        self.medium.counters().aborted
    }

    /// Tells the experiment at that time.
    pub fn alarm(&mut self, at: Instant, tag: u64) {
        self.order += 1;
        self.alarms.insert((at.max(self.now), self.order), Happened::Alarm(tag));
    }

    /// Gives a host a packet to send.
    pub fn send(&mut self, host: usize, packet: Packet) {
        let cost = FIRST_BESIDE_COPY + copy_to_nic(packet.octets);
        self.hosts[host].jobs.push_back((cost, Job::Copy(packet)));
        self.dispatch(host);
    }

    /// Keeps a host's processor busy, as an interrupt does.
    pub fn work(&mut self, host: usize, cost: Span, tag: u64) {
        self.hosts[host].interrupts.push_back((cost, Job::Work(tag)));
        self.dispatch(host);
    }

    /// The next thing that the experiment should know; `None` when nothing will happen any more.
    pub fn step(&mut self) -> Option<Happened> {
        loop {
            if let Some(happened) = self.told.pop_front() {
                return Some(happened);
            }
            let jobs = self.hosts.iter().filter_map(|host| host.running.map(|(at, _)| at)).min();
            let alarm = self.alarms.first_key_value().map(|((at, _), _)| *at);
            let arrival = self.arrivals.first_key_value().map(|((at, _), _)| *at);
            let medium = Some(self.medium.next_event()).filter(|at| *at < Instant::FAR);
            let at = [jobs, alarm, arrival, medium].into_iter().flatten().min()?;
            self.now = self.now.max(at);
            if medium == Some(at) {
                self.on_medium(at);
            } else if arrival == Some(at) {
                self.on_arrival();
            } else if jobs == Some(at) {
                self.on_job_done(at);
            } else if let Some((_, happened)) = self.alarms.pop_first() {
                return Some(happened);
            }
        }
    }

    fn on_medium(&mut self, now: Instant) {
        for outcome in self.medium.advance(now) {
            let (FrameFate::Delivered { from, .. } | FrameFate::Discarded { from, .. }) = outcome;
            let host = &mut self.hosts[from];
            host.on_wire = false;
            let Some(packet) = host.card.pop_front() else { continue };
            // The interrupt of the completed one starts the next one.
            host.interrupts.push_back((PER_PACKET, Job::Started));
            match outcome {
                FrameFate::Delivered { at, .. } => {
                    self.order += 1;
                    self.arrivals.insert((at, self.order), (from, packet));
                }
                FrameFate::Discarded { .. } => self.told.push_back(Happened::Lost { host: from, packet }),
            }
            self.dispatch(from);
        }
    }

    fn on_arrival(&mut self) {
        let Some((_, (from, packet))) = self.arrivals.pop_first() else { return };
        for host in 0..self.hosts.len() {
            if host != from && packet.to.is_none_or(|to| to == host) {
                // Reading the card over the same bus takes as long as writing it.
                let cost = RECEIVE_BESIDE_COPY + copy_to_nic(packet.octets);
                self.hosts[host].interrupts.push_back((cost, Job::Receive(packet)));
                self.dispatch(host);
            }
        }
    }

    fn on_job_done(&mut self, now: Instant) {
        let due = |host: &Host| host.running.is_some_and(|(at, _)| at == now);
        let Some(index) = self.hosts.iter().position(due) else { return };
        let Some((_, job)) = self.hosts[index].running.take() else { return };
        match job {
            Job::Copy(packet) => {
                self.hosts[index].card.push_back(packet);
                // An empty card starts at once; otherwise the completion of the one before does it.
                if self.hosts[index].card.len() == 1 && !self.starting(index) {
                    self.start(index);
                }
            }
            Job::Started => self.start(index),
            Job::Receive(packet) => self.told.push_back(Happened::Received { host: index, packet }),
            Job::Work(tag) => self.told.push_back(Happened::Worked { host: index, tag }),
        }
        self.dispatch(index);
    }

    /// Whether the completion interrupt, which starts the next packet, is still to come.
    fn starting(&self, index: usize) -> bool {
        self.hosts[index].interrupts.iter().any(|(_, job)| matches!(job, Job::Started))
    }

    fn start(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        let Some(packet) = host.card.front().filter(|_| !host.on_wire) else { return };
        host.on_wire = true;
        let sent = self.medium.send(self.now, index, packet.tag, Octets::new(packet.octets + FRAMING));
        assert_eq!(sent, Ok(()), "the host keeps its card's memory, so there is room for one");
    }

    /// Gives an idle processor its next job: interrupts first, and copies only while the card has room.
    fn dispatch(&mut self, index: usize) {
        let now = self.now;
        let host = &mut self.hosts[index];
        if host.running.is_some() {
            return;
        }
        let job = host.interrupts.pop_front().or_else(|| {
            let room = host.card.len() < CARD_PACKETS;
            if room { host.jobs.pop_front() } else { None }
        });
        host.running = job.map(|(cost, job)| (now + cost, job));
    }
}
