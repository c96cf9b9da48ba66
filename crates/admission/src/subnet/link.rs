//! A point-to-point link whose sender schedules the packets of channels across segments by a discipline of
//! its settings (`TENET-4.2-5`, `TENET-4.2-6`, `TENET-4.2-7`), beside the slots of channels of the link
//! itself.
//!
//! The port serves announcements and open slots first, then packets by the discipline, then ordinary frames,
//! one by one. All are handed to the card under one limit, so that at most B of others' frames is ahead of
//! anything ([`link_blocking`]).
//!
//! *Slots keep their bound.* The lemma of `cable.rs` asks that at most B of other traffic is ahead of a slot
//! that opens, and that nothing but slots and announcements is handed over while one is open. Both hold
//! beside packets. The part of the ordinary share that slots and announcements leave is reserved below as a
//! flow, so that ordinary frames still get it, no longer in each window.
//!
//! *Packets keep theirs.* Let Σ be the work of all slots of a window W and of its announcements. Let a packet
//! due at t be late, and 0 the last instant before at which no slot was open and no packet due by t was
//! eligible. From 0 on the port serves announcements, slots, and packets due by t, behind B at most. Slots
//! that open in [0, t) and announcements take Σ·⌈t/W⌉ at most: **the exact test with s_0 = B + Σ, and Σ more
//! at each k·W + 1 ns** ([`EdfTable::set_above`]). For a level of RCSP the same work is Σ·⌈d_m/W⌉ =
//! Σ·N_o(d_m) of a flow of period W: it stands at the highest level that has a channel. A certificate states
//! W and Σ.
//!
//! The proof asks that a host is late once in a busy period, by J at most: J is part of the offered bound.

use super::{Ask, Certain, Offer, RTIP_OCTETS, Subnet, packet_cost, packet_span_up, payload_max};
use crate::cable::announcements_most;
use crate::link::LinkModel;
use crate::rtip::load::{load_up, share_up};
use crate::rtip::{Blocker, Denied, Discipline, EdfTable, Flow, NodeTest, Point, Scheduler, Traffic, rcsp};
use crate::{SegmentParams, link_blocking, link_window};
use core::ops::DerefMut;
use rota_units::{Octets, Span};

/// The longest bound that relaxing gives on a link: one that is longer leaves the others no more room that
/// counts, and each point of time below the longest bound takes a place in the table.
pub const LINK_DELAY_MAX: Span = Span::from_millis(200);
/// Flows of a port that are no channels: the share of ordinary traffic.
pub const LINK_FLOWS_OWN: usize = 1;
/// Points of demand for which a port's memory should have room.
pub const LINK_POINTS: usize = 1 << 16;
/// A step of the time that a packet's header carries.
const AHEAD_STEP: Span = Span::from_micros(16);
/// Levels of RCSP at a port.
pub const LINK_LEVELS: usize = crate::rtip::LEVELS;
/// Ordinary traffic has its share within so many cycles, and not before [`LINK_DELAY_MAX`]: slots of two
/// windows may be ahead of it.
const ORDINARY_CYCLES: u64 = 4;

/// One direction of a link, with the channels that stand on it.
#[derive(Clone, Debug)]
pub struct LinkPort<F, P> {
    params: SegmentParams,
    discipline: Discipline,
    /// Slots take so long in each window.
    units: Span,
    tests: Tests<F, P>,
}

/// The first flow is the port's own.
#[derive(Clone, Debug)]
enum Tests<F, P> {
    Edf(EdfTable<F, P>),
    Levels(Levels<F>),
}

/// Channels at levels; the bound of a flow names its level.
#[derive(Clone, Debug)]
struct Levels<F> {
    flows: F,
    standing: usize,
    blocking: Span,
    /// The flow that goes before packets.
    above: Flow,
    /// The last one is ordinary traffic's.
    bounds: [Span; LINK_LEVELS + 1],
}

/// The bounds of the levels of a port for which none are stated: each twice as long as the one above, the
/// first one twice what others may have ahead of it, in whole milliseconds.
pub fn link_levels(params: &SegmentParams) -> [Span; LINK_LEVELS] {
    let least = link_ahead(params, Span::ZERO) * 2;
    let first = Span::from_millis(least.as_nanos().div_ceil(1_000_000));
    core::array::from_fn(|level| first * (1 << level))
}

/// s_0 of a port whose slots take so long in a window: B, and all that may go before packets at once.
pub fn link_ahead(params: &SegmentParams, units: Span) -> Span {
    link_blocking(params) + units + announced(params)
}

/// The load of a port beside its channels, for certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLoad {
    /// The port serves levels.
    pub by_levels: bool,
    /// B: other traffic ahead of a packet.
    pub ordinary: Span,
    /// W.
    pub window: Span,
    /// Σ: announcements and slots of a window, which go before packets.
    pub work: Span,
}

impl PortLoad {
    /// The work before packets as a flow; none where a window has none.
    pub fn above(&self) -> Option<Flow> {
        let traffic = Traffic::periodic(self.window).ok().filter(|_| self.work > Span::ZERO)?;
        Some(Flow { traffic, service: self.work, delay: self.window })
    }
}

/// The load of a port beside its channels, whose slots take so long in a window, and the share of ordinary
/// traffic, which counts as a channel with its bound.
pub fn link_others(params: &SegmentParams, discipline: Discipline, units: Span) -> (PortLoad, (Ask, Span)) {
    let (window, work) = (link_window(params.trt), units + announced(params));
    let by_levels = discipline.scheduler == Scheduler::Rcsp;
    let (every, octets, delay) = ordinary(params);
    let delay = if by_levels { levels_of(params, discipline)[LINK_LEVELS] } else { delay };
    let ask = Ask { traffic: each(every), octets, octets_least: octets };
    (PortLoad { by_levels, ordinary: link_blocking(params), window, work }, (ask, delay))
}

/// The bounds of a port's levels; the last one is ordinary traffic's.
fn levels_of(params: &SegmentParams, discipline: Discipline) -> [Span; LINK_LEVELS + 1] {
    let levels = discipline.levels.or(link_levels(params));
    let last = ordinary(params).2.max(levels[LINK_LEVELS - 1] * 2);
    core::array::from_fn(|at| levels.get(at).copied().unwrap_or(last))
}

/// The offer for packets that have this bound on the port. Behind it a device on the cable may store a frame.
pub fn link_offer(link: &LinkModel, octets_least: Octets, delay: Span) -> Offer {
    Offer {
        delay: delay + link.host_slack,
        // The host may be quicker than its charge: only the wire's own time is sure.
        service_least: packet_span_up(link.rate, &link.framing, octets_least),
        link_least: Span::ZERO,
        link_most: link.frame_span_max(),
    }
}

/// By how much a node may state the time too small that a packet is ahead of its deadline: 16 µs of the
/// header, and what it counts of its own medium beyond the least. On a link that is what the card may have
/// ahead; on a RETHER segment its transit.
pub fn carried_step(transit: Option<Span>) -> Span {
    AHEAD_STEP + transit.unwrap_or(crate::LINK_AHEAD)
}

fn each(period: Span) -> Traffic {
    Traffic::periodic(period).expect("a window is longer than nothing and no longer than a second")
}

/// The payload of a packet that is as long as an announcement.
fn announcement() -> Octets {
    let headers = RTIP_OCTETS + u64::from(crate::Framing::ETHERNET.rota_octets);
    Octets::new(SegmentParams::ANNOUNCE_OCTETS.saturating_sub(headers).max(1))
}

/// The announcements of a window.
fn announced(params: &SegmentParams) -> Span {
    packet_cost(&params.link, announcement()) * announcements_most(params)
}

/// One full frame of ordinary traffic so often, and its bound.
fn ordinary(params: &SegmentParams) -> (Span, Octets, Span) {
    let full = payload_max(&params.link.framing);
    let percent = u64::from(params.nrt_share_percent).max(1);
    let every = Span::from_nanos((packet_cost(&params.link, full) * 100).as_nanos().div_ceil(percent));
    (every, full, every.max(params.trt * ORDINARY_CYCLES).max(LINK_DELAY_MAX))
}

/// The flow of all that goes before packets.
fn above(params: &SegmentParams, units: Span) -> Flow {
    let window = link_window(params.trt);
    Flow { traffic: each(window), service: units + announced(params), delay: window }
}

/// The load of a port that is no channel's.
pub(super) struct Windows {
    /// The work, in time, that goes before packets in a window.
    pub(super) work: Span,
    /// The share of ordinary traffic.
    pub(super) own: Flow,
}

impl<F, P> LinkPort<F, P>
where
    F: DerefMut<Target = [Flow]>,
    P: DerefMut<Target = [Point]>,
{
    /// A port without slots and channels. `flows` and `points` are its memory: one flow for each channel and
    /// [`LINK_FLOWS_OWN`], and [`LINK_POINTS`]. Their old values are overwritten.
    ///
    /// # Errors
    /// [`Denied`]: so slow a link has no room for any channel.
    pub fn new(params: SegmentParams, discipline: Discipline, flows: F, points: P) -> Result<Self, Denied> {
        assert!(flows.len() >= LINK_FLOWS_OWN, "room for the port's own flows");
        let (every, octets, delay) = ordinary(&params);
        let own = Flow { traffic: each(every), service: packet_cost(&params.link, octets), delay };
        let tests = if discipline.scheduler == Scheduler::Rcsp {
            let mut levels = Levels::new(&params, discipline, flows);
            let delay = levels.bounds[LINK_LEVELS];
            levels.flows[0] = Flow { delay, ..own };
            Tests::Levels(levels)
        } else {
            let ahead = link_ahead(&params, Span::ZERO);
            let mut table = EdfTable::new(ahead, flows, points);
            table.set_above(ahead, link_window(params.trt), announced(&params))?;
            table.admit(&own)?;
            Tests::Edf(table)
        };
        Ok(Self { params, discipline, units: Span::ZERO, tests })
    }

    /// Becomes like `other`, a port of the same segment, without the memory that neither uses.
    pub(super) fn copy(&mut self, other: &Self) {
        assert_eq!((self.params, self.discipline), (other.params, other.discipline), "of one segment");
        self.units = other.units;
        match (&mut self.tests, &other.tests) {
            (Tests::Edf(table), Tests::Edf(like)) => table.copy(like),
            (Tests::Levels(levels), Tests::Levels(like)) => levels.copy(like),
            _ => unreachable!("the discipline says which"),
        }
    }

    /// Its load without channels.
    pub(super) fn windows(&self) -> Windows {
        let (every, octets, delay) = ordinary(&self.params);
        let own = Flow { traffic: each(every), service: packet_cost(&self.params.link, octets), delay };
        Windows { work: announced(&self.params) + self.units, own }
    }

    /// How long its slots take in each window.
    pub const fn units(&self) -> Span {
        self.units
    }

    /// The segment.
    pub const fn params(&self) -> &SegmentParams {
        &self.params
    }

    /// All that goes before packets of the statistical class, and the share of ordinary traffic
    /// (`statistical.rs`).
    pub fn certain(&self) -> Certain {
        let (params, units) = (&self.params, self.units);
        let window = link_window(params.trt);
        let above = share_up((units + announced(params)).as_nanos().into(), window.as_nanos().into());
        let ordinary = load_up(&self.windows().own);
        let others = Certain { ahead: link_ahead(params, units), load: above, ordinary };
        self.channels().iter().map(Certain::of_flow).fold(others, |sum, flow| sum.and(&flow))
    }

    /// The discipline.
    pub const fn discipline(&self) -> Discipline {
        self.discipline
    }

    /// The channels, in the order of their places: each with its bound on the port, host slack apart.
    pub fn channels(&self) -> &[Flow] {
        let all = match &self.tests {
            Tests::Edf(table) => table.flows(),
            Tests::Levels(levels) => &levels.flows[..levels.standing],
        };
        &all[LINK_FLOWS_OWN..]
    }

    /// The flow of a channel with this bound on the port, host slack apart.
    fn flow(&self, ask: &Ask, delay: Span) -> Flow {
        Flow { traffic: ask.traffic, service: packet_cost(&self.params.link, ask.octets), delay }
    }

    fn offer(&self, ask: &Ask, delay: Span) -> Offer {
        link_offer(&self.params.link, ask.octets_least, delay)
    }

    /// The shortest bound on the port that the channel can have.
    fn shortest(&mut self, ask: &Ask) -> Result<Span, Denied> {
        let flow = self.flow(ask, Span::ZERO);
        match &mut self.tests {
            Tests::Edf(table) => table.best(&flow.traffic, flow.service),
            Tests::Levels(levels) => levels.best(&flow),
        }
    }

    /// The longest bound up to `delay` that the channel can have beside the others.
    fn longest(&mut self, ask: &Ask, delay: Span) -> Result<Span, Denied> {
        let flow = self.flow(ask, delay);
        match &mut self.tests {
            Tests::Edf(table) => {
                let best = table.best(&flow.traffic, flow.service)?;
                if best <= delay {
                    return Ok(delay.min(best.max(LINK_DELAY_MAX)));
                }
                let short = Denied::new(NodeTest::EdfExact, best.minus(delay));
                Err(Denied { nearest_delay: Some(best), ..short })
            }
            Tests::Levels(levels) => levels.lowest(&flow, None),
        }
    }

    /// A channel stands from now on, behind the others, with the shortest bound that it can have; its offer.
    ///
    /// # Errors
    /// [`Denied`] where no bound helps.
    pub fn admit_best(&mut self, ask: &Ask) -> Result<Offer, Denied> {
        let delay = self.shortest(ask)?;
        self.admit(ask, delay)?;
        Ok(self.offer(ask, delay))
    }

    /// A channel stands from now on, behind the others, with an offer that [`Subnet`] has made.
    ///
    /// # Errors
    /// [`Denied`]: it was made beside others than those that stand now.
    pub fn admit_offered(&mut self, ask: &Ask, offered: &Offer) -> Result<(), Denied> {
        self.admit(ask, offered.delay.minus(self.params.link.host_slack))
    }

    fn admit(&mut self, ask: &Ask, delay: Span) -> Result<(), Denied> {
        let flow = self.flow(ask, delay);
        match &mut self.tests {
            Tests::Edf(table) => table.admit(&flow),
            Tests::Levels(levels) => levels.admit(&flow),
        }
    }

    /// Gives the channel at this place the longest bound up to an offer of `delay`, and what it had where
    /// that is longer (`TENET-3.1-16`). Later channels fit that did not before.
    pub fn relax(&mut self, place: usize, ask: &Ask, delay: Span) -> Offer {
        let (index, had) = (LINK_FLOWS_OWN + place, self.channels()[place].delay);
        let delay = delay.minus(self.params.link.host_slack).max(had);
        let relaxed = match &mut self.tests {
            Tests::Edf(table) => {
                let delay = delay.min(had.max(LINK_DELAY_MAX));
                // Without room for the points of a longer bound the old one stands.
                if table.relax(index, delay).is_ok() { delay } else { had }
            }
            Tests::Levels(levels) => levels.relax(index, delay),
        };
        self.offer(ask, relaxed)
    }

    /// Removes the channel at this place; the last one takes it.
    pub fn release(&mut self, place: usize) {
        let index = LINK_FLOWS_OWN + place;
        match &mut self.tests {
            Tests::Edf(table) => table.release(index),
            Tests::Levels(levels) => {
                levels.standing -= 1;
                levels.flows[index] = levels.flows[levels.standing];
            }
        }
    }

    /// Slots take so long in each window from now on, if all channels keep their bounds beside them.
    ///
    /// # Errors
    /// [`Denied`], with what a packet would be late; nothing has changed.
    pub fn set_units(&mut self, units: Span) -> Result<(), Denied> {
        if units == self.units {
            // All that stands has been tested beside them.
            return Ok(());
        }
        let (params, first) = (&self.params, above(&self.params, units));
        match &mut self.tests {
            Tests::Edf(table) => {
                table.set_above(link_ahead(params, units), link_window(params.trt), first.service)
            }
            Tests::Levels(levels) => {
                let kept = core::mem::replace(&mut levels.above, first);
                levels.check(None, None).inspect_err(|_| levels.above = kept)
            }
        }?;
        self.units = units;
        Ok(())
    }

    /// All that is no channel, for a certificate.
    pub fn others(&self) -> (PortLoad, (Ask, Span)) {
        link_others(&self.params, self.discipline, self.units)
    }
}

impl<F: DerefMut<Target = [Flow]>> Levels<F> {
    fn new(params: &SegmentParams, discipline: Discipline, flows: F) -> Self {
        let (bounds, blocking) = (levels_of(params, discipline), link_blocking(params));
        Self { flows, standing: LINK_FLOWS_OWN, blocking, above: above(params, Span::ZERO), bounds }
    }

    fn level(&self, flow: &Flow) -> usize {
        self.bounds.iter().position(|bound| *bound == flow.delay).unwrap_or(LINK_LEVELS)
    }

    /// The test of all flows but the one at `without`, and of a further one at its level. The flow before
    /// packets is at the highest level that has any.
    fn check(&self, without: Option<usize>, with: Option<(&Flow, usize)>) -> Result<(), Denied> {
        let standing = || {
            let rest = self.flows[..self.standing].iter().enumerate();
            let rest = rest.filter(move |(at, _)| without != Some(*at));
            rest.map(|(_, flow)| (flow, self.level(flow))).chain(with)
        };
        let top = standing().map(|(_, level)| level).min().unwrap_or(LINK_LEVELS);
        let all = || standing().chain([(&self.above, top)]);
        rcsp::check(all, &self.bounds, self.blocking, Blocker::Below).map(|_| ())
    }

    fn copy(&mut self, other: &Self) {
        let Self { standing, blocking, above, bounds, .. } = *other;
        self.flows[..standing].copy_from_slice(&other.flows[..standing]);
        (self.standing, self.blocking, self.above, self.bounds) = (standing, blocking, above, bounds);
    }

    fn has_room(&self) -> Result<(), Denied> {
        let is_full = self.standing >= self.flows.len();
        if is_full { Err(Denied::new(NodeTest::TableFull, Span::ZERO)) } else { Ok(()) }
    }

    /// The bound of the highest level at which the flow fits.
    fn best(&self, flow: &Flow) -> Result<Span, Denied> {
        self.has_room()?;
        let mut denied = Denied::new(NodeTest::RcspLevel, Span::ZERO);
        for (level, bound) in self.bounds[..LINK_LEVELS].iter().enumerate() {
            match self.check(None, Some((flow, level))) {
                Ok(()) => return Ok(*bound),
                Err(why) => denied = why,
            }
        }
        Err(denied)
    }

    /// The bound of the lowest level that the flow's own one allows and at which it fits, in the place of the
    /// flow at `instead`.
    fn lowest(&self, flow: &Flow, instead: Option<usize>) -> Result<Span, Denied> {
        if instead.is_none() {
            self.has_room()?;
        }
        let bounds = &self.bounds[..LINK_LEVELS];
        let level = rcsp::lowest(flow.delay, bounds, |level| self.check(instead, Some((flow, level))))?;
        Ok(bounds[level])
    }

    fn admit(&mut self, flow: &Flow) -> Result<(), Denied> {
        self.has_room()?;
        self.check(None, Some((flow, self.level(flow))))?;
        self.flows[self.standing] = *flow;
        self.standing += 1;
        Ok(())
    }

    fn relax(&mut self, index: usize, delay: Span) -> Span {
        let flow = self.flows[index];
        let longest = self.lowest(&Flow { delay, ..flow }, Some(index));
        let delay = longest.map_or(flow.delay, |longest| longest.max(flow.delay));
        self.flows[index].delay = delay;
        delay
    }
}

impl<F, P> Subnet for LinkPort<F, P>
where
    F: DerefMut<Target = [Flow]>,
    P: DerefMut<Target = [Point]>,
{
    fn best(&mut self, ask: &Ask) -> Result<Offer, Denied> {
        let delay = self.shortest(ask)?;
        Ok(self.offer(ask, delay))
    }

    /// A longer bound costs nothing else here: the longest one is the cheapest.
    fn keeping(&mut self, ask: &Ask, delay: Span) -> Result<Offer, Denied> {
        let slack = self.params.link.host_slack;
        let longest = self.longest(ask, delay.minus(slack)).map_err(|denied| Denied {
            nearest_delay: denied.nearest_delay.map(|nearest| nearest + slack),
            ..denied
        })?;
        Ok(self.offer(ask, longest))
    }
}

/// The share of the port that a flow takes, in each cycle of so long: for monitors.
pub fn link_work(traffic: &Traffic, octets: Octets, params: &SegmentParams) -> Span {
    packet_cost(&params.link, octets) * traffic.half_open(params.trt)
}
