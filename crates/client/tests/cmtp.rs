//! Streams of continuous media against a node without a network.

mod fake_node;

use fake_node::{Behaviour, FakeNode, ms, unit_octets};
use rota::cmtp::{Played, StreamSink, StreamSource, StreamUnit, UnitState, buffers_for};
use rota::{End, Node, OpenRequest, RecvError, SendError, Span, now};

const SERVICE: u16 = 7;
const PERIOD: Span = Span::from_millis(20);
const OCTETS: usize = 4_000;

/// A stream through a fake node, with two units of work-ahead.
fn stream(behaviour: Behaviour) -> (FakeNode, StreamSource, StreamSink) {
    stream_every(PERIOD, behaviour)
}

fn stream_every(period: Span, behaviour: Behaviour) -> (FakeNode, StreamSource, StreamSink) {
    let fake = FakeNode::start(behaviour);
    let node = Node::connect(&fake.name).unwrap();
    let mut listener = node.listen(SERVICE, None, 16).unwrap();
    let buffers = buffers_for(2);
    let request = OpenRequest { buffers, ..OpenRequest::new("n1", SERVICE, OCTETS as u32, period) };
    let channel = node.open(&request).unwrap();
    let sink = StreamSink::begin(listener.accept(ms(5_000)).unwrap(), 2);
    let source = StreamSource::begin(channel, 2, ms(5_000)).unwrap();
    (fake, source, sink)
}

/// All units and marks of a stream in order, each at its play-out point, and its end.
fn play(sink: &mut StreamSink) -> (Vec<StreamUnit>, Result<End, RecvError>) {
    let (mut units, mut octets) = (Vec::new(), Vec::new());
    loop {
        match sink.next(&mut octets, ms(5_000)) {
            Ok(Played::Unit(unit)) => {
                assert!(now() >= unit.due, "unit {} was played before its time", unit.number);
                match unit.state {
                    UnitState::Whole => assert!(octets == unit_octets(unit.number, OCTETS)),
                    UnitState::InPart { .. } => assert_eq!(octets.len(), OCTETS),
                    UnitState::Late | UnitState::Lost => assert!(octets.is_empty()),
                }
                units.push(unit);
            }
            Ok(Played::End(end)) => return (units, Ok(end)),
            Err(error) => return (units, Err(error)),
        }
    }
}

/// A machine that stands still leaves units out, and marks them: of these there is no fixed number.
#[test]
fn each_unit_is_played_in_its_place_or_marked() {
    // Nothing comes of unit 5, unit 8 loses a fragment, and nothing comes of the last one.
    let loss = |number, fragment| matches!((number, fragment), (5 | 19, _) | (8, 1));
    let (_fake, mut source, mut sink) = stream(Behaviour { loss, ..Behaviour::default() });
    assert_eq!(source.ahead(), 2, "six buffers, of which the bound of two periods needs three");
    let playing = std::thread::spawn(move || {
        let played = play(&mut sink);
        (played, sink.tally())
    });
    let units = source.run(|number, unit| {
        unit.extend_from_slice(&unit_octets(number, OCTETS));
        number < 20
    });
    assert!(units.is_ok_and(|units| units >= 20), "{units:?}");
    let left_out = source.channel().left_out();
    source.finish(ms(5_000)).unwrap();
    let ((units, end), tally) = playing.join().unwrap();
    let end = end.unwrap();
    for (at, unit) in units.iter().enumerate() {
        let before = at.checked_sub(1).map_or(0, |before| units[before].number + 1);
        assert_eq!(unit.number, before + unit.lost_before, "in order, and none is missing without a mark");
        match unit.number {
            5 => assert!(matches!(unit.state, UnitState::Lost | UnitState::Late), "{unit:?}"),
            8 => assert!(!matches!(unit.state, UnitState::Whole), "{unit:?}"),
            _ => {}
        }
    }
    let stated = end.units_sent.unwrap();
    let all = tally.whole + tally.in_part + tally.late + tally.lost;
    assert_eq!(all, stated, "each unit is in one count: {tally:?}");
    assert!(tally.lost >= 2 && tally.whole + left_out >= 16, "{tally:?}, {left_out} left out");
}

#[test]
fn a_unit_behind_its_play_out_point_is_marked_at_once_and_counted_as_late_when_it_comes() {
    let (fake, mut source, mut sink) = stream(Behaviour::default());
    let mut octets = Vec::new();
    let first = source.wait().unwrap();
    source.put(&unit_octets(first, OCTETS)).unwrap();
    source.channel().wait_progress(1, ms(5_000)).unwrap();
    // The node holds on to the next unit until its play-out point has passed.
    fake.behave(Behaviour { drains: false, ..Behaviour::default() });
    let held = source.wait().unwrap();
    source.put(&unit_octets(held, OCTETS)).unwrap();
    let mut played = || match sink.next(&mut octets, ms(5_000)) {
        Ok(Played::Unit(unit)) => unit,
        other => panic!("a unit or a mark was due: {other:?}"),
    };
    let unit = played();
    assert_eq!((unit.number, unit.state), (first, UnitState::Whole));
    loop {
        let (began, mark) = (now(), played());
        assert_eq!((mark.state, mark.unit), (UnitState::Late, None));
        assert!(now().since(began) < ms(2_000), "it is not waited for");
        if mark.number == held {
            break;
        }
    }
    fake.behave(Behaviour::default());
    source.finish(ms(5_000)).unwrap();
    let (_, end) = play(&mut sink);
    let tally = sink.tally();
    assert!(end.is_ok() && (tally.whole, tally.late) == (1, 1) && tally.latest_by_ns > 0, "{tally:?}");
}

/// After a thousand periods of silence a unit was counted as lost and as late, and marks of no unit as lost.
#[test]
fn a_unit_that_comes_after_a_long_silence_is_in_one_count() {
    let (fake, mut source, mut sink) = stream_every(ms(1), Behaviour::default());
    let mut octets = Vec::new();
    let put = |source: &mut StreamSource| loop {
        match source.put(&unit_octets(0, OCTETS)) {
            Ok(number) => return number,
            Err(SendError::LeftOut) => {}
            Err(error) => panic!("{error}"),
        }
    };
    put(&mut source);
    source.channel().wait_progress(1, ms(5_000)).unwrap();
    fake.behave(Behaviour { drains: false, ..Behaviour::default() });
    let held = put(&mut source);
    let mut marks = 0;
    while marks < 1_200 {
        match sink.next(&mut octets, ms(5_000)) {
            Ok(Played::Unit(unit)) => marks += u32::from(unit.state == UnitState::Late),
            other => panic!("a unit or a mark was due: {other:?}"),
        }
    }
    fake.behave(Behaviour::default());
    source.finish(ms(5_000)).unwrap();
    let (_, end) = play(&mut sink);
    let (tally, stated) = (sink.tally(), end.unwrap().units_sent.unwrap());
    assert_eq!((tally.whole, tally.late, stated), (1, 1, held + 1), "{tally:?}");
    assert_eq!(tally.lost, stated - 2, "those that were left out: {tally:?}");
}

/// Work-ahead fills the ring and makes no burst: the schedule of a unit is a period behind the one before it.
#[test]
fn units_that_are_put_at_once_are_scheduled_a_period_apart() {
    let (_fake, mut source, mut sink) = stream(Behaviour::default());
    // A machine that stands still in between is asked once more.
    let (one, other) = loop {
        source.wait().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(25));
        let began = now();
        let put = (source.put(b"one"), source.put(b"other"));
        if let ((Ok(one), Ok(other)), true) = (put, now().since(began) < ms(10)) {
            break (one, other);
        }
    };
    source.finish(ms(5_000)).unwrap();
    let (mut schedules, mut octets) = (Vec::new(), Vec::new());
    while let Played::Unit(unit) = sink.next(&mut octets, ms(5_000)).unwrap() {
        schedules.extend(unit.unit.map(|came| (unit.number, came.schedule_ns)));
    }
    let schedule = |number: u64| schedules.iter().find(|(of, _)| *of == number).expect("it came").1;
    assert_eq!(other, one + 1);
    assert!(schedule(other) - schedule(one) >= PERIOD.as_nanos());
}

#[test]
fn the_end_of_a_node_ends_both_ends_of_a_stream() {
    let (fake, mut source, mut sink) = stream(Behaviour::default());
    source.put(&unit_octets(0, OCTETS)).unwrap();
    drop(fake);
    let (_, end) = play(&mut sink);
    assert_eq!(end, Err(RecvError::NodeGone));
    let ended = loop {
        match source.put(b"x") {
            Ok(_) | Err(SendError::LeftOut) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(ended, SendError::NodeGone);
}

/// A source is called by time: its windows open a period apart, whatever it does in between.
#[test]
fn windows_open_by_time_and_units_whose_time_has_passed_are_left_out() {
    let (_fake, mut source, _sink) = stream(Behaviour::default());
    let first = source.wait().unwrap();
    assert!(now() >= source.opens() && source.time() == source.opens() + PERIOD * 2);
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(source.put(b"too late"), Err(SendError::LeftOut));
    let next = source.wait().unwrap();
    assert!(next >= first + 6, "ten periods have passed, and two are worked ahead: {first}, {next}");
    assert_eq!(source.channel().left_out(), next);
    assert!(now() < source.time());
}
