//! One daemon per interface: a lock that only one process can hold and that is free when it dies.

use rota_rundir::{Lock, RunDirError};
use thiserror::Error;

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
/// It is a lock in the run directory of the network namespace, to which only this user can write.
#[derive(Debug)]
pub struct Claim {
    _lock: Lock,
}

impl Claim {
    /// Claims `iface`, whether or not such an interface exists.
    ///
    /// # Errors
    /// [`ClaimError::Taken`] if anybody holds it, this process included.
    pub fn take(iface: &str) -> Result<Self, ClaimError> {
        match Lock::here(&format!("iface-{iface}")) {
            Ok(lock) => Ok(Self { _lock: lock }),
            Err(RunDirError::Taken(_)) => Err(ClaimError::Taken(iface.into())),
            Err(source) => Err(ClaimError::Place { iface: iface.into(), source }),
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
