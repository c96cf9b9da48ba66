//! The `rota node` processes that a keeper starts, one in every station.

use crate::build::Lab;
use crate::kept::{Kept, PAUSE, end_all};
use rota_driver::clock;
use rota_sim::STATIONS_STATED;
use rota_units::Span;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::process::Stdio;

/// How long a node may take until its control socket is there.
const READY_WITHIN: Span = Span::from_millis(5_000);

/// The nodes of a lab; dropping them ends them.
#[derive(Default)]
pub struct Nodes {
    all: Vec<NodeProcess>,
    /// Whether what they say goes to our standard error too.
    aloud: bool,
}

struct NodeProcess {
    station: u8,
    process: Kept,
}

impl Nodes {
    /// Starts `rota node` in every station and waits until each has opened its control socket.
    ///
    /// # Errors
    /// One sentence: a node could not be started or ended at once.
    pub fn start(lab: &Lab, aloud: bool) -> Result<(Self, Vec<String>), String> {
        let program = std::env::current_exe().map_err(|e| format!("could not find this program: {e}"))?;
        let mut nodes = Self { all: Vec::new(), aloud };
        for station in 1..=lab.spec().stations {
            let mut command = lab.command(station, &program);
            command.args(["node", "--iface", "eth0", "--name", &format!("n{station}")]);
            if (1..=254).contains(&station) {
                command.args(["--llc-address", &station.to_string()]);
            }
            if let Some(trt) = lab.spec().trt {
                command.args(["--trt", &format!("{}ns", trt.as_nanos())]);
            }
            // A lab states its own size where that is more than a segment is taken to have.
            if u16::from(lab.spec().stations) > STATIONS_STATED {
                command.args(["--stations", &lab.spec().stations.to_string()]);
            }
            command.stdout(Stdio::null());
            let process = Kept::start(format!("the node of n{station}"), command)?;
            nodes.all.push(NodeProcess { station, process });
        }
        let mut warnings = nodes.wait_until_ready(lab)?;
        if warnings.is_empty() {
            warnings = nodes.wait_until_met(lab, &program);
        }
        Ok((nodes, warnings))
    }

    /// Waits for the control sockets; a node without one after a while is worth a warning, not an end.
    fn wait_until_ready(&mut self, lab: &Lab) -> Result<Vec<String>, String> {
        let deadline = clock::now() + READY_WITHIN;
        loop {
            self.look();
            if let Some(sentence) = self.all.iter().find_map(|node| node.process.sentence()) {
                return Err(sentence);
            }
            let waiting: Vec<u8> =
                self.all.iter().map(|node| node.station).filter(|k| !has_control_socket(lab, *k)).collect();
            if waiting.is_empty() {
                return Ok(Vec::new());
            }
            if clock::now() > deadline {
                let late = |k| format!("the node of n{k} runs, but has opened no control socket");
                return Ok(waiting.into_iter().map(late).collect());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits until every station has found all others, so that the first command of a new lab does not come
    /// too early.
    fn wait_until_met(&mut self, lab: &Lab, program: &Path) -> Vec<String> {
        let deadline = clock::now() + READY_WITHIN;
        let all = self.all.len();
        loop {
            let strangers: Vec<u8> = self
                .all
                .iter()
                .map(|node| node.station)
                .filter(|k| members(lab, *k, program) < all)
                .collect();
            if strangers.is_empty() {
                return Vec::new();
            }
            if clock::now() > deadline {
                let late = |k| format!("n{k} has not found all other stations yet");
                return strangers.into_iter().map(late).collect();
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Takes in what the nodes said and whether they ended.
    pub fn look(&mut self) {
        let aloud = self.aloud;
        self.all.iter_mut().for_each(|node| node.process.look(aloud));
    }

    /// That the node of `station` has ended, and its last words; unless somebody has started another one.
    pub fn warning(&self, lab: &Lab, station: u8) -> Option<String> {
        let ended = self.all.iter().find(|node| node.station == station)?.process.sentence()?;
        (!has_control_socket(lab, station)).then_some(ended)
    }

    /// What becomes readable when a node speaks.
    pub fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.all.iter().filter_map(|node| node.process.pipe())
    }
}

/// The part of a node's status that a lab reads.
#[derive(Deserialize)]
struct Status {
    members: Vec<IgnoredAny>,
}

/// How many stations the node of station `station` knows, itself included.
fn members(lab: &Lab, station: u8, program: &Path) -> usize {
    let output = lab.command(station, program).args(["status", "--json"]).stderr(Stdio::null()).output();
    let status = output.ok().and_then(|output| serde_json::from_slice::<Status>(&output.stdout).ok());
    status.map_or(0, |status| status.members.len())
}

/// Whether somebody serves the control socket of the station's network namespace.
fn has_control_socket(lab: &Lab, station: u8) -> bool {
    let asked = lab.host(station).run(|| {
        let table = std::fs::read_to_string("/proc/thread-self/net/unix").ok()?;
        let ending = format!("/net-{}/control", rota_rundir::namespace().ok()?);
        Some(table.lines().any(|line| line.ends_with(&ending)))
    });
    asked.ok().flatten().unwrap_or(false)
}

impl Drop for Nodes {
    fn drop(&mut self) {
        let mut all: Vec<&mut Kept> = self.all.iter_mut().map(|node| &mut node.process).collect();
        end_all(&mut all);
    }
}
