//! Counters that must not end: what a long life or a holder of the key could push them to (faults 29 and 33).
//!
//! Mode epochs wrap. A sequence that runs out begins a new generation; generations or frame counters that run
//! out begin a new incarnation, as if the station had just booted.

use super::{Rether, Stamp};
use crate::door::FrameVerdict;
use crate::sealing::{JUMP_MAX, SEQ_END};
use crate::tally::Counters;
use rota_units::Instant;
use rota_wire::Generation;

/// Where generations end: far enough below the largest that every jump that is believed can be counted on.
pub(super) const GENERATION_END: u32 = u32::MAX - 2 * JUMP_MAX;

/// Whether mode epoch `a` comes after `b`. Neighbours are ordered across the wrap; epochs that lie far apart,
/// as of a station that was alone, are ordered as numbers.
pub(super) const fn newer(a: u32, b: u32) -> bool {
    let ahead = a.wrapping_sub(b);
    if ahead <= JUMP_MAX {
        ahead > 0
    } else if ahead > u32::MAX - JUMP_MAX {
        false
    } else {
        a > b
    }
}

/// True if epoch `a` comes after `b`, and the one after `a` too. An epoch far ahead may be followed by one
/// that a station at `b` takes for an old one: it would not hear of the next change of the mode.
pub(super) const fn leads_on(a: u32, b: u32) -> bool {
    newer(a, b) && newer(a.wrapping_add(1), b)
}

/// The name of the token after one more hop of `station`; a holder may begin a generation, since it alone has
/// the token.
pub(super) const fn next_stamp(stamp: Stamp, station: u16) -> Stamp {
    let Stamp { generation, seq } = stamp;
    if seq + 1 < SEQ_END {
        return Stamp { generation, seq: seq + 1 };
    }
    // Sequence 1 is what a token just made has, whose first rotation it may be.
    Stamp { generation: Generation { counter: generation.counter.saturating_add(1), station }, seq: 2 }
}

impl Counters {
    /// Counts a verdict on a frame.
    pub(crate) fn judge(&mut self, verdict: FrameVerdict) {
        let counter = match verdict {
            FrameVerdict::Taken
            | FrameVerdict::Foreign
            | FrameVerdict::OtherSegment
            | FrameVerdict::OwnAddress => None,
            FrameVerdict::Accepted => Some(&mut self.tokens_accepted),
            FrameVerdict::Stale => Some(&mut self.tokens_stale),
            FrameVerdict::Expired => Some(&mut self.tokens_expired),
            FrameVerdict::Unproven => Some(&mut self.frames_unproven),
            FrameVerdict::Malformed => Some(&mut self.frames_malformed),
            FrameVerdict::Replayed => Some(&mut self.frames_replayed),
            FrameVerdict::Policed => Some(&mut self.fragments_policed),
            FrameVerdict::UnknownChannel => Some(&mut self.fragments_unknown),
            FrameVerdict::Jump => Some(&mut self.jumps_refused),
        };
        if let Some(counter) = counter {
            *counter += 1;
        }
    }
}

impl Rether {
    /// The generation that a new token of this station would have; `None` when they are used up.
    pub(super) fn next_generation(&self) -> Option<Generation> {
        let refused = self.mode.ring().map_or_else(Generation::default, |ring| ring.refused);
        let known = self.fence.seen.generation.max(refused);
        let counter = known.counter.saturating_add(1);
        (counter < GENERATION_END).then_some(Generation { counter, station: self.own.station })
    }

    /// Counts what was found about a frame; what is found first is the frame's verdict.
    pub fn judge(&mut self, verdict: FrameVerdict) {
        self.counters.judge(verdict);
        if self.out.verdict == FrameVerdict::Taken {
            self.out.verdict = verdict;
        }
    }

    /// The newest frame's verdict; the next frame begins with none.
    pub fn take_verdict(&mut self) -> FrameVerdict {
        core::mem::take(&mut self.out.verdict)
    }

    /// True if a generation is further ahead than any sound station's count, or is one that no station makes.
    pub(super) fn is_jump(&mut self, generation: Generation) -> bool {
        let known = self.fence.seen.generation.counter;
        let jumps =
            generation.counter > GENERATION_END || generation.counter.saturating_sub(known) > JUMP_MAX;
        if jumps {
            self.judge(FrameVerdict::Jump);
        }
        jumps
    }

    /// Outside a ring a station hears how far the others have got, or its first token would be an old one to
    /// them. A leap of any width counts, as at a station that has just booted: a holder of the key may have
    /// put one station further ahead than a ring believes, and no ring of both would have a token. No token
    /// is there that could be taken for an old one.
    pub(super) fn learn_generation(&mut self, generation: Generation) {
        // Near their end generations begin anew on plain Ethernet: an old one of another station is ignored.
        let lasts = generation.counter < GENERATION_END - JUMP_MAX;
        if lasts && generation > self.fence.seen.generation {
            self.fence.seen = Stamp { generation, seq: 0 };
        }
    }

    /// A station that knows of no generation enters a ring with that of its Form, also near the end of all
    /// generations: any generation further ahead is a jump from then on. So does one that is a jump ahead of
    /// the ring, as a holder of the key may have put it: it would take each token of the ring for an old one
    /// while the ring lives. No token from before the Form is proven by the key that it enters with.
    pub(super) fn learn_generation_of_ring(&mut self, generation: Generation) {
        let known = self.fence.seen.generation;
        let is_lost = known.counter.saturating_sub(generation.counter) > JUMP_MAX;
        if (known == Generation::default() || is_lost) && generation.counter <= GENERATION_END {
            self.fence.seen = Stamp { generation, seq: 0 };
            self.fence.list_stamp = self.fence.list_stamp.min(self.fence.seen);
        }
    }

    pub(super) const fn is_worn(&self) -> bool {
        self.own.frame_seq >= SEQ_END
    }

    /// Goes on as a new incarnation, like a station that has just booted: nobody mistakes it for the old one,
    /// and every counter begins anew.
    pub(super) fn renew(&mut self, now: Instant) {
        self.give_up_token(now);
        (self.fence.seen, self.fence.list_stamp) = (Stamp::default(), Stamp::default());
        self.own.incarnation = (self.rng.next_u64() >> 32) as u32 | 1;
        self.own.nonce = self.rng.next_u64();
        (self.own.frame_seq, self.mode_epoch) = (0, 0);
        self.keys.dissolve();
        self.flush_queue();
        self.start_over(now);
    }

    /// For tests: a station that has lived for so long that its counters are about to end.
    pub fn age(&mut self) {
        self.own.frame_seq = SEQ_END - 40;
        self.mode_epoch = u32::MAX - 1;
        self.fence.seen.generation.counter = GENERATION_END - 3;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_are_ordered_across_the_wrap_and_far_ones_as_numbers() {
        assert!(newer(1, 0) && !newer(0, 1) && !newer(7, 7));
        assert!(newer(0, u32::MAX) && !newer(u32::MAX, 0));
        assert!(newer(5, u32::MAX - 5) && !newer(u32::MAX - 5, 5));
        assert!(newer(2_000_000_000, 3) && !newer(3, 2_000_000_000));
    }

    #[test]
    fn a_sequence_that_runs_out_begins_a_generation() {
        let generation = Generation { counter: 4, station: 9 };
        let next = next_stamp(Stamp { generation, seq: 7 }, 2);
        assert_eq!(next, Stamp { generation, seq: 8 });
        let next = next_stamp(Stamp { generation, seq: SEQ_END - 1 }, 2);
        assert_eq!((next.generation.counter, next.generation.station, next.seq), (5, 2, 2));
        assert!(next > Stamp { generation, seq: SEQ_END - 1 });
    }
}
