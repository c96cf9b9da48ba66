//! A program's ring, the sockets and a machine without a wire.

use super::*;
use crate::commands::SocketMemory;
use rota_proto::{FrameBuf, Identity, Output, Payloads, PortId, Settings};
use rota_shm::{ClientSocket, NodeSocket, SocketShape, open_socket};
use rota_units::{BitRate, Octets, Span};
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

impl Station {
    /// Alone in plain mode, with a program on socket 2.
    fn new() -> Self {
        let identity = Identity { node_id: 1, boot_id: 1, mac: MacAddr([2; 6]), name: "n1".to_owned() };
        let mut settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
        (settings.llc.enabled, settings.llc.address) = (true, 1);
        settings.llc.peers.push((2, MacAddr([4; 6])));
        let at = Instant::from_nanos(1);
        let node = Node::new(at, identity, &Key::new([1; 32]), settings, 1);
        let shape = SocketShape { messages: 64, message_octets_max: 1_000, rx_slots: 16 };
        let mut memory = NodeSocket::create(shape).expect("memory");
        let files = memory.descriptors();
        let files = files.iter().map(|fd| fd.try_clone_to_owned().expect("a copy")).collect();
        let program = open_socket(files).expect("the client's side");
        memory.mapped().expect("sealed");
        let mut sockets = Sockets::new();
        let waker = crate::waker::Waker::new().expect("an eventfd");
        sockets.attach(2, 99, SocketMemory::new(memory, &waker, 1, None));
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
