//! The shares of a network's partitions (`TENET-7-2`). Their promise stands in `subnet/partition.rs`.

use rota_units::Span;

/// Named partitions of a network at most.
pub const PARTITIONS_MAX: usize = 7;

/// The partitions of a network, in percent. Number 0 is the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partitions {
    named: [u8; PARTITIONS_MAX],
    count: usize,
}

/// Shares that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPartition {
    /// A share of nothing.
    Nothing,
    /// More than [`PARTITIONS_MAX`].
    TooMany,
    /// The shares leave nothing for ordinary traffic.
    Whole,
    /// Two partitions of one name.
    Doubled,
}

impl core::fmt::Display for BadPartition {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Nothing => f.write_str("a partition of 0 % carries nothing"),
            Self::TooMany => write!(f, "a network has {PARTITIONS_MAX} partitions at most"),
            Self::Whole => {
                f.write_str("the partitions leave nothing for the rest; state 99 % together at most")
            }
            Self::Doubled => f.write_str("two partitions of a network have this name"),
        }
    }
}

impl core::error::Error for BadPartition {}

impl Partitions {
    /// One more, of so many percent; its number.
    ///
    /// # Errors
    /// [`BadPartition`]; nothing has changed.
    pub fn add(&mut self, percent: u8) -> Result<u8, BadPartition> {
        if percent == 0 {
            return Err(BadPartition::Nothing);
        }
        if self.count == PARTITIONS_MAX {
            return Err(BadPartition::TooMany);
        }
        if percent >= self.percent(0) {
            return Err(BadPartition::Whole);
        }
        self.named[self.count] = percent;
        self.count += 1;
        Ok(self.count as u8)
    }

    /// How many have a name.
    pub const fn count(&self) -> u8 {
        self.count as u8
    }

    /// True if nothing is divided.
    pub const fn is_none(&self) -> bool {
        self.count == 0
    }

    /// The share of a partition; of one that does not exist, 0.
    pub fn percent(&self, number: u8) -> u8 {
        let named = &self.named[..self.count];
        match usize::from(number).checked_sub(1) {
            Some(at) => named.get(at).copied().unwrap_or(0),
            None => 100 - named.iter().sum::<u8>(),
        }
    }

    /// The time of a cycle that the slots of a partition may take, rounded down; no limit where nothing is
    /// divided.
    pub fn room(&self, number: u8, trt: Span) -> Span {
        if self.is_none() {
            return Span::MAX;
        }
        Span::from_nanos((trt * u64::from(self.percent(number))).as_nanos() / 100)
    }

    /// The numbers of all, the rest first.
    pub fn numbers(&self) -> impl Iterator<Item = u8> + use<> {
        0..=self.count as u8
    }
}
