//! Frames of this end that are ready to leave, written when the port asks for them.

use super::Link;
use crate::door::{Frame, Grant, Way};
use crate::sealing::BODY;
use crate::sealing::{self, Head};
use rota_units::Instant;
use rota_wire::bodies::StationState;
use rota_wire::{Announce, Generation, Kind, MacAddr, PayloadKind};

/// A frame to write. Values of the moment are filled in when it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    Hello,
    /// A hello that answers another boot of the peer, and does not stand for this end's own answer.
    Answer {
        to: MacAddr,
        nonce: u64,
        /// The nonce that this boot has to answer.
        challenge: u64,
    },
    Leaving,
    /// The port's own frames, up to its next mark.
    Ports,
}

impl Link {
    /// Writes the next waiting frame, or says that the port's own ones have their turn.
    pub fn write_frame(&mut self, now: Instant, frame: &mut [u8]) -> Option<Frame> {
        let (to, said) = match self.out.outbox.pop_front()? {
            Pending::Ports => return Some(Frame::Ports),
            Pending::Hello => (MacAddr::BROADCAST, self.hello(now, self.state())),
            Pending::Leaving => (MacAddr::BROADCAST, self.hello(now, StationState::Leaving)),
            Pending::Answer { to, nonce, challenge } => {
                let mut said = self.hello(now, self.state());
                (said.answers, said.nonce) = (nonce, challenge);
                (to, said)
            }
        };
        let octets = said.emit(&mut frame[BODY..]);
        let len = self.seal(frame, to, Kind::Announce, PayloadKind::None, octets);
        self.occupy(now, len);
        Some(Frame::Written(len))
    }

    /// Writes this station's hello, at the turn of the port's own frames.
    pub fn write_introduction(&mut self, now: Instant, frame: &mut [u8]) -> Option<u16> {
        let octets = self.hello(now, self.state()).emit(&mut frame[BODY..]);
        Some(self.seal(frame, MacAddr::BROADCAST, Kind::Announce, PayloadKind::None, octets))
    }

    /// Completes a frame of the port whose body stands in the buffer, and says how long it is. `None` when
    /// its receiver is gone.
    pub fn seal_for_port(&mut self, frame: &mut [u8], way: Way, kind: Kind, octets: usize) -> Option<u16> {
        let to = match way {
            Way::All => MacAddr::BROADCAST,
            Way::Station(to) | Way::Exactly { station: to, .. } => self.members.numbered(to)?.mac,
        };
        Some(self.seal(frame, to, kind, PayloadKind::None, octets))
    }

    /// The same for data that leaves under a grant.
    pub fn seal_data(
        &mut self,
        frame: &mut [u8],
        to: MacAddr,
        _: &Grant,
        payload: PayloadKind,
        octets: usize,
    ) -> Option<u16> {
        let to = self.members.numbered(to)?.mac;
        Some(self.seal(frame, to, Kind::Data, payload, octets))
    }

    /// Writes the frame of [`Self::will_name`] and returns its length; `None` while there is none.
    pub fn write_will(&self, frame: &mut [u8]) -> Option<usize> {
        self.will_name()?;
        let (kind, payload, generation) = (Kind::Will, PayloadKind::None, Generation::default());
        let head = Head { kind, payload, key_epoch: 0, generation, seq: 0 };
        // It is counted when it leaves, which is behind the end of this station.
        let mut tally = self.tally;
        let by = (&self.own, &self.settings);
        let len = sealing::seal(by, &mut tally, frame, MacAddr::BROADCAST, &head, 0, &self.key);
        Some(usize::from(len))
    }

    fn seal(
        &mut self,
        frame: &mut [u8],
        to: MacAddr,
        kind: Kind,
        payload: PayloadKind,
        octets: usize,
    ) -> u16 {
        self.own.frame_seq += 1;
        let (generation, seq) = (Generation::default(), self.own.frame_seq);
        let head = Head { kind, payload, key_epoch: 0, generation, seq };
        sealing::seal((&self.own, &self.settings), &mut self.tally, frame, to, &head, octets, &self.key)
    }

    fn hello(&mut self, now: Instant, state: StationState) -> Announce {
        let me = &self.own.me;
        let mut said = Announce::new(me.node_id, self.own.nonce, me.boot_id, state, &me.name);
        said.trt_ns = self.settings.trt.as_nanos() as u32;
        said.rate_bps = self.settings.link.rate.as_bps();
        (said.settings, said.answers) = (self.digest, self.own.answers);
        said.llc_address = self.settings.llc_address;
        if self.mismatches.states(now) {
            said.stated = Some(self.settings.stated());
        }
        said
    }
}
