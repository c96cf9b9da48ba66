//! Waiting for something on a channel's board without ever waiting for a dead node.

use rota_contract::CloseCause;
use rota_shm::{BoardView, ChannelState, Waited, max_slice};
use rota_units::Span;

use crate::now;
use crate::session::Session;

/// Unlike a node that was stopped, one that died could not say so on the channel's board.
pub(crate) const NODE_GONE: &str = "the node of this station is gone, and the channel with it; start \
                                    'rota node' here, then open the channel again";

/// Why a wait ended without what it was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The time is over.
    #[error("nothing came in time")]
    TimedOut,
    /// The channel has ended.
    #[error("the channel has ended: {}", .0.sentence())]
    Closed(CloseCause),
    /// The node of this station is gone, and the channel with it.
    #[error("{NODE_GONE}")]
    NodeGone,
}

/// Looks again and again until there is something, sleeping in between.
pub(crate) fn wait_for<T>(
    board: &BoardView,
    session: &Session,
    timeout: Span,
    mut look: impl FnMut() -> Option<T>,
) -> Result<T, WaitError> {
    let give_up = now() + timeout;
    loop {
        // Event and state are read before looking: what comes after them wakes us, and nothing that came
        // before the end is missed.
        let seen = board.event();
        let state = board.state();
        if let Some(found) = look() {
            return Ok(found);
        }
        if let ChannelState::Closed(cause) = state {
            return Err(WaitError::Closed(cause));
        }
        let left = give_up.since(now());
        if left == Span::ZERO {
            return Err(WaitError::TimedOut);
        }
        let waited = board.wait(seen, left.min(max_slice()));
        if waited == Waited::TimedOut && session.is_gone() {
            // A node that was stopped in good order has said so before it went.
            let why = match board.state() {
                ChannelState::Closed(cause) => WaitError::Closed(cause),
                _ => WaitError::NodeGone,
            };
            return look().ok_or(why);
        }
    }
}
