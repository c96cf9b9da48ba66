//! Where the time of a set-up goes, node by node and link by link (Table 5 of the Tenet paper). The nodes are
//! those that ship and know nothing of it: a socket in each station sees the segments of the sessions between
//! neighbours, each with the kernel's stamp.

use super::median;
use super::stage::Stage;
use crate::clock;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, recvmsg,
    setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;
use rota_answer::Failure;
use rota_driver::clock::Sandwich;
use rota_lab::{NEIGHBOURS_PORT, address};
use rota_units::{Instant, Span};
use serde::Serialize;
use std::io::IoSliceMut;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

const TCP: u8 = 6;
/// Headers of a segment are shorter.
const HEAD: usize = 160;

/// The time of one node in a set-up, and of the link behind it, in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Part {
    /// The station.
    name: String,
    /// On the way there. The destination has its answer in it: one message comes in, and one goes out.
    forward_ns: u64,
    /// On the way back; none at the destination.
    reverse_ns: Option<u64>,
    /// The link to the next station, the mean of both directions; none behind the destination.
    link_ns: Option<u64>,
}

/// All of them, the medians of so many set-ups.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Parts {
    setups: u64,
    stations: Vec<Part>,
}

/// A segment with data that a station has sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    at: Instant,
    /// From 0 on.
    station: usize,
    ends: [Ipv4Addr; 2],
}

/// The sockets, one in each station.
pub(super) struct Watch {
    sockets: Vec<OwnedFd>,
    /// The station that has an address, from 0 on.
    names: Vec<String>,
    rows: Vec<Row>,
}

/// The moments of one set-up: a message leaves a station or comes to it, there and back.
struct Row(Vec<Instant>);

impl Watch {
    /// Watches the stations of a lab, which stand in a row.
    pub(super) fn begin(stage: &Stage) -> Result<Self, Failure> {
        let stations = &stage.lab.spec().topology.stations;
        let no_socket = |errno: Errno| Failure::failed(format!("no socket in a station: {}", errno.desc()));
        let open = |station: u8| {
            let made = stage.lab.host(station).run(|| {
                let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
                let kind = (AddressFamily::Packet, SockType::Datagram);
                let socket = socket(kind.0, kind.1, flags, SockProtocol::EthAll)?;
                setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
                Ok::<_, Errno>(socket)
            });
            made.map_err(Failure::failed)?.map_err(no_socket)
        };
        let sockets = (1..=stage.stations()).map(open).collect::<Result<_, Failure>>()?;
        Ok(Self { sockets, names: stations.iter().map(|one| one.name.clone()).collect(), rows: Vec::new() })
    }

    /// Forgets what was seen up to now.
    pub(super) fn forget(&self) -> Result<(), Failure> {
        self.seen().map(|_| ())
    }

    /// Notes a set-up that was asked for and open then. One that other messages have disturbed is left out.
    pub(super) fn note(&mut self, asked: Instant, open: Instant) -> Result<(), Failure> {
        let seen = self.seen()?;
        self.rows.extend(row(&seen, self.sockets.len(), asked, open));
        Ok(())
    }

    /// All segments with data since the last look, in the order of their stamps.
    fn seen(&self) -> Result<Vec<Seen>, Failure> {
        let mut all = Vec::new();
        for (station, socket) in self.sockets.iter().enumerate() {
            while let Some((at, ends)) = next(socket)? {
                all.extend(ends.map(|ends| Seen { at, station, ends }));
            }
        }
        all.sort_by_key(|seen| seen.at);
        Ok(all)
    }

    /// The medians.
    pub(super) fn parts(self) -> Parts {
        let last = self.sockets.len() - 1;
        let of = |from: usize, to: usize| {
            median(self.rows.iter().map(|Row(at)| at[to].since(at[from]).as_nanos()).collect())
        };
        let stations = self.names.into_iter().enumerate().map(|(station, name)| {
            let (there, back) = (2 * station, 4 * last + 1 - 2 * station);
            let is_end = station == last;
            let link = || (of(there + 1, there + 2) + of(back - 2, back - 1)) / 2;
            Part {
                name,
                forward_ns: of(there, there + 1),
                reverse_ns: (!is_end).then(|| of(back - 1, back)),
                link_ns: (!is_end).then(link),
            }
        });
        let stations = stations.collect();
        Parts { setups: self.rows.len() as u64, stations }
    }
}

/// When a packet passed, and its ends if it is a segment with data of neighbours.
type Packet = (Instant, Option<[Ipv4Addr; 2]>);

/// The next packet of a socket, if there is one.
fn next(socket: &OwnedFd) -> Result<Option<Packet>, Failure> {
    let (mut buffer, mut control) = ([0; HEAD], nix::cmsg_space!(TimeSpec));
    let mut slices = [IoSliceMut::new(&mut buffer)];
    let got = recvmsg::<LinkAddr>(socket.as_raw_fd(), &mut slices, Some(&mut control), MsgFlags::empty());
    let (octets, stamp) = match got {
        Ok(message) => {
            let stamps = message.cmsgs().into_iter().flatten().find_map(|control| match control {
                ControlMessageOwned::ScmTimestampns(at) => Some(at),
                _ => None,
            });
            (message.bytes, stamps)
        }
        Err(Errno::EAGAIN) => return Ok(None),
        Err(errno) => return Err(Failure::failed(format!("cannot watch a station: {}", errno.desc()))),
    };
    let clocks = Sandwich::take();
    let stamp = stamp.ok_or_else(|| Failure::failed("the kernel has stamped no packet"))?;
    let real_ns = stamp.tv_sec().cast_unsigned() * 1_000_000_000 + stamp.tv_nsec().cast_unsigned();
    let at = clocks.before.minus(Span::from_nanos(clocks.real_ns.saturating_sub(real_ns)));
    Ok(Some((at, ends(&buffer[..octets.min(HEAD)]))))
}

/// The two ends of a TCP segment with data between neighbours.
fn ends(packet: &[u8]) -> Option<[Ipv4Addr; 2]> {
    let number = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    let header = usize::from(packet.first()? & 0xf) * 4;
    if packet.first()? >> 4 != 4 || *packet.get(9)? != TCP {
        return None;
    }
    let is_ours = [header, header + 2].into_iter().any(|at| number(at) == Some(NEIGHBOURS_PORT));
    let headers = header + usize::from(packet.get(header + 12)? >> 4) * 4;
    let has_data = usize::from(number(2)?) > headers;
    let address = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?));
    (is_ours && has_data).then_some(())?;
    Some([address(12)?, address(16)?])
}

/// The moments of a set-up over so many stations in a row: the first segment of each hop that follows the one
/// before. `None` where one is missing.
fn row(seen: &[Seen], stations: usize, asked: Instant, open: Instant) -> Option<Row> {
    let on = |segment: usize, station: usize| address(segment, station as u8 + 1);
    let there = (0..stations - 1).map(|from| (from, from + 1));
    let back = (1..stations).rev().map(|from| (from, from - 1));
    let (mut row, mut rest) = (vec![asked], seen.iter().skip_while(|seen| seen.at < asked));
    for (from, to) in there.chain(back) {
        let ends = [from, to].map(|station| on(from.min(to), station));
        let mut hop = |station: usize| rest.find(|seen| (seen.station, seen.ends) == (station, ends));
        row.extend([hop(from)?.at, hop(to)?.at]);
    }
    row.push(open);
    row.is_sorted().then_some(Row(row))
}

/// A table for people.
pub(super) fn table(parts: &Parts) -> String {
    let ms = |ns: u64| format!("{}.{:03}", ns / 1_000_000, ns / 1_000 % 1_000);
    let or_none = |ns: Option<u64>| ns.map_or("-".to_owned(), ms);
    let mut text = format!("ms, median of {:<5} forward  reverse     link\n", parts.setups);
    for Part { name, forward_ns, reverse_ns, link_ns } in &parts.stations {
        let (forward, reverse, link) = (ms(*forward_ns), or_none(*reverse_ns), or_none(*link_ns));
        text += &format!("{name:<16} {forward:>10} {reverse:>8} {link:>8}\n");
    }
    text
}

/// So long must a set-up lie behind the one before that none of its messages is taken for one of this one.
pub(super) fn settle() {
    clock::sleep_until(clock::now() + Span::from_millis(2));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    #[test]
    fn the_parts_of_a_set_up_are_told_apart_by_station_and_link() {
        // 100 us in each node, 7 us on each link; an answer of 300 us at the end; a stray segment.
        let seen = |us: u64, station: usize, [from, to]: [usize; 2]| {
            let ends = [from, to].map(|end| address(from.min(to), end as u8 + 1));
            Seen { at: at(us), station, ends }
        };
        let all = [
            seen(5, 2, [2, 1]),
            seen(110, 0, [0, 1]),
            seen(117, 1, [0, 1]),
            seen(217, 1, [1, 2]),
            seen(224, 2, [1, 2]),
            seen(524, 2, [2, 1]),
            seen(531, 1, [2, 1]),
            seen(631, 1, [1, 0]),
            seen(638, 0, [1, 0]),
        ];
        let (asked, open) = (at(10), at(738));
        assert!(row(&all[..8], 3, asked, open).is_none(), "the last one is missing");
        let names = ["a", "b", "c"].map(str::to_owned).to_vec();
        let devices: Vec<OwnedFd> =
            (0..3).map(|_| std::fs::File::open("/dev/null").expect("it is there").into()).collect();
        let rows = vec![row(&all, 3, asked, open).expect("a whole set-up")];
        let Parts { setups, stations } = Watch { sockets: devices, names, rows }.parts();
        let told: Vec<_> = stations.iter().map(|one| (one.forward_ns, one.reverse_ns, one.link_ns)).collect();
        let us = |us: u64| us * 1_000;
        let through = (us(100), Some(us(100)), Some(us(7)));
        assert_eq!((setups, told), (1, vec![through, through, (us(300), None, None)]));
    }

    #[test]
    fn acknowledgements_and_other_ports_are_no_messages() {
        let segment = |port: u16, data: usize| {
            let mut packet = vec![0u8; 40 + data];
            packet[0] = 0x45;
            let length = packet.len() as u16;
            packet[2..4].copy_from_slice(&length.to_be_bytes());
            packet[9] = TCP;
            packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
            packet[22..24].copy_from_slice(&port.to_be_bytes());
            packet[32] = 0x50;
            packet
        };
        let both = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
        assert_eq!(ends(&segment(NEIGHBOURS_PORT, 9)), Some(both));
        assert_eq!([ends(&segment(NEIGHBOURS_PORT, 0)), ends(&segment(80, 9)), ends(&[0x45; 3])], [None; 3]);
    }
}
