//! One station of the bare ring, as a process of its own: same scheduling class and CPU as a node asks for.

use crate::times::{Record, Times};
use rota_answer::{Failure, outln};
use rota_driver::bare_ring::bare_ring_station;
use rota_driver::realtime::{Realtime, Wish};
use serde::{Deserialize, Serialize};

/// Arguments of the hidden `rota bench bare`.
#[derive(clap::Args)]
pub struct Args {
    /// The station's interface
    #[arg(long, default_value = "eth0")]
    iface: String,
    /// The next station's number
    #[arg(long)]
    next: u8,
    /// How many stations
    #[arg(long)]
    stations: u8,
    /// How often the token goes round; only for the first station
    #[arg(long)]
    laps: Option<usize>,
}

/// A hop of the bare ring: a lap's time shared among its hops.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct BareHop {
    /// The median.
    pub p50_ns: u64,
    /// One in a hundred is slower.
    pub p99_ns: u64,
    /// The slowest.
    pub max_ns: u64,
    /// How many laps were measured.
    pub laps: u64,
}

/// Runs the station; the first one prints what it measured.
pub fn run(args: &Args) -> Result<(), Failure> {
    let _ = Realtime::ask(Wish::all());
    let next = rota_lab::mac(0, args.next);
    let laps = args.laps.unwrap_or(0);
    let times = bare_ring_station(&args.iface, next, args.laps.is_some(), laps).map_err(Failure::failed)?;
    if args.laps.is_none() {
        return Ok(());
    }
    let mut hops = Record::default();
    let stations = u64::from(args.stations.max(1));
    times.iter().for_each(|time| hops.note(Some(time.div_down(stations))));
    let Times { p50_ns, p99_ns, max_ns, count: laps, .. } = hops.sum_up();
    let hop = BareHop { p50_ns, p99_ns, max_ns, laps };
    outln!("{}", serde_json::to_string(&hop).map_err(Failure::failed)?);
    Ok(())
}
