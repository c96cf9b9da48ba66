//! What a test or a scenario does to a world.

use super::{Event, World};
use crate::check::{Blow, Scope, Seen};
use crate::faults::{Happened, Select, WireFault};
use crate::hosts::Host;
use crate::media::Frame;
use crate::traffic::{Purpose, Shape, Source};
use rota_proto::{ChannelId, HostTag, Input, ModeName, Node, OpenError, PortId, Settings, StationId};
use rota_units::{Instant, Span};

impl World {
    /// Lets a host do something, then drains it.
    pub fn with<T>(&mut self, index: usize, act: impl FnOnce(&mut Node, Instant) -> T) -> Option<T> {
        let host = &mut self.hosts[index];
        let now = host.clock.read(self.engine.now());
        let result = host.node.as_mut().map(|node| act(node, now));
        self.settle(index);
        self.check();
        result
    }

    /// The station number a host has got.
    pub fn station(&self, index: usize) -> StationId {
        self.hosts[index].node.as_ref().map_or(0, |node| node.link().station())
    }

    /// Opens a channel for units of `octets`, one each period, from one host to a listening one.
    ///
    /// # Errors
    /// As [`Node::open`].
    pub fn open(&mut self, from: usize, to: usize, octets: u32) -> Result<ChannelId, OpenError> {
        let flow = self.open_flow(from, to, octets, true)?;
        Ok(self.traffic.flows[flow].channel)
    }

    /// A unit of a channel is ready at its sender.
    pub fn unit(&mut self, from: usize, channel: ChannelId, octets: u32) {
        let flow = self.traffic.flows.iter().rposition(|flow| (flow.from, flow.channel) == (from, channel));
        if let Some(flow) = flow {
            self.flow_unit(flow, octets);
            self.check();
        }
    }

    /// The host's TCP/IP sends an ordinary frame.
    pub fn ordinary(&mut self, from: usize, to: usize, octets: u16) {
        self.ordinary_of(from, to, octets, usize::MAX, 0);
        self.check();
    }

    /// An ordinary frame that says which source made it, for a source that waits for an answer.
    pub(super) fn ordinary_of(&mut self, from: usize, to: usize, octets: u16, source: usize, number: u64) {
        let mut frame = vec![0u8; usize::from(octets.max(60))];
        frame[..6].copy_from_slice(&self.hosts[to].mac.0);
        frame[6..12].copy_from_slice(&self.hosts[from].mac.0);
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[34..42].copy_from_slice(&(source as u64).to_be_bytes());
        frame[42..50].copy_from_slice(&number.to_be_bytes());
        self.host_sends(from, frame.into());
    }

    fn host_sends(&mut self, from: usize, frame: Frame) {
        if !self.hosts[from].process.gated {
            // Nobody regulates a host whose process is dead: one that sends without a pause fills the ports
            // through which the token goes, as a babbler does (row 26).
            let host = &self.hosts[from];
            let now = self.engine.now();
            if host.boots > 0 && host.node.is_none() && now <= host.ordinary_until {
                self.windows.go_on(now, self.recovery.slot());
            }
            self.send(from, frame);
            self.hosts[from].ordinary_until = self.medium.card_empty_at(from).unwrap_or(Instant::ZERO);
            return;
        }
        let host = &mut self.hosts[from];
        let tag = HostTag(host.next_tag);
        host.next_tag += 1;
        let octets = frame.len() as u16;
        let level = rota_wire::host_level(&frame);
        host.process.host_frames.insert(tag.0, frame);
        let now = host.clock.read(self.engine.now());
        let input = Input::HostFrame { port: PortId(0), tag, octets, level };
        host.node.as_mut().map(|node| node.handle(now, input));
        self.settle(from);
    }

    /// A TCP-like source hears that its segment came; the acknowledgement takes the way back.
    pub(super) fn ordinary_arrived(&mut self, to: usize, frame: &Frame) {
        let word = |at: usize| frame.get(at..at + 8).and_then(|octets| octets.try_into().ok());
        let Some(index) =
            word(34).map(u64::from_be_bytes).filter(|at| *at < self.traffic.sources.len() as u64)
        else {
            return;
        };
        let index = index as usize;
        let Shape::Tcp { window, .. } = self.traffic.sources[index].shape else { return };
        let Purpose::Ordinary { from, to: receiver } = self.traffic.sources[index].purpose else { return };
        if to == receiver {
            self.ordinary_of(receiver, from, 60, index, 0);
        } else if to == from {
            let now = self.engine.now();
            self.traffic.sources[index].window.acknowledge(now, window);
            self.engine.schedule(now, Event::Emit { source: index });
        }
    }

    /// Adds a source of ordinary traffic that begins now.
    pub fn load(&mut self, from: usize, to: usize, shape: Shape, until: Instant) {
        self.feed(Purpose::Ordinary { from, to }, shape, until);
    }

    /// Adds a source that begins now.
    pub fn feed(&mut self, purpose: Purpose, shape: Shape, until: Instant) {
        let random = self.stream("source");
        self.traffic.sources.push(Source::new(shape, purpose, until, random));
        let source = self.traffic.sources.len() - 1;
        self.engine.schedule(self.engine.now(), Event::Emit { source });
    }

    /// Begins a fault of the wires that lasts until [`crate::Wires::heal`].
    pub fn disturb(&mut self, fault: WireFault) {
        let random = self.stream("wire");
        self.wires.disturb(fault, Select::all(), Instant::FAR, random);
    }

    /// Starts a host's process, for the first time or again.
    pub fn start(&mut self, index: usize) {
        if self.hosts[index].boots > 0 {
            self.tally.count(Happened::Restarted);
        }
        if self.hosts[index].node.is_some() {
            // Whoever is started while it runs falls silent as what it was.
            self.judge.seen.push(Seen::Struck { blow: Blow::Death });
        }
        self.fragments_die(index);
        self.hosts[index].lose_process();
        self.end_flows_of(index);
        let node = self.boot(index);
        self.hosts[index].node = Some(node);
        self.settle(index);
        self.check();
    }

    /// Somebody without a key plays a recorded frame to everybody.
    pub fn replay(&mut self, frame: &Frame) {
        for to in 0..self.hosts.len() {
            self.fragment_copied(frame, 1);
            self.arrive(to, frame.clone());
            self.check();
        }
    }

    /// Starts a host's process in a while, unless it runs by then.
    pub fn start_later(&mut self, index: usize, wait: Span) {
        self.engine.schedule(self.engine.now() + wait, Event::Start { host: index });
    }

    /// The process is killed; with it goes its gate.
    pub fn kill(&mut self, index: usize) {
        self.tally.count(Happened::Crashed);
        let mut nodes = self.hosts.iter().filter_map(|host| host.node.as_ref());
        let switching = nodes.any(|node| node.link().mode() == ModeName::Switching);
        self.fragments_die(index);
        self.leave_will(index);
        self.hosts[index].lose_process();
        self.hosts[index].died = self.engine.now();
        self.end_flows_of(index);
        let dead = self.silent_hosts();
        let span = if switching { self.recovery.switch_crash(dead) } else { self.recovery.crash(dead) };
        let span = span + self.recovery.slot();
        self.windows.open(self.engine.now(), span, Scope::All);
        self.judge.seen.push(Seen::Struck { blow: Blow::Death });
        self.judge.seen.push(Seen::Acted { host: index });
        self.check();
    }

    /// The process is stopped for so long.
    pub fn pause(&mut self, index: usize, span: Span) {
        // A drowsy holder may be near the end of its lease already, and needs the rest of its cycle and a
        // whole one to send and go round before (seed 90807 of the product's timers).
        let host = &self.hosts[index];
        let (now, link) = (host.clock.read(self.engine.now()), host.node.as_ref().map(|node| node.link()));
        let back = now + span + self.spec.settings.trt * 2;
        let loses = link.is_some_and(|link| link.holds_token(now) && !link.holds_token(back));
        let long = loses || span > self.spec.settings.lease_least();
        self.tally.count(if long { Happened::PausedLong } else { Happened::PausedShort });
        let now = self.engine.now();
        let until = now + span;
        // While it stands still nothing of its own moves; behind a lease the others go on without it.
        let recovery = if long { self.recovery.crash(1) } else { Span::ZERO };
        self.windows.open(now, span + recovery + self.recovery.slot(), Scope::All);
        let blow = if long { Blow::Death } else { Blow::Other { ends: until, silent: 1 } };
        self.judge.seen.push(Seen::Struck { blow });
        self.hosts[index].process.paused_until = until;
        self.hosts[index].process.stood = self.hosts[index].process.stood.max(span);
        self.engine.schedule(until, Event::Resume { host: index });
    }

    /// Gives the checkers something to see that did not happen: a test's way to plant what no machine does.
    pub fn pretend(&mut self, seen: Seen) {
        self.judge.seen.push(seen);
        self.check();
    }

    /// A frame from nowhere is whole at a station.
    pub fn deliver(&mut self, to: usize, frame: Frame) {
        self.fragment_copied(&frame, 1);
        self.arrive(to, frame);
        self.check();
    }

    /// Gives a host settings of its own, from its next start on.
    pub fn set_settings(&mut self, index: usize, settings: Settings) {
        self.hosts[index].settings = Some(settings);
    }

    /// Which host holds the token now.
    pub fn holder(&self) -> Option<usize> {
        let now = self.engine.now();
        self.hosts.iter().position(|host| {
            host.node.as_ref().is_some_and(|node| node.link().holds_token(host.clock.read(now)))
        })
    }

    /// All live hosts agree that the segment is in token mode, or that it is plain.
    pub fn agreed_mode(&self) -> Option<ModeName> {
        let mut modes = self.hosts.iter().filter_map(Host::mode);
        let first = modes.next()?;
        modes.all(|mode| mode == first).then_some(first)
    }
}
