//! The receiving side of cross traffic, which knows what really came.

use super::Window;
use crate::clock;
use nix::sys::signal::SigSet;
use rota_answer::{Failure, Format, Output};
use rota_driver::signals::ENDS;
use rota_units::{Instant, Span};
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// 1 Gbit/s brings 31 kB meanwhile, which every receive buffer holds.
const LOOK_AGAIN: Duration = Duration::from_micros(250);

/// What `rota load sink --json` prints: payload that arrived, over the window.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, Default)]
pub struct Goodput {
    /// TCP payload a second.
    pub tcp_bps: u64,
    /// UDP payload a second.
    pub udp_bps: u64,
    /// The window.
    pub window_ns: u64,
}

#[derive(Default)]
struct Counters {
    tcp_octets: AtomicU64,
    udp_octets: AtomicU64,
}

impl Counters {
    fn read(&self) -> (u64, u64) {
        (self.tcp_octets.load(Ordering::Relaxed), self.udp_octets.load(Ordering::Relaxed))
    }
}

/// Receives on `port` and prints the goodput of the window.
pub(super) fn run(port: u16, window: Window, format: Format) -> Result<(), Failure> {
    let taken = |what: &str, e: std::io::Error| {
        Failure::failed(format!("cannot listen on {what} port {port}: {e}; choose another with --port"))
    };
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).map_err(|e| taken("TCP", e))?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).map_err(|e| taken("UDP", e))?;
    // Blocked here so that every thread inherits it and only the wait below sees the signal.
    let signals = SigSet::from_iter(ENDS);
    if window.seconds.is_none() {
        signals.thread_block().map_err(Failure::failed)?;
    }
    let counters = Arc::new(Counters::default());
    spawn(&counters, move |counters| count_udp(&socket, counters));
    spawn(&counters, move |counters| {
        for stream in listener.incoming().flatten() {
            spawn(counters, move |counters| count_tcp(stream, counters));
        }
    });
    let start = window.start_at.map_or_else(clock::now, Instant::from_nanos);
    clock::sleep_until(start);
    let before = (clock::now(), counters.read());
    match window.seconds {
        Some(seconds) => clock::sleep_until(start + Span::from_millis(seconds * 1_000)),
        None => {
            signals.wait().map_err(Failure::failed)?;
        }
    }
    let after = (clock::now(), counters.read());
    let window = after.0.since(before.0);
    let rate = |octets: u64| super::bps(octets, window);
    let goodput = Goodput {
        tcp_bps: rate(after.1.0 - before.1.0),
        udp_bps: rate(after.1.1 - before.1.1),
        window_ns: window.as_nanos(),
    };
    let text = match format {
        Format::Json => rota_answer::json::document(&goodput),
        Format::Text => format!(
            "TCP {:.3} Mbit/s, UDP {:.3} Mbit/s of payload in {window}",
            goodput.tcp_bps as f64 / 1e6,
            goodput.udp_bps as f64 / 1e6
        ),
    };
    Output::open(Path::new("-"))?.put(format!("{text}\n").as_bytes())
}

fn spawn(counters: &Arc<Counters>, work: impl FnOnce(&Arc<Counters>) + Send + 'static) {
    let counters = Arc::clone(counters);
    // The threads end with the process: they only count.
    std::thread::spawn(move || work(&counters));
}

/// Looks some thousand times a second instead of waiting: a sleeper on the socket would be woken for each
/// frame, which on a machine that plays a whole LAN costs more than the frame's own way.
fn count_tcp(mut stream: TcpStream, counters: &Counters) {
    let mut buffer = vec![0; 256 << 10];
    if stream.set_nonblocking(true).is_err() {
        return;
    }
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(octets) => {
                counters.tcp_octets.fetch_add(octets as u64, Ordering::Relaxed);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(LOOK_AGAIN),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn count_udp(socket: &UdpSocket, counters: &Counters) {
    let mut buffer = vec![0; 65_536];
    while let Ok(octets) = socket.recv(&mut buffer) {
        counters.udp_octets.fetch_add(octets as u64, Ordering::Relaxed);
    }
}
