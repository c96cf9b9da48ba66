//! Rate-controlled static priority (`TENET-4.2-7`): levels with bounds d_1 < d_2 < …, the first one served
//! first, packets of a level in the order in which they became eligible.
//!
//! **Σ_{q ≤ m} Σ_{j ∈ q} N_o,j(d_m)·s_j + s_max ≤ d_m  for every level m that has a channel**
//!
//! *Proof.* Call a level m period a longest time in which some eligible packet of a level up to m is waiting
//! or on the wire. When it begins, at 0, at most one packet of a lower level is on the wire. Packets of
//! levels up to m that become eligible in [0, d_m) take Σ N_o·s at most, so at some τ ≤ d_m all that became
//! eligible in [0, τ) has left: the period ends by d_m, and each of its packets has stayed no longer.
//! Regulators make N_o hold at every node.
//!
//! As printed (Zhang, Ferrari 1993) s_max is the largest packet on the link. The proof needs the largest one
//! *below* level m only (`TENET-R5`); [`Blocker`] chooses.

use super::denied::{Denied, NodeTest};
use super::discipline::LEVELS;
use super::edf::Flow;
use super::load;
use rota_units::Span;

/// A channel at one level; its `delay` is not read, since the level's bound holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelFlow {
    /// Traffic and service.
    pub flow: Flow,
    /// Its level, from 0, the highest.
    pub level: usize,
}

/// s_max of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocker {
    /// The largest packet on the link, as printed.
    AnyPacket,
    /// The largest packet below the level.
    Below,
}

/// The room that an accepted set leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RcspFound {
    /// The least that a level's bound leaves.
    pub slack: Span,
    /// The first level that leaves so little.
    pub level: usize,
}

/// The test of a set. `bounds` are d_1, d_2, … and rise; `ordinary` is the largest ordinary packet.
///
/// # Errors
/// [`NodeTest::Load`], or [`NodeTest::RcspLevel`] with what the first failing bound lacks.
pub fn rcsp(
    flows: &[LevelFlow],
    bounds: &[Span],
    ordinary: Span,
    blocker: Blocker,
) -> Result<RcspFound, Denied> {
    check(|| flows.iter().map(pair), bounds, ordinary, blocker)
}

fn pair(flow: &LevelFlow) -> (&Flow, usize) {
    (&flow.flow, flow.level)
}

/// The test of flows whose bounds name their levels, beside work that is served before all of them: a flow
/// at the highest level that has any.
///
/// # Errors
/// As [`rcsp()`]; [`NodeTest::TableFull`] for more levels than a port has.
pub fn rcsp_below(flows: &[Flow], ordinary: Span, above: Option<&Flow>) -> Result<RcspFound, Denied> {
    // The last level is ordinary traffic's.
    let (mut bounds, mut count) = ([Span::MAX; LEVELS + 1], 0);
    let mut next = flows.iter().map(|flow| flow.delay).min();
    while let Some(bound) = next {
        *bounds.get_mut(count).ok_or(Denied::new(NodeTest::TableFull, Span::ZERO))? = bound;
        count += 1;
        next = flows.iter().map(|flow| flow.delay).filter(|delay| *delay > bound).min();
    }
    let level = |flow: &Flow| bounds.iter().position(|bound| *bound == flow.delay).unwrap_or(LEVELS);
    let all = || flows.iter().map(|flow| (flow, level(flow))).chain(above.map(|above| (above, 0)));
    check(all, &bounds[..count], ordinary, Blocker::Below)
}

/// The lowest level whose bound is at most `delay` and at which `new` fits: RCSP's way of relaxing.
///
/// # Errors
/// [`Denied`] of the level that `delay` allows, with the shortest bound of a level that fits.
pub fn rcsp_level(
    standing: &[LevelFlow],
    new: &Flow,
    bounds: &[Span],
    ordinary: Span,
    blocker: Blocker,
) -> Result<usize, Denied> {
    lowest(new.delay, bounds, |level| {
        check(|| standing.iter().map(pair).chain([(new, level)]), bounds, ordinary, blocker)
    })
}

/// The lowest level whose bound is at most `delay` and at which the test succeeds.
pub(crate) fn lowest<T>(
    delay: Span,
    bounds: &[Span],
    at: impl Fn(usize) -> Result<T, Denied>,
) -> Result<usize, Denied> {
    let allowed = bounds.iter().take_while(|bound| **bound <= delay).count();
    let Some(lowest) = allowed.checked_sub(1) else {
        let lacks = bounds.first().map_or(Span::MAX, |bound| bound.minus(delay));
        let longer = bounds.iter().zip(0..).find(|(_, level)| at(*level).is_ok());
        let nearest_delay = longer.map(|(bound, _)| *bound);
        return Err(Denied { nearest_delay, ..Denied::new(NodeTest::RcspLevel, lacks) });
    };
    let refused = match at(lowest) {
        Ok(_) => return Ok(lowest),
        Err(denied) => denied,
    };
    // A level that is empty so far may fail where the one above it does not.
    (0..lowest).rev().find(|&level| at(level).is_ok()).ok_or_else(|| {
        let longer = (allowed..bounds.len()).find(|&level| at(level).is_ok());
        Denied { nearest_delay: longer.map(|level| bounds[level]), ..refused }
    })
}

/// [`rcsp`] of flows with their levels.
pub(crate) fn check<'f, I>(
    flows: impl Fn() -> I,
    bounds: &[Span],
    ordinary: Span,
    blocker: Blocker,
) -> Result<RcspFound, Denied>
where
    I: Iterator<Item = (&'f Flow, usize)> + Clone,
{
    assert!(bounds.is_sorted_by(|a, b| a < b), "the bounds of levels rise");
    assert!(flows().all(|(_, level)| level < bounds.len()), "each channel has a level");
    if let Some(excess) = load::excess(flows().map(|(flow, _)| flow)) {
        return Err(Denied::new(NodeTest::Load, excess));
    }
    let mut found = RcspFound { slack: Span::MAX, level: 0 };
    for (level, bound) in bounds.iter().enumerate() {
        if !flows().any(|(_, of)| of == level) {
            continue;
        }
        let can_block = flows().filter(|(_, of)| blocker == Blocker::AnyPacket || *of > level);
        let block = can_block.map(|(flow, _)| flow.service).fold(ordinary, Span::max);
        let work = flows().filter(|(_, of)| *of <= level).map(|(flow, _)| {
            u128::from(flow.traffic.half_open(*bound)) * u128::from(flow.service.as_nanos())
        });
        let need = work.sum::<u128>() + u128::from(block.as_nanos());
        let have = u128::from(bound.as_nanos());
        let Some(slack) = have.checked_sub(need) else {
            let lacks = u64::try_from(need - have).unwrap_or(u64::MAX);
            return Err(Denied::new(NodeTest::RcspLevel, Span::from_nanos(lacks)));
        };
        let slack = Span::from_nanos(slack as u64);
        if slack < found.slack {
            found = RcspFound { slack, level };
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
