//! Figure 4 again: how long the switch from CSMA to RETHER takes on the paper's testbed.
//!
//! The initiator broadcasts *Switch-to-RETHER*, every node acknowledges, and the last acknowledgement ends
//! the switch (section 2.2.2). On an idle network the acknowledgements meet on the wire: all nodes have
//! done the same work at the same time. The paper suggests to space them by the node's number and says that
//! its figure does not show that; both are drawn here.
//!
//! Fulfils RETHER-4.3-1.

use super::profile::TABLE_2;
use super::testbed::{Happened, Packet, Testbed};
use crate::engine::Stream;
use rota_units::{Instant, Span};

/// Octets of a control packet: with Ethernet's framing the shortest frame.
const CONTROL: u64 = 46;
/// The part of Table 2's last row that is no transmission: a 64-octet frame with its preamble takes 57.6 µs.
const WAKE: Span = Span::from_nanos(88_000 - 57_600);
/// How much a host's interrupt may come late; without any, collisions would repeat in lockstep.
const JITTER: Span = Span::from_micros(20);

fn row(number: usize) -> Span {
    Span::from_micros(TABLE_2[number - 1].1)
}

/// Time from the request to the token, in one run of `nodes` nodes; acknowledgements are spaced by `spacing`.
pub fn time(nodes: usize, spacing: Span, seed: u64) -> Span {
    let nodes = nodes.max(1);
    if nodes == 1 {
        return row(4);
    }
    let mut testbed = Testbed::new(nodes, seed);
    let mut random = Stream::named(seed, "switch");
    let mut jitter = || Span::from_nanos(random.below(JITTER.as_nanos()));
    testbed.send(0, Packet { to: None, octets: CONTROL, tag: 0 });
    let mut acknowledged = 0;
    while let Some(happened) = testbed.step() {
        match happened {
            // Interrupt, protocol processing, and the way to the driver; the copy is charged by the host.
            Happened::Received { host: 0, .. } => testbed.work(0, WAKE + row(4), 0),
            Happened::Received { host, .. } => {
                let wait = spacing * (host as u64 - 1);
                testbed.work(host, WAKE + row(4) + jitter(), 0);
                testbed.alarm(testbed.now() + WAKE + row(4) + wait, host as u64);
            }
            Happened::Alarm(host) => {
                let packet = Packet { to: Some(0), octets: CONTROL, tag: host };
                testbed.send(host as usize, packet);
            }
            Happened::Worked { host: 0, .. } => {
                acknowledged += 1;
                if acknowledged + 1 == nodes {
                    break;
                }
            }
            // Sixteen collisions: the initiator would ask again; that costs at least what was lost.
            Happened::Lost { host, packet } => testbed.send(host, packet),
            Happened::Worked { .. } => {}
        }
    }
    testbed.now().since(Instant::ZERO)
}

/// Mean over seeds 1..=`runs`.
pub fn mean(nodes: usize, spacing: Span, runs: u64) -> Span {
    let sum: u64 = (1..=runs.max(1)).map(|seed| time(nodes, spacing, seed).as_nanos()).sum();
    Span::from_nanos(sum / runs.max(1))
}
