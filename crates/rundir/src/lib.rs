//! The run directory: control sockets and locks of the nodes of one network namespace.
//!
//! It is `BASE/net-INODE`. INODE is the number of the network namespace, so that namespaces that share a file
//! system do not collide. BASE is the first of these that this user can make:
//!
//! 1. `/run/rota` (root, or a user to whom root has given the directory);
//! 2. `$XDG_RUNTIME_DIR/rota`;
//! 3. `/run/user/UID/rota`;
//! 4. `/tmp/rota-UID`.
//!
//! UID is the user's number outside of a user namespace. Every directory is checked before use: its owner,
//! that it is no symbolic link, and that no other user can write to it. So only its owner and root can put a
//! socket there.
#![forbid(unsafe_code)]

mod ids;
mod lock;
mod sweep;
mod trust;

pub use ids::{gid_is_mapped, group_map, outer_uid, uid_is_mapped};
pub use lock::Lock;
pub use sweep::{clear_out, sweep};
pub use trust::{Stranger, check_server};

use nix::errno::Errno;
use nix::sys::stat::{Mode, SFlag, lstat};
use std::io;
use std::path::{Path, PathBuf};

/// The file in which a node keeps its id; its node has it locked.
pub const NODE_ID: &str = "node-id";

/// The file in which a node keeps its key, beside the one of its id.
pub const NODE_KEY: &str = "node-id.key";
/// The file in which a lab names the neighbours of a station's node.
pub const NEIGHBOURS: &str = "neighbours.toml";

/// True for the files of a node's id, key and neighbours, and for one that a node was writing when it was
/// killed.
fn is_of_node_id(name: &std::ffi::OsStr) -> bool {
    let is_whole = [NODE_ID, NODE_KEY, NEIGHBOURS].iter().any(|file| name == *file);
    is_whole || name.as_encoded_bytes().starts_with(b".node-id.")
}

/// Directories of this name vanish with the last lock in them.
pub(crate) const PREFIX: &str = "net-";

/// Why a directory or a file in it cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunDirError {
    /// It belongs to another user.
    #[error(
        "{path} belongs to user {owner}, who could put anything there; it should belong to user {wanted}: \
         remove it, or name another path with ROTA_CONTROL"
    )]
    Owner {
        /// The directory or file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The user who should own it.
        wanted: u32,
    },
    /// It is a link or a file.
    #[error("{0} is no directory; remove it, or name another path with ROTA_CONTROL")]
    NotDirectory(PathBuf),
    /// Others may write to it.
    #[error(
        "{path} is writable by others (mode {mode:04o}), who could put anything there; \
         'chmod go-w {path}' mends it"
    )]
    Writable {
        /// The directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Another process has the lock.
    #[error("{0} is held by another process")]
    Taken(PathBuf),
    /// None of the places can be used.
    #[error("no directory for control sockets can be made: {0}; set XDG_RUNTIME_DIR, or run as root")]
    Nowhere(String),
    /// The kernel refused.
    #[error("{path}: {}", .errno.desc())]
    Kernel {
        /// The file.
        path: PathBuf,
        /// Its answer.
        errno: Errno,
    },
}

/// The inode of the calling thread's network namespace.
///
/// # Errors
/// `/proc` is not there.
pub fn namespace() -> Result<u64, RunDirError> {
    // Not /proc/self: a thread may be in another namespace than its process.
    let path = Path::new("/proc/thread-self/ns/net");
    nix::sys::stat::stat(path).map(|stat| stat.st_ino).map_err(refused(path))
}

/// True if the calling thread is in the network namespace that the machine, or the container, began with.
/// False where that cannot be seen, as from inside another user namespace.
pub fn is_own_network_of_the_machine() -> bool {
    let first = nix::sys::stat::stat("/proc/1/ns/net").map(|stat| stat.st_ino);
    matches!((first, namespace()), (Ok(first), Ok(own)) if first == own)
}

/// The run directories in which a program looks for the nodes of this network namespace.
///
/// # Errors
/// The namespace has no number.
pub fn places() -> Result<Vec<PathBuf>, RunDirError> {
    let name = format!("{PREFIX}{}", namespace()?);
    Ok(bases().into_iter().map(|base| base.join(&name)).collect())
}

/// The run directory for this process's sockets in this network namespace; made if it does not exist.
///
/// # Errors
/// Another user made it, or it cannot be made.
pub fn make() -> Result<PathBuf, RunDirError> {
    let name = format!("{PREFIX}{}", namespace()?);
    make_in(&bases(), &name)
}

fn make_in(bases: &[PathBuf], name: &str) -> Result<PathBuf, RunDirError> {
    let mut failed = Vec::new();
    for base in bases {
        let place = base.join(name);
        let made = own_directory(base).and_then(|()| own_directory(&place));
        match made {
            Ok(()) => return Ok(place),
            // Root has given the directory to a user for that user's node. Root's own node uses the next
            // place.
            Err(error @ RunDirError::Owner { owner, .. }) if trust::is_given(base, owner) => {
                failed.push(error.to_string());
            }
            // A fault in a place that this user alone can fill is an error; the next place is not tried.
            Err(error) if is_fault(&error) && base.parent().is_some_and(is_ours) => return Err(error),
            Err(error) => failed.push(error.to_string()),
        }
    }
    Err(RunDirError::Nowhere(failed.join("; ")))
}

/// True if another user's action, and not a missing right, is the cause.
fn is_fault(error: &RunDirError) -> bool {
    !matches!(error, RunDirError::Kernel { .. })
}

fn is_ours(path: &Path) -> bool {
    lstat(path).is_ok_and(|stat| stat.st_uid == nix::unistd::geteuid().as_raw())
}

fn bases() -> Vec<PathBuf> {
    let outer = outer_uid(nix::unistd::geteuid().as_raw());
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let mut bases = vec![PathBuf::from("/run/rota")];
    bases.extend(runtime.map(|path| path.join("rota")));
    bases.push(PathBuf::from(format!("/run/user/{outer}/rota")));
    bases.push(PathBuf::from(format!("/tmp/rota-{outer}")));
    bases.dedup();
    bases
}

/// Makes a directory that only this user can fill, or checks that it is one.
fn own_directory(path: &Path) -> Result<(), RunDirError> {
    let checked = made_or_there(path);
    // Another node has removed it between the two looks, see [`sweep`].
    let is_gone = matches!(checked, Err(RunDirError::Kernel { errno: Errno::ENOENT, .. }));
    if is_gone { made_or_there(path) } else { checked }
}

fn made_or_there(path: &Path) -> Result<(), RunDirError> {
    let mode = Mode::from_bits_truncate(0o755);
    match nix::unistd::mkdir(path, mode) {
        // A umask may have taken bits away that others need to come in.
        Ok(()) => std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .map_err(|error| refused(path)(errno_of(&error)))?,
        Err(Errno::EEXIST) => {}
        Err(errno) => {
            // A directory on a read-only file system may be there all the same, and is of no use.
            return Err(refused(path)(errno));
        }
    }
    check_directory(path, nix::unistd::geteuid().as_raw())
}

/// Checks that `path` is a directory of `wanted`, to which no other user can write.
fn check_directory(path: &Path, wanted: u32) -> Result<(), RunDirError> {
    let stat = lstat(path).map_err(refused(path))?;
    if SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) != SFlag::S_IFDIR {
        return Err(RunDirError::NotDirectory(path.to_owned()));
    }
    if stat.st_uid != wanted {
        return Err(RunDirError::Owner { path: path.to_owned(), owner: stat.st_uid, wanted });
    }
    if stat.st_mode & 0o022 != 0 {
        return Err(RunDirError::Writable { path: path.to_owned(), mode: stat.st_mode & 0o7777 });
    }
    Ok(())
}

/// Checks that a directory named by the operator is fit for a control socket of this process: it belongs to
/// this user or to root, and others can write to it at most as they can to /tmp.
///
/// # Errors
/// Why not.
pub fn check_named(directory: &Path) -> Result<(), RunDirError> {
    let stat = nix::sys::stat::stat(directory).map_err(refused(directory))?;
    let user = nix::unistd::geteuid().as_raw();
    let is_sticky = stat.st_mode & 0o1000 != 0;
    // The sticky bit holds off all others, but not the owner of the directory.
    if stat.st_uid != user && stat.st_uid != 0 {
        let path = directory.to_owned();
        return Err(RunDirError::Owner { path, owner: stat.st_uid, wanted: user });
    }
    if stat.st_mode & 0o022 != 0 && !is_sticky {
        return Err(RunDirError::Writable { path: directory.to_owned(), mode: stat.st_mode & 0o7777 });
    }
    Ok(())
}

pub(crate) fn refused(path: &Path) -> impl FnOnce(Errno) -> RunDirError + '_ {
    move |errno| RunDirError::Kernel { path: path.to_owned(), errno }
}

pub(crate) fn errno_of(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(Errno::EIO as i32))
}

#[cfg(test)]
mod tests;
