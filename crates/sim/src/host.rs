//! A simulated host: the node, its queue of received frames, and what its programs saw.

use rota_proto::{ChannelEvent, ChannelId, Node, Payloads};
use rota_units::{Instant, Span};
use std::collections::{BTreeMap, VecDeque};

/// A unit as its receiver got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Its number.
    pub number: u64,
    /// When its last fragment arrived; meaningful when complete.
    pub at: Instant,
    /// From ready to delivered.
    pub delay: Span,
    /// Whether all octets came.
    pub complete: bool,
}

#[derive(Debug, Default)]
struct Assembly {
    octets: u32,
    fragments: u32,
}

/// One host.
#[derive(Debug)]
pub struct Host {
    /// The node, unless it was killed.
    pub node: Option<Node>,
    /// Until when the process is stopped.
    pub paused_until: Instant,
    /// What happened to its channels, oldest first.
    pub events: Vec<ChannelEvent>,
    /// Intervals in which it held a token: generation, accepted, passed.
    pub holds: Vec<(u32, Instant, Instant)>,
    /// Units received, by channel.
    pub receipts: BTreeMap<ChannelId, Vec<Receipt>>,
    /// A fault: its kernel gives no receive stamps.
    pub stampless: bool,
    /// Ordinary frames received.
    pub ordinary_received: u64,
    pub(crate) inbox: VecDeque<(Instant, Vec<u8>)>,
    pub(crate) gated: bool,
    pub(crate) host_frames: BTreeMap<u32, Vec<u8>>,
    pub(crate) next_tag: u32,
    pub(crate) wake: u64,
    pub(crate) alarm: Instant,
    assembling: BTreeMap<(ChannelId, u64), Assembly>,
}

impl Host {
    pub(crate) fn new(node: Node) -> Self {
        Self {
            node: Some(node),
            paused_until: Instant::ZERO,
            events: Vec::new(),
            holds: Vec::new(),
            receipts: BTreeMap::new(),
            stampless: false,
            ordinary_received: 0,
            inbox: VecDeque::new(),
            gated: false,
            host_frames: BTreeMap::new(),
            next_tag: 0,
            wake: 0,
            alarm: Instant::FAR,
            assembling: BTreeMap::new(),
        }
    }

    pub(crate) fn deliver(&mut self, at: Instant, delivery: &rota_proto::Delivery) {
        let unit = &delivery.descriptor;
        let assembly = self.assembling.entry((delivery.channel, unit.number)).or_default();
        assembly.octets += u32::from(delivery.octets);
        assembly.fragments += 1;
        if !unit.last {
            return;
        }
        let assembly = self.assembling.remove(&(delivery.channel, unit.number)).unwrap_or_default();
        let receipt = Receipt {
            number: unit.number,
            at,
            delay: at.since(Instant::from_nanos(unit.schedule_ns)),
            complete: assembly.octets == unit.unit_octets
                && assembly.fragments == u32::from(unit.fragment) + 1,
        };
        self.receipts.entry(delivery.channel).or_default().push(receipt);
    }

    /// The last event that says how opening a channel ended: its bound, or `None` when it was refused.
    pub fn opened(&self, channel: ChannelId) -> Option<Option<Span>> {
        self.events.iter().rev().find_map(|event| match event {
            ChannelEvent::Opened { channel: id, contract, .. } if *id == channel => {
                Some(Some(contract.bound))
            }
            ChannelEvent::Refused { channel: id, .. } if *id == channel => Some(None),
            _ => None,
        })
    }
}

/// Units made of their own number and offset, so that a receiver could check them.
pub(crate) struct Pattern;

impl Payloads for Pattern {
    fn copy_unit(&mut self, _: ChannelId, number: u64, offset: u32, into: &mut [u8]) -> bool {
        for (at, octet) in into.iter_mut().enumerate() {
            *octet = (number as u8).wrapping_add((offset as usize + at) as u8);
        }
        true
    }
}
