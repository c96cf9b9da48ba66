//! A random campaign: faults drawn by weight, at random times, for random times.

use super::script::{Fault, Moment, Timed};
use super::wire::{Select, WireFault};
use crate::engine::Stream;
use rota_proto::Settings;
use rota_units::Span;
use rota_wire::Kind;

/// Kinds of faults that a campaign can draw, by the names that scenario files use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString, strum::VariantArray, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are those of the fault table")]
pub enum Draw {
    Loss,
    Burst,
    Gilbert,
    TokenLoss,
    Corrupt,
    Resize,
    Duplicate,
    Delay,
    LateDelay,
    Boundary,
    Crash,
    CrashLoop,
    PauseShort,
    PauseLong,
    PauseAll,
    Starve,
    WallClock,
    Drift,
    Partition,
    OneWay,
    Flap,
    Babble,
    Hog,
    Forge,
    Insider,
    Wrap,
    Replay,
    Clone,
    Skew,
    Storm,
    Flood,
    PortLoss,
}

/// What a campaign draws from.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Kinds and how often each, relative to the others.
    pub weights: Vec<(Draw, u32)>,
    /// From the beginning of one fault to the next at most.
    pub every: Span,
    /// How long one lasts at most, single frames and long pauses apart.
    pub longest: Span,
}

/// States in which a crash or a pause may find a station.
const MOMENTS: &[Moment] = &[
    Moment::Now,
    Moment::Now,
    Moment::In("holding"),
    Moment::In("claiming"),
    Moment::In("initiating"),
    Moment::In("yielding"),
    Moment::In("joining a ring"),
];

impl Mix {
    /// The faults of one run among `stations` stations that lasts `duration`.
    pub fn draw(
        &self,
        random: &mut Stream,
        stations: usize,
        settings: &Settings,
        duration: Span,
    ) -> Vec<Timed> {
        let total: u64 = self.weights.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let mut faults = Vec::new();
        let mut at = Span::from_nanos(random.below(self.every.as_nanos().max(1)));
        while at < duration && total > 0 {
            let mut pick = random.below(total);
            let kind = self.weights.iter().find(|(_, weight)| {
                let hit = pick < u64::from(*weight);
                pick = pick.saturating_sub(u64::from(*weight));
                hit
            });
            if let Some((kind, _)) = kind {
                let lasts =
                    Span::from_nanos(random.between(1_000_000, self.longest.as_nanos().max(1_000_001)));
                faults.push(self.one(*kind, random, stations, settings, at, lasts));
            }
            at += Span::from_nanos(random.between(1, self.every.as_nanos().max(1)));
        }
        faults
    }
}

/// A part of a time.
fn part_of(random: &mut Stream, span: Span) -> Span {
    Span::from_nanos(random.below(span.as_nanos().max(1)))
}

/// A host and half of the others.
fn some(random: &mut Stream, stations: usize, host: usize) -> Vec<usize> {
    (0..stations).filter(|index| *index == host || random.below(2) == 0).collect()
}

/// What happens to frames.
fn on_wires(kind: Draw, random: &mut Stream, settings: &Settings) -> Fault {
    let ppm = random.between(1, 60_000) as u32;
    let wire = |fault| Fault::Wire { fault, select: Select::all() };
    let d = settings.delay_max;
    match kind {
        Draw::Loss => wire(WireFault::Loss { ppm, burst: 1 }),
        Draw::Burst => wire(WireFault::Loss { ppm: ppm / 8, burst: random.between(2, 64) as u32 }),
        Draw::Gilbert => wire(WireFault::Gilbert { worse_ppm: ppm / 4, better_ppm: 200_000 }),
        Draw::TokenLoss => {
            let kinds = [Kind::Token, Kind::TokenAck, Kind::List, Kind::Claim, Kind::Form];
            let select = Select::kind(kinds[random.below(kinds.len() as u64) as usize]);
            let (first, count) = (random.between(1, 20), random.between(1, 5));
            Fault::Wire { fault: WireFault::Nth { first, count }, select }
        }
        Draw::Corrupt => wire(WireFault::Corrupt { ppm, bits: random.between(1, 16) as u32 }),
        Draw::Resize => wire(WireFault::Resize { ppm }),
        Draw::Duplicate => {
            let (copies, delay) = (random.between(1, 100) as u32, settings.trt * 10);
            wire(WireFault::Duplicate { ppm: ppm / copies, copies, delay: part_of(random, delay) })
        }
        Draw::Delay => wire(WireFault::Delay { ppm, min: Span::ZERO, max: d }),
        Draw::LateDelay => wire(WireFault::Delay { ppm: ppm / 4, min: d, max: d * 20 }),
        // The others are no faults of frames; a sound wire is none either.
        _ => wire(WireFault::Loss { ppm: 0, burst: 1 }),
    }
}

impl Mix {
    fn one(
        &self,
        kind: Draw,
        random: &mut Stream,
        stations: usize,
        settings: &Settings,
        at: Span,
        lasts: Span,
    ) -> Timed {
        let host = random.below(stations as u64) as usize;
        let other = (host + 1 + random.below(stations as u64 - 1) as usize) % stations;
        let ppm = random.between(1, 60_000) as u32;
        let (lease, trt, second) = (settings.lease, settings.trt, self.longest);
        let moment = MOMENTS[random.below(MOMENTS.len() as u64) as usize];
        let gap = Span::from_micros(random.between(100, 20_000));
        let mut lasts = lasts;
        let fault = match kind {
            Draw::Loss
            | Draw::Burst
            | Draw::Gilbert
            | Draw::TokenLoss
            | Draw::Corrupt
            | Draw::Resize
            | Draw::Duplicate
            | Draw::Delay
            | Draw::LateDelay => on_wires(kind, random, settings),
            Draw::Boundary => Fault::Boundary { ppm: ppm / 2 },
            Draw::Crash => {
                let down = if random.below(3) == 0 { lease } else { second * 2 };
                Fault::Crash { host, moment, down: Some(part_of(random, down)) }
            }
            Draw::CrashLoop => {
                lasts = second * 3;
                Fault::CrashLoop { host, up: part_of(random, second), down: part_of(random, second) }
            }
            Draw::PauseShort => {
                lasts = part_of(random, lease);
                Fault::Pause { host, moment }
            }
            Draw::PauseLong => {
                lasts = lease + part_of(random, second);
                Fault::Pause { host, moment }
            }
            Draw::PauseAll => Fault::PauseAll,
            Draw::Starve => Fault::Starve { host, late_ppm: ppm * 8, late_max: Span::from_millis(50) },
            Draw::WallClock => Fault::WallClock { host },
            Draw::Drift => Fault::Drift { host, rate: 999_500_000 + random.below(1_000_001) },
            Draw::Partition => Fault::Partition { part: some(random, stations, host) },
            Draw::OneWay => Fault::OneWay { from: host, to: other },
            Draw::Flap => Fault::Flap { host, period: settings.trt + part_of(random, second) },
            Draw::Babble => {
                let octets = settings.link.framing.mtu.min(1_000);
                Fault::Babble { host, gap: gap + trt.div_down(6), octets }
            }
            Draw::Hog => Fault::Hog { host, times: random.between(1, 3) as u32 },
            Draw::Forge => Fault::Forge { gap },
            Draw::Insider | Draw::Wrap => Fault::Insider { gap: gap * 20, wrap: kind == Draw::Wrap },
            Draw::Replay => Fault::Replay { gap },
            Draw::Clone => Fault::Clone { host, of: other },
            Draw::Skew => Fault::Skew { host },
            Draw::PortLoss => Fault::PortLoss { host },
            Draw::Storm => Fault::Storm { hosts: some(random, stations, host) },
            Draw::Flood => {
                lasts = part_of(random, settings.trt * 10);
                let octets = (random.between(60, 1_514) as u16).min(settings.link.framing.mtu + 14);
                Fault::Flood { octets, broadcast: random.below(2) == 0 }
            }
        };
        Timed { at, lasts, segment: 0, fault }
    }
}
