//! Unproven frames. The kernel drops the frames of a source that sends many of them, for a while. If all
//! sources together send too many, only stations are heard until the window ends.

use rota_driver::device::{SHUT_OUT_MAX, ShutOut};
use rota_driver::filter::{INCARNATION_AT, KNOWN_MAX, LINK_VERSION};
use rota_units::{Instant, Span};
use rota_wire::MacAddr;

const _: () = assert!(INCARNATION_AT == rota_wire::INCARNATION_AT, "the kernel reads it there");
const _: () = assert!(LINK_VERSION == rota_wire::LINK_VERSION, "the kernel looks for it");

/// The time over which frames are counted.
const WINDOW: Span = Span::from_millis(100);
/// Too many unproven frames of one source in a window. A station with another key sends one a second.
const TOO_MANY: u32 = 64;
/// Too many unproven frames of all sources in a window: 5,120 a second cost 2.5 % of a core.
const TOO_MANY_OF_ALL: u32 = 8 * TOO_MANY;
/// How long a source is shut out.
const SHUT_FOR: Span = Span::from_millis(5_000);
/// Unproven frames that the event log keeps, and the time in which it keeps no more: 64 in each 100 ms would
/// overwrite its 1,000 events within 1.6 s.
const LOGGED: u32 = 64;
const LOG_WINDOW: Span = Span::from_millis(10_000);
/// How long status reports that the door was closed.
const TOLD_FOR: Span = Span::from_millis(5_000);

/// The sources of the newest window, and those that are shut out.
#[derive(Debug)]
pub(crate) struct Garbage {
    began: Instant,
    sources: Vec<(MacAddr, u32)>,
    all: u32,
    /// The same for the event log.
    log_began: Instant,
    log_all: u32,
    shut: Vec<ShutOut>,
    /// When each is heard again.
    until: Vec<Instant>,
    /// True if only stations are heard, and when that last began.
    closed: bool,
    closed_at: Option<Instant>,
    known: Vec<u32>,
}

impl Garbage {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::ZERO,
            sources: Vec::with_capacity(SHUT_OUT_MAX),
            all: 0,
            log_began: Instant::ZERO,
            log_all: 0,
            shut: Vec::with_capacity(SHUT_OUT_MAX),
            until: Vec::with_capacity(SHUT_OUT_MAX),
            closed: false,
            closed_at: None,
            known: Vec::with_capacity(KNOWN_MAX),
        }
    }

    /// The sources that are shut out now.
    pub(crate) fn shut_out(&self) -> &[ShutOut] {
        &self.shut
    }

    /// True if only stations are heard.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// True if strangers were too many to tell apart a short time ago.
    pub(crate) fn was_closed(&self, now: Instant) -> bool {
        self.closed_at.is_some_and(|at| now.since(at) < TOLD_FOR)
    }

    /// The frames that the device is to drop: those of these sources and, while the door is closed, of all
    /// but these incarnations.
    pub(crate) fn door(&mut self, known: impl Iterator<Item = u32>) -> (&[ShutOut], Option<&[u32]>) {
        self.known.clear();
        self.known.extend(known.take(KNOWN_MAX));
        (&self.shut, self.closed.then_some(&self.known))
    }

    /// True if the kernel passes on the frames of all.
    pub(crate) fn is_quiet(&self) -> bool {
        !self.closed && self.shut.is_empty()
    }

    /// True if the door is closed and lets in others than these.
    pub(crate) fn is_stale(&self, known: impl Iterator<Item = u32>) -> bool {
        self.closed && !known.take(KNOWN_MAX).eq(self.known.iter().copied())
    }

    /// True if the event log has had its share of unproven frames.
    pub(crate) fn is_logged_enough(&self, now: Instant) -> bool {
        self.log_all >= LOGGED && now.since(self.log_began) < LOG_WINDOW
    }

    /// Counts an unproven frame from this address; `station` is the incarnation of the station with this
    /// address, which stays audible. True when the door changes.
    pub(crate) fn count(&mut self, now: Instant, from: MacAddr, station: Option<u32>) -> bool {
        if now.since(self.began) >= WINDOW {
            (self.began, self.all) = (now, 0);
            self.sources.clear();
        }
        self.all += 1;
        if now.since(self.log_began) >= LOG_WINDOW {
            (self.log_began, self.log_all) = (now, 0);
        }
        self.log_all = self.log_all.saturating_add(1);
        let closes = self.all == TOO_MANY_OF_ALL;
        if closes {
            (self.closed, self.closed_at) = (true, Some(now));
        }
        self.shuts_out(now, from, station) || closes
    }

    fn shuts_out(&mut self, now: Instant, from: MacAddr, station: Option<u32>) -> bool {
        if self.sources.iter().all(|(mac, _)| *mac != from) && self.sources.len() < SHUT_OUT_MAX {
            self.sources.push((from, 0));
        }
        let Some((_, count)) = self.sources.iter_mut().find(|(mac, _)| *mac == from) else { return false };
        *count += 1;
        if *count != TOO_MANY {
            return false;
        }
        // The source uses an incarnation that passes: the station's own, or an earlier one.
        if let Some(shut) = self.shut.iter_mut().find(|shut| shut.mac == from.0) {
            return std::mem::replace(&mut shut.but, station) != station;
        }
        if self.shut.len() == SHUT_OUT_MAX {
            return false;
        }
        self.shut.push(ShutOut { mac: from.0, but: station });
        self.until.push(now + SHUT_FOR);
        true
    }

    /// Hears those again whose time is over; true when the door changes.
    pub(crate) fn release(&mut self, now: Instant) -> bool {
        let before = self.shut.len();
        while let Some(at) = self.until.iter().position(|until| now >= *until) {
            self.until.swap_remove(at);
            self.shut.swap_remove(at);
        }
        let opens = self.closed && now.since(self.began) >= WINDOW;
        self.closed &= !opens;
        opens || self.shut.len() != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(1_000_000_000) + Span::from_micros(us)
    }

    /// As many frames of one source at one moment as shut it out.
    fn flood(garbage: &mut Garbage, us: u64, source: u8) {
        for _ in 0..TOO_MANY {
            garbage.count(at(us), MacAddr([source; 6]), None);
        }
    }

    /// What a stranger sent in 1.6 s overwrote the whole log.
    #[test]
    fn the_log_keeps_the_first_frames_of_each_ten_seconds() {
        let mut garbage = Garbage::new();
        let heard = |garbage: &mut Garbage, us| {
            let kept = !garbage.is_logged_enough(at(us));
            garbage.count(at(us), MacAddr([6; 6]), Some(9));
            kept
        };
        let kept = (0..25_000).filter(|ms| heard(&mut garbage, ms * 1_000)).count();
        assert_eq!(kept, 3 * 64, "in 25 s");
    }

    #[test]
    fn a_flood_is_shut_out_for_five_seconds_and_a_trickle_is_not() {
        let mut garbage = Garbage::new();
        let (flood, trickle) = (MacAddr([6; 6]), MacAddr([4; 6]));
        let shut = (0..100).filter(|frame| garbage.count(at(frame * 7), flood, Some(9))).count();
        assert_eq!((shut, garbage.shut_out()), (1, &[ShutOut { mac: [6; 6], but: Some(9) }][..]));
        for frame in 0..1_000 {
            assert!(!garbage.count(at(1_000 + frame * 2_000), trickle, None), "500 a second");
        }
        assert!(!garbage.release(at(4_900_000)) && garbage.release(at(5_100_000)));
        assert!(garbage.shut_out().is_empty());
    }

    #[test]
    fn no_more_are_shut_out_than_a_device_can() {
        let mut garbage = Garbage::new();
        for source in 0..100_u8 {
            flood(&mut garbage, 200_000 * u64::from(source), source);
        }
        assert_eq!(garbage.shut_out().len(), SHUT_OUT_MAX);
    }

    #[test]
    fn each_source_is_heard_again_when_its_own_time_is_over() {
        let mut garbage = Garbage::new();
        for source in 0..4_u8 {
            flood(&mut garbage, 1_000_000 * u64::from(source), source);
        }
        for source in 0..4_u8 {
            let over = 5_000_000 + 1_000_000 * u64::from(source);
            assert!(!garbage.release(at(over - 1)) && garbage.release(at(over)), "{source}");
            let mut shut: Vec<u8> = garbage.shut_out().iter().map(|shut| shut.mac[0]).collect();
            shut.sort_unstable();
            assert_eq!(shut, (source + 1..4).collect::<Vec<_>>());
        }
    }

    /// Each window one more place was taken, until no other flood could be shut out.
    #[test]
    fn a_source_takes_one_place_and_its_station_is_heard_under_its_newest_name() {
        let mut garbage = Garbage::new();
        let from = MacAddr([6; 6]);
        for window in 0..40 {
            for _ in 0..2 * TOO_MANY {
                garbage.count(at(100_000 * window), from, Some(if window < 20 { 9 } else { 10 }));
            }
            assert_eq!(garbage.shut_out().len(), 1);
        }
        assert_eq!(garbage.shut_out()[0].but, Some(10));
    }

    #[test]
    fn a_flood_from_ever_new_addresses_closes_the_door_until_its_window_ends() {
        let mut garbage = Garbage::new();
        let flood = |garbage: &mut Garbage, us| {
            let from = |k: u32| MacAddr([2, 0, 0, 0, (k >> 8) as u8, k as u8]);
            (0..2 * TOO_MANY_OF_ALL).filter(|k| garbage.count(at(us), from(*k), None)).count()
        };
        assert_eq!(garbage.door([7, 8].into_iter()), (&[][..], None));
        assert_eq!(flood(&mut garbage, 0), 1);
        assert_eq!(garbage.door([7, 8].into_iter()), (&[][..], Some(&[7, 8][..])));
        assert!(garbage.is_stale([7, 8, 9].into_iter()) && !garbage.is_stale([7, 8].into_iter()));
        assert!(
            !garbage.release(at(99_000)) && garbage.release(at(100_000)) && !garbage.release(at(100_001))
        );
        assert_eq!(garbage.door([7, 8].into_iter()), (&[][..], None));
        assert!(garbage.was_closed(at(4_999_000)) && !garbage.was_closed(at(5_000_000)));
        assert_eq!(flood(&mut garbage, 200_000), 1, "and again in the next");
    }
}
