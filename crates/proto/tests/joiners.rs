//! Which boot of a station the cycle master lets in.

use crate::rig::{Rig, ms};
use rota_contract::NodeId;
use rota_wire::bodies::StationState;
use rota_wire::{Announce, Kind, LinkHeader};

/// Boot `boot` of station 7 asks to be let in, with the answer to the newest challenge.
fn ask(rig: &mut Rig, boot: u32, seq: u64) {
    let mut said = Announce::new(NodeId(7), u64::from(boot), 1, StationState::Joining, "n7");
    (said.mode_epoch, said.trt_ns) = (rig.mode_epoch, rig.settings.trt.as_nanos() as u32);
    said.rate_bps = rig.settings.link.rate.as_bps();
    (said.settings, said.answers) = (rig.settings.digest(), rig.answers);
    let mut body = [0; 96];
    let length = said.emit(&mut body);
    let header = LinkHeader { seq, incarnation: boot, ..rig.header(7, Kind::Announce) };
    let frame = rig.frame(&header, &body[..length], &rig.segment_key);
    rig.hear_raw(Some(rig.now), &frame);
    rig.run(ms(1));
}

/// Seed 622252 of the product's timers: a station proved that it lived and booted again before the cycle
/// master had the token. The boot that was over got a place, and the ring waited a death timer for it.
#[test]
fn a_boot_that_is_followed_by_another_has_to_prove_again_that_it_lives() {
    let (mut rig, _) = Rig::master(6_250, true);
    let forms = rig.count(Kind::Form);
    ask(&mut rig, 5, 1);
    ask(&mut rig, 5, 2);
    let proof = rig.answers;
    ask(&mut rig, 6, 1);
    rig.rest();
    rig.run(ms(40));
    assert_eq!(rig.count(Kind::Form), forms, "boot 5 is over, and boot 6 has proven nothing yet");
    // It was a replay: boot 5 lives, and answers as before.
    rig.answers = proof;
    ask(&mut rig, 5, 3);
    rig.run(ms(40));
    assert!(rig.count(Kind::Form) > forms, "its next announcement proves it again");
}
