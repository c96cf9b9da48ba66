//! One daemon per interface: a lock that only one process can hold and that is free when it dies, and the
//! kernel's list of packet sockets, since each user has a directory of locks.

use nix::sys::stat::fstat;
use rota_rundir::{Lock, RunDirError};
use std::fs;
use std::os::fd::BorrowedFd;
use std::time::Duration;
use thiserror::Error;

/// How long another process's sockets may take to be gone when it is about to end, and how often they are
/// looked for meanwhile.
const PREDECESSOR_GONE_WITHIN: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(20);

/// Why an interface could not be claimed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClaimError {
    /// Another process has it.
    #[error("interface {0} already belongs to another rota process; stop that one first")]
    Taken(String),
    /// The place for the lock is not ours, or cannot be made.
    #[error("interface {iface} could not be claimed: {source}")]
    Place {
        /// The interface.
        iface: String,
        /// The cause.
        source: RunDirError,
    },
}

/// The right to be the only station on an interface, held until dropped or until the process dies in any way.
/// It is a lock in the run directory of the network namespace, to which only this user can write; other users
/// have other locks: see `Claim::has_rival`.
#[derive(Debug)]
pub struct Claim {
    _lock: Lock,
}

impl Claim {
    /// Claims `iface`, whether or not such an interface exists.
    ///
    /// # Errors
    /// [`ClaimError::Taken`] if a process holds it, this one included.
    pub fn take(iface: &str) -> Result<Self, ClaimError> {
        match Lock::here(&format!("iface-{iface}")) {
            Ok(lock) => Ok(Self { _lock: lock }),
            Err(RunDirError::Taken(_)) => Err(ClaimError::Taken(iface.into())),
            Err(source) => Err(ClaimError::Place { iface: iface.into(), source }),
        }
    }

    /// True if another socket than `own` takes frames of `ethertype` from the interface with this number: a
    /// station of another user. Only a process that may open packet sockets can be on that list, so that no
    /// other one can keep a node from starting. A process that is about to end is waited for, half a second
    /// at most.
    ///
    /// To be asked when `own` is bound: of two that begin at the same time one at least sees the other.
    pub(crate) fn has_rival(own: BorrowedFd<'_>, index: u32, ethertype: u16) -> bool {
        // Without a list nothing is known, and the lock has to do.
        let Ok(own) = fstat(own).map(|stat| stat.st_ino) else { return false };
        let others = || {
            let list = fs::read_to_string("/proc/thread-self/net/packet").unwrap_or_default();
            list.lines().filter_map(receiver).any(|(socket, protocol, interface)| {
                socket != own && protocol == ethertype && interface == index
            })
        };
        for _ in 0..PREDECESSOR_GONE_WITHIN.as_millis() / PAUSE.as_millis() {
            if !others() {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
        others()
    }
}

/// A line of the kernel's list: inode, protocol and interface of a socket.
fn receiver(line: &str) -> Option<(u64, u16, u32)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, _, _, protocol, interface, .., inode] = words[..] else { return None };
    Some((inode.parse().ok()?, u16::from_str_radix(protocol, 16).ok()?, interface.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_list_is_read() {
        let head = "sk               RefCnt Type Proto  Iface R Rmem   User   Inode";
        let line = "ffff8880a1b2c000 3      3    88b5   7     1 0      1000   123456";
        assert_eq!((receiver(head), receiver(line)), (None, Some((123_456, 0x88b5, 7))));
        assert_eq!((receiver(""), receiver("1 2 3 4")), (None, None));
    }

    #[test]
    fn a_second_claim_is_refused_until_the_first_is_dropped() {
        let name = format!("test{}", std::process::id());
        let first = Claim::take(&name).unwrap();
        let refused = Claim::take(&name).unwrap_err();
        assert_eq!(refused, ClaimError::Taken(name.clone()));
        assert!(refused.to_string().contains("already belongs to another rota process"));
        drop(first);
        Claim::take(&name).unwrap();
    }
}
