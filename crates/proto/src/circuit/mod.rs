//! A reliable virtual circuit over datagrams that may be lost, doubled and overtaken: the paper's
//! alternating-bit service (SHIPNET-3-4), repaired. One [`Sender`], one [`Receiver`], one message on its way
//! at a time.
//!
//! **What is promised.** While neither end restarts, every message is delivered exactly once and in order.
//! Across a restart that depends on what the program keeps, for no protocol can know what a dead program had
//! done:
//!
//! * Ends that are resumed with their [`Mark`] lose, double and reorder nothing. The receiver's program keeps
//!   the mark that comes with a message together with the message's effect, and confirms it then; the
//!   sender's program keeps the number of the first message that was not confirmed, and offers that again.
//! * A receiver that begins anew knows nothing. The one message that was on its way is then reported to the
//!   sender as [`Fate::InDoubt`]: delivered once or not at all, never twice, and never silently.
//! * A sender that begins anew takes nothing up again: of its former life's last message the receiver may
//!   have seen nothing. The first message of the new life says so ([`Taken::begins`]).
//!
//! Departures from the paper:
//! * Its bit is the lowest bit of a 64-bit number, so that an old duplicate is no news even where a switch
//!   lets frames overtake.
//! * A late duplicate of an acknowledgement is ignored, where `sendrel` ended on it (SHIPNET-F1).
//! * Incarnations: the receiver names an *epoch* for each life of a sender that it hears in a life of its
//!   own, and takes messages under that epoch only (SHIPNET-F2).
//! * One circuit has one priority; that is kept by whoever sends the packets (SHIPNET-F3).
//! * It is the program's acceptance that is acknowledged, not the arrival.

mod pace;
mod receiver;
mod sender;

pub use pace::Pace;
pub use receiver::{Receiver, Taken};
pub use rota_wire::{CIRCUIT_HEADER_OCTETS, CircuitHeader, CircuitVerb};
pub use sender::{Fate, Sender, SenderOutput};

/// How far a circuit has come, for a program that keeps it where a restart finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The sender's incarnation.
    pub sender: u64,
    /// Messages of it that are done with; also the number of the next one.
    pub number: u64,
}
