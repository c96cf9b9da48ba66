//! The share of a port that flows take, in units of 2⁻⁶⁴, and whether it exceeds the whole.

use super::edf::Flow;
use rota_units::Span;

/// The whole port.
pub const WHOLE: u128 = 1 << 64;

/// `work` each `period`, rounded up.
pub fn share_up(work: u128, period: u128) -> u128 {
    // A share of 2⁶⁰ ports is beyond any whole one: what is cut off there decides nothing.
    ((work / period).min(1 << 60) << 64) + ((work % period) << 64).div_ceil(period)
}

/// Nanoseconds of work beyond one second in each second, rounded up, where a sum of shares exceeds the port.
pub fn beyond(load: u128) -> Option<Span> {
    let more = load.checked_sub(WHOLE).filter(|more| *more > 0)?;
    let nanos = (more >> 20).saturating_mul(1_000_000_000) >> 44;
    Some(Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX).max(1)))
}

/// s·B/I of one flow, rounded up.
pub fn load_up(flow: &Flow) -> u128 {
    let (work, interval) = work_of(flow);
    share_up(work, interval)
}

fn load_down(flow: &Flow) -> u128 {
    let (work, interval) = work_of(flow);
    ((work / interval).min(1 << 60) << 64) + ((work % interval) << 64) / interval
}

/// s·B and I.
fn work_of(flow: &Flow) -> (u128, u128) {
    let interval = u128::from(flow.traffic.interval().as_nanos());
    (u128::from(flow.service.as_nanos()) * u128::from(flow.traffic.burst()), interval)
}

/// True if the flows, each rounded up, leave nothing.
pub fn is_whole<'f>(flows: impl Iterator<Item = &'f Flow>) -> bool {
    flows.map(load_up).fold(0, u128::saturating_add) >= WHOLE
}

/// As [`beyond`], if Σ s·B/I exceeds 1; decided exactly
/// wherever the least common multiple of all I fits 64 bits, and else against the applicant within 2⁻⁴⁴.
pub fn excess<'f>(flows: impl Iterator<Item = &'f Flow> + Clone) -> Option<Span> {
    let up: u128 = flows.clone().map(load_up).fold(0, u128::saturating_add);
    let excess = beyond(up)?;
    let down: u128 = flows.clone().map(load_down).fold(0, u128::saturating_add);
    if down <= WHOLE && exactly_at_most_one(flows) {
        return None;
    }
    Some(excess)
}

/// Σ s·B·(L/I) ≤ L, L the least common multiple; false where that does not fit the integers.
fn exactly_at_most_one<'f>(flows: impl Iterator<Item = &'f Flow> + Clone) -> bool {
    let Some(common) = lcm(flows.clone()) else { return false };
    let common = u128::from(common);
    let add = |sum: u128, flow: &Flow| {
        let (work, interval) = work_of(flow);
        sum.checked_add(work.checked_mul(common / interval)?)
    };
    let mut flows = flows;
    flows.try_fold(0, add).is_some_and(|sum| sum <= common)
}

/// The least common multiple of all I.
pub fn lcm<'f>(mut flows: impl Iterator<Item = &'f Flow>) -> Option<u64> {
    flows.try_fold(1u64, |common, flow| {
        let interval = flow.traffic.interval().as_nanos();
        common.checked_mul(interval / gcd(common, interval))
    })
}

/// The greatest common divisor; neither is zero.
pub const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtip::Traffic;

    fn flow(service: u64, interval: u64) -> Flow {
        let interval = Span::from_nanos(interval);
        let traffic = Traffic::periodic(interval).unwrap();
        Flow { traffic, service: Span::from_nanos(service), delay: interval }
    }

    #[test]
    fn a_load_of_exactly_one_is_told_from_one_that_is_a_trifle_more() {
        let thirds = [flow(1, 3); 3];
        assert!(thirds.iter().map(load_up).sum::<u128>() > WHOLE, "the sum of what is rounded up");
        assert_eq!(excess(thirds.iter()), None);
        let more = [flow(1, 3), flow(1, 3), flow(1, 3), flow(1, 1_000_000_000_000)];
        assert_eq!(excess(more.iter()), Some(Span::from_nanos(1)));
        assert_eq!(excess([flow(3, 2)].iter()), Some(Span::from_millis(500)));
        assert_eq!(excess([].iter()), None);
    }

    #[test]
    fn what_the_integers_cannot_hold_counts_against_the_applicant() {
        // Primes near 10¹²: their product has no place in 64 bits.
        let primes = [999_999_999_989, 999_999_999_961, 999_999_999_937];
        assert_eq!(lcm(primes.map(|p| flow(1, p)).iter()), None);
        let full: Vec<Flow> = primes.iter().map(|&p| flow(p / 3 + 1, p)).collect();
        assert!(excess(full.iter()).is_some());
        let huge = Flow { service: Span::MAX, ..flow(1, 1) };
        assert!(excess([huge, huge].iter()).is_some());
    }
}
