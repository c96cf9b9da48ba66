//! Timers that follow how long the stations' hosts have stood still (decision 017).
//!
//! ```text
//! station            token: gathered = the longest own stall of all it has visited
//! cycle master       each cycle: who needs more gets it at once; every GATHER_CYCLES: who needs less
//! everybody          hold   how long the token in hand may be held
//!                    drain  the hold that a claim reckons with; silence and death timer follow it
//! ```
//!
//! *Invariant.* No token that lives has a `hold` longer than the drain with which any claim reckons.
//!
//! 1. A station reckons with the `drain` of the newest list or token it has taken for `Settings::valid`,
//!    from the kernel's stamp on, and only where its wait ends within that time; else with the configured
//!    lease.
//! 2. The master raises `drain` at once, and `hold` only when it has said so for longer than that time: by
//!    then each station has heard of it, or reckons with the configured lease.
//! 3. The master lowers both at once, in the only token there is, and cuts its own hold: what it passed on
//!    before has come back to it.
//! 4. A token that a claim has made begins with the shortest hold, which no drain is below.
//! 5. The first token of a ring begins with the configured lease, as does every claim in it: news of another
//!    mode epoch are none.

use super::Rether;
use crate::door::StationId;
use crate::event::{TimersInForce, Why};
use crate::settings::Settings;
use rota_admission::Timers;
use rota_units::{Instant, Span};
use rota_wire::{Generation, Leases, Token};

/// A stall is remembered for so many of these.
const BUCKETS: usize = 10;
const BUCKET: Span = Span::from_millis(60_000);
/// How long stalls are gathered before the leases may become shorter: a round of all begins at least every
/// 32 cycles.
const GATHER_CYCLES: u64 = 36;
/// Leases are changed by so many steps of 255 at least.
const COARSE: u8 = 15;

/// How long this station's host has stood still, in token mode.
#[derive(Clone, Debug)]
struct Stalls {
    longest: [Span; BUCKETS],
    /// The bucket of now, and when it began.
    at: usize,
    began: Instant,
    /// Since when this station is in a ring.
    since: Instant,
    /// It has been for long enough.
    known: bool,
}

impl Stalls {
    fn turn(&mut self, now: Instant) {
        let passed = now.since(self.began).count_down(BUCKET);
        for _ in 0..passed.min(BUCKETS as u64) {
            self.at = (self.at + 1) % BUCKETS;
            self.longest[self.at] = Span::ZERO;
        }
        self.began += BUCKET * passed;
    }

    fn note(&mut self, now: Instant, stall: Span) {
        self.turn(now);
        self.longest[self.at] = self.longest[self.at].max(stall);
    }

    /// A ring begins for this station. Stalls older than the window say nothing of its host.
    fn begin(&mut self, now: Instant) {
        self.known &= now.since(self.began) < BUCKET * BUCKETS as u64;
        self.since = now;
    }

    /// The announced stall. A station that has been in a ring for `watch` knows its host.
    fn announced(&mut self, now: Instant, watch: Span) -> u8 {
        self.turn(now);
        self.known |= now.since(self.since) >= watch;
        if !self.known {
            return Leases::UNWATCHED;
        }
        let longest = self.longest.iter().copied().max().unwrap_or(Span::ZERO);
        longest.as_nanos().div_ceil(1_000_000).min(u64::from(Leases::LONG)) as u8
    }
}

/// Since when a station is the master of a ring without another in between, and what it has said.
#[derive(Clone, Copy, Debug)]
struct Reign {
    generation: Generation,
    cycle: u32,
    /// Since when every token and list has had a drain that is no shorter than now.
    drain: Instant,
    /// Since when stalls are gathered.
    gather: Instant,
}

/// The leases that a station knows of.
#[derive(Clone, Debug)]
pub(super) struct KnownLeases {
    stalls: Stalls,
    /// Of the newest list or token: its leases, its mode epoch, and until when they hold.
    news: Option<(Leases, u32, Instant)>,
    reign: Option<Reign>,
}

impl KnownLeases {
    pub(super) const fn new(now: Instant) -> Self {
        let stalls = Stalls { longest: [Span::ZERO; BUCKETS], at: 0, began: now, since: now, known: false };
        Self { stalls, news: None, reign: None }
    }
}

impl Settings {
    /// The shortest lease that is ever announced: no reservation is refused with it.
    pub fn lease_least(&self) -> Span {
        if self.follow_stalls { self.lease_for_all().min(self.lease) } else { self.lease }
    }

    fn lease_of(&self, step: u8) -> Span {
        let least = self.lease_least();
        let range = self.lease.minus(least).as_nanos();
        least + Span::from_nanos((range * u64::from(step)).div_ceil(u64::from(Leases::CONFIGURED)))
    }

    /// The first coarse step whose lease is no shorter.
    fn step_of(&self, lease: Span) -> u8 {
        let mut steps = (0..Leases::CONFIGURED).step_by(usize::from(COARSE));
        steps.find(|step| self.lease_of(*step) >= lease).unwrap_or(Leases::CONFIGURED)
    }

    /// The lease that such a stall asks for: half as much again, and the time of all slots.
    fn step_for(&self, stall: u8, token: &Token) -> u8 {
        if stall >= Leases::LONG {
            return Leases::CONFIGURED;
        }
        let reserved: u64 = token.slots.as_slice().iter().map(|slot| u64::from(slot.tht_ns)).sum();
        self.step_of(Span::from_micros(u64::from(stall) * 1_500) + Span::from_nanos(reserved))
    }

    /// How long a station is in a ring until it knows how long its host stands still.
    pub fn watch(&self) -> Span {
        self.death_timeout * 10
    }

    /// How long a station reckons with the drain it has heard of last.
    fn valid(&self) -> Span {
        self.death_timeout * 4
    }

    /// The death timer that belongs to a lease: twice as long.
    pub fn death_of(&self, lease: Span) -> Span {
        if lease >= self.lease {
            return self.death_timeout;
        }
        (lease * 2).max(self.hop_timeout * 3).min(self.death_timeout)
    }

    fn timers_of(&self, lease: Span) -> Timers {
        self.timers_with(0, lease, self.death_of(lease))
    }
}

impl Rether {
    // ---- what a token says ----------------------------------------------------------------------------

    /// Leases of a list or a token hold for a while, if their time of arrival is known.
    pub(super) fn heed_leases(&mut self, at: Option<Instant>, token: &Token) {
        if self.settings.follow_stalls {
            let leases = token.leases.unwrap_or(Leases::SAFE);
            let until = at.map_or(Instant::ZERO, |at| at + self.settings.valid());
            self.others.patience.news = Some((leases, token.mode_epoch, until));
        }
    }

    /// How long this token may be held, rests apart.
    pub(super) fn hold_of(&self, token: &Token) -> Span {
        if !self.settings.follow_stalls {
            return self.settings.lease;
        }
        self.settings.lease_of(token.leases.unwrap_or(Leases::SAFE).hold)
    }

    /// Where the slots of a cycle took all of its time, the next one begins in the same hold. Its lease may
    /// end amid this station's slots then, and a station whose lease has ended lets go of the token. Only
    /// another station's hands renew it: this is the station to pass the token to before the cycle begins.
    pub(super) fn renewer(&self, now: Instant) -> Option<StationId> {
        let hold = self.mode.hold().filter(|hold| hold.sent)?;
        let own = hold.token.slots.as_slice().iter().take_while(|slot| slot.station == self.own.station);
        let slots = Span::from_nanos(own.map(|slot| u64::from(slot.tht_ns)).sum());
        // Of what the lease has beyond the slots half is enough: the host may stand still amid them.
        let beyond = self.hold_of(&hold.token).minus(slots).div_down(2).min(self.settings.hop_timeout);
        let next = self.next_live(self.own.station, &hold.token);
        let is_enough = hold.lease_end.since(now) >= slots + beyond;
        (!is_enough && next != self.own.station).then_some(next)
    }

    /// How long the token in this station's hands may be held, rests apart.
    pub fn holding(&self) -> Option<Span> {
        self.mode.hold().map(|hold| self.hold_of(&hold.token))
    }

    /// True if a token's leases can be of this segment.
    pub(super) fn are_leases_sound(&self, token: &Token) -> bool {
        self.settings.follow_stalls || token.leases.is_none()
    }

    /// The leases in this ring's news, while they hold.
    fn leases_at(&self, until: Instant) -> Option<Leases> {
        let (leases, mode_epoch, valid) = self.others.patience.news?;
        (mode_epoch == self.mode_epoch && until < valid).then_some(leases)
    }

    /// The hold with which a claim reckons that waits until then.
    fn drain_at(&self, until: Instant) -> Span {
        self.leases_at(until).map_or(self.settings.lease, |leases| self.settings.lease_of(leases.drain))
    }

    // ---- timers ---------------------------------------------------------------------------------------

    /// T_w: how long a station of this rank hears nothing before it claims.
    pub(super) fn silence(&self, now: Instant, rank: u64) -> Span {
        self.settings.timers_of(self.drain_at(now)).silence(u16::try_from(rank).unwrap_or(u16::MAX))
    }

    /// How long a successor may be silent.
    pub(super) fn death_timeout(&self, now: Instant) -> Span {
        self.settings.death_of(self.drain_at(now))
    }

    /// W: how long so many silent stations may still hand an old token on, and whether one may be resting.
    pub(super) fn drain(&self, now: Instant, silent: usize, may_rest: bool) -> Span {
        let silent = u16::try_from(silent).unwrap_or(u16::MAX);
        let all = |lease| self.settings.timers_of(lease).drain(silent, may_rest);
        let soon = all(self.drain_at(now));
        // The belief must last until the token is made, which may be that much later.
        let known = self.leases_at(now + soon + self.drain_least()).is_some();
        if known { soon } else { all(self.settings.lease) }
    }

    /// The shortest drain that any station reckons with: a station that others wait for may count on it.
    pub(super) fn drain_least(&self) -> Span {
        self.settings.lease_least() + self.settings.delay_max
    }

    /// The timers in force at this station.
    pub fn timers_in_force(&self, now: Instant) -> TimersInForce {
        let (rank, lease) = (0, self.drain_at(now));
        let leases = self.leases_at(now).filter(|_| self.mode.is_ring());
        let why = match leases {
            _ if !self.settings.follow_stalls => Why::Configured,
            None => Why::NoNews,
            Some(Leases { stall: Leases::UNWATCHED, station, .. }) => Why::Unwatched(u16::from(station)),
            Some(Leases { stall, station, .. }) => {
                Why::Stall(Span::from_millis(u64::from(stall)), u16::from(station))
            }
        };
        TimersInForce {
            death: self.death_timeout(now),
            silence: self.silence(now, rank),
            hold: leases.map_or(self.settings.lease, |leases| self.settings.lease_of(leases.hold)),
            drain: lease,
            why,
        }
    }

    // ---- one's own stalls -----------------------------------------------------------------------------

    /// This station's host stood still for so long. Outside a ring nobody waits for it.
    pub fn stood_still(&mut self, now: Instant, stall: Span) {
        if self.settings.follow_stalls && self.mode.is_ring() {
            self.others.patience.stalls.note(now, stall);
        }
    }

    /// From now on this station is in a ring.
    pub(super) fn watch_stalls(&mut self, now: Instant) {
        self.others.patience.stalls.begin(now);
    }

    /// A token in this station's hands hears of its longest stall.
    pub(super) fn announce_stalls(&mut self, now: Instant, token: &mut Token) {
        let Some(leases) = &mut token.leases else { return };
        let own = self.others.patience.stalls.announced(now, self.settings.watch());
        if own > leases.gathered {
            (leases.gathered, leases.gatherer) = (own, self.own.station as u8);
        }
    }

    // ---- the master -----------------------------------------------------------------------------------

    /// With what the first token of a ring begins.
    pub(super) fn first_leases(&self) -> Option<Leases> {
        let station = self.own.station as u8;
        let (hold, gatherer) = (Leases::CONFIGURED, station);
        self.settings.follow_stalls.then_some(Leases { hold, station, gatherer, ..Leases::SAFE })
    }

    /// With what a token begins that a claim has made of the newest list.
    pub(super) fn claimed_leases(&mut self, now: Instant, token: &mut Token) {
        let known = self.leases_at(now);
        let drain = known.map_or(Leases::CONFIGURED, |leases| leases.drain);
        let of = known.or(token.leases).unwrap_or(Leases::SAFE);
        token.leases = self.settings.follow_stalls.then_some(Leases { hold: 0, drain, ..of });
        self.heed_leases(Some(now), token);
    }

    /// A cycle begins: what its token and its list say of the leases. True when the hold has become shorter.
    pub(super) fn rule_leases(&mut self, now: Instant, before: u32, cycle: u32, token: &mut Token) -> bool {
        if !self.settings.follow_stalls {
            return false;
        }
        let generation = self.fence.seen.generation;
        let goes_on = self
            .others
            .patience
            .reign
            .filter(|reign| reign.generation == generation && reign.cycle == before);
        let mut leases = token.leases.unwrap_or(Leases::SAFE);
        let mut reign = goes_on.unwrap_or(Reign { generation, cycle, drain: now, gather: now });
        reign.cycle = cycle;
        self.gather(now, &mut reign, &mut leases);
        let wants = self.settings.step_for(leases.stall, token);
        let before = leases.hold;
        if wants > leases.drain {
            (leases.drain, reign.drain) = (wants, now);
        }
        if wants < leases.drain {
            (leases.hold, leases.drain) = (leases.hold.min(wants), wants);
        }
        let said = self.settings.valid();
        if leases.hold < leases.drain && now.since(reign.drain) > said + said.div_down(8) {
            leases.hold = leases.drain;
        }
        token.leases = Some(leases);
        self.others.patience.reign = Some(reign);
        self.heed_leases(Some(now), token);
        leases.hold < before
    }

    /// Longer stalls count at once, shorter ones when all have been asked.
    fn gather(&mut self, now: Instant, reign: &mut Reign, leases: &mut Leases) {
        let own = self.others.patience.stalls.announced(now, self.settings.watch());
        let me = self.own.station as u8;
        if own > leases.gathered {
            (leases.gathered, leases.gatherer) = (own, me);
        }
        let is_whole = now.since(reign.gather) >= self.settings.trt * GATHER_CYCLES;
        if leases.gathered > leases.stall || is_whole {
            (leases.stall, leases.station) = (leases.gathered, leases.gatherer);
        }
        if is_whole {
            (leases.gathered, leases.gatherer) = (own, me);
            reign.gather = now;
        }
    }
}

#[cfg(feature = "model")]
impl Rether {
    /// The part of this state that decides the next step of the station.
    pub(super) fn visit_patience(&self, visit: &mut dyn super::Visit) {
        let KnownLeases { stalls, news, reign } = &self.others.patience;
        if !self.settings.follow_stalls {
            return;
        }
        let Stalls { longest, at, began, since, known } = stalls;
        longest.iter().for_each(|stall| visit.word(stall.as_nanos()));
        visit.word((*at as u64) << 1 | u64::from(*known));
        visit.since(*began, BUCKET);
        visit.since(*since, self.settings.watch());
        if let Some((leases, mode_epoch, valid)) = news {
            super::model::visit_leases(visit, leases);
            visit.word(u64::from(*mode_epoch));
            visit.until(*valid);
        }
        if let Some(Reign { generation, cycle, drain, gather }) = reign {
            visit.stamp(*generation, 0);
            visit.cycle(*cycle);
            visit.since(*drain, self.settings.valid() * 2);
            visit.since(*gather, self.settings.trt * GATHER_CYCLES);
        }
    }
}
