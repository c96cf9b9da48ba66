//! The running lab: N hosts around one switch.
//!
//! ```text
//!   n1 eth0 ──── p1 ┐                        each port, both directions:
//!   n2 eth0 ──── p2 ├ br0 (host "switch")      to the station:   p_k's own queue
//!   n3 eth0 ──── p3 ┘                          from the station: p_k → ifb_k's queue → p_k
//! ```
//! Both queues sit on the switch's side, where no frame of a station can pass beside them. A lab for
//! `rota hub` has the ports alone: the hub joins them, and its queues are the simulator's.

use crate::{Isolation, LabError, LabSpec, PrioritySpec};
use rota_driver::netlink::{Link, LinkIndex, Route, Veth};
use rota_driver::netns::{self, Door, Host, NamesNs, NsError};
use rota_driver::shape::{PortShape, Shaper};
use rota_units::{BitRate, Octets};
use std::ffi::OsStr;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const PREFIX: u8 = 24;
const IFACE: &str = "eth0";
/// How long programs in a lab that ends may take to end by themselves.
const STRAYS_MAY_LEAVE_WITHIN: Duration = Duration::from_millis(100);

/// A running LAN. Everything in it lives in unnamed namespaces held by this value: dropping it, or the
/// death of its process by any signal, removes all.
pub struct Lab {
    spec: LabSpec,
    isolation: Isolation,
    stations: Vec<Station>,
    switch: Switch,
}

struct Station {
    host: Host,
    door: Arc<Door>,
}

struct Switch {
    route: Route,
    /// None where a hub joins the ports.
    bridge: Option<LinkIndex>,
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

/// The address of station `station`.
pub fn address(station: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, station)
}

/// The MAC of station `station`: locally administered, then "ROTA" and its number.
pub fn mac(station: u8) -> [u8; 6] {
    [0x02, 0x52, 0x4f, 0x54, 0x41, station]
}

/// What every program in a station finds in its environment.
pub fn environment(rate: BitRate, port_queue: Octets) -> [(&'static str, String); 3] {
    [
        ("ROTA_LAB", "1".to_owned()),
        ("ROTA_RATE", format!("{}bit", rate.as_bps())),
        ("ROTA_PORT_QUEUE", format!("{}octets", port_queue.get())),
    ]
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
        if !(1..=LabSpec::STATIONS_MAX).contains(&spec.stations) {
            return Err(LabError::Stations(spec.stations));
        }
        if let Some(priority) = &spec.priority {
            priority.check()?;
        }
        let isolation = enter_isolation()?;
        // Names are a comfort: a system without /etc/hosts still gets its LAN.
        let names = NamesNs::create(&hosts_file(spec.stations)).ok();
        let mut switch = Switch::create(spec.hub)?;
        let mut stations = Vec::new();
        for k in 1..=spec.stations {
            let host = Host::create(&format!("n{k}"))?;
            switch.add_port(&host, k, spec.mtu, spec.shaped && !spec.hub)?;
            configure_station(&host, k, spec.stations)?;
            stations.push(Station { door: Arc::new(host.door(names.as_ref())?), host });
        }
        let mut lab = Self { spec: spec.clone(), isolation, stations, switch };
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

    /// A command that will run inside station `station` (1 to N), with ROTA_LAB, ROTA_RATE,
    /// ROTA_PORT_QUEUE and, where the lab has one, ROTA_CALIBRATION set. The kernel kills it when the
    /// *thread* that spawned it ends: spawn from a thread
    /// that lives as long as the lab.
    ///
    /// # Panics
    /// When the lab has no such station.
    pub fn command(&self, station: u8, program: impl AsRef<OsStr>) -> Command {
        let door = &self.station(station).door;
        let mut command = Command::new(program);
        command.envs(environment(self.spec.rate, self.spec.port_queue));
        forget_control_path(&mut command);
        if let Some(file) = &self.spec.calibration {
            command.env("ROTA_CALIBRATION", file);
        }
        rota_driver::sys::enter_on_exec(&mut command, Arc::clone(door));
        command
    }

    /// A command that will run where the ports are: p1 to pN, one for each station. As [`Self::command`].
    ///
    /// # Errors
    /// This process may open no more descriptors.
    pub fn switch_command(&self, program: impl AsRef<OsStr>) -> Result<Command, LabError> {
        let mut command = Command::new(program);
        rota_driver::sys::enter_on_exec(&mut command, Arc::new(self.switch.host.door(None)?));
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
        assert!((1..=self.spec.stations).contains(&station), "the lab has no station n{station}");
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
        let LabSpec { rate, port_queue, priority, mtu, .. } = self.spec;
        let shape = PortShape { rate, queue: port_queue, priority, mtu };
        for shaper in &mut self.switch.shapers {
            shaper.apply(&mut self.switch.route, &shape)?;
        }
        Ok(())
    }
}

/// Nothing outlives a lab: a program that put itself into the background inside a station would hold the
/// station's namespaces.
impl Drop for Lab {
    fn drop(&mut self) {
        let strays = || self.stations.iter().flat_map(|s| s.host.processes()).collect();
        netns::clear_out(strays, STRAYS_MAY_LEAVE_WITHIN);
    }
}

impl Switch {
    fn create(for_hub: bool) -> Result<Self, LabError> {
        let host = Host::create("switch")?;
        // Bridged packets are no business of a packet filter; where this cannot be set, they pay for it.
        host.run(|| {
            for table in ["iptables", "ip6tables", "arptables"] {
                let _ = std::fs::write(format!("/proc/sys/net/bridge/bridge-nf-call-{table}"), "0");
            }
        })?;
        let mut route = host.route()?;
        let bridge = if for_hub { None } else { Some(route.add_bridge("br0")?) };
        if let Some(bridge) = bridge {
            route.set_link(bridge, Link { up: true, ..Link::default() })?;
        }
        Ok(Self { route, bridge, shapers: Vec::new(), host })
    }

    /// Joins station `k` to the switch.
    fn add_port(&mut self, station: &Host, k: u8, mtu: u16, shaped: bool) -> Result<(), LabError> {
        let port_name = format!("p{k}");
        let route = &mut self.route;
        let port = route.add_veth(&Veth {
            near: &port_name,
            far: IFACE,
            far_netns: station.net(),
            far_mac: Some(mac(k)),
            mtu: u32::from(mtu),
        })?;
        self.host.run(|| netns::without_offloads(&port_name))??;
        if shaped {
            let ifb = route.add_ifb(&format!("ifb{k}"))?;
            route.set_link(ifb, Link { up: true, ..Link::default() })?;
            route.redirect_ingress(port, ifb)?;
            self.shapers.extend([Shaper::new(port), Shaper::new(ifb)]);
        }
        route.set_link(port, Link { up: true, master: self.bridge, ..Link::default() })?;
        if self.bridge.is_some() {
            route.add_bridge_entry(port, mac(k))?;
        }
        Ok(())
    }
}

/// Address, static neighbours, wire-sized frames.
fn configure_station(host: &Host, k: u8, stations: u8) -> Result<(), LabError> {
    let work = || -> Result<(), NsError> {
        netns::without_offloads(IFACE)?;
        let mut route = Route::here()?;
        let eth0 = route.index_of(IFACE)?;
        route.set_link(eth0, Link { up: true, ..Link::default() })?;
        route.add_address(eth0, address(k), PREFIX)?;
        let mut others = (1..=stations).filter(|other| *other != k);
        let set = |other| route.add_neighbour(eth0, address(other), mac(other));
        others.try_for_each(set)?;
        Ok(())
    };
    host.run(work)??;
    Ok(())
}

fn hosts_file(stations: u8) -> String {
    let names = (1..=stations).map(|k| format!("{} n{k}\n", address(k)));
    std::iter::once("127.0.0.1 localhost\n".to_owned()).chain(names).collect()
}
