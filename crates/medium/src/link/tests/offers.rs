//! The nearest request of a share that was refused: asked at once, it is admitted.

use super::*;
use rota_admission::rtip::{Discipline, Scheduler};
use rota_admission::{Refusal, Test};

/// The answer to a share of the link itself, and the number that it has then.
fn slots(bench: &mut Bench, octets: u64, period: Span) -> Result<SessionId, Box<Refusal>> {
    let at = bench.ask(octets, period);
    bench.run(ms(40));
    let id = bench.queues[at].id;
    let refused = bench.heard.iter().find_map(|event| match event {
        MediumEvent::Refused { session, refusal } if *session == id => Some(Box::new(refusal.clone())),
        _ => None,
    });
    assert!(refused.is_some() || bench.answer(at).is_some_and(|answer| answer.is_ok()), "it is decided");
    refused.map_or(Ok(id), Err)
}

/// The offer of a refusal is admitted and is the nearest one; the period that it names, if it does.
fn offer_holds(bench: &mut Bench, octets: u64, period: Span, refusal: &Refusal) -> Option<Span> {
    let mut is_admitted = |octets: u64, period: Span| {
        let admitted = slots(bench, octets, period);
        admitted.is_ok_and(|id| {
            bench.link.release(bench.now, id);
            bench.run(ms(70));
            true
        })
    };
    match (refusal.counter_offer, refusal.counter_period) {
        (Some(unit), None) => {
            let unit = unit.get();
            assert!((1..octets).contains(&unit), "{refusal:?}");
            assert!(is_admitted(unit, period) && !is_admitted(unit + 1, period), "{refusal:?}");
        }
        (None, Some(longer)) => assert!(longer > period && is_admitted(octets, longer), "{refusal:?}"),
        (None, None) => assert!(!is_admitted(1, period), "{refusal:?}"),
        (Some(_), Some(_)) => panic!("one is enough: {refusal:?}"),
    }
    refusal.counter_period
}

/// Such a refusal had no offer.
#[test]
fn slots_that_would_make_packets_late_are_offered_what_fits_beside_them() {
    let mut tests = Vec::new();
    for scheduler in [Scheduler::DelayEdd, Scheduler::Rcsp] {
        for (each, octets) in [(20, 6_000), (20, 30_000), (4, 9_000), (2, 14_000)] {
            let mut bench = Bench::quiet(10);
            bench.link.settings.discipline = Discipline::of(Some(scheduler), None).expect("usual");
            assert!(flow_during(&mut bench, 900, each, Life::ALWAYS).is_ok());
            let trt = bench.trt();
            if let Err(refusal) = slots(&mut bench, octets, trt) {
                offer_holds(&mut bench, octets, trt, &refusal);
                tests.push(refusal.test);
            }
        }
    }
    for test in [Test::EdfExact, Test::RcspLevel] {
        assert!(tests.contains(&test), "{tests:?}");
    }
}

/// Units that come too often for any size are offered a longer period.
#[test]
fn slots_of_which_none_is_small_enough_are_offered_a_longer_period() {
    let mut bench = Bench::quiet(10);
    for id in [900, 901] {
        assert!(flow_during(&mut bench, id, 2, Life::ALWAYS).is_ok());
        assert!(bench.link.relax(SessionId(id), ms(200)) > Some(ms(100)));
    }
    let often = bench.trt().div_down(20);
    let refusal = slots(&mut bench, 40, often).expect_err("each slot has its start");
    assert!(refusal.counter_offer.is_none(), "{refusal:?}");
    let longer = offer_holds(&mut bench, 40, often, &refusal).expect("a longer period");
    assert!(refusal.to_string().contains("at this period; the shortest one with which this unit fits is"));
    assert!(longer <= bench.trt() * 2, "{longer}");
}

/// Slots beside what is booked, and beside the statistical class.
#[test]
fn an_offer_holds_beside_what_is_booked_and_beside_chances() {
    let mut bench = Bench::quiet(10);
    let life = Life { from: bench.now + ms(60_000), until: bench.now + ms(90_000) };
    assert!(flow_during(&mut bench, 901, 4, life).is_ok());
    let trt = bench.trt();
    let refusal = slots(&mut bench, 30_000, trt).expect_err("packets are booked");
    if refusal.counter_offer.is_some() {
        offer_holds(&mut bench, 30_000, trt, &refusal);
    }
    let mut bench = Bench::quiet(10);
    assert!(flow_of(&mut bench, 902, by_chance()).is_ok());
    assert!(bench.link.relax(SessionId(902), ms(100)).is_some());
    let refusal = slots(&mut bench, 30_000, trt).expect_err("an overload would be too likely");
    offer_holds(&mut bench, 30_000, trt, &refusal);
}
