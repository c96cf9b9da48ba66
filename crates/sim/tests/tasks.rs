//! The task scheduler on a CPU in virtual time, under the checker of its bound (TRANSPORT-R53 to R56).

use rota_admission::cpu::{Ask, Class, Costs, CpuTest, Host, Promise, Refused, Share, admit, grown};
use rota_admission::cpu::{Budget, Over, Work, admit_unordered};
use rota_proto::task::Terms;
use rota_sim::Stream;
use rota_sim::tasks::{Finding, Load, Mistake, Plan, Seen, Takes, run};
use rota_units::{Octets, Span};

const fn us(micros: u64) -> Span {
    Span::from_micros(micros)
}

fn terms(class: Class, weight: u16, cost: u64) -> Terms {
    Terms { class, weight, cost: us(cost) }
}

/// A host with some clients of each class, drawn by the seed.
fn some(seed: u64) -> Plan {
    let mut random = Stream::named(seed, "plan");
    let mut clients = Vec::new();
    for class in Class::ALL {
        for _ in 0..random.between(1, 5) {
            let weight = if class == Class::Guaranteed { random.between(1, 8) as u16 } else { 1 };
            let load = match random.below(3) {
                0 => Load::Endless,
                1 => Load::Random { units: 12, pause: us(4_000) },
                _ => Load::Periodic {
                    units: random.between(1, 20) as u32,
                    period: us(random.between(300, 3_000)),
                    first: us(random.below(500)),
                    deadline: Span::MAX,
                    message: Span::ZERO,
                    jitter: Span::ZERO,
                },
            };
            // Classes above that have work without end would leave nothing to see below.
            let is_endless = load == Load::Endless && class == Class::Guaranteed && !random.happens(200_000);
            let load = if is_endless { Load::Random { units: 6, pause: us(3_000) } } else { load };
            clients.push((terms(class, weight, random.between(1, 40)), load));
        }
    }
    let above = random.happens(500_000).then_some((us(30), us(400)));
    let takes = if random.happens(500_000) { Takes::Cost } else { Takes::UpToCost };
    let call_max = if random.happens(500_000) { 1 } else { u16::MAX };
    Plan { clients, takes, call_max, above, span: Span::from_millis(100), mistake: None }
}

fn seen(seed: u64, plan: Plan) -> Seen {
    run(seed, plan).expect("its terms make sense")
}

/// TRANSPORT-R54, for every client of many hosts.
#[test]
fn every_client_has_its_rate_after_its_latency() {
    let (mut checks, mut units) = (0, [0; Class::COUNT]);
    for seed in 0..200 {
        let plan = some(seed);
        let classes: Vec<Class> = plan.clients.iter().map(|(terms, _)| terms.class).collect();
        let seen = seen(seed, plan);
        assert!(seen.findings.is_empty(), "seed {seed}: {}", seen.findings[0]);
        checks += seen.checks;
        for (class, got) in classes.iter().zip(&seen.got) {
            units[class.place()] += got.units;
        }
    }
    println!("{checks} comparisons, {units:?} units of the three classes");
    assert!(checks > 1_000_000 && units.iter().all(|units| *units > 10_000), "{checks}, {units:?}");
    let again = seen(7, some(7));
    assert_eq!(again.hash, seen(7, some(7)).hash, "one seed gives one run");
}

/// The control: what no checker finds is not checked.
#[test]
fn the_checker_finds_each_scheduler_with_a_mistake() {
    let mistakes = [Mistake::OneClass, Mistake::NoWeights, Mistake::NewestFirst, Mistake::Tick(us(50_000))];
    for mistake in mistakes {
        let broken = |seed: &u64| {
            let seen = seen(*seed, Plan { mistake: Some(mistake), ..some(*seed) });
            seen.findings.iter().any(|finding| matches!(finding, Finding::Short { .. }))
        };
        let found = (0..40).filter(broken).count();
        println!("{mistake:?}: found in {found} of 40 hosts");
        assert!(found >= 3, "{mistake:?}: {found} of 40");
    }
}

/// TRANSPORT-R55: each one is named, and nobody else is blamed for its time.
#[test]
fn each_task_that_takes_longer_than_its_stated_cost_is_found() {
    let mut over = 0;
    for seed in 0..40 {
        let seen = seen(seed, Plan { takes: Takes::Beyond(2_000), ..some(seed) });
        for finding in &seen.findings {
            assert!(matches!(finding, Finding::Over { took, cost, .. } if took > cost), "{seed}: {finding}");
        }
        over += seen.findings.len();
    }
    println!("{over} found");
    assert!(over > 100, "{over}");
}

/// TRANSPORT-R56.
#[test]
fn best_effort_starves_while_another_class_has_work_without_end() {
    let clients = vec![
        (terms(Class::Guaranteed, 2, 10), Load::Random { units: 4, pause: us(200) }),
        (terms(Class::Reliable, 1, 10), Load::Endless),
        (terms(Class::BestEffort, 1, 10), Load::Endless),
    ];
    let span = Span::from_millis(50);
    let plan = Plan { clients, takes: Takes::Cost, call_max: u16::MAX, above: None, span, mistake: None };
    let all = seen(1, plan.clone());
    assert!(all.findings.is_empty() && all.got[1].units > 1_000 && all.got[2].units <= 1, "{:?}", all.got);
    let clients = vec![plan.clients[0], plan.clients[2]];
    let without = seen(1, Plan { clients, ..plan });
    assert!(without.got[1].units > 1_000, "{:?}", without.got);
}

/// Octets of a message, its period, and the weight.
type Kind = (u64, Span, u16);

/// A host with two ordinary circuits, and what it promises to others beside them until it refuses one.
fn filled(host: &Host, costs: &Costs, kinds: &[Kind]) -> (Vec<Share>, Refused) {
    let ordinary = |class| {
        let (unit, message) = (us(20), Span::ZERO);
        Share { ask: Ask { class, weight: 1, unit, message, promise: None }, response: Span::ZERO }
    };
    let mut shares = vec![ordinary(Class::Reliable), ordinary(Class::BestEffort)];
    for (octets, period, weight) in kinds.iter().copied().cycle() {
        let (octets, tpdu) = (Octets::new(octets), Octets::new(1_400));
        let units = Costs::units(octets, tpdu) as u32;
        let (unit, message) = (costs.unit(octets.min(tpdu)), costs.message);
        let promise = Some(Promise { units, period, deadline: period });
        let ask = Ask { class: Class::Guaranteed, weight, unit, message, promise };
        match admit(host, &shares, &ask) {
            Ok(granted) => {
                shares.push(Share { ask, response: granted.response });
                grown(host, &mut shares);
            }
            Err(refused) => return (shares, refused),
        }
    }
    unreachable!("a host that promises without end")
}

/// The host of these shares, with so much of the promised load in per cent; ordinary circuits have work
/// without end.
fn loaded(seed: u64, host: &Host, shares: &[Share], per_cent: u64) -> Plan {
    let mut random = Stream::named(seed, "phases");
    let client = |Share { ask, .. }: &Share| {
        let terms = Terms { class: ask.class, weight: ask.weight, cost: ask.cost() };
        let Some(Promise { units, period, deadline }) = ask.promise else { return (terms, Load::Endless) };
        let first = Span::from_nanos(random.below(period.as_nanos()));
        let period = Span::from_nanos((period.as_nanos() * 100).div_ceil(per_cent));
        let (message, jitter) = (ask.message, Span::ZERO);
        (terms, Load::Periodic { units, period, first, deadline, message, jitter })
    };
    let clients = shares.iter().map(client).collect();
    let (above, span) = (host.above, Span::from_millis(1_000));
    Plan { clients, takes: Takes::Cost, call_max: 1, above, span, mistake: None }
}

/// TRANSPORT-R96, TRANSPORT-R97: at 95 % of what was admitted, and at all of it; and the control, a load
/// beyond.
#[test]
fn what_the_cpu_admits_runs_without_a_late_tpdu_and_one_more_is_refused() {
    let costs = Costs { message: us(4), tpdu: us(6), octet_ps: 1_500 };
    let host = Host { share_ppm: 950_000, slack: Span::ZERO, above: Some((us(15), us(500))) };
    // Video, voice and control; then video alone, a message of which is a turn.
    let mixed = [(12_000, us(4_000), 3), (160, us(2_000), 1), (1_000, us(1_000), 1)];
    let alike = [(12_000, us(4_000), 9)];
    for (kinds, beyond) in [(&mixed[..], 250), (&alike[..], 130)] {
        let (shares, refused) = filled(&host, &costs, kinds);
        let work = |share: &Share| {
            let Promise { units, period, .. } = share.ask.promise?;
            let work = share.ask.unit * u64::from(units) + share.ask.message;
            Some(work.as_nanos() * 1_000_000 / period.as_nanos())
        };
        let load: u64 = shares.iter().filter_map(work).sum::<u64>() + 30_000;
        println!("{} promised circuits, {load} ppm of the CPU, then: {refused}", shares.len() - 2);
        assert!(shares.len() > 20 && refused.test != CpuTest::Terms && refused.margin.is_some());
        let mut tpdus = 0;
        for (per_cent, seeds) in [(95, 0..6), (100, 6..10)] {
            tpdus += seeds.map(|seed| none_is_late(seed, &host, &shares, per_cent)).sum::<u64>();
        }
        let over = seen(1, loaded(1, &host, &shares, beyond));
        let late = over.got.iter().map(|got| got.late).sum::<u64>();
        println!("{tpdus} promised TPDUs, none late; at {beyond} % of the load {late}");
        assert!(late > 0, "a load that was not admitted is late");
    }
}

/// The promised TPDUs of a run, none of which is late.
fn none_is_late(seed: u64, host: &Host, shares: &[Share], per_cent: u64) -> u64 {
    let seen = seen(seed, loaded(seed, host, shares, per_cent));
    assert!(seen.findings.is_empty(), "{seed}: {}", seen.findings[0]);
    let mut tpdus = 0;
    for (got, Share { ask, response }) in seen.got.iter().zip(shares) {
        let is_promised = ask.promise.is_some();
        assert!(got.late == 0 && (!is_promised || got.units > 0), "{got:?}");
        assert!(!is_promised || got.longest <= *response, "{} of {response}", got.longest);
        tpdus += if is_promised { got.units } else { 0 };
    }
    tpdus
}

/// A node whose channels have these octets and periods, filled until one is refused.
fn filled_node(budget: &Budget, costs: &Costs, kinds: &[(u64, Span, Span)]) -> (Vec<Work>, Over) {
    let mut works: Vec<Work> = Vec::new();
    for (octets, period, jitter) in kinds.iter().copied().cycle() {
        let work = Work::of(costs, Octets::new(octets), Octets::new(1_436), period, jitter);
        match admit_unordered(budget, works.iter().copied(), &work) {
            Ok(_) => works.push(work),
            Err(over) => return (works, over),
        }
    }
    unreachable!("a node that promises without end")
}

/// The node of these works at so much of the promised load in per cent. Clients without a promise have work
/// without end.
fn loaded_node(seed: u64, budget: &Budget, works: &[Work], per_cent: u64) -> Plan {
    let mut random = Stream::named(seed, "phases");
    let client = |work: &Work| {
        let cost = work.unit + work.message;
        // Turns of any length: the promise holds in any order.
        let weight = random.between(1, 40) as u16;
        let first = Span::from_nanos(random.below(work.period.as_nanos()));
        let period = Span::from_nanos((work.period.as_nanos() * 100).div_ceil(per_cent));
        let Work { units, message, jitter, .. } = *work;
        let deadline = budget.delay;
        (
            Terms { class: Class::Guaranteed, weight, cost },
            Load::Periodic { units, period, first, deadline, message, jitter },
        )
    };
    let mut clients: Vec<_> = works.iter().map(client).collect();
    clients.push((Terms { class: Class::BestEffort, weight: 1, cost: budget.below }, Load::Endless));
    let (above, span) = (budget.host.above, Span::from_millis(2_000));
    Plan { clients, takes: Takes::Cost, call_max: 1, above, span, mistake: None }
}

/// TRANSPORT-R96, TRANSPORT-R97, of the admission that a node asks: at 95 % of what was admitted, and at all
/// of it, while the network brings the units of all channels together.
#[test]
fn what_a_node_admits_runs_without_a_late_unit_and_one_more_is_refused_with_both_numbers() {
    let costs = Costs { message: us(100), tpdu: us(4), octet_ps: 1_500 };
    let host = Host { share_ppm: 500_000, slack: Span::ZERO, above: Some((us(50), us(33_333))) };
    let cycle = us(33_333);
    let mixed = [(16_679, cycle, cycle * 3), (160, us(16_666), cycle * 3), (1_000, us(8_333), cycle)];
    for (delay, kinds) in [(us(10_000), &mixed[..]), (us(500_000), &mixed[..]), (us(10_000), &mixed[2..])] {
        let budget = Budget { host, below: us(106), delay };
        let (works, over) = filled_node(&budget, &costs, kinds);
        println!("{} channels, then {:?}: {} of {}", works.len(), over.test, over.needed, over.most);
        assert!(works.len() > 5 && over.test != CpuTest::Terms && over.needed > over.most);
        let mut units = 0;
        for (per_cent, seeds) in [(95, 0..4), (100, 4..8)] {
            for seed in seeds {
                let seen = seen(seed, loaded_node(seed, &budget, &works, per_cent));
                for (got, work) in seen.got.iter().zip(&works) {
                    assert!(got.late == 0 && got.units > 0, "{work:?}: {got:?}");
                    assert!(got.longest <= delay, "{work:?}: {} of {delay}", got.longest);
                    units += got.units;
                }
            }
        }
        let late = |per_cent| {
            let seen = seen(1, loaded_node(1, &budget, &works, per_cent));
            seen.got.iter().map(|got| got.late).sum::<u64>()
        };
        let beyond = [200, 400, 800].map(late);
        println!("{units} promised TPDUs, none late; at 2, 4 and 8 times the load {beyond:?}");
        assert!(beyond[2] > 0, "a load that was not admitted is late");
    }
}
