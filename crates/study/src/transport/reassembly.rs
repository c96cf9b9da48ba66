//! Units put together again from datagrams, in order; what is missing is told, never waited for.

use super::datagram::{Datagram, FragmentHead, PIECE_OCTETS, parse, pieces};
use super::{Arrival, Event};
use rota_units::Instant;
use std::collections::VecDeque;

/// Units that may be open at once. On one path datagrams keep their order, so that two suffice.
const OPEN_UNITS_MAX: usize = 2;
/// No stream of ours sends larger units; a forged size must not take the memory.
const UNIT_OCTETS_ACCEPTED: usize = 16 << 20;

struct Partial {
    number: u32,
    octets: Vec<u8>,
    have: Vec<bool>,
    missing: usize,
    schedule: Instant,
    arrived: Instant,
    dequeued: Instant,
}

impl Partial {
    fn open(head: &FragmentHead, at: Instant) -> Self {
        let octets = head.unit_octets as usize;
        let count = pieces(octets);
        Self {
            number: head.unit,
            octets: vec![0; octets],
            have: vec![false; count],
            missing: count,
            schedule: head.schedule,
            arrived: at,
            dequeued: at,
        }
    }

    fn put(&mut self, head: &FragmentHead, piece: &[u8], arrived: Instant, dequeued: Instant) -> bool {
        let index = usize::from(head.index);
        if self.octets.len() != head.unit_octets as usize || self.have[index] {
            return false;
        }
        let start = index * PIECE_OCTETS;
        self.octets[start..start + piece.len()].copy_from_slice(piece);
        self.have[index] = true;
        self.missing -= 1;
        self.arrived = self.arrived.max(arrived);
        self.dequeued = dequeued;
        true
    }

    fn close(mut self) -> (Arrival, Vec<u8>) {
        if self.missing > 0 {
            let whole = self.have.iter().take_while(|h| **h).count();
            self.octets.truncate(whole * PIECE_OCTETS);
        }
        let arrival = Arrival {
            number: u64::from(self.number),
            complete: self.missing == 0,
            schedule: self.schedule,
            arrived: self.arrived,
            dequeued: self.dequeued,
        };
        (arrival, self.octets)
    }
}

/// The receiving half of one stream.
#[derive(Default)]
pub struct Reassembly {
    stream: Option<u32>,
    open: VecDeque<Partial>,
    ready: VecDeque<(Arrival, Vec<u8>)>,
    /// The lowest unit number that was not delivered yet.
    next: u32,
    closed: Option<u64>,
    /// Datagrams that belong to no open unit of this stream.
    strays: u64,
}

impl Reassembly {
    /// Takes one datagram that arrived at `arrived` and was read at `dequeued`.
    pub fn on_datagram(&mut self, data: &[u8], arrived: Instant, dequeued: Instant) {
        match parse(data) {
            Some(Datagram::Fragment { stream, head, piece }) if self.is_ours(stream) => {
                self.on_fragment(&head, piece, arrived, dequeued);
            }
            Some(Datagram::End { stream, sent }) if self.is_ours(stream) => {
                self.flush_before(u32::MAX);
                self.closed = Some(u64::from(sent));
            }
            _ => self.strays += 1,
        }
    }

    /// The first sender that is heard is the one that is listened to.
    fn is_ours(&mut self, stream: u32) -> bool {
        self.closed.is_none() && *self.stream.get_or_insert(stream) == stream
    }

    fn on_fragment(&mut self, head: &FragmentHead, piece: &[u8], arrived: Instant, dequeued: Instant) {
        // The last number of all has no successor; no stream lives so long.
        if head.unit < self.next || head.unit == u32::MAX || head.unit_octets as usize > UNIT_OCTETS_ACCEPTED
        {
            self.strays += 1;
            return;
        }
        if !self.open.iter().any(|p| p.number == head.unit) {
            let at = self.open.partition_point(|p| p.number < head.unit);
            self.open.insert(at, Partial::open(head, arrived));
            while self.open.len() > OPEN_UNITS_MAX {
                self.deliver_oldest();
            }
        }
        let Some(partial) = self.open.iter_mut().find(|p| p.number == head.unit) else {
            self.strays += 1;
            return;
        };
        if !partial.put(head, piece, arrived, dequeued) {
            self.strays += 1;
        } else if partial.missing == 0 {
            // Nothing older will be completed by a path that keeps order.
            self.flush_before(head.unit.saturating_add(1));
        }
    }

    fn flush_before(&mut self, number: u32) {
        while self.open.front().is_some_and(|p| p.number < number) {
            self.deliver_oldest();
        }
    }

    fn deliver_oldest(&mut self) {
        if let Some(partial) = self.open.pop_front() {
            assert!(partial.number >= self.next, "units are delivered in order");
            self.next = partial.number.saturating_add(1);
            self.ready.push_back(partial.close());
        }
    }

    /// The next event, if there is one; a unit's octets replace what is in `unit`.
    pub fn pop(&mut self, unit: &mut Vec<u8>) -> Option<Event> {
        match self.ready.pop_front() {
            Some((arrival, octets)) => {
                *unit = octets;
                Some(Event::Unit(arrival))
            }
            None => self.closed.map(|sent| Event::Closed { sent }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::fuzz_datagrams;

    fn fragment(unit: u32, index: u16, body: &[u8]) -> Vec<u8> {
        let schedule = Instant::from_nanos(u64::from(unit));
        let head = FragmentHead { unit, index, unit_octets: body.len() as u32, schedule };
        let start = usize::from(index) * PIECE_OCTETS;
        let mut out = Vec::new();
        head.emit(9, &body[start..(start + PIECE_OCTETS).min(body.len())], &mut out);
        out
    }

    fn feed(reassembly: &mut Reassembly, at: u64, data: &[u8]) {
        let at = Instant::from_nanos(at);
        reassembly.on_datagram(data, at, at);
    }

    #[test]
    fn a_unit_arrives_with_its_last_fragment_and_a_torn_one_is_told() {
        let body: Vec<u8> = (0..3_000).map(|i| i as u8).collect();
        let (mut reassembly, mut unit) = (Reassembly::default(), Vec::new());
        for index in 0..3 {
            assert_eq!(reassembly.pop(&mut unit), None);
            feed(&mut reassembly, 10 + u64::from(index), &fragment(0, index, &body));
        }
        let Some(Event::Unit(whole)) = reassembly.pop(&mut unit) else { panic!("the unit is complete") };
        assert_eq!((whole.complete, whole.arrived.as_nanos(), &unit), (true, 12, &body));

        feed(&mut reassembly, 20, &fragment(1, 0, &body));
        feed(&mut reassembly, 21, &fragment(1, 2, &body));
        let mut end = Vec::new();
        super::super::datagram::emit_end(9, 3, &mut end);
        feed(&mut reassembly, 22, &end);
        let Some(Event::Unit(torn)) = reassembly.pop(&mut unit) else { panic!("the torn unit is told") };
        assert_eq!((torn.number, torn.complete, unit.len()), (1, false, PIECE_OCTETS));
        assert_eq!(reassembly.pop(&mut unit), Some(Event::Closed { sent: 3 }));
    }

    #[test]
    fn a_second_sender_is_not_mixed_in() {
        let (mut reassembly, mut unit) = (Reassembly::default(), Vec::new());
        feed(&mut reassembly, 1, &fragment(0, 0, b"ours"));
        let mut foreign = fragment(1, 0, b"theirs");
        foreign[7] ^= 1;
        feed(&mut reassembly, 2, &foreign);
        assert!(matches!(reassembly.pop(&mut unit), Some(Event::Unit(a)) if a.number == 0));
        assert_eq!((reassembly.pop(&mut unit), reassembly.strays), (None, 1));
    }

    #[test]
    fn the_corpus_replays() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/datagrams");
        let mut replayed = 0;
        for entry in std::fs::read_dir(dir).unwrap() {
            fuzz_datagrams(&std::fs::read(entry.unwrap().path()).unwrap());
            replayed += 1;
        }
        assert!(replayed >= 2, "the corpus is part of the repository");
    }

    proptest::proptest! {
        #[test]
        fn lost_doubled_and_swapped_fragments_never_panic(
            picks in proptest::collection::vec((0u32..6, 0u16..3, 0usize..40), 0..60)
        ) {
            let body = vec![1; 3_000];
            let mut data = Vec::new();
            for (unit, index, damage) in picks {
                let mut one = fragment(unit, index, &body);
                if damage < 28 { one[damage] ^= 1 }
                data.extend_from_slice(&(one.len() as u16).to_be_bytes());
                data.extend_from_slice(&one);
            }
            fuzz_datagrams(&data);
        }
    }
}
