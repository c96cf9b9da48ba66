//! Why the CPU was not promised.

use core::fmt;
use rota_units::Span;

/// The test that a client failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CpuTest {
    /// The terms contradict each other or the class.
    Terms,
    /// Promised work would take more than its share of the CPU.
    Utilisation,
    /// Some message would be complete behind its deadline.
    Response,
}

impl CpuTest {
    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Terms => "CpuTerms",
            Self::Utilisation => "CpuUtilisation",
            Self::Response => "CpuResponse",
        }
    }
}

impl fmt::Display for CpuTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A refusal. Its `Display` is one sentence with the numbers in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// The test.
    pub test: CpuTest,
    /// The standing client that would be late, by its place; `None` where it is the one that asks.
    pub client: Option<usize>,
    /// Of the CPU in each second, or behind the deadline. `None` where no time would do.
    pub margin: Option<Span>,
    /// The TPDUs of the longest message that would be admitted, all else being equal.
    pub nearest_units: Option<u32>,
    /// The shortest period that would be admitted, all else being equal.
    pub nearest_period: Option<Span>,
}

impl Refused {
    pub(super) const fn of(test: CpuTest, client: Option<usize>, margin: Option<Span>) -> Self {
        Self { test, client, margin, nearest_units: None, nearest_period: None }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let test = self.test;
        match (test, self.margin) {
            (CpuTest::Terms, _) => {
                return write!(
                    f,
                    "terms that contradict each other ({test}): a guaranteed circuit has a weight and a \
                     promise, a reliable one the weight 1, best effort no promise; a weight is at most {}; a \
                     TPDU takes time, with its message's at most {}; a deadline is within its period, which \
                     is at most {}",
                    super::WEIGHT_MAX,
                    super::COST_MAX,
                    super::PERIOD_MAX
                );
            }
            (CpuTest::Utilisation, margin) => {
                let margin = margin.unwrap_or_default();
                write!(
                    f,
                    "not enough CPU ({test}): promised work exceeds its share by {margin} in each second"
                )
            }
            (CpuTest::Response, margin) => {
                match self.client {
                    Some(client) => write!(f, "the standing circuit {client} would be late")?,
                    None => write!(f, "this circuit would be late")?,
                }
                match margin {
                    Some(margin) => write!(f, " by {margin} ({test})"),
                    None => write!(f, " without end ({test})"),
                }
            }
        }?;
        match (self.nearest_units, self.nearest_period) {
            (Some(units), Some(period)) => {
                write!(f, "; messages of {units} TPDUs fit now, or this one once in {period}")
            }
            (Some(units), None) => write!(f, "; messages of {units} TPDUs fit now"),
            (None, Some(period)) => write!(f, "; this message fits now once in {period}"),
            (None, None) => write!(f, "; no message and no period of it fits now"),
        }
    }
}

impl core::error::Error for Refused {}
