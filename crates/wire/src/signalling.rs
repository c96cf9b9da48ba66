//! Channel set-up and tear-down between two stations. Sent as ordinary control traffic and repeated until
//! answered; every message is idempotent.

use crate::fields::{Malformed, Reader, Writer};
use rota_contract::{ChannelId, Tally};

/// What a signal says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// "Will you listen to this channel?"
    Connect,
    /// "Yes."
    Accept,
    /// "No": the code says why.
    Refuse,
    /// "The channel is reserved; this is its contract."
    Opened,
    /// "I have noted the contract", which it repeats.
    OpenedAck,
    /// "The channel ends; it had `final_unit` units, of which the program left out `left_out`, and `unsent`
    /// never left."
    Close,
    /// "I have noted the end, and these are my counts."
    CloseAck,
    /// "These are my counts so far", from a receiver on which something went wrong.
    Tally,
    /// "Does this channel go on? These are my counts", from a receiver that its ring took for dead.
    Ask,
    /// "Does this frame reach you?", with the question's number as `final_unit`: to the receiver's own
    /// address, or, with code 1, again to its group address.
    Reach,
    /// "It does", which repeats the question.
    Reached,
    /// A verb of a later version.
    Unknown(u8),
}

impl Verb {
    const fn code(self) -> u8 {
        match self {
            Self::Connect => 1,
            Self::Accept => 2,
            Self::Refuse => 3,
            Self::Opened => 4,
            Self::OpenedAck => 5,
            Self::Close => 6,
            Self::CloseAck => 7,
            Self::Tally => 8,
            Self::Ask => 9,
            Self::Reach => 10,
            Self::Reached => 11,
            Self::Unknown(code) => code,
        }
    }

    const fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Connect,
            2 => Self::Accept,
            3 => Self::Refuse,
            4 => Self::Opened,
            5 => Self::OpenedAck,
            6 => Self::Close,
            7 => Self::CloseAck,
            8 => Self::Tally,
            9 => Self::Ask,
            10 => Self::Reach,
            11 => Self::Reached,
            other => Self::Unknown(other),
        }
    }

    /// True if a [`Tally`] follows: the counts of a receiver.
    pub const fn has_tally(self) -> bool {
        matches!(self, Self::Tally | Self::CloseAck | Self::Ask)
    }
}

/// Octets of a tally.
pub const TALLY_OCTETS: usize = 6 * 8;

fn parse_tally(reader: &mut Reader<'_>) -> Result<Tally, Malformed> {
    let (units, late, lost) = (reader.u64()?, reader.u64()?, reader.u64()?);
    let (incomplete, latest_by_ns, unread) = (reader.u64()?, reader.u64()?, reader.u64()?);
    Ok(Tally { units, late, lost, incomplete, latest_by_ns, unread })
}

fn emit_tally(tally: &Tally, writer: &mut Writer<'_>) {
    writer.u64(tally.units).u64(tally.late).u64(tally.lost);
    writer.u64(tally.incomplete).u64(tally.latest_by_ns).u64(tally.unread);
}

/// One signalling message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// What it says.
    pub verb: Verb,
    /// Why, for refusals and closes.
    pub code: u8,
    /// The service at the destination, like a port number.
    pub service: u16,
    /// The channel's label on this segment, chosen by the sender of its data.
    pub label: u16,
    /// The channel.
    pub channel: ChannelId,
    /// The largest unit, octets; in [`Verb::Connect`] the largest that the channel may ever grow to.
    pub unit_octets_max: u32,
    /// One unit each so many ns.
    pub period_ns: u32,
    /// The proven bound from ready to delivered, ns.
    pub bound_ns: u64,
    /// How many units the program handed over or left out before the close; in [`Verb::Connect`] on the
    /// channels that this one continues; in [`Verb::Reach`] the question's number.
    pub final_unit: u64,
    /// How many of these the program left out; only in [`Verb::Close`], in the place of the bound.
    pub left_out: u64,
    /// How many of these waited at the end and never left; only in [`Verb::Close`], in the place of the
    /// period.
    pub unsent: u32,
    /// The counts of units, in the verbs of [`Verb::has_tally`]; other verbs do not send them.
    pub tally: Tally,
}

impl Signal {
    /// The longest body.
    pub const OCTETS: usize = 2 + 2 * 2 + 8 + 2 * 4 + 2 * 8 + TALLY_OCTETS;

    /// A signal with only the fields that every verb has.
    pub const fn new(verb: Verb, channel: ChannelId, label: u16) -> Self {
        let tally = Tally { units: 0, late: 0, lost: 0, incomplete: 0, latest_by_ns: 0, unread: 0 };
        Self {
            verb,
            code: 0,
            service: 0,
            label,
            channel,
            unit_octets_max: 0,
            period_ns: 0,
            bound_ns: 0,
            final_unit: 0,
            left_out: 0,
            unsent: 0,
            tally,
        }
    }

    /// Whether an acknowledgement repeats the contract that this signal tells.
    pub const fn is_answered_by(&self, answer: &Self) -> bool {
        self.unit_octets_max == answer.unit_octets_max && self.bound_ns == answer.bound_ns
    }

    /// Reads the body.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(body);
        let verb = Verb::from_code(reader.u8()?);
        let code = reader.u8()?;
        let (service, label, channel) = (reader.u16()?, reader.u16()?, ChannelId(reader.u64()?));
        let (unit_octets_max, pace) = (reader.u32()?, reader.u32()?);
        let (figure, final_unit) = (reader.u64()?, reader.u64()?);
        let is_close = verb == Verb::Close;
        let (period_ns, unsent) = if is_close { (0, pace) } else { (pace, 0) };
        let (bound_ns, left_out) = if is_close { (0, figure) } else { (figure, 0) };
        let tally = if verb.has_tally() { parse_tally(&mut reader)? } else { Tally::default() };
        reader.end()?;
        Ok(Self {
            verb,
            code,
            service,
            label,
            channel,
            unit_octets_max,
            period_ns,
            bound_ns,
            final_unit,
            left_out,
            unsent,
            tally,
        })
    }

    /// Writes the body and returns its length.
    pub fn emit(&self, body: &mut [u8]) -> usize {
        let mut writer = Writer::new(body);
        writer.u8(self.verb.code()).u8(self.code).u16(self.service).u16(self.label).u64(self.channel.0);
        let is_close = self.verb == Verb::Close;
        let pace = if is_close { self.unsent } else { self.period_ns };
        let figure = if is_close { self.left_out } else { self.bound_ns };
        writer.u32(self.unit_octets_max).u32(pace).u64(figure).u64(self.final_unit);
        if self.verb.has_tally() {
            emit_tally(&self.tally, &mut writer);
        }
        writer.written()
    }
}
