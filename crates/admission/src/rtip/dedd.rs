//! The original tests of Delay-EDD (Ferrari, Verma 1990) in two safe forms (`TENET-4.2-5`, `TENET-R2`).
//!
//! Both accept less than the exact test ([`super::edf`]), and are kept to show by how much. s_0 is the
//! largest ordinary packet, S = Σ s_j over all channels, T the largest packet of any channel or of ordinary
//! traffic.
//!
//! **`dedd_sum`:** Σ s_j/X_min,j ≤ 1, and d_i ≥ S + s_0 for all i. *Proof.* N_c(t − d) ≤ 1 + (t − d)/X_min,
//! so with u = Σ s_j/X_min,j and all d_j ≥ S + s_0 the demand at t is at most S + u·(t − S − s_0) ≤ t −
//! s_0. A real-time packet that blocks has no demand at t, and S holds it already.
//!
//! **`dedd_sorted`:** X_min,j ≥ S + T for all j, and d_i ≥ Σ_{d_j ≤ d_i} s_j + T. *Proof.* Write t =
//! q·(S+T) + r with r < S + T. The demand is at most q·S + Σ_{d_j ≤ r} s_j, and that sum is at most r − T,
//! or zero where no d_j ≤ r: together at most t − T if some d_j ≤ r or q ≥ 1.
//!
//! Packets ahead of their time change neither, as in the exact test.

use super::denied::{Denied, NodeTest};
use super::edf::{Flow, largest};
use super::load;
use rota_units::Span;

fn nanos(span: Span) -> u128 {
    u128::from(span.as_nanos())
}

fn lacks(test: NodeTest, margin: u128) -> Denied {
    Denied::new(test, Span::from_nanos(u64::try_from(margin).unwrap_or(u64::MAX)))
}

fn all_services(flows: &[Flow]) -> u128 {
    flows.iter().map(|flow| nanos(flow.service)).sum()
}

/// The first form.
///
/// # Errors
/// [`NodeTest::Load`] with the work beyond one second in each, [`NodeTest::DeddSum`] with what a bound lacks
/// and the shortest bound that each channel could have.
pub fn dedd_sum(flows: &[Flow], ordinary: Span) -> Result<(), Denied> {
    // Peak rates: each s/X_min in 2⁻⁶⁴ of the port, rounded up.
    let peak = |flow: &Flow| load::share_up(nanos(flow.service), nanos(flow.traffic.x_min()));
    let load = flows.iter().map(peak).fold(0, u128::saturating_add);
    if let Some(beyond) = load::beyond(load) {
        return Err(Denied::new(NodeTest::Load, beyond));
    }
    let need = all_services(flows) + nanos(ordinary);
    match flows.iter().map(|flow| nanos(flow.delay)).min() {
        Some(least) if least < need => {
            let nearest_delay = u64::try_from(need).ok().map(Span::from_nanos);
            Err(Denied { nearest_delay, ..lacks(NodeTest::DeddSum, need - least) })
        }
        _ => Ok(()),
    }
}

/// The second form.
///
/// # Errors
/// [`NodeTest::DeddSorted`] with what an X_min or a bound lacks.
pub fn dedd_sorted(flows: &[Flow], ordinary: Span) -> Result<(), Denied> {
    let most = nanos(largest(flows.iter(), ordinary));
    let all = all_services(flows) + most;
    for flow in flows {
        let before = flows.iter().filter(|other| other.delay <= flow.delay);
        let need = before.map(|other| nanos(other.service)).sum::<u128>() + most;
        let missing = all.saturating_sub(nanos(flow.traffic.x_min()));
        let missing = missing.max(need.saturating_sub(nanos(flow.delay)));
        if missing > 0 {
            return Err(lacks(NodeTest::DeddSorted, missing));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtip::edf::tests::any_set;
    use crate::rtip::edf_exact;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        /// Both forms are inside the exact test.
        #[test]
        fn exact_edf_accepts_all_that_the_original_tests_accept((flows, ordinary) in any_set(6, 40, 300)) {
            let exact = edf_exact(&flows, ordinary).is_ok();
            prop_assert!(exact || dedd_sum(&flows, ordinary).is_err());
            prop_assert!(exact || dedd_sorted(&flows, ordinary).is_err());
        }
    }

    #[test]
    fn what_a_refusal_offers_fits() {
        let traffic = crate::rtip::Traffic::periodic(Span::from_nanos(100)).unwrap();
        let (service, delay) = (Span::from_nanos(10), Span::from_nanos(30));
        let ordinary = Span::from_nanos(15);
        let mut flows = [Flow { traffic, service, delay }; 4];
        let denied = dedd_sum(&flows, ordinary).unwrap_err();
        assert_eq!((denied.test, denied.margin), (NodeTest::DeddSum, Span::from_nanos(25)));
        flows.iter_mut().for_each(|flow| flow.delay = denied.nearest_delay.unwrap());
        assert_eq!(dedd_sum(&flows, ordinary), Ok(()));
        assert_eq!(dedd_sorted(&flows, ordinary), Ok(()));
        flows[0].delay = Span::from_nanos(54);
        let denied = dedd_sorted(&flows[..3], ordinary);
        assert_eq!(denied, Ok(()));
        let peak = dedd_sum(&[flows[0]; 11], ordinary).unwrap_err();
        assert_eq!(peak.test, NodeTest::Load);
        assert_eq!(dedd_sorted(&[flows[0]; 11], ordinary).unwrap_err().test, NodeTest::DeddSorted);
    }
}
