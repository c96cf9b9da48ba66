//! A probe: it asks for a channel, hears the contract, and gives the reservation back before it opens. So its
//! receiver takes it as a channel that admission refused, and listens again.

use super::{Channels, Outgoing};
use crate::io::ChannelId;
use rota_contract::{CloseCause, Granted};

impl Channels {
    /// Makes a channel that was asked for just now a probe.
    pub(crate) fn probe(&mut self, id: ChannelId) {
        if let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) {
            channel.probe = true;
        }
    }
}

impl Outgoing {
    /// True for a probe that was granted a contract and ended by itself.
    pub(super) fn is_granted_probe(&self) -> bool {
        let is_granted = self.granted != Granted::default() && self.ending.cause == CloseCause::Finished;
        self.probe && !self.ending.silent && is_granted
    }
}
