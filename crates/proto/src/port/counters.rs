//! The counts of a port, of units and ordinary frames. Nothing here changes what it does.

use super::Port;
use crate::rtip::PacketCounters;
use rota_wire::{Class, Load};

/// The counters of a port. Those marked (zero) must stay zero on a healthy segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Units sent.
    pub units_sent: u64,
    /// Units given up.
    pub units_dropped: u64,
    /// Data fragments received for a channel here.
    pub fragments_received: u64,
    /// Reports of a channel's counts that cannot be true (zero).
    pub tallies_refused: u64,
    /// Ordinary frames sent under a grant.
    pub host_frames_sent: u64,
    /// Ordinary visits that sent anything.
    pub ordinary_visits: u64,
    /// Those of them that sent more than signalling.
    pub other_visits: u64,
    /// Ordinary frames that waited for a grant and left in plain mode.
    pub host_frames_flushed: u64,
    /// Ordinary frames dropped because the queue was full.
    pub host_frames_dropped: u64,
    /// Ordinary frames dropped because a switch of mode took longer than the queue has room for.
    pub host_dropped_switch: u64,
    /// Packets of channels across segments.
    pub packets: PacketCounters,
}

/// All that is counted of frames at a port, its medium's included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortTally {
    /// Sent, by [`Class`]; of the host's own frames only those that waited for a grant.
    pub sent: [Load; Class::ALL.len()],
    /// Heard and proven, by [`Class`].
    pub heard: [Load; Class::ALL.len()],
    /// The host's frames and link control's, sent under a grant, by level.
    pub levels: [Load; 8],
    /// How long cycles lasted.
    pub rotation: rota_medium::Rotation,
}

/// The part of it that the medium does not know.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnTally {
    pub(super) sent: [Load; Class::ALL.len()],
    pub(super) llc_heard: Load,
    levels: [Load; 8],
}

impl OwnTally {
    pub(super) fn count_host(&mut self, level: usize, octets: u16) {
        self.sent[Class::Ordinary as usize].add(u64::from(octets));
        self.count_level(level, octets);
    }

    pub(super) fn count_level(&mut self, level: usize, octets: u16) {
        self.levels[level.min(7)].add(u64::from(octets));
    }
}

impl Port {
    /// The frames that were sent and heard.
    pub fn tally(&self) -> PortTally {
        let medium = self.medium.tally();
        let (mut sent, mut heard) = (medium.sent, medium.heard);
        let add = |into: &mut Load, more: Load| {
            into.frames += more.frames;
            into.octets += more.octets;
        };
        sent.iter_mut().zip(self.tally.sent).for_each(|(into, more)| add(into, more));
        add(&mut heard[Class::Llc as usize], self.tally.llc_heard);
        PortTally { sent, heard, levels: self.tally.levels, rotation: medium.rotation }
    }

    /// A fragment found its channel here.
    pub(crate) fn count_fragment(&mut self) {
        self.counters.fragments_received += 1;
    }

    /// A report of a channel's counts cannot be true.
    pub(crate) fn count_refused_tally(&mut self) {
        self.counters.tallies_refused += 1;
    }
}
