use super::*;
use crate::SegmentParams;
use crate::rtip::{Discipline, Point, Scheduler, Traffic};
use crate::subnet::{LINK_FLOWS_OWN, LINK_POINTS, LinkPort, largest_packet};
use proptest::prelude::*;
use rota_units::{BitRate, Octets};

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

fn ns(n: u64) -> Span {
    Span::from_nanos(n)
}

type Guaranteed = LinkPort<Vec<Flow>, Vec<Point>>;
type Statistical = StatisticalPort<Vec<u64>, Vec<StatisticalFlow>>;

fn ports(rate: u64, scheduler: Scheduler) -> (Guaranteed, Statistical) {
    let params = SegmentParams::new(BitRate::new(rate).unwrap(), 2);
    let flow = Flow { traffic: Traffic::periodic(ns(1)).unwrap(), service: ns(1), delay: ns(1) };
    let memory = (vec![flow; 200 + LINK_FLOWS_OWN], vec![Point::default(); LINK_POINTS]);
    let discipline = Discipline::of(Some(scheduler), None).unwrap();
    let guaranteed = LinkPort::new(params, discipline, memory.0, memory.1).unwrap();
    let none = StatisticalFlow { flow, late: Chance::NEVER };
    let cells = vec![0; STATISTICAL_CELLS];
    (guaranteed, StatisticalPort::new(params.link, cells, vec![none; STATISTICAL_MAX]))
}

/// Packets of 1,000 octets, 4 ms apart in bursts of ten, and a quarter of the time.
fn bursty() -> Ask {
    let traffic = Traffic::new(ms(4), ms(16), ms(160)).unwrap();
    Ask { traffic, octets: Octets::new(1_000), octets_least: Octets::new(1) }
}

#[test]
fn a_link_carries_more_of_the_statistical_class_than_of_the_guaranteed_one() {
    let (mut guaranteed, mut statistical) = ports(100_000_000, Scheduler::DelayEdd);
    let ask = Ask { traffic: Traffic::new(ms(4), ms(16), ms(160)).unwrap(), ..bursty() };
    // Guaranteed ones whose bound is as good: at 20 ms the peak rates decide.
    let fits = |port: &mut Guaranteed| {
        let offer = port.keeping(&ask, ms(20)).ok();
        offer.is_some_and(|offer| port.admit_offered(&ask, &offer).is_ok())
    };
    let peaks = (0..200).take_while(|_| fits(&mut guaranteed)).count();
    let (fresh, late) = (ports(100_000_000, Scheduler::DelayEdd).0.certain(), Chance::of_down(1, 1_000));
    let fits = |port: &mut Statistical| {
        let place = port.channels().len();
        let admitted = port.admit_best(&fresh, &ask, late);
        admitted.is_ok_and(|_| port.relax(place, &ask, ms(20)).delay == ms(20))
    };
    let many = (0..200).take_while(|_| fits(&mut statistical)).count();
    assert!(many * 10 >= peaks * 13, "{many} of the one class, {peaks} of the other");
    let denied = statistical.asked(&fresh, late).best(&ask).unwrap_err();
    assert!(
        [NodeTest::Overflow, NodeTest::DeddSum, NodeTest::TableFull].contains(&denied.test),
        "{denied:?}"
    );
}

#[test]
fn a_standing_channel_is_kept_against_later_ones_of_both_classes() {
    let (mut guaranteed, mut port) = ports(10_000_000, Scheduler::DelayEdd);
    let (ask, late) = (bursty(), Chance::of_down(1, 100));
    let none = guaranteed.certain();
    let first = port.admit_best(&none, &ask, late).unwrap();
    // Its bound is the least one: no second channel has room beside it.
    let denied = port.asked(&none, late).best(&ask).unwrap_err();
    assert_eq!(denied.test, NodeTest::DeddSum);
    assert!(denied.margin >= packet_cost(&port.link, ask.octets));
    let relaxed = port.relax(0, &ask, first.delay + ms(30));
    assert_eq!(relaxed.delay, first.delay + ms(30));
    assert!(port.asked(&none, late).best(&ask).unwrap().delay > first.delay);
    // A guaranteed channel of most of the link leaves too little for one that is active by itself.
    let traffic = Traffic::periodic(Span::from_micros(1_600)).unwrap();
    let large = Ask { traffic, octets: Octets::new(1_400), ..ask };
    guaranteed.admit_best(&large).unwrap();
    let denied = port.check(&guaranteed.certain()).unwrap_err();
    assert_eq!(denied.test, NodeTest::Overflow, "22 % and the share of ordinary traffic beside 75 %");
    guaranteed.release(0);
    assert_eq!(port.check(&guaranteed.certain()), Ok(()));
    // One that allows more is refused for the sake of one that allows less.
    let tight = Chance::of_down(1, 1_000_000);
    let (_, mut port) = ports(10_000_000, Scheduler::Rcsp);
    port.admit_best(&none, &ask, tight).unwrap();
    port.relax(0, &ask, ms(150));
    let admitted = (0..20).take_while(|_| {
        let place = port.channels().len();
        let fits = port.admit_best(&none, &ask, Chance::of_down(1, 2)).is_ok();
        port.relax(place.min(port.channels().len() - 1), &ask, ms(150));
        fits
    });
    let admitted = admitted.count();
    assert!((2..=3).contains(&admitted), "more than four at once exceed the port: {admitted}");
    // The least packet fits beside them, and what leaves makes room.
    let octets = largest_packet(&mut port.asked(&none, late), &ask, Span::MAX);
    assert!(octets.is_some_and(|octets| octets < ask.octets), "{octets:?}");
    port.release(0);
    assert!(port.asked(&none, Chance::of_down(1, 2)).best(&ask).is_ok(), "the strict one is gone");
}

#[test]
fn a_channel_that_never_pauses_is_admitted_by_its_rate() {
    let (guaranteed, mut port) = ports(10_000_000, Scheduler::DelayEdd);
    let ask = Ask { traffic: Traffic::periodic(ms(4)).unwrap(), ..bursty() };
    let (none, late) = (guaranteed.certain(), Chance::of_down(1, 10));
    let mut fits = || {
        let place = port.channels().len();
        let admitted = port.admit_best(&none, &ask, late);
        admitted.map(|_| port.relax(place, &ask, ms(150))).map_err(|denied| denied.test)
    };
    // 22 % each, and 5 % for ordinary traffic.
    let answers: Vec<_> = (0..5).map(|_| fits().map(|_| ())).collect();
    assert_eq!(answers[..4], [Ok(()); 4]);
    assert_eq!(answers[4], Err(NodeTest::Overflow));
}

/// Serves greedy packets by the order of the port, the largest frame of others first: how long one of the
/// statistical class takes at most.
fn longest(above: &[Flow], below: &[Flow], ahead: Span, packets: u64) -> Span {
    let arrivals = |flows: &[Flow]| {
        let all = flows.iter().flat_map(|flow| (1..=packets).map(|m| (flow.traffic.greedy(m), flow.service)));
        let mut all: Vec<(Span, Span)> = all.collect();
        all.sort();
        all
    };
    let (above, below) = (arrivals(above), arrivals(below));
    let (mut now, mut i, mut j, mut most) = (ahead, 0, 0, Span::ZERO);
    while j < below.len() {
        if let Some((at, service)) = above.get(i).filter(|(at, _)| *at <= now) {
            (now, i) = (now.max(*at) + *service, i + 1);
        } else if below[j].0 <= now {
            now += below[j].1;
            most = most.max(now.minus(below[j].0));
            j += 1;
        } else {
            let next = above.get(i).map_or(below[j].0, |(at, _)| (*at).min(below[j].0));
            now = now.max(next);
        }
    }
    most
}

proptest! {
    /// While the active channels do not exceed the port, no packet takes longer than the bound.
    #[test]
    fn the_bound_holds_while_no_overflow_set_is_active(
        above in prop::collection::vec((1u64..20, 10u64..200, 1u64..4), 0..4),
        below in prop::collection::vec((1u64..20, 10u64..200), 1..5),
        ahead in 0u64..50,
    ) {
        let bursts = |&(service, x_min, burst): &(u64, u64, u64)| {
            let traffic = Traffic::of_parts(ns(x_min), burst, ns(x_min * 2)).unwrap();
            Flow { traffic, service: ns(service), delay: ns(0) }
        };
        let above: Vec<Flow> = above.iter().map(bursts).collect();
        let below: Vec<Flow> = below
            .iter()
            .map(|&(service, x_min)| {
                let traffic = Traffic::periodic(ns(x_min)).unwrap();
                Flow { traffic, service: ns(service), delay: ns(0) }
            })
            .collect();
        let load = above.iter().map(crate::rtip::load::load_up).sum::<u128>();
        let active = below.iter().map(crate::rtip::load::load_up).sum::<u128>();
        prop_assume!(load + active <= WHOLE);
        let burst = |flow: &Flow| {
            let work = flow.service.as_nanos() * flow.traffic.burst() * flow.traffic.pause();
            ns(work.div_ceil(flow.traffic.interval().as_nanos()))
        };
        let ahead = ns(ahead);
        let all = ahead + above.iter().map(burst).sum::<Span>();
        let certain = Certain { ahead: all, load, ordinary: 0 };
        let bound = certain.bound(below.iter().map(|flow| flow.service).sum()).unwrap();
        let found = longest(&above, &below, ahead, 60);
        prop_assert!(found <= bound, "{} beyond {}", found, bound);
    }
}
