//! A receiver asks a source for a channel (`TENET-6-8`). The paper says that only the direction changes, and
//! that the traffic is still stated by the source; it gives no message for this, and ours are two.
//!
//! ```text
//! receiver  listens ──invite──► waits ──request that names it───────────► answers as to any request
//!                                 └────invite_denied, nothing in time──► its program is told why
//! source    waits ──invite──► its program is asked ──it asks for the channel──► an ordinary pass
//!                               └────it refuses, ends or is silent────► invite_denied
//! ```
//!
//! Nothing is reserved before the source asks for the channel, and no node between keeps anything: the
//! message has the way that it has come, and a refusal goes back by that. So a node that dies between leaves
//! nothing.
//! The receiver repeats its invitation until it has an answer, by the way that is then the shortest one; a
//! source knows it by origin and number, asks its program once, and repeats a refusal.
//!
//! The channel counts for the user at the source, as any other one. The request goes to the listener whose
//! invitation it names and to no other one, and to that one only while the invitation stands: an answer that
//! comes too late is refused as `ReceiverRefused`.
//!
//! A channel in each direction (`TENET-6-9`) is an ordinary one and an invitation that names it as its pair.

use super::Rcap;
use super::io::{ChannelKey, ChannelRequest, Invitation, RcapCallError, RcapEvent, simply};
use rota_contract::{ChannelId, NodeId};
use rota_units::{Instant, Span};
use rota_wire::{
    RCAP_INVITE_MAX_NS, RCAP_NODES_MAX, RcapBody, RcapChannel, RcapDenied, RcapInitiation, RcapInvite,
    RcapInviteDenied, RcapRoute, RcapTest,
};
use std::collections::{BTreeMap, BTreeSet};

/// Repetitions in a row that found no way: the source, or the only node before it, is gone.
const MISSES_MAX: u8 = 2;

/// The invitations of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Invites {
    /// Those of programs here that want to receive, by this node's number.
    asked: BTreeMap<ChannelId, Asking>,
    /// Programs here that wait to be asked.
    invitees: BTreeMap<u64, Waits>,
    /// Invitations that have come to programs here.
    come: BTreeMap<ChannelKey, Come>,
    /// The listeners that take a channel now.
    listening: BTreeSet<u64>,
}

#[derive(Clone, Debug)]
struct Asking {
    invitation: Invitation,
    /// The neighbour that was asked last.
    asked: NodeId,
    attempt: u16,
    misses: u8,
    again: Instant,
    until: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Waits {
    service: u16,
    uid: u32,
}

#[derive(Clone, Debug)]
struct Come {
    invitee: u64,
    waits: Waits,
    pair: ChannelId,
    attempt: u16,
    /// The nodes that it has passed, the receiver's first.
    way: Vec<NodeId>,
    state: Heard,
    /// When the program must have asked for the channel, or when all of this is forgotten.
    until: Instant,
    /// When the receiver waits no more.
    over: Instant,
}

/// The state of an invitation at its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// The program is asked.
    Asked,
    /// It has asked for this channel.
    Calling(ChannelId),
    /// The channel is open.
    Met,
    Denied(RcapDenied),
}

impl Invites {
    pub(super) fn deadline(&self) -> Instant {
        let asked = self.asked.values().map(|asking| asking.again.min(asking.until));
        asked.chain(self.come.values().map(|come| come.until)).min().unwrap_or(Instant::FAR)
    }

    /// The listener that has asked this source for a channel by this number.
    pub(super) fn listener(&self, number: ChannelId, source: NodeId, service: u16) -> Option<u64> {
        let Asking { invitation, .. } = self.asked.get(&number)?;
        let is_it = invitation.source == source && invitation.service == service;
        Some(invitation.listener).filter(|listener| is_it && self.listening.contains(listener))
    }

    /// The receiving program has answered.
    pub(super) fn met(&mut self, number: ChannelId) {
        self.asked.remove(&number);
    }
}

impl Rcap {
    // ---- the receiver ---------------------------------------------------------------------------------

    /// Asks a source for a channel, by a number that this node has never given. It comes as any other one;
    /// [`RcapEvent::NotInvited`] tells if it does not.
    ///
    /// # Errors
    /// The source is this node, or there are too many.
    pub fn invite(
        &mut self,
        now: Instant,
        number: ChannelId,
        invitation: Invitation,
    ) -> Result<(), RcapCallError> {
        if invitation.source == self.own {
            return Err(RcapCallError::OwnNode);
        }
        if self.invites.asked.len() >= self.limits.calls {
            return Err(RcapCallError::Full);
        }
        let patience = self.limits.patience + self.limits.answer + self.limits.status;
        let until = now + patience.min(Span::from_nanos(RCAP_INVITE_MAX_NS));
        self.invites.listening.insert(invitation.listener);
        let (attempt, misses) = (0, MISSES_MAX - 1);
        self.invites.asked.insert(
            number,
            Asking { invitation, asked: NodeId::UNKNOWN, attempt, misses, again: now, until },
        );
        self.ask_source(now, number);
        Ok(())
    }

    /// The program that asked listens no more.
    pub fn uninvite(&mut self, listener: u64) {
        self.invites.asked.retain(|_, asking| asking.invitation.listener != listener);
    }

    /// The listeners that take a channel now.
    pub fn set_listening(&mut self, listeners: impl Iterator<Item = u64>) {
        self.invites.listening = listeners.collect();
    }

    fn ask_source(&mut self, now: Instant, number: ChannelId) {
        let again = self.limits.answer.div_down(2).max(Span::from_millis(1));
        let Some(asking) = self.invites.asked.get_mut(&number) else { return };
        let Invitation { source, service, pair, .. } = asking.invitation;
        (asking.again, asking.attempt) = (now + again, asking.attempt.saturating_add(1));
        let (attempt, lease_ns) = (asking.attempt, asking.until.since(now).as_nanos());
        let Some(route) = self.routes.route(source) else {
            asking.misses += 1;
            if asking.misses >= MISSES_MAX {
                self.not_invited(number, simply(self.own, RcapTest::NoRoute));
            }
            return;
        };
        (asking.misses, asking.asked) = (0, route.hop.node);
        self.counters.retries += u64::from(attempt > 1);
        let octets = RcapRoute::written(&[self.own]);
        let way = RcapRoute::parse(&octets).expect("one node");
        let of = RcapChannel { origin: self.own, channel: number, attempt };
        let invite = RcapInvite { source, service, lease_ns: lease_ns.max(1), pair, way };
        self.send(route.hop.node, of, RcapBody::Invite(invite));
    }

    fn not_invited(&mut self, number: ChannelId, denied: RcapDenied) {
        let Some(asking) = self.invites.asked.remove(&number) else { return };
        let listener = asking.invitation.listener;
        self.tell(RcapEvent::NotInvited { listener, denied });
    }

    /// True while the request that answers an invitation waits for its program.
    fn is_answering(&self, number: ChannelId) -> bool {
        let mut entries = self.ledger.iter();
        entries.any(|(_, entry)| {
            let is_it = entry.demand.request.initiation.invitation() == number;
            is_it && entry.hop.is_none() && !entry.state.is_open()
        })
    }

    // ---- between --------------------------------------------------------------------------------------

    pub(super) fn on_invite(
        &mut self,
        now: Instant,
        from: NodeId,
        of: &RcapChannel,
        invite: &RcapInvite<'_>,
    ) {
        let mut way: Vec<NodeId> = invite.way.iter().collect();
        if way.last() != Some(&from) || way.first() != Some(&of.origin) {
            self.counters.stray += 1;
            return;
        }
        if way.contains(&self.own) {
            return self.deny_invite(of, &way, simply(self.own, RcapTest::Loop));
        }
        if invite.source == self.own {
            return self.hear_invite(now, of, way, invite);
        }
        let route = self.routes.route(invite.source).filter(|route| !way.contains(&route.hop.node));
        let Some(route) = route else {
            return self.deny_invite(of, &way, simply(self.own, RcapTest::NoRoute));
        };
        if way.len() + 1 >= RCAP_NODES_MAX {
            return self.deny_invite(of, &way, simply(self.own, RcapTest::PathTooLong));
        }
        way.push(self.own);
        let octets = RcapRoute::written(&way);
        let way = RcapRoute::parse(&octets).expect("this node is new in it");
        self.send(route.hop.node, *of, RcapBody::Invite(RcapInvite { way, ..*invite }));
    }

    /// Sends a refusal back by the way of its invitation.
    fn deny_invite(&mut self, of: &RcapChannel, way: &[NodeId], denied: RcapDenied) {
        let Some((to, rest)) = way.split_last() else { return };
        let octets = RcapRoute::written(rest);
        let way = RcapRoute::parse(&octets).expect("a part of a way");
        self.send(*to, *of, RcapBody::InviteDenied(RcapInviteDenied { denied, way }));
    }

    pub(super) fn on_invite_denied(&mut self, from: NodeId, of: &RcapChannel, denied: &RcapInviteDenied<'_>) {
        let way: Vec<NodeId> = denied.way.iter().collect();
        if !way.is_empty() {
            return self.deny_invite(of, &way, denied.denied);
        }
        let asking = self.invites.asked.get(&of.channel).filter(|_| of.origin == self.own);
        // An earlier one may have met a node that did not know the way yet.
        // Of another neighbour than the one that was asked it is no answer.
        match asking.filter(|asking| (asking.attempt, asking.asked) == (of.attempt, from)) {
            Some(_) => self.not_invited(of.channel, denied.denied),
            None => self.counters.stray += 1,
        }
    }

    // ---- the source -----------------------------------------------------------------------------------

    /// A program waits to be asked for one channel of a service, and is known by a number of its own.
    ///
    /// # Errors
    /// [`RcapCallError::Full`].
    pub fn add_invitee(&mut self, invitee: u64, service: u16, uid: u32) -> Result<(), RcapCallError> {
        if self.invites.invitees.len() >= self.limits.listeners {
            return Err(RcapCallError::Full);
        }
        self.invites.invitees.insert(invitee, Waits { service, uid });
        Ok(())
    }

    /// It waits no more, and refuses what it was asked for and has not answered.
    pub fn remove_invitee(&mut self, now: Instant, invitee: u64) {
        self.invites.invitees.remove(&invitee);
        let is_its = |come: &Come| come.invitee == invitee && come.state == Heard::Asked;
        let its = self.invites.come.iter().filter(|(_, come)| is_its(come)).map(|(key, _)| *key);
        for key in its.collect::<Vec<_>>() {
            self.refuse_invite(now, key, simply(self.own, RcapTest::SourceRefused));
        }
    }

    fn hear_invite(&mut self, now: Instant, of: &RcapChannel, way: Vec<NodeId>, invite: &RcapInvite<'_>) {
        let key = super::ledger::key(of);
        if let Some(come) = self.invites.come.get_mut(&key) {
            self.counters.repeated += 1;
            if of.attempt >= come.attempt {
                (come.way, come.attempt) = (way, of.attempt);
            }
            if let Heard::Denied(denied) = come.state {
                self.refuse_invite(now, key, denied);
            }
            return;
        }
        let mut invitees = self.invites.invitees.iter();
        let found = invitees.find(|(_, waits)| waits.service == invite.service);
        let Some((invitee, waits)) = found.map(|(invitee, waits)| (*invitee, *waits)) else {
            return self.deny_invite(of, &way, simply(self.own, RcapTest::NoSource));
        };
        if self.invites.come.len() >= self.limits.calls {
            return self.deny_invite(of, &way, simply(self.own, RcapTest::TableFull));
        }
        self.invites.invitees.remove(&invitee);
        let over = now + Span::from_nanos(invite.lease_ns);
        let until = over.min(now + self.limits.answer);
        let (pair, attempt, state) = (invite.pair, of.attempt, Heard::Asked);
        self.invites.come.insert(key, Come { invitee, waits, pair, attempt, way, state, until, over });
        self.tell(RcapEvent::Invited { key, invitee, service: invite.service, pair });
    }

    /// The channel that a program asks for, if it answers an invitation as that one says.
    pub(super) fn answers_invite(&self, request: ChannelRequest) -> Result<ChannelRequest, RcapCallError> {
        let channel = request.initiation.invitation();
        if !channel.is_some() {
            return Ok(request);
        }
        let come = self.invites.come.get(&ChannelKey { origin: request.destination, channel });
        let is_it = |come: &&Come| come.state == Heard::Asked && come.waits.uid == request.uid;
        let come = come.filter(is_it).ok_or(RcapCallError::NoInvitation)?;
        let initiation = match come.pair.is_some() {
            true => RcapInitiation::Duplex(channel),
            false => RcapInitiation::Receiver(channel),
        };
        Ok(ChannelRequest { initiation, service: come.waits.service, ..request })
    }

    /// It has asked for it, by this number.
    pub(super) fn begin_answer(&mut self, channel: ChannelId, request: &ChannelRequest) {
        let key = ChannelKey { origin: request.destination, channel: request.initiation.invitation() };
        if let Some(come) = self.invites.come.get_mut(&key) {
            (come.state, come.until) = (Heard::Calling(channel), Instant::FAR);
        }
    }

    /// The outcome of a channel that may answer an invitation.
    pub(super) fn end_answer(&mut self, now: Instant, channel: ChannelId, denied: Option<RcapDenied>) {
        let is_it = |come: &Come| come.state == Heard::Calling(channel);
        let key = self.invites.come.iter().find(|(_, come)| is_it(come)).map(|(key, _)| *key);
        let Some((key, come)) = key.and_then(|key| Some((key, self.invites.come.get_mut(&key)?))) else {
            return;
        };
        match denied {
            Some(denied) => self.refuse_invite(now, key, denied),
            None => (come.state, come.until) = (Heard::Met, come.over.max(now)),
        }
    }

    fn refuse_invite(&mut self, now: Instant, key: ChannelKey, denied: RcapDenied) {
        let Some(come) = self.invites.come.get_mut(&key) else { return };
        (come.state, come.until) = (Heard::Denied(denied), come.over);
        let of = RcapChannel { origin: key.origin, channel: key.channel, attempt: come.attempt };
        let (way, is_over) = (come.way.clone(), come.over <= now);
        self.deny_invite(&of, &way, denied);
        if is_over {
            self.invites.come.remove(&key);
        }
    }

    // ---- both -----------------------------------------------------------------------------------------

    /// Repetitions, and times that are over.
    pub(super) fn tick_invites(&mut self, now: Instant) {
        let is_due = |asking: &Asking| asking.again.min(asking.until) <= now;
        let due = self.invites.asked.iter().filter(|(_, asking)| is_due(asking)).map(|(number, _)| *number);
        for number in due.collect::<Vec<_>>() {
            if self.invites.asked[&number].until > now {
                self.ask_source(now, number);
            } else if self.is_answering(number) {
                let until = now + self.limits.answer;
                let asking = self.invites.asked.get_mut(&number).expect("it is due");
                (asking.until, asking.again) = (until, until);
            } else {
                let source = self.invites.asked[&number].invitation.source;
                self.not_invited(number, simply(source, RcapTest::SourceSilent));
            }
        }
        let due = self.invites.come.iter().filter(|(_, come)| come.until <= now).map(|(key, _)| *key);
        for key in due.collect::<Vec<_>>() {
            match self.invites.come[&key].state {
                Heard::Asked => self.refuse_invite(now, key, simply(self.own, RcapTest::SourceSilent)),
                _ => _ = self.invites.come.remove(&key),
            }
        }
    }

    /// This node stops.
    pub(super) fn end_invites(&mut self, now: Instant) {
        let numbers: Vec<ChannelId> = self.invites.asked.keys().copied().collect();
        for number in numbers {
            self.not_invited(number, simply(self.own, RcapTest::Closed));
        }
        let invitees = self.invites.come.values().map(|come| come.invitee);
        for invitee in invitees.collect::<Vec<_>>() {
            self.remove_invitee(now, invitee);
        }
        self.invites.invitees.clear();
    }
}
