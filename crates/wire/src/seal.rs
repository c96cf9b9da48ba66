//! The keyed tag of every frame (BLAKE3, truncated to 16 octets), over everything from the Ethernet
//! destination to the last octet of the body. There is no way to send or accept a frame without it.

use crate::ethernet::{ETHERNET_HEADER_OCTETS, MacAddr};
use crate::header::{FrameView, LINK_HEADER_OCTETS, LinkHeader, TAG_OCTETS};

/// The shortest Ethernet frame without FCS.
const MIN_FRAME_OCTETS: usize = 60;

/// A 32-octet key. It does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// The key with these octets.
    pub const fn new(octets: [u8; 32]) -> Self {
        Self(octets)
    }

    /// The key for one purpose, derived from this one and from `material` (BLAKE3's key derivation).
    pub fn derive(&self, purpose: &'static str, material: impl Iterator<Item = impl AsRef<[u8]>>) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(purpose);
        hasher.update(&self.0);
        for part in material {
            hasher.update(part.as_ref());
        }
        Self(*hasher.finalize().as_bytes())
    }

    fn tag(&self, octets: &[u8]) -> [u8; TAG_OCTETS] {
        let hash = blake3::keyed_hash(&self.0, octets);
        let mut tag = [0; TAG_OCTETS];
        tag.copy_from_slice(&hash.as_bytes()[..TAG_OCTETS]);
        tag
    }
}

/// Completes a frame whose body of `body_octets` already stands at its place in `buffer` (behind 42 octets):
/// writes the headers before it, the tag behind it and padding. Returns the frame's length.
pub fn emit_frame(
    buffer: &mut [u8],
    destination: MacAddr,
    source: MacAddr,
    ether_type: u16,
    header: &LinkHeader,
    body_octets: usize,
    key: &Key,
) -> usize {
    buffer[..6].copy_from_slice(&destination.0);
    buffer[6..12].copy_from_slice(&source.0);
    buffer[12..14].copy_from_slice(&ether_type.to_be_bytes());
    header.emit(body_octets, &mut buffer[ETHERNET_HEADER_OCTETS..]);
    let end = ETHERNET_HEADER_OCTETS + LINK_HEADER_OCTETS + body_octets;
    let tag = key.tag(&buffer[..end]);
    buffer[end..end + TAG_OCTETS].copy_from_slice(&tag);
    let length = end + TAG_OCTETS;
    if length < MIN_FRAME_OCTETS {
        buffer[length..MIN_FRAME_OCTETS].fill(0);
    }
    length.max(MIN_FRAME_OCTETS)
}

/// Whether the frame's tag was made with `key`. Takes the same time wherever the tags differ.
pub fn verify(view: &FrameView<'_>, key: &Key) -> bool {
    let expected = key.tag(view.tagged());
    let mut difference = 0;
    for (a, b) in expected.iter().zip(view.tag()) {
        difference |= a ^ b;
    }
    difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{DEFAULT_ETHERTYPE, Generation, INCARNATION_AT, Kind, PayloadKind};

    #[test]
    fn any_flipped_bit_breaks_the_tag() {
        let header = LinkHeader {
            kind: Kind::Request,
            key_epoch: 3,
            payload: PayloadKind::None,
            source: 7,
            segment: 1,
            incarnation: 99,
            generation: Generation { counter: 4, station: 2 },
            seq: (1 << 48) - 1,
        };
        let key = Key::new([9; 32]);
        let mut frame = [0u8; 128];
        let length =
            emit_frame(&mut frame, MacAddr::BROADCAST, MacAddr([2; 6]), DEFAULT_ETHERTYPE, &header, 5, &key);
        assert_eq!(length, 14 + 28 + 5 + 16);
        assert_eq!(frame[INCARNATION_AT..][..4], 99_u32.to_be_bytes());
        let view = FrameView::parse(&frame[..length], DEFAULT_ETHERTYPE).unwrap();
        assert_eq!(*view.header(), header);
        assert!(verify(&view, &key));
        assert!(!verify(&view, &Key::new([8; 32])));
        for bit in 0..length * 8 {
            frame[bit / 8] ^= 1 << (bit % 8);
            if let Ok(view) = FrameView::parse(&frame[..length], DEFAULT_ETHERTYPE) {
                assert!(!verify(&view, &key), "bit {bit}");
            }
            frame[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
