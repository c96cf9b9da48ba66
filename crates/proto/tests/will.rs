//! The effect of a last will: immediate, once, and only for the boot that left it.

use crate::lan::{Lan, SECOND, mac};
use rota_proto::ModeName;
use rota_units::{Instant, Span};
use rota_wire::{FrameView, Key, Kind, LinkHeader, MacAddr, PayloadKind, emit_frame};

const STATIONS: usize = 5;
const MS: Span = Span::from_millis(1);
/// How long after a death its guardian speaks here.
const GUARDIAN: Span = Span::from_micros(500);

/// Five stations under the token, which the first keeps there by a channel to the second.
fn ring() -> Lan {
    Lan::token(STATIONS)
}

fn will(lan: &Lan, k: usize) -> Vec<u8> {
    let mut frame = vec![0; 100];
    let octets = lan.nodes[k].rether().write_will(&mut frame).expect("a ring station has a will");
    frame.truncate(octets);
    frame
}

/// The station's process ends.
fn die(lan: &mut Lan, k: usize) {
    lan.dead.push(k);
}

/// Its guardian says so, to all.
fn tell(lan: &mut Lan, will: &[u8]) {
    (0..lan.nodes.len()).for_each(|k| lan.hear(k, will));
}

fn living(lan: &Lan) -> Vec<usize> {
    (0..lan.nodes.len()).filter(|k| !lan.dead.contains(k)).collect()
}

/// True if all living stations have heard of a list without the dead ones.
fn knows(lan: &Lan, k: usize) -> bool {
    let dead = lan.nodes[k].rether().station();
    living(lan).iter().all(|of| lan.nodes[*of].rether().is_dead(dead))
}

/// Until when, counted from `from`, no cycle has begun again.
fn until_next_cycle(lan: &mut Lan, from: Instant) -> Span {
    let cycles = |lan: &Lan| {
        let all = living(lan).into_iter();
        all.map(|k| lan.nodes[k].rether().counters().cycles).sum::<u64>()
    };
    let before = cycles(lan);
    while cycles(lan) == before {
        lan.run(Span::from_micros(100));
        assert!(lan.now.since(from) < SECOND, "the ring stands still");
    }
    lan.now.since(from)
}

#[test]
fn whoever_dies_and_whenever_the_next_cycle_begins_on_time() {
    for victim in 0..STATIONS {
        for moment in 0..35 {
            let mut lan = ring();
            lan.run(MS * moment);
            let from = lan.now;
            let will = will(&lan, victim);
            die(&mut lan, victim);
            lan.run(GUARDIAN);
            tell(&mut lan, &will);
            if victim < 2 {
                // Sender or receiver of the only channel: with it the ring ends.
                lan.run(MS * 300);
                let modes: Vec<_> = living(&lan).iter().map(|k| lan.nodes[*k].rether().mode()).collect();
                assert!(modes.iter().all(|mode| *mode == ModeName::Plain), "{victim} {moment}: {modes:?}");
                continue;
            }
            let took = until_next_cycle(&mut lan, from);
            // One cycle at most, and a claim within it. By silence it takes 800 ms.
            assert!(took < MS * 60, "{victim} died {moment} ms later: {took}");
            lan.run(MS * 40);
            assert!(knows(&lan, victim), "{victim} {moment}");
            assert_eq!(lan.nodes.iter().map(|node| node.rether().counters().wills).sum::<u64>(), 4);
        }
    }
}

/// The token holder removes the dead station from the list: no station claims.
#[test]
fn a_ring_whose_token_lives_does_not_stop() {
    let (mut claims, mut cases) = (0, 0);
    for moment in 0..40 {
        let mut lan = ring();
        lan.run(MS * moment);
        let link = |lan: &Lan| lan.nodes[4].rether().state_name();
        if link(&lan) == "holding" {
            continue;
        }
        let will = will(&lan, 4);
        die(&mut lan, 4);
        tell(&mut lan, &will);
        lan.run(MS * 80);
        assert!(knows(&lan, 4), "{moment}");
        claims += lan.nodes.iter().map(|node| node.rether().counters().claims).sum::<u64>();
        cases += 1;
    }
    assert!(cases > 20 && claims <= 2, "{claims} claims in {cases} deaths of who had no token");
}

#[test]
fn a_copy_a_replay_and_an_older_will_are_counted_and_change_nothing() {
    let mut lan = ring();
    let will = will(&lan, 4);
    die(&mut lan, 4);
    tell(&mut lan, &will);
    lan.run(MS * 100);
    let before: Vec<_> = (0..4).map(|k| lan.nodes[k].rether().newest()).collect();
    for _ in 0..3 {
        tell(&mut lan, &will);
        lan.run(MS * 50);
    }
    let after: Vec<_> = (0..4).map(|k| lan.nodes[k].rether().newest()).collect();
    assert_eq!(before, after, "no claim");
    assert!(lan.nodes[..4].iter().all(|node| node.rether().counters().wills_void == 3));
    // The station comes back as another boot; the will of the one before is not its own.
    let now = lan.now;
    lan.nodes[4] = Lan::boot(now, 4, |_| (), 99);
    lan.dead.clear();
    lan.run(SECOND);
    assert_eq!(lan.nodes[4].rether().mode(), ModeName::Token);
    tell(&mut lan, &will);
    lan.run(MS * 100);
    let station = lan.nodes[4].rether().station();
    assert!((0..4).all(|k| !lan.nodes[k].rether().is_dead(station)));
    assert_eq!(lan.nodes[4].rether().counters().wills_own, 0);
}

#[test]
fn a_will_without_the_newest_key_is_no_will() {
    let mut lan = ring();
    let sound = will(&lan, 4);
    let view = FrameView::parse(&sound, 0x88b5).expect("sound");
    let header = LinkHeader { ..*view.header() };
    let mut forged = vec![0; 100];
    let key = Key::new([9; 32]);
    let octets = emit_frame(&mut forged, MacAddr::BROADCAST, mac(4), 0x88b5, &header, 0, &key);
    forged.truncate(octets);
    assert_eq!((header.kind, header.payload), (Kind::Will, PayloadKind::None));
    tell(&mut lan, &forged);
    lan.run(MS * 100);
    for node in &lan.nodes {
        let counters = node.rether().counters();
        assert_eq!((counters.wills, counters.claims, counters.frames_unproven > 0), (0, 0, true));
    }
    assert_eq!(lan.nodes[4].rether().counters().wills_own, 0);
}

/// A holder of the key replays the will of a living station.
#[test]
fn who_hears_its_own_will_lets_go_and_comes_back_as_another_boot() {
    for moment in 0..35 {
        let mut lan = ring();
        lan.run(MS * moment);
        let (will, boot) = (will(&lan, 3), lan.nodes[3].rether().incarnation());
        tell(&mut lan, &will);
        let holders = lan.nodes.iter().filter(|node| node.rether().holds_token(lan.now)).count();
        assert!(holders <= 1 && !lan.nodes[3].rether().holds_token(lan.now), "{moment}: {holders}");
        lan.run(SECOND * 2);
        assert_ne!(lan.nodes[3].rether().incarnation(), boot);
        assert_eq!(lan.nodes[3].rether().counters().wills_own, 1);
        assert!(lan.nodes.iter().all(|node| node.rether().mode() == ModeName::Token), "{moment}");
        let station = lan.nodes[3].rether().station();
        assert!(lan.nodes.iter().all(|node| !node.rether().is_dead(station)), "{moment}");
    }
}

/// A station outside a ring, or one that leaves in good order, has no will.
#[test]
fn only_a_station_of_a_ring_has_a_will() {
    let mut frame = [0; 100];
    let mut lan = Lan::plain(3);
    assert!(lan.nodes.iter().all(|node| node.rether().write_will(&mut frame).is_none()));
    lan = Lan::token(3);
    let name = lan.nodes[2].rether().will_name();
    assert!(name.is_some() && name == lan.nodes[2].rether().will_name());
    let now = lan.now;
    lan.nodes[2].leave(now);
    assert_eq!(
        (lan.nodes[2].rether().will_name(), lan.nodes[2].rether().write_will(&mut frame)),
        (None, None)
    );
}

/// Two die at once: each has a will, and the ring goes on with the rest.
#[test]
fn two_wills_are_one_claim() {
    for moment in 0..35 {
        let mut lan = ring();
        lan.run(MS * moment);
        let from = lan.now;
        let wills = [will(&lan, 2), will(&lan, 3)];
        die(&mut lan, 2);
        die(&mut lan, 3);
        lan.run(GUARDIAN);
        wills.iter().for_each(|will| tell(&mut lan, will));
        let took = until_next_cycle(&mut lan, from);
        assert!(took < MS * 60, "{moment}: {took}");
        lan.run(MS * 40);
        assert!(knows(&lan, 2) && knows(&lan, 3), "{moment}");
    }
}

/// A will outlived the ring in which it was heard: the next one struck the station of that number.
#[test]
fn a_will_ends_with_its_ring() {
    for moment in 0..40 {
        let mut lan = Lan::token(4);
        lan.run(MS * moment);
        let will = will(&lan, 0);
        die(&mut lan, 0);
        lan.run(GUARDIAN);
        tell(&mut lan, &will);
        lan.run(MS * 300);
        let victim = mac(0);
        assert!((1..4).all(|k| lan.nodes[k].rether().mode() == ModeName::Plain), "{moment}");
        assert!((1..4).all(|k| lan.nodes[k].rether().member_at(victim).is_none()), "{moment}: it is gone");
        let now = lan.now;
        lan.nodes[0] = Lan::boot(now, 0, |_| (), 99);
        lan.dead.clear();
        lan.run(SECOND * 2);
        let dead = |lan: &Lan| -> u64 {
            lan.nodes.iter().map(|node| node.rether().counters().stations_declared_dead).sum()
        };
        let before = dead(&lan);
        for initiator in 1..4 {
            lan.opened = false;
            let channel = lan.open(initiator, (initiator + 1) % 4);
            lan.run(SECOND);
            assert!(lan.opened, "{moment}, {initiator}");
            assert_eq!(dead(&lan), before, "{moment}, {initiator}: all live");
            let now = lan.now;
            lan.nodes[initiator].close(now, channel);
            lan.drain(initiator);
            lan.run(SECOND);
        }
    }
}
