//! R4: how far apart the slots of a flow may begin.

use super::*;
use rota_admission::gap_early;

/// Slots of the flow from the first station to the last.
struct Gaps {
    bench: Bench,
    checker: Deliveries,
    now: Instant,
}

impl Gaps {
    fn new(periodic: bool) -> Self {
        let bench = Bench::ring(periodic);
        let mut gaps = Self { now: bench.start() + ms(1_000), bench, checker: Deliveries::default() };
        assert_eq!(gaps.slot(), none());
        gaps
    }

    fn see(&mut self, seen: Seen) -> Vec<&'static str> {
        self.bench.look(&mut self.checker, self.now, &[seen])
    }

    fn slot(&mut self) -> Vec<&'static str> {
        self.see(Seen::Slot { flow: 0, began: self.now, unit: None })
    }

    /// The next slot begins so much later.
    fn after(&mut self, gap: Span) -> Vec<&'static str> {
        self.now += gap;
        self.slot()
    }

    /// A gap of `most` is allowed, and nothing longer.
    fn is_most(&mut self, most: Span) {
        assert_eq!(self.after(most), none(), "{most}");
        assert_eq!(self.after(most + NS), ["R4"], "{most}");
    }

    fn slack(&self) -> Span {
        let params = self.bench.settings.params(5);
        params.link.host_slack + params.transit()
    }

    fn slots(&self) -> Vec<rota_admission::Slot> {
        let slots = self.bench.node(0).rether().list().expect("a ring").slots.as_slice();
        assert_eq!(slots.len(), 3);
        crate::check::ledger::admission_slots(slots)
    }
}

#[test]
fn r4_slots_of_a_strict_ring_begin_a_cycle_apart() {
    let mut gaps = Gaps::new(true);
    let most = gaps.bench.settings.trt + gaps.slack();
    gaps.is_most(most);
    assert_eq!(gaps.checker.report(0).worst_gap, most + NS);
}

#[test]
fn r4_slots_of_a_ring_that_restarts_early_begin_a_cycle_and_all_slots_apart() {
    let mut gaps = Gaps::new(false);
    let gap = gap_early(&gaps.bench.settings.params(5), &gaps.slots());
    assert!(gap > gaps.bench.settings.trt);
    let most = gap + gaps.slack();
    gaps.is_most(most);
}

/// The slot before may have come as early as it could.
#[test]
fn r4_the_first_gap_of_a_ring_that_became_strict_is_that_of_one_that_was_not() {
    let mut gaps = Gaps::new(false);
    let most = gap_early(&gaps.bench.settings.params(5), &gaps.slots()) + gaps.slack();
    let lax = gaps.bench.world.hosts[0].node.clone();
    let strict = Bench::ring(true).world.hosts[0].node.clone();
    gaps.bench.world.hosts[0].node = strict.clone();
    assert_eq!(gaps.after(most), none());
    assert_eq!(gaps.after(most), ["R4"], "now it is strict");
    gaps.bench.world.hosts[0].node = lax;
    assert_eq!(gaps.after(most), none(), "it is strict no more");
    gaps.bench.world.hosts[0].node = strict;
    assert_eq!(gaps.after(most + NS), ["R4"]);
}

#[test]
fn r4_the_last_fragment_of_a_unit_of_several_cycles_is_told_of() {
    let mut gaps = Gaps::new(true);
    let trt = gaps.bench.settings.trt;
    let most = trt * 3 + gaps.slack();
    gaps.bench.world.flows_mut()[0].granted.contract.period_ns = (trt * 3).as_nanos();
    gaps.is_most(most);
    // A short one has no shorter gap.
    gaps.bench.world.flows_mut()[0].granted.contract.period_ns = trt.div_down(4).as_nanos();
    let most = trt + gaps.slack();
    gaps.is_most(most);
}

#[test]
fn r4_a_session_that_grows_moves_to_the_end_of_the_list_at_most() {
    let mut gaps = Gaps::new(true);
    let all = rota_admission::reserved(&gaps.slots());
    let most = gaps.bench.settings.trt + gaps.slack();
    for (more, found) in [(Span::ZERO, none()), (NS, vec!["R4"])] {
        gaps.bench.world.flows_mut()[0].granted.contract.unit_octets_max += 1;
        assert_eq!(gaps.after(most + all + more), found);
    }
    assert_eq!(gaps.after(most + NS), ["R4"], "it has not grown since");
    gaps.bench.world.flows_mut()[0].granted.contract.unit_octets_max -= 1;
    assert_eq!(gaps.after(most + NS), ["R4"], "it has shrunk");
    gaps.is_most(most);
}

/// Its rest takes a slot that nothing was promised for.
#[test]
fn r4_a_program_that_sends_more_than_its_contract_says_is_to_blame_for_its_gaps() {
    let mut gaps = Gaps::new(true);
    let most = gaps.bench.world.flows()[0].granted.contract.unit_octets_max;
    assert_eq!(gaps.see(Seen::Ready { flow: 0, number: 1, octets: most }), none());
    gaps.now += ms(500);
    assert!(gaps.slot().contains(&"R4"));
    assert_eq!(gaps.see(Seen::Ready { flow: 0, number: 2, octets: most + 1 }), none());
    assert_eq!(gaps.after(ms(500)), none());
}

#[test]
fn r4_a_flow_that_has_got_further_begins_anew() {
    let mut gaps = Gaps::new(true);
    assert_eq!(gaps.see(Seen::Flow { flow: 1, state: FlowState::Open }), none());
    assert_eq!(gaps.after(ms(500)), ["R4"], "another flow");
    assert_eq!(gaps.see(Seen::Flow { flow: 0, state: FlowState::Open }), none());
    assert_eq!(gaps.after(ms(500)), none());
    assert_eq!(gaps.after(ms(500)), ["R4"]);
    gaps.bench.world.flows_mut()[0].state = FlowState::Ended;
    assert_eq!(gaps.after(ms(500)), none());
}

#[test]
fn r4_a_window_excuses_a_gap_that_it_meets() {
    let gap = ms(500);
    let mut gaps = Gaps::new(true);
    let table = [
        (gap, Scope::All, true),
        (gap + NS, Scope::All, false),
        (gap, Scope::Pair(0, 4), true),
        (gap, Scope::Pair(1, 4), false),
    ];
    for (after, scope, excused) in table {
        let now = gaps.now;
        gaps.bench.windows = Windows::default();
        gaps.bench.windows.open(now + after, Span::ZERO, scope);
        assert_eq!(gaps.after(gap), vec!["R4"; usize::from(!excused)], "{after} {scope:?}");
    }
    let (now, worst) = (gaps.now, gaps.checker.report(0).worst_gap);
    assert_eq!(worst, gap);
    gaps.bench.windows = Windows::default();
    gaps.bench.excuse(now.minus(NS), now.minus(NS));
    assert_eq!(gaps.after(gap + ms(1)), ["R4"], "it was over before the slot before");
    assert_eq!(gaps.checker.report(0).worst_gap, gap + ms(1));
}

#[test]
fn r4_each_flooded_slot_of_two_cycles_delays_a_slot_by_a_frame() {
    let mut gaps = Gaps::new(true);
    let (trt, frame) = (gaps.bench.settings.trt, gaps.bench.settings.link.frame_span_max());
    let most = trt + gaps.slack();
    // Where slots begin, before the one that is looked at, and how many count.
    let table = [
        (vec![trt * 2], 1),
        (vec![trt * 2 + NS], 0),
        (vec![NS], 1),
        (vec![Span::ZERO], 0),
        (vec![trt, ms(1)], 2),
    ];
    for (slots, count) in table {
        for (more, found) in [(Span::ZERO, none()), (NS, vec!["R4"])] {
            let gap = most + frame * count + more;
            let next = gaps.now + gap;
            gaps.bench.windows = Windows::default();
            slots.iter().for_each(|slot| gaps.bench.flood(next.minus(*slot)));
            assert_eq!(gaps.after(gap), found, "{slots:?}");
        }
    }
}
