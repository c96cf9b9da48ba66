//! A turn of the data thread: a look at the device and at the token, then a bounded amount of other work.
//!
//! Limits bound it: frames taken and sent, commands heard, octets copied for programs (`sockets`), and the
//! time after which no frame is sent. The remaining work waits for the next turn, which looks at the device
//! first, and which waits a moment where the work is not for the wire. Another thread unmaps memory.

use super::ease::{self, Ease, PAUSE};
use super::waits::{self, COMMANDS, CONTROL, DEVICE, DOORBELL, GATE, LLC, NEIGHBOURS, READY_MAX};
use super::way::{self, Way};
use super::{Data, Stopped, WireCounts, behind, system};
use crate::commands::Note;
use crate::gate::Egress;
use rota_driver::clock::{now, sleep_until};
use rota_driver::device::FrameDevice;
use rota_proto::PortId;
use rota_units::{Instant, Span};

/// After this time a turn sends no more frames: the next turn looks at the device and the token first.
const TURN_WORK: Span = Span::from_micros(200);
/// Frames that are sent before the turn goes on: programs may have handed over thousands of frames, and the
/// token's own, which may have come meanwhile, must not wait for all of them.
pub(super) const FRAMES_OUT_A_TURN: usize = 64;
/// Time from the decision to leave to the last turn.
const LEAVE_WAIT: Span = Span::from_millis(150);

/// The point at which a turn stops sending.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnLimits {
    /// The value of `Wire::own_frames`, which counts over all turns, at which this turn sends no more.
    own_frames_max: u64,
    /// When this turn sends no more.
    until: Instant,
}

impl TurnLimits {
    pub(super) const NONE: Self = Self { own_frames_max: u64::MAX, until: Instant::FAR };
}

/// The change of an interface's MTU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mtu {
    pub(super) port: PortId,
    pub(super) was: u16,
    pub(super) is: u16,
}

/// The end of the node, which has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    /// When the last turn ends.
    until: Instant,
    /// The MTU of a port before and now, if the node ends because it is another one.
    mtu: Option<Mtu>,
}

impl Leaving {
    #[cfg(test)]
    pub(super) fn at(until: Instant) -> Self {
        Self { until, mtu: None }
    }
}

/// The work of a turn: how much of it there may be, and what is left of it.
pub(super) struct Work {
    pub(super) limits: TurnLimits,
    /// The machines have more to send than one turn does.
    pub(super) has_more: bool,
    /// The control thread has sent more commands than one turn takes.
    pub(super) has_commands: bool,
    /// Neighbours have said more than one turn takes.
    pub(super) has_neighbours: bool,
    pub(super) ease: Ease,
    pub(super) leaving: Option<Leaving>,
    /// When the thread last waited for frames, too.
    pub(super) looked: Instant,
}

impl Work {
    pub(super) fn new() -> Self {
        Self {
            limits: TurnLimits::NONE,
            has_more: false,
            has_commands: false,
            has_neighbours: false,
            ease: Ease::default(),
            leaving: None,
            looked: Instant::ZERO,
        }
    }

    /// True if the turn sends no more: `own_frames` of this node were handed to the device until `at`.
    pub(super) fn is_done(&mut self, own_frames: u64, at: Instant) -> bool {
        self.has_more = own_frames >= self.limits.own_frames_max || at >= self.limits.until;
        self.has_more
    }

    /// The node ends soon: it was told to, or the interface has another MTU.
    pub(super) fn leave(&mut self, at: Instant, mtu: Option<Mtu>) {
        let mtu = mtu.or(self.leaving.and_then(|leaving| leaving.mtu));
        self.leaving = Some(Leaving { until: at + LEAVE_WAIT, mtu });
    }
}

impl<D: FrameDevice, G: Egress> Data<D, G> {
    pub(super) fn turns(&mut self) -> Result<(), Stopped> {
        let mut at = now();
        loop {
            match self.turn(at) {
                Ok(Some(turned)) => at = turned,
                Ok(None) => break,
                Err(error) => {
                    self.survive(error)?;
                    at = now();
                }
            }
        }
        let mtu = self.work.leaving.and_then(|leaving| leaving.mtu);
        mtu.map_or(Ok(()), |Mtu { port, was, is }| Err(Stopped::Mtu { port, was, is }))
    }

    /// One turn: a look at the device, and a bounded amount of other work. `at` is the end of the turn
    /// before. Returns the end of this one, or nothing if it was the last.
    pub(super) fn turn(&mut self, at: Instant) -> Result<Option<Instant>, Stopped> {
        let drained = self.drain_from(at)?;
        self.look_at_held_gates(drained)?;
        let armed = self.pause(drained)?;
        let due = self.due();
        let lull = self.lull(armed, due);
        let due = lull.unwrap_or(due);
        let mut ready = [0; READY_MAX];
        let count = self.waits.wait(armed, due, lull.is_some(), &mut ready)?;
        let ready = &ready[..count];
        let woke = now();
        self.work.ease.waited(armed, woke);
        self.work.ease.heard(ready.iter().any(|token| *token >= DOORBELL));
        // Only a timer that was set for later can be late; one that was due already says nothing.
        if due > armed && due < woke {
            self.measures.stalls.on_timer(due, woke);
        }
        self.begin_turn(woke);
        // Before the word of a sender that its channel has ended.
        self.rings.read_counts(woke, &mut self.node, &mut self.told.tracer);
        // The token first: other ready work can wait for it, but the ring must not wait for that work. A
        // process that was stopped wakes without being told of the frames that wait.
        for place in 0..self.ways.len() {
            let Way { port, wire, .. } = &mut self.ways[place];
            let heard = wire.hear_again(woke, way::medium(&self.node, *port));
            heard.map_err(|error| Stopped::Device(*port, error))?;
            let is_ready = match lull {
                Some(_) => wire.device.has_frame(),
                None => ready.contains(&waits::of(DEVICE, *port)),
            };
            if is_ready || behind::overslept(due.max(armed), woke) {
                self.receive(place)?;
            } else {
                wire.heard_nothing();
            }
        }
        if self.work.has_commands || ready.contains(&COMMANDS) {
            self.commands(woke)?;
        }
        if self.work.has_neighbours || ready.contains(&NEIGHBOURS) {
            self.hear_neighbours(woke)?;
        }
        self.ordinary_frames(woke, ready)?;
        self.look_at_rings(woke, ready)?;
        self.rings.looked = at;
        self.ports(woke)?;
        self.tick_across(woke)?;
        self.tell_neighbours();
        self.rings.wake_receivers(&self.node);
        for way in &mut self.ways {
            way.wills.renew(way::medium(&self.node, way.port));
        }
        let turned = self.end_turn(woke);
        Ok(self.work.leaving.is_none_or(|leaving| woke < leaving.until).then_some(turned))
    }

    /// The host's frames, and those of link control, in the order in which their ports have them.
    fn ordinary_frames(&mut self, woke: Instant, ready: &[u64]) -> Result<(), Stopped> {
        for token in ready {
            for place in 0..self.ways.len() {
                let port = self.ways[place].port;
                if *token == waits::of(GATE, port) {
                    self.take_host_frames(place, woke)?;
                } else if *token == waits::of(CONTROL, port) {
                    self.take_control_frames(place, woke)?;
                } else if *token == waits::of(LLC, port) {
                    self.receive_llc(place)?;
                }
            }
        }
        for way in &mut self.ways {
            way.wire.llc_streams = ready.contains(&waits::of(LLC, way.port));
        }
        Ok(())
    }

    /// Of each port: the card and the gate, and the timers where no frame of before waits.
    fn ports(&mut self, woke: Instant) -> Result<(), Stopped> {
        for place in 0..self.ways.len() {
            let Way { port, wire, host, .. } = &mut self.ways[place];
            let port = *port;
            if host.look_at_card((port, woke), &mut wire.device, &mut self.node) {
                self.drain()?;
            }
            self.open_gate(place)?;
            if self.node.deadline_at(port) <= woke && self.ways[place].wire.behind.may_judge() {
                self.node.handle_deadline_at(woke, port);
                self.drain()?;
            }
        }
        Ok(())
    }

    pub(super) fn begin_turn(&mut self, at: Instant) {
        let own_frames_max = self.own_frames + FRAMES_OUT_A_TURN as u64;
        self.work.limits = TurnLimits { own_frames_max, until: at + TURN_WORK };
        self.work.ease.begin_turn(self.frames_left());
        self.rings.wakes.begin_turn(at);
    }

    /// Notes what the turn took. Returns its end.
    pub(super) fn end_turn(&mut self, woke: Instant) -> Instant {
        let turned = now();
        let counts = &mut self.measures.counts;
        counts.turn_longest = counts.turn_longest.max(turned.since(woke));
        // A turn takes microseconds: one of more than a millisecond was taken off its CPU.
        self.measures.stalls.on_timer(woke, turned);
        self.measures.report_stall(turned, &mut self.node);
        self.measures.counts.turns += 1;
        self.told.tracer.turn(turned, &self.node, &self.measures.stalls);
        while let Some(event) = self.told.tracer.incident(turned) {
            self.control.say(Note::Incident { event });
        }
        if self.told.published.is_due(turned) {
            self.look_at_mtu(turned);
            self.measures.counts.refused = self.control.refusals().read();
            self.publish(turned);
            self.rings.tell_reports(turned, &self.node);
            self.rings.state_left_out(&mut self.node);
            return now();
        }
        turned
    }

    /// Writes the counters and the rows of all ports, and tells their machines of this host.
    fn publish(&mut self, at: Instant) {
        let Self { node, ways, measures, told, .. } = self;
        for way in ways.iter_mut() {
            way.host.count_lost(at, way.meter.gate_lost());
            let signs = told.published.signs(at, way.port, measures.all_stalls(), way.meter.signs());
            if let Some(signs) = signs {
                node.tell_host(way.port, signs);
            }
        }
        let node = &*node;
        for view in ways.iter().filter_map(|way| way.view(node)) {
            told.published.port(at, node, &view);
        }
        told.published.totals(&measures.view(), ways[0].port);
    }

    /// With another MTU this station is another one to its segment: it leaves in good order, and its node
    /// ends with the reason.
    fn look_at_mtu(&mut self, at: Instant) {
        let other = self.ways.iter().find_map(|way| {
            let (was, is) = (way.wire.device.mtu(), way.meter.mtu()?);
            (is != was).then_some(Mtu { port: way.port, was, is })
        });
        if self.work.leaving.is_none() && other.is_some() {
            self.node.leave(at);
            self.work.leave(at, other);
        }
    }

    /// Waits for frames and nothing else, where other threads are to get the CPU; see [`super::ease`].
    /// Returns the end of the wait, or `at` if there was none.
    pub(super) fn pause(&mut self, at: Instant) -> Result<Instant, Stopped> {
        let flood = self.ways.iter().map(|way| way.wire.flood).max().unwrap_or(0);
        let serves = self.rings.sockets.has_more() || self.rings.circuits.has_more();
        let is_due = self.work.ease.owes(at, serves)
            || self.work.ease.sent_nothing(self.frames_left(), self.leaves_work());
        if !(is_due || flood > 0) || self.node.ports().any(|port| port.medium().holds_token(at)) {
            return Ok(at);
        }
        let until = self.node.deadline();
        if flood > 0 {
            // Frames of a flood cost a third if many are taken in one turn.
            sleep_until(until.min(at + ease::pause_of_flood(flood)));
        } else {
            let until = until.min(at + PAUSE);
            let _frames = self.waits.wire.wait_from(at, until).map_err(system("epoll"))?;
        }
        let woke = now();
        self.work.ease.waited(at, woke);
        #[cfg(test)]
        {
            self.work.ease.pauses += 1;
        }
        Ok(woke)
    }

    /// Frames of this station and of its host that the card has taken so far.
    pub(super) fn frames_left(&self) -> u64 {
        let all = self.ways.iter().map(|Way { host, wire, .. }| {
            let WireCounts { own_frames, no_room, send_failed, .. } = wire.counts;
            own_frames.saturating_sub(no_room + send_failed) + host.left()
        });
        all.sum()
    }

    /// True if the machines or the sockets have work that the turn had no time for.
    fn leaves_work(&self) -> bool {
        self.work.has_more || self.rings.sockets.has_more() || self.rings.circuits.has_more()
    }

    pub(super) fn due(&self) -> Instant {
        if self.work.has_commands || self.work.has_neighbours || self.leaves_work() {
            return Instant::ZERO;
        }
        let end = self.work.leaving.map_or(Instant::FAR, |leaving| leaving.until);
        let ways = self.ways.iter().map(|way| way.host.due());
        ways.fold(self.node.deadline().min(end), Instant::min)
    }
}
