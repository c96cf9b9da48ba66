//! When a broken promise is excused: from a fault that was injected until the recovery from it must be over.
//!
//! The system has no say in it, but for one thing: how many slots it sent to all ports of a switch, because
//! an address was contested ([`super::Flooded`]). The bounds are those of theory.md §6.5 with this segment's
//! timers; two faults at once may take twice the longer (row 51 of the fault table).

use super::Flooded;
use crate::world::WILL_LASTS;
use rota_admission::Timers;
use rota_proto::{MediumKind, Settings};
use rota_units::{Instant, Span};

/// How long recovery may take on one segment: what admission computes for its timers, to the nanosecond. The
/// proofs are in `specs/rether.md`, "Recovery bounds".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    timers: Timers,
    trt: Span,
    hop_timeout: Span,
    death: Span,
    switch: Span,
    join: Span,
    one_way: Span,
    /// R(0), the shortest of all.
    shortest: Span,
    /// On a shared wire what repairs a loss collides as well; no paper bounds that, so two cycles.
    collides: Span,
    /// On a link there is no token: so long after one end has died or was cut off the other one knows it,
    /// and so long after it comes back both have met.
    link: Option<Span>,
}

impl Recovery {
    /// The bounds for these settings and so many stations.
    pub fn new(settings: &Settings, stations: usize) -> Self {
        let collides = if settings.half_duplex { settings.trt * 2 } else { Span::ZERO };
        let timers = settings.timers(u16::try_from(stations).unwrap_or(u16::MAX));
        Self {
            shortest: timers.after_silent_crash(0, true) + collides,
            timers,
            trt: settings.trt,
            hop_timeout: settings.hop_timeout,
            death: settings.death_timeout,
            switch: settings.switch_timeout(255) * (u64::from(settings.switch_tries) + 1),
            join: settings.join_interval,
            link: (settings.medium.medium == MediumKind::Link).then(|| link_notice(settings)),
            one_way: settings.delay_max + collides,
            collides,
        }
    }

    /// Token circulating again after the `nth` loss of one token in a row, from 1: it is sent again ever
    /// more rarely, and behind the death timer a claim decides.
    pub fn token_loss(&self, nth: u32) -> Span {
        if self.link.is_some() {
            return Span::ZERO;
        }
        let waits: Span = (0..nth.min(64)).map(|try_| self.hop_timeout * (1 << try_.min(4))).sum();
        if waits >= self.death {
            return self.crash(0);
        }
        self.hop_timeout * (1 << nth.saturating_sub(1).min(4)) + self.one_way
    }

    /// What any silence takes: asked for after every event.
    pub fn shortest(&self) -> Span {
        self.shortest
    }

    /// … after the last of any number of faults, of whose victims `dead` are silent: T_w + claim + W + h.
    pub fn crash(&self, dead: u64) -> Span {
        if let Some(notice) = self.link {
            return notice;
        }
        let dead = u16::try_from(dead).unwrap_or(u16::MAX);
        self.timers.after_silent_crash(dead, true) + self.collides
    }

    /// … after the first copy of a last will, of which all living stations have heard a copy.
    pub fn will(&self) -> Span {
        self.timers.after_will(0) + self.one_way + WILL_LASTS + self.collides
    }

    /// One claim with its drain.
    pub fn round(&self, dead: u64) -> Span {
        self.timers.claim() + self.timers.drain(u16::try_from(dead).unwrap_or(u16::MAX), true)
    }

    /// … plain Ethernet at a station that missed the switch back to it.
    pub fn lost_switch_back(&self) -> Span {
        self.timers.after_lost_switch_back() + self.collides
    }

    /// … after a station died while the mode was being switched: who waits for it waits for all its tries.
    pub fn switch_crash(&self, dead: u64) -> Span {
        let switch = if self.link.is_some() { Span::ZERO } else { self.switch };
        switch + self.crash(dead)
    }

    /// One generation everywhere after two parts can hear each other: the list of one within a cycle, or a
    /// claim that ends a silence, and a cycle more until its token has been everywhere.
    pub fn meeting(&self) -> Span {
        self.timers.after_merge() + self.collides
    }

    /// The same where their keys differ.
    pub fn meeting_of_strangers(&self) -> Span {
        self.timers.after_merge_of_strangers() + self.collides * 5
    }

    /// What a hop may take beyond the time that it is due.
    pub fn hop(&self) -> Span {
        self.one_way
    }

    /// One ring again after parts with `stations` in all have met.
    pub fn merge(&self, stations: u64) -> Span {
        self.crash(stations) + self.trt
    }

    /// All agree again after the last recovery is over; `joins` where that takes a station to be let in.
    pub fn settled(&self, stations: u64, joins: bool) -> Span {
        let known = self.trt * 33 + self.crash(stations) * 2;
        if joins { known + self.switch + self.join * 60 } else { known }
    }

    /// True if the segment is a link.
    pub fn is_of_link(&self) -> bool {
        self.link.is_some()
    }

    /// From the token's return to a unit in its slot: the rest of this cycle and the next. On a link from the
    /// end of a stall on: a unit that it held up takes the slot of the next one, and another one is skipped.
    pub fn slot(&self) -> Span {
        self.trt * 2
    }
}

/// Until one end of a link has noticed that the other one is gone, with a channel between them, and three
/// hellos of a station that looks for its peer.
fn link_notice(settings: &Settings) -> Span {
    let hello = settings.death_timeout.div_down(5).max(settings.trt.div_down(2));
    settings.death_timeout.max(hello * 3) + settings.join_interval * 3
}

/// For whom a window counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The whole segment.
    All,
    /// Units from one host to another.
    Pair(usize, usize),
}

/// The windows of one run, in the order of their beginnings.
#[derive(Debug, Default)]
pub struct Windows {
    all: Vec<(Instant, Instant)>,
    pairs: Vec<(Instant, Instant, usize, usize)>,
    /// What nobody asked admission for: from, to, and how much of each cycle it takes.
    burdens: Vec<(Instant, Instant, Span)>,
    /// The slots that take longer than they are charged.
    pub(crate) flooded: Flooded,
    /// Until when stations may be in two rings that have not noticed each other.
    pub(crate) merging_until: Instant,
    longest: Span,
    closed: bool,
}

impl Windows {
    /// No windows yet; when `closed`, there will be none, whatever goes wrong.
    pub(crate) fn new(closed: bool) -> Self {
        Self { closed, ..Self::default() }
    }

    /// Excuses what meets the time from `begin` to `begin + span`.
    pub fn open(&mut self, begin: Instant, span: Span, scope: Scope) {
        if self.closed {
            return;
        }
        match scope {
            Scope::Pair(from, to) => self.pairs.push((begin, begin + span, from, to)),
            Scope::All => self.open_all(begin, span),
        }
    }

    fn open_all(&mut self, begin: Instant, span: Span) {
        match self.all.last_mut() {
            Some((_, end)) if begin <= *end => {
                // A fault inside another's recovery: the longer, twice.
                let both = span.max(self.longest) * 2;
                (*end, self.longest) = ((*end).max(begin + both), span.max(self.longest));
            }
            _ => {
                self.longest = span;
                self.all.push((begin, begin + span));
            }
        }
    }

    /// A fault that goes on, frame by frame, is no new one inside another's recovery: `span` behind `begin`
    /// is excused, and nothing is doubled.
    pub fn go_on(&mut self, begin: Instant, span: Span) {
        match self.all.last_mut() {
            _ if self.closed => {}
            Some((_, end)) if begin <= *end => *end = (*end).max(begin + span),
            _ => self.open_all(begin, span),
        }
    }

    /// From `begin` for `span` somebody sends, without a token, so much in each cycle. That is no excuse.
    pub fn burden(&mut self, begin: Instant, span: Span, each_cycle: Span) {
        self.burdens.push((begin, begin + span, each_cycle));
    }

    /// The most that was sent without a token in any cycle from `begin` to `end`.
    pub fn burden_of(&self, begin: Instant, end: Instant) -> Span {
        let meets = |of: &&(Instant, Instant, Span)| of.0 <= end && begin <= of.1;
        self.burdens.iter().filter(meets).map(|of| of.2).sum()
    }

    /// How many slots whose units leave at all ports began from `begin` on and before `end`.
    pub fn flooded_between(&self, begin: Instant, end: Instant) -> u64 {
        if self.closed { 0 } else { self.flooded.between(begin, end) }
    }

    /// Whether anything excuses what happened from `begin` to `end` between two hosts.
    pub fn excuse(&self, begin: Instant, end: Instant, from: usize, to: usize) -> bool {
        let meets = |window: &(Instant, Instant)| window.0 <= end && begin <= window.1;
        // Behind the window that began last before `end` all are later, before it all are over sooner.
        let at = self.all.partition_point(|window| window.0 <= end);
        let segment = at > 0 && meets(&self.all[at - 1]);
        segment
            || self.pairs.iter().rev().take(256).any(|(window_begin, window_end, one, other)| {
                (*one, *other) == (from, to) && meets(&(*window_begin, *window_end))
            })
    }

    /// True if any fault, of the segment or between any two hosts, meets the time from `begin` to `end`.
    pub fn touches(&self, begin: Instant, end: Instant) -> bool {
        self.excuse(begin, end, usize::MAX, usize::MAX)
            || self.pairs.iter().rev().take(256).any(|pair| pair.0 <= end && begin <= pair.1)
    }

    /// Whether the whole segment may be disturbed at `at`.
    pub fn cover(&self, at: Instant) -> bool {
        self.excuse(at, at, usize::MAX, usize::MAX)
    }

    /// How much of the time up to `now` was excused for all.
    pub fn total(&self, now: Instant) -> Span {
        self.all.iter().map(|(begin, end)| (*end).min(now).since(*begin)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_fault_in_a_window_doubles_it_and_a_pair_excuses_only_itself() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut windows = Windows::default();
        windows.open(at(10), Span::from_millis(10), Scope::All);
        assert!(windows.excuse(at(1), at(10), 0, 1) && !windows.cover(at(9)) && !windows.cover(at(21)));
        windows.open(at(15), Span::from_millis(4), Scope::All);
        assert!(windows.cover(at(35)) && !windows.cover(at(36)), "15 + 2 x 10");
        windows.open(at(50), Span::from_millis(1), Scope::Pair(2, 3));
        assert!(windows.excuse(at(40), at(60), 2, 3) && !windows.excuse(at(40), at(60), 3, 2));
        assert_eq!(windows.total(at(100)), Span::from_millis(25));
    }

    #[test]
    fn burdens_add_up_while_they_last_and_excuse_nothing() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut windows = Windows::default();
        windows.burden(at(10), Span::from_millis(10), Span::from_millis(2));
        windows.burden(at(15), Span::from_millis(10), Span::from_millis(3));
        assert_eq!(windows.burden_of(at(0), at(9)), Span::ZERO);
        assert_eq!(windows.burden_of(at(0), at(12)), Span::from_millis(2));
        assert_eq!(windows.burden_of(at(18), at(30)), Span::from_millis(5));
        assert_eq!(windows.burden_of(at(21), at(30)), Span::from_millis(3));
        assert!(!windows.cover(at(17)) && windows.total(at(100)) == Span::ZERO);
    }

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    #[test]
    fn a_window_excuses_what_meets_its_first_or_last_instant() {
        let mut windows = Windows::default();
        windows.open(at(10), ms(10), Scope::All);
        windows.open(at(40), ms(10), Scope::All);
        windows.open(at(70), ms(10), Scope::Pair(1, 2));
        let table = [
            (0, 9, false),
            (0, 10, true),
            (12, 13, true),
            (20, 30, true),
            (21, 39, false),
            (21, 40, true),
            (50, 60, true),
            (51, 60, false),
            (60, 69, false),
            (60, 70, true),
            (80, 99, true),
            (81, 99, false),
        ];
        for (begin, end, excused) in table {
            assert_eq!(windows.excuse(at(begin), at(end), 1, 2), excused, "{begin} to {end}");
            let for_all = excused && end < 70 && begin <= 50;
            assert_eq!(windows.excuse(at(begin), at(end), 2, 1), for_all, "{begin} to {end}");
            assert_eq!(windows.excuse(at(begin), at(end), 1, 1), for_all, "{begin} to {end}");
        }
        assert_eq!([10, 20, 21, 75].map(|now| windows.cover(at(now))), [true, true, false, false]);
        assert_eq!([5, 15, 30, 45, 99].map(|now| windows.total(at(now))), [0, 5, 10, 15, 20].map(ms));
    }

    /// The second of two faults, the third and so on: when the window ends.
    #[test]
    fn faults_in_one_window_take_twice_the_longer() {
        let ends = |faults: &[(u64, u64)]| {
            let mut windows = Windows::default();
            faults.iter().for_each(|(begin, span)| windows.open(at(*begin), ms(*span), Scope::All));
            (windows.all.len(), windows.all.last().map(|window| window.1.as_nanos() / 1_000_000))
        };
        assert_eq!(ends(&[(10, 10), (20, 4)]), (1, Some(40)), "at its last instant");
        assert_eq!(ends(&[(10, 10), (21, 4)]), (2, Some(25)), "behind it");
        assert_eq!(ends(&[(10, 4), (12, 10)]), (1, Some(32)), "the second is the longer");
        assert_eq!(ends(&[(10, 10), (12, 1), (13, 3)]), (1, Some(33)), "the longest of all so far");
        assert_eq!(ends(&[(10, 10), (12, 12), (13, 3), (14, 0)]), (1, Some(38)), "13 and 14 + 2 x 12");
        assert_eq!(ends(&[(10, 100), (120, 1), (121, 1)]), (2, Some(123)), "a new window knows no older");
        assert_eq!(ends(&[(10, 30), (10, 1), (11, 0)]), (1, Some(71)), "no end comes nearer");
    }

    #[test]
    fn what_goes_on_doubles_nothing_and_a_closed_world_excuses_nothing() {
        let mut windows = Windows::default();
        windows.go_on(at(10), ms(5));
        windows.go_on(at(15), ms(5));
        windows.go_on(at(16), ms(1));
        assert!(windows.cover(at(20)) && !windows.cover(at(21)));
        windows.go_on(at(21), ms(5));
        assert_eq!((windows.all.len(), windows.total(at(99))), (2, ms(15)));
        let mut closed = Windows::new(true);
        closed.go_on(at(10), ms(5));
        closed.open(at(10), ms(5), Scope::All);
        closed.open(at(10), ms(5), Scope::Pair(0, 1));
        closed.flooded.sent(at(10), 0, &[3, 0, 0, 0, 0, 0, 0], Some(rota_wire::Kind::Data));
        assert!(!closed.excuse(at(0), at(99), 0, 1));
        assert_eq!((closed.total(at(99)), closed.flooded_between(at(0), at(99))), (Span::ZERO, 0));
    }

    /// Only the newest 256 pairs are looked at.
    #[test]
    fn a_pair_is_excused_by_its_own_windows_of_late() {
        let mut windows = Windows::default();
        windows.open(at(10), ms(1), Scope::Pair(0, 1));
        (0..255).for_each(|_| windows.open(at(20), ms(1), Scope::Pair(5, 6)));
        assert!(windows.excuse(at(10), at(10), 0, 1));
        windows.open(at(20), ms(1), Scope::Pair(5, 6));
        assert!(!windows.excuse(at(10), at(10), 0, 1));
    }

    #[test]
    fn a_flooded_slot_counts_from_the_first_instant_of_a_span_and_not_at_its_last() {
        let mut windows = Windows::default();
        for now in [20, 25] {
            windows.flooded.sent(at(now), 0, &[3, 0, 0, 0, 0, now as u8, 0], Some(rota_wire::Kind::Data));
        }
        let table =
            [(15, 20, 0), (15, 21, 1), (20, 25, 1), (20, 26, 2), (21, 99, 1), (25, 25, 0), (26, 99, 0)];
        for (begin, end, count) in table {
            assert_eq!(windows.flooded_between(at(begin), at(end)), count, "{begin} to {end}");
        }
    }

    #[test]
    fn a_burden_meets_what_touches_it_at_either_end() {
        let mut windows = Windows::default();
        windows.burden(at(10), ms(10), ms(2));
        let table = [(0, 9, 0), (0, 10, 2), (20, 30, 2), (21, 30, 0)];
        for (begin, end, burden) in table {
            assert_eq!(windows.burden_of(at(begin), at(end)), ms(burden), "{begin} to {end}");
        }
    }

    /// Ten megabits a second, five stations, the product's timers: hops are tried again after 5, 10, 20, 40
    /// and 80 ms, and a silence of 500 ms is a death.
    #[test]
    fn each_bound_of_a_recovery_is_made_of_its_own_timers() {
        let mut settings =
            Settings::ethernet(rota_units::BitRate::from_mbit(10), rota_units::Octets::new(150_000));
        let d = settings.delay_max;
        for half_duplex in [false, true] {
            settings.half_duplex = half_duplex;
            let recovery = Recovery::new(&settings, 5);
            let (timers, trt) = (settings.timers(5), settings.trt);
            let collides = if half_duplex { trt * 2 } else { Span::ZERO };
            let hop = settings.hop_timeout;
            let lost = [1, 2, 4, 8, 16, 16, 16, 16, 16].map(|times| hop * times + d + collides);
            assert_eq!([1, 2, 3, 4, 5, 6, 7, 8, 9].map(|nth| recovery.token_loss(nth)), lost);
            // Ten tries take 555 ms together, nine take 475.
            let crash = |dead| timers.after_silent_crash(dead, true) + collides;
            assert_eq!((recovery.token_loss(10), recovery.token_loss(0)), (crash(0), hop + d + collides));
            assert_eq!((recovery.shortest(), recovery.hop()), (crash(0), d + collides));
            assert_eq!([0, 1, 4].map(|dead| recovery.crash(dead)), [0, 1, 4].map(crash));
            assert_eq!(recovery.merge(5), crash(5) + trt);
            assert_eq!(recovery.slot(), trt * 2);
            assert_eq!(recovery.round(3), timers.claim() + timers.drain(3, true));
            assert_eq!(recovery.will(), timers.after_will(0) + d + collides + WILL_LASTS + collides);
            assert_eq!(recovery.lost_switch_back(), timers.after_lost_switch_back() + collides);
            assert_eq!(recovery.meeting(), timers.after_merge() + collides);
            assert_eq!(recovery.meeting_of_strangers(), timers.after_merge_of_strangers() + collides * 5);
            let switch = settings.switch_timeout(255) * (u64::from(settings.switch_tries) + 1);
            assert_eq!(recovery.switch_crash(2), switch + crash(2));
            let settled = trt * 33 + crash(5) * 2;
            let joined = settled + switch + settings.join_interval * 60;
            assert_eq!((recovery.settled(5, false), recovery.settled(5, true)), (settled, joined));
        }
    }
}
