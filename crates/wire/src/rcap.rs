//! The messages of RCAP (Tenet paper, Table 1), which travel hop by hop between nodes (`TENET-R13`).
//!
//! The paper gives their names and directions only. Ours are length-prefixed: a header, the fields of the
//! kind, and one record for each node, appended in the forward pass and read in reverse. Times are
//! nanoseconds, sizes octets of payload, chances units of 2⁻⁶³. A reliable transport carries them between
//! neighbours; nothing here is a frame of a segment.
//!
//! Departures: the header also names the origin, since two nodes may give one number to two channels. Two
//! further kinds carry the wish of a receiver to the source, which the paper leaves without a message, and
//! one goes ahead of a request.

mod approach;
mod bodies;
mod invite;
mod record;
mod terms;
#[cfg(test)]
mod tests;

pub use approach::RcapApproach;
pub use bodies::{
    RcapAccept, RcapAgain, RcapChances, RcapClose, RcapDenied, RcapInitiation, RcapPart, RcapRequest,
    RcapStanding, RcapStatus, RcapWay,
};
pub use invite::{RcapInvite, RcapInviteDenied, RcapRoute};
pub use record::{RCAP_NODES_MAX, RcapRecord, RcapRecords, RcapTest};
pub use terms::{RCAP_TERMS_MAX, RcapTerms};

use crate::fields::{Malformed, Reader, Writer};
use rota_contract::{ChannelId, NodeId};

/// Octets of the header.
pub const RCAP_HEADER_OCTETS: usize = 24;
/// The longest message: its length is a 16-bit field.
pub const RCAP_OCTETS_MAX: usize = 0xffff;
/// The first octet: a transport that also carries statements of neighbours tells them apart by it.
pub const RCAP_KIND: u8 = 0x52;
const _: () = assert!(RCAP_KIND != crate::link_state::LINK_STATE_KIND, "they share connections");
/// The version of these messages.
pub const RCAP_VERSION: u8 = 9;
/// The longest lease of what a request reserves tentatively (`TENET-R9`).
pub const RCAP_LEASE_MAX_NS: u64 = 3_000_000_000;
/// The longest time for which a receiver waits for a source that it has asked.
pub const RCAP_INVITE_MAX_NS: u64 = 10_000_000_000;
/// The longest time for which another way is looked for.
pub const RCAP_REROUTE_MAX_NS: u64 = rota_contract::REROUTE_MAX.as_nanos();

/// How far ahead a channel may be booked.
pub const RCAP_AHEAD_MAX_NS: u64 = 50 * 24 * 3_600_000_000_000;

/// Reads fields that have names, so that each refusal says which one is wrong.
pub(crate) struct Fields<'a>(pub(crate) Reader<'a>);

impl<'a> Fields<'a> {
    pub(crate) fn u8(&mut self, name: &'static str) -> Result<u8, Malformed> {
        self.0.u8().map_err(|_| Malformed::Field(name))
    }

    pub(crate) fn u16(&mut self, name: &'static str) -> Result<u16, Malformed> {
        self.0.u16().map_err(|_| Malformed::Field(name))
    }

    pub(crate) fn u32(&mut self, name: &'static str) -> Result<u32, Malformed> {
        self.0.u32().map_err(|_| Malformed::Field(name))
    }

    pub(crate) fn u64(&mut self, name: &'static str) -> Result<u64, Malformed> {
        self.0.u64().map_err(|_| Malformed::Field(name))
    }

    pub(crate) fn node(&mut self, name: &'static str) -> Result<NodeId, Malformed> {
        let node = NodeId(self.u64(name)?);
        sound(node.is_known(), name)?;
        Ok(node)
    }

    pub(crate) fn take(&mut self, octets: usize, name: &'static str) -> Result<&'a [u8], Malformed> {
        self.0.take(octets).map_err(|_| Malformed::Field(name))
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0.0)
    }
}

/// Refuses a value by the name of its field.
pub(crate) const fn sound(is_sound: bool, name: &'static str) -> Result<(), Malformed> {
    if is_sound { Ok(()) } else { Err(Malformed::Field(name)) }
}

/// The kinds of messages: those of Table 1 in its order, and three of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RcapKind {
    /// Downstream: a request for a new channel.
    EstablishRequest,
    /// Upstream: the new channel is accepted.
    EstablishAccept,
    /// Upstream: the request was rejected.
    EstablishDenied,
    /// Downstream: asks for the channel's status at each node.
    StatusRequest,
    /// Upstream: what a status request has collected.
    StatusReport,
    /// Downstream: the channel ends.
    CloseForward,
    /// Upstream: the channel ends.
    CloseReverse,
    /// Upstream: a receiver asks a source for a channel.
    Invite,
    /// Downstream: there will be none.
    InviteDenied,
    /// Downstream: a request is on its way.
    Approach,
}

impl RcapKind {
    /// All kinds; the first one has code 1.
    pub const ALL: [Self; 10] = [
        Self::EstablishRequest,
        Self::EstablishAccept,
        Self::EstablishDenied,
        Self::StatusRequest,
        Self::StatusReport,
        Self::CloseForward,
        Self::CloseReverse,
        Self::Invite,
        Self::InviteDenied,
        Self::Approach,
    ];

    const fn code(self) -> u8 {
        self as u8 + 1
    }

    fn from_code(code: u8) -> Result<Self, Malformed> {
        let place = usize::from(code).checked_sub(1);
        place.and_then(|place| Self::ALL.get(place).copied()).ok_or(Malformed::Field("type"))
    }

    /// True for messages that travel towards the receiver.
    pub const fn is_downstream(self) -> bool {
        let is_first = matches!(self, Self::EstablishRequest | Self::StatusRequest | Self::CloseForward);
        is_first || matches!(self, Self::InviteDenied | Self::Approach)
    }
}

/// A channel by its origin and the number that the origin gave it, and one attempt to establish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RcapChannel {
    /// The node that asked for the channel: the source, or the receiver that asks a source.
    pub origin: NodeId,
    /// Its number for the channel.
    pub channel: ChannelId,
    /// The attempt, from 1: a repeated message is known by it, and an old one too.
    pub attempt: u16,
}

/// The part behind the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RcapBody<'a> {
    /// Of [`RcapKind::EstablishRequest`].
    EstablishRequest(RcapRequest<'a>),
    /// Of [`RcapKind::EstablishAccept`].
    EstablishAccept(RcapAccept<'a>),
    /// Of [`RcapKind::EstablishDenied`].
    EstablishDenied(RcapDenied),
    /// Of [`RcapKind::StatusRequest`].
    StatusRequest(RcapStatus<'a>),
    /// Of [`RcapKind::StatusReport`].
    StatusReport(RcapStatus<'a>),
    /// Of [`RcapKind::CloseForward`].
    CloseForward(RcapClose),
    /// Of [`RcapKind::CloseReverse`].
    CloseReverse(RcapClose),
    /// Of [`RcapKind::Invite`].
    Invite(RcapInvite<'a>),
    /// Of [`RcapKind::InviteDenied`].
    InviteDenied(RcapInviteDenied<'a>),
    /// Of [`RcapKind::Approach`].
    Approach(RcapApproach<'a>),
}

impl RcapBody<'_> {
    /// Its kind.
    pub const fn kind(&self) -> RcapKind {
        match self {
            Self::EstablishRequest(_) => RcapKind::EstablishRequest,
            Self::EstablishAccept(_) => RcapKind::EstablishAccept,
            Self::EstablishDenied(_) => RcapKind::EstablishDenied,
            Self::StatusRequest(_) => RcapKind::StatusRequest,
            Self::StatusReport(_) => RcapKind::StatusReport,
            Self::CloseForward(_) => RcapKind::CloseForward,
            Self::CloseReverse(_) => RcapKind::CloseReverse,
            Self::Invite(_) => RcapKind::Invite,
            Self::InviteDenied(_) => RcapKind::InviteDenied,
            Self::Approach(_) => RcapKind::Approach,
        }
    }

    fn octets(&self) -> usize {
        match self {
            Self::EstablishRequest(request) => {
                RcapRequest::OCTETS
                    + request.apart().octets()
                    + request.way.via.octets()
                    + request.nodes.octets()
            }
            Self::EstablishAccept(accept) => RcapAccept::OCTETS + accept.nodes.octets(),
            Self::EstablishDenied(_) => RcapDenied::OCTETS,
            Self::StatusRequest(status) | Self::StatusReport(status) => {
                RcapStatus::OCTETS + status.nodes.octets()
            }
            Self::CloseForward(_) | Self::CloseReverse(_) => RcapClose::OCTETS,
            Self::Invite(invite) => RcapInvite::OCTETS + invite.way.octets(),
            Self::InviteDenied(denied) => RcapInviteDenied::OCTETS + denied.way.octets(),
            Self::Approach(approach) => approach.octets(),
        }
    }
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RcapMessage<'a> {
    /// Which channel it is about.
    pub of: RcapChannel,
    /// Its contents.
    pub body: RcapBody<'a>,
}

impl<'a> RcapMessage<'a> {
    /// Octets of the whole message.
    pub fn octets(&self) -> usize {
        RCAP_HEADER_OCTETS + self.body.octets()
    }

    /// Reads a whole message.
    ///
    /// # Errors
    /// The field that is wrong, another version, or octets behind the last field.
    pub fn parse(message: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Fields(Reader(message));
        sound(fields.u8("kind")? == RCAP_KIND, "kind")?;
        let version = fields.u8("version")?;
        if version != RCAP_VERSION {
            return Err(Malformed::Version(version));
        }
        let length = fields.u16("length")?;
        sound(usize::from(length) == message.len(), "length")?;
        let kind = RcapKind::from_code(fields.u8("type")?)?;
        sound(fields.u8("direction")? == u8::from(!kind.is_downstream()), "direction")?;
        let attempt = fields.u16("attempt")?;
        sound(attempt > 0, "attempt")?;
        let origin = fields.node("origin")?;
        let channel = ChannelId(fields.u64("channel")?);
        sound(channel.is_some(), "channel")?;
        let body = match kind {
            RcapKind::EstablishRequest => RcapBody::EstablishRequest(RcapRequest::read(&mut fields)?),
            RcapKind::EstablishAccept => RcapBody::EstablishAccept(RcapAccept::read(&mut fields)?),
            RcapKind::EstablishDenied => RcapBody::EstablishDenied(RcapDenied::read(&mut fields)?),
            RcapKind::StatusRequest => RcapBody::StatusRequest(RcapStatus::read(&mut fields)?),
            RcapKind::StatusReport => RcapBody::StatusReport(RcapStatus::read(&mut fields)?),
            RcapKind::CloseForward => RcapBody::CloseForward(RcapClose::read(&mut fields)?),
            RcapKind::CloseReverse => RcapBody::CloseReverse(RcapClose::read(&mut fields)?),
            RcapKind::Invite => RcapBody::Invite(RcapInvite::read(&mut fields)?),
            RcapKind::InviteDenied => RcapBody::InviteDenied(RcapInviteDenied::read(&mut fields)?),
            RcapKind::Approach => RcapBody::Approach(RcapApproach::read(&mut fields)?),
        };
        fields.0.end()?;
        Ok(Self { of: RcapChannel { origin, channel, attempt }, body })
    }

    /// Writes the message to the front of `out`, which must hold [`Self::octets`], and returns its length;
    /// `None` if that exceeds [`RCAP_OCTETS_MAX`].
    #[must_use]
    pub fn emit(&self, out: &mut [u8]) -> Option<usize> {
        let length = u16::try_from(self.octets()).ok()?;
        let kind = self.body.kind();
        let mut writer = Writer::new(out);
        writer.u8(RCAP_KIND).u8(RCAP_VERSION).u16(length).u8(kind.code()).u8(u8::from(!kind.is_downstream()));
        writer.u16(self.of.attempt).u64(self.of.origin.0).u64(self.of.channel.0);
        match &self.body {
            RcapBody::EstablishRequest(request) => request.write(&mut writer),
            RcapBody::EstablishAccept(accept) => accept.write(&mut writer),
            RcapBody::EstablishDenied(denied) => denied.write(&mut writer),
            RcapBody::StatusRequest(status) | RcapBody::StatusReport(status) => status.write(&mut writer),
            RcapBody::CloseForward(close) | RcapBody::CloseReverse(close) => close.write(&mut writer),
            RcapBody::Invite(invite) => invite.write(&mut writer),
            RcapBody::InviteDenied(denied) => denied.write(&mut writer),
            RcapBody::Approach(approach) => approach.write(&mut writer),
        }
        assert_eq!(writer.written(), usize::from(length), "each kind knows its length");
        Some(usize::from(length))
    }
}
