//! The messages that a socket receives: the node writes messages, and the program reads whole ones.
//!
//! The file has one kind of slot: a descriptor, and a cell with the octets of one part of a message. The two
//! are used apart. Descriptors follow each other as in every ring. Cells are given out in any order, so that
//! a message whose fragments come slowly keeps its cells while others pass it. Its descriptor, which names
//! them, is written when all of it is there: octets are copied once into the ring and once out of it. When no
//! cell is left the oldest message gives its own, whether the program has read it or not: the node waits for
//! nobody.

use std::mem::offset_of;
use std::sync::Arc;

use super::tx_reader::{TxReader, WaitingUnit};
use crate::layout::{
    BoardHeader, MESSAGE_CELL_OCTETS, MESSAGE_PARTS_MAX, MessageDescriptor, RxRing, board_file_octets,
    sequence_open, sequence_shut,
};
use crate::raw::{ReadPages, WritePages};

const CELLS: usize = offset_of!(MessageDescriptor, cells);
/// Numbers of cells in one word.
const PACKED: usize = 4;

/// How a message lies in its cells: each part but the last has `size` octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    octets: u32,
    size: u16,
}

impl Shape {
    /// `None` if no message can be like that.
    fn new(octets: u32, size: u16) -> Option<Self> {
        let shape = Self { octets, size };
        let is_sound = (1..=MESSAGE_CELL_OCTETS).contains(&usize::from(size));
        (is_sound && shape.parts() <= MESSAGE_PARTS_MAX).then_some(shape)
    }

    /// Also an empty message has one: each takes a cell, so that there are never more messages than slots.
    fn parts(self) -> usize {
        (self.octets as usize).div_ceil(usize::from(self.size)).max(1)
    }

    fn begin(self, part: usize) -> usize {
        part * usize::from(self.size)
    }

    fn part_octets(self, part: usize) -> usize {
        (self.octets as usize - self.begin(part)).min(usize::from(self.size))
    }

    fn word(self) -> u64 {
        u64::from(self.octets) | u64::from(self.size) << 32
    }

    fn from_word(word: u64) -> Option<Self> {
        // The casts cut out fields of a packed word.
        Self::new(word as u32, (word >> 32) as u16).filter(|shape| shape.word() == word)
    }
}

/// The cells of a message that is not whole yet. Its maker publishes it or gives it back.
#[derive(Debug)]
#[must_use]
pub struct MessageRoom {
    shape: Shape,
    cells: [u16; MESSAGE_PARTS_MAX],
}

/// The node's end.
pub struct MessageWriter {
    pages: Arc<WritePages>,
    ring: RxRing,
    /// Cells that no message has.
    free: Vec<u16>,
    /// Cells of published messages that are not retired.
    published_cells: usize,
    published: u64,
    /// The oldest messages, whose cells others have by now.
    retired: u64,
}

impl MessageWriter {
    pub(crate) fn new(pages: Arc<WritePages>, ring: RxRing) -> Self {
        let octets = pages.read().octets();
        assert!(ring != RxRing::NONE && board_file_octets(ring).is_some_and(|file| octets >= file));
        let free = (0..ring.slots()).rev().map(|cell| cell as u16).collect();
        Self { pages, ring, free, published_cells: 0, published: 0, retired: 0 }
    }

    /// Room for a message of which each part but the last has `size` octets. `None` if messages that are not
    /// whole have all cells, or if no message can be like that.
    pub fn reserve(&mut self, octets: u32, size: u16) -> Option<MessageRoom> {
        let shape = Shape::new(octets, size)?;
        // Otherwise the oldest messages would be lost for nothing.
        if self.free.len() + self.published_cells < shape.parts() {
            return None;
        }
        while self.free.len() < shape.parts() {
            self.retire()?;
        }
        let mut cells = [0; MESSAGE_PARTS_MAX];
        for cell in &mut cells[..shape.parts()] {
            *cell = self.free.pop()?;
        }
        Some(MessageRoom { shape, cells })
    }

    /// Copies a part of a message to its place. False if it is not as long as that part.
    #[must_use]
    pub fn fill(&self, room: &MessageRoom, part: usize, payload: &[u8]) -> bool {
        let fits = part < room.shape.parts() && payload.len() == room.shape.part_octets(part);
        if fits {
            self.pages.copy_in(self.cell(room.cells[part]), payload);
        }
        fits
    }

    /// Copies a whole message from the ring of the program that sends it. False if that program has spoilt it
    /// meanwhile, or if it is another message than the room was made for.
    #[must_use]
    pub fn fill_from(&self, room: &MessageRoom, ring: &TxReader, unit: &WaitingUnit) -> bool {
        let shape = room.shape;
        shape.octets == unit.octets
            && (0..shape.parts()).all(|part| {
                let (begin, octets) = (shape.begin(part) as u32, shape.part_octets(part));
                ring.copy_across(unit, begin, octets, &self.pages, self.cell(room.cells[part]))
            })
    }

    /// The message is whole: its program may read it. Call [`crate::Board::notify`] after the last change of
    /// a turn.
    pub fn publish(&mut self, room: &MessageRoom, route: u64) {
        let index = self.published;
        assert!(index - self.retired < u64::from(self.ring.slots()), "each message has a cell at least");
        let (slot, pages) = (self.ring.place(index), &self.pages);
        pages.store(slot + offset_of!(MessageDescriptor, sequence), sequence_open(index));
        pages.write_barrier();
        pages.store(slot + offset_of!(MessageDescriptor, shape), room.shape.word());
        pages.store(slot + offset_of!(MessageDescriptor, route), route);
        for (at, cells) in room.cells[..room.shape.parts()].chunks(PACKED).enumerate() {
            let word = cells.iter().rev().fold(0, |word, cell| word << 16 | u64::from(*cell));
            pages.store(slot + CELLS + at * 8, word);
        }
        pages.store_release(slot + offset_of!(MessageDescriptor, sequence), sequence_shut(index));
        self.published += 1;
        self.published_cells += room.shape.parts();
        pages.store_release(offset_of!(BoardHeader, rx_head), self.published);
    }

    /// The message will never be whole.
    pub fn give_back(&mut self, room: &MessageRoom) {
        self.free.extend_from_slice(&room.cells[..room.shape.parts()]);
    }

    /// Takes the cells of the oldest message. `None` if there is no message.
    fn retire(&mut self) -> Option<()> {
        let index = self.retired;
        if index == self.published {
            return None;
        }
        let (slot, pages) = (self.ring.place(index), self.pages.read());
        // From here on no reader believes that it has copied this message.
        self.pages.store(slot + offset_of!(MessageDescriptor, sequence), sequence_open(index));
        self.pages.write_barrier();
        let shape = Shape::from_word(pages.load(slot + offset_of!(MessageDescriptor, shape)))?;
        self.free.extend((0..shape.parts()).map(|part| named_cell(pages, slot, part)));
        self.retired += 1;
        self.published_cells -= shape.parts();
        Some(())
    }

    fn cell(&self, number: u16) -> usize {
        cell_place(self.ring, number)
    }
}

/// A message that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextMessage {
    /// Its length. Of a longer one only as many octets were copied as there was room for.
    pub octets: usize,
    /// Where it comes from: a packed [`crate::MessageRoute`].
    pub route: u64,
    /// Messages before it that newer ones have overwritten.
    pub lost_before: u64,
}

/// The program's end.
pub struct MessageReader {
    pages: Arc<ReadPages>,
    ring: RxRing,
    /// Index of the next message.
    at: u64,
    /// Overwritten since the last one that was read.
    lost: u64,
}

impl MessageReader {
    pub(crate) fn new(pages: Arc<ReadPages>, ring: RxRing) -> Self {
        assert!(ring != RxRing::NONE && board_file_octets(ring).is_some_and(|file| pages.octets() >= file));
        Self { pages, ring, at: 0, lost: 0 }
    }

    /// The oldest message that is still there, copied straight to `into`. Without one the content of `into`
    /// is not to be used: a message may have been overwritten while it was copied.
    pub fn next_message(&mut self, into: &mut [u8]) -> Option<NextMessage> {
        loop {
            let head = self.pages.load_acquire(offset_of!(BoardHeader, rx_head));
            if head <= self.at {
                return None;
            }
            let oldest = head.saturating_sub(u64::from(self.ring.slots()));
            self.lost = self.lost.saturating_add(oldest.saturating_sub(self.at));
            let index = self.at.max(oldest);
            self.at = index.saturating_add(1);
            if let Some((octets, route)) = self.read(index, into) {
                return Some(NextMessage { octets, route, lost_before: std::mem::take(&mut self.lost) });
            }
            self.lost = self.lost.saturating_add(1);
        }
    }

    /// True if there is anything that has not been looked at.
    pub fn has_next(&self) -> bool {
        self.pages.load_acquire(offset_of!(BoardHeader, rx_head)) > self.at
    }

    /// Copies a message, which may be overwritten meanwhile: nothing in it is believed until its sequence is
    /// read again.
    fn read(&self, index: u64, into: &mut [u8]) -> Option<(usize, u64)> {
        let (pages, slot) = (&self.pages, self.ring.place(index));
        let sequence = slot + offset_of!(MessageDescriptor, sequence);
        if pages.load_acquire(sequence) != sequence_shut(index) {
            return None;
        }
        let shape = Shape::from_word(pages.load(slot + offset_of!(MessageDescriptor, shape)))?;
        let route = pages.load(slot + offset_of!(MessageDescriptor, route));
        for (part, into) in into.chunks_mut(usize::from(shape.size)).take(shape.parts()).enumerate() {
            let cell = named_cell(pages, slot, part);
            if u32::from(cell) >= self.ring.slots() {
                return None;
            }
            let octets = shape.part_octets(part).min(into.len());
            pages.copy_out(cell_place(self.ring, cell), &mut into[..octets]);
        }
        pages.read_barrier();
        (pages.load(sequence) == sequence_shut(index)).then_some((shape.octets as usize, route))
    }
}

fn cell_place(ring: RxRing, number: u16) -> usize {
    ring.place(u64::from(number)) + size_of::<MessageDescriptor>()
}

/// The cell of a part, as the descriptor in this slot names it.
fn named_cell(pages: &ReadPages, slot: usize, part: usize) -> u16 {
    let word = pages.load(slot + CELLS + part / PACKED * 8);
    // The cast cuts out a field of a packed word.
    (word >> (16 * (part % PACKED))) as u16
}

#[cfg(test)]
mod tests;
