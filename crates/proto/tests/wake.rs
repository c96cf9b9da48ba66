//! Requests for a token at rest: served at once, as often as needed, and without delay of the next cycle.

use crate::rig::{ME, Rig, TRT, mac};
use rota_proto::Settings;
use rota_units::{BitRate, Octets, Span};
use rota_wire::bodies::StationState;
use rota_wire::{Kind, Phase, StationSet, Token};

const SLOT: (u16, u32, bool) = (1, 6_000, true);

fn us(n: u64) -> Span {
    Span::from_micros(n)
}

/// A member of a ring whose list says that the token rests with station 1.
fn drowsy() -> Rig {
    let mut rig = Rig::ring();
    let list = Token { rested: true, ..rig.token(Phase::RealTime, &[SLOT]) };
    let mut body = [0; 100];
    let length = list.emit(&mut body);
    rig.stamp.2 = 20;
    rig.hear_ring(1, Kind::List, rig.stamp, &body[..length]);
    rig
}

/// The master sends the resting token to this station alone.
fn wake(rig: &mut Rig) {
    let token = Token { rested: true, next_nrt: ME, ..rig.token(Phase::NonRealTime, &[SLOT]) };
    rig.hear_token(1, 1, &token);
    rig.run(us(200));
}

fn rested() -> Rig {
    let (mut rig, _) = Rig::master(6_250, true);
    rig.rest();
    rig.run(us(100));
    assert_eq!(rig.state(), "holding");
    rig.clear();
    rig
}

fn request(rig: &mut Rig, from: u16) {
    rig.hear_ring(from, Kind::Request, rig.stamp, &[]);
    rig.run(us(10));
}

/// It was one request per TRT, however often the token had come and gone.
#[test]
fn a_station_asks_again_as_soon_as_its_visit_is_over() {
    let mut rig = drowsy();
    let began = rig.now;
    for turn in 1..=20 {
        rig.host_frame(turn, 1_000, 0);
        rig.host_frame(100 + turn, 1_000, 0);
        assert_eq!(rig.count(Kind::Request), turn as usize, "one is outstanding");
        assert_eq!(rig.last(Kind::Request).to, mac(1));
        // The policy of 10 Mbit/s is one frame a visit: the second goes in the round behind it.
        wake(&mut rig);
        let round = rig.token(Phase::NonRealTime, &[SLOT]);
        rig.hear_token(1, 3, &Token { next_nrt: ME, ..round });
        rig.run(us(200));
        assert_eq!(rig.node.port().queued_frames(), 0);
        // The round goes on, so the token comes by itself until a visit has found nothing.
        rig.hear_token(1, 3, &Token { next_nrt: ME, idle_visits: 2, ..round });
        rig.run(us(200));
        assert_eq!(rig.state(), "ring");
    }
    assert!(rig.now.since(began) < TRT, "all within one cycle");
}

#[test]
fn a_woken_station_sends_the_token_home_to_rest() {
    let mut rig = drowsy();
    rig.host_frame(1, 200, 0);
    rig.clear();
    wake(&mut rig);
    assert_eq!(rig.host_frames(), [1]);
    let home = rig.last_token();
    assert_eq!((rig.last(Kind::Token).to, home.phase, home.rested), (mac(1), Phase::Home, true));
    assert_eq!(rig.count(Kind::TokenAck), 0, "the token itself says that it came");
    // Woken in vain it goes home as well, and not round.
    wake(&mut rig);
    let home = rig.last_token();
    assert_eq!((rig.last(Kind::Token).to, home.phase, home.rested), (mac(1), Phase::Home, true));
}

#[test]
fn a_woken_station_with_more_begins_a_round() {
    let mut rig = drowsy();
    (1..=4).for_each(|tag| rig.host_frame(tag, 1_400, 0));
    wake(&mut rig);
    rig.run(us(4_000));
    let on = rig.last_token();
    assert_eq!((rig.last(Kind::Token).to, on.phase, on.rested), (mac(3), Phase::NonRealTime, false));
    assert_eq!(rig.host_frames(), [1, 2], "two frames a visit at 10 Mbit/s");
}

/// Of five pings that waited each needed a visit of its own: at 10 Mbit/s with 20 stations, where a round
/// takes 6 to 28 ms, the last one waited 80 ms.
#[test]
fn small_frames_share_the_place_of_one_full_frame() {
    let mut rig = drowsy();
    (0..5).for_each(|tag| rig.host_frame(tag, 98, 0));
    wake(&mut rig);
    rig.run(us(400));
    assert_eq!(rig.host_frames(), [0, 1, 2, 3, 4], "one visit");
    let home = rig.last_token();
    assert_eq!((home.phase, home.rested), (Phase::Home, true), "few frames begin no round");
    rig.clear();
    let link = rig.settings.link;
    let cost = link.frame_cost(link.rate.span_of_up(link.framing.wire_octets(98 - 14)));
    let most = link.frame_cost_max().as_nanos() / cost.as_nanos();
    (0..40).for_each(|tag| rig.host_frame(tag, 98, 0));
    wake(&mut rig);
    rig.run(us(4_000));
    assert_eq!(rig.host_frames().len() as u64, 2 * most, "together no longer than two full frames");
}

#[test]
fn a_woken_station_with_a_bulk_flow_begins_a_round() {
    for (frames, phase) in [(4, Phase::Home), (5, Phase::NonRealTime)] {
        let settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
        let mut rig = Rig::with(settings).into_plain();
        rig.switch(1, 1);
        rig.run(us(50_000));
        rig.form(&[1, ME, 3]);
        rig.stamp = (1, 1, 1);
        (0..frames).for_each(|tag| rig.host_frame(tag, 1_000, 0));
        wake(&mut rig);
        rig.run(us(500));
        assert_eq!(rig.host_frames().len(), frames as usize);
        assert_eq!((rig.last_token().phase, rig.last_token().rested), (phase, phase == Phase::Home));
    }
}

/// There was one place for all, and the last to ask took it.
#[test]
fn nobody_who_asks_is_forgotten() {
    let mut rig = rested();
    request(&mut rig, 3);
    let woken = rig.last_token();
    assert_eq!((rig.last(Kind::Token).to, woken.phase, woken.rested), (mac(3), Phase::NonRealTime, true));
    rig.clear();
    // While the token is away the other one asks, and the first once more.
    request(&mut rig, 3);
    request(&mut rig, 1);
    let home = Token { phase: Phase::Home, rested: true, next_nrt: 1, ..woken };
    rig.hear_token(3, 1, &home);
    rig.run(us(10));
    // Two of three are most: a round of all begins, at the next station in its order.
    let on = rig.last_token();
    assert_eq!((rig.last(Kind::Token).to, on.phase, on.rested), (mac(1), Phase::NonRealTime, false));
}

#[test]
fn whoever_asks_while_the_token_is_away_is_next() {
    let mut rig = rested();
    request(&mut rig, 3);
    let woken = rig.last_token();
    rig.clear();
    request(&mut rig, 1);
    assert_eq!(rig.count(Kind::Token), 0);
    rig.hear_token(3, 1, &Token { phase: Phase::Home, rested: true, next_nrt: 1, ..woken });
    rig.run(us(10));
    let on = rig.last_token();
    assert_eq!((rig.last(Kind::Token).to, on.phase, on.rested), (mac(1), Phase::NonRealTime, true));
    rig.clear();
    rig.hear_token(1, 1, &Token { phase: Phase::Home, rested: true, next_nrt: ME, ..on });
    rig.run(us(10));
    assert_eq!((rig.state(), rig.count(Kind::Token)), ("holding", 0), "nobody asks: it rests on");
}

#[test]
fn a_storm_of_requests_has_one_place() {
    let mut rig = rested();
    // Within the time after which an unanswered token is sent again.
    for _ in 0..400 {
        request(&mut rig, 3);
    }
    assert_eq!(rig.count(Kind::Token), 1);
    let woken = rig.last_token();
    rig.clear();
    for turn in 1..=2 {
        rig.hear_token(3, 1, &Token { phase: Phase::Home, rested: true, next_nrt: 1, ..woken });
        rig.run(us(10));
        assert_eq!(rig.count(Kind::Token), 1, "turn {turn}: once more for what came meanwhile");
    }
}

#[test]
fn a_replayed_request_and_a_strangers_wake_nobody() {
    let mut rig = rested();
    let frame = rig.ring_frame(3, Kind::Request, (0, 0, 40), &[]);
    rig.hear_raw(Some(rig.now), &frame);
    rig.run(us(10));
    let woken = rig.last_token();
    rig.hear_token(3, 1, &Token { phase: Phase::Home, rested: true, next_nrt: 1, ..woken });
    rig.run(us(10));
    rig.clear();
    rig.hear_raw(Some(rig.now), &frame);
    let mut forged = rig.ring_frame(3, Kind::Request, (0, 0, 41), &[]);
    forged[50] ^= 1;
    rig.hear_raw(Some(rig.now), &forged);
    // A station that boots anew has another incarnation; no station has number 9.
    let nobody = rig.ring_frame(9, Kind::Request, (0, 0, 42), &[]);
    rig.hear_raw(Some(rig.now), &nobody);
    rig.run(us(10));
    assert_eq!((rig.state(), rig.count(Kind::Token)), ("holding", 0));
    assert_eq!(rig.node.rether().counters().requests, 1);
}

#[test]
fn a_request_of_a_station_that_is_dead_wakes_nobody() {
    let mut rig = rested();
    request(&mut rig, 3);
    let woken = rig.last_token();
    let mut dead = StationSet::EMPTY;
    dead.insert(1);
    request(&mut rig, 1);
    rig.clear();
    rig.hear_token(3, 1, &Token { phase: Phase::Home, rested: true, next_nrt: ME, dead, ..woken });
    rig.run(us(10));
    assert_eq!((rig.state(), rig.count(Kind::Token)), ("holding", 0));
}

/// Seed 3180534 of the product's timers: the wire let an announcement overtake both Forms of a new key. The
/// station believed no list from then on, and claimed the token when its death timer ran out.
#[test]
fn a_station_that_believes_no_list_asks_for_the_token() {
    let mut rig = drowsy();
    rig.clear();
    rig.run((TRT * 3).minus(us(1)));
    assert_eq!(rig.count(Kind::Request), 0);
    rig.run(us(1));
    assert_eq!((rig.count(Kind::Request), rig.last(Kind::Request).to), (1, mac(1)));
    rig.run((TRT * 3).minus(us(1)));
    assert_eq!(rig.count(Kind::Request), 1, "one in three cycles");
    rig.run(us(1));
    assert_eq!((rig.count(Kind::Request), rig.count(Kind::Claim)), (2, 0));
    let (mut rig, _) = Rig::master(6_250, true);
    rig.rest();
    rig.clear();
    rig.run(TRT * 4);
    assert_eq!(rig.count(Kind::Request), 0, "the cycle master makes the lists");
}

#[test]
fn a_request_under_an_older_key_is_answered_with_the_form() {
    let mut rig = rested();
    request(&mut rig, 3);
    assert_eq!(rig.count(Kind::Form), 0, "it has the newest key");
    let mut rig = rested();
    let older = rig.ring_key.clone();
    for _ in 0..2 {
        rig.announce(7, StationState::Joining);
        rig.run(us(40_000));
    }
    assert!(rig.count(Kind::Form) >= 2, "station 7 is let in under a new key");
    rig.clear();
    let newest = std::mem::replace(&mut rig.ring_key, older);
    request(&mut rig, 3);
    request(&mut rig, 1);
    assert_eq!(rig.count(Kind::Form), 1, "one tells all");
    let form = rota_wire::Form::parse(&rig.last(Kind::Form).body).expect("sound");
    assert_eq!(form.key_epoch, newest.0);
}

#[test]
fn a_wake_never_delays_the_next_cycle() {
    let (mut rig, _) = Rig::master(6_250, true);
    rig.rest();
    rig.run(TRT * 2);
    let began = rig.sent.iter().rfind(|sent| sent.header.kind == Kind::List).expect("a cycle").at;
    let link = rig.settings.link;
    let least = link.frame_span_min() + link.hop * 2;
    let end = began + TRT;
    rig.run(end.since(rig.now).minus(least).minus(us(5)));
    rig.clear();
    // Five microseconds earlier it would fit; now it waits, and the cycle begins when it must.
    rig.run(us(6));
    request(&mut rig, 3);
    assert_eq!((rig.state(), rig.count(Kind::Token)), ("holding", 0));
    rig.run(TRT.div_down(2));
    assert_eq!(rig.last(Kind::List).at, end);
    // Behind the slots of the next cycle it is served, alone.
    let woken = rig.last_token();
    let to = rig.last(Kind::Token).to.own_group();
    assert_eq!((to, woken.rested), (mac(3).own_group(), true));
}

#[test]
fn what_an_owner_of_the_last_slot_has_leaves_without_a_hop() {
    let mut rig = rested();
    rig.host_frame(1, 200, 0);
    rig.run(us(100));
    assert_eq!((rig.host_frames(), rig.state(), rig.count(Kind::Token)), (vec![1], "holding", 0));
}

#[test]
fn what_comes_while_the_token_leaves_is_asked_for_at_once() {
    let settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
    let mut rig = Rig::ring();
    assert_eq!(rig.settings.digest(), settings.digest());
    rig.host_frame(1, 1_514, 0);
    rig.clear();
    let token = Token { rested: true, next_nrt: ME, ..rig.token(Phase::NonRealTime, &[SLOT]) };
    rig.hear_token(1, 5, &token);
    // The frame is on the wire for 1.2 ms, and the token waits for its end.
    rig.run(us(500));
    assert_eq!((rig.state(), rig.count(Kind::Token)), ("holding", 0));
    rig.host_frame(2, 200, 0);
    rig.run(us(1_000));
    assert_eq!((rig.state(), rig.count(Kind::Token), rig.count(Kind::Request)), ("ring", 1, 1));
}
