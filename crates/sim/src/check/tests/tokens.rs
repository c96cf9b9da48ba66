//! S1: which stations hold a token. S2, R6: what only rises. L1: how long no token comes. R9: tokens that
//! are sent again, claims, and the dead that answer. R7: one epoch, one mode.

use super::*;
use rota_proto::ModeName;

/// A ring that was stopped while this host held the token.
fn held_by(host: usize) -> Bench {
    let mut bench = Bench::ring(true);
    let give_up = bench.start() + ms(2_000);
    let holds = |world: &World| {
        let clock = &world.hosts[host].clock;
        world.hosts[host].node.as_ref().is_some_and(|node| node.rether().holds_token(clock.read(world.now())))
    };
    while !holds(&bench.world) {
        assert!(bench.world.step(give_up), "it has its turn");
    }
    bench
}

/// The last instant at which this host still holds its token.
fn lease_end(bench: &Bench, host: usize) -> Instant {
    let holds = |at: Instant| bench.node(host).rether().holds_token(bench.world.hosts[host].clock.read(at));
    let (mut low, mut high) = (bench.start(), bench.start() + ms(10_000));
    assert!(holds(low) && !holds(high));
    while high.since(low) > NS {
        let middle = low + high.since(low).div_down(2);
        *(if holds(middle) { &mut low } else { &mut high }) = middle;
    }
    low
}

#[test]
fn s1_two_hold_a_token_until_the_lease_of_either_ends() {
    let mut bench = held_by(0);
    let other = held_by(1);
    // Where it was stopped a little later, host 1 had its turn.
    let start = bench.start().max(other.start());
    bench.world.hosts[1].node = other.world.hosts[1].node.clone();
    let both = [Seen::Acted { host: 0 }, Seen::Acted { host: 1 }];
    let ends = lease_end(&bench, 0).min(lease_end(&other, 1));
    assert!(ends > start);
    assert_eq!(bench.look(&mut OneHolder::default(), ends, &both), ["S1"]);
    assert_eq!(bench.look(&mut OneHolder::default(), ends + NS, &both), none());
    // One overlap is one violation; the next one is another.
    let mut checker = OneHolder::default();
    assert_eq!(bench.look(&mut checker, start, &both[..1]), none());
    assert_eq!(bench.look(&mut checker, start, &both[1..]), ["S1"]);
    assert_eq!(bench.look(&mut checker, start, &both[1..]), none());
    let mine = bench.world.hosts[1].node.take();
    assert_eq!(bench.look(&mut checker, start, &both[1..]), none());
    bench.world.hosts[1].node = mine;
    assert_eq!(bench.look(&mut checker, start, &both[1..]), ["S1"]);
    // Two rings that have only just met may not know it.
    bench.windows.merging_until = start;
    assert_eq!(bench.look(&mut OneHolder::default(), start, &both), none());
    assert_eq!(bench.look(&mut OneHolder::default(), start + NS, &both), ["S1"]);
}

#[test]
fn s1_two_parts_that_do_not_hear_each_other_may_hold_one_token_each() {
    let both = [Seen::Acted { host: 0 }, Seen::Acted { host: 1 }];
    // Which hosts nobody hears, and whether frames go both ways between the first two.
    for (cut, one_ring) in [(vec![0, 1], false), (vec![1], false), (vec![4], true)] {
        let mut bench = held_by(0);
        bench.world.hosts[1].node = held_by(1).world.hosts[1].node.clone();
        let select = crate::Select { from: crate::ports(cut.clone()), ..crate::Select::all() };
        let random = bench.world.stream("test");
        bench.world.segments[0].wires.disturb(crate::WireFault::Cut, select, Instant::FAR, random);
        let start = bench.start().max(held_by(1).start());
        let found = bench.look(&mut OneHolder::default(), start, &both);
        assert_eq!(found, vec!["S1"; usize::from(one_ring)], "{cut:?}");
    }
}

#[test]
fn s2_each_token_that_is_believed_is_newer_than_the_one_before() {
    let mut bench = Bench::ring(true);
    let mut checker = Rising::default();
    let table = [
        (1, 5, 7, 0),
        (1, 5, 7, 1),
        (1, 5, 8, 0),
        (2, 5, 8, 0),
        (1, 6, 1, 0),
        (1, 5, 9, 1),
        (1, 5, 9, 1),
        (1, 5, 10, 0),
    ];
    let mut look = |bench: &Bench, host, counter, seq| {
        let frame = frame(Kind::Token, 1, (generation(counter), seq), |_| 0);
        bench.look(&mut checker, bench.start(), &[Seen::Took { host, frame, accepted: true }])
    };
    for (host, counter, seq, found) in table {
        assert_eq!(look(&bench, host, counter, seq), vec!["S2"; found], "{host} {counter} {seq}");
    }
    bench.world.hosts[1].boots += 1;
    assert_eq!(look(&bench, 1, 1, 1), none(), "another boot has seen nothing yet");
    let frame = frame(Kind::Token, 1, (generation(1), 1), |_| 0);
    let seen = [Seen::Took { host: 1, frame, accepted: false }];
    assert_eq!(bench.look(&mut checker, bench.start(), &seen), none(), "it was not believed");
}

/// A node that is put back to what it was knows an older generation, and an older epoch.
#[test]
fn s2_r6_generations_and_epochs_of_a_station_rise() {
    let before = Bench::plain().world.hosts[2].node.clone();
    let mut bench = Bench::ring(true);
    let acted = [Seen::Acted { host: 2 }];
    let ring = bench.world.hosts[2].node.clone();
    bench.world.kill(0);
    bench.world.run_for(ms(3_000));
    let claimed = bench.world.hosts[2].node.clone();
    let generation = |node: &Option<Node>| node.as_ref().map_or(0, |node| node.rether().generation());
    assert!(generation(&ring) > 0 && generation(&claimed) > generation(&ring));
    let mut checker = Rising::default();
    let mut look = |node: &Option<Node>| {
        bench.world.hosts[2].node = node.clone();
        bench.look(&mut checker, bench.start(), &acted)
    };
    assert_eq!((look(&before), look(&ring), look(&ring), look(&claimed)), (none(), none(), none(), none()));
    assert_eq!(look(&ring), ["S2"], "one generation back");
    assert_eq!(look(&claimed), none());
    assert!(look(&before).contains(&"R6"));
}

#[test]
fn l1_a_token_comes_once_in_33_cycles() {
    let bench = Bench::ring(true);
    let (start, most) = (bench.start(), bench.settings.trt * 33);
    let took = [Seen::Took { host: 1, frame: Rc::from([0; 60]), accepted: true }];
    let rejected = [Seen::Took { host: 1, frame: Rc::from([0; 60]), accepted: false }];
    let mut checker = Visits::default();
    assert_eq!(bench.look(&mut checker, start, &took), none());
    assert_eq!(bench.look(&mut checker, start + most, &took), none());
    assert_eq!(bench.look(&mut checker, start + most + ms(1), &rejected), none());
    assert_eq!(bench.look(&mut checker, start + most * 2 + NS, &took), ["L1"]);
    assert_eq!(checker.worst_silence, most + NS);
    // A station that is in no ring any more, or a window, begins anew.
    for (host, found) in [(1, vec!["L1"]), (2, none())] {
        let mut bench = Bench::ring(true);
        bench.world.hosts[2].node = Bench::plain().world.hosts[2].node.clone();
        let mut checker = Visits::default();
        assert_eq!(bench.look(&mut checker, start, &took), none());
        assert_eq!(bench.look(&mut checker, start, &[Seen::Acted { host }]), none());
        assert_eq!(bench.look(&mut checker, start + most + NS, &took), found);
    }
    for (window, found) in [(start, none()), (start.minus(NS), vec!["L1"])] {
        let mut bench = Bench::ring(true);
        bench.excuse(window, window);
        let mut checker = Visits::default();
        assert_eq!(bench.look(&mut checker, start, &took), none());
        assert_eq!(bench.look(&mut checker, start + most + NS, &took), found);
        assert_eq!(checker.worst_silence > Span::ZERO, !found.is_empty());
    }
}

/// Host 3 is dead to all others, and then it answers.
#[test]
fn r9_nobody_is_declared_dead_who_answers() {
    let mut bench = Bench::ring(true);
    let alive = bench.world.hosts[3].node.clone();
    bench.world.pause(3, ms(20_000));
    let judges = [0, 1, 2, 4].map(|host| Seen::Acted { host });
    let mut checkers = [Visits::default(), Visits::default(), Visits::default()];
    for checker in &mut checkers {
        assert_eq!(bench.look(checker, bench.start(), &judges), none());
    }
    bench.world.run_for(ms(5_000));
    bench.world.hosts[3].node = alive;
    let start = bench.start();
    // It stands still, so that nobody can know that it lives.
    assert_eq!(bench.look(&mut checkers[0], start, &judges), none());
    bench.world.hosts[3].process.paused_until = start;
    let found = bench.look(&mut checkers[1], start, &judges);
    assert!(!found.is_empty() && found.iter().all(|rule| *rule == "R9"), "{found:?}");
    assert_eq!(bench.look(&mut checkers[1], start, &judges), none(), "once");
    bench.excuse(start, start);
    assert_eq!(bench.look(&mut checkers[2], start, &judges), none(), "a window");
}

#[test]
fn r9_a_token_is_sent_twice_at_most() {
    let mut bench = Bench::ring(true);
    let mut checker = Waste::default();
    let to = bench.world.hosts[1].mac();
    let token = |seq| {
        let token = frame(Kind::Token, 1, (generation(5), seq), |_| 40);
        let mut token = token.to_vec();
        token[..6].copy_from_slice(&to.0);
        sent(0, Kind::Token, &Rc::from(token), true)
    };
    let mut look = |bench: &Bench, seq| bench.look(&mut checker, bench.start(), &[token(seq)]);
    let found = [(1, 0), (1, 0), (1, 1), (1, 1), (2, 0), (1, 0), (1, 0)];
    for (seq, count) in found {
        assert_eq!(look(&bench, seq), vec!["R9"; count], "{seq}");
    }
    let start = bench.start();
    bench.excuse(start, start);
    assert_eq!(look(&bench, 1), none(), "a window");
    bench.windows = Windows::default();
    bench.world.hosts[1].node = Bench::plain().world.hosts[1].node.clone();
    assert_eq!(look(&bench, 1), none(), "its addressee is in no ring any more");
}

#[test]
fn r9_nobody_claims_where_nothing_goes_wrong() {
    let mut bench = Bench::ring(true);
    let before: Vec<_> = bench.world.hosts.iter().map(|host| host.node.clone()).collect();
    bench.world.kill(0);
    let claims = |node: &Option<Node>| node.as_ref().map_or(0, |node| node.rether().counters().claims);
    let claimed = |host: &usize, world: &World| claims(&world.hosts[*host].node) > claims(&before[*host]);
    let give_up = bench.start() + ms(5_000);
    let host = loop {
        assert!(bench.world.step(give_up), "somebody claims");
        if let Some(host) = (1..5).find(|host| claimed(host, &bench.world)) {
            break host;
        }
    };
    let after = bench.world.hosts[host].node.clone();
    let newer_ring = {
        bench.world.run_for(ms(5_000));
        bench.world.hosts[host].node.clone()
    };
    // The others are as they were: none knows a newer generation.
    for (other, node) in before.iter().enumerate() {
        bench.world.hosts[other].node = node.clone();
    }
    bench.world.hosts[0].boots = 1;
    let acted = [Seen::Acted { host }];
    let start = bench.start();
    for (boots, window, newer, found) in [
        (0, None, false, vec!["R9"]),
        (1, None, false, none()),
        (0, Some(start), false, none()),
        (0, Some(start.minus(NS)), false, vec!["R9"]),
        (0, None, true, none()),
    ] {
        let mut checker = Waste::default();
        bench.world.hosts[host].node = before[host].clone();
        assert_eq!(bench.look(&mut checker, start, &acted), none());
        bench.world.hosts[host].node = after.clone();
        bench.world.hosts[host].boots += boots;
        if let Some(window) = window {
            bench.excuse(window, window);
        }
        let other = if host == 1 { 2 } else { 1 };
        if newer {
            bench.world.hosts[other].node = newer_ring.clone();
        }
        assert_eq!(bench.look(&mut checker, start, &acted), found, "{boots} {window:?} {newer}");
        assert_eq!(bench.look(&mut checker, start, &acted), none(), "once");
        bench.windows = Windows::default();
        bench.world.hosts[other].node = before[other].clone();
    }
}

#[test]
fn r7_an_epoch_is_of_one_mode() {
    let mut bench = Bench::ring(true);
    let ring: Vec<_> = bench.world.hosts.iter().map(|host| host.node.clone()).collect();
    (0..3).for_each(|flow| bench.world.close_flow(flow));
    bench.world.run_for(ms(1_000));
    let plain: Vec<_> = bench.world.hosts.iter().map(|host| host.node.clone()).collect();
    assert_eq!(bench.world.agreed_mode(), Some(ModeName::Plain));
    let epoch = |node: &Option<Node>| node.as_ref().expect("a node").rether().mode_epoch();
    assert_ne!(epoch(&ring[0]), epoch(&plain[0]));
    // Stations leave the ring one after another: no epoch is ever of both modes.
    let mut checker = OneMode::default();
    for nodes in [&ring, &plain, &ring] {
        for (host, node) in nodes.iter().enumerate() {
            bench.world.hosts[host].node = node.clone();
            assert_eq!(bench.look(&mut checker, bench.start(), &[Seen::Acted { host }]), none());
        }
    }
}

#[test]
fn r9_a_token_is_made_only_when_the_others_were_asked() {
    let mut bench = Bench::ring(true);
    let before: Vec<_> = bench.world.hosts.iter().map(|host| host.node.clone()).collect();
    bench.world.kill(0);
    bench.world.run_for(ms(5_000));
    let made =
        |node: &Option<Node>| node.as_ref().map_or(0, |node| node.rether().counters().tokens_regenerated);
    let claimant = (1..5).find(|host| made(&bench.world.hosts[*host].node) > made(&before[*host]));
    let host = claimant.expect("somebody has made a token");
    let after = bench.world.hosts[host].node.clone();
    let (start, acted) = (bench.start(), Seen::Acted { host });
    let claim = sent(host, Kind::Claim, &frame(Kind::Claim, 1, (generation(5), 0), |_| 40), false);
    let mut found = |asks: bool, others_live: bool| {
        let mut checker = Waste::default();
        bench.world.hosts[host].node = before[host].clone();
        bench.look(&mut checker, start, std::slice::from_ref(&acted));
        if asks {
            bench.look(&mut checker, start, std::slice::from_ref(&claim));
        }
        bench.world.hosts[host].node = after.clone();
        for other in (1..5).filter(|other| *other != host) {
            bench.world.hosts[other].node = before[other].clone().filter(|_| others_live);
        }
        bench.excuse(start, start);
        bench.look(&mut checker, start, std::slice::from_ref(&acted))
    };
    assert_eq!(found(false, true), ["R9"], "whatever goes wrong");
    assert_eq!(found(true, true), none());
    assert_eq!(found(false, false), none(), "nobody is left to ask");
}
