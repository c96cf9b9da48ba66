//! `rota node`: the daemon of one station.

mod guardian;
mod links;
mod partitions;
mod ports;
mod tunnels;

use ports::PerPort;
use rota_admission::NrtPolicy;
use rota_admission::cpu::Costs;
use rota_admission::rtip::{Discipline, Hold, LevelBounds, Scheduler};
use rota_answer::{Exit, Failure, Format};
use rota_node::log::{LevelFilter, Log};
use rota_node::{
    Beside, CpuSettings, Guests, KeptNodeId, NodeSpec, Quota, SegmentKey, Settings, SettingsError,
};
use rota_study::calibrate;
use rota_study::quantity::parse_percent;
use rota_units::{BitRate, Octets, Span, parse_octets, parse_rate, parse_span};
use rota_wire::MacAddr;
use std::path::{Path, PathBuf};

const AFTER_HELP: &str = "\
Example: rota node --iface eth0 --rate 100mbit --key /etc/rota/segment.key

Programs find the node by its control socket, /run/rota/net-N/control for root ('rota --help' says more);
ROTA_CONTROL names another one. A second node, on another interface, says which name it has taken.";
const KEY_FILE: &str = "/etc/rota/segment.key";
/// More often would only load the segment: a monitor shows rates.
const REPORT_MIN: Span = Span::from_millis(100);
/// Nodes keep the end of a receiver for so long, and two seconds more.
const REROUTE_MAX: Span = Span::from_nanos(rota_wire::RCAP_REROUTE_MAX_NS);
const CPU_DELAY_MAX: Span = Span::from_millis(1_000);
const DEATH_MAX: Span = Span::from_millis(60_000);
/// Header and check sequence of a frame: a buffer that is smaller than a full one would hold nothing.
const FRAME_OCTETS: u64 = 18;

/// Arguments of `rota node`.
/// The port queue of an interface for which none is given.
const PORT_QUEUE: Octets = Octets::new(150_000);

#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The Ethernet interface; may be left out where there is only one, and given up to eight times: then the
    /// node has a port on each
    #[arg(long, value_name = "IFACE")]
    iface: Vec<String>,
    /// A port to a gateway behind an ordinary IP network: its frames travel in UDP datagrams from this host's
    /// address to the peer's, such as wan=10.0.0.1:7250,10.0.1.1:7250; may be given often. Behind the
    /// addresses the longest IP packet may stand. Nothing is guaranteed there: only channels whose programs
    /// allow that (--allow-withdrawn) go through. It needs a --rate
    #[arg(long, requires = "neighbours", value_parser = tunnels::tunnel, value_name = "NAME=LOCAL,PEER")]
    tunnel: Vec<tunnels::Tunnel>,
    /// The name by which other stations find this one; the host's name otherwise
    #[arg(long)]
    name: Option<String>,
    /// The file that keeps this node's id, 16 hexadecimal digits; drawn and written where there is none.
    /// Otherwise 'node-id' in STATE_DIRECTORY, in /var/lib/rota for root, or beside the control socket
    #[arg(long, env = "ROTA_NODE_ID_FILE", value_name = "FILE")]
    node_id_file: Option<PathBuf>,
    /// The file that names the neighbours of this node, with the id, the address and the public key of each;
    /// the node keeps a link to each of them, for the signalling of channels across segments. 'rota key
    /// show' prints what the neighbours need of this one
    #[arg(long, value_name = "FILE")]
    neighbours: Option<PathBuf>,
    /// Where neighbours with smaller node ids find this node
    #[arg(long, requires = "neighbours", default_value = "0.0.0.0:7247", value_name = "ADDRESS:PORT")]
    rcap_listen: std::net::SocketAddr,
    /// For how long, 60s at most, another path is looked for when the path of a program's channel across
    /// segments fails; 0s ends such a channel at once
    #[arg(long, env = "ROTA_REROUTE", default_value = "2s", value_parser = parse_span, value_name = "TIME")]
    reroute: Span,
    /// The link's rate, such as 100mbit, or one for each interface: eth0=100mbit,eth1=1gbit; the driver's
    /// figure otherwise
    #[arg(long, env = "ROTA_RATE", value_parser = ports::rates)]
    rate: Option<PerPort<BitRate>>,
    /// The medium: 'rether', a token on a segment of any number of stations, or 'link', a full-duplex cable
    /// between two, without a token; or one for each interface: eth0=rether,eth1=link. The same on all
    /// stations
    #[arg(long, env = "ROTA_MEDIUM", value_parser = ports::media, value_name = "MEDIUM")]
    medium: Option<PerPort<rota_node::MediumKind>>,
    /// How packets of channels across segments are scheduled on a link: 'delay-edd', 'jitter-edd' or 'rcsp';
    /// or one for each interface: eth1=rcsp,eth2=delay-edd. The other end may have another one
    #[arg(long, env = "ROTA_DISCIPLINE", value_parser = ports::schedulers, value_name = "NAME")]
    discipline: Option<PerPort<Scheduler>>,
    /// How they are held ahead of their time: 'rate-jitter', 'delay-jitter' or 'none'; that of the discipline
    /// otherwise, which is delay-jitter for jitter-edd and rate-jitter for the others
    #[arg(long, env = "ROTA_REGULATOR", value_parser = ports::regulators, value_name = "NAME")]
    regulator: Option<PerPort<Hold>>,
    /// The bounds of the first levels of a link that serves rcsp, such as eth1=3ms/6ms/50ms; each further one
    /// of the eight has twice that of the level above
    #[arg(long, env = "ROTA_LEVELS", value_parser = ports::levels, value_name = "TIMES")]
    levels: Option<PerPort<LevelBounds>>,
    /// Partitions of a port's network, such as eth1:studio=40%,news=20%: each has so much of it for the
    /// channels across segments that name it, with an admission of its own; may be given for each interface.
    /// All stations of a RETHER segment have the same ones
    #[arg(long, value_parser = partitions::of_port, value_name = "IFACE:NAME=SHARE")]
    partition: Vec<partitions::OfPort>,
    /// The largest buffer of a switch port of the segment, or one for each interface: eth0=150kB,eth1=1MB
    #[arg(
        long, env = "ROTA_PORT_QUEUE",
        value_parser = ports::port_queues,
        default_value = "150kB",
        value_name = "SIZE"
    )]
    port_queue: PerPort<Octets>,
    /// The cycle; the same on all stations of a segment. One for each interface: eth0=10ms,eth1=20ms
    #[arg(long, value_parser = ports::cycles, value_name = "TIME")]
    trt: Option<PerPort<Span>>,
    /// The limit of an ordinary visit: 'one' frame, at most so many frames, or 'all' that fit; otherwise the
    /// frames of 3.5 ms, or of 2 ms with many stations (paper section 2.2.3); the same on all stations
    #[arg(long, value_parser = nrt_policy, value_name = "POLICY")]
    nrt: Option<NrtPolicy>,
    /// The costs of frames, visits and hops, measured by 'rota calibrate'; the same file on all stations of a
    /// segment. One for each interface: eth0=FILE,eth1=FILE
    #[arg(long, env = "ROTA_CALIBRATION", value_parser = ports::calibrations, value_name = "FILE")]
    calibration: Option<PerPort<PathBuf>>,
    /// The share of one CPU that is promised to channels, 95% at most, where the calibration has the costs of
    /// circuits; 0% promises none and refuses nothing for want of it
    #[arg(long, env = "ROTA_CPU_SHARE", value_parser = share, value_name = "PERCENT")]
    cpu_share: Option<u32>,
    /// Within what time the work of this host for a unit of a channel is to be done; 10ms otherwise. The
    /// bound of a channel that is sent here contains it
    #[arg(long, env = "ROTA_CPU_DELAY", value_parser = parse_span, value_name = "TIME")]
    cpu_delay: Option<Span>,
    /// The longest that ordinary traffic may wait for the token: exactly the time that this takes is set
    /// aside in each cycle, instead of what 500 ms take and at least 5 %; the same on all stations
    #[arg(long, value_parser = parse_span, value_name = "TIME")]
    nrt_latency: Option<Span>,
    /// How long a station may be silent before it counts as dead, always; without it 500 ms (or two cycles
    /// where that is longer) at most, and less where no station's host has lately stood still for long. The
    /// same on all stations
    #[arg(long, env = "ROTA_DEATH_TIMEOUT", value_parser = parse_span, value_name = "TIME")]
    death_timeout: Option<Span>,
    /// Number of stations that admission assumes; the same on all stations. With
    /// 14 (the default) five streams of 1.5 Mbit/s fit at 10 Mbit/s, with 15 four; a station beyond the
    /// stated number joins a running ring only while its reservations keep their promise. One for each
    /// interface: eth0=14,eth1=40
    #[arg(long, value_parser = ports::sizes, value_name = "N")]
    stations: Option<PerPort<u16>>,
    /// The file with the segment's secret: 32 octets, the same on all stations
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Which segment, where several share one wire
    #[arg(long, default_value_t = 1)]
    segment: u32,
    /// EtherType of Rota's frames, in hexadecimal
    #[arg(long, default_value = "88b5", value_parser = ether_type, value_name = "HEX")]
    ethertype: u16,
    /// How often this station tells the others its counts, for 'rota top' at any station; 0s for never
    #[arg(long, env = "ROTA_REPORT", value_parser = parse_span, default_value = "1s", value_name = "TIME")]
    report: Span,
    /// How many channels and listeners one user of this host may have
    #[arg(long, default_value_t = 64, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=200))]
    user_channels: u16,
    /// How many connections one user of this host may have: a command that opens a channel or receives needs
    /// two, and one that looks needs one; three for each of --user-channels unless given, 192 at least
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=1_000))]
    user_connections: Option<u16>,
    /// How much of a link's time the channels across segments of one user may reserve through this node, of
    /// users of other nodes, too, as payload; as much as there is otherwise
    #[arg(long, value_parser = parse_rate, value_name = "RATE")]
    user_reserved: Option<BitRate>,
    /// The highest level of the queue of ordinary traffic at which circuits of a user may wait; root and the
    /// user that the node runs as have all of them. 6 unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=7))]
    user_level: Option<u8>,
    /// The part of a node's work that this process does for another; nodes start such processes themselves
    #[arg(long, hide = true)]
    role: Option<String>,
    /// Members of this group may use the node too, beside root and the user it runs as
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// How much memory the programs of this host may have mapped, for channels and sockets together; an
    /// eighth of what is free, at most 256MB, otherwise
    #[arg(long, value_parser = parse_octets, value_name = "SIZE")]
    memory: Option<Octets>,
    /// How much of it one user may have; half otherwise
    #[arg(long, value_parser = parse_octets, value_name = "SIZE")]
    user_memory: Option<Octets>,
    /// This station's node address for messages between sockets (IEEE 802.2), 1 to 254
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=254))]
    llc_address: Option<u8>,
    /// A station without Rota that speaks IEEE 802.2, such as 17=02:00:00:00:00:11, on the segment of the
    /// first interface; may be given often
    #[arg(long, value_name = "N=MAC", value_parser = llc_peer)]
    llc_peer: Vec<(u8, MacAddr)>,
    /// Nobody else uses IEEE 802.2 on this segment: sockets 66, 224, 240 and 254 are free too
    #[arg(long)]
    llc_private: bool,
    /// Do not ask for real-time priority
    #[arg(long)]
    no_realtime: bool,
    /// How many events the log of 'rota trace' holds, 256 octets each; 0 keeps none
    #[arg(long, env = "ROTA_TRACE_EVENTS", default_value_t = 1_000, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=65_536))]
    trace_events: u32,
    /// Write each interval in which this station held the token: generation, accepted and passed in ns
    #[arg(long, value_name = "FILE")]
    hold_log: Option<PathBuf>,
    /// The process of the node that a guardian belongs to
    #[arg(long, hide = true, value_name = "PID")]
    part_of: Option<u32>,
    /// The lowest level of log lines on standard error
    #[arg(long, env = "ROTA_LOG", value_enum, default_value = "info", value_name = "LEVEL")]
    log: LogLevel,
}

/// How much the log tells.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum LogLevel {
    /// Nothing
    Off,
    /// Causes of the node's end and of the end of all its channels
    Error,
    /// Broken promises, dead stations, claims, mismatches
    Warn,
    /// Also joins, leaves, changes of mode, and channels that open and close
    Info,
    /// Also each stall of this host
    Debug,
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Off => Self::OFF,
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
        }
    }
}

fn ether_type(text: &str) -> Result<u16, String> {
    let digits = text.trim_start_matches("0x");
    let value =
        u16::from_str_radix(digits, 16).map_err(|_| format!("'{text}' is not hexadecimal, such as 88b5"))?;
    // Below 0x0600 the field is a length (IEEE 802.3).
    if value < 0x0600 {
        Err(format!("'{text}' is a length, not an EtherType; 88b5 is usual"))
    } else {
        Ok(value)
    }
}

fn llc_peer(text: &str) -> Result<(u8, MacAddr), String> {
    let wrong =
        || format!("'{text}' names no station; write its node address and its MAC: 17=02:00:00:00:00:11");
    let (node, mac) = text.split_once('=').ok_or_else(wrong)?;
    let node = node.parse().ok().filter(|node| (1..=254).contains(node)).ok_or_else(wrong)?;
    let mac: MacAddr = mac.parse().map_err(|()| wrong())?;
    if mac.is_group() { Err(format!("{mac} is a group, not a station")) } else { Ok((node, mac)) }
}

/// A share of the CPU, in millionths. The kernel takes the rest from real-time threads.
fn share(text: &str) -> Result<u32, String> {
    let percent = parse_percent(text).ok().filter(|percent| *percent <= 95);
    percent.map(|percent| u32::from(percent) * 10_000).ok_or(format!("'{text}' is no share; write 0% to 95%"))
}

fn nrt_policy(text: &str) -> Result<NrtPolicy, String> {
    match text {
        "one" => Ok(NrtPolicy::One),
        "all" => Ok(NrtPolicy::AsManyAsFit),
        number => match number.parse() {
            Ok(frames) if frames > 0 => Ok(NrtPolicy::AtMost(frames)),
            _ => Err(format!("'{text}' is no policy; write one, all, or a number of frames")),
        },
    }
}

/// Does a part of a node's work, as a process that a node has started.
fn play(role: &str, args: &Args) -> Result<Exit, Failure> {
    match role {
        "broker" => rota_node::broker::serve().map(|()| Exit::Done).map_err(Failure::wrong_use),
        "queues" => rota_node::queues::serve().map(|()| Exit::Done).map_err(Failure::wrong_use),
        "guardian" => guardian::run(args),
        _ => Err(Failure::wrong_use(format!("'{role}' is no role of a node"))),
    }
}

/// How programs find a node that did not get the usual name, because another one has it.
fn beside(control: &Path) -> String {
    match control.file_name().map(|name| name.to_string_lossy()) {
        Some(file) if file != "control" => {
            format!("; another node serves this network, programs find this one with ROTA_CONTROL={file}")
        }
        _ => String::new(),
    }
}

/// A start setting that cannot be right is wrong use; every other error is a failure.
fn failure(error: &rota_node::NodeError) -> Failure {
    match error {
        rota_node::NodeError::Control(rota::SocketError::Group { .. }) => {
            Failure::wrong_use(error.to_string())
        }
        _ => Failure::failed(error),
    }
}

/// Runs the command.
pub fn run(args: &Args, _format: Format) -> Result<Exit, Failure> {
    if let Some(role) = &args.role {
        return play(role, args);
    }
    rota_node::ask_for_descriptors().map_err(Failure::failed)?;
    let ifaces = ports::interfaces(args)?;
    if args.reroute > REROUTE_MAX {
        let sentence =
            format!("--reroute {}: another path is looked for {REROUTE_MAX} at most", args.reroute);
        return Err(Failure::wrong_use(sentence));
    }
    let guests = args.group.as_deref().map(Guests::find).transpose().map_err(Failure::wrong_use)?;
    let control = rota::ControlName::default();
    let by_default = control.is_default();
    let key = segment_key(args)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => host_name()?,
    };
    check_name(&name)?;
    let mut claimed = ports::claim(args, &ifaces)?;
    let Beside { interface: iface, settings, guardian, device, gate } = claimed.remove(0);
    let rates = ports::sentence(&iface, &settings, &claimed);
    let lab = key.lab;
    // Behind the claim to the interface, so that the node before this one has left its file.
    let node_id = KeptNodeId::find(args.node_id_file.as_deref());
    let node_id = node_id.map_err(|error| Failure::failed(format!("no node id can be drawn: {error}")))?;
    let for_now = node_id.note().map(str::to_owned);
    let links = links::settings(args, &node_id)?;
    let spec = NodeSpec {
        interface: iface.clone(),
        name: name.clone(),
        node_id,
        settings,
        key,
        control,
        guests,
        confine: true,
        quota: quota(args),
        realtime: !args.no_realtime,
        trace_events: args.trace_events,
        guardian,
        hold_log: args.hold_log.clone(),
        links,
        reroute: Some(args.reroute),
    };
    let log = Log::start(args.log.into())
        .map_err(|error| Failure::failed(format!("no log can be written to standard error: {error}")))?;
    let outcome = rota_node::run_ports(spec, (device, gate), claimed, |started| {
        let known = "the well-known lab key is in use: anybody on this wire can make frames of this segment";
        let beside = if by_default { beside(started.control) } else { String::new() };
        let first = format!("rota node {name} on {rates}; {}{beside}", started.realtime);
        let warnings = lab.then_some(known).into_iter().chain(for_now.as_deref());
        log.started(&first, warnings);
    });
    outcome.map_err(|error| failure(&error))?;
    Ok(Exit::Done)
}

fn check_name(name: &str) -> Result<(), Failure> {
    if let Some(letter) = name.chars().find(|letter| !rota_wire::is_printable(*letter)) {
        let wrong = letter.escape_unicode();
        return Err(Failure::wrong_use(format!(
            "the name {name:?} has a character, {wrong}, that does not print"
        )));
    }
    if name.contains(',') {
        return Err(Failure::wrong_use(format!(
            "the name '{name}' has a comma, which stands between several receivers; leave it out"
        )));
    }
    if name.is_empty() || name.len() > 32 {
        return Err(Failure::wrong_use(format!("the name '{name}' must have 1 to 32 octets")));
    }
    Ok(())
}

/// The discipline of an interface, which only a link has.
fn discipline(args: &Args, iface: &str, medium: rota_node::MediumKind) -> Result<Discipline, Failure> {
    let scheduler = args.discipline.as_ref().and_then(|values| values.of(iface));
    let hold = args.regulator.as_ref().and_then(|values| values.of(iface));
    let levels = args.levels.as_ref().and_then(|values| values.of(iface));
    let is_link = medium == rota_node::MediumKind::Link;
    if !is_link && (scheduler.is_some() || hold.is_some() || levels.is_some()) {
        let sentence = format!("{iface} is no link; only a link has a discipline, a regulator and levels");
        return Err(Failure::wrong_use(sentence));
    }
    let discipline = Discipline::of(scheduler, hold);
    let discipline = discipline.and_then(|of| levels.map_or(Ok(of), |levels| of.with_levels(levels)));
    discipline.map_err(|bad| Failure::wrong_use(format!("{iface}: {bad}")))
}

/// The network behind a port.
#[derive(Clone, Copy)]
struct Carrier {
    /// Payload of its longest frame.
    mtu: u16,
    /// Of a tunnel: octets of the headers around a frame.
    headers: Option<u16>,
}

fn settings(args: &Args, iface: &str, rate: BitRate, carrier: Carrier) -> Result<Settings, Failure> {
    let Carrier { mtu, headers } = carrier;
    let frame = u64::from(mtu) + FRAME_OCTETS;
    let port_queue = args.port_queue.of(iface).unwrap_or(PORT_QUEUE);
    if port_queue.get() < frame {
        let sentence = format!("a port buffer of {port_queue} holds no frame; give {frame}octets or more");
        return Err(Failure::wrong_use(sentence));
    }
    let mut settings = match headers {
        Some(headers) => Settings::tunnel_of(rate, port_queue, mtu, headers),
        None => Settings::ethernet_of(rate, port_queue, mtu),
    };
    // Before the cycle: each medium has a shortest one of its own.
    if headers.is_none() {
        settings.medium.medium = args.medium.as_ref().and_then(|media| media.of(iface)).unwrap_or_default();
    }
    settings.medium.discipline = discipline(args, iface, settings.medium.medium)?;
    partitions::set(&args.partition, iface, &mut settings)?;
    settings.segment = args.segment;
    settings.ether_type = args.ethertype;
    if args.report != Span::ZERO && args.report < REPORT_MIN || args.report > DEATH_MAX {
        let sentence = format!(
            "reports every {} are not made; give {REPORT_MIN} to {DEATH_MAX}, or 0s for none",
            args.report
        );
        return Err(Failure::wrong_use(sentence));
    }
    settings.report = args.report;
    settings.llc.enabled = headers.is_none();
    settings.llc.address = args.llc_address.filter(|_| headers.is_none()).unwrap_or(0);
    settings.llc.peer_macs.clone_from(&args.llc_peer);
    settings.llc.private_segment = args.llc_private;
    // Nobody has calibrated an IP network.
    let calibration = args.calibration.as_ref().and_then(|files| files.of(iface));
    if let (Some(path), None) = (calibration, headers) {
        settings = calibrated(args, &path, (iface, mtu), settings)?;
    }
    let wrong = |error: SettingsError| Failure::wrong_use(error.to_string());
    // Before the cycle, which must be long enough for so many.
    if let Some(stations) = args.stations.as_ref().and_then(|values| values.of(iface)) {
        settings.stations_max = stations;
    }
    if let Some(trt) = args.trt.as_ref().and_then(|values| values.of(iface)) {
        settings = settings.with_cycle(trt).map_err(wrong)?;
    }
    settings.nrt_policy = args.nrt;
    if let Some(latency) = args.nrt_latency {
        if latency == Span::ZERO || latency > Span::from_millis(1_000) {
            let sentence =
                format!("ordinary traffic cannot be promised the token within {latency}; 1us to 1s can");
            return Err(Failure::wrong_use(sentence));
        }
        settings = settings.with_nrt_latency(latency);
    }
    settings.follow_stalls = args.death_timeout.is_none();
    if let Some(death) = args.death_timeout {
        if death > DEATH_MAX {
            let sentence = format!(
                "a death timeout of {death} leaves a ring dead for too long; give {DEATH_MAX} at most"
            );
            return Err(Failure::wrong_use(sentence));
        }
        settings = settings.with_death_timeout(death).map_err(wrong)?;
    }
    settings.check().map_err(wrong)?;
    partitions::check(iface, &settings)?;
    Ok(settings)
}

/// The settings of an interface with the costs of a file, which has to hold for it.
fn calibrated(
    args: &Args,
    path: &Path,
    (iface, mtu): (&str, u16),
    settings: Settings,
) -> Result<Settings, Failure> {
    let calibration = calibrate::file::read(path)?;
    let link = settings.link;
    calibration.about.check(path, iface, link.rate, mtu)?;
    let cpu = cpu(args, calibration.circuits)?;
    Ok(Settings { cpu, ..settings.with_link(calibration.link(link)) })
}

/// The CPU that is promised to channels of an interface.
fn cpu(args: &Args, costs: Option<Costs>) -> Result<Option<CpuSettings>, Failure> {
    let delay = args.cpu_delay.unwrap_or(CpuSettings::DELAY);
    if delay == Span::ZERO || delay > CPU_DELAY_MAX {
        let sentence = format!("--cpu-delay {delay}: the work of a unit may take 1ns to {CPU_DELAY_MAX}");
        return Err(Failure::wrong_use(sentence));
    }
    let share_ppm = args.cpu_share.unwrap_or(CpuSettings::SHARE_PPM);
    let costs = costs.filter(|_| share_ppm > 0);
    Ok(costs.map(|costs| CpuSettings { costs, share_ppm, delay }))
}

fn quota(args: &Args) -> Quota {
    let default = Quota::default();
    let memory = args.memory.map_or(default.memory, Octets::get);
    let user_memory = args.user_memory.map_or(memory / 2, Octets::get).min(memory);
    let channels = usize::from(args.user_channels);
    let connections = args.user_connections.map_or(Quota::connections_for(channels), usize::from);
    let user_reserved = args.user_reserved.map_or(default.user_reserved, |rate| rate.as_bps() / 8);
    let level = args.user_level.unwrap_or(default.level);
    Quota { channels, connections, memory, user_memory, user_reserved, level }
}

fn segment_key(args: &Args) -> Result<SegmentKey, Failure> {
    let in_lab = std::env::var_os("ROTA_LAB").is_some();
    match &args.key {
        Some(path) => SegmentKey::read(path).map_err(Failure::failed),
        None if in_lab => Ok(SegmentKey::lab()),
        None => SegmentKey::read(KEY_FILE.as_ref()).map_err(Failure::failed),
    }
}

fn host_name() -> Result<String, Failure> {
    let name =
        nix::unistd::gethostname().map_err(|error| Failure::failed(format!("no host name: {error}")))?;
    Ok(name.to_string_lossy().chars().take(32).collect())
}
