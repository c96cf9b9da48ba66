//! The CPU of a host: what its protocol work costs, and which circuits it can promise to serve in time
//! (TRANSPORT-R58).
//!
//! The work is scheduled by classes and weights (`rota_proto::task`; theory.md §8.1). A *client* is a
//! circuit: a message of n TPDUs comes at most once in its period x, each TPDU takes u at most, and each
//! message once m more, so that the longest unit takes c = m + u and a message C = m + n·u. It is promised
//! that the last TPDU of each message is complete within its deadline D ≤ x. Clients without a promise state
//! their longest unit only.
//!
//! # The tests (theory.md §8.2)
//!
//! *Utilisation*: Σ C/x of all promised clients, and the work above the scheduler, is at most the share of
//! the CPU that the host keeps for them.
//!
//! *Response*: for each promised client i the least R with
//!
//! > R = S + B + C_i + (1 + ⌈R/p⌉)·a
//! >   + Σ_j min(k·w_j·u_j + q_j·m_j, ⌈(R + D_j)/x_j⌉·C_j) + Σ_h ⌈(R + D_h)/x_h⌉·C_h
//!
//! is at most D_i. S is how late the host may wake, B the longest unit of a class below, j the others of its
//! class, k = ⌈n_i/w_i⌉ its turns, q_j = min(k·w_j, ⌈(R + D_j)/x_j⌉) the messages of j that begin in k turns,
//! h the clients of the classes above, and a in each p the work above the scheduler. A client of its class
//! without a promise counts as k·w_j·c_j. A message comes when the interface procedure says so,
//! or when its timer's deadline comes; the scheduler's parent keeps the rule of a call's end (theory.md
//! §8.1), without which a client may be ahead of i once more.
//!
//! *Proof.* Take the first message that misses its deadline, of client i, come at t₀. Until then all others
//! met theirs, and D ≤ x: at t₀ nothing of an earlier message of i waits, and of each other promised client
//! at most one message, which came behind t₀ − D_j. In the R from t₀ on, such a client runs messages that
//! came in an interval of R + D_j, ⌈(R + D_j)/x_j⌉ of them. A client of i's class is ahead of each of the k
//! turns of i once at most, with w_j units (theory.md §8.1), of which no more begin a message than messages
//! run. No unit of a class below begins while i has work, so one that runs takes B at most. The scheduler is
//! never idle meanwhile, and what can run before i's last TPDU is complete sums up to R. So it is complete
//! until t₀ + R, which is no later than t₀ + D_i, against the assumption. ∎
//!
//! All is exact integer arithmetic, rounded against the applicant. Nothing allocates. A client that is added
//! makes each R longer, so the iteration of a standing one begins with the R that it has
//! ([`Share::response`]).

mod class;
mod costs;
mod refused;
mod response;
mod unordered;

pub use class::Class;
pub use costs::Costs;
pub use refused::{CpuTest, Refused};
pub use unordered::{Budget, Fits, Over, Work, admit_unordered, decide};

use crate::rtip::load;
use crate::search::largest;
use response::{Found, Set};
use rota_units::Span;

/// Most TPDUs of a message for which the CPU is promised: what one contract can name.
pub const UNITS_MAX: u32 = 1 << 20;
/// Most units in a turn of one client: more would keep its class waiting. The scheduler's limit too.
pub const WEIGHT_MAX: u16 = 1_024;
/// The longest unit of work: nobody waits for one that takes longer. The scheduler's limit too.
pub const COST_MAX: Span = Span::from_millis(1_000);
/// The longest period of a promise.
pub const PERIOD_MAX: Span = Span::from_millis(10_000);
/// A response for which the iteration found no end.
pub const NO_BOUND: Span = Span::from_nanos(u64::MAX);

/// What a host gives to protocol work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// The share of one CPU for promised work, in millionths.
    pub share_ppm: u32,
    /// S: how late the node's thread may wake (`rota calibrate`).
    pub slack: Span,
    /// a and p: work above the scheduler, such as the token's, at most once in each period.
    pub above: Option<(Span, Span)>,
}

/// The promise that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// n: TPDUs of the largest message.
    pub units: u32,
    /// x: the least time between two messages.
    pub period: Span,
    /// D: from a message's coming to its last TPDU; at most the period.
    pub deadline: Span,
}

/// A client that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Its class.
    pub class: Class,
    /// w: units of a turn, at most [`WEIGHT_MAX`]; 1 but for guaranteed clients.
    pub weight: u16,
    /// u: the longest time of a TPDU.
    pub unit: Span,
    /// m: what the first TPDU of a message takes more.
    pub message: Span,
    /// Guaranteed clients have one, best effort has none.
    pub promise: Option<Promise>,
}

impl Ask {
    /// c: the longest unit, which is its stated cost at the scheduler.
    pub fn cost(&self) -> Span {
        self.unit + self.message
    }

    /// C: a message of so many TPDUs.
    fn work(&self, units: u32) -> u128 {
        u128::from(self.message.as_nanos()) + u128::from(self.unit.as_nanos()) * u128::from(units)
    }

    /// So many turns, in which no more than so many messages begin.
    fn turns(&self, turns: u128, begun: Option<u128>) -> u128 {
        let units = turns * u128::from(self.weight);
        units * nanos(self.unit) + begun.unwrap_or(units).min(units) * nanos(self.message)
    }

    /// C/x in parts of [`load::WHOLE`], rounded up.
    fn load(&self) -> u128 {
        let of = |promise: Promise| load::share_up(self.work(promise.units), nanos(promise.period));
        self.promise.map_or(0, of)
    }

    fn is_sound(&self) -> bool {
        let weight_max = if self.class == Class::Guaranteed { WEIGHT_MAX } else { 1 };
        let has_weight = (1..=weight_max).contains(&self.weight);
        let has_promise = match self.class {
            Class::Guaranteed => self.promise.is_some(),
            Class::Reliable => true,
            Class::BestEffort => self.promise.is_none(),
        };
        let is_possible = |promise: Promise| {
            let has_times = promise.deadline <= promise.period && promise.period <= PERIOD_MAX;
            (1..=UNITS_MAX).contains(&promise.units) && promise.deadline > Span::ZERO && has_times
        };
        let takes_time = self.unit > Span::ZERO && self.cost() <= COST_MAX;
        has_weight && has_promise && takes_time && self.promise.is_none_or(is_possible)
    }
}

/// A client that was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Its terms.
    pub ask: Ask,
    /// R, the bound of its response; 0 without a promise, and [`NO_BOUND`] where none was found. One that is
    /// too long is safe, one that is too short is none.
    pub response: Span,
}

/// An admitted client's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// R: the bound of its response; 0 without a promise.
    pub response: Span,
    /// D − R.
    pub spare: Span,
    /// Millionths of the CPU that promised work takes with it, rounded up.
    pub load_ppm: u64,
}

fn nanos(span: Span) -> u128 {
    u128::from(span.as_nanos())
}

fn span_of(nanos: u128) -> Span {
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Decides on one more client. The caller keeps it with its response, and then says [`grown`].
///
/// # Errors
/// The test that fails, for whom, by how much, and the nearest promises that would be given.
pub fn admit(host: &Host, standing: &[Share], ask: &Ask) -> Result<Granted, Refused> {
    if !ask.is_sound() {
        return Err(Refused::of(CpuTest::Terms, None, None));
    }
    decide_in_turns(host, standing, ask).map_err(|refused| Refused {
        nearest_units: nearest_units(host, standing, ask),
        nearest_period: nearest_period(host, standing, ask),
        ..refused
    })
}

fn decide_in_turns(host: &Host, standing: &[Share], ask: &Ask) -> Result<Granted, Refused> {
    let set = Set { host, standing, more: Some(ask) };
    let sum = set.asks().map(|ask| ask.load()).fold(above_load(host), u128::saturating_add);
    let most = load::WHOLE / 1_000_000 * u128::from(host.share_ppm.min(1_000_000));
    if let Some(over) = sum.checked_sub(most).filter(|over| *over > 0) {
        // In each second, rounded up.
        let margin = over.div_ceil(1 << 20).saturating_mul(1_000_000_000).div_ceil(1 << 44);
        return Err(Refused::of(CpuTest::Utilisation, None, Some(span_of(margin))));
    }
    for (client, share) in standing.iter().enumerate() {
        if let Found::Late(margin) = set.response(&share.ask, Some(client), share.response) {
            return Err(Refused::of(CpuTest::Response, Some(client), margin));
        }
    }
    let load_ppm = sum.div_ceil(1 << 20).saturating_mul(1_000_000).div_ceil(1 << 44);
    let load_ppm = u64::try_from(load_ppm).unwrap_or(u64::MAX);
    match set.response(ask, None, Span::ZERO) {
        Found::Late(margin) => Err(Refused::of(CpuTest::Response, None, margin)),
        Found::Within(response) => {
            let spare = ask.promise.map_or(Span::ZERO, |promise| promise.deadline.minus(response));
            Ok(Granted { response, spare, load_ppm })
        }
    }
}

/// The load above the scheduler.
fn above_load(host: &Host) -> u128 {
    host.above.map_or(0, |(work, period)| load::share_up(nanos(work), nanos(period).max(1)))
}

/// The responses of all clients anew, once one was added.
pub fn grown(host: &Host, shares: &mut [Share]) {
    for client in 0..shares.len() {
        let Share { ask, response } = shares[client];
        let set = Set { host, standing: shares, more: None };
        // One that is late now was not admitted by these tests; neither its deadline nor its response until
        // now is its bound then.
        shares[client].response = match set.response(&ask, Some(client), response) {
            Found::Within(response) => response,
            Found::Late(_) => NO_BOUND,
        };
    }
}

/// The responses of all clients anew, once one has gone: they are shorter now. One whose iteration does not
/// end keeps its bound, which holds with less work as it did with more.
pub fn shrunk(host: &Host, shares: &mut [Share]) {
    for client in 0..shares.len() {
        let Share { ask, response: before } = shares[client];
        let set = Set { host, standing: shares, more: None };
        shares[client].response = match set.response(&ask, Some(client), Span::ZERO) {
            Found::Within(response) => response,
            Found::Late(_) if before == Span::ZERO => NO_BOUND,
            Found::Late(_) => before,
        };
    }
}

/// The longest message of the same client that would be admitted now.
fn nearest_units(host: &Host, standing: &[Share], ask: &Ask) -> Option<u32> {
    let promise = ask.promise?;
    let fits = |units: u64| {
        let promise = Some(Promise { units: units as u32, ..promise });
        decide_in_turns(host, standing, &Ask { promise, ..*ask }).is_ok()
    };
    if !fits(1) {
        return None;
    }
    Some(largest(1, promise.units.into(), fits) as u32)
}

/// The shortest period of the same message and deadline that would be admitted now.
fn nearest_period(host: &Host, standing: &[Share], ask: &Ask) -> Option<Span> {
    let promise = ask.promise?;
    let longest = PERIOD_MAX.as_nanos();
    let fits = |back: u64| {
        let promise = Some(Promise { period: Span::from_nanos(longest - back), ..promise });
        decide_in_turns(host, standing, &Ask { promise, ..*ask }).is_ok()
    };
    if !fits(0) {
        return None;
    }
    Some(Span::from_nanos(longest - largest(0, longest - promise.period.as_nanos(), fits)))
}

#[cfg(test)]
mod tests;
