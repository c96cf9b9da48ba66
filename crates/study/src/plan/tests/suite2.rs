//! Partitions, groups, advance reservations and channels to several receivers.

use super::*;
use crate::plan::ledger::{Life, QUIET, Seat};
use proptest::prelude::*;
use rota_admission::rtip::{Chance, Discipline, Flow, edf_exact_below};
use rota_admission::subnet::{Ask, link_others, packet_cost};
use rota_units::Octets;

/// A plan of the repository.
fn of(name: &str) -> PlanFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans").join(name);
    parse(&std::fs::read_to_string(path).expect(name), Path::new("")).expect(name)
}

/// Each decision by name: accepted, or why not. All certificates hold.
fn told(plan: &PlanFile) -> Vec<(String, Result<Accepted, Box<Refused>>)> {
    let mut all = Vec::new();
    for Decision { wanted, name, answer } in decide(plan).0 {
        match answer {
            Answer::Accepted(accepted) => {
                // No certificate states the share of a group under a token.
                let is_shared = wanted.group.is_some() && accepted.legs.iter().any(|leg| leg.share.is_some());
                assert_eq!(accepted.certificate.is_none(), is_shared, "{name}");
                if let Some(certificate) = &accepted.certificate {
                    let document = Document::read(&certificate.to_string()).expect("its own document");
                    assert_eq!(document.check(), Ok(()), "{name}");
                    assert_eq!(document.promise().delay, accepted.delay.as_nanos(), "{name}");
                }
                all.push((name, Ok(accepted)));
            }
            Answer::Refused(refused) => all.push((name, Err(refused))),
            Answer::Left(left) => assert!(left, "{name}"),
        }
    }
    all
}

fn accepted(all: &[(String, Result<Accepted, Box<Refused>>)]) -> Vec<bool> {
    all.iter().map(|(_, answer)| answer.is_ok()).collect()
}

#[test]
fn a_full_partition_of_a_plan_refuses_by_name_and_the_others_have_room() {
    let plan = of("partitions.toml");
    let all = told(&plan);
    assert_eq!(accepted(&all), [true, false, true, true]);
    let refused = all[1].1.as_ref().expect_err("the studio is full");
    assert_eq!((refused.partition.as_deref(), refused.test), (Some("studio"), "Load"));
    assert!(refused.why.starts_with("partition 'studio': insufficient bandwidth"), "{}", refused.why);
    // The offer in its place fits the partition, and a larger message does not.
    let [Offered::SMax(octets)] = refused.offer[..] else { panic!("a smaller message fits") };
    let with = |octets: u64| {
        let mut plan = plan.clone();
        plan.wanted[1].messages.s_max = rota_units::Octets::new(octets);
        told(&plan)[1].1.is_ok()
    };
    assert!(with(octets.get()) && !with(octets.get() + 1));
    // Without partitions there is room.
    let undivided = PlanFile { partitions: vec![file::Parted::default(); 3], ..plan };
    assert_eq!(accepted(&told(&undivided)), [true; 4]);
}

/// Certificates of channels that are booked state who stands when, and hold for each set in their lives.
#[test]
fn a_booked_channel_of_a_plan_has_a_certificate_of_its_whole_life() {
    let mut plan = of("advance.toml");
    // Smaller ones, so that several have room at once; the second one begins and ends while the third stands.
    for (wanted, (start, end)) in plan.wanted.iter_mut().zip([(0, 60), (30, 90), (10, 200), (150, 160)]) {
        wanted.messages.s_max = Octets::new(300);
        wanted.life = Life { start: s(start), end: Some(s(end)) };
    }
    let all = told(&plan);
    assert_eq!(accepted(&all), [true; 4]);
    let made = |at: usize| all[at].1.as_ref().expect("accepted").certificate.clone().expect("it has one");
    let third = made(2);
    assert_eq!(
        (&third["channel"]["begins"], &third["channel"]["ends"]),
        (&json!(10_000_000_000u64), &json!(200_000_000_000u64))
    );
    let flows = third["hops"][1]["flows"].as_array().expect("a cable");
    let starts: Vec<_> =
        flows.iter().map(|flow| flow["from"].as_u64().expect("a number") / 1_000_000_000).collect();
    assert_eq!(starts, [0, 0, 30, 10], "ordinary traffic, the others that it meets, and itself");
    let shares = third["hops"][0]["rether"].as_array().expect("a ring");
    let moments: Vec<_> =
        shares.iter().map(|share| share["from"].as_u64().expect("a number") / 1_000_000_000).collect();
    assert_eq!(
        (moments[0], moments.len()),
        (10, 4),
        "its start, another one's, and the ends of both: {moments:?}"
    );
    let last = made(3)["hops"][1]["flows"].as_array().map(Vec::len);
    assert_eq!(last, Some(3), "the first two have gone by then");
}

/// Each certificate of it holds, which `told` has checked; one of the channels has an end.
#[test]
fn channels_over_ports_of_levels_have_certificates_by_either_regulator() {
    let plan = of("levels.toml");
    let all = told(&plan);
    assert_eq!(accepted(&all), [true; 3]);
    let of = |at: usize| all[at].1.as_ref().expect("accepted").certificate.clone().expect("levels have one");
    let video = of(0);
    let hops = [1, 2].map(|hop| &video["hops"][hop]);
    assert_eq!(hops.map(|hop| &hop["port"]["levels"]), [&Value::from(1); 2]);
    // Rate-jitter, and delay-jitter by what was ahead.
    assert_eq!(hops.map(|hop| &hop["node"]["regulator"]), [&Value::from(1), &Value::from(2)]);
    let stated = [8_000_000u64, 20_000_000, 60_000_000];
    let levels = (0..8).map(|n| *stated.get(n).unwrap_or(&(60_000_000 << n.saturating_sub(2))));
    let bound = of(2)["hops"][0]["node"]["delay"].as_u64().expect("a number");
    let slack = of(2)["hops"][0]["frame"]["host_slack"].as_u64().expect("a number");
    assert!(levels.into_iter().any(|level| level + slack == bound), "{bound} is the bound of a level");
}

#[test]
fn members_of_a_group_share_a_reservation_of_the_cable() {
    let plan = of("group.toml");
    let all = told(&plan);
    assert_eq!(accepted(&all), [true, true, true, false]);
    // Two at once have two reservations, for which the cable has no room: the guest has it alone.
    let mut two = plan.clone();
    two.groups[0].at_once = 2;
    let of_two = told(&two);
    assert_eq!(accepted(&of_two), [false, false, false, true]);
    // A member states no messages of its own, and is not told to make them smaller; the guest is.
    let offers = [&of_two[0], &all[3]].map(|(_, answer)| &answer.as_ref().expect_err("no room").offer[..]);
    assert!(matches!(offers, [[], [Offered::SMax(_)]]), "{offers:?}");
    let mut alone = plan.clone();
    alone.wanted.iter_mut().for_each(|wanted| wanted.group = None);
    assert_eq!(accepted(&told(&alone)), [true, false, false, false]);
}

#[test]
fn a_channel_without_an_end_is_told_when_it_would_be_in_the_way() {
    let plan = of("advance.toml");
    let all = told(&plan);
    assert_eq!(accepted(&all), [true, true, false, true]);
    let refused = all[2].1.as_ref().expect_err("the evening is reserved");
    assert_eq!(refused.from, Span::from_millis(300_000));
    assert!(refused.why.starts_with("from 300"), "{}", refused.why);
    let end = Span::from_millis(300_000 - 400).minus(QUIET);
    assert_eq!(refused.offer, [Offered::End(end)]);
    let with = |end: Span| {
        let mut plan = plan.clone();
        plan.wanted[2].life.end = Some(end);
        told(&plan)[2].1.is_ok()
    };
    assert!(with(end) && !with(end + Span::from_nanos(1)));
}

#[test]
fn a_branch_that_fails_is_pruned_and_each_link_carries_a_lecture_once() {
    let plan = of("multicast.toml");
    let all = told(&plan);
    let names: Vec<&str> = all.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["survey", "lecture@screen", "lecture@cabin", "hall-joins@hall"]);
    assert_eq!(accepted(&all), [true, true, false, true]);
    let refused = all[2].1.as_ref().expect_err("the cabin has no room");
    let north = plan.topology.segments.iter().position(|segment| segment.name == "north");
    assert_eq!((refused.test, refused.step.map(|step| step.segment)), ("Load", north));
    // The hall has the bound of the screen: it finds the hops that there are.
    let delay = |at: usize| all[at].1.as_ref().map(|accepted| accepted.delay).ok();
    assert_eq!(delay(1), delay(3));

    let mut network = Plan::new(&plan);
    let [survey, lecture, joins, leaves] = [0, 1, 2, 3].map(|at| &plan.wanted[at]);
    network.decide(survey).expect("an empty cable");
    network.decide_tree(lecture);
    let count = |network: &Plan<'_>, segment| network.ledger.at(segment, Span::ZERO, usize::MAX).count();
    let all = |network: &Plan<'_>| [0, 1, 2, 3].map(|segment| count(network, segment));
    assert_eq!(all(&network), [1, 1, 1, 1]);
    assert!(network.join("lecture", joins.to[0])[0].1.is_ok());
    assert_eq!(all(&network), [1, 1, 1, 1], "one reservation a link");
    assert!(network.leave("lecture", leaves.to[0]));
    assert_eq!(all(&network), [1, 1, 1, 1], "the hall needs them");
    assert!(!network.leave("lecture", leaves.to[0]), "it has left");
    assert!(network.leave("lecture", joins.to[0]));
    assert_eq!(all(&network), [0, 0, 0, 1], "only the survey is left");
    assert!(network.join("lecture", joins.to[0])[0].1.is_ok(), "the channel is there for who comes next");
    assert!(network.join("lecture", joins.to[0])[0].1.is_err(), "once");
    assert!(network.join("nothing", joins.to[0])[0].1.is_err());
}

/// One document of the whole tree after each request: the links that the receivers share stand in it once.
#[test]
fn a_tree_of_a_plan_has_one_certificate_with_a_promise_to_each_receiver() {
    let plan = of("multicast.toml");
    let (decisions, trees) = decide(&plan);
    let names: Vec<&str> = trees.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["lecture", "hall-joins", "screen-leaves"]);
    let read = |at: usize| {
        let (_, certificate) = &trees[at];
        let document = Document::read(&certificate.as_ref().expect("it has receivers").to_string());
        let document = document.expect("its own form");
        assert_eq!(document.check(), Ok(()));
        document
    };
    let shape = |document: &Document| (document.hops(), document.receivers());
    assert_eq!([0, 1, 2].map(|at| shape(&read(at))), [(3, 1), (3, 2), (3, 1)]);
    let Answer::Accepted(screen) = &decisions[1].answer else { panic!("it is accepted") };
    assert_eq!(read(0).promise().delay, screen.delay.as_nanos(), "that of its branch");
    // With room in the north both branches stand: they part behind the cable.
    let mut plan = of("multicast.toml");
    plan.wanted.remove(0);
    let (_, trees) = decide(&plan);
    let tree = trees[0].1.as_ref().expect("it has receivers");
    let before: Vec<_> = (0..4).map(|n| tree["hops"][n]["node"]["before"].as_u64()).collect();
    assert_eq!(before, [0, 1, 2, 2].map(Some));
    let document = Document::read(&tree.to_string()).expect("its own form");
    assert_eq!((document.check(), shape(&document)), (Ok(()), (4, 2)));
}

/// With the offer of a pruned branch the branch fits beside those that were accepted, and with an octet more
/// it does not.
#[test]
fn a_pruned_branch_has_the_nearest_request_that_fits() {
    let mut plan = of("multicast.toml");
    let refused = told(&plan)[2].1.as_ref().expect_err("the cabin has no room").clone();
    let [Offered::SMax(octets)] = refused.offer[..] else { panic!("{refused:?}") };
    let mut with = |octets: u64| {
        plan.wanted[1].messages.s_max = Octets::new(octets);
        accepted(&told(&plan))[1..3].to_vec()
    };
    assert_eq!(with(octets.get()), [true, true]);
    assert_eq!(with(octets.get() + 1), [true, false]);
}

/// The fault of a plan of the repository in which the first `old` is `new`.
fn wrong(name: &str, old: &str, new: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans").join(name);
    let text = std::fs::read_to_string(path).expect(name);
    assert!(text.contains(old), "{old}");
    parse(&text.replacen(old, new, 1), Path::new("")).expect_err(new).1
}

#[test]
fn bad_partitions_groups_and_receivers_name_line_and_field() {
    let all = [
        ("partitions.toml", "\"40%\"", "\"71%\"", "partition.share: the partitions leave nothing"),
        ("partitions.toml", "\"40%\"", "\"0%\"", "partition.share: a partition of 0 %"),
        ("partitions.toml", "\"40%\"", "\"405000ppm\"", "partition.share: write whole percent"),
        (
            "partitions.toml",
            "segment = \"wan\"",
            "segment = \"won\"",
            "partition.segment: there is no segment",
        ),
        ("partitions.toml", "name = \"office\"", "name = \"studio\"", "partition.name: 'studio' names two"),
        ("partitions.toml", "name = \"office\"", "name = \"rest\"", "partition.name: 'rest' is what"),
        (
            "partitions.toml",
            "partition = \"office\"",
            "partition = \"attic\"",
            "channel.partition: no segment has",
        ),
        (
            "partitions.toml",
            "medium = \"link\"",
            "medium = \"link\"\ndiscipline = \"rcsp\"",
            "partition.segment: 'wan'",
        ),
        ("group.toml", "at-once = 1", "at-once = 0", "group.at-once: 1 to"),
        ("group.toml", "xmin = \"60ms\"", "xmin = \"0ms\"", "group.xmin: xmin is zero"),
        (
            "group.toml",
            "group = \"conference\"",
            "group = \"club\"",
            "channel.group: there is no group 'club'",
        ),
        (
            "group.toml",
            "group = \"conference\"",
            "group = \"conference\"\nsmax = \"1B\"",
            "channel.smax: the group",
        ),
        (
            "group.toml",
            "group = \"conference\"",
            "group = \"conference\"\nend = \"1s\"",
            "channel.end: a member",
        ),
        ("advance.toml", "end = \"600s\"", "end = \"300s\"", "channel.end: is no later than the start"),
        ("advance.toml", "end = \"600s\"", "end = \"40000000s\"", "channel.end: a plan looks a year ahead"),
        ("multicast.toml", "[\"screen\", \"cabin\"]", "[]", "channel.to: name each receiver once"),
        (
            "multicast.toml",
            "[\"screen\", \"cabin\"]",
            "[\"hall\", \"hall\"]",
            "channel.to: name each receiver once",
        ),
        ("multicast.toml", "[\"screen\", \"cabin\"]", "\"screen\"", "channel.join: no channel before has"),
        (
            "multicast.toml",
            "join = \"lecture\"",
            "join = \"lecture\"\nxmin = \"1ms\"",
            "channel.xmin: the channel",
        ),
        ("multicast.toml", "join = \"lecture\"", "join = \"survey\"", "channel.join: no channel before has"),
    ];
    for (name, old, new, sentence) in all {
        let said = wrong(name, old, new);
        assert!(said.starts_with(sentence), "{new}: {said}");
    }
}

/// A second slot of a station needs no visit of its own, but does as soon as the first one has ended or left.
#[test]
fn a_slot_has_time_for_a_visit_of_its_own_where_the_one_before_ends() {
    let file = of("advance.toml");
    let both = |first: Option<Span>| {
        let mut network = Plan::new(&file);
        for end in [first, None] {
            let mut wanted = file.wanted[0].clone();
            wanted.messages.s_max = rota_units::Octets::new(300);
            wanted.life = Life { start: Span::ZERO, end };
            network.decide(&wanted).expect("both are small");
        }
        let slots =
            network.ledger.at(0, Span::ZERO, usize::MAX).map(|entry| entry.tht.expect("a token rules"));
        slots.collect::<Vec<Span>>()
    };
    let (for_ever, for_a_time) = (both(None), both(Some(s(60))));
    assert!(for_ever[1] < for_ever[0], "{for_ever:?}");
    assert_eq!(for_a_time, [for_ever[0]; 2]);
}

/// The exact test of all that a port has at a moment, by the function that looks at every point.
fn stands(network: &Plan<'_>, segment: usize, at: Span) -> bool {
    let params = &network.params[segment];
    let flow = |ask: &Ask, delay: Span| Flow {
        traffic: ask.traffic,
        service: packet_cost(&params.link, ask.octets),
        delay,
    };
    let (load, (ordinary, delay)) = link_others(params, Discipline::default(), Span::ZERO);
    let mut flows = vec![flow(&ordinary, delay)];
    let slack = params.link.host_slack;
    let mut is_reserved = false;
    for entry in network.ledger.at(segment, at, usize::MAX) {
        let lanes = match entry.seat.group {
            None => 1,
            Some(_) if is_reserved => 0,
            Some((_, at_once)) => at_once,
        };
        is_reserved |= entry.seat.group.is_some();
        flows.extend(std::iter::repeat_n(flow(&entry.ask, entry.delay.minus(slack)), lanes));
    }
    edf_exact_below(&flows, load.ordinary, load.above().as_ref()).is_ok()
}

/// One cable, and what is asked of it.
fn cable() -> PlanFile {
    let text = "[[segment]]\nname = \"wan\"\nmedium = \"link\"\nrate = \"4mbit\"\n\
                [[station]]\nname = \"a\"\neth0 = \"wan\"\n[[station]]\nname = \"b\"\neth0 = \"wan\"\n\
                [[group]]\nname = \"talk\"\nat-once = 2\nxmin = \"30ms\"\nsmax = \"1400B\"\n\
                [[channel]]\nname = \"c\"\nfrom = \"a\"\nto = \"b\"\n\
                xmin = \"20ms\"\nsmax = \"1kB\"\ndelay = \"1s\"\n";
    parse(text, Path::new("")).expect(text)
}

fn s(seconds: u64) -> Span {
    Span::from_millis(seconds * 1_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// At every moment the set that stands passes the exact test; and only a refusal that is due is made: the
    /// set of the moment that it names, with the new channel, does not pass at any bound of its goal.
    #[test]
    fn each_set_of_a_ledger_of_time_passes_the_exact_test(
        asks in prop::collection::vec(
            (5u64..60, 200u64..1_400, 60u64..900, 0u64..90, 1u64..60, any::<bool>()), 1..14
        )
    ) {
        let file = cable();
        let mut network = Plan::new(&file);
        for (x_min, octets, delay, start, length, ends) in asks {
            let mut wanted = file.wanted[0].clone();
            wanted.messages.x_min = Span::from_millis(x_min);
            wanted.messages.x_ave = Span::from_millis(x_min);
            wanted.messages.interval = Span::from_millis(x_min);
            wanted.messages.s_max = rota_units::Octets::new(octets);
            wanted.goal.delay = Span::from_millis(delay);
            wanted.life = Life { start: s(start), end: ends.then(|| s(start + length)) };
            let answer = network.decide(&wanted);
            let seat = Seat {
                channel: usize::MAX,
                life: wanted.life.charged(wanted.goal.delay),
                partition: None,
                group: None,
                late: Chance::NEVER,
            };
            for at in network.ledger.moments(0, &seat) {
                prop_assert!(stands(&network, 0, at), "at {at}");
            }
            if let Err(refused) = answer {
                prop_assert!(refused.from >= wanted.life.start || refused.step.is_none());
                prop_assert!(seat.life.has(refused.from) || refused.step.is_none());
            }
        }
        for second in 0..170 {
            prop_assert!(stands(&network, 0, s(second)), "at {second} s");
        }
    }

    /// Lives that are far enough apart do not know of each other, in any order.
    #[test]
    fn channels_whose_lives_are_apart_all_stand(order in Just((0u64..6).collect::<Vec<_>>()).prop_shuffle()) {
        let file = cable();
        let mut network = Plan::new(&file);
        for turn in order {
            let mut wanted = file.wanted[0].clone();
            // 75 % of the cable: two at a time do not fit.
            wanted.messages.x_min = Span::from_millis(3);
            wanted.messages.x_ave = Span::from_millis(3);
            wanted.messages.interval = Span::from_millis(3);
            let start = s(turn * 10);
            wanted.life = Life { start, end: Some(start + s(8)) };
            let answer = network.decide(&wanted);
            prop_assert!(answer.is_ok(), "{answer:?}");
            wanted.life = Life { start: start + s(9), end: Some(start + s(10)) };
            // The one before is charged for two seconds behind its end.
            prop_assert!(network.decide(&wanted).is_err());
        }
    }

    /// A group has two reservations, its members one bound, and no later one makes it longer.
    #[test]
    fn a_group_of_any_size_stands_with_its_lanes(
        asks in prop::collection::vec((any::<bool>(), 100u64..900, 8u64..60), 1..16)
    ) {
        let file = cable();
        let mut network = Plan::new(&file);
        let mut bound = Span::MAX;
        let mut members = 0;
        for (is_member, delay, x_min) in asks {
            let mut wanted = file.wanted[0].clone();
            wanted.goal.delay = Span::from_millis(delay);
            if is_member {
                (wanted.group, wanted.messages) = (Some(0), file.groups[0].messages);
            } else {
                wanted.messages.x_min = Span::from_millis(x_min);
                wanted.messages.x_ave = Span::from_millis(x_min);
                wanted.messages.interval = Span::from_millis(x_min);
            }
            let answer = network.decide(&wanted);
            prop_assert!(stands(&network, 0, Span::ZERO));
            let all = network.ledger.at(0, Span::ZERO, usize::MAX);
            let ours = all.filter(|entry| entry.seat.group.is_some());
            let delays: Vec<Span> = ours.map(|entry| entry.delay).collect();
            prop_assert!(delays.windows(2).all(|pair| pair[0] == pair[1]), "{delays:?}");
            let now = delays.first().copied().unwrap_or(Span::MAX);
            prop_assert!(now <= bound);
            bound = now;
            if is_member && answer.is_err() {
                // A further member costs nothing, and only a goal below the bound is refused.
                let cable = network.params[0].link.frame_span_max();
                prop_assert!(members == 0 || Span::from_millis(delay) < bound + cable);
            }
            members = delays.len();
        }
    }

    /// Receivers that join and leave in any order leave nothing behind, and each station has one way.
    #[test]
    fn a_tree_whose_receivers_come_and_go_leaves_nothing(
        turns in prop::collection::vec((0usize..8, any::<bool>()), 1..20)
    ) {
        let file = of("multicast.toml");
        let mut network = Plan::new(&file);
        let lecture = file.wanted.iter().find(|wanted| wanted.is_tree).expect("it has one");
        network.decide_tree(lecture);
        let stations = file.topology.stations.len();
        let segments = file.topology.segments.len();
        for (station, joins) in turns {
            let station = station % stations;
            if station == lecture.from {
                continue;
            }
            if joins {
                network.join("lecture", station);
            } else {
                network.leave("lecture", station);
            }
            for segment in 0..segments {
                let all: Vec<_> = network.ledger.at(segment, Span::ZERO, usize::MAX).collect();
                prop_assert!(all.len() <= 1, "each link once");
                prop_assert!(all.iter().all(|entry| !entry.next.is_empty()), "no branch without a receiver");
            }
        }
        for station in 0..stations {
            network.leave("lecture", station);
        }
        prop_assert!((0..segments).all(|at| network.ledger.at(at, Span::ZERO, usize::MAX).count() == 0));
    }
}
