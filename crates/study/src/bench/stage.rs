//! The LAN that the benchmarks run on: the same lab, nodes and channels that a user would start.

use crate::clock;
use crate::worker::Worker;
use rota::{
    ControlName, Listener, ModeName, Node, OpenRequest, Overdue, Received, RecvChannel, SendChannel,
    StatusInfo,
};
use rota_answer::Failure;
use rota_lab::{Lab, LabSpec, Topology, enter_isolation};
use rota_units::{BitRate, Span};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

pub const PATIENCE: Span = Span::from_millis(15_000);
pub const PAUSE: Span = Span::from_millis(20);
/// A service that nobody else in the benchmark's own lab uses.
const SERVICE: u16 = 1;

/// A lab without nodes, until they are started.
pub struct Stage {
    pub lab: Lab,
    rota: PathBuf,
}

/// Running nodes; they end with this value.
pub struct Nodes<'a> {
    stage: &'a Stage,
    workers: Vec<Worker>,
    links: Vec<Node>,
}

/// An open channel; dropping it gives the reservation back.
pub struct Channel {
    pub sender: SendChannel,
    pub receiver: RecvChannel,
    _listener: Listener,
}

/// How long a talker or listener of a loaded channel waits before it looks whether it is over.
const TALK_PATIENCE: Span = Span::from_millis(100);

impl Stage {
    /// Builds the LAN. No thread may exist yet.
    pub fn build(stations: u8, rate: BitRate, shaped: bool) -> Result<Self, Failure> {
        Self::of(&LabSpec { shaped, ..LabSpec::new(Self::name(), stations, rate) })
    }

    /// The same of several segments.
    pub fn of_topology(topology: Topology) -> Result<Self, Failure> {
        Self::of(&LabSpec::of(Self::name(), topology))
    }

    /// The same, and ordinary packets cross the gateways too.
    pub fn routed(topology: Topology) -> Result<Self, Failure> {
        Self::of(&LabSpec { routed: true, ..LabSpec::of(Self::name(), topology) })
    }

    fn name() -> String {
        format!("bench-{}", std::process::id())
    }

    fn of(spec: &LabSpec) -> Result<Self, Failure> {
        enter_isolation().map_err(Failure::failed)?;
        let lab = Lab::build(spec).map_err(Failure::failed)?;
        Ok(Self { lab, rota: std::env::current_exe().map_err(Failure::failed)? })
    }

    /// How many stations.
    pub fn stations(&self) -> u8 {
        self.lab.spec().stations()
    }

    /// This program, inside a station.
    pub fn rota(&self, station: u8, args: &[&str]) -> Command {
        let mut command = self.lab.command(station, &self.rota);
        command.args(args);
        command
    }

    /// The node of a station.
    pub fn connect(&self, station: u8) -> Result<Node, Failure> {
        let connected = self.lab.host(station).run(|| Node::connect(&ControlName::default()));
        connected.map_err(Failure::failed)?.map_err(Failure::failed)
    }

    /// Starts a node in every station and waits until all know each other.
    pub fn start_nodes(&self) -> Result<Nodes<'_>, Failure> {
        self.start_nodes_with(&[])
    }

    /// The same, each node with more arguments.
    pub fn start_nodes_with(&self, more: &[&str]) -> Result<Nodes<'_>, Failure> {
        let all: Vec<u8> = (1..=self.stations()).collect();
        self.start_nodes_at(&all, more)
    }

    /// The same in these stations alone.
    pub fn start_nodes_at(&self, stations: &[u8], more: &[&str]) -> Result<Nodes<'_>, Failure> {
        let mut workers = Vec::new();
        for &station in stations {
            let name = format!("n{station}");
            let address = station.to_string();
            let words = ["node", "--iface", "eth0", "--name", &name, "--llc-address", &address];
            let command = self.rota(station, &[&words, more].concat());
            workers.push(Worker::start(format!("the node of {name}"), command)?);
        }
        let deadline = clock::now() + PATIENCE;
        let mut links = Vec::new();
        for &station in stations {
            loop {
                match self.connect(station) {
                    Ok(link) => break links.push(link),
                    Err(error) if clock::now() >= deadline => return Err(error),
                    Err(_) => clock::sleep_until(clock::now() + PAUSE),
                }
            }
        }
        let mut nodes = Nodes { stage: self, workers, links };
        let all = stations.len();
        let met = |status: &StatusInfo| status.members.len() == all && status.mode == ModeName::Plain;
        nodes.wait_until("the nodes did not find each other", met)?;
        Ok(nodes)
    }
}

impl Nodes<'_> {
    /// What each station's node says of itself.
    pub fn status(&mut self) -> Result<Vec<StatusInfo>, Failure> {
        self.links.iter_mut().map(|link| link.status().map_err(Failure::failed)).collect()
    }

    /// Waits until every node's status is as wanted.
    fn wait_until(&mut self, else_: &str, wanted: impl Fn(&StatusInfo) -> bool) -> Result<(), Failure> {
        let deadline = clock::now() + PATIENCE;
        while !self.status()?.iter().all(&wanted) {
            if self.workers.iter_mut().any(Worker::has_ended) || clock::now() >= deadline {
                return Err(Failure::failed(format!("{else_} within {PATIENCE}")));
            }
            clock::sleep_until(clock::now() + PAUSE);
        }
        Ok(())
    }

    /// Reserves from the first to the last station and waits until all are in token mode.
    pub fn open(&mut self, unit_octets: u32, period: Span, periodic: bool) -> Result<Channel, Failure> {
        let (stage, last) = (self.stage, self.stage.stations());
        let listener =
            stage.lab.host(last).run(|| self.links[usize::from(last) - 1].listen(SERVICE, None, 4));
        let mut listener = listener.map_err(Failure::failed)?.map_err(Failure::failed)?;
        let mut request = OpenRequest::new(&format!("n{last}"), SERVICE, unit_octets, period);
        request.traffic.periodic = periodic;
        // Its units have no clock to follow: the next one waits in a full ring.
        request.overdue = Overdue::Keep;
        let (sender, receiver) = std::thread::scope(|scope| {
            let accept = scope.spawn(|| listener.accept(PATIENCE).map_err(Failure::failed));
            let opened = stage.lab.host(1).run(|| self.links[0].open(&request));
            let opened = opened.map_err(Failure::failed).and_then(|opened| opened.map_err(Failure::failed));
            (opened, accept.join().unwrap_or_else(|_| Err(Failure::failed("the listener ended"))))
        });
        let channel = Channel { sender: sender?, receiver: receiver?, _listener: listener };
        self.wait_until("not all stations entered token mode", |status| status.mode == ModeName::Token)?;
        Ok(channel)
    }

    /// Fills every slot of the channel while `during` runs; returns also how many units arrived whole.
    pub fn loaded<T>(&self, channel: &mut Channel, unit_octets: u32, during: impl FnOnce() -> T) -> (T, u64) {
        let over = AtomicBool::new(false);
        let Channel { sender, receiver, .. } = channel;
        let unit = vec![0x5a; unit_octets as usize];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    // A full ring is what keeps the slots full.
                    let _ = sender.send_timeout(&unit, clock::now(), TALK_PATIENCE);
                }
            });
            let listening = scope.spawn(|| {
                let (mut buffer, mut whole) = (Vec::new(), 0);
                while !over.load(Ordering::Relaxed) {
                    if let Ok(Received::Unit(unit)) = receiver.recv(&mut buffer, TALK_PATIENCE) {
                        whole += u64::from(unit.complete);
                    }
                }
                whole
            });
            let result = during();
            over.store(true, Ordering::Relaxed);
            (result, listening.join().unwrap_or(0))
        })
    }

    /// Gives the reservation back and waits until all are in plain mode again.
    pub fn close(&mut self, channel: Channel) -> Result<(), Failure> {
        drop(channel);
        self.wait_until("not all stations returned to plain mode", |status| status.mode == ModeName::Plain)
    }

    /// Keeps the token going round for `span` and returns when it is over.
    pub fn circulate(&mut self, span: Span) -> Result<(), Failure> {
        self.links.iter_mut().try_for_each(|link| link.circulate(span).map_err(Failure::failed))?;
        clock::sleep_until(clock::now() + span);
        Ok(())
    }

    /// The processes.
    pub fn pids(&self) -> Vec<u32> {
        self.links.iter().map(Node::pid).collect()
    }
}
