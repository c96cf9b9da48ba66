//! One daemon per interface: a name that only one process can hold and that vanishes with it.

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, bind, socket};
use std::os::fd::{AsRawFd, OwnedFd};
use thiserror::Error;

/// Why an interface could not be claimed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClaimError {
    /// Another process has it.
    #[error("interface {0} already belongs to another rota process; stop that one first")]
    Taken(String),
    /// The kernel said no.
    #[error("interface {iface} could not be claimed: {errno}")]
    Os {
        /// The interface.
        iface: String,
        /// What the kernel answered.
        errno: Errno,
    },
}

/// The right to be the only station on an interface, held until dropped or until the process dies in any way.
/// The name is an abstract Unix socket, so it counts within one network namespace, like the interface.
#[derive(Debug)]
pub struct Claim {
    _socket: OwnedFd,
}

impl Claim {
    /// Claims `iface`, whether or not such an interface exists.
    ///
    /// # Errors
    /// [`ClaimError::Taken`] if anybody holds it, this process included.
    pub fn take(iface: &str) -> Result<Self, ClaimError> {
        let failed = |errno| ClaimError::Os { iface: iface.into(), errno };
        let socket =
            socket(AddressFamily::Unix, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).map_err(failed)?;
        let name = UnixAddr::new_abstract(format!("rota/iface/{iface}").as_bytes()).map_err(failed)?;
        match bind(socket.as_raw_fd(), &name) {
            Ok(()) => Ok(Self { _socket: socket }),
            Err(Errno::EADDRINUSE) => Err(ClaimError::Taken(iface.into())),
            Err(errno) => Err(failed(errno)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
