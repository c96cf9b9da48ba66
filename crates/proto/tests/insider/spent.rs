//! A holder of the key that spends a station's frame counters at one other station (decision 018).

use super::*;

/// A frame for station `to` in the name of station `whom`.
fn forged(segment: &Segment, whom: usize, to: usize, of: (u32, u64), answers: u64) -> Vec<u8> {
    let known = segment.nodes[to].rether().member_at(mac(whom)).expect("known").clone();
    let mut said = known.announce;
    (said.answers, said.settings) = (answers, segment.settings.digest());
    let generation = segment.nodes[to].rether().newest();
    let (source, kind, (incarnation, seq)) = (known.station, Kind::Announce, of);
    let header = LinkHeader { kind, source, incarnation, generation, seq, ..segment.headers[INSIDER] };
    let mut frame = vec![0; 1_514];
    let octets = said.emit(&mut frame[42..]);
    let key = segment.key.clone();
    let length = emit_frame(&mut frame, mac(to), mac(whom), DEFAULT_ETHERTYPE, &header, octets, &key);
    frame.truncate(length);
    frame
}

/// A frame reaches this station alone: nobody else notices it. True if it counts.
fn hears(segment: &mut Segment, to: usize, frame: &[u8]) -> bool {
    let refused = |segment: &Segment| segment.nodes[to].rether().counters().frames_replayed;
    let before = refused(segment);
    let input = Input::Frame { port: PortId(0), at: Some(segment.now), data: frame };
    segment.nodes[to].handle(segment.now, input);
    segment.drain(to);
    refused(segment) == before
}

fn spend(segment: &mut Segment, whom: usize, to: usize, incarnation: u32, seq: u64) {
    let frame = forged(segment, whom, to, (incarnation, seq), 0);
    hears(segment, to, &frame);
}

/// A segment in which station 0's counters were spent at station 1 in so many leaps, and its frames until
/// some seconds after the answer.
fn asked_and_answered(leaps: u64, each: u64) -> (Segment, Vec<Vec<u8>>) {
    let mut segment = Segment::new(1);
    segment.recorded = Some(Vec::new());
    segment.run(Span::from_millis(5_500));
    let incarnation = segment.nodes[0].rether().incarnation();
    (1..=leaps).for_each(|leap| spend(&mut segment, 0, 1, incarnation, leap * each));
    segment.run(Span::from_millis(8_000));
    let recorded = segment.recorded.take().expect("recorded");
    (segment, recorded)
}

/// The question on the wire, which then does not get to where it goes.
fn take_question(segment: &mut Segment) -> Option<JoinAnswer> {
    let asked = |frame: &[u8]| {
        let view = FrameView::parse(frame, DEFAULT_ETHERTYPE).ok()?;
        let answer =
            JoinAnswer::parse(view.body()).ok().filter(|_| view.header().kind == Kind::JoinAnswer)?;
        (answer.verdict == Verdict::Behind).then_some(answer)
    };
    let found = segment.wire.iter().find_map(|(_, frame)| asked(frame));
    segment.wire.retain(|(_, frame)| asked(frame).is_none());
    found
}

fn counter_of(frame: &[u8]) -> u64 {
    FrameView::parse(frame, DEFAULT_ETHERTYPE).expect("sound").header().seq
}

/// The frame counters of a station were spent at one other station, which took all its true frames for
/// replays from then on: no channel between the two was opened any more.
#[test]
fn a_station_whose_frame_counter_another_spends_is_heard_again() {
    for (ring, leaps, both, boots) in [
        (true, 1, false, false),
        (false, 1, false, false),
        (true, 1, true, false),
        (false, 40, false, false),
        (true, 40, true, false),
        (false, 3, false, true),
    ] {
        let what = format!("in a ring {ring}, {leaps} leaps, both ways {both}, another boot {boots}");
        let mut segment = Segment::new(1);
        segment.run(Span::from_millis(2_500));
        if ring {
            segment.open(2, 1);
            segment.run(Span::from_millis(500));
        }
        let before = segment.opened;
        for (whom, to) in [(0, 1), (1, 0)].into_iter().take(1 + usize::from(both)) {
            let incarnation = segment.nodes[whom].rether().incarnation();
            for leap in 1..=leaps {
                spend(&mut segment, whom, to, incarnation, leap * 1_000_000);
            }
            if boots {
                spend(&mut segment, whom, to, incarnation ^ 2, 1);
            }
        }
        segment.run(Span::from_millis(100));
        segment.open(0, 1);
        segment.run(Span::from_millis(10_000));
        assert_eq!(segment.opened, before + 1, "{what}");
        let asked: u64 = segment.nodes.iter().map(|node| node.rether().counters().senders_behind).sum();
        assert!((1..20).contains(&asked), "{what}: {asked} questions");
    }
}

/// Recorded frames from before and after a question, its answer too, are old to the station that asked.
#[test]
fn after_the_answer_no_frame_of_the_station_is_new_again() {
    let (mut segment, recorded) = asked_and_answered(5, 1_000_000);
    let counters = |segment: &Segment| *segment.nodes[1].rether().counters();
    assert_eq!(counters(&segment).senders_behind, 1, "asked once, then it is heard again");
    assert!(recorded.len() >= 8, "{} frames", recorded.len());
    let before = counters(&segment);
    for frame in &recorded {
        let input = Input::Frame { port: PortId(0), at: Some(segment.now), data: frame };
        segment.nodes[1].handle(segment.now, input);
    }
    let refused = counters(&segment).frames_replayed - before.frames_replayed;
    assert_eq!(refused, recorded.len() as u64, "every one of them is refused");
}

/// Frames between the counter that a station had here before its answer and the one of the answer: those of
/// the insider put the counter up again, where somebody played them once more.
#[test]
fn frames_between_the_old_counter_and_the_answers_are_old() {
    let mut segment = Segment::new(1);
    segment.run(Span::from_millis(5_500));
    let incarnation = segment.nodes[0].rether().incarnation();
    let mut between = Vec::new();
    for seq in [1_000_000, 1_500_000, 2_000_000, 2_500_000] {
        let frame = forged(&segment, 0, 1, (incarnation, seq), 0);
        if hears(&mut segment, 1, &frame) {
            between.push(frame);
        }
    }
    assert!(!between.is_empty());
    segment.run(Span::from_millis(8_000));
    assert_eq!(segment.nodes[1].rether().counters().senders_behind, 1, "asked once, then it is heard again");
    for frame in &between {
        assert!(!hears(&mut segment, 1, frame), "{} counts again", counter_of(frame));
    }
    let before = segment.opened;
    segment.open(0, 1);
    segment.run(Span::from_millis(500));
    assert_eq!(segment.opened, before + 1, "its own frames count");
}

/// The insider answers in the station's place, with a counter below frames that somebody has recorded.
#[test]
fn an_answer_of_the_insider_makes_no_recorded_frame_new() {
    for leaps in [0, 1, 3] {
        let mut segment = Segment::new(1);
        segment.recorded = Some(Vec::new());
        segment.run(Span::from_millis(20_500));
        let recorded = segment.recorded.take().expect("recorded");
        let own = |frame: &&Vec<u8>| frame[..6] == MacAddr::BROADCAST.0 || frame[..6] == mac(1).0;
        let recorded: Vec<Vec<u8>> = recorded.iter().filter(own).cloned().collect();
        assert!(recorded.len() >= 20, "{} frames", recorded.len());
        let incarnation = segment.nodes[0].rether().incarnation();
        for leap in 1..=leaps {
            spend(&mut segment, 0, 1, incarnation, leap * 300_000);
        }
        // Two old frames provoke the question.
        recorded[..2].iter().for_each(|frame| assert!(!hears(&mut segment, 1, frame)));
        let asked = take_question(&mut segment).expect("it asks");
        for counter in [counter_of(&recorded[2]), 1] {
            let answer = forged(&segment, 0, 1, (incarnation, counter), asked.challenge);
            hears(&mut segment, 1, &answer);
            for frame in &recorded {
                assert!(!hears(&mut segment, 1, frame), "{leaps} leaps: {} counts again", counter_of(frame));
            }
        }
    }
}

/// The insider keeps the true answer, and plays it when another question is open.
#[test]
fn an_answer_counts_once() {
    let (mut segment, recorded) = asked_and_answered(3, 300_000);
    let incarnation = segment.nodes[0].rether().incarnation();
    let is_answer = |frame: &&Vec<u8>| {
        let view = FrameView::parse(frame, DEFAULT_ETHERTYPE).expect("sound");
        let said = Announce::parse(view.body()).ok().filter(|_| view.header().kind == Kind::Announce);
        said.is_some_and(|said| said.answers != 0)
    };
    let answer = recorded.iter().find(is_answer).expect("it has answered").clone();
    for again in 0..3 {
        assert!(!hears(&mut segment, 1, &answer), "the answer counts again");
        // More leaps, and the next question.
        let ahead = counter_of(&answer) + 200_000 * (again + 1);
        spend(&mut segment, 0, 1, incarnation, ahead);
        recorded[..2].iter().for_each(|frame| assert!(!hears(&mut segment, 1, frame)));
        assert!(take_question(&mut segment).is_some(), "it asks for the {again}. time");
        assert!(!hears(&mut segment, 1, &answer), "the answer counts for the question {again}");
        segment.run(Span::from_millis(5_000));
    }
}
