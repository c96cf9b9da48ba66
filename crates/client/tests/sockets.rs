//! Sockets on reserved channels against a node without a network.

mod fake_node;

use fake_node::{Behaviour, FakeNode, ms};
use rota::circuit::{CircuitError, CircuitReceiver};
use rota::llc::{
    Address, Llc, LlcError, MessageOutcome, OUTCOMES_MAX, ReceivedMessage, Socket, TransmitOptions,
    reserved_service,
};
use rota::{Node, OpenRequest, SendError, SocketError, Span, now};
use rota_proto::circuit::{CIRCUIT_HEADER_OCTETS, CircuitHeader, CircuitVerb};
use std::os::fd::AsFd;

/// The twins' node addresses.
const TWINS: [u8; 2] = [5, 6];
const PERIOD: Span = Span::from_millis(33);
const PATIENCE: Span = Span::from_millis(5_000);
/// A call that never waits takes less, also on a busy machine, than an answer that does not come.
const AT_ONCE: Span = Span::from_millis(1_000);

fn socket(fake: &FakeNode, number: u8) -> Socket {
    Llc::connect(&fake.name, 1).unwrap().open(number).unwrap()
}

/// Two sockets of one fake node, which loops the channel of the one back to the other.
fn pair(fake: &FakeNode, twin: u8, octets_max: u32) -> (Socket, Socket, Address) {
    let (mut sender, mut receiver) = (socket(fake, 18), socket(fake, 24));
    receiver.listen_reserved().unwrap();
    let to = Address { socket: 24, node: twin };
    sender.reserve(to, octets_max, PERIOD).unwrap();
    (sender, receiver, to)
}

fn send(socket: &mut Socket, to: Address, message: &[u8]) -> Result<u64, LlcError> {
    socket.transmit(to, message, &TransmitOptions::default())
}

/// The same socket at the other twin, with a long period.
fn reserve_another(sender: &mut Socket, to: Address) -> Address {
    let other = Address { node: TWINS[1], ..to };
    // A listener takes one channel; the door has another soon.
    let until = now() + PATIENCE;
    while let Err(error) = sender.reserve(other, 100, Span::from_millis(3_000)) {
        assert!(now() < until, "{error}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    other
}

fn receive(socket: &mut Socket, room: &mut [u8]) -> ReceivedMessage {
    let until = now() + PATIENCE;
    loop {
        match socket.receive(room).unwrap() {
            Some(received) => return received,
            None => assert!(socket.wait(until) || now() < until, "nothing came"),
        }
    }
}

fn is_readable(socket: &Socket, millis: u16) -> bool {
    use nix::poll::{PollFd, PollFlags, poll};
    poll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], millis).unwrap() > 0
}

#[test]
fn stations_of_one_name_are_told_apart() {
    for twin in TWINS {
        let fake = FakeNode::start(Behaviour::default());
        let (mut sender, mut receiver, to) = pair(&fake, twin, 100);
        send(&mut sender, to, b"hello").unwrap();
        let received = receive(&mut receiver, &mut [0; 100]);
        assert_eq!(received.from, Address { socket: 18, node: twin });
    }
}

#[test]
fn a_receive_waits_for_no_answer_of_the_node_when_a_channel_comes() {
    let fake = FakeNode::start(Behaviour::default());
    let (mut sender, mut receiver) = (socket(&fake, 18), socket(&fake, 24));
    receiver.listen_reserved().unwrap();
    assert!(receiver.receive(&mut [0; 8]).unwrap().is_none());
    let to = Address { socket: 24, node: TWINS[0] };
    sender.reserve(to, 100, PERIOD).unwrap();
    fake.behave(Behaviour { tells_status: false, ..Behaviour::default() });
    send(&mut sender, to, b"hello").unwrap();
    for _ in 0..100 {
        let begin = now();
        let _ = receiver.receive(&mut [0; 8]).unwrap();
        assert!(now().since(begin) < AT_ONCE);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

#[test]
fn a_poll_hears_of_channels_and_their_messages_until_all_are_taken() {
    let fake = FakeNode::start(Behaviour::default());
    let (mut sender, mut receiver, to) = pair(&fake, TWINS[0], 3_000);
    let mut room = vec![0; 4_000];
    for round in 0..20_u8 {
        let message = vec![round; 1 + usize::from(round) * 150];
        send(&mut sender, to, &message).unwrap();
        let received = loop {
            assert!(is_readable(&receiver, 5_000), "round {round}");
            if let Some(received) = receiver.receive(&mut room).unwrap() {
                break received;
            }
        };
        assert!(received.reserved && room[..received.octets] == message, "round {round}");
        while receiver.receive(&mut room).unwrap().is_some() {}
        assert!(receiver.completion().is_none() && !is_readable(&receiver, 0), "round {round}");
        // An outcome is to be heard of as well, and taken.
        assert!(matches!(sender.completion(), Some((_, MessageOutcome::Sent))));
    }
}

#[test]
fn outcomes_that_nobody_asks_for_do_not_grow_without_end() {
    let fake = FakeNode::start(Behaviour::default());
    let (mut sender, _receiver, to) = pair(&fake, TWINS[0], 100);
    let sent = OUTCOMES_MAX as u64 + 20;
    let mut last = 0;
    for _ in 0..sent {
        last = loop {
            match send(&mut sender, to, b"x") {
                Ok(number) => break number,
                Err(LlcError::Busy(_)) => assert!(sender.wait(now() + PATIENCE)),
                Err(other) => panic!("{other}"),
            }
        };
    }
    let told: Vec<u64> = std::iter::from_fn(|| sender.completion()).map(|(number, _)| number).collect();
    // The newest are kept.
    assert_eq!((told.len(), told.last()), (OUTCOMES_MAX, Some(&last)));
}

#[test]
fn who_was_told_busy_is_woken_when_a_reserved_channel_has_room() {
    let fake = FakeNode::start(Behaviour { drains: false, ..Behaviour::default() });
    let (mut sender, _receiver, to) = pair(&fake, TWINS[0], 100);
    let fill = |sender: &mut Socket| while send(sender, to, b"x").is_ok() {};
    fill(&mut sender);
    assert!(matches!(send(&mut sender, to, b"x"), Err(LlcError::Busy(4))));
    while sender.completion().is_some() {}
    assert!(!sender.wait(now() + ms(50)), "there is no room yet");
    fake.behave(Behaviour::default());
    assert!(sender.wait(now() + PATIENCE));
    send(&mut sender, to, b"x").unwrap();
    // The same for who polls.
    fake.behave(Behaviour { drains: false, ..Behaviour::default() });
    fill(&mut sender);
    while sender.completion().is_some() {}
    assert!(!is_readable(&sender, 0));
    fake.behave(Behaviour::default());
    assert!(is_readable(&sender, 5_000), "a period later");
    send(&mut sender, to, b"x").unwrap();
}

#[test]
fn a_channel_that_changes_again_and_again_lives_on_and_says_what_it_carries() {
    let fake = FakeNode::start(Behaviour::default());
    let (mut sender, mut receiver, to) = pair(&fake, TWINS[0], 400);
    let mut node = Node::connect(&fake.name).unwrap();
    let mut room = [0; 400];
    // More news than a connection has room for.
    for number in 0..3_000_u32 {
        node.modify_channel(rota::ChannelId(1), 102 + number % 300).unwrap();
        if number % 100 == 0 {
            // Too large for what its contract says: it looks for news.
            let told = send(&mut sender, to, &[0; 500]);
            let carries = number % 300 + 100;
            assert!(
                matches!(told, Err(LlcError::LargerThanReserved { octets_max, .. }) if octets_max == carries),
                "{told:?}, {carries}"
            );
        }
        assert!(receiver.receive(&mut room).unwrap().is_none());
    }
    send(&mut sender, to, b"still there").unwrap();
    assert_eq!(receive(&mut receiver, &mut room).octets, 11);
}

/// The fake node took a program that reads late for an error, and its panic, met by a second one, aborted all
/// tests of the program: the door reads what comes for its channels, and nothing while it asks for listeners.
#[test]
fn a_channel_that_changes_while_its_door_reads_nothing_lives_on() {
    let fake = FakeNode::start(Behaviour::default());
    let mut receiver = socket(&fake, 24);
    receiver.listen_reserved().unwrap();
    fake.behave(Behaviour { hears_listeners: false, ..Behaviour::default() });
    let mut node = Node::connect(&fake.name).unwrap();
    let request = OpenRequest::new("n1", reserved_service(24), 402, PERIOD);
    let mut channel = Node::connect(&fake.name).unwrap().open(&request).unwrap();
    for number in 0..400_u32 {
        node.modify_channel(channel.id(), 102 + number % 300).unwrap();
        if number % 50 == 0 {
            let told = channel.try_send(&[0; 500], now());
            assert!(matches!(told, Err(SendError::TooLong { .. })), "its sender reads");
        }
    }
    channel.try_send(&[0; 102], now()).unwrap();
}

#[test]
fn a_socket_says_that_its_node_is_gone_once_nothing_is_left_and_closes_at_once() {
    let fake = FakeNode::start(Behaviour::default());
    let (mut sender, mut receiver, to) = pair(&fake, TWINS[0], 100);
    send(&mut sender, to, b"last").unwrap();
    let mut room = [0; 100];
    assert_eq!(receive(&mut receiver, &mut room).octets, 4);
    drop(fake);
    for socket in [&mut sender, &mut receiver] {
        // Only after silence it asks whether the node lives.
        let _ = socket.receive(&mut room);
        let told = socket.receive(&mut room);
        let gone = LlcError::Node(SocketError::Gone.into()).to_string();
        assert_eq!(told.unwrap_err().to_string(), gone);
    }
    let begin = now();
    drop((sender, receiver));
    assert!(now().since(begin) < AT_ONCE);
}

/// It asked five times a second, for as long as the socket was open.
#[test]
fn a_node_that_has_no_room_for_listeners_is_asked_less_and_less_and_heard_when_it_has() {
    let fake = FakeNode::start(Behaviour::default());
    let (mut sender, mut receiver) = (socket(&fake, 18), socket(&fake, 24));
    receiver.listen_reserved().unwrap();
    let at_first = fake.listens();
    fake.behave(Behaviour { lets_listen: false, ..Behaviour::default() });
    let to = Address { socket: 24, node: TWINS[0] };
    sender.reserve(to, 100, PERIOD).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(3_600));
    // At once, and after 0.2, 0.6, 1.4 and 3 seconds.
    let asked = fake.listens() - at_first;
    assert!((2..=5).contains(&asked), "{asked}");
    fake.behave(Behaviour::default());
    let until = now() + Span::from_millis(2_000) + AT_ONCE;
    while fake.listens() == at_first + asked {
        assert!(now() < until, "it was never asked again");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    reserve_another(&mut sender, to);
}

/// Each took five seconds, and more where the door waited for an answer as well.
#[test]
fn sockets_close_within_a_second_together_when_their_node_stands_still() {
    let fake = FakeNode::start(Behaviour::default());
    let llc = Llc::connect(&fake.name, 3).unwrap();
    // Numbers that no other test here has, so that its threads are told apart.
    let numbers = [34, 36, 38];
    let mut sockets: Vec<Socket> = numbers.map(|number| llc.open(number).unwrap()).into();
    sockets.iter_mut().for_each(|socket| socket.listen_reserved().unwrap());
    // The first one's door asks, when a channel comes, who sends.
    fake.behave(Behaviour { tells_status: false, ..Behaviour::default() });
    let node = Node::connect(&fake.name).unwrap();
    let request = OpenRequest::new("n1", reserved_service(34), 102, PERIOD);
    let channel = node.open(&request).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    fake.behave(Behaviour { stands_still: true, ..Behaviour::default() });
    let begin = now();
    drop(sockets);
    let took = now().since(begin);
    assert!(took < Span::from_millis(1_000) + AT_ONCE, "{took}");
    // All that the thread of a door still had is let go; the node goes on, and the sockets can be opened
    // again.
    fake.behave(Behaviour::default());
    let until = now() + PATIENCE + AT_ONCE;
    while numbers.iter().any(|number| has_door(*number)) {
        assert!(now() < until, "a door stays");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    llc.open(34).unwrap().listen_reserved().unwrap();
    drop(channel);
}

/// Whether a thread of this program takes channels for that socket.
fn has_door(number: u8) -> bool {
    let wanted = format!("rota-door-{:x}", reserved_service(number));
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    tasks.filter_map(name).any(|name| name.trim_end() == wanted)
}

#[test]
fn closing_waits_five_seconds_for_all_channels_together() {
    let fake = FakeNode::start(Behaviour::default());
    let (mut sender, receiver, to) = pair(&fake, TWINS[0], 100);
    let other = reserve_another(&mut sender, to);
    fake.behave(Behaviour { drains: false, ..Behaviour::default() });
    for to in [to, other] {
        while send(&mut sender, to, b"x").is_ok() {}
    }
    let begin = now();
    drop(sender);
    let took = now().since(begin);
    assert!(took < Span::from_millis(5_000) + AT_ONCE, "{took}");
    drop(receiver);
}

#[test]
fn a_channel_whose_receiver_has_died_costs_the_others_no_message_when_their_socket_closes() {
    let fake = FakeNode::start(Behaviour::default());
    let (mut sender, mut receiver, to) = pair(&fake, TWINS[0], 100);
    let other = reserve_another(&mut sender, to);
    // The first has nothing to send, but its end is confirmed by nobody; the other still has messages.
    fake.behave(Behaviour { drains: false, unconfirmed: rota::ChannelId(1), ..Behaviour::default() });
    send(&mut sender, other, b"one").unwrap();
    send(&mut sender, other, b"two").unwrap();
    let begin = now();
    let closes = std::thread::spawn(move || drop(sender));
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    fake.behave(Behaviour { unconfirmed: rota::ChannelId(1), ..Behaviour::default() });
    for message in [b"one", b"two"] {
        let mut room = [0; 3];
        assert_eq!(receive(&mut receiver, &mut room).from.node, TWINS[1]);
        assert_eq!(&room, message);
    }
    closes.join().unwrap();
    let took = now().since(begin);
    assert!(took < Span::from_millis(2_500) + AT_ONCE, "{took}");
}

#[test]
fn a_channel_that_came_while_the_program_asked_for_outcomes_is_heard_of() {
    let fake = FakeNode::start(Behaviour::default());
    let (mut sender, mut receiver) = (socket(&fake, 18), socket(&fake, 24));
    receiver.listen_reserved().unwrap();
    assert!(!is_readable(&receiver, 0));
    let to = Address { socket: 24, node: TWINS[0] };
    sender.reserve(to, 100, PERIOD).unwrap();
    while is_readable(&receiver, 200) {
        assert!(receiver.completion().is_none());
    }
    send(&mut sender, to, b"hello").unwrap();
    assert!(is_readable(&receiver, 5_000));
}

#[test]
fn a_channel_that_always_has_a_message_keeps_no_later_one_out() {
    let fake = FakeNode::start(Behaviour::default());
    let (mut sender, mut receiver, to) = pair(&fake, TWINS[0], 100);
    send(&mut sender, to, b"x").unwrap();
    receive(&mut receiver, &mut [0; 8]);
    let fill = |sender: &mut Socket| {
        while send(sender, to, b"x").is_ok() {}
        std::thread::sleep(std::time::Duration::from_millis(2));
    };
    (0..4).for_each(|_| fill(&mut sender));
    let other = reserve_another(&mut sender, to);
    send(&mut sender, other, b"y").unwrap();
    let until = now() + PATIENCE;
    while receive(&mut receiver, &mut [0; 8]).from.node != other.node {
        assert!(now() < until, "it never had its turn");
        fill(&mut sender);
    }
}

#[test]
fn room_is_heard_of_again_by_who_asked_for_messages_first_and_no_more_by_who_has_sent() {
    let fake = FakeNode::start(Behaviour { drains: false, ..Behaviour::default() });
    let (mut sender, _receiver, to) = pair(&fake, TWINS[0], 100);
    assert!(!is_readable(&sender, 0));
    while send(&mut sender, to, b"x").is_ok() {}
    fake.behave(Behaviour::default());
    let calm = |sender: &mut Socket| while sender.completion().is_some() {};
    calm(&mut sender);
    for round in 0..3 {
        assert!(is_readable(&sender, 5_000), "round {round}");
        assert!(sender.receive(&mut [0; 8]).unwrap().is_none());
    }
    send(&mut sender, to, b"x").unwrap();
    calm(&mut sender);
    // A bell that was armed before may still ring once.
    while is_readable(&sender, 40) {
        calm(&mut sender);
        assert!(sender.receive(&mut [0; 8]).unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(40));
        calm(&mut sender);
        assert!(!is_readable(&sender, 100), "nobody waits for room");
    }
}

/// A confirmation can be lost again and again. The receiver stays until its sender asks no more.
#[test]
fn a_receiver_that_ends_answers_as_long_as_its_sender_asks() {
    let fake = FakeNode::start(Behaviour::default());
    let (mut sender, mut receiver, to) = pair(&fake, TWINS[0], 100);
    sender.listen_reserved().unwrap();
    receiver.reserve(Address { socket: 18, ..to }, 100, PERIOD).unwrap();
    let mut circuit = CircuitReceiver::new(receiver, None, 0, None).unwrap();
    let asks = |sender: &mut Socket, verb, epoch| {
        let mut packet = [0; CIRCUIT_HEADER_OCTETS];
        CircuitHeader { verb, serial: 1, sender: 7, epoch, number: 0 }.emit(&mut packet);
        send(sender, to, &packet).unwrap();
    };
    let answer = |sender: &mut Socket| {
        let mut room = [0; 100];
        let received = receive(sender, &mut room);
        CircuitHeader::parse(&room[..received.octets]).unwrap().0
    };
    asks(&mut sender, CircuitVerb::Open, 0);
    assert!(matches!(circuit.receive(&mut Vec::new(), ms(200)), Err(CircuitError::TimedOut)));
    let epoch = answer(&mut sender).epoch;
    asks(&mut sender, CircuitVerb::Data, epoch);
    assert_eq!(circuit.receive(&mut Vec::new(), PATIENCE).unwrap().number, 0);
    let end = std::thread::spawn(move || circuit.finish(ms(1_000)));
    assert_eq!(answer(&mut sender).verb, CircuitVerb::Ack);
    let until = now() + ms(2_000);
    while now() < until {
        asks(&mut sender, CircuitVerb::Data, epoch);
        assert!(!end.is_finished(), "the sender asks");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    end.join().unwrap().unwrap();
}
