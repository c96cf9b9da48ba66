//! A frame arrives: checked, proven, attributed, and only then believed.

use super::behind::is_well_asked;
use super::contested::Sign;
use super::{Mode, Rether, Stamp};
use crate::door::{FrameVerdict, StationId};
use crate::event::Arrived;
use crate::members::Announced;
use crate::mismatch::Difference;
use crate::sealing::JUMP_MAX;
use rota_contract::Mismatch;
use rota_units::Instant;
use rota_wire::bodies::StationState;
use rota_wire::{
    Announce, Claim, ClaimGrant, Form, FrameView, JoinAnswer, Kind, LINK_VERSION, LinkHeader, MAX_STATIONS,
    MacAddr, Malformed, ModeNotice, Nack, PayloadKind, Switch, SwitchAck, Token, Verdict, verify,
};

/// The source address of an Ethernet frame.
fn source_of(frame: &[u8]) -> Option<MacAddr> {
    frame.get(6..12)?.try_into().ok().map(MacAddr)
}

/// Whether a frame under a ring's key has its sender's own counter: no token orders it.
const fn is_counted(kind: Kind) -> bool {
    matches!(kind, Kind::Request | Kind::Signal | Kind::Report | Kind::Circuit)
}

impl Rether {
    /// One frame. Bad ones are counted, never an error.
    pub fn on_frame<'a>(&mut self, now: Instant, at: Option<Instant>, data: &'a [u8]) -> Arrived<'a> {
        self.take_verdict();
        let view = match FrameView::parse(data, self.settings.ether_type) {
            Ok(view) => view,
            Err(why) => {
                self.on_malformed(now, why, data);
                return Arrived::Nothing;
            }
        };
        let header = *view.header();
        let introduces = header.kind == Kind::Announce;
        if header.segment != self.settings.segment {
            self.on_unproven(now, view.source_mac(), Sign::Forged);
            let what = Difference::new(Mismatch::Segment, self.settings.segment, header.segment);
            if introduces && view.source_mac() != self.own.me.mac {
                self.others.mismatches.unproven(now, view.source_mac(), what);
            }
            self.judge(FrameVerdict::OtherSegment);
            return Arrived::Nothing;
        }
        if view.source_mac() == self.own.me.mac {
            if header.kind == Kind::Will {
                self.on_own_will(now, &view);
            } else {
                self.judge(FrameVerdict::OwnAddress);
                let what = Difference::new(Mismatch::OwnAddress, 0_u64, 0_u64);
                self.others.mismatches.unproven(now, self.own.me.mac, what);
                self.on_own_name(now, &view);
            }
            return Arrived::Nothing;
        }
        if !self.is_for_us(view.destination_mac()) {
            self.judge(FrameVerdict::Foreign);
            return Arrived::Nothing;
        }
        if header.source > MAX_STATIONS {
            self.judge(FrameVerdict::Malformed);
            return Arrived::Nothing;
        }
        if !self.keys.proves(&view) {
            self.on_no_proof(now, &view);
            return Arrived::Nothing;
        }
        self.take_back_claim(now);
        self.tally.count_heard(header.kind.class(), data.len());
        (self.others.contested.astray.came_to, self.others.contested.astray.afresh) =
            (view.destination_mac(), false);
        if view.destination_mac() == self.own.me.mac.own_group() {
            self.on_group_address(now);
        }
        let arrived = if header.key_epoch == 0 {
            if let Some(member) = self.members.by_mac_mut(view.source_mac()) {
                member.received.add(data.len() as u64);
            }
            self.on_bootstrap_frame(now, &view)
        } else {
            self.on_ring_frame(now, at, &view, data.len())
        };
        arrived.unwrap_or_else(|| {
            self.judge(FrameVerdict::Malformed);
            Arrived::Nothing
        })
    }

    /// A frame that cannot be read.
    fn on_malformed(&mut self, now: Instant, why: Malformed, data: &[u8]) {
        self.judge(FrameVerdict::Malformed);
        let Some(from) = source_of(data) else { return };
        if let Malformed::Version(theirs) = why
            && from != self.own.me.mac
        {
            let what = Difference::new(Mismatch::Link, LINK_VERSION, theirs);
            self.others.mismatches.unproven(now, from, what);
        }
        if why != Malformed::ForeignEtherType {
            self.on_unproven(now, from, Sign::Forged);
        }
    }

    /// A frame from another sender with this station's address. If the frame is proven, its sender has the
    /// key and spends this station's frame counters. This station then continues behind that counter, as far
    /// as it may skip: otherwise the others would take its own frames for replays.
    fn on_own_name(&mut self, now: Instant, view: &FrameView<'_>) {
        self.contest_own(now, Sign::Forged);
        let header = view.header();
        let counted = header.key_epoch == 0 || is_counted(header.kind);
        let ahead = header.seq.saturating_sub(self.own.frame_seq);
        let ours = header.incarnation == self.own.incarnation && (1..=u64::from(JUMP_MAX)).contains(&ahead);
        if counted && ours && self.keys.proves(view) {
            self.own.frame_seq += self.others.budgets.skips.take(now, ahead);
        }
    }

    /// A frame whose tag is valid under no key of this station.
    fn on_no_proof(&mut self, now: Instant, view: &FrameView<'_>) {
        let header = view.header();
        // Each station of a ring that ends sends a notice. The first notice drops the ring's key here, and
        // the later ones are not from strangers.
        let farewell = self.fence.left.key.as_ref().filter(|(epoch, _)| *epoch == header.key_epoch);
        let known = header.kind == Kind::Mode && farewell.is_some_and(|(_, key)| verify(view, key));
        if !known {
            self.judge(FrameVerdict::Unproven);
            // Under a ring's key it may be one that this station has missed.
            let sign = if header.key_epoch == 0 { Sign::Forged } else { Sign::Repeated };
            self.on_unproven(now, view.source_mac(), sign);
        }
        if header.kind == Kind::Announce {
            let what = Difference::new(Mismatch::Key, 0_u64, 0_u64);
            self.others.mismatches.unproven(now, view.source_mac(), what);
        }
    }

    /// Frames under the segment key. `None` when the body is not what the kind promises.
    fn on_bootstrap_frame<'a>(&mut self, now: Instant, view: &FrameView<'a>) -> Option<Arrived<'a>> {
        let (header, body, mac) = (view.header(), view.body(), view.source_mac());
        let mut heard = self.members.heard(now, mac, header.incarnation, header.seq);
        if heard == Announced::Replay {
            heard = self.on_replay(now, view).unwrap_or(heard);
        }
        match heard {
            Announced::Replay => {
                self.judge(FrameVerdict::Replayed);
                return Some(Arrived::Nothing);
            }
            // Of a stranger only what introduces it, or names us with our own fresh nonce, is believed.
            // Outside a ring a stranger's claim is heard too: plain stations forget a ring they do not hear.
            Announced::New if !self.believes_stranger(header.kind) => {
                return Some(Arrived::Nothing);
            }
            Announced::New | Announced::Known => {}
        }
        if !self.mode.is_ring() {
            self.learn_generation(header.generation);
        }
        match header.kind {
            Kind::Announce => self.on_announce(now, header, mac, &Announce::parse(body).ok()?),
            Kind::Switch => self.on_switch(now, header.source, mac, &Switch::parse(body).ok()?),
            Kind::SwitchAck => self.on_switch_ack(now, header.source, mac, &SwitchAck::parse(body).ok()?),
            Kind::Form => {
                let known = heard == Announced::Known;
                self.on_form(now, mac, known, header.generation, &Form::parse(body).ok()?);
            }
            Kind::Mode => {
                let known = heard == Announced::Known;
                self.on_mode(now, mac, known, header.generation, ModeNotice::parse(body).ok()?);
            }
            Kind::Claim => self.on_claim(now, header.source, mac, &Claim::parse(body).ok()?),
            Kind::ClaimGrant => {
                self.on_grant(now, self.number_of(mac, header), &ClaimGrant::parse(body).ok()?);
            }
            Kind::Nack => self.on_nack(now, &Nack::parse(body).ok()?),
            Kind::JoinAnswer => {
                let answer = JoinAnswer::parse(body).ok().filter(is_well_asked)?;
                if answer.verdict == Verdict::Behind {
                    self.on_asked_behind(now, heard, mac, header, &answer);
                } else {
                    self.on_join_answer(now, mac, &answer);
                }
            }
            Kind::Signal => return Some(Arrived::Signal(mac, body)),
            Kind::Report => return Some(Arrived::Report(mac, body)),
            Kind::Circuit => return Some(Arrived::Circuit(mac, body)),
            _ => self.judge(FrameVerdict::Malformed),
        }
        Some(Arrived::Nothing)
    }

    /// Whose frame it is, by its address: it may have taken another number, or have been given one, that has
    /// not been heard of yet.
    fn number_of(&self, mac: MacAddr, header: &LinkHeader) -> StationId {
        self.members.numbered(mac).map_or(header.source, |member| member.station)
    }

    fn believes_stranger(&self, kind: Kind) -> bool {
        let introduces =
            matches!(kind, Kind::Announce | Kind::Switch | Kind::Form | Kind::Mode | Kind::JoinAnswer);
        introduces || (kind == Kind::Claim && !self.mode.is_ring())
    }

    /// Frames under a ring's key: only members of this ring made them.
    fn on_ring_frame<'a>(
        &mut self,
        now: Instant,
        at: Option<Instant>,
        view: &FrameView<'a>,
        octets: usize,
    ) -> Option<Arrived<'a>> {
        let (header, body, mac) = (view.header(), view.body(), view.source_mac());
        let genuine = self.members.get_mut(header.source).is_some_and(|member| {
            member.received.add(octets as u64);
            member.mac == mac && member.incarnation == header.incarnation
        });
        if !genuine || !self.mode.is_ring() {
            self.judge(FrameVerdict::Replayed);
            return Some(Arrived::Nothing);
        }
        // A frame that no token orders has the sender's own counter, strictly rising like that of its other
        // frames.
        if is_counted(header.kind)
            && self.members.heard(now, mac, header.incarnation, header.seq) == Announced::Replay
        {
            self.on_refused(now, mac, header.incarnation, header.seq);
            self.judge(FrameVerdict::Replayed);
            return Some(Arrived::Nothing);
        }
        let stamp = Stamp { generation: header.generation, seq: header.seq };
        match header.kind {
            Kind::Token => {
                let token = Token::parse(body).ok()?;
                match token.audit {
                    Some(to) if to != self.own.me.mac => self.overhear(at, header.source, to, stamp, &token),
                    _ => self.on_token(now, at, header.source, stamp, &token),
                }
            }
            Kind::TokenAck => self.on_token_ack(header.source, stamp),
            Kind::List => {
                let token = Token::parse(body).ok()?;
                self.on_list(now, at, stamp, &token);
                self.watch_master(at, header.source, stamp, &token);
            }
            Kind::Request => self.on_request(now, header.source, header.key_epoch),
            Kind::Mode => self.on_ring_mode(now, stamp.generation, ModeNotice::parse(body).ok()?),
            Kind::Will => self.on_will(now, view),
            Kind::Data => return Some(self.on_data(mac, stamp, header.payload, body)),
            Kind::Signal => return Some(Arrived::Signal(mac, body)),
            Kind::Report => return Some(Arrived::Report(mac, body)),
            Kind::Circuit => return Some(Arrived::Circuit(mac, body)),
            _ => self.judge(FrameVerdict::Malformed),
        }
        Some(Arrived::Nothing)
    }

    /// Receivers police: only the newest generation has the right to send.
    fn on_data<'a>(
        &mut self,
        from: MacAddr,
        stamp: Stamp,
        payload: PayloadKind,
        body: &'a [u8],
    ) -> Arrived<'a> {
        if stamp.generation < self.fence.seen.generation {
            self.judge(FrameVerdict::Policed);
            return Arrived::Nothing;
        }
        self.settle_watch(stamp);
        Arrived::Data(from, (stamp.generation, stamp.seq), payload, body)
    }

    /// The state this station tells others.
    pub(super) fn state(&self) -> StationState {
        match self.mode {
            Mode::Joining(_) => StationState::Joining,
            Mode::Plain => StationState::Plain,
            Mode::Initiating(_) | Mode::Yielding(_) | Mode::Ring(_) => StationState::Ring,
        }
    }
}
