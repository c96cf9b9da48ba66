//! The tables, with the columns of the paper's figures beside ours.

use super::Results;
use crate::times::Times;
use crate::trip::TURN;
use rota_answer::outln;
use rota_sim::paper::shipnet::{HOSTS, Host};

/// The fastest host of 1988.
const PC_AT: Host = HOSTS[2];

fn us(ns: u64) -> String {
    format!("{}.{}", ns / 1_000, ns % 1_000 / 100)
}

/// Everything for people.
pub fn print(o: &Results) {
    outln!("SHIPNET's measurements between two station processes, a node in each station, on virtual wires.");
    outln!("The paper's columns are those of the PC/AT (80286, 8 MHz) on a 4 Mbit/s token ring.\n");
    quiet(o);
    transmitters(o);
    loaded(o);
}

fn quiet(o: &Results) {
    outln!("End-to-end delay (paper: figure 5), quiet wire, plain mode; half a round trip, us");
    outln!("octets   rota p50      p99   UDP p50      p99   ratio   rota, free p50   ratio   paper us");
    for (row, paper) in o.latency.iter().zip(PC_AT.end_to_end) {
        outln!(
            "{:>6} {:>10} {:>8} {:>9} {:>8} {:>7.2} {:>16} {:>7.2} {:>10}",
            row.octets,
            us(row.llc.p50_ns / 2),
            us(row.llc.p99_ns / 2),
            us(row.udp.p50_ns / 2),
            us(row.udp.p99_ns / 2),
            row.ratio,
            us(row.llc_free.p50_ns / 2),
            row.ratio_free,
            paper
        );
    }
    outln!("All took turns of {TURN} messages. The threads of rota's programs run on their nodes' CPU (see");
    outln!("stay_near_node in the library); free, as UDP's, wherever the kernel puts them.\n");
}

fn transmitters(o: &Results) {
    outln!("Transmitter, one message at a time to its completion (paper: figures 2, 3, 4, 6, 7, 8)");
    outln!("octets   messages/s  paper   Mbit/s   delay us  paper us   idle %  paper  received/s  idle %");
    for (at, row) in o.directed.iter().enumerate() {
        outln!(
            "{:>6} {:>12} {:>6.0} {:>8.1} {:>10} {:>9} {:>8.1} {:>6.1} {:>11} {:>7.1}",
            row.octets,
            row.messages_per_s,
            PC_AT.packets[at] as f64 / 10.0,
            row.payload_bps as f64 / 1e6,
            us(row.delay_p50_ns),
            PC_AT.delay[at],
            row.idle_permille as f64 / 10.0,
            PC_AT.idle[at] as f64 / 10.0,
            row.received_per_s,
            row.receiver_idle_permille as f64 / 10.0
        );
    }
    outln!(
        "Idle is what a station's program and node leave of one CPU: the transmitter's, then the receiver's."
    );
    outln!("\nThe same to all stations, the sender included");
    outln!("octets   messages/s   of directed   paper   delay us  paper us");
    let broadcast = PC_AT.broadcast.unwrap_or_default();
    for (at, (row, directed)) in o.broadcast.iter().zip(&o.directed).enumerate() {
        outln!(
            "{:>6} {:>12} {:>11.0} % {:>5.0} % {:>10} {:>9}",
            row.octets,
            row.messages_per_s,
            row.messages_per_s as f64 * 100.0 / directed.messages_per_s.max(1) as f64,
            PC_AT.delay[at] as f64 * 100.0 / broadcast[at] as f64,
            us(row.delay_p50_ns),
            broadcast[at]
        );
    }
    let b = &o.batches;
    outln!("\n{} messages a second of {} octets with {} under way;", b.messages_per_s, b.octets, b.window);
    outln!("{} a second reached the other program. These messages have no flow control.\n", b.received_per_s);
}

fn loaded(o: &Results) {
    let l = &o.loaded;
    outln!("Beside a greedy TCP flow, ports of {} Mbit/s, 100 octets, us", l.link_bps / 1_000_000);
    let class = |is_fifo| if is_fifo { "real-time class FIFO" } else { "the ORDINARY class" };
    let (asking, answering) = (class(l.fifo_asking), class(l.fifo_answering));
    outln!("Round trips: the programs that ask had {asking}, those that answer {answering}.");
    outln!("                                        p50        p99      p99.9        max    lost");
    let row = |name: &str, t: &Times| {
        outln!(
            "{name:<34} {:>9} {:>10} {:>10} {:>10} {:>7}",
            us(t.p50_ns),
            us(t.p99_ns),
            us(t.p999_ns),
            us(t.max_ns),
            t.lost
        );
    };
    row("UDP, round trip", &l.udp);
    row("LLC in plain mode, round trip", &l.llc_plain);
    row("LLC, priority 7, token, round trip", &l.llc_priority_7);
    row("UDP, one way", &l.udp_one_way);
    row("reserved channel, one way", &l.channel);
    let of = |ours: &Times, udp: &Times| ours.p99_ns as f64 / udp.p99_ns.max(1) as f64;
    let (priority_7, channel) = (of(&l.llc_priority_7, &l.udp), of(&l.channel, &l.udp_one_way));
    outln!("Of UDP's p99: priority 7 {priority_7:.2} (round trips), the channel {channel:.2} (one way).");
    let past = &l.channel_past_bound;
    outln!(
        "The channel's bound, host slack included, is {} us. Of {} messages {} were read behind it: {} had",
        us(l.channel_bound_ns),
        l.channel.count,
        past.messages,
        past.program_waited
    );
    outln!(
        "reached their station in time (the kernel let the program wait), {} came late because a processor",
        past.host_stood_still
    );
    outln!(
        "stood still for as long (seen by a thread of higher priority), {} without such an excuse.",
        past.unexplained
    );
}
