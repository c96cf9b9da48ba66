//! Completes frames: the one place where a medium's frames get their header and their tag.

use crate::door::Identity;
use crate::door::StationId;
use crate::settings::Settings;
use crate::tally::MediumTally;
use rota_wire::{ETHERNET_HEADER_OCTETS, LINK_HEADER_OCTETS, TAG_OCTETS};
use rota_wire::{Generation, Key, Kind, LinkHeader, MacAddr, PayloadKind, emit_frame};

/// The octets of every frame of a segment before its body, and behind it.
pub const FRAME_OCTETS: u16 = (BODY + TAG_OCTETS) as u16;
/// Where the body of a frame begins.
pub const BODY: usize = ETHERNET_HEADER_OCTETS + LINK_HEADER_OCTETS;
/// No honest station's counter is further ahead than this.
pub(crate) const JUMP_MAX: u32 = 1_000_000;
/// Where the 48-bit sequences of the link header end.
pub(crate) const SEQ_END: u64 = (1 << 48) - (1 << 20);
/// The purpose for which a segment's secret is the key of its first frames.
pub(crate) const SEGMENT_KEY_PURPOSE: &str = "rota 2026 bootstrap frames";

/// This station, as the others know it.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) me: Identity,
    /// Its place, 0 while it has none.
    pub(crate) station: StationId,
    pub(crate) incarnation: u32,
    pub(crate) nonce: u64,
    /// The newest challenge of another station, answered by every announcement.
    pub(crate) answers: u64,
    pub(crate) frame_seq: u64,
}

/// The fields of a frame's header beside its sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    pub(crate) payload: PayloadKind,
    pub(crate) key_epoch: u8,
    pub(crate) generation: Generation,
    pub(crate) seq: u64,
}

/// Completes a frame whose body of so many octets stands in the buffer, and counts it.
pub(crate) fn seal(
    (own, settings): (&Own, &Settings),
    tally: &mut MediumTally,
    frame: &mut [u8],
    to: MacAddr,
    head: &Head,
    octets: usize,
    key: &Key,
) -> u16 {
    let Head { kind, payload, key_epoch, generation, seq } = *head;
    let header = LinkHeader {
        kind,
        key_epoch,
        payload,
        source: own.station,
        segment: settings.segment,
        incarnation: own.incarnation,
        generation,
        seq,
    };
    let len = emit_frame(frame, to, own.me.mac, settings.ether_type, &header, octets, key);
    tally.count_sent(kind.class(), len);
    len as u16
}
