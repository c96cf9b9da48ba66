//! The channel of a packet, for those who watch the wire: a packet states the local id of the node that
//! receives it, which says nothing to people.

use super::Node;
use crate::io::{ChannelId, PortId};
use rota_wire::MacAddr;

impl Node {
    /// The channel of a packet that a station has sent to this one by a local id; none where no channel
    /// across segments has it. The number is that of its sender, as `rota channel list` shows it at both
    /// ends.
    pub fn channel_in(&self, port: PortId, from: MacAddr, local_id: u16) -> Option<ChannelId> {
        match self.hops.called_in((port, from, local_id))? {
            Ok(called) => Some(called),
            Err(end) => self.end_across(end).map(|end| end.key.channel),
        }
    }

    /// The same of a packet that this station sends to another one, by that one's local id.
    pub fn channel_out(&self, port: PortId, to: MacAddr, local_id: u16) -> Option<ChannelId> {
        self.hops.called_out((port, to, local_id))
    }
}
