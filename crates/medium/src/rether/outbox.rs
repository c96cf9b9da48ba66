//! Frames of ours that are ready to leave, written when the parent asks for them.
//!
//! Fulfils RETHER-2.4-6.

use super::{Mode, Rether, Stamp};
use crate::door::StationId;
use crate::door::{Frame, Grant, Way};
use crate::sealing::{self, BODY, Head};
use rota_admission::SegmentParams;
use rota_units::Instant;
use rota_wire::bodies::StationState;
use rota_wire::{
    Announce, Claim, ClaimGrant, ETHERNET_HEADER_OCTETS, Generation, JoinAnswer, Kind, MacAddr, ModeNotice,
    Nack, PayloadKind, Switch, SwitchAck, TAG_OCTETS, Token,
};

/// A frame to write. The parts that depend on the moment are filled in when it is written.
#[derive(Clone, Debug)]
pub(super) enum Pending {
    Announce,
    Leaving,
    /// An announcement to the one who asked whether this station lives.
    Proof {
        to: MacAddr,
        challenge: u64,
    },
    /// To everybody, or to an initiator that has missed it.
    Switch {
        to: MacAddr,
    },
    SwitchAck,
    Form {
        part: u8,
    },
    /// The token on the watch, for the first time or again.
    Token,
    TokenAck {
        to: StationId,
        stamp: Stamp,
    },
    List,
    Request {
        to: StationId,
    },
    Claim {
        generation: Generation,
    },
    ClaimGrant {
        to: MacAddr,
        generation: Generation,
        seen: Stamp,
    },
    Nack {
        to: MacAddr,
    },
    JoinAnswer {
        to: MacAddr,
        answer: JoinAnswer,
    },
    Mode,
    /// The plain mode that this station switches from.
    ModeBefore,
    /// Switch-to-CSMA under the key of the ring that ends.
    Dissolved {
        stamp: Stamp,
    },
    /// The port's own frames, up to its next mark.
    Ports,
}

/// What a visit is charged for this station's introduction: its frame with the longest name.
pub const ANNOUNCE_OCTETS: u16 = (BODY + Announce::OCTETS_MAX + TAG_OCTETS) as u16;
// Admission counts no Ethernet header, which is part of a link's framing.
const _: () =
    assert!(ANNOUNCE_OCTETS as u64 == SegmentParams::ANNOUNCE_OCTETS + ETHERNET_HEADER_OCTETS as u64);
/// Which key a frame is under and what its header says.
enum Proof {
    /// The segment key.
    Bootstrap,
    /// The ring's key, with the token's name.
    Ring(Stamp),
    /// The ring's key, with the sender's own counter: for what no token orders.
    Counted,
    /// The key of the ring that this station has dissolved.
    Farewell(Stamp),
}

/// The kind of a frame, and its proof.
struct Heading {
    kind: Kind,
    payload: PayloadKind,
    proof: Proof,
}

impl Heading {
    /// That of a frame that carries its kind's fields alone.
    const fn bare(kind: Kind, proof: Proof) -> Self {
        Self { kind, payload: PayloadKind::None, proof }
    }
}

impl Rether {
    /// Writes the next waiting frame, or says that the port's own ones have their turn. `None` when nothing
    /// waits or what waited has become pointless.
    pub fn write_frame(&mut self, now: Instant, frame: &mut [u8]) -> Option<Frame> {
        while let Some(pending) = self.out.outbox.pop_front() {
            if matches!(pending, Pending::Ports) {
                return Some(Frame::Ports);
            }
            if let Some(octets) = self.write(now, &pending, frame) {
                return Some(Frame::Written(octets));
            }
        }
        None
    }

    /// Writes this station's introduction, at the turn of the port's own frames.
    pub fn write_introduction(&mut self, now: Instant, frame: &mut [u8]) -> Option<u16> {
        self.write(now, &Pending::Announce, frame)
    }

    fn write(&mut self, now: Instant, pending: &Pending, frame: &mut [u8]) -> Option<u16> {
        let body = &mut frame[BODY..];
        let all = MacAddr::BROADCAST;
        let (to, kind, proof, octets) = match pending {
            Pending::Announce | Pending::Leaving | Pending::Proof { .. } => {
                let (to, said) = self.announcement_of(now, pending);
                (to, Kind::Announce, Proof::Bootstrap, said.emit(body))
            }
            Pending::Switch { to } => (*to, Kind::Switch, Proof::Bootstrap, self.switch_body()?.emit(body)),
            Pending::SwitchAck => {
                let (to, ack) = self.switch_ack_body()?;
                (to, Kind::SwitchAck, Proof::Bootstrap, ack.emit(body))
            }
            Pending::Form { part } => (all, Kind::Form, Proof::Bootstrap, self.form_body(*part)?.emit(body)),
            Pending::Token => return self.write_token(now, frame),
            Pending::TokenAck { to, stamp } => {
                (self.members.get(*to)?.mac, Kind::TokenAck, Proof::Ring(*stamp), 0)
            }
            Pending::List => {
                let (token, stamp) = self.list_body(now)?;
                (all, Kind::List, Proof::Ring(stamp), token.emit(body))
            }
            Pending::Request { to } => (self.members.get(*to)?.mac, Kind::Request, Proof::Counted, 0),
            Pending::Claim { generation } => {
                let round = self.mode.claim_mut().filter(|round| round.generation == *generation);
                round?.sent = true;
                let claim = Claim { generation: *generation, mode_epoch: self.mode_epoch };
                (all, Kind::Claim, Proof::Bootstrap, claim.emit(body))
            }
            Pending::ClaimGrant { to, generation, seen } => {
                let (key_epoch, list) = (self.keys.current_epoch(), self.mode.list().copied());
                let (seen_seq, seen) = (seen.seq, seen.generation);
                let grant = ClaimGrant { generation: *generation, seen, seen_seq, key_epoch, list };
                (*to, Kind::ClaimGrant, Proof::Bootstrap, grant.emit(body))
            }
            Pending::Nack { to } => {
                let nack = Nack { generation: self.fence.seen.generation, mode_epoch: self.mode_epoch };
                (*to, Kind::Nack, Proof::Bootstrap, nack.emit(body))
            }
            Pending::JoinAnswer { to, answer } => {
                (*to, Kind::JoinAnswer, Proof::Bootstrap, answer.emit(body))
            }
            Pending::Dissolved { stamp } => {
                let notice = ModeNotice { mode_epoch: self.mode_epoch, ring: false };
                (all, Kind::Mode, Proof::Farewell(*stamp), notice.emit(body))
            }
            Pending::Mode | Pending::ModeBefore => {
                (all, Kind::Mode, Proof::Bootstrap, self.notice_of(pending)?.emit(body))
            }
            Pending::Ports => return None,
        };
        self.seal(frame, to, Heading::bare(kind, proof), octets)
    }

    pub(super) fn in_ring(&self) -> bool {
        self.mode.is_ring()
    }

    /// Completes a frame of the port whose body stands in the buffer, and says how long it is. `None` when
    /// its receiver or its key is gone.
    pub fn seal_for_port(&mut self, frame: &mut [u8], way: Way, kind: Kind, octets: usize) -> Option<u16> {
        let proof = if self.in_ring() { Proof::Counted } else { Proof::Bootstrap };
        let to = match way {
            Way::All => MacAddr::BROADCAST,
            Way::Station(to) => self.members.numbered(to)?.mac,
            Way::Exactly { station, group } => {
                let to = self.members.numbered(station)?.mac;
                let to = if group { to.own_group() } else { to };
                return self.seal_to(frame, to, Heading::bare(kind, proof), octets);
            }
        };
        self.seal(frame, to, Heading::bare(kind, proof), octets)
    }

    /// The same for data that leaves under a grant.
    pub fn seal_data(
        &mut self,
        frame: &mut [u8],
        to: MacAddr,
        grant: &Grant,
        payload: PayloadKind,
        octets: usize,
    ) -> Option<u16> {
        let to = self.members.numbered(to)?.mac;
        let proof = Proof::Ring(Stamp { generation: grant.stamp.0, seq: grant.stamp.1 });
        self.seal(frame, to, Heading { kind: Kind::Data, payload, proof }, octets)
    }

    /// Completes a frame whose body stands in the buffer. `None` when its key is gone.
    fn seal(&mut self, frame: &mut [u8], to: MacAddr, heading: Heading, octets: usize) -> Option<u16> {
        self.seal_to(frame, self.others.contested.way_to(to), heading, octets)
    }

    /// The same to this address, contested or not.
    fn seal_to(&mut self, frame: &mut [u8], to: MacAddr, heading: Heading, octets: usize) -> Option<u16> {
        let Heading { kind, payload, proof } = heading;
        let (key_epoch, key, stamp) = match proof {
            Proof::Bootstrap => {
                self.own.frame_seq += 1;
                // A station that runs a ring says which, for those who run another and cannot read its
                // frames; all others say how far generations have got, for those who have forgotten.
                let generation = self.fence.seen.generation;
                (0, self.keys.bootstrap(), Stamp { generation, seq: self.own.frame_seq })
            }
            Proof::Counted => {
                let (epoch, key) = self.keys.current()?;
                self.own.frame_seq += 1;
                let generation = Generation::default();
                (epoch, key, Stamp { generation, seq: self.own.frame_seq })
            }
            Proof::Farewell(stamp) => {
                let (epoch, key) = self.fence.left.key.as_ref()?;
                (*epoch, key, stamp)
            }
            Proof::Ring(stamp) => {
                let (epoch, key) = self.keys.current()?;
                (epoch, key, stamp)
            }
        };
        let head = Head { kind, payload, key_epoch, generation: stamp.generation, seq: stamp.seq };
        let by = (&self.own, &self.settings);
        Some(sealing::seal(by, &mut self.tally, frame, to, &head, octets, key))
    }

    fn announcement_of(&mut self, now: Instant, pending: &Pending) -> (MacAddr, Announce) {
        match pending {
            Pending::Proof { to, challenge } => {
                let mut said = self.announcement(self.state());
                said.answers = *challenge;
                (*to, said)
            }
            Pending::Leaving => (MacAddr::BROADCAST, self.announcement(StationState::Leaving)),
            _ => {
                let mut said = self.announcement(self.state());
                // An announcement that proves or warns has the name, for stations that do not know it yet.
                if said.answers == 0 && self.others.mismatches.states(now) {
                    said.stated = Some(self.settings.stated());
                }
                (MacAddr::BROADCAST, said)
            }
        }
    }

    fn announcement(&self, state: StationState) -> Announce {
        let mut said =
            Announce::new(self.own.me.node_id, self.own.nonce, self.own.me.boot_id, state, &self.own.me.name);
        said.mode_epoch = self.mode_epoch;
        said.trt_ns = self.settings.trt.as_nanos() as u32;
        said.rate_bps = self.settings.link.rate.as_bps();
        (said.settings, said.answers) = (self.digest, self.own_sign().unwrap_or(self.own.answers));
        said.llc_address = self.settings.llc_address;
        said
    }

    fn switch_body(&self) -> Option<Switch> {
        if !matches!(self.mode, Mode::Initiating(_)) {
            return None;
        }
        Some(Switch {
            mode_epoch: self.mode_epoch,
            nonce: self.own.nonce,
            trt_ns: self.settings.trt.as_nanos() as u32,
            rate_bps: self.settings.link.rate.as_bps(),
            settings: self.digest,
        })
    }

    fn switch_ack_body(&self) -> Option<(MacAddr, SwitchAck)> {
        let Mode::Yielding(state) = &self.mode else { return None };
        let to = self.members.get(state.initiator)?.mac;
        let ack =
            SwitchAck { mode_epoch: self.mode_epoch, initiator: state.initiator, nonce: self.own.nonce };
        Some((to, ack))
    }

    fn list_body(&self, now: Instant) -> Option<(Token, Stamp)> {
        let hold = self.mode.hold()?;
        let mut token = hold.token;
        token.residual_ns = self.residual(now).as_nanos() as u32;
        Some((token, hold.stamp))
    }

    /// The token on the watch. Its residual time is set when it first leaves; sent again, it is the
    /// same token.
    fn write_token(&mut self, now: Instant, frame: &mut [u8]) -> Option<u16> {
        let residual = self.residual(now).as_nanos() as u32;
        let watch = self.mode.watch_mut()?;
        if !watch.written {
            watch.written = true;
            watch.token.residual_ns = residual;
        }
        let (stamp, to) = (watch.stamp, watch.to);
        let mut mac = self.members.get(to)?.mac;
        if let Some(addressee) = &mut watch.token.audit {
            // It goes to all, who measure how long it is kept.
            (*addressee, mac) = (mac, MacAddr::BROADCAST);
            self.counters.tokens_audited += 1;
        }
        let octets = watch.token.emit(&mut frame[BODY..]);
        self.seal(frame, mac, Heading::bare(Kind::Token, Proof::Ring(stamp)), octets)
    }
}
