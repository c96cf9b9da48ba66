//! The receiving end of a circuit: the node writes parts into cells, the program takes them in order.
//!
//! Other than a channel's ring it overwrites nothing: a part has a cell until the program says that it has
//! taken it, and the sender's program is told so. So the program's word counts, and is believed only as far
//! as it can be true: what it claims to have taken was written, and is never less than before.

use std::mem::offset_of;
use std::sync::Arc;

use super::tx_reader::Hostile;
use crate::layout::{BoardHeader, ReaderHeader, RxDescriptor, RxRing, board_file_octets};
use crate::memory::ReaderFile;
use crate::raw::{ReadPages, WritePages};

const SHAPE: usize = offset_of!(RxDescriptor, shape);
const LAST: u64 = 1 << 16;
const LOST_AT: u32 = 32;
const TAKEN: usize = offset_of!(ReaderHeader, taken);
const ARMED: usize = offset_of!(ReaderHeader, armed);

/// The node's end.
pub struct CellWriter {
    pages: Arc<WritePages>,
    ring: RxRing,
    written: u64,
    taken: u64,
    reader: ReaderFile,
    /// The file of the program, once it has sealed it.
    said: Option<Arc<WritePages>>,
    hostile: Option<Hostile>,
}

impl CellWriter {
    pub(crate) fn new(pages: Arc<WritePages>, ring: RxRing, reader: ReaderFile) -> Self {
        let octets = pages.read().octets();
        assert!(ring != RxRing::NONE && board_file_octets(ring).is_some_and(|file| octets >= file));
        Self { pages, ring, written: 0, taken: 0, reader, said: None, hostile: None }
    }

    /// Parts that were written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Writes the next part; `last`: a message ends with it; `lost`: so many TPDUs in front of it are lost.
    /// False if there is no cell for it.
    pub fn push(&mut self, octets: &[u8], last: bool, lost: u64) -> bool {
        if self.written - self.taken >= u64::from(self.ring.slots()) || octets.len() > self.ring.room() {
            return false;
        }
        let slot = self.ring.place(self.written);
        self.pages.copy_in(slot + size_of::<RxDescriptor>(), octets);
        let lost = lost.min(u64::from(u32::MAX)) << LOST_AT;
        self.pages.store(slot + SHAPE, octets.len() as u64 | if last { LAST } else { 0 } | lost);
        self.written += 1;
        self.pages.store_release(offset_of!(BoardHeader, rx_head), self.written);
        true
    }

    /// Parts that the program has taken.
    ///
    /// # Errors
    /// What it says cannot be true. It stays ended.
    pub fn taken(&mut self) -> Result<u64, Hostile> {
        if let Some(hostile) = self.hostile {
            return Err(hostile);
        }
        let Some(said) = self.said() else { return Ok(0) };
        let claimed = said.read().load_acquire(TAKEN);
        if !(self.taken..=self.written).contains(&claimed) {
            let hostile = Hostile::Taken { claimed, before: self.taken, written: self.written };
            self.hostile = Some(hostile);
            return Err(hostile);
        }
        self.taken = claimed;
        Ok(claimed)
    }

    /// How often the program has asked for one octet on its bell.
    pub fn armed(&mut self) -> u64 {
        self.said().map_or(0, |said| said.read().load_acquire(ARMED))
    }

    fn said(&mut self) -> Option<&WritePages> {
        if self.said.is_none() {
            self.said = self.reader.sealed();
        }
        self.said.as_deref()
    }
}

/// A part that a program took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellPart {
    /// Its length.
    pub octets: usize,
    /// A message ends with it.
    pub last: bool,
    /// TPDUs that are lost in front of it, of a circuit without error control.
    pub lost: u32,
}

/// The program's end.
pub struct CellReader {
    pages: Arc<ReadPages>,
    mine: Arc<WritePages>,
    ring: RxRing,
    taken: u64,
}

impl CellReader {
    pub(crate) fn new(pages: Arc<ReadPages>, mine: Arc<WritePages>, ring: RxRing) -> Self {
        assert!(ring != RxRing::NONE && board_file_octets(ring).is_some_and(|file| pages.octets() >= file));
        Self { pages, mine, ring, taken: 0 }
    }

    /// Octets that a part has at most.
    pub fn room(&self) -> usize {
        self.ring.room()
    }

    /// Parts that may wait here.
    pub fn slots(&self) -> u32 {
        self.ring.slots()
    }

    /// True if a part waits.
    pub fn has_next(&self) -> bool {
        self.pages.load_acquire(offset_of!(BoardHeader, rx_head)) > self.taken
    }

    /// Copies the next part to the front of `into`, which has [`CellReader::room`], and takes it. The node
    /// learns of it by [`CellReader::tell`].
    pub fn next_part(&mut self, into: &mut [u8]) -> Option<CellPart> {
        if !self.has_next() {
            return None;
        }
        let slot = self.ring.place(self.taken);
        let shape = self.pages.load(slot + SHAPE);
        let octets = ((shape & 0xffff) as usize).min(self.ring.room()).min(into.len());
        self.pages.copy_out(slot + size_of::<RxDescriptor>(), &mut into[..octets]);
        self.taken += 1;
        Some(CellPart { octets, last: shape & LAST != 0, lost: (shape >> LOST_AT) as u32 })
    }

    /// Parts that were taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Tells the node what was taken: their cells are free, and the sender hears of it. The doorbell has to
    /// be rung afterwards.
    pub fn tell(&self) {
        self.mine.store_release(TAKEN, self.taken);
    }

    pub(crate) fn arm(&self) {
        self.mine.add(ARMED, 1);
    }
}
