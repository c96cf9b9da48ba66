//! Groups at a port of a link: their members are policed together (`TENET-6-5`; the proof stands in
//! `rota_admission`, `rtip/sharing.rs`).
//!
//! A packet of a member passes two regulators, that of its channel and then that of its group, in the order
//! in which packets of all members come to be eligible by their own ones. A member that sends beyond the
//! group's contract has its packets, and those of other members, wait for the group's turn; other channels
//! feel nothing.

use super::Port;
use super::units::Units;
use crate::io::{ChannelId, session_of};
use crate::rtip::packets::Joined;
use rota_admission::rtip::{RateJitter, Traffic};
use rota_contract::GroupKey;
use rota_medium::door::{self, GroupShare};
use rota_units::Instant;

/// A group of which hops are members.
#[derive(Clone, Debug)]
struct Policed {
    key: GroupKey,
    rate: RateJitter<Box<[Instant]>>,
    /// Packets that waited because the group was beyond its contract.
    held: u64,
}

/// The groups of a port.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    all: Vec<Policed>,
    /// The one that was last beyond its contract.
    beyond: Option<GroupKey>,
}

impl Groups {
    /// A member sends from now on. The first one takes the memory.
    pub(super) fn add(&mut self, share: &GroupShare, traffic: Traffic) {
        if self.get(share.key).is_some() {
            return;
        }
        let places = traffic.burst() as usize * usize::from(share.at_once);
        let history = vec![Instant::ZERO; places].into_boxed_slice();
        let rate = RateJitter::of_group(traffic, share.at_once, history);
        self.all.push(Policed { key: share.key, rate, held: 0 });
    }

    fn get(&self, key: GroupKey) -> Option<&Policed> {
        self.all.iter().find(|group| group.key == key)
    }

    fn get_mut(&mut self, key: GroupKey) -> Option<&mut Policed> {
        self.all.iter_mut().find(|group| group.key == key)
    }

    /// Groups without members are gone.
    pub(super) fn retain_those_of(&mut self, units: &Units) {
        self.all.retain(|group| units.has_member(group.key));
    }
}

impl Port {
    /// Packets of a group that have been held since it stands at this port.
    pub(super) fn held_of(&self, key: GroupKey) -> u64 {
        self.groups.get(key).map_or(0, |group| group.held)
    }

    /// The group that was last beyond its contract here, if any was.
    pub fn beyond(&self) -> Option<GroupKey> {
        self.groups.beyond
    }

    /// The group that a hop is a member of.
    pub(super) fn group_of(&self, hop: ChannelId) -> Option<GroupKey> {
        Some(self.units.get(hop)?.group?.key)
    }

    /// Packets of a group that are eligible by now join those that wait for their turn.
    pub(super) fn join_group(&mut self, now: Instant, key: GroupKey) {
        let Some(group) = self.groups.get_mut(key) else { return };
        let mut is_beyond = false;
        while let Some(queue) = self.units.next_of_group(now, key)
            && let Some(packets) = &mut queue.packets
        {
            match packets.join_next(now, &mut group.rate) {
                Joined::Held => {
                    group.held += 1;
                    self.counters.packets.held += 1;
                    is_beyond = true;
                }
                Joined::At(due) => {
                    let session = session_of(queue.channel);
                    self.medium.note_units(now, session, door::Units::Packet(due));
                }
                Joined::None => break,
            }
        }
        if is_beyond {
            self.groups.beyond = Some(key);
        }
    }
}
