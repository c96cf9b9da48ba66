//! The answers of one station to the will of another, frame by frame.

use crate::rig::{self, ME, Rig, mac, ms};
use rota_contract::CloseCause;
use rota_contract::NodeId;
use rota_proto::ChannelEvent;
use rota_units::{Instant, Span};
use rota_wire::{Form, FormMember, Kind, LinkHeader, Phase, Token};

const SLOT: (u16, u32, bool) = (1, 6_000, true);

fn will(rig: &mut Rig, station: u16) {
    rig.hear_ring(station, Kind::Will, (0, 0, 0), &[]);
}

fn list(rig: &mut Rig, change: impl FnOnce(&mut Token)) {
    let mut list = Token { residual_ns: 33_000_000, ..rig.token(Phase::RealTime, &[SLOT]) };
    change(&mut list);
    let mut body = [0; 600];
    let length = list.emit(&mut body);
    rig.stamp.2 += 5;
    rig.hear_ring(1, Kind::List, rig.stamp, &body[..length]);
}

/// How long after `from` this station claims, if it does so within 100 ms.
fn claims_after(rig: &mut Rig, from: Instant) -> Option<Span> {
    rig.run(ms(100));
    rig.sent.iter().find(|sent| sent.header.kind == Kind::Claim).map(|sent| sent.at.since(from))
}

/// Each living station with a smaller number has time to claim first; a dead one has none.
#[test]
fn behind_a_will_the_least_living_station_claims_first() {
    for (wills, dead, rank) in [(&[3][..], false, 1), (&[1, 3], false, 0), (&[3], true, 0)] {
        let mut rig = Rig::ring();
        list(&mut rig, |list| {
            list.slots = rota_wire::SlotList::EMPTY;
            assert!(list.slots.push(rota_wire::Slot {
                station: 3,
                tht_ns: 1_000_000,
                periodic: true,
                partition: 0
            }));
            if dead {
                list.dead.insert(1);
            }
        });
        rig.run(ms(1));
        rig.clear();
        let from = rig.now;
        wills.iter().for_each(|station| will(&mut rig, *station));
        let settings = &rig.settings;
        let wanted = settings.hop_timeout + settings.delay_max + settings.ack_spacing * rank;
        assert_eq!(claims_after(&mut rig, from), Some(wanted), "{wills:?} {dead}");
    }
}

/// A list that has left the station out needs no claim.
#[test]
fn the_will_of_a_dead_station_changes_nothing() {
    let mut rig = Rig::ring();
    list(&mut rig, |list| list.dead.insert(3));
    rig.run(ms(1));
    rig.clear();
    let from = rig.now;
    will(&mut rig, 3);
    assert_eq!(rig.node.rether().counters().wills, 1);
    assert_eq!(claims_after(&mut rig, from), None);
}

/// The token holder waits for its card, then passes the token on: not to a station that has died meanwhile.
#[test]
fn a_token_that_waits_for_the_card_goes_to_a_living_station() {
    let mut rig = Rig::ring();
    let token = Token { next_nrt: ME, ..rig.token(Phase::NonRealTime, &[SLOT]) };
    rig.host_frame(1, 1_514, 0);
    rig.hear_token(1, 5, &token);
    assert_eq!((rig.state(), rig.host_frames().len(), rig.count(Kind::Token)), ("holding", 1, 0));
    will(&mut rig, 3);
    rig.run(ms(3));
    let sent = rig.last(Kind::Token);
    assert!(sent.to == mac(1) || sent.to == mac(1).own_group(), "{}", sent.to);
    assert!(rig.last_token().dead.contains(3));
}

/// Its slot moves forward in the list when the slot before it goes, and opens in the same cycle.
#[test]
fn a_slot_that_waits_is_used_though_one_before_it_is_gone() {
    let (mut rig, channel) = Rig::master(1_000, true);
    let own = *rig.node.rether().list().expect("a list").slots.as_slice().first().expect("its slot");
    rig.run(ms(20));
    rig.pass_back(1, 1, |token| {
        token.slots = rota_wire::SlotList::EMPTY;
        let first = rota_wire::Slot { station: 1, tht_ns: 8_000_000, periodic: true, partition: 0 };
        assert!(token.slots.push(first) && token.slots.push(own));
        (token.phase, token.position, token.cycle) = (Phase::RealTime, 1, token.cycle + 1);
        token.residual_ns = 33_333_333;
    });
    rig.unit(channel, 0, 1_000);
    rig.run(ms(1));
    rig.clear();
    assert_eq!(rig.state(), "holding", "its slot opens 8 ms behind the cycle's beginning");
    will(&mut rig, 1);
    rig.run(ms(12));
    assert_eq!(rig.count(Kind::Data), 1, "the unit leaves in this cycle");
}

#[test]
fn a_token_is_not_sent_again_to_a_station_that_left_a_will() {
    for dies in [false, true] {
        let mut rig = Rig::ring();
        let token = Token { next_nrt: ME, ..rig.token(Phase::NonRealTime, &[SLOT]) };
        rig.hear_token(1, 5, &token);
        rig.run(ms(1));
        assert_eq!(rig.last(Kind::Token).to, mac(3));
        rig.clear();
        if dies {
            will(&mut rig, 3);
        }
        rig.run(rig.settings.hop_timeout);
        assert_eq!(rig.count(Kind::Token), usize::from(!dies));
    }
}

/// Frames that the station had sent before its end may come behind its will.
#[test]
fn a_sign_of_life_counts_two_cycles_behind_a_will_and_not_before() {
    use rota_wire::bodies::StationState;
    use rota_wire::{Announce, LinkHeader};
    for (later, lives) in [(ms(66), false), (ms(67), true)] {
        let mut rig = Rig::ring();
        list(&mut rig, |_| ());
        will(&mut rig, 3);
        list(&mut rig, |list| list.dead.insert(3));
        rig.run(later);
        let mut said = Announce::new(NodeId(3), 0x903, 1, StationState::Ring, "n3");
        said.mode_epoch = rig.mode_epoch;
        (said.trt_ns, said.rate_bps) = (rig::TRT.as_nanos() as u32, rig.settings.link.rate.as_bps());
        said.settings = rig.settings.digest();
        let mut body = [0; 96];
        let length = said.emit(&mut body);
        let generation = rig.node.rether().newest();
        let header = LinkHeader { seq: 1_000, generation, ..rig.header(3, Kind::Announce) };
        let frame = rig.frame(&header, &body[..length], &rig.segment_key);
        rig.hear_raw(Some(rig.now), &frame);
        // The next holder, who has heard it, clears the mark.
        rig.clear();
        let dead = rig.node.rether().list().expect("a list").dead;
        let token = Token { next_nrt: ME, dead, ..rig.token(Phase::NonRealTime, &[SLOT]) };
        rig.hear_token(1, 5, &token);
        rig.run(ms(2));
        assert_eq!(!rig.last_token().dead.contains(3), lives, "{later}");
    }
}

/// A will speaks of one boot: its own later word is none of the dead.
#[test]
fn a_will_is_known_by_its_boot() {
    let mut rig = Rig::ring();
    will(&mut rig, 3);
    let heard = |boot| rig.node.rether().has_heard_will(mac(3), boot);
    assert!(heard(0x103) && !heard(0x104));
    assert!(!rig.node.rether().has_heard_will(mac(1), 0x101));
}

/// The others take its reservations from it: it must not go on as if it had them.
#[test]
fn a_station_that_hears_its_own_will_loses_its_channels() {
    let (mut rig, channel) = Rig::master(1_000, true);
    let mut frame = [0; 100];
    let octets = rig.node.rether().write_will(&mut frame).expect("a ring station has a will");
    rig.hear_raw(Some(rig.now), &frame[..octets]);
    assert_eq!(rig.node.rether().counters().wills_own, 1);
    rig.run(ms(3_000));
    let lost = rig.events.iter().any(|event| match event {
        ChannelEvent::Closed { channel: id, cause, .. } => {
            *id == channel && *cause == CloseCause::ReservationLost
        }
        _ => false,
    });
    assert!(lost, "{:?}", rig.events);
}

/// A Form names a new boot of the station that left the will: no ring has lost a token by it.
#[test]
fn a_form_of_its_next_boot_ends_the_wait_behind_a_will() {
    for comes_back in [true, false] {
        let mut rig = Rig::plain();
        rig.switch(1, 1);
        rig.run(ms(5));
        let own = rig.own_member();
        rig.form(&[1, ME, 3]);
        rig.stamp = (1, 1, 1);
        list(&mut rig, |_| ());
        rig.run(ms(1));
        rig.clear();
        let from = rig.now;
        will(&mut rig, 3);
        let mut form = Form::new(rig.mode_epoch, 2, 0, 1);
        form.settings = rig.settings.digest();
        for station in [1, ME, 3] {
            let boot = if comes_back && station == 3 { 0x500 } else { 0x100 };
            let (incarnation, nonce) =
                (boot + u32::from(station), u64::from(boot) + 0x800 + u64::from(station));
            let member = FormMember { station, mac: mac(station), incarnation, nonce };
            assert!(form.push(if station == ME { own } else { member }));
        }
        let mut body = [0; 200];
        let length = form.emit(&mut body);
        let generation = rig.node.rether().newest();
        let header = LinkHeader { seq: 1_000, generation, ..rig.header(1, Kind::Form) };
        let frame = rig.frame(&header, &body[..length], &rig.segment_key);
        rig.take_key(&form);
        rig.hear_raw(Some(rig.now), &frame);
        let claims = claims_after(&mut rig, from).is_some();
        assert_eq!(claims, !comes_back, "a will that no list takes account of");
    }
}
