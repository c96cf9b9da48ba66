//! The keyed tag of every frame (BLAKE3, truncated to 16 octets), over everything from the Ethernet
//! destination to the last octet of the body. There is no way to send or accept a frame without it. A data
//! frame has two tags of half the size in its place ([`crate::halves`]).

use crate::ethernet::{ETHERNET_HEADER_OCTETS, MacAddr};
use crate::halves::{ChannelKey, ChannelName, HALF_OCTETS, HeaderKey};
use crate::header::{FrameView, Kind, LINK_HEADER_OCTETS, LinkHeader, TAG_OCTETS, TagAlgorithm};

/// The shortest Ethernet frame without FCS.
const MIN_FRAME_OCTETS: usize = 60;

/// The purpose for which a key makes header tags.
const HEADER_PURPOSE: &str = "rota 2026 header tags";
/// The purpose for which a key is that of all its channels' keys.
const CHANNELS_PURPOSE: &str = "rota 2026 channel keys";

/// A 32-octet key, with what data frames under it need of it. It does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    octets: [u8; 32],
    header: HeaderKey,
    channels: [u8; 32],
}

impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// The key with these octets.
    pub fn new(octets: [u8; 32]) -> Self {
        let mut header = [0; 16];
        header.copy_from_slice(&blake3::derive_key(HEADER_PURPOSE, &octets)[..16]);
        let channels = blake3::derive_key(CHANNELS_PURPOSE, &octets);
        Self { octets, header: HeaderKey::new(header), channels }
    }

    /// The key for one purpose, derived from this one and from `material` (BLAKE3's key derivation).
    pub fn derive(&self, purpose: &'static str, material: impl Iterator<Item = impl AsRef<[u8]>>) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(purpose);
        hasher.update(&self.octets);
        for part in material {
            hasher.update(part.as_ref());
        }
        Self::new(*hasher.finalize().as_bytes())
    }

    /// The key of the header tags of data frames under this one.
    pub const fn header_key(&self) -> &HeaderKey {
        &self.header
    }

    /// The key of one channel's data tags under this one. Nobody finds this one or another channel's from it.
    pub fn channel_key(&self, channel: ChannelName) -> ChannelKey {
        ChannelKey::new(*blake3::keyed_hash(&self.channels, &channel.material()).as_bytes())
    }

    /// The tag, or the two tags, of a frame from its destination address to the last octet of its body.
    fn tag(&self, header: &LinkHeader, octets: &[u8]) -> [u8; TAG_OCTETS] {
        let mut tag = [0; TAG_OCTETS];
        if header.kind == Kind::Data {
            let channel = self.channel_key(ChannelName::of(header, octets));
            tag[..HALF_OCTETS].copy_from_slice(&self.header.tag(header.payload, octets));
            tag[HALF_OCTETS..].copy_from_slice(&channel.tag(octets));
        } else {
            let hash = blake3::keyed_hash(&self.octets, octets);
            tag.copy_from_slice(&hash.as_bytes()[..TAG_OCTETS]);
        }
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
    let tag = key.tag(header, &buffer[..end]);
    buffer[end..end + TAG_OCTETS].copy_from_slice(&tag);
    let length = end + TAG_OCTETS;
    if length < MIN_FRAME_OCTETS {
        buffer[length..MIN_FRAME_OCTETS].fill(0);
    }
    length.max(MIN_FRAME_OCTETS)
}

/// Whether the frame's tag, or both tags of a data frame, were made with `key`. Takes the same time wherever
/// the tags differ.
pub fn verify(view: &FrameView<'_>, key: &Key) -> bool {
    let header = view.header();
    view.algorithm() == TagAlgorithm::of(header.kind) && is_equal(&key.tag(header, view.tagged()), view.tag())
}

/// Whether a data frame's data tag was made with the key of its channel. It says nothing of the header tag.
pub fn verify_data(view: &FrameView<'_>, key: &ChannelKey) -> bool {
    view.header().kind == Kind::Data
        && view.algorithm() == TagAlgorithm::Halves
        && is_equal(&key.tag(view.tagged()), &view.tag()[HALF_OCTETS..])
}

fn is_equal(expected: &[u8], tag: &[u8]) -> bool {
    let mut difference = 0;
    for (a, b) in expected.iter().zip(tag) {
        difference |= a ^ b;
    }
    difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{DEFAULT_ETHERTYPE, Generation, INCARNATION_AT, Kind, PayloadKind};

    fn header(kind: Kind, payload: PayloadKind) -> LinkHeader {
        LinkHeader {
            kind,
            key_epoch: 3,
            payload,
            source: 7,
            segment: 1,
            incarnation: 99,
            generation: Generation { counter: 4, station: 2 },
            seq: (1 << 48) - 1,
        }
    }

    /// Writes the frame whose body stands in the buffer, and returns its length.
    fn emit(frame: &mut [u8], header: &LinkHeader, octets: usize, key: &Key) -> usize {
        emit_frame(frame, MacAddr::BROADCAST, MacAddr([2; 6]), DEFAULT_ETHERTYPE, header, octets, key)
    }

    fn is_proven(frame: &[u8], key: &Key) -> bool {
        FrameView::parse(frame, DEFAULT_ETHERTYPE).is_ok_and(|view| verify(&view, key))
    }

    #[test]
    fn any_flipped_bit_breaks_the_tag() {
        let key = Key::new([9; 32]);
        for (kind, payload, octets) in [
            (Kind::Request, PayloadKind::None, 5),
            (Kind::Data, PayloadKind::Unit, 0),
            (Kind::Data, PayloadKind::Unit, 30),
            (Kind::Data, PayloadKind::Rtip, 7),
            (Kind::Data, PayloadKind::Rtip, 60),
        ] {
            let header = header(kind, payload);
            let mut frame = [0x5a; 160];
            let length = emit(&mut frame, &header, octets, &key);
            assert_eq!(length, (14 + 28 + octets + 16).max(60), "no frame's size depends on its kind");
            assert_eq!(frame[INCARNATION_AT..][..4], 99_u32.to_be_bytes());
            let view = FrameView::parse(&frame[..length], DEFAULT_ETHERTYPE).unwrap();
            assert_eq!(*view.header(), header);
            assert!(verify(&view, &key));
            assert!(!verify(&view, &Key::new([8; 32])));
            for bit in 0..(14 + 28 + octets + 16) * 8 {
                frame[bit / 8] ^= 1 << (bit % 8);
                assert!(!is_proven(&frame[..length], &key), "bit {bit} of {header:?}");
                frame[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    /// ENDHOST-R30: what the holder of a channel's key can make is no frame, and none of another channel.
    #[test]
    fn a_channels_key_proves_the_data_of_that_channel_alone() {
        let key = Key::new([9; 32]);
        let name = ChannelName { incarnation: 99, payload: PayloadKind::Unit, label: 0x0102 };
        let own = key.channel_key(name);
        let mut frame = [0; 160];
        let body = ETHERNET_HEADER_OCTETS + LINK_HEADER_OCTETS;
        let end = body + 40;
        frame[body..body + 4].copy_from_slice(&[1, 2, 3, 4]);
        emit(&mut frame, &header(Kind::Data, PayloadKind::Unit), 40, &key);
        assert_eq!(frame[end..end + HALF_OCTETS], key.header_key().tag(PayloadKind::Unit, &frame[..end]));
        assert_eq!(frame[end + HALF_OCTETS..end + TAG_OCTETS], own.tag(&frame[..end]));

        // It changes the data and their tag: the header tag stands, and only the data of its channel are its.
        frame[end - 1] ^= 1;
        let forged = own.tag(&frame[..end]);
        frame[end + HALF_OCTETS..end + TAG_OCTETS].copy_from_slice(&forged);
        assert!(is_proven(&frame[..end + TAG_OCTETS], &key), "its own channel's");
        // It changes a header: it cannot make the header tag.
        frame[body + 3] ^= 1;
        let forged = own.tag(&frame[..end]);
        frame[end + HALF_OCTETS..end + TAG_OCTETS].copy_from_slice(&forged);
        assert!(!is_proven(&frame[..end + TAG_OCTETS], &key));

        for other in [
            ChannelName { incarnation: 98, ..name },
            ChannelName { payload: PayloadKind::Rtip, ..name },
            ChannelName { label: 0x0201, ..name },
        ] {
            assert_ne!(key.channel_key(other), own, "{other:?}");
        }
        assert_ne!(Key::new([8; 32]).channel_key(name), own, "of another ring");
    }
}
