//! A receiver that has no memory for a channel, or does not want it.

use super::{ChannelEvent, Channels, Incoming, Tells, Want};
use crate::io::ChannelId;
use rota_contract::CloseCause;
use rota_wire::{Signal, Verb};

/// The memory that a channel would take at its receiver. All zero if the receiver's node does not state it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortage {
    /// Octets of memory that the channel would take there.
    pub asked_octets: u64,
    /// Octets of memory that are left there.
    pub left_octets: u64,
    /// The largest unit for which there would be memory; 0 for none.
    pub room_octets: u32,
}

impl Channels {
    /// Refuses a channel for which the receiver has no memory; its sender gets this cause and the numbers.
    pub(crate) fn decline(&mut self, id: ChannelId, short: Shortage) {
        let declined = |channel: &Incoming| channel.id == id && !channel.opened;
        let Some(at) = self.incoming.iter().position(declined) else { return };
        let channel = &self.incoming[at];
        let refuse = Signal {
            code: CloseCause::NoMemory.code(),
            unit_octets_max: short.room_octets,
            bound_ns: short.asked_octets,
            final_unit: short.left_octets,
            ..Signal::new(Verb::Refuse, channel.remote, channel.label)
        };
        self.wants.push(Want::Signal { to: channel.hop, signal: refuse });
        self.end_incoming(at, CloseCause::NoMemory, None, Tells::Nobody);
    }

    /// Refuses a channel that its program does not want; its sender is told so.
    pub(crate) fn deny(&mut self, id: ChannelId) {
        let refused = |channel: &Incoming| channel.id == id && !channel.accepted;
        let Some(at) = self.incoming.iter().position(refused) else { return };
        let channel = &self.incoming[at];
        let code = CloseCause::ReceiverClosed.code();
        let refuse = Signal { code, ..Signal::new(Verb::Refuse, channel.remote, channel.label) };
        self.wants.push(Want::Signal { to: channel.hop, signal: refuse });
        self.end_incoming(at, CloseCause::ReceiverClosed, None, Tells::Nobody);
    }

    /// Tells the numbers of such a refusal, before the end of the channel is told.
    pub(super) fn tell_shortage(&mut self, signal: &Signal) {
        let short = Shortage {
            asked_octets: signal.bound_ns,
            left_octets: signal.final_unit,
            room_octets: signal.unit_octets_max,
        };
        let channel = self.outgoing.iter().find(|channel| channel.id == signal.channel);
        if let Some(channel) = channel
            && crate::cause::from_wire(signal.code) == CloseCause::NoMemory
            && short != Shortage::default()
        {
            let (id, unit_octets_max) = (channel.id, channel.request.traffic.unit_octets_max);
            self.events.push_back(ChannelEvent::NoMemory { channel: id, unit_octets_max, short });
        }
    }
}
