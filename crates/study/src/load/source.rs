//! The sending side of cross traffic.

use super::{Handed, Window};
use crate::clock;
use nix::sys::socket::{setsockopt, sockopt};
use rota_answer::{Ends, Failure};
use rota_units::{BitRate, Instant, Octets, Span};
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// A full frame: 1,500 octets of IP less the headers of IP and UDP.
const DATAGRAM_OCTETS: usize = 1_472;
/// IP and UDP headers, Ethernet header and checksum, preamble and gap.
const DATAGRAM_OVERHEAD: u64 = 28 + 18 + 20;
const TCP_CHUNK: usize = 16 << 10;
/// How long a sink may take to appear.
const CONNECT_PATIENCE: Span = Span::from_millis(3_000);
const RETRY_GAP: Span = Span::from_millis(20);
/// How soon the kernel knows that nobody has an address, and knows it again: ARP asks three times, a second
/// each.
const ARP: Span = Span::from_millis(4_000);
/// Two rounds of ARP have failed. One may fail on a network that is full of this traffic.
const TWICE: Span = Span::from_millis(2_000);

/// The kernel's reports that a destination cannot be reached, in a row without a gap.
#[derive(Clone, Copy, Debug, Default)]
struct Unreachable {
    row: Option<(Instant, Instant)>,
}

impl Unreachable {
    fn report(&mut self, now: Instant) {
        let since = self.row.filter(|(_, last)| now.since(*last) <= ARP).map_or(now, |(since, _)| since);
        self.row = Some((since, now));
    }

    /// How long it was reported, where it has never been otherwise. A host that was there may come back.
    fn never_reached(&self, start: Instant, now: Instant) -> Option<Span> {
        let (since, last) = self.row?;
        (since.since(start) <= ARP && now.since(last) <= ARP).then(|| last.since(since))
    }
}

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
        Handed { octets, refused: 0, window: clock::now().since(self.start), closed_by_sink }
    }
}

/// Sends TCP until the window ends; a sink that closes ends it too.
pub(super) fn tcp(to: SocketAddr, rate: Option<BitRate>, window: Window) -> Result<Handed, Failure> {
    let mut stream = connect(to)?;
    let chunk = vec![0x5a; TCP_CHUNK];
    let mut pace = Pace::begin(rate, window)?;
    // A starved connection must not outlive its window inside a blocked write.
    let patience = Duration::from_millis(200);
    stream.set_write_timeout(Some(patience)).map_err(Failure::failed)?;
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
                return Err(Failure::not_there(format!(
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
    let not_there = || Failure::not_there(format!("{to} cannot be reached: no station has this address"));
    let failed = |e: std::io::Error| Failure::failed(format!("cannot send to {to}: {e}"));
    // Otherwise the kernel does not report that nobody has the address.
    if to.is_ipv4() {
        setsockopt(&socket, sockopt::Ipv4RecvErr, &true).map_err(|errno| failed(errno.into()))?;
    }
    socket.connect(to).map_err(|e| if is_unreachable(&e) { not_there() } else { failed(e) })?;
    let datagram = vec![0x5a; DATAGRAM_OCTETS];
    let mut pace = Pace::begin(rate, window)?;
    let (mut octets, mut refused, mut unreachable) = (0, 0, Unreachable::default());
    while pace.next(DATAGRAM_OCTETS as u64 + DATAGRAM_OVERHEAD) {
        let sent = match socket.send(&datagram) {
            // This is the answer to an earlier datagram: the host is there, and no sink. The error took the
            // place of this datagram's sending.
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => socket.send(&datagram),
            sent => sent,
        };
        match sent {
            Ok(sent) => octets += sent as u64,
            Err(e) if is_unreachable(&e) => {
                refused += DATAGRAM_OCTETS as u64;
                unreachable.report(clock::now());
                let told = unreachable.never_reached(pace.start, clock::now());
                if told.is_some_and(|told| told >= TWICE) {
                    return Err(not_there());
                }
            }
            // A full queue loses the datagram, as it would anybody's.
            Err(e) if is_of_datagram(&e) => refused += DATAGRAM_OCTETS as u64,
            Err(e) => return Err(failed(e)),
        }
    }
    match unreachable.never_reached(pace.start, clock::now()) {
        Some(_) => Err(not_there()),
        None => Ok(Handed { refused, ..pace.handed(octets, false) }),
    }
}

/// The kernel has no way to the destination, or nobody there answers ARP.
fn is_unreachable(error: &std::io::Error) -> bool {
    let unreachable = [libc::EHOSTUNREACH, libc::ENETUNREACH, libc::EHOSTDOWN];
    error.raw_os_error().is_some_and(|code| unreachable.contains(&code))
}

/// Only this datagram was not taken.
fn is_of_datagram(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS) || error.kind() == ErrorKind::ConnectionRefused
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_answer::Exit;

    /// Each ended with 1.
    #[test]
    fn a_destination_that_is_not_there_is_not_there_yet() {
        let window = Window { seconds: Some(1), start_at: None };
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|taken| taken.local_addr());
        let nobody = free.expect("a port");
        assert_eq!(tcp(nobody, None, window).expect_err("no sink").exit, Exit::NotThere);
        let at = |ms| Instant::from_nanos(0) + Span::from_millis(ms);
        let mut unreachable = Unreachable::default();
        [3_000, 3_001, 6_000].into_iter().for_each(|ms| unreachable.report(at(ms)));
        assert_eq!(unreachable.never_reached(at(0), at(6_000)), Some(Span::from_millis(3_000)));
        assert_eq!(unreachable.never_reached(at(0), at(20_000)), None, "it came");
        unreachable.report(at(20_000));
        assert_eq!(unreachable.never_reached(at(0), at(20_000)), None, "it was there, and may come back");
        for code in [libc::EHOSTUNREACH, libc::ENETUNREACH, libc::EHOSTDOWN] {
            assert!(is_unreachable(&std::io::Error::from_raw_os_error(code)));
        }
        // A host without a sink is loaded all the same.
        let handed = udp(nobody, Some(BitRate::from_mbit(8)), window).expect("it is there");
        assert!(handed.octets > 100_000, "{handed:?}");
    }
}
