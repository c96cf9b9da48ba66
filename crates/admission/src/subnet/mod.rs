//! The questions of set-up to one hop, the same for each kind of network behind it (`TENET-3.1-29`,
//! `TENET-3.1-30`).
//!
//! Each kind of network derives its own numbers from the channel's packets, and answers with an [`Offer`]
//! that is free of them. On the way there the caller asks for the best offer; on the way back for the
//! cheapest reservation that keeps a relaxed bound. A hop reserves nothing by answering.

mod link;
mod paced;
mod partition;
mod rether;
mod statistical;

pub use link::{
    LINK_DELAY_MAX, LINK_FLOWS_OWN, LINK_LEVELS, LINK_POINTS, LinkPort, PortLoad, carried_step, link_ahead,
    link_levels, link_offer, link_others, link_work,
};
pub use paced::{PacedFlow, PacedPort, fifo_delay};
pub use partition::{BadPartition, NamedPartitions, PARTITIONS_MAX, PartedPort, Partitions, PortPart};
pub use rether::{RetherSegment, RetherShare, pace_at_peaks, packet_tht};
pub(crate) use rether::{worst_wait, worst_wait_of_group};
pub use statistical::{
    Certain, STATISTICAL_CELLS, STATISTICAL_MAX, StatisticalAsk, StatisticalFlow, StatisticalPort,
};

use crate::link::{Framing, LinkModel};
use crate::pace::Pace;
use crate::path::Hop;
use crate::rtip::{Denied, NodeTest, Regulator, Traffic};
use crate::search::largest;
use rota_units::{BitRate, Octets, Span};

/// Octets of the RTIP header (paper Figure 2); the unit header beside it is RMTP's and part of
/// [`Framing::rota_octets`].
pub const RTIP_OCTETS: u64 = 16;
/// Packets of a burst that the regulator of a gateway remembers.
pub const BURST_MAX: u64 = 4_096;

/// A channel's packets, the same on all hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// In time.
    pub traffic: Traffic,
    /// Payload of the largest packet, without any header.
    pub octets: Octets,
    /// Payload of the shortest packet: what jitter is counted from.
    pub octets_least: Octets,
}

/// The promise of a hop, in terms that fit every network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// d, the host slack of its sender included.
    pub delay: Span,
    /// The shortest time in which a packet can pass.
    pub service_least: Span,
    /// The shortest time of the link behind it.
    pub link_least: Span,
    /// π: the longest one.
    pub link_most: Span,
}

impl Offer {
    /// The hop of a path whose node holds packets by `regulator`.
    pub const fn hop(&self, regulator: Regulator) -> Hop {
        let Self { delay, service_least, link_least, link_most } = *self;
        Hop { delay, service_least, link_least, link_most, regulator }
    }
}

/// A network of one kind, seen from the node that sends into it.
pub trait Subnet {
    /// The shortest bound that the channel can have here now.
    ///
    /// # Errors
    /// [`Denied`] where no bound helps.
    fn best(&mut self, ask: &Ask) -> Result<Offer, Denied>;

    /// The offer of the cheapest reservation that keeps `delay`.
    ///
    /// # Errors
    /// [`Denied`] with the shortest bound that fits.
    fn keeping(&mut self, ask: &Ask, delay: Span) -> Result<Offer, Denied>;
}

/// The pace that a channel across segments asks of a hop, so many of which send at once: the first test of
/// set-up, in nodes and in plans, before the network itself is asked. `trt` is that of a segment under a
/// token; a link schedules packets one by one, and reads no pace.
///
/// # Errors
/// [`Denied`]: a burst is too long for a regulator, or a cycle brings more packets than a share can have.
pub fn hop_pace(traffic: &Traffic, at_once: u64, trt: Option<Span>) -> Result<Pace, Denied> {
    let burst = traffic.burst().saturating_mul(at_once.max(1));
    if burst > BURST_MAX {
        return Err(Denied::counted(NodeTest::Unsupported, burst, BURST_MAX));
    }
    trt.map_or(Ok(Pace::EVERY_CYCLE), |trt| pace_at_peaks(traffic, trt, at_once))
}

/// The largest packet of the same channel with which `subnet` keeps `delay`: the counter-offer where no
/// longer bound helps. Every test rises with the packet, so halving finds it.
pub fn largest_packet(subnet: &mut dyn Subnet, ask: &Ask, delay: Span) -> Option<Octets> {
    let mut fits = |octets: u64| {
        let octets = Octets::new(octets);
        let ask = Ask { octets, octets_least: ask.octets_least.min(octets), ..*ask };
        subnet.keeping(&ask, delay).is_ok()
    };
    fits(1).then(|| Octets::new(largest(1, ask.octets.get(), fits)))
}

/// The largest payload of an RTIP packet in one frame.
pub const fn payload_max(framing: &Framing) -> Octets {
    let room = framing.unit_payload_max().saturating_sub(RTIP_OCTETS);
    Octets::new(if room == 0 { 1 } else { room })
}

/// Time on the wire of one packet, all headers and the framing included, rounded up (`TENET-5-1`).
pub fn packet_span_up(rate: BitRate, framing: &Framing, payload: Octets) -> Span {
    rate.span_of_up(packet_wire_octets(framing, payload))
}

/// Octets on the wire of one packet.
pub const fn packet_wire_octets(framing: &Framing, payload: Octets) -> Octets {
    let headers = RTIP_OCTETS + framing.rota_octets as u64;
    framing.wire_octets(payload.get().saturating_add(headers))
}

/// The charge of a packet on a port: its wire time or its preparation, and a.
pub fn packet_cost(link: &LinkModel, payload: Octets) -> Span {
    link.frame_cost(packet_span_up(link.rate, &link.framing, payload))
}

#[cfg(test)]
mod tests;
