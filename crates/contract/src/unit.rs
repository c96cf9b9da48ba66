//! Units of channels, as machines and nodes speak of them.

/// A unit that waits in a program's ring, as a machine knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitRef {
    /// Its number, from 0.
    pub number: u64,
    /// Its size.
    pub octets: u32,
    /// When its sender meant it to leave, ns on the sender's monotonic clock.
    pub schedule_ns: u64,
    /// Units that its program left out before it so far, modulo 2^16. They have numbers; between two units
    /// there are fewer than 2^15.
    pub left_out: u16,
}
