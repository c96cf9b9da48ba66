//! Channels across RETHER segments with more packets in a cycle than a program may have units there.

use crate::hops::{Net, Path, ms};
use rota_admission::Pace;
use rota_admission::rtip::{Messages, Regulator, Traffic};
use rota_proto::MediumKind::Rether;
use rota_proto::{PortId, TRT_30_HZ};
use rota_units::{Octets, Span};

const TWO_RINGS: [rota_proto::MediumKind; 2] = [Rether, Rether];

/// All units have come whole, in order and within this bound, and no gateway had more packets than buffers.
fn all_kept(net: &Net, path: &Path, (units, bound): (u64, Span)) {
    let numbers: Vec<u64> = net.came.iter().map(|came| came.number).collect();
    assert_eq!(numbers, (0..units).collect::<Vec<_>>());
    let longest = net.came.iter().map(|came| came.took).max();
    assert!(longest.is_some_and(|longest| longest <= bound), "{longest:?}, over {bound}");
    for (node, hop) in path.hops.iter().enumerate() {
        let counts = net.nodes[node].hop_counts(*hop).expect("it is entered");
        assert_eq!((counts.waiting, counts.over_buffers), (0, 0), "node {node}");
        assert!(node == 0 || counts.most <= path.buffers[node], "{counts:?}: {:?}", path.buffers);
    }
}

/// 25 Mbit/s, 30 messages a second. More than 32 packets a cycle were refused.
#[test]
fn a_video_of_25_mbit_has_all_its_packets_in_one_cycle() {
    let mut net = Net::new(&TWO_RINGS);
    let (x_min, s_max) = (TRT_30_HZ, Octets::new(104_167));
    let messages = Messages { x_min, x_ave: x_min, interval: x_min, s_max };
    let packets = messages.packets(Octets::new(1_420)).expect("sound");
    assert_eq!(packets.count, 74);
    let path = net.open(packets.traffic, packets.octets.get() as u32, Regulator::Rate);
    assert_eq!(path.share.pace, Pace::of_packets(74).expect("a share has so many"));
    for number in 0..60 {
        net.unit(path.source, number, 104_167);
        for plug in net.plugs.clone() {
            (0..number % 20).for_each(|_| net.host_frame(plug.node, plug.port));
        }
        net.run(x_min);
    }
    net.run(path.bound);
    all_kept(&net, &path, (60, path.bound + packets.spread));
}

/// Units of one packet each: 64 waited at most, and the others of the cycle came late to their slot.
#[test]
fn a_program_of_short_units_offers_all_of_a_cycle() {
    let mut net = Net::new(&TWO_RINGS);
    let (x_min, octets) = (Span::from_micros(150), 100);
    let traffic = Traffic::periodic(x_min).expect("sound");
    let path = net.open(traffic, octets, Regulator::Rate);
    assert_eq!(path.share.pace, Pace::of_packets(223).expect("a share has so many"));
    let ahead = net.nodes[0].units_ahead(path.source) as u64;
    assert!(ahead >= 223, "{ahead}");
    let (mut offered, mut handed) = (0, std::collections::VecDeque::new());
    for number in 0..2_000 {
        // As a node does: those ahead are offered, and the others as these leave.
        handed.push_back(number);
        let left = net.slots.len() as u64;
        while offered < left + ahead
            && let Some(next) = handed.pop_front()
        {
            net.unit(path.source, next, octets);
            offered += 1;
        }
        assert!(handed.is_empty(), "unit {number} waits for those before it");
        if number % 3 == 0 {
            net.host_frame(1, PortId(1));
        }
        net.run(x_min);
    }
    net.run(path.bound + ms(1));
    all_kept(&net, &path, (2_000, path.bound));
}
