//! The run: programs on the hosts, in threads of their own, on nodes and a line that are real.

use super::outcome::{ChannelOutcome, Conduct, Handed, TenetOutcome, UdpUnit};
use super::plan::{
    BREEZE, CHANNELS, DELAY, FAR, GRAYLING, HURRY, LOAD_UDP, PAOLA, PERIOD, RECEIVER_NAME, SOCK, Times, UDP,
    start,
};
use crate::bench::stage::{PATIENCE, PAUSE, Stage};
use crate::certificate::open::sum;
use crate::clock;
use crate::demo::progress::Progress;
use crate::demo::run::{END_PATIENCE, START_PATIENCE, lines, node_stall};
use crate::load::Goodput;
use crate::record::{ReceivedRecord, UnitRecord};
use crate::sequoia::bottleneck::{self, Sighting};
use crate::stall::witness::StallWatch;
use crate::stall::{Stall, StallEvidence};
use crate::transport::UnitSink;
use crate::transport::udp::{SERVICE_PORT_BASE, UdpSink};
use crate::video::Video;
use crate::worker::Worker;
use rota::{
    ChannelDetail, Node, OpenError, OpenRequest, Overdue, SendChannel, SendError, Shown, TraceReader,
};
use rota_answer::Failure;
use rota_lab::address;
use rota_units::{Instant, Span};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};

/// From the start of the programs to the first frame.
const LEAD: Span = Span::from_millis(300);

/// A channel that a host of the near campus has opened.
struct Opened {
    service: u16,
    station: u8,
    node: Node,
    channel: SendChannel,
    /// From the call to the open channel.
    took: Span,
    detail: ChannelDetail,
}

/// The record of one program.
struct Played {
    handed: Vec<Handed>,
    /// When units found no room.
    excess: Vec<u64>,
    /// The cause of an early end.
    ended: Option<String>,
}

/// Plays it all on a network whose nodes run.
pub fn play(
    stage: &Stage,
    video: &Video,
    times: &Times,
    progress: &Progress,
) -> Result<TenetOutcome, Failure> {
    progress.say("the channels open".into());
    let mut receivers = Vec::new();
    for (service, over) in [(CHANNELS[0].0, "channel"), (CHANNELS[1].0, "channel"), (UDP.0, "udp")] {
        receivers.push(receiver(stage, service, over)?);
    }
    let mut opened = Vec::new();
    for (service, station) in CHANNELS {
        opened.push(open(stage, video, service, station)?);
    }
    let spacing = sum(&opened[0].detail).map_or(PERIOD, |sum| sum.packets.traffic.x_min());
    let logs = [SOCK, BREEZE].map(|station| log_of(stage, station));
    let watch = StallWatch::start();
    let origin = clock::now() + LEAD;
    let load = Load::start(stage, times, origin)?;
    let over = AtomicBool::new(false);
    let (channels, udp, seen) = std::thread::scope(|scope| -> Result<_, Failure> {
        // However this ends, the threads do.
        let _over = OnDrop(&over);
        let mut watchers = Vec::new();
        for log in logs {
            // Packets come to the first port of either gateway.
            let (log, over) = (log?, &over);
            watchers.push(scope.spawn(move || bottleneck::watch(log, 0, over)));
        }
        let udp = play_udp(scope, stage, video, (origin, times), &over);
        let running = opened.into_iter().map(|of| play_channel(scope, of, video, (origin, times), &over));
        let running: Vec<_> = running.collect();
        wait(times, origin, progress)?;
        let ended = |_| Failure::failed("a program of the demo panicked");
        let udp = udp.join().map_err(ended)??;
        let mut channels = Vec::new();
        for thread in running {
            channels.push(thread.join().map_err(ended)??);
        }
        over.store(true, Ordering::Relaxed);
        let seen = watchers.into_iter().map(|thread| thread.join().map_err(ended));
        Ok((channels, udp, seen.collect::<Result<Vec<Vec<Sighting>>, Failure>>()?))
    })?;
    let goodput = load.finish(origin + times.end() + END_PATIENCE)?;
    let mut stalls = watch.stop();
    stalls.extend(node_stalls(stage)?);
    let deadline = clock::now() + END_PATIENCE;
    let came: Vec<_> = receivers.into_iter().map(|receiver| receiver.finish(deadline)).collect();
    let mut outcomes = Vec::new();
    for ((of, played), finished) in channels.into_iter().zip(&came) {
        let told: Option<ReceivedRecord> = finished.document();
        stalls
            .extend(told.into_iter().flat_map(|of| of.stalls).filter(|s| s.kind != StallEvidence::Overflow));
        let Played { handed, excess, ended } = played;
        let conduct = Conduct { handed, excess, arrivals: lines(finished), ended };
        outcomes.push((of, conduct));
    }
    let channels = outcomes.into_iter().map(|(of, conduct)| judged(of, conduct, origin, &stalls)).collect();
    Ok(TenetOutcome {
        times: times.clone(),
        origin_ns: origin.as_nanos(),
        isolation: stage.lab.isolation().to_string(),
        channels,
        udp: udp_units(&udp, &lines(&came[2])),
        crossings: bottleneck::crossings(&seen[0], &seen[1], spacing),
        load: goodput,
        replays: 0,
    })
}

/// The event log of a station, from now on.
fn log_of(stage: &Stage, station: u8) -> Result<TraceReader, Failure> {
    let mut log = stage.connect(station)?.trace().map_err(Failure::failed)?;
    log.skip();
    Ok(log)
}

/// Sets its flag when it is dropped.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn receiver(stage: &Stage, service: u16, over: &str) -> Result<Worker, Failure> {
    let service = service.to_string();
    let words = ["recv", "--over", over, "--service", &service, "--log", "-", "--json"];
    let mut worker = Worker::start(format!("the receiver of stream {service}"), stage.rota(PAOLA, &words))?;
    worker.wait_for_word(START_PATIENCE)?;
    Ok(worker)
}

/// Opens a channel as soon as its node has heard of the way.
fn open(stage: &Stage, video: &Video, service: u16, station: u8) -> Result<Opened, Failure> {
    let mut node = stage.connect(station)?;
    let octets = u32::try_from(video.largest_octets()).map_err(Failure::failed)?;
    let mut request = OpenRequest::new(RECEIVER_NAME, service, octets, PERIOD);
    request.terms.delay = Some(DELAY);
    // A unit that finds no room is the program's affair: the demo counts it.
    request.overdue = Overdue::Keep;
    let deadline = clock::now() + PATIENCE;
    let (channel, took) = loop {
        let asked = clock::now();
        match stage.lab.host(station).run(|| node.open(&request)).map_err(Failure::failed)? {
            Ok(channel) => break (channel, clock::now().since(asked)),
            Err(error @ OpenError::Refused(_)) => return Err(error.into()),
            Err(error) if asked >= deadline => return Err(error.into()),
            Err(_) => clock::sleep_until(asked + PAUSE),
        }
    };
    let Shown::Channel(detail) = node.channel(channel.id()).map_err(Failure::failed)? else {
        return Err(Failure::failed(format!("the channel of service {service} ended at once")));
    };
    Ok(Opened { service, station, node, channel, took, detail: *detail })
}

fn play_channel<'scope>(
    scope: &'scope Scope<'scope, '_>,
    mut of: Opened,
    video: &'scope Video,
    (origin, times): (Instant, &'scope Times),
    over: &'scope AtomicBool,
) -> ScopedJoinHandle<'scope, Result<(Opened, Played), Failure>> {
    scope.spawn(move || {
        clock::ask_for_real_time();
        let mut played = Played { handed: Vec::new(), excess: Vec::new(), ended: None };
        let misbehaves = of.service == CHANNELS[1].0;
        let mut due = origin + start(of.service);
        let mut hurried = false;
        while due < origin + times.end() && !over.load(Ordering::Relaxed) {
            clock::sleep_until(due);
            let hurries = misbehaves && times.hurry().contains(&due.since(origin));
            if hurried && !hurries {
                // The program has come to its senses: the units that wait leave at the agreed rate.
                let _ = of.channel.wait_drained(PATIENCE);
                due = due.max(clock::now());
            }
            hurried = hurries;
            let unit = video.unit_looped(played.handed.len() as u64);
            let at_ns = clock::now().max(due).as_nanos();
            match of.channel.try_send(unit, due) {
                Ok(_) => played.handed.push(Handed { at_ns, octets: unit.len() as u64 }),
                Err(SendError::WouldBlock) => played.excess.push(at_ns),
                Err(SendError::Closed(cause)) => {
                    played.ended = Some(cause.sentence().into());
                    return Ok((of, played));
                }
                Err(error) => return Err(Failure::failed(error)),
            }
            due += if hurries { PERIOD.div_down(HURRY) } else { PERIOD };
        }
        // The counts of the hops are a second old at most.
        if let Ok(Shown::Channel(detail)) = of.node.channel(of.channel.id()) {
            of.detail = *detail;
        }
        of.channel.finish(PATIENCE).map_err(Failure::failed)?;
        Ok((of, played))
    })
}

fn play_udp<'scope>(
    scope: &'scope Scope<'scope, '_>,
    stage: &'scope Stage,
    video: &'scope Video,
    (origin, times): (Instant, &'scope Times),
    over: &'scope AtomicBool,
) -> ScopedJoinHandle<'scope, Result<Vec<Handed>, Failure>> {
    scope.spawn(move || {
        clock::ask_for_real_time();
        let (service, station) = UDP;
        let to = SocketAddr::from((address(FAR, PAOLA), SERVICE_PORT_BASE + service));
        let begin = origin + start(service);
        let sink = stage.lab.host(station).run(|| UdpSink::unmarked(to, begin, PERIOD));
        let mut sink = sink.map_err(Failure::failed)??;
        let mut handed = Vec::new();
        loop {
            let number = handed.len() as u64;
            let due = begin + PERIOD * number;
            if due >= origin + times.end() || over.load(Ordering::Relaxed) {
                break;
            }
            let schedule = sink.wait_slot(number)?.schedule;
            let unit = video.unit_looped(number);
            sink.send(number, unit, schedule)?;
            handed.push(Handed { at_ns: schedule.as_nanos(), octets: unit.len() as u64 });
        }
        let closed = Box::new(sink).close(Ok(handed.len() as u64));
        closed.failure.map_or(Ok(handed), Err)
    })
}

fn wait(times: &Times, origin: Instant, progress: &Progress) -> Result<(), Failure> {
    progress.wait_until(origin + times.load_from, "no load yet".into())?;
    progress.wait_until(origin + times.hurry().start, "the line is congested".into())?;
    let words = "the line is congested, and the second program sends too often";
    progress.wait_until(origin + times.load_to(), words.into())?;
    progress.wait_until(origin + times.end(), "the load has gone".into())
}

/// Stalls of the nodes: evidence apart from the packets.
fn node_stalls(stage: &Stage) -> Result<Vec<Stall>, Failure> {
    let mut stalls = Vec::new();
    for station in 1..=stage.stations() {
        let status = stage.connect(station)?.status().map_err(Failure::failed)?;
        let told = status.extra.get("stalls").and_then(|told| told.as_array().cloned());
        stalls.extend(told.unwrap_or_default().iter().filter_map(node_stall));
    }
    Ok(stalls)
}

fn judged(of: Opened, conduct: Conduct, origin: Instant, stalls: &[Stall]) -> ChannelOutcome {
    let bound = Span::from_nanos(of.detail.info.contract.contract.bound_ns);
    let begin = origin + start(of.service);
    let (fates, figures) = conduct.judge(begin, bound, stalls);
    ChannelOutcome {
        service: of.service,
        from: of.node.name().to_owned(),
        station: of.station,
        bound,
        took: of.took,
        hops: of.detail.hops,
        conduct,
        fates,
        figures,
    }
}

fn udp_units(handed: &[Handed], records: &[UnitRecord]) -> Vec<UdpUnit> {
    let arrived = |number: u64| {
        let whole = records.iter().find(|record| record.unit == number && record.complete)?;
        Some(whole.arrived_ns)
    };
    let units = handed.iter().zip(0..).map(|(sent, number)| UdpUnit {
        at_ns: sent.at_ns,
        octets: sent.octets,
        arrived_ns: arrived(number),
    });
    units.collect()
}

/// The ordinary traffic that congests the line.
struct Load {
    sink: Worker,
    /// Held only: they end by themselves.
    _sources: Vec<Worker>,
}

impl Load {
    fn start(stage: &Stage, times: &Times, origin: Instant) -> Result<Self, Failure> {
        let begin = (origin + times.load_from).as_nanos().to_string();
        let seconds = times.load_seconds.to_string();
        let window = ["--start-at", &begin, "--seconds", &seconds];
        let to = address(FAR, super::plan::BLIZZARD).to_string();
        let rate = format!("{}bit", LOAD_UDP.as_bps());
        let run = |station, words: &[&str]| {
            Worker::start("the load", stage.rota(station, &[&["load"], words, &window].concat()))
        };
        let sink = run(super::plan::BLIZZARD, &["sink", "--json"])?;
        let tcp = run(GRAYLING, &["tcp", "--to", &to])?;
        let udp = run(GRAYLING, &["udp", "--to", &to, "--rate", &rate])?;
        Ok(Self { sink, _sources: vec![tcp, udp] })
    }

    fn finish(self, deadline: Instant) -> Result<Goodput, Failure> {
        let sink = self.sink.finish(deadline);
        sink.document().ok_or_else(|| sink.failure())
    }
}
