//! The memory of one end of a circuit, and what its program is told.
//!
//! A sender has the ring of a sending channel, whose units are parts of messages or of a stream: its route
//! says whether a message ends with it, or the whole circuit. A receiver has a ring of cells
//! ([`crate::CellWriter`]). Either end has a doorbell for its node and a bell that its program can poll.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rota_contract::CloseCause;
use rota_wire::{Refusal, ResetCause};

use crate::bell::{self, Bell, bells};
use crate::board::{Board, BoardView};
use crate::layout::RxRing;
use crate::memory::{
    ClientSink, ClientSource, MemoryError, NodeSource, ReaderFile, SourceShape, board, open_board,
    open_reader, open_source,
};
use crate::ring::{CellReader, CellWriter};

/// The route of a part with which a message ends.
pub const PART_LAST: u64 = 1;
/// The route of a part behind which nothing comes: the circuit is to end in order.
pub const PART_FINISH: u64 = 2;

/// How a circuit has ended, as both its programs are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CircuitEnd {
    /// In order.
    #[error("it has ended in order: all of it was taken")]
    Finished,
    /// The receiver wanted no more.
    #[error("it has ended in order: the receiving program wanted no more")]
    Stopped,
    /// The handshake was refused.
    #[error("{0}")]
    Refused(Refusal),
    /// The other end has ended it.
    #[error("{0}")]
    Reset(ResetCause),
    /// The listener's program did not take it, for a reason whose meaning the two programs know.
    #[error("the other program did not take the circuit: its reason is {0}")]
    Declined(u32),
    /// Nobody has answered the handshake.
    #[error("nobody has answered the handshake")]
    NoAnswer,
    /// Silence.
    #[error("the other end has been silent for too long")]
    Silent,
    /// This end gave it up.
    #[error("this end has given the circuit up")]
    Aborted,
    /// The other end broke a rule.
    #[error("the other end broke a rule of the protocol")]
    Violated,
    /// The port is gone.
    #[error("the port of this node over which it went is gone")]
    PortGone,
    /// The other node has left.
    #[error("the other end's node was stopped")]
    NodeStopped,
    /// The other node has died.
    #[error("the process of the other end's node has ended")]
    NodeDied,
    /// The program wrote nonsense into its ring.
    #[error("this program wrote something impossible into its shared memory")]
    Hostile,
    /// The channel that carried it has ended. No board says this: a channel has its own word there.
    #[error("{}", .0.sentence())]
    Channel(CloseCause),
    /// A later node's word.
    #[error("it has ended for a reason that this program does not know")]
    Unknown,
}

const REFUSALS: [Refusal; 6] = [
    Refusal::NoService,
    Refusal::Busy,
    Refusal::Window,
    Refusal::TpduSize,
    Refusal::Quality,
    Refusal::Expired,
];
const RESETS: [ResetCause; 4] =
    [ResetCause::Unknown, ResetCause::Aborted, ResetCause::Silent, ResetCause::Violation];
const PLAIN: [CircuitEnd; 10] = [
    CircuitEnd::Finished,
    CircuitEnd::Stopped,
    CircuitEnd::NoAnswer,
    CircuitEnd::Silent,
    CircuitEnd::Aborted,
    CircuitEnd::Violated,
    CircuitEnd::PortGone,
    CircuitEnd::NodeStopped,
    CircuitEnd::NodeDied,
    CircuitEnd::Hostile,
];
const REFUSED: u64 = 0x100;
const RESET: u64 = 0x200;
/// Behind it the reason.
const DECLINED: u64 = 1 << 32;

impl CircuitEnd {
    /// The end of a circuit whose channel has ended so.
    pub const fn of_channel(cause: CloseCause) -> Self {
        match cause {
            CloseCause::Finished => Self::Finished,
            CloseCause::SenderDied | CloseCause::ReceiverDied | CloseCause::ReceiverClosed => {
                Self::Reset(ResetCause::Aborted)
            }
            CloseCause::PeerGone => Self::Silent,
            CloseCause::PeerStopped => Self::NodeStopped,
            CloseCause::PeerDied => Self::NodeDied,
            CloseCause::PortGone => Self::PortGone,
            CloseCause::Hostile => Self::Hostile,
            other => Self::Channel(other),
        }
    }

    /// Its word on the board, which is never 0.
    fn code(self) -> u64 {
        let place = |at: Option<usize>| at.map_or(0xff, |at| at as u64 + 1);
        match self {
            Self::Refused(why) => REFUSED | place(REFUSALS.iter().position(|other| *other == why)),
            Self::Declined(reason) => DECLINED | u64::from(reason),
            Self::Reset(why) => RESET | place(RESETS.iter().position(|other| *other == why)),
            plain => place(PLAIN.iter().position(|other| *other == plain)),
        }
    }

    fn from_code(code: u64) -> Option<Self> {
        if code & !u64::from(u32::MAX) == DECLINED {
            return Some(Self::Declined(code as u32));
        }
        let place = (code & 0xff).checked_sub(1)? as usize;
        let known = match code & !0xff {
            0 => PLAIN.get(place).copied(),
            REFUSED => REFUSALS.get(place).copied().map(Self::Refused),
            RESET => RESETS.get(place).copied().map(Self::Reset),
            _ => None,
        };
        Some(known.unwrap_or(Self::Unknown))
    }
}

/// What the board of a circuit says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CircuitState {
    /// How it has ended, if it has.
    pub end: Option<CircuitEnd>,
    /// TPDUs and messages that were written or have come.
    pub own: (u64, u64),
    /// Those that the receiver's program has taken, as far as is known at this end.
    pub taken: (u64, u64),
    /// At a receiver without error control: TPDUs that did not come or were dropped with their message, and
    /// messages that were not delivered.
    pub lost: (u64, u64),
}

impl Board {
    /// Says how it stands with a circuit. Wake its program afterwards.
    pub fn set_circuit(&self, state: &CircuitState) {
        let CircuitState { end, own, taken, lost } = *state;
        let words = [own.0, own.1, taken.0, taken.1, lost.0, lost.1];
        self.set_circuit_words(words, end.map_or(0, CircuitEnd::code));
    }
}

impl BoardView {
    /// How it stands with a circuit: the end first, since counts that are read after it are the last ones.
    pub fn circuit(&self) -> CircuitState {
        let (end, [own, messages, taken, messages_taken, lost, messages_lost]) = self.circuit_words();
        let end = CircuitEnd::from_code(end);
        CircuitState {
            end,
            own: (own, messages),
            taken: (taken, messages_taken),
            lost: (lost, messages_lost),
        }
    }
}

impl ClientSource {
    /// Asks for one octet on the bell of this channel, if its program has asked for one.
    pub fn arm(&self) {
        self.ring.arm();
    }
}

impl ClientSink {
    /// As [`ClientSource::arm`].
    pub fn arm(&self) {
        self.ring.arm();
    }
}

/// The shape of the memory of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitShape {
    /// Parts that wait there at most.
    pub parts: u32,
    /// Octets of a part at most.
    pub octets: u32,
}

/// The node's side of a sender.
pub struct NodeCircuitSource {
    /// Ring, board and doorbell.
    pub source: NodeSource,
    /// Gets one octet for each time that the client has asked for one.
    pub bell: OwnedFd,
    theirs: OwnedFd,
}

impl NodeCircuitSource {
    /// Makes the files of a sender.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn create(shape: CircuitShape) -> Result<Self, MemoryError> {
        let CircuitShape { parts, octets: unit_octets_max } = shape;
        let wrong = MemoryError::Shape { slots: parts, unit_octets_max };
        let buffers = u16::try_from(parts).map_err(|_| wrong)?;
        let source = NodeSource::create(SourceShape { buffers, unit_octets_max })?;
        let (bell, theirs) = bells()?;
        Ok(Self { source, bell, theirs })
    }

    /// What goes to the client, in this order: those of [`NodeSource::descriptors`], the bell.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let mut all = self.source.descriptors();
        all.push(self.theirs.as_fd());
        all
    }
}

/// The client's side of a sender.
pub struct ClientCircuitSource {
    /// Ring, board and doorbell.
    pub source: ClientSource,
    /// Readable when something has happened since it was armed.
    pub bell: Bell,
}

impl ClientCircuitSource {
    /// Asks for one octet more on the bell, and says how many are there.
    pub fn arm(&self) -> usize {
        let octets = self.bell.octets();
        self.source.ring.arm();
        octets
    }
}

/// Maps a sender from the descriptors that came with it.
///
/// # Errors
/// [`MemoryError::NotOurs`] when they are something else, [`MemoryError::Kernel`] when mapping fails.
pub fn open_circuit_source(mut descriptors: Vec<OwnedFd>) -> Result<ClientCircuitSource, MemoryError> {
    let wrong = MemoryError::NotOurs { found: "another number of files", wanted: "four files" };
    if descriptors.len() != 4 {
        return Err(wrong);
    }
    let bell = Bell::new(descriptors.pop().ok_or(wrong)?);
    Ok(ClientCircuitSource { source: open_source(descriptors)?, bell })
}

/// The node's side of a receiver.
pub struct NodeCircuitSink {
    /// Takes the parts.
    pub ring: CellWriter,
    /// What the client is told.
    pub board: Board,
    /// Readable when the client has taken parts. Registered edge-triggered, never read.
    pub doorbell: OwnedFd,
    /// As that of a sender.
    pub bell: OwnedFd,
    files: [OwnedFd; 3],
}

impl NodeCircuitSink {
    /// Makes the files of a receiver.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn create(shape: CircuitShape) -> Result<Self, MemoryError> {
        let CircuitShape { parts, octets } = shape;
        let wrong = MemoryError::Shape { slots: parts, unit_octets_max: octets };
        let ring = RxRing::new(parts, octets).ok_or(wrong)?;
        let (file, pages) = board(octets, 0, ring)?;
        let reader = ReaderFile::create()?;
        let theirs_reader = reader.descriptor().try_clone_to_owned().map_err(|_| wrong)?;
        let doorbell = bell::doorbell()?;
        let (bell, theirs) = bells()?;
        let (ring, board) = (CellWriter::new(pages.clone(), ring, reader), Board::new(pages));
        Ok(Self { ring, board, doorbell, bell, files: [file, theirs_reader, theirs] })
    }

    /// What goes to the client, in this order: node-written file, client-written file, doorbell, bell.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let [file, reader, theirs] = &self.files;
        vec![file.as_fd(), reader.as_fd(), self.doorbell.as_fd(), theirs.as_fd()]
    }
}

/// The client's side of a receiver.
pub struct ClientCircuitSink {
    /// Gives the parts.
    pub ring: CellReader,
    /// What the node tells.
    pub board: BoardView,
    /// See [`ClientCircuitSource::bell`].
    pub bell: Bell,
    doorbell: OwnedFd,
}

impl ClientCircuitSink {
    /// Tells the node that parts were taken. Never blocks.
    pub fn ring_doorbell(&self) {
        bell::ring_doorbell(&self.doorbell);
    }

    /// As [`ClientCircuitSource::arm`].
    pub fn arm(&self) -> usize {
        let octets = self.bell.octets();
        self.ring.arm();
        octets
    }
}

/// Maps a receiver from the descriptors that came with it.
///
/// # Errors
/// As [`open_circuit_source`].
pub fn open_circuit_sink(descriptors: Vec<OwnedFd>) -> Result<ClientCircuitSink, MemoryError> {
    let Ok([file, reader, doorbell, bell]) = <[OwnedFd; 4]>::try_from(descriptors) else {
        return Err(MemoryError::NotOurs { found: "another number of files", wanted: "four files" });
    };
    let (pages, facts) = open_board(file)?;
    let Some(ring) = facts.received else {
        return Err(MemoryError::NotOurs { found: "a sender", wanted: "a receiver of a circuit" });
    };
    let ring = CellReader::new(pages.clone(), open_reader(&reader)?, ring);
    Ok(ClientCircuitSink { ring, board: BoardView::new(pages), bell: Bell::new(bell), doorbell })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::READER_OCTETS;
    use crate::memfd::{self, FINAL_SEALS};
    use crate::raw::WritePages;
    use crate::ring::{CellPart, Hostile};

    const SHAPE: CircuitShape = CircuitShape { parts: 4, octets: 100 };

    fn copies(all: &[BorrowedFd<'_>]) -> Vec<OwnedFd> {
        all.iter().map(|file| file.try_clone_to_owned().expect("a copy")).collect()
    }

    fn sink() -> (NodeCircuitSink, ClientCircuitSink) {
        let node = NodeCircuitSink::create(SHAPE).expect("memory");
        let client = open_circuit_sink(copies(&node.descriptors())).expect("the client's side");
        (node, client)
    }

    /// A page in which the program writes whatever it likes.
    fn sink_and_page() -> (NodeCircuitSink, WritePages) {
        let node = NodeCircuitSink::create(SHAPE).expect("memory");
        let reader = copies(&node.descriptors()).remove(1);
        let page = WritePages::map(&reader, READER_OCTETS).expect("mapped");
        memfd::seal(&reader, FINAL_SEALS).expect("sealed");
        (node, page)
    }

    #[test]
    fn parts_pass_in_order_and_none_is_overwritten() {
        let (mut node, mut client) = sink();
        let mut room = vec![0; client.ring.room()];
        assert_eq!(client.ring.next_part(&mut room), None);
        let mut next = 0u8;
        for _ in 0..10 {
            for part in 0..4 {
                assert!(node.ring.push(&vec![next + part; usize::from(part) + 97], part == 3, part.into()));
            }
            assert!(!node.ring.push(b"x", false, 0), "all cells are taken");
            for part in 0..4 {
                let octets = usize::from(part) + 97;
                let wanted = CellPart { octets, last: part == 3, lost: part.into() };
                assert_eq!(client.ring.next_part(&mut room), Some(wanted));
                assert!(room[..octets].iter().all(|octet| *octet == next + part));
            }
            assert!(!node.ring.push(b"x", false, 0), "the node does not know yet");
            client.ring.tell();
            next += 4;
            assert_eq!(node.ring.taken(), Ok(u64::from(next)));
        }
        assert!(!node.ring.push(&[0; 200], false, 0), "longer than a cell");
    }

    /// It could have told the sender that octets were taken which were never written.
    #[test]
    fn a_program_that_says_what_cannot_be_true_ends_its_circuit() {
        for claimed in [3, u64::MAX, 1 << 63] {
            let (mut node, page) = sink_and_page();
            assert!(node.ring.push(b"one", true, 0) && node.ring.push(b"two", true, 0));
            page.store_release(0, claimed);
            let hostile = Hostile::Taken { claimed, before: 0, written: 2 };
            assert_eq!(node.ring.taken(), Err(hostile));
            page.store_release(0, 2);
            assert_eq!(node.ring.taken(), Err(hostile), "it stays ended");
        }
        let (mut node, page) = sink_and_page();
        assert!(node.ring.push(b"one", true, 0) && node.ring.push(b"two", true, 0));
        page.store_release(0, 2);
        assert_eq!(node.ring.taken(), Ok(2));
        page.store_release(0, 1);
        assert_eq!(node.ring.taken(), Err(Hostile::Taken { claimed: 1, before: 2, written: 2 }));
    }

    /// Until it has sealed its page it has taken nothing, whatever stands there.
    #[test]
    fn a_page_that_is_not_sealed_says_nothing() {
        let mut node = NodeCircuitSink::create(SHAPE).expect("memory");
        let reader = copies(&node.descriptors()).remove(1);
        let page = WritePages::map(&reader, READER_OCTETS).expect("mapped");
        assert!(node.ring.push(b"one", true, 0));
        page.store_release(0, 1);
        assert_eq!(node.ring.taken(), Ok(0));
        memfd::seal(&reader, FINAL_SEALS).expect("sealed");
        assert_eq!(node.ring.taken(), Ok(1));
    }

    #[test]
    fn every_end_has_a_word_of_its_own_and_a_sentence() {
        let refused = REFUSALS.map(CircuitEnd::Refused);
        let reset = RESETS.map(CircuitEnd::Reset);
        let all: Vec<CircuitEnd> = PLAIN.iter().chain(&refused).chain(&reset).copied().collect();
        let (node, client) = sink();
        assert_eq!(client.board.circuit(), CircuitState::default());
        for end in all {
            let state = CircuitState { end: Some(end), own: (5, 4), taken: (3, 2), lost: (1, 6) };
            node.board.set_circuit(&state);
            assert_eq!(client.board.circuit(), state);
            assert!(!end.to_string().is_empty());
        }
        assert_eq!(CircuitEnd::from_code(0x77), Some(CircuitEnd::Unknown));
        assert_eq!(CircuitEnd::from_code(0), None);
    }

    #[test]
    fn a_bell_rings_once_for_each_time_that_it_was_armed() {
        let (mut node, client) = sink();
        assert_eq!((client.arm(), node.ring.armed()), (0, 1));
        crate::ring_bell(&node.bell);
        let octets = client.arm();
        assert_eq!(octets, 1);
        client.bell.hush(octets);
        assert_eq!(client.arm(), 0);
    }

    #[test]
    fn a_sender_maps_its_ring_and_nothing_else_passes_for_one() {
        let node = NodeCircuitSource::create(SHAPE).expect("memory");
        let client = open_circuit_source(copies(&node.descriptors())).expect("the client's side");
        assert_eq!((client.source.ring.slots(), client.arm()), (4, 0));
        assert_eq!(node.source.ring.armed(), 1);
        let (sink, _) = sink();
        assert!(open_circuit_source(copies(&sink.descriptors())).is_err());
        assert!(open_circuit_sink(copies(&node.descriptors())).is_err());
        assert!(open_circuit_sink(copies(&node.descriptors()[..3])).is_err());
    }
}
