//! Events of a node's channels.

use super::{Shortage, Stated};
use crate::io::ChannelId;
use crate::segment::Excluded;
use rota_admission::Refusal;
use rota_contract::{CloseCause, Granted, NodeId, Tally, Withdrawn};
use rota_units::Span;
use rota_wire::{MacAddr, RcapDenied};

/// An event of a channel, for the parent.
#[derive(Clone, Debug)]
pub enum ChannelEvent {
    /// The channel is reserved; units may be sent.
    Opened {
        /// Which.
        channel: ChannelId,
        /// Its label on the wire.
        label: u16,
        /// The promise.
        granted: Granted,
    },
    /// A probe would be granted this contract; it has ended, and its receiver listens again.
    Probed {
        /// Which.
        channel: ChannelId,
        /// The promise.
        granted: Granted,
    },
    /// Admission refused it.
    Refused {
        /// Which.
        channel: ChannelId,
        /// Which test, by how much, and what would fit.
        refusal: Refusal,
    },
    /// A node on the way across segments denied it.
    Denied {
        /// Which.
        channel: ChannelId,
        /// Which node and test, by how much, and the nearest request that fits.
        denied: RcapDenied,
        /// The name of the node, if it is known.
        name: Option<String>,
        /// The hop for which nothing is guaranteed, where that is why.
        withdrawn: Option<Withdrawn>,
        /// The partition that refused, `rest` for what is in none; `None` where no partition did.
        partition: Option<String>,
    },
    /// A receiver asks an invitee for a channel of its service. The program opens the channel
    /// by naming the invitation, for which it has a second.
    Invited {
        /// The parent's number of the invitee, which is asked no more.
        invitee: u64,
        /// The receiver's node.
        receiver: NodeId,
        /// Its name, if it is known.
        name: Option<String>,
        /// The receiver's number of the invitation.
        number: ChannelId,
        /// The service.
        service: u16,
        /// The receiver's channel of which this one is the way back; none where there is none.
        pair: ChannelId,
    },
    /// The source that a listener has asked will send nothing; the listener is over.
    NotInvited {
        /// The listener.
        listener: u64,
        /// Which node and test, and the numbers of a denied request.
        denied: RcapDenied,
        /// The name of the node, if it is known.
        name: Option<String>,
    },
    /// A channel that is sent here has lost the path that was reserved for the failure of the one in use.
    SecondLost {
        /// Which.
        channel: ChannelId,
        /// Why.
        cause: CloseCause,
        /// The node that failed, or the one that saw it.
        node: NodeId,
        /// Its name, if it is known.
        name: Option<String>,
    },
    /// Its receiver has no memory for it; [`ChannelEvent::Closed`] follows.
    NoMemory {
        /// Which.
        channel: ChannelId,
        /// The unit that was asked for.
        unit_octets_max: u32,
        /// The memory in numbers, as the receiver's node states them.
        short: Shortage,
    },
    /// A sender asks for a channel to a service with a listener, and waits for [`crate::Node::accept`].
    Incoming {
        /// This node's name for it.
        channel: ChannelId,
        /// Its sender's name for it, which people see at both ends.
        remote: ChannelId,
        /// Its label on the wire.
        label: u16,
        /// The program that takes it; it takes no second one.
        listener: u64,
        /// The sender's node; [`NodeId::UNKNOWN`] where its announcement has not been heard.
        peer: NodeId,
        /// The contract asked for; the bound is known once the channel is reserved.
        granted: Granted,
        /// Units of the channels that this one continues, as its sender states; 0 for a new stream.
        before: u64,
    },
    /// The sender has its reservation.
    IncomingOpened {
        /// Which.
        channel: ChannelId,
        /// The promise.
        granted: Granted,
    },
    /// It has another contract from now on; told at both ends.
    Changed {
        /// Which.
        channel: ChannelId,
        /// The promise from now on.
        granted: Granted,
    },
    /// It was not granted more, and keeps its contract.
    NotChanged {
        /// Which.
        channel: ChannelId,
        /// Which test, by how much, and what would be granted.
        refusal: Refusal,
    },
    /// Another contract of a channel across segments was denied: it keeps the one that it has.
    ChangeDenied {
        /// Which.
        channel: ChannelId,
        /// Which node and test, by how much, and the nearest request that fits.
        denied: RcapDenied,
        /// The name of the node that denied, if it is known.
        name: Option<String>,
        /// The partition that refused, as in [`ChannelEvent::Denied`].
        partition: Option<String>,
        /// Of several receivers the one that it was denied on the way to.
        to: Option<String>,
    },
    /// The path of a channel across segments has failed, and its source looks for another one. No unit leaves
    /// or comes until [`ChannelEvent::Rerouted`] or [`ChannelEvent::Closed`].
    Rerouting {
        /// Which.
        channel: ChannelId,
        /// Why.
        cause: CloseCause,
        /// The node that failed, or the one that saw it.
        node: NodeId,
        /// Its name, if it is known.
        name: Option<String>,
    },
    /// It goes on by another path. A sender's units that were offered and have not left whole are to be
    /// offered again, but for one that had begun to leave: it is lost.
    Rerouted {
        /// Which.
        channel: ChannelId,
        /// The promise from now on.
        granted: Granted,
    },
    /// There is no other path; [`ChannelEvent::Closed`] follows, with the cause for which one was looked for.
    NotRerouted {
        /// Which.
        channel: ChannelId,
        /// The newest refusal.
        denied: RcapDenied,
        /// The name of the node that refused, if it is known.
        name: Option<String>,
    },
    /// It is over.
    Closed {
        /// Which.
        channel: ChannelId,
        /// Why.
        cause: CloseCause,
        /// The units of the channel as its sender states them, where known.
        stated: Option<Stated>,
        /// The counts of its units, as the receiver's node counted them; at the sender as last reported.
        tally: Tally,
        /// The listener that accepted it, if a receiving channel never opened: it is to
        /// [`crate::Node::listen_again`], or to be taken back.
        listener: Option<u64>,
        /// True if its sender may state its units later ([`ChannelEvent::Afterwards`]).
        awaits: bool,
    },
    /// The other station of a channel was silent when the channel ended, and both nodes have counted the end
    /// now.
    Afterwards {
        /// Which.
        channel: ChannelId,
        /// The units of the channel, as its sender's node has stated them.
        stated: Stated,
        /// The counts of these units.
        tally: Tally,
        /// True at its sender.
        sending: bool,
    },
    /// A receiver of a channel across segments that has several is in, or is not.
    Receiver {
        /// Which channel.
        channel: ChannelId,
        /// The receiver's node.
        to: NodeId,
        /// Its name, if it is known.
        name: Option<String>,
        /// The change.
        change: ReceiverChange,
    },
    /// The receiver of a channel reports its counts, because something went wrong.
    Told {
        /// Which.
        channel: ChannelId,
        /// The counts.
        tally: Tally,
    },
    /// A stranger uses a station's address, maybe this one's.
    Contested {
        /// Which.
        mac: MacAddr,
        /// No station hears the stranger; only missing frames show it.
        astray: bool,
    },
    /// A station is left out of the token for a time: it kept the token, or sent outside its slots, again
    /// and again.
    Struck(Excluded),
    /// The mode of the segment changed.
    ModeChanged,
    /// A station was found or lost, or has another number.
    MembersChanged,
    /// A station does not take part.
    Refusal {
        /// Its address; if this station is the refused one, the address of the station that refused it.
        mac: rota_wire::MacAddr,
        /// Why.
        why: rota_wire::Verdict,
        /// True if this station is the refused one.
        here: bool,
    },
}

/// The change of one of several receivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiverChange {
    /// It receives from now on.
    Joined {
        /// The promise to it.
        bound: Span,
    },
    /// A node of its way has denied it, and the others receive.
    Refused {
        /// Which node and test, by how much, and the nearest request that fits.
        denied: RcapDenied,
        /// The name of that node, if it is known.
        by: Option<String>,
    },
    /// It receives no more, and the others do.
    Left {
        /// Why.
        cause: CloseCause,
        /// The counts of its units, as it last told.
        tally: Tally,
    },
}
