//! Channels of many packets in a cycle over two segments of 1 Gbit/s.

use super::{DONE, wait_for_ways};
use crate::common::{self, topology::TopologyLab};

/// Two fast segments with a gateway between them.
const FAST_SEGMENTS: &str = "fast-segments.toml";

/// A stream of this rate and period from end to end; nothing is lost, and what is late is told.
fn crosses(lab: &TopologyLab, (rate, period, octets): (&str, &str, usize)) {
    let receiver = lab.rota("n4", &["recv", "--json", "--out", "/dev/null"]);
    receiver.wait_for_word("listening");
    let words = format!(
        "head -c {octets} /dev/zero | '{}' send --json --to n4 --rate {rate} --period {period}",
        common::ROTA
    );
    let (sender, receiver) = (lab.exec("n1", &["sh", "-c", &words]).finish(), receiver.finish());
    assert!(DONE.contains(&sender.code()), "{rate}: {} {}", sender.out, sender.err);
    assert!(DONE.contains(&receiver.code()), "{rate}: {} {}", receiver.out, receiver.err);
    let came = receiver.json();
    assert_eq!((&came["lost"], &came["incomplete"]), (&0.into(), &0.into()), "{rate}: {came}");
    assert_eq!(came["octets"], octets, "{rate}");
}

/// 74 packets a cycle, 147, and 67 units of one packet each: more than 32 were refused as `CyclePackets`.
#[test]
fn fast_channels_cross_two_rings() {
    let Some(lab) = TopologyLab::up("fast-across", FAST_SEGMENTS, &[]) else { return };
    wait_for_ways(&lab);
    crosses(&lab, ("25mbit", "33.333333ms", 6_250_000));
    crosses(&lab, ("50mbit", "33.333333ms", 6_250_000));
    crosses(&lab, ("16mbit", "500us", 4_000_000));
}
