//! Circuits of the native-mode transport in virtual time.
//!
//! - `circuits` compares what SMART sends again with go-back-N (TRANSPORT-R28, TRANSPORT-R29), and shows how
//!   eight circuits share a bottleneck and what one carries over a line that loses (TRANSPORT-R89,
//!   TRANSPORT-R90, TRANSPORT-R93).
//! - `circuits SEED MESSAGES` carries so many messages over a bad wire (TRANSPORT-R81), in worlds of 100,000
//!   from this seed on, shows how far it is, and prints one row of CSV for each world. It panics where a
//!   message is lost, doubled, reordered or altered.

use rota_sim::circuits::resends::{LossyPath, go_back_n, smart};
use rota_sim::circuits::shared::{Discipline, EIGHT, LOSSY, SharedPlan, Shares, TPDU, aimd_octets, share};
use rota_sim::circuits::{Circuits, Plan};
use rota_wire::FlowControl;
use std::io::Write;
use std::process::ExitCode;

const WORLD: u64 = 100_000;

fn bar(done: u64, all: u64) {
    let tenths = (done * 40 / all.max(1)) as usize;
    eprint!("\r[{}{}] {done} of {all} messages ", "#".repeat(tenths), ".".repeat(40 - tenths));
    let _ = std::io::stderr().flush();
}

/// So many millionths as a percentage.
fn percent(millionths: u64) -> String {
    format!("{}.{:04}", millionths / 10_000, millionths % 10_000)
}

fn resends() {
    const COUNT: u64 = 1_000_000;
    println!("TPDUs sent again, of a hundred; {COUNT} TPDUs, 32 in a round trip, a window of 64\n");
    println!("| loss % | acks lost % | least p/(1-p) | SMART | go-back-N | 32p/(1-p) | slots | its slots |");
    println!("|---|---|---|---|---|---|---|---|");
    for ppm in [1_000, 10_000, 50_000, 100_000u32] {
        for ack_loss_ppm in [0, ppm] {
            let path = LossyPath { loss_ppm: ppm, ack_loss_ppm, slots: 32, window: 64 };
            let least = u64::from(ppm) * 1_000_000 / (1_000_000 - u64::from(ppm));
            let (ours, theirs) = (smart(1996, &path, COUNT, 1), go_back_n(1996, &path, COUNT));
            println!(
                "| {} | {} | {} | {} | {} | {} | {} | {} |",
                percent(u64::from(ppm)),
                percent(u64::from(ack_loss_ppm)),
                percent(least),
                percent(ours.resent),
                percent(theirs.resent),
                percent(32 * least),
                ours.slots,
                theirs.slots,
            );
        }
    }
}

fn row(name: &str, plan: &SharedPlan, shares: &Shares) {
    let fell_back = shares.each.iter().filter(|share| share.flow != plan.flow).count();
    let resent: u64 = shares.each.iter().map(|share| share.resent).sum();
    let kbit = shares.octets() * 8 * 1_000_000 / plan.span.as_nanos();
    println!(
        "| {name} | {kbit} | 0.{:03} | {} | {resent} | {} | {fell_back} |",
        shares.jain().min(999),
        percent(shares.farthest() * 1_000),
        shares.dropped,
    );
}

fn shares() {
    let head = "| kbit/s | Jain (cut) | farthest from the mean % | sent again | no room | took the window |";
    println!("\nEight circuits, {} Mbit/s, 10 ms a way\n", EIGHT.rate.as_bps() / 1_000_000);
    println!("| flow, server {head}\n|---|---|---|---|---|---|---|");
    for (flow, discipline) in [
        (FlowControl::PacketPair, Discipline::Turns),
        (FlowControl::Window, Discipline::Turns),
        (FlowControl::Window, Discipline::OneQueue),
        (FlowControl::PacketPair, Discipline::OneQueue),
    ] {
        let plan = SharedPlan { flow, discipline, ..EIGHT };
        row(&format!("{flow:?}, {discipline:?}"), &plan, &share(1, &plan));
    }
    let formula = aimd_octets(&LOSSY) * 8 * 1_000_000 / LOSSY.span.as_nanos();
    println!(
        "\nOne circuit, 50 Mbit/s, 1 % lost, 20 ms, {TPDU} octets; 1.22 MSS/(RTT sqrt p): {formula} kbit/s\n"
    );
    println!("| flow {head}\n|---|---|---|---|---|---|---|");
    for flow in [FlowControl::PacketPair, FlowControl::Window] {
        let plan = SharedPlan { flow, ..LOSSY };
        row(&format!("{flow:?}"), &plan, &share(1, &plan));
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let &[seed, all] = &numbers[..] else {
        if !words.is_empty() {
            eprintln!("usage: circuits [SEED MESSAGES]");
            return ExitCode::FAILURE;
        }
        resends();
        shares();
        return ExitCode::SUCCESS;
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
