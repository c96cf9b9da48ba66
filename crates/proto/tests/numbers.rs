//! Stations of one number, and of another number than was known, at a switch to token mode.

use crate::rig::{ME, Rig, mac, ms};
use rota_wire::bodies::StationState;
use rota_wire::{Form, Kind};

/// Two halves that booted apart number their stations alike. Two initiators of one number answered each
/// other's answers, 28,722 frames in a second and a half, and both formed a ring.
#[test]
fn of_two_initiators_of_one_number_the_smaller_address_goes_on_and_answers_once() {
    let mut rig = Rig::plain();
    rig.open(6_250, true);
    rig.mode_epoch = rig.node.rether().mode_epoch();
    rig.run(ms(1));
    assert_eq!((rig.state(), rig.count(Kind::Switch)), ("initiating", 1));
    rig.switch_numbered(3, ME);
    rig.run(ms(1));
    assert_eq!((rig.state(), rig.last(Kind::Switch).to, rig.count(Kind::Switch)), ("initiating", mac(3), 2));
    // The smaller address: its question is no reason for an answer, and this station gives its number up.
    rig.switch_numbered(1, ME);
    rig.run(ms(1));
    assert_eq!((rig.state(), rig.count(Kind::Switch)), ("joining", 2));
    assert_eq!(rig.node.rether().station(), 0);
}

/// Product seed 3528150. Two stations of one number answered a switch, the greater address first. The ring
/// then named the smaller address with the nonce of the other: it could prove no token, and the ring stood
/// still until the silence was long enough for a claim.
#[test]
fn of_two_answers_of_one_number_each_counts_for_its_address() {
    let mut rig = Rig::plain();
    rig.announce_numbered(4, 3, StationState::Plain);
    rig.open(6_250, true);
    rig.run(ms(1));
    rig.ack_switch_numbered(4, 3);
    rig.ack_switch(1);
    rig.run(ms(1));
    assert_eq!(rig.state(), "initiating", "the other station of that number has not answered");
    rig.ack_switch(3);
    rig.run(ms(2));
    assert_eq!(rig.count(Kind::Token), 1, "all have answered");
    let form = Form::parse(&rig.last(Kind::Form).body).expect("sound");
    let named: Vec<_> = form.members().iter().map(|member| (member.station, member.mac)).collect();
    assert_eq!(named, [(1, mac(1)), (ME, mac(ME)), (3, mac(3))], "the smaller address keeps the number");
    assert_eq!(form.members()[2].nonce, 0x903);
    assert_eq!(rig.node.rether().counters().stations_declared_dead, 0);
}

/// Its announcement was lost: the ring knows it by the number that it answers under.
#[test]
fn a_station_that_answers_under_another_number_has_that_number() {
    let mut rig = Rig::plain();
    rig.open(6_250, true);
    rig.run(ms(1));
    rig.ack_switch_numbered(1, 5);
    rig.ack_switch_numbered(1, 5);
    rig.run(ms(2));
    assert_eq!((rig.state(), rig.count(Kind::Token)), ("initiating", 0), "one answer, though it came twice");
    rig.ack_switch(3);
    rig.run(ms(2));
    assert_eq!(rig.count(Kind::Token), 1);
    let form = Form::parse(&rig.last(Kind::Form).body).expect("sound");
    let named: Vec<_> = form.members().iter().map(|member| (member.station, member.mac)).collect();
    assert_eq!(named, [(ME, mac(ME)), (3, mac(3)), (5, mac(1))]);
}
