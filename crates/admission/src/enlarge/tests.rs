use super::*;
use crate::rtip::Traffic;
use crate::subnet::worst_wait;
use crate::{admit, close_slot, offset_of, reserved, still_fits};
use proptest::prelude::*;
use rota_units::BitRate;
use std::collections::VecDeque;

fn params() -> SegmentParams {
    SegmentParams::new(BitRate::from_mbit(100), 8)
}

fn request(octets: u64, packets: u64, periodic: bool) -> Request {
    let pace = Pace::of_packets(packets).expect("few");
    Request { station: 1, unit_octets: Octets::new(octets), pace, periodic, receives: false, partition: 0 }
}

/// A share of packets and its list.
struct Share {
    params: SegmentParams,
    slots: Vec<Slot>,
    parts: Vec<PacketSlot>,
    octets: u64,
    packets: u64,
    periodic: bool,
}

impl Share {
    /// One slot of packets, behind one and before others of so many octets.
    fn new((octets, packets): (u64, u64), others: &[u64], periodic: bool) -> Self {
        Self::on(params(), (octets, packets), others, periodic)
    }

    fn on(params: SegmentParams, (octets, packets): (u64, u64), others: &[u64], periodic: bool) -> Self {
        let mut slots = Vec::new();
        let sizes = others.first().copied().into_iter().chain([0]).chain(others.iter().skip(1).copied());
        let mut own = 0;
        for (at, size) in sizes.enumerate() {
            let one = Request { station: 2 + at as u16, ..request(size.max(1), 1, periodic) };
            let asked = if size == 0 { request(octets, packets, periodic) } else { one };
            own = if size == 0 { slots.len() } else { own };
            let Ok(admitted) = admit(&slots, &asked, &params) else { continue };
            slots.push(Slot { station: asked.station, tht: admitted.tht, periodic, partition: 0 });
        }
        let parts = vec![PacketSlot { index: own, octets: Octets::new(octets), packets }];
        Self { params, slots, parts, octets, packets, periodic }
    }

    fn asks(&self, octets: u64, packets: u64) -> Result<Enlarged, Refusal> {
        let asked = request(octets, packets, self.periodic);
        enlarge(&self.slots, &self.parts, Octets::new(self.octets), &asked, &self.params)
    }

    /// Becomes more, as its station does it; false if it may not.
    fn enlarge(&mut self, octets: u64, packets: u64) -> bool {
        let Ok(grown) = self.asks(octets, packets) else { return false };
        match grown {
            Enlarged::Nothing => {}
            Enlarged::Widened(Larger { octets, packets, tht }) => {
                let last = self.parts.last_mut().expect("it has one");
                self.slots[last.index].tht = tht;
                (last.octets, last.packets) = (octets, packets);
            }
            Enlarged::Added(Larger { octets, packets, tht }) => {
                self.parts.push(PacketSlot { index: self.slots.len(), octets, packets });
                let periodic = self.periodic;
                self.slots.push(Slot { station: 1, tht, periodic, partition: 0 });
            }
        }
        (self.octets, self.packets) = (octets, packets);
        true
    }

    fn lessen(&mut self, octets: u64, packets: u64) {
        let size = Octets::new(octets);
        let keeps: Vec<u64> = kept(&self.parts, size, packets, &self.params).collect();
        for at in (0..self.parts.len()).rev() {
            let index = self.parts[at].index;
            if keeps[at] == 0 {
                let left = close_slot(&mut self.slots, index, &self.params);
                self.slots.truncate(left);
                self.parts.remove(at);
                self.parts.iter_mut().for_each(|part| part.index -= usize::from(part.index > index));
                continue;
            }
            let saved = self.parts[at].saves(size, keeps[at], &self.params);
            self.slots[index].tht = self.slots[index].tht.minus(saved);
            (self.parts[at].octets, self.parts[at].packets) = (size, keeps[at]);
        }
        (self.octets, self.packets) = (octets, packets);
    }

    fn carries(&self) -> u64 {
        self.parts.iter().map(|part| part.carries(Octets::new(self.octets), &self.params)).sum()
    }

    /// Where each slot of another station begins and ends.
    fn others(&self) -> Vec<(u16, Span, Span)> {
        let place = |(at, slot): (usize, &Slot)| {
            let offset = offset_of(&self.slots, at);
            (slot.station, offset, offset + slot.tht)
        };
        self.slots.iter().enumerate().map(place).filter(|(station, ..)| *station != 1).collect()
    }
}

/// Two channels that grew by turns filled the list, and all others were refused.
#[test]
fn a_share_that_has_four_slots_is_to_be_asked_for_anew() {
    let mut share = Share::new((100, 1), &[], false);
    for packets in 2..=4 {
        share.slots.push(Slot { station: 9, tht: share.slots[0].tht, periodic: false, partition: 0 });
        assert!(share.enlarge(100, packets), "{packets}");
    }
    assert_eq!(share.parts.len(), 4);
    assert!(matches!(share.asks(100, 5), Ok(Enlarged::Widened(_))), "the last one ends the list");
    share.slots.push(Slot { station: 9, tht: share.slots[0].tht, periodic: false, partition: 0 });
    assert_eq!(share.asks(100, 5).expect_err("a fifth slot").test, Test::SlotTableFull);
}

/// 60 percent of a segment become 70 with a tenth more and one visit, not with 70 beside 60.
#[test]
fn a_share_grows_by_what_it_lacks() {
    // A packet of 1,400 octets takes 118 µs of 33 ms.
    let mut share = Share::new((1_400, 165), &[1_000, 1_000], false);
    let before = reserved(&share.slots);
    let beside = admit(&share.slots, &request(1_400, 193, false), &params()).unwrap_err();
    assert_eq!(beside.test, Test::Eq3Capacity);
    assert!(share.enlarge(1_400, 193));
    let each = tht_rt_joined(&params(), Octets::new(1_400));
    let visit = params().link.per_visit + params().link.hop;
    assert_eq!(reserved(&share.slots), before + each * 28 + visit);
    assert!(matches!(share.asks(1_400, 200), Ok(Enlarged::Widened(Larger { packets: 35, .. }))));
    let refused = share.asks(1_400, 400).unwrap_err();
    assert_eq!((refused.test, refused.counter_offer), (Test::Eq3Capacity, None), "no more of any size");
    let offer = share.asks(1_436, 226).map_or_else(|refused| refused.counter_offer, |_| None);
    assert!(offer.is_none_or(|offer| share.asks(offer.get(), 226).is_ok()));
    share.lessen(700, 165);
    assert_eq!((share.parts.len(), share.carries()), (1, 165));
}

/// Larger packets take the places of more small ones, and the slot goes on to carry these.
#[test]
fn a_slot_carries_fewer_packets_that_are_larger() {
    let mut share = Share::new((400, 10), &[1_000, 1_000], false);
    let part = share.parts[0];
    assert_eq!(
        (part.carries(Octets::new(400), &params()), part.carries(Octets::new(100), &params())),
        (10, 10)
    );
    assert_eq!(part.carries(Octets::new(1_300), &params()), 3, "of 3.4");
    assert!(share.enlarge(1_300, 10));
    assert_eq!((share.parts[0], share.parts[1].packets), (part, 7));
}

/// The rest of a slot takes the time of its own packets and no more. Others have the time that it gave back.
#[test]
fn a_share_that_becomes_less_gives_back_the_time_of_all_packets_that_it_lost() {
    let mut share = Share::new((1_400, 165), &[1_000, 1_000], false);
    let (had, each) = (reserved(&share.slots), |octets| tht_rt_joined(&params(), Octets::new(octets)));
    share.lessen(1_400, 60);
    assert_eq!(reserved(&share.slots), had.minus(each(1_400) * 105));
    share.lessen(700, 40);
    assert_eq!(reserved(&share.slots), had.minus(each(1_400) * 165) + each(700) * 40);
}

proptest! {
    /// Shares become more and less in any order: all packets have places, eq. 3 holds, and no slot of another
    /// station begins or ends later than before.
    #[test]
    fn shares_that_become_more_and_less_move_nobody_to_the_right(
        first in (40u64..1_436, 1u64..60), others in prop::collection::vec(1u64..20_000, 0..5),
        changes in prop::collection::vec((40u64..1_436, 1u64..200, any::<bool>()), 1..8), periodic: bool,
    ) {
        let mut share = Share::new(first, &others, periodic);
        for (octets, packets, more) in changes {
            let before = share.others();
            if more {
                let (octets, packets) = (octets.max(share.octets), packets.max(share.packets));
                let had = share.parts.clone();
                if share.enlarge(octets, packets) {
                    // Packets of before have the places that they had.
                    for (part, had) in share.parts.iter().zip(had) {
                        prop_assert!(part.carries(had.octets, &params()) >= had.packets);
                    }
                }
            } else {
                share.lessen(octets.min(share.octets), packets.min(share.packets));
            }
            prop_assert!(share.carries() >= share.packets);
            prop_assert!(still_fits(&share.slots, &params()).is_ok());
            for ((_, begins, ends), (_, began, ended)) in share.others().into_iter().zip(before) {
                prop_assert!(begins <= began && ends <= ended);
            }
            for part in &share.parts {
                let needs = tht_rt_joined(&params(), part.octets) * part.packets;
                prop_assert!(share.slots[part.index].tht >= needs);
                prop_assert_eq!(share.slots[part.index].station, 1);
            }
        }
    }

    /// Packets of two contracts, slot by slot as a station sends them, on a strict ring and on one whose
    /// cycles begin and whose slots come early at random: the old contract keeps the bound that it had, and
    /// all keep that of the grown share.
    #[test]
    fn no_packet_of_a_share_that_grew_is_late(
        old in (900u64..30_000, 0u64..20_000, 1u64..12, 60u64..1_400),
        new in (900u64..30_000, 0u64..20_000, 1u64..12, 60u64..1_400),
        others in prop::collection::vec(1u64..30_000, 1..4), periodic: bool,
        (phase, switch, prepare) in (0u64..40_000_000, 1usize..60, 0u64..60_000),
        early in prop::collection::vec((0u64..=100, 0u64..=100), 16),
    ) {
        let us = Span::from_micros;
        let of = |(x_min, apart, burst, _): (u64, u64, u64, u64)| {
            Traffic::new(us(x_min), us(x_min + apart), us((x_min + apart) * burst)).unwrap()
        };
        let (mut params, prepare) = (params(), Span::from_nanos(prepare));
        let trt = params.trt;
        (params.link.prepare, params.link.per_visit) = (prepare, prepare.max(params.link.per_visit));
        let (first, second) = (of(old), of(new));
        let both = first.greater(&second);
        let packets = |traffic: &Traffic| traffic.half_open(trt).max(1);
        let mut share = Share::on(params, (old.3, packets(&first)), &others, periodic);
        prop_assume!(share.slots.iter().any(|slot| slot.station == 1));
        let bound = |share: &Share, traffic: &Traffic| {
            let pace = Pace::of_packets(share.packets).unwrap();
            let asked = request(share.octets, share.packets, periodic);
            let stands = standing_packets(&share.slots, &share.parts, &asked, &params);
            let one = tht_rt_joined(&params, asked.unit_octets);
            stands.bound.minus(trt) + worst_wait(traffic, pace, trt, one).unwrap()
        };
        let had = bound(&share, &first);
        prop_assume!(share.enlarge(old.3.max(new.3), packets(&both)));
        let (has, idle) = (bound(&share, &both), trt.minus(reserved(&share.slots)));
        // Packets become eligible: those of each contract as fast as it may, and of both as fast as both may.
        let mut ready: Vec<(Span, u64)> = Vec::new();
        for k in 0..120 {
            let (octets, from) = if k < switch { (old.3, 0) } else { (new.3, switch) };
            let begins = ready.get(from).map_or(Span::ZERO, |(at, _)| *at);
            let own = if k < switch { &first } else { &second };
            let behind = |n, apart: Span| ready.len().checked_sub(n).map(|at: usize| ready[at].0 + apart);
            let burst = both.burst() as usize;
            let held = behind(1, both.x_min()).max(behind(burst, both.interval()));
            let at = (begins + own.greedy((k - from) as u64 + 1)).max(held.unwrap_or(Span::ZERO));
            ready.push((if k == 0 { Span::from_nanos(phase) } else { at }, octets));
        }
        let mut waits: VecDeque<(usize, Span, u64)> =
            ready.into_iter().enumerate().map(|(k, (at, octets))| (k, at, octets)).collect();
        let mut begins = Span::ZERO;
        for cycle in 0usize..20_000 {
            if waits.is_empty() {
                return Ok(());
            }
            let (shorter, sooner) = early[cycle % early.len()];
            for part in &share.parts {
                let sooner = if periodic { 100 } else { sooner };
                let mut now = begins + (offset_of(&share.slots, part.index) * sooner).div_down(100);
                let (opened, mut left) = (now, tht_rt_joined(&params, part.octets) * part.packets);
                for _ in 0..part.packets {
                    let Some((k, at, octets)) = waits.front().copied() else { break };
                    let cost = tht_rt_joined(&params, Octets::new(octets));
                    if at > now || cost > left {
                        break;
                    }
                    (left, now) = (left.minus(cost), now + cost);
                    prop_assert!(now.minus(opened) <= share.slots[part.index].tht);
                    waits.pop_front();
                    let (took, most) = (now.minus(at), if k < switch { had } else { has });
                    prop_assert!(took <= most, "packet {} took {} of {}", k, took, most);
                }
            }
            begins += if periodic { trt } else { trt - (idle * shorter).div_down(100) };
        }
        prop_assert!(false, "{} packets never leave", waits.len());
    }
}
