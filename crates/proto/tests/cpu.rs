//! The CPU of both nodes is admitted for a channel of one segment, where its costs are known
//! (TRANSPORT-5.2-1, TRANSPORT-R58).

use super::pair::{A, B, Pair, ms, node_id, settings};
use rota_admission::cpu::Costs;
use rota_contract::{CloseCause, CpuShare};
use rota_proto::rcap::RcapTest;
use rota_proto::{ChannelEvent, ChannelId, CpuSettings, MediumKind, Settings};
use rota_units::Span;
use rota_wire::RcapDenied;

const BOTH: [MediumKind; 2] = [MediumKind::Rether, MediumKind::Link];
const UNIT: u32 = 1_000;
const COSTS: Costs = Costs { message: Span::from_micros(900), tpdu: Span::from_micros(40), octet_ps: 10_000 };

fn with_cpu(kind: MediumKind) -> Settings {
    Settings { cpu: Some(CpuSettings::of(COSTS)), ..settings(kind) }
}

/// Two stations of which some admit their CPU.
fn pair(kind: MediumKind, admits: [bool; 2]) -> Pair {
    let of = |admits| if admits { with_cpu(kind) } else { settings(kind) };
    let mut pair = Pair::with(kind, admits.map(of).to_vec());
    pair.run(ms(2_500));
    pair
}

fn denied(pair: &Pair, of: ChannelId) -> Option<(RcapDenied, Option<String>)> {
    pair.events.iter().find_map(|(k, event)| match event {
        ChannelEvent::Denied { channel, denied, name, .. } if (*k, *channel) == (A, of) => {
            Some((*denied, name.clone()))
        }
        _ => None,
    })
}

fn ask(pair: &mut Pair, octets: u32) -> ChannelId {
    let channel = pair.ask(octets, octets);
    pair.run(ms(400));
    channel
}

/// Opens channels until one is refused.
fn fill(pair: &mut Pair) -> (Vec<ChannelId>, RcapDenied, Option<String>) {
    let mut open = Vec::new();
    loop {
        let channel = ask(pair, UNIT);
        if pair.granted(channel).is_some() {
            open.push(channel);
            continue;
        }
        let (denied, name) = denied(pair, channel).unwrap_or_else(|| panic!("{:?}", pair.events.last()));
        return (open, denied, name);
    }
}

/// One more is refused by the node that lacks the CPU, with both numbers and what fits; what fits opens, and
/// a channel that ends gives its CPU back.
fn check(kind: MediumKind, admits: [bool; 2], at: usize) {
    let mut pair = pair(kind, admits);
    let (open, denied, name) = fill(&mut pair);
    assert!(!open.is_empty());
    assert_eq!((denied.test, denied.node), (RcapTest::CpuResponse, node_id(at)), "{denied:?}");
    assert_eq!(name, Some(format!("n{}", at + 1)));
    assert!(denied.needed > denied.most && denied.most == 10_000_000, "{denied:?}");
    let status = pair.node(at).cpu().expect("it admits its CPU");
    assert_eq!(status.channels, open.len());
    let used = status.now.expect("all was admitted");
    assert!(used.response <= status.delay && used.load_ppm <= 500_000, "{status:?}");
    // The receiver that refused listens again.
    let at_close = pair.now;
    pair.node(A).close(at_close, open[0]);
    pair.drain(A);
    pair.run(ms(1_500));
    let now = pair.node(at).cpu().expect("as before");
    let left = now.now.expect("as before");
    assert!(now.channels == open.len() - 1 && left.load_ppm < used.load_ppm, "{now:?}");
    let again = ask(&mut pair, UNIT);
    assert!(pair.granted(again).is_some(), "{:?}", pair.events.last());
    // A program that dies gives it back by the same release.
    for channel in open.into_iter().skip(1).chain([again]) {
        let now = pair.now;
        pair.node(A).abort(now, channel);
        pair.drain(A);
    }
    pair.run(ms(3_000));
    assert_eq!(pair.node(at).cpu().map(|status| status.channels), Some(0));
    assert_eq!(pair.node(at).own_channels().count(), 0);
}

#[test]
fn a_sender_without_cpu_refuses_with_both_numbers() {
    BOTH.into_iter().for_each(|kind| check(kind, [true, false], A));
}

#[test]
fn a_receiver_without_cpu_refuses_with_both_numbers() {
    BOTH.into_iter().for_each(|kind| check(kind, [false, true], B));
}

/// The nearest unit that a refusal names opens, and one more octet is refused again.
#[test]
fn the_nearest_request_fits_and_no_larger_one() {
    let ends = [([true, false], A), ([false, true], B)];
    for (kind, (admits, at)) in BOTH.into_iter().flat_map(|kind| ends.map(|end| (kind, end))) {
        let mut pair = pair(kind, admits);
        let large = ask(&mut pair, 60_000);
        let (refused, _) = denied(&pair, large).unwrap_or_else(|| panic!("{:?}", pair.events.last()));
        assert_eq!(refused.node, node_id(at));
        assert!(refused.nearest_octets > 1_436 && refused.nearest_x_min_ns == 0, "{refused:?}");
        let larger = ask(&mut pair, refused.nearest_octets + 1);
        assert!(denied(&pair, larger).is_some(), "{:?}", pair.events.last());
        let nearest = ask(&mut pair, refused.nearest_octets);
        let is_of_cpu = denied(&pair, nearest).map(|(denied, _)| denied.test);
        assert_eq!(is_of_cpu, None, "the CPU has room for it");
    }
}

/// The sender's bound contains its host, and its certificate states that as the host's part.
#[test]
fn the_contract_states_the_cpu_and_the_certificate_the_senders_host() {
    BOTH.into_iter().for_each(states_the_cpu);
}

fn states_the_cpu(kind: MediumKind) {
    let mut plain = pair(kind, [false, false]);
    let (channel, without) = plain.open(UNIT);
    assert_eq!((without.cpu, plain.node(A).cpu()), (None, None));
    let host = |pair: &mut Pair, channel| pair.node(A).detail(channel).expect("sent here").terms.host_slack;
    assert_eq!(host(&mut plain, channel), Span::ZERO);
    let mut pair = pair(kind, [true, true]);
    let channel = ask(&mut pair, UNIT);
    let with = pair.granted(channel).expect("it is open");
    let delay = CpuSettings::DELAY;
    assert_eq!(with.bound(), without.bound() + delay);
    // 900 us and 50 us each 33.333 ms.
    let share = CpuShare { load_ppm: 28_501, within_ns: delay.as_nanos() };
    assert_eq!(with.cpu, Some(share));
    assert_eq!(host(&mut pair, channel), delay);
    let received = pair.events.iter().find_map(|(k, event)| match event {
        ChannelEvent::IncomingOpened { granted, .. } if *k == B => Some(*granted),
        _ => None,
    });
    let received = received.expect("it is open there");
    assert_eq!((received.bound(), received.cpu), (with.bound(), Some(share)));
}

/// A node of a version before this one hears that admission refused, and no cause that it takes for silence.
#[test]
fn the_end_of_a_channel_that_the_receivers_cpu_refused_is_a_refusal() {
    let mut pair = pair(MediumKind::Rether, [false, true]);
    let _ = fill(&mut pair);
    assert_eq!(pair.ends(B), [CloseCause::Refused]);
    assert_eq!(pair.ends(A), []);
}
