//! The `rota node` processes that a keeper starts, one in every station.

use crate::build::Lab;
use crate::kept::{Kept, PAUSE, end_all};
use crate::topology::{Medium, Station, Topology, interface};
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
    name: String,
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
        let topology = &lab.spec().topology;
        for (this, station) in topology.stations.iter().zip(1..=u8::MAX) {
            let main = topology.main_segment(this);
            let mut command = lab.command(station, &program);
            let served = topology.served(this).into_iter();
            command.arg("node").args(served.flat_map(|port| ["--iface".to_owned(), interface(port)]));
            command.args(["--name", &this.name]);
            command.args(media(topology, this));
            if (1..=254).contains(&station) {
                command.args(["--llc-address", &station.to_string()]);
            }
            if let Some(trt) = topology.segments[main].trt {
                command.args(["--trt", &format!("{}ns", trt.as_nanos())]);
            }
            // A segment states its own size where that is more than one is taken to have.
            let size = topology.on(main).count();
            if size > usize::from(STATIONS_STATED) {
                command.args(["--stations", &size.to_string()]);
            }
            command.stdout(Stdio::null());
            let process = Kept::start(format!("the node of {}", this.name), command)?;
            nodes.all.push(NodeProcess { station, name: this.name.clone(), process });
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
            let waiting: Vec<_> =
                self.all.iter().filter(|node| !has_control_socket(lab, node.station)).collect();
            if waiting.is_empty() || clock::now() > deadline {
                let late = |n: &NodeProcess| {
                    format!("the node of {} runs, but has opened no control socket", n.name)
                };
                return Ok(waiting.into_iter().map(late).collect());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits until every node has found all others of its segment, so that the first command of a new lab
    /// does not come too early.
    fn wait_until_met(&mut self, lab: &Lab, program: &Path) -> Vec<String> {
        let deadline = clock::now() + READY_WITHIN;
        let topology = &lab.spec().topology;
        let segment = |k: u8| topology.main_segment(&topology.stations[usize::from(k) - 1]);
        loop {
            let wanted = |k| self.all.iter().filter(|other| segment(other.station) == segment(k)).count();
            let is_alone = |node: &&NodeProcess| members(lab, node.station, program) < wanted(node.station);
            let strangers: Vec<_> = self.all.iter().filter(is_alone).collect();
            if strangers.is_empty() || clock::now() > deadline {
                let late = |n: &NodeProcess| format!("{} has not found all other stations yet", n.name);
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

/// The media of the ports that a station's node serves, where one of them is a link.
fn media(topology: &Topology, station: &Station) -> Vec<String> {
    let is_link = |port: usize| topology.segments[station.ports[port]].medium == Medium::Link;
    let served = topology.served(station);
    if !served.iter().any(|port| is_link(*port)) {
        return Vec::new();
    }
    let of = |port: usize| format!("{}={}", interface(port), if is_link(port) { "link" } else { "rether" });
    let media: Vec<String> = served.into_iter().map(of).collect();
    vec!["--medium".to_owned(), media.join(",")]
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
