//! Spreads and straight lines. Floats stay in here; what leaves is rounded up to nanoseconds.

use rota_units::Span;
use serde::Serialize;

/// How a measured time is spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// How often it was measured.
    pub samples: u64,
    /// The median.
    #[serde(rename = "p50_ns", serialize_with = "ns")]
    pub p50: Span,
    /// One in ten is longer.
    #[serde(rename = "p90_ns", serialize_with = "ns")]
    pub p90: Span,
    /// One in a hundred is longer.
    #[serde(rename = "p99_ns", serialize_with = "ns")]
    pub p99: Span,
    /// One in a thousand is longer.
    #[serde(rename = "p999_ns", serialize_with = "ns")]
    pub p999: Span,
    /// The longest.
    #[serde(rename = "max_ns", serialize_with = "ns")]
    pub max: Span,
}

fn ns<S: serde::Serializer>(span: &Span, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(span.as_nanos())
}

impl Spread {
    /// Of nothing.
    pub const NONE: Self = Self::flat(0, Span::ZERO);

    /// Of a number that is the same each time, such as a slope.
    pub const fn flat(samples: u64, value: Span) -> Self {
        Self { samples, p50: value, p90: value, p99: value, p999: value, max: value }
    }

    /// Of nanoseconds in any order; each percentile is a value that was measured, the next above.
    pub fn of(mut samples: Vec<u64>) -> Self {
        samples.sort_unstable();
        let at = |per_mille: usize| {
            let index = (samples.len() * per_mille).div_ceil(1_000).saturating_sub(1);
            Span::from_nanos(samples.get(index).copied().unwrap_or(0))
        };
        Self {
            samples: samples.len() as u64,
            p50: at(500),
            p90: at(900),
            p99: at(990),
            p999: at(999),
            max: at(1_000),
        }
    }
}

/// Intercept and slope of the straight line through `points` by least squares.
///
/// The points should be medians, so that no single stall moves the line.
pub fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len().max(1) as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let over: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    let under: f64 = points.iter().map(|p| (p.0 - x) * (p.0 - x)).sum();
    let slope = if under > 0.0 { over / under } else { 0.0 };
    (y - slope * x, slope)
}

/// Nanoseconds, rounded up; what is negative by the noise of a measurement is zero.
pub fn up(ns: f64) -> Span {
    Span::from_nanos(if ns > 0.0 { ns.ceil() as u64 } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measured_values_and_round_up() {
        let spread = Spread::of((1..=1_000).rev().collect());
        let ns = |span: Span| span.as_nanos();
        assert_eq!([spread.p50, spread.p90, spread.p99, spread.p999].map(ns), [500, 900, 990, 999]);
        let few = Spread::of(vec![7, 3]);
        assert_eq!((ns(few.p50), ns(few.p99), few.samples), (3, 7, 2));
        assert_eq!(Spread::of(Vec::new()), Spread::NONE);
    }

    #[test]
    fn a_line_is_found_exactly_and_noise_below_zero_is_nothing() {
        let points: Vec<(f64, f64)> = (1..9).map(|n| (f64::from(n), 650.0 + 140.0 * f64::from(n))).collect();
        let (b, a) = line(&points);
        assert!((a - 140.0).abs() < 1e-9 && (b - 650.0).abs() < 1e-6, "{a} {b}");
        assert_eq!((up(139.2), up(-3.0), up(f64::NAN)), (Span::from_nanos(140), Span::ZERO, Span::ZERO));
        assert_eq!(line(&[(3.0, 9.0)]), (9.0, 0.0));
    }
}
