//! A lock that one process holds until it ends in any way.

use crate::{PREFIX, RunDirError, errno_of, refused};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a holder that was killed may take to be gone, and how often it is looked for meanwhile.
const PREDECESSOR_GONE_WITHIN: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(10);
/// How often a file is looked for that its last holder takes away at the same time.
const ATTEMPTS: usize = 20;

/// A file that this process has locked. Dropping it frees and removes the file; the death of the process
/// frees it, and the next holder takes the file as it lies there.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    _file: Flock<File>,
}

impl Lock {
    /// Takes the lock `name` in the run directory of this network namespace. A holder that is about to end is
    /// waited for, half a second at most.
    ///
    /// # Errors
    /// [`RunDirError::Taken`] if any process has it, this one included.
    pub fn here(name: &str) -> Result<Self, RunDirError> {
        soon(|| Self::attempt(|| crate::make().map(|directory| directory.join(name))))
    }

    /// Takes the lock that is the file `path`. As [`Lock::here`].
    ///
    /// # Errors
    /// [`RunDirError::Taken`] if any process has it, this one included.
    pub fn at(path: &Path) -> Result<Self, RunDirError> {
        soon(|| Self::at_once(path))
    }

    /// As [`Lock::at`], without waiting for the holder.
    ///
    /// # Errors
    /// [`RunDirError::Taken`] if any process has it, this one included.
    pub fn at_once(path: &Path) -> Result<Self, RunDirError> {
        Self::attempt(|| Ok(path.to_owned()))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn attempt(path: impl Fn() -> Result<PathBuf, RunDirError>) -> Result<Self, RunDirError> {
        let mut last = Err(Errno::EBUSY);
        let mut at = PathBuf::new();
        for _ in 0..ATTEMPTS {
            at = path()?;
            match Self::once(&at)? {
                Ok(Some(lock)) => return Ok(lock),
                // Its last holder removed it, or the directory, while we opened it.
                Ok(None) => {}
                Err(errno) => last = Err(errno),
            }
        }
        last.map_err(refused(&at))
    }

    /// `None`, or ENOENT, when another attempt may succeed.
    fn once(path: &Path) -> Result<Result<Option<Self>, Errno>, RunDirError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options.custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK);
        let file = match options.open(path) {
            Ok(file) => file,
            Err(error) if errno_of(&error) == Errno::ENOENT => return Ok(Err(Errno::ENOENT)),
            Err(error) => return Err(foreign(path).unwrap_or_else(|| refused(path)(errno_of(&error)))),
        };
        if let Some(error) = foreign(path) {
            return Err(error);
        }
        let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => file,
            Err((_, Errno::EWOULDBLOCK)) => return Err(RunDirError::Taken(path.to_owned())),
            Err((_, errno)) => return Err(refused(path)(errno)),
        };
        Ok(Ok(is_at(&file, path).then(|| Self { path: path.to_owned(), _file: file })))
    }
}

/// True if the open file is still the one at this path.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    let ours = file.metadata().map(|data| (data.dev(), data.ino()));
    let there = std::fs::symlink_metadata(path).map(|data| (data.dev(), data.ino()));
    matches!((ours, there), (Ok(ours), Ok(there)) if ours == there)
}

fn soon(take: impl Fn() -> Result<Lock, RunDirError>) -> Result<Lock, RunDirError> {
    for _ in 0..PREDECESSOR_GONE_WITHIN.as_millis() / PAUSE.as_millis() {
        match take() {
            Err(RunDirError::Taken(_)) => std::thread::sleep(PAUSE),
            other => return other,
        }
    }
    take()
}

/// The error if the file belongs to another user.
fn foreign(path: &Path) -> Option<RunDirError> {
    let owner = std::fs::symlink_metadata(path).ok()?.uid();
    let wanted = nix::unistd::geteuid().as_raw();
    (owner != wanted).then(|| RunDirError::Owner { path: path.to_owned(), owner, wanted })
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Still locked: no other process can take the file for its own lock.
        let _ = std::fs::remove_file(&self.path);
        if let Some(directory) = self.path.parent()
            && directory.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
        {
            // The directory is not empty while others have files there.
            let _ = std::fs::remove_dir(directory);
        }
    }
}
