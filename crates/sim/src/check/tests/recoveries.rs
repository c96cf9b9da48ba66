//! L6: when the token must be back, by what went wrong.

use super::*;

/// A ring, and what strikes it. The times are since the token was seen first.
struct Ring {
    bench: Bench,
    checker: RecoveryTimes,
    seq: u64,
}

const DEATH: Blow = Blow::Death;

impl Ring {
    fn new() -> Self {
        let mut ring = Self { bench: Bench::ring(true), checker: RecoveryTimes::default(), seq: 1_000_000 };
        assert_eq!(ring.back(Span::ZERO), none());
        ring
    }

    /// Struck by these, each so long after the token was seen.
    fn struck(blows: &[(Span, Blow)]) -> Self {
        let mut ring = Self::new();
        for (after, blow) in blows {
            ring.strikes(*after, *blow);
        }
        ring
    }

    fn at(&self, after: Span) -> Instant {
        self.bench.start() + ms(2_000) + after
    }

    fn recovery(&self) -> Recovery {
        self.bench.world.segments[0].recovery
    }

    fn see(&mut self, after: Span, seen: Seen) -> Vec<&'static str> {
        let now = self.at(after);
        self.bench.look(&mut self.checker, now, &[seen])
    }

    fn strikes(&mut self, after: Span, blow: Blow) {
        assert_eq!(self.see(after, Seen::Struck { blow }), none());
    }

    fn nothing(&mut self, after: Span) -> Vec<&'static str> {
        let now = self.at(after);
        self.bench.rest(&mut self.checker, now)
    }

    /// A host believes a new token.
    fn back_at(&mut self, host: usize, after: Span) -> Vec<&'static str> {
        self.seq += 1;
        let frame = frame(Kind::Token, 1, (generation(5), self.seq), |_| 0);
        self.see(after, Seen::Took { host, frame, accepted: true })
    }

    fn back(&mut self, after: Span) -> Vec<&'static str> {
        self.back_at(1, after)
    }

    /// A token that nobody has seen.
    fn lost(&self, more: u64) -> Blow {
        Blow::TokenLost((generation(5), self.seq + more))
    }
}

/// The token is back after these blows at `most` and no later.
fn is_back(blows: &[(Span, Blow)], most: Span) {
    assert_eq!(Ring::struck(blows).back(most), none(), "{blows:?}");
    assert_eq!(Ring::struck(blows).back(most + NS), ["L6"], "{blows:?}");
}

/// Where it is not, that is told at `most` and no sooner, and once.
fn is_missed(blows: &[(Span, Blow)], most: Span) {
    let mut ring = Ring::struck(blows);
    assert_eq!(ring.nothing(most), none(), "{blows:?}");
    assert_eq!(ring.nothing(most + NS), ["L6"], "{blows:?}");
    assert_eq!(ring.nothing(most + ms(900)), none(), "{blows:?}");
}

#[test]
fn l6_a_ring_that_nothing_struck_is_silent_for_no_longer_than_any_crash_takes() {
    let recovery = Ring::new().recovery();
    is_missed(&[], recovery.crash(0));
    // A token that comes tells of no blow.
    assert_eq!(Ring::new().back(recovery.crash(0) + NS), none());
}

#[test]
fn l6_one_blow_has_its_own_bound() {
    let (recovery, lost) = (Ring::new().recovery(), Ring::new().lost(1));
    let after = ms(10);
    is_back(&[(after, DEATH)], after + recovery.crash(1));
    is_missed(&[(after, DEATH)], after + recovery.crash(1));
    is_back(&[(after, lost)], after + recovery.token_loss(1));
    is_missed(&[(after, lost)], after + recovery.crash(0));
    let ends = Ring::new().at(ms(50));
    let other = Blow::Other { ends, silent: 2 };
    is_back(&[(after, other)], ms(50) + recovery.crash(2));
    is_missed(&[(after, other)], ms(50) + recovery.crash(2));
    // More than all others cannot be silent.
    let other = Blow::Other { ends, silent: 9 };
    is_back(&[(after, other)], ms(50) + recovery.crash(4));
}

/// A silent station and one whose token is lost at once, and so on.
#[test]
fn l6_two_blows_have_their_bounds_together_and_more_that_of_all() {
    let (recovery, lost) = (Ring::new().recovery(), Ring::new().lost(1));
    let (first, second, third) = (ms(10), ms(30), ms(40));
    is_back(&[(first, DEATH), (second, DEATH)], first + recovery.crash(1) + recovery.crash(2));
    is_missed(&[(first, DEATH), (second, DEATH)], second + recovery.crash(2) + recovery.round(2));
    is_back(&[(first, lost), (second, DEATH)], first + recovery.crash(0) + recovery.crash(1));
    let ends = Ring::new().at(third);
    let lasts = Blow::Other { ends, silent: 1 };
    is_back(&[(first, DEATH), (second, lasts)], third + recovery.crash(2) + recovery.round(2));
    let all = [(first, DEATH), (second, DEATH), (third, DEATH)];
    is_back(&all, third + recovery.crash(3) + recovery.round(3));
    is_missed(&all, third + recovery.crash(3) + recovery.round(3));
}

#[test]
fn l6_a_death_that_all_have_heard_of_counts_from_its_will() {
    let recovery = Ring::new().recovery();
    let (died, first) = (ms(10), ms(12));
    let willed = || {
        let mut ring = Ring::struck(&[(died, DEATH)]);
        let (died, first_at) = (ring.at(died), ring.at(first));
        // Another's death stays, and so does this one's when it is told a second time.
        let other = ring.at(ms(9));
        assert_eq!(ring.see(first, Seen::Willed { died: other, first: other }), none());
        for _ in 0..2 {
            assert_eq!(ring.see(first, Seen::Willed { died, first: first_at }), none());
        }
        ring
    };
    let most = first + recovery.will();
    assert!(recovery.will() < recovery.crash(0));
    assert_eq!(willed().back(most), none());
    assert_eq!(willed().back(most + NS), ["L6"]);
    assert_eq!(willed().nothing(most), none());
    assert_eq!(willed().nothing(most + NS), ["L6"]);
    // Once a token has been seen since, the ring may rest like any other.
    let mut ring = willed();
    assert_eq!(ring.back(ms(13)), none());
    assert_eq!(ring.nothing(ms(13) + recovery.crash(0)), none());
    assert_eq!(ring.nothing(ms(13) + recovery.crash(0) + NS), ["L6"]);
}

/// Hosts 3 and 4 are cut off; each part reckons with the other's stations.
#[test]
fn l6_each_part_of_a_parted_ring_has_its_token_back_in_its_own_time() {
    let recovery = Ring::new().recovery();
    let (after, parting) = (ms(10), Blow::Parting(0b11000));
    for (host, others, silent) in [(1, 4, 2), (2, 3, 2), (3, 0, 3), (4, 2, 3)] {
        let most = after + recovery.crash(silent);
        for (late, found) in [(Span::ZERO, none()), (NS, vec!["L6"])] {
            let mut ring = Ring::struck(&[(after, parting)]);
            assert_eq!(ring.back_at(others, after + recovery.crash(2).minus(ms(50))), none());
            assert_eq!(ring.back_at(host, most + late), found, "{host}");
        }
    }
    let mut ring = Ring::struck(&[(after, parting)]);
    let (first, second) = (after + recovery.crash(2), after + recovery.crash(3));
    assert_eq!((ring.nothing(first), ring.nothing(first + NS)), (none(), vec!["L6"]));
    assert_eq!((ring.nothing(second), ring.nothing(second + NS)), (none(), vec!["L6"]));
}

#[test]
fn l6_a_token_that_was_there_before_it_was_lost_again_is_no_loss() {
    let recovery = Ring::new().recovery();
    for (lost, found) in [(0, none()), (1, vec!["L6"])] {
        let lost = Ring::new().lost(lost);
        let most = ms(10) + recovery.token_loss(1) + NS;
        assert_eq!(Ring::struck(&[(ms(10), lost)]).back(most), found);
    }
}

/// A token is lost while its sender or its addressee stands still.
#[test]
fn l6_what_is_lost_beside_a_silent_or_late_station_counts_as_that_as_well() {
    let recovery = Ring::new().recovery();
    let most = recovery.crash(1) + recovery.crash(1);
    for late in [false, true] {
        for (more, found) in [(Span::ZERO, none()), (NS, vec!["L6"])] {
            let mut ring = Ring::new();
            let lost = ring.lost(1);
            if late {
                ring.bench.world.hosts[2].profile.late_ppm = 1;
            } else {
                ring.bench.world.hosts[2].process.paused_until = Instant::FAR;
            }
            ring.strikes(Span::ZERO + ms(10), lost);
            assert_eq!(ring.back(ms(10) + most + more), found, "{late}");
        }
    }
}

#[test]
fn l6_a_blow_of_long_ago_has_nothing_to_do_with_a_silence() {
    let recovery = Ring::new().recovery();
    let reach = (Ring::new().bench.settings.trt * 12).max(recovery.crash(5));
    let died = ms(10);
    for (more, found) in [(Span::ZERO, none()), (NS, vec!["L6"])] {
        let mut ring = Ring::struck(&[(died, DEATH)]);
        assert_eq!(ring.back(died + ms(1)), none());
        let last = died + reach + more;
        let mut at = ms(100);
        while at < last {
            assert_eq!(ring.back(at), none());
            at += ms(100);
        }
        assert_eq!(ring.back(last), none());
        assert_eq!(ring.nothing(last + recovery.crash(0) + NS), found);
    }
}

/// Seed 30000001342 of the product's timers: where timers follow short stalls, the slowest recovery is
/// shorter than the time until a round of all finds that a station is cut off.
#[test]
fn l6_a_station_that_fell_silent_is_found_in_a_round_of_all() {
    let trt = ms(24);
    for blow in [DEATH, Blow::Parting(1), Blow::Other { ends: Instant::ZERO, silent: 1 }] {
        assert_eq!(blow.reach(trt), ms(34 * 24), "{blow:?}");
    }
    for blow in [Blow::Meeting, Blow::Willed, Blow::Other { ends: Instant::ZERO, silent: 0 }] {
        assert_eq!(blow.reach(trt), ms(12 * 24), "{blow:?}");
    }
}

/// A blow to a ring that is whole again is the first one of its own recovery.
#[test]
fn l6_a_ring_that_is_whole_has_done_with_what_was_over_before_its_list() {
    let recovery = Ring::new().recovery();
    let died = ms(10);
    for (more, forgotten) in [(Span::ZERO, false), (NS, true)] {
        let mut ring = Ring { seq: 1, ..Ring::new() };
        ring.checker = RecoveryTimes::default();
        let stamps = (0..5).map(|host| (ring.bench.node(host).rether().list_stamp(), host));
        let (stamp, of) = stamps.min().expect("five stations");
        ring.strikes(died, DEATH);
        let list = ring.bench.list(9, &[]);
        let frame = frame(Kind::List, 1, stamp, |body| list.emit(body));
        let listed = died + recovery.hop() + more;
        let took = |host| Seen::Took { host, frame: frame.clone(), accepted: false };
        assert_eq!(ring.see(listed, took(of)), none());
        // The newest token must be newer than the list, or no list tells of anything.
        ring.seq = stamp.1;
        let token = super::frame(Kind::Token, 1, (stamp.0, stamp.1 + 1), |_| 0);
        let back = listed + ms(1);
        assert_eq!(ring.see(back, Seen::Took { host: 1, frame: token, accepted: true }), none());
        let most = back + recovery.crash(u64::from(!forgotten));
        assert_eq!(ring.nothing(most), none(), "{forgotten}");
        assert_eq!(ring.nothing(most + NS), ["L6"], "{forgotten}");
    }
}

#[test]
fn l6_a_burst_of_losses_hides_no_death() {
    let recovery = Ring::new().recovery();
    let mut blows = vec![(ms(10), DEATH)];
    blows.extend((0..70).map(|_| (ms(11), Blow::Other { ends: Instant::ZERO, silent: 0 })));
    is_back(&blows, ms(11) + recovery.crash(1) + recovery.round(1));
}

#[test]
fn l6_no_token_is_waited_for_where_nobody_runs_a_ring() {
    let far = ms(5_000);
    let mut ring = Ring::new();
    let plain = Bench::plain().world.hosts[2].node.clone();
    let old = std::mem::replace(&mut ring.bench.world.hosts[2].node, plain);
    assert_eq!(ring.see(ms(1), Seen::Acted { host: 2 }), none());
    ring.bench.world.hosts[2].node = old;
    assert_eq!(ring.nothing(far), none(), "plain Ethernet was seen since");
    let mut ring = Ring::new();
    ring.bench.world.hosts.iter_mut().for_each(|host| host.process.paused_until = Instant::FAR);
    assert_eq!(ring.nothing(far), none(), "all stand still");
    ring.bench.world.hosts.iter_mut().for_each(|host| host.process.paused_until = Instant::ZERO);
    assert_eq!(ring.nothing(far), none(), "they run again");
    let crash = ring.recovery().crash(0);
    assert_eq!(ring.nothing(far + crash), none(), "from then on it is waited for");
    assert_eq!(ring.nothing(far + crash + NS), ["L6"]);
}

/// The third host's ring has another key: that takes longer than where both have one.
#[test]
fn l6_two_parts_that_hear_each_other_are_one_ring_in_time() {
    let mut other = World::new(8, WorldSpec::new(5));
    other.run_for(ms(2_000));
    other.open_flow(0, 1, 1_000, true).expect("a sound request");
    other.run_for(ms(1_500));
    let other = other.hosts[3].node.clone();
    for (met, most) in [(true, Ring::new().recovery().meeting_of_strangers()), (false, Span::ZERO)] {
        for (more, found) in [(Span::ZERO, none()), (NS, vec!["L6"])] {
            let mut ring = Ring::new();
            let own = std::mem::replace(&mut ring.bench.world.hosts[3].node, other.clone());
            assert!(are_strangers(Stations::new(&ring.bench.world.hosts, 0, 5), ring.at(ms(1))));
            let blow = if met { Blow::Meeting } else { Blow::Parting(0) };
            ring.strikes(ms(1), blow);
            // Tokens go round in both all the time.
            let mut at = ms(100);
            while at < most {
                assert_eq!(ring.back(at), none());
                at += ms(100);
            }
            ring.bench.world.hosts[3].node = own;
            let found = if met { found } else { none() };
            assert_eq!(ring.back(ms(1) + most + more), found);
            assert_eq!(ring.checker.worst.meeting, if met { most + more } else { Span::ZERO });
        }
    }
}

#[test]
fn l6_the_worst_of_each_kind_is_kept_under_its_name() {
    let lost = Ring::new().lost(1);
    let place = |blows: &[(Span, Blow)]| {
        let mut ring = Ring::struck(blows);
        assert_eq!(ring.back(ms(60)), none());
        let all = ring.checker.worst.all();
        let mut sum = Recoveries { death: ms(1), two: ms(900), ..Recoveries::default() };
        sum.add(&ring.checker.worst);
        assert!(sum.death >= ms(1) && sum.two == ms(900));
        let found: Vec<_> = all.into_iter().filter(|(_, took)| *took > Span::ZERO).collect();
        assert_eq!(
            sum.all().iter().filter(|(_, took)| *took == found[0].1).count(),
            usize::from(found[0].0 != "two at once")
        );
        found
    };
    assert_eq!(place(&[(ms(57), lost)]), [("token lost", ms(3))]);
    assert_eq!(place(&[(ms(10), DEATH)]), [("death", ms(50))]);
    assert_eq!(place(&[(ms(10), Blow::Parting(0b10000))]), [("parting", ms(50))]);
    assert_eq!(place(&[(ms(10), DEATH), (ms(20), DEATH)]), [("two at once", ms(50))]);
    let three = [(ms(10), DEATH), (ms(20), DEATH), (ms(30), DEATH)];
    assert_eq!(place(&three), [("more at once", ms(50))]);
}
