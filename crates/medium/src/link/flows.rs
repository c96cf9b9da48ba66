//! Packets of channels across segments on this end of a link, scheduled one by one by the discipline of the
//! settings (`TENET-4.2-5` to `TENET-4.2-7`, `TENET-4.2-11`).
//!
//! A flow is a session that has no slots: its share is its place among the tests of the port
//! (`rota_admission`, `subnet/link.rs`), which also has the proof for slots and packets on one link. Its
//! packets leave in their order, and of several flows the packet with the earliest deadline goes first, or
//! of RCSP the one at the highest level, and there the one that was eligible first. Flows of the statistical
//! class go behind all others.

use super::Link;
use super::booked::NoRoom;
use super::groups;
use super::left::Left;
use super::shares::{Session, Shares, State};
use super::slots::Queue;
use super::statistical::Statistical;
use crate::door::{Due, FlowShare, GroupShare, Life, PartitionLoad, SessionId, Share, UNITS_WAITING_MAX};
use crate::event::MediumEvent;
use crate::settings::Settings;
use rota_admission::certificate;
use rota_admission::rtip::{Chance, Denied, Discipline, Flow, NodeTest, Point, Scheduler, Traffic};
use rota_admission::subnet::{
    Ask, Certain, LINK_FLOWS_OWN, LINK_POINTS, Offer, PartedPort, Partitions, PortLoad, RTIP_OCTETS, Subnet,
    largest_packet, link_work,
};
use rota_admission::{Admitted, LINK_SHARES_MAX, LinkModel, Pace, Refusal, SegmentParams, refused_by_port};
use rota_units::{Instant, Octets, Span};

/// The packets of one flow that wait.
#[derive(Clone, Debug)]
pub(super) struct Packets {
    pub(super) ask: Ask,
    /// The number of its partition.
    pub(super) partition: u8,
    /// When it counts.
    pub(super) life: Life,
    /// The chance of a late packet: above zero in the statistical class. One that has no room there, and
    /// has room among the guaranteed flows, is one of them.
    pub(super) late: Chance,
    /// It is refused instead.
    is_by_chance_alone: bool,
    /// The group that it is a member of.
    group: Option<GroupShare>,
    pub(super) waits: Queue<Due, UNITS_WAITING_MAX>,
    /// Its bound on the port.
    delay: Span,
    /// How many have left: a grant that none has used takes the first one away.
    left: u64,
    /// When the newest one came.
    came: Option<Instant>,
}

impl Packets {
    /// Of a session that asks for this flow.
    pub(super) fn of(share: &Share, flow: FlowShare) -> Self {
        let Share { unit_octets_max, partition, .. } = *share;
        let octets = Octets::new(u64::from(unit_octets_max).saturating_sub(RTIP_OCTETS).max(1));
        let FlowShare { traffic, life, late, is_late_before: is_by_chance_alone, group } = flow;
        let ask = Ask { traffic, octets, octets_least: Octets::new(1) };
        let (waits, delay, left, came) = (Queue::new(Due::default()), Span::ZERO, 0, None);
        Self { ask, partition, life, late, is_by_chance_alone, group, waits, delay, left, came }
    }

    fn is_statistical(&self) -> bool {
        self.late > Chance::NEVER
    }

    /// One more waits.
    pub(super) fn join(&mut self, now: Instant, due: Due) {
        self.came = Some(now);
        self.waits.push(due);
    }

    /// When the newest one came.
    pub(super) const fn came(&self) -> Option<Instant> {
        self.came
    }

    /// The first packet has left, or was given up.
    pub(super) fn leave(&mut self) {
        self.left += 1;
        self.waits.pop();
    }
}

/// The grant of one packet that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    pub(super) session: SessionId,
    number: u32,
    left: u64,
}

/// The port of a flow.
#[derive(Clone, Debug)]
pub struct FlowPort {
    /// Its load beside channels.
    pub load: PortLoad,
    /// All that is served now and later, with its bound on the port and its life from now on.
    pub flows: Vec<certificate::Standing>,
    /// The place of the flow among them.
    pub own: usize,
}

pub(super) type PortTests = PartedPort<Box<[Flow]>, Box<[Point]>>;

/// The tests of the port, with the sessions in the order of its channels. Their memory is taken with the
/// first flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Flows {
    pub(super) port: Option<PortTests>,
    /// By what it was made.
    spec: Option<(SegmentParams, Discipline, Partitions)>,
    /// Those of the guaranteed class.
    pub(super) sessions: Vec<Standing>,
    /// Those that count only later.
    pub(super) booked: Vec<Standing>,
    /// When a life begins or ends next.
    pub(super) change: Instant,
    statistical: Statistical,
    /// Those that have left, and may still be ahead of the statistical class.
    pub(super) left: Left,
    /// Those of which sessions are members. Their lanes stand among the sessions.
    pub(super) groups: Vec<groups::Standing>,
    served: Option<Served>,
}

/// A session among the channels of the port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) id: SessionId,
    pub(super) ask: Ask,
    pub(super) partition: u8,
    pub(super) life: Life,
    /// Its bound, the host's slack included.
    pub(super) delay: Span,
}

impl Standing {
    /// Counts in the tests of a port, with the bound that it was given.
    pub(super) fn admit_to(&self, port: &mut PortTests) -> Result<(), Denied> {
        let none = Span::ZERO;
        let offer = Offer { delay: self.delay, service_least: none, link_least: none, link_most: none };
        port.admit_offered(self.partition, &self.ask, &offer)
    }
}

/// The refusal of a port whose tests cannot be made.
pub(super) const fn no_port() -> Denied {
    Denied::new(NodeTest::Load, Span::ZERO)
}

impl Flows {
    /// None; the memory of the tests is taken with the first one.
    pub(super) fn new() -> Self {
        Self { change: Instant::FAR, ..Self::default() }
    }

    fn place(&self, id: SessionId) -> Option<usize> {
        self.sessions.iter().position(|of| of.id == id)
    }

    /// The tests of the port, their memory taken.
    fn port(&mut self, settings: &Settings) -> Result<&mut PortTests, Denied> {
        if self.port.is_none() {
            self.spec = Some((settings.params(2), settings.discipline, settings.partitions.shares()));
            self.port = Some(self.empty_port()?);
        }
        self.port.as_mut().ok_or(no_port())
    }

    /// A port of the same settings without channels.
    pub(super) fn empty_port(&self) -> Result<PortTests, Denied> {
        let (params, discipline, shares) = self.spec.ok_or(no_port())?;
        let traffic = Traffic::periodic(params.trt).map_err(|_| no_port())?;
        let none = Flow { traffic, service: Span::ZERO, delay: Span::ZERO };
        let memory = || {
            let flows = vec![none; LINK_SHARES_MAX + LINK_FLOWS_OWN].into_boxed_slice();
            (flows, vec![Point::default(); LINK_POINTS].into_boxed_slice())
        };
        PartedPort::new(params, discipline, shares, memory)
    }

    /// The share of a flow is given back, whose newest packet came then.
    pub(super) fn remove(&mut self, now: Instant, id: SessionId, came: Option<Instant>) {
        self.served = self.served.filter(|served| served.session != id);
        self.booked.retain(|of| of.id != id);
        self.statistical.remove(id);
        // The lanes of a group go on under the number of another member.
        let (heir, came) = self.leave_group(id, came);
        if let Some(heir) = heir {
            self.sessions.iter_mut().filter(|of| of.id == id).for_each(|of| of.id = heir);
        }
        while let Some(place) = self.place(id) {
            let Standing { ask, life, .. } = self.take_out(place);
            // A packet that came before its start counts as of then.
            self.note_left(now, &ask, came.map(|came| came.max(life.from)));
        }
        self.note_change();
    }

    /// These packets may still be ahead of the statistical class, the newest of which came then.
    fn note_left(&mut self, now: Instant, ask: &Ask, came: Option<Instant>) {
        let horizon = self.horizon();
        if let Some(port) = &self.port {
            self.left.flow(now, (&port.whole().params().link, ask), came, horizon);
        }
    }

    /// All are gone, and the link with them.
    pub(super) fn clear(&mut self) {
        self.statistical.clear();
        while let Some(of) = self.sessions.last().or(self.booked.last()) {
            self.remove(Instant::ZERO, of.id, None);
        }
        self.left.clear();
    }
}

impl Flows {
    /// A flow of the statistical class stands from now on.
    fn admit_statistical(&mut self, now: Instant, id: SessionId, packets: &Packets) -> Result<Offer, Denied> {
        let (link, certain) = self.statistical_fits(now, packets, true)?;
        self.statistical.admit(&link, &certain, id, (&packets.ask, packets.late))
    }

    /// The tests of such a flow; the link, and all that it fits beside. They are proved for a port that is
    /// not divided, and for all times.
    fn statistical_fits(
        &mut self,
        now: Instant,
        packets: &Packets,
        thorough: bool,
    ) -> Result<(LinkModel, Certain), Denied> {
        let certain = self.certain(now, self.horizon(), thorough)?;
        let port = self.port.as_ref().ok_or(no_port())?;
        if port.is_divided() || packets.partition != 0 || packets.life != Life::ALWAYS {
            return Err(Denied::new(NodeTest::Overflow, Span::ZERO));
        }
        let (link, asked) = (port.whole().params().link, (&packets.ask, packets.late));
        if self.statistical.best(&link, &certain, asked)?.delay <= self.horizon() {
            return Ok((link, certain));
        }
        // A bound that is longer than all others has to hold beside what the others need not count.
        let certain = self.certain(now, Span::MAX, thorough)?;
        self.statistical.best(&link, &certain, asked)?;
        Ok((link, certain))
    }

    /// A flow of the guaranteed class stands from now on.
    fn admit_guaranteed(
        &mut self,
        now: Instant,
        id: SessionId,
        packets: &Packets,
        units: Span,
    ) -> Result<Offer, NoRoom> {
        let offer = match &packets.group {
            Some(group) => self.admit_member(now, id, (packets, group), units)?,
            None => self.admit(now, id, packets, units)?,
        };
        // The promises to the statistical class hold beside it, too.
        if let Err(denied) = self.statistical_holds(now, true) {
            self.remove(now, id, None);
            return Err((denied, None));
        }
        Ok(offer)
    }

    /// The tests of a flow that would stand at once and for ever, and in no group.
    fn would_fit(&mut self, now: Instant, of: &Packets, units: Span, thorough: bool) -> Result<(), Denied> {
        if of.is_statistical() {
            let fits = self.statistical_fits(now, of, thorough);
            if fits.is_ok() || of.is_by_chance_alone {
                return fits.map(drop);
            }
        }
        let beside = self.certain(now, self.horizon(), thorough)?;
        if thorough {
            self.longest_at_starts(now, of, units).map_err(|(denied, _)| denied)?;
        }
        let port = self.port.as_mut().ok_or(no_port())?;
        port.part(of.partition).best(&of.ask)?;
        let own = Certain::of(&port.whole().params().link, &of.ask);
        self.statistical.check(&beside.and(&own))
    }

    /// H of the proof of the statistical class.
    pub(super) fn horizon(&self) -> Span {
        self.statistical.horizon()
    }

    /// The promises to the statistical class hold, beside what stands now or `thorough` beside all.
    fn statistical_holds(&self, now: Instant, thorough: bool) -> Result<(), Denied> {
        match self.statistical.is_empty() {
            true => Ok(()),
            false => self.statistical.check(&self.certain(now, self.horizon(), thorough)?),
        }
    }
}

impl Flows {
    /// A flow that counts now leaves the tests for a moment.
    fn take_out(&mut self, place: usize) -> Standing {
        let standing = self.sessions.swap_remove(place);
        if let Some(port) = &mut self.port {
            port.release(place, standing.partition, &standing.ask);
        }
        standing
    }

    /// A flow counts from now on, with the bound that it was given.
    pub(super) fn stand(&mut self, standing: Standing) -> Result<(), Denied> {
        standing.admit_to(self.port.as_mut().ok_or(no_port())?)?;
        self.sessions.push(standing);
        self.note_change();
        Ok(())
    }

    /// A flow stands from now on, within this bound, beside all promises.
    fn admit_within(
        &mut self,
        now: Instant,
        id: SessionId,
        (packets, units): (&Packets, Span),
        (most, is_less): (Span, bool),
    ) -> Result<(), Denied> {
        let offer = self.admit(now, id, packets, units).map_err(|(denied, _)| denied)?;
        let late = offer.delay.minus(most);
        let holds = match late > Span::ZERO {
            true => {
                let nearest_delay = Some(offer.delay);
                Err(Denied { nearest_delay, ..Denied::new(NodeTest::EdfExact, late) })
            }
            // The promises that held beside more hold beside less.
            false if is_less => Ok(()),
            false => self.statistical_holds(now, true),
        };
        holds.inspect_err(|_| {
            if let Some(place) = self.place(id) {
                self.take_out(place);
                self.note_change();
            }
        })
    }
}

impl Shares {
    /// Packets keep their bounds beside slots of so much a window. Those that are booked are looked at where
    /// it is `thorough`, which takes long.
    pub(super) fn packets_allow(&mut self, now: Instant, units: Span, thorough: bool) -> Result<(), Denied> {
        let flows = &mut self.flows;
        if thorough {
            flows.booked_allow(units)?;
        }
        let is_needed = !flows.sessions.is_empty() || !flows.statistical.is_empty();
        match &mut flows.port {
            Some(port) if port.is_divided() || is_needed => {
                let had = port.whole().units();
                port.set_units(units)?;
                flows.statistical_holds(now, thorough).inspect_err(|_| {
                    let stands = flows.port.as_mut().map_or(Ok(()), |port| port.set_units(had));
                    debug_assert!(stands.is_ok(), "these slots stood before");
                })
            }
            _ => Ok(()),
        }
    }

    /// The slots that are charged now, as the tests of packets count them: so much a window.
    pub(super) fn count_units(&mut self, now: Instant) -> Result<Span, Denied> {
        self.load_without(now, SessionId(u64::MAX));
        let units = self.loads.iter().copied().sum();
        if let Some(port) = &mut self.flows.port {
            port.set_units(units)?;
        }
        Ok(units)
    }
}

impl Link {
    /// Decides a request for a flow.
    pub(super) fn admit_flow(
        &mut self,
        now: Instant,
        id: SessionId,
        packets: &mut Packets,
    ) -> Result<Admitted, Refusal> {
        let (offer, params) = (self.ask_port(now, id, packets), self.settings.params(2));
        let offer = offer.map_err(|(denied, free_until)| {
            // The node looks for the nearest messages by `would_fit`.
            let mut refused = refused_by_port(Pace::EVERY_CYCLE, &denied, &params);
            refused.free_until = free_until;
            refused
        })?;
        packets.delay = offer.delay;
        let tht = link_work(&packets.ask.traffic, packets.ask.octets, &params);
        let none = Span::ZERO;
        Ok(Admitted { tht, offset: none, bound: offer.delay, t_nrt: none, gap: none, spare: none })
    }

    fn ask_port(&mut self, now: Instant, id: SessionId, packets: &mut Packets) -> Result<Offer, NoRoom> {
        let at_once = |denied| (denied, None);
        let units = self.ready_port(now).map_err(at_once)?;
        let flows = &mut self.shares.flows;
        if !packets.is_statistical() {
            return flows.admit_guaranteed(now, id, packets, units);
        }
        let denied = match flows.admit_statistical(now, id, packets) {
            Ok(offer) => return Ok(offer),
            Err(denied) if packets.is_by_chance_alone => return Err(at_once(denied)),
            Err(denied) => denied,
        };
        // A guaranteed flow keeps every chance.
        let late = core::mem::replace(&mut packets.late, Chance::NEVER);
        flows.admit_guaranteed(now, id, packets, units).map_err(|_| {
            packets.late = late;
            at_once(denied)
        })
    }

    /// The tests of the port are there, and count the slots that are charged now: so much a window.
    pub(super) fn ready_port(&mut self, now: Instant) -> Result<Span, Denied> {
        self.shares.flows.port(&self.settings)?;
        self.shares.count_units(now)
    }

    /// On a divided link the rest has the slots as well, so its tests are there from the first one on.
    pub(super) fn divide_port(&mut self) -> Result<(), Denied> {
        if self.settings.partitions.is_none() {
            return Ok(());
        }
        self.shares.flows.port(&self.settings).map(|_| ())
    }

    /// The channels in each partition of the link, the rest first: one for each of the settings.
    pub fn partition_loads(&self) -> impl Iterator<Item = PartitionLoad> + '_ {
        let params = self.settings.params(2);
        self.settings.partitions.iter().map(move |(number, ..)| {
            let own = self.shares.flows.sessions.iter().filter(|of| of.partition == number);
            let work = own.clone().map(|of| link_work(&of.ask.traffic, of.ask.octets, &params)).sum();
            let channels = own.count().saturating_add_signed(self.shares.flows.members_beyond_lanes(number));
            PartitionLoad { channels, work }
        })
    }

    /// True if a flow of this share, which is in no group and stands at once and for ever, would be admitted
    /// beside those that stand now. `thorough` looks at what is booked, too, which takes long.
    pub fn would_fit(&mut self, now: Instant, share: &Share, thorough: bool) -> bool {
        let Some(flow) = share.flow else { return false };
        let (packets, units) = (Packets::of(share, flow), self.ready_port(now));
        units.and_then(|units| self.shares.flows.would_fit(now, &packets, units, thorough)).is_ok()
    }

    /// Gives a flow a longer bound, of `delay` at most and its host's slack included; the one that it has
    /// now. `None` for a session that is no flow.
    pub fn relax(&mut self, id: SessionId, delay: Span) -> Option<Span> {
        let flows = &mut self.shares.flows;
        if let Some(booked) = flows.booked.iter().find(|of| of.id == id) {
            return Some(booked.delay);
        }
        let session = self.shares.sessions.iter_mut().find(|session| session.id == id)?;
        let packets = session.packets.as_mut()?;
        if let Some(delay) = flows.statistical.relax(id, &packets.ask, delay) {
            packets.delay = delay;
            return Some(delay);
        }
        if let Some(delay) = flows.relax_member(id, delay) {
            packets.delay = delay;
            return Some(delay);
        }
        let (place, port) = (flows.place(id)?, flows.port.as_mut()?);
        packets.delay = port.relax(place, packets.partition, &packets.ask, delay).delay;
        flows.sessions[place].delay = packets.delay;
        Some(packets.delay)
    }

    /// The chance of a late packet that a session has here.
    pub fn chance_of(&self, id: SessionId) -> Chance {
        let packets = self.shares.get(id).and_then(|session| session.packets.as_ref());
        packets.map_or(Chance::NEVER, |packets| packets.late)
    }

    /// Has a guaranteed flow that counts now carry these packets in the place of its own: with the bound
    /// `wanted` or the shortest one behind it, `most` at most. All that stands is tested beside them.
    ///
    /// # Errors
    /// They do not fit; with the largest payload that does. The flow has what it had.
    pub fn reshape(
        &mut self,
        now: Instant,
        id: SessionId,
        share: &Share,
        (most, wanted): (Span, Span),
    ) -> Result<Span, (Denied, Option<Octets>)> {
        let none = |denied| (denied, None);
        let flows = &self.shares.flows;
        let place = flows.place(id).filter(|_| !flows.is_member(id));
        let (flow, place) = share.flow.zip(place).ok_or(none(no_port()))?;
        let (units, flows) = (self.ready_port(now).map_err(none)?, &mut self.shares.flows);
        let had = flows.take_out(place);
        let asked = Packets::of(share, FlowShare { life: had.life, ..flow });
        let (is, was) = (&asked.ask, &had.ask);
        let is_less = was.traffic.carries(&is.traffic) && is.octets <= was.octets;
        let is_more = is.traffic.carries(&was.traffic) && is.octets >= was.octets;
        if let Err(denied) = flows.admit_within(now, id, (&asked, units), (most, is_less)) {
            let port = flows.port.as_mut();
            let nearest = port.and_then(|port| largest_packet(&mut port.part(asked.partition), is, most));
            if flows.stand(had).is_err() {
                // Only points of bounds that were relaxed since can have taken its room.
                self.lose_flow(now, id);
            }
            return Err((denied, nearest));
        }
        // Packets that have left count in a share that carries them: the regulator of both goes on.
        if !is_more {
            let came = self.shares.get(id).and_then(|session| session.packets.as_ref()?.came());
            self.shares.flows.note_left(now, &had.ask, came);
        }
        let params = self.settings.params(2);
        if let Some(session) = self.shares.get_mut(id) {
            let Share { flow: former, partition, .. } = session.share;
            let flow = former.map(|of| FlowShare { traffic: flow.traffic, ..of });
            session.share = Share { flow, partition, ..*share };
            session.state = State::Admitted(link_work(&is.traffic, is.octets, &params));
            if let Some(packets) = &mut session.packets {
                (packets.ask, packets.delay) = (*is, Span::ZERO);
            }
        }
        Ok(self.relax(id, wanted).unwrap_or(wanted))
    }

    /// The same for packets that are no more than those before, as long as there is room for the points of
    /// their bound.
    pub fn lessen(&mut self, now: Instant, id: SessionId, share: &Share, delay: Span) {
        // A share that stays too large harms nobody's bound.
        _ = self.reshape(now, id, share, (delay, delay));
    }

    /// A flow has no place in the tests any more.
    pub(super) fn lose_flow(&mut self, now: Instant, id: SessionId) {
        self.shares.sessions.retain(|session| session.id != id);
        self.event(MediumEvent::ReservationLost { session: id });
        self.open_when_unshared(now);
    }

    /// The port of a flow, for its certificate; `None` for a session that is no flow of the guaranteed class.
    /// A member of a group has none: its bound holds while the others keep their turns, and no number of the
    /// certificate says so.
    pub fn port_of(&self, now: Instant, id: SessionId) -> Option<FlowPort> {
        let flows = &self.shares.flows;
        if flows.is_member(id) {
            return None;
        }
        let port = flows.port.as_ref()?.whole();
        let (load, ordinary) = port.others();
        let slack = port.params().link.host_slack;
        let delays = port.channels().iter().map(|flow| flow.delay);
        let delays = delays.chain(flows.booked.iter().map(|of| of.delay.minus(slack)));
        let all = || flows.sessions.iter().chain(&flows.booked);
        let own = all().position(|of| of.id == id)?;
        let standing = |(of, delay): (&Standing, Span)| {
            let until = (of.life.until < Instant::FAR).then(|| of.life.until.since(now));
            let until = until.map(|until| until.max(Span::from_nanos(1)));
            let life = certificate::Life { from: of.life.from.since(now), until };
            certificate::Standing { ask: of.ask, delay, life }
        };
        let ordinary = certificate::Standing::always(ordinary);
        let flows = all().zip(delays).map(standing).chain([ordinary]).collect();
        Some(FlowPort { load, flows, own })
    }

    /// The packet that leaves next, of those that wait: the session, and the number of its grant.
    pub(super) fn next_packet(&mut self) -> Option<Served> {
        let by_level = self.settings.discipline.scheduler == Scheduler::Rcsp;
        let booked = &self.shares.flows.booked;
        let key = |session: &Session| {
            let packets = session.packets.as_ref()?;
            let first = packets.waits.get(0)?;
            // In no test of now: what comes before its start waits for it.
            if booked.iter().any(|of| of.id == session.id) {
                return None;
            }
            let order = match (packets.is_statistical(), by_level) {
                (true, _) => (true, 0, first.eligible),
                // The bound of a level names it.
                (false, true) => (false, packets.delay.as_nanos(), first.eligible),
                (false, false) => (false, 0, first.deadline),
            };
            Some((order, session.id, packets.left))
        };
        let (_, session, left) = self.shares.sessions.iter().filter_map(key).min()?;
        let under_way = self.shares.flows.served;
        if let Some(served) = under_way.filter(|served| (served.session, served.left) == (session, left)) {
            return Some(served);
        }
        let served = Served { session, number: self.pace.next_number(), left };
        self.shares.flows.served = Some(served);
        Some(served)
    }

    /// True if packets wait.
    pub(super) fn has_packet(&self) -> bool {
        let booked = &self.shares.flows.booked;
        let waits = |session: &Session| session.packets.as_ref().is_some_and(|of| of.waits.get(0).is_some());
        let counts = |session: &Session| booked.iter().all(|of| of.id != session.id);
        self.shares.sessions.iter().any(|session| waits(session) && counts(session))
    }

    /// The grant of a packet is over. The port had none where the first one still waits.
    pub(super) fn end_packet(&mut self) -> bool {
        let Some(served) = self.shares.flows.served.take() else { return false };
        if let Some(packets) = self.shares.get_mut(served.session).and_then(|of| of.packets.as_mut())
            && packets.left == served.left
        {
            packets.leave();
        }
        true
    }
}

impl Served {
    /// The number of its grant.
    pub(super) const fn number(&self) -> u32 {
        self.number
    }
}
