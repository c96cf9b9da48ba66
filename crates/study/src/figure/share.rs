//! How much of a link the shipping node lets reserve while ordinary traffic is reached within 10 ms: in the
//! simulator, with the constants that admission has by default and with those that were measured.

use super::measured::Measured;
use super::ms;
use rota_admission::Framing;
use rota_sim::paper::modern::TOLERANCE;
use rota_sim::paper::ours::{self, Costs, Scene, Seen};
use rota_sim::paper::profile::TRT;
use rota_units::{BitRate, Octets, Span};

/// What a user states who wants to reserve much: the worst wait of ordinary traffic, everybody saturated.
pub const STATED: Span = Span::from_millis(1_000);
const STATIONS: usize = 20;
/// An Ethernet frame of the exchanged 100 octets.
const EXCHANGED: u16 = 118;
const FULL: u16 = 1_514;

/// Rotations of a saturated ring, three seconds: a visit takes a part of one.
const SATURATED: u64 = 90;

/// How it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The product's defaults, hosts of 10 us a hop, strict sessions.
    Default,
    /// Measured constants and hosts, strict sessions.
    Strict,
    /// The same, sessions that let cycles restart early, as the paper's do.
    Early,
}

impl How {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Default, Self::Strict, Self::Early];

    /// For a legend.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "shipping node simulated, 4 sessions, default constants",
            Self::Strict => "the same, measured constants",
            Self::Early => "the same, not strict",
        }
    }
}

/// What the shipping node keeps.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The link.
    pub rate: BitRate,
    /// How it was asked.
    pub how: How,
    /// Reserved payload, in percent of the link.
    pub payload: f64,
    /// The same with headers, preambles and gaps.
    pub wire: f64,
    /// Whether a little more is refused by admission, and not only too slow.
    pub refused: bool,
    /// Where the constants come from.
    pub origin: String,
    /// Two stations exchange packets.
    pub seen: Seen,
    /// The same reservation, every station saturated.
    pub saturated: Seen,
    /// What admission promises even then.
    pub latency: Span,
}

/// The scene at `rate`, and where its constants come from; `None` when they were not measured.
fn scene(rate: BitRate, how: How, measured: &Measured) -> Option<(Scene, String)> {
    let scene = Scene {
        stations: STATIONS,
        rate,
        sessions: Vec::new(),
        strict: how != How::Early,
        exchanged: Some(EXCHANGED),
        queued: ours::ONE,
        everybody: false,
        // With the world's 2 us in the switch the 10 us of the assumed host.
        latency: Span::from_micros(8),
        costs: Costs::DEFAULT,
        rotations: 48,
    };
    if how == How::Default {
        return Some((scene, "admission's defaults".into()));
    }
    let found = measured.calibrations.iter().find(|one| one.about.rate == rate)?;
    let link = Some(found.link(Costs::DEFAULT.settings(rate).link));
    let costs = Costs { profile: found.profile(), link, nrt_latency: Some(STATED) };
    let origin = format!("rota calibrate on {} {}", found.about.medium.words(), found.about.date);
    Some((Scene { latency: Span::ZERO, costs, ..scene }, origin))
}

/// Percent of the wire that four units of `octets` a rotation take, and of payload.
fn percent(rate: BitRate, octets: u32) -> (f64, f64) {
    let unit = Octets::new(u64::from(octets));
    let of = |octets: u64| octets as f64 * 400.0 / rate.octets_in_down(TRT).get() as f64;
    (of(Framing::ETHERNET.unit_wire_octets(unit).get()), of(unit.get()))
}

/// The largest four sessions at `rate`.
pub fn largest(rate: BitRate, how: How, measured: &Measured) -> Option<Kept> {
    let (scene, origin) = scene(rate, how, measured)?;
    let quarter = u32::try_from(rate.octets_in_down(TRT).get() / 4).unwrap_or(u32::MAX);
    let octets = ours::largest(&scene, TOLERANCE, quarter / 20, quarter)?;
    let (wire, payload) = percent(rate, octets);
    let with = |octets| Scene { sessions: vec![octets; 4], ..scene.clone() };
    let seen = ours::access(&with(octets), 1)?;
    let everybody = Scene {
        everybody: true,
        queued: ours::SATURATED,
        exchanged: Some(FULL),
        rotations: SATURATED,
        ..with(octets)
    };
    let saturated = ours::access(&everybody, 1)?;
    let refused = ours::access(&with(octets + octets / 50), 1).is_none();
    let latency = scene.costs.settings(rate).nrt_latency_max;
    Some(Kept { rate, how, payload, wire, refused, origin, seen, saturated, latency })
}

/// In a sentence.
pub fn words(kept: &Kept) -> String {
    let limit = if kept.refused { "more is refused by admission" } else { "more is too slow" };
    let strict = if kept.how == How::Early { "not strict" } else { "strict" };
    format!(
        "{:.1} % of the wire and {:.1} % of payload at {}, {strict}, constants: {} ({limit}; {:.1} ms; every \
         station saturated: {:.0} ms at most, {} promised)",
        kept.wire,
        kept.payload,
        kept.rate,
        kept.origin,
        ms(kept.seen.mean_gap),
        ms(kept.saturated.longest_gap),
        kept.latency
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn measured() -> Measured {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/measured");
        Measured::read(Some(&dir)).unwrap_or_else(|failure| panic!("{}", failure.sentence))
    }

    #[test]
    fn measured_constants_reserve_ninety_percent_of_the_wire_at_100_mbit_and_at_1_gbit() {
        for (mbit, octets) in [(100, 87_596), (1_000, 880_000)] {
            let rate = BitRate::from_mbit(mbit);
            let (scene, _) = scene(rate, How::Early, &measured()).expect("testdata has this rate");
            let scene = Scene { sessions: vec![octets; 4], ..scene };
            let (wire, payload) = percent(rate, octets);
            assert!(wire >= 90.0, "{mbit} Mbit/s: {wire} % of the wire, {payload} % of payload");
            for seed in 1..=3 {
                let seen = ours::access(&scene, seed).expect("admission grants it");
                assert!(seen.mean_gap <= TOLERANCE && seen.violations == 0, "{mbit} Mbit/s: {seen:?}");
            }
            // The worst case beside it: slower by far, and still within what is promised.
            let everybody = Scene {
                everybody: true,
                queued: ours::SATURATED,
                exchanged: Some(FULL),
                rotations: SATURATED,
                ..scene
            };
            let worst = ours::access(&everybody, 1).expect("admission does not ask who sends");
            assert!(worst.mean_gap > TOLERANCE && worst.longest_gap <= STATED, "{worst:?}");
            assert_eq!(worst.violations, 0);
        }
    }

    #[test]
    fn without_a_measurement_nothing_is_said_to_be_measured() {
        let rate = BitRate::from_mbit(100);
        assert!(largest(rate, How::Strict, &Measured::default()).is_none());
        assert!(largest(BitRate::from_mbit(2_500), How::Early, &measured()).is_none());
    }
}
