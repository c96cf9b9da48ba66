//! The programs' surroundings when they run in user space.

use super::filter::{Maps, context};

/// The facts beside a packet that the kernel tells a program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Context {
    pub(crate) octets: u32,
    /// 0 for this host, 1 and 2 for all and for a group, 3 for another host.
    pub(crate) kind: u32,
    /// The card has taken a VLAN tag off.
    pub(crate) has_vlan: bool,
    /// Octets of each packet, where this is a collection of several.
    pub(crate) segment: u32,
}

impl Context {
    /// Each with its offset.
    pub(crate) fn words(&self) -> [(i16, u32); 4] {
        [
            (context::OCTETS, self.octets),
            (context::KIND, self.kind),
            (context::HAS_VLAN, self.has_vlan.into()),
            (context::SEGMENT, self.segment),
        ]
    }
}

/// The rest of a kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kernel {
    pub(crate) packet: Vec<u8>,
    /// Where the program's data begins in it, and where the header of IP is.
    pub(crate) data_at: usize,
    pub(crate) network_at: usize,
    /// The map of sockets, or of channels: keys and values of one length each.
    pub(crate) sockets: Vec<(Vec<u8>, Vec<u8>)>,
    /// What its clock shows.
    pub(crate) monotonic_ns: u64,
    /// Sockets that have a ring.
    pub(crate) slots: usize,
    /// No ring has room.
    pub(crate) is_full: bool,
}

impl Kernel {
    pub(crate) const SOCKETS: i32 = 101;
    pub(crate) const RINGS: i32 = 102;
    pub(crate) const COUNTS: i32 = 103;

    pub(super) fn maps() -> Maps {
        Maps { sockets: Self::SOCKETS, rings: Self::RINGS, counts: Self::COUNTS }
    }

    /// The number that stands for the ring of a socket.
    pub(super) fn ring(slot: u32) -> i32 {
        slot.cast_signed() + 1
    }
}

/// The deeds of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) answer: i32,
    /// The number of the ring, and what was put there.
    pub(crate) records: Vec<(u32, Vec<u8>)>,
    /// Of each socket.
    pub(crate) counts: Vec<[u8; 24]>,
    /// The values of the map of sockets, or of channels, as they are then.
    pub(crate) values: Vec<Vec<u8>>,
}
