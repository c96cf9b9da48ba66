//! Channels across segments: sources, gateways and destinations over RETHER and over links.

mod hops;

use hops::{Came, Net, Path};
use rota_admission::rtip::{Regulator, Traffic};
use rota_proto::MediumKind::{Link, Rether};
use rota_proto::{MediumKind, PortId, UnitFate};
use rota_units::Span;

const PERIOD: Span = Span::from_millis(20);

fn periodic() -> Traffic {
    Traffic::periodic(PERIOD).expect("sound")
}

/// Ordinary frames of all hosts on all ports.
fn cross_traffic(net: &mut Net, frames: usize) {
    let ports: Vec<(usize, PortId)> = net.plugs.iter().map(|plug| (plug.node, plug.port)).collect();
    for (node, port) in ports {
        if !net.dead.contains(&node) {
            (0..frames).for_each(|_| net.host_frame(node, port));
        }
    }
}

/// Units of the channel, one each period; all come in their order and within the bound of the path.
fn stream(net: &mut Net, path: &Path, units: u64, octets: u32) -> Vec<Came> {
    let first = net.came.len();
    for number in 0..units {
        net.unit(path.source, number, octets);
        cross_traffic(net, (number % 4) as usize);
        net.run(PERIOD);
    }
    net.run(path.bound);
    let came = net.came[first..].to_vec();
    let numbers: Vec<u64> = came.iter().map(|came| came.number).collect();
    assert_eq!(numbers, (0..units).collect::<Vec<_>>());
    for came in &came {
        assert_eq!(came.channel, path.destination);
        assert!(came.took <= path.bound, "unit {} took {}, over {}", came.number, came.took, path.bound);
    }
    came
}

fn goes_over(kinds: &[MediumKind], regulator: Regulator) {
    let mut net = Net::new(kinds);
    let path = net.open(periodic(), 1_000, regulator);
    stream(&mut net, &path, 100, 1_000);
    for node in 0..net.last() {
        let counts = net.nodes[node].hop_counts(path.hops[node]).expect("it is entered");
        assert_eq!((counts.taken, counts.sent, counts.waiting), (100, 100, 0), "node {node}");
        assert!(counts.most <= path.buffers[node], "{counts:?} at {node}: {:?}", path.buffers);
        if node > 0 {
            let came = net.packets(node, node - 1);
            assert_eq!((came.received, came.forwarded), (100, 100));
        }
    }
    let came = net.packets(net.last(), net.last() - 1);
    assert_eq!((came.received, came.forwarded), (100, 0));
    let tally = net.nodes[net.last()].received(path.destination).expect("it is entered");
    assert_eq!((tally.units, tally.lost, tally.incomplete), (100, 0, 0));
    let sent: Vec<u64> =
        net.slots.iter().filter(|slot| slot.2 == UnitFate::Sent).map(|slot| slot.1).collect();
    assert_eq!(sent, (0..100).collect::<Vec<_>>(), "the program hears of each unit");
    assert!(net.slots.iter().all(|(channel, ..)| *channel == path.source), "and of nothing else");
}

#[test]
fn a_channel_goes_over_two_rings() {
    goes_over(&[Rether, Rether], Regulator::Rate);
}

#[test]
fn a_channel_goes_over_a_ring_and_a_link() {
    goes_over(&[Rether, Link], Regulator::Rate);
}

#[test]
fn a_channel_goes_over_a_link_and_a_ring() {
    goes_over(&[Link, Rether], Regulator::None);
}

#[test]
fn a_channel_goes_over_two_gateways() {
    goes_over(&[Rether, Rether, Rether], Regulator::Rate);
    goes_over(&[Rether, Link, Rether], Regulator::DelayAhead { step: Span::from_micros(16) });
    goes_over(&[Link, Link, Link], Regulator::DelayAhead { step: Span::from_micros(16) });
}
