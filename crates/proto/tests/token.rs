//! The token in hand, frame by frame (paper sections 2.2.3, 2.3 and 2.4).

use crate::rig::{ME, Rig, TRT, mac, ms, set_of};
use rota_admission::NrtPolicy;
use rota_proto::{ChannelEvent, FrameVerdict, Output, Settings};
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::bodies::StationState;
use rota_wire::{Kind, Phase, Token, UNIT_HEADER_OCTETS, UnitHeader};

const SLOT: (u16, u32, bool) = (1, 6_000, true);

fn policed(policy: NrtPolicy, rate: BitRate) -> Rig {
    let mut settings = Settings::ethernet(rate, Octets::new(150_000));
    settings.nrt_policy = Some(policy);
    let mut rig = Rig::with(settings).into_plain();
    rig.switch(1, 1);
    rig.run(ms(50));
    rig.form(&[1, ME, 3]);
    rig.stamp = (1, 1, 1);
    rig.clear();
    rig
}

fn nrt_token(rig: &Rig) -> Token {
    Token { next_nrt: ME, ..rig.token(Phase::NonRealTime, &[SLOT]) }
}

// ---- believing a token --------------------------------------------------------------------------------

#[test]
fn a_stale_or_doubled_token_is_acknowledged_and_changes_nothing() {
    let mut rig = Rig::ring();
    let token = nrt_token(&rig);
    rig.hear_token(1, 5, &token);
    rig.run(ms(1));
    assert_eq!(rig.state(), "ring", "nothing to send: passed on");
    rig.clear();
    let stamp = rig.stamp;
    for seq in [stamp.2 - 1, stamp.2] {
        let mut body = [0; 100];
        let length = token.emit(&mut body);
        rig.hear_ring(1, Kind::Token, (stamp.0, stamp.1, seq), &body[..length]);
        let ack = rig.last(Kind::TokenAck);
        // The one that is repeated was perhaps missed where a switch thinks that its sender is.
        assert_eq!((ack.header.seq, ack.to), (seq, if seq == stamp.2 { mac(1).own_group() } else { ack.to }));
        assert_eq!((rig.state(), rig.count(Kind::Token)), ("ring", 0));
    }
    assert_eq!(rig.node.rether().counters().tokens_stale, 2);
}

/// The log and the simulator read the verdict; they compared counters before and after.
#[test]
fn each_frame_has_its_verdict() {
    let mut rig = Rig::ring();
    let token = nrt_token(&rig);
    let mut body = [0; 100];
    let length = token.emit(&mut body);
    rig.hear_token(1, 5, &token);
    assert_eq!(rig.verdict, FrameVerdict::Accepted);
    rig.run(ms(1));
    let stamp = rig.stamp;
    rig.hear_ring(1, Kind::Token, stamp, &body[..length]);
    assert_eq!(rig.verdict, FrameVerdict::Stale);
    rig.hear_ring(1, Kind::Token, (stamp.0 + 2_000_000, 1, 1), &body[..length]);
    assert_eq!(rig.verdict, FrameVerdict::Jump);
    let newer = rig.ring_frame(1, Kind::Token, (stamp.0, stamp.1, stamp.2 + 1), &body[..length]);
    rig.hear_raw(None, &newer);
    assert_eq!(rig.verdict, FrameVerdict::Expired);
    let unit = UnitHeader { label: 9, last: true, unit_octets: 1, ..UnitHeader::default() };
    let mut data = [0; UNIT_HEADER_OCTETS + 1];
    unit.emit(&mut data);
    rig.hear_ring(1, Kind::Data, stamp, &data);
    assert_eq!(rig.verdict, FrameVerdict::UnknownChannel);
    rig.hear_ring(1, Kind::Data, (stamp.0 - 1, stamp.1, 9), &data);
    assert_eq!(rig.verdict, FrameVerdict::Policed);
    let unheard = rig.ring_frame(9, Kind::Data, stamp, &data);
    rig.hear_raw(Some(rig.now), &unheard);
    assert_eq!(rig.verdict, FrameVerdict::Replayed, "of no member");
    let mut altered = newer.clone();
    altered[50] ^= 1;
    rig.hear_raw(Some(rig.now), &altered);
    assert_eq!(rig.verdict, FrameVerdict::Unproven);
    rig.hear_raw(Some(rig.now), &newer[..30]);
    assert_eq!(rig.verdict, FrameVerdict::Malformed);
    rig.announce(3, StationState::Ring);
    assert_eq!(rig.verdict, FrameVerdict::Taken);
    rig.settings.segment += 1;
    rig.announce(3, StationState::Ring);
    assert_eq!(rig.verdict, FrameVerdict::OtherSegment);
    let counters = rig.node.rether().counters();
    let judged = [counters.tokens_stale, counters.jumps_refused, counters.fragments_unknown];
    assert_eq!(judged, [1; 3], "each is counted once, by its verdict");
}

/// Any station on the wire can replay an old token: each was answered, as fast as it came.
#[test]
fn replayed_tokens_are_answered_within_a_budget() {
    let mut rig = Rig::ring();
    let token = nrt_token(&rig);
    rig.hear_token(1, 5, &token);
    rig.run(ms(1));
    rig.clear();
    let (stamp, mut body) = (rig.stamp, [0; 100]);
    let length = token.emit(&mut body);
    for _ in 0..2_000 {
        rig.hear_ring(1, Kind::Token, stamp, &body[..length]);
    }
    let answers = rig.count(Kind::TokenAck);
    assert!((10..=60).contains(&answers), "{answers} answers to 2,000 in one moment");
}

#[test]
fn the_lease_runs_from_the_kernels_stamp_and_without_one_there_is_none() {
    let mut rig = Rig::ring();
    let token = nrt_token(&rig);
    let mut body = [0; 100];
    let length = token.emit(&mut body);
    let old = Instant::from_nanos(rig.now.as_nanos() - rig.settings.lease.as_nanos());
    for at in [None, Some(old)] {
        let frame = rig.ring_frame(1, Kind::Token, (1, 1, 9), &body[..length]);
        rig.hear_raw(at, &frame);
        assert_eq!(rig.state(), "ring");
    }
    assert_eq!(rig.node.rether().counters().tokens_expired, 2);
    let young = Instant::from_nanos(rig.now.as_nanos() - 3_000_000);
    rig.host_frame(1, 1_514, 0);
    let frame = rig.ring_frame(1, Kind::Token, (1, 1, 9), &body[..length]);
    rig.hear_raw(Some(young), &frame);
    assert!(rig.node.rether().holds_token(rig.now));
    assert!(
        !rig.node.rether().holds_token(young + rig.settings.lease + Span::from_nanos(1)),
        "250 ms from the stamp"
    );
}

#[test]
fn a_token_no_key_proves_is_counted_and_ignored() {
    let mut rig = Rig::ring();
    let token = nrt_token(&rig);
    let mut body = [0; 100];
    let length = token.emit(&mut body);
    let mut frame = rig.ring_frame(1, Kind::Token, (1, 1, 9), &body[..length]);
    frame[50] ^= 1;
    rig.hear_raw(Some(rig.now), &frame);
    let mut frame = rig.ring_frame(1, Kind::Token, (1, 1, 9), &body[..length]);
    frame[16] = 77;
    rig.hear_raw(Some(rig.now), &frame);
    assert_eq!((rig.state(), rig.node.rether().counters().frames_unproven), ("ring", 2));
}

#[test]
fn a_frame_of_another_boot_or_a_stranger_is_dropped() {
    let mut rig = Rig::ring();
    let token = nrt_token(&rig);
    let mut body = [0; 100];
    let length = token.emit(&mut body);
    // The rig's stations have incarnation 0x100 + number: number 9 is nobody, and 1 has booted again.
    rig.hear_ring(9, Kind::Token, (1, 1, 9), &body[..length]);
    assert_eq!((rig.state(), rig.node.rether().counters().frames_replayed), ("ring", 1));
}

#[test]
fn a_token_of_another_mode_is_no_token() {
    let mut rig = Rig::ring();
    let token = Token { mode_epoch: rig.mode_epoch - 1, ..nrt_token(&rig) };
    rig.hear_token(1, 5, &token);
    assert_eq!(rig.state(), "ring");
}

#[test]
fn a_newer_list_takes_an_old_token_out_of_the_hand() {
    let (mut rig, _) = Rig::master(6_250, true);
    rig.rest();
    assert_eq!(rig.state(), "holding");
    let list = rig.token(Phase::RealTime, &[(3, 6_000, true)]);
    let mut body = [0; 100];
    let length = list.emit(&mut body);
    let stamp = (rig.stamp.0, rig.stamp.1, rig.stamp.2 + 20);
    rig.hear_ring(3, Kind::List, stamp, &body[..length]);
    assert_eq!(rig.state(), "ring");
}

/// A rest is a hold of its own: a lease and a cycle from the kernel's stamp of the token that rests, however
/// late this station read it.
#[test]
fn the_lease_of_a_rest_runs_from_the_stamp_of_the_token_that_rests() {
    let (mut rig, _) = Rig::master(6_250, true);
    rig.run(ms(20));
    let slots = rig.node.rether().list().expect("a ring has a list").slots;
    let mut token = rig.last_token();
    (token.slots, token.phase, token.rested) = (slots, Phase::Home, true);
    let mut body = [0; 100];
    let length = token.emit(&mut body);
    rig.stamp.2 += 1;
    let frame = rig.ring_frame(1, Kind::Token, rig.stamp, &body[..length]);
    let came = rig.now.minus(ms(7));
    rig.hear_raw(Some(came), &frame);
    assert_eq!((rig.state(), rig.node.rether().counters().rests), ("holding", 1));
    let end = came + rig.settings.lease + TRT;
    let holds = |at: Instant| rig.node.rether().holds_token(at);
    assert!(holds(end) && !holds(end + Span::from_nanos(1)));
}

// ---- the way home -------------------------------------------------------------------------------------

/// The token goes on only where the hop to the next station and that station's hop home fit the cycle.
#[test]
fn a_round_goes_on_while_two_hops_fit() {
    let hop = Rig::ring().settings.link.hop;
    for (left, to) in [(hop * 2, 3), ((hop * 2).minus(Span::from_nanos(1)), 1), (hop, 1)] {
        let mut rig = Rig::ring();
        let token = Token { residual_ns: left.as_nanos() as u32, ..nrt_token(&rig) };
        rig.hear_token(1, 5, &token);
        let phase = if to == 1 { Phase::Home } else { Phase::NonRealTime };
        assert_eq!((rig.last(Kind::Token).to, rig.last_token().phase), (mac(to), phase), "{left}");
    }
}

// ---- the successor ------------------------------------------------------------------------------------

#[test]
fn a_silent_successor_is_sent_the_same_token_again_and_only_then_claimed_about() {
    let mut rig = Rig::ring();
    let token = nrt_token(&rig);
    rig.hear_token(1, 5, &token);
    rig.run(ms(480));
    let tokens: Vec<_> = rig.sent.iter().filter(|sent| sent.header.kind == Kind::Token).collect();
    assert!(tokens.len() > 3, "sent again {} times", tokens.len());
    assert!(tokens.iter().all(|sent| sent.header == tokens[0].header && sent.body == tokens[0].body));
    assert_eq!(rig.count(Kind::Claim), 0);
    rig.run(ms(50));
    assert!(rig.count(Kind::Claim) > 0 && rig.state() == "claiming");
}

#[test]
fn an_acknowledged_token_is_not_sent_again() {
    let mut rig = Rig::ring();
    let token = nrt_token(&rig);
    rig.hear_token(1, 5, &token);
    rig.run(ms(1));
    let stamp = rig.stamp;
    rig.hear_ring(3, Kind::TokenAck, stamp, &[]);
    rig.run(ms(400));
    assert_eq!(rig.count(Kind::Token), 1);
}

#[test]
fn whoever_holds_on_acknowledges_in_time_for_the_watch_behind_it() {
    let mut rig = Rig::ring();
    rig.host_frame(1, 1_514, 0);
    let token = nrt_token(&rig);
    rig.hear_token(1, 5, &token);
    let heard = rig.now;
    rig.run(ms(4));
    let ack = rig.last(Kind::TokenAck);
    assert!(ack.at.since(heard) < rig.settings.hop_timeout, "{}", ack.at.since(heard));
}

/// Seed 2056396 of the product's timers: at 10 Mbit/s it waited behind two frames of 1.2 ms in the card. The
/// token was sent again, and units to that address left at all ports for five seconds more, again and again.
#[test]
fn the_promised_acknowledgement_waits_behind_no_frame_that_makes_it_late() {
    let mut rig = policed(NrtPolicy::AsManyAsFit, BitRate::from_mbit(10));
    (0..4).for_each(|tag| rig.host_frame(tag, 1_514, 0));
    let token = nrt_token(&rig);
    rig.hear_token(1, 5, &token);
    rig.run(ms(8));
    let left = rig.outputs.iter().filter_map(|(_, output)| match output {
        Output::TransmitHost { .. } => Some("ordinary"),
        Output::Transmit { .. } => Some("ours"),
        _ => None,
    });
    let left: Vec<&str> = left.collect();
    assert_eq!(left[..3], ["ordinary", "ours", "ordinary"], "{left:?}");
    assert_eq!(rig.sent[0].header.kind, Kind::TokenAck);
}

/// As the test before this one, of the frames of a unit.
#[test]
fn the_promised_acknowledgement_waits_behind_no_fragment_that_makes_it_late() {
    let settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
    let (mut rig, channel) = Rig::with(settings).into_plain().into_master(6_250, true);
    // Another station is first now; this one's slot is open already.
    let own = rig.last_token().slots.as_slice()[0];
    let token = rig.token(Phase::RealTime, &[(1, 1, true), (ME, own.tht_ns / 1_000, true)]);
    let token = Token { position: 1, residual_ns: TRT.as_nanos() as u32 - 1_000, cycle: 90, ..token };
    rig.run(ms(50));
    rig.unit(channel, 0, 6_250);
    rig.clear();
    rig.hear_token(1, 40, &token);
    rig.run(ms(20));
    let kinds: Vec<Kind> = rig.sent.iter().map(|sent| sent.header.kind).collect();
    let ack = kinds.iter().position(|kind| *kind == Kind::TokenAck).expect("it was promised");
    let before = kinds[..ack].iter().filter(|kind| **kind == Kind::Data).count();
    let frame = rig.settings.link.frame_span_max();
    let by = rig.settings.hop_timeout.div_down(4);
    assert!(frame * before as u64 <= by, "{kinds:?} {by} {frame}");
}

// ---- ordinary traffic ---------------------------------------------------------------------------------

#[test]
fn a_frame_that_does_not_fit_with_the_way_home_is_not_sent_and_its_station_is_next() {
    let mut rig = Rig::ring();
    rig.host_frame(1, 1_514, 0);
    let frame = rig.settings.link.frame_span_max();
    let hop = rig.settings.link.hop;
    // One microsecond less than the frame and the hop home need (REPAIR-A1).
    let residual = frame.as_nanos() + hop.as_nanos() - 1_000;
    let token = Token { residual_ns: residual as u32, ..nrt_token(&rig) };
    rig.hear_token(1, 5, &token);
    rig.run(ms(1));
    assert_eq!(rig.host_frames(), [0u32; 0]);
    let passed = rig.last_token();
    assert_eq!((passed.next_nrt, passed.phase, rig.last(Kind::Token).to), (ME, Phase::Home, mac(1)));
    assert_eq!(rig.node.rether().counters().nrt_refusals, 1);
    // With the whole need left it is sent.
    let token = Token { cycle: 6, residual_ns: residual as u32 + 2_000, ..nrt_token(&rig) };
    rig.hear_token(1, 5, &token);
    rig.run(ms(1));
    assert_eq!(rig.host_frames(), [1]);
}

#[test]
fn the_eight_levels_leave_in_order() {
    let mut rig = policed(NrtPolicy::AsManyAsFit, BitRate::from_mbit(100));
    for (tag, level) in [(10, 0), (17, 7), (13, 3), (11, 1), (16, 6), (12, 2), (15, 5), (14, 4), (27, 7)] {
        rig.host_frame(tag, 300, level);
    }
    let token = nrt_token(&rig);
    rig.hear_token(1, 5, &token);
    rig.run(ms(10));
    assert_eq!(rig.host_frames(), [17, 27, 16, 15, 14, 13, 12, 11, 10]);
}

#[test]
fn the_three_policies_send_one_at_most_q_and_as_many_as_fit() {
    for (policy, expected) in [(NrtPolicy::One, 1), (NrtPolicy::AtMost(3), 3), (NrtPolicy::AsManyAsFit, 20)] {
        let mut rig = policed(policy, BitRate::from_mbit(100));
        (0..20).for_each(|tag| rig.host_frame(tag, 1_514, 0));
        let token = nrt_token(&rig);
        rig.hear_token(1, 5, &token);
        rig.run(ms(10));
        assert_eq!(rig.host_frames().len(), expected, "{policy:?}");
        let passed = rig.last_token();
        let to = rig.sent.iter().find(|sent| sent.header.kind == Kind::Token).map(|sent| sent.to);
        assert_eq!((passed.next_nrt, to), (3, Some(mac(3))), "the round goes on behind it");
    }
}

#[test]
fn as_many_as_fit_stop_when_the_cycle_is_full() {
    let mut rig = policed(NrtPolicy::AsManyAsFit, BitRate::from_mbit(10));
    (0..30).for_each(|tag| rig.host_frame(tag, 1_514, 0));
    let token = Token { residual_ns: 10_000_000, ..nrt_token(&rig) };
    rig.hear_token(1, 5, &token);
    let heard = rig.now;
    rig.run(ms(20));
    let sent = rig.host_frames().len();
    assert!((4..=8).contains(&sent), "{sent} frames of 1.23 ms in 10 ms");
    let home = rig.sent.iter().find(|sent| sent.header.kind == Kind::Token).expect("passed on");
    assert!(home.at.since(heard) <= ms(10), "home before the cycle's end: {}", home.at.since(heard));
}

#[test]
fn an_idle_ring_rests_and_a_request_wakes_it_in_two_hops() {
    let (mut rig, _) = Rig::master(6_250, true);
    rig.rest();
    rig.run(ms(3));
    assert_eq!((rig.state(), rig.node.rether().counters().rests), ("holding", 1));
    rig.clear();
    let stamp = rig.stamp;
    rig.hear_ring(3, Kind::Request, stamp, &[]);
    rig.run(Span::from_micros(100));
    // Request and token: two hops, and the asking station has it.
    assert_eq!((rig.last(Kind::Token).to, rig.last_token().phase), (mac(3), Phase::NonRealTime));
}

#[test]
fn a_station_with_data_asks_a_drowsy_ring_once() {
    let mut rig = Rig::ring();
    let list = Token { rested: true, ..rig.token(Phase::RealTime, &[SLOT]) };
    let mut body = [0; 100];
    let length = list.emit(&mut body);
    rig.hear_ring(1, Kind::List, (1, 1, 20), &body[..length]);
    rig.host_frame(1, 200, 0);
    rig.host_frame(2, 200, 0);
    assert_eq!((rig.count(Kind::Request), rig.last(Kind::Request).to), (1, mac(1)));
}

// ---- membership ---------------------------------------------------------------------------------------

#[test]
fn slots_of_the_dead_are_freed_and_the_owner_learns_that_it_was_declared_dead() {
    let (mut rig, channel) = Rig::master(6_250, true);
    let token = rig.token(Phase::NonRealTime, &[(1, 6_000, true)]);
    let token = Token { dead: set_of(ME), ..token };
    rig.hear_token(1, 9, &token);
    rig.run(ms(1));
    let cause = rig.events.iter().find_map(|event| match event {
        ChannelEvent::Closed { channel: id, cause, .. } if *id == channel => Some(*cause),
        _ => None,
    });
    // The loss is signalled to the receiver first; the program learns of it when that is answered.
    assert!(cause.is_some() || rig.count(Kind::Signal) > 0 || rig.node.port().queued_frames() > 0);
    assert!(rig.count(Kind::Announce) > 0, "being heard clears the mark");
}

#[test]
fn a_station_that_others_declared_dead_is_gone_here_too() {
    let mut rig = Rig::ring();
    let gone = |rig: &Rig| rig.events.iter().filter(|e| matches!(e, ChannelEvent::MembersChanged)).count();
    let before = gone(&rig);
    let token = Token { dead: set_of(3), ..rig.token(Phase::NonRealTime, &[SLOT]) };
    rig.hear_token(1, 5, &token);
    rig.run(ms(1));
    assert_eq!(gone(&rig), before + 1, "whoever claimed has declared it dead; its channels end here too");
    rig.hear_token(1, 50, &token);
    rig.run(ms(1));
    assert_eq!(gone(&rig), before + 1, "and only once");
}

#[test]
fn the_cycle_master_lets_a_joiner_in_under_a_new_key() {
    let (mut rig, _) = Rig::master(6_250, true);
    rig.rest();
    rig.clear();
    rig.announce(7, StationState::Joining);
    rig.run(ms(40));
    assert_eq!((rig.count(Kind::Form), rig.count(Kind::JoinAnswer)), (0, 1), "it has to prove that it lives");
    rig.announce(7, StationState::Joining);
    rig.run(ms(40));
    assert!(rig.count(Kind::Form) >= 2);
    let form = rota_wire::Form::parse(&rig.last(Kind::Form).body).expect("sound");
    let named: Vec<u16> = form.members().iter().map(|member| member.station).collect();
    assert_eq!((named, form.key_epoch), (vec![1, 2, 3, 4], 2));
}

/// Seed 274529 of the product's timers: a member that had missed the newest key sent its old Form with its
/// token, and threw out whoever had been let in under the new one.
#[test]
fn who_has_missed_the_newest_key_is_given_it_and_throws_nobody_out() {
    let (mut rig, _) = Rig::master(6_250, true);
    rig.rest();
    rig.announce(7, StationState::Joining);
    rig.run(ms(40));
    rig.announce(7, StationState::Joining);
    rig.run(ms(40));
    let form = rota_wire::Form::parse(&rig.last(Kind::Form).body).expect("sound");
    rig.mode_epoch = form.mode_epoch;
    assert_eq!(form.key_epoch, 2);
    rig.clear();
    rig.form(&[1, 3]);
    assert!(rig.in_ring(), "{}", rig.state());
    let again = rota_wire::Form::parse(&rig.last(Kind::Form).body).expect("sound");
    assert_eq!((again.key_epoch, again.members().len()), (2, form.members().len()));
}

/// Seed 235113 of the product's timers: in one visit somebody was let in and the last reservation closed. The
/// ring ended under a key that its other stations had not been given yet, so none of them heard of it.
#[test]
fn a_ring_that_ends_lets_nobody_in() {
    let (mut rig, channel) = Rig::master(6_250, true);
    assert_eq!(rig.state(), "ring", "the token is away");
    rig.announce(7, StationState::Joining);
    rig.announce(7, StationState::Joining);
    rig.node.close(rig.now, channel);
    let formed = rig.count(Kind::Form);
    rig.rest();
    rig.run(ms(1));
    assert_eq!((rig.state(), rig.count(Kind::Form)), ("plain", formed));
    let told = rig.sent.iter().find(|sent| sent.header.kind == Kind::Mode).expect("the ring has ended");
    assert_eq!(told.header.key_epoch, 1, "under the key that all have");
}

#[test]
fn an_idle_station_passes_the_round_on_to_the_next() {
    let mut rig = Rig::ring();
    let token = Token { next_nrt: 3, ..rig.token(Phase::NonRealTime, &[SLOT]) };
    rig.hear_token(1, 5, &token);
    rig.run(ms(1));
    assert_eq!((rig.last(Kind::Token).to, rig.last_token().next_nrt), (mac(3), 3));
}

#[test]
fn a_sequence_at_its_end_goes_on_in_a_new_generation() {
    let mut rig = Rig::ring();
    let token = nrt_token(&rig);
    rig.stamp.2 = (1 << 48) - (1 << 20) - 3;
    rig.hear_token(1, 1, &token);
    rig.run(ms(1));
    assert_eq!(rig.last(Kind::Token).header.generation.counter, 1);
    let token = Token { next_nrt: ME, ..rig.last_token() };
    rig.hear_token(1, 1, &token);
    rig.run(ms(1));
    let header = rig.last(Kind::Token).header;
    assert_eq!((header.generation.counter, header.generation.station, header.seq), (2, ME, 2));
}

// ---- contested addresses (decision 014) ---------------------------------------------------------------

/// A frame without any key moved the switch's entry for an address, and every repeated token went the same
/// wrong way.
#[test]
fn a_token_that_is_sent_again_goes_to_the_group_address_of_its_station() {
    let (mut rig, _) = Rig::master(1_000, true);
    let mut rounds = 0;
    while rig.count(Kind::Token) == 0 || rig.last(Kind::Token).to == mac(3).own_group() {
        rig.run(ms(1));
        rounds += 1;
        assert!(rounds < 2_000, "no token leaves");
    }
    let to = rig.last(Kind::Token).to;
    rig.clear();
    rig.run(rig.settings.hop_timeout + ms(1));
    assert_eq!(rig.last(Kind::Token).to, to.own_group());
    assert!(!rig.node.rether().is_contested(to), "a station that is slow uses nobody's address");
}

#[test]
fn while_a_stranger_uses_an_address_its_station_is_reached_elsewhere_and_nothing_else_changes() {
    let (mut rig, channel) = Rig::master(1_000, true);
    let mut forged = vec![0xa5; 60];
    forged[..6].fill(0xff);
    forged[6..12].copy_from_slice(&mac(3).0);
    forged[12..14].copy_from_slice(&[0x88, 0xb5]);
    let before = (rig.node.rether().newest(), rig.state());
    rig.hear_raw(Some(rig.now), &forged);
    assert_eq!(rig.node.rether().contested().collect::<Vec<_>>(), [mac(3)]);
    assert_eq!((rig.node.rether().newest(), rig.state()), before);
    rig.unit(channel, 0, 1_000);
    rig.rest();
    rig.run(TRT + ms(1));
    let data = rig.last(Kind::Data);
    assert_eq!(data.to, mac(3).own_group());
    rig.run(ms(6_000));
    assert_eq!(rig.node.rether().contested().count(), 0, "five seconds of quiet");
}

#[test]
fn a_frame_for_another_stations_group_address_is_not_for_this_one() {
    let mut rig = Rig::ring();
    let token = nrt_token(&rig);
    let mut body = [0; 100];
    let length = token.emit(&mut body);
    let mut frame = rig.ring_frame(1, Kind::Token, (1, 1, 5), &body[..length]);
    frame[..6].copy_from_slice(&mac(3).own_group().0);
    rig.hear_raw(Some(rig.now), &frame);
    assert_eq!((rig.node.rether().counters().tokens_accepted, rig.state()), (0, "ring"));
    assert_eq!(rig.node.rether().counters().frames_unproven, 0, "it is not even looked at");
}
