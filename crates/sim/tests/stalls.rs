//! Worlds whose lease and death timer follow the stalls of their hosts (decision 017).

use crate::support::{ms, stream};
use rota_contract::CloseCause;
use rota_proto::{ChannelEvent, Settings, Why};
use rota_sim::faults::Happened;
use rota_sim::sweep::{self, Campaign, STALLS};
use rota_sim::{World, WorldSpec};
use rota_units::{BitRate, Octets, Span};

const TRT: Span = Span::from_nanos(33_333_333);

/// Five stations at 100 Mbit/s with the product's timers, and a stream from the first to the last.
fn ring(seed: u64, follow_stalls: bool) -> World {
    let settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
    let mut world =
        World::new(seed, WorldSpec::with(5, settings.with(|medium| medium.follow_stalls = follow_stalls)));
    world.run_for(ms(2_000));
    stream(&mut world, 0, 4).expect("one stream fits");
    world
}

/// The death timer in force at a station, and why.
fn death_timer(world: &mut World, index: usize) -> (Span, Why) {
    let of = |node: &mut rota_proto::Node, now| {
        let timers = node.rether().timers_in_force(now);
        (timers.death, timers.why)
    };
    world.with(index, of).expect("alive")
}

/// Sends a unit a cycle for so long; the longest time between two arrivals, less the cycle.
fn longest_gap(world: &mut World, span: Span) -> Span {
    let channel = world.hosts[0].node.as_ref().expect("alive").own_channels().next().expect("open").channel;
    let until = world.now() + span;
    let begin = world.now();
    while world.now() < until {
        world.unit(0, channel, 6_250);
        world.run_for(TRT);
    }
    let came = world.hosts[4].programs.receipts.values().flatten().filter(|unit| unit.at >= begin);
    let times: Vec<_> = came.map(|unit| unit.at).collect();
    let longest = times.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap_or(Span::ZERO);
    longest.max(world.now().since(*times.last().expect("units came"))).minus(TRT)
}

/// A fresh ring has the configured timers; where nobody stands still it has the shortest ones after a while.
#[test]
fn timers_become_as_short_as_the_hosts_allow_and_long_again_at_once() {
    let mut world = ring(1, true);
    assert_eq!(death_timer(&mut world, 2).0, ms(500));
    assert!(matches!(death_timer(&mut world, 2).1, Why::Unwatched(_)));
    world.run_for(ms(8_000));
    for index in 0..5 {
        let (death, why) = death_timer(&mut world, index);
        assert!(death < ms(75) && matches!(why, Why::Stall(Span::ZERO, _)), "{index}: {death} {why:?}");
    }
    world.with(3, |node, now| node.stood_still(now, ms(44)));
    world.run_for(ms(1_300));
    let station = world.station(3);
    for index in 0..5 {
        let (death, why) = death_timer(&mut world, index);
        assert_eq!(why, Why::Stall(ms(44), station), "{index}");
        assert!(death >= ms(132) && death < ms(190), "{index}: {death}");
    }
    world.with(1, |node, now| node.stood_still(now, ms(3_000)));
    world.run_for(ms(1_300));
    assert_eq!(death_timer(&mut world, 0).0, ms(500));
    // A stall is forgotten after ten minutes.
    world.run_for(ms(670_000));
    assert!(death_timer(&mut world, 0).0 < ms(75));
    assert_eq!(world.violations(), []);
}

/// Item 3 of issue 15: a station whose link goes down stops the others for 300 ms at most.
#[test]
fn a_silent_death_costs_others_what_the_announced_stalls_allow() {
    for (seed, victim) in [(2, 1), (3, 2), (4, 3)] {
        let mut world = ring(seed, true);
        world.run_for(ms(10_000));
        let random = world.stream("test");
        world.segments[0].wires.unplug(victim, rota_units::Instant::FAR, &random);
        let gap = longest_gap(&mut world, ms(1_500));
        assert!(gap > ms(60) && gap < ms(260), "{victim}: {gap}");
        assert_eq!(world.violations(), []);
    }
    let mut world = ring(2, false);
    world.run_for(ms(10_000));
    let random = world.stream("test");
    world.segments[0].wires.unplug(1, rota_units::Instant::FAR, &random);
    let gap = longest_gap(&mut world, ms(2_000));
    assert!(gap > ms(500), "with fixed timers it takes {gap}");
}

/// The receiver's node stood still for a second: its channel stayed open, and it knew nothing of the units
/// that were left out or had no slot meanwhile.
#[test]
fn a_receiver_that_stood_still_learns_that_its_channel_is_over_and_counts_its_units() {
    for (seed, stall) in [(6, 1_000), (7, 3_000)] {
        let mut world = ring(seed, true);
        let sent = world.hosts[0].node.as_ref().expect("alive").own_channels().next().expect("open").channel;
        let units = |world: &mut World, count| {
            for _ in 0..count {
                world.unit(0, sent, 6_250);
                world.run_for(TRT);
            }
        };
        units(&mut world, 30);
        world.pause(4, ms(stall));
        units(&mut world, 5);
        world.run_for(ms(stall + 600));
        let closed = |index: usize| {
            world.hosts[index].programs.events.iter().find_map(|event| match event {
                ChannelEvent::Closed { cause, stated, tally, .. } => Some((*cause, *stated, *tally)),
                _ => None,
            })
        };
        let (cause, stated, at_sender) = closed(0).expect("the sender ended it");
        assert_eq!(cause, CloseCause::PeerGone);
        let (cause, told, at_receiver) = closed(4).expect("the receiver ended it");
        assert_eq!((cause, told), (CloseCause::WasSilent, stated));
        let units = stated.expect("stated").units;
        assert_eq!(at_receiver.units + at_receiver.lost + at_receiver.incomplete, units, "each counts once");
        assert_eq!(at_receiver.lost, at_sender.lost, "{stall} ms: {at_receiver:?} {at_sender:?}");
        assert!(at_receiver.lost > 0, "{at_receiver:?}");
        assert_eq!(world.violations(), []);
    }
}

/// A station that is stopped for longer than the ring is patient is claimed, and is let in again.
#[test]
fn a_station_that_is_stopped_stops_no_other_channel_for_longer() {
    for victim in [1, 2, 3] {
        let mut world = ring(5, true);
        world.run_for(ms(10_000));
        world.pause(victim, ms(200));
        let gap = longest_gap(&mut world, ms(3_000));
        assert!(gap <= ms(200) + TRT * 2, "{victim}: {gap}");
        assert_eq!(death_timer(&mut world, victim).0, ms(500), "it has announced what it needs");
        let node = world.hosts[victim].node.as_ref().expect("alive");
        let (station, list) = (node.rether().station(), node.rether().list().expect("in the ring"));
        assert!(station != 0 && !list.dead.contains(station));
        assert_eq!(world.violations(), []);
    }
}

/// How many seeds; `STALL_SEEDS` and `STALL_FROM` ask for others.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name: &str, usual| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(usual);
    let from = number("STALL_FROM", STALLS);
    from..from + number("STALL_SEEDS", usual)
}

/// Random faults, hosts that stand still, and in every second world one that never says so.
#[test]
fn worlds_whose_timers_follow_stalls_hold_every_invariant() {
    let (mut paused, mut bad) = (0, Vec::new());
    for campaign in [Campaign::Product, Campaign::Proven] {
        for seed in seeds(150) {
            let outcome = sweep::run(seed, &campaign.scenario(seed));
            if !outcome.violations.is_empty() {
                bad.push(format!("{campaign:?} {seed}: {:?}", outcome.violations));
            }
            paused += outcome.happened.of(Happened::PausedLong) + outcome.happened.of(Happened::PausedShort);
        }
    }
    assert!(bad.is_empty(), "{} bad\n{}", bad.len(), bad.join("\n"));
    assert!(paused > 100, "{paused} pauses");
}
