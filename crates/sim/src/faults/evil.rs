//! Frames that somebody makes who should not: without the key, with it, or by playing old ones again.

use super::happened::Happened;
use super::script::{Aim, Fault};
use crate::engine::Stream;
use crate::media::Frame;
use rota_contract::NodeId;
use rota_proto::Settings;
use rota_wire::bodies::StationState;
use rota_wire::{
    Announce, Claim, Generation, Key, Kind, LinkHeader, MacAddr, ModeNotice, PayloadKind, Switch, emit_frame,
};
use std::collections::{BTreeSet, VecDeque};

/// Old frames that are remembered.
const MEMORY: usize = 512;

/// A frame that nobody should have sent, and where it comes in.
#[derive(Clone, Debug)]
pub enum Injected {
    /// Handed over at a port of the medium; the port behind all stations is a stranger's.
    Sent {
        /// Which port.
        from: usize,
        /// The frame.
        frame: Frame,
    },
    /// Whole at a station.
    Arrived {
        /// Which.
        to: usize,
        /// The frame.
        frame: Frame,
        /// It says what nobody ever said; else it was true once.
        lie: bool,
    },
}

/// Makes such frames.
#[derive(Debug)]
pub struct Evil {
    random: Stream,
    seen: VecDeque<(usize, Frame)>,
    /// All that was forged: with the same bit flipped once more it would be a sound frame again. A host that
    /// was paused takes its queue long afterwards.
    forged: BTreeSet<Frame>,
    seq: u64,
}

impl Evil {
    /// Somebody who has seen nothing yet.
    pub fn new(random: Stream) -> Self {
        Self { random, seen: VecDeque::with_capacity(MEMORY), forged: BTreeSet::new(), seq: 1 << 40 }
    }

    /// A frame that can be played again later; one in some is remembered, so that old ones stay.
    pub fn remember(&mut self, to: usize, frame: &Frame) {
        if self.forged.contains(frame) {
            return;
        }
        if self.seen.len() < MEMORY {
            self.seen.push_back((to, frame.clone()));
        } else if self.random.below(16) == 0 {
            self.seen.pop_front();
            self.seen.push_back((to, frame.clone()));
        }
    }

    /// The frames that one beat of a fault sends among the stations of a segment, each by its port and its
    /// address, if it is one that needs no key and no part in a station. `targets` says whom it meets; the
    /// port `stranger` is no station's.
    pub fn inject(
        &mut self,
        fault: &Fault,
        settings: &Settings,
        stations: &[(usize, MacAddr)],
        stranger: usize,
        targets: &mut Stream,
    ) -> Option<(Happened, Injected)> {
        let count = stations.len();
        let to = targets.below(count as u64) as usize;
        let of = |host: &usize| stations.iter().position(|(at, _)| at == host);
        let other = |host| stations[if to == host { (to + 1) % count } else { to }].1;
        match fault {
            Fault::Babble { host, octets, .. } => {
                let place = of(host)?;
                let frame = ordinary(other(place), stations[place].1, *octets);
                Some((Happened::Babbled, Injected::Sent { from: *host, frame }))
            }
            Fault::Forge { .. } => {
                let from = targets.below(count as u64) as usize;
                let frame = self.forge(settings, stations[to].1, stations[from].1);
                Some((Happened::Forged, Injected::Arrived { to: stations[to].0, frame, lie: true }))
            }
            Fault::Replay { .. } => {
                let (to, frame) = self.replay()?;
                Some((Happened::Replayed, Injected::Arrived { to, frame, lie: false }))
            }
            Fault::Spoof { host, to: aim, .. } => {
                let place = of(host)?;
                let to = match aim {
                    Aim::All => MacAddr::BROADCAST,
                    Aim::One => other(place),
                    Aim::Itself => stations[place].1,
                };
                let mut frame = ordinary(to, stations[place].1, 60).to_vec();
                if *aim == Aim::All {
                    frame[12..14].copy_from_slice(&settings.ether_type.to_be_bytes());
                }
                Some((Happened::Spoofed, Injected::Sent { from: stranger, frame: frame.into() }))
            }
            Fault::Flood { octets, broadcast } => {
                let to = if *broadcast { MacAddr::BROADCAST } else { stations[to].1 };
                let frame = ordinary(to, MacAddr([2, 0x46, 0x4c, 0x4f, 0x4f, 1]), *octets);
                Some((Happened::Flooded, Injected::Sent { from: stranger, frame }))
            }
            _ => None,
        }
    }

    /// An old frame, and who got it then.
    fn replay(&mut self) -> Option<(usize, Frame)> {
        let at = self.random.below(self.seen.len() as u64) as usize;
        self.seen.get(at).cloned()
    }

    /// A frame that looks like ours and has no sound tag: an old one with bits flipped, or random octets.
    fn forge(&mut self, settings: &Settings, to: MacAddr, from: MacAddr) -> Frame {
        let octets = 60 + self.random.below(200) as usize;
        let mut frame: Vec<u8> = match self.replay() {
            Some((_, old)) if self.random.below(2) == 0 => old.to_vec(),
            _ => (0..octets).map(|_| self.random.draw() as u8).collect(),
        };
        // An old one may have been cut on its way.
        frame.resize(frame.len().max(60), 0);
        frame[..6].copy_from_slice(&to.0);
        frame[6..12].copy_from_slice(&from.0);
        frame[12..14].copy_from_slice(&settings.ether_type.to_be_bytes());
        // Inside the link header, so that the tag cannot stand.
        let at = 15 + self.random.below(27) as usize;
        frame[at] ^= 1 << self.random.below(8);
        if self.random.below(2) == 0 {
            frame[14] = 0x11;
        }
        let frame: Frame = frame.into();
        self.forged.insert(frame.clone());
        frame
    }

    /// A well-made frame under the segment's key that says what is not so. `wrap`: counters at their end.
    pub(crate) fn insider(
        &mut self,
        settings: &Settings,
        secret: &Key,
        station: u16,
        from: MacAddr,
        wrap: bool,
    ) -> Frame {
        let key = secret.derive("rota 2026 bootstrap frames", [settings.segment.to_be_bytes()].iter());
        let mut frame = [0u8; 1514];
        let high = if wrap { u32::MAX - self.random.below(3) as u32 } else { self.random.below(64) as u32 };
        let generation = Generation { counter: high, station };
        let body = &mut frame[42..];
        let mode_epoch = high;
        let nonce = self.random.draw();
        let (trt_ns, rate_bps) = (settings.trt.as_nanos() as u32, settings.link.rate.as_bps());
        let (kind, octets) = match self.random.below(4) {
            0 => (Kind::Claim, Claim { generation, mode_epoch }.emit(body)),
            1 => (Kind::Mode, ModeNotice { mode_epoch, ring: self.random.below(2) == 0 }.emit(body)),
            2 => {
                let mut said = Announce::new(NodeId(9), nonce, 1, StationState::Plain, "evil");
                (said.mode_epoch, said.trt_ns, said.rate_bps) = (mode_epoch, trt_ns, rate_bps);
                said.settings = settings.digest();
                (Kind::Announce, said.emit(body))
            }
            _ => {
                let settings = settings.digest();
                (Kind::Switch, Switch { mode_epoch, nonce, trt_ns, rate_bps, settings }.emit(body))
            }
        };
        self.seq += 1;
        let header = LinkHeader {
            kind,
            key_epoch: 0,
            payload: PayloadKind::None,
            source: station,
            segment: settings.segment,
            incarnation: 0xe0e1_e0e1,
            generation: Generation::default(),
            seq: self.seq,
        };
        let length =
            emit_frame(&mut frame, MacAddr::BROADCAST, from, settings.ether_type, &header, octets, &key);
        Frame::from(&frame[..length])
    }
}

fn ordinary(to: MacAddr, from: MacAddr, octets: u16) -> Frame {
    let mut frame = vec![0xa5u8; usize::from(octets.max(60))];
    frame[..6].copy_from_slice(&to.0);
    frame[6..12].copy_from_slice(&from.0);
    frame[12..14].copy_from_slice(&[8, 0]);
    frame.into()
}
