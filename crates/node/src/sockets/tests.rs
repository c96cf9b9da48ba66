//! A program's ring, the sockets and a machine without a wire.

use super::*;
use crate::commands::SocketMemory;
use rota_contract::NodeId;
use rota_proto::{Delivered, FrameBuf, Identity, Input, Output, Payloads, PortId, Settings};
use rota_shm::{ClientSocket, NodeSocket, SocketShape, open_socket};
use rota_units::{BitRate, Octets, Span};
use rota_wire::llc::{
    Control, FRAGMENT_OCTETS, Fragment, LLC_INFORMATION, LlcHeader, SAP_SNAP, emit_llc, fragment_payload,
};
use rota_wire::{Key, MacAddr};

impl Payloads for Sockets {
    fn copy_unit(&mut self, _: rota_proto::ChannelId, _: u64, _: u32, _: &mut [u8]) -> bool {
        false
    }

    fn copy_message(&mut self, socket: u8, number: u64, offset: u32, into: &mut [u8]) -> bool {
        self.copy(socket, number, offset, into)
    }
}

struct Station {
    node: Node,
    at: Instant,
    sockets: Sockets,
    program: ClientSocket,
    sent: u64,
}

/// Opens socket 2, with room for 16 parts of received messages.
fn program(sockets: &mut Sockets) -> ClientSocket {
    let shape = SocketShape { messages: 64, message_octets_max: 1_000, rx_slots: 16 };
    let mut memory = NodeSocket::create(shape).expect("memory");
    let files = memory.descriptors();
    let files = files.iter().map(|fd| fd.try_clone_to_owned().expect("a copy")).collect();
    let program = open_socket(files).expect("the client's side");
    memory.mapped().expect("sealed");
    let waker = crate::waker::Waker::new().expect("an eventfd");
    sockets.attach(2, 99, SocketMemory::new(memory, &waker, 1, None));
    program
}

impl Station {
    /// Alone in plain mode, with a program on socket 2.
    fn new() -> Self {
        let identity =
            Identity { node_id: NodeId(1), boot_id: 1, mac: MacAddr([2; 6]), name: "n1".to_owned() };
        let mut settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
        (settings.llc.enabled, settings.llc.address) = (true, 1);
        settings.llc.peer_macs.push((2, MacAddr([4; 6])));
        let at = Instant::from_nanos(1);
        let node = Node::new(at, identity, &Key::new([1; 32]), settings, 1);
        let mut sockets = Sockets::new();
        let program = program(&mut sockets);
        let mut station = Self { node, at, sockets, program, sent: 0 };
        while station.at < Instant::from_nanos(5_000_000_000) {
            station.node.handle_deadline(station.at);
            station.drain();
            station.at += Span::from_millis(5);
        }
        (2..=4).step_by(2).for_each(|socket| station.node.llc_open(socket));
        station.sent = 0;
        station
    }

    fn drain(&mut self) {
        let mut bytes = [0; 1_600];
        loop {
            let mut frame = FrameBuf { bytes: &mut bytes, payloads: &mut self.sockets };
            match self.node.poll(self.at, &mut frame) {
                None => return,
                Some(Output::Transmit { len, port: PortId(0) }) => {
                    self.sent += u64::from(rota_wire::llc::is_llc(&bytes[..usize::from(len)]));
                }
                Some(Output::Event) => {
                    while let Some(event) = self.node.next_llc_event() {
                        self.sockets.on_event(event);
                    }
                    while self.node.next_event().is_some() {}
                }
                Some(_) => {}
            }
        }
    }
}

impl Station {
    /// A frame has come.
    fn hear(&mut self, frame: &[u8]) {
        let input = Input::Frame { port: PortId(0), at: None, data: frame };
        if let Some(Delivered::Message(message)) = self.node.handle(self.at, input).received {
            self.sockets.deliver(rota_proto::PortId(0), &message, frame);
        }
        self.drain();
    }

    /// Parts of a message of the longest kind, from this sender; each octet of it is its number.
    fn hear_parts(&mut self, from: u8, message: u16, parts: std::ops::Range<u8>) {
        parts.for_each(|index| self.hear(&fragment(from, message, LONGEST, index)));
    }

    fn hear_short(&mut self, message: u8) {
        let mut frame = [0; 60];
        frame[LLC_INFORMATION..][..10].fill(message);
        let header = LlcHeader { dsap: 2, ssap: 4, response: false, control: Control::Ui };
        emit_llc(&mut frame, MacAddr([2; 6]), MacAddr([8; 6]), &header, 10);
        self.hear(&frame);
    }

    /// The next message that the program reads: its number, its length, and how many were missed before it.
    fn read(&mut self) -> Option<(u8, usize, u64)> {
        let mut into = [0; 17_000];
        let next = self.program.received.next_message(&mut into)?;
        assert!(into[..next.octets].iter().all(|octet| *octet == into[0]), "octets of two messages");
        Some((into[0], next.octets, next.lost_before))
    }

    fn wait(&mut self, span: Span) {
        self.at += span;
        self.node.handle_deadline(self.at);
        self.drain();
    }
}

const LONGEST: u16 = 16_384;

fn fragment(from: u8, message: u16, total: u16, index: u8) -> Vec<u8> {
    let size = fragment_payload(1_500);
    let octets = (total - u16::from(index) * size).min(size);
    let last = u16::from(index) * size + octets == total;
    let of = Fragment { dsap: 2, ssap: 4, level: 3, index, last, message, total, size };
    let mut frame = vec![message as u8; 1_514];
    of.emit(&mut frame[LLC_INFORMATION..]);
    let header = LlcHeader { dsap: SAP_SNAP, ssap: SAP_SNAP, response: false, control: Control::Ui };
    let information = FRAGMENT_OCTETS + usize::from(octets);
    let len = emit_llc(&mut frame, MacAddr([2; 6]), MacAddr([from; 6]), &header, information);
    frame.truncate(len);
    frame
}

/// Each such event took a cell of the receiver's ring for ever, and in the end its socket was deaf.
#[test]
fn a_message_to_this_station_that_was_taken_back_takes_no_room() {
    let mut station = Station::new();
    let from = LlcAddress { socket: 2, node: 1 };
    for number in 70..90 {
        station.sockets.on_event(LlcEvent::Local { from, number, octets: 10, to: 2, level: 0 });
    }
    station.hear_short(5);
    assert!(station.read().is_some());
}

#[test]
fn the_longest_message_is_told_when_its_last_part_has_come_and_not_before() {
    let mut station = Station::new();
    station.hear_parts(8, 5, 0..11);
    assert!(station.sockets.all.iter().all(|socket| !socket.changed), "nobody is woken for a part");
    assert_eq!(station.read(), None);
    station.hear_parts(8, 5, 11..12);
    assert!(station.sockets.all[0].changed && station.sockets.all[0].came);
    assert_eq!(station.read(), Some((5, 16_384, 0)));
}

#[test]
fn fragments_of_two_senders_go_each_to_its_message() {
    let mut station = Station::new();
    for index in [4, 0, 2, 1, 3] {
        for (from, message) in [(8, 5), (10, 6)] {
            station.hear(&fragment(from, message, 7_000, index));
        }
    }
    assert_eq!([station.read(), station.read()], [Some((5, 7_000, 0)), Some((6, 7_000, 0))]);
}

#[test]
fn a_ring_that_is_full_amid_a_message_overwrites_what_is_whole_and_unread() {
    let mut station = Station::new();
    station.hear_parts(8, 5, 0..6);
    (20..30).for_each(|message| station.hear_short(message));
    // Another long one has no room beside it. It takes none from the one that has begun, nor from the whole
    // ones, whose cells would not suffice.
    station.hear_parts(10, 6, 0..12);
    station.hear_parts(8, 5, 6..12);
    assert_eq!(station.read(), Some((26, 10, 6)));
    (27..30).for_each(|message| assert_eq!(station.read(), Some((message, 10, 0))));
    assert_eq!(station.read(), Some((5, 16_384, 0)));
    assert_eq!(station.read(), None);
    station.hear_parts(10, 7, 0..12);
    assert_eq!(station.read(), Some((7, 16_384, 0)));
}

#[test]
fn the_room_of_a_message_that_is_never_whole_is_used_again() {
    let mut station = Station::new();
    for round in 0..40 {
        station.hear_parts(8, 100 + round, 0..3);
        station.wait(Span::from_millis(2_000));
        station.hear_parts(10, round, 0..12);
        assert_eq!(station.read(), Some((round as u8, 16_384, 0)));
        (0..16).for_each(|message| station.hear_short(message));
        (0..16).for_each(|message| assert_eq!(station.read(), Some((message, 10, 0)), "all cells are there"));
    }
}

#[test]
fn a_program_that_opens_a_socket_gets_nothing_of_what_had_begun_before() {
    let mut station = Station::new();
    station.hear_parts(8, 5, 0..6);
    station.node.llc_close(station.at, 2);
    assert!(station.sockets.detach(2, |_| ()).is_some());
    station.hear_parts(8, 5, 6..7);
    station.program = program(&mut station.sockets);
    station.node.llc_open(2);
    station.hear_parts(8, 5, 7..12);
    assert_eq!(station.read(), None);
    station.wait(Span::from_millis(2_000));
    station.hear_parts(8, 6, 0..12);
    assert_eq!(station.read(), Some((6, 16_384, 0)));
}

#[test]
fn a_message_to_oneself_goes_from_ring_to_ring() {
    let mut station = Station::new();
    let route = MessageRoute { socket: 2, node: 1, ..MessageRoute::default() };
    for octets in [1, 1_000] {
        let message = vec![9; octets];
        station.program.messages.try_write_to(&message, Instant::ZERO, route.pack()).expect("room");
        station.sockets.look(station.at, &[99], &mut station.node, |_: Note| panic!("nothing hostile"));
        station.drain();
        assert_eq!(station.read(), Some((9, octets, 0)));
    }
}

#[test]
fn a_cancel_takes_also_what_nobody_has_looked_at() {
    let mut station = Station::new();
    // Another program has taken all the room of the machine, with what waits for a silent station.
    let to = LlcAddress { socket: 2, node: 2 };
    let (until, level, octets) = (Instant::FAR, 0, 10);
    for number in 0.. {
        let request = LlcRequest { socket: 4, number, octets, to, level, ack: true, tries: 9, until };
        if station.node.llc_send(station.at, &request).is_err() {
            break;
        }
    }
    let route = MessageRoute { socket: 2, node: 2, ..MessageRoute::default() };
    for _ in 0..40 {
        station.program.messages.try_write_to(b"no more", Instant::ZERO, route.pack()).expect("room");
    }
    let quiet = |_: Note| panic!("nothing hostile happens here");
    station.sockets.look(station.at, &[99], &mut station.node, quiet);
    station.sockets.cancel(station.at, 2, &mut station.node, quiet);
    // Now there is room again.
    station.node.llc_cancel(station.at, 4);
    station.drain();
    station.sent = 0;
    station.sockets.look(station.at, &[99], &mut station.node, quiet);
    station.sockets.retry(station.at, &mut station.node, quiet);
    station.drain();
    assert_eq!(station.sent, 0, "what was cancelled is not sent");
    assert_eq!(station.program.messages.waiting(), 0, "and its room is the program's again");
    station.program.messages.try_write_to(b"the next", Instant::ZERO, route.pack()).expect("room");
    station.sockets.look(station.at, &[99], &mut station.node, quiet);
    station.drain();
    assert_eq!(station.sent, 1, "the socket goes on");
}
