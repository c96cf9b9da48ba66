//! Shares of packets that become more, or less, where they stand: those of channels across segments.
//!
//! More is decided at a visit of the session's own slots, with the test of a new slot
//! ([`rota_admission::enlarge()`]); less, at any visit. A slot of such a share may carry fewer packets than
//! the share does: the others carry the rest. Fulfils RETHER-2.3-14.

use super::Rether;
use super::reserve::{Fate, SessionState, SlotUse, admission_slots, shorten};
use crate::door::{SessionId, Share};
use crate::event::MediumEvent;
use rota_admission::{
    Admitted, Enlarged, Larger, PacketSlot, StandingSlot, enlarge, kept, standing_packet_slots,
    standing_packets,
};
use rota_units::Octets;
use rota_wire::Token;

impl Rether {
    /// A session of packets is to carry those of this share, which is at least its own: at the next of its
    /// own slots. The answer comes as an event.
    pub fn enlarge(&mut self, id: SessionId, share: &Share) {
        let Share { unit_octets_max, pace, .. } = *share;
        if let Some(session) = self.session(id) {
            // Its slot brings the token within a cycle.
            session.more = Some((unit_octets_max, pace));
        }
    }

    /// A session whose packets are no larger and no more in a cycle than before gives back what it needs no
    /// more, at the next visit. No promise is touched: slots behind its own get earlier. More that it has
    /// asked for and not got is not wanted any more.
    pub fn lessen(&mut self, id: SessionId, share: &Share) {
        let Share { unit_octets_max, pace, .. } = *share;
        let Some(session) = self.session(id) else { return };
        session.more = None;
        let had = session.share;
        let is_less = unit_octets_max <= had.unit_octets_max && pace.units() <= had.pace.units();
        if is_less && (unit_octets_max, pace) != (had.unit_octets_max, had.pace) {
            // Its slot brings the token within a cycle.
            session.less = Some((unit_octets_max, pace));
        }
    }

    /// The figures that a session will have once it has given back what this share does not need, and its
    /// slots then.
    pub fn lessened(&self, id: SessionId, share: &Share) -> Option<(Admitted, Vec<StandingSlot>)> {
        let (mut token, params) = (*self.list()?, self.settings.params(self.ring_size()));
        let mut parts = self.shares.parts.clone();
        self.keep_packets(&mut token, &mut parts, id, share);
        let request = self.request_of(share, share.unit_octets_max);
        let (_, parts) = self.packet_parts(&token, &parts, id);
        parts.first()?;
        let (slots, count) = admission_slots(token.slots.as_slice());
        let admitted = standing_packets(&slots[..count], &parts, &request, &params);
        Some((admitted, standing_packet_slots(&slots[..count], &parts).collect()))
    }

    /// The slots of a session of packets as admission names them, behind the indices of their parts.
    fn packet_parts(&self, token: &Token, parts: &[SlotUse], id: SessionId) -> (Vec<usize>, Vec<PacketSlot>) {
        let of = |(nth, part): (usize, &SlotUse)| {
            let index = self.own_slot(token, nth).filter(|_| part.session == id)?;
            let (octets, packets) = (Octets::new(part.share.into()), part.units.into());
            Some((nth, PacketSlot { index, octets, packets }))
        };
        parts.iter().enumerate().filter_map(of).unzip()
    }

    /// The slots of a session carry the packets of this share, and no more; the list may have lost a slot
    /// meanwhile. From the last one on, so that those before it keep their places.
    fn keep_packets(&self, token: &mut Token, parts: &mut Vec<SlotUse>, id: SessionId, share: &Share) {
        let params = self.settings.params(self.ring_size());
        let octets = Octets::new(share.unit_octets_max.into());
        let (nths, standing) = self.packet_parts(token, parts, id);
        let kept: Vec<u64> = kept(&standing, octets, share.pace.units(), &params).collect();
        for ((nth, part), keeps) in nths.into_iter().zip(&standing).zip(kept).rev() {
            if keeps == 0 {
                self.remove_slot(token, part.index);
                parts.remove(nth);
                continue;
            }
            shorten(&mut token.slots.as_mut_slice()[part.index], part.saves(octets, keeps, &params));
            (parts[nth].share, parts[nth].units) = (share.unit_octets_max, keeps as u32);
        }
    }

    /// Shares of which less is needed.
    pub(super) fn lessen_sessions(&mut self, token: &mut Token) {
        for at in 0..self.shares.sessions.len() {
            let session = &mut self.shares.sessions[at];
            let is_reserved = session.state == SessionState::Reserved;
            let Some((octets, pace)) = session.less.filter(|_| is_reserved) else { continue };
            session.less = None;
            (session.share.unit_octets_max, session.share.pace) = (octets, pace);
            let (id, share) = (session.id, session.share);
            let mut parts = std::mem::take(&mut self.shares.parts);
            self.keep_packets(token, &mut parts, id, &share);
            self.shares.parts = parts;
        }
    }

    /// Shares of which more is wanted. It is decided while this cycle's slots of the session are still ahead,
    /// so that a new slot has its turn in this cycle, too.
    pub(super) fn enlarge_sessions(&mut self, token: &mut Token) {
        for at in 0..self.shares.sessions.len() {
            let session = &self.shares.sessions[at];
            let is_reserved = session.state == SessionState::Reserved;
            let Some((octets, pace)) = session.more.filter(|_| is_reserved) else { continue };
            let (id, had) = (session.id, Octets::new(session.share.unit_octets_max.into()));
            let wanted = Share { unit_octets_max: octets, pace, ..session.share };
            let request = self.request_of(&wanted, octets);
            let params = self.settings.params(self.ring_size());
            let (slots, count) = admission_slots(token.slots.as_slice());
            let (nths, parts) = self.packet_parts(token, &self.shares.parts, id);
            let Some(&last) = nths.last() else { continue };
            self.shares.sessions[at].more = None;
            let index = parts[parts.len() - 1].index;
            match enlarge(&slots[..count], &parts, had, &request, &params) {
                Ok(Enlarged::Nothing) => {}
                Ok(Enlarged::Widened(Larger { octets, packets, tht })) => {
                    token.slots.as_mut_slice()[index].tht_ns = tht.as_nanos() as u32;
                    let part = &mut self.shares.parts[last];
                    (part.share, part.units) = (octets.get() as u32, packets as u32);
                }
                Ok(Enlarged::Added(Larger { octets, packets, tht })) => {
                    let (share, units) = (octets.get() as u32, packets as u32);
                    let part = SlotUse { session: id, share, units, fate: Fate::Stays };
                    self.append(token, part, tht, &request);
                }
                Err(refusal) => {
                    self.event(MediumEvent::Enlarged { session: id, answer: Err(refusal) });
                    continue;
                }
            }
            self.shares.sessions[at].share = wanted;
            let (slots, count) = admission_slots(token.slots.as_slice());
            let (_, parts) = self.packet_parts(token, &self.shares.parts, id);
            let admitted = standing_packets(&slots[..count], &parts, &request, &params);
            self.event(MediumEvent::Enlarged { session: id, answer: Ok(admitted) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::{Identity, PortId};
    use crate::settings::Settings;
    use rota_admission::Pace;
    use rota_contract::NodeId;
    use rota_units::{BitRate, Instant, Span};
    use rota_wire::{Key, MacAddr};

    /// A change that was given up before the token came took the larger share, and nobody gave it back.
    #[test]
    fn more_that_is_not_wanted_any_more_is_not_taken() {
        let now = Instant::from_nanos(1);
        let mac = MacAddr([2, 0, 0, 0, 0, 0xa]);
        let identity = Identity { node_id: NodeId(1), boot_id: 1, mac, name: "n1".to_owned() };
        let settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
        let mut link = Rether::new(now, PortId(0), identity, &Key::new([1; 32]), settings, 1);
        link.own.station = 1;
        link.enter_ring(now);
        let packets = |packets| Share {
            unit_octets_max: 1_000,
            pace: Pace::of_packets(packets).expect("few"),
            periodic: false,
            partition: 0,
            flow: None,
        };
        let (id, had, mut token) = (SessionId(7), packets(4), link.empty_token());
        link.reserve(now, id, had);
        link.shares.sessions[0].state = SessionState::Reserved;
        let part = SlotUse { session: id, share: 1_000, units: 4, fate: Fate::Stays };
        let request = link.request_of(&had, 1_000);
        link.append(&mut token, part, Span::from_millis(1), &request);
        let slots = token.slots.as_slice().to_vec();
        link.enlarge(id, &packets(9));
        link.lessen(id, &had);
        link.enlarge_sessions(&mut token);
        let pace = link.shares.sessions[0].share.pace;
        assert_eq!((token.slots.as_slice(), pace), (&slots[..], had.pace));
        link.enlarge(id, &packets(9));
        link.enlarge_sessions(&mut token);
        let pace = link.shares.sessions[0].share.pace;
        assert_eq!(pace, packets(9).pace);
        assert_ne!(token.slots.as_slice(), &slots[..]);
    }
}
