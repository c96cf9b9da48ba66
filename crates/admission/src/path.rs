//! A whole path: end-to-end delay and jitter, and how slack is given back (`TENET-3.1-16`, `TENET-R6`).
//!
//! *Clocks.* Each bound is stated in the time of its own node, and the client's in that of an end. All sums
//! are stretched for that as [`Clocks`] has it, and D_max and J_max shortened before slack is given back.
//!
//! *Delay.* A packet is eligible at node n + 1 by its eligibility at n plus d_n + π_n
//! ([`crate::rtip::regulator`]), or leaves n by its expected arrival + d_n where nothing is held. Hence **D
//! = H + Σ (d_n + π_n) + ε**: H is what the sending host adds (the spread of a message's packets, and how
//! late it may wake), π_n the longest time of the link behind node n, ε the largest clock error of a node
//! that holds by the timestamp.
//!
//! *Jitter.* As [`Jitter`] has it, and all of H.
//!
//! *Relaxing never invalidates a test.* Raise d_k to d_k'. At a point t in [d_k, d_k') the exact test loses
//! N_c ≥ 1 packets of channel k, s_k or more, and its blocking packet counts there anew, s_k at most. Before
//! and behind nothing changes, or less is due. A channel that moves down from RCSP's level m leaves the sums
//! of the levels in between, N_o ≥ 1 packets, and may block there with one. The original tests are
//! inequalities that a longer bound satisfies the more; of `dedd_sorted` the bound next below d_k' has room
//! for all packets of shorter ones, that of k among them.
//!
//! *Buffers.* On the way there a node does not know what relaxing will add, but the whole slack is at most
//! D_max less the best bounds so far, and no nodes together get more than all of it: they reserve for that.

use crate::clocks::Clocks;
use crate::pace::Pace;
use crate::rtip::{Jitter, Regulator, Traffic, Waiting};
use crate::search::largest;
use core::fmt;
use rota_units::Span;

/// Packets of one channel for which a gateway has room: those of four cycles of the densest share. The bounds
/// of two RETHER segments are three cycles and their parts.
pub const BUFFERS_MAX: u64 = 4 * Pace::PACKETS_MAX as u64;

/// One node and the link behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// d: from eligibility to the end of the packet on the node's port, or on the segment.
    pub delay: Span,
    /// The shortest time in which a packet of the channel can pass the node.
    pub service_least: Span,
    /// The shortest time of the link behind the node.
    pub link_least: Span,
    /// π: its longest time.
    pub link_most: Span,
    /// How the node holds packets; not read at the first one.
    pub regulator: Regulator,
}

impl Hop {
    fn link_jitter(&self) -> Span {
        self.link_most.minus(self.link_least)
    }
}

/// The request of the channel's client to the whole path (paper Table 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goal {
    /// D_max.
    pub delay: Span,
    /// J_max.
    pub jitter: Option<Span>,
}

/// The test of the destination that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathTest {
    /// The best bounds of all nodes exceed D_max.
    Delay,
    /// The jitter that they leave exceeds J_max.
    Jitter,
}

/// A refusal of the destination: the nodes' best is not good enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathDenied {
    /// Which test failed.
    pub test: PathTest,
    /// By how much.
    pub margin: Span,
    /// The least that the path can promise now: the nearest request that fits.
    pub nearest: Span,
}

impl fmt::Display for PathDenied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.test {
            PathTest::Delay => "delay",
            PathTest::Jitter => "jitter",
        };
        let (margin, nearest) = (self.margin.printed_up(), self.nearest.printed_up());
        write!(
            f,
            "the path cannot keep the {what}: it lacks {margin}; the least that it can promise is {nearest}"
        )
    }
}

impl core::error::Error for PathDenied {}

/// D of a path whose sender adds `host`.
pub fn delay(hops: &[Hop], host: Span, clocks: Clocks) -> Span {
    clocks.longer(sum(hops, host))
}

/// The jitter of a path whose sender adds `host`: no delay varies by more than the longest one.
pub fn jitter(hops: &[Hop], host: Span, clocks: Clocks) -> Span {
    let varies = varies(hops, host) + clocks.apart(sum(hops, host));
    varies.min(delay(hops, host, clocks))
}

/// D, each part on its own clock.
fn sum(hops: &[Hop], host: Span) -> Span {
    let nodes: Span = hops.iter().map(|hop| hop.delay + hop.link_most).sum();
    let error = hops.iter().skip(1).map(|hop| hop.regulator.clock_error()).max();
    host + nodes + error.unwrap_or(Span::ZERO)
}

/// The jitter without what clocks add.
fn varies(hops: &[Hop], host: Span) -> Span {
    let mut jitter = Jitter::new();
    let mut whole = Span::ZERO;
    for (n, hop) in hops.iter().enumerate() {
        whole = jitter.behind(hop.delay, hop.service_least, hop.link_jitter());
        if let Some(next) = hops.get(n + 1) {
            jitter = jitter.at_next(hop.delay, hop.service_least, hop.link_jitter(), next.regulator);
        }
    }
    host + whole
}

/// Packets for which node `n` reserves room if relaxing may add `slack` to the path. `traffic` is that of the
/// source, by its own clock.
pub fn buffers(hops: &[Hop], n: usize, traffic: &Traffic, slack: Span, clocks: Clocks) -> u64 {
    let (mut jitter, mut waiting) = (Jitter::new(), Waiting::new());
    for pair in hops[..=n].windows(2) {
        let (hop, next) = (&pair[0], pair[1].regulator);
        waiting = waiting.at_next(jitter, hop.delay, hop.link_jitter(), hop.regulator, next);
        jitter = jitter.at_next(hop.delay, hop.service_least, hop.link_jitter(), next);
    }
    let far = sum(&hops[..=n], slack);
    waiting.packets(&clocks.counted(traffic), hops[n].delay, slack + clocks.apart(far))
}

/// The longest D_max, up to `goal`, for whose packets node `n` has room for `most`, the nodes up to it having
/// offered these bounds and the sender adding `host`; `None` where these bounds alone bring more packets.
pub fn delay_within(
    hops: &[Hop],
    n: usize,
    (traffic, host): (&Traffic, Span),
    most: u64,
    goal: Span,
    clocks: Clocks,
) -> Option<Span> {
    let best = delay(&hops[..=n], host, clocks);
    let slack = goal.minus(best).as_nanos();
    let fits = |more: u64| buffers(hops, n, traffic, Span::from_nanos(more), clocks) <= most;
    if fits(slack) {
        return Some(goal);
    }
    fits(0).then(|| best + Span::from_nanos(largest(0, slack, fits)))
}

/// The destination's test of the bounds that all nodes offered.
///
/// # Errors
/// [`PathDenied`] with the least that the path can promise.
pub fn check(hops: &[Hop], host: Span, goal: &Goal, clocks: Clocks) -> Result<Relaxation, PathDenied> {
    let denied = |test, nearest: Span, asked| PathDenied { test, margin: nearest.minus(asked), nearest };
    let (best, most) = (sum(hops, host), clocks.shorter(goal.delay));
    let late = || denied(PathTest::Delay, clocks.longer(best), goal.delay);
    let slack = most.checked_sub(best).ok_or_else(late)?;
    // Relaxing may use all of it, and clocks differ the more.
    let varies = varies(hops, host) + clocks.apart(most);
    let jitter_left = match goal.jitter {
        None => Span::MAX,
        Some(most) => most.checked_sub(varies).ok_or_else(|| denied(PathTest::Jitter, varies, most))?,
    };
    Ok(Relaxation { slack, jitter_left, nodes: hops.len() as u64 })
}

/// The nearest goal that [`check`] accepts of these hops: no shorter than this one, in delay and jitter
/// together. Of a longer delay clocks make the jitter larger.
pub fn nearest(hops: &[Hop], host: Span, goal: &Goal, clocks: Clocks) -> Goal {
    let delay = goal.delay.max(delay(hops, host, clocks));
    let least = varies(hops, host) + clocks.apart(clocks.shorter(delay));
    Goal { delay, jitter: goal.jitter.map(|jitter| jitter.max(least)) }
}

/// The time that is still to be given back, carried from the destination to the source. Each node takes its
/// equal part or as much of it as its discipline can use, and leaves the rest to the nodes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relaxation {
    slack: Span,
    jitter_left: Span,
    nodes: u64,
}

impl Relaxation {
    /// The time that all nodes that remain may add together.
    pub const fn slack(&self) -> Span {
        self.slack
    }

    /// The time that is left for the first `nodes` of the path, those behind having been raised already.
    #[must_use]
    pub const fn for_first(self, nodes: u64) -> Self {
        Self { nodes, ..self }
    }

    /// By how much the next node, going back, may raise its bound at most.
    pub fn share(&self, counts_for_jitter: bool) -> Span {
        let equal = self.slack.div_down(self.nodes);
        if counts_for_jitter { equal.min(self.jitter_left) } else { equal }
    }

    /// That node has raised its bound by `used`. Panics if that is more than its share.
    #[must_use]
    pub fn take(self, used: Span, counts_for_jitter: bool) -> Self {
        assert!(used <= self.share(counts_for_jitter), "a node takes its share at most");
        let jitter_left = if counts_for_jitter && self.jitter_left != Span::MAX {
            self.jitter_left - used
        } else {
            self.jitter_left
        };
        Self { slack: self.slack - used, jitter_left, nodes: self.nodes.saturating_sub(1) }
    }
}

/// True if the bound of node `n` is part of the jitter of the whole path: not where the next node restores
/// its time, or a later one that of the source.
pub fn counts_for_jitter(hops: &[Hop], n: usize) -> bool {
    let restored = hops.get(n + 1).is_some_and(|next| matches!(next.regulator, Regulator::DelayAhead { .. }));
    let by_clock = |hop: &Hop| matches!(hop.regulator, Regulator::DelayClock { .. });
    !restored && !hops.iter().skip(n + 1).any(by_clock)
}

/// Relaxes a path whose nodes can use any share, as Delay-EDD can.
///
/// # Errors
/// As [`check`].
pub fn relax(hops: &mut [Hop], host: Span, goal: &Goal, clocks: Clocks) -> Result<(), PathDenied> {
    let mut relaxation = check(hops, host, goal, clocks)?;
    for n in (0..hops.len()).rev() {
        let counts = counts_for_jitter(hops, n);
        let share = relaxation.share(counts);
        hops[n].delay += share;
        relaxation = relaxation.take(share, counts);
    }
    assert!(delay(hops, host, clocks) <= goal.delay, "relaxing keeps D_max");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: Clocks = Clocks::ONE;

    fn ns(n: u64) -> Span {
        Span::from_nanos(n)
    }

    fn hop(delay: u64, regulator: Regulator) -> Hop {
        let (link_least, link_most) = (ns(5), ns(7));
        Hop { delay: ns(delay), service_least: ns(2), link_least, link_most, regulator }
    }

    #[test]
    fn three_nodes_by_hand() {
        let path = |regulator| [10, 20, 30].map(|d| hop(d, regulator));
        let rate = path(Regulator::Rate);
        assert_eq!(delay(&rate, ns(4), ONE), ns(4 + 60 + 21));
        assert_eq!(jitter(&rate, ns(4), ONE), ns(4 + 54 + 6));
        let clock = path(Regulator::DelayClock { error: ns(3) });
        assert_eq!((delay(&clock, ns(0), ONE), jitter(&clock, ns(0), ONE)), (ns(84), ns(6 + 28 + 2)));
        assert_eq!(jitter(&path(Regulator::DelayAhead { step: ns(1) }), ns(0), ONE), ns(3 + 3 + 28 + 2));
        let counts = |hops: &[Hop]| [0, 1, 2].map(|n| counts_for_jitter(hops, n));
        assert_eq!(counts(&rate), [true; 3]);
        assert_eq!(counts(&clock), [false, false, true]);
        let traffic = Traffic::periodic(ns(10)).unwrap();
        assert_eq!([0, 1, 2].map(|n| buffers(&rate, n, &traffic, ns(0), ONE)), [2, 4, 7]);
        assert_eq!(buffers(&rate, 2, &traffic, ns(8), ONE), 8);
    }

    #[test]
    fn slack_is_divided_and_jitter_limits_it() {
        let mut hops = [10, 20, 30].map(|d| hop(d, Regulator::Rate));
        relax(&mut hops, ns(0), &Goal { delay: ns(91), jitter: None }, ONE).unwrap();
        assert_eq!(hops.map(|hop| hop.delay.as_nanos()), [14, 23, 33]);
        let mut hops = [10, 20, 30].map(|d| hop(d, Regulator::Rate));
        relax(&mut hops, ns(0), &Goal { delay: ns(91), jitter: Some(ns(63)) }, ONE).unwrap();
        assert_eq!(hops.map(|hop| hop.delay.as_nanos()), [10, 20, 33], "the last node uses up the jitter");
        let denied = relax(&mut hops, ns(0), &Goal { delay: ns(80), jitter: None }, ONE).unwrap_err();
        assert_eq!((denied.test, denied.margin, denied.nearest), (PathTest::Delay, ns(4), ns(84)));
        let denied = relax(&mut hops, ns(0), &Goal { delay: ns(90), jitter: Some(ns(60)) }, ONE).unwrap_err();
        assert_eq!((denied.test, denied.margin), (PathTest::Jitter, ns(3)));
        assert!(denied.to_string().contains("jitter"));
    }

    #[test]
    fn clocks_make_bounds_longer_and_leave_less_to_give_back() {
        let ms = Span::from_millis;
        let mut hops = [10, 20, 30].map(|d| hop(d * 1_000_000, Regulator::Rate));
        let traffic = Traffic::periodic(ms(10)).unwrap();
        assert_eq!(delay(&hops, ns(0), ONE), ns(60_000_021));
        // 60,000,021/0.9998, rounded up, and the difference twice.
        assert_eq!(delay(&hops, ns(0), Clocks::APART), ns(60_012_024));
        let hold = hops.map(|hop| Hop { delay: hop.delay + ns(90_000), service_least: ns(90_002), ..hop });
        assert_eq!(jitter(&hold, ns(0), Clocks::APART), ns(60_000_000) + ns(2 * 12_057));
        // All of it varies, and clocks added more: jitter was promised that is longer than the delay.
        assert_eq!(jitter(&hops, ns(0), Clocks::APART), delay(&hops, ns(0), Clocks::APART));
        let ends = Hop { service_least: ns(0), link_most: ns(5), ..hops[0] };
        // At a boundary a shorter X_min is one packet more.
        assert_eq!(buffers(&[ends], 0, &traffic, ms(0), Clocks::of(0).unwrap()), 2);
        assert_eq!(buffers(&[Hop { delay: ns(9_999_000), ..ends }], 0, &traffic, ms(0), ONE), 1);
        assert_eq!(buffers(&[Hop { delay: ns(9_999_000), ..ends }], 0, &traffic, ms(0), Clocks::APART), 2);
        let goal = Goal { delay: ns(60_012_024), jitter: None };
        assert_eq!(check(&hops, ns(0), &goal, Clocks::APART).unwrap().slack(), ns(0));
        let less = Goal { delay: ns(60_012_023), jitter: None };
        let denied = check(&hops, ns(0), &less, Clocks::APART).unwrap_err();
        assert_eq!((denied.margin, denied.nearest), (ns(1), goal.delay));
        let more = Goal { delay: ms(70), jitter: None };
        relax(&mut hops, ns(0), &more, Clocks::APART).unwrap();
        assert_eq!(delay(&hops, ns(0), Clocks::APART), ms(70));
    }

    #[test]
    fn the_longest_delay_whose_packets_find_room_is_found() {
        let path = [10, 20, 30].map(|d| hop(d, Regulator::Rate));
        let traffic = Traffic::periodic(ns(10)).unwrap();
        let within = |most, goal| delay_within(&path, 2, (&traffic, ns(4)), most, ns(goal), ONE);
        let room = |goal: Span| buffers(&path, 2, &traffic, goal.minus(delay(&path, ns(4), ONE)), ONE);
        assert_eq!(within(9, 88), Some(ns(88)), "all of a goal that fits");
        let longest = within(9, 10_000).unwrap();
        assert_eq!((room(longest), room(longest + ns(1))), (9, 10));
        assert_eq!(within(6, 10_000), None, "the best bounds bring seven");
    }

    fn any_regulator() -> impl Strategy<Value = Regulator> {
        let clock = (0u64..5).prop_map(|error| Regulator::DelayClock { error: ns(error) });
        prop_oneof![
            Just(Regulator::None),
            Just(Regulator::Rate),
            (0u64..3).prop_map(|step| Regulator::DelayAhead { step: ns(step) }),
            clock,
        ]
    }

    proptest! {
        #[test]
        fn relaxing_uses_what_is_there_and_keeps_the_goal(
            parts in prop::collection::vec((2u64..50, any_regulator()), 1..6),
            more in 0u64..100, jitter_more in prop::option::of(0u64..100), host in 0u64..9,
            ppm in prop_oneof![Just(0u64), 0u64..900_000]
        ) {
            let mut hops: Vec<Hop> = parts.into_iter().map(|(d, regulator)| hop(d, regulator)).collect();
            let clocks = Clocks::of(ppm).unwrap();
            let delay = |hops: &[Hop]| delay(hops, ns(host), clocks);
            let asked = delay(&hops) + ns(more);
            let varies = varies(&hops, ns(host)) + clocks.apart(clocks.shorter(asked));
            let goal = Goal { delay: asked, jitter: jitter_more.map(|more| varies + ns(more)) };
            let reserved: Vec<u64> = (0..hops.len())
                .map(|n| buffers(&hops, n, &Traffic::periodic(ns(10)).unwrap(), ns(more), clocks))
                .collect();
            relax(&mut hops, ns(host), &goal, clocks).unwrap();
            prop_assert!(delay(&hops) <= goal.delay);
            prop_assert!(jitter_more.is_some() || delay(&hops) == clocks.longer(clocks.shorter(asked)));
            prop_assert!(goal.jitter.is_none_or(|most| jitter(&hops, ns(host), clocks) <= most));
            for (n, reserved) in reserved.into_iter().enumerate() {
                let periodic = Traffic::periodic(ns(10)).unwrap();
                prop_assert!(buffers(&hops, n, &periodic, ns(0), clocks) <= reserved);
            }
        }
    }
}
