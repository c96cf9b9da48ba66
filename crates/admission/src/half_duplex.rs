//! The time that a shared half-duplex segment adds to the switch (`RETHER-4.3-1`, theory.md §5.2).
//!
//! On a switched LAN a switch request waits behind its own port's buffer and its answer behind another's: Q
//! octets twice. On one shared segment every card's queue may go first, and CSMA/CD may put a frame off
//! through fifteen back-offs before it is sent or given up:
//!
//! **T_to ≥ 2D + N·Q_card/C + B + N·δ**, B = Σ_{k=1..15} (2^min(k,10) − 1) = 7151 slots of 512 bit times,
//! 366 ms at 10 Mbit/s.
//!
//! B covers one frame. A frame that is given up, or that waits behind one that is given up, counts as lost:
//! the next of the r + 1 tries replaces it.

use rota_units::{BitRate, Octets, Span};

/// Slots that a frame waits at most before its sixteenth attempt.
pub const BACKOFF_SLOTS: u64 = 7_151;
/// Octets of one slot: 512 bit times at 10 and at 100 Mbit/s.
const SLOT: u64 = 64;

/// B: the longest that collisions put off one frame.
pub fn backoff_max(rate: BitRate) -> Span {
    rate.span_of_up(Octets::new(SLOT)) * BACKOFF_SLOTS
}

/// The buffer Q for which 2·Q/C covers all cards and the longest back-off.
pub fn shared_buffer(rate: BitRate, stations: u64, card: Octets) -> Octets {
    let cards = card.get().saturating_mul(stations);
    let backoff = rate.octets_in_down(backoff_max(rate)).get().saturating_add(1);
    Octets::new(cards.saturating_add(backoff).div_ceil(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RecoveryModel, SegmentParams, Timers};

    const MBIT10: BitRate = BitRate::from_mbit(10);

    #[test]
    fn fifteen_back_offs_are_366_ms_at_10_mbit() {
        let slots: u64 = (1..=15).map(|k: u32| (1 << k.min(10)) - 1).sum();
        assert_eq!(slots, BACKOFF_SLOTS);
        assert_eq!(backoff_max(MBIT10).as_nanos() / 1_000_000, 366);
    }

    #[test]
    fn the_time_out_covers_all_cards_and_one_frames_back_off() {
        let (stations, card) = (5, Octets::new(16_000));
        let params = SegmentParams::new(MBIT10, 5);
        let buffer = shared_buffer(MBIT10, stations, card);
        let timers = Timers::new(RecoveryModel::proven(&params, Span::from_millis(6), buffer));
        let alone = Timers::new(RecoveryModel::proven(&params, Span::from_millis(6), Octets::new(0)));
        let added = timers.switch_timeout().minus(alone.switch_timeout());
        assert!(added >= MBIT10.span_of_up(Octets::new(80_000)) + backoff_max(MBIT10), "{added}");
        assert!(added < MBIT10.span_of_up(Octets::new(80_100)) + backoff_max(MBIT10), "{added}");
    }
}
