//! SMART against go-back-N and TCP's recovery (TRANSPORT-R80): a figure that the paper has in words only.

use super::chart::Figure;
use crate::plot::{Axis, Look, Panel, Series};
use rota_sim::circuits::recovery::{Path, Recovered};
use rota_wire::FlowControl;

/// Losses in a million.
const LOSSES: [u32; 7] = [1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000];
/// TPDUs of a round trip.
const TRIP: u64 = 32;
const SLOTS: u64 = 60_000;
const SEEDS: u64 = 3;

/// A way to recover, over a path from a seed.
type Way = (&'static str, fn(&Path, u64) -> Recovered);

const WAYS: [Way; 4] = [
    ("SMART, the machines that ship", |path, seed| path.smart(seed, FlowControl::Open)),
    ("SMART with the dynamic window", |path, seed| path.smart(seed, FlowControl::Window)),
    ("go-back-N", |path, seed| path.go_back(seed)),
    ("TCP (NewReno)", |path, seed| path.new_reno(seed)),
];

/// Resends for each TPDU, and TPDUs for each slot in hundredths; the mean of all seeds.
fn run(way: Way, loss_ppm: u32) -> (f64, f64) {
    let path = Path { loss_ppm, trip: TRIP, slots: SLOTS };
    let runs: Vec<Recovered> = (1..=SEEDS).map(|seed| (way.1)(&path, seed)).collect();
    let sum = |of: fn(&Recovered) -> u64| runs.iter().map(of).sum::<u64>() as f64;
    let (delivered, again) = (sum(|all| all.delivered), sum(|all| all.again));
    (again / delivered.max(1.0), delivered / (SLOTS * SEEDS) as f64 * 100.0)
}

fn percent(ppm: u32) -> f64 {
    f64::from(ppm) / 1e4
}

/// The figure.
pub fn recovery() -> Figure {
    let x = || Axis::log("% of TPDUs lost", 0.1, 10.0);
    let mut again = Panel::new("sent again", x(), Axis::log("resends of a TPDU", 0.001, 10.0));
    let mut rate = Panel::new("carried", x(), Axis::linear("% of the path", 105.0));
    let mut at_one = Vec::new();
    for (colour, way) in WAYS.into_iter().enumerate() {
        let runs: Vec<(u32, (f64, f64))> = LOSSES.iter().map(|loss| (*loss, run(way, *loss))).collect();
        let of = |pick: fn(&(f64, f64)) -> f64| {
            runs.iter().map(|(loss, run)| (percent(*loss), pick(run))).collect::<Vec<_>>()
        };
        let name = format!("simulated: {}", way.0);
        again.series.push(Series::new(name.clone(), colour, Look::Line, of(|run| run.0)));
        rate.series.push(Series::new(name, colour, Look::Line, of(|run| run.1)));
        let one = runs.iter().find(|(loss, _)| *loss == 10_000).map_or((0.0, 0.0), |run| run.1);
        at_one.push(format!("{} {:.4} and {:.0} %", way.0, one.0, one.1));
    }
    let curve = |name: &str, colour, of: &dyn Fn(f64) -> f64| {
        let points = LOSSES.iter().map(|loss| (percent(*loss), of(f64::from(*loss) / 1e6))).collect();
        Series::new(format!("computed: {name}"), colour, Look::Dashed, points)
    };
    let trip = TRIP as f64;
    again.series.push(curve("p/(1 - p), the least", 6, &|p| p / (1.0 - p)));
    again.series.push(curve("go-back-N", 7, &|p| trip * p / (1.0 - p)));
    rate.series.push(curve("1 - p, the most", 6, &|p| (1.0 - p) * 100.0));
    rate.series.push(curve("go-back-N", 7, &|p| (1.0 - p) / (1.0 - p + trip * p) * 100.0));
    Figure {
        key: "atm-smart",
        title: "Native-mode transport: SMART, go-back-N and TCP's recovery over loss".into(),
        subtitle: format!(
            "{TRIP} TPDUs fit into a round trip; data is lost at random, acknowledgements are not; a \
             window of two round trips; {SEEDS} runs of {SLOTS} slots each. Go-back-N and TCP are models"
        ),
        panels: vec![again, rate],
        verdict: format!(
            "At 1 % loss, resends of a TPDU and share of the path: {}. The paper printed no number: it \
             says that SMART fills a gap without a wait for a time-out, and that a window of flow control \
             that shuts at each loss keeps a lossy link empty, which the second curve and TCP's show \
             alike. Computed: theory d.2, R p/(1 - p) resends and (1 - p)/(1 - p + p R) of the path for \
             go-back-N.",
            at_one.join("; ")
        ),
    }
}
