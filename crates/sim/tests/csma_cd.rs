//! The shared segment: nothing is lost or doubled, winners never overlap, seeds repeat, and capture shows.

use proptest::prelude::*;
use rota_sim::media::csma_cd::{Capture, Card, CsmaCd, FrameFate, SendError, Spec, SpecError};
use rota_units::{Instant, Octets, Span};

const FULL: Octets = Octets::new(1518);

fn us(n: u64) -> Instant {
    Instant::from_nanos(n * 1_000)
}

fn segment(spec: Spec, stations: usize, fifo: usize) -> CsmaCd {
    let mut medium = CsmaCd::new(spec).expect("a sound segment");
    for _ in 0..stations {
        medium.attach(Card::standard(fifo));
    }
    medium
}

/// Runs until nothing happens any more.
fn drain(medium: &mut CsmaCd) -> Vec<FrameFate> {
    let mut all = Vec::new();
    while medium.next_event() < Instant::FAR {
        let at = medium.next_event();
        all.extend(medium.advance(at));
    }
    all
}

/// From when to when each delivered frame was on the wire, and whose it was.
fn delivered(outcomes: &[FrameFate]) -> Vec<(Instant, Instant, usize)> {
    let on_wire = |outcome: &FrameFate| match *outcome {
        FrameFate::Delivered { started, sent, from, .. } => Some((started, sent, from)),
        FrameFate::Discarded { .. } => None,
    };
    outcomes.iter().filter_map(on_wire).collect()
}

#[test]
fn a_frame_on_a_quiet_segment_takes_its_wire_time_and_the_way() {
    let mut medium = segment(Spec::ethernet_10(1), 2, 1);
    medium.send(us(100), 0, 7, FULL).expect("room");
    let outcomes = drain(&mut medium);
    // Preamble and frame: 1,526 octets at 10 Mbit/s are 1,220.8 us, and 5 us of cable.
    let sent = us(100) + Span::from_nanos(1_220_800);
    let at = sent + Span::from_micros(5);
    assert_eq!(
        outcomes,
        [FrameFate::Delivered { from: 0, id: 7, started: us(100), sent, at, collisions: 0 }]
    );
}

#[test]
fn a_gap_stands_before_each_frame() {
    let mut medium = segment(Spec::ethernet_10(1), 2, 2);
    medium.send(us(0), 0, 1, FULL).expect("room");
    medium.send(us(0), 0, 2, FULL).expect("room");
    medium.send(us(500), 1, 3, FULL).expect("room");
    let wire = delivered(&drain(&mut medium));
    assert_eq!(wire.len(), 3);
    for pair in wire.windows(2) {
        assert!(pair[1].0.since(pair[0].1) >= Span::from_nanos(9_600), "{wire:?}");
    }
}

#[test]
fn a_short_frame_is_padded() {
    let mut medium = segment(Spec::ethernet_10(1), 1, 1);
    medium.send(us(0), 0, 1, Octets::new(1)).expect("room");
    let (started, sent, _) = delivered(&drain(&mut medium))[0];
    assert_eq!(sent.since(started), Span::from_nanos(57_600));
}

#[test]
fn a_deferring_station_waits_for_the_carrier() {
    let mut medium = segment(Spec::ethernet_10(1), 2, 1);
    medium.send(us(0), 0, 1, FULL).expect("room");
    medium.send(us(600), 1, 2, FULL).expect("room");
    let outcomes = drain(&mut medium);
    assert_eq!(medium.counters().aborted, 0, "it heard the carrier and sent nothing");
    assert_eq!(delivered(&outcomes)[1].0, us(0) + Span::from_nanos(1_220_800 + 5_000 + 9_600));
}

#[test]
fn two_that_start_within_one_propagation_collide_and_both_get_through() {
    let mut medium = segment(Spec::ethernet_10(3), 2, 1);
    medium.send(us(0), 0, 1, FULL).expect("room");
    medium.send(us(4), 1, 2, FULL).expect("room");
    let outcomes = drain(&mut medium);
    assert!(medium.counters().aborted >= 2);
    assert_eq!(delivered(&outcomes).len(), 2);
}

#[test]
fn sixteen_collisions_discard_a_frame() {
    // A slot so short that every back-off ends within the gap: both start again together, every time.
    let (slot, propagation) = (Span::from_nanos(2), Span::from_nanos(1));
    let spec = Spec { slot, propagation, ..Spec::ethernet_10(1) };
    let mut medium = segment(spec, 2, 1);
    medium.send(us(0), 0, 1, FULL).expect("room");
    medium.send(us(0), 1, 2, FULL).expect("room");
    drain(&mut medium);
    let counters = medium.counters();
    assert_eq!((counters.discarded, counters.delivered, counters.aborted), (2, 0, 32));
}

#[test]
fn a_full_card_and_a_missing_station_are_told() {
    let mut medium = segment(Spec::ethernet_10(1), 1, 1);
    assert_eq!(medium.send(us(0), 0, 1, FULL), Ok(()));
    assert_eq!(medium.send(us(0), 0, 2, FULL), Err(SendError::Full(0)));
    assert_eq!(medium.send(us(0), 9, 2, FULL), Err(SendError::NoStation(9)));
    let long = Spec { propagation: Span::from_micros(30), ..Spec::ethernet_10(1) };
    assert!(matches!(CsmaCd::new(long), Err(SpecError::SlotTooShort { .. })));
}

/// Longest run of frames of one station while another one also had frames waiting all the time.
fn longest_run(capture: Capture, seed: u64) -> (usize, usize) {
    let mut medium = segment(Spec { capture, ..Spec::ethernet_10(seed) }, 2, 2);
    let (mut id, mut wire, mut now) = (0, Vec::new(), Instant::ZERO);
    while wire.len() < 2_000 {
        for station in 0..2 {
            while medium.queued(station) < 2 {
                id += 1;
                medium.send(now, station, id, Octets::new(400)).expect("room");
            }
        }
        now = medium.next_event();
        wire.extend(delivered(&medium.advance(now)));
    }
    let (mut longest, mut run, mut changes) = (1, 1, 0);
    for pair in wire.windows(2) {
        run = if pair[0].2 == pair[1].2 { run + 1 } else { 1 };
        changes += usize::from(run == 1);
        longest = longest.max(run);
    }
    (longest, changes)
}

#[test]
fn the_winner_captures_the_segment_unless_capture_is_avoided() {
    let over_seeds = |capture| {
        let runs = (1..=10).map(|seed| longest_run(capture, seed));
        runs.fold((0, 0), |(sum, changes), (longest, n)| (sum + longest, changes + n))
    };
    let (standard, standard_changes) = over_seeds(Capture::Standard);
    let (avoided, avoided_changes) = over_seeds(Capture::Avoided);
    assert!(standard > 200, "longest runs of {standard} frames in ten seeds");
    assert!(avoided * 10 < standard, "{avoided} against {standard}");
    assert!(avoided_changes > standard_changes * 10, "{avoided_changes} against {standard_changes}");
}

#[test]
fn a_card_that_cuts_its_gap_wins_more() {
    let mut medium = CsmaCd::new(Spec::ethernet_10(5)).expect("sound");
    medium.attach(Card::standard(2));
    medium.attach(Card { gap: Span::from_nanos(4_700), ..Card::standard(2) });
    let (mut id, mut now, mut wins) = (0, Instant::ZERO, [0u32; 2]);
    while wins.iter().sum::<u32>() < 2_000 {
        for station in 0..2 {
            while medium.queued(station) < 2 {
                id += 1;
                medium.send(now, station, id, Octets::new(400)).expect("room");
            }
        }
        now = medium.next_event();
        for (_, _, from) in delivered(&medium.advance(now)) {
            wins[from] += 1;
        }
    }
    assert!(wins[1] * 2 > wins[0] * 3, "{wins:?}");
}

/// What a random load did.
fn load(
    seed: u64,
    stations: usize,
    frames: &[(u64, usize, u64)],
    propagation: u64,
) -> (CsmaCd, Vec<FrameFate>) {
    let propagation = Span::from_nanos(propagation);
    let mut medium = segment(Spec { propagation, ..Spec::ethernet_10(seed) }, stations, 4);
    let (mut now, mut outcomes) = (Instant::ZERO, Vec::new());
    for (id, (wait, station, octets)) in frames.iter().enumerate() {
        now += Span::from_nanos(*wait);
        outcomes.extend(medium.advance(now));
        // A full card refuses, and a refused frame was never sent.
        let _ = medium.send(now, station % stations, id as u64, Octets::new(*octets));
    }
    outcomes.extend(medium.advance(now));
    let counters = medium.counters();
    let queued: usize = (0..stations).map(|station| medium.queued(station)).sum();
    assert_eq!(counters.sent, counters.delivered + counters.discarded + queued as u64);
    outcomes.extend(drain(&mut medium));
    (medium, outcomes)
}

proptest! {
    #[test]
    fn nothing_is_lost_or_doubled_and_winners_never_overlap(
        seed in any::<u64>(),
        stations in 1usize..8,
        propagation in 0u64..25_600,
        frames in prop::collection::vec((0u64..900_000, 0usize..8, 1u64..1_519), 1..120)
    ) {
        let (medium, outcomes) = load(seed, stations, &frames, propagation);
        let counters = medium.counters();
        prop_assert_eq!(counters.sent, counters.delivered + counters.discarded);
        prop_assert_eq!(outcomes.len() as u64, counters.sent);
        let wire = delivered(&outcomes);
        for pair in wire.windows(2) {
            prop_assert!(pair[0].1 <= pair[1].0, "{:?} overlaps {:?}", pair[0], pair[1]);
        }
        let mut ids: Vec<u64> = outcomes.iter().map(|o| match o {
            FrameFate::Delivered { id, .. } | FrameFate::Discarded { id, .. } => *id,
        }).collect();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), outcomes.len());
    }

    #[test]
    fn a_stations_frames_keep_their_order_and_a_seed_its_run(
        seed in any::<u64>(),
        frames in prop::collection::vec((0u64..500_000, 0usize..4, 1u64..1_519), 1..80)
    ) {
        let (_, outcomes) = load(seed, 4, &frames, 5_000);
        let (_, again) = load(seed, 4, &frames, 5_000);
        prop_assert_eq!(&outcomes, &again);
        let mut last = [None; 4];
        for outcome in &outcomes {
            let (FrameFate::Delivered { from, id, .. } | FrameFate::Discarded { from, id, .. }) = *outcome;
            prop_assert!(last[from] < Some(id));
            last[from] = Some(id);
        }
    }
}
