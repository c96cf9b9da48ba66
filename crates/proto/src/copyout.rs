//! The single copy (ENDHOST-2.2-2 to 5, ENDHOST-3.3-6, ENDHOST-R34 to R38; theory e.3): packets stay in the
//! buffers of the card until their owners read them, and the copy-out rule makes room before it is too late.
//!
//! **Departures.** The paper has no threshold, no proof and no bound. Theory e.3 asks for θ ≥ ⌈λ·t⌉ + 1 and a
//! ring of θ and the packets of one T ([`theta`]). That holds where a packet costs the processor no more than
//! the shortest gap between packets (ENDHOST-R61); [`Pace::theta`] is exact for each pace and burst
//! (theory.md §8.4). A packet whose owner has no room for copies is discarded, so that one slow owner never
//! stops the ring of all.
//!
//! Plain values: no node has such a ring yet. The simulator runs them (`rota_sim::endhost`).

use rota_units::Span;
use std::collections::VecDeque;

/// Settings that no ring can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a copy-out that ends with {theta_hi} free buffers needs more than {theta} and at most {buffers}")]
pub struct BadMarks {
    theta: u32,
    theta_hi: u32,
    buffers: u32,
}

/// When packets are copied out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// From so few free buffers on.
    pub theta: u32,
    /// Until so many are free.
    pub theta_hi: u32,
}

/// How a card finds its next buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffers {
    /// In a circle: it stops at the first buffer that is full, though later ones are free (LANCE).
    Circular,
    /// Any free one (Afterburner).
    Linked,
}

/// Where an owner found its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the card's buffer: one copy.
    Ring,
    /// In the host's memory, by a copy-out: two copies.
    Host,
}

/// The fate of the packet that a copy-out took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// Its owner finds it in the host's memory.
    Copied,
    /// Its owner has no room there.
    Discarded,
}

/// Counts of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCounts {
    /// Came into a buffer.
    pub filled: u64,
    /// Found no buffer.
    pub lost: u64,
    /// Were copied out.
    pub copied: u64,
    /// Were given up by a copy-out.
    pub discarded: u64,
    /// The fewest free buffers so far.
    pub least_free: u32,
}

/// The buffers of a card, and behind them the memory of its host.
#[derive(Debug)]
pub struct Ring<P> {
    buffers: u32,
    kind: Buffers,
    marks: Marks,
    /// From the oldest unread packet on; none where an owner was quicker than that of an older one.
    window: VecDeque<Option<(u16, P)>>,
    held: u32,
    is_short: bool,
    /// Packets of each owner that were copied out, all older than those that it has in the ring.
    copied: Box<[VecDeque<P>]>,
    copied_max: usize,
    counts: RingCounts,
}

impl<P> Ring<P> {
    /// An empty ring for the owners from 0 on, each with room for `copied_max` packets that are copied out.
    ///
    /// # Errors
    /// `theta_hi` is not above `theta`, or above the number of buffers.
    pub fn new(
        kind: Buffers,
        buffers: u32,
        marks: Marks,
        owners: u16,
        copied_max: usize,
    ) -> Result<Self, BadMarks> {
        let Marks { theta, theta_hi } = marks;
        if theta_hi <= theta || theta_hi > buffers {
            return Err(BadMarks { theta, theta_hi, buffers });
        }
        Ok(Self {
            buffers,
            kind,
            marks,
            window: VecDeque::with_capacity(buffers as usize),
            held: 0,
            is_short: false,
            copied: (0..owners).map(|_| VecDeque::with_capacity(copied_max)).collect(),
            copied_max,
            counts: RingCounts { least_free: buffers, ..RingCounts::default() },
        })
    }

    /// Buffers that the card can fill before it finds a full one.
    pub fn free(&self) -> u32 {
        match self.kind {
            Buffers::Circular => self.buffers - self.window.len() as u32,
            Buffers::Linked => self.buffers - self.held,
        }
    }

    /// The counts so far.
    pub fn counts(&self) -> RingCounts {
        self.counts
    }

    /// The card has a packet for this owner.
    ///
    /// # Errors
    /// The packet, if no buffer is to be had: the card drops it.
    pub fn arrive(&mut self, owner: u16, packet: P) -> Result<(), P> {
        assert!(usize::from(owner) < self.copied.len(), "a packet of owner {owner}, who is none");
        if self.free() == 0 {
            self.counts.lost += 1;
            return Err(packet);
        }
        self.window.push_back(Some((owner, packet)));
        self.held += 1;
        self.counts.filled += 1;
        self.counts.least_free = self.counts.least_free.min(self.free());
        self.judge();
        Ok(())
    }

    /// True from θ free buffers on until θ_hi are free: the oldest packet is to be copied out.
    pub fn is_short(&self) -> bool {
        self.is_short
    }

    /// The oldest unread packet, which a copy-out takes.
    pub fn oldest(&self) -> Option<&P> {
        self.window.front().and_then(|first| first.as_ref()).map(|(_, packet)| packet)
    }

    /// Copies the oldest unread packet out, where the rule asks for it.
    pub fn copy_out(&mut self) -> Option<Moved> {
        if !self.is_short {
            return None;
        }
        let (owner, packet) = self.take(0)?;
        let room = &mut self.copied[usize::from(owner)];
        if room.len() < self.copied_max {
            room.push_back(packet);
            self.counts.copied += 1;
            return Some(Moved::Copied);
        }
        self.counts.discarded += 1;
        Some(Moved::Discarded)
    }

    /// The next packet of an owner, and where it is: what was copied out is older, and goes first.
    pub fn next_of(&self, owner: u16) -> Option<(&P, Place)> {
        if let Some(packet) = self.copied[usize::from(owner)].front() {
            return Some((packet, Place::Host));
        }
        let of = |held: &&(u16, P)| held.0 == owner;
        self.window.iter().flatten().find(of).map(|(_, packet)| (packet, Place::Ring))
    }

    /// The owner takes that packet.
    pub fn read(&mut self, owner: u16) -> Option<(P, Place)> {
        if let Some(packet) = self.copied[usize::from(owner)].pop_front() {
            return Some((packet, Place::Host));
        }
        let of = |held: &Option<(u16, P)>| held.as_ref().is_some_and(|held| held.0 == owner);
        let at = self.window.iter().position(of)?;
        self.take(at).map(|(_, packet)| (packet, Place::Ring))
    }

    /// Empties a buffer; in a circle its place stays until all before it are empty.
    fn take(&mut self, at: usize) -> Option<(u16, P)> {
        let taken = self.window.get_mut(at)?.take()?;
        self.held -= 1;
        if self.kind == Buffers::Linked {
            self.window.remove(at);
        }
        while matches!(self.window.front(), Some(None)) {
            self.window.pop_front();
        }
        self.judge();
        Some(taken)
    }

    fn judge(&mut self) {
        let free = self.free();
        self.is_short = free <= self.marks.theta || (self.is_short && free < self.marks.theta_hi);
        assert!(!self.is_short || self.held > 0, "no packet to copy out, and {free} free buffers");
    }
}

/// θ by theory e.3: ⌈λ·t⌉ + 1 where packets are at least `gap` apart and the first copy-out is over `t` after
/// the packet that asked for it.
pub const fn theta(gap: Span, t: Span) -> u64 {
    t.as_nanos().div_ceil(gap.as_nanos()) + 1
}

/// Packets and the processor's work on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The shortest time from a packet to the next.
    pub gap: Span,
    /// Most packets at that gap.
    pub burst: u32,
    /// Until the processor is free for the packet that leaves θ buffers.
    pub late: Span,
    /// Work on each packet that comes, before any copy-out.
    pub each: Span,
    /// A copy-out.
    pub copy: Span,
}

impl Pace {
    /// True if packets without end leave a buffer free: each costs no more than a gap.
    pub fn keeps_up(&self) -> bool {
        self.each + self.copy <= self.gap
    }

    /// The least θ with which a buffer is free at each time of the burst, whatever filled the ring before.
    /// One less loses nothing either, but the card finds its next buffer full; two less may lose a packet.
    ///
    /// With n(k) the packets that come until the k-th copy-out is over, n(k) − (k − 1) + 1 is the need before
    /// its end. The k-th is over late + k·copy + (n(k) + 1)·each after the packet that asked for it.
    pub fn theta(&self) -> u32 {
        let [gap, late, each, copy] = [self.gap, self.late, self.each, self.copy].map(Span::as_nanos);
        let most = u64::from(self.burst.saturating_sub(1));
        let (mut came, mut copies, mut need) = (0, 0, 0);
        // Behind as many copy-outs as packets come, none is needed.
        while came < most && copies <= most {
            copies += 1;
            loop {
                let by_then = ((late + copies * copy + (came + 1) * each) / gap).min(most);
                if by_then <= came {
                    break;
                }
                came = by_then;
            }
            need = need.max((came + 1).saturating_sub(copies));
        }
        need as u32 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SLOW: u16 = 0;
    const OTHER: u16 = 1;

    fn ring(kind: Buffers, buffers: u32, theta: u32, theta_hi: u32) -> Ring<u32> {
        Ring::new(kind, buffers, Marks { theta, theta_hi }, 2, 4_096).expect("sound marks")
    }

    #[test]
    fn a_circle_stops_at_its_first_full_buffer_and_a_list_does_not() {
        for (kind, free) in [(Buffers::Circular, 0), (Buffers::Linked, 3)] {
            let mut ring = ring(kind, 4, 0, 1);
            ring.arrive(SLOW, 1).expect("room");
            for n in 2..=4 {
                ring.arrive(OTHER, n).expect("room");
            }
            for n in 2..=4 {
                assert_eq!(ring.read(OTHER), Some((n, Place::Ring)));
            }
            // ENDHOST-2.2-4, ENDHOST-2.2-5: three of four buffers are empty.
            assert_eq!(ring.free(), free);
            assert_eq!(ring.arrive(OTHER, 5).is_ok(), free > 0);
            assert_eq!(ring.read(SLOW), Some((1, Place::Ring)));
            assert_eq!(ring.free(), if free == 0 { 4 } else { 3 });
        }
    }

    #[test]
    fn packets_are_copied_out_from_theta_free_buffers_until_theta_hi_are() {
        let mut ring = ring(Buffers::Circular, 8, 2, 5);
        (0..5).for_each(|n| ring.arrive(SLOW, n).expect("room"));
        assert_eq!((ring.free(), ring.is_short(), ring.copy_out()), (3, false, None));
        ring.arrive(OTHER, 5).expect("room");
        assert!(ring.is_short());
        for (free, oldest) in [(3, 0), (4, 1), (5, 2)] {
            assert_eq!(ring.oldest(), Some(&oldest));
            assert_eq!(ring.copy_out(), Some(Moved::Copied));
            assert_eq!(ring.free(), free);
        }
        assert_eq!((ring.is_short(), ring.copy_out()), (false, None));
        // The owner takes the copies first, then what the ring has.
        let places = [Place::Host, Place::Host, Place::Host, Place::Ring, Place::Ring];
        for (n, place) in (0..).zip(places) {
            assert_eq!(ring.next_of(SLOW), Some((&n, place)));
            assert_eq!(ring.read(SLOW), Some((n, place)));
        }
        assert_eq!((ring.read(SLOW), ring.read(OTHER)), (None, Some((5, Place::Ring))));
        assert_eq!(ring.counts(), RingCounts { filled: 6, copied: 3, least_free: 2, ..Default::default() });
    }

    #[test]
    fn an_owner_without_room_for_copies_loses_its_own_packets_alone() {
        let mut ring = Ring::new(Buffers::Circular, 4, Marks { theta: 1, theta_hi: 4 }, 2, 1).expect("sound");
        for (owner, n) in [(SLOW, 1), (SLOW, 2), (OTHER, 3)] {
            ring.arrive(owner, n).expect("room");
        }
        let moved: Vec<Moved> = std::iter::from_fn(|| ring.copy_out()).collect();
        assert_eq!(moved, [Moved::Copied, Moved::Discarded, Moved::Copied]);
        assert_eq!((ring.read(SLOW), ring.read(SLOW)), (Some((1, Place::Host)), None));
        assert_eq!(ring.read(OTHER), Some((3, Place::Host)));
    }

    /// ENDHOST-R37.
    #[test]
    fn marks_that_no_ring_can_have_are_refused() {
        for (theta, theta_hi) in [(3, 3), (3, 9)] {
            let bad = Ring::<()>::new(Buffers::Circular, 8, Marks { theta, theta_hi }, 1, 0).unwrap_err();
            let words = format!("with {theta_hi} free buffers needs more than 3 and at most 8");
            assert!(bad.to_string().ends_with(&words), "{bad}");
        }
    }

    /// ENDHOST-R35, ENDHOST-R36: 14,880 packets a second of 10 Mbit/s are 1,488 in 0.1 s.
    #[test]
    fn a_threshold_follows_from_the_gap_and_the_work() {
        let gap = Span::from_nanos(67_200);
        assert_eq!(Span::from_millis(100).count_down(gap), 1_488);
        assert_eq!((theta(gap, gap), theta(gap, Span::from_nanos(67_201))), (2, 3));
        let pace = Pace { gap, burst: 1_488, late: Span::ZERO, each: Span::ZERO, copy: gap };
        assert_eq!((pace.theta(), pace.keeps_up()), (2, true));
        // A copy takes two gaps: half of the burst waits.
        let slow = Pace { copy: gap * 2, ..pace };
        assert_eq!((slow.theta(), slow.keeps_up(), theta(gap, gap * 2)), (745, false, 3));
        // The packets alone are too much work.
        let dead = Pace { each: gap * 2, copy: Span::ZERO, ..pace };
        assert_eq!(dead.theta(), 1_488);
    }

    /// A processor that needs `late` to begin, takes each packet that has come, and then copies out. The ring
    /// is full of older packets up to θ + 1 when the burst begins.
    fn burst(pace: &Pace, kind: Buffers, theta: u32, theta_hi: u32, older: u32) -> RingCounts {
        let mut ring = ring(kind, older + theta + 1, theta, theta_hi);
        (0..older).for_each(|n| ring.arrive(SLOW, n).expect("room"));
        let gap = pace.gap.as_nanos();
        let comes = |n: u32| u64::from(n) * gap;
        let (mut at, mut next, mut untouched, mut was_short) = (0, 0, 0u32, false);
        loop {
            while next < pace.burst && comes(next) <= at {
                let _ = ring.arrive(OTHER, next);
                (next, untouched) = (next + 1, untouched + 1);
                if ring.is_short() && !was_short {
                    (was_short, at) = (true, at.max(comes(next - 1) + pace.late.as_nanos()));
                }
            }
            if untouched > 0 {
                (untouched, at) = (untouched - 1, at + pace.each.as_nanos());
            } else if ring.is_short() {
                at += pace.copy.as_nanos();
                while next < pace.burst && comes(next) <= at {
                    // A packet interrupts the copy.
                    let _ = ring.arrive(OTHER, next);
                    (next, at) = (next + 1, at + pace.each.as_nanos());
                }
                ring.copy_out();
                was_short = ring.is_short();
            } else if next < pace.burst {
                at = at.max(comes(next));
            } else {
                return ring.counts();
            }
        }
    }

    fn paces() -> impl Strategy<Value = Pace> {
        (1u64..200, 1u32..300, 0u64..2_000, 0u64..150, 0u64..150).prop_map(
            |(gap, burst, late, each, copy)| {
                let [gap, late, each, copy] = [gap, late, each, copy].map(Span::from_nanos);
                Pace { gap, burst, late, each, copy }
            },
        )
    }

    proptest! {
        /// ENDHOST-R36: with the least θ a buffer is free at each time; one less, and the card finds its
        /// next buffer full; two less, and a packet is lost.
        #[test]
        fn the_least_threshold_loses_nothing_and_a_smaller_one_does(
            pace in paces(),
            is_circular: bool,
            above in 1u32..50,
        ) {
            let kind = if is_circular { Buffers::Circular } else { Buffers::Linked };
            let (theta, older) = (pace.theta(), pace.burst + 50);
            let counts = burst(&pace, kind, theta, theta + above, older);
            prop_assert!(counts.lost == 0 && counts.least_free >= 1, "{theta}: {counts:?}");
            let until_all = |theta: u32| burst(&pace, kind, theta, older + theta + 1, older);
            if theta >= 2 {
                let counts = until_all(theta - 1);
                prop_assert!(counts.least_free == 0 && counts.lost == 0, "{theta} less 1: {counts:?}");
                prop_assert!(until_all(theta - 2).lost > 0, "{theta} less 2");
            }
        }

        /// ENDHOST-R36, theory e.3: the rule with its premise, that a packet costs no more than a gap.
        #[test]
        fn the_threshold_of_the_theory_suffices_where_the_processor_keeps_up(
            pace in paces(),
            above in 1u32..50,
        ) {
            let pace = Pace { each: Span::ZERO, copy: pace.copy.min(pace.gap), ..pace };
            let enough = theta(pace.gap, pace.late + pace.copy) as u32;
            prop_assert!(pace.keeps_up() && pace.theta() <= enough, "{} and {enough}", pace.theta());
            let counts = burst(&pace, Buffers::Circular, enough, enough + above, pace.burst + 50);
            prop_assert!(counts.lost == 0 && counts.least_free >= 1, "{enough}: {counts:?}");
        }

        /// ENDHOST-R38: whatever comes, is read and copied out, an owner has its packets in their order, and
        /// each packet is read, discarded, lost, or still there.
        #[test]
        fn order_is_kept_behind_a_copy_out(
            is_circular: bool,
            buffers in 2u32..20,
            marks in (0u32..18, 1u32..19),
            room in 0usize..8,
            steps in prop::collection::vec((0u8..4, 0u16..3), 0..400),
        ) {
            let kind = if is_circular { Buffers::Circular } else { Buffers::Linked };
            let theta = marks.0.min(buffers - 1);
            let theta_hi = (theta + marks.1).min(buffers);
            let mut ring = Ring::new(kind, buffers, Marks { theta, theta_hi }, 3, room).expect("sound");
            let (mut number, mut read, mut last) = (0u32, 0u64, [None::<u32>; 3]);
            for (step, owner) in steps {
                match step {
                    0 | 1 => {
                        number += 1;
                        let free = ring.free();
                        prop_assert_eq!(ring.arrive(owner, number).is_ok(), free > 0);
                    }
                    2 => {
                        let expected = ring.next_of(owner).map(|(packet, place)| (*packet, place));
                        let taken = ring.read(owner);
                        prop_assert_eq!(taken, expected);
                        if let Some((packet, _)) = taken {
                            prop_assert!(last[usize::from(owner)] < Some(packet), "order of {}", owner);
                            (last[usize::from(owner)], read) = (Some(packet), read + 1);
                        }
                    }
                    _ => {
                        let (was_short, oldest) = (ring.is_short(), ring.oldest().copied());
                        prop_assert_eq!(ring.copy_out().is_some(), was_short && oldest.is_some());
                    }
                }
                prop_assert!(ring.is_short() || ring.free() > theta);
                prop_assert!(!ring.is_short() || ring.free() < theta_hi);
            }
            for owner in 0..3 {
                while let Some((packet, _)) = ring.read(owner) {
                    prop_assert!(last[usize::from(owner)] < Some(packet), "order of {}", owner);
                    (last[usize::from(owner)], read) = (Some(packet), read + 1);
                }
            }
            let RingCounts { filled, lost, discarded, .. } = ring.counts();
            prop_assert_eq!(filled + lost, u64::from(number));
            prop_assert_eq!(filled, read + discarded);
            prop_assert_eq!(ring.free(), buffers);
        }

        /// ENDHOST-3.3-3, ENDHOST-R36: owners that read once in T need no copy-out where the ring has a
        /// buffer more than θ and the packets of one T.
        #[test]
        fn a_ring_of_theta_and_the_packets_of_a_period_copies_once(
            theta in 0u32..6,
            comes in prop::collection::vec(prop::collection::vec(0u16..2, 0..12), 1..20),
        ) {
            // Each owner reads once in two of these halves of T, at its own time.
            let in_two = |at: usize| comes[at].len() + comes.get(at + 1).map_or(0, Vec::len);
            let most = (0..comes.len()).map(in_two).max().unwrap_or(0) as u32;
            let mut ring = ring(Buffers::Circular, theta + most + 1, theta, theta + most + 1);
            for (at, owners) in comes.iter().enumerate() {
                owners.iter().for_each(|owner| ring.arrive(*owner, at as u32).expect("room"));
                prop_assert!(!ring.is_short());
                while ring.read((at % 2) as u16).is_some() {}
            }
        }
    }
}
