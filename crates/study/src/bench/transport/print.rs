//! The table of `rota bench transport`, for people.

use super::{Kind, Results, Row};
use crate::times::Times;
use rota_answer::outln;

pub(super) fn print(o: &Results) {
    let mbit = |bps: u64| bps / 1_000_000;
    let wire = |name: &str, bps: Option<u64>| bps.map(|bps| format!("a {name} of {} Mbit/s", mbit(bps)));
    let wires: Vec<String> =
        [wire("bridge", o.link_bps), wire("hub", o.hub_bps)].into_iter().flatten().collect();
    outln!(
        "One stream, and round trips of 64 octets, between two stations over {} (virtual wire); {} rounds in \
         turn, {} each.\n",
        wires.join(", and "),
        o.rounds,
        rota_units::Span::from_nanos(o.window_ns)
    );
    if !o.left_out.is_empty() {
        let names: Vec<String> = o.left_out.iter().map(|kind| kind.word()).collect();
        outln!("Left out: {}.\n", names.join(", "));
    }
    outln!(
        "                      payload   against   against   CPU, ns for 1,000     64 octets and back, us   \
         against"
    );
    outln!(
        "                       Mbit/s     cubic     quinn    sender  receiver     p50      p99    p99.9    \
         UDP's p50"
    );
    let mut wire = None;
    for row in &o.rows {
        let this = (row.wire, row.loss_ppm, row.round_trip_ns);
        if wire.replace(this) != Some(this) {
            outln!("{}", heading(row));
        }
        outln!("{}", line(row));
    }
}

fn heading(row: &Row) -> String {
    let Row { wire, loss_ppm, round_trip_ns, .. } = row;
    match *wire {
        "bridge" => "bridge".to_owned(),
        _ => format!(
            "{wire}, {} % lost, {} ms there and back",
            *loss_ppm as f64 / 10_000.0,
            *round_trip_ns as f64 / 1e6
        ),
    }
}

fn line(row: &Row) -> String {
    let times = |ratio: Option<f64>| ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
    let stream = match &row.stream {
        Some(stream) => format!(
            "{:>8.1} {:>9} {:>9} {:>9} {:>9}",
            stream.bps as f64 / 1e6,
            times(stream.ratio_cubic),
            times(stream.ratio_quinn),
            stream.sender_ns_per_kilo_octet,
            stream.receiver_ns_per_kilo_octet
        ),
        None => format!("{:>8} {:>9} {:>9} {:>9} {:>9}", "-", "-", "-", "-", "-"),
    };
    let us = |ns: u64| format!("{:.0}", ns as f64 / 1e3);
    let trip = match row.trip {
        Some(Times { p50_ns, p99_ns, p999_ns, .. }) => {
            format!("{:>8} {:>8} {:>8}", us(p50_ns), us(p99_ns), us(p999_ns))
        }
        None => format!("{:>8} {:>8} {:>8}", "-", "-", "-"),
    };
    let failed = if row.failed > 0 { format!("   {} failed", row.failed) } else { String::new() };
    format!("  {:<18} {stream} {trip} {:>9}{failed}", Kind::word(row.transport), times(row.trip_ratio_udp))
}
