//! Figure 7's implementation: the time between ordinary visits in a lab of five namespaces (RETHER-5-1).

use super::measured::{Access, AccessPoint};
use crate::bench::stage::{Channel, Nodes, Stage};
use crate::clock;
use rota_answer::Failure;
use rota_sim::paper::profile::{MPEG_I, TRT};
use rota_units::{BitRate, Span};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const STATIONS: u8 = 5;
const SESSIONS_MAX: u64 = 5;
/// Until the round has its rhythm.
const SETTLE: Span = Span::from_millis(300);
/// How long a talker or listener waits before it looks whether it is over.
const PATIENCE: Span = Span::from_millis(100);
/// A station without a session and without a receiver: every token it accepts is an ordinary visit.
const WATCHED: usize = 3;

/// Measures one to five sessions, each for `window`, and writes `access.json`.
pub fn access(dir: &Path, window: Span) -> Result<(), Failure> {
    let rate = BitRate::from_mbit(10);
    let stage = Stage::build(STATIONS, rate, true)?;
    let mut nodes = stage.start_nodes()?;
    let mut channels: Vec<Channel> = Vec::new();
    let mut points = Vec::new();
    for sessions in 1..=SESSIONS_MAX {
        // A sixth would be refused; the paper's five fit.
        channels.push(nodes.open(MPEG_I.get() as u32, TRT, true)?);
        let mean_gap_ns = talking(&mut channels, || watch(&mut nodes, window))?;
        points.push(AccessPoint { sessions, mean_gap_ns });
    }
    let (label, link_bps) = ("virtual wire".into(), rate.as_bps());
    let hop_p50_ns = hop(&nodes.status()?);
    if hop_p50_ns == 0 {
        // The figure's ring would go round for ever.
        let busy = "no station has measured a hop of the token: the machine is too busy; measure again";
        return Err(Failure::failed(busy));
    }
    let access = Access { label, stations: STATIONS, link_bps, hop_p50_ns, points };
    let path = dir.join("access.json");
    let text = serde_json::to_string_pretty(&access).map_err(Failure::failed)?;
    std::fs::create_dir_all(dir)
        .and_then(|()| std::fs::write(&path, text + "\n"))
        .map_err(|e| Failure::failed(format!("cannot write {}: {e}", path.display())))
}

/// Mean time between two ordinary visits of the watched station.
fn watch(nodes: &mut Nodes<'_>, window: Span) -> Result<u64, Failure> {
    nodes.circulate(SETTLE)?;
    let ended = clock::now();
    let before = accepted(&nodes.status()?);
    nodes.circulate(window)?;
    let visits = accepted(&nodes.status()?).saturating_sub(before).max(1);
    Ok(clock::now().since(ended).as_nanos() / visits)
}

/// Fills every slot of all channels while `during` runs.
fn talking<T>(channels: &mut [Channel], during: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    let unit = vec![0x5a; MPEG_I.get() as usize];
    std::thread::scope(|scope| {
        for Channel { sender, receiver, .. } in channels {
            let (over, unit) = (&over, &unit);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    // A full ring is what keeps the slots full.
                    let _ = sender.send_timeout(unit, clock::now(), PATIENCE);
                }
            });
            scope.spawn(move || {
                let mut buffer = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    let _ = receiver.recv(&mut buffer, PATIENCE);
                }
            });
        }
        let result = during();
        over.store(true, Ordering::Relaxed);
        result
    })
}

fn accepted(status: &[rota::StatusInfo]) -> u64 {
    status.get(WATCHED).map_or(0, |station| station.token.accepted)
}

/// What the stations themselves measured of the idle token: the middle one.
fn hop(status: &[rota::StatusInfo]) -> u64 {
    let of = |station: &rota::StatusInfo| station.extra.pointer("/hop/p50_ns").and_then(|ns| ns.as_u64());
    crate::bench::median(status.iter().filter_map(of).collect())
}
