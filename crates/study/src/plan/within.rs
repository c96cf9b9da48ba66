//! Channels between two stations of one segment, as nodes decide them: a unit has its share of the segment's
//! cycles, or slots of a link, and is no message of packets.
//!
//! Nodes have no partition, group, booking or chance for such a channel, and none to several receivers. A
//! plan decides a request with one of these as a channel across segments over one hop.

use super::engine::{Leg, Plan, Provable, Refused, Trial, checked, number, of_path, refused};
use super::file::Wanted;
use super::ledger::{Life, Seat};
use super::route::Step;
use super::statistical::Further;
use crate::certificate::document;
use rota_admission::certificate::{
    self, Branch, FrameTerms, HopTerms, NetworkTerms, NodeTerms, PromiseTerms, RetherTerms, SlotsTerms,
    StandingShare, Terms, certify,
};
use rota_admission::path::{Hop, PathDenied, PathTest};
use rota_admission::rtip::{BadTraffic, Chance, Denied, Messages, Packets, Regulator};
use rota_admission::subnet::{Ask, Offer, RetherSegment, RetherShare};
use rota_admission::{Admitted, Clocks, Pace, Refusal, Request, SegmentParams, admit, admit_on_link};
use rota_units::{Octets, Span};
use serde_json::Value;

/// The clock of a source and that of its segment are taken for right.
const CLOCKS: Clocks = Clocks::ONE;

/// True if nodes serve a channel by shares of this one segment.
pub(super) fn is_within(wanted: &Wanted, route: &[Step]) -> bool {
    let has_one_receiver = !wanted.is_tree && wanted.group.is_none();
    let is_plain = wanted.partition.is_none() && wanted.life == Life::WHOLE && wanted.chances.is_guaranteed();
    route.len() == 1 && has_one_receiver && is_plain
}

/// The units of a request, and how often they come.
struct Units {
    messages: Messages,
    packets: Packets,
    ask: Ask,
    pace: Pace,
}

impl Units {
    /// # Errors
    /// The segment has no such period, or the traffic cannot be.
    fn of(asked: &Messages, step: &Step, params: &SegmentParams) -> Result<Self, Box<Refused>> {
        let pace = Pace::of(asked.x_min, params.trt).map_err(|nearest| {
            let (end, margin) = match asked.x_min > nearest {
                true => ("longest", asked.x_min.minus(nearest)),
                false => ("shortest", nearest.minus(asked.x_min)),
            };
            let why = format!("the {end} xmin on a segment whose cycle takes {} is {nearest}", params.trt);
            Box::new(Refused { why, ..refused(Some(*step), "Period", margin) })
        })?;
        let x_min = pace.period(params.trt);
        let x_ave = asked.x_ave.max(x_min);
        let messages = Messages { x_min, x_ave, interval: asked.interval.max(x_ave), ..*asked };
        let bad = |bad: BadTraffic| {
            Box::new(Refused { why: bad.to_string(), ..refused(None, "Traffic", Span::ZERO) })
        };
        let packets = messages.packets(messages.s_max).map_err(bad)?;
        let ask = Ask { traffic: packets.traffic, octets: messages.s_max, octets_least: Octets::new(1) };
        Ok(Self { messages, packets, ask, pace })
    }

    fn request(&self, station: u16, receives: bool) -> Request {
        let (unit_octets, pace, periodic, partition) = (self.ask.octets, self.pace, false, 0);
        Request { station, unit_octets, pace, periodic, receives, partition }
    }

    fn standing<'p>(&self, params: &'p SegmentParams, admitted: Admitted) -> StandingShare<'p> {
        let Ask { traffic, octets, octets_least } = self.ask;
        let (is_packet, pace, periodic) = (false, self.pace, false);
        StandingShare { params, traffic, octets, octets_least, is_packet, pace, periodic, admitted }
    }

    /// The share of a RETHER segment at some moment.
    fn on_ring(&self, part: &RetherSegment<'_>) -> Result<OnRing, Denied> {
        let request = self.request(part.station, part.receives);
        let admitted = admit(part.slots, &request, &part.params).map_err(|refusal| of_medium(&refusal))?;
        let standing = self.standing(&part.params, admitted);
        let share = standing.share()?;
        let (frame, terms) = standing.terms(&share).expect("a grant of one slot");
        Ok(OnRing { share, offer: standing.offer(&share), frame, terms })
    }
}

struct OnRing {
    share: RetherShare,
    offer: Offer,
    frame: FrameTerms,
    terms: RetherTerms,
}

/// The numbers of the test.
enum Part {
    Ring(Vec<RetherTerms>),
    Slots(SlotsTerms),
}

/// The parts of such a channel's certificate.
pub(super) struct WithinTerms {
    terms: Terms,
    frame: FrameTerms,
    part: Part,
}

impl WithinTerms {
    /// The certificate, which the independent checker has accepted, too.
    pub(super) fn proven(&self, hops: &[Hop]) -> Result<Value, Box<Refused>> {
        let network = match &self.part {
            Part::Ring(all) => NetworkTerms::Rether(all),
            Part::Slots(slots) => NetworkTerms::Slots(*slots),
        };
        let mut parts = [HopTerms { node: NodeTerms::default(), frame: self.frame, network }];
        let (mut promises, way) = ([PromiseTerms::default()], Branch { hops, places: &[0] });
        let made = certify(&self.terms, &[way], &mut parts, &mut promises);
        checked(document::write(&made.expect("the goal was tested")))
    }
}

fn of_medium(refusal: &Refusal) -> Denied {
    Denied { partition: refusal.partition, ..Denied::new(refusal.test.of_hop(), refusal.margin) }
}

impl Plan<'_> {
    /// The answer of the segment, without reserving anything.
    pub(super) fn trial_within(&self, wanted: &Wanted, step: &Step) -> Result<Trial, Box<Refused>> {
        let params = &self.params[step.segment];
        let units = Units::of(&wanted.messages, step, params)?;
        let (seat, messages) = (self.seat(wanted), units.messages);
        let (leg, offer, frame, part) = match self.is_ring(step) {
            true => self.on_cycles(step, &seat, &units)?,
            false => self.in_slots(step, &seat, &units)?,
        };
        let bound = offer.delay + offer.link_most;
        // As a node has it: the shortest unit takes as long as the shortest frame, at least.
        let varies = bound.minus(params.link.frame_span_min());
        let jitter = wanted.goal.jitter.unwrap_or(Span::MAX);
        let parts = [(PathTest::Delay, bound, wanted.goal.delay), (PathTest::Jitter, varies, jitter)];
        if let Some((test, nearest, most)) = parts.into_iter().find(|(_, is, most)| is > most) {
            return Err(Box::new(of_path(PathDenied { test, margin: nearest.minus(most), nearest })));
        }
        let hops = vec![offer.hop(Regulator::None)];
        let terms = Terms {
            messages,
            goal: wanted.goal,
            packet_max: messages.s_max,
            octets_least: units.ask.octets_least,
            host_slack: Span::ZERO,
            clocks: CLOCKS,
            life: certificate::Life::ALWAYS,
        };
        let provable = Provable::Within(Box::new(WithinTerms { terms, frame, part }));
        let Units { packets, ask, .. } = units;
        Ok(Trial { ask, seat, packets, clocks: CLOCKS, hops, legs: vec![leg], provable })
    }

    /// A share of a RETHER segment, at each moment at which its list changes.
    fn on_cycles(
        &self,
        step: &Step,
        seat: &Seat,
        units: &Units,
    ) -> Result<(Leg, Offer, FrameTerms, Part), Box<Refused>> {
        let mut longest: Option<(Leg, Offer, FrameTerms)> = None;
        let mut terms = Vec::new();
        for moment in self.ledger.moments(step.segment, seat) {
            let then = self.on_ring(step, seat, moment, |part| units.on_ring(part));
            let then = then.map_err(|why| self.denied(step, (why, moment)))?;
            terms.push(RetherTerms { from: moment.as_nanos(), ..then.terms });
            let (share, delay, late) = (then.share, then.share.delay, Chance::NEVER);
            let before = longest.as_ref().and_then(|(leg, ..)| leg.tht);
            let tht = before.unwrap_or(Span::ZERO).max(share.admitted.tht);
            let leg = Leg { step: *step, delay, share: Some(share), moment, tht: Some(tht), late };
            longest = Some(match longest {
                Some((before, offer, frame)) if before.delay >= delay => {
                    (Leg { tht: Some(tht), ..before }, offer, frame)
                }
                _ => (leg, then.offer, then.frame),
            });
        }
        let (leg, offer, frame) = longest.expect("a channel has a start");
        Ok((leg, offer, frame, Part::Ring(terms)))
    }

    /// Slots of a cable, beside which all packets of its port keep their bounds.
    fn in_slots(
        &self,
        step: &Step,
        seat: &Seat,
        units: &Units,
    ) -> Result<(Leg, Offer, FrameTerms, Part), Box<Refused>> {
        let params = &self.params[step.segment];
        let loads: Vec<Span> = self.ledger.loads(step, seat.channel).collect();
        let request = units.request(number(step.station), false);
        let admitted = admit_on_link(&loads, &request, params)
            .map_err(|refusal| self.denied(step, (of_medium(&refusal), Span::ZERO)))?;
        let all = loads.iter().copied().sum::<Span>() + admitted.tht;
        for moment in self.ledger.moments(step.segment, seat) {
            let beside = self.on_cable(step, moment, seat, |port| port.set_units(all));
            beside.map_err(|why| self.denied(step, (why, moment)))?;
        }
        let (offer, frame, slots) = units.standing(params, admitted).slots().expect("a grant of slots");
        let (share, moment, late) = (None, Span::ZERO, Chance::NEVER);
        let leg = Leg { step: *step, delay: offer.delay, share, moment, tht: Some(admitted.tht), late };
        let further = Further::Slots(admitted.tht);
        self.statistical_holds(step, seat, further).map_err(|why| self.denied(step, why))?;
        Ok((leg, offer, frame, Part::Slots(slots)))
    }
}
