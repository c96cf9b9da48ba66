//! Figure 7's implementation: the time between ordinary visits in a lab of five namespaces.

use super::measured::{Access, AccessPoint};
use crate::bench::stage::{Channel, Stage};
use crate::clock;
use crate::exit::Failure;
use rota_sim::paper::profile::{MPEG_I, TRT};
use rota_units::{BitRate, Span};
use std::path::Path;

const STATIONS: u8 = 5;
const SESSIONS_MAX: u64 = 5;
/// How long each number of sessions is looked at.
const WINDOW: Span = Span::from_millis(3_000);
/// Until the round has its rhythm.
const SETTLE: Span = Span::from_millis(300);
/// A station without a session and without a receiver: every token it accepts is an ordinary visit.
const WATCHED: usize = 3;

/// Measures one to five sessions and writes `access.json`.
pub fn access(dir: &Path) -> Result<(), Failure> {
    let rate = BitRate::from_mbit(10);
    let stage = Stage::build(STATIONS, rate, true)?;
    let mut nodes = stage.start_nodes()?;
    let mut channels: Vec<Channel> = Vec::new();
    let mut points = Vec::new();
    for sessions in 1..=SESSIONS_MAX {
        // A sixth would be refused; the paper's five fit.
        channels.push(nodes.open(MPEG_I.get() as u32, TRT, true)?);
        nodes.circulate(SETTLE)?;
        let before = accepted(&nodes.status()?);
        let began = clock::now();
        nodes.circulate(WINDOW)?;
        let visits = accepted(&nodes.status()?).saturating_sub(before).max(1);
        let mean_gap_ns = clock::now().since(began).as_nanos() / visits;
        points.push(AccessPoint { sessions, mean_gap_ns });
    }
    let access = Access { label: "virtual wire".into(), stations: STATIONS, link_bps: rate.as_bps(), points };
    let path = dir.join("access.json");
    let text = serde_json::to_string_pretty(&access).map_err(|e| Failure::failed(e.to_string()))?;
    std::fs::create_dir_all(dir)
        .and_then(|()| std::fs::write(&path, text + "\n"))
        .map_err(|e| Failure::failed(format!("cannot write {}: {e}", path.display())))
}

fn accepted(status: &[rota::StatusInfo]) -> u64 {
    status.get(WATCHED).map_or(0, |station| station.token.accepted)
}
