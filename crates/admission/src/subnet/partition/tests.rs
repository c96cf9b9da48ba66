use super::*;
use crate::rtip::Traffic;
use crate::slots::{Slot, close_slot};
use crate::subnet::RetherSegment;
use crate::{Pace, Request, SegmentParams, Test, admit, nrt_need, rest_has_room, still_fits};
use proptest::prelude::*;
use rota_units::{BitRate, Octets};

type Port = PartedPort<Vec<Flow>, Vec<Point>>;

fn ask(x_min: u64, burst: u64, octets: u64) -> Ask {
    let x_min = Span::from_micros(x_min);
    let traffic = Traffic::new(x_min, x_min * 2, x_min * (2 * burst)).expect("a sound one");
    Ask { traffic, octets: Octets::new(octets), octets_least: Octets::new(octets) }
}

fn partitions(percents: &[u8]) -> Partitions {
    let mut partitions = Partitions::default();
    for (at, percent) in percents.iter().enumerate() {
        assert_eq!(partitions.add(*percent), Ok(at as u8 + 1));
    }
    partitions
}

fn port(mbit: u64, percents: &[u8]) -> Result<Port, Denied> {
    let none = Flow { traffic: ask(1_000, 1, 1).traffic, service: Span::ZERO, delay: Span::ZERO };
    let memory = || (vec![none; 64], vec![Point::default(); 1 << 14]);
    let params = SegmentParams::new(BitRate::from_mbit(mbit), 2);
    PartedPort::new(params, Discipline::default(), partitions(percents), memory)
}

/// Channels of one kind until a partition refuses; how many it took, and the refusal.
fn fill(port: &mut Port, number: u8, ask: &Ask) -> (usize, Denied) {
    for taken in 0..64 {
        match port.part(number).best(ask) {
            Ok(offer) => port.admit_offered(number, ask, &offer).expect("the offer holds"),
            Err(denied) => return (taken, denied),
        }
    }
    panic!("a partition that is never full")
}

#[test]
fn a_full_partition_refuses_by_name_and_the_others_take_as_many_as_before() {
    let video = ask(10_000, 2, 1_400);
    let mut parted = port(10, &[40, 30]).expect("room for ordinary traffic");
    let (first, denied) = fill(&mut parted, 1, &video);
    assert_eq!(denied.partition, Some(1));
    let mut untouched = port(10, &[40, 30]).expect("room");
    let (alone, _) = fill(&mut untouched, 2, &video);
    let (beside, denied) = fill(&mut parted, 2, &video);
    assert!(first > beside && beside > 0, "{first} of 40 %, {beside} of 30 %");
    assert_eq!((beside, denied.partition), (alone, Some(2)), "a full partition takes nothing of another");
    let (rest, denied) = fill(&mut parted, 0, &video);
    assert_eq!(denied.partition, Some(0));
    // 1,400 octets each 20 ms on average are 6 % of 10 Mbit/s: 40 % have six, and never seven.
    assert_eq!(first, 6);
    assert_eq!(parted.whole().channels().len(), first + beside + rest);
    // A place that becomes free is free for its own partition only.
    parted.release(0, 1, &video);
    assert_eq!(parted.part(2).best(&video).unwrap_err().partition, Some(2));
    assert!(parted.part(1).best(&video).is_ok());
    assert_eq!(parted.part(3).best(&video).unwrap_err().partition, Some(3), "there is no third one");
}

/// The table of the whole port is full: the partition, which has room, keeps nothing of the channel.
#[test]
fn a_channel_that_the_whole_port_refuses_leaves_nothing_in_its_partition() {
    let video = ask(10_000, 1, 1_000);
    let none = Flow { traffic: video.traffic, service: Span::ZERO, delay: Span::ZERO };
    // The whole comes first: its own flows and one channel.
    let mut places = [LINK_FLOWS_OWN + 1, 8, 8].into_iter();
    let memory = || (vec![none; places.next().expect("three tables")], vec![Point::default(); 1 << 14]);
    let params = SegmentParams::new(BitRate::from_mbit(10), 2);
    let cut = partitions(&[40]);
    let mut port: Port = PartedPort::new(params, Discipline::default(), cut, memory).expect("room");
    let best = port.part(1).best(&video).expect("room for one");
    let offer = Offer { delay: best.delay + Span::from_millis(30), ..best };
    assert_eq!(port.admit_offered(1, &video, &offer), Ok(()));
    let refused = port.admit_offered(1, &video, &offer).expect_err("no further place");
    assert_eq!((refused.test, refused.partition), (NodeTest::TableFull, None));
    let flows = |port: &Port| port.parts[1].as_ref().map_or(0, |table| table.flows().len());
    assert_eq!(flows(&port), 1, "the refused one is not in it");
    port.release(0, 1, &video);
    assert_eq!(flows(&port), 0);
}

/// Slots of the link's own channels are the rest's: a full partition of packets stays as it is, and slots
/// beyond the rest are refused by it, also where the link had room for them.
#[test]
fn slots_of_the_link_count_in_the_rest_and_move_no_partition() {
    let video = ask(10_000, 2, 1_400);
    let mut parted = port(10, &[40]).expect("room");
    let before = parted.part(1).best(&video).expect("room");
    let few = Span::from_millis(3);
    assert_eq!(parted.set_units(few), Ok(()));
    let beside = parted.part(1).best(&video).expect("still room");
    assert!(beside.delay > before.delay, "slots go before packets of every partition");
    // 31.25 ms have room for 20 ms of slots, but 60 % of them have not.
    let many = Span::from_millis(20);
    assert_eq!(parted.set_units(many).unwrap_err().partition, Some(0));
    assert_eq!(parted.part(1).best(&video), Ok(beside), "nothing has changed");
    assert_eq!(port(10, &[]).expect("a port").set_units(many), Ok(()));
    let (taken, _) = fill(&mut parted, 1, &video);
    assert_eq!(taken, 6, "as many as without slots");
    assert_eq!(parted.set_units(Span::ZERO), Ok(()));
}

/// A longer bound leaves others of the partition more room, and the channel ends by its longer bound.
#[test]
fn a_channel_of_a_partition_is_relaxed_in_its_part_as_well() {
    let video = ask(10_000, 2, 1_400);
    let mut parted = port(10, &[40]).expect("room");
    let first = parted.admit_best(1, &video).expect("room");
    let beside = parted.part(1).best(&video).expect("room");
    let longer = parted.relax(0, 1, &video, Span::from_millis(150));
    assert!(longer.delay > first.delay && longer.delay <= Span::from_millis(150));
    assert_eq!(
        parted.parts[1].as_ref().map(|table| table.flows()[0].delay),
        Some(longer.delay.minus(parted.params.link.host_slack,))
    );
    assert!(parted.part(1).best(&video).expect("room").delay < beside.delay);
    parted.release(0, 1, &video);
    assert_eq!(parted.parts[1].as_ref().map(|table| table.flows().len()), Some(0));
    // An undivided port relaxes as it always did.
    let mut whole = port(10, &[]).expect("a port");
    let had = whole.admit_best(0, &video).expect("room");
    assert!(whole.relax(0, 0, &video, Span::from_millis(150)).delay > had.delay);
}

#[test]
fn a_name_has_one_number_on_a_port_and_an_unknown_one_is_in_the_rest() {
    let name = |name: &str| name.parse().expect("a name");
    let mut named = NamedPartitions::default();
    assert_eq!((named.add(name("studio"), 40), named.add(name("news"), 20)), (Ok(1), Ok(2)));
    assert_eq!(named.add(name("news"), 10), Err(BadPartition::Doubled));
    assert_eq!(named.add(name("all"), 40), Err(BadPartition::Whole));
    let of = |text: &str| named.number(Some(name(text)));
    assert_eq!((of("studio"), of("news"), of("other"), named.number(None)), (1, 2, 0, 0));
    let all: Vec<_> = named.iter().collect();
    assert_eq!(all, [(0, None, 40), (1, Some(name("studio")), 40), (2, Some(name("news")), 20)]);
}

#[test]
fn an_undivided_port_is_the_port_that_it_was() {
    let mut whole = port(10, &[]).expect("a port");
    let video = ask(10_000, 3, 1_000);
    let (taken, denied) = fill(&mut whole, 0, &video);
    assert_eq!(denied.partition, None);
    assert!(taken > 10);
}

#[test]
fn shares_that_cannot_be_are_refused() {
    let mut all = partitions(&[60]);
    assert_eq!(all.add(0), Err(BadPartition::Nothing));
    assert_eq!(all.add(40), Err(BadPartition::Whole));
    assert_eq!(all.add(39), Ok(2));
    assert_eq!((all.percent(0), all.percent(1), all.percent(2), all.percent(3)), (1, 60, 39, 0));
    let mut many = partitions(&[1; PARTITIONS_MAX]);
    assert_eq!(many.add(1), Err(BadPartition::TooMany));
    // Announcements and ordinary traffic need more than one hundredth.
    let denied = port(10, &[99]).unwrap_err();
    assert_eq!(denied.partition, Some(0));
}

/// A segment of 10 Mbit/s in these partitions.
fn divided(percents: &[u8]) -> SegmentParams {
    SegmentParams { partitions: partitions(percents), ..SegmentParams::new(BitRate::from_mbit(10), 5) }
}

fn taken(slots: &[Slot], number: u8) -> Span {
    slots.iter().filter(|slot| slot.partition == number).map(|slot| slot.tht).sum()
}

#[test]
fn slots_of_a_partition_stay_in_their_part_of_the_cycle() {
    let (params, video) = (divided(&[30]), ask(20_000, 1, 1_400));
    let fill = |partition: u8| {
        let mut slots: Vec<Slot> = Vec::new();
        loop {
            let (station, periodic, receives) = (3, false, false);
            let ring = RetherSegment { params, slots: &slots, station, periodic, receives, partition };
            match ring.at_peaks(&video, 1) {
                Ok(share) => slots.push(Slot { station, tht: share.admitted.tht, periodic, partition }),
                Err(denied) => break (taken(&slots, partition), denied.partition),
            }
        }
    };
    let (own, by) = fill(1);
    assert_eq!(by, Some(1));
    assert!(own * 100 <= params.trt * 30 && own > Span::ZERO);
    // The rest may end sooner: how long ordinary traffic waits is a test of the whole segment.
    let (own, by) = fill(0);
    assert!(own * 100 <= params.trt * 70 && by != Some(1) && own > Span::ZERO);
    // A partition that does not exist has nothing.
    assert_eq!(fill(2), (Span::ZERO, Some(2)));
}

/// One more station takes of the rest, which has the time of ordinary traffic.
#[test]
fn a_ring_that_grows_keeps_its_rest() {
    let params = divided(&[60]);
    let rest = |tht| [Slot { station: 1, tht, periodic: true, partition: 0 }];
    let beside = |tht| [false, true].map(|strict| nrt_need(&params, tht, strict).total()).into_iter().max();
    let fits = |tht: Span| tht + beside(tht).expect("two") <= params.partitions.room(0, params.trt);
    let steps = (0..40_000).map(Span::from_micros).take_while(|tht| fits(*tht));
    let most = steps.last().expect("nothing fits");
    assert!(still_fits(&rest(most), &params).is_ok());
    assert_eq!(still_fits(&rest(most + Span::from_micros(1)), &params), Err(Test::Eq3Capacity));
    assert!(still_fits(&rest(most + Span::from_micros(1)), &divided(&[])).is_ok());
    assert!(rest_has_room(&params) && !rest_has_room(&divided(&[99])));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The theorem of the module: where every partition's own test holds, the test of the whole port does.
    #[test]
    fn the_whole_port_never_refuses_what_every_partition_accepts(
        mbit in 2u64..200,
        percents in prop::collection::vec(5u8..30, 1..4),
        asks in prop::collection::vec((0u8..4, 3_000u64..90_000, 1u64..5, 60u64..1_420, 0u64..30), 1..24)
    ) {
        let Ok(mut parted) = port(mbit, &percents) else { return Ok(()) };
        let mut standing: Vec<(u8, Ask)> = Vec::new();
        for (number, x_min, burst, octets, more) in asks {
            let number = number % (percents.len() as u8 + 1);
            let ask = ask(x_min, burst, octets);
            let own = match parted.part(number).own(&ask) {
                Ok(own) => own,
                Err(denied) => {
                    prop_assert_eq!(denied.partition, Some(number));
                    continue;
                }
            };
            let whole = parted.whole.best(&ask);
            prop_assert!(whole.is_ok_and(|offer| offer.delay <= own), "{:?} beside {:?}", whole, own);
            let most = own + Span::from_millis(more);
            let offer = parted.part(number).keeping(&ask, most).expect("its own bound or a longer one");
            prop_assert!(offer.delay >= own && offer.delay <= most);
            prop_assert_eq!(parted.admit_offered(number, &ask, &offer), Ok(()));
            standing.push((number, ask));
            if more % 3 == 1 {
                let place = standing.len() - 1;
                let longer = parted.relax(place, number, &ask, most + Span::from_millis(20));
                prop_assert!(longer.delay >= offer.delay);
            }
            if more % 5 == 4 {
                // Slots of the link come and go; the partitions keep their channels.
                _ = parted.set_units(Span::from_micros(octets * 5));
            }
        }
        // All leave again, and the port is as it was.
        while let Some((number, ask)) = standing.pop() {
            parted.release(standing.len(), number, &ask);
        }
        prop_assert_eq!(parted.set_units(Span::ZERO), Ok(()));
        let mut fresh = port(mbit, &percents).expect("it was one");
        let probe = crate::subnet::partition::tests::ask(20_000, 2, 500);
        for number in 0..=percents.len() as u8 {
            prop_assert_eq!(parted.part(number).best(&probe), fresh.part(number).best(&probe));
        }
    }

    /// The same of a RETHER segment, whose slots come and go: no partition ever has more than its part,
    /// whatever closes before its slots, and the whole refuses nothing for want of time that a partition has.
    #[test]
    fn slots_that_come_and_go_stay_in_their_partitions(
        percents in prop::collection::vec(5u8..30, 1..4),
        trt in prop::sample::select(vec![33u64, 50, 100]),
        stations in prop::sample::select(vec![5u16, 14, 40]),
        steps in prop::collection::vec(
            (1u16..4, 0u8..4, 100u64..6_000, any::<[bool; 2]>(), any::<prop::sample::Index>()), 1..40)
    ) {
        let mut params = SegmentParams::new(BitRate::from_mbit(100), stations);
        params.partitions = partitions(&percents);
        (params.trt, params.hold_max) = (Span::from_millis(trt), Span::from_millis(trt));
        // Others are refused with the settings.
        prop_assume!(rest_has_room(&params));
        let mut slots: Vec<Slot> = Vec::new();
        for (station, number, octets, [closes, periodic], pick) in steps {
            let partition = number % (percents.len() as u8 + 1);
            if closes && !slots.is_empty() {
                let at = pick.index(slots.len());
                let left = close_slot(&mut slots, at, &params);
                slots.truncate(left);
            } else {
                let (unit_octets, pace) = (Octets::new(octets), Pace::EVERY_CYCLE);
                let request =
                    Request { station, unit_octets, pace, periodic, receives: true, partition };
                match admit(&slots, &request, &params) {
                    Ok(admitted) => {
                        slots.push(Slot { station, tht: admitted.tht, periodic, partition });
                    }
                    Err(refusal) => prop_assert!(
                        refusal.test != Test::Eq3Capacity || refusal.partition == Some(partition),
                        "{refusal}"
                    ),
                }
            }
            prop_assert!(slots.is_empty() || still_fits(&slots, &params).is_ok(), "a list that was admitted");
            for number in params.partitions.numbers() {
                let ordinary = match number {
                    0 => nrt_need(&params, taken(&slots, 0), slots.iter().any(|slot| slot.periodic)).total(),
                    _ => Span::ZERO,
                };
                prop_assert!(taken(&slots, number) + ordinary <= params.partitions.room(number, params.trt));
            }
        }
    }
}

/// Of two channels with the same packets the one with the longer bound ends: the shorter bound stays.
#[test]
fn a_channel_leaves_its_partition_with_its_own_bound() {
    let video = ask(10_000, 1, 1_000);
    let mut port = port(10, &[40]).expect("room");
    let first = port.admit_best(1, &video).expect("room for one");
    let longer = Offer { delay: first.delay + Span::from_millis(90), ..first };
    assert_eq!(port.admit_offered(1, &video, &longer), Ok(()));
    port.release(1, 1, &video);
    let left: Vec<Span> =
        port.parts[1].as_ref().expect("a part").flows().iter().map(|flow| flow.delay).collect();
    assert_eq!(left, [first.delay.minus(port.params.link.host_slack)]);
    port.release(0, 1, &video);
    assert_eq!(port.parts[1].as_ref().map(|table| table.flows().len()), Some(0));
}
