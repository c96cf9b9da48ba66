//! A port with its channels, at each moment at which one begins. By deadlines: each one below the end of the
//! longest busy period. By levels: the bound of each. Work before packets counts in each begun window.

use crate::path::longer;
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
    /// True if it counts at this moment.
    fn has(&self, at: u64) -> bool {
        self.from <= at && (self.until == 0 || at < self.until)
    }

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
    let (frame, packets, channel) = (&hop.frame, &of.packets, &of.channel);
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
    // It counts until its last packet is gone, and no busy period with one goes on.
    let gone = u128::from(channel.ends) + u128::from(channel.delay_max);
    let gone = gone + longer(port.horizon.into(), channel.clocks);
    let is_long = own.until == 0 || (channel.ends > 0 && u128::from(own.until) >= gone);
    holds(own.from <= channel.begins && is_long, Fault::Fails("life"))?;
    let (mut horizon, mut slack, mut left_to_do) = (0, u128::MAX, WORK_MAX);
    for (k, flow) in flows.iter().enumerate() {
        // Sets grow at starts alone: of each one in the life of the channel, its own among them.
        if own.has(flow.from) && flows[..k].iter().all(|before| before.from != flow.from) {
            let set = Set { port, flows, at: flow.from };
            let end = set.busy_period(&mut left_to_do)?;
            (horizon, slack) = (end.max(horizon), set.slack(end, &mut left_to_do)?.min(slack));
        }
    }
    same("horizon", port.horizon, horizon.into())?;
    same("slack", port.slack, slack)
}

/// The channels that count at one moment.
struct Set<'p> {
    port: &'p Port,
    flows: &'p [Flow],
    at: u64,
}

impl Set<'_> {
    fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.flows.iter().filter(|flow| flow.has(self.at))
    }

    /// A look at all flows is work.
    fn look(&self, left_to_do: &mut usize) -> Result<(), Fault> {
        *left_to_do = left_to_do.checked_sub(self.flows.len()).ok_or(Fault::Range("horizon"))?;
        Ok(())
    }

    /// The work that goes before packets in [0, t).
    fn above(&self, t: u64) -> u128 {
        u128::from(t.div_ceil(self.port.window)) * u128::from(self.port.above)
    }

    /// When all that was released, the largest packet and the work above of one more window are done first.
    /// Under too much load it never comes. Beyond the stated one any value differs from it.
    fn busy_period(&self, left_to_do: &mut usize) -> Result<u64, Fault> {
        let most = self.flows().map(|flow| flow.service).fold(self.port.ordinary, u64::max);
        let most = most + self.port.above;
        let mut end = most.max(1);
        loop {
            self.look(left_to_do)?;
            let work: u128 = self.flows().map(|flow| flow.work(end, false)).sum();
            let next = work + self.above(end) + u128::from(most);
            if next <= u128::from(end) || end > self.port.horizon {
                return Ok(end);
            }
            end = u64::try_from(next).unwrap_or(u64::MAX);
        }
    }

    /// At each point t: demand + one later packet ≤ t. The least that is left there, the end at most. Points
    /// are the deadlines before the end, or the bounds of levels.
    fn slack(&self, end: u64, left_to_do: &mut usize) -> Result<u128, Fault> {
        let mut slack = u128::from(end);
        let is_point = |k: u64, t: u64| if self.port.levels == 1 { k == 0 } else { t < end };
        for flow in self.flows() {
            let all = (0..).map(|k| (k, flow.deadline(k)));
            for (_, t) in all.take_while(|(k, t)| is_point(*k, *t)) {
                self.look(left_to_do)?;
                slack = slack.min(self.left_at(t).ok_or(Fault::Fails("slack"))?);
            }
        }
        Ok(slack)
    }

    fn left_at(&self, t: u64) -> Option<u128> {
        let due = |flow: &Flow| match t.checked_sub(flow.delay) {
            None => 0,
            // Of a level's bound all that is released before it and goes first.
            Some(_) if self.port.levels == 1 => flow.work(t, false),
            Some(age) => flow.work(age, true),
        };
        let demand = self.flows().map(due).sum::<u128>() + self.above(t);
        let later = self.flows().filter(|flow| flow.delay > t).map(|flow| flow.service);
        let blocking = later.fold(self.port.ordinary, u64::max);
        u128::from(t).checked_sub(demand + u128::from(blocking))
    }
}
