//! The gate of a host that floods a full queue is held: it is not read until the queue has room again.
//!
//! A read of a frame that is then dropped costs the data thread as much as one of a frame that leaves, and a
//! program can send a hundred times what its link carries. The kernel drops the same frame for the program's
//! own time. A few frames are still read to be dropped, one for each that leaves: a TCP stream fills the
//! queue too, and while it does, a frame of a higher level must find the gate empty.
//!
//! Frames that wait in the kernel are late by their time on the wire. A flooded queue therefore leaves as
//! much of its room free as the kernel holds, see [`gate_frames`], so that a frame waits no longer than
//! before.

use crate::gate::gate_frames;
use crate::pool::Pool;
use rota_proto::{Port, Settings};
use rota_units::{Instant, Octets, Span};

/// Frames that are read to be dropped until the gate is held; each frame that leaves allows one more.
const DROPS_MAX: u64 = 64;
/// A gate is held until there is room for so many frames: to hold and to free it takes two system calls.
const FRAMES_AGAIN: usize = 16;
/// The kernel's count of what it dropped may be older by this: a quarter of a second, see `meter`, and a late
/// thread.
const COUNTED_WITHIN: Span = Span::from_millis(500);

/// How the gate is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// Each frame, also those that are then dropped.
    Free,
    /// A frame for which there is room. The gate has not been found empty since a flood began.
    Flooded,
    /// None.
    Held,
}

/// The result of a look at a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// A frame may be read.
    Read,
    /// The same, and from now on the gate is to be waited for again.
    Freed,
    /// None may be, and from now on the gate is not waited for.
    Hold,
    /// None may be.
    Held,
}

/// Decides when the gate of a port is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Restraint {
    reading: Reading,
    /// Frames that may still be read to be dropped.
    drops: u64,
    /// The counts of frames dropped and left when last looked at.
    seen: (u64, u64),
    /// Octets of the longest frame.
    longest: u64,
    /// The room that a flooded queue leaves free.
    spare: u64,
    held_last: Option<Instant>,
    /// The kernel's count when last looked at.
    lost: u64,
}

impl Restraint {
    pub(super) fn new(settings: &Settings, longest: usize) -> Self {
        let room = settings.link.rate.octets_in_down(settings.nrt_queue).get();
        let longest = longest as u64;
        let spare = (u64::from(gate_frames(settings)) * longest).min(room / 2);
        let reading = Reading::Free;
        Self { reading, drops: DROPS_MAX, seen: (0, 0), longest, spare, held_last: None, lost: 0 }
    }

    /// May a frame be read? The parent does as the answer says.
    pub(super) fn look(&mut self, at: Instant, port: &Port, pool: &Pool) -> Look {
        let frames = match self.reading {
            Reading::Free => return Look::Read,
            Reading::Flooded => 1,
            Reading::Held => FRAMES_AGAIN,
        };
        let octets = Octets::new(self.spare + frames as u64 * self.longest);
        let has_room = port.has_host_room(frames, octets) && pool.has_room(frames);
        // Frames that a switch of mode loses are counted under that name, which takes a read.
        if has_room || port.loses_by_switch(at) {
            let was_held = self.reading == Reading::Held;
            self.reading = Reading::Flooded;
            return if was_held { Look::Freed } else { Look::Read };
        }
        self.held_last = Some(at);
        let was_held = self.reading == Reading::Held;
        self.reading = Reading::Held;
        if was_held { Look::Held } else { Look::Hold }
    }

    pub(super) fn is_held(&self) -> bool {
        self.reading == Reading::Held
    }

    /// No frame waits at the gate.
    pub(super) fn found_empty(&mut self) {
        if self.reading == Reading::Flooded {
            self.reading = Reading::Free;
        }
    }

    /// So many frames have been read to be dropped, and so many have left.
    pub(super) fn count(&mut self, dropped: u64, left: u64) {
        let (dropped_now, left_now) = (dropped - self.seen.0, left - self.seen.1);
        self.seen = (dropped, left);
        self.drops = (self.drops + left_now).min(DROPS_MAX).saturating_sub(dropped_now);
        if dropped_now > 0 && self.drops == 0 && self.reading == Reading::Free {
            self.reading = Reading::Flooded;
        }
    }

    /// The kernel has dropped so many frames by now. Returns how many it dropped since the look before, and
    /// whether because the gate was held.
    pub(super) fn lost(&mut self, at: Instant, lost: u64) -> (u64, bool) {
        let more = lost.saturating_sub(self.lost);
        self.lost = lost;
        let held = self.is_held() || self.held_last.is_some_and(|last| at.since(last) < COUNTED_WITHIN);
        (more, held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_contract::NodeId;
    use rota_proto::{Identity, Node};
    use rota_units::BitRate;
    use rota_wire::{Key, MacAddr};

    /// The kernel counts late: what it dropped counts as held half a second longer than the gate was.
    #[test]
    fn frames_dropped_at_the_end_of_a_long_hold_are_counted_as_held() {
        let at = |ms: u64| Instant::from_nanos(1) + Span::from_millis(ms);
        let settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
        let identity =
            Identity { node_id: NodeId(1), boot_id: 1, mac: MacAddr([2; 6]), name: "n1".to_owned() };
        let node = Node::new(at(0), identity, &Key::new([1; 32]), settings.clone(), 1);
        let port = node.port();
        let mut pool = Pool::new(64, 0, 1_518);
        let kept: Vec<_> = std::iter::from_fn(|| pool.put(b"flood")).collect();
        let mut restraint = Restraint::new(&settings, 1_518);
        restraint.count(DROPS_MAX, 0);
        assert_eq!(restraint.look(at(0), port, &pool), Look::Hold);
        assert_eq!(restraint.lost(at(1), 5), (5, true));
        for ms in 1..=2_000 {
            assert_eq!(restraint.look(at(ms), port, &pool), Look::Held);
        }
        kept.into_iter().for_each(|tag| pool.give_back(tag));
        assert_eq!(restraint.look(at(2_001), port, &pool), Look::Freed);
        assert_eq!(restraint.lost(at(2_400), 7), (2, true));
        assert_eq!(restraint.lost(at(2_500), 8), (1, false));
    }
}
