//! A stranger at a port of the switch sends frames with the addresses of stations (fault 28, decision 014).

use crate::support::ms;
use rota_contract::TrafficSpec;
use rota_sim::{Aim, Fault, FlowState, WireFault, World, WorldSpec};
use rota_units::Span;

const TRT: Span = Span::from_nanos(33_333_333);

struct Seen {
    lost: u64,
    open: bool,
    claims: u64,
    strikes: u64,
    named: bool,
}

/// A channel from the first to the last of five stations, while a stranger sends ten frames a second with the
/// victim's address for thirty seconds.
fn spoofed(victim: usize, to: Aim, octets: u32) -> Seen {
    let mut world = World::new(7, WorldSpec { strangers: 1, ..WorldSpec::new(5) });
    world.run_for(ms(2_000));
    let flow = world.open_flow(0, 4, octets, true).expect("a sound request");
    world.run_for(ms(1_500));
    let mut named = false;
    let spoof = Fault::Spoof { host: victim, gap: ms(100), to };
    for cycle in 0..930 {
        world.run_for(ms(7));
        if cycle % 3 == 0 && (30..900).contains(&cycle) {
            world.beat_fault(0, &spoof);
        }
        world.flow_unit(flow, octets);
        world.run_for(TRT.minus(ms(7)));
        let mac = world.hosts[victim].mac();
        named |= world.hosts.iter().any(|host| {
            host.node.as_ref().is_some_and(|node| node.rether().contested().any(|contested| contested == mac))
        });
    }
    world.run_for(ms(300));
    let books = world.custody().of(flow);
    let of = |count: fn(&rota_proto::Counters) -> u64| {
        let nodes = world.hosts.iter().filter_map(|host| host.node.as_ref());
        nodes.map(|node| count(node.rether().counters())).sum()
    };
    Seen {
        lost: books.sent - books.delivered,
        open: world.flows()[flow].state == FlowState::Open,
        claims: of(|counters| counters.claims),
        strikes: of(|counters| counters.strikes + counters.stations_declared_dead),
        named,
    }
}

/// One such frame stopped the ring for 0.44 s, and ten a second ended the channel.
#[test]
fn a_stranger_with_a_stations_address_stops_nothing_and_is_told_of() {
    for victim in 0..5 {
        let seen = spoofed(victim, Aim::All, 6_250);
        assert!(seen.open && seen.named, "station {victim}");
        assert!(seen.lost <= 5, "station {victim}: {} fragments beyond those under way", seen.lost);
        assert_eq!((seen.claims, seen.strikes), (0, 0), "station {victim}");
    }
}

/// Frames of other kinds to one station only, or to the address itself: no other station of the segment hears
/// them. Only missing frames show their effect. A fifth of all units was lost, and nobody was named.
#[test]
fn a_stranger_whom_no_station_hears_costs_few_units_and_is_told_of() {
    for to in [Aim::One, Aim::Itself] {
        // Five fragments each: the end of one unit perhaps, and a whole one. Or one fragment each.
        for (octets, most) in [(6_250, 9), (1_000, 4)] {
            for victim in 0..5 {
                let seen = spoofed(victim, to, octets);
                let what = format!("{to:?}, station {victim}, {octets} octets");
                assert!(seen.open, "{what}");
                assert!(seen.lost <= most, "{what}: {} fragments are lost", seen.lost);
                // To the others no units go.
                assert!(seen.named || victim != 4, "{what}");
                assert_eq!((seen.claims, seen.strikes), (0, 0), "{what}");
            }
        }
    }
}

/// The units of a channel to the victim that are lost while a stranger that no station hears sends ten frames
/// a second for thirty seconds, each so long after a time that the two rates share; and if it is told of.
fn unheard(cycle: Span, period: Span, to: Aim, octets: u32, phase: Span) -> (u64, bool) {
    let spec = WorldSpec::new(5);
    let settings = spec.settings.clone().with_cycle(cycle).expect("a cycle");
    let mut world = World::new(7, WorldSpec { strangers: 1, settings, ..spec });
    world.run_for(ms(2_000));
    let traffic = TrafficSpec::fixed(octets, period, true);
    let flow = world.open_flow_as(0, 4, traffic).expect("a sound request");
    world.run_for(ms(1_500));
    let spoof = Fault::Spoof { host: 4, gap: ms(100), to };
    let start = world.now();
    let (mut units, mut frames, mut named) = (1, 0, false);
    while units * period.as_nanos() < 32_000_000_000 {
        let unit = start + period * units;
        let frame = start + ms(1_000 + 100 * frames) + phase;
        if frame < unit && frames < 300 {
            world.run_until(frame);
            world.beat_fault(0, &spoof);
            frames += 1;
            continue;
        }
        world.run_until(unit);
        world.flow_unit(flow, octets);
        units += 1;
        let mac = world.hosts[4].mac();
        let mut links = world.hosts.iter().filter_map(|host| host.node.as_ref()).map(|node| node.rether());
        named |= links.all(|link| link.contested().any(|contested| contested == mac));
    }
    world.run_for(ms(300));
    assert!(world.flows()[flow].state == FlowState::Open);
    let books = world.custody().of(flow);
    let fragments = u64::from(octets.div_ceil(1_400));
    ((books.sent - books.delivered).div_ceil(fragments), named)
}

/// Channels of small units lost four of them at 30 Hz and six at 60 Hz, until it was clear that frames went
/// astray.
#[test]
fn a_stranger_whom_no_station_hears_costs_one_unit() {
    let cycle = Span::from_nanos;
    for (cycle, period, most) in [
        (TRT, TRT, 1),
        (cycle(16_666_666), cycle(16_666_666), 1),
        // Two units in a slot. Nothing moves the entry back between them, and a frame that falls between them
        // is noticed behind the next slot only.
        (TRT, TRT.div_down(2), 3),
    ] {
        for octets in [200, 1_000, 6_250] {
            for (to, phase) in [(Aim::One, 0), (Aim::Itself, 5), (Aim::One, 11), (Aim::Itself, 27)] {
                let (lost, named) = unheard(cycle, period, to, octets, ms(phase));
                let what =
                    format!("{octets} octets each {period}, a cycle of {cycle}, {to:?}, phase {phase}");
                assert!(lost <= most, "{what}: {lost} units are lost");
                assert!(named || lost == 0, "{what}");
            }
        }
    }
}

/// Stations of which the wires lose frames; the channel's units lost, and the cycles in which an address
/// counted as used by a stranger, of 3,600.
fn lossy(octets: u32, ppm: u32, burst: u32) -> (u64, u64) {
    let mut world = World::new(7, WorldSpec::new(5));
    world.run_for(ms(2_000));
    let flow = world.open_flow(0, 4, octets, true).expect("a sound request");
    world.run_for(ms(1_500));
    world.disturb(WireFault::Loss { ppm, burst });
    let mut astray = 0;
    for _ in 0..3_600 {
        world.flow_unit(flow, octets);
        world.run_for(TRT);
        let mut links = world.hosts.iter().filter_map(|host| host.node.as_ref()).map(|node| node.rether());
        astray += u64::from(links.any(|link| link.contested().next().is_some()));
    }
    let books = world.custody().of(flow);
    (books.sent - books.delivered, astray)
}

/// A wire that loses one frame in a hundred kept an address contested for 80 to 98 % of the time.
#[test]
fn a_merely_lossy_wire_is_no_stranger() {
    let wires = [
        (6_250, 1_000, 1, 10..40),
        (6_250, 1_000, 2, 20..80),
        (6_250, 10_000, 1, 120..300),
        (1_000, 10_000, 1, 20..60),
    ];
    for (octets, ppm, burst, expected) in wires {
        let what = format!("{octets} octets, {ppm} in a million in bursts of {burst}");
        let (lost, astray) = lossy(octets, ppm, burst);
        assert!(expected.contains(&lost), "{what}: {lost} fragments are lost");
        assert_eq!(astray, 0, "{what}: cycles with an address that counts as used by a stranger");
    }
}
