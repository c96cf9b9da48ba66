//! Stations that keep the token too long, or send outside their slots, again and again (decision 016).
//!
//! On a switch nobody but the next station sees when a station passes the token on. So where a token is late
//! in several cycles, whoever notices has it *audited*: it goes to all for a while, and names the one that
//! takes it. Then each station measures each hold by its own clock, from the frame that gave the token away
//! to the frame that the holder passes it with; nobody's own word counts for itself. Of the last sixteen
//! holds of a station most may be a little too long or some far too long: a host that stalls now and then
//! does neither. The first with enough evidence and the token in its hands strikes the station from it.
//!
//! Data says under which token it was sent. Data that comes later than D behind a newer token or list left
//! its station behind the token; copies of a frame say nothing.

use super::counters::newer;
use super::join::{HOLD_OFF_MIN, hold_off};
use super::ring::Ring;
use super::{Rether, Stamp};
use crate::door::{Place, StationId};
use crate::event::Excluded;
use crate::event::MediumEvent;
use rota_units::{Instant, Span};
use rota_wire::{Foul, Generation, MacAddr, Phase, StationSet, Struck, Token};

/// So many cycles of the last 64 came late before anybody is watched: an idle ring visits all once in 32.
const LATE_CYCLES: u32 = 2;
/// So many cycles long a token is audited.
const AUDIT_CYCLES: u32 = 64;
/// Of the last sixteen holds so many are longer than what the station may take: three quarters.
const OVER: u32 = 12;
/// Of these so many are longer by more than a quarter of the cycle. An honest host that stalls as often
/// breaks the others' promises in every third cycle, and cannot be told from one that does not care.
const FAR_OVER: u32 = 6;
/// Evidence counts for so many cycles after the last of it: who has stopped is not struck.
const FRESH_CYCLES: u64 = 8;
/// The first exclusion is so many times the first wait of a station that dies: each return of a hog costs the
/// others one more audit.
const HOLD_OFFS: u64 = 8;

/// Stations that are kept account of.
pub(super) const STATIONS: usize = 256;

/// A token that another station was seen to be given.
#[derive(Clone, Copy, Debug)]
struct Given {
    to: StationId,
    stamp: Stamp,
    cycle: u32,
    /// This station gave it.
    mine: bool,
    /// When the first copy went, and when its holder should have let go of it.
    first: (Instant, Instant),
    /// The same of the newest copy.
    last: (Instant, Instant),
    copies: u8,
    /// How often the holder has said that it came: where each copy was answered, none was lost.
    answers: u8,
}

/// The evidence about a station.
#[derive(Clone, Copy, Debug)]
struct Watched {
    mac: MacAddr,
    /// Holds, the newest in the lowest bit: too long, and by far.
    over: u16,
    far: u16,
    /// The tokens under which it sent data to this station, the newest in the lowest bit: outside its slot.
    stray: u16,
    /// The newest of this data.
    newest: (Stamp, Place),
    /// The longest of these holds.
    held: Span,
}

/// All that is known of hogs.
#[derive(Clone, Debug)]
pub(super) struct Hogs {
    /// The longest ordinary visit: computed once a ring, not once a hop.
    pub(super) visit: Span,
    given: Option<Given>,
    /// The newest audited token that was overheard.
    heard: Stamp,
    /// The generation that the evidence is of.
    generation: Generation,
    /// The newest token or list that came to this station, and when.
    news: (Stamp, Instant),
    watched: Vec<Watched>,
    /// Cycles in which the token came late, the newest in the lowest bit, and which that is.
    late: u64,
    late_cycle: u32,
    /// Until which cycle this station, as cycle master, has the token audited.
    audit_until: Option<u32>,
    /// The accused station, the reason, and the time of the last evidence.
    accused: Option<(MacAddr, Foul, Instant)>,
    /// The strike that the list of this cycle tells, where this station is its master.
    told: Option<Struck>,
    /// A hold of this station's successor that was too long unless a copy of the token was lost: decided when
    /// each copy has been answered.
    unsure: Option<(Given, Instant)>,
}

impl Default for Hogs {
    fn default() -> Self {
        Self {
            visit: Span::ZERO,
            given: None,
            heard: Stamp::default(),
            generation: Stamp::default().generation,
            news: (Stamp::default(), Instant::ZERO),
            watched: Vec::with_capacity(STATIONS),
            late: 0,
            late_cycle: 0,
            audit_until: None,
            accused: None,
            told: None,
            unsure: None,
        }
    }
}

impl Hogs {
    fn of(&mut self, mac: MacAddr) -> &mut Watched {
        let at = self.watched.iter().position(|watched| watched.mac == mac).unwrap_or_else(|| {
            if self.watched.len() == STATIONS {
                self.watched.remove(0);
            }
            let newest = (Stamp::default(), Place::default());
            self.watched.push(Watched { mac, over: 0, far: 0, stray: 0, newest, held: Span::ZERO });
            self.watched.len() - 1
        });
        &mut self.watched[at]
    }

    /// How many of the last 64 cycles were late, seen from this one.
    fn late_cycles(&self, cycle: u32) -> u32 {
        let passed = cycle.wrapping_sub(self.late_cycle);
        self.late.checked_shl(passed).unwrap_or(0).count_ones()
    }

    fn note_late(&mut self, cycle: u32) {
        let passed = cycle.wrapping_sub(self.late_cycle);
        self.late = self.late.checked_shl(passed).unwrap_or(0) | 1;
        self.late_cycle = cycle;
    }

    /// A station held the token from `since`; it was to pass it by `by` and did so at `at`.
    fn note_hold(&mut self, mac: MacAddr, (since, by): (Instant, Instant), at: Instant, far: Span) {
        let watched = self.of(mac);
        let (over, far) = (at > by, at > by + far);
        watched.over = watched.over << 1 | u16::from(over);
        watched.far = watched.far << 1 | u16::from(far);
        if !over {
            return;
        }
        watched.held = watched.held.max(at.since(since));
        if watched.over.count_ones() >= OVER || watched.far.count_ones() >= FAR_OVER {
            self.accused = Some((mac, Foul::Held, at));
        }
    }

    /// Data of a station has come; `stray` where it left behind the token. Only what is newer than all
    /// before it counts: anybody can send a frame again that was on the wire.
    fn note_data(&mut self, mac: MacAddr, stamp: Stamp, place: Place, stray: bool, at: Instant) {
        let watched = self.of(mac);
        let (last, before) = watched.newest;
        if stamp < last || stamp == last && !place.is_behind(before) {
            return;
        }
        watched.stray = (if stamp > last { watched.stray << 1 } else { watched.stray }) | u16::from(stray);
        watched.newest = (stamp, place);
        if stray && watched.stray.count_ones() >= OVER {
            self.accused = Some((mac, Foul::Sent, at));
        }
    }

    /// A station is left out: it was the cause of the late cycles.
    fn exclude(&mut self, mac: MacAddr) {
        self.watched.retain(|watched| watched.mac != mac);
        self.accused.take_if(|accused| accused.0 == mac);
        (self.late, self.given, self.unsure) = (0, None, None);
    }

    /// The same token once more, now to be passed on by `by`.
    fn repeated(&mut self, stamp: Stamp, now: Instant, by: Instant) {
        if let Some(given) = self.given.as_mut().filter(|given| given.stamp == stamp) {
            given.copies = given.copies.saturating_add(1);
            given.last = (now, by);
        }
    }

    /// The holder of a token of this station says that it came.
    fn answer(&mut self, from: StationId, stamp: Stamp) -> Option<(Given, Instant)> {
        let is_it = |given: &Given| given.mine && given.to == from && given.stamp == stamp;
        if let Some(given) = self.given.as_mut().filter(|given| is_it(given)) {
            given.answers = given.answers.saturating_add(1);
        }
        let (given, _) = self.unsure.as_mut().filter(|(given, _)| is_it(given))?;
        given.answers = given.answers.saturating_add(1);
        self.unsure.take_if(|(given, _)| given.answers >= given.copies)
    }

    /// Words for a model checker: what evidence there is, and whether the token is audited.
    #[cfg(feature = "model")]
    pub(super) fn words(&self, cycle: u32) -> impl Iterator<Item = u64> + '_ {
        let late = u64::from(self.late_cycles(cycle).min(LATE_CYCLES));
        let head = [late << 1 | u64::from(self.audit_until.is_some())];
        let watched = self.watched.iter().filter(|watched| (watched.over | watched.stray) != 0);
        head.into_iter().chain(watched.flat_map(|watched| {
            let holds = u64::from(watched.over) << 32 | u64::from(watched.far) << 16;
            [u64::from(watched.mac.0[5]), holds | u64::from(watched.stray)]
        }))
    }
}

impl Rether {
    /// The excluded stations that this station knows of.
    pub fn excluded(&self, now: Instant) -> impl Iterator<Item = &Excluded> {
        self.others.standing.excluded(now)
    }

    /// True if this station waits for the end of its own exclusion: until then it does not ask.
    pub(super) fn is_out(&self, now: Instant) -> bool {
        self.others.standing.excluded(now).any(|excluded| excluded.here)
    }

    // ---- watching -------------------------------------------------------------------------------------

    /// The time that a hold may take beyond its share: the way of the token to its holder, and the way on.
    fn slack(&self) -> Span {
        self.settings.delay_max * 2 + self.settings.link.hop
    }

    /// By when a station that is given this token has to pass it on, as all others will see it: its slots in
    /// a row, or one ordinary visit; who comes home may rest to the end of the cycle.
    fn must_pass_by(&self, to: StationId, token: &Token, at: Instant) -> Option<Instant> {
        if !self.mode.clock().known || token.phase == Phase::First || token.cycle != self.mode.clock().cycle {
            return None;
        }
        let (begin, visit) = (self.mode.clock().start, self.mode.ring()?.hogs.visit);
        let is_master = self.master(token) == to;
        let slots = token.slots.as_slice();
        let position = usize::from(token.position).min(slots.len());
        let mut by = at;
        if token.phase == Phase::RealTime {
            let own = slots[position..].iter().take_while(|slot| slot.station == to).count();
            let span = |from: usize, to: usize| -> Span {
                slots[from..to].iter().map(|slot| Span::from_nanos(u64::from(slot.tht_ns))).sum()
            };
            if own > 0 && token.slots.is_strict() {
                by = by.max(begin + span(0, position));
            }
            by += span(position, position + own);
            // Behind the last slot the round may begin with this station.
            if own > 0 && position + own < slots.len() {
                return Some(by + self.slack());
            }
        }
        if token.phase != Phase::Home {
            by += visit;
        }
        if is_master {
            by = by.max(begin + self.settings.trt);
        }
        (is_master || token.phase != Phase::Home).then(|| by + self.slack())
    }

    /// True if this frame came as soon as frames do: by the sender's word it left no longer ago than D.
    /// Where frames wait at this station's port, what it measures is not the others' doing.
    fn came_in_time(&self, token: &Token, at: Instant) -> bool {
        let spent = self.settings.trt.minus(Span::from_nanos(u64::from(token.residual_ns)));
        token.residual_ns > 0 && at <= self.mode.clock().start + spent + self.slack()
    }

    /// A newer token or list of `from` ends what it held.
    fn close_hold(&mut self, from: StationId, stamp: Stamp, cycle: u32, at: Instant) {
        let Some(ring) = self.mode.ring_mut() else { return };
        let Some(given) = ring.hogs.given.take_if(|given| stamp > given.stamp) else { return };
        // The very next hop: what came in between may have been on its way elsewhere and back.
        let next = Stamp { seq: given.stamp.seq + 1, ..given.stamp };
        let sound = given.to == from && given.cycle == cycle && stamp == next;
        let Some(mac) = self.members.get(from).map(|member| member.mac).filter(|_| sound) else { return };
        // A copy may have been lost on its way to the holder, unless it has answered each.
        let all_came = given.copies == 1 || given.mine && given.answers >= given.copies;
        let span = if all_came { given.first } else { given.last };
        if !all_came && at > given.first.1 && at <= given.last.1 {
            ring.hogs.unsure = given.mine.then_some((given, at));
            return;
        }
        ring.hogs.note_hold(mac, span, at, self.settings.trt.div_down(4));
    }

    /// The holder of a token that this station gave says that it came.
    pub(super) fn watch_answer(&mut self, from: StationId, stamp: Stamp) {
        let Some(ring) = self.mode.ring_mut() else { return };
        let Some((given, at)) = ring.hogs.answer(from, stamp) else { return };
        if let Some(mac) = self.members.get(from).map(|member| member.mac) {
            ring.hogs.note_hold(mac, given.first, at, self.settings.trt.div_down(4));
        }
    }

    fn open_hold(&mut self, to: StationId, stamp: Stamp, token: &Token, at: Instant, mine: bool) {
        let given = self.must_pass_by(to, token, at).map(|by| {
            let (first, last, cycle) = ((at, by), (at, by), token.cycle);
            Given { to, stamp, cycle, mine, first, last, copies: 1, answers: 0 }
        });
        let Some(ring) = self.mode.ring_mut() else { return };
        // Where tokens are lost again and again, honest stations wait for them: a claim ends all suspicion.
        if core::mem::replace(&mut ring.hogs.generation, stamp.generation) != stamp.generation {
            ring.hogs.watched.clear();
            ring.hogs.accused = None;
        }
        ring.hogs.given = given;
    }

    /// This station has passed the token on.
    pub(super) fn watch_successor(&mut self, now: Instant, to: StationId, stamp: Stamp, token: &Token) {
        self.open_hold(to, stamp, token, now, true);
    }

    /// The same token was sent to it once more.
    pub(super) fn watch_again(&mut self, now: Instant) {
        let Some(watch) = self.mode.watch() else { return };
        let (by, stamp) = (self.must_pass_by(watch.to, &watch.token, now), watch.stamp);
        self.note_repeated_token(stamp, now, by);
    }

    fn note_repeated_token(&mut self, stamp: Stamp, at: Instant, by: Option<Instant>) {
        if let Some((ring, by)) = self.mode.ring_mut().zip(by) {
            ring.hogs.repeated(stamp, at, by);
        }
    }

    /// An audited token for somebody else. It changes nothing but what is known of hogs.
    pub(super) fn overhear(
        &mut self,
        at: Option<Instant>,
        from: StationId,
        to: MacAddr,
        stamp: Stamp,
        token: &Token,
    ) {
        let Some(heard) = self.mode.ring().map(|ring| ring.hogs.heard) else { return };
        let is_again = stamp == heard;
        let Some(at) = at.filter(|_| stamp.generation == self.fence.seen.generation) else { return };
        if !is_again && (stamp <= self.fence.seen || stamp < heard) || !self.is_sound(token) {
            return;
        }
        let Some(to) = self.members.by_mac(to).map(|member| member.station) else { return };
        if is_again {
            self.note_repeated_token(stamp, at, self.must_pass_by(to, token, at));
            return;
        }
        if let Some(ring) = self.mode.ring_mut() {
            ring.hogs.heard = stamp;
        }
        self.close_given(from, stamp, token.cycle, at);
        self.ask_to_strike(at);
        if self.came_in_time(token, at) {
            self.open_hold(to, stamp, token, at, false);
        }
    }

    /// The token has come here. Called when its news have been taken.
    pub(super) fn watch_predecessor(&mut self, at: Instant, from: StationId, stamp: Stamp, token: &Token) {
        let Some(ring) = self.mode.ring_mut() else { return };
        // Straight back it is an answer itself.
        if let Some(given) = ring.hogs.given.as_mut().filter(|given| given.to == from) {
            given.answers = given.answers.saturating_add(1);
        }
        self.close_given(from, stamp, token.cycle, at);
        if !self.mode.clock().known || token.cycle != self.mode.clock().cycle {
            return;
        }
        let slots = token.slots.as_slice();
        let due = match token.phase {
            Phase::RealTime => {
                let before = &slots[..usize::from(token.position).min(slots.len())];
                before.iter().map(|slot| Span::from_nanos(u64::from(slot.tht_ns))).sum()
            }
            Phase::Home => self.settings.trt,
            Phase::First | Phase::NonRealTime => return,
        };
        let late = at > self.mode.clock().start + due + self.slack();
        if let Some(ring) = self.mode.ring_mut().filter(|_| late) {
            ring.hogs.note_late(token.cycle);
        }
    }

    /// A newer token or list has come: no hold that was watched before it goes on.
    fn close_given(&mut self, from: StationId, stamp: Stamp, cycle: u32, at: Instant) {
        self.close_hold(from, stamp, cycle, at);
        if let Some(ring) = self.mode.ring_mut() {
            ring.hogs.given = None;
            ring.hogs.news = (stamp, at);
        }
    }

    /// A list was taken: its sender, as cycle master, begins a cycle.
    pub(super) fn watch_master(&mut self, at: Option<Instant>, from: StationId, stamp: Stamp, token: &Token) {
        let Some(at) = at.filter(|_| self.fence.list_stamp == stamp) else { return };
        let Some(ring) = self.mode.ring_mut() else { return };
        ring.hogs.news = (stamp, at);
        let begins = ring.hogs.given.is_none_or(|given| given.cycle != token.cycle);
        if !begins {
            // Somebody was struck from it in the middle of a hold.
            return;
        }
        let before = ring.hogs.given.map_or(token.cycle, |given| given.cycle);
        self.close_given(from, stamp, before, at);
        if token.audit.is_some() && token.residual_ns > 0 {
            self.open_hold(from, stamp, token, at, false);
        }
    }

    /// Data of another station has come to this one, and the port has read its place.
    pub fn on_place(&mut self, at: Option<Instant>, from: MacAddr, stamp: (Generation, u64), place: Place) {
        let stamp = Stamp { generation: stamp.0, seq: stamp.1 };
        let Some(ring) = self.mode.ring_mut() else { return };
        let (news, when) = ring.hogs.news;
        let Some(at) = at.filter(|_| stamp.generation == self.fence.seen.generation) else { return };
        let stray =
            stamp < news && news.generation == stamp.generation && at > when + self.settings.delay_max;
        ring.hogs.note_data(from, stamp, place, stray, at);
        self.ask_to_strike(at);
    }

    /// A station with enough evidence need not wait for a slot of its own.
    fn ask_to_strike(&mut self, now: Instant) {
        if self.mode.ring().is_some_and(|ring| ring.hogs.accused.is_some()) {
            self.ask_for_token(now);
        }
    }

    // ---- audits ---------------------------------------------------------------------------------------

    /// A station that has seen several late tokens has this one audited.
    pub(super) fn ask_audit(&self, token: &mut Token) {
        let late = |ring: &Ring| ring.clock.known && ring.hogs.late_cycles(ring.clock.cycle) >= LATE_CYCLES;
        let suspects = self.mode.ring().is_some_and(late);
        if suspects && token.phase != Phase::First {
            token.audit.get_or_insert(self.own.me.mac);
        }
    }

    /// The cycle master begins a cycle: it keeps up what somebody has asked for, for a while. Then one cycle
    /// goes without, in which whoever still suspects somebody asks again.
    pub(super) fn audit_cycle(&mut self, token: &mut Token, cycle: u32) {
        // Told in two cycles: one list may be lost.
        let Some(ring) = self.mode.ring_mut() else { return };
        let told = core::mem::replace(&mut ring.hogs.told, token.struck);
        if told == token.struck {
            (token.struck, ring.hogs.told) = (None, None);
        }
        match ring.hogs.audit_until {
            Some(until) if !newer(until, cycle) => (ring.hogs.audit_until, token.audit) = (None, None),
            Some(_) => token.audit = Some(self.own.me.mac),
            None => {
                self.ask_audit(token);
                let until = token.audit.map(|_| cycle.wrapping_add(AUDIT_CYCLES));
                if let Some(ring) = self.mode.ring_mut() {
                    ring.hogs.audit_until = until;
                }
            }
        }
    }

    // ---- strikes --------------------------------------------------------------------------------------

    /// The holder strikes a hog from its token, and all hear of it at once.
    ///
    /// True when it did: that is said before anything else.
    pub(super) fn strike_hogs(&mut self, now: Instant) -> bool {
        let Some((mac, why, last)) = self.mode.ring().and_then(|ring| ring.hogs.accused) else {
            return false;
        };
        let fresh = now.since(last) < self.settings.trt * FRESH_CYCLES;
        let station = self.members.numbered(mac).map(|member| member.station);
        let station = station.filter(|_| fresh && !self.is_contested(mac));
        let Some(ring) = self.mode.ring_mut() else { return false };
        let Some(station) = station else {
            ring.hogs.accused = None;
            return false;
        };
        let lives = |token: &Token| token.phase != Phase::First && !token.dead.contains(station);
        let Some(mut hold) = ring.hold.take_if(|hold| lives(&hold.token)) else {
            return false;
        };
        let mut who = StationSet::EMPTY;
        who.insert(station);
        hold.token.struck = Some(Struck { station, why });
        self.counters.hogs += 1;
        self.leave_out(now, hold, who);
        true
    }

    /// A newer list or token leaves stations out for what they did. They may come back when they have waited,
    /// twice as long each time; every station keeps the same account, the one that is meant too.
    pub(super) fn note_strikes(&mut self, now: Instant, token: &Token) {
        let Some(Struck { station, why }) = token.struck else { return };
        let known = self.mode.list().is_none_or(|list| list.dead.contains(station));
        if known || !token.dead.contains(station) {
            return;
        }
        let here = station == self.own.station;
        let mac =
            if here { Some(self.own.me.mac) } else { self.members.get(station).map(|member| member.mac) };
        let Some(mac) = mac else { return };
        let Some(ring) = self.mode.ring_mut() else { return };
        let watched = ring.hogs.watched.iter().find(|watched| watched.mac == mac);
        let held = watched.map_or(Span::ZERO, |watched| watched.held);
        ring.hogs.exclude(mac);
        let record = self.record_of(now, mac);
        let wait = hold_off(HOLD_OFF_MIN * HOLD_OFFS, record.hogs);
        record.hogs = record.hogs.saturating_add(1);
        record.until = record.until.max(now + wait);
        // The others have heard of it up to D later.
        let until = now + wait + if here { self.settings.delay_max * 2 } else { Span::ZERO };
        let excluded = Excluded { mac, why, here, held, wait, until };
        self.others.standing.exclude(now, excluded);
        self.event(MediumEvent::Struck(excluded));
    }

    /// True if a station has to wait because of what it did: no claim brings it back sooner.
    pub(super) fn is_excluded(&self, now: Instant, station: StationId) -> bool {
        let mac = self.members.get(station).map(|member| member.mac);
        mac.is_some_and(|mac| self.excluded(now).any(|excluded| excluded.mac == mac))
    }
}
