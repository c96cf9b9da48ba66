//! The sending side of cross traffic.

use super::{Handed, Window};
use crate::clock;
use rota_answer::{Ends, Failure};
use rota_units::{BitRate, Instant, Octets, Span};
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};

/// A full frame: 1,500 octets of IP less the headers of IP and UDP.
const DATAGRAM_OCTETS: usize = 1_472;
/// IP and UDP headers, Ethernet header and checksum, preamble and gap.
const DATAGRAM_OVERHEAD: u64 = 28 + 18 + 20;
const TCP_CHUNK: usize = 16 << 10;
/// How long a sink may take to appear.
const CONNECT_PATIENCE: Span = Span::from_millis(3_000);
const RETRY_GAP: Span = Span::from_millis(20);

/// Paces octets at a rate by absolute deadlines; without a rate it never waits.
struct Pace {
    rate: Option<BitRate>,
    start: Instant,
    end: Instant,
    sent: Octets,
    /// Without an end of its own the window ends with Ctrl-C.
    ends: Option<Ends>,
}

impl Pace {
    fn begin(rate: Option<BitRate>, window: Window) -> Result<Self, Failure> {
        let ends = if window.seconds.is_none() { Some(Ends::catch()?) } else { None };
        let start = window.start_at.map_or_else(clock::now, Instant::from_nanos);
        let end = window.seconds.map_or(Instant::FAR, |s| start + Span::from_millis(s * 1_000));
        let pace = Self { rate, start, end, sent: Octets::ZERO, ends };
        pace.sleep_until(start);
        Ok(pace)
    }

    /// Sleeps until then, or until Ctrl-C: a slow rate has long gaps.
    fn sleep_until(&self, then: Instant) {
        while clock::now() < then && !self.ends.as_ref().is_some_and(Ends::came) {
            clock::sleep_until(then.min(clock::now() + Span::from_millis(100)));
        }
    }

    /// Waits for the time of the next `octets`; false once the window is over.
    fn next(&mut self, octets: u64) -> bool {
        if let Some(rate) = self.rate {
            let due = self.start + rate.span_of_up(self.sent);
            if due >= self.end {
                self.sleep_until(self.end);
                return false;
            }
            self.sleep_until(due);
            self.sent = self.sent + Octets::new(octets);
        }
        clock::now() < self.end && !self.ends.as_ref().is_some_and(Ends::came)
    }

    /// What was handed over until now.
    fn handed(&self, octets: u64, closed_by_sink: bool) -> Handed {
        Handed { octets, window: clock::now().since(self.start), closed_by_sink }
    }
}

/// Sends TCP until the window ends; a sink that closes ends it too.
pub(super) fn tcp(to: SocketAddr, rate: Option<BitRate>, window: Window) -> Result<Handed, Failure> {
    let mut stream = connect(to)?;
    let chunk = vec![0x5a; TCP_CHUNK];
    let mut pace = Pace::begin(rate, window)?;
    // A starved connection must not outlive its window inside a blocked write.
    let patience = std::time::Duration::from_millis(200);
    stream.set_write_timeout(Some(patience)).map_err(|e| Failure::failed(e.to_string()))?;
    let mut octets = 0;
    while pace.next(chunk.len() as u64) {
        match stream.write(&chunk) {
            Ok(written) => octets += written as u64,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                return Ok(pace.handed(octets, true));
            }
            Err(e) => return Err(Failure::failed(format!("cannot send to {to}: {e}"))),
        }
    }
    Ok(pace.handed(octets, false))
}

fn connect(to: SocketAddr) -> Result<TcpStream, Failure> {
    let until = clock::now() + CONNECT_PATIENCE;
    loop {
        match TcpStream::connect(to) {
            Ok(stream) => return Ok(stream),
            Err(e) if clock::now() >= until => {
                return Err(Failure::failed(format!(
                    "no sink answers at {to}: {e}; start 'rota load sink' there"
                )));
            }
            Err(_) => clock::sleep_until(clock::now() + RETRY_GAP),
        }
    }
}

/// Sends UDP until the window ends.
pub(super) fn udp(to: SocketAddr, rate: Option<BitRate>, window: Window) -> Result<Handed, Failure> {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).map_err(|e| Failure::failed(format!("no UDP socket: {e}")))?;
    let datagram = vec![0x5a; DATAGRAM_OCTETS];
    let mut pace = Pace::begin(rate, window)?;
    let mut octets = 0;
    while pace.next(DATAGRAM_OCTETS as u64 + DATAGRAM_OVERHEAD) {
        match socket.send_to(&datagram, to) {
            Ok(sent) => octets += sent as u64,
            // A full queue loses the datagram, as it would anybody's.
            Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => {}
            Err(e) => return Err(Failure::failed(format!("cannot send to {to}: {e}"))),
        }
    }
    Ok(pace.handed(octets, false))
}
