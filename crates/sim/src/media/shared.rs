//! The shared half-duplex segment as a medium of a world: cards with queues before it, stations behind it.
//!
//! [`CsmaCd`] knows when who is on the wire; here are the frames, what a card's queue holds, who waits until
//! a card is empty, and the instants at which the segment must be looked at again.

use super::csma_cd::{Card, CsmaCd, FrameFate, Spec};
use super::{End, Frame, MediumCounters, Step, Steps, WireEvent};
use rota_units::{Instant, Octets, Span};
use std::collections::VecDeque;

/// Octets of a check sequence, which the segment counts and a station does not hand over.
const CHECK_SEQUENCE: u64 = 4;

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<Frame>,
    octets: u64,
    /// Somebody asked when it will be empty.
    watched: bool,
}

/// A coaxial cable, or a repeating hub, with its stations.
#[derive(Debug)]
pub struct Shared {
    segment: CsmaCd,
    card_queue: Octets,
    latency: Span,
    queues: Vec<Queue>,
    /// When the medium will be told to look again; [`Instant::FAR`] when nothing is to come.
    alarm: Instant,
    pub(super) counters: MediumCounters,
}

impl Shared {
    /// A segment whose stations have a frame whole `latency` after its last bit has passed them.
    ///
    /// A slot that is too short for the cable is made long enough: whoever builds a scenario is told before.
    pub fn new(stations: usize, mut spec: Spec, card_queue: Octets, latency: Span) -> Self {
        spec.slot = spec.slot.max(spec.propagation * 2);
        let mut segment = CsmaCd::of_sound(spec);
        for _ in 0..stations {
            segment.attach(Card { gap: spec.gap(), ..Card::standard(usize::MAX) });
        }
        let queues = (0..stations).map(|_| Queue::default()).collect();
        let (alarm, counters) = (Instant::FAR, MediumCounters::default());
        Self { segment, card_queue, latency, queues, alarm, counters }
    }

    pub(super) fn send(&mut self, now: Instant, from: usize, frame: Frame, steps: &mut Steps) {
        self.counters.sent += 1;
        self.happen(now, steps);
        let octets = frame.len() as u64;
        let queue = &mut self.queues[from];
        // As the other media: full is what has more than its length before it.
        if queue.octets > self.card_queue.get() {
            self.counters.card_drops += 1;
            steps.push((now, Step::Gone { frame, end: End::CardFull }));
            return;
        }
        let taken = self.segment.send(now, from, 0, Octets::new(octets + CHECK_SEQUENCE));
        if taken.is_err() {
            self.counters.card_drops += 1;
            steps.push((now, Step::Gone { frame, end: End::CardFull }));
            return;
        }
        queue.octets += octets;
        queue.frames.push_back(frame);
        self.happen(now, steps);
    }

    /// Looks what has become of frames, and says when to look again.
    pub(super) fn happen(&mut self, now: Instant, steps: &mut Steps) {
        for outcome in self.segment.advance(now) {
            match outcome {
                FrameFate::Delivered { from, at, .. } => {
                    if let Some(frame) = self.left(now, from, steps) {
                        self.hear(at + self.latency, from, &frame, steps);
                    }
                }
                FrameFate::Discarded { from, .. } => {
                    self.counters.discarded += 1;
                    if let Some(frame) = self.left(now, from, steps) {
                        steps.push((now, Step::Gone { frame, end: End::Collisions }));
                    }
                }
            }
        }
        self.counters.aborted = self.segment.counters().aborted;
        let next = self.segment.next_event();
        if next < self.alarm || self.alarm <= now {
            self.alarm = next;
            if next < Instant::FAR {
                steps.push((next, Step::Later(WireEvent::Carrier)));
            }
        }
    }

    /// A frame is no longer in its card; it was the oldest there.
    fn left(&mut self, now: Instant, from: usize, steps: &mut Steps) -> Option<Frame> {
        let queue = &mut self.queues[from];
        let frame = queue.frames.pop_front()?;
        queue.octets -= frame.len() as u64;
        if queue.frames.is_empty() && std::mem::take(&mut queue.watched) {
            steps.push((now, Step::CardEmpty { station: from }));
        }
        Some(frame)
    }

    /// Everybody else hears it.
    fn hear(&mut self, at: Instant, from: usize, frame: &Frame, steps: &mut Steps) {
        let more = (self.queues.len() as u64).saturating_sub(2);
        steps.push((at, Step::Split { frame: frame.clone(), more }));
        for to in (0..self.queues.len()).filter(|to| *to != from) {
            self.counters.copies += 1;
            self.counters.arrived += 1;
            steps.push((at, Step::Arrive { to, from, frame: frame.clone() }));
        }
    }

    pub(super) fn backlog(&self, station: usize) -> Octets {
        Octets::new(self.queues[station].octets)
    }

    pub(super) fn watch_card(&mut self, now: Instant, station: usize, steps: &mut Steps) {
        if self.queues[station].frames.is_empty() {
            steps.push((now, Step::CardEmpty { station }));
        } else {
            self.queues[station].watched = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(card_queue: u64) -> Shared {
        Shared::new(3, Spec::ethernet_10(1), Octets::new(card_queue), Span::from_micros(20))
    }

    /// Runs a segment alone; who got what when, in microseconds, and when which watched card was empty.
    fn run(shared: &mut Shared, steps: &mut Steps) -> Vec<(u64, usize, bool)> {
        let mut got = Vec::new();
        while let Some(next) = (0..steps.len()).min_by_key(|at| steps[*at].0) {
            let (now, step) = steps.remove(next);
            match step {
                Step::Later(_) => shared.happen(now, steps),
                Step::Arrive { to, .. } => got.push((now.as_nanos() / 1_000, to, true)),
                Step::CardEmpty { station } => got.push((now.as_nanos() / 1_000, station, false)),
                Step::Split { .. } | Step::Gone { .. } => {}
            }
        }
        got
    }

    #[test]
    fn everybody_hears_a_frame_and_its_sender_learns_that_it_has_left() {
        let (mut shared, mut steps) = (shared(10_000), Steps::new());
        shared.send(Instant::ZERO, 1, Frame::from([0u8; 1_238]), &mut steps);
        shared.watch_card(Instant::ZERO, 1, &mut steps);
        shared.watch_card(Instant::ZERO, 2, &mut steps);
        // 1,250 octets with preamble and check sequence are a millisecond; 5 us of cable, 20 to the process.
        let got = run(&mut shared, &mut steps);
        assert_eq!(got, [(0, 2, false), (1_000, 1, false), (1_025, 0, true), (1_025, 2, true)]);
    }

    #[test]
    fn a_full_card_refuses_and_every_frame_is_accounted_for() {
        let (mut shared, mut steps) = (shared(3_000), Steps::new());
        for at in 0..60 {
            shared.send(Instant::ZERO, at % 3, Frame::from([0u8; 1_238]), &mut steps);
        }
        run(&mut shared, &mut steps);
        let counters = shared.counters;
        assert!(counters.card_drops > 40 && counters.aborted > 0, "{counters:?}");
        assert_eq!(counters.sent, counters.card_drops + counters.discarded + counters.arrived / 2);
    }

    #[test]
    fn sixteen_collisions_are_a_counted_end() {
        // Back-off that ends within the gap: both start again together, every time.
        let (slot, propagation) = (Span::from_nanos(2), Span::from_nanos(1));
        let spec = Spec { slot, propagation, ..Spec::ethernet_10(1) };
        let mut shared = Shared::new(2, spec, Octets::new(10_000), Span::ZERO);
        let mut steps = Steps::new();
        shared.send(Instant::ZERO, 0, Frame::from([0u8; 60]), &mut steps);
        shared.send(Instant::ZERO, 1, Frame::from([0u8; 60]), &mut steps);
        shared.watch_card(Instant::ZERO, 0, &mut steps);
        let got = run(&mut shared, &mut steps);
        assert_eq!((shared.counters.discarded, shared.counters.arrived), (2, 0));
        assert_eq!(got.len(), 1, "the card is empty all the same: {got:?}");
    }
}
