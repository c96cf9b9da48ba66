//! L2: how long a station waits for an ordinary visit. A5: how long a switch of mode may take.

use super::*;
use crate::check::bounds::{self, Bounds};
use rota_admission::NrtRing;
use rota_wire::Phase;

/// A station whose ordinary frames wait, and nobody visits it.
struct Waits {
    bench: Bench,
    checker: Bounds,
    start: Instant,
}

impl Waits {
    fn of(periodic: bool) -> Self {
        let mut bench = Bench::ring(periodic);
        bench.world.ordinary(3, 4, 400);
        assert!(bench.node(3).port().queued_frames() > 0, "it waits");
        assert_eq!(bench.node(3).port().queued_signalling(), 0);
        Self { start: bench.start(), bench, checker: Bounds::default() }
    }

    fn new() -> Self {
        Self::of(true)
    }

    fn look(&mut self, after: Span) -> Vec<&'static str> {
        let now = self.start + after;
        self.bench.look(&mut self.checker, now, &[Seen::Acted { host: 3 }])
    }

    /// What is reserved, and the bound of admission with so much more.
    fn bound(&self, more: Span) -> Span {
        let settings = &self.bench.settings;
        let slots = self.bench.node(3).rether().list().expect("a ring").slots;
        let reserved: Span = slots.as_slice().iter().map(|slot| Span::from_nanos(slot.tht_ns.into())).sum();
        let params = rota_admission::SegmentParams { stations: 5, ..settings.params(5) };
        let ring = NrtRing::new(&params, reserved + more, slots.is_strict());
        ring.worst_gap().expect("it is visited") + self.woken()
    }

    /// A burden so large that `more` beside it makes the bound longer: it grows by whole cycles.
    fn brim(&self, more: Span) -> Span {
        let mut burdens = (0..).map(|tenth| Span::from_micros(100 * tenth));
        let is_brim = |burden: &Span| self.bound(*burden + more) > self.bound(*burden);
        burdens.find(is_brim).expect("a bound that grows")
    }

    /// Two cycles, until a resting ring is woken.
    fn woken(&self) -> Span {
        let params = rota_admission::SegmentParams { stations: 5, ..self.bench.settings.params(5) };
        self.bench.settings.trt * 2 + params.link.host_slack + params.transit()
    }

    /// It waits for `most`, and a nanosecond more is too long.
    fn has_most(mut self, most: Span) {
        assert_eq!(self.look(Span::ZERO), none());
        assert_eq!(self.look(most), none(), "{most}");
        assert_eq!(self.look(most + NS), ["L2"], "{most}");
        assert_eq!((self.checker.worst.access, self.checker.worst.access_bound), (most + NS, most));
        assert_eq!(self.look(most + NS), none(), "the next wait begins");
    }
}

#[test]
fn l2_a_station_waits_for_a_visit_as_long_as_admission_says() {
    for periodic in [true, false] {
        let waits = Waits::of(periodic);
        let most = waits.bound(Span::ZERO);
        assert!(bounds::access(&waits.bench.settings, 5, ms(1), periodic) > Some(waits.woken()));
        waits.has_most(most);
    }
}

#[test]
fn l2_of_two_visits_one_is_not_for_signalling_alone() {
    let mut waits = Waits::new();
    let any = waits.bound(Span::ZERO);
    let most = any * 2 - waits.woken();
    assert_eq!(waits.look(Span::ZERO), none());
    assert_eq!(waits.look(any + NS), ["L2"], "a visit");
    assert_eq!(waits.look(most), none());
    assert_eq!(waits.look(most + NS), ["L2"], "a visit for more");
}

#[test]
fn l2_flooded_slots_and_babblers_take_time_as_if_they_had_reserved_it() {
    let (trt, frame) = (Waits::new().bench.settings.trt, Waits::new().bench.settings.link.frame_span_max());
    let start = Waits::new().start;
    // One flooded slot counts for all three of the cycle, and so do those of the cycle before.
    for (slot, count) in [(start.minus(trt), 3), (start.minus(trt + NS), 0), (start.minus(NS), 3)] {
        let mut waits = Waits::new();
        waits.bench.flood(slot);
        let burden = waits.brim(frame * 3);
        waits.bench.windows.burden(start, Span::ZERO, burden);
        let most = waits.bound(burden + frame * count);
        waits.has_most(most);
    }
    let mut waits = Waits::new();
    waits.bench.windows.burden(start, Span::ZERO, trt);
    assert_eq!((waits.look(Span::ZERO), waits.look(ms(9_000))), (none(), none()), "no room for a frame");
}

#[test]
fn l2_the_longest_bound_of_a_wait_holds() {
    let mut waits = Waits::new();
    let burden = waits.brim(ms(2)) + ms(2);
    let most = waits.bound(burden);
    assert!(most > waits.bound(Span::ZERO));
    assert_eq!(waits.look(Span::ZERO), none());
    let (start, trt) = (waits.start, waits.bench.settings.trt);
    waits.bench.windows.burden(start, Span::ZERO, burden);
    assert_eq!(waits.look(trt), none());
    waits.bench.windows = Windows::default();
    assert_eq!(waits.look(most), none());
    assert_eq!(waits.look(most + NS), ["L2"]);
}

#[test]
fn l2_a_window_excuses_a_wait_that_it_meets() {
    let most = Waits::new().bound(Span::ZERO) + NS;
    let start = Waits::new().start;
    let table = [
        (start, none()),
        (start.minus(NS), vec!["L2"]),
        (start + most, none()),
        (start + most + NS, vec!["L2"]),
    ];
    for (window, found) in table {
        let mut waits = Waits::new();
        waits.bench.excuse(window, window);
        assert_eq!(waits.look(Span::ZERO), none());
        assert_eq!(waits.look(most), found);
        assert_eq!(waits.checker.worst.access > Span::ZERO, !found.is_empty());
    }
}

/// One that has nothing to send, or runs no ring, waits for nothing.
#[test]
fn l2_a_station_that_has_no_frame_left_waits_for_no_visit() {
    let mut waits = Waits::new();
    let (ring, far) = (Bench::ring(true).world.hosts[3].node.clone(), ms(9_000));
    assert_eq!(waits.look(Span::ZERO), none());
    let queued = std::mem::replace(&mut waits.bench.world.hosts[3].node, ring);
    assert_eq!(waits.look(far), none());
    waits.bench.world.hosts[3].node = queued;
    assert_eq!(waits.look(far * 2), none(), "a new wait begins");
    assert_eq!(waits.look(far * 3), ["L2", "L2"]);
}

/// Its token waits behind all that the ports of the switch hold (world `full-port` of the hunt, seed 29).
#[test]
fn l2_nobody_waits_for_a_visit_before_the_first_rotation_is_over() {
    let mut bench = Bench::plain();
    bench.world.open_flow(0, 1, 1_000, true).expect("a sound request");
    let give_up = bench.start() + ms(1_000);
    let phase = |bench: &Bench| bench.node(3).rether().list().map(|list| list.phase);
    while phase(&bench).is_none() {
        assert!(bench.world.step(give_up), "it switches");
    }
    assert_eq!(phase(&bench), Some(Phase::First));
    bench.world.ordinary(3, 4, 400);
    let (start, mut checker) = (bench.start(), Bounds::default());
    let mut look = |after| bench.look(&mut checker, start + after, &[Seen::Acted { host: 3 }]);
    assert!(look(Span::ZERO).is_empty() && look(ms(9_000)).is_empty());
    bench.world.run_for(ms(300));
    assert_ne!(phase(&bench), Some(Phase::First));
}

/// A segment amid a switch, and for how long it has been.
struct Switch {
    bench: Bench,
    checker: Bounds,
    start: Instant,
}

impl Switch {
    fn new() -> Self {
        let mut bench = Bench::plain();
        bench.world.open_flow(0, 1, 1_000, true).expect("a sound request");
        let give_up = bench.start() + ms(1_000);
        while bench.world.hosts[0].on(0).and_then(|host| host.mode()) != Some(rota_proto::ModeName::Switching)
        {
            assert!(bench.world.step(give_up), "it switches");
        }
        let mut switch = Self { start: bench.start() + ms(100), bench, checker: Bounds::default() };
        assert_eq!(switch.look(1, Span::ZERO), none(), "plain");
        switch.start += ms(300);
        assert_eq!(switch.look(0, Span::ZERO), none(), "begins");
        switch
    }

    fn look(&mut self, host: usize, after: Span) -> Vec<&'static str> {
        let now = self.start + after;
        self.bench.look(&mut self.checker, now, &[Seen::Acted { host }])
    }

    fn bound(&self) -> Span {
        let settings = &self.bench.settings;
        let card = settings.link.rate.span_of_up(settings.port_queue);
        card + settings.switch_timeout(5) * (u64::from(settings.switch_tries) + 1) + settings.link.hop
    }
}

#[test]
fn a5_a_switch_takes_no_longer_than_all_its_tries() {
    let mut switch = Switch::new();
    let most = switch.bound();
    assert_eq!(switch.look(1, most), none(), "one that is plain still");
    assert_eq!(switch.look(1, most + NS), ["A5"]);
    assert_eq!(switch.look(1, most + NS), none(), "once");
    assert_eq!((switch.checker.worst.switch, switch.checker.worst.switch_bound), Default::default());
    let mut switch = Switch::new();
    switch.bench.world.hosts[1].node = Bench::ring(true).world.hosts[1].node.clone();
    assert_eq!(switch.look(1, most), none(), "the first in a ring");
    assert_eq!((switch.checker.worst.switch, switch.checker.worst.switch_bound), (most, most));
    assert_eq!(switch.look(1, most + NS), none(), "it is over");
}

#[test]
fn a5_a_switch_that_is_given_up_is_over() {
    let mut switch = Switch::new();
    let most = switch.bound();
    switch.bench.world.hosts[0].node = Bench::plain().world.hosts[0].node.clone();
    assert_eq!(switch.look(0, ms(1)), none());
    assert_eq!(switch.look(0, most + NS), none());
    let mut switch = Switch::new();
    let window = switch.start;
    switch.bench.excuse(window, window);
    assert_eq!(switch.look(1, most + NS), none());
    let mut switch = Switch::new();
    switch.bench.excuse(window.minus(NS), window.minus(NS));
    assert_eq!(switch.look(1, most + NS), ["A5"]);
}

#[test]
fn the_worse_of_two_runs_is_kept_with_its_bound() {
    let of = |access, access_bound, switch, switch_bound| bounds::Measured {
        access: ms(access),
        access_bound: ms(access_bound),
        switch: ms(switch),
        switch_bound: ms(switch_bound),
    };
    let mut worst = of(5, 10, 5, 10);
    worst.add(&of(5, 9, 4, 11));
    assert_eq!(worst, of(5, 10, 5, 11));
    worst.add(&of(6, 8, 7, 1));
    assert_eq!(worst, of(6, 8, 7, 11));
}
