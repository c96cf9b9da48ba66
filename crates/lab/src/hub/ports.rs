//! The loop between the interfaces and the segment: wait, take in, let happen, hand out.

use super::report::{PortLine, Report};
use super::segment::{Plan, Segment, SegmentOutput};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use rota_driver::clock;
use rota_driver::device::DeviceError;
use rota_driver::poller::{Poller, Trigger};
use rota_driver::port::Port;
use rota_driver::signals;
use rota_sim::Timed;
use rota_units::Instant;
use std::os::fd::AsFd;

const SIGNALS: u64 = u64::MAX;
/// Frames taken from one port before the others have their turn.
const TURN: usize = 32;
/// Things that one wait reports at most.
const READY_MAX: usize = 64;

/// A hub that runs.
pub struct Hub {
    names: Vec<String>,
    /// `None` once the interface is gone.
    ports: Vec<Option<Port>>,
    /// What the ports that are gone had counted, and whether a port has been complained of.
    lines: Vec<PortLine>,
    complained: Vec<bool>,
    segment: Segment,
    plan: Plan,
    poller: Poller,
    signals: SignalFd,
    start: Instant,
    outcomes: Vec<SegmentOutput>,
}

fn failed(what: &str, error: impl std::fmt::Display) -> String {
    format!("{what}: {error}")
}

impl Hub {
    /// Opens the interfaces. The process must have no other thread.
    ///
    /// # Errors
    /// One sentence: which interface cannot be a port, and why.
    pub fn open(names: &[String], plan: Plan) -> Result<Self, String> {
        let signals = signals::catch(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP])
            .map_err(|error| failed("could not wait for signals", error.desc()))?;
        let ports = names.iter().map(|name| Port::open(name).map_err(|error| error.to_string()));
        let ports = ports.collect::<Result<Vec<_>, _>>()?;
        let poller = Poller::new(READY_MAX).map_err(|error| failed("could not wait for frames", error))?;
        let watch = |fd, token| poller.add(fd, token, Trigger::Level);
        watch(signals.as_fd(), SIGNALS).map_err(|error| failed("could not wait for signals", error))?;
        for (token, port) in (0..).zip(&ports) {
            watch(port.wait_fd(), token).map_err(|error| failed("could not wait for frames", error))?;
        }
        let start = clock::now();
        Ok(Self {
            names: names.to_vec(),
            ports: ports.into_iter().map(Some).collect(),
            lines: names.iter().map(|name| PortLine::new(name, &Default::default())).collect(),
            complained: vec![false; names.len()],
            segment: Segment::new(start, plan.clone()),
            plan,
            poller,
            signals,
            start,
            outcomes: Vec::new(),
        })
    }

    /// When it began.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// Follows this script from now on, and no other.
    pub fn follow(&mut self, script: Vec<Timed>) {
        self.segment.advance(clock::now(), |outcome| self.outcomes.push(outcome));
        self.segment.follow(script);
    }

    /// Carries frames until `end` or a signal. `reread` is asked for a script at each SIGHUP.
    ///
    /// # Errors
    /// One sentence: the kernel no longer says what happens.
    pub fn run(
        &mut self,
        end: Instant,
        mut reread: impl FnMut() -> Option<Vec<Timed>>,
    ) -> Result<Report, String> {
        let mut frame = Vec::new();
        let mut ready = Vec::with_capacity(READY_MAX);
        loop {
            let now = clock::now();
            self.segment.advance(now, |outcome| self.outcomes.push(outcome));
            self.hand_out();
            if now >= end {
                break;
            }
            let deadline = self.segment.next_at().min(end);
            let waited = self.poller.wait(deadline).map_err(|error| failed("could not wait", error))?;
            ready.clear();
            ready.extend(waited.map(|ready| ready.token));
            for token in ready.drain(..) {
                if token != SIGNALS {
                    self.take_in(token as usize, &mut frame);
                } else if self.is_over(&mut reread) {
                    return Ok(self.report());
                }
            }
        }
        Ok(self.report())
    }

    /// Takes the frames that a station has sent.
    fn take_in(&mut self, from: usize, frame: &mut Vec<u8>) {
        let mut taken = 0;
        while taken < TURN || self.ports[from].as_ref().is_some_and(Port::has_more) {
            taken += 1;
            let Some(port) = &mut self.ports[from] else { return };
            match port.receive(frame) {
                Ok(Some(())) => {
                    // A frame enters at its own time, so that what was due before it happens before it.
                    self.segment.advance(clock::now(), |outcome| self.outcomes.push(outcome));
                    self.segment.take(from, frame);
                }
                Ok(None) | Err(DeviceError::LinkDown) => return,
                Err(DeviceError::Truncated { room }) => self.complain(from, room),
                Err(error) => return self.lose(from, &error),
            }
        }
    }

    fn hand_out(&mut self) {
        for outcome in std::mem::take(&mut self.outcomes).drain(..) {
            match outcome {
                SegmentOutput::Deliver { to, frame } => {
                    let Some(port) = &mut self.ports[to] else { continue };
                    match port.send(&frame) {
                        Ok(_) | Err(DeviceError::LinkDown) => {}
                        Err(error) => self.lose(to, &error),
                    }
                }
                SegmentOutput::Fault { number, at, begins } => {
                    let verb = if begins { "begins" } else { "ends" };
                    eprintln!("rota hub: fault {number} {verb} after {at}");
                }
            }
        }
    }

    /// Says once what a user most often has forgotten.
    fn complain(&mut self, from: usize, room: usize) {
        if !std::mem::replace(&mut self.complained[from], true) {
            let name = &self.names[from];
            eprintln!(
                "rota hub: the station at {name} sends what is no frame of at most {room} octets: give both \
                 ends one MTU, or turn its offloads off, for example with `ethtool -K eth0 gso off`"
            );
        }
    }

    /// Goes on without an interface that no longer works.
    fn lose(&mut self, at: usize, error: &DeviceError) {
        if let Some(mut port) = self.ports[at].take() {
            self.lines[at] = PortLine::new(&self.names[at], &port.counters());
            // A socket that is closed leaves the set by itself.
            eprintln!("rota hub: goes on without {}: {error}", self.names[at]);
        }
    }

    fn is_over(&mut self, reread: &mut impl FnMut() -> Option<Vec<Timed>>) -> bool {
        while let Ok(Some(info)) = self.signals.read_signal() {
            if info.ssi_signo != Signal::SIGHUP as u32 {
                return true;
            }
            if let Some(script) = reread() {
                self.follow(script);
                eprintln!("rota hub: read the script again");
            }
        }
        false
    }

    fn report(&mut self) -> Report {
        for ((line, name), port) in self.lines.iter_mut().zip(&self.names).zip(&mut self.ports) {
            if let Some(port) = port {
                *line = PortLine::new(name, &port.counters());
            }
        }
        let span = clock::now().since(self.start);
        let rate = self.plan.world.settings.link.rate;
        let (medium, happened) = (self.segment.medium(), self.segment.happened());
        Report::new(self.plan.seed, rate, span, self.lines.clone(), medium, happened)
    }
}
