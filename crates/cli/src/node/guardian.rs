//! `rota node --role guardian`: the process that sends a node's last will. The node starts it.

use super::Args;
use clap::ValueEnum as _;
use rota_answer::{Exit, Failure, put_error_line};
use rota_driver::gate::ROTA_MARK;
use rota_driver::guardian::{Spoken, Ward, watch, will_socket};
use rota_node::log::LevelFilter;
use rota_node::{GuardianSpec, warning};
use rota_units::BitRate;
use std::ffi::OsString;
use std::os::fd::AsFd;

/// How the node starts it.
///
/// # Errors
/// The interface cannot be sent to.
pub fn spec(args: &Args, iface: &str, rate: BitRate) -> Result<GuardianSpec, Failure> {
    let socket = will_socket(iface, ROTA_MARK).map_err(Failure::failed)?;
    let rate = format!("{}bit", rate.as_bps());
    let part_of = std::process::id().to_string();
    let words = ["node", "--role", "guardian", "--part-of", &part_of, "--iface", iface, "--rate", &rate];
    let mut words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let level = args.log.to_possible_value();
    words.extend(level.iter().flat_map(|level| ["--log".into(), level.get_name().into()]));
    words.extend(args.no_realtime.then(|| OsString::from("--no-realtime")));
    // The path may have another program by the time a guardian is started anew.
    Ok(GuardianSpec { program: "/proc/self/exe".into(), args: words, socket })
}

/// Runs it.
///
/// # Errors
/// It was started by hand, and has no node to watch.
pub fn run(args: &Args) -> Result<Exit, Failure> {
    let (Some(process), Some(iface)) = (args.part_of, args.iface.first().cloned()) else {
        let sentence = "a guardian is a part of a node, which starts it; start the node with 'rota node'";
        return Err(Failure::wrong_use(sentence));
    };
    let rate = args.rate.as_ref().and_then(|rates| rates.of(&iface));
    let ward = Ward { process, iface, rate, realtime: !args.no_realtime };
    let watched = watch(&ward, std::io::stdin().as_fd(), std::io::stdout().as_fd());
    let spoken = watched.map_err(|error| {
        Failure::failed(format!("a guardian of node {process} cannot watch it and ends: {error}"))
    })?;
    let told = match spoken {
        Spoken::Nothing => return Ok(Exit::Done),
        Spoken::Will(after) => format!("its last will was sent {after} later"),
        Spoken::Busy => {
            format!("its last will was not sent, because {} was not empty within 400 ms", ward.iface)
        }
        Spoken::Failed(errno) => format!("its last will could not be sent: {}", errno.desc()),
    };
    // A node has two guardians. Its standard error may have nobody who reads it: neither waits for that.
    let who = format!("guardian {}: the node, process {process}, has died", std::process::id());
    if LevelFilter::from(args.log) >= LevelFilter::WARN {
        put_error_line(&warning(&format!("{who}; {told}")));
    }
    Ok(Exit::Done)
}
