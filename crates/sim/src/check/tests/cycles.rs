//! R4: when the next cycle of a strict ring may begin.

use super::*;
use rota_wire::bodies::FORM_MEMBERS_MAX;
use rota_wire::{Form, LINK_HEADER_OCTETS, TAG_OCTETS};

/// A master's cycles, each so long after the one before.
struct Cycle {
    bench: Bench,
    checker: Cycles,
    now: Instant,
    number: u32,
    /// What its lists reserve.
    reserved: Span,
}

impl Cycle {
    fn new() -> Self {
        let bench = Bench::ring(true);
        let (now, reserved) = (bench.start(), ms(5));
        let mut cycle = Self { bench, checker: Cycles::default(), now, number: 6, reserved };
        assert_eq!(cycle.lasts(Span::ZERO), none());
        cycle
    }

    fn trt(&self) -> Span {
        self.bench.settings.trt
    }

    fn frame(&self) -> Span {
        self.bench.settings.link.frame_span_max()
    }

    /// How much later than TRT a cycle may begin where nothing is wrong.
    fn late(&self) -> Span {
        assert!(self.bench.world.hosts.len() < FORM_MEMBERS_MAX);
        let form = LINK_HEADER_OCTETS + Form::octets_for(5) + TAG_OCTETS;
        self.frame() + self.bench.settings.link.frame_span_up(form as u64)
    }

    fn begins(&mut self, host: usize, number: u32, periodic: bool) -> Vec<&'static str> {
        let list = self.bench.list(number, &[(1, self.reserved, periodic)]);
        let frame = frame(Kind::List, 1, (generation(5), u64::from(number)), |body| list.emit(body));
        self.number = number;
        self.bench.look(&mut self.checker, self.now, &[sent(host, Kind::List, &frame, true)])
    }

    /// The next cycle of the same master begins `span` after the newest.
    fn lasts(&mut self, span: Span) -> Vec<&'static str> {
        self.now += span;
        self.begins(0, self.number + 1, true)
    }
}

#[test]
fn r4_a_cycle_begins_a_frame_and_a_form_late_at_most() {
    let mut cycle = Cycle::new();
    let most = cycle.trt() + cycle.late();
    assert_eq!(cycle.lasts(most), none());
    let mut cycle = Cycle::new();
    assert_eq!(cycle.lasts(most + NS), ["R4"], "by the master's clock");
    let thousandth = cycle.trt().div_down(1_000);
    let mut cycle = Cycle::new();
    assert_eq!(cycle.lasts(most + thousandth), ["R4"]);
    let mut cycle = Cycle::new();
    assert_eq!(cycle.lasts(most + thousandth + NS), ["R4", "R4"], "and by the world's");
    let mut cycle = Cycle::new();
    let slack = cycle.bench.settings.link.host_slack;
    cycle.bench.world.hosts[0].profile = crate::HostProfile::MODERN;
    assert_eq!(cycle.lasts(most + slack), none());
    let mut cycle = Cycle::new();
    cycle.bench.world.hosts[0].profile = crate::HostProfile::MODERN;
    assert_eq!(cycle.lasts(most + slack + NS), ["R4"]);
}

/// Each is in time by itself; together they are late.
#[test]
fn r4_delays_of_cycles_do_not_add_up() {
    for (more, found) in [(Span::ZERO, none()), (NS, vec!["R4"])] {
        let mut cycle = Cycle::new();
        let half = cycle.late().div_down(2);
        let (first, trt) = (cycle.late().minus(half), cycle.trt());
        assert_eq!(cycle.lasts(trt + first), none());
        assert_eq!(cycle.lasts(trt), none(), "behind, but no further");
        assert_eq!(cycle.lasts(trt + half + more), found);
        // A rule that is broken once is told once: the next ones are reckoned from here on.
        let again = if more == NS { none() } else { vec!["R4"] };
        assert_eq!(cycle.lasts(trt + NS), again);
    }
}

#[test]
fn r4_only_the_next_cycle_of_one_strict_master_is_held_to_its_time() {
    let late = ms(200);
    let mut cycle = Cycle::new();
    cycle.now += late;
    assert_eq!(cycle.begins(0, 9, true), none(), "two cycles on");
    cycle.now += late;
    assert_eq!(cycle.begins(1, 10, true), none(), "another master");
    cycle.now += late;
    assert_eq!(cycle.begins(1, 11, false), none(), "not strict");
    cycle.now += late;
    assert_eq!(cycle.begins(1, 12, true), none(), "the first strict one");
    cycle.now += late;
    assert_eq!(cycle.begins(1, 13, true), ["R4", "R4"]);
    cycle.number = u32::MAX;
    let mut cycle = Cycle::new();
    assert_eq!(cycle.begins(0, u32::MAX, true), none());
    cycle.now += late;
    assert_eq!(cycle.begins(0, 0, true), ["R4", "R4"], "cycles are numbered round");
}

#[test]
fn r4_a_window_excuses_the_cycle_that_it_meets_and_the_reckoning_begins_anew() {
    for (behind, found) in [(Span::ZERO, none()), (NS, vec!["R4", "R4"])] {
        let mut cycle = Cycle::new();
        let (begin, trt) = (cycle.now, cycle.trt());
        let begin = begin + trt * 3 + behind;
        cycle.bench.excuse(begin, begin);
        assert_eq!(cycle.lasts(trt * 3), found);
    }
    let mut cycle = Cycle::new();
    let (now, trt) = (cycle.now, cycle.trt());
    cycle.bench.excuse(now, now);
    assert_eq!(cycle.lasts(trt * 3), none());
    let late = cycle.late();
    assert_eq!(cycle.lasts(trt + late), none(), "nothing of the excused cycle is made up for");
}

#[test]
fn r4_a_babbler_delays_two_frames_at_most_and_ends_all_when_it_fills_the_cycle() {
    let (trt, frame) = (Cycle::new().trt(), Cycle::new().frame());
    let table = [
        (frame, frame, none()),
        (frame, frame + NS, vec!["R4"]),
        (frame * 2, frame * 2, none()),
        (frame * 3, frame * 2, none()),
        (frame * 3, frame * 2 + NS, vec!["R4"]),
        (trt.minus(NS), frame * 2 + NS, vec!["R4"]),
        (trt, ms(500), none()),
    ];
    for (burden, more, found) in table {
        let mut cycle = Cycle::new();
        let (now, late) = (cycle.now, cycle.late());
        cycle.bench.windows.burden(now, Span::ZERO, burden);
        assert_eq!(cycle.lasts(trt + late + more), found, "{burden} {more}");
    }
}

#[test]
fn r4_each_flooded_slot_of_the_cycle_delays_the_next_one_by_a_frame() {
    let (trt, late) = (Cycle::new().trt(), Cycle::new().late());
    let end = trt + late;
    // When slots begin, behind the cycle's own beginning, and how many of them count.
    let table =
        [(vec![Span::ZERO], 1), (vec![ms(1), ms(9)], 2), (vec![end], 1), (vec![ms(100)], 0), (vec![], 0)];
    for (slots, count) in table {
        for (more, found) in [(Span::ZERO, none()), (NS, vec!["R4"])] {
            let mut cycle = Cycle::new();
            let (now, frame) = (cycle.now, cycle.frame());
            slots.iter().for_each(|slot| cycle.bench.flood(now + *slot));
            assert_eq!(cycle.lasts(end + frame * count + more), found, "{slots:?}");
        }
    }
    let mut cycle = Cycle::new();
    let before = cycle.now.minus(NS);
    cycle.bench.flood(before);
    assert_eq!(cycle.lasts(end + NS), ["R4"], "a slot of the cycle before");
}

/// The delay of flooded slots is made up for in the time that a cycle has beside its slots and one frame.
#[test]
fn r4_what_flooded_slots_delayed_is_made_up_for_where_there_is_time() {
    let (trt, late) = (Cycle::new().trt(), Cycle::new().late());
    let frame = Cycle::new().frame();
    // Time of a cycle that is free, and how far behind the second cycle may still be.
    let table =
        [(Span::ZERO, frame), (NS * 7, frame.minus(NS * 7)), (frame, Span::ZERO), (frame * 2, Span::ZERO)];
    for (free, still) in table {
        for (more, found) in [(Span::ZERO, none()), (NS, vec!["R4"])] {
            let mut cycle = Cycle::new();
            cycle.reserved = trt.minus(frame + free);
            // Anew, since the first list had other slots.
            cycle.now += ms(100);
            assert_eq!(cycle.begins(0, 20, true), none());
            let now = cycle.now;
            cycle.bench.flood(now);
            assert_eq!(cycle.lasts(trt + late + frame), none());
            let made_up = frame.minus(still);
            assert_eq!(cycle.lasts(trt.minus(made_up) + more), found, "{free}");
        }
    }
}
