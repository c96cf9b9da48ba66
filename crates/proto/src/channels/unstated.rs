//! Ends of channels received here whose sender had fallen silent: its later statement still counts.
//!
//! The program hears of the end at once, without the sender's statement. If the sender's station lives, it
//! ends the channel too, because its reservation is lost, and states its units. This node then counts its
//! units against that statement, as if the channel were open, and the acknowledgement confirms these counts.
//! A sender that has stopped repeating its end is asked when its station is in the ring again.

use super::{ChannelEvent, Channels, ENDED_MAX, Incoming, Stated, Want};
use crate::segment::Segment;
use rota_contract::CloseCause;
use rota_units::{Instant, Span};
use rota_wire::{MacAddr, Signal};

impl Channels {
    /// Keeps a channel as it stood before its end, if its sender may state its units later: true then.
    pub(super) fn remember_unstated(&mut self, ended: Incoming, cause: CloseCause) -> bool {
        if !ended.opened || !matches!(cause, CloseCause::PeerGone | CloseCause::WasSilent) {
            return false;
        }
        if self.unstated.len() == ENDED_MAX {
            self.unstated.pop_front();
        }
        self.unstated.push_back(ended);
        true
    }

    /// The end of a channel that has ended here without it.
    pub(super) fn on_late_end(&mut self, now: Instant, from: MacAddr, signal: &Signal, cycle: Span) {
        let is_meant = |ended: &Incoming| ended.hop == from && ended.remote == signal.channel;
        let Some(at) = self.unstated.iter().position(is_meant) else { return };
        let stated = Stated::at_end(signal);
        if !self.unstated[at].may_have_had(now, &stated, cycle) {
            self.wants.push(Want::CountRefusedTally);
            return;
        }
        let Some(mut ended) = self.unstated.remove(at) else { return };
        let tally = ended.meter.end(Some(stated));
        self.remember_end(&ended, true);
        let channel = ended.id;
        self.events.push_back(ChannelEvent::Afterwards { channel, stated, tally, sending: false });
    }

    /// A station has a number: the senders there are asked for the ends that are not stated yet.
    pub(super) fn ask_unstated(&mut self, station: u16, segment: Segment<'_>) {
        for ended in &self.unstated {
            if segment.number(ended.hop) == station {
                self.wants.push(Want::Signal { to: ended.hop, signal: ended.ask_signal() });
            }
        }
    }
}
