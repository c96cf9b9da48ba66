//! The segment in a time of the test's own: what passes, what is struck, and when scripts begin and end.

use super::segment::{Plan, Segment, SegmentOutput};
use rota_sim::{Fault, Happened, Select, Timed, Topology, WireFault, WorldSpec};
use rota_units::{BitRate, Instant, Octets, Span};

const MBIT10: BitRate = BitRate::from_mbit(10);
const START: Instant = Instant::from_nanos(1_000_000_000);

fn plan(ports: usize) -> Plan {
    let topology = if ports == 2 { Topology::Link { delay: Span::ZERO } } else { Topology::Switch };
    let world = WorldSpec { topology, latency: Span::ZERO, strangers: 1, ..WorldSpec::new(ports) };
    Plan { world, standing: Vec::new(), seed: 1 }
}

/// An ordinary frame between two ports, or to all.
fn frame(from: u8, to: Option<u8>) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&to.map_or([0xff; 6], |to| [2, 0, 0, 0, 0, to]));
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, from]);
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame
}

/// Who got a frame and when, in microseconds from the start, until `at`.
fn run(segment: &mut Segment, at: Instant) -> Vec<(usize, u64)> {
    let mut got = Vec::new();
    loop {
        // As the hub's loop does it: never beyond what is due.
        let due = segment.next_at().min(at);
        segment.advance(due, |outcome| {
            if let SegmentOutput::Deliver { to, .. } = outcome {
                got.push((to, due.since(START).as_nanos() / 1_000));
            }
        });
        if due == at {
            return got;
        }
    }
}

fn after(ms: u64) -> Instant {
    START + Span::from_millis(ms)
}

fn timed(at: u64, lasts: u64, fault: Fault) -> Timed {
    Timed::new(Span::from_millis(at), Span::from_millis(lasts), fault)
}

#[test]
fn frames_take_their_time_on_both_wires_and_go_where_they_belong() {
    let mut segment = Segment::new(START, plan(3));
    segment.take(0, &frame(1, None));
    assert_eq!(run(&mut segment, after(1)), [(1, 136), (2, 136)], "67.2 us a wire, 2 us in the switch");
    segment.take(2, &frame(3, Some(1)));
    assert_eq!(run(&mut segment, after(2)), [(0, 1_136)], "it has learnt where 1 is");
    let mut slow = plan(2);
    slow.world.latency = Span::from_millis(3);
    let mut link = Segment::new(START, slow);
    link.take(1, &frame(2, None));
    assert_eq!(run(&mut link, after(9)), [(0, 3_067)], "one wire, and the delay");
}

#[test]
fn on_a_shared_segment_all_hear_all_and_two_at_once_collide() {
    let world = WorldSpec { latency: Span::ZERO, ..WorldSpec::csma_cd(3, MBIT10, Octets::new(16_000)) };
    let mut segment = Segment::new(START, Plan { world, standing: Vec::new(), seed: 1 });
    segment.take(0, &frame(1, Some(2)));
    segment.take(2, &frame(3, Some(2)));
    let mut heard: Vec<usize> = run(&mut segment, after(10)).iter().map(|(to, _)| *to).collect();
    heard.sort_unstable();
    assert_eq!(heard, [0, 1, 1, 2], "each heard by the two others");
    assert!(segment.medium().aborted >= 2, "{:?}", segment.medium());
}

#[test]
fn a_script_begins_ends_and_is_followed_anew() {
    let mut segment = Segment::new(START, plan(3));
    segment.follow(vec![timed(5, 10, Fault::Partition { part: vec![0] })]);
    let mut heard = |at: u64| {
        run(&mut segment, after(at));
        segment.take(0, &frame(1, None));
        let heard = run(&mut segment, after(at + 1)).len();
        (heard, segment.happened().of(Happened::Partitioned), segment.happened().of(Happened::Merged))
    };
    assert_eq!([heard(1), heard(6), heard(20)], [(2, 0, 0), (0, 1, 0), (2, 1, 1)]);
    // Read again: it begins from then. Read once more in its middle: what was cut meets again at once.
    segment.follow(vec![timed(5, 10, Fault::Partition { part: vec![0] })]);
    run(&mut segment, after(30));
    assert_eq!(segment.happened().of(Happened::Partitioned), 2);
    segment.follow(Vec::new());
    assert_eq!(segment.happened().of(Happened::Merged), 2);
    assert_eq!(segment.next_at(), after(36), "the end of a fault of the old reading is still in the queue");
    run(&mut segment, after(50));
    assert_eq!(
        (segment.happened().of(Happened::Merged), segment.next_at()),
        (2, Instant::FAR),
        "and does nothing"
    );
}

#[test]
fn a_fault_of_frames_without_an_end_lasts_and_flapping_stops_at_its_end() {
    let mut segment = Segment::new(START, plan(3));
    let nth = WireFault::Nth { first: 2, count: 1 };
    let flap = Fault::Flap { host: 1, period: Span::from_millis(4) };
    let lost = Fault::Wire { fault: nth, select: Select::all() };
    segment.follow(vec![timed(0, 0, lost), timed(10, 10, flap)]);
    let mut heard = |at: u64| {
        run(&mut segment, after(at));
        segment.take(0, &frame(1, Some(2)));
        run(&mut segment, after(at + 1)).iter().filter(|(to, _)| *to == 1).count()
    };
    assert_eq!([heard(1), heard(3), heard(10), heard(12), heard(14), heard(30)], [1, 1, 0, 1, 0, 1]);
    let tally = segment.happened();
    assert_eq!((tally.of(Happened::FrameLost), tally.of(Happened::Flapped)), (1, 5));
}

#[test]
fn what_is_wrong_all_the_time_stays_wrong_when_the_script_changes() {
    let standing = vec![WireFault::Loss { ppm: 1_000_000, burst: 1 }];
    let mut segment = Segment::new(START, Plan { standing, ..plan(3) });
    segment.follow(Vec::new());
    segment.take(0, &frame(1, None));
    assert_eq!(run(&mut segment, after(1)), []);
    assert_eq!(segment.happened().of(Happened::FrameLost), 2);
}

#[test]
fn somebody_sends_what_no_station_sent() {
    let gap = Span::from_millis(1);
    let heard = |ports: usize, fault: Fault, what: Happened| {
        let mut segment = Segment::new(START, plan(ports));
        segment.follow(vec![timed(5, 10, fault)]);
        // An old frame of ours, from each station, so that all know where all are.
        let ether_type = plan(ports).world.settings.ether_type.to_be_bytes();
        for from in 0..ports as u8 {
            let mut ours = frame(from + 1, None);
            ours[12..14].copy_from_slice(&ether_type);
            segment.take(usize::from(from), &ours);
        }
        run(&mut segment, after(4));
        let got = run(&mut segment, after(100)).len() as u64;
        (segment.happened().of(what), got)
    };
    assert_eq!(heard(3, Fault::Babble { host: 1, gap, octets: 60 }, Happened::Babbled), (10, 10));
    assert_eq!(heard(3, Fault::Forge { gap }, Happened::Forged), (10, 10));
    assert_eq!(heard(2, Fault::Replay { gap }, Happened::Replayed), (10, 10));
    let (floods, frames) = heard(3, Fault::Flood { octets: 60, broadcast: true }, Happened::Flooded);
    assert!((140..150).contains(&floods) && frames == 3 * floods, "{floods} of 67.2 us each, {frames} got");
}
