//! `rota bench admit`: how long the tests of one more channel take at a port of a link that has many.

use crate::clock;
use crate::times::{Record, Times};
use rota_admission::SegmentParams;
use rota_admission::rtip::{Discipline, Flow, Point, Traffic};
use rota_admission::subnet::{Ask, LINK_FLOWS_OWN, LINK_POINTS, LinkPort, Subnet};
use rota_answer::{Failure, Format, outln};
use rota_units::{BitRate, Octets, Span};
use serde::Serialize;

/// Rounds before the measured ones: they warm the caches, as another request would.
const WARM_UP: u64 = 20;

/// Arguments of `rota bench admit`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota bench admit --channels 1000 --json")]
pub struct Args {
    /// Channels that stand on the port, of 1 Gbit/s
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000))]
    channels: u64,
    /// How often one more is tested, entered and released
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rounds: u64,
}

/// The channels of a port.
#[derive(Clone, Copy)]
struct Set {
    name: &'static str,
    /// The request of channel i, and its bound on the port.
    channel: fn(u64) -> (Ask, Span),
}

const SETS: [Set; 2] = [Set { name: "periodic", channel: periodic }, Set { name: "bursts", channel: bursts }];

/// One packet of 1,000 octets each 20 to 36 ms, within 10 to 22 ms.
fn periodic(i: u64) -> (Ask, Span) {
    let x_min = Span::from_millis(20 + i % 17);
    (ask(Traffic::periodic(x_min).ok(), 1_000), Span::from_millis(10 + i % 13))
}

/// Bursts of ten packets of 250 octets, within 20 to 32 ms.
fn bursts(i: u64) -> (Ask, Span) {
    let x_min = Span::from_micros(2_000 + i % 17 * 100);
    (ask(Traffic::new(x_min, x_min * 2, x_min * 20).ok(), 250), Span::from_millis(20 + i % 13))
}

fn ask(traffic: Option<Traffic>, octets: u64) -> Ask {
    let octets = Octets::new(octets);
    Ask { traffic: traffic.expect("the sets are sound"), octets, octets_least: octets }
}

/// The outcome of one set, as `--json` prints it.
#[derive(Serialize)]
struct Outcome {
    channels: u64,
    /// The shortest bound that one more channel can have.
    test: Times,
    /// The test and the entry among the others.
    test_and_entry: Times,
    /// The way out again.
    release: Times,
}

type Port = LinkPort<Vec<Flow>, Vec<Point>>;

fn port(set: Set, channels: u64) -> Result<Port, Failure> {
    let params = SegmentParams::new(BitRate::from_mbit(1_000), 2);
    let none = Flow { traffic: periodic(0).0.traffic, service: Span::ZERO, delay: Span::ZERO };
    let flows = vec![none; channels as usize + 1 + LINK_FLOWS_OWN];
    let refused = |denied| Failure::failed(format!("the port has no room: {denied:?}"));
    let discipline = Discipline::of(None, None).map_err(|wrong| Failure::failed(format!("{wrong:?}")))?;
    let mut port =
        LinkPort::new(params, discipline, flows, vec![Point::default(); LINK_POINTS]).map_err(refused)?;
    for i in 0..channels {
        let (ask, delay) = (set.channel)(i);
        port.admit_best(&ask).map_err(refused)?;
        port.relax(i as usize, &ask, delay);
    }
    Ok(port)
}

fn measure(set: Set, args: &Args) -> Result<Outcome, Failure> {
    let mut port = port(set, args.channels)?;
    let [mut test, mut entry, mut release] = [(); 3].map(|()| Record::default());
    for i in 0..WARM_UP + args.rounds {
        let (ask, _) = (set.channel)(i);
        let begun = clock::now();
        let offer = port.best(&ask);
        let tested = clock::now();
        let entered = port.admit_best(&ask);
        let stands = clock::now();
        if offer.is_err() || entered.is_err() {
            return Err(Failure::failed(format!("one more channel is refused: {entered:?}")));
        }
        port.release(args.channels as usize);
        let left = clock::now();
        if i >= WARM_UP {
            test.note(Some(tested.since(begun)));
            entry.note(Some(stands.since(tested)));
            release.note(Some(left.since(stands)));
        }
    }
    let [test, test_and_entry, release] = [test, entry, release].map(|record| record.sum_up());
    Ok(Outcome { channels: args.channels, test, test_and_entry, release })
}

/// Runs the benchmark.
pub fn run(args: &Args, format: Format) -> Result<(), Failure> {
    let outcomes = SETS.map(|set| Ok::<_, Failure>((set.name, measure(set, args)?)));
    let outcomes = outcomes.into_iter().collect::<Result<std::collections::BTreeMap<_, _>, _>>()?;
    format.tell(&outcomes, print);
    Ok(())
}

fn print(outcomes: &std::collections::BTreeMap<&str, Outcome>) {
    outln!("One more channel at a port of 1 Gbit/s, Delay-EDD, in memory, one core.\n");
    outln!("us                                  median      p99    p99.9      max");
    for (set, of) in outcomes {
        let rows = [("test", of.test), ("test and entry", of.test_and_entry), ("release", of.release)];
        for (name, times) in rows {
            let us = |ns: u64| format!("{}.{:02}", ns / 1_000, ns / 10 % 100);
            let name = format!("{} {set}: {name}", of.channels);
            let Times { p50_ns, p99_ns, p999_ns, max_ns, .. } = times;
            outln!("{name:<32} {:>9} {:>8} {:>8} {:>8}", us(p50_ns), us(p99_ns), us(p999_ns), us(max_ns));
        }
    }
}
