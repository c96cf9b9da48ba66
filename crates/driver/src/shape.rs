//! Wire speed on a virtual port.

/// Which datagrams the priority class takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityMatch {
    /// IPv4 packets with this DSCP (0 to 63).
    Dscp(u8),
    /// UDP datagrams to a port in this range, both ends included.
    UdpPorts {
        /// The lowest port.
        first: u16,
        /// The highest port.
        last: u16,
    },
}

/// A class of a port that is served first and guaranteed a share of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrioritySpec {
    /// Who is in it.
    pub matches: PriorityMatch,
    /// Its guaranteed share of the port, 1 to 99 per cent.
    pub share_percent: u8,
}

/// Why a priority rule makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// A class has a part of the port.
    #[error("a priority class is guaranteed 1 to 99 per cent of a port, not {0}")]
    Share(u8),
    /// DSCP has six bits.
    #[error("a DSCP is 0 to 63, not {0}")]
    Dscp(u8),
    /// The range is empty.
    #[error("the port range {0} to {1} is empty: the first port must not be above the last")]
    Ports(u16, u16),
}
