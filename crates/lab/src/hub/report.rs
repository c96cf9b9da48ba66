//! What a hub tells at its end, to people and to programs.

use rota_driver::port::PortCounters;
use rota_sim::media::MediumCounters;
use rota_sim::{Happened, HappenedCounts};
use rota_units::{BitRate, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A hub's whole life in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The seed of its faults.
    pub seed: u64,
    /// Of every port.
    pub rate_bps: u64,
    /// How long it ran.
    pub span_ns: u64,
    /// Its ports in their order.
    pub ports: Vec<PortLine>,
    /// Frames that a full queue on the way into the segment dropped.
    pub dropped_in: u64,
    /// Frames that a full queue on the way out dropped, or that collided too often.
    pub dropped_out: u64,
    /// Transmissions that a collision cut short, on a shared segment.
    pub aborted: u64,
    /// What went wrong, and how often, by the names that `rota sim run` uses.
    pub happened: BTreeMap<String, u64>,
}

/// One port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortLine {
    /// Its interface.
    pub port: String,
    /// Frames that its station sent.
    pub received: u64,
    /// Frames that its station got.
    pub sent: u64,
    /// What was no Ethernet frame of the interface.
    pub impossible: u64,
    /// Frames that the interface had no room for.
    pub refused: u64,
    /// Frames that the hub did not fetch in time.
    pub missed: u64,
}

impl PortLine {
    /// The line of a port.
    pub fn new(port: &str, counters: &PortCounters) -> Self {
        let PortCounters { received, sent, impossible, refused, missed } = *counters;
        Self { port: port.to_owned(), received, sent, impossible, refused, missed }
    }
}

impl Report {
    /// The report of a hub that ran so long.
    pub fn new(
        seed: u64,
        rate: BitRate,
        span: Span,
        ports: Vec<PortLine>,
        medium: &MediumCounters,
        counts: &HappenedCounts,
    ) -> Self {
        let happened = counts.iter().map(|(name, _, count)| (name.replace(' ', "_"), count));
        Self {
            seed,
            rate_bps: rate.as_bps(),
            span_ns: span.as_nanos(),
            ports,
            dropped_in: medium.card_drops,
            dropped_out: medium.port_drops + medium.discarded,
            aborted: medium.aborted,
            happened: happened.collect(),
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let mut put = |line: &str| {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{line}");
        };
        let ports = self.ports.iter().map(|line| line.port.len()).max().unwrap_or(0).max(4);
        put(&format!(
            "{:<ports$} {:>10} {:>10} {:>10} {:>8} {:>8}",
            "port", "from it", "to it", "impossible", "refused", "missed"
        ));
        for line in &self.ports {
            put(&format!(
                "{:<ports$} {:>10} {:>10} {:>10} {:>8} {:>8}",
                line.port, line.received, line.sent, line.impossible, line.refused, line.missed
            ));
        }
        put(&format!("full queues dropped {} frames in, {} out", self.dropped_in, self.dropped_out));
        if self.aborted > 0 {
            put(&format!("collisions cut {} transmissions short", self.aborted));
        }
        let struck: Vec<_> = Happened::ALL
            .iter()
            .map(|(_, name, rows)| (name, rows, self.happened.get(&name.replace(' ', "_")).copied()))
            .filter_map(|(name, rows, count)| Some((name, rows, count.filter(|count| *count > 0)?)))
            .collect();
        put(if struck.is_empty() { "no fault happened" } else { "happened" });
        for (name, rows, count) in struck {
            put(&format!("  {name} (fault {rows}): {count}"));
        }
        out.truncate(out.trim_end().len());
        out
    }
}
