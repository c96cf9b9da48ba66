//! Against receive livelock (TRANSPORT-6.2.2-9 to 14, theory d.5): how much work may wait, and which TPDUs of
//! a circuit without error control are worth any.
//!
//! Two plain values. [`Backlog`] stops the supply of buffers at a high watermark and resumes it at a low one,
//! so that what is too much is dropped before it costs anything, and an interrupt serves many frames.
//! [`WholeMessages`] gives a message up at its first gap: its other TPDUs are dropped at once, and the
//! buffers that it had are free.

/// Watermarks that no backlog can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the low watermark of {low} frames has to be below the high one of {high}")]
pub struct BadWatermarks {
    low: u32,
    high: u32,
}

/// Work that waits, between two watermarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    high: u32,
    low: u32,
    pending: u32,
    is_stopped: bool,
    stops: u64,
}

impl Backlog {
    /// Nothing waits. The supply stops at `high` and resumes at `low`.
    ///
    /// # Errors
    /// `low` is not below `high`.
    pub const fn new(high: u32, low: u32) -> Result<Self, BadWatermarks> {
        if low >= high {
            return Err(BadWatermarks { low, high });
        }
        Ok(Self { high, low, pending: 0, is_stopped: false, stops: 0 })
    }

    /// Buffers that the adaptor may have now: what is missing to the high watermark, and none from there down
    /// to the low one.
    pub const fn supply(&self) -> u32 {
        if self.is_stopped { 0 } else { self.high - self.pending }
    }

    /// Frames that wait.
    pub const fn pending(&self) -> u32 {
        self.pending
    }

    /// How often the supply has stopped.
    pub const fn stops(&self) -> u64 {
        self.stops
    }

    /// So many frames have come, and wait: no more than were supplied for.
    pub fn arrived(&mut self, frames: u32) {
        self.pending = self.pending.saturating_add(frames).min(self.high);
        if self.pending == self.high && !self.is_stopped {
            (self.is_stopped, self.stops) = (true, self.stops + 1);
        }
    }

    /// So many frames wait no longer.
    pub fn done(&mut self, frames: u32) {
        self.pending = self.pending.saturating_sub(frames);
        self.is_stopped &= self.pending > self.low;
    }
}

/// What becomes of a TPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is worth its work; its message is complete if this is true.
    Kept(bool),
    /// Its message has a gap.
    Dropped,
}

/// The messages of a circuit without error control on a path that keeps the order: whole or not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WholeMessages {
    /// The message that is coming; none if its last TPDU has come.
    current: Option<u32>,
    next: u32,
    is_dead: bool,
    /// TPDUs of it that were kept.
    kept: u32,
}

impl WholeMessages {
    /// A TPDU comes: `index` of `message`, counted from 0. Its fate, and how many TPDUs were kept in vain and
    /// are to be thrown away with it.
    pub fn judge(&mut self, message: u32, index: u32, last: bool) -> (Fate, u32) {
        let mut freed = 0;
        if self.current != Some(message) {
            freed = core::mem::take(&mut self.kept);
            *self = Self { current: Some(message), ..Self::default() };
        }
        self.is_dead |= index != self.next;
        if self.is_dead {
            freed += core::mem::take(&mut self.kept);
            return (Fate::Dropped, freed);
        }
        (self.next, self.kept) = (self.next + 1, self.kept + 1);
        if last {
            *self = Self::default();
        }
        (Fate::Kept(last), freed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_supply_stops_at_the_high_watermark_and_resumes_at_the_low_one() {
        let mut backlog = Backlog::new(8, 3).expect("sound");
        assert_eq!((backlog.supply(), backlog.pending()), (8, 0));
        backlog.arrived(5);
        assert_eq!((backlog.supply(), backlog.pending()), (3, 5));
        backlog.arrived(3);
        assert_eq!((backlog.supply(), backlog.stops()), (0, 1));
        for pending in [7, 6, 5, 4] {
            backlog.done(1);
            assert_eq!((backlog.pending(), backlog.supply()), (pending, 0), "between the marks");
        }
        backlog.done(1);
        assert_eq!((backlog.pending(), backlog.supply()), (3, 5));
        let bad = Backlog::new(3, 3).unwrap_err().to_string();
        assert_eq!(bad, "the low watermark of 3 frames has to be below the high one of 3");
    }

    #[test]
    fn a_message_with_a_gap_is_given_up_and_what_it_had_is_freed() {
        let mut whole = WholeMessages::default();
        assert_eq!(whole.judge(1, 0, false), (Fate::Kept(false), 0));
        assert_eq!(whole.judge(1, 1, false), (Fate::Kept(false), 0));
        assert_eq!(whole.judge(1, 3, false), (Fate::Dropped, 2));
        assert_eq!(whole.judge(1, 4, true), (Fate::Dropped, 0));
        assert_eq!(whole.judge(2, 0, false), (Fate::Kept(false), 0));
        // The rest of 2 and the beginning of 3 are lost.
        assert_eq!(whole.judge(3, 1, true), (Fate::Dropped, 1));
        assert_eq!(whole.judge(4, 0, true), (Fate::Kept(true), 0));
        assert_eq!(whole.judge(5, 0, true), (Fate::Kept(true), 0));
    }

    proptest! {
        /// No more frames are in than were supplied for, whatever comes and goes.
        #[test]
        fn no_more_than_the_high_watermark_ever_waits(
            high in 2u32..50,
            low in 0u32..49,
            steps in prop::collection::vec((any::<bool>(), 0u32..60), 0..200),
        ) {
            prop_assume!(low < high);
            let mut backlog = Backlog::new(high, low).expect("sound");
            for (comes, count) in steps {
                let stopped = backlog.supply() == 0;
                if comes { backlog.arrived(count.min(backlog.supply())) } else { backlog.done(count) }
                prop_assert!(backlog.pending() <= high);
                if stopped && backlog.supply() > 0 {
                    prop_assert!(backlog.pending() <= low, "it resumes at the low mark");
                    prop_assert!(backlog.supply() >= high - low);
                }
            }
        }

        /// TPDUs that are kept to the end are a whole message, and all that was kept of others is freed.
        #[test]
        fn only_whole_messages_are_complete(lost in prop::collection::vec(0u8..5, 0..150)) {
            let mut whole = WholeMessages::default();
            let (mut k, mut held) = (0, 0u32);
            for message in 1..40u32 {
                let count = message % 5 + 1;
                let mut came = 0;
                let mut completes = false;
                for index in 0..count {
                    k += 1;
                    if lost.get(k).is_some_and(|dice| *dice == 0) {
                        continue;
                    }
                    came += 1;
                    let (fate, freed) = whole.judge(message, index, index + 1 == count);
                    held -= freed;
                    match fate {
                        Fate::Kept(true) => (completes, held) = (true, held + 1 - count),
                        Fate::Kept(false) => held += 1,
                        Fate::Dropped => {}
                    }
                }
                prop_assert_eq!(completes, came == count);
            }
        }
    }
}
