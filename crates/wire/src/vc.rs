//! The TPDU of a circuit of the native-mode transport (`specs/transport.md`): one frame of the device each.
//!
//! The paper prints the length of its header alone, 32 octets, which the header of data here has, too
//! (TRANSPORT-R15, TRANSPORT-R16). A TPDU has no checksum: the tag of the frame that carries it proves its
//! octets.

use crate::fields::{Malformed, Reader, Writer};
use siphasher::sip::SipHasher24;

/// Octets in front of the data of a TPDU.
pub const TPDU_HEADER_OCTETS: usize = 32;
/// Octets of the longest TPDU without data.
pub const TPDU_CONTROL_OCTETS_MAX: usize = HEAD_OCTETS + TERMS_OCTETS;
/// Octets that every TPDU begins with.
const HEAD_OCTETS: usize = 16;
const TERMS_OCTETS: usize = 32;
const VERSION: u8 = 1;
/// The flag of a message's last TPDU.
const LAST: u8 = 1;

/// How a circuit's sender is kept from sending too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowControl {
    /// By the receiver's room alone; without error control by nothing.
    Open,
    /// By a window that follows losses, too.
    Window,
    /// By a leaky bucket at the sender, too.
    Bucket,
    /// By packet-pair, too: for a path that serves circuits in turn. Where what arrives does not fit the
    /// estimate, the sender takes the window instead.
    PacketPair,
}

/// The services of a circuit for its programs; each on its own (TRANSPORT-R1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quality {
    /// True if what is lost is sent again.
    pub error_control: bool,
    /// How the sender is held.
    pub flow: FlowControl,
    /// True for a stream of octets, false for messages.
    pub stream: bool,
}

impl Quality {
    /// Reliable messages under the dynamic window.
    pub const RELIABLE: Self = Self { error_control: true, flow: FlowControl::Window, stream: false };
    /// Messages without flow control and error control: as many arrive as do.
    pub const BEST_EFFORT: Self = Self { error_control: false, flow: FlowControl::Open, stream: false };
    /// Messages that a leaky bucket shapes, without error control.
    pub const GUARANTEED: Self = Self { error_control: false, flow: FlowControl::Bucket, stream: false };

    const fn code(self) -> u8 {
        let flow = match self.flow {
            FlowControl::Open => 0,
            FlowControl::Window => 1,
            FlowControl::Bucket => 2,
            FlowControl::PacketPair => 3,
        };
        self.error_control as u8 | flow << 1 | (self.stream as u8) << 3
    }

    const fn from_code(code: u8) -> Option<Self> {
        let flow = match code >> 1 & 3 {
            0 => FlowControl::Open,
            1 => FlowControl::Window,
            2 => FlowControl::Bucket,
            _ => FlowControl::PacketPair,
        };
        if code >> 4 != 0 {
            return None;
        }
        Some(Self { error_control: code & 1 != 0, flow, stream: code & 8 != 0 })
    }
}

/// The agreement of the two ends. All three steps of the handshake state it, so that an end that keeps
/// nothing of the first two can begin with the third.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The sender's word for this attempt, drawn anew for each.
    pub source: u64,
    /// The receiver's number of this handshake; 0 in [`TpduBody::Open`].
    pub serial: u64,
    /// The number that the other end writes as [`Tpdu::to`].
    pub from: u32,
    /// Which listener is asked.
    pub service: u32,
    /// TPDUs that may be on their way: as wanted, then as agreed.
    pub window: u32,
    /// Octets of data in a TPDU at most: as wanted, then as agreed.
    pub tpdu: u16,
    /// The service of the circuit.
    pub quality: Quality,
}

/// Why a handshake fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nobody listens.
    #[error("no program listens to this service")]
    NoService,
    /// No room for one circuit more.
    #[error("the receiver has no room for one circuit more")]
    Busy,
    /// The window is none.
    #[error("the window is impossible")]
    Window,
    /// A TPDU has no room for data.
    #[error("the size of a TPDU is impossible")]
    TpduSize,
    /// The combination of services is not offered.
    #[error("the receiver does not offer this combination of services")]
    Quality,
    /// The third step is too late, or has been used before.
    #[error("the handshake has expired")]
    Expired,
}

impl Refusal {
    const ALL: [Self; 6] =
        [Self::NoService, Self::Busy, Self::Window, Self::TpduSize, Self::Quality, Self::Expired];
}

/// Why a circuit ends at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResetCause {
    /// The end knows no such circuit: it has begun anew, or has forgotten it.
    #[error("the other end knows no such circuit")]
    Unknown,
    /// Its program gave the circuit up, or died.
    #[error("the other end's program has given the circuit up")]
    Aborted,
    /// It heard nothing for too long.
    #[error("the other end has heard nothing for too long")]
    Silent,
    /// The other end broke a rule.
    #[error("the other end says that a rule was broken")]
    Violation,
}

impl ResetCause {
    const ALL: [Self; 4] = [Self::Unknown, Self::Aborted, Self::Silent, Self::Violation];
}

/// The content of a TPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TpduBody {
    /// Data; its octets follow.
    Data {
        /// From 1 in each circuit. It has 64 bits and never wraps.
        sequence: u64,
        /// The message's number from 0, modulo 2^32; 0 in a stream.
        message: u32,
        /// The TPDU's number in its message from 0; 0 in a stream.
        index: u32,
        /// True of the last TPDU of a message; false in a stream.
        last: bool,
    },
    /// The arrivals (TRANSPORT-5.3.2-6).
    Ack {
        /// All TPDUs up to here have arrived; without error control those that are lost count, too.
        cum: u64,
        /// The TPDU that caused it; 0: none, the receiver's room has grown, or it was asked.
        cause: u64,
        /// The highest TPDU for which the receiver has room: never less than `cum`.
        limit: u64,
    },
    /// First step of the handshake.
    Open(Terms),
    /// Second step.
    Accept(Terms),
    /// Third step.
    Confirm(Terms),
    /// No to a first or third step.
    Refuse {
        /// Whose attempt, as in [`Terms::source`].
        source: u64,
        /// Why.
        why: Refusal,
    },
    /// The circuit has ended at the sender of this.
    Reset {
        /// Why.
        why: ResetCause,
    },
    /// The sender of this wants to end the circuit in good order.
    Close {
        /// TPDUs that it has sent or, of a receiver, has had in sequence; without error control those that
        /// its program has taken.
        tpdus: u64,
        /// Messages that were sent whole or, of a receiver, that its program has taken; of a stream 0.
        messages: u64,
    },
    /// The answer to a [`TpduBody::Close`], with the other end's counts.
    Closed {
        /// As in a close.
        tpdus: u64,
        /// As in a close.
        messages: u64,
    },
    /// The program of the receiver did not take the circuit: nothing of it was read. It answers all that
    /// comes for the circuit.
    Decline {
        /// Why, in a number whose meaning the two programs know.
        reason: u32,
    },
    /// "Say where you are": an [`TpduBody::Ack`] answers it.
    Ask,
}

/// A TPDU without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tpdu {
    /// The number that the reader gave the circuit; 0 where the sender does not know it.
    pub to: u32,
    /// The circuit's name at both ends, which is the cookie of its handshake; 0 in [`TpduBody::Open`] and in
    /// the [`TpduBody::Refuse`] that answers it.
    pub circuit: u64,
    /// Its content.
    pub body: TpduBody,
}

impl TpduBody {
    /// Octets of a TPDU that says this, without its data.
    pub fn octets(self) -> usize {
        Tpdu { to: 0, circuit: 0, body: self }.emit(0, &mut [0; TPDU_CONTROL_OCTETS_MAX])
    }
}

impl Tpdu {
    /// Reads a TPDU; the second part is its data, which only [`TpduBody::Data`] has.
    ///
    /// # Errors
    /// The first fault in it.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut reader = Reader(octets);
        let (tpdu, data) = Self::head(&mut reader)?;
        let payload = reader.take(usize::from(data))?;
        reader.end()?;
        if matches!(tpdu.body, TpduBody::Data { last: false, .. }) && payload.is_empty() {
            return Err(Malformed::Field("TPDU data"));
        }
        Ok((tpdu, payload))
    }

    /// Reads a TPDU whose end may be cut off, and how many octets of data it states.
    ///
    /// # Errors
    /// The first fault in what is there.
    pub fn parse_head(octets: &[u8]) -> Result<(Self, u16), Malformed> {
        Self::head(&mut Reader(octets))
    }

    fn head(reader: &mut Reader<'_>) -> Result<(Self, u16), Malformed> {
        let (first, flags, data) = (reader.u8()?, reader.u8()?, reader.u16()?);
        if first >> 4 != VERSION {
            return Err(Malformed::Version(first >> 4));
        }
        let (to, circuit) = (reader.u32()?, reader.u64()?);
        let kind = first & 15;
        if flags & !LAST != 0 || (kind != 1 && flags != 0) {
            return Err(Malformed::Field("TPDU flags"));
        }
        if kind != 1 && data != 0 {
            return Err(Malformed::Field("TPDU data"));
        }
        let body = match kind {
            1 => data_header(reader, flags == LAST)?,
            2 => ack(reader)?,
            3 => TpduBody::Open(terms(reader)?),
            4 => TpduBody::Accept(terms(reader)?),
            5 => TpduBody::Confirm(terms(reader)?),
            6 => refuse(reader)?,
            7 => TpduBody::Reset { why: coded(reader, &ResetCause::ALL, "reset cause")? },
            8 => TpduBody::Close { tpdus: reader.u64()?, messages: reader.u64()? },
            9 => TpduBody::Closed { tpdus: reader.u64()?, messages: reader.u64()? },
            10 => TpduBody::Ask,
            11 => TpduBody::Decline { reason: reader.u32()? },
            _ => return Err(Malformed::Field("TPDU kind")),
        };
        if matches!(body, TpduBody::Open(_)) && circuit != 0 {
            return Err(Malformed::Field("TPDU circuit"));
        }
        Ok((Self { to, circuit, body }, data))
    }

    /// Writes the TPDU without its `data` octets to the front of `out`, and returns how many were written.
    pub fn emit(&self, data: u16, out: &mut [u8]) -> usize {
        let mut writer = Writer::new(out);
        let (kind, flags) = self.code();
        writer.u8(VERSION << 4 | kind).u8(flags).u16(data).u32(self.to).u64(self.circuit);
        match self.body {
            TpduBody::Data { sequence, message, index, .. } => {
                writer.u64(sequence).u32(message).u32(index);
            }
            TpduBody::Ack { cum, cause, limit } => {
                writer.u64(cum).u64(cause).u64(limit);
            }
            TpduBody::Open(terms) | TpduBody::Accept(terms) | TpduBody::Confirm(terms) => {
                writer.u64(terms.source).u64(terms.serial).u32(terms.from).u32(terms.service);
                writer.u32(terms.window).u16(terms.tpdu).u8(terms.quality.code()).u8(0);
            }
            TpduBody::Refuse { source, why } => {
                writer.u64(source).u8(why as u8 + 1);
            }
            TpduBody::Reset { why } => {
                writer.u8(why as u8 + 1);
            }
            TpduBody::Close { tpdus, messages } | TpduBody::Closed { tpdus, messages } => {
                writer.u64(tpdus).u64(messages);
            }
            TpduBody::Ask => {}
            TpduBody::Decline { reason } => {
                writer.u32(reason);
            }
        }
        writer.written()
    }

    const fn code(&self) -> (u8, u8) {
        match self.body {
            TpduBody::Data { last, .. } => (1, if last { LAST } else { 0 }),
            TpduBody::Ack { .. } => (2, 0),
            TpduBody::Open(_) => (3, 0),
            TpduBody::Accept(_) => (4, 0),
            TpduBody::Confirm(_) => (5, 0),
            TpduBody::Refuse { .. } => (6, 0),
            TpduBody::Reset { .. } => (7, 0),
            TpduBody::Close { .. } => (8, 0),
            TpduBody::Closed { .. } => (9, 0),
            TpduBody::Ask => (10, 0),
            TpduBody::Decline { .. } => (11, 0),
        }
    }
}

fn data_header(reader: &mut Reader<'_>, last: bool) -> Result<TpduBody, Malformed> {
    let (sequence, message, index) = (reader.u64()?, reader.u32()?, reader.u32()?);
    if sequence == 0 {
        return Err(Malformed::Field("TPDU sequence"));
    }
    Ok(TpduBody::Data { sequence, message, index, last })
}

fn ack(reader: &mut Reader<'_>) -> Result<TpduBody, Malformed> {
    let (cum, cause, limit) = (reader.u64()?, reader.u64()?, reader.u64()?);
    if limit < cum {
        return Err(Malformed::Field("TPDU limit"));
    }
    Ok(TpduBody::Ack { cum, cause, limit })
}

fn terms(reader: &mut Reader<'_>) -> Result<Terms, Malformed> {
    let (source, serial) = (reader.u64()?, reader.u64()?);
    let (from, service, window, tpdu) = (reader.u32()?, reader.u32()?, reader.u32()?, reader.u16()?);
    let quality = Quality::from_code(reader.u8()?).ok_or(Malformed::Field("circuit quality"))?;
    if reader.u8()? != 0 {
        return Err(Malformed::Field("circuit zero"));
    }
    Ok(Terms { source, serial, from, service, window, tpdu, quality })
}

fn refuse(reader: &mut Reader<'_>) -> Result<TpduBody, Malformed> {
    let source = reader.u64()?;
    Ok(TpduBody::Refuse { source, why: coded(reader, &Refusal::ALL, "refusal")? })
}

/// One of these, whose codes begin with 1.
fn coded<T: Copy>(reader: &mut Reader<'_>, all: &[T], name: &'static str) -> Result<T, Malformed> {
    let place = usize::from(reader.u8()?).checked_sub(1);
    place.and_then(|place| all.get(place)).copied().ok_or(Malformed::Field(name))
}

/// The key of a listener's cookies (SipHash-2-4), drawn anew in each of its lives. It does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct CookieKey([u8; 16]);

impl CookieKey {
    /// The key with these octets.
    pub const fn new(octets: [u8; 16]) -> Self {
        Self(octets)
    }

    /// The cookie of a handshake with this peer on these terms, in this period of the listener's clock; it
    /// is never 0. [`Terms::from`] is left out, since each end states its own.
    pub fn cookie(&self, peer: u64, period: u64, terms: &Terms) -> u64 {
        let mut octets = [0; 16 + TERMS_OCTETS];
        octets[..8].copy_from_slice(&peer.to_be_bytes());
        octets[8..16].copy_from_slice(&period.to_be_bytes());
        let mut tpdu = [0; HEAD_OCTETS + TERMS_OCTETS];
        let body = TpduBody::Open(Terms { from: 0, ..*terms });
        Tpdu { to: 0, circuit: 0, body }.emit(0, &mut tpdu);
        octets[16..].copy_from_slice(&tpdu[HEAD_OCTETS..]);
        SipHasher24::new_with_key(&self.0).hash(&octets).max(1)
    }
}

impl core::fmt::Debug for CookieKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("CookieKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> Terms {
        let (source, serial, from, service) = (1, 2, 3, 4);
        Terms { source, serial, from, service, window: 64, tpdu: 1_400, quality: Quality::RELIABLE }
    }

    fn octets(body: TpduBody, data: &[u8]) -> Vec<u8> {
        let mut out = [0; 64];
        let length = Tpdu { to: 7, circuit: 0, body }.emit(data.len() as u16, &mut out);
        [&out[..length], data].concat()
    }

    #[test]
    fn a_length_that_lies_is_found() {
        let body = TpduBody::Data { sequence: 1, message: 0, index: 0, last: true };
        let sound = octets(body, b"abc");
        assert_eq!(sound.len(), TPDU_HEADER_OCTETS + 3);
        assert_eq!(Tpdu::parse(&sound).map(|(_, data)| data), Ok(&b"abc"[..]));
        for length in [0u16, 2, 4, u16::MAX] {
            let mut lies = sound.clone();
            lies[2..4].copy_from_slice(&length.to_be_bytes());
            let expected = if length < 3 { Malformed::Trailing } else { Malformed::Truncated };
            assert_eq!(Tpdu::parse(&lies), Err(expected), "{length}");
        }
    }

    #[test]
    fn what_no_sender_writes_is_refused() {
        let data = |sequence, last| TpduBody::Data { sequence, message: 0, index: 0, last };
        assert_eq!(Tpdu::parse(&octets(data(0, true), b"a")), Err(Malformed::Field("TPDU sequence")));
        assert_eq!(Tpdu::parse(&octets(data(1, false), b"")), Err(Malformed::Field("TPDU data")));
        assert!(Tpdu::parse(&octets(data(1, true), b"")).is_ok(), "a message may be empty");
        let ack = TpduBody::Ack { cum: 5, cause: 0, limit: 4 };
        assert_eq!(Tpdu::parse(&octets(ack, b"")), Err(Malformed::Field("TPDU limit")));
        let mut open = octets(TpduBody::Open(terms()), b"");
        for code in 16..=u8::MAX {
            open[46] = code;
            assert_eq!(Tpdu::parse(&open), Err(Malformed::Field("circuit quality")));
        }
        open[0] = 0x23;
        assert_eq!(Tpdu::parse(&open), Err(Malformed::Version(2)));
    }

    #[test]
    fn each_combination_of_services_has_a_code_of_its_own() {
        for code in 0..16 {
            let quality = Quality::from_code(code).expect("all sixteen are offered");
            assert_eq!(quality.code(), code, "{quality:?}");
        }
        assert_eq!(Quality { flow: FlowControl::PacketPair, ..Quality::BEST_EFFORT }.code(), 6);
        assert_eq!((Quality::RELIABLE.code(), Quality::GUARANTEED.code()), (3, 4));
    }

    #[test]
    fn a_cookie_depends_on_all_that_was_agreed_and_not_on_the_end_that_states_it() {
        let key = CookieKey::new([9; 16]);
        let cookie = key.cookie(1, 2, &terms());
        assert_eq!(cookie, key.cookie(1, 2, &Terms { from: 99, ..terms() }));
        let others = [
            key.cookie(2, 2, &terms()),
            key.cookie(1, 3, &terms()),
            key.cookie(1, 2, &Terms { source: 9, ..terms() }),
            key.cookie(1, 2, &Terms { serial: 9, ..terms() }),
            key.cookie(1, 2, &Terms { service: 9, ..terms() }),
            key.cookie(1, 2, &Terms { window: 9, ..terms() }),
            key.cookie(1, 2, &Terms { tpdu: 9, ..terms() }),
            key.cookie(1, 2, &Terms { quality: Quality { stream: true, ..Quality::RELIABLE }, ..terms() }),
            CookieKey::new([8; 16]).cookie(1, 2, &terms()),
        ];
        assert!(others.iter().all(|other| *other != cookie));
    }
}
