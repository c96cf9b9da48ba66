//! The non-real-time queue: eight levels, highest first, first come first served within a level. Before all
//! of them goes the token's own signalling: it is little, and the segment's order must not wait for
//! anybody's messages. Nor must those wait for ever where a program asks without end: of two visits
//! signalling has one at most, in which as much of it leaves as a full frame takes.
//!
//! Messages between nodes have a level between the two, and room of their own: a host that keeps the queue
//! full would have them dropped otherwise, and a neighbour that hears nothing ends the channels.

use crate::io::HostTag;
use rota_units::Octets;
use std::collections::VecDeque;

/// Who put an entry into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The host's own TCP/IP.
    Host(HostTag),
    /// A frame of link control: its place there.
    Llc(u16),
    /// A TPDU of a circuit: the place of its end.
    Circuit(u16),
    /// Signalling of ours: the index of the message.
    Control(u16),
    /// This station introduces itself to one that has joined.
    Announce,
    /// This station's report.
    Report,
}

impl Origin {
    /// True if its machine bounds how many there are, and writes the frame when it leaves.
    const fn is_bounded(self) -> bool {
        matches!(self, Self::Llc(_) | Self::Circuit(_))
    }
}

/// Most entries of link control: one for each message and each answer.
const LLC_FRAMES_MAX: usize = crate::llc::MESSAGES_MAX + crate::llc::ANSWERS_MAX + crate::llc::ACKS_MAX;
/// Most entries of circuits: one for each place that has something to say.
const CIRCUIT_FRAMES_MAX: usize = crate::circuits::PLACES_MAX;
/// Entries that are bounded by their machines, and take none of the host's room.
const OWN_FRAMES_MAX: usize = LLC_FRAMES_MAX + CIRCUIT_FRAMES_MAX;
/// One octet of room goes for so many that leave.
const NARROWS: u64 = 16;
/// The level of host frames that carry messages between nodes: above the levels that users have.
pub const NODE_LEVEL: u8 = 8;
/// Frames of that level for which there is room in a full queue.
pub const NODE_FRAMES: usize = 32;
/// Their octets: a window of TCP at its start, at the usual MTU.
const NODE_OCTETS: u64 = 10 * 1514;
pub(super) const SIGNALLING: u8 = NODE_LEVEL + 1;

/// One frame that waits for the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) origin: Origin,
    /// From the destination address on.
    pub(super) octets: u16,
}

/// Frames waiting for the token. Holds at most a configured time of the link (50 ms), because the
/// diversion releases TCP's back-pressure and this queue must give it instead (theory.md §4.4).
#[derive(Clone, Debug)]
pub(super) struct NrtQueue {
    pub(super) levels: [VecDeque<Entry>; SIGNALLING as usize + 1],
    octets: u64,
    octets_max: u64,
    /// The additional room while a switch of mode is under way; `room` is the room now.
    switch_octets: u64,
    room: u64,
    frames: usize,
    frames_max: usize,
    /// Frames of link control and of circuits.
    bounded_frames: usize,
    /// Signalling had the last visit for itself: other waiting frames go first.
    pub(super) others_first: bool,
}

impl NrtQueue {
    pub(super) fn new(octets_max: Octets, switch_octets: Octets) -> Self {
        let frames_max = frames_in(octets_max, switch_octets).clamp(16, 65_536);
        let levels =
            core::array::from_fn(|_| VecDeque::with_capacity(frames_max + NODE_FRAMES + OWN_FRAMES_MAX));
        Self {
            levels,
            octets: 0,
            octets_max: octets_max.get().max(4 * 1514),
            switch_octets: switch_octets.get(),
            room: octets_max.get().max(4 * 1514),
            frames: 0,
            frames_max,
            bounded_frames: 0,
            others_first: false,
        }
    }

    /// Queues a frame; false when there is no room. Control frames always find some: they are few and ours.
    pub(super) fn push(&mut self, level: u8, entry: Entry) -> bool {
        let (more, frames_more) = if level == NODE_LEVEL { (NODE_OCTETS, NODE_FRAMES) } else { (0, 0) };
        let full = self.octets + u64::from(entry.octets) > self.room + more
            || self.frames >= self.frames_max + frames_more;
        if full && matches!(entry.origin, Origin::Host(_)) {
            return false;
        }
        self.account(&entry);
        self.levels[usize::from(level.min(SIGNALLING))].push_back(entry);
        true
    }

    /// Queues the next frame of a message that has begun: before its level.
    pub(super) fn push_first(&mut self, level: u8, entry: Entry) {
        self.account(&entry);
        self.levels[usize::from(level.min(SIGNALLING))].push_front(entry);
    }

    /// The frames that link control and circuits have under way are bounded by their own room, and take none
    /// from the host.
    fn account(&mut self, entry: &Entry) {
        if entry.origin.is_bounded() {
            self.bounded_frames += 1;
        } else {
            self.octets += u64::from(entry.octets);
            self.frames += 1;
        }
    }

    /// A switch of mode begins, in which nothing of the queue leaves.
    pub(super) fn widen(&mut self) {
        self.room = self.octets_max + self.switch_octets;
    }

    /// Room for so many octets; as usual without a number.
    pub(super) fn set_room(&mut self, octets: Option<u64>) {
        self.room = octets.unwrap_or(self.octets_max);
    }

    /// The room for the octets of the host's frames.
    pub(super) fn room(&self) -> u64 {
        self.room
    }

    /// True if so many frames of the host of so many octets together find room. For those that never do, the
    /// whole room counts as enough.
    pub(super) fn has_room(&self, frames: usize, octets: u64) -> bool {
        self.octets + octets.min(self.room) <= self.room
            && self.frames + frames.min(self.frames_max) <= self.frames_max
    }

    /// How many frames wait that are neither link control's nor those of circuits.
    pub(super) fn others(&self) -> usize {
        self.frames
    }

    /// The next frame to send, with its level.
    pub(super) fn front(&self) -> Option<(usize, Entry)> {
        // In plain mode it is empty nearly always.
        if self.frames() == 0 {
            return None;
        }
        let first = |levels: &[VecDeque<Entry>]| {
            levels.iter().enumerate().rev().find_map(|(level, all)| Some((level, *all.front()?)))
        };
        let others = self.others_first.then(|| first(&self.levels[..usize::from(SIGNALLING)])).flatten();
        others.or_else(|| first(&self.levels))
    }

    /// Takes it.
    pub(super) fn pop(&mut self) -> Option<(usize, Entry)> {
        let (level, entry) = self.front()?;
        self.levels[level].pop_front();
        self.discount(&entry);
        Some((level, entry))
    }

    /// Takes the next frame that is no circuit's.
    pub(super) fn pop_other(&mut self) -> Option<(usize, Entry)> {
        if self.frames() == 0 {
            return None;
        }
        let other = |entry: &Entry| !matches!(entry.origin, Origin::Circuit(_));
        let (level, at) = (0..self.levels.len()).rev().find_map(|level| {
            let at = self.levels[level].iter().position(other)?;
            Some((level, at))
        })?;
        let entry = self.levels[level].remove(at)?;
        self.discount(&entry);
        Some((level, entry))
    }

    /// How much signalling waits.
    pub(super) fn signalling(&self) -> usize {
        self.levels[usize::from(SIGNALLING)].len()
    }

    /// Takes the next frame that is not the host's, nor that of a machine which writes it when it leaves.
    pub(super) fn pop_own(&mut self) -> Option<Entry> {
        let other = |entry: &Entry| !entry.origin.is_bounded() && !matches!(entry.origin, Origin::Host(_));
        let (level, at) = self.levels.iter_mut().rev().find_map(|level| {
            let at = level.iter().position(other)?;
            Some((level, at))
        })?;
        let entry = level.remove(at)?;
        self.discount(&entry);
        Some(entry)
    }

    fn discount(&mut self, entry: &Entry) {
        if entry.origin.is_bounded() {
            self.bounded_frames -= 1;
        } else {
            self.octets -= u64::from(entry.octets);
            self.frames -= 1;
            // After a switch the room narrows more slowly than the queue empties: a host that offers less
            // than the ring serves loses no frame.
            let narrowed = self.room.saturating_sub(u64::from(entry.octets) / NARROWS);
            self.room = narrowed.max(self.octets_max.min(self.room));
        }
    }

    /// How many frames of the host wait.
    pub(super) fn host_frames(&self) -> usize {
        let is_host = |entry: &&Entry| matches!(entry.origin, Origin::Host(_));
        self.levels.iter().flatten().filter(is_host).count()
    }

    /// Takes one frame of link control out of its level.
    pub(super) fn unqueue(&mut self, level: u8, slot: u16) {
        let level = &mut self.levels[usize::from(level.min(SIGNALLING))];
        if let Some(at) = level.iter().position(|entry| entry.origin == Origin::Llc(slot)) {
            level.remove(at);
            self.bounded_frames -= 1;
        }
    }

    /// Takes out the frames of link control that are over.
    pub(super) fn sweep(&mut self, is_over: impl Fn(u16) -> bool) {
        for level in &mut self.levels {
            let before = level.len();
            level.retain(|entry| !matches!(entry.origin, Origin::Llc(slot) if is_over(slot)));
            self.bounded_frames -= before - level.len();
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.frames + self.bounded_frames == 0
    }

    pub(super) fn frames(&self) -> usize {
        self.frames + self.bounded_frames
    }
}

/// How many frames may wait. Small ones must not fill memory: as many as the octets hold at 256 octets each,
/// and at 1,024 of what a switch adds.
pub(crate) fn frames_in(octets: Octets, switch: Octets) -> usize {
    usize::try_from(octets.get() / 256 + switch.get() / 1_024).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(tag: u32) -> Entry {
        Entry { origin: Origin::Host(HostTag(tag)), octets: 1514 }
    }

    #[test]
    fn the_highest_level_leaves_first_and_levels_keep_their_order() {
        let mut queue = NrtQueue::new(Octets::new(100_000), Octets::ZERO);
        for (level, tag) in [(0, 1), (7, 2), (0, 3), (7, 4), (3, 5)] {
            assert!(queue.push(level, host(tag)));
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(_, entry)| entry.origin).collect();
        assert_eq!(order, [2, 4, 5, 1, 3].map(|tag| Origin::Host(HostTag(tag))));
        assert!(queue.is_empty());
    }

    #[test]
    fn a_full_queue_refuses_the_host_but_not_our_signalling() {
        let mut queue = NrtQueue::new(Octets::new(10_000), Octets::ZERO);
        let taken = (0..20).filter(|tag| queue.push(0, host(*tag))).count();
        assert_eq!(taken, 6);
        assert!(queue.push(7, Entry { origin: Origin::Llc(1), octets: 100 }));
        assert!(queue.push(SIGNALLING, Entry { origin: Origin::Control(0), octets: 100 }));
        assert_eq!(queue.front().map(|(_, entry)| entry.origin), Some(Origin::Control(0)));
    }

    #[test]
    fn a_full_queue_has_room_for_messages_between_nodes() {
        let mut queue = NrtQueue::new(Octets::new(10_000), Octets::ZERO);
        let small = Entry { origin: Origin::Host(HostTag(1)), octets: 60 };
        let flood = |queue: &mut NrtQueue| (0..100).filter(|_| queue.push(7, small)).count();
        let message = Entry { origin: Origin::Host(HostTag(99)), octets: 101 };
        assert_eq!(flood(&mut queue), 39);
        assert!(queue.push(NODE_LEVEL, message));
        assert_eq!(queue.pop().map(|(_, entry)| entry), Some(message), "before all that users send");
        let taken = (0..1_000).filter(|_| queue.push(NODE_LEVEL, message)).count();
        assert_eq!(taken, NODE_FRAMES, "no more than they need");
        assert_eq!(flood(&mut queue), 0, "nobody else has this room");
        while queue.pop().is_some() {}
        assert_eq!(flood(&mut queue), 39);
        let full = (0..20).filter(|tag| queue.push(NODE_LEVEL, host(*tag))).count();
        assert_eq!(full, 15, "by octets");
    }

    #[test]
    fn what_is_over_leaves_the_queue_and_the_rest_keeps_its_order() {
        let mut queue = NrtQueue::new(Octets::new(10_000), Octets::ZERO);
        for slot in 0..6 {
            assert!(queue.push(slot as u8 % 2, Entry { origin: Origin::Llc(slot), octets: 100 }));
        }
        assert!(queue.push(1, host(9)));
        queue.sweep(|slot| slot == 1 || slot == 2);
        queue.unqueue(1, 5);
        assert_eq!(queue.frames(), 4);
        assert_eq!(queue.pop_own(), None, "neither link control nor the host is signalling");
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(_, entry)| entry.origin).collect();
        assert_eq!(order[..2], [Origin::Llc(3), Origin::Host(HostTag(9))]);
        assert_eq!(order[2..], [0, 4].map(Origin::Llc));
        assert!(queue.is_empty());
    }
}
