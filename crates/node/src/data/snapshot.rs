//! The picture of a node that the control thread asks for.

use super::Data;
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
        for way in &mut self.ways {
            way.wire.counts.receive_drops = way.wire.device.counters().receive_drops;
        }
        self.measures.counts.refused = self.control.refusals().read();
        let published = &self.told.published;
        for view in self.ways.iter().filter_map(|way| way.view(&self.node)) {
            published.count(&view);
        }
        published.totals(&self.measures.view(), self.ways[0].port);
        Snapshot {
            ports: self.ports_now(),
            lost: self.lost.iter().map(|lost| lost.note.clone()).collect(),
            hops: self.measures.hops.clone(),
            rounds: self.measures.rounds.clone(),
            measured: self.measures.counts,
            counters: published.all(),
            stalls: self.measures.stalls.recent().copied().collect(),
            llc: llc_info(&self.node),
            shut_out: self
                .ways
                .iter()
                .flat_map(|way| way.wire.garbage.shut_out())
                .map(|source| MacAddr(source.mac))
                .collect(),
            many_strangers: self.ways.iter().any(|way| way.wire.garbage.was_closed(now())),
            cpu: self.node.cpu(),
            details: Vec::new(),
            units: self.node.own_channels().map(|said| (said.channel, said.sending, said.units)).collect(),
        }
    }
}

impl<D: FrameDevice, G: Egress> Data<D, G> {
    fn ports_now(&self) -> Vec<PortCopy> {
        let ports = self.ways.iter().filter_map(|way| {
            let port = self.node.port_at(way.port)?;
            let medium = port.medium();
            Some(PortCopy {
                port: way.port,
                status: port.status(),
                holds: way.wire.counts.holds,
                timers: medium.timers_in_force(now()),
                members: members(medium),
                admits_cpu: self.node.admits_cpu(way.port),
            })
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
    let llc = node.llc();
    let members = node.ports().flat_map(|port| port.medium().members());
    let members = members.filter(|member| member.announce.llc_address != 0);
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
