//! The end of a ring that one station has missed (REPAIR-B8, REPAIR-B13). Seed 457376 of the product timers:
//! it said that its ring ran, and the others waited for that ring on its word.

use crate::rig::{Rig, mac, ms};
use rota_contract::NodeId;
use rota_wire::bodies::StationState;
use rota_wire::{Announce, Claim, Generation, Kind, ModeNotice};

/// A plain station whose ring, of token (1, 1) and that epoch, has ended by its last holder's word.
fn back_in_plain() -> (Rig, u32) {
    let mut rig = Rig::ring();
    let (ring, stamp) = (rig.mode_epoch, rig.stamp);
    let mut body = [0; 5];
    ModeNotice { mode_epoch: ring + 1, ring: false }.emit(&mut body);
    rig.hear_ring(1, Kind::Mode, stamp, &body);
    assert_eq!((rig.state(), rig.node.rether().mode_epoch()), ("plain", ring + 1));
    rig.mode_epoch = ring + 1;
    rig.clear();
    (rig, ring)
}

/// Station 3 speaks, and has seen the `counter`-th generation of station 1.
fn says(rig: &mut Rig, counter: u32, kind: Kind, body: &[u8]) {
    rig.hear_in(Generation { counter, station: 1 }, 3, kind, body);
}

fn says_ring(rig: &mut Rig, counter: u32, mode_epoch: u32) {
    let mut body = [0; 5];
    ModeNotice { mode_epoch, ring: true }.emit(&mut body);
    says(rig, counter, Kind::Mode, &body);
}

fn told(rig: &Rig) -> Option<ModeNotice> {
    let mut notices = rig.sent.iter().filter(|sent| sent.header.kind == Kind::Mode);
    notices.next_back().and_then(|sent| ModeNotice::parse(&sent.body).ok())
}

#[test]
fn a_ring_whose_token_is_destroyed_does_not_run_whoever_says_so() {
    let (mut rig, ring) = back_in_plain();
    says_ring(&mut rig, 1, ring);
    assert_eq!(rig.state(), "plain");
    rig.run(ms(10));
    let mut said = Announce::new(NodeId(3), 0x903, 1, StationState::Ring, "n3");
    (said.mode_epoch, said.trt_ns) = (ring, rig.settings.trt.as_nanos() as u32);
    (said.rate_bps, said.settings) = (rig.settings.link.rate.as_bps(), rig.settings.digest());
    let mut body = [0; 96];
    let length = said.emit(&mut body);
    says(&mut rig, 1, Kind::Announce, &body[..length]);
    assert_eq!(rig.state(), "plain");
}

/// A part of the segment that was cut off has claimed: that ring has another generation, or another epoch.
#[test]
fn another_ring_runs_and_is_believed() {
    for (counter, above) in [(2, 0), (1, 1)] {
        let (mut rig, ring) = back_in_plain();
        says_ring(&mut rig, counter, ring + above);
        assert_eq!(rig.state(), "joining a ring", "{counter} {above}");
    }
}

/// A station that missed the end has claimed by then. Generations can count anew.
#[test]
fn the_memory_of_an_ended_ring_ends() {
    let (mut rig, ring) = back_in_plain();
    let silence = rig.settings.silence(3);
    for _ in 0..20 {
        rig.announce(1, StationState::Plain);
        rig.announce(3, StationState::Plain);
        rig.run(silence.div_down(8));
    }
    says_ring(&mut rig, 1, ring);
    assert_eq!(rig.state(), "joining a ring");
}

/// The initiator waits for its acknowledgement, and can have it as soon as the claimant knows.
#[test]
fn a_claim_heard_in_a_switch_is_told_of_the_plain_mode_before() {
    for yields in [false, true] {
        let (mut rig, ring) = back_in_plain();
        if yields {
            rig.switch(1, 1);
        } else {
            rig.open(6_250, true);
        }
        rig.run(ms(1));
        assert_eq!(rig.state(), if yields { "yielding" } else { "initiating" });
        let state = rig.state();
        says_ring(&mut rig, 1, ring);
        assert_eq!((rig.state(), told(&rig)), (state, None), "the switch goes on");
        rig.run(ms(1));
        let (generation, mut body) = (Generation { counter: 2, station: 3 }, [0; 10]);
        Claim { generation, mode_epoch: ring }.emit(&mut body);
        says(&mut rig, 2, Kind::Claim, &body);
        assert_eq!(rig.state(), state);
        // Of this epoch it answers the switch, which has the next.
        assert_eq!(told(&rig), Some(ModeNotice { mode_epoch: ring + 1, ring: false }));
    }
}

/// The claim of a ring that this station never was in: it has missed a switch, and that ring may live.
#[test]
fn a_claim_of_another_ring_is_not_told_off_in_a_switch() {
    let (mut rig, ring) = back_in_plain();
    rig.open(6_250, true);
    rig.run(ms(1));
    for mode_epoch in [ring - 1, ring + 1, ring + 2] {
        let mut body = [0; 10];
        Claim { generation: Generation { counter: 2, station: 3 }, mode_epoch }.emit(&mut body);
        says(&mut rig, 2, Kind::Claim, &body);
        rig.run(ms(1));
        assert_eq!((rig.state(), told(&rig)), ("initiating", None), "{mode_epoch}");
    }
}

/// The epoch that a ring ends with, told to its members and to a joiner that has stated that epoch.
fn ends_with(stated: u32, others: &[u32]) -> (u32, Option<ModeNotice>) {
    let (mut rig, channel) = Rig::master(6_250, true);
    rig.run(ms(2));
    let ring = rig.node.rether().mode_epoch();
    rig.node.close(rig.now, channel);
    for _ in 0..200 {
        if rig.state() == "ring" {
            for (station, epoch) in (9..).zip([stated].iter().chain(others)) {
                rig.mode_epoch = *epoch;
                rig.announce(station, StationState::Joining);
            }
            rig.mode_epoch = ring;
        }
        rig.run(ms(20));
        if rig.state() == "ring" && rig.count(Kind::Token) > 0 {
            let to = rig.last(Kind::Token).to;
            rig.pass_back(if to == mac(3) { 3 } else { 1 }, 1, |_| ());
        }
    }
    (ring, told(&rig))
}

/// It has switched alone, and takes an older epoch for news of the mode before that.
#[test]
fn a_ring_that_ends_tells_a_joiner_of_a_later_epoch_too() {
    let over = |mode_epoch| Some(ModeNotice { mode_epoch, ring: false });
    let (ring, told) = ends_with(6, &[]);
    assert_eq!((ring, told), (1, over(7)));
    // Of this epoch its members would not believe the next one, and would not hear of the end.
    assert_eq!(ends_with(4_293_967_296, &[]).1, over(2));
    assert_eq!(ends_with(4_293_967_295, &[]).1, over(4_293_967_296));
    // Two of them led beyond the wrap, where epochs are older than the ring's own.
    assert_eq!(ends_with(4_293_967_295, &[0]).1, over(4_293_967_296));
}

/// The next epoch after this one is an old one to a station at `known`.
fn last_before_the_wrap(known: u32) -> u32 {
    known.wrapping_add(u32::MAX - 1_000_000)
}

/// A hello of a far epoch was followed by one that others took for an old one, and missed the next switch.
#[test]
fn a_hello_of_an_epoch_that_leads_nowhere_is_not_adopted() {
    let mut rig = Rig::plain();
    let known = rig.node.rether().mode_epoch();
    let far = last_before_the_wrap(known);
    for (said, adopted) in [(far, known), (far - 1, far - 1)] {
        rig.mode_epoch = said;
        rig.announce(3, StationState::Plain);
        assert_eq!(rig.node.rether().mode_epoch(), adopted);
    }
}

/// The same of a joiner that a ring lets in.
#[test]
fn a_joiner_of_an_epoch_that_leads_nowhere_does_not_change_the_ring_s() {
    for (ahead, adopts) in [(0, false), (1, true)] {
        let (mut rig, _) = Rig::master(6_250, true);
        rig.run(ms(2));
        let ring = rig.node.rether().mode_epoch();
        let said = last_before_the_wrap(ring) - ahead;
        for _ in 0..40 {
            if rig.node.rether().number(mac(9)) == 0 {
                rig.mode_epoch = said;
                rig.announce(9, StationState::Joining);
                rig.mode_epoch = ring;
            }
            rig.run(ms(20));
            if let Some(sent) = rig.sent.iter().rfind(|sent| sent.header.kind == Kind::Token) {
                let to = sent.to;
                rig.pass_back(if to == mac(3) { 3 } else { 1 }, 1, |_| ());
            }
            if rig.node.rether().number(mac(9)) != 0 {
                break;
            }
        }
        assert_ne!(rig.node.rether().number(mac(9)), 0, "it is let in");
        assert_eq!(rig.node.rether().mode_epoch(), if adopts { said } else { ring });
    }
}

/// Its claim comes when T_w is over, at latest, and its answers may be lost: until then its word is wrong.
#[test]
fn the_memory_of_an_ended_ring_lasts_until_a_station_that_missed_it_has_claimed() {
    let (mut rig, ring) = back_in_plain();
    let silence = rig.settings.silence(3);
    for _ in 0..12 {
        rig.announce(1, StationState::Plain);
        rig.announce(3, StationState::Plain);
        rig.run(silence.div_down(8));
    }
    says_ring(&mut rig, 1, ring);
    assert_eq!(rig.state(), "plain");
}
