//! A frame arrives: checked, proven, attributed, and only then believed.

use super::Link;
use crate::door::{DataFacts, FrameVerdict};
use crate::event::Arrived;
use crate::members::Announced;
use crate::mismatch::Difference;
use rota_contract::Mismatch;
use rota_units::Instant;
use rota_wire::{
    Announce, ChannelName, FrameView, Generation, Kind, LINK_VERSION, MacAddr, Malformed, PayloadKind, verify,
};

impl Link {
    /// The facts of the data frames with this label, or local id, from the peer. They hold as long as it is
    /// the peer: each boot of it, and each meeting, ends its channels. Frames that do not come here raise its
    /// counter all the same, and its hellos, which do come, show that it lives.
    pub fn data_facts(&self, from: MacAddr, payload: PayloadKind, label: u16) -> Option<DataFacts> {
        let peer = self.member_at(from)?;
        let incarnation = peer.incarnation;
        Some(DataFacts {
            ether_type: self.settings.ether_type,
            from,
            source: peer.station,
            segment: self.settings.segment,
            incarnation,
            key_epoch: 0,
            generation: Generation::default(),
            payload,
            label,
            counter: peer.frame_seq,
            header_key: *self.key.header_key(),
            channel_key: self.key.channel_key(ChannelName { incarnation, payload, label }),
        })
    }

    /// One frame. Bad ones are counted, never an error.
    pub fn on_frame<'a>(&mut self, now: Instant, data: &'a [u8]) -> Arrived<'a> {
        self.take_verdict();
        let view = match FrameView::parse(data, self.settings.ether_type) {
            Ok(view) => view,
            Err(why) => {
                self.on_malformed(now, why, data);
                return Arrived::Nothing;
            }
        };
        let (header, from, own) = (*view.header(), view.source_mac(), self.own.me.mac);
        let introduces = header.kind == Kind::Announce;
        if header.segment != self.settings.segment {
            let what = Difference::new(Mismatch::Segment, self.settings.segment, header.segment);
            if introduces && from != own {
                self.mismatches.unproven(now, from, what);
            }
            self.judge(FrameVerdict::OtherSegment);
            return Arrived::Nothing;
        }
        if from == own {
            self.judge(FrameVerdict::OwnAddress);
            self.mismatches.unproven(now, own, Difference::new(Mismatch::OwnAddress, 0_u64, 0_u64));
            return Arrived::Nothing;
        }
        let to = view.destination_mac();
        if to != own && to != MacAddr::BROADCAST && to != own.own_group() {
            self.judge(FrameVerdict::Foreign);
            return Arrived::Nothing;
        }
        if header.key_epoch != 0 || !verify(&view, &self.key) {
            self.judge(FrameVerdict::Unproven);
            if introduces {
                self.mismatches.unproven(now, from, Difference::new(Mismatch::Key, 0_u64, 0_u64));
            }
            return Arrived::Nothing;
        }
        self.tally.count_heard(header.kind.class(), data.len());
        if let Some(peer) = self.members.by_mac_mut(from) {
            peer.received.add(data.len() as u64);
        }
        self.on_proven(now, &view).unwrap_or_else(|| {
            self.judge(FrameVerdict::Malformed);
            Arrived::Nothing
        })
    }

    /// A frame that cannot be read.
    fn on_malformed(&mut self, now: Instant, why: Malformed, data: &[u8]) {
        self.judge(FrameVerdict::Malformed);
        let from = data.get(6..12).and_then(|octets| octets.try_into().ok()).map(MacAddr);
        if let (Malformed::Version(theirs), Some(from)) = (why, from)
            && from != self.own.me.mac
        {
            self.mismatches.unproven(now, from, Difference::new(Mismatch::Link, LINK_VERSION, theirs));
        }
    }

    /// A frame under the segment's key. `None` when the body is not what the kind promises.
    fn on_proven<'a>(&mut self, now: Instant, view: &FrameView<'a>) -> Option<Arrived<'a>> {
        let (header, body, mac) = (view.header(), view.body(), view.source_mac());
        match header.kind {
            Kind::Announce => {
                self.on_hello(now, header, mac, &Announce::parse(body).ok()?);
                return Some(Arrived::Nothing);
            }
            Kind::Will => {
                self.on_will(now, mac, header, body);
                return Some(Arrived::Nothing);
            }
            Kind::Data | Kind::Signal | Kind::Report | Kind::Circuit => {}
            // A RETHER station's, or recorded on a ring. The announcement of one that is there names it.
            _ => {
                self.judge(FrameVerdict::Replayed);
                return Some(Arrived::Nothing);
            }
        }
        // Of the peer's present boot, and newer than all before; of another one it says nothing here.
        let is_peer = self.member_at(mac).is_some_and(|peer| peer.incarnation == header.incarnation);
        if !is_peer || self.members.heard(now, mac, header.incarnation, header.seq) != Announced::Known {
            self.judge(FrameVerdict::Replayed);
            return Some(Arrived::Nothing);
        }
        if view.destination_mac() != MacAddr::BROADCAST {
            self.note_alive(now);
        }
        Some(match header.kind {
            Kind::Data => Arrived::Data(mac, (header.generation, header.seq), header.payload, body),
            Kind::Signal => Arrived::Signal(mac, body),
            Kind::Circuit => Arrived::Circuit(mac, body),
            _ => Arrived::Report(mac, body),
        })
    }

    /// Counts what was found about a frame; what is found first is the frame's verdict.
    pub fn judge(&mut self, verdict: FrameVerdict) {
        self.counters.judge(verdict);
        if self.out.verdict == FrameVerdict::Taken {
            self.out.verdict = verdict;
        }
    }

    /// The newest frame's verdict; the next frame begins with none.
    pub fn take_verdict(&mut self) -> FrameVerdict {
        core::mem::take(&mut self.out.verdict)
    }
}
