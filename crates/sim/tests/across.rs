//! Random worlds of channels across segments: the nodes find the way, agree on it by RCAP, carry the units
//! and end it, while gateways die, wires are cut and processes stand still; and nothing stays behind.

use rota_admission::rtip::{Discipline, Hold, Messages, Regulator, Scheduler};
use rota_contract::CloseCause;
use rota_sim::sweep::{self, ACROSS, Campaign, DENSE, DISCIPLINES, SUITE};
use rota_sim::{AcrossChange, AcrossCounts, Chances, Initiation, PartitionName};
use rota_sim::{
    AcrossSpec, AcrossTotals, Answer, EndState, Manner, PathSpec, Plant, SegmentSpec, Sessions, Settings,
    Stream, Suite, Topology, WireFault, World, WorldSpec,
};
use rota_units::{BitRate, Octets, Span};

const fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

/// Runs so many seeds of a campaign, and adds up how their channels fared.
fn sweep_all(campaign: Campaign, seeds: std::ops::Range<u64>) -> AcrossTotals {
    sweep_from(ACROSS, campaign, seeds)
}

fn sweep_from(first: u64, campaign: Campaign, seeds: std::ops::Range<u64>) -> AcrossTotals {
    let mut all = AcrossTotals::default();
    let mut broken = Vec::new();
    for seed in seeds.map(|seed| first + seed) {
        let outcome = sweep::run(seed, &campaign.scenario(seed));
        if let Some(first) = outcome.violations.first() {
            broken.push(format!("{campaign:?} {seed}: {first:?}"));
        }
        all.add(&outcome.across);
    }
    assert!(broken.is_empty(), "{} broken\n{}", broken.len(), broken.join("\n"));
    all
}

/// The worlds are about something: channels open and are denied, faults hold units up, bounds are needed.
fn is_busy(all: &AcrossTotals) {
    assert!(all.opened > 200 && all.denied > 200, "{all:?}");
    assert!(all.counts.packets > 10_000 && all.counts.excused > 0, "{all:?}");
    let longest = all.counts.longest_ppm;
    assert!((700_000..=1_000_000).contains(&longest), "{longest} millionths of a bound");
}

/// Repeat one with `rota sim run --seed N`.
#[test]
fn channels_across_segments_keep_every_rule_with_the_products_timers() {
    is_busy(&sweep_all(Campaign::Product, 0..150));
}

/// Repeat one with `rota sim run --timers proven --seed N`.
#[test]
fn channels_across_segments_keep_every_rule_with_the_proven_timers() {
    is_busy(&sweep_all(Campaign::Proven, 0..150));
}

/// Seeds that once broke a rule. Each stands in `verify/README.md` with what was mended.
const BROKEN: &[(Campaign, u64)] = &[(Campaign::Product, 60_000_001_843)];

#[test]
fn seeds_of_channels_across_segments_that_once_broke_a_rule_keep_it() {
    for (campaign, seed) in BROKEN {
        assert_eq!(sweep::run(*seed, &campaign.scenario(*seed)).violations, [], "{campaign:?} {seed}");
    }
}

/// Channels go on over another path, and links serve packets by every discipline.
#[test]
fn channels_with_another_path_and_any_discipline_keep_every_rule() {
    for campaign in [Campaign::Product, Campaign::Proven] {
        let all = sweep_from(DISCIPLINES, campaign, 0..72);
        assert!(all.counts.rerouted > 5 && all.counts.link_packets > 1_000, "{campaign:?}: {all:?}");
        let jitter = all.counts.jitter_ppm;
        assert!((300_000..=1_000_000).contains(&jitter), "{jitter} millionths of a promise of jitter");
    }
}

/// Messages of hundreds of packets, and thousands of short units a second: on a RETHER segment a channel had
/// 32 packets in a cycle at most.
#[test]
fn channels_with_hundreds_of_packets_in_a_cycle_keep_every_rule() {
    for campaign in [Campaign::Product, Campaign::Proven] {
        let all = sweep_from(DENSE, campaign, 0..60);
        assert!(all.opened > 40 && all.counts.packets > 100_000, "{campaign:?}: {all:?}");
        assert!((700_000..=1_000_000).contains(&all.counts.longest_ppm), "{campaign:?}: {all:?}");
    }
}

/// A minute of a source that never pauses, with a clock faster than a gateway's: a unit was late after 57 s,
/// as long as the gateway's regulator and shares had X_min of the source.
#[test]
fn a_source_that_never_pauses_is_not_held_back_by_a_slower_clock() {
    let seed = ACROSS + 28;
    let outcome = sweep::run(seed, &Campaign::Proven.busy_across(seed));
    assert_eq!(outcome.violations, []);
    let counts = outcome.across.counts;
    assert!(counts.units > 10_000 && (700_000..=1_000_000).contains(&counts.longest_ppm), "{counts:?}");
}

/// S11.
#[test]
fn the_same_seed_of_channels_across_segments_is_the_same_run() {
    for seed in ACROSS..ACROSS + 10 {
        let scenario = Campaign::Product.scenario(seed);
        let outcome = sweep::run(seed, &scenario);
        assert_eq!(sweep::repeats(seed, &scenario, &outcome), Ok(()));
    }
}

/// Three hosts in a row, the second one a gateway between two segments with a token.
fn row(plant: Option<Plant>) -> World {
    World::new(7, row_spec(plant, 3))
}

fn row_spec(plant: Option<Plant>, stations: usize) -> WorldSpec {
    let settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
    let card_queue = settings.port_queue;
    let more = vec![SegmentSpec { settings: settings.clone(), topology: Topology::Switch, card_queue }];
    let ports = vec![vec![0], vec![0, 1], vec![1]];
    let across = Some(Sessions { delay_max: ms(2), quota: None, breaks_ppm: 0, reroute: Span::ZERO });
    WorldSpec { more, ports, across, plant, ..WorldSpec::with(stations, settings) }
}

fn request() -> AcrossSpec {
    AcrossSpec {
        from: 0,
        to: 2,
        octets: 3_000,
        period: ms(40),
        delay: None,
        uid: 0,
        manner: Manner::Greedy,
        answer: Answer::Accepts,
        suite: Suite::default(),
    }
}

/// A world with a channel that is open and busy.
fn open(plant: Option<Plant>) -> World {
    let mut world = row(plant);
    world.run_for(ms(3_000));
    assert_eq!(world.open_across(request()), Ok(0));
    world.run_for(ms(1_000));
    let flow = &world.across()[0];
    assert_eq!((flow.sender, flow.receiver), (EndState::Open, EndState::Open));
    assert_eq!(world.violations(), []);
    world
}

fn rules(world: &World) -> Vec<&'static str> {
    let mut rules: Vec<&str> = world.violations().iter().map(|found| found.rule).collect();
    rules.dedup();
    rules
}

#[test]
fn a_channel_across_segments_ends_in_good_order_at_both_ends() {
    let mut world = open(None);
    world.run_for(ms(2_000));
    world.close_across(0, false, false);
    world.run_for(ms(3_000));
    let flow = &world.across()[0];
    let finished = EndState::Closed(CloseCause::Finished);
    assert_eq!((flow.sender, flow.receiver), (finished, finished));
    assert!(flow.counts.units > 50 && flow.counts.whole == flow.counts.units, "{flow:?}");
    assert_eq!(
        (world.across_at_rest(), world.across_causes(), world.across_overflow()),
        (Ok(()), Ok(()), Ok(()))
    );
    assert_eq!(world.violations(), []);
}

/// Both ends learn of the death from their sessions and from their segments.
#[test]
fn a_dead_gateway_ends_channels_across_segments_and_nothing_stays() {
    let mut world = open(None);
    world.kill(1);
    world.run_for(ms(8_000));
    let flow = &world.across()[0];
    let gone = EndState::Closed(CloseCause::PeerGone);
    assert_eq!((flow.sender, flow.receiver), (gone, gone));
    assert_eq!(world.across_at_rest(), Ok(()));
    world.start(1);
    world.run_for(ms(5_000));
    assert_eq!(world.across_at_rest(), Ok(()));
    assert_eq!(world.open_across(request()), Ok(1));
    world.run_for(ms(1_000));
    assert_eq!(world.across()[1].sender, EndState::Open);
    assert_eq!(world.violations(), []);
}

/// TENET-R10: two hosts ask for the last share of both segments within 2 ms. Exactly one gets it, in either
/// order.
#[test]
fn exactly_one_of_two_racing_requests_wins_the_last_share() {
    let mut winners = [0; 2];
    for seed in 0..12 {
        let spec = WorldSpec { ports: vec![vec![0], vec![0], vec![0, 1], vec![1]], ..row_spec(None, 4) };
        let mut world = World::new(seed, spec);
        world.run_for(ms(3_000));
        let order = if seed % 2 == 0 { [0, 1] } else { [1, 0] };
        for from in order {
            let request = AcrossSpec { from, to: 3, octets: 20_000, ..request() };
            assert!(world.open_across(request).is_ok());
            world.run_for(Span::from_micros(seed * 170));
        }
        world.run_for(ms(4_000));
        let ends: Vec<_> = world.across().iter().map(|flow| (flow.sender, flow.denied)).collect();
        let open = ends.iter().position(|(end, _)| *end == EndState::Open).expect("one wins");
        assert_eq!(ends[1 - open], (EndState::Denied, Some("RetherShare")), "seed {seed}: {ends:?}");
        assert_eq!(world.violations(), []);
        winners[order[open]] += 1;
        world.close_across(open, false, false);
        world.run_for(ms(4_000));
        assert_eq!(world.across_at_rest(), Ok(()));
    }
    assert!(winners.iter().all(|won| *won > 0), "{winners:?}");
}

// ---- each rule is seen to be broken -----------------------------------------------------------------------

#[test]
fn t1_a_gateway_that_stands_still_makes_units_late() {
    let mut world = open(Some(Plant::NoExcuse));
    world.pause(1, ms(150));
    world.run_for(ms(600));
    assert!(rules(&world).contains(&"T1"), "{:?}", world.violations());
}

#[test]
fn t2_a_frame_that_is_lost_breaks_a_unit() {
    let mut world = open(Some(Plant::NoExcuse));
    world.disturb(WireFault::Loss { ppm: 100_000, burst: 1 });
    world.run_for(ms(2_000));
    assert!(rules(&world).contains(&"T2"), "{:?}", world.violations());
}

#[test]
fn t3_a_channel_that_nobody_has_ended() {
    let world = open(None);
    assert_eq!(world.across_at_rest().expect_err("it is open").0, "T3");
}

#[test]
fn t4_a_share_that_is_no_channels() {
    let mut world = row(None);
    world.run_for(ms(3_000));
    let messages = Messages { x_min: ms(40), x_ave: ms(40), interval: ms(40), s_max: Octets::new(1_000) };
    let spec = PathSpec { hosts: vec![0, 1, 2], messages, regulator: Regulator::Rate, late: None };
    assert_eq!(world.across_at_rest(), Ok(()));
    world.reserve_path(&spec).expect("sound");
    assert_eq!(world.across_at_rest().expect_err("a share is reserved").0, "T4");
}

#[test]
fn t6_a_node_that_does_not_know_all_others_yet() {
    let mut world = row(None);
    let found = (0..3_000).any(|_| {
        world.run_for(ms(1));
        world.across_at_rest().is_err_and(|(rule, _)| rule == "T6")
    });
    assert!(found, "the sessions stood before anything was told over them");
    world.run_for(ms(2_000));
    assert_eq!(world.across_at_rest(), Ok(()));
}

// ---- the second suite -------------------------------------------------------------------------------------

fn studio() -> PartitionName {
    "studio".parse().expect("a name")
}

/// Two gateways between two links and a segment: station 0, gateways 1 and 2, station 3.
fn two_gateways(plant: Option<Plant>) -> World {
    let ports = vec![vec![0], vec![0, 1], vec![0, 1], vec![1]];
    let mut spec = WorldSpec { ports, ..row_spec(plant, 4) };
    spec.across = spec.across.map(|sessions| Sessions { reroute: ms(2_000), ..sessions });
    let mut world = World::new(7, spec);
    world.run_for(ms(3_000));
    world
}

fn with(suite: Suite) -> AcrossSpec {
    AcrossSpec { suite, ..request() }
}

/// Worlds of every term of the second suite, in every second one with faults.
#[test]
fn channels_of_the_second_suite_keep_every_rule() {
    for campaign in [Campaign::Product, Campaign::Proven] {
        let all = sweep_from(SUITE, campaign, 0..120);
        assert!(all.counts.changed > 10 && all.counts.packets > 10_000, "{campaign:?}: {all:?}");
        assert!((700_000..=1_000_000).contains(&all.counts.longest_ppm), "{campaign:?}: {all:?}");
    }
}

#[test]
fn a_channel_to_several_receivers_brings_each_unit_to_each_that_is_in() {
    let ports = vec![vec![0], vec![0, 1], vec![1], vec![1], vec![0]];
    let mut world = World::new(7, WorldSpec { ports, ..row_spec(None, 5) });
    world.run_for(ms(3_000));
    assert_eq!(world.open_across(with(Suite { others: vec![4], ..Suite::default() })), Ok(0));
    world.run_for(ms(2_000));
    assert_eq!(world.join_across(0, 3), Ok(()));
    world.run_for(ms(2_000));
    let open = |world: &World| world.across().iter().filter(|flow| flow.sender == EndState::Open).count();
    assert_eq!(open(&world), 3);
    world.leave_across(0, 4);
    world.run_for(ms(1_000));
    assert_eq!(open(&world), 2, "one has left");
    world.close_across(0, false, false);
    world.run_for(ms(3_000));
    let counts: Vec<_> = world.across().iter().map(|flow| (flow.counts.units, flow.counts.whole)).collect();
    assert!(counts[0].0 > counts[2].0 && counts[2].0 > 60 && counts[1].1 > 60, "{counts:?}");
    assert!([0, 2].iter().all(|at| counts[*at].0 == counts[*at].1), "{counts:?}");
    assert_eq!((world.across_at_rest(), world.across_causes()), (Ok(()), Ok(())));
    assert_eq!(world.violations(), []);
}

#[test]
fn a_path_in_reserve_takes_over_at_once() {
    let mut world = two_gateways(None);
    let suite = Suite { backup: true, ..Suite::default() };
    assert_eq!(world.open_across(AcrossSpec { to: 3, ..with(suite) }), Ok(0));
    world.run_for(ms(1_000));
    let node = world.hosts[0].node.as_ref().expect("it lives");
    let detail = node.detail(world.across()[0].channel).expect("it is open");
    world.kill(detail.hops[1].0.node.0 as usize - 1);
    world.run_for(ms(1_000));
    let flow = &world.across()[0];
    assert_eq!((flow.sender, flow.counts.switched, flow.counts.rerouted), (EndState::Open, 1, 1));
    assert_eq!(world.violations(), []);
}

#[test]
fn a_change_loses_nothing_and_puts_nothing_out_of_order() {
    let mut world = row(None);
    world.run_for(ms(3_000));
    assert_eq!(world.open_across(with(Suite { room: 6_000, ..Suite::default() })), Ok(0));
    world.run_for(ms(1_000));
    for (octets, period) in [(5_000, 40), (500, 40), (3_000, 50)] {
        let change = AcrossChange { at: Span::ZERO, octets, period: ms(period), delay: None };
        assert_eq!(world.change_across(0, change), Ok(()));
        world.run_for(ms(2_000));
    }
    world.close_across(0, false, false);
    world.run_for(ms(3_000));
    let counts = world.across()[0].counts;
    assert_eq!((counts.changed, counts.unchanged, counts.units), (3, 0, counts.whole));
    assert_eq!((world.across_at_rest(), world.across_causes()), (Ok(()), Ok(())));
    assert_eq!(world.violations(), []);
}

/// Station 0, the gateway 1 on its segment, and the receivers 2, 3 and 4 on the segment behind, with a
/// channel from 0 to 2 and 3 that has room for so many octets.
fn to_two_receivers(room: u32) -> World {
    let ports = vec![vec![0], vec![0, 1], vec![1], vec![1], vec![1]];
    let mut world = World::new(7, WorldSpec { ports, ..row_spec(None, 5) });
    world.run_for(ms(3_000));
    assert_eq!(world.open_across(with(Suite { others: vec![3], room, ..Suite::default() })), Ok(0));
    world.run_for(ms(1_000));
    world
}

/// The changes of each receiver that were made and that were not, once the channel is closed: none of their
/// units is lost, late or overtaken, by the rules, which judge each unit at each receiver.
fn closed_for_all(world: &mut World) -> Vec<(u64, u64)> {
    world.close_across(0, false, false);
    world.run_for(ms(3_000));
    assert_eq!((world.across_at_rest(), world.across_causes()), (Ok(()), Ok(())));
    assert_eq!(world.violations(), []);
    let counts = world.across().iter().map(|flow| flow.counts);
    let changes = |of: AcrossCounts| {
        assert_eq!(of.units, of.whole);
        (of.changed, of.unchanged)
    };
    counts.map(changes).collect()
}

#[test]
fn a_change_for_two_receivers_loses_delays_and_overtakes_nothing() {
    let mut world = to_two_receivers(6_000);
    for (octets, period) in [(5_000, 40), (500, 40), (2_000, 30), (3_000, 50)] {
        let change = AcrossChange { at: Span::ZERO, octets, period: ms(period), delay: None };
        assert_eq!(world.change_across(0, change), Ok(()));
        world.run_for(ms(2_000));
    }
    assert_eq!(world.join_across(0, 4), Ok(()), "behind a change");
    world.run_for(ms(1_000));
    let change = AcrossChange { at: Span::ZERO, octets: 4_000, period: ms(40), delay: None };
    assert_eq!(world.change_across(0, change), Ok(()));
    assert!(world.join_across(0, 1).is_err_and(|error| error.to_string().contains("under way")));
    world.run_for(ms(2_000));
    assert_eq!(closed_for_all(&mut world), [(5, 0), (5, 0), (1, 0)]);
    assert!(world.across()[1].counts.whole > 200);
}

/// The segment behind the gateway has no room for the new contract beside the old one.
#[test]
fn a_change_that_a_gateway_refuses_leaves_both_receivers_their_contract() {
    let mut world = to_two_receivers(30_000);
    let bounds = |world: &World| world.across().iter().map(|flow| flow.bound).collect::<Vec<_>>();
    let before = bounds(&world);
    let change = AcrossChange { at: Span::ZERO, octets: 30_000, period: ms(40), delay: None };
    assert_eq!(world.change_across(0, change), Ok(()));
    world.run_for(ms(2_000));
    assert_eq!(bounds(&world), before);
    assert_eq!(closed_for_all(&mut world), [(0, 1), (0, 1)]);
}

/// A channel that changes at random beside one that has a quarter of both links, which stand beside an
/// ordinary share of a tenth at 95 percent with the most that is asked for. A weaker contract is never
/// refused.
#[test]
fn random_changes_of_a_loaded_link_keep_every_rule_and_refuse_nothing_that_is_weaker() {
    let (mut changed, mut denied, mut longest) = (0, 0, 0);
    for (scheduler, hold) in [
        (Scheduler::DelayEdd, Hold::RateJitter),
        (Scheduler::DelayEdd, Hold::None),
        (Scheduler::JitterEdd, Hold::DelayJitter),
        (Scheduler::Rcsp, Hold::RateJitter),
        (Scheduler::Rcsp, Hold::DelayJitter),
    ] {
        for seed in 1..=6 {
            let discipline = Discipline::of(Some(scheduler), Some(hold)).expect("they go together");
            let counts = changes_at_random(seed, discipline);
            println!("{scheduler:?} {hold:?} {seed}: {counts:?}");
            (changed, denied) = (changed + counts.changed, denied + counts.unchanged);
            longest = longest.max(counts.longest_ppm);
        }
    }
    assert!(changed > 100 && denied > 5, "{changed} were made, {denied} denied");
    assert!((500_000..=1_000_000).contains(&longest), "{longest} millionths of a bound");
}

fn changes_at_random(seed: u64, discipline: Discipline) -> AcrossCounts {
    let mut random = Stream::named(seed, "changes");
    let mut link = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
    (link.medium.medium, link.medium.discipline) = (rota_sim::MediumKind::Link, discipline);
    let segment =
        SegmentSpec { settings: link.clone(), topology: Topology::Switch, card_queue: link.port_queue };
    let spec = WorldSpec { more: vec![segment], settings: link, ..row_spec(None, 3) };
    let mut world = World::new(seed, spec);
    world.run_for(ms(3_000));
    let beside = AcrossSpec { octets: 11_000, delay: Some(ms(150)), ..request() };
    assert_eq!(world.open_across(beside), Ok(0));
    let suite = Suite { room: 45_000, ..Suite::default() };
    let (mut octets, mut period) = (20_000, 40);
    let changing = AcrossSpec { octets, delay: Some(ms(220)), suite, ..request() };
    assert_eq!(world.open_across(changing), Ok(1));
    world.run_for(ms(1_000));
    assert_eq!(world.across()[1].sender, EndState::Open, "{discipline:?}");
    for _ in 0..8 {
        let before = world.across()[1].counts;
        let (next, every) = match random.below(3) {
            0 => (random.below(u64::from(octets)) as u32 + 1, period),
            1 => (octets, period + random.below(60)),
            _ => (random.below(44_000) as u32 + 100, 12 + random.below(60)),
        };
        let is_weaker = next <= octets && every >= period;
        let change = AcrossChange { at: Span::ZERO, octets: next, period: ms(every), delay: None };
        assert_eq!(world.change_across(1, change), Ok(()));
        world.run_for(ms(900 + random.below(200)));
        let counts = world.across()[1].counts;
        let is_changed = counts.changed > before.changed;
        assert!(is_changed || counts.unchanged > before.unchanged, "{discipline:?} {seed}: no outcome");
        let what = format!("{discipline:?} {seed}: {octets} each {period} ms to {next} each {every}");
        assert!(is_changed || !is_weaker, "{what} is refused");
        if is_changed {
            (octets, period) = (next, every);
        }
    }
    world.close_across(1, false, false);
    world.close_across(0, false, false);
    world.run_for(ms(3_000));
    assert_eq!((world.across_at_rest(), world.across_causes()), (Ok(()), Ok(())));
    assert_eq!(world.violations(), [], "{discipline:?} {seed}");
    let [beside, counts] = [0, 1].map(|at| world.across()[at].counts);
    assert_eq!((beside.units, counts.units), (beside.whole, counts.whole), "{discipline:?} {seed}");
    counts
}

#[test]
fn receivers_ask_and_a_channel_has_one_back() {
    for asks in [Initiation::Receiver, Initiation::Duplex] {
        let mut world = row(None);
        world.run_for(ms(3_000));
        assert_eq!(world.open_across(with(Suite { asks, ..Suite::default() })), Ok(0));
        world.run_for(ms(2_000));
        let flows = world.across();
        assert_eq!(flows.len(), 1 + usize::from(asks == Initiation::Duplex));
        assert!(flows.iter().all(|flow| flow.receiver == EndState::Open && flow.counts.whole > 30));
        world.close_across(0, false, false);
        world.run_for(ms(3_000));
        assert_eq!((world.across_at_rest(), world.across_causes()), (Ok(()), Ok(())));
        assert_eq!(world.violations(), []);
    }
}

#[test]
fn t7_a_channel_that_has_no_second_path_waits_for_another_one() {
    let mut world = two_gateways(Some(Plant::TermsUntold));
    let suite = Suite { backup: true, ..Suite::default() };
    assert_eq!(world.open_across(AcrossSpec { to: 3, ..with(suite) }), Ok(0));
    world.run_for(ms(1_000));
    (1..3).for_each(|gateway| world.kill(gateway));
    world.run_for(ms(1_000));
    assert!(rules(&world).contains(&"T7"), "{:?} {:?}", world.violations(), world.across());
}

#[test]
fn t8_a_booking_of_which_no_node_has_heard_begins_at_once() {
    for (start, end) in [(Some(ms(5_000)), None), (None, Some(ms(500)))] {
        let mut world = row(Some(Plant::TermsUntold));
        world.run_for(ms(3_000));
        assert_eq!(world.open_across(with(Suite { start, end, ..Suite::default() })), Ok(0));
        world.run_for(ms(6_000));
        assert!(rules(&world).contains(&"T8"), "{start:?} {end:?}: {:?}", world.violations());
    }
}

/// The same requests are within their parts where nodes hear of them.
#[test]
fn t9_channels_that_count_in_no_partition_exceed_it() {
    for (plant, found) in [(None, false), (Some(Plant::TermsUntold), true)] {
        let mut spec = row_spec(plant, 3);
        let mut link = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
        link.medium.medium = rota_sim::MediumKind::Link;
        link.medium.partitions.add(studio(), 20).expect("room");
        let (topology, card_queue) = (Topology::Link { delay: WorldSpec::CABLE }, link.port_queue);
        spec.more = vec![SegmentSpec { settings: link, topology, card_queue }];
        let mut world = World::new(7, spec);
        world.run_for(ms(3_000));
        for _ in 0..3 {
            let suite = Suite { partition: Some(studio()), ..Suite::default() };
            let request = AcrossSpec { octets: 5_000, ..with(suite) };
            assert!(world.open_across(request).is_ok());
            world.run_for(ms(1_000));
        }
        assert_eq!(rules(&world).contains(&"T9"), found, "{plant:?}: {:?}", world.violations());
    }
}

#[test]
fn t10_more_units_are_lost_than_the_promise_allows() {
    let mut world = row(Some(Plant::NoExcuse));
    world.run_for(ms(3_000));
    let chances = Chances { late_ppb: 10_000_000, loss_ppb: 10_000_000 };
    let (average, interval) = (Some(ms(80)), Some(ms(160)));
    let suite = Suite { chances, average, interval, ..Suite::default() };
    let request = AcrossSpec { manner: Manner::OnOff, octets: 1_000, ..with(suite) };
    assert_eq!(world.open_across(request), Ok(0));
    world.run_for(ms(4_000));
    assert_eq!(world.across_chances(), Ok(()));
    world.disturb(WireFault::Loss { ppm: 300_000, burst: 1 });
    world.run_for(ms(20_000));
    assert_eq!(world.across_chances().expect_err("they are lost").0, "T10");
}

#[test]
fn t11_a_way_back_that_nobody_asks_for() {
    let mut world = row(Some(Plant::TermsUntold));
    world.run_for(ms(3_000));
    assert_eq!(world.open_across(with(Suite { asks: Initiation::Duplex, ..Suite::default() })), Ok(0));
    world.run_for(ms(14_000));
    assert!(rules(&world).contains(&"T11"), "{:?}", world.violations());
}
