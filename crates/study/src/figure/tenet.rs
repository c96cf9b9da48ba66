//! Figure 10 of the Tenet paper: rate control at a source that sends in a tight loop. The regulator is the
//! one that the node runs, in computed time.

use super::chart::Figure;
use crate::plot::{Axis, Look, Panel, Series};
use rota_admission::rtip::{BadTraffic, RateJitter, Traffic};
use rota_units::{Instant, Span};

/// I of every channel of the paper's figure.
const INTERVAL: Span = Span::from_millis(1_000);
/// X_min and X_ave in milliseconds. The paper's own pairs are lost with its curves.
const PAIRS: [(u64, u64); 4] = [(5, 10), (10, 20), (10, 40), (40, 40)];
const SHOWN: Span = Span::from_millis(4_000);

/// When each packet of a source in a tight loop leaves, until the figure ends.
fn staircase(x_min: Span, x_ave: Span) -> Result<Vec<Instant>, BadTraffic> {
    let traffic = Traffic::new(x_min, x_ave, INTERVAL)?;
    let places = vec![Instant::ZERO; traffic.burst() as usize].into_boxed_slice();
    let mut regulator = RateJitter::new(traffic, places);
    let mut left = Vec::new();
    // The program offers the next packet as soon as the one before has left.
    let mut now = Instant::ZERO;
    while now < Instant::ZERO + SHOWN {
        now = regulator.eligible(now);
        left.push(now);
    }
    Ok(left)
}

/// Sequence numbers against time.
pub fn fig10() -> Figure {
    let mut panel = Panel::new("", Axis::linear("seconds", 4.0), Axis::linear("packet number", 400.0));
    let mut rates = Vec::new();
    for (colour, (x_min, x_ave)) in PAIRS.into_iter().enumerate() {
        let name = format!("Xmin {x_min} ms, Xave {x_ave} ms");
        // The pairs are fixed and sound; one that were not would be missing in the figure.
        let left = staircase(Span::from_millis(x_min), Span::from_millis(x_ave)).unwrap_or_default();
        let whole = left.iter().filter(|at| **at < Instant::ZERO + SHOWN).count();
        rates.push(format!("{:.1}", whole as f64 / 4.0));
        let at = |instant: &Instant| instant.as_nanos() as f64 / 1e9;
        let points = left.iter().enumerate().map(|(number, left)| (at(left), number as f64)).collect();
        panel.series.push(Series::new(name, colour, Look::Cloud, points));
    }
    Figure {
        key: "tenet-fig10",
        title: "Tenet, figure 10: rate control of a source in a tight loop".into(),
        subtitle: "the regulator of the node in computed time; I is 1 s for every channel, as in the paper"
            .into(),
        panels: vec![panel],
        verdict: format!(
            "The source offers a packet as soon as the one before has left. {} packets a second leave: the \
             averages that were agreed on, in bursts Xmin apart where Xave is longer. The paper printed no \
             number beside this figure, and its pairs of Xmin and Xave are lost.",
            rates.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tight_loop_is_held_to_its_minimum_and_to_its_average() {
        for (x_min, x_ave) in PAIRS {
            let left = staircase(Span::from_millis(x_min), Span::from_millis(x_ave)).expect("sound");
            let burst = (1_000 / x_ave) as usize;
            let apart = |n: usize| left.windows(n + 1).map(move |w| w[n].since(w[0])).min();
            assert_eq!(apart(1), Some(Span::from_millis(x_min)), "{x_min} {x_ave}");
            assert_eq!(apart(burst), Some(INTERVAL), "never more than {burst} in a second");
            // It is not held to less, either: the second burst begins a second after the first one.
            assert_eq!(left[burst].since(left[0]), INTERVAL);
        }
    }
    #[test]
    fn the_staircases_are_seen_in_a_file_without_a_style_sheet_of_a_page() {
        let svg = fig10().svg();
        let paths: Vec<&str> = svg.lines().filter(|line| line.starts_with("<path")).collect();
        assert_eq!(paths.len(), PAIRS.len());
        for path in paths {
            // A path of lines of no length is nothing without width and round ends.
            let pen = ["stroke=", "stroke-width=", "stroke-linecap=\"round\""];
            assert!(pen.iter().all(|words| path.contains(words)), "{}", &path[..120]);
            assert!(!path.contains("class="), "{}", &path[..120]);
        }
    }
}
