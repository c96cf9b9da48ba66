//! Circuits of the native-mode transport on a bad wire, with every kind of fault (TRANSPORT-R81). The world
//! itself asserts at each message that none is lost, doubled, reordered or altered.

use rota_sim::circuits::{Circuits, Plan};

#[test]
fn a_hundred_thousand_messages_arrive_once_in_order_and_unaltered() {
    let mut all = 0;
    for seed in 0..4 {
        let seen = Circuits::new(seed, Plan::all(25_000)).run();
        println!("{seed}: {seen:?}");
        assert_eq!(seen.taken, 25_000);
        all += seen.taken;
        assert!(seen.faults.iter().all(|count| *count > 500), "each fault was met: {seen:?}");
        assert!(seen.deaths.iter().all(|deaths| *deaths > 10), "{seen:?}");
        let kinds = [seen.finished, seen.stopped, seen.broken, seen.doubts, seen.resent, seen.refused];
        assert!(kinds.iter().all(|count| *count > 0), "each end was met: {seen:?}");
    }
    assert_eq!(all, 100_000);
}

#[test]
fn a_sound_wire_breaks_no_circuit_and_sends_nothing_again() {
    let quiet = Plan { loss_ppm: 0, double_ppm: 0, late_ppm: 0, corrupt_ppm: 0, ..Plan::all(5_000) };
    let plan = Plan { partition: None, restart: None, ..quiet };
    let seen = Circuits::new(1, plan).run();
    assert_eq!((seen.taken, seen.broken, seen.doubts, seen.resent), (5_000, 0, 0, 0), "{seen:?}");
    assert_eq!(Circuits::new(1, plan).run(), seen, "one seed gives one run");
}
