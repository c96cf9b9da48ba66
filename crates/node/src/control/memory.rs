//! Memory of channels: admitted before it is mapped.

use super::Control;
use crate::ledger::{Charge, Short, TEST, sink_octets, size, source_octets};
use crate::limits::Limit;
use rota_proto::{ChannelId, PortId, Shortage};
use rota_shm::control::{RefusalInfo, Reply};
use rota_shm::layout::rx_slots_for;
use rota_shm::{MemoryError, NodeSink, NodeSource, SinkShape, SourceShape};
use rota_wire::RcapTest;

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
        // Memory is the whole node's; its first port stands for it.
        let port = self.facts.port(PortId(0)).interface.clone();
        RefusalInfo { node: self.facts.name.clone(), port, ..refusal }
    }

    /// A user has as many channels as are allowed: refused by the test of gateways for that.
    pub(super) fn one_channel_too_many(&self, sentence: String) -> RefusalInfo {
        let test = format!("{:?}", RcapTest::QuotaChannels);
        let (node, port) = (self.facts.name.clone(), self.facts.port(PortId(0)).interface.clone());
        RefusalInfo { test, node, port, sentence, ..RefusalInfo::default() }
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

    /// The memory of a receiving channel, or the numbers that its sender is told.
    pub(super) fn make_sink(
        &self,
        at: usize,
        buffers: u16,
        room: u32,
    ) -> Result<(NodeSink, Charge), Shortage> {
        let shape = |unit_octets_max: u32| {
            // No fragment is longer than its unit, nor than a frame of any port holds.
            let fragment_octets = self.facts.payload_max.min(unit_octets_max);
            let slots = rx_slots_for(buffers, unit_octets_max, fragment_octets);
            SinkShape { slots, fragment_octets, unit_octets_max }
        };
        let octets = sink_octets(shape(room)).unwrap_or(0);
        let charged = self.facts.ledger.charge(self.sessions[at].user, octets);
        let charge = charged.map_err(|short| {
            self.data.refusals().count(Limit::Memory);
            short.of_sink(room, shape)
        })?;
        let made = self.count_kernel(NodeSink::create(shape(room)));
        made.map(|sink| (sink, charge)).map_err(|_| Shortage::default())
    }

    /// The receiver of a channel of ours has no memory for it, and its node states the numbers.
    pub(super) fn on_no_memory(&mut self, channel: ChannelId, unit: u32, short: Shortage) {
        let Some((at, place)) = self.owner(channel) else { return };
        let owned = self.sessions[at].channels.swap_remove(place);
        self.sessions[at]
            .to(owned.number)
            .reply(&Reply::Refused(of_peer(&owned.peer.name, unit, short)), &[]);
    }
}

/// The other station has no memory for a channel of units of `unit` octets.
pub(super) fn of_peer(peer: &str, unit: u32, short: Shortage) -> RefusalInfo {
    let Shortage { asked_octets, left_octets, room_octets } = short;
    let (asked, left) = (size(asked_octets), size(left_octets));
    let missing = match asked_octets {
        0 => format!("{peer} has no memory left for what would receive this channel; ask for less room"),
        _ => format!("receiving this channel takes {asked} of memory on {peer}, where {left} are left"),
    };
    let instead = match (asked_octets, room_octets) {
        (0, _) => String::new(),
        (_, 0) => "; nothing would fit".to_owned(),
        _ => format!("; room for {room_octets} octets would fit"),
    };
    let sentence =
        format!("refused by {TEST}: {missing}{instead}; a larger --memory of 'rota node' there gives more");
    let counter_offer_octets = room_octets.min(unit);
    let (test, node) = (TEST.to_owned(), peer.to_owned());
    RefusalInfo { test, node, sentence, counter_offer_octets, ..RefusalInfo::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It had no number, and no offer.
    #[test]
    fn a_refusal_by_the_receivers_memory_says_what_is_asked_what_is_left_and_what_would_fit() {
        let short = Shortage { asked_octets: 12_400_000, left_octets: 3_000_000, room_octets: 450_000 };
        let info = of_peer("n2", 600_000, short);
        assert_eq!((info.test.as_str(), info.node.as_str()), (TEST, "n2"));
        assert_eq!(info.counter_offer_octets, 450_000);
        for part in ["takes 12 MB of memory on n2", "3000 kB are left", "room for 450000 octets would fit"] {
            assert!(info.sentence.contains(part), "{part}: {}", info.sentence);
        }
        assert_eq!(of_peer("n2", 1, short).counter_offer_octets, 1, "the unit itself would fit");
        let none = of_peer("n2", 1, Shortage { room_octets: 0, ..short });
        assert!(none.sentence.contains("nothing would fit") && none.counter_offer_octets == 0);
        let unknown = of_peer("n2", 1, Shortage::default()).sentence;
        assert!(unknown.contains("n2 has no memory left") && !unknown.contains("0 kB"), "{unknown}");
    }
}
