//! A station that is told of a ring, and what has to follow before it goes on believing that.

use crate::rig::{ME, Rig, ms};
use rota_proto::{GateOrder, Output};
use rota_units::Span;
use rota_wire::bodies::StationState;
use rota_wire::{Announce, Claim, Generation, JoinAnswer, Kind, ModeNotice, Verdict};

fn told(rig: &mut Rig) {
    let mut body = [0; 5];
    ModeNotice { mode_epoch: rig.mode_epoch, ring: true }.emit(&mut body);
    rig.hear(1, Kind::Mode, &body);
    assert_eq!(rig.state(), "joining a ring");
}

/// How long it is "joining a ring", if nobody says more.
fn waits(rig: &mut Rig) -> Span {
    let began = rig.now;
    while rig.state() == "joining a ring" {
        rig.run(ms(1));
        assert!(rig.now.since(began) < ms(10_000), "for ever");
    }
    rig.now.since(began)
}

#[test]
fn a_plain_station_that_hears_no_ring_is_back_in_its_place_when_one_would_have_claimed() {
    let mut rig = Rig::plain();
    told(&mut rig);
    let (waited, silence) = (waits(&mut rig), rig.settings.silence(2));
    assert!(waited >= silence && waited < silence + rig.settings.join_interval * 2, "{waited}");
    assert_eq!((rig.state(), rig.node.rether().station()), ("plain", ME));
    let mut gate = rig.outputs.iter().rev().map(|(_, output)| *output);
    let gate = gate.find(|output| matches!(output, Output::Gate { .. }));
    assert!(matches!(gate, Some(Output::Gate { order: GateOrder::Pass, .. })), "ordinary traffic flows");
    // The others learn that it is there, and what it has heard since is not forgotten.
    let said = Announce::parse(&rig.last(Kind::Announce).body).expect("sound");
    assert_eq!((said.state, rig.node.rether().members().len()), (StationState::Plain, 2));
}

/// A station that boots has been silent for long enough by then: it only has to learn which places are taken.
#[test]
fn a_booting_station_that_hears_no_ring_takes_a_place_soon_after() {
    let mut rig = Rig::new();
    rig.run(ms(10));
    told(&mut rig);
    waits(&mut rig);
    assert_eq!(rig.state(), "joining");
    rig.run(rig.settings.join_interval * (u64::from(rig.settings.join_tries) + 1));
    assert_eq!(rig.state(), "plain");
}

/// An answer, a claim, a Form and a word of a station in the ring show that it runs.
#[test]
fn a_station_that_hears_of_its_ring_goes_on_asking_to_be_let_in() {
    let answer = |rig: &mut Rig| {
        let asked = rig.last(Kind::Announce).body.clone();
        let nonce = Announce::parse(&asked).expect("sound").nonce;
        let mut body = [0; 64];
        let length = JoinAnswer::new(nonce, 7, Verdict::Prove).emit(&mut body);
        rig.hear(1, Kind::JoinAnswer, &body[..length]);
    };
    let claim = |rig: &mut Rig| {
        let mut body = [0; 10];
        let generation = Generation { counter: 2, station: 3 };
        Claim { generation, mode_epoch: rig.mode_epoch }.emit(&mut body);
        rig.hear(3, Kind::Claim, &body);
    };
    let form = |rig: &mut Rig| rig.form(&[1, 3]);
    let word = |rig: &mut Rig| rig.announce(1, StationState::Ring);
    let signs: [&dyn Fn(&mut Rig); 4] = [&answer, &claim, &form, &word];
    for (at, sign) in signs.into_iter().enumerate() {
        for booting in [false, true] {
            let mut rig = if booting { Rig::new() } else { Rig::plain() };
            rig.run(ms(10));
            told(&mut rig);
            // Just before it would give the ring up: the claim of a station that has missed the token.
            rig.run(rig.settings.silence(0));
            sign(&mut rig);
            rig.clear();
            rig.run(ms(4_000));
            assert_eq!(rig.state(), "joining a ring", "sign {at}, booting: {booting}");
            assert!(rig.count(Kind::Announce) > 30);
        }
    }
}

/// The honest word of a station in a ring comes with an announcement, and a plain station says hello at once
/// when it gives the ring up: it is outside for one more question only.
#[test]
fn a_station_that_gave_up_a_ring_that_runs_is_back_at_its_door_with_its_hello() {
    let mut rig = Rig::plain();
    told(&mut rig);
    waits(&mut rig);
    let hello = rig.last(Kind::Announce);
    assert_eq!((hello.at, hello.header.source), (rig.now, ME));
    rig.announce(1, StationState::Ring);
    told(&mut rig);
    rig.run(ms(2_000));
    assert_eq!(rig.state(), "joining a ring");
}
