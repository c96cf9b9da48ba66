use super::*;
use crate::rtip::edf::tests::{any_set, ns};
use crate::rtip::edf_exact;
use proptest::prelude::*;

fn memory() -> (Vec<Flow>, Vec<Point>) {
    let traffic = Traffic::periodic(ns(1)).unwrap();
    (vec![Flow { traffic, service: ns(1), delay: ns(1) }; 8], vec![Point::default(); 4_000])
}

/// A table with memory of its own.
fn owned(ordinary: Span) -> EdfTable<Box<[Flow]>, Box<[Point]>> {
    let (places, points) = memory();
    EdfTable::new(ordinary, places.into_boxed_slice(), points.into_boxed_slice())
}

/// Passes over a table leave it as a table of the same flows is that is written anew. The
/// table itself stays as the passes have left it, so the next pass goes on from there.
fn is_as_built(table: &EdfTable<Box<[Flow]>, Box<[Point]>>) -> bool {
    let mut built = table.clone();
    let tail = table.tail_of_all();
    let same = |tail: Tail| (tail.slope, tail.constant, tail.delay_max, tail.service_max);
    built.build(table.horizon).is_ok()
        && (&built.points[..built.used], built.written) == (&table.points[..table.used], table.written)
        && same(tail) == same(table.tail)
}

/// The domain in which the table promises nothing: so near to the whole load the points up to the end are
/// more than the memory of these tests holds.
fn is_near(denied: &Denied, set: &[Flow]) -> bool {
    let load: u128 = set.iter().map(load_up).sum();
    denied.test == NodeTest::Undecided && load > WHOLE - WHOLE / 50
}

/// Relaxes the flows up to `index`, releases the one there, and admits it again as it stood before: it fits,
/// or its set is one of that domain. The answer.
fn leaves_and_returns(
    table: &mut EdfTable<Box<[Flow]>, Box<[Point]>>,
    index: usize,
) -> Result<Result<(), Denied>, TestCaseError> {
    let before: Vec<Flow> = table.flows().to_vec();
    for (place, had) in before.iter().enumerate().take(index + 1) {
        if table.relax(place, had.delay + ns(7 * place as u64 + 1)).is_ok() {
            prop_assert!(is_as_built(table), "relaxed");
        }
    }
    table.release(index);
    prop_assert_eq!(table.standing, before.len() - 1);
    prop_assert!(is_as_built(table), "released");
    let standing = table.flows().to_vec();
    let answer = table.admit(&before[index]);
    match answer {
        Ok(()) => prop_assert_eq!(table.standing, before.len()),
        Err(denied) => {
            prop_assert!(is_near(&denied, &before), "what has left fits again: {:?}", denied);
            prop_assert_eq!(table.flows(), &standing[..], "nothing has changed");
        }
    }
    prop_assert!(is_as_built(table), "asked again");
    Ok(answer)
}

/// A load of 0.99996: the points that its shortest bound asks for are more than there is room for, though
/// the bound that it had asks for fewer.
#[test]
fn a_flow_that_left_a_nearly_full_table_is_undecided_and_changes_nothing() {
    let flow = |(x_min, interval, service, delay)| {
        let traffic = Traffic::new(ns(x_min), ns(interval), ns(interval)).unwrap();
        Flow { traffic, service: ns(service), delay: ns(delay) }
    };
    let rows = [(131, 182, 22, 96), (18, 34, 26, 63), (57, 226, 19, 393), (129, 132, 4, 30)];
    let mut full = owned(Span::ZERO);
    rows.map(flow).iter().for_each(|flow| full.admit(flow).unwrap());
    let answers = [0, 1, 2, 3].map(|index| leaves_and_returns(&mut full.clone(), index).unwrap());
    let undecided = Err(Denied::new(NodeTest::Undecided, Span::ZERO));
    assert!(answers.contains(&undecided), "{answers:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    /// Admitted one after another: each answer is that of the exact test of the whole set, and the shortest
    /// bound fits while one a tick shorter does not.
    #[test]
    fn the_table_says_what_the_exact_test_says(
        (flows, ordinary) in any_set(7, 30, 200), gone in any::<prop::sample::Index>()
    ) {
        let mut table = owned(ordinary);
        for flow in &flows {
            let mut set = table.flows().to_vec();
            set.push(*flow);
            let exact = edf_exact(&set, ordinary);
            match table.best(&flow.traffic, flow.service) {
                Ok(best) => {
                    let with = |delay| {
                        let mut set = set.clone();
                        *set.last_mut().unwrap() = Flow { delay, ..*flow };
                        edf_exact(&set, ordinary)
                    };
                    prop_assert!(with(best).is_ok(), "{:?} at {}", with(best), best);
                    prop_assert!(best == flow.service || with(best.minus(ns(1))).is_err(), "{}", best);
                    prop_assert_eq!(exact.is_ok(), best <= flow.delay);
                    let answer = table.admit(flow);
                    prop_assert_eq!(answer.is_ok(), exact.is_ok());
                    prop_assert!(is_as_built(&table), "entered");
                    if let Err(denied) = answer {
                        prop_assert_eq!(denied.nearest_delay, Some(best));
                    }
                }
                Err(denied) => {
                    // A load of exactly one is left to the exact test.
                    let is_left = denied == Denied::new(NodeTest::Load, ns(1)) || is_near(&denied, &set);
                    prop_assert!(exact.is_err() || is_left, "{:?} {:?}", denied, exact);
                    prop_assert_eq!(table.admit(flow), Err(denied));
                }
            }
        }
        if table.standing > 0 {
            let index = gone.index(table.standing);
            _ = leaves_and_returns(&mut table, index)?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    /// Work above, counted by hand at each packet's deadline: the table says the same, of all flows and of
    /// the shortest bound of one more. A refusal changes nothing, and relaxing is always allowed.
    #[test]
    fn work_above_counts_at_the_deadlines_of_packets_alone(
        (flows, ordinary) in any_set(6, 30, 200),
        window in 5u64..80, part in 0u64..60, longer in 0u64..90
    ) {
        let work = window * part / 100;
        let holds = |flows: &[Flow]| {
            let of = |flow: &Flow| {
                let flow = *flow;
                (1..=3_000).map(move |m| flow.delay + flow.traffic.greedy(m))
            };
            let points = flows.iter().flat_map(of);
            points.filter(|t| *t < ns(3_000)).all(|t| {
                let due = crate::rtip::edf::demand(flows.iter(), t);
                let most = crate::rtip::edf::blocking(flows.iter(), ordinary + ns(work), t);
                let above = t.as_nanos().div_ceil(window) - 1;
                due + u128::from(most.as_nanos() + above * work) <= u128::from(t.as_nanos())
            })
        };
        let share = |flows: &[Flow]| {
            let above = crate::rtip::load::share_up(work.into(), window.into());
            flows.iter().map(load_up).sum::<u128>() + above
        };
        let near = WHOLE - WHOLE / 20;
        let mut table = owned(ordinary);
        flows.iter().for_each(|flow| _ = table.admit(flow));
        let standing = table.flows().to_vec();
        prop_assume!(share(&standing) < near);
        let set = table.set_above(ordinary + ns(work), ns(window), ns(work));
        prop_assert_eq!(set.is_ok(), holds(&standing), "{:?}", set);
        if set.is_err() {
            prop_assert_eq!(table.ordinary, ordinary.as_nanos());
            return Ok(());
        }
        for new in &flows {
            let standing = table.flows().to_vec();
            let with = |delay| {
                let mut set = standing.clone();
                set.push(Flow { delay, ..*new });
                set
            };
            if share(&with(ns(1))) >= near || table.standing >= 7 {
                break;
            }
            match table.best(&new.traffic, new.service) {
                Ok(best) => {
                    let set = with(best);
                    prop_assert!(holds(&set), "{} {:?}", best, set);
                    let mut shorter = set.clone();
                    shorter.last_mut().unwrap().delay = best.minus(ns(1));
                    prop_assert!(best == new.service || !holds(&shorter), "{}", best);
                    table.admit(set.last().unwrap()).unwrap();
                    let last = table.standing - 1;
                    prop_assert_eq!(table.relax(last, best + ns(longer)), Ok(()));
                    prop_assert!(is_as_built(&table), "relaxed beside work above");
                    if longer % 3 == 0 {
                        table.release(usize::try_from(window).unwrap() % table.standing);
                        prop_assert!(is_as_built(&table), "released beside work above");
                    }
                    prop_assert!(holds(table.flows()));
                }
                Err(_) => prop_assert!(!holds(&with(ns(2_000)))),
            }
        }
    }
}

#[test]
fn a_full_table_and_too_few_points_are_named() {
    let flow = Flow { traffic: Traffic::periodic(ns(100)).unwrap(), service: ns(1), delay: ns(50) };
    let ordinary = ns(1);
    let (mut places, mut points) = memory();
    let mut table = EdfTable::new(ordinary, &mut places[..1], &mut points[..3]);
    table.admit(&flow).unwrap();
    assert_eq!(table.admit(&flow).unwrap_err().test, NodeTest::TableFull);
    table.release(7);
    table.release(0);
    assert_eq!(table.flows(), []);
    let long = Flow { delay: ns(5_000), ..flow };
    table.admit(&long).unwrap();
    let mut table = EdfTable::new(ordinary, &mut places[..], &mut points[..3]);
    table.admit(&flow).unwrap();
    let denied = table.admit(&long).unwrap_err();
    assert_eq!(denied.test, NodeTest::Undecided);
    assert_eq!(table.flows(), [flow], "nothing has changed");
    table.admit(&flow).unwrap();
}

/// A thousand channels on 1 Gbit/s, 40 to 80 % of it: the points of one pass, as a count of work.
#[test]
fn a_thousand_channels_are_few_points() {
    let flows: Vec<Flow> = (0..1_000u64)
        .map(|i| {
            let period = ns(20_000_000 + i % 17 * 1_000_000);
            let delay = ns(10_000_000 + i % 13 * 1_000_000);
            Flow { traffic: Traffic::periodic(period).unwrap(), service: ns(8_000 + i % 5 * 1_000), delay }
        })
        .collect();
    let mut places = vec![flows[0]; 1_001];
    let mut points = vec![Point::default(); 100_000];
    let ordinary = ns(12_304);
    let mut table = EdfTable::new(ordinary, &mut places[..], &mut points[..]);
    flows.iter().for_each(|flow| table.admit(flow).unwrap());
    assert!(table.points() < 10_000, "{}", table.points());
    assert!(table.test(&flows[0]).is_ok());
}

/// A thousand channels with bursts of ten: the shortest bound of one more takes a comparison a point, and a
/// closer look at few of them.
#[test]
fn bursts_of_a_thousand_channels_are_compared_not_divided() {
    let flow = |i: u64| {
        let x_min = ns(2_000_000 + i % 17 * 100_000);
        let traffic = Traffic::new(x_min, x_min * 2, x_min * 20).unwrap();
        Flow { traffic, service: ns(2_000 + i % 5 * 300), delay: ns(20_000_000 + i % 13 * 1_000_000) }
    };
    let mut places = vec![flow(0); 1_001];
    let mut points = vec![Point::default(); 100_000];
    let mut table = EdfTable::new(ns(12_304), &mut places[..], &mut points[..]);
    (0..1_000).for_each(|i| table.admit(&flow(i)).unwrap());
    let new = flow(3);
    let (delay, looks) = table.shortest_by(&new).unwrap();
    assert!(looks * 50 < table.points() as u64, "{looks} of {} points", table.points());
    let by_all = |before: &mut Point, next: &Point| {
        let needs = need(&new, *before, next.at);
        *before = *next;
        Some(needs)
    };
    let begin = Point { at: 0, demand: 0, blocking: table.tail.service_max, is_above: true };
    let end = Point { at: table.horizon, ..Point::default() };
    let all = table.points[..table.used].iter().chain([&end]).scan(begin, by_all);
    assert_eq!(delay, all.max().unwrap().max(new.service.as_nanos()), "as with a look at each");
}
