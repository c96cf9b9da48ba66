//! Axes: where a value lies between the ends, and which values are labelled.

/// How values spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// By their value.
    Linear,
    /// By their logarithm.
    Log,
    /// Linear to one, logarithmic beyond; what lies outside is drawn at the end.
    Symlog,
}

/// One axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Quantity and unit.
    pub label: String,
    /// From and to.
    pub range: (f64, f64),
    /// How its values spread.
    pub scale: Scale,
    /// Names instead of numbers.
    pub names: Vec<(f64, String)>,
}

impl Axis {
    /// Linear from 0.
    pub fn linear(label: &str, to: f64) -> Self {
        Self { label: label.into(), range: (0.0, to), scale: Scale::Linear, names: Vec::new() }
    }

    /// Logarithmic.
    pub fn log(label: &str, from: f64, to: f64) -> Self {
        Self { range: (from, to), scale: Scale::Log, ..Self::linear(label, to) }
    }

    /// Linear to one, logarithmic beyond, so that jitter and collapse fit one axis; with these labels.
    pub fn symlog(label: &str, range: (f64, f64), ticks: &[f64]) -> Self {
        let names = ticks.iter().map(|value| (*value, number(*value))).collect();
        Self { label: label.into(), range, scale: Scale::Symlog, names }
    }

    /// Names at 0, 1, 2 …
    pub fn named(label: &str, names: &[String]) -> Self {
        let at = names.iter().enumerate().map(|(i, name)| (i as f64, name.clone())).collect();
        Self { range: (-0.6, names.len() as f64 - 0.4), names: at, ..Self::linear(label, 0.0) }
    }

    /// Where a value lies between 0 and 1.
    pub fn share(&self, value: f64) -> f64 {
        let (from, to) = self.range;
        match self.scale {
            Scale::Linear => (value - from) / (to - from),
            Scale::Log => (value.max(from * 1e-6) / from).ln() / (to / from).ln(),
            Scale::Symlog => {
                let (low, high) = (symlog(from), symlog(to));
                (symlog(value.clamp(from, to)) - low) / (high - low)
            }
        }
    }

    /// The labelled values and their labels.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        if !self.names.is_empty() {
            return self.names.clone();
        }
        let (from, to) = self.range;
        if self.scale == Scale::Log {
            let factors: &[f64] = if to / from <= 150.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
            let decades = (from.log10().floor() as i32..=to.log10().ceil() as i32).map(|e| 10f64.powi(e));
            let all = decades.flat_map(|decade| factors.iter().map(move |factor| decade * factor));
            return all.filter(|v| (from * 0.999..=to * 1.001).contains(v)).map(|v| (v, number(v))).collect();
        }
        let step = step(to - from);
        let (first, last) = ((from / step - 1e-9).ceil() as i64, (to / step + 1e-9).floor() as i64);
        (first..=last).map(|i| i as f64 * step).map(|v| (v, number(v))).collect()
    }
}

fn symlog(value: f64) -> f64 {
    if value.abs() <= 1.0 { value } else { value.signum() * (1.0 + value.abs().log10() * 2.0) }
}

/// A number without needless zeros.
pub fn number(value: f64) -> String {
    let words = format!("{value:.3}");
    words.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A round step so that `span` has four to eight of them.
fn step(span: f64) -> f64 {
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
    fn ticks_are_round_and_inside() {
        let words = |axis: Axis| axis.ticks().into_iter().map(|(_, words)| words).collect::<Vec<_>>();
        assert_eq!(words(Axis::linear("ms", 20.0)), ["0", "5", "10", "15", "20"]);
        assert_eq!(words(Axis::log("ms", 1.0, 100.0)), ["1", "2", "5", "10", "20", "50", "100"]);
        assert_eq!(words(Axis::log("ms", 1.0, 1_000.0)), ["1", "10", "100", "1000"]);
        let across = Axis { range: (-5.3, 3.0), ..Axis::linear("s", 3.0) };
        assert_eq!(words(across), ["-4", "-2", "0", "2"]);
    }

    #[test]
    fn later_is_higher_and_nothing_leaves_the_panel() {
        let axis = Axis::symlog("ms", (-1.0, 500.0), &[]);
        let mut last = 0.0;
        for tenth in -50..8_000 {
            let share = axis.share(f64::from(tenth) / 10.0);
            assert!(share >= last && (0.0..=1.0).contains(&share));
            last = share;
        }
    }

    #[test]
    fn steps_are_round() {
        assert!((step(16.1) - 5.0).abs() < 1e-9 && (step(9.1) - 2.0).abs() < 1e-9);
    }
}
