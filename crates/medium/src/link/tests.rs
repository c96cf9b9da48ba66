//! One end of a link with a wire of its rate and a port that sends what it is granted. Each unit has to be
//! through the wire in the time that the proof of `cable.rs` gives it.

use super::*;
use crate::door::{FlowShare, Grant, Lane, Life, SessionId, Share, Turn, Units, Visited};
use rota_admission::rtip::{Chance, Traffic};
use rota_admission::{Admitted, Pace, link_window};
use rota_contract::NodeId;
use rota_units::{BitRate, Octets};
use rota_wire::bodies::StationState;
use rota_wire::{Announce, ETHERNET_HEADER_OCTETS, LINK_HEADER_OCTETS, TAG_OCTETS, UNIT_HEADER_OCTETS};

mod groups;
mod lives;
mod offers;
mod reshape;
mod statistical;

const HEADERS: u64 = (ETHERNET_HEADER_OCTETS + LINK_HEADER_OCTETS + UNIT_HEADER_OCTETS + TAG_OCTETS) as u64;
/// A step of the bench's clock.
const STEP: Span = Span::from_micros(1);

fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

/// A session of the port.
struct Queue {
    id: SessionId,
    pace: Pace,
    octets: u64,
    /// Octets left of each unit that waits.
    waits: VecDeque<u64>,
    /// When each unit was through the wire.
    through: Vec<Instant>,
}

struct Bench {
    link: Link,
    now: Instant,
    wire: Instant,
    queues: Vec<Queue>,
    /// Ordinary frames of full length wait without end.
    is_flooded: bool,
    visited: Option<u32>,
    heard: Vec<MediumEvent>,
    /// When each hello left.
    hellos: Vec<Instant>,
}

impl Bench {
    /// A link whose other end is known.
    fn new(mbit: u64) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let mac = |last| MacAddr([2, 0, 0, 0, 0, last]);
        let me = Identity { node_id: NodeId(1), boot_id: 9, mac: mac(1), name: "a".to_owned() };
        let mut settings = Settings::ethernet(BitRate::from_mbit(mbit), Octets::new(15_000));
        settings.medium = crate::door::MediumKind::Link;
        let mut link = Link::new(now, PortId(0), me, &Key::new([1; 32]), settings, 7);
        let said = Announce::new(NodeId(2), 5, 9, StationState::Plain, "b");
        link.members.announce(now, 2, mac(2), 3, &said, 1);
        link.own.station = 1;
        let (heard, hellos) = (Vec::new(), Vec::new());
        let (wire, queues, visited) = (now, Vec::new(), None);
        Self { link, now, wire, queues, is_flooded: true, visited, heard, hellos }
    }

    /// The same without ordinary traffic.
    fn quiet(mbit: u64) -> Self {
        Self { is_flooded: false, ..Self::new(mbit) }
    }

    fn trt(&self) -> Span {
        self.link.settings.trt
    }

    fn window(&self) -> Span {
        link_window(self.trt())
    }

    /// Asks for a share; the place of its queue.
    fn ask(&mut self, octets: u64, period: Span) -> usize {
        let pace = Pace::of(period, self.trt()).expect("a sound period");
        let id = SessionId(self.queues.len() as u64 + 1);
        self.link.reserve(
            self.now,
            id,
            Share { unit_octets_max: octets as u32, pace, periodic: false, partition: 0, flow: None },
        );
        self.queues.push(Queue { id, pace, octets, waits: VecDeque::new(), through: Vec::new() });
        self.queues.len() - 1
    }

    /// The answer to a share, if there is one.
    fn answer(&self, at: usize) -> Option<Result<Admitted, ()>> {
        self.heard.iter().find_map(|event| match event {
            MediumEvent::Reserved { session, admitted } if *session == self.queues[at].id => {
                Some(Ok(*admitted))
            }
            MediumEvent::Refused { session, .. } if *session == self.queues[at].id => Some(Err(())),
            _ => None,
        })
    }

    /// One that is admitted.
    fn open(&mut self, octets: u64, period: Span) -> usize {
        let at = self.ask(octets, period);
        self.run(ms(50));
        assert!(self.answer(at).is_some_and(|answer| answer.is_ok()), "{octets} each {period}");
        at
    }

    fn unit(&mut self, at: usize) {
        let queue = &mut self.queues[at];
        queue.waits.push_back(queue.octets);
        self.link.note_units(self.now, queue.id, Units::Join);
    }

    fn run(&mut self, span: Span) {
        self.run_until(self.now + span);
    }

    fn run_until(&mut self, until: Instant) {
        while self.now < until {
            self.link.note_alive(self.now);
            let wants = self.turn();
            self.now = wants.min(until).max(self.now + Span::from_nanos(1));
        }
    }

    /// All that may leave now; when the link wants to be called again.
    fn turn(&mut self) -> Instant {
        let now = self.now;
        self.link.on_card_empty(now);
        self.link.handle_deadline(now);
        self.link.set_demand(self.is_flooded.then_some(Demand { octets: 1_514, leads: false }));
        loop {
            self.link.begin_turn(now);
            while self.link.next_note().is_some() {}
            while let Some(event) = self.link.next_event() {
                self.heard.push(event);
            }
            let mut bytes = [0; 1_600];
            while let Some(frame) = self.link.write_frame(now, &mut bytes) {
                if let crate::door::Frame::Written(octets) = frame {
                    self.hand_over(octets);
                    self.hellos.push(now);
                }
            }
            match self.link.advance(now) {
                Turn::Grant(grant) => self.spend(&grant),
                Turn::On => {}
                Turn::Wait => break,
            }
        }
        self.link.deadline().at
    }

    fn hand_over(&mut self, octets: u16) {
        self.wire = self.wire.max(self.now) + self.link.frame_time(octets);
    }

    fn spend(&mut self, grant: &Grant) {
        let now = self.now;
        let Lane::RealTime(id) = grant.lane else {
            let fits = grant.fits(now, self.link.frame_time(1_514));
            if !fits || !self.is_flooded || self.visited == Some(grant.number) {
                self.link.done(now, Visited::Used(1));
                return;
            }
            self.visited = Some(grant.number);
            self.hand_over(1_514);
            return self.link.spent(now, 1_514);
        };
        let payload = self.link.settings.link.framing.unit_payload_max();
        let queue = self.queues.iter_mut().find(|queue| queue.id == id).expect("a session of the port");
        let Some(left) = queue.waits.front_mut() else { return self.link.done(now, Visited::Used(0)) };
        let part = payload.min(*left);
        let octets = (HEADERS + part) as u16;
        if !grant.fits(now, self.link.frame_time(octets)) {
            return self.link.done(now, Visited::Used(0));
        }
        *left -= part;
        let is_last = *left == 0;
        self.link.spent(now, octets);
        self.hand_over(octets);
        if is_last {
            let (through, queue) = (self.wire, self.queues.iter_mut().find(|queue| queue.id == id));
            let queue = queue.expect("a session of the port");
            queue.waits.pop_front();
            queue.through.push(through);
            self.link.note_units(now, id, Units::Leave);
            self.link.done(now, Visited::Used(1));
        }
    }

    /// Units of several queues, ready at these times, and the time in which all leave.
    fn play(&mut self, mut units: Vec<(Instant, usize)>) {
        units.sort_unstable();
        for (ready, at) in units {
            self.run_until(ready);
            self.unit(at);
        }
        self.run(self.trt() * 80);
    }

    /// When the proof has each unit of a queue through the wire, by when it was ready: its last slot ends a
    /// window behind its opening.
    fn latest(&self, at: usize, ready: &[Instant]) -> Vec<Instant> {
        let (queue, window) = (&self.queues[at], self.window());
        let framing = &self.link.settings.link.framing;
        let share = queue.pace.share(Octets::new(queue.octets), framing);
        let parts = framing.frames_of(Octets::new(queue.octets)).div_ceil(framing.frames_of(share).max(1));
        let mut openings: Vec<Instant> = Vec::new();
        let end = |ready: &Instant| {
            for _ in 0..parts {
                let before = openings.len().checked_sub(queue.pace.units() as usize);
                openings.push(before.map_or(*ready, |before| (openings[before] + window).max(*ready)));
            }
            *openings.last().expect("a part at least") + window
        };
        ready.iter().map(end).collect()
    }

    fn assert_in_time(&self, at: usize, ready: &[Instant]) {
        let through = &self.queues[at].through;
        assert_eq!(through.len(), ready.len(), "all have left");
        for (number, (through, latest)) in through.iter().zip(self.latest(at, ready)).enumerate() {
            let late = through.since(latest);
            assert!(late <= STEP, "unit {number} of {at} ({:?}): {late} late", self.queues[at].pace);
        }
    }

    /// The promise of each unit of a program that keeps its schedule.
    fn assert_promise(&self, at: usize, schedule: &[Instant]) {
        let admitted = self.answer(at).and_then(Result::ok).expect("it is admitted");
        let link = &self.link.settings.link;
        // Neither a device on the cable nor a host that is late.
        let bound = admitted.bound.minus(link.frame_span_max() + link.host_slack) + STEP;
        for (number, (through, due)) in self.queues[at].through.iter().zip(schedule).enumerate() {
            let took = through.since(*due);
            assert!(took <= bound, "unit {number} of {at} took {took}, over {bound}");
        }
    }
}

/// The second slot of a window waited for the end of the first one, and the delays of the next ones added up.
#[test]
fn two_units_a_cycle_keep_their_promise_beside_a_slot_of_nearly_a_window() {
    for phase in (0..60).step_by(4) {
        let mut bench = Bench::new(10);
        let half = bench.trt().div_down(2) + Span::from_nanos(1);
        let long = Span::from_micros(59_500);
        let (slow, quick) = (bench.open(31_000, long), bench.open(100, half));
        let begin = bench.now + ms(100);
        let slow_units: Vec<_> = (0..30).map(|number| begin + long * number).collect();
        let quick_units: Vec<_> = (0..100).map(|number| begin + ms(phase) + half * number).collect();
        let units = |at: usize, ready: &[Instant]| ready.iter().map(|ready| (*ready, at)).collect::<Vec<_>>();
        bench.play([units(slow, &slow_units), units(quick, &quick_units)].concat());
        for (at, ready) in [(slow, &slow_units), (quick, &quick_units)] {
            bench.assert_promise(at, ready);
            bench.assert_in_time(at, ready);
        }
    }
}

/// Sets of shares as they come, units early and late at random.
#[test]
fn each_admitted_share_keeps_its_promise_whatever_is_admitted_beside_it() {
    let (mut rng, mut shares, mut many) = (Rng::new(2_301), 0, 0);
    for round in 0..45 {
        let mut bench = Bench::new([10, 100, 1_000][round % 3]);
        let mut below = |n: u64| rng.next_u64() % n;
        let mut open = Vec::new();
        let largest = bench.link.settings.link.rate.octets_in_down(bench.trt()).get();
        for asked in 0..8 {
            let (units, cycles) = (1 + below(6), 1 + below(4));
            let longest = bench.trt().as_nanos() * cycles * 5 / 4;
            let period = Span::from_nanos(longest / units + below(3_000_000));
            // Of some sets the first one takes most of the window, and small ones come between.
            let (octets, period) = match (round % 4 > 1, asked) {
                (true, 0) => {
                    (largest * (60 + below(20)) / 100, bench.trt() + Span::from_nanos(below(40_000_000)))
                }
                (true, _) => (1 + below(largest / units / 50), period),
                (false, _) => (1 + below(largest * cycles / units / 2), period),
            };
            let at = bench.ask(octets, period);
            bench.run(ms(50));
            if bench.answer(at).is_some_and(|answer| answer.is_ok()) {
                open.push((at, period));
            }
        }
        let (begin, is_late) = (bench.now + ms(300), round % 2 == 1);
        let mut plans = Vec::new();
        for (at, period) in &open {
            let (pace, phase) = (bench.queues[*at].pace, Span::from_nanos(below(100_000_000)));
            let period = pace.period(bench.trt()).max(*period);
            let (mut schedule, mut ready, mut before) = (Vec::new(), Vec::new(), Instant::ZERO);
            for number in 0..40 {
                let due = begin + phase + period * number;
                let off = Span::from_nanos(below(period.as_nanos() * pace.units()));
                let off = if below(3) == 0 { off } else { Span::ZERO };
                before = before.max(if is_late { due + off } else { due.minus(off) });
                schedule.push(due);
                ready.push(before);
            }
            many += usize::from(pace.units() > 1);
            plans.push((*at, schedule, ready));
        }
        shares += plans.len();
        let all = plans.iter().flat_map(|(at, _, ready)| ready.iter().map(|ready| (*ready, *at)));
        bench.play(all.collect());
        for (at, schedule, ready) in &plans {
            bench.assert_in_time(*at, ready);
            if !is_late {
                bench.assert_promise(*at, schedule);
            }
        }
    }
    assert!(shares > 100 && many > 40, "{shares} shares, {many} of them with several units a cycle");
}

impl Bench {
    fn units(&mut self, at: &[usize]) {
        at.iter().for_each(|at| self.unit(*at));
    }

    /// Octets of a unit whose slot takes so many percent of a window.
    fn percent(&self, percent: u64) -> u64 {
        let octets = self.link.settings.link.rate.octets_in_down(self.window()).get();
        octets * percent / 108
    }

    fn close(&mut self, at: usize) {
        self.link.release(self.now, self.queues[at].id);
        self.queues[at].waits.clear();
    }

    /// The newest unit of a queue took a window at most.
    fn assert_newest(&self, at: usize, ready: Instant) {
        let through = *self.queues[at].through.last().expect("it has left");
        let took = through.since(ready);
        assert!(took <= self.window() + STEP, "{took}");
    }
}

/// X is served and closes, and another one grows in its place: the window had slots of both.
#[test]
fn a_share_that_is_given_back_counts_until_a_window_behind_its_last_slot() {
    let mut bench = Bench::new(10);
    let trt = bench.trt();
    let grows = bench.open(bench.percent(2), trt);
    let [served, last] = [60, 15].map(|percent| bench.open(bench.percent(percent), trt));
    let begin = bench.now;
    bench.units(&[served, last]);
    bench.run(ms(19));
    assert_eq!((bench.queues[served].through.len(), bench.queues[last].through.len()), (1, 0));
    bench.close(served);
    let large = bench.percent(60);
    let id = bench.queues[grows].id;
    bench.link.resize(id, large as u32);
    bench.queues[grows].octets = large;
    let is_resized = |event: &MediumEvent| matches!(event, MediumEvent::Resized { .. });
    let is_refused = |event: &MediumEvent| matches!(event, MediumEvent::NotResized { .. });
    while !bench.heard.iter().any(is_resized) && bench.now < begin + ms(100) {
        bench.run(Span::from_micros(100));
    }
    assert!(bench.now.since(begin) >= bench.window(), "{} is no window", bench.now.since(begin));
    assert!(bench.now.since(begin) <= bench.window() + ms(1), "it is admitted then");
    assert!(!bench.heard.iter().any(is_refused));
    bench.assert_newest(last, begin);
    bench.unit(grows);
    let ready = bench.now;
    bench.run(ms(50));
    bench.assert_newest(grows, ready);
}

/// The same with a new session, in a busy interval whose last slot is a third one's.
#[test]
fn a_share_in_the_place_of_one_that_was_just_served_begins_a_window_later() {
    let mut bench = Bench::new(10);
    let trt = bench.trt();
    let [first, last] = [60, 15].map(|percent| bench.open(bench.percent(percent), trt));
    let begin = bench.now;
    bench.unit(first);
    bench.run(ms(19));
    bench.close(first);
    let second = bench.ask(bench.percent(60), trt);
    bench.run(ms(1));
    assert!(bench.answer(second).is_none(), "neither admitted nor refused");
    let too_much = bench.ask(bench.percent(99), trt);
    bench.unit(last);
    bench.run_until(begin + bench.window() + ms(1));
    assert!(bench.answer(second).is_some_and(|answer| answer.is_ok()), "a window later");
    assert_eq!(bench.answer(too_much), Some(Err(())), "no wait helps it");
    assert!(bench.answer(last).is_some());
    // One that was not served lately gives its room at once.
    bench.run(trt * 2);
    bench.close(second);
    let third = bench.ask(bench.percent(60), trt);
    bench.run(ms(1));
    assert!(bench.answer(third).is_some_and(|answer| answer.is_ok()));
}

/// The load of a session before it shrank counts, too.
#[test]
fn a_share_that_shrinks_gives_its_room_a_window_behind_its_last_slot() {
    let mut bench = Bench::new(10);
    let trt = bench.trt();
    let first = bench.open(bench.percent(60), trt);
    let (begin, id) = (bench.now, bench.queues[first].id);
    bench.unit(first);
    bench.run(ms(19));
    bench.link.resize(id, 100);
    bench.link.may_shrink(id, true);
    bench.queues[first].octets = 100;
    bench.run(ms(1));
    let second = bench.ask(bench.percent(60), trt);
    bench.run(ms(1));
    assert!(
        bench.heard.iter().any(|event| matches!(event, MediumEvent::Resized { .. })),
        "less is less at once"
    );
    assert!(bench.answer(second).is_none());
    bench.run_until(begin + bench.window() + ms(1));
    assert!(bench.answer(second).is_some_and(|answer| answer.is_ok()));
}

/// Each channel that the other end opened or closed had a hello sent at once.
#[test]
fn hellos_beside_a_share_come_no_sooner_than_half_a_cycle_apart() {
    let mut bench = Bench::new(10);
    let trt = bench.trt();
    let share = bench.open(6_250, trt);
    bench.hellos.clear();
    for number in 0..4_000 {
        bench.link.set_receives(number % 2 == 0);
        if number % 130 == 0 {
            bench.unit(share);
        }
        bench.run(Span::from_micros(300));
    }
    let cycles = Span::from_micros(300 * 4_000).count_down(trt);
    assert!((cycles..=2 * cycles + 1).contains(&(bench.hellos.len() as u64)), "{}", bench.hellos.len());
    for two in bench.hellos.windows(2) {
        assert!(two[1].since(two[0]) >= trt.div_down(2), "{two:?}");
    }
    // Without a share the other end learns it at once.
    bench.close(share);
    bench.run(ms(1_500));
    bench.hellos.clear();
    bench.link.set_receives(true);
    bench.run(ms(1));
    assert_eq!(bench.hellos.len(), 1);
}

/// The port learned of no end, and signalling went first in the next visit, too.
#[test]
fn a_visit_that_a_slot_interrupts_ends_before_the_slot() {
    let mut bench = Bench::new(10);
    let share = bench.open(6_250, bench.trt());
    while bench.link.visit_number().is_none() {
        bench.run(Span::from_micros(10));
    }
    let visit = bench.link.visit_number().expect("it is under way");
    bench.unit(share);
    bench.now += ms(2);
    let lane = |turn| match turn {
        Turn::Grant(grant) => Some((grant.lane, grant.number == visit, grant.budget == Span::ZERO)),
        _ => None,
    };
    assert_eq!(lane(bench.link.advance(bench.now)), Some((Lane::NonRealTime, true, true)));
    bench.link.done(bench.now, Visited::Used(1));
    let session = Lane::RealTime(bench.queues[share].id);
    assert_eq!(lane(bench.link.advance(bench.now)), Some((session, false, false)));
}

/// Packets stand with the shortest bound that they can have: slots before them would make them late.
#[test]
fn slots_that_would_make_packets_late_are_refused_by_the_test_of_the_packets() {
    let mut bench = Bench::new(10);
    let traffic = Traffic::periodic(ms(20)).expect("sound");
    let share = share_of(FlowShare::guaranteed(traffic));
    bench.link.reserve(bench.now, SessionId(77), share);
    bench.run(ms(50));
    let is_flow = |event: &MediumEvent| matches!(event, MediumEvent::Reserved { session: SessionId(77), .. });
    assert!(bench.heard.iter().any(is_flow), "{:?}", bench.heard);
    let at = bench.ask(6_000, bench.trt());
    bench.run(ms(50));
    assert_eq!(bench.answer(at), Some(Err(())));
    let refusal = bench.heard.iter().find_map(|event| match event {
        MediumEvent::Refused { refusal, .. } => Some(refusal),
        _ => None,
    });
    let refusal = refusal.expect("as answered");
    assert_eq!(refusal.test, rota_admission::Test::EdfExact);
    assert!(refusal.margin > Span::ZERO && refusal.to_string().contains("would be late by"), "{refusal}");
}

/// The first channel of a divided link counts in the rest at once: what it took of a partition would be
/// missing there later.
#[test]
fn slots_of_a_divided_link_stay_in_the_rest_also_before_any_packet() {
    let mut bench = Bench::new(10);
    let studio = "studio".parse().expect("a name");
    bench.link.settings.partitions.add(studio, 60).expect("room");
    // Half of the link: more than the rest has.
    let large = bench.ask(20_000, bench.trt());
    bench.run(ms(50));
    assert_eq!(bench.answer(large), Some(Err(())));
    let by = bench.heard.iter().find_map(|event| match event {
        MediumEvent::Refused { refusal, .. } => Some(refusal.partition),
        _ => None,
    });
    assert_eq!(by, Some(Some(0)), "{:?}", bench.heard);
    let small = bench.ask(6_000, bench.trt());
    bench.run(ms(50));
    assert!(bench.answer(small).is_some_and(|answer| answer.is_ok()), "{:?}", bench.heard);
    // 1,000 octets each 2 ms are 4.3 Mbit/s with their headers, and the partition has 6.
    let traffic = Traffic::periodic(ms(2)).expect("sound");
    let share = Share { partition: 1, ..share_of(FlowShare::guaranteed(traffic)) };
    bench.link.reserve(bench.now, SessionId(77), share);
    bench.run(ms(50));
    let is_flow = |event: &MediumEvent| matches!(event, MediumEvent::Reserved { session: SessionId(77), .. });
    assert!(bench.heard.iter().any(is_flow), "{:?}", bench.heard);
    let loads: Vec<usize> = bench.link.partition_loads().map(|load| load.channels).collect();
    assert_eq!(loads, [0, 1]);
}

/// A flood of the receiver's host kept its hellos from the cable, and the sender's channel ended.
#[test]
fn the_gate_is_shut_for_a_channel_of_the_other_end_too() {
    let mut bench = Bench::new(10);
    bench.link.set_receives(true);
    bench.run(ms(1));
    assert_eq!(bench.link.mode(), ModeName::Switching, "the card is to be empty first");
    bench.run(ms(50));
    assert_eq!(bench.link.mode(), ModeName::Paced);
    assert!(bench.wire.since(bench.now) < ms(3), "the flood is paced");
    // A share of its own is admitted at once, and its end leaves the gate as it is.
    let share = bench.ask(6_250, bench.trt());
    bench.run(ms(1));
    assert!(bench.answer(share).is_some_and(|answer| answer.is_ok()));
    bench.close(share);
    bench.run(ms(50));
    assert_eq!(bench.link.mode(), ModeName::Paced);
    bench.link.set_receives(false);
    bench.run(ms(50));
    assert_eq!(bench.link.mode(), ModeName::Plain);
}

#[test]
fn a_gate_that_cannot_be_shut_for_the_other_end_is_tried_again_later() {
    let mut bench = Bench::new(10);
    let (mut now, mut modes) = (bench.now, Vec::new());
    bench.link.set_receives(true);
    for _ in 0..1_000 {
        now += ms(5);
        bench.link.note_alive(now);
        bench.link.handle_deadline(now);
        modes.push((bench.link.mode(), now));
    }
    modes.dedup_by_key(|(mode, _)| *mode);
    let plain: Vec<_> =
        modes.iter().filter(|(mode, _)| *mode == ModeName::Plain).map(|(_, at)| *at).collect();
    assert!(modes.iter().all(|(mode, _)| [ModeName::Switching, ModeName::Plain].contains(mode)));
    assert!((2..=4).contains(&plain.len()) && plain[1].since(plain[0]) >= ms(2_000), "{modes:?}");
    bench.link.set_receives(false);
    bench.link.set_receives(true);
    bench.link.handle_deadline(now);
    assert_eq!(bench.link.mode(), ModeName::Switching, "another channel is another try");
}

/// Asks for a flow of 1,000 octets each so many milliseconds in this time of the bench; what it hears.
fn flow_during(
    bench: &mut Bench,
    id: u64,
    millis: u64,
    life: Life,
) -> Result<Admitted, rota_admission::Refusal> {
    let traffic = Traffic::periodic(ms(millis)).expect("sound");
    flow_of(bench, id, FlowShare { life, ..FlowShare::guaranteed(traffic) })
}

/// The same of any flow.
fn flow_of(bench: &mut Bench, id: u64, flow: FlowShare) -> Result<Admitted, rota_admission::Refusal> {
    answered(bench, id, share_of(flow))
}

/// A flow of the statistical class, with a packet each 4 ms a quarter of the time.
fn by_chance() -> FlowShare {
    let traffic = Traffic::new(ms(4), ms(16), ms(160)).expect("sound");
    FlowShare { late: Chance::of_down(1, 10), ..FlowShare::guaranteed(traffic) }
}

/// Packets of 1,000 octets in this flow.
fn share_of(flow: FlowShare) -> Share {
    let (pace, flow) = (Pace::EVERY_CYCLE, Some(flow));
    Share { unit_octets_max: 1_016, pace, periodic: false, partition: 0, flow }
}

fn answered(bench: &mut Bench, id: u64, share: Share) -> Result<Admitted, rota_admission::Refusal> {
    bench.link.reserve(bench.now, SessionId(id), share);
    // The gate takes its time for the first one.
    for _ in 0..20 {
        bench.run(ms(5));
        let heard = bench.heard.iter().rev().find_map(|event| match event {
            MediumEvent::Reserved { session, admitted } if session.0 == id => Some(Ok(*admitted)),
            MediumEvent::Refused { session, refusal } if session.0 == id => Some(Err(refusal.clone())),
            _ => None,
        });
        if let Some(heard) = heard {
            return heard;
        }
    }
    panic!("it is decided soon");
}

/// TENET-7-3: a booking is tested against all that stand in its time, and stands in the way of what would be
/// there then; it begins and ends by itself.
#[test]
fn a_flow_that_is_booked_takes_its_place_in_its_time_alone() {
    let mut bench = Bench::quiet(10);
    // One that stays; 1,000 octets each 2 ms are 4.3 Mbit/s.
    assert!(flow_during(&mut bench, 90, 100, Life::ALWAYS).is_ok());
    let (start, end, later) = (bench.now + ms(400), bench.now + ms(600), bench.now + ms(900));
    let life = |from, until| Life { from, until };
    assert!(flow_during(&mut bench, 101, 2, life(start, end)).is_ok());
    assert!(bench.link.is_booked(SessionId(101)));
    // Two of them are 8.6 Mbit/s beside the ordinary share, and three are too much.
    assert!(flow_during(&mut bench, 102, 2, life(start, end)).is_ok());
    let refused = flow_during(&mut bench, 103, 2, Life::ALWAYS).unwrap_err();
    assert_eq!((refused.test, refused.free_until), (rota_admission::Test::LinkCapacity, Some(start)));
    assert!(flow_during(&mut bench, 104, 2, life(Instant::ZERO, start)).is_ok(), "it ends in time");
    assert!(flow_during(&mut bench, 105, 2, life(end, later)).is_ok(), "it begins behind them");
    let refused = flow_during(&mut bench, 106, 2, life(start + ms(100), later)).unwrap_err();
    assert_eq!(refused.free_until, None, "there is no room at its start");
    // Slots of the link stay until then, so they must have room beside what is booked.
    let slots = bench.ask(12_000, bench.trt());
    bench.run(ms(5));
    assert_eq!(bench.answer(slots), Some(Err(())));
    // One that is left is free for others.
    bench.link.release(bench.now, SessionId(102));
    assert!(flow_during(&mut bench, 107, 2, Life::ALWAYS).is_ok());
    bench.link.release(bench.now, SessionId(107));
    bench.run(start.since(bench.now) + ms(1));
    assert!(!bench.link.is_booked(SessionId(101)) && bench.link.has_share(SessionId(101)));
    let lost = |bench: &Bench| {
        let lost = bench.heard.iter().filter_map(|event| match event {
            MediumEvent::ReservationLost { session } => Some(session.0),
            _ => None,
        });
        lost.collect::<Vec<_>>()
    };
    assert_eq!(lost(&bench), [104], "its time is over");
    bench.run(end.since(bench.now) + ms(1));
    assert_eq!(lost(&bench), [104, 101]);
    assert!(!bench.link.is_booked(SessionId(105)) && bench.link.has_share(SessionId(105)));
    bench.run(later.since(bench.now) + ms(1));
    assert_eq!(lost(&bench), [104, 101, 105]);
    assert!(
        flow_during(&mut bench, 108, 2, Life::ALWAYS).is_ok()
            && flow_during(&mut bench, 109, 2, Life::ALWAYS).is_ok()
    );
}
