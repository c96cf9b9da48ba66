//! `rota calibrate`: what a frame, a visit and a hop cost on an interface, for admission and the simulator.

mod circuits;
pub mod file;
mod fit;
mod lab;
mod measure;
mod report;
mod station;

use crate::interface::{driver_rate, only_interface};
use file::{About, Calibration, Medium};
use fit::Spread;
use measure::{Bench, Effort};
use rota_admission::SegmentParams;
use rota_answer::{Exit, Failure, Format};
use rota_driver::clock::Sandwich;
use rota_driver::realtime::{Realtime, Wish};
use rota_lab::link_rate;
use rota_units::{BitRate, Instant, Span, parse_span};
use rota_wire::{Kind, MacAddr};
use station::Station;
use std::path::{Path, PathBuf};

/// Arguments of `rota calibrate`.
#[derive(clap::Args)]
#[command(after_help = "\
Example: rota calibrate --interface eth0 --echo      (on one station)
         rota calibrate --interface eth0             (on another, with no node running there)
         rota calibrate --lab --rate 100mbit         (two namespaces of this machine)
         rota node --calibration FILE                (the same file on all stations)")]
pub struct Args {
    /// The Ethernet interface; may be left out where there is only one
    #[arg(long, visible_alias = "iface", value_name = "IFACE")]
    interface: Option<String>,
    /// The link's rate, such as 100mbit; the driver's figure otherwise
    #[arg(long, env = "ROTA_RATE", value_parser = link_rate)]
    rate: Option<BitRate>,
    /// Answer another station's measurement of a hop, until Ctrl-C
    #[arg(long, conflicts_with_all = ["lab", "peer", "out"])]
    echo: bool,
    /// Which station answers; without it the first that does
    #[arg(long, value_name = "MAC", value_parser = mac)]
    peer: Option<MacAddr>,
    /// Measure between two namespaces of this machine
    #[arg(long, conflicts_with_all = ["interface", "peer"])]
    lab: bool,
    /// How long to measure, 1 s to 10 min
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    duration: Span,
    /// The hops that the nodes of a lab measured: samples, median, p99 and maximum in nanoseconds
    #[arg(long, hide = true, value_parser = node_hop)]
    node_hop: Option<Spread>,
    /// The file of the result [default: /var/lib/rota/calibration-IFACE.toml, or below ~/.local/state]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

fn mac(text: &str) -> Result<MacAddr, String> {
    let wrong = || format!("'{text}' is no hardware address, such as 02:52:4f:54:41:02");
    let mut octets = [0; 6];
    let mut parts = text.split(':');
    for octet in &mut octets {
        let part = parts.next().filter(|part| part.len() == 2).ok_or_else(wrong)?;
        *octet = u8::from_str_radix(part, 16).map_err(|_| wrong())?;
    }
    if parts.next().is_some() || octets[0] & 1 == 1 { Err(wrong()) } else { Ok(MacAddr(octets)) }
}

fn duration(text: &str) -> Result<Span, String> {
    let span = parse_span(text).map_err(|error| error.to_string())?;
    let sound = (Span::from_millis(1_000)..=Span::from_millis(600_000)).contains(&span);
    if sound { Ok(span) } else { Err(format!("{span} is no time to measure; 1s to 10min is, such as 10s")) }
}

fn node_hop(text: &str) -> Result<Spread, String> {
    let numbers: Vec<u64> = text.split(',').filter_map(|part| part.parse().ok()).collect();
    let [samples, p50, p99, max] = numbers[..] else { return Err("wants four numbers".into()) };
    let ns = Span::from_nanos;
    // Nodes keep no p90 and no p99.9: the next percentile above stands for each.
    Ok(Spread { samples, p50: ns(p50), p90: ns(p99), p99: ns(p99), p999: ns(max), max: ns(max) })
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    if args.lab {
        return lab::run(args, format);
    }
    let interface = match &args.interface {
        Some(interface) => interface.clone(),
        None => only_interface("--interface")?,
    };
    if args.echo {
        return echo(&interface, args.rate);
    }
    let in_lab = std::env::var_os("ROTA_LAB").is_some();
    if nix::net::if_::if_nametoindex(interface.as_str()).is_err() {
        return Err(Failure::failed(format!("there is no interface {interface}; 'ip link' lists them")));
    }
    let rate = match args.rate {
        Some(rate) => rate,
        None => driver_rate(&interface)?,
    };
    // A device behind the interface is what a virtual one lacks.
    let is_real = !in_lab && Path::new(&format!("/sys/class/net/{interface}/device")).exists();
    let medium = if is_real { Medium::Interface } else { Medium::Virtual };
    // Asked before ten seconds of measuring, not after.
    let out = args.out.clone().unwrap_or_else(|| default_place(&interface));
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::failed(format!("cannot make {}: {error}", folder.display())))?;
    let measure = || measure(args, interface.clone(), rate, medium);
    // A thread of its own, so that it may have what a node's data thread has.
    let calibration = std::thread::scope(|scope| scope.spawn(measure).join())
        .map_err(|_| Failure::failed("the measuring thread ended"))??;
    std::fs::write(&out, calibration.text())
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", out.display())))?;
    report::print(&calibration, &out, format);
    Ok(Exit::Done)
}

fn measure(args: &Args, interface: String, rate: BitRate, medium: Medium) -> Result<Calibration, Failure> {
    let scheduling = Realtime::ask(Wish::all()).to_string();
    let mut station = Station::open(&interface, Some(rate))?;
    let peer = station.find(args.peer)?;
    if let (Some(wanted), None) = (args.peer, peer) {
        let sentence =
            format!("{wanted} does not answer; run 'rota calibrate --echo' there, on the same segment");
        return Err(Failure::failed(sentence));
    }
    // A switch drops what comes from where it would go to, so that nobody is disturbed.
    let to = peer.unwrap_or(station.mac());
    let params = SegmentParams::with_framing(rate, station.framing(), 2);
    let effort = Effort { duration: args.duration };
    let (date, mtu) = (utc(Sandwich::take().real_ns), Some(station.framing().mtu));
    let about = About { interface, rate, mtu, medium, date, scheduling };
    let node_hop = args.node_hop;
    Bench { station, to, peer, params, effort, node_hop }.run(about)
}

/// Sends tokens back until the program is ended.
fn echo(interface: &str, rate: Option<BitRate>) -> Result<Exit, Failure> {
    let scheduling = Realtime::ask(Wish::all());
    let mut station = Station::open(interface, rate)?;
    eprintln!("answering on {interface} as {}; {scheduling}; Ctrl-C ends it", station.mac());
    loop {
        if let Some(heard) = station.hear(Instant::FAR)?
            && matches!(heard.kind, Kind::Token | Kind::Announce)
        {
            station.answer(&heard)?;
        }
    }
}

/// `/var/lib/rota` for root, else where the user's programs keep their state.
fn default_place(interface: &str) -> PathBuf {
    let name = format!("calibration-{interface}.toml");
    if nix::unistd::geteuid().is_root() {
        return Path::new("/var/lib/rota").join(name);
    }
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/state"));
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    state.or_else(home).unwrap_or_default().join("rota").join(name)
}

/// Wall time as text, to the second (days to a date by the civil calendar).
fn utc(real_ns: u64) -> String {
    let seconds = real_ns / 1_000_000_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March have their leap day at the end.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let in_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    let date = in_year - (153 * month + 2) / 5 + 1;
    let (year, month) =
        if month < 10 { (year + era * 400, month + 3) } else { (year + era * 400 + 1, month - 9) };
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_civil() {
        let of = |seconds: u64| utc(seconds * 1_000_000_000);
        assert_eq!(of(0), "1970-01-01T00:00:00Z");
        assert_eq!(of(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(of(1_795_219_199), "2026-11-20T23:59:59Z");
    }

    #[test]
    fn addresses_and_times_of_nonsense_are_refused() {
        assert_eq!(mac("02:52:4f:54:41:02"), Ok(MacAddr([2, 0x52, 0x4f, 0x54, 0x41, 2])));
        for bad in ["", "02:52:4f:54:41", "02:52:4f:54:41:02:03", "zz:52:4f:54:41:02", "ff:ff:ff:ff:ff:ff"] {
            assert!(mac(bad).is_err(), "{bad}");
        }
        assert!(duration("999ms").is_err() && duration("601s").is_err() && duration("10").is_err());
    }
}
