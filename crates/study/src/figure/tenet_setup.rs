//! Table 5 of the Tenet paper: what each node and each link takes of a set-up. Its printed numbers give the
//! two whole set-ups that the paper printed beside them; the right panel is what `rota bench setup` has
//! measured in namespaces.

use super::chart::Figure;
use super::measured::{Measured, Setup, StationPart};
use crate::plot::{Axis, Look, Panel, Series};

/// A row: the node, its milliseconds there and back, and those of the link behind it in one direction.
type Row = (&'static str, f64, f64, Option<f64>);
const PRINTED: [Row; 4] = [
    ("grayling", 3.906, 3.907, Some(3.674)),
    ("sock", 2.056, 1.832, Some(11.9)),
    ("breeze", 1.637, 1.825, Some(9.779)),
    ("redwood", 1.853, 1.958, None),
];
/// Set-ups that section 5.2.4 prints: four machines with one FDDI ring and two T1 links, six with three and
/// two.
const WHOLE_MS: [f64; 2] = [70.0, 90.0];

/// The whole set-up of the table, there and back.
fn four_machines() -> f64 {
    PRINTED.iter().map(|(_, forward, reverse, link)| forward + reverse + 2.0 * link.unwrap_or(0.0)).sum()
}

/// A set-up over six machines that are as quick as the table's three DECstation 5000/240, three FDDI rings
/// and two T1 links, by the table's means.
fn six_machines() -> f64 {
    let nodes: f64 = PRINTED[1..].iter().map(|(_, forward, reverse, _)| forward + reverse).sum::<f64>() / 3.0;
    let [fddi, one, other] = [0, 1, 2].map(|at| PRINTED[at].3.unwrap_or(0.0));
    6.0 * nodes + 2.0 * (3.0 * fddi + 2.0 * f64::midpoint(one, other))
}

/// Three bars a station: there, back, and the link behind it.
fn bars(title: &str, y: &str, rows: &[(String, f64, Option<f64>, Option<f64>)]) -> Panel {
    let names: Vec<String> = rows.iter().map(|(name, ..)| name.clone()).collect();
    type Pick = fn(&(String, f64, Option<f64>, Option<f64>)) -> Option<f64>;
    let columns: [(&str, usize, Pick); 3] = [
        ("node, forward", 0, |row| Some(row.1)),
        ("node, reverse", 3, |row| row.2),
        ("link behind it", 6, |row| row.3),
    ];
    let mut most = 0.0f64;
    let (mut series, mut values) = (Vec::new(), Vec::new());
    for (at, (name, colour, of)) in columns.into_iter().enumerate() {
        let points: Vec<(f64, f64)> =
            rows.iter().enumerate().filter_map(|(x, row)| Some((x as f64, of(row)?))).collect();
        for (x, value) in &points {
            most = most.max(*value);
            values.push((
                x + (at as f64 - 1.0) * 0.28,
                *value,
                if *value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") },
            ));
        }
        series.push(Series::new(name, colour, Look::Bar(at, 3), points));
    }
    let y = Axis::linear(y, (most * 1.15).max(1.0));
    Panel { series, values, ..Panel::new(title, Axis::named("station", &names), y) }
}

/// The table.
pub fn table5(measured: &Measured) -> Figure {
    let rows: Vec<_> = PRINTED
        .iter()
        .map(|(name, forward, reverse, link)| ((*name).to_owned(), *forward, Some(*reverse), *link))
        .collect();
    let mut panels = vec![bars("printed in 1994: FDDI, two T1 links", "ms", &rows)];
    let setup = measured.setup.as_ref();
    if let Some(Setup { parts, .. }) = setup {
        let us = |ns: u64| ns as f64 / 1e3;
        let row = |of: &StationPart| {
            (of.name.clone(), us(of.forward_ns), of.reverse_ns.map(us), of.link_ns.map(us))
        };
        let rows: Vec<_> = parts.stations.iter().map(row).collect();
        panels.push(bars("ours, measured: virtual wire", "us (not ms)", &rows));
    }
    let told = match setup {
        None => "Ours: not measured. Give a directory with setup.json, the output of `rota bench setup \
                 --gateways 2 --wire link --json`, by --measured."
            .to_owned(),
        Some(setup) => format!(
            "Ours, over {} gateways between {}, medians of {} set-ups: {:.2} ms in the median for the \
             whole, of which {:.0} us are on the links. A virtual wire has no transmission delay, and the \
             programs, the nodes' sessions under TLS and the wake-ups of their threads are in the nodes. \
             The destination's answer is in its way there.",
            setup.gateways,
            if setup.wire == "link" { "cables" } else { "switches under tokens" },
            setup.parts.setups,
            setup.open.p50_ns as f64 / 1e6,
            setup.parts.stations.iter().filter_map(|one| one.link_ns).sum::<u64>() as f64 * 2.0 / 1e3
        ),
    };
    Figure {
        key: "tenet-table5",
        title: "Tenet, table 5: node and link latencies of a set-up".into(),
        subtitle: "a channel from the first to the last station; a link's latency is the mean of both \
                   directions"
            .into(),
        panels,
        verdict: format!(
            "The printed rows add up to {:.2} ms, printed as about {:.0}. By their means six machines with \
             three FDDI rings and two T1 links take {:.1} ms: printed as about {:.0}, {:+.1} % off. {told}",
            four_machines(),
            WHOLE_MS[0],
            six_machines(),
            WHOLE_MS[1],
            (six_machines() / WHOLE_MS[1] - 1.0) * 100.0
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TENET-5.2.4-1: 69.68 ms, and section 5.2.4: about 70 and about 90 ms.
    #[test]
    fn the_rows_of_the_table_add_up_to_the_set_ups_beside_them() {
        assert!((four_machines() - 69.68).abs() < 0.005, "{}", four_machines());
        assert!((six_machines() / WHOLE_MS[1] - 1.0).abs() < 0.03, "{}", six_machines());
    }
}
