//! The verdict on each frame: what is found first about it, once, and in the right counter.

use crate::rig::{self, FAR_GENERATION, Rig, TRT, mac, ms};
use rota_contract::NodeId;
use rota_proto::FrameVerdict;
use rota_wire::bodies::StationState;
use rota_wire::{Announce, Generation, JoinAnswer, Key, Kind, LinkHeader, Verdict};

/// A question that was heard before and is malformed counts as both; the log shows one verdict.
#[test]
fn what_is_found_first_about_a_frame_is_its_verdict() {
    let mut rig = Rig::ring();
    rig.announce(1, StationState::Ring);
    let mut body = [0; 64];
    let length = JoinAnswer::new(7, 0, Verdict::Behind).emit(&mut body);
    let header = LinkHeader { seq: 1, ..rig.header(1, Kind::JoinAnswer) };
    let frame = rig.frame(&header, &body[..length], &rig.segment_key);
    rig.hear_raw(Some(rig.now), &frame);
    assert_eq!(rig.verdict, FrameVerdict::Malformed);
    let counters = rig.node.rether().counters();
    assert_eq!((counters.frames_malformed, counters.frames_replayed), (1, 1));
}

/// A cycle master looks at a joiner's generation when it lets the joiner in: no frame is read then.
#[test]
fn what_is_found_between_frames_is_no_verdict_on_the_next() {
    let (mut rig, _) = Rig::master(6_250, true);
    rig.rest();
    let generation = Generation { counter: FAR_GENERATION, station: 7 };
    for _ in 0..2 {
        let mut said = Announce::new(NodeId(7), 0x907, 1, StationState::Joining, "n7");
        (said.mode_epoch, said.trt_ns) = (rig.mode_epoch, TRT.as_nanos() as u32);
        said.rate_bps = rig.settings.link.rate.as_bps();
        (said.settings, said.answers) = (rig.settings.digest(), rig.answers);
        let mut body = [0; 96];
        let length = said.emit(&mut body);
        rig.hear_in(generation, 7, Kind::Announce, &body[..length]);
        rig.run(ms(40));
    }
    assert!(rig.count(Kind::Form) > 0, "it was let in");
    assert_eq!(rig.node.rether().counters().jumps_refused, 1);
    rig.announce(3, StationState::Ring);
    assert_eq!(rig.verdict, FrameVerdict::Taken);
}

/// The node counts invalid frames, and shuts out a source that sends many.
#[test]
fn a_frame_without_valid_content_is_invalid_and_no_other() {
    use FrameVerdict::*;
    let valid = [Taken, Foreign, Accepted, Stale, Expired, Policed, UnknownChannel, Jump];
    let invalid = [OtherSegment, OwnAddress, Unproven, Malformed, Replayed];
    assert!(invalid.iter().all(|verdict| verdict.is_invalid()));
    assert!(!valid.iter().any(|verdict| verdict.is_invalid()));
}

/// The data thread looked at each of them anew, because no verdict said that it was a stranger's.
#[test]
fn frames_of_another_segment_and_with_this_stations_address_have_verdicts_of_their_own() {
    let mut rig = Rig::ring();
    let header = rig.header(1, Kind::Report);
    let other = LinkHeader { segment: header.segment + 1, ..header };
    rig.hear_raw(Some(rig.now), &rig.frame(&other, &[], &rig.segment_key));
    assert_eq!(rig.verdict, FrameVerdict::OtherSegment);
    let mut own = rig.frame(&header, &[], &rig.segment_key);
    own[6..12].copy_from_slice(&rig.node.rether().mac().0);
    rig.hear_raw(Some(rig.now), &own);
    assert_eq!(rig.verdict, FrameVerdict::OwnAddress);
}

/// The medium proves these frames; the line reads their bodies.
#[test]
fn a_report_a_signal_and_data_that_cannot_be_read_are_malformed() {
    for kind in [Kind::Report, Kind::Signal, Kind::Data] {
        let mut rig = Rig::ring();
        rig.hear(1, kind, &[1]);
        let counted = rig.node.rether().counters().frames_malformed;
        assert_eq!((rig.verdict, counted), (FrameVerdict::Malformed, 1), "{kind:?}");
    }
}

/// A frame of an earlier boot of a station that lives counts as a replay, though its counter is new here.
#[test]
fn the_announcement_of_another_boot_of_a_living_station_is_a_replay() {
    let mut rig = Rig::ring();
    rig.announce(3, StationState::Ring);
    assert_eq!(rig.verdict, FrameVerdict::Taken);
    let mut said = Announce::new(NodeId(3), 0x903, 9, StationState::Ring, "n3");
    (said.mode_epoch, said.trt_ns) = (rig.mode_epoch, TRT.as_nanos() as u32);
    (said.rate_bps, said.settings) = (rig.settings.link.rate.as_bps(), rig.settings.digest());
    let mut body = [0; 96];
    let length = said.emit(&mut body);
    let header = rig.header(3, Kind::Announce);
    let header = LinkHeader { seq: 1, incarnation: header.incarnation + 7, ..header };
    let frame = rig.frame(&header, &body[..length], &rig.segment_key);
    rig.hear_raw(Some(rig.now), &frame);
    assert_eq!((rig.verdict, rig.node.rether().counters().frames_replayed), (FrameVerdict::Replayed, 1));
}

/// A will of an earlier boot is a replay; one of this boot under another key is a forgery.
#[test]
fn a_will_in_this_stations_name_is_a_replay_or_a_forgery() {
    for (boots, wanted) in [(1, FrameVerdict::Replayed), (0, FrameVerdict::Unproven)] {
        let mut rig = Rig::ring();
        let incarnation = rig.node.rether().incarnation() + boots;
        let header = LinkHeader { incarnation, key_epoch: 1, ..rig.header(rig::ME, Kind::Will) };
        let frame = rig.frame(&header, &[], &Key::new([9; 32]));
        rig.hear_raw(Some(rig.now), &frame);
        let counters = rig.node.rether().counters();
        assert_eq!((rig.verdict, counters.wills_own), (wanted, 0));
        let counted = (counters.frames_replayed, counters.frames_unproven);
        assert_eq!(counted, (u64::from(boots), 1 - u64::from(boots)));
    }
}

/// A frame with this station's own address names no other station.
#[test]
fn a_frame_in_this_stations_name_is_no_station_of_another_version() {
    for (from, found) in [(rig::ME, 0), (5, 1)] {
        let mut rig = Rig::plain();
        for _ in 0..60 {
            rig.run(ms(100));
            let mut frame = rig.frame(&rig.header(from, Kind::Announce), &[], &rig.segment_key);
            frame[14] = 0x21;
            rig.hear_raw(None, &frame);
            assert_eq!(rig.verdict, FrameVerdict::Malformed);
        }
        assert_eq!(rig.node.rether().mismatches(rig.now).count(), found, "{from}");
    }
}

/// A station may send frames of other protocols; only an unproven frame of ours is a sign of a stranger.
#[test]
fn a_frame_of_another_protocol_contests_no_address() {
    let mut rig = Rig::ring();
    for (low, contested) in [(0x00, vec![]), (0xb5, vec![mac(3)])] {
        let mut frame = vec![0xa5; 60];
        frame[..6].fill(0xff);
        frame[6..12].copy_from_slice(&mac(3).0);
        frame[12..14].copy_from_slice(&[if low == 0 { 0x08 } else { 0x88 }, low]);
        rig.hear_raw(None, &frame);
        assert_eq!(rig.verdict, FrameVerdict::Malformed);
        assert_eq!(rig.node.rether().contested().collect::<Vec<_>>(), contested);
    }
}
