//! Leases that follow the stalls of the hosts (decision 017), at one station: what it believes for how long,
//! what it announces, and what it does with leases that lie.

use crate::rig::{ME, Rig, TRT, ms};
use rota_proto::{Settings, Why};
use rota_units::{BitRate, Octets, Span};
use rota_wire::{ClaimGrant, Generation, Kind, Leases, Phase, Token};

const SLOTS: &[(u16, u32, bool)] = &[(1, 6_000, true)];

fn settings() -> Settings {
    let settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
    let mut settings = settings;
    settings.follow_stalls = true;
    settings
}

/// A member of a ring of stations 1, [`ME`] and 3.
fn ring(settings: Settings) -> Rig {
    join(Rig::with(settings).into_plain())
}

fn join(mut rig: Rig) -> Rig {
    rig.switch(1, 1);
    rig.run(ms(5));
    rig.form(&[1, ME, 3]);
    assert!(rig.in_ring(), "{}", rig.state());
    rig.stamp = (1, 1, 1);
    rig.clear();
    rig
}

/// The leases of a ring whose stations stand still for `stall` ms.
fn leases(hold: u8, drain: u8, stall: u8) -> Leases {
    Leases { hold, drain, stall, station: 3, gathered: 0, gatherer: 1 }
}

fn token(rig: &Rig, phase: Phase, leases: Leases) -> Token {
    Token { leases: Some(leases), ..rig.token(phase, SLOTS) }
}

/// How long the ring has been silent when this station claims.
fn claims_after(rig: &mut Rig) -> Span {
    rig.clear();
    let from = rig.now;
    while rig.count(Kind::Claim) == 0 {
        rig.run(ms(1));
        assert!(rig.now.since(from) < ms(3_000), "no claim: {}", rig.state());
    }
    rig.now.since(from)
}

#[test]
fn silence_and_death_timer_follow_the_announced_drain_and_no_other() {
    let mut rig = ring(settings());
    assert_eq!(rig.node.rether().timers_in_force(rig.now).why, Why::NoNews);
    for (leases, least, most) in [(leases(0, 0, 0), 70, 110), (leases(0, 90, 60), 180, 270)] {
        let list = token(&rig, Phase::RealTime, leases);
        rig.stamp.2 += 5;
        let mut body = [0; 600];
        let length = list.emit(&mut body);
        let stamp = rig.stamp;
        rig.hear_ring(1, Kind::List, stamp, &body[..length]);
        let timers = rig.node.rether().timers_in_force(rig.now);
        assert_eq!(timers.why, Why::Stall(ms(u64::from(leases.stall)), 3));
        assert!(timers.hold <= timers.drain && timers.silence > timers.drain, "{timers:?}");
        let took = claims_after(&mut rig);
        assert!(took >= ms(least) && took <= ms(most), "{leases:?}: {took}");
        // The claim is void as soon as the ring is heard again.
        rig.stamp.0 += 1_000;
    }
}

/// Announced leases hold for four death timers; behind them a claim reckons with the configured lease.
#[test]
fn news_that_are_old_count_for_nothing() {
    let mut rig = ring(settings());
    let list = token(&rig, Phase::NonRealTime, leases(0, 0, 0));
    rig.hear_token(1, 5, &list);
    let valid = rig.settings.death_timeout * 4;
    let at = |rig: &Rig, later: Span| rig.node.rether().timers_in_force(rig.now + later);
    assert!(at(&rig, valid.minus(ms(1))).drain < ms(40));
    let old = at(&rig, valid);
    assert_eq!((old.drain, old.death, old.why), (ms(250), ms(500), Why::NoNews));
}

/// The shortest hold ends soon, and the token that comes later than that gives no right.
#[test]
fn a_token_may_be_held_for_as_long_as_it_says() {
    let least = settings().lease_least();
    assert!(least > TRT && least < ms(40), "{least}");
    for (hold, lease) in [(0, least), (255, ms(250))] {
        let mut rig = ring(settings());
        let token = token(&rig, Phase::NonRealTime, leases(hold, 255, 200));
        rig.hear_token(1, 5, &token);
        // It passed on what it was given, with the same leases.
        let passed = rig.last_token().leases.expect("leases");
        assert_eq!((passed.hold, passed.drain), (hold, 255));
        let mut rig = ring(settings());
        let taken = |rig: &Rig| rig.node.rether().counters().tokens_accepted;
        let before = taken(&rig);
        for (late, counts) in [(lease + ms(1), 0), (lease.minus(ms(1)), 1)] {
            let came = rig.now;
            rig.now += late;
            rig.stamp.2 += 5;
            let mut body = [0; 600];
            let length = token.emit(&mut body);
            let stamp = rig.stamp;
            let frame = rig.ring_frame(1, Kind::Token, stamp, &body[..length]);
            rig.hear_raw(Some(came), &frame);
            assert_eq!(taken(&rig) - before, counts, "{late} of {lease}");
        }
    }
}

/// A station says what it has measured, once it has been watched; outside a ring nothing counts.
#[test]
fn a_station_announces_its_longest_stall() {
    let mut rig = Rig::with(settings()).into_plain();
    rig.node.stood_still(rig.now, ms(120));
    let mut rig = join(rig);
    let gathered = |rig: &mut Rig| {
        let token = token(rig, Phase::NonRealTime, leases(0, 0, 0));
        rig.hear_token(1, 5, &token);
        let leases = rig.last_token().leases.expect("leases");
        (leases.gathered, leases.gatherer)
    };
    assert_eq!(gathered(&mut rig), (Leases::UNWATCHED, ME as u8));
    let watch = rig.settings.watch();
    rig.now += watch.minus(ms(1));
    assert_eq!(gathered(&mut rig), (Leases::UNWATCHED, ME as u8), "not for long enough");
    rig.now += ms(1);
    assert_eq!(gathered(&mut rig), (0, 1), "it has not stood still, and station 1 neither");
    rig.node.stood_still(rig.now, Span::from_micros(44_100));
    rig.node.stood_still(rig.now, ms(3));
    assert_eq!(gathered(&mut rig), (45, ME as u8));
    rig.node.stood_still(rig.now, ms(9_000));
    assert_eq!(gathered(&mut rig), (Leases::LONG, ME as u8));
}

/// Bad input: leases that contradict themselves or the segment are counted, and change nothing.
#[test]
fn leases_that_lie_are_counted_and_dropped() {
    let mut rig = ring(settings());
    let sound = token(&rig, Phase::NonRealTime, leases(0, 0, 0));
    let mut body = [0; 600];
    let length = sound.emit(&mut body);
    // The hold is the first octet behind the slots.
    body[length - Leases::OCTETS] = 9;
    let before = *rig.node.rether().counters();
    rig.stamp.2 += 5;
    let stamp = rig.stamp;
    rig.hear_ring(1, Kind::Token, stamp, &body[..length]);
    let after = *rig.node.rether().counters();
    assert_eq!(after.frames_malformed, before.frames_malformed + 1);
    assert_eq!(after.tokens_accepted, before.tokens_accepted);

    let mut fixed = settings();
    fixed.follow_stalls = false;
    let mut rig = ring(fixed);
    let token = token(&rig, Phase::NonRealTime, leases(0, 0, 0));
    rig.hear_token(1, 5, &token);
    let after = *rig.node.rether().counters();
    assert_eq!((after.tokens_unsound, after.tokens_accepted), (1, 0));
    assert_eq!(rig.node.rether().timers_in_force(rig.now).death, ms(500));
}

/// Stations that follow and stations that do not are of two minds about the segment.
#[test]
fn who_follows_and_who_does_not_have_other_settings() {
    let mut fixed = settings();
    fixed.follow_stalls = false;
    assert_ne!(fixed.digest(), settings().digest());
}

/// A stall counts for nine minutes at least, and for ten at most.
#[test]
fn a_stall_is_forgotten_after_ten_minutes() {
    let minute = ms(60_000);
    for (later, stall) in [(minute * 9, 120), (minute * 10, 0), (minute * 25, 0)] {
        let mut rig = ring(settings());
        rig.now += rig.settings.watch();
        rig.node.stood_still(rig.now, ms(120));
        rig.now += later;
        let token = token(&rig, Phase::NonRealTime, leases(0, 0, 0));
        rig.hear_token(1, 5, &token);
        assert_eq!(rig.last_token().leases.expect("leases").gathered, stall, "{later}");
    }
}

/// A list whose time of arrival is not known may be old: its leases do not count.
#[test]
fn a_list_without_a_stamp_tells_no_leases() {
    let mut rig = ring(settings());
    for (stamped, why) in [(false, Why::NoNews), (true, Why::Stall(ms(7), 3))] {
        let list = token(&rig, Phase::RealTime, leases(0, 30, 7));
        rig.stamp.2 += 5;
        let mut body = [0; 600];
        let length = list.emit(&mut body);
        let frame = rig.ring_frame(1, Kind::List, rig.stamp, &body[..length]);
        rig.hear_raw(stamped.then_some(rig.now), &frame);
        assert_eq!(rig.node.rether().timers_in_force(rig.now).why, why);
    }
}

/// The shortest hold, and the drain that all others may reckon with.
#[test]
fn a_claimed_token_begins_with_the_shortest_hold_and_the_drain_of_before() {
    let mut rig = ring(settings());
    let before = token(&rig, Phase::NonRealTime, leases(30, 90, 60));
    rig.hear_token(1, 5, &before);
    claims_after(&mut rig);
    // Station 1 lives and knows nothing newer; station 3 is silent.
    let generation = rig.last(Kind::Claim).header.generation;
    let seen = Generation { counter: rig.stamp.0, station: rig.stamp.1 };
    let grant = ClaimGrant { generation, seen, seen_seq: 0, key_epoch: rig.ring_key.0, list: None };
    let mut body = [0; 600];
    let length = grant.emit(&mut body);
    rig.hear(1, Kind::ClaimGrant, &body[..length]);
    rig.clear();
    let from = rig.now;
    while rig.count(Kind::Token) == 0 {
        rig.run(ms(1));
        assert!(rig.now.since(from) < ms(1_500), "no token: {}", rig.state());
    }
    let first = rig.last_token();
    let leases = first.leases.expect("leases");
    assert_eq!((leases.hold, leases.drain), (0, 90));
}

#[test]
fn a_short_lease_leaves_time_for_three_copies_of_a_token() {
    let settings = settings();
    assert_eq!(settings.death_of(Span::from_nanos(1)), settings.hop_timeout * 3);
    let middle = ms(100).max(settings.hop_timeout * 2);
    assert_eq!(settings.death_of(middle), middle * 2);
    assert_eq!(settings.death_of(settings.lease), settings.death_timeout);
}

// ---- the master ---------------------------------------------------------------------------------------

fn gathers(stall: u8) -> impl FnMut(u32, &mut Token) {
    move |_, token| {
        let leases = token.leases.as_mut().expect("leases");
        if stall > leases.gathered {
            (leases.gathered, leases.gatherer) = (stall, 3);
        }
    }
}

/// A master whose ring has known for long that nobody stands still.
fn calm_master() -> (Rig, Leases) {
    let (mut rig, _) = Rig::with(settings()).into_plain().into_master(1_000, true);
    let lists = rig.lists(1, 240, gathers(0));
    let calm = lists.last().expect("lists").leases.expect("leases");
    assert!(calm.stall == 0 && calm.hold == calm.drain && calm.drain < 60, "{calm:?}");
    (rig, calm)
}

/// The drain follows a stall in the next list; the hold follows when no station knows a shorter drain.
#[test]
fn a_longer_stall_prolongs_the_drain_at_once_and_the_hold_later() {
    let (mut rig, calm) = calm_master();
    let lists = rig.lists(1, 80, gathers(60));
    let said: Vec<Leases> = lists.iter().map(|list| list.leases.expect("leases")).collect();
    assert!(said.iter().all(|leases| (leases.stall, leases.station) == (60, 3)), "{:?}", said[0]);
    assert!(said.iter().all(|leases| leases.drain == said[0].drain) && said[0].drain > calm.drain);
    let later = said.iter().position(|leases| leases.hold != calm.hold).expect("the hold follows");
    // Four death timers and an eighth.
    let wanted = (rig.settings.death_timeout * 4 + rig.settings.death_timeout.div_down(2)).count_down(TRT);
    assert!((wanted..=wanted + 2).contains(&(later as u64)), "{later} of {wanted}");
    assert!(said[later..].iter().all(|leases| leases.hold == said[0].drain));
}

/// Half as much again as the stall, and the time of all slots.
#[test]
fn the_drain_covers_each_stall_with_the_slots() {
    let (mut rig, _) = calm_master();
    let slots = rig.node.rether().list().expect("a list").slots;
    let slots: Span = slots.as_slice().iter().map(|slot| Span::from_nanos(u64::from(slot.tht_ns))).sum();
    assert!(slots > ms(1));
    for stall in 1..=140 {
        rig.lists(1, 1, gathers(stall));
        let timers = rig.node.rether().timers_in_force(rig.now);
        assert_eq!(timers.why, Why::Stall(ms(u64::from(stall)), 3));
        let least = Span::from_micros(u64::from(stall) * 1_500) + slots;
        assert!(
            timers.drain >= least && timers.drain <= least.max(rig.settings.lease_least()) + ms(15),
            "{stall}: {timers:?}"
        );
    }
}

/// All must have been asked in between, twice: one round is under way when the stall ends.
#[test]
fn a_shorter_stall_counts_when_all_have_been_asked() {
    let (mut rig, calm) = calm_master();
    rig.lists(1, 100, gathers(60));
    let lists = rig.lists(1, 90, gathers(0));
    let said: Vec<Leases> = lists.iter().map(|list| list.leases.expect("leases")).collect();
    let later = said.iter().position(|leases| leases.stall == 0).expect("the stall is forgotten");
    assert!((36..=74).contains(&later), "{later}");
    assert!(said[..later].iter().all(|leases| leases.stall == 60));
    assert!(said[later..].iter().all(|leases| (leases.hold, leases.drain) == (calm.hold, calm.drain)));
}
