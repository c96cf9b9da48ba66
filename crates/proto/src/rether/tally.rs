//! What a station has sent and heard, for monitors: nothing here changes what a machine does.

use rota_units::{Instant, Span};
use rota_wire::{Class, Load};

/// Cycles by how long they lasted, in tenths of the target; the last place holds all longer ones.
pub const ROTATION_PLACES: usize = 16;

/// How long cycles lasted, from one beginning to the next as this station saw them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// The newest whole one.
    pub last: Span,
    /// The longest ever.
    pub longest: Span,
    /// The longest of the newest interval between two reports.
    pub recent: Span,
    /// How many lasted so many tenths of the target, rounded down.
    pub tenths: [u64; ROTATION_PLACES],
    growing: Span,
    began: Option<(Instant, u32)>,
}

impl Rotation {
    /// A cycle begins; what is heard of it again says nothing new. Only neighbours are measured: where a
    /// beginning was missed, nobody knows how long its cycle was.
    pub(super) fn begin(&mut self, at: Instant, cycle: u32, trt: Span) {
        if self.began.is_some_and(|(_, known)| known == cycle) {
            return;
        }
        if let Some((began, known)) = self.began.replace((at, cycle))
            && known.wrapping_add(1) == cycle
        {
            let span = at.since(began);
            self.last = span;
            self.longest = self.longest.max(span);
            self.growing = self.growing.max(span);
            let tenth = (span * 10).count_down(trt) as usize;
            self.tenths[tenth.min(ROTATION_PLACES - 1)] += 1;
        }
    }

    /// The ring is over: the next cycle is no neighbour of the last.
    pub(super) fn stop(&mut self) {
        (self.began, self.last) = (None, Span::ZERO);
    }

    pub(crate) fn next_interval(&mut self) {
        self.recent = std::mem::take(&mut self.growing);
    }
}

/// All that is counted of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Sent, by [`Class`]; of the host's own frames only those that waited for the token.
    pub sent: [Load; Class::ALL.len()],
    /// Heard and proven, by [`Class`].
    pub heard: [Load; Class::ALL.len()],
    /// The host's frames and link control's, sent under the token, by level.
    pub levels: [Load; 8],
    /// How long cycles lasted.
    pub rotation: Rotation,
}

impl Tally {
    pub(super) fn count_sent(&mut self, class: Class, octets: usize) {
        self.sent[class as usize].add(octets as u64);
    }

    pub(super) fn count_heard(&mut self, class: Class, octets: usize) {
        self.heard[class as usize].add(octets as u64);
    }

    pub(super) fn count_host(&mut self, level: usize, octets: u16) {
        self.count_sent(Class::Ordinary, usize::from(octets));
        self.count_level(level, octets);
    }

    pub(super) fn count_level(&mut self, level: usize, octets: u16) {
        self.levels[level.min(7)].add(u64::from(octets));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_neighbouring_cycles_are_measured() {
        let ms = Span::from_millis;
        let at = |millis| Instant::ZERO + ms(millis);
        let mut rotation = Rotation::default();
        for (millis, cycle) in [(100, 7), (101, 7), (130, 8), (165, 9), (230, 11), (264, 12)] {
            rotation.begin(at(millis), cycle, ms(33));
        }
        assert_eq!((rotation.last, rotation.longest), (ms(34), ms(35)));
        assert_eq!((rotation.tenths[9], rotation.tenths[10]), (1, 2));
        rotation.next_interval();
        assert_eq!(rotation.recent, ms(35));
        rotation.stop();
        rotation.begin(at(900), 13, ms(33));
        assert_eq!(rotation.longest, ms(35), "a pause is no cycle");
    }
}
