//! S3: when a unit is late. S4: whole, in order, once. S5: how long a sender may not know of a dead receiver.

use super::*;

/// The flow from the first station to the last, and the units of its program.
struct Units {
    bench: Bench,
    checker: Deliveries,
    now: Instant,
    bound: Span,
}

impl Units {
    fn new() -> Self {
        let bench = Bench::ring(true);
        let (now, bound) = (bench.start() + ms(1_000), bench.world.flows()[0].granted.bound());
        Self { bench, checker: Deliveries::default(), now, bound }
    }

    fn see(&mut self, now: Instant, seen: Seen) -> Vec<&'static str> {
        self.bench.look(&mut self.checker, now, &[seen])
    }

    fn rest(&mut self, now: Instant) -> Vec<&'static str> {
        self.bench.rest(&mut self.checker, now)
    }

    fn ready(&mut self, now: Instant, number: u64) -> Vec<&'static str> {
        self.see(now, Seen::Ready { flow: 0, number, octets: 3_000 })
    }

    /// A unit has come, so long after it was ready.
    fn comes(&mut self, at: Instant, number: u64, delay: Span) -> Vec<&'static str> {
        let receipt = Receipt { number, at, delay, complete: true, intact: true };
        self.see(at, Seen::Delivered { flow: 0, receipt })
    }

    fn leaves(&mut self, began: Instant, number: u64) -> Vec<&'static str> {
        self.see(began, Seen::Slot { flow: 0, began, unit: Some(number) })
    }

    /// Missed, excused, whole.
    fn counts(&self) -> (u64, u64, u64) {
        let report = self.checker.report(0);
        (report.missed, report.excused, report.whole)
    }

    /// The unit that is ready now is judged at its bound, and not before.
    fn is_judged(&mut self, found: Vec<&'static str>) {
        let (due, number) = (self.now + self.bound, 1);
        assert_eq!(self.ready(self.now, number), none());
        assert_eq!(self.rest(due), none());
        assert_eq!(self.rest(due + NS), found);
    }
}

#[test]
fn s3_a_unit_that_does_not_come_is_missed_behind_its_bound() {
    let mut units = Units::new();
    units.is_judged(vec!["S3"]);
    assert_eq!(units.counts(), (1, 0, 0));
    assert_eq!(units.rest(units.now + ms(900)), none(), "once");
}

#[test]
fn s3_a_unit_may_come_at_its_bound_and_no_later() {
    let mut units = Units::new();
    let (now, bound) = (units.now, units.bound);
    assert_eq!(units.ready(now, 1), none());
    assert_eq!(units.comes(now + bound, 1, bound), none());
    assert_eq!(units.rest(now + ms(900)), none());
    assert_eq!((units.counts(), units.checker.report(0).worst), ((0, 0, 1), bound));
    let mut units = Units::new();
    assert_eq!(units.ready(now, 1), none());
    assert_eq!(units.comes(now + bound + NS, 1, bound + NS), ["S3"]);
    assert_eq!((units.counts(), units.checker.report(0).worst), ((1, 0, 1), Span::ZERO));
}

/// One that came in part has not come.
#[test]
fn s3_a_unit_that_came_in_part_is_missed() {
    let mut units = Units::new();
    let (at, delay) = (units.now, ms(1));
    assert_eq!(units.ready(at, 1), none());
    let receipt = Receipt { number: 1, at, delay, complete: false, intact: false };
    assert_eq!(units.see(at, Seen::Delivered { flow: 0, receipt }), none());
    assert_eq!(units.rest(at + units.bound + NS), ["S3"]);
    assert_eq!(units.counts(), (1, 0, 0));
}

#[test]
fn s3_a_window_excuses_what_it_meets_at_either_end() {
    let mut units = Units::new();
    let (ready, due) = (units.now, units.now + units.bound);
    let far = ms(900);
    let table = [
        (due, due + far, Scope::All, true),
        (due + NS, due + far, Scope::All, false),
        (ready.minus(ms(500)), ready, Scope::All, true),
        (ready.minus(ms(500)), ready.minus(NS), Scope::All, false),
        (due, due, Scope::Pair(0, 4), true),
        (due, due, Scope::Pair(0, 3), false),
        (due, due, Scope::Pair(4, 0), false),
    ];
    for (begin, end, scope, excused) in table {
        units.checker = Deliveries::default();
        units.bench.windows = Windows::default();
        units.bench.windows.open(begin, end.since(begin), scope);
        units.is_judged(if excused { none() } else { vec!["S3"] });
        assert_eq!(units.counts(), (u64::from(!excused), u64::from(excused), 0), "{scope:?}");
    }
}

/// The longest way is that of units which no window met.
#[test]
fn s3_the_way_of_a_unit_that_a_window_met_is_not_measured() {
    let mut units = Units::new();
    let now = units.now;
    units.bench.excuse(now.minus(ms(5)), now.minus(NS));
    assert_eq!((units.ready(now, 1), units.comes(now + ms(7), 1, ms(7))), (none(), none()));
    assert_eq!(units.checker.report(0).worst, ms(7));
    units.bench.excuse(now + ms(20), now + ms(20));
    assert_eq!((units.ready(now + ms(10), 2), units.comes(now + ms(20), 2, ms(10))), (none(), none()));
    assert_eq!(units.checker.report(0).worst, ms(7));
}

/// Slots that take longer than they are charged: of the unit's own cycle and of the one before.
#[test]
fn s3_each_flooded_slot_of_two_cycles_puts_a_unit_off_by_a_frame() {
    let mut units = Units::new();
    let (trt, frame) = (units.bench.settings.trt, units.bench.settings.link.frame_span_max());
    let due = units.now + units.bound;
    let table = [
        (vec![due.minus(trt * 2)], 1),
        (vec![due.minus(trt * 2 + NS)], 0),
        (vec![due.minus(NS)], 1),
        (vec![due], 0),
        (vec![due.minus(trt), due.minus(ms(1)), due.minus(NS)], 3),
    ];
    for (slots, count) in table {
        units.bench.windows = Windows::default();
        slots.iter().for_each(|slot| units.bench.flood(*slot));
        units.checker = Deliveries::default();
        let allowed = due + frame * count;
        assert_eq!(units.ready(units.now, 1), none());
        assert_eq!(units.rest(allowed), none(), "{slots:?}");
        assert_eq!(units.rest(allowed + NS), ["S3"], "{slots:?}");
        // One that comes by then is late and excused.
        units.checker = Deliveries::default();
        assert_eq!(units.ready(units.now, 1), none());
        assert_eq!(units.comes(allowed, 1, units.bound + frame * count), none());
        assert_eq!(units.rest(allowed + NS), none());
        assert_eq!(units.counts(), (0, u64::from(count > 0), 1), "{slots:?}");
    }
}

#[test]
fn s3_the_end_of_a_channel_excuses_what_is_due_behind_it() {
    let mut units = Units::new();
    let due = units.now + units.bound;
    for (since, found) in [(due, none()), (due + NS, vec!["S3"])] {
        units.checker = Deliveries::default();
        let flow = &mut units.bench.world.flows_mut()[0];
        (flow.state, flow.since) = (FlowState::Ended, since);
        units.is_judged(found);
    }
    let mut units = Units::new();
    units.bench.world.hosts[4].ports[0].died = units.now;
    units.bench.world.hosts[4].boots += 1;
    assert_eq!(units.ready(units.now, 1), none());
    assert_eq!(units.rest(due + NS), none(), "a receiver that began anew");
    assert_eq!(units.counts(), (0, 1, 0));
}

#[test]
fn s4_units_come_in_order_once_and_unaltered() {
    let mut units = Units::new();
    let now = units.now;
    assert_eq!((1..=5).map(|number| units.ready(now, number).len()).sum::<usize>(), 0);
    let found = [(2, 0), (2, 1), (1, 1), (3, 0), (5, 0), (4, 1)];
    for (number, count) in found {
        assert_eq!(units.comes(now + ms(1), number, ms(1)), vec!["S4"; count], "{number}");
    }
    // Only what is whole is compared with what was sent.
    for (number, complete, intact, count) in [(6, true, false, 1), (7, false, false, 0), (8, true, true, 0)] {
        let receipt = Receipt { number, at: now, delay: ms(1), complete, intact };
        let found = units.see(now, Seen::Delivered { flow: 0, receipt });
        assert_eq!(found, vec!["S4"; count], "{number}");
    }
}

/// The second unit waits behind the first, which a window held up beyond its own end.
#[test]
fn s3_a_unit_of_several_cycles_is_put_off_behind_one_that_a_window_held_up() {
    let (trt, late) = (Units::new().bench.settings.trt, ms(300));
    // When a window begins and ends, from a little before the first was ready on.
    for (begin, end) in [(Span::ZERO, ms(5)), (ms(20), ms(25))] {
        let mut units = Units::new();
        let granted = &mut units.bench.world.flows_mut()[0].granted;
        granted.contract.period_ns = (trt * 3).as_nanos();
        let (first, second) = (units.now, units.now + trt * 3);
        let before = first.minus(ms(5));
        units.bench.excuse(before + begin, before + end);
        assert_eq!((units.ready(first, 1), units.ready(second, 2)), (none(), none()));
        assert_eq!(units.rest(second + units.bound + NS), none(), "it waits behind the first");
        let began = first + late;
        assert_eq!(units.leaves(began, 1), none());
        assert_eq!(units.rest(began + units.bound), none());
        assert_eq!(units.rest(began + units.bound + NS), ["S3"], "{end}");
    }
}

/// Where no window met the first, the second is due as always; so is one whose period is a cycle.
#[test]
fn s3_a_unit_is_put_off_by_no_other_without_a_window() {
    for (cycles, window) in [(3, false), (1, true)] {
        let mut units = Units::new();
        let trt = units.bench.settings.trt;
        units.bench.world.flows_mut()[0].granted.contract.period_ns = (trt * cycles).as_nanos();
        let (first, second) = (units.now, units.now + trt * 3);
        let end = if window { first } else { first.minus(NS) };
        units.bench.excuse(first.minus(ms(5)), end);
        assert_eq!(units.ready(first, 1), none());
        // The first is missed as well where nothing excuses it.
        assert_eq!(units.ready(second, 2), vec!["S3"; usize::from(!window)]);
        assert_eq!(units.rest(second + units.bound), none());
        assert_eq!(units.rest(second + units.bound + NS), ["S3"], "{cycles}");
    }
}

#[test]
fn s5_a_sender_knows_of_a_dead_receiver_in_time() {
    let mut units = Units::new();
    let died = units.now;
    let bound = units.bench.settings.trt * 33 + units.bench.world.segments[0].recovery.crash(5) * 2;
    assert_eq!(units.ready(died + bound + NS, 1), none(), "it lives");
    units.bench.world.hosts[4].ports[0].died = died;
    units.bench.world.hosts[4].boots += 1;
    assert_eq!(units.ready(died + bound, 2), none());
    assert_eq!(units.ready(died + bound + NS, 3), ["S5"]);
    // A channel that was opened later counts from then.
    units.bench.world.flows_mut()[0].since = died + NS;
    assert_eq!(units.ready(died + bound + NS, 4), none());
    assert_eq!(units.ready(died + bound + NS * 2, 5), ["S5"]);
    units.bench.excuse(died + bound + ms(1), died + bound + ms(1));
    assert_eq!(units.ready(died + bound + ms(1), 6), none());
    assert_eq!(units.ready(died + bound + ms(1) + NS, 7), ["S5"]);
}
