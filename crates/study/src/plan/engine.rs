//! Decides the channels of a plan one after another, by the tests that a network runs hop by hop: the best
//! bound of each node on the way there, the test of the destination, and what is given back on the way back.

use super::file::Wanted;
use super::route::{HOPS_MAX, Step, routes};
use crate::certificate::document::{self, Document};
use rota_admission::certificate::{
    FlowTerms, FrameTerms, HopTerms, NetworkTerms, NoCertificate, NodeTerms, Terms, certify, edf_terms,
    rether_terms,
};
use rota_admission::path::{self, Hop, PathTest, counts_for_jitter};
use rota_admission::rtip::{
    Denied, Discipline, Flow, Messages, Packets, Point, Regulator, Scheduler, Traffic,
};
use rota_admission::subnet::{
    Ask, LINK_FLOWS_OWN, LINK_POINTS, LinkPort, Offer, RetherSegment, RetherShare, Subnet, carried_step,
    link_ahead, link_others, payload_max,
};
use rota_admission::{Clocks, SegmentParams, Slot};
use rota_lab::{Medium, Segment, Topology};
use rota_units::{Octets, Span};
use serde_json::Value;
use std::collections::BTreeMap;

/// No two hosts have one clock.
const CLOCKS: Clocks = Clocks::APART;
/// Channels that one direction of a cable holds in a plan.
const CHANNELS_MAX: usize = 1_000;

/// One direction of a cable: the tests that its node runs, and its channels with their offers.
type Port = LinkPort<Vec<Flow>, Vec<Point>>;

/// A network, and all that stands on it.
pub struct Plan<'t> {
    topology: &'t Topology,
    /// The numbers that the stations of each segment share.
    params: Vec<SegmentParams>,
    /// The list of each segment under a token, and the receiving station of each of its slots.
    rings: Vec<(Vec<Slot>, Vec<u16>)>,
    /// The channels of each direction of a cable, by segment and sending station, with their offers.
    cables: BTreeMap<(usize, usize), Vec<(Ask, Offer)>>,
}

/// An offer of nothing.
const NO_OFFER: Offer =
    Offer { delay: Span::ZERO, service_least: Span::ZERO, link_least: Span::ZERO, link_most: Span::ZERO };

/// One hop of an accepted channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leg {
    /// Where.
    pub step: Step,
    /// The bound from eligibility at the station to its eligibility at the next one.
    pub delay: Span,
    /// The share of each cycle, on a segment under a token.
    pub share: Option<RetherShare>,
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
    /// The certificate, as a JSON document that the independent checker accepts; none where a cable serves
    /// levels, whose test no certificate states yet.
    pub certificate: Option<Value>,
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
    /// A sentence.
    pub why: String,
    /// So many routes were looked at.
    pub routes: usize,
    /// The nearest request that fits.
    pub offer: Option<Offered>,
}

/// A request that would fit, in which one number differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// A longer delay.
    Delay(Span),
    /// A larger jitter.
    Jitter(Span),
    /// Smaller messages.
    SMax(Octets),
}

/// A channel that fits, before it stands.
struct Trial {
    ask: Ask,
    packets: Packets,
    hops: Vec<Hop>,
    legs: Vec<Leg>,
    certificate: Option<Value>,
}

impl<'t> Plan<'t> {
    /// A network on which nothing stands. The topology was checked.
    pub fn new(topology: &'t Topology) -> Self {
        let params = |(index, segment): (usize, &Segment)| {
            let stations = u16::try_from(topology.on(index).count()).unwrap_or(u16::MAX);
            segment.settings().expect("its check has made them").params(stations)
        };
        let params: Vec<SegmentParams> = topology.segments.iter().enumerate().map(params).collect();
        let rings = vec![(Vec::new(), Vec::new()); params.len()];
        let mut cables = BTreeMap::new();
        for (station, segment) in ends_of_cables(topology) {
            cables.insert((segment, station), Vec::new());
        }
        Self { topology, params, rings, cables }
    }

    /// Decides a channel. An accepted one stands from now on.
    ///
    /// # Errors
    /// [`Refused`], with the nearest request that fits.
    pub fn decide(&mut self, wanted: &Wanted) -> Result<Accepted, Box<Refused>> {
        let routes = routes(self.topology, wanted.ends);
        if routes.is_empty() {
            let ends = wanted.ends.map(|end| &*self.topology.stations[end].name);
            let why = format!("no way of {HOPS_MAX} hops or fewer leads from {} to {}", ends[0], ends[1]);
            let (test, margin) = ("Route", Span::ZERO);
            return Err(Box::new(Refused { why, ..refused(None, test, margin) }));
        }
        let mut of_shortest = None;
        for route in &routes {
            match self.trial(wanted, route) {
                Ok(trial) => return Ok(self.stand(trial)),
                Err(refused) => of_shortest = of_shortest.or(Some(refused)),
            }
        }
        let refused = of_shortest.expect("there is a route");
        let offer = self.nearest(wanted, &routes[0], &refused);
        Err(Box::new(Refused { routes: routes.len(), offer, ..refused }))
    }

    /// Both passes of set-up over a route, without reserving anything.
    fn trial(&self, wanted: &Wanted, route: &[Step]) -> Result<Trial, Refused> {
        let packet_max = route.iter().map(|step| payload_max(&self.params[step.segment].link.framing)).min();
        let packet_max = packet_max.unwrap_or(Octets::new(1));
        let packets = wanted
            .messages
            .packets(packet_max)
            .map_err(|bad| Refused { why: bad.to_string(), ..refused(None, "Traffic", Span::ZERO) })?;
        let traffic = CLOCKS.counted(&packets.traffic);
        let ask = Ask { traffic, octets: packets.octets, octets_least: Octets::new(1) };
        let denied = |step: &Step, denied: Denied| Refused {
            why: denied.to_string(),
            ..refused(Some(*step), denied.test.name(), denied.margin)
        };
        let mut hops = Vec::new();
        for step in route {
            let offer = self.ask(step, |subnet| subnet.best(&ask)).map_err(|why| denied(step, why))?;
            hops.push(offer.hop(self.regulator(route, hops.len())));
        }
        let failed = |why: path::PathDenied| {
            let test = if why.test == PathTest::Delay { "Delay" } else { "Jitter" };
            Refused { why: why.to_string(), ..refused(None, test, why.margin) }
        };
        let mut left = path::check(&hops, packets.spread, &wanted.goal, CLOCKS).map_err(failed)?;
        let mut legs = Vec::new();
        for (n, step) in route.iter().enumerate().rev() {
            let counts = counts_for_jitter(&hops, n);
            let best = hops[n].delay;
            let most = best + left.share(counts);
            let leg = self.relaxed(step, &ask, most).map_err(|why| denied(step, why))?;
            // A cheaper reservation may need less than its part; the nodes before it have the rest.
            left = left.take(leg.delay.minus(best), counts);
            hops[n].delay = leg.delay;
            legs.push(leg);
        }
        legs.reverse();
        let terms = Terms {
            messages: wanted.messages,
            goal: wanted.goal,
            packet_max,
            octets_least: ask.octets_least,
            // The bound counts from the moment at which the program hands a message over.
            host_slack: Span::ZERO,
            clocks: CLOCKS,
        };
        let has_levels = route
            .iter()
            .any(|step| !self.is_ring(step) && self.discipline(step.segment).scheduler == Scheduler::Rcsp);
        let certificate = match has_levels {
            true => None,
            false => {
                Some(self.certified(&terms, &ask, &hops, &legs).map_err(|(step, why)| denied(&step, why))?)
            }
        };
        let unproven = |why: String| Refused { why, ..refused(None, "Certificate", Span::ZERO) };
        if let Some(certificate) = &certificate {
            let document = Document::read(&certificate.to_string()).map_err(unproven)?;
            document
                .check()
                .map_err(|fault| unproven(format!("no checker would accept a certificate: {fault}")))?;
        }
        Ok(Trial { ask, packets, hops, legs, certificate })
    }

    fn discipline(&self, segment: usize) -> Discipline {
        self.topology.segments[segment].discipline
    }

    /// How the node of a step holds packets: by the discipline of its port, where that is one of a cable.
    fn regulator(&self, route: &[Step], n: usize) -> Regulator {
        let before = n.checked_sub(1).map(|before| &route[before]);
        if self.is_ring(&route[n]) {
            return Regulator::Rate;
        }
        let step = before.map_or(Span::ZERO, |before| {
            let transit = self.params[before.segment].transit();
            carried_step((self.is_ring(before)).then_some(transit))
        });
        self.discipline(route[n].segment).regulator(step)
    }

    /// The cheapest reservation on a step with a bound of `most` or less.
    fn relaxed(&self, step: &Step, ask: &Ask, most: Span) -> Result<Leg, Denied> {
        let step = *step;
        if let Some(ring) = self.ring(&step) {
            let share = ring.cheapest(ask, most)?;
            return Ok(Leg { step, delay: share.delay, share: Some(share) });
        }
        let offer = self.ask(&step, |subnet| subnet.keeping(ask, most))?;
        Ok(Leg { step, delay: offer.delay, share: None })
    }

    /// Asks the network behind a step.
    fn ask(
        &self,
        step: &Step,
        ask: impl FnOnce(&mut dyn Subnet) -> Result<Offer, Denied>,
    ) -> Result<Offer, Denied> {
        if let Some(mut ring) = self.ring(step) {
            return ask(&mut ring);
        }
        let traffic = Traffic::periodic(Span::from_millis(1)).expect("a sound period");
        let none = Flow { traffic, service: Span::ZERO, delay: Span::ZERO };
        let memory = (vec![none; CHANNELS_MAX + LINK_FLOWS_OWN], vec![Point::default(); LINK_POINTS]);
        let discipline = self.discipline(step.segment);
        let mut port = Port::new(self.params[step.segment], discipline, memory.0, memory.1)?;
        for (ask, offer) in self.standing(step) {
            port.admit_offered(ask, offer)?;
        }
        ask(&mut port)
    }

    fn is_ring(&self, step: &Step) -> bool {
        self.topology.segments[step.segment].medium != Medium::Link
    }

    /// The segment of a step as its station sees it, if a token rules there.
    fn ring(&self, step: &Step) -> Option<RetherSegment<'_>> {
        if !self.is_ring(step) {
            return None;
        }
        let (slots, receivers) = &self.rings[step.segment];
        let station = number(step.station);
        let receives = receivers.contains(&station);
        Some(RetherSegment { params: self.params[step.segment], slots, station, periodic: false, receives })
    }

    fn standing(&self, step: &Step) -> &[(Ask, Offer)] {
        self.cables.get(&(step.segment, step.station)).map_or(&[], Vec::as_slice)
    }

    /// The channel stands from now on.
    fn stand(&mut self, trial: Trial) -> Accepted {
        let Trial { ask, packets, hops, legs, certificate } = trial;
        for leg in &legs {
            let Step { station, segment, next } = leg.step;
            if let Some(share) = &leg.share {
                let (slots, receivers) = &mut self.rings[segment];
                slots.push(Slot { station: number(station), tht: share.admitted.tht, periodic: false });
                receivers.push(number(next));
            } else {
                let offer = Offer { delay: leg.delay, ..NO_OFFER };
                self.cables.entry((segment, station)).or_default().push((ask, offer));
            }
        }
        let delay = path::delay(&hops, packets.spread, CLOCKS);
        let jitter = path::jitter(&hops, packets.spread, CLOCKS);
        Accepted { packets, legs, delay, jitter, certificate }
    }

    /// The bound of a cable's port, without what its host may be late.
    fn on_port(&self, step: &Step, delay: Span) -> Span {
        delay.minus(self.params[step.segment].link.host_slack)
    }

    /// The certificate of a channel that does not stand yet. It states what stands before it.
    fn certified(
        &self,
        terms: &Terms,
        ask: &Ask,
        hops: &[Hop],
        legs: &[Leg],
    ) -> Result<Value, (Step, Denied)> {
        let memory = |leg: &Leg| {
            let step = &leg.step;
            let mut all: Vec<(Ask, Span)> = link_others(&self.params[step.segment]).collect();
            let standing = self.standing(step).iter();
            all.extend(standing.map(|(ask, offer)| (*ask, self.on_port(step, offer.delay))));
            all.push((*ask, self.on_port(step, leg.delay)));
            let none = Flow { traffic: ask.traffic, service: Span::ZERO, delay: Span::ZERO };
            let (flows, terms) = (vec![none; all.len()], vec![FlowTerms::default(); all.len()]);
            (all, flows, terms)
        };
        let mut memory: Vec<_> = legs.iter().map(memory).collect();
        let mut parts: Vec<HopTerms<'_>> = Vec::new();
        for (leg, (all, flows, terms)) in legs.iter().zip(&mut memory) {
            let params = &self.params[leg.step.segment];
            let network: NetworkTerms<'_> = match (&leg.share, self.ring(&leg.step)) {
                (Some(share), Some(ring)) => rether_terms(&ring, ask, share),
                _ => {
                    let ahead = link_ahead(params, Span::ZERO);
                    let made = edf_terms(&params.link, ahead, all, all.len() - 1, flows, terms);
                    made.map_err(|why| (leg.step, why))?
                }
            };
            parts.push(HopTerms { node: NodeTerms::default(), frame: FrameTerms::of(&params.link), network });
        }
        match certify(terms, hops, &mut parts) {
            Ok(certificate) => Ok(document::write(&certificate)),
            Err(NoCertificate::Traffic(_) | NoCertificate::Path(_)) => unreachable!("both were tested"),
        }
    }

    /// The nearest request that the shortest route would accept now.
    fn nearest(&self, wanted: &Wanted, route: &[Step], why: &Refused) -> Option<Offered> {
        let fits = |wanted: &Wanted| self.trial(wanted, route).is_ok();
        let with_delay = |delay| Wanted { goal: path::Goal { delay, ..wanted.goal }, ..wanted.clone() };
        let longer = wanted.goal.delay + why.margin;
        if why.test == "Delay" && fits(&with_delay(longer)) {
            return Some(Offered::Delay(longer));
        }
        if let (Some(jitter), "Jitter") = (wanted.goal.jitter, why.test) {
            let jitter = jitter + why.margin;
            let goal = path::Goal { jitter: Some(jitter), ..wanted.goal };
            if fits(&Wanted { goal, ..wanted.clone() }) {
                return Some(Offered::Jitter(jitter));
            }
        }
        let with_size = |octets| {
            let messages = Messages { s_max: Octets::new(octets), ..wanted.messages };
            Wanted { messages, ..wanted.clone() }
        };
        let (mut good, mut bad) = (1, wanted.messages.s_max.get());
        if bad <= 1 || !fits(&with_size(good)) {
            return None;
        }
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            if fits(&with_size(middle)) { good = middle } else { bad = middle }
        }
        Some(Offered::SMax(Octets::new(good)))
    }
}

/// Each station with each cable at its ports.
fn ends_of_cables(topology: &Topology) -> impl Iterator<Item = (usize, usize)> + '_ {
    let is_cable = |segment: &usize| topology.segments[*segment].medium == Medium::Link;
    topology.stations.iter().enumerate().flat_map(move |(at, station)| {
        station.ports.iter().copied().filter(is_cable).map(move |segment| (at, segment))
    })
}

fn number(station: usize) -> u16 {
    station as u16 + 1
}

fn refused(step: Option<Step>, test: &'static str, margin: Span) -> Refused {
    Refused { step, test, margin, why: String::new(), routes: 0, offer: None }
}
