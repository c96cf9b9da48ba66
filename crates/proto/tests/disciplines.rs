//! Ports of links that schedule packets by a discipline: conforming sources keep their bounds beside greedy,
//! random and misbehaving ones, beside slots of the same link, and beside ordinary frames without end.

use crate::hops::{Net, Path, ms, settings};
use rota_admission::rtip::{Chance, Discipline, Hold, Regulator, Scheduler, Traffic};
use rota_medium::Rng;
use rota_proto::MediumKind::Link;
use rota_proto::rtip::{HopShare, HopSpec};
use rota_proto::{ChannelId, Input, PortId, UnitRef};
use rota_units::{Instant, Span};
use std::collections::BTreeMap;

/// How a program hands its units over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Greedy,
    Random,
    /// Beyond its traffic.
    Hasty,
}

struct Sender {
    path: Path,
    traffic: Traffic,
    octets: u32,
    source: Source,
    next: Instant,
    given: u64,
    is_slot: bool,
}

impl Sender {
    fn advance(&mut self, rng: &mut Rng) {
        let traffic = &self.traffic;
        self.given += 1;
        self.next = match self.source {
            Source::Greedy => {
                let (at, before) = (traffic.greedy(self.given + 1), traffic.greedy(self.given));
                self.next + at.minus(before)
            }
            // An average apart each is always within its traffic.
            Source::Random => {
                let average = Span::from_nanos(traffic.interval().as_nanos().div_ceil(traffic.burst()));
                self.next + average + Span::from_nanos(rng.next_u64() % 9_000_000)
            }
            Source::Hasty => self.next + ms(rng.next_u64() % 3),
        };
    }
}

/// Channels over one link until it has no room, or 30 of them; the first one keeps to slots.
fn senders(net: &mut Net, rng: &mut Rng) -> Vec<Sender> {
    let trt = settings(Link).medium.trt;
    let mut all: Vec<Sender> = Vec::new();
    for number in 0..30u64 {
        let mut below = |most: u64| rng.next_u64() % most;
        let octets = 200 + below(1_200) as u32;
        let x_min = Span::from_micros(3_000 + below(25_000));
        let burst = 1 + below(4);
        let x_ave = x_min + Span::from_micros(below(20_000));
        let is_slot = number == 0;
        let traffic = match is_slot {
            true => Traffic::periodic(trt.div_down(6)),
            false => Traffic::new(x_min, x_ave, x_ave * burst),
        };
        let traffic = traffic.expect("sound");
        let share = match is_slot {
            true => HopShare::at_peak(&traffic, octets, trt).expect("six"),
            false => HopShare::by_discipline(traffic, octets),
        };
        let source = [Source::Greedy, Source::Greedy, Source::Random, Source::Hasty][below(4) as usize];
        let source = if is_slot { Source::Greedy } else { source };
        let Some((hops, bounds)) = net.try_reserve(&share) else { break };
        let path = net.enter(traffic, share, Regulator::Rate, hops, &bounds);
        all.push(Sender { path, traffic, octets, source, next: net.now, given: 0, is_slot });
    }
    assert!(all.len() > 10, "{} channels", all.len());
    all
}

/// The longest time of a packet on a link of this discipline, in thousandths of its bound.
fn longest(discipline: Discipline, seed: u64) -> u64 {
    let (mut net, mut rng) = (Net::with(&[Link], discipline), Rng::new(seed));
    let mut all = senders(&mut net, &mut rng);
    let (begin, cable) = (net.now + ms(5), settings(Link).medium.link.frame_span_max());
    all.iter_mut().for_each(|sender| sender.next = begin);
    let mut ready: BTreeMap<(u64, u64), Instant> = BTreeMap::new();
    let until = begin + ms(400);
    let mut flood = begin;
    while let Some(at) = all.iter().map(|sender| sender.next).min().filter(|at| *at < until) {
        let at = at.max(net.now);
        while flood <= at {
            net.run(flood.since(net.now));
            (0..4).for_each(|_| net.host_frame(0, PortId(0)));
            flood += Span::from_micros(480);
        }
        net.run(at.since(net.now));
        for sender in all.iter_mut().filter(|sender| sender.next <= at) {
            let number = sender.given;
            net.unit(sender.path.source, number, sender.octets);
            ready.insert((sender.path.destination.0, number), net.now);
            sender.advance(&mut rng);
        }
    }
    net.run(ms(1_500));
    let (mut most, slack) = (0, settings(Link).medium.link.host_slack);
    for sender in all.iter().filter(|sender| sender.source != Source::Hasty) {
        let path = &sender.path;
        let came: Vec<_> = net.came.iter().filter(|came| came.channel == path.destination).collect();
        let numbers: Vec<u64> = came.iter().map(|came| came.number).collect();
        assert_eq!(numbers, (0..sender.given).collect::<Vec<_>>(), "{discipline:?} {:?}", sender.source);
        for came in came {
            let bound = path.bound + cable;
            assert!(
                came.took <= bound,
                "{discipline:?} {seed}: unit {} {:?} took {} over {bound}",
                came.number,
                sender.source,
                came.took
            );
            if !sender.is_slot {
                // No host is late here: the rest is the bound on the port.
                let port = path.bound.minus(slack);
                most = most.max(came.took.as_nanos() * 1_000 / port.as_nanos());
            }
        }
    }
    let counts = net.packets(0, 0);
    assert_eq!([counts.over_buffers, counts.ended, counts.given_up], [0; 3], "{counts:?}");
    most
}

#[test]
fn packets_keep_their_bounds_under_each_discipline_and_need_half_of_them() {
    for scheduler in Scheduler::ALL {
        for hold in [Hold::RateJitter, Hold::None, Hold::DelayJitter] {
            let Ok(discipline) = Discipline::of(Some(scheduler), Some(hold)) else { continue };
            let most = (1..4).map(|seed| longest(discipline, seed)).max().unwrap_or(0);
            assert!(most >= 500, "{discipline:?}: {most} thousandths of a bound were needed");
        }
    }
}

/// Of the packets that wait, the one that is due first leaves first, though it came last.
#[test]
fn the_packet_that_is_due_first_leaves_first() {
    let mut net = Net::new(&[Link]);
    let traffic = Traffic::periodic(ms(20)).expect("sound");
    let share = HopShare::by_discipline(traffic, 1_400);
    let delays = [[ms(90); 7].as_slice(), &[ms(10)]].concat();
    let open = |delay: Span| {
        let (hops, bounds) = net.try_reserve(&share).expect("room");
        let relaxed = net.nodes[0].relax_hop(hops[0], delay).expect("a link relaxes");
        assert!(relaxed == delay && relaxed > bounds[0], "{relaxed}");
        net.enter(traffic, share, Regulator::Rate, hops, &[relaxed])
    };
    let paths: Vec<Path> = delays.into_iter().map(open).collect();
    paths.iter().for_each(|path| net.unit(path.source, 0, 1_400));
    net.run(ms(10));
    let quick = paths.last().expect("eight").destination;
    let place = net.came.iter().position(|came| came.channel == quick).expect("it came");
    // Three that had come before were in the card.
    assert!(place <= 4, "{place} before it: {:?}", net.came);
    assert_eq!(net.came.len(), 8);
    assert_eq!(net.nodes[0].relax_hop(rota_proto::ChannelId(77), ms(10)), None);
}

/// A guaranteed packet goes before all of the statistical class, though they came first and are due first.
#[test]
fn a_guaranteed_packet_goes_before_the_statistical_class() {
    for scheduler in [Scheduler::DelayEdd, Scheduler::Rcsp] {
        let mut net = Net::with(&[Link], Discipline::of(Some(scheduler), None).expect("a pair"));
        let traffic = Traffic::new(ms(20), ms(80), ms(800)).expect("sound");
        let guaranteed = HopShare::by_discipline(traffic, 1_400);
        let statistical = guaranteed.with_chance(Chance::of_down(1, 10));
        let mut open = |share: HopShare, delay: Span| {
            let (hops, _) = net.try_reserve(&share).expect("room");
            let relaxed = net.nodes[0].relax_hop(hops[0], delay).expect("a link relaxes");
            net.enter(traffic, share, Regulator::Rate, hops, &[relaxed])
        };
        let mut paths: Vec<Path> = (0..7).map(|_| open(statistical, ms(10))).collect();
        paths.push(open(guaranteed, ms(90)));
        paths.iter().for_each(|path| net.unit(path.source, 0, 1_400));
        net.run(ms(10));
        let first = paths.last().expect("eight").destination;
        let place = net.came.iter().position(|came| came.channel == first).expect("it came");
        // Three that had come before were in the card.
        assert!(place <= 4, "{scheduler:?}: {place} before it: {:?}", net.came);
        assert_eq!(net.came.len(), 8, "{scheduler:?}");
    }
}

/// Two statistical channels of one neighbour: one sends 50 times what it has stated, all of it late by its
/// word, beside guaranteed channels that have half of the next link. The gateway lets it have its contract
/// and a burst within its leeway once. The other one keeps its bound, and ordinary frames their time.
#[test]
fn a_neighbour_beyond_its_contract_takes_nothing_from_the_statistical_class() {
    let mut net = Net::new(&[Link, Link]);
    let guaranteed: Vec<_> = (0..4).map(|_| from_the_gateway(&mut net)).collect();
    let traffic = Traffic::new(ms(2), ms(8), ms(800)).expect("sound");
    let share = HopShare::by_discipline(traffic, 1_400).with_chance(Chance::of_down(1, 10));
    let regulator = Regulator::DelayAhead { step: Span::from_micros(16) };
    let mut open = |sent: Option<(Traffic, Span)>, delay: Span| {
        let (hops, _) = net.try_reserve(&share).expect("room");
        let relaxed = |node: usize| net.nodes[node].relax_hop(hops[node], delay).expect("a link relaxes");
        let bounds = [0, 1].map(relaxed);
        net.enter_from(sent.unwrap_or((traffic, delay)), traffic, share, regulator, hops, &bounds)
    };
    let flood = Span::from_micros(160);
    let hasty = open(Some((Traffic::periodic(flood).expect("sound"), Span::ZERO)), ms(100));
    let fair = open(None, ms(8));
    let mut given = [0; 3];
    let begin = net.now + ms(1);
    while net.now < begin + ms(400) {
        let at = net.now.since(begin);
        let due = [flood, ms(8), ms(1)].map(|every| at.count_down(every) + 1);
        if given[0] < due[0] {
            net.unit(hasty.source, given[0], 1_400);
        }
        if given[1] < due[1] {
            net.unit(fair.source, given[1], 1_400);
        }
        if given[2] < due[2] {
            net.host_frame(1, net.plug(1, 1).port);
            let schedule_ns = net.now.as_nanos();
            let unit = UnitRef { number: given[2], octets: 1_400, schedule_ns, left_out: 0 };
            for channel in guaranteed.iter().copied() {
                net.nodes[1].handle(net.now, Input::UnitReady { channel, unit });
            }
            net.drain(1);
        }
        given = due;
        net.run(Span::from_micros(20));
    }
    let sent = net.nodes[1].hop_counts(hasty.hops[1]).expect("it is entered").sent;
    let queued = net.nodes[1].port_at(net.plug(1, 1).port).expect("a port").queued_host_frames();
    net.run(ms(200));
    let came: Vec<_> = net.came.iter().filter(|came| came.channel == fair.destination).collect();
    assert_eq!(came.iter().map(|came| came.number).collect::<Vec<_>>(), (0..given[1]).collect::<Vec<_>>());
    let longest = came.iter().map(|came| came.took).max().expect("some came");
    let counts = net.nodes[1].hop_counts(hasty.hops[1]).expect("it is entered");
    // 400 ms of the contract, and the leeway of 100 ms at the least time between packets.
    assert!(longest <= fair.bound && sent <= 50 + 50 && queued <= 4, "{longest}, {sent}, {queued}");
    let packets = net.packets(1, 1);
    assert!(counts.policed > 2_000 && counts.policed == packets.policed, "{counts:?} {packets:?}");
    assert_eq!(counts.taken + counts.policed + counts.over_buffers, given[0], "{counts:?}");
}

/// A guaranteed channel that begins at the gateway and has an eighth of the second link.
fn from_the_gateway(net: &mut Net) -> ChannelId {
    let traffic = Traffic::periodic(ms(1)).expect("sound");
    let (way, from, now) = (net.way(1, 1, 2), net.way(2, 1, 1), net.now);
    let hop = net.nodes[1].reserve_hop(now, way, &HopShare::by_discipline(traffic, 1_400)).expect("sound");
    net.drain(1);
    net.run(ms(30));
    let (_, local_id) = net.nodes[2].enter_destination(from, 1_400).expect("room");
    let (regulator, delay) = (Regulator::Rate, ms(20));
    let spec = HopSpec { traffic, regulator, buffers: 1, delay, upstream: Span::ZERO, local_id };
    net.nodes[1].enter_source(hop, &spec).expect("granted");
    hop
}
