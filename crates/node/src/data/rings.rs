//! Memory that this host's programs map: rings that units and messages are copied from, and rings that they
//! are copied to.

use super::units::{Due, Source};
use super::waits::Waits;
use crate::circuits::Circuits;
use crate::commands::{DataEnd, Note, Remains, SinkMemory};
use crate::sockets::Sockets;
use crate::waker::{Sleeper, Wakes};
use rota_contract::Unread;
use rota_proto::{ChannelId, Delivery, Node, Payloads};
use rota_shm::{ChannelCounter, RingFragment};
use rota_units::Instant;
use std::os::fd::AsFd;
use std::sync::Arc;

/// The ring of a channel that comes.
pub(super) struct Sink {
    pub(super) channel: ChannelId,
    pub(super) memory: SinkMemory,
    /// Fragments were written since its program was last woken.
    pushed: bool,
    /// How often its program had asked for its bell when that was last looked at.
    armed: u64,
    /// The units of which the machine knows that they were not read.
    pub(super) unread: Unread,
    /// Late units so far, as the machine counts them.
    pub(super) late: u64,
    /// The counts of a program that takes its frames itself, as they were last read.
    pub(super) stated: Option<rota_shm::Stated>,
}

impl Sink {
    pub(super) fn new(channel: ChannelId, memory: SinkMemory) -> Self {
        Self { channel, memory, pushed: false, armed: 0, unread: Unread::default(), late: 0, stated: None }
    }
}

/// All rings of this host's programs.
pub(super) struct Rings {
    pub(super) sources: Vec<Source>,
    pub(super) sinks: Vec<Sink>,
    pub(super) sockets: Sockets,
    pub(super) circuits: Circuits,
    pub(super) wakes: Wakes,
    /// A slot has called for something.
    pub(super) has_due: bool,
    /// Until then every unit handed over has been seen.
    pub(super) looked: Instant,
    /// When the reports of other stations were last looked at.
    pub(super) reported: Instant,
}

impl Payloads for Rings {
    fn copy_unit(&mut self, channel: ChannelId, number: u64, offset: u32, into: &mut [u8]) -> bool {
        let source = self.sources.iter_mut().find(|source| source.channel == channel);
        source.filter(|source| source.due != Due::End).is_some_and(|source| {
            source.begun = source.begun.max(Some(number));
            let offered = source.offered.iter().find(|offered| offered.told.number == number);
            offered.is_some_and(|offered| source.memory.ring.copy(&offered.unit, offset, into))
        })
    }

    fn copy_message(&mut self, socket: u8, number: u64, offset: u32, into: &mut [u8]) -> bool {
        self.sockets.copy(socket, number, offset, into)
    }
}

impl Rings {
    pub(super) fn new() -> Self {
        Self {
            sources: Vec::with_capacity(256),
            sinks: Vec::with_capacity(256),
            sockets: Sockets::new(),
            circuits: Circuits::new(),
            wakes: Wakes::default(),
            has_due: false,
            looked: Instant::ZERO,
            reported: Instant::ZERO,
        }
    }

    /// Writes a fragment that came to its receiver's ring. Returns the place of the ring.
    pub(super) fn deliver(
        &mut self,
        delivery: &Delivery,
        frame: &[u8],
        dequeued_at: Instant,
        node: &Node,
    ) -> Option<usize> {
        let index = self.sinks.iter().position(|sink| sink.channel == delivery.channel)?;
        let sink = &mut self.sinks[index];
        let late = sink.is_late(node);
        let start = usize::from(delivery.offset);
        let payload = frame.get(start..start + usize::from(delivery.octets))?;
        let unit = &delivery.descriptor;
        let descriptor = RingFragment {
            number: unit.number,
            fragment: unit.fragment,
            last: unit.last,
            unit_octets: unit.unit_octets,
            offset: unit.fragment_offset,
            schedule_ns: unit.schedule_ns,
            arrived_at: unit.arrived,
            dequeued_at,
            late,
        };
        let counter = if sink.memory.ring.push(&descriptor, payload) {
            sink.pushed = true;
            ChannelCounter::Fragments
        } else {
            ChannelCounter::FragmentsBad
        };
        sink.memory.board.count(counter, 1);
        sink.memory.board.count(ChannelCounter::Octets, payload.len() as u64);
        Some(index)
    }

    /// A channel goes on over another path: its units are offered again once the machines are drained.
    pub(super) fn offer_again(&mut self, channel: ChannelId) {
        let source = self.sources.iter_mut().find(|source| source.channel == channel);
        if let Some(source) = source.filter(|source| source.due != Due::End) {
            source.due = Due::OfferAgain;
            self.has_due = true;
        }
    }

    /// Receivers are woken once a turn, however many frames came.
    pub(super) fn wake_receivers(&mut self, node: &Node) {
        self.sockets.wake(&mut self.wakes);
        self.circuits.wake(node, &mut self.wakes);
        for sink in self.sinks.iter_mut().filter(|sink| sink.pushed) {
            sink.pushed = false;
            sink.memory.board.count(ChannelCounter::Wakes, 1);
            if let Some(tally) = node.received(sink.channel) {
                sink.memory.board.set_tally(&tally);
            }
            self.wakes.notify(&sink.memory.sleeper);
            let ring = &mut sink.memory.ring;
            sink.memory.sleeper.ring_if_armed(&mut sink.armed, || ring.armed());
        }
    }

    /// The program of a channel has a bell from now on.
    pub(super) fn hang_bell(&mut self, channel: ChannelId, sleeper: Arc<Sleeper>) {
        if let Some(source) = self.sources.iter_mut().find(|source| source.channel == channel) {
            source.memory.sleeper = sleeper;
        } else if let Some(sink) = self.sinks.iter_mut().find(|sink| sink.channel == channel) {
            sink.memory.sleeper = sleeper;
        }
    }

    /// Lets the memory of a channel go. Unmapping takes milliseconds, and the token would wait: the control
    /// thread does it.
    pub(super) fn forget(&mut self, channel: ChannelId, waits: &Waits, control: &DataEnd) {
        if let Some(at) = self.sources.iter().position(|source| source.channel == channel) {
            let Source { memory, .. } = self.sources.swap_remove(at);
            waits.remove(memory.doorbell.as_fd());
            control.say(Note::Remains(Remains::Source(memory)));
        }
        if let Some(at) = self.sinks.iter().position(|sink| sink.channel == channel) {
            let Sink { memory, .. } = self.sinks.swap_remove(at);
            control.say(Note::Remains(Remains::Sink(memory)));
        }
    }
}
