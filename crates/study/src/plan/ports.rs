//! The questions of a plan to the ports of its network, at each moment at which they matter, and the numbers
//! of a certificate.

use super::engine::{CLOCKS, Leg, Plan, number};
use super::ledger::{Entry, QUIET, Seat};
use super::ready;
use super::route::Step;
use super::statistical::Further;
use crate::certificate::document;
use rota_admission::LINK_SHARES_MAX;
use rota_admission::certificate::{
    Branch, FlowTerms, FrameTerms, HopTerms, Life, NetworkTerms, NoCertificate, NodeTerms, PromiseTerms,
    RetherTerms, Standing, Terms, certify, port_terms, rether_terms,
};
use rota_admission::rtip::{Chance, Denied, Discipline, Flow, NodeTest, Point, Regulator, Traffic};
use rota_admission::subnet::{
    Ask, LINK_DELAY_MAX, LINK_FLOWS_OWN, LINK_POINTS, Offer, PartedPort, PortLoad, RetherSegment,
    RetherShare, Subnet, carried_step, hop_pace, link_others,
};
use rota_lab::Medium;
use rota_units::Span;
use serde_json::Value;

/// One direction of a cable: the tests that its node runs, and its channels.
pub(super) type Port = PartedPort<Vec<Flow>, Vec<Point>>;

/// An offer of nothing.
pub(super) const NO_OFFER: Offer =
    Offer { delay: Span::ZERO, service_least: Span::ZERO, link_least: Span::ZERO, link_most: Span::ZERO };

/// A refusal, and the moment of the plan from which on it holds.
pub(super) type DeniedAt = (Denied, Span);

/// The bound that a channel wants of a port.
#[derive(Clone, Copy)]
pub(super) enum Want {
    /// The shortest one.
    Best,
    /// The cheapest one of this length or less.
    Keeping(Span),
}

impl Want {
    fn most(self) -> Span {
        match self {
            Self::Best => Span::MAX,
            Self::Keeping(most) => most,
        }
    }

    fn of(self, subnet: &mut dyn Subnet, ask: &Ask) -> Result<Offer, Denied> {
        match self {
            Self::Best => subnet.best(ask),
            Self::Keeping(most) => subnet.keeping(ask, most),
        }
    }
}

/// The refusal of a bound below the shortest one that fits.
pub(super) fn too_long(test: NodeTest, shortest: Span, most: Span) -> Denied {
    Denied { nearest_delay: Some(shortest), ..Denied::new(test, shortest.minus(most)) }
}

impl Plan<'_> {
    pub(super) fn discipline(&self, segment: usize) -> Discipline {
        self.topology.segments[segment].discipline
    }

    pub(super) fn is_ring(&self, step: &Step) -> bool {
        self.topology.segments[step.segment].medium != Medium::Link
    }

    /// How the node of a step holds packets: by the discipline of its port, where that is one of a cable.
    pub(super) fn regulator(&self, route: &[Step], n: usize, late: Chance) -> Regulator {
        let before = n.checked_sub(1).map(|before| &route[before]);
        if self.is_ring(&route[n]) {
            return Regulator::Rate;
        }
        let step = before.map_or(Span::ZERO, |before| {
            let transit = self.params[before.segment].transit();
            carried_step((self.is_ring(before)).then_some(transit))
        });
        // A packet that was late before goes on at once.
        match late > Chance::NEVER {
            true => Regulator::DelayAhead { step },
            false => self.discipline(route[n].segment).regulator(step),
        }
    }

    /// The number of a channel's partition on a segment: 0 where it has none.
    pub(super) fn part(&self, segment: usize, seat: &Seat) -> u8 {
        let names = &self.partitions[segment].names;
        let at = seat.partition.as_ref().and_then(|name| names.iter().position(|known| known == name));
        at.map_or(0, |at| at as u8 + 1)
    }

    /// The bound of a step, and on a segment under a token the share.
    pub(super) fn ask(
        &self,
        step: &Step,
        seat: &Seat,
        ask: &Ask,
        want: Want,
    ) -> Result<(Offer, Leg), DeniedAt> {
        let trt = self.is_ring(step).then_some(self.params[step.segment].trt);
        hop_pace(&ask.traffic, seat.at_once(), trt).map_err(|why| (why, seat.life.start))?;
        if self.is_ring(step) {
            let (share, moment, tht) = self.ring_share(step, seat, ask, want)?;
            let offer = self.on_ring(step, seat, moment, |part| Ok(part.offer(ask, &share)));
            let (delay, late) = (share.delay, Chance::NEVER);
            let leg = Leg { step: *step, delay, share: Some(share), moment, tht: Some(tht), late };
            return Ok((offer.map_err(|why| (why, moment))?, leg));
        }
        let (late, start) = (seat.late, seat.life.start);
        if late > Chance::NEVER {
            let offer = self.ask_statistical(step, seat, ask, want)?;
            let (step, delay) = (*step, offer.delay);
            return Ok((offer, Leg { step, delay, share: None, moment: start, tht: None, late }));
        }
        let mut offer: Option<Offer> = None;
        for at in self.ledger.moments(step.segment, seat) {
            let one = self.ask_cable(step, seat, at, ask, want).map_err(|why| (why, at))?;
            // A bound that one set allows is allowed to be longer: the longest one fits all sets.
            offer = Some(offer.map_or(one, |before| if before.delay < one.delay { one } else { before }));
        }
        // As nodes do it: the promises to the statistical class hold beside what the others have room for.
        let lanes = seat.group.map_or(1, |(_, at_once)| at_once);
        self.statistical_holds(step, seat, Further::Packets(ask, lanes))?;
        let (offer, delay) = (offer.unwrap_or(NO_OFFER), offer.map_or(Span::ZERO, |offer| offer.delay));
        Ok((offer, Leg { step: *step, delay, share: None, moment: start, tht: None, late }))
    }

    /// A share at all moments: with its longest bound, the moment that has it, and its longest THT.
    fn longest(
        &self,
        step: &Step,
        seat: &Seat,
        moments: &[Span],
        share: impl Fn(&RetherSegment<'_>) -> Result<RetherShare, Denied>,
    ) -> Result<(RetherShare, Span, Span), DeniedAt> {
        let all = moments.iter().map(|at| {
            let share = self.on_ring(step, seat, *at, &share);
            share.map(|share| (share, *at, share.admitted.tht)).map_err(|why| (why, *at))
        });
        let longest = all.reduce(|one, other| {
            let (one, other) = (one?, other?);
            let tht = one.2.max(other.2);
            let (share, at, _) = if one.0.delay < other.0.delay { other } else { one };
            Ok((share, at, tht))
        });
        longest.expect("a channel has a start")
    }

    /// The share that nodes ask for, which no longer bound makes cheaper: with its longest bound, the moment
    /// that has it, and its longest THT. A station has one for all members of a group.
    fn ring_share(
        &self,
        step: &Step,
        seat: &Seat,
        ask: &Ask,
        want: Want,
    ) -> Result<(RetherShare, Span, Span), DeniedAt> {
        let start = seat.life.start;
        let member = seat.group.and_then(|(group, _)| self.ledger.member(step, group));
        let found = match member.and_then(|entry| Some((entry.share?, start, entry.tht?))) {
            Some(standing) => standing,
            None => {
                let moments = self.ledger.moments(step.segment, seat);
                self.longest(step, seat, &moments, |part| part.at_peaks(ask, seat.at_once()))?
            }
        };
        let best = found.0.delay;
        match best <= want.most() {
            true => Ok(found),
            false => Err((too_long(NodeTest::RetherShare, best, want.most()), start)),
        }
    }

    /// The segment of a step as its station sees it at a moment.
    pub(super) fn on_ring<R>(
        &self,
        step: &Step,
        seat: &Seat,
        at: Span,
        ask: impl FnOnce(&RetherSegment<'_>) -> Result<R, Denied>,
    ) -> Result<R, Denied> {
        let partition = self.part(step.segment, seat);
        let (slots, receivers) = self.ledger.ring(step.segment, at, seat.channel);
        ask(&RetherSegment {
            params: self.params[step.segment],
            slots: &slots,
            station: number(step.station),
            periodic: false,
            receives: receivers.contains(&step.station),
            partition,
        })
    }

    /// The channels of a cable's port at a moment, without those of the own group. A group has as many
    /// reservations there as members send at once, from its first member to its last.
    fn standing(&self, step: &Step, at: Span, seat: &Seat) -> Vec<&Entry> {
        let mut known: Vec<usize> = seat.group.iter().map(|(group, _)| *group).collect();
        let mut all = Vec::new();
        for entry in self.ledger.at(step.segment, at, seat.channel) {
            let lanes = match entry.seat.group {
                _ if entry.station != step.station || entry.tht.is_some() => 0,
                // Statistical channels are in no test of guaranteed ones.
                _ if entry.seat.late > Chance::NEVER => 0,
                None => 1,
                Some((group, _)) if known.contains(&group) => 0,
                Some((group, at_once)) => {
                    known.push(group);
                    at_once
                }
            };
            all.extend(std::iter::repeat_n(entry, lanes));
        }
        all
    }

    /// The bound of the members of a channel's group at the port of a step, if it has any.
    fn bound_of_members(&self, step: &Step, seat: &Seat, group: usize) -> Option<Span> {
        let mut all = self.ledger.at(step.segment, seat.life.start, seat.channel);
        let is_ours = |entry: &&Entry| {
            entry.station == step.station && entry.seat.group.is_some_and(|(of, _)| of == group)
        };
        all.find(is_ours).map(|entry| entry.delay)
    }

    /// Asks the port of a cable with its channels of a moment.
    pub(super) fn on_cable<R>(
        &self,
        step: &Step,
        at: Span,
        seat: &Seat,
        ask: impl FnOnce(&mut Port) -> Result<R, Denied>,
    ) -> Result<R, Denied> {
        let all = self.standing(step, at, seat);
        let channels = all.iter().map(|entry| (entry.part, entry.ask, entry.delay)).collect();
        let (segment, units) = (step.segment, self.units(step, seat));
        self.ready.ask(ready::Standing { segment, units, channels }, || self.empty(segment), ask)
    }

    /// The port of a cable without channels, and how many tables it has.
    fn empty(&self, segment: usize) -> Result<(Port, usize), Denied> {
        let traffic = Traffic::periodic(Span::from_millis(1)).expect("a sound period");
        let none = Flow { traffic, service: Span::ZERO, delay: Span::ZERO };
        let mut tables = 0;
        let memory = || {
            tables += 1;
            (vec![none; LINK_SHARES_MAX + LINK_FLOWS_OWN], vec![Point::default(); LINK_POINTS])
        };
        let (params, shares) = (self.params[segment], self.partitions[segment].shares);
        let port = Port::new(params, self.discipline(segment), shares, memory)?;
        Ok((port, tables))
    }

    fn ask_cable(&self, step: &Step, seat: &Seat, at: Span, ask: &Ask, want: Want) -> Result<Offer, Denied> {
        let part = self.part(step.segment, seat);
        let Some((group, at_once)) = seat.group else {
            return self.on_cable(step, at, seat, |port| want.of(&mut port.part(part), ask));
        };
        let had = self.bound_of_members(step, seat, group);
        let mut offer = self.on_cable(step, at, seat, |port| grouped(port, ask, at_once))?;
        // Theirs must not become longer.
        if let Some(had) = had.filter(|had| *had < offer.delay) {
            offer.delay = had;
            let admit = |port: &mut Port| (0..at_once).try_for_each(|_| port.admit_offered(0, ask, &offer));
            self.on_cable(step, at, seat, admit)?;
        }
        let most = want.most();
        if offer.delay > most {
            return Err(too_long(NodeTest::EdfExact, offer.delay, most));
        }
        // As long as the others have it, or as a port gives one: it takes nothing of theirs.
        let longest = match want {
            Want::Best => offer.delay,
            Want::Keeping(most) => most.min(had.unwrap_or(offer.delay.max(LINK_DELAY_MAX))),
        };
        Ok(Offer { delay: longest, ..offer })
    }

    /// The bound of a cable's port, without what its host may be late.
    fn on_port(&self, step: &Step, delay: Span) -> Span {
        delay.minus(self.params[step.segment].link.host_slack)
    }

    /// How long the slots of a cable's own channels take in a window.
    pub(super) fn units(&self, step: &Step, seat: &Seat) -> Span {
        self.ledger.loads(step, seat.channel).sum()
    }

    /// The load of a cable's port beside channels, and the share of ordinary traffic.
    fn others(&self, step: &Step, seat: &Seat) -> (PortLoad, (Ask, Span)) {
        link_others(&self.params[step.segment], self.discipline(step.segment), self.units(step, seat))
    }

    /// The channels of a cable's port in the life of a new one, each with its bound: the share of ordinary
    /// traffic, those that stand, and the new one with its group, which is the last one.
    fn flows(&self, leg: &Leg, seat: &Seat, ask: &Ask) -> Vec<Standing> {
        let step = &leg.step;
        let mut all = vec![Standing::always(self.others(step, seat).1)];
        let mut known: Vec<usize> = seat.group.iter().map(|(group, _)| *group).collect();
        for entry in self.ledger.guaranteed(step, seat.channel) {
            let lanes = match entry.seat.group {
                None => 1,
                Some((group, _)) if known.contains(&group) => 0,
                Some((group, at_once)) => {
                    known.push(group);
                    at_once
                }
            };
            let (life, delay) = (entry.seat.life, self.on_port(step, entry.delay));
            if life.meets(&seat.life) {
                let life = life_of(life);
                all.extend(std::iter::repeat_n(Standing { ask: entry.ask, delay, life }, lanes));
            }
        }
        let lanes = seat.group.map_or(1, |(_, at_once)| at_once);
        let (delay, life) = (self.on_port(step, leg.delay), life_of(seat.life));
        all.extend(vec![Standing { ask: *ask, delay, life }; lanes]);
        all
    }

    /// The test of a cable's port for a certificate. Where some channel ends no busy period may be longer
    /// than [`QUIET`].
    fn port_stated<'m>(
        &self,
        leg: &Leg,
        seat: &Seat,
        all: &[Standing],
        Memory { flows, terms, .. }: &'m mut Memory,
    ) -> Result<NetworkTerms<'m>, Denied> {
        let none = |of: &Standing| Flow { traffic: of.ask.traffic, service: Span::ZERO, delay: Span::ZERO };
        (*flows, *terms) = (all.iter().map(none).collect(), vec![FlowTerms::default(); all.len()]);
        let (link, load) = (&self.params[leg.step.segment].link, self.others(&leg.step, seat).0);
        let made = port_terms(link, &load, all, all.len() - 1, flows, terms)?;
        let ends = seat.life.end.is_some() || self.ledger.has_end(&leg.step);
        if let NetworkTerms::Port(port, _) = made
            && let quiet = CLOCKS.longer(Span::from_nanos(port.horizon))
            && ends
            && quiet > QUIET
        {
            return Err(Denied::new(NodeTest::Undecided, quiet.minus(QUIET)));
        }
        Ok(made)
    }

    /// The share of a ring at each moment of a channel's life.
    fn ring_stated(
        &self,
        leg: &Leg,
        seat: &Seat,
        ask: &Ask,
        share: &RetherShare,
    ) -> Result<Vec<RetherTerms>, DeniedAt> {
        let moments = self.ledger.moments(leg.step.segment, seat).into_iter();
        let stated = |at: Span| {
            let of = |part: &RetherSegment<'_>| {
                let then = part.share(ask, share.pace)?;
                Ok(rether_terms(part, ask, &then, at))
            };
            self.on_ring(&leg.step, seat, at, of).map_err(|why| (why, at))
        };
        moments.map(stated).collect()
    }

    /// The certificate of a channel with these hops and the ways over them. It states what stands before it.
    pub(super) fn certified(
        &self,
        terms: &Terms,
        seat: &Seat,
        ask: &Ask,
        (legs, branches): (&[Leg], &[Branch<'_>]),
    ) -> Result<Value, (Step, DeniedAt)> {
        let mut memory: Vec<Memory> = legs.iter().map(|_| Memory::default()).collect();
        let mut parts: Vec<HopTerms<'_>> = Vec::new();
        for (leg, memory) in legs.iter().zip(&mut memory) {
            let refused = |why| (leg.step, why);
            let network = match &leg.share {
                Some(share) => {
                    memory.shares = self.ring_stated(leg, seat, ask, share).map_err(refused)?;
                    NetworkTerms::Rether(&memory.shares)
                }
                None => {
                    let all = self.flows(leg, seat, ask);
                    let made = self.port_stated(leg, seat, &all, memory);
                    made.map_err(|why| refused((why, seat.life.start)))?
                }
            };
            let frame = FrameTerms::of(&self.params[leg.step.segment].link);
            parts.push(HopTerms { node: NodeTerms::default(), frame, network });
        }
        let mut promises = vec![PromiseTerms::default(); branches.len()];
        match certify(terms, branches, &mut parts, &mut promises) {
            Ok(certificate) => Ok(document::write(&certificate)),
            Err(NoCertificate::Traffic(_) | NoCertificate::Path(_)) => unreachable!("both were tested"),
        }
    }
}

/// The memory that a certificate borrows.
#[derive(Default)]
struct Memory {
    flows: Vec<Flow>,
    terms: Vec<FlowTerms>,
    shares: Vec<RetherTerms>,
}

/// A life as certificates have it.
fn life_of(life: super::ledger::Life) -> Life {
    Life { from: life.start, until: life.end }
}

/// The bound of a group of so many reservations at a port without them, on which they stand from now on, one
/// after another, each with its shortest bound. A longer bound never invalidates a set, so all of them fit
/// with the longest of these.
fn grouped(port: &mut Port, ask: &Ask, lanes: usize) -> Result<Offer, Denied> {
    let mut longest = NO_OFFER;
    for _ in 0..lanes {
        let offer = port.part(0).best(ask)?;
        port.admit_offered(0, ask, &offer)?;
        if offer.delay > longest.delay {
            longest = offer;
        }
    }
    Ok(longest)
}
