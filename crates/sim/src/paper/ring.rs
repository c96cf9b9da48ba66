//! RETHER's cycle, visit by visit, in integer nanoseconds (section 2.2.3).
//!
//! A cycle begins with the residual time at one TRT. Every session is visited in order and sends its whole
//! unit. Then the round of ordinary visits goes on where the last cycle left it. A node whose packet does
//! not fit returns the token and is first in the next cycle. As printed, that return costs a hop that
//! nobody charges, so a cycle may last TRT + h (hole A1).
//!
//! Fulfils RETHER-4.3-4, RETHER-5.1-1.

use rota_units::{Instant, Span};

/// What ordinary traffic there is. Each cost is a whole visit: eq. 2, hop included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// The network is idle apart from sessions: each visit is a hop.
    Nobody,
    /// Two nodes always have a packet.
    TwoNodes {
        /// What the visit of such a node costs.
        visit: Span,
    },
    /// Two nodes answer each other, and an answer is never ready in the round of its question: one packet
    /// a round.
    Exchange {
        /// What the visit of that node costs.
        visit: Span,
    },
    /// Every node always has packets.
    Everybody {
        /// What each visit costs.
        visit: Span,
    },
}

/// The rules of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// The paper's: nominal accounting, early restart, no time kept for the way home.
    AsPrinted,
    /// Ours: a visit must leave a hop for the way home; the list is broadcast once a cycle.
    Repaired {
        /// Cycle k+1 begins at c_k + TRT exactly.
        strict: bool,
        /// What each cycle spends beside slots and visits.
        overhead: Span,
    },
}

/// One ring.
#[derive(Clone, Debug)]
pub struct Ring {
    /// One rotation.
    pub trt: Span,
    /// A token visit with nothing to send; never zero.
    pub hop: Span,
    /// Holding time of every real-time visit, hop included.
    pub slots: Vec<Span>,
    /// How many nodes.
    pub nodes: usize,
    /// Who sends ordinary packets.
    pub traffic: Traffic,
    /// Whose rules.
    pub rules: Rules,
}

/// What was seen of the time between two ordinary visits of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// Gaps seen, over all nodes.
    pub count: u64,
    /// The paper's measure of network access delay: their mean.
    pub mean: Span,
    /// What a packet waits that comes at any moment with equal chance: Σg² / 2Σg.
    pub arrival: Span,
    /// The longest.
    pub worst: Span,
    /// The longest cycle.
    pub cycle_max: Span,
    /// Cycles in which a node returned the token.
    pub refusals: u64,
}

#[derive(Debug, Default)]
struct GapSums {
    count: u64,
    sum: u128,
    squares: u128,
    gaps: Gaps,
}

impl GapSums {
    fn gap(&mut self, span: Span) {
        let ns = u128::from(span.as_nanos());
        self.count += 1;
        self.sum += ns;
        self.squares += ns * ns;
        self.gaps.worst = self.gaps.worst.max(span);
    }

    fn conclude(mut self) -> Gaps {
        let whole = |ns: u128| Span::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
        self.gaps.count = self.count;
        if self.count > 0 {
            self.gaps.mean = whole(self.sum / u128::from(self.count));
            self.gaps.arrival = whole(self.squares / (2 * self.sum).max(1));
        }
        self.gaps
    }
}

struct Run<'a> {
    ring: &'a Ring,
    now: Instant,
    next: usize,
    /// Which of the two that answer each other has the packet.
    turn: bool,
    last: Vec<Option<Instant>>,
    sums: GapSums,
}

impl Ring {
    /// Runs so many cycles; `first` is the node at which the first round begins.
    pub fn run(&self, cycles: u64, first: usize) -> Gaps {
        assert!(self.hop > Span::ZERO && self.nodes > 0, "a round must take time and visit somebody");
        let mut run = Run {
            ring: self,
            now: Instant::ZERO,
            next: first % self.nodes,
            turn: false,
            last: vec![None; self.nodes],
            sums: GapSums::default(),
        };
        for _ in 0..cycles {
            run.cycle();
        }
        run.sums.conclude()
    }

    /// The two nodes that talk, far apart in the round.
    fn pair(&self) -> (usize, usize) {
        (0, self.nodes / 2)
    }

    /// Time of a whole round of ordinary visits, on average.
    pub fn round(&self) -> Span {
        let nodes = self.nodes as u64;
        let (talking, visit) = match self.traffic {
            Traffic::Nobody => (0, Span::ZERO),
            Traffic::TwoNodes { visit } => (nodes.min(2), visit),
            Traffic::Exchange { visit } => (1, visit),
            Traffic::Everybody { visit } => (nodes, visit),
        };
        self.hop * (nodes - talking) + visit * talking
    }

    /// ΣTHT with what each cycle spends besides.
    pub fn reserved(&self) -> Span {
        let overhead = match self.rules {
            Rules::AsPrinted => Span::ZERO,
            Rules::Repaired { overhead, .. } => overhead,
        };
        self.slots.iter().copied().sum::<Span>() + overhead
    }
}

impl Run<'_> {
    fn cycle(&mut self) {
        let began = self.now;
        let spent = self.ring.reserved();
        self.now += spent;
        let mut residual = self.ring.trt.minus(spent);
        loop {
            let node = self.next;
            let visit = self.cost(node);
            let way_home = match self.ring.rules {
                Rules::AsPrinted => Span::ZERO,
                Rules::Repaired { .. } => self.ring.hop,
            };
            if visit + way_home > residual {
                // The hop to this node was part of the visit before; from here the token goes home.
                self.now += self.ring.hop;
                self.sums.gaps.refusals += 1;
                break;
            }
            self.serve(node, visit);
            residual = residual.minus(visit);
        }
        let took = self.now.since(began);
        self.sums.gaps.cycle_max = self.sums.gaps.cycle_max.max(took);
        if let Rules::Repaired { strict, .. } = self.ring.rules {
            assert!(took <= self.ring.trt.max(spent + self.ring.hop), "a repaired cycle ends in time");
            if strict {
                self.now = self.now.max(began + self.ring.trt);
            }
        }
    }

    fn serve(&mut self, node: usize, visit: Span) {
        if let Some(before) = self.last[node].replace(self.now) {
            self.sums.gap(self.now.since(before));
        }
        self.now += visit;
        self.next = (node + 1) % self.ring.nodes;
        if self.next == 0 {
            self.turn = !self.turn;
        }
    }

    fn cost(&self, node: usize) -> Span {
        let (a, b) = self.ring.pair();
        match self.ring.traffic {
            Traffic::TwoNodes { visit } if node == a || node == b => visit,
            Traffic::Exchange { visit } if node == (if self.turn { b } else { a }) => visit,
            Traffic::Everybody { visit } => visit,
            Traffic::Nobody | Traffic::TwoNodes { .. } | Traffic::Exchange { .. } => self.ring.hop,
        }
    }
}
