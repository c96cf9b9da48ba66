use super::*;
use crate::certificate::{FlowTerms, Standing, port_terms};
use crate::pace::Pace;
use crate::rether::SegmentParams;
use crate::rtip::edf::tests::ns;
use crate::rtip::{Discipline, Flow, NodeTest, Point, Scheduler};
use crate::slots::Slot;
use proptest::prelude::*;

const FRAMING: Framing = Framing::ETHERNET;

fn ask(x_min: u64, x_ave: u64, interval: u64, octets: u64) -> Ask {
    let traffic =
        Traffic::new(Span::from_micros(x_min), Span::from_micros(x_ave), Span::from_micros(interval));
    let octets = Octets::new(octets);
    Ask { traffic: traffic.unwrap(), octets, octets_least: octets }
}

fn segment(mbit: u64) -> SegmentParams {
    SegmentParams::new(BitRate::from_mbit(mbit), 5)
}

fn rether(slots: &[Slot], mbit: u64) -> RetherSegment<'_> {
    let (params, station, partition) = (segment(mbit), 3, 0);
    RetherSegment { params, slots, station, periodic: false, receives: false, partition }
}

#[test]
fn a_packet_has_every_header_on_the_wire() {
    // 28 of the link header, 16 of RTIP, 20 of the unit header, 16 of the tag, 38 of Ethernet.
    assert_eq!(packet_wire_octets(&FRAMING, Octets::new(1_000)), Octets::new(1_000 + 28 + 16 + 20 + 16 + 38));
    assert_eq!(payload_max(&FRAMING), Octets::new(1_420));
    assert_eq!(packet_wire_octets(&FRAMING, payload_max(&FRAMING)), FRAMING.frame_wire_octets_max());
    assert_eq!(packet_span_up(BitRate::from_mbit(10), &FRAMING, Octets::new(1)), ns(119 * 800));
}

/// One packet each 50 ms needs less than one a cycle, and has the bound of the segment's own promise.
#[test]
fn a_slow_channel_has_the_bound_of_one_unit_a_cycle() {
    let slots = [Slot { station: 1, tht: Span::from_millis(2), periodic: false, partition: 0 }];
    let hop = rether(&slots, 10);
    let share = hop.at_peaks(&ask(50_000, 50_000, 50_000, 1_000), 1).unwrap();
    let params = segment(10);
    let tht = packet_tht(&params, Octets::new(1_000));
    let rest = Span::from_millis(2) + tht + params.transit() + params.link.host_slack;
    assert_eq!((share.wait, share.delay), (params.trt, params.trt + rest));
    assert_eq!((share.pace, share.admitted.tht), (Pace::EVERY_CYCLE, tht));
}

/// One packet each 20 ms: a cycle of 33.3 ms brings two, though an interval of the channel holds one.
#[test]
fn a_channel_faster_than_the_cycle_has_several_packets_a_cycle() {
    let share = rether(&[], 10).at_peaks(&ask(20_000, 20_000, 20_000, 160), 1).unwrap();
    assert_eq!((share.pace.units(), share.wait), (2, segment(10).trt));
}

/// A share had 32 packets a cycle at most: 10.9 Mbit/s of a segment of any rate.
#[test]
fn a_channel_may_have_all_that_a_gigabit_segment_can_reserve() {
    let most = payload_max(&FRAMING).get();
    let asked = |packets: u64| {
        let cycle = segment(1_000).trt.as_nanos() / 1_000;
        // A little more than a cycle apart, so that none brings the packets of two messages.
        let (x_min, interval) = (cycle / packets, cycle + 50);
        rether(&[], 1_000).at_peaks(&ask(x_min, x_min, interval, most), 1)
    };
    let most = (1..4_096).rev().find(|packets| asked(*packets).is_ok()).expect("some fit");
    let share = asked(most).unwrap();
    assert!((2_000..2_710).contains(&most), "{most} packets");
    assert!(share.pace.units() >= most && share.wait < segment(1_000).trt * 2, "{share:?}");
    let refused = asked(most + 1).unwrap_err();
    assert_eq!(refused.test, NodeTest::RetherShare, "the segment is full, and no other limit is met");
    let denied = rether(&[], 1_000).at_peaks(&ask(1, 1, 1, 1), 1).unwrap_err();
    assert_eq!((denied.test, denied.count), (NodeTest::CyclePackets, Some((33_334, 4_096))));
}

/// A burst of four a cycle apart in thirds is carried in one cycle: no longer bound makes the share cheaper.
/// One packet in a slot would carry it as well, and have it wait.
#[test]
fn a_burst_is_carried_at_once() {
    let bursty = ask(11_000, 100_000, 400_000, 1_000);
    let mut hop = rether(&[], 10);
    let (share, params) = (hop.at_peaks(&bursty, 1).unwrap(), segment(10));
    assert_eq!((share.pace.units(), share.wait), (4, params.trt));
    assert_eq!(hop.keeping(&bursty, Span::from_millis(300)), hop.best(&bursty));
    let spread = hop.share(&bursty, Pace::EVERY_CYCLE).unwrap();
    assert_eq!(spread.wait, params.trt * 4 - Span::from_millis(33), "the last of the burst waits longest");
    let denied = hop.keeping(&bursty, share.delay.minus(ns(7))).unwrap_err();
    assert_eq!((denied.margin, denied.nearest_delay), (ns(7), Some(share.delay)));
    // More than a packet a cycle on average: one in a slot would never carry it.
    let dense = ask(10_000, 20_000, 200_000, 1_000);
    assert!(hop.share(&dense, Pace::EVERY_CYCLE).is_err() && hop.at_peaks(&dense, 1).is_ok());
}

/// Before a network is asked: the packets of a burst, and those of a cycle.
#[test]
fn a_hop_is_not_asked_for_more_packets_than_it_can_hold() {
    let (burst, trt) = (|packets| ask(1_000, 1_000, 1_000 * packets, 100).traffic, Some(segment(10).trt));
    assert_eq!(hop_pace(&burst(BURST_MAX), 1, None), Ok(Pace::EVERY_CYCLE));
    let denied = hop_pace(&burst(BURST_MAX), 2, None).unwrap_err();
    assert_eq!((denied.test, denied.count), (NodeTest::Unsupported, Some((2 * BURST_MAX, BURST_MAX))));
    let most = u64::from(Pace::PACKETS_MAX);
    let packets = burst(1).half_open(segment(10).trt);
    let denied = hop_pace(&burst(1), most, trt).unwrap_err();
    assert_eq!((denied.test, denied.count), (NodeTest::CyclePackets, Some((packets * most, most))));
}

#[test]
fn a_full_segment_offers_a_smaller_packet() {
    let slots = [Slot { station: 1, tht: Span::from_nanos(29_000_000), periodic: false, partition: 0 }];
    let mut hop = rether(&slots, 10);
    let large = ask(40_000, 40_000, 40_000, 1_400);
    let denied = hop.best(&large).unwrap_err();
    assert_eq!(denied.test, NodeTest::RetherShare);
    if let Some(octets) = largest_packet(&mut hop, &large, Span::from_millis(200)) {
        let fits = |octets| {
            let octets = Octets::new(octets);
            rether(&slots, 10).at_peaks(&Ask { octets, octets_least: octets, ..large }, 1)
        };
        assert!(fits(octets.get()).is_ok() && fits(octets.get() + 1).is_err());
    }
}

proptest! {
    /// The maximum is what the worst phase of the slots brings, for as long as one likes to look.
    #[test]
    fn the_wait_is_that_of_a_greedy_burst_behind_a_missed_slot(
        x_min in 1_000u64..60_000, more in 0u64..60_000, burst in 1u64..9, octets in 1u64..1_400
    ) {
        let x_ave = x_min + more;
        let ask = ask(x_min, x_ave, x_ave * burst, octets);
        let hop = rether(&[], 100);
        let (trt, unit) = (hop.params.trt, Octets::new(octets + RTIP_OCTETS));
        let packet = crate::rether::tht_rt_joined(&hop.params, unit);
        let Ok(share) = hop.at_peaks(&ask, 1) else { return Ok(()) };
        for share in [Ok(share), hop.share(&ask, Pace::EVERY_CYCLE)].into_iter().flatten() {
            // Slots open at TRT, 2·TRT …; the first packet has just missed the one at 0.
            let (mut worst, mut sent) = (Span::ZERO, 0u64);
            for slot in 1..2_000u64 {
                let opens = trt * slot;
                for place in 0..share.pace.units() {
                    let ready = ask.traffic.greedy(sent + 1);
                    if ready > opens {
                        break;
                    }
                    worst = worst.max((opens + packet * place).minus(ready));
                    sent += 1;
                }
            }
            prop_assert!(worst <= share.wait, "{} {}", worst, share.wait);
            prop_assert!(worst + packet * share.pace.units() >= share.wait, "{} {}", worst, share.wait);
        }
    }
}

type Port = LinkPort<Vec<Flow>, Vec<Point>>;

fn port_of(params: SegmentParams, scheduler: Scheduler, channels: usize) -> Port {
    let flow = Flow { traffic: Traffic::periodic(ns(1)).unwrap(), service: ns(1), delay: ns(1) };
    let discipline = Discipline::of(Some(scheduler), None).unwrap();
    let memory = (vec![flow; channels + LINK_FLOWS_OWN], vec![Point::default(); LINK_POINTS]);
    LinkPort::new(params, discipline, memory.0, memory.1).unwrap()
}

fn port(rate: BitRate, scheduler: Scheduler) -> Port {
    port_of(SegmentParams::new(rate, 2), scheduler, 200)
}

/// The paper's bottleneck: a T1 link, two video channels of note 7, and a bound of 70 ms.
#[test]
fn the_t1_link_of_the_paper_carries_its_two_video_channels() {
    let rate = BitRate::new(1_500_000).unwrap();
    // With shorter cycles announcements take an eighth of so slow a link.
    let params = SegmentParams { trt: Span::from_millis(100), ..SegmentParams::new(rate, 2) };
    let (mut port, link) = (port_of(params, Scheduler::DelayEdd, 10), params.link);
    let video = Ask {
        traffic: Traffic::periodic(Span::from_millis(1_000).div_down(88)).unwrap(),
        octets: Octets::new(800),
        octets_least: Octets::new(1),
    };
    let first = port.best(&video).unwrap();
    let own = packet_span_up(rate, &link.framing, Octets::new(800)) + link.per_frame;
    let ahead = link_ahead(&params, ns(0));
    assert_eq!(first.delay, own + ahead + link.host_slack, "what the card has, announcements, and itself");
    assert_eq!(first.link_most, link.frame_span_max());
    let [one, two] = [(); 2].map(|()| {
        let offer = port.keeping(&video, Span::from_millis(70)).unwrap();
        assert_eq!(offer.delay, Span::from_millis(70));
        port.admit_offered(&video, &offer)
    });
    assert_eq!((one, two), (Ok(()), Ok(())));
    let denied = port.best(&video).unwrap_err();
    assert_eq!(denied.test, NodeTest::Load, "three of 650 kbit/s with headers are more than the link");
    let slow = Ask {
        traffic: Traffic::periodic(Span::from_millis(125)).unwrap(),
        octets: Octets::new(1_420),
        ..video
    };
    let octets = largest_packet(&mut port, &slow, Span::from_millis(150)).unwrap();
    let smaller = Ask { octets, octets_least: Octets::new(1), ..slow };
    assert!(port.keeping(&smaller, Span::from_millis(150)).is_ok());
    let larger = Ask { octets: Octets::new(octets.get() + 1), ..smaller };
    assert!(port.keeping(&larger, Span::from_millis(150)).is_err());
}

/// The memory of a port ends before its link does: the test is named, and what stands goes on.
#[test]
fn a_port_without_points_for_one_more_channel_refuses_it_and_stands() {
    let flow = Flow { traffic: Traffic::periodic(ns(1)).unwrap(), service: ns(1), delay: ns(1) };
    let (flows, points) = (vec![flow; 60], vec![Point::default(); 48]);
    let params = SegmentParams::new(BitRate::from_mbit(100), 2);
    let mut port = LinkPort::new(params, Discipline::default(), flows, points).unwrap();
    let channel = |i: u64| ask(17_000 + i * 331, 17_000 + i * 331, 17_000 + i * 331, 500);
    let relaxed = |port: &mut Port, place: usize, i| port.relax(place, &channel(i), LINK_DELAY_MAX).delay;
    let mut standing = 0;
    let denied = loop {
        match port.admit_best(&channel(standing)) {
            Ok(_) => standing += 1,
            Err(denied) => break denied,
        }
        // Longer bounds bring more points; where these have no room the bound stays.
        let had = port.channels()[standing as usize - 1].delay;
        assert!(relaxed(&mut port, standing as usize - 1, standing - 1) >= had);
    };
    assert_eq!((denied.test, denied.nearest_delay), (NodeTest::Undecided, None));
    assert!((1..50).contains(&standing), "{standing}");
    let before = port.channels().to_vec();
    assert_eq!(before.len() as u64, standing, "nothing has changed");
    assert!(port.set_units(ns(0)).is_ok());
    port.release(standing as usize - 1);
    assert!(port.admit_best(&channel(standing - 1)).is_ok(), "there is room for as many as before");
    (0..standing).for_each(|_| port.release(0));
    assert!(port.channels().is_empty());
}

#[test]
fn a_refused_bound_of_a_link_names_the_shortest_that_fits() {
    let mut port = port(BitRate::from_mbit(10), Scheduler::DelayEdd);
    let channel = ask(10_000, 10_000, 10_000, 1_000);
    let best = port.best(&channel).unwrap();
    let denied = port.keeping(&channel, best.delay.minus(ns(1))).unwrap_err();
    assert_eq!(denied.nearest_delay, Some(best.delay));
    assert_eq!(port.keeping(&channel, best.delay), Ok(best));
    let long = port.keeping(&channel, Span::from_millis(900)).unwrap();
    assert_eq!(long.delay, LINK_DELAY_MAX + Span::from_millis(1));
}

/// As many channels as the load allows have a bound of 200 ms; with the best one each, fewer fit beside a
/// last one that is in a hurry.
#[test]
fn what_is_relaxed_is_there_for_a_later_channel() {
    for scheduler in [Scheduler::DelayEdd, Scheduler::Rcsp] {
        let hurried = ask(30_000, 30_000, 30_000, 1_400);
        let bound = Span::from_millis(13);
        let mut tight = port(BitRate::from_mbit(10), scheduler);
        let lax = ask(60_000, 60_000, 60_000, 1_400);
        for _ in 0..9 {
            tight.admit_best(&lax).unwrap();
        }
        assert!(tight.keeping(&hurried, bound).is_err(), "{scheduler:?}");
        for place in 0..9 {
            let had = tight.channels()[place].delay;
            let offer = tight.relax(place, &lax, Span::from_millis(170));
            assert!(offer.delay > had + Span::from_millis(50), "{scheduler:?} {offer:?}");
        }
        let offer = tight.keeping(&hurried, bound).unwrap_or_else(|why| panic!("{scheduler:?}: {why}"));
        tight.admit_offered(&hurried, &offer).unwrap();
        // The room that is given back is there again.
        tight.release(9);
        tight.admit_offered(&hurried, &offer).unwrap();
        let offer = tight.relax(9, &hurried, ns(0));
        assert!(offer.delay <= bound, "relaxing never shortens, and never lengthens beyond what was said");
    }
}

/// A bound under which a packet and all slots of a window just fit stands against one more slot.
#[test]
fn slots_and_packets_of_a_port_are_counted_against_each_other() {
    for scheduler in [Scheduler::DelayEdd, Scheduler::Rcsp] {
        let mut port = port(BitRate::from_mbit(10), scheduler);
        let channel = ask(30_000, 30_000, 30_000, 1_400);
        let alone = port.best(&channel).unwrap();
        port.set_units(Span::from_millis(6)).unwrap();
        let beside = port.admit_best(&channel).unwrap();
        assert!(beside.delay >= alone.delay + Span::from_millis(5), "{scheduler:?}");
        let denied = port.set_units(Span::from_millis(25)).unwrap_err();
        assert!(denied.margin > ns(0), "{denied:?}");
        assert_eq!(port.best(&channel).map(|offer| offer.delay > beside.delay), Ok(true), "6 ms stand");
        port.relax(0, &channel, Span::from_millis(180));
        port.set_units(Span::from_millis(12)).unwrap();
        port.release(0);
        port.set_units(Span::from_millis(25)).unwrap();
        port.set_units(ns(0)).unwrap();
        assert_eq!(port.best(&channel), Ok(alone), "{scheduler:?}");
    }
}

fn paced(period: u64, service: u64, jitter: u64, stay_max: Span) -> PacedFlow {
    PacedFlow {
        period: ns(period),
        service: ns(service),
        octets: Octets::new(100),
        jitter: ns(jitter),
        stay_max,
    }
}

#[test]
fn forty_flows_into_one_port_of_100_mbit_wait_5_ms_at_most() {
    // Theory c.2: 40 full frames of 1,538 octets; one more of another class here.
    let flow = paced(33_333_333, 123_040, 0, Span::MAX);
    let bound = fifo_delay([flow; 40].iter(), ns(123_040)).unwrap();
    assert_eq!(bound, ns(41 * 123_040));
    let denied = fifo_delay([paced(3, 2, 0, Span::MAX); 2].iter(), ns(0)).unwrap_err();
    assert_eq!(denied.test, NodeTest::Load);
}

#[test]
fn a_paced_channel_is_tested_at_both_ports() {
    let link = LinkModel::new(BitRate::from_mbit(100), FRAMING, 100);
    let (host, port) = ([], [paced(1_000_000, 100_000, 50_000, ns(400_000))]);
    let mut path = PacedPort { link, host: &host, port: &port, buffer: Octets::new(10_000) };
    let channel = ask(2_000, 4_000, 16_000, 1_000);
    let quick = path.best(&channel).unwrap();
    let (packet, full) = (packet_span_up(link.rate, &FRAMING, Octets::new(1_000)), link.frame_span_max());
    let host_stay = packet + full;
    // One frame varies at the host's port; it comes again as a part of a packet at the switch.
    let part =
        |jitter: u64, period: u64, service: u64| (u128::from(jitter * service)).div_ceil(period.into());
    let late = part(full.as_nanos(), 2_000_000, packet.as_nanos()) + part(50_000, 1_000_000, 100_000);
    let port_stay = full + packet + ns(100_000) + ns(late as u64);
    assert_eq!(quick.delay, host_stay + port_stay + link.host_slack);
    let slow = path.keeping(&channel, Span::from_millis(20)).unwrap();
    assert!(slow.delay > quick.delay && slow.delay <= Span::from_millis(20));
    let denied = path.keeping(&channel, quick.delay.minus(ns(1))).unwrap_err();
    assert_eq!(denied.test, NodeTest::FifoPort);
    path.buffer = Octets::new(1_500);
    assert_eq!(path.best(&channel).unwrap_err().test, NodeTest::PortBuffer);
    let strict = [paced(1_000_000, 100_000, 0, ns(300_000) - ns(150_000))];
    let path = PacedPort { link, host: &host, port: &strict, buffer: Octets::new(10_000) };
    assert_eq!(path.quickest(&channel).unwrap_err().test, NodeTest::FifoPort, "another's promise counts");
}

/// Short packets pass the host's port sooner than the largest one: so much more varies behind it.
#[test]
fn packets_of_several_sizes_vary_at_the_port_of_a_paced_host_by_their_shortest_one() {
    let link = LinkModel::new(BitRate::from_mbit(100), FRAMING, 100);
    let mut path = PacedPort { link, host: &[], port: &[], buffer: Octets::new(10_000) };
    let [packet, least] = [1_000, 100].map(|octets| packet_span_up(link.rate, &FRAMING, Octets::new(octets)));
    let full = link.frame_span_max();
    let mut bound = |octets_least| {
        let channel = Ask { octets_least: Octets::new(octets_least), ..ask(2_000, 4_000, 16_000, 1_000) };
        path.best(&channel).expect("nothing else is there").delay
    };
    let with = |varies: Span| {
        let closer = Span::from_nanos((varies * packet.as_nanos()).as_nanos().div_ceil(2_000_000));
        (packet + full) * 2 + closer + link.host_slack
    };
    assert_eq!(bound(1_000), with(full));
    assert_eq!(bound(100), with(full + packet - least));
}

proptest! {
    /// Flows with random phases and jitter at one port, packet by packet.
    #[test]
    fn no_packet_stays_longer_than_a_fifo_port_promises(
        parts in prop::collection::vec((10u64..60, 1u64..12, 0u64..40, 0u64..60), 1..6),
        blocking in 0u64..12, draws in prop::collection::vec(0u64..1_000, 200)
    ) {
        let of = |part: &(u64, u64, u64, u64)| paced(part.0, part.1, part.2, Span::MAX);
        let flows: Vec<PacedFlow> = parts.iter().map(of).collect();
        let Ok(bound) = fifo_delay(flows.iter(), ns(blocking)) else { return Ok(()) };
        let mut draw = draws.iter().cycle();
        let mut arrivals: Vec<(u64, u64)> = vec![];
        for (flow, &(period, service, _, phase)) in flows.iter().zip(&parts) {
            let mut last = 0;
            for k in 0..60 {
                let late = draw.next().unwrap() % (flow.jitter.as_nanos() + 1);
                last = last.max(phase + k * period + late);
                arrivals.push((last, service));
            }
        }
        arrivals.sort_unstable();
        // The frame of another class begins just before each packet that finds the port idle.
        let mut free = 0u64;
        for (at, service) in arrivals {
            free = (if free <= at { at + blocking } else { free }) + service;
            prop_assert!(free - at <= bound.as_nanos());
        }
    }
}

/// Levels have the bounds that are stated: the first one at which a channel fits is its bound, and one that
/// is too short for anything has no channel.
#[test]
fn levels_have_the_bounds_that_are_stated() {
    let ms = Span::from_millis;
    let params = SegmentParams::new(BitRate::from_mbit(100), 2);
    let port = |bounds: &[Span]| {
        let discipline = Discipline::of(Some(Scheduler::Rcsp), None).unwrap();
        let discipline = discipline.with_levels(crate::rtip::LevelBounds::of(bounds).unwrap()).unwrap();
        let traffic = Traffic::periodic(ms(10)).unwrap();
        let none = Flow { traffic, service: Span::ZERO, delay: Span::ZERO };
        LinkPort::new(params, discipline, vec![none; 40], vec![Point::default(); LINK_POINTS]).unwrap()
    };
    let ask = Ask {
        traffic: Traffic::periodic(ms(10)).unwrap(),
        octets: Octets::new(1_000),
        octets_least: Octets::new(1),
    };
    let bound = |port: &mut LinkPort<Vec<Flow>, Vec<Point>>| {
        port.admit_best(&ask).map(|offer| offer.delay.minus(params.link.host_slack))
    };
    let mut stated = port(&[Span::from_micros(10), ms(7), ms(70)]);
    assert_eq!(bound(&mut stated), Ok(ms(7)), "10 us are shorter than what is ahead");
    assert!(bound(&mut port(&[ms(1), ms(2), ms(9)])).is_ok_and(|of| [1, 2, 9].map(ms).contains(&of)));
    let relaxed = stated.relax(0, &ask, ms(200)).delay.minus(params.link.host_slack);
    assert_eq!(relaxed, ms(140), "the fourth one has twice the third one's");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// The certificate's test of a port says what the port's own test said: it holds for the shortest bound
    /// that each channel had when it was admitted, and for no shorter one.
    #[test]
    fn the_test_of_a_certificate_is_that_of_the_port(
        kinds in prop::collection::vec((4_000u64..60_000, 0u64..9_000, 1u64..4, 60u64..1_400), 1..9),
        scheduler in prop_oneof![Just(Scheduler::DelayEdd), Just(Scheduler::Rcsp)],
        mbit in prop_oneof![Just(2u64), Just(10), Just(100)], units in 0u64..12_000_000
    ) {
        let params = SegmentParams::new(BitRate::from_mbit(mbit), 2);
        let mut port = port_of(params, scheduler, 10);
        if port.set_units(ns(units)).is_err() {
            return Ok(());
        }
        let (load, ordinary) = port.others();
        let mut all = vec![Standing::always(ordinary)];
        let holds = |all: &[Standing]| {
            let none = Flow { traffic: ordinary.0.traffic, service: ns(0), delay: ns(0) };
            let (mut flows, mut terms) = (vec![none; all.len()], vec![FlowTerms::default(); all.len()]);
            port_terms(&params.link, &load, all, all.len() - 1, &mut flows, &mut terms).map(drop)
        };
        for (x_min, more, burst, octets) in kinds {
            let ask = ask(x_min, x_min + more, (x_min + more) * burst, octets);
            let Ok(offer) = port.admit_best(&ask) else { break };
            let delay = offer.delay.minus(params.link.host_slack);
            all.push(Standing::always((ask, delay)));
            let held = holds(&all);
            prop_assert!(held.is_ok(), "{delay} of {all:?}: {held:?} {load:?}");
            let levels = link_levels(&params);
            let shorter = match scheduler {
                Scheduler::Rcsp => levels.into_iter().rev().find(|level| *level < delay),
                _ => Some(delay.minus(ns(1))),
            };
            if let Some(shorter) = shorter {
                all.last_mut().expect("it was pushed").delay = shorter;
                prop_assert!(holds(&all).is_err(), "{shorter} of {all:?}");
                all.last_mut().expect("it was pushed").delay = delay;
            }
        }
    }
}
