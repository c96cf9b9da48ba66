//! Admission on a point-to-point link: each direction has one sender, which admits its shares alone.
//!
//! # What is promised
//!
//! Let C be the link, F the wire time of the longest frame, TRT the cycle of the settings and **W = TRT −
//! ⌊TRT/16⌋** the window. A session with pace (k cycles, u units) sends in *slots*: a slot carries one share
//! of a unit (⌈n/k⌉ of its n fragments). The i-th slot opens at **o_i = max(r_i, o_(i−u) + W)**, where r_i
//! is when its unit was ready, also while earlier slots of the session are open. So *(1)* in any half-open
//! window of W at most u slots of a session open. A slot costs S: its frames as
//! `docs/decisions/008-what-a-frame-is-charged.md` has them, and b.
//!
//! The sender serves open slots first, those of earlier sessions before those of later ones, and ordinary
//! frames only while no slot is open. It hands a frame to the card only while at most A ([`LINK_AHEAD`], of
//! which ordinary frames have a part) of wire time is still there. It counts an ordinary frame 1/32 longer
//! than it is, so that nothing adds up in a card that is slower than its rate. So *(2)* at most
//! **B = A + F + F/32** of other traffic is ahead of a slot that opens. Its own announcements take O in a
//! window at most. A request is admitted if
//!
//! **Σ u_j·S_j + B + O + N ≤ W**
//!
//! where N is the ordinary share: `nrt_share_percent` of the cycle, at least one full frame.
//!
//! *Lemma.* A slot ends within W of its opening. Let s be the begin of the interval, around the slot, in
//! which some slot is always open. No slot is open just before s. From s on the sender hands over only
//! frames of slots and announcements, behind B at most (2). In [s, s + W) its slots cost Σ u_j·S_j at most
//! (1): so all of them are done by s + Σ u_j·S_j + B + O ≤ s + W, before any further one could open. The
//! slot opened at s or later. Those of the first i sessions, which go first, end sooner: within B + O +
//! Σ_{j ≤ i} u_j·S_j.
//!
//! *Units.* Let units be ready each p ≥ k·TRT/u. With k = 1 each unit has one slot, and o_i = r_i by
//! induction: o_(i−u) + W = r_(i−u) + W ≤ r_i, since u·p ≥ TRT ≥ W. With u = 1 the k slots of a unit open W
//! apart, the last one (k − 1)·W after the unit was ready, which is W before the next unit is. A unit that is
//! ready before its time opens no slot later than if it were ready then: o_i rises with each r_i. So, counted
//! from the time at which a unit is due,
//!
//! **delivered ≤ due + k·W + F + J**
//!
//! where F is a device on the cable that stores a frame, and J the host's slack. The promise does not use
//! that a slot of an early session ends sooner: it is what a host has left that stands still for a moment.
//! Ordinary frames have at least N in each window that begins with an open slot. A program that was late with
//! one unit and keeps its schedule afterwards has its next units delayed by less each: slots come more often
//! than units, by one sixteenth.
//!
//! A sender that was late by more than J opens no slot earlier than J before: what it missed it makes up for
//! slot by slot, W apart, and not at the cost of the others.
//!
//! *Changes.* The promise of a session names no other one, and the lemma asks only for the inequality, for
//! all slots that open in one window. Each change keeps it: a share that grows is tested with its new
//! size in the place of its old one, and what a share has less, or one that is gone had, counts until W after
//! its last opening. A request that only such a load keeps out is answered behind it.
//!
//! Both directions are apart (full duplex), so that nothing is asked of the other station.
//!
//! Packets of channels across segments that are scheduled one by one go behind all slots; `subnet/link.rs`
//! has their test, which counts all of this, and shows that the lemma holds beside them.

use crate::pace::Pace;
use crate::refusal::{Refusal, Test};
use crate::rether::{Admitted, Failure, Request, SegmentParams, offered, refusal, share_of};
use crate::rtip::{Denied, NodeTest};
use rota_units::{Octets, Span};

/// A: the wire time up to which a link's sender hands frames of its slots to the card ahead of the wire. A
/// host that wakes late by half of it leaves no gap.
pub const LINK_AHEAD: Span = Span::from_micros(300);
/// The same for ordinary frames, of which a slot that opens finds one and so much of another one ahead.
pub const LINK_AHEAD_ORDINARY: Span = Span::from_micros(100);
/// Ordinary frames are paced slower than the link by one part in so many: a card or a device on the cable
/// that is slower than its rate then never keeps frames back for long.
pub const LINK_CARD_SLOWER: u64 = 32;
/// Shares of one sender.
pub const LINK_SHARES_MAX: usize = 200;
/// The window is shorter than the cycle by one part in so many.
const GUARD: u64 = 16;
/// Announcements in a window: one each half of a cycle, and two answers at once.
const ANNOUNCEMENTS: u64 = 4;
/// Further answers come one in so long.
const ANSWERS_EVERY: Span = Span::from_millis(100);

/// W: in so long a session opens as many slots as its pace has units in a cycle.
pub fn link_window(trt: Span) -> Span {
    trt.minus(trt.div_down(GUARD))
}

/// B: other traffic ahead of a slot that opens.
pub fn link_blocking(params: &SegmentParams) -> Span {
    let full = params.link.frame_span_max();
    LINK_AHEAD + full + Span::from_nanos(full.as_nanos().div_ceil(LINK_CARD_SLOWER))
}

/// How many announcements the sender makes in one window at most.
pub(crate) fn announcements_most(params: &SegmentParams) -> u64 {
    ANNOUNCEMENTS + params.trt.count_down(ANSWERS_EVERY)
}

/// O: the announcements of the sender in one window.
pub(crate) fn announcements(params: &SegmentParams) -> Span {
    params.link.frame_span_up(SegmentParams::ANNOUNCE_OCTETS) * announcements_most(params)
}

/// N: what ordinary traffic has in each window.
fn ordinary(params: &SegmentParams) -> Span {
    let share = (params.trt * u64::from(params.nrt_share_percent)).as_nanos().div_ceil(100);
    Span::from_nanos(share).max(params.link.frame_cost_max())
}

/// u·S: all slots of a session in one window, of which each carries so many octets.
fn load(params: &SegmentParams, share: Octets, pace: Pace) -> Span {
    (params.link.unit_span_joined_up(share) + params.link.per_visit) * pace.units()
}

/// The answer to a session beside shares that take `before` in each window, if it is admitted.
fn promise(before: Span, request: &Request, share: Octets, params: &SegmentParams) -> Admitted {
    let (pace, window) = (request.pace, link_window(params.trt));
    let tht = load(params, share, pace);
    let (device, slack) = (params.link.frame_span_max(), params.link.host_slack);
    let bound = window * pace.cycles() + device + slack;
    let (t_nrt, spare) = (ordinary(params), link_capacity(params).minus(before + tht));
    Admitted { tht, offset: before, bound, t_nrt, gap: window, spare }
}

fn evaluate(before: Span, request: &Request, params: &SegmentParams) -> Result<Admitted, Failure> {
    let share = share_of(request, params)?;
    let admitted = promise(before, request, share, params);
    let excess = (before + admitted.tht + overhead(params)).minus(link_window(params.trt));
    if excess > Span::ZERO {
        return Err(Failure::new(Test::LinkCapacity, excess));
    }
    Ok(admitted)
}

/// The most that all shares of one sender take of each window.
pub fn link_capacity(params: &SegmentParams) -> Span {
    link_window(params.trt).minus(overhead(params))
}

/// B + O + N: what no share has of a window.
fn overhead(params: &SegmentParams) -> Span {
    link_blocking(params) + announcements(params) + ordinary(params)
}

/// The shortest cycle, from `least` on, of which a link's window has room for more than that, in whole
/// microseconds; `None` where none up to `most` has.
pub fn link_cycle_min(params: &SegmentParams, least: Span, most: Span) -> Option<Span> {
    let mut trt = least;
    while trt <= most {
        let of = SegmentParams { trt, ..*params };
        if link_capacity(&of) > Span::ZERO {
            return Some(trt);
        }
        // The overhead of a longer cycle is the same.
        let window = overhead(&of).as_nanos().saturating_add(1);
        let longer = window.saturating_add(window.div_ceil(GUARD - 1)).div_ceil(1_000);
        trt = Span::from_micros(longer.max(trt.as_nanos() / 1_000 + 1));
    }
    None
}

/// May `request` join the shares of this sender, which take so long in each window?
///
/// # Errors
/// [`Refusal`]: the failed test, by how much, and the largest unit that fits now.
pub fn admit_on_link(loads: &[Span], request: &Request, params: &SegmentParams) -> Result<Admitted, Refusal> {
    let before: Span = loads.iter().copied().sum();
    if loads.len() >= LINK_SHARES_MAX {
        let failure = Failure::new(Test::SlotTableFull, Span::ZERO);
        return Err(refusal(params, request.pace, &failure, None));
    }
    evaluate(before, request, params).map_err(|failure| {
        let fits = |unit| evaluate(before, &Request { unit_octets: unit, ..*request }, params).is_ok();
        refusal(params, request.pace, &failure, offered(Octets::new(1), request.unit_octets, fits))
    })
}

/// The refusal of a session by the test of the packets that stand on the same port, or are to stand there.
/// Its owner looks for an offer, by all tests of the port.
pub fn refused_by_port(pace: Pace, denied: &Denied, params: &SegmentParams) -> Refusal {
    let test = match denied.test {
        NodeTest::TableFull => Test::SlotTableFull,
        NodeTest::EdfExact => Test::EdfExact,
        NodeTest::RcspLevel => Test::RcspLevel,
        NodeTest::DeddSum => Test::DeddSum,
        NodeTest::Overflow => Test::Overflow,
        NodeTest::Undecided => Test::Undecided,
        NodeTest::Group => Test::Group,
        _ => Test::LinkCapacity,
    };
    let refusal = refusal(params, pace, &Failure::new(test, denied.margin), None);
    Refusal { partition: denied.partition, ..refusal }
}

/// The answer to a share that stands beside others that take `before`, with units of an admitted size.
pub fn standing_on_link(before: Span, request: &Request, params: &SegmentParams) -> Admitted {
    let share = request.pace.share(request.unit_octets, &params.link.framing);
    promise(before, request, share, params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rota_units::BitRate;

    fn params(mbit: u64) -> SegmentParams {
        SegmentParams::new(BitRate::from_mbit(mbit), 2)
    }

    fn unit(octets: u64, pace: Pace) -> Request {
        Request {
            station: 1,
            unit_octets: Octets::new(octets),
            pace,
            periodic: false,
            receives: false,
            partition: 0,
        }
    }

    /// By hand, at 10 Mbit/s: a unit of 6,250 octets takes 5 frames, 6,760 octets on the wire.
    #[test]
    fn the_first_stream_of_a_slow_link_has_the_bound_of_the_proof() {
        let params = params(10);
        let admitted = admit_on_link(&[], &unit(6_250, Pace::EVERY_CYCLE), &params).unwrap();
        let (full, announcement) = (1_538 * 800, (135 + 38) * 800);
        let window = 33_333_333 - 2_083_333;
        let slot = 6_760 * 800 + 5 * 2_000 + 50_000;
        assert_eq!(admitted.tht.as_nanos(), slot);
        assert_eq!(admitted.bound.as_nanos(), window + full + 1_000_000);
        assert_eq!(admitted.t_nrt.as_nanos(), 1_666_667, "5 % of the cycle");
        assert_eq!(link_window(params.trt).as_nanos(), window);
        let fixed = 300_000 + full + full / 32 + 4 * announcement + 1_666_667;
        assert_eq!(admitted.spare.as_nanos(), window - fixed - slot);
    }

    #[test]
    fn a_full_link_refuses_with_what_is_missing_and_what_would_fit() {
        let params = params(10);
        let stream = unit(5_000, Pace::EVERY_CYCLE);
        let mut loads = Vec::new();
        let refused = loop {
            match admit_on_link(&loads, &stream, &params) {
                Ok(admitted) => loads.push(admitted.tht),
                Err(refused) => break refused,
            }
        };
        assert_eq!(loads.len(), 6);
        assert_eq!(refused.test, Test::LinkCapacity);
        assert!(refused.margin > Span::ZERO && refused.margin_bps > 0);
        let offer = refused.counter_offer.expect("a smaller unit fits");
        assert!(admit_on_link(&loads, &Request { unit_octets: offer, ..stream }, &params).is_ok());
        let more = Octets::new(offer.get() + 1);
        assert!(admit_on_link(&loads, &Request { unit_octets: more, ..stream }, &params).is_err());
    }

    #[test]
    fn a_link_has_so_many_shares_and_no_unit_beyond_its_fragments() {
        let params = params(1_000);
        let loads = vec![Span::ZERO; LINK_SHARES_MAX];
        let refused = admit_on_link(&loads, &unit(1, Pace::EVERY_CYCLE), &params).unwrap_err();
        assert_eq!((refused.test, refused.counter_offer), (Test::SlotTableFull, None));
        let huge = params.unit_octets_max().get() + 1;
        let refused = admit_on_link(&[], &unit(huge, Pace::EVERY_CYCLE), &params).unwrap_err();
        assert_eq!(refused.test, Test::UnitTooLarge);
    }

    /// Where nothing fits at all, the margin was what the request takes alone.
    #[test]
    fn a_refusal_says_what_is_missing_where_not_even_the_overhead_fits() {
        let mut params = params(10);
        params.trt = Span::from_millis(2);
        let request = unit(100, Pace::EVERY_CYCLE);
        let refused = admit_on_link(&[], &request, &params).unwrap_err();
        let load = load(&params, Octets::new(100), Pace::EVERY_CYCLE);
        let missing = (load + overhead(&params)).minus(link_window(params.trt));
        assert!(link_capacity(&params) == Span::ZERO && missing > load);
        assert_eq!(refused.margin, missing);
    }

    #[test]
    fn the_shortest_cycle_has_room_for_a_share_and_a_shorter_one_has_none() {
        for (mbit, mtu) in [(1, 1_500), (10, 1_500), (10, 9_000), (100, 1_500), (1_000, 9_000)] {
            let rate = BitRate::from_mbit(mbit);
            let params = SegmentParams::with_framing(rate, crate::link::Framing::ethernet(mtu), 2);
            let (least, most) = (Span::from_micros(100), Span::from_millis(1_000));
            let trt = link_cycle_min(&params, least, most).expect("some cycle has room");
            let room = |trt| link_capacity(&SegmentParams { trt, ..params });
            assert!(room(trt) > Span::ZERO, "{mbit} {mtu}: {trt}");
            assert_eq!(room(trt.minus(Span::from_micros(1))), Span::ZERO, "{mbit} {mtu}: {trt}");
        }
        let slow = SegmentParams::new(BitRate::new(10_000).expect("more than zero"), 2);
        assert_eq!(link_cycle_min(&slow, Span::from_millis(1), Span::from_millis(1_000)), None);
    }

    proptest! {
        /// The inequality of the proof.
        #[test]
        fn what_is_admitted_fits_the_window(
            mbit in 1u64..100_000,
            asked in proptest::collection::vec((1u64..200_000, 1u64..64, 1u64..32), 1..40),
        ) {
            let params = params(mbit);
            let mut loads: Vec<Span> = Vec::new();
            for (octets, cycles, units) in asked {
                let period = if units > 1 { params.trt.div_down(units) } else { params.trt * cycles };
                let Ok(pace) = Pace::of(period, params.trt) else { continue };
                let request = unit(octets, pace);
                let before: Span = loads.iter().copied().sum();
                let window = link_window(params.trt);
                match admit_on_link(&loads, &request, &params) {
                    Ok(admitted) => {
                        loads.push(admitted.tht);
                        let all: Span = loads.iter().copied().sum();
                        let fixed = link_blocking(&params) + announcements(&params) + ordinary(&params);
                        prop_assert!(all + fixed <= window);
                        prop_assert_eq!(admitted.spare, window.minus(all + fixed));
                        prop_assert_eq!(standing_on_link(before, &request, &params), admitted);
                        let transit = params.link.frame_span_max() + params.link.host_slack;
                        prop_assert_eq!(admitted.bound, window * pace.cycles() + transit);
                    }
                    Err(refused) => if let Some(offer) = refused.counter_offer {
                        prop_assert!(offer < request.unit_octets);
                        let smaller = Request { unit_octets: offer, ..request };
                        prop_assert!(admit_on_link(&loads, &smaller, &params).is_ok());
                    }
                }
            }
        }
    }
}
