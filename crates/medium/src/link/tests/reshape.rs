//! A flow that carries other packets in the place of its own, when its channel changes (`TENET-7-4`).

use super::*;

/// 1,000 octets so often: each 2 ms takes 4.3 Mbit/s with their headers.
fn packets(period: Span, octets: u32) -> Share {
    let flow = Some(FlowShare::guaranteed(Traffic::periodic(period).expect("sound")));
    Share { unit_octets_max: octets, pace: Pace::EVERY_CYCLE, periodic: false, partition: 0, flow }
}

fn reserved(bench: &Bench) -> u64 {
    bench.link.reservations().map(|slot| u64::from(slot.tht_ns)).sum()
}

fn reshape(bench: &mut Bench, id: u64, share: &Share, most: Span) -> Option<Span> {
    bench.link.reshape(bench.now, SessionId(id), share, (most, most)).ok()
}

/// Its former packets counted once more, so that a share that had grown did not become smaller again beside
/// promises to the statistical class.
#[test]
fn a_flow_that_has_grown_shrinks_again_beside_the_statistical_class() {
    let mut bench = Bench::quiet(10);
    let bound = flow_during(&mut bench, 101, 4, Life::ALWAYS).expect("room").bound;
    let (most, had) = (bound + ms(40), reserved(&bench));
    let larger = packets(ms(4), 1_400);
    assert!(reshape(&mut bench, 101, &larger, most).is_some());
    let grown = reserved(&bench) - had;
    assert!(grown > 0);
    let full = (200..300).take_while(|id| flow_of(&mut bench, *id, by_chance()).is_ok()).count();
    assert!(full > 0);
    bench.packets(101, 2);
    let all = reserved(&bench);
    bench.link.lessen(bench.now, SessionId(101), &packets(ms(4), 1_016), bound);
    assert_eq!(reserved(&bench), all - grown);
}

/// Half of a link grows to what is left of it, in its place, and shrinks again; what does not fit is refused
/// and changes nothing.
#[test]
fn a_flow_grows_and_shrinks_in_its_place() {
    let us = Span::from_micros;
    let mut bench = Bench::quiet(10);
    let bound = flow_during(&mut bench, 101, 2, Life::ALWAYS).expect("room").bound;
    assert!(flow_during(&mut bench, 102, 4, Life::ALWAYS).is_ok());
    let (most, standing) = (bound + ms(40), reserved(&bench));
    assert!(flow_during(&mut bench, 103, 2, Life::ALWAYS).is_err(), "not beside itself");
    let larger = reshape(&mut bench, 101, &packets(us(1_600), 1_012), most).expect("it fits in its place");
    assert!(larger <= most && reserved(&bench) > standing, "{larger}");
    let had = reserved(&bench);
    for (share, most) in [(packets(ms(1), 1_012), most), (packets(us(1_600), 1_400), Span::from_micros(500))]
    {
        assert_eq!(reshape(&mut bench, 101, &share, most), None);
        assert_eq!((reserved(&bench), bench.link.relax(SessionId(101), Span::ZERO)), (had, Some(larger)));
    }
    assert!(reshape(&mut bench, 101, &packets(ms(8), 1_012), most).is_some());
    assert!(reserved(&bench) < standing);
    assert!(flow_during(&mut bench, 104, 2, Life::ALWAYS).is_ok(), "what it has given back is free");
    assert_eq!(reshape(&mut bench, 999, &packets(ms(8), 1_012), most), None, "it is not there");
    bench.link.release(bench.now, SessionId(101));
    assert_eq!(reshape(&mut bench, 101, &packets(ms(8), 1_012), most), None);
}

/// Its former packets are no part of the new share, and may still be ahead of the statistical class.
#[test]
fn a_flow_that_gets_larger_and_fewer_packets_counts_for_those_that_have_left() {
    let counted = |sent| {
        let mut bench = Bench::quiet(10);
        let bound = flow_during(&mut bench, 101, 4, Life::ALWAYS).expect("room").bound;
        bench.packets(101, sent);
        assert!(reshape(&mut bench, 101, &packets(ms(8), 1_400), bound + ms(40)).is_some());
        let flows = &bench.link.shares.flows;
        format!("{:?}", flows.certain(bench.now, flows.horizon(), true).expect("a port"))
    };
    assert_ne!(counted(0), counted(1));
}
