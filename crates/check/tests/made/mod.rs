//! Certificates that admission makes of drawn paths, as values of which any number can be changed.

use proptest::prelude::*;
use rota_admission::certificate::{
    self, Branch, Certificate as Made, FlowTerms, FrameTerms, HopTerms as MadeHop, Life, NetworkTerms,
    NodeTerms, PortTerms, PromiseTerms, RetherTerms, SlotsTerms, Standing, StandingShare, Terms, certify,
    port_terms, rether_terms,
};
use rota_admission::path::{Goal, Hop as PathHop, relax};
use rota_admission::rtip::{Flow as PortFlow, Messages, Regulator, Traffic};
use rota_admission::search::largest;
use rota_admission::subnet::{Ask, Offer, PortLoad, RetherSegment, Subnet, packet_span_up, payload_max};
use rota_admission::{
    Admitted, Clocks, Enlarged, Framing, Growth, Larger, LinkModel, Pace, PacketSlot, Request, SegmentParams,
    SessionSlot, Slot, admit, admit_on_link, enlarge, grow, kept, standing, standing_packet_slots,
    standing_packets, standing_slots,
};
use rota_check::{
    Certificate, Channel, Fault, Flow, Frame, Hop, HopTerms, Kind, Network, Packets, Port, Promise, Rether,
    Slots, check,
};
use rota_units::{BitRate, Octets, Span};

pub fn ns(n: u64) -> Span {
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
pub struct Owned {
    pub version: u64,
    pub channel: Channel,
    pub packets: Packets,
    pub hops: Vec<(HopTerms, Frame, Part)>,
    pub promises: Vec<Promise>,
    pub seal: u64,
}

#[derive(Clone, Debug)]
pub enum Part {
    Port(Port, Vec<Flow>),
    Rether(Vec<Rether>),
    Slots(Slots),
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
                NetworkTerms::Slots(slots) => Part::Slots(copied!(slots, SlotsTerms::NAMES, Slots)),
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

    pub fn check(&self) -> Result<(), Fault> {
        self.with(check)
    }

    pub fn reseal(&mut self) {
        self.seal = self.with(|certificate| certificate.sealed().0);
    }

    /// The judgement of the checker on a copy that was changed and sealed anew.
    pub fn changed(&self, change: impl FnOnce(&mut Self)) -> Result<(), Fault> {
        let mut changed = self.clone();
        change(&mut changed);
        changed.reseal();
        changed.check()
    }

    /// The port of a hop.
    pub fn port(&mut self, hop: usize) -> (&mut Port, &mut [Flow]) {
        let Part::Port(port, flows) = &mut self.hops[hop].2 else { panic!("hop {hop} is no port") };
        (port, flows)
    }

    /// Each number with its name and kind.
    pub fn numbers(&mut self) -> Vec<(&'static str, Kind, &mut u64)> {
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
                Part::Slots(slots) => add!(slots, Slots),
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
        Part::Slots(slots) => Network::Slots(*slots),
    };
    Hop { terms: *terms, frame: *frame, network }
}

/// The numbers that make a case.
#[derive(Clone, Debug)]
pub struct Case {
    pub messages: Messages,
    pub least: u64,
    pub hops: Vec<Drawn>,
    /// It is booked for a time, and other channels begin and end in it.
    pub is_booked: bool,
    /// The way to a second receiver parts from the first one behind so many hops, and has these.
    pub fork: Option<(usize, Vec<Drawn>)>,
    pub slack: u64,
    pub jitter: Option<u64>,
    pub clocks: u64,
}

impl Case {
    /// A channel over these hops.
    pub fn over(hops: Vec<Drawn>) -> Self {
        let ms = Span::from_millis;
        let s_max = Octets::new(5_000);
        let messages = Messages { x_min: ms(40), x_ave: ms(50), interval: ms(200), s_max };
        let (is_booked, fork, slack, jitter) = (false, None, 0, None);
        Self { messages, least: 20, hops, is_booked, fork, slack, jitter, clocks: 200 }
    }
}

/// The kind of network that is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Drawing {
    Ring,
    Deadlines,
    Levels,
}

#[derive(Clone, Debug)]
pub struct Drawn {
    pub regulator: Regulator,
    pub mbit: u64,
    /// The host's time to prepare a frame.
    pub prepare: u64,
    pub network: Drawing,
    /// The work that goes before packets in a window of 30 ms.
    pub above: u64,
    pub others: Vec<(u64, u64, u64)>,
    pub link: (u64, u64),
    pub flags: [bool; 3],
}

pub fn any_case() -> impl Strategy<Value = Case> {
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
pub fn made(case: &Case) -> Option<Owned> {
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
    /// A hop with these others, whose regulator is that of the rate.
    pub fn of(network: Drawing, mbit: u64, others: Vec<(u64, u64, u64)>) -> Self {
        let (regulator, link, flags) = (Regulator::Rate, (5, 2_000), [false; 3]);
        Self { regulator, mbit, prepare: 0, network, above: 0, others, link, flags }
    }

    pub fn link(&self) -> LinkModel {
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

    /// The fewest packets a cycle that keep a bound: certificates state shares of any pace.
    fn cheapest(&self, slots: &[Slot], ask: &Ask, delay: Span) -> Pace {
        let (segment, trt) = (self.segment(slots), self.segment(slots).params.trt);
        let pace = |units: u64| Pace::of(ns(trt.as_nanos().div_ceil(units)), trt).ok();
        let keeps = |pace: &Pace| segment.share(ask, *pace).is_ok_and(|share| share.delay <= delay);
        (1..=Pace::UNITS_MAX.into()).filter_map(pace).find(keeps).expect("relaxing never invalidates")
    }

    fn best(&self, ask: &Ask, life: Life) -> Option<Offer> {
        if self.network == Drawing::Ring {
            return self.segment(&self.slots()).best(ask).ok();
        }
        let (link, mut memory) = (self.link(), self.memory(ask));
        let mut fits = |delay: Span| self.terms(ask, delay + link.host_slack, life, &mut memory).is_some();
        let delay = if self.network == Drawing::Levels {
            (0..8).map(|level| Span::from_millis(4 << level)).find(|bound| fits(*bound))?
        } else {
            // A longer bound never invalidates a set.
            let longest = Span::from_millis(10_000);
            if !fits(longest) {
                return None;
            }
            ns(largest(0, longest.as_nanos(), |delay| !fits(ns(delay))) + 1)
        };
        Some(Offer {
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
            let pace = self.cheapest(&slots, ask, delay);
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

/// The memory that a certificate borrows.
struct Memory {
    flows: Vec<PortFlow>,
    terms: Vec<FlowTerms>,
    shares: Vec<RetherTerms>,
}

/// A channel of one segment: units of many frames, at any pace, beside others.
pub type Units = (u64, u64, u64, Drawn);

/// A channel of one RETHER segment, or of one link.
pub fn any_units() -> impl Strategy<Value = Units> {
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
pub fn made_of_units(case: &Units) -> Option<Owned> {
    let drawn = &case.3;
    let slots = drawn.slots();
    let segment = drawn.segment(&slots);
    let request = request(case, &segment.params)?;
    let request = Request { periodic: segment.periodic, receives: segment.receives, ..request };
    let admitted = admit(&slots, &request, &segment.params).ok()?;
    let messages = messages(case, &request, &segment.params);
    let standing = standing_share(&messages, &request, admitted, &segment.params);
    let granted = standing.share().expect("the share carries it");
    let (frame, share) = standing.terms(&granted).expect("one slot of this traffic");
    let offer = standing.offer(&granted);
    assert_eq!(offer.delay, admitted.bound, "the certificate proves what was promised");
    Some(of_one_hop(messages, offer, frame, NetworkTerms::Rether(&[share])))
}

/// The same of a share that was half as large first and stands before others, so that a change has split it.
pub fn made_of_parts(case: &Units) -> Option<Owned> {
    let drawn = &case.3;
    let params = drawn.segment(&[]).params;
    let asked = Request { periodic: drawn.flags[0], ..request(case, &params)? };
    let from = Octets::new((asked.unit_octets.get() / 2).max(1));
    let admitted = admit(&[], &Request { unit_octets: from, ..asked }, &params).ok()?;
    let (station, tht, partition) = (asked.station, admitted.tht, 0);
    let own = Slot { station, tht, periodic: asked.periodic, partition };
    let mut list = [vec![own], drawn.slots()].concat();
    let share = asked.pace.share(from, &params.link.framing);
    let mut parts = vec![SessionSlot { index: 0, share }];
    match grow(&list, &parts, from, &asked, &params).ok()? {
        Growth::Nothing => {}
        Growth::Widened { share, tht } => (list[0].tht, parts[0].share) = (tht, share),
        // The old slot is cut only later: it is no longer than it says.
        Growth::Added { share, tht, kept } => {
            parts.retain_mut(|part| {
                part.share = kept;
                kept > Octets::ZERO
            });
            parts.push(SessionSlot { index: list.len(), share });
            list.push(Slot { tht, ..own });
        }
    }
    let admitted = standing(&list, &parts, &asked, &params);
    let messages = messages(case, &asked, &params);
    let standing = standing_share(&messages, &asked, admitted, &params);
    let granted = standing.share().expect("the slots carry it");
    let terms =
        standing_slots(&list, &parts, asked.pace.units()).map(|slot| standing.slot_terms(&granted, &slot));
    let terms: Vec<RetherTerms> = terms.map(|terms| terms.expect("as long as its part")).collect();
    let offer = standing.offer(&granted);
    assert_eq!(offer.delay, admitted.bound, "the certificate proves what was promised");
    Some(of_one_hop(messages, offer, standing.frame(), NetworkTerms::Rether(&terms)))
}

/// The same of a share of packets, of fewer and smaller ones first, that stands before others: each of its
/// slots carries some of the packets.
pub fn made_of_packets(case: &Units) -> Option<Owned> {
    let (period, octets, burst, drawn) = case;
    let params = drawn.segment(&[]).params;
    let (x_min, s_max) = (ns(period / 8), Octets::new(octets % 1_400 + 30));
    let messages = Messages { x_min, x_ave: x_min + ns(7), interval: (x_min + ns(7)) * *burst, s_max };
    let traffic = messages.packets(s_max).ok()?.traffic;
    let pace = Pace::of_packets(traffic.half_open(params.trt).max(1))?;
    let [periodic, receives, _] = drawn.flags;
    let asked = Request { station: 3, unit_octets: s_max, pace, periodic, receives, partition: 0 };
    let (packets, from) = ((pace.units() / 2).max(1), Octets::new(s_max.get() / 2 + 10));
    let first = Request { unit_octets: from, pace: Pace::of_packets(packets)?, ..asked };
    let admitted = admit(&[], &first, &params).ok()?;
    let own = Slot { station: 3, tht: admitted.tht, periodic, partition: 0 };
    let mut list = [vec![own], drawn.slots()].concat();
    let mut parts = vec![PacketSlot { index: 0, octets: from, packets }];
    match enlarge(&list, &parts, from, &asked, &params).ok()? {
        Enlarged::Nothing => {}
        Enlarged::Widened(Larger { octets, packets, tht }) => {
            (list[0].tht, parts[0].octets, parts[0].packets) = (tht, octets, packets);
        }
        Enlarged::Added(Larger { octets, packets, tht }) => {
            parts.push(PacketSlot { index: list.len(), octets, packets });
            list.push(Slot { tht, ..own });
        }
    }
    let keeps: Vec<u64> = kept(&parts, s_max, pace.units(), &params).collect();
    for (part, keeps) in parts.iter_mut().zip(keeps) {
        list[part.index].tht = list[part.index].tht.minus(part.saves(s_max, keeps, &params));
        (part.octets, part.packets) = (s_max, keeps);
    }
    parts.retain(|part| part.packets > 0);
    let admitted = standing_packets(&list, &parts, &asked, &params);
    let standing = standing_share(&messages, &asked, admitted, &params);
    let granted = standing.share().expect("the slots carry it");
    let terms = standing_packet_slots(&list, &parts).map(|slot| standing.slot_terms(&granted, &slot));
    let terms: Vec<RetherTerms> = terms.map(|terms| terms.expect("as long as its part")).collect();
    assert_eq!(terms.iter().map(|slot| slot.units).sum::<u64>(), pace.units());
    let offer = standing.offer(&granted);
    Some(of_one_hop(messages, offer, standing.frame(), NetworkTerms::Rether(&terms)))
}

/// The same of a share in the slots of a link, beside slots of others.
pub fn made_of_slots(case: &Units) -> Option<Owned> {
    let drawn = &case.3;
    let loads: Vec<Span> = drawn.others.iter().map(|(x_min, ..)| ns(x_min * 50)).collect();
    let params = SegmentParams::new(BitRate::from_mbit(drawn.mbit), 2);
    let params = SegmentParams { link: drawn.link(), ..params };
    let request = request(case, &params)?;
    let admitted = admit_on_link(&loads, &request, &params).ok()?;
    let messages = messages(case, &request, &params);
    let standing = standing_share(&messages, &request, admitted, &params);
    let (offer, frame, slots) = standing.slots().expect("what was granted just now");
    assert_eq!(offer.delay + offer.link_most, admitted.bound, "the certificate proves what was promised");
    Some(of_one_hop(messages, offer, frame, NetworkTerms::Slots(slots)))
}

fn request((period, octets, _, drawn): &Units, params: &SegmentParams) -> Option<Request> {
    let (station, unit_octets) = (3, Octets::new(*octets));
    let pace = Pace::of(ns(*period), params.trt).ok()?;
    Some(Request { station, unit_octets, pace, periodic: drawn.flags[0], receives: false, partition: 0 })
}

fn messages((period, octets, burst, _): &Units, request: &Request, params: &SegmentParams) -> Messages {
    let x_min = ns(*period).max(request.pace.period(params.trt));
    let x_ave = x_min + ns(7);
    Messages { x_min, x_ave, interval: x_ave * *burst, s_max: Octets::new(*octets) }
}

fn standing_share<'p>(
    messages: &Messages,
    request: &Request,
    admitted: Admitted,
    params: &'p SegmentParams,
) -> StandingShare<'p> {
    StandingShare {
        params,
        traffic: messages.packets(messages.s_max).expect("sound").traffic,
        octets: messages.s_max,
        octets_least: Octets::new(1),
        is_packet: false,
        pace: request.pace,
        periodic: request.periodic,
        admitted,
    }
}

/// The certificate of a channel of one hop whose own bound is its goal.
fn of_one_hop(messages: Messages, offer: Offer, frame: FrameTerms, network: NetworkTerms<'_>) -> Owned {
    let hops = [offer.hop(Regulator::None)];
    let goal = Goal { delay: offer.delay + offer.link_most, jitter: None };
    let (packet_max, octets_least, host_slack) = (messages.s_max, Octets::new(1), ns(0));
    let (clocks, life) = (Clocks::ONE, Life::ALWAYS);
    let terms = Terms { messages, goal, packet_max, octets_least, host_slack, clocks, life };
    let mut parts = [MadeHop { node: NodeTerms::default(), frame, network }];
    let (branch, mut promises) = (Branch { hops: &hops, places: &[0] }, [PromiseTerms::default()]);
    let made = certify(&terms, &[branch], &mut parts, &mut promises).expect("its own bound is the goal");
    Owned::of(&made)
}
