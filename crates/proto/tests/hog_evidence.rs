//! The limits of evidence against a station, down to the last hold and the last cycle (decision 016). A
//! script plays the other stations.

use crate::rig::hogs::{GIVEN, begin, cycle, given, hop, struck, token, visit};
use crate::rig::{ME, Rig, TRT, mac, ms};
use rota_proto::ChannelEvent;
use rota_units::Span;
use rota_wire::{Foul, Kind, Phase, Slot, SlotList, Struck, Token};

/// When the time of the first slot is over.
const OFFSET: Span = Span::from_millis(6);
const HELD: Option<Struck> = Some(Struck { station: 3, why: Foul::Held });

fn slack(rig: &Rig) -> Span {
    rig.settings.delay_max * 2 + rig.settings.link.hop
}

fn a_visit(rig: &Rig) -> Span {
    rig.settings.params(2).nrt_hold_max()
}

/// The longest that a station may keep the token which it is given at the end of the slot before: its slot,
/// and an ordinary visit, since its slot is the last one.
fn allowed(rig: &Rig) -> Span {
    OFFSET.minus(GIVEN) + ms(6) + a_visit(rig) + slack(rig)
}

/// So many holds of a length; then a visit.
fn holds(rig: &mut Rig, holds: u32, kept: Span) -> Option<Struck> {
    (0..holds).for_each(|at| cycle(rig, 10 + at * 2, kept));
    visit(rig, 10 + holds * 2);
    struck(rig)
}

#[test]
fn twelve_holds_a_little_too_long_are_evidence_and_eleven_are_not() {
    for (count, wanted) in [(11, None), (12, HELD)] {
        let mut rig = Rig::ring();
        let kept = allowed(&rig) + ms(1);
        assert_eq!(holds(&mut rig, count, kept), wanted, "{count}");
    }
}

#[test]
fn holds_that_end_just_in_time_are_no_evidence() {
    let mut rig = Rig::ring();
    let kept = allowed(&rig);
    assert_eq!(holds(&mut rig, 16, kept), None);
}

/// More than a quarter of the cycle too long is far too long.
#[test]
fn six_holds_are_evidence_only_where_they_are_far_too_long() {
    for (more, wanted) in [(Span::ZERO, None), (ms(1), HELD)] {
        let mut rig = Rig::ring();
        let kept = allowed(&rig) + TRT.div_down(4) + more;
        assert_eq!(holds(&mut rig, 6, kept), wanted, "{more}");
    }
}

/// Behind its slot there is another one: the ordinary visit is not due before that.
#[test]
fn a_station_in_the_middle_may_keep_the_token_for_its_slot_only() {
    for (more, wanted) in [(Span::ZERO, None), (Span::from_nanos(1_000), HELD)] {
        let mut rig = Rig::ring();
        let kept = OFFSET.minus(GIVEN) + ms(6) + slack(&rig) + more;
        for at in 0..12 {
            let number = 10 + at * 2;
            let three = |token: &mut Token| {
                assert!(token.slots.push(Slot {
                    station: 1,
                    tht_ns: 3_000_000,
                    periodic: true,
                    partition: 0
                }));
            };
            begin(&mut rig, number, three);
            rig.run(GIVEN);
            let mut given = token(&rig, number, Phase::RealTime, 1, GIVEN);
            three(&mut given);
            hop(&mut rig, (1, 3), 1, &given);
            rig.run(kept);
            let said = Token { position: 2, ..given };
            hop(&mut rig, (3, 1), 1, &said);
            rig.run(ms(3));
        }
        visit(&mut rig, 40);
        assert_eq!(struck(&rig), wanted, "{more}");
    }
}

/// Only a hold that ends with the very next token of its holder, in its own cycle, is measured.
#[test]
fn a_token_that_is_not_the_next_one_of_its_holder_is_no_evidence() {
    for what in 0..4 {
        let mut rig = Rig::ring();
        for at in 0..8 {
            let number = 10 + at * 2;
            given(&mut rig, number, |rig, _| {
                rig.run(ms(50));
                let said = token(rig, number, Phase::Home, 2, ms(8));
                match what {
                    0 => hop(rig, (3, 1), 1, &said),
                    1 => hop(rig, (3, 1), 2, &said),
                    2 => hop(rig, (1, 3), 1, &Token { phase: Phase::NonRealTime, ..said }),
                    _ => hop(rig, (3, 1), 1, &Token { cycle: number + 1, ..said }),
                }
            });
        }
        visit(&mut rig, 40);
        assert_eq!(struck(&rig), HELD.filter(|_| what == 0), "case {what}");
    }
}

/// A copy of the token may be the one that came: the hold is measured from the last one.
#[test]
fn a_token_that_was_sent_again_is_measured_from_its_copy() {
    for (kept, wanted) in [(ms(10), None), (ms(50), HELD)] {
        let mut rig = Rig::ring();
        for at in 0..8 {
            let number = 10 + at * 2;
            given(&mut rig, number, |rig, given| {
                rig.run(ms(40));
                hop(rig, (1, 3), 0, given);
                rig.run(kept);
                let said = token(rig, number, Phase::Home, 2, ms(8));
                hop(rig, (3, 1), 1, &said);
            });
        }
        visit(&mut rig, 40);
        assert_eq!(struck(&rig), wanted, "{kept}");
    }
}

/// A station that has stopped its mischief for eight cycles is not struck any more.
#[test]
fn evidence_ends_eight_cycles_behind_the_last_of_it() {
    for (quiet, wanted) in [(ms(240), HELD), (ms(270), None)] {
        let mut rig = Rig::ring();
        (0..6).for_each(|at| cycle(&mut rig, 10 + at * 2, ms(50)));
        // The waits of `cycle` and `visit` are part of it.
        rig.run(quiet.minus(ms(5)));
        visit(&mut rig, 40);
        assert_eq!(struck(&rig), wanted, "{quiet}");
    }
}

/// A token that has waited for a claim says nothing of its holder, and what was known is forgotten.
#[test]
fn a_claim_clears_the_station_that_was_just_accused() {
    let mut rig = Rig::ring();
    (0..6).for_each(|at| cycle(&mut rig, 10 + at * 2, ms(50)));
    rig.stamp.0 += 1;
    begin(&mut rig, 24, |_| ());
    rig.run(GIVEN);
    let given = token(&rig, 24, Phase::RealTime, 1, GIVEN);
    hop(&mut rig, (1, 3), 1, &given);
    rig.run(ms(2));
    visit(&mut rig, 26);
    assert_eq!(struck(&rig), None);
}

/// Each return costs the others one more audit: the wait doubles. A strike that is told twice is one.
#[test]
fn the_second_exclusion_is_twice_as_long() {
    let mut rig = Rig::ring();
    let out = |list: &mut Token| {
        list.dead.insert(3);
        list.struck = HELD;
    };
    begin(&mut rig, 9, |_| ());
    for (at, wanted) in [8_000, 16_000, 32_000].into_iter().enumerate() {
        let number = 10 + at as u32 * 4;
        begin(&mut rig, number, out);
        begin(&mut rig, number + 1, out);
        rig.run(ms(1));
        let told: Vec<_> = rig
            .events
            .drain(..)
            .filter_map(|event| match event {
                ChannelEvent::Struck(excluded) => Some(excluded.wait),
                _ => None,
            })
            .collect();
        assert_eq!(told, [ms(wanted)]);
        begin(&mut rig, number + 2, |_| ());
    }
}

/// Another's exclusion is not its own: declared dead, it says at once that it lives.
#[test]
fn a_station_that_knows_of_an_exclusion_speaks_for_itself() {
    let mut rig = Rig::ring();
    assert_eq!(holds(&mut rig, 6, ms(50)), HELD);
    let now = rig.now;
    assert_eq!(rig.node.rether().excluded(now).count(), 1);
    rig.clear();
    begin(&mut rig, 40, |list| {
        list.dead.insert(3);
        list.dead.insert(ME);
    });
    rig.run(ms(1));
    assert_eq!(rig.count(Kind::Announce), 1);
}

// ---- audits -------------------------------------------------------------------------------------------

/// The token comes to this station so long behind the slot before; whether it goes on audited.
fn comes(rig: &mut Rig, cycle: u32, late: bool) -> bool {
    begin(rig, cycle, |_| ());
    let spent = if late { ms(25) } else { ms(5) };
    rig.run(spent);
    rig.clear();
    let here = token(rig, cycle, Phase::RealTime, 1, spent);
    rig.hear_token(1, 1, &here);
    rig.run(ms(2));
    rig.last_token().audit.is_some()
}

#[test]
fn two_late_tokens_of_sixty_four_cycles_begin_an_audit() {
    for (second, wanted) in [(12, true), (73, true), (74, false), (75, false)] {
        let mut rig = Rig::ring();
        assert!(!comes(&mut rig, 10, true), "one late token is none");
        assert_eq!(comes(&mut rig, second, true), wanted, "{second}");
        assert!(!comes(&mut rig, second + 63, false), "the first is forgotten by then");
    }
}

/// Its cause is gone: the late tokens from before begin no audit.
#[test]
fn a_strike_forgets_the_late_tokens() {
    let mut rig = Rig::ring();
    assert!(!comes(&mut rig, 6, true) && comes(&mut rig, 8, true));
    assert_eq!(holds(&mut rig, 6, ms(50)), HELD);
    rig.clear();
    begin(&mut rig, 40, |list| list.dead.insert(3));
    let here = Token { audit: None, ..token(&rig, 40, Phase::NonRealTime, 1, ms(2)) };
    let mut here = Token { slots: SlotList::EMPTY, ..here };
    assert!(here.slots.push(Slot { station: 1, tht_ns: 6_000_000, periodic: true, partition: 0 }));
    here.dead.insert(3);
    rig.hear_token(1, 1, &here);
    rig.run(ms(3));
    assert_eq!(rig.last_token().audit, None);
}

#[test]
fn an_audit_ends_after_sixty_four_cycles() {
    let (mut rig, _) = Rig::master(1_000, true);
    let ask = |at: u32, token: &mut Token| {
        if at == 1 {
            token.audit = Some(mac(ME));
        }
    };
    let audits: Vec<bool> = rig.lists(1, 90, ask).iter().map(|list| list.audit.is_some()).collect();
    let first = audits.iter().position(|audit| *audit).expect("an audit");
    let count = audits.iter().filter(|audit| **audit).count();
    assert!(first < 4 && (63..=65).contains(&count), "{first} {count}");
    assert!(!audits.last().expect("some"), "it is over");
}

/// The list of the station that strikes tells it, and the next one of the master.
#[test]
fn the_master_tells_of_a_strike_once() {
    let (mut rig, _) = Rig::master(1_000, true);
    let strike = |at: u32, token: &mut Token| {
        if at >= 3 {
            token.dead.insert(1);
        }
        if at == 3 {
            token.struck = Some(Struck { station: 1, why: Foul::Held });
        }
    };
    let struck: Vec<bool> = rig.lists(3, 8, strike).iter().map(|list| list.struck.is_some()).collect();
    assert_eq!(struck.iter().filter(|struck| **struck).count(), 1, "{struck:?}");
}
