//! The flow control of a sender, whichever it is: when the next TPDU may leave.

use super::packet_pair::PacketPair;
use super::smart::{Learned, Smart};
use super::source::{Request, Unsound};
use super::{Aimd, LeakyBucket};
use rota_units::{Instant, Octets};
use rota_wire::{FlowControl, TPDU_HEADER_OCTETS};

#[derive(Clone, Debug)]
pub(super) enum Flow {
    Open,
    Window(Aimd),
    Bucket(LeakyBucket),
    Pair(PacketPair),
}

impl Flow {
    pub(super) fn new(now: Instant, request: &Request, window: u32) -> Result<Self, Unsound> {
        Ok(match (request.quality.flow, request.bucket) {
            (FlowControl::Open, None) => Self::Open,
            (FlowControl::Window, None) => Self::Window(Aimd::new(window)),
            (FlowControl::PacketPair, None) => Self::Pair(PacketPair::new(now, window)),
            (FlowControl::Bucket, Some((depth, rate))) => {
                let bucket = LeakyBucket::new(now, depth, rate);
                let size = TPDU_HEADER_OCTETS as u64 + u64::from(request.tpdu);
                if !bucket.takes(Octets::new(size)) {
                    return Err(Unsound::Depth(depth.get(), size));
                }
                Self::Bucket(bucket)
            }
            _ => return Err(Unsound::Bucket),
        })
    }

    pub(super) const fn kind(&self) -> FlowControl {
        match self {
            Self::Open => FlowControl::Open,
            Self::Window(_) => FlowControl::Window,
            Self::Bucket(_) => FlowControl::Bucket,
            Self::Pair(_) => FlowControl::PacketPair,
        }
    }

    /// TPDUs that may be on their way, where this decides it.
    pub(super) const fn window(&self) -> Option<u64> {
        match self {
            Self::Window(aimd) => Some(aimd.window()),
            Self::Open | Self::Bucket(_) | Self::Pair(_) => None,
        }
    }

    /// True if TPDUs leave at instants of its own.
    pub(super) const fn is_paced(&self) -> bool {
        matches!(self, Self::Bucket(_) | Self::Pair(_))
    }

    /// True if one TPDU more may be on its way.
    pub(super) fn has_turn(&self, smart: &mut Smart) -> bool {
        match self {
            // A lost TPDU no longer flies. A head that is lost always has its turn: all waits for it.
            Self::Window(aimd) => {
                smart.flying() < aimd.window() || smart.next_lost() == Some(smart.cum() + 1)
            }
            Self::Open | Self::Bucket(_) | Self::Pair(_) => true,
        }
    }

    /// When the next TPDU, of so many octets, may leave.
    pub(super) fn earliest(&self, now: Instant, size: u64, smart: &Smart) -> Instant {
        match self {
            Self::Bucket(bucket) => bucket.earliest(now, Octets::new(size)),
            Self::Pair(pair) => pair.earliest(now, smart.flying(), smart.trips()),
            Self::Open | Self::Window(_) => now,
        }
    }

    /// TPDU `sequence` leaves. `more` is true if the one behind it is ready and new.
    pub(super) fn left(&mut self, now: Instant, sequence: u64, size: u64, more: bool, smart: &Smart) {
        match self {
            Self::Bucket(bucket) => bucket.take(now, Octets::new(size)),
            Self::Pair(pair) => {
                let is_new = sequence > smart.top();
                pair.left(now, sequence, is_new, more, smart.flying(), smart.trips());
            }
            Self::Open | Self::Window(_) => {}
        }
    }

    /// An acknowledgement of TPDU `cause` came. False if packet-pair does not fit this path.
    pub(super) fn on_ack(&mut self, now: Instant, cause: u64, learned: Learned, smart: &Smart) -> bool {
        match self {
            Self::Window(aimd) => {
                aimd.on_arrived(learned.arrived);
                if learned.lost > 0 {
                    aimd.on_lost(learned.lost, smart.top());
                }
                true
            }
            Self::Pair(pair) => pair.on_ack(now, cause, learned.arrived, smart.flying(), smart.trips()),
            Self::Open | Self::Bucket(_) => true,
        }
    }

    /// The probe has found the head lost.
    pub(super) fn on_probe(&mut self, head: u64, smart: &Smart) {
        if let Self::Window(aimd) = self {
            aimd.on_lost(head, smart.top());
        }
    }

    /// A time-out. False if packet-pair does not fit this path.
    pub(super) fn on_time_out(&mut self, now: Instant, smart: &Smart) -> bool {
        match self {
            Self::Window(aimd) => aimd.on_time_out(smart.top()),
            Self::Pair(pair) => return pair.on_time_out(now, smart.flying(), smart.trips()),
            Self::Open | Self::Bucket(_) => {}
        }
        true
    }
}
