//! When a packet becomes eligible at a node (`TENET-3.2-13`, `TENET-3.2-14`, `TENET-4.2-9`).
//!
//! - *Rate-jitter:* ET_k = max(AT_k, ET_(k−1) + X_min, ET_(k−B) + I). The printed index is recalled as
//!   k − ⌊I/X_ave⌋ + 1, which for B = 1 would refer to the packet itself (`TENET-R4`).
//! - *Delay-jitter:* ET_k at node n is ET_k at node n − 1 plus d_(n−1) and the longest time π_(n−1) of the
//!   link, by one of two equal ways: the packet carries by how much it left ahead of its deadline, which
//!   needs no clocks, and what the link varies adds to the jitter; or ET = timestamp + Σ (d_i + π_i), which
//!   needs synchronised clocks, and their error adds to delay, jitter and buffers. The rate-jitter
//!   regulator follows in both, so that packets conform although links vary and clocks drift.
//!
//! *Holding is free.* If each node keeps its bound, ET_k at n ≤ ET_k at n − 1 + d_(n−1) + π_(n−1) for both,
//! by induction over k: each term of the maximum is at most that. So Σ (d_i + π_i) bounds the whole delay.

use super::traffic::Traffic;
use core::ops::DerefMut;
use rota_units::{Instant, Span};

/// How a node holds packets ahead of their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regulator {
    /// It does not: Delay-EDD.
    None,
    /// Rate-jitter.
    Rate,
    /// Delay-jitter by what the packet carries: by how much it was ahead at the node before.
    DelayAhead {
        /// The most by which that is stated too small: 16 µs in RTIP's header, for bounds up to a second.
        step: Span,
    },
    /// Delay-jitter by the source's timestamp; clocks differ by `error` at most.
    DelayClock {
        /// The most by which this node's clock differs from the source's, the step of the timestamp included.
        error: Span,
    },
}

impl Regulator {
    /// By how much it may restore another time than it should: ε, or the step.
    pub const fn error(self) -> Span {
        match self {
            Self::DelayClock { error } => error,
            Self::DelayAhead { step } => step,
            Self::None | Self::Rate => Span::ZERO,
        }
    }

    /// ε; zero where no clock counts. It alone can make a packet eligible behind its time.
    pub const fn clock_error(self) -> Span {
        if matches!(self, Self::DelayClock { .. }) { self.error() } else { Span::ZERO }
    }
}

/// The eligibility times of one channel, or of as many together as a group has at once (`sharing.rs`).
/// `history` holds the last B of each of them, borrowed or owned.
#[derive(Clone, Debug)]
pub struct RateJitter<H> {
    traffic: Traffic,
    at_once: u64,
    history: H,
    seen: u64,
}

impl<H: DerefMut<Target = [Instant]>> RateJitter<H> {
    /// A regulator whose memory has exactly B places. Panics on another number.
    pub fn new(traffic: Traffic, history: H) -> Self {
        Self::of_group(traffic, 1, history)
    }

    /// The same of a group (`sharing.rs`), with B places for each of its members at once. Panics on another
    /// number, and on none at once.
    pub fn of_group(traffic: Traffic, at_once: u8, history: H) -> Self {
        let at_once = u64::from(at_once);
        assert!(at_once > 0, "some member sends");
        assert_eq!(
            history.len() as u64,
            traffic.burst() * at_once,
            "one place for each packet of an interval"
        );
        Self { traffic, at_once, history, seen: 0 }
    }

    /// The regulator of the packets that come behind those of `former`, by other traffic. Times that `former`
    /// has forgotten count as late as its traffic allows beside those that it remembers. So no packet that
    /// goes on to conform to `former` is held by traffic that carries that one. Panics on a memory of another
    /// number than B, and behind a group.
    pub fn behind<F: DerefMut<Target = [Instant]>>(
        former: &RateJitter<F>,
        traffic: Traffic,
        history: H,
    ) -> Self {
        assert_eq!(former.at_once, 1, "behind a single channel");
        let mut next = Self::new(traffic, history);
        let (places, apart) = (next.history.len(), former.history.len());
        let known = usize::try_from(former.seen).map_or(apart, |seen| seen.min(apart)).min(places);
        let has_forgotten = former.seen > known as u64;
        let first = if has_forgotten { places - known } else { 0 };
        for (at, k) in (first..first + known).zip(former.seen - known as u64..) {
            next.history[at] = former.history[former.place(k)];
        }
        for at in (0..first).rev() {
            let before = next.history.get(at + 1).map(|next| next.minus(former.traffic.x_min()));
            let burst = next.history.get(at + apart).map(|next| next.minus(former.traffic.interval()));
            next.history[at] = before.into_iter().chain(burst).min().unwrap_or(Instant::ZERO);
        }
        next.seen = (first + known) as u64;
        next
    }

    /// The least ET of the next packet, whenever it arrives.
    pub fn earliest(&self) -> Instant {
        let mut earliest = Instant::ZERO;
        // Of a single channel the one below is later.
        if self.seen > 0 && self.at_once > 1 {
            earliest = self.history[self.place(self.seen - 1)];
        }
        if self.seen >= self.at_once {
            earliest =
                earliest.max(self.history[self.place(self.seen - self.at_once)] + self.traffic.x_min());
        }
        if self.seen >= self.history.len() as u64 {
            // Its place is the one that the new packet takes over.
            earliest = earliest.max(self.history[self.place(self.seen)] + self.traffic.interval());
        }
        earliest
    }

    /// ET of the next packet, which arrives at `arrival`; also the expected arrival of Delay-EDD.
    pub fn eligible(&mut self, arrival: Instant) -> Instant {
        let eligible = self.expected(arrival);
        self.enter(eligible);
        eligible
    }

    /// The same without any trace of the packet.
    pub fn expected(&self, arrival: Instant) -> Instant {
        arrival.max(self.earliest())
    }

    /// A packet that was expected at this time counts for those behind it.
    pub fn enter(&mut self, expected: Instant) {
        let place = self.place(self.seen);
        self.history[place] = expected;
        self.seen += 1;
    }

    fn place(&self, k: u64) -> usize {
        (k % self.history.len() as u64) as usize
    }
}

/// Delay-jitter by what the packet carries, as the arrival for a rate-jitter regulator: it left the node
/// before by `ahead` before its deadline.
pub fn delay_jitter_ahead(arrival: Instant, ahead: Span) -> Instant {
    arrival + ahead
}

/// Delay-jitter by the timestamp: what a rate-jitter regulator is given as the arrival. `upstream` is
/// Σ (d_i + π_i) over the nodes before. A packet that is later than that, since a clock is wrong, goes on at
/// once. By induction each is eligible ε behind its time at most.
pub fn delay_jitter_clock(arrival: Instant, stamp: Instant, upstream: Span) -> Instant {
    arrival.max(stamp + upstream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ns(n: u64) -> Span {
        Span::from_nanos(n)
    }

    #[test]
    fn a_loop_that_sends_at_once_becomes_the_staircase_of_figure_10() {
        let traffic = Traffic::new(ns(2), ns(3), ns(10)).unwrap();
        let mut history = [Instant::ZERO; 3];
        let mut regulator = RateJitter::new(traffic, &mut history[..]);
        let eligible: Vec<u64> = (0..7).map(|_| regulator.eligible(Instant::ZERO).as_nanos()).collect();
        assert_eq!(eligible, [0, 2, 4, 10, 12, 14, 20]);
        assert_eq!(delay_jitter_ahead(Instant::from_nanos(5), ns(3)), Instant::from_nanos(8));
        assert_eq!(delay_jitter_clock(Instant::from_nanos(5), Instant::ZERO, ns(9)), Instant::from_nanos(9));
        assert_eq!(delay_jitter_clock(Instant::from_nanos(5), Instant::ZERO, ns(3)), Instant::from_nanos(5));
    }

    proptest! {
        /// Two regulators in one, from any moment on: packets of the first traffic are not held by one that
        /// carries it, and all packets conform to it, those before that moment among them.
        #[test]
        fn a_regulator_goes_on_where_another_one_stood(
            (x_min, more, burst) in (1u64..9, 0u64..9, 1u64..6),
            (quicker, longer, further) in (0u64..4, 0u64..9, 0u64..6),
            gaps in prop::collection::vec(0u64..12, 1..60), begins in 0usize..40, switches in 0usize..60,
        ) {
            let former = Traffic::new(ns(x_min), ns(x_min + more), ns((x_min + more) * burst)).unwrap();
            let (x, n) = (x_min.saturating_sub(quicker).max(1), burst + further);
            let other = Traffic::new(ns(x), ns(x + longer), ns((x + longer) * n)).unwrap();
            let both = former.greater(&other);
            let mut first = RateJitter::new(former, vec![Instant::ZERO; former.burst() as usize]);
            let mut all: Option<RateJitter<Vec<Instant>>> = None;
            let (mut now, mut out) = (100_000, Vec::new());
            for (k, gap) in gaps.into_iter().enumerate() {
                now += gap;
                let at = Instant::from_nanos(now);
                if k == begins {
                    all = Some(RateJitter::behind(&first, both, vec![Instant::ZERO; both.burst() as usize]));
                }
                let is_first = k < begins.max(switches);
                let own = if is_first { first.expected(at) } else { at };
                let eligible = all.as_mut().map_or(own, |all| all.eligible(own));
                if is_first {
                    prop_assert_eq!(eligible, own, "a packet of the first traffic is held");
                    first.enter(eligible);
                }
                out.push(eligible);
            }
            for (k, eligible) in out.iter().enumerate() {
                let within = |back: usize, apart: Span| {
                    k.checked_sub(back).is_none_or(|before| *eligible >= out[before] + apart)
                };
                prop_assert!(within(1, both.x_min()) && within(both.burst() as usize, both.interval()));
            }
        }

        /// The output conforms whatever comes in, and what conforms is not held.
        #[test]
        fn what_leaves_a_regulator_conforms(
            x_min in 1u64..9, more in 0u64..9, burst in 1u64..6,
            gaps in prop::collection::vec(0u64..20, 1..60)
        ) {
            let x_ave = x_min + more;
            let traffic = Traffic::new(ns(x_min), ns(x_ave), ns(x_ave * burst)).unwrap();
            let mut history = vec![Instant::ZERO; burst as usize];
            let mut regulator = RateJitter::new(traffic, &mut history[..]);
            let (mut now, mut out) = (0, Vec::new());
            for gap in gaps {
                now += gap;
                out.push(regulator.eligible(Instant::from_nanos(now)));
            }
            for (k, eligible) in out.iter().enumerate() {
                let within = |back: usize, apart: Span| {
                    k.checked_sub(back).is_none_or(|before| *eligible >= out[before] + apart)
                };
                prop_assert!(within(1, ns(x_min)) && within(burst as usize, ns(x_ave * burst)));
            }
            let mut history = vec![Instant::ZERO; burst as usize];
            let mut second = RateJitter::new(traffic, &mut history[..]);
            for eligible in out {
                prop_assert_eq!(second.eligible(eligible), eligible);
            }
        }
    }
}
