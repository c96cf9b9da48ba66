//! One station's part of an event: taking frames, waking up, and doing what the node says.

use super::{Arrival, Event, Plant, Segment, World};
use crate::check::{Scope, Seen};
use crate::faults::{Happened, is_token_for, kind_of};
use crate::hosts::{INBOX_MAX, Pattern, Waiting};
use crate::media::{End, Frame};
use rota_proto::{
    ChannelEvent, Delivered, Delivery, Disposition, FrameBuf, FrameVerdict, GateOrder, Input, ModeName, Node,
    Output, PortId,
};
use rota_units::{Instant, Span};
use rota_wire::Kind;
use rota_wire::llc::is_llc;

/// What a process that catches up takes at least for each frame.
const DEQUEUE: Span = Span::from_micros(10);
/// How long it takes at most until the thread that knows the programs has heard of an event and answered.
const HEARD: Span = Span::from_millis(2);
/// What a node may ask for in one turn before it counts as running wild.
const OUTPUTS_MAX: u32 = 100_000;

impl World {
    /// A frame is whole at a station's card.
    pub(super) fn arrive(&mut self, on: usize, to: usize, frame: Frame) {
        let now = self.engine.now();
        let host = &mut self.hosts[to];
        let id = host.port_on(on).filter(|id| host.card(*id).picks(&frame));
        let Some(id) = id else {
            self.fragment_ends(&frame, End::PassedBy);
            return;
        };
        let Segment { settings, recovery, stations, .. } = &self.segments[on];
        let ether_type = settings.ether_type;
        if let Some(arrivals) = &mut self.arrivals
            && kind_of(&frame, ether_type).is_none_or(|kind| kind == Kind::Data)
        {
            arrivals.push(Arrival { at: now, on, to, frame: frame.clone() });
        }
        let ours = frame.get(12..14) == Some(&ether_type.to_be_bytes());
        let is_message = settings.llc.enabled && id == PortId(0) && is_llc(&frame);
        let card = host.card(id);
        if !ours && !is_message {
            host.ordinary_received += u64::from(!card.is_gone);
            self.ordinary_arrived(on, to, &frame);
            return;
        }
        if host.node.is_none() || card.is_gone || host.process.inbox.len() >= INBOX_MAX {
            // By then its death must be known: whoever still sends it a token has no excuse.
            let known = now.since(card.died) > settings.trt * 33 + recovery.crash(*stations as u64) * 2;
            host.inbox_drops += 1;
            self.fragment_ends(&frame, End::Silent);
            if !known {
                self.lost_on_silent(on, to, &frame);
            }
            return;
        }
        let is_token = is_token_for(&frame, card.mac, ether_type);
        if now >= host.process.paused_until && is_token && host.keeps_this() {
            let hold = host.flaws.keeps.map_or(Span::ZERO, |keeps| keeps.hold);
            host.queue(id, now, frame);
            self.happened.count(Happened::Kept);
            self.pause(to, hold);
            return;
        }
        if now < host.process.paused_until {
            host.queue(id, now, frame.clone());
            self.lost_on_silent(on, to, &frame);
        } else if host.process.serving {
            host.queue(id, now, frame);
        } else if host.profile.is_ideal() {
            let stamp = host.clock.read(now);
            self.receive(to, &Waiting { port: id, at: now, stamp, frame });
            self.drain_and_arm(to);
        } else {
            let late = host.lateness();
            let host = &mut self.hosts[to];
            let start = (now + host.profile.wake + late).max(host.processor.busy_until);
            host.queue(id, now, frame);
            host.process.serving = true;
            self.engine.schedule(start + host.profile.receive, Event::Serve { host: to });
        }
    }

    /// A token that goes to who cannot take it is as good as lost there.
    fn lost_on_silent(&mut self, on: usize, to: usize, frame: &Frame) {
        let Some(station) = self.hosts[to].on(on) else { return };
        if is_token_for(frame, station.card.mac, self.segments[on].settings.ether_type) {
            let (now, silent) = (self.engine.now(), self.silent_on(on));
            let Segment { recovery, windows, .. } = &mut self.segments[on];
            windows.open(now, recovery.crash(silent.max(1)) + recovery.slot(), Scope::All);
        }
    }

    /// How many stations of a segment cannot answer now.
    pub(super) fn silent_on(&self, on: usize) -> u64 {
        let now = self.engine.now();
        let stations = self.hosts.iter().filter_map(|host| host.on(on));
        stations.filter(|station| station.boots > 0 && !station.is_running(now)).count() as u64
    }

    /// A frame that nobody with a key made, on the first segment: all that it may change is a counter (S12).
    pub fn lie_to(&mut self, to: usize, frame: Frame) {
        self.lie_at(0, to, frame);
    }

    pub(super) fn lie_at(&mut self, on: usize, to: usize, frame: Frame) {
        // Ordinary frames are the affair of the host's own TCP/IP, which may answer a damaged one.
        if frame.get(12..14) != Some(&self.spec.settings.ether_type.to_be_bytes()) {
            self.arrive(on, to, frame);
            return;
        }
        // A change that time alone makes is not the frame's doing.
        if self.hosts[to].is_running(self.engine.now()) {
            self.wake_now(to);
        }
        let before = self.state_of(to);
        self.arrive(on, to, frame);
        let after = self.state_of(to);
        if before != after && self.hosts[to].profile.is_ideal() {
            let now = self.engine.now();
            let what = changed(before.as_deref().unwrap_or(""), after.as_deref().unwrap_or(""));
            self.findings.add(now, "S12", format!("host {to} believed a frame that nobody made: {what}"));
        }
        self.check();
    }

    /// Everything a node knows, the counters of its media apart.
    fn state_of(&self, index: usize) -> Option<String> {
        let text = format!("{:?}", self.hosts[index].node.as_ref()?);
        let lines = text.split("Line {").map(|line| {
            let Some((before, rest)) = line.split_once("counters: Counters {") else {
                return line.to_owned();
            };
            let rest = rest.split_once('}').map_or("", |(_, rest)| rest);
            format!("{before}{rest}")
        });
        Some(lines.collect())
    }

    /// The processor takes the next frame out of the queue.
    pub(super) fn serve(&mut self, index: usize) {
        let now = self.engine.now();
        let host = &mut self.hosts[index];
        if host.node.is_none() || now < host.process.paused_until {
            host.process.serving = false;
            return;
        }
        host.tell_stall(now);
        let Some(waiting) = host.process.inbox.pop_front() else {
            host.process.serving = false;
            self.wake_now(index);
            return;
        };
        self.receive(index, &waiting);
        self.drain(index);
        let host = &mut self.hosts[index];
        // One frame at a time, as a process dequeues them: what it does in between can be seen.
        let next = match host.process.inbox.is_empty() {
            true => Span::ZERO,
            false => host.profile.receive.max(DEQUEUE),
        };
        let at = host.processor.busy_until.max(now) + next;
        self.engine.schedule(at, Event::Serve { host: index });
    }

    fn receive(&mut self, to: usize, waiting: &Waiting) {
        let Waiting { port, at, stamp, ref frame } = *waiting;
        let host = &mut self.hosts[to];
        let on = host.card(port).segment;
        // Like a kernel: when the frame came, up to 5 µs early, as clocks are converted.
        let early = Span::from_nanos(host.random.below(5_000));
        let stamp = match self.spec.plant {
            Some(Plant::StampAtDequeue) => host.clock.read(self.engine.now()),
            _ => stamp.minus(early),
        };
        let now = host.clock.read(self.engine.now());
        let Some(node) = &mut host.node else { return };
        let input = Input::Frame { port, at: (!host.flaws.stampless).then_some(stamp), data: frame };
        let Disposition { verdict, received } = node.handle(now, input);
        let delivery = match received {
            Some(Delivered::Fragment(delivery)) => Some(delivery),
            Some(Delivered::Message(message)) if message.completes() => {
                self.traffic.messages.received += 1;
                self.hashes.message(self.engine.now(), to, &message);
                None
            }
            Some(Delivered::Message(_)) | None => None,
        };
        let accepted = verdict == FrameVerdict::Accepted;
        self.counts.hops += u64::from(accepted);
        // A process that began anew knows no ring: a token sent to it is lost like one sent to the dead.
        let stranger =
            host.boots > 1 && host.rether_at(port).is_some_and(|link| link.mode() != ModeName::Token);
        self.segments[on].saw(Seen::Took { host: to, frame: frame.clone(), accepted });
        if self.mischief.remembers {
            self.segments[on].evil.remember(to, frame);
        }
        self.fragment_looked_at(to, port, frame, delivery.is_some(), verdict);
        if let Some(delivery) = delivery {
            self.fragment_delivered(to, at, &delivery, frame);
        }
        if stranger {
            self.lost_on_silent(on, to, frame);
        }
    }

    /// A fragment for a program, whose octets stand in a frame or by themselves.
    fn fragment_delivered(&mut self, to: usize, at: Instant, delivery: &Delivery, frame: &[u8]) {
        let host = &mut self.hosts[to];
        let begin = usize::from(delivery.offset);
        let payload = &frame[begin..begin + usize::from(delivery.octets)];
        let flow = host.programs.incoming.get(&delivery.channel).copied();
        self.hashes.fragment(self.engine.now(), to, flow, delivery);
        if let Some(receipt) = host.programs.deliver(at, delivery, payload) {
            let packets = u64::from(delivery.descriptor.fragment) + 1;
            self.flow_receipt(to, delivery.channel, receipt, packets);
        }
    }

    pub(super) fn wake(&mut self, index: usize) {
        let now = self.engine.now();
        let host = &mut self.hosts[index];
        if host.process.alarm != now {
            return;
        }
        host.process.alarm = Instant::FAR;
        if now < host.process.paused_until || host.process.serving {
            // A station that goes on looks at the timers then.
            return;
        }
        if now < host.processor.busy_until {
            host.process.alarm = host.processor.busy_until;
            let at = host.process.alarm;
            self.engine.schedule(at, Event::Wake { host: index });
            return;
        }
        self.wake_now(index);
    }

    fn wake_now(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        host.tell_stall(self.engine.now());
        let now = host.clock.read(self.engine.now());
        let Some(node) = &mut host.node else { return };
        if node.deadline() <= now {
            node.handle_deadline(now);
        }
        self.drain_and_arm(index);
    }

    pub(super) fn card_empty(&mut self, on: usize, index: usize) {
        let host = &mut self.hosts[index];
        let now = host.clock.read(self.engine.now());
        if let (Some(port), Some(node)) = (host.port_on(on), &mut host.node) {
            node.handle(now, Input::CardEmpty { port });
        }
        self.drain_and_arm(index);
    }

    /// A stopped process goes on: first with what has come meanwhile.
    pub(super) fn resume(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        if self.engine.now() < host.process.paused_until || host.process.serving {
            return;
        }
        host.process.serving = true;
        self.serve(index);
        self.saw_of(index, &Seen::Acted { host: index });
    }

    /// Polls a node until it is drained and sets its alarm.
    pub(super) fn drain_and_arm(&mut self, index: usize) {
        self.drain(index);
        let now = self.engine.now();
        let host = &mut self.hosts[index];
        let Some(node) = &host.node else { return };
        let mut due = host.clock.when(node.deadline()).max(now);
        if due < host.process.alarm {
            if due < Instant::FAR && due > now && host.profile.late_ppm > 0 {
                due += host.lateness();
            }
            host.process.alarm = due;
            self.engine.schedule(due, Event::Wake { host: index });
        }
    }

    pub(super) fn drain(&mut self, index: usize) {
        self.saw_of(index, &Seen::Acted { host: index });
        let world_now = self.engine.now();
        if world_now < self.hosts[index].process.paused_until {
            return;
        }
        let now = self.hosts[index].clock.read(world_now);
        let mut buffer = std::mem::take(&mut self.spare.buffer);
        let mut outputs = self.poll_all(index, now, &mut buffer);
        // A program of the simulator has room at once.
        while let Some(channel) = self.spare.incoming.pop_front() {
            if let Some(node) = &mut self.hosts[index].node {
                node.accept(now, channel);
            }
            outputs += self.poll_all(index, now, &mut buffer);
        }
        self.spare.buffer = buffer;
        self.tell_neighbours(index);
        self.count_hops(index);
        if outputs > 0 {
            self.count_ordinary(index);
        }
    }

    /// Does what a node wants done until it is drained; how much that was.
    fn poll_all(&mut self, index: usize, now: Instant, buffer: &mut [u8]) -> u32 {
        let mut outputs = 0;
        while let Some(node) = &mut self.hosts[index].node {
            if outputs > OUTPUTS_MAX {
                node.break_off();
                let world_now = self.engine.now();
                self.findings.add(world_now, "S7", format!("host {index} never drains"));
                break;
            }
            let mut frame = FrameBuf { bytes: &mut *buffer, payloads: &mut Pattern };
            let Some(output) = node.poll(now, &mut frame) else { break };
            self.perform(index, output, buffer);
            outputs += 1;
        }
        outputs
    }

    /// The program behind an incoming channel that never opened still waits, as in the node's own
    /// `on_closed`; a process that died meanwhile took its programs' wishes along.
    pub(super) fn listen_again(&mut self, index: usize, boot: u32, listener: u64) {
        let (now, host) = (self.engine.now(), &mut self.hosts[index]);
        if host.boots != boot {
            return;
        }
        if now < host.process.paused_until {
            // All its threads stand still.
            self.engine
                .schedule(host.process.paused_until, Event::ListenAgain { host: index, boot, listener });
            return;
        }
        if let Some(node) = &mut host.node {
            node.listen_again(listener);
            host.programs.waiting.insert(listener);
            self.counts.listened_again += 1;
            self.drain_and_arm(index);
        }
    }

    fn perform(&mut self, index: usize, output: Output, bytes: &[u8]) {
        let world_now = self.engine.now();
        match output {
            Output::Transmit { port, len } => {
                let frame = Frame::from(&bytes[..usize::from(len)]);
                self.transmit(index, port, frame);
            }
            Output::TransmitHost { port, tag } => {
                if let Some(frame) = self.hosts[index].card_mut(port).host_frames.remove(&tag.0) {
                    self.transmit(index, port, frame);
                }
            }
            Output::DropHost { port, tag } => {
                let card = self.hosts[index].card_mut(port);
                card.dropped += u64::from(card.host_frames.remove(&tag.0).is_some());
            }
            Output::Gate { port, order } => {
                let card = self.hosts[index].card_mut(port);
                card.gated = order == GateOrder::Divert;
                if order == GateOrder::Divert {
                    let on = card.segment;
                    self.segments[on].medium.watch_card(self.engine.now(), index, &mut self.spare.steps);
                    self.follow(on);
                }
            }
            Output::Event => {
                self.message_events(index);
                while let Some(event) = self.hosts[index].node.as_mut().and_then(Node::next_event) {
                    self.flow_event(index, &event);
                    let accepts = self.spec.across.is_none() || self.across_event(index, &event);
                    if let ChannelEvent::Incoming { channel, .. } = event
                        && accepts
                    {
                        self.spare.incoming.push_back(channel);
                    }
                    if let ChannelEvent::Closed { listener: Some(listener), .. } = event {
                        let boot = self.hosts[index].boots;
                        let at = world_now + Span::from_nanos(self.chance.threads.below(HEARD.as_nanos()));
                        self.engine.schedule(at, Event::ListenAgain { host: index, boot, listener });
                    }
                    self.hosts[index].programs.events.push(event);
                }
                while let Some(event) = self.hosts[index].node.as_mut().and_then(Node::next_hop_event) {
                    self.hosts[index].programs.hop_events.push(event);
                }
            }
            Output::Kept => {
                let kept = self.hosts[index].node.as_mut().and_then(Node::take_kept);
                if let Some(delivery) = kept {
                    self.fragment_delivered(index, world_now, &delivery, bytes);
                }
            }
            Output::Slot { channel, at, unit } => {
                let began = self.hosts[index].clock.was(at).min(self.engine.now());
                self.across_left(index, channel, unit);
                self.flow_slot(index, channel, began, unit);
            }
            Output::Hold { .. } | Output::Round { .. } => {}
            // No node gives them.
            Output::TransmitLlc { .. } | Output::TransmitCircuit { .. } => {}
        }
    }

    /// The process hands a frame to its card, which costs the processor time.
    fn transmit(&mut self, from: usize, port: PortId, frame: Frame) {
        let now = self.engine.now();
        let host = &self.hosts[from];
        let on = host.card(port).segment;
        let ether_type = self.segments[on].settings.ether_type;
        let local = host.clock.read(now);
        let kind = kind_of(&frame, ether_type);
        if kind == Some(Kind::Data) {
            self.fragment_sent(on, from, &frame);
        }
        let host = &mut self.hosts[from];
        let holding = host.rether_at(port).is_some_and(|link| link.holds_token(local));
        self.counts.lists += u64::from(kind == Some(Kind::List));
        if host.card(port).ordinary_until > now && kind == Some(Kind::SwitchAck) {
            let what = format!("host {from} says that its card is empty, and it is not");
            self.findings.add(now, "R7", what);
        }
        let Segment { windows, recovery, .. } = &mut self.segments[on];
        windows.flooded.sent(now, from, &frame, kind);
        let (late, slot) = (host.flaws.units_late, recovery.slot());
        self.segments[on].saw(Seen::Sent { host: from, frame: frame.clone(), kind, holding });
        if kind == Some(Kind::Data) && late > Span::ZERO {
            // It leaves when another station has the token, and takes its time.
            self.happened.count(Happened::Strayed);
            self.segments[on].windows.open(now, late + slot, Scope::All);
            self.engine.schedule(now + late, Event::Hand { on, from, frame });
            return;
        }
        if host.profile.is_ideal() {
            self.send(on, from, frame);
            return;
        }
        let at = host.charge(now, &frame, ether_type);
        self.engine.schedule(at, Event::Hand { on, from, frame });
    }
}

/// Where two states differ first, with a few words around it.
fn changed(before: &str, after: &str) -> String {
    let same = before.bytes().zip(after.bytes()).take_while(|(one, other)| one == other).count();
    let words = |text: &str| -> String { text.chars().skip(same.saturating_sub(40)).take(80).collect() };
    format!("…{}… became …{}…", words(before), words(after))
}
