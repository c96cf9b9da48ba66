//! One run: the commands a user would type, started in the lab's stations at the planned times.

use super::ground::Ground;
use super::outcome::{FailedStream, RunOutcome, StreamOutcome};
use super::plan::{Mode, PERIOD, RECEIVER, RunPlan, SENDERS, StreamPlan, repeat_unit, udp_cross_rate};
use super::progress::Progress;
use crate::clock;
use crate::load::Goodput;
use crate::measure;
use crate::record::{ReceivedRecord, Sent, SentRecord, UnitRecord};
use crate::stall::witness::StallWatch;
use crate::stall::{Stall, StallEvidence};
use crate::worker::{Finished, Worker};
use rota::StatusInfo;
use rota_answer::{Exit, Failure};
use rota_lab::{PriorityMatch, PrioritySpec};
use rota_units::{BitRate, Instant, Octets, Span};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// From the start of the processes to the first frame.
const LEAD: Span = Span::from_millis(400);
/// How long a process may take to say that it listens, and a ring to form.
pub(super) const START_PATIENCE: Span = Span::from_millis(5_000);
const STATUS_PAUSE: Span = Span::from_millis(50);
/// How long after the last frame a receiver may still wait for the sender's end.
pub(super) const END_PATIENCE: Span = Span::from_millis(2_500);
/// What a skilled engineer would guarantee the video today.
const PRIORITY: PrioritySpec =
    PrioritySpec { matches: PriorityMatch::Dscp(crate::transport::udp::DSCP_EF), share_percent: 95 };

/// The lab and what is played in it.
pub struct Stage {
    /// The stations.
    pub ground: Ground,
    /// This program.
    pub rota: PathBuf,
    /// The clip, as a path that the stations can open.
    pub clip: PathBuf,
    /// The rate of every port.
    pub rate: BitRate,
    /// The stream whose reservation is to be halved, so that its contract breaks.
    pub shrink: Option<u16>,
}

/// The processes of one stream.
struct Stream<'a> {
    plan: &'a StreamPlan,
    sender: Worker,
    receiver: Worker,
}

impl Stage {
    fn rota(&self, station: u8, args: &[&str]) -> Command {
        let mut command = self.ground.command(station, &self.rota);
        command.args(args);
        command
    }

    /// Performs `plan` and judges what came of it.
    pub fn run(&mut self, plan: &RunPlan, progress: &Progress) -> Result<RunOutcome, Failure> {
        progress.say(format!("{} · {}: starting", plan.load.into_str(), plan.mode.into_str()));
        let priority = (plan.mode == Mode::Priority).then_some(PRIORITY);
        self.ground.set_priority(priority)?;
        let nodes = if plan.mode == Mode::Reserved { self.start_nodes()? } else { Vec::new() };
        let receivers = self.start_receivers(plan)?;
        let origin = clock::now() + LEAD;
        let watch = StallWatch::start();
        let cross = if self.ground.is_network() { Some(self.start_cross(plan, origin)?) } else { None };
        let streams = self.start_senders(plan, receivers, origin)?;
        self.wait(plan, origin, progress)?;
        let goodput = match cross {
            Some((sink, _cross)) => {
                let sink = sink.finish(origin + plan.end() + END_PATIENCE);
                sink.document().ok_or_else(|| sink.failure())?
            }
            None => Goodput::default(),
        };
        let deadline = clock::now() + END_PATIENCE;
        let finished: Vec<_> = streams
            .into_iter()
            .map(|s| {
                let sender = s.sender.finish(deadline);
                // A refused stream has no sender whose end its receiver could await.
                let is_refused = sender.code == Some(Exit::Refused as i32);
                let deadline = if is_refused { Instant::ZERO } else { deadline };
                (s.plan, sender, s.receiver.finish(deadline))
            })
            .collect();
        let mut stalls = watch.stop();
        if plan.mode == Mode::Reserved {
            stalls.extend(self.node_stalls()?);
        }
        drop(nodes);
        conclude(plan, origin, goodput, finished, stalls)
    }

    /// Starts a node in every station that has none yet, and waits until they know each other.
    fn start_nodes(&self) -> Result<Vec<Worker>, Failure> {
        let stations = usize::from(self.ground.stations());
        let mut nodes = Vec::new();
        for station in (1..=self.ground.stations()).filter(|_| self.ground.is_network()) {
            let name = format!("n{station}");
            let command = self.rota(station, &["node", "--iface", "eth0", "--name", &name]);
            nodes.push(Worker::start(format!("the node of {name}"), command)?);
        }
        let deadline = clock::now() + START_PATIENCE;
        for station in 1..=self.ground.stations() {
            while self.status(station)?.map_or(0, |status| status.members.len()) < stations {
                if let Some(at) = nodes.iter_mut().position(Worker::has_ended) {
                    return Err(nodes.swap_remove(at).finish(Instant::ZERO).failure());
                }
                if clock::now() >= deadline {
                    let sentence = format!("the nodes did not find each other within {START_PATIENCE}");
                    return Err(Failure::failed(sentence));
                }
                clock::sleep_until(clock::now() + STATUS_PAUSE);
            }
        }
        Ok(nodes)
    }

    /// What a station's node says of itself; nothing while it is not there.
    fn status(&self, station: u8) -> Result<Option<StatusInfo>, Failure> {
        let status = Worker::start("rota status", self.rota(station, &["status", "--json"]))?;
        Ok(status.finish(clock::now() + START_PATIENCE).document())
    }

    /// The stalls that the nodes have seen: evidence apart from the frames, like the others.
    fn node_stalls(&self) -> Result<Vec<Stall>, Failure> {
        let mut stalls = Vec::new();
        for station in 1..=self.ground.stations() {
            let status = self.status(station)?;
            let told = status.and_then(|s| s.extra.get("stalls")?.as_array().cloned()).unwrap_or_default();
            stalls.extend(told.iter().filter_map(node_stall));
        }
        Ok(stalls)
    }

    fn start_receivers(&self, plan: &RunPlan) -> Result<Vec<Worker>, Failure> {
        let over = over(plan.mode);
        let mut receivers = Vec::new();
        for stream in &plan.streams {
            let service = stream.id.to_string();
            let args = ["recv", "--over", over, "--service", &service, "--log", "-", "--json"];
            let label = format!("the receiver of stream {service}");
            receivers.push(Worker::start(label, self.rota(RECEIVER, &args))?);
        }
        for receiver in &mut receivers {
            receiver.wait_for_word(START_PATIENCE)?;
        }
        Ok(receivers)
    }

    fn start_cross(&self, plan: &RunPlan, origin: Instant) -> Result<(Worker, Vec<Worker>), Failure> {
        let start = (origin + plan.cross_from).as_nanos().to_string();
        let seconds = plan.cross_seconds.to_string();
        let window = ["--start-at", &start, "--seconds", &seconds];
        let to = format!("n{RECEIVER}");
        let udp_rate = format!("{}bit", udp_cross_rate(self.rate).as_bps());
        let sink_args = [&["load", "sink", "--json"][..], &window].concat();
        let sink = Worker::start("the sink of the cross traffic", self.rota(RECEIVER, &sink_args))?;
        let mut cross = Vec::new();
        for station in 1..=SENDERS {
            let tcp = [&["load", "tcp", "--to", &to][..], &window].concat();
            let udp = [&["load", "udp", "--to", &to, "--rate", &udp_rate][..], &window].concat();
            for args in [tcp, udp] {
                cross.push(Worker::start("cross traffic", self.rota(station, &args))?);
            }
        }
        Ok((sink, cross))
    }

    fn start_senders<'a>(
        &self,
        plan: &'a RunPlan,
        receivers: Vec<Worker>,
        origin: Instant,
    ) -> Result<Vec<Stream<'a>>, Failure> {
        let clip = self.clip.display().to_string();
        let repeat = repeat_unit(self.rate).to_string();
        let to = format!("n{RECEIVER}");
        let mut streams = Vec::new();
        for (stream, receiver) in plan.streams.iter().zip(receivers) {
            let (service, frames) = (stream.id.to_string(), stream.frames.to_string());
            let start = (origin + stream.start).as_nanos().to_string();
            let what = ["send", "--video", &clip, "--repeat-unit", &repeat, "--frames", &frames, "--live"];
            let told = ["--log", "-", "--json"];
            let how = ["--to", &to, "--service", &service, "--over", over(plan.mode), "--start-at", &start];
            let command = self.rota(stream.station, &[&what[..], &told, &how].concat());
            let sender = Worker::start(format!("the sender of stream {service}"), command)?;
            streams.push(Stream { plan: stream, sender, receiver });
        }
        Ok(streams)
    }

    fn wait(&self, plan: &RunPlan, origin: Instant, progress: &Progress) -> Result<(), Failure> {
        let name = format!("{} · {}", plan.load.into_str(), plan.mode.into_str());
        for stream in &plan.streams {
            progress.wait_until(origin + stream.start, format!("{name}: stream {} joins", stream.id))?;
        }
        progress.wait_until(origin + plan.cross_from, format!("{name}: no cross traffic yet"))?;
        if plan.mode == Mode::Reserved
            && let Some(stream) = plan.streams.iter().find(|stream| Some(stream.id) == self.shrink)
        {
            self.halve(stream)?;
        }
        progress.wait_until(origin + plan.end(), format!("{name}: cross traffic from n1-n{SENDERS}"))
    }

    /// Halves the reservation of a running stream, as a user would who mistakes it for another.
    fn halve(&self, stream: &StreamPlan) -> Result<(), Failure> {
        let run = |args: &[&str]| -> Result<Finished, Failure> {
            let command = self.rota(stream.station, &[&["channel"], args].concat());
            let finished = Worker::start("rota channel", command)?.finish(clock::now() + START_PATIENCE);
            if finished.code == Some(0) { Ok(finished) } else { Err(finished.failure()) }
        };
        let list: serde_json::Value = run(&["list", "--json"])?.document().unwrap_or_default();
        let of_stream = |channel: &&serde_json::Value| {
            channel["sending"] == true && channel["service"].as_u64() == Some(stream.id.into())
        };
        let channels = list["channels"].as_array().map_or(&[][..], Vec::as_slice);
        let found = channels.iter().find(of_stream);
        let Some((channel, id)) = found.and_then(|channel| Some((channel, channel["channel"].as_str()?)))
        else {
            return Err(Failure::failed(format!("stream {} has no channel to shrink", stream.id)));
        };
        let told = |key: &str| channel["contract"][key].as_u64().unwrap_or(0);
        let half = Octets::new(told("unit_octets_max") / 2);
        let rate = BitRate::carrying_up(half, Span::from_nanos(told("period_ns")));
        let rate = format!("{}bit", rate.map_or(1, BitRate::as_bps));
        run(&["modify", id, "--rate", &rate]).map(drop)
    }
}

fn over(mode: Mode) -> &'static str {
    if mode == Mode::Reserved { "channel" } else { "udp" }
}

/// One stall as a node tells it.
pub(super) fn node_stall(told: &serde_json::Value) -> Option<Stall> {
    let at = |key: &str| told.get(key)?.as_u64();
    let is_timer = told.get("kind")?.as_str()? == "TimerLate";
    let kind = if is_timer { StallEvidence::Timer } else { StallEvidence::Dequeue };
    Some(Stall { kind, from_ns: at("from_ns")?, to_ns: at("to_ns")? })
}

/// The lines of output that are records of the wanted kind.
pub(super) fn lines<T: serde::de::DeserializeOwned>(finished: &Finished) -> Vec<T> {
    finished.out.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The receiver's records with the sender's knowledge: which frame each unit carried, and when it was due
/// on the clock that all stations of one machine share.
fn by_frame(records: Vec<UnitRecord>, schedule: &[SentRecord]) -> Vec<UnitRecord> {
    let sent: BTreeMap<u64, &SentRecord> = schedule.iter().map(|s| (s.unit, s)).collect();
    let joined = records.into_iter().filter_map(|record| {
        let sent = sent.get(&record.unit)?;
        Some(UnitRecord { unit: sent.frame, schedule_ns: sent.schedule_ns, ..record })
    });
    joined.collect()
}

fn conclude(
    plan: &RunPlan,
    origin: Instant,
    goodput: Goodput,
    finished: Vec<(&StreamPlan, Finished, Finished)>,
    mut stalls: Vec<Stall>,
) -> Result<RunOutcome, Failure> {
    let mut outcome = RunOutcome {
        load: plan.load,
        mode: plan.mode,
        cross_from: plan.cross_from,
        end: plan.end(),
        origin_ns: origin.as_nanos(),
        replays: 0,
        cross_tcp_bps: goodput.tcp_bps,
        cross_udp_bps: goodput.udp_bps,
        refused: Vec::new(),
        failed: Vec::new(),
        streams: Vec::new(),
    };
    let mut carried = Vec::new();
    for (stream, sender, receiver) in finished {
        let schedule: Vec<SentRecord> = lines(&sender);
        let Some(sent) = sender.document::<Sent>().filter(|sent| sent.ended.is_none()) else {
            // The other streams and runs are worth telling all the same.
            let has_begun = !schedule.is_empty();
            outcome.failed.push(FailedStream {
                id: stream.id,
                has_begun,
                sentence: sender.failure().sentence,
            });
            continue;
        };
        if let Some(refusal) = sent.refused {
            outcome.refused.push((stream.id, refusal));
            continue;
        }
        stalls.extend(sent.stalls);
        // The last line is the receiver's summary, unless it had to be ended.
        let summary: Option<ReceivedRecord> = receiver.document();
        // That one receiver's socket overflowed says nothing about the others.
        let (overflows, seen): (Vec<Stall>, Vec<Stall>) =
            summary.into_iter().flat_map(|s| s.stalls).partition(|s| s.kind == StallEvidence::Overflow);
        stalls.extend(seen);
        let bound = sent.promise.map(|p| Span::from_nanos(p.bound_ns));
        // A channel starts in a slot of the ring, not when its sender was asked to.
        let start = schedule.first().map_or(stream.start, |first| {
            Instant::from_nanos(first.schedule_ns).minus(PERIOD * first.frame).since(origin)
        });
        let expectation = plan.expectation(origin, start, bound);
        carried.push((stream, expectation, by_frame(lines(&receiver), &schedule), overflows));
    }
    for (stream, expectation, records, overflows) in carried {
        let evidence = [&stalls[..], &overflows].concat();
        let fates = measure::judge(&records, &expectation, &evidence);
        let figures = measure::figures(&fates, &expectation.counted);
        outcome.streams.push(StreamOutcome {
            id: stream.id,
            station: stream.station,
            bound: expectation.bound,
            fates,
            figures,
        });
    }
    Ok(outcome)
}
