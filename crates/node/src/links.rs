//! Links between neighbouring nodes: messages of up to 64 KiB, in order, over TCP under TLS 1.3 with pinned
//! keys of both sides. The meaning of a message is the business of the link's user.
//!
//! ```text
//!   user's thread ── send ──► orders ──► links' thread ──► one connection to each neighbour
//!        ◄── wait_fd, event ── events ◄──────┘
//! ```
//! The thread of the links blocks on nothing but `poll`. It has a part in no frame, so that the arithmetic
//! of TLS delays no token. Of each pair of neighbours the node with the smaller id dials, and dials again
//! after a random pause for as long as there is no link.

mod connection;
mod door;
mod frame;
pub mod fuzz;
mod greeting;
mod identity;
mod link;
mod neighbours;
mod run;
mod tls;
mod why;
mod words;

pub use door::{LinkEvent, LinkInfo, LinkStage, Links, LinksInfo, LinksView, SendError};
pub use frame::{FrameError, MESSAGE_OCTETS_MAX};
pub use identity::{NodeKey, NodeKeyError, NotAKey, PublicKey};
pub use neighbours::{NEIGHBOURS_MAX, Neighbour, NeighboursError, read as read_neighbours};
pub use run::{LinksThread, PENDING_MAX};
pub use why::{DownCause, Refusal};

use rota_contract::NodeId;
use std::io;
use std::net::{SocketAddr, TcpListener};

/// The settings of the links of a node.
#[derive(Debug)]
pub struct LinkSettings {
    /// This node.
    pub node: NodeId,
    /// Its key pair.
    pub key: NodeKey,
    /// Its neighbours.
    pub neighbours: Vec<Neighbour>,
    /// Where the neighbours with smaller ids find it.
    pub listener: TcpListener,
}

/// Why links cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum LinksError {
    /// The address is not to be had.
    #[error("neighbours cannot be awaited at {address}: {source}; name another with --rcap-listen")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The answer.
        source: io::Error,
    },
    /// The key cannot sign.
    #[error("the key of this node cannot be used for TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The kernel refuses.
    #[error("the links to neighbours cannot be kept: {0}")]
    Io(#[from] io::Error),
}

/// Listens for neighbours. To be called before the process gives its rights away.
///
/// # Errors
/// The address is in use, or none of this host.
pub fn listen(address: SocketAddr) -> Result<TcpListener, LinksError> {
    let listener = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        // Connections that are accepted inherit it, and the answers before that have it, too.
        connection::mark(&listener);
        Ok(listener)
    });
    listener.map_err(|source| LinksError::Listen { address, source })
}

#[cfg(test)]
mod tests;
