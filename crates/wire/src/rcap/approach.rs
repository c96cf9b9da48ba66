//! The word that a request is on its way (`RETHER-2.5-5`). It goes ahead of the request while a segment on
//! the way switches to token mode, so that the segments behind switch at the same time. It reserves nothing,
//! and no answer follows.

use super::invite::RcapRoute;
use super::{Fields, Malformed, RCAP_LEASE_MAX_NS, sound};
use crate::fields::Writer;
use rota_contract::NodeId;

/// A request will come, to be sent on towards its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RcapApproach<'a> {
    /// The node of the receiver.
    pub destination: NodeId,
    /// By when the request has come, or does not come.
    pub lease_ns: u64,
    /// The nodes that it has passed, the source first and the sender last.
    pub passed: RcapRoute<'a>,
    /// The nodes that the path leads through, as in the request.
    pub via: RcapRoute<'a>,
    /// The nodes that the path passes by: those of the first path where it is a second one, or the one that
    /// failed.
    pub around: RcapRoute<'a>,
}

impl<'a> RcapApproach<'a> {
    pub(super) const OCTETS: usize = 8 + 8 + 3;

    pub(super) const fn octets(&self) -> usize {
        Self::OCTETS + self.passed.octets() + self.via.octets() + self.around.octets()
    }

    pub(super) fn read(fields: &mut Fields<'a>) -> Result<Self, Malformed> {
        let (destination, lease_ns) = (fields.node("destination")?, fields.u64("lease")?);
        let (passed, via) = (RcapRoute::read(fields)?, RcapRoute::read(fields)?);
        let around = RcapRoute::read(fields)?;
        sound((1..=RCAP_LEASE_MAX_NS).contains(&lease_ns), "lease")?;
        sound(passed.iter().len() > 0, "way")?;
        Ok(Self { destination, lease_ns, passed, via, around })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.u64(self.destination.0).u64(self.lease_ns);
        [self.passed, self.via, self.around].iter().for_each(|nodes| nodes.write(writer));
    }
}
