//! SMART beside an independent model of theory d.2, step by step, and how much it sends again
//! (TRANSPORT-R84, TRANSPORT-R85).

use crate::dice::Dice;
use proptest::prelude::*;
use rota_proto::vc::{Arrival, Expiry, Inbox, Pace, Piece, Smart};
use rota_units::{Instant, Span};
use std::collections::{BTreeMap, BTreeSet};

/// The sender of theory d.2, as plainly as it can be said. All times are in nanoseconds.
struct Model {
    pace: Pace,
    cum: u64,
    /// The set R.
    received: BTreeSet<u64>,
    /// The set X.
    resent: BTreeSet<u64>,
    /// TPDUs to be sent again.
    again: BTreeSet<u64>,
    top: u64,
    sent_at: BTreeMap<u64, u64>,
    sent_twice: BTreeSet<u64>,
    smooth: u64,
    varies: u64,
    measured: bool,
    doublings: u32,
    /// Probes since the last measurement.
    probes: u32,
    cum_at_check: u64,
    next_check: Option<u64>,
    next_time_out: Option<u64>,
    time_outs: u32,
    /// When the cumulative acknowledgement rose, or sending began.
    news: u64,
}

impl Model {
    fn new(pace: Pace) -> Self {
        let first = pace.first.as_nanos();
        Self {
            pace,
            cum: 0,
            received: BTreeSet::new(),
            resent: BTreeSet::new(),
            again: BTreeSet::new(),
            top: 0,
            sent_at: BTreeMap::new(),
            sent_twice: BTreeSet::new(),
            smooth: first,
            varies: first / 2,
            measured: false,
            doublings: 0,
            probes: 0,
            cum_at_check: 0,
            next_check: None,
            next_time_out: None,
            time_outs: 0,
            news: 0,
        }
    }

    /// RTO = SRTT + 4 RTTVAR behind the four round trips that the probe has, twice as long after each one.
    fn time_out(&self) -> u64 {
        let once = self.smooth + 4 * self.varies + 4 * self.smooth;
        let least = once.max(self.pace.least.as_nanos());
        (least << self.doublings).min(self.pace.most.as_nanos())
    }

    /// Two round trips, and twice as long after each further probe without a measurement.
    fn look_span(&self) -> u64 {
        ((2 * self.smooth) << self.probes.saturating_sub(1)).min(self.pace.most.as_nanos())
    }

    fn send_new(&mut self, now: u64) -> u64 {
        if self.cum == self.top {
            self.cum_at_check = self.cum;
            self.next_check = Some(now + self.look_span());
            self.next_time_out = Some(now + self.time_out());
            self.news = now;
        }
        self.top += 1;
        self.sent_at.insert(self.top, now);
        self.top
    }

    fn send_again(&mut self, now: u64) -> Option<u64> {
        let sequence = self.again.pop_first()?;
        self.sent_at.insert(sequence, now);
        self.sent_twice.insert(sequence);
        Some(sequence)
    }

    fn measure(&mut self, took: u64) {
        if self.measured {
            self.varies = (3 * self.varies + self.smooth.abs_diff(took)) / 4;
            self.smooth = (7 * self.smooth + took) / 8;
        } else {
            (self.smooth, self.varies, self.measured) = (took, took / 2, true);
        }
        (self.doublings, self.probes) = (0, 0);
    }

    fn acknowledge(&mut self, now: u64, c: u64, k: u64) {
        let before = self.cum;
        let is_news = k > before && !self.received.contains(&k) && !self.again.contains(&k);
        // Karn: a TPDU that was sent again, or is about to be, measures nothing.
        if is_news && !self.sent_twice.contains(&k) {
            self.measure(now - self.sent_at[&k]);
        }
        // Rule 1.
        self.received.extend(self.cum + 1..=c.max(self.cum));
        self.received.insert(k);
        while self.received.contains(&(self.cum + 1)) {
            self.cum += 1;
        }
        let (cum, received) = (self.cum, &self.received);
        self.again.retain(|sequence| *sequence > cum && !received.contains(sequence));
        if self.cum > before {
            (self.time_outs, self.news) = (0, now);
            self.next_time_out = Some(now + self.time_out());
        }
        if self.cum == self.top {
            (self.next_check, self.next_time_out) = (None, None);
        }
        // Rule 2, with the distance of reordering.
        if c == before && k > c {
            for sequence in c + 1..k {
                let far = k >= sequence + u64::from(self.pace.reorder);
                if far && !self.received.contains(&sequence) && !self.resent.contains(&sequence) {
                    self.resent.insert(sequence);
                    self.again.insert(sequence);
                }
            }
        }
        self.received = self.received.split_off(&self.cum);
    }

    /// The look at the clock: whether the circuit is given up.
    fn look(&mut self, now: u64) -> bool {
        // Rule 4.
        if self.next_time_out.is_some_and(|at| at <= now) {
            self.time_outs += 1;
            if self.time_outs >= 8 && now - self.news >= self.pace.silence.as_nanos() / 4 {
                return true;
            }
            self.doublings = (self.doublings + 1).min(8);
            let missing = (self.cum + 1..=self.top).filter(|sequence| !self.received.contains(sequence));
            self.again.extend(missing);
            self.resent.clear();
            self.next_time_out = Some(now + self.time_out());
        }
        // Rule 3, with the guard.
        if self.next_check.is_some_and(|at| at <= now) {
            let head = self.cum + 1;
            if self.cum == self.cum_at_check && now - self.sent_at[&head] >= self.smooth {
                self.again.insert(head);
                self.resent.insert(head);
                self.probes = (self.probes + 1).min(8);
            }
            self.cum_at_check = self.cum;
            self.next_check = Some(now + self.look_span());
        }
        false
    }

    fn deadline(&self) -> u64 {
        self.next_check.unwrap_or(u64::MAX).min(self.next_time_out.unwrap_or(u64::MAX))
    }
}

/// The receiver of theory d.2.
#[derive(Default)]
struct Received(BTreeSet<u64>);

impl Received {
    fn cum(&self) -> u64 {
        (1..).take_while(|sequence| self.0.contains(sequence)).last().unwrap_or(0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Data(u64),
    Ack(u64, u64),
}

/// The faults that a run meets, in a thousand.
#[derive(Clone, Copy, Debug)]
struct Net {
    lost: u64,
    ack_lost: u64,
    doubled: u64,
    /// Longest extra delay, ns.
    jitter: u64,
}

const TRIP: u64 = 1_000_000;

/// The machine, and where wanted the model beside it, over one simulated path.
struct Run {
    net: Net,
    dice: Dice,
    queue: BTreeSet<(u64, u64, Event)>,
    order: u64,
    now: u64,
    smart: Smart,
    model: Option<Model>,
    inbox: Inbox,
    received: Received,
    given_up: bool,
    rule_2: u64,
    time_outs: u64,
}

impl Run {
    fn new(seed: u64, net: Net, window: u32, pace: Pace, with_model: bool) -> Self {
        Self {
            net,
            dice: Dice(seed),
            queue: BTreeSet::new(),
            order: 0,
            now: 1,
            smart: Smart::new(window, pace),
            model: with_model.then(|| Model::new(pace)),
            inbox: Inbox::new(window, 1, true),
            received: Received::default(),
            given_up: false,
            rule_2: 0,
            time_outs: 0,
        }
    }

    fn at(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    fn put(&mut self, event: Event) {
        let lost = if matches!(event, Event::Data(_)) { self.net.lost } else { self.net.ack_lost };
        let copies = 1 + u64::from(self.dice.below(1_000) < self.net.doubled);
        for _ in 0..copies {
            if self.dice.below(1_000) >= lost {
                let at = self.now + TRIP / 2 + self.dice.below(self.net.jitter + 1);
                self.order += 1;
                self.queue.insert((at, self.order, event));
            }
        }
    }

    /// Sends what is to be sent again; machine and model must name the same TPDUs.
    fn send_again(&mut self) {
        loop {
            let sequence = self.smart.send_again(self.at());
            if let Some(model) = &mut self.model {
                assert_eq!(sequence, model.send_again(self.now), "at {}", self.now);
            }
            let Some(sequence) = sequence else { break };
            self.put(Event::Data(sequence));
        }
        if let Some(model) = &self.model {
            let known = (self.smart.cum(), self.smart.deadline().0.as_nanos());
            assert_eq!(known, (model.cum, model.deadline()), "at {}", self.now);
            let waits = (Span::from_nanos(model.smooth), Span::from_nanos(model.time_out()));
            assert_eq!(self.smart.waits(), waits, "at {}", self.now);
        }
    }

    fn send_new(&mut self) {
        let sequence = self.smart.send(self.at());
        if let Some(model) = &mut self.model {
            assert_eq!(model.send_new(self.now), sequence);
        }
        self.put(Event::Data(sequence));
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Data(sequence) => {
                let arrival = self.inbox.accept(sequence, Piece::default(), &[0]);
                assert!(matches!(arrival, Arrival::New | Arrival::Double), "{arrival:?}");
                while self.inbox.take() {}
                if self.model.is_some() {
                    self.received.0.insert(sequence);
                    assert_eq!(self.inbox.cum(), self.received.cum(), "at {}", self.now);
                }
                self.put(Event::Ack(self.inbox.cum(), sequence));
            }
            Event::Ack(cum, cause) => {
                let learned = self.smart.acknowledge(self.at(), cum, cause).expect("it was sent");
                self.rule_2 += u64::from(learned.lost > 0);
                if let Some(model) = &mut self.model {
                    model.acknowledge(self.now, cum, cause);
                }
            }
        }
    }

    fn look(&mut self) {
        let at = self.at();
        while self.smart.deadline().0 <= at {
            let expiry = self.smart.handle_deadline(at);
            self.time_outs += u64::from(expiry == Some(Expiry::TimeOut));
            self.given_up |= expiry == Some(Expiry::GivenUp);
        }
        if let Some(model) = &mut self.model {
            assert_eq!(model.look(self.now), self.given_up, "at {}", self.now);
        }
    }

    /// Sends so many TPDUs, one each `slot`, and waits for all answers; false if the circuit was given up.
    fn run(&mut self, count: u64, slot: u64) -> bool {
        let mut next_slot = self.now;
        while !self.given_up && self.smart.cum() < count {
            let may_send = self.smart.top() < count && self.smart.has_room();
            let arrives = self.queue.first().map_or(u64::MAX, |(at, ..)| *at);
            let sends = if may_send { next_slot.max(self.now) } else { u64::MAX };
            let looks = self.smart.deadline().0.as_nanos();
            self.now = arrives.min(sends).min(looks).max(self.now);
            if looks <= self.now {
                self.look();
                if self.given_up {
                    break;
                }
            } else if arrives <= self.now {
                let (_, _, event) = self.queue.pop_first().expect("it has arrived");
                self.happens(event);
            } else {
                next_slot = self.now + slot;
                self.send_new();
            }
            self.send_again();
        }
        !self.given_up
    }
}

fn pace(reorder: u32) -> Pace {
    Pace { first: Span::from_millis(2), least: Span::from_micros(200), reorder, ..Pace::ETHERNET }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// TRANSPORT-R85: over loss, duplication and reordering, up to paths that nearly nothing passes.
    #[test]
    fn a_run_of_smart_equals_the_model_step_by_step(
        seed in any::<u64>(),
        (lost, ack_lost, doubled) in (0u64..400, 0u64..400, 0u64..200),
        (jitter, reorder, window, slot) in (0u64..3_000_000, 1u32..5, 1u32..80, 1u64..200_000),
    ) {
        let net = Net { lost, ack_lost, doubled, jitter };
        Run::new(seed, net, window, pace(reorder), true).run(300, slot);
    }

    #[test]
    fn a_path_that_dies_ends_both_at_the_same_time(seed in any::<u64>(), window in 1u32..40) {
        let net = Net { lost: 980, ack_lost: 500, doubled: 0, jitter: 100_000 };
        Run::new(seed, net, window, pace(3), true).run(300, 10_000);
    }
}

#[test]
fn the_papers_example_sends_the_third_again_and_no_other() {
    // TRANSPORT-5.3.2-7: 1, 2 and 4 arrive.
    let mut smart = Smart::new(8, pace(1));
    let now = Instant::from_nanos(1);
    (0..4).for_each(|_| assert!(smart.send(now) > 0));
    for (cum, cause) in [(1, 1), (2, 2)] {
        assert_eq!(smart.acknowledge(now, cum, cause).map(|learned| learned.lost), Some(0));
    }
    assert_eq!(smart.acknowledge(now, 2, 4).map(|learned| learned.lost), Some(3));
    assert_eq!((smart.send_again(now), smart.send_again(now)), (Some(3), None));
    // Another acknowledgement of the same kind sends nothing again; the lost first one would have.
    smart.send(now);
    assert_eq!(smart.acknowledge(now, 2, 5).map(|learned| learned.lost), Some(0));
    assert_eq!(smart.send_again(now), None);
    // TRANSPORT-R19: at the very first loss the initial cum counts.
    let mut smart = Smart::new(8, pace(1));
    (0..2).for_each(|_| assert!(smart.send(now) > 0));
    assert_eq!(smart.acknowledge(now, 0, 2).map(|learned| learned.lost), Some(1));
    // TRANSPORT-R73: what was never sent.
    assert_eq!(smart.acknowledge(now, 3, 3), None);
    assert_eq!(smart.acknowledge(now, 0, u64::MAX), None);
    assert_eq!(smart.cum(), 0);
}

/// TRANSPORT-R27: the last TPDU has no later one whose acknowledgement tells of its loss.
#[test]
fn a_lost_end_is_repaired_by_the_probe_within_four_round_trips() {
    let trip = Span::from_nanos(TRIP);
    let mut smart = Smart::new(8, pace(3));
    let start = Instant::from_nanos(1);
    smart.send(start);
    assert!(smart.acknowledge(start + trip, 1, 1).is_some());
    let sent = start + trip;
    smart.send(sent);
    smart.send(sent);
    smart.acknowledge(sent + trip, 2, 2);
    let mut now = sent + trip;
    while !smart.has_lost() {
        now = smart.deadline().0;
        assert_eq!(smart.handle_deadline(now), Some(Expiry::Probe), "no time-out is needed");
    }
    assert_eq!(smart.send_again(now), Some(3));
    assert!(now.since(sent) <= trip * 4 + trip, "{}", now.since(sent));
    assert!(now.since(sent + trip) <= trip * 4, "four round trips behind the last advance");
}

/// TRANSPORT-R23, TRANSPORT-R22: waits double, and the eighth time-out is the last.
#[test]
fn a_sender_that_hears_nothing_gives_up_at_the_eighth_time_out() {
    // The eight waits take 3.6 s, and a quarter of the silence is over before.
    let (time_outs, waits) = time_outs_until_given_up(Pace { silence: Span::from_millis(8_000), ..pace(3) });
    assert_eq!(time_outs, 8);
    assert!(waits.windows(2).take(6).all(|pair| pair[1] == 2 * pair[0]), "{waits:?}");
}

/// A reader's finding: with the shortest times a peer that stood still for half a second lost its circuit.
#[test]
fn a_peer_that_stands_still_for_a_while_keeps_its_circuit_on_a_short_path() {
    let short = Pace { first: Span::from_micros(100), ..Pace::ETHERNET };
    let (time_outs, waits) = time_outs_until_given_up(short);
    assert!(time_outs > 8, "{time_outs}");
    let all: u64 = waits.iter().sum();
    assert!((5_000_000_000..6_000_000_000).contains(&all), "a quarter of the silence: {all}");
}

/// The time-outs of a sender that hears nothing, and how long each waited.
fn time_outs_until_given_up(pace: Pace) -> (u32, Vec<u64>) {
    let mut smart = Smart::new(4, pace);
    smart.send(Instant::from_nanos(1));
    let (mut time_outs, mut before, mut waits) = (0, 1, vec![]);
    loop {
        let (at, is_time_out) = smart.deadline();
        let expiry = smart.handle_deadline(at);
        smart.send_again(at);
        if is_time_out {
            time_outs += 1;
            waits.push(at.as_nanos() - before);
            before = at.as_nanos();
        }
        if expiry == Some(Expiry::GivenUp) {
            return (time_outs, waits);
        }
    }
}

/// TRANSPORT-R29, TRANSPORT-R84: loss on data only, 32 TPDUs in a round trip. The window is twice that.
#[test]
fn smart_sends_again_no_more_than_a_tenth_above_the_least() {
    for (per_mille, count) in [(1, 1_000_000), (10, 200_000), (50, 100_000), (100, 100_000)] {
        for reorder in [1, 3] {
            let net = Net { lost: per_mille, ack_lost: 0, doubled: 0, jitter: 0 };
            let mut run = Run::new(1996 + per_mille, net, 64, pace(reorder), false);
            assert!(run.run(count, TRIP / 32), "no path of this kind is given up");
            let resent = run.smart.resent();
            // 1.1 p/(1 - p) for each TPDU, in integers.
            let most = count * per_mille * 11 / (10 * (1_000 - per_mille));
            println!(
                "p {per_mille}/1000, reorder {reorder}: {resent} of {count}, at most {most}; {} time-outs",
                run.time_outs
            );
            assert!(
                resent <= most,
                "p = {per_mille}/1000: {resent} of {count} were sent again, beyond {most}"
            );
            assert!(run.rule_2 > 0);
        }
    }
}

/// One TPDU at a time over a slow link: the handshake's short frames took 0.4 ms, a TPDU and its answer take
/// 2.6 ms, of which each copy keeps the link for 1.2 ms. The estimate was never mended: each TPDU was sent
/// again before its answer came, so that none was measured, and the copies kept the link busy.
#[test]
fn an_estimate_that_is_too_short_does_not_send_each_tpdu_again() {
    let pace = Pace::ETHERNET;
    let (on_link, way) = (Span::from_micros(1_200), Span::from_micros(1_400));
    let mut smart = Smart::new(1, pace);
    smart.guess(Span::from_micros(400));
    let (mut now, mut link_free) = (Instant::ZERO + Span::from_millis(1), Instant::ZERO);
    // When the answer to each copy comes.
    let mut answers = std::collections::VecDeque::new();
    while smart.cum() < 200 {
        if smart.has_lost() || smart.has_room() {
            let sequence = smart.send_again(now).unwrap_or_else(|| smart.send(now));
            link_free = link_free.max(now) + on_link;
            answers.push_back((link_free + way, sequence));
        }
        let (at, _) = smart.deadline();
        now = answers.front().map_or(at, |(answer, _)| at.min(*answer)).max(now);
        if at <= now {
            smart.handle_deadline(now);
        }
        if let Some((_, sequence)) = answers.pop_front_if(|(answer, _)| *answer <= now) {
            smart.acknowledge(now, sequence, sequence).expect("a number that was sent");
        }
    }
    assert!(smart.resent() <= 10, "{} of 200 TPDUs were sent again, and none was lost", smart.resent());
}
