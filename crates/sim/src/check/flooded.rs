//! Slots whose units leave at all ports of a switch, since the receiver's address is contested: no slot is
//! charged for that (decision 014, *Price*). The token behind such a slot waits at its own port for the
//! slot's last frame, so each makes what follows later by one full frame at most.

use rota_units::Instant;
use rota_wire::{Kind, MacAddr};

/// When such slots began, oldest first.
#[derive(Debug, Default)]
pub struct Flooded {
    /// From which host to which address the last unit went, if it left at all ports.
    last: Option<(usize, MacAddr)>,
    slots: Vec<Instant>,
}

impl Flooded {
    /// A host has given a frame of ours to its card. Consecutive units to one group address are one slot, but
    /// not behind a new list.
    pub(crate) fn sent(&mut self, now: Instant, host: usize, frame: &[u8], kind: Option<Kind>) {
        match kind {
            Some(Kind::Data) => {}
            Some(Kind::List) => return self.last = None,
            _ => return,
        }
        let Some(to) = frame.first_chunk().map(|to| MacAddr(*to)) else { return };
        let slot = (to.0[0] & 1 == 1).then_some((host, to));
        if slot.is_some() && slot != self.last {
            self.slots.push(now);
        }
        self.last = slot;
    }

    /// How many began from `begin` on and before `end`: the first slot of a cycle begins with its list.
    pub(super) fn between(&self, begin: Instant, end: Instant) -> u64 {
        let before = |at: Instant| self.slots.partition_point(|slot| *slot < at) as u64;
        before(end).saturating_sub(before(begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeds 692264 and 730194 of the product's timers: the master's cycle was late by a frame that had left
    /// at all ports, and the rule did not reckon with it.
    #[test]
    fn consecutive_units_to_one_group_address_are_one_flooded_slot() {
        let at = Instant::from_nanos;
        let mut flooded = Flooded::default();
        let mut sent = |now: u64, host, to: u8, unit| {
            flooded.sent(at(now), host, &[to, 0, 0, 0, 0, unit, 0], Some(Kind::Data));
            flooded.between(at(0), at(now + 1))
        };
        assert_eq!((sent(1, 0, 2, 1), sent(2, 0, 3, 1), sent(3, 0, 3, 1)), (0, 1, 1), "own, group, group");
        assert_eq!((sent(4, 1, 3, 1), sent(5, 1, 3, 2), sent(6, 1, 2, 2), sent(7, 1, 3, 2)), (2, 3, 3, 4));
        flooded.sent(at(8), 2, &[0xFF; 14], Some(Kind::List));
        flooded.sent(at(9), 1, &[3, 0, 0, 0, 0, 2, 0], Some(Kind::Data));
        assert_eq!((flooded.between(at(0), at(10)), flooded.between(at(4), at(6))), (5, 2));
        assert_eq!(
            (flooded.between(at(2), at(4)), flooded.between(at(4), at(5))),
            (1, 1),
            "each in one cycle"
        );
        assert_eq!((flooded.between(at(6), at(7)), flooded.between(at(8), at(4))), (0, 0));
    }
}
