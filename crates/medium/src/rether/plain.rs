//! Plain Ethernet: finding the segment's stations, and the switch to token mode (paper section 2.2.2).
//!
//! Fulfils RETHER-2.1-3, RETHER-2.2.1-1, RETHER-2.2.1-2, RETHER-2.2.2-1, RETHER-2.2.2-2, RETHER-2.2.2-3,
//! RETHER-2.2.2-4, RETHER-2.2.2-5, RETHER-2.2.2-6, RETHER-2.2.2-7, RETHER-2.2.2-8, RETHER-2.2.2-10,
//! RETHER-2.2.2-11, RETHER-2.2.4-1, RETHER-2.2.4-2, RETHER-2.4-8, RETHER-4.3-2, REPAIR-B7, REPAIR-B8,
//! REPAIR-B9, REPAIR-B10, REPAIR-B11, REPAIR-B13.

use super::contested::Sign;
use super::counters::{GENERATION_END, leads_on, newer};
use super::outbox::Pending;
use super::ring::Ring;
use super::{Initiating, Joining, Mode, Rether, Stamp, Yielding};
use crate::door::{FrameVerdict, StationId};
use crate::event::MediumEvent;
use crate::sealing::JUMP_MAX;
use rota_units::{Instant, Span};
use rota_wire::bodies::StationState;
use rota_wire::{
    Announce, Generation, JoinAnswer, LinkHeader, MacAddr, ModeNotice, Switch, SwitchAck, Verdict,
};

/// How often a station asks a ring to let it in before it concludes that there is none.
const JOIN_RING_TRIES: u8 = 50;

impl Rether {
    // ---- finding each other ---------------------------------------------------------------------------

    pub(super) fn joining_tick(&mut self, now: Instant) {
        let interval = self.settings.join_interval;
        // B9: a station in plain mode says so; silence proves a plain segment only after T_w, in which a ring
        // would have been heard.
        let told = self.members.as_slice().iter().any(|member| member.announce.state == StationState::Plain);
        let silence = self.settings.silence(0).count_down(interval).min(200) as u8;
        let tries_max = self.settings.join_tries + if told { 0 } else { silence };
        let Mode::Joining(joining) = &mut self.mode else { return };
        if now < joining.again {
            return;
        }
        if joining.ring && !joining.card_empty {
            // A card that never empties cannot take part in a ring; the host must not stay silent for it.
            self.start_over(now);
            return;
        }
        joining.again = now + interval;
        joining.proved = false;
        joining.tries = joining.tries.saturating_add(1);
        if !joining.ring && joining.tries > tries_max {
            self.take_place(now);
            return;
        }
        if joining.ring && joining.tries > JOIN_RING_TRIES {
            // Nobody let us in for so long that no ring can be running.
            self.start_over(now);
            return;
        }
        if joining.ring && now >= joining.proof_by {
            self.give_ring_up(now, silence);
            return;
        }
        self.out.outbox.push_back(Pending::Announce);
    }

    /// No station of a ring has been heard for T_w, in which one asks for the token at the latest: the word
    /// that it runs was wrong, or the ring is over.
    fn give_ring_up(&mut self, now: Instant, silence: u8) {
        if matches!(&self.mode, Mode::Joining(joining) if joining.from_plain) && self.own.station != 0 {
            self.flush_queue();
            self.enter_plain(now);
            self.out.outbox.push_back(Pending::Announce);
            self.switch_soon(now);
            return;
        }
        self.start_over(now);
        if let Mode::Joining(joining) = &mut self.mode {
            // The silence that proves a plain segment is over already.
            joining.tries = silence;
        }
    }

    /// A reservation waits for a ring. Others have come to plain mode too: let them settle in it first.
    fn switch_soon(&mut self, now: Instant) {
        if self.wants_ring() {
            let wait = Span::from_millis(1) * u64::from(self.own.station);
            self.tells.next_hello = self.tells.next_hello.min(now + wait);
        }
    }

    /// Looks for the segment as if just booted; meanwhile ordinary traffic flows.
    pub(super) fn start_over(&mut self, now: Instant) {
        self.lose_reservations();
        self.own.station = 0;
        self.mode = Mode::Joining(Joining::afresh(now));
        self.flush_queue();
        self.let_flow();
        self.event(MediumEvent::ModeChanged);
    }

    fn take_place(&mut self, now: Instant) {
        let Some(station) = self.members.lowest_free(0) else { return };
        self.own.station = station;
        self.enter_plain(now);
        self.out.outbox.push_back(Pending::Announce);
    }

    fn enter_plain(&mut self, now: Instant) {
        if self.fence.seen.generation.counter >= GENERATION_END - JUMP_MAX {
            // No token of the old ring is proven any more, so the next ring may count from one again.
            (self.fence.seen, self.fence.list_stamp) = (Stamp::default(), Stamp::default());
        }
        self.mode = Mode::Plain;
        self.tells.next_hello = now + self.settings.hello;
        self.let_flow();
        self.event(MediumEvent::ModeChanged);
    }

    pub(super) fn plain_tick(&mut self, now: Instant) {
        if now < self.tells.next_hello {
            return;
        }
        // A hundred stations say hello less often, so that saying it costs no more than with a few.
        let stretch = u64::from(self.ring_size()).div_ceil(50).max(1);
        self.tells.next_hello = now + self.settings.hello * stretch;
        self.out.outbox.push_back(Pending::Announce);
        if self.tells.mode_repeats > 0 {
            self.tells.mode_repeats -= 1;
            self.out.outbox.push_back(Pending::Mode);
        }
        let silent = self.settings.hello * stretch * 4;
        let mut gone = Vec::new();
        self.members.retain(|member| {
            let stays = now.since(member.heard) < silent;
            if !stays {
                gone.push(member.mac);
            }
            stays
        });
        gone.into_iter()
            .for_each(|mac| self.event(MediumEvent::MemberGone { mac, stopped: false, died: false }));
        if self.wants_ring() {
            self.begin_switch(now);
        }
    }

    pub(super) fn on_announce(&mut self, now: Instant, header: &LinkHeader, mac: MacAddr, said: &Announce) {
        if !self.agrees_with(now, mac, said) {
            let asks = self.mode.is_ring() && said.state == StationState::Joining;
            if asks && self.is_master() && self.may_answer(now) {
                let answer = JoinAnswer::new(said.nonce, 0, Verdict::Settings);
                self.out.outbox.push_back(Pending::JoinAnswer { to: mac, answer });
            }
            return;
        }
        let known = self.members.by_mac(mac).map(|member| (member.incarnation, member.station));
        let is_new = known.is_none_or(|(incarnation, _)| incarnation != header.incarnation);
        if said.state == StationState::Leaving {
            // Only this boot of a station can say that it leaves.
            if !is_new {
                self.on_leaving(mac);
            }
            return;
        }
        if self.mode.is_ring() && (is_new || said.state != StationState::Ring) {
            if said.state == StationState::Plain && self.may_notify(now) {
                // It has lost the ring: told so, it stops sending and asks to join. It may not know this
                // boot of ours, so it is also told who says so.
                self.out.outbox.push_back(Pending::Announce);
                self.out.outbox.push_back(Pending::Mode);
            }
            let lives = known.is_some_and(|(_, station)| station != 0 && !self.is_dead(station));
            if is_new && lives {
                // Perhaps a frame of an earlier boot, replayed. A station that did boot again does not answer
                // the token, is declared dead soon, and asks again.
                self.judge(FrameVerdict::Replayed);
                return;
            }
            // A joiner stays a stranger until the cycle master forms the ring anew with it.
            self.remember_joiner(now, mac, header, said);
            return;
        }
        let station = if self.mode.is_ring() { known.map_or(0, |(_, s)| s) } else { header.source };
        if known.is_none() && !(self.may_take_up(now) && self.make_room(now)) {
            return;
        }
        self.members.announce(now, station, mac, header.incarnation, said, header.seq);
        if said.state != StationState::Joining {
            self.hear_sign(now, mac, said.answers);
        }
        self.tell_renumbered();
        if self.mode.is_ring() {
            // Its request to be let in is over. To let it in once more would give it an old nonce, and so
            // shut it out (seed 12296 of the product's timers: a late copy, at a station that had just come
            // and did not know its frame counter yet).
            if let Some(ring) = self.mode.ring_mut() {
                ring.changes.joiners.retain(|joiner| joiner.mac != mac);
            }
            self.on_ring_announce(now, station, header.generation);
            return;
        }
        self.adopt_epoch(said);
        self.resolve_conflict(header.source, mac);
        if is_new {
            self.event(MediumEvent::MemberUp { station });
            // The newcomer learns of us; each answers once, in plain mode where nothing is disturbed.
            if matches!(self.mode, Mode::Plain) {
                let wait = self.settings.ack_spacing * u64::from(self.own.station);
                self.tells.next_hello = self.tells.next_hello.min(now + wait);
            }
        }
        if said.state == StationState::Ring && !self.is_ended(now, mac, header.generation, said.mode_epoch) {
            self.ring_is_there(now);
        }
    }

    /// Makes room in the table for a station that is new to it. Members of a ring are never removed: in a
    /// ring no station is taken up here.
    fn make_room(&mut self, now: Instant) -> bool {
        match self.members.make_room(now, self.settings.hello) {
            None => {
                self.counters.over_budget += 1;
                false
            }
            Some(gone) => {
                if let Some(mac) = gone {
                    self.event(MediumEvent::MemberGone { mac, stopped: false, died: false });
                }
                true
            }
        }
    }

    /// A member says which ring it runs. One of this ring that was thought dead lives; one that runs another
    /// has been apart. Rings with one key meet by their lists; where keys have changed apart, the ring of
    /// the smaller generation dissolves and its stations ask to be let in (REPAIR-B12).
    fn on_ring_announce(&mut self, now: Instant, station: StationId, generation: Generation) {
        if generation <= self.fence.seen.generation {
            if generation == self.fence.seen.generation {
                self.revive(now, station);
            }
            return;
        }
        if !self.is_dead(station) || self.is_jump(generation) {
            return;
        }
        let Some(ring) = self.mode.ring_mut() else { return };
        let since = *ring.other_ring.get_or_insert(now);
        if now.since(since) > self.settings.trt * 3 {
            self.join_ring(now);
        }
    }

    fn on_leaving(&mut self, mac: MacAddr) {
        let Some(station) = self.members.by_mac(mac).map(|member| member.station) else { return };
        if self.mode.is_ring() {
            self.note_leaver(station, mac);
            return;
        }
        self.members.retain(|member| member.mac != mac);
        self.event(MediumEvent::MemberGone { mac, stopped: true, died: false });
    }

    fn adopt_epoch(&mut self, said: &Announce) {
        if said.state == StationState::Plain
            && leads_on(said.mode_epoch, self.mode_epoch)
            && !self.mode.is_ring()
        {
            self.mode_epoch = said.mode_epoch;
        }
    }

    /// Two stations with one number: the smaller address keeps it.
    fn resolve_conflict(&mut self, station: StationId, mac: MacAddr) {
        if station == 0 || station != self.own.station || !matches!(self.mode, Mode::Plain) {
            return;
        }
        if mac < self.own.me.mac {
            self.own.station = self.members.lowest_free(self.own.station).unwrap_or(0);
        }
        self.out.outbox.push_back(Pending::Announce);
    }

    /// A joining or plain station has learnt that a ring runs without it: it stops sending and asks to join.
    pub(super) fn ring_is_there(&mut self, now: Instant) {
        match &mut self.mode {
            Mode::Joining(joining) if joining.ring => joining.proof_by = Instant::FAR,
            Mode::Plain | Mode::Joining(_) => self.join_ring(now),
            Mode::Initiating(_) | Mode::Yielding(_) | Mode::Ring(_) => {}
        }
    }

    pub(super) fn join_ring(&mut self, now: Instant) {
        let again = now + self.card_patience();
        let from_plain = matches!(self.mode, Mode::Plain | Mode::Initiating(_) | Mode::Yielding(_));
        self.mode = Mode::Joining(Joining { ring: true, again, from_plain, ..Joining::afresh(now) });
        self.divert();
        self.event(MediumEvent::ModeChanged);
    }

    /// Nothing but a notice says that a ring runs, and a holder of the key may lie. A ring that runs is heard
    /// within T_w: its master answers who asks to be let in and calls, and who misses the token claims it.
    fn join_told_ring(&mut self, now: Instant) {
        self.join_ring(now);
        let proof_by = now + self.settings.silence(u64::from(self.ring_size()));
        if let Mode::Joining(joining) = &mut self.mode {
            joining.proof_by = proof_by;
        }
    }

    // ---- Switch-to-RETHER -----------------------------------------------------------------------------

    /// Somebody here wants a reservation and the segment is plain.
    pub(super) fn begin_switch(&mut self, now: Instant) {
        if !matches!(self.mode, Mode::Plain) {
            return;
        }
        self.mode_epoch = self.mode_epoch.wrapping_add(1);
        self.tells.mode_repeats = 0;
        self.counters.switches += 1;
        self.own.nonce = self.rng.next_u64();
        let again = now + self.card_patience();
        let acked = Vec::new();
        self.mode = Mode::Initiating(Initiating { card_empty: false, acked, tries: 0, again });
        self.divert();
        self.event(MediumEvent::ModeChanged);
    }

    /// How long a card may take to empty: twice what its queue and a port's hold.
    fn card_patience(&self) -> Span {
        self.settings.switch_timeout(self.ring_size()) * 2
    }

    /// Our own frames have left the card.
    pub fn on_card_empty(&mut self, now: Instant) {
        let drain = self.settings.link.rate.span_of_up(self.settings.port_queue);
        let spacing = self.settings.ack_spacing * u64::from(self.own.station);
        match &mut self.mode {
            Mode::Initiating(state) if !state.card_empty => {
                state.card_empty = true;
                state.again = now;
            }
            Mode::Yielding(state) if !state.card_empty => {
                state.card_empty = true;
                state.acknowledge_at = Some(now + spacing);
            }
            Mode::Joining(joining) if joining.ring && !joining.card_empty => {
                joining.card_empty = true;
                // Frames that we sent before may still wait in a port buffer.
                joining.again = now + drain;
            }
            _ => {}
        }
    }

    pub(super) fn initiating_tick(&mut self, now: Instant) {
        let timeout = self.settings.switch_timeout(self.ring_size());
        let tries_max = self.settings.switch_tries;
        let everybody = self.members.as_slice().iter().filter(|member| member.station != 0).count();
        let Mode::Initiating(state) = &mut self.mode else { return };
        if !state.card_empty {
            if now >= state.again {
                // The card does not empty: this station cannot go silent, so it must not ask others to.
                self.flush_queue();
                self.enter_plain(now);
            }
            return;
        }
        if state.acked.len() >= everybody || (now >= state.again && state.tries > tries_max) {
            self.form_ring(now);
        } else if now >= state.again {
            state.tries += 1;
            state.again = now + timeout;
            self.out.outbox.push_back(Pending::Switch { to: MacAddr::BROADCAST });
        }
    }

    pub(super) fn on_switch(&mut self, now: Instant, from: StationId, mac: MacAddr, switch: &Switch) {
        if !self.agrees(now, mac, switch.settings) {
            return;
        }
        let yields = match &self.mode {
            // B13: the initiator has missed that a ring runs.
            Mode::Ring(_) => {
                if self.may_notify(now) {
                    self.out.outbox.push_back(Pending::Mode);
                }
                return;
            }
            // An equal epoch may be that of a switch which this station began and asked nobody for, because
            // its card did not empty (seed 62000007691 of the product's timers).
            Mode::Joining(_) | Mode::Plain => !newer(self.mode_epoch, switch.mode_epoch),
            // Several initiators: the smaller ID wins (paper section 2.2.2).
            Mode::Initiating(_) => {
                newer(switch.mode_epoch, self.mode_epoch)
                    || (switch.mode_epoch == self.mode_epoch && from < self.own.station)
            }
            Mode::Yielding(state) => {
                newer(switch.mode_epoch, self.mode_epoch)
                    || (switch.mode_epoch == self.mode_epoch && from <= state.initiator)
            }
        };
        if let Mode::Initiating(state) = &self.mode
            && switch.mode_epoch == self.mode_epoch
        {
            // Two of one number, who have not noticed yet: the smaller address keeps it, and the other asks
            // to be let in. Neither can yield to its own number.
            if from == self.own.station && mac < self.own.me.mac {
                self.start_over(now);
                return;
            }
            // REPAIR-B11: whoever asks although we have asked has missed our question or not had it yet. It
            // is told who is better, by that question; unanswered, each would wait for the other. Only the
            // better one answers, so that one answer is the end of it.
            if state.tries > 0 && (self.own.station, self.own.me.mac) < (from, mac) {
                self.out.outbox.push_back(Pending::Switch { to: mac });
            }
        }
        // A station without a place cannot be in the ring yet: it joins when the ring is formed.
        if !yields || self.own.station == 0 {
            return;
        }
        self.yield_to(now, from, switch.mode_epoch);
    }

    fn yield_to(&mut self, now: Instant, initiator: StationId, mode_epoch: u32) {
        let settings = &self.settings;
        let patience = settings.switch_timeout(self.ring_size()) * (u64::from(settings.switch_tries) + 1)
            + settings.silence(u64::from(self.own.station));
        let (repeated, card_empty) = match &self.mode {
            Mode::Yielding(state) => (state.initiator == initiator, state.card_empty),
            _ => (false, false),
        };
        if repeated {
            // Our acknowledgement has not come.
            self.contest_station(now, initiator, Sign::Repeated);
        } else {
            self.own.nonce = self.rng.next_u64();
        }
        self.mode_epoch = mode_epoch;
        let wait = self.settings.ack_spacing * u64::from(self.own.station);
        let acknowledge_at = card_empty.then_some(now + wait);
        let fresh = !matches!(self.mode, Mode::Yielding(_));
        let give_up = now + patience;
        self.mode = Mode::Yielding(Yielding { initiator, card_empty, acknowledge_at, give_up });
        if fresh {
            self.divert();
            self.event(MediumEvent::ModeChanged);
        }
    }

    pub(super) fn yielding_tick(&mut self, now: Instant) {
        let Mode::Yielding(state) = &mut self.mode else { return };
        if state.acknowledge_at.is_some_and(|at| now >= at) {
            state.acknowledge_at = None;
            self.out.outbox.push_back(Pending::SwitchAck);
        } else if now >= state.give_up {
            // B7: the initiator died. The station that waits longest tries itself, so that nobody stays
            // silent for ever.
            self.mode = Mode::Plain;
            self.begin_switch(now);
        }
    }

    /// An answer counts for its sender's address, since two stations of one number have a nonce each. The
    /// sender may have taken another number since it was heard last.
    pub(super) fn on_switch_ack(&mut self, now: Instant, from: StationId, mac: MacAddr, ack: &SwitchAck) {
        let (epoch, station) = (self.mode_epoch, self.own.station);
        let Mode::Initiating(state) = &mut self.mode else { return };
        if ack.mode_epoch != epoch || ack.initiator != station || !self.members.renumber(mac, from) {
            return;
        }
        if !state.acked.iter().any(|(known, _)| *known == mac) {
            state.acked.push((mac, ack.nonce));
        }
        self.tell_renumbered();
        self.initiating_tick(now);
    }

    /// All have answered, or the silent count as dead (paper section 2.2.2, "Other failures").
    fn form_ring(&mut self, now: Instant) {
        let Mode::Initiating(state) = &self.mode else { return };
        let acked = state.acked.clone();
        let mut silent = Vec::new();
        self.members.retain(|member| {
            let answered = acked.iter().any(|(mac, _)| *mac == member.mac);
            if !answered && member.station != 0 {
                silent.push(member.mac);
            }
            answered
        });
        // Two stations may have taken one number and not yet noticed: the smaller address keeps it, the other
        // is let in with a number of its own once the ring runs.
        self.members.keep_one_of_each_number(self.own.station);
        for (mac, nonce) in &acked {
            self.members.set_nonce(*mac, *nonce);
        }
        self.counters.stations_declared_dead += silent.len() as u64;
        silent
            .into_iter()
            .for_each(|mac| self.event(MediumEvent::MemberGone { mac, stopped: false, died: false }));
        self.rekey_ring();
        self.enter_ring(now);
        self.first_token(now);
    }

    pub(super) fn enter_ring(&mut self, now: Instant) {
        // Of an earlier ring nothing is known here: a station that had asked it to be let in may be in this
        // one, and would be shut out if it were let in once more (seed 294430 of the product's timers).
        let mut ring = Box::new(Ring::new());
        // The longest of any ring: stations may leave this one.
        ring.hogs.visit = self.settings.params(2).nrt_hold_max();
        self.mode = Mode::Ring(ring);
        self.others.contested.astray.forget_tokens();
        self.watch_stalls(now);
        self.await_ring(now);
        self.event(MediumEvent::ModeChanged);
    }

    // ---- Switch-to-CSMA -------------------------------------------------------------------------------

    /// The mode as another station knows it.
    pub(super) fn on_mode(
        &mut self,
        now: Instant,
        mac: MacAddr,
        known: bool,
        generation: Generation,
        notice: ModeNotice,
    ) {
        if notice.ring && self.is_ended(now, mac, generation, notice.mode_epoch) {
            return;
        }
        if notice.ring {
            // A ring that runs outweighs any epoch that a station reached alone; its master takes over the
            // greater of both.
            match &self.mode {
                Mode::Initiating(_) | Mode::Yielding(_) => self.join_told_ring(now),
                Mode::Plain if known => self.join_told_ring(now),
                Mode::Joining(joining) if !joining.ring => self.join_told_ring(now),
                Mode::Joining(_) | Mode::Plain | Mode::Ring(_) => {}
            }
            return;
        }
        if newer(self.mode_epoch, notice.mode_epoch) {
            return;
        }
        // With an equal epoch a plain notice is about the mode before our switch. A ring that lives returns
        // to plain mode only by its own word (`on_ring_mode`); one that has lost its token is told here.
        let asks = match &self.mode {
            // A station that has granted a claim and heard of no token since has lost it like the claimant.
            Mode::Ring(ring) => (ring.claim.is_some() || ring.granted) && known,
            Mode::Joining(joining) => joining.ring,
            _ => true,
        };
        let later = newer(notice.mode_epoch, self.mode_epoch);
        if asks && (later || matches!(self.mode, Mode::Joining(_))) {
            self.mode_epoch = notice.mode_epoch;
            self.leave_ring(now);
        }
    }

    /// Switch-to-CSMA under the ring's own key: the holder of the last token has destroyed it.
    pub(super) fn on_ring_mode(&mut self, now: Instant, generation: Generation, notice: ModeNotice) {
        if !notice.ring && newer(notice.mode_epoch, self.mode_epoch) {
            self.note_end(now, generation);
            self.mode_epoch = notice.mode_epoch;
            self.leave_ring(now);
        }
    }

    /// Back to plain Ethernet (paper section 2.2.4).
    pub(super) fn leave_ring(&mut self, now: Instant) {
        self.tally.rotation.stop();
        self.bury();
        if let Some((epoch, key)) = self.keys.current() {
            self.fence.left.key = Some((epoch, key.clone()));
        }
        self.keys.dissolve();
        if self.own.station == 0 {
            self.start_over(now);
            return;
        }
        self.flush_queue();
        self.enter_plain(now);
        self.lose_reservations();
        // In token mode nobody says hello: silence counts from here.
        self.members.heard_all(now);
        self.switch_soon(now);
    }

    /// The holder of a token without reservations destroys it and tells everybody, three times in all.
    pub(super) fn dissolve(&mut self, now: Instant) {
        self.note_end(now, self.fence.seen.generation);
        let newest = self.newest_epoch(now);
        self.mode_epoch = newest.wrapping_add(1);
        self.tells.mode_repeats = 2;
        for _ in 0..2 {
            self.out.outbox.push_back(Pending::Dissolved { stamp: self.fence.seen });
        }
        self.out.outbox.push_back(Pending::Mode);
        self.leave_ring(now);
    }
}
