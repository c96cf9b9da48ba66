//! Leases that follow the stalls of the hosts (decision 017), at one station: what it believes for how long,
//! what it announces, and what it does with leases that lie.

mod rig;

use rig::{ME, Rig, TRT, ms};
use rota_proto::{Settings, Why};
use rota_units::{BitRate, Octets, Span};
use rota_wire::{Kind, Leases, Phase, Token};

const SLOTS: &[(u16, u32, bool)] = &[(1, 6_000, true)];

fn settings() -> Settings {
    let settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
    Settings { follow_stalls: true, ..settings }
}

/// A member of a ring of stations 1, [`ME`] and 3.
fn ring(settings: Settings) -> Rig {
    join(Rig::with(settings).settle())
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
    assert_eq!(rig.node.link().timers_in_force(rig.now).why, Why::NoNews);
    for (leases, least, most) in [(leases(0, 0, 0), 70, 110), (leases(0, 90, 60), 180, 270)] {
        let list = token(&rig, Phase::RealTime, leases);
        rig.stamp.2 += 5;
        let mut body = [0; 600];
        let length = list.emit(&mut body);
        let stamp = rig.stamp;
        rig.hear_ring(1, Kind::List, stamp, &body[..length]);
        let timers = rig.node.link().timers_in_force(rig.now);
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
    let at = |rig: &Rig, later: Span| rig.node.link().timers_in_force(rig.now + later);
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
        let taken = |rig: &Rig| rig.node.link().counters().tokens_accepted;
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
    let mut rig = Rig::with(settings()).settle();
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
    rig.now += watch;
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
    let before = *rig.node.link().counters();
    rig.stamp.2 += 5;
    let stamp = rig.stamp;
    rig.hear_ring(1, Kind::Token, stamp, &body[..length]);
    let after = *rig.node.link().counters();
    assert_eq!(after.frames_malformed, before.frames_malformed + 1);
    assert_eq!(after.tokens_accepted, before.tokens_accepted);

    let mut rig = ring(Settings { follow_stalls: false, ..settings() });
    let token = token(&rig, Phase::NonRealTime, leases(0, 0, 0));
    rig.hear_token(1, 5, &token);
    let after = *rig.node.link().counters();
    assert_eq!((after.tokens_unsound, after.tokens_accepted), (1, 0));
    assert_eq!(rig.node.link().timers_in_force(rig.now).death, ms(500));
}

/// Stations that follow and stations that do not are of two minds about the segment.
#[test]
fn who_follows_and_who_does_not_have_other_settings() {
    let fixed = Settings { follow_stalls: false, ..settings() };
    assert_ne!(fixed.digest(), settings().digest());
}
