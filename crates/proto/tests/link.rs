//! Tests of a point-to-point link alone: two ends prove each other, and there is no token.

use crate::pair::{self, A, B, C, Pair, UNIT, mac, ms, node_id};
use rota_contract::{CloseCause, Mismatch};
use rota_proto::Difference;
use rota_proto::{ChannelEvent, MediumKind, ModeName};
use rota_units::Span;
use rota_wire::Kind;

const LINK: MediumKind = MediumKind::Link;

/// The mismatches that a station names.
fn mismatches(pair: &mut Pair, k: usize) -> Vec<(rota_wire::MacAddr, Difference)> {
    let now = pair.now;
    pair.node(k).medium().mismatches(now).map(|found| (found.mac, found.difference)).collect()
}

#[test]
fn no_token_crosses_a_link_and_hellos_are_rare_without_a_channel() {
    let mut pair = Pair::new(LINK);
    let idle = pair.sent.len();
    pair.run(ms(10_000));
    let hellos = pair.sent.len() - idle;
    assert!((18..=26).contains(&hellos), "one a second of each: {hellos}");
    let (channel, granted) = pair.open(UNIT);
    for number in 0..30 {
        pair.unit(channel, number, UNIT);
        pair.run(ms(34));
    }
    assert!(pair.came.len() == 30 && pair.came.iter().all(|came| came.took <= granted.bound()));
    let kinds = pair.sent.iter().filter_map(|sent| sent.kind);
    let known = [Kind::Announce, Kind::Signal, Kind::Data, Kind::Report];
    assert!(kinds.clone().all(|kind| known.contains(&kind)), "{:?}", kinds.collect::<Vec<_>>());
    assert_eq!(pair.node(A).medium().generation(), 0);
}

/// A unit waits for one frame of its host at most, and for its own length.
#[test]
fn a_unit_finds_one_ordinary_frame_ahead() {
    let mut pair = Pair::new(LINK);
    let (channel, _) = pair.open(UNIT);
    for number in 0..40 {
        (0..30).for_each(|tag| pair.host_frame(A, 100 * number + tag));
        // At another place of a frame each time.
        pair.run(ms(33) + Span::from_micros(u64::from(number) * 31));
        pair.unit(channel, u64::from(number), UNIT);
    }
    pair.run(ms(50));
    assert_eq!(pair.came.len(), 40);
    let frame = pair::settings(LINK).link.frame_span_max();
    let own = pair::settings(LINK).link.rate.span_of_up(rota_units::Octets::new(6_760));
    let most = own + frame + frame.div_down(16) + Span::from_micros(100) * 2;
    let worst = pair.came.iter().map(|came| came.took).max().expect("forty");
    assert!(worst <= most, "{worst}, over {most}");
}

/// Each direction is admitted by its sender alone.
#[test]
fn both_directions_carry_a_full_link_at_the_same_time() {
    let mut pair = Pair::new(LINK);
    let mut open = Vec::new();
    for _ in 0..5 {
        open.push(pair.open(UNIT).0);
    }
    let before = pair.events.len();
    pair.node(A).listen(7);
    let mut back = Pair::request(UNIT, UNIT);
    back.to = rota_proto::Destination::Node(node_id(A));
    let now = pair.now;
    let channel = pair.node(B).open(now, &back).expect("a sound request");
    pair.drain(B);
    pair.run(ms(1_000));
    let is_it =
        |event: &ChannelEvent| matches!(event, ChannelEvent::Opened { channel: of, .. } if *of == channel);
    let opened = |(k, event): &(usize, ChannelEvent)| *k == B && is_it(event);
    assert!(pair.events[before..].iter().any(opened), "the other direction has all of its room");
    assert_eq!((pair.mode(A), pair.mode(B)), (ModeName::Paced, ModeName::Paced));
}

#[test]
fn a_third_station_is_named_at_all_three_and_gets_no_share() {
    let mut pair = Pair::of(LINK, &[LINK, LINK, LINK]);
    pair.kill(C);
    pair.run(ms(2_500));
    pair.restart(C);
    let (channel, granted) = pair.open(UNIT);
    for number in 0..90 {
        pair.unit(channel, number, UNIT);
        pair.run(ms(34));
    }
    let third = |k: usize| (mac(k), Difference { what: Mismatch::ThirdStation, ours: 0, theirs: 0 });
    assert_eq!(mismatches(&mut pair, A), [third(C)]);
    assert_eq!(mismatches(&mut pair, B), [third(C)]);
    assert!(mismatches(&mut pair, C).iter().all(|found| *found == third(A) || *found == third(B)));
    assert!(!mismatches(&mut pair, C).is_empty());
    assert_eq!((pair.mode(C), pair.node(C).medium().station()), (ModeName::Joining, 0));
    let now = pair.now;
    assert!(pair.node(C).open(now, &Pair::request(UNIT, UNIT)).is_err());
    assert!(pair.came.len() == 90 && pair.came.iter().all(|came| came.took <= granted.bound()));
    assert_eq!(pair.ends(A), []);
    // Once one of the two has gone, the third takes its place.
    pair.kill(B);
    pair.run(ms(8_000));
    assert_eq!(pair.ends(A), [CloseCause::PeerGone]);
    assert_eq!((pair.mode(A), pair.mode(C)), (ModeName::Plain, ModeName::Plain));
}

#[test]
fn three_that_begin_together_become_two_and_one() {
    let mut pair = Pair::of(LINK, &[LINK, LINK, LINK]);
    pair.run(ms(15_000));
    let alone = [A, B, C].into_iter().filter(|k| pair.mode(*k) == ModeName::Joining).count();
    assert_eq!(alone, 1);
    for k in [A, B, C] {
        let peer = pair.node(k).medium().members().first().map(|peer| peer.mac);
        let of_peer = [A, B, C].into_iter().find(|other| peer == Some(mac(*other)));
        let back = of_peer.and_then(|other| Some(pair.node(other).medium().members().first()?.mac));
        assert!(peer.is_none() || back == Some(mac(k)), "{k} and its peer take each other");
    }
}

#[test]
fn another_medium_at_the_other_end_is_named_at_both() {
    let mut pair = Pair::of(LINK, &[LINK, MediumKind::Rether]);
    pair.run(ms(8_000));
    let differs = |ours, theirs| Difference { what: Mismatch::Medium, ours, theirs };
    assert_eq!(mismatches(&mut pair, A), [(mac(B), differs(1, 0))]);
    assert_eq!(mismatches(&mut pair, B), [(mac(A), differs(0, 1))]);
    assert_eq!(pair.mode(A), ModeName::Joining);
    assert!(pair.node(B).medium().members().is_empty());
}

#[test]
fn a_will_ends_a_channel_at_once_and_only_that_of_this_boot() {
    let mut pair = Pair::new(LINK);
    let (channel, _) = pair.open(UNIT);
    let mut frame = [0; 200];
    let octets = pair.node(B).medium().write_will(&mut frame).expect("it has a peer");
    pair.kill(B);
    pair.inject(A, &frame[..octets]);
    assert_eq!(pair.ends(A), [CloseCause::PeerGone], "{channel:?}");
    pair.restart(B);
    pair.run(ms(4_000));
    let _ = pair.open(UNIT);
    pair.inject(A, &frame[..octets]);
    pair.run(ms(100));
    assert_eq!(pair.ends(A).len(), 1, "of the boot before");
    assert_eq!(pair.node(A).medium().counters().wills_void, 1);
}

/// Frames of the boot before, and frames that were heard: nothing of them counts.
#[test]
fn what_is_played_again_changes_nothing() {
    let mut pair = Pair::new(LINK);
    // All that B says of itself and to A in its first boot.
    let mut old = Vec::new();
    let (first, _) = pair.open(UNIT);
    for _ in 0..12_000 {
        pair.run(Span::from_micros(100));
        old.extend(pair.on_wire(B));
    }
    old.dedup();
    assert!(old.len() > 5);
    let now = pair.now;
    pair.node(A).close(now, first);
    pair.drain(A);
    pair.kill(B);
    pair.run(ms(6_000));
    pair.restart(B);
    pair.run(ms(4_000));
    let (channel, granted) = pair.open(UNIT);
    let before = pair.ends(A).len();
    let mut fresh = Vec::new();
    for number in 0..40 {
        for frame in &old {
            pair.inject(A, frame);
        }
        pair.unit(channel, number, UNIT);
        for _ in 0..340 {
            pair.run(Span::from_micros(100));
            fresh.extend(pair.on_wire(B));
        }
        fresh.iter().for_each(|frame| pair.inject(A, frame));
    }
    assert_eq!(pair.ends(A).len(), before, "no end");
    assert_eq!(pair.node(A).medium().members().len(), 1);
    let came: Vec<_> = pair.came.iter().filter(|came| came.channel != first).collect();
    assert!(came.len() == 40 && came.iter().all(|came| came.took <= granted.bound()));
    assert!(pair.node(A).medium().counters().frames_replayed > 0);
}

/// A station that boots again is another one: the channels of its boot before end, and it is met anew.
#[test]
fn a_boot_ends_what_the_one_before_had() {
    let mut pair = Pair::new(LINK);
    let _ = pair.open(UNIT);
    pair.restart(B);
    pair.run(ms(1_500));
    assert_eq!(pair.ends(A), [CloseCause::PeerGone]);
    pair.run(ms(1_000));
    let _ = pair.open(UNIT);
}

/// A station stands still for longer than the death timer: the other one ends the channel, and the one that
/// stood learns of it.
#[test]
fn a_station_that_stood_still_learns_that_its_channels_are_over() {
    for who in [A, B] {
        let mut pair = Pair::new(LINK);
        let (channel, granted) = pair.open(UNIT);
        for number in 0..5 {
            pair.unit(channel, number, UNIT);
            pair.run(ms(34));
        }
        assert!(pair.came.iter().all(|came| came.took <= granted.bound()));
        pair.kill(who);
        pair.run(ms(2_000));
        pair.wake(who);
        pair.run(ms(8_000));
        assert_eq!(pair.ends(A).len(), 1, "{who}");
        assert_eq!(pair.ends(B).len(), 1, "{who}");
        pair.assert_nothing_left();
        let _ = pair.open(UNIT);
    }
}

/// A peer without a channel may be silent for some seconds.
#[test]
fn a_link_without_a_channel_outlasts_a_short_cut() {
    let mut pair = Pair::new(LINK);
    let gone = |(_, event): &(usize, ChannelEvent)| matches!(event, ChannelEvent::MembersChanged);
    let changes = pair.events.iter().filter(|event| gone(event)).count();
    assert!(changes > 0);
    pair.is_cut = true;
    pair.run(ms(2_500));
    pair.is_cut = false;
    pair.run(ms(7_000));
    assert_eq!(pair.events.iter().filter(|event| gone(event)).count(), changes);
    assert_eq!((pair.mode(A), pair.mode(B)), (ModeName::Plain, ModeName::Plain));
}

/// It is refused for its counter, before anything of it is looked at.
#[test]
fn a_fragment_that_comes_again_is_a_replay() {
    let mut pair = Pair::new(LINK);
    let (channel, _) = pair.open(UNIT);
    pair.unit(channel, 0, UNIT);
    let mut frames = Vec::new();
    for _ in 0..100 {
        pair.run(Span::from_micros(100));
        frames.extend(pair.on_wire(A));
    }
    frames.dedup();
    assert!(frames.len() >= 5 && pair.came.len() == 1);
    let before = *pair.node(B).medium().counters();
    frames.iter().for_each(|frame| pair.inject(B, frame));
    let after = *pair.node(B).medium().counters();
    assert_eq!(after.frames_replayed - before.frames_replayed, frames.len() as u64);
    assert_eq!(after.fragments_unknown, before.fragments_unknown);
}

/// A hello of a station that was here once, played to both ends again and again, does not keep two stations
/// from each other.
#[test]
fn a_recorded_hello_of_a_third_station_keeps_no_link_from_forming() {
    for every in [20, 150, 900, 3_500] {
        let mut pair = Pair::of(LINK, &[LINK, LINK, LINK]);
        [A, B].into_iter().for_each(|k| pair.kill(k));
        let mut old = Vec::new();
        for _ in 0..1_000 {
            pair.run(Span::from_micros(100));
            old.extend(pair.on_wire(C));
        }
        pair.kill(C);
        let hello = old.first().expect("it has said hello").clone();
        pair.inject(A, &hello);
        pair.inject(B, &hello);
        [A, B].into_iter().for_each(|k| pair.restart(k));
        for _ in 0..8_000 / every {
            [A, B].into_iter().for_each(|k| pair.inject(k, &hello));
            pair.run(ms(every));
        }
        assert_eq!((pair.mode(A), pair.mode(B)), (ModeName::Plain, ModeName::Plain), "each {every} ms");
    }
}

/// Hundreds of recorded frames a second looked like a station's.
#[test]
fn frames_of_a_boot_before_are_counted_as_a_strangers() {
    let mut pair = Pair::new(LINK);
    let mut hellos = Vec::new();
    for _ in 0..15_000 {
        pair.run(Span::from_micros(100));
        hellos.extend(pair.on_wire(B));
    }
    let mut will = [0; 200];
    let octets = pair.node(B).medium().write_will(&mut will).expect("it has a peer");
    pair.restart(B);
    pair.run(ms(4_000));
    let replayed = |pair: &mut Pair| pair.node(A).medium().counters().frames_replayed;
    let hello = hellos.first().expect("it has said hello").clone();
    for (frame, answered) in [(&will[..octets], 0), (&hello[..], 5)] {
        let before = replayed(&mut pair);
        (0..500).for_each(|_| pair.inject(A, frame));
        let counted = replayed(&mut pair) - before;
        assert!((500 - answered..=500).contains(&counted), "{counted}");
    }
    let (channel, granted) = pair.open(UNIT);
    pair.unit(channel, 0, UNIT);
    pair.run(ms(50));
    assert!(pair.came.iter().all(|came| came.took <= granted.bound()) && pair.came.len() == 1);
}
