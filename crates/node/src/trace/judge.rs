//! Whether the units of a channel come in time and whole, as their receiver's node sees it.
//!
//! How late one is, [`OneWay`] says, for the meters of channels too.

use rota_proto::{Contract, OneWay, UnitDescriptor};
use rota_shm::TraceVerdict;
use rota_units::Instant;

/// One channel that is received here.
pub(super) struct Judge {
    bound: i64,
    period: i64,
    same_clock: bool,
    clocks: OneWay,
    /// The unit whose fragments come now, and how many of its octets have come; none before the first.
    unit: Option<(u64, u64, u32)>,
    /// The unit that was last told to be late.
    told: Option<u64>,
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
    pub(super) missed: [Option<Missed>; 3],
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
            unit: None,
            told: None,
            conforms: i64::MIN,
            early: 0,
        };
        judge.change(contract);
        judge
    }

    /// The channel has another contract now.
    pub(super) fn change(&mut self, contract: &Contract) {
        self.bound = contract.bound.as_nanos().cast_signed();
        self.period = contract.period.as_nanos().cast_signed();
    }

    /// A fragment came.
    pub(super) fn fragment(&mut self, unit: &UnitDescriptor, octets: u16, at: Instant) -> Judged {
        let schedule = unit.schedule_ns.cast_signed();
        let arrived = unit.arrived.unwrap_or(at);
        let offset = self.clocks.offset(arrived, unit.schedule_ns, self.same_clock);
        let [incomplete, missing] = self.follow(unit, octets);
        // Before the reservation is confirmed nothing has been promised.
        if self.bound <= 0 {
            let missed = [incomplete, missing, None];
            return Judged { deadline_ns: 0, late_ns: 0, verdict: TraceVerdict::None, missed };
        }
        let offset = i64::try_from(offset).unwrap_or(if offset < 0 { i64::MIN } else { i64::MAX });
        let deadline = schedule.saturating_add(self.bound).saturating_add(offset);
        let late_ns = arrived.as_nanos().cast_signed().saturating_sub(deadline);
        let late = late_ns > 0;
        let deadline_ns = u64::try_from(deadline).unwrap_or(0);
        let verdict = if late { TraceVerdict::Late } else { TraceVerdict::InTime };
        let news = late && self.told != Some(unit.number);
        let missed = news.then(|| {
            self.told = Some(unit.number);
            let early_ns = self.early.cast_unsigned();
            let units = self.bound.cast_unsigned();
            Missed { verdict, number: unit.number, units, octets: 0, early_ns, deadline_ns, late_ns }
        });
        Judged { deadline_ns, late_ns, verdict, missed: [incomplete, missing, missed] }
    }

    /// Follows the units: which ones are missing, in whole or in part, before this fragment.
    fn follow(&mut self, unit: &UnitDescriptor, octets: u16) -> [Option<Missed>; 2] {
        let before = self.unit;
        if let Some((number, got, _)) = &mut self.unit
            && *number == unit.number
        {
            *got += u64::from(octets);
            return [None, None];
        }
        self.unit = Some((unit.number, octets.into(), unit.unit_octets));
        self.sends(unit.schedule_ns);
        let next = before.map_or(0, |(number, ..)| number + 1);
        [before.and_then(in_part), (unit.number > next).then(|| missing(next, unit.number - next))]
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

    /// The channel is over; its sender says how many units it sent.
    pub(super) fn end(&mut self, sent: Option<u64>) -> [Option<Missed>; 2] {
        let Some(before) = self.unit.take() else { return [None, None] };
        let next = before.0 + 1;
        let gone = sent.filter(|sent| *sent > next).map(|sent| missing(next, sent - next));
        [in_part(before), gone]
    }
}

fn in_part((number, got, octets): (u64, u64, u32)) -> Option<Missed> {
    let octets = u64::from(octets).checked_sub(got).filter(|octets| *octets > 0)?;
    let verdict = TraceVerdict::Incomplete;
    Some(Missed { verdict, number, units: 0, octets, early_ns: 0, deadline_ns: 0, late_ns: 0 })
}

fn missing(number: u64, units: u64) -> Missed {
    let verdict = TraceVerdict::Missing;
    Missed { verdict, number, units, octets: 0, early_ns: 0, deadline_ns: 0, late_ns: 0 }
}
