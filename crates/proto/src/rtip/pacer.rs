//! When the packets of one hop become eligible, and their local deadlines.
//!
//! A packet of the statistical class may be late at the node before. A rate-jitter regulator would make all
//! behind it in its burst as late: these are held until the time that they state, and no longer. A meter by
//! the regulator's arithmetic polices them in its place, or a neighbour that sends beyond the contract would
//! take the class's time from others, and that of ordinary frames.
//!
//! *Meter.* Packet k states that it is eligible at t_k. It is expected at e_k = max(t_k, e_(k−1) + X_min,
//! e_(k−B) + I), and passes at once if e_k − t_k ≤ U, the *leeway*. Otherwise it waits until e_k − U, for d,
//! this node's bound, at most. One that would wait for longer is dropped, and leaves no trace in the meter.
//! So packets that pass have at least the time between them that the traffic states, less U once: a flood
//! gets what the contract states, and a burst of U.
//!
//! *What conforms is not held.* U is the longest time from the eligibility at the source to that here, which
//! the bounds of the nodes before allow. Let packet k be eligible at T_k at the source, as the traffic
//! allows, and come within these bounds. With any lead that it states of a deadline that it keeps, T_k ≤ t_k
//! ≤ T_k + U. By induction e_k ≤ T_k + U, since each term of the maximum is at most that. Hence e_k − t_k ≤
//! U. The same holds behind packets that were late, while T + U holds for them, too. Behind one that came L
//! later than that, e_k ≤ T_k + U + L: packet k is held until T_k + L at the latest, so by L at most, and is
//! dropped only if that is more than d. So none is dropped where L ≤ d. None passes before the one that came
//! before it.
//!
//! *Two contracts in one queue.* A contract takes the place of another one (`rcap/change.rs`). Each packet
//! passes the regulator of its contract, and the one of all packets, whose traffic is the greater of both. It
//! states its own contract's deadline, and is due by the earlier one of both.

use rota_admission::rtip::{RateJitter, Regulator, Traffic, delay_jitter_ahead};
use rota_units::{Instant, Span};

/// The regulator of one hop, with its memory.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    hold: Hold,
    expected: RateJitter<Box<[Instant]>>,
    traffic: Traffic,
    delay: Span,
    next: Option<Box<Next>>,
    /// Of two contracts before, the regulator of both, for so many packets more: until none of those that it
    /// has seen is of the contract that is over.
    tail: Option<(RateJitter<Box<[Instant]>>, u64)>,
}

/// The contract that takes the place of another one.
#[derive(Clone, Debug)]
struct Next {
    traffic: Traffic,
    delay: Span,
    expected: RateJitter<Box<[Instant]>>,
    /// Of all packets, of a traffic with this burst.
    both: RateJitter<Box<[Instant]>>,
    burst: u64,
}

/// The times of a packet at this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) eligible: Instant,
    /// By when its contract has it leave.
    pub(super) deadline: Instant,
    /// By when the share has it leave; never later.
    pub(super) due: Instant,
}

/// The memory of a regulator: one place for each packet of an interval.
fn history(traffic: &Traffic) -> Box<[Instant]> {
    vec![Instant::ZERO; traffic.burst() as usize].into_boxed_slice()
}

#[derive(Clone, Debug)]
enum Hold {
    Regulated(Regulator),
    /// Of the statistical class.
    Metered {
        /// U.
        leeway: Span,
        /// When the packet before was eligible.
        last: Instant,
    },
}

impl Pacer {
    /// Takes the memory of the regulator.
    pub(super) fn new(traffic: Traffic, regulator: Regulator, delay: Span) -> Self {
        Self::of(traffic, Hold::Regulated(regulator), delay)
    }

    /// Of a gateway in the statistical class, where a packet that conforms comes within `leeway`. The meter
    /// takes the same memory.
    pub(super) fn of_statistical(traffic: Traffic, leeway: Span, delay: Span) -> Self {
        Self::of(traffic, Hold::Metered { leeway, last: Instant::ZERO }, delay)
    }

    fn of(traffic: Traffic, hold: Hold, delay: Span) -> Self {
        let expected = RateJitter::new(traffic, history(&traffic));
        Self { hold, expected, traffic, delay, next: None, tail: None }
    }

    /// From now on packets of another contract come, too; those of both conform to `both`.
    pub(super) fn join(&mut self, traffic: Traffic, delay: Span, both: Traffic) {
        let expected = RateJitter::new(traffic, history(&traffic));
        let burst = both.burst();
        let both = RateJitter::behind(&self.expected, both, history(&both));
        self.next = Some(Box::new(Next { traffic, delay, expected, both, burst }));
    }

    /// The other contract stands alone from now on.
    pub(super) fn settle(&mut self) {
        if let Some(next) = self.next.take() {
            let Next { traffic, delay, expected, both, burst } = *next;
            (self.traffic, self.delay, self.expected) = (traffic, delay, expected);
            self.tail = Some((both, burst));
        }
    }

    /// The other contract is over, if there is one.
    pub(super) fn part(&mut self) {
        if let Some(next) = self.next.take() {
            self.tail = Some((next.both, next.burst));
        }
    }

    /// Whenever the next packet comes, it is not eligible before.
    pub(super) fn earliest(&self) -> Instant {
        match self.hold {
            Hold::Metered { .. } | Hold::Regulated(Regulator::None) => Instant::ZERO,
            Hold::Regulated(_) => match &self.next {
                Some(next) => next.both.earliest(),
                None => self.expected.earliest(),
            },
        }
    }

    /// The packets in time.
    pub(super) const fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// The next packet has come, of the contract that takes the place of the other one or not. It says that
    /// it left the node before by `ahead` before its deadline there. `None` for one that is dropped.
    pub(super) fn next(&mut self, arrival: Instant, ahead: Span, is_of_next: bool) -> Option<Times> {
        let stated = delay_jitter_ahead(arrival, ahead);
        let regulator = match &mut self.hold {
            Hold::Metered { leeway, last } => {
                let expected = self.expected.expected(stated);
                let conforms_at = expected.minus(*leeway);
                if conforms_at > stated + self.delay {
                    return None;
                }
                self.expected.enter(expected);
                // The variation of a link would let one overtake the one before.
                *last = stated.max(*last).max(conforms_at);
                let due = *last + self.delay;
                return Some(Times { eligible: *last, deadline: due, due });
            }
            Hold::Regulated(regulator) => *regulator,
        };
        let comes = if matches!(regulator, Regulator::DelayAhead { .. }) { stated } else { arrival };
        let tail = &mut self.tail;
        let (expected, delay, due) = match &mut self.next {
            None => {
                let expected = through(tail, self.expected.expected(comes));
                self.expected.enter(expected);
                (expected, self.delay, self.delay)
            }
            Some(next) => {
                let (own, delay) = match is_of_next {
                    true => (&mut next.expected, next.delay),
                    false => (&mut self.expected, self.delay),
                };
                let expected = next.both.eligible(through(tail, own.expected(comes)));
                own.enter(expected);
                (expected, delay, self.delay.min(next.delay))
            }
        };
        let eligible = if regulator == Regulator::None { arrival } else { expected };
        Some(Times { eligible, deadline: expected + delay, due: expected + due })
    }
}

/// The time of a packet by the regulator of two contracts, while it counts one that is over.
fn through(tail: &mut Option<(RateJitter<Box<[Instant]>>, u64)>, at: Instant) -> Instant {
    match tail {
        Some((both, left)) if *left > 0 => {
            *left -= 1;
            both.eligible(at)
        }
        _ => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    fn every_ten() -> Traffic {
        Traffic::periodic(ms(10)).unwrap()
    }

    /// When the next packet is eligible, and by when it leaves.
    fn passes(pacer: &mut Pacer, arrival: Instant, ahead: Span) -> Option<(Instant, Instant)> {
        pacer.next(arrival, ahead, false).map(|times| (times.eligible, times.due))
    }

    #[test]
    fn a_packet_delays_those_behind_it_by_what_it_is_late_beyond_the_leeway() {
        let ahead = Regulator::DelayAhead { step: Span::ZERO };
        // Due at 20, 30 and 40: the first one comes 15 late, the others 2 and 5 before.
        let came = [(at(35), ms(0)), (at(35), ms(2)), (at(35), ms(5))];
        let eligible = |mut pacer: Pacer| {
            came.map(|(at, ahead)| pacer.next(at, ahead, false).map(|times| times.eligible))
        };
        assert_eq!(eligible(Pacer::new(every_ten(), ahead, ms(9))), [at(35), at(45), at(55)].map(Some));
        let metered = |leeway| eligible(Pacer::of_statistical(every_ten(), leeway, ms(9)));
        assert_eq!(metered(ms(15)), [at(35), at(37), at(40)].map(Some));
        assert_eq!(metered(ms(7)), [Some(at(35)), Some(at(38)), Some(at(48))], "late beyond all bounds");
        assert_eq!(metered(ms(5)), [Some(at(35)), Some(at(40)), None]);
        let mut pacer = Pacer::of_statistical(every_ten(), ms(15), ms(9));
        assert_eq!(passes(&mut pacer, at(10), ms(5)), Some((at(15), at(24))));
        assert_eq!(
            passes(&mut pacer, at(10), ms(4)),
            Some((at(15), at(24))),
            "none overtakes the one before"
        );
    }

    /// A burst of 20 just before a change, and one of the new contract when the old one was over: each was
    /// within its own contract, and a link that has tested one such burst in a second met two.
    #[test]
    fn behind_the_end_of_a_contract_its_last_packets_still_count() {
        let burst = Traffic::new(ms(1), ms(50), ms(1_000)).unwrap();
        for stays in [true, false] {
            let mut pacer = Pacer::new(burst, Regulator::Rate, ms(9));
            let mut seen: Vec<Instant> = Vec::new();
            let mut comes = |pacer: &mut Pacer, now, count: usize, is_of_next| {
                for _ in 0..count {
                    seen.push(pacer.next(now, Span::ZERO, is_of_next).expect("none is dropped").eligible);
                }
            };
            comes(&mut pacer, at(0), if stays { 20 } else { 0 }, false);
            pacer.join(burst, ms(9), burst);
            comes(&mut pacer, at(30), if stays { 0 } else { 20 }, true);
            if stays {
                pacer.settle()
            } else {
                pacer.part()
            }
            comes(&mut pacer, at(110), 45, false);
            for k in 0..seen.len() {
                assert!(k < 1 || seen[k] >= seen[k - 1] + ms(1), "{k}");
                assert!(
                    k < 20 || seen[k] >= seen[k - 20] + ms(1_000),
                    "{k}: {}",
                    seen[k].since(seen[k - 20])
                );
            }
            assert_eq!(seen[20].since(seen[0]), ms(1_000), "no later than that");
        }
    }

    /// A further change that was denied before it was open here ended the count, and a burst followed the
    /// last packets of the contract that was over.
    #[test]
    fn a_change_that_never_opened_leaves_the_last_packets_of_the_one_before_counted() {
        let burst = Traffic::new(ms(1), ms(50), ms(1_000)).unwrap();
        let mut pacer = Pacer::new(burst, Regulator::Rate, ms(9));
        let comes = |pacer: &mut Pacer, now| passes(pacer, now, Span::ZERO).expect("none is dropped").0;
        (0..20).for_each(|k| assert_eq!(comes(&mut pacer, at(0)), at(k)));
        pacer.join(burst, ms(9), burst);
        pacer.settle();
        pacer.part();
        assert_eq!(comes(&mut pacer, at(110)), at(1_000));
    }

    /// Two changes in a second: the queue of both contracts forgot the packets of the one before.
    #[test]
    fn a_change_soon_behind_another_one_counts_the_last_packets_of_the_first_contract() {
        let burst = Traffic::new(ms(1), ms(50), ms(1_000)).unwrap();
        for is_of_next in [true, false] {
            let mut pacer = Pacer::new(burst, Regulator::Rate, ms(9));
            (0..20).for_each(|k| assert_eq!(passes(&mut pacer, at(0), Span::ZERO), Some((at(k), at(k + 9)))));
            pacer.join(burst, ms(9), burst);
            pacer.settle();
            pacer.join(burst, ms(9), burst);
            let times = pacer.next(at(110), Span::ZERO, is_of_next).expect("none is dropped");
            assert_eq!(times.eligible, at(1_000), "{is_of_next}");
        }
    }

    /// A neighbour that sends ten times as much: the leeway at once, then the contract, each of these packets
    /// delayed by the bound at most, and the rest dropped.
    #[test]
    fn a_flood_of_the_statistical_class_gets_what_its_contract_states() {
        let mut pacer = Pacer::of_statistical(every_ten(), ms(30), ms(25));
        let passed: Vec<_> = (0..1_000u64)
            .filter_map(|came| passes(&mut pacer, at(came), Span::ZERO).map(|(at, _)| (came, at)))
            .collect();
        // A packet that passes is delayed by the bound of 25 ms at most: 1,000 + 30 + 25 ms of traffic.
        assert_eq!(passed.len(), 106);
        assert!(passed.iter().all(|(came, eligible)| eligible.since(at(*came)) <= ms(25)));
        let apart: Vec<u64> =
            passed.windows(2).map(|two| two[1].1.since(two[0].1).as_nanos() / 1_000_000).collect();
        assert_eq!(apart[..4], [1, 1, 1, 7], "the leeway, and then the contract");
        assert!(apart[4..].iter().all(|apart| *apart == 10), "{apart:?}");
        // The neighbour comes to reason: what has passed before costs the channel nothing for long.
        let quiet = at(1_200);
        assert_eq!(passes(&mut pacer, quiet, Span::ZERO), Some((quiet, quiet + ms(25))));
    }

    proptest! {
        /// With any delays that the bounds of the nodes before allow, packets of a source within its traffic
        /// pass when they state to.
        #[test]
        fn traffic_that_conforms_is_neither_held_nor_dropped(
            (x_min, more, burst) in (1u64..9, 0u64..9, 1u64..6),
            leeway in 0u64..60,
            delay in 0u64..20,
            steps in prop::collection::vec((0u64..40, any::<bool>(), 0u64..1_000, 0u64..1_000), 1..120),
        ) {
            let ns = Span::from_nanos;
            let x_ave = x_min + more;
            let traffic = Traffic::new(ns(x_min), ns(x_ave), ns(x_ave * burst)).unwrap();
            let mut source = Pacer::new(traffic, Regulator::Rate, ns(0));
            let mut pacer = Pacer::of_statistical(traffic, ns(leeway), ns(delay));
            let (mut now, mut arrived, mut last) = (Instant::ZERO, Instant::ZERO, Instant::ZERO);
            for (pause, pauses, took, ahead) in steps {
                now += ns(if pauses { pause } else { 0 });
                let (sent, _) = passes(&mut source, now, Span::ZERO).expect("a source drops none");
                let due = sent + ns(leeway);
                // In order, and within the bound; it says no more than by how much it is ahead.
                arrived = arrived.max(sent + ns(took % (leeway + 1)));
                let ahead = ns(ahead % (due.since(arrived).as_nanos() + 1));
                last = last.max(arrived + ahead);
                prop_assert_eq!(passes(&mut pacer, arrived, ahead), Some((last, last + ns(delay))));
            }
        }

        /// One packet comes later by `late` than all bounds allow: each behind it is held by that at most,
        /// and none is dropped unless that is more than the bound here.
        #[test]
        fn behind_a_late_packet_others_are_held_by_its_lateness_at_most(
            (x_min, more, burst) in (1u64..9, 0u64..9, 1u64..6),
            (leeway, delay, late) in (0u64..60, 0u64..20, 0u64..40),
            steps in prop::collection::vec((0u64..40, any::<bool>(), 0u64..1_000), 1..60),
        ) {
            let ns = Span::from_nanos;
            let x_ave = x_min + more;
            let traffic = Traffic::new(ns(x_min), ns(x_ave), ns(x_ave * burst)).unwrap();
            let mut source = Pacer::new(traffic, Regulator::Rate, ns(0));
            let mut pacer = Pacer::of_statistical(traffic, ns(leeway), ns(delay));
            let (mut now, mut last) = (Instant::ZERO, Instant::ZERO);
            for (k, (pause, pauses, took)) in steps.into_iter().enumerate() {
                now += ns(if pauses { pause } else { 0 });
                let (sent, _) = passes(&mut source, now, Span::ZERO).expect("a source drops none");
                let beyond = if k == 0 { late } else { 0 };
                let came = sent + ns(if k == 0 { leeway } else { took % (leeway + 1) } + beyond);
                let Some((eligible, _)) = passes(&mut pacer, came, Span::ZERO) else {
                    prop_assert!(late > delay, "dropped, {} late", late);
                    continue;
                };
                prop_assert!(eligible <= last.max(came + ns(late.min(delay))), "held for longer");
                last = eligible;
            }
        }

        /// All packets that pass keep their order, are delayed by the bound at most behind the one before,
        /// and are what the traffic allows in the time and the leeway.
        #[test]
        fn what_passes_a_meter_is_within_the_contract(
            (x_min, more, burst) in (1u64..9, 0u64..9, 1u64..6),
            (leeway, delay) in (0u64..40, 0u64..40),
            came in prop::collection::vec((0u64..6, 0u64..30), 1..120),
        ) {
            let ns = Span::from_nanos;
            let x_ave = x_min + more;
            let traffic = Traffic::new(ns(x_min), ns(x_ave), ns(x_ave * burst)).unwrap();
            let mut pacer = Pacer::of_statistical(traffic, ns(leeway), ns(delay));
            let (mut now, mut passed) = (Instant::ZERO, Vec::<Instant>::new());
            for (pause, ahead) in came {
                now += ns(pause);
                let Some((eligible, _)) = passes(&mut pacer, now, ns(ahead)) else { continue };
                let last = passed.last().copied().unwrap_or(Instant::ZERO);
                prop_assert!(eligible >= last);
                prop_assert!(eligible <= last.max(now + ns(ahead) + ns(delay)));
                for (n, first) in passed.iter().rev().enumerate() {
                    let least = traffic.greedy(n as u64 + 2).minus(ns(leeway));
                    prop_assert!(eligible >= *first + least, "{} packets behind", n + 1);
                }
                passed.push(eligible);
            }
        }
    }
}
