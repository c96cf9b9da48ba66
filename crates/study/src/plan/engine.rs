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
use rota_admission::rtip::{Denied, EdfTable, Flow, Messages, Packets, Point, Regulator, Traffic};
use rota_admission::subnet::{
    Ask, LinkPort, Offer, RTIP_OCTETS, RetherSegment, RetherShare, Subnet, packet_cost, payload_max,
};
use rota_admission::{SegmentParams, Slot, link_blocking};
use rota_lab::{Medium, Segment, Topology};
use rota_units::{Octets, Span};
use serde_json::Value;
use std::collections::BTreeMap;

/// A longer bound on a cable gives the others no more room that counts, and each point of time below the
/// longest bound takes a place in the table.
const CABLE_DELAY_MAX: Span = Span::from_millis(200);
/// Points of demand that a port's table holds.
const POINTS: usize = 1 << 16;

/// A network, and all that stands on it.
pub struct Plan<'t> {
    topology: &'t Topology,
    /// The numbers that the stations of each segment share.
    params: Vec<SegmentParams>,
    /// The list of each segment under a token, and the receiving station of each of its slots.
    rings: Vec<(Vec<Slot>, Vec<u16>)>,
    /// The channels of each direction of a cable, by segment and sending station, with their bounds on the
    /// port.
    cables: BTreeMap<(usize, usize), Vec<(Ask, Span)>>,
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
    /// The certificate, as a JSON document that the independent checker accepts.
    pub certificate: Value,
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
    certificate: Value,
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
            cables.insert((segment, station), others(&params[segment]));
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
        let ask = Ask { traffic: packets.traffic, octets: packets.octets, octets_least: Octets::new(1) };
        let denied = |step: &Step, denied: Denied| Refused {
            why: denied.to_string(),
            ..refused(Some(*step), denied.test.name(), denied.margin)
        };
        let mut hops = Vec::new();
        for step in route {
            let offer =
                self.ask(step, ask.traffic, |subnet| subnet.best(&ask)).map_err(|why| denied(step, why))?;
            // Gateways hold packets until they conform again. To restore their distances a node would have to
            // know when a packet left the card of the one before.
            hops.push(offer.hop(Regulator::Rate));
        }
        let failed = |why: path::PathDenied| {
            let test = if why.test == PathTest::Delay { "Delay" } else { "Jitter" };
            Refused { why: why.to_string(), ..refused(None, test, why.margin) }
        };
        let mut left = path::check(&hops, packets.spread, &wanted.goal).map_err(failed)?;
        let mut legs = Vec::new();
        for (n, step) in route.iter().enumerate().rev() {
            let counts = counts_for_jitter(&hops, n);
            let best = hops[n].delay;
            let most = best + left.share(counts);
            let leg = self.relaxed(step, &ask, best, most).map_err(|why| denied(step, why))?;
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
        };
        let certificate = self.certified(&terms, &ask, &hops, &legs);
        let certificate = certificate.map_err(|(step, why)| denied(&step, why))?;
        let unproven = |why: String| Refused { why, ..refused(None, "Certificate", Span::ZERO) };
        let document = Document::read(&certificate.to_string()).map_err(unproven)?;
        document
            .check()
            .map_err(|fault| unproven(format!("no checker would accept a certificate: {fault}")))?;
        Ok(Trial { ask, packets, hops, legs, certificate })
    }

    /// The cheapest reservation on a step with a bound from the best one to `most`.
    fn relaxed(&self, step: &Step, ask: &Ask, best: Span, most: Span) -> Result<Leg, Denied> {
        let step = *step;
        if let Some(ring) = self.ring(&step) {
            let share = ring.cheapest(ask, most)?;
            return Ok(Leg { step, delay: share.delay, share: Some(share) });
        }
        let keep = most.min(best.max(CABLE_DELAY_MAX));
        let offer = self.ask(&step, ask.traffic, |subnet| subnet.keeping(ask, keep))?;
        Ok(Leg { step, delay: offer.delay, share: None })
    }

    /// Asks the network behind a step.
    fn ask(
        &self,
        step: &Step,
        traffic: Traffic,
        ask: impl FnOnce(&mut dyn Subnet) -> Result<Offer, Denied>,
    ) -> Result<Offer, Denied> {
        if let Some(mut ring) = self.ring(step) {
            return ask(&mut ring);
        }
        let (params, standing) = (&self.params[step.segment], self.standing(step));
        let none = Flow { traffic, service: Span::ZERO, delay: Span::ZERO };
        let (mut flows, mut points) = (vec![none; standing.len() + 1], vec![Point::default(); POINTS]);
        let mut table = EdfTable::new(link_blocking(params), &mut flows, &mut points);
        for (ask, delay) in standing {
            let service = packet_cost(&params.link, ask.octets);
            table.admit(&Flow { traffic: ask.traffic, service, delay: *delay })?;
        }
        ask(&mut LinkPort { link: params.link, table, cable_least: Span::ZERO, cable_most: Span::ZERO })
    }

    /// The segment of a step as its station sees it, if a token rules there.
    fn ring(&self, step: &Step) -> Option<RetherSegment<'_>> {
        if self.topology.segments[step.segment].medium == Medium::Link {
            return None;
        }
        let (slots, receivers) = &self.rings[step.segment];
        let station = number(step.station);
        let receives = receivers.contains(&station);
        Some(RetherSegment { params: self.params[step.segment], slots, station, periodic: false, receives })
    }

    fn standing(&self, step: &Step) -> &[(Ask, Span)] {
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
                let delay = self.on_port(leg);
                self.cables.entry((segment, station)).or_default().push((ask, delay));
            }
        }
        let (delay, jitter) = (path::delay(&hops, packets.spread), path::jitter(&hops, packets.spread));
        Accepted { packets, legs, delay, jitter, certificate }
    }

    /// The bound of a cable's port, without what its host may be late.
    fn on_port(&self, leg: &Leg) -> Span {
        leg.delay.minus(self.params[leg.step.segment].link.host_slack)
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
            let mut all = self.standing(&leg.step).to_vec();
            all.push((*ask, self.on_port(leg)));
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
                    let made =
                        edf_terms(&params.link, link_blocking(params), all, all.len() - 1, flows, terms);
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

/// The room of what is no channel on a cable, as channels of long bounds: this station's announcements, five
/// in a cycle, and the share of ordinary traffic.
fn others(params: &SegmentParams) -> Vec<(Ask, Span)> {
    let headers = RTIP_OCTETS + u64::from(params.link.framing.rota_octets);
    let announced = Octets::new(SegmentParams::ANNOUNCE_OCTETS.saturating_sub(headers).max(1));
    let full = payload_max(&params.link.framing);
    let percent = u64::from(params.nrt_share_percent).max(1);
    let every = Span::from_nanos((packet_cost(&params.link, full) * 100).as_nanos().div_ceil(percent));
    let ask = |period: Span, octets: Octets| {
        let traffic = Traffic::periodic(period).expect("a part of a cycle, or some frames long");
        (Ask { traffic, octets, octets_least: octets }, period.max(params.trt))
    };
    vec![ask(params.trt.div_down(5), announced), ask(every, full)]
}

fn number(station: usize) -> u16 {
    station as u16 + 1
}

fn refused(step: Option<Step>, test: &'static str, margin: Span) -> Refused {
    Refused { step, test, margin, why: String::new(), routes: 0, offer: None }
}
