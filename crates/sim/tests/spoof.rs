//! A stranger at a port of the switch sends frames with the addresses of stations (fault 28, decision 014).

mod support;

use rota_sim::{Fault, FlowState, World, WorldSpec};
use rota_units::Span;
use support::ms;

const TRT: Span = Span::from_nanos(33_333_333);

struct Seen {
    lost: u64,
    open: bool,
    claims: u64,
    strikes: u64,
    named: bool,
}

/// A channel from the first to the last of five stations, while a stranger sends ten frames a second with the
/// victim's address for ten seconds.
fn spoofed(victim: usize, broadcast: bool) -> Seen {
    let mut world = World::new(7, WorldSpec { strangers: 1, ..WorldSpec::new(5) });
    world.run_for(ms(2_000));
    let flow = world.open_flow(0, 4, 6_250, true).expect("a sound request");
    world.run_for(ms(1_500));
    let mut named = false;
    let spoof = Fault::Spoof { host: victim, gap: ms(100), broadcast };
    for cycle in 0..330 {
        if cycle % 3 == 0 && cycle < 300 {
            world.beat_fault(0, &spoof);
        }
        world.flow_unit(flow, 6_250);
        world.run_for(TRT);
        let mac = world.hosts[victim].mac;
        named |= world.hosts.iter().any(|host| {
            host.node.as_ref().is_some_and(|node| node.link().contested().any(|contested| contested == mac))
        });
    }
    world.run_for(ms(300));
    let books = world.custody().of(flow);
    let of = |count: fn(&rota_proto::Counters) -> u64| {
        let nodes = world.hosts.iter().filter_map(|host| host.node.as_ref());
        nodes.map(|node| count(node.link().counters())).sum()
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
        let seen = spoofed(victim, true);
        assert!(seen.open && seen.named, "station {victim}");
        assert!(seen.lost <= 5, "station {victim}: {} fragments beyond those under way", seen.lost);
        assert_eq!((seen.claims, seen.strikes), (0, 0), "station {victim}");
    }
}

/// Frames of other kinds to one station only: no other station of the segment hears them. Only missing
/// frames show their effect.
#[test]
fn a_stranger_whom_no_station_hears_ends_no_channel_and_brings_no_strike() {
    for victim in 0..5 {
        let seen = spoofed(victim, false);
        assert!(seen.open, "station {victim}");
        assert_eq!(seen.strikes, 0, "station {victim}");
    }
}
