//! Counts of a channel's units.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use rota_units::Span;

/// Counts of a channel's units, as its receiver's node counted them; at the sender as last reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tally {
    /// Units that came whole; at the sender of a channel on which nothing went wrong, 0.
    pub units: u64,
    /// Of these: units that came behind their bound. One that its program does not read is lost or
    /// incomplete, and no longer late: each unit counts once, by what the program has of it.
    pub late: u64,
    /// Units of which nothing came.
    pub lost: u64,
    /// Units that came in part.
    pub incomplete: u64,
    /// By how much the latest of the late units missed its bound, ns.
    pub latest_by_ns: u64,
    /// Of the lost and incomplete units: those that the receiver's node had received, and its program did
    /// not read in time.
    #[cfg_attr(feature = "serde", serde(default))]
    pub unread: u64,
}

impl Tally {
    /// Units that were not there as promised.
    pub const fn broken(&self) -> u64 {
        self.late.saturating_add(self.lost).saturating_add(self.incomplete)
    }

    /// "3 behind the bound, by at most 40 ms, 1 lost, 2 in part, of these 2 that the receiving program did
    /// not read in time", where `bound` is "the bound"; `None` if
    /// every promise was kept. The lateness is left out where it is not known (zero).
    pub fn words_of_broken(&self, bound: &str) -> Option<String> {
        let by = Span::from_nanos(self.latest_by_ns).printed_up();
        let by = if by == Span::ZERO { String::new() } else { format!(", by at most {by}") };
        let late = (self.late > 0).then(|| format!("{} behind {bound}{by}", self.late));
        let lost = (self.lost > 0).then(|| format!("{} lost", self.lost));
        let part = (self.incomplete > 0).then(|| format!("{} in part", self.incomplete));
        // The parts of a tally are not read at once: unread units may be told before they count as lost.
        let unread = (self.unread > 0 && lost.is_some() | part.is_some())
            .then(|| format!("of these {} that the receiving program did not read in time", self.unread));
        let parts: Vec<String> = [late, lost, part, unread].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}
