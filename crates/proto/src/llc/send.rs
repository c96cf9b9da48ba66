//! The sending half: queueing, fragments, tries and time limits.

use super::table::{AckLink, Message, Stage};
use super::{
    BIT_LIFE, LLC_BROADCAST, Llc, LlcAddress, LlcBusy, LlcEvent, LlcRequest, REPEAT_LIFE, Want, is_socket,
};
use crate::io::FrameBuf;
use crate::segment::{ModeName, Segment};
use rota_contract::{MessageFailure, MessageOutcome};
use rota_units::{Instant, Span};
use rota_wire::MacAddr;
use rota_wire::llc::{
    AckStatus, Control, FRAGMENT_OCTETS, Fragment, LLC_INFORMATION, LlcHeader, MESSAGE_OCTETS_MAX, SAP_SNAP,
    emit_llc, fragment_payload, information_max, llc_frame_octets,
};

impl Llc {
    /// A message to be sent. Its outcome comes as an event, always.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        request: &LlcRequest,
        segment: Segment<'_>,
    ) -> Result<(), LlcBusy> {
        let to = request.to;
        let fault = if !is_socket(to.socket) || request.octets as usize > MESSAGE_OCTETS_MAX {
            Some(MessageFailure::Impossible)
        } else if request.ack && to.node == LLC_BROADCAST {
            Some(MessageFailure::AckFromAll)
        } else {
            None
        };
        if let Some(fault) = fault {
            self.done(request, MessageOutcome::Failed(fault));
            return Ok(());
        }
        if to.node == self.settings.address && to.node != 0 {
            self.send_home(request);
            return Ok(());
        }
        let Some(mac) = self.mac_of(to.node, segment) else {
            self.done(request, MessageOutcome::Failed(MessageFailure::NoSuchNode));
            return Ok(());
        };
        let Some(slot) = self.free.pop() else { return Err(LlcBusy) };
        let octets = request.octets as usize;
        let mtu = segment.mtu();
        let size = fragment_payload(mtu);
        let fragments =
            if octets <= information_max(mtu) { 1 } else { octets.div_ceil(usize::from(size)) as u8 };
        self.next_message = self.next_message.wrapping_add(u16::from(fragments > 1));
        self.messages[usize::from(slot)] = Message {
            stage: Stage::Held,
            request: LlcRequest { level: request.level.min(7), ..*request },
            mac,
            wire_number: self.next_message,
            fragments,
            size,
            fragment: 0,
            tries_left: if request.ack { request.tries.max(1) } else { 1 },
            ..Message::FREE
        };
        self.wake = self.wake.min(request.until);
        if request.ack {
            self.direct(now, slot);
        } else {
            self.queue(slot, false);
        }
        Ok(())
    }

    /// A message to this station itself never sees the wire.
    fn send_home(&mut self, request: &LlcRequest) {
        let outcome = match (request.ack, self.is_open(request.to.socket)) {
            (true, true) => MessageOutcome::Acknowledged,
            (true, false) => MessageOutcome::Failed(MessageFailure::Refused(AckStatus::UNACTIVATED.0)),
            (false, _) => MessageOutcome::Sent,
        };
        self.local(request);
        self.done(request, outcome);
    }

    /// Tells the parent to copy a message to a socket of this station, if somebody has it open.
    fn local(&mut self, request: &LlcRequest) {
        let LlcRequest { socket, number, octets, to, level, .. } = *request;
        if self.is_open(to.socket) {
            self.counters.messages_received += 1;
            let from = LlcAddress { socket, node: self.settings.address };
            self.event(LlcEvent::Local { from, number, octets, to: to.socket, level });
        } else {
            self.counters.no_socket += 1;
        }
    }

    fn done(&mut self, request: &LlcRequest, outcome: MessageOutcome) {
        let LlcRequest { socket, number, .. } = *request;
        self.event(LlcEvent::Done { socket, number, outcome });
    }

    // ---- the queue ------------------------------------------------------------------------------------

    /// Octets of information of a message's next frame.
    fn information(message: &Message) -> usize {
        let octets = message.request.octets as usize;
        if message.is_cut() {
            let size = usize::from(message.size);
            FRAGMENT_OCTETS + octets.saturating_sub(usize::from(message.fragment) * size).min(size)
        } else {
            octets
        }
    }

    /// Puts a message's next frame into the node's queue: behind its level, or, where the message has begun,
    /// before it.
    pub(super) fn queue(&mut self, slot: u16, first: bool) {
        let level = self.queue_level(slot);
        let message = &mut self.messages[usize::from(slot)];
        (message.stage, message.queued_at) = (Stage::Queued, level);
        let octets = llc_frame_octets(Self::information(message));
        self.wants.push(Want::Queue { slot, octets, level, first });
    }

    /// Writes the frame that an entry of the queue stands for.
    pub(super) fn write_message(
        &mut self,
        now: Instant,
        slot: u16,
        frame: &mut FrameBuf<'_>,
        segment: Segment<'_>,
    ) -> Option<usize> {
        debug_assert!(
            self.messages[usize::from(slot)].stage == Stage::Queued,
            "only what is queued leaves the queue"
        );
        // Its entry is out of the queue: whatever ends it now frees its place at once.
        self.messages[usize::from(slot)].stage = Stage::Held;
        if !self.has_direction(now, slot) {
            return None;
        }
        let message = &self.messages[usize::from(slot)];
        if now >= message.request.until {
            self.finish(now, slot, MessageOutcome::TimedOut);
            return None;
        }
        if self.is_outstanding(slot) && now.since(message.first_sent) >= self.repeat_max(message) {
            self.finish(now, slot, MessageOutcome::Failed(MessageFailure::NoAnswer));
            return None;
        }
        self.write_fragment(now, slot, frame, segment)
    }

    fn write_fragment(
        &mut self,
        now: Instant,
        slot: u16,
        frame: &mut FrameBuf<'_>,
        segment: Segment<'_>,
    ) -> Option<usize> {
        let message = self.messages[usize::from(slot)];
        let LlcRequest { socket, number, to, level, ack, octets, .. } = message.request;
        let information = Self::information(&message);
        let (mut at, mut begin) = (LLC_INFORMATION, 0);
        let mut header = LlcHeader { dsap: to.socket, ssap: socket, response: false, control: Control::Ui };
        let last = message.fragment + 1 == message.fragments;
        if message.is_cut() {
            let (index, total) = (message.fragment, octets as u16);
            let of = Fragment {
                dsap: to.socket,
                ssap: socket,
                level,
                index,
                last,
                message: message.wire_number,
                total,
                size: message.size,
            };
            begin = of.offset() as u32;
            at += of.emit(&mut frame.bytes[LLC_INFORMATION..]);
            (header.dsap, header.ssap) = (SAP_SNAP, SAP_SNAP);
        }
        if let Some(of) = message.link {
            let poll = self.is_late_repetition(now, slot, segment);
            header.control = Control::Ac { bit: self.links[usize::from(of)].bit, poll };
        }
        let into = &mut frame.bytes[at..LLC_INFORMATION + information];
        if !frame.payloads.copy_message(socket, number, begin, into) {
            self.finish(now, slot, MessageOutcome::Failed(MessageFailure::Unreadable));
            return None;
        }
        let len = emit_llc(frame.bytes, message.mac, self.mac, &header, information);
        if (ack || !last) && !message.begun {
            self.messages[usize::from(slot)].begun = true;
            self.event(LlcEvent::Begun { socket, number });
        }
        if ack {
            self.await_answer(now, slot, segment.mode());
        } else if last {
            if to.node == LLC_BROADCAST {
                self.local(&message.request);
            }
            self.finish(now, slot, MessageOutcome::Sent);
        } else {
            self.messages[usize::from(slot)].fragment += 1;
            self.queue(slot, true);
        }
        Some(len)
    }

    // ---- acknowledged service -------------------------------------------------------------------------

    fn await_answer(&mut self, now: Instant, slot: u16, mode: ModeName) {
        let again = now + self.ack_time(mode);
        let message = &mut self.messages[usize::from(slot)];
        message.stage = Stage::Waiting { again };
        message.tries_left = message.tries_left.saturating_sub(1);
        self.wake = self.wake.min(again);
        let Some(of) = message.link else { return };
        let direction = &mut self.links[usize::from(of)];
        direction.used = now;
        if direction.owner != Some(slot) {
            // Here, and not before, the direction is taken.
            direction.owner = Some(slot);
            message.first_sent = now;
        }
    }

    /// One that comes when the other station may have forgotten the bit says so, with P, and is then compared
    /// with what was taken. Others than ours would take P for a wish for information.
    fn is_late_repetition(&self, now: Instant, slot: u16, segment: Segment<'_>) -> bool {
        let message = &self.messages[usize::from(slot)];
        let late = self.is_outstanding(slot)
            && now.since(message.first_sent) >= BIT_LIFE.minus(BIT_LIFE.div_down(8));
        late && segment.member_at(message.mac).is_some()
    }

    fn ack_time(&self, mode: ModeName) -> Span {
        match mode {
            ModeName::Plain | ModeName::Joining => self.settings.ack_time,
            ModeName::Switching | ModeName::Token | ModeName::Paced => self.settings.ack_time_token,
        }
    }

    /// An acknowledgement for one of our commands.
    pub(super) fn on_answer(&mut self, now: Instant, from: MacAddr, sap: u8, bit: bool, status: AckStatus) {
        let outstanding = |of: &AckLink| of.sap == sap && of.mac == from && of.bit != bit;
        let Some((of, slot)) =
            self.links.iter().position(outstanding).and_then(|of| Some((of as u16, self.links[of].owner?)))
        else {
            self.counters.unasked += 1;
            return;
        };
        let Message { stage, queued_at, fragment, fragments, request, .. } = self.messages[usize::from(slot)];
        if stage == Stage::Queued {
            // A repetition that nobody needs any more.
            self.wants.push(Want::Unqueue { level: queued_at, slot });
        }
        self.messages[usize::from(slot)].stage = Stage::Held;
        if !status.is_ok() {
            self.finish(now, slot, MessageOutcome::Failed(MessageFailure::Refused(status.0)));
        } else if fragment + 1 == fragments {
            self.finish(now, slot, MessageOutcome::Acknowledged);
        } else {
            let direction = &mut self.links[usize::from(of)];
            (direction.owner, direction.bit) = (None, !direction.bit);
            direction.seniors |= 1 << request.level;
            let message = &mut self.messages[usize::from(slot)];
            (message.fragment, message.senior) = (fragment + 1, true);
            message.tries_left = request.tries.max(1);
            self.queue(slot, true);
            self.release(now, of);
        }
    }

    // ---- endings --------------------------------------------------------------------------------------

    /// Tells what became of a message and gives its place and its direction back.
    fn finish(&mut self, now: Instant, slot: u16, outcome: MessageOutcome) {
        let message = self.messages[usize::from(slot)];
        self.done(&message.request, outcome);
        self.give_up(now, slot, outcome);
    }

    /// Messages that are queued or held are swept out later, by whoever ends many at once.
    fn give_up(&mut self, now: Instant, slot: u16, outcome: MessageOutcome) {
        let message = self.messages[usize::from(slot)];
        let answered = matches!(
            outcome,
            MessageOutcome::Acknowledged | MessageOutcome::Failed(MessageFailure::Refused(_))
        );
        if message.stage == Stage::Parked {
            self.unpark(slot);
        }
        let held = message.stage == Stage::Held && message.request.ack && message.link.is_none();
        if message.stage == Stage::Queued || held {
            self.messages[usize::from(slot)].stage = Stage::Gone;
            self.swept = false;
        } else {
            self.set_free(slot);
        }
        let Some(of) = message.link else { return };
        let direction = &mut self.links[usize::from(of)];
        direction.users -= 1;
        if message.stage == Stage::Queued && message.senior && direction.owner != Some(slot) {
            direction.seniors &= !(1 << message.request.level);
        }
        self.give_back(now, slot, of, answered);
    }

    /// Messages that are over leave the queue before anybody looks at it, all of it in one go.
    fn sweep(&mut self) {
        if std::mem::replace(&mut self.swept, true) {
            return;
        }
        self.wants.push(Want::Sweep);
        let Self { messages, held, .. } = self;
        held.retain(|slot| messages[usize::from(*slot)].stage != Stage::Gone);
    }

    /// True if the message of an entry of the queue is over.
    pub(crate) fn is_gone(&self, slot: u16) -> bool {
        self.messages.get(usize::from(slot)).is_some_and(|message| message.stage == Stage::Gone)
    }

    /// No entry of a message that is over waits any more: its place is free.
    pub(crate) fn free_gone(&mut self) {
        for slot in 0..self.messages.len() as u16 {
            if self.is_gone(slot) {
                self.set_free(slot);
            }
        }
    }

    fn set_free(&mut self, slot: u16) {
        self.messages[usize::from(slot)] = Message::FREE;
        self.free.push(slot);
    }

    /// Gives up whatever a socket still wants sent; nothing is told of it.
    pub(crate) fn cancel(&mut self, now: Instant, socket: u8) {
        for slot in 0..self.messages.len() as u16 {
            let message = &self.messages[usize::from(slot)];
            if message.request.socket == socket && !matches!(message.stage, Stage::Free | Stage::Gone) {
                self.give_up(now, slot, MessageOutcome::TimedOut);
            }
        }
        self.sweep();
    }

    /// Timers: tries, time limits, directions that may be used again.
    pub(crate) fn tick(&mut self, now: Instant) {
        if now < self.wake {
            return;
        }
        self.wake = Instant::FAR;
        for slot in 0..self.messages.len() as u16 {
            let message = self.messages[usize::from(slot)];
            if matches!(message.stage, Stage::Free | Stage::Gone) {
                continue;
            }
            if now >= message.request.until {
                self.finish(now, slot, MessageOutcome::TimedOut);
                continue;
            }
            self.wake = self.wake.min(message.request.until);
            let Stage::Waiting { again } = message.stage else { continue };
            if now < again {
                self.wake = self.wake.min(again);
            } else if message.tries_left > 0 && now.since(message.first_sent) < self.repeat_max(&message) {
                self.counters.frames_repeated += 1;
                self.queue(slot, true);
            } else {
                self.finish(now, slot, MessageOutcome::Failed(MessageFailure::NoAnswer));
            }
        }
        for of in 0..self.links.len() as u16 {
            self.release(now, of);
        }
        self.sweep();
        self.direct_held(now);
        self.assemblies_tick(now);
    }

    /// For so long a command is repeated at most: a receiver that has taken it remembers it until then.
    /// Where the bit may be that of the command before, a late repetition of the same octets would be taken
    /// for that one's: so it ends before it were one.
    fn repeat_max(&self, message: &Message) -> Span {
        let forgot = message.link.is_some_and(|of| self.links[usize::from(of)].forgot);
        let life = if forgot { BIT_LIFE } else { REPEAT_LIFE };
        life.minus(life.div_down(8))
    }
}
