//! Bodies of the control frames that form, change and repair the ring.

use crate::ethernet::MacAddr;
use crate::fields::{Malformed, Reader, Writer};
use crate::header::Generation;
use crate::stated::StatedSettings;
use crate::token::{MAX_STATIONS, Token};
use rota_contract::NodeId;

/// Longest station name, octets of UTF-8.
pub const MAX_NAME_OCTETS: usize = 32;
/// The length of a name that says that the settings stand in its place.
const SETTINGS_FOLLOW: u8 = 255;
const _: () =
    assert!(StatedSettings::OCTETS == MAX_NAME_OCTETS, "no announcement is longer than with a name");
/// Most members in one part of a [`Form`].
pub const FORM_MEMBERS_MAX: usize = 64;

/// How a station describes its own state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StationState {
    /// It looks for the segment and has no place yet, or has just taken one.
    Joining,
    /// Plain Ethernet.
    Plain,
    /// Token mode.
    Ring,
    /// It leaves.
    Leaving,
}

impl StationState {
    const fn code(self) -> u8 {
        match self {
            Self::Joining => 0,
            Self::Plain => 1,
            Self::Ring => 2,
            Self::Leaving => 3,
        }
    }

    const fn from_code(code: u8) -> Result<Self, Malformed> {
        match code {
            0 => Ok(Self::Joining),
            1 => Ok(Self::Plain),
            2 => Ok(Self::Ring),
            3 => Ok(Self::Leaving),
            _ => Err(Malformed::Field("state")),
        }
    }
}

/// "I am here" (paper section 2.4: a booting node broadcasts a message identifying itself).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announce {
    /// The host.
    pub node_id: NodeId,
    /// This station's part of the incarnation key.
    pub nonce: u64,
    /// Which boot of the host: one-way delay is reported only between equal ones.
    pub boot_id: u64,
    /// The sender's state.
    pub state: StationState,
    /// The newest mode epoch it knows.
    pub mode_epoch: u32,
    /// Its target token rotation time, ns.
    pub trt_ns: u32,
    /// Its link rate, bits a second.
    pub rate_bps: u64,
    /// A digest of every setting that all stations must share.
    pub settings: u64,
    /// The challenge of a [`JoinAnswer`] that this announcement answers; 0 for none.
    pub answers: u64,
    /// Its node address for logical link control, 1 to 254; 0 for none.
    pub llc_address: u8,
    /// Its settings, while it hears a station with other ones; the name is not on the wire then.
    pub stated: Option<StatedSettings>,
    name: [u8; MAX_NAME_OCTETS],
    name_octets: u8,
}

impl Announce {
    /// The longest body: that of a station with a name of [`MAX_NAME_OCTETS`].
    pub const OCTETS_MAX: usize = 3 * 8 + 1 + 2 * 4 + 3 * 8 + 2 + MAX_NAME_OCTETS;

    /// An announcement; a name longer than [`MAX_NAME_OCTETS`] is cut at a character.
    pub fn new(node_id: NodeId, nonce: u64, boot_id: u64, state: StationState, name: &str) -> Self {
        let mut end = name.len().min(MAX_NAME_OCTETS);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let mut octets = [0; MAX_NAME_OCTETS];
        octets[..end].copy_from_slice(&name.as_bytes()[..end]);
        let (mode_epoch, trt_ns, rate_bps) = (0, 0, 0);
        Self {
            node_id,
            nonce,
            boot_id,
            state,
            mode_epoch,
            trt_ns,
            rate_bps,
            settings: 0,
            answers: 0,
            llc_address: 0,
            stated: None,
            name: octets,
            name_octets: end as u8,
        }
    }

    /// The station's name.
    pub fn name(&self) -> &str {
        core::str::from_utf8(&self.name[..usize::from(self.name_octets)]).unwrap_or("")
    }

    /// The same without settings, and with the name of an announcement of that station before, where this
    /// one has none.
    #[must_use]
    pub fn named_as(mut self, before: &Self) -> Self {
        if self.stated.take().is_some() {
            (self.name, self.name_octets) = (before.name, before.name_octets);
        }
        self
    }

    /// Reads the body. In the name each character that cannot be printed becomes a question mark.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(body);
        let (node_id, nonce, boot_id) = (NodeId(reader.u64()?), reader.u64()?, reader.u64()?);
        let state = StationState::from_code(reader.u8()?)?;
        let (mode_epoch, trt_ns, rate_bps) = (reader.u32()?, reader.u32()?, reader.u64()?);
        let (settings, answers) = (reader.u64()?, reader.u64()?);
        let llc_address = reader.u8()?;
        if llc_address == 255 {
            return Err(Malformed::Field("LLC address"));
        }
        let name_octets = reader.u8()?;
        if name_octets == SETTINGS_FOLLOW {
            let stated = Some(StatedSettings::read(&mut reader)?);
            reader.end()?;
            let said = Self::new(node_id, nonce, boot_id, state, "");
            return Ok(Self { mode_epoch, trt_ns, rate_bps, settings, answers, llc_address, stated, ..said });
        }
        let name_octets = usize::from(name_octets);
        if name_octets > MAX_NAME_OCTETS {
            return Err(Malformed::Field("name"));
        }
        let name = core::str::from_utf8(reader.take(name_octets)?).map_err(|_| Malformed::Field("name"))?;
        reader.end()?;
        let mut room = [0; MAX_NAME_OCTETS];
        let said = Self::new(node_id, nonce, boot_id, state, crate::name::shown(name, &mut room));
        Ok(Self { mode_epoch, trt_ns, rate_bps, settings, answers, llc_address, ..said })
    }

    /// Writes the body and returns its length.
    pub fn emit(&self, body: &mut [u8]) -> usize {
        let mut writer = Writer::new(body);
        writer.u64(self.node_id.0).u64(self.nonce).u64(self.boot_id).u8(self.state.code());
        writer.u32(self.mode_epoch).u32(self.trt_ns).u64(self.rate_bps).u64(self.settings).u64(self.answers);
        writer.u8(self.llc_address);
        if let Some(stated) = &self.stated {
            writer.u8(SETTINGS_FOLLOW);
            stated.write(&mut writer);
        } else {
            writer.u8(self.name_octets).bytes(&self.name[..usize::from(self.name_octets)]);
        }
        writer.written()
    }
}

/// Switch-to-RETHER (paper section 2.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The mode epoch that begins.
    pub mode_epoch: u32,
    /// The initiator's part of the incarnation key.
    pub nonce: u64,
    /// The ring's target token rotation time, ns.
    pub trt_ns: u32,
    /// The ring's link rate, bits a second.
    pub rate_bps: u64,
    /// A digest of every setting that all stations must share.
    pub settings: u64,
}

impl Switch {
    /// Reads the body.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(body);
        let (mode_epoch, nonce) = (reader.u32()?, reader.u64()?);
        let (trt_ns, rate_bps, settings) = (reader.u32()?, reader.u64()?, reader.u64()?);
        reader.end()?;
        Ok(Self { mode_epoch, nonce, trt_ns, rate_bps, settings })
    }

    /// Writes the body and returns its length.
    pub fn emit(&self, body: &mut [u8]) -> usize {
        let mut writer = Writer::new(body);
        writer.u32(self.mode_epoch).u64(self.nonce).u32(self.trt_ns).u64(self.rate_bps).u64(self.settings);
        writer.written()
    }
}

/// The answer to a [`Switch`]: the sender is in token mode and its own frames have left its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchAck {
    /// The mode epoch that is acknowledged.
    pub mode_epoch: u32,
    /// The initiator whose switch is acknowledged.
    pub initiator: u16,
    /// This station's fresh part of the incarnation key.
    pub nonce: u64,
}

impl SwitchAck {
    /// Reads the body.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(body);
        let ack = Self { mode_epoch: reader.u32()?, initiator: reader.u16()?, nonce: reader.u64()? };
        reader.end()?;
        Ok(ack)
    }

    /// Writes the body and returns its length.
    pub fn emit(&self, body: &mut [u8]) -> usize {
        let mut writer = Writer::new(body);
        writer.u32(self.mode_epoch).u16(self.initiator).u64(self.nonce);
        writer.written()
    }
}

/// A station of a ring, with what it adds to the ring's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FormMember {
    /// Its place.
    pub station: u16,
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// Its boot.
    pub incarnation: u32,
    /// Its part of the key.
    pub nonce: u64,
}

impl FormMember {
    /// The octets that enter the key derivation.
    pub fn key_material(&self) -> [u8; 20] {
        let mut octets = [0; 20];
        Writer::new(&mut octets).u16(self.station).bytes(&self.mac.0).u32(self.incarnation).u64(self.nonce);
        octets
    }
}

/// The stations of a new ring, in parts when they are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The ring's mode epoch.
    pub mode_epoch: u32,
    /// The key epoch of the ring's key, never 0.
    pub key_epoch: u8,
    /// Which part this is, from 0.
    pub part: u8,
    /// How many parts there are.
    pub parts: u8,
    /// A digest of every setting that all stations must share.
    pub settings: u64,
    members: [FormMember; FORM_MEMBERS_MAX],
    count: u8,
}

impl Form {
    /// A part with no members yet.
    pub const fn new(mode_epoch: u32, key_epoch: u8, part: u8, parts: u8) -> Self {
        const NOBODY: FormMember = FormMember { station: 0, mac: MacAddr([0; 6]), incarnation: 0, nonce: 0 };
        let settings = 0;
        Self { mode_epoch, key_epoch, part, parts, settings, members: [NOBODY; FORM_MEMBERS_MAX], count: 0 }
    }

    /// Octets of a part that names so many members.
    pub const fn octets_for(members: usize) -> usize {
        16 + 20 * members
    }

    /// Adds a member; false when the part is full.
    pub fn push(&mut self, member: FormMember) -> bool {
        let Some(place) = self.members.get_mut(usize::from(self.count)) else { return false };
        *place = member;
        self.count += 1;
        true
    }

    /// The members in this part.
    pub fn members(&self) -> &[FormMember] {
        &self.members[..usize::from(self.count)]
    }

    /// Reads the body.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(body);
        let mut form = Self::new(reader.u32()?, reader.u8()?, reader.u8()?, reader.u8()?);
        form.settings = reader.u64()?;
        let count = reader.u8()?;
        if form.key_epoch == 0 || form.part >= form.parts {
            return Err(Malformed::Field("form part"));
        }
        for _ in 0..count {
            let member = FormMember {
                station: reader.u16()?,
                mac: MacAddr(reader.mac()?),
                incarnation: reader.u32()?,
                nonce: reader.u64()?,
            };
            if member.station == 0 || member.station > MAX_STATIONS || !form.push(member) {
                return Err(Malformed::Field("form member"));
            }
        }
        reader.end()?;
        Ok(form)
    }

    /// Writes the body and returns its length.
    pub fn emit(&self, body: &mut [u8]) -> usize {
        let mut writer = Writer::new(body);
        writer.u32(self.mode_epoch).u8(self.key_epoch).u8(self.part).u8(self.parts);
        writer.u64(self.settings).u8(self.count);
        for member in self.members() {
            writer.bytes(&member.key_material());
        }
        writer.written()
    }
}

/// The cycle master's verdict on a station that wants to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// "Announce yourself again with this challenge": an old announcement, replayed, cannot.
    Prove,
    /// With one station more the reservations would break their promise, or there is no place.
    Full,
    /// Its settings differ from the ring's.
    Settings,
    /// It has stopped the ring too often; it may come back later.
    HeldOff,
    /// Its frames count as replays: in the place of the nonce stands the frame counter that they must exceed.
    Behind,
}

impl Verdict {
    const fn code(self) -> u8 {
        match self {
            Self::Prove => 0,
            Self::Full => 1,
            Self::Settings => 2,
            Self::HeldOff => 3,
            Self::Behind => 4,
        }
    }

    const fn from_code(code: u8) -> Result<Self, Malformed> {
        match code {
            0 => Ok(Self::Prove),
            1 => Ok(Self::Full),
            2 => Ok(Self::Settings),
            3 => Ok(Self::HeldOff),
            4 => Ok(Self::Behind),
            _ => Err(Malformed::Field("verdict")),
        }
    }
}

/// The answer to the announcement of a station that wants to join a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinAnswer {
    /// The nonce of that announcement.
    pub nonce: u64,
    /// What the next announcement has to answer; 0 when nothing is asked.
    pub challenge: u64,
    /// Whether it may join.
    pub verdict: Verdict,
    /// With [`Verdict::HeldOff`], how often it fell silent; 0 if it waits for another reason.
    pub silences: u8,
    /// With [`Verdict::HeldOff`], how long it still has to wait, ms.
    pub left_ms: u32,
}

impl JoinAnswer {
    /// An answer of another verdict than [`Verdict::HeldOff`].
    pub const fn new(nonce: u64, challenge: u64, verdict: Verdict) -> Self {
        Self { nonce, challenge, verdict, silences: 0, left_ms: 0 }
    }

    /// Reads the body.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(body);
        let (nonce, challenge) = (reader.u64()?, reader.u64()?);
        let verdict = Verdict::from_code(reader.u8()?)?;
        let (silences, left_ms) = (reader.u8()?, reader.u32()?);
        reader.end()?;
        Ok(Self { nonce, challenge, verdict, silences, left_ms })
    }

    /// Writes the body and returns its length.
    pub fn emit(&self, body: &mut [u8]) -> usize {
        let mut writer = Writer::new(body);
        writer.u64(self.nonce).u64(self.challenge).u8(self.verdict.code());
        writer.u8(self.silences).u32(self.left_ms);
        writer.written()
    }
}

/// "I want to make a new token."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The generation the claimant would make.
    pub generation: Generation,
    /// The newest mode epoch the claimant knows.
    pub mode_epoch: u32,
}

impl Claim {
    /// Reads the body.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(body);
        let claim = Self { generation: generation(&mut reader)?, mode_epoch: reader.u32()? };
        reader.end()?;
        Ok(claim)
    }

    /// Writes the body and returns its length.
    pub fn emit(&self, body: &mut [u8]) -> usize {
        let mut writer = Writer::new(body);
        writer.u32(self.generation.counter).u16(self.generation.station).u32(self.mode_epoch);
        writer.written()
    }
}

/// The answer to a [`Claim`]: the sender refuses every older token from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimGrant {
    /// The claimed generation.
    pub generation: Generation,
    /// The generation of the newest reservation list that the granting station has seen.
    pub seen: Generation,
    /// The hop counter of that list.
    pub seen_seq: u64,
    /// The key epoch the granting station is in.
    pub key_epoch: u8,
    /// That list, if it has seen any.
    pub list: Option<Token>,
}

impl ClaimGrant {
    /// Reads the body.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(body);
        let granted = generation(&mut reader)?;
        let seen = generation(&mut reader)?;
        let seen_seq = reader.u48()?;
        let key_epoch = reader.u8()?;
        let list = if reader.0.is_empty() { None } else { Some(Token::parse(reader.0)?) };
        Ok(Self { generation: granted, seen, seen_seq, key_epoch, list })
    }

    /// Writes the body and returns its length.
    pub fn emit(&self, body: &mut [u8]) -> usize {
        let mut writer = Writer::new(body);
        writer.u32(self.generation.counter).u16(self.generation.station);
        writer.u32(self.seen.counter).u16(self.seen.station).u48(self.seen_seq).u8(self.key_epoch);
        let written = writer.written();
        written + self.list.as_ref().map_or(0, |list| list.emit(&mut body[written..]))
    }
}

/// The answer to a claim whose generation is not the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nack {
    /// The greatest generation the sender knows.
    pub generation: Generation,
    /// The sender's mode epoch.
    pub mode_epoch: u32,
}

impl Nack {
    /// Reads the body.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        Claim::parse(body).map(|claim| Self { generation: claim.generation, mode_epoch: claim.mode_epoch })
    }

    /// Writes the body and returns its length.
    pub fn emit(&self, body: &mut [u8]) -> usize {
        Claim { generation: self.generation, mode_epoch: self.mode_epoch }.emit(body)
    }
}

/// The mode of the segment; `ring: false` is Switch-to-CSMA (paper section 2.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeNotice {
    /// The mode epoch.
    pub mode_epoch: u32,
    /// Token mode or plain Ethernet.
    pub ring: bool,
}

impl ModeNotice {
    /// Reads the body.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(body);
        let mode_epoch = reader.u32()?;
        let ring = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return Err(Malformed::Field("mode")),
        };
        reader.end()?;
        Ok(Self { mode_epoch, ring })
    }

    /// Writes the body and returns its length.
    pub fn emit(&self, body: &mut [u8]) -> usize {
        let mut writer = Writer::new(body);
        writer.u32(self.mode_epoch).u8(u8::from(self.ring));
        writer.written()
    }
}

fn generation(reader: &mut Reader<'_>) -> Result<Generation, Malformed> {
    Ok(Generation { counter: reader.u32()?, station: reader.u16()? })
}
