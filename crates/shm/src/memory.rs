//! A channel's memory files: made and sealed by the node, checked and mapped by the client.

use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::SealFlag;

use crate::bell::{self, Bell, bells};
use crate::board::{Board, BoardView, EventSeen};
use crate::layout::{
    BOARD_MAGIC, BOARD_OCTETS, BoardHeader, COMPLETIONS, LAYOUT_VERSION, READER_OCTETS, RING_UNIT_OCTETS_MAX,
    RxRing, SLOTS_MAX, board_file_octets, tx_file_octets,
};
use crate::memfd::{self, FINAL_SEALS, SIZE_SEALS};
use crate::message::Sleep;
use crate::raw::{ReadPages, Waited, WritePages, max_slice};
use crate::ring::{Apart, ApartShape, MessageReader, MessageWriter, RxReader, RxWriter, TxReader, TxWriter};
use rota_units::Span;

/// Why a channel's memory could not be made or accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// Too large, or zero.
    #[error(
        "a ring of {slots} slots for units of {unit_octets_max} octets does not fit: 1 to {} slots, units of \
         1 to {} octets and 256 MiB in all are possible",
        SLOTS_MAX,
        RING_UNIT_OCTETS_MAX
    )]
    Shape {
        /// Wanted slots.
        slots: u32,
        /// Wanted largest unit.
        unit_octets_max: u32,
    },
    /// The kernel refused.
    #[error("the kernel refused to {what}: {errno}")]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// Its answer.
        errno: Errno,
    },
    /// The node handed over something else than a channel's files.
    #[error("the node handed over {found} where {wanted} was due")]
    NotOurs {
        /// What came.
        found: &'static str,
        /// What should have come.
        wanted: &'static str,
    },
}

/// What a sending channel's memory must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceShape {
    /// Whole units that the client may have under way.
    pub buffers: u16,
    /// Largest unit, in octets.
    pub unit_octets_max: u32,
}

/// What a receiving channel's memory must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkShape {
    /// Fragments; see [`crate::layout::rx_slots_for`].
    pub slots: u32,
    /// Largest fragment, in octets.
    pub fragment_octets: u32,
    /// Largest unit, in octets.
    pub unit_octets_max: u32,
}

/// The node's side of a sending channel.
pub struct NodeSource {
    /// The client's units.
    pub ring: TxReader,
    /// What the client is told.
    pub board: Board,
    /// Readable whenever the client has published a unit. To be registered edge-triggered and never read
    /// or written: a client can make either of these block.
    pub doorbell: OwnedFd,
    files: Option<[OwnedFd; 2]>,
}

/// The node's side of a receiving channel.
pub struct NodeSink {
    /// Takes the fragments.
    pub ring: RxWriter,
    /// What the client is told.
    pub board: Board,
    file: OwnedFd,
    reader: ReaderFile,
}

/// The file in which the program of a receiving channel says how far it has read. The program seals it before
/// it reads anything: until then it has read nothing, and the data thread does not look at the page, where
/// each hole that the program punches would cost a page fault.
pub(crate) struct ReaderFile {
    file: OwnedFd,
    pages: Arc<WritePages>,
}

/// What a socket's memory must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketShape {
    /// Messages that the client may have under way, at most [`crate::layout::COMPLETIONS`].
    pub messages: u16,
    /// Largest message, in octets.
    pub message_octets_max: u32,
    /// Slots of the receive ring: parts of messages that it holds.
    pub rx_slots: u32,
}

/// The node's side of a socket, which sends and receives.
pub struct NodeSocket {
    /// The client's messages.
    pub messages: TxReader,
    /// Takes what is received.
    pub received: MessageWriter,
    /// What the client is told.
    pub board: Board,
    /// As [`NodeSource::doorbell`].
    pub doorbell: OwnedFd,
    /// Gets one octet, never waiting, for each time that the client has asked for one.
    pub bell: OwnedFd,
    files: Option<[OwnedFd; 3]>,
}

/// The client's side of a socket.
pub struct ClientSocket {
    /// Takes the messages.
    pub messages: TxWriter,
    /// Gives what was received.
    pub received: MessageReader,
    /// What the node tells.
    pub board: BoardView,
    /// Readable when something has happened since it was armed.
    pub bell: Bell,
    doorbell: OwnedFd,
}

/// The client's side of a sending channel.
pub struct ClientSource {
    /// Takes the units.
    pub ring: TxWriter,
    /// What the node tells.
    pub board: BoardView,
    doorbell: OwnedFd,
}

/// The client's side of a receiving channel.
pub struct ClientSink {
    /// Gives the units.
    pub ring: RxReader,
    /// What the node tells.
    pub board: BoardView,
}

impl ClientSink {
    /// Sleeps where the kernel fills the queue, for `timeout` or [`max_slice`] at most: until a frame waits
    /// there. Where the newest fragment has come by the node, until the board has changed since `seen`: once
    /// the channel has another path or contract, all come so. May return before.
    pub fn wait(&mut self, seen: EventSeen, timeout: Span) -> Waited {
        // The other place, where the next one may come, is looked at after this time.
        let most = timeout.min(max_slice());
        if self.ring.is_by_node() {
            self.board.wait(seen, most)
        } else {
            self.ring.sleep(most);
            Waited::Look
        }
    }
}

impl NodeSource {
    /// Makes the two files and the doorbell of a sending channel.
    ///
    /// # Errors
    /// [`MemoryError::Shape`] or [`MemoryError::Kernel`] (out of memory or descriptors).
    pub fn create(shape: SourceShape) -> Result<Self, MemoryError> {
        let SourceShape { buffers, unit_octets_max } = shape;
        let slots = u32::from(buffers);
        let octets = tx_file_octets(slots, unit_octets_max)
            .filter(|_| slots > 0 && (1..=RING_UNIT_OCTETS_MAX).contains(&unit_octets_max))
            .ok_or(MemoryError::Shape { slots, unit_octets_max })?;
        let file = memfd::create("rota-tx", octets).map_err(kernel("make a memory file"))?;
        // From here on nobody can cut it; holes are closed off in `mapped`.
        memfd::seal(&file, SIZE_SEALS).map_err(kernel("seal a memory file"))?;
        let pages = ReadPages::map(&file, octets).map_err(kernel("map a memory file"))?;
        let (board_file, board_pages) = board(unit_octets_max, slots, RxRing::NONE)?;
        let board = Board::new(board_pages);
        Ok(Self {
            ring: TxReader::new(pages, board.clone(), slots, unit_octets_max),
            board,
            doorbell: bell::doorbell()?,
            files: Some([file, board_file]),
        })
    }

    /// What goes to the client, in this order: client-written file, node-written file, doorbell. Empty
    /// once the client has mapped them.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let Some([file, board]) = &self.files else { return Vec::new() };
        vec![file.as_fd(), board.as_fd(), self.doorbell.as_fd()]
    }

    /// To be called when the client says that it has mapped its file: after this no other program can map
    /// it for writing, and nobody can punch holes into it. Only then may the channel be used.
    ///
    /// # Errors
    /// [`MemoryError::Kernel`] when the seals do not hold: the channel must be given up.
    pub fn mapped(&mut self) -> Result<(), MemoryError> {
        if let Some([file, _]) = self.files.take() {
            memfd::seal(&file, FINAL_SEALS).map_err(kernel("seal a client's memory file"))?;
        }
        // A hole punched before the seal would otherwise cost the data thread a page fault.
        self.ring.prefault();
        Ok(())
    }
}

impl NodeSocket {
    /// Makes the files, the doorbell and the bell of a socket.
    ///
    /// # Errors
    /// [`MemoryError::Shape`] or [`MemoryError::Kernel`] (out of memory or descriptors).
    pub fn create(shape: SocketShape) -> Result<Self, MemoryError> {
        let SocketShape { messages, message_octets_max: unit_octets_max, rx_slots } = shape;
        let slots = u32::from(messages);
        let wrong = MemoryError::Shape { slots, unit_octets_max };
        let fits = (1..=COMPLETIONS as u32).contains(&slots);
        let octets = tx_file_octets(slots, unit_octets_max)
            .filter(|_| fits && (1..=RING_UNIT_OCTETS_MAX).contains(&unit_octets_max))
            .ok_or(wrong)?;
        let ring = RxRing::messages(rx_slots).ok_or(wrong)?;
        let file = memfd::create("rota-socket", octets).map_err(kernel("make a memory file"))?;
        memfd::seal(&file, SIZE_SEALS).map_err(kernel("seal a memory file"))?;
        let pages = ReadPages::map(&file, octets).map_err(kernel("map a memory file"))?;
        let (board_file, board_pages) = board(unit_octets_max, slots, ring)?;
        let board = Board::new(board_pages.clone());
        let (bell, theirs) = bells()?;
        Ok(Self {
            messages: TxReader::new(pages, board.clone(), slots, unit_octets_max),
            received: MessageWriter::new(board_pages, ring),
            board,
            doorbell: bell::doorbell()?,
            bell,
            files: Some([file, board_file, theirs]),
        })
    }

    /// What goes to the client, in this order: client-written file, node-written file, doorbell, bell. Empty
    /// once the client has mapped them.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let Some([file, board, bell]) = &self.files else { return Vec::new() };
        vec![file.as_fd(), board.as_fd(), self.doorbell.as_fd(), bell.as_fd()]
    }

    /// As [`NodeSource::mapped`].
    ///
    /// # Errors
    /// [`MemoryError::Kernel`] when the seals do not hold: the socket must be given up.
    pub fn mapped(&mut self) -> Result<(), MemoryError> {
        if let Some([file, ..]) = self.files.take() {
            memfd::seal(&file, FINAL_SEALS).map_err(kernel("seal a client's memory file"))?;
        }
        self.messages.prefault();
        Ok(())
    }
}

impl ClientSocket {
    /// As [`ClientSource::ring_doorbell`].
    pub fn ring_doorbell(&self) {
        bell::ring_doorbell(&self.doorbell);
    }

    /// As [`BoardView::wait`], and lets the node know, which need not wake whoever is awake.
    pub fn sleep(&self, how: Sleep, seen: EventSeen, timeout: Span) -> Waited {
        self.messages.set_asleep(how);
        let waited = self.board.wait(seen, timeout);
        self.messages.set_asleep(Sleep::Awake);
        waited
    }

    /// Asks for one octet more on the bell, and says how many are there. A program that is about to poll
    /// looks for all that it may wait for after this, not before, and only if there is nothing hushes so
    /// many.
    pub fn arm_bell(&self) -> usize {
        let octets = self.bell.octets();
        self.messages.arm();
        octets
    }
}

/// Maps a socket from the descriptors that came with its opening: see [`NodeSocket::descriptors`].
///
/// # Errors
/// [`MemoryError::NotOurs`] when they are something else, [`MemoryError::Kernel`] when mapping fails.
pub fn open_socket(descriptors: Vec<OwnedFd>) -> Result<ClientSocket, MemoryError> {
    let Ok([file, board, doorbell, bell]) = <[OwnedFd; 4]>::try_from(descriptors) else {
        return Err(MemoryError::NotOurs { found: "another number of files", wanted: "four files" });
    };
    let (pages, facts) = open_board(board)?;
    let slots = facts.tx_slots.filter(|slots| (1..=COMPLETIONS as u32).contains(slots));
    let ring = facts.received.filter(|ring| RxRing::messages(ring.slots()) == Some(*ring));
    let (Some(slots), Some(ring)) = (slots, ring) else {
        return Err(MemoryError::NotOurs { found: "a channel", wanted: "a socket" });
    };
    let messages = open_tx(&file, slots, facts.unit_octets_max, &pages)?;
    let received = MessageReader::new(pages.clone(), ring);
    Ok(ClientSocket { messages, received, board: BoardView::new(pages), bell: Bell::new(bell), doorbell })
}

/// Maps the client-written file of a channel or a socket.
fn open_tx(
    file: &OwnedFd,
    slots: u32,
    unit_octets_max: u32,
    board: &Arc<ReadPages>,
) -> Result<TxWriter, MemoryError> {
    let octets = memfd::fixed_octets(file).map_err(kernel("look at the client-written file"))?;
    if tx_file_octets(slots, unit_octets_max) != Some(octets) {
        return Err(MemoryError::NotOurs { found: "a file of another size", wanted: "the ring" });
    }
    let mine = WritePages::map(file, octets).map_err(kernel("map the client-written file"))?;
    mine.read().prefault();
    Ok(TxWriter::new(Arc::new(mine), BoardView::new(board.clone()), slots, unit_octets_max))
}

impl NodeSink {
    /// Makes the files of a receiving channel.
    ///
    /// # Errors
    /// [`MemoryError::Shape`] or [`MemoryError::Kernel`] (out of memory or descriptors).
    pub fn create(shape: SinkShape) -> Result<Self, MemoryError> {
        let SinkShape { slots, fragment_octets, unit_octets_max } = shape;
        let ring = RxRing::new(slots, fragment_octets)
            .filter(|_| (1..=RING_UNIT_OCTETS_MAX).contains(&unit_octets_max))
            .ok_or(MemoryError::Shape { slots, unit_octets_max })?;
        let (file, pages) = board(unit_octets_max, 0, ring)?;
        let ring = RxWriter::new(pages.clone(), ring);
        Ok(Self { ring, board: Board::new(pages), file, reader: ReaderFile::create()? })
    }

    /// What goes to the client, in this order: the node-written file, the file that both write.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.file.as_fd(), self.reader.descriptor()]
    }

    /// The ring, which counts what is not read, and the board; closes our descriptor of the node-written
    /// file, which the client has by now.
    pub fn into_parts(self) -> (RxWriter, Board) {
        (self.ring.counting(self.reader), self.board)
    }
}

impl ReaderFile {
    pub(crate) fn create() -> Result<Self, MemoryError> {
        let file = memfd::create("rota-read", READER_OCTETS).map_err(kernel("make a memory file"))?;
        memfd::seal(&file, SIZE_SEALS).map_err(kernel("seal a memory file"))?;
        let pages = WritePages::map(&file, READER_OCTETS).map_err(kernel("map a memory file"))?;
        // A hole punched before the seals costs the data thread one page fault, once.
        pages.read().prefault();
        Ok(Self { file, pages: Arc::new(pages) })
    }

    /// What goes to the client.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The same, to keep.
    pub(crate) fn into_descriptor(self) -> OwnedFd {
        self.file
    }

    /// The page, once its program has sealed it: from then on nobody else can map it or punch holes into it.
    /// One system call that waits for nobody.
    pub(crate) fn sealed(&self) -> Option<Arc<WritePages>> {
        let seals = memfd::seals_of(&self.file).ok()?;
        seals.contains(SealFlag::F_SEAL_FUTURE_WRITE).then(|| self.pages.clone())
    }
}

impl ClientSource {
    /// Tells the node that a unit is waiting. Never blocks.
    pub fn ring_doorbell(&self) {
        bell::ring_doorbell(&self.doorbell);
    }
}

/// Maps a sending channel from the descriptors that came with its opening: see
/// [`NodeSource::descriptors`].
///
/// # Errors
/// [`MemoryError::NotOurs`] when they are something else, [`MemoryError::Kernel`] when mapping fails.
pub fn open_source(descriptors: Vec<OwnedFd>) -> Result<ClientSource, MemoryError> {
    let Ok([file, board, doorbell]) = <[OwnedFd; 3]>::try_from(descriptors) else {
        return Err(MemoryError::NotOurs { found: "another number of files", wanted: "three files" });
    };
    let (pages, facts) = open_board(board)?;
    let Some(slots) = facts.tx_slots.filter(|&slots| slots > 0) else {
        return Err(MemoryError::NotOurs { found: "a receiving channel", wanted: "a sending channel" });
    };
    let ring = open_tx(&file, slots, facts.unit_octets_max, &pages)?;
    Ok(ClientSource { ring, board: BoardView::new(pages), doorbell })
}

/// Maps a receiving channel from the descriptors that came with it: see [`NodeSink::descriptors`].
///
/// # Errors
/// [`MemoryError::NotOurs`] when they are something else, [`MemoryError::Kernel`] when mapping fails.
pub fn open_sink(descriptors: Vec<OwnedFd>) -> Result<ClientSink, MemoryError> {
    open_sink_with(descriptors, None)
}

/// The same of a channel that has a queue of its own, whose ring is the last descriptor then.
///
/// # Errors
/// As [`open_sink`].
pub fn open_sink_with(
    mut descriptors: Vec<OwnedFd>,
    apart: Option<ApartShape>,
) -> Result<ClientSink, MemoryError> {
    let queue = match apart {
        Some(shape) if descriptors.len() == 3 => descriptors.pop().map(|ring| (ring, shape)),
        Some(_) => {
            return Err(MemoryError::NotOurs { found: "another number of files", wanted: "three files" });
        }
        None => None,
    };
    let Ok([board, reader]) = <[OwnedFd; 2]>::try_from(descriptors) else {
        return Err(MemoryError::NotOurs { found: "another number of files", wanted: "two files" });
    };
    let (pages, facts) = open_board(board)?;
    let Some(ring) = facts.received else {
        return Err(MemoryError::NotOurs { found: "a sending channel", wanted: "a receiving channel" });
    };
    let read = open_reader(&reader)?;
    let mut ring = RxReader::new(pages.clone(), ring, facts.unit_octets_max).telling(read.clone());
    if let Some((descriptor, shape)) = queue {
        ring = ring.reading_apart(Apart::open(descriptor, read, shape)?);
    }
    Ok(ClientSink { ring, board: BoardView::new(pages) })
}

/// Maps the page of a [`ReaderFile`] and seals it: the node counts what is read after this, and believes
/// nothing in it before.
pub(crate) fn open_reader(file: &OwnedFd) -> Result<Arc<WritePages>, MemoryError> {
    let octets = memfd::fixed_octets(file).map_err(kernel("look at the reader's page"))?;
    if octets != READER_OCTETS {
        return Err(MemoryError::NotOurs { found: "a file of another size", wanted: "the reader's page" });
    }
    let page = WritePages::map(file, octets).map_err(kernel("map the reader's page"))?;
    memfd::seal(file, FINAL_SEALS).map_err(kernel("seal the reader's page"))?;
    page.read().prefault();
    Ok(Arc::new(page))
}

pub(crate) struct BoardFacts {
    unit_octets_max: u32,
    tx_slots: Option<u32>,
    pub(crate) received: Option<RxRing>,
}

/// Makes a node-written file: mapped by us for writing first, then closed for every other writer, because
/// even a read-only descriptor could be opened again for writing through /proc.
pub(crate) fn board(
    unit_octets_max: u32,
    tx_slots: u32,
    ring: RxRing,
) -> Result<(OwnedFd, Arc<WritePages>), MemoryError> {
    let shape = MemoryError::Shape { slots: ring.slots(), unit_octets_max };
    let octets = board_file_octets(ring).ok_or(shape)?;
    let file = memfd::create("rota-board", octets).map_err(kernel("make a memory file"))?;
    let pages = WritePages::map(&file, octets).map_err(kernel("map a memory file"))?;
    memfd::seal(&file, FINAL_SEALS).map_err(kernel("seal a memory file"))?;
    pages.read().prefault();
    pages.store(offset_of!(BoardHeader, version), LAYOUT_VERSION);
    pages.store(offset_of!(BoardHeader, unit_octets_max), u64::from(unit_octets_max));
    pages.store(offset_of!(BoardHeader, tx_slots), u64::from(tx_slots));
    pages.store(offset_of!(BoardHeader, rx_slots), u64::from(ring.slots()));
    pages.store(offset_of!(BoardHeader, rx_slot_octets), ring.slot_octets() as u64);
    pages.store_release(offset_of!(BoardHeader, magic), BOARD_MAGIC);
    Ok((file, Arc::new(pages)))
}

pub(crate) fn open_board(file: OwnedFd) -> Result<(Arc<ReadPages>, BoardFacts), MemoryError> {
    let octets = memfd::fixed_octets(&file).map_err(kernel("look at the node-written file"))?;
    if octets < BOARD_OCTETS {
        return Err(MemoryError::NotOurs { found: "a file without a board", wanted: "a channel's board" });
    }
    let pages = ReadPages::map(&file, octets).map_err(kernel("map the node-written file"))?;
    if pages.load_acquire(offset_of!(BoardHeader, magic)) != BOARD_MAGIC {
        return Err(MemoryError::NotOurs { found: "a file without a board", wanted: "a channel's board" });
    }
    if pages.load(offset_of!(BoardHeader, version)) != LAYOUT_VERSION {
        return Err(MemoryError::NotOurs {
            found: "another layout version",
            wanted: "the version of this program",
        });
    }
    let small = |at| u32::try_from(pages.load(at)).ok();
    let ring = RxRing::stated(
        pages.load(offset_of!(BoardHeader, rx_slots)),
        pages.load(offset_of!(BoardHeader, rx_slot_octets)),
    );
    let facts = BoardFacts {
        unit_octets_max: small(offset_of!(BoardHeader, unit_octets_max)).unwrap_or(u32::MAX),
        tx_slots: small(offset_of!(BoardHeader, tx_slots)),
        received: ring.filter(|ring| *ring != RxRing::NONE),
    };
    if ring.and_then(board_file_octets) != Some(octets) || facts.unit_octets_max > RING_UNIT_OCTETS_MAX {
        return Err(MemoryError::NotOurs { found: "a board of another size", wanted: "a channel's board" });
    }
    pages.prefault();
    Ok((Arc::new(pages), facts))
}

pub(crate) fn kernel(what: &'static str) -> impl FnOnce(Errno) -> MemoryError {
    move |errno| MemoryError::Kernel { what, errno }
}
