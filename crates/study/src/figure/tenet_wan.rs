//! Figures 12 to 15 of the Tenet paper: its experiments on the Sequoia 2000 network in the simulator, with
//! the node that ships. The same panels show the run of `rota demo tenet` on namespaces.

use super::Beside;
use super::chart::Figure;
use crate::plot::Panel;
use crate::sequoia::bottleneck::{self, Crossing, Sighting};
use crate::sequoia::panels::{self, PAPER_BOUND_MS, PAPER_MEAN_MS, PAPER_WAITING};
use crate::sequoia::{Course, Stream};
use rota_admission::rtip::Discipline;
use rota_sim::Manner;
use rota_sim::paper::sequoia::{
    BERKELEY, BREEZE, Channel, FAITH, MESSAGE, PAOLA, SAN_DIEGO, SOCK, Scene, Seen, T1, THEOREM, UDP_SOURCE,
    run,
};
use rota_units::Span;
use std::ops::Range;
use std::sync::LazyLock;

/// An experiment and its course.
struct Run {
    scene: Scene,
    channels: Vec<Channel>,
    course: Course,
    broken: Vec<String>,
}

const SECOND: Span = Span::from_millis(1_000);
const IP_UDP_ETHERNET: usize = 42;
const IPV4: [u8; 2] = [8, 0];

/// Section 5.2.1: a channel and a UDP video.
static SINGLE: LazyLock<Result<Run, String>> = LazyLock::new(|| perform(single(1)));
/// Section 5.2.2: two channels.
static DOUBLE: LazyLock<Result<Run, String>> = LazyLock::new(|| perform(double(1)));

/// The load comes at 20 s and goes at 30 s, as the paper's, or at a part of that.
fn single(part: u64) -> Scene {
    Scene {
        // Eleven messages a second.
        period: Span::from_nanos(1_000_000_000 / 11),
        // The bound at sock is then near the 70 ms of the paper.
        delay: Span::from_millis(286),
        channels: vec![FAITH],
        hurries: false,
        udp: true,
        load_from: (SECOND * 20).div_down(part),
        load_to: (SECOND * 30).div_down(part),
        end: (SECOND * 40).div_down(part),
        discipline: Discipline::default(),
    }
}

/// Nine messages a second each: with headers two of ten, the 580 kbit/s of section 5.2.3, do not fit beside
/// the part of the line that admission leaves to ordinary traffic.
fn double(part: u64) -> Scene {
    let period = Span::from_nanos(1_000_000_000 / 9);
    Scene { period, channels: vec![FAITH, THEOREM], hurries: true, udp: false, ..single(part) }
}

fn perform(scene: Scene) -> Result<Run, String> {
    let seen = run(&scene)?;
    let course = course(&scene, &seen);
    Ok(Run { scene, channels: seen.channels, course, broken: seen.violations })
}

/// The packets that came to a host over a segment.
fn sightings(seen: &Seen, on: usize, to: usize) -> Vec<Sighting> {
    let there = seen.arrivals.iter().filter(|of| of.on == on && of.to == to && of.frame[12..14] != IPV4);
    there.filter_map(|of| bottleneck::of_frame(of.at.as_nanos(), &of.frame)).collect()
}

fn course(scene: &Scene, seen: &Seen) -> Course {
    let near = sightings(seen, BERKELEY, SOCK);
    let (far, last) = (sightings(seen, T1, BREEZE), sightings(seen, SAN_DIEGO, PAOLA));
    let spacing = seen.channels.first().map_or(Span::ZERO, |of| of.spacing);
    let udp = seen.arrivals.iter().filter(|of| {
        let source = of.frame.get(34..42).and_then(|word| word.try_into().ok()).map(u64::from_be_bytes);
        scene.udp && of.on == T1 && of.to == BREEZE && of.frame[12..14] == IPV4 && source == Some(UDP_SOURCE)
    });
    let stream = |(at, of): (usize, &Channel)| {
        let station = of.from as u8 + 1;
        let hurries = scene.hurries && at + 1 == seen.channels.len();
        Stream {
            name: format!("channel {} from {}", at + 1, ["faith", "theorem"][of.from]),
            colour: [0, 2][at % 2],
            station,
            came: bottleneck::delivered(&near, &last, station),
            offered: hurries.then(|| ("offered by the program at theorem".into(), offered(scene, seen))),
        }
    };
    Course {
        origin_ns: seen.origin.as_nanos(),
        end: scene.end,
        load: scene.load_from..scene.load_to,
        hurry: None,
        channels: seen.channels.iter().enumerate().map(stream).collect(),
        udp: udp.map(|of| (of.at.as_nanos(), (of.frame.len() - IP_UDP_ETHERNET) as u64)).collect(),
        crossings: bottleneck::crossings(&near, &far, spacing),
        local_bound: seen.channels.iter().map(|of| of.local).max(),
    }
}

/// The messages that the misbehaving program hands over.
fn offered(scene: &Scene, seen: &Seen) -> Vec<(u64, u64)> {
    let times = (0..).map(|n| scene.period * n).take_while(|at| *at < scene.end);
    let count = |at: Span| if at < scene.load_from { 1 } else { Manner::HURRY };
    times.map(|at| ((seen.origin + at).as_nanos(), u64::from(MESSAGE) * count(at))).collect()
}

impl Run {
    /// The packets that came to the bottleneck under load.
    fn loaded(&self) -> Vec<Crossing> {
        let at = |span: Span| self.course.origin_ns + span.as_nanos();
        let load = at(self.scene.load_from)..at(self.scene.load_to);
        self.course.crossings.iter().filter(|one| load.contains(&one.came_ns)).copied().collect()
    }

    /// Before, under and after the load. The first second is not counted, nor that behind the load's end.
    fn parts(&self) -> [Range<Span>; 3] {
        let Scene { load_from, load_to, end, .. } = self.scene;
        [SECOND..load_from, load_from..load_to, load_to..end]
    }

    /// Rates in the three parts, in kbit/s.
    fn rates(&self, came: &[(u64, u64)]) -> String {
        self.parts().map(|part| (self.course.rate_bps(came, &part) / 1_000).to_string()).join(", ")
    }

    /// The fate of all messages, for a verdict.
    fn kept(&self) -> String {
        let units: u64 = self.channels.iter().map(|of| of.units).sum();
        let longest = self.channels.iter().map(|of| of.longest_ppm).max().unwrap_or(0);
        let bound = self.channels.iter().map(|of| of.bound).max().unwrap_or(Span::ZERO);
        match self.broken.first() {
            Some(rule) => format!("A rule was broken: {rule}."),
            None => format!(
                "Of {units} messages none was lost and none late; the longest time of one was {:.0} % of \
                 its bound, {:.0} ms from end to end.",
                longest as f64 / 1e4,
                panels::ms(bound.as_nanos())
            ),
        }
    }
}

fn figure(
    key: &'static str,
    title: &str,
    run: &'static Result<Run, String>,
    panels: fn(&Run) -> (Vec<Panel>, String),
) -> Figure {
    let ((panels, verdict), rate) = match run {
        Ok(run) => (panels(run), 1_000_000_000 / run.scene.period.as_nanos().max(1)),
        Err(refused) => ((Vec::new(), format!("Admission refused a channel: {refused}.")), 0),
    };
    Figure {
        key,
        title: title.into(),
        subtitle: format!(
            "the node that ships, simulated; {rate} messages a second of 7,200 octets in packets of at \
             most 1,000; a link of 1.5 Mbit/s between two campuses of 10 Mbit/s under the token; load of 2 \
             Mbit/s and TCP on the line from 20 to 30 s"
        ),
        panels,
        verdict,
    }
}

/// Packets at the bottleneck.
pub fn fig12() -> Figure {
    figure("tenet-fig12", "Tenet, figure 12: queue lengths at the bottleneck under load", &SINGLE, |run| {
        let loaded = Course { crossings: run.loaded(), ..run.course.clone() };
        let (most, mean) = bottleneck::waiting(&loaded.crossings);
        let verdict = format!(
            "At most {most} packets are at sock, {mean:.3} on average under load; printed: at most 5, \
             because of the granularity of timers, and 0.964. Ours counts the packet on the line, and \
             those that the regulator holds. {}",
            run.kept()
        );
        (vec![panels::waiting(&loaded)], verdict)
    })
}

/// Delays at the bottleneck.
pub fn fig13() -> Figure {
    figure("tenet-fig13", "Tenet, figure 13: delays of packets at the bottleneck", &SINGLE, |run| {
        let (longest, mean) = bottleneck::delay(&run.loaded());
        let (longest, mean) = (panels::ms(longest), panels::ms(mean));
        let bound = run.course.local_bound.unwrap_or(Span::ZERO);
        let verdict = format!(
            "Every delay is below the proven bound of {:.1} ms; printed: below 70 ms. Under load the \
             longest is {longest:.2} ms, the mean {mean:.2} ms; printed mean: 7.37 ms. A packet's own \
             transmission is in it, and that of the ordinary packet before it. {}",
            panels::ms(bound.as_nanos()),
            run.kept()
        );
        (vec![panels::delays(&run.course)], verdict)
    })
}

/// Throughput under load.
pub fn fig14() -> Figure {
    figure("tenet-fig14", "Tenet, figure 14: a channel and a UDP video under load", &SINGLE, |run| {
        let rates = run.course.channels.first().map_or(String::new(), |of| run.rates(&of.came));
        let verdict = format!(
            "Before, under and after the load the channel brings {rates} kbit/s, and the UDP video {} \
             kbit/s. The paper printed no number: its channel is flat, its UDP video suffers from 20 s to \
             some seconds behind 30 s. UDP video and load begin at sock, since the simulator forwards no \
             ordinary packets. {}",
            run.rates(&run.course.udp),
            run.kept()
        );
        (vec![panels::under_load(&run.course)], verdict)
    })
}

/// Two channels.
pub fn fig15() -> Figure {
    figure(
        "tenet-fig15",
        "Tenet, figure 15: two channels that are protected from each other",
        &DOUBLE,
        |run| {
            let rates: Vec<String> = run.course.channels.iter().map(|of| run.rates(&of.came)).collect();
            let refused: u64 = run.channels.iter().map(|of| of.refused).sum();
            let verdict = format!(
                "Before, under and after the load: {} kbit/s. The paper printed no number; its throughputs \
             \"remain almost constant\". From 20 s on the program at theorem hands over three times what \
             was agreed; {refused} of its messages find no room in the memory of its channel, and the \
             other channel feels nothing. {}",
                rates.join(" and "),
                run.kept()
            );
            (vec![panels::protected(&run.course)], verdict)
        },
    )
}

/// The paper's printed numbers beside ours, for those figures that have a table.
pub fn beside(key: &str) -> Vec<Beside> {
    let run = match key {
        "tenet-fig12" | "tenet-fig13" | "tenet-fig14" => &*SINGLE,
        "tenet-fig15" => &*DOUBLE,
        _ => return Vec::new(),
    };
    let Ok(run) = run else { return Vec::new() };
    let row = |what: &str, paper: String, ours: String| Beside { what: what.to_owned(), paper, here: ours };
    let number = |value: f64| format!("{value:.2}");
    match key {
        "tenet-fig12" => {
            let (most, mean) = bottleneck::waiting(&run.loaded());
            vec![
                row("packets at the bottleneck, most", PAPER_WAITING.0.to_string(), most.to_string()),
                row("packets at the bottleneck, mean", PAPER_WAITING.1.to_string(), format!("{mean:.3}")),
            ]
        }
        "tenet-fig13" => {
            let (longest, mean) = bottleneck::delay(&run.loaded());
            let bound = run.course.local_bound.map_or(0, Span::as_nanos);
            vec![
                row("bound at the bottleneck, ms", PAPER_BOUND_MS.to_string(), number(panels::ms(bound))),
                row("longest delay, ms", format!("below {PAPER_BOUND_MS}"), number(panels::ms(longest))),
                row("mean delay, ms", PAPER_MEAN_MS.to_string(), number(panels::ms(mean))),
            ]
        }
        _ => {
            let udp = ("UDP video".to_owned(), &run.course.udp);
            let channels = run.course.channels.iter().map(|of| (of.name.clone(), &of.came));
            let rows = channels.chain(Some(udp).filter(|_| run.scene.udp));
            let words = |name: &str| if name.starts_with("UDP") { "falls under load" } else { "constant" };
            rows.map(|(name, came)| {
                row(&format!("{name}, kbit/s before, under, after"), words(&name).into(), run.rates(came))
            })
            .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TENET-5.2.1-2, TENET-5.2.1-3, TENET-5.2.1-4: the paper's findings hold for the shipping node.
    #[test]
    fn a_channel_keeps_its_bound_at_the_bottleneck_and_udp_does_not() {
        let run = perform(single(5)).expect("the line has room");
        assert_eq!(run.broken, Vec::<String>::new());
        let (most, _) = bottleneck::waiting(&run.loaded());
        assert!((1..=8).contains(&most), "no more than a message: {most}");
        let bound = run.course.local_bound.expect("admission said so").as_nanos();
        let (longest, _) = bottleneck::delay(&run.course.crossings);
        assert!(longest <= bound && longest * 10 >= bound, "{longest} {bound}");
        let of = |came: &[(u64, u64)]| run.parts().map(|part| run.course.rate_bps(came, &part) as f64);
        let [before, under, _] = of(&run.course.channels[0].came);
        assert!((under / before - 1.0).abs() < 0.05, "{before} {under}");
        let [before, under, _] = of(&run.course.udp);
        assert!(under < before * 0.8, "{before} {under}");
    }

    /// TENET-5.2.2-1: a program that sends three times what was agreed takes nothing from the other channel.
    #[test]
    fn two_channels_are_protected_from_each_other() {
        let run = perform(double(5)).expect("the line has room for two");
        assert_eq!(run.broken, Vec::<String>::new());
        assert!(run.channels[1].refused > 0 && run.channels[0].refused == 0);
        for of in &run.course.channels {
            let [before, under, _] = run.parts().map(|part| run.course.rate_bps(&of.came, &part) as f64);
            assert!((under / before - 1.0).abs() < 0.05, "{}: {before} {under}", of.name);
        }
    }
}
