//! The wish of a receiver for a channel (`TENET-6-8`), which travels to the source before anything is
//! reserved.
//!
//! No node between keeps anything of it: the message itself has the way that it has come, and its refusal
//! goes back by that. The source answers otherwise by a request of its own, which names the invitation.

use super::bodies::RcapDenied;
use super::record::RCAP_NODES_MAX;
use super::{Fields, Malformed, RCAP_INVITE_MAX_NS, sound};
use crate::fields::Writer;
use rota_contract::{ChannelId, NodeId};

/// The nodes of a way, each once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RcapRoute<'a> {
    octets: &'a [u8],
}

impl<'a> RcapRoute<'a> {
    /// Octets of one node.
    const NODE: usize = 8;

    /// The nodes that fill `octets`.
    ///
    /// # Errors
    /// The field that is wrong: too many nodes, half a node, one that is unknown or that stands twice.
    pub fn parse(octets: &'a [u8]) -> Result<Self, Malformed> {
        let is_whole = octets.len().is_multiple_of(Self::NODE);
        sound(is_whole && octets.len() <= RCAP_NODES_MAX * Self::NODE, "way")?;
        let way = Self { octets };
        for (place, node) in way.iter().enumerate() {
            sound(node.is_known() && way.iter().take(place).all(|before| before != node), "way node")?;
        }
        Ok(way)
    }

    /// The octets of these nodes.
    pub fn written(nodes: &[NodeId]) -> Vec<u8> {
        nodes.iter().flat_map(|node| node.0.to_be_bytes()).collect()
    }

    /// The nodes, the first one first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<'a> {
        let of = |octets: &[u8]| NodeId(octets.iter().fold(0, |id, octet| id << 8 | u64::from(*octet)));
        self.octets.chunks_exact(Self::NODE).map(of)
    }

    /// Octets of all nodes.
    pub const fn octets(&self) -> usize {
        self.octets.len()
    }

    pub(super) fn read(fields: &mut Fields<'a>) -> Result<Self, Malformed> {
        let count = fields.u8("way")?;
        let octets = fields.take(usize::from(count) * Self::NODE, "way")?;
        Self::parse(octets)
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        // As many as a way has fit an octet.
        writer.u8((self.octets.len() / Self::NODE) as u8).bytes(self.octets);
    }
}

/// A receiver asks the programs of a source for a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RcapInvite<'a> {
    /// The node whose program is to send.
    pub source: NodeId,
    /// The service by which that program waits to be asked, and which the receiver listens to.
    pub service: u16,
    /// For how long the receiver will wait.
    pub lease_ns: u64,
    /// The channel in the other direction, by the receiver's number; none where only this one is wanted.
    pub pair: ChannelId,
    /// The nodes that it has passed, the receiver's first.
    pub way: RcapRoute<'a>,
}

impl<'a> RcapInvite<'a> {
    pub(super) const OCTETS: usize = 8 + 2 + 8 + 8 + 1;

    pub(super) fn read(fields: &mut Fields<'a>) -> Result<Self, Malformed> {
        let (source, service) = (fields.node("source")?, fields.u16("service")?);
        let (lease_ns, pair) = (fields.u64("lease")?, ChannelId(fields.u64("pair")?));
        let way = RcapRoute::read(fields)?;
        sound((1..=RCAP_INVITE_MAX_NS).contains(&lease_ns), "lease")?;
        sound(way.iter().len() > 0, "way")?;
        Ok(Self { source, service, lease_ns, pair, way })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.u64(self.source.0).u16(self.service).u64(self.lease_ns).u64(self.pair.0);
        self.way.write(writer);
    }
}

/// The source has no channel for a receiver that asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RcapInviteDenied<'a> {
    /// Why.
    pub denied: RcapDenied,
    /// The nodes that it is yet to pass behind the reader, the receiver's first; none at the receiver's.
    pub way: RcapRoute<'a>,
}

impl<'a> RcapInviteDenied<'a> {
    pub(super) const OCTETS: usize = RcapDenied::OCTETS + 1;

    pub(super) fn read(fields: &mut Fields<'a>) -> Result<Self, Malformed> {
        Ok(Self { denied: RcapDenied::read(fields)?, way: RcapRoute::read(fields)? })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        self.denied.write(writer);
        self.way.write(writer);
    }
}
