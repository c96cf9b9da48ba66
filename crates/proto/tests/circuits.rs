//! Circuits between two nodes, over both media: what a program takes is what the other one wrote, whatever is
//! lost, and an end is told at the other end.

use crate::pair::{self, A, B, PORT, Pair, UNIT, both, ms};
use rota_contract::{CircuitStage, CircuitWait};
use rota_proto::circuits::{CircuitError, CircuitEvent, CircuitId, CircuitRequest, EndRole, Listening, Loss};
use rota_proto::vc::{End, Unsound};
use rota_proto::{CircuitOpenError, MediumKind};
use rota_units::{BitRate, Instant, Octets};
use rota_wire::{FlowControl, Kind, Quality, Refusal, ResetCause};

const SERVICE: Listening = Listening { service: 7, window: 64, backlog: 2 };

fn request() -> CircuitRequest {
    CircuitRequest { service: 7, window: 32, quality: Quality::RELIABLE, bucket: None, level: 0 }
}

/// A pair with a listener at B.
fn listening(kind: MediumKind) -> Pair {
    let mut pair = Pair::new(kind);
    let now = pair.now;
    pair.node(B).circuit_listen(now, &SERVICE).expect("nobody else listens");
    pair
}

fn ask(pair: &mut Pair, request: &CircuitRequest) -> CircuitId {
    let now = pair.now;
    let circuit = pair.node(A).circuit_open(now, "n2", request).expect("a sound request");
    pair.drain(A);
    circuit
}

/// Both ends of a circuit that is open.
fn open(pair: &mut Pair, request: &CircuitRequest) -> (CircuitId, CircuitId) {
    let sender = ask(pair, request);
    pair.run(ms(500));
    assert!(pair.circuits.iter().any(|(k, event)| {
        *k == A && matches!(event, CircuitEvent::Opened { circuit, .. } if *circuit == sender)
    }));
    let offered = pair.circuits.iter().rev().find_map(|(k, event)| match event {
        CircuitEvent::Offered { circuit, from, .. } if *k == B => {
            assert_eq!(*from, pair::mac(A));
            Some(*circuit)
        }
        _ => None,
    });
    let receiver = offered.expect("the listener was told");
    assert!(pair.node(B).circuit_accept(receiver));
    (sender, receiver)
}

fn ends(pair: &Pair, k: usize) -> Vec<End> {
    let ends = pair.circuits.iter().filter_map(|(at, event)| match event {
        CircuitEvent::Ended { end, .. } if *at == k => Some(*end),
        _ => None,
    });
    ends.collect()
}

/// Octets that repeat nowhere near.
fn pattern(octets: usize) -> Vec<u8> {
    (0..octets as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Writes all of it and reads at the other end, in steps, until it is there.
fn carry(pair: &mut Pair, (sender, receiver): (CircuitId, CircuitId), octets: &[u8]) -> Vec<u8> {
    let (mut rest, mut read, mut ended) = (octets, Vec::new(), false);
    let give_up = pair.now + ms(120_000);
    while read.len() < octets.len() || !ended {
        let views = [(A, sender), (B, receiver)].map(|(k, circuit)| pair.node(k).circuit(circuit));
        assert!(pair.now < give_up, "{} of {} have come: {views:?}", read.len(), octets.len());
        let now = pair.now;
        if !ended {
            let written = pair.node(A).circuit_write(now, sender, rest, true);
            (rest, ended) = (&rest[written.octets..], written.ended);
            pair.drain(A);
        }
        let mut taken = 0;
        while let Some((_, data)) = pair.node(B).circuit_peek(receiver, taken) {
            read.extend_from_slice(data);
            taken += 1;
        }
        assert!(pair.node(B).circuit_take(now, receiver, taken));
        pair.drain(B);
        pair.run(ms(5));
    }
    read
}

/// The same, but each end's parent looks only when it has heard of news, as a node does. Without error
/// control a part may be lost; returns what has come when no news come any more.
fn carry_by_news(
    pair: &mut Pair,
    (sender, receiver): (CircuitId, CircuitId),
    messages: &[Vec<u8>],
) -> Vec<Vec<u8>> {
    let mut came: Vec<Vec<u8>> = vec![Vec::new()];
    let (mut next, mut offset, mut seen, mut idle) = (0, 0, 0, 0);
    let (mut writes, mut reads) = (true, true);
    while idle < 400 {
        let now = pair.now;
        for message in messages.iter().skip(next).filter(|_| writes) {
            let written = pair.node(A).circuit_write(now, sender, &message[offset..], true);
            offset += written.octets;
            if !written.ended {
                break;
            }
            (next, offset) = (next + 1, 0);
        }
        while let Some((piece, data)) = pair.node(B).circuit_peek(receiver, 0).filter(|_| reads) {
            came.last_mut().expect("one is begun").extend_from_slice(data);
            if piece.last {
                came.push(Vec::new());
            }
            assert!(pair.node(B).circuit_take(now, receiver, 1));
        }
        pair.drain(A);
        pair.drain(B);
        pair.run(ms(5));
        (writes, reads) = (false, false);
        for (k, event) in &pair.circuits[seen..] {
            match (*k, event) {
                (A, CircuitEvent::News { circuit }) if *circuit == sender => writes = true,
                (B, CircuitEvent::News { circuit }) if *circuit == receiver => reads = true,
                _ => {}
            }
        }
        seen = pair.circuits.len();
        if writes {
            pair.node(A).circuit_heard(sender);
        }
        if reads {
            pair.node(B).circuit_heard(receiver);
        }
        idle = if writes || reads { 0 } else { idle + 1 };
    }
    assert_eq!(next, messages.len(), "its parent was not told of room");
    assert_eq!(came.pop(), Some(Vec::new()), "a message without an end");
    came
}

/// Of a circuit without error control nobody was told that something had come, or that there was room.
fn each_quality_tells_its_parents_of_all_there_is_to_do(kind: MediumKind) {
    let bucket = Some((Octets::new(20_000), BitRate::from_mbit(20)));
    for (quality, bucket) in [
        (Quality::RELIABLE, None),
        (Quality { flow: FlowControl::PacketPair, ..Quality::RELIABLE }, None),
        (Quality::BEST_EFFORT, None),
        (Quality::GUARANTEED, bucket),
        (Quality { flow: FlowControl::Window, ..Quality::BEST_EFFORT }, None),
    ] {
        let mut pair = listening(kind);
        let both = open(&mut pair, &CircuitRequest { quality, bucket, ..request() });
        // Many times the window, in messages of several TPDUs.
        let messages: Vec<Vec<u8>> = (0..200).map(|n| pattern(2_000 + n)).collect();
        let came = carry_by_news(&mut pair, both, &messages);
        if quality.error_control {
            assert!(came == messages, "{quality:?}");
        } else {
            let mut sent = messages.iter();
            assert!(came.iter().all(|message| sent.any(|other| other == message)), "{quality:?}");
            let lost = pair.node(B).circuit(both.1).expect("it is open").lost.messages;
            assert!(came.len() as u64 + lost <= 200 && came.len() > 100, "{quality:?}: {}", came.len());
        }
    }
}

/// Nothing is kept of circuits, once those that linger have been silent for long enough.
fn assert_nothing_left(pair: &mut Pair) {
    pair.run(ms(21_000));
    for k in [A, B] {
        let circuits = pair.node(k).circuits_at(PORT).expect("its port");
        assert_eq!((circuits.ends().count(), circuits.taken_places()), (0, 0), "{k}");
        assert_eq!(pair.node(k).port().queued_frames(), 0, "{k}");
    }
}

fn finish(pair: &mut Pair, (sender, receiver): (CircuitId, CircuitId)) {
    let now = pair.now;
    pair.node(A).circuit_close(now, sender).expect("its last message has an end");
    pair.drain(A);
    pair.run(ms(2_000));
    for (k, circuit) in [(A, sender), (B, receiver)] {
        assert!(matches!(ends(pair, k)[..], [End::Finished { own, other }] if own == other), "{k}");
        let now = pair.now;
        pair.node(k).circuit_release(now, circuit);
        pair.drain(k);
    }
    assert_nothing_left(pair);
}

fn a_message_passes(kind: MediumKind) {
    let mut pair = listening(kind);
    let both = open(&mut pair, &request());
    let message = pattern(300_000);
    assert!(carry(&mut pair, both, &message) == message);
    let view = pair.node(A).circuit(both.0).expect("it is open");
    assert_eq!((view.role, view.counts.messages), (EndRole::Sender, 1));
    // A window of TPDUs in the card at once looked like loss, and was sent again for ever.
    assert!(view.again < 8, "{} of {} were sent again", view.again, view.counts.tpdus);
    finish(&mut pair, both);
}

fn frames_that_are_lost_are_sent_again(kind: MediumKind) {
    let mut pair = listening(kind);
    pair.loses = 7;
    let both = open(&mut pair, &request());
    let message = pattern(200_000);
    assert!(carry(&mut pair, both, &message) == message);
    assert!(pair.node(A).circuit(both.0).expect("it is open").again > 10);
    finish(&mut pair, both);
}

/// In the reserved mode TPDUs wait for ordinary grants, and the channel loses nothing.
fn a_circuit_shares_the_medium_with_a_channel(kind: MediumKind) {
    let mut pair = listening(kind);
    let (channel, granted) = pair.open(UNIT);
    assert_eq!(pair.mode(A), pair.busy());
    let both = open(&mut pair, &request());
    let message = pattern(60_000);
    for number in 0..30 {
        pair.unit(channel, number, UNIT);
        pair.run(ms(34));
    }
    assert!(carry(&mut pair, both, &message) == message);
    pair.run(ms(100));
    assert_eq!(pair.came.len(), 30);
    assert!(pair.came.iter().all(|came| came.took <= granted.bound()));
    let now = pair.now;
    pair.node(A).circuit_release(now, both.0);
    pair.drain(A);
    pair.run(ms(500));
    assert_eq!(ends(&pair, B), [End::Reset(ResetCause::Aborted)]);
}

/// TRANSPORT-R70: who asks for a service without a listener hears it.
fn nobody_listens(kind: MediumKind) {
    let mut pair = Pair::new(kind);
    let circuit = ask(&mut pair, &request());
    pair.run(ms(200));
    assert_eq!(ends(&pair, A), [End::Refused(Refusal::NoService)]);
    let now = pair.now;
    pair.node(A).circuit_release(now, circuit);
    pair.drain(A);
    assert_nothing_left(&mut pair);
}

/// The backlog bounds what nobody has accepted.
fn a_full_backlog_refuses(kind: MediumKind) {
    let mut pair = listening(kind);
    let asked: Vec<CircuitId> = (0..3).map(|_| ask(&mut pair, &request())).collect();
    pair.run(ms(500));
    assert_eq!(ends(&pair, A), [End::Refused(Refusal::Busy)]);
    let now = pair.now;
    pair.node(B).circuit_unlisten(now, 7);
    pair.drain(B);
    pair.run(ms(500));
    assert_eq!(ends(&pair, A)[1..], [End::Reset(ResetCause::Aborted); 2]);
    for circuit in asked {
        let now = pair.now;
        pair.node(A).circuit_release(now, circuit);
        pair.drain(A);
    }
    assert_nothing_left(&mut pair);
}

/// A program that dies: the other end is told.
fn either_end_may_die(kind: MediumKind) {
    for (dies, hears) in [(A, B), (B, A)] {
        let mut pair = listening(kind);
        let (sender, receiver) = open(&mut pair, &request());
        let now = pair.now;
        pair.node(dies).circuit_release(now, if dies == A { sender } else { receiver });
        pair.drain(dies);
        pair.run(ms(100));
        assert_eq!(ends(&pair, hears), [End::Reset(ResetCause::Aborted)]);
        assert!(ends(&pair, dies).is_empty(), "nobody is there to be told");
        let now = pair.now;
        pair.node(hears).circuit_release(now, if hears == A { sender } else { receiver });
        pair.drain(hears);
        assert_nothing_left(&mut pair);
    }
}

/// A node that begins anew knows nothing of its circuits, and says so.
fn a_node_that_begins_anew_resets(kind: MediumKind) {
    let mut pair = listening(kind);
    let (sender, _) = open(&mut pair, &request());
    pair.restart(B);
    pair.run(ms(8_000));
    let now = pair.now;
    pair.node(A).circuit_write(now, sender, b"who is there", true);
    pair.drain(A);
    pair.run(ms(3_000));
    let lost = CircuitEvent::Lost { circuit: sender, why: Loss::NodeDied };
    let is_told = ends(&pair, A) == [End::Reset(ResetCause::Unknown)] || pair.circuits.contains(&(A, lost));
    assert!(is_told, "{:?}", pair.circuits);
}

/// A node that leaves in order says goodbye for its circuits, too.
fn a_node_that_stops_ends_its_circuits(kind: MediumKind) {
    let mut pair = listening(kind);
    let (sender, _) = open(&mut pair, &request());
    let now = pair.now;
    pair.node(B).leave(now);
    pair.drain(B);
    pair.run(ms(100));
    let lost = CircuitEvent::Lost { circuit: sender, why: Loss::NodeStopped };
    assert!(pair.circuits.contains(&(A, lost)), "{:?}", pair.circuits);
}

/// Frames of circuits leave one of each in turn: eight circuits get equal shares.
fn circuits_take_turns(kind: MediumKind) {
    let mut pair = listening(kind);
    let now = pair.now;
    pair.node(B).circuit_unlisten(now, 7);
    pair.node(B).circuit_listen(now, &Listening { backlog: 8, ..SERVICE }).expect("it is free");
    let senders: Vec<CircuitId> = (0..8).map(|_| open(&mut pair, &request()).0).collect();
    let stuff = pattern(100_000);
    // Nobody reads at B: a window of each leaves, and no more.
    for sender in &senders {
        let now = pair.now;
        pair.node(A).circuit_write(now, *sender, &stuff, false);
        assert!(pair.node(A).port().queued_frames() <= 8, "one entry for each");
    }
    pair.drain(A);
    let before = pair.sent.len();
    pair.run(ms(2_000));
    let data = pair.sent[..].iter().filter(|sent| sent.kind == Some(Kind::Circuit) && sent.from == A);
    assert!(data.count() > 8 * 32 && before > 0);
    for sender in &senders {
        let view = pair.node(A).circuit(*sender).expect("it is open");
        assert_eq!(view.counts.tpdus - view.taken.tpdus, 32, "a window waits at the receiver");
    }
}

/// Ends that linger kept 64 later circuits out for twenty seconds.
fn short_circuits_follow_each_other_without_end(kind: MediumKind) {
    let mut pair = listening(kind);
    for _ in 0..80 {
        let (sender, receiver) = open(&mut pair, &request());
        let now = pair.now;
        assert!(pair.node(A).circuit_write(now, sender, b"short", true).ended);
        pair.node(A).circuit_close(now, sender).expect("it has an end");
        pair.drain(A);
        pair.run(ms(20));
        let now = pair.now;
        assert!(pair.node(B).circuit_take(now, receiver, 1));
        pair.drain(B);
        pair.run(ms(100));
        for (k, circuit) in [(A, sender), (B, receiver)] {
            assert!(matches!(ends(&pair, k).pop(), Some(End::Finished { .. })), "{k}");
            let now = pair.now;
            pair.node(k).circuit_release(now, circuit);
            pair.drain(k);
        }
        pair.circuits.clear();
        pair.run(ms(10));
    }
    assert_nothing_left(&mut pair);
}

/// An operator saw counts alone, and had to guess which side held a circuit up.
fn a_circuit_says_how_far_it_is_and_what_it_waits_for(kind: MediumKind) {
    let mut pair = listening(kind);
    let sender = ask(&mut pair, &request());
    let stands = |pair: &mut Pair, k: usize, circuit| {
        let standing = pair.node(k).circuit(circuit).expect("it is there").standing;
        (standing.stage, standing.waits_for)
    };
    let told = stands(&mut pair, A, sender);
    assert_eq!(told.0, CircuitStage::Opening);
    assert!(matches!(told.1, CircuitWait::Answer | CircuitWait::Turn), "{told:?}");
    pair.run(ms(500));
    let offered = pair.circuits.iter().find_map(|(_, event)| match event {
        CircuitEvent::Offered { circuit, .. } => Some(*circuit),
        _ => None,
    });
    let receiver = offered.expect("the listener was told");
    assert_eq!(stands(&mut pair, B, receiver), (CircuitStage::Offered, CircuitWait::Acceptance));
    assert!(pair.node(B).circuit_accept(receiver));
    assert_eq!(stands(&mut pair, B, receiver), (CircuitStage::Open, CircuitWait::Peer));
    assert_eq!(stands(&mut pair, A, sender), (CircuitStage::Open, CircuitWait::Program));
    // More than the window of 32 TPDUs holds, and nobody takes it.
    let (now, stuff) = (pair.now, pattern(100_000));
    let written = pair.node(A).circuit_write(now, sender, &stuff, true);
    pair.drain(A);
    pair.run(ms(2_000));
    assert_eq!(stands(&mut pair, A, sender), (CircuitStage::Open, CircuitWait::Room));
    assert_eq!(stands(&mut pair, B, receiver), (CircuitStage::Open, CircuitWait::Program));
    let [here, there] = [(A, sender), (B, receiver)]
        .map(|(k, circuit)| pair.node(k).circuit(circuit).expect("it is there").standing);
    assert_eq!((here.octets, there.octets), (written.octets as u64, written.octets as u64));
    assert_eq!((here.flying, there.flying, there.window), (0, 32, 32));
    let now = pair.now;
    pair.node(A).circuit_release(now, sender);
    pair.drain(A);
    pair.run(ms(500));
    assert_eq!(stands(&mut pair, B, receiver).0, CircuitStage::Ended);
}

/// A program that looks at the quality of a circuit and does not take it: the other one reads the reason,
/// also where the first word of it is lost, and nothing stays.
fn a_circuit_that_is_declined_tells_its_sender_why(kind: MediumKind) {
    for loses in [0, 2] {
        let mut pair = listening(kind);
        let (sender, receiver) = open(&mut pair, &request());
        pair.loses = loses;
        let now = pair.now;
        pair.node(B).circuit_decline(now, receiver, 4_711);
        pair.drain(B);
        assert_eq!(pair.node(B).circuit(receiver), None, "its program has it no more");
        for _ in 0..40 {
            let now = pair.now;
            pair.node(A).circuit_write(now, sender, b"nobody reads it", true);
            pair.drain(A);
            pair.run(ms(100));
        }
        assert_eq!(ends(&pair, A), [End::Declined(4_711)], "every {loses}. frame is lost");
        assert!(ends(&pair, B).is_empty());
        pair.loses = 0;
        let now = pair.now;
        pair.node(A).circuit_release(now, sender);
        pair.drain(A);
        pair.run(ms(60_000));
        assert_nothing_left(&mut pair);
    }
}

both!(
    a_circuit_that_is_declined_tells_its_sender_why,
    a_circuit_says_how_far_it_is_and_what_it_waits_for,
    a_message_passes,
    each_quality_tells_its_parents_of_all_there_is_to_do,
    frames_that_are_lost_are_sent_again,
    a_circuit_shares_the_medium_with_a_channel,
    nobody_listens,
    a_full_backlog_refuses,
    either_end_may_die,
    a_node_that_begins_anew_resets,
    a_node_that_stops_ends_its_circuits,
    circuits_take_turns,
    short_circuits_follow_each_other_without_end,
);

#[test]
fn a_wrong_request_is_refused_with_the_reason_and_keeps_nothing() {
    let mut pair = Pair::new(MediumKind::Rether);
    let now = pair.now;
    let mut refused = |request: CircuitRequest, to: &str| {
        let error = pair.node(A).circuit_open(now, to, &request).expect_err("it is wrong");
        assert_eq!(pair.node(A).circuits_at(PORT).expect("its port").taken_places(), 0);
        error
    };
    let wants = |error: Unsound| CircuitOpenError::Circuit(CircuitError::Unsound(error));
    assert_eq!(refused(CircuitRequest { window: 0, ..request() }, "n2"), wants(Unsound::Window(0)));
    assert_eq!(
        refused(CircuitRequest { window: 1 << 32, ..request() }, "n2"),
        wants(Unsound::Window(1 << 32))
    );
    assert!(matches!(refused(request(), "n9"), CircuitOpenError::NotFound(_)));
    assert_eq!(pair.node(B).circuit_listen(now, &SERVICE), Ok(()));
    assert_eq!(pair.node(B).circuit_listen(now, &SERVICE), Err(CircuitError::Taken(7)));
    let none = Listening { service: 8, window: 0, backlog: 1 };
    assert_eq!(pair.node(B).circuit_listen(now, &none), Err(CircuitError::Nothing));
    assert_eq!(pair.node(A).circuit(CircuitId(99)), None);
    assert_ne!(pair.now, Instant::ZERO);
}
