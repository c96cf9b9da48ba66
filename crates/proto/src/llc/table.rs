//! Messages under way, and what is known of each direction of acknowledged service.

use super::LlcRequest;
use rota_units::Instant;
use rota_wire::MacAddr;

/// (socket, station) pairs that acknowledged messages go to.
pub(super) const LINKS_MAX: usize = 256;

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The place is free.
    Free,
    /// Waits for the one before it to the same station.
    Held,
    /// Has an entry in the node's queue.
    Queued,
    /// Was sent, and waits for its acknowledgement until then.
    Waiting { again: Instant },
    /// Over, but its entry is still in the queue: the place is free when that comes out.
    Gone,
}

/// A message on its way out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) stage: Stage,
    pub(super) request: LlcRequest,
    pub(super) mac: MacAddr,
    /// Its number on the wire, where it is cut.
    pub(super) wire_number: u16,
    pub(super) fragments: u8,
    /// The one that is sent next, or that waits for its answer.
    pub(super) fragment: u8,
    /// How often that one may still be sent.
    pub(super) tries_left: u8,
    pub(super) begun: bool,
    /// Which direction of acknowledged service it uses.
    pub(super) link: Option<u16>,
}

impl Message {
    pub(super) const FREE: Self = Self {
        stage: Stage::Free,
        request: LlcRequest {
            socket: 0,
            number: 0,
            octets: 0,
            to: super::LlcAddress { socket: 0, node: 0 },
            level: 0,
            ack: false,
            tries: 0,
            until: Instant::FAR,
        },
        mac: MacAddr::BROADCAST,
        wire_number: 0,
        fragments: 1,
        fragment: 0,
        tries_left: 0,
        begun: false,
        link: None,
    };

    pub(super) fn is_cut(&self) -> bool {
        self.fragments > 1
    }
}

/// One direction of acknowledged service: one command at a time is outstanding in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckLink {
    pub(super) sap: u8,
    pub(super) mac: MacAddr,
    /// The bit of the next command, or of the one that is outstanding.
    pub(super) bit: bool,
    pub(super) busy: Option<u16>,
    /// No command before: the other station may still remember an unanswered one.
    pub(super) ready_at: Instant,
    pub(super) used: Instant,
}
