//! A small token ring, cycle by cycle, against every bound that admission promises (theory.md §3, §4).
//!
//! Times are plain ticks. Sessions and stations behave as badly as their contracts allow: idle in one
//! cycle, full in the next, frames of any length.

use proptest::prelude::*;
use rota_admission::NrtRing;
use rota_units::Span;

/// One random ring; all times in ticks.
#[derive(Clone, Debug)]
struct Ring {
    trt: u64,
    hop: u64,
    /// THT of each visit, the hop to the next one included.
    slots: Vec<u64>,
    /// Of each session: a unit in so many cycles, or so many units in one.
    paces: Vec<(u64, u64)>,
    /// How far each period is on its way to one that needs fewer slots, in percent.
    between: Vec<u64>,
    stations: usize,
    frame_max: u64,
    per_visit: u64,
    /// Frames a visit may send; 0 stands for as many as fit.
    q: u64,
    strict: bool,
    seed: u64,
}

impl Ring {
    fn visit_of(&self, frames: u64) -> u64 {
        self.hop + self.per_visit + frames * self.frame_max
    }

    /// What is promised to be the time between two units.
    fn period(&self, slot: usize) -> u64 {
        let (cycles, units) = self.paces[slot];
        let (exact, last) = match units {
            1 => (self.trt * cycles, self.trt * (cycles + 1) - 1),
            units => (self.trt.div_ceil(units), (self.trt - 1) / (units - 1)),
        };
        exact + last.saturating_sub(exact) * self.between.get(slot).copied().unwrap_or(0) / 100
    }

    fn reserved(&self) -> u64 {
        self.slots.iter().sum()
    }

    fn model(&self) -> NrtRing {
        NrtRing {
            trt: Span::from_nanos(self.trt),
            reserved: Span::from_nanos(self.reserved()),
            hop: Span::from_nanos(self.hop),
            visit_one: Span::from_nanos(self.visit_of(1)),
            visit_max: (self.q > 0).then(|| Span::from_nanos(self.visit_of(self.q))),
            stations: self.stations as u64,
            strict: self.strict,
        }
    }
}

/// A seeded stream of choices, so that a failing case can be run again.
struct Choices(u64);

impl Choices {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n.max(1)
    }

    fn often(&mut self, eighths: u64) -> bool {
        self.below(8) < eighths
    }
}

/// A session's source: one unit per period at most, ready times in order.
struct Source {
    next: u64,
    waiting: std::collections::VecDeque<u64>,
    /// How many more slots the first waiting unit takes, once it has begun.
    left: u64,
}

/// The worst that was seen.
#[derive(Debug)]
struct Worst {
    cycle_max: u64,
    cycle_min: u64,
    rt_gap: Vec<u64>,
    rt_delay: Vec<u64>,
    /// Of each session, units that waited or were being sent.
    backlog: Vec<usize>,
    nrt_gap: u64,
}

struct Run<'a> {
    ring: &'a Ring,
    now: u64,
    choices: Choices,
    /// How many eighths of the visits find data, in this cycle.
    mood: u64,
    sources: Vec<Source>,
    rt_last: Vec<Option<u64>>,
    nrt_last: Vec<Option<u64>>,
    nrt_next: usize,
    worst: Worst,
}

impl<'a> Run<'a> {
    fn new(ring: &'a Ring) -> Self {
        let mut choices = Choices(ring.seed | 1);
        let sources = ring.slots.iter().map(|_| Source {
            next: choices.below(ring.trt),
            waiting: Default::default(),
            left: 0,
        });
        let sources: Vec<_> = sources.collect();
        let k = ring.slots.len();
        let worst = Worst {
            cycle_max: 0,
            cycle_min: u64::MAX,
            rt_gap: vec![0; k],
            rt_delay: vec![0; k],
            backlog: vec![0; k],
            nrt_gap: 0,
        };
        Self {
            ring,
            now: 0,
            choices,
            mood: 8,
            sources,
            rt_last: vec![None; k],
            nrt_last: vec![None; ring.stations],
            nrt_next: 0,
            worst,
        }
    }

    fn cycle(&mut self) {
        let start = self.now;
        self.mood = [0, 8, 8, 4, 7][self.choices.below(5) as usize];
        let mut offset = 0;
        for index in 0..self.ring.slots.len() {
            if self.ring.strict {
                self.now = self.now.max(start + offset);
            }
            offset += self.ring.slots[index];
            self.rt_visit(index);
        }
        assert!(self.now <= start + self.ring.reserved(), "slots overran");
        while self.nrt_visit(start) {}
        self.now += self.ring.hop;
        let length = self.now - start;
        self.worst.cycle_max = self.worst.cycle_max.max(length);
        self.worst.cycle_min = self.worst.cycle_min.min(length);
        if self.ring.strict {
            self.now = self.now.max(start + self.ring.trt);
        }
    }

    fn rt_visit(&mut self, index: usize) {
        let arrived = self.now;
        if let Some(last) = self.rt_last[index].replace(arrived) {
            self.worst.rt_gap[index] = self.worst.rt_gap[index].max(arrived - last);
        }
        self.offer(index, arrived);
        let waits = !self.sources[index].waiting.is_empty();
        self.now += self.ring.hop;
        if waits {
            self.rt_slot(index);
        }
    }

    /// What has become ready at a session's source.
    fn offer(&mut self, index: usize, arrived: u64) {
        let period = self.ring.period(index);
        let source = &mut self.sources[index];
        while source.next <= arrived {
            source.waiting.push_back(source.next);
            // Now and then the source falls silent, so that others see early cycles.
            let silent = if self.choices.often(1) { self.choices.below(3 * period) } else { 0 };
            source.next += period + silent;
        }
        self.worst.backlog[index] = self.worst.backlog[index].max(source.waiting.len());
    }

    /// One slot: a share of one unit, or as many units as the pace has in a cycle.
    fn rt_slot(&mut self, index: usize) {
        let ((cycles, units), source) = (self.ring.paces[index], &mut self.sources[index]);
        let send = self.ring.slots[index] - self.ring.hop;
        for _ in 0..units.min(source.waiting.len() as u64) {
            let full = self.choices.often(6);
            self.now += if full { send / units } else { 1 + self.choices.below((send / units).max(1)) };
            if source.left == 0 {
                // A short unit needs fewer slots than its period has.
                source.left = if full { cycles } else { 1 + self.choices.below(cycles) };
            }
            source.left -= 1;
            if source.left == 0
                && let Some(ready) = source.waiting.pop_front()
            {
                self.worst.rt_delay[index] = self.worst.rt_delay[index].max(self.now - ready);
            }
        }
    }

    /// Visits the next station, or returns false when it must hand the token back.
    fn nrt_visit(&mut self, start: u64) -> bool {
        let left = (start + self.ring.trt).saturating_sub(self.now);
        let hop = self.ring.hop;
        let mut frames = match self.ring.q {
            0 => self.ring.trt,
            q => q,
        };
        if !self.choices.often(self.mood) {
            frames = self.choices.below(2).min(frames);
        }
        let mut cost = hop;
        for sent in 0..frames {
            let full = self.choices.often(self.mood);
            let frame = if full { self.ring.frame_max } else { 1 + self.choices.below(self.ring.frame_max) };
            let more = frame + if sent == 0 { self.ring.per_visit } else { 0 };
            if left < cost + more + hop {
                if sent == 0 {
                    return false;
                }
                break;
            }
            cost += more;
        }
        if left < cost + hop {
            return false;
        }
        if let Some(last) = self.nrt_last[self.nrt_next].replace(self.now) {
            self.worst.nrt_gap = self.worst.nrt_gap.max(self.now - last);
        }
        self.nrt_next = (self.nrt_next + 1) % self.ring.stations;
        self.now += cost;
        true
    }
}

fn run(ring: &Ring, cycles: u32) -> Worst {
    let mut run = Run::new(ring);
    (0..cycles).for_each(|_| run.cycle());
    run.worst
}

fn any_ring() -> impl Strategy<Value = Ring> {
    let pace = prop_oneof![Just((1, 1)), (2u64..6).prop_map(|k| (k, 1)), (2u64..6).prop_map(|k| (1, k))];
    let between = prop_oneof![Just(0), 0u64..=100];
    let sessions = prop::collection::vec((1u64..60, pace, between), 0..6);
    (1u64..6, sessions, 1usize..9, 2u64..30, 0u64..4, 0u64..5, any::<bool>()).prop_flat_map(
        |(hop, sessions, stations, frame_max, per_visit, q, strict)| {
            // A slot carries whole ticks of each of its units.
            let slots: Vec<u64> =
                sessions.iter().map(|(send, (_, k), _)| send.div_ceil(*k) * k + hop).collect();
            let paces: Vec<(u64, u64)> = sessions.iter().map(|(_, pace, _)| *pace).collect();
            let between: Vec<u64> = sessions.iter().map(|(.., between)| *between).collect();
            let least = slots.iter().sum::<u64>() + 2 * hop + per_visit + frame_max;
            (least..least * 3, any::<u64>()).prop_map(move |(trt, seed)| Ring {
                trt,
                hop,
                slots: slots.clone(),
                paces: paces.clone(),
                between: between.clone(),
                stations,
                frame_max,
                per_visit,
                q,
                strict,
                seed,
            })
        },
    )
}

fn check(ring: &Ring, worst: &Worst) -> Result<(), TestCaseError> {
    prop_assert!(worst.cycle_max <= ring.trt, "RETHER-2.2.3-3, repair A1: a cycle of {}", worst.cycle_max);
    let mut offset = 0;
    for (index, tht) in ring.slots.iter().enumerate() {
        let (cycles, units) = ring.paces[index];
        let backlog = worst.backlog[index] as u64;
        prop_assert!(backlog <= 2 * units, "slot {index}: twice {units} buffers are enough, not {backlog}");
        let (gap, wait) = if ring.strict {
            (ring.trt, ring.trt * cycles)
        } else {
            (ring.trt + offset - ring.hop * index as u64, ring.trt * cycles + offset)
        };
        prop_assert!(worst.rt_gap[index] <= gap, "slot {index}: gap {} > {gap}", worst.rt_gap[index]);
        let delay = worst.rt_delay[index];
        let one = ring.hop + (tht - ring.hop) / units;
        prop_assert!(delay <= wait + one, "slot {index}: delay {delay} > {wait} + {one}");
        offset += tht;
    }
    let promised = ring.model().worst_gap().expect("the floor is kept").as_nanos();
    prop_assert!(worst.nrt_gap <= promised, "ordinary gap {} > {promised}", worst.nrt_gap);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_ring_exceeds_a_promised_gap_or_delay(ring in any_ring()) {
        check(&ring, &run(&ring, 200))?;
    }
}

#[test]
fn the_early_gap_is_attained_and_exceeds_the_period() {
    // Repairs a.3: the paper says "exactly one period"; slots that wake up push the last one back.
    let ring = Ring {
        trt: 300,
        hop: 2,
        slots: vec![52, 52, 52],
        paces: vec![(1, 1); 3],
        between: Vec::new(),
        stations: 2,
        frame_max: 20,
        per_visit: 0,
        q: 1,
        strict: false,
        seed: 7,
    };
    let seen = (1..40).map(|seed| run(&Ring { seed, ..ring.clone() }, 400).rt_gap[2]).max().unwrap();
    assert!(seen > ring.trt, "the gap of the last slot was never more than {seen}");
    let strict = Ring { strict: true, ..ring };
    assert_eq!(run(&strict, 400).rt_gap, vec![300, 300, 300]);
}

#[test]
fn the_bounds_of_long_and_short_periods_are_attained() {
    // A unit in three cycles that takes all its slots, and three units in one cycle.
    for (pace, wait) in [((3, 1), 3), ((1, 3), 1)] {
        let ring = Ring {
            trt: 300,
            hop: 2,
            slots: vec![62],
            paces: vec![pace],
            between: Vec::new(),
            stations: 2,
            frame_max: 20,
            per_visit: 0,
            q: 1,
            strict: true,
            seed: 1,
        };
        let seen = (1..60).map(|seed| run(&Ring { seed, ..ring.clone() }, 400).rt_delay[0]).max().unwrap();
        let bound = 300 * wait + 2 + 60 / pace.1;
        assert!(seen <= bound && seen + 3 >= bound, "{pace:?}: {seen} of {bound}");
    }
}

#[test]
fn n_rotations_alone_are_not_enough_for_ordinary_traffic() {
    // Repair A6: one station, as many frames as fit; idle slots in one cycle, full slots in the next.
    let ring = Ring {
        trt: 200,
        hop: 1,
        slots: vec![81],
        paces: vec![(1, 1)],
        between: Vec::new(),
        stations: 1,
        frame_max: 10,
        per_visit: 0,
        q: 0,
        strict: false,
        seed: 1,
    };
    let seen = (1..40).map(|seed| run(&Ring { seed, ..ring.clone() }, 400).nrt_gap).max().unwrap();
    assert!(seen > ring.trt && seen <= ring.trt + ring.reserved(), "saw {seen}");
}

#[test]
fn one_tick_below_the_floor_no_gap_is_promised() {
    // Repair A3: T_NRT one tick short of M + h.
    let ring = Ring {
        trt: 100,
        hop: 2,
        slots: vec![77],
        paces: vec![(1, 1)],
        between: Vec::new(),
        stations: 3,
        frame_max: 20,
        per_visit: 0,
        q: 1,
        strict: true,
        seed: 5,
    };
    assert_eq!(ring.trt - ring.reserved(), ring.visit_of(1) + ring.hop - 1);
    assert_eq!(ring.model().worst_gap(), None);
    let enough = Ring { trt: 101, ..ring };
    assert!(enough.model().worst_gap().is_some());
}

/// A switch sends a frame on only when it has all of it: the longest one takes its wire time twice.
#[test]
fn a_frame_crosses_two_links_one_after_the_other() {
    let params = rota_admission::SegmentParams::new(rota_units::BitRate::from_mbit(10), 14);
    let once = rota_units::Span::from_nanos(1_538 * 800);
    assert_eq!(params.transit().minus(params.cycle_overhead()), once * 2);
}
