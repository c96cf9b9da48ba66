//! The picture of a node that the control thread asks for.

use super::Data;
use crate::counters;
use crate::gate::Egress;
use crate::status::{MemberCopy, PortCopy, Snapshot};
use rota_driver::clock::now;
use rota_driver::device::FrameDevice;
use rota_proto::Medium;
use rota_proto::Node;
use rota_shm::control::{LlcInfo, LlcPeer};
use rota_wire::MacAddr;

impl<D: FrameDevice, G: Egress> Data<D, G> {
    pub(super) fn snapshot(&mut self) -> Snapshot {
        let drops = self.ways.iter_mut().map(|way| way.wire.device.counters().receive_drops);
        self.measures.counts.receive_drops = drops.sum();
        self.measures.counts.refused = self.control.refusals().read();
        let (medium, host) = (self.node.medium(), self.host_frames());
        Snapshot {
            status: self.node.port().status(),
            ports: self.ports_now(),
            lost: self.lost.iter().map(|lost| lost.note.clone()).collect(),
            timers: medium.timers_in_force(now()),
            members: members(medium),
            hops: self.measures.hops.clone(),
            rounds: self.measures.rounds.clone(),
            measured: self.measures.counts,
            counters: counters::all(&self.measures.counter_sources(&self.node, host, self.own_frames))
                .collect(),
            stalls: self.measures.stalls.recent().copied().collect(),
            llc: llc_info(&self.node),
            shut_out: self
                .ways
                .iter()
                .flat_map(|way| way.wire.garbage.shut_out())
                .map(|source| MacAddr(source.mac))
                .collect(),
            many_strangers: self.ways.iter().any(|way| way.wire.garbage.was_closed(now())),
            units: self.node.own_channels().map(|said| (said.channel, said.sending, said.units)).collect(),
        }
    }
}

impl<D: FrameDevice, G: Egress> Data<D, G> {
    fn ports_now(&self) -> Vec<PortCopy> {
        let ports = self.ways.iter().filter_map(|way| {
            let medium = self.node.port_at(way.port)?.medium();
            let (interface, members, slots) =
                (way.interface.clone(), members(medium), medium.reservations().collect::<Vec<_>>());
            Some(PortCopy { interface, station: medium.station(), mode: medium.mode(), members, slots })
        });
        ports.collect()
    }
}

/// The stations of the ring, this one among them.
fn members(medium: &Medium) -> Vec<MemberCopy> {
    let mut members = Vec::with_capacity(medium.members().len() + 1);
    if medium.station() != 0 {
        let (name, mac) = (medium.name().to_owned(), medium.mac());
        let node_id = medium.node_id();
        members.push(MemberCopy { node_id, station: medium.station(), name, mac, alive: true });
    }
    for member in medium.members().iter().filter(|member| member.station != 0) {
        members.push(MemberCopy {
            node_id: member.announce.node_id,
            station: member.station,
            name: member.announce.name().to_owned(),
            mac: member.mac,
            alive: !medium.is_dead(member.station),
        });
    }
    members.sort_by_key(|member| member.station);
    members
}

fn llc_info(node: &Node) -> LlcInfo {
    let (llc, medium) = (node.llc(), node.medium());
    let members = medium.members().iter().filter(|member| member.announce.llc_address != 0);
    let named = members.map(|member| LlcPeer {
        node: member.announce.llc_address,
        station: member.station,
        name: member.announce.name().to_owned(),
        mac: member.mac.to_string(),
    });
    let others = llc.settings().peer_macs.iter().map(|(node, mac)| {
        let mac = mac.to_string();
        LlcPeer { node: *node, station: 0, name: mac.clone(), mac }
    });
    LlcInfo {
        node: llc.address(),
        private: llc.settings().private_segment,
        sockets: llc.open_sockets().collect(),
        peers: named.chain(others).collect(),
    }
}
