//! Reports of counts that cannot be true. A station with the key can state any numbers about a channel; the
//! sender's node believes none that contradict what it knows itself: a report has at most the units that were
//! handed over or left out here, and no unit is later than the channel is old and its schedules are apart: a
//! receiver with another clock takes the quickest unit, which may have left long before its schedule, for one
//! in time. A refused report is counted as `tallies_refused`, confirms nothing, and accuses nobody.
//!
//! Within these limits a report is believed: nobody but the receiver's node knows what came.
//!
//! A close states the units of its sender, and its receiver counts those that did not come as lost. It
//! believes no more of them than there were slots, and as many more as a sender's memory holds. Units that
//! the program left out needed no slot, and their turns may have passed while it had no channel: their bound
//! is what a computer can do. A refused close ends its channel, and states nothing.

use super::{Incoming, Outgoing, Stated};
use rota_admission::Pace;
use rota_contract::Tally;
use rota_units::{Instant, Span};

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

/// Units that wait in the memory of a channel at most.
const WAITING_MAX: u64 = 64;
/// No program leaves out units more often.
const LEFT_OUT_EVERY: Span = Span::from_nanos(100);

impl Incoming {
    /// True if the sender of this channel may have had these units since it asked for it.
    pub(super) fn may_have_had(&self, now: Instant, stated: &Stated, cycle: Span) -> bool {
        let age = now.since(self.since);
        // The sender's clock may be the quicker one. A cycle has begun, and another one may be shorter.
        // A ring without a periodic session begins cycles early, by far less than half of each.
        let cycles = (age + age.div_down(1_000)).count_down(cycle.div_down(2)).saturating_add(2);
        let pace = Pace::of(self.granted.period(), cycle).unwrap_or(Pace::EVERY_CYCLE);
        let most = cycles.saturating_mul(pace.units()).saturating_add(WAITING_MAX);
        let handed = stated.units.checked_sub(stated.left_out);
        handed.is_some_and(|handed| handed <= most && stated.unsent <= handed)
            && stated.left_out <= (age + CLOCKS).count_down(LEFT_OUT_EVERY)
    }
}
