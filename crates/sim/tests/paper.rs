//! The numbers that the RETHER paper printed, under the readings that produce them and under those that do
//! not (theory.md §1.4).

use rota_sim::paper::modern::{Case, Host, Load, Measure, Sessions, TOLERANCE};
use rota_sim::paper::profile::{
    HOP, KB, MPEG_I, MTU, Machine, Reading, TABLE_2, TRT, copy_to_nic, mean_gap, reservable, round_for,
};
use rota_sim::paper::ring::{Ring, Rules, Traffic};
use rota_sim::paper::table1::{self, Phases};
use rota_sim::paper::{ours, switch};
use rota_units::{BitRate, Octets, Span};

fn us(n: u64) -> Span {
    Span::from_micros(n)
}

fn printed(nodes: usize, slots: Vec<Span>, traffic: Traffic) -> Ring {
    Ring { trt: TRT, hop: HOP, slots, nodes, traffic, rules: Rules::AsPrinted }
}

/// Two nodes that always have 100 octets: the load of Figure 5 (theory.md §1.4).
fn two_small() -> Traffic {
    Traffic::TwoNodes { visit: Machine::TESTBED.visit(Octets::new(100)) }
}

#[test]
fn table_2_adds_up_and_table_3_is_a_line_between_its_points() {
    assert_eq!(us(TABLE_2.iter().map(|(_, us)| us).sum()), HOP);
    assert_eq!([100, 500, 1_000, MTU].map(copy_to_nic), [us(51), us(210), us(402), us(604)]);
    assert_eq!(copy_to_nic(300), Span::from_nanos(130_500));
    assert_eq!(copy_to_nic(0), Span::from_nanos(11_250));
}

#[test]
fn eq_7_and_five_streams_on_10_mbit() {
    assert_eq!(Machine::TESTBED.visit(MPEG_I), us(6_597));
    assert_eq!(Machine::TESTBED.sessions_max(MPEG_I), 5);
}

#[test]
fn eight_milliseconds_at_20_nodes_and_two_streams() {
    let ring = printed(20, vec![Machine::TESTBED.visit(MPEG_I); 2], Traffic::Nobody);
    assert_eq!(ring.round(), us(20 * 247));
    // 4,940 us · 33,333,333 ns / 20,139,333 ns.
    assert_eq!(mean_gap(TRT, ring.reserved(), ring.round()), Some(Span::from_nanos(8_176_372)));
    let seen = ring.run(10_000, 0);
    assert_eq!(seen.mean.as_nanos() / 10_000, 825, "8.25 to 8.26 ms visit by visit: {seen:?}");
    assert!(seen.cycle_max > TRT && seen.cycle_max <= TRT + HOP, "hole A1: {seen:?}");
}

#[test]
fn figure_8_is_a_line() {
    let gap =
        |nodes| printed(nodes, vec![Machine::TESTBED.visit(MPEG_I); 2], Traffic::Nobody).run(4_000, 0).mean;
    let (ten, twenty, forty) = (gap(10), gap(20), gap(40));
    assert!((ten * 2).as_nanos().abs_diff(twenty.as_nanos()) < 50_000, "{ten} {twenty}");
    assert!((twenty * 2).as_nanos().abs_diff(forty.as_nanos()) < 50_000, "{twenty} {forty}");
}

#[test]
fn forty_streams_need_the_whole_of_eq_7_divided() {
    let fast = |reading| Machine { fast_link: true, fast_bus: true, reading };
    let slow_bus = |reading| Machine { fast_bus: false, ..fast(reading) };
    let whole = fast(Reading::WholeEquation);
    assert_eq!((whole.transmission(MPEG_I), whole.hop()), (us(635), Span::from_nanos(195_572)));
    assert_eq!(whole.sessions_max(MPEG_I), 40, "the printed number");
    assert_eq!(fast(Reading::Pipelined).sessions_max(MPEG_I), 37);
    assert_eq!(fast(Reading::WireOnly).sessions_max(MPEG_I), 21);
    // The pipelined fast link on the slow bus: 9 with the last packet's own 250 octets, and 8 with a full
    // last packet (theory.md §1.4).
    assert_eq!(slow_bus(Reading::Pipelined).sessions_max(MPEG_I), 9);
    let full_packets = slow_bus(Reading::Pipelined).visit(Octets::new(5 * MTU));
    assert_eq!(TRT.count_down(full_packets), 8);
    assert_eq!(slow_bus(Reading::WholeEquation).sessions_max(MPEG_I), 37);
    assert_eq!(slow_bus(Reading::WireOnly).sessions_max(MPEG_I), 15);
}

#[test]
fn a_faster_link_helps_more_than_a_faster_bus_only_while_copies_hide() {
    let streams =
        |fast_link, fast_bus, reading| Machine { fast_link, fast_bus, reading }.sessions_max(MPEG_I);
    for reading in [Reading::WholeEquation, Reading::WireOnly, Reading::Pipelined] {
        assert!(streams(true, false, reading) > streams(false, true, reading));
    }
    // Where copies count, the bus multiplies what a fast link carries by four.
    let (slow, fast) = (streams(true, false, Reading::Pipelined), streams(true, true, Reading::Pipelined));
    assert!(fast > slow * 4, "{slow} {fast}");
}

#[test]
fn twenty_eight_and_twenty_six_kilobytes_at_10_ms() {
    let machine = Machine::TESTBED;
    let tolerance = Span::from_millis(10);
    // What the printed points imply for a round of ordinary visits: 2.01 and 1.69 ms.
    let reserved = |sessions: u64, kb: u64| machine.visit(Octets::new(kb * KB / sessions)) * sessions;
    assert_eq!(round_for(TRT, reserved(1, 28), tolerance).as_nanos() / 10_000, 200);
    assert_eq!(round_for(TRT, reserved(4, 26), tolerance).as_nanos() / 10_000, 169);
    // Two nodes with 100 octets: 28, and one short of 26.
    let small = printed(5, vec![], two_small()).round();
    assert_eq!(small.as_nanos() / 10_000, 186);
    assert_eq!(
        (reservable(1, KB, small, tolerance), reservable(4, KB, small, tolerance)),
        (28 * KB, 25 * KB)
    );
    // Question and answer of 200 octets, one a round: both printed points on a grid of 2 KB.
    let exchange = Traffic::Exchange { visit: machine.visit(Octets::new(200)) };
    let round = printed(5, vec![], exchange).round();
    assert_eq!(reservable(1, 2 * KB, round, tolerance), 28 * KB);
    assert_eq!(reservable(4, 2 * KB, round, tolerance), 26 * KB);
    // On a grid of 1 KB no single load gives both: 29 KB in one session must fail and 26 in four must pass.
    let (low, high) =
        (round_for(TRT, reserved(1, 29), tolerance), round_for(TRT, reserved(4, 26), tolerance));
    assert!(low > high, "a round above {low} and up to {high}");
}

#[test]
fn the_ring_visit_by_visit_stays_near_the_closed_form() {
    for (sessions, kb) in [(1u64, 4u64), (1, 16), (1, 28), (2, 20), (4, 26)] {
        let slot = Machine::TESTBED.visit(Octets::new(kb * KB / sessions));
        let ring = printed(5, vec![slot; sessions as usize], two_small());
        let closed = mean_gap(TRT, ring.reserved(), ring.round()).expect("something is left");
        let seen = ring.run(5_000, 0).mean;
        let off = seen.as_nanos().abs_diff(closed.as_nanos());
        assert!(off * 20 <= closed.as_nanos(), "{sessions} of {kb} KB: {seen} against {closed}");
    }
}

#[test]
fn the_number_of_sessions_shows_only_at_high_reservations() {
    // RETHER-4.3-4: from one session to five, at half of the link and at 32 KB.
    let gap = |sessions: u64, kb: u64| {
        let slot = Machine::TESTBED.visit(Octets::new(kb * KB / sessions));
        let ring = printed(5, vec![slot; sessions as usize], two_small());
        mean_gap(TRT, ring.reserved(), ring.round()).map_or(u64::MAX, Span::as_nanos)
    };
    assert!(gap(4, 20) < gap(1, 20) * 13 / 10, "{} {}", gap(1, 20), gap(4, 20));
    assert!(gap(4, 32) > gap(1, 32) * 2, "{} {}", gap(1, 32), gap(4, 32));
}

#[test]
fn a_packet_that_never_fits_starves_the_whole_round() {
    // Hole A3: sessions leave less than a full packet's visit.
    let slot = TRT.minus(us(1_500));
    let visit = Machine::TESTBED.visit(Octets::new(MTU));
    let seen = printed(5, vec![slot], Traffic::Everybody { visit }).run(1_000, 0);
    assert_eq!((seen.count, seen.refusals), (0, 1_000));
}

#[test]
fn table_1_is_quiet_up_to_three_streams_and_uneven_beyond() {
    let late = |streams| {
        let (middle, runs) = table1::middle(streams, 3_000, Phases::Spread, 7);
        let run = runs[middle].clone();
        (0..streams).map(|stream| run.late_share(stream)).collect::<Vec<u64>>()
    };
    for streams in 1..=3 {
        assert!(late(streams).iter().all(|share| *share < 100), "{streams}: {:?}", late(streams));
    }
    let five = late(5);
    let (most, least) = (five.iter().max().copied(), five.iter().min().copied());
    assert!(most > Some(1_500) && least < Some(500), "{five:?}");
    assert!(late(4).iter().sum::<u64>() < five.iter().sum());
}

#[test]
fn a_seed_gives_one_table_1() {
    assert_eq!(table1::run(5, 200, Phases::Anywhere, 9), table1::run(5, 200, Phases::Anywhere, 9));
    assert_eq!(table1::run(1, 200, Phases::Anywhere, 9).late, [0]);
}

#[test]
fn the_switch_takes_longer_with_every_node() {
    let times: Vec<Span> = (2..=10).map(|nodes| switch::mean(nodes, Span::ZERO, 30)).collect();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
    assert!(times[3] > us(700) && times[3] < us(2_000), "five nodes: {}", times[3]);
}

#[test]
fn the_shipping_node_keeps_its_round_going_beside_sessions() {
    let scene = |kb: u32| ours::Scene {
        stations: 5,
        rate: BitRate::from_mbit(10),
        sessions: vec![kb * 1_024],
        exchanged: Some(118),
        strict: true,
        queued: ours::ONE,
        everybody: false,
        latency: ours::LATENCY,
        costs: ours::Costs::DEFAULT,
        rotations: 20,
    };
    let (few, many) = (ours::access(&scene(4), 1), ours::access(&scene(28), 1));
    let (few, many) = (few.expect("4 KB fit"), many.expect("28 KB fit"));
    assert!(few.mean_gap < many.mean_gap && many.mean_gap < Span::from_millis(10), "{few:?} {many:?}");
    assert_eq!((few.violations, many.violations), (0, 0));
    assert_eq!(ours::access(&scene(60), 1), None, "more than the link carries");
}

fn case(mbit: u64, host: Host) -> Case {
    Case::of(BitRate::from_mbit(mbit), host)
}

#[test]
fn ninety_percent_of_the_wire_at_100_mbit_and_at_1_gbit() {
    for mbit in [100, 1_000] {
        let case = case(mbit, Host::OVERLAPPED);
        let share = case.largest().expect("something fits");
        assert!(share.wire_ppm >= 900_000, "{mbit} Mbit/s: {share:?}");
        let seen = case.simulate(&share, 3_000);
        assert!(seen.mean <= TOLERANCE, "{mbit} Mbit/s: {seen:?}");
    }
}

#[test]
fn ninety_percent_of_payload_contradicts_arithmetic_at_100_mbit() {
    // A hop over a switch is two token frames; without any processor time 20 of them already take so much
    // that even with every octet left given to full frames the payload stays below 90 %.
    let nothing = Host {
        name: "no host at all",
        processing: Span::ZERO,
        per_frame: Span::ZERO,
        per_visit: Span::ZERO,
        overlapped: false,
    };
    let share = case(100, nothing).largest().expect("something fits");
    assert!(share.payload_ppm < 900_000, "{share:?}");
    let share = case(1_000, Host::OVERLAPPED).largest().expect("something fits");
    assert!(share.payload_ppm >= 900_000, "at 1 Gbit/s it does not: {share:?}");
}

#[test]
fn what_admission_charges_today_stays_below_ninety_percent() {
    // a = 2 us behind each frame of 12.3 us: 86 % of a gigabit at best.
    let share = case(1_000, Host::ADMITTED).largest().expect("something fits");
    assert!(share.wire_ppm < 860_000, "{share:?}");
}

#[test]
fn one_visit_a_station_beats_one_visit_a_session() {
    for mbit in [100, 1_000, 10_000] {
        let of = |per_station| {
            let case = Case { sessions: Sessions::Streams { per_station }, ..case(mbit, Host::OVERLAPPED) };
            case.largest().map_or(0, |share| share.count)
        };
        assert!(of(true) > of(false), "{mbit} Mbit/s: {} {}", of(true), of(false));
    }
}

#[test]
fn a_guaranteed_10_ms_needs_several_rotations_a_period() {
    let worst = |divisor, strict| Case {
        load: Load::Saturated,
        measure: Measure::Worst,
        divisor,
        strict,
        ..case(1_000, Host::OVERLAPPED)
    };
    // The time that one cycle reserves in one piece is itself a gap: at one rotation a period 10 ms of 33 at
    // most.
    assert_eq!(worst(1, true).largest(), None, "a strict cycle is 33 ms long");
    let early = worst(1, false).largest().expect("something fits");
    assert!(early.wire_ppm < 310_000, "{early:?}");
    let four = worst(4, true);
    let share = four.largest().expect("something fits");
    assert!(share.wire_ppm > 900_000, "{share:?}");
    for (case, share) in [(worst(1, false), early), (four, share)] {
        let seen = case.simulate(&share, 3_000);
        assert!(seen.worst <= share.worst, "{seen:?} within {share:?}");
    }
}
