//! Messages of link control as the world's programs send them: one socket for each priority.

use super::{Plant, World};
use crate::check::Seen;
use crate::traffic::Messages;
use rota_contract::MessageOutcome;
use rota_proto::{LLC_BROADCAST, LlcAddress, LlcEvent, LlcRequest, Node};
use rota_units::Instant;
use rota_wire::llc::information_max;

/// A message that a program has handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Whose.
    pub from: usize,
    /// Its priority.
    pub level: u8,
    /// Whether it is to be acknowledged.
    pub ack: bool,
    /// Whose it will be; everybody's when `None`.
    pub to: Option<usize>,
    /// Whether it travels in fragments.
    pub cut: bool,
}

/// What became of the messages of a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// Handed over.
    pub handed: u64,
    /// All frames were given to the card.
    pub sent: u64,
    /// Acknowledged.
    pub acknowledged: u64,
    /// Failed, or not taken.
    pub failed: u64,
    /// Received whole; those to all by each station.
    pub received: u64,
}

/// The socket of a priority.
pub fn socket_of(level: u8) -> u8 {
    2 + 2 * level.min(7)
}

/// The priority of a socket.
pub fn level_of(socket: u8) -> u8 {
    (socket / 2).saturating_sub(1).min(7)
}

/// Node addresses are station numbers as far as these go.
pub(super) fn address_of(index: usize) -> u8 {
    u8::try_from(index + 1).ok().filter(|node| *node < LLC_BROADCAST).unwrap_or(0)
}

pub(super) fn open_sockets(node: &mut Node) {
    (0..8).for_each(|level| node.llc_open(socket_of(level)));
}

impl World {
    /// A program hands over a message.
    pub fn message(&mut self, about: &Messages, octets: u32) {
        let Messages { from, to, level, ack } = *about;
        let socket = socket_of(level);
        let node = to.map_or(LLC_BROADCAST, address_of);
        self.traffic.messages.handed += 1;
        let request = LlcRequest {
            socket,
            number: self.traffic.messages.handed,
            octets,
            to: LlcAddress { socket, node },
            level: if self.spec.plant == Some(Plant::OneLevel) { 0 } else { level },
            ack,
            tries: 3,
            until: Instant::FAR,
        };
        let host = &mut self.hosts[from];
        let now = host.clock.read(self.engine.now());
        let Some(node) = &mut host.node else { return };
        let taken = node.llc_send(now, &request).is_ok();
        self.traffic.messages.failed += u64::from(!taken);
        // A message to nobody is over before it waits for anything.
        if taken && !self.message_events(from) {
            let on = self.hosts[from].ports[0].segment;
            let cut = octets as usize > information_max(self.segments[on].settings.link.framing.mtu);
            self.segments[on].saw(Seen::Message(Message { from, level, ack, to, cut }));
        }
        self.drain_and_arm(from);
    }

    /// Takes what a node tells of messages; whether one of them has failed.
    pub(super) fn message_events(&mut self, host: usize) -> bool {
        let mut failed = false;
        while let Some(event) = self.hosts[host].node.as_mut().and_then(Node::next_llc_event) {
            let counts = &mut self.traffic.messages;
            if let LlcEvent::Done { number, outcome, .. } = event {
                self.hashes.outcome(self.engine.now(), number, outcome);
            }
            match event {
                LlcEvent::Begun { .. } => {}
                LlcEvent::Local { .. } => counts.received += 1,
                LlcEvent::Done { outcome: MessageOutcome::Sent, .. } => counts.sent += 1,
                LlcEvent::Done { outcome: MessageOutcome::Acknowledged, .. } => counts.acknowledged += 1,
                LlcEvent::Done { .. } => {
                    failed = true;
                    counts.failed += 1;
                }
            }
        }
        failed
    }

    /// What became of the messages so far.
    pub fn messages(&self) -> MessageCounts {
        self.traffic.messages
    }
}
