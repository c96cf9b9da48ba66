//! The limits of one node: so that no neighbour and no user takes all of it.

use rota_units::Span;
use rota_wire::RCAP_LEASE_MAX_NS;
use std::collections::BTreeMap;

/// The most that one user may have at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Channels, those that wait for their accept among them.
    pub channels: u32,
    /// Their payload together, octets a second.
    pub octets_a_second: u64,
}

/// The limits of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RcapLimits {
    /// Entries of the ledger.
    pub entries: usize,
    /// Entries that one neighbour's requests may hold while they wait for their accept.
    pub waiting_of_neighbour: usize,
    /// Calls of this node's programs that wait for their outcome.
    pub calls: usize,
    /// Programs that wait on a service.
    pub listeners: usize,
    /// Requests that wait for the answer of one program.
    pub incoming: usize,
    /// Packets of one channel for which a node keeps room.
    pub channel_buffers: u64,
    /// Room for waiting packets of all channels, octets of payload.
    pub buffer_octets: u64,
    /// Of a user that has none of its own. Users of other nodes count apart, by node and user.
    pub quota: Quota,
    /// Of this node's own users.
    pub quotas: BTreeMap<u32, Quota>,
    /// From a program's call to its outcome, all attempts together; at most [`Self::LEASE_MAX`]. It is also
    /// the lease of the tentative reservations (`TENET-R9`).
    pub patience: Span,
    /// How long a receiving program may take for its answer.
    pub answer: Span,
    /// From a question for a status to its outcome.
    pub status: Span,
    /// Attempts of one call at most.
    pub attempts: u16,
    /// The first random time before another attempt is shorter than this; each further one may be twice as
    /// long.
    pub back_off: Span,
    /// Ended attempts that are remembered, so that a late copy of their request does nothing.
    pub remembered: usize,
}

impl RcapLimits {
    /// The longest lease.
    pub const LEASE_MAX: Span = Span::from_nanos(RCAP_LEASE_MAX_NS);

    /// The quota of a user of this node, or of another one.
    pub(super) fn quota_of(&self, uid: u32, is_own: bool) -> Quota {
        let own = if is_own { self.quotas.get(&uid) } else { None };
        own.copied().unwrap_or(self.quota)
    }
}

impl Default for RcapLimits {
    fn default() -> Self {
        Self {
            entries: 4_096,
            waiting_of_neighbour: 256,
            calls: 256,
            listeners: 256,
            incoming: 16,
            channel_buffers: rota_admission::path::BUFFERS_MAX,
            buffer_octets: 64 << 20,
            quota: Quota { channels: 1_024, octets_a_second: u64::MAX },
            quotas: BTreeMap::new(),
            patience: Span::from_millis(2_000),
            answer: Span::from_millis(1_000),
            status: Span::from_millis(1_000),
            attempts: 8,
            back_off: Span::from_millis(20),
            remembered: 4_096,
        }
    }
}
