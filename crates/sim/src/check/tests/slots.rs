//! R4: what a holder may send in its slots. R3: how long a slot is, and what fits a rotation. R2, R8: which
//! stations may send. R5, S6: what a station may have asked for and keep.

use super::*;
use rota_admission::{Pace, nrt_need};

/// The slots of the first station.
struct Sender {
    bench: Bench,
    checker: Slots,
}

impl Sender {
    fn new() -> Self {
        let bench = Bench::ring(true);
        let mut sender = Self { bench, checker: Slots::default() };
        assert_eq!(sender.see(Seen::Acted { host: 0 }), none());
        sender
    }

    fn see(&mut self, seen: Seen) -> Vec<&'static str> {
        self.bench.look(&mut self.checker, self.bench.start(), &[seen])
    }

    fn own(&self) -> Span {
        let link = self.bench.node(0).rether();
        let slots = link.list().expect("a ring").slots.as_slice().iter();
        let own = slots.filter(|slot| slot.station == link.station());
        own.map(|slot| Span::from_nanos(slot.tht_ns.into())).sum()
    }

    /// A fragment of so many octets behind its Ethernet header.
    fn sends(&mut self, stamp: (Generation, u64), octets: usize) -> Vec<&'static str> {
        let whole = frame(Kind::Data, 1, stamp, |_| 1_400);
        let frame: Frame = Rc::from(&whole[..14 + octets]);
        // A frame that was cut short is none of ours: its length stands in it.
        assert_eq!(octets, whole.len() - 14);
        self.see(sent(0, Kind::Data, &frame, true))
    }
}

/// A frame of the length whose time on the wire is `frame`.
fn full() -> usize {
    frame(Kind::Data, 1, (generation(5), 1), |_| 1_400).len() - 14
}

#[test]
fn r4_a_holder_sends_under_one_token_what_its_slots_hold() {
    let stamp = (generation(5), 9);
    let mut sender = Sender::new();
    let each = sender.bench.settings.link.frame_span_up(full() as u64);
    let most = sender.own().as_nanos() / each.as_nanos();
    assert!(most > 0);
    for _ in 0..most {
        assert_eq!(sender.sends(stamp, full()), none());
    }
    assert_eq!(sender.sends(stamp, full()), ["R4"]);
    // Another token, generation or boot begins anew.
    assert_eq!(sender.sends((generation(5), 10), full()), none());
    assert_eq!(sender.sends((generation(6), 10), full()), none());
    (1..most).for_each(|_| assert_eq!(sender.sends((generation(6), 10), full()), none()));
    sender.bench.world.hosts[0].boots += 1;
    assert_eq!(sender.sends((generation(6), 10), full()), none());
}

/// To the nanosecond: the slot is exactly as long as what was sent, and then a nanosecond shorter.
#[test]
fn r4_a_slot_that_is_filled_to_the_last_octet_holds_its_unit() {
    let each = Sender::new().bench.settings.link.frame_span_up(full() as u64);
    for (less, found) in [(Span::ZERO, none()), (NS, vec!["R4"])] {
        let mut sender = Sender::new();
        // Its node has lost its slots in the event that closes the last: the list before counts.
        sender.bench.world.hosts[0].node = Bench::plain().world.hosts[0].node.clone();
        sender.checker = Slots::default();
        let list = sender.bench_list(each.minus(less));
        assert_eq!(sender.see(sent(0, Kind::List, &list, true)), none());
        assert_eq!(sender.sends((generation(5), 9), full()), found);
        // With no slot at all another rule tells.
        assert_eq!(sender.see(Seen::Acted { host: 0 }), none());
        assert_eq!(sender.sends((generation(5), 9), full()), none());
    }
}

impl Sender {
    /// A list from station 1 that gives it a slot of this length, and other stations longer ones.
    fn bench_list(&self, tht: Span) -> Frame {
        let list = Bench::ring(true).list(3, &[(1, tht, true), (2, ms(9), true)]);
        frame(Kind::List, 1, (generation(5), 9), |body| list.emit(body))
    }
}

#[test]
fn r3_a_slot_is_as_long_as_the_unit_of_the_contract() {
    let mut sender = Sender::new();
    let open = Seen::Flow { flow: 0, state: FlowState::Open };
    assert_eq!(sender.see(open.clone()), none());
    let link = sender.bench.settings.link;
    let slot = sender.own();
    let needs = |octets: u32| link.unit_span_joined_up(rota_units::Octets::new(octets.into()));
    let most = (1..60_000).take_while(|octets| needs(*octets) <= slot).last().expect("some");
    for (octets, found) in [(most, none()), (most + 1, vec!["R3"])] {
        sender.bench.world.flows_mut()[0].granted.contract.unit_octets_max = octets;
        assert_eq!(sender.see(open.clone()), found, "{octets}");
    }
    // Two units a cycle need the slot twice.
    let granted = &mut sender.bench.world.flows_mut()[0].granted;
    granted.contract.period_ns = granted.cycle().as_nanos() / 2;
    let pace = Pace::of(granted.period(), granted.cycle()).expect("a pace");
    assert_eq!(pace.units(), 2);
    let most = (1..60_000).take_while(|octets| needs(*octets) * 2 <= slot).last().expect("some");
    for (octets, found) in [(most, none()), (most + 1, vec!["R3"])] {
        sender.bench.world.flows_mut()[0].granted.contract.unit_octets_max = octets;
        assert_eq!(sender.see(open.clone()), found, "{octets}");
    }
    assert_eq!(sender.see(Seen::Flow { flow: 0, state: FlowState::Ended }), none());
}

#[test]
fn r3_slots_and_ordinary_traffic_fit_the_rotation() {
    let acted = [Seen::Acted { host: 1 }];
    let mut bench = Bench::ring(true);
    let slots = bench.node(1).rether().list().expect("a ring").slots;
    let all: Span = slots.as_slice().iter().map(|slot| Span::from_nanos(slot.tht_ns.into())).sum();
    // The rotation that is just long enough: what ordinary traffic needs depends on it.
    let fits = |trt: Span| {
        let settings = bench.settings.clone().with(|medium| medium.trt = trt);
        all + nrt_need(&settings.params(2), all, true).total() <= trt
    };
    let (mut low, mut high) = (Span::ZERO, bench.settings.trt);
    assert!(fits(high));
    while high.minus(low) > NS {
        let middle = low + high.minus(low).div_down(2);
        *(if fits(middle) { &mut high } else { &mut low }) = middle;
    }
    for (trt, found) in [(high, none()), (low, vec!["R3"])] {
        bench.settings.trt = trt;
        assert_eq!(bench.look(&mut Ledgers::default(), bench.start(), &acted), found, "{trt}");
    }
    // A list is looked at once, and again when it has changed.
    let mut checker = Ledgers::default();
    assert_eq!(bench.look(&mut checker, bench.start(), &acted), ["R3"]);
    assert_eq!(bench.look(&mut checker, bench.start(), &acted), none());
    bench.world.open_flow(1, 4, 500, true).expect("a sound request");
    bench.world.run_for(ms(1_500));
    assert_eq!(bench.look(&mut checker, bench.start(), &acted), ["R3"]);
}

/// All slots of this ring are in the rest.
#[test]
fn r3_slots_of_a_partition_stay_in_its_part_of_the_cycle() {
    let acted = [Seen::Acted { host: 1 }];
    for (percent, found) in [(1, none()), (99, vec!["R3"])] {
        let mut bench = Bench::ring(true);
        let studio = "studio".parse().expect("a name");
        bench.settings.medium.partitions.add(studio, percent).expect("room");
        assert_eq!(bench.look(&mut Ledgers::default(), bench.start(), &acted), found, "{percent} %");
    }
}

#[test]
fn r5_a_station_has_one_slot_for_each_time_it_asked() {
    let mut bench = Bench::ring(true);
    bench.world.open_flow(0, 4, 500, true).expect("a sound request");
    bench.world.run_for(ms(1_500));
    let link = bench.node(0).rether();
    let own = link.list().expect("a ring").slots.as_slice().iter().filter(|s| s.station == link.station());
    assert_eq!(own.count(), 2);
    let look = |bench: &Bench| bench.look(&mut Ledgers::default(), bench.start(), &[Seen::Acted { host: 0 }]);
    assert_eq!(look(&bench), none());
    bench.world.flows_mut()[3].from = 3;
    assert_eq!(look(&bench), ["R5"], "another station asked");
    bench.world.flows_mut()[0].asked = 1;
    assert_eq!(look(&bench), none(), "a channel that grows has one more");
}

#[test]
fn s6_a_queue_holds_as_many_of_the_shortest_frames_as_its_time_lets_through() {
    let mut bench = Bench::ring(true);
    (0..9).for_each(|_| bench.world.ordinary(3, 4, 400));
    let queued = bench.node(3).port().queued_frames() as u64;
    assert!(queued > 5);
    let rate = bench.settings.link.rate;
    for (frames, found) in [(queued, none()), (queued - 1, vec!["S6"])] {
        bench.settings.nrt_queue = rate.span_of_up(rota_units::Octets::new((frames - 2) * 60));
        let acted = [Seen::Acted { host: 3 }];
        assert_eq!(bench.look(&mut Ledgers::default(), bench.start(), &acted), found);
    }
}

#[test]
fn r2_r8_fragments_and_ordinary_frames_leave_a_holder_that_has_a_slot() {
    let ring = Bench::ring(true);
    let plain = Bench::plain();
    let data = frame(Kind::Data, 1, (generation(5), 9), |_| 30);
    let other: Frame = Rc::from([0u8; 60]);
    let ordinary = |host, holding| Seen::Sent { host, frame: other.clone(), kind: None, holding };
    let table = [
        (&ring, sent(0, Kind::Data, &data, true), none()),
        (&ring, sent(0, Kind::Data, &data, false), vec!["R2"]),
        (&ring, sent(3, Kind::Data, &data, true), vec!["R8"]),
        (&ring, sent(3, Kind::Data, &data, false), vec!["R2", "R8"]),
        (&ring, ordinary(3, true), none()),
        (&ring, ordinary(3, false), vec!["R2"]),
        (&plain, ordinary(3, false), none()),
        (&ring, sent(3, Kind::Announce, &data, false), none()),
    ];
    for (bench, seen, found) in table {
        assert_eq!(
            bench.look(&mut RightToSend::default(), bench.start(), std::slice::from_ref(&seen)),
            found,
            "{seen:?}"
        );
    }
    // A unit may leave in the event that closes its slot, and not behind it.
    let mut bench = Bench::ring(true);
    let mut checker = RightToSend::default();
    assert_eq!(bench.look(&mut checker, bench.start(), &[Seen::Acted { host: 0 }]), none());
    let without = bench.node(3).clone();
    bench.world.hosts[0].node = Some(without);
    let last = [sent(0, Kind::Data, &data, true), Seen::Acted { host: 0 }];
    assert_eq!(bench.look(&mut checker, bench.start(), &last), none());
    let late = [sent(0, Kind::Data, &data, true)];
    assert_eq!(bench.look(&mut checker, bench.start(), &late), ["R8"]);
}
