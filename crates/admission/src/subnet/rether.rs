//! A RETHER segment: packets of (X_min, B in I) as a reservation in each cycle, and its bound.
//!
//! A reservation carries u packets in each cycle. Count packets from one that finds the queue empty, the
//! first one ready at t. While the queue is not empty each slot carries u packets. So packet m leaves in
//! the ⌈m/u⌉-th slot behind t, at place (m − 1) mod u of it, and is ready at t + g(m) or later, g the
//! greedy sequence. With V for the time of one packet in a slot:
//!
//! **d = max_m {⌈m/u⌉·TRT + ((m − 1) mod u)·V − g(m)} + Off + THT_1 + T + J**
//!
//! Off counts unless the channel asks for the strict ring, and THT_1, the transit T and the host slack J are
//! those of `rether.rs`, whose promise is this one for m = 1. If u·I ≥ B·TRT the maximum is at some
//! m ≤ B·u / gcd(B, u): so many packets on, slots and greedy times have both moved by whole numbers, the
//! slots by no more. Else the queue grows for ever, and the reservation is none.
//!
//! *Corners.* Of these m only a few need a look in each burst. Within a burst g rises by X_min a packet, so
//! within a slot the term is a line in m, and for each place of the whole slots of a burst a line in the
//! number of the slot: the largest of a line is at one of its ends. So the packets that can be worst are the
//! ends of the burst's first slot, of its last one, and of the whole slots behind the first and before the
//! last: eight a burst, of u / gcd(B, u) bursts, however many packets a burst has.
//!
//! *A share of a cycle's peak.* If g(u + 1) ≥ TRT the share carries all packets of any cycle. Greedy times
//! are superadditive, g(a + b + 1) ≥ g(a + 1) + g(b + 1), so that g(m + u) ≥ g(m) + TRT: the term of packet
//! m + u is no larger than that of packet m, and the maximum is at some m ≤ u. Nodes ask for such shares
//! only.
//!
//! A packet that comes ahead of its expected arrival leaves no later than if it had come then: slots carry
//! the more, the more was there. So d counts from the expected arrival, with regulators and without.
//!
//! *A group of k members at once* is policed to k channels of the traffic (`rtip/sharing.rs`), and its
//! packets are served in the order in which they become eligible, from a share of k·u packets a cycle.
//! Packet m is eligible at t + g(j) or later, j = ⌈m/k⌉, since the regulator keeps X_min from packet m − k
//! and I from packet m − k·B. It leaves in the ⌈m/(k·u)⌉-th slot, which is the ⌈j/u⌉-th, at place
//! k·((j − 1) mod u) + i, i ≤ k − 1. So its term is that of packet j of one member in a share of u, with k·V
//! in the place of V, and (k − 1)·V more at most:
//!
//! **d_k = max_j {⌈j/u⌉·TRT + ((j − 1) mod u)·k·V − g(j)} + (k − 1)·V + Off + THT_1 + T + J**
//!
//! A packet fits one frame, so less than one packet a cycle cannot be reserved: a slot that is used in every
//! second cycle only costs the same.

use super::{Ask, Offer, RTIP_OCTETS, Subnet, packet_span_up};
use crate::pace::Pace;
use crate::rether::{Admitted, Request, SegmentParams, admit, tht_rt_joined, tht_shared};
use crate::rtip::load::gcd;
use crate::rtip::{Denied, NodeTest, Traffic};
use crate::slots::Slot;
use rota_units::{Octets, Span};

/// A segment as one of its stations sees it.
#[derive(Clone, Copy, Debug)]
pub struct RetherSegment<'s> {
    /// The numbers that all its stations share.
    pub params: SegmentParams,
    /// The list of the token.
    pub slots: &'s [Slot],
    /// The sending station.
    pub station: u16,
    /// True if it asks for the strict ring.
    pub periodic: bool,
    /// True if a station of the list sends to it.
    pub receives: bool,
    /// The number of the channel's partition.
    pub partition: u8,
}

/// A reservation that keeps a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetherShare {
    /// u packets in a cycle.
    pub pace: Pace,
    /// The grant of the segment's own test to one packet each period of the pace.
    pub admitted: Admitted,
    /// d.
    pub delay: Span,
    /// The part of d for packets that come closer together than the reservation carries them, one TRT
    /// included.
    pub wait: Span,
}

/// Packets of bursts and slots until both repeat: no more, for a checker looks at each.
const PACKETS_MAX: u64 = 1 << 18;

impl RetherSegment<'_> {
    /// The reservation of this pace.
    ///
    /// # Errors
    /// [`Denied`]: it does not carry the packets, or does not fit.
    pub fn share(&self, ask: &Ask, pace: Pace) -> Result<RetherShare, Denied> {
        let wait = worst_wait(&ask.traffic, pace, self.params.trt, self.packet(ask))?;
        self.with_wait(ask, pace, wait)
    }

    /// The one reservation that this hop is asked for, by nodes and in plans, where so many channels of the
    /// traffic send at once: it carries all packets of a cycle in that cycle. No longer bound makes it
    /// cheaper.
    ///
    /// # Errors
    /// [`Denied`]: a cycle brings more packets than a share can have, or it does not fit.
    pub fn at_peaks(&self, ask: &Ask, at_once: u64) -> Result<RetherShare, Denied> {
        let (trt, packet) = (self.params.trt, self.packet(ask));
        let pace = pace_at_peaks(&ask.traffic, trt, at_once)?;
        let wait = worst_wait_of_group(&ask.traffic, (pace.units(), at_once), trt, packet)?;
        self.with_wait(ask, pace, wait)
    }

    /// V: the time of one packet in a slot.
    fn packet(&self, ask: &Ask) -> Span {
        tht_rt_joined(&self.params, ask.octets + Octets::new(RTIP_OCTETS))
    }

    fn with_wait(&self, ask: &Ask, pace: Pace, wait: Span) -> Result<RetherShare, Denied> {
        let params = &self.params;
        let request = Request {
            station: self.station,
            unit_octets: ask.octets + Octets::new(RTIP_OCTETS),
            pace,
            periodic: self.periodic,
            receives: self.receives,
            partition: self.partition,
        };
        let admitted = admit(self.slots, &request, params).map_err(|refusal| Denied {
            partition: refusal.partition,
            ..Denied::new(refusal.test.of_hop(), refusal.margin)
        })?;
        // The promise to one unit each period has TRT in the place of the wait.
        let rest = admitted.bound.minus(params.trt);
        Ok(RetherShare { pace, admitted, delay: rest + wait, wait })
    }

    /// The promise of a reservation.
    pub fn offer(&self, ask: &Ask, share: &RetherShare) -> Offer {
        let link = &self.params.link;
        Offer {
            delay: share.delay,
            service_least: packet_span_up(link.rate, &link.framing, ask.octets_least),
            // The transit is part of d. Its variation is not in the time by which a packet states that it
            // left ahead: behind a segment only regulators that do not hold by that time keep their jitter.
            link_least: Span::ZERO,
            link_most: Span::ZERO,
        }
    }
}

impl Subnet for RetherSegment<'_> {
    fn best(&mut self, ask: &Ask) -> Result<Offer, Denied> {
        self.at_peaks(ask, 1).map(|share| self.offer(ask, &share))
    }

    fn keeping(&mut self, ask: &Ask, delay: Span) -> Result<Offer, Denied> {
        let best = self.best(ask)?;
        if best.delay <= delay {
            return Ok(best);
        }
        let short = Denied::new(NodeTest::RetherShare, best.delay.minus(delay));
        Err(Denied { nearest_delay: Some(best.delay), ..short })
    }
}

/// The pace that carries all packets which so many channels bring in a cycle, so that none waits for the slot
/// of another one.
///
/// # Errors
/// [`NodeTest::CyclePackets`]: they are more than a share can have.
pub fn pace_at_peaks(traffic: &Traffic, trt: Span, channels: u64) -> Result<Pace, Denied> {
    let packets = traffic.half_open(trt).max(1).saturating_mul(channels.max(1));
    let denied = || Denied::counted(NodeTest::CyclePackets, packets, Pace::PACKETS_MAX.into());
    Pace::of_packets(packets).ok_or_else(denied)
}

/// The maximum of the derivation above.
pub(crate) fn worst_wait(traffic: &Traffic, pace: Pace, trt: Span, packet: Span) -> Result<Span, Denied> {
    worst_wait_in(traffic, pace.units(), trt, packet)
}

/// The same for a group of which so many members send at once, in a share of so many packets a cycle.
pub(crate) fn worst_wait_of_group(
    traffic: &Traffic,
    (units, at_once): (u64, u64),
    trt: Span,
    packet: Span,
) -> Result<Span, Denied> {
    let wait = worst_wait_in(traffic, (units / at_once).max(1), trt, packet * at_once)?;
    Ok(wait + packet * (at_once - 1))
}

fn worst_wait_in(traffic: &Traffic, units: u64, trt: Span, packet: Span) -> Result<Span, Denied> {
    let carried = u128::from(units) * u128::from(traffic.interval().as_nanos());
    let brought = u128::from(traffic.burst()) * u128::from(trt.as_nanos());
    if carried < brought {
        // The time by which a reservation for the average would have to come sooner.
        let lacks = (brought - carried) / u128::from(traffic.burst());
        let lacks = u64::try_from(lacks).unwrap_or(u64::MAX).max(1);
        return Err(Denied::new(NodeTest::RetherShare, Span::from_nanos(lacks)));
    }
    let burst = traffic.burst();
    let bursts = match traffic.greedy(units + 1) >= trt {
        true => units.div_ceil(burst),
        false => units / gcd(burst, units),
    };
    if burst.saturating_mul(bursts) > PACKETS_MAX {
        return Err(Denied::new(NodeTest::Undecided, Span::ZERO));
    }
    let wait = |m: u64| (trt * m.div_ceil(units) + packet * ((m - 1) % units)).minus(traffic.greedy(m));
    let corners = (0..bursts).flat_map(|n| corners(n * burst, burst, units));
    Ok(corners.map(|before| wait(before + 1)).max().unwrap_or(trt))
}

/// The packets of a burst that can be worst, each by how many are before it; `first` are before the burst.
fn corners(first: u64, burst: u64, units: u64) -> impl Iterator<Item = u64> {
    let last = first + burst - 1;
    let slots = [first / units, first / units + 1, (last / units).saturating_sub(1), last / units];
    let ends = slots.into_iter().flat_map(move |slot| [slot * units, slot * units + units - 1]);
    ends.map(move |packet| packet.clamp(first, last))
}

/// THT of one packet in a visit of its own: what the bound holds.
pub fn packet_tht(params: &SegmentParams, payload: Octets) -> Span {
    tht_shared(params, payload + Octets::new(RTIP_OCTETS), Pace::EVERY_CYCLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The corners of the bursts against a look at each packet until all repeats.
        #[test]
        fn the_worst_packet_is_a_corner_of_a_burst(
            x_min in 1u64..50, apart in 0u64..30, burst in 1u64..70, rest in 0u64..60, trt in 1u64..300,
            units in 1u64..=32, packet in 0u64..40,
        ) {
            let ns = Span::from_nanos;
            let (x_ave, trt) = (x_min + apart, ns(trt * 1_000));
            let (x_min, x_ave) = (ns(x_min * 1_000), ns(x_ave * 1_000));
            let traffic = Traffic::new(x_min, x_ave, x_ave * burst + ns(rest)).unwrap();
            let pace = Pace::of(ns(trt.as_nanos().div_ceil(units)), trt).unwrap();
            let packet = ns(packet * 1_000);
            let (units, found) = (pace.units(), worst_wait(&traffic, pace, trt, packet));
            let all = traffic.burst() * units;
            let leaves = |m: u64| trt * m.div_ceil(units) + packet * ((m - 1) % units);
            let wait = |m: u64| leaves(m).minus(traffic.greedy(m));
            match found {
                Ok(found) => prop_assert_eq!(found, (1..=all).map(wait).max().unwrap()),
                Err(denied) => prop_assert_eq!(denied.test, NodeTest::RetherShare),
            }
        }

        /// A share of all packets of a cycle, of which only those of one slot are looked at, against all
        /// packets until everything repeats.
        #[test]
        fn the_worst_packet_of_a_share_of_the_peak_is_in_the_first_slot(
            x_min in 1u64..400, apart in 0u64..400, burst in 1u64..400, trt in 1u64..33_000,
            packet in 0u64..40, more in 0u64..3, slow in 0u64..60,
        ) {
            let us = Span::from_micros;
            let (x_ave, trt) = (x_min + apart, us(trt + slow * 1_000));
            let traffic = Traffic::new(us(x_min), us(x_ave), us(x_ave * burst)).unwrap();
            let Some(pace) = Pace::of_packets(traffic.half_open(trt).max(1) + more) else { return Ok(()) };
            let (units, packet) = (pace.units(), us(packet));
            let leaves = |m: u64| trt * m.div_ceil(units) + packet * ((m - 1) % units);
            let wait = |m: u64| leaves(m).minus(traffic.greedy(m));
            let all = (traffic.burst() * units).min(1 << 17);
            let found = worst_wait(&traffic, pace, trt, packet).unwrap();
            prop_assert_eq!(found, (1..=all).map(wait).max().unwrap());
        }

        /// The bound of a group against each packet of k greedy members, all in one share.
        #[test]
        fn no_packet_of_a_greedy_group_waits_for_longer(
            x_min in 1u64..50, apart in 0u64..30, burst in 1u64..20, trt in 1u64..300, at_once in 1u64..=6,
            packet in 0u64..40,
        ) {
            let ns = Span::from_nanos;
            let (x_ave, trt) = (x_min + apart, ns(trt * 1_000));
            let (x_min, x_ave) = (ns(x_min * 1_000), ns(x_ave * 1_000));
            let traffic = Traffic::new(x_min, x_ave, x_ave * burst).unwrap();
            let (each, packet) = (traffic.half_open(trt).max(1), ns(packet * 1_000));
            let units = each * at_once;
            let found = worst_wait_of_group(&traffic, (units, at_once), trt, packet).unwrap();
            let wait = |m: u64| {
                let leaves = trt * m.div_ceil(units) + packet * ((m - 1) % units);
                leaves.minus(traffic.greedy(m.div_ceil(at_once)))
            };
            prop_assert_eq!(found, (1..=traffic.burst() * units).map(wait).max().unwrap());
        }
    }
}
