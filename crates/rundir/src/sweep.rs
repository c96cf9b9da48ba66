//! Removes the run directories of network namespaces whose nodes have all ended without a word.
//!
//! A node that was killed leaves its socket and its locks. The next node of its namespace takes them, but a
//! namespace that is gone has no next node. A directory is removed only if this user made it, it holds
//! nothing but locks, the sockets of these locks and a node's id, key and neighbours, and no process has any
//! of the locks. A lab that ends its namespaces clears out theirs itself.

use crate::lock::is_at;
use crate::{PREFIX, bases, check_directory, namespace};
use nix::fcntl::{Flock, FlockArg};
use std::fs::{DirEntry, File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Directories that are looked at.
const LOOKED_AT: usize = 4_096;
/// Files that a directory may hold.
const FILES: usize = 1_024;
/// The ending of a socket's lock.
const LOCK: &str = ".lock";

/// Removes what dead nodes of other network namespaces left; returns how many directories are gone. A
/// directory that cannot be removed stays.
pub fn sweep() -> usize {
    let Ok(own) = namespace() else { return 0 };
    sweep_in(&bases(), &format!("{PREFIX}{own}"))
}

pub(crate) fn sweep_in(bases: &[PathBuf], own: &str) -> usize {
    let user = nix::unistd::geteuid().as_raw();
    let all = ours(bases, user).filter_map(|base| std::fs::read_dir(base).ok()).flatten().flatten();
    let others = all.filter(|entry| is_of_another_namespace(entry, own)).take(LOOKED_AT);
    others.filter(|entry| Left::at(&entry.path(), user).and_then(|left| left.remove()).is_some()).count()
}

/// Removes what dead nodes left in the network namespace of the calling thread, which is about to end. The
/// result says how many directories are gone. Those in which a process has a lock stay.
pub fn clear_out() -> usize {
    let Ok(own) = namespace() else { return 0 };
    clear_out_in(&bases(), &format!("{PREFIX}{own}"))
}

pub(crate) fn clear_out_in(bases: &[PathBuf], own: &str) -> usize {
    let user = nix::unistd::geteuid().as_raw();
    ours(bases, user).filter(|base| Left::at(&base.join(own), user).and_then(Left::remove).is_some()).count()
}

/// The bases that this user may trust.
fn ours(bases: &[PathBuf], user: u32) -> impl Iterator<Item = &PathBuf> {
    bases.iter().filter(move |base| check_directory(base, user).is_ok())
}

fn is_of_another_namespace(entry: &DirEntry, own: &str) -> bool {
    let name = entry.file_name();
    let inode = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
    name != own && inode.is_some_and(|inode| inode.parse::<u64>().is_ok())
}

/// A directory without a living node, and what is in it. The locks are held until the directory is gone.
#[derive(Debug)]
pub(crate) struct Left {
    directory: PathBuf,
    locks: Vec<(Flock<File>, PathBuf)>,
    sockets: Vec<PathBuf>,
}

impl Left {
    /// `None` if the directory stays.
    pub(crate) fn at(directory: &Path, user: u32) -> Option<Self> {
        check_directory(directory, user).ok()?;
        let (mut locks, mut sockets) = (Vec::new(), Vec::new());
        for entry in std::fs::read_dir(directory).ok()? {
            let path = entry.ok()?.path();
            let there = std::fs::symlink_metadata(&path).ok()?;
            // A node locks the file of its id, too.
            let is_id = path.file_name().is_some_and(crate::is_of_node_id);
            let is_lock = there.is_file() && (there.len() == 0 || is_id);
            if there.uid() != user || locks.len() + sockets.len() >= FILES {
                return None;
            } else if is_lock {
                locks.push((lock(&path)?, path));
            } else if there.file_type().is_socket() {
                sockets.push(path);
            } else {
                return None;
            }
        }
        let lock_of = |socket: &Path| PathBuf::from(format!("{}{LOCK}", socket.display()));
        let is_locked = |socket: &PathBuf| locks.iter().any(|(_, path)| *path == lock_of(socket));
        let are_locked = sockets.iter().all(is_locked);
        are_locked.then(|| Self { directory: directory.to_owned(), locks, sockets })
    }

    /// `None` if the directory stays.
    pub(crate) fn remove(self) -> Option<()> {
        // A node that ends removes its lock. If it did so before the lock was taken here, the file at that
        // path can be the lock of the next node.
        if !self.locks.iter().all(|(file, path)| is_at(file, path)) {
            return None;
        }
        let files = self.sockets.iter().chain(self.locks.iter().map(|(_, path)| path));
        // A lock that a node made since then keeps the directory.
        files.for_each(|path| drop(std::fs::remove_file(path)));
        std::fs::remove_dir(&self.directory).ok()
    }
}

/// The lock, unless a process has it.
fn lock(path: &Path) -> Option<Flock<File>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK);
    Flock::lock(options.open(path).ok()?, FlockArg::LockExclusiveNonblock).ok()
}
