//! Circuits of the native-mode transport on a bad wire, with every kind of fault (TRANSPORT-R81). The world
//! itself asserts at each message that none is lost, doubled, reordered or altered. And circuits that share a
//! bottleneck, or have a line that loses.

use rota_sim::circuits::resends::{LossyPath, go_back_n, smart};
use rota_sim::circuits::shared::{Discipline, EIGHT, LOSSY, SharedPlan, aimd_octets, share};
use rota_sim::circuits::{Circuits, Plan};
use rota_wire::FlowControl;

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

/// TRANSPORT-R93: Jain's index is 0.98 at least, no share is farther than 10 % from the mean, and nothing of
/// the bottleneck is wasted.
#[test]
fn eight_circuits_share_a_bottleneck_by_packet_pair_in_turns_and_by_the_window_in_one_queue() {
    for seed in 0..4 {
        for (flow, discipline) in
            [(FlowControl::PacketPair, Discipline::Turns), (FlowControl::Window, Discipline::OneQueue)]
        {
            let plan = SharedPlan { flow, discipline, ..EIGHT };
            let shares = share(seed, &plan);
            println!("{seed} {flow:?}: {} {} {shares:?}", shares.jain(), shares.farthest());
            assert!(shares.jain() >= 980, "{flow:?}: {shares:?}");
            assert!(shares.farthest() <= 100, "{flow:?}: {shares:?}");
            assert!(shares.each.iter().all(|share| share.flow == flow), "{shares:?}");
            let all = plan.rate.octets_in_down(plan.span).get();
            assert!(shares.octets() >= all * 97 / 100, "{flow:?}: {} of {all}", shares.octets());
            // In turns each sender keeps to its share: the bottleneck never runs out of room.
            assert!(flow == FlowControl::Window || shares.dropped == 0, "{shares:?}");
        }
    }
}

/// TRANSPORT-R32: behind one queue the gap of a pair is no share, and the circuits find that out.
#[test]
fn packet_pair_behind_one_queue_is_found_out_and_takes_the_window() {
    for seed in 0..4 {
        let plan = SharedPlan { discipline: Discipline::OneQueue, ..EIGHT };
        let shares = share(seed, &plan);
        assert!(shares.each.iter().all(|share| share.flow == FlowControl::Window), "{seed}: {shares:?}");
        assert!(shares.jain() >= 950, "{shares:?}");
        // Alone, the gap is the share.
        let alone = share(seed, &SharedPlan { circuits: 1, ..plan });
        assert_eq!(alone.each[0].flow, FlowControl::PacketPair);
        assert_eq!(alone.dropped, 0);
    }
}

/// TRANSPORT-R89, TRANSPORT-R90, TRANSPORT-5.3.3-11: at 1 % loss and 20 ms.
#[test]
fn packet_pair_keeps_the_capacity_of_a_line_that_loses_where_a_window_shuts_down() {
    for seed in 0..4 {
        let carried = |flow| share(seed, &SharedPlan { flow, ..LOSSY }).octets();
        let (pair, window) = (carried(FlowControl::PacketPair), carried(FlowControl::Window));
        let formula = aimd_octets(&LOSSY);
        println!("{seed}: {pair} by packet-pair, {window} by the window, {formula} by the formula");
        assert!(pair >= 5 * formula, "{pair} of {formula}");
        assert!(window >= formula * 9 / 10, "{window} of {formula}");
    }
}

/// TRANSPORT-R28, TRANSPORT-R29: theory d.2 (ii), and go-back-N's R·p/(1 − p).
#[test]
fn smart_sends_again_about_the_least_and_go_back_n_a_round_trip_for_each_loss() {
    const COUNT: u64 = 300_000;
    for loss_ppm in [1_000, 10_000, 50_000, 100_000] {
        let path = LossyPath { loss_ppm, ack_loss_ppm: 0, slots: 32, window: 64 };
        let least = COUNT * u64::from(loss_ppm) / (1_000_000 - u64::from(loss_ppm));
        let (ours, theirs) = (smart(1, &path, COUNT, 1), go_back_n(1, &path, COUNT));
        println!("{loss_ppm}: {ours:?} {theirs:?}, at least {least}");
        assert!(ours.resent * 10 <= least * 11 + 100, "{loss_ppm}: {ours:?}");
        assert!(theirs.resent * 10 >= 32 * least * 9, "{loss_ppm}: {theirs:?}");
        assert!(theirs.resent * 10 <= 32 * least * 12, "{loss_ppm}: {theirs:?}");
        assert!(theirs.slots > ours.slots, "{loss_ppm}: {theirs:?} {ours:?}");
    }
    // 0.26 % more where 1 % is lost both ways.
    let path = LossyPath { loss_ppm: 10_000, ack_loss_ppm: 0, slots: 32, window: 64 };
    let none = smart(1, &path, COUNT, 1).resent;
    let more = smart(1, &LossyPath { ack_loss_ppm: 10_000, ..path }, COUNT, 1).resent - none;
    println!("{more} more of {COUNT}");
    assert!((200..=320).contains(&(more * 100_000 / COUNT)), "{more}");
}
