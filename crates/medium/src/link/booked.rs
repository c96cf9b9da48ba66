//! Flows of a link that are booked for later, or end by themselves (`TENET-7-3`; Ferrari, Gupta, Ventre
//! 1995).
//!
//! A flow has one bound while it counts. The set of flows that count grows at starts only, and no bound of a
//! smaller set is longer. So a flow is tested at its own start and at each start of another one in its life;
//! slots of the link are tested at each start as if they stayed until then. The life of a flow is charged
//! until nothing of it is left ([`crate::door::Life`]), so that each busy period has packets of one accepted
//! set. The ledger of plans has the proof (`crates/study/src/plan/ledger.rs`).
//!
//! A booking keeps the bound that it was given: relaxing begins with its life.

use super::Link;
use super::flows::{Flows, Packets, PortTests, Standing};
use super::left;
use super::shares::{Session, Shares};
use crate::door::{SessionId, Share};
use rota_admission::rtip::{Denied, NodeTest};
use rota_admission::subnet::{Certain, Offer, Subnet, link_offer};
use rota_units::{Instant, Span};

/// A refusal, and from when on there is no room, if it is not at once.
pub(super) type NoRoom = (Denied, Option<Instant>);

/// Most starts that differ: each request is tested at each of them, on the data thread.
pub(super) const STARTS_MAX: usize = 12;

impl Flows {
    /// The starts behind `after`, before `until`.
    fn starts(&self, after: Instant, until: Instant) -> Vec<Instant> {
        let starts = self.booked.iter().map(|of| of.life.from);
        let mut starts: Vec<Instant> = starts.filter(|at| after < *at && *at < until).collect();
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    /// The port as it will be at this moment, beside slots that take so long in a window.
    fn port_at(&self, units: Span, at: Instant) -> Result<PortTests, Denied> {
        let mut port = self.empty_port()?;
        port.set_units(units)?;
        let all = self.sessions.iter().chain(&self.booked).filter(|of| of.life.has(at));
        for standing in all {
            standing.admit_to(&mut port)?;
        }
        Ok(port)
    }

    /// Packets that are booked keep their bounds beside slots of so much a window.
    pub(super) fn booked_allow(&self, units: Span) -> Result<(), Denied> {
        let starts = self.starts(Instant::ZERO, Instant::FAR);
        starts.into_iter().try_for_each(|at| self.port_at(units, at).map(drop))
    }

    /// The most that goes before packets of the statistical class now, and where it is `thorough` at each
    /// start of what is booked, which takes long. A share that has ended, or will have by then, counts for as
    /// long as the proof asks for, where no bound of the class is longer than `horizon`.
    pub(super) fn certain(&self, now: Instant, horizon: Span, thorough: bool) -> Result<Certain, Denied> {
        let port = self.port.as_ref().ok_or(super::flows::no_port())?;
        let most = self.left.beside(port.whole().certain(), (now, now), horizon);
        if !thorough {
            return Ok(most);
        }
        let (link, units) = (&port.whole().params().link, port.whole().units());
        let starts = self.starts(Instant::ZERO, Instant::FAR).into_iter();
        starts.map(|at| (at, self.port_at(units, at))).try_fold(most, |most, (at, then)| {
            let planned = self.sessions.iter().chain(&self.booked).filter(|of| of.life.until <= at);
            let ended = planned.filter(|of| left::counts(&of.ask.traffic, of.life.until, at, horizon));
            let ended = ended.map(|of| Certain::of(link, &of.ask));
            let then = ended.fold(then?.whole().certain(), |sum, of| sum.and(&of));
            Ok(most.or_more(&self.left.beside(then, (now, at), horizon)))
        })
    }

    /// The longest of the shortest bounds that a flow can have at its own start, if that is later, and at
    /// each start of another one in its life; zero without any.
    pub(super) fn longest_at_starts(
        &mut self,
        now: Instant,
        of: &Packets,
        units: Span,
    ) -> Result<Span, NoRoom> {
        let Packets { ask, partition, life, .. } = *of;
        let is_later = life.from > now;
        let others = self.starts(Instant::ZERO, Instant::FAR);
        if is_later && others.len() >= STARTS_MAX && !others.contains(&life.from) {
            return Err((Denied::new(NodeTest::TableFull, Span::ZERO), None));
        }
        let mut starts = self.starts(life.from.max(now), life.until);
        if is_later {
            starts.insert(0, life.from);
        }
        // No end helps where there is no room now.
        if let (false, Some(port)) = (is_later || starts.is_empty(), &mut self.port) {
            port.part(partition).best(&ask).map_err(|denied| (denied, None))?;
        }
        let mut longest = Span::ZERO;
        for at in starts {
            let no_room = |denied| (denied, Some(at).filter(|at| *at > life.from));
            let mut port = self.port_at(units, at).map_err(no_room)?;
            longest = longest.max(port.part(partition).best(&ask).map_err(no_room)?.delay);
        }
        Ok(longest)
    }

    /// A flow stands from now on, or from its start on, with one bound for all its life.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        id: SessionId,
        of: &Packets,
        units: Span,
    ) -> Result<Offer, NoRoom> {
        let Packets { ask, partition, life, .. } = *of;
        let is_later = life.from > now;
        let longest = self.longest_at_starts(now, of, units)?;
        let Some(port) = &mut self.port else { return Err((super::flows::no_port(), None)) };
        let offer = if is_later {
            let link = &port.whole().params().link;
            Offer { delay: longest, ..link_offer(link, ask.octets_least, Span::ZERO) }
        } else if longest == Span::ZERO {
            port.admit_best(partition, &ask).map_err(|denied| (denied, None))?
        } else {
            let best = port.part(partition).best(&ask).map_err(|denied| (denied, None))?;
            let offer = Offer { delay: best.delay.max(longest), ..best };
            port.admit_offered(partition, &ask, &offer).map_err(|denied| (denied, None))?;
            offer
        };
        let standing = Standing { id, ask, partition, life, delay: offer.delay };
        if is_later {
            self.booked.push(standing)
        } else {
            self.sessions.push(standing)
        }
        self.sessions.reserve(self.booked.len());
        self.note_change();
        Ok(offer)
    }

    /// When the next life begins or ends.
    pub(super) fn note_change(&mut self) {
        let begins = self.booked.iter().map(|of| of.life.from);
        let ends = self.sessions.iter().chain(&self.booked).map(|of| of.life.until);
        self.change = begins.chain(ends).min().unwrap_or(Instant::FAR);
    }

    /// Lives that have ended are over, and those that begin count in the tests; a flow that is lost thereby.
    fn next_lost(&mut self, now: Instant, came: impl Fn(SessionId) -> Option<Instant>) -> Option<SessionId> {
        let over = |of: &&Standing| of.life.until <= now;
        if let Some(id) = self.sessions.iter().chain(&self.booked).find(over).map(|of| of.id) {
            self.remove(now, id, came(id));
            return Some(id);
        }
        while let Some(at) = self.booked.iter().position(|of| of.life.from <= now) {
            let of = self.booked.swap_remove(at);
            if self.stand(of).is_err() {
                // Its set was tested: only points of bounds that were relaxed since can have taken the room.
                self.note_change();
                return Some(of.id);
            }
        }
        self.note_change();
        None
    }
}

impl Shares {
    fn next_lost(&mut self, now: Instant) -> Option<SessionId> {
        let sessions = &self.sessions;
        let session = |id| sessions.iter().find(|session: &&Session| session.id == id);
        self.flows.next_lost(now, |id| session(id)?.packets.as_ref()?.came())
    }
}

/// The port of a link as it will be at a moment. To make one takes as long as the test of a request there,
/// and to ask it as long as that of packets that are needed now.
pub struct PortThen(PortTests);

impl PortThen {
    /// True if a flow of this share would have a bound then.
    pub fn fits(&mut self, share: &Share) -> bool {
        let Some(flow) = share.flow else { return false };
        let of = Packets::of(share, flow);
        self.0.part(of.partition).best(&of.ask).is_ok()
    }
}

impl Link {
    /// The port as it will be when others begin that have booked.
    pub fn port_then(&mut self, now: Instant, at: Instant) -> Option<PortThen> {
        let units = self.ready_port(now).ok()?;
        self.shares.flows.port_at(units, at).ok().map(PortThen)
    }

    /// Lives of flows that begin or end now.
    pub(super) fn turn_lives(&mut self, now: Instant) {
        if now < self.shares.flows.change {
            return;
        }
        while let Some(id) = self.shares.next_lost(now) {
            self.lose_flow(now, id);
        }
    }

    /// True if a flow counts only later.
    pub fn is_booked(&self, id: SessionId) -> bool {
        self.shares.flows.booked.iter().any(|of| of.id == id)
    }
}
