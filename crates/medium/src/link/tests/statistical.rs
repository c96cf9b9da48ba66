//! Flows of the statistical class beside what is booked, and on divided links.

use super::*;
use rota_admission::rtip::Chance;

/// Flows of the statistical class, 1,000 octets each 4 ms a quarter of the time, until one is refused.
fn fill_with_statistical(bench: &mut Bench) -> (usize, rota_admission::Test) {
    let traffic = Traffic::new(ms(4), ms(16), ms(160)).expect("sound");
    let flow = FlowShare { late: Chance::of_down(1, 10), ..FlowShare::guaranteed(traffic) };
    let mut stands = 0;
    loop {
        match flow_of(bench, 200 + stands as u64, flow) {
            Ok(_) => stands += 1,
            Err(refused) => return (stands, refused.test),
        }
    }
}

/// A booking counts for the statistical class as if it had begun, whichever of both was first.
#[test]
fn the_statistical_class_is_tested_beside_what_is_booked() {
    use rota_admission::Test::{DeddSum, Overflow};
    let mut bench = Bench::new(10);
    bench.is_flooded = false;
    let life = Life { from: bench.now + ms(5_000), until: bench.now + ms(6_000) };
    assert!(flow_during(&mut bench, 101, 2, life).is_ok());
    let (beside, _) = fill_with_statistical(&mut bench);
    bench.link.release(bench.now, SessionId(101));
    let traffic = Traffic::new(ms(4), ms(16), ms(160)).expect("sound");
    let more = FlowShare { late: Chance::of_down(1, 10), ..FlowShare::guaranteed(traffic) };
    assert!(beside > 0 && flow_of(&mut bench, 300, more).is_ok(), "{beside}: its room is free again");
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

/// Its test is proved for neither: nodes ask for guaranteed flows there.
#[test]
fn a_statistical_flow_is_refused_on_a_divided_link_and_in_a_time() {
    let traffic = Traffic::periodic(ms(20)).expect("sound");
    let flow = FlowShare { late: Chance::of_down(1, 10), ..FlowShare::guaranteed(traffic) };
    let mut bench = Bench::new(10);
    assert!(flow_of(&mut bench, 1, flow).is_ok());
    let life = Life { until: bench.now + ms(5_000), ..Life::ALWAYS };
    assert!(flow_of(&mut bench, 2, FlowShare { life, ..flow }).is_err());
    let mut bench = Bench::new(10);
    bench.link.settings.partitions.add("studio".parse().expect("a name"), 60).expect("room");
    assert!(flow_of(&mut bench, 3, flow).is_err());
    assert!(flow_of(&mut bench, 4, FlowShare::guaranteed(traffic)).is_ok());
}
