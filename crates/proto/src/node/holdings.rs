//! The state that a node holds for channels across segments: a parent looks whether any stays behind.

use super::Node;
use crate::io::PortId;

/// The state of a node for channels across segments, counted. All counts are 0 when each channel has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Entries of the ledger, tentative ones included.
    pub entries: usize,
    /// Of them: those that are open.
    pub open: usize,
    /// Octets of the buffers that the ledger counts.
    pub buffer_octets: u64,
    /// Reservations for entries.
    pub held: usize,
    /// Ends of channels of programs here.
    pub ends: usize,
    /// Hops that have a share, ask for one, or give one back.
    pub hops: usize,
    /// Incoming channels with a local id.
    pub labels: usize,
    /// Ends of programs whose path was cut off.
    pub parked: usize,
    /// Local ids that no other channel gets while the program of the first one has them.
    pub faced: usize,
}

impl Node {
    /// The counts of now. Each count of the ledger is computed again: a wrong one panics.
    pub fn holdings(&self) -> Holdings {
        let hops = self.lines.iter().map(|line| line.hops.len()).sum();
        let labels = self.hops.keys().count();
        let parked = self.hops.parked();
        let Some(across) = &self.across else {
            return Holdings { hops, labels, parked, ..Holdings::default() };
        };
        across.rcap.audit();
        let entries = || across.rcap.entries();
        Holdings {
            entries: entries().count(),
            open: entries().filter(|(_, _, is_open, _)| *is_open).count(),
            buffer_octets: across.rcap.buffer_octets(),
            held: across.held.len(),
            ends: across.ends.len(),
            hops,
            labels,
            parked,
            faced: across.rcap.faced(),
        }
    }

    /// Shares of hops at one port: those that it has, asks for, or gives back.
    pub fn hops_at(&self, port: PortId) -> usize {
        self.place(port).map_or(0, |at| self.lines[at].hops.len())
    }

    /// The entries of the ledger, by the channels that they are for.
    pub fn entries_across(&self) -> impl Iterator<Item = crate::rcap::ChannelKey> {
        self.across.iter().flat_map(|across| across.rcap.entries().map(|(_, key, ..)| key))
    }
}
