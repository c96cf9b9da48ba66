//! A simulated host: the node, its processor, its queue of received frames, and what its programs saw.

mod ports;
mod profile;

pub use ports::{HostPort, Station};
pub use profile::HostProfile;

use crate::clocks::Clock;
use crate::engine::Stream;
use crate::media::Frame;
use rota_proto::rtip::HopEvent;
use rota_proto::{ChannelEvent, ChannelId, Delivery, Node, Payloads, PortId};
use rota_units::{Instant, Span};
use rota_wire::{FrameView, Kind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A unit as its receiver got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Its number.
    pub number: u64,
    /// When its last fragment arrived, in the world's time; meaningful when complete.
    pub at: Instant,
    /// From ready to delivered in the world's time; zero for a channel that the world did not open.
    pub delay: Span,
    /// Whether all octets came.
    pub complete: bool,
    /// Whether the octets were those that were sent.
    pub intact: bool,
}

#[derive(Debug)]
struct Assembly {
    octets: u32,
    fragments: u32,
    intact: bool,
}

/// A host that stands still with each n-th token in its hands.
#[derive(Clone, Copy, Debug)]
pub struct Keeps {
    /// For so long.
    pub hold: Span,
    /// Which ones.
    pub nth: u32,
    /// How many have come.
    pub tokens: u32,
}

/// The faults of a host.
#[derive(Debug, Default)]
pub struct Flaws {
    /// How it keeps tokens for longer than its slots.
    pub keeps: Option<Keeps>,
    /// How much later than it hands them over its units leave its card.
    pub units_late: Span,
    /// It never says that it stands still.
    pub hides_stalls: bool,
    /// Its kernel gives no receive stamps.
    pub stampless: bool,
}

/// The observations of the programs behind a process.
#[derive(Debug, Default)]
pub struct Programs {
    /// The events of its channels, oldest first.
    pub events: Vec<ChannelEvent>,
    /// The events of its channels across segments, oldest first.
    pub hop_events: Vec<HopEvent>,
    /// Units received, by channel.
    pub receipts: BTreeMap<ChannelId, Vec<Receipt>>,
    /// Which flow of the world a received channel is.
    pub(crate) incoming: BTreeMap<ChannelId, usize>,
    /// Listeners of programs whose channel never opened, which listen again.
    pub(crate) waiting: BTreeSet<u64>,
    /// Channels that join others, and which unit of all is the first one of each.
    pub(crate) joins: BTreeMap<ChannelId, Option<u64>>,
    assembling: BTreeMap<(ChannelId, u64), Assembly>,
}

/// How a process runs, and what waits for it. The node is beside it: a host without one may be stopped.
#[derive(Debug)]
pub(crate) struct Process {
    /// Until when the process is stopped.
    pub(crate) paused_until: Instant,
    /// For how long it stood still since it was last told.
    pub(crate) stood: Span,
    pub(crate) inbox: VecDeque<Waiting>,
    /// True if an event will come when the processor is free.
    pub(crate) serving: bool,
    /// When the earliest wake-up that is still to come will come.
    pub(crate) alarm: Instant,
}

/// A received frame that the process has not looked at.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// The port that it came to.
    pub(crate) port: PortId,
    /// When it came, in the world's time.
    pub(crate) at: Instant,
    /// The time of the host's clock then.
    pub(crate) stamp: Instant,
    pub(crate) frame: Frame,
}

impl Default for Process {
    fn default() -> Self {
        Self {
            paused_until: Instant::ZERO,
            stood: Span::ZERO,
            inbox: VecDeque::new(),
            serving: false,
            alarm: Instant::FAR,
        }
    }
}

/// The processor, which outlives the processes.
#[derive(Debug)]
pub(crate) struct Processor {
    /// Until when it is busy.
    pub(crate) busy_until: Instant,
    /// Until when data frames follow the last without a new start.
    card_warm_until: Instant,
}

/// One host.
#[derive(Debug)]
pub struct Host {
    /// The node, unless it was killed.
    pub node: Option<Node>,
    /// Its cards, one on each of its segments; the places are the numbers of the node's ports.
    pub ports: Vec<HostPort>,
    /// How often it has been started.
    pub boots: u32,
    /// Its monotonic clock.
    pub clock: Clock,
    /// What its processor costs.
    pub profile: HostProfile,
    /// Its faults.
    pub flaws: Flaws,
    /// The observations of its programs; it is forgotten with the process.
    pub programs: Programs,
    /// Ordinary frames received.
    pub ordinary_received: u64,
    /// Frames that a stopped, dead or busy process lost.
    pub inbox_drops: u64,
    pub(crate) process: Process,
    pub(crate) processor: Processor,
    pub(crate) next_tag: u32,
    pub(crate) random: Stream,
}

/// Frames that a socket keeps for a process that does not look.
pub(crate) const INBOX_MAX: usize = 4_096;

impl Host {
    /// A frame waits for the process, with the stamp that the kernel gave it: the clock may change its rate
    /// before it is read.
    pub(crate) fn queue(&mut self, port: PortId, at: Instant, frame: Frame) {
        let stamp = self.clock.read(at);
        self.process.inbox.push_back(Waiting { port, at, stamp, frame });
    }

    pub(crate) fn new(ports: Vec<HostPort>, clock: Clock, profile: HostProfile, random: Stream) -> Self {
        Self {
            node: None,
            ports,
            boots: 0,
            clock,
            profile,
            flaws: Flaws::default(),
            programs: Programs::default(),
            ordinary_received: 0,
            inbox_drops: 0,
            process: Process::default(),
            processor: Processor { busy_until: Instant::ZERO, card_warm_until: Instant::ZERO },
            next_tag: 0,
            random,
        }
    }

    /// The process is gone, and with it all that it knew; the card, the clock and the wires stay.
    pub(crate) fn lose_process(&mut self) {
        self.node = None;
        self.process = Process::default();
        self.programs = Programs::default();
        self.ports.iter_mut().for_each(HostPort::lose_gate);
    }

    /// The channels that it receives, and which flow of the world each is.
    pub fn incoming(&self) -> impl Iterator<Item = (ChannelId, usize)> + '_ {
        self.programs.incoming.iter().map(|(channel, flow)| (*channel, *flow))
    }

    /// True if it keeps this token, which has just come.
    pub(crate) fn keeps_this(&mut self) -> bool {
        let Some(keeps) = &mut self.flaws.keeps else { return false };
        keeps.tokens += 1;
        keeps.tokens % keeps.nth == 0
    }

    /// Whether its process can run at `now`.
    pub fn is_running(&self, now: Instant) -> bool {
        self.node.is_some() && now >= self.process.paused_until
    }

    /// The last event that says how opening a channel ended: its bound, or `None` when it was refused.
    pub fn opened(&self, channel: ChannelId) -> Option<Option<Span>> {
        self.programs.events.iter().rev().find_map(|event| match event {
            ChannelEvent::Opened { channel: id, granted, .. } if *id == channel => {
                Some(Some(granted.bound()))
            }
            ChannelEvent::Refused { channel: id, .. } if *id == channel => Some(None),
            _ => None,
        })
    }
}

impl Programs {
    /// The number, among all units of its sender, of the first one that a channel got.
    fn first_of(&mut self, delivery: &Delivery, payload: &[u8]) -> u64 {
        let Some(first) = self.joins.get_mut(&delivery.channel) else { return 0 };
        let unit = &delivery.descriptor;
        *first.get_or_insert_with(|| Pattern::number(unit.fragment_offset, payload).wrapping_sub(unit.number))
    }

    /// A fragment arrived; returns what became of its unit when it was the last.
    pub(crate) fn deliver(&mut self, at: Instant, delivery: &Delivery, payload: &[u8]) -> Option<Receipt> {
        let mut unit = delivery.descriptor;
        unit.number = unit.number.wrapping_add(self.first_of(delivery, payload));
        let key = (delivery.channel, unit.number);
        let fresh = || Assembly { octets: 0, fragments: 0, intact: true };
        let assembly = self.assembling.entry(key).or_insert_with(fresh);
        assembly.octets += payload.len() as u32;
        assembly.fragments += 1;
        assembly.intact &= Pattern::is_intact(unit.number, unit.fragment_offset, payload);
        if !unit.last {
            return None;
        }
        let assembly = self.assembling.remove(&key)?;
        // A unit behind the newest one will not be completed any more.
        while let Some((old, _)) = self.assembling.range((delivery.channel, 0)..key).next() {
            let old = *old;
            self.assembling.remove(&old);
        }
        let receipt = Receipt {
            number: unit.number,
            at,
            delay: Span::ZERO,
            complete: assembly.octets == unit.unit_octets
                && assembly.fragments == u32::from(unit.fragment) + 1,
            intact: assembly.intact,
        };
        Some(receipt)
    }
}

/// Units whose every eight octets are made of number and place, so that a receiver can check them.
pub(crate) struct Pattern;

impl Pattern {
    fn word(number: u64, at: u64) -> [u8; 8] {
        (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at).to_be_bytes()
    }

    /// The number of the unit that these octets are of.
    fn number(offset: u32, payload: &[u8]) -> u64 {
        let word = payload.first_chunk().map_or(0, |octets| u64::from_be_bytes(*octets));
        // The inverse of the odd number that makes a word, by Newton's method: each step doubles the bits.
        let factor = 0x9e37_79b9_7f4a_7c15u64;
        let inverse =
            (0..6).fold(factor, |of, _| of.wrapping_mul(2u64.wrapping_sub(factor.wrapping_mul(of))));
        (word ^ u64::from(offset)).wrapping_mul(inverse)
    }

    fn is_intact(number: u64, offset: u32, payload: &[u8]) -> bool {
        let words = payload.chunks(8).enumerate();
        words
            .into_iter()
            .all(|(at, chunk)| *chunk == Self::word(number, u64::from(offset) + 8 * at as u64)[..chunk.len()])
    }
}

impl Payloads for Pattern {
    fn copy_unit(&mut self, _: ChannelId, number: u64, offset: u32, into: &mut [u8]) -> bool {
        for (at, chunk) in into.chunks_mut(8).enumerate() {
            let word = Self::word(number, u64::from(offset) + 8 * at as u64);
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        true
    }

    fn copy_message(&mut self, _: u8, number: u64, offset: u32, into: &mut [u8]) -> bool {
        // Fragments of messages begin at no multiple of a word.
        for (at, octet) in into.iter_mut().enumerate() {
            *octet = (number as usize * 31 + offset as usize + at) as u8;
        }
        true
    }
}

impl Host {
    /// How late the process is this time.
    pub(crate) fn lateness(&mut self) -> Span {
        if !self.random.happens(self.profile.late_ppm) {
            return Span::ZERO;
        }
        let late = Span::from_nanos(self.random.below(self.profile.late_max.as_nanos() + 1));
        self.process.stood = self.process.stood.max(late);
        late
    }

    /// The process runs again, and knows for how long it did not.
    pub(crate) fn tell_stall(&mut self, now: Instant) {
        let stood = std::mem::take(&mut self.process.stood);
        let now = self.clock.read(now);
        if let Some(node) = self.node.as_mut().filter(|_| stood > Span::ZERO && !self.flaws.hides_stalls) {
            node.stood_still(now, stood);
        }
    }

    /// Charges the processor for handing a frame to the card; returns when it has done so.
    pub(crate) fn charge(&mut self, now: Instant, frame: &[u8], ether_type: u16) -> Instant {
        let data = match FrameView::parse(frame, ether_type) {
            Ok(view) => view.header().kind == Kind::Data,
            Err(_) => true,
        };
        let profile = &self.profile;
        let mut cost = if data { profile.send_data } else { profile.send_control };
        if data && now > self.processor.card_warm_until {
            cost += profile.first_data;
        }
        self.processor.busy_until = self.processor.busy_until.max(now) + cost;
        if data {
            self.processor.card_warm_until = self.processor.busy_until + profile.first_data;
        }
        self.processor.busy_until
    }
}
