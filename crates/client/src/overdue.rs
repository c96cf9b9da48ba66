//! The policy for overdue units: units whose turn has passed after the host or its node stood still.

use rota_contract::{Contract, Granted};
use rota_shm::SlotMark;
use rota_units::{Instant, Span};

/// The policy for a unit that is handed over while units before it still wait for their slots.
///
/// A reservation has no rate to catch up with. A unit that queues behind a late one is late too, and so is
/// every one after it. Where slots come more often than units there is some room: a unit that can still leave
/// in its own slot is not overdue.
///
/// The default is to drop, which suits live media: after a stall the channel is in time again by itself. No
/// unit is lost in silence: its `send` answers [`crate::SendError::LeftOut`]. A program that must lose none,
/// or that hands over units without a clock to follow, as a file, states [`Overdue::Keep`] when it opens the
/// channel ([`crate::OpenRequest::overdue`]). `rota send` does so for all that is no video.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overdue {
    /// It queues: no unit is left out, and each late unit is counted. A sender without a clock to follow (a
    /// file, a pipe) is in time again after a pause of one period; see [`crate::SendChannel::is_behind`]. One
    /// that never pauses stays as late as its longest stall.
    Keep,
    /// It is left out, as a camera does, and counts as lost at both ends. The next unit is in time again.
    #[default]
    Drop,
}

/// True if a unit that is handed over now is overdue, because `waiting` units wait before it.
///
/// The unit before may wait for its own slot although both are in time: a program's wake-ups vary around the
/// instant of its slot, or slots come more often than units and their phase slides. So a unit is behind if
/// its slot begins more than one step of the slots from now. A slot is told of at its end, so it counts as
/// missed a quarter of a step after the time at which it should have ended. Before the first slot units wait
/// in time until the first of them, handed over at `first`, is behind its bound.
///
/// A unit that was worked ahead may leave by `slack` later than one whose time is now.
pub(crate) fn is_behind_by(
    granted: &Granted,
    (newest, first): (Option<SlotMark>, Instant),
    waiting: u64,
    (now, slack): (Instant, Span),
) -> bool {
    let Granted { contract, rether, .. } = granted;
    let Some(newest) = newest else {
        return waiting > 0 && now > first + Span::from_nanos(contract.bound_ns) + slack;
    };
    if let Some(within) = granted.leaves_within_ns {
        return is_behind_at_source(contract, Span::from_nanos(within), (newest.at, waiting), (now, slack));
    }
    let Some(rether) = rether else {
        return is_behind_on_link(contract, newest.at, waiting, (now, slack));
    };
    let step = Span::from_nanos(rether.cycle_ns.max(1)) * u64::from(rether.reserved_cycles.max(1));
    let told = step.div_down(4) + Span::from_nanos(rether.tht_ns);
    let missed = now.since(newest.at).minus(told).count_down(step);
    let turns = missed.saturating_add(waiting / u64::from(rether.reserved_units.max(1))).saturating_add(1);
    let slot = Span::from_nanos(step.as_nanos().saturating_mul(turns));
    // The contract allows a little more than a step from handing over to the slot.
    let bound = Span::from_nanos(contract.bound_ns).minus(step);
    let spare = bound.div_down(2).min(step.div_down(16));
    newest.at + slot > now + slack + step + spare
}

/// The first node of a way across segments lets each unit out within its own bound: a RETHER segment serves
/// once a cycle. Where nothing stood still, the newest unit that has left was handed over `waiting + 1`
/// periods ago, and left within that bound. So a unit is behind if the newest one left too late for that, as
/// far as units leave a period apart; of those that wait the first may be leaving now, as late as it may.
fn is_behind_at_source(
    contract: &Contract,
    within: Span,
    (newest, waiting): (Instant, u64),
    (now, slack): (Instant, Span),
) -> bool {
    let period = Span::from_nanos(contract.period_ns.max(1));
    let next = (newest + period).max(now.minus(within));
    let behind = Span::from_nanos(period.as_nanos().saturating_mul(waiting));
    waiting > 0 && next + behind > now + within + slack + period.div_down(16)
}

/// A medium without fixed slots serves a unit as soon as it waits, and one each period at least. So units
/// that wait leave a period apart from now on. The first one may be leaving now, since its bound at most.
fn is_behind_on_link(
    contract: &Contract,
    newest: Instant,
    waiting: u64,
    (now, slack): (Instant, Span),
) -> bool {
    let (period, bound) = (Span::from_nanos(contract.period_ns.max(1)), Span::from_nanos(contract.bound_ns));
    let next = (newest + period).max(now.minus(bound));
    let behind = Span::from_nanos(period.as_nanos().saturating_mul(waiting));
    waiting > 0 && next + behind > now + slack + period.div_down(16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_contract::RetherShare;

    /// Of a unit whose time is now.
    fn is_behind(granted: &Granted, slots: (Option<SlotMark>, Instant), waiting: u64, now: Instant) -> bool {
        is_behind_by(granted, slots, waiting, (now, Span::ZERO))
    }

    const CYCLE: u64 = 33_333_333;
    /// 24000/1001, 25, 30000/1001, 30, 50, 60000/1001 and 60 a second.
    const PERIODS: [u64; 7] =
        [41_708_333, 40_000_000, 33_366_667, 33_333_333, 20_000_000, 16_683_333, 16_666_667];

    /// The contract as admission makes it.
    fn granted(period_ns: u64) -> Granted {
        let units = CYCLE.div_ceil(period_ns).max(1);
        let cycles = (period_ns / CYCLE).max(1);
        let is_exact =
            (period_ns / cycles).abs_diff(CYCLE / units) <= 2 && units * period_ns <= cycles * CYCLE + 4;
        Granted {
            contract: Contract {
                unit_octets_max: 100,
                period_ns,
                bound_ns: CYCLE * cycles + 2_000_000,
                extra_ppm: if is_exact { 0 } else { 1_000 },
                buffers: 4,
            },
            rether: Some(RetherShare {
                cycle_ns: CYCLE,
                reserved_units: units as u16,
                reserved_cycles: cycles as u16,
                ..RetherShare::default()
            }),
            ..Granted::default()
        }
    }

    /// A ring whose units leave in slots; the slots between two instants do not come.
    struct Run {
        granted: Granted,
        offset: u64,
        none: std::ops::Range<u64>,
        /// Microseconds by which slots come late, in turn.
        jitter: [u64; 4],
        slots: u64,
        waiting: u64,
        newest: Option<SlotMark>,
        /// When the first unit was handed over.
        first: Option<u64>,
    }

    impl Run {
        fn new(period_ns: u64, offset: u64) -> Self {
            let (none, jitter) = (0..0, [0; 4]);
            let granted = granted(period_ns);
            Self { granted, offset, none, jitter, slots: 0, waiting: 0, newest: None, first: None }
        }

        /// All slots until then.
        fn until(&mut self, now: u64) {
            loop {
                let late = 1_000 * self.jitter[self.slots as usize % 4];
                let at = self.offset
                    + self.slots * CYCLE * u64::from(self.granted.rether.unwrap().reserved_cycles)
                    + late;
                if at > now {
                    return;
                }
                self.slots += 1;
                if !self.none.contains(&at) {
                    self.newest = Some(SlotMark { number: self.slots, at: Instant::from_nanos(at) });
                    self.waiting -= self.waiting.min(u64::from(self.granted.rether.unwrap().reserved_units));
                }
            }
        }

        /// The unit of this instant; true if it is left out.
        fn unit(&mut self, now: u64) -> bool {
            self.until(now);
            let first = Instant::from_nanos(self.first.unwrap_or(now));
            let behind =
                is_behind(&self.granted, (self.newest, first), self.waiting, Instant::from_nanos(now));
            self.waiting += u64::from(!behind);
            self.first.get_or_insert(now);
            behind
        }
    }

    /// A program without a clock of the node hands over around the instant of its slot: each unit that came
    /// some microseconds before the slot of the unit before was left out.
    #[test]
    fn nothing_is_left_out_around_the_instant_of_the_slot() {
        for period in [33_333_333_u64, 66_666_666, 16_666_667] {
            let mut run = Run::new(period, 7_000_000);
            let around = [0_i64, 100_000, -100_000, 40_000, -70_000, 99_000, -3_000];
            let at = |unit: u64| 7_000_000 + unit * period + 1_000_000;
            let instant = |unit: u64| at(unit).saturating_add_signed(around[unit as usize % 7] - 1_000_000);
            let left_out = (1..3_000).filter(|unit| run.unit(instant(*unit))).count();
            assert_eq!(left_out, 0, "period {period}");
        }
    }

    /// At 29.97 units a second some 14 were left out every 33 seconds, although nothing stood still.
    #[test]
    fn nothing_is_left_out_while_every_slot_comes() {
        for period in PERIODS {
            for (offset, jitter) in
                [(0, [0; 4]), (7_000_000, [0, 300, 0, 800]), (33_333_000, [90, 0, 5, 700])]
            {
                let mut run = Run { jitter, ..Run::new(period, offset) };
                // Where slots and units share a grid, a unit is handed over a quarter of a period before.
                let lead =
                    if run.granted.contract.extra_ppm == 0 { offset + 3 * period / 4 } else { offset + 1 };
                let units = 600_000_000_000 / period;
                let left_out = (0..units).filter(|unit| run.unit(lead + unit * period)).count();
                assert_eq!(left_out, 0, "period {period}, offset {offset}, jitter {jitter:?}");
            }
        }
    }

    /// A program that hands over its first units before the channel's first slot keeps to its contract: each
    /// second one of a slow channel was left out until the first slot had come.
    #[test]
    fn nothing_is_left_out_before_the_first_slot_within_the_bound() {
        for period in [16_666_667_u64, 33_333_333, 33_366_667, 66_666_666] {
            for offset in (0..20).map(|twentieth| twentieth * granted(period).contract.bound_ns / 20) {
                let mut run = Run::new(period, offset);
                let left_out = (0..100).filter(|unit| run.unit(unit * period)).count();
                assert_eq!(left_out, 0, "period {period}, first slot after {offset} ns");
            }
        }
        let mut run = Run::new(33_333_333, 1_000_000_000);
        let left_out: Vec<u64> = (0..30).filter(|unit| run.unit(unit * 33_333_333)).collect();
        assert_eq!(left_out, (2..30).collect::<Vec<_>>(), "a second without a slot");
    }

    /// A slot is told of at its end. One of half a cycle counted as missed while its unit left.
    #[test]
    fn a_long_slot_is_not_missed_while_it_lasts() {
        let at = |ns| Some(SlotMark { number: 7, at: Instant::from_nanos(ns) });
        let is_behind = |tht_ns, now| {
            let mut long = granted(CYCLE);
            long.rether.as_mut().unwrap().tht_ns = tht_ns;
            is_behind(&long, (at(0), Instant::ZERO), 1, Instant::from_nanos(now))
        };
        let half = CYCLE / 2;
        let last = CYCLE + CYCLE / 4 + half;
        assert!(!is_behind(half, last - 1) && is_behind(0, last - 1), "its unit still leaves");
        assert!(is_behind(half, last), "it did not come");
    }

    /// The source of a way across segments.
    struct Source {
        period: u64,
        /// Its segment serves one unit each cycle.
        cycle: u64,
        none: std::ops::Range<u64>,
        turns: u64,
        waiting: u64,
        newest: Option<SlotMark>,
    }

    impl Source {
        fn unit(&mut self, now: u64) -> bool {
            while self.turns * self.cycle <= now {
                let at = self.turns * self.cycle;
                self.turns += 1;
                if self.waiting > 0 && !self.none.contains(&at) {
                    self.waiting -= 1;
                    self.newest = Some(SlotMark { number: self.turns, at: Instant::from_nanos(at) });
                }
            }
            let bound_ns = 3 * self.cycle + 2 * self.period;
            let contract = Contract { period_ns: self.period, bound_ns, ..Contract::default() };
            let leaves_within_ns = Some(self.cycle + 1_000_000);
            let granted = Granted { contract, leaves_within_ns, ..Granted::default() };
            let behind =
                is_behind(&granted, (self.newest, Instant::ZERO), self.waiting, Instant::from_nanos(now));
            self.waiting += u64::from(!behind);
            behind
        }
    }

    /// Of a video of 25 pictures a second 60 in 150 were left out on a network that was idle.
    #[test]
    fn a_source_across_segments_leaves_out_nothing_unless_something_stands_still() {
        for period in [33_366_667, 40_000_000, 41_708_333, 50_000_000, 66_666_666, 125_000_000] {
            for offset in [1, 7_000_000, 30_000_000] {
                let new = || Source { period, cycle: CYCLE, none: 0..0, turns: 0, waiting: 0, newest: None };
                let mut source = new();
                let left_out = (0..5_000).filter(|unit| source.unit(offset + unit * period)).count();
                assert_eq!(left_out, 0, "period {period}, offset {offset}");
                let stall = 5_000_000_000..6_000_000_000;
                let mut source = Source { none: stall.clone(), ..new() };
                let late: Vec<u64> = (0..400).filter(|unit| source.unit(offset + unit * period)).collect();
                let missed = 1_000_000_000 / period;
                assert!((missed.saturating_sub(4)..=missed + 3).contains(&(late.len() as u64)), "{late:?}");
                let over = late.iter().find(|unit| **unit * period > stall.end + 8 * CYCLE);
                assert_eq!(over, None, "{period}: in time again");
            }
        }
    }

    /// After one stall every later unit was late, for as long as the program did not pause.
    #[test]
    fn a_channel_recovers_by_itself_unless_it_was_asked_to_keep_all() {
        assert_eq!(Overdue::default(), Overdue::Drop);
        assert_eq!(crate::OpenRequest::new("n2", 1, 100, Span::from_nanos(CYCLE)).overdue, Overdue::Drop);
    }

    #[test]
    fn what_is_overdue_after_a_stall_is_left_out_and_no_more() {
        for period in PERIODS {
            for stall in [100_000_000, 1_000_000_000] {
                let mut run =
                    Run { none: 5_000_000_000..5_000_000_000 + stall, ..Run::new(period, 1_000_000) };
                let lead = 1_000_001 + if run.granted.contract.extra_ppm == 0 { 3 * period / 4 } else { 0 };
                let late: Vec<u64> = (0..400).filter(|unit| run.unit(lead + unit * period)).collect();
                let missed = stall / period;
                let left_out = late.len() as u64;
                assert!((missed.saturating_sub(3)..=missed + 3).contains(&left_out), "{period}: {late:?}");
                let over = late.iter().find(|unit| **unit * period > 5_000_000_000 + stall + 4 * CYCLE);
                assert_eq!(over, None, "{period}, {stall}: in time again");
            }
        }
    }

    #[test]
    fn before_the_first_slot_a_unit_is_behind_from_the_bound_of_the_first_on() {
        let bound = granted(CYCLE).contract.bound_ns;
        let behind = |waiting, now| {
            is_behind(&granted(CYCLE), (None, Instant::ZERO), waiting, Instant::from_nanos(now))
        };
        assert!(!behind(1, bound) && behind(1, bound + 1) && !behind(0, bound + 1));
    }

    #[test]
    fn a_slot_counts_as_missed_a_quarter_of_a_step_after_its_time() {
        let known = (Some(SlotMark { number: 1, at: Instant::ZERO }), Instant::ZERO);
        let missed = CYCLE + CYCLE / 4;
        let behind = |now| is_behind(&granted(CYCLE), known, 1, Instant::from_nanos(now));
        assert!(!behind(missed - 1) && behind(missed));
    }
    /// On a link a unit that waits alone in its period is in time; one behind a unit that should have left is
    /// not, and no unit is behind where none waits.
    #[test]
    fn on_a_link_units_leave_a_period_apart_when_they_wait() {
        let link = Granted { rether: None, ..granted(CYCLE) };
        let is_behind = |bound_ns, newest, waiting, now| {
            let contract = Contract { bound_ns, ..link.contract };
            let newest = Some(SlotMark { number: 7, at: Instant::from_nanos(newest) });
            is_behind(
                &Granted { contract, ..link },
                (newest, Instant::ZERO),
                waiting,
                Instant::from_nanos(now),
            )
        };
        let second = 1_000_000_000;
        assert!(!is_behind(CYCLE / 3, second, 0, second + 1), "none waits");
        assert!(is_behind(CYCLE / 3, second, 1, second + 2 * CYCLE), "the one before should have left");
        assert!(!is_behind(CYCLE, second, 1, second + 2 * CYCLE), "it may be leaving");
        assert!(is_behind(CYCLE, second, 2, second + 2 * CYCLE));
        assert!(!is_behind(CYCLE, 0, 1, second), "the first two after a pause");
    }
}
