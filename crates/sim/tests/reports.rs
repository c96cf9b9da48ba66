//! What stations report of themselves, on a switch where nobody hears the others' unicast.

use crate::support::ms;
use rota_proto::{ModeName, PortId};
use rota_sim::{FlowState, WireFault, World, WorldSpec};
use rota_units::{BitRate, Octets, Span};
use rota_wire::{Class, Load};

const TRT: Span = Span::from_nanos(33_333_333);

/// Five stations that report so often.
fn reporting(seed: u64, every: Span) -> World {
    let mut settings = rota_proto::Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
    settings.report = every;
    let mut world = World::new(seed, WorldSpec::with(5, settings));
    world.run_for(ms(2_500));
    world
}

/// Of each station: what it has sent by its own count, and what station `at` knows of that.
fn told(world: &World, at: usize, class: Class) -> Vec<(Load, Option<Load>)> {
    let watcher = world.hosts[at].node.as_ref().expect("alive");
    let others = (0..5).filter(|index| *index != at);
    others
        .map(|index| {
            let node = world.hosts[index].node.as_ref().expect("alive");
            let own = node.port().tally().sent[class as usize];
            let heard = watcher.reports(PortId(0)).expect("it is there").stations().iter();
            let heard = heard.filter(|heard| heard.mac == node.rether().mac());
            (own, heard.map(|heard| heard.head.kinds[class as usize]).next())
        })
        .collect()
}

/// Two streams, 0 → 4 and 1 → 3, beside ordinary traffic, for so many cycles.
fn busy(world: &mut World, cycles: u32) {
    let flows: Vec<usize> = [(0, 4), (1, 3)]
        .iter()
        .map(|(from, to)| {
            let flow = world.open_flow(*from, *to, 3_000, true).expect("a sound request");
            world.run_for(ms(1_500));
            assert_eq!(world.flows()[flow].state, FlowState::Open);
            flow
        })
        .collect();
    for _ in 0..cycles {
        flows.iter().for_each(|flow| world.flow_unit(*flow, 3_000));
        (0..4).for_each(|from| world.ordinary(from, 4, 1_000));
        world.run_for(TRT);
    }
}

#[test]
fn any_station_knows_what_every_other_has_sent() {
    let mut world = reporting(1, ms(1_000));
    busy(&mut world, 90);
    // Nothing more is sent in the channels, and one more report of each comes.
    world.run_for(ms(1_500));
    assert_eq!(world.agreed_mode(), Some(ModeName::Token));
    for class in [Class::RealTime, Class::Ordinary] {
        for (own, heard) in told(&world, 2, class) {
            assert_eq!(heard, Some(own), "{class:?}");
        }
    }
    let sent: u64 = told(&world, 2, Class::RealTime).iter().map(|(own, _)| own.frames).sum();
    assert_eq!(sent, 2 * 90 * 3, "units of 3,000 octets are three fragments");
    for (own, heard) in told(&world, 2, Class::Token) {
        let heard = heard.expect("a report");
        assert!(heard.frames > 0 && heard.frames <= own.frames, "the token goes on: {heard:?} of {own:?}");
    }
    assert_eq!(world.violations(), []);
}

#[test]
fn a_watcher_knows_both_ends_of_a_channel_that_is_not_its_own() {
    let mut world = reporting(2, ms(1_000));
    busy(&mut world, 90);
    world.run_for(ms(1_200));
    let watcher = world.hosts[2].node.as_ref().expect("alive");
    let channels = watcher.reports(PortId(0)).expect("it is there").channels();
    assert_eq!(channels.len(), 4, "two ends of two channels: {channels:?}");
    let sender = channels.iter().find(|end| end.said.sending).expect("a sending end").said;
    let receiver = channels.iter().find(|end| !end.said.sending && end.said.channel == sender.channel);
    let receiver = receiver.expect("its other end").said;
    assert_eq!((sender.units, receiver.units, receiver.fragments), (90, 90, 270));
    assert_eq!((sender.bound_ns, receiver.late), (receiver.bound_ns, 0));
    assert!(sender.bound_ns > TRT.as_nanos() && sender.tht_ns > 0);
    world.with(0, |node, now| {
        let id = sender.channel;
        node.close(now, id);
    });
    world.with(1, |node, now| {
        let id = sender.channel;
        node.close(now, id);
    });
    world.run_for(ms(2_500));
    let watcher = world.hosts[2].node.as_ref().expect("alive");
    assert_eq!(
        watcher.reports(PortId(0)).expect("it is there").channels().len(),
        2,
        "the closed one is gone"
    );
}

#[test]
fn lost_and_doubled_reports_leave_gaps_and_no_wrong_sums() {
    let mut world = reporting(3, ms(200));
    world.disturb(WireFault::Loss { ppm: 100_000, burst: 1 });
    world.disturb(WireFault::Duplicate { ppm: 100_000, copies: 1, delay: ms(3) });
    for _ in 0..100 {
        (0..4).for_each(|from| world.ordinary(from, 4, 1_000));
        world.run_for(TRT);
        for (own, heard) in told(&world, 2, Class::Control) {
            assert!(heard.is_none_or(|heard| heard.frames <= own.frames && heard.octets <= own.octets));
        }
    }
    assert!(told(&world, 2, Class::Control).iter().all(|(_, heard)| heard.is_some()));
}

#[test]
fn without_the_setting_nobody_reports_and_nothing_is_kept() {
    let mut world = reporting(4, Span::ZERO);
    busy(&mut world, 30);
    for host in &world.hosts {
        let node = host.node.as_ref().expect("alive");
        assert!(
            node.reports(PortId(0)).expect("it is there").stations().is_empty()
                && node.reports(PortId(0)).expect("it is there").channels().is_empty()
        );
    }
}

#[test]
fn reports_take_nothing_from_a_reservation() {
    let mut world = reporting(5, ms(100));
    busy(&mut world, 120);
    let longest = |flow: usize| world.flows()[flow].granted.bound();
    let bounds = longest(0).max(longest(1));
    for receipts in [&world.hosts[4].programs.receipts, &world.hosts[3].programs.receipts] {
        for unit in receipts.values().flatten() {
            assert!(unit.complete && unit.delay <= bounds, "{} of {bounds}", unit.delay);
        }
    }
    assert_eq!(world.violations(), []);
}
