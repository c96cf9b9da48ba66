//! Units that came and were not read.

/// Units of a channel that its node had received and its program did not read in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Unread {
    /// Units of which the program read nothing.
    pub lost: u64,
    /// Of these: units that had come in part only.
    pub in_part: u64,
    /// Units that had come whole, and of which the program read a part.
    pub incomplete: u64,
    /// Of all these: units that had come whole, but behind their bound. They are not late any more: each unit
    /// counts once, by what its program has of it.
    pub late: u64,
}

impl Unread {
    /// All units that the program missed.
    pub fn units(&self) -> u64 {
        self.lost.saturating_add(self.incomplete)
    }
}
