//! The `rota node` processes that a keeper starts, one in every station.

use crate::build::Lab;
use crate::kept::{Kept, PAUSE, end_all};
use crate::neighbours::NeighbourFiles;
use crate::topology::{Medium, Station, Topology, address, interface};
use rota_admission::rtip::Discipline;
use rota_driver::clock;
use rota_sim::STATIONS_STATED;
use rota_units::Span;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::process::Stdio;

/// The UDP port of each end of a tunnel.
const TUNNEL_PORT: u16 = 7250;
/// How long a node may take until its control socket is there.
const READY_WITHIN: Span = Span::from_millis(5_000);

/// The nodes of a lab; dropping them ends them.
#[derive(Default)]
pub struct Nodes {
    all: Vec<NodeProcess>,
    /// Whether what they say goes to our standard error too.
    aloud: bool,
    /// Of those with neighbours; dropped after they have ended.
    files: NeighbourFiles,
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
        let files = NeighbourFiles::make(lab, &program)?;
        let mut nodes = Self { all: Vec::new(), aloud, files };
        let topology = &lab.spec().topology;
        for (this, station) in topology.stations.iter().zip(1..=u8::MAX) {
            let mut command = lab.command(station, &program);
            command.args(words(topology, (this, station))).args(nodes.files.words(station));
            if (1..=254).contains(&station) {
                command.args(["--llc-address", &station.to_string()]);
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
        let wanted: Vec<usize> =
            (0..topology.segments.len()).map(|segment| topology.on(segment).count()).collect();
        loop {
            let is_alone = |node: &&NodeProcess| {
                let this = &topology.stations[usize::from(node.station) - 1];
                let status = Status::of(lab, node.station, program);
                let mut ports = this.ports.iter().enumerate();
                ports.any(|(port, at)| status.members(&port_name(topology, port, *at)) < wanted[*at])
            };
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

/// The name of a node's port: that of the interface, or of the tunnel over it.
fn port_name(topology: &Topology, port: usize, segment: usize) -> String {
    match topology.segments[segment].medium {
        Medium::Ip => format!("tunnel{port}"),
        _ => interface(port),
    }
}

/// The words by which a station's node is started: its ports, and what its segments say of each.
fn words(topology: &Topology, (station, number): (&Station, u8)) -> Vec<String> {
    let named = station.ports.iter().enumerate().map(|(port, at)| (port_name(topology, port, *at), *at));
    let ports: Vec<(String, usize)> = named.collect();
    let is_tunnel = |at: usize| topology.segments[at].medium == Medium::Ip;
    let mut words = vec!["node".to_owned()];
    for (name, at) in &ports {
        let peer = topology.on(*at).map(|(other, _)| other).find(|other| *other != number);
        match peer.filter(|_| is_tunnel(*at)) {
            Some(peer) => {
                let [own, peer] = [number, peer].map(|station| address(*at, station));
                words.push("--tunnel".to_owned());
                words.push(format!("{name}={own}:{TUNNEL_PORT},{peer}:{TUNNEL_PORT}"));
            }
            None => words.extend(["--iface".to_owned(), name.clone()]),
        }
    }
    words.extend(["--name".to_owned(), station.name.clone()]);
    let mut each = |option: &str, value: &dyn Fn(usize) -> Option<String>| {
        let given = ports.iter().filter_map(|(iface, at)| Some(format!("{iface}={}", value(*at)?)));
        let given: Vec<String> = given.collect();
        if !given.is_empty() {
            words.extend([option.to_owned(), given.join(",")]);
        }
    };
    let segment = |at: usize| &topology.segments[at];
    each("--rate", &|at| Some(format!("{}bit", segment(at).rate.as_bps())));
    each("--port-queue", &|at| Some(format!("{}octets", segment(at).port_queue.get())));
    each("--trt", &|at| segment(at).trt.map(|trt| format!("{}ns", trt.as_nanos())));
    // A segment states its own size where that is more than one is taken to have.
    let size = |at: usize| topology.on(at).count();
    each("--stations", &|at| (size(at) > usize::from(STATIONS_STATED)).then(|| size(at).to_string()));
    // RETHER is what a node has without a word.
    let is_link = |at: usize| segment(at).medium == Medium::Link;
    if ports.iter().any(|(_, at)| is_link(*at)) {
        let medium = |at| if is_link(at) { "link" } else { "rether" }.to_owned();
        each("--medium", &|at| (!is_tunnel(at)).then(|| medium(at)));
    }
    let discipline = |at: usize| Some(segment(at).discipline).filter(|of| *of != Discipline::default());
    each("--discipline", &|at| discipline(at).map(|of| of.scheduler.name().to_owned()));
    each("--regulator", &|at| discipline(at).map(|of| of.hold.name().to_owned()));
    each("--levels", &|at| {
        let stated = segment(at).discipline.levels.stated();
        let stated: Vec<String> = stated.iter().map(|bound| format!("{}ns", bound.as_nanos())).collect();
        (!stated.is_empty()).then(|| stated.join("/"))
    });
    for (iface, at) in &ports {
        let named = segment(*at).partitions.iter().filter_map(|(_, name, percent)| Some((name?, percent)));
        let named: Vec<String> = named.map(|(name, percent)| format!("{name}={percent}%")).collect();
        if !named.is_empty() {
            words.extend(["--partition".to_owned(), format!("{iface}:{}", named.join(","))]);
        }
    }
    words
}

/// The part of a node's status that a lab reads.
#[derive(Default, Deserialize)]
struct Status {
    members: Vec<IgnoredAny>,
    #[serde(default)]
    extra: Extra,
}

#[derive(Default, Deserialize)]
struct Extra {
    #[serde(default)]
    ports: Vec<PortStatus>,
}

#[derive(Deserialize)]
struct PortStatus {
    interface: String,
    members: Vec<IgnoredAny>,
}

impl Status {
    /// The status of a station's node; nothing where it does not answer.
    fn of(lab: &Lab, station: u8, program: &Path) -> Self {
        let output = lab.command(station, program).args(["status", "--json"]).stderr(Stdio::null()).output();
        let status = output.ok().and_then(|output| serde_json::from_slice(&output.stdout).ok());
        status.unwrap_or_default()
    }

    /// How many stations it knows on a port, itself included.
    fn members(&self, name: &str) -> usize {
        let named = self.extra.ports.iter().find(|of| of.interface == name).map(|of| of.members.len());
        // A node of one port says it of the first one only.
        named.unwrap_or(if self.extra.ports.is_empty() { self.members.len() } else { 0 })
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Medium, Segment};
    use rota_admission::rtip::{LevelBounds, Scheduler};
    use rota_units::BitRate;

    #[test]
    fn a_node_serves_all_ports_of_its_station() {
        let mut segments = ["left", "right", "cable"].map(|name| Segment::new(name, BitRate::from_mbit(100)));
        segments[1] =
            Segment { trt: Some(Span::from_millis(20)), ..Segment::new("right", BitRate::from_mbit(1_000)) };
        segments[2].medium = Medium::Link;
        let station = |name: &str, ports: &[usize]| Station { name: name.to_owned(), ports: ports.to_vec() };
        let mut stations = vec![station("gateway", &[0, 2, 1]), station("n1", &[0]), station("n2", &[2])];
        // More stations than a segment is taken to have.
        stations.extend((0..STATIONS_STATED).map(|k| station(&format!("m{k}"), &[1])));
        let topology = Topology { segments: segments.to_vec(), stations };
        let of = |topology: &Topology, at: usize| words(topology, (&topology.stations[at], at as u8 + 1));
        let words = |at: usize| of(&topology, at).join(" ");
        assert_eq!(
            words(0),
            "node --iface eth0 --iface eth1 --iface eth2 --name gateway \
             --rate eth0=100000000bit,eth1=100000000bit,eth2=1000000000bit \
             --port-queue eth0=150000octets,eth1=150000octets,eth2=1000000octets --trt eth2=20000000ns \
             --stations eth2=15 --medium eth0=rether,eth1=link,eth2=rether"
        );
        assert_eq!(
            words(1),
            "node --iface eth0 --name n1 --rate eth0=100000000bit --port-queue eth0=150000octets"
        );
        assert!(words(2).ends_with(" --medium eth0=link"), "{}", words(2));
        let mut served = topology.clone();
        served.segments[2].discipline = Discipline::of(Some(Scheduler::Rcsp), None).expect("usual");
        let words = of(&served, 2).join(" ");
        assert!(words.ends_with(" --discipline eth0=rcsp --regulator eth0=rate-jitter"), "{words}");
        let bounds = LevelBounds::of(&[3, 6].map(Span::from_millis)).expect("they rise");
        served.segments[2].discipline = served.segments[2].discipline.with_levels(bounds).expect("rcsp");
        let words = of(&served, 2).join(" ");
        assert!(words.ends_with(" --levels eth0=3000000ns/6000000ns"), "{words}");
        served.segments[2].discipline = Discipline::default();
        served.segments[2].partitions.add("studio".parse().expect("a name"), 40).expect("room");
        served.segments[2].partitions.add("news".parse().expect("a name"), 20).expect("room");
        let words = of(&served, 2).join(" ");
        assert!(words.ends_with(" --partition eth0:studio=40%,news=20%"), "{words}");
        served.segments[2] = Segment { medium: Medium::Ip, ..Segment::new("net", BitRate::from_mbit(10)) };
        let gateway = of(&served, 0).join(" ");
        let tunnel = "node --iface eth0 --tunnel tunnel1=10.77.2.1:7250,10.77.2.3:7250 --iface eth2 --name";
        assert!(gateway.starts_with(tunnel) && !gateway.contains("--medium"), "{gateway}");
        assert!(gateway.contains(",tunnel1=10000000bit,"), "{gateway}");
    }

    #[test]
    fn a_status_tells_the_stations_of_each_port() {
        let of = |text: &str| serde_json::from_str::<Status>(text).expect("a status");
        let one = of(r#"{"members": [1, 2, 3], "mode": "plain"}"#);
        assert_eq!(one.members("eth1"), 3, "a node of one port, whatever its name");
        let two = of(r#"{"members": [1, 2], "extra": {"ports": [{"interface": "eth0", "members": [1, 2]},
                {"interface": "eth2", "members": [1, 2, 3, 4]}]}}"#);
        assert_eq!(["eth0", "eth1", "eth2"].map(|port| two.members(port)), [2, 0, 4]);
    }
}
