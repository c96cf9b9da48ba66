//! What it costs the data thread that many acknowledged messages wait for one station.

use rota_driver::clock::now;
use rota_proto::{
    ChannelId, FrameBuf, GateOrder, Identity, Input, LlcAddress, LlcRequest, ModeName, Node, Output,
    Payloads, PortId, Settings,
};
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::{Key, MacAddr};

struct Zeros;

impl Payloads for Zeros {
    fn copy_unit(&mut self, _: ChannelId, _: u64, _: u32, _: &mut [u8]) -> bool {
        false
    }

    fn copy_message(&mut self, _: u8, _: u64, _: u32, into: &mut [u8]) -> bool {
        into.fill(0);
        true
    }
}

fn drain(node: &mut Node, at: Instant) {
    while poll_all(node, at) {
        node.handle(at, Input::CardEmpty { port: PortId(0) });
    }
}

/// Polls until drained. True if the card is empty, which the node is to hear then.
fn poll_all(node: &mut Node, at: Instant) -> bool {
    let (mut bytes, mut is_card_empty) = ([0; 1_600], false);
    let mut frame = FrameBuf { bytes: &mut bytes, payloads: &mut Zeros };
    while let Some(output) = node.poll(at, &mut frame) {
        match output {
            Output::Gate { order: GateOrder::Divert, .. } => is_card_empty = true,
            Output::Event => while node.next_event().is_some() || node.next_llc_event().is_some() {},
            _ => {}
        }
    }
    is_card_empty
}

/// A station alone in plain mode, and another one that never answers.
fn station() -> (Node, Instant) {
    let mut at = Instant::from_nanos(1);
    let mac = |k| MacAddr([2, 0, 0, 0, 0, k]);
    let identity = Identity { node_id: 1, boot_id: 1, mac: mac(1), name: "n1".to_owned() };
    let mut settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
    (settings.llc.enabled, settings.llc.address) = (true, 1);
    settings.llc.peers.push((2, mac(2)));
    let mut node = Node::new(at, identity, &Key::new([1; 32]), settings, 1);
    while node.medium().mode() != ModeName::Plain || at < Instant::from_nanos(5_000_000_000) {
        node.handle_deadline(at);
        drain(&mut node, at);
        at += Span::from_millis(5);
    }
    node.llc_open(2);
    (node, at)
}

/// How long it takes to take so many messages to the silent station and to give them up.
fn take_and_give_up(messages: u64) -> Span {
    let (mut node, at) = station();
    let mut once = |round: u64| {
        let begin = now();
        for number in 0..messages {
            let to = LlcAddress { socket: 2, node: 2 };
            let (number, level) = (round * messages + number, (number % 8) as u8);
            let (octets, until) = (20, Instant::FAR);
            let request = LlcRequest { socket: 2, number, octets, to, level, ack: true, tries: 9, until };
            node.llc_send(at, &request).expect("there is room");
        }
        drain(&mut node, at);
        node.llc_cancel(at, 2);
        let took = now().since(begin);
        drain(&mut node, at);
        took
    };
    (0..20).map(&mut once).min().expect("it was measured")
}

#[test]
fn what_held_messages_cost_grows_as_their_number_and_not_as_its_square() {
    let (few, many) = (take_and_give_up(64), take_and_give_up(1_024));
    println!("{few} for 64 messages, {many} for 1,024");
    assert!(many < few * 16 * 4, "{many} for 16 times as many as took {few}");
}
