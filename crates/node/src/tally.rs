//! Copies the counts of units from the machines to the boards that programs read.

use rota_shm::ChannelTally;
use rota_wire::Tally;

/// As it stands on a board.
pub(crate) fn on_board(tally: Tally) -> ChannelTally {
    let Tally { units, late, lost, incomplete, latest_by_ns, unread } = tally;
    ChannelTally { units, late, lost, incomplete, latest_by_ns, unread }
}

/// The broken promises in words; `None` if every promise was kept.
pub(crate) fn sentence(tally: &ChannelTally) -> Option<String> {
    tally.words_of_broken("the bound")
}
