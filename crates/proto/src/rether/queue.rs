//! The non-real-time queue: eight levels, highest first, first come first served within a level.

use crate::io::HostTag;
use crate::planted::{Bug, planted};
use rota_units::{Octets, Span};
use std::collections::VecDeque;

/// Who put an entry into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The host's own TCP/IP.
    Host(HostTag),
    /// A frame of link control: its place there.
    Llc(u16),
    /// Signalling of ours: the index of the message.
    Control(u16),
    /// This station introduces itself to one that has joined.
    Announce,
    /// This station's report.
    Report,
}

/// Most entries of link control: one for each message and each answer.
const LLC_FRAMES_MAX: usize = crate::llc::MESSAGES_MAX + crate::llc::ANSWERS_MAX;

/// One frame that waits for the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) origin: Origin,
    /// From the destination address on.
    pub(super) octets: u16,
}

/// Frames waiting for the token. Holds at most a configured time of the link (foundation: 50 ms), because the
/// diversion releases TCP's back-pressure and this queue must give it instead.
#[derive(Clone, Debug)]
pub(super) struct NrtQueue {
    pub(super) levels: [VecDeque<Entry>; 8],
    octets: u64,
    octets_max: u64,
    frames: usize,
    frames_max: usize,
    llc_frames: usize,
}

impl NrtQueue {
    pub(super) fn new(octets_max: Octets) -> Self {
        // Small frames must not fill memory: at most as many frames as the octets hold at 256 octets each.
        let frames_max = usize::try_from(octets_max.get() / 256).unwrap_or(usize::MAX).clamp(16, 65_536);
        let levels = core::array::from_fn(|_| VecDeque::with_capacity(frames_max + LLC_FRAMES_MAX));
        Self {
            levels,
            octets: 0,
            octets_max: octets_max.get().max(4 * 1514),
            frames: 0,
            frames_max,
            llc_frames: 0,
        }
    }

    /// Queues a frame; false when there is no room. Control frames always find some: they are few and ours.
    pub(super) fn push(&mut self, level: u8, entry: Entry) -> bool {
        let full = self.octets + u64::from(entry.octets) > self.octets_max || self.frames >= self.frames_max;
        if full && !planted(Bug::QueueWithoutCap) && matches!(entry.origin, Origin::Host(_)) {
            return false;
        }
        self.account(&entry);
        self.levels[usize::from(level.min(7))].push_back(entry);
        true
    }

    /// Queues the next frame of a message that has begun: before its level.
    pub(super) fn push_first(&mut self, level: u8, entry: Entry) {
        self.account(&entry);
        self.levels[usize::from(level.min(7))].push_front(entry);
    }

    /// What link control has under way is bounded by its own room and takes none from the host.
    fn account(&mut self, entry: &Entry) {
        if matches!(entry.origin, Origin::Llc(_)) {
            self.llc_frames += 1;
        } else {
            self.octets += u64::from(entry.octets);
            self.frames += 1;
        }
    }

    /// The next frame to send.
    pub(super) fn front(&self) -> Option<&Entry> {
        self.levels.iter().rev().find_map(VecDeque::front)
    }

    /// The level of the next frame.
    pub(super) fn level(&self) -> usize {
        self.levels.iter().rposition(|level| !level.is_empty()).unwrap_or(0)
    }

    /// Takes the next frame.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        let entry = self.levels.iter_mut().rev().find_map(VecDeque::pop_front)?;
        if matches!(entry.origin, Origin::Llc(_)) {
            self.llc_frames -= 1;
        } else {
            self.octets -= u64::from(entry.octets);
            self.frames -= 1;
        }
        Some(entry)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames + self.llc_frames == 0
    }

    pub(super) fn frames(&self) -> usize {
        self.frames + self.llc_frames
    }
}

/// How many octets a queue of `span` holds at `rate`.
pub(super) fn octets_in(rate: rota_units::BitRate, span: Span) -> Octets {
    rate.octets_in_down(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(tag: u32) -> Entry {
        Entry { origin: Origin::Host(HostTag(tag)), octets: 1514 }
    }

    #[test]
    fn the_highest_level_leaves_first_and_levels_keep_their_order() {
        let mut queue = NrtQueue::new(Octets::new(100_000));
        for (level, tag) in [(0, 1), (7, 2), (0, 3), (7, 4), (3, 5)] {
            assert!(queue.push(level, host(tag)));
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|entry| entry.origin).collect();
        assert_eq!(order, [2, 4, 5, 1, 3].map(|tag| Origin::Host(HostTag(tag))));
        assert!(queue.is_empty());
    }

    #[test]
    fn a_full_queue_refuses_the_host_but_not_our_signalling() {
        let mut queue = NrtQueue::new(Octets::new(10_000));
        let taken = (0..20).filter(|tag| queue.push(0, host(*tag))).count();
        assert_eq!(taken, 6);
        assert!(queue.push(7, Entry { origin: Origin::Control(0), octets: 100 }));
        assert_eq!(queue.front().map(|entry| entry.origin), Some(Origin::Control(0)));
    }
}
