//! Groups at this end of a link: members share what is reserved for the group (`TENET-6-5`).
//!
//! The first member has the tests admit the group's contract: as many flows of its traffic as members send
//! at once, its *lanes*. Each further member with the same terms stands by them, and costs nothing. The lanes
//! go with the last member. The node polices the members together to k lanes (`rota_admission`,
//! `rtip/sharing.rs`), so that they keep their bounds and those of others.
//!
//! All members have one bound, which no lane exceeds. It is given once: it grows for a member that is alone,
//! and no later one makes it shorter or longer. A packet whose deadline is behind that of its lane takes
//! nothing of others, since a longer bound never invalidates a set.

use super::Link;
use super::booked::NoRoom;
use super::flows::{Flows, Packets, no_port};
use crate::door::{GroupLoad, GroupShare, Life, SessionId};
use rota_admission::rtip::{Denied, NodeTest};
use rota_admission::subnet::{Ask, Offer, link_offer};
use rota_units::{Instant, Span};

/// A group with members here.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    share: GroupShare,
    ask: Ask,
    partition: u8,
    /// The first of them has the lanes under its number.
    members: Vec<SessionId>,
    /// The bound of all.
    delay: Span,
    /// When the newest packet of one that is gone came.
    came: Option<Instant>,
}

impl Standing {
    /// True if a member with these packets has the terms of the group. How short its packets may be is its
    /// own affair.
    fn has_terms_of(&self, share: &GroupShare, packets: &Packets) -> bool {
        let Ask { traffic, octets, .. } = self.ask;
        (traffic, octets, self.partition) == (packets.ask.traffic, packets.ask.octets, packets.partition)
            && self.share == *share
    }
}

impl Flows {
    fn group_of(&self, id: SessionId) -> Option<&Standing> {
        self.groups.iter().find(|group| group.members.contains(&id))
    }

    /// True for a member of a group.
    pub(super) fn is_member(&self, id: SessionId) -> bool {
        self.group_of(id).is_some()
    }

    /// Reservations that stand for a session: those of all members of a group for the first of them.
    pub(super) fn lanes_of(&self, id: SessionId) -> u8 {
        match self.group_of(id) {
            Some(group) if group.members.first() == Some(&id) => group.share.at_once,
            Some(_) => 0,
            None => 1,
        }
    }

    /// Members of groups in a partition beyond one for each lane.
    pub(super) fn members_beyond_lanes(&self, partition: u8) -> isize {
        let groups = self.groups.iter().filter(|group| group.partition == partition);
        groups.map(|group| group.members.len().cast_signed() - isize::from(group.share.at_once)).sum()
    }

    /// A member stands from now on, by the lanes that its group has here or gets now.
    pub(super) fn admit_member(
        &mut self,
        now: Instant,
        id: SessionId,
        (packets, share): (&Packets, &GroupShare),
        units: Span,
    ) -> Result<Offer, NoRoom> {
        let other = Err((Denied::new(NodeTest::Group, Span::ZERO), None));
        if packets.life != Life::ALWAYS {
            return other;
        }
        let link = self.port.as_ref().ok_or((no_port(), None))?.whole().params().link;
        if let Some(group) = self.groups.iter_mut().find(|group| group.share.key == share.key) {
            if !group.has_terms_of(share, packets) {
                return other;
            }
            group.members.push(id);
            let offer = link_offer(&link, packets.ask.octets_least, Span::ZERO);
            return Ok(Offer { delay: group.delay, ..offer });
        }
        let mut longest = self.admit(now, id, packets, units)?;
        for _ in 1..share.at_once {
            match self.admit(now, id, packets, units) {
                Ok(offer) if offer.delay > longest.delay => longest = offer,
                Ok(_) => {}
                Err(no_room) => {
                    self.remove(now, id, None);
                    return Err(no_room);
                }
            }
        }
        let (ask, partition, members) = (packets.ask, packets.partition, vec![id]);
        let (share, delay, came) = (*share, longest.delay, None);
        self.groups.push(Standing { share, ask, partition, members, delay, came });
        Ok(longest)
    }

    /// Gives the lanes of a member's group a longer bound, of `delay` at most, while it is the only one; the
    /// bound that it has now. `None` for a session that is in no group.
    pub(super) fn relax_member(&mut self, id: SessionId, delay: Span) -> Option<Span> {
        let at = self.groups.iter().position(|group| group.members.contains(&id))?;
        let port = self.port.as_mut()?;
        let group = &mut self.groups[at];
        if group.members.len() > 1 {
            return Some(group.delay);
        }
        for (place, lane) in self.sessions.iter_mut().enumerate().filter(|(_, lane)| lane.id == id) {
            lane.delay = port.relax(place, group.partition, &group.ask, delay).delay;
            group.delay = group.delay.max(lane.delay);
        }
        Some(group.delay)
    }

    /// A member is gone, whose newest packet came then. The one that has the lanes now, `None` where they go
    /// with it or it was in no group; and when the newest packet of all that are gone came.
    pub(super) fn leave_group(
        &mut self,
        id: SessionId,
        came: Option<Instant>,
    ) -> (Option<SessionId>, Option<Instant>) {
        let at = self.groups.iter().position(|group| group.members.contains(&id));
        let Some(at) = at else { return (None, came) };
        let group = &mut self.groups[at];
        group.members.retain(|of| *of != id);
        group.came = group.came.max(came);
        let (heir, came) = (group.members.first().copied(), group.came);
        if heir.is_none() {
            self.groups.swap_remove(at);
        }
        (heir, came)
    }
}

impl Link {
    /// The groups with members here.
    pub fn groups(&self) -> impl Iterator<Item = GroupLoad> + '_ {
        self.shares.flows.groups.iter().map(|group| {
            let GroupShare { key, at_once } = group.share;
            GroupLoad { key, at_once, members: group.members.len() }
        })
    }
}
