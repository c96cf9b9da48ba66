//! Stations that do not take part, and frames that nobody has just sent.

use crate::support::{booted, ms, stream};
use rota_proto::{ModeName, Refused};
use rota_sim::{World, WorldSpec};
use rota_units::Span;
use rota_wire::Verdict;

/// Fault 32. The last station runs with another lease, which nobody could see.
#[test]
fn a_station_with_other_settings_never_enters_the_ring_and_the_others_go_on() {
    let spec = WorldSpec::new(5);
    let mut other = spec.settings.clone();
    other.lease = ms(200);
    let mut world = World::dark(72, spec);
    world.hosts[4].ports[0].settings = Some(other);
    (0..5).for_each(|index| world.start(index));
    world.run_for(ms(2_000));
    let channel = world.open(0, 3, 6_250).expect("the request is sound");
    world.run_for(ms(1_500));
    assert!(world.hosts[0].opened(channel).flatten().is_some(), "four stations need no fifth");
    for restarts in [false, true, false] {
        if restarts {
            world.start(4);
        }
        world.unit(0, channel, 6_250);
        world.run_for(ms(5_000));
        let stranger = world.hosts[4].node.as_ref().expect("alive").rether();
        assert_ne!(stranger.mode(), ModeName::Token);
        assert_eq!(stranger.members().len(), 0);
        let told = stranger.refused().first().expect("it says why it is alone");
        assert_eq!(told.why, Verdict::Settings);
    }
    for index in 0..4 {
        let link = world.hosts[index].node.as_ref().expect("alive").rether();
        assert_eq!((link.mode(), link.members().len()), (ModeName::Token, 3));
        assert_eq!(
            link.refused().first().map(|told| (told.why, told.here)),
            Some((Verdict::Settings, false))
        );
        assert_eq!((link.counters().claims, link.counters().tokens_regenerated), (0, 0));
    }
    assert_eq!(world.hosts[3].programs.receipts.values().map(Vec::len).sum::<usize>(), 3);
    assert_eq!(world.violations(), []);
}

/// Admission reckons with three stations. Two more come when the ring is full: with them the reservations
/// would break their promise, and they are told so.
#[test]
fn a_joiner_for_whom_the_reservations_leave_no_room_is_refused_with_the_reason() {
    for (stations_max, members) in [(3, 3), (5, 5)] {
        let mut spec = WorldSpec::new(5);
        spec.settings.stations_max = stations_max;
        spec.settings.nrt_latency_max = ms(112);
        let mut world = World::new(73, spec);
        world.kill(3);
        world.kill(4);
        world.run_for(ms(6_000));
        let channel = world.open(0, 1, 6_250).expect("sound");
        world.run_for(ms(1_000));
        assert!(world.hosts[0].opened(channel).flatten().is_some(), "one stream fits");
        for octets in [6_250, 6_250, 6_250, 2_000, 1_000, 1_000, 1_000, 1_000, 1_000, 500, 500, 300] {
            world.open(0, 1, octets).expect("sound");
            world.run_for(ms(500));
        }
        let before = world.hosts[0].node.as_ref().expect("alive").rether().slots().to_vec();
        world.start(3);
        world.start(4);
        world.run_for(ms(4_000));
        let link = |world: &World, index: usize| {
            world.hosts[index].node.as_ref().expect("alive").rether().refused().to_vec()
        };
        let node = world.hosts[0].node.as_ref().expect("alive");
        assert_eq!(node.rether().members().len() + 1, members, "N = {stations_max}");
        assert_eq!(node.rether().slots(), before, "nobody's reservation suffers");
        let full = |told: &Vec<Refused>| told.iter().any(|told| told.why == Verdict::Full);
        assert_eq!(full(&link(&world, 0)), members == 3);
        assert_eq!(full(&link(&world, 3)) && full(&link(&world, 4)), members == 3);
    }
}

/// Faults 13 and 27: its kernel stamps nothing, so it never takes a token up, and each time the ring stalls.
#[test]
fn a_station_that_stalls_the_ring_again_and_again_waits_ever_longer() {
    let mut world = booted(74);
    stream(&mut world, 0, 4).expect("fits");
    world.hosts[2].flaws.stampless = true;
    let claims = |world: &World| -> u64 {
        let nodes = world.hosts.iter().filter_map(|host| host.node.as_ref());
        nodes.map(|node| node.rether().counters().tokens_regenerated).sum()
    };
    let mut each = Vec::new();
    for _ in 0..5 {
        let before = claims(&world);
        world.run_for(ms(20_000));
        each.push(claims(&world) - before);
    }
    assert!(each[0] >= 3, "three strikes: {each:?}");
    // Each time that it is let in it takes three strikes to leave it out again.
    assert!(each[1] < each[0] && each[2..].iter().sum::<u64>() <= 4, "{each:?}");
    assert_eq!(world.agreed_mode(), Some(ModeName::Token));
    // Its stalls are late tokens to everybody else, which no window excuses; but never two holders.
    assert!(world.violations().iter().all(|found| !found.rule.starts_with('S')));
    // Healed, it is taken back when its time has come.
    world.hosts[2].flaws.stampless = false;
    world.run_for(ms(70_000));
    let station = world.station(2);
    let node = world.hosts[0].node.as_ref().expect("alive");
    assert!(!node.rether().is_dead(station) && node.rether().members().len() == 4);
}

// ---- replay (fault 30) ---------------------------------------------------------------------------------

/// What a replay must not change: mode, places, boots, reservations, and how often the ring was repaired.
fn lasting(world: &World) -> Vec<String> {
    let of = |host: &rota_sim::Host| {
        let Some(node) = &host.node else { return "dead".to_owned() };
        let (link, status) = (node.rether(), node.port().status());
        let members: Vec<_> = link.members().iter().map(|m| (m.station, m.mac, m.incarnation)).collect();
        let c = link.counters();
        let repairs = (c.claims, c.tokens_regenerated, c.stations_declared_dead, c.switches, c.strikes);
        let mode = (status.station, status.mode, status.mode_epoch, status.generation);
        format!("{mode:?} {members:?} {:?} {repairs:?}", status.slots)
    };
    world.hosts.iter().map(of).collect()
}

fn replayed(world: &World) -> u64 {
    let nodes = world.hosts.iter().filter_map(|host| host.node.as_ref());
    nodes
        .map(|node| node.rether().counters().frames_replayed + node.rether().counters().frames_unproven)
        .sum()
}

#[test]
fn recorded_frames_of_earlier_boots_and_rings_change_nothing_but_counters() {
    for seed in 90..94 {
        let mut world = booted(seed);
        world.tape = Some(Vec::new());
        // An earlier ring, and an earlier boot of one that lives and of one that will be dead.
        let channel = stream(&mut world, 0, 4).expect("fits");
        world.with(0, |node, now| node.close(now, channel));
        world.run_for(ms(500));
        for index in [2, 3] {
            world.start(index);
            world.run_for(ms(2_000));
        }
        stream(&mut world, 0, 4).expect("fits");
        stream(&mut world, 1, 4).expect("fits");
        world.start(3);
        world.run_for(ms(3_000));
        world.kill(2);
        world.ordinary(1, 0, 600);
        world.run_for(ms(4_000));
        assert_eq!(world.agreed_mode(), Some(ModeName::Token), "seed {seed}");
        let tape = world.tape.replace(Vec::new()).unwrap_or_default();
        let (before, counted) = (lasting(&world), replayed(&world));
        for (at, frame) in tape.iter().enumerate() {
            world.replay(frame);
            if at % 16 == 0 {
                world.run_for(ms(1));
            }
        }
        world.run_for(ms(2_000));
        assert!(replayed(&world) > counted + tape.len() as u64 / 4, "seed {seed}: {} frames", tape.len());
        assert_eq!(lasting(&world), before, "seed {seed}");
        assert_eq!(world.violations(), [], "seed {seed}");
        // No ring was formed anew for a ghost.
        let sent = world.tape.take().unwrap_or_default();
        assert_eq!(sent.iter().filter(|frame| frame[15] == 4).count(), 0, "seed {seed}");
    }
}

#[test]
fn frames_of_another_segment_change_nothing_but_counters() {
    let mut spec = WorldSpec::new(5);
    spec.settings.segment = 2;
    let mut other = World::new(95, spec);
    other.tape = Some(Vec::new());
    other.run_for(ms(2_000));
    stream(&mut other, 0, 4).expect("fits");
    let tape = other.tape.take().unwrap_or_default();
    let mut world = booted(96);
    stream(&mut world, 0, 4).expect("fits");
    let before = lasting(&world);
    for frame in &tape {
        world.replay(frame);
        // The same with our segment's number in the header: the tag is another segment's.
        let mut forged = frame.to_vec();
        forged[22..26].copy_from_slice(&1u32.to_be_bytes());
        world.replay(&forged.into());
        world.run_for(Span::from_micros(200));
    }
    assert_eq!(lasting(&world), before);
    assert!(replayed(&world) >= tape.len() as u64, "{} of {}", replayed(&world), tape.len());
}
