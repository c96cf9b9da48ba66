//! Non-preemptive earliest deadline first, tested exactly (`TENET-4.2-5`, `TENET-6-1`, `TENET-R2`).
//!
//! Each packet has the deadline arrival + d_j. A set keeps all deadlines if and only if
//!
//! **for all t ≥ min d:  Σ_j N_c,j(t − d_j)·s_j + max{s_k : d_k > t} ≤ t**
//!
//! where ordinary traffic counts as a flow without demand and with d = ∞, its largest packet s_0. (Liebeherr,
//! Wrege, Ferrari 1996; Georgiadis, Guérin, Parekh 1994.)
//!
//! *Sufficient.* Let a packet with deadline t be late, and 0 the last instant before at which the server was
//! idle or began a packet with a deadline beyond t. All that it served since arrived at 0 or later and has
//! its deadline at t or earlier: N_c,j(t − d_j)·s_j at most. Ahead of it is one packet at most, of a flow
//! with d_k > t, since it arrived before 0 and is due behind t. The sum exceeds t, for the packet is late.
//!
//! *Necessary.* Let the largest such packet begin just before 0, and every flow begin its greedy sequence at
//! 0: all counted work has its deadline at t or earlier, and cannot be done by t.
//!
//! *Points.* The left side rises only at t = d_j + an arrival of the greedy sequence, so these are checked.
//!
//! *End.* Let L be the first t > 0 with Σ N_o,j(t)·s_j + s_max ≤ t, s_max the largest packet of all. For t
//! ≥ L the demand is at most Σ N_o,j(L)·s_j + demand(t − L), because counts are subadditive, hence at most
//! L − s_max + (t − L): by induction no t ≥ L fails where none below does. If the load is exactly 1, L may
//! not exist; the slack behind max d then repeats with the least common multiple of all I.
//!
//! *Packets ahead* (`TENET-R3`). Delay-EDD gives a packet the deadline of its expected arrival max(AT_k,
//! ExA_(k−1) + X_min, ExA_(k−B) + I) + d, and holds nothing. Behind the first node a packet may come before
//! that, and one of a flow with d_k ≤ t may block as well. The test holds unchanged: packets of a flow come
//! in order and their deadlines rise, so behind a packet that is due after t none of flow k is due by t,
//! while the sum counts N_c,k(t − d_k) ≥ 1 of them.

use super::denied::{Denied, NodeTest};
use super::load;
use super::traffic::Traffic;
use rota_units::Span;

/// A channel at one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its packets in time.
    pub traffic: Traffic,
    /// s: the time of its largest packet on the port, headers and framing included.
    pub service: Span,
    /// d: its bound here, from the arrival to the end of the packet on the port.
    pub delay: Span,
}

/// The room that an accepted set leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdfFound {
    /// The least of t − demand − blocking over all points.
    pub slack: Span,
    /// The first t at which it is that small; zero where no point is below the horizon.
    pub at: Span,
    /// L: no point at or behind it was checked.
    pub horizon: Span,
    /// How many points were checked.
    pub points: u64,
}

/// The most flow counts of one test, about a second of a fast core.
const WORK_MAX: u64 = 1 << 27;

/// `ordinary` or the largest packet of any flow.
pub(crate) fn largest<'f>(flows: impl Iterator<Item = &'f Flow>, ordinary: Span) -> Span {
    flows.map(|flow| flow.service).fold(ordinary, Span::max)
}

/// The largest packet that can be ahead of all that is due at `t`.
pub(crate) fn blocking<'f>(flows: impl Iterator<Item = &'f Flow>, ordinary: Span, t: Span) -> Span {
    largest(flows.filter(|flow| flow.delay > t), ordinary)
}

/// Σ N_c,j(t − d_j)·s_j.
pub(crate) fn demand<'f>(flows: impl Iterator<Item = &'f Flow>, t: Span) -> u128 {
    let due = flows.filter_map(|flow| {
        let packets = flow.traffic.closed(t.checked_sub(flow.delay)?);
        Some(u128::from(packets) * u128::from(flow.service.as_nanos()))
    });
    due.sum()
}

/// N_o(t)·s of one flow.
fn released(flow: &Flow, t: Span) -> u128 {
    u128::from(flow.traffic.half_open(t)) * u128::from(flow.service.as_nanos())
}

/// The exact test of a set of flows. `ordinary` is s_0: what other traffic may put ahead of a packet, its
/// largest frame and what waits in the card.
///
/// # Errors
/// [`NodeTest::Load`], [`NodeTest::EdfExact`] with how late a packet would be, or [`NodeTest::Undecided`]. No
/// nearest bound is named: [`edf_delay`] finds it for one flow among others.
pub fn edf_exact(flows: &[Flow], ordinary: Span) -> Result<EdfFound, Denied> {
    check(|| flows.iter(), ordinary, None)
}

/// The same of a port that serves other work before all packets: that of `above`, a flow whose bound is not
/// read and whose count in [0, t), of work A(t), joins the demand at each point.
///
/// *End.* Let Σ be its work in a window W, and L the first t > 0 with Σ N_o,j(t)·s_j + A(t) + Σ + s_max ≤ t.
/// Where no point below x fails, demand(x) + A(x) ≤ x + Σ: at the last point p before x both are p at most,
/// and A(x) − A(p) is Σ·⌈(x − p)/W⌉ at most, hence x − p + Σ. With x = t − L, and since counts are
/// subadditive, no point t ≥ L is the first one that fails.
///
/// # Errors
/// As [`edf_exact`].
pub fn edf_exact_below(flows: &[Flow], ordinary: Span, above: Option<&Flow>) -> Result<EdfFound, Denied> {
    check(|| flows.iter(), ordinary, above)
}

/// L of [`edf_exact_below`]. No time in which the port is busy is longer.
///
/// # Errors
/// [`NodeTest::Undecided`] where it takes too long to find.
pub fn busy_most(flows: &[Flow], ordinary: Span, above: Option<&Flow>) -> Result<Span, Denied> {
    let mut work_left = WORK_MAX;
    horizon(&|| flows.iter(), (ordinary, above), flows.len().max(1) as u64, &mut work_left)
}

/// The shortest bound with which a packet stream fits beside `standing`, `least` or longer.
///
/// A longer bound never invalidates a set ([`crate::path`]), so halving the interval finds it.
///
/// # Errors
/// [`Denied`] where no bound helps.
pub fn edf_delay(standing: &[Flow], new: &Flow, ordinary: Span) -> Result<Span, Denied> {
    let fits = |delay: Span| {
        let flow = Flow { delay, ..*new };
        check(|| standing.iter().chain([&flow]), ordinary, None)
    };
    // Behind every standing bound, and behind all that one busy period can hold, nothing is gained.
    let far = Span::from_nanos(1 << 50);
    fits(far)?;
    let (mut bad, mut good) = (new.service.minus(Span::from_nanos(1)), far);
    while good.minus(bad) > Span::from_nanos(1) {
        let middle = bad + good.minus(bad).div_down(2);
        match fits(middle) {
            Ok(_) => good = middle,
            Err(denied) if denied.test == NodeTest::Undecided => return Err(denied),
            Err(_) => bad = middle,
        }
    }
    Ok(good)
}

fn check<'f, I>(flows: impl Fn() -> I, ordinary: Span, above: Option<&'f Flow>) -> Result<EdfFound, Denied>
where
    I: Iterator<Item = &'f Flow> + Clone,
{
    if let Some(excess) = load::excess(flows().chain(above)) {
        return Err(Denied::new(NodeTest::Load, excess));
    }
    let count = flows().count().max(1) as u64;
    let mut work_left = WORK_MAX;
    let horizon = horizon(&flows, (ordinary, above), count, &mut work_left)?;
    let mut found = EdfFound { slack: horizon, at: Span::ZERO, horizon, points: 0 };
    let mut next = flows().map(|flow| flow.delay).min().unwrap_or(horizon);
    while next < horizon {
        let t = next;
        work_left = work_left.checked_sub(count).ok_or(Denied::new(NodeTest::Undecided, Span::ZERO))?;
        let due = demand(flows(), t) + above.map_or(0, |above| released(above, t));
        let need = due + u128::from(blocking(flows(), ordinary, t).as_nanos());
        let Some(slack) = u128::from(t.as_nanos()).checked_sub(need) else {
            let late = need - u128::from(t.as_nanos());
            let late = Span::from_nanos(u64::try_from(late).unwrap_or(u64::MAX));
            return Err(Denied::new(NodeTest::EdfExact, late));
        };
        let slack = Span::from_nanos(slack as u64);
        if slack < found.slack {
            (found.slack, found.at) = (slack, t);
        }
        found.points += 1;
        next = flows().map(|flow| next_point(flow, t)).min().unwrap_or(horizon);
    }
    Ok(found)
}

/// The first point of `flow` behind `t`.
pub(crate) fn next_point(flow: &Flow, t: Span) -> Span {
    match t.checked_sub(flow.delay) {
        Some(age) => flow.delay + flow.traffic.next_jump(age),
        None => flow.delay,
    }
}

/// L, or max d and one common period where the load is 1 and L does not come before.
fn horizon<'f, I>(
    flows: &impl Fn() -> I,
    (ordinary, above): (Span, Option<&'f Flow>),
    count: u64,
    work_left: &mut u64,
) -> Result<Span, Denied>
where
    I: Iterator<Item = &'f Flow> + Clone,
{
    let undecided = Denied::new(NodeTest::Undecided, Span::ZERO);
    let most = largest(flows(), ordinary) + above.map_or(Span::ZERO, |above| above.service);
    let delay_max = flows().map(|flow| flow.delay).max().unwrap_or(Span::ZERO);
    // One behind: the last point of the period is checked too.
    let all = || flows().chain(above);
    let period = if load::is_whole(all()) { load::lcm(all()) } else { None };
    let repeat = period.map(|common| delay_max + Span::from_nanos(common.saturating_add(1)));
    let mut busy = most.max(Span::from_nanos(1));
    loop {
        *work_left = work_left.checked_sub(count).ok_or(undecided)?;
        let next = u128::from(most.as_nanos()) + all().map(|flow| released(flow, busy)).sum::<u128>();
        if next <= u128::from(busy.as_nanos()) {
            return Ok(busy);
        }
        busy = Span::from_nanos(u64::try_from(next).map_err(|_| undecided)?);
        if let Some(repeat) = repeat
            && busy >= repeat
        {
            return Ok(repeat);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
