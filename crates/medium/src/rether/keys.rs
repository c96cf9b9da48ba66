//! Which key proves which frame.

use crate::sealing::SEGMENT_KEY_PURPOSE;
use rota_wire::{FormMember, FrameView, Key, verify};

/// The segment key and the two newest incarnation keys.
#[derive(Clone, Debug)]
pub(super) struct KeyRing {
    bootstrap: Key,
    pub(super) ring: [Option<(u8, Key)>; 2],
    /// How many ring keys were taken up.
    taken: u64,
}

impl KeyRing {
    pub(super) fn new(segment_secret: &Key, segment: u32) -> Self {
        let bootstrap = segment_secret.derive(SEGMENT_KEY_PURPOSE, [segment.to_be_bytes()].iter());
        Self { bootstrap, ring: [None, None], taken: 0 }
    }

    /// The key of frames that are proven before a ring exists.
    pub(super) fn bootstrap(&self) -> &Key {
        &self.bootstrap
    }

    /// The newest incarnation key and its epoch.
    pub(super) fn current(&self) -> Option<(u8, &Key)> {
        self.ring[0].as_ref().map(|(epoch, key)| (*epoch, key))
    }

    /// How many ring keys there have been: another one, another number.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    pub(super) fn current_epoch(&self) -> u8 {
        self.current().map_or(0, |(epoch, _)| epoch)
    }

    /// Whether the newest key came after that of this epoch. Epochs wrap: the shorter way counts.
    pub(super) fn is_newer_than(&self, epoch: u8) -> bool {
        epoch != 0 && (self.current_epoch().wrapping_sub(epoch) as i8) > 0
    }

    /// The epoch of the next key; 0 is the segment key's.
    pub(super) fn next_epoch(&self) -> u8 {
        match self.current_epoch().wrapping_add(1) {
            0 => 1,
            epoch => epoch,
        }
    }

    /// The key of a ring of these members, who must come in rising order of stations.
    fn ring_key(&self, epoch: u8, mode_epoch: u32, members: impl Iterator<Item = FormMember>) -> Key {
        let head = [epoch, 0, 0, 0, 0];
        let mut head20 = [0; 20];
        head20[..5].copy_from_slice(&head);
        head20[5..9].copy_from_slice(&mode_epoch.to_be_bytes());
        let material = core::iter::once(head20).chain(members.map(|member| member.key_material()));
        self.bootstrap.derive("rota 2026 ring incarnation", material)
    }

    /// Takes up the key of a newly formed ring. Members must come in rising order of stations. The key
    /// before it stays valid for frames that are still on their way.
    pub(super) fn form(&mut self, epoch: u8, mode_epoch: u32, members: impl Iterator<Item = FormMember>) {
        let key = self.ring_key(epoch, mode_epoch, members);
        if self.ring[0].as_ref().is_some_and(|(_, old)| *old == key) {
            return;
        }
        self.taken += 1;
        self.ring[1] = self.ring[0].take();
        self.ring[0] = Some((epoch, key));
    }

    /// Whether the ring of these members had a key that a newer one has replaced. The epoch alone does not
    /// say so: epochs begin anew in a ring that forgot its keys, and two stations may have seen others.
    pub(super) fn is_replaced(&self, epoch: u8, mode_epoch: u32, members: &[FormMember]) -> bool {
        let [Some((current, _)), Some((old, replaced))] = &self.ring else { return false };
        *old == epoch
            && *current != epoch
            && self.ring_key(epoch, mode_epoch, members.iter().copied()) == *replaced
    }

    /// A station that enters a ring forgets the key of the one it left. Parts of one ring that lived apart
    /// count their keys alike, and what one of them has replaced the other may still come to, of the same
    /// members.
    pub(super) fn forget_replaced(&mut self) {
        self.ring[1] = None;
    }

    /// Forgets the ring's keys: back in plain mode nothing under them is believed.
    pub(super) fn dissolve(&mut self) {
        self.ring = [None, None];
    }

    /// True if the frame was made under the newest ring key. An older key, or an earlier boot, proves frames
    /// that are still on their way, but not a station's end.
    pub(super) fn proves_now(&self, view: &FrameView<'_>) -> bool {
        self.current().is_some_and(|(epoch, key)| view.header().key_epoch == epoch && verify(view, key))
    }

    /// Whether the frame was made by somebody who has its key.
    pub(super) fn proves(&self, view: &FrameView<'_>) -> bool {
        let epoch = view.header().key_epoch;
        if epoch == 0 {
            return verify(view, &self.bootstrap);
        }
        self.ring.iter().flatten().any(|(known, key)| *known == epoch && verify(view, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_wire::MacAddr;

    fn member(station: u16, incarnation: u32) -> FormMember {
        FormMember { station, mac: MacAddr([2, 0, 0, 0, 0, station as u8]), incarnation, nonce: 7 }
    }

    /// `scenarios/apart.toml`: a station took a ring's next Form for one that its own ring had replaced, and
    /// with the members it knew instead it shut out who had just been let in.
    #[test]
    fn the_key_of_a_ring_that_was_left_may_become_the_key_of_the_next() {
        let mut keys = KeyRing::new(&Key::new([1; 32]), 1);
        let (apart, together) = ([member(1, 1), member(2, 1)], [member(1, 1), member(2, 2)]);
        keys.form(3, 5, together.iter().copied());
        keys.form(2, 5, apart.iter().copied());
        assert!(keys.is_replaced(3, 5, &together));
        keys.forget_replaced();
        assert!(!keys.is_replaced(3, 5, &together));
        assert_eq!(keys.current_epoch(), 2);
    }

    #[test]
    fn a_key_is_replaced_when_it_is_the_same_key_not_when_its_epoch_was_seen() {
        let mut keys = KeyRing::new(&Key::new([1; 32]), 1);
        let (old, new) = ([member(1, 1), member(2, 1)], [member(1, 1), member(2, 2)]);
        keys.form(2, 5, old.iter().copied());
        keys.form(1, 5, new.iter().copied());
        assert!(keys.is_replaced(2, 5, &old));
        // Epochs began anew where all had forgotten their keys: another ring, and this epoch once more.
        assert!(!keys.is_replaced(2, 5, &[member(1, 3), member(2, 2)]));
        assert!(!keys.is_replaced(1, 5, &new), "the present key");
    }
}
