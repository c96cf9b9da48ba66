//! Decides the channels of a plan one after another, by the tests that a network runs hop by hop: the best
//! bound of each node on the way there, the test of the destination, and what is given back on the way back.

use super::file::{Group, Parted, PlanFile, Wanted};
use super::ledger::{Entry, Ledger, Seat};
use super::offers::{Asks, Offered};
use super::ports::{DeniedAt, Want};
use super::ready::Ready;
use super::route::{HOPS_MAX, Step, routes};
use super::statistical::Borne;
use super::tree::Tree;
use super::within::{WithinTerms, is_within};
use crate::certificate::document::Document;
use rota::Class;
use rota_admission::certificate::{Branch, Life, Terms};
use rota_admission::path::{self, Hop, PathTest, Relaxation, counts_for_jitter};
use rota_admission::rtip::{Chance, Denied, NodeTest, Packets};
use rota_admission::subnet::{Ask, RetherShare, payload_max};
use rota_admission::{Clocks, SegmentParams};
use rota_lab::{Segment, Topology};
use rota_units::{Octets, Span};
use serde_json::Value;
use std::collections::BTreeMap;

/// No two hosts have one clock.
pub(super) const CLOCKS: Clocks = Clocks::APART;

/// A network, and all that stands on it.
#[derive(Clone)]
pub struct Plan<'t> {
    pub(super) topology: &'t Topology,
    /// The numbers that the stations of each segment share.
    pub(super) params: Vec<SegmentParams>,
    /// The partitions of each segment.
    pub(super) partitions: Vec<Parted>,
    groups: Vec<Group>,
    /// All reservations.
    pub(super) ledger: Ledger,
    pub(super) ready: Ready,
    /// The channels to several receivers, by name.
    pub(super) trees: BTreeMap<String, Tree>,
    /// Channels that were asked for.
    pub(super) asked: usize,
}

/// One hop of an accepted channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leg {
    /// Where.
    pub step: Step,
    /// The bound from eligibility at the station to its eligibility at the next one.
    pub delay: Span,
    /// The share of each cycle, on a segment under a token.
    pub share: Option<RetherShare>,
    /// A moment at which the share has this bound; its certificate states the channels of that one.
    pub moment: Span,
    /// The longest THT of the share at any moment, or how long slots of a cable take in a window.
    pub tht: Option<Span>,
    /// The chance that a packet is late there, at most.
    pub late: Chance,
}

impl Leg {
    /// The time that is reserved of each cycle, or of each window of a cable.
    pub fn reserved(&self) -> Option<Span> {
        self.share.map_or(self.tht, |share| Some(share.admitted.tht))
    }
}

/// An accepted channel.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// Its packets.
    pub packets: Packets,
    /// Its way.
    pub legs: Vec<Leg>,
    /// The bound of a message's delay.
    pub delay: Span,
    /// The bound of its jitter.
    pub jitter: Span,
    /// The chance that a message is late, at most: the sum of all its packets at each hop.
    pub late: Chance,
    /// The certificate, as a JSON document that the independent checker accepts. None of a channel with a
    /// statistical hop, and of a member of a group under a token.
    pub certificate: Option<Value>,
}

impl Accepted {
    /// The class in which the way serves it.
    pub fn class(&self) -> Class {
        let is_guaranteed = self.legs.iter().all(|leg| leg.late == Chance::NEVER);
        if is_guaranteed { Class::Guaranteed } else { Class::Statistical }
    }
}

/// A refusal: of the shortest route, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The hop whose test failed; the destination's test has none.
    pub step: Option<Step>,
    /// The test.
    pub test: &'static str,
    /// By how much.
    pub margin: Span,
    /// The partition that refused, if it is one of the network's that has several.
    pub partition: Option<String>,
    /// From when on, in the time of the plan: later than the channel's start if another one starts then.
    pub from: Span,
    /// A sentence.
    pub why: String,
    /// So many routes were looked at.
    pub routes: usize,
    /// The nearest request that fits: the numbers in which it differs.
    pub offer: Vec<Offered>,
}

/// A channel that passes all tests, before it has a certificate and stands.
pub(super) struct Trial {
    pub(super) ask: Ask,
    pub(super) seat: Seat,
    pub(super) packets: Packets,
    /// By how much the clocks of its way may differ.
    pub(super) clocks: Clocks,
    pub(super) hops: Vec<Hop>,
    pub(super) legs: Vec<Leg>,
    pub(super) provable: Provable,
}

/// The parts of a trial's certificate beside its hops.
pub(super) enum Provable {
    /// A path across segments, with the largest payload that all of them carry.
    Path(Octets),
    /// The share of one segment.
    Within(Box<WithinTerms>),
}

impl<'t> Plan<'t> {
    /// A network on which nothing stands. The file was checked.
    pub fn new(file: &'t PlanFile) -> Self {
        let topology = &file.topology;
        let params = |(index, segment): (usize, &Segment)| {
            let stations = u16::try_from(topology.on(index).count()).unwrap_or(u16::MAX);
            let mut params = segment.settings().expect("its check has made them").params(stations);
            if !segment.medium.is_cable() {
                params.partitions = file.partitions[index].shares;
            }
            params
        };
        Self {
            topology,
            params: topology.segments.iter().enumerate().map(params).collect(),
            partitions: file.partitions.clone(),
            groups: file.groups.clone(),
            ledger: Ledger::default(),
            ready: Ready::default(),
            trees: BTreeMap::new(),
            asked: 0,
        }
    }

    /// Decides a channel with one receiver. An accepted one stands from now on.
    ///
    /// # Errors
    /// [`Refused`], with the nearest request that fits.
    pub fn decide(&mut self, wanted: &Wanted) -> Result<Accepted, Box<Refused>> {
        self.asked += 1;
        let ends = [wanted.from, wanted.to[0]];
        let mut routes = routes(self.topology, ends);
        if routes.iter().any(|route| is_within(wanted, route)) {
            // Nodes reach a station of their own segment over no other one.
            routes.retain(|route| route.len() == 1);
        }
        if routes.is_empty() {
            return Err(Box::new(self.no_way(ends)));
        }
        let mut of_shortest = None;
        for route in &routes {
            match self.proven_trial(wanted, route) {
                Ok((trial, certificate)) => return Ok(self.stand(trial, certificate)),
                Err(refused) => of_shortest = of_shortest.or(Some(refused)),
            }
        }
        let refused = of_shortest.expect("there is a route");
        let tests = |wanted: &Wanted| self.trial(wanted, &routes[0]).map(|_| ());
        let proof = |wanted: &Wanted| self.proven_trial(wanted, &routes[0]).map(|_| ());
        let offer = self.nearest(wanted, &refused, &Asks { tests: &tests, proof: &proof });
        Err(Box::new(Refused { routes: routes.len(), offer, ..*refused }))
    }

    /// A trial with its certificate.
    fn proven_trial(&self, wanted: &Wanted, route: &[Step]) -> Result<(Trial, Option<Value>), Box<Refused>> {
        let trial = self.trial(wanted, route)?;
        let Trial { ask, seat, hops, legs, provable, .. } = &trial;
        let certificate = match provable {
            Provable::Path(packet_max) => {
                let places: Vec<usize> = (0..hops.len()).collect();
                let way = Branch { hops, places: &places };
                self.proven(wanted, *packet_max, seat, ask, (legs, &[way]))?
            }
            Provable::Within(terms) => Some(terms.proven(hops)?),
        };
        Ok((trial, certificate))
    }

    pub(super) fn no_way(&self, ends: [usize; 2]) -> Refused {
        let [from, to] = ends.map(|end| &*self.topology.stations[end].name);
        let why = format!("no way of {HOPS_MAX} hops or fewer leads from {from} to {to}");
        Refused { why, ..refused(None, "Route", Span::ZERO) }
    }

    /// The place of a channel in the ledger.
    pub(super) fn seat(&self, wanted: &Wanted) -> Seat {
        Seat {
            channel: self.asked,
            life: wanted.life.charged(wanted.goal.delay),
            partition: wanted.partition.clone(),
            group: wanted.group.map(|group| (group, self.groups[group].at_once)),
            late: Chance::NEVER,
        }
    }

    /// The packets of a channel over these segments, and the largest payload that all of them carry.
    pub(super) fn packets(
        &self,
        wanted: &Wanted,
        segments: impl Iterator<Item = usize>,
    ) -> Result<(Octets, Packets), Box<Refused>> {
        let carried = |segment: usize| payload_max(&self.params[segment].link.framing);
        // All members of a group, and all branches of a tree, have packets that fit every segment.
        let is_alone = wanted.group.is_none() && wanted.to.len() == 1 && !wanted.is_tree;
        let packet_max = match is_alone {
            true => segments.map(carried).min(),
            false => (0..self.params.len()).map(carried).min(),
        };
        let packet_max = packet_max.unwrap_or(Octets::new(1));
        let packets = wanted
            .messages
            .packets(packet_max)
            .map_err(|bad| Refused { why: bad.to_string(), ..refused(None, "Traffic", Span::ZERO) })?;
        Ok((packet_max, packets))
    }

    /// The refusal of a hop.
    pub(super) fn denied(&self, step: &Step, (denied, from): DeniedAt) -> Refused {
        let parted = &self.partitions[step.segment];
        let partition = denied.partition.map(|number| match usize::from(number).checked_sub(1) {
            Some(at) => parted.names.get(at).cloned().unwrap_or_default(),
            None => "rest".to_owned(),
        });
        let mut why = denied.to_string();
        if let Some(name) = &partition {
            why = format!("partition '{name}': {why}");
        }
        if from > Span::ZERO {
            why = format!("from {from} on: {why}");
        }
        Refused { why, partition, from, ..refused(Some(*step), denied.test.name(), denied.margin) }
    }

    /// Both passes of set-up over a route, without reserving anything, and without a certificate: most trials
    /// are of offers.
    fn trial(&self, wanted: &Wanted, route: &[Step]) -> Result<Trial, Box<Refused>> {
        if is_within(wanted, route) {
            return self.trial_within(wanted, &route[0]);
        }
        let (packet_max, packets) = self.packets(wanted, route.iter().map(|step| step.segment))?;
        let (ask, seat) = (asked_of(&packets), self.seat(wanted));
        let (mut hops, mut seats) = (Vec::new(), Vec::new());
        let mut borne = Borne::new(wanted.chances, &packets);
        for (n, step) in route.iter().enumerate() {
            let asked = self.ask_first(step, &seat, &ask, &mut borne, route.len() - n);
            let (seat, offer) = asked.map_err(|why| self.denied(step, why))?;
            hops.push(offer.hop(self.regulator(route, n, seat.late)));
            seats.push(seat);
        }
        let mut left = self.relaxation(wanted, &packets, (route, &hops))?;
        let mut legs = Vec::new();
        for (n, step) in route.iter().enumerate().rev() {
            let counts = counts_for_jitter(&hops, n);
            let best = hops[n].delay;
            let most = best + left.share(counts);
            let asked = self.ask(step, &seats[n], &ask, Want::Keeping(most));
            let (_, leg) = asked.map_err(|why| self.denied(step, why))?;
            // A cheaper reservation may need less than its part; the nodes before it have the rest.
            left = left.take(leg.delay.minus(best), counts);
            hops[n].delay = leg.delay;
            legs.push(leg);
        }
        legs.reverse();
        let provable = Provable::Path(packet_max);
        Ok(Trial { ask, seat, packets, clocks: CLOCKS, hops, legs, provable })
    }

    /// The test of the destination. As in a network, D_max is shorter where a gateway has no room for all
    /// packets that may wait within it; where no shorter one can be kept, the gateway refuses.
    fn relaxation(
        &self,
        wanted: &Wanted,
        packets: &Packets,
        (route, hops): (&[Step], &[Hop]),
    ) -> Result<Relaxation, Box<Refused>> {
        let (mut goal, mut full) = (wanted.goal, None);
        let traffic = (&packets.traffic, packets.spread);
        for (n, step) in route.iter().enumerate().skip(1) {
            let slack = goal.delay.minus(path::delay(&hops[..=n], packets.spread, CLOCKS));
            let within = path::delay_within(hops, n, traffic, path::BUFFERS_MAX, goal.delay, CLOCKS);
            if within == Some(goal.delay) {
                continue;
            }
            let needed = path::buffers(hops, n, &packets.traffic, slack, CLOCKS);
            let denied = Denied::counted(NodeTest::PortBuffer, needed, path::BUFFERS_MAX);
            let refused = || self.denied(step, (denied, Span::ZERO));
            goal.delay = within.ok_or_else(refused)?;
            full = full.or(Some(refused()));
        }
        path::check(hops, packets.spread, &goal, CLOCKS).map_err(|why| match full {
            Some(full) if why.test == PathTest::Delay => Box::new(full),
            _ => Box::new(of_path(why)),
        })
    }

    /// The certificate of hops that were accepted and the ways over them, which the independent checker has
    /// accepted, too.
    pub(super) fn proven(
        &self,
        wanted: &Wanted,
        packet_max: Octets,
        seat: &Seat,
        ask: &Ask,
        (legs, branches): (&[Leg], &[Branch<'_>]),
    ) -> Result<Option<Value>, Box<Refused>> {
        if legs.iter().any(|leg| leg.late > Chance::NEVER) {
            // No number shows that sources are independent.
            return Ok(None);
        }
        if wanted.group.is_some() && legs.iter().any(|leg| self.is_ring(&leg.step)) {
            // No certificate states the share of a group, whose members take turns.
            return Ok(None);
        }
        let terms = Terms {
            messages: wanted.messages,
            goal: wanted.goal,
            packet_max,
            octets_least: ask.octets_least,
            // The bound counts from the moment at which the program hands a message over.
            host_slack: Span::ZERO,
            clocks: CLOCKS,
            life: Life { from: wanted.life.start, until: wanted.life.end },
        };
        let made = self.certified(&terms, seat, ask, (legs, branches));
        checked(made.map_err(|(step, why)| self.denied(&step, why))?).map(Some)
    }

    /// The channel stands from now on.
    fn stand(&mut self, trial: Trial, certificate: Option<Value>) -> Accepted {
        let Trial { ask, seat, packets, clocks, hops, legs, .. } = trial;
        for leg in &legs {
            self.reserve(&seat, &ask, leg, vec![leg.step.next]);
        }
        let delay = path::delay(&hops, packets.spread, clocks);
        let jitter = path::jitter(&hops, packets.spread, clocks);
        let late = Chance::of_message(legs.iter().map(|leg| leg.late), packets.count);
        Accepted { packets, legs, delay, jitter, late, certificate }
    }

    /// One reservation stands from now on.
    pub(super) fn reserve(&mut self, seat: &Seat, ask: &Ask, leg: &Leg, next: Vec<usize>) {
        let Step { station, segment, .. } = leg.step;
        let part = self.part(segment, seat);
        let seat = Seat { late: leg.late, ..seat.clone() };
        let (ask, delay, tht, share) = (*ask, leg.delay, leg.tht, leg.share);
        if let (Some((group, _)), None) = (seat.group, tht) {
            self.ledger.shorten(&leg.step, group, delay);
        }
        self.ledger.add(segment, Entry { seat, part, station, next, ask, delay, tht, share });
    }
}

/// The packets as every hop is asked for them, on any of the clocks.
pub(super) fn asked_of(packets: &Packets) -> Ask {
    Ask { traffic: CLOCKS.counted(&packets.traffic), octets: packets.octets, octets_least: Octets::new(1) }
}

/// The certificate, once the independent checker has accepted it.
pub(super) fn checked(certificate: Value) -> Result<Value, Box<Refused>> {
    let unproven = |why: String| Refused { why, ..refused(None, "Certificate", Span::ZERO) };
    let document = Document::read(&certificate.to_string()).map_err(unproven)?;
    document.check().map_err(|fault| unproven(format!("no checker would accept a certificate: {fault}")))?;
    Ok(certificate)
}

/// The refusal of the destination.
pub(super) fn of_path(why: path::PathDenied) -> Refused {
    let test = if why.test == PathTest::Delay { "PathDelay" } else { "PathJitter" };
    Refused { why: why.to_string(), ..refused(None, test, why.margin) }
}

/// The number of a station on its segments.
pub(super) fn number(station: usize) -> u16 {
    station as u16 + 1
}

pub(super) fn refused(step: Option<Step>, test: &'static str, margin: Span) -> Refused {
    let (partition, from) = (None, Span::ZERO);
    Refused { step, test, margin, partition, from, why: String::new(), routes: 0, offer: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::super::file::parse;
    use super::*;
    use crate::clock;
    use std::path::Path;

    /// Each trial of an offer made and checked a certificate. How long both take is printed.
    #[test]
    fn an_offer_that_the_tests_find_is_the_one_that_certificates_find() {
        let text = include_str!("../../../../plans/wan.toml");
        let file = parse(text, Path::new("")).expect("the plan of the repository");
        let mut network = Plan::new(&file);
        file.wanted[..2].iter().for_each(|wanted| _ = network.decide(wanted).expect("there is room"));
        for more in [1, 100] {
            let mut wanted = file.wanted[2].clone();
            wanted.messages.s_max = wanted.messages.s_max * more;
            let route = &routes(network.topology, [wanted.from, wanted.to[0]])[0];
            let tests = |wanted: &Wanted| network.trial(wanted, route).map(drop);
            let proof = |wanted: &Wanted| network.proven_trial(wanted, route).map(drop);
            let why = tests(&wanted).expect_err("the cable is full");
            let timed = |tests: &dyn Fn(&Wanted) -> Result<(), Box<Refused>>| {
                let began = clock::now();
                let offer = network.nearest(&wanted, &why, &Asks { tests, proof: &proof });
                (offer, clock::now().since(began))
            };
            let ((by_tests, quick), (by_both, slow)) = (timed(&tests), timed(&proof));
            assert!(!by_tests.is_empty());
            assert_eq!(by_tests, by_both);
            println!("{more}: {quick} by the tests, {slow} with certificates");
        }
    }
}
