//! Mapped shared pages. Every access is an atomic word access: the other side may write at any moment,
//! so a reference to plain octets must never exist.

use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use nix::sys::mman::{MapFlags, ProtFlags, mlock, mmap, munmap};

#[cfg(test)]
use super::hook::{Access, access};

/// Pages that this process may only read.
pub(crate) struct ReadPages {
    base: NonNull<u8>,
    octets: usize,
}

/// Pages that this process may write too.
pub(crate) struct WritePages(ReadPages);

// SAFETY: a mapping belongs to the process, not to a thread, and all access to it is atomic.
unsafe impl Send for ReadPages {}
// SAFETY: as above: shared access from several threads is atomic word by word.
unsafe impl Sync for ReadPages {}

impl ReadPages {
    /// Maps the first `octets` of `file`. The file must be sealed against shrinking (or be ours alone):
    /// otherwise a later access could end the process with SIGBUS.
    pub(crate) fn map(file: impl AsFd, octets: usize) -> nix::Result<Self> {
        map(file, 0, octets, ProtFlags::PROT_READ)
    }

    /// Maps `octets` of what is no file of ours from `offset` on; the other side must not shrink it.
    pub(super) fn map_from(file: impl AsFd, offset: usize, octets: usize) -> nix::Result<Self> {
        map(file, offset, octets, ProtFlags::PROT_READ)
    }

    /// Octets of the mapping, to be read in place.
    ///
    /// # Safety
    /// Nobody writes to them while the answer lives.
    pub(super) unsafe fn lend(&self, at: usize, octets: usize) -> &[u8] {
        let end = at.checked_add(octets);
        assert!(end.is_some_and(|end| end <= self.octets), "octets lie inside their mapping");
        // SAFETY: in bounds, mapped for as long as `self` lives, and nobody writes there, by contract.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(at), octets) }
    }

    /// Reads the word at octet offset `at`; other accesses may be ordered freely around it.
    pub(crate) fn load(&self, at: usize) -> u64 {
        load(self.word(at))
    }

    /// Reads the word at octet offset `at`; nothing after it is read earlier. A relaxed load and a fence,
    /// because only relaxed loads are defined on pages that are mapped read-only.
    pub(crate) fn load_acquire(&self, at: usize) -> u64 {
        let value = self.load(at);
        fence(Ordering::Acquire);
        value
    }

    /// Keeps everything read so far before everything read after.
    pub(crate) fn read_barrier(&self) {
        fence(Ordering::Acquire);
    }

    /// Copies octets out, starting at a multiple of 8.
    pub(crate) fn copy_out(&self, at: usize, into: &mut [u8]) {
        let words = self.words(at, into.len().div_ceil(8));
        let (whole, rest) = into.as_chunks_mut::<8>();
        let (first, last) = words.split_at(whole.len());
        for (chunk, word) in whole.iter_mut().zip(first) {
            *chunk = load(word).to_ne_bytes();
        }
        if let [word] = last {
            rest.copy_from_slice(&load(word).to_ne_bytes()[..rest.len()]);
        }
    }

    /// Octets of the mapping.
    pub(crate) fn octets(&self) -> usize {
        self.octets
    }

    /// Brings every page in now, so that no later access waits for the kernel, and asks that they stay.
    /// True when the kernel agreed to keep them (an unprivileged process may be over its limit).
    pub(crate) fn prefault(&self) -> bool {
        for at in (0..self.octets / 8 * 8).step_by(4096) {
            let _ = self.load(at);
        }
        // SAFETY: the range is exactly our own mapping.
        unsafe { mlock(self.base.cast(), self.octets) }.is_ok()
    }

    pub(super) fn futex_word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.octets, "a futex word lies inside its mapping");
        // SAFETY: in bounds, aligned, mapped for as long as `self` lives, and only ever accessed as this
        // 32-bit atomic.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.octets, "a word lies inside its mapping");
        // SAFETY: in bounds, aligned, mapped for as long as `self` lives, and only ever accessed as this
        // 64-bit atomic; read-only pages are only loaded from, relaxed.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// `count` words from octet offset `at` on. One look at the bounds serves a whole copy: one for each word
    /// is half the time of a copy.
    fn words(&self, at: usize, count: usize) -> &[AtomicU64] {
        let end = count.checked_mul(8).and_then(|octets| octets.checked_add(at));
        assert!(
            at.is_multiple_of(8) && end.is_some_and(|end| end <= self.octets),
            "words lie inside their mapping"
        );
        // SAFETY: as for one word, and all of them lie one behind the other within one mapping.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(at).cast(), count) }
    }
}

fn load(word: &AtomicU64) -> u64 {
    #[cfg(test)]
    access(Access::Read);
    word.load(Ordering::Relaxed)
}

fn store(word: &AtomicU64, value: u64) {
    #[cfg(test)]
    access(Access::Write);
    word.store(value, Ordering::Relaxed);
}

impl Drop for ReadPages {
    fn drop(&mut self) {
        // SAFETY: the range is exactly our own mapping and no reference into it outlives `self`.
        let _ = unsafe { munmap(self.base.cast(), self.octets) };
    }
}

impl WritePages {
    /// Maps the first `octets` of `file` for reading and writing; see [`ReadPages::map`].
    pub(crate) fn map(file: impl AsFd, octets: usize) -> nix::Result<Self> {
        map(file, 0, octets, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE).map(Self)
    }

    /// The same pages, for reading.
    pub(crate) fn read(&self) -> &ReadPages {
        &self.0
    }

    /// Writes the word at octet offset `at`; other accesses may be ordered freely around it.
    pub(crate) fn store(&self, at: usize, value: u64) {
        store(self.0.word(at), value);
    }

    /// Writes the word at `at`; everything before it is visible to whoever reads it by
    /// [`ReadPages::load_acquire`].
    pub(crate) fn store_release(&self, at: usize, value: u64) {
        #[cfg(test)]
        access(Access::Write);
        self.0.word(at).store(value, Ordering::Release);
    }

    /// Keeps everything written so far before everything written after.
    pub(crate) fn write_barrier(&self) {
        fence(Ordering::Release);
    }

    /// Keeps everything written so far before everything read or written after, for all to see.
    pub(crate) fn full_barrier(&self) {
        fence(Ordering::SeqCst);
    }

    /// Adds to the word at `at`; several threads of one process may do so.
    pub(crate) fn add(&self, at: usize, amount: u64) {
        #[cfg(test)]
        access(Access::Write);
        self.0.word(at).fetch_add(amount, Ordering::Relaxed);
    }

    /// Raises the word at `at` to `value` if it is lower.
    pub(crate) fn raise(&self, at: usize, value: u64) {
        #[cfg(test)]
        access(Access::Write);
        self.0.word(at).fetch_max(value, Ordering::Relaxed);
    }

    /// Changes the word at `at` from `from` to `to`, after everything read before it.
    ///
    /// # Errors
    /// The word is another one: this one.
    pub(crate) fn exchange(&self, at: usize, from: u64, to: u64) -> Result<(), u64> {
        #[cfg(test)]
        access(Access::Write);
        self.0.word(at).compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).map(drop)
    }

    /// Bumps the futex word at `at`, so that whoever is about to sleep on the old value does not.
    pub(crate) fn bump(&self, at: usize) {
        #[cfg(test)]
        access(Access::Write);
        self.0.futex_word(at).fetch_add(1, Ordering::Release);
    }

    /// Copies octets in, starting at a multiple of 8; the last word is padded with zeros.
    pub(crate) fn copy_in(&self, at: usize, from: &[u8]) {
        let words = self.0.words(at, from.len().div_ceil(8));
        let (whole, rest) = from.as_chunks::<8>();
        let (first, last) = words.split_at(whole.len());
        for (chunk, word) in whole.iter().zip(first) {
            store(word, u64::from_ne_bytes(*chunk));
        }
        if let [word] = last {
            let mut padded = [0; 8];
            padded[..rest.len()].copy_from_slice(rest);
            store(word, u64::from_ne_bytes(padded));
        }
    }

    /// Copies octets from other pages, from and to a multiple of 8; the last word is padded with zeros.
    pub(crate) fn copy_across(&self, at: usize, from: &ReadPages, from_at: usize, octets: usize) {
        let count = octets.div_ceil(8);
        let (into, from) = (self.0.words(at, count), from.words(from_at, count));
        let whole = octets / 8;
        for (into, from) in into.iter().zip(from).take(whole) {
            store(into, load(from));
        }
        if let (Some(into), Some(from)) = (into.get(whole), from.get(whole)) {
            let mut word = load(from).to_ne_bytes();
            word[octets % 8..].fill(0);
            store(into, u64::from_ne_bytes(word));
        }
    }
}

fn map(file: impl AsFd, offset: usize, octets: usize, protection: ProtFlags) -> nix::Result<ReadPages> {
    let length = NonZeroUsize::new(octets).ok_or(nix::errno::Errno::EINVAL)?;
    let flags = MapFlags::MAP_SHARED | MapFlags::MAP_POPULATE;
    let offset = i64::try_from(offset).map_err(|_| nix::errno::Errno::EINVAL)?;
    // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing of ours.
    let base = unsafe { mmap(None, length, protection, flags, file, offset) }?;
    Ok(ReadPages { base: base.cast(), octets })
}
