//! A full-duplex link between two stations.

use super::{Card, End, Frame, MediumCounters, Step, Steps};
use rota_units::{BitRate, Instant, Octets, Span};

/// Two stations, a rate, a delay.
#[derive(Debug)]
pub struct Link {
    rate: BitRate,
    card_queue: Octets,
    delay: Span,
    /// The numbers of its two stations, the smaller one first.
    ends: [usize; 2],
    cards: [Card; 2],
    pub(super) counters: MediumCounters,
}

impl Link {
    /// A link whose far end has a frame whole `delay` after its last bit has left.
    pub fn new(rate: BitRate, card_queue: Octets, delay: Span, ends: [usize; 2]) -> Self {
        Self { rate, card_queue, delay, ends, cards: [Card::IDLE; 2], counters: MediumCounters::default() }
    }

    /// The end at which a station is.
    fn end(&self, station: usize) -> usize {
        usize::from(station == self.ends[1])
    }

    pub(super) fn card_empty_at(&self, station: usize) -> Instant {
        self.cards[self.end(station)].empty_at()
    }

    pub(super) fn backlog(&self, now: Instant, station: usize) -> Octets {
        self.cards[self.end(station)].backlog(now, self.rate)
    }

    pub(super) fn send(&mut self, now: Instant, from: usize, frame: Frame, steps: &mut Steps) {
        self.counters.sent += 1;
        let end = self.end(from);
        match self.cards[end].take(now, self.rate, self.card_queue, frame.len()) {
            Some(left) => {
                self.counters.copies += 1;
                self.counters.arrived += 1;
                steps.push((left + self.delay, Step::Arrive { to: self.ends[1 - end], from, frame }));
            }
            None => {
                self.counters.card_drops += 1;
                steps.push((now, Step::Gone { frame, end: End::CardFull }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_follow_one_another_and_a_full_card_refuses() {
        let mut link = Link::new(BitRate::from_mbit(10), Octets::new(3_000), Span::from_micros(5), [2, 4]);
        let mut steps = Steps::new();
        for _ in 0..5 {
            link.send(Instant::ZERO, 4, Frame::from([0u8; 1226]), &mut steps);
        }
        let arrives = steps.iter().filter(|(_, step)| matches!(step, Step::Arrive { to: 2, from: 4, .. }));
        let at: Vec<u64> = arrives.map(|(at, _)| at.as_nanos() / 1_000).collect();
        assert_eq!(at, [1_005, 2_005, 3_005], "1,250 octets are a millisecond; a fourth finds 3,750 ahead");
        assert_eq!((link.counters.sent, link.counters.card_drops), (5, 2));
    }
}
