//! Between plain Ethernet and token mode, frame by frame (paper sections 2.2.2, 2.2.4 and 2.4).

use crate::rig::{self, ME, Rig, mac, ms};
use rota_proto::{ChannelEvent, Input, Output, PortId};
use rota_units::Span;
use rota_wire::bodies::StationState;
use rota_wire::{
    Claim, ClaimGrant, Form, Generation, Kind, LinkHeader, MacAddr, ModeNotice, Nack, Phase, Switch,
    SwitchAck, Token,
};

fn claim(rig: &mut Rig, from: u16, counter: u32) {
    let generation = Generation { counter, station: from };
    let mut body = [0; 10];
    Claim { generation, mode_epoch: rig.mode_epoch }.emit(&mut body);
    rig.hear(from, Kind::Claim, &body);
}

fn mode(rig: &mut Rig, from: u16, mode_epoch: u32, ring: bool) {
    let mut body = [0; 5];
    ModeNotice { mode_epoch, ring }.emit(&mut body);
    if rig.in_ring() && !ring {
        // A living ring ends by its own word only.
        rig.hear(from, Kind::Mode, &body);
        assert!(rig.in_ring(), "the segment's key does not end a ring");
        let stamp = rig.stamp;
        rig.hear_ring(from, Kind::Mode, stamp, &body);
    } else {
        rig.hear(from, Kind::Mode, &body);
    }
}

#[test]
fn a_booting_station_announces_itself_and_takes_the_lowest_free_place() {
    let mut rig = Rig::new();
    assert_eq!(rig.state(), "joining");
    rig.run(ms(50));
    assert_eq!(rig.count(Kind::Announce), 1);
    rig.announce(1, StationState::Plain);
    rig.run(ms(400));
    assert_eq!((rig.state(), rig.node.rether().station()), ("plain", 2));
}

#[test]
fn a_booting_station_that_hears_of_a_ring_never_assumes_plain_ethernet() {
    let mut rig = Rig::new();
    rig.announce(1, StationState::Ring);
    rig.run(ms(2_000));
    assert_eq!(rig.state(), "joining a ring");
    assert!(rig.count(Kind::Announce) > 10, "it keeps asking");
}

#[test]
fn the_initiator_starts_the_token_only_with_all_acknowledgements() {
    let mut rig = Rig::plain();
    rig.open(6_250, true);
    rig.run(ms(1));
    assert_eq!((rig.state(), rig.count(Kind::Switch)), ("initiating", 1));
    rig.ack_switch(1);
    rig.run(ms(2));
    assert_eq!((rig.state(), rig.count(Kind::Token)), ("initiating", 0));
    rig.ack_switch(3);
    rig.run(ms(2));
    assert_eq!(rig.count(Kind::Form), 2, "told twice, since one loss must not shut a station out");
    assert_eq!(rig.count(Kind::Token), 1);
    assert_eq!(rig.last_token().phase, Phase::First);
}

#[test]
fn the_initiator_waits_for_its_own_card_too() {
    let mut rig = Rig::plain();
    rig.card_empties = false;
    rig.open(6_250, true);
    rig.run(ms(400));
    assert_eq!((rig.state(), rig.count(Kind::Switch)), ("initiating", 0));
    rig.card_empty();
    rig.run(ms(1));
    assert_eq!(rig.count(Kind::Switch), 1);
}

#[test]
fn a_card_that_never_empties_does_not_keep_the_host_silent() {
    let mut rig = Rig::plain();
    rig.card_empties = false;
    rig.open(6_250, true);
    rig.run(ms(600));
    assert_eq!((rig.state(), rig.count(Kind::Switch)), ("plain", 0));
}

/// It stays in plain Ethernet under the epoch of the switch that nobody has heard of. It did not answer the
/// next initiator, whose ring had the same epoch.
#[test]
fn whoever_asked_nobody_to_switch_answers_the_next_initiator() {
    let mut rig = Rig::plain();
    let before = rig.node.rether().mode_epoch();
    rig.card_empties = false;
    rig.open(6_250, true);
    assert_eq!(rig.node.rether().mode_epoch(), before + 1);
    rig.run(ms(600));
    assert_eq!((rig.state(), rig.count(Kind::Switch)), ("plain", 0));
    assert_eq!(rig.node.rether().mode_epoch(), before + 1, "an epoch never falls");
    rig.card_empties = true;
    rig.mode_epoch = before + 1;
    rig.switch(3, 0);
    rig.run(ms(5));
    assert_eq!((rig.state(), rig.count(Kind::SwitchAck)), ("yielding", 1));
}

#[test]
fn of_several_initiators_the_smaller_id_wins() {
    let mut rig = Rig::plain();
    rig.open(6_250, true);
    rig.mode_epoch = rig.node.rether().mode_epoch();
    rig.switch(3, 0);
    assert_eq!(rig.state(), "initiating", "the greater id gets no acknowledgement");
    rig.run(ms(5));
    assert_eq!(rig.count(Kind::SwitchAck), 0);
    rig.switch(1, 0);
    rig.run(ms(5));
    assert_eq!(rig.state(), "yielding");
    assert_eq!((rig.last(Kind::SwitchAck).to, rig.count(Kind::SwitchAck)), (mac(1), 1));
}

/// REPAIR-B11. The greater initiator missed our switch, and was not answered until that was repeated.
#[test]
fn an_initiator_that_missed_a_better_one_is_told_so_at_once() {
    let mut rig = Rig::plain();
    rig.card_empties = false;
    rig.open(6_250, true);
    rig.mode_epoch = rig.node.rether().mode_epoch();
    rig.switch(3, 0);
    rig.run(ms(5));
    assert_eq!(rig.count(Kind::Switch), 0, "whoever cannot be silent yet asks nobody to be");
    rig.card_empty();
    rig.run(ms(1));
    assert_eq!((rig.last(Kind::Switch).to, rig.count(Kind::Switch)), (MacAddr::BROADCAST, 1));
    rig.switch(3, 0);
    rig.run(ms(1));
    let answer = rig.last(Kind::Switch);
    assert_eq!((answer.to, answer.header.source, rig.count(Kind::Switch)), (mac(3), ME, 2));
    assert_eq!(Switch::parse(&answer.body).map(|switch| switch.mode_epoch), Ok(rig.mode_epoch));
    // A station that has yielded speaks for nobody.
    rig.switch(1, 0);
    rig.switch(3, 0);
    rig.run(ms(5));
    assert_eq!((rig.state(), rig.count(Kind::Switch)), ("yielding", 2));
}

#[test]
fn a_yielding_station_changes_only_to_a_smaller_initiator() {
    let mut rig = Rig::plain();
    rig.switch(3, 1);
    rig.run(ms(5));
    rig.switch(1, 0);
    rig.run(ms(5));
    rig.switch(3, 0);
    rig.run(ms(5));
    let to: Vec<_> = rig.sent.iter().filter(|s| s.header.kind == Kind::SwitchAck).map(|s| s.to).collect();
    assert_eq!(to, [mac(3), mac(1)]);
}

#[test]
fn a_station_acknowledges_only_when_its_own_frames_have_left_the_card() {
    let mut rig = Rig::plain();
    rig.card_empties = false;
    rig.switch(1, 1);
    rig.run(ms(50));
    assert_eq!((rig.state(), rig.count(Kind::SwitchAck)), ("yielding", 0));
    rig.card_empty();
    let empty = rig.now;
    rig.run(ms(5));
    let ack = rig.last(Kind::SwitchAck);
    assert_eq!(ack.at.since(empty), rig.settings.ack_spacing * u64::from(ME), "spaced by its number");
    assert_eq!(SwitchAck::parse(&ack.body).map(|ack| ack.initiator), Ok(1));
}

#[test]
fn stations_that_never_answer_are_left_out_after_the_retries() {
    let mut rig = Rig::plain();
    rig.open(6_250, true);
    rig.ack_switch(3);
    while rig.state() == "initiating" {
        rig.run(ms(1));
    }
    assert_eq!(rig.count(Kind::Switch), usize::from(rig.settings.switch_tries) + 1);
    let form = Form::parse(&rig.sent.iter().find(|s| s.header.kind == Kind::Form).expect("formed").body);
    let named: Vec<u16> = form.expect("sound").members().iter().map(|member| member.station).collect();
    assert_eq!(named, [2, 3]);
    assert_eq!(rig.node.rether().counters().stations_declared_dead, 1);
}

#[test]
fn a_yielding_station_whose_initiator_dies_tries_itself() {
    let mut rig = Rig::plain();
    rig.switch(1, 1);
    rig.run(ms(20_000));
    assert!(rig.count(Kind::Switch) > 0 || rig.state() == "plain", "silent for ever: {}", rig.state());
}

#[test]
fn a_switch_heard_in_a_ring_is_answered_with_the_mode() {
    let mut rig = Rig::ring();
    rig.switch(3, 1);
    assert_eq!(rig.state(), "ring");
    assert_eq!(ModeNotice::parse(&rig.last(Kind::Mode).body).map(|notice| notice.ring), Ok(true));
}

#[test]
fn an_initiator_that_hears_of_a_ring_joins_it() {
    let mut rig = Rig::plain();
    rig.open(6_250, true);
    let epoch = rig.node.rether().mode_epoch();
    mode(&mut rig, 1, epoch, true);
    assert_eq!(rig.state(), "joining a ring");
    rig.run(ms(200));
    assert!(rig.count(Kind::Announce) > 0, "it asks to be let in");
}

#[test]
fn a_form_that_names_an_earlier_boot_or_nonce_moves_nobody() {
    let mut rig = Rig::plain();
    rig.switch(1, 1);
    rig.run(ms(5));
    let good = rig.own_member();
    for (incarnation, nonce) in [(good.incarnation ^ 2, good.nonce), (good.incarnation, good.nonce ^ 1)] {
        let mut form = Form::new(rig.mode_epoch, 1, 0, 1);
        form.settings = rig.settings.digest();
        assert!(form.push(rota_wire::FormMember { incarnation, nonce, ..good }));
        let mut body = [0; 100];
        let length = form.emit(&mut body);
        rig.hear(1, Kind::Form, &body[..length]);
        assert_ne!(rig.state(), "ring");
    }
    rig.form(&[1, ME, 3]);
    assert_eq!(rig.state(), "ring");
}

#[test]
fn ordinary_frames_wait_from_the_switch_on_and_flow_again_in_plain_mode() {
    let mut rig = Rig::ring();
    rig.host_frame(9, 1_514, 0);
    rig.run(ms(10));
    assert_eq!(rig.host_frames(), [0u32; 0]);
    let epoch = rig.mode_epoch + 1;
    mode(&mut rig, 1, epoch, false);
    assert_eq!((rig.state(), rig.host_frames()), ("plain", vec![9]));
}

#[test]
fn the_last_close_destroys_the_token_and_says_so_three_times() {
    let (mut rig, channel) = Rig::master(6_250, true);
    rig.run(ms(2));
    rig.node.close(rig.now, channel);
    for _ in 0..200 {
        rig.run(ms(20));
        if rig.state() == "ring" && rig.count(Kind::Token) > 0 {
            let to = rig.last(Kind::Token).to;
            rig.pass_back(if to == mac(3) { 3 } else { 1 }, 1, |_| ());
        }
    }
    assert_eq!(rig.state(), "plain");
    // Twice under the key of the ring that ends, three times for stations that come to ask.
    assert_eq!(rig.count(Kind::Mode), 5);
    assert_eq!(ModeNotice::parse(&rig.last(Kind::Mode).body).map(|notice| notice.ring), Ok(false));
}

#[test]
fn switch_to_csma_is_adopted_with_a_newer_epoch_only() {
    let mut rig = Rig::ring();
    let epoch = rig.mode_epoch;
    mode(&mut rig, 1, epoch, false);
    assert_eq!(rig.state(), "ring", "an equal epoch speaks of the mode before this ring");
    mode(&mut rig, 1, epoch + 1, false);
    assert_eq!((rig.state(), rig.node.rether().mode_epoch()), ("plain", epoch + 1));
}

#[test]
fn who_left_the_last_ring_is_alive_in_the_next() {
    let mut rig = Rig::ring();
    rig.announce(3, StationState::Leaving);
    // No token came by in which the departure could be noted before the ring ended.
    let epoch = rig.mode_epoch + 1;
    mode(&mut rig, 1, epoch, false);
    rig.mode_epoch = epoch;
    rig.announce(3, StationState::Plain);
    rig.switch(1, 1);
    rig.run(ms(5));
    rig.form(&[1, ME, 3]);
    assert_eq!(rig.state(), "ring");
    rig.stamp = (2, 1, 1);
    let token = Token { next_nrt: ME, ..rig.token(Phase::First, &[]) };
    rig.hear_token(1, 1, &token);
    rig.run(ms(2));
    assert!(!rig.last_token().dead.contains(3), "it has come back since");
}

#[test]
fn a_higher_claim_is_granted_and_the_token_in_hand_given_up() {
    let (mut rig, _) = Rig::master(6_250, true);
    rig.rest();
    assert_eq!(rig.state(), "holding");
    let counter = rig.stamp.0 + 1;
    claim(&mut rig, 3, counter);
    assert_eq!(rig.state(), "ring");
    let grant = ClaimGrant::parse(&rig.last(Kind::ClaimGrant).body).expect("sound");
    assert_eq!((grant.generation.station, rig.last(Kind::ClaimGrant).to), (3, mac(3)));
    assert_eq!(grant.list.map(|list| list.slots.as_slice().len()), Some(1), "the reservations travel along");
    assert!(rig.outputs.iter().any(|(_, output)| matches!(output, Output::Hold { .. })));
    // The fenced station refuses what the old generation still says.
    let token = rig.token(Phase::RealTime, &[(1, 6_000, true)]);
    rig.hear_token(1, 5, &token);
    assert_eq!(rig.state(), "ring");
}

#[test]
fn a_lower_claim_is_answered_by_a_nack_with_the_higher_generation() {
    let mut rig = Rig::ring();
    let token = rig.token(Phase::RealTime, &[(1, 6_000, true)]);
    rig.stamp.0 = 7;
    rig.hear_token(1, 5, &token);
    claim(&mut rig, 3, 6);
    let nack = Nack::parse(&rig.last(Kind::Nack).body).expect("sound");
    assert_eq!((nack.generation.counter, rig.last(Kind::Nack).to), (7, mac(3)));
    assert_eq!(rig.count(Kind::ClaimGrant), 0);
}

#[test]
fn with_equal_counters_the_smaller_claimant_wins() {
    let mut rig = Rig::ring();
    claim(&mut rig, 3, 5);
    assert_eq!(rig.count(Kind::ClaimGrant), 1);
    claim(&mut rig, 1, 5);
    assert_eq!(rig.count(Kind::ClaimGrant), 2, "the smaller station is the greater generation");
    claim(&mut rig, 3, 5);
    assert_eq!((rig.count(Kind::ClaimGrant), rig.count(Kind::Nack)), (2, 1));
}

#[test]
fn a_silent_ring_ends_in_a_claim_and_a_new_token_with_the_newest_list() {
    let mut rig = Rig::ring();
    let token = rig.token(Phase::RealTime, &[(1, 6_000, true), (3, 6_000, true)]);
    rig.hear_token(1, 3, &Token { position: 2, ..token });
    rig.run(ms(1_000));
    assert_eq!(rig.state(), "claiming");
    let claimed = Claim::parse(&rig.last(Kind::Claim).body).expect("sound").generation;
    assert_eq!(claimed.station, ME);
    // Station 3 has seen a newer list, with one reservation more; station 1 is dead.
    let newer = rig.token(Phase::RealTime, &[(1, 6_000, true), (3, 6_000, true), (3, 2_000, true)]);
    let (seen, seen_seq) = (Generation { counter: rig.stamp.0, station: rig.stamp.1 }, rig.stamp.2 + 9);
    let grant = ClaimGrant { generation: claimed, seen, seen_seq, key_epoch: 1, list: Some(newer) };
    let mut body = [0; 200];
    let length = grant.emit(&mut body);
    rig.hear(3, Kind::ClaimGrant, &body[..length]);
    rig.run(ms(1_000));
    let token = rig.last_token();
    assert!(token.dead.contains(1) && !token.dead.contains(3));
    let owners: Vec<u16> = token.slots.as_slice().iter().map(|slot| slot.station).collect();
    assert_eq!(owners, [3, 3], "the dead station's reservation is freed");
    assert_eq!(rig.last(Kind::Token).header.generation, claimed);
}

#[test]
fn silent_stations_are_dead_only_after_the_drain_time() {
    let mut rig = Rig::ring();
    while rig.state() != "claiming" {
        rig.run(ms(1));
    }
    let began = rig.now;
    while rig.state() == "claiming" {
        rig.run(ms(1));
    }
    assert!(rig.now.since(began) >= rig.settings.drain(2, true), "two silent stations, one of them master");
}

/// Stations 1 and 3 do not answer a claim, until station 3 does, so long after the drain has begun: the claim
/// ends in a new token when the drain has gone on for `span`, and no moment before.
fn drains(late: Option<Span>, span: Span) {
    let mut rig = Rig::ring();
    let token = rig.token(Phase::RealTime, &[(1, 6_000, true), (3, 6_000, true)]);
    rig.hear_token(1, 3, &Token { position: 2, ..token });
    while rig.count(Kind::Claim) == 0 {
        rig.run(ms(1));
    }
    let asked = rig.last(Kind::Claim);
    let generation = Claim::parse(&asked.body).expect("sound").generation;
    let begins = asked.at + rig.settings.claim_every() * u64::from(rig.settings.claim_tries);
    if let Some(late) = late {
        rig.run((begins + late).since(rig.now));
        let (seen, seen_seq) = (Generation::default(), 0);
        let mut body = [0; 200];
        let length = ClaimGrant { generation, seen, seen_seq, key_epoch: 1, list: None }.emit(&mut body);
        rig.hear(3, Kind::ClaimGrant, &body[..length]);
    }
    rig.run((begins + span).minus(Span::from_nanos(1)).since(rig.now));
    assert_eq!(rig.state(), "claiming", "{late:?}: a moment before {span}");
    rig.run(Span::from_nanos(1));
    assert_ne!(rig.state(), "claiming", "{late:?}: at {span}");
    if late.is_some() {
        let dead = rig.node.rether().list().expect("a ring has a list").dead;
        assert_eq!((dead.contains(1), dead.contains(3)), (true, false));
    }
}

/// Seeds 143773 and 161608 of the product's timers: who answered when the drain had begun was waited for as
/// if it were silent still.
#[test]
fn a_claim_waits_for_the_rest_when_a_station_answers_late_and_never_longer_for_that() {
    let settings = Rig::new().settings;
    let (both, one) = (settings.drain(2, true), settings.drain(1, true));
    drains(None, both);
    let soon = ms(10);
    assert!(soon + one < both);
    drains(Some(soon), soon + one);
    drains(Some(both.minus(ms(1))), both);
}

/// A stopped claimant that goes on when its drain would be over: others may have claimed meanwhile.
#[test]
fn a_claimant_that_stood_still_asks_again_instead_of_making_a_token() {
    let mut rig = Rig::ring();
    while rig.state() != "claiming" {
        rig.run(ms(1));
    }
    rig.run(ms(150));
    assert_eq!((rig.state(), rig.count(Kind::Token)), ("claiming", 0), "it drains");
    let claims = rig.node.rether().counters().claims;
    rig.now += ms(450);
    rig.run(ms(1));
    assert_eq!((rig.state(), rig.count(Kind::Token)), ("claiming", 0));
    assert_eq!(rig.node.rether().counters().claims, claims + 1);
}

#[test]
fn a_nack_voids_the_claim_and_the_station_asks_to_be_let_in() {
    let mut rig = Rig::ring();
    rig.run(ms(700));
    assert_eq!(rig.state(), "claiming");
    let mut body = [0; 10];
    Nack { generation: Generation { counter: 50, station: 1 }, mode_epoch: rig.mode_epoch }.emit(&mut body);
    rig.hear(1, Kind::Nack, &body);
    assert_eq!(rig.state(), "ring", "one answer may only mean that two claims crossed");
    rig.run(ms(900));
    assert_eq!(rig.state(), "claiming");
    Nack { generation: Generation { counter: 90, station: 1 }, mode_epoch: rig.mode_epoch }.emit(&mut body);
    rig.hear(1, Kind::Nack, &body);
    assert_eq!(rig.state(), "joining a ring");
    rig.run(ms(300));
    assert!(rig.count(Kind::Announce) > 0);
}

#[test]
fn a_claim_in_plain_mode_is_told_that_the_ring_is_over() {
    let mut rig = Rig::ring();
    let epoch = rig.mode_epoch + 1;
    mode(&mut rig, 1, epoch, false);
    claim(&mut rig, 3, 9);
    assert_eq!(ModeNotice::parse(&rig.last(Kind::Mode).body).map(|notice| notice.ring), Ok(false));
}

/// Found by the sweep, seed 11: both sides kept to their mode for ever.
#[test]
fn a_claim_of_an_equal_mode_epoch_is_not_told_off_but_joined() {
    let mut rig = Rig::plain();
    rig.mode_epoch = rig.node.rether().mode_epoch();
    claim(&mut rig, 3, 9);
    assert_eq!((rig.state(), rig.count(Kind::Mode)), ("joining a ring", 0));
}

#[test]
fn a_replayed_frame_changes_nothing_but_a_counter() {
    let mut rig = Rig::plain();
    rig.card_empties = false;
    let header = rota_wire::LinkHeader {
        kind: Kind::Claim,
        key_epoch: 0,
        payload: rota_wire::PayloadKind::None,
        source: 3,
        segment: 1,
        incarnation: 0x103,
        generation: Generation::default(),
        seq: 1,
    };
    let secret = rota_wire::Key::new([7; 32]);
    let key = secret.derive("rota 2026 bootstrap frames", [1u32.to_be_bytes()].iter());
    let mut body = [0; 10];
    Claim { generation: Generation { counter: 9, station: 3 }, mode_epoch: 0 }.emit(&mut body);
    let frame = rig.frame(&header, &body, &key);
    rig.hear_raw(Some(rig.now), &frame);
    assert_eq!((rig.count(Kind::Mode), rig.node.rether().counters().frames_replayed), (0, 1));
}

/// Found by the sweep: the timer was due all the while, and a node would have spun.
#[test]
fn a_joiner_sleeps_until_its_card_is_empty() {
    let mut rig = Rig::plain();
    rig.card_empties = false;
    rig.announce(3, StationState::Ring);
    rig.drain();
    assert_eq!(rig.state(), "joining a ring");
    assert!(rig.node.deadline() > rig.now + ms(100), "until it is given up");
}

#[test]
fn a_program_learns_of_the_switch_and_of_the_refusal() {
    let (mut rig, _) = Rig::master(6_250, true);
    let second = rig.open(60_000, true);
    // The request goes out at one visit, and its answer is decided at a later one.
    for _ in 0..3 {
        rig.run(ms(100));
        rig.pass_back(3, 1, |_| ());
        rig.run(ms(1));
    }
    // The program is told when the receiver is free again.
    rig.signal(3, rota_wire::Verb::CloseAck, second);
    rig.drain();
    assert!(rig.events.iter().any(|event| matches!(event, ChannelEvent::ModeChanged)));
    let refused = rig.events.iter().find_map(|event| match event {
        ChannelEvent::Refused { channel, refusal } if *channel == second => Some(refusal.clone()),
        _ => None,
    });
    assert!(refused.is_some(), "{} {:?}", rig.state(), rig.events);
}

#[test]
fn an_early_card_or_deadline_is_harmless() {
    let mut rig = Rig::ring();
    for _ in 0..3 {
        rig.node.handle(rig.now, Input::CardEmpty { port: PortId(0) });
        rig.node.handle_deadline(rig.now);
        rig.drain();
    }
    assert_eq!((rig.state(), rig.sent.len()), ("ring", 0));
}

/// The predecessor that passed us the token has its stamp too: with equal stamps its older list could win the
/// claim, and the program would hear of a reservation and at once of its loss.
#[test]
fn a_slot_granted_a_moment_ago_travels_with_a_newer_stamp_than_the_list_before_it() {
    let mut rig = Rig::ring();
    let channel = rig.open(6_250, true);
    let token = rig.token(Phase::RealTime, &[(1, 6_000, true)]);
    let token = Token { position: 1, ..token };
    rig.hear_token(1, 3, &token);
    let given = rig.stamp.2;
    assert!(rig.node.rether().slots().iter().any(|slot| slot.station == rig::ME));
    let counter = rig.stamp.0 + 1;
    claim(&mut rig, 1, counter);
    let grant = ClaimGrant::parse(&rig.last(Kind::ClaimGrant).body).expect("sound");
    let slots = grant.list.expect("it has a list").slots;
    assert!(slots.as_slice().iter().any(|slot| slot.station == rig::ME), "{channel:?}");
    assert!(grant.seen_seq > given, "the list before was {given}, this one is {}", grant.seen_seq);
}

// ---- counters near their end, and pushed there ---------------------------------------------------------

#[test]
fn a_generation_that_no_honest_station_can_have_reached_is_refused() {
    let mut rig = Rig::ring();
    let token = rig.token(Phase::RealTime, &[(1, 6_000, true)]);
    rig.hear_token(1, 3, &token);
    claim(&mut rig, 3, rig::FAR_GENERATION);
    assert_eq!((rig.count(Kind::ClaimGrant), rig.count(Kind::Nack)), (0, 0));
    rig.stamp.0 = rig::FAR_GENERATION;
    rig.hear_token(1, 1, &token);
    assert_eq!(rig.node.rether().generation(), 1);
    assert_eq!(rig.node.rether().counters().jumps_refused, 2);
}

#[test]
fn half_a_form_puts_nobody_into_a_ring() {
    let mut rig = Rig::plain();
    rig.switch(1, 1);
    rig.run(ms(5));
    let own = rig.own_member();
    let member = |station: u16| {
        let (incarnation, nonce) = (0x100 + u32::from(station), 0x900 + u64::from(station));
        rota_wire::FormMember { station, mac: mac(station), incarnation, nonce }
    };
    // The first part comes twice, as each Form is sent twice; the second was lost the first time.
    for (part, state) in [(0, "yielding"), (0, "yielding"), (1, "ring")] {
        let mut form = Form::new(rig.mode_epoch, 1, part, 2);
        form.settings = rig.settings.digest();
        for named in if part == 0 { vec![member(1), own] } else { vec![member(3)] } {
            assert!(form.push(named));
        }
        let mut body = [0; 100];
        let length = form.emit(&mut body);
        rig.hear(1, Kind::Form, &body[..length]);
        assert_eq!(rig.state(), state, "part {part}");
    }
    assert_eq!(rig.node.rether().members().len(), 2);
}

/// An acknowledgement of an earlier switch says nothing of this one: its station may not be silent yet.
#[test]
fn an_acknowledgement_of_an_earlier_switch_does_not_count() {
    let mut rig = Rig::plain();
    rig.open(6_250, true);
    rig.run(ms(1));
    let epoch = rig.node.rether().mode_epoch();
    rig.ack_switch_of(1, epoch.wrapping_sub(1));
    rig.ack_switch_of(3, epoch.wrapping_sub(1));
    rig.run(ms(2));
    assert_eq!((rig.state(), rig.count(Kind::Form)), ("initiating", 0));
    rig.ack_switch(1);
    rig.ack_switch(3);
    rig.run(ms(2));
    assert_eq!(rig.count(Kind::Token), 1);
}

/// Another segment on the same wire may have the same secret: its frames are neither ours nor strangers'.
#[test]
fn a_frame_of_another_segment_changes_nothing() {
    let mut rig = Rig::plain();
    let before = *rig.node.rether().counters();
    let members = rig.node.rether().members().len();
    for from in [3, 7] {
        let header = LinkHeader { segment: rig.settings.segment + 1, ..rig.header(from, Kind::Announce) };
        let key = rig.segment_key.clone();
        let frame = rig.frame(&header, &[0; 40], &key);
        rig.hear_raw(Some(rig.now), &frame);
    }
    let after = rig.node.rether().counters();
    assert_eq!(
        (after.frames_unproven, after.frames_malformed),
        (before.frames_unproven, before.frames_malformed)
    );
    assert_eq!(rig.node.rether().members().len(), members);
}

/// A ring of 1, [`ME`] and 3, which 3 leaves; then the ring ends, and 3 is back in plain mode.
fn left_and_back() -> Rig {
    let mut rig = Rig::ring();
    rig.announce(3, StationState::Leaving);
    let epoch = rig.node.rether().mode_epoch() + 1;
    let mut body = [0; 8];
    let length = ModeNotice { mode_epoch: epoch, ring: false }.emit(&mut body);
    let stamp = rig.stamp;
    rig.hear_ring(1, Kind::Mode, stamp, &body[..length]);
    assert_eq!(rig.state(), "plain");
    rig.mode_epoch = epoch;
    rig.announce(3, StationState::Plain);
    rig
}

/// A station that left one ring takes part in the next: its leave is forgotten with the first ring.
#[test]
fn a_station_that_left_the_last_ring_is_no_leaver_in_the_next() {
    let mut rig = left_and_back();
    rig.switch(1, 2);
    rig.run(ms(5));
    rig.form(&[1, ME, 3]);
    let token = rig.token(Phase::NonRealTime, &[(1, 6_000, true)]);
    rig.hear_token(1, 5, &token);
    rig.run(ms(1));
    assert!(!rig.last_token().dead.contains(3), "it takes part");
    assert_eq!(rig.last(Kind::Token).to, mac(3));
}

/// The same where this station forms the next ring.
#[test]
fn a_station_that_left_the_last_ring_is_no_leaver_in_one_that_is_formed_here() {
    let mut rig = left_and_back();
    rig.open(6_250, true);
    rig.run(ms(2));
    rig.ack_switch(1);
    rig.ack_switch(3);
    rig.run(ms(2));
    assert!(rig.count(Kind::Token) > 0, "{}", rig.state());
    assert!(!rig.last_token().dead.contains(3), "it takes part");
}

/// On a large segment each station says hello more seldom. One whose hello is lost stays known.
#[test]
fn a_station_of_a_large_segment_is_known_until_its_fourth_hello_is_missed() {
    let mut rig = Rig::plain();
    for station in 4..=120 {
        rig.announce(station, StationState::Plain);
        rig.run(ms(20));
    }
    let (hello, known) = (rig.settings.hello, |rig: &Rig| rig.node.rether().members().len());
    assert_eq!(known(&rig), 119);
    rig.run(hello * 8);
    assert_eq!(known(&rig), 119, "each says hello every third time");
    rig.run(hello * 8);
    assert_eq!(known(&rig), 0);
}
