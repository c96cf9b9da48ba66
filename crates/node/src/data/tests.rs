//! Turns of the data thread over a device that takes everything.

mod budget;
mod circuits;
mod doubles;
mod ease;
mod floods;
mod host;
mod ports;
mod sinks;
mod turns;

use super::commands::{COMMANDS_A_TURN, listen, open};
use super::turn::{FRAMES_OUT_A_TURN, Leaving, Mtu};
use super::*;
use crate::commands::{Command, Note, Opening, Remains, SocketMemory, SourceMemory, Wiring};
use crate::counters;
use crate::gate::NoGate;
use crate::waker::Waker;
use rota_contract::TrafficSpec;
use rota_driver::device::{Backlog, Evidence, ReceivedFrame, Stamp, Transmit};
use rota_driver::poller::Trigger;
use rota_proto::{ChannelEvent, ChannelId, HeardChannel, Listener, Settings, UnitFate};
use rota_shm::control::ControlName;
use rota_shm::layout::TRACE_SNAP_OCTETS;
use rota_shm::{
    ClientSocket, ClientSource, MessageRoute, NodeSocket, NodeSource, SocketShape, SourceShape, TraceReader,
    TraceVerdict, open_socket, open_source,
};
use rota_units::{BitRate, Octets, Span};
use rota_wire::ChannelReport;
use std::os::fd::{AsFd, BorrowedFd};

/// Takes everything, unless it is full, and hears nothing but the frames of a stranger.
#[derive(Default)]
struct Sink {
    full: bool,
    /// So many frames that no key proves wait.
    strange: u32,
}

impl FrameDevice for Sink {
    fn mac(&self) -> [u8; 6] {
        [2; 6]
    }

    fn mtu(&self) -> u16 {
        1_500
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<ReceivedFrame>, DeviceError> {
        let Some(left) = self.strange.checked_sub(1) else { return Ok(None) };
        self.strange = left;
        let at = now();
        buffer[..60].fill(0);
        buffer[..6].fill(0xff);
        buffer[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
        buffer[12..16].copy_from_slice(&[0x88, 0xb5, 0x11, 0x0d]);
        buffer[25] = 1;
        Ok(Some(ReceivedFrame { len: 60, at, stamp: Stamp::Kernel, dequeued: at, broadcast: true }))
    }

    fn transmit(&mut self, _: &[u8]) -> Result<Transmit, DeviceError> {
        Ok(if self.full { Transmit::NoRoom } else { Transmit::Sent })
    }

    fn backlog(&mut self) -> Backlog {
        Backlog::Empty { evidence: Evidence::NoQueue }
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn link_up(&mut self) -> bool {
        true
    }
}

/// Accepts each incoming channel, as if its memory were there. Returns how many there were.
fn accept_incoming<D: FrameDevice, G: crate::gate::Egress>(
    control: &mut crate::commands::ControlEnd,
    data: &mut Data<D, G>,
) -> usize {
    let mut accepted = 0;
    while let Some(note) = control.heard() {
        if let Note::Channel { event: ChannelEvent::Incoming { channel, .. }, .. } = note {
            assert!(data.node.accept(now(), channel) && data.drain().is_ok());
            accepted += 1;
        }
    }
    accepted
}

/// Looks at the card of the first port.
fn look_at_card<D: FrameDevice, G: crate::gate::Egress>(data: &mut Data<D, G>) {
    let way = &mut data.ways[0];
    way.host.look_at_card((PortId(0), now()), &mut way.wire.device, &mut data.node);
}

const SOCKET: u64 = 99;

pub(crate) fn spec(name: &str, settings: Settings) -> NodeSpec {
    NodeSpec {
        interface: "none".into(),
        name: name.into(),
        node_id: crate::KeptNodeId::drawn().expect("randomness"),
        settings,
        key: crate::SegmentKey::lab(),
        control: ControlName::default(),
        guests: None,
        confine: false,
        quota: crate::Quota::default(),
        realtime: false,
        trace_events: 0,
        guardian: None,
        hold_log: None,
        links: None,
        reroute: None,
    }
}

/// A station alone in plain mode, with a program on socket 2.
fn station() -> (Data<Sink, NoGate>, ClientSocket) {
    let (mut data, _control) = alone();
    let program = program(&mut data, 2, SOCKET, 64);
    (data, program)
}

/// A station alone in plain mode, and its control thread's end.
fn alone() -> (Data<Sink, NoGate>, crate::commands::ControlEnd) {
    alone_with(None)
}

/// The same with an event log.
fn alone_with(log: Option<TraceFile>) -> (Data<Sink, NoGate>, crate::commands::ControlEnd) {
    let mut settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
    (settings.llc.enabled, settings.llc.address) = (true, 1);
    let spec = spec("n1", settings);
    let (there, control) = Wiring::pair().expect("two ends");
    let (_, published) = counters::file(&["none"]).expect("memory");
    let files = Files { published, log, wills: Wills::default() };
    let Ok(mut data) = Data::new(&spec, Sink::default(), NoGate, control, files) else { panic!("a station") };
    let begin = now();
    for step in 0..600 {
        data.node.handle_deadline(begin + Span::from_millis(5) * step);
        assert!(data.drain().is_ok());
    }
    assert_eq!(data.node.medium().mode(), rota_proto::ModeName::Plain);
    (data, there)
}

/// A program that has opened a socket.
fn program(data: &mut Data<Sink, NoGate>, socket: u8, token: u64, messages: u16) -> ClientSocket {
    let shape = SocketShape { messages, message_octets_max: 16_384, rx_slots: 16 };
    let mut memory = NodeSocket::create(shape).expect("memory");
    let files = memory.descriptors();
    let files = files.iter().map(|fd| fd.try_clone_to_owned().expect("a copy")).collect();
    let program = open_socket(files).expect("the client's side");
    memory.mapped().expect("sealed");
    assert!(data.waits.all.add(memory.doorbell.as_fd(), token, Trigger::Edge).is_ok());
    data.rings.sockets.attach(socket, token, SocketMemory::new(memory, &data.control.waker(), token, None));
    data.node.llc_open(socket);
    program
}

/// Four units of 100 octets.
const SHORT: SourceShape = SourceShape { buffers: 4, unit_octets_max: 100 };

/// The memory of a channel that sends, and its program's side.
fn source(shape: SourceShape) -> (ClientSource, SourceMemory) {
    let (program, memory, _) = source_of(shape, true);
    (program, memory)
}

/// The same and the file of its ring, which can be written to unless it is sealed. A program has it mapped.
fn source_of(shape: SourceShape, sealed: bool) -> (ClientSource, SourceMemory, std::fs::File) {
    let mut memory = NodeSource::create(shape).expect("memory");
    let files = memory.descriptors();
    let files: Vec<_> = files.iter().map(|fd| fd.try_clone_to_owned().expect("a copy")).collect();
    let file = files[0].try_clone().expect("a copy").into();
    let program = open_source(files).expect("the client's side");
    if sealed {
        memory.mapped().expect("sealed");
    }
    let NodeSource { ring, board, doorbell, .. } = memory;
    let sleeper = Waker::new().expect("an eventfd").sleeper(board.clone(), None);
    (program, SourceMemory { ring, board, sleeper, doorbell, _charge: None }, file)
}

#[test]
fn units_that_were_left_out_are_in_the_log_from_the_first_one_on() {
    let file = TraceFile::create(16, 0, 0x88b5, &["none"]).expect("memory");
    let mut log = TraceReader::open(file.descriptor().try_clone_to_owned().expect("a copy")).expect("a log");
    let (mut data, _control) = alone_with(Some(file));
    let ((mut program, memory), channel) = (source(SHORT), ChannelId(5));
    program.ring.try_write(b"first", now()).expect("room");
    program.ring.leave_out(3);
    program.ring.try_write(b"second", now()).expect("room");
    data.attach(now(), channel, memory);
    data.slot(now(), channel, Some((0, UnitFate::Sent)));
    assert!(data.follow_up());
    let mut into = [0; TRACE_SNAP_OCTETS];
    let told = std::iter::from_fn(|| {
        let (_, record) = log.next(&mut into)?.ok()?;
        Some((record.verdict, record.number, record.extra[0]))
    });
    let told: Vec<_> = told.filter(|(verdict, ..)| *verdict == TraceVerdict::LeftOut).collect();
    assert_eq!(told, [(TraceVerdict::LeftOut, 1, 3)]);
}

/// A program counts the slots that it has missed by their numbers.
#[test]
fn several_units_of_one_slot_are_one_slot() {
    let (mut data, _control) = alone();
    let ((mut program, memory), channel) = (source(SHORT), ChannelId(5));
    for _ in 0..3 {
        program.ring.try_write(b"unit", now()).expect("room");
    }
    let at = now();
    data.attach(at, channel, memory);
    let slots = [(at, 0), (at, 1), (at + Span::from_millis(33), 2)].map(|(at, unit)| {
        data.slot(at, channel, Some((unit, UnitFate::Sent)));
        data.follow_up();
        program.board.slot().map(|slot| slot.number)
    });
    assert_eq!(slots, [1, 1, 2].map(Some));
}

/// Where a channel has just changed, a unit may leave before the one before it: the memory of neither is
/// given back before that one has left.
#[test]
fn units_that_leave_in_another_order_give_back_their_memory_in_theirs() {
    let (mut data, _control) = alone();
    let ((mut program, memory), channel) = (source(SHORT), ChannelId(5));
    (0..4).for_each(|_| _ = program.ring.try_write(b"unit", now()).expect("room"));
    data.attach(now(), channel, memory);
    let source = &mut data.rings.sources[0];
    while let Some(unit) = source.memory.ring.show().expect("sound") {
        let number = source.offered.len() as u64;
        let told = rota_contract::UnitRef { number, octets: unit.octets, schedule_ns: 0, left_out: 0 };
        source.offered.push_back(super::units::Offered { unit, told, has_left: false });
    }
    let mut room = |data: &mut Data<Sink, NoGate>, left: u64| {
        data.slot(now(), channel, Some((left, UnitFate::Sent)));
        (0..4).take_while(|_| program.ring.try_write(b"more", now()).is_ok()).count()
    };
    assert_eq!([1, 0, 3, 2].map(|left| room(&mut data, left)), [0, 2, 0, 2]);
}

/// Any third station with the key turned units of an unknown fate into units that came.
#[test]
fn only_the_receiving_station_says_how_many_units_came() {
    let [own, receiver, third] = [1, 2, 3].map(|last| MacAddr([2, 0, 0, 0, 0, last]));
    let (channel, since) = (ChannelId(5), Instant::from_nanos(1_000));
    let to = |peer| units::Source::new((channel, peer), source(SHORT).1, SOCKET, since);
    let said = |mac, units| {
        let said = ChannelReport { channel: ChannelId(5), units, ..ChannelReport::default() };
        HeardChannel { mac, peer_mac: Some(own), at: since, said }
    };
    let (mut sending, mut before, mut other) = (said(receiver, 8), said(receiver, 7), said(receiver, 6));
    (sending.said.sending, before.at, other.said.channel) = (true, Instant::ZERO, ChannelId(6));
    let others = [said(third, 9), sending, before, other];
    assert_eq!(others.map(|heard| to(Some(receiver)).reported(&heard, own)), [0; 4]);
    let heard = said(receiver, 5);
    let mut source = to(Some(receiver));
    assert_eq!([(); 2].map(|()| source.reported(&heard, own)), [5, 0], "once: a newer word may say less");
    assert_eq!(to(Some(receiver)).reported(&heard, third), 0, "nobody's channel from there");
    assert_eq!(to(None).reported(&heard, own), 0, "it had ended before its memory came");
}

/// It was unmapped by the data thread, which locked the ledger for that.
#[test]
fn the_memory_of_a_socket_that_cannot_be_watched_goes_to_the_control_thread() {
    let (mut data, control) = alone();
    let ledger = crate::ledger::Ledger::new(crate::Quota::default());
    let shape = SocketShape { messages: 16, message_octets_max: 16_384, rx_slots: 16 };
    let memory = NodeSocket::create(shape).expect("memory");
    let charge = ledger.charge(0, 4_096).expect("room");
    // The kernel watches nothing twice.
    data.waits.all.add(memory.doorbell.as_fd(), SOCKET, Trigger::Edge).expect("once");
    data.attach_socket(7, 2, SocketMemory::new(memory, &data.control.waker(), 7, Some(charge)));
    let notes: Vec<Note> = std::iter::from_fn(|| control.heard()).collect();
    let last = &notes[notes.len() - 2..];
    assert!(matches!(last[0], Note::HostileSocket { attached: 7, .. }));
    assert!(matches!(last[1], Note::Remains(Remains::Socket(_))));
    assert_eq!(ledger.used(), 4_096);
    drop(notes);
    assert_eq!(ledger.used(), 0);
}

/// True if the station has nothing to do. A turn that lost its CPU for 200 us leaves its work to the next.
fn sleeps(data: &mut Data<Sink, NoGate>) -> bool {
    (0..100).any(|_| {
        data.begin_turn(now());
        data.look_at_rings(now(), &[]).is_ok() && data.drain().is_ok() && data.due() > Instant::ZERO
    })
}

#[test]
fn what_programs_hand_over_is_sent_in_turns_and_not_all_at_once() {
    let (mut data, mut program) = station();
    let route = MessageRoute { socket: 2, node: 255, ..MessageRoute::default() };
    for _ in 0..64 {
        program.messages.try_write_to(&[7; 16_000], Instant::ZERO, route.pack()).expect("room");
    }
    let before = data.own_frames;
    let mut turns = 0;
    while data.own_frames < before + 64 * 11 {
        let sent = data.own_frames;
        data.begin_turn(now());
        assert!(data.look_at_rings(now(), &[SOCKET]).is_ok() && data.drain().is_ok());
        assert!(data.own_frames - sent <= FRAMES_OUT_A_TURN as u64, "in one go: {}", data.own_frames - sent);
        assert!(data.due() == Instant::ZERO || data.own_frames == before + 64 * 11, "the rest is not left");
        turns += 1;
    }
    assert!(turns >= 10, "{turns}");
    assert!(sleeps(&mut data), "and then it sleeps");
    assert_eq!(program.messages.waiting(), 0);
}
