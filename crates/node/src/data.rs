//! The data thread: *handle one thing, poll until drained, sleep until the deadline.*

mod attach;
mod behind;
mod counts;
mod ease;
mod host;
mod stalls;
mod strangers;
mod turn;
mod units;
mod unread;

pub(crate) use host::HostFrames;

use crate::NodeSpec;
use crate::commands::{AskError, Command, DataEnd, Note, Opening, Peer, Remains, SinkMemory};
use crate::counters::{self, Published, View};
use crate::garbage::Garbage;
use crate::gate::{Egress, EgressError};
use crate::guardian::Wills;
use crate::hold_log::HoldLog;
use crate::limits::Refused;
use crate::pool::Pool;
use crate::sockets::Sockets;
use crate::status::{MemberCopy, Snapshot};
use crate::tally::on_board;
use crate::trace::Tracer;
use ease::Ease;
use hdrhistogram::Histogram;
use host::{GateOpening, VLAN_TAG};
use rota_driver::clock::now;
use rota_driver::device::{DeviceError, ETHERNET_HEADER, FrameDevice, Stamp, Transmit};
use rota_driver::poller::{Poller, Trigger};
use rota_driver::stall::StallLog;
use rota_proto::{
    ChannelEvent, ChannelId, Destination, Disposition, FrameBuf, Identity, Input, Listener, Member, Node,
    OpenRequest, Output, Payloads, PortId, Received,
};
use rota_shm::control::{LlcInfo, LlcPeer};
use rota_shm::{ChannelCounter, TraceFile, UnitDescriptor, Unread};
use rota_units::{Instant, Span};
use rota_wire::MacAddr;
use std::io;
use std::os::fd::AsFd;
use units::Source;

/// Why the data thread ended before it was asked to.
#[derive(Debug)]
pub(crate) enum Stopped {
    Device(DeviceError),
    Gate(EgressError),
    System(&'static str, io::Error),
    /// The interface's MTU has changed since the node began.
    Mtu {
        was: u16,
        is: u16,
    },
}

/// What the data thread measures of itself. Parts of a hop are summed only while hops are being measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) holds: u64,
    pub(crate) turns: u64,
    pub(crate) no_room: u64,
    /// Frames of ours that the card did not take for another reason: its link was down, they were too long.
    pub(crate) send_failed: u64,
    /// Frames that came and were longer than this interface's MTU allows.
    pub(crate) receive_too_long: u64,
    pub(crate) receive_drops: u64,
    pub(crate) link_downs: u64,
    pub(crate) turn_longest: Span,
    pub(crate) hops_split: u64,
    pub(crate) receive_ns: u64,
    pub(crate) handle_ns: u64,
    pub(crate) build_ns: u64,
    pub(crate) transmit_ns: u64,
    /// The refusals to programs.
    pub(crate) refused: Refused,
    /// The newest idle round of the token, and its hops.
    pub(crate) round: (Span, u16),
}

impl Measured {
    /// The counts that continue when hops are measured anew.
    fn again(&self) -> Self {
        let zero = Self::default();
        Self {
            turn_longest: zero.turn_longest,
            hops_split: 0,
            receive_ns: 0,
            handle_ns: 0,
            build_ns: 0,
            transmit_ns: 0,
            round: zero.round,
            ..*self
        }
    }
}

const DEVICE: u64 = 0;
const GATE: u64 = 1;
const COMMANDS: u64 = 2;
const LLC: u64 = 3;
/// Doorbells are numbered from here.
const DOORBELL: u64 = 16;
/// Descriptors that one wait reports at most.
const READY_MAX: usize = 64;
const FRAMES_A_TURN: usize = 64;
/// Fewer, because the token may arrive meanwhile.
const HOST_FRAMES_A_TURN: usize = 16;
/// What is sent before the turn goes on: programs may have handed over thousands of frames, and the token's
/// own, which may have come meanwhile, must not wait for all of them.
const FRAMES_OUT_A_TURN: usize = 64;
/// The control thread may have been asked for much at once.
const COMMANDS_A_TURN: usize = 16;
/// One hop in so many is taken apart.
const SPLIT_EVERY: u64 = 16;
/// Frames of ours may be longer than an interface's MTU allows; such a one is then refused and counted.
const BUFFER_OCTETS: usize = 2_048;
/// Frames of the host that are kept at most, on the fastest links.
const FRAMES_KEPT_MAX: usize = 16_384;
const BACKLOG_AGAIN: Span = Span::from_micros(500);
const LEAVE_WAIT: Span = Span::from_millis(150);

struct Sink {
    channel: ChannelId,
    memory: SinkMemory,
    pushed: bool,
    /// The units of which the machine knows that they were not read.
    unread: Unread,
}

/// The rings that units and messages are copied from.
struct Sources {
    sources: Vec<Source>,
    /// Until then every unit handed over has been seen.
    looked: Instant,
    /// When the reports of other stations were last looked at.
    reported: Instant,
    sockets: Sockets,
}

impl Sources {
    fn new() -> Self {
        let (looked, reported) = (Instant::ZERO, Instant::ZERO);
        Self { sources: Vec::with_capacity(256), looked, reported, sockets: Sockets::new() }
    }
}

impl Payloads for Sources {
    fn copy_unit(&mut self, channel: ChannelId, number: u64, offset: u32, into: &mut [u8]) -> bool {
        let source = self.sources.iter().find(|source| source.channel == channel);
        source.is_some_and(|source| {
            let offered = source.offered.as_ref().filter(|offered| offered.number == number);
            offered.is_some_and(|offered| source.memory.ring.copy(&offered.unit, offset, into))
        })
    }

    fn copy_message(&mut self, socket: u8, number: u64, offset: u32, into: &mut [u8]) -> bool {
        self.sockets.copy(socket, number, offset, into)
    }
}

struct Data<D, G> {
    node: Node,
    device: D,
    gate: G,
    gate_watched: bool,
    diverted: bool,
    card_wanted: bool,
    opening: Option<GateOpening>,
    pool: Pool,
    host: HostFrames,
    /// One frame of the host, and one octet more.
    host_buffer: Box<[u8]>,
    receive_buffer: Box<[u8]>,
    /// The interface's MTU, once it is another one.
    mtu_changed: Option<u16>,
    rings: Sources,
    sinks: Vec<Sink>,
    poller: Poller,
    /// The device alone: what the thread waits for where programs always have work for it.
    wire: Poller,
    control: DataEnd,
    stalls: StallLog,
    hops: Histogram<u64>,
    rounds: Histogram<u64>,
    measured: Measured,
    measuring_until: Instant,
    hold_log: Option<HoldLog>,
    next_token: u64,
    leaving: Option<Instant>,
    transmit_buffer: Box<[u8]>,
    /// Frames of ours handed to the device so far.
    own_frames: u64,
    /// The frames that this turn may still send, and the time until which it may send.
    turn_frames: u64,
    ease: Ease,
    turn_until: Instant,
    /// The machines have more to send than one turn does.
    has_more: bool,
    /// The control thread has sent more commands than one turn takes.
    has_commands: bool,
    /// Frames that came from the device so far, roughly.
    frames_heard: u64,
    dequeued: Instant,
    behind: behind::Behind,
    /// The turn before had frames of link control too.
    llc_streams: bool,
    published: Published,
    tracer: Tracer,
    garbage: Garbage,
    wills: Wills,
}

/// What others watch.
pub(crate) struct Files {
    pub(crate) published: Published,
    pub(crate) log: Option<TraceFile>,
    pub(crate) wills: Wills,
}

/// Runs until told to stop. `begun` is called once all files are open, before the first turn.
pub(crate) fn run<D: FrameDevice, G: Egress>(
    spec: &NodeSpec,
    device: D,
    gate: G,
    control: DataEnd,
    files: Files,
    begun: impl FnOnce(),
) -> Result<(), Stopped> {
    let mut data = Data::new(spec, device, gate, control, files)?;
    begun();
    let outcome = data.turns();
    if data.diverted {
        // A dying node must not take the host's traffic with it; the kernel would do the same a little later.
        let _ = data.gate.pass();
    }
    outcome
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> Stopped {
    move |error| Stopped::System(what, error)
}

impl<D: FrameDevice, G: Egress> Data<D, G> {
    fn new(spec: &NodeSpec, device: D, gate: G, control: DataEnd, files: Files) -> Result<Self, Stopped> {
        let poller = Poller::new(READY_MAX).map_err(system("epoll"))?;
        let wire = Poller::new(1).map_err(system("epoll"))?;
        if let Some(fd) = device.wait_fd() {
            for waits in [&poller, &wire] {
                waits.add(fd, DEVICE, Trigger::Level).map_err(system("the device cannot be waited on"))?;
            }
        }
        if let Some(fd) = device.llc_fd() {
            for waits in [&poller, &wire] {
                waits.add(fd, LLC, Trigger::Level).map_err(system("the device cannot be waited on"))?;
            }
        }
        poller.add(control.wait_fd(), COMMANDS, Trigger::Edge).map_err(system("epoll"))?;
        let seed = getrandom::u64().map_err(|error| {
            Stopped::System("no randomness to be had", io::Error::other(error.to_string()))
        })?;
        let mac = MacAddr(device.mac());
        let identity = Identity { node_id: node_id(mac), boot_id: boot_id(), mac, name: spec.name.clone() };
        let node = Node::new(now(), identity, spec.key.key(), spec.settings.clone(), seed);
        // One place for each frame that the queue can hold, and some that are on their way.
        let (room, frames) = node.link().queue_room();
        let frames = frames.clamp(64, FRAMES_KEPT_MAX);
        let longest = usize::from(device.mtu()) + ETHERNET_HEADER + VLAN_TAG;
        let buffer = longest.max(BUFFER_OCTETS);
        let histogram = || Histogram::new_with_bounds(1, 10_000_000_000, 3).expect("the bounds are sound");
        Ok(Self {
            node,
            device,
            gate,
            gate_watched: false,
            diverted: false,
            card_wanted: false,
            opening: None,
            pool: Pool::new(frames, room.get(), longest),
            host: HostFrames::default(),
            host_buffer: vec![0; longest + 1].into_boxed_slice(),
            receive_buffer: vec![0; buffer].into_boxed_slice(),
            mtu_changed: None,
            rings: Sources::new(),
            sinks: Vec::with_capacity(256),
            poller,
            wire,
            control,
            stalls: StallLog::new(),
            hops: histogram(),
            rounds: histogram(),
            measured: Measured::default(),
            measuring_until: Instant::ZERO,
            hold_log: HoldLog::open(spec.hold_log.as_deref())
                .map_err(system("the hold log cannot be written"))?,
            next_token: DOORBELL,
            leaving: None,
            transmit_buffer: vec![0; buffer].into_boxed_slice(),
            own_frames: 0,
            turn_frames: u64::MAX,
            ease: Ease::default(),
            turn_until: Instant::FAR,
            has_more: false,
            has_commands: false,
            frames_heard: 0,
            dequeued: Instant::ZERO,
            behind: behind::Behind::default(),
            llc_streams: false,
            published: files.published,
            wills: files.wills,
            garbage: Garbage::new(),
            tracer: Tracer::new(files.log, spec.settings.ether_type, mac.0, boot_id()),
        })
    }

    // ---- from the wire --------------------------------------------------------------------------------

    fn receive(&mut self) -> Result<(), Stopped> {
        let mut buffer = std::mem::take(&mut self.receive_buffer);
        let received = self.receive_into(&mut buffer);
        self.receive_buffer = buffer;
        received
    }

    fn receive_into(&mut self, buffer: &mut [u8]) -> Result<(), Stopped> {
        // Frames without valid content bring only announcements forward; those can wait for the next turn.
        let mut due = None;
        for _ in 0..FRAMES_A_TURN {
            self.frames_heard = self.frames_heard.wrapping_add(1);
            let begin = self.tick();
            let received = match self.device.receive(buffer) {
                Ok(Some(received)) => received,
                Ok(None) => {
                    self.behind.read_all();
                    break;
                }
                // The link will come back; what was lost is seen by the protocol.
                Err(DeviceError::LinkDown) => {
                    self.measured.link_downs += u64::from(self.tracer.link_down(now()));
                    continue;
                }
                Err(DeviceError::Truncated { .. }) => {
                    self.measured.receive_too_long += 1;
                    continue;
                }
                Err(error) => return Err(Stopped::Device(error)),
            };
            let at = (received.stamp == Stamp::Kernel).then_some(received.at);
            if let Some(at) = at {
                self.stalls.on_dequeue(at, received.dequeued);
            }
            self.dequeued = received.dequeued;
            self.behind.read(at, received.dequeued);
            let taken = self.tick();
            let unproven = self.unproven();
            let handled = self.arrived(at, received.dequeued, &buffer[..received.len]);
            if self.unproven() != unproven {
                self.note_unproven(received.dequeued, &buffer[..received.len])?;
                // The frame has changed no state from which a frame to send could follow.
                let due = *due.get_or_insert_with(|| self.node.deadline());
                if !self.has_more && due > received.dequeued {
                    continue;
                }
            }
            if let Some(begin) = begin {
                self.measured.hops_split += 1;
                self.measured.receive_ns += elapsed(Some(begin), taken);
                self.measured.handle_ns += elapsed(taken, handled);
            }
            let sent_before = self.own_frames;
            due = None;
            self.drain_from(received.dequeued)?;
            // Whoever has just answered waits for the answer's answer: asking the empty socket first would
            // delay the next station. If more has come, the level-triggered wait returns at once.
            if self.own_frames != sent_before {
                break;
            }
        }
        Ok(())
    }

    /// Frames of link control that do not come with the others.
    fn receive_llc(&mut self) -> Result<(), Stopped> {
        let mut buffer = std::mem::take(&mut self.receive_buffer);
        let received = self.receive_llc_into(&mut buffer);
        self.receive_buffer = buffer;
        received
    }

    fn receive_llc_into(&mut self, buffer: &mut [u8]) -> Result<(), Stopped> {
        // One that comes alone is answered before the next: a look at the empty queue would only delay
        // whoever waits for it. Of a stream many are taken at once; the level-triggered wait forgets none.
        let frames = if self.llc_streams { FRAMES_A_TURN } else { 1 };
        for nth in 0..frames {
            let len = match self.device.receive_llc(buffer) {
                Ok(Some(len)) => len,
                Ok(None) => break,
                Err(DeviceError::LinkDown) => continue,
                Err(DeviceError::Truncated { .. }) => {
                    self.measured.receive_too_long += 1;
                    continue;
                }
                Err(error) => return Err(Stopped::Device(error)),
            };
            self.arrived(None, now(), &buffer[..len]);
            if nth == 0 {
                // Of many that come together the others are told at the end of the turn.
                self.drain()?;
                self.rings.sockets.wake();
            }
        }
        self.drain().map(|_| ())
    }

    /// A frame: for the machines, for the log, and for the program that it is for. When it was handled.
    fn arrived(&mut self, at: Option<Instant>, dequeued: Instant, octets: &[u8]) -> Option<Instant> {
        let Disposition { verdict, received } =
            self.node.handle(dequeued, Input::Frame { port: PortId(0), at, data: octets });
        let handled = self.tick();
        let fragment = match &received {
            Some(Received::Fragment(fragment)) => Some(fragment),
            _ => None,
        };
        if self.tracer.is_on() && !(verdict.is_invalid() && self.garbage.is_logged_enough(dequeued)) {
            self.tracer.received(at.unwrap_or(dequeued), dequeued, octets, verdict, &self.node, fragment);
        }
        self.take(received, octets);
        handled
    }

    fn take(&mut self, received: Option<Received>, frame: &[u8]) {
        match received {
            Some(Received::Fragment(delivery)) => self.deliver(&delivery, frame),
            Some(Received::Message(message)) => self.rings.sockets.deliver(&message, frame, &self.node),
            None => {}
        }
    }

    /// A moment, while hops are being measured; of few hops only, for reading clocks is part of what it
    /// costs.
    fn tick(&self) -> Option<Instant> {
        (self.measuring_until > Instant::ZERO && self.frames_heard.is_multiple_of(SPLIT_EVERY)).then(now)
    }

    fn deliver(&mut self, delivery: &rota_proto::Delivery, frame: &[u8]) {
        let index = self.sinks.iter().position(|sink| sink.channel == delivery.channel);
        let Some((index, sink)) = index.map(|index| (index, &mut self.sinks[index])) else { return };
        let start = usize::from(delivery.offset);
        let Some(payload) = frame.get(start..start + usize::from(delivery.octets)) else { return };
        let unit = &delivery.descriptor;
        let descriptor = UnitDescriptor {
            number: unit.number,
            fragment: unit.fragment,
            last: unit.last,
            unit_octets: unit.unit_octets,
            offset: unit.fragment_offset,
            schedule_ns: unit.schedule_ns,
            arrived_at: unit.arrived,
            dequeued_at: self.dequeued,
            route: 0,
        };
        let counter = if sink.memory.ring.push(&descriptor, payload) {
            sink.pushed = true;
            ChannelCounter::Fragments
        } else {
            ChannelCounter::FragmentsBad
        };
        sink.memory.board.count(counter, 1);
        sink.memory.board.count(ChannelCounter::Octets, payload.len() as u64);
        self.note_unread(index);
    }

    /// Receivers are woken once a turn, however many frames came.
    fn wake_receivers(&mut self) {
        self.rings.sockets.wake();
        for sink in self.sinks.iter_mut().filter(|sink| sink.pushed) {
            sink.pushed = false;
            sink.memory.board.count(ChannelCounter::Wakes, 1);
            if let Some(tally) = self.node.received(sink.channel) {
                sink.memory.board.set_tally(&on_board(tally));
            }
            sink.memory.board.notify();
        }
    }

    // ---- from programs --------------------------------------------------------------------------------

    /// Offers the machine the oldest unit of each ring whose doorbell rang.
    fn look_at_rings(&mut self, at: Instant, ready: &[u64]) -> Result<(), Stopped> {
        let control = &self.control;
        let waits = self.rings.sockets.look(at, ready, &mut self.node, |note| control.say(note));
        if waits || self.has_more {
            self.drain()?;
        }
        let control = &self.control;
        self.rings.sockets.retry(at, &mut self.node, |note| control.say(note));
        for index in 0..self.rings.sources.len() {
            if ready.contains(&self.rings.sources[index].token) {
                self.offer(at, index);
            }
        }
        Ok(())
    }

    /// Lets the memory of a channel go. Unmapping takes milliseconds, and the token would wait: the control
    /// thread does it.
    fn forget(&mut self, channel: ChannelId) {
        if let Some(at) = self.rings.sources.iter().position(|source| source.channel == channel) {
            let Source { memory, .. } = self.rings.sources.swap_remove(at);
            let _ = self.poller.remove(memory.doorbell.as_fd());
            self.control.say(Note::Remains(Remains::Source(memory)));
        }
        if let Some(at) = self.sinks.iter().position(|sink| sink.channel == channel) {
            let Sink { memory, .. } = self.sinks.swap_remove(at);
            self.control.say(Note::Remains(Remains::Sink(memory)));
        }
    }

    fn commands(&mut self, at: Instant) -> Result<(), Stopped> {
        for _ in 0..COMMANDS_A_TURN {
            let Some(command) = self.control.heard() else {
                self.has_commands = false;
                return Ok(());
            };
            self.command(at, command)?;
            self.drain()?;
        }
        // The wait is edge-triggered: it does not report the remaining commands again.
        self.has_commands = true;
        Ok(())
    }

    fn command(&mut self, at: Instant, command: Command) -> Result<(), Stopped> {
        match command {
            Command::Open { ask, to, service, request } => {
                let result = self.open(at, &to, service, &request);
                self.control.say(Note::Asked { ask, result });
            }
            Command::AttachSource { channel, memory } => self.attach(at, channel, memory),
            Command::Decline { channel, short } => self.node.decline(at, channel, short),
            Command::AttachSink { channel, memory } => {
                // One that has ended meanwhile is not heard of again: nobody would take its memory away.
                if self.node.accept(at, channel) {
                    self.sinks.push(Sink { channel, memory, pushed: false, unread: Unread::default() });
                } else {
                    self.control.say(Note::Remains(Remains::Sink(memory)));
                }
            }
            Command::Listen { ask, mut listener } => {
                let result = self.listen(&mut listener);
                self.control.say(Note::Listening { ask, result });
            }
            Command::ListenAgain { listener } => self.node.listen_again(listener),
            Command::Unlisten { listener } => self.node.unlisten(listener),
            Command::Close { channel } => {
                self.state_units(at, channel);
                self.node.close(at, channel);
            }
            Command::Revoke { channel } => {
                self.state_units(at, channel);
                self.node.revoke(at, channel);
            }
            Command::Abort { channel } => self.abort(at, channel),
            Command::Resize { ask, channel, unit_octets_max } => {
                let result = self.node.resize(at, channel, unit_octets_max);
                self.control.say(Note::Resizing { ask, result });
            }
            Command::AttachSocket { ask, socket, memory } => self.attach_socket(ask, socket, *memory),
            Command::DetachSocket { socket } => {
                self.node.llc_close(at, socket);
                if let Some(remains) = self.rings.sockets.detach(socket, &self.poller) {
                    self.control.say(Note::Remains(remains));
                }
            }
            Command::CancelSocket { ask, socket } => {
                let control = &self.control;
                self.rings.sockets.cancel(at, socket, &mut self.node, |note| control.say(note));
                self.control.say(Note::Done { ask });
            }
            Command::Circulate { until } => {
                self.hops.reset();
                self.rounds.reset();
                self.measured = self.measured.again();
                self.measuring_until = until;
                self.node.keep_awake(at, until);
            }
            Command::Snapshot { ask } => {
                let snapshot = Box::new(self.snapshot());
                self.control.say(Note::Snapshot { ask, snapshot });
            }
            Command::Stop => {
                self.node.leave(at);
                self.leaving = Some(at + LEAVE_WAIT);
            }
        }
        Ok(())
    }

    fn open(
        &mut self,
        at: Instant,
        to: &str,
        service: u16,
        request: &Opening,
    ) -> Result<(ChannelId, Peer), AskError> {
        let link = self.node.link();
        if let Some([one, other]) = doubled(link, to) {
            return Err(AskError::Wrong(rota_proto::OpenError::DoubleName(one, other)));
        }
        if link.name() == to {
            return Err(AskError::Wrong(rota_proto::OpenError::OwnStation(link.mac())));
        }
        let peer = self.station(to).map_err(|known| AskError::Unknown { known })?.mac;
        let (peer, to) = (Peer::at(peer, link), Destination::Station(peer));
        let Opening { unit_octets_max, room_octets, period, periodic, before, probe } = *request;
        let request = OpenRequest { to, service, unit_octets_max, room_octets, period, periodic };
        let opened = match probe {
            true => self.node.probe(at, &request),
            false => self.node.go_on(at, &request, before),
        };
        let channel = opened.map_err(AskError::Wrong)?;
        Ok((channel, peer))
    }

    fn listen(&mut self, listener: &mut Listener) -> Result<(), Vec<String>> {
        if let Some(from) = &mut listener.from {
            let station = self.station(from)?;
            // Who is meant by its number is meant still when another station has that number.
            if station.announce.name() != from {
                *from = station.mac.to_string();
            }
        }
        self.node.listen(listener.clone());
        Ok(())
    }

    /// The other station that somebody means by a name, number or address; else the names that there are.
    fn station(&self, called: &str) -> Result<&Member, Vec<String>> {
        let link = self.node.link();
        let members = link.members();
        meant(members, called, |station| link.is_dead(station))
            .ok_or_else(|| members.iter().map(|member| member.announce.name().to_owned()).collect())
    }

    fn snapshot(&mut self) -> Snapshot {
        self.measured.receive_drops = self.device.counters().receive_drops;
        self.measured.refused = self.control.refusals().read();
        let link = self.node.link();
        let mut members = Vec::with_capacity(link.members().len() + 1);
        if link.station() != 0 {
            let (name, mac) = (link.name().to_owned(), link.mac());
            members.push(MemberCopy { station: link.station(), name, mac, alive: true });
        }
        for member in link.members().iter().filter(|member| member.station != 0) {
            members.push(MemberCopy {
                station: member.station,
                name: member.announce.name().to_owned(),
                mac: member.mac,
                alive: !link.is_dead(member.station),
            });
        }
        members.sort_by_key(|member| member.station);
        Snapshot {
            status: self.node.status(),
            timers: link.timers_in_force(rota_driver::clock::now()),
            members,
            hops: self.hops.clone(),
            rounds: self.rounds.clone(),
            measured: self.measured,
            counters: counters::all(&view(
                &self.node,
                &self.measured,
                self.host_frames(),
                self.own_frames,
                &self.stalls,
            )),
            stalls: self.stalls.recent().copied().collect(),
            llc: self.llc_info(),
            shut_out: self.garbage.shut_out().iter().map(|source| MacAddr(source.mac)).collect(),
            many_strangers: self.garbage.was_closed(now()),
            units: self.node.own_channels().map(|said| (said.channel, said.sending, said.units)).collect(),
        }
    }

    fn llc_info(&self) -> LlcInfo {
        let (llc, link) = (self.node.llc(), self.node.link());
        let members = link.members().iter().filter(|member| member.announce.llc_address != 0);
        let named = members.map(|member| LlcPeer {
            node: member.announce.llc_address,
            station: member.station,
            name: member.announce.name().to_owned(),
            mac: member.mac.to_string(),
        });
        let peers = link.settings().llc.peers.iter().map(|(node, mac)| {
            let mac = mac.to_string();
            LlcPeer { node: *node, station: 0, name: mac.clone(), mac }
        });
        LlcInfo {
            node: llc.address(),
            private: link.settings().llc.private_segment,
            sockets: llc.open_sockets().collect(),
            peers: named.chain(peers).collect(),
        }
    }

    // ---- what the machines want done ------------------------------------------------------------------

    fn drain(&mut self) -> Result<Instant, Stopped> {
        self.drain_from(now())
    }

    /// Does what the machines want done, within the turn's limits. `at` is a moment shortly before: on the
    /// path of the token each look at the clock counts. Returns when it last asked them.
    fn drain_from(&mut self, at: Instant) -> Result<Instant, Stopped> {
        let mut begin = self.tick();
        let mut at = begin.unwrap_or(at);
        loop {
            self.has_more = self.own_frames >= self.turn_frames || at >= self.turn_until;
            if self.has_more {
                return Ok(at);
            }
            let bytes = &mut self.transmit_buffer[..];
            let mut frame = FrameBuf { bytes, payloads: &mut self.rings };
            let Some(output) = self.node.poll(at, &mut frame) else { return Ok(at) };
            let built = self.tick();
            self.perform(at, output)?;
            let done = self.tick();
            if let (Some(begin), Output::Transmit { .. }) = (begin, output) {
                self.measured.build_ns += elapsed(Some(begin), built);
                self.measured.transmit_ns += elapsed(built, done);
            }
            begin = done;
            // A note takes less time than a look at the clock.
            if !matches!(output, Output::Rotation { .. } | Output::Hold { .. }) {
                at = done.unwrap_or_else(now);
            }
        }
    }

    fn perform(&mut self, at: Instant, output: Output) -> Result<(), Stopped> {
        match output {
            Output::Transmit { len, .. } => self.transmit_own(at, usize::from(len))?,
            Output::TransmitHost { tag, .. } => self.transmit_host(at, tag)?,
            Output::DropHost { tag } => self.drop_host(at, tag),
            Output::Gate { order, .. } => self.order_gate(order)?,
            Output::Slot { channel, at, unit } => self.slot(at, channel, unit),
            Output::Event => self.events(),
            Output::Rotation { hops, span } => {
                self.measured.round = (span, hops);
                let _ = self.hops.record(span.as_nanos() / u64::from(hops.max(1)));
                let _ = self.rounds.record(span.as_nanos());
            }
            Output::Hold { generation, accepted, passed } => {
                self.measured.holds += 1;
                if let Some(log) = &self.hold_log {
                    log.note(generation, accepted, passed);
                }
            }
        }
        if self.measuring_until != Instant::ZERO && at > self.measuring_until + Span::from_millis(200) {
            self.measuring_until = Instant::ZERO;
        }
        Ok(())
    }

    fn transmit_own(&mut self, at: Instant, len: usize) -> Result<(), Stopped> {
        self.own_frames += 1;
        let sent = self.device.transmit(&self.transmit_buffer[..len]);
        self.tracer.sent(at, &self.transmit_buffer[..len], matches!(sent, Ok(Transmit::Sent)));
        self.sent(sent)
    }

    fn sent(&mut self, sent: Result<Transmit, DeviceError>) -> Result<(), Stopped> {
        match sent {
            Ok(Transmit::Sent) => Ok(()),
            Err(DeviceError::Gone) => Err(Stopped::Device(DeviceError::Gone)),
            // A frame that could not leave is a lost frame, which the protocol repairs.
            Ok(Transmit::NoRoom) => {
                self.measured.no_room += 1;
                Ok(())
            }
            Err(_) => {
                self.measured.send_failed += 1;
                Ok(())
            }
        }
    }

    fn events(&mut self) {
        while let Some(event) = self.node.next_llc_event() {
            self.rings.sockets.on_event(event);
        }
        let at = now();
        while let Some(event) = self.node.next_event() {
            self.tracer.channel(at, &event, &self.node);
            let peer = match &event {
                ChannelEvent::Incoming { from, .. } => Some(*from),
                ChannelEvent::IncomingOpened { channel, .. } => self.node.peer(*channel),
                _ => None,
            };
            let peer = peer.map(|mac| Peer::at(mac, self.node.link()));
            match &event {
                ChannelEvent::Told { channel, tally } => self.tell_tally(*channel, *tally),
                ChannelEvent::Closed { channel, tally, stated, .. } => {
                    self.trace_untold(at, *channel, stated.unwrap_or_default());
                    self.tell_final_tally(at, *channel, *tally);
                }
                _ => {}
            }
            match &event {
                // The board has the counts: the control thread need not wake for each unit that is left out.
                ChannelEvent::Told { .. } => continue,
                ChannelEvent::Closed { channel, .. } => {
                    self.wake_receivers();
                    self.forget(*channel);
                }
                _ => {}
            }
            self.control.say(Note::Channel { event, peer });
        }
    }
}

/// Two stations that live and have that name, this one among them.
fn doubled(link: &rota_proto::rether::Rether, name: &str) -> Option<[MacAddr; 2]> {
    let lives = |member: &&Member| !link.is_dead(member.station) && member.announce.name() == name;
    let others = link.members().iter().filter(lives).map(|member| member.mac);
    let mut all = (link.name() == name).then(|| link.mac()).into_iter().chain(others);
    Some([all.next()?, all.next()?])
}

/// Whom somebody means: in a ring the dead stay members, and a machine may have come back under another
/// address while its old self is one of them.
fn meant<'a>(members: &'a [Member], called: &str, is_dead: impl Fn(u16) -> bool) -> Option<&'a Member> {
    let named = members.iter().filter(|member| member.is_called(called));
    named.min_by_key(|member| is_dead(member.station))
}

fn view<'a>(
    node: &'a Node,
    measured: &'a Measured,
    host: HostFrames,
    own_frames: u64,
    stalls: &StallLog,
) -> View<'a> {
    let stalls = (stalls.total(), stalls.longest());
    View { link: node.link(), llc: node.llc(), measured, host, own_frames, stalls }
}

fn elapsed(from: Option<Instant>, to: Option<Instant>) -> u64 {
    match (from, to) {
        (Some(from), Some(to)) => to.since(from).as_nanos(),
        _ => 0,
    }
}

/// Unlike between hosts, the same at each boot: the interface's address.
fn node_id(mac: MacAddr) -> u64 {
    mac.0.iter().fold(0, |id, octet| id << 8 | u64::from(*octet))
}

/// The kernel's name of this boot: stations with the same one share a clock.
fn boot_id() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0)
}

#[cfg(test)]
mod tests;
