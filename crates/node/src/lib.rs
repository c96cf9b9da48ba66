//! The daemon of one station: a data thread that runs the [`rota_proto::Node`] over a device, and a control
//! thread that serves the programs of this host.
//!
//! ```text
//!  programs ── control socket ──► control thread ── commands ──► data thread ──► device, gate
//!      └────── shared rings, doorbells ─────────────────────────────►│
//! ```
//! Only the data thread touches the machines and the rings' node side. The control thread may block, allocate
//! and parse; the data thread does none of these once it runs.
#![forbid(unsafe_code)]

pub mod broker;
mod circuits;
mod commands;
mod control;
mod counters;
mod data;
mod descriptors;
mod door;
mod garbage;
mod gate;
mod guardian;
mod hold_log;
mod incidents;
mod journal;
mod kept_file;
mod key;
mod ledger;
mod limits;
pub mod links;
pub mod log;
mod meter;
mod monitor;
mod node_id;
mod pool;
mod privileges;
pub mod queues;
mod quota;
mod rerouting;
pub mod role;
mod session;
mod sockets;
mod status;
mod stood;
mod timers;
mod trace;
mod waker;

pub use counters::SHOULD_BE_ZERO;
pub use descriptors::{ask_for_descriptors, descriptors_for_neighbours};
pub use door::Guests;
pub use gate::{Egress, EgressError, NoGate, gate_frames};
pub use guardian::GuardianSpec;
pub use key::{KeyError, SegmentKey};
pub use log::warning;
pub use node_id::KeptNodeId;
pub use quota::Quota;

use commands::Wiring;
use links::{LinkSettings, Links, LinksError, LinksThread};
use privileges::Privileges;
use rota_driver::device::FrameDevice;
use rota_driver::gate::GateHelper;
use rota_driver::outsiders::Outsiders;
use rota_driver::realtime::Realtime;
use rota_driver::tunnel::Trouble;
pub use rota_proto::{CpuSettings, LlcSettings};
pub use rota_proto::{MediumKind, PORTS_MAX, STATIONS_MAX, STATIONS_STATED, Settings, SettingsError};
use rota_shm::control::{ControlName, SocketError};
use rota_shm::{MemoryError, TraceFile};
use rota_units::Span;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a daemon is told at start.
#[derive(Debug)]
pub struct NodeSpec {
    /// Its interface, for people.
    pub interface: String,
    /// Its station's name.
    pub name: String,
    /// Its id, by which nodes tell it from every other one.
    pub node_id: KeptNodeId,
    /// Times, rates and limits of the segment.
    pub settings: Settings,
    /// The segment's secret.
    pub key: SegmentKey,
    /// Where programs find it.
    pub control: ControlName,
    /// The group whose members it serves beside root and its own user.
    pub guests: Option<Guests>,
    /// What one user may take of it.
    pub quota: Quota,
    /// Whether to ask for real-time priority and memory.
    pub realtime: bool,
    /// True if the process drops the privileges and system calls that a running node does not need. False if
    /// the node is a guest in the process.
    pub confine: bool,
    /// How many events it keeps in its log; 0 for none.
    pub trace_events: u32,
    /// The guardian, which sends this node's will when the process dies; `None` for no guardian.
    pub guardian: Option<GuardianSpec>,
    /// Where to write the intervals in which the token was held, one line each.
    pub hold_log: Option<PathBuf>,
    /// Its links to neighbouring nodes; `None` for a node that has no neighbours file.
    pub links: Option<LinkSettings>,
    /// For how long another path is looked for when that of a channel across segments fails; zero for not at
    /// all, `None` for two seconds.
    pub reroute: Option<Span>,
}

/// Why a daemon could not start or had to stop.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The control socket.
    #[error("the control socket cannot be opened: {0}")]
    Control(#[from] SocketError),
    /// The operating system.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Its answer.
        source: io::Error,
    },
    /// Too few descriptors.
    #[error(
        "this process may open {limit} files, and a node needs {needed}: raise the limit ('ulimit -n \
         {needed}', LimitNOFILE= of a service)"
    )]
    Descriptors {
        /// The number that the kernel allows.
        limit: u64,
        /// The number that the node needs.
        needed: u64,
    },
    /// The counters file or the event log.
    #[error("the node's memory files cannot be made: {0}")]
    Memory(MemoryError),
    /// The links to neighbours.
    #[error("{0}")]
    Links(#[from] LinksError),
    /// The egress gate.
    #[error("the egress gate failed: {0}")]
    Gate(#[from] EgressError),
    /// All stations of a segment share one MTU, and nothing can be sized anew while a ring runs.
    #[error(
        "interface {interface}: its MTU changed from {was} to {is} while the node ran; its channels have \
         ended. Give all stations of the segment one MTU, and start the node again"
    )]
    Mtu {
        /// Which.
        interface: String,
        /// As it was.
        was: u16,
        /// As it is.
        is: u16,
    },
    /// The device.
    #[error("interface {interface}: {source}")]
    Device {
        /// Which.
        interface: String,
        /// What it said.
        source: rota_driver::device::DeviceError,
    },
}

pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> NodeError {
    move |source| NodeError::System { what, source }
}

/// The facts that are known once programs can connect.
#[derive(Clone, Copy, Debug)]
pub struct Started<'a> {
    /// The real-time rights that the kernel has granted the data thread.
    pub realtime: &'a Realtime,
    /// The control socket.
    pub control: &'a Path,
}

/// One more port of a node, beside the one of its [`NodeSpec`]. All ports have the segment key of the spec.
#[derive(Debug)]
pub struct Beside<D, G> {
    /// Its interface, for people.
    pub interface: String,
    /// Times, rates and limits of its segment.
    pub settings: Settings,
    /// The guardian, which sends the will of this port.
    pub guardian: Option<GuardianSpec>,
    /// The interface.
    pub device: D,
    /// The egress gate.
    pub gate: G,
}

/// Runs a station until SIGINT or SIGTERM, or until its device is gone. `ready` is called once programs
/// can connect.
///
/// # Errors
/// What could not be opened, or why it had to stop.
pub fn run<D: FrameDevice + Send, G: Egress + Send>(
    spec: NodeSpec,
    device: D,
    gate: G,
    ready: impl FnOnce(&Started<'_>),
) -> Result<(), NodeError> {
    run_ports(spec, (device, gate), Vec::new(), ready)
}

/// The same with several ports: a port whose device is gone ends with its channels, and the node goes on
/// with the others.
///
/// # Errors
/// As [`run`].
pub fn run_ports<D: FrameDevice + Send, G: Egress + Send>(
    mut spec: NodeSpec,
    (device, gate): (D, G),
    others: Vec<Beside<D, G>>,
    ready: impl FnOnce(&Started<'_>),
) -> Result<(), NodeError> {
    // Before any thread, so that all of them leave the signals to the control thread.
    let signals = control::block_signals().map_err(system("signals cannot be taken over"))?;
    let listener = door::open(&spec)?;
    let privileges = Privileges::begin(spec.confine);
    let (to_data, to_control) = Wiring::pair().map_err(system("threads cannot be joined"))?;
    let farewell = to_control.farewell().map_err(system("threads cannot be joined"))?;
    let interface = spec.interface.clone();
    // Before rights are given away: afterwards this process can run nothing.
    let (settings, guardian) = (spec.settings.clone(), spec.guardian.take());
    let first = Beside { interface, settings, guardian, device, gate };
    let (guardians, mut plugs) = plugs(first, others, spec.confine)?;
    let interfaces: Vec<&str> = plugs.iter().map(|plug| &*plug.interface).collect();
    let queues = queues::Queues::begin(spec.confine, &interfaces);
    let (table, published) = counters::file(&interfaces).map_err(NodeError::Memory)?;
    let log = log_file(&spec, &interfaces).map_err(NodeError::Memory)?;
    let helpers: Vec<_> = plugs.iter_mut().filter_map(|plug| plug.gate.helper()).collect();
    let mut metered: Vec<Metered> = plugs.iter().map(Metered::of).collect();
    let ports: Vec<_> = plugs.iter().map(|plug| (&*plug.interface, &plug.settings)).collect();
    let mut facts = status::Facts::of(&spec, &ports, table, log.as_ref(), privileges)?;
    facts.ports.iter_mut().zip(&metered).for_each(|(facts, of)| facts.trouble.clone_from(&of.trouble));
    let (links, keeping) = spec.links.take().map(Links::new).transpose()?.unzip();
    let facts = status::Facts { guardians, links: links.as_ref().map(Links::view), queues, ..facts };
    let privileges = &facts.privileges;
    let outcome = std::thread::scope(|scope| {
        let ports = metered.iter_mut().enumerate();
        let metering: Vec<_> = ports.map(|(port, of)| measure(scope, &facts, port, of)).collect();
        keep_links(scope, privileges, keeping)?;
        help_gates(scope, privileges, (helpers, spec.realtime))?;
        let (answer, asked) = std::sync::mpsc::channel();
        let data = std::thread::Builder::new()
            .name("rota-data".into())
            .spawn_scoped(scope, move || {
                let _farewell = farewell;
                let realtime = privileges.realtime(spec.realtime);
                data::run(&spec, plugs, to_control, (published, log, links), || {
                    privileges.data_thread_begins();
                    let _ = answer.send(realtime);
                })
            })
            .map_err(|source| data::Stopped::System("the data thread cannot be started", source))?;
        let realtime = asked.recv().unwrap_or_default();
        let awake = to_data.waker().start(scope, privileges, realtime.pinned);
        let _awake = awake.map_err(|source| data::Stopped::System("no thread to wake programs", source))?;
        privileges.all_have_begun(facts.links.is_some());
        ready(&Started { realtime: &realtime, control: listener.path() });
        let controlled = control::run(&facts, &realtime, (&listener, &signals), &to_data);
        drop(metering);
        let broken = || data::Stopped::System("the data thread broke down", io::Error::other("it panicked"));
        let ended = data.join().unwrap_or_else(|_| Err(broken()));
        // A thread that had to end early means that the node has failed.
        ended.and(controlled.map_err(|source| data::Stopped::System("the control thread had to end", source)))
    });
    // A node that had to stop has not left its ring in good order: its guardian sends the will.
    if outcome.is_ok() {
        facts.guardians.iter().flatten().for_each(guardian::Guardian::dismiss);
    }
    outcome.map_err(|error| why_ended(error, &metered))
}

/// Starts the thread that measures a port; it ends when what is returned is dropped. Its numbers are for
/// monitors only: a node without it is none the worse.
fn measure<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    facts: &'scope status::Facts,
    port: usize,
    of: &mut Metered,
) -> std::sync::mpsc::Sender<()> {
    let ((stopping, stop), counted) = (std::sync::mpsc::channel(), &facts.counters);
    let (ear, meter) = (of.ear.take(), Arc::clone(&of.meter));
    let (interface, gate, trouble) = (of.interface.clone(), of.gate.clone(), of.trouble.clone());
    let thread = std::thread::Builder::new().name("rota-meter".into()).spawn_scoped(scope, move || {
        facts.privileges.helper_begins();
        let of =
            meter::Of { port, interface: &interface, gate: gate.as_deref(), trouble: trouble.as_deref() };
        meter::run(&meter, &of, ear, counted, &stop);
    });
    drop(thread);
    stopping
}

/// The thread of the links, which ends with their user.
fn keep_links<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    privileges: &'scope Privileges,
    keeping: Option<LinksThread>,
) -> Result<(), data::Stopped> {
    let Some(keeping) = keeping else { return Ok(()) };
    let thread = std::thread::Builder::new().name("rota-links".into()).spawn_scoped(scope, move || {
        privileges.links_thread_begins();
        keeping.run();
    });
    let failed = |source| data::Stopped::System("no thread for the links to neighbours", source);
    thread.map(drop).map_err(failed)
}

/// A thread for each gate, which ends with its gate.
fn help_gates<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    privileges: &'scope Privileges,
    (helpers, realtime): (Vec<GateHelper>, bool),
) -> Result<(), data::Stopped> {
    for helper in helpers {
        let thread = std::thread::Builder::new().name("rota-gate".into()).spawn_scoped(scope, move || {
            privileges.gate_thread_begins(realtime);
            helper.run();
        });
        thread.map_err(|source| data::Stopped::System("no thread to open the gate", source))?;
    }
    Ok(())
}

/// The event log; none where none is wanted.
fn log_file(spec: &NodeSpec, interfaces: &[&str]) -> Result<Option<TraceFile>, MemoryError> {
    let file = |events| TraceFile::create(events, 0, spec.settings.ether_type, interfaces);
    Some(spec.trace_events).filter(|events| *events > 0).map(file).transpose()
}

/// An interface that is asked for its counts, and the device of its gate.
struct Metered {
    interface: String,
    gate: Option<String>,
    meter: Arc<meter::Meter>,
    /// The ear for strangers there.
    ear: Option<Outsiders>,
    /// Of a tunnel.
    trouble: Option<Arc<Trouble>>,
}

impl Metered {
    fn of<D: FrameDevice, G: Egress>(plug: &data::Plug<D, G>) -> Self {
        let gate = plug.gate.device().map(str::to_owned);
        // Packet sockets are opened before the right to open them is given away.
        let ear = Outsiders::open(&plug.interface).ok();
        let (interface, trouble) = (plug.interface.clone(), plug.device.trouble());
        Self { interface, gate, meter: Arc::clone(&plug.meter), ear, trouble }
    }
}

/// A guardian for each port, and the ports as the data thread takes them.
#[expect(clippy::type_complexity, reason = "two lists, named by the caller")]
fn plugs<D, G>(
    first: Beside<D, G>,
    others: Vec<Beside<D, G>>,
    confine: bool,
) -> Result<(Vec<Option<guardian::Guardian>>, Vec<data::Plug<D, G>>), NodeError> {
    let (mut guardians, mut plugs) = (Vec::new(), Vec::new());
    for Beside { interface, settings, guardian, device, gate } in std::iter::once(first).chain(others) {
        let (guardian, wills) = guardian::begin(guardian, confine)?;
        guardians.push(guardian);
        plugs.push(data::Plug { interface, settings, device, gate, wills, meter: meter::Meter::new() });
    }
    Ok((guardians, plugs))
}

fn why_ended(error: data::Stopped, ports: &[Metered]) -> NodeError {
    let named = |port: rota_proto::PortId| {
        ports.get(usize::from(port.0)).map_or_else(String::new, |port| port.interface.clone())
    };
    match error {
        data::Stopped::Device(port, source) => NodeError::Device { interface: named(port), source },
        data::Stopped::Gate(_, source) => NodeError::Gate(source),
        data::Stopped::Mtu { port, was, is } => NodeError::Mtu { interface: named(port), was, is },
        data::Stopped::System(what, source) => NodeError::System { what, source },
    }
}
