//! A receiver that has no memory for a channel.

use super::{Channels, Incoming};
use crate::cause::CloseCause;
use crate::io::ChannelId;
use crate::rether::Rether;
use rota_units::Instant;
use rota_wire::{Signal, Verb};

impl Channels {
    /// Refuses a channel for which the receiver has no memory; its sender gets this cause.
    pub(crate) fn decline(&mut self, now: Instant, id: ChannelId, link: &mut Rether) {
        let declined = |channel: &Incoming| channel.id == id && !channel.opened;
        let Some(at) = self.incoming.iter().position(declined) else { return };
        let channel = &self.incoming[at];
        let refuse = Signal::new(Verb::Refuse, channel.remote, channel.label);
        link.send_signal(now, channel.peer, Signal { code: CloseCause::NoMemory.code(), ..refuse });
        self.end_incoming(at, CloseCause::NoMemory, None, None);
    }
}
