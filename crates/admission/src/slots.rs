//! The reservation list that travels in the token: slots in visiting order.
//!
//! Two neighbouring slots of one station are one visit, so the second one is charged neither the hop nor
//! the start of a visit: it is *joined*. The list keeps that form through every close (`RETHER-2.3-11`).
//! On a segment in partitions only slots of one partition are joined.

use crate::rether::SegmentParams;
use rota_units::Span;

/// One reservation as the token lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The station that owns the slot.
    pub station: u16,
    /// Its token holding time, the hop to the next visit included unless it is joined.
    pub tht: Span,
    /// Its owner needs exactly one visit a period: the whole ring is strict while one such slot exists.
    pub periodic: bool,
    /// The number of its partition; 0 for the rest.
    pub partition: u8,
}

/// True if a slot of this station and partition behind `slots` continues the visit of the last one.
pub(crate) fn continues(slots: &[Slot], station: u16, partition: u8) -> bool {
    slots.last().is_some_and(|last| (last.station, last.partition) == (station, partition))
}

/// Sum of all holding times: the left sum of eq. 3.
pub fn reserved(slots: &[Slot]) -> Span {
    slots.iter().map(|slot| slot.tht).sum()
}

/// Off_i: where slot `index` starts in its cycle, counted from c_k.
pub fn offset_of(slots: &[Slot], index: usize) -> Span {
    reserved(&slots[..index.min(slots.len())])
}

/// Whether the ring keeps the strict period: some session is periodic.
pub fn is_strict(slots: &[Slot]) -> bool {
    slots.iter().any(|slot| slot.periodic)
}

/// True if slot `index` is charged as one that continues the visit of the slot before it: of its station and
/// partition.
pub fn is_joined(slots: &[Slot], index: usize) -> bool {
    slots.get(index).is_some_and(|slot| continues(&slots[..index], slot.station, slot.partition))
}

/// Number of token visits the list causes in one cycle: neighbouring slots of one station are one, of several
/// partitions, too.
pub fn visits(slots: &[Slot]) -> u64 {
    let further = slots.windows(2).filter(|pair| pair[0].station != pair[1].station).count();
    (further + usize::from(!slots.is_empty())) as u64
}

/// Closes slot `index` and moves all later ones to the left; returns the new length.
///
/// The entries behind the new length are stale. The slot behind the closed one takes over its hop if the
/// closed slot began their common visit, and gives up its own hop if it has become joined. In both cases no
/// later slot moves to the right, because the closed slot paid for at least as much.
pub fn close_slot(slots: &mut [Slot], index: usize, params: &SegmentParams) -> usize {
    let len = slots.len();
    if index >= len {
        return len;
    }
    let visit_cost = params.link.per_visit + params.link.hop;
    // The visit may be one that a frame to its station can delay; the closed slot paid for at least as much.
    let taken_over = (visit_cost + params.link.frame_span_max()).min(slots[index].tht);
    let was_joined = is_joined(slots, index + 1);
    slots.copy_within(index + 1.., index);
    let left = &mut slots[..len - 1];
    let joined = is_joined(left, index);
    if let Some(next) = left.get_mut(index) {
        match (was_joined, joined) {
            (true, false) => next.tht += taken_over,
            (false, true) => next.tht = next.tht.minus(visit_cost),
            (true, true) | (false, false) => {}
        }
    }
    len - 1
}

/// Closes every slot of `station`, as when it is declared dead; returns the new length.
pub fn remove_station(slots: &mut [Slot], station: u16, params: &SegmentParams) -> usize {
    let mut len = slots.len();
    let mut index = 0;
    while index < len {
        if slots[index].station == station {
            len = close_slot(&mut slots[..len], index, params);
        } else {
            index += 1;
        }
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::Pace;
    use crate::rether::{Request, admit, tht_rt, tht_rt_joined};
    use proptest::prelude::*;
    use rota_units::{BitRate, Octets};

    fn params() -> SegmentParams {
        SegmentParams::new(BitRate::from_mbit(100), 8)
    }

    /// Admits one session after another, as stations do at the token.
    fn fill(sessions: &[(u16, u64)]) -> Vec<Slot> {
        let params = params();
        let mut slots = Vec::new();
        for &(station, octets) in sessions {
            let request = Request {
                station,
                unit_octets: Octets::new(octets),
                pace: Pace::EVERY_CYCLE,
                periodic: true,
                receives: false,
                partition: 0,
            };
            if let Ok(admitted) = admit(&slots, &request, &params) {
                slots.push(Slot { station, tht: admitted.tht, periodic: true, partition: 0 });
            }
        }
        slots
    }

    #[test]
    fn closing_the_first_of_a_visit_hands_its_hop_on() {
        let (params, unit) = (params(), Octets::new(3000));
        let mut slots = fill(&[(1, 3000), (1, 3000), (2, 3000)]);
        assert_eq!(slots[1].tht, tht_rt_joined(&params, unit));
        let len = close_slot(&mut slots, 0, &params);
        assert_eq!(len, 2);
        // And what a visit is charged to which frames may be on their way.
        assert_eq!(slots[0].tht, tht_rt(&params, unit) + params.link.frame_span_max());
    }

    #[test]
    fn two_visits_that_meet_become_one() {
        let (params, unit) = (params(), Octets::new(3000));
        let mut slots = fill(&[(1, 3000), (2, 3000), (1, 3000)]);
        assert_eq!((slots[2].tht, visits(&slots)), (tht_rt(&params, unit), 3));
        let len = close_slot(&mut slots, 1, &params);
        assert_eq!((slots[1].tht, visits(&slots[..len])), (tht_rt_joined(&params, unit), 1));
    }

    #[test]
    fn a_slot_that_is_not_there_closes_nothing() {
        let mut slots = fill(&[(1, 3000)]);
        assert_eq!(close_slot(&mut slots, 7, &params()), 1);
        assert_eq!(close_slot(&mut [], 0, &params()), 0);
    }

    proptest! {
        #[test]
        fn closing_moves_nobody_to_the_right(
            sessions in prop::collection::vec((1u16..5, 1u64..20_000), 1..20),
            pick in any::<prop::sample::Index>()
        ) {
            let params = params();
            let before = fill(&sessions);
            let index = pick.index(before.len());
            let mut after = before.clone();
            let len = close_slot(&mut after, index, &params);
            for later in index..len {
                prop_assert!(offset_of(&after[..len], later) <= offset_of(&before, later + 1));
                let end = offset_of(&before, later + 1) + before[later + 1].tht;
                prop_assert!(offset_of(&after[..len], later) + after[later].tht <= end);
            }
            prop_assert!(reserved(&after[..len]) <= reserved(&before));
        }

        #[test]
        fn a_dead_station_keeps_nothing(
            sessions in prop::collection::vec((1u16..5, 1u64..20_000), 1..20), dead in 1u16..5
        ) {
            let params = params();
            let mut slots = fill(&sessions);
            let len = remove_station(&mut slots, dead, &params);
            prop_assert!(slots[..len].iter().all(|slot| slot.station != dead));
            let others = sessions.iter().filter(|(station, _)| *station != dead).count();
            prop_assert!(len <= others);
        }
    }
}
