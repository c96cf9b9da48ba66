//! `rota top --once`: the picture as lines of text.

use super::picture::{Circuit, Hop, Path, Picture, Share, Shares};
use super::rates::{Figures, Rate};
use rota::Span;
use std::fmt::Write;

/// A rate of bits with three digits and its unit.
pub fn bits(rate_bps: u64) -> String {
    scaled(rate_bps as f64, "bit/s")
}

/// A number with three digits and the unit's prefix.
pub fn scaled(value: f64, unit: &str) -> String {
    let (value, prefix) = match value {
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let places = if prefix.is_empty() || value >= 100.0 { 0 } else { usize::from(value < 10.0) + 1 };
    format!("{value:.places$} {prefix}{unit}")
}

/// A span that may be negative, with three digits.
pub fn signed_span(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", short_span(ns.unsigned_abs()))
}

/// A span with three digits.
pub fn short_span(ns: u64) -> String {
    let (value, unit) = match ns as f64 {
        v if v >= 1e9 => (v / 1e9, "s"),
        v if v >= 1e6 => (v / 1e6, "ms"),
        v if v >= 1e3 => (v / 1e3, "us"),
        v => (v, "ns"),
    };
    let places = if unit == "ns" || value >= 100.0 { 0 } else { usize::from(value < 10.0) + 1 };
    format!("{value:.places$} {unit}")
}

/// The same of a bound, which is no shorter than it is.
pub fn short_bound(ns: u64) -> String {
    let digits = 10_u64.pow(ns.max(1).ilog10());
    let step = (digits / 100).clamp(1, 1_000_000_000);
    short_span(ns.div_ceil(step).saturating_mul(step))
}

fn figures(load: &Figures) -> String {
    let one = |rate: Rate| format!("{:>8.0} p/s {:>12}", rate.packets_per_second, bits(rate.rate_bps));
    format!("{}  {}  {}", one(load.now), one(load.average), one(load.maximum))
}

fn shares(out: &mut String, title: &str, shares: &[Share]) {
    for share in shares {
        let _ = writeln!(out, "{title:<10}{:<12}{}", share.name, figures(&share.load));
    }
}

/// A path, and below it each of its nodes.
fn paths(out: &mut String, path: &Path) {
    let Path { channel, to, service, bound_ns, .. } = path;
    let come = match (path.units, path.broken) {
        (Some(units), Some(broken)) => format!("{units} units came whole, {broken} in part or not at all"),
        _ => "its end has told nothing yet".to_owned(),
    };
    let bound = short_bound(*bound_ns);
    let but = path.withdrawn.iter().map(|withdrawn| format!("; {withdrawn}")).collect::<String>();
    let _ = writeln!(out, "path      {channel} -> {to}, service {service}, bound {bound}{but}: {come}");
    for (n, hop) in (1..).zip(&path.hops) {
        let Hop { node, port, medium, sent, dropped, share, .. } = hop;
        let bound = short_bound(hop.bound_ns);
        let _ = writeln!(
            out,
            "hop {n:<6}{node:<12}port {port}, {medium}, bound {bound}, sent {sent}, dropped {dropped}, \
             share {share}"
        );
    }
}

/// The whole picture, one port after the other.
pub fn page(picture: &Picture) -> String {
    let is_one = picture.beyond.other_ports.is_empty();
    let pages = picture.all_ports().map(|port| page_of(port, !is_one));
    pages.collect::<Vec<_>>().join("\n\n")
}

/// A line for each channel, and one for each node of those that leave the segment.
fn channels(out: &mut String, picture: &Picture) {
    for channel in &picture.channels {
        let told = |value: Option<u64>| value.map_or("not known".into(), short_span);
        let slack = channel.slack_ns.map_or("not known".into(), signed_span);
        let _ = writeln!(
            out,
            "channel   {} {} -> {}  sent {}, received {}, late {}, bound {}, longest {}, slack {slack}",
            channel.label,
            channel.from,
            channel.to,
            channel.units.sent,
            channel.units.received,
            channel.units.late,
            channel.bound_ns.map_or("not known".into(), short_bound),
            told(channel.delay_max_ns),
        );
    }
    for path in &picture.beyond.paths {
        paths(out, path);
    }
    for circuit in &picture.beyond.circuits {
        circuit_line(out, &picture.name, circuit);
    }
}

fn circuit_line(out: &mut String, here: &str, circuit: &Circuit) {
    let Circuit { service, class, stage, rate_bps, again, lost, window, flying, .. } = circuit;
    let (from, to) = circuit.ends(here);
    let rate = rate_bps.map_or("not known".into(), bits);
    let _ = writeln!(
        out,
        "circuit   {} {from} -> {to}, service {service}, {class}, {stage}: {rate}, again {again}, lost \
         {lost}, {flying} of window {window}, waits for {}",
        circuit.circuit, circuit.waits_for_words
    );
}

/// One port. Of several it has its interface in its head.
fn page_of(picture: &Picture, named: bool) -> String {
    let mut out = String::new();
    let on = if named { format!(" on {}", picture.interface) } else { String::new() };
    let _ = writeln!(
        out,
        "{}{on} (station {}), mode {}, {} stations, link {}, cycle {}",
        picture.name,
        picture.station,
        picture.mode,
        picture.members(),
        bits(picture.link_bps),
        Span::from_nanos(picture.trt_ns),
    );
    if !picture.filter.is_empty() {
        let _ = writeln!(out, "filter    {}", picture.filter);
    }
    for warning in &picture.warnings {
        let _ = writeln!(out, "warning   {}", warning.sentence);
    }
    let _ = writeln!(out, "{:<22}{:>25}{:>27}{:>27}", "", "now", "average", "maximum");
    let _ = writeln!(out, "{:<22}{}", "load", figures(&picture.load));
    shares(&mut out, "kind", &picture.kinds);
    let used = |share: &&Share| share.load.maximum.packets_per_second > 0.0;
    let levels: Vec<Share> = picture.levels.iter().filter(used).cloned().collect();
    shares(&mut out, "priority", &levels);
    for station in &picture.stations {
        let gone = if station.gone { "  gone" } else { "" };
        let _ = writeln!(out, "{:<10}{:<12}{}{gone}", "station", station.called(), figures(&station.load));
    }
    let percent = picture.reserved_percent();
    let Shares { reserved_ns, capacity_ns } = picture.shares;
    let (reserved, capacity) = (short_span(reserved_ns), short_span(capacity_ns));
    let _ = writeln!(out, "reserved  {reserved} of {capacity} that can be reserved in a cycle ({percent} %)");
    let rotation = &picture.rotation;
    let _ = writeln!(
        out,
        "rotation  last {}, longest {}, idle round {}, hop {}",
        short_span(rotation.last_ns),
        short_span(rotation.longest_ns),
        short_span(rotation.round_ns),
        short_span(rotation.hop_ns)
    );
    channels(&mut out, picture);
    let mut faults: Vec<String> =
        picture.faults().map(|fault| format!("{} {}", fault.name, fault.value)).collect();
    let counts = picture.channels.iter().flat_map(|of| [of.units.late, of.units.lost, of.units.incomplete]);
    let broken = counts.fold(0_u64, u64::saturating_add);
    if broken > 0 {
        faults.push(format!("units_not_as_promised {broken}"));
    }
    let zero = if faults.is_empty() { "no error counters raised".into() } else { faults.join(", ") };
    let _ = write!(out, "faults    {zero}");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(bits(0), "0 bit/s");
        assert_eq!(bits(1_234), "1.23 kbit/s");
        assert_eq!(bits(98_765_432), "98.8 Mbit/s");
        assert_eq!(bits(123_456_789_000), "123 Gbit/s");
        assert_eq!((short_span(33_333_333), short_span(0)), ("33.3 ms".into(), "0 ns".into()));
        assert_eq!(signed_span(-4_100_000), "-4.10 ms");
    }

    #[test]
    fn a_bound_of_three_digits_is_no_shorter_than_it_is() {
        let bounds = [33_310_000, 1_000_001, 999_100_000, 35_400_000, 999, 0, 1_234_000_000_000];
        let told = ["33.4 ms", "1.01 ms", "1.00 s", "35.4 ms", "999 ns", "0 ns", "1234 s"];
        assert_eq!(bounds.map(short_bound), told);
        assert_eq!(short_bound(u64::MAX), short_span(u64::MAX));
    }
}
