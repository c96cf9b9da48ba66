//! A copy of what a port and its medium know, for people.

use super::Port;
use crate::io::StationId;
use rota_contract::{GroupName, PartitionName};
use rota_medium::ModeName;
use rota_medium::door::GroupLoad;
use rota_medium::door::PartitionLoad;
use rota_medium::rether::Refused;
use rota_wire::{MacAddr, Slot};

/// The status of a port for `rota status`.
#[derive(Clone, Debug)]
pub struct Status {
    /// This station's place.
    pub station: StationId,
    /// The mode.
    pub mode: ModeName,
    /// How many modes the segment has seen.
    pub mode_epoch: u32,
    /// The generation counter of the newest token.
    pub generation: u32,
    /// The slots of the list.
    pub slots: Vec<Slot>,
    /// The partitions of a divided port, the rest first.
    pub partitions: Vec<PartitionStatus>,
    /// The groups that share reservations of a link.
    pub groups: Vec<GroupStatus>,
    /// Ordinary frames waiting here.
    pub queued_frames: usize,
    /// Stations that do not take part, and why.
    pub refused: Vec<Refused>,
    /// Addresses of stations that strangers use.
    pub contested: Vec<MacAddr>,
    /// Those of them to which frames go astray, while no station hears the stranger.
    pub astray: Vec<MacAddr>,
    /// The counters of the medium.
    pub counters: rota_medium::Counters,
    /// The counters of units and ordinary frames.
    pub port_counters: super::Counters,
}

/// A partition of a port's network, and what stands in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionStatus {
    /// Its name; none of the rest.
    pub name: Option<PartitionName>,
    /// Percent of the link.
    pub percent: u8,
    /// Its channels across segments, and their work in a cycle.
    pub load: PartitionLoad,
}

/// A group that shares a reservation of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupStatus {
    /// The user of its members.
    pub uid: u32,
    /// Its name.
    pub name: GroupName,
    /// Members that send at a time.
    pub at_once: u8,
    /// Members here.
    pub members: usize,
    /// Packets that waited because the group was beyond its contract.
    pub held: u64,
}

impl Port {
    /// The status of this port and its medium.
    pub fn status(&self) -> Status {
        let medium = self.medium();
        Status {
            station: medium.station(),
            mode: medium.mode(),
            mode_epoch: medium.mode_epoch(),
            generation: medium.generation(),
            slots: medium.reservations().collect(),
            partitions: self.partitions(),
            groups: self.medium().groups().into_iter().map(|group| self.group(&group)).collect(),
            queued_frames: self.queued_frames(),
            refused: medium.refused().to_vec(),
            contested: medium.contested().collect(),
            astray: medium.contested().filter(|mac| medium.is_astray(*mac)).collect(),
            counters: *medium.counters(),
            port_counters: *self.counters(),
        }
    }

    fn group(&self, of: &GroupLoad) -> GroupStatus {
        let GroupLoad { key, at_once, members } = *of;
        GroupStatus { uid: key.uid, name: key.name, at_once, members, held: self.held_of(key) }
    }

    fn partitions(&self) -> Vec<PartitionStatus> {
        let partitions = self.medium().settings().partitions;
        if partitions.is_none() {
            return Vec::new();
        }
        let all = partitions.iter().zip(self.medium().partition_loads());
        all.map(|((_, name, percent), load)| PartitionStatus { name, percent, load }).collect()
    }
}
