//! Jitter and buffers of a channel, node by node (`TENET-3.2-14`, `TENET-4.2-3`).
//!
//! *Jitter.* Let e_n be by how much the eligibility (or expected arrival) of packets at node n varies against
//! their sending; e_1 = 0. A packet leaves between s (the shortest packet's service) and d_n after it, and
//! the link's time varies by ℓ_n. So what leaves node n varies by e_n + d_n − s_n + ℓ_n. A rate-jitter
//! regulator or none lets all of that pass: e_(n+1) is the same. Delay-jitter restores the time of node n:
//! e_(n+1) = e_n + ℓ_n and the step of the carried time, or twice the clocks' error ε where the timestamp
//! counts.
//!
//! *Buffers.* Let a_n be by how much a packet may come ahead of its eligibility: a_1 = 0. Packets present
//! at τ are eligible in [τ − d_n, τ + a_n]: **N_c(a_n + d_n)** of them at most. The closed count is safe at
//! the boundary, where ⌈·/X_min⌉ is not. A node restores no more than all that was gained since the source,
//! whichever way it holds packets ([`crate::Clocks`]): a_(n+1) = e_n + d_n + ℓ_n behind a regulator, where a
//! packet left at its eligibility or later, and a_n + d_n + ℓ_n behind none, where it may have been ahead
//! already. The two nodes' errors are added. The part of the clocks is added for the whole path (`path.rs`).

use super::regulator::Regulator;
use super::traffic::Traffic;
use rota_units::{Octets, Span};

/// e_n, carried from node to node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jitter {
    eligibility: Span,
}

impl Jitter {
    /// At the source.
    pub const fn new() -> Self {
        Self { eligibility: Span::ZERO }
    }

    /// By how much the delay varies when packets have reached the end of the link behind this node.
    pub fn behind(self, delay: Span, service_least: Span, link: Span) -> Span {
        self.eligibility + delay.minus(service_least) + link
    }

    /// At the next node, which holds packets by `next`.
    #[must_use]
    pub fn at_next(self, delay: Span, service_least: Span, link: Span, next: Regulator) -> Self {
        let eligibility = match next {
            Regulator::None | Regulator::Rate => self.behind(delay, service_least, link),
            Regulator::DelayAhead { step } => self.eligibility + link + step,
            Regulator::DelayClock { error } => error * 2,
        };
        Self { eligibility }
    }
}

/// a_n, carried from node to node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Ahead of the eligibility here.
    ahead: Span,
}

impl Waiting {
    /// At the source.
    pub const fn new() -> Self {
        Self { ahead: Span::ZERO }
    }

    /// Packets for which this node needs room; `further` is what relaxing may still add to the bounds of
    /// this node and those before it (`TENET-R6`).
    pub fn packets(self, traffic: &Traffic, delay: Span, further: Span) -> u64 {
        traffic.closed(self.ahead + delay + further)
    }

    /// The same in octets.
    pub fn octets(self, traffic: &Traffic, packet: Octets, delay: Span, further: Span) -> Octets {
        packet * self.packets(traffic, delay, further)
    }

    /// At the node that holds packets by `next`; this one does by `own`, and has this jitter.
    #[must_use]
    pub fn at_next(self, jitter: Jitter, delay: Span, link: Span, own: Regulator, next: Regulator) -> Self {
        let left = if own == Regulator::None { self.ahead } else { jitter.eligibility };
        Self { ahead: left + delay + link + own.error() + next.error() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(n: u64) -> Span {
        Span::from_nanos(n)
    }

    /// Three nodes with d = 10, 20, 30, s = 2 and no jitter of links, by hand.
    fn walk(regulator: Regulator) -> (Vec<u64>, Vec<u64>) {
        let traffic = Traffic::periodic(ns(10)).unwrap();
        let (mut jitter, mut waiting) = (Jitter::new(), Waiting::new());
        let (mut jitters, mut packets) = (vec![], vec![]);
        for delay in [10, 20, 30].map(ns) {
            jitters.push(jitter.behind(delay, ns(2), Span::ZERO).as_nanos());
            packets.push(waiting.packets(&traffic, delay, Span::ZERO));
            waiting = waiting.at_next(jitter, delay, Span::ZERO, regulator, regulator);
            jitter = jitter.at_next(delay, ns(2), Span::ZERO, regulator);
        }
        (jitters, packets)
    }

    #[test]
    fn jitter_adds_up_without_delay_jitter_regulators_and_buffers_without_any() {
        assert_eq!(walk(Regulator::None), (vec![8, 26, 54], vec![2, 4, 7]));
        assert_eq!(walk(Regulator::Rate), (vec![8, 26, 54], vec![2, 4, 6]));
        assert_eq!(walk(Regulator::DelayAhead { step: Span::ZERO }), (vec![8, 18, 28], vec![2, 4, 6]));
        let clock = Regulator::DelayClock { error: ns(3) };
        assert_eq!(walk(clock), (vec![8, 24, 34], vec![2, 4, 7]));
    }

    #[test]
    fn what_relaxing_may_add_is_reserved() {
        let traffic = Traffic::periodic(ns(10)).unwrap();
        let waiting = Waiting::new().at_next(Jitter::new(), ns(10), ns(5), Regulator::Rate, Regulator::Rate);
        assert_eq!(waiting.packets(&traffic, ns(20), ns(14)), 5);
        assert_eq!(waiting.octets(&traffic, Octets::new(100), ns(20), ns(15)), Octets::new(600));
    }
}
