//! The long run of circuits on a bad wire (TRANSPORT-R81): `circuits SEED MESSAGES` carries so many messages
//! in worlds of 100,000 from this seed on, shows how far it is, and prints one row of CSV for each world. It
//! panics where a message is lost, doubled, reordered or altered.

use rota_sim::circuits::{Circuits, Plan};
use std::io::Write;
use std::process::ExitCode;

const WORLD: u64 = 100_000;

fn bar(done: u64, all: u64) {
    let tenths = (done * 40 / all.max(1)) as usize;
    eprint!("\r[{}{}] {done} of {all} messages ", "#".repeat(tenths), ".".repeat(40 - tenths));
    let _ = std::io::stderr().flush();
}

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let &[seed, all] = &numbers[..] else {
        eprintln!("usage: circuits SEED MESSAGES");
        return ExitCode::FAILURE;
    };
    println!(
        "seed,messages,doubts,circuits,finished,stopped,broken,resent,lost,doubled,late,altered,refused,\
         sender_deaths,receiver_deaths,virtual_ms,hash"
    );
    let mut done = 0;
    for seed in seed..seed + all.div_ceil(WORLD) {
        let messages = WORLD.min(all - done);
        let mut world = Circuits::new(seed, Plan::all(messages));
        while world.step(100_000) {
            bar(done + world.seen().taken, all);
        }
        let seen = world.seen();
        assert_eq!(seen.taken, messages);
        done += messages;
        bar(done, all);
        let [lost, doubled, late, altered] = seen.faults;
        println!(
            "{seed},{messages},{},{},{},{},{},{},{lost},{doubled},{late},{altered},{},{},{},{},{}",
            seen.doubts,
            seen.circuits,
            seen.finished,
            seen.stopped,
            seen.broken,
            seen.resent,
            seen.refused,
            seen.deaths[0],
            seen.deaths[1],
            seen.took.as_nanos() / 1_000_000,
            seen.hash
        );
    }
    eprintln!();
    ExitCode::SUCCESS
}
