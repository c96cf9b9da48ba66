//! Requests for a token at rest: how a station asks for the token, and how the cycle master serves all.
//!
//! ```text
//! asker                      cycle master (token rests)
//!   │ frame waits                 │
//!   ├── Request ─────────────────►│ one place for each station
//!   │◄── Token, rested ───────────┤ the first asker behind the one served last
//!   ├── frames ──►                │
//!   └── Token, rested, home ─────►│ rests on, or serves the next
//! ```
//!
//! *One request.* A station has one request outstanding, until an ordinary visit. The next one goes only
//! after TRT, or to another master. So in any time without an ordinary visit of its own a station sends one
//! request per TRT, as admission charges (`cycle_overhead`); each further one is paid by the hop of the visit
//! before it: the wire to the master is idle in a hop for longer than the shortest frame takes.
//!
//! *Two hops.* A woken station whose queue is empty behind a few frames sends the token home; it rests on.
//! A station that has more begins a round of all, as does a majority of askers: k single visits cost 2k
//! hops, a round N. In a round frames gather between the visits, so that each carries more of a bulk flow.
//!
//! *Bound.* Askers are served in the order of the round, so no station is served twice while another waits. A
//! request that is not served when the second cycle behind it begins starts a round of all. So from its
//! request a station waits for 2·TRT and the time of a round (`NrtRing::worst_gap`), at most.
//!
//! *A missed key.* A list comes in each cycle. A station that has believed none in three may have missed the
//! Form of the ring's newest key, both times: it asks for the token under the key it has, and a station with
//! a newer one answers with its Form. Else it would stay deaf until the death timer has it claim the token.
//!
//! *The next cycle* is never delayed: a visit begins only if it, its shortest frame and the way home fit the
//! time left, and it sends only the frames that fit with the way home (A1).
//!
//! Fulfils RETHER-2.1-8.

use super::outbox::Pending;
use super::visit::{Stage, is_over};
use super::{Mode, Rether};
use crate::door::StationId;
use crate::door::Turn;
use rota_units::Instant;
use rota_wire::{Phase, StationSet, Token};

/// Octets of the shortest frame, from the destination address on.
const FRAME_OCTETS_MIN: u16 = 60;

/// A station that has believed no list in so many cycles asks for the token.
const DEAF_CYCLES: u64 = 3;

/// A visit that takes the time of more full frames serves a bulk flow.
const FEW_FRAMES: u32 = 4;

/// Requests for a token at rest: this station's own, and as cycle master those of all.
#[derive(Clone, Debug)]
pub(super) struct Wakes {
    /// The request that no ordinary visit has answered yet: to which master, and when.
    pub(super) request: Option<(StationId, Instant)>,
    /// Since this station's last ordinary visit the token may come to rest without another one.
    pub(super) may_rest: bool,
    /// The stations that ask, this station included.
    pub(super) asked: StationSet,
    /// The stations of `asked` that had asked when the cycle before began.
    pub(super) overdue: StationSet,
    /// The cycle before which `overdue` was taken.
    pub(super) cycle: u32,
}

impl Wakes {
    pub(super) fn new() -> Self {
        let (asked, overdue) = (StationSet::EMPTY, StationSet::EMPTY);
        Self { request: None, may_rest: true, asked, overdue, cycle: 0 }
    }

    /// A round of all answers every request so far.
    fn answer_all(&mut self) {
        (self.asked, self.overdue) = (StationSet::EMPTY, StationSet::EMPTY);
    }

    fn answer(&mut self, station: StationId) {
        self.asked.remove(station);
        self.overdue.remove(station);
    }
}

impl Rether {
    /// In token mode: asks the cycle master to send the token, when it may be resting and no request of this
    /// station is outstanding.
    pub(super) fn ask_for_token(&mut self, now: Instant) {
        match self.mode {
            Mode::Plain if self.wants_ring() => self.begin_switch(now),
            Mode::Ring(_) if self.mode.hold().is_none() => {
                let Some((list, Wakes { may_rest, request, .. })) = self.list_and_wakes() else { return };
                let drowsy = list.rested || *may_rest;
                let (master, trt) = (self.master(list), self.settings.trt);
                let waits = |(to, at): (StationId, Instant)| to == master && now.since(at) < trt;
                if drowsy && master != self.own.station && !request.is_some_and(waits) {
                    self.request_from(now, master);
                }
            }
            _ => {}
        }
    }

    fn list_and_wakes(&self) -> Option<(&Token, &Wakes)> {
        let ring = self.mode.ring()?;
        Some((ring.list.as_ref()?, &ring.wakes))
    }

    fn request_from(&mut self, now: Instant, master: StationId) {
        let Some(ring) = self.mode.ring_mut() else { return };
        ring.wakes.request = Some((master, now));
        self.out.outbox.push_back(Pending::Request { to: master });
    }

    /// When this station is to ask because it has believed no list for long.
    pub(super) fn deaf_deadline(&self) -> Instant {
        let Some((list, wakes)) = self.list_and_wakes() else { return Instant::FAR };
        if self.mode.watch().is_some() || self.tells.leaving || self.master(list) == self.own.station {
            return Instant::FAR;
        }
        let news = self.others.contested.astray.news;
        let asked = wakes.request.map_or(news, |(_, at)| at);
        news.max(asked) + self.settings.trt * DEAF_CYCLES
    }

    pub(super) fn deaf_tick(&mut self, now: Instant) {
        if now >= self.deaf_deadline()
            && let Some(list) = self.mode.list()
        {
            self.request_from(now, self.master(list));
        }
    }

    /// Whether anything here waits for a visit that no slot of this station brings.
    pub(super) fn needs_visit(&self) -> bool {
        !self.lane.is_empty() || self.wants_ring()
    }

    /// A cycle that begins with a round of all visits this station before the token rests.
    pub(super) fn heed_round(&mut self, token: &Token) {
        if let Some(ring) = self.mode.ring_mut() {
            ring.wakes.may_rest &= token.rested || token.phase != Phase::RealTime;
        }
    }

    /// An ordinary visit of this station ends: the token may come to rest without another one, or not.
    pub(super) fn may_rest(&mut self, may_rest: bool) {
        if let Some(ring) = self.mode.ring_mut() {
            ring.wakes.may_rest = may_rest;
        }
    }

    /// A request of a member: one place for each, however many it sends.
    pub(super) fn on_request(&mut self, now: Instant, from: StationId, key_epoch: u8) {
        self.counters.requests += 1;
        if self.keys.is_newer_than(key_epoch) && self.may_form_again(now) {
            self.send_form();
        }
        if self.is_master() {
            self.hear_asker(from);
        }
    }

    /// An ordinary visit of this station begins, which answers its request.
    pub(super) fn is_visited(&mut self) {
        if let Some(ring) = self.mode.ring_mut() {
            ring.wakes.request = None;
        }
    }

    /// True if a round of all is due at the beginning of a cycle: because a request is older than the last
    /// cycle, or because most stations ask.
    pub(super) fn requests_want_round(&mut self, token: &Token, before: u32, cycle: u32) -> bool {
        if !self.lane.is_empty() {
            self.hear_asker(self.own.station);
        }
        self.drop_absent(token);
        let Some(ring) = self.mode.ring_mut() else { return false };
        let wakes = &mut ring.wakes;
        // A new master does not know the age of requests from before it became master.
        let counted = wakes.cycle == before;
        let is_overdue = match counted {
            true => !wakes.asked.within(&wakes.overdue).is_empty(),
            false => !wakes.asked.is_empty(),
        };
        (wakes.overdue, wakes.cycle) = (wakes.asked, cycle);
        is_overdue || self.most_ask(token)
    }

    /// A round of all is under way or begins, and visits every station after this moment.
    pub(super) fn round_answers(&mut self, token: &mut Token) {
        if let Some(first) = self.next_asker(token).filter(|_| token.rested) {
            token.next_nrt = first;
        }
        token.rested = false;
        if let Some(ring) = self.mode.ring_mut() {
            ring.wakes.answer_all();
        }
    }

    /// Drops the requests of stations that have died or left: a claim does not wait for their token.
    fn drop_absent(&mut self, token: &Token) {
        let mut absent = StationSet::EMPTY;
        let asked = self.askers();
        for station in asked.iter() {
            if !self.is_member(station) || token.dead.contains(station) {
                absent.insert(station);
            }
        }
        if let Some(ring) = self.mode.ring_mut() {
            ring.wakes.asked = asked.without(&absent);
        }
    }

    /// The stations that ask, this station included.
    fn askers(&self) -> StationSet {
        self.mode.ring().map_or(StationSet::EMPTY, |ring| ring.wakes.asked)
    }

    fn hear_asker(&mut self, station: StationId) {
        if let Some(ring) = self.mode.ring_mut() {
            ring.wakes.asked.insert(station);
        }
    }

    fn answer_asker(&mut self, station: StationId) {
        if let Some(ring) = self.mode.ring_mut() {
            ring.wakes.answer(station);
        }
    }

    /// The next asker in the order of the round: no station is served twice while another waits.
    fn next_asker(&self, token: &Token) -> Option<StationId> {
        self.askers().iter().min_by_key(|station| (*station < token.next_nrt, *station))
    }

    /// Whether single visits, two hops each, cost more than a round.
    fn most_ask(&self, token: &Token) -> bool {
        self.askers().len() * 2 > usize::from(self.live_stations(token)).max(2)
    }

    /// True if a visit that ends has sent as much as a few full frames and left none.
    pub(super) fn sends_few(&self, places: u32) -> bool {
        self.lane.is_empty() && places <= FEW_FRAMES
    }

    /// The token rests with its master until the next cycle or a request.
    pub(super) fn rest(&mut self, now: Instant, until: Instant) -> Turn {
        if now >= until {
            return self.start_cycle(now);
        }
        let Some(hold) = self.mode.hold_mut() else { return Turn::Wait };
        let mut token = hold.token;
        self.settle_token(now, &mut token);
        self.note_list(&token);
        self.drop_absent(&token);
        let over = is_over(&token);
        let elsewhere = self.master(&token) != self.own.station;
        if let Some(hold) = self.mode.hold_mut() {
            hold.token = token;
        }
        if over {
            return self.destroy_token(now);
        }
        if elsewhere {
            return self.go_home(now);
        }
        // A round that stopped for want of time goes on in the next cycle, not in this one.
        if !token.rested {
            return Turn::Wait;
        }
        let own = self.lane.next_octets().map(|octets| self.frame_time(octets));
        match own.zip(self.visit_grant(now, 0)) {
            Some((takes, grant)) if grant.fits(now, takes) => self.hear_asker(self.own.station),
            _ => self.answer_asker(self.own.station),
        }
        let smallest = self.frame_time(FRAME_OCTETS_MIN) + self.hop() * 2;
        let fits = self.residual(now) >= smallest;
        let Some(asker) = self.next_asker(&token).filter(|asker| fits || *asker == self.own.station) else {
            return Turn::Wait;
        };
        let (round, station) = (self.most_ask(&token), self.own.station);
        token.phase = Phase::NonRealTime;
        token.idle_visits = 0;
        token.next_nrt = asker;
        if round {
            self.round_answers(&mut token);
        }
        self.answer_asker(asker);
        if let Some(hold) = self.mode.hold_mut() {
            hold.token = token;
        }
        if asker == station { self.enter_nrt() } else { self.stage(Stage::Leave { to: asker }) }
    }
}
