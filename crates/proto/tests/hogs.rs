//! One station among others that keep the token too long, and its own exclusion (decision
//! 016). A script plays the other stations.

use crate::rig::hogs::{begin, cycle, hop, struck, token, visit};
use crate::rig::{ME, Rig, TRT, mac, ms};
use rota_contract::NodeId;
use rota_proto::{ChannelEvent, Excluded};
use rota_units::Span;
use rota_wire::bodies::{ModeNotice, StationState};
use rota_wire::{
    Announce, Foul, Kind, LinkHeader, MacAddr, Phase, Struck, Token, UNIT_HEADER_OCTETS, UnitHeader,
};

#[test]
fn an_audited_token_is_taken_by_the_one_that_it_names() {
    let mut rig = Rig::ring();
    begin(&mut rig, 5, |_| ());
    rig.run(ms(2));
    rig.clear();
    let before = rig.node.rether().list_stamp();
    let token = token(&rig, 5, Phase::RealTime, 1, ms(2));
    hop(&mut rig, (1, 3), 1, &token);
    rig.run(ms(1));
    assert_eq!((rig.state(), rig.sent.len()), ("ring", 0), "{:?}", rig.sent);
    assert_eq!(rig.node.rether().list_stamp(), before, "who overhears believes nothing");
    let home = Token { phase: Phase::NonRealTime, position: 2, ..token };
    hop(&mut rig, (3, ME), 1, &home);
    rig.run(ms(2));
    let passed = rig.last(Kind::Token);
    assert_eq!(passed.to, MacAddr::BROADCAST, "it goes on to all");
    let next = Token::parse(&passed.body).expect("sound").audit.expect("it names somebody");
    assert!([mac(1), mac(3)].contains(&next), "{next}");
}

/// It says in each token that it passed it on at once.
#[test]
fn who_lies_about_its_hold_is_measured_all_the_same() {
    let mut rig = Rig::ring();
    for at in 0..5 {
        cycle(&mut rig, 10 + at * 2, ms(50));
    }
    visit(&mut rig, 20);
    assert_eq!(struck(&rig), None, "five of sixteen are not enough");
    cycle(&mut rig, 22, ms(50));
    visit(&mut rig, 24);
    assert_eq!(struck(&rig), Some(Struck { station: 3, why: Foul::Held }));
    assert_eq!(rig.node.rether().counters().hogs, 1);
    let named = rig.events.iter().find_map(|event| match event {
        ChannelEvent::Struck(Excluded { mac, why, here, wait, .. }) => Some((*mac, *why, *here, *wait)),
        _ => None,
    });
    assert_eq!(named, Some((mac(3), Foul::Held, false, ms(8_000))));
    let now = rig.now;
    let excluded: Vec<_> = rig.node.rether().excluded(now).map(|excluded| excluded.held).collect();
    assert!(matches!(excluded[..], [held] if held >= ms(50) && held < ms(52)), "{excluded:?}");
}

/// A wire with one deaf end: the ring left out an honest station, whose token had waited for a claim.
#[test]
fn what_was_seen_before_a_claim_is_no_evidence() {
    let mut rig = Rig::ring();
    for at in 0..8 {
        if at == 4 {
            rig.stamp.0 += 1;
        }
        cycle(&mut rig, 10 + at * 2, ms(50));
    }
    visit(&mut rig, 26);
    assert_eq!((struck(&rig), rig.node.rether().counters().hogs), (None, 0));
    for at in 14..16 {
        cycle(&mut rig, at * 2, ms(50));
    }
    visit(&mut rig, 32);
    assert_eq!(struck(&rig), Some(Struck { station: 3, why: Foul::Held }), "it goes on under the new token");
}

/// Station 1 and this one have slots; each of two tokens comes here long behind its slot.
fn two_late_tokens(rig: &mut Rig) {
    for number in [100, 102] {
        let late = |rig: &Rig, position, spent| {
            let mut late = token(rig, number, Phase::RealTime, position, spent);
            late.slots = rig.token(Phase::RealTime, &[(1, 6_000, true), (ME, 6_000, true)]).slots;
            late
        };
        let list = late(rig, 0, Span::ZERO);
        begin(rig, number, |begun| *begun = list);
        rig.run(ms(25));
        let late = late(rig, 1, ms(25));
        rig.hear_token(1, 1, &late);
        rig.run(ms(3));
    }
}

/// A ring's tokens went to all for as many cycles as the one before it had run.
#[test]
fn late_tokens_of_an_earlier_ring_are_forgotten() {
    let mut rig = Rig::ring();
    two_late_tokens(&mut rig);
    assert_eq!(rig.last(Kind::Token).to, MacAddr::BROADCAST, "two were late");
    assert!(rig.node.rether().counters().tokens_audited > 0);
    let mut body = [0; 5];
    rig.mode_epoch += 1;
    ModeNotice { mode_epoch: rig.mode_epoch, ring: false }.emit(&mut body);
    let stamp = rig.stamp;
    rig.hear_ring(1, Kind::Mode, stamp, &body);
    assert_eq!(rig.state(), "plain");
    rig.switch(1, 1);
    rig.run(ms(5));
    rig.form(&[1, ME, 3]);
    assert_eq!(rig.state(), "ring");
    rig.stamp = (2, 1, 1);
    visit(&mut rig, 103);
    assert_ne!(rig.last(Kind::Token).to, MacAddr::BROADCAST, "none of this ring's was late");
}

#[test]
fn what_its_slots_allow_and_a_stall_now_and_then_are_no_strike() {
    let mut rig = Rig::ring();
    for at in 0..40 {
        // A slot of 6 ms, an ordinary visit, and the way there and on.
        let kept = if at % 4 == 0 { ms(50) } else { ms(9) };
        cycle(&mut rig, 10 + at * 2, kept);
    }
    visit(&mut rig, 90);
    assert_eq!((struck(&rig), rig.node.rether().counters().hogs), (None, 0));
}

/// Frames wait at this station's own port: what it measures is not the others' doing.
#[test]
fn who_hears_late_blames_nobody() {
    let mut rig = Rig::ring();
    for at in 0..12 {
        let number = 10 + at * 2;
        begin(&mut rig, number, |_| ());
        rig.run(ms(25));
        // Written 20 ms ago; the next frame has waited for 70.
        let given = token(&rig, number, Phase::RealTime, 1, ms(5));
        hop(&mut rig, (1, 3), 1, &given);
        rig.run(ms(50));
        let said = token(&rig, number, Phase::Home, 2, ms(8));
        hop(&mut rig, (3, 1), 1, &said);
        rig.run(ms(3));
    }
    visit(&mut rig, 40);
    assert_eq!((struck(&rig), rig.node.rether().counters().hogs), (None, 0));
}

/// A member of this ring says that it lives.
fn lives(rig: &mut Rig, station: u16, seq: u64) {
    let mut said = Announce::new(NodeId(u64::from(station)), 0x903, 1, StationState::Ring, "n3");
    said.mode_epoch = rig.mode_epoch;
    (said.trt_ns, said.rate_bps) = (TRT.as_nanos() as u32, rig.settings.link.rate.as_bps());
    said.settings = rig.settings.digest();
    let mut body = [0; 96];
    let length = said.emit(&mut body);
    let generation = rig.node.rether().newest();
    let header = LinkHeader { seq, generation, ..rig.header(station, Kind::Announce) };
    let frame = rig.frame(&header, &body[..length], &rig.segment_key);
    rig.hear_raw(Some(rig.now), &frame);
}

/// No word of its own brings it back before its time; then one does.
#[test]
fn who_was_struck_waits() {
    let mut rig = Rig::ring();
    (0..6).for_each(|at| cycle(&mut rig, 10 + at * 2, ms(50)));
    visit(&mut rig, 30);
    assert!(struck(&rig).is_some() && rig.node.rether().is_dead(3));
    let dead = |rig: &Rig| Token::parse(&rig.last(Kind::Token).body).expect("sound").dead;
    let gone = dead(&rig);
    for at in 0..2u32 {
        lives(&mut rig, 3, 1_000 + u64::from(at));
        begin(&mut rig, 40 + at * 4, |list| list.dead = gone);
        let here = Token { dead: gone, ..token(&rig, 40 + at * 4, Phase::NonRealTime, 2, Span::ZERO) };
        rig.hear_token(1, 1, &here);
        rig.run(ms(3));
        assert_eq!(dead(&rig).contains(3), at == 0, "visit {at}");
        // All others keep the ring alive.
        for quiet in 0..90 {
            begin(&mut rig, 41 + at * 4 + quiet, |list| list.dead = gone);
            rig.run(ms(95));
        }
    }
}

#[test]
fn who_is_struck_itself_says_so_and_does_not_ask_before_its_time() {
    let mut rig = Rig::ring();
    begin(&mut rig, 9, |_| ());
    rig.run(ms(2));
    rig.clear();
    let out = |list: &mut Token| {
        list.dead.insert(ME);
        list.struck = Some(Struck { station: ME, why: Foul::Sent });
    };
    begin(&mut rig, 10, out);
    rig.run(ms(3));
    let now = rig.now;
    let own = rig.node.rether().excluded(now).next().copied().expect("it knows");
    assert!(own.here && own.why == Foul::Sent && own.mac == mac(ME) && own.wait == ms(8_000), "{own:?}");
    assert!(
        rig.events.iter().any(|event| matches!(event, ChannelEvent::Struck(Excluded { here: true, .. })))
    );
    for at in 0..100 {
        begin(&mut rig, 11 + at, |list| list.dead.insert(ME));
        let now = rig.now;
        let asks = rig.sent.iter().any(|sent| sent.header.kind == Kind::Announce);
        assert_eq!(asks, now > own.until, "{at}: {now:?} {:?}", own.until);
        if asks {
            return;
        }
        rig.run(ms(90));
    }
    panic!("it never asks");
}

/// Somebody plays a unit again whenever he likes.
#[test]
fn a_unit_that_was_on_the_wire_before_is_no_evidence() {
    for again in [true, false] {
        let mut rig = Rig::ring();
        let mut first = None;
        for at in 0..20u32 {
            begin(&mut rig, 10 + at, |_| ());
            let unit = UnitHeader {
                label: 1,
                number: at as u16,
                fragment: 0,
                last: true,
                left_out: 0,
                unit_octets: 4,
                schedule_ns: 0,
            };
            let mut body = [0; UNIT_HEADER_OCTETS + 4];
            unit.emit(&mut body);
            rig.run(ms(2));
            let frame = rig.ring_frame(3, Kind::Data, rig.stamp, &body);
            let frame = if again { first.get_or_insert(frame).clone() } else { frame };
            // Behind the next list, and later than D.
            begin(&mut rig, 11 + at, |_| ());
            rig.run(ms(10));
            rig.hear_raw(Some(rig.now), &frame);
        }
        visit(&mut rig, 60);
        let wanted = (!again).then_some(Struck { station: 3, why: Foul::Sent });
        assert_eq!(struck(&rig), wanted, "again: {again}");
    }
}

/// A ring counts its cycles from the beginning: an audit of 64 cycles of the ring before would last for as
/// many cycles as that ring had, and 64 more.
#[test]
fn an_audit_ends_with_its_ring() {
    let (mut rig, channel) = Rig::master(1_000, true);
    let lists = rig.lists(1, 4, |at, token| token.audit = (at == 1).then(|| mac(ME)));
    assert!(lists[3].audit.is_some(), "a station has asked for it");
    rig.node.close(rig.now, channel);
    for _ in 0..400 {
        rig.run(ms(10));
        if rig.state() == "ring" && rig.count(Kind::Token) > 0 {
            rig.pass_back(1, 1, |token| token.audit = token.audit.map(|_| mac(ME)));
        }
    }
    assert_eq!(rig.state(), "plain", "the last reservation is closed");
    rig.mode_epoch = rig.node.rether().mode_epoch();
    for _ in 0..8 {
        for station in [1, 3] {
            rig.announce(station, StationState::Plain);
        }
        rig.run(ms(1_000));
    }
    rig.clear();
    let (mut rig, _) = rig.into_master(1_000, true);
    let lists = rig.lists(1, 3, |_, _| ());
    assert!(lists.iter().all(|list| list.audit.is_none()), "nothing was late in this ring");
}
