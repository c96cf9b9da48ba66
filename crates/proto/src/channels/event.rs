//! What a node tells of its channels.

use super::Contract;
use crate::cause::CloseCause;
use crate::io::ChannelId;
use rota_admission::Refusal;
use rota_units::Span;
use rota_wire::{Foul, MacAddr, Tally};

/// What the parent learns about its channels.
#[derive(Clone, Debug)]
pub enum ChannelEvent {
    /// The channel is reserved; units may be sent.
    Opened {
        /// Which.
        channel: ChannelId,
        /// Its label on the wire.
        label: u16,
        /// What was promised.
        contract: Contract,
    },
    /// Admission refused it.
    Refused {
        /// Which.
        channel: ChannelId,
        /// Which test, by how much, and what would fit.
        refusal: Refusal,
    },
    /// Somebody would send to a service that is listened to, and waits for [`crate::Node::accept`].
    Incoming {
        /// This node's name for it.
        channel: ChannelId,
        /// Its sender's name for it, which people see at both ends.
        remote: u64,
        /// Its label on the wire.
        label: u16,
        /// The program that takes it; it takes no second one.
        listener: u64,
        /// Who sends.
        from: MacAddr,
        /// What it will carry; the bound is known once the channel is reserved.
        contract: Contract,
    },
    /// The sender has its reservation.
    IncomingOpened {
        /// Which.
        channel: ChannelId,
        /// What was promised.
        contract: Contract,
    },
    /// It carries units of another size from now on; told at both ends.
    Changed {
        /// Which.
        channel: ChannelId,
        /// What is promised from now on.
        contract: Contract,
    },
    /// It was not granted more, and keeps its contract.
    NotChanged {
        /// Which.
        channel: ChannelId,
        /// Which test, by how much, and what would be granted.
        refusal: Refusal,
    },
    /// It is over.
    Closed {
        /// Which.
        channel: ChannelId,
        /// Why.
        cause: CloseCause,
        /// How many units were sent, where known.
        final_unit: Option<u64>,
        /// What came, as the receiver's node counted it; of a sender as far as it was told.
        tally: Tally,
        /// Who took it, where a receiving one never opened: it is to [`crate::Node::listen_again`], or to be
        /// taken back.
        listener: Option<u64>,
    },
    /// The receiver of a channel says what has come: something went wrong.
    Told {
        /// Which.
        channel: ChannelId,
        /// What has come.
        tally: Tally,
    },
    /// A stranger uses a station's address, maybe this one's.
    Contested {
        /// Which.
        mac: MacAddr,
    },
    /// A station is left out of the token for a time: it kept the token, or sent outside its slots, again
    /// and again.
    Struck {
        /// Which.
        mac: MacAddr,
        /// For what.
        why: Foul,
        /// Whether it is this one.
        here: bool,
        /// When it may come back, from now on.
        wait: Span,
    },
    /// The mode of the segment changed.
    ModeChanged,
    /// A station was found or lost, or has another number.
    MembersChanged,
    /// A station does not take part.
    Refusal {
        /// Its address; where this station is refused, who said so.
        mac: rota_wire::MacAddr,
        /// Why.
        why: rota_wire::Verdict,
        /// Whether this station is the refused one.
        here: bool,
    },
}
