//! Room for diverted frames that wait for the token. Taken at birth; nothing is allocated afterwards.

use rota_proto::HostTag;

/// The longest frame kept: an Ethernet frame with a VLAN tag.
pub(crate) const FRAME_OCTETS: usize = 1_522;

pub(crate) struct Pool {
    octets: Box<[u8]>,
    lengths: Box<[u16]>,
    free: Vec<u32>,
}

impl Pool {
    pub(crate) fn new(frames: usize) -> Self {
        let free = (0..frames as u32).rev().collect();
        Self {
            octets: vec![0; frames * FRAME_OCTETS].into_boxed_slice(),
            lengths: vec![0; frames].into_boxed_slice(),
            free,
        }
    }

    /// Takes a place and lets `fill` write a frame into it. The place stays free when `fill` has none.
    pub(crate) fn take(&mut self, fill: impl FnOnce(&mut [u8]) -> Option<usize>) -> Option<HostTag> {
        let tag = *self.free.last()?;
        let at = tag as usize * FRAME_OCTETS;
        let length = fill(&mut self.octets[at..at + FRAME_OCTETS])?;
        self.free.pop();
        self.lengths[tag as usize] = length as u16;
        Some(HostTag(tag))
    }

    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    pub(crate) fn frame(&self, tag: HostTag) -> &[u8] {
        let at = tag.0 as usize * FRAME_OCTETS;
        &self.octets[at..at + usize::from(self.lengths[tag.0 as usize])]
    }

    pub(crate) fn give_back(&mut self, tag: HostTag) {
        debug_assert!(!self.free.contains(&tag.0), "a frame is given back once");
        self.free.push(tag.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back() {
        let mut pool = Pool::new(2);
        let put = |octets: &mut [u8]| {
            octets[..3].copy_from_slice(b"abc");
            Some(3)
        };
        let a = pool.take(put).unwrap();
        assert_eq!(pool.take(|_| None), None);
        let b = pool.take(put).unwrap();
        assert!(!pool.has_room() && pool.take(put).is_none());
        assert_eq!((pool.frame(a), pool.frame(b)), (&b"abc"[..], &b"abc"[..]));
        pool.give_back(a);
        assert!(pool.has_room());
    }
}
