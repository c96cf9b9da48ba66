//! Receive queues of channels: what the node asks its role for them.

use super::{CHANNEL_COUNTS, CLOSE_CHANNEL, NUMBERS, NoQueue, OPEN_CHANNEL, Queues, Shared};
use crate::ledger::RingCharge;
use rota_driver::bypass::Refused;
use rota_driver::bypass::channel::Stream;
use rota_proto::Facing;
use rota_wire::{Generation, HeaderKey, MacAddr, PayloadKind};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The queue of a channel. The role takes it away when this value goes.
pub(crate) struct ChannelQueue {
    slot: u32,
    shared: Arc<Shared>,
    /// For the memory of its ring.
    pub(crate) charge: Option<RingCharge>,
}

impl std::fmt::Debug for ChannelQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelQueue").field("slot", &self.slot).finish_non_exhaustive()
    }
}

impl Drop for ChannelQueue {
    fn drop(&mut self) {
        // A role that is lost has taken its filters with it.
        let _ = self.shared.ask(&[CLOSE_CHANNEL, self.slot], None);
    }
}

impl Queues {
    /// Gives a channel a queue of so many octets: the queue, and its ring.
    pub(crate) fn open_channel(
        &self,
        facing: &Facing,
        octets: u32,
    ) -> Result<(ChannelQueue, OwnedFd), NoQueue> {
        let mut answer = self.ask(&request(facing, octets), None)?;
        match (answer.numbers, answer.descriptors.pop()) {
            ([0, slot, ..], Some(ring)) => {
                let queue = ChannelQueue { slot, shared: self.shared.clone(), charge: None };
                Ok((queue, ring))
            }
            ([0, ..], None) => Err(NoQueue::Unavailable("no ring came along".into())),
            _ if !answer.text.is_empty() => Err(NoQueue::Unavailable(answer.text)),
            ([code, ..], _) => Err(NoQueue::Refused(Refused::of(code))),
        }
    }

    /// For programs: the kernel's counts of a channel.
    pub(crate) fn json_of(&self, channel: u64, queue: &ChannelQueue) -> Option<serde_json::Value> {
        let [_, a, b, c, d, ..] = self.ask(&[CHANNEL_COUNTS, queue.slot], None).ok()?.numbers;
        let word = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let (frames, full) = (word(a, b), word(c, d));
        Some(serde_json::json!({ "channel": channel, "frames": frames, "queue_full": full }))
    }
}

fn request(facing: &Facing, octets: u32) -> [u32; NUMBERS] {
    let facts = &facing.facts;
    let [a, b, c, d, e, f] = facts.from.0;
    let mut numbers = [0; NUMBERS];
    numbers[..11].copy_from_slice(&[
        OPEN_CHANNEL,
        facing.port.0.into(),
        octets,
        facts.ether_type.into(),
        u32::from_be_bytes([a, b, c, d]),
        u32::from_be_bytes([e, f, 0, 0]) | u32::from(facts.label),
        u32::from(facts.payload.code()) << 24 | u32::from(facts.key_epoch) << 16 | u32::from(facts.source),
        facts.segment,
        facts.incarnation,
        facts.generation.counter,
        facts.generation.station.into(),
    ]);
    // A counter has 48 bits.
    numbers[1] |= ((facts.counter >> 32) as u32) << 16;
    numbers[15] = facts.counter as u32;
    for (number, word) in numbers[11..15].iter_mut().zip(facts.header_key.octets().chunks_exact(4)) {
        *number = u32::from_be_bytes([word[0], word[1], word[2], word[3]]);
    }
    numbers
}

/// The interface by its place, the EtherType, and the octets of a request.
pub(super) fn place_of(numbers: &[u32; NUMBERS]) -> (u16, u16, u32) {
    (numbers[1] as u16, numbers[3] as u16, numbers[2])
}

/// The frames that a request names.
pub(super) fn stream_of(numbers: &[u32; NUMBERS]) -> Option<Stream> {
    let [_, _, _, ether_type, from, rest, source, segment, incarnation, counter, station, ..] = *numbers;
    if [ether_type, station].iter().any(|number| *number > u16::MAX.into()) {
        return None;
    }
    let kinds = [PayloadKind::Unit, PayloadKind::Rtip];
    let payload = kinds.into_iter().find(|kind| u32::from(kind.code()) == source >> 24)?;
    let ([a, b, c, d], [e, f, ..]) = (from.to_be_bytes(), rest.to_be_bytes());
    let mut key = [0; 16];
    for (place, number) in key.chunks_exact_mut(4).zip(&numbers[11..15]) {
        place.copy_from_slice(&number.to_be_bytes());
    }
    Some(Stream {
        from: MacAddr([a, b, c, d, e, f]),
        payload,
        label: rest as u16,
        key_epoch: (source >> 16) as u8,
        source: source as u16,
        segment,
        incarnation,
        generation: Generation { counter, station: station as u16 },
        counter: u64::from(numbers[1] >> 16) << 32 | u64::from(numbers[15]),
        number: 0,
        key: HeaderKey::new(key),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::Role;
    use nix::sys::socket::{setsockopt, sockopt};
    use nix::sys::time::TimeVal;
    use rota_proto::{DataFacts, PortId};
    use rota_wire::ChannelKey;
    use std::process::Command;
    use std::sync::Mutex;

    /// The next program got the answer to this request, and in the end another program's ring.
    #[test]
    fn a_role_that_does_not_answer_a_close_is_asked_no_more() {
        let mut silent = Command::new("sleep");
        silent.arg("60");
        let role = Role::run(silent).expect("a process");
        let patience = TimeVal::new(0, 10_000);
        setsockopt(role.socket(), sockopt::ReceiveTimeout, &patience).expect("a socket");
        let shared = Arc::new(Shared { role: Mutex::new(Some(role)), none: Mutex::default() });
        drop(ChannelQueue { slot: 3, shared: shared.clone(), charge: None });
        assert!(shared.role.lock().expect("no panic").is_none());
        assert!(shared.none().is_some_and(|why| why.contains("is lost")));
    }

    #[test]
    fn the_role_understands_what_the_node_asks_for() {
        let facts = DataFacts {
            ether_type: 0x88b5,
            from: MacAddr([2, 3, 4, 5, 6, 7]),
            source: 0x0102,
            segment: 0xa1b2_c3d4,
            incarnation: 0xdead_beef,
            key_epoch: 0xee,
            generation: Generation { counter: 0x1234_5678, station: 0x9abc },
            payload: PayloadKind::Rtip,
            label: 0xfedc,
            counter: 0x89ab_0123_4567,
            header_key: HeaderKey::new(std::array::from_fn(|at| at as u8)),
            channel_key: ChannelKey::new([0; 32]),
        };
        let facing = Facing { port: PortId(3), facts: facts.clone(), fragment_octets: 1, one_clock: true };
        let numbers = request(&facing, 1 << 20);
        assert_eq!(place_of(&numbers), (3, 0x88b5, 1 << 20));
        let stream = stream_of(&numbers).expect("a request of a node");
        assert_eq!((stream.from, stream.label, stream.key_epoch), (facts.from, facts.label, facts.key_epoch));
        assert_eq!((stream.source, stream.segment), (facts.source, facts.segment));
        assert_eq!((stream.incarnation, stream.generation), (facts.incarnation, facts.generation));
        assert_eq!(stream.counter, facts.counter);
        assert_eq!((stream.key, stream.payload), (facts.header_key, PayloadKind::Rtip));
        assert_eq!(stream_of(&[u32::MAX; NUMBERS]), None);
    }
}
