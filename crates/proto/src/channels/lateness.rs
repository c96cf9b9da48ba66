//! How late a unit is: the one computation that the meter, the event log and both programs share.
//!
//! A unit is there when its last octets are, by the kernel's stamp of that frame: parts of a unit are not
//! late, and a unit without a stamp is not judged. It has to be there at its schedule + the channel's bound,
//! on the sender's clock. Between stations of one host (equal boot ids) that is this clock. Between hosts
//! only differences mean something. The quickest arrival so far counts as having taken no time at all.
//! [`DRIFT`] is the allowance for the drift of the two clocks after it. A unit that counts as late was late.
//! A unit that was late by less than the time of the quickest one, or by less than the drift since, does not
//! count.

use rota_units::Instant;

/// Clocks of two hosts drift apart by one part in so many: 100 ppm.
const DRIFT: i128 = 10_000;

/// The estimate of the sender's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneWay {
    /// Arrival less schedule of the quickest, and when that was.
    quickest: Option<(i128, Instant)>,
}

impl OneWay {
    /// The offset from the sender's clock to this one, as far as it is known with this arrival.
    pub fn offset(&mut self, arrived: Instant, schedule_ns: u64, one_clock: bool) -> i128 {
        if one_clock {
            return 0;
        }
        let took = i128::from(arrived.as_nanos()) - i128::from(schedule_ns);
        let known = self.quickest.map(|(took, at)| took + i128::from(arrived.since(at).as_nanos()) / DRIFT);
        match known {
            Some(known) if known < took => known,
            _ => {
                self.quickest = Some((took, arrived));
                took
            }
        }
    }

    /// The same with an arrival that counts for later ones only if `counts`.
    pub fn offset_of(&mut self, counts: bool, arrived: Instant, schedule_ns: u64, one_clock: bool) -> i128 {
        let mut copy = *self;
        let offset = copy.offset(arrived, schedule_ns, one_clock);
        *self = if counts { copy } else { *self };
        offset
    }

    /// How long a unit took that arrived then; negative where its sender sent it before its schedule.
    pub fn delay(&mut self, arrived: Instant, schedule_ns: u64, one_clock: bool) -> i128 {
        let offset = self.offset(arrived, schedule_ns, one_clock);
        i128::from(arrived.as_nanos()) - i128::from(schedule_ns) - offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn with_one_clock_a_delay_is_a_delay() {
        let mut way = OneWay::default();
        assert_eq!(way.delay(at(1_400), 1_000, true), 400);
        assert_eq!(way.delay(at(900), 1_000, true), -100);
    }

    #[test]
    fn between_hosts_lateness_lasts_as_long_as_it_does_and_drift_is_none() {
        let mut way = OneWay::default();
        // The other clock is a day ahead and slow by 90 ppm.
        let schedule = |number: u64| 86_400_000 * MS + number * 33 * MS - number * 33 * MS / 11_000;
        let arrived = |number: u64, late: u64| at(MS + number * 33 * MS + late);
        for number in 0..10_000 {
            assert!(way.delay(arrived(number, 0), schedule(number), false) <= 0, "{number}");
        }
        // From here on all are 40 ms late: a minute later they still are.
        for number in 10_000..12_000 {
            let delay = way.delay(arrived(number, 40 * MS), schedule(number), false);
            assert!(delay > i128::from(33 * MS), "{number}: {delay}");
        }
    }

    #[test]
    fn a_clock_that_says_anything_makes_no_overflow() {
        let mut way = OneWay::default();
        for schedule in [0, u64::MAX, 1, u64::MAX / 2] {
            way.delay(at(u64::MAX), schedule, false);
            way.delay(at(0), schedule, false);
        }
    }

    #[test]
    fn a_quicker_unit_takes_the_place_of_the_quickest_so_far() {
        let mut way = OneWay::default();
        assert_eq!(way.delay(at(110), 0, false), 0);
        assert_eq!(way.delay(at(1_010), 1_000, false), 0);
        assert_eq!(way.delay(at(2_110), 2_000, false), 100);
    }
}
