//! The arithmetic of the work-ahead, tried with arbitrary programs, channels and clocks.

use rota_units::{Instant, Span};

use super::playout::Playout;
use super::turns::Turns;

/// Numbers that look random and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }
}

/// A stream: its period, bound and work-ahead, and for each unit that was put its number, when it was put,
/// when it left at the earliest, and when it arrived on the source's clock.
struct Stream {
    period: u64,
    bound: u64,
    ahead: u64,
    units: Vec<(u64, u64, u64, u64)>,
    left_out: u64,
}

/// A program that stands still now and then, and a channel whose units take any time within its bound.
fn stream(numbers: &mut Numbers, count: u64) -> Stream {
    let period = 1_000_000 + numbers.below(50_000_000);
    let bound = period / 4 + numbers.below(4 * period);
    let ahead = 1 + numbers.below(8);
    let (mut turns, mut units, mut left_out) = (Turns::new(ahead), Vec::new(), 0);
    // The windows open at whole periods; `seen` is what the program has seen of them.
    let (mut now, mut seen, mut eligible, mut newest) = (0, 0, 0, 0);
    while turns.next() < count {
        let opened = now / period + 1;
        turns.open(opened - seen);
        seen = opened;
        left_out += turns.pass_overdue();
        if !turns.is_open() {
            now = opened * period + numbers.below(period / 8);
            continue;
        }
        let number = turns.next();
        // The window of this unit is open, and its time has not passed.
        assert!(number * period <= now && now < (number + ahead) * period);
        let leaves = now.max(eligible);
        eligible = leaves + period;
        // In order: a unit never arrives before the one before it.
        newest = newest.max(leaves + numbers.below(bound + 1));
        units.push((number, now, leaves, newest));
        turns.pass();
        let is_stall = numbers.below(40) == 0;
        now += if is_stall { numbers.below(3 * ahead * period) } else { numbers.below(period / 4) };
    }
    Stream { period, bound, ahead, units, left_out }
}

#[test]
fn a_unit_that_is_put_by_its_time_leaves_by_its_time_and_the_ring_has_room() {
    let mut numbers = Numbers(1);
    let mut all = 0;
    for _ in 0..300 {
        let Stream { period, bound, ahead, units, left_out } = stream(&mut numbers, 400);
        all += left_out;
        for (at, &(number, put, leaves, _)) in units.iter().enumerate() {
            assert!(leaves <= (number + ahead) * period, "unit {number} leaves behind its time");
            // The node has taken a unit out within the bound from its leaving at the latest.
            let waiting = units[..=at].iter().filter(|unit| unit.2 + bound > put).count() as u64;
            assert!(waiting <= ahead + bound.div_ceil(period) + 1, "{waiting} wait at unit {number}");
        }
    }
    assert!(all > 1_000, "programs that stood still left units out: {all}");
}

/// Play-out points of a stream whose first units were lost, on a clock that is off and drifts.
#[test]
fn no_unit_of_a_channel_that_keeps_its_contract_is_late_or_waits_too_long() {
    let mut numbers = Numbers(2);
    for _ in 0..300 {
        let Stream { period, bound, ahead, units, .. } = stream(&mut numbers, 1_500);
        let first = numbers.below(20) as usize;
        let drift = numbers.below(401) as i64 - 200;
        let off = 1_000_000_000_000 + numbers.below(1_000_000_000);
        let clock = |at: u64| {
            let slid = i128::from(at) * i128::from(drift) / 1_000_000;
            Instant::from_nanos(off + u64::try_from(i128::from(at) + slid).unwrap())
        };
        let (period, bound) = (Span::from_nanos(period), Span::from_nanos(bound));
        let &(number, .., arrived) = &units[first];
        let mut playout = Playout::begin((period, bound), ahead, (number, clock(arrived)));
        // The clocks slide so far apart in some windows, in which the points do not move yet.
        let slid = Span::from_nanos((period * 400).as_nanos() / 1_000_000 * drift.unsigned_abs());
        let mut held = Vec::new();
        for &(number, .., arrived) in &units[first..] {
            while playout.next() < number {
                held.retain(|held| *held > playout.due());
                playout.pass();
            }
            let (due, arrived) = (playout.due(), clock(arrived));
            assert!(arrived <= due + slid, "unit {number} is late by {}", arrived.since(due));
            let waits = due.since(arrived);
            assert!(waits <= playout.wait_max() + slid, "unit {number} waits for {waits}");
            held.push(due);
            held.retain(|held| *held > arrived);
            assert!(held.len() <= playout.held_max(), "{} are held", held.len());
            playout.came(number, arrived);
            playout.pass();
        }
    }
}

/// The source's clock is slower by 200 ppm: after a quarter of an hour units come 180 ms later than planned.
#[test]
fn play_out_points_follow_a_clock_that_drifts() {
    let (period, bound) = (Span::from_millis(40), Span::from_millis(50));
    let arrival = |number: u64| Instant::from_nanos(number * (40_000_000 + 8_000) + 9_000_000);
    let mut playout = Playout::begin((period, bound), 1, (0, arrival(0)));
    for number in 0..22_500 {
        let waits = playout.due().since(arrival(number));
        let wanted = Span::from_millis(90);
        assert!(wanted.minus(waits).max(waits.minus(wanted)) < Span::from_millis(2), "{number}: {waits}");
        playout.came(number, arrival(number));
        playout.pass();
    }
}

#[test]
fn a_number_that_no_source_of_the_stream_could_have_is_not_waited_for() {
    let (period, bound) = (Span::from_millis(40), Span::from_millis(50));
    let now = Instant::from_nanos(1_000_000_000);
    let mut playout = Playout::begin((period, bound), 2, (0, now));
    // A gap of units that were left out: the later unit comes later, too.
    assert!(!playout.is_far(100, now + period * 100));
    assert!(playout.is_far(100, now) && playout.is_far(u64::MAX, now));
    playout.begin_anew(u64::MAX, now);
    assert_eq!(playout.due(), now + bound + period * 2);
    playout.pass();
    assert_eq!(playout.next(), u64::MAX);
}
