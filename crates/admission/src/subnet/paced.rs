//! A full-duplex switch whose hosts pace what they send (SILO and QJump have the idea).
//!
//! The host sends the channel's packets p apart or more. Two ports are first in, first out: the host's own
//! and the switch's towards the receiver. The switch serves the paced class before all others.
//!
//! *Pacing.* With X_min ≤ p ≤ I/B packet m of a burst waits (m − 1)·p − g(m) at most, m ≤ B.
//!
//! *A port.* Let flow i bring packets of service w_i, p_i apart but for a jitter J_i: w_i·(1 + (t +
//! J_i)/p_i) in any time t. A packet that comes a after the begin of the busy period is gone by B + Σ
//! w_i·(1 + (a + J_i)/p_i), B one frame of another class. If Σ w_i/p_i ≤ 1, it stays **B + Σ w_i·(1 +
//! J_i/p_i)** at most. J_i is 0 at the host, and at the switch what the host's port let vary. A packet
//! reaches the switch's queue when the last octet has come in, so the port counts whole packets.
//!
//! *Buffer.* Each flow has 1 + ⌈J_i/p_i⌉ packets there at most. A further flow lengthens the wait of all
//! others, so each one states the longest it can stand.

use super::{Ask, Offer, Subnet, packet_span_up, packet_wire_octets};
use crate::link::LinkModel;
use crate::rtip::load::{beyond, share_up};
use crate::rtip::{Denied, NodeTest, Traffic};
use crate::search::largest;
use rota_units::{Octets, Span};

/// A paced flow at one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacedFlow {
    /// p: its packets are so far apart.
    pub period: Span,
    /// w: the service of its largest packet.
    pub service: Span,
    /// Octets of that on the wire.
    pub octets: Octets,
    /// J: by how much they may be closer, in sum.
    pub jitter: Span,
    /// The longest stay that its promise allows.
    pub stay_max: Span,
}

/// The longest stay at a port with these flows, behind one frame of `blocking`.
///
/// # Errors
/// [`NodeTest::Load`], with the work beyond one second in each.
pub fn fifo_delay<'f>(
    flows: impl Iterator<Item = &'f PacedFlow> + Clone,
    blocking: Span,
) -> Result<Span, Denied> {
    let share = |flow: &PacedFlow| {
        share_up(flow.service.as_nanos().into(), u128::from(flow.period.as_nanos()).max(1))
    };
    let load = flows.clone().map(share).fold(0, u128::saturating_add);
    if let Some(beyond) = beyond(load) {
        return Err(Denied::new(NodeTest::Load, beyond));
    }
    let late = |flow: &PacedFlow| {
        let (service, jitter) = (u128::from(flow.service.as_nanos()), u128::from(flow.jitter.as_nanos()));
        let more = (service * jitter).div_ceil(u128::from(flow.period.as_nanos()).max(1));
        flow.service + Span::from_nanos(u64::try_from(more).unwrap_or(u64::MAX))
    };
    Ok(blocking + flows.map(late).sum())
}

/// The way from one host through the switch to one receiver.
#[derive(Clone, Copy, Debug)]
pub struct PacedPort<'s> {
    /// The costs of sending; the slowest of both ports.
    pub link: LinkModel,
    /// The paced flows of the host.
    pub host: &'s [PacedFlow],
    /// The paced flows into the switch's port towards the receiver, from all hosts.
    pub port: &'s [PacedFlow],
    /// Octets that the switch keeps for the paced class of that port.
    pub buffer: Octets,
}

impl PacedPort<'_> {
    /// The flow at the host's port, paced by `period`, without a limit.
    fn at_host(&self, ask: &Ask, period: Span) -> PacedFlow {
        let framing = &self.link.framing;
        let service = packet_span_up(self.link.rate, framing, ask.octets);
        let octets = packet_wire_octets(framing, ask.octets);
        PacedFlow { period, service, octets, jitter: Span::ZERO, stay_max: Span::MAX }
    }

    /// Both ports' stays, and what pacing adds.
    fn stays(&self, ask: &Ask, period: Span) -> Result<[Span; 3], Denied> {
        let own = self.at_host(ask, period);
        let blocking = self.link.frame_span_max();
        let host = stay(self.host, &own, blocking)?;
        let jitter = host.minus(packet_span_up(self.link.rate, &self.link.framing, ask.octets_least));
        let own = PacedFlow { jitter, ..own };
        let port = stay(self.port, &own, blocking)?;
        let packets = |flow: &PacedFlow| 1 + flow.jitter.as_nanos().div_ceil(flow.period.as_nanos().max(1));
        let waiting = self.port.iter().chain([&own]).map(|flow| flow.octets * packets(flow));
        let waiting = waiting.fold(Octets::ZERO, |sum, octets| sum + octets);
        if waiting > self.buffer {
            let over = Octets::new(waiting.get() - self.buffer.get());
            return Err(Denied::new(NodeTest::PortBuffer, self.link.rate.span_of_up(over)));
        }
        Ok([pacing_wait(&ask.traffic, period), host, port])
    }

    fn delay(&self, ask: &Ask, period: Span) -> Result<Span, Denied> {
        Ok(self.stays(ask, period)?.into_iter().sum::<Span>() + self.link.host_slack)
    }

    /// p from X_min, the quickest, to I/B, the cheapest.
    fn periods(traffic: &Traffic) -> (Span, Span) {
        (traffic.x_min(), traffic.interval().div_down(traffic.burst()))
    }

    /// The longest period that keeps `delay`, where one does.
    ///
    /// # Errors
    /// [`Denied`] with the shortest bound that was found.
    pub fn cheapest(&self, ask: &Ask, delay: Span) -> Result<(Span, Span), Denied> {
        let (least, most) = Self::periods(&ask.traffic);
        let keeps = |period| self.delay(ask, period).is_ok_and(|found| found <= delay);
        if keeps(most) {
            return Ok((most, self.delay(ask, most)?));
        }
        // Two shorter ones at most are near in cost, so the search need not be perfect: what it finds is
        // tested.
        if !keeps(least) {
            let (_, best) = self.quickest(ask)?;
            let margin = best.minus(delay);
            return Err(Denied { nearest_delay: Some(best), ..Denied::new(NodeTest::FifoPort, margin) });
        }
        let found = largest(least.as_nanos(), most.as_nanos(), |nanos| keeps(Span::from_nanos(nanos)));
        let period = Span::from_nanos(found);
        Ok((period, self.delay(ask, period)?))
    }

    /// The period with the shortest bound of the two ends.
    ///
    /// # Errors
    /// [`Denied`] of the cheaper one.
    pub fn quickest(&self, ask: &Ask) -> Result<(Span, Span), Denied> {
        let (least, most) = Self::periods(&ask.traffic);
        let cheap = self.delay(ask, most);
        match (self.delay(ask, least), cheap) {
            (Ok(quick), Ok(cheap)) if cheap < quick => Ok((most, cheap)),
            (Ok(quick), _) => Ok((least, quick)),
            (Err(_), cheap) => cheap.map(|cheap| (most, cheap)),
        }
    }

    fn offer(&self, ask: &Ask, delay: Span) -> Offer {
        // Each packet is on the wire twice, one behind the other.
        let once = packet_span_up(self.link.rate, &self.link.framing, ask.octets_least);
        Offer { delay, service_least: once * 2, link_least: Span::ZERO, link_most: Span::ZERO }
    }
}

impl Subnet for PacedPort<'_> {
    fn best(&mut self, ask: &Ask) -> Result<Offer, Denied> {
        self.quickest(ask).map(|(_, delay)| self.offer(ask, delay))
    }

    fn keeping(&mut self, ask: &Ask, delay: Span) -> Result<Offer, Denied> {
        self.cheapest(ask, delay).map(|(_, found)| self.offer(ask, found))
    }
}

/// The stay with one flow more, if all can stand it.
fn stay(standing: &[PacedFlow], new: &PacedFlow, blocking: Span) -> Result<Span, Denied> {
    let found = fifo_delay(standing.iter().chain([new]), blocking)?;
    let most = standing.iter().map(|flow| flow.stay_max).min().unwrap_or(Span::MAX);
    if found > most {
        return Err(Denied::new(NodeTest::FifoPort, found.minus(most)));
    }
    Ok(found)
}

/// The longest wait of a packet for its turn when packets leave `period` apart.
fn pacing_wait(traffic: &Traffic, period: Span) -> Span {
    // (m − 1)·p − g(m) rises with m inside a burst, since g does by X_min ≤ p.
    (period * (traffic.burst() - 1)).minus(traffic.greedy(traffic.burst()))
}
