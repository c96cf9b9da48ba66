//! The wishes of the channels to the medium. The parent carries them out after each call, in order.

use super::{CHANNELS_MAX, ENDED_MAX};
use crate::io::{ChannelId, ShareRequest};
use rota_units::Instant;
use rota_wire::{MacAddr, Signal};

/// Wants of one call at most. Its timers want the most: of each channel sent here its signal, a sign that its
/// peer is silent, and a question; of each one received here a question, its counts, and a frame that shows
/// this station's place; and the ends that were not stated.
pub(super) const ROOM: usize = 6 * CHANNELS_MAX + ENDED_MAX + 8;

/// One thing that the medium is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Want {
    /// A signal leaves, at once in plain mode, else with the token.
    Signal {
        /// For which station.
        to: MacAddr,
        /// The signal.
        signal: Signal,
    },
    /// A share is asked for; the answer comes as an event.
    Reserve {
        /// For which channel.
        channel: ChannelId,
        /// Its load.
        asked: ShareRequest,
    },
    /// A share is given back, and its waiting units are given up.
    Release {
        /// Of which channel.
        channel: ChannelId,
    },
    /// A share for units of another size is asked for; the answer comes as an event.
    Resize {
        /// For which channel.
        channel: ChannelId,
        /// The new largest unit, octets.
        unit_octets_max: u32,
    },
    /// The units that have not begun to leave are taken back.
    KeepUnitInPart {
        /// Of which channel.
        channel: ChannelId,
    },
    /// A station is silent or repeats itself: frames for it go to its group address for a while.
    Contest {
        /// Which.
        mac: MacAddr,
    },
    /// The doubt that frames arrive at a station's own address goes on.
    Doubt {
        /// Which.
        mac: MacAddr,
    },
    /// A unit for this station may have gone astray.
    DoubtOwn,
    /// Units for this station go astray.
    ContestOwn,
    /// A sender of steady units is silent: this station shows where it is.
    ShowPlace {
        /// Since when.
        since: Instant,
    },
    /// A sender's question came to this station's own address.
    NoteReached,
    /// A sender's question came to this station's group address only.
    NoteReachedAgain,
    /// A report of counts that cannot be true is counted.
    CountRefusedTally,
}
