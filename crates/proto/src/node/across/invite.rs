//! Channels that a receiver asks for (`rcap/invite.rs`), also of a node of this one's own segment: the
//! request that answers goes by RCAP wherever the source is.

use super::super::Node;
use super::super::peers::NotFound;
use crate::channels::{ChannelEvent, Listener, RequestError, Sender};
use crate::io::{ChannelId, PortId};
use crate::rcap::{ChannelKey, Invitation, RcapCallError, RcapDenied};
use rota_contract::NodeId;
use rota_units::Instant;
use rota_wire::MacAddr;

impl Node {
    /// Listens to `service` for one channel of the node of that name, and asks that node's programs for it.
    /// [`ChannelEvent::NotInvited`] tells if there will be none.
    ///
    /// # Errors
    /// [`NotFound`]: no node is called so, or more than one.
    pub fn invite(
        &mut self,
        now: Instant,
        (listener, service): (u64, u16),
        from: &str,
        pair: ChannelId,
    ) -> Result<(), NotFound> {
        let source = self.one_called(from)?;
        // None has this address: the node alone is meant, by whatever station.
        let sender = Sender::Station { mac: MacAddr([0; 6]), node: source };
        self.listen(Listener { id: listener, service, from: Some(sender) });
        let number = self.lines[0].channels.next_id();
        let invitation = Invitation { source, service, listener, pair };
        let asked = self.tell_across(now, |across| across.rcap.invite(now, number, invitation));
        if let Some(Err(error)) = asked {
            self.unlisten(listener);
            return Err(RequestError::Across(error).into());
        }
        Ok(())
    }

    /// Waits for one receiver that asks for a channel of this service: a program of this user.
    ///
    /// # Errors
    /// This node takes no part in channels across segments, or too many wait.
    pub fn add_invitee(&mut self, invitee: u64, service: u16, uid: u32) -> Result<(), RequestError> {
        let across = self.across.as_mut().ok_or(RequestError::NoNeighbours)?;
        across.rcap.add_invitee(invitee, service, uid).map_err(RequestError::Across)
    }

    /// It waits no more. A receiver that has asked, and has no answer, is refused.
    pub fn remove_invitee(&mut self, now: Instant, invitee: u64) {
        self.tell_across(now, |across| across.rcap.remove_invitee(now, invitee));
    }

    /// The one node of that name to which a way is known, on this segment or beyond.
    ///
    /// # Errors
    /// [`NotFound`].
    pub fn one_called(&self, called: &str) -> Result<NodeId, NotFound> {
        if self.across.is_none() {
            return Err(RequestError::NoNeighbours.into());
        }
        if self.medium().name() == called {
            return Err(RequestError::Across(RcapCallError::OwnNode).into());
        }
        // Of two nodes of one name none is meant.
        if let [node] = self.called_beyond(called)[..] {
            return Ok(node);
        }
        let names = self.nodes_beyond().into_iter().map(|(_, name, _)| name);
        let mut known: Vec<String> = names.filter(|name| !name.is_empty()).collect();
        known.sort_unstable();
        known.dedup();
        Err(NotFound::Unknown { known })
    }

    /// The parent's listener is gone.
    pub(in super::super) fn uninvite(&mut self, listener: u64) {
        if let Some(across) = &mut self.across {
            across.rcap.uninvite(listener);
        }
    }

    pub(super) fn on_invited(&mut self, key: ChannelKey, invitee: u64, (service, pair): (u16, ChannelId)) {
        let Some(across) = &mut self.across else { return };
        let name = across.links.name(key.origin).map(str::to_owned);
        let (receiver, number) = (key.origin, key.channel);
        let event = ChannelEvent::Invited { invitee, receiver, name, number, service, pair };
        across.events.push_back((PortId(0), event));
    }

    pub(super) fn on_not_invited(&mut self, listener: u64, denied: RcapDenied) {
        let Some(across) = &mut self.across else { return };
        let name = across.links.name(denied.node).map(str::to_owned);
        across.events.push_back((PortId(0), ChannelEvent::NotInvited { listener, denied, name }));
        self.lines.iter_mut().for_each(|line| line.channels.unlisten(listener));
    }
}
