//! The form of a packet in a receive queue, and the values that the programs and the maps share.

use std::net::{Ipv4Addr, SocketAddrV4};

/// The kernel's words before the octets of a packet: source address and port, as on the wire; which way
/// the packet took; its octets; the address that it was sent to.
pub const HEAD_OCTETS: usize = 16;
/// Octets that a packet takes of a ring, with the head and without the eight of the kernel: the smallest that
/// fits is taken, since the kernel wants to know the number before it runs a program.
pub const SIZES: [u32; 5] = [120, 504, 1_496, 8_184, 65_528];
/// Sockets of one node that may have a queue at a time.
pub const SOCKETS_MAX: u32 = 64;

/// The way a packet took, as it stands in the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Past the layers.
    Bypass = 0,
    /// Through them.
    Full = 1,
}

/// Offsets of the head.
pub(super) mod head {
    pub(crate) const SOURCE: i16 = 0;
    pub(crate) const PORT: i16 = 4;
    pub(crate) const PATH: i16 = 6;
    pub(crate) const OCTETS: i16 = 8;
    pub(crate) const TO: i16 = 12;
}

/// The key of a socket in the map that the filter asks: address and port, as on the wire.
pub(super) fn key(of: SocketAddrV4) -> [u8; 8] {
    let ([a, b, c, d], [high, low]) = (of.ip().octets(), of.port().to_be_bytes());
    [a, b, c, d, high, low, 0, 0]
}

/// The value there: the peer of a connected socket, and the number of the socket.
pub(super) fn value(peer: Option<SocketAddrV4>, slot: u32) -> [u8; 16] {
    let mut value = [0; 16];
    value[..8].copy_from_slice(&key(peer.unwrap_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))));
    value[8..12].copy_from_slice(&slot.to_ne_bytes());
    value
}

/// The kernel's counts of one socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that went past the layers into the queue.
    pub bypass: u64,
    /// Packets that came through the layers into the queue.
    pub full_path: u64,
    /// Packets that were discarded because the queue was full.
    pub queue_full: u64,
}

/// Offsets of these in the map of counts.
pub(super) mod count {
    pub(crate) const BYPASS: i16 = 0;
    pub(crate) const FULL_PATH: i16 = 8;
    pub(crate) const QUEUE_FULL: i16 = 16;
    pub(crate) const OCTETS: usize = 24;
}

impl Counts {
    pub(super) fn parse(octets: &[u8]) -> Self {
        let word = |at: i16| {
            let at = at as usize;
            octets.get(at..at + 8).map_or(0, |word| u64::from_ne_bytes(word.try_into().unwrap_or_default()))
        };
        Self {
            bypass: word(count::BYPASS),
            full_path: word(count::FULL_PATH),
            queue_full: word(count::QUEUE_FULL),
        }
    }
}
