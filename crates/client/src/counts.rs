//! The counts of a sender's units, as far as it knows of them without the receiver's node.

use rota_contract::Tally;

/// The channels that a channel continues.
#[derive(Clone, Copy, Default)]
pub(crate) struct Before {
    pub(crate) tally: Tally,
    /// Units that the program handed over, and units that it left out.
    pub(crate) units: u64,
    pub(crate) left_out: u64,
    /// Units that had left, of which their receiver's node has reported nothing.
    pub(crate) unknown: u64,
}

/// Of the units that a program left out and handed over, those behind the end of the channel, which had so
/// many units; so many handed over ones neither left nor waited then.
pub(crate) fn beyond((left_out, written): (u64, u64), units: u64, handed_over: u64) -> (u64, u64) {
    let beyond = left_out.saturating_add(written).saturating_sub(units);
    let handed_over = handed_over.min(beyond);
    ((beyond - handed_over).min(left_out), handed_over)
}

/// The units of a sender as far as it knows of them without the receiver's node.
pub(crate) struct Here {
    /// The last frame of so many has left.
    pub(crate) sent: u64,
    pub(crate) left_out: u64,
    /// Handed over and not sent, where no more will be.
    pub(crate) waiting: u64,
    /// Some node has said that the channel is over.
    pub(crate) is_closed: bool,
    pub(crate) is_over: bool,
}

impl Here {
    /// The counts of one channel, of which the receiver's node has last reported `now`.
    pub(crate) fn with(&self, now: Tally) -> Tally {
        let never_left = self.left_out.saturating_add(self.waiting);
        // A unit that left in part waits here, and is incomplete there: only the report counts it once.
        let reported = now.units.saturating_add(now.lost).saturating_add(now.incomplete);
        if self.is_closed && reported == self.sent.saturating_add(never_left) {
            return now;
        }
        // The report of the receiver's node has these units, unless it is an old one or the receiver died. In
        // addition it has those that the program there did not read.
        let unread = now.unread.saturating_sub(now.incomplete);
        let lost = if self.is_closed {
            now.lost.max(never_left.saturating_add(unread))
        } else {
            // No node has counted the end: reports before it have none of the units that never left.
            now.lost.max(self.left_out.saturating_add(unread)).saturating_add(self.waiting)
        };
        let gone = (lost - never_left).saturating_add(now.incomplete);
        let others = self.sent.saturating_sub(gone);
        let units = if self.is_over { now.units.min(others) } else { others };
        Tally { units, lost, ..now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A unit had left in part when its channel ended: `send` counted it as lost and as incomplete.
    #[test]
    fn a_unit_that_left_in_part_counts_once() {
        let here = Here { sent: 8, left_out: 3, waiting: 2, is_closed: true, is_over: true };
        let now = Tally { units: 7, lost: 5, incomplete: 1, late: 2, unread: 1, latest_by_ns: 9 };
        assert_eq!(here.with(now), now, "the receiver's node has counted all 13");
        let old = Tally { units: 6, lost: 3, incomplete: 1, ..now };
        let with = here.with(old);
        assert_eq!((with.units, with.lost, with.incomplete), (6, 5, 1), "an older report lacks the end");
        let open = Here { waiting: 0, is_closed: false, is_over: false, ..here };
        assert_eq!(open.with(Tally { lost: 3, ..Default::default() }).units, 8);
    }

    /// The receiver's node has moved it from the late units to the lost ones.
    #[test]
    fn a_late_unit_that_was_not_read_is_lost_and_not_late() {
        let now = Tally { units: 7, lost: 1, unread: 1, ..Tally::default() };
        for (is_closed, is_over) in [(false, false), (false, true), (true, true)] {
            let here = Here { sent: 8, left_out: 0, waiting: 0, is_closed, is_over };
            assert_eq!(here.with(now), now, "{is_closed}, {is_over}");
        }
    }

    /// A channel had 8 units that left, 2 that waited and 3 left out. Units that its program handed over
    /// behind the end made those fewer that it had left out before: each end stated another number.
    #[test]
    fn units_behind_the_end_are_told_apart() {
        for (left_out, handed_over) in [(0, 0), (0, 1), (5, 0), (5, 1)] {
            let ring = (3 + left_out, 8 + 2 + handed_over);
            assert_eq!(beyond(ring, 13, handed_over), (left_out, handed_over));
        }
        assert_eq!(beyond((u64::MAX, u64::MAX), 0, u64::MAX), (0, u64::MAX));
        assert_eq!(beyond((1, 2), u64::MAX, 2), (0, 0));
    }
}
