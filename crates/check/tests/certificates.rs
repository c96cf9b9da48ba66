//! Certificates of random paths: what admission makes is accepted, and no number of it can change.

use proptest::prelude::*;
use rota_admission::certificate::{
    self, Branch, Certificate as Made, FlowTerms, FrameTerms, HopTerms as MadeHop, Life, NetworkTerms,
    NodeTerms, PortTerms, PromiseTerms, RetherTerms, Standing, StandingShare, Terms, certify, port_terms,
    rether_terms,
};
use rota_admission::path::{Goal, Hop as PathHop, relax};
use rota_admission::rtip::{Flow as PortFlow, Messages, Regulator, Traffic};
use rota_admission::subnet::{
    Ask, PortLoad, RTIP_OCTETS, RetherSegment, Subnet, packet_span_up, payload_max,
};
use rota_admission::{Clocks, Framing, LinkModel, Pace, Request, SegmentParams, Slot, admit};
use rota_check::{
    Certificate, Channel, Fault, Flow, Frame, Hop, HopTerms, Kind, Network, Packets, Port, Promise, Rether,
    VERSION, check,
};
use rota_units::{BitRate, Octets, Span};

fn ns(n: u64) -> Span {
    Span::from_nanos(n)
}

/// Copies numbers by their place, as a reader copies them by name.
macro_rules! copied {
    ($made:expr, $names:expr, $into:ident) => {{
        let fields = $into::FIELDS.iter().map(|(name, _)| *name);
        assert!(fields.eq($names.iter().copied()), "both rooms name the same numbers");
        let mut into = $into::default();
        into.places().zip($made.values()).for_each(|(place, value)| *place = value);
        into
    }};
}

/// A certificate that owns its parts, so that any number can be changed.
#[derive(Clone, Debug)]
struct Owned {
    version: u64,
    channel: Channel,
    packets: Packets,
    hops: Vec<(HopTerms, Frame, Part)>,
    promises: Vec<Promise>,
    seal: u64,
}

#[derive(Clone, Debug)]
enum Part {
    Port(Port, Vec<Flow>),
    Rether(Vec<Rether>),
}

impl Owned {
    fn of(made: &Made<'_>) -> Self {
        let hop = |hop: &MadeHop<'_>| {
            let part = match &hop.network {
                NetworkTerms::Port(port, flows) => Part::Port(
                    copied!(port, PortTerms::NAMES, Port),
                    flows.iter().map(|flow| copied!(flow, FlowTerms::NAMES, Flow)).collect(),
                ),
                NetworkTerms::Rether(all) => {
                    Part::Rether(all.iter().map(|share| copied!(share, RetherTerms::NAMES, Rether)).collect())
                }
            };
            let frame = copied!(hop.frame, FrameTerms::NAMES, Frame);
            (copied!(hop.node, NodeTerms::NAMES, HopTerms), frame, part)
        };
        Self {
            version: made.version,
            channel: copied!(made.channel, certificate::ChannelTerms::NAMES, Channel),
            packets: copied!(made.packets, certificate::PacketTerms::NAMES, Packets),
            hops: made.hops.iter().map(hop).collect(),
            promises: (made.promises.iter())
                .map(|promise| copied!(promise, PromiseTerms::NAMES, Promise))
                .collect(),
            seal: made.seal,
        }
    }

    fn with<R>(&self, f: impl FnOnce(&Certificate<'_>) -> R) -> R {
        let hops: Vec<Hop<'_>> = self.hops.iter().map(seen).collect();
        let Self { version, channel, packets, ref promises, seal, .. } = *self;
        f(&Certificate { version, channel, packets, hops: &hops, promises, seal })
    }

    fn check(&self) -> Result<(), Fault> {
        self.with(check)
    }

    fn reseal(&mut self) {
        self.seal = self.with(|certificate| certificate.sealed().0);
    }

    /// Each number with its name and kind.
    fn numbers(&mut self) -> Vec<(&'static str, Kind, &mut u64)> {
        let mut found = vec![("version", Kind::Free, &mut self.version)];
        macro_rules! add {
            ($part:expr, $name:ident) => {
                found.extend(
                    $name::FIELDS
                        .iter()
                        .zip($part.places())
                        .map(|((name, kind), place)| (*name, *kind, place)),
                )
            };
        }
        add!(self.channel, Channel);
        add!(self.packets, Packets);
        for (terms, frame, part) in &mut self.hops {
            add!(terms, HopTerms);
            add!(frame, Frame);
            match part {
                Part::Port(port, flows) => {
                    add!(port, Port);
                    flows.iter_mut().for_each(|flow| add!(flow, Flow));
                }
                Part::Rether(all) => all.iter_mut().for_each(|share| add!(share, Rether)),
            }
        }
        self.promises.iter_mut().for_each(|promise| add!(promise, Promise));
        found.push(("seal", Kind::Derived, &mut self.seal));
        found
    }
}

/// A hop as the checker has it.
fn seen((terms, frame, part): &(HopTerms, Frame, Part)) -> Hop<'_> {
    let network = match part {
        Part::Port(port, flows) => Network::Port(*port, flows),
        Part::Rether(all) => Network::Rether(all),
    };
    Hop { terms: *terms, frame: *frame, network }
}

/// The numbers that make a case.
#[derive(Clone, Debug)]
struct Case {
    messages: Messages,
    least: u64,
    hops: Vec<Drawn>,
    /// It is booked for a time, and other channels begin and end in it.
    is_booked: bool,
    /// The way to a second receiver parts from the first one behind so many hops, and has these.
    fork: Option<(usize, Vec<Drawn>)>,
    slack: u64,
    jitter: Option<u64>,
    clocks: u64,
}

/// The kind of network that is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Drawing {
    Ring,
    Deadlines,
    Levels,
}

#[derive(Clone, Debug)]
struct Drawn {
    regulator: Regulator,
    mbit: u64,
    /// The host's time to prepare a frame.
    prepare: u64,
    network: Drawing,
    /// The work that goes before packets in a window of 30 ms.
    above: u64,
    others: Vec<(u64, u64, u64)>,
    link: (u64, u64),
    flags: [bool; 3],
}

fn any_case() -> impl Strategy<Value = Case> {
    let regulator = prop_oneof![
        Just(Regulator::None),
        Just(Regulator::Rate),
        (0u64..17_000).prop_map(|step| Regulator::DelayAhead { step: ns(step) }),
        (1u64..9_000).prop_map(|error| Regulator::DelayClock { error: ns(error) }),
    ];
    let others = prop::collection::vec((1_000u64..60_000, 1u64..4, 40u64..1_400), 0..4);
    let hop = (
        regulator,
        prop_oneof![Just(10u64), Just(100), Just(1_000)],
        prop_oneof![Just(0u64), 1u64..20_000],
        (
            prop_oneof![Just(Drawing::Ring), Just(Drawing::Deadlines), Just(Drawing::Levels)],
            prop_oneof![Just(0u64), 1u64..3_000_000],
        ),
        others,
        (0u64..900, 0u64..50_000),
        any::<[bool; 3]>(),
    )
        .prop_map(|(regulator, mbit, prepare, (network, above), others, (least, more), flags)| Drawn {
            // A port of levels without a regulator is none.
            regulator: match (network, regulator) {
                (Drawing::Levels, Regulator::None) => Regulator::Rate,
                _ => regulator,
            },
            mbit,
            prepare,
            network,
            above,
            others,
            link: (least, least + more),
            flags,
        });
    let traffic = (8_000u64..90_000, 0u64..40_000, 1u64..4, 1u64..6_000, 1u64..60);
    let hops = prop::collection::vec(hop.clone(), 1..4);
    let fork = prop::option::of((0usize..4, prop::collection::vec(hop, 0..3)));
    let clocks = prop_oneof![Just(0u64), Just(200), 1u64..100_000];
    (traffic, (hops, fork, any::<bool>()), 0u64..30_000_000, prop::option::of(0u64..30_000_000), clocks)
        .prop_map(|((x_min, more, burst, octets, least), (hops, fork, is_booked), slack, jitter, clocks)| {
            let (x_min, x_ave) = (Span::from_micros(x_min), Span::from_micros(x_min + more));
            let messages =
                Messages { x_min, x_ave, interval: x_ave * burst + ns(17), s_max: Octets::new(octets) };
            Case { messages, least, hops, is_booked, fork, slack, jitter, clocks }
        })
}

/// The certificate of a case, if its path carries the channel.
fn made(case: &Case) -> Option<Owned> {
    let packet_max = payload_max(&Framing::ETHERNET);
    let packets = case.messages.packets(packet_max).ok()?;
    let octets_least = Octets::new(case.least.min(packets.octets.get()));
    let clocks = Clocks::of(case.clocks).unwrap();
    let ask = Ask { traffic: clocks.counted(&packets.traffic), octets: packets.octets, octets_least };
    // The best bound of each hop of either way, then the relaxed bounds where there is one way.
    let (fork, more) = case.fork.clone().map_or((usize::MAX, vec![]), |fork| fork);
    let drawn: Vec<&Drawn> = case.hops.iter().chain(&more).collect();
    let life = if case.is_booked { OWN_LIFE } else { Life::ALWAYS };
    let mut hops: Vec<PathHop> = vec![];
    for drawn in &drawn {
        let mut offer = drawn.best(&ask, life)?;
        (offer.link_least, offer.link_most) = (ns(drawn.link.0), ns(drawn.link.1));
        hops.push(offer.hop(drawn.regulator));
    }
    let first: Vec<usize> = (0..case.hops.len()).collect();
    let second: Vec<usize> = first.iter().copied().take(fork).chain(case.hops.len()..drawn.len()).collect();
    let ways = if case.fork.is_some() && !second.is_empty() { vec![first, second] } else { vec![first] };
    let along = |hops: &[PathHop], way: &[usize]| way.iter().map(|at| hops[*at]).collect::<Vec<PathHop>>();
    let host_slack = ns(250_000);
    let host = packets.spread + host_slack;
    let each = || ways.iter().map(|way| along(&hops, way));
    let delay = each().map(|hops| rota_admission::path::delay(&hops, host, clocks)).max()? + ns(case.slack);
    // Relaxing may use all of the delay, and clocks differ the more.
    let varies = each().map(|hops| rota_admission::path::jitter(&hops, host, clocks)).max()?;
    let goal = Goal { delay, jitter: case.jitter.map(|more| varies + clocks.apart(delay) + ns(more)) };
    if let [_] = ways[..] {
        let best = hops.clone();
        relax(&mut hops, host, &goal, clocks).expect("the best keeps its own goal");
        // Between two levels there is none, and a shorter bound keeps every goal.
        for ((drawn, hop), best) in drawn.iter().zip(&mut hops).zip(best) {
            if drawn.network == Drawing::Levels {
                hop.delay = best.delay;
            }
        }
    }
    // The parts of each hop; those that no way has are left out.
    let used = if ways.len() == 1 { case.hops.len() } else { drawn.len() };
    let mut memory: Vec<Memory> = drawn.iter().take(used).map(|drawn| drawn.memory(&ask)).collect();
    let mut parts: Vec<MadeHop<'_>> = vec![];
    for ((drawn, hop), memory) in drawn.iter().zip(&hops).zip(&mut memory) {
        let network = drawn.terms(&ask, hop.delay, life, memory)?;
        let frame = FrameTerms::of(&drawn.link());
        parts.push(MadeHop { node: NodeTerms::default(), frame, network });
    }
    // At a port it is charged for as long as its last packets may be under way, and more.
    let life = match life.until {
        Some(until) => {
            Life { from: Span::from_millis(2_500), until: until.checked_sub(goal.delay + CHARGED) }
        }
        None => Life::ALWAYS,
    };
    let terms = Terms { messages: case.messages, goal, packet_max, octets_least, host_slack, clocks, life };
    let all: Vec<Vec<PathHop>> = ways.iter().map(|way| along(&hops, way)).collect();
    let branches: Vec<Branch<'_>> =
        all.iter().zip(&ways).map(|(hops, places)| Branch { hops, places }).collect();
    let mut promises = vec![PromiseTerms::default(); branches.len()];
    let certificate = certify(&terms, &branches, &mut parts, &mut promises).expect("the path keeps its goal");
    Some(Owned::of(&certificate))
}

impl Drawn {
    fn link(&self) -> LinkModel {
        let link = SegmentParams::new(BitRate::from_mbit(self.mbit), 5).link;
        LinkModel { prepare: ns(self.prepare), ..link }
    }

    fn ordinary(&self) -> Span {
        self.link().frame_span_max() + ns(300_000)
    }

    fn load(&self) -> PortLoad {
        let by_levels = self.network == Drawing::Levels;
        let window = Span::from_millis(30);
        PortLoad { by_levels, ordinary: self.ordinary(), window, work: ns(self.above) }
    }

    /// The other channels of a port, and this one in their midst.
    fn channels(&self, ask: &Ask, delay: Span, life: Life) -> Vec<Standing> {
        // The second one ends before the third one begins.
        let ms = Span::from_millis;
        let lives =
            [Life { from: ms(9_000), until: None }, Life { from: ms(1_000), until: Some(ms(30_000)) }];
        let lives = [lives[0], lives[1], Life { from: ms(30_000), until: Some(ms(900_000)) }];
        let life_of = |n: usize| if life == Life::ALWAYS { life } else { lives[n % 3] };
        let of = |(n, &(x_min, burst, octets)): (usize, &(u64, u64, u64))| {
            let x_min = Span::from_micros(x_min);
            let traffic = Traffic::new(x_min, x_min + ns(99), (x_min + ns(99)) * burst).unwrap();
            let octets = Octets::new(octets);
            let ask = Ask { traffic, octets, octets_least: octets };
            Standing { ask, delay: ms(20) + x_min, life: life_of(n) }
        };
        let mut channels: Vec<Standing> = self.others.iter().enumerate().map(of).collect();
        channels.insert(channels.len() / 2, Standing { ask: *ask, delay, life });
        channels
    }

    fn memory(&self, ask: &Ask) -> Memory {
        let none = PortFlow { traffic: ask.traffic, service: ns(0), delay: ns(0) };
        let count = self.others.len() + 1;
        Memory { flows: vec![none; count], terms: vec![FlowTerms::default(); count], shares: vec![] }
    }

    fn slots(&self) -> Vec<Slot> {
        let of = |(i, (x_min, ..)): (usize, &(u64, u64, u64))| {
            let station = if i == 0 && self.flags[2] { 3 } else { 7 };
            // A slot of another partition is no part of the same visit.
            Slot { station, tht: ns(x_min * 50), periodic: false, partition: self.flags[0].into() }
        };
        self.others.iter().enumerate().map(of).collect()
    }

    fn segment<'s>(&self, slots: &'s [Slot]) -> RetherSegment<'s> {
        let params = SegmentParams::new(BitRate::from_mbit(self.mbit), 5);
        let params = SegmentParams { link: self.link(), ..params };
        let [periodic, receives] = [self.flags[0], self.flags[1]];
        RetherSegment { params, slots, station: 3, periodic, receives, partition: 0 }
    }

    fn best(&self, ask: &Ask, life: Life) -> Option<rota_admission::subnet::Offer> {
        if self.network == Drawing::Ring {
            return self.segment(&self.slots()).best(ask).ok();
        }
        let (link, mut memory) = (self.link(), self.memory(ask));
        let mut fits = |delay: Span| self.terms(ask, delay + link.host_slack, life, &mut memory).is_some();
        let delay = if self.network == Drawing::Levels {
            (0..8).map(|level| Span::from_millis(4 << level)).find(|bound| fits(*bound))?
        } else {
            // A longer bound never invalidates a set.
            let (mut bad, mut good) = (ns(0), Span::from_millis(10_000));
            if !fits(good) {
                return None;
            }
            while good - bad > ns(1) {
                let middle = bad + (good - bad).div_down(2);
                if fits(middle) { good = middle } else { bad = middle }
            }
            good
        };
        Some(rota_admission::subnet::Offer {
            delay: delay + link.host_slack,
            service_least: packet_span_up(link.rate, &link.framing, ask.octets_least),
            link_least: Span::ZERO,
            link_most: Span::ZERO,
        })
    }

    /// The test of the network with this bound, if it holds.
    fn terms<'c>(
        &self,
        ask: &Ask,
        delay: Span,
        life: Life,
        Memory { flows, terms, shares }: &'c mut Memory,
    ) -> Option<NetworkTerms<'c>> {
        if self.network == Drawing::Ring {
            let mut slots = self.slots();
            let pace = self.segment(&slots).cheapest(ask, delay).expect("relaxing never invalidates").pace;
            // From the second moment on the last slot before it is free.
            for at in if life == Life::ALWAYS { vec![0] } else { vec![2_000, 9_000] } {
                let segment = self.segment(&slots);
                let share = segment.share(ask, pace).expect("fewer slots leave more");
                shares.push(rether_terms(&segment, ask, &share, Span::from_millis(at)));
                if !self.flags[2] {
                    slots.pop();
                }
            }
            return Some(NetworkTerms::Rether(shares));
        }
        let link = self.link();
        let channels = self.channels(ask, delay.minus(link.host_slack), life);
        port_terms(&link, &self.load(), &channels, self.others.len() / 2, flows, terms).ok()
    }
}

/// When a channel that is booked counts at ports, and how long behind its last packet at least.
const OWN_LIFE: Life = Life { from: Span::from_millis(2_000), until: Some(Span::from_millis(300_000)) };
const CHARGED: Span = Span::from_millis(100_000);

/// What a certificate borrows.
struct Memory {
    flows: Vec<PortFlow>,
    terms: Vec<FlowTerms>,
    shares: Vec<RetherTerms>,
}

/// A channel of one RETHER segment: units of many frames, at any pace.
fn any_units() -> impl Strategy<Value = (u64, u64, u64, Drawn)> {
    let others = prop::collection::vec((1_000u64..20_000, 1u64..4, 40u64..1_400), 0..4);
    let prepare = prop_oneof![Just(0u64), 1u64..20_000];
    let drawn = (prop_oneof![Just(10u64), Just(100)], prepare, others, any::<[bool; 3]>());
    (1_200_000u64..400_000_000, 1u64..40_000, 1u64..4, drawn).prop_map(|(period, octets, burst, of)| {
        let (mbit, prepare, others, flags) = of;
        let regulator = Regulator::None;
        let drawn =
            Drawn { regulator, mbit, prepare, network: Drawing::Ring, above: 0, others, link: (0, 0), flags };
        (period, octets, burst, drawn)
    })
}

/// The certificate that a node makes of a share that its segment has granted, if it grants one.
fn made_of_units((period, octets, burst, drawn): &(u64, u64, u64, Drawn)) -> Option<Owned> {
    let (slots, octets) = (drawn.slots(), Octets::new(*octets));
    let segment = drawn.segment(&slots);
    let pace = Pace::of(ns(*period), segment.params.trt).ok()?;
    let x_min = ns(*period).max(pace.period(segment.params.trt));
    let messages =
        Messages { x_min, x_ave: x_min + ns(7), interval: (x_min + ns(7)) * *burst, s_max: octets };
    let request = Request {
        station: segment.station,
        unit_octets: octets,
        pace,
        periodic: segment.periodic,
        receives: segment.receives,
        partition: 0,
    };
    let standing = StandingShare {
        params: &segment.params,
        traffic: messages.packets(octets).ok()?.traffic,
        octets,
        octets_least: Octets::new(1),
        is_packet: false,
        pace,
        periodic: segment.periodic,
        admitted: admit(&slots, &request, &segment.params).ok()?,
    };
    let granted = standing.share().expect("the share carries it");
    let (frame, share) = standing.terms(&granted).expect("one slot of this traffic");
    let offer = standing.offer(&granted);
    assert_eq!(offer.delay, standing.admitted.bound, "the certificate proves what was promised");
    let hops = [offer.hop(Regulator::None)];
    let goal = Goal { delay: offer.delay, jitter: None };
    let (octets_least, host_slack) = (Octets::new(1), ns(0));
    let clocks = Clocks::ONE;
    let terms =
        Terms { messages, goal, packet_max: octets, octets_least, host_slack, clocks, life: Life::ALWAYS };
    let shares = [share];
    let network = NetworkTerms::Rether(&shares);
    let mut parts = [MadeHop { node: NodeTerms::default(), frame, network }];
    let (branch, mut promises) = (Branch { hops: &hops, places: &[0] }, [PromiseTerms::default()]);
    let made = certify(&terms, &[branch], &mut parts, &mut promises).expect("its own bound is the goal");
    Some(Owned::of(&made))
}

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

    /// The same of the shares that segments grant to channels of their own.
    #[test]
    fn a_channel_of_one_segment_has_a_certificate_of_what_it_was_promised(case in any_units()) {
        let Some(mut owned) = made_of_units(&case) else { return Ok(()) };
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
    assert!(Fault::Version.to_string().contains("version 4"));
    assert_eq!(Fault::Differs("slack", 4, 3).to_string(), "slack is 4, but the other numbers give 3");
}

/// Levels beside slots and announcements, by either regulator.
#[test]
fn a_port_of_levels_has_its_certificate_by_either_regulator() {
    let messages = Messages {
        x_min: Span::from_millis(40),
        x_ave: Span::from_millis(50),
        interval: Span::from_millis(200),
        s_max: Octets::new(5_000),
    };
    let mut slacks = vec![];
    for regulator in [Regulator::Rate, Regulator::DelayAhead { step: ns(16_000) }] {
        let drawn = Drawn {
            regulator,
            mbit: 10,
            prepare: 0,
            network: Drawing::Levels,
            above: 1_000_000,
            others: vec![(30_000, 2, 900), (45_000, 1, 1_300)],
            link: (5, 2_000),
            flags: [false; 3],
        };
        let hops = vec![drawn.clone(), drawn];
        let case = Case {
            messages,
            least: 20,
            hops,
            is_booked: false,
            fork: None,
            slack: 0,
            jitter: None,
            clocks: 200,
        };
        let owned = made(&case).expect("the path carries it");
        assert_eq!(owned.check(), Ok(()));
        let changed = |change: &dyn Fn(&mut HopTerms, &mut Port, &mut [Flow])| {
            let mut owned = owned.clone();
            let (terms, _, part) = &mut owned.hops[1];
            let Part::Port(port, flows) = part else { unreachable!("it is a port") };
            change(terms, port, flows);
            owned.reseal();
            owned.check()
        };
        let Part::Port(port, flows) = &owned.hops[1].2 else { unreachable!("it is a port") };
        // One second of packets at the port's own rate: no level keeps its bound beside them.
        let heavy = changed(&|_, port, _| (port.above, port.window) = (port.window / 2, port.window));
        assert!(matches!(heavy, Err(Fault::Differs("horizon", ..) | Fault::Fails(_))), "{heavy:?}");
        let free = changed(&|terms, _, _| (terms.regulator, terms.error) = (0, 0));
        assert_eq!(free, Err(Fault::Range("levels")), "packets that nothing holds");
        let other = changed(&|_, port, _| port.levels = 2);
        assert_eq!(other, Err(Fault::Range("levels")));
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
    let messages = Messages {
        x_min: Span::from_millis(40),
        x_ave: Span::from_millis(50),
        interval: Span::from_millis(200),
        s_max: Octets::new(5_000),
    };
    let drawn = |network, mbit| Drawn {
        regulator: Regulator::Rate,
        mbit,
        prepare: 0,
        network,
        above: 0,
        others: vec![(45_000, 1, 1_300)],
        link: (5, 2_000),
        flags: [false; 3],
    };
    let hops = vec![drawn(Drawing::Ring, 100), drawn(Drawing::Deadlines, 10)];
    let other = vec![drawn(Drawing::Levels, 100), drawn(Drawing::Ring, 10)];
    let of = |fork| Case {
        messages,
        least: 20,
        hops: hops.clone(),
        is_booked: false,
        fork: Some(fork),
        slack: 0,
        jitter: None,
        clocks: 200,
    };
    let made_of = |fork| made(&of(fork)).expect("both ways carry it");
    let owned = made_of((1, other));
    assert_eq!(owned.check(), Ok(()));
    let before: Vec<u64> = owned.hops.iter().map(|(terms, ..)| terms.before).collect();
    let ends: Vec<u64> = owned.promises.iter().map(|promise| promise.hop).collect();
    assert_eq!((before, ends), (vec![0, 1, 1, 3], vec![2, 4]));
    let joins = made_of((1, vec![]));
    assert_eq!((joins.check(), joins.promises[1].hop, joins.hops.len()), (Ok(()), 1, 2));
    let changed = |change: &dyn Fn(&mut Owned)| {
        let mut owned = owned.clone();
        change(&mut owned);
        owned.reseal();
        owned.check()
    };
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
    let messages = Messages {
        x_min: Span::from_millis(40),
        x_ave: Span::from_millis(50),
        interval: Span::from_millis(200),
        s_max: Octets::new(5_000),
    };
    let drawn = |network, others| Drawn {
        regulator: Regulator::Rate,
        mbit: 10,
        prepare: 0,
        network,
        above: 1_000_000,
        others,
        link: (5, 2_000),
        flags: [false; 3],
    };
    for network in [Drawing::Deadlines, Drawing::Levels] {
        let others = vec![(30_000, 2, 900), (45_000, 1, 1_300), (45_000, 1, 1_300)];
        let hops = vec![drawn(network, others.clone()), drawn(Drawing::Ring, others)];
        let case = Case {
            messages,
            least: 20,
            hops,
            is_booked: true,
            fork: None,
            slack: 0,
            jitter: None,
            clocks: 200,
        };
        let owned = made(&case).expect("the path carries it");
        assert_eq!(owned.check(), Ok(()));
        let changed = |change: &dyn Fn(&mut Channel, &mut Port, &mut [Flow])| {
            let mut owned = owned.clone();
            let Part::Port(port, flows) = &mut owned.hops[0].2 else { unreachable!("it is a port") };
            change(&mut owned.channel, port, flows);
            owned.reseal();
            owned.check()
        };
        let life = Err(Fault::Fails("life"));
        assert_eq!(changed(&|channel, _, _| channel.begins = 1_999_999_999), life, "before it counts");
        assert_eq!(changed(&|channel, _, _| channel.ends = 299_999_999_999), life, "packets at its end");
        assert_eq!(changed(&|channel, _, _| channel.ends = 0), life, "it stays, and counts for a time");
        assert_eq!(changed(&|channel, _, _| channel.delay_max *= 100_000), life);
        assert_eq!(
            changed(&|_, port, flows| flows[port.own as usize].until = 0),
            Ok(()),
            "it counts for longer"
        );
        // One that would be there all the while takes time of sets that had none of it.
        let all = changed(&|_, _, flows| flows.iter_mut().for_each(|flow| (flow.from, flow.until) = (0, 0)));
        assert!(matches!(all, Err(Fault::Differs(..) | Fault::Fails("slack"))), "{all:?}");
        let never = changed(&|_, _, flows| flows[0].from = 1 << 55);
        assert!(matches!(never, Err(Fault::Differs(..))), "the fullest set has it: {never:?}");
        let mut twice = owned.clone();
        let Part::Rether(shares) = &mut twice.hops[1].2 else { unreachable!("it is a ring") };
        assert_eq!(shares.len(), 2);
        shares[1].from = shares[0].from;
        twice.reseal();
        assert_eq!(twice.check(), Err(Fault::Range("from")));
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
    for (units, cycles, room) in [(1, MOST, 1), (MOST, 1, 1), (1, 1 << 18, 1), (1, MOST, MOST / 2), (1, 1, 1)]
    {
        let mut owned = Owned {
            version: VERSION,
            channel: Channel::default(),
            packets: Packets::default(),
            hops: vec![(HopTerms::default(), Frame::default(), Part::Rether(vec![Rether::default()]))],
            promises: vec![Promise { hop: 1, ..Promise::default() }],
            seal: 0,
        };
        owned.numbers().into_iter().for_each(|(_, _, place)| *place = MOST);
        owned.version = VERSION;
        let (_, frame, part) = &mut owned.hops[0];
        (frame.rate, frame.headers) = (1, frame.mtu - room);
        if let Part::Rether(all) = part {
            let share = &mut all[0];
            (share.units, share.cycles, share.periodic, share.joined, share.receives) =
                (units, cycles, 0, 0, 0);
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
        let part = |draw: &mut dyn FnMut() -> u64| {
            if round % 2 == 0 {
                let mut share = Rether::default();
                share.places().for_each(|place| *place = draw());
                return Part::Rether(vec![share]);
            }
            let (mut port, mut flows) = (Port::default(), vec![Flow::default(); 2]);
            port.places().for_each(|place| *place = draw());
            flows.iter_mut().for_each(|flow| flow.places().for_each(|place| *place = draw()));
            Part::Port(port, flows)
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
