//! Claim rounds in which the claimant stands still, or an answer is late.

use crate::rig::{ME, Rig, ms};
use rota_proto::Settings;
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::bodies::StationState;
use rota_wire::{Claim, ClaimGrant, Generation, Kind, Nack, Phase, Token};

/// A ring of stations 1, [`ME`] and 3 that has been silent until [`ME`] claims.
fn claiming() -> Rig {
    let mut rig = Rig::ring();
    let token = rig.token(Phase::NonRealTime, &[(1, 6_000, true)]);
    rig.hear_token(1, 5, &token);
    rig.clear();
    rig.run(ms(2_000).min(rig.settings.silence(3)));
    assert_eq!(rig.state(), "claiming");
    rig.clear();
    rig
}

fn grant(rig: &mut Rig, from: u16, newer: bool) {
    let claim = rig.last(Kind::Claim).header.generation;
    let (counter, station, seq) = rig.stamp;
    let seen = Generation { counter, station };
    let list = newer.then(|| Token { rested: true, ..rig.token(Phase::RealTime, &[(1, 6_000, true)]) });
    let seen_seq = if newer { seq + 50 } else { 0 };
    let grant = ClaimGrant { generation: claim, seen, seen_seq, key_epoch: rig.ring_key.0, list };
    let mut body = [0; 600];
    let length = grant.emit(&mut body);
    rig.hear(from, Kind::ClaimGrant, &body[..length]);
}

/// The drain of stations 1 and 3, of which 1 is the cycle master.
fn drain_of_both(settings: &Settings) -> Span {
    settings.drain(2, true)
}

/// Seed 7000023693 of the product's timers: an answer with a newer list, late in the drain, began it anew.
#[test]
fn a_late_answer_with_a_newer_list_does_not_prolong_the_drain() {
    let mut rig = claiming();
    let asks = rig.settings.claim_every() * (u64::from(rig.settings.claim_tries) + 1);
    let whole = asks + drain_of_both(&rig.settings);
    let late = whole.minus(ms(50));
    rig.run(late);
    assert_eq!((rig.state(), rig.count(Kind::Token)), ("claiming", 0));
    grant(&mut rig, 1, true);
    assert_eq!(rig.state(), "claiming", "station 3 may still hold the old token");
    rig.run(ms(60));
    assert!(rig.state() != "claiming" && rig.count(Kind::Token) > 0, "{}", rig.state());
}

/// An early answer shortens the drain for its whole length: the drain waits for the other stations only.
#[test]
fn an_early_answer_leaves_only_the_rest_to_wait_for() {
    let mut rig = claiming();
    rig.run(rig.settings.claim_every() * 6);
    grant(&mut rig, 1, true);
    rig.run(rig.settings.drain(1, false) + ms(1));
    assert!(rig.state() != "claiming" && rig.count(Kind::Token) > 0, "{}", rig.state());
}

/// Stands still for the given time: no timer of the node runs meanwhile.
fn stand_still(rig: &mut Rig, span: Span) {
    rig.clear();
    let woke: Instant = rig.now + span;
    rig.now = woke;
    rig.node.handle_deadline(woke);
    rig.drain();
}

/// Seed 7000001956 of the product's timers: a claimant that woke after the others had made a ring without it
/// claimed anew at once, and waited for stations that it could not know any more.
#[test]
fn a_claimant_that_stood_still_for_longer_than_a_silence_listens_first() {
    let mut rig = claiming();
    rig.run(ms(30));
    let all = rig.settings.silence(4);
    stand_still(&mut rig, all);
    assert_eq!((rig.state(), rig.count(Kind::Claim)), ("ring", 0));
    rig.run(rig.settings.silence(0).minus(ms(1)));
    assert_eq!(rig.count(Kind::Claim), 0, "{ME} listens for as long as any station");
    rig.run(rig.settings.silence(3).minus(rig.settings.silence(0)) + ms(2));
    assert!(rig.count(Kind::Claim) > 0, "and claims when it still hears nothing");
}

/// A shorter standstill: the others still wait for this claim, which begins anew under a new generation.
#[test]
fn a_claimant_that_stood_still_for_less_claims_anew() {
    let mut rig = claiming();
    rig.run(ms(30));
    let before = rig.last(Kind::Claim).header.generation;
    let short = rig.settings.drain(1, false) + ms(5);
    stand_still(&mut rig, short);
    assert_eq!(rig.state(), "claiming");
    rig.run(ms(1));
    assert!(rig.last(Kind::Claim).header.generation > before);
}

/// Seed 516558 of the product's timers: a claimant stood still before its first claim left. Station 3 claimed
/// meanwhile with the same counter, and so an older generation. The claimant heard nothing of its ring.
#[test]
fn a_claim_that_never_left_is_taken_back_with_its_fence() {
    let mut rig = Rig::ring();
    let token = rig.token(Phase::NonRealTime, &[(1, 6_000, true)]);
    rig.hear_token(1, 5, &token);
    rig.run(ms(1));
    rig.clear();
    while rig.state() != "claiming" {
        rig.drain();
        rig.now = rig.node.deadline();
        rig.node.handle_deadline(rig.now);
    }
    let own = rig.node.rether().newest();
    rig.now += rig.settings.silence(4);
    rig.stamp = (own.counter, 3, 1);
    assert!(Generation { counter: own.counter, station: 3 } < own);
    rig.hear_token(3, 5, &token);
    assert_eq!(rig.node.rether().list_stamp().0, Generation { counter: own.counter, station: 3 });
    rig.run(ms(1));
    assert_eq!(rig.count(Kind::Claim), 0);
}

/// Another station may have heard a claim that has left: its fence stays.
#[test]
fn a_claim_that_has_left_keeps_its_fence() {
    let mut rig = claiming();
    rig.run(ms(30));
    let (own, before) = (rig.node.rether().newest(), rig.node.rether().list_stamp());
    assert_eq!(rig.last(Kind::Claim).header.generation, own);
    rig.now += rig.settings.silence(4);
    rig.stamp = (own.counter, 3, 1);
    let token = rig.token(Phase::NonRealTime, &[(1, 6_000, true)]);
    rig.hear_token(3, 5, &token);
    assert_eq!((rig.node.rether().list_stamp(), rig.node.rether().newest()), (before, own));
}

/// Station 3 dies so often and then answers a claim; whether the new token visits it.
fn visits_after_deaths(deaths: usize) -> bool {
    let mut rig = Rig::ring();
    for _ in 0..deaths {
        let mut token = rig.token(Phase::NonRealTime, &[(1, 6_000, true)]);
        rig.hear_token(1, 5, &token);
        token.dead.insert(3);
        rig.hear_token(1, 5, &token);
    }
    rig.run(ms(2_000).min(rig.settings.silence(3)));
    assert_eq!(rig.state(), "claiming");
    rig.run(ms(1));
    grant(&mut rig, 1, false);
    grant(&mut rig, 3, false);
    rig.run(ms(1));
    assert_ne!(rig.state(), "claiming", "all have answered");
    !rig.node.rether().is_dead(3)
}

/// Each claim brought back who had to wait: where a wire was deaf in one direction, the next claim followed.
#[test]
fn a_station_that_has_to_wait_stays_out_though_it_answers_a_claim() {
    assert!(visits_after_deaths(1), "it lives, and has not died often");
    assert!(!visits_after_deaths(6), "it has to wait for 8 s");
}

/// Stations 1 and 3 answer a claim by silence with a list that is so many hops newer than this station's.
/// Station 3 has said that of its address.
fn strikes_after_answers(newer_by: u64, said: u64) -> u64 {
    strikes_after(newer_by, 0, said, Span::ZERO)
}

/// The same where that list is of a cycle so much later, and the answers come so long after the question.
fn strikes_after(newer_by: u64, cycles: u32, said: u64, after: Span) -> u64 {
    let mut rig = Rig::ring();
    rig.answers = said;
    rig.announce(3, StationState::Ring);
    rig.answers = 0;
    let list = Token { rested: true, ..rig.token(Phase::RealTime, &[(1, 6_000, true)]) };
    let mut body = [0; 600];
    let length = list.emit(&mut body);
    rig.hear_ring(1, Kind::List, (1, 1, 20), &body[..length]);
    rig.run(ms(2_000).min(rig.settings.silence(3)));
    assert_eq!((rig.state(), rig.node.rether().list_stamp().1), ("claiming", 20));
    let claim = rig.last(Kind::Claim).header.generation;
    let (seen, seq) = rig.node.rether().list_stamp();
    rig.run(after);
    for from in [3, 1] {
        let list = Some(Token { cycle: list.cycle + cycles, ..list });
        let seen_seq = seq + newer_by;
        let grant = ClaimGrant { generation: claim, seen, seen_seq, key_epoch: rig.ring_key.0, list };
        let mut body = [0; 600];
        let length = grant.emit(&mut body);
        rig.hear(from, Kind::ClaimGrant, &body[..length]);
    }
    rig.run(ms(1));
    assert_ne!(rig.state(), "claiming", "all have answered");
    rig.node.rether().counters().strikes
}

/// A newer list shows which station had the token last. An equal list shows nothing.
#[test]
fn an_answer_with_an_equal_list_accuses_no_station() {
    assert_eq!(strikes_after_answers(0, 0), 0);
    assert_eq!(
        strikes_after_answers(1, 0),
        1,
        "station 3 has the newest list; that of station 1 is no newer"
    );
}

/// Each claim of a station whose link flapped gave the sender of a channel between others a strike, and the
/// third one ended the channel.
#[test]
fn a_claimant_that_was_cut_off_itself_accuses_no_station() {
    assert_eq!((strikes_after(9, 1, 0, Span::ZERO), strikes_after(9, 2, 0, Span::ZERO)), (1, 0));
    let asks = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000)).claim_every();
    assert_eq!(strikes_after(1, 0, 0, asks.div_down(2)), 1, "the first question is answered");
    assert_eq!(strikes_after(1, 0, 0, asks + asks.div_down(2)), 0);
}

/// Nobody knows why frames go astray: the station itself may have stalled.
#[test]
fn only_a_stranger_that_was_heard_excuses_a_strike() {
    let (used, astray) = (u64::MAX, u64::MAX - 2);
    assert_eq!((strikes_after_answers(1, used), strikes_after_answers(1, astray)), (0, 1));
}

fn hear_nack(rig: &mut Rig, from: u16, nack: Nack) {
    let mut body = [0; 32];
    let length = nack.emit(&mut body);
    rig.hear(from, Kind::Nack, &body[..length]);
    rig.run(ms(1));
}

/// Seed 909178 of the product's timers: two of seven stations had taken the Form of a later epoch, and
/// granted each claim of the others. No token was under a key that all had, and the ring never came back.
#[test]
fn a_claim_of_an_earlier_epoch_is_refused_and_delays_no_other_claim() {
    let mut rig = Rig::ring();
    let token = rig.token(Phase::NonRealTime, &[(1, 6_000, true)]);
    rig.hear_token(1, 5, &token);
    rig.clear();
    rig.run(rig.settings.silence(3).div_down(2));
    let generation = Generation { counter: 9, station: 3 };
    let mut body = [0; 32];
    let length = Claim { generation, mode_epoch: rig.mode_epoch - 1 }.emit(&mut body);
    rig.hear(3, Kind::Claim, &body[..length]);
    rig.run(ms(1));
    assert_eq!((rig.count(Kind::ClaimGrant), rig.count(Kind::Nack)), (0, 1));
    rig.run(rig.settings.silence(3).div_down(2));
    assert_eq!(rig.state(), "claiming", "the silence was counted on");
    assert!(rig.last(Kind::Claim).header.generation > generation, "the others believe no older token");
}

#[test]
fn a_claimant_of_an_earlier_epoch_waits_for_the_others_and_then_asks_to_be_let_in() {
    let mut rig = claiming();
    rig.run(ms(1));
    let equal = Nack { generation: Generation::default(), mode_epoch: rig.mode_epoch };
    let later = Nack { mode_epoch: rig.mode_epoch + 1, ..equal };
    hear_nack(&mut rig, 1, equal);
    assert_eq!(rig.state(), "claiming", "that station is behind");
    hear_nack(&mut rig, 1, later);
    assert_eq!(rig.state(), "ring", "the others may claim");
    rig.run(rig.settings.silence(3) + ms(1));
    assert_eq!(rig.state(), "claiming");
    hear_nack(&mut rig, 1, later);
    assert_eq!(rig.state(), "joining a ring");
}
