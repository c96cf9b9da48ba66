//! `rota send`: a video or standard input, one unit each period.

use crate::traffic::Service;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use rota::{AskedTerms, Contract, Overdue, ReceiverInfo, Tally};
use rota_answer::{Asked, Exit, Failure, Format, Output, json};
use rota_study::came;
use rota_study::clock;
use rota_study::record::{OverduePolicy, Sent, SentRecord};
use rota_study::transport::channel::{self, ChannelFailure, ChannelRequest};
use rota_study::transport::guarantee::Guarantee;
use rota_study::transport::udp::{UdpSink, resolve};
use rota_study::transport::{Over, UnitSink};
use rota_study::video::{FrameRate, Video};
use rota_units::{BitRate, Instant, Span, parse_rate, parse_span};
use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;

/// Without a stated frame rate: the cycle of the ring, 30 units a second.
const PERIOD_DEFAULT: Span = Span::from_nanos(33_333_333);
/// Time to get ready before the first unit.
const START_DELAY: Span = Span::from_millis(20);

/// Arguments of `rota send`.
#[derive(clap::Args)]
#[command(after_help = "Examples: rota send --video clip.mp4 --to n5 --service 3\n          \
    rota send --video clip.mp4 --to screen --from-time 10m --until 70m")]
pub struct Args {
    /// The H.264 byte stream or MP4 to play, one access unit each frame time; standard input otherwise
    #[arg(long, value_name = "FILE")]
    video: Option<PathBuf>,
    /// The receiving station, such as n5, or several, such as n4,n5,n6; with --over udp also a host or an
    /// address
    #[arg(long, value_name = "NODE", required_unless_present = "listen")]
    to: Option<String>,
    /// Wait until a receiver asks for the channel ('rota recv --ask'), on this segment or beyond
    #[arg(long, conflicts_with_all = ["to", "reattach", "start_at"])]
    listen: bool,
    /// The service that listens there
    #[arg(long, default_value_t = 0, value_name = "N")]
    service: u16,
    /// The transport of the units
    #[arg(long, value_enum, default_value = "channel")]
    over: Over,
    /// The rate of standard input, such as 1.5mbit
    #[arg(long, value_parser = parse_rate, conflicts_with = "video", allow_hyphen_values = true)]
    rate: Option<BitRate>,
    /// Frames a second, where the file does not state them or states them wrongly: 25, 29.97 or 24000/1001
    #[arg(long, value_parser = FrameRate::read, value_name = "N")]
    fps: Option<FrameRate>,
    /// From one unit to the next (Xmin), where it is not a frame time
    #[arg(long, visible_alias = "xmin", value_parser = parse_span, value_name = "TIME")]
    #[arg(conflicts_with = "fps")]
    period: Option<Span>,
    #[command(flatten)]
    wanted: Service,
    /// Make each unit of so many copies of its access unit, to load a faster link
    #[arg(long, default_value_t = 1, value_name = "K")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=10_000))]
    repeat_unit: u64,
    /// Stop after so many seconds; a shorter clip starts again
    #[arg(long, value_name = "S", conflicts_with = "frames")]
    seconds: Option<u64>,
    /// Stop after so many units; a shorter clip starts again
    #[arg(long, value_name = "N")]
    frames: Option<u64>,
    /// When the first unit leaves, in nanoseconds of CLOCK_MONOTONIC
    #[arg(long, value_name = "NS")]
    start_at: Option<u64>,
    /// Policy for units whose turn has passed, after this host or its node stood still: 'drop' leaves
    /// them out, as a camera would, and counts them as lost; 'keep' sends everything that much later. Of a
    /// video on a channel overdue frames are dropped, all else is kept
    #[arg(long, value_enum, value_name = "POLICY")]
    overdue: Option<OverduePolicy>,
    /// After the end of this station's node or of the receiver's, open the channel again at the next node:
    /// within so long in all. Units that had not left are lost
    #[arg(long, value_parser = parse_span, value_name = "TIME")]
    reattach: Option<Span>,
    /// Send the units as a continuous medium, by time, up to W periods before their time; the receiver runs
    /// 'rota recv --ahead W'
    #[arg(long, value_parser = ahead(), value_name = "W", conflicts_with = "reattach")]
    ahead: Option<u16>,
    /// Short for --overdue drop
    #[arg(long, conflicts_with = "overdue")]
    live: bool,
    /// Write a line of JSON for each unit sent (unit, frame, schedule); '-' is standard output
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

impl Args {
    fn period(&self) -> Result<Span, Failure> {
        match (self.fps, self.period) {
            (Some(fps), _) => Ok(Span::from_nanos(fps.period_ns())),
            (None, Some(Span::ZERO)) => Err(Failure::wrong_use("--period 0 is no time between units")),
            (None, Some(period)) => Ok(period),
            (None, None) => Ok(PERIOD_DEFAULT),
        }
    }

    /// Octets of a pipe cannot be left out unasked; a datagram waits for no slot.
    fn overdue(&self) -> OverduePolicy {
        let is_media = self.video.is_some() && self.over == Over::Channel;
        let usual = if self.live || is_media { OverduePolicy::Drop } else { OverduePolicy::Keep };
        self.overdue.unwrap_or(usual)
    }
}

/// The source of the units.
enum Supply {
    Clip { video: Video, repeat: u64, unit: Vec<u8> },
    Input { unit: Vec<u8>, octets: usize, rate: BitRate },
}

impl Supply {
    fn open(args: &Args, period: &mut Span) -> Result<Self, Failure> {
        if let Some(path) = &args.video {
            let video = Video::read(path).map_err(Failure::failed)?;
            if let (None, None, Some(rate)) = (args.fps, args.period, video.rate()) {
                *period = Span::from_nanos(rate.period_ns());
            }
            return Ok(Self::Clip { video, repeat: args.repeat_unit, unit: Vec::new() });
        }
        let rate = args.rate.ok_or_else(|| {
            Failure::wrong_use("give --video FILE, or --rate for standard input, such as --rate 1.5mbit")
        })?;
        let octets = rate.octets_in_down(*period).get();
        let octets = usize::try_from(octets).ok().filter(|o| *o > 0).ok_or_else(|| {
            Failure::wrong_use(format!("{rate} is less than an octet each {period}; give a higher --rate"))
        })?;
        Ok(Self::Input { unit: Vec::new(), octets, rate })
    }

    fn largest_octets(&self) -> usize {
        match self {
            Self::Clip { video, repeat, .. } => video.largest_octets().saturating_mul(*repeat as usize),
            Self::Input { octets, .. } => *octets,
        }
    }

    /// Units in one playing; input plays until it ends.
    fn len(&self) -> u64 {
        match self {
            Self::Clip { video, .. } => video.unit_count() as u64,
            Self::Input { .. } => u64::MAX,
        }
    }

    /// Unit `number`, or `None` at the end of the input.
    fn unit(&mut self, number: u64) -> Result<Option<&[u8]>, Failure> {
        match self {
            Self::Clip { video, repeat: 1, .. } => Ok(Some(video.unit_looped(number))),
            Self::Clip { video, repeat, unit } => {
                unit.clear();
                for _ in 0..*repeat {
                    unit.extend_from_slice(video.unit_looped(number));
                }
                Ok(Some(unit))
            }
            Self::Input { unit, octets, .. } => {
                fill(unit, *octets)?;
                Ok(if unit.is_empty() { None } else { Some(unit) })
            }
        }
    }

    /// Units of input go by the contract that stands. A video keeps its own ones, whatever it may send.
    const fn follows(&self) -> bool {
        matches!(self, Self::Input { .. })
    }

    /// The contract that stands is this one.
    fn follow(&mut self, contract: &Contract) {
        let Self::Input { octets, rate, .. } = self else { return };
        let most = rate.octets_in_down(Span::from_nanos(contract.period_ns)).get().max(1);
        *octets = most.min(u64::from(contract.unit_octets_max)) as usize;
    }
}

/// Reads so many octets of standard input, or what there is before its end.
fn fill(unit: &mut Vec<u8>, octets: usize) -> Result<(), Failure> {
    let input = std::io::stdin();
    let failed = |errno: Errno| Failure::failed(format!("cannot read standard input: {}", errno.desc()));
    unit.resize(octets, 0);
    let mut filled = 0;
    while filled < octets {
        Asked::to_end()?;
        // A source may say nothing for long, and a request to end does not make a read return.
        let mut wait = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
        let read = match poll(&mut wait, 100u8) {
            Ok(0) => continue,
            Ok(_) => nix::unistd::read(&input, &mut unit[filled..]),
            Err(errno) => Err(errno),
        };
        match read {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
    unit.truncate(filled);
    Ok(())
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    let mut period = args.period()?;
    let mut supply = Supply::open(args, &mut period)?;
    let terms = args.wanted.terms()?;
    terms.check(period).map_err(|bad| Failure::wrong_use(bad.to_string()))?;
    let count = match (args.frames, args.seconds) {
        (Some(frames), _) => frames,
        (None, Some(seconds)) => Span::from_millis(1_000 * seconds.min(1 << 40)).count_down(period),
        (None, None) => supply.len(),
    };
    let mut report = Sent {
        over: args.over,
        unit_octets: supply.largest_octets() as u64,
        period_ns: period.as_nanos(),
        promise: None,
        refused: None,
        overdue: args.overdue(),
        sent: 0,
        left_out: 0,
        came: Tally::default(),
        unsent: 0,
        unknown: 0,
        receivers: Vec::new(),
        moved: Vec::new(),
        changed: Vec::new(),
        stalls: Vec::new(),
        ended: None,
        error: None,
    };
    let mut log = args.log.as_deref().map(Output::open).transpose()?;
    clock::ask_for_real_time();
    let mut sink = match open(args, &report, terms) {
        Ok(sink) => sink,
        Err(ChannelFailure::Failed(failure)) => return Err(failure),
        Err(ChannelFailure::Refused { refusal, sentence }) => {
            let failure = Failure::refused(&sentence);
            report.refused = Some(*refusal);
            report.error = Some(json::error_of(&failure));
            print(&report, format)?;
            return Err(failure);
        }
    };
    report.promise = sink.promise();
    if args.over == Over::Channel {
        eprintln!("{}", opening(&report, terms.start, sink.reservation()));
        sink.receivers().iter().for_each(|of| eprintln!("{}", receiver(of)));
    }
    Asked::watch(format)?;
    let played = play(args, &mut supply, count, sink.as_mut(), &mut report, &mut log);
    let logged = log.as_mut().map_or(Ok(()), Output::finish);
    let units = report.sent + report.left_out;
    let closed = sink.close(played.and(logged).map(|()| units));
    (report.stalls, report.came) = (closed.stalls, closed.tally);
    report.receivers = closed.receivers;
    report.receivers.iter().for_each(|of| eprintln!("{}", receiver(of)));
    (report.unsent, report.unknown) = (closed.rest.unsent, closed.rest.unknown);
    // Turns that passed after the end of a channel are none of its units.
    (report.sent, report.left_out) = closed.counted.unwrap_or((report.sent, report.left_out));
    report.ended = closed.failure.as_ref().map(|failure| failure.sentence.clone());
    let bound_ns = report.promise.map(|promise| promise.bound_ns);
    let promise = report.promise.and_then(|promise| promise.statistical);
    let end = came::end(&report.came, closed.rest, (bound_ns, promise), closed.failure);
    report.error = end.as_ref().map(json::error_of);
    if let Some(allowed) = came::allowed(&report.came, bound_ns, promise).filter(|_| end.is_none()) {
        eprintln!("{allowed}");
    }
    // The counts are reported for every kind of end.
    let printed = print(&report, format);
    end.map_or(printed.map(|()| Exit::Done), Err)
}

/// Hands over the units, each in its turn.
fn play(
    args: &Args,
    supply: &mut Supply,
    count: u64,
    sink: &mut dyn UnitSink,
    report: &mut Sent,
    log: &mut Option<Output>,
) -> Result<(), Failure> {
    let (mut frame, mut paced) = (0, report.period_ns);
    let mut guarantee = Guarantee::said(report.promise.and_then(|promise| promise.withdrawn));
    while frame < count && !sink.is_over() {
        let look = || {
            sink.receivers_changed().iter().for_each(|of| eprintln!("{}", receiver(of)));
            sink.withdrawn()
        };
        if let Some(moved) = guarantee.moved(look) {
            eprintln!("{}", moved.words());
            report.moved.push(moved);
        }
        if supply.follows()
            && let Some(contract) = sink.changed()
        {
            eprintln!("{}", changed(&contract));
            report.changed.push(contract);
            supply.follow(&contract);
            if std::mem::replace(&mut paced, contract.period_ns) != contract.period_ns {
                sink.pace_anew()?;
            }
        }
        // Waiting comes first, so that a live source is read as late as possible.
        let turn = sink.wait_slot(frame)?;
        let schedule = match args.overdue() {
            OverduePolicy::Drop => {
                let skipped = turn.skipped.min(count - frame);
                sink.leave_out(skipped);
                report.left_out += skipped;
                frame += skipped;
                turn.schedule
            }
            // The unit before has missed its slot and takes this one's. A unit read one turn later is in time
            // again, and so are all units after it.
            OverduePolicy::Keep if sink.is_behind() => continue,
            // After this program stood still, the unit that waited is as late as it is; those after it are
            // read in turn, and in time.
            OverduePolicy::Keep => turn.waited,
        };
        if frame >= count {
            break;
        }
        let Some(unit) = supply.unit(frame)? else { break };
        // A unit that is left out has a number too.
        if sink.send(frame, unit, schedule)? {
            if let Some(log) = log {
                log.record(&SentRecord { unit: frame, frame, schedule_ns: schedule.as_nanos() })?;
            }
            report.sent += 1;
        } else {
            report.left_out += 1;
        }
        frame += 1;
    }
    Ok(())
}

/// States the contract that has taken the place of the one before.
fn changed(contract: &Contract) -> String {
    let Contract { unit_octets_max, period_ns, bound_ns, .. } = *contract;
    format!(
        "the contract has changed: units of {unit_octets_max} octets at most, one each {}, within {}",
        Span::from_nanos(period_ns),
        Span::from_nanos(bound_ns).printed_up()
    )
}

/// States the promise, a reservation beyond one unit each period, and the policy for overdue units, before
/// the first unit leaves.
fn opening(report: &Sent, start: Option<Span>, reservation: Option<String>) -> String {
    let bound = report.promise.map_or(Span::ZERO, |promise| Span::from_nanos(promise.bound_ns).printed_up());
    let overdue = match report.overdue {
        OverduePolicy::Drop => "left out and counted as lost (--overdue drop)",
        OverduePolicy::Keep => "sent later (--overdue keep)",
    };
    let reserved = reservation.map_or(String::new(), |reservation| format!("; {reservation}"));
    let but = report.promise.map_or_else(String::new, |promise| promise.but());
    let open = start.map_or("open".to_owned(), |start| format!("booked, begins in {start}"));
    format!("{open}: each unit within {bound}{but}{reserved}; units whose turn has passed are {overdue}")
}

/// One of several receivers in words, as `send` and `channel show` state it.
pub fn receiver(of: &ReceiverInfo) -> String {
    let ReceiverInfo { node, state, why, bound_ns, units, broken, .. } = of;
    let counts = match (units, broken) {
        (0, 0) => String::new(),
        (units, 0) => format!(", {units} units came"),
        (units, broken) => format!(", {units} units came, {broken} in part or not at all"),
    };
    match state.as_str() {
        "in" => {
            format!("{node}: in, each unit within {}{counts}", Span::from_nanos(*bound_ns).printed_up())
        }
        "refused" => format!("{node}: not in: {why}"),
        "left" => format!("{node}: out{counts}: {why}"),
        _ => format!("{node}: asked for"),
    }
}

/// Units of work-ahead.
pub fn ahead() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..=i64::from(rota::cmtp::AHEAD_MAX))
}

/// The refusal of `--ahead` over UDP.
pub fn ahead_needs_channel() -> Failure {
    Failure::wrong_use("--ahead needs --over channel: nothing paces the units of a UDP socket")
}

/// The refusal of `--reattach` over UDP.
pub fn needs_channel() -> Failure {
    Failure::wrong_use("--reattach needs --over channel: a UDP socket depends on no node")
}

fn open(args: &Args, report: &Sent, terms: AskedTerms) -> Result<Box<dyn UnitSink>, ChannelFailure> {
    let period = Span::from_nanos(report.period_ns);
    match args.over {
        Over::Udp if args.reattach.is_some() => Err(needs_channel().into()),
        Over::Udp if args.ahead.is_some() => Err(ahead_needs_channel().into()),
        Over::Udp if args.wanted.delay.is_some() || args.wanted.jitter.is_some() => {
            let why = "--delay and --jitter need --over channel: nothing bounds the delay of UDP";
            Err(Failure::wrong_use(why).into())
        }
        Over::Udp if args.wanted.class.is_some() || args.wanted.timely.is_some() => {
            let why = "--class and --timely need --over channel: nothing bounds the delay of UDP";
            Err(Failure::wrong_use(why).into())
        }
        Over::Udp if args.wanted.allow_withdrawn => {
            let why = "--allow-withdrawn needs --over channel: nothing is guaranteed over UDP";
            Err(Failure::wrong_use(why).into())
        }
        Over::Udp if args.wanted.states_reroute() => {
            let why =
                "--reroute, --no-reroute, --backup and --via need --over channel: the kernel routes UDP";
            Err(Failure::wrong_use(why).into())
        }
        Over::Udp if args.wanted.partition.is_some() => {
            let why = "--partition needs --over channel: a UDP socket reserves nothing";
            Err(Failure::wrong_use(why).into())
        }
        Over::Udp if args.wanted.from_time.is_some() || args.wanted.until.is_some() => {
            let why = "--from-time and --until need --over channel: a UDP socket reserves nothing";
            Err(Failure::wrong_use(why).into())
        }
        Over::Udp if args.listen => {
            let why = "--listen needs --over channel: nobody asks over UDP";
            Err(Failure::wrong_use(why).into())
        }
        Over::Udp => {
            let to = resolve(args.to.as_deref().unwrap_or_default(), args.service)?;
            let start = args.start_at.map_or_else(|| clock::now() + START_DELAY, Instant::from_nanos);
            Ok(Box::new(UdpSink::open(to, start, period)?))
        }
        Over::Channel => {
            if let Some(start) = args.start_at {
                clock::sleep_until(Instant::from_nanos(start));
            }
            let request = ChannelRequest {
                to: args.to.clone().filter(|_| !args.listen),
                service: args.service,
                unit_octets: report.unit_octets,
                period,
                terms,
                reattach: args.reattach,
                overdue: match report.overdue {
                    OverduePolicy::Drop => Overdue::Drop,
                    OverduePolicy::Keep => Overdue::Keep,
                },
            };
            match args.ahead {
                Some(ahead) => channel::timed::open(&request, ahead),
                None => channel::open(&request),
            }
        }
    }
}

fn print(report: &Sent, format: Format) -> Result<(), Failure> {
    let text = match format {
        Format::Json => json::document(report),
        // Standard output may be a pipe into a player on the other side of a test; keep it to one line.
        Format::Text if report.refused.is_none() => format!(
            "sent {} units of at most {} octets, one each {}",
            report.sent,
            report.unit_octets,
            Span::from_nanos(report.period_ns)
        ),
        Format::Text => return Ok(()),
    };
    let written = writeln!(std::io::stdout(), "{text}");
    written.map_err(|e| Failure::failed(format!("cannot write to standard output: {e}")))
}
