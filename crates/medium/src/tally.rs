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
    pub(crate) fn begin(&mut self, at: Instant, cycle: u32, trt: Span) {
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
    pub(crate) fn stop(&mut self) {
        (self.began, self.last) = (None, Span::ZERO);
    }

    pub(crate) fn next_interval(&mut self) {
        self.recent = std::mem::take(&mut self.growing);
    }
}

/// The frames that a medium has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediumTally {
    /// Sent, by [`Class`].
    pub sent: [Load; Class::ALL.len()],
    /// Heard and proven, by [`Class`].
    pub heard: [Load; Class::ALL.len()],
    /// How long cycles lasted.
    pub rotation: Rotation,
}

impl MediumTally {
    pub(crate) fn count_sent(&mut self, class: Class, octets: usize) {
        self.sent[class as usize].add(octets as u64);
    }

    pub(crate) fn count_heard(&mut self, class: Class, octets: usize) {
        self.heard[class as usize].add(octets as u64);
    }
}

/// The counters of a medium. Those marked (zero) must stay zero on a healthy segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that were not ours to read or malformed.
    pub frames_malformed: u64,
    /// Frames whose tag no key of ours proves (zero).
    pub frames_unproven: u64,
    /// Frames seen before, or of a replaced boot.
    pub frames_replayed: u64,
    /// Tokens accepted.
    pub tokens_accepted: u64,
    /// Tokens not newer than one seen: duplicates and retransmissions.
    pub tokens_stale: u64,
    /// Tokens whose receive stamp was missing or older than a lease (zero).
    pub tokens_expired: u64,
    /// Tokens sent again because the successor was silent.
    pub tokens_retransmitted: u64,
    /// Holds that ended because the lease did (zero).
    pub leases_expired: u64,
    /// Claims begun.
    pub claims: u64,
    /// Tokens made anew after a claim.
    pub tokens_regenerated: u64,
    /// Stations declared dead.
    pub stations_declared_dead: u64,
    /// Cycles begun here.
    pub cycles: u64,
    /// Cycles that were skipped because a cycle lasted longer than its period (zero).
    pub cycles_skipped: u64,
    /// Rests of an idle token here.
    pub rests: u64,
    /// Requests that woke a resting token here.
    pub requests: u64,
    /// Switches to token mode.
    pub switches: u64,
    /// Data fragments of a generation or station that has no right to send (zero).
    pub fragments_policed: u64,
    /// Data fragments of a channel that is not, or no longer, received here.
    pub fragments_unknown: u64,
    /// Non-real-time visits refused because the frame did not fit the cycle.
    pub nrt_refusals: u64,
    /// Frames and announcements of stations that do not take part.
    pub stations_refused: u64,
    /// Claims that a live station caused: it did not take the token up, or lost it.
    pub strikes: u64,
    /// Frames of generations further ahead than any honest count (zero).
    pub jumps_refused: u64,
    /// Tokens, lists and grants that contradict the segment's settings (zero).
    pub tokens_unsound: u64,
    /// Addresses of stations that strangers began to use.
    pub addresses_contested: u64,
    /// How often lost units made this station have the others use its group address for some seconds.
    pub addresses_doubted: u64,
    /// Answers, notices and newcomers beyond the budgets of actions that others can cause.
    pub over_budget: u64,
    /// Questions to senders whose true frames may count as replays here.
    pub senders_behind: u64,
    /// Stations that this one has left out because they kept the token or sent outside their slots.
    pub hogs: u64,
    /// Tokens that this station sent to all, because tokens were late.
    pub tokens_audited: u64,
    /// Last wills of stations whose process has ended.
    pub wills: u64,
    /// Wills under an older key, and copies of one that was known.
    pub wills_void: u64,
    /// Wills of this station, heard by itself (zero).
    pub wills_own: u64,
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
