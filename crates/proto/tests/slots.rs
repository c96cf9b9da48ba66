//! Cycles, slots and reservations of the token's holder (paper sections 2.2.3 and 2.3).

use crate::rig::{ME, Rig, TRT, ms, set_of};
use rota_admission::{Pace, Request, admit};
use rota_contract::CloseCause;
use rota_proto::{ChannelEvent, ChannelId, ResizeError};
use rota_units::{Instant, Octets, Span};
use rota_wire::{Kind, Phase, SlotList, Token, UnitHeader, Verb};

/// When the frames of units left.
fn data_times(rig: &Rig) -> Vec<Instant> {
    rig.sent.iter().filter(|sent| sent.header.kind == Kind::Data).map(|sent| sent.at).collect()
}

#[test]
fn a_strict_cycle_begins_exactly_one_period_after_the_last() {
    let (mut rig, _) = Rig::master(6_250, true);
    rig.rest();
    rig.run(TRT * 4);
    let lists = rig.sent.iter().filter(|sent| sent.header.kind == Kind::List).map(|sent| sent.at);
    let starts: Vec<Instant> = lists.collect();
    assert!(starts.len() >= 4, "{starts:?}");
    assert!(starts.windows(2).all(|pair| pair[1].since(pair[0]) == TRT), "{starts:?}");
}

/// Of three and a half cycles in which the master stands still one begins late, and two are left out.
#[test]
fn cycles_that_a_stall_ate_are_counted_once_each() {
    let (mut rig, _) = Rig::master(6_250, true);
    rig.rest();
    rig.run(TRT);
    let counts =
        |rig: &Rig| (rig.node.rether().counters().cycles, rig.node.rether().counters().cycles_skipped);
    let ((cycles, skipped), last) = (counts(&rig), rig.last(Kind::List).at);
    let before = Token::parse(&rig.last(Kind::List).body).expect("sound").cycle;
    assert_eq!(skipped, 0);
    rig.now = last + TRT * 3 + ms(10);
    rig.node.handle_deadline(rig.now);
    rig.drain();
    let list = Token::parse(&rig.last(Kind::List).body).expect("sound");
    assert_eq!((counts(&rig), list.cycle), ((cycles + 1, 2), before + 3));
    rig.run(TRT);
    assert_eq!(counts(&rig), (cycles + 2, 2), "the next one is on time");
}

#[test]
fn without_a_periodic_session_the_next_cycle_begins_early() {
    let (mut rig, _) = Rig::master(6_250, false);
    let began = rig.now;
    rig.pass_back(1, 1, |token| token.phase = Phase::Home);
    rig.run(ms(1));
    assert_eq!(rig.count(Kind::List), 2);
    assert!(rig.last(Kind::List).at.since(began) < ms(1), "no waiting for the period");
}

#[test]
fn in_a_strict_ring_a_slot_waits_for_its_offset() {
    let (mut rig, channel) = Rig::master(6_250, true);
    // Another station is first now; this one's slot begins 6 ms into the cycle.
    let own = rig.last_token().slots.as_slice()[0];
    let token = rig.token(Phase::RealTime, &[(1, 6_000, true), (ME, own.tht_ns / 1_000, true)]);
    let token = Token { position: 1, residual_ns: TRT.as_nanos() as u32, cycle: 90, ..token };
    rig.run(ms(50));
    rig.clear();
    rig.unit(channel, 0, 6_250);
    let start = rig.now;
    rig.hear_token(1, 40, &token);
    rig.run(ms(20));
    let times = data_times(&rig);
    assert_eq!(times.len(), 5);
    assert!(times[0].since(start) >= ms(6) - Span::from_micros(40), "{}", times[0].since(start));
}

#[test]
fn two_sessions_of_a_station_are_two_slots_and_one_visit() {
    let (mut rig, first) = Rig::master(3_000, true);
    let second = second_session(&mut rig, 3_000);
    rig.signal(3, Verb::OpenedAck, first);
    rig.signal(3, Verb::OpenedAck, second);
    rig.rest();
    rig.run(ms(1));
    rig.rest();
    rig.clear();
    rig.unit(first, 0, 3_000);
    rig.unit(second, 0, 3_000);
    rig.run(ms(45));
    let labels: Vec<u16> = rig
        .sent
        .iter()
        .filter(|sent| sent.header.kind == Kind::Data)
        .map(|sent| UnitHeader::parse(&sent.body).expect("sound").0.label)
        .collect();
    assert_eq!(labels, [1, 1, 1, 2, 2, 2]);
    let hops_between = rig.sent.iter().skip_while(|s| s.header.kind != Kind::Data);
    let until_last = hops_between.take_while(|s| s.header.kind != Kind::Token);
    assert_eq!(until_last.filter(|s| s.header.kind == Kind::Data).count(), 6, "no hop between them");
}

/// A second session of the node under test, admitted at its next visit.
fn second_session(rig: &mut Rig, octets: u32) -> ChannelId {
    let second = rig.open(octets, true);
    rig.rest();
    rig.run(ms(1));
    assert!(rig.opened(second).is_some(), "{} {:?}", rig.state(), rig.events);
    if rig.state() == "holding" {
        rig.run(ms(35));
    }
    second
}

fn slots_of(rig: &Rig) -> Vec<(u16, u64)> {
    let list = rig.node.rether().list().expect("a ring has a list");
    list.slots.as_slice().iter().map(|slot| (slot.station, u64::from(slot.tht_ns))).collect()
}

#[test]
fn closing_the_first_slot_of_a_shared_visit_hands_its_hop_to_the_next() {
    let (mut rig, first) = Rig::master(3_000, true);
    second_session(&mut rig, 5_000);
    let before = slots_of(&rig);
    assert_eq!(before.len(), 2);
    rig.node.close(rig.now, first);
    rig.rest();
    rig.run(ms(1));
    // What the second session would have been given had it been alone (REPAIR-A7).
    let request = Request {
        station: ME,
        unit_octets: Octets::new(5_000),
        pace: Pace::EVERY_CYCLE,
        periodic: true,
        receives: true,
        partition: 0,
    };
    let alone = admit(&[], &request, &rig.settings.params(3)).expect("fits").tht.as_nanos();
    assert_eq!(slots_of(&rig), [(ME, alone)]);
    assert!(alone > before[1].1);
}

#[test]
fn closing_compacts_to_the_left() {
    let mut rig = Rig::ring();
    let slots = [(1, 4_000, true), (3, 5_000, true), (1, 4_000, true)];
    let token = Token { dead: set_of(3), ..rig.token(Phase::NonRealTime, &slots) };
    rig.hear_token(1, 5, &token);
    rig.run(ms(1));
    let kept = slots_of(&rig);
    let link = rig.settings.link;
    let joined = 4_000_000 - (link.hop + link.per_visit).as_nanos();
    assert_eq!(kept, [(1, 4_000_000), (1, joined)], "two visits that meet are one, and pay once");
}

#[test]
fn shrinking_frees_time_at_once() {
    let (mut rig, channel) = Rig::master(6_250, true);
    let before = slots_of(&rig)[0].1;
    let room = |asked| Err(ResizeError::Room { asked, room: 25_000 });
    assert_eq!(rig.node.resize(rig.now, channel, 25_001), room(25_001));
    assert_eq!(rig.node.resize(rig.now, channel, 0), room(0));
    assert_eq!(rig.node.resize(rig.now, channel, 3_000), Ok(()));
    rig.rest();
    rig.run(ms(1));
    let link = rig.settings.link;
    let saved = link.unit_span_up(Octets::new(6_250)).minus(link.unit_span_up(Octets::new(3_000)));
    assert_eq!(slots_of(&rig)[0].1, before - saved.as_nanos());
}

/// Found by seed 1131072 with the proven timers: the slot became too short for a unit that was already there.
#[test]
fn a_unit_that_comes_after_the_wish_to_shrink_still_has_the_slot_it_was_promised() {
    let (mut rig, channel) = Rig::master(6_250, true);
    let before = slots_of(&rig)[0].1;
    assert_eq!(rig.node.resize(rig.now, channel, 3_000), Ok(()));
    rig.unit(channel, 0, 6_250);
    rig.rest();
    rig.run(ms(40));
    assert_eq!(data_times(&rig).len(), 5, "all its fragments leave in the first slot");
    assert!(slots_of(&rig)[0].1 < before, "and then the reservation shrinks");
}

#[test]
fn a_unit_larger_than_its_reservation_waits_for_the_next_slot() {
    let (mut rig, channel) = Rig::master(3_000, true);
    rig.rest();
    rig.clear();
    rig.unit(channel, 0, 6_250);
    rig.run(ms(40));
    let sent = data_times(&rig).len();
    assert!((1..=3).contains(&sent), "three fragments are reserved, five are there, {sent} left");
}

/// The program closes its channel, and a claimant's list has taken the slot away before this station gives
/// it back: no promise is broken.
#[test]
fn a_slot_that_is_lost_while_its_channel_closes_is_given_back() {
    let (mut rig, channel) = Rig::master(3_000, true);
    rig.node.close(rig.now, channel);
    rig.drain();
    let mut list = *rig.node.rether().list().expect("a ring has a list");
    (list.slots, list.position) = (SlotList::EMPTY, 0);
    let mut body = [0; 400];
    let length = list.emit(&mut body);
    rig.stamp.2 += 10;
    rig.hear_ring(1, Kind::List, rig.stamp, &body[..length]);
    rig.signal(3, Verb::CloseAck, channel);
    rig.run(ms(1));
    let causes = rig.events.iter().filter_map(|event| match event {
        ChannelEvent::Closed { cause, .. } => Some(*cause),
        _ => None,
    });
    assert_eq!(causes.collect::<Vec<_>>(), [CloseCause::Finished]);
}
