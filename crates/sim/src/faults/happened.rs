//! What went wrong, by name: a fault that was asked for but never struck has tested nothing.

/// Something that went wrong; the number is the row of the fault table in `docs/scenarios.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Happened {
    /// 1: a frame vanished.
    FrameLost,
    /// 2, 3: a token or its acknowledgement vanished.
    TokenLost,
    /// 4: bits flipped.
    Corrupted,
    /// 5: a frame was cut, padded or grown.
    Resized,
    /// 6: a frame came again.
    Duplicated,
    /// 7, 8: a frame was late, within D.
    DelayedWithin,
    /// 9: a frame was later than D.
    DelayedBeyond,
    /// 10: a token came within a hair of the end of its lease, or of the right to send.
    Boundary,
    /// 11: a station crashed.
    Crashed,
    /// 12: a station began again, knowing nothing.
    Restarted,
    /// 13: a station crashed again and again.
    CrashLoop,
    /// 14: a process stood still for less than a lease.
    PausedShort,
    /// 15: a process stood still for longer than a lease.
    PausedLong,
    /// 16: all processes stood still.
    PausedAll,
    /// 17: a process was starved of its processor.
    Starved,
    /// 18: the wall clock jumped.
    WallClock,
    /// 19: a clock ran fast, slow or stood still.
    Drifted,
    /// 20, 22, 23: a frame met a cut wire.
    Cut,
    /// 20: the segment fell apart.
    Partitioned,
    /// 21: the parts met again.
    Merged,
    /// 22: some heard others, who did not hear them.
    Asymmetric,
    /// 23: a link went up and down.
    Flapped,
    /// 26: a station sent outside its turn.
    Babbled,
    /// 27: a station kept the token.
    Hogged,
    /// 28: a frame forged without a key.
    Forged,
    /// 29: a frame forged with the segment's key.
    Insider,
    /// 30: an old frame was played again.
    Replayed,
    /// 31: two stations had one address.
    Cloned,
    /// 32: a station came with other settings.
    Skewed,
    /// 33: counters began near their end.
    Wrapped,
    /// 34: several stations began to switch at once, or all booted at once.
    TogetherStarted,
    /// 35: a flood at the link's rate.
    Flooded,
    /// 11: a crash that the guardian reported.
    Willed,
    /// 28: a stranger used a station's address.
    Spoofed,
    /// 27: a station kept the token for less than its lease.
    Kept,
    /// 27: a unit's frame left its station behind the token.
    Strayed,
    /// 23: an interface disappeared while its process ran on.
    PortLost,
}

impl Happened {
    /// Whether it takes a copy of a frame away.
    pub(crate) const fn is_loss(self) -> bool {
        matches!(self, Self::FrameLost | Self::TokenLost | Self::Cut)
    }

    /// All, with names and rows of the fault table.
    pub const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::FrameLost, "frame lost", "1"),
        (Self::TokenLost, "token or acknowledgement lost", "2, 3"),
        (Self::Corrupted, "frame corrupted", "4"),
        (Self::Resized, "frame resized", "5"),
        (Self::Duplicated, "frame duplicated", "6"),
        (Self::DelayedWithin, "frame delayed within D", "7, 8"),
        (Self::DelayedBeyond, "frame delayed beyond D", "7, 9"),
        (Self::Boundary, "lease boundary met", "10"),
        (Self::Crashed, "crash", "11"),
        (Self::Restarted, "restart", "12"),
        (Self::CrashLoop, "crash loop", "13"),
        (Self::PausedShort, "pause below a lease", "14"),
        (Self::PausedLong, "pause above a lease", "15"),
        (Self::PausedAll, "pause of all", "16"),
        (Self::Starved, "starvation", "17"),
        (Self::WallClock, "wall clock step", "18"),
        (Self::Drifted, "clock drift", "19"),
        (Self::Cut, "frame at a cut wire", "20, 22, 23"),
        (Self::Partitioned, "partition", "20"),
        (Self::Merged, "merge", "21"),
        (Self::Asymmetric, "asymmetric link", "22"),
        (Self::Flapped, "flapping link", "23"),
        (Self::Babbled, "babbling", "26"),
        (Self::Hogged, "token hog", "27"),
        (Self::Forged, "forged without key", "28"),
        (Self::Insider, "forged with key", "29"),
        (Self::Replayed, "replay", "30"),
        (Self::Cloned, "duplicate address", "31"),
        (Self::Skewed, "settings skew", "32"),
        (Self::Wrapped, "counter near its end", "33"),
        (Self::TogetherStarted, "simultaneous start", "34"),
        (Self::Flooded, "flood", "35"),
        (Self::Willed, "last will", "11"),
        (Self::Spoofed, "address used by a stranger", "28"),
        (Self::Kept, "token kept below its lease", "27"),
        (Self::Strayed, "unit outside its slot", "27"),
        (Self::PortLost, "interface gone", "23"),
    ];
}

/// How often each happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HappenedCounts([u64; Happened::ALL.len()]);

impl Default for HappenedCounts {
    fn default() -> Self {
        Self([0; Happened::ALL.len()])
    }
}

impl HappenedCounts {
    /// It happened once more.
    pub fn count(&mut self, what: Happened) {
        self.0[what as usize] += 1;
    }

    /// How often it happened.
    pub fn of(&self, what: Happened) -> u64 {
        self.0[what as usize]
    }

    /// Those of another run too.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Everything that happened, by name and row.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        Happened::ALL.iter().map(|(what, name, rows)| (*name, *rows, self.of(*what)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_stands_in_the_order_of_the_names() {
        for (at, (what, ..)) in Happened::ALL.iter().enumerate() {
            assert_eq!(*what as usize, at);
        }
    }
}
