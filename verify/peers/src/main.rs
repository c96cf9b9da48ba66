//! Ends of streams and of round trips over quinn, Zenoh and ZeroMQ, for `rota bench transport --peers`:
//! `rota-peers KIND ROLE ADDRESS BEGIN WINDOW`, the words of `rota bench transport-end`. The times are in
//! nanoseconds, the first of CLOCK_MONOTONIC.

mod quic;
mod zenoh_peer;
mod zeromq_peer;

use std::net::SocketAddrV4;
use std::time::Duration;

/// Octets that are handed over at once, and of a message where a transport has messages.
pub const CHUNK: usize = 65_536;
/// Octets of a question and of its answer.
pub const QUESTION: usize = 64;

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The measured time, in nanoseconds of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub begin: u64,
    pub end: u64,
}

/// The order of one end.
pub struct Order {
    pub at: SocketAddrV4,
    pub window: Window,
}

pub fn now() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("Linux has this clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

impl Window {
    pub fn is_over(self) -> bool {
        now() >= self.end
    }

    pub fn holds(self, at: u64) -> bool {
        (self.begin..self.end).contains(&at)
    }

    /// Until its end, and then a little longer.
    pub fn left(self) -> Duration {
        Duration::from_nanos((self.end + 20_000_000).saturating_sub(now()))
    }

    /// Until its begin.
    pub async fn begins(self) {
        tokio::time::sleep(Duration::from_nanos(self.begin.saturating_sub(now()))).await;
    }
}

/// The first word of an end that listens.
pub fn say_ready() {
    eprintln!("ready");
}

/// What a sink has counted.
pub fn say_count(octets: u64) {
    println!("{{\"octets\":{octets}}}");
}

/// How long answers took, as `rota` reads it.
pub fn say_times(mut took: Vec<u64>) {
    took.sort_unstable();
    let at = |share: f64| {
        let place = (took.len() as f64 * share).ceil() as usize;
        took.get(place.max(1) - 1).copied().unwrap_or(0)
    };
    let (half, most, nearly, all) = (at(0.5), at(0.99), at(0.999), at(1.0));
    let count = took.len();
    print!("{{\"p50_ns\":{half},\"p99_ns\":{most},\"p999_ns\":{nearly},");
    println!("\"max_ns\":{all},\"count\":{count},\"lost\":0}}");
}

/// Asks in the window, one question at a time; the first one opens what must be opened. Each is answered, or
/// the window is over.
pub async fn ask<F: Future<Output = Result<(), Failure>>>(
    window: Window,
    mut once: impl FnMut() -> F,
) -> Result<(), Failure> {
    let mut took = Vec::new();
    let asking = async {
        once().await?;
        window.begins().await;
        while !window.is_over() {
            let sent = now();
            once().await?;
            took.push(now() - sent);
        }
        Ok::<_, Failure>(())
    };
    // A question that waits at the end of the window has no time.
    if let Ok(ended) = tokio::time::timeout(window.left(), asking).await {
        ended?;
    }
    say_times(took);
    Ok(())
}

fn parse(words: &[String]) -> Option<(&str, &str, Order)> {
    let [kind, role, at, begin, window] = words else { return None };
    let begin = begin.parse().ok()?;
    let end = window.parse::<u64>().ok()?.checked_add(begin)?;
    Some((kind, role, Order { at: at.parse().ok()?, window: Window { begin, end } }))
}

#[tokio::main]
async fn main() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((kind, role, order)) = parse(&words) else {
        eprintln!("rota-peers quinn|zenoh|zeromq sink|source|echo|ask ADDRESS BEGIN WINDOW");
        return 2.into();
    };
    let ended = match kind {
        "quinn" => quic::run(role, &order).await,
        "zenoh" => zenoh_peer::run(role, &order).await,
        "zeromq" => zeromq_peer::run(role, &order).await,
        _ => Err(format!("'{kind}' is no transport of this program").into()),
    };
    match ended {
        Ok(()) => 0.into(),
        Err(error) => {
            eprintln!("rota-peers: {error}");
            1.into()
        }
    }
}
