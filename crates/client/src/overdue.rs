//! The policy for overdue units: units whose turn has passed after the host or its node stood still.

use rota_shm::control::ContractInfo;

/// The policy for a unit that is handed over while units before it still wait for their slots.
///
/// A reservation has no rate to catch up with. A unit that queues behind a late one is late too, and so is
/// every one after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overdue {
    /// It queues: no unit is left out, and each late unit is counted. A sender without a clock to follow (a
    /// file, a pipe) is in time again after a pause of one period; see [`crate::SendChannel::is_behind`].
    #[default]
    Keep,
    /// It is left out, as a camera does, and counts as lost. The next unit is in time again.
    Drop,
}

/// The policy of one channel, and the number of units left out under it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turns {
    pub(crate) policy: Overdue,
    pub(crate) left_out: u64,
}

/// Units that leave together in one slot.
pub(crate) fn in_slot(contract: &ContractInfo) -> u64 {
    contract.cycle_ns.div_ceil(contract.period_ns.max(1)).max(1)
}
