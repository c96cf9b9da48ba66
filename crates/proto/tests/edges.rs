//! Values at the edge of what is allowed, and counts that must be exact.

use crate::lan::{self, Lan, SECOND};
use crate::rig::{ME, Rig, TRT, mac, ms};
use rota_admission::NrtPolicy;
use rota_contract::{NodeId, TrafficSpec};
use rota_proto::{ChannelId, Destination, Input, OpenRequest, Output, RequestError, Settings, UnitRef};
use rota_units::{BitRate, Octets, Span};
use rota_wire::{Kind, Phase, Token};

fn open(rig: &mut Rig, to: u16, octets: u32, room_octets: u32) -> Result<ChannelId, RequestError> {
    let to = Destination::Node(NodeId(to.into()));
    let traffic = TrafficSpec { room_octets, ..TrafficSpec::fixed(octets, TRT, true) };
    let request = OpenRequest { to, service: 5, traffic };
    let opened = rig.node.open(rig.now, &request);
    rig.drain();
    opened
}

#[test]
fn a_unit_has_one_to_five_million_octets_and_its_room_as_many() {
    const MOST: u32 = 5_000_000;
    for (octets, room) in [(1, 1), (MOST, MOST), (1, MOST)] {
        assert!(open(&mut Rig::plain(), 3, octets, room).is_ok(), "{octets} {room}");
    }
    for (octets, room) in [(0, 1), (MOST + 1, MOST + 1)] {
        assert_eq!(open(&mut Rig::plain(), 3, octets, room), Err(RequestError::UnitSize(octets)));
    }
    for (octets, room) in [(2, 1), (1, MOST + 1)] {
        assert_eq!(open(&mut Rig::plain(), 3, octets, room), Err(RequestError::Room { room, unit: octets }));
    }
}

#[test]
fn the_peer_of_each_channel_is_known() {
    let mut rig = Rig::plain();
    let channels = [1, 3].map(|to| (to, open(&mut rig, to, 100, 100).expect("a sound request")));
    for (to, channel) in channels {
        assert_eq!(rig.node.peer(channel), Some(NodeId(to.into())));
        assert_eq!(rig.node.hop(channel), Some(mac(to)));
    }
    let unknown = ChannelId(u64::MAX);
    assert_eq!((rig.node.peer(unknown), rig.node.hop(unknown)), (None, None));
}

/// Each frame without room in the queue counts once.
#[test]
fn each_frame_that_is_dropped_is_counted() {
    let mut rig = Rig::ring();
    let dropped = |rig: &Rig| rig.node.port().counters().host_frames_dropped;
    let offered = (0..10_000).take_while(|at| {
        rig.host_frame(*at, 1_514, 0);
        dropped(&rig) == 0
    });
    assert!(offered.count() < 10_000);
    for more in 2..5 {
        rig.host_frame(20_000 + more, 1_514, 0);
        assert_eq!(dropped(&rig), u64::from(more));
    }
    assert_eq!(rig.node.port().counters().host_dropped_switch, 0);
}

/// A lap of the idle token through all three stations tells how long its hops take; a shorter way tells
/// nothing.
#[test]
fn a_lap_of_the_idle_token_is_measured() {
    for (hops, wanted) in [(1, None), (2, Some((3, ms(4)))), (3, None)] {
        let mut rig = Rig::ring();
        let idle =
            Token { next_nrt: ME, idle_visits: 1, ..rig.token(Phase::NonRealTime, &[(1, 6_000, true)]) };
        rig.hear_token(1, 5, &idle);
        assert_eq!(rig.last(Kind::Token).to, mac(3));
        rig.run(ms(4));
        let lap = Token { idle_visits: 1, ..rig.last_token() };
        rig.clear();
        rig.hear_token(1, hops, &lap);
        let told = rig.outputs.iter().find_map(|(_, output)| match output {
            Output::Round { hops, span, .. } => Some((*hops, *span)),
            _ => None,
        });
        assert_eq!(told, wanted, "{hops}");
    }
}

/// A station in a ring of three, which lets one ordinary frame leave in a visit.
fn ring_of_one_frame() -> Rig {
    let mut settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
    settings.nrt_policy = Some(NrtPolicy::One);
    let mut rig = Rig::with(settings).into_plain();
    rig.switch(1, 1);
    rig.run(ms(50));
    rig.form(&[1, ME, 3]);
    rig.stamp = (1, 1, 1);
    rig
}

/// The token comes for an ordinary visit.
fn hear_ordinary(rig: &mut Rig) {
    let token = Token { next_nrt: ME, ..rig.token(Phase::NonRealTime, &[(1, 6_000, true)]) };
    rig.hear_token(1, 5, &token);
}

/// Small frames of signalling have the place of one full frame among them.
#[test]
fn two_signals_leave_in_one_visit_of_one_frame() {
    let mut rig = ring_of_one_frame();
    for to in [1, 3] {
        assert!(open(&mut rig, to, 100, 100).is_ok());
    }
    rig.clear();
    hear_ordinary(&mut rig);
    rig.run(ms(1));
    assert_eq!((rig.count(Kind::Signal), rig.count(Kind::Token)), (2, 1));
}

/// Frames of link control under the token count at their level.
#[test]
fn messages_under_the_token_count_at_their_level() {
    let mut lan = Lan::token(3);
    let before = lan.nodes[0].port().tally().levels;
    for level in [2, 5, 5] {
        lan.send(0, 2, 100, |request| request.level = level);
        lan.run(SECOND);
    }
    let after = lan.nodes[0].port().tally().levels;
    let counted: Vec<u64> = (0..8).map(|level| after[level].frames - before[level].frames).collect();
    assert_eq!(counted, [0, 0, 1, 0, 0, 2, 0, 0]);
}

/// Signals of one visit are charged together: as many leave as one full frame has time for.
#[test]
fn no_more_signals_leave_in_one_visit_than_take_one_frames_time() {
    let mut rig = ring_of_one_frame();
    (0..40).for_each(|_| assert!(open(&mut rig, 3, 100, 100).is_ok()));
    rig.clear();
    hear_ordinary(&mut rig);
    rig.run(ms(4));
    let link = rig.settings.link;
    let lengths = rig.outputs.iter().filter_map(|(_, output)| match output {
        Output::Transmit { len, .. } => Some(u64::from(*len)),
        _ => None,
    });
    let signals: Vec<Span> = rig
        .sent
        .iter()
        .zip(lengths)
        .filter(|(sent, _)| !matches!(sent.header.kind, Kind::Token | Kind::TokenAck))
        .map(|(_, len)| link.frame_cost(link.rate.span_of_up(link.framing.wire_octets(len - 14))))
        .collect();
    let took: Span = signals.iter().copied().sum();
    let most = link.frame_cost_max();
    assert!(rig.count(Kind::Token) == 1 && signals.len() > 2 && signals.len() < 40, "{}", signals.len());
    // Each is charged some octets more than it has.
    let two = signals[signals.len() - 1] * 2;
    assert!(took <= most && took + two > most, "{} signals take {took} of {most}", signals.len());
}

/// Two fragments of a holder of the key ended the node of the receiver: the frames of units between them,
/// each as long as its header can say, overflowed.
#[test]
fn units_of_any_length_and_number_end_no_receiver() {
    let mut lan = Lan::plain(3);
    lan.nodes[1].listen(7);
    let (to, traffic) = (Destination::Node(lan::node_id(1)), TrafficSpec::fixed(6_000, TRT, false));
    let request = OpenRequest { to, service: 7, traffic };
    let channel = lan.nodes[0].open(lan.now, &request).expect("room for one");
    lan.drain(0);
    lan.run(SECOND * 2);
    assert!(lan.opened);
    for (number, octets) in [(0, 1_000), (2_000, u32::MAX), (34_000, u32::MAX), (34_001, 1_000)] {
        let unit = UnitRef { number, octets, schedule_ns: 0, left_out: 0 };
        lan.nodes[0].handle(lan.now, Input::UnitReady { channel, unit });
        lan.drain(0);
        lan.run(ms(200));
    }
}
