//! The hashes by which two runs are compared.

use crate::engine::Digest;
use crate::hosts::Receipt;
use rota_contract::MessageOutcome;
use rota_proto::{Delivery, MessageDelivery};
use rota_units::Instant;

/// Hashes of one run, or their sums over many. The first changes with each wake-up more; the others change
/// only where a program gets something else, or at another time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hashes {
    /// All events with their order.
    pub events: Digest,
    /// Units and their parts: when and where they came, which octets, and if a unit came whole.
    pub deliveries: Digest,
    /// The same of messages of link control from other stations, and the outcomes that senders were told.
    pub messages: Digest,
}

impl Hashes {
    /// Each with the key that it has in JSON.
    pub fn named(&self) -> [(&'static str, Digest); 3] {
        let Self { events, deliveries, messages } = *self;
        [("event_hash", events), ("delivery_hash", deliveries), ("message_hash", messages)]
    }

    /// Adds the hashes of one run of many. The order of the runs does not count: threads end as they will.
    pub fn add(&mut self, seed: u64, of: &Self) {
        let Self { events, deliveries, messages } = self;
        for (sum, (_, one)) in [events, deliveries, messages].into_iter().zip(of.named()) {
            let mut run = Digest(seed);
            run.note(one.0);
            sum.0 = sum.0.wrapping_add(run.0);
        }
    }

    /// A fragment came to the host `to`, for this flow of the world if it is one.
    pub(super) fn fragment(&mut self, now: Instant, to: usize, flow: Option<usize>, part: &Delivery) {
        let of = part.descriptor;
        let place = u64::from(part.octets) << 32 | u64::from(of.fragment_offset);
        let flow = flow.map_or(u64::MAX, |flow| flow as u64);
        self.deliveries.note(now.as_nanos() ^ (to as u64) << 56);
        self.deliveries.note(place ^ flow.rotate_right(8) ^ of.number << 40);
    }

    /// A unit has come as far as it will.
    pub(super) fn unit(&mut self, receipt: &Receipt) {
        let verdict = u64::from(receipt.complete) << 1 | u64::from(receipt.intact);
        self.deliveries.note(receipt.at.as_nanos() ^ verdict << 56);
    }

    /// A message came to the host `to`.
    pub(super) fn message(&mut self, now: Instant, to: usize, message: &MessageDelivery) {
        let place = u64::from(message.octets) << 32 | u64::from(message.socket);
        self.messages.note(now.as_nanos() ^ (to as u64) << 56 ^ place);
    }

    /// A sender was told the outcome of its message.
    pub(super) fn outcome(&mut self, now: Instant, number: u64, outcome: MessageOutcome) {
        let told = match outcome {
            MessageOutcome::Sent => 1,
            MessageOutcome::Acknowledged => 2,
            MessageOutcome::Failed(_) => 3,
            MessageOutcome::TimedOut => 4,
        };
        self.messages.note(now.as_nanos() ^ number << 32 ^ told << 60);
    }
}

impl std::fmt::Display for Hashes {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { events, deliveries, messages } = self;
        write!(out, "event hash {events}, deliveries {deliveries}, messages {messages}")
    }
}
