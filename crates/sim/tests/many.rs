//! A segment of a hundred stations.

use crate::support::ms;
use rota_proto::ModeName;
use rota_sim::{WireFault, World, WorldSpec};
use rota_units::{BitRate, Octets};

fn hundred(seed: u64) -> World {
    let mut spec = WorldSpec::new(100);
    spec.settings = rota_proto::Settings::ethernet(BitRate::from_mbit(100), Octets::new(1_000_000));
    spec.settings.stations_max = 100;
    World::new(seed, spec)
}

/// A Form names 64 stations: two parts make this ring, and with a loss nobody is in half of it.
#[test]
fn a_hundred_stations_form_one_ring_and_go_back_to_plain_ethernet() {
    for loss_ppm in [0, 10_000] {
        let mut world = hundred(60);
        world.run_for(ms(8_000));
        let mut stations: Vec<u16> = (0..100).map(|index| world.station(index)).collect();
        stations.sort_unstable();
        assert_eq!(stations, (1..=100).collect::<Vec<u16>>(), "each has its own number");
        world.disturb(WireFault::Loss { ppm: loss_ppm, burst: 1 });
        let channel = world.open(0, 99, 6_250).expect("the request is sound");
        world.run_for(ms(3_000));
        world.segments[0].wires.heal();
        world.run_for(ms(8_000));
        assert_eq!(world.agreed_mode(), Some(ModeName::Token), "loss {loss_ppm}");
        assert!(world.hosts[0].opened(channel).flatten().is_some(), "loss {loss_ppm}");
        for host in &world.hosts {
            let link = host.node.as_ref().expect("alive").rether();
            assert_eq!(link.members().len(), 99, "{}", link.name());
        }
        for _ in 0..30 {
            world.unit(0, channel, 6_250);
            world.ordinary(40, 70, 1_514);
            world.run_for(ms(34));
        }
        world.run_for(ms(500));
        let received: usize = world.hosts[99].programs.receipts.values().map(Vec::len).sum();
        assert_eq!(received, 30, "loss {loss_ppm}");
        assert_eq!(world.hosts[70].ordinary_received, 30, "loss {loss_ppm}");
        assert_eq!(world.violations(), [], "loss {loss_ppm}");
        world.with(0, |node, now| node.close(now, channel));
        world.run_for(ms(3_000));
        assert_eq!(world.agreed_mode(), Some(ModeName::Plain), "loss {loss_ppm}");
    }
}

#[test]
fn a_station_joins_a_ring_of_a_hundred() {
    let mut world = hundred(61);
    world.kill(50);
    world.run_for(ms(12_000));
    world.open(0, 99, 6_250).expect("the request is sound");
    world.run_for(ms(3_000));
    assert_eq!(world.agreed_mode(), Some(ModeName::Token));
    world.start(50);
    world.run_for(ms(3_000));
    let node = world.hosts[50].node.as_ref().expect("alive");
    assert_eq!((node.rether().mode(), node.rether().members().len()), (ModeName::Token, 99));
    assert_eq!(world.violations(), []);
}
