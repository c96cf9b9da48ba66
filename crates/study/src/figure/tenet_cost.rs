//! Figures 8 and 9 of the Tenet paper: throughput by size of packets, and what a packet costs. Their curves
//! are lost. The paper printed the fixed cost of a packet alone, so the left panel is computed from
//! that; the right one is what `rota bench tenet` has measured in namespaces.

use super::chart::Figure;
use super::measured::{Measured, Speed, SpeedPoint};
use crate::plot::{Axis, Look, Panel, Printed, Series};

/// Protocol and driver of a packet, microseconds (Figure 9).
const PROTOCOL_US: f64 = 68.0;
const DRIVER_US: f64 = 114.0;
/// The ring of Figure 6, bits a microsecond.
const FDDI: f64 = 100.0;
/// One pass over an octet in memory, microseconds. **Assumed**: the paper prints no cost of copying.
const PASS_US: f64 = 0.08;
/// Passes of a packet that is sent: into the kernel, and to the interface ("socket layer processing and
/// transmission").
const PASSES: f64 = 2.0;
const SIZES: [f64; 8] = [64.0, 256.0, 512.0, 1_024.0, 1_400.0, 2_048.0, 3_072.0, 4_096.0];
const NOT_MEASURED: &str = "Ours: not measured. Give a directory with tenet.json, the output of \
                            `rota bench tenet --json`, by --measured.";

/// The time of a packet in its sender with so many passes.
fn cost_us(octets: f64, passes: f64) -> f64 {
    PROTOCOL_US + DRIVER_US + passes * PASS_US * octets
}

/// Mbit/s of payload: the processor, or the ring where that is slower.
fn mbit(octets: f64, passes: f64) -> f64 {
    octets * 8.0 / cost_us(octets, passes).max(octets * 8.0 / FDDI)
}

fn computed(name: &str, colour: usize, look: Look, of: impl Fn(f64) -> f64) -> Series {
    Series::new(name, colour, look, SIZES.iter().map(|octets| (*octets, of(*octets))).collect())
}

fn measured(speed: &Speed, name: &str, colour: usize, of: impl Fn(&SpeedPoint) -> f64) -> Series {
    let points = speed.points.iter().map(|point| (point.octets as f64, of(point))).collect();
    Series::new(format!("measured: {name}"), colour, Look::Line, points)
}

fn of_bps(bps: u64) -> f64 {
    bps as f64 / 1e6
}

/// A panel of what was measured; empty axes without anything.
fn ours(speed: Option<&Speed>, y: &str, series: impl Fn(&Speed) -> Vec<Series>) -> Panel {
    let series = speed.map_or(Vec::new(), series);
    let points = || series.iter().flat_map(|series| &series.points);
    let most = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(1.0, f64::max);
    let (x, to) = (most(|point| point.0), most(|point| point.1));
    let title = "measured here: namespaces of one machine, virtual wire";
    let x = Axis::linear("octets of a message", x.max(100.0));
    Panel { series, ..Panel::new(title, x, Axis::linear(y, to * 1.1)) }
}

/// Throughput.
pub fn fig8(measured_here: &Measured) -> Figure {
    let speed = measured_here.tenet.as_ref();
    let axes = (Axis::linear("octets of a packet", 4_200.0), Axis::linear("payload, Mbit/s", 110.0));
    let left = Panel {
        series: vec![
            computed("computed: printed costs alone, the most there can be", 6, Look::Dashed, |n| {
                mbit(n, 0.0)
            }),
            computed("computed: RMTP/RTIP, two copies (cost assumed)", 0, Look::Line, |n| mbit(n, PASSES)),
            computed("computed: UDP, a third pass for its checksum", 3, Look::Line, |n| {
                mbit(n, PASSES + 1.0)
            }),
        ],
        ..Panel::new("computed: DECstation 5000/125, FDDI", axes.0, axes.1)
    };
    let right = ours(speed, "payload, Mbit/s", |speed| {
        let all = [
            measured(speed, "RMTP/RTIP on a channel", 0, |point| of_bps(point.channel.bps)),
            measured(speed, "raw IP", 2, |point| of_bps(point.raw_ip.bps)),
            measured(speed, "UDP", 3, |point| of_bps(point.udp.bps)),
            Series { look: Look::Dashed, ..measured(speed, "the channel's contract", 6, contract) },
        ];
        all.into()
    });
    let told = speed.and_then(|speed| speed.points.last()).map_or(NOT_MEASURED.to_owned(), |last| {
        let SpeedPoint { octets, channel, raw_ip, udp, .. } = last;
        format!(
            "Ours, messages of {octets} octets through a gateway: a channel {:.0} Mbit/s of the {:.0} that \
             its contract allows, raw IP {:.0}, UDP {:.0}. A channel never exceeds its contract. Its \
             packets pass a process at each station, with tags, where the others stay in the kernel, and a \
             virtual wire leaves UDP's checksum out: the paper's order of the three does not show here.",
            of_bps(channel.bps),
            contract(last),
            of_bps(raw_ip.bps),
            of_bps(udp.bps)
        )
    });
    Figure {
        key: "tenet-fig8",
        title: "Tenet, figure 8: throughput of RMTP/RTIP, UDP and raw IP by size".into(),
        subtitle:
            "one program sends in a tight loop to another one behind a gateway; left as the costs that \
                   the paper printed have it, right as measured"
                .into(),
        panels: vec![left, right],
        verdict: format!(
            "The paper printed no number beside this figure, only its order: RMTP/RTIP comparable to raw \
             IP, and above UDP with checksums. Printed are 68 + 114 us a packet: {:.0} packets a second at \
             most, {:.0} Mbit/s at 1,024 octets. Copying is assumed: {:.0} ns for a pass over an octet, \
             two passes, and a third one for a checksum, which makes UDP {:.0} % slower at 4,096 octets; \
             raw IP has no printed cost. {told}",
            1e6 / (PROTOCOL_US + DRIVER_US),
            mbit(1_024.0, 0.0),
            PASS_US * 1e3,
            (1.0 - mbit(4_096.0, PASSES + 1.0) / mbit(4_096.0, PASSES)) * 100.0
        ),
    }
}

fn contract(point: &SpeedPoint) -> f64 {
    of_bps(point.channel_asked_bps)
}

/// The cost of a packet.
pub fn fig9(measured_here: &Measured) -> Figure {
    let speed = measured_here.tenet.as_ref();
    let axes = (Axis::linear("octets of a packet", 4_200.0), Axis::linear("us of a packet", 900.0));
    let printed = |at: f64, words: &str| Printed { at: (4_096.0, at), words: words.into(), left: true };
    let left = Panel {
        series: vec![
            computed("printed: protocol", 0, Look::Line, |_| PROTOCOL_US),
            computed("printed: driver", 2, Look::Line, |_| DRIVER_US),
            computed(
                "computed: socket layer and transmission, two copies (cost assumed)",
                6,
                Look::Dashed,
                |n| PASSES * PASS_US * n,
            ),
        ],
        printed: vec![printed(PROTOCOL_US, "68"), printed(DRIVER_US, "114")],
        ..Panel::new("RMTP/RTIP send on a DECstation 5000/125", axes.0, axes.1)
    };
    let us = |ns: u64| ns as f64 / 1e3;
    let right = ours(speed, "us of a message", |speed| {
        let all = [
            measured(speed, "source, the node's own code", 0, |point| us(point.cost_ns.own())),
            measured(speed, "source, kernel: driver, copying, wire", 2, |point| {
                us(point.cost_ns.source_kernel)
            }),
            measured(speed, "gateway", 3, |point| us(point.cost_ns.gateway)),
            measured(speed, "destination", 5, |point| us(point.cost_ns.destination)),
        ];
        all.into()
    });
    let told = speed.and_then(|speed| speed.points.first()).map_or(NOT_MEASURED.to_owned(), |first| {
        let SpeedPoint { octets, cost_ns, .. } = first;
        format!(
            "Ours, a message of {octets} octets: {:.1} us of the node's own code at the source, with the \
             tags of its frames, and {:.1} us of the kernel, told apart by its ticks; {:.1} us at the \
             gateway and {:.1} at the destination. A message of more than a frame is several packets.",
            us(cost_ns.own()),
            us(cost_ns.source_kernel),
            us(cost_ns.gateway),
            us(cost_ns.destination)
        )
    });
    Figure {
        key: "tenet-fig9",
        title: "Tenet, figure 9: what a packet costs its sender".into(),
        subtitle:
            "left the fixed costs that the paper printed, with copying as assumed for figure 8; right the \
                   processor time of our nodes, as measured"
                .into(),
        panels: vec![left, right],
        verdict: format!(
            "The paper printed two numbers, both whatever the size: 68 us of protocol and 114 us of \
             driver. Of copying it says that it dominates: as assumed it does from {:.0} octets on. {told}",
            (PROTOCOL_US + DRIVER_US) / (PASSES * PASS_US)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_size_is_quicker_than_the_printed_costs_or_the_ring_allow() {
        for octets in SIZES {
            let ceiling = mbit(octets, 0.0);
            assert!(ceiling <= FDDI && ceiling <= octets * 8.0 / (PROTOCOL_US + DRIVER_US), "{octets}");
            // The paper's order of RMTP/RTIP and UDP, by the checksum alone.
            assert!(mbit(octets, PASSES + 1.0) < mbit(octets, PASSES) && mbit(octets, PASSES) < ceiling);
        }
        // 182 us a packet: 1,000 octets are 44 Mbit/s.
        assert!((mbit(1_000.0, 0.0) - 43.96).abs() < 0.01);
    }
}
