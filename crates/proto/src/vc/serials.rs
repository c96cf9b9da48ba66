//! The serial numbers of handshakes: each opens one circuit at most, and no station can use up those of
//! another one.
//!
//! A station that has opened a circuit has numbers of its own from then on. Before that its numbers come from
//! a counter that all strangers share, and nothing is kept of it: first steps take no memory. So one station
//! makes its own numbers old, however many it uses.

/// Stations that have numbers of their own: more than a segment has.
const KNOWN_MAX: usize = 256;
/// Numbers of a station for which it is known whether they have opened a circuit. Older ones count as used.
const WINDOW: u64 = 64;

/// A station that has opened a circuit.
#[derive(Clone, Copy, Debug)]
struct Known {
    peer: u64,
    /// All up to here are used.
    floor: u64,
    /// The newest number that it was given.
    given: u64,
    /// The greatest that has opened a circuit.
    top: u64,
    /// Bit n: the one that is n below `top` has.
    bits: u64,
    /// When it last opened one, in circuits of this listener.
    touched: u64,
}

impl Known {
    const fn has(&self, serial: u64) -> bool {
        if serial <= self.floor {
            return true;
        }
        match self.top.checked_sub(serial) {
            None => false,
            Some(below) => below >= WINDOW || self.bits >> below & 1 == 1,
        }
    }

    const fn note(&mut self, serial: u64) {
        if let Some(above) = serial.checked_sub(self.top) {
            self.bits = if above < WINDOW { self.bits << above } else { 0 };
            self.top = serial;
        }
        let below = self.top - serial;
        if below < WINDOW {
            self.bits |= 1 << below;
        }
    }
}

/// The numbers of one listener.
#[derive(Clone, Debug)]
pub(super) struct Serials {
    /// The newest number that a stranger was given.
    fresh: u64,
    /// No station that is forgotten had a greater one.
    forgotten: u64,
    opened: u64,
    known: Vec<Known>,
}

impl Serials {
    /// Takes all its memory.
    pub(super) fn new() -> Self {
        Self { fresh: 0, forgotten: 0, opened: 0, known: Vec::with_capacity(KNOWN_MAX) }
    }

    /// A number for a first step of that station.
    pub(super) fn give(&mut self, peer: u64) -> u64 {
        let known = self.known.iter_mut().find(|known| known.peer == peer);
        let given = known.map_or(&mut self.fresh, |known| &mut known.given);
        *given += 1;
        *given
    }

    /// True if no circuit opens by that number any more.
    pub(super) fn has(&self, peer: u64, serial: u64) -> bool {
        let known = self.known.iter().find(|known| known.peer == peer);
        known.map_or(serial <= self.forgotten, |known| known.has(serial))
    }

    /// A circuit opens by that number.
    pub(super) fn note(&mut self, peer: u64, serial: u64) {
        debug_assert!(!self.has(peer, serial), "{serial} was used");
        self.opened += 1;
        let touched = self.opened;
        if let Some(known) = self.known.iter_mut().find(|known| known.peer == peer) {
            known.note(serial);
            known.touched = touched;
            return;
        }
        if self.known.len() == KNOWN_MAX {
            self.forget_one();
        }
        let (floor, given) = (self.forgotten, self.fresh.max(serial));
        self.known.push(Known { peer, floor, given, top: serial, bits: 1, touched });
    }

    /// Forgets the station that has opened nothing for the longest time.
    fn forget_one(&mut self) {
        let oldest = (0..self.known.len()).min_by_key(|at| self.known[*at].touched);
        if let Some(at) = oldest {
            let gone = self.known.swap_remove(at);
            self.forgotten = self.forgotten.max(gone.given);
            self.fresh = self.fresh.max(self.forgotten);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One station that opened circuits by 4,096 numbers made the numbers of all others old.
    #[test]
    fn a_station_makes_its_own_numbers_old_and_nobody_elses() {
        let mut serials = Serials::new();
        let pending = serials.give(1);
        for _ in 0..10_000 {
            let serial = serials.give(2);
            assert!(!serials.has(2, serial));
            serials.note(2, serial);
            assert!(serials.has(2, serial), "each opens one circuit");
        }
        assert!(!serials.has(1, pending));
        serials.note(1, pending);
        assert!(serials.has(1, pending));
        // Among its own the newest 64 are told apart.
        let own: Vec<u64> = (0..70).map(|_| serials.give(1)).collect();
        serials.note(1, own[69]);
        assert!(serials.has(1, own[5]) && !serials.has(1, own[6]));
        serials.note(1, own[6]);
        assert!(serials.has(1, own[6]) && !serials.has(1, own[7]));
    }

    #[test]
    fn strangers_take_no_memory_and_a_station_that_is_forgotten_uses_no_number_twice() {
        let mut serials = Serials::new();
        for stranger in 0..100_000 {
            serials.give(stranger);
        }
        assert!(serials.known.is_empty());
        let first = serials.give(0);
        serials.note(0, first);
        let waiting = serials.give(0);
        for peer in 1..=KNOWN_MAX as u64 {
            let serial = serials.give(peer);
            serials.note(peer, serial);
        }
        assert_eq!(serials.known.len(), KNOWN_MAX);
        assert!(serials.has(0, first) && serials.has(0, waiting), "it is forgotten, and begins anew");
        let again = serials.give(0);
        assert!(again > waiting && !serials.has(0, again));
        serials.note(0, again);
        assert!(serials.has(0, first) && serials.has(0, waiting) && serials.has(0, again));
    }
}
