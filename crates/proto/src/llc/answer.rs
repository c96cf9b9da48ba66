//! Answers that wait for their turn: acknowledgements, XID and TEST. Each kind has room of its own, so that a
//! flood of questions keeps no acknowledgement back.

use super::{BIT_LIFE, MESSAGES_MAX};
use rota_units::Instant;
use rota_wire::MacAddr;
use rota_wire::llc::{
    AckStatus, Control, LLC_INFORMATION, LLC_INFORMATION_MAX, LlcHeader, emit_llc, llc_frame_octets,
};

/// Answers to XID and TEST that may wait at a time. A flood of questions finds no more.
pub(crate) const ANSWERS_MAX: usize = 64;
/// Acknowledgements that may wait at a time: one for each (socket, station) that has sent a command.
pub(crate) const ACKS_MAX: usize = 512;

#[derive(Clone, Debug)]
struct Answer {
    to: MacAddr,
    header: LlcHeader,
    octets: u16,
    information: Box<[u8; LLC_INFORMATION_MAX]>,
}

#[derive(Clone, Copy, Debug)]
struct Ack {
    to: MacAddr,
    header: LlcHeader,
    status: AckStatus,
    at: Instant,
    waits: bool,
}

/// Room for answers, taken at birth.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    all: Vec<Answer>,
    free: Vec<u16>,
    acks: Vec<Ack>,
    acks_free: Vec<u16>,
}

impl Answers {
    pub(super) fn new(places: usize, acks: usize) -> Self {
        let header = LlcHeader { dsap: 0, ssap: 0, response: true, control: Control::Ui };
        let information = Box::new([0; LLC_INFORMATION_MAX]);
        let to = MacAddr::BROADCAST;
        let answer = Answer { to, header, octets: 0, information };
        let ack = Ack { to, header, status: AckStatus::OK, at: Instant::ZERO, waits: false };
        let free = |places: usize| (0..places as u16).rev().collect();
        Self { all: vec![answer; places], free: free(places), acks: vec![ack; acks], acks_free: free(acks) }
    }

    /// Keeps an answer; its number in the node's queue and its frame's length. `None` when there is no room.
    pub(super) fn put(&mut self, to: MacAddr, header: &LlcHeader, information: &[u8]) -> Option<(u16, u16)> {
        let at = self.free.pop()?;
        let answer = &mut self.all[usize::from(at)];
        (answer.to, answer.header, answer.octets) = (to, *header, information.len() as u16);
        answer.information[..information.len()].copy_from_slice(information);
        Some((MESSAGES_MAX as u16 + at, llc_frame_octets(information.len())))
    }

    /// The same for an acknowledgement. One that waits for the same sender is replaced, and is queued
    /// already: it was asked for again, or its command was given up.
    pub(super) fn put_ack(
        &mut self,
        now: Instant,
        to: MacAddr,
        header: &LlcHeader,
        status: AckStatus,
    ) -> Result<Option<(u16, u16)>, NoRoom> {
        let fresh = Ack { to, header: *header, status, at: now, waits: true };
        let same = |ack: &&mut Ack| {
            ack.waits && ack.to == to && (ack.header.dsap, ack.header.ssap) == (header.dsap, header.ssap)
        };
        if self.acks_free.len() < self.acks.len()
            && let Some(ack) = self.acks.iter_mut().find(same)
        {
            *ack = fresh;
            return Ok(None);
        }
        let at = self.acks_free.pop().ok_or(NoRoom)?;
        self.acks[usize::from(at)] = fresh;
        Ok(Some(((MESSAGES_MAX + ANSWERS_MAX) as u16 + at, llc_frame_octets(1))))
    }

    /// Writes an answer and gives its room back. An acknowledgement that comes too late is none.
    pub(super) fn write(
        &mut self,
        now: Instant,
        at: usize,
        from: MacAddr,
        frame: &mut [u8],
    ) -> Option<usize> {
        if let Some(at) = at.checked_sub(ANSWERS_MAX) {
            let ack = self.acks.get_mut(at)?;
            ack.waits = false;
            self.acks_free.push(at as u16);
            if now.since(ack.at) >= BIT_LIFE {
                return None;
            }
            frame[LLC_INFORMATION] = ack.status.0;
            return Some(emit_llc(frame, ack.to, from, &ack.header, 1));
        }
        let answer = self.all.get(at)?;
        let octets = usize::from(answer.octets);
        frame[LLC_INFORMATION..LLC_INFORMATION + octets].copy_from_slice(&answer.information[..octets]);
        let len = emit_llc(frame, answer.to, from, &answer.header, octets);
        self.free.push(at as u16);
        Some(len)
    }
}

/// As many as may wait do.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoRoom;
