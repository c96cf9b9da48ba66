//! S3 behind a fault: the checker gives the unit behind one that a window held up its slots from there, and
//! nothing more.

use crate::support::{booted, ms};
use rota_contract::TrafficSpec;
use rota_sim::check::{Checker, Deliveries, Findings, Scope, Seen, Stations, View, Windows};
use rota_sim::{Receipt, World};
use rota_units::{Instant, Span};

const TRT: Span = Span::from_nanos(33_333_333);
const P: Span = Span::from_nanos(133_333_332);

/// A stream of one unit in four cycles, and what the checker is shown of it.
struct Watch {
    world: World,
    windows: Windows,
    deliveries: Deliveries,
    findings: Findings,
    begin: Instant,
}

impl Watch {
    fn new(period: Span) -> Self {
        let mut world = booted(7);
        let traffic = TrafficSpec::fixed(5_000, period, true);
        world.open_flow_as(0, 4, traffic).expect("a sound request");
        world.run_for(ms(1_500));
        let (windows, begin) = (Windows::default(), world.now());
        let (deliveries, findings) = (Deliveries::default(), Findings::default());
        Self { world, windows, deliveries, findings, begin }
    }

    fn see(&mut self, at: Span, seen: Seen) {
        let world = &self.world;
        let recovery = rota_sim::check::Recovery::new(&world.spec().settings, 5);
        let view = View {
            now: self.begin + at,
            settings: &world.spec().settings,
            stations: Stations::new(&world.hosts, 0, world.hosts.len()),
            flows: world.flows(),
            wires: &world.segments[0].wires,
            windows: &self.windows,
            recovery: &recovery,
            seen: &[seen],
        };
        self.deliveries.after(&view, &mut self.findings);
    }

    fn ready(&mut self, at: Span, number: u64) {
        self.see(at, Seen::Ready { flow: 0, number, octets: 5_000 });
    }

    /// The last fragment of a unit leaves, and comes `takes` later.
    fn leaves(&mut self, at: Span, number: u64, ready: Span, takes: Span) {
        self.see(at, Seen::Slot { flow: 0, began: self.begin + at, unit: Some(number) });
        self.comes(at + takes, number, ready);
    }

    fn comes(&mut self, at: Span, number: u64, ready: Span) {
        let (complete, intact) = (true, true);
        let receipt = Receipt { number, at: self.begin + at, delay: at.minus(ready), complete, intact };
        self.see(at, Seen::Delivered { flow: 0, receipt });
    }

    fn bound(&self) -> Span {
        self.world.flows()[0].granted.bound()
    }

    /// The units that broke S3, once everything is due.
    fn broken(mut self) -> Vec<String> {
        self.see(ms(5_000), Seen::Acted { host: 0 });
        let s3 = self.findings.violations.iter().filter(|found| found.rule == "S3");
        s3.map(|found| found.what.split(" was due").next().unwrap_or_default().to_owned()).collect()
    }

    /// A window from `begin` to `end`, and unit 0, ready at 0, that leaves one and a half cycles late.
    fn held_up(period: Span, begin: Span, end: Span) -> Self {
        let mut watch = Self::new(period);
        let from = watch.begin;
        watch.windows.open(from + begin, end.minus(begin), Scope::All);
        watch.ready(Span::ZERO, 0);
        watch.ready(P, 1);
        watch.leaves(LEFT, 0, Span::ZERO, ms(2));
        watch
    }
}

/// When unit 0 begins to leave: 50 ms after it should.
const LEFT: Span = Span::from_nanos(183_333_332);

#[test]
fn the_unit_behind_one_that_a_fault_held_up_is_due_a_bound_behind_its_last_slot() {
    let mut watch = Watch::held_up(P, ms(10), ms(100));
    let bound = watch.bound();
    assert!(bound > P && bound < P + ms(20), "{bound}");
    assert!(LEFT + bound > P + bound, "it is later than its own bound");
    watch.leaves(LEFT + P, 1, P, bound.minus(P));
    let report = watch.deliveries.report(0);
    assert_eq!((report.whole, report.excused, report.worst), (2, 2, Span::ZERO), "neither is a worst one");
    assert_eq!(watch.broken(), [""; 0]);
}

#[test]
fn a_nanosecond_more_is_too_late() {
    let mut watch = Watch::held_up(P, ms(10), ms(100));
    let bound = watch.bound();
    watch.leaves(LEFT + P, 1, P, bound.minus(P) + Span::from_nanos(1));
    assert_eq!(watch.broken(), ["unit 1 of flow 0"]);
}

#[test]
fn a_unit_behind_one_that_was_held_up_and_never_comes_is_missed() {
    assert_eq!(Watch::held_up(P, ms(10), ms(100)).broken(), ["unit 1 of flow 0"]);
}

#[test]
fn no_window_no_later_time() {
    let mut watch = Watch::held_up(P, ms(2_000), ms(2_001));
    let bound = watch.bound();
    watch.leaves(LEFT + P, 1, P, bound.minus(P));
    assert_eq!(watch.broken(), ["unit 0 of flow 0", "unit 1 of flow 0"]);
}

#[test]
fn the_third_unit_is_due_by_its_own_bound_again() {
    let mut watch = Watch::held_up(P, ms(10), ms(100));
    let bound = watch.bound();
    // A program that is behind skips one; this one did not.
    watch.ready(P * 2, 2);
    watch.leaves(LEFT + P, 1, P, ms(2));
    watch.leaves(LEFT + P * 2, 2, P * 2, bound.minus(P));
    assert_eq!(watch.broken(), ["unit 2 of flow 0"]);
}

#[test]
fn a_unit_whose_predecessor_left_in_time_is_not_put_off() {
    let mut watch = Watch::new(P);
    let (from, bound) = (watch.begin, watch.bound());
    watch.windows.open(from + ms(10), ms(90), Scope::All);
    watch.ready(Span::ZERO, 0);
    watch.leaves(P.minus(ms(1)), 0, Span::ZERO, ms(1));
    watch.ready(P, 1);
    watch.leaves(P + ms(1), 1, P, bound);
    assert_eq!(watch.broken(), ["unit 1 of flow 0"]);
}

#[test]
fn a_unit_of_one_cycle_is_not_put_off() {
    // The two cycles behind each fault hold it and the one before it.
    let mut watch = Watch::new(TRT);
    let (from, bound) = (watch.begin, watch.bound());
    watch.windows.open(from + ms(5), ms(10), Scope::All);
    watch.ready(Span::ZERO, 0);
    watch.ready(TRT, 1);
    watch.leaves(TRT + ms(9), 0, Span::ZERO, ms(1));
    watch.leaves(TRT * 2 + ms(9), 1, TRT, bound.minus(TRT));
    assert_eq!(watch.broken(), ["unit 1 of flow 0"]);
}

#[test]
fn what_waits_longer_than_its_bound_for_the_one_before_it_is_judged_when_that_has_left() {
    for (late, broken) in [(Span::ZERO, vec![]), (Span::from_nanos(1), vec!["unit 1 of flow 0"])] {
        let mut watch = Watch::new(P);
        let (from, bound) = (watch.begin, watch.bound());
        watch.windows.open(from + ms(10), ms(100), Scope::All);
        watch.ready(Span::ZERO, 0);
        watch.ready(P, 1);
        let left = P * 2 + ms(40);
        watch.see(left.minus(ms(1)), Seen::Acted { host: 0 });
        assert_eq!(watch.findings.count, 0, "unit 1 is due, and waits for unit 0");
        watch.leaves(left, 0, Span::ZERO, ms(2));
        watch.leaves(left + P, 1, P, bound.minus(P) + late);
        assert_eq!(watch.broken(), broken);
    }
}
