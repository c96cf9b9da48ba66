//! Channels whose program takes their frames itself, from a queue that the kernel fills.

use super::Node;
use crate::io::{ChannelId, PortId, ReaderCounts};
use crate::segment::Segment;
use rota_medium::door::DataFacts;

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
    /// The facts of the frames of a channel that is received here; none across segments, nor where the medium
    /// wants to see them.
    pub fn facing(&self, channel: ChannelId) -> Option<Facing> {
        let port = self.port_of(channel)?;
        let medium = self.port_at(port)?.medium();
        let (hop, label) = self.line_of(channel).channels.incoming_label(channel)?;
        let facts = medium.data_facts(hop, label)?;
        let fragment_octets = medium.settings().link.framing.unit_payload_max() as u32;
        Some(Facing { port, facts, fragment_octets, one_clock: medium.shares_clock(hop) })
    }

    /// The program of such a channel counts so far.
    pub fn take_counts(&mut self, channel: ChannelId, counts: &ReaderCounts) {
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
