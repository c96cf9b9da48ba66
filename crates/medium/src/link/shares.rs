//! The shares of this end: asked for, admitted, changed, given back. Nobody else has a say in them.

use super::flows::{Flows, Packets};
use super::slots::Slots;
use super::{Gate, Link};
use crate::door::{SessionId, Share, Units};
use crate::event::MediumEvent;
use rota_admission::search::largest;
use rota_admission::{Admitted, LINK_SHARES_MAX, Pace, Refusal, Request, SegmentParams, Test};
use rota_admission::{admit_on_link, link_window, refused_by_port, standing_on_link};
use rota_units::{Instant, Octets, Span};

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Waits for the gate to be shut.
    Waiting,
    /// Has its share, which takes so long in each window.
    Admitted(Span),
}

/// A load whose newest slots are no window old: slots of another load beside them would be more than a window
/// carries.
#[derive(Clone, Copy, Debug)]
struct Past {
    load: Span,
    /// A window behind its last slot.
    until: Instant,
}

impl Past {
    const NONE: Self = Self { load: Span::ZERO, until: Instant::ZERO };

    /// Its load at this moment.
    fn load(&self, now: Instant) -> Span {
        if now < self.until { self.load } else { Span::ZERO }
    }
}

/// One share of this end.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) share: Share,
    pub(super) state: State,
    /// A new size asked for, and whether nothing is left that needs the old one.
    resize: Option<(u32, bool)>,
    /// Its request fits, but for loads that are past.
    is_held: bool,
    /// The greater load that it had.
    past: Past,
    pub(super) slots: Slots,
    /// Its packets, if it is a flow; it has no slots then.
    pub(super) packets: Option<Packets>,
}

impl Session {
    /// When its next slot may open, at the earliest.
    pub(super) fn opens_at(&self, window: Span) -> Option<Instant> {
        self.slots.opens_at(window).filter(|_| self.state != State::Waiting)
    }

    /// Its load with the greater one before; none while it waits for its share.
    fn charged(&self, now: Instant) -> Option<Span> {
        match self.state {
            // Nothing of a flow is in the window.
            State::Admitted(_) if self.packets.is_some() => None,
            State::Admitted(load) => Some(load.max(self.past.load(now))),
            State::Waiting => None,
        }
    }

    /// The load that it has had in slots, and when the last one opened.
    pub(super) fn had(&self, now: Instant) -> Option<(Span, Instant)> {
        Some((self.charged(now)?, self.slots.last_opening()?))
    }

    /// The load that stays charged for it from now on, if it has less or nothing.
    fn to_past(&self, now: Instant, window: Span) -> Option<Past> {
        let until = self.slots.last_opening()? + window;
        let load = self.charged(now)?;
        (now < until).then_some(Past { load, until })
    }

    fn request(&self, octets: u32) -> Request {
        let Share { pace, periodic, .. } = self.share;
        let unit_octets = Octets::new(u64::from(octets));
        Request { station: 0, unit_octets, pace, periodic, receives: false, partition: 0 }
    }
}

/// The answer to a request.
enum Answer {
    Admitted(Admitted),
    /// It fits, but for loads that are past.
    Later,
    Refused(Refusal),
}

/// The shares, in the order in which they are served.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    pub(super) sessions: Vec<Session>,
    /// True if the other station has a channel to this one.
    pub(super) receives: bool,
    /// From when on the gate is shut for it: later, where that has failed.
    pub(super) shuts_from: Instant,
    /// Loads of sessions that are gone.
    gone: Vec<Past>,
    /// When a request that is held is looked at again.
    retry: Instant,
    /// Room for the loads of an admission.
    pub(super) loads: Vec<Span>,
    pub(super) flows: Flows,
}

impl Shares {
    pub(super) fn new() -> Self {
        let room = LINK_SHARES_MAX;
        Self {
            sessions: Vec::with_capacity(room),
            receives: false,
            shuts_from: Instant::ZERO,
            gone: Vec::with_capacity(room),
            retry: Instant::FAR,
            loads: Vec::with_capacity(room),
            flows: Flows::new(),
        }
    }

    /// When a request that is held is looked at again.
    pub(super) fn retry_deadline(&self) -> Instant {
        self.retry
    }

    /// Nothing that was before counts: the card and the cable are empty.
    pub(super) fn begin(&mut self) {
        self.gone.clear();
        self.flows.left.clear();
    }

    pub(super) fn get(&self, id: SessionId) -> Option<&Session> {
        self.sessions.iter().find(|session| session.id == id)
    }

    pub(super) fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.sessions.iter_mut().find(|session| session.id == id)
    }

    /// The loads of all that are admitted but for one; with those that are past.
    pub(super) fn load_without(&mut self, now: Instant, id: SessionId) {
        self.gone.retain(|past| now < past.until);
        self.load_of_others(now, id);
        self.loads.extend(self.gone.iter().map(|past| past.load));
    }

    /// When the first of those that are past ends.
    fn past_ends(&self, now: Instant) -> Instant {
        let smaller = self.sessions.iter().map(|session| session.past.until);
        let all = smaller.chain(self.gone.iter().map(|past| past.until));
        all.filter(|until| now < *until).min().unwrap_or(Instant::FAR)
    }

    /// The tests of a session beside these loads, and of the packets beside all. An accepted set stands.
    fn fits(
        &mut self,
        now: Instant,
        (request, params): (&Request, &SegmentParams),
        thorough: bool,
    ) -> Result<Admitted, Refusal> {
        let admitted = admit_on_link(&self.loads, request, params)?;
        let units = self.loads.iter().copied().sum::<Span>() + admitted.tht;
        match self.packets_allow(now, units, thorough) {
            Ok(()) => Ok(admitted),
            Err(denied) => Err(refused_by_port(request.pace, &denied, params)),
        }
    }

    /// The answer to a request beside all other shares.
    fn ask(&mut self, now: Instant, id: SessionId, request: &Request, params: &SegmentParams) -> Answer {
        let ends = self.past_ends(now);
        self.load_without(now, id);
        match self.fits(now, (request, params), true) {
            Ok(admitted) => return Answer::Admitted(admitted),
            Err(refusal) if ends == Instant::FAR => {
                return Answer::Refused(self.offering(now, id, refusal, (request, params)));
            }
            Err(_) => {}
        }
        self.load_of_others(Instant::FAR, id);
        match self.fits(now, (request, params), true) {
            Ok(_) => {
                self.stand_as_before(now);
                self.retry = self.retry.min(ends);
                Answer::Later
            }
            Err(refusal) => Answer::Refused(self.offering(now, id, refusal, (request, params))),
        }
    }

    /// The loads of all that are admitted but for one, as they are charged then. Without those that are past,
    /// if that is behind all ends.
    fn load_of_others(&mut self, then: Instant, id: SessionId) {
        let others = self.sessions.iter().filter(|session| session.id != id);
        self.loads.clear();
        self.loads.extend(others.filter_map(|session| session.charged(then)));
    }

    /// A set that fits does not stand yet.
    fn stand_as_before(&mut self, now: Instant) {
        let counted = self.count_units(now);
        debug_assert!(counted.is_ok(), "these loads stood before");
    }

    /// A refusal with the nearest request that all tests would accept now, or once loads that are past have
    /// ended: the largest unit, and where none is small enough the shortest period.
    fn offering(
        &mut self,
        now: Instant,
        id: SessionId,
        refusal: Refusal,
        (request, params): (&Request, &SegmentParams),
    ) -> Refusal {
        if refusal.test == Test::SlotTableFull {
            return refusal;
        }
        self.load_of_others(Instant::FAR, id);
        let (asked, pace) = (request.unit_octets.get(), request.pace);
        let mut fits = |octets: u64, pace: Pace, thorough: bool| {
            let other = Request { unit_octets: Octets::new(octets), pace, ..*request };
            self.fits(now, (&other, params), thorough).is_ok()
        };
        let has_smaller = asked > 1 && fits(1, pace, false);
        let unit = has_smaller.then(|| largest(1, asked, |octets| fits(octets, pace, false)));
        let most = pace.slower_ones(params.trt);
        let mut is_too_quick = |nth: u64| !fits(asked, pace.slower(nth), false);
        let has_slower = unit.is_none() && most > 0 && !is_too_quick(most);
        let slower = has_slower.then(|| pace.slower(largest(0, most, is_too_quick) + 1));
        // Bookings take long: they are looked at for the nearest request alone.
        let found = fits(unit.unwrap_or(asked), slower.unwrap_or(pace), true);
        self.stand_as_before(now);
        let unit = unit.filter(|_| found).map(Octets::new);
        refusal.offering(unit, slower.filter(|_| found), pace, params)
    }
}

impl Link {
    /// Asks for a share; the answer comes as an event.
    pub fn reserve(&mut self, now: Instant, id: SessionId, share: Share) {
        let (state, resize, slots) = (State::Waiting, None, Slots::new(share.pace));
        let (is_held, past) = (false, Past::NONE);
        let packets = share.flow.map(|flow| Packets::of(&share, flow));
        let was_engaged = self.is_engaged();
        self.shares.sessions.push(Session { id, share, state, resize, is_held, past, slots, packets });
        if self.peer().is_none() {
            // Its station has gone since it was asked for.
            self.lose_shares();
            self.open_gate(now);
            return;
        }
        if !was_engaged {
            self.say_hello_soon();
        }
        self.close_gate(now);
        if self.gate == Gate::Shut {
            self.admit_waiting(now);
        }
    }

    /// Gives a share back.
    pub fn release(&mut self, now: Instant, id: SessionId) {
        let Some(at) = self.shares.sessions.iter().position(|session| session.id == id) else { return };
        let session = self.shares.sessions.remove(at);
        let window = link_window(self.settings.trt);
        self.shares.flows.remove(now, id, session.packets.as_ref().and_then(Packets::came));
        self.shares.flows.slots_left(now, &session, (Span::ZERO, window));
        self.shares.gone.extend(session.to_past(now, window));
        self.event(MediumEvent::Released { session: id });
        self.open_when_unshared(now);
    }

    pub(super) fn open_when_unshared(&mut self, now: Instant) {
        if self.shares.sessions.is_empty() {
            self.settle_gate(now);
            self.say_hello_soon();
        }
    }

    /// Every share of this end is gone.
    pub(super) fn lose_shares(&mut self) {
        self.shares.flows.clear();
        while let Some(session) = self.shares.sessions.pop() {
            self.event(MediumEvent::ReservationLost { session: session.id });
        }
    }

    /// True if the session has a share, or waits for one.
    pub fn has_share(&self, id: SessionId) -> bool {
        self.shares.get(id).is_some()
    }

    /// The largest unit of a session; `None` when it has no such session.
    pub fn share_octets(&self, id: SessionId) -> Option<u32> {
        Some(self.shares.get(id)?.share.unit_octets_max)
    }

    /// The shares of this end, as a ring's list has those of all; without those that count only later.
    pub fn reservations(&self) -> impl Iterator<Item = rota_wire::Slot> + Clone + '_ {
        let station = self.own.station;
        let counts = |session: &&Session| !self.is_booked(session.id);
        self.shares.sessions.iter().filter(counts).filter_map(move |session| match session.state {
            State::Admitted(load) => {
                let load = match self.shares.flows.lanes_of(session.id) {
                    0 => return None,
                    lanes => load * u64::from(lanes),
                };
                let tht_ns = u32::try_from(load.as_nanos()).unwrap_or(u32::MAX);
                let Share { periodic, partition, .. } = session.share;
                Some(rota_wire::Slot { station, tht_ns, periodic, partition })
            }
            State::Waiting => None,
        })
    }

    /// The sum of the shares with slots of the window. Flows have none: tests of the port admit them.
    pub fn window_load(&self) -> Span {
        let load = |session: &Session| match session.state {
            State::Admitted(load) if session.packets.is_none() => load,
            State::Admitted(_) | State::Waiting => Span::ZERO,
        };
        self.shares.sessions.iter().map(load).sum()
    }

    /// Units that a session can send in one cycle.
    pub fn units_a_cycle(&self, id: SessionId) -> usize {
        self.shares.get(id).map_or(1, |session| session.share.pace.units() as usize)
    }

    /// Changes the largest unit of a session; the answer comes as an event.
    pub fn resize(&mut self, id: SessionId, unit_octets_max: u32) {
        if let Some(session) = self.shares.get_mut(id) {
            (session.resize, session.is_held) = (Some((unit_octets_max, false)), false);
        }
    }

    /// True if a smaller size that was asked for may take effect.
    pub fn may_shrink(&mut self, id: SessionId, allowed: bool) {
        if let Some((_, may)) = self.shares.get_mut(id).and_then(|session| session.resize.as_mut()) {
            *may = allowed;
        }
    }

    /// The port says what has become of the units of a session that wait.
    pub fn note_units(&mut self, now: Instant, id: SessionId, units: Units) {
        let Some(session) = self.shares.get_mut(id) else { return };
        if let Some(packets) = &mut session.packets {
            return match units {
                Units::Packet(due) => packets.join(now, due),
                Units::Leave => packets.leave(),
                Units::Join | Units::Kept(_) => {}
            };
        }
        match units {
            Units::Join | Units::Packet(_) => session.slots.unit_joins(now),
            Units::Leave => session.slots.unit_leaves(),
            Units::Kept(kept) => session.slots.keep_units(kept),
        }
    }

    /// Requests that were held are looked at again, once a load that is past has ended.
    pub(super) fn retry_held(&mut self, now: Instant) {
        if now < self.shares.retry {
            return;
        }
        self.shares.retry = Instant::FAR;
        self.shares.sessions.iter_mut().for_each(|session| session.is_held = false);
        if self.gate == Gate::Shut {
            self.admit_waiting(now);
        }
    }

    /// Decides all requests that wait, in their order.
    pub(super) fn admit_waiting(&mut self, now: Instant) {
        // Flows that end by themselves go first: the places of sessions stay as they are below.
        self.turn_lives(now);
        let params = self.settings.params(2);
        let waits = |session: &Session| session.state == State::Waiting;
        while let Some(at) = self.shares.sessions.iter().position(waits) {
            let session = &self.shares.sessions[at];
            let (id, request) = (session.id, session.request(session.share.unit_octets_max));
            let answer = match self.shares.sessions[at].packets.take() {
                None => match self.divide_port() {
                    Ok(()) => self.shares.ask(now, id, &request, &params),
                    Err(denied) => Answer::Refused(refused_by_port(request.pace, &denied, &params)),
                },
                Some(mut packets) => {
                    let answer = self.admit_flow(now, id, &mut packets);
                    self.shares.sessions[at].packets = Some(packets);
                    answer.map_or_else(Answer::Refused, Answer::Admitted)
                }
            };
            match answer {
                Answer::Admitted(admitted) => {
                    // Behind all that are admitted already.
                    let mut session = self.shares.sessions.remove(at);
                    session.state = State::Admitted(admitted.tht);
                    let behind = self.shares.sessions.iter().take_while(|session| !waits(session)).count();
                    self.shares.sessions.insert(behind, session);
                    self.event(MediumEvent::Reserved { session: id, admitted });
                }
                // Those behind it wait, too.
                Answer::Later => return,
                Answer::Refused(refusal) => {
                    self.shares.sessions.remove(at);
                    self.event(MediumEvent::Refused { session: id, refusal });
                }
            }
        }
        if self.shares.sessions.is_empty() {
            self.pace.is_idle = true;
        }
    }

    /// Changes of size take effect: less when nothing needs the old size, more when it fits.
    pub(super) fn resize_due(&mut self, now: Instant) {
        let is_due = |session: &Session| {
            let due = |(octets, may): (u32, bool)| may || octets > session.share.unit_octets_max;
            session.packets.is_none()
                && session.state != State::Waiting
                && !session.is_held
                && session.resize.is_some_and(due)
        };
        while let Some(at) = self.shares.sessions.iter().position(is_due) {
            let session = &self.shares.sessions[at];
            let Some((octets, _)) = session.resize else { return };
            let (id, grows) = (session.id, octets > session.share.unit_octets_max);
            let (request, params) = (session.request(octets), self.settings.params(2));
            let answer = if grows {
                self.shares.ask(now, id, &request, &params)
            } else {
                self.shares.load_without(now, id);
                Answer::Admitted(standing_on_link(self.shares.loads.iter().copied().sum(), &request, &params))
            };
            let session = &mut self.shares.sessions[at];
            session.is_held = matches!(answer, Answer::Later);
            session.resize = session.resize.filter(|_| session.is_held);
            match answer {
                Answer::Admitted(admitted) => {
                    let window = link_window(self.settings.trt);
                    self.shares.flows.slots_left(now, session, (admitted.tht, window));
                    session.past = session.to_past(now, window).unwrap_or(Past::NONE);
                    session.state = State::Admitted(admitted.tht);
                    session.share.unit_octets_max = octets;
                    self.event(MediumEvent::Resized {
                        session: id,
                        unit_octets_max: octets,
                        admitted,
                        slots: Vec::new(),
                    });
                }
                Answer::Later => {}
                Answer::Refused(refusal) => self.event(MediumEvent::NotResized { session: id, refusal }),
            }
        }
    }
}
