//! Groups at this station of a segment: members share the slot that is reserved for the group (`TENET-6-5`).
//!
//! A slot belongs to a station. So the members that this station sends share one, whatever station of the
//! segment each of them goes to, and members that another station sends share another one: no station sees
//! the packets of the other before they are on the wire, and none can hold back what the other has sent.
//!
//! The first member has the token's admission test a slot that carries k times what one member brings in a
//! cycle. Each further member with the same terms stands by it, and costs nothing. The slot goes on under
//! the number of the next member when the first one leaves, and is given back with the last one. So the list
//! of the token, its tests and its repair see one session, as they do without groups.
//!
//! The port polices the members together to k channels of the traffic, and serves them in the order in which
//! their packets become eligible; the bound is proven in `rota_admission`, `subnet/rether.rs`.

use super::Rether;
use crate::door::{FlowShare, GroupLoad, GroupShare, SessionId, Share};
use crate::event::MediumEvent;
use rota_admission::rtip::{Denied, NodeTest, Traffic};
use rota_admission::{Admitted, Pace, refused_by_port};
use rota_units::Span;

/// The terms that all members have: those of the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Terms {
    share: GroupShare,
    traffic: Traffic,
    unit_octets_max: u32,
    pace: Pace,
    partition: u8,
}

/// A group with members here.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    terms: Terms,
    /// The first of them has the slot under its number.
    members: Vec<SessionId>,
    /// The grant, once a token visit has decided.
    admitted: Option<Admitted>,
}

/// What leaves with a session that is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    /// Its slot.
    Slot,
    /// Nothing: others need the slot.
    Nothing,
}

impl Rether {
    fn group_of(&self, id: SessionId) -> Option<usize> {
        self.shares.groups.iter().position(|group| group.members.contains(&id))
    }

    /// The session under whose number the slot of this one stands.
    pub(super) fn holder(&self, id: SessionId) -> SessionId {
        let group = self.group_of(id).and_then(|at| self.shares.groups.get(at));
        group.and_then(|group| group.members.first()).copied().unwrap_or(id)
    }

    /// True if a session stands by the slot of its group, or is refused there: nothing is asked of the token.
    pub(super) fn joins_group(&mut self, id: SessionId, share: &Share) -> bool {
        let Some(FlowShare { traffic, group: Some(of), .. }) = share.flow else { return false };
        let Share { unit_octets_max, pace, partition, .. } = *share;
        let terms = Terms { share: of, traffic, unit_octets_max, pace, partition };
        let standing = self.shares.groups.iter_mut().find(|group| group.terms.share.key == of.key);
        let Some(group) = standing else {
            self.shares.groups.push(Shared { terms, members: vec![id], admitted: None });
            return false;
        };
        if group.terms != terms {
            let params = self.settings.params(self.ring_size());
            let refusal = refused_by_port(pace, &Denied::new(NodeTest::Group, Span::ZERO), &params);
            self.event(MediumEvent::Refused { session: id, refusal });
            return true;
        }
        group.members.push(id);
        if let Some(admitted) = group.admitted {
            self.event(MediumEvent::Reserved { session: id, admitted });
        }
        true
    }

    /// A session is given back. Its group may go on without it, under the number of its next member.
    pub(super) fn leaves_group(&mut self, id: SessionId) -> Leaves {
        let Some(at) = self.group_of(id) else { return Leaves::Slot };
        let group = &mut self.shares.groups[at];
        let leads = group.members.first() == Some(&id);
        group.members.retain(|member| *member != id);
        let Some(&heir) = group.members.first() else {
            self.shares.groups.swap_remove(at);
            return Leaves::Slot;
        };
        if leads {
            let sessions = self.shares.sessions.iter_mut().map(|session| &mut session.id);
            let parts = self.shares.parts.iter_mut().map(|part| &mut part.session);
            sessions.chain(parts).filter(|of| **of == id).for_each(|of| *of = heir);
        }
        self.event(MediumEvent::Released { session: id });
        Leaves::Nothing
    }

    /// The slot of a session stands: so do all members that wait for it.
    pub(super) fn group_reserved(&mut self, id: SessionId, admitted: Admitted) {
        let Some(at) = self.group_of(id) else { return };
        self.shares.groups[at].admitted = Some(admitted);
        for member in self.shares.groups[at].members.clone().into_iter().filter(|member| *member != id) {
            self.event(MediumEvent::Reserved { session: member, admitted });
        }
    }

    /// The slot of a session was refused, or is lost: its group ends, and each other member hears of it.
    pub(super) fn group_ended(&mut self, id: SessionId, told: impl Fn(SessionId) -> MediumEvent) {
        let Some(at) = self.group_of(id) else { return };
        let group = self.shares.groups.swap_remove(at);
        for member in group.members.into_iter().filter(|member| *member != id) {
            self.event(told(member));
        }
    }

    /// The groups with members here.
    pub fn groups(&self) -> impl Iterator<Item = GroupLoad> + '_ {
        self.shares.groups.iter().map(|Shared { terms, members, .. }| {
            let GroupShare { key, at_once } = terms.share;
            GroupLoad { key, at_once, members: members.len() }
        })
    }
}

#[cfg(feature = "model")]
impl Shared {
    /// What tells apart two states of a group.
    pub(super) fn visit(&self, visit: &mut dyn super::model::Visit) {
        visit.word(u64::from(self.terms.share.key.uid) << 8 | u64::from(self.terms.share.at_once));
        self.members.iter().for_each(|member| visit.word(member.0));
        visit.word(u64::from(self.admitted.is_some()));
    }
}
