//! What the model checker and its random walks (`models/`) have found in this machine, each made small.

use crate::rig::{ME, Rig, mac, ms};
use rota_proto::ChannelEvent;
use rota_wire::{Kind, Phase, Token};

/// A station that was plain while others formed a ring may have seen a greater generation than theirs. It
/// believes none of their tokens, and every token sent again brings the form again.
#[test]
fn a_form_that_comes_again_is_no_sign_of_a_token() {
    let mut rig = Rig::plain();
    rig.switch(1, 1);
    rig.run(ms(5));
    rig.form(&[1, ME, 3]);
    assert_eq!(rig.state(), "ring");
    for _ in 0..200 {
        rig.run(ms(10));
        if rig.count(Kind::Claim) > 0 {
            return;
        }
        rig.form(&[1, ME, 3]);
    }
    panic!("two seconds without a token, and no claim");
}

/// The round ends at a station that was already visited in it: the token does not pass its predecessor again.
#[test]
fn a_round_that_ends_early_answers_whom_it_does_not_pass() {
    let mut rig = Rig::ring();
    let slots: &[(u16, u32, bool)] = &[(1, 6_000, true)];
    let idle = Token { next_nrt: ME, idle_visits: 1, ..rig.token(Phase::NonRealTime, slots) };
    rig.hear_token(1, 5, &idle);
    rig.run(ms(1));
    assert_eq!(
        (rig.last(Kind::Token).to, rig.count(Kind::TokenAck)),
        (mac(3), 0),
        "passed on, not yet answered"
    );
    let owed = rig.stamp.2 - 1;
    let home = rig.token(Phase::Home, slots);
    rig.hear_token(3, 1, &home);
    rig.run(ms(1));
    let answered =
        rig.sent.iter().any(|s| s.header.kind == Kind::TokenAck && s.to == mac(1) && s.header.seq == owed);
    assert!(answered, "station 1 would send the token again");
}

/// Station 1 has claimed and found station 3 dead: the channel from here to station 3 ends too.
#[test]
fn a_channel_ends_when_the_list_says_that_its_peer_is_dead() {
    let (mut rig, channel) = Rig::master(3_000, true);
    let mut list = *rig.node.rether().list().expect("a ring has a list");
    list.dead.insert(3);
    let mut body = [0; 400];
    let length = list.emit(&mut body);
    rig.stamp.2 += 10;
    rig.hear_ring(1, Kind::List, rig.stamp, &body[..length]);
    rig.hear_token(1, 1, &Token { phase: Phase::Home, ..list });
    rig.run(ms(3_000));
    let closed =
        |event: &ChannelEvent| matches!(event, ChannelEvent::Closed { channel: id, .. } if *id == channel);
    assert!(rig.events.iter().any(closed), "{:?}", rig.events);
}
