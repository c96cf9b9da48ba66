//! Certificates of random paths: what admission makes is accepted, and no number of it can change.

mod made;

use made::{
    Case, Drawing, Drawn, Owned, Part, any_case, any_units, made, made_of_packets, made_of_parts,
    made_of_slots, made_of_units, ns,
};
use proptest::prelude::*;
use rota_admission::rtip::{Messages, Regulator};
use rota_admission::subnet::RTIP_OCTETS;
use rota_check::{
    Channel, Fault, Flow, Frame, HopTerms, Kind, Packets, Port, Promise, Rether, Slots, VERSION,
};
use rota_units::{Octets, Span};

/// Lines of code, neither blank nor a comment alone.
#[test]
fn the_checker_stays_small() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = std::fs::read_dir(folder).expect("it has sources").map(|file| file.expect("a file").path());
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    let count = |path| std::fs::read_to_string(path).expect("text").lines().filter(is_code).count();
    let lines: usize = files.map(count).sum();
    assert!((100..=500).contains(&lines), "{lines}");
}

/// Changes of one number: by one, by much, to the ends.
const CHANGES: [fn(u64) -> u64; 7] = [
    |value| value.wrapping_add(1),
    |value| value.wrapping_sub(1),
    |value| value.wrapping_mul(2),
    |value| value / 2,
    |_| 0,
    |_| 1,
    |_| u64::MAX,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Every field of every certificate, each alone.
    #[test]
    fn a_certificate_is_accepted_and_no_number_of_it_can_change(case in any_case()) {
        let Some(mut owned) = made(&case) else { return Ok(()) };
        prop_assert_eq!(owned.check(), Ok(()));
        for at in 0..owned.numbers().len() {
            let (name, _, place) = owned.numbers().swap_remove(at);
            let kept = *place;
            for change in CHANGES {
                let changed = change(kept);
                if changed != kept {
                    *owned.numbers().swap_remove(at).2 = changed;
                    prop_assert!(owned.check().is_err(), "{} from {} to {}", name, kept, changed);
                }
            }
            *owned.numbers().swap_remove(at).2 = kept;
        }
        prop_assert_eq!(owned.check(), Ok(()));
    }

    /// The same of the shares that RETHER segments and links grant to channels of their own, also behind a
    /// change.
    #[test]
    fn a_channel_of_one_segment_has_a_certificate_of_what_it_was_promised(
        case in any_units(), kind in 0usize..4
    ) {
        let made = [made_of_units, made_of_slots, made_of_parts, made_of_packets][kind];
        let Some(mut owned) = made(&case) else { return Ok(()) };
        prop_assert_eq!(owned.check(), Ok(()));
        for at in 0..owned.numbers().len() {
            let (name, kind, place) = owned.numbers().swap_remove(at);
            let kept = *place;
            for changed in CHANGES.map(|change| change(kept)).into_iter().filter(|changed| *changed != kept) {
                *owned.numbers().swap_remove(at).2 = changed;
                prop_assert!(owned.check().is_err(), "{} from {} to {}", name, kept, changed);
                // A new seal saves no derived number.
                let seal = owned.seal;
                if kind == Kind::Derived && name != "seal" {
                    owned.reseal();
                    prop_assert!(owned.check().is_err(), "{} from {} to {}", name, kept, changed);
                }
                owned.seal = seal;
            }
            *owned.numbers().swap_remove(at).2 = kept;
        }
        prop_assert_eq!(owned.check(), Ok(()));
    }

    /// The seal is no part of the proof: with a new one a changed derived number is refused all the same, and
    /// so are a tighter request, a larger message and a slower network that the promise does not hold for.
    /// Numbers of other channels are assumptions: a sealed certificate with others is another statement.
    #[test]
    fn a_new_seal_saves_no_derived_number_and_no_better_promise(case in any_case()) {
        let Some(mut owned) = made(&case) else { return Ok(()) };
        let count = owned.numbers().len() - 1;
        for at in 0..count {
            let (name, kind, place) = owned.numbers().swap_remove(at);
            let kept = *place;
            let better = match (kind, name) {
                (Kind::Derived, _) => vec![kept.wrapping_add(1), kept.wrapping_sub(1), kept / 2],
                (Kind::Free, "delay_max" | "rate" | "t_nrt") => vec![kept / 2],
                (Kind::Free, "s_max" | "link_most" | "units" | "offset" | "clocks") => vec![kept * 2 + 1],
                (Kind::Free, _) => vec![],
            };
            for better in better.into_iter().filter(|better| *better != kept) {
                *owned.numbers().swap_remove(at).2 = better;
                owned.reseal();
                prop_assert!(owned.check().is_err(), "{} from {} to {}", name, kept, better);
            }
            *owned.numbers().swap_remove(at).2 = kept;
        }
        owned.reseal();
        prop_assert_eq!(owned.check(), Ok(()));
    }
}

/// The two kinds of hop in one path, so that a failure of the generators cannot empty the tests above.
#[test]
fn one_path_of_each_kind_has_its_certificate() {
    let messages = Messages {
        x_min: Span::from_millis(40),
        x_ave: Span::from_millis(50),
        interval: Span::from_millis(200),
        s_max: Octets::new(5_000),
    };
    let drawn = |network, regulator, mbit| Drawn {
        regulator,
        mbit,
        prepare: 2_000,
        network,
        above: 1_000_000,
        others: vec![(30_000, 2, 900), (45_000, 1, 1_300)],
        link: (5, 2_000),
        flags: [false, true, false],
    };
    let hops = vec![
        drawn(Drawing::Ring, Regulator::Rate, 10),
        drawn(Drawing::Deadlines, Regulator::DelayAhead { step: ns(16_000) }, 10),
        drawn(Drawing::Ring, Regulator::None, 100),
        drawn(Drawing::Deadlines, Regulator::DelayClock { error: ns(5_000) }, 1_000),
    ];
    let case = Case {
        messages,
        least: 20,
        hops,
        is_booked: false,
        fork: None,
        slack: 9_000_000,
        jitter: None,
        clocks: 200,
    };
    let mut owned = made(&case).expect("the path carries it");
    assert_eq!(owned.check(), Ok(()));
    assert_eq!(owned.packets.count, 4);
    let headers = 28 + 20 + 16 + RTIP_OCTETS;
    assert!(owned.hops.iter().all(|hop| hop.1.headers == headers), "every header counts");
    assert!(owned.promises[0].delay_spare < 4, "relaxing gave all back: {}", owned.promises[0].delay_spare);
    owned.version = 1;
    owned.reseal();
    assert_eq!(owned.check(), Err(Fault::Version));
    assert!(Fault::Version.to_string().contains("version 5"));
    assert_eq!(Fault::Differs("slack", 4, 3).to_string(), "slack is 4, but the other numbers give 3");
}

/// Levels beside slots and announcements, by either regulator.
#[test]
fn a_port_of_levels_has_its_certificate_by_either_regulator() {
    let mut slacks = vec![];
    for regulator in [Regulator::Rate, Regulator::DelayAhead { step: ns(16_000) }] {
        let others = vec![(30_000, 2, 900), (45_000, 1, 1_300)];
        let drawn = Drawn { regulator, above: 1_000_000, ..Drawn::of(Drawing::Levels, 10, others) };
        let mut owned = made(&Case::over(vec![drawn.clone(), drawn])).expect("the path carries it");
        assert_eq!(owned.check(), Ok(()));
        // One second of packets at the port's own rate: no level keeps its bound beside them.
        let heavy = owned.changed(|of| of.port(1).0.above = of.port(1).0.window / 2);
        assert!(matches!(heavy, Err(Fault::Differs("horizon", ..) | Fault::Fails(_))), "{heavy:?}");
        let free = owned.changed(|of| (of.hops[1].0.regulator, of.hops[1].0.error) = (0, 0));
        assert_eq!(free, Err(Fault::Range("levels")), "packets that nothing holds");
        let other = owned.changed(|of| of.port(1).0.levels = 2);
        assert_eq!(other, Err(Fault::Range("levels")));
        let (port, flows) = owned.port(1);
        // Each level by hand: so many packets of it and above it before its bound, and one below it.
        let left = |bound: u64| {
            let (first, later): (Vec<&Flow>, Vec<&Flow>) = flows.iter().partition(|flow| flow.delay <= bound);
            let released = |flow: &&Flow| {
                let (whole, rest) = (bound / flow.interval, bound % flow.interval);
                (whole * flow.burst + rest.div_ceil(flow.x_min).min(flow.burst)) * flow.service
            };
            let above = bound.div_ceil(port.window) * port.above;
            let blocking = later.iter().map(|flow| flow.service).max().unwrap_or(0).max(port.ordinary);
            bound - first.iter().map(released).sum::<u64>() - above - blocking
        };
        let least = flows.iter().map(|flow| left(flow.delay)).min().expect("its own");
        assert_eq!(port.slack, least.min(port.horizon));
        slacks.push((port.slack, flows.len()));
    }
    assert_eq!(slacks[0], slacks[1], "the test of a level is the same");
}

/// Two receivers behind one hop that they share, and one that joins at the end of it.
#[test]
fn a_tree_has_one_certificate_with_a_promise_to_each_receiver() {
    let drawn = |network, mbit| Drawn::of(network, mbit, vec![(45_000, 1, 1_300)]);
    let hops = vec![drawn(Drawing::Ring, 100), drawn(Drawing::Deadlines, 10)];
    let other = vec![drawn(Drawing::Levels, 100), drawn(Drawing::Ring, 10)];
    let of = |fork| Case { fork: Some(fork), ..Case::over(hops.clone()) };
    let made_of = |fork| made(&of(fork)).expect("both ways carry it");
    let owned = made_of((1, other));
    assert_eq!(owned.check(), Ok(()));
    let before: Vec<u64> = owned.hops.iter().map(|(terms, ..)| terms.before).collect();
    let ends: Vec<u64> = owned.promises.iter().map(|promise| promise.hop).collect();
    assert_eq!((before, ends), (vec![0, 1, 1, 3], vec![2, 4]));
    let joins = made_of((1, vec![]));
    assert_eq!((joins.check(), joins.promises[1].hop, joins.hops.len()), (Ok(()), 1, 2));
    let changed = |change: &dyn Fn(&mut Owned)| owned.changed(change);
    // A promise of another receiver's way, hops in a circle, one that leads nowhere, nobody who receives.
    assert!(changed(&|of| of.promises[1].hop = 2).is_err());
    assert_eq!(changed(&|of| of.hops[1].0.before = 2), Err(Fault::Range("before")));
    assert_eq!(changed(&|of| of.hops[1].0.before = 4), Err(Fault::Range("before")));
    assert_eq!(changed(&|of| of.promises.truncate(1)), Err(Fault::Range("before")));
    assert_eq!(changed(&|of| (of.hops, of.promises) = (vec![], vec![])), Err(Fault::Range("promises")));
    assert_eq!(changed(&|of| of.promises[0].hop = 9), Err(Fault::Range("before")));
    // Both promises follow from the shared hop.
    let slower = changed(&|of| of.hops[0].0.link_most += 1);
    assert!(slower.is_err(), "{slower:?}");
}

/// Of a channel that is booked each set in its life is tested: of those that another one begins.
#[test]
fn a_booked_channel_has_a_certificate_of_every_set_in_its_life() {
    let drawn = |network, others| Drawn { above: 1_000_000, ..Drawn::of(network, 10, others) };
    for network in [Drawing::Deadlines, Drawing::Levels] {
        let others = vec![(30_000, 2, 900), (45_000, 1, 1_300), (45_000, 1, 1_300)];
        let hops = vec![drawn(network, others.clone()), drawn(Drawing::Ring, others)];
        let owned = made(&Case { is_booked: true, ..Case::over(hops) }).expect("the path carries it");
        assert_eq!(owned.check(), Ok(()));
        let changed = |change: &dyn Fn(&mut Owned)| owned.changed(change);
        let life = Err(Fault::Fails("life"));
        assert_eq!(changed(&|of| of.channel.begins = 1_999_999_999), life, "before it counts");
        assert_eq!(changed(&|of| of.channel.ends = 299_999_999_999), life, "packets at its end");
        assert_eq!(changed(&|of| of.channel.ends = 0), life, "it stays, and counts for a time");
        assert_eq!(changed(&|of| of.channel.delay_max *= 100_000), life);
        // To the nanosecond: the time of its last packets, and a busy period on the slowest clock.
        let counts_for = |short: u64| {
            changed(&|of| {
                let Channel { ends, delay_max, clocks, .. } = of.channel;
                let (port, flows) = of.port(0);
                let busy = (port.horizon * 1_000_000).div_ceil(1_000_000 - clocks);
                flows[port.own as usize].until = ends + delay_max + busy - short;
            })
        };
        assert_eq!((counts_for(0), counts_for(1)), (Ok(()), life));
        assert_eq!(
            changed(&|of| {
                let (port, flows) = of.port(0);
                flows[port.own as usize].until = 0;
            }),
            Ok(()),
            "it counts for longer"
        );
        // One that would be there all the while takes time of sets that had none of it.
        let all = changed(&|of| of.port(0).1.iter_mut().for_each(|flow| (flow.from, flow.until) = (0, 0)));
        assert!(matches!(all, Err(Fault::Differs(..) | Fault::Fails("slack"))), "{all:?}");
        let never = changed(&|of| of.port(0).1[0].from = 1 << 55);
        assert!(matches!(never, Err(Fault::Differs(..))), "the fullest set has it: {never:?}");
        let twice = owned.changed(|of| {
            let Part::Rether(shares) = &mut of.hops[1].2 else { unreachable!("it is a ring") };
            assert_eq!(shares.len(), 2);
            shares[1].from = shares[0].from;
        });
        assert_eq!(twice, Err(Fault::Range("offset")), "two slots at one place");
        let back = owned.changed(|of| {
            let Part::Rether(shares) = &mut of.hops[1].2 else { unreachable!("it is a ring") };
            (shares[0].from, shares[1].from) = (1, 0);
        });
        assert_eq!(back, Err(Fault::Range("from")));
    }
}

/// Units of many frames, several in a cycle and one in several: the generators above cannot miss them.
#[test]
fn units_of_each_pace_have_their_certificate() {
    let drawn = Drawn {
        regulator: Regulator::None,
        mbit: 10,
        prepare: 0,
        network: Drawing::Ring,
        above: 0,
        others: vec![(9_000, 2, 900), (5_000, 1, 1_300)],
        link: (0, 0),
        flags: [false, true, false],
    };
    for (period, octets, units, cycles) in [
        (33_333_333, 6_250, 1, 1),
        (40_000_000, 900, 1, 1),
        (11_111_112, 2_000, 3, 1),
        (100_000_000, 9_999, 1, 3),
    ] {
        let owned = made_of_units(&(period, octets, 2, drawn.clone())).expect("the segment has room");
        assert_eq!(owned.check(), Ok(()));
        let Part::Rether(all) = &owned.hops[0].2 else { unreachable!("it is a ring") };
        let share = all[0];
        assert_eq!((share.units, share.cycles), (units, cycles));
        assert_eq!(owned.packets.count, 1, "a unit is one message, in as many frames as it needs");
    }
}

/// Each pace again, of units of many frames in several slots.
#[test]
fn a_share_that_a_change_has_split_has_its_certificate() {
    let others = vec![(9_000, 2, 900), (5_000, 1, 1_300)];
    for flags in [[false; 3], [true, false, false]] {
        let drawn =
            Drawn { regulator: Regulator::None, flags, ..Drawn::of(Drawing::Ring, 10, others.clone()) };
        for (period, octets, slots) in
            [(33_333_333, 6_250, 2), (11_111_112, 4_000, 2), (100_000_000, 9_999, 2), (40_000_000, 900, 1)]
        {
            let owned = made_of_parts(&(period, octets, 2, drawn.clone())).expect("the segment has room");
            assert_eq!(owned.check(), Ok(()));
            let Part::Rether(all) = &owned.hops[0].2 else { unreachable!("it is a ring") };
            assert_eq!(all.len(), slots, "{period}");
            let with = |change: &dyn Fn(&mut Vec<Rether>)| {
                owned.changed(|of| {
                    let Part::Rether(all) = &mut of.hops[0].2 else { unreachable!("it is a ring") };
                    change(all);
                })
            };
            if slots == 1 {
                continue;
            }
            assert_eq!(with(&|all| _ = all.pop()), Err(Fault::Fails("slots carry a packet")));
            // Each of both fits the cycle alone; both at one place do not.
            let one_place = with(&|all| {
                (all[1].spare, all[1].offset) = (all[1].spare + all[1].offset, all[0].offset);
            });
            assert_eq!(one_place, Err(Fault::Range("offset")));
            // One frame less in a slot, and all that follows from it.
            let room = owned.hops[0].1.mtu - owned.hops[0].1.headers;
            let cut = with(&|all| {
                let slot = &mut all[1];
                let (frame, had) = (&owned.hops[0].1, slot.packet_time);
                slot.octets -= room;
                let wire = (frame.mtu + frame.overhead) * 8_000_000_000 / frame.rate;
                slot.packet_time = had - wire.max(frame.prepare) - frame.per_frame;
                slot.tht -= (had - slot.packet_time) * slot.units;
                slot.spare += (had - slot.packet_time) * slot.units;
            });
            let why = [Err(Fault::Fails("slots carry a packet")), Err(Fault::Range("share"))];
            assert!(why.contains(&cut), "{cut:?}");
            assert_eq!(with(&|all| all[0].periodic = 1 - all[0].periodic), Err(Fault::Range("pace")));
        }
    }
}

/// A link with slots of two other channels, and an own one of this period.
fn in_slots(period: u64, octets: u64) -> Owned {
    let others = vec![(9_000, 2, 900), (5_000, 1, 1_300)];
    let drawn = Drawn { regulator: Regulator::None, ..Drawn::of(Drawing::Ring, 10, others) };
    made_of_slots(&(period, octets, 2, drawn)).expect("the link has room")
}

impl Owned {
    fn slots(&mut self) -> &mut Slots {
        let Part::Slots(slots) = &mut self.hops[0].2 else { panic!("it has slots") };
        slots
    }

    /// With another window, and all that follows from it.
    fn with_window(&self, window: u64) -> Result<(), Fault> {
        self.changed(|of| {
            let slots = of.slots();
            slots.spare = slots.spare + window - slots.window;
            slots.window = window;
            let delay = slots.cycles * window + of.hops[0].1.host_slack;
            let (terms, promise) = (&mut of.hops[0].0, &mut of.promises[0]);
            for number in [&mut of.channel.delay_max, &mut promise.delay, &mut promise.jitter] {
                *number = *number + delay - terms.delay;
            }
            terms.delay = delay;
            let (rest, packets) = (delay % of.packets.counted_interval, &of.packets);
            let whole = delay / packets.counted_interval * packets.burst;
            terms.buffers = whole + (rest / packets.counted_x_min + 1).min(packets.burst);
        })
    }
}

/// By hand at 10 Mbit/s, and each number of it alone: a new seal saves none.
#[test]
fn slots_of_each_pace_have_their_certificate() {
    let window = 33_333_333 - 33_333_333 / 16;
    for (period, octets, units, cycles, frames, wire) in [
        (33_333_333, 6_250, 1, 1, 5, 6_760),
        (40_000_000, 900, 1, 1, 1, 1_002),
        (11_111_112, 2_000, 3, 1, 2, 2_204),
        (100_000_000, 9_999, 1, 3, 3, 3 * 1_538),
    ] {
        let mut owned = in_slots(period, octets);
        assert_eq!(owned.check(), Ok(()));
        let slots = *owned.slots();
        assert_eq!((slots.units, slots.cycles, slots.window), (units, cycles, window));
        assert_eq!(slots.slot, units * (wire * 800 + frames * 2_000 + 50_000));
        let (full, announcements) = (1_538 * 800, 4 * (135 + 38) * 800);
        assert_eq!(slots.above, (9_000 + 5_000) * 50 + announcements);
        assert_eq!(slots.ordinary, 300_000 + full + full / 32);
        assert_eq!(slots.spare, window - slots.slot - slots.above - slots.ordinary);
        assert_eq!(owned.promises[0].delay, cycles * window + full + 1_000_000);
        for at in 0..Slots::FIELDS.len() {
            for change in CHANGES {
                let kept = slots.values().nth(at).expect("a number");
                let changed = owned.changed(|of| *of.slots().places().nth(at).expect("it") = change(kept));
                assert!(changed.is_err() || change(kept) == kept, "{:?} {kept}", Slots::FIELDS[at]);
            }
        }
    }
}

/// The two inequalities of slots, each at its edge.
#[test]
fn slots_that_do_not_end_in_their_window_or_carry_their_packets_are_refused() {
    for (period, octets) in [(40_000_000, 900), (11_111_112, 2_000), (100_000_000, 9_999)] {
        let mut owned = in_slots(period, octets);
        let Slots { above, spare, units, cycles, .. } = *owned.slots();
        let with_above = |more: u64| {
            owned.changed(|of| {
                (of.slots().above, of.slots().spare) = (above + more, spare.saturating_sub(more));
            })
        };
        assert_eq!((with_above(spare), with_above(spare + 1)), (Ok(()), Err(Fault::Fails("window"))));
        let longest = owned.packets.counted_x_min * units / cycles;
        assert_eq!(owned.with_window(longest), Ok(()));
        assert_eq!(owned.with_window(longest + 1), Err(Fault::Fails("slots carry the packets")));
    }
    let mut owned = in_slots(100_000_000, 9_999);
    let slots = *owned.slots();
    // A slot that the host does not charge for, of which there would be two in three windows.
    let twice = owned.changed(|of| (of.slots().units, of.slots().slot) = (2, 2 * slots.slot));
    assert_eq!(twice, Err(Fault::Range("slots")));
}

/// By the clock of the source the slots would carry them; by that of the link packets may be closer.
#[test]
fn slots_that_carry_the_packets_only_where_clocks_agree_are_refused() {
    let mut owned = in_slots(40_000_000, 900);
    let shown = |time: u64| (0..2).fold(time, |time, _| time * 999_800 / 1_000_000);
    let (x_min, Slots { units, cycles, .. }) = (owned.packets.x_min, *owned.slots());
    let with_clocks = |window: u64| {
        owned.changed(|of| {
            of.channel.clocks = 200;
            of.packets.counted_x_min = shown(of.packets.x_min);
            of.packets.counted_interval = shown(of.channel.interval);
            let slots = of.slots();
            (slots.spare, slots.window) = (slots.spare + window - slots.window, window);
        })
    };
    let (longest, refused) = (shown(x_min) * units / cycles, Err(Fault::Fails("slots carry the packets")));
    assert!(longest < x_min * units / cycles);
    assert_ne!(with_clocks(longest), refused);
    assert_eq!(with_clocks(longest + 1), refused);
}

/// Where the host needs longer for a full frame than the wire does, ordinary traffic has that time.
#[test]
fn the_floor_of_ordinary_traffic_has_the_time_to_prepare_a_full_frame() {
    let drawn = Drawn {
        regulator: Regulator::None,
        mbit: 1_000,
        prepare: 20_000,
        network: Drawing::Ring,
        above: 0,
        others: vec![(9_000, 2, 900)],
        link: (0, 0),
        flags: [false; 3],
    };
    let made = made_of_units(&(40_000_000, 900, 1, drawn.clone())).expect("the segment has room");
    let with_ordinary = |t_nrt: u64| {
        let mut owned = made.clone();
        let Part::Rether(all) = &mut owned.hops[0].2 else { unreachable!("it is a ring") };
        let share = &mut all[0];
        share.spare = share.spare + share.t_nrt - t_nrt;
        share.t_nrt = t_nrt;
        owned.reseal();
        owned.check()
    };
    let (link, Part::Rether(all)) = (drawn.link(), &made.hops[0].2) else { unreachable!("it is a ring") };
    let share = all[0];
    let shortest = link.rate.span_of_up(link.framing.wire_octets(0)).as_nanos();
    let overhead = share.broadcasts + shortest * share.stations;
    let visit = share.per_visit + share.hop;
    let floor = overhead + 20_000 + link.per_frame.as_nanos() + visit + share.hop;
    assert!(link.frame_span_max() < ns(20_000), "the wire is quicker than the host");
    assert_eq!(with_ordinary(floor), Ok(()));
    assert_eq!(with_ordinary(floor - 1), Err(Fault::Fails("ordinary floor")));
}

/// The largest numbers of a certificate, in a share of many frames and cycles: no product leaves 128 bits.
#[test]
fn the_largest_numbers_are_refused_and_never_a_panic() {
    const MOST: u64 = 1 << 56;
    let shares = [(1, MOST, 1), (MOST, 1, 1), (1, 1 << 18, 1), (1, MOST, MOST / 2), (1, 1, 1)];
    let parts = || [Part::Rether(vec![Rether::default()]), Part::Slots(Slots::default())];
    for ((units, cycles, room), part) in shares.into_iter().flat_map(|of| parts().map(|part| (of, part))) {
        let mut owned = Owned {
            version: VERSION,
            channel: Channel::default(),
            packets: Packets::default(),
            hops: vec![(HopTerms::default(), Frame::default(), part)],
            promises: vec![Promise { hop: 1, ..Promise::default() }],
            seal: 0,
        };
        owned.numbers().into_iter().for_each(|(_, _, place)| *place = MOST);
        owned.version = VERSION;
        let (_, frame, part) = &mut owned.hops[0];
        (frame.rate, frame.headers) = (1, frame.mtu - room);
        match part {
            Part::Rether(all) => {
                let share = &mut all[0];
                (share.units, share.cycles, share.periodic) = (units, cycles, 0);
                (share.joined, share.receives) = (0, 0);
            }
            Part::Slots(slots) => (slots.units, slots.cycles) = (units, cycles),
            Part::Port(..) => unreachable!("none of them"),
        }
        owned.reseal();
        assert!(owned.check().is_err(), "{units} {cycles} {room}");
    }
}

/// Arbitrary numbers never panic, and prove nothing.
#[test]
fn numbers_without_sense_are_refused_and_never_a_panic() {
    let mut seed = 1u64;
    let mut draw = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bits = seed >> 58;
        (seed ^ seed >> 29) >> bits
    };
    for round in 0..20_000 {
        let part = |draw: &mut dyn FnMut() -> u64| match round % 3 {
            0 => {
                let mut share = Rether::default();
                share.places().for_each(|place| *place = draw());
                Part::Rether(vec![share])
            }
            1 => {
                let mut slots = Slots::default();
                slots.places().for_each(|place| *place = draw());
                Part::Slots(slots)
            }
            _ => {
                let (mut port, mut flows) = (Port::default(), vec![Flow::default(); 2]);
                port.places().for_each(|place| *place = draw());
                flows.iter_mut().for_each(|flow| flow.places().for_each(|place| *place = draw()));
                Part::Port(port, flows)
            }
        };
        let mut owned = Owned {
            version: VERSION,
            channel: Channel::default(),
            packets: Packets::default(),
            hops: vec![(HopTerms::default(), Frame::default(), part(&mut draw))],
            promises: vec![Promise { hop: 1, ..Promise::default() }],
            seal: 0,
        };
        owned.numbers().into_iter().for_each(|(_, _, place)| *place = draw());
        owned.version = VERSION;
        owned.reseal();
        assert!(owned.check().is_err());
    }
}

/// A shortest packet beyond the largest one would take its time off the jitter.
#[test]
fn a_shortest_packet_that_is_longer_than_the_largest_is_refused() {
    let messages = Messages {
        x_min: Span::from_millis(40),
        x_ave: Span::from_millis(50),
        interval: Span::from_millis(200),
        s_max: Octets::new(1_000),
    };
    let drawn = Drawn {
        regulator: Regulator::None,
        mbit: 10,
        prepare: 0,
        network: Drawing::Deadlines,
        above: 0,
        others: vec![(45_000, 1, 1_300)],
        link: (5, 2_000),
        flags: [false; 3],
    };
    let case = Case {
        messages,
        least: 20,
        hops: vec![drawn],
        is_booked: false,
        fork: None,
        slack: 0,
        jitter: None,
        clocks: 0,
    };
    let made = made(&case).expect("the path carries it");
    let with_least = |octets: u64| {
        let mut owned = made.clone();
        let (terms, frame, _) = &mut owned.hops[0];
        let wire = (octets + frame.headers + frame.overhead).max(frame.wire_least);
        let least = (wire * 8_000_000_000).div_ceil(frame.rate);
        owned.promises[0].jitter = owned.promises[0].jitter + terms.service_least - least;
        terms.service_least = least;
        owned.channel.octets_least = octets;
        owned.reseal();
        owned.check()
    };
    assert_eq!((with_least(20), with_least(1_000)), (Ok(()), Ok(())));
    assert_eq!(with_least(1_001), Err(Fault::Range("packets")));
}

/// Admission has no share of several units in several cycles, and no proof of their wait.
#[test]
fn a_share_of_several_units_in_several_cycles_is_refused() {
    let drawn = Drawn {
        regulator: Regulator::None,
        mbit: 10,
        prepare: 0,
        network: Drawing::Ring,
        above: 0,
        others: vec![(9_000, 2, 900)],
        link: (0, 0),
        flags: [false; 3],
    };
    let mut owned = made_of_units(&(100_000_000, 9_999, 2, drawn)).expect("the segment has room");
    assert_eq!(owned.check(), Ok(()));
    let Part::Rether(all) = &mut owned.hops[0].2 else { unreachable!("it is a ring") };
    let share = &mut all[0];
    assert_eq!((share.units, share.cycles), (1, 3));
    // A second unit that comes after a whole period waits no longer than the first one.
    (share.units, share.tht) = (2, share.tht + share.packet_time);
    share.spare -= share.packet_time;
    owned.reseal();
    assert_eq!(owned.check(), Err(Fault::Range("share")));
}
