//! Whether the units of a channel come in time and whole, as their receiver's node sees it.
//!
//! How late one is, [`OneWay`] says, and which are lost or in part [`Follow`]; the meters of
//! channels use both, too.

use rota_contract::Contract;
use rota_proto::{Follow, Followed, OneWay, Stated, UnitDescriptor};
use rota_shm::TraceVerdict;
use rota_units::Instant;

/// One channel that is received here.
pub(super) struct Judge {
    bound: i64,
    period: i64,
    same_clock: bool,
    clocks: OneWay,
    follow: Follow,
    /// When the next unit may be sent at the earliest, by the sender's schedules and the period.
    conforms: i64,
    early: i64,
}

/// What is found of one fragment.
pub(super) struct Judged {
    pub(super) deadline_ns: u64,
    pub(super) late_ns: i64,
    pub(super) verdict: TraceVerdict,
    /// What was missed before it, and itself.
    pub(super) missed: [Option<Missed>; 4],
}

/// A unit that was not there as promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Missed {
    pub(super) verdict: TraceVerdict,
    pub(super) number: u64,
    /// How many units did not come at all; of one that is late, its bound in ns.
    pub(super) units: u64,
    /// Octets that are missing.
    pub(super) octets: u64,
    /// How much earlier than the contract allows its sender sent it.
    pub(super) early_ns: u64,
    pub(super) deadline_ns: u64,
    pub(super) late_ns: i64,
}

impl Judge {
    pub(super) fn new(contract: &Contract, same_clock: bool) -> Self {
        let mut judge = Self {
            bound: 0,
            period: 0,
            same_clock,
            clocks: OneWay::default(),
            follow: Follow::default(),
            conforms: i64::MIN,
            early: 0,
        };
        judge.change(contract);
        judge
    }

    /// The channel has another contract now.
    pub(super) fn change(&mut self, contract: &Contract) {
        self.bound = contract.bound_ns.cast_signed();
        self.period = contract.period_ns.cast_signed();
    }

    /// A fragment came.
    pub(super) fn fragment(&mut self, unit: &UnitDescriptor, octets: u16, at: Instant) -> Judged {
        let schedule = unit.schedule_ns.cast_signed();
        let arrived = unit.arrived.unwrap_or(at);
        let found = self.follow.fragment(unit, octets.into());
        // The same arrivals count as in the meter of the channel, so that both state one lateness.
        let is_there = found.whole && unit.arrived.is_some();
        let offset = self.clocks.offset_of(is_there, arrived, unit.schedule_ns, self.same_clock);
        if found.begins {
            self.sends(unit.schedule_ns);
        }
        let [incomplete, missing, left_out] = missed(&found);
        // Before the reservation is confirmed nothing has been promised.
        if self.bound <= 0 {
            let missed = [incomplete, missing, left_out, None];
            return Judged { deadline_ns: 0, late_ns: 0, verdict: TraceVerdict::None, missed };
        }
        let offset = i64::try_from(offset).unwrap_or(if offset < 0 { i64::MIN } else { i64::MAX });
        let deadline = schedule.saturating_add(self.bound).saturating_add(offset);
        let late_ns = arrived.as_nanos().cast_signed().saturating_sub(deadline);
        let late = late_ns > 0;
        let deadline_ns = u64::try_from(deadline).unwrap_or(0);
        let verdict = if late { TraceVerdict::Late } else { TraceVerdict::InTime };
        let missed = (late && is_there).then(|| {
            let early_ns = self.early.cast_unsigned();
            let units = self.bound.cast_unsigned();
            Missed { verdict, number: unit.number, units, octets: 0, early_ns, deadline_ns, late_ns }
        });
        Judged { deadline_ns, late_ns, verdict, missed: [incomplete, missing, left_out, missed] }
    }

    /// The program of the channel takes its frames itself, and has come so far.
    pub(super) fn reached(&mut self, next: u64, missing: u64, left_out: u64) {
        self.follow.reach(next, missing, left_out);
    }

    /// A unit with this schedule is sent: how much earlier than one each period allows.
    pub(super) fn sends(&mut self, schedule_ns: u64) -> u64 {
        let schedule = schedule_ns.cast_signed();
        let early = self.conforms.saturating_sub(schedule);
        // Schedules follow slots, which come a little earlier or later; half a period is no such moment.
        self.early = if early > self.period / 2 { early } else { 0 };
        self.conforms = self.conforms.max(schedule).saturating_add(self.period);
        self.early.cast_unsigned()
    }

    /// The channel is over; its sender says how many units it had. Those that never left it, because the
    /// channel ended first, are none that the wire lost. Units left out at the end have the last numbers:
    /// their program handed over the waiting ones before, and their sender's node numbers them so.
    pub(super) fn end(&mut self, sent: Option<Stated>) -> [Option<Missed>; 3] {
        let found = std::mem::take(&mut self.follow).end(sent);
        let ((first, units), unsent) = (found.lost, sent.map_or(0, |sent| sent.unsent));
        let last = first.saturating_add(units).saturating_sub(found.left_out);
        let lost = (first, units.saturating_sub(unsent));
        let [in_part, lost, left_out] = missed(&Followed { lost, ..found });
        [in_part, lost, left_out.map(|left_out| Missed { number: last, ..left_out })]
    }
}

/// A unit that came in part, those that did not come, and of these the ones that their program left out. The
/// latter follow those that the wire lost, as far as their numbers go: nobody knows which were which.
fn missed(found: &Followed) -> [Option<Missed>; 3] {
    let of = |verdict, number, units, octets| Missed {
        verdict,
        number,
        units,
        octets,
        early_ns: 0,
        deadline_ns: 0,
        late_ns: 0,
    };
    let in_part = found.in_part.map(|(number, octets)| of(TraceVerdict::Incomplete, number, 0, octets));
    let ((first, units), left_out) = (found.lost, found.left_out);
    let lost = units.saturating_sub(left_out);
    [
        in_part,
        (lost > 0).then(|| of(TraceVerdict::Missing, first, lost, 0)),
        (left_out > 0).then(|| of(TraceVerdict::LeftOut, first.saturating_add(lost), left_out, 0)),
    ]
}
