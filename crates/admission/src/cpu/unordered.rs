//! The CPU of a node that serves what comes in any order (TRANSPORT-R58).
//!
//! The tests at the head of `cpu` need turns by weight, and a message that comes at most once in its period.
//! A running node has neither: it handles a frame when that comes, and a network that delays one unit and
//! not the next brings both together. Here a client is its work alone: a message of n TPDUs, C = n·u + m in
//! all, has a turn at most once in x and comes within J behind its turn.
//!
//! *Utilisation*: Σ C/x, and the work above, is at most the host's share, as before.
//!
//! *Response*: the least L with
//!
//! > L = S + B + Σ ⌈(L + J)/x⌉·C + (1 + ⌈L/p⌉)·a
//!
//! is at most the delay D that the node states for all its clients.
//!
//! *Proof.* Let t₀ be the latest time, before some message is complete, at which a message comes to a host
//! without promised work. A unit without a promise may run then, for B, or the host sleeps, for S at most;
//! from then on it works until it has nothing left. The messages of a client that come in [t₀, t₀ + L) have
//! their turns in an interval of L + J, which holds ⌈(L + J)/x⌉ at most. So by t₀ + L all that came until
//! then is complete, in whichever order: had it not been, the sum would exceed L. The message came at t₀ or
//! later, and so it took L at most. ∎
//!
//! The proof supposes that work without a promise waits while promised work is there, but for one unit.

use super::{Costs, CpuTest, Host, PERIOD_MAX, UNITS_MAX, nanos, span_of};
use crate::rtip::load;
use crate::search::largest;
use rota_units::{Octets, Span};

/// How far beyond the delay a response is looked for, so that a refusal says by how much.
const FAR: u128 = 64;
/// Most steps of the iteration: near the whole CPU one takes very many, and then the answer is no.
const STEPS_MAX: u32 = 1_000;
const MILLION: u64 = 1_000_000;

/// The CPU that a node gives to promised work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The share, S, a and p.
    pub host: Host,
    /// B: the longest unit without a promise.
    pub below: Span,
    /// D: within so long the work of a message is done.
    pub delay: Span,
}

/// The work of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// n: TPDUs of the largest message.
    pub units: u32,
    /// u: the longest time of a TPDU.
    pub unit: Span,
    /// m: what a message takes beyond that.
    pub message: Span,
    /// x: the least time between the turns of two messages.
    pub period: Span,
    /// J: how late behind its turn a message may come.
    pub jitter: Span,
}

/// The numbers of a client that was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fits {
    /// Millionths of the CPU that promised work takes with it, rounded up.
    pub load_ppm: u64,
    /// L.
    pub response: Span,
}

/// A refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    /// The test.
    pub test: CpuTest,
    /// The number that it would be: millionths of the CPU, or L in nanoseconds; the largest there is where no
    /// L was found.
    pub needed: u64,
    /// The number that it may be: the share, or D.
    pub most: u64,
    /// The TPDUs of the longest message that would be admitted, all else being equal.
    pub nearest_units: Option<u32>,
    /// The shortest period that would be admitted, all else being equal.
    pub nearest_period: Option<Span>,
}

impl Over {
    const fn new(test: CpuTest, needed: u64, most: u64) -> Self {
        Self { test, needed, most, nearest_units: None, nearest_period: None }
    }
}

impl Work {
    /// Of messages of so many octets, cut into TPDUs of so many.
    pub fn of(costs: &Costs, message: Octets, tpdu: Octets, period: Span, jitter: Span) -> Self {
        let units = u32::try_from(Costs::units(message, tpdu)).unwrap_or(u32::MAX);
        Self { units, unit: costs.unit(tpdu.min(message)), message: costs.message, period, jitter }
    }

    /// C.
    fn whole(&self) -> u128 {
        nanos(self.message) + nanos(self.unit) * u128::from(self.units)
    }

    /// C/x in parts of [`load::WHOLE`], rounded up.
    fn load(&self) -> u128 {
        load::share_up(self.whole(), nanos(self.period).max(1))
    }

    /// C/x in millionths, rounded up.
    pub fn load_ppm(&self) -> u64 {
        ppm_up(self.load())
    }

    /// ⌈(L + J)/x⌉·C.
    fn within(&self, response: u128) -> u128 {
        (response + nanos(self.jitter)).div_ceil(nanos(self.period).max(1)) * self.whole()
    }

    fn is_sound(&self) -> bool {
        let has_times = self.period > Span::ZERO && self.period <= PERIOD_MAX && self.jitter <= PERIOD_MAX;
        (1..=UNITS_MAX).contains(&self.units) && has_times
    }
}

fn ppm_up(share: u128) -> u64 {
    let ppm = share.div_ceil(1 << 20).saturating_mul(MILLION.into()).div_ceil(1 << 44);
    u64::try_from(ppm).unwrap_or(u64::MAX)
}

/// Decides on one more client beside those that stand.
///
/// # Errors
/// The test that fails, both numbers, and the nearest requests that would be given.
pub fn admit_unordered(
    budget: &Budget,
    standing: impl Iterator<Item = Work> + Clone,
    ask: &Work,
) -> Result<Fits, Over> {
    let fits = |work: &Work| decide(budget, standing.clone().chain([*work]));
    if !ask.is_sound() {
        return Err(Over::new(CpuTest::Terms, 0, 0));
    }
    fits(ask).map_err(|over| Over {
        nearest_units: nearest_units(ask, |work| fits(work).is_ok()),
        nearest_period: nearest_period(ask, |work| fits(work).is_ok()),
        ..over
    })
}

/// The numbers of a node with these clients.
///
/// # Errors
/// As [`admit_unordered`], without the nearest requests.
pub fn decide(budget: &Budget, all: impl Iterator<Item = Work> + Clone) -> Result<Fits, Over> {
    let Host { share_ppm, slack, above } = budget.host;
    let above_load = above.map_or(0, |(work, period)| load::share_up(nanos(work), nanos(period).max(1)));
    let load = all.clone().map(|work| work.load()).fold(above_load, u128::saturating_add);
    let most = u64::from(share_ppm).min(MILLION);
    if load > load::WHOLE / u128::from(MILLION) * u128::from(most) {
        return Err(Over::new(CpuTest::Utilisation, ppm_up(load), most));
    }
    let delay = nanos(budget.delay);
    let late = |needed| Over::new(CpuTest::Response, needed, budget.delay.as_nanos());
    let mut response = nanos(slack) + nanos(budget.below);
    for _ in 0..STEPS_MAX {
        let works = all.clone().map(|work| work.within(response)).fold(0, u128::saturating_add);
        let above = above.map_or(0, |(work, period)| {
            (1 + response.div_ceil(nanos(period).max(1))).saturating_mul(nanos(work))
        });
        let next = (nanos(slack) + nanos(budget.below)).saturating_add(works).saturating_add(above);
        if next <= response {
            let response = span_of(response);
            let fits = Fits { load_ppm: ppm_up(load), response };
            return if response <= budget.delay { Ok(fits) } else { Err(late(response.as_nanos())) };
        }
        response = next;
        if response > delay.saturating_mul(FAR) {
            break;
        }
    }
    Err(late(u64::MAX))
}

fn nearest_units(ask: &Work, fits: impl Fn(&Work) -> bool) -> Option<u32> {
    let of = |units: u64| Work { units: units as u32, ..*ask };
    let is_any = fits(&of(1));
    is_any.then(|| largest(1, ask.units.into(), |units| fits(&of(units))) as u32)
}

/// A network that brings a message less often may delay it by as much more.
fn nearest_period(ask: &Work, fits: impl Fn(&Work) -> bool) -> Option<Span> {
    let most = PERIOD_MAX.minus(ask.jitter).as_nanos();
    let of = |period: u64| {
        let period = Span::from_nanos(period);
        Work { period, jitter: ask.jitter + period.minus(ask.period), ..*ask }
    };
    if most <= ask.period.as_nanos() || !fits(&of(most)) {
        return None;
    }
    let back = largest(0, most - ask.period.as_nanos(), |back| fits(&of(most - back)));
    Some(Span::from_nanos(most - back))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn us(micros: u64) -> Span {
        Span::from_micros(micros)
    }

    const BUDGET: Budget = Budget {
        host: Host { share_ppm: 500_000, slack: us(300), above: Some((us(50), us(33_333))) },
        below: us(110),
        delay: us(10_000),
    };
    const COSTS: Costs = Costs { message: us(100), tpdu: us(4), octet_ps: 1_500 };

    fn work(octets: u64, period: u64, jitter: u64) -> Work {
        Work::of(&COSTS, Octets::new(octets), Octets::new(1_436), us(period), us(jitter))
    }

    fn admitted(budget: &Budget, ask: Work) -> (Vec<Work>, Over) {
        let mut standing = Vec::new();
        loop {
            match admit_unordered(budget, standing.iter().copied(), &ask) {
                Ok(_) => standing.push(ask),
                Err(over) => return (standing, over),
            }
        }
    }

    #[test]
    fn a_node_is_filled_until_one_more_is_refused_with_both_numbers_and_the_nearest_requests() {
        let ask = work(55_000, 33_333, 40_000);
        assert_eq!((ask.units, ask.unit), (39, Span::from_nanos(6_154)));
        // Two messages of each may come within 10 ms: 340,006 ns twice.
        let (standing, over) = admitted(&BUDGET, ask);
        assert_eq!((standing.len(), over.test), (13, CpuTest::Response));
        assert_eq!((over.needed, over.most), (510_000 + 14 * 680_012, 10_000_000));
        // Both offers fit, and a little more of either does not.
        let units = over.nearest_units.expect("a shorter message fits");
        let fits = |work: Work| admit_unordered(&BUDGET, standing.iter().copied(), &work).is_ok();
        assert!(fits(Work { units, ..ask }) && !fits(Work { units: units + 1, ..ask }));
        assert_eq!(over.nearest_period, None, "two come together at any period");
        // A host that grants half of its CPU grants no more where the delay is long.
        let patient = Budget { delay: us(1_000_000), ..BUDGET };
        let (standing, over) = admitted(&patient, ask);
        assert_eq!((over.test, over.most), (CpuTest::Utilisation, 500_000));
        assert!(over.needed > 500_000 && standing.len() == 48, "{over:?}, {}", standing.len());
        let slower = over.nearest_period.expect("less often fits");
        let fits = |period| {
            let jitter = ask.jitter + period - ask.period;
            admit_unordered(&patient, standing.iter().copied(), &Work { period, jitter, ..ask }).is_ok()
        };
        assert!(fits(slower) && !fits(slower.minus(Span::from_nanos(1))));
    }

    #[test]
    fn terms_that_cannot_be_are_refused_and_no_number_overflows() {
        let ask = work(16_667, 33_333, 0);
        for bad in
            [Work { units: 0, ..ask }, Work { period: Span::ZERO, ..ask }, Work { jitter: Span::MAX, ..ask }]
        {
            let over = admit_unordered(&BUDGET, [].into_iter(), &bad).expect_err("no such work");
            assert_eq!(over.test, CpuTest::Terms);
        }
        let huge = Work { units: UNITS_MAX, unit: Span::MAX, message: Span::MAX, ..ask };
        assert!(admit_unordered(&BUDGET, [huge; 3].into_iter(), &huge).is_err());
        let budget = Budget { host: Host { slack: us(20_000), ..BUDGET.host }, ..BUDGET };
        let over = admit_unordered(&budget, [].into_iter(), &ask).expect_err("it wakes later than the delay");
        assert_eq!((over.nearest_units, over.nearest_period), (None, None));
    }

    /// A host that serves one message at a time in an order by lot: when each is complete, behind its coming.
    fn longest(budget: &Budget, works: &[Work], lot: &[u64]) -> u64 {
        let mut coming: Vec<(u64, u64)> = Vec::new();
        for (at, work) in works.iter().enumerate() {
            let phase = lot[at] % 7_000;
            for k in 0..40 {
                let lot = lot[(at * 41 + k) % lot.len()];
                // Early turns come late, and the others at once: they fall together.
                let late = if !lot.is_multiple_of(3) {
                    work.jitter.as_nanos()
                } else {
                    lot % (work.jitter.as_nanos() + 1)
                };
                let turn = phase + k as u64 * work.period.as_nanos();
                let late = if k > 3 { 0 } else { late };
                coming.push((turn + late, work.whole() as u64));
            }
        }
        coming.sort_unstable();
        let (mut now, mut longest, mut waiting) = (0, 0, Vec::<(u64, u64)>::new());
        let mut next = coming.into_iter().peekable();
        let mut draw = lot.iter().cycle();
        loop {
            while let Some(came) = next.next_if(|(at, _)| *at <= now) {
                waiting.push(came);
            }
            if waiting.is_empty() {
                let Some((at, _)) = next.peek() else { return longest };
                // It sleeps, or has just begun a unit without a promise.
                now = at + budget.host.slack.as_nanos() + budget.below.as_nanos();
                continue;
            }
            let at = *draw.next().expect("endless") as usize % waiting.len();
            let (came, takes) = waiting.swap_remove(at);
            now += takes;
            longest = longest.max(now - came);
        }
    }

    proptest! {
        /// TRANSPORT-R58: in whichever order, and however the network bunches what comes.
        #[test]
        fn what_is_admitted_is_done_within_the_response_in_any_order(
            asks in prop::collection::vec((1u64..60_000, 2_000u64..40_000, 0u64..90_000), 1..12),
            lot in prop::collection::vec(0u64..1_000_000, 50),
        ) {
            let budget = Budget { host: Host { above: None, ..BUDGET.host }, delay: us(30_000), ..BUDGET };
            let mut standing: Vec<Work> = Vec::new();
            let mut bound = Span::ZERO;
            for (octets, period, jitter) in asks {
                let ask = work(octets, period, jitter);
                if let Ok(fits) = admit_unordered(&budget, standing.iter().copied(), &ask) {
                    prop_assert!(fits.response >= bound && fits.response <= budget.delay);
                    bound = fits.response;
                    standing.push(ask);
                }
            }
            prop_assert!(longest(&budget, &standing, &lot) <= bound.as_nanos());
        }
    }
}
