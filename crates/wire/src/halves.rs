//! The two tags of a data frame, eight octets each, in the place of the one of all other frames.
//!
//! The *header tag* proves sender, channel and place of a fragment to whoever has the key of the ring: the
//! node, and a program in the kernel, which reads the first octets alone. The *data tag* proves all of the
//! frame under a key of its channel alone. A program that has this key can verify frames of its channel, and
//! can make none that a node takes, because it lacks the key of the header tag.
//!
//! ENDHOST-R28 to R30 build on these two.

use crate::ethernet::ETHERNET_HEADER_OCTETS;
use crate::header::{LINK_HEADER_OCTETS, LinkHeader, PayloadKind, TAG_OCTETS, UNIT_HEADER_OCTETS};
use crate::rtip::RTIP_HEADER_OCTETS;
use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use polyval::Polyval;
use polyval::universal_hash::UniversalHash;
use siphasher::sip::SipHasher24;

/// Octets of each of the two tags.
pub const HALF_OCTETS: usize = TAG_OCTETS / 2;
/// Where the label of a unit stands in a data frame.
const LABEL_AT: usize = ETHERNET_HEADER_OCTETS + LINK_HEADER_OCTETS;
/// Where the local id of an RTIP packet stands.
const LOCAL_ID_AT: usize = LABEL_AT + 2;
const AES_BLOCK: usize = 16;

/// How many octets of a data frame its header tag is over. A frame that is shorter has it over all.
pub const fn header_octets(payload: PayloadKind) -> usize {
    let rtip = if matches!(payload, PayloadKind::Rtip) { RTIP_HEADER_OCTETS } else { 0 };
    LABEL_AT + rtip + UNIT_HEADER_OCTETS
}

/// The key of header tags (SipHash-2-4). It does not print.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HeaderKey([u8; 16]);

impl HeaderKey {
    /// The key with these octets.
    pub const fn new(octets: [u8; 16]) -> Self {
        Self(octets)
    }

    /// Its octets, for the program in the kernel that verifies header tags.
    pub const fn octets(&self) -> &[u8; 16] {
        &self.0
    }

    /// The header tag of a data frame, from its destination address to the last octet of its body. On the
    /// wire the value's first octet is its lowest, as SipHash writes it.
    pub fn tag(&self, payload: PayloadKind, frame: &[u8]) -> [u8; HALF_OCTETS] {
        let header = &frame[..frame.len().min(header_octets(payload))];
        SipHasher24::new_with_key(&self.0).hash(header).to_le_bytes()
    }
}

impl core::fmt::Debug for HeaderKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("HeaderKey(..)")
    }
}

/// The identity of a channel at both ends of a hop, under one ring's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelName {
    /// Which boot of the sender.
    pub incarnation: u32,
    /// Whether `label` is that of a unit header or the local id of an RTIP header.
    pub payload: PayloadKind,
    /// The channel's name on this hop.
    pub label: u16,
}

impl ChannelName {
    /// The channel that a data frame names, which may be shorter than its headers.
    pub(crate) fn of(header: &LinkHeader, frame: &[u8]) -> Self {
        let at = if header.payload == PayloadKind::Rtip { LOCAL_ID_AT } else { LABEL_AT };
        let label = frame.get(at..at + 2).map_or(0, |octets| u16::from_be_bytes([octets[0], octets[1]]));
        Self { incarnation: header.incarnation, payload: header.payload, label }
    }

    /// What the channel's key is derived from.
    pub(crate) fn material(self) -> [u8; 8] {
        let mut material = [0; 8];
        material[..4].copy_from_slice(&self.incarnation.to_be_bytes());
        material[4] = self.payload.code();
        material[6..].copy_from_slice(&self.label.to_be_bytes());
        material
    }
}

/// The key of one channel, for data tags. It does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct ChannelKey([u8; 32]);

impl ChannelKey {
    /// The key with these octets.
    pub const fn new(octets: [u8; 32]) -> Self {
        Self(octets)
    }

    /// Its octets, for the program whose channel it is.
    pub const fn octets(&self) -> &[u8; 32] {
        &self.0
    }

    /// The data tag of a frame, from its destination address to the last octet of its body.
    pub fn tag(&self, frame: &[u8]) -> [u8; HALF_OCTETS] {
        let whole = self.whole_tag([0; AES_BLOCK], frame);
        core::array::from_fn(|at| whole[at])
    }

    /// The tag of AES-128-GCM-SIV (RFC 8452, section 4) over associated data without a text. Its nonce is
    /// always 0 here, so that its two keys are those of the channel and are derived once.
    fn whole_tag(&self, nonce: [u8; AES_BLOCK], data: &[u8]) -> [u8; AES_BLOCK] {
        let (authentication, encryption) = self.0.split_at(AES_BLOCK);
        let mut hash = Polyval::new(authentication.try_into().expect("16 octets"));
        hash.update_padded(data);
        let mut lengths = [0; AES_BLOCK];
        lengths[..8].copy_from_slice(&(data.len() as u64 * 8).to_le_bytes());
        hash.update(&[lengths.into()]);
        let mut block = hash.finalize();
        for (octet, of_nonce) in block.iter_mut().zip(nonce) {
            *octet ^= of_nonce;
        }
        block[AES_BLOCK - 1] &= 0x7f;
        Aes128::new(encryption.try_into().expect("16 octets")).encrypt_block(&mut block);
        block.into()
    }
}

impl core::fmt::Debug for ChannelKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("ChannelKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets<const N: usize>(hex: &str) -> [u8; N] {
        core::array::from_fn(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).expect("hex"))
    }

    /// RFC 8452, appendix C.1, the first vector: its record keys, its nonce, nothing to authenticate.
    #[test]
    fn a_data_tag_is_that_of_aes_gcm_siv() {
        let key = ChannelKey::new(octets("d9b360279694941ac5dbc6987ada73774004a0dcd862f2a57360219d2d44ef6c"));
        let mut nonce = [0; 16];
        nonce[0] = 3;
        assert_eq!(key.whole_tag(nonce, &[]), octets("dc20e2d83f25705bb49e439eca56de25"));
        assert_ne!(key.tag(&[0; 16]), key.tag(&[0; 17]), "the length counts");
    }

    /// The vector of the paper of SipHash (Aumasson and Bernstein, appendix A).
    #[test]
    fn a_header_tag_is_siphash_2_4_over_the_headers_alone() {
        let key = HeaderKey::new(core::array::from_fn(|at| at as u8));
        let message: [u8; 100] = core::array::from_fn(|at| at as u8);
        assert_eq!(key.tag(PayloadKind::Unit, &message[..15]), 0xa129_ca61_49be_45e5_u64.to_le_bytes());
        for (payload, headers) in [(PayloadKind::Unit, 62), (PayloadKind::Rtip, 78)] {
            assert_eq!(key.tag(payload, &message), key.tag(payload, &message[..headers]));
            assert_ne!(key.tag(payload, &message), key.tag(payload, &message[..headers - 1]));
        }
    }
}
