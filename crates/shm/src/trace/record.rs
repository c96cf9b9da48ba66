//! One event, as the node writes it and as a reader has it.

use rota_contract::ChannelId;
use std::mem::offset_of;
use strum::VariantArray;

use crate::layout::{TRACE_SNAP_OCTETS, TraceSlot};
use crate::raw::{ReadPages, WritePages};

/// What happened.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, strum::IntoStaticStr, VariantArray, strum::VariantNames,
)]
#[strum(serialize_all = "kebab-case")]
#[repr(u8)]
pub enum TraceEvent {
    /// Nothing that this version knows.
    #[default]
    Other,
    /// A frame was handed to the device.
    Sent,
    /// A frame came.
    Received,
    /// A frame was not sent.
    Dropped,
    /// The mode is now `number`: 0 joining, 1 plain, 2 switching, 3 token; before it was `extra[0]`.
    ModeChange,
    /// Station `src` does not answer any more, or has left.
    Lost,
    /// Station `src` is there (again).
    Back,
    /// Station `src`, or the address in the octets, does not take part; the octets say why.
    RefusedStation,
    /// A reservation was refused: the octets name the test, `extra` is margin ns, missing bit/s, and the
    /// counter-offer in octets.
    Refused,
    /// A channel is reserved: `extra` is largest unit, period and bound.
    Opened,
    /// It has a new contract, likewise.
    Changed,
    /// It is over; the octets say why, `number` is how many units were sent, plus one.
    Closed,
    /// Unit `number` was late or not whole: `extra` is units that never came or never left (of a late
    /// one: the bound in ns), octets missing, and how much earlier than agreed its sender sent it.
    Missed,
    /// This program did not run from `extra[0]` to `extra[1]` though it should have.
    Stall,
    /// The link went down.
    LinkDown,
    /// The link is up again.
    LinkUp,
    /// This station began a claim: the token was missed.
    #[strum(serialize = "token-missed")]
    Claim,
    /// This station made a new token.
    #[strum(serialize = "token-made")]
    Regenerated,
    /// A lease ended before its token was passed on.
    LeaseEnded,
    /// A cycle lasted longer than its period.
    CycleSkipped,
    /// The interface of a port is gone, and its channels with it; the octets say why.
    PortLost,
    /// The path of a channel across segments has failed, and another one is looked for; the octets say why.
    PathFailed,
    /// It goes on over another one: `extra` is largest unit, period and bound.
    Rerouted,
    /// A group of channels was beyond its contract: `number` of its packets had to wait since the last such
    /// event; the octets name the group.
    BeyondContract,
}

impl TraceEvent {
    /// The word that people and filters use.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// What was found of it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, strum::IntoStaticStr, VariantArray, strum::VariantNames,
)]
#[strum(serialize_all = "kebab-case")]
#[repr(u8)]
pub enum TraceVerdict {
    /// Nothing to say.
    #[default]
    #[strum(serialize = "")]
    None,
    /// It was there before its deadline.
    InTime,
    /// It was not.
    Late,
    /// A token that was taken.
    Accepted,
    /// A token that was sent once more.
    Again,
    /// A token not newer than one seen.
    Stale,
    /// No key proves it.
    Unauthentic,
    /// It is not what it says.
    Malformed,
    /// It was seen before, or is of a replaced boot.
    Replayed,
    /// Its sender had no right to send.
    Policed,
    /// Nobody receives it here.
    UnknownChannel,
    /// A token whose receive stamp was missing or older than a lease.
    Expired,
    /// Its generation is further ahead than any honest one.
    Jump,
    /// There was no room for it.
    NoRoom,
    /// Something of it is missing.
    Incomplete,
    /// Nothing of it came.
    Missing,
    /// A timer fired late.
    TimerLate,
    /// A frame waited in the kernel.
    DequeueLate,
    /// Its program left it out, because its turn had passed.
    LeftOut,
    /// It came, and the receiving program did not read it in time.
    Unread,
}

impl TraceVerdict {
    /// The word that people and filters use.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// One event. Which fields mean something is said at [`TraceEvent`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceRecord<'a> {
    /// What happened.
    pub event: TraceEvent,
    /// What was found.
    pub verdict: TraceVerdict,
    /// When, monotonic ns; of a received frame the kernel's stamp, where there is one.
    pub at_ns: u64,
    /// When the node noted it.
    pub noted_ns: u64,
    /// The code of the frame's kind, as in docs/wire.md; [`Self::LLC`] and [`Self::ORDINARY`] beside these;
    /// 0 for no frame.
    pub kind: u8,
    /// The frame's level, where it has one.
    pub level: Option<u8>,
    /// The port of the node, counted from 0; none for an event of the whole host.
    pub port: Option<u8>,
    /// Octets of the whole frame.
    pub length: u16,
    /// Who sent it; 0 when nobody knows.
    pub src: u16,
    /// To whom; [`Self::EVERYBODY`] for a broadcast.
    pub dst: u16,
    /// The channel's label on the wire.
    pub label: u16,
    /// The channel's id, its sender's at both ends; [`ChannelId::NONE`] for none.
    pub channel: ChannelId,
    /// The unit's number, or what the event says.
    pub number: u64,
    /// When the unit had to be there, monotonic ns; 0 where nothing was promised or it cannot be known.
    pub deadline_ns: u64,
    /// How much later it was; negative when it was early.
    pub late_ns: i64,
    /// What the event says.
    pub extra: [u64; 3],
    /// The first octets of the frame, or a word about the event. A longer one is cut.
    pub octets: &'a [u8],
}

/// A code of a later version is the first one.
fn of_code<T: VariantArray + Copy + Default>(code: u8) -> T {
    T::VARIANTS.get(usize::from(code)).copied().unwrap_or_default()
}

impl<'a> TraceRecord<'a> {
    /// The kind of an 802.2 frame.
    pub const LLC: u8 = 200;
    /// The kind of an ordinary frame of the host's.
    pub const ORDINARY: u8 = 201;
    /// The destination of a broadcast.
    pub const EVERYBODY: u16 = 0xffff;

    /// The words of the octets, where they are a word about the event.
    pub fn words(&self) -> String {
        let text = String::from_utf8_lossy(self.octets);
        text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
    }

    pub(super) fn write(&self, pages: &WritePages, at: usize) {
        let kept = self.octets.len().min(TRACE_SNAP_OCTETS);
        let more = |value: Option<u8>| value.map_or(0, |value| value.saturating_add(1));
        let shape = u64::from(self.event as u8)
            | u64::from(self.kind) << 8
            | u64::from(self.verdict as u8) << 16
            | u64::from(more(self.level)) << 24
            | (kept as u64) << 32
            | u64::from(self.length) << 48;
        let parties = u64::from(self.src)
            | u64::from(self.dst) << 16
            | u64::from(self.label) << 32
            | u64::from(more(self.port)) << 48;
        let words =
            [self.at_ns, self.noted_ns, shape, parties, self.channel.0, self.number, self.deadline_ns];
        for (index, word) in words.into_iter().enumerate() {
            pages.store(at + offset_of!(TraceSlot, at_ns) + index * 8, word);
        }
        pages.store(at + offset_of!(TraceSlot, late_ns), self.late_ns.cast_unsigned());
        for (index, word) in self.extra.into_iter().enumerate() {
            pages.store(at + offset_of!(TraceSlot, extra) + index * 8, word);
        }
        pages.copy_in(at + offset_of!(TraceSlot, octets), &self.octets[..kept]);
    }

    /// Reads a slot; any octets give some record.
    pub(super) fn read(pages: &ReadPages, at: usize, into: &'a mut [u8; TRACE_SNAP_OCTETS]) -> Self {
        let word = |offset: usize| pages.load(at + offset);
        let shape = word(offset_of!(TraceSlot, shape));
        let parties = word(offset_of!(TraceSlot, parties));
        let kept = usize::from((shape >> 32) as u16).min(TRACE_SNAP_OCTETS);
        pages.copy_out(at + offset_of!(TraceSlot, octets), &mut into[..kept]);
        let extra = |index: usize| word(offset_of!(TraceSlot, extra) + index * 8);
        Self {
            event: of_code(shape as u8),
            verdict: of_code((shape >> 16) as u8),
            at_ns: word(offset_of!(TraceSlot, at_ns)),
            noted_ns: word(offset_of!(TraceSlot, noted_ns)),
            kind: (shape >> 8) as u8,
            level: ((shape >> 24) as u8).checked_sub(1),
            port: ((parties >> 48) as u8).checked_sub(1),
            length: (shape >> 48) as u16,
            src: parties as u16,
            dst: (parties >> 16) as u16,
            label: (parties >> 32) as u16,
            channel: ChannelId(word(offset_of!(TraceSlot, channel))),
            number: word(offset_of!(TraceSlot, number)),
            deadline_ns: word(offset_of!(TraceSlot, deadline_ns)),
            late_ns: word(offset_of!(TraceSlot, late_ns)).cast_signed(),
            extra: [extra(0), extra(1), extra(2)],
            octets: &into[..kept],
        }
    }
}
