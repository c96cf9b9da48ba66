//! Flows of the statistical class beside what is booked, and on divided links.

use super::*;
use crate::door::Due;

/// Flows of the statistical class, 1,000 octets each 4 ms a quarter of the time, until one is refused.
fn fill_with_statistical(bench: &mut Bench) -> (usize, rota_admission::Test) {
    let mut stands = 0;
    loop {
        match flow_of(bench, 200 + stands as u64, by_chance()) {
            Ok(_) => stands += 1,
            Err(refused) => return (stands, refused.test),
        }
    }
}

/// A booking counts for the statistical class as if it had begun, whichever of both was first.
#[test]
fn the_statistical_class_is_tested_beside_what_is_booked() {
    use rota_admission::Test::{DeddSum, Overflow};
    let mut bench = Bench::quiet(10);
    let life = Life { from: bench.now + ms(5_000), until: bench.now + ms(6_000) };
    assert!(flow_during(&mut bench, 101, 2, life).is_ok());
    let (beside, _) = fill_with_statistical(&mut bench);
    bench.link.release(bench.now, SessionId(101));
    assert!(beside > 0 && flow_of(&mut bench, 300, by_chance()).is_ok(), "{beside}: its room is free again");
    // Neither a booking nor a flow nor slots may break what they were promised.
    for life in [life, Life::ALWAYS] {
        let refused = flow_during(&mut bench, 102, 2, life).unwrap_err();
        assert!([Overflow, DeddSum].contains(&refused.test), "{refused:?}");
        assert_eq!((refused.counter_offer, bench.link.is_booked(SessionId(102))), (None, false));
    }
    let slots = bench.ask(20_000, bench.trt());
    bench.run(ms(5));
    assert_eq!(bench.answer(slots), Some(Err(())), "{:?}", bench.heard);
    // Once they are gone there is room, and nothing is left of those that were refused.
    (0..beside as u64).for_each(|id| bench.link.release(bench.now, SessionId(200 + id)));
    bench.link.release(bench.now, SessionId(300));
    assert!(flow_during(&mut bench, 103, 2, Life::ALWAYS).is_ok());
    assert!(flow_during(&mut bench, 104, 2, Life::ALWAYS).is_ok());
}

/// Its test is proved for neither: such flows are guaranteed there.
#[test]
fn a_statistical_flow_is_guaranteed_on_a_divided_link_and_in_a_time() {
    let traffic = Traffic::periodic(ms(20)).expect("sound");
    let late = Chance::of_down(1, 10);
    let flow = FlowShare { late, ..FlowShare::guaranteed(traffic) };
    let chance = |bench: &Bench, id| bench.link.chance_of(SessionId(id));
    let mut bench = Bench::new(10);
    assert!(flow_of(&mut bench, 1, flow).is_ok());
    assert_eq!(chance(&bench, 1), late);
    let mut bench = Bench::new(10);
    let life = Life { until: bench.now + ms(5_000), ..Life::ALWAYS };
    assert!(flow_of(&mut bench, 2, FlowShare { life, ..flow }).is_ok());
    assert_eq!(chance(&bench, 2), Chance::NEVER);
    let mut bench = Bench::new(10);
    bench.link.settings.partitions.add("studio".parse().expect("a name"), 60).expect("room");
    assert!(flow_of(&mut bench, 3, flow).is_ok());
    assert_eq!(chance(&bench, 3), Chance::NEVER);
}

/// On 3 Mbit/s a burst of one channel alone exceeds the rate, which no chance allows: a request with a chance
/// was refused where one without was accepted.
#[test]
fn a_flow_that_no_chance_allows_is_guaranteed_where_there_is_room() {
    // 1,000 octets each 2 ms are 4.5 Mbit/s while it sends, and a tenth of that on average.
    let traffic = Traffic::new(ms(2), ms(20), ms(200)).expect("sound");
    let late = Chance::of_down(1, 10);
    let flow = FlowShare { late, ..FlowShare::guaranteed(traffic) };
    let mut bench = Bench::quiet(3);
    let sure = flow_of(&mut bench, 1, FlowShare::guaranteed(traffic)).expect("it has room");
    bench.link.release(bench.now, SessionId(1));
    let served = flow_of(&mut bench, 2, flow).expect("no less");
    assert_eq!((served.bound, bench.link.chance_of(SessionId(2))), (sure.bound, Chance::NEVER));
    // Behind a link that may be late by chance its regulator would hold all packets of a burst.
    bench.link.release(bench.now, SessionId(2));
    assert!(is_of_the_class(flow_of(&mut bench, 50, FlowShare { is_late_before: true, ..flow })));
    assert!(flow_of(&mut bench, 51, flow).is_ok());
    // Where there is no room either, the test of the class is named.
    let refused = (3..40).find_map(|id| flow_of(&mut bench, id, flow).err()).expect("it is full");
    assert!(is_of_the_class::<()>(Err(refused)));
}

/// Such a request would be refused: an offer of it was tested as that of a guaranteed flow.
#[test]
fn a_flow_behind_a_hop_by_chance_would_fit_in_the_class_alone() {
    let traffic = Traffic::new(ms(2), ms(20), ms(200)).expect("sound");
    let flow = FlowShare { late: Chance::of_down(1, 10), ..FlowShare::guaranteed(traffic) };
    let mut bench = Bench::quiet(3);
    for (is_late_before, fits) in [(false, true), (true, false)] {
        let share = share_of(FlowShare { is_late_before, ..flow });
        assert_eq!(bench.link.would_fit(bench.now, &share, true), fits, "{is_late_before}");
        assert_eq!(
            flow_of(&mut bench, 50 + u64::from(is_late_before), FlowShare { is_late_before, ..flow }).is_ok(),
            fits
        );
    }
}

impl Bench {
    /// So many packets of a flow wait, of 1,000 octets each.
    pub(super) fn packets(&mut self, id: u64, count: usize) {
        let (id, due) = (SessionId(id), Due { eligible: self.now, deadline: self.now + ms(100) });
        if self.queues.iter().all(|queue| queue.id != id) {
            let (pace, through) = (Pace::EVERY_CYCLE, Vec::new());
            self.queues.push(Queue { id, pace, octets: 1_000, waits: VecDeque::new(), through });
        }
        for _ in 0..count {
            self.link.note_units(self.now, id, Units::Packet(due));
            let queue = self.queues.iter_mut().find(|queue| queue.id == id).expect("it has one");
            queue.waits.push_back(1_000);
        }
    }

    fn left(&mut self, id: u64) {
        self.link.release(self.now, SessionId(id));
        self.queues.retain(|queue| queue.id != SessionId(id));
    }
}

fn is_of_the_class<T: std::fmt::Debug>(answer: Result<T, rota_admission::Refusal>) -> bool {
    use rota_admission::Test::{DeddSum, Overflow};
    [Overflow, DeddSum].contains(&answer.expect_err("refused").test)
}

/// A burst of both would be ahead of the statistical class. A first mend counted all that left, for their
/// longest pauses, so that a program kept others out without a packet.
#[test]
fn a_guaranteed_flow_that_has_left_counts_until_the_port_is_idle() {
    let mut bench = Bench::quiet(10);
    let open = |bench: &mut Bench, id| flow_during(bench, id, 2, Life::ALWAYS);
    assert!(open(&mut bench, 101).is_ok());
    let (beside, _) = fill_with_statistical(&mut bench);
    assert!(beside > 0);
    bench.left(101);
    assert!(open(&mut bench, 102).is_ok(), "it had sent nothing");
    bench.packets(102, 1);
    bench.left(102);
    assert!(is_of_the_class(open(&mut bench, 103)));
    assert!(open(&mut bench, 104).is_ok(), "5 ms later the port was idle");
    // No packet of the guaranteed class waits any more, but some that have waited behind it do.
    bench.packets(104, 1);
    bench.packets(200, 12);
    bench.run(ms(3));
    bench.left(104);
    assert!(is_of_the_class(open(&mut bench, 105)));
    bench.run(ms(20));
    assert!(open(&mut bench, 106).is_ok());
}

/// There is memory for so many, and none is forgotten.
#[test]
fn many_flows_that_have_left_a_busy_port_count_together() {
    let mut bench = Bench::quiet(100);
    (0..40).for_each(|id| assert!(flow_during(&mut bench, 1_000 + id, 100, Life::ALWAYS).is_ok()));
    let most = |bench: &Bench| {
        let flows = &bench.link.shares.flows;
        format!("{:?}", flows.certain(bench.now, flows.horizon(), true).expect("a port"))
    };
    let all = most(&bench);
    for id in 1_000..1_040 {
        bench.packets(id, 1);
        bench.left(id);
    }
    assert_eq!(most(&bench), all);
    assert!(flow_during(&mut bench, 1, 100, Life::ALWAYS).is_ok());
    bench.run(ms(5));
    assert_ne!(most(&bench), all);
}

/// Of two bookings one begins where the burst of the other one may still be ahead.
#[test]
fn a_booking_counts_the_end_of_another_one_shortly_before_it() {
    let mut bench = Bench::quiet(10);
    let begin = bench.now;
    let life = |from, until| Life { from: begin + ms(from), until: begin + ms(until) };
    assert!(flow_during(&mut bench, 101, 2, life(5_000, 6_000)).is_ok());
    let (beside, _) = fill_with_statistical(&mut bench);
    assert!(beside > 0);
    assert!(is_of_the_class(flow_during(&mut bench, 102, 2, life(6_000, 7_000))));
    assert!(is_of_the_class(flow_during(&mut bench, 103, 2, life(6_150, 7_000))));
    assert!(flow_during(&mut bench, 104, 2, life(6_210, 7_000)).is_ok(), "its pause and 200 ms");
    // Behind its end one that is not planned begins as soon as the port has been idle.
    bench.run_until(begin + ms(7_001));
    assert!(flow_during(&mut bench, 105, 2, Life::ALWAYS).is_ok());
}

/// Slots count for a window behind the last one, and as long as the port is busy.
#[test]
fn slots_that_have_ended_count_until_the_port_is_idle() {
    let mut bench = Bench::quiet(10);
    let slots = bench.open(9_000, bench.trt());
    let (beside, _) = fill_with_statistical(&mut bench);
    assert!(beside > 0);
    bench.unit(slots);
    bench.packets(200, 60);
    bench.run(ms(9));
    bench.close(slots);
    bench.run(bench.window());
    let again = bench.ask(9_000, bench.trt());
    bench.run(ms(1));
    assert_eq!(bench.answer(again), Some(Err(())), "the port is busy still");
    bench.run(ms(60));
    let again = bench.open(9_000, bench.trt());
    bench.unit(again);
    bench.run(ms(9));
    bench.close(again);
    bench.run(bench.window());
    bench.open(9_000, bench.trt());
}

/// A unit that is handed over early waits for the start of its flow, and is ahead of others from there on.
#[test]
fn a_flow_that_has_left_counts_for_a_unit_that_waited_for_its_start() {
    let mut bench = Bench::quiet(10);
    let begin = bench.now + ms(1_000);
    assert!(flow_during(&mut bench, 101, 2, Life { from: begin, until: Instant::FAR }).is_ok());
    let (beside, _) = fill_with_statistical(&mut bench);
    assert!(beside > 0 && bench.now < begin, "{beside}");
    bench.packets(101, 1);
    bench.run_until(begin + Span::from_micros(200));
    bench.left(101);
    assert!(is_of_the_class(flow_during(&mut bench, 102, 2, Life::ALWAYS)));
    assert!(flow_during(&mut bench, 103, 2, Life::ALWAYS).is_ok(), "5 ms later the port was idle");
}

/// The reservation of a group goes with its last member, and counts for what any of them has sent.
#[test]
fn a_group_that_has_left_counts_for_what_a_former_member_has_sent() {
    let member = |id: u64, bench: &mut Bench| {
        let key = rota_contract::GroupKey { uid: 7, name: "talk".parse().expect("a name") };
        let group = Some(crate::door::GroupShare { key, at_once: 1 });
        let flow = FlowShare::guaranteed(Traffic::periodic(ms(2)).expect("sound"));
        flow_of(bench, id, FlowShare { group, ..flow })
    };
    let mut bench = Bench::quiet(10);
    for id in [101, 102] {
        assert!(member(id, &mut bench).is_ok());
    }
    let (beside, _) = fill_with_statistical(&mut bench);
    assert!(beside > 0);
    bench.packets(101, 1);
    bench.left(101);
    bench.left(102);
    assert!(is_of_the_class(flow_during(&mut bench, 103, 2, Life::ALWAYS)));
    assert!(flow_during(&mut bench, 104, 2, Life::ALWAYS).is_ok(), "5 ms later the port was idle");
}
