//! The state of a machine as a model checker compares it: every field that can change what the machine will
//! do, each with the meaning that lets equal situations be seen as equal at another time.
//!
//! The patterns name every field, so that a new one does not compile before somebody has decided about it.

use super::claim::ClaimRound;
use super::ended::Ended;
use super::hold::{Hold, Watch};
use super::join::Changes;
use super::parts::{Fence, Ordinary, Out, Shares, Tells};
use super::reserve::Fate;
use super::ring::Ring;
use super::visit::Stage;
use super::wake::Wakes;
use super::{CycleClock, Initiating, Joining, Mode, Rether, Stamp, Yielding};
use crate::door::Share;
use crate::door::StationId;
use crate::members::Behind;
use crate::sealing::Own;
use crate::settings::Settings;
use rota_units::{Instant, Span};
use rota_wire::{Generation, Key, Leases, MacAddr, StationSet, Token};

/// What a model checker is shown, word by word and always in the same order.
pub trait Visit {
    /// Differs when it differs.
    fn word(&mut self, word: u64);
    /// A moment ahead; once it is past, how long does not matter.
    fn until(&mut self, at: Instant);
    /// A moment behind; how long ago matters up to `cap`.
    fn since(&mut self, at: Instant, cap: Span);
    /// A token's name: order and neighbourhood matter. The first one shown is the greatest ever seen.
    fn stamp(&mut self, generation: Generation, seq: u64);
    /// A cycle's number: differences matter.
    fn cycle(&mut self, cycle: u32);
    /// A frame counter of that address's current boot.
    fn frame_seq(&mut self, of: MacAddr, seq: u64);
    /// Nonces and incarnations: only equality matters.
    fn name(&mut self, name: u64);
    /// A ring's key.
    fn key(&mut self, epoch: u8, key: &Key);
}

fn flag(visit: &mut dyn Visit, flags: &[bool]) {
    visit.word(flags.iter().fold(1, |word, flag| word << 1 | u64::from(*flag)));
}

fn stamp(visit: &mut dyn Visit, stamp: Stamp) {
    visit.stamp(stamp.generation, stamp.seq);
}

fn set(visit: &mut dyn Visit, set: &StationSet) {
    visit.word(set.len() as u64);
    if !set.is_empty() {
        set.iter().for_each(|station| visit.word(u64::from(station)));
    }
}

fn answer(visit: &mut dyn Visit, owed: Option<(StationId, Stamp, Instant)>) {
    visit.word(owed.map_or(0, |(to, ..)| u64::from(to)));
    if let Some((_, of, by)) = owed {
        stamp(visit, of);
        visit.until(by);
    }
}

/// A token that is kept: its residual time is written anew when it leaves.
fn kept_token(visit: &mut dyn Visit, token: &Token) {
    let Token {
        mode_epoch,
        cycle,
        residual_ns: _,
        trt_ns: _,
        phase,
        rested,
        audit,
        struck,
        position,
        next_nrt,
        idle_visits,
        dead,
        slots,
        leases,
    } = token;
    visit.word(u64::from(*mode_epoch));
    visit.cycle(*cycle);
    let marks = u64::from(audit.is_some());
    visit.word(struck.map_or(0, |struck| u64::from(struck.station) << 1 | struck.why as u64));
    visit.word(marks << 4 | (*phase as u64) << 1 | u64::from(*rested));
    visit.word(u64::from(*position) << 32 | u64::from(*next_nrt) << 16 | u64::from(*idle_visits));
    set(visit, dead);
    visit.word(slots.as_slice().len() as u64);
    for slot in slots.as_slice() {
        visit.word(
            u64::from(slot.partition) << 49
                | u64::from(slot.station) << 33
                | u64::from(slot.tht_ns) << 1
                | u64::from(slot.periodic),
        );
    }
    if let Some(leases) = leases {
        visit_leases(visit, leases);
    }
}

pub(super) fn visit_leases(visit: &mut dyn Visit, leases: &Leases) {
    let Leases { hold, drain, stall, station, gathered, gatherer } = *leases;
    visit.word(u64::from_be_bytes([0, 1, hold, drain, stall, station, gathered, gatherer]));
}

fn kept_list(visit: &mut dyn Visit, list: Option<&Token>) {
    visit.word(u64::from(list.is_some()));
    if let Some(list) = list {
        kept_token(visit, list);
    }
}

impl Rether {
    /// Shows everything but settings, counters, the generator (its numbers only need to be fresh), budgets,
    /// which only more strangers than a model has would spend, and what is only measured. In token mode the
    /// times at which members were heard are left out too: they are read only by a plain station, which
    /// counts silence anew when it leaves a ring.
    pub fn visit(&self, visit: &mut dyn Visit) {
        let Self {
            settings: _,
            digest: _,
            port: _,
            own,
            rng: _,
            keys,
            members: _,
            mode: _,
            mode_epoch,
            fence,
            forming: _,
            tells,
            awake_until: _,
            others: _,
            shares,
            lane,
            out,
            counters: _,
            tally: _,
        } = self;
        let Own { me, station, incarnation, nonce, answers, frame_seq } = own;
        let Fence { seen, list_stamp, left } = fence;
        let Tells { mode_repeats, leaving, next_hello: _ } = tells;
        let Ordinary { held, first: _, introduces } = lane;
        let Out { outbox: _, notes: _, events: _, verdict: _ } = out;
        assert!(out.is_empty(), "a drained machine is shown");
        stamp(visit, *seen);
        stamp(visit, *list_stamp);
        visit.word(u64::from(*mode_repeats) << 48 | u64::from(*station) << 32 | u64::from(*mode_epoch));
        [u64::from(*incarnation), *nonce, *answers].into_iter().for_each(|name| visit.name(name));
        visit.frame_seq(me.mac, *frame_seq);
        for (epoch, key) in keys.ring.iter().flatten().chain(&left.key) {
            visit.key(*epoch, key);
        }
        flag(visit, &[*leaving, *held, *introduces]);
        visit.until(self.awake_until);
        if let Some(ring) = self.mode.ring() {
            self.visit_ring(ring, visit);
        }
        self.visit_mode(visit);
        self.visit_members(visit);
        visit_shares(shares, visit);
        self.visit_patience(visit);
    }

    /// The fields that the other functions show are named here too, so that a new one is not forgotten.
    fn visit_ring(&self, ring: &Ring, visit: &mut dyn Visit) {
        let Ring {
            list,
            nacked,
            granted,
            clock,
            hold,
            watch,
            owed_ack,
            claim,
            silence_at,
            other_ring,
            wakes,
            last_pass: _,
            outgrown: _,
            refused,
            changes,
            hogs,
            wills,
        } = ring;
        visit.stamp(*refused, 0);
        flag(visit, &[*nacked, *granted]);
        kept_list(visit, list.as_ref());
        self.visit_wakes(wakes, visit);
        visit.since(other_ring.unwrap_or(Instant::ZERO), self.settings.trt * 4);
        visit_tokens(visit, hold.as_ref(), watch.as_ref(), &self.settings);
        let CycleClock { start, cycle, known } = *clock;
        flag(visit, &[known]);
        visit.cycle(cycle);
        visit.since(start, self.settings.trt * 8);
        answer(visit, *owed_ack);
        visit.until(*silence_at);
        self.visit_claim(claim.as_ref(), visit);
        self.visit_changes(changes, visit);
        // In which of the last cycles the token was late, and a hold that is under way, are left out: they
        // decide by some cycles when an audit begins or ends.
        hogs.words(cycle).for_each(|word| visit.word(word));
        set(visit, &wills.fresh);
        visit.until(wills.due);
    }

    fn visit_changes(&self, changes: &Changes, visit: &mut dyn Visit) {
        for joiner in &changes.joiners {
            visit.word(u64::from(joiner.said.mode_epoch) << 8 | u64::from(joiner.mac.0[5]));
            visit.name(u64::from(joiner.incarnation));
            visit.name(joiner.said.nonce);
            visit.frame_seq(joiner.mac, joiner.seq);
            visit.word(u64::from(joiner.generation.counter) << 16 | u64::from(joiner.generation.station));
            visit.name(joiner.challenge);
            visit.word(u64::from(joiner.alive));
            visit.since(joiner.at, self.settings.join_interval * 5);
        }
        set(visit, &changes.leavers);
        set(visit, &changes.revived_in(self.fence.seen.generation));
    }

    fn visit_wakes(&self, wakes: &Wakes, visit: &mut dyn Visit) {
        let Wakes { request, may_rest, asked, overdue, cycle } = wakes;
        flag(visit, &[*may_rest]);
        visit.word(request.map_or(0, |(to, _)| u64::from(to)));
        if let Some((_, at)) = request {
            visit.since(*at, self.settings.trt);
        }
        set(visit, asked);
        set(visit, overdue);
        visit.cycle(*cycle);
    }

    fn visit_mode(&self, visit: &mut dyn Visit) {
        visit.word(u64::from(self.fence.left.ended.is_some()));
        if let Some(Ended { generation, mode_epoch, until }) = &self.fence.left.ended {
            visit.stamp(*generation, 0);
            visit.word(u64::from(*mode_epoch));
            visit.until(*until);
        }
        match &self.mode {
            Mode::Joining(Joining { ring, card_empty, tries, again, proved, proof_by, from_plain }) => {
                flag(visit, &[true, *ring, *card_empty, *proved, *from_plain]);
                visit.word(u64::from(*tries));
                visit.until(*again);
                visit.until(*proof_by);
            }
            Mode::Plain => {
                visit.word(100);
                visit.until(self.tells.next_hello);
            }
            Mode::Initiating(Initiating { card_empty, acked, tries, again }) => {
                visit.word(102 + u64::from(*card_empty));
                visit.word(u64::from(*tries));
                visit.until(*again);
                for (mac, nonce) in acked {
                    visit.word(self.members.by_mac(*mac).map_or(0, |member| u64::from(member.station)));
                    visit.name(*nonce);
                }
            }
            Mode::Yielding(Yielding { initiator, card_empty, acknowledge_at, give_up }) => {
                visit.word(104 + u64::from(*card_empty));
                visit.word(u64::from(*initiator));
                visit.until(acknowledge_at.unwrap_or(Instant::FAR));
                visit.until(*give_up);
            }
            Mode::Ring(_) => visit.word(106),
        }
    }

    fn visit_claim(&self, claim: Option<&ClaimRound>, visit: &mut dyn Visit) {
        let Some(claim) = claim else { return visit.word(0) };
        let signs = [claim.same_key, claim.watched, claim.unheard];
        visit.word(signs.iter().rev().fold(1, |word, sign| 2 * word + u64::from(*sign)));
        visit.stamp(claim.own.0, 0);
        visit.cycle(claim.own.1);
        visit.word(claim.suspect.map_or(0, u64::from));
        visit.stamp(claim.generation, 0);
        set(visit, &claim.granted);
        stamp(visit, claim.best);
        kept_list(visit, claim.list.as_ref());
        visit.word(u64::from(claim.tries));
        visit.until(claim.again);
        visit.since(claim.begun, self.settings.delay_max * 2);
        visit.since(claim.asked, self.settings.trt);
        visit.until(claim.drained.unwrap_or(Instant::FAR));
        if let Some((began, first)) = &claim.drain_began {
            visit.since(*began, self.settings.drain(self.members.as_slice().len(), true));
            set(visit, first);
        }
    }

    fn visit_members(&self, visit: &mut dyn Visit) {
        for member in self.members.as_slice() {
            let said = &member.announce;
            visit.word(u64::from(member.station) << 8 | u64::from(member.mac.0[5]));
            visit.name(u64::from(member.incarnation));
            visit.name(member.nonce);
            visit.word(said.state as u64);
            visit.frame_seq(member.mac, member.frame_seq);
            visit.word(u64::from(member.willed.is_some()));
            visit.since(member.willed.unwrap_or(Instant::ZERO), self.settings.trt * 2);
            // Leaps decide only where another holder of the key has made some: no model has one.
            visit.name(u64::from(member.before.incarnation));
            visit.word(member.before.seq);
            let Behind { last, rising, challenge, next, asked, again } = member.behind;
            visit.word(u64::from(rising));
            if rising > 0 {
                visit.frame_seq(member.mac, last);
                visit.name(challenge);
            }
            visit.until(next);
            visit.until(again);
            visit.word(u64::from(asked > 0));
            if asked > 0 {
                visit.frame_seq(member.mac, asked);
            }
            if !self.mode.is_ring() {
                visit.since(member.heard, self.settings.hello * 4);
            }
        }
        // Parts that are missing; without any, what was gathered is read by nobody.
        if let Some((from, mode_epoch, key_epoch, parts)) = self.forming.of {
            visit.word(u64::from(from.0[5]) << 16 | u64::from(parts) << 8 | u64::from(self.forming.come));
            visit.word(u64::from(mode_epoch) << 8 | u64::from(key_epoch));
            for member in &self.forming.members {
                visit.word(u64::from(member.station) << 8 | u64::from(member.mac.0[5]));
                visit.name(u64::from(member.incarnation));
                visit.name(member.nonce);
            }
        }
        // When a strike was, and so when it is forgiven, is left out: two minutes are beyond every model.
        for record in &self.others.standing.records {
            visit.word(
                u64::from(record.mac.0[5]) << 16 | u64::from(record.stalls) << 8 | u64::from(record.deaths),
            );
            visit.until(record.until);
        }
    }
}

fn visit_shares(shares: &Shares, visit: &mut dyn Visit) {
    let Shares { sessions, parts, groups, receives: _, grants: _ } = shares;
    groups.iter().for_each(|group| group.visit(visit));
    for session in sessions {
        let Share { unit_octets_max, pace, partition, periodic: _, flow: _ } = session.share;
        visit.word(session.id.0);
        visit.word(u64::from(unit_octets_max) << 4 | session.state as u64);
        visit.word(u64::from(partition) << 48 | pace.units() << 16 | pace.cycles());
        visit.word(session.resize.map_or(0, |(octets, may)| u64::from(octets) << 1 | u64::from(may)));
        for change in [session.less, session.more] {
            visit.word(change.map_or(0, |(octets, pace)| u64::from(octets) << 16 | pace.units()));
        }
    }
    for part in parts {
        visit.word(part.session.0);
        let (fate, share) = match part.fate {
            Fate::Stays => (0, 0),
            Fate::Relieved(share) => (1, share),
            Fate::Due(share) => (2, share),
        };
        visit.word(u64::from(part.share) << 2 | fate);
        visit.word(u64::from(part.units) << 32 | u64::from(share));
    }
}

/// The token in hand and the one that was passed on.
fn visit_tokens(visit: &mut dyn Visit, hold: Option<&Hold>, watch: Option<&Watch>, settings: &Settings) {
    visit.word(u64::from(hold.is_some()) << 1 | u64::from(watch.is_some()));
    if let Some(hold) = hold {
        visit_hold(visit, hold, settings.hop_timeout);
    }
    if let Some(watch) = watch {
        visit_watch(visit, watch, settings.death_timeout);
    }
}

fn visit_hold(visit: &mut dyn Visit, hold: &Hold, cap: Span) {
    let Hold { token, stamp: of, accepted, taken: _, lease_end, acknowledge, stage, card_free, sent } = hold;
    kept_token(visit, token);
    stamp(visit, *of);
    visit.since(*accepted, cap);
    visit.until(*lease_end);
    answer(visit, *acknowledge);
    visit.until(*card_free);
    visit.word(u64::from(*sent));
    match stage {
        Stage::Begin => visit.word(0),
        Stage::Slot { index, opens, used, number: _ } => {
            visit.word(1 | (*index as u64) << 3);
            visit.word(used.wire.get());
            visit.word(used.cost.as_nanos());
            visit.until(*opens);
        }
        Stage::Nrt { number: _ } => visit.word(2),
        Stage::Rest { until } => {
            visit.word(3);
            visit.until(*until);
        }
        Stage::Leave { to } => visit.word(4 | u64::from(*to) << 3),
    }
}

fn visit_watch(visit: &mut dyn Visit, watch: &Watch, cap: Span) {
    let Watch { to, token, stamp: of, written, passed, tries, again } = watch;
    kept_token(visit, token);
    // Sent again it is the same token, its residual time included.
    visit.word(u64::from(token.residual_ns) << 1 | u64::from(*written));
    stamp(visit, *of);
    visit.word(u64::from(*to) << 32 | u64::from(*tries));
    visit.since(*passed, cap);
    visit.until(*again);
}
