//! The interfaces of a node, and what was given for each.

use super::tunnels::{self, Tunnel};
use super::{Args, Carrier, guardian, settings};
use rota_admission::rtip::{Hold, LevelBounds, Scheduler};
use rota_answer::Failure;
use rota_driver::any::AnyDevice;
use rota_driver::gate::{EgressGate, ROTA_MARK};
use rota_driver::packet::{DeviceOpenError, PacketDevice, PacketOptions, ethernet_mtu};
use rota_driver::tunnel::TunnelDevice;
use rota_lab::link_rate;
use rota_node::{Beside, MediumKind, PORTS_MAX, Settings, gate_frames};
use rota_study::calibrate;
use rota_study::interface::{driver_rate, only_interface};
use rota_units::{BitRate, Octets, Span, parse_octets, parse_span};
use std::path::PathBuf;

/// The values that were given: one for all interfaces, or one for each that is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerPort<T> {
    All(T),
    Each(Vec<(String, T)>),
}

impl<T: Clone> PerPort<T> {
    /// The value that was given for an interface.
    pub fn of(&self, iface: &str) -> Option<T> {
        match self {
            Self::All(value) => Some(value.clone()),
            Self::Each(values) => {
                values.iter().find(|(named, _)| named == iface).map(|(_, value)| value.clone())
            }
        }
    }

    /// An interface that has a value and is none of these.
    fn stranger(&self, ifaces: &[String]) -> Option<&str> {
        let Self::Each(values) = self else { return None };
        values.iter().map(|(iface, _)| iface.as_str()).find(|iface| !ifaces.iter().any(|of| of == iface))
    }
}

/// Reads `VALUE`, or `eth0=VALUE,eth1=VALUE`.
fn per_port<T>(
    text: &str,
    what: &str,
    examples: [&str; 2],
    one: impl Fn(&str) -> Result<T, String>,
) -> Result<PerPort<T>, String> {
    if !text.contains('=') {
        return one(text).map(PerPort::All);
    }
    let mut values: Vec<(String, T)> = Vec::new();
    for part in text.split(',') {
        let (iface, value) =
            part.split_once('=').filter(|(iface, _)| !iface.is_empty()).ok_or_else(|| {
                let [first, second] = examples;
                format!("'{part}' names no interface and {what}; write eth0={first},eth1={second}")
            })?;
        if values.iter().any(|(named, _)| named == iface) {
            return Err(format!("interface {iface} has a second {what}"));
        }
        values.push((iface.to_owned(), one(value)?));
    }
    Ok(PerPort::Each(values))
}

/// Reads `100mbit`, or `eth0=100mbit,eth1=1gbit`.
pub fn rates(text: &str) -> Result<PerPort<BitRate>, String> {
    per_port(text, "rate", ["100mbit", "1gbit"], link_rate)
}

/// Reads `150kB`, or `eth0=150kB,eth1=1MB`.
pub fn port_queues(text: &str) -> Result<PerPort<Octets>, String> {
    per_port(text, "port queue", ["150kB", "1MB"], |text| {
        parse_octets(text).map_err(|error| error.to_string())
    })
}

/// Reads `10ms`, or `eth0=10ms,eth1=20ms`.
pub fn cycles(text: &str) -> Result<PerPort<Span>, String> {
    per_port(text, "cycle", ["10ms", "20ms"], |text| parse_span(text).map_err(|error| error.to_string()))
}

/// Reads `14`, or `eth0=14,eth1=40`.
pub fn sizes(text: &str) -> Result<PerPort<u16>, String> {
    per_port(text, "number of stations", ["14", "40"], |text| {
        text.parse().map_err(|_| format!("'{text}' is no number of stations; write it like 14"))
    })
}

/// Reads `link`, or `eth0=rether,eth1=link`.
pub fn media(text: &str) -> Result<PerPort<MediumKind>, String> {
    per_port(text, "medium", ["rether", "link"], |name| match name {
        "rether" => Ok(MediumKind::Rether),
        "link" => Ok(MediumKind::Link),
        other => Err(format!("'{other}' is no medium; there are rether and link")),
    })
}

/// Reads `rcsp`, or `eth1=rcsp,eth2=delay-edd`.
pub fn schedulers(text: &str) -> Result<PerPort<Scheduler>, String> {
    per_port(text, "discipline", ["rcsp", "delay-edd"], |name| {
        Scheduler::of(name).map_err(|bad| format!("'{name}': {bad}"))
    })
}

/// Reads `3ms/6ms`, or `eth1=3ms/6ms,eth2=10ms`.
pub fn levels(text: &str) -> Result<PerPort<LevelBounds>, String> {
    per_port(text, "bounds of levels", ["3ms/6ms", "10ms"], |text| {
        let bounds: Result<Vec<Span>, _> = text.split('/').map(parse_span).collect();
        let bounds = bounds.map_err(|error| error.to_string())?;
        LevelBounds::of(&bounds).map_err(|bad| format!("'{text}': {bad}"))
    })
}

/// Reads `rate-jitter`, or `eth1=rate-jitter,eth2=delay-jitter`.
pub fn regulators(text: &str) -> Result<PerPort<Hold>, String> {
    per_port(text, "regulator", ["rate-jitter", "delay-jitter"], |name| {
        Hold::of(name).map_err(|bad| format!("'{name}': {bad}"))
    })
}

/// Reads `FILE`, or `eth0=FILE,eth1=FILE`. A path may have an equals sign behind its first slash.
pub fn calibrations(text: &str) -> Result<PerPort<PathBuf>, String> {
    let file = |path: &str| match path {
        "" => Err("a calibration is a file of 'rota calibrate'; its name is missing".to_owned()),
        path => Ok(PathBuf::from(path)),
    };
    match text.split_once('=') {
        Some((iface, _)) if iface.contains('/') => file(text).map(PerPort::All),
        _ => per_port(text, "calibration", ["FILE", "FILE"], file),
    }
}

/// Two files that were measured on this node, each of them on the interface of the other one.
///
/// # Errors
/// They were mixed up, or one of them cannot be read.
fn check_calibrations(args: &Args) -> Result<(), Failure> {
    let Some(PerPort::Each(files)) = &args.calibration else { return Ok(()) };
    let measured = |(iface, path): &(String, PathBuf)| {
        Ok((iface.clone(), path.clone(), calibrate::file::read(path)?.about.interface))
    };
    let all = files.iter().map(measured).collect::<Result<Vec<_>, Failure>>()?;
    for (at, (one, path, of_one)) in all.iter().enumerate() {
        if all[..at].iter().any(|(other, _, of_other)| of_one == other && of_other == one) {
            return Err(Failure::wrong_use(format!(
                "{}: interface: it was measured on {of_one}, and the file for {of_one} on {one}; \
                 exchange the two",
                path.display()
            )));
        }
    }
    Ok(())
}

/// A port of a node, before it is opened.
pub type Opened = Beside<AnyDevice, Option<EgressGate>>;

/// The interfaces of the node, each once and each there, and the names of its tunnels behind them.
///
/// # Errors
/// They cannot be those of a node.
pub fn interfaces(args: &Args) -> Result<Vec<String>, Failure> {
    let mut ifaces = args.iface.clone();
    if ifaces.is_empty() && args.tunnel.is_empty() {
        ifaces.push(only_interface("--iface")?);
    }
    if ifaces.len() > PORTS_MAX {
        let sentence = format!("a node has at most {PORTS_MAX} interfaces; {} were given", ifaces.len());
        return Err(Failure::wrong_use(sentence));
    }
    for (at, iface) in ifaces.iter().enumerate() {
        if ifaces[..at].contains(iface) {
            return Err(Failure::wrong_use(format!("interface {iface} was given twice; give each once")));
        }
        // A mistyped interface is said before anything that is the matter with files.
        if nix::net::if_::if_nametoindex(iface.as_str()).is_err() {
            return Err(Failure::failed(DeviceOpenError::NoSuchInterface(iface.clone()).to_string()));
        }
    }
    tunnels::check(&args.tunnel, ifaces.len())?;
    ifaces.extend(args.tunnel.iter().map(|tunnel| tunnel.name.clone()));
    let given = [
        ("rate", args.rate.as_ref().and_then(|values| values.stranger(&ifaces))),
        ("port queue", args.port_queue.stranger(&ifaces)),
        ("cycle", args.trt.as_ref().and_then(|values| values.stranger(&ifaces))),
        ("number of stations", args.stations.as_ref().and_then(|values| values.stranger(&ifaces))),
        ("medium", args.medium.as_ref().and_then(|values| values.stranger(&ifaces))),
        ("discipline", args.discipline.as_ref().and_then(|values| values.stranger(&ifaces))),
        ("regulator", args.regulator.as_ref().and_then(|values| values.stranger(&ifaces))),
        ("bound of levels", args.levels.as_ref().and_then(|values| values.stranger(&ifaces))),
        ("calibration", args.calibration.as_ref().and_then(|values| values.stranger(&ifaces))),
        ("partition", super::partitions::stranger(&args.partition, &ifaces)),
    ];
    if let Some((what, iface)) = given.into_iter().find_map(|(what, iface)| Some((what, iface?))) {
        let sentence = format!("a {what} was given for {iface}, which is no interface of this node");
        return Err(Failure::wrong_use(sentence));
    }
    check_calibrations(args)?;
    Ok(ifaces)
}

/// Claims the interfaces, with the settings of each. Wrong settings of any are named before the first one is
/// claimed.
///
/// # Errors
/// Settings that cannot be right, or an interface that cannot be had.
pub fn claim(args: &Args, ifaces: &[String]) -> Result<Vec<Opened>, Failure> {
    let mut planned = Vec::new();
    for (at, iface) in ifaces.iter().enumerate() {
        let tunnel = args.tunnel.iter().find(|tunnel| tunnel.name == *iface);
        let rate = match args.rate.as_ref().and_then(|rates| rates.of(iface)) {
            Some(rate) => rate,
            None if tunnel.is_some() => return Err(without_rate(iface)),
            None => driver_rate(iface)?,
        };
        let mut settings = settings(args, iface, rate, carrier(args, iface, tunnel)?)?;
        // A station without Rota says nowhere on which segment it is.
        if at > 0 {
            settings.llc.peer_macs.clear();
        }
        planned.push((iface, tunnel, rate, settings));
    }
    let claimed = planned.into_iter().map(|(iface, tunnel, rate, settings)| {
        if let Some(tunnel) = tunnel {
            return open_tunnel(args, tunnel, settings);
        }
        let mut options = PacketOptions::new(iface, args.ethertype, ROTA_MARK);
        options.rate = Some(rate);
        options.llc = settings.llc.enabled;
        let device = PacketDevice::open_with(&options).map_err(Failure::failed)?;
        let gate = Some(EgressGate::new(iface, gate_frames(&settings)).map_err(Failure::failed)?);
        let guardian = Some(guardian::spec(args, iface, rate)?);
        let device = AnyDevice::Packet(Box::new(device));
        Ok(Beside { interface: iface.clone(), settings, guardian, device, gate })
    });
    claimed.collect()
}

/// Nobody can ask a network what it carries.
fn without_rate(name: &str) -> Failure {
    Failure::wrong_use(format!(
        "tunnel {name} has no rate; state with --rate {name}=10mbit what may be sent through it"
    ))
}

fn carrier(args: &Args, iface: &str, tunnel: Option<&Tunnel>) -> Result<Carrier, Failure> {
    let Some(Tunnel { ends, packet, .. }) = tunnel else {
        return Ok(Carrier { mtu: ethernet_mtu(iface).map_err(Failure::failed)?, headers: None });
    };
    if matches!(&args.medium, Some(each @ PerPort::Each(_)) if each.of(iface).is_some()) {
        let sentence = format!("{iface} is a tunnel, whose medium is always a link; state none for it");
        return Err(Failure::wrong_use(sentence));
    }
    let mtu = TunnelDevice::mtu_at(*ends, *packet).map_err(|error| tunnels::failure(iface, &error))?;
    Ok(Carrier { mtu, headers: Some(ends.header_octets()) })
}

/// A tunnel has no gate, because the frames of its host do not go through it, and no guardian: its peer
/// notices the death of its node by its silence.
fn open_tunnel(args: &Args, tunnel: &Tunnel, settings: Settings) -> Result<Opened, Failure> {
    let Tunnel { name, ends, packet } = tunnel;
    let device = TunnelDevice::open(*ends, *packet, args.ethertype);
    let device = AnyDevice::Tunnel(Box::new(device.map_err(|error| tunnels::failure(name, &error))?));
    Ok(Beside { interface: name.clone(), settings, guardian: None, device, gate: None })
}

/// The interfaces and their rates, for the first line of the log.
pub fn sentence(first: &str, settings: &Settings, others: &[Opened]) -> String {
    let others = others.iter().map(|other| (&*other.interface, &other.settings));
    let all = std::iter::once((first, settings)).chain(others);
    let sentence = |(iface, settings): (&str, &Settings)| {
        let medium = match settings.medium.medium {
            _ if settings.withdrawn => ", a tunnel without a guarantee",
            MediumKind::Link => ", a link",
            MediumKind::Rether => "",
        };
        format!("{iface} at {}{medium}", settings.link.rate)
    };
    all.map(sentence).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_medium_is_one_for_all_or_one_for_each_interface() {
        assert_eq!(media("link").map(|media| media.of("eth7")), Ok(Some(MediumKind::Link)));
        let each = media("eth0=rether,eth1=link").expect("two media");
        assert_eq!(
            ["eth0", "eth1", "eth2"].map(|iface| each.of(iface)),
            [Some(MediumKind::Rether), Some(MediumKind::Link), None]
        );
        for (wrong, why) in
            [("cable", "no medium"), ("eth0=link,eth0=link", "a second medium"), ("eth0=", "no medium")]
        {
            assert!(media(wrong).is_err_and(|error| error.contains(why)), "{wrong}");
        }
    }

    #[test]
    fn an_unknown_discipline_or_regulator_is_told_those_that_there_are() {
        let each = schedulers("eth1=rcsp,eth2=jitter-edd").expect("two");
        assert_eq!(each.of("eth2"), Some(Scheduler::JitterEdd));
        assert_eq!(regulators("none").map(|all| all.of("eth7")), Ok(Some(Hold::None)));
        let said = schedulers("eth1=fifo").expect_err("no discipline");
        assert!(said.contains("'fifo': no such discipline; there are delay-edd"), "{said}");
        let bounds = levels("eth1=3ms/6ms").expect("two levels").of("eth1").expect("its own");
        assert_eq!(bounds.stated(), [3, 6].map(Span::from_millis));
        let said = levels("6ms/3ms").expect_err("they fall");
        assert!(said.contains("each longer than the one before"), "{said}");
        let said = regulators("rate").expect_err("no regulator");
        assert!(said.contains("'rate': no such regulator; there are none, rate-jitter"), "{said}");
    }

    #[test]
    fn a_calibration_is_one_for_all_or_one_for_each_interface() {
        let file = |path: &str| Some(PathBuf::from(path));
        assert_eq!(calibrations("a.toml").map(|all| all.of("eth7")), Ok(file("a.toml")));
        assert_eq!(calibrations("/x/a=b,c").map(|all| all.of("eth7")), Ok(file("/x/a=b,c")));
        let each = calibrations("eth0=a.toml,eth1=/x/b=c").expect("two files");
        let of = ["eth0", "eth1", "eth2"].map(|iface| each.of(iface));
        assert_eq!(of, [file("a.toml"), file("/x/b=c"), None]);
        for (wrong, why) in [
            ("eth0=a,eth0=b", "a second calibration"),
            ("eth0=a,b", "names no interface"),
            ("eth0=", "missing"),
            ("", "missing"),
        ] {
            assert!(calibrations(wrong).is_err_and(|error| error.contains(why)), "{wrong}");
        }
    }

    #[test]
    fn a_rate_is_one_for_all_or_one_for_each_interface() {
        let rate = BitRate::from_mbit;
        assert_eq!(rates("100mbit").map(|rates| rates.of("eth7")), Ok(Some(rate(100))));
        let each = rates("eth0=100mbit,eth1=1gbit").expect("two rates");
        assert_eq!(
            ["eth0", "eth1", "eth2"].map(|iface| each.of(iface)),
            [Some(rate(100)), Some(rate(1_000)), None]
        );
        for wrong in
            ["eth0=100mbit,1gbit", "=100mbit", "eth0=", "eth0=0mbit", "eth0=1mbit,eth0=2mbit", "eth0=1mbit,"]
        {
            assert!(rates(wrong).is_err(), "{wrong}");
        }
    }
}
