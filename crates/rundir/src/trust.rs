//! Decides whether a program trusts the process that serves a control socket.

use crate::ids::uid_is_mapped;
use nix::sys::stat::stat;
use std::path::{Path, PathBuf};

/// A server that a program does not talk to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{path} is served by user {user}, and was made by that user: not talked to. A node is served by root or \
     by user {own}; remove the file, or name the right path with ROTA_CONTROL"
)]
pub struct Stranger {
    /// The socket.
    pub path: PathBuf,
    /// The user whose process serves it.
    pub user: u32,
    /// The user of this program.
    pub own: u32,
}

/// Checks that a process of user `server` may serve the socket `path`: `server` is root, this user, or the
/// user to whom root has given the directory.
///
/// # Errors
/// [`Stranger`].
pub fn check_server(path: &Path, server: u32) -> Result<(), Stranger> {
    let own = nix::unistd::geteuid().as_raw();
    if is_own(own, server, uid_is_mapped) || server == 0 {
        return Ok(());
    }
    // All users of other user namespaces bear one number.
    if uid_is_mapped(server) && path.parent().is_some_and(|directory| is_given(directory, server)) {
        return Ok(());
    }
    Err(Stranger { path: path.to_owned(), user: server, own })
}

/// True if both numbers mean one user. All users without a number in this user namespace have the same
/// number, perhaps this program's user too.
fn is_own(own: u32, server: u32, is_mapped: impl Fn(u32) -> bool) -> bool {
    server == own && is_mapped(own)
}

/// Whether `directory` belongs to `user`, and nobody but that user and root can write to it or to any
/// directory above it.
pub(crate) fn is_given(directory: &Path, user: u32) -> bool {
    let Ok(directory) = directory.canonicalize() else { return false };
    let is_owner = stat(&directory).is_ok_and(|stat| stat.st_uid == user);
    is_owner
        && directory.ancestors().all(|above| {
            stat(above)
                .is_ok_and(|stat| (stat.st_uid == 0 || stat.st_uid == user) && stat.st_mode & 0o022 == 0)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel calls everybody without a number 65534, also the program itself.
    #[test]
    fn a_user_without_a_number_is_nobody_s_own() {
        let mapped = |uid| uid == 1_000;
        assert!(is_own(1_000, 1_000, mapped));
        assert!(!is_own(65_534, 65_534, mapped) && !is_own(1_000, 65_534, mapped));
    }
}
