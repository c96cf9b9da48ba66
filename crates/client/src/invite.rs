//! Channels that their receivers ask for, and pairs of channels, one in each direction.

use rota_contract::{ChannelId, NodeId};
use rota_shm::control::{ControlName, InvitationInfo, Reply, SocketError};
use rota_units::Span;
use std::os::fd::{AsFd, BorrowedFd};

use crate::node::{Node, NodeError, OpenError, OpenRequest, answer_by};
use crate::now;
use crate::receive::{AcceptError, Listener, RecvChannel};
use crate::send::SendChannel;
use crate::session::{Deadline, Session};

/// The node of a sender on one segment may be unknown when its channel comes, and not for long: it has just
/// asked over a session with this one.
const KNOWN_WITHIN: Span = Span::from_millis(500);

/// A receiver that asks for a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Invitation {
    /// The receiver's node.
    pub node_id: NodeId,
    /// Its name; its id where no name is known.
    pub name: String,
    /// The service.
    pub service: u16,
    /// The channel that this receiver sends, and of which the wanted one is the way back; none where it wants
    /// this one only.
    pub pair: Option<ChannelId>,
    info: InvitationInfo,
}

impl Invitation {
    /// True if it asks for the way back of this channel of that node. Any node may name any number.
    fn is_way_back(&self, from: NodeId, channel: ChannelId) -> bool {
        self.pair == Some(channel) && self.node_id == from && from.is_known()
    }
}

/// A program that waits to be asked for a channel. Dropping it refuses a receiver that has asked and has no
/// answer yet.
pub struct Invitee {
    control: ControlName,
    session: Session,
    service: u16,
}

impl Invitee {
    pub(crate) fn new(control: ControlName, session: Session, service: u16) -> Self {
        Self { control, session, service }
    }

    /// Waits until a receiver asks. It asks once: an invitee is for one channel.
    ///
    /// # Errors
    /// [`AcceptError`]; after [`AcceptError::TimedOut`] one may go on.
    pub fn invited(&mut self, timeout: Span) -> Result<Invitation, AcceptError> {
        let give_up = now() + timeout;
        loop {
            match self.session.next(give_up.since(now())) {
                Ok(message) => {
                    if let Reply::Invited { invitation: info, name, service, pair } = message.body {
                        let pair = Some(pair).filter(|pair| pair.is_some());
                        return Ok(Invitation { node_id: info.receiver, name, service, pair, info });
                    }
                }
                Err(SocketError::TimedOut(_)) if now() < give_up => {}
                Err(SocketError::TimedOut(_)) => return Err(AcceptError::TimedOut { service: self.service }),
                Err(SocketError::Gone) => return Err(AcceptError::NodeGone),
                Err(other) => return Err(AcceptError::Socket(other)),
            }
        }
    }

    /// Opens the channel that a receiver has asked for, within a second of its asking. Traffic and terms are
    /// those of `request`; whom and which service it leads to the invitation says. Where the channel is
    /// refused the receiver hears of the same refusal.
    ///
    /// # Errors
    /// As [`Node::open`]; the receiver may wait no more.
    pub fn open(self, invitation: &Invitation, request: &OpenRequest) -> Result<SendChannel, OpenError> {
        let (to, service) = (invitation.name.clone(), invitation.service);
        let request = OpenRequest { to, service, ..request.clone() };
        answer_by(&self.control, &request, (0, Some(invitation.info)), Deadline::NONE)
    }
}

impl AsFd for Invitee {
    /// Readable when a receiver has asked, or the node is gone.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.session.as_fd()
    }
}

/// A channel in each direction between two programs.
pub struct Duplex {
    /// The one that this program sends.
    pub send: SendChannel,
    /// The one that it receives.
    pub recv: RecvChannel,
}

/// Why there is no channel in each direction. Neither is open then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DuplexError {
    /// The way there was not opened.
    #[error("the way there: {0}")]
    There(#[source] OpenError),
    /// The way back was not opened; the way there, which was, is released.
    #[error("the way back: {0}")]
    Back(#[source] AcceptError),
    /// The way back cannot be asked for; the way there is released.
    #[error("the way back: {0}")]
    Node(#[from] NodeError),
}

impl Node {
    /// Opens a channel as [`Node::open`] does, and one back from the same station and service, for which a
    /// program there waits ([`Node::listen_duplex`], or a [`Listener`] and an [`Invitee`] of its own). Either
    /// both are open then or none.
    ///
    /// # Errors
    /// [`DuplexError`] names the direction that failed, and why.
    pub fn open_duplex(&self, request: &OpenRequest, buffers: u16) -> Result<Duplex, DuplexError> {
        let mut send = self.open(request).map_err(DuplexError::There)?;
        let listener = self.invite_back(&request.to, request.service, buffers, send.id());
        let came = listener
            .map_err(DuplexError::Node)
            .and_then(|mut listener| listener.accept(request.timeout).map_err(DuplexError::Back));
        match came {
            Ok(recv) => Ok(Duplex { send, recv }),
            Err(error) => {
                // In good order: the program there hears of an end, not of a death.
                _ = send.finish(Span::ZERO);
                Err(error)
            }
        }
    }

    /// Waits for programs that open a channel in each direction to `service`.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn listen_duplex(&self, service: u16, buffers: u16) -> Result<DuplexListener, NodeError> {
        let (invitee, listener) = (self.invitee(service)?, self.listen(service, None, buffers)?);
        Ok(DuplexListener { listener, invitee })
    }
}

/// Takes one channel in each direction.
pub struct DuplexListener {
    listener: Listener,
    invitee: Invitee,
}

impl DuplexListener {
    /// Waits for a channel to come, and opens the way back with the traffic and terms of `back`.
    ///
    /// # Errors
    /// [`DuplexError::Back`] for the channel that comes, [`DuplexError::There`] for the one that is opened:
    /// the other end has neither then. [`DuplexError::Node`] where another channel was asked for.
    pub fn accept(mut self, back: &OpenRequest, timeout: Span) -> Result<Duplex, DuplexError> {
        let deadline = Deadline::after(timeout);
        let recv = self.listener.accept(timeout).map_err(DuplexError::Back)?;
        let invitation = self.invitee.invited(deadline.left()).map_err(DuplexError::Back)?;
        if !invitation.is_way_back(recv.sender(KNOWN_WITHIN.min(deadline.left())), recv.id()) {
            let other = format!("{} asked for a channel that is no way back of this one", invitation.name);
            return Err(DuplexError::Node(NodeError::NotThere(other)));
        }
        let send = self.invitee.open(&invitation, back).map_err(DuplexError::There)?;
        Ok(Duplex { send, recv })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The node was not looked at: any one that named the number got the way back.
    #[test]
    fn the_way_back_goes_to_the_node_that_sends_and_to_no_other() {
        let (sender, other, channel) = (NodeId(7), NodeId(8), ChannelId(70));
        let invitation = |node_id, pair| Invitation {
            node_id,
            name: "n4".into(),
            service: 3,
            pair,
            info: InvitationInfo { receiver: node_id, number: ChannelId(1) },
        };
        assert!(invitation(sender, Some(channel)).is_way_back(sender, channel));
        // One that is not known yet: the number alone was enough.
        assert!(!invitation(sender, Some(channel)).is_way_back(NodeId::UNKNOWN, channel));
        assert!(!invitation(NodeId::UNKNOWN, Some(channel)).is_way_back(NodeId::UNKNOWN, channel));
        for not in [(other, Some(channel)), (sender, Some(ChannelId(71))), (sender, None)] {
            assert!(!invitation(not.0, not.1).is_way_back(sender, channel), "{not:?}");
        }
    }
}
