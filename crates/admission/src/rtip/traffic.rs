//! Traffic as a client states it (`TENET-3.1-26`), and how many packets it can bring (`TENET-R1`).
//!
//! Conforming means: consecutive packets are X_min apart or more, and packets k and k + B are I apart or
//! more, B = ⌊I / X_ave⌋. The *greedy* sequence q·I + r·X_min, 0 ≤ r < B, brings the most packets into every
//! interval at once: the m-th packet behind any packet comes no earlier than in it, by induction over
//! m, since each of the two rules holds with equality. Hence two counts:
//!
//! - in a closed interval [0, t]: N_c(t) = ⌊t/I⌋·B + min(⌊(t mod I)/X_min⌋ + 1, B), for tests of deadlines;
//! - in a half-open one [0, t): N_o(t) = ⌊t/I⌋·B + min(⌈(t mod I)/X_min⌉, B), for tests of levels.
//!
//! Both are subadditive: an interval cut in two holds no more packets than its parts can.

use crate::clocks::Clocks;
use crate::search::largest;
use core::fmt;
use rota_units::{Octets, Span};

/// The statement of a client about its messages (paper Table 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    /// X_min: least time between two messages.
    pub x_min: Span,
    /// X_ave: least average time between messages, over any `interval`.
    pub x_ave: Span,
    /// I: the interval of the average.
    pub interval: Span,
    /// S_max: the largest message.
    pub s_max: Octets,
}

/// A traffic statement that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadTraffic {
    /// X_min is zero.
    XMinZero,
    /// X_ave is shorter than X_min.
    XAveBelowXMin,
    /// I is shorter than X_ave, so that it may bring no packet at all.
    IntervalBelowXAve,
    /// S_max is zero.
    SMaxZero,
    /// I is longer than [`Traffic::INTERVAL_MAX`].
    IntervalTooLong,
    /// I holds more than [`Traffic::BURST_MAX`] packets.
    TooManyPackets,
    /// X_min is so short that the packets of one message cannot be told apart on every clock.
    MessageTooLarge,
}

impl fmt::Display for BadTraffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::XMinZero => "xmin is zero; state the least time between two messages",
            Self::XAveBelowXMin => "xave is shorter than xmin; it must be as long or longer",
            Self::IntervalBelowXAve => "the interval is shorter than xave; it must hold one message",
            Self::SMaxZero => "smax is zero; state the largest message",
            Self::IntervalTooLong => "the interval is longer than 1000 s",
            Self::TooManyPackets => "the interval holds more than 65536 packets; state a shorter one",
            Self::MessageTooLarge => "smax is too large for xmin; its packets would be closer than 3 ns",
        })
    }
}

impl core::error::Error for BadTraffic {}

/// The packets of a channel in time: X_min, I and B. Always valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    x_min: u64,
    interval: u64,
    burst: u64,
}

impl Traffic {
    /// The longest I: sums of a thousand channels then stay far below the ends of the integers.
    pub const INTERVAL_MAX: Span = Span::from_millis(1_000_000);
    /// The most packets in one I: a regulator remembers so many.
    pub const BURST_MAX: u64 = 65_536;

    /// One packet at most each `x_min`, and on average one each `x_ave` over any `interval`.
    ///
    /// # Errors
    /// [`BadTraffic`], the first rule that is broken.
    pub fn new(x_min: Span, x_ave: Span, interval: Span) -> Result<Self, BadTraffic> {
        if x_min == Span::ZERO {
            return Err(BadTraffic::XMinZero);
        }
        if x_ave < x_min {
            return Err(BadTraffic::XAveBelowXMin);
        }
        if interval < x_ave {
            return Err(BadTraffic::IntervalBelowXAve);
        }
        Self::of_burst(x_min, interval.count_down(x_ave), interval)
    }

    /// One packet each `period`.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn periodic(period: Span) -> Result<Self, BadTraffic> {
        Self::new(period, period, period)
    }

    /// `burst` packets in any `interval`; the caller has `burst`·`x_min` ≤ `interval`.
    fn of_burst(x_min: Span, burst: u64, interval: Span) -> Result<Self, BadTraffic> {
        if interval > Self::INTERVAL_MAX {
            return Err(BadTraffic::IntervalTooLong);
        }
        if burst > Self::BURST_MAX {
            return Err(BadTraffic::TooManyPackets);
        }
        assert!(burst >= 1 && x_min * burst <= interval, "B·Xmin fits into I");
        Ok(Self { x_min: x_min.as_nanos(), interval: interval.as_nanos(), burst })
    }

    /// `burst` packets, `x_min` apart, and `rest` behind them to the end of the interval: what a list of
    /// numbers says. `None` if there is no such traffic.
    pub fn of_parts(x_min: Span, burst: u64, rest: Span) -> Option<Self> {
        let is_some = x_min > Span::ZERO && (1..=Self::BURST_MAX).contains(&burst);
        let interval = x_min * burst + rest;
        if is_some { Self::of_burst(x_min, burst, interval).ok() } else { None }
    }

    /// X_min.
    pub const fn x_min(&self) -> Span {
        Span::from_nanos(self.x_min)
    }

    /// I.
    pub const fn interval(&self) -> Span {
        Span::from_nanos(self.interval)
    }

    /// B, packets in any interval of I.
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    /// The same packets on another one of these clocks: X_min and I, each shorter. B·X_min ≤ I still: B whole
    /// parts of (1 − κ)·X_min are no more than (1 − κ)·I, and whole.
    #[must_use]
    pub(crate) fn closer(&self, clocks: Clocks) -> Self {
        let x_min = clocks.shorter(self.x_min()).as_nanos().max(1);
        let interval = clocks.shorter(self.interval()).as_nanos();
        Self { x_min, interval: interval.max(x_min.saturating_mul(self.burst)), burst: self.burst }
    }

    /// N_c: the most packets in a closed interval of this length.
    pub const fn closed(&self, length: Span) -> u64 {
        let (whole, rest) = self.split(length);
        whole.saturating_add(least(rest / self.x_min + 1, self.burst))
    }

    /// N_o: the most packets in a half-open interval of this length.
    pub const fn half_open(&self, length: Span) -> u64 {
        let (whole, rest) = self.split(length);
        whole.saturating_add(least(rest.div_ceil(self.x_min), self.burst))
    }

    /// Packets of the whole intervals, and the time behind them. B·X_min ≤ I, so the product stays below t.
    const fn split(&self, length: Span) -> (u64, u64) {
        let length = length.as_nanos();
        (length / self.interval * self.burst, length % self.interval)
    }

    /// When packet `m`, counted from 1, of the greedy sequence comes.
    pub const fn greedy(&self, m: u64) -> Span {
        let before = m.saturating_sub(1);
        let whole = (before / self.burst).saturating_mul(self.interval);
        Span::from_nanos(whole.saturating_add(before % self.burst * self.x_min))
    }

    /// The first time behind `length` at which N_c rises.
    pub const fn next_jump(&self, length: Span) -> Span {
        self.greedy(self.closed(length).saturating_add(1))
    }

    /// True if all packets that conform to `other` conform to this one. Two of them are g(2) apart or more,
    /// packets k and k + B are g(B + 1) apart or more, g the greedy sequence of `other`, in which both hold
    /// with equality.
    pub const fn carries(&self, other: &Self) -> bool {
        other.greedy(2).as_nanos() >= self.x_min && other.greedy(self.burst + 1).as_nanos() >= self.interval
    }

    /// Traffic to which all packets conform that conform to one of two: one of the two where it carries the
    /// other one, and otherwise that of the shorter X_min and I and the greater B. Packets that keep B·X_min
    /// apart need no shorter I than that.
    #[must_use]
    pub fn greater(&self, other: &Self) -> Self {
        if self.carries(other) {
            return *self;
        }
        if other.carries(self) {
            return *other;
        }
        let x_min = self.greedy(2).as_nanos().min(other.greedy(2).as_nanos());
        let burst = self.burst.max(other.burst);
        let interval = self.interval.min(other.interval).max(x_min.saturating_mul(burst));
        match interval > x_min.saturating_mul(burst) {
            true => Self { x_min, interval, burst },
            false => Self { x_min, interval: x_min, burst: 1 },
        }
    }

    /// I − (B − 1)·X_min: from the last packet of a burst to the next burst.
    pub const fn pause(&self) -> u64 {
        self.interval - (self.burst - 1) * self.x_min
    }
}

const fn least(a: u64, b: u64) -> u64 {
    if a < b { a } else { b }
}

/// Messages as the network carries them (`TENET-5.2.1-1`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets {
    /// The packets in time.
    pub traffic: Traffic,
    /// Payload of the largest packet.
    pub octets: Octets,
    /// n, packets of the largest message.
    pub count: u64,
    /// From the first packet of a message to its last, both at the earliest: part of a message's delay.
    pub spread: Span,
}

impl Messages {
    /// Packets that are closer could not be told apart on another clock.
    const PACKETS_APART: Span = Span::from_nanos(3);

    /// The packets of at most `payload_max` octets that carry these messages: n = ⌈S_max / P⌉, one each
    /// ⌊X_min / n⌋, n·B in each I, and all of nearly the same size.
    ///
    /// *Proof.* Let packet i of a message handed over at τ be eligible at τ + i·X, X = ⌊X_min/n⌋. The message
    /// before was handed over at τ − X_min or earlier, so its last packet is τ − X or earlier. Packet i of
    /// the message B before is I earlier. The last packet waits (n − 1)·X: the spread.
    ///
    /// # Errors
    /// [`BadTraffic`], the first rule that is broken.
    pub fn packets(&self, payload_max: Octets) -> Result<Packets, BadTraffic> {
        if self.s_max == Octets::ZERO {
            return Err(BadTraffic::SMaxZero);
        }
        let messages = Traffic::new(self.x_min, self.x_ave, self.interval)?;
        let count = self.s_max.pieces_up(payload_max.max(Octets::new(1)));
        let x_min = self.x_min.div_down(count);
        if x_min < Self::PACKETS_APART {
            return Err(BadTraffic::MessageTooLarge);
        }
        let burst = messages.burst.saturating_mul(count);
        let traffic = Traffic::of_burst(x_min, burst, self.interval)?;
        let octets = Octets::new(self.s_max.get().div_ceil(count));
        Ok(Packets { traffic, octets, count, spread: x_min * (count - 1) })
    }

    /// The largest S_max below this one whose packets fit, as far as halving finds it: fewer packets may be
    /// larger ones.
    pub fn largest(&self, payload_max: Octets, mut fits: impl FnMut(&Packets) -> bool) -> Option<Octets> {
        let mut fits = |octets| {
            let smaller = Self { s_max: Octets::new(octets), ..*self };
            smaller.packets(payload_max).is_ok_and(|packets| fits(&packets))
        };
        let bad = self.s_max.get();
        (bad > 1 && fits(1)).then(|| Octets::new(largest(1, bad, fits)))
    }

    /// The shortest X_min above this one, up to [`Traffic::INTERVAL_MAX`], with which the packets fit. The
    /// other times become no shorter than it is.
    pub fn quickest(&self, payload_max: Octets, mut fits: impl FnMut(&Packets) -> bool) -> Option<Span> {
        self.quickest_of(|x_min| self.slower(x_min).packets(payload_max).is_ok_and(|packets| fits(&packets)))
    }

    /// The same of any test that does not fail again where a longer X_min passes it.
    pub fn quickest_of(&self, mut fits: impl FnMut(Span) -> bool) -> Option<Span> {
        let mut is_too_short = |x_min: u64| !fits(Span::from_nanos(x_min));
        let (bad, good) = (self.x_min.as_nanos(), Traffic::INTERVAL_MAX.as_nanos());
        if bad >= good || is_too_short(good) {
            return None;
        }
        Some(Span::from_nanos(largest(bad, good, is_too_short) + 1))
    }

    /// The nearest messages whose packets fit: the largest S_max, and where none is small enough the shortest
    /// X_min.
    pub fn nearest(
        &self,
        payload_max: Octets,
        mut fits: impl FnMut(&Packets) -> bool,
    ) -> (Option<Octets>, Option<Span>) {
        match self.largest(payload_max, &mut fits) {
            None => (None, self.quickest(payload_max, fits)),
            smaller => (smaller, None),
        }
    }

    /// The same messages so far apart at least.
    #[must_use]
    pub fn slower(&self, x_min: Span) -> Self {
        let x_ave = self.x_ave.max(x_min);
        Self { x_min, x_ave, interval: self.interval.max(x_ave), ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn ns(n: u64) -> Span {
        Span::from_nanos(n)
    }

    fn of(x_min: u64, x_ave: u64, interval: u64) -> Traffic {
        Traffic::new(ns(x_min), ns(x_ave), ns(interval)).unwrap()
    }

    #[test]
    fn the_nearest_messages_are_found_by_their_packets() {
        let (x_min, s_max) = (ns(1_000), Octets::new(100));
        let messages = Messages { x_min, x_ave: x_min, interval: x_min, s_max };
        let packet = Octets::new(10);
        let seven = |packets: &Packets| packets.count <= 7;
        assert_eq!(messages.largest(packet, seven), Some(Octets::new(70)));
        assert_eq!(messages.largest(packet, |_| false), None);
        let apart = |packets: &Packets| packets.traffic.x_min() >= ns(250);
        assert_eq!(messages.quickest(packet, apart), Some(ns(2_500)));
        assert_eq!(messages.quickest(packet, |_| false), None);
        assert_eq!(messages.nearest(packet, seven), (Some(Octets::new(70)), None));
        assert_eq!(
            messages.nearest(packet, |packets| packets.count > 7 && apart(packets)),
            (None, Some(ns(2_500)))
        );
        assert_eq!(messages.nearest(packet, |_| false), (None, None));
    }

    #[test]
    fn both_counts_by_hand() {
        // Three packets in any 10, two apart: 0 2 4 10 12 14 20.
        let traffic = of(2, 3, 10);
        let closed: Vec<u64> = (0..16).map(|t| traffic.closed(ns(t))).collect();
        assert_eq!(closed, [1, 1, 2, 2, 3, 3, 3, 3, 3, 3, 4, 4, 5, 5, 6, 6]);
        let open: Vec<u64> = (0..16).map(|t| traffic.half_open(ns(t))).collect();
        assert_eq!(open, [0, 1, 1, 2, 2, 3, 3, 3, 3, 3, 3, 4, 4, 5, 5, 6]);
        let greedy: Vec<u64> = (1..8).map(|m| traffic.greedy(m).as_nanos()).collect();
        assert_eq!(greedy, [0, 2, 4, 10, 12, 14, 20]);
        assert_eq!((traffic.burst(), traffic.pause()), (3, 6));
    }

    #[test]
    fn statements_that_cannot_be_are_refused_by_name() {
        let new = |x_min, x_ave, interval| Traffic::new(ns(x_min), ns(x_ave), ns(interval)).unwrap_err();
        assert_eq!(new(0, 1, 1), BadTraffic::XMinZero);
        assert_eq!(new(2, 1, 2), BadTraffic::XAveBelowXMin);
        assert_eq!(new(1, 2, 1), BadTraffic::IntervalBelowXAve);
        assert_eq!(new(1, 1, 65_537), BadTraffic::TooManyPackets);
        let long = Traffic::INTERVAL_MAX.as_nanos() + 1;
        assert_eq!(new(long, long, long), BadTraffic::IntervalTooLong);
        let message = Messages { x_min: ns(3), x_ave: ns(3), interval: ns(3), s_max: Octets::ZERO };
        assert_eq!(message.packets(Octets::new(1)), Err(BadTraffic::SMaxZero));
        let large = Messages { s_max: Octets::new(4), ..message };
        assert_eq!(large.packets(Octets::new(1)), Err(BadTraffic::MessageTooLarge));
        for bad in [BadTraffic::XMinZero, BadTraffic::TooManyPackets, BadTraffic::MessageTooLarge] {
            assert!(bad.to_string().contains("xmin") || bad.to_string().contains("interval"));
        }
    }

    /// Note 7 of the paper.
    #[test]
    fn eleven_messages_a_second_of_7200_octets_are_88_packets_of_at_most_1000() {
        let second = Span::from_millis(1_000);
        let video = Messages {
            x_min: second.div_down(11),
            x_ave: second.div_down(11),
            interval: second,
            s_max: Octets::new(7_200),
        };
        let packets = video.packets(Octets::new(1_000)).unwrap();
        assert_eq!((packets.count, packets.octets), (8, Octets::new(900)));
        assert_eq!(packets.traffic.burst(), 88);
        assert_eq!(packets.traffic.x_min(), second.div_down(88));
        assert_eq!(packets.spread, second.div_down(88) * 7);
    }

    prop_compose! {
        fn any_traffic()(x_min in 1u64..9, more in 0u64..9, burst in 1u64..6, rest in 0u64..9) -> Traffic {
            let x_ave = x_min + more;
            of(x_min, x_ave, x_ave * burst + rest.min(x_ave - 1))
        }
    }

    proptest! {
        /// Against a count of the greedy sequence, packet by packet; and no conforming sequence beats it.
        #[test]
        fn the_counts_are_those_of_the_greedy_sequence(
            traffic in any_traffic(), t in 0u64..90, gaps in prop::collection::vec(0u64..5, 0..40)
        ) {
            let greedy = |m| traffic.greedy(m).as_nanos();
            let closed = (1..200).take_while(|&m| greedy(m) <= t).count() as u64;
            let open = (1..200).take_while(|&m| greedy(m) < t).count() as u64;
            prop_assert_eq!((traffic.closed(ns(t)), traffic.half_open(ns(t))), (closed, open));
            prop_assert_eq!(traffic.next_jump(ns(t)).as_nanos(), greedy(closed + 1));
            let (burst, mut sent) = (traffic.burst() as usize, Vec::<u64>::new());
            for gap in gaps {
                let after_last = sent.last().map_or(0, |last| last + traffic.x_min().as_nanos());
                let interval = traffic.interval().as_nanos();
                let back = sent.len().checked_sub(burst).map_or(0, |k| sent[k] + interval);
                sent.push(after_last.max(back) + gap);
            }
            for (i, start) in sent.iter().enumerate() {
                let inside = sent[i..].iter().filter(|at| *at - start <= t).count() as u64;
                prop_assert!(inside <= closed);
            }
        }

        /// Against each greedy sequence, packet by packet.
        #[test]
        fn the_greater_traffic_carries_both(a in any_traffic(), b in any_traffic(), t in 0u64..120) {
            let greater = a.greater(&b);
            for of in [a, b] {
                prop_assert!(greater.carries(&of));
                prop_assert!(greater.closed(ns(t)) >= of.closed(ns(t)));
                prop_assert!(greater.half_open(ns(t)) >= of.half_open(ns(t)));
            }
            let is_no_less = (1..200).all(|m| a.greedy(m) <= b.greedy(m));
            prop_assert_eq!(a.carries(&b), is_no_less);
            prop_assert_eq!(b.greater(&a).closed(ns(t)), greater.closed(ns(t)));
        }

        #[test]
        fn both_counts_are_subadditive(traffic in any_traffic(), a in 0u64..60, b in 0u64..60) {
            let (open, closed) = (|t| traffic.half_open(ns(t)), |t| traffic.closed(ns(t)));
            prop_assert!(open(a + b) <= open(a) + open(b));
            prop_assert!(closed(a + b) <= open(a) + closed(b));
        }

        #[test]
        fn the_packets_of_messages_conform(
            x_min in 10u64..50, more in 0u64..30, burst in 1u64..5, octets in 1u64..40, payload in 1u64..9
        ) {
            let x_ave = x_min + more;
            let (s_max, interval) = (Octets::new(octets), ns(x_ave * burst));
            let messages = Messages { x_min: ns(x_min), x_ave: ns(x_ave), interval, s_max };
            let Ok(packets) = messages.packets(Octets::new(payload)) else { return Ok(()) };
            prop_assert!(packets.count * packets.octets.get() >= octets && packets.octets.get() <= payload);
            let own = of(x_min, x_ave, interval.as_nanos());
            let at = |m: u64, i: u64| own.greedy(m) + packets.traffic.x_min() * i;
            let n = packets.count;
            for k in n * burst..3 * n * burst {
                let (packet, before) = (at(k / n + 1, k % n), at((k - 1) / n + 1, (k - 1) % n));
                prop_assert!(packet >= before + packets.traffic.x_min());
                let back = k - n * burst;
                prop_assert!(packet >= at(back / n + 1, back % n) + interval);
            }
        }
    }
}
