//! A plan and the nodes of a network decide alike: random networks and requests, through `rota plan` and
//! through the nodes of the simulator in virtual time. docs/plan.md has the differences that are intended.

use super::*;
use rota::TrafficSpec;
use rota_admission::path::Goal;
use rota_admission::rtip::Messages;
use rota_lab::Medium;
use rota_sim::{
    AcrossSpec, Answer, Chances, EndState, FlowState, Manner, MediumKind, SegmentSpec, Sessions, Settings,
    Stream, Suite, World, WorldSpec,
};
use rota_units::Octets;
use rota_wire::RcapDenied;
use std::ops::Range;

const fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

/// Segments in a row, with a host at each end and gateways between, and hosts beside them.
fn network(random: &mut Stream) -> String {
    let count = random.between(2, 3) as usize;
    let mut text = String::new();
    let mut is_link = Vec::new();
    for at in 0..count {
        let rate = ["3mbit", "10mbit", "100mbit"][random.below(3) as usize];
        is_link.push(random.below(2) == 0);
        let medium = if is_link[at] { "link" } else { "switch" };
        text += &format!("[[segment]]\nname = \"s{at}\"\nmedium = \"{medium}\"\nrate = \"{rate}\"\n");
        if is_link[at] {
            let all = ["delay-edd", "jitter-edd", "rcsp\"\nregulator = \"delay-jitter"];
            text += &format!("discipline = \"{}\"\n", all[random.below(3) as usize]);
        }
    }
    let host = |name: String, ports: &[usize]| {
        let ports = ports.iter().enumerate().map(|(n, on)| format!("eth{n} = \"s{on}\"\n"));
        format!("[[station]]\nname = \"{name}\"\n{}", ports.collect::<String>())
    };
    text += &host("first".into(), &[0]);
    (1..count).for_each(|on| text += &host(format!("g{on}"), &[on - 1, on]));
    text += &host("last".into(), &[count - 1]);
    for (on, is_link) in is_link.iter().enumerate() {
        if !is_link && random.below(2) == 0 {
            text += &host(format!("h{on}"), &[on]);
        }
    }
    text
}

/// Random networks, each with its seed and the stream that its requests are drawn from.
fn networks(seeds: Range<u64>, name: &'static str) -> impl Iterator<Item = (u64, Stream, PlanFile)> {
    seeds.map(move |seed| {
        let mut random = Stream::named(seed, name);
        let text = network(&mut random);
        (seed, random, parse(&text, Path::new("")).expect(&text))
    })
}

/// A world of nodes with the network of a plan.
fn world(file: &PlanFile, seed: u64) -> World {
    let settings = |segment: &rota_lab::Segment| {
        let (medium, discipline) = (segment.medium.clone(), segment.discipline);
        let made: Settings = segment.settings().expect("a sound cycle");
        made.with(|made| {
            made.discipline = discipline;
            if medium == Medium::Link {
                made.medium = MediumKind::Link;
            }
        })
    };
    let spec = |segment: &rota_lab::Segment| {
        let settings = settings(segment);
        let topology = match segment.medium {
            Medium::Link => rota_sim::Topology::Link { delay: Span::from_micros(5) },
            _ => rota_sim::Topology::Switch,
        };
        SegmentSpec { card_queue: settings.port_queue, settings, topology }
    };
    let mut segments: Vec<SegmentSpec> = file.topology.segments.iter().map(spec).collect();
    let more = segments.split_off(1);
    let first = segments.remove(0);
    let ports: Vec<Vec<usize>> = file.topology.stations.iter().map(|station| station.ports.clone()).collect();
    let across = Some(Sessions { delay_max: ms(1), quota: None, breaks_ppm: 0, reroute: Span::ZERO });
    let spec = WorldSpec {
        topology: first.topology,
        card_queue: first.card_queue,
        more,
        across,
        ports: ports.clone(),
        ..WorldSpec::with(ports.len(), first.settings)
    };
    let mut world = World::new(seed, spec);
    world.run_for(ms(3_000));
    world
}

/// Two stations that share a segment, or share none.
fn pair(random: &mut Stream, file: &PlanFile, shares: bool) -> (usize, usize) {
    let stations = &file.topology.stations;
    let all = (0..stations.len()).flat_map(|from| (0..stations.len()).map(move |to| (from, to)));
    let meet = |from: usize, to: usize| stations[from].ports.iter().any(|on| stations[to].ports.contains(on));
    let is_one = |(from, to): &(usize, usize)| from != to && meet(*from, *to) == shares;
    let pairs: Vec<(usize, usize)> = all.filter(is_one).collect();
    pairs[random.below(pairs.len() as u64) as usize]
}

/// A request between two hosts that share no segment.
fn request(random: &mut Stream, file: &PlanFile) -> Wanted {
    let (from, to) = pair(random, file, false);
    let x_min = Span::from_micros(random.between(500, 60_000));
    let x_ave = x_min * random.between(1, 3);
    let interval = x_ave * random.between(1, 6);
    let s_max = Octets::new(match random.below(4) {
        0 => random.between(1, 300),
        1 => random.between(300, 3_500),
        2 => random.between(1_000, 12_000),
        _ => random.between(12_000, 60_000),
    });
    let delay = match random.below(3) {
        0 => ms(random.between(5, 100)),
        _ => ms(random.between(100, 600)),
    };
    let jitter = (random.below(3) == 0).then(|| ms(random.between(1, 150)));
    let late_ppb = if random.below(3) == 0 { random.between(1_000_000, 100_000_000) as u32 } else { 0 };
    Wanted {
        name: "c".into(),
        verb: Verb::Open,
        from,
        to: vec![to],
        is_tree: false,
        messages: Messages { x_min, x_ave, interval, s_max },
        goal: Goal { delay, jitter },
        partition: None,
        group: None,
        life: crate::plan::ledger::Life::WHOLE,
        chances: Chances { late_ppb, loss_ppb: late_ppb },
    }
}

/// The answer of a plan, or of nodes: the promise, or the refusal and its nearest request.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Promised { delay: Span, jitter: Span },
    Refused { at: usize, test: String, margin: Span },
}

fn by_plan(network: &mut Plan<'_>, wanted: &Wanted) -> Said {
    match network.decide(wanted) {
        Ok(Accepted { delay, jitter, .. }) => Said::Promised { delay, jitter },
        Err(refused) => {
            let at = refused.step.map_or(wanted.to[0], |step| step.station);
            Said::Refused { at, test: refused.test.to_owned(), margin: refused.margin }
        }
    }
}

fn by_nodes(world: &mut World, wanted: &Wanted) -> Said {
    match asked_of_nodes(world, wanted) {
        Ok((delay, jitter)) => Said::Promised { delay, jitter },
        Err(refusal) => Said::Refused {
            at: refusal.node.0 as usize - 1,
            test: refusal.test.name().to_owned(),
            margin: Span::from_nanos(refusal.margin_ns),
        },
    }
}

/// The bound and the jitter that nodes promise.
fn asked_of_nodes(world: &mut World, wanted: &Wanted) -> Result<(Span, Span), RcapDenied> {
    let Wanted { from, ref to, messages, goal, chances, .. } = *wanted;
    let suite = Suite {
        average: Some(messages.x_ave),
        interval: Some(messages.interval),
        jitter: goal.jitter,
        chances,
        ..Suite::default()
    };
    let spec = AcrossSpec {
        from,
        to: to[0],
        octets: messages.s_max.get() as u32,
        period: messages.x_min,
        delay: Some(goal.delay),
        uid: 0,
        manner: Manner::Random,
        answer: Answer::Accepts,
        suite,
    };
    // A request that was refused has given all of its parts back, and the words ahead of it are taken back.
    world.run_for(ms(300));
    let at = world.open_across(spec).expect("a node takes the request");
    for _ in 0..60 {
        world.run_for(ms(100));
        let flow = &world.across()[at];
        match flow.sender {
            EndState::Waits => continue,
            EndState::Open => return Ok((flow.bound, flow.jitter)),
            _ => break,
        }
    }
    Err(*world.across()[at].refusal().expect("an outcome within its patience"))
}

#[test]
fn a_plan_and_nodes_decide_random_requests_alike() {
    let (mut kinds, mut differ) = (std::collections::BTreeMap::new(), Vec::new());
    for (seed, mut random, file) in networks(0..16, "plan and nodes") {
        let (mut world, mut network) = (world(&file, seed), Plan::new(&file));
        for nth in 0..8 {
            let wanted = request(&mut random, &file);
            let (planned, found) = (by_plan(&mut network, &wanted), by_nodes(&mut world, &wanted));
            let kind = match &found {
                Said::Promised { .. } => "Open",
                Said::Refused { test, .. } => test,
            };
            *kinds.entry(kind.to_owned()).or_insert(0) += 1;
            if planned != found {
                differ.push(format!("{seed}.{nth}: {wanted:?}\n   plan  {planned:?}\n   nodes {found:?}"));
                break;
            }
        }
    }
    let tests = ["Open", "Load", "Overflow", "PathDelay", "PathJitter", "RetherShare"];
    assert!(tests.iter().all(|test| kinds.contains_key(*test)), "each decides some request: {kinds:?}");
    assert!(differ.is_empty(), "{} differ\n{}", differ.len(), differ.join("\n"));
}

/// A channel of one segment: hosts beside each other, and gateways to theirs.
fn request_within(random: &mut Stream, file: &PlanFile) -> Wanted {
    let (from, to) = pair(random, file, true);
    let x_min = Span::from_micros(random.between(900, 400_000));
    let (x_ave, interval, s_max) = (x_min, x_min, Octets::new(random.between(1, 9_000)));
    let messages = Messages { x_min, x_ave, interval, s_max };
    let goal = Goal { delay: ms(5_000), jitter: None };
    Wanted { from, to: vec![to], messages, goal, chances: Chances::default(), ..request(random, file) }
}

fn within_by_nodes(world: &mut World, wanted: &Wanted) -> Option<Span> {
    let traffic = TrafficSpec::fixed(wanted.messages.s_max.get() as u32, wanted.messages.x_min, false);
    let at = world.open_flow_as(wanted.from, wanted.to[0], traffic).ok()?;
    world.run_for(ms(2_100));
    let flow = &world.flows()[at];
    (flow.state == FlowState::Open).then(|| flow.granted.bound())
}

/// Channels of one segment and channels across segments, beside each other.
#[test]
fn a_plan_and_nodes_decide_channels_of_one_segment_alike() {
    let (mut kinds, mut differ) = (std::collections::BTreeMap::new(), Vec::new());
    for (seed, mut random, file) in networks(100..112, "one segment") {
        let (mut world, mut network) = (world(&file, seed), Plan::new(&file));
        for nth in 0..8 {
            if random.below(3) == 0 {
                let wanted = request(&mut random, &file);
                let (planned, found) = (by_plan(&mut network, &wanted), by_nodes(&mut world, &wanted));
                if planned != found {
                    differ.push(format!("{seed}.{nth}: {wanted:?}\n   {planned:?}\n   {found:?}"));
                    break;
                }
                continue;
            }
            let wanted = request_within(&mut random, &file);
            let (planned, found) = (network.decide(&wanted), within_by_nodes(&mut world, &wanted));
            let medium = match &planned {
                Ok(Accepted { legs, .. }) if legs[0].share.is_some() => "ring",
                Ok(_) => "link",
                Err(_) => "refused",
            };
            *kinds.entry(medium).or_insert(0) += 1;
            if planned.as_ref().ok().map(|accepted| accepted.delay) != found {
                differ.push(format!("{seed}.{nth}: {wanted:?}\n   {planned:?}\n   {found:?}"));
                break;
            }
            let Ok(Accepted { certificate, delay, .. }) = planned else { continue };
            let certificate = certificate.expect("a channel of one segment has one");
            assert_eq!(certificate["promises"][0]["delay"], delay.as_nanos(), "{seed}.{nth}");
        }
    }
    assert_eq!(kinds.len(), 3, "{kinds:?}");
    assert!(differ.is_empty(), "{} differ\n{}", differ.len(), differ.join("\n"));
}

/// The request that an offer names.
fn offered(wanted: &Wanted, offer: &[Offered]) -> Wanted {
    let mut next = wanted.clone();
    for one in offer {
        match *one {
            Offered::Delay(delay) => next.goal.delay = delay,
            Offered::Jitter(jitter) => next.goal.jitter = Some(jitter),
            Offered::SMax(octets) => next.messages.s_max = octets,
            Offered::XMin(x_min) => next.messages.x_min = x_min,
            Offered::XAve(x_ave) => next.messages.x_ave = x_ave,
            Offered::Interval(interval) => next.messages.interval = interval,
            Offered::End(end) => next.life.end = Some(end),
        }
    }
    next
}

/// Ask, be refused, ask what was offered, be accepted: in plans, whatever test has refused.
#[test]
fn each_refusal_of_a_plan_offers_a_request_that_is_accepted() {
    let mut tests = std::collections::BTreeMap::<&str, (u32, u32)>::new();
    for (seed, mut random, file) in networks(0..2, "offers of plans") {
        let mut network = Plan::new(&file);
        for _ in 0..10 {
            let wanted = request(&mut random, &file);
            let Err(refused) = network.clone().decide(&wanted) else {
                network.decide(&wanted).expect("it was accepted just now");
                continue;
            };
            let (all, offers) = tests.entry(refused.test).or_default();
            *all += 1;
            if refused.offer.is_empty() {
                // On a full hop nothing fits.
                assert!(refused.step.is_some(), "{seed}: {wanted:?} {refused:?}");
                continue;
            }
            *offers += 1;
            let next = offered(&wanted, &refused.offer);
            let answer = network.clone().decide(&next);
            assert!(
                answer.is_ok(),
                "{seed}: {wanted:?} is refused by {refused:?}, and its offer by {answer:?}"
            );
            // Full networks are asked as well.
            if random.below(2) == 0 {
                network.decide(&next).expect("as above");
            }
        }
    }
    assert!(tests.values().filter(|(_, offers)| *offers > 0).count() >= 5, "{tests:?}");
}

/// The request that a denial names; none where it names none.
fn named(wanted: &Wanted, denied: &RcapDenied) -> Option<Wanted> {
    let span = |ns: u64| Some(Span::from_nanos(ns)).filter(|span| *span > Span::ZERO);
    let (delay, jitter) = (span(denied.nearest_delay_ns), span(denied.nearest_jitter_ns));
    let (x_min, s_max) = (span(denied.nearest_x_min_ns), denied.nearest_octets);
    if (delay, jitter, x_min, s_max) == (None, None, None, 0) {
        return None;
    }
    let goal = Goal { delay: delay.unwrap_or(wanted.goal.delay), jitter: jitter.or(wanted.goal.jitter) };
    let slower = x_min.map_or(wanted.messages, |x_min| wanted.messages.slower(x_min));
    let s_max = if s_max > 0 { Octets::new(s_max.into()) } else { slower.s_max };
    Some(Wanted { goal, messages: Messages { s_max, ..slower }, ..wanted.clone() })
}

/// Ask, be denied, ask what was offered: nodes open it, or another test denies it, which may be that of
/// another node. The one that has denied does so no more.
#[test]
fn each_offer_of_nodes_passes_the_test_that_has_denied() {
    let mut tests = std::collections::BTreeMap::<&str, (u32, u32, u32)>::new();
    for (seed, mut random, file) in networks(0..12, "offers of nodes") {
        let mut world = world(&file, seed);
        for nth in 0..8 {
            let wanted = request(&mut random, &file);
            let Err(denied) = asked_of_nodes(&mut world, &wanted) else { continue };
            let (all, offers, opened) = tests.entry(denied.test.name()).or_default();
            *all += 1;
            let Some(next) = named(&wanted, &denied) else { continue };
            *offers += 1;
            match asked_of_nodes(&mut world, &next) {
                Ok(_) => *opened += 1,
                Err(again) => assert_ne!(
                    (again.node, again.test),
                    (denied.node, denied.test),
                    "{seed}.{nth}: {wanted:?}\n  {denied:?}\n  {again:?}"
                ),
            }
        }
    }
    let has_offers = tests.values().filter(|(_, offers, _)| *offers > 0).count();
    assert!(has_offers >= 4, "{tests:?}");
    assert!(tests.values().all(|(_, offers, opened)| *offers == 0 || *opened > 0), "{tests:?}");
}
