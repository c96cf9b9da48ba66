//! Memory of channels: admitted before it is mapped.

use super::Control;
use crate::ledger::{Charge, Short, TEST, sink_octets, source_octets};
use crate::limits::Limit;
use rota_shm::control::{RefusalInfo, Reply};
use rota_shm::{MemoryError, NodeSink, NodeSource, SinkShape, SourceShape};

impl Control<'_> {
    /// Why a program would be refused memory if admission granted the channel, which is not asked then.
    pub(super) fn no_memory(&self, at: usize, buffers: u16, room: u32, unit: u32) -> Option<RefusalInfo> {
        let session = self.sessions.get(at).filter(|session| session.greeted)?;
        // A size that no file can hold is refused by the check of the request.
        let asked = source_octets(buffers, room)?;
        let short = self.facts.ledger.would_fit(session.user, asked).err()?;
        Some(self.refuse(short, buffers, room, unit))
    }

    fn refuse(&self, short: Short, buffers: u16, room: u32, unit: u32) -> RefusalInfo {
        self.data.refusals().count(Limit::Memory);
        let refusal = short.of_source(buffers, room, unit);
        RefusalInfo { node: self.facts.name.clone(), port: self.facts.interface.clone(), ..refusal }
    }

    /// The kernel's own refusals are counted too.
    pub(super) fn count_kernel<T>(&self, made: Result<T, MemoryError>) -> Result<T, MemoryError> {
        if matches!(made, Err(MemoryError::Kernel { .. })) {
            self.data.refusals().count(Limit::Descriptors);
        }
        made
    }

    /// The memory of a sending channel, or what its program is told.
    pub(super) fn make_source(
        &self,
        at: usize,
        shape: SourceShape,
        unit: u32,
    ) -> Result<(NodeSource, Charge), Box<Reply>> {
        let SourceShape { buffers, unit_octets_max } = shape;
        // A size that no file can hold is charged as 0; then the creation of the file fails.
        let octets = source_octets(buffers, unit_octets_max).unwrap_or(0);
        let charged = self.facts.ledger.charge(self.sessions[at].user, octets);
        let refuse = |short| Box::new(Reply::Refused(self.refuse(short, buffers, unit_octets_max, unit)));
        let charge = charged.map_err(refuse)?;
        let made = self.count_kernel(NodeSource::create(shape));
        let failed =
            |error: MemoryError| Box::new(Reply::Error { sentence: error.to_string(), wrong_use: false });
        made.map(|source| (source, charge)).map_err(failed)
    }

    /// The memory of a receiving channel.
    pub(super) fn make_sink(&self, at: usize, shape: SinkShape) -> Option<(NodeSink, Charge)> {
        let octets = sink_octets(shape).unwrap_or(0);
        let Ok(charge) = self.facts.ledger.charge(self.sessions[at].user, octets) else {
            self.data.refusals().count(Limit::Memory);
            return None;
        };
        self.count_kernel(NodeSink::create(shape)).ok().map(|sink| (sink, charge))
    }
}

/// The other station has no memory for a channel.
pub(super) fn of_peer(peer: &str) -> RefusalInfo {
    let sentence = format!(
        "refused by {TEST}: {peer} has no memory left for what would receive this channel; ask for less \
         room, or give its 'rota node' a larger --memory"
    );
    RefusalInfo { test: TEST.to_owned(), node: peer.to_owned(), sentence, ..RefusalInfo::default() }
}
