//! The client against a node without a network: real sockets, real memory files, no privileges.

mod fake_node;

use fake_node::{
    Behaviour, FakeNode, NEVER_OPENED, ROOM_OCTETS, SILENT, UNDECIDED, ms, schedule, unit_octets,
};
use rota::{
    AcceptError, ChannelId, CloseCause, ControlName, Node, NodeError, OpenError, OpenRequest, Overdue,
    Received, RecvChannel, RecvError, SendChannel, SendError, SocketError, Span, Tally, Unit, WaitError,
};

const SERVICE: u16 = 7;

fn live(unit_octets_max: u32) -> OpenRequest {
    OpenRequest::new("n1", SERVICE, unit_octets_max, Span::from_nanos(33_333_333))
}

/// Of a program that has no clock to follow.
fn request(unit_octets_max: u32) -> OpenRequest {
    OpenRequest { overdue: Overdue::Keep, ..live(unit_octets_max) }
}

/// A node, a channel through it, and both its ends.
fn pair(behaviour: Behaviour, request: &OpenRequest) -> (FakeNode, Node, SendChannel, RecvChannel) {
    let fake = FakeNode::start(behaviour);
    let node = Node::connect(&fake.name).unwrap();
    let mut listener = node.listen(SERVICE, None, request.buffers.max(4)).unwrap();
    let sender = node.open(request).unwrap();
    let receiver = listener.accept(ms(5_000)).unwrap();
    (fake, node, sender, receiver)
}

fn unit(received: Received) -> Unit {
    match received {
        Received::Unit(unit) => unit,
        Received::End(end) => panic!("a unit was due: {end:?}"),
    }
}

/// The statement of a stream's end.
fn ended(received: &Received) -> (Option<u64>, Option<u64>, Tally) {
    match received {
        Received::End(end) => (end.units_sent, end.lost_after, end.tally),
        Received::Unit(unit) => panic!("the end was due: {unit:?}"),
    }
}

#[test]
fn units_arrive_whole_in_order_and_end_cleanly() {
    let (_fake, _node, mut sender, mut receiver) = pair(Behaviour::default(), &request(6_250));
    assert_eq!(receiver.peer().name, "n1");
    assert_eq!(receiver.contract(), sender.contract());
    let sizes = [0, 1, 1_435, 1_436, 1_437, 6_249, 6_250, 3];
    let mut buffer = Vec::new();
    for round in 0..4 {
        for (index, &octets) in sizes.iter().enumerate() {
            let number = (round * sizes.len() + index) as u64;
            let sent = sender.send(&unit_octets(number, octets), schedule(number)).unwrap();
            assert_eq!(sent, number);
            let received = unit(receiver.recv(&mut buffer, ms(5_000)).unwrap());
            assert_eq!((received.number, received.complete, received.lost_before), (number, true, 0));
            assert_eq!(received.schedule_ns, schedule(number).as_nanos());
            assert!(received.arrived_at.is_some_and(|at| at <= received.dequeued_at));
            assert_eq!(buffer, unit_octets(number, octets));
        }
    }
    let report = sender.close(ms(5_000)).unwrap();
    assert!(report.drained && report.units_sent == 32, "{report:?}");
    let tally = Tally { units: 32, ..Tally::default() };
    let end = receiver.recv(&mut buffer, ms(5_000)).unwrap();
    assert_eq!(ended(&end), (Some(32), Some(0), tally));
}

/// The unit that was on its way to a receiver that was taken out counted as a broken promise: exit code 4.
#[test]
fn the_unit_on_its_way_to_a_receiver_that_is_taken_out_is_in_no_count() {
    let counts = |cause| {
        let loss = |number, fragment| matches!((number, fragment), (1, 4));
        let behaviour = Behaviour { loss, cause, ..Behaviour::default() };
        let (_fake, _node, mut sender, mut receiver) =
            pair(behaviour, &OpenRequest { buffers: 16, ..request(6_250) });
        for number in 0..2 {
            sender.send(&unit_octets(number, 6_000), schedule(number)).unwrap();
        }
        sender.close(ms(5_000)).unwrap();
        let mut buffer = Vec::new();
        loop {
            match receiver.recv(&mut buffer, ms(5_000)).unwrap() {
                Received::End(end) => break (end.tally.units, end.tally.incomplete, end.tally.lost),
                Received::Unit(unit) => assert!(unit.complete || cause == CloseCause::Finished),
            }
        }
    };
    assert_eq!(counts(CloseCause::TakenOut), (1, 0, 0));
    assert_eq!(counts(CloseCause::Finished), (1, 1, 0), "where it was to come, it is missing");
}

#[test]
fn what_is_missing_is_said() {
    // Unit 1 loses its first fragment, unit 2 its last, unit 3 everything, and so does the last unit, 5.
    let loss = |number, fragment| matches!((number, fragment), (1, 0) | (2, 4) | (3 | 5, _));
    let (_fake, _node, mut sender, mut receiver) =
        pair(Behaviour { loss, ..Behaviour::default() }, &OpenRequest { buffers: 16, ..request(6_250) });
    for number in 0..6 {
        sender.send(&unit_octets(number, 6_000), schedule(number)).unwrap();
    }
    sender.close(ms(5_000)).unwrap();
    let mut buffer = Vec::new();
    let mut seen = Vec::new();
    let end = loop {
        match receiver.recv(&mut buffer, ms(5_000)).unwrap() {
            Received::End(end) => break end,
            Received::Unit(unit) => {
                seen.push((unit.number, unit.missing_octets, unit.lost_before));
                assert_eq!(buffer.len(), 6_000);
                assert_eq!(unit.complete, buffer == unit_octets(unit.number, 6_000));
            }
        }
    };
    assert_eq!(seen, [(0, 0, 0), (1, 1_436, 0), (2, 256, 0), (4, 0, 1)]);
    let tally = Tally { units: 2, lost: 2, incomplete: 2, ..Tally::default() };
    assert_eq!((end.units_sent, end.lost_after, end.tally), (Some(6), Some(1), tally));
    assert_eq!(receiver.counts().lost_units, 1);
}

/// It was added with each call, until the sum had no room.
#[test]
fn what_was_lost_behind_the_last_unit_counts_once_whatever_number_it_is() {
    let lie = Behaviour { final_units: Some(u64::MAX - 1), ..Behaviour::default() };
    let (_fake, _node, sender, mut receiver) = pair(lie, &request(100));
    sender.close(ms(5_000)).unwrap();
    let tally = Tally { lost: u64::MAX - 1, ..Tally::default() };
    let end = (Some(u64::MAX - 1), Some(u64::MAX - 1), tally);
    for _ in 0..3 {
        assert_eq!(ended(&receiver.recv(&mut Vec::new(), ms(5_000)).unwrap()), end);
        assert_eq!(ended(&receiver.try_recv(&mut Vec::new()).unwrap().unwrap()), end);
    }
    assert_eq!(receiver.tally(), tally);
}

#[test]
fn the_newest_unit_wins_where_asked_for() {
    let (_fake, _node, mut sender, mut receiver) =
        pair(Behaviour::default(), &OpenRequest { buffers: 16, ..request(2_000) });
    receiver.set_newest(true);
    for number in 0..10 {
        sender.send(&unit_octets(number, 2_000), schedule(number)).unwrap();
    }
    sender.wait_progress(10, ms(5_000)).unwrap();
    let mut buffer = Vec::new();
    let received = unit(receiver.recv(&mut buffer, ms(5_000)).unwrap());
    assert_eq!((received.number, received.skipped_before, received.lost_before), (9, 9, 0));
    assert_eq!(buffer, unit_octets(9, 2_000));
    assert_eq!(receiver.try_recv(&mut buffer), Ok(None));
    assert_eq!(receiver.counts().skipped_units, 9);
    let tally = receiver.tally();
    assert_eq!((tally.units, tally.lost, tally.incomplete), (10, 0, 0), "the units passed over came");
}

#[test]
fn a_slow_receiver_is_overtaken_and_told() {
    let (_fake, _node, mut sender, mut receiver) =
        pair(Behaviour::default(), &OpenRequest { buffers: 4, ..request(2_000) });
    for number in 0..40 {
        sender.send(&unit_octets(number, 2_000), schedule(number)).unwrap();
    }
    sender.wait_progress(40, ms(5_000)).unwrap();
    let mut buffer = Vec::new();
    let first = unit(receiver.recv(&mut buffer, ms(5_000)).unwrap());
    assert_eq!((first.number, first.lost_before, first.complete), (36, 36, true));
    for number in 37..40 {
        assert_eq!(unit(receiver.recv(&mut buffer, ms(5_000)).unwrap()).number, number);
        assert_eq!(buffer, unit_octets(number, 2_000));
    }
    assert_eq!(receiver.counts().overrun_fragments, 72);
}

#[test]
fn full_buffers_block_or_say_so() {
    let stuck = Behaviour { drains: false, ..Behaviour::default() };
    let (fake, _node, mut sender, mut receiver) = pair(stuck, &OpenRequest { buffers: 2, ..request(100) });
    assert_eq!(sender.try_send(b"first", schedule(0)), Ok(0));
    assert_eq!(sender.try_send(b"second", schedule(1)), Ok(1));
    assert_eq!(sender.try_send(b"third", schedule(2)), Err(SendError::WouldBlock));
    assert_eq!(sender.send_timeout(b"third", schedule(2), ms(20)), Err(SendError::TimedOut));
    assert_eq!(sender.waiting(), 2);
    let long = [0; 101];
    let too_long = SendError::TooLong { octets: 101, octets_max: 100 };
    assert_eq!(sender.send(&long, schedule(2)), Err(too_long));
    let sending = std::thread::spawn(move || (sender.send(b"third", schedule(2)), sender));
    std::thread::sleep(std::time::Duration::from_millis(30));
    assert!(!sending.is_finished(), "it blocks while the buffers are full");
    fake.behave(Behaviour::default());
    let (sent, _sender) = sending.join().unwrap();
    assert_eq!(sent, Ok(2));
    let mut buffer = Vec::new();
    for expected in [&b"first"[..], b"second", b"third"] {
        unit(receiver.recv(&mut buffer, ms(5_000)).unwrap());
        assert_eq!(buffer, expected);
    }
    assert_eq!(receiver.recv(&mut buffer, ms(10)), Err(RecvError::TimedOut));
}

/// Until the first unit, which has no slot, is behind its bound.
fn until_behind(sender: &SendChannel) {
    let begin = rota::now();
    while !sender.is_behind() {
        assert!(rota::now().since(begin) < ms(5_000), "its first slot never came");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// After a stall everything that followed was as late as the stall was long.
#[test]
fn what_is_overdue_is_left_out_unless_kept_and_counts_as_lost() {
    let stuck = Behaviour { drains: false, ..Behaviour::default() };
    let (fake, _node, mut sender, mut receiver) = pair(stuck, &live(100));
    assert_eq!(sender.send(b"first", schedule(0)), Ok(0));
    until_behind(&sender);
    assert_eq!(sender.send(b"overdue", schedule(1)), Err(SendError::LeftOut), "it neither queues nor waits");
    sender.leave_out(2);
    assert_eq!((sender.left_out(), sender.tally().lost), (3, 3));
    fake.behave(Behaviour::default());
    let mut buffer = Vec::new();
    unit(receiver.recv(&mut buffer, ms(5_000)).unwrap());
    // The receiver has the unit before its place in the sender's ring is free.
    assert_eq!(sender.wait_progress(1, ms(5_000)), Ok(1));
    assert_eq!(sender.send(b"in time", schedule(4)), Ok(4));
    let next = unit(receiver.recv(&mut buffer, ms(5_000)).unwrap());
    assert_eq!((&buffer[..], next.number, next.lost_before), (&b"in time"[..], 4, 3));
    // The last ones of all are told by the end.
    sender.leave_out(2);
    let sent = sender.close(ms(5_000)).unwrap().tally;
    assert_eq!((sent.units, sent.lost), (2, 5));
    let Received::End(end) = receiver.recv(&mut buffer, ms(5_000)).unwrap() else { panic!("the end") };
    assert_eq!((end.units_sent, end.lost_after, end.tally), (Some(7), Some(2), sent));
}

/// A channel that is opened again continues the stream: it forgot the policy for overdue units, and the
/// number of lost ones.
#[test]
fn a_channel_that_is_made_again_keeps_its_policy_and_its_losses() {
    let stuck = Behaviour { drains: false, ..Behaviour::default() };
    let (_fake, node, mut sender, _receiver) = pair(stuck, &request(100));
    sender.set_overdue(Overdue::Drop);
    assert_eq!(sender.send(b"first", schedule(0)), Ok(0));
    until_behind(&sender);
    assert_eq!(sender.send(b"overdue", schedule(1)), Err(SendError::LeftOut));
    let mut listener = node.listen(SERVICE, None, 4).unwrap();
    sender.reattach(ms(5_000)).unwrap();
    let again = listener.accept(ms(5_000)).unwrap();
    assert_eq!((again.units_before(), sender.handed_over()), (2, 1), "the receiver is told of both");
    assert_eq!((sender.left_out(), sender.tally().lost), (1, 2), "what waited is lost as well");
    assert_eq!(sender.unknown(), 0, "nothing had left");
    assert_eq!(sender.send(b"first again", schedule(2)), Ok(0));
    until_behind(&sender);
    assert_eq!(sender.send(b"overdue", schedule(3)), Err(SendError::LeftOut));
    assert_eq!((sender.left_out(), sender.tally().lost), (2, 3));
}

/// The sentence was of the control socket, which had answered all the while.
#[test]
fn a_channel_that_does_not_open_in_time_is_not_the_control_sockets_fault() {
    let fake = FakeNode::start(Behaviour::default());
    let node = Node::connect(&fake.name).unwrap();
    let request = OpenRequest { to: SILENT.into(), timeout: ms(100), ..request(100) };
    let told = [node.open(&request).err(), node.probe(&request).err()];
    for error in told.into_iter().map(|error| error.expect("nobody answers")) {
        assert!(matches!(&error, OpenError::Node(NodeError::NotOpened { .. })), "{error:?}");
        assert_eq!(
            error.to_string(),
            "the channel to n8 is neither open nor refused after 100 ms: the node waits for the token, or \
             for n8 to answer; 'rota status' shows the mode and the stations"
        );
    }
}

/// As of one that does not open.
#[test]
fn a_channel_that_does_not_change_in_time_is_not_the_control_sockets_fault() {
    let fake = FakeNode::start(Behaviour::default());
    let mut node = Node::connect(&fake.name).unwrap();
    let error = node.modify_channel(UNDECIDED, 100).expect_err("nobody decides");
    assert!(matches!(&error, OpenError::Node(NodeError::NotChanged { channel: UNDECIDED, .. })), "{error:?}");
    assert_eq!(
        error.to_string(),
        "channel 88 is neither changed nor refused after 5 s: the node waits for the token, which decides; \
         'rota status' shows the mode and the stations"
    );
}

/// The late answer to the change that was given up was taken for that of the next request.
#[test]
fn a_late_answer_is_none_to_the_next_request() {
    let (fake, mut node, sender, _receiver) = pair(Behaviour::default(), &request(100));
    fake.behave(Behaviour { stands_still: true, ..Behaviour::default() });
    let channel = sender.id();
    let given_up = node.modify_channel(channel, 90);
    assert!(matches!(&given_up, Err(OpenError::Node(NodeError::NotChanged { .. }))), "{given_up:?}");
    fake.behave(Behaviour::default());
    assert!(node.status().is_ok());
    fake.behave(Behaviour { stands_still: true, ..Behaviour::default() });
    assert!(node.modify_channel(channel, 80).is_err());
    fake.behave(Behaviour::default());
    assert_eq!(node.modify_channel(channel, 70).expect("it is changed").contract.unit_octets_max, 70);
}

/// A request threw away what had come before it and what came before its answer: a channel that had moved
/// onto a tunnel told nothing of that.
#[test]
fn a_channel_that_moves_during_a_request_says_so() {
    let (fake, mut node, mut sender, mut receiver) = pair(Behaviour::default(), &request(100));
    node.modify_channel(sender.id(), 90).expect("it is changed");
    assert!(sender.receivers().is_err(), "a fake node shows none");
    assert_eq!(sender.changed().map(|contract| contract.unit_octets_max), Some(90), "it came before");
    assert!(sender.withdrawn().is_none() && receiver.withdrawn().is_none());
    fake.behave(Behaviour { moves: true, ..Behaviour::default() });
    assert!(sender.receivers().is_err());
    assert!(sender.withdrawn().is_some(), "it came before the answer");
    assert!(sender.changed().is_some(), "another question leaves the news");
    assert!(sender.changed().is_none() && sender.withdrawn().is_some());
    // The answer to a change has all that came before it.
    sender.modify(80).expect("it is changed");
    assert!(sender.withdrawn().is_some() && sender.contract().unit_octets_max == 80);
    // Once `withdrawn` was called, `changed` was silent.
    assert!(receiver.withdrawn().is_some());
    assert_eq!(receiver.changed().map(|granted| granted.contract.unit_octets_max), Some(80));
    assert!(receiver.changed().is_none() && receiver.withdrawn().is_some());
}

/// A program that has heard of a smaller contract hands over nothing beyond it.
#[test]
fn a_unit_longer_than_the_contract_that_is_known_is_refused() {
    let (_fake, mut node, mut sender, _receiver) = pair(Behaviour::default(), &request(100));
    node.modify_channel(sender.id(), 60).expect("it is changed");
    assert_eq!(sender.changed().map(|contract| contract.unit_octets_max), Some(60));
    let too_long = SendError::TooLong { octets: 100, octets_max: 60 };
    assert_eq!(sender.send(&[0; 100], schedule(0)), Err(too_long));
    assert!(sender.send(&[0; 60], schedule(0)).is_ok());
}

/// Of such a request each later one got the answer before its own, or an error of another one's.
#[test]
fn a_request_that_was_given_up_spoils_no_later_one() {
    let (fake, mut node, sender, _receiver) = pair(Behaviour::default(), &request(100));
    let stopped = Behaviour { stands_still: true, ..Behaviour::default() };
    fake.behave(stopped);
    let timed_out = |error: Option<NodeError>| {
        assert!(matches!(&error, Some(NodeError::Socket(SocketError::TimedOut(_)))), "{error:?}");
    };
    timed_out(node.status().err());
    timed_out(node.channels().err());
    fake.behave(Behaviour::default());
    assert_eq!(node.channels().expect("its own answer"), []);
    assert_eq!(node.status().expect("its own answer").name, "n1");
    // The answer to this one is an error, and comes late.
    fake.behave(stopped);
    let given_up = node.modify_channel(ChannelId(99), 90);
    assert!(matches!(&given_up, Err(OpenError::Node(NodeError::NotChanged { .. }))), "{given_up:?}");
    fake.behave(Behaviour::default());
    assert_eq!(node.status().expect("not the error of the change").name, "n1");
    let begin = rota::now();
    assert_eq!(node.modify_channel(sender.id(), 70).expect("it is changed").contract.unit_octets_max, 70);
    // A request that is never answered delays no other.
    assert!(node.modify_channel(UNDECIDED, 90).is_err());
    assert_eq!(node.modify_channel(sender.id(), 60).expect("it is changed").contract.unit_octets_max, 60);
    let took = rota::now().since(begin);
    assert!(took < ms(8_000), "one time limit, that of the change nobody decides: {took}");
}

/// Connecting took five seconds and asking ten, even with a shorter timeout.
#[test]
fn a_node_that_stands_still_is_waited_for_as_long_as_was_said() {
    let (fake, node, mut sender, _receiver) = pair(Behaviour::default(), &request(100));
    let mut listener = node.listen(SERVICE, None, 4).unwrap();
    fake.behave(Behaviour { stands_still: true, ..Behaviour::default() });
    let begin = rota::now();
    assert!(sender.reattach(ms(200)).is_err() && listener.reattach(ms(200)).is_err());
    let took = rota::now().since(begin);
    assert!(took < ms(4_000), "{took}");
}

/// They counted as come, although nobody had got them.
#[test]
fn units_that_left_count_as_come_only_where_the_other_node_has_said_so() {
    let (fake, node, mut sender, _receiver) = pair(Behaviour::default(), &request(100));
    let counts = |sender: &SendChannel| {
        let tally = sender.tally();
        (tally.units, tally.lost, tally.incomplete, sender.unknown())
    };
    (0..3).for_each(|number| assert_eq!(sender.send(b"unit", schedule(number)), Ok(number)));
    assert_eq!(sender.wait_progress(3, ms(5_000)), Ok(3));
    assert_eq!(counts(&sender), (3, 0, 0, 0), "while it is open");
    let _listener = node.listen(SERVICE, None, 4).unwrap();
    sender.reattach(ms(5_000)).unwrap();
    assert_eq!(counts(&sender), (0, 0, 0, 3), "the channel before has ended without a word");
    assert_eq!(sender.send(b"unit", schedule(4)), Ok(0));
    assert_eq!(sender.wait_progress(1, ms(5_000)), Ok(1));
    sender.finish(ms(5_000)).unwrap();
    assert_eq!(counts(&sender), (1, 0, 0, 3), "the second end is confirmed");
    drop(fake);
}

#[test]
fn a_sender_can_wait_for_its_slot() {
    let (fake, _node, mut sender, _receiver) = pair(Behaviour::default(), &request(100));
    let first = sender.wait_slot(ms(5_000)).unwrap();
    let second = sender.wait_slot(ms(5_000)).unwrap();
    assert!(second.number > first.number && second.at > first.at);
    assert!(sender.newest_slot().is_some_and(|slot| slot.number >= second.number));
    let mut pacer = sender.pacer(ms(5_000)).unwrap();
    let due = pacer.due();
    assert!(due.since(rota::now()) <= Span::from_nanos(33_333_333), "within one period");
    assert_eq!(pacer.wait().due, due);
    sender.follow(&mut pacer);
    drop(fake);
    // The slots that came before the node died may still be taken; then nobody waits for ever.
    let end = (0..100).find_map(|_| sender.wait_slot(ms(5_000)).err());
    assert_eq!(end, Some(WaitError::NodeGone));
}

/// A slot that counts again in each turn moves the turns further than the clocks' drift.
#[test]
fn a_slot_is_observed_once() {
    let (fake, _node, mut sender, _receiver) = pair(Behaviour::default(), &request(100));
    // The turn that the node is in may bring one more.
    let newest = loop {
        let before = sender.newest_slot();
        fake.behave(Behaviour { stands_still: before.is_some(), ..Behaviour::default() });
        std::thread::sleep(std::time::Duration::from_millis(30));
        if let Some(slot) = before.filter(|_| sender.newest_slot() == before) {
            break slot;
        }
    };
    let period = Span::from_nanos(33_333_333);
    let mut pacer = rota::Pacer::locked(period, newest.at + period.div_down(16), newest.at);
    let first = pacer.due();
    sender.follow(&mut pacer);
    assert_eq!(first.since(pacer.due()), period.div_down(64), "one step towards the slot");
    (0..5).for_each(|_| sender.follow(&mut pacer));
    assert_eq!(first.since(pacer.due()), period.div_down(64), "and no further one without another slot");
    assert_eq!(sender.wait_slot(ms(20)), Err(WaitError::TimedOut), "it has been seen");
    fake.behave(Behaviour::default());
    assert!(sender.wait_slot(ms(5_000)).unwrap().number > newest.number);
}

#[test]
fn a_sender_that_vanishes_breaks_the_stream_after_its_last_unit() {
    let (_fake, _node, mut sender, mut receiver) = pair(Behaviour::default(), &request(100));
    sender.send(b"last words", schedule(0)).unwrap();
    sender.wait_progress(1, ms(5_000)).unwrap();
    drop(sender);
    let mut buffer = Vec::new();
    unit(receiver.recv(&mut buffer, ms(5_000)).unwrap());
    assert_eq!(buffer, b"last words");
    let broken = Err(RecvError::Broken(CloseCause::SenderDied));
    assert_eq!(receiver.recv(&mut buffer, ms(5_000)), broken);
    assert_eq!(receiver.recv(&mut buffer, ms(5_000)), broken, "and stays broken");
}

#[test]
fn a_node_that_dies_leaves_nobody_waiting() {
    let stuck = Behaviour { drains: false, ..Behaviour::default() };
    let (fake, node, mut sender, mut receiver) = pair(stuck, &OpenRequest { buffers: 1, ..request(100) });
    let mut listener = node.listen(SERVICE + 1, None, 4).unwrap();
    sender.send(b"stays", schedule(0)).unwrap();
    drop(fake);
    let mut buffer = Vec::new();
    assert_eq!(receiver.recv(&mut buffer, ms(60_000)), Err(RecvError::NodeGone));
    assert_eq!(receiver.try_recv(&mut buffer), Err(RecvError::NodeGone));
    assert_eq!(sender.send(b"never", schedule(1)), Err(SendError::NodeGone));
    assert!(matches!(listener.accept(ms(60_000)), Err(AcceptError::NodeGone)));
    assert!(sender.close(ms(10)).is_err());
}

#[test]
fn refusals_come_with_their_reason() {
    let fake = FakeNode::start(Behaviour::default());
    let node = Node::connect(&fake.name).unwrap();
    let silent = node.open(&request(100)).err().unwrap();
    assert!(matches!(silent, OpenError::NoListener(_)), "{silent}");
    let mut listener = node.listen(SERVICE, None, 4).unwrap();
    let unknown = node.open(&OpenRequest { to: "n9".into(), ..request(100) }).err().unwrap();
    assert_eq!(unknown.to_string(), "no station `n9`; there is n1");
    let refused = node.open(&request(ROOM_OCTETS + 1)).err().unwrap();
    assert!(matches!(refused, OpenError::Refused(refusal) if refusal.counter_offer_octets == ROOM_OCTETS));
    let nobody = listener.accept(ms(10)).err().unwrap();
    assert!(matches!(nobody, AcceptError::TimedOut { service: SERVICE }));
}

#[test]
fn the_node_answers_about_itself() {
    let fake = FakeNode::start(Behaviour::default());
    let mut node = Node::connect(&fake.name).unwrap();
    assert_eq!((node.pid(), node.station(), node.name()), (std::process::id(), Some(1), "n1"));
    assert_eq!(node.status().unwrap().name, "n1");
    assert_eq!(node.channels().unwrap(), []);
    node.circulate(ms(1)).unwrap();
    let denied = node.modify_channel(ChannelId(1), 1).err().unwrap();
    assert_eq!(denied.to_string(), "no channel 1 here");
    let counters = node.counters().unwrap();
    let before = counters.get("turns").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert!(counters.get("turns").unwrap() > before, "the file is live");
}

#[test]
fn without_a_node_the_sentence_says_what_to_do() {
    let name = ControlName::named(&format!("test-{}-nobody", std::process::id())).unwrap();
    let error = Node::connect(&name).err().unwrap();
    assert!(matches!(error, NodeError::Socket(SocketError::NoNode(_))));
    assert!(error.to_string().contains("start one with `rota node`"), "{error}");
}

/// Its program waited as long as it would for any channel.
#[test]
fn a_channel_that_ends_before_it_is_open_is_told_to_the_program_that_took_it() {
    let fake = FakeNode::start(Behaviour::default());
    let node = Node::connect(&fake.name).unwrap();
    let mut listener = node.listen(SERVICE, None, 4).unwrap();
    listener.answer(NEVER_OPENED, true).expect("it is taken");
    let begin = rota::now();
    let error = listener.accept(ms(5_000)).err().expect("no channel came");
    assert!(rota::now().since(begin) < ms(2_500));
    let sentence = format!("channel 77 was taken and never opened: {}", CloseCause::SenderDied.sentence());
    assert_eq!(error.to_string(), sentence);
    assert!(matches!(error, AcceptError::NeverOpened { channel: NEVER_OPENED, .. }), "{error:?}");
}
