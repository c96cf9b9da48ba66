//! Channels across segments that get another contract while units are sent.

use crate::hops::{Net, id};
use rota_admission::Clocks;
use rota_admission::certificate::{FrameTerms, RetherTerms};
use rota_contract::{AskedChange, AskedTerms, CloseCause};
use rota_proto::MediumKind::{Link, Rether};
use rota_proto::{
    Beyond, ChannelEvent, ChannelId, Destination, MediumKind, OpenRequest, ResizeError, TrafficSpec,
};
use rota_units::{Instant, Span};
use std::collections::BTreeMap;

const PERIOD: Span = Span::from_millis(40);
const SERVICE: u16 = 7;
const ROOM: u32 = 8_000;
const FROM: usize = 0;

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

/// A network with an open channel from the first node to the last one.
struct Open {
    net: Net,
    to: usize,
    sending: ChannelId,
    receiving: ChannelId,
    next: u64,
    octets: u32,
    period: Span,
    /// The bound that stands at the sender, the one before, and until when that holds, too.
    bound: Span,
    former: (Span, Instant),
    /// The bound of each unit when it was handed over.
    bounds: BTreeMap<u64, Span>,
    /// Events that were heeded.
    kept: Vec<(usize, ChannelEvent)>,
}

fn joined(mut net: Net, links: &[(usize, usize)]) -> Net {
    net.meet(0..=links.iter().map(|(_, other)| *other).max().unwrap_or(0), links);
    net
}

fn chain(kinds: &[MediumKind]) -> Open {
    let links: Vec<_> = (0..kinds.len()).map(|node| (node, node + 1)).collect();
    open(joined(Net::new(kinds), &links), kinds.len())
}

fn diamond() -> Open {
    open(joined(Net::diamond(Rether), &[(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]), 3)
}

fn open(net: Net, to: usize) -> Open {
    open_for(net, to, (1_000, PERIOD, ROOM), Beyond::default())
}

fn open_for(mut net: Net, to: usize, (octets, period, most): (u32, Span, u32), beyond: Beyond) -> Open {
    net.nodes[to].listen(SERVICE);
    let traffic = TrafficSpec::fixed(octets, period, false).with_room(most);
    let request = OpenRequest { to: Destination::Node(id(to)), service: SERVICE, traffic };
    let now = net.now;
    let sending = net.nodes[FROM].open_beyond(now, &request, beyond).expect("sound");
    net.drain(FROM);
    let (bound, receiving) = (Span::ZERO, ChannelId(0));
    let mut open = Open {
        net,
        to,
        sending,
        receiving,
        next: 0,
        octets,
        period,
        bound,
        former: (bound, Instant::ZERO),
        bounds: BTreeMap::new(),
        kept: Vec::new(),
    };
    let (receiving, room) = open.until(to, |event| match event {
        ChannelEvent::Incoming { channel, granted, .. } => Some((*channel, granted.contract.unit_octets_max)),
        _ => None,
    });
    assert_eq!(room, most, "the receiver makes its memory for what the channel may become");
    open.receiving = receiving;
    let now = open.net.now;
    open.net.nodes[to].state_memory(receiving, 32);
    assert!(open.net.nodes[to].accept(now, receiving));
    open.net.drain(to);
    open.bound = open.until(FROM, |event| match event {
        ChannelEvent::Opened { granted, .. } => Some(granted.bound()),
        _ => None,
    });
    open.net.told.clear();
    open
}

impl Open {
    fn until<T>(&mut self, node: usize, pick: impl Fn(&ChannelEvent) -> Option<T>) -> T {
        for _ in 0..6_000 {
            let found = self.net.told.iter().filter(|(of, _)| *of == node).find_map(|(_, event)| pick(event));
            if let Some(found) = found {
                return found;
            }
            self.net.run(ms(1));
        }
        panic!("node {node} was never told; it was: {:?}", self.net.told);
    }

    /// One unit, and the time until the next one.
    fn unit(&mut self) {
        self.heed();
        let bound = if self.net.now < self.former.1 { self.bound.max(self.former.0) } else { self.bound };
        self.bounds.insert(self.next, bound);
        self.net.unit(self.sending, self.next, self.octets);
        self.next += 1;
        let end = self.net.now + self.period;
        while self.net.now < end {
            self.net.run(ms(1).min(end.since(self.net.now)));
            self.heed();
        }
    }

    /// The program goes by the contract that it is told.
    fn heed(&mut self) {
        let told = std::mem::take(&mut self.net.told);
        for (node, event) in &told {
            if let ChannelEvent::Changed { channel, granted } = event
                && (*node, *channel) == (FROM, self.sending)
            {
                let longer = self.bound.minus(granted.bound());
                self.former = (self.bound, self.net.now + longer);
                (self.bound, self.octets) = (granted.bound(), granted.contract.unit_octets_max);
                self.period = granted.period();
            }
        }
        self.kept.extend(told);
    }

    fn ask(&mut self, change: &AskedChange) -> Result<(), ResizeError> {
        let now = self.net.now;
        let asked = self.net.nodes[FROM].change(now, self.sending, change);
        self.net.drain(FROM);
        asked
    }

    /// All units have come whole, once and in order, and none was late by the bound that it was promised.
    fn check(&self) {
        let came: Vec<u64> = self.net.came.iter().map(|came| came.number).collect();
        assert_eq!(came, (0..self.next).collect::<Vec<_>>(), "lost, doubled or overtaken");
        for came in &self.net.came {
            let bound = self.bounds[&came.number];
            assert!(came.took <= bound, "unit {} took {} of {bound}", came.number, came.took);
        }
    }

    fn close(&mut self) -> Span {
        let (now, to) = (self.net.now, self.to);
        self.net.nodes[FROM].close(now, self.sending);
        self.net.drain(FROM);
        for node in [to, FROM] {
            let cause = self.until(node, |event| match event {
                ChannelEvent::Closed { cause, .. } => Some(*cause),
                _ => None,
            });
            assert_eq!(cause, CloseCause::Finished);
        }
        let took = self.net.now.since(now);
        self.net.run(ms(300));
        for node in &self.net.nodes[..=to] {
            let held = node.holdings();
            assert_eq!(
                (held.entries, held.held, held.ends, held.hops, held.labels),
                (0, 0, 0, 0, 0),
                "{held:?}"
            );
            assert_eq!((held.buffer_octets, held.parked), (0, 0));
        }
        took
    }

    /// Counts of entries, hops and local ids of all nodes.
    fn held(&self) -> Vec<(usize, usize, usize)> {
        let nodes = self.net.nodes[..=self.to].iter().map(|node| node.holdings());
        nodes.map(|held| (held.entries, held.hops, held.labels)).collect()
    }
}

fn size(octets: u32) -> AskedChange {
    AskedChange::of_size(octets)
}

/// TENET-7-4: changes of a stream, each at both ends, and nothing of the old contracts stays.
#[test]
fn a_stream_is_changed_while_it_is_sent_and_no_unit_is_lost_late_or_overtaken() {
    for kinds in [&[Rether, Rether][..], &[Link, Rether], &[Rether, Link], &[Link, Link, Link]] {
        let mut open = chain(kinds);
        let before = open.held();
        let quicker = AskedChange { period: Some(ms(30)), ..size(2_500) };
        let terms = AskedTerms { delay: Some(ms(250)), ..AskedTerms::default() };
        let shorter = AskedChange { terms, ..AskedChange::default() };
        for change in [size(6_000), quicker, shorter, size(900)] {
            for _ in 0..10 {
                open.unit();
            }
            open.ask(&change).expect("sound");
            for _ in 0..40 {
                open.unit();
            }
            let changed = |node| {
                let of = |(of, event): &(usize, ChannelEvent)| match event {
                    ChannelEvent::Changed { granted, .. } if *of == node => Some(granted.contract),
                    _ => None,
                };
                open.kept.iter().filter_map(of).collect::<Vec<_>>()
            };
            let (source, destination) = (changed(FROM), changed(open.to));
            assert_eq!((source.len(), destination.len()), (1, 1), "{kinds:?}: {:?}", open.kept);
            let of = |contract: &rota_contract::Contract| (contract.unit_octets_max, contract.period_ns);
            assert_eq!(of(&source[0]), of(&destination[0]));
            assert!(change.unit_octets_max.is_none_or(|octets| octets == open.octets));
            assert!(change.period.is_none_or(|period| period == open.period));
            assert!(open.bound <= change.terms.delay.unwrap_or(ms(500)));
            open.kept.clear();
            assert_eq!(open.held(), before, "{kinds:?}: nothing of the old contract stays");
        }
        open.net.run(ms(600));
        open.check();
        let tally = open.net.nodes[open.to].received(open.receiving).expect("it is open");
        assert_eq!(
            (tally.units, tally.lost, tally.incomplete, tally.late),
            (open.next, 0, 0, 0),
            "{kinds:?}"
        );
        let took = open.close();
        assert!(took <= open.bound + ms(120), "{kinds:?}: the end took {took}");
    }
}

/// A change takes both paths along, and the channel goes on by the new contract on the second one.
#[test]
fn a_stream_with_a_path_in_reserve_is_changed_and_switches_by_the_new_contract() {
    let second = Beyond { has_second: true, ..Beyond::default() };
    let net = joined(Net::diamond(Rether), &[(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]);
    let mut open = open_for(net, 3, (1_000, PERIOD, ROOM), second);
    let before = open.held();
    let quicker = AskedChange { period: Some(ms(30)), ..size(2_500) };
    for change in [size(6_000), quicker] {
        open.kept.clear();
        (0..10).for_each(|_| open.unit());
        open.ask(&change).expect("sound");
        (0..40).for_each(|_| open.unit());
        let is_change = |(_, event): &&(usize, ChannelEvent)| matches!(event, ChannelEvent::Changed { .. });
        let told: Vec<usize> = open.kept.iter().filter(is_change).map(|(node, _)| *node).collect();
        assert_eq!((told.len(), open.kept.len()), (2, 2), "{:?}", open.kept);
        assert_eq!(open.held(), before, "two paths, and nothing of the old ones");
    }
    open.net.run(ms(600));
    open.check();
    let gateway = open.net.nodes[FROM].path_of(open.sending)[1].node.0 as usize - 1;
    open.net.kill(gateway, (0..=open.to).filter(|node| *node != gateway));
    let is_rerouted = |event: &ChannelEvent| match event {
        ChannelEvent::Rerouted { granted, .. } => Some(granted.contract),
        _ => None,
    };
    let contracts = [FROM, open.to].map(|node| open.until(node, is_rerouted));
    for contract in contracts {
        assert_eq!((contract.unit_octets_max, contract.period_ns), (2_500, ms(30).as_nanos()));
    }
    // The ring has to find a holder of its token first.
    open.net.run(ms(2_000));
    (0..10).for_each(|_| open.unit());
    open.net.run(ms(600));
    open.check();
}

/// A change that is asked for and closed at once, at each moment: both programs end, in time, with all units.
#[test]
fn a_channel_ends_promptly_in_each_step_of_a_change() {
    for steps in (0..80).step_by(4) {
        let mut open = chain(&[Rether, Rether]);
        for _ in 0..5 {
            open.unit();
        }
        open.ask(&size(6_000)).expect("sound");
        open.net.run(ms(steps * 4));
        open.heed();
        open.unit();
        let took = open.close();
        assert!(took <= open.bound + ms(250), "after {steps} steps the end took {took}");
        open.check();
    }
}

/// A change of a time was refused as one of a channel of one segment.
#[test]
fn a_change_of_a_channel_that_is_not_there_says_so() {
    let mut open = chain(&[Rether, Rether]);
    let slower = AskedChange { period: Some(ms(5)), ..AskedChange::default() };
    let (absent, now) = (ChannelId(999), open.net.now);
    let asked = open.net.nodes[FROM].change(now, absent, &slower);
    assert_eq!(asked, Err(ResizeError::NoChannel(absent)));
    open.close();
}

/// It says by which test, and the channel is what it was.
#[test]
fn a_change_that_is_denied_leaves_the_channel_as_it_was() {
    let mut open = chain(&[Rether, Rether]);
    let before = open.held();
    assert_eq!(open.ask(&size(ROOM + 1)), Err(ResizeError::Room { asked: ROOM + 1, room: ROOM }));
    let hasty = AskedTerms { delay: Some(ms(20)), ..AskedTerms::default() };
    let dense = AskedChange { period: Some(Span::from_micros(20)), ..AskedChange::default() };
    let short = AskedChange { period: Some(ms(2)), ..AskedChange::default() };
    let denied = [
        (AskedChange { terms: hasty, ..AskedChange::default() }, "PathDelay"),
        (AskedChange { period: dense.period, ..size(ROOM) }, "CyclePackets"),
        (short, "Room"),
    ];
    for (change, test) in denied {
        open.net.told.clear();
        open.ask(&change).expect("it is asked for");
        let is_pending = open.net.nodes[FROM].holdings().held == 2;
        if is_pending {
            assert!(matches!(open.ask(&size(2)), Err(ResizeError::Across(_))), "one change at a time");
        }
        let found = open.until(FROM, |event| match event {
            ChannelEvent::ChangeDenied { denied, name, .. } => Some((denied.test.name(), name.clone())),
            _ => None,
        });
        assert_eq!(found.0, test);
        open.net.run(ms(100));
        assert_eq!(open.held(), before, "{test}");
    }
    for _ in 0..10 {
        open.unit();
    }
    open.net.run(ms(300));
    open.check();
    open.close();
}

/// Fault 47 amid a change: the channel goes on by one contract, the same at both ends, or ends at both.
#[test]
fn a_gateway_that_dies_amid_a_change_leaves_one_contract() {
    let mut contracts = std::collections::BTreeSet::new();
    for at in (0..240).step_by(8) {
        let mut open = diamond();
        for _ in 0..5 {
            open.unit();
        }
        let gateway =
            open.net.nodes[FROM].path_of(open.sending).get(1).map_or(1, |node| node.node.0 as usize - 1);
        open.ask(&size(3_000)).expect("sound");
        open.net.run(ms(at));
        open.net.kill(gateway, (0..=open.to).filter(|node| *node != gateway));
        open.net.run(ms(1_500));
        let last = |node: usize| {
            let of = |(of, event): &(usize, ChannelEvent)| match event {
                ChannelEvent::Changed { granted, .. } | ChannelEvent::Rerouted { granted, .. }
                    if *of == node =>
                {
                    Some(granted.contract.unit_octets_max)
                }
                _ => None,
            };
            open.net.told.iter().rev().find_map(of)
        };
        let (source, destination) = (last(FROM), last(open.to));
        assert!(source.is_some() && source == destination, "after {at} ms: {:?}", open.net.told);
        contracts.extend(source);
        open.octets = source.unwrap_or(0);
        let number = open.next;
        open.net.unit(open.sending, number, open.octets);
        open.net.run(ms(500));
        let came = open.net.came.iter().map(|came| came.number).collect::<Vec<_>>();
        assert!(
            came.is_sorted_by(|one, other| one < other) && came.last() == Some(&number),
            "{at}: {came:?}"
        );
        let now = open.net.now;
        open.net.nodes[FROM].close(now, open.sending);
        open.net.drain(FROM);
        open.net.run(ms(1_000));
        for node in [0, 3 - gateway, 3] {
            let held = open.net.nodes[node].holdings();
            assert_eq!(
                (held.entries, held.held, held.ends, held.hops, held.labels),
                (0, 0, 0, 0, 0),
                "{at} ms"
            );
        }
    }
    assert_eq!(contracts.len(), 2, "some kept the old contract, some had the new one: {contracts:?}");
}

/// Octets of a unit each 40 ms that takes so many percent of 100 Mbit/s, roughly.
const fn percent(of: u32) -> u32 {
    of * 4_600
}

/// A channel that has 60 percent of each network of its way, all of which have 100 Mbit/s.
fn loaded(kinds: &[MediumKind], delay: Span) -> Open {
    let links: Vec<_> = (0..kinds.len()).map(|node| (node, node + 1)).collect();
    let beyond = Beyond { delay: Some(delay), ..Beyond::default() };
    open_for(joined(Net::new(kinds), &links), kinds.len(), (percent(60), PERIOD, percent(90)), beyond)
}

impl Open {
    /// The time of a cycle that the first node has reserved.
    fn reserved(&self) -> u64 {
        let ports = self.net.nodes[FROM].ports();
        ports.flat_map(|port| port.medium().reservations()).map(|slot| u64::from(slot.tht_ns)).sum()
    }

    /// The channel changes while units are sent; true if it does.
    fn changes(&mut self, change: &AskedChange) -> bool {
        (0..5).for_each(|_| self.unit());
        self.kept.clear();
        self.ask(change).expect("sound");
        (0..25).for_each(|_| self.unit());
        let denied = self.kept.iter().find_map(|(_, event)| match event {
            ChannelEvent::ChangeDenied { denied, .. } => Some(*denied),
            _ => None,
        });
        denied.is_none() && self.kept.iter().any(|(_, event)| matches!(event, ChannelEvent::Changed { .. }))
    }
}

/// TENET-7-4: less of a contract that has more than half of each network is never refused, and more needs
/// what is there beside the greater of both alone. No unit is lost, late or overtaken, and what the old
/// contract has left is there for others.
#[test]
fn a_change_needs_the_greater_of_both_contracts() {
    for kinds in [&[Link, Link][..], &[Link, Link, Link], &[Rether, Link], &[Link, Rether], &[Rether, Rether]]
    {
        let mut open = loaded(kinds, ms(180));
        let (before, reserved) = (open.held(), open.reserved());
        assert!(open.changes(&size(percent(50))), "{kinds:?}: less");
        assert!(open.reserved() < reserved, "{kinds:?}: {reserved} then and {} now", open.reserved());
        let slower = AskedChange { period: Some(ms(80)), ..size(percent(60)) };
        assert!(open.changes(&slower), "{kinds:?}: larger units, and half as many");
        assert!(open.changes(&AskedChange { period: Some(PERIOD), ..size(percent(40)) }), "{kinds:?}: more");
        let fits = open.changes(&size(percent(60)));
        assert!(fits, "{kinds:?}: more");
        assert!(open.changes(&size(percent(70))), "{kinds:?}: 70 percent in the place of 60");
        assert!(open.changes(&size(percent(60))), "{kinds:?}: and back");
        assert_eq!(open.held(), before, "{kinds:?}");
        open.net.run(ms(600));
        open.check();
        open.close();
    }
}

/// RETHER-2.3-14: what a segment cannot carry is refused, with both numbers, and the share is what it was;
/// so it is when another hop refuses.
#[test]
fn a_share_of_a_segment_that_cannot_grow_stays_what_it_was() {
    for kinds in [&[Rether, Link][..], &[Link, Rether]] {
        let mut open = loaded(kinds, ms(180));
        let (held, reserved) = (open.held(), open.reserved());
        let quicker = AskedChange { period: Some(ms(20)), ..size(percent(60)) };
        assert!(!open.changes(&quicker), "{kinds:?}: 120 percent");
        open.net.run(ms(600));
        assert_eq!((open.held(), open.reserved()), (held, reserved), "{kinds:?}");
        let denied = open.kept.iter().find_map(|(_, event)| match event {
            ChannelEvent::ChangeDenied { denied, .. } => Some(*denied),
            _ => None,
        });
        assert!(denied.is_some_and(|denied| denied.margin_ns > 0), "{kinds:?}: {denied:?}");
        open.check();
        open.close();
    }
}

/// A share that has grown is stated by each of its slots, which carry the packets together.
#[test]
fn a_share_that_has_grown_states_its_slots_for_the_certificate() {
    let mut open = loaded(&[Rether, Link], ms(180));
    // Another channel's slot stands behind that of this one.
    open.net.nodes[2].listen(SERVICE);
    let (now, traffic) = (open.net.now, TrafficSpec::fixed(1_000, PERIOD, false));
    let request = OpenRequest { to: Destination::Node(id(2)), service: SERVICE, traffic };
    let other = open.net.nodes[FROM].open_beyond(now, &request, Beyond::default()).expect("sound");
    open.net.drain(FROM);
    let second = open.until(2, |event| match event {
        ChannelEvent::Incoming { channel, .. } => Some(*channel),
        _ => None,
    });
    let now = open.net.now;
    assert!(open.net.nodes[2].accept(now, second));
    open.net.drain(2);
    open.until(FROM, |event| match event {
        ChannelEvent::Opened { channel, .. } if *channel == other => Some(()),
        _ => None,
    });
    assert!(open.changes(&size(percent(70))));
    let detail = open.net.nodes[FROM].detail(open.sending).expect("it is sent here");
    let part = rota_wire::RcapTerms::parse(&detail.hops[0].0.terms).expect("its part");
    let mut numbers = part.numbers();
    FrameTerms::read(&mut numbers).expect("the cost of a frame");
    let slots: Vec<_> = std::iter::from_fn(|| RetherTerms::read(&mut numbers)).collect();
    let packets = detail.terms.messages.packets(detail.terms.packet_max).expect("sound");
    let traffic = Clocks::APART.counted(&packets.traffic);
    let cycle = Span::from_nanos(slots[0].trt);
    assert_eq!(slots.len(), 2);
    assert_eq!(slots.iter().map(|slot| slot.units).sum::<u64>(), traffic.half_open(cycle));
    assert!(slots.iter().all(|slot| slot.octets == packets.octets.get() && slot.bound == slots[0].bound));
}

/// Units that left by the old contract have its time to come, whatever the new one takes.
#[test]
fn a_channel_that_ends_behind_a_change_to_a_shorter_bound_waits_for_the_longer_one() {
    let net = joined(Net::new(&[Link, Link]), &[(0, 1), (1, 2)]);
    let beyond = Beyond { delay: Some(ms(180)), ..Beyond::default() };
    let mut open = open_for(net, 2, (1_000, PERIOD, ROOM), beyond);
    let had = open.bound;
    open.unit();
    let terms = AskedTerms { delay: Some(ms(60)), ..AskedTerms::default() };
    open.ask(&AskedChange { terms, ..AskedChange::default() }).expect("sound");
    let has = open.until(FROM, |event| match event {
        ChannelEvent::Changed { granted, .. } => Some(granted.bound()),
        _ => None,
    });
    assert!(has + ms(60) < had, "{has} of {had}");
    let took = open.close();
    assert!(took + ms(5) >= had, "{took}, and the last unit has {had}");
}

/// A link keeps its packets within the shorter bound of both contracts while packets of the old one may come.
#[test]
fn a_share_gets_a_longer_bound_when_the_old_contract_is_over() {
    let beyond = Beyond { delay: Some(ms(20)), ..Beyond::default() };
    let mut open = open_for(joined(Net::new(&[Link]), &[(0, 1)]), 1, (1_000, PERIOD, ROOM), beyond);
    let (sending, had) = (open.sending, open.bound);
    let terms = AskedTerms { delay: Some(ms(120)), ..AskedTerms::default() };
    open.ask(&AskedChange { terms, ..AskedChange::default() }).expect("sound");
    open.until(FROM, |event| matches!(event, ChannelEvent::Changed { .. }).then_some(()));
    let bound = |open: &mut Open| open.net.nodes[FROM].relax_hop(sending, Span::ZERO).expect("its hop");
    assert!(bound(&mut open) <= had, "{} of {had}", bound(&mut open));
    open.net.run(ms(300));
    assert!(bound(&mut open) > had);
}
