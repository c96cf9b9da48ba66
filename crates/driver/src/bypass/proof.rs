//! The proof that a program holds a port: its own bound socket, which nothing shares (ENDHOST-R58).

use crate::sys;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, SockaddrStorage, getpeername, getsockname, socket,
};
use nix::sys::stat::fstat;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

const SO_BINDTOIFINDEX: i32 = 62;
const SO_LOCK_FILTER: i32 = 44;
const UDP_ENCAP: i32 = 100;
const UDP_GRO: i32 = 104;

/// Why a socket gets no queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Anything else than a socket of UDP over IPv4.
    #[error("the descriptor is no socket of UDP over IPv4")]
    NotUdp,
    /// Of a container, for one.
    #[error("the socket belongs to another network namespace than the node")]
    OtherNamespace,
    /// No port, or one that the kernel has chosen and may give to somebody else.
    #[error("the socket is not bound to a port that its program has named")]
    NotBound,
    /// Its peer is stated in the request.
    #[error("the socket is connected already; it is to be connected after it has its queue")]
    Connected,
    /// Packets of the port are for others, too.
    #[error(
        "the port is shared with other sockets, or may be: SO_REUSEADDR and SO_REUSEPORT must be off, and no \
         other socket bound to it"
    )]
    Shared,
    /// An option that changes what the layers deliver.
    #[error("the socket has options that the queue cannot have (SO_BINDTODEVICE, UDP_GRO, UDP_ENCAP)")]
    Options,
    /// A packet filter of its own.
    #[error("the socket has a packet filter of its own, or lets nobody change it (SO_LOCK_FILTER)")]
    HasFilter,
    /// Too many sockets.
    #[error("this node has as many sockets with a queue as it can have (64)")]
    Full,
    /// The size of the ring.
    #[error("a queue has 256 KiB to 64 MiB, a power of two")]
    Size,
    /// The kernel's answer.
    #[error("the kernel refuses: {}", .0.desc())]
    Kernel(Errno),
}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Self {
        Self::Kernel(errno)
    }
}

impl Refused {
    /// By which it is told from one process to another.
    pub fn code(self) -> u32 {
        match self {
            Self::Kernel(errno) => errno as u32,
            Self::NotUdp => 1_001,
            Self::OtherNamespace => 1_002,
            Self::NotBound => 1_003,
            Self::Connected => 1_004,
            Self::Shared => 1_005,
            Self::Options => 1_006,
            Self::HasFilter => 1_007,
            Self::Full => 1_008,
            Self::Size => 1_009,
        }
    }

    /// The refusal of a code.
    pub fn of(code: u32) -> Self {
        let known = [
            Self::NotUdp,
            Self::OtherNamespace,
            Self::NotBound,
            Self::Connected,
            Self::Shared,
            Self::Options,
            Self::HasFilter,
            Self::Full,
            Self::Size,
        ];
        let found = known.into_iter().find(|refused| refused.code() == code);
        found.unwrap_or(Self::Kernel(Errno::from_raw(code.cast_signed())))
    }
}

/// True for a socket of UDP over IPv4: closing any other descriptor of a program may take for ever.
pub fn is_udp(of: &impl AsFd) -> bool {
    let is = |name, wanted| sys::sockopt::get_int(of, libc::SOL_SOCKET, name) == Ok(wanted);
    let is_datagram = is(libc::SO_DOMAIN, libc::AF_INET) && is(libc::SO_TYPE, libc::SOCK_DGRAM);
    is_datagram && is(libc::SO_PROTOCOL, libc::IPPROTO_UDP)
}

/// Checks a program's socket; its address.
pub(super) fn check(of: &OwnedFd) -> Result<SocketAddrV4, Refused> {
    let is = |name, wanted| sys::sockopt::get_int(of, libc::SOL_SOCKET, name) == Ok(wanted);
    if !is_udp(of) {
        return Err(Refused::NotUdp);
    }
    let own = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    if sys::udp::namespace(of.as_fd())? != sys::udp::namespace(own.as_fd())? {
        return Err(Refused::OtherNamespace);
    }
    if getpeername::<SockaddrStorage>(of.as_raw_fd()) != Err(Errno::ENOTCONN) {
        return Err(Refused::Connected);
    }
    let bound = address(of)?;
    // The kernel frees a port that it has chosen when such a socket forgets a peer; another user may have it
    // then. Nothing frees a port that a program has named, as long as the socket is open.
    sys::udp::disconnect(of.as_fd())?;
    if bound.port() == 0 || address(of)? != bound {
        return Err(Refused::NotBound);
    }
    if sys::udp::has_filter(of.as_fd()) || !is(SO_LOCK_FILTER, 0) {
        return Err(Refused::HasFilter);
    }
    check_alone(of, bound, &Tables::read()?).map(|()| bound)
}

/// Checks that packets of the socket's port are for nobody else. Its program has the socket, too, and can
/// change its options at any time: so another user's socket can get the same port.
pub(super) fn check_alone(of: &OwnedFd, bound: SocketAddrV4, tables: &Tables) -> Result<(), Refused> {
    let ask = |level, name| sys::sockopt::get_int(of, level, name);
    let is = |name, wanted| ask(libc::SOL_SOCKET, name) == Ok(wanted);
    if !is(libc::SO_REUSEADDR, 0) || !is(libc::SO_REUSEPORT, 0) {
        return Err(Refused::Shared);
    }
    let options =
        [(libc::SOL_SOCKET, SO_BINDTOIFINDEX), (libc::SOL_UDP, UDP_ENCAP), (libc::SOL_UDP, UDP_GRO)];
    if options.into_iter().any(|(level, name)| ask(level, name).is_ok_and(|value| value != 0)) {
        return Err(Refused::Options);
    }
    let inode = fstat(of)?.st_ino;
    match is_alone(&tables.four, &tables.six, bound, inode) {
        true => Ok(()),
        false => Err(Refused::Shared),
    }
}

/// The kernel's lists of sockets of UDP, in the calling thread's network namespace.
#[derive(Debug)]
pub(super) struct Tables {
    four: String,
    six: String,
}

impl Tables {
    /// # Errors
    /// The kernel's answer: without the lists no port is known to be one socket's.
    pub(super) fn read() -> Result<Self, Errno> {
        let table = |name| match std::fs::read_to_string(format!("/proc/thread-self/net/{name}")) {
            Ok(text) => Ok(text),
            // A kernel without IPv6.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)),
        };
        Ok(Self { four: table("udp")?, six: table("udp6")? })
    }
}

fn address(of: &OwnedFd) -> Result<SocketAddrV4, Errno> {
    getsockname::<SockaddrIn>(of.as_raw_fd()).map(SocketAddrV4::from)
}

/// True if no other socket gets packets of the address. Two sockets that shared it when they were bound may
/// say later that they do not; so the kernel's own list is asked.
fn is_alone(four: &str, six: &str, bound: SocketAddrV4, inode: u64) -> bool {
    let port_of = |local: &str| {
        let (_, port) = local.rsplit_once(':')?;
        u16::from_str_radix(port, 16).ok()
    };
    let mut others = four.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let local = *fields.get(1)?;
        if port_of(local)? != bound.port() || fields.get(9)?.parse() == Ok(inode) {
            return None;
        }
        // The kernel writes the address as a number of this machine.
        let address = u32::from_str_radix(local.split_once(':')?.0, 16).ok()?;
        let address = Ipv4Addr::from(address.to_ne_bytes());
        let do_meet = address.is_unspecified() || bound.ip().is_unspecified() || address == *bound.ip();
        do_meet.then_some(())
    });
    let mut sixes = six.lines().skip(1).filter_map(|line| {
        port_of(line.split_ascii_whitespace().nth(1)?).filter(|port| *port == bound.port())
    });
    others.next().is_none() && sixes.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    const HEAD: &str = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  \
                        timeout inode ref pointer drops\n";

    #[test]
    fn a_port_that_others_share_is_seen_in_the_kernels_list() {
        let line = |address: [u8; 4], port: u16, inode: u64| {
            let address = u32::from_ne_bytes(address);
            format!("  7: {address:08X}:{port:04X} 00000000:0000 07 0:0 00:0 0 0 0 {inode} 2 0 0\n")
        };
        let bound = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 5_000);
        let alone =
            |lines: &[String], six: &str| is_alone(&(HEAD.to_owned() + &lines.concat()), six, bound, 77);
        let own = line([10, 0, 0, 1], 5_000, 77);
        assert!(alone(std::slice::from_ref(&own), HEAD));
        assert!(alone(&[own.clone(), line([10, 0, 0, 2], 5_000, 8), line([0; 4], 5_001, 9)], HEAD));
        assert!(!alone(&[own.clone(), line([0; 4], 5_000, 8)], HEAD));
        assert!(!alone(&[own.clone(), line([10, 0, 0, 1], 5_000, 8)], HEAD));
        let six = format!("{HEAD}  1: 00000000000000000000000000000000:1388 0:0 07 0:0 00:0 0 0 0 5 2 0 0\n");
        assert!(!alone(&[own], &six));
    }

    #[test]
    fn a_socket_proves_its_port_and_what_is_no_such_socket_is_refused() {
        let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let named = || OwnedFd::from(UdpSocket::bind(free).unwrap());
        assert_eq!(check(&named()).map(|bound| bound.port()), Ok(free.port()));
        // The kernel would give this port to others once the socket has forgotten a peer.
        let chosen = OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap());
        assert_eq!(check(&chosen), Err(Refused::NotBound));
        let unbound = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).unwrap();
        assert_eq!(check(&unbound), Err(Refused::NotBound));
        let six = socket(AddressFamily::Inet6, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).unwrap();
        assert_eq!(check(&six), Err(Refused::NotUdp));
        let stream = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
        assert_eq!(check(&stream), Err(Refused::NotUdp));
        let connected = UdpSocket::bind(free).unwrap();
        connected.connect("127.0.0.1:9").unwrap();
        assert_eq!(check(&OwnedFd::from(connected)), Err(Refused::Connected));
        let shared = named();
        sys::sockopt::set_int(&shared, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1).unwrap();
        assert_eq!(check(&shared), Err(Refused::Shared));
        drop(shared);
        let filtered = named();
        let all = libc::sock_filter { code: 6, jt: 0, jf: 0, k: u32::MAX };
        sys::packet_socket::attach_filter(filtered.as_fd(), &[all]).unwrap();
        assert_eq!(check(&filtered), Err(Refused::HasFilter));
    }

    #[test]
    fn a_port_that_its_program_shares_later_is_seen() {
        let named = || {
            let chosen = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            OwnedFd::from(UdpSocket::bind(chosen).unwrap())
        };
        let cases = [
            (libc::SO_REUSEADDR, 1, Refused::Shared),
            (libc::SO_REUSEPORT, 1, Refused::Shared),
            (SO_BINDTOIFINDEX, 1, Refused::Options),
        ];
        for (name, value, why) in cases {
            let socket = named();
            let bound = check(&socket).unwrap();
            let tables = Tables::read().unwrap();
            assert_eq!(check_alone(&socket, bound, &tables), Ok(()));
            sys::sockopt::set_int(&socket, libc::SOL_SOCKET, name, value).unwrap();
            assert_eq!(check_alone(&socket, bound, &tables), Err(why));
        }
    }

    #[test]
    fn a_socket_that_locks_its_filter_is_refused() {
        let chosen = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let locked = OwnedFd::from(UdpSocket::bind(chosen).unwrap());
        sys::sockopt::set_int(&locked, libc::SOL_SOCKET, SO_LOCK_FILTER, 1).unwrap();
        assert_eq!(check(&locked), Err(Refused::HasFilter));
    }

    #[test]
    fn a_refusal_keeps_its_sentence_over_its_code() {
        for refused in [Refused::NotUdp, Refused::Shared, Refused::Size, Refused::Kernel(Errno::EPERM)] {
            assert_eq!(Refused::of(refused.code()), refused);
        }
    }
}
