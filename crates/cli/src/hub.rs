//! `rota hub`: an Ethernet segment in user space between interfaces, with the simulator's medium and faults.

use rota_answer::{Exit, Failure, Format, outln};
use rota_driver::realtime::{PRIORITY_DEFAULT, Realtime, Wish};
use rota_lab::hub::{Hub, Plan};
use rota_lab::{default_port_queue, link_rate};
use rota_sim::{Scenario, Settings, Topology, WireFault, WorldSpec};
use rota_units::{BitRate, Instant, Octets, Span};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// As many ports as a scenario has stations.
const PORTS_MAX: usize = 250;

const HELP: &str = "\
Example: two network namespaces on a segment of 10 Mbit/s that loses every hundredth frame
  ip netns add a; ip link add pa type veth peer name eth0 netns a; ip link set pa up
  ip netns add b; ip link add pb type veth peer name eth0 netns b; ip link set pb up
  ip -n a addr add 10.0.0.1/24 dev eth0; ip -n a link set eth0 up
  ip -n b addr add 10.0.0.2/24 dev eth0; ip -n b link set eth0 up
  rota hub --ports pa,pb --rate 10mbit --loss 1% --seconds 10 &
  ip netns exec a ping 10.0.0.2

A script is a TOML file of [[fault]] tables, as in scenario files; stations are the ports from 1:
  [[fault]]
  kind = \"one-way\"
  at = \"2s\"
  lasts = \"500ms\"
  station = 1
  other = 2
SIGHUP reads it again and follows it from that moment. docs/hub.md has all kinds and fields.";

/// Arguments of `rota hub`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The interfaces to join, most often the near ends of veth pairs
    #[arg(long, value_name = "IF,IF,…", value_delimiter = ',', required = true)]
    ports: Vec<String>,
    /// Wire rate of both directions of every port
    #[arg(long, default_value = "1gbit", value_parser = link_rate)]
    rate: BitRate,
    /// The size of a port's queue; frames beyond it are dropped [default: 150kB, 1MB from 1gbit on, what the
    /// line carries in 100ms below 10mbit]
    #[arg(long, value_name = "SIZE", value_parser = rota_units::parse_octets)]
    port_queue: Option<Octets>,
    /// How long every frame is under way, beside its time on the wires
    #[arg(long, value_name = "TIME", default_value = "0us", value_parser = rota_units::parse_span)]
    delay: Span,
    /// Every frame is up to so much later, and may be overtaken
    #[arg(long, value_name = "TIME", value_parser = rota_units::parse_span)]
    jitter: Option<Span>,
    /// How many of all frames vanish, such as 1% or 50ppm
    #[arg(long, value_name = "SHARE", value_parser = rota_study::quantity::parse_share)]
    loss: Option<u32>,
    /// The faults and their times: a TOML file of [[fault]] tables
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// The seed of all faults
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// End after so many seconds; without it at Ctrl-C
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    seconds: Option<u64>,
    /// The medium that joins the ports
    #[arg(long, value_enum, default_value = "switch")]
    medium: Medium,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Medium {
    /// A full-duplex learning switch
    Switch,
    /// A full-duplex link between two ports
    Link,
    /// One half-duplex segment with CSMA/CD, up to 100 Mbit/s
    CsmaCd,
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    let plan = plan(args)?;
    let read = || match &args.script {
        Some(path) => rota_study::scenario::script::read(path, &plan.world),
        None => Ok(Vec::new()),
    };
    let script = read()?;
    // First what was asked for, so that an output that breaks off still says what it was.
    let mut hub = Hub::open(&args.ports, plan.clone()).map_err(Failure::failed)?;
    // The wire must not wait for those whom it joins.
    let wish = Wish { fifo: Some(PRIORITY_DEFAULT + 1), cpu: None, lock: false };
    let realtime = Realtime::ask(wish);
    hub.follow(script);
    let (ports, rate, seed) = (args.ports.join(", "), args.rate, args.seed);
    let late =
        if realtime.fifo { "" } else { "; without SCHED_FIFO, so frames may be late on a busy machine" };
    eprintln!("rota hub: {ports} at {rate}, seed {seed}{late}");
    let end = args.seconds.map_or(Instant::FAR, |seconds| hub.start() + Span::from_millis(seconds * 1_000));
    let reread = || match read() {
        Ok(script) => Some(script),
        Err(failure) => {
            eprintln!("rota hub: goes on with the script that it has: {}", failure.sentence);
            None
        }
    };
    let report = hub.run(end, reread).map_err(Failure::failed)?;
    format.tell(&report, |report| outln!("{}", report.text()));
    Ok(Exit::Done)
}

/// The request, if it makes sense.
fn plan(args: &Args) -> Result<Plan, Failure> {
    let count = args.ports.len();
    let mut seen = BTreeSet::new();
    if let Some(twice) = args.ports.iter().find(|name| !seen.insert(*name)) {
        return Err(Failure::wrong_use(format!("the port '{twice}' is named twice; name each once")));
    }
    let link = args.medium == Medium::Link;
    if !(2..=PORTS_MAX).contains(&count) || link && count != 2 {
        let (what, right) = if link {
            ("a link joins", "2".to_owned())
        } else {
            ("a hub joins", format!("2 to {PORTS_MAX}"))
        };
        return Err(Failure::wrong_use(format!("{what} {right} ports, not {count}; name them with --ports")));
    }
    let loss = args.loss.map(|ppm| WireFault::Loss { ppm, burst: 1 });
    let jitter = args.jitter.map(|max| WireFault::Delay { ppm: 1_000_000, min: Span::ZERO, max });
    let standing = loss.into_iter().chain(jitter).collect();
    Ok(Plan { world: world(args)?, standing, seed: args.seed })
}

/// The world of the simulator that has such a medium.
fn world(args: &Args) -> Result<WorldSpec, Failure> {
    let (count, rate) = (args.ports.len(), args.rate);
    let port_queue = args.port_queue.unwrap_or_else(|| default_port_queue(rate));
    if port_queue.get() < 1_600 {
        let sentence = format!("a port queue of {port_queue} holds no full frame: use 1600octets or more");
        return Err(Failure::wrong_use(sentence));
    }
    let switched = || WorldSpec::with(count, Settings::ethernet(rate, port_queue));
    let mut world = match args.medium {
        Medium::Switch => switched(),
        Medium::Link => WorldSpec { topology: Topology::Link { delay: Span::ZERO }, ..switched() },
        Medium::CsmaCd => {
            WorldSpec::csma_cd(count, rate, args.port_queue.unwrap_or(WorldSpec::CARD_OF_ITS_TIME))
        }
    };
    (world.latency, world.strangers) = (args.delay, usize::from(args.medium != Medium::Link));
    let mut scenario = Scenario::new("hub", count, world.settings.clone());
    scenario.world = world.clone();
    scenario.check_shared().map_err(|error| Failure::wrong_use(error.sentence))?;
    Ok(world)
}
