//! The ends of channels that were received here: a sender repeats its close until it is acknowledged.
//!
//! An acknowledgement confirms only the units of a sender whose statement this node has counted against. A
//! node that has started anew knows nothing of the channel, and one whose program ended it has counted
//! without that statement. Such an answer has the code of a peer that has gone, and the sender takes as come
//! only units that were reported to it before. A node that gave up on its sender counts afterwards
//! (`unstated.rs`).

use super::{Channels, ENDED_MAX, Incoming};
use rota_contract::{CloseCause, Tally};
use rota_wire::{MacAddr, Signal, Verb};

/// The code of an acknowledgement that confirms nothing.
const UNCOUNTED: u8 = CloseCause::PeerGone.code();

impl Channels {
    /// Remembers the counts of a channel for its sender; `is_counted` if they include the sender's statement.
    pub(super) fn remember_end(&mut self, ended: &Incoming, is_counted: bool) {
        let tally = ended.meter.tally();
        let is_whole = tally.broken() == 0;
        // Its counts without the sender's statement have had their time.
        self.ended.retain(|(hop, end)| *hop != ended.hop || end.channel != ended.remote);
        if is_whole && !is_counted {
            return;
        }
        if self.ended.len() == ENDED_MAX {
            // Rather the end of a channel of which all units were as promised.
            let whole = self.ended.iter().position(|(_, end)| end.tally.broken() == 0);
            self.ended.remove(whole.unwrap_or(0));
        }
        let tally = if is_whole { Tally::default() } else { tally };
        let code = if is_counted { CloseCause::Finished.code() } else { UNCOUNTED };
        let end = Signal { code, tally, ..Signal::new(Verb::CloseAck, ended.remote, ended.label) };
        self.ended.push_back((ended.hop, end));
    }

    /// The answer to a close. Each has the counts: the first one makes the sender forget the channel.
    pub(super) fn close_ack(&self, from: MacAddr, close: &Signal) -> Signal {
        let ended = self.ended.iter().find(|(hop, end)| *hop == from && end.channel == close.channel);
        let unknown = Signal { code: UNCOUNTED, ..Signal::new(Verb::CloseAck, close.channel, close.label) };
        ended.map_or(unknown, |(_, end)| Signal { label: close.label, ..*end })
    }
}

/// True if a receiver has counted the units that its sender stated at the end.
pub(super) fn confirms(signal: &Signal) -> bool {
    signal.verb == Verb::CloseAck && signal.code == CloseCause::Finished.code()
}
