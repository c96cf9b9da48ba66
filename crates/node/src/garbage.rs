//! Frames that nothing proves, by the address they carry: who sends many is shut out in the kernel for a while,
//! so that a flood costs this host next to nothing.

use rota_driver::device::{SHUT_OUT_MAX, ShutOut};
use rota_units::{Instant, Span};
use rota_wire::MacAddr;

const _: () =
    assert!(rota_driver::filter::INCARNATION_AT == rota_wire::INCARNATION_AT, "the kernel reads it there");

/// Frames are counted for so long.
const WINDOW: Span = Span::from_millis(100);
/// So many of one source in a window are too many. A station with another key says less than one.
const TOO_MANY: u32 = 64;
/// For so long nothing more is heard of their source.
const SHUT_FOR: Span = Span::from_millis(5_000);

/// The sources of the newest window, and those that are shut out.
#[derive(Debug)]
pub(crate) struct Garbage {
    began: Instant,
    sources: Vec<(MacAddr, u32)>,
    shut: Vec<ShutOut>,
    /// When each is heard again.
    until: Vec<Instant>,
}

impl Garbage {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::ZERO,
            sources: Vec::with_capacity(SHUT_OUT_MAX),
            shut: Vec::with_capacity(SHUT_OUT_MAX),
            until: Vec::with_capacity(SHUT_OUT_MAX),
        }
    }

    /// Who is not heard now.
    pub(crate) fn shut_out(&self) -> &[ShutOut] {
        &self.shut
    }

    /// One more frame that nothing proves came from there; `station` is the incarnation of the station that has
    /// this address, which must be heard on. True when its source is to be shut out.
    pub(crate) fn count(&mut self, now: Instant, from: MacAddr, station: Option<u32>) -> bool {
        if now.since(self.began) >= WINDOW {
            self.began = now;
            self.sources.clear();
        }
        if self.sources.iter().all(|(mac, _)| *mac != from) && self.sources.len() < SHUT_OUT_MAX {
            self.sources.push((from, 0));
        }
        let Some((_, count)) = self.sources.iter_mut().find(|(mac, _)| *mac == from) else { return false };
        *count += 1;
        let count = *count;
        if count != TOO_MANY || self.shut.len() == SHUT_OUT_MAX {
            return false;
        }
        self.shut.push(ShutOut { mac: from.0, but: station });
        self.until.push(now + SHUT_FOR);
        true
    }

    /// Hears those again whose time is over; true when there were any.
    pub(crate) fn release(&mut self, now: Instant) -> bool {
        let before = self.shut.len();
        while let Some(at) = self.until.iter().position(|until| now >= *until) {
            self.until.swap_remove(at);
            self.shut.swap_remove(at);
        }
        self.shut.len() != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_shut_out_for_five_seconds_and_a_trickle_is_not() {
        let mut garbage = Garbage::new();
        let (flood, trickle) = (MacAddr([6; 6]), MacAddr([4; 6]));
        let at = |us: u64| Instant::from_nanos(1_000_000_000) + Span::from_micros(us);
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
            for _ in 0..TOO_MANY {
                garbage.count(
                    Instant::from_nanos(1_000_000_000 * u64::from(source)),
                    MacAddr([source; 6]),
                    None,
                );
            }
        }
        assert_eq!(garbage.shut_out().len(), SHUT_OUT_MAX);
    }
}
