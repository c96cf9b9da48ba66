//! Who waits for whom in link control: acknowledged messages to one station, answers, and the token's own
//! signalling beside them.

use crate::lan::{FOREIGN, Lan, SECOND, fragment, mac, octet};
use rota_admission::NrtPolicy;
use rota_contract::{MessageFailure, MessageOutcome, TrafficSpec};
use rota_proto::{Destination, LlcAddress, LlcEvent, LlcRequest, OpenRequest, TRT_30_HZ};
use rota_units::{Instant, Span};
use rota_wire::llc::{
    AckStatus, Control, FRAGMENT_OCTETS, Fragment, LLC_INFORMATION, LlcHeader, LlcView, SAP_SNAP, emit_llc,
};

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

fn ack(request: &mut LlcRequest) {
    (request.ack, request.tries) = (true, 9);
}

/// A command of type 3 that somebody with that address sends to the first station's socket 2.
fn command(from: rota_wire::MacAddr, sap: u8, bit: bool, information: &[u8]) -> Vec<u8> {
    let control = Control::Ac { bit, poll: false };
    let dsap = if sap == SAP_SNAP { SAP_SNAP } else { 2 };
    let header = LlcHeader { dsap, ssap: sap, response: false, control };
    let mut frame = vec![0; 1_514];
    frame[LLC_INFORMATION..LLC_INFORMATION + information.len()].copy_from_slice(information);
    let len = emit_llc(&mut frame, mac(0), from, &header, information.len());
    frame.truncate(len);
    frame
}

#[test]
fn what_is_over_spends_no_place_in_a_visit() {
    let mut lan = Lan::token_with(2, |settings| settings.nrt_policy = Some(NrtPolicy::One));
    lan.nodes[1].llc_open(4);
    (0..6).for_each(|tag| lan.host_frame(1, tag, 0));
    let until = lan.now + Span::from_nanos(1);
    for _ in 0..4 {
        lan.send(0, 2, 900, |request| request.until = until);
        lan.send(0, 2, 900, |request| request.socket = 4);
    }
    lan.nodes[0].llc_cancel(lan.now, 4);
    let number = lan.send(0, 2, 900, |_| ());
    lan.now = until;
    lan.run(SECOND);
    assert_eq!(lan.outcome(number), Some(MessageOutcome::Sent));
    let before = lan.turns.iter().position(|turn| *turn == (0, true)).expect("it left");
    assert!(before <= 2, "each visit sends one frame, and the other station's came first: {:?}", lan.turns);
}

/// The second station under the token, with what its host sends at a middle level.
struct Beside {
    lan: Lan,
    tag: u32,
}

impl Beside {
    fn new() -> Self {
        let mut lan = Lan::token(3);
        lan.nodes[1].llc_open(4);
        Self { lan, tag: 0 }
    }

    /// For so long there is always something of the host's to send.
    fn run(&mut self, span: Span) {
        let until = self.lan.now + span;
        while self.lan.now < until {
            for _ in 0..20 {
                self.lan.host_frame(1, self.tag, 3);
                self.tag += 1;
            }
            self.lan.run(ms(10));
        }
    }

    fn urgent(&mut self) -> u64 {
        self.lan.send(1, 3, 3_000, |request| (request.level, request.socket, request.ack) = (7, 4, true))
    }
}

#[test]
fn a_low_message_that_only_waits_holds_up_no_high_one_to_the_same_station() {
    let mut beside = Beside::new();
    beside.run(ms(50));
    let low = beside.lan.send(1, 3, 3_000, ack);
    beside.run(ms(20));
    let urgent = beside.urgent();
    beside.run(ms(200));
    assert_eq!(beside.lan.outcome(urgent), Some(MessageOutcome::Acknowledged));
    assert_eq!(beside.lan.outcome(low), None, "its level has not had its turn");
}

#[test]
fn a_repetition_that_a_high_message_waits_for_does_not_wait_at_its_own_level() {
    let mut beside = Beside::new();
    beside.lan.loses = |at| at == 0;
    let low = beside.lan.send(1, 3, 3_000, ack);
    beside.lan.run(ms(60));
    assert_eq!(beside.lan.left.len(), 1, "its first fragment left, and was lost");
    beside.run(ms(10));
    let urgent = beside.urgent();
    // The repetition is due after 200 ms.
    beside.run(ms(450));
    assert_eq!(beside.lan.outcome(urgent), Some(MessageOutcome::Acknowledged));
    assert_eq!(beside.lan.outcome(low), None, "the rest of it waits for its level's turn");
    beside.lan.run(SECOND);
    assert_eq!(beside.lan.outcome(low), Some(MessageOutcome::Acknowledged));
}

#[test]
fn messages_of_one_level_to_one_station_keep_their_order_whatever_is_lost_or_given_up() {
    let mut lan = Lan::plain(2);
    lan.loses = |at| at % 5 == 1;
    let numbers: Vec<u64> = (0..60u64)
        .map(|nth| {
            let until = if nth % 7 == 3 { lan.now + ms(200) } else { Instant::FAR };
            let octets = if nth.is_multiple_of(4) { 2_000 } else { 40 };
            lan.send(0, 2, octets, |request| {
                (request.ack, request.tries, request.until, request.level) =
                    (true, 9, until, (nth % 3) as u8);
            })
        })
        .collect();
    lan.run(SECOND * 30);
    assert!(numbers.iter().all(|number| lan.outcome(*number).is_some()));
    for (cut, level) in [(true, 0), (true, 1), (true, 2), (false, 0), (false, 1), (false, 2)] {
        let of = |nth: u64| nth.is_multiple_of(4) == cut && nth % 3 == level;
        let got: Vec<u64> = lan.got.iter().map(|got| got.number).filter(|nth| of(*nth)).collect();
        assert!(got.windows(2).all(|pair| pair[0] < pair[1]), "cut {cut}, level {level}: {got:?}");
        let acked = |nth: &u64| lan.outcome(*nth) == Some(MessageOutcome::Acknowledged);
        let wanted: Vec<u64> = (0..60).filter(|nth| of(*nth)).filter(acked).collect();
        assert!(wanted.iter().all(|nth| got.contains(nth)), "acknowledged means that it came");
        assert!(wanted.len() >= 2, "cut {cut}, level {level}: {wanted:?}");
    }
}

#[test]
fn a_repetition_that_comes_late_is_known_as_one() {
    for octets in [50, 2_000] {
        let mut lan = Lan::plain(2);
        // The command arrives; its answer and the repetitions of 1.5 s are lost.
        lan.loses = |at| (1..31).contains(&at);
        let number = lan.send(0, 2, octets, |request| (request.ack, request.tries) = (true, 60));
        lan.run(SECOND * 4);
        assert_eq!(lan.outcome(number), Some(MessageOutcome::Acknowledged), "{octets} octets");
        assert_eq!(lan.got(number), [(1, octets as usize)], "{octets} octets");
    }
}

#[test]
fn a_message_like_the_one_before_is_no_repetition_of_it() {
    // The third of three messages with the same octets is another one, also where frames of the second were
    // lost.
    for loses in [(|at| at == 2) as fn(usize) -> bool, |at| at == 3] {
        let mut lan = Lan::plain(1);
        lan.nodes.push(Lan::node(lan.now, 1, |_| ()));
        lan.run(SECOND * 3);
        lan.nodes[1].llc_open(2);
        lan.loses = loses;
        let to = LlcAddress { socket: 2, node: 2 };
        let heard = |lan: &Lan| lan.nodes[1].llc().counters().messages_received;
        let mut outcomes = Vec::new();
        for _ in 0..3 {
            let before = heard(&lan);
            lan.next = 1;
            let (until, level) = (Instant::FAR, 0);
            let request =
                LlcRequest { socket: 2, number: 0, octets: 30, to, level, ack: true, tries: 1, until };
            lan.nodes[0].llc_send(lan.now, &request).expect("there is room");
            lan.run(SECOND * 2);
            let acked = lan.events.iter().any(|(_, event)| {
                matches!(event, LlcEvent::Done { outcome: MessageOutcome::Acknowledged, .. })
            });
            outcomes.push((acked, heard(&lan) - before));
            lan.events.clear();
        }
        assert_eq!((outcomes[0], outcomes[2]), ((true, 1), (true, 1)), "{outcomes:?}");
    }
}

/// More than 256 directions are in use one after another, and one that had to make room begins with the bit
/// of its last command: a late repetition of the same octets was acknowledged, and its message lost.
#[test]
fn a_direction_that_made_room_for_others_acknowledges_no_message_that_is_lost() {
    let strangers = |settings: &mut rota_proto::Settings| {
        let of = |k: u8| (k, rota_wire::MacAddr([6, 0, 0, 0, 0, k]));
        settings.llc.peer_macs.extend((10..150).filter(|k| *k != 0x77).map(of));
    };
    let mut lan = Lan::plain_with(2, strangers);
    let heard = |lan: &Lan| lan.nodes[1].llc().counters().messages_received;
    let first = lan.send(0, 2, 30, |request| (request.ack, request.tries) = (true, 1));
    lan.run(SECOND * 3);
    assert_eq!((lan.outcome(first), heard(&lan)), (Some(MessageOutcome::Acknowledged), 1));
    for socket in [2, 4] {
        for node in (10..150).filter(|node| *node != 0x77) {
            lan.send(0, node, 30, |request| (request.socket, request.ack) = (socket, true));
        }
    }
    lan.run(SECOND * 6);
    lan.events.clear();
    lan.left.clear();
    // The repetitions of more than a second are lost; the next message is like the one before.
    lan.loses = |at| at < 25;
    lan.next = 0;
    let again = lan.send(0, 2, 30, |request| (request.ack, request.tries) = (true, 60));
    lan.run(SECOND * 4);
    let outcome = lan.outcome(again).expect("it has ended");
    assert_eq!((outcome == MessageOutcome::Acknowledged, heard(&lan)), (false, 1), "{outcome:?}");
    // From an answer on the two agree again.
    lan.loses = |_| false;
    lan.send(0, 2, 30, |request| (request.ack, request.tries) = (true, 1));
    lan.run(SECOND * 3);
    assert_eq!(heard(&lan), 2);
}

#[test]
fn a_station_that_is_known_only_later_has_not_booted_again() {
    let mut lan = Lan::plain(1);
    lan.next = 1;
    let octets: Vec<u8> = (0..20).map(|at| octet(0, at)).collect();
    let frame = command(mac(1), 2, false, &octets);
    lan.hear(0, &frame);
    assert_eq!(lan.got.len(), 1);
    // Only now the sender is heard to be one of ours.
    lan.nodes.push(Lan::node(lan.now, 1, |_| ()));
    lan.run(ms(700));
    assert!(!lan.nodes[0].rether().members().is_empty());
    lan.hear(0, &frame);
    assert_eq!(lan.got.len(), 1, "the same command");
}

#[test]
fn a_late_answer_does_not_acknowledge_the_next_message() {
    let mut lan = Lan::plain(1);
    let first = lan.send(0, 0x77, 20, |request| request.ack = true);
    lan.run(SECOND);
    assert_eq!(lan.outcome(first), Some(MessageOutcome::Failed(MessageFailure::NoAnswer)));
    let asked = |lan: &Lan| LlcView::parse(&lan.left[lan.left.len() - 1].1).map(|view| view.header.control);
    let Ok(Control::Ac { bit, .. }) = asked(&lan) else { panic!("it was an acknowledged command") };
    let second = lan.send(0, 0x77, 30, |request| (request.ack, request.tries) = (true, 3));
    while lan.left.len() < 2 {
        lan.run(ms(10));
    }
    let control = Control::Ac { bit: !bit, poll: false };
    let answer = LlcHeader { dsap: 2, ssap: 2, response: true, control };
    lan.foreign(0, &answer, &[AckStatus::OK.0]);
    lan.run(SECOND);
    assert_eq!(lan.outcome(second), Some(MessageOutcome::Failed(MessageFailure::NoAnswer)));
}

#[test]
fn a_fragment_that_is_dropped_is_not_acknowledged_as_taken() {
    let mut lan = Lan::plain(1);
    let (total, size) = (1_494, 1_484);
    let of = Fragment { dsap: 2, ssap: 4, level: 0, index: 1, last: true, message: 9, total, size };
    let mut second = vec![0; FRAGMENT_OCTETS + 10];
    of.emit(&mut second);
    let malformed = &second[..FRAGMENT_OCTETS + 3];
    lan.hear(0, &command(FOREIGN, SAP_SNAP, false, malformed));
    lan.hear(0, &command(FOREIGN, SAP_SNAP, true, b"no SNAP at all"));
    // A well-formed one whose message was given up here, so that it can never be whole.
    lan.hear(0, &command(FOREIGN, SAP_SNAP, false, &second));
    lan.run(SECOND);
    let said: Vec<&[u8]> = lan.answers().iter().map(|view| view.information).collect();
    assert_eq!(said, [&[0x46][..], &[0x46], &[0x46]]);
    assert_eq!(lan.nodes[0].llc().counters().malformed.iter().sum::<u64>(), 2);
}

/// The first fragment of a message of several from this address; its rest never comes.
fn first_fragment(from: rota_wire::MacAddr, message: u16) -> Vec<u8> {
    fragment(from, message, 4_000, 0)
}

/// Eight such fragments a second took all room, and no message of several frames arrived.
#[test]
fn messages_that_are_never_whole_keep_no_room_from_others() {
    const STRANGER: fn(u16) -> rota_wire::MacAddr = |k| rota_wire::MacAddr([6, 0, 0, 0, 0, k as u8]);
    let sources: [fn(u16) -> rota_wire::MacAddr; 3] = [|_| STRANGER(1), STRANGER, |_| mac(2)];
    for from in sources {
        let mut lan = Lan::plain(3);
        lan.run(SECOND);
        (0..16).for_each(|message| lan.hear(0, &first_fragment(from(message), message)));
        let number = lan.send(1, 1, 6_000, |_| ());
        lan.run(ms(100));
        assert_eq!(lan.got(number), [(0, 6_000)]);
    }
}

/// Nine frames each 0.2 s with the source addresses of all members took all room for good, be they the same
/// again or new ones.
#[test]
fn fragments_in_the_names_of_all_members_keep_no_room_from_them() {
    for (forever, token) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut lan = if token { Lan::token(4) } else { Lan::plain(4) };
        lan.run(SECOND);
        let mut sent = Vec::new();
        for round in 0..8u16 {
            for nth in 0..9 {
                let message = 1_000 + nth + if forever { 0 } else { 9 * round };
                lan.hear(0, &first_fragment(mac(1 + usize::from(nth % 3)), message));
            }
            lan.run(ms(100));
            let k = 1 + usize::from(round % 3);
            sent.push(lan.send(k, 1, 4_000, |request| request.ack = round % 2 == 0));
            lan.run(ms(100));
        }
        lan.run(ms(500));
        let came = sent.iter().filter(|number| lan.got(**number) == [(0, 4_000)]).count();
        assert!(came >= 7, "{came} of 8; the same frames {forever}, under the token {token}");
    }
}

/// The newest message of many is refused; it does not make all of them incomplete.
#[test]
fn long_messages_of_many_at_once_are_whole_as_far_as_there_is_room() {
    let source = |k: u16| rota_wire::MacAddr([6, 0, 0, 0, 0, k as u8]);
    // Also where the frames of so many are further apart than fragments of one message are as a rule.
    for apart in [Span::from_micros(120), ms(4)] {
        let mut lan = Lan::plain_with(1, |settings| {
            settings.llc.peer_macs.extend((10..22).map(|k| (k as u8, source(k))));
        });
        lan.next = 22;
        for index in 0..12 {
            for k in 10..22 {
                lan.hear(0, &fragment(source(k), k, 16_384, index));
                lan.run(apart);
            }
        }
        assert!(lan.got.len() >= 8, "{} of 12 when frames are {apart} apart", lan.got.len());
        assert!(lan.got.iter().all(|got| got.octets == 16_384));
    }
}

/// Each acknowledged command of a stranger was answered as fast as it came.
#[test]
fn acknowledged_commands_of_strangers_get_so_many_answers_a_second() {
    let mut lan = Lan::plain(1);
    for step in 0..2_000u64 {
        lan.next = 1;
        let from = rota_wire::MacAddr([6, 0, 0, 0, 0, 9]);
        let octets: Vec<u8> = (0..20).map(|at| octet(0, at)).collect();
        lan.hear(0, &command(from, 6, step % 2 == 0, &octets));
        lan.run(ms(1));
    }
    lan.run(SECOND);
    let counters = lan.nodes[0].llc().counters();
    let answered = counters.messages_received + counters.duplicates;
    assert!((200..=264).contains(&answered), "{answered} in two seconds");
    assert_eq!(counters.answers_dropped, 2_000 - answered);
}

#[test]
fn a_flood_of_questions_does_not_keep_acknowledgements_back() {
    let mut lan = Lan::token(3);
    let control = Control::Test { poll: true };
    let question = LlcHeader { dsap: 0, ssap: 0x20, response: false, control };
    (0..200).for_each(|_| lan.foreign(0, &question, b"echo"));
    lan.next = 1;
    let octets: Vec<u8> = (0..20).map(|at| octet(0, at)).collect();
    lan.hear(0, &command(FOREIGN, 6, false, &octets));
    lan.run(SECOND);
    assert_eq!(lan.got.len(), 1);
    let acked = |view: &LlcView<'_>| matches!(view.header.control, Control::Ac { .. });
    assert!(lan.answers().iter().any(acked), "what was taken is acknowledged");
    assert!(lan.nodes[0].llc().counters().answers_dropped >= 100);
}

#[test]
fn the_token_s_own_signalling_does_not_wait_behind_messages() {
    let mut lan = Lan::token(3);
    lan.nodes[0].listen(9);
    let numbers: Vec<u64> = (0..800).map(|_| lan.send(1, 3, 1_400, |request| request.level = 7)).collect();
    let to = Destination::Node(lan.nodes[0].rether().node_id());
    let request = OpenRequest { to, service: 9, traffic: TrafficSpec::fixed(500, TRT_30_HZ, false) };
    lan.opened_at = Instant::FAR;
    let asked = lan.now;
    lan.nodes[1].open(lan.now, &request).expect("a sound request");
    lan.run(SECOND * 4);
    assert!(numbers.iter().all(|number| lan.outcome(*number) == Some(MessageOutcome::Sent)));
    let took = lan.opened_at.since(asked);
    assert!(took < ms(300), "the messages need a second, and opening a channel took {took}");
}

/// Its parent took a while to listen again, and whoever asked for less at once heard that nobody listens.
#[test]
fn who_was_refused_and_asks_for_less_at_once_finds_it_listening() {
    let mut lan = Lan::token(2);
    lan.nodes[1].listen(9);
    let to = Destination::Node(lan.nodes[1].rether().node_id());
    let request =
        |octets| OpenRequest { to, service: 9, traffic: TrafficSpec::fixed(octets, TRT_30_HZ, false) };
    (lan.opened, lan.refused) = (false, false);
    lan.nodes[0].open(lan.now, &request(100_000)).expect("a sound request");
    while !lan.refused {
        assert!(!lan.opened);
        lan.run(ms(1));
    }
    lan.nodes[0].open(lan.now, &request(1_000)).expect("a sound request");
    lan.run(ms(20));
    assert!(!lan.opened, "its parent has not had it listen yet");
    lan.nodes[1].listen_again(9);
    lan.run(SECOND);
    assert!(lan.opened);
    // And once it has taken its channel it is gone, as a listener takes one.
    lan.opened = false;
    lan.nodes[0].open(lan.now, &request(1_000)).expect("a sound request");
    lan.run(SECOND);
    assert!(!lan.opened);
}

#[test]
fn a_long_message_takes_its_turns_in_the_round() {
    let mut lan = Lan::token_with(3, |settings| settings.nrt_policy = Some(NrtPolicy::One));
    for tag in 0..30 {
        lan.host_frame(1, tag, 0);
        lan.host_frame(2, 100 + tag, 0);
    }
    let number = lan.send(0, 3, 16_384, |_| ());
    lan.run(SECOND * 3);
    assert_eq!(lan.outcome(number), Some(MessageOutcome::Sent));
    let first = lan.turns.iter().position(|turn| turn.0 == 0).expect("it left");
    let last = lan.turns.iter().rposition(|turn| turn.0 == 0).expect("it left");
    let between = &lan.turns[first..=last];
    for k in 0..3 {
        let of = between.iter().filter(|turn| turn.0 == k).count();
        assert!((11..=13).contains(&of), "station {k} had {of} turns: {between:?}");
    }
}

/// The same numbers at each run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[test]
fn whatever_is_lost_and_given_up_each_message_ends_once_and_no_place_is_lost() {
    for seed in 0..12 {
        let mut draw = Draw(seed);
        let mut lan = if seed % 2 == 0 { Lan::plain(3) } else { Lan::token(3) };
        // One frame in four is lost, as its number says.
        lan.loses = |at| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 == 0;
        (0..3).for_each(|k| lan.nodes[k].llc_open(4));
        let (mut numbers, mut cancelled) = (Vec::new(), Vec::new());
        for _ in 0..400 {
            let (k, to) = (draw.below(2) as usize, 1 + draw.below(3) as u8);
            let octets = [10, 500, 2_000, 6_000][draw.below(4) as usize];
            let socket = [2, 4][draw.below(2) as usize];
            let now = lan.now;
            let number = lan.send(k, to, octets, |request| {
                (request.socket, request.level) = (socket, draw.below(8) as u8);
                (request.ack, request.tries) = (draw.below(4) > 0, draw.below(12) as u8);
                if draw.below(4) == 0 {
                    request.until = now + ms(draw.below(400));
                }
            });
            numbers.push((k, number, socket));
            match draw.below(60) {
                0 => {
                    // Told nothing: what had not ended before is the program's own to count as given up.
                    lan.drain(k);
                    lan.nodes[k].llc_cancel(lan.now, socket);
                    let over = |number| lan.outcome(number).is_some();
                    let open =
                        numbers.iter().filter(|(of, number, on)| (*of, *on) == (k, socket) && !over(*number));
                    cancelled.extend(open.map(|(_, number, _)| *number));
                }
                1..=20 => lan.run(ms(draw.below(30))),
                _ => {}
            }
        }
        lan.run(SECOND * 200);
        for (_, number, _) in &numbers {
            let got = lan.got(*number).len();
            match lan.outcome(*number) {
                Some(MessageOutcome::Acknowledged) => assert_eq!(got, 1, "seed {seed}: message {number}"),
                Some(_) => assert!(got <= 1, "seed {seed}: message {number} came {got} times"),
                None => assert!(cancelled.contains(number), "seed {seed}: message {number} never ended"),
            }
        }
        let acked = numbers.iter().filter(|(_, n, _)| lan.outcome(*n) == Some(MessageOutcome::Acknowledged));
        assert!(acked.count() > 100, "seed {seed}");
        lan.loses = |_| false;
        let again: Vec<u64> = (0..1_024).map(|_| lan.send(0, 2, 10, |request| request.ack = true)).collect();
        lan.run(SECOND * 20);
        assert!(again.iter().all(|n| lan.outcome(*n) == Some(MessageOutcome::Acknowledged)), "seed {seed}");
    }
}

/// The receiver's memory takes its time, and the first unit is not to come before it.
#[test]
fn a_sender_waits_until_the_receiver_has_room() {
    let mut lan = Lan::token(2);
    lan.nodes[1].listen(9);
    let to = Destination::Node(lan.nodes[1].rether().node_id());
    let request = OpenRequest { to, service: 9, traffic: TrafficSpec::fixed(1_000, TRT_30_HZ, false) };
    (lan.opened, lan.has_room) = (false, false);
    lan.nodes[0].open(lan.now, &request).expect("a sound request");
    lan.run(ms(400));
    let (at, channel) = lan.waiting.expect("it was asked for");
    assert!(at == 1 && !lan.opened, "nobody has said that there is room");
    assert!(lan.nodes[1].accept(lan.now, channel));
    lan.drain(1);
    lan.run(ms(200));
    assert!(lan.opened);
}

/// Its end was told before its place was made, and no second end will have the place taken away.
#[test]
fn a_channel_that_has_ended_before_it_has_room_is_not_accepted() {
    let mut lan = Lan::token(2);
    lan.nodes[1].listen(9);
    let to = Destination::Node(lan.nodes[1].rether().node_id());
    let request = OpenRequest { to, service: 9, traffic: TrafficSpec::fixed(1_000, TRT_30_HZ, false) };
    lan.has_room = false;
    let sent = lan.nodes[0].open(lan.now, &request).expect("a sound request");
    lan.run(ms(400));
    let (_, channel) = lan.waiting.expect("it was asked for");
    lan.nodes[0].abort(lan.now, sent);
    lan.drain(0);
    lan.run(ms(400));
    assert!(!lan.nodes[1].accept(lan.now, channel));
}

#[test]
fn commands_of_strangers_do_not_keep_answers_to_questions_back() {
    let mut lan = Lan::plain(1);
    let stranger = rota_wire::MacAddr([6, 0, 0, 0, 0, 9]);
    let octets: Vec<u8> = (0..20).map(|at| octet(0, at)).collect();
    lan.next = 1;
    (0..200).for_each(|step| lan.hear(0, &command(stranger, 6, step % 2 == 0, &octets)));
    let control = Control::Test { poll: true };
    lan.foreign(0, &LlcHeader { dsap: 0, ssap: 0x20, response: false, control }, b"echo");
    lan.run(SECOND);
    assert_eq!(lan.answers().len(), 1);
}
