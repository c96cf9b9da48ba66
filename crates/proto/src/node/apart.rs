//! Channels whose program takes their frames itself, from a queue that the kernel fills.

use super::Node;
use crate::across::Arrival;
use crate::io::{ChannelId, PortId, ReaderCounts};
use crate::rcap::EntryId;
use crate::segment::Segment;
use rota_medium::door::DataFacts;
use rota_wire::PayloadKind;

/// A channel that comes here, for the one who sorts its frames out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facing {
    /// Its port.
    pub port: PortId,
    /// What its frames state, and their keys.
    pub facts: DataFacts,
    /// Where fragments begin in their unit: each at a multiple of this.
    pub fragment_octets: u32,
    /// The sender's clock is this host's.
    pub one_clock: bool,
}

impl Node {
    /// The facts of the frames of a channel that is received here; none where the medium wants to see them,
    /// and of a channel to several receivers. Those of one across segments are known when its program is
    /// asked, and hold until it goes by another path or contract.
    pub fn facing(&self, channel: ChannelId) -> Option<Facing> {
        if let Some(end) = self.end_across(channel) {
            let Arrival { from, local_id, octets, .. } = end.arrival?;
            let medium = self.port_at(from.port)?.medium();
            let facts = medium.data_facts(from.hop, PayloadKind::Rtip, local_id)?;
            return Some(Facing { port: from.port, facts, fragment_octets: octets, one_clock: false });
        }
        let port = self.port_of(channel)?;
        let medium = self.port_at(port)?.medium();
        let (hop, label) = self.line_of(channel).channels.incoming_label(channel)?;
        let facts = medium.data_facts(hop, PayloadKind::Unit, label)?;
        let fragment_octets = medium.settings().link.framing.unit_payload_max() as u32;
        Some(Facing { port, facts, fragment_octets, one_clock: medium.shares_clock(hop) })
    }

    /// How the packets of a channel will come here whose program is asked. Its local id is given now, so that
    /// the kernel can sort out the first packet already.
    pub(super) fn arrival_of(&mut self, entry: EntryId) -> Option<Arrival> {
        let (before, local_id, octets) = self.across.as_mut()?.rcap.name_arrival(entry)?;
        let octets = u32::try_from(octets.get()).unwrap_or(u32::MAX);
        let from = self.way_to(before)?;
        // Until the end goes, on whatever path its packets come then.
        self.across.as_mut()?.rcap.face(local_id, true);
        Some(Arrival { from, local_id, octets, is_apart: false })
    }

    /// The program of such a channel takes its frames itself, from the first one on: none that comes by the
    /// node counts before it has.
    pub fn take_apart(&mut self, channel: ChannelId) {
        let end = self.across.as_mut().and_then(|across| across.ends.get_mut(&channel));
        match end {
            Some(end) => {
                if let Some(arrival) = &mut end.arrival {
                    arrival.is_apart = true;
                }
                self.hops.take_apart(channel);
            }
            None => self.take_counts(channel, &ReaderCounts::default()),
        }
    }

    /// The program of such a channel counts so far. Its frames are not among the packets of the port, which
    /// are this node's own count.
    pub fn take_counts(&mut self, channel: ChannelId, counts: &ReaderCounts) {
        if let Some(has_waited) = self.hops.take_counts(channel, counts) {
            if has_waited {
                self.count_arrivals();
            }
            return;
        }
        let line = self.line_mut(channel);
        let segment = Segment::of(&line.port);
        line.channels.take_counts(channel, counts, segment);
    }

    /// Frames of a channel have come of which its program has not heard yet: the word that it is open was
    /// lost, but only an open channel carries data.
    pub fn frames_came(&mut self, channel: ChannelId) {
        self.line_mut(channel).channels.frames_came(channel);
    }
}
