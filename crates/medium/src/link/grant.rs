//! The right to send: slots of sessions first, in the order of the shares, then packets by the discipline of
//! the settings, then ordinary frames one by one.
//!
//! Frames are handed to the card at the link's pace: while more than [`LINK_AHEAD`] of wire time is there
//! already, nothing is granted, and no ordinary frame above [`LINK_AHEAD_ORDINARY`]. So a slot that opens
//! finds one full frame and such a time ahead of it at most.

use super::slots::Slots;
use super::{Gate, Link};
use crate::door::{Demand, Grant, Lane, Turn, Visited};
use rota_admission::{LINK_AHEAD, LINK_AHEAD_ORDINARY, LINK_CARD_SLOWER, link_window};
use rota_units::{Instant, Octets, Span};
use rota_wire::{ETHERNET_HEADER_OCTETS, Generation};

/// The pace of the frames that leave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// When the link has carried all frames that were handed over.
    card_free: Instant,
    /// The frame of the port that would leave next.
    pub(super) first: Option<Demand>,
    /// The ordinary visit that is under way.
    visit: Option<u32>,
    /// The number of the newest slot or visit.
    number: u32,
    /// A refusal has left no share: the gate opens at the next turn.
    pub(super) is_idle: bool,
}

impl Pace {
    /// The gate has changed: nothing of this end is on its way.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.card_free, self.visit) = (now, None);
    }

    pub(super) fn next_number(&mut self) -> u32 {
        self.number = self.number.wrapping_add(1);
        self.number
    }
}

impl Link {
    /// Before anything leaves: changes of shares that are due.
    pub fn begin_turn(&mut self, now: Instant) {
        self.turn_lives(now);
        self.retry_held(now);
        self.resize_due(now);
        if core::mem::take(&mut self.pace.is_idle) && self.shares.sessions.is_empty() {
            self.settle_gate(now);
            self.say_hello_soon();
        }
    }

    /// The port says which ordinary frame would leave next.
    pub fn demand(&mut self, _now: Instant, first: Option<Demand>) {
        self.set_demand(first);
    }

    /// Grants what comes next, or waits.
    pub fn advance(&mut self, now: Instant) -> Turn {
        if self.gate != Gate::Shut {
            return Turn::Wait;
        }
        self.open_slots(now);
        if self.is_idle() {
            self.shares.flows.left.idle(now);
        }
        if self.pace.card_free > now + LINK_AHEAD {
            return Turn::Wait;
        }
        if let Some(grant) = self.slot_grant().or_else(|| self.packet_grant(now)) {
            // A visit that a slot interrupts ends first, and the port learns it: nothing fits any more.
            let rest = self.pace.visit.map(|number| self.visit_grant(now, number, Span::ZERO));
            return Turn::Grant(rest.unwrap_or(grant));
        }
        let has_room = self.pace.card_free <= now + LINK_AHEAD_ORDINARY;
        let Some(first) = self.pace.first.filter(|_| has_room) else { return Turn::Wait };
        let number = self.pace.visit.unwrap_or_else(|| self.pace.next_number());
        self.pace.visit = Some(number);
        // A frame beyond the MTU, as one with a tag of a virtual LAN, leaves too: it would block all others.
        let budget = self.settings.link.frame_span_max().max(self.frame_time(first.octets));
        Turn::Grant(self.visit_grant(now, number, budget))
    }

    fn visit_grant(&self, opens: Instant, number: u32, budget: Span) -> Grant {
        let (port, lane) = (self.port, Lane::NonRealTime);
        let (not_after, stamp) = (Instant::FAR, (Generation::default(), 0));
        Grant { port, lane, number, opens, most: 1, budget, not_after, stamp }
    }

    /// No slot is open, and neither a packet nor a frame of this end waits.
    fn is_idle(&self) -> bool {
        let is_open = self.shares.sessions.iter().any(|session| session.slots.first().is_some());
        self.out.outbox.is_empty() && !is_open && !self.has_packet()
    }

    /// Opens the slots that are due. A host that is late by more than its slack makes nothing of that up: the
    /// slot counts from then on, or slots of many windows would leave at once.
    fn open_slots(&mut self, now: Instant) {
        let (window, earliest) = (link_window(self.settings.trt), now.minus(self.settings.link.host_slack));
        for session in &mut self.shares.sessions {
            while let Some(at) = session.opens_at(window).filter(|at| *at <= now) {
                session.slots.open(at.max(earliest), self.pace.next_number());
            }
        }
    }

    /// The right to send what is left of the first slot that is open.
    fn slot_grant(&mut self) -> Option<Grant> {
        let mut open =
            self.shares.sessions.iter().filter_map(|session| Some((session, session.slots.first()?)));
        let (session, slot) = open.next()?;
        let (link, pace) = (&self.settings.link, session.share.pace);
        let share = pace.share(Octets::new(u64::from(session.share.unit_octets_max)), &link.framing);
        let all = link.framing.unit_wire_octets(share).get();
        let budget = link.rate.span_of_up(Octets::new(all.saturating_sub(slot.used.get())));
        let (port, lane, not_after) = (self.port, Lane::RealTime(session.id), Instant::FAR);
        let (number, opens, stamp) = (slot.number, slot.opens, (Generation::default(), 0));
        Some(Grant { port, lane, number, opens, most: 1, budget, not_after, stamp })
    }

    /// The right to send the packet that goes first.
    fn packet_grant(&mut self, opens: Instant) -> Option<Grant> {
        let served = self.next_packet()?;
        let (session, link) = (self.shares.get(served.session)?, &self.settings.link);
        let wire = link.framing.unit_wire_octets(Octets::new(session.share.unit_octets_max.into()));
        let (port, lane, not_after) = (self.port, Lane::RealTime(served.session), Instant::FAR);
        let (number, budget, stamp) =
            (served.number(), link.rate.span_of_up(wire), (Generation::default(), 0));
        Some(Grant { port, lane, number, opens, most: 1, budget, not_after, stamp })
    }

    /// The number of the ordinary visit that is under way.
    pub fn visit_number(&self) -> Option<u32> {
        self.pace.visit
    }

    /// A frame of so many octets, from the destination address on, has left under the grant.
    pub fn spent(&mut self, now: Instant, octets: u16) {
        self.occupy(now, octets);
        let wire = self.settings.link.framing.wire_octets(payload_of(octets));
        if self.pace.visit.is_some() {
            // The card's clock may be slower than this one. Its delay is made up here.
            self.pace.card_free += self.frame_time(octets).div_down(LINK_CARD_SLOWER);
        } else if let Some(slots) = self.served() {
            slots.spend(wire);
        }
    }

    /// Nothing more leaves under the grant of this slot or visit.
    pub fn done(&mut self, _now: Instant, _visited: Visited) {
        if self.pace.visit.take().is_some() {
            return;
        }
        // A packet has its grant while no slot is open. One that opens takes the turn.
        match self.served() {
            Some(slots) => slots.end_first(),
            None => _ = self.end_packet(),
        }
    }

    /// The slots of which the first one is served.
    fn served(&mut self) -> Option<&mut Slots> {
        let mut all = self.shares.sessions.iter_mut().map(|session| &mut session.slots);
        all.find(|slots| slots.first().is_some())
    }

    /// How long an ordinary frame of so many octets occupies the wire.
    pub fn frame_time(&self, octets: u16) -> Span {
        self.settings.link.frame_span_up(payload_of(octets))
    }

    /// A frame was handed to the card.
    pub(super) fn occupy(&mut self, now: Instant, octets: u16) {
        self.pace.card_free = self.pace.card_free.max(now) + self.frame_time(octets);
    }

    /// When something that waits may go on.
    pub(super) fn slot_deadline(&self) -> Instant {
        if self.gate != Gate::Shut {
            return Instant::FAR;
        }
        let window = link_window(self.settings.trt);
        let sessions = &self.shares.sessions;
        let opens = sessions.iter().filter_map(|session| session.opens_at(window)).min();
        // Woken at half of what may be there ahead, so that the other half keeps the wire busy until then.
        let room = |ahead: Span| self.pace.card_free.minus(ahead.div_down(2));
        let is_open = self.has_packet() || sessions.iter().any(|session| session.slots.first().is_some());
        let slot = opens.unwrap_or(Instant::FAR).min(if is_open { room(LINK_AHEAD) } else { Instant::FAR });
        let slot = slot.min(self.shares.retry_deadline()).min(self.shares.flows.change);
        slot.min(self.pace.first.map_or(Instant::FAR, |_| room(LINK_AHEAD_ORDINARY)))
    }
}

/// Octets of a frame behind its Ethernet header.
const fn payload_of(octets: u16) -> u64 {
    (octets as u64).saturating_sub(ETHERNET_HEADER_OCTETS as u64)
}
