//! Files that a node keeps between its starts, or is given: their owner and mode are checked on the open
//! file, and a new one is written whole or not at all.

use nix::libc;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The reason why a file cannot be used.
pub(crate) enum Unsound {
    Io(io::Error),
    /// It is a directory, a symbolic link, a device.
    Kind,
    /// It is neither this user's nor root's.
    Owner {
        owner: u32,
        wanted: u32,
    },
    /// Its mode has one of the bits that are not to be.
    Mode(u32),
}

/// Opens a file and checks it; `None` where there is none. A symbolic link is none of ours, and a pipe
/// without a writer must not hold the node up.
pub(crate) fn open(path: &Path, forbidden: u32) -> Result<Option<File>, Unsound> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    match options.open(path) {
        Ok(file) => check(&file, forbidden).map(|()| Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => Err(Unsound::Kind),
        Err(error) => Err(Unsound::Io(error)),
    }
}

/// Checks the kind, the owner and the mode of an open file.
pub(crate) fn check(file: &File, forbidden: u32) -> Result<(), Unsound> {
    let data = file.metadata().map_err(Unsound::Io)?;
    let (owner, wanted, mode) = (data.uid(), nix::unistd::geteuid().as_raw(), data.mode() & 0o7777);
    if !data.is_file() {
        return Err(Unsound::Kind);
    }
    if owner != wanted && owner != 0 {
        return Err(Unsound::Owner { owner, wanted });
    }
    if mode & forbidden != 0 {
        return Err(Unsound::Mode(mode));
    }
    Ok(())
}

/// Writes a file of one line whole or not at all. One that another process has made meanwhile stays.
pub(crate) fn write(path: &Path, line: &str, mode: u32) -> io::Result<()> {
    let name = path.file_name().ok_or(ErrorKind::InvalidInput)?.to_string_lossy().into_owned();
    // Processes of two containers can have one number.
    let tag = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
    let new = path.with_file_name(format!(".{name}.{tag:016x}"));
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(&new)?;
    let written = file
        .write_all(format!("{line}\n").as_bytes())
        .and_then(|()| file.set_permissions(Permissions::from_mode(mode)))
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::hard_link(&new, path));
    let _ = std::fs::remove_file(&new);
    written.or_else(|error| if error.kind() == ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })
}
