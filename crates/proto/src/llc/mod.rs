//! Logical link control: datagrams between sockets (IEEE 802.2 types 1 and 3; `specs/shipnet.md`).
//!
//! ```text
//!  send ─► queued ─────────────────► sent to the MAC                     (no acknowledgement wanted)
//!            │  ▲ time over: again
//!            ▼  │
//!          waits for the answer ───► acknowledged | failed | timed out   (type 3)
//! ```
//! A frame is an entry of the node's one queue of eight levels. In plain mode the queue drains at once, in
//! token mode when the token comes, and so the highest level leaves first in both.
//!
//! Fulfils SHIPNET-2-3, SHIPNET-2-14, SHIPNET-2-15, SHIPNET-2-16, SHIPNET-2-17, SHIPNET-3-3, SHIPNET-3-8,
//! SHIPNET-6.4-1.
//!
//! # Departures from the paper and the standard, each with its reason
//! 1. Ethernet has no frame-copied bit, so `tries` counts attempts of type 3: without `ack` one try is all.
//! 2. An Ethernet frame carries no access priority, so the bit of type 3 belongs to (socket, station), not to
//!    (socket, station, priority); a second acknowledged message to that station waits for the first.
//! 3. A message longer than a frame travels in fragments under SNAP; for `ack` each is acknowledged.
//!    Fragments of several messages to one station take turns, the highest level first.
//! 4. One bit tells a command from its repetition only while the receiver remembers it (ISO 8802-2 calls that
//!    time the receive variable's life). Between stations of ours a repetition later than that has the P bit
//!    and is compared with the octets that were taken. After a command that nobody answered the next one
//!    waits until its bit is forgotten, and has the other bit, so that a late answer to the first cannot fit
//!    it; an answer that has waited longer than that here is not sent any more.
//! 5. XID and TEST to all sockets of a station are answered once, from the station's own access point.

mod answer;
mod direction;
mod receive;
mod send;
mod table;

pub use receive::{ASSEMBLIES, MessageDelivery, MessagePart};

use crate::io::FrameBuf;
use crate::segment::{Segment, Wants};
use answer::Answers;
pub(crate) use answer::{ACKS_MAX, ANSWERS_MAX};
use core::fmt;
use receive::{Assembly, HeardCommand};
use rota_contract::MessageOutcome;
use rota_medium::Budget;
use rota_units::{Instant, Span};
use rota_wire::MacAddr;
use rota_wire::llc::LlcMalformed;
pub use rota_wire::llc::{MESSAGE_OCTETS_MAX, is_socket};
pub use rota_wire::reserved;
use std::collections::VecDeque;
use table::{AckLink, Message, Stage};

/// The node address that reaches everybody, the sender too.
pub const LLC_BROADCAST: u8 = 255;
/// Messages of this station on their way at most.
pub const MESSAGES_MAX: usize = 1_024;
/// For so long a receiver remembers the bit of a command, and a sender whose command stayed unanswered waits
/// before it sends another one: longer than all tries of one command are apart.
pub const BIT_LIFE: Span = Span::from_millis(1_000);
/// For so long a receiver knows a repetition that says it is a late one, by its bit and its octets. No
/// command is repeated for longer.
pub const REPEAT_LIFE: Span = Span::from_millis(60_000);
/// Real LANs use these access points for others: spanning tree, NetWare, NetBIOS, OSI.
pub const TAKEN: [u8; 4] = [0x42, 0xe0, 0xf0, 0xfe];

/// A socket of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LlcAddress {
    /// The socket, an IEEE 802.2 access point: even, 2 to 254.
    pub socket: u8,
    /// The station: 1 to 254, [`LLC_BROADCAST`] for all; 0 where a sender has no address.
    pub node: u8,
}

/// What a station is told about logical link control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LlcSettings {
    /// Whether this station keeps room for messages. Without it their frames are read and counted only, and a
    /// node is small, as those of a model checker must be.
    pub enabled: bool,
    /// This station's node address, 1 to 254; 0 for none.
    pub address: u8,
    /// Stations without Rota, by their node address.
    pub peer_macs: Vec<(u8, MacAddr)>,
    /// Nobody else uses 802.2 on this segment, so all access points but SNAP's are free.
    pub private_segment: bool,
    /// How long an acknowledgement may take in plain mode.
    pub ack_time: Span,
    /// The same in token mode, where it waits for the token.
    pub ack_time_token: Span,
}

impl Default for LlcSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            address: 0,
            peer_macs: Vec::new(),
            private_segment: false,
            ack_time: Span::from_millis(50),
            ack_time_token: Span::from_millis(200),
        }
    }
}

impl LlcSettings {
    /// Whether programs may open this socket here.
    pub fn may_open(&self, socket: u8) -> bool {
        self.enabled && is_socket(socket) && (self.private_segment || !TAKEN.contains(&socket))
    }
}

/// A message that a program wants sent. Its octets stay with the program until it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LlcRequest {
    /// From which socket.
    pub socket: u8,
    /// The program's number for it.
    pub number: u64,
    /// Its length.
    pub octets: u32,
    /// For whom.
    pub to: LlcAddress,
    /// Its priority, 0 to 7 (highest).
    pub level: u8,
    /// Whether it is to be acknowledged (type 3).
    pub ack: bool,
    /// How often it is sent at most before it counts as lost; 0 means once.
    pub tries: u8,
    /// When it is to be given up; [`Instant::FAR`] for never.
    pub until: Instant,
}

/// What happened to messages of this station's programs, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LlcEvent {
    /// The first frame was handed to the card, and more is to come: frames, or an answer.
    Begun {
        /// Of which socket.
        socket: u8,
        /// Which message.
        number: u64,
    },
    /// The message is for a socket of this station (too): the parent copies it from ring to ring.
    Local {
        /// From whom.
        from: LlcAddress,
        /// Which message.
        number: u64,
        /// Its length.
        octets: u32,
        /// To which socket.
        to: u8,
        /// Its priority.
        level: u8,
    },
    /// It is over; the program may have its room back.
    Done {
        /// Of which socket.
        socket: u8,
        /// Which message.
        number: u64,
        /// What became of it.
        outcome: MessageOutcome,
    },
}

impl LlcEvent {
    /// The socket whose message it is about.
    pub fn socket(&self) -> u8 {
        match self {
            Self::Begun { socket, .. } | Self::Done { socket, .. } => *socket,
            Self::Local { from, .. } => from.socket,
        }
    }
}

/// All places for messages are taken; when one is done there is room again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LlcBusy;

/// What the machine counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LlcCounters {
    /// Frames sent, answers included.
    pub frames_sent: u64,
    /// Well-formed frames received.
    pub frames_received: u64,
    /// Messages handed to sockets here.
    pub messages_received: u64,
    /// Frames sent again for want of an answer.
    pub frames_repeated: u64,
    /// Acknowledged commands that had come before.
    pub duplicates: u64,
    /// Frames for a socket that nobody has open.
    pub no_socket: u64,
    /// XID and TEST answered.
    pub answered: u64,
    /// Answers and acknowledgements that nothing asked for.
    pub unasked: u64,
    /// Answers not sent, because too many wait already.
    pub answers_dropped: u64,
    /// Fragments dropped, because too many messages were incomplete.
    pub fragments_dropped: u64,
    /// Incomplete messages given up.
    pub incomplete: u64,
    /// Frames for another station or from ourselves.
    pub not_for_us: u64,
    /// Malformed frames by kind, in the order of [`LlcMalformed::ALL`].
    pub malformed: [u64; LlcMalformed::ALL.len()],
}

/// Logical link control of one station.
#[derive(Clone)]
pub struct Llc {
    mac: MacAddr,
    settings: LlcSettings,
    open: [bool; 128],
    messages: Vec<Message>,
    free: Vec<u16>,
    /// Acknowledged messages for which there is no direction yet, in their order.
    held: VecDeque<u16>,
    /// Nothing that is over has an entry in the queue.
    swept: bool,
    links: Vec<AckLink>,
    heard: Vec<HeardCommand>,
    assemblies: Vec<Assembly>,
    answers: Answers,
    events: VecDeque<LlcEvent>,
    /// A wish to the queue of ordinary traffic.
    wants: Wants<Want>,
    born: Instant,
    /// No timer is due before.
    wake: Instant,
    next_message: u16,
    /// Answers to XID and TEST, for which any station on the wire can ask without end.
    questions: Budget,
    /// Acknowledged commands of sources that are no members.
    commands: Budget,
    counters: LlcCounters,
}

/// Answers to XID and TEST, and to commands of strangers, in the long run; a monitor that asks everybody
/// needs fewer.
const QUESTIONS_A_SECOND: u64 = 100;

/// The wishes to the queue of ordinary traffic of this station, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Want {
    /// An entry waits for its turn.
    Queue {
        /// Its message, or its answer.
        slot: u16,
        /// Octets of its frame.
        octets: u16,
        /// Its level.
        level: u8,
        /// It is the next frame of a message that has begun: it goes before its level.
        first: bool,
    },
    /// An entry does not wait any more.
    Unqueue {
        /// Its level.
        level: u8,
        /// Its message, or its answer.
        slot: u16,
    },
    /// No entry of a message that is over waits any more ([`Llc::is_gone`]); then [`Llc::free_gone`].
    Sweep,
}

/// Wants of one call at most. The timers want the most: each message is sent again, and each that is held
/// gets a direction, which hurries the one before it (two wants) and lets another one go.
const WANTS_MAX: usize = 6 * MESSAGES_MAX;

impl Llc {
    pub(crate) fn new(now: Instant, mac: MacAddr, settings: LlcSettings) -> Self {
        let room = |places: usize| if settings.enabled { places } else { 0 };
        Self {
            mac,
            open: [false; 128],
            messages: vec![Message::FREE; room(MESSAGES_MAX)],
            free: (0..room(MESSAGES_MAX) as u16).rev().collect(),
            held: VecDeque::with_capacity(room(MESSAGES_MAX)),
            swept: true,
            links: Vec::with_capacity(room(table::LINKS_MAX)),
            heard: Vec::with_capacity(room(receive::HEARD_MAX)),
            assemblies: Assembly::all(room(ASSEMBLIES)),
            answers: Answers::new(room(ANSWERS_MAX), room(ACKS_MAX)),
            events: VecDeque::with_capacity(room(4 * MESSAGES_MAX)),
            wants: Wants::new(room(WANTS_MAX)),
            settings,
            born: now,
            wake: Instant::FAR,
            next_message: 0,
            questions: Budget::new(QUESTIONS_A_SECOND, ANSWERS_MAX as u64),
            commands: Budget::new(QUESTIONS_A_SECOND, ANSWERS_MAX as u64),
            counters: LlcCounters::default(),
        }
    }

    /// The settings.
    pub fn settings(&self) -> &LlcSettings {
        &self.settings
    }

    /// This station's node address, 0 for none.
    pub fn address(&self) -> u8 {
        self.settings.address
    }

    /// What was counted.
    pub fn counters(&self) -> &LlcCounters {
        &self.counters
    }

    /// Sockets that programs have open.
    pub fn open_sockets(&self) -> impl Iterator<Item = u8> {
        (0u8..128).filter(|half| self.open[usize::from(*half)]).map(|half| half * 2)
    }

    /// The port is gone: its messages are over, and nothing of theirs is on its way any more.
    pub(crate) fn end_with_port(mut self) -> VecDeque<LlcEvent> {
        let left = self.messages.iter().filter(|one| !matches!(one.stage, Stage::Free | Stage::Gone));
        let over = left.map(|one| LlcEvent::Done {
            socket: one.request.socket,
            number: one.request.number,
            outcome: MessageOutcome::TimedOut,
        });
        self.events.extend(over);
        self.events
    }

    /// True if it can take another message.
    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// How sure it is that a node address is to be reached here: 0 for its own and a live station's, 1 for
    /// another one that is known, 2 for none.
    pub(crate) fn distance(&self, node: u8, segment: Segment<'_>) -> u8 {
        let is_own = node != 0 && node == self.settings.address;
        let member = segment.members().iter().find(|of| node != 0 && of.announce.llc_address == node);
        match (is_own, member) {
            (true, _) => 0,
            (_, Some(member)) if !segment.is_dead(member.station) => 0,
            _ if self.mac_of(node, segment).is_some() => 1,
            _ => 2,
        }
    }

    pub(crate) fn is_open(&self, socket: u8) -> bool {
        is_socket(socket) && self.open[usize::from(socket / 2)]
    }

    /// A program has this socket from now on.
    pub(crate) fn open(&mut self, socket: u8) {
        self.open[usize::from(socket / 2)] = true;
    }

    /// Nobody has it any more: what it still wanted sent is given up without a word, and so is what has come
    /// for it in part. The next program that opens it gets nothing of that.
    pub(crate) fn close(&mut self, now: Instant, socket: u8) {
        self.open[usize::from(socket / 2)] = false;
        self.forget_incomplete(socket);
        self.cancel(now, socket);
        self.events.retain(|event| event.socket() != socket);
    }

    /// The next wish to the queue; the parent asks after each call until there is nothing.
    pub(crate) fn next_want(&mut self) -> Option<Want> {
        self.wants.next()
    }

    pub(crate) fn next_event(&mut self) -> Option<LlcEvent> {
        self.events.pop_front()
    }

    pub(crate) fn has_event(&self) -> bool {
        !self.events.is_empty()
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.wake
    }

    /// Writes the frame of an entry that has left the queue. `None` when it has become pointless, or when its
    /// message waits on.
    pub(crate) fn transmit(
        &mut self,
        now: Instant,
        slot: u16,
        frame: &mut FrameBuf<'_>,
        segment: Segment<'_>,
    ) -> Option<u16> {
        let len = match usize::from(slot).checked_sub(MESSAGES_MAX) {
            Some(answer) => self.answers.write(now, answer, self.mac, frame.bytes)?,
            None => self.write_message(now, slot, frame, segment)?,
        };
        self.counters.frames_sent += 1;
        Some(len as u16)
    }

    /// Whom a node address means.
    fn mac_of(&self, node: u8, segment: Segment<'_>) -> Option<MacAddr> {
        if node == LLC_BROADCAST {
            return Some(MacAddr::BROADCAST);
        }
        let member = segment.members().iter().find(|member| node != 0 && member.announce.llc_address == node);
        let other = || self.settings.peer_macs.iter().find(|(of, _)| *of == node).map(|(_, mac)| *mac);
        member.map(|member| member.mac).or_else(other)
    }

    /// The node address of a station and, where it is one of ours, its boot; 0 where it has none.
    fn node_of(&self, mac: MacAddr, segment: Segment<'_>) -> (u8, u32) {
        let member = segment.member_at(mac);
        let other = || self.settings.peer_macs.iter().find(|(_, of)| *of == mac).map_or(0, |(node, _)| *node);
        member.map_or_else(|| (other(), 0), |m| (m.announce.llc_address, m.incarnation))
    }

    fn count_malformed(&mut self, why: LlcMalformed) {
        if let Some(at) = LlcMalformed::ALL.iter().position(|(kind, _)| *kind == why) {
            self.counters.malformed[at] += 1;
        }
    }

    fn event(&mut self, event: LlcEvent) {
        self.events.push_back(event);
    }
}

impl fmt::Debug for Llc {
    /// What it knows, without the room that it keeps.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open: Vec<u8> = self.open_sockets().collect();
        let messages: Vec<&Message> = self.messages.iter().filter(|one| one.stage != Stage::Free).collect();
        let (links, heard) = (&self.links, &self.heard);
        let told = f.debug_struct("Llc").field("open", &open).field("messages", &messages).finish();
        told.and_then(|()| write!(f, " {links:?} {heard:?} {:?}", self.counters))
    }
}

const _: () = assert!(MESSAGE_OCTETS_MAX <= u16::MAX as usize, "a fragment's total is 16 bits");
