//! A port that serves the earliest deadline first: each deadline below the end of the longest busy period.

use crate::terms::{Certificate, Edf, Flow, Frame, Hop};
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
    /// Packets released in [0, t), the last one included if `closed`.
    fn packets(&self, t: u64, closed: bool) -> u128 {
        let (whole, rest) = (t / self.interval, t % self.interval);
        let more = rest / self.x_min + u64::from(closed || !rest.is_multiple_of(self.x_min));
        u128::from(whole) * u128::from(self.burst) + u128::from(more.min(self.burst))
    }

    fn work(&self, packets: u128) -> u128 {
        packets * u128::from(self.service)
    }

    /// The k-th deadline, from 0, of packets released as early as they may.
    fn deadline(&self, k: u64) -> u64 {
        let whole = (k / self.burst).saturating_mul(self.interval);
        whole.saturating_add(self.delay + k % self.burst * self.x_min)
    }
}

pub(crate) fn check(edf: &Edf, flows: &[Flow], hop: &Hop<'_>, of: &Certificate<'_>) -> Result<(), Fault> {
    let (frame, packets) = (&hop.frame, &of.packets);
    for flow in flows {
        let is_traffic = flow.x_min >= 1 && flow.burst >= 1 && flow.interval >= 1;
        let fits = u128::from(flow.x_min) * u128::from(flow.burst) <= u128::from(flow.interval);
        let is_short = u128::from(flow.octets) + u128::from(frame.headers) <= frame.mtu.into();
        holds(is_traffic && fits && is_short, Fault::Range("flow"))?;
        same("service", flow.service, frame.cost(flow.octets))?;
    }
    let own = usize::try_from(edf.own).ok().and_then(|own| flows.get(own)).ok_or(Fault::Range("own"))?;
    same("flow.x_min", own.x_min, packets.counted_x_min.into())?;
    same("flow.interval", own.interval, packets.counted_interval.into())?;
    same("flow.burst", own.burst, packets.burst.into())?;
    same("flow.octets", own.octets, packets.octets.into())?;
    same("delay", hop.terms.delay, u128::from(own.delay) + u128::from(frame.host_slack))?;
    same("ordinary", edf.ordinary, frame.span(frame.mtu.into()) + u128::from(edf.card_ahead))?;
    same("spare_load", edf.spare_load, spare_load(flows)?)?;
    let largest = flows.iter().map(|flow| flow.service).fold(edf.ordinary, u64::max);
    same("horizon", edf.horizon, busy_period(flows, largest, edf.horizon)?)?;
    deadlines(edf, flows)
}

/// 1 − Σ s·B/I, each term rounded up to 2⁻⁵⁰.
fn spare_load(flows: &[Flow]) -> Result<u128, Fault> {
    // More than a whole port is refused whatever it is, and would not fit into 128 bits.
    let work = |flow: &Flow| flow.work(flow.burst.into()).min(u128::from(flow.interval) + 1);
    let all = flows.iter().map(|flow| (work(flow) << 50).div_ceil(flow.interval.into())).sum();
    (1u128 << 50).checked_sub(all).filter(|spare| *spare > 0).ok_or(Fault::Fails("load"))
}

/// The first time at which all that was released and the largest packet are done; beyond `stated` any value
/// differs from it.
fn busy_period(flows: &[Flow], largest: u64, stated: u64) -> Result<u128, Fault> {
    let mut end = largest.max(1);
    for _ in 0..WORK_MAX / flows.len() {
        let work: u128 = flows.iter().map(|flow| flow.work(flow.packets(end, false))).sum();
        let next = work + u128::from(largest);
        if next <= u128::from(end) || end > stated {
            return Ok(end.into());
        }
        end = crate::word(next, "horizon")?;
    }
    Err(Fault::Range("horizon"))
}

/// At each deadline t below the horizon: demand + one later packet ≤ t; finds the tightest.
fn deadlines(edf: &Edf, flows: &[Flow]) -> Result<(), Fault> {
    let (mut slack, mut at, mut left_to_do) = (edf.horizon, 0, WORK_MAX / flows.len());
    for flow in flows {
        for t in (0..).map(|k| flow.deadline(k)).take_while(|t| *t < edf.horizon) {
            left_to_do = left_to_do.checked_sub(1).ok_or(Fault::Range("horizon"))?;
            let left = left_at(edf, flows, t).ok_or(Fault::Fails("edf"))?;
            if left < slack || (left == slack && t < at) {
                (slack, at) = (left, t);
            }
        }
    }
    same("slack", edf.slack, slack.into())?;
    same("slack_at", edf.slack_at, at.into())
}

fn left_at(edf: &Edf, flows: &[Flow], t: u64) -> Option<u64> {
    let due = |flow: &Flow| t.checked_sub(flow.delay).map_or(0, |age| flow.work(flow.packets(age, true)));
    let demand: u128 = flows.iter().map(due).sum();
    let later = flows.iter().filter(|flow| flow.delay > t).map(|flow| flow.service);
    let blocking = later.fold(edf.ordinary, u64::max);
    u64::try_from(u128::from(t).checked_sub(demand + u128::from(blocking))?).ok()
}
