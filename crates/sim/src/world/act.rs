//! What a test or a scenario does to a world.

use super::{Event, Segment, World};
use crate::check::{Blow, Scope, Seen};
use crate::faults::{Happened, Select, WireFault};
use crate::media::Frame;
use crate::traffic::{Purpose, Shape, Source};
use rota_proto::{ChannelId, HostTag, Input, ModeName, Node, PortId, RequestError, Settings, StationId};
use rota_units::{Instant, Span};

impl World {
    /// Lets a host do something, then drains it.
    pub fn with<T>(&mut self, index: usize, act: impl FnOnce(&mut Node, Instant) -> T) -> Option<T> {
        let host = &mut self.hosts[index];
        let now = host.clock.read(self.engine.now());
        let result = host.node.as_mut().map(|node| act(node, now));
        self.drain_and_arm(index);
        self.check();
        result
    }

    /// The station number that a host has got on the segment of its first port.
    pub fn station(&self, index: usize) -> StationId {
        self.hosts[index].rether_at(PortId(0)).map_or(0, |link| link.station())
    }

    /// Opens a channel for units of `octets`, one each period, from one host to a listening one.
    ///
    /// # Errors
    /// As [`Node::open`].
    pub fn open(&mut self, from: usize, to: usize, octets: u32) -> Result<ChannelId, RequestError> {
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

    /// An ordinary frame that says which source made it, for a source that waits for an answer. Nobody
    /// forwards it: without a segment of both hosts there is none.
    pub(super) fn ordinary_of(&mut self, from: usize, to: usize, octets: u16, source: usize, number: u64) {
        let Some(on) = self.spec.common(from, to) else { return };
        let address = |host: usize| self.hosts[host].on(on).map(|station| station.card.mac.0);
        let (Some(destination), Some(origin)) = (address(to), address(from)) else { return };
        let mut frame = vec![0u8; usize::from(octets.max(60))];
        frame[..6].copy_from_slice(&destination);
        frame[6..12].copy_from_slice(&origin);
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[34..42].copy_from_slice(&(source as u64).to_be_bytes());
        frame[42..50].copy_from_slice(&number.to_be_bytes());
        self.host_sends(on, from, frame.into());
    }

    fn host_sends(&mut self, on: usize, from: usize, frame: Frame) {
        let now = self.engine.now();
        let host = &mut self.hosts[from];
        let Some(port) = host.port_on(on).filter(|port| !host.card(*port).is_gone) else { return };
        if !host.card(port).gated {
            // Nobody regulates a host whose process is dead: one that sends without a pause fills the ports
            // through which the token goes, as a babbler does (row 26).
            if host.boots > 0 && host.node.is_none() && now <= host.card(port).ordinary_until {
                let Segment { windows, recovery, .. } = &mut self.segments[on];
                windows.go_on(now, recovery.slot());
            }
            self.send(on, from, frame);
            let empty_at = self.segments[on].medium.card_empty_at(from).unwrap_or(Instant::ZERO);
            self.hosts[from].card_mut(port).ordinary_until = empty_at;
            return;
        }
        let tag = HostTag(host.next_tag);
        host.next_tag += 1;
        let octets = frame.len() as u16;
        let level = rota_wire::host_level(&frame);
        host.card_mut(port).host_frames.insert(tag.0, frame);
        let now = host.clock.read(now);
        let input = Input::HostFrame { port, tag, octets, level };
        host.node.as_mut().map(|node| node.handle(now, input));
        self.drain_and_arm(from);
    }

    /// A TCP-like source hears that its segment came; the acknowledgement takes the way back.
    pub(super) fn ordinary_arrived(&mut self, on: usize, to: usize, frame: &Frame) {
        let word = |at: usize| frame.get(at..at + 8).and_then(|octets| octets.try_into().ok());
        let Some(index) =
            word(34).map(u64::from_be_bytes).filter(|at| *at < self.traffic.sources.len() as u64)
        else {
            return;
        };
        let index = index as usize;
        let Shape::Tcp { window, .. } = self.traffic.sources[index].shape else { return };
        let Purpose::Ordinary { from, to: receiver } = self.traffic.sources[index].purpose else { return };
        // A frame that a stranger made may name a source of other hosts.
        if self.spec.common(from, receiver) != Some(on) {
            return;
        }
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

    /// Begins a fault of the first segment's wires that lasts until [`crate::Wires::heal`].
    pub fn disturb(&mut self, fault: WireFault) {
        let random = self.stream("wire");
        self.segments[0].wires.disturb(fault, Select::all(), Instant::FAR, random);
    }

    /// Starts a host's process, for the first time or again.
    pub fn start(&mut self, index: usize) {
        if self.hosts[index].boots > 0 {
            self.happened.count(Happened::Restarted);
        }
        if self.hosts[index].node.is_some() {
            // A station that is started while it runs falls silent as what it was.
            self.saw_of(index, &Seen::Struck { blow: Blow::Death });
        }
        self.fragments_die(index);
        self.sessions_die(index);
        self.across_dies(index);
        self.hosts[index].lose_process();
        self.end_flows_of(index);
        let node = self.boot(index);
        self.hosts[index].node = Some(node);
        self.begin_across(index);
        self.drain_and_arm(index);
        self.check();
    }

    /// Somebody without a key plays a recorded frame to everybody on the first segment.
    pub fn replay(&mut self, frame: &Frame) {
        for to in 0..self.hosts.len() {
            self.deliver(to, frame.clone());
        }
    }

    /// Starts a host's process in a while, unless it runs by then.
    pub fn start_later(&mut self, index: usize, wait: Span) {
        self.engine.schedule(self.engine.now() + wait, Event::Start { host: index });
    }

    /// The process is killed; with it goes its gate.
    pub fn kill(&mut self, index: usize) {
        self.happened.count(Happened::Crashed);
        let ports: Vec<usize> = self.hosts[index].ports.iter().map(|port| port.segment).collect();
        let switches = |on: &usize| {
            let mut stations = self.hosts.iter().filter_map(|host| host.on(*on));
            (*on, stations.any(|station| station.mode() == Some(ModeName::Switching)))
        };
        let switching: Vec<(usize, bool)> = ports.iter().map(switches).collect();
        self.fragments_die(index);
        self.leave_wills(index);
        self.sessions_die(index);
        self.across_dies(index);
        self.hosts[index].lose_process();
        let now = self.engine.now();
        self.hosts[index].ports.iter_mut().for_each(|port| port.died = now);
        self.end_flows_of(index);
        for (on, switching) in switching {
            self.silenced(on, switching);
        }
        self.saw_of(index, &Seen::Struck { blow: Blow::Death });
        self.saw_of(index, &Seen::Acted { host: index });
        self.check();
    }

    /// A station of a segment has fallen silent: what is excused until all know it.
    fn silenced(&mut self, on: usize, switching: bool) {
        let (now, dead) = (self.engine.now(), self.silent_on(on));
        let Segment { recovery, windows, .. } = &mut self.segments[on];
        let span = if switching { recovery.switch_crash(dead) } else { recovery.crash(dead) };
        windows.open(now, span + recovery.slot(), Scope::All);
    }

    /// The interface of a host on a segment disappears. Its node goes on with the others; with the last one
    /// it ends. The next process finds the interface again.
    pub fn lose_port(&mut self, index: usize, on: usize) {
        let host = &self.hosts[index];
        let Some(port) = host.port_on(on).filter(|port| !host.card(*port).is_gone) else { return };
        self.happened.count(Happened::PortLost);
        if host.node.is_none() || host.ports.iter().filter(|port| !port.is_gone).count() == 1 {
            // Without any interface there is no node.
            if host.node.is_some() {
                self.kill(index);
            }
            self.hosts[index].card_mut(port).is_gone = true;
            return;
        }
        let mut stations = self.hosts.iter().filter_map(|host| host.on(on));
        let switching = stations.any(|station| station.mode() == Some(ModeName::Switching));
        self.fragments_end_at(index, port);
        let (now, host) = (self.engine.now(), &mut self.hosts[index]);
        let card = host.card_mut(port);
        (card.is_gone, card.died) = (true, now);
        card.lose_gate();
        let local = host.clock.read(now);
        if let Some(node) = &mut host.node {
            node.lose_port(local, port);
        }
        self.silenced(on, switching);
        self.segments[on].saw(Seen::Struck { blow: Blow::Death });
        self.drain_and_arm(index);
        self.check();
    }

    /// The process is stopped for so long.
    pub fn pause(&mut self, index: usize, span: Span) {
        let now = self.engine.now();
        let (until, mut any_long) = (now + span, false);
        for port in 0..self.hosts[index].ports.len() {
            // A drowsy holder may be near the end of its lease already, and needs the rest of its cycle and a
            // whole one to send and go round before (seed 90807 of the product's timers).
            let host = &self.hosts[index];
            let Segment { settings, recovery, windows, .. } = &mut self.segments[host.ports[port].segment];
            let (local, link) = (host.clock.read(now), host.rether_at(PortId(port as u8)));
            let back = local + span + settings.trt * 2;
            let loses = link.is_some_and(|link| link.holds_token(local) && !link.holds_token(back));
            let long = loses || span > settings.lease_least();
            any_long |= long;
            // While it stands still nothing of its own moves; behind a lease the others go on without it.
            let crash = if long { recovery.crash(1) } else { Span::ZERO };
            windows.open(now, span + crash + recovery.slot(), Scope::All);
            let blow = if long { Blow::Death } else { Blow::Other { ends: until, silent: 1 } };
            let on = host.ports[port].segment;
            self.segments[on].saw(Seen::Struck { blow });
        }
        self.happened.count(if any_long { Happened::PausedLong } else { Happened::PausedShort });
        self.hosts[index].process.paused_until = until;
        self.hosts[index].process.stood = self.hosts[index].process.stood.max(span);
        self.engine.schedule(until, Event::Resume { host: index });
    }

    /// Gives the checkers of the first segment something to see that did not happen: a test's way to plant
    /// what no machine does.
    pub fn pretend(&mut self, seen: Seen) {
        self.segments[0].saw(seen);
        self.check();
    }

    /// A frame from nowhere is whole at a station of the first segment.
    pub fn deliver(&mut self, to: usize, frame: Frame) {
        self.fragment_copied(&frame, 1);
        self.arrive(0, to, frame);
        self.check();
    }

    /// Gives a host settings of its own on its first port, from its next start on.
    pub fn set_settings(&mut self, index: usize, settings: Settings) {
        self.hosts[index].ports[0].settings = Some(settings);
    }

    /// The host that holds the token of the first segment now.
    pub fn holder(&self) -> Option<usize> {
        let now = self.engine.now();
        self.hosts.iter().position(|host| host.on(0).is_some_and(|station| station.holds(now)))
    }

    /// All live hosts agree that the first segment is in token mode, or that it is plain.
    pub fn agreed_mode(&self) -> Option<ModeName> {
        self.agreed_mode_on(0)
    }

    /// The same of a segment.
    pub fn agreed_mode_on(&self, on: usize) -> Option<ModeName> {
        let mut modes = self.hosts.iter().filter_map(|host| host.on(on)?.mode());
        let first = modes.next()?;
        modes.all(|mode| mode == first).then_some(first)
    }
}
