//! A port with its channels. By deadlines: each one below the end of the longest busy period. By levels: the
//! bound of each. Work that goes before packets counts in each window that has begun.

use crate::terms::{Certificate, Flow, Frame, Hop, Port};
use crate::{Fault, holds, same};

/// The most flows that are looked at, one at a time: about a second.
const WORK_MAX: usize = 1 << 27;

impl Frame {
    /// ⌈octets on the wire · 8 · 10⁹ / rate⌉ for a frame payload.
    pub(crate) fn span(&self, payload: u128) -> u128 {
        let wire = (payload + u128::from(self.overhead)).max(u128::from(self.wire_least));
        (wire * 8_000_000_000).div_ceil(u128::from(self.rate.max(1)))
    }

    /// The wire time of a packet, or its preparation, and the host's part.
    pub(crate) fn cost(&self, octets: u64) -> u128 {
        let wire = self.span(u128::from(octets) + u128::from(self.headers));
        wire.max(u128::from(self.prepare)) + u128::from(self.per_frame)
    }
}

impl Flow {
    /// The work of packets released in [0, t), the last moment included if `closed`.
    fn work(&self, t: u64, closed: bool) -> u128 {
        let (whole, rest) = (t / self.interval, t % self.interval);
        let more = rest / self.x_min + u64::from(closed || !rest.is_multiple_of(self.x_min));
        let packets = u128::from(whole) * u128::from(self.burst) + u128::from(more.min(self.burst));
        packets * u128::from(self.service)
    }

    /// The k-th deadline, from 0, of packets released as early as they may.
    fn deadline(&self, k: u64) -> u64 {
        let whole = (k / self.burst).saturating_mul(self.interval);
        whole.saturating_add(self.delay + k % self.burst * self.x_min)
    }
}

pub(crate) fn check(port: &Port, flows: &[Flow], hop: &Hop<'_>, of: &Certificate<'_>) -> Result<(), Fault> {
    let (frame, packets) = (&hop.frame, &of.packets);
    for flow in flows {
        let is_traffic = flow.x_min >= 1 && flow.burst >= 1 && flow.interval >= 1;
        let fits = u128::from(flow.x_min) * u128::from(flow.burst) <= u128::from(flow.interval);
        let is_short = u128::from(flow.octets) + u128::from(frame.headers) <= frame.mtu.into();
        holds(is_traffic && fits && is_short, Fault::Range("flow"))?;
        same("service", flow.service, frame.cost(flow.octets))?;
    }
    let own = usize::try_from(port.own).ok().and_then(|own| flows.get(own)).ok_or(Fault::Range("own"))?;
    same("flow.x_min", own.x_min, packets.counted_x_min.into())?;
    same("flow.interval", own.interval, packets.counted_interval.into())?;
    same("flow.burst", own.burst, packets.burst.into())?;
    same("flow.octets", own.octets, packets.octets.into())?;
    same("delay", hop.terms.delay, u128::from(own.delay) + u128::from(frame.host_slack))?;
    // The test of a level counts packets that become eligible, and only a regulator bounds these.
    holds(port.levels <= u64::from(hop.terms.regulator > 0), Fault::Range("levels"))?;
    holds(port.window > 0, Fault::Range("window"))?;
    same("ordinary", port.ordinary, frame.span(frame.mtu.into()) + u128::from(port.card_ahead))?;
    same("horizon", port.horizon, busy_period(port, flows)?)?;
    same("slack", port.slack, slack(port, flows)?)
}

/// The work that goes before packets in [0, t).
fn above(port: &Port, t: u64) -> u128 {
    u128::from(t.div_ceil(port.window)) * u128::from(port.above)
}

/// The first time at which all that was released, the largest packet and the work above of one more window
/// are done. Under too much load it never comes. Beyond the stated one any value differs from it.
fn busy_period(port: &Port, flows: &[Flow]) -> Result<u128, Fault> {
    let largest = flows.iter().map(|flow| flow.service).fold(port.ordinary, u64::max) + port.above;
    let mut end = largest.max(1);
    for _ in 0..WORK_MAX / flows.len() {
        let work: u128 = flows.iter().map(|flow| flow.work(end, false)).sum();
        let next = work + above(port, end) + u128::from(largest);
        if next <= u128::from(end) || end > port.horizon {
            return Ok(end.into());
        }
        end = u64::try_from(next).unwrap_or(u64::MAX);
    }
    Err(Fault::Range("horizon"))
}

/// At each point t: demand + one later packet ≤ t. The least that is left there, the horizon at most. Points
/// are the deadlines below the horizon, or the bounds of levels.
fn slack(port: &Port, flows: &[Flow]) -> Result<u128, Fault> {
    let (mut slack, mut left_to_do) = (u128::from(port.horizon), WORK_MAX / flows.len());
    let is_point = |k: u64, t: u64| if port.levels == 1 { k == 0 } else { t < port.horizon };
    for flow in flows {
        let all = (0..).map(|k| (k, flow.deadline(k)));
        for (_, t) in all.take_while(|(k, t)| is_point(*k, *t)) {
            left_to_do = left_to_do.checked_sub(1).ok_or(Fault::Range("horizon"))?;
            slack = slack.min(left_at(port, flows, t).ok_or(Fault::Fails("slack"))?);
        }
    }
    Ok(slack)
}

fn left_at(port: &Port, flows: &[Flow], t: u64) -> Option<u128> {
    let due = |flow: &Flow| match t.checked_sub(flow.delay) {
        None => 0,
        // Of a level's bound all that is released before it and goes first.
        Some(_) if port.levels == 1 => flow.work(t, false),
        Some(age) => flow.work(age, true),
    };
    let demand = flows.iter().map(due).sum::<u128>() + above(port, t);
    let later = flows.iter().filter(|flow| flow.delay > t).map(|flow| flow.service);
    let blocking = later.fold(port.ordinary, u64::max);
    u128::from(t).checked_sub(demand + u128::from(blocking))
}
