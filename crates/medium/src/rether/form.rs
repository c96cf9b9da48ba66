//! Who is in a ring, and the key that follows from it: Forms, in parts when the stations are many.
//!
//! Fulfils RETHER-2.2.2-11.

use super::counters::newer;
use super::outbox::Pending;
use super::{Mode, Rether};
use crate::door::{FrameVerdict, StationId};
use crate::event::MediumEvent;
use rota_admission::Framing;
use rota_units::Instant;
use rota_wire::bodies::FORM_MEMBERS_MAX;
use rota_wire::{Form, FormMember, Generation, LINK_HEADER_OCTETS, MAX_STATIONS, MacAddr, TAG_OCTETS};

/// Parts that name every station number there is.
const PARTS_MAX: u8 = (MAX_STATIONS as usize).div_ceil(members_in(Framing::MTU_MIN)) as u8;
const _: () = assert!(PARTS_MAX <= 16, "a bit for each part");

/// How many members a part names that fits one frame.
const fn members_in(mtu: u16) -> usize {
    let room = (mtu as usize).saturating_sub(LINK_HEADER_OCTETS + TAG_OCTETS + Form::octets_for(0));
    let most = room / (Form::octets_for(1) - Form::octets_for(0));
    if most > FORM_MEMBERS_MAX { FORM_MEMBERS_MAX } else { most }
}

/// The parts of one Form, as they come.
#[derive(Clone, Debug, Default)]
pub(super) struct Forming {
    /// Whose Form it is, for which ring, and in how many parts.
    pub(super) of: Option<(MacAddr, u32, u8, u8)>,
    /// Bit p: part p has come.
    pub(super) come: u16,
    pub(super) members: Vec<FormMember>,
}

impl Forming {
    pub(super) fn new() -> Self {
        Self { of: None, come: 0, members: Vec::with_capacity(4 * FORM_MEMBERS_MAX) }
    }

    /// Adds a part; true when with it all have come. A part of another Form begins anew, and so does one that
    /// comes again: a Form that is repeated may be about other boots.
    fn add(&mut self, from: MacAddr, form: &Form) -> bool {
        let of = Some((from, form.mode_epoch, form.key_epoch, form.parts));
        let bit = 1u16 << form.part;
        if self.of != of || self.come & bit != 0 {
            self.of = of;
            self.come = 0;
            self.members.clear();
        }
        self.come |= bit;
        self.members.extend_from_slice(form.members());
        let complete = self.come.count_ones() == u32::from(form.parts);
        if complete {
            self.of = None;
            self.members.sort_unstable_by_key(|member| member.station);
        }
        complete
    }
}

impl Rether {
    /// This station and the members, in rising order, as they enter the key.
    pub(super) fn form_members(&self) -> Vec<FormMember> {
        let (station, mac) = (self.own.station, self.own.me.mac);
        let me = FormMember { station, mac, incarnation: self.own.incarnation, nonce: self.own.nonce };
        let others = self.members.as_slice().iter().filter(|member| member.station != 0);
        let mut all: Vec<FormMember> = others
            .map(|member| FormMember {
                station: member.station,
                mac: member.mac,
                incarnation: member.incarnation,
                nonce: member.nonce,
            })
            .collect();
        all.push(me);
        all.sort_unstable_by_key(|member| member.station);
        all
    }

    fn take_ring_key(&mut self, epoch: u8) {
        let members = self.form_members();
        self.keys.form(epoch, self.mode_epoch, members.into_iter());
    }

    /// Gives the ring a new key and tells its members, twice, since one loss must not shut a station out.
    pub(super) fn rekey_ring(&mut self) {
        self.take_ring_key(self.keys.next_epoch());
        self.send_form();
        self.send_form();
    }

    /// Tells everybody who is in the ring.
    pub(super) fn send_form(&mut self) {
        let members = members_in(self.settings.link.framing.mtu);
        for part in 0..usize::from(self.ring_size()).div_ceil(members) as u8 {
            self.out.outbox.push_back(Pending::Form { part });
        }
    }

    pub(super) fn form_body(&self, part: u8) -> Option<Form> {
        let members = self.form_members();
        let mut parts = members.chunks(members_in(self.settings.link.framing.mtu));
        let mut form = Form::new(self.mode_epoch, self.keys.current_epoch(), part, parts.len() as u8);
        form.settings = self.digest;
        parts.nth(usize::from(part))?.iter().all(|member| form.push(*member)).then_some(form)
    }

    /// A Form, or a part of one: only when all have come it says who is in the ring.
    ///
    /// The station that forms a ring knows its generation. A Form of an older one than this ring has seen is
    /// an old Form: perhaps one of a boot that is dead, replayed, whose frame counter nobody remembers.
    pub(super) fn on_form(
        &mut self,
        now: Instant,
        from: MacAddr,
        known: bool,
        generation: Generation,
        form: &Form,
    ) {
        if self.mode.is_ring() && generation < self.fence.seen.generation {
            self.judge(FrameVerdict::Replayed);
            return;
        }
        if !self.agrees(now, from, form.settings) || newer(self.mode_epoch, form.mode_epoch) {
            return;
        }
        if form.parts > PARTS_MAX {
            self.judge(FrameVerdict::Malformed);
            return;
        }
        let same_ring = generation == self.fence.seen.generation && form.mode_epoch == self.mode_epoch;
        if known && same_ring && self.mode.is_ring() && self.keys.is_newer_than(form.key_epoch) {
            // It comes from a member that has missed the newer key, and would throw out whoever was let in
            // under it (seed 274529 of the product's timers).
            if self.is_master() {
                self.send_form();
            }
            return;
        }
        let mut forming = core::mem::take(&mut self.forming);
        if forming.add(from, form) {
            self.on_formed(now, known, form.mode_epoch, form.key_epoch, &forming.members);
            if self.mode.is_ring() {
                self.learn_generation_of_ring(generation);
            }
        } else if !self.mode.is_ring() {
            self.ring_is_there(now);
        }
        self.forming = forming;
    }

    /// The stations of a new ring, in rising order.
    fn on_formed(
        &mut self,
        now: Instant,
        known: bool,
        mode_epoch: u32,
        key_epoch: u8,
        members: &[FormMember],
    ) {
        let mine = members.iter().find(|member| member.mac == self.own.me.mac);
        let named =
            mine.is_some_and(|me| me.incarnation == self.own.incarnation && me.nonce == self.own.nonce);
        if !named {
            return self.on_foreign_form(now, known);
        }
        // A form whose key has been replaced since comes from a station that missed the newer one.
        if self.keys.is_replaced(key_epoch, mode_epoch, members) {
            return;
        }
        let station = mine.map_or(0, |me| me.station);
        if let Some(ring) = self.mode.ring_mut() {
            ring.changes.forget_leavers();
        }
        self.mode_epoch = mode_epoch;
        self.own.station = station;
        let listed = |mac: MacAddr| members.iter().any(|member| member.mac == mac);
        let mut gone = Vec::new();
        self.members.retain(|member| {
            // A station without a number was in no ring, and may come to be in this one.
            if !listed(member.mac) && member.station != 0 {
                gone.push((member.mac, member.willed.is_some()));
            }
            listed(member.mac)
        });
        for (mac, died) in gone {
            self.event(MediumEvent::MemberGone { mac, stopped: false, died });
        }
        let own = self.own.me.mac;
        let is_new = |member: &FormMember| {
            let known = self.members.by_mac(member.mac);
            member.mac != own && known.is_none_or(|known| known.incarnation != member.incarnation)
        };
        // A member introduces itself to who joins, and who joins to all.
        let introduces = match self.mode {
            Mode::Ring(_) => members.iter().any(is_new),
            Mode::Joining(_) => true,
            _ => false,
        };
        let new: Vec<StationId> = members.iter().filter(|m| is_new(m)).map(|m| m.station).collect();
        for member in members.iter().filter(|member| member.mac != own) {
            self.members.form(now, member);
        }
        self.tell_renumbered();
        self.prune_wills();
        // A form is repeated whenever a token is: only who is new is news.
        new.into_iter().for_each(|station| self.event(MediumEvent::MemberUp { station }));
        self.take_ring_key(key_epoch);
        // A form that comes again, as with every token that is sent again, is no sign of a token: a station
        // that believes none of this ring's tokens would wait for ever and never claim.
        if !self.mode.is_ring() {
            self.keys.forget_replaced();
            self.divert();
            self.enter_ring(now);
        }
        if introduces {
            self.introduce(now);
        }
    }

    /// To a stranger a Form says that a ring runs.
    fn on_foreign_form(&mut self, now: Instant, known: bool) {
        if !self.mode.is_ring() {
            self.ring_is_there(now);
        } else if known {
            // Replayed from another boot it must not shake a ring: only a member shuts a member out.
            self.join_ring(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_form_fits_one_frame_of_its_mtu() {
        assert_eq!([576, 1_400, 1_500, 9_000].map(members_in), [25, 64, 64, 64]);
        for mtu in 576..1_500 {
            let octets = LINK_HEADER_OCTETS + Form::octets_for(members_in(mtu)) + TAG_OCTETS;
            assert!(octets <= usize::from(mtu) && members_in(mtu) * usize::from(PARTS_MAX) >= 255, "{mtu}");
        }
    }

    /// 28 octets of header, 16 of the Form and 16 of the tag stand before and behind its members of 20.
    #[test]
    fn a_part_names_as_many_members_as_fit_its_frame() {
        assert_eq!([576, 579, 580, 1_500, 0].map(members_in), [25, 25, 26, FORM_MEMBERS_MAX, 0]);
    }
}
