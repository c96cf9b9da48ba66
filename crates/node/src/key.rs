//! The segment's secret.

use rota_wire::Key;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The secret of a segment and where it came from.
#[derive(Clone, Debug)]
pub struct SegmentKey {
    key: Key,
    /// The well-known key of labs, which keeps nobody out.
    pub lab: bool,
}

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// There is none.
    #[error(
        "there is no segment key {path}; copy it from another station, or make the first one with \
         'head -c 32 /dev/urandom > {path}; chmod 0400 {path}'"
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// It is there and cannot be read; nobody should be told to write over it.
    #[error("the segment key {path} cannot be read: {source}; run as its owner, or name another with --key")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not 32 octets long.
    #[error("the segment key {path} has {}{octets} octets; it must have exactly 32", more(*octets))]
    Length {
        /// The file.
        path: PathBuf,
        /// Its length, or where reading it was given up.
        octets: usize,
    },
    /// Others may read it.
    #[error("the segment key {path} may be read by others (mode {mode:04o}); run 'chmod 0400 {path}'")]
    Open {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
}

/// Files such as /dev/zero do not end: one octet too many is enough to know.
const READ_MAX: usize = 33;

fn more(octets: usize) -> &'static str {
    if octets == READ_MAX { "at least " } else { "" }
}

impl SegmentKey {
    /// The well-known key of labs. Frames are checked as everywhere, but anybody can make them.
    pub fn lab() -> Self {
        Self { key: Key::new(*b"rota's lab key: known to anybody"), lab: true }
    }

    /// Reads a key file of 32 octets that only its owner may read.
    ///
    /// # Errors
    /// Unreadable, of another length, or open to others.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let unreadable = |source: std::io::Error| match source.kind() {
            ErrorKind::NotFound => KeyError::Missing { path: path.into() },
            _ => KeyError::Unreadable { path: path.into(), source },
        };
        let mut octets = Vec::with_capacity(READ_MAX);
        let file = File::open(path).map_err(unreadable)?;
        file.take(READ_MAX as u64).read_to_end(&mut octets).map_err(unreadable)?;
        let mode = fs::metadata(path).map_err(unreadable)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Open { path: path.into(), mode });
        }
        let length = octets.len();
        let key = <[u8; 32]>::try_from(octets)
            .map_err(|_| KeyError::Length { path: path.into(), octets: length })?;
        Ok(Self { key: Key::new(key), lab: false })
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_is_private_and_has_32_octets() {
        let path = std::env::temp_dir().join(format!("rota-key-test-{}", std::process::id()));
        assert!(matches!(SegmentKey::read(&path), Err(KeyError::Missing { .. })));
        let endless = SegmentKey::read(Path::new("/dev/zero")).unwrap_err();
        assert!(matches!(endless, KeyError::Length { .. } | KeyError::Open { .. }), "{endless}");
        assert!(matches!(SegmentKey::read(&std::env::temp_dir()), Err(KeyError::Unreadable { .. })));
        fs::write(&path, [1; 31]).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(SegmentKey::read(&path), Err(KeyError::Length { octets: 31, .. })));
        fs::write(&path, [1; 32]).unwrap();
        assert!(SegmentKey::read(&path).is_ok_and(|key| !key.lab));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(SegmentKey::read(&path), Err(KeyError::Open { mode: 0o644, .. })));
        fs::remove_file(&path).unwrap();
    }
}
