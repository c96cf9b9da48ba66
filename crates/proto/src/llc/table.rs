//! Messages under way, and what is known of each direction of acknowledged service.

use super::LlcRequest;
use rota_units::Instant;
use rota_wire::MacAddr;

/// (socket, station) pairs that acknowledged messages go to.
pub(super) const LINKS_MAX: usize = 256;
/// No message.
pub(super) const NOBODY: u16 = u16::MAX;

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The place is free.
    Free,
    /// Waits until there is a direction for it.
    Held,
    /// Waits in its direction's list for the command before it.
    Parked,
    /// Has an entry in the node's queue.
    Queued,
    /// Was sent, and waits for its acknowledgement until then.
    Waiting { again: Instant },
    /// Over; the queue is swept before anything else happens, and then the place is free.
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
    /// Octets of it in each fragment but the last.
    pub(super) size: u16,
    /// The one that is sent next, or that waits for its answer.
    pub(super) fragment: u8,
    /// How often that one may still be sent.
    pub(super) tries_left: u8,
    pub(super) begun: bool,
    /// Which direction of acknowledged service it uses.
    pub(super) link: Option<u16>,
    /// It has waited in its direction's list, or has begun: it goes before others of its level there.
    pub(super) senior: bool,
    /// The level of its entry in the queue: its own, or that of somebody who waits for it.
    pub(super) queued_at: u8,
    /// Its neighbours in its direction's list.
    pub(super) before: u16,
    pub(super) behind: u16,
    /// When its frame was sent for the first time.
    pub(super) first_sent: Instant,
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
        size: 0,
        fragment: 0,
        tries_left: 0,
        begun: false,
        link: None,
        senior: false,
        queued_at: 0,
        before: NOBODY,
        behind: NOBODY,
        first_sent: Instant::ZERO,
    };

    pub(super) fn is_cut(&self) -> bool {
        self.fragments > 1
    }
}

/// The messages of one level that wait in a direction, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parked {
    pub(super) first: u16,
    pub(super) last: u16,
}

/// One direction of acknowledged service: one command at a time is outstanding in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckLink {
    pub(super) sap: u8,
    pub(super) mac: MacAddr,
    /// The bit of the next command, or of the one that is outstanding.
    pub(super) bit: bool,
    /// The message whose command is outstanding: one that is sent takes the direction, not one that is
    /// queued.
    pub(super) owner: Option<u16>,
    /// Messages that use it, wherever they are: it is kept for them.
    pub(super) users: u16,
    /// Who waits here, by level.
    pub(super) parked: [Parked; 8],
    /// One bit for each level of which somebody senior is in the queue.
    pub(super) seniors: u8,
    /// It had to make room for others once, and its bit is not known to follow the last command's.
    pub(super) forgot: bool,
    /// No command before: the other station may still remember an unanswered one.
    pub(super) ready_at: Instant,
    pub(super) used: Instant,
}

impl AckLink {
    pub(super) fn new(sap: u8, mac: MacAddr, ready_at: Instant, used: Instant) -> Self {
        let parked = [Parked { first: NOBODY, last: NOBODY }; 8];
        Self {
            sap,
            mac,
            bit: false,
            owner: None,
            users: 0,
            parked,
            seniors: 0,
            forgot: false,
            ready_at,
            used,
        }
    }

    /// The highest level of which somebody waits here.
    pub(super) fn highest(&self) -> Option<u8> {
        (0..8u8).rev().find(|level| self.parked[usize::from(*level)].first != NOBODY)
    }

    /// Whether somebody of that level goes before a newcomer.
    pub(super) fn has_waiting(&self, level: u8) -> bool {
        self.seniors & 1 << level != 0 || self.parked[usize::from(level)].first != NOBODY
    }
}
