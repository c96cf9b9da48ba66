//! Which fragments of a receive ring its program read in time, and which units it missed thereby.
//!
//! A fragment is taken once: by the program after it has copied the fragment, or by the node before it
//! overwrites the fragment. The index of the next fragment that nobody has taken stands in a page which both
//! change by compare-and-exchange, so that both ends agree about each fragment. The node believes nothing of
//! this page: a program that writes another index there misstates its own reading, and nothing else.

use std::mem::offset_of;
use std::sync::Arc;

use crate::layout::ReaderHeader;
use crate::memory::ReaderFile;
use crate::raw::WritePages;
use rota_contract::Unread;

const TAKEN: usize = offset_of!(ReaderHeader, taken);
/// A correct peer changes the index once between two tries.
const TRIES: usize = 4;

/// What the head of a slot says of its fragment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment {
    pub(super) number: u64,
    /// Its unit is all there.
    pub(super) of_whole: bool,
    /// And came behind its bound.
    pub(super) late: bool,
    pub(super) last: bool,
}

/// The program's hand on the page.
pub(super) struct Reading {
    pages: Arc<WritePages>,
    /// The index as it was last seen.
    seen: u64,
}

impl Reading {
    pub(super) fn new(pages: Arc<WritePages>) -> Self {
        Self { pages, seen: 0 }
    }

    /// Asks the node for one octet on the bell when something has come.
    pub(super) fn arm(&self) {
        self.pages.add(offset_of!(ReaderHeader, armed), 1);
    }

    /// Takes the fragment that was copied.
    ///
    /// # Errors
    /// The node has taken it; the index of the next one that may be had.
    pub(super) fn take(&mut self, index: u64) -> Result<(), u64> {
        for _ in 0..TRIES {
            match self.pages.exchange(TAKEN, self.seen, index + 1) {
                Ok(()) => {
                    self.seen = index + 1;
                    return Ok(());
                }
                Err(found) => self.seen = found,
            }
            if self.seen > index {
                return Err(self.seen);
            }
        }
        // No node does that.
        Ok(())
    }
}

/// The node's hand on the page, and its count of the units that were not read.
#[derive(Default)]
pub(super) struct Readings {
    /// Until its program has sealed it, which is before the program reads anything.
    file: Option<ReaderFile>,
    /// The page, once nobody else can map it or punch a hole into it.
    pages: Option<Arc<WritePages>>,
    /// All fragments below this index are taken, as far as is known.
    known: u64,
    /// The unit whose fragments leave the ring.
    leaving: Option<Leaving>,
    counts: Unread,
    /// The number of the newest unit that counts.
    newest: u64,
}

#[derive(Clone, Copy)]
struct Leaving {
    number: u64,
    of_whole: bool,
    late: bool,
    read: bool,
    unread: bool,
}

impl Readings {
    pub(super) fn new(file: ReaderFile) -> Self {
        Self { file: Some(file), ..Self::default() }
    }

    /// Looks whether the program may have begun to read. It asks the kernel and no other thread: a control
    /// thread without a processor would say so too late.
    pub(super) fn look(&mut self) {
        let Some(pages) = self.file.as_ref().and_then(ReaderFile::sealed) else { return };
        self.file = None;
        self.watch(pages);
    }

    /// The page, once its program has sealed it.
    pub(super) fn pages(&mut self) -> Option<&WritePages> {
        self.look();
        self.pages.as_deref()
    }

    /// From now on the program's reading counts; before, it had read nothing.
    fn watch(&mut self, pages: Arc<WritePages>) {
        for _ in 0..TRIES {
            let index = pages.read().load_acquire(TAKEN);
            if index >= self.known || pages.exchange(TAKEN, index, self.known).is_ok() {
                break;
            }
        }
        self.pages = Some(pages);
    }

    /// Takes the fragment with this index unless the program has; true if the program has. Fragments in the
    /// ring end at `end`.
    pub(super) fn take(&mut self, index: u64, end: u64) -> bool {
        if self.known > index {
            return true;
        }
        self.look();
        let Some(pages) = &self.pages else {
            self.known = index + 1;
            return false;
        };
        let mut found = pages.read().load_acquire(TAKEN);
        if found <= index {
            match pages.exchange(TAKEN, found, index + 1) {
                Ok(()) => {
                    self.known = index + 1;
                    return false;
                }
                // Only the program takes fragments meanwhile.
                Err(now) => found = now,
            }
        }
        self.known = found.min(end).max(index + 1);
        true
    }

    /// Index of the next fragment that the program would read.
    pub(super) fn next(&self) -> u64 {
        self.pages.as_ref().map_or(self.known, |pages| pages.read().load_acquire(TAKEN).max(self.known))
    }

    /// A fragment leaves the ring; the ones before it have left.
    pub(super) fn leaves(&mut self, fragment: Fragment, was_read: bool) {
        let Fragment { number, of_whole, late, last } = fragment;
        if self.leaving.is_some_and(|unit| unit.number != number) {
            self.left();
        }
        let fresh = Leaving { number, of_whole, late, read: false, unread: false };
        let unit = self.leaving.get_or_insert(fresh);
        let is_first = !was_read && !unit.unread;
        unit.read |= was_read;
        unit.unread |= !was_read;
        if is_first && unit.of_whole {
            // As long as some of it is in the ring, the program may still have that.
            self.counts.incomplete += 1;
            self.counts.late += u64::from(unit.late);
            self.newest = number;
        }
        if last {
            self.left();
        }
    }

    /// The unit that was leaving has left.
    fn left(&mut self) {
        let Some(Leaving { number, of_whole, read, unread, .. }) = self.leaving.take() else { return };
        if read || !unread {
            return;
        }
        self.counts.lost += 1;
        self.newest = number;
        if of_whole {
            self.counts.incomplete -= 1;
        } else {
            self.counts.in_part += 1;
        }
    }

    /// So many units leave, of which nothing was read, and some were late; the newest one has this number.
    pub(super) fn leave_unread(&mut self, units: u64, late: u64, newest: u64) {
        self.left();
        self.counts.lost = self.counts.lost.saturating_add(units);
        self.counts.late = self.counts.late.saturating_add(late.min(units));
        self.newest = newest;
    }

    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    pub(super) fn counts(&self) -> Unread {
        self.counts
    }

    /// Nothing leaves any more: the program is gone.
    pub(super) fn end(&mut self) -> Unread {
        self.left();
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leave(readings: &mut Readings, number: u64, of_whole: bool, reads: &[bool]) -> Unread {
        for (at, was_read) in reads.iter().enumerate() {
            let last = of_whole && at + 1 == reads.len();
            // Every second one is late.
            let late = of_whole && number % 2 == 1;
            readings.leaves(Fragment { number, of_whole, late, last }, *was_read);
        }
        readings.counts()
    }

    #[test]
    fn a_unit_that_was_read_in_part_is_incomplete_and_one_that_was_not_read_is_lost() {
        let mut readings = Readings::default();
        let all = |lost, in_part, incomplete| Unread {
            lost,
            in_part,
            incomplete,
            // Of the units 1 and 3, which are whole, as far as they were missed.
            late: u64::from(incomplete > 0) + u64::from(lost > 0),
        };
        assert_eq!(leave(&mut readings, 0, true, &[true, true]), all(0, 0, 0));
        assert_eq!(leave(&mut readings, 1, true, &[true, false]), all(0, 0, 1));
        assert_eq!(leave(&mut readings, 2, true, &[false, true]), all(0, 0, 2));
        assert_eq!(leave(&mut readings, 3, true, &[false, false]), all(1, 0, 2));
        // The wire had lost a part of these: the second one counted as incomplete before.
        assert_eq!(leave(&mut readings, 4, false, &[false, true]), all(1, 0, 2));
        assert_eq!(leave(&mut readings, 5, false, &[false]), all(1, 0, 2), "more of it may follow");
        assert_eq!(leave(&mut readings, 6, true, &[false]), all(3, 1, 2));
        assert_eq!(readings.end(), all(3, 1, 2));
    }

    /// Nobody but the program is told wrong by what it writes there.
    #[test]
    fn no_index_of_a_hostile_program_is_believed_beyond_the_ring() {
        let file = crate::memfd::create("rota-test", 4_096).unwrap();
        let pages = Arc::new(WritePages::map(&file, 4_096).unwrap());
        let mut readings = Readings::default();
        readings.watch(pages.clone());
        for (word, was_read) in [(u64::MAX, true), (0, true), (0, false), (u64::MAX - 1, true)] {
            pages.store(TAKEN, word);
            let index = readings.known.min(if word == 0 && was_read { 9 } else { u64::MAX - 1 });
            assert_eq!(readings.take(index, 10 + index), was_read, "{word}");
            assert!(readings.known <= 10 + index);
        }
    }
}
