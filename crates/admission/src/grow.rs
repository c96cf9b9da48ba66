//! Resizing a session that has slots already (`RETHER-2.3-13`).
//!
//! The session keeps its slots. The missing share becomes a new slot at the end of the list (theory.md §2.4),
//! in whole fragments; if its last slot ends the list already, that slot is widened. No slot moves to the
//! right, so no promise is touched. The bound needs only that the session's slots carry its share together
//! (see `rether.rs`), so its own units stay in time through the change too.

use crate::rether::{
    Admitted, Failure, Request, SegmentParams, bound, fit, gap_strict, largest, refusal, share_of, tht_shared,
};
use crate::slots::{Slot, is_strict, offset_of, reserved};
use crate::{Pace, Refusal, gap_early, nrt_need};
use rota_units::{Octets, Span};

/// One of a session's slots, as its station's ledger knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionSlot {
    /// Which slot of the list.
    pub index: usize,
    /// Octets of each unit that it carries in a cycle.
    pub share: Octets,
}

/// One of a session's slots, as the list has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandingSlot {
    /// Where it starts in the cycle.
    pub offset: Span,
    /// Its holding time.
    pub tht: Span,
    /// Octets of each unit that it carries in a cycle.
    pub share: Octets,
    /// Units of which it carries so much in a cycle.
    pub units: u64,
}

impl StandingSlot {
    /// The slot at this place of the list, of which the station's ledger knows the rest.
    pub(crate) fn at(slots: &[Slot], index: usize, share: Octets, units: u64) -> Self {
        let tht = slots.get(index).map_or(Span::ZERO, |slot| slot.tht);
        Self { offset: offset_of(slots, index), tht, share, units }
    }
}

/// The slots of a session of so many units a cycle that stands in the list with these.
pub fn standing_slots(
    slots: &[Slot],
    parts: &[SessionSlot],
    units: u64,
) -> impl Iterator<Item = StandingSlot> {
    parts.iter().map(move |part| StandingSlot::at(slots, part.index, part.share, units))
}

/// What growing does to the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// The slots carry the larger unit as they are: it has no more fragments.
    Nothing,
    /// The last slot, which ends the list, becomes this one.
    Widened {
        /// What it carries.
        share: Octets,
        /// Its holding time.
        tht: Span,
    },
    /// A slot is appended.
    Added {
        /// What the new slot carries.
        share: Octets,
        /// Its holding time.
        tht: Span,
        /// The share that the session's last slot so far keeps, in whole fragments; zero closes a slot that
        /// would carry less than one. The slot is cut after the first turn of the new one: a unit that was
        /// ready before that turn leaves within its bound in the old slot only.
        kept: Octets,
    },
}

/// May a session whose slots are `parts` carry units of `request` instead of `from`? Eq. 3 with the list as
/// it would then be.
///
/// # Errors
/// [`Refusal`]: the failed test, by how much, and the largest unit that would be granted; the present one if
/// nothing larger would.
pub fn grow(
    slots: &[Slot],
    parts: &[SessionSlot],
    from: Octets,
    request: &Request,
    params: &SegmentParams,
) -> Result<Growth, Refusal> {
    evaluate(slots, parts, request, params).map_err(|failure| {
        let fits = |unit| evaluate(slots, parts, &Request { unit_octets: unit, ..*request }, params).is_ok();
        let offer = largest(from, request.unit_octets, fits);
        refusal(params, request.pace, &failure, Some(offer))
    })
}

fn evaluate(
    slots: &[Slot],
    parts: &[SessionSlot],
    request: &Request,
    params: &SegmentParams,
) -> Result<Growth, Failure> {
    let share = share_of(request, params)?;
    let framing = &params.link.framing;
    let fragment = framing.unit_payload_max();
    let Some((last, others)) = parts.split_last() else {
        let admitted = fit(slots, request, share, params)?;
        return Ok(Growth::Added { share, tht: admitted.tht, kept: Octets::ZERO });
    };
    let whole = whole_fragments(others, fragment);
    // What the last slot and a new one must carry; in whole fragments as soon as there are two.
    let rest = framing.frames_of(share).saturating_sub(whole);
    let wanted = if others.is_empty() { share } else { Octets::new(rest * fragment) };
    if wanted <= last.share {
        return Ok(Growth::Nothing);
    }
    if last.index + 1 == slots.len() {
        let admitted = fit(&slots[..last.index], request, wanted, params)?;
        return Ok(Growth::Widened { share: wanted, tht: admitted.tht });
    }
    let keeps = last.share.get() / fragment;
    let share = if keeps == 0 { wanted } else { Octets::new((rest - keeps) * fragment) };
    let admitted = fit(slots, request, share, params)?;
    Ok(Growth::Added { share, tht: admitted.tht, kept: Octets::new(keeps * fragment) })
}

fn whole_fragments(parts: &[SessionSlot], fragment: u64) -> u64 {
    parts.iter().map(|part| part.share.get() / fragment).sum()
}

/// What a session's `part`-th slot carries when its units shrink to that of `request`; zero closes the slot.
pub fn shrunk(parts: &[SessionSlot], part: usize, request: &Request, params: &SegmentParams) -> Octets {
    let framing = &params.link.framing;
    let fragment = framing.unit_payload_max();
    let share = request.pace.share(request.unit_octets, framing);
    let before = whole_fragments(&parts[..part], fragment);
    let rest = framing.frames_of(share).saturating_sub(before);
    let wanted = if part == 0 { share } else { Octets::new(rest * fragment) };
    // The first of several slots was cut to whole fragments, and stays so while others follow it.
    wanted.min(parts[part].share)
}

/// The figures of a session that stands in the list with these slots.
pub fn standing(
    slots: &[Slot],
    parts: &[SessionSlot],
    request: &Request,
    params: &SegmentParams,
) -> Admitted {
    // The units of one slot leave one after another in order; between several slots any may be the last.
    let pace = if parts.len() > 1 { request.pace } else { Pace::EVERY_CYCLE };
    let sending = parts.iter().map(|part| tht_shared(params, part.share, pace)).max();
    let sending = sending.unwrap_or(Span::ZERO);
    stands(slots, parts.iter().map(|part| part.index), request, params, sending)
}

/// The same of slots with these indices, in their order, where a unit takes `sending` in a visit of its own.
pub(crate) fn stands(
    slots: &[Slot],
    parts: impl Iterator<Item = usize> + Clone,
    request: &Request,
    params: &SegmentParams,
    sending: Span,
) -> Admitted {
    let of = |index: usize| slots.get(index).map_or(Span::ZERO, |slot| slot.tht);
    let (first, last) = (parts.clone().next().unwrap_or(0), parts.clone().last().unwrap_or(0));
    let all = reserved(slots);
    let need = nrt_need(params, all, is_strict(slots));
    let last_offset = offset_of(slots, last);
    Admitted {
        tht: parts.map(of).sum(),
        offset: offset_of(slots, first),
        bound: bound(params, request, last_offset, sending),
        t_nrt: need.total(),
        gap: if request.periodic { gap_strict(params) } else { gap_early(params, &slots[..last]) },
        spare: params.trt.minus(all + need.total()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{admit, close_slot, still_fits, tht_rt, tht_shared_joined};
    use proptest::prelude::*;
    use rota_units::BitRate;

    fn params() -> SegmentParams {
        SegmentParams::new(BitRate::from_mbit(100), 8)
    }

    fn request(octets: u64) -> Request {
        let unit_octets = Octets::new(octets);
        Request {
            station: 1,
            unit_octets,
            pace: Pace::EVERY_CYCLE,
            periodic: true,
            receives: false,
            partition: 0,
        }
    }

    /// A session of station 1, and behind it one of each of `others`.
    fn list(octets: u64, others: &[u64]) -> (Vec<Slot>, Vec<SessionSlot>) {
        let mut slots = Vec::new();
        for (at, octets) in std::iter::once(&octets).chain(others).enumerate() {
            let station = 1 + at as u16;
            let asked = Request { station, ..request(*octets) };
            let admitted = admit(&slots, &asked, &params()).expect("fits");
            slots.push(Slot { station, tht: admitted.tht, periodic: true, partition: 0 });
        }
        (slots, vec![SessionSlot { index: 0, share: Octets::new(octets) }])
    }

    fn cut(slots: &mut [Slot], part: &mut SessionSlot, share: Octets) {
        let joined = |share| tht_shared_joined(&params(), share, Pace::EVERY_CYCLE);
        let slot = &mut slots[part.index];
        slot.tht = slot.tht.minus(joined(part.share).minus(joined(share)));
        part.share = share;
    }

    /// Does to the list what was granted.
    fn apply(slots: &mut Vec<Slot>, parts: &mut Vec<SessionSlot>, growth: Growth) {
        let last = parts.len() - 1;
        match growth {
            Growth::Nothing => {}
            Growth::Widened { share, tht } => {
                slots[parts[last].index].tht = tht;
                parts[last].share = share;
            }
            Growth::Added { share, tht, kept } => {
                slots.push(Slot { station: 1, tht, periodic: true, partition: 0 });
                assert!(still_fits(slots, &params()).is_ok(), "old and new stand together for a cycle");
                if kept > Octets::ZERO {
                    cut(slots, &mut parts[last], kept);
                } else {
                    let gone = parts.pop().expect("there is one").index;
                    let left = close_slot(slots, gone, &params());
                    slots.truncate(left);
                    parts.iter_mut().for_each(|part| part.index -= usize::from(part.index > gone));
                }
                parts.push(SessionSlot { index: slots.len() - 1, share });
            }
        }
    }

    #[test]
    fn the_last_slot_of_the_list_is_widened() {
        let (slots, parts) = list(3_000, &[]);
        let grown = grow(&slots, &parts, Octets::new(3_000), &request(9_000), &params()).unwrap();
        let tht = tht_rt(&params(), Octets::new(9_000));
        assert_eq!(grown, Growth::Widened { share: Octets::new(9_000), tht });
    }

    #[test]
    fn another_slot_carries_the_fragments_that_are_missing() {
        let (mut slots, mut parts) = list(6_250, &[2_000, 100]);
        let before = slots.clone();
        let grown = grow(&slots, &parts, Octets::new(6_250), &request(9_000), &params()).unwrap();
        apply(&mut slots, &mut parts, grown);
        let shares: Vec<u64> = parts.iter().map(|part| part.share.get() / 1_436).collect();
        assert_eq!(shares, [4, 3], "seven fragments");
        assert!((1..3).all(|at| offset_of(&slots, at) <= offset_of(&before, at)));
        let figures = standing(&slots, &parts, &request(9_000), &params());
        let alone = tht_shared(&params(), Octets::new(4 * 1_436), Pace::EVERY_CYCLE);
        let transit = params().transit() + params().link.host_slack;
        assert_eq!(figures.bound, params().trt + alone + transit);
        assert_eq!(figures.tht, slots[0].tht + slots[3].tht);
    }

    #[test]
    fn a_refusal_to_grow_offers_at_least_what_stands() {
        let (slots, parts) = list(100_000, &[200_000]);
        let refused = grow(&slots, &parts, Octets::new(100_000), &request(300_000), &params()).unwrap_err();
        let offer = refused.counter_offer.unwrap();
        assert!(offer.get() > 100_000 && refused.margin > Span::ZERO, "{refused}");
        assert!(grow(&slots, &parts, Octets::new(100_000), &request(offer.get()), &params()).is_ok());
        assert!(grow(&slots, &parts, Octets::new(100_000), &request(offer.get() + 1), &params()).is_err());
    }

    /// In a ring without periodic sessions a slot comes early by what the slots before it leave, not its own.
    #[test]
    fn a_session_that_stands_has_the_gap_that_it_was_granted() {
        let (mut slots, params) = (Vec::new(), params());
        for (station, octets) in [(1, 9_000), (2, 20_000), (3, 6_000)] {
            let asked = Request { station, periodic: false, ..request(octets) };
            let granted = admit(&slots, &asked, &params).expect("fits");
            slots.push(Slot { station, tht: granted.tht, periodic: false, partition: 0 });
            let part = SessionSlot { index: slots.len() - 1, share: Octets::new(octets) };
            let stands = standing(&slots, &[part], &asked, &params);
            assert_eq!((stands.gap, stands.offset), (granted.gap, granted.offset), "station {station}");
        }
    }

    proptest! {
        #[test]
        fn growing_and_shrinking_carry_the_unit_and_move_nobody_to_the_right(
            first in 1u64..40_000, others in prop::collection::vec(1u64..40_000, 0..4),
            sizes in prop::collection::vec((1u64..90_000, any::<bool>()), 1..8)
        ) {
            let (mut slots, mut parts) = list(first, &others);
            let mut unit = first;
            for (to, closes) in sizes {
                let before = slots.clone();
                let asked = request(to);
                if to > unit {
                    let Ok(grown) = grow(&slots, &parts, Octets::new(unit), &asked, &params()) else {
                        continue;
                    };
                    apply(&mut slots, &mut parts, grown);
                } else {
                    for at in (0..parts.len()).rev() {
                        let share = shrunk(&parts, at, &asked, &params());
                        let index = parts[at].index;
                        if share == Octets::ZERO {
                            let left = close_slot(&mut slots, index, &params());
                            slots.truncate(left);
                            parts.remove(at);
                            parts.iter_mut().for_each(|part| part.index -= usize::from(part.index > index));
                        } else {
                            cut(&mut slots, &mut parts[at], share);
                        }
                    }
                }
                unit = to;
                let framing = params().link.framing;
                let carried: u64 = parts.iter().map(|part| framing.frames_of(part.share)).sum();
                prop_assert!(carried >= framing.frames_of(Octets::new(unit)));
                prop_assert!(parts.len() == 1 || parts.iter().all(|p| p.share.get() % 1_436 == 0));
                prop_assert!(parts.iter().all(|part| slots[part.index].station == 1));
                prop_assert!(still_fits(&slots, &params()).is_ok());
                for station in 2..6 {
                    let place = |list: &[Slot]| list.iter().position(|slot| slot.station == station);
                    if let (Some(old), Some(new)) = (place(&before), place(&slots)) {
                        prop_assert!(offset_of(&slots, new) <= offset_of(&before, old));
                    }
                }
                if let Some(at) = slots.iter().position(|slot| slot.station != 1).filter(|_| closes) {
                    let left = close_slot(&mut slots, at, &params());
                    slots.truncate(left);
                    parts.iter_mut().for_each(|part| part.index -= usize::from(part.index > at));
                }
            }
        }
    }

    /// Between several slots any may be the last: each then takes as long as with a visit of its own.
    #[test]
    fn the_bound_of_a_session_in_two_slots_is_larger_than_that_of_one() {
        let params = SegmentParams::new(BitRate::from_mbit(10), 14);
        let slot = |station| Slot { station, tht: Span::from_millis(4), periodic: true, partition: 0 };
        let slots = [slot(2), slot(3), slot(2)];
        let pace = Pace::of(params.trt.div_down(2), params.trt).expect("a part");
        let (unit_octets, periodic, receives) = (Octets::new(8_000), true, false);
        let request = Request { station: 2, unit_octets, pace, periodic, receives, partition: 0 };
        let part = |index| SessionSlot { index, share: Octets::new(2_872) };
        let one = standing(&slots, &[part(2)], &request, &params);
        let two = standing(&slots, &[part(0), part(2)], &request, &params);
        let (alone, shared) = (
            tht_shared(&params, Octets::new(2_872), Pace::EVERY_CYCLE),
            tht_shared(&params, Octets::new(2_872), pace),
        );
        assert!(shared > alone, "{shared} {alone}");
        assert_eq!(two.bound.minus(one.bound), shared.minus(alone));
    }

    /// In a ring without periodic sessions a unit waits until the last slot of its session has come.
    #[test]
    fn the_bound_of_a_session_without_a_period_runs_to_its_last_slot() {
        let params = params();
        let slot = |station| Slot { station, tht: Span::from_millis(4), periodic: false, partition: 0 };
        let slots = [slot(1), slot(2), slot(3), slot(1)];
        let asked = Request { periodic: false, ..request(5_744) };
        let part = |index| SessionSlot { index, share: Octets::new(2_872) };
        let bound = |parts: &[SessionSlot]| standing(&slots, parts, &asked, &params).bound;
        assert_eq!(bound(&[part(0), part(3)]), bound(&[part(3)]));
        assert_eq!(bound(&[part(3)]).minus(bound(&[part(0)])), Span::from_millis(12));
    }
}
