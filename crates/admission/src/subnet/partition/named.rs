//! The partitions of a node's port, by the names that requests have.

use super::{BadPartition, PARTITIONS_MAX, Partitions};
use rota_contract::PartitionName;

/// Partitions with their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedPartitions {
    names: [Option<PartitionName>; PARTITIONS_MAX],
    shares: Partitions,
}

impl NamedPartitions {
    /// One more, of so many percent; its number.
    ///
    /// # Errors
    /// [`BadPartition`]; nothing has changed.
    pub fn add(&mut self, name: PartitionName, percent: u8) -> Result<u8, BadPartition> {
        if self.names.contains(&Some(name)) {
            return Err(BadPartition::Doubled);
        }
        let number = self.shares.add(percent)?;
        self.names[usize::from(number) - 1] = Some(name);
        Ok(number)
    }

    /// Their shares.
    pub const fn shares(&self) -> Partitions {
        self.shares
    }

    /// True if nothing is divided.
    pub const fn is_none(&self) -> bool {
        self.shares.is_none()
    }

    /// The number of the partition in which a channel counts that asks for this one: the rest, 0, where it
    /// asks for none, or where there is none of that name.
    pub fn number(&self, name: Option<PartitionName>) -> u8 {
        let place = name.and_then(|name| self.names.iter().position(|of| *of == Some(name)));
        place.map_or(0, |place| place as u8 + 1)
    }

    /// All partitions with their numbers, names and percent, the rest without a name first.
    pub fn iter(&self) -> impl Iterator<Item = (u8, Option<PartitionName>, u8)> + use<> {
        let Self { names, shares } = *self;
        let named = names.into_iter().flatten().zip(1..);
        let named = named.map(move |(name, number)| (number, Some(name), shares.percent(number)));
        [(0, None, shares.percent(0))].into_iter().chain(named)
    }
}
