//! Copies the counts of units from the machines to the boards that programs read.

use rota_shm::ChannelTally;
use rota_wire::Tally;

/// As it stands on a board.
pub(crate) fn on_board(tally: Tally) -> ChannelTally {
    let Tally { units, late, lost, incomplete, latest_by_ns } = tally;
    ChannelTally { units, late, lost, incomplete, latest_by_ns }
}

/// "3 late by at most 40 ms, 1 lost, 2 in part"; nothing where nothing is wrong.
pub(crate) fn sentence(tally: &ChannelTally) -> Option<String> {
    let late = (tally.late > 0).then(|| {
        let by = rota_units::Span::from_nanos(tally.latest_by_ns);
        format!("{} behind the bound, by at most {by}", tally.late)
    });
    let lost = (tally.lost > 0).then(|| format!("{} lost", tally.lost));
    let part = (tally.incomplete > 0).then(|| format!("{} in part", tally.incomplete));
    let parts: Vec<String> = [late, lost, part].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
