//! Answers that wait for their turn: acknowledgements, XID and TEST.

use super::MESSAGES_MAX;
use rota_wire::MacAddr;
use rota_wire::llc::{Control, LLC_INFORMATION, LLC_INFORMATION_MAX, LlcHeader, emit_llc, llc_frame_octets};

/// Answers that may wait at a time. A flood of questions finds no more.
pub(crate) const ANSWERS_MAX: usize = 64;

#[derive(Clone, Debug)]
struct Answer {
    to: MacAddr,
    header: LlcHeader,
    octets: u16,
    information: Box<[u8; LLC_INFORMATION_MAX]>,
}

/// Room for answers, taken at birth.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    all: Vec<Answer>,
    free: Vec<u16>,
}

impl Answers {
    pub(super) fn new(places: usize) -> Self {
        let header = LlcHeader { dsap: 0, ssap: 0, response: true, control: Control::Ui };
        let information = Box::new([0; LLC_INFORMATION_MAX]);
        let answer = Answer { to: MacAddr::BROADCAST, header, octets: 0, information };
        Self { all: vec![answer; places], free: (0..places as u16).rev().collect() }
    }

    /// Keeps an answer; its number in the node's queue and its frame's length. `None` when there is no room.
    pub(super) fn put(&mut self, to: MacAddr, header: &LlcHeader, information: &[u8]) -> Option<(u16, u16)> {
        let at = self.free.pop()?;
        let answer = &mut self.all[usize::from(at)];
        (answer.to, answer.header, answer.octets) = (to, *header, information.len() as u16);
        answer.information[..information.len()].copy_from_slice(information);
        Some((MESSAGES_MAX as u16 + at, llc_frame_octets(information.len())))
    }

    /// Writes an answer and gives its room back.
    pub(super) fn write(&mut self, at: usize, from: MacAddr, frame: &mut [u8]) -> Option<usize> {
        let answer = self.all.get(at)?;
        let octets = usize::from(answer.octets);
        frame[LLC_INFORMATION..LLC_INFORMATION + octets].copy_from_slice(&answer.information[..octets]);
        let len = emit_llc(frame, answer.to, from, &answer.header, octets);
        self.free.push(at as u16);
        Some(len)
    }
}
