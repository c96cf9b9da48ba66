//! Names and paths of a node's control socket.

use std::path::{Path, PathBuf};

use rota_rundir::{Lock, RunDirError};

use super::socket::SocketError;

/// Environment variable that names another control socket than the default.
const CONTROL_VARIABLE: &str = "ROTA_CONTROL";
const DEFAULT_NAME: &str = "control";
const NAME_OCTETS_MAX: usize = 64;
/// Most octets of the path in a socket's address.
const PATH_OCTETS_MAX: usize = 107;
const LOCK: &str = ".lock";

/// A node's control socket: an absolute path, or a plain name in the run directory of the network namespace
/// (see `rota_rundir`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlName(String);

/// A name that no control socket can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the control name `{0}` (ROTA_CONTROL) is not usable: it must be an absolute path of at most 107 octets, \
     or a name of 1 to 64 letters, digits, '-', '_' and '.'"
)]
pub struct ControlNameError(String);

impl ControlName {
    /// The name or path of one's choice.
    ///
    /// # Errors
    /// [`ControlNameError`] when no control socket can have it.
    pub fn named(name: &str) -> Result<Self, ControlNameError> {
        let named = Self(name.to_owned());
        named.check().map(|()| named)
    }

    /// The name or path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if it is the default name.
    pub fn is_default(&self) -> bool {
        self.0 == DEFAULT_NAME
    }

    /// The default name of a second node in the same network namespace: the one of `interface`.
    pub fn of_interface(interface: &str) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        Self(format!("{DEFAULT_NAME}-{}", interface.chars().map(plain).collect::<String>()))
    }

    /// The paths in which a program looks for the socket; it uses the first that is served.
    ///
    /// # Errors
    /// No socket can have that name, or the network namespace has no number.
    pub fn places(&self) -> Result<Vec<PathBuf>, SocketError> {
        self.check()?;
        if self.0.starts_with('/') {
            return Ok(vec![PathBuf::from(&self.0)]);
        }
        Ok(rota_rundir::places()?.into_iter().map(|place| place.join(&self.0)).collect())
    }

    /// Takes the right to serve the socket: held as long as the lock is.
    pub(super) fn claim(&self) -> Result<(Lock, PathBuf), SocketError> {
        self.check()?;
        let lock = if self.0.starts_with('/') {
            rota_rundir::check_named(Path::new(&self.0).parent().unwrap_or(Path::new("/")))?;
            Lock::at(Path::new(&format!("{}{LOCK}", self.0)))
        } else {
            Lock::here(&format!("{}{LOCK}", self.0))
        };
        let lock = lock.map_err(|error| match error {
            RunDirError::Taken(path) => SocketError::InUse(without_ending(&path).display().to_string()),
            other => other.into(),
        })?;
        let path = without_ending(lock.path());
        if path.as_os_str().len() > PATH_OCTETS_MAX {
            return Err(ControlNameError(path.display().to_string()).into());
        }
        Ok((lock, path))
    }

    fn check(&self) -> Result<(), ControlNameError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let good = if self.0.starts_with('/') {
            let path = Path::new(&self.0);
            self.0.len() <= PATH_OCTETS_MAX && !self.0.contains('\0') && path.file_name().is_some()
        } else {
            let fits = (1..=NAME_OCTETS_MAX).contains(&self.0.len());
            fits && self.0.chars().all(plain) && !self.0.starts_with('.')
        };
        // That ending is our own.
        let reserved = self.0.ends_with(LOCK) || self.0.ends_with('/');
        if good && !reserved { Ok(()) } else { Err(ControlNameError(self.0.clone())) }
    }
}

fn without_ending(lock: &Path) -> PathBuf {
    lock.with_extension("")
}

impl Default for ControlName {
    /// The name or path in `ROTA_CONTROL`, or `control` where that is unset or empty. One that no socket can
    /// have is kept, so that connecting says what is wrong with it.
    fn default() -> Self {
        let named = std::env::var(CONTROL_VARIABLE).ok().filter(|name| !name.is_empty());
        Self(named.unwrap_or_else(|| DEFAULT_NAME.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_or_a_plain_name_is_a_name_and_nothing_else() {
        for good in ["control", "control-eth0.5", "/run/rota/second", "/tmp/x"] {
            assert_eq!(ControlName::named(good).map(|name| name.0), Ok(good.to_owned()));
        }
        let long = format!("/{}", "x".repeat(107));
        for bad in ["", "a\0b", "rota/node", "..", ".hidden", "a.lock", "/a.lock", "/", "/x/", &long] {
            let error = ControlName::named(bad).unwrap_err().to_string();
            assert!(error.contains("absolute path"), "{bad}: {error}");
        }
        assert!(ControlName::named(ControlName::of_interface("wän:0").as_str()).is_ok());
    }

    #[test]
    fn the_default_lies_in_the_directory_of_the_network_namespace() {
        let places = ControlName(DEFAULT_NAME.into()).places().unwrap();
        let inode = rota_rundir::namespace().unwrap();
        assert!(places.iter().all(|place| place.ends_with(format!("net-{inode}/control"))), "{places:?}");
        assert_eq!(places[0], PathBuf::from(format!("/run/rota/net-{inode}/control")));
        assert_eq!(ControlName("/a/b".into()).places().unwrap(), [PathBuf::from("/a/b")]);
    }
}
