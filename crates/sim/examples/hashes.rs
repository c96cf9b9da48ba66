//! The hashes of the random worlds in `verify/hashes.csv`, by a program that needs the simulator alone. It
//! prints the lines of that table; `verify/hashes.sh` has the scenarios as well.

use rota_sim::Hashes;
use rota_sim::sweep::{self, Campaign};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Worlds a line of the table.
const WORLDS: u64 = 200;
/// Lines for each set of timers.
const LINES: u64 = 5;

fn main() {
    println!("world,events,deliveries,messages");
    for (name, campaign) in [("product", Campaign::Product), ("proven", Campaign::Proven)] {
        for from in (0..LINES).map(|line| line * WORLDS) {
            let Hashes { events, deliveries, messages } = line(campaign, from);
            println!("{name} {from},{events},{deliveries},{messages}");
        }
    }
}

/// The sum of the hashes of so many worlds, from this seed on.
fn line(campaign: Campaign, from: u64) -> Hashes {
    let (next, sum) = (AtomicU64::new(from), Mutex::new(Hashes::default()));
    let work = || {
        while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < from + WORLDS)
        {
            let outcome = sweep::run(seed, &campaign.scenario(seed));
            if let Ok(mut sum) = sum.lock() {
                sum.add(seed, &outcome.hashes);
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| _ = scope.spawn(work));
    });
    sum.into_inner().unwrap_or_default()
}
