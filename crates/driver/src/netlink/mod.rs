//! Requests to the kernel's network configuration, in the few words that Rota needs.
//!
//! Links and addresses would fit a foreign crate, but none knows TBF, HTB, u32 or the nft `fwd` expression;
//! with those written by hand, the rest is shorter than the glue would be.

mod link;
mod message;
mod queue;
mod socket;

pub use link::{Link, LinkIndex, Veth};
pub(crate) use message::{
    Message, NLM_F_APPEND, NLM_F_CREATE, NLM_F_REQUEST_ACK, NLM_F_REQUEST_DUMP, attributes, u32_at,
};
pub use queue::{Class, Handle, Word};
pub(crate) use socket::Socket;
pub use socket::{NetlinkError, Route};
