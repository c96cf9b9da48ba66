use super::*;
use rota::certificate::terms_of;
use rota::{ChannelInfo, NodeId, ReceiverInfo};
use rota_admission::certificate::{FrameTerms, Life, RetherTerms, SlotsTerms, StandingShare};
use rota_admission::rtip::{Discipline, Flow, Packets, Point, Scheduler, Traffic};
use rota_admission::subnet::{Ask, LINK_FLOWS_OWN, LINK_POINTS, LinkPort, payload_max};
use rota_admission::{Pace, Request, SegmentParams, admit, admit_on_link};
use rota_units::{BitRate, Octets, Span};

const PERIOD: u64 = 40_000_000;

fn terms(s_max: u64, packet_max: u64) -> TermsInfo {
    TermsInfo {
        x_min_ns: PERIOD,
        x_ave_ns: PERIOD,
        interval_ns: PERIOD,
        s_max_octets: s_max,
        delay_max_ns: 500_000_000,
        packet_max_octets: packet_max,
        packet_least_octets: 1,
        ..TermsInfo::default()
    }
}

/// The hop of an empty segment with this traffic, as its node tells of it.
fn hop(mbit: u64, traffic: Traffic, octets: u64, is_packet: bool) -> HopInfo {
    let params = SegmentParams::new(BitRate::from_mbit(mbit), 5);
    let pace = Pace::of(traffic.x_min(), params.trt).expect("a period of the segment");
    let headers = if is_packet { rota_admission::subnet::RTIP_OCTETS } else { 0 };
    let unit_octets = Octets::new(octets + headers);
    let request = Request { station: 1, unit_octets, pace, periodic: false, receives: false, partition: 0 };
    let standing = StandingShare {
        params: &params,
        traffic,
        octets: Octets::new(octets),
        octets_least: Octets::new(1),
        is_packet,
        pace,
        periodic: false,
        admitted: admit(&[], &request, &params).expect("it is empty"),
    };
    let standing_share = standing.share().expect("it carries it");
    let offer = standing.offer(&standing_share);
    let (frame, share) = standing.terms(&standing_share).expect("one slot");
    HopInfo {
        node: format!("n{mbit}"),
        medium: "rether".into(),
        regulator: if is_packet { "rate" } else { "none" }.into(),
        bound_ns: offer.delay.as_nanos(),
        service_least_ns: offer.service_least.as_nanos(),
        buffers: 100,
        part: frame.values().chain(share.values()).collect(),
        ..HopInfo::default()
    }
}

fn info() -> ChannelInfo {
    let json = serde_json::json!({
        "channel": 7, "label": 0, "name": null, "sending": true, "peer_node_id": NodeId(2), "peer_station": 0,
        "peer_mac": "", "peer_name": "n4", "service": 0, "state": "open", "units": 0,
        "contract": { "unit_octets_max": 1, "period_ns": 1, "bound_ns": 1, "extra_ppm": 0, "buffers": 2 },
    });
    serde_json::from_value(json).expect("the fields of a channel")
}

fn across() -> ChannelDetail {
    let packet_max = payload_max(&rota_admission::Framing::ETHERNET).get();
    let terms = terms(5_000, packet_max);
    let packets = terms_of(&terms).messages.packets(Octets::new(packet_max)).expect("sound");
    let hops = [100, 10].map(|mbit| hop(mbit, packets.traffic, packets.octets.get(), true)).to_vec();
    ChannelDetail { info: info(), terms: Some(terms), hops, destination: None, receivers: Vec::new() }
}

#[test]
fn the_parts_of_a_way_make_a_certificate_that_adds_up() {
    let detail = across();
    let made = certificate(&detail).expect("each hop has its part");
    let sum = sum(&detail).expect("the way is known");
    assert_eq!(made["promises"][0]["delay"], sum.delay.as_nanos());
    assert_eq!(made["hops"].as_array().map(Vec::len), Some(2));
    assert_eq!(sum.packets.count, 4);
    let hops: u64 = detail.hops.iter().map(|hop| hop.bound_ns).sum();
    assert_eq!(sum.delay.as_nanos(), hops + sum.host.as_nanos());
}

#[test]
fn a_channel_of_one_segment_has_one_hop() {
    let terms = terms(20_000, 20_000);
    let traffic = Traffic::periodic(Span::from_nanos(PERIOD)).expect("sound");
    let hops = vec![hop(100, traffic, 20_000, false)];
    let bound = hops[0].bound_ns;
    let detail =
        ChannelDetail { info: info(), terms: Some(terms), hops, destination: None, receivers: Vec::new() };
    assert_eq!(certificate(&detail).expect("it has its part")["promises"][0]["delay"], bound);
}

/// A channel of one link beside slots of others, as its node tells of it.
fn in_slots(octets: u64, period: u64, before: Span) -> ChannelDetail {
    let params = SegmentParams::new(BitRate::from_mbit(10), 2);
    let pace = Pace::of(Span::from_nanos(period), params.trt).expect("a period of the link");
    let unit_octets = Octets::new(octets);
    let request = Request { station: 0, unit_octets, pace, periodic: false, receives: false, partition: 0 };
    let standing = StandingShare {
        params: &params,
        traffic: Traffic::periodic(Span::from_nanos(period)).expect("sound"),
        octets: unit_octets,
        octets_least: Octets::new(1),
        is_packet: false,
        pace,
        periodic: false,
        admitted: admit_on_link(&[before], &request, &params).expect("it has room"),
    };
    let (offer, frame, slots) = standing.slots().expect("it was granted");
    let hop = HopInfo {
        medium: "link".into(),
        regulator: "none".into(),
        bound_ns: offer.delay.as_nanos(),
        service_least_ns: offer.service_least.as_nanos(),
        link_most_ns: offer.link_most.as_nanos(),
        buffers: 2,
        part: [0].into_iter().chain(frame.values()).chain(slots.values()).collect(),
        ..HopInfo::default()
    };
    let of = |time| TermsInfo { x_min_ns: time, x_ave_ns: time, interval_ns: time, ..terms(octets, octets) };
    let (terms, hops) = (Some(of(period)), vec![hop]);
    ChannelDetail { info: info(), terms, hops, destination: None, receivers: Vec::new() }
}

#[test]
fn channels_of_one_link_have_certificates_of_their_slots() {
    let ms = 1_000_000;
    for (octets, period, words) in [
        (5_000, 40 * ms, "1 packet in each 31.250 ms, 4.3"),
        (500, 12 * ms, "3 packets in each 31.250 ms, 1.6"),
        (9_000, 110 * ms, "1 packet in 3 windows of 31.250 ms, 3.7"),
    ] {
        let detail = in_slots(octets, period, Span::from_millis(3));
        let made = certificate(&detail).unwrap_or_else(|why| panic!("{octets}: {why}"));
        let sum = sum(&detail).expect("the way is known").delay;
        assert_eq!(made["promises"][0]["delay"], sum.as_nanos());
        let said = share_in_words(&detail.hops[0]);
        assert!(said.starts_with(words) && said.ends_with(" a window"), "{said}");
        // Behind the number of flows, and the frame's, which are assumptions.
        for (n, name) in SlotsTerms::NAMES.iter().enumerate() {
            let at = 1 + FrameTerms::NAMES.len() + n;
            let kept = detail.hops[0].part[at];
            for changed in [kept + 1, kept.saturating_sub(1), kept / 2] {
                let mut detail = detail.clone();
                detail.hops[0].part[at] = changed;
                assert!(changed == kept || certificate(&detail).is_err(), "{name} from {kept} to {changed}");
            }
        }
    }
    let (sound, none) = (in_slots(5_000, 40 * ms, Span::ZERO), "no flow of its link");
    let with = |part: Vec<u64>| {
        let mut detail = sound.clone();
        detail.hops[0].part = part;
        certificate(&detail).expect_err("no part")
    };
    assert!(with(vec![0]).contains(none));
    let part = &sound.hops[0].part;
    assert!(with(part[..part.len() - 1].to_vec()).contains("a form that this program does not know"));
    assert!(with([part, &[1][..]].concat()).contains("a form that this program does not know"));
}

/// No number of a part can be another one, and no part may be missing.
#[test]
fn a_part_that_is_changed_or_missing_makes_no_certificate() {
    let sound = across();
    for at in 0..sound.hops[1].part.len() {
        let mut detail = sound.clone();
        let kept = detail.hops[1].part[at];
        detail.hops[1].part[at] = if kept < 2 { 1 - kept } else { kept / 2 };
        let is_refused = certificate(&detail).is_err_and(|why| !why.is_empty());
        assert!(!is_told(at) || is_refused, "number {at}: {kept}");
    }
    let mut short = sound.clone();
    short.hops[0].part.pop();
    assert!(certificate(&short).unwrap_err().starts_with("hop 1 has no part: node n100"));
    let mut narrow = sound.clone();
    narrow.hops[1].buffers = 0;
    assert!(certificate(&narrow).unwrap_err().contains("has room for 0 packets"));
    let mut early = sound.clone();
    early.hops[0].bound_ns -= 1;
    let why = certificate(&early).expect_err("no bound is shorter than its part proves");
    assert!(!why.is_empty());
    let received = ChannelDetail { terms: None, hops: Vec::new(), ..sound };
    assert!(certificate(&received).unwrap_err().contains("at its sender's station"));
}

/// The hop of a cable on which such a channel stands behind `others`, beside slots of so long in a window.
fn cable(mbit: u64, ask: &Ask, (scheduler, others): (Scheduler, usize), units: Span) -> HopInfo {
    let params = SegmentParams::new(BitRate::from_mbit(mbit), 2);
    let none = Flow { traffic: ask.traffic, service: Span::ZERO, delay: Span::ZERO };
    let (flows, points) = (vec![none; others + 1 + LINK_FLOWS_OWN], vec![Point::default(); LINK_POINTS]);
    let discipline = Discipline::of(Some(scheduler), None).expect("its usual regulator");
    let mut port = LinkPort::new(params, discipline, flows, points).expect("it is empty");
    port.set_units(units).expect("it has no channel");
    let offers: Vec<_> = (0..=others).map(|_| port.admit_best(ask).expect("it has room")).collect();
    let (load, rest) = port.others();
    let all = port.channels().iter().map(|flow| (*ask, flow.delay)).chain([rest]);
    let mut all: Vec<_> = all.map(Standing::always).collect();
    let part = PortPart::of(&params.link, load, &mut all, others);
    let mut numbers = Vec::new();
    part.write(&all, &mut |number| numbers.push(number));
    let offer = offers.last().expect("there is one");
    HopInfo {
        node: "trunk".into(),
        medium: "link".into(),
        regulator: "rate".into(),
        bound_ns: offer.delay.as_nanos(),
        service_least_ns: offer.service_least.as_nanos(),
        link_most_ns: offer.link_most.as_nanos(),
        buffers: 100,
        part: numbers,
        ..HopInfo::default()
    }
}

/// A way over a segment and a cable, on which other channels stand.
fn over_cable(others: usize, units: Span) -> ChannelDetail {
    over_cable_by(Scheduler::DelayEdd, others, units)
}

fn over_cable_by(scheduler: Scheduler, others: usize, units: Span) -> ChannelDetail {
    let packet_max = payload_max(&rota_admission::Framing::ETHERNET).get();
    let terms = terms(5_000, packet_max);
    let Packets { traffic, octets, .. } =
        terms_of(&terms).messages.packets(Octets::new(packet_max)).expect("sound");
    let ask = Ask { traffic, octets, octets_least: Octets::new(1) };
    let hops = vec![hop(100, traffic, octets.get(), true), cable(10, &ask, (scheduler, others), units)];
    ChannelDetail { info: info(), terms: Some(terms), hops, destination: None, receivers: Vec::new() }
}

#[test]
fn a_hop_over_a_link_has_its_part_beside_other_channels_and_slots() {
    let units = Span::from_nanos(5_432_109);
    // The last one: slots take more than half of the link.
    let cases = [(0, Span::ZERO), (4, Span::ZERO), (2, units), (0, units * 3)];
    let by = |scheduler| cases.map(|(others, units)| (scheduler, others, units));
    for (scheduler, others, units) in [Scheduler::DelayEdd, Scheduler::Rcsp].map(by).into_iter().flatten() {
        let detail = over_cable_by(scheduler, others, units);
        let made = certificate(&detail).unwrap_or_else(|why| panic!("{others} {units}: {why}"));
        let sum = sum(&detail).expect("the way is known").delay.as_nanos();
        assert_eq!(made["promises"][0]["delay"], sum, "{others} {units}");
        let flows = made["hops"][1]["flows"].as_array().map(Vec::len);
        assert_eq!(flows, Some(others + 2), "the channels, and the share of other traffic");
        assert_eq!(made["hops"][1]["port"]["levels"], u64::from(scheduler == Scheduler::Rcsp));
    }
}

/// The node of a cable states the life of each flow there, and each set in the life of the channel is tested.
#[test]
fn a_channel_that_is_booked_has_a_certificate_of_its_time() {
    let detail = over_cable(2, Span::ZERO);
    let (part, mut flows) = read_port(&detail.hops[1].part).expect("it was written");
    let ms = Span::from_millis;
    let link = part.frame.link().expect("a port");
    let life = |from, until| Life { from: ms(from), until: Some(ms(until)) };
    flows[part.own].life = life(5_000, 100_000);
    // Two others of which one ends before the next begins, and one that has gone by then.
    let other = flows.iter().position(|flow| flow.ask == flows[part.own].ask).filter(|at| *at != part.own);
    let other = other.unwrap_or(part.own + 1);
    flows[other].life = life(1_000, 20_000);
    flows.extend([life(20_000, 400_000), life(100, 4_000)].map(|life| Standing { life, ..flows[other] }));
    let told = |flows: &[Standing], begins: u64, ends: u64| {
        let (mut flows, mut numbers, mut detail) = (flows.to_vec(), Vec::new(), detail.clone());
        let part = PortPart::of(&link, part.load, &mut flows, part.own);
        part.write(&flows, &mut |number| numbers.push(number));
        detail.hops[1].part = numbers;
        let terms = detail.terms.as_mut().expect("it is sent here");
        (terms.begins_ns, terms.ends_ns) = (begins * 1_000_000, ends * 1_000_000);
        certificate(&detail)
    };
    let made = told(&flows, 6_000, 90_000).expect("each set keeps its bound");
    assert_eq!(
        (&made["channel"]["begins"], &made["channel"]["ends"]),
        (&6_000_000_000u64.into(), &90_000_000_000u64.into())
    );
    assert_eq!(made["hops"][1]["flows"].as_array().map(Vec::len), Some(flows.len()));
    let why = [told(&flows, 4_000, 90_000), told(&flows, 6_000, 99_800), told(&flows, 6_000, 0)];
    for why in why {
        assert!(why.expect_err("it counts for less time").contains("life fails"));
    }
    // Many that begin in its life take the bound of it.
    let many = vec![Standing { life: life(50_000, 60_000), ..flows[other] }; 40];
    assert!(told(&[flows.clone(), many.clone()].concat(), 6_000, 90_000).is_err());
    let gone = many.iter().map(|flow| Standing { life: life(200_000, 210_000), ..*flow });
    let behind = [flows, gone.collect()].concat();
    assert!(told(&behind, 6_000, 90_000).is_ok(), "behind its end they are in nobody's way");
}

/// Three receivers: two behind a cable, of which each has a segment of its own, and one on the first segment.
/// The cable is stated to the first of them alone.
#[test]
fn a_channel_to_several_receivers_has_one_certificate_of_its_tree() {
    let one = over_cable(1, Span::ZERO);
    let packet_max = one.terms.expect("it is sent here").packet_max_octets;
    let packets =
        terms_of(&terms(5_000, packet_max)).messages.packets(Octets::new(packet_max)).expect("sound");
    let last = |mbit, node_id| HopInfo {
        node_id: NodeId(node_id),
        ..hop(mbit, packets.traffic, packets.octets.get(), true)
    };
    let [mut first, mut cable] = [one.hops[0].clone(), one.hops[1].clone()];
    (first.node_id, cable.node_id) = (NodeId(1), NodeId(2));
    let silent = HopInfo { part: Vec::new(), ..cable.clone() };
    let to = |node: u64, hops: Vec<HopInfo>| ReceiverInfo {
        node_id: NodeId(node),
        state: "in".into(),
        hops,
        ..ReceiverInfo::default()
    };
    let receivers = vec![
        to(8, vec![first.clone(), cable, last(100, 3)]),
        ReceiverInfo { state: "left".into(), ..to(9, Vec::new()) },
        to(7, vec![first.clone(), silent, last(10, 3)]),
        to(6, vec![first]),
    ];
    let detail = ChannelDetail { hops: Vec::new(), receivers, ..one };
    let made = certificate(&detail).expect("each hop has its part");
    let of = |place: &str| made.pointer(place).and_then(Value::as_u64);
    let before = [0, 1, 2, 3, 4].map(|n| of(&format!("/hops/{n}/node/before")));
    // The segment goes to the cable's node for two of them, and to the third one by a slot of its own.
    assert_eq!(before, [Some(0), Some(1), Some(2), Some(2), Some(0)]);
    let ends = [0, 1, 2, 3].map(|n| of(&format!("/promises/{n}/hop")));
    assert_eq!(ends, [Some(3), Some(4), Some(5), None]);
    let document = Document::read(&made.to_string()).expect("its own form");
    assert_eq!((document.check(), document.receivers()), (Ok(()), 3));
    let none = ChannelDetail { receivers: detail.receivers[1..2].to_vec(), ..detail };
    assert!(certificate(&none).is_err(), "nobody receives");
}

/// The numbers of a link prove its bound, or there is no certificate.
#[test]
fn a_part_of_a_link_that_proves_nothing_makes_no_certificate() {
    let sound = over_cable(2, Span::ZERO);
    let fails = |change: &dyn Fn(&mut HopInfo), said: &str| {
        let mut detail = sound.clone();
        change(&mut detail.hops[1]);
        let why = certificate(&detail).expect_err(said);
        assert!(why.contains(said), "{why}");
    };
    fails(&|hop| hop.bound_ns -= 1, "delay");
    fails(&|hop| hop.part = Vec::new(), "hop 2 has no part: node trunk states none for its link");
    fails(&|hop| hop.part = vec![0], "no flow");
    fails(&|hop| hop.part = vec![180], "180 flows");
    fails(&|hop| _ = hop.part.pop(), "a form");
    // The card has a whole millisecond ahead: no bound that was found without it holds.
    let card_ahead = 2 + FrameTerms::NAMES.len();
    fails(&|hop| hop.part[card_ahead] += 1_000_000, "fails its test");
}

/// The fuzz target stopped where a part was read: what is made of its numbers was never tried.
#[test]
fn a_part_of_a_link_is_certified_or_told_why_not_whatever_its_numbers_are() {
    let sound = over_cable(2, Span::ZERO).hops.remove(1).part;
    let certified = |numbers: &[u64]| {
        let (part, flows) = read_port(numbers)?;
        Some(certify_part(numbers.to_vec(), &part.frame.link()?, &flows[part.own]))
    };
    let made = certified(&sound).expect("it reads").expect("a certificate");
    assert_eq!(made["hops"].as_array().map(Vec::len), Some(1));
    let (mut some, mut none) = (0, 0);
    for at in 0..sound.len() {
        for other in [0, 1, 2, 1_000, 1 << 32, 1 << 50, u64::MAX] {
            let mut numbers = sound.clone();
            numbers[at] = other;
            match certified(&numbers) {
                Some(Ok(_)) => some += 1,
                _ => none += 1,
            }
        }
    }
    assert!(some > 10 && none > 100, "{some} certified, {none} not");
}

#[test]
fn committed_parts_of_links_are_read_back() {
    crate::scenario::tests::replay("fuzz/corpus/link_part", fuzz_link_part);
}

/// The place of the slot and the reserve for ordinary traffic are assumptions. So are the strict ring where
/// the slot is the first one, and a preparation shorter than a frame: with others it is another statement.
fn is_told(at: usize) -> bool {
    let names: Vec<&str> = FrameTerms::NAMES.iter().chain(RetherTerms::NAMES).copied().collect();
    !["from", "offset", "t_nrt", "periodic", "prepare"].contains(&names[at])
}
