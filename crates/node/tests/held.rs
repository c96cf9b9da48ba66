//! What it costs the data thread that many acknowledged messages wait for one station.

use rota_contract::NodeId;
use rota_driver::clock::now;
use rota_proto::drive::{self, Zeros};
use rota_proto::{Identity, LlcAddress, LlcRequest, ModeName, Node, Settings};
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::{Key, MacAddr};

fn drain(node: &mut Node, at: Instant) {
    drive::drain(node, at, &mut Zeros, |given, duties| duties.extend(given.duty()));
}

/// A station alone in plain mode, and another one that never answers.
fn station() -> (Node, Instant) {
    let mut at = Instant::from_nanos(1);
    let mac = |k| MacAddr([2, 0, 0, 0, 0, k]);
    let identity = Identity { node_id: NodeId(1), boot_id: 1, mac: mac(1), name: "n1".to_owned() };
    let mut settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
    (settings.llc.enabled, settings.llc.address) = (true, 1);
    settings.llc.peer_macs.push((2, mac(2)));
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
