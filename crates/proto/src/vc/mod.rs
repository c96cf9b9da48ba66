//! Circuits of the native-mode transport (`specs/transport.md`): the machines of their two ends.
//!
//! A circuit is simplex: a [`Source`] sends, a [`Sink`] receives, and a [`Listener`] answers handshakes.
//! Each is a plain value, to be used as all machines are: *handle one thing, poll until drained, sleep until
//! the deadline.* `poll` has two halves, since a TPDU needs a grant of the port and an event does not:
//! `event` says what the program is to hear, `wants` how long the next TPDU is that may leave now, and
//! `transmit` writes it. Nothing is allocated behind the handshake.
//!
//! **What is promised.** With error control, what the sink's program takes is a beginning of what the
//! source's program wrote: none lost, doubled, reordered or altered, as long as the frames that carry TPDUs
//! are proven. An end in order ([`End::Finished`]) says at both ends that all of it was taken. After another
//! end the source knows what was certainly taken ([`Source::counts_taken`]); what is behind that is in doubt.
//! Without error control whole messages arrive, or octets of a stream. Losses are counted and told
//! ([`Sink::losses`], [`Sink::gap`]), and an end in order says at both ends what was sent and what was taken.
//! An end that begins anew knows nothing of its circuits, and their other ends are told so.
//!
//! Parts: [`Smart`] says what to send again, [`Aimd`], [`PacketPair`] and [`LeakyBucket`] say when something
//! may leave, [`Outbox`], [`Inbox`] and [`LooseInbox`] have the octets. The two halves of a guaranteed
//! circuit, which a channel carries, are [`CarriedSource`] and [`CarriedSink`].

mod aimd;
mod carried;
mod flow;
mod leaky_bucket;
mod listener;
mod loose;
mod packet_pair;
mod segment;
mod serials;
mod sink;
mod smart;
mod source;
mod trip;

pub use aimd::Aimd;
pub use carried::{
    CARRIED_HEAD_OCTETS, CARRIED_OCTETS_MAX, CARRIED_WINDOW, Carried, CarriedHead, CarriedSink, CarriedSource,
};
pub use leaky_bucket::LeakyBucket;
pub use listener::{Listener, ListenerLimits, Offer};
pub use loose::{LooseInbox, Losses};
pub use packet_pair::{PacketPair, Trips};
pub use segment::{Arrival, Inbox, Outbox, Piece, Written};
pub use sink::{Sink, SinkEvent};
pub use smart::{Expiry, Learned, Smart};
pub use source::{Request, Source, SourceEvent, Unfinished, Unsound};
pub use trip::{Pace, TRIES_MAX};

use rota_contract::{CircuitStage, CircuitWait};
use rota_wire::{Refusal, ResetCause, Tpdu, TpduBody};

/// The largest window, in TPDUs.
pub const WINDOW_MAX: u32 = 16_384;

/// The counts of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// TPDUs, each once.
    pub tpdus: u64,
    /// Whole messages; 0 in a stream.
    pub messages: u64,
}

/// How one end stands at a moment, to look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// How far it is.
    pub stage: CircuitStage,
    /// The thing that its next step waits for.
    pub waits_for: CircuitWait,
    /// TPDUs that may be on their way; of a receiver those for which it has room.
    pub window: u32,
    /// TPDUs on their way; of a receiver those that its program has yet to take.
    pub flying: u32,
    /// Octets of data so far, each once.
    pub octets: u64,
}

/// How a circuit has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// In order: the receiver's program has taken all that was sent and, without error control, not lost.
    Finished {
        /// The counts of this end.
        own: Counts,
        /// Those of the other one; with error control the same.
        other: Counts,
    },
    /// In order, because the receiver's program wanted no more.
    Stopped {
        /// The counts of the other end: taken by a receiver, sent by a sender.
        other: Counts,
    },
    /// The handshake was refused.
    Refused(Refusal),
    /// The other end has ended it.
    Reset(ResetCause),
    /// The listener's program did not take it, for a reason of its own.
    Declined(u32),
    /// Nobody has answered the handshake.
    NoAnswer,
    /// The other end has been silent for too long, or has acknowledged nothing in eight time-outs.
    Silent,
    /// This end's program gave it up.
    Aborted,
    /// The other end broke a rule.
    Violated,
}

/// Why a deadline is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// A step of the handshake is sent again.
    Handshake,
    /// SMART looks whether the head is missing.
    Probe,
    /// SMART sends again what has not arrived.
    TimeOut,
    /// The leaky bucket has enough for the next TPDU, or it is time for the next pair: until then the sender
    /// sleeps.
    Bucket,
    /// The other end is asked where it is.
    Ask,
    /// A close is sent again.
    Close,
    /// The other end has been silent for too long.
    Silence,
}

/// The answer of a node to a TPDU of a circuit that it does not know.
pub const fn stranger(tpdu: &Tpdu) -> Option<Tpdu> {
    match tpdu.body {
        TpduBody::Data { .. }
        | TpduBody::Ack { .. }
        | TpduBody::Ask
        | TpduBody::Close { .. }
        | TpduBody::Closed { .. } => {
            let body = TpduBody::Reset { why: ResetCause::Unknown };
            Some(Tpdu { to: 0, circuit: tpdu.circuit, body })
        }
        // The third step belongs to a listener, and the others are answers.
        _ => None,
    }
}
