//! What becomes of units whose turn has passed, after the host or its node stood still.

use rota_shm::control::ContractInfo;

/// What a channel does with a unit that is handed over while units before it still wait for their slots.
///
/// A reservation has no rate to catch up with. A unit that queues behind a late one is late too, and so is
/// every one after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overdue {
    /// It queues: nothing is left out, and each late unit is counted. Who has no clock to follow (a file, a
    /// pipe) is in time again by handing over nothing for one period; see [`crate::SendChannel::is_behind`].
    #[default]
    Keep,
    /// It is left out, as a camera would, and counts as lost: the next one is in time again at once.
    Drop,
}

/// The policy of one channel, and what it has cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turns {
    pub(crate) policy: Overdue,
    pub(crate) left_out: u64,
}

/// Units that leave together in one slot.
pub(crate) fn in_slot(contract: &ContractInfo) -> u64 {
    contract.cycle_ns.div_ceil(contract.period_ns.max(1)).max(1)
}
