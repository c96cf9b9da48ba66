//! Why an operation of link control was not accepted.

use super::{Address, BROADCAST, MESSAGE_OCTETS_MAX};
use crate::node::{NodeError, OpenError};
use rota_contract::CloseCause;
use rota_shm::MemoryError;

/// Why an operation was not accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LlcError {
    /// Odd, zero, taken by others on real networks, or SNAP's.
    #[error(
        "socket {0} cannot be used; sockets are even numbers from 2 to 254 without 66, 170, 224, 240, 254"
    )]
    InvalidSocket(u8),
    /// Somebody on this station has it open.
    #[error("socket {0} is open already on this station")]
    DuplicateSocket(u8),
    /// More than were asked for at the beginning.
    #[error("{0} sockets are open, as many as were asked for; close one, or ask for more at the beginning")]
    TooManySockets(u16),
    /// Every slot holds a message. A slot is free when its message and all older ones are over.
    #[error("all {0} slots of this socket hold messages; wait for the oldest one to be over, then try again")]
    Busy(u32),
    /// Longer than a message may be.
    #[error("a message of {octets} octets is too large; at most {MESSAGE_OCTETS_MAX} can be sent")]
    PacketTooLarge {
        /// Its length.
        octets: usize,
    },
    /// Longer than the channel that is reserved to there carries.
    #[error("a message of {octets} octets is too large; the channel reserved to there carries {octets_max}")]
    LargerThanReserved {
        /// Its length.
        octets: usize,
        /// The reserved size.
        octets_max: u32,
    },
    /// Admission did not accept the channel, or there is nobody to take it.
    #[error(transparent)]
    NotReserved(#[from] OpenError),
    /// No station of this segment, or none with a name, has the node address.
    #[error("no other station that the node of this one knows has the node address {0}")]
    NoStation(u8),
    /// A channel leads from one station to another one.
    #[error("a channel leads to one other station; node address {0} is {which}", which = reached(*.0))]
    NotOneStation(u8),
    /// To there this socket has a channel already.
    #[error("this socket has a channel to {}@{} already; release it first", .0.socket, .0.node)]
    ReservedAlready(Address),
    /// Admission was not asked for it, or has not accepted it.
    #[error("there is no channel to {}@{} yet; admission must accept it first", .0.socket, .0.node)]
    NotAccepted(Address),
    /// The channel was asked for by another socket, whose number its messages would bear.
    #[error("the reservation belongs to socket {0}")]
    OtherSocket(u8),
    /// Messages on a channel are not acknowledged.
    #[error("a message on a reserved channel is not acknowledged; send it without, or release the channel")]
    AckOnReserved,
    /// The channel has ended, and what would go on it goes nowhere until it is released.
    #[error("the channel to {}@{} has ended: {}; release it", .to.socket, .to.node, .cause.sentence())]
    ReservationEnded {
        /// Where it led.
        to: Address,
        /// Why.
        cause: CloseCause,
    },
    /// The operating system gives no descriptor or thread.
    #[error("the system refuses what a reserved channel needs: {0}")]
    System(std::io::Error),
    /// A priority above 7.
    #[error("priority {0} does not exist; 0 to 7 do")]
    Priority(u8),
    /// The node of this station: not there, gone, or of another version.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The socket's memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

fn reached(node: u8) -> &'static str {
    if node == BROADCAST { "all of them" } else { "this one" }
}
