use super::*;
use crate::nrt_latency::NrtRing;
use crate::slots::{is_joined, offset_of, reserved};
use proptest::prelude::*;

fn params(mbit: u64, stations: u16) -> SegmentParams {
    SegmentParams::new(BitRate::from_mbit(mbit), stations)
}

fn request(station: u16, octets: u64) -> Request {
    let unit_octets = Octets::new(octets);
    Request { station, unit_octets, pace: Pace::EVERY_CYCLE, periodic: true, receives: false, partition: 0 }
}

/// Admits streams of `octets` on stations 1..=`talkers` in turn until one is refused.
fn fill(params: &SegmentParams, talkers: u16, octets: u64) -> (Vec<Slot>, Refusal) {
    let mut slots = Vec::new();
    loop {
        let station = 1 + u16::try_from(slots.len()).unwrap() % talkers;
        match admit(&slots, &request(station, octets), params) {
            Ok(admitted) => {
                assert_eq!(admitted.offset, offset_of(&slots, slots.len()));
                slots.push(Slot { station, tht: admitted.tht, periodic: true, partition: 0 });
            }
            Err(refusal) => return (slots, refusal),
        }
    }
}

#[test]
fn five_streams_of_the_paper_fit_at_10_mbit_and_a_sixth_does_not() {
    // RETHER-2.3-3. Four talkers, so the fifth stream is a second slot of station 1, not adjacent:
    // a visit of its own.
    let params = params(10, 5);
    let (slots, refusal) = fill(&params, 4, 6_250);
    assert_eq!(slots.len(), 5);
    assert_eq!(slots[4].station, 1);
    assert_eq!(slots[4].tht, tht_rt(&params, Octets::new(6_250)));
    assert_eq!(refusal.test, Test::Eq3Capacity);
    assert_eq!(refusal.tsn_code, Some(1));
    assert!(refusal.margin_bps > 1_000_000, "a whole stream does not fit: {refusal}");
    assert!(
        refusal
            .to_string()
            .starts_with("insufficient bandwidth (Eq3Capacity): the slots exceed the cycle by ")
    );
}

#[test]
fn what_is_left_beside_five_streams_is_offered() {
    let params = params(10, 5);
    let (slots, refusal) = fill(&params, 4, 6_250);
    let offer = refusal.counter_offer.expect("some octets are left").get();
    assert_eq!(offer, 186, "{refusal}");
    assert_eq!(refusal.counter_offer_bps, Some(params.rate_of_down(Octets::new(offer), Pace::EVERY_CYCLE)));
    assert!(admit(&slots, &request(2, offer), &params).is_ok());
    assert!(admit(&slots, &request(2, offer + 1), &params).is_err());
}

#[test]
fn faster_links_carry_tens_and_hundreds_of_streams() {
    let (at_100, _) = fill(&params(100, 5), 4, 6_250);
    // RETHER-5.2-2: the paper's simulation carries 40.
    // Slot 735.0 us, T_NRT 1.801 ms: floor(31.532 ms / 735.0 us).
    assert_eq!(at_100.len(), 42, "100 Mbit/s, a visit for each stream");
    let (at_1000, full) = fill(&params(1_000, 5), 4, 6_250);
    // Slot 185.6 us, T_NRT 1.706 ms: floor(31.627 ms / 185.6 us).
    assert_eq!(at_1000.len(), 170, "1 Gbit/s, a visit for each stream");
    assert_eq!(full.test, Test::Eq3Capacity);
    let (one_talker, full) = fill(&params(1_000, 5), 1, 6_250);
    assert_eq!((one_talker.len(), full.test), (200, Test::SlotTableFull));
    assert_eq!((full.counter_offer, full.counter_offer_bps), (None, None));
}

#[test]
fn joined_slots_save_a_hop_and_a_start_of_visit() {
    let params = params(100, 5);
    let (one_talker, _) = fill(&params, 1, 6_250);
    let (four_talkers, _) = fill(&params, 4, 6_250);
    assert!(one_talker.len() > four_talkers.len());
    assert!(is_joined(&one_talker, 1) && !is_joined(&four_talkers, 1));
    let saved = four_talkers[1].tht.minus(one_talker[1].tht);
    assert_eq!(saved, params.link.hop + params.link.per_visit);
}

#[test]
fn a_refusal_names_the_test_that_failed() {
    let base = params(10, 5);
    let too_long = admit(&[], &request(1, u64::MAX), &params(10_000, 5)).unwrap_err();
    assert_eq!((too_long.test, too_long.tsn_code), (Test::UnitTooLarge, Some(14)));
    assert!(too_long.counter_offer.is_some());

    // Without share and burst only the floor stands between the slots and starvation.
    let bare = SegmentParams { nrt_share_percent: 0, card_burst_octets: Octets::ZERO, ..base };
    let (_, refusal) = fill(&bare, 4, 6_250);
    let offer = refusal.counter_offer.map_or(0, Octets::get);
    let (slots, _) = fill(&bare, 4, 6_250);
    let next = admit(&slots, &request(2, offer + 1), &bare).unwrap_err();
    assert_eq!(next.test, Test::NrtFloor);

    let hasty = SegmentParams { nrt_latency_max: Span::from_millis(20), ..base };
    let late = admit(&[], &request(1, 100), &hasty).unwrap_err();
    assert_eq!((late.test, late.counter_offer), (Test::NrtLatency, None));
    assert_eq!(late.margin_bps, 0);
}

#[test]
fn as_many_as_fit_promises_n_rotations_and_nothing_better() {
    let greedy = SegmentParams { nrt_policy: NrtPolicy::AsManyAsFit, ..params(10, 20) };
    assert_eq!(admit(&[], &request(1, 100), &greedy).unwrap_err().test, Test::NrtLatency);
    let patient = SegmentParams { nrt_latency_max: greedy.trt * 21, ..greedy };
    assert!(admit(&[], &request(1, 100), &patient).is_ok());
}

#[test]
fn bounds_follow_the_derivation() {
    let params = params(10, 5);
    let (slots, _) = fill(&params, 4, 6_250);
    let again = admit(&slots[..4], &request(1, 6_250), &params).unwrap();
    let tail = tht_rt(&params, Octets::new(6_250)) + params.transit() + params.link.host_slack;
    assert_eq!(again.bound, params.trt + tail);
    assert_eq!(again.gap, params.trt);
    let relaxed = Request { periodic: false, ..request(1, 6_250) };
    let early = admit(&slots[..4], &relaxed, &params).unwrap();
    assert_eq!(early.bound, params.trt + again.offset + tail);
    assert_eq!(early.gap, params.trt + reserved(&slots[..4]).minus(params.link.hop * 4));
}

#[test]
fn a_joined_slot_is_promised_the_bound_of_a_visit_of_its_own() {
    let params = params(100, 5);
    let first = admit(&[], &request(1, 3_000), &params).unwrap();
    let slots = [Slot { station: 1, tht: first.tht, periodic: true, partition: 0 }];
    let second = admit(&slots, &request(1, 3_000), &params).unwrap();
    assert!(second.tht < first.tht);
    assert_eq!(second.bound, first.bound);
}

#[test]
fn eq_2_charges_each_frame_and_one_visit() {
    let params = params(10, 5);
    let one = tht_nrt(&params, Octets::new(1_500));
    let two = tht_nrt(&params, Octets::new(1_501));
    assert_eq!(one, NrtRing::new(&params, Span::ZERO, true).visit_one);
    assert_eq!(two.minus(one), params.link.frame_span_min() + params.link.per_frame);
}

#[test]
fn nonsense_parameters_refuse_and_do_not_panic() {
    let framing = Framing { mtu: 0, overhead_octets: 0, min_wire_octets: 0, rota_octets: 64 };
    let mut none = params(10, 0);
    none.link.framing = framing;
    let _ = admit(&[], &request(1, 6_250), &none);
    let stopped = SegmentParams { trt: Span::ZERO, ..params(10, 5) };
    assert!(admit(&[], &request(1, 6_250), &stopped).is_err());
    let slow = SegmentParams {
        link: LinkModel { rate: BitRate::new(1).unwrap(), ..params(10, 5).link },
        ..params(10, 5)
    };
    assert!(admit(&[], &request(1, u64::MAX), &slow).is_err());
}

/// Any segment that makes sense: 1 Mbit/s to 10 Gbit/s, 1 to 60 stations, all policies.
fn any_params() -> impl Strategy<Value = SegmentParams> {
    let policy = prop_oneof![
        Just(NrtPolicy::One),
        (1u32..100).prop_map(NrtPolicy::AtMost),
        Just(NrtPolicy::AsManyAsFit)
    ];
    let rate = prop_oneof![Just(1u64), Just(10), Just(100), Just(1_000), Just(10_000), 1u64..2_000];
    (rate, 1u16..60, policy, 5u64..100, 50u64..3_000, 0u8..50).prop_map(
        |(mbit, stations, nrt_policy, trt_ms, latency_ms, nrt_share_percent)| SegmentParams {
            trt: Span::from_millis(trt_ms),
            nrt_policy,
            nrt_latency_max: Span::from_millis(latency_ms),
            nrt_share_percent,
            ..params(mbit, stations)
        },
    )
}

fn any_sessions() -> impl Strategy<Value = Vec<(u16, u64, bool)>> {
    prop::collection::vec((1u16..8, 1u64..60_000, any::<bool>()), 1..25)
}

fn admit_all(params: &SegmentParams, sessions: &[(u16, u64, bool)]) -> Vec<Slot> {
    let mut slots: Vec<Slot> = Vec::new();
    for &(station, octets, periodic) in sessions {
        let request = Request { periodic, ..request(station, octets) };
        if let Ok(admitted) = admit(&slots, &request, params) {
            slots.push(Slot { station, tht: admitted.tht, periodic, partition: 0 });
        }
    }
    slots
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn admitted_slots_and_their_reserve_fit_into_the_rotation(p in any_params(), sessions in any_sessions()) {
        let slots = admit_all(&p, &sessions);
        if !slots.is_empty() {
            let need = nrt_need(&p, reserved(&slots), is_strict(&slots));
            prop_assert!(reserved(&slots) + need.total() <= p.trt);
            let gap = NrtRing::new(&p, reserved(&slots), is_strict(&slots)).worst_gap();
            prop_assert!(gap.is_some_and(|gap| gap <= p.nrt_latency_max), "{gap:?}");
        }
    }

    #[test]
    fn a_smaller_unit_is_never_refused_where_a_larger_one_is_admitted(
        p in any_params(), sessions in any_sessions(),
        octets in 2u64..400_000, less in 1u64..400_000, periodic: bool
    ) {
        let slots = admit_all(&p, &sessions);
        let large = Request { periodic, ..request(3, octets) };
        let small = Request { unit_octets: Octets::new(octets.saturating_sub(less).max(1)), ..large };
        if let Ok(granted) = admit(&slots, &large, &p) {
            let smaller = admit(&slots, &small, &p);
            prop_assert!(smaller.as_ref().is_ok_and(|s| s.tht <= granted.tht && s.bound <= granted.bound));
        }
    }

    #[test]
    fn the_counter_offer_is_exact(
        p in any_params(), sessions in any_sessions(), octets in 1u64..9_000_000, periodic: bool
    ) {
        let slots = admit_all(&p, &sessions);
        let asked = Request { periodic, ..request(2, octets) };
        if let Err(refusal) = admit(&slots, &asked, &p) {
            let with = |n: u64| admit(&slots, &Request { unit_octets: Octets::new(n), ..asked }, &p);
            match refusal.counter_offer {
                Some(offer) => {
                    prop_assert!(offer.get() < octets);
                    prop_assert!(with(offer.get()).is_ok());
                    prop_assert!(with(offer.get() + 1).is_err());
                }
                None => prop_assert!(with(1).is_err()),
            }
            prop_assert_eq!(refusal.tsn_code, refusal.test.tsn_code());
        }
    }
}

#[test]
fn a_list_has_as_many_slots_as_one_frame_of_the_mtu_holds() {
    let most =
        |mtu| SegmentParams::with_framing(BitRate::from_mbit(1_000), Framing::ethernet(mtu), 5).slots_max;
    assert_eq!([576, 1_400, 1_500, 9_000].map(most), [75, 200, 200, 200]);
    for mtu in [576, 577, 800, 1_500] {
        let octets = SegmentParams::TOKEN_FIXED_OCTETS + SegmentParams::GRANT_OCTETS;
        assert!(octets + SegmentParams::SLOT_OCTETS * u64::from(most(mtu)) <= u64::from(mtu));
    }
    let slow = SegmentParams::with_framing(BitRate::from_mbit(10), Framing::ethernet(576), 5);
    assert_eq!(slow.slots_max, 16, "a slow link has fewer anyway");
}

/// A station that receives may still send a frame when its slot begins: its slot is longer by one frame.
#[test]
fn the_slot_of_a_station_that_receives_too_is_a_frame_longer() {
    let params = SegmentParams::new(BitRate::from_mbit(10), 5);
    let only = admit(&[], &request(1, 6_250), &params).unwrap();
    let both = admit(&[], &Request { receives: true, ..request(1, 6_250) }, &params).unwrap();
    assert_eq!(both.tht, only.tht + params.link.frame_span_max());
}

#[test]
fn a_unit_a_cycle_is_so_many_bits_a_second() {
    let params =
        SegmentParams { trt: Span::from_millis(20), ..SegmentParams::new(BitRate::from_mbit(10), 5) };
    assert_eq!(params.rate_of_down(Octets::new(1_000), Pace::EVERY_CYCLE), 400_000);
    let third = SegmentParams { trt: Span::from_millis(3), ..params };
    assert_eq!(third.rate_of_down(Octets::new(1), Pace::EVERY_CYCLE), 2_666, "rounded down");
}
