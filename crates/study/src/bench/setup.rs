//! `rota bench setup`: how long a program waits for a channel over a gateway, how many such channels come and
//! go in a second, and what they leave behind.

use super::parts::{self, Parts, Watch};
use super::stage::{PATIENCE, PAUSE, Stage};
use crate::clock;
use crate::times::{Record, Times};
use rota::{Listener, Node, OpenError, OpenRequest, Received, SendChannel};
use rota_answer::{Failure, Format, outln};
use rota_lab::{Medium, Nodes, Segment, Station, Topology};
use rota_units::{BitRate, Instant, Span};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

pub(super) const SOURCE: u8 = 1;
pub(super) const GATEWAY: u8 = 2;
pub(super) const DESTINATION_NAME: &str = "far";
/// One channel and those that are asked for stay open, so that no set-up waits for a switch of mode.
const KEPT_SERVICE: u16 = 1_000;
/// The channel whose set-ups are watched, beside those of the programs.
const WATCHED_SERVICE: u16 = 999;
/// Set-ups that are watched, at most.
const WATCHED: u32 = 100;
/// Small enough that the channels of all programs fit at once.
const UNIT_OCTETS: u32 = 100;
const PERIOD: Span = Span::from_nanos(33_333_333);
/// A program that waits for the other's next listener looks again then.
const SOON: Span = Span::from_millis(1);
/// A segment that has lost its last share is in plain mode after this time.
const PLAIN: Span = Span::from_millis(150);
/// Of those before the first that counts: code and tables are warm then.
const WARM: u32 = 10;
/// Section 5.2.4 and Table 5 of the Tenet paper: 70 ms over four machines, 90 ms over six.
const PAPER_MS: &str = "70 to 90";
/// Table 5: all nodes and links there and back, of a path of four nodes and three links.
const PAPER_PARTS: (f64, f64, u32) = (18.974, 50.706, 3);

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Wire {
    /// Two full-duplex cables
    Link,
    /// Two switches, whose stations pass tokens
    Token,
}

/// Arguments of `rota bench setup`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota bench setup --wire link --json")]
pub struct Args {
    /// The medium on both sides of the gateway
    #[arg(long, value_enum, default_value = "token")]
    wire: Wire,
    /// Channels that are opened and closed in all
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    setups: u32,
    /// Programs that open and close at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=30))]
    programs: u16,
    /// Gateways of the path: one set-up passes so many nodes and two
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=5))]
    gateways: u8,
    /// Further channels that stay open meanwhile
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=60))]
    standing: u16,
    /// No channel stays open meanwhile, so that each set-up waits until its segments are in token mode
    #[arg(long, conflicts_with_all = ["standing", "programs"])]
    switching: bool,
}

/// The memory and the descriptors of the gateway's process.
#[derive(Clone, Copy, Debug, Serialize)]
struct Holdings {
    memory_octets: u64,
    descriptors: u64,
    /// Processor time of all its threads so far.
    #[serde(skip)]
    cpu_ns: u64,
}

/// The outcome, as `--json` prints it.
#[derive(Serialize)]
struct Results {
    virtual_wire: bool,
    wire: Wire,
    programs: u16,
    gateways: u8,
    standing: u16,
    /// Each set-up has waited for its segments to switch to token mode.
    switching: bool,
    /// From the call to the open channel.
    open: Times,
    /// From the call to the confirmed end, after the bound has passed.
    close: Times,
    refused: u64,
    /// Set-ups with their tear-downs.
    setups_per_s: u64,
    /// Processor time of the gateway's node for each, whatever else its machine does.
    gateway_cpu_ns: u64,
    gateway_before: Holdings,
    gateway_after: Holdings,
    /// Channels and reservations that any node still has at the end.
    left: u64,
    /// Where the time of one set-up after another goes.
    parts: Parts,
}

/// Stations in a row, those between the ends gateways; `nodes` ends before the lab does.
pub(super) struct Ground {
    /// Held only: they end with this value.
    _nodes: Nodes,
    pub(super) stage: Stage,
    /// Segments return to plain mode before each set-up.
    switching: bool,
}

/// The measurements of all programs.
#[derive(Default)]
struct Measured {
    open: Record,
    close: Record,
    refused: u64,
}

/// Runs the benchmark.
pub fn run(args: &Args, format: Format) -> Result<(), Failure> {
    let ground = Ground { switching: args.switching, ..Ground::build(args.wire, args.gateways)? };
    let services = KEPT_SERVICE..=KEPT_SERVICE + args.standing;
    // The first one has heard of the way, also where none stays.
    let services = services.take(if args.switching { 1 } else { usize::MAX });
    let mut kept = services.map(|service| ground.keep_one(service)).collect::<Result<Vec<_>, Failure>>()?;
    if args.switching {
        kept.clear();
    }
    ground.run_programs(args.programs, WARM * u32::from(args.programs))?;
    let before = ground.holdings()?;
    let begin = clock::now();
    let measured = ground.run_programs(args.programs, args.setups)?;
    let took = clock::now().since(begin).as_nanos().max(1);
    let after = ground.holdings()?;
    let parts = ground.parts(args.setups.min(WATCHED))?;
    drop(kept);
    let open = measured.open.sum_up();
    let results = Results {
        virtual_wire: true,
        wire: args.wire,
        programs: args.programs,
        gateways: args.gateways,
        standing: args.standing,
        switching: args.switching,
        open,
        close: measured.close.sum_up(),
        refused: measured.refused,
        setups_per_s: (u128::from(open.count) * 1_000_000_000 / u128::from(took)) as u64,
        gateway_cpu_ns: after.cpu_ns.saturating_sub(before.cpu_ns) / open.count.max(1),
        gateway_before: before,
        gateway_after: after,
        left: ground.left_in_the_end()?,
        parts,
    };
    format.tell(&results, print);
    if results.left > 0 {
        return Err(Failure::failed(format!("{} channels or reservations were left behind", results.left)));
    }
    Ok(())
}

impl Ground {
    pub(super) fn build(wire: Wire, gateways: u8) -> Result<Self, Failure> {
        let rate = BitRate::from_mbit(1_000);
        let medium = || if wire == Wire::Link { Medium::Link } else { Medium::Switch };
        let segment = |name: &str| Segment { medium: medium(), ..Segment::new(name, rate) };
        let station = |name: &str, ports: &[usize]| Station { name: name.to_owned(), ports: ports.to_vec() };
        let last = usize::from(gateways);
        let between = (0..last).map(|on| station(&format!("g{}", on + 1), &[on, on + 1]));
        let ends = (station("n1", &[0]), station(DESTINATION_NAME, &[last]));
        let stations = [ends.0].into_iter().chain(between).chain([ends.1]).collect();
        let segments = (0..=last).map(|on| segment(&format!("s{on}"))).collect();
        let topology = Topology { segments, stations };
        let stage = Stage::of_topology(topology)?;
        let (nodes, warnings) = Nodes::start(&stage.lab, false).map_err(Failure::failed)?;
        warnings.iter().for_each(|warning| eprintln!("rota: {warning}"));
        Ok(Self { _nodes: nodes, stage, switching: false })
    }

    fn open(&self, node: &Node, service: u16) -> Result<Result<SendChannel, OpenError>, Failure> {
        self.ask(node, &OpenRequest::new(DESTINATION_NAME, service, UNIT_OCTETS, PERIOD))
    }

    fn ask(&self, node: &Node, request: &OpenRequest) -> Result<Result<SendChannel, OpenError>, Failure> {
        self.stage.lab.host(SOURCE).run(|| node.open(request)).map_err(Failure::failed)
    }

    /// Opens a channel as soon as the source has heard of the way.
    pub(super) fn open_when_heard(&self, request: &OpenRequest) -> Result<SendChannel, Failure> {
        let (node, deadline) = (self.stage.connect(SOURCE)?, clock::now() + PATIENCE);
        loop {
            match self.ask(&node, request)? {
                Ok(sender) => return Ok(sender),
                Err(error) if matches!(error, OpenError::Refused(_)) || clock::now() >= deadline => {
                    return Err(error.into());
                }
                Err(_) => clock::sleep_until(clock::now() + PAUSE),
            }
        }
    }

    /// The number of the last station.
    pub(super) fn destination(&self) -> u8 {
        self.stage.stations()
    }

    pub(super) fn listen(&self, service: u16) -> Result<Listener, Failure> {
        self.listen_by(&self.stage.connect(self.destination())?, service)
    }

    fn listen_by(&self, node: &Node, service: u16) -> Result<Listener, Failure> {
        let listener = self.stage.lab.host(self.destination()).run(|| node.listen(service, None, 4));
        listener.map_err(Failure::failed)?.map_err(Failure::failed)
    }

    /// Opens a channel that stays, as soon as the source has heard of the way.
    fn keep_one(&self, service: u16) -> Result<Kept, Failure> {
        let over = Arc::new(AtomicBool::new(false));
        let mut listener = self.listen(service)?;
        let told = over.clone();
        let taker = std::thread::spawn(move || {
            let channel = listener.accept(PATIENCE);
            while channel.is_ok() && !told.load(Ordering::Relaxed) {
                clock::sleep_until(clock::now() + PAUSE);
            }
        });
        let sender =
            self.open_when_heard(&OpenRequest::new(DESTINATION_NAME, service, UNIT_OCTETS, PERIOD))?;
        Ok(Kept { over, taker: Some(taker), sender: Some(sender) })
    }

    /// So many set-ups in all, shared out among the programs.
    fn run_programs(&self, programs: u16, setups: u32) -> Result<Measured, Failure> {
        let (left, all) = (AtomicU64::new(u64::from(setups)), Mutex::new(Measured::default()));
        let over = AtomicBool::new(false);
        let listeners: Vec<(u16, Listener)> = (1..=programs)
            .map(|service| Ok((service, self.listen(service)?)))
            .collect::<Result<_, Failure>>()?;
        std::thread::scope(|scope| {
            for (service, listener) in listeners {
                let over = &over;
                scope.spawn(move || self.take(service, listener, over));
            }
            let running: Vec<_> = (1..=programs)
                .map(|service| {
                    let (left, all) = (&left, &all);
                    scope.spawn(move || self.one_program(service, left, all))
                })
                .collect();
            let ended: Result<Vec<()>, Failure> = running
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(Failure::failed("a program panicked"))))
                .collect();
            over.store(true, Ordering::Relaxed);
            ended
        })?;
        all.into_inner().map_err(|_| Failure::failed("a program panicked"))
    }

    /// The receiving program: takes one channel after the other, and holds each until its sender closes it. A
    /// listener takes one channel, so the next one listens before this one ends.
    fn take(&self, service: u16, mut listener: Listener, over: &AtomicBool) -> Result<(), Failure> {
        let (node, mut unit) = (self.stage.connect(self.destination())?, Vec::new());
        while !over.load(Ordering::Relaxed) {
            let Ok(mut channel) = listener.accept(PAUSE) else { continue };
            listener = self.listen_by(&node, service)?;
            while !matches!(channel.recv(&mut unit, PATIENCE), Err(_) | Ok(Received::End(_))) {}
        }
        Ok(())
    }

    /// One program opens and closes so many channels, each watched at all stations.
    fn parts(&self, setups: u32) -> Result<Parts, Failure> {
        let (listener, over) = (self.listen(WATCHED_SERVICE)?, AtomicBool::new(false));
        let (node, mut watch) = (self.stage.connect(SOURCE)?, Watch::begin(&self.stage)?);
        std::thread::scope(|scope| {
            scope.spawn(|| self.take(WATCHED_SERVICE, listener, &over));
            let watched = (0..setups).try_for_each(|_| {
                parts::settle();
                watch.forget()?;
                let (asked, sender) = self.open_as_soon_as_heard(&node, WATCHED_SERVICE)?;
                let open = clock::now();
                let Some(sender) = sender else { return Ok(()) };
                watch.note(asked, open)?;
                sender.close(PATIENCE).map(|_| ()).map_err(Failure::failed)
            });
            over.store(true, Ordering::Relaxed);
            watched
        })?;
        Ok(watch.parts())
    }

    fn one_program(&self, service: u16, left: &AtomicU64, all: &Mutex<Measured>) -> Result<(), Failure> {
        let node = self.stage.connect(SOURCE)?;
        let take = |left: u64| left.checked_sub(1);
        while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
            if self.switching {
                clock::sleep_until(clock::now() + PLAIN);
            }
            let (asked, opened) = self.open_as_soon_as_heard(&node, service)?;
            let open = clock::now();
            let closed = match opened {
                Some(sender) => sender.close(PATIENCE).map(|_| clock::now()).map_err(Failure::failed)?,
                None => {
                    locked(all)?.refused += 1;
                    continue;
                }
            };
            let mut all = locked(all)?;
            all.open.note(Some(open.since(asked)));
            all.close.note(Some(closed.since(open)));
        }
        Ok(())
    }

    /// Asks until the receiving program listens again; returns when it asked for the last time, and the
    /// channel unless admission refuses it.
    fn open_as_soon_as_heard(
        &self,
        node: &Node,
        service: u16,
    ) -> Result<(Instant, Option<SendChannel>), Failure> {
        let deadline = clock::now() + PATIENCE;
        loop {
            let asked = clock::now();
            match self.open(node, service)? {
                Ok(sender) => return Ok((asked, Some(sender))),
                Err(OpenError::Refused(_)) => return Ok((asked, None)),
                Err(OpenError::NoListener(_)) if asked < deadline => clock::sleep_until(asked + SOON),
                Err(error) => return Err(Failure::failed(error)),
            }
        }
    }

    fn holdings(&self) -> Result<Holdings, Failure> {
        let pid = self.stage.connect(GATEWAY)?.pid();
        let gone = |_| Failure::failed("the gateway's node has ended");
        let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).map_err(gone)?;
        let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).map_err(gone)?.count() as u64;
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).map_err(gone)?;
        // The first number of the file is the time that the thread has run.
        let ran = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("schedstat")).ok();
        let times = threads.flatten().filter_map(ran);
        let cpu_ns = times.filter_map(|text| text.split(' ').next()?.parse::<u64>().ok()).sum();
        Ok(Holdings { memory_octets: pages * 4_096, descriptors, cpu_ns })
    }

    /// Channels and shares of the nodes when the last channel's end has had its time.
    fn left_in_the_end(&self) -> Result<u64, Failure> {
        let deadline = clock::now() + PATIENCE;
        loop {
            let mut left = 0;
            for station in SOURCE..=self.destination() {
                let mut node = self.stage.connect(station)?;
                left += node.status().map_err(Failure::failed)?.reservations.len() as u64;
                left += node.channels().map_err(Failure::failed)?.len() as u64;
            }
            if left == 0 || clock::now() >= deadline {
                return Ok(left);
            }
            clock::sleep_until(clock::now() + PAUSE);
        }
    }
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn locked(all: &Mutex<Measured>) -> Result<MutexGuard<'_, Measured>, Failure> {
    all.lock().map_err(|_| Failure::failed("a program panicked"))
}

/// The channel that stays open, and its receiver.
struct Kept {
    over: Arc<AtomicBool>,
    taker: Option<std::thread::JoinHandle<()>>,
    sender: Option<SendChannel>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        drop(self.sender.take());
        self.over.store(true, Ordering::Relaxed);
        let _ = self.taker.take().map(std::thread::JoinHandle::join);
    }
}

fn print(o: &Results) {
    let wire = if o.wire == Wire::Link { "cables" } else { "switches under tokens" };
    outln!(
        "Channels from n1 over {} to the last station, {wire}, 1 Gbit/s, virtual wire; {}; {} stand \
         meanwhile{}.\n",
        counted(o.gateways.into(), "gateway"),
        counted(o.programs.into(), "program"),
        counted(o.standing.into(), "further channel"),
        if o.switching { "; each set-up waits for the switches of mode" } else { "" }
    );
    outln!("ms            median      p99    p99.9      max    count");
    let ms = |ns: u64| format!("{}.{:03}", ns / 1_000_000, ns / 1_000 % 1_000);
    for (name, times) in [("to open", o.open), ("to close", o.close)] {
        let Times { p50_ns, p99_ns, p999_ns, max_ns, count, .. } = times;
        outln!(
            "{name:<10} {:>9} {:>8} {:>8} {:>8} {count:>8}",
            ms(p50_ns),
            ms(p99_ns),
            ms(p999_ns),
            ms(max_ns)
        );
    }
    outln!("\n{} set-ups with their tear-downs a second; {} refused.", o.setups_per_s, o.refused);
    outln!("The gateway's node took {} of a processor for each.", Span::from_nanos(o.gateway_cpu_ns));
    let (nodes, links, hops) = PAPER_PARTS;
    let each = o.open.p50_ns / (u64::from(o.gateways) + 1);
    outln!("A node and the link behind it, there and back: {} ms in the median set-up.", ms(each));
    outln!("\n{}", parts::table(&o.parts));
    outln!(
        "The Tenet paper (5.2.4): {PAPER_MS} ms over 4 to 6 machines, about constant up to 30 channels; \
         Table 5: {:.1} ms a node and link, {nodes} ms of the whole in nodes and {links} ms on links.",
        (nodes + links) / f64::from(hops)
    );
    let kib = |octets: u64| octets / 1_024;
    outln!(
        "The gateway had {} KiB and {} descriptors before, {} KiB and {} after; {} channels or shares left.",
        kib(o.gateway_before.memory_octets),
        o.gateway_before.descriptors,
        kib(o.gateway_after.memory_octets),
        o.gateway_after.descriptors,
        o.left
    );
}
