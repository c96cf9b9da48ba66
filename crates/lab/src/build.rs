//! The running lab: hosts, and between them the middle of each segment.
//!
//! ```text
//!   n1 eth0 ──── p1 ┐                        each port, both directions:
//!   n2 eth0 ──── p2 ├ br0 (host "switch")      to the station:   p_k's own queue
//!   n3 eth0 ──── p3 ┘                          from the station: p_k → ifb_k's queue → p_k
//!
//!   n4 eth0 ──── p4 ⇄ p5 ──── eth0 n5        a cable: what one port receives waits in the other's queue
//! ```
//! All queues sit in the middle, where no frame of a station can pass beside them. A segment for
//! `rota hub` has the ports alone: the hub joins them, and its queues are the simulator's.

mod ways;

use crate::topology::{Medium, Segment, Topology, address, interface, mac};
use crate::{Isolation, LabError, LabSpec, PrioritySpec};
use rota_driver::netlink::{Link, LinkIndex, Route, Veth};
use rota_driver::netns::{self, Door, Host, NamesNs, NsError};
use rota_driver::shape::{PortShape, Shaper};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const PREFIX: u8 = 24;
/// How long programs in a lab that ends may take to end by themselves.
const STRAYS_MAY_LEAVE_WITHIN: Duration = Duration::from_millis(100);

/// A running LAN. Everything in it lives in unnamed namespaces held by this value: dropping it, or the
/// death of its process by any signal, removes all.
pub struct Lab {
    spec: LabSpec,
    isolation: Isolation,
    stations: Vec<Station>,
    middles: Vec<Middle>,
}

struct Station {
    host: Host,
    door: Arc<Door>,
}

/// The switch, hub or cable between the stations of one segment.
struct Middle {
    route: Route,
    segment: Segment,
    /// Where the segment is a switch.
    bridge: Option<LinkIndex>,
    ports: Vec<LinkIndex>,
    shapers: Vec<Shaper>,
    host: Host,
}

static ISOLATION: OnceLock<Isolation> = OnceLock::new();

/// Gives this process the right to build labs: nothing to do as root, a user namespace of its own otherwise.
/// Call it first thing, before any thread exists.
///
/// # Errors
/// Neither works here; the sentence says what to do.
pub fn enter_isolation() -> Result<Isolation, LabError> {
    if let Some(known) = ISOLATION.get() {
        return Ok(*known);
    }
    let isolation = netns::isolate()?;
    Ok(*ISOLATION.get_or_init(|| isolation))
}

/// A control socket that was named by its path outside is not the one of a station.
pub fn forget_control_path(command: &mut Command) {
    if std::env::var("ROTA_CONTROL").is_ok_and(|name| name.starts_with('/')) {
        command.env_remove("ROTA_CONTROL");
    }
}

impl Lab {
    /// Builds the LAN and returns when it carries frames. [`enter_isolation`] must have been called.
    ///
    /// # Errors
    /// A spec that makes no sense, or what the kernel refused.
    pub fn build(spec: &LabSpec) -> Result<Self, LabError> {
        spec.topology.check()?;
        if let Some(priority) = &spec.priority {
            priority.check()?;
        }
        let isolation = enter_isolation()?;
        let topology = &spec.topology;
        let mut middles = Vec::new();
        for segment in &topology.segments {
            middles.push(Middle::create(segment)?);
        }
        let mut stations = Vec::new();
        // Stations on the same segments share one file.
        let mut names = BTreeMap::new();
        for (station, k) in topology.stations.iter().zip(1..) {
            let host = Host::create(&station.name)?;
            for (port, at) in station.ports.iter().enumerate() {
                middles[*at].add_port(&host, (k, &interface(port), mac(*at, k)), spec.shaped)?;
            }
            configure_station(&host, k, topology)?;
            if spec.routed {
                ways::lay(&host, k, topology)?;
            }
            // Names are a comfort: a system without /etc/hosts still gets its LAN.
            let names = names.entry(hosts_file(topology, k));
            let names = names.or_insert_with_key(|text| NamesNs::create(text).ok());
            stations.push(Station { door: Arc::new(host.door(names.as_ref())?), host });
        }
        let mut lab = Self { spec: spec.clone(), isolation, stations, middles };
        lab.shape()?;
        Ok(lab)
    }

    /// What it was built to.
    pub fn spec(&self) -> &LabSpec {
        &self.spec
    }

    /// How it is kept apart from the host.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// The environment of every program in a station: the rate and queue of the segment of its
    /// first port.
    ///
    /// # Panics
    /// When the lab has no such station.
    pub fn environment(&self, station: u8) -> [(String, String); 3] {
        let topology = &self.spec.topology;
        let main = topology.stations[usize::from(station) - 1].ports[0];
        let Segment { rate, port_queue, .. } = topology.segments[main];
        [
            ("ROTA_LAB".to_owned(), "1".to_owned()),
            ("ROTA_RATE".to_owned(), format!("{}bit", rate.as_bps())),
            ("ROTA_PORT_QUEUE".to_owned(), format!("{}octets", port_queue.get())),
        ]
    }

    /// A command that will run inside station `station` (1 to N), with its environment and, where the lab has
    /// one, ROTA_CALIBRATION set. The kernel kills it when the *thread* that spawned it ends: spawn from a
    /// thread that lives as long as the lab.
    ///
    /// # Panics
    /// When the lab has no such station.
    pub fn command(&self, station: u8, program: impl AsRef<OsStr>) -> Command {
        let door = &self.station(station).door;
        let mut command = Command::new(program);
        command.envs(self.environment(station));
        forget_control_path(&mut command);
        if let Some(file) = &self.spec.calibration {
            command.env("ROTA_CALIBRATION", file);
        }
        rota_driver::sys::enter_on_exec(&mut command, Arc::clone(door));
        command
    }

    /// A command that will run in the middle of a segment, where each station on it has a port p1 to pN by
    /// its number. As [`Self::command`].
    ///
    /// # Errors
    /// This process may open no more descriptors.
    pub fn middle_command(&self, segment: usize, program: impl AsRef<OsStr>) -> Result<Command, LabError> {
        let mut command = Command::new(program);
        rota_driver::sys::enter_on_exec(&mut command, Arc::new(self.middles[segment].host.door(None)?));
        Ok(command)
    }

    /// The host of station `station`, to look or work inside it without a program.
    ///
    /// # Panics
    /// When the lab has no such station.
    pub fn host(&self, station: u8) -> &Host {
        &self.station(station).host
    }

    /// The way into station `station`.
    ///
    /// # Panics
    /// When the lab has no such station.
    pub fn door(&self, station: u8) -> &Door {
        &self.station(station).door
    }

    fn station(&self, station: u8) -> &Station {
        assert!((1..=self.spec.stations()).contains(&station), "the lab has no station {station}");
        &self.stations[usize::from(station) - 1]
    }

    /// Gives every port of the running lab a priority class, or one queue for all. What the ports hold at
    /// that moment is lost.
    ///
    /// # Errors
    /// A rule that makes no sense, or what the kernel refused.
    pub fn set_priority(&mut self, priority: Option<PrioritySpec>) -> Result<(), LabError> {
        if let Some(priority) = &priority {
            priority.check()?;
        }
        self.spec.priority = priority;
        self.shape()
    }

    fn shape(&mut self) -> Result<(), LabError> {
        let priority = self.spec.priority;
        for Middle { route, segment, shapers, .. } in &mut self.middles {
            let Segment { rate, port_queue: queue, mtu, .. } = *segment;
            let shape = PortShape { rate, queue, priority, mtu };
            shapers.iter_mut().try_for_each(|shaper| shaper.apply(route, &shape))?;
        }
        Ok(())
    }
}

/// Nothing outlives a lab: a program that put itself into the background inside a station would hold the
/// station's namespaces, and the run directory of a namespace holds the key of its node.
impl Drop for Lab {
    fn drop(&mut self) {
        let strays = || self.stations.iter().flat_map(|s| s.host.processes()).collect();
        netns::clear_out(strays, STRAYS_MAY_LEAVE_WITHIN);
        for station in &self.stations {
            let _ = station.host.run(rota_rundir::clear_out);
        }
    }
}

impl Middle {
    fn create(segment: &Segment) -> Result<Self, LabError> {
        let host = Host::create("switch")?;
        // Bridged packets are no business of a packet filter; where this cannot be set, they pay for it.
        host.run(|| {
            for table in ["iptables", "ip6tables", "arptables"] {
                let _ = std::fs::write(format!("/proc/sys/net/bridge/bridge-nf-call-{table}"), "0");
            }
        })?;
        let mut route = host.route()?;
        let is_switch = segment.medium == Medium::Switch;
        let bridge = is_switch.then(|| route.add_bridge("br0")).transpose()?;
        if let Some(bridge) = bridge {
            route.set_link(bridge, Link { up: true, ..Link::default() })?;
        }
        let segment = segment.clone();
        Ok(Self { route, segment, bridge, ports: Vec::new(), shapers: Vec::new(), host })
    }

    /// Joins station `k` by its interface.
    fn add_port(
        &mut self,
        station: &Host,
        (k, far, far_mac): (u8, &str, [u8; 6]),
        shaped: bool,
    ) -> Result<(), LabError> {
        let near = &format!("p{k}");
        let (far_netns, mtu) = (station.net(), u32::from(self.segment.mtu));
        let route = &mut self.route;
        let port = route.add_veth(&Veth { near, far, far_netns, far_mac: Some(far_mac), mtu })?;
        self.host.run(|| netns::without_offloads(near))??;
        let up = Link { up: true, master: self.bridge, ..Link::default() };
        match self.segment.medium {
            Medium::Hub(_) => {}
            Medium::Switch if shaped => {
                let ifb = route.add_ifb(&format!("ifb{k}"))?;
                route.set_link(ifb, Link { up: true, ..Link::default() })?;
                route.redirect_ingress(port, ifb)?;
                self.shapers.extend([Shaper::new(port), Shaper::new(ifb)]);
            }
            Medium::Switch => {}
            Medium::Link | Medium::Ip => {
                for other in &self.ports {
                    route.redirect_ingress(port, *other)?;
                    route.redirect_ingress(*other, port)?;
                }
                self.shapers.extend(shaped.then(|| Shaper::new(port)));
            }
        }
        route.set_link(port, up)?;
        if self.bridge.is_some() {
            route.add_bridge_entry(port, far_mac)?;
        }
        self.ports.push(port);
        Ok(())
    }
}

/// Addresses, static neighbours, wire-sized frames.
fn configure_station(host: &Host, k: u8, topology: &Topology) -> Result<(), LabError> {
    let work = || -> Result<(), NsError> {
        let mut route = Route::here()?;
        for (port, at) in topology.stations[usize::from(k) - 1].ports.iter().enumerate() {
            let name = interface(port);
            netns::without_offloads(&name)?;
            let link = route.index_of(&name)?;
            route.set_link(link, Link { up: true, ..Link::default() })?;
            route.add_address(link, address(*at, k), PREFIX)?;
            for (other, _) in topology.on(*at).filter(|(other, _)| *other != k) {
                route.add_neighbour(link, address(*at, other), mac(*at, other))?;
            }
        }
        Ok(())
    };
    host.run(work)??;
    Ok(())
}

/// The names of all stations, each at the address by which station `k` reaches it, if it does.
fn hosts_file(topology: &Topology, k: u8) -> String {
    let own = &topology.stations[usize::from(k) - 1].ports;
    let line = |(station, number): (&crate::topology::Station, u8)| {
        let shared = station.ports.iter().find(|at| own.contains(at)).unwrap_or(&station.ports[0]);
        format!("{} {}\n", address(*shared, number), station.name)
    };
    let names = topology.stations.iter().zip(1..).map(line);
    std::iter::once("127.0.0.1 localhost\n".to_owned()).chain(names).collect()
}
