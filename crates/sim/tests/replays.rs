//! A run with a log is the run without one: the same events, judged by the same rules up to its end.

use rota_sim::{Fault, Moment, Reservation, RunResult, Scenario, Settings, Shape, Timed, sweep};
use rota_units::{BitRate, Octets, Span};
use std::cell::RefCell;
use std::rc::Rc;

/// One station is gone for good shortly before a quiet that is too short to notice it.
fn restless() -> Scenario {
    let settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
    let mut scenario = Scenario::new("restless", 3, settings);
    (scenario.duration, scenario.quiet) = (Span::from_millis(1_000), Span::from_millis(20));
    let period = scenario.world.settings.trt;
    let shape = Shape::Periodic { period, octets: 1_000 };
    scenario.reservations.push(Reservation {
        from: 0,
        to: 2,
        unit: 1_000,
        period,
        periodic: true,
        must_admit: true,
        open: Span::ZERO,
        close: None,
        shape,
        changes: Vec::new(),
    });
    let fault = Fault::Crash { host: 0, moment: Moment::Now, down: None };
    scenario.faults.push(Timed::new(Span::from_millis(990), Span::ZERO, fault));
    scenario
}

fn replayed(scenario: &Scenario, from: Span, to: Option<Span>) -> (RunResult, Vec<String>) {
    let lines = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&lines);
    let put = move |line: &str| {
        log.borrow_mut().push(line.to_owned());
        true
    };
    let outcome = sweep::run_with(7, scenario, |run| run.world.keep_log(from, to, Box::new(put)));
    let lines = lines.borrow().clone();
    (outcome, lines)
}

/// A replay used to stop before the rules that are judged at a run's end.
#[test]
fn a_replay_breaks_the_rules_that_the_run_breaks_at_its_end() {
    let scenario = restless();
    let run = sweep::run(7, &scenario);
    assert!(!run.violations.is_empty(), "the quiet was too short for anybody to agree");
    let (again, lines) = replayed(&scenario, Span::MAX, None);
    assert_eq!((again.hashes, again.events), (run.hashes, run.events));
    assert_eq!(again.violations, run.violations);
    let broken = lines.iter().filter(|line| line.starts_with("!! ")).count();
    assert_eq!((broken, lines.len()), (run.violations.len(), broken));
}

#[test]
fn a_log_of_a_part_holds_that_part_and_says_that_it_is_one() {
    let scenario = restless();
    let (from, to) = (Span::from_millis(100), Span::from_millis(300));
    let (outcome, lines) = replayed(&scenario, from, Some(to));
    assert!(outcome.is_cut_short && lines.len() > 10);
    for line in &lines {
        let at: u64 = line.trim_start().split(' ').next().and_then(|at| at.parse().ok()).expect("a time");
        assert!((from.as_nanos()..=to.as_nanos()).contains(&at), "{line}");
    }
    assert_eq!(outcome.violations, [], "what is judged at the end was not judged");
}
