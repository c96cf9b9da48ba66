//! The receiving half: deliveries, acknowledgements, and which fragments of long messages have come.
//!
//! The octets never stand here: the parent copies those of each delivery to their place in the memory of the
//! program that gets the message. So what is acknowledged has a place there.

use super::{BIT_LIFE, Llc, LlcAddress, REPEAT_LIFE, Want};
use crate::segment::{ModeName, Segment};
use rota_units::{Instant, Span};
use rota_wire::MacAddr;
use rota_wire::llc::{
    AckStatus, Control, FRAGMENT_OCTETS, FRAGMENT_PAYLOAD_MIN, Fragment, LLC_INFORMATION, LlcHeader, LlcView,
    MESSAGE_OCTETS_MAX, SAP_GLOBAL, SAP_NULL, SAP_SNAP, XID_INFORMATION, fragment_payload,
};

/// Senders of acknowledged commands that are remembered.
pub(super) const HEARD_MAX: usize = 512;
/// Messages that may be incomplete at a time.
pub const ASSEMBLIES: usize = 8;
/// A message without a new fragment for so long gives its room to one that begins. In plain mode the longest
/// message needs 14 ms at 10 Mbit/s. In token mode a cycle is added, in which each station sends once.
const PATIENCE: Span = Span::from_millis(20);

/// A message for a socket of this station, or a part of one. Its octets stand in the frame that was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageDelivery {
    /// For which socket.
    pub socket: u8,
    /// From whom; node 0 where the sender has no address.
    pub from: LlcAddress,
    /// Its priority where the wire tells: fragments do, other frames have no room for it.
    pub level: u8,
    /// Octets of the whole message.
    pub octets: u16,
    /// Where the octets that came begin in the frame.
    pub offset: u16,
    /// How many of them came.
    pub came: u16,
    /// Which part of the message they are.
    pub part: MessagePart,
}

impl MessageDelivery {
    /// True if all of the message has come with it.
    pub fn completes(&self) -> bool {
        matches!(self.part, MessagePart::Whole | MessagePart::Fragment { completes: true, .. })
    }
}

/// Which part of a message a frame carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagePart {
    /// All of it.
    Whole,
    /// One of several, which come in any order. None comes twice.
    Fragment {
        /// Which of the incomplete messages, below [`ASSEMBLIES`].
        assembly: u8,
        /// Which part, from 0.
        index: u8,
        /// Octets of each part but the last.
        size: u16,
        /// It is the first to come. The incomplete message that had this number before has been given up.
        begins: bool,
        /// All others have come.
        completes: bool,
    },
}

/// The sender of an acknowledged command.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeardCommand {
    sap: u8,
    mac: MacAddr,
    /// The sender's boot: after another one its bits begin anew.
    incarnation: u32,
    /// The bit of its last command.
    bit: bool,
    /// That command's octets, as a number.
    print: u64,
    /// What it was answered.
    status: AckStatus,
    at: Instant,
}

impl HeardCommand {
    /// Whether a command is this one again.
    fn is_again(&self, now: Instant, command: &Self, poll: bool) -> bool {
        // A station that is not known as one of ours yet, or not any more, has not booted for that.
        let boots = [self.incarnation, command.incarnation];
        if self.bit != command.bit || (boots[0] != boots[1] && !boots.contains(&0)) {
            return false;
        }
        let age = now.since(self.at);
        let late = poll && command.incarnation != 0;
        age < BIT_LIFE || (late && age < REPEAT_LIFE && self.print == command.print)
    }
}

/// A number for a command's octets, which unlike ones hardly share. Nobody is kept from forging it: frames
/// of link control prove nothing anyway.
fn print_of(view: &LlcView<'_>) -> u64 {
    let step = |print: u64, word: u64| (print ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let begin = u64::from(view.header.dsap) << 16 | view.information.len() as u64;
    let (words, rest) = view.information.as_chunks::<8>();
    let print = words.iter().fold(begin, |print, word| step(print, u64::from_le_bytes(*word)));
    rest.iter().fold(print, |print, octet| step(print, u64::from(*octet)))
}

/// A message of which fragments have come, and not all.
#[derive(Clone, Debug)]
pub(super) struct Assembly {
    used: bool,
    mac: MacAddr,
    of: Fragment,
    /// It is from a member of the segment or a station of the static table, by its address.
    member: bool,
    /// Each fragment is acknowledged, so that its sender may go on for as long as it repeats.
    acked: bool,
    /// One bit for each fragment that has come.
    seen: u32,
    /// When a fragment came that had not come before.
    at: Instant,
}

const _: () = assert!(MESSAGE_OCTETS_MAX.div_ceil(FRAGMENT_PAYLOAD_MIN) <= 32, "a bit for each fragment");

impl Assembly {
    pub(super) fn all(places: usize) -> Vec<Self> {
        let of =
            Fragment { dsap: 0, ssap: 0, level: 0, index: 0, last: false, message: 0, total: 0, size: 0 };
        let (used, member, acked, mac) = (false, false, false, MacAddr::BROADCAST);
        vec![Self { used, member, acked, mac, of, seen: 0, at: Instant::ZERO }; places]
    }

    fn is_of(&self, mac: MacAddr, of: &Fragment) -> bool {
        let key = |of: &Fragment| (of.dsap, of.ssap, of.message, of.total, of.size);
        self.used && self.mac == mac && key(&self.of) == key(of)
    }
}

impl Llc {
    /// One 802.3 frame. Bad ones are counted, never an error.
    pub(crate) fn on_frame(
        &mut self,
        now: Instant,
        data: &[u8],
        segment: Segment<'_>,
    ) -> Option<MessageDelivery> {
        let view = match LlcView::parse(data) {
            Ok(view) => view,
            Err(why) => {
                self.count_malformed(why);
                return None;
            }
        };
        let for_us = view.destination == self.mac || view.destination == MacAddr::BROADCAST;
        if !for_us || view.source == self.mac {
            self.counters.not_for_us += 1;
            return None;
        }
        self.counters.frames_received += 1;
        let header = view.header;
        match header.control {
            Control::Ui => return self.on_message(now, &view, segment).unwrap_or(None),
            Control::Xid { .. } | Control::Test { .. } if header.response => self.counters.unasked += 1,
            Control::Xid { .. } | Control::Test { .. } => self.on_question(now, &view),
            Control::Ac { bit, .. } if header.response => {
                let status = AckStatus(view.information.first().copied().unwrap_or(u8::MAX));
                self.on_answer(now, view.source, header.dsap, bit, status);
            }
            Control::Ac { bit, poll } => return self.on_command(now, &view, bit, poll, segment),
        }
        None
    }

    /// The octets of a message, or of a part of it. The status tells an acknowledged sender why not.
    fn on_message(
        &mut self,
        now: Instant,
        view: &LlcView<'_>,
        segment: Segment<'_>,
    ) -> Result<Option<MessageDelivery>, AckStatus> {
        let LlcHeader { dsap, ssap, .. } = view.header;
        if dsap == SAP_SNAP {
            return self.on_fragment(now, view, segment);
        }
        if !self.is_open(dsap) {
            self.counters.no_socket += 1;
            return Err(AckStatus::UNACTIVATED);
        }
        self.counters.messages_received += 1;
        let from = LlcAddress { socket: ssap, node: self.node_of(view.source, segment).0 };
        let (octets, offset) = (view.information.len() as u16, LLC_INFORMATION as u16);
        let (level, part) = (0, MessagePart::Whole);
        Ok(Some(MessageDelivery { socket: dsap, from, level, octets, offset, came: octets, part }))
    }

    fn on_fragment(
        &mut self,
        now: Instant,
        view: &LlcView<'_>,
        segment: Segment<'_>,
    ) -> Result<Option<MessageDelivery>, AckStatus> {
        let size = fragment_payload(segment.mtu());
        let (of, payload) = match Fragment::parse(view.information, size) {
            Ok(read) => read,
            Err(why) => {
                self.count_malformed(why);
                return Err(AckStatus::PROTOCOL);
            }
        };
        if !self.is_open(of.dsap) {
            self.counters.no_socket += 1;
            return Err(AckStatus::UNACTIVATED);
        }
        let begun = self.assemblies.iter().position(|assembly| assembly.is_of(view.source, &of));
        let acked = matches!(view.header.control, Control::Ac { .. });
        if begun.is_none() && of.index > 0 && acked {
            // They come one by one, so the first ones have been given up here: it can never be whole.
            self.counters.fragments_dropped += 1;
            return Err(AckStatus::PROTOCOL);
        }
        let Some(at) = begun.or_else(|| self.begin_assembly(now, view.source, &of, acked, segment)) else {
            self.counters.fragments_dropped += 1;
            return Err(AckStatus::RESOURCES);
        };
        let assembly = &mut self.assemblies[at];
        let bit = 1 << of.index;
        if assembly.seen & bit != 0 {
            // A fragment sent again holds the place no longer.
            return Ok(None);
        }
        let begins = assembly.seen == 0;
        (assembly.seen, assembly.at) = (assembly.seen | bit, now);
        let fragments = usize::from(of.total).div_ceil(usize::from(of.size)) as u32;
        let completes = assembly.seen.count_ones() == fragments;
        if completes {
            assembly.used = false;
            self.counters.messages_received += 1;
        } else {
            self.wake = self.wake.min(now + if acked { REPEAT_LIFE } else { BIT_LIFE });
        }
        let from = LlcAddress { socket: of.ssap, node: self.node_of(view.source, segment).0 };
        Ok(Some(MessageDelivery {
            socket: of.dsap,
            from,
            level: of.level,
            octets: of.total,
            offset: (LLC_INFORMATION + FRAGMENT_OCTETS) as u16,
            came: payload.len() as u16,
            part: MessagePart::Fragment {
                assembly: at as u8,
                index: of.index,
                size: of.size,
                begins,
                completes,
            },
        }))
    }

    /// The place of a message that begins.
    fn begin_assembly(
        &mut self,
        now: Instant,
        mac: MacAddr,
        of: &Fragment,
        acked: bool,
        segment: Segment<'_>,
    ) -> Option<usize> {
        self.assemblies_tick(now);
        let member = self.knows(mac, segment);
        let free = self.assemblies.iter().position(|assembly| !assembly.used);
        // A message that may go on for a minute does not keep the room for as long from others.
        let at = free.or_else(|| {
            let all = self.assemblies.iter().enumerate();
            let patient = all.filter(|(_, assembly)| now >= assembly.at + BIT_LIFE);
            let oldest = patient.min_by_key(|(_, assembly)| assembly.at).map(|(at, _)| at);
            let oldest = oldest.or_else(|| self.taken_from(mac, member));
            // The rest of a message that was given up takes no room from one that can still be whole.
            let begins = of.index == 0;
            let oldest =
                oldest.or_else(|| begins.then(|| self.stalled(now, mac, member, segment)).flatten())?;
            self.counters.incomplete += 1;
            Some(oldest)
        })?;
        let assembly = &mut self.assemblies[at];
        (assembly.used, assembly.acked, assembly.mac, assembly.member) = (true, acked, mac, member);
        (assembly.of, assembly.seen) = (*of, 0);
        Some(at)
    }

    /// True for the address of a member, or of a station in the static table.
    fn knows(&self, mac: MacAddr, segment: Segment<'_>) -> bool {
        segment.member_at(mac).is_some() || self.node_of(mac, segment).0 != 0
    }

    /// Unfinished messages of this source.
    fn unfinished_of(&self, mac: MacAddr) -> usize {
        self.assemblies.iter().filter(|assembly| assembly.mac == mac).count()
    }

    /// The message that makes room for one of this source while all room is in use. A member takes room from
    /// those that are none; then the source with the most messages gives its oldest one, if it keeps at least
    /// as many as the newcomer then has.
    fn taken_from(&self, mac: MacAddr, member: bool) -> Option<usize> {
        let all = || self.assemblies.iter().enumerate();
        let strangers = all().filter(|(_, assembly)| member && !assembly.member);
        if let Some((oldest, _)) = strangers.min_by_key(|(_, assembly)| assembly.at) {
            return Some(oldest);
        }
        // A stranger takes nothing from a member.
        let rivals = all().filter(|(_, assembly)| member || !assembly.member);
        let own = self.unfinished_of(mac);
        let counted = rivals.map(|(at, it)| (self.unfinished_of(it.mac), core::cmp::Reverse(it.at), at));
        counted.filter(|(count, ..)| *count > own + 1).max().map(|(.., at)| at)
    }

    /// The message that has waited longest for a new fragment, if for [`PATIENCE`] at least. A source takes
    /// nothing from one that has fewer messages here, and a stranger nothing from a member.
    fn stalled(&self, now: Instant, mac: MacAddr, member: bool, segment: Segment<'_>) -> Option<usize> {
        let cycle = if matches!(segment.mode(), ModeName::Token | ModeName::Paced) {
            segment.trt()
        } else {
            Span::ZERO
        };
        let own = self.unfinished_of(mac);
        let all = self.assemblies.iter().enumerate().filter(|(_, it)| member || !it.member);
        let late = all.filter(|(_, it)| now >= it.at + PATIENCE + cycle && self.unfinished_of(it.mac) >= own);
        late.min_by_key(|(_, it)| it.at).map(|(at, _)| at)
    }

    /// Gives up the incomplete messages for a socket that nobody has any more.
    pub(super) fn forget_incomplete(&mut self, socket: u8) {
        let of_it = |assembly: &&mut Assembly| assembly.used && assembly.of.dsap == socket;
        for assembly in self.assemblies.iter_mut().filter(of_it) {
            assembly.used = false;
            self.counters.incomplete += 1;
        }
    }

    /// Gives up messages whose rest has not come for too long.
    pub(super) fn assemblies_tick(&mut self, now: Instant) {
        for assembly in self.assemblies.iter_mut().filter(|assembly| assembly.used) {
            let due = assembly.at + if assembly.acked { REPEAT_LIFE } else { BIT_LIFE };
            if now >= due {
                assembly.used = false;
                self.counters.incomplete += 1;
            } else {
                self.wake = self.wake.min(due);
            }
        }
    }

    /// An acknowledged command: taken once however often it comes, answered each time.
    fn on_command(
        &mut self,
        now: Instant,
        view: &LlcView<'_>,
        bit: bool,
        poll: bool,
        segment: Segment<'_>,
    ) -> Option<MessageDelivery> {
        let (sap, mac) = (view.header.ssap, view.source);
        if !self.knows(mac, segment) && !self.commands.take(now) {
            self.counters.answers_dropped += 1;
            return None;
        }
        let (status, at) = (AckStatus::OK, now);
        let incarnation = self.node_of(mac, segment).1;
        let mut heard = HeardCommand { sap, mac, incarnation, bit, print: print_of(view), status, at };
        let known = self.heard.iter().position(|heard| heard.sap == sap && heard.mac == mac);
        let again = known.map(|at| self.heard[at]).filter(|old| old.is_again(now, &heard, poll));
        let mut delivery = None;
        if let Some(old) = again {
            self.counters.duplicates += 1;
            heard.status = old.status;
            // A command's octets are those of its first coming, and a boot that was known stays known.
            heard.print = old.print;
            heard.incarnation = incarnation.max(old.incarnation);
        } else {
            match self.on_message(now, view, segment) {
                Ok(taken) => delivery = taken,
                Err(status) => heard.status = status,
            }
        }
        match known {
            Some(at) => self.heard[at] = heard,
            None if !self.settings.enabled => {}
            None if self.heard.len() < HEARD_MAX => self.heard.push(heard),
            None => {
                // The longest silent one is forgotten: its next command counts as new, as it most likely is.
                if let Some(oldest) = self.heard.iter_mut().min_by_key(|heard| heard.at) {
                    *oldest = heard;
                }
            }
        }
        let status = if poll { heard.status.polled() } else { heard.status };
        let control = Control::Ac { bit: !bit, poll };
        let header = LlcHeader { dsap: sap, ssap: view.header.dsap, response: true, control };
        match self.answers.put_ack(now, mac, &header, status) {
            Ok(Some((slot, octets))) => {
                let (level, first) = (7, false);
                self.wants.push(Want::Queue { slot, octets, level, first });
            }
            Ok(None) => {}
            Err(_) => self.counters.answers_dropped += 1,
        }
        delivery
    }

    /// XID and TEST: the station's own access point always answers, a socket when somebody has it open.
    fn on_question(&mut self, now: Instant, view: &LlcView<'_>) {
        let LlcHeader { dsap, ssap, control, .. } = view.header;
        let from = match dsap {
            SAP_NULL | SAP_GLOBAL => SAP_NULL,
            socket if self.is_open(socket) => socket,
            _ => {
                self.counters.no_socket += 1;
                return;
            }
        };
        let header = LlcHeader { dsap: ssap, ssap: from, response: true, control };
        let information = match control {
            Control::Xid { .. } => &XID_INFORMATION[..],
            _ => view.information,
        };
        if !self.questions.take(now) {
            self.counters.answers_dropped += 1;
            return;
        }
        self.counters.answered += 1;
        match self.answers.put(view.source, &header, information) {
            Some((slot, octets)) => {
                let (level, first) = (0, false);
                self.wants.push(Want::Queue { slot, octets, level, first });
            }
            None => self.counters.answers_dropped += 1,
        }
    }
}
