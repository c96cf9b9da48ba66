//! S8: what one client does wrong is nobody else's affair. Two runs of one seed, in one of which a client
//! misbehaves, are laid side by side: another channel's delivered set is the same, and its worst delay at
//! most one quantum longer.

use crate::world::World;
use rota_units::Span;
use std::collections::BTreeSet;

/// What a channel's receiver got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Got {
    /// The numbers of the units that came whole.
    pub units: BTreeSet<u64>,
    /// The longest from ready to delivered.
    pub worst: Span,
}

impl Got {
    /// What came of a flow in a run.
    pub fn of(world: &World, flow: usize) -> Self {
        let to = world.flows()[flow].to;
        let host = &world.hosts[to];
        let channels = host.incoming().filter(|(_, of)| *of == flow).map(|(channel, _)| channel);
        let receipts = channels.filter_map(|channel| host.programs.receipts.get(&channel)).flatten();
        receipts.filter(|receipt| receipt.complete && receipt.intact).fold(
            Self::default(),
            |mut got, unit| {
                got.units.insert(unit.number);
                got.worst = got.worst.max(unit.delay);
                got
            },
        )
    }

    /// Compares a run in which somebody else misbehaved with this one, in which nobody did.
    ///
    /// # Errors
    /// What the misbehaviour changed.
    pub fn same(&self, beside: &Self, quantum: Span) -> Result<(), String> {
        let lost: Vec<u64> = self.units.difference(&beside.units).copied().take(5).collect();
        let more: Vec<u64> = beside.units.difference(&self.units).copied().take(5).collect();
        if !lost.is_empty() || !more.is_empty() {
            return Err(format!("units {lost:?} were lost and units {more:?} came beside a client at fault"));
        }
        if beside.worst > self.worst + quantum {
            let (alone, worst) = (self.worst, beside.worst);
            return Err(format!(
                "{worst} beside a client at fault, {alone} without; {quantum} more is allowed"
            ));
        }
        Ok(())
    }
}
