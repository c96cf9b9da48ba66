//! Both ends of each transport on the loopback interface, started as the benchmark starts them.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

fn begin() -> u64 {
    let clock = nix::time::ClockId::CLOCK_MONOTONIC;
    let now = nix::time::clock_gettime(clock).expect("every Linux has this clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64 + 700_000_000
}

fn start(words: &[&str; 5]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota-bench-peers"));
    command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

fn said(out: Option<ChildStdout>) -> String {
    let mut text = String::new();
    out.expect("it is piped").read_to_string(&mut text).expect("it is text");
    text
}

/// The documents that the counting end and the asking end print of a window of 300 ms.
fn measured(kind: &str, port: u16) -> [String; 2] {
    [("sink", "source", 0), ("echo", "ask", 1)].map(|(there, here, more)| {
        let (at, begin) = (format!("127.0.0.1:{}", port + more), begin().to_string());
        let mut listening = start(&[kind, there, &at, &begin, "300000000"]);
        let mut word = String::new();
        let err = listening.stderr.take().expect("it is piped");
        BufReader::new(err).read_line(&mut word).expect("it says something");
        assert_eq!(word, "ready\n", "{kind} {there}");
        let mut other = start(&[kind, here, &at, &begin, "300000000"]);
        let told = if here == "ask" { said(other.stdout.take()) } else { said(listening.stdout.take()) };
        for child in [&mut listening, &mut other] {
            let _ = child.kill();
            child.wait().expect("it has ended");
        }
        told
    })
}

fn number(document: &str, key: &str) -> u64 {
    let behind = document.split(&format!("\"{key}\":")).nth(1).unwrap_or_else(|| panic!("{key}: {document}"));
    let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

fn both_ends_measure(kind: &str, port: u16) {
    let [stream, trips] = measured(kind, port);
    assert!(number(&stream, "octets") > 1_000_000, "{stream}");
    assert!(number(&trips, "count") > 100 && number(&trips, "p50_ns") > 1_000, "{trips}");
}

#[test]
fn quinn() {
    both_ends_measure("quinn", 17_650);
}

#[test]
fn zenoh() {
    both_ends_measure("zenoh", 17_652);
}

#[test]
fn zeromq() {
    both_ends_measure("zeromq", 17_654);
}
