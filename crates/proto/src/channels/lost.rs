//! The ends of channels whose port is gone: no station can be told of them, and no share is left to give
//! back.

use super::{ChannelEvent, Channels, Listener, Tells};
use crate::io::ChannelId;
use rota_contract::CloseCause;
use std::collections::VecDeque;

impl Channels {
    /// True if the channel is sent or received here.
    pub(crate) fn has(&self, id: ChannelId) -> bool {
        self.outgoing.iter().any(|channel| channel.id == id)
            || self.incoming.iter().any(|channel| channel.id == id)
    }

    /// A listener of another ledger is to listen again, and its parent knows.
    pub(crate) fn adopt(&mut self, listener: Listener) {
        self.unlisten(listener.id);
        self.returning.push(listener);
    }

    /// Ends all channels at once. Returns the events that were not taken yet, the ends last, and the
    /// listeners that are still to listen again.
    pub(crate) fn end_with_port(mut self) -> (VecDeque<ChannelEvent>, Vec<Listener>) {
        while !self.incoming.is_empty() {
            self.end_incoming(0, CloseCause::PortGone, None, Tells::Nobody);
        }
        for mut channel in std::mem::take(&mut self.outgoing) {
            // One that ends already keeps the cause that it has.
            if !channel.has_stated_its_end() && channel.ending.cause == CloseCause::Finished {
                channel.ending.cause = CloseCause::PortGone;
            }
            self.finish(&channel);
        }
        (self.events, self.returning)
    }
}
