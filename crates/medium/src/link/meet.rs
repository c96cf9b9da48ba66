//! The two ends find, prove and lose each other.
//!
//! Each hello has its sender's nonce and answers the nonce of the station that it has heard. An end takes the
//! sender of a hello that answers its own nonce for its *peer*: no older boot can know it. A boot that seems
//! to follow the peer's has to answer another nonce, since the boots before knew this one. Of a peer only
//! frames with a rising counter count. An end that loses its peer draws another nonce, so that the other one
//! notices that it was taken for dead; it asks the senders of its channels then, as on a RETHER segment.
//!
//! While a channel is open an end says hello at short intervals and says so (`StationState::Ring`): its peer
//! may then take it for dead after the death timer of the settings, and otherwise after four hellos. A node
//! that ends leaves a will with its guardian, and a node that stops says goodbye.

use super::outbox::Pending;
use super::{Gate, Link};
use crate::door::FrameVerdict;
use crate::event::{MediumEvent, WillName};
use crate::members::Announced;
use crate::rng::Rng;
use rota_units::{Instant, Span};
use rota_wire::bodies::StationState;
use rota_wire::{Announce, LinkHeader, MacAddr};

/// Hellos at once when a link begins.
const FIRST_HELLOS: u8 = 10;
/// Hellos at short intervals behind the last channel, so that the peer misses none of them.
const FADING: u8 = 4;
/// Hello intervals of silence after which a station is gone that has no channel.
const HELLOS_MISSED: u64 = 4;

/// Intervals of joining in which a candidate has to answer our nonce. Then another one may take its place.
const CANDIDATE_INTERVALS: u64 = 3;

/// The station that may be at the other end. A hello that was recorded makes one, too, and holds its place
/// for a short time only, however often it is played again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) mac: MacAddr,
    since: Instant,
}

/// Where the meeting stands.
#[derive(Clone, Debug)]
pub(super) struct Meeting {
    next_hello: Instant,
    /// The newest hello that was no answer.
    last_hello: Instant,
    /// Hellos at short intervals that are still to come.
    quick: u8,
    candidate: Option<Candidate>,
    /// The nonce that the next boot of the peer has to answer; 0 until it is heard. It is this end's own
    /// then.
    challenge: u64,
    /// When the peer last showed that it takes this end for its peer.
    alive: Instant,
}

impl Meeting {
    pub(super) const fn new(now: Instant) -> Self {
        let last_hello = Instant::ZERO;
        let (quick, candidate, challenge) = (FIRST_HELLOS, None, 0);
        Self { next_hello: now, last_hello, quick, candidate, challenge, alive: now }
    }
}

/// A fresh nonce. The highest values in the place of an answer are signs on a RETHER segment, and 0 is none.
pub(super) fn nonce(rng: &mut Rng) -> u64 {
    rng.next_u64() >> 1 | 1
}

impl Link {
    /// True while a channel of this link is open here, or is about to be.
    pub(super) fn is_engaged(&self) -> bool {
        !self.shares.sessions.is_empty() || self.shares.receives
    }

    /// Is told if the other station has a channel to this one. The gate follows with the next timer.
    pub fn set_receives(&mut self, receives: bool) {
        if self.shares.receives != receives {
            (self.shares.receives, self.shares.shuts_from) = (receives, Instant::ZERO);
            self.say_hello_soon();
        }
    }

    /// The peer is to learn at once whether this end says hello at short intervals. Beside shares a hello
    /// comes no sooner than half a cycle behind the one before: admission charges two in a cycle, and
    /// programs at the other end may open and close channels as often as they like.
    pub(super) fn say_hello_soon(&mut self) {
        (self.meeting.next_hello, self.meeting.quick) = (Instant::ZERO, FADING);
    }

    /// The short interval of hellos. Admission charges two of them in a cycle.
    fn interval(&self) -> Span {
        self.settings.death_timeout.div_down(5).max(self.settings.trt.div_down(2))
    }

    /// How long the peer may be silent while a channel is open.
    pub(super) fn silence_max(&self) -> Span {
        self.settings.death_timeout.max(self.interval() * 3)
    }

    /// How long this peer may be silent.
    fn patience(&self, said: &Announce) -> Span {
        match said.state {
            StationState::Ring => self.silence_max(),
            _ => self.settings.hello * HELLOS_MISSED,
        }
    }

    /// When the next hello is due; none of a station that has said goodbye.
    pub(super) fn hello_deadline(&self) -> Instant {
        if self.leaving {
            return Instant::FAR;
        }
        let Meeting { next_hello, last_hello, .. } = self.meeting;
        let is_free = self.gate == Gate::Open;
        if is_free { next_hello } else { next_hello.max(last_hello + self.settings.trt.div_down(2)) }
    }

    pub(super) fn silence_deadline(&self) -> Instant {
        self.peer().map_or(Instant::FAR, |peer| self.meeting.alive + self.patience(&peer.announce))
    }

    /// This host stood still for so long: its peer was not heard meanwhile, and has two intervals to be.
    pub fn stood_still(&mut self, now: Instant, _stall: Span) {
        if let Some(peer) = self.peer() {
            let left = self.patience(&peer.announce).minus(self.interval() * 2);
            self.meeting.alive = self.meeting.alive.max(now.minus(left));
        }
    }

    /// A frame for this end alone has come from the peer.
    pub(super) fn note_alive(&mut self, now: Instant) {
        self.meeting.alive = now;
    }

    pub(super) fn meet_tick(&mut self, now: Instant) {
        if now >= self.silence_deadline() {
            self.counters.stations_declared_dead += 1;
            self.lose_peer(now, (false, false));
        }
        if self.own.frame_seq >= crate::sealing::SEQ_END {
            self.begin_anew(now);
        }
        if now < self.hello_deadline() {
            return;
        }
        let short = if self.peer().is_some() { self.interval() } else { self.settings.join_interval };
        let quick = self.peer().is_some() && self.is_engaged() || self.meeting.quick > 0;
        self.meeting.quick = self.meeting.quick.saturating_sub(1);
        self.meeting.last_hello = now;
        self.meeting.next_hello = now + if quick { short } else { self.settings.hello };
        self.out.outbox.push_back(Pending::Hello);
    }

    /// The counter of this boot ends: the station goes on as another boot.
    fn begin_anew(&mut self, now: Instant) {
        self.own.incarnation = (self.rng.next_u64() >> 32) as u32 | 1;
        self.own.frame_seq = 0;
        self.lose_peer(now, (false, false));
    }

    /// The peer is gone. Its channels end, and give their shares back.
    fn lose_peer(&mut self, now: Instant, (stopped, died): (bool, bool)) {
        self.own.nonce = nonce(&mut self.rng);
        let Some(mac) = self.peer().map(|peer| peer.mac) else { return };
        self.members.retain(|_| false);
        (self.own.station, self.own.answers) = (0, 0);
        self.meeting = Meeting { last_hello: self.meeting.last_hello, ..Meeting::new(now) };
        self.event(MediumEvent::MemberGone { mac, stopped, died });
        self.event(MediumEvent::ModeChanged);
    }

    /// A hello that is proven.
    pub(super) fn on_hello(&mut self, now: Instant, header: &LinkHeader, mac: MacAddr, said: &Announce) {
        if said.settings != self.digest {
            self.counters.stations_refused += 1;
            self.mismatches.disagrees(now, mac, said, &self.settings);
            return;
        }
        match self.peer().map(|peer| (peer.mac, peer.incarnation)) {
            Some((peer, _)) if peer != mac => {
                self.counters.stations_refused += 1;
                self.mismatches.third(now, mac, said);
            }
            Some((_, boot)) if boot == header.incarnation => self.on_hello_of_peer(now, header, said),
            _ => self.on_hello_of_new(now, header, mac, said),
        }
    }

    /// A hello of the peer's own boot.
    fn on_hello_of_peer(&mut self, now: Instant, header: &LinkHeader, said: &Announce) {
        let Some(peer) = self.peer() else { return };
        let (mac, station, nonce) = (peer.mac, peer.station, peer.announce.nonce);
        match self.members.heard(now, mac, header.incarnation, header.seq) {
            Announced::Known => {}
            _ => return self.judge(FrameVerdict::Replayed),
        }
        if said.state == StationState::Leaving {
            self.lose_peer(now, (true, false));
            return;
        }
        if said.answers == self.own.nonce {
            self.meeting.alive = now;
        }
        if said.nonce != nonce {
            // It has taken this station for dead: the shares of this end are over, and so are its channels.
            self.own.answers = said.nonce;
            self.event(MediumEvent::TakenForDead);
            self.lose_shares();
            self.open_gate(now);
            self.answer(now);
        }
        self.members.announce(now, station, mac, header.incarnation, said, header.seq);
    }

    /// A hello of a boot that is no peer yet.
    fn on_hello_of_new(&mut self, now: Instant, header: &LinkHeader, mac: MacAddr, said: &Announce) {
        if said.state == StationState::Leaving {
            self.judge(FrameVerdict::Replayed);
            return;
        }
        let asked = if self.peer().is_some() { self.meeting.challenge } else { self.own.nonce };
        if asked != 0 && said.answers == asked {
            self.meet(now, header, mac, said);
            return;
        }
        let known = self.meeting.candidate.filter(|known| known.mac == mac);
        if known.is_none() && !self.takes_place(now) {
            // Two others are heard: one of them, or this station, is one too many.
            self.mismatches.third(now, mac, said);
            return;
        }
        self.meeting.candidate = Some(known.unwrap_or(Candidate { mac, since: now }));
        if self.peer().is_none() {
            self.own.answers = said.nonce;
            self.answer(now);
        } else if self.answers.take(now) {
            // The peer seems to have booted again. Only an answer proves it.
            if self.meeting.challenge == 0 {
                self.meeting.challenge = nonce(&mut self.rng);
            }
            let challenge = self.meeting.challenge;
            self.out.outbox.push_back(Pending::Answer { to: mac, nonce: said.nonce, challenge });
        } else {
            self.exceeds_budget();
        }
    }

    /// True if another station may take the candidate's place, which has not answered in its time.
    fn takes_place(&self, now: Instant) -> bool {
        let time = self.settings.join_interval * CANDIDATE_INTERVALS;
        self.meeting.candidate.is_none_or(|candidate| now.since(candidate.since) >= time)
    }

    /// The other one learns of this end at once.
    fn answer(&mut self, now: Instant) {
        if self.answers.take(now) {
            self.out.outbox.push_back(Pending::Hello);
        } else {
            self.exceeds_budget();
        }
    }

    /// More hellos than a station says: they may be recorded ones.
    fn exceeds_budget(&mut self) {
        self.counters.over_budget += 1;
        self.judge(FrameVerdict::Replayed);
    }

    /// A station has answered what it was asked: it is the peer.
    fn meet(&mut self, now: Instant, header: &LinkHeader, mac: MacAddr, said: &Announce) {
        if self.peer().is_some() {
            // Another boot of it: what the one before had is over.
            let challenge = self.meeting.challenge;
            self.counters.stations_declared_dead += 1;
            self.lose_peer(now, (false, false));
            self.own.nonce = challenge;
        }
        let (own, station) = if self.own.me.mac < mac { (1, 2) } else { (2, 1) };
        (self.own.station, self.own.answers) = (own, said.nonce);
        self.members.announce(now, station, mac, header.incarnation, said, header.seq);
        let _ = self.members.take_renumbered();
        self.mismatches.agrees(mac);
        self.meeting.candidate = Some(Candidate { mac, since: now });
        self.meeting.alive = now;
        self.event(MediumEvent::Renumbered);
        self.event(MediumEvent::MemberUp { station });
        self.event(MediumEvent::ModeChanged);
        self.say_hello_soon();
    }

    /// The will of this boot of the peer: its process has ended.
    pub(super) fn on_will(&mut self, now: Instant, mac: MacAddr, header: &LinkHeader, body: &[u8]) {
        let is_peer = |peer: &&crate::members::Member| {
            peer.mac == mac && peer.incarnation == header.incarnation && body.is_empty()
        };
        if self.peer().filter(is_peer).is_none() {
            self.counters.wills_void += 1;
            self.judge(FrameVerdict::Replayed);
            return;
        }
        self.counters.wills += 1;
        self.counters.stations_declared_dead += 1;
        self.lose_peer(now, (false, true));
    }

    /// The name of the will that this station would leave if it died now.
    pub fn will_name(&self) -> Option<WillName> {
        let met = self.peer().is_some() && !self.leaving;
        met.then(|| WillName::of_link(self.own.incarnation, self.own.station))
    }

    /// The state that this end tells.
    pub(super) fn state(&self) -> StationState {
        match self.peer() {
            _ if self.leaving => StationState::Leaving,
            None => StationState::Joining,
            Some(_) if self.is_engaged() => StationState::Ring,
            Some(_) => StationState::Plain,
        }
    }
}
