//! The exact test of [`super::edf`], kept ready for the next channel (`TENET-5.2.4-2`).
//!
//! The table holds every point of the standing flows below a horizon, in order, each with the demand up to it
//! and the largest packet that may be ahead there. A further flow is tested in one pass over the points, and
//! in the same pass its shortest bound is found: no division a point, no memory taken.
//!
//! *Horizon.* A flow's count is below the line N_c(x)·s ≤ λ·(x + p), with λ = s·B/I and p = I − (B−1)·X_min
//! ([`Traffic::pause`]): equality holds at the last packet of each burst. So from max d on the demand is
//! below Σ λ_j·(t − d_j + p_j), a line whose slope is the load. Where that line and s_max stay below t
//! once, they do for ever: no point behind needs a look. All λ are rounded up. A load of exactly 1 is
//! refused here, since the line then never gives an end; [`super::edf_exact`] decides it.
//!
//! *Shortest bound.* Let point i be at t_i, the next one at t_(i+1), and free = t_i − demand − blocking. At t
//! in between, free + (t − t_i) is left for the new flow. It is below (m + 1)·s until τ_m = t_i + (m + 1)·s −
//! free. Up to the earlier of τ_m and t_(i+1) the new flow may have m packets due, so d ≥ that time − g(m +
//! 1), g the greedy sequence. Each m from ⌊free/s⌋ to the first with τ_m ≥ t_(i+1) gives a bound; the
//! largest is necessary and sufficient. Beside it the new packet may block every standing point that is due
//! before d. No bound of this interval exceeds t_(i+1) − g(⌊free/s⌋ + 1), so it is longer than a bound d
//! found before only if more than free/s packets of the new flow are released before t_(i+1) − d: at nearly
//! all points that comparison is the whole work.
//!
//! *Memory.* The end, and with it the number of points, grows as 1/(1 − load), and a shorter bound moves it
//! further out. Where the points of a question are more than the memory holds the answer is
//! [`NodeTest::Undecided`], and the table stands as it did. **Every other answer is that of the exact test.**
//! A flow that has left fits again as it stood, also beside others that were relaxed since, unless its
//! question is undecided: the shortest bound is looked for first, and asks for more points than the one that
//! it had.
//!
//! *Work above.* A port may serve other work before all packets: so much at most in any half-open window of
//! W. In [0, t) that is ⌈t/W⌉ times the work of a window. The caller counts the first one in s_0; each
//! further one is a point at k·W + 1 ns, where the demand rises. It has no deadline, so nothing is asked of
//! such a point itself, but only of the packets that are due behind it. Its line is that of a flow of period
//! and bound W.

use super::denied::{Denied, NodeTest};
use super::edf::Flow;
use super::load::{WHOLE, beyond, load_up};
use super::traffic::Traffic;
use core::ops::DerefMut;
use rota_units::Span;

/// One point of the demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    at: u64,
    /// Demand of all standing flows that is due by then.
    demand: u64,
    /// The largest packet that is due later, standing flows only.
    blocking: u64,
    /// No packet is due then: only work above becomes more.
    is_above: bool,
}

/// The flows of a port with all points of their demand.
///
/// Its memory is borrowed or owned: slices of flows and points, or boxes of them.
#[derive(Clone, Debug)]
pub struct EdfTable<F, P> {
    ordinary: u64,
    flows: F,
    standing: usize,
    points: P,
    used: usize,
    /// The same before points of one time are joined.
    written: usize,
    /// Every point below it is in the table.
    horizon: u64,
    tail: Tail,
    above: Above,
}

/// Work that is served before all packets.
#[derive(Clone, Copy, Debug, Default)]
struct Above {
    window: u64,
    work: u64,
}

/// Σ λ·(t − d + p) = constant + slope·t, in 2⁻⁶⁴ ns, and what goes with it.
#[derive(Clone, Copy, Debug, Default)]
struct Tail {
    slope: u128,
    constant: i128,
    delay_max: u64,
    service_max: u64,
}

impl Tail {
    fn with(self, flow: &Flow) -> Self {
        let (slope, constant) = line(flow);
        Self {
            slope: self.slope.saturating_add(slope),
            constant: self.constant.saturating_add(constant),
            delay_max: self.delay_max.max(flow.delay.as_nanos()),
            service_max: self.service_max.max(flow.service.as_nanos()),
        }
    }

    /// The tail where `gone` has left and `flows` stay, beside ordinary packets of at most `ordinary`.
    fn without(self, gone: &Flow, flows: &[Flow], ordinary: u64) -> Self {
        let (slope, constant) = line(gone);
        let (slope, constant) = (self.slope.saturating_sub(slope), self.constant.saturating_sub(constant));
        let largest = |of: fn(&Flow) -> Span| flows.iter().map(|flow| of(flow).as_nanos()).max().unwrap_or(0);
        let service_max = ordinary.max(largest(|flow| flow.service));
        Self { slope, constant, delay_max: largest(|flow| flow.delay), service_max }
    }

    /// The time from which on no point can fail; `None` where the load leaves nothing.
    fn end(&self) -> Option<u64> {
        let left = i128::try_from(WHOLE.checked_sub(self.slope)?).ok()?;
        let need = self.constant.saturating_add(i128::from(self.service_max) << 64);
        if left == 0 {
            return (need <= 0).then_some(self.delay_max);
        }
        let end = if need <= 0 { 0 } else { (need - 1) / left + 1 };
        Some(u64::try_from(end).ok()?.max(self.delay_max))
    }
}

/// Slope and constant of one flow's line.
fn line(flow: &Flow) -> (u128, i128) {
    let load = load_up(flow);
    let shift = i128::from(flow.traffic.pause()) - i128::from(flow.delay.as_nanos());
    // A load beyond the whole is refused before the constant counts.
    (load, i128::try_from(load.min(WHOLE)).unwrap_or(i128::MAX).saturating_mul(shift))
}

impl<F: DerefMut<Target = [Flow]>, P: DerefMut<Target = [Point]>> EdfTable<F, P> {
    /// An empty port; `ordinary` as in [`super::edf_exact`]. `flows` and `points` are its memory; what is
    /// in them is overwritten.
    pub fn new(ordinary: Span, flows: F, points: P) -> Self {
        let tail = Tail { service_max: ordinary.as_nanos(), ..Tail::default() };
        Self {
            ordinary: ordinary.as_nanos(),
            flows,
            standing: 0,
            points,
            used: 0,
            written: 0,
            horizon: 0,
            tail,
            above: Above::default(),
        }
    }

    /// Becomes like `other`, without the memory that neither uses: a trial beside what stands there.
    pub fn copy(&mut self, other: &Self) {
        let Self { ordinary, standing, used, written, horizon, tail, above, .. } = *other;
        self.flows[..standing].copy_from_slice(&other.flows[..standing]);
        self.points[..used].copy_from_slice(&other.points[..used]);
        (self.standing, self.used, self.written) = (standing, used, written);
        (self.ordinary, self.horizon, self.tail, self.above) = (ordinary, horizon, tail, above);
    }

    /// The standing flows.
    pub fn flows(&self) -> &[Flow] {
        &self.flows[..self.standing]
    }

    /// Points in the table.
    pub fn points(&self) -> usize {
        self.used
    }

    /// Tests if `flow` fits beside the standing ones. It takes no memory and changes none, except that the
    /// table is extended where the flow needs a longer horizon.
    ///
    /// # Errors
    /// [`Denied`], with the shortest bound that fits.
    pub fn test(&mut self, flow: &Flow) -> Result<(), Denied> {
        let best = self.best(&flow.traffic, flow.service)?;
        if best <= flow.delay {
            return Ok(());
        }
        let margin = best.minus(flow.delay);
        Err(Denied { nearest_delay: Some(best), ..Denied::new(NodeTest::EdfExact, margin) })
    }

    /// The shortest bound that a flow of this traffic can have here now (`TENET-3.1-14`).
    ///
    /// # Errors
    /// [`Denied`] where no bound helps.
    pub fn best(&mut self, traffic: &Traffic, service: Span) -> Result<Span, Denied> {
        if self.standing >= self.flows.len() {
            return Err(Denied::new(NodeTest::TableFull, Span::ZERO));
        }
        let flow = Flow { traffic: *traffic, service, delay: service };
        // The tail of the shortest thinkable bound ends last, so its horizon serves each longer one.
        let tail = self.tail.with(&flow);
        if tail.slope >= WHOLE {
            let excess = beyond(tail.slope).unwrap_or(Span::from_nanos(1));
            return Err(Denied::new(NodeTest::Load, excess));
        }
        let mut delay = self.shortest(&flow)?;
        // A bound behind all standing ones moves the end behind itself, and the end may move the bound.
        loop {
            let end = self.tail.with(&Flow { delay: Span::from_nanos(delay), ..flow }).end();
            let end = end.ok_or(Denied::new(NodeTest::Undecided, Span::ZERO))?;
            if end <= self.horizon {
                return Ok(Span::from_nanos(delay));
            }
            self.build(end.saturating_add(end / 4))?;
            delay = self.shortest(&flow)?;
        }
    }

    /// The shortest bound that all points below the horizon allow.
    fn shortest(&self, flow: &Flow) -> Result<u64, Denied> {
        self.shortest_by(flow).map(|(delay, _)| delay)
    }

    /// The same, and at how many points more than a comparison was needed.
    fn shortest_by(&self, flow: &Flow) -> Result<(u64, u64), Denied> {
        shortest(flow, &self.points[..self.used], self.horizon, self.tail.service_max)
    }

    /// Adds `flow`, which the caller has tested or wants tested now.
    ///
    /// # Errors
    /// As [`Self::test`]; the table is unchanged then.
    pub fn admit(&mut self, flow: &Flow) -> Result<(), Denied> {
        self.test(flow)?;
        let kept = self.tail;
        self.flows[self.standing] = *flow;
        self.standing += 1;
        self.tail = self.tail.with(flow);
        let end = self.tail.end().unwrap_or(self.horizon);
        if end <= self.horizon && self.enter(flow, kept.service_max).is_ok() {
            return Ok(());
        }
        // Without room below a horizon that is further than need be there may be some below the end.
        self.build(end).inspect_err(|_| {
            self.standing -= 1;
            self.tail = kept;
        })
    }

    /// Enters the points of a further flow below the horizon. `largest` is the largest packet of all others.
    /// An error changes nothing.
    fn enter(&mut self, flow: &Flow, largest: u64) -> Result<(), Denied> {
        let new = below(flow, self.horizon);
        if new > (self.points.len() - self.written) as u64 {
            return Err(Denied::new(NodeTest::Undecided, Span::ZERO));
        }
        let new = new as usize;
        self.used = enter(flow, &mut self.points[..self.used + new], self.used, largest);
        self.written += new;
        Ok(())
    }

    /// Removes the flow at `index`; the last one takes its place.
    pub fn release(&mut self, index: usize) {
        if index >= self.standing {
            return;
        }
        let gone = self.flows[index];
        self.standing -= 1;
        self.flows[index] = self.flows[self.standing];
        self.tail = self.tail.without(&gone, &self.flows[..self.standing], self.ordinary);
        let end = self.tail.end().unwrap_or(self.horizon);
        if end >= self.horizon / 2 {
            return self.leave(&gone);
        }
        // Most of the points are behind the end now: a table without them is quicker to test.
        let built = self.build(end);
        assert!(built.is_ok(), "fewer flows need no more points");
    }

    /// Takes out the points of a flow that stands no more, in one pass: the reverse of [`Self::enter`].
    fn leave(&mut self, gone: &Flow) {
        let (delay, service) = (gone.delay.as_nanos(), gone.service.as_nanos());
        let due = |m: u64| delay.saturating_add(gone.traffic.greedy(m).as_nanos());
        let (mut left, mut next, mut used, mut demand) = (0, due(1), 0, 0);
        for from in 0..self.used {
            let mut point = self.points[from];
            let is_its_own = point.at == next;
            if is_its_own {
                (left, next) = (left + 1, due(left + 2));
            }
            point.demand = point.demand.saturating_sub(service.saturating_mul(left));
            if is_its_own {
                let (above, others) = (self.above.at(point.at), point.demand - demand);
                // Only what else is due then keeps the point.
                if others == 0 && above.is_none() {
                    continue;
                }
                point.is_above |= above == Some(others);
            }
            (self.points[used], demand) = (point, point.demand);
            used += 1;
        }
        self.used = used;
        self.written -= left as usize;
        let before = self.points[..used].partition_point(|point| point.at < delay);
        // The largest packet that may block rises towards the first point.
        if before.checked_sub(1).is_some_and(|last| self.points[last].blocking <= service) {
            self.block();
        }
    }

    /// Finds the largest packet behind each point anew: the points of all first packets are there.
    fn block(&mut self) {
        let points = &mut self.points[..self.used];
        points.iter_mut().for_each(|point| point.blocking = 0);
        for flow in &self.flows[..self.standing] {
            let delay = flow.delay.as_nanos();
            let place = points.partition_point(|point| point.at < delay);
            if let Some(first) = points.get_mut(place).filter(|point| point.at == delay) {
                first.blocking = first.blocking.max(flow.service.as_nanos());
            }
        }
        let behind = self.largest_behind(self.horizon);
        block_by_later(&mut self.points[..self.used], behind);
    }

    /// Gives the flow at `index` a longer bound, which never invalidates the others' ([`crate::path`]).
    ///
    /// # Errors
    /// [`NodeTest::Undecided`]: the points of the longer bound have no room; nothing has changed.
    pub fn relax(&mut self, index: usize, delay: Span) -> Result<(), Denied> {
        let had = self.flows()[index];
        assert!(delay >= had.delay, "relaxing shortens no bound");
        let longer = Flow { delay, ..had };
        self.flows[index] = longer;
        let tail = self.tail.without(&had, &self.flows[..self.standing], self.ordinary).with(&longer);
        let is_near = tail.end().is_some_and(|end| end <= self.horizon);
        if is_near && self.enter(&longer, self.tail.service_max).is_ok() {
            self.leave(&had);
            self.tail = tail;
            return Ok(());
        }
        self.test_all().inspect_err(|_| {
            self.flows[index] = had;
            self.restore();
        })
    }

    /// Another s_0, and so much work above in each window, if all flows keep their bounds beside it. The s_0
    /// counts the work of one window.
    ///
    /// # Errors
    /// [`Denied`]; nothing has changed.
    pub fn set_above(&mut self, ordinary: Span, window: Span, work: Span) -> Result<(), Denied> {
        let kept = (self.ordinary, self.above);
        self.above = Above { window: window.as_nanos(), work: work.as_nanos() };
        self.ordinary = ordinary.as_nanos();
        self.test_all().inspect_err(|_| {
            (self.ordinary, self.above) = kept;
            self.restore();
        })
    }

    /// The table of the flows that stood before a change.
    fn restore(&mut self) {
        let built = self.test_all();
        assert!(built.is_ok(), "they had room and kept their bounds");
    }

    /// Writes the table of its flows anew and tests each point.
    fn test_all(&mut self) -> Result<(), Denied> {
        self.tail = self.tail_of_all();
        if self.tail.slope >= WHOLE {
            let excess = beyond(self.tail.slope).unwrap_or(Span::from_nanos(1));
            return Err(Denied::new(NodeTest::Load, excess));
        }
        let end = self.tail.end().ok_or(Denied::new(NodeTest::Undecided, Span::ZERO))?;
        self.build(end)?;
        let late = |point: &Point| point.demand.saturating_add(point.blocking).saturating_sub(point.at);
        match self.points[..self.used].iter().filter(|point| !point.is_above).map(late).max() {
            Some(late) if late > 0 => Err(Denied::new(NodeTest::EdfExact, Span::from_nanos(late))),
            _ => Ok(()),
        }
    }

    fn tail_of_all(&self) -> Tail {
        let empty = Tail { service_max: self.ordinary, ..Tail::default() };
        let all = self.flows().iter().fold(empty, |tail, flow| tail.with(flow));
        let window = Span::from_nanos(self.above.window);
        // Only its line counts: it is no packet, and has no bound that the end must be behind.
        match Traffic::periodic(window) {
            Ok(traffic) => {
                let service = Span::from_nanos(self.above.work);
                let Tail { slope, constant, .. } = all.with(&Flow { traffic, service, delay: window });
                Tail { slope, constant, ..all }
            }
            Err(_) => all,
        }
    }

    /// Writes all points below `horizon`. An error changes nothing: they are counted first.
    fn build(&mut self, horizon: u64) -> Result<(), Denied> {
        let flows = &self.flows[..self.standing];
        let all = flows.iter().map(|flow| below(flow, horizon));
        if all.fold(self.above.below(horizon), u64::saturating_add) > self.points.len() as u64 {
            return Err(Denied::new(NodeTest::Undecided, Span::ZERO));
        }
        self.written = write(flows, self.above, horizon, &mut self.points);
        let behind = self.largest_behind(horizon);
        self.used = sum_up(&mut self.points[..self.written], behind);
        self.horizon = horizon;
        Ok(())
    }

    /// The largest packet of ordinary traffic and of flows whose bound is at the horizon or behind.
    fn largest_behind(&self, horizon: u64) -> u64 {
        let behind = self.flows().iter().filter(|flow| flow.delay.as_nanos() >= horizon);
        behind.map(|flow| flow.service.as_nanos()).fold(self.ordinary, u64::max)
    }
}

// Others choose the table's kind of memory, and build it anew for each. The walks through all points stand
// apart from it: they are built once, in this crate.

/// The shortest bound that all points below the horizon allow, and at how many of them more than a comparison
/// was needed. `largest` is the largest standing packet.
fn shortest(flow: &Flow, points: &[Point], horizon: u64, largest: u64) -> Result<(u64, u64), Denied> {
    let service = flow.service.as_nanos();
    let (mut delay, mut looks) = (service, 0);
    let mut released = Released::default();
    let mut before = Point { at: 0, demand: 0, blocking: largest, is_above: true };
    let last = Point { at: horizon, is_above: true, ..Point::default() };
    for next in points.iter().chain([&last]).copied() {
        // Its own packet may be ahead of all that is due before its bound.
        let free = next.at.saturating_sub(next.demand);
        if free < service && !next.is_above {
            return Err(Denied::new(NodeTest::EdfExact, Span::from_nanos(service - free)));
        }
        if before.free() < released.work(flow, next.at.saturating_sub(delay)) {
            looks += 1;
            let needs = need(flow, before, next.at);
            if needs > delay {
                (delay, released) = (needs, Released::default());
            }
        }
        before = next;
    }
    Ok((delay, looks))
}

/// When packet m of a flow is due, m from 1 on.
fn due(flow: &Flow, m: u64) -> u64 {
    flow.delay.as_nanos().saturating_add(flow.traffic.greedy(m).as_nanos())
}

/// How many packets of a flow are due below a horizon.
fn below(flow: &Flow, horizon: u64) -> u64 {
    flow.traffic.half_open(Span::from_nanos(horizon.saturating_sub(flow.delay.as_nanos())))
}

/// Enters the points of a further flow, in one pass from the last one on. `points` has the `used` ones that
/// are there, and room for as many as the flow has; `largest` is the largest packet of all others. How many
/// there are then.
fn enter(flow: &Flow, points: &mut [Point], used: usize, largest: u64) -> usize {
    let service = flow.service.as_nanos();
    let end = points.len();
    let (mut from, mut to) = (used, end);
    for m in (1..=(end - used) as u64).rev() {
        let (at, more) = (due(flow, m), service.saturating_mul(m));
        let grown = |point: Point| Point { demand: point.demand.saturating_add(more), ..point };
        while from > 0 && points[from - 1].at > at {
            (from, to) = (from - 1, to - 1);
            points[to] = grown(points[from]);
        }
        to -= 1;
        let before = from.checked_sub(1).map(|before| points[before]);
        let before = before.unwrap_or(Point { at: 0, demand: 0, blocking: largest, is_above: true });
        // One of the same time is joined with it.
        from -= usize::from(from > 0 && before.at == at);
        points[to] = Point { at, is_above: false, ..grown(before) };
    }
    for point in &mut points[..from] {
        point.blocking = point.blocking.max(service);
    }
    points.copy_within(to..end, from);
    end - (to - from)
}

/// Writes the points of these flows and of the work above below `horizon`, each with its own work and packet,
/// in order. How many they are: there is room for them.
fn write(flows: &[Flow], above: Above, horizon: u64, points: &mut [Point]) -> usize {
    let mut used = 0;
    for flow in flows {
        let service = flow.service.as_nanos();
        // A first packet ends the flow's time as one that blocks; the others have nothing to end.
        let mut blocking = service;
        for m in 1..=below(flow, horizon) {
            points[used] = Point { at: due(flow, m), demand: service, blocking, is_above: false };
            (used, blocking) = (used + 1, 0);
        }
    }
    for k in 1..=above.below(horizon) {
        let at = k * above.window + 1;
        points[used] = Point { at, demand: above.work, blocking: 0, is_above: true };
        used += 1;
    }
    points[..used].sort_unstable_by_key(|point| point.at);
    used
}

/// Joins points of one time, and replaces each one's own work by the sum up to it, and its own packet by the
/// largest one behind it. How many remain.
fn sum_up(points: &mut [Point], behind: u64) -> usize {
    let mut used = 0;
    for i in 0..points.len() {
        let point = points[i];
        if used > 0 && points[used - 1].at == point.at {
            let same = &mut points[used - 1];
            same.demand = same.demand.saturating_add(point.demand);
            same.blocking = same.blocking.max(point.blocking);
            same.is_above &= point.is_above;
        } else {
            points[used] = point;
            used += 1;
        }
    }
    let mut sum = 0u64;
    for point in &mut points[..used] {
        sum = sum.saturating_add(point.demand);
        point.demand = sum;
    }
    block_by_later(&mut points[..used], behind);
    used
}

/// Replaces each point's own first packet by the largest one behind it.
fn block_by_later(points: &mut [Point], behind: u64) {
    let mut largest = behind;
    for point in points.iter_mut().rev() {
        (point.blocking, largest) = (largest, largest.max(point.blocking));
    }
}

impl Above {
    /// The work that a window begins with at this point; `None` where none begins.
    fn at(&self, point: u64) -> Option<u64> {
        let begun = point.checked_sub(1).filter(|begun| self.window > 0 && *begun > 0)?;
        (begun % self.window == 0).then_some(self.work)
    }

    /// How many windows begin behind the first one and below a horizon.
    fn below(&self, horizon: u64) -> u64 {
        horizon.saturating_sub(2).checked_div(self.window).unwrap_or(0)
    }
}

impl Point {
    /// The slack behind it.
    fn free(&self) -> u64 {
        self.at.saturating_sub(self.demand.saturating_add(self.blocking))
    }
}

/// The work of the new flow's packets that are released before an age, with a division for each of these
/// packets, not for each age. Ages rise.
#[derive(Default)]
struct Released {
    work: u64,
    /// The next one comes then.
    until: u64,
}

impl Released {
    fn work(&mut self, flow: &Flow, age: u64) -> u64 {
        if age > self.until {
            let packets = flow.traffic.half_open(Span::from_nanos(age));
            self.work = flow.service.as_nanos().saturating_mul(packets);
            self.until = flow.traffic.greedy(packets.saturating_add(1)).as_nanos();
        }
        self.work
    }
}

/// The bound that the new flow needs for the time between two points.
fn need(flow: &Flow, point: Point, next: u64) -> u64 {
    let (service, traffic) = (flow.service.as_nanos(), &flow.traffic);
    if next <= point.at || service == 0 {
        return 0;
    }
    let taken = point.demand.saturating_add(point.blocking);
    // Before the first point nothing is due, and what blocks may take longer than there was time.
    let (free, lack) = (point.at.saturating_sub(taken), taken.saturating_sub(point.at));
    let first = free / service;
    // From one packet to the next the time rises by s at most and the greedy sequence by X_min at least, over
    // a whole interval by B·s and I: later ones than these ask for no more.
    let count = if traffic.x_min() >= flow.service { 1 } else { traffic.burst() };
    let mut most = 0;
    for m in first..first.saturating_add(count) {
        let enough = (m + 1).saturating_mul(service) - free;
        let until = point.at.saturating_add(lack).saturating_add(enough).min(next);
        most = most.max(until.saturating_sub(traffic.greedy(m + 1).as_nanos()));
        if until >= next {
            break;
        }
    }
    most
}

#[cfg(test)]
mod tests;
