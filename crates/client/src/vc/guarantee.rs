//! The traffic of a guaranteed circuit, as its program states it, and as its channel does.
//!
//! A program states a leaky bucket (σ, ρ) and its largest message. The channel states X_min, X_ave, I and
//! S_max (decision 034). A message of S octets is one unit, S_max has the head of a TPDU beside it, and
//! X = S/ρ is the time between messages on average. The bucket holds n = σ/S messages.
//!
//! - Without a peak X_min = X_ave = X. A burst waits at the sender and leaves at the rate.
//! - With one X_min = S/peak, X_ave = X and I = n·X: a burst of n leaves at the peak rate.

use rota_contract::{AskedTerms, TrafficSpec};
use rota_proto::vc::{CARRIED_HEAD_OCTETS, CARRIED_OCTETS_MAX};
use rota_units::{BitRate, Instant, Octets, Span};
use std::collections::VecDeque;

/// The request of a guaranteed circuit to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantee {
    /// The rate ρ of the program's octets.
    pub rate: BitRate,
    /// The largest message that is one TPDU, octets; a longer one is cut into up to 64. 0: what the rate
    /// carries in a cycle of a 30 Hz segment, as a stream wants.
    pub message: u32,
    /// The depth σ of the bucket, octets: what may be written at once. At least two messages.
    pub burst: u32,
    /// The rate at which a burst leaves; that of the circuit unless stated.
    pub peak: Option<BitRate>,
    /// The longest delay of a TPDU that is borne; the network's own bound unless stated.
    pub delay: Option<Span>,
}

/// The time in which the usual TPDU of a stream is sent.
const USUAL: Span = Span::from_nanos(33_333_333);
/// Octets of that TPDU at least.
const USUAL_OCTETS: u64 = 512;
/// A bucket of one message would lose the rate at each wake-up of its program. More than 48 have no room
/// in the ring of a channel.
const BURST: std::ops::RangeInclusive<u32> = 2..=48;

impl Guarantee {
    /// Messages of any size at this rate.
    pub const fn of_rate(rate: BitRate) -> Self {
        Self { rate, message: 0, burst: 0, peak: None, delay: None }
    }

    /// Octets of data in a TPDU at most (S).
    pub(super) fn tpdu(&self) -> u16 {
        // No fewer than fill the cycle: a period that is a little shorter would reserve two slots in each.
        let usual = (self.rate.octets_in_down(USUAL).get() + 1).max(USUAL_OCTETS);
        let octets = if self.message == 0 { usual } else { u64::from(self.message) };
        u16::try_from(octets).unwrap_or(CARRIED_OCTETS_MAX).min(CARRIED_OCTETS_MAX)
    }

    /// Messages in the bucket (n).
    pub(super) fn messages(&self) -> u16 {
        let messages = (self.burst / u32::from(self.tpdu())).clamp(*BURST.start(), *BURST.end());
        messages as u16
    }

    fn size(&self) -> Octets {
        Octets::new(u64::from(self.tpdu()))
    }

    /// X_ave.
    fn average(&self) -> Span {
        self.rate.span_of_up(self.size())
    }

    /// X_min.
    fn least(&self) -> Span {
        self.peak.map_or(self.average(), |peak| peak.span_of_up(self.size()))
    }

    /// I.
    fn interval(&self) -> Span {
        self.average() * u64::from(self.messages())
    }

    /// The contradiction, as a sentence.
    pub(super) fn check(&self) -> Result<(), String> {
        match self.peak {
            Some(peak) if peak < self.rate => Err(format!(
                "a burst cannot leave at {peak}, slower than the rate of {}: state a higher peak, or none",
                self.rate
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn traffic(&self) -> TrafficSpec {
        TrafficSpec::fixed(u32::from(self.tpdu()) + CARRIED_HEAD_OCTETS as u32, self.least(), true)
    }

    pub(super) fn terms(&self) -> AskedTerms {
        let bursts = self.peak.is_some();
        let (average, interval) = (self.average(), self.interval());
        AskedTerms {
            average: bursts.then_some(average),
            interval: bursts.then_some(interval),
            delay: self.delay,
            ..AskedTerms::default()
        }
    }
}

/// The turns of TPDUs: the k-th is no earlier than X_min behind the one before it, and I behind the one n
/// before it. So what was handed over at its turn or before it keeps the channel's contract.
pub(super) struct Turns {
    least: Span,
    interval: Span,
    /// So long before its turn a TPDU may be handed over: (n − 1)·X. A program that wakes later by less loses
    /// no turn; one that is lost never comes again, since the next one is I behind it.
    ahead: Span,
    messages: usize,
    /// The newest ones, n of them at most.
    given: VecDeque<Instant>,
}

impl Turns {
    pub(super) fn new(guarantee: &Guarantee) -> Self {
        let messages = usize::from(guarantee.messages());
        let given = VecDeque::with_capacity(messages);
        let ahead = guarantee.average() * (messages as u64 - 1);
        Self { least: guarantee.least(), interval: guarantee.interval(), ahead, messages, given }
    }

    /// The turn of a TPDU that is handed over now.
    pub(super) fn next(&self, now: Instant) -> Instant {
        let behind_last = self.given.back().map_or(now, |last| *last + self.least);
        let first = self.given.front().filter(|_| self.given.len() == self.messages);
        now.max(behind_last).max(first.map_or(now, |first| *first + self.interval))
    }

    /// When the next TPDU may be handed over: so long before its turn that the bucket holds it.
    pub(super) fn opens(&self) -> Instant {
        self.next(Instant::ZERO).minus(self.ahead)
    }

    /// A TPDU has this turn.
    pub(super) fn give(&mut self, turn: Instant) {
        if self.given.len() == self.messages {
            self.given.pop_front();
        }
        self.given.push_back(turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbit(mbit: u64) -> BitRate {
        BitRate::from_mbit(mbit)
    }

    #[test]
    fn a_leaky_bucket_is_stated_as_a_channel_states_traffic() {
        let of_rate = Guarantee::of_rate(mbit(2));
        assert_eq!((of_rate.tpdu(), of_rate.messages()), (8_334, 2));
        assert_eq!(of_rate.traffic().period, Span::from_micros(33_336));
        assert_eq!(of_rate.traffic().unit_octets_max, 8_346);
        assert_eq!(of_rate.terms(), AskedTerms::default());
        let bursts = Guarantee { message: 1_000, burst: 8_000, peak: Some(mbit(10)), ..of_rate };
        assert_eq!((bursts.tpdu(), bursts.messages()), (1_000, 8));
        assert_eq!(bursts.traffic().period, Span::from_micros(800));
        let terms = bursts.terms();
        let stated = (terms.average, terms.interval);
        assert_eq!(stated, (Some(Span::from_millis(4)), Some(Span::from_millis(32))));
        assert_eq!(terms.check(bursts.traffic().period), Ok(()));
        assert!(Guarantee { peak: Some(mbit(1)), ..bursts }.check().is_err_and(|why| why.contains("peak")));
        let large = Guarantee { message: u32::MAX, burst: u32::MAX, ..bursts };
        assert_eq!((large.tpdu(), large.messages()), (CARRIED_OCTETS_MAX, 48));
        let slow = Guarantee::of_rate(BitRate::new(1).expect("a rate"));
        assert_eq!(slow.tpdu(), 512);
    }

    /// TRANSPORT-5.3.4-1: whatever the pauses of the program, no interval has more than the bucket allows,
    /// and one that is late by less than the bucket holds loses nothing of its rate.
    #[test]
    fn turns_keep_the_contract_and_lose_nothing_of_the_rate() {
        for peak in [None, Some(mbit(10))] {
            let guarantee = Guarantee { message: 1_000, burst: 4_000, peak, ..Guarantee::of_rate(mbit(2)) };
            let (mut turns, mut all) = (Turns::new(&guarantee), Vec::new());
            let mut now = Instant::from_nanos(1_000_000_000);
            let mut late = [0u64, 300, 2_000, 50, 3_900].into_iter().cycle();
            for _ in 0..1_000 {
                // The program wakes a little behind the instant at which it may write.
                now = now.max(turns.opens()) + Span::from_micros(late.next().expect("endless"));
                let turn = turns.next(now);
                assert!(turn >= now && turn.since(now) <= guarantee.average() * 3, "{peak:?}");
                turns.give(turn);
                all.push(turn);
            }
            let average = guarantee.average();
            for n in 1..all.len() {
                assert!(all[n].since(all[n - 1]) >= guarantee.least());
                if n >= 4 {
                    assert!(all[n].since(all[n - 4]) >= guarantee.interval());
                }
            }
            let took = all[999].since(all[0]).as_nanos();
            assert!(took <= (average * 1_003).as_nanos(), "{peak:?}: {took} ns for 999 times {average}");
        }
    }
}
