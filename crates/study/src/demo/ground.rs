//! What the demo's stations stand on: network namespaces, or, where the host allows none, threads of this
//! process on an in-process switch. The streams' programs are the same processes either way.

use rota::ControlName;
use rota_answer::Failure;
use rota_driver::in_process::{Segment, SegmentSpec};
use rota_lab::{Lab, LabSpec, PrioritySpec, mac};
use rota_node::{KeptNodeId, NoGate, NodeSpec, Quota, SegmentKey, Settings};
use std::path::Path;
use std::process::Command;

/// The stations of a demo.
pub enum Ground {
    /// Each in its own namespaces.
    Namespaces(Lab),
    /// Nodes as threads of this process. There is no ordinary traffic on their switch.
    InProcess { stations: u8, names: String },
}

impl Ground {
    /// Builds the stations in namespaces.
    pub fn namespaces(spec: &LabSpec) -> Result<Self, Failure> {
        Lab::build(spec).map(Self::Namespaces).map_err(Failure::failed)
    }

    /// Starts the nodes of `spec` in this process, for as long as it lives.
    pub fn in_process(spec: &LabSpec) -> Result<Self, Failure> {
        let rota_lab::Segment { rate, port_queue, .. } = spec.topology.segments[0];
        let segment = Segment::new(SegmentSpec { rate: Some(rate), port_queue });
        let names = format!("in-process-{}", spec.name);
        for station in 1..=spec.stations() {
            let device = segment.port(mac(0, station), 1500).map_err(Failure::failed)?;
            let control = ControlName::named(&format!("{names}-n{station}"));
            let node = NodeSpec {
                interface: format!("in-process port {station}"),
                name: format!("n{station}"),
                node_id: KeptNodeId::drawn().map_err(|e| Failure::failed(format!("no randomness: {e}")))?,
                settings: Settings::ethernet(rate, port_queue),
                key: SegmentKey::lab(),
                control: control.map_err(Failure::failed)?,
                guests: None,
                confine: false,
                quota: Quota::default(),
                realtime: false,
                trace_events: 1_000,
                // It dies with this process, and so do all others.
                guardian: None,
                hold_log: None,
                links: None,
                reroute: None,
            };
            let run = move || {
                if let Err(error) = rota_node::run(node, device, NoGate, |_| ()) {
                    eprintln!("rota: the node of n{station} ended: {error}");
                }
            };
            let thread = std::thread::Builder::new().name(format!("n{station}"));
            thread.spawn(run).map_err(|e| Failure::failed(format!("cannot start n{station}: {e}")))?;
        }
        Ok(Self::InProcess { stations: spec.stations(), names })
    }

    /// How the stations are kept apart, as the JSON says it.
    pub fn isolation(&self) -> String {
        match self {
            Self::Namespaces(lab) => lab.isolation().to_string(),
            Self::InProcess { .. } => "in-process".into(),
        }
    }

    /// How many stations there are.
    pub fn stations(&self) -> u8 {
        match self {
            Self::Namespaces(lab) => lab.spec().stations(),
            Self::InProcess { stations, .. } => *stations,
        }
    }

    /// Whether ordinary sockets of one station reach another, and each station needs a node of its own.
    pub fn is_network(&self) -> bool {
        matches!(self, Self::Namespaces(_))
    }

    /// A command that will run as a program of `station`.
    pub fn command(&self, station: u8, program: &Path) -> Command {
        match self {
            Self::Namespaces(lab) => lab.command(station, program),
            Self::InProcess { names, .. } => {
                let mut command = Command::new(program);
                command.env("ROTA_CONTROL", format!("{names}-n{station}"));
                command
            }
        }
    }

    /// Puts the ports' video class in place, or one queue for all.
    pub fn set_priority(&mut self, priority: Option<PrioritySpec>) -> Result<(), Failure> {
        match self {
            Self::Namespaces(lab) => lab.set_priority(priority).map_err(Failure::failed),
            Self::InProcess { .. } => Ok(()),
        }
    }
}

impl Drop for Ground {
    /// Nodes in threads end with the process, and take nothing away.
    fn drop(&mut self) {
        let Self::InProcess { stations, names } = self else { return };
        for station in 1..=*stations {
            let name = ControlName::named(&format!("{names}-n{station}"));
            for path in name.ok().and_then(|name| name.places().ok()).unwrap_or_default() {
                let _ = std::fs::remove_file(path.with_added_extension("lock"));
                let _ = std::fs::remove_file(&path);
                let _ = path.parent().map(std::fs::remove_dir);
            }
        }
    }
}

/// Why there are no namespaces, and what the demo does instead.
pub fn fallback_words(why: &str) -> String {
    format!(
        "{why}\nInstead the stations run as threads of this process on an in-process switch (isolation: \
         in-process). Ordinary sockets do not cross it, so only the reserved channels are shown, without \
         cross traffic.\n"
    )
}
