use super::*;
use crate::rtip::Traffic;
use crate::rtip::edf::tests::{any_flow, ns};
use crate::rtip::exhaust::{Order, Outcome, Search};
use proptest::prelude::*;

fn flow(x_min: u64, service: u64, level: usize) -> LevelFlow {
    let traffic = Traffic::periodic(ns(x_min)).unwrap();
    LevelFlow { flow: Flow { traffic, service: ns(service), delay: ns(0) }, level }
}

#[test]
fn a_set_by_hand() {
    let (flows, bounds) = ([flow(10, 2, 0), flow(20, 5, 1)], [ns(7), ns(12)]);
    let below = rcsp(&flows, &bounds, ns(3), Blocker::Below).unwrap();
    // Level 0: 2 and the packet of 5 below. Level 1: 2 · 2 + 5 and the ordinary packet of 3.
    assert_eq!(below, RcspFound { slack: ns(0), level: 0 });
    let printed = rcsp(&flows, &bounds, ns(3), Blocker::AnyPacket).unwrap_err();
    assert_eq!((printed.test, printed.margin), (NodeTest::RcspLevel, ns(2)));
    let denied = rcsp(&[flow(2, 3, 0)], &bounds, ns(0), Blocker::Below).unwrap_err();
    assert_eq!(denied.test, NodeTest::Load);
}

#[test]
fn a_channel_gets_the_lowest_level_that_its_bound_allows() {
    let bounds = [ns(7), ns(13), ns(40)];
    let standing = [flow(10, 2, 0), flow(20, 5, 1)];
    let new = |delay| Flow { delay: ns(delay), ..flow(40, 4, 0).flow };
    let level = |delay| rcsp_level(&standing, &new(delay), &bounds, ns(3), Blocker::Below);
    assert_eq!(level(100), Ok(2));
    let denied = level(13).unwrap_err();
    assert_eq!((denied.margin, denied.nearest_delay), (ns(3), Some(ns(40))));
    let denied = level(6).unwrap_err();
    assert_eq!(
        (denied.test, denied.margin, denied.nearest_delay),
        (NodeTest::RcspLevel, ns(1), Some(ns(40)))
    );
}

/// The levels above are kept for those that need them.
#[test]
fn where_its_lowest_level_fails_a_channel_gets_the_next_one_above() {
    let (standing, bounds) = ([flow(20, 9, 0)], [ns(16), ns(20), ns(22)]);
    let new = Flow { delay: ns(100), ..flow(40, 4, 0).flow };
    let fits = |level| {
        let all = [standing[0], LevelFlow { flow: new, level }];
        rcsp(&all, &bounds, ns(3), Blocker::Below).is_ok()
    };
    // A second packet of 9 comes between the last two bounds.
    assert_eq!([0, 1, 2].map(fits), [true, true, false]);
    assert_eq!(rcsp_level(&standing, &new, &bounds, ns(3), Blocker::Below), Ok(1));
}

prop_compose! {
    fn any_levels()(
        flows in prop::collection::vec((any_flow(6, 3), 0usize..3), 1..=3),
        steps in prop::collection::vec(1u64..7, 3), ordinary in 0u64..4
    ) -> (Vec<LevelFlow>, Vec<Span>, Span) {
        let bounds: Vec<Span> = steps.iter().scan(2, |at, step| { *at += step; Some(ns(*at)) }).collect();
        let of = |(flow, level): (Flow, usize)| {
            LevelFlow { flow: Flow { delay: bounds[level], ..flow }, level }
        };
        (flows.into_iter().map(of).collect(), bounds.clone(), ns(ordinary))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]
    /// Exhaustive: no release pattern makes a packet stay longer than its level's bound.
    #[test]
    fn accepted_levels_keep_their_bounds_under_every_release_pattern(
        (flows, bounds, ordinary) in any_levels()
    ) {
        let below = rcsp(&flows, &bounds, ordinary, Blocker::Below).is_ok();
        prop_assert!(below || rcsp(&flows, &bounds, ordinary, Blocker::AnyPacket).is_err());
        if below {
            let levels: Vec<usize> = flows.iter().map(|flow| flow.level).collect();
            let plain: Vec<Flow> = flows.iter().map(|flow| flow.flow).collect();
            let order = Order::Levels(&levels);
            let ordinary = ordinary.as_nanos();
            let search = Search { flows: &plain, order, ordinary, ahead: 0, short: true, states_max: 25_000 };
            prop_assert_ne!(search.run(), Outcome::Late);
        }
    }

    /// A channel that moves down leaves every bound kept that was kept.
    #[test]
    fn a_lower_level_never_invalidates_a_set((flows, bounds, ordinary) in any_levels()) {
        if rcsp(&flows, &bounds, ordinary, Blocker::Below).is_ok() {
            for which in 0..flows.len() {
                for level in flows[which].level..bounds.len() {
                    let mut lower = flows.clone();
                    lower[which].level = level;
                    // The new level must keep its bound for itself; all others do.
                    let found = rcsp(&lower, &bounds, ordinary, Blocker::Below);
                    let same = lower.iter().any(|flow| flow.level == level && flow != &lower[which]);
                    prop_assert!(found.is_ok() || !same, "{:?}", found);
                }
            }
        }
    }
}
