//! Axes: where a value lies on the paper.

/// The left, right, top and bottom of a panel's plotting area in its own units.
pub const LEFT: f64 = 40.0;
/// See [`LEFT`].
pub const RIGHT: f64 = 372.0;
/// See [`LEFT`].
pub const TOP: f64 = 52.0;
/// See [`LEFT`].
pub const BOTTOM: f64 = 256.0;

/// The earliest and latest lateness that is drawn, in ms; what lies beyond is drawn at the edge.
pub const LATENESS_MS: (f64, f64) = (-1.0, 500.0);
/// Labelled values of the lateness axis, in ms.
pub const LATENESS_TICKS_MS: [f64; 8] = [0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];

/// Linear to one millisecond, logarithmic beyond: jitter and collapse fit one axis.
pub fn symlog(ms: f64) -> f64 {
    if ms.abs() <= 1.0 { ms } else { ms.signum() * (1.0 + ms.abs().log10() * 2.0) }
}

/// The height of a lateness on the paper.
pub fn lateness_y(ms: f64) -> f64 {
    let (low, high) = (symlog(LATENESS_MS.0), symlog(LATENESS_MS.1));
    let share = (symlog(ms.clamp(LATENESS_MS.0, LATENESS_MS.1)) - low) / (high - low);
    BOTTOM - share * (BOTTOM - TOP)
}

/// A linear axis from `low` to `high` onto the panel's width.
#[derive(Clone, Copy, Debug)]
pub struct Across {
    /// The value at the left edge.
    pub low: f64,
    /// The value at the right edge.
    pub high: f64,
}

impl Across {
    /// The place of `value` on the paper.
    pub fn x(self, value: f64) -> f64 {
        LEFT + (value - self.low) / (self.high - self.low).max(1e-9) * (RIGHT - LEFT)
    }
}

/// A round step so that `span` has four to eight of them.
pub fn step(span: f64) -> f64 {
    let mut step = 0.001;
    for factor in [2.0, 2.5, 2.0].into_iter().cycle() {
        if span / step <= 8.0 {
            break;
        }
        step *= factor;
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_is_higher_and_nothing_leaves_the_panel() {
        let mut last = f64::INFINITY;
        for tenth in -50..8_000 {
            let y = lateness_y(f64::from(tenth) / 10.0);
            assert!(y <= last && (TOP..=BOTTOM).contains(&y));
            last = y;
        }
    }

    #[test]
    fn steps_are_round() {
        assert!((step(16.1) - 5.0).abs() < 1e-9 && (step(9.1) - 2.0).abs() < 1e-9);
    }
}
