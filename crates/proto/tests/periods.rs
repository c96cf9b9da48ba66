//! Sessions whose period is not the cycle's, and sessions that change while they live.

use crate::rig::{self, ME, Rig, TRT, ms};
use rota_contract::NodeId;
use rota_contract::{Granted, TrafficSpec};
use rota_proto::{ChannelEvent, ChannelId, Destination, OpenRequest, RequestError};
use rota_units::Span;
use rota_wire::{Kind, Phase, Signal, Slot, UnitHeader, Verb};

/// Unit and fragment of each data frame since the rig was cleared.
fn fragments(rig: &Rig) -> Vec<(u16, u16)> {
    let data = rig.sent.iter().filter(|sent| sent.header.kind == Kind::Data);
    let headers = data.map(|sent| UnitHeader::parse(&sent.body).expect("sound").0);
    headers.map(|header| (header.number, header.fragment)).collect()
}

fn master(period: Span, octets: u32) -> (Rig, ChannelId) {
    let (mut rig, channel) = Rig::plain().into_master_every(period, octets, true);
    // Well inside a cycle: what follows runs across whole ones.
    rig.run(ms(8));
    quiet(&mut rig, channel);
    rig.clear();
    (rig, channel)
}

/// The word that the channel is open has gone out and is answered; the token rests.
fn quiet(rig: &mut Rig, channel: ChannelId) {
    rig.run(ms(1));
    rig.rest();
    rig.signal(3, Verb::OpenedAck, channel);
    rig.run(ms(1));
    rig.rest();
}

fn slots(rig: &Rig) -> Vec<(u16, u64)> {
    let list = rig.node.rether().list().expect("a ring has a list");
    list.slots.as_slice().iter().map(|slot| (slot.station, u64::from(slot.tht_ns))).collect()
}

fn changed(rig: &Rig, channel: ChannelId) -> Option<Granted> {
    rig.events.iter().rev().find_map(|event| match event {
        ChannelEvent::Changed { channel: id, granted } if *id == channel => Some(*granted),
        _ => None,
    })
}

#[test]
fn a_unit_each_three_cycles_leaves_a_third_in_each() {
    let (mut rig, channel) = master(TRT * 3, 8_000);
    let granted = *rig.node.granted(channel).expect("it is open");
    assert_eq!((granted.period(), granted.cycle(), granted.contract.buffers), (TRT * 3, TRT, 2));
    assert!(granted.bound() > TRT * 3 && granted.bound() < TRT * 3 + ms(10), "{granted:?}");
    rig.unit(channel, 0, 8_000);
    for sent in [2, 4, 6] {
        rig.run(TRT);
        assert_eq!(fragments(&rig).len(), sent, "{:?}", fragments(&rig));
    }
    // The next unit waits for a slot of its own even when the one before leaves room.
    rig.clear();
    rig.unit(channel, 1, 1_500);
    rig.unit(channel, 2, 8_000);
    rig.run(TRT);
    assert_eq!(fragments(&rig), [(1, 0), (1, 1)]);
}

#[test]
fn two_units_each_cycle_leave_in_one_slot() {
    let (mut rig, channel) = master(Span::from_nanos(16_666_666), 2_000);
    let granted = *rig.node.granted(channel).expect("it is open");
    assert_eq!((granted.period().as_nanos(), granted.contract.buffers), (16_666_667, 4));
    (0..3).for_each(|unit| rig.unit(channel, unit, 2_000));
    rig.run(TRT);
    assert_eq!(fragments(&rig), [(0, 0), (0, 1), (1, 0), (1, 1)]);
    rig.run(TRT);
    assert_eq!(fragments(&rig).len(), 6);
    assert_eq!(rig.count(Kind::Token), 0, "no hop between them");
}

/// A report had the octets of the unit that was offered last, and none for those behind it.
#[test]
fn each_unit_of_a_slot_counts_its_own_octets() {
    let (mut rig, channel) = master(Span::from_nanos(16_666_666), 3_000);
    let before = rig.node.own_channels().next().expect("it sends").octets;
    rig.unit(channel, 0, 1_000);
    rig.unit(channel, 1, 3_000);
    rig.run(TRT * 2);
    let said = rig.node.own_channels().next().expect("it sends");
    assert_eq!((said.octets - before, said.fragments), (4_000, 4));
}

#[test]
fn a_period_between_whole_ones_is_served_by_more_slots() {
    let (mut rig, channel) = master(ms(40), 2_000);
    let granted = *rig.node.granted(channel).expect("it is open");
    assert_eq!((granted.period(), granted.cycle(), granted.contract.buffers), (ms(40), TRT, 2));
    assert!(granted.bound() > TRT && granted.bound() < TRT + ms(10), "as with one each cycle: {granted:?}");
    rig.unit(channel, 0, 2_000);
    rig.run(TRT);
    assert_eq!(fragments(&rig), [(0, 0), (0, 1)]);
    // 50 a second: two in each cycle of 33 ms.
    let (mut rig, channel) = master(ms(20), 2_000);
    let granted = *rig.node.granted(channel).expect("it is open");
    assert_eq!((granted.period(), granted.contract.buffers), (ms(20), 4));
    (0..3).for_each(|unit| rig.unit(channel, unit, 2_000));
    rig.run(TRT);
    assert_eq!(fragments(&rig), [(0, 0), (0, 1), (1, 0), (1, 1)]);
}

#[test]
fn a_period_out_of_range_is_refused_with_the_end_of_the_range() {
    let mut rig = Rig::plain();
    let mut refused = |period| {
        let request = OpenRequest {
            to: Destination::Node(NodeId(3)),
            service: 5,
            traffic: TrafficSpec::fixed(100, period, true),
        };
        rig.node.open(rig.now, &request).unwrap_err()
    };
    let (long, nearest) = (TRT * 1_000, TRT * 64);
    assert_eq!(refused(long), RequestError::Period { asked: long, trt: TRT, nearest });
    let sentence = "a period of 33333333000 ns is too long for the segment's cycle of 33333333 ns; \
                    the longest is 2133333312 ns";
    assert_eq!(refused(long).to_string(), sentence);
    assert!(refused(ms(1)).to_string().ends_with(
        "too short for the segment's cycle of 33333333 ns; \
                                                  the shortest is 1041667 ns"
    ));
}

#[test]
fn the_last_slot_of_the_list_grows_where_it_stands() {
    let (mut rig, channel) = master(TRT, 3_000);
    let (before, old) = (slots(&rig), *rig.node.granted(channel).expect("open"));
    assert_eq!(rig.node.resize(rig.now, channel, 9_000), Ok(()));
    rig.run(TRT);
    let after = slots(&rig);
    assert!(after.len() == 1 && after[0].1 > before[0].1, "{before:?} {after:?}");
    let new = changed(&rig, channel).expect("the program is told");
    assert_eq!((new.contract.unit_octets_max, new.tht().as_nanos()), (9_000, after[0].1));
    assert!(new.bound() > old.bound() && rig.node.granted(channel) == Some(&new));
    quiet(&mut rig, channel);
    rig.clear();
    rig.unit(channel, 0, 9_000);
    rig.run(TRT);
    assert_eq!(fragments(&rig).len(), 7, "all in one slot");
}

/// The master's ring with a slot of another station behind its own, in front of a new cycle.
fn followed(octets: u32, other: Span) -> (Rig, ChannelId) {
    let (mut rig, channel) = Rig::master(octets, true);
    let mut own = rig.node.rether().list().expect("a ring").slots;
    rig.run(ms(8));
    assert!(own.push(Slot { station: 3, tht_ns: other.as_nanos() as u32, periodic: true, partition: 0 }));
    rig.pass_back(1, 1, |token| {
        (token.slots, token.phase, token.rested) = (own, Phase::Home, true);
    });
    quiet(&mut rig, channel);
    rig.clear();
    (rig, channel)
}

/// One cycle: the other station has its slot, passes the token on, and it comes home.
fn cycle(rig: &mut Rig) {
    rig.run(TRT);
    let behind = rig.last_token().slots.as_slice().len() == 3;
    if behind {
        rig.pass_back(3, 1, |token| (token.position, token.phase) = (2, Phase::RealTime));
        rig.run(ms(12));
    }
    if rig.state() != "holding" {
        rig.pass_back(1, 1, |token| {
            (token.position, token.phase, token.rested) =
                (token.slots.as_slice().len() as u16, Phase::Home, true);
        });
    }
}

#[test]
fn a_slot_with_others_behind_it_gets_a_second_one_at_the_end() {
    let (mut rig, channel) = followed(6_250, ms(4));
    let before = slots(&rig);
    rig.unit(channel, 0, 6_250);
    assert_eq!(rig.node.resize(rig.now, channel, 9_000), Ok(()));
    cycle(&mut rig);
    let after = slots(&rig);
    let stations: Vec<u16> = after.iter().map(|slot| slot.0).collect();
    assert_eq!(stations, [ME, 3, ME], "{after:?}");
    assert!(after[0].1 < before[0].1, "the first keeps whole fragments");
    assert_eq!(after[1], before[1]);
    assert_eq!(fragments(&rig).len(), 5, "the unit that waited left in this cycle: {:?}", fragments(&rig));
    assert_eq!(changed(&rig, channel).expect("told").contract.unit_octets_max, 9_000);
    rig.clear();
    rig.unit(channel, 1, 9_000);
    cycle(&mut rig);
    assert_eq!(fragments(&rig), (0..7).map(|fragment| (1, fragment)).collect::<Vec<_>>());
    // Less again: the second slot goes.
    rig.signal(3, Verb::OpenedAck, channel);
    assert_eq!(rig.node.resize(rig.now, channel, 5_000), Ok(()));
    cycle(&mut rig);
    assert_eq!(slots(&rig).len(), 2);
}

#[test]
fn a_slot_of_less_than_a_fragment_stands_until_its_successor_has_had_its_turn() {
    let (mut rig, channel) = followed(500, ms(4));
    assert_eq!(rig.node.resize(rig.now, channel, 1_000), Ok(()));
    rig.run(TRT);
    assert_eq!(slots(&rig).len(), 3, "both stand");
    rig.pass_back(3, 1, |token| (token.position, token.phase) = (2, Phase::RealTime));
    rig.run(ms(12));
    rig.pass_back(1, 1, |token| (token.phase, token.rested) = (Phase::Home, true));
    rig.run(TRT);
    let stations: Vec<u16> = slots(&rig).iter().map(|slot| slot.0).collect();
    assert_eq!(stations, [3, ME], "the old one is closed, the other station is earlier");
}

#[test]
fn a_refusal_to_grow_leaves_the_contract_as_it_is() {
    let (mut rig, channel) = followed(6_250, ms(12));
    let (before, old) = (slots(&rig), *rig.node.granted(channel).expect("open"));
    assert_eq!(rig.node.resize(rig.now, channel, 25_000), Ok(()));
    cycle(&mut rig);
    let refusal = rig.events.iter().find_map(|event| match event {
        ChannelEvent::NotChanged { channel: id, refusal } if *id == channel => Some(refusal.clone()),
        _ => None,
    });
    let refusal = refusal.expect("told");
    assert!(refusal.margin > Span::ZERO, "{refusal}");
    let offer = refusal.counter_offer.expect("at least what stands").get() as u32;
    assert!((6_250..25_000).contains(&offer), "{refusal}");
    assert_eq!((slots(&rig), *rig.node.granted(channel).expect("open")), (before, old));
    assert_eq!(rig.node.resize(rig.now, channel, offer), Ok(()));
    cycle(&mut rig);
    assert_eq!(changed(&rig, channel).expect("granted").contract.unit_octets_max, offer);
}

/// The sender repeats the newest contract until its receiver has answered that one.
#[test]
fn an_answer_to_the_contract_before_does_not_stand_for_one_to_the_newest() {
    let (mut rig, channel) = master(TRT, 3_000);
    let old = rig.node.granted(channel).expect("open").contract.bound_ns;
    assert_eq!(rig.node.resize(rig.now, channel, 2_000), Ok(()));
    rig.run(TRT * 2);
    rig.rest();
    assert_eq!(changed(&rig, channel).expect("granted").contract.unit_octets_max, 2_000);
    let repeated = |rig: &mut Rig| {
        rig.clear();
        for _ in 0..30 {
            rig.run(TRT);
            rig.rest();
        }
        let verb = |sent: &&rig::Sent| Signal::parse(&sent.body).is_ok_and(|it| it.verb == Verb::Opened);
        rig.sent.iter().filter(|sent| sent.header.kind == Kind::Signal).filter(verb).count()
    };
    assert!(repeated(&mut rig) > 1, "nothing has been answered yet");
    rig.signal_of(3, Verb::OpenedAck, channel, (3_000, old));
    assert!(repeated(&mut rig) > 1, "that was the answer to the contract before");
    rig.signal(3, Verb::OpenedAck, channel);
    assert!(repeated(&mut rig) <= 1, "the newest is answered");
}
