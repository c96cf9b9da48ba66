//! Reports of counts that cannot be true. A station with the key can state any numbers about a channel; the
//! sender's node believes none that contradict what it knows itself: a report has at most the units that were
//! handed over or left out here, and no unit is later than the channel is old and its schedules are apart: a
//! receiver with another clock takes the quickest unit, which may have left long before its schedule, for one
//! in time. A refused report is counted as `tallies_refused`, confirms nothing, and accuses nobody.
//!
//! Within these limits a report is believed: nobody but the receiver's node knows what came.

use super::Outgoing;
use rota_units::{Instant, Span};
use rota_wire::Tally;

/// By how much a receiver may err about the age of a unit: clocks run apart by less over days.
const CLOCKS: Span = Span::from_millis(1_000);

impl Outgoing {
    /// True if these counts may be those of this channel.
    pub(super) fn may_be(&self, now: Instant, told: &Tally) -> bool {
        // After its program has died fewer units are stated than may have left in part.
        let handed = self.stated().units.max(self.meter.handed());
        let apart = told.units.checked_add(told.lost).and_then(|sum| sum.checked_add(told.incomplete));
        let broken = told.lost.saturating_add(told.incomplete);
        let (earliest, latest) = self.meter.dues().unwrap_or((now, now));
        let oldest = now.since(self.began.min(earliest)) + latest.since(earliest) + CLOCKS;
        apart.is_some_and(|sum| sum <= handed)
            && told.late <= handed
            && told.unread <= broken
            && told.latest_by_ns <= oldest.as_nanos()
    }
}
