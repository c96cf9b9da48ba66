//! The key pair of this node: drawn at its first start and kept in a file beside the node's id.
//!
//! The node proves by it who it is, and other nodes pin its public half. A file that cannot be used ends the
//! start: with another key no neighbour would let this node in, and nobody would see why.

use crate::kept_file::{self, Unsound};
use rustls::SignatureScheme;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::sign::SigningKey;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// Octets of an Ed25519 key, secret or public.
const KEY_OCTETS: usize = 32;
/// Hexadecimal digits, and the end of their line.
const FILE_OCTETS_MAX: u64 = 2 * KEY_OCTETS as u64 + 2;
/// The bits of a mode by which others may do anything.
const OTHERS: u32 = 0o077;
/// How often a file is looked for that another process makes at the same time.
const ATTEMPTS: usize = 8;
/// The octets before those of a public Ed25519 key (RFC 8410, section 4).
const PUBLIC_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// The octets before those of a secret one (RFC 8410, section 7).
const SECRET_HEAD: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// The public key of a node (Ed25519), which its neighbours pin: 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey([u8; KEY_OCTETS]);

impl PublicKey {
    /// As TLS carries it: a SubjectPublicKeyInfo (RFC 7250).
    pub(super) fn info(&self) -> Vec<u8> {
        [&PUBLIC_HEAD[..], &self.0].concat()
    }

    /// The key in such a structure; `None` where it holds another kind of key.
    pub(super) fn of_info(info: &[u8]) -> Option<Self> {
        info.strip_prefix(&PUBLIC_HEAD).and_then(|octets| octets.try_into().ok()).map(Self)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is no public key: 64 hexadecimal digits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAKey;

impl FromStr for PublicKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        octets_of(text).map(Self).ok_or(NotAKey)
    }
}

fn octets_of(text: &str) -> Option<[u8; KEY_OCTETS]> {
    if text.len() != 2 * KEY_OCTETS || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut octets = [0; KEY_OCTETS];
    for (octet, at) in octets.iter_mut().zip((0..).step_by(2)) {
        *octet = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(octets)
}

/// Why a file gives no key.
#[derive(Debug, thiserror::Error)]
pub enum NodeKeyError {
    /// It holds something else, or less.
    #[error(
        "{path} holds no node key: 64 hexadecimal digits should stand there, and there are {octets} octets; \
         copy it back from where it is kept, or remove it: the next start writes another key, which the \
         neighbours must pin"
    )]
    Content {
        /// The file.
        path: PathBuf,
        /// As many as were read.
        octets: usize,
    },
    /// It is a directory, a link, a device.
    #[error("{0} is no file; a node keeps its key in a file beside the one of its id")]
    Kind(PathBuf),
    /// Somebody else's.
    #[error("{path} belongs to user {owner}, it should belong to user {wanted} or to root")]
    Owner {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Whose it should be.
        wanted: u32,
    },
    /// Others may read it, and speak in this node's name.
    #[error("the node key {path} is open to others (mode {mode:04o}); run 'chmod 0600 {path}'")]
    Open {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The kernel refused.
    #[error(
        "the node key cannot be {what} {path}: {source}; name a file in a directory of this user with \
         --node-id-file"
    )]
    Io {
        /// The attempt.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The answer.
        source: io::Error,
    },
    /// No key can be drawn.
    #[error("the system has no randomness: {0}")]
    Random(String),
    /// The octets are none of a key.
    #[error("the node key {0} cannot be used: remove it, and the next start writes another key")]
    Useless(PathBuf),
}

impl NodeKeyError {
    fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, path: path.to_owned(), source }
    }

    fn of(path: &Path) -> impl FnOnce(Unsound) -> Self {
        let path = path.to_owned();
        move |unsound| match unsound {
            Unsound::Io(source) => Self::Io { what: "read from", path, source },
            Unsound::Kind => Self::Kind(path),
            Unsound::Owner { owner, wanted } => Self::Owner { path, owner, wanted },
            Unsound::Mode(mode) => Self::Open { path, mode },
        }
    }
}

/// The key pair of a node.
#[derive(Clone)]
pub struct NodeKey {
    secret: Arc<dyn SigningKey>,
    public: PublicKey,
}

impl fmt::Debug for NodeKey {
    /// Without the secret half.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeKey({})", self.public)
    }
}

impl NodeKey {
    /// The file of the key that belongs to the id in `id_file`: the same name with `.key` behind it.
    pub fn beside(id_file: &Path) -> PathBuf {
        let mut name = id_file.as_os_str().to_owned();
        name.push(".key");
        PathBuf::from(name)
    }

    /// The key in the file, which is made where there is none.
    ///
    /// # Errors
    /// A file that cannot be used, or no randomness.
    pub fn find(path: &Path) -> Result<Self, NodeKeyError> {
        for _ in 0..ATTEMPTS {
            if let Some(file) = kept_file::open(path, OTHERS).map_err(NodeKeyError::of(path))? {
                let secret = read(&file, path)?;
                return Self::of(&secret).ok_or_else(|| NodeKeyError::Useless(path.to_owned()));
            }
            let digits: String = draw()?.iter().map(|octet| format!("{octet:02x}")).collect();
            kept_file::write(path, &digits, 0o600).map_err(NodeKeyError::io("written to", path))?;
        }
        Err(NodeKeyError::io("read from", path)(ErrorKind::NotFound.into()))
    }

    /// A key for this run, which is kept nowhere.
    ///
    /// # Errors
    /// No randomness.
    pub fn drawn() -> Result<Self, NodeKeyError> {
        Self::of(&draw()?).ok_or_else(|| NodeKeyError::Useless(PathBuf::new()))
    }

    fn of(secret: &[u8; KEY_OCTETS]) -> Option<Self> {
        let der = PrivatePkcs8KeyDer::from([&SECRET_HEAD[..], secret].concat());
        let secret = rustls::crypto::ring::sign::any_eddsa_type(&der).ok()?;
        secret.choose_scheme(&[SignatureScheme::ED25519])?;
        let public = PublicKey::of_info(&secret.public_key()?)?;
        Some(Self { secret, public })
    }

    /// The half that others pin.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    pub(super) fn secret(&self) -> Arc<dyn SigningKey> {
        Arc::clone(&self.secret)
    }
}

fn draw() -> Result<[u8; KEY_OCTETS], NodeKeyError> {
    let mut octets = [0; KEY_OCTETS];
    getrandom::fill(&mut octets).map_err(|error| NodeKeyError::Random(error.to_string()))?;
    Ok(octets)
}

fn read(file: &File, path: &Path) -> Result<[u8; KEY_OCTETS], NodeKeyError> {
    let mut text = Vec::new();
    let read = Read::take(file, FILE_OCTETS_MAX + 1).read_to_end(&mut text);
    read.map_err(NodeKeyError::io("read from", path))?;
    let digits = std::str::from_utf8(&text).unwrap_or_default().trim_end();
    octets_of(digits).ok_or_else(|| NodeKeyError::Content { path: path.to_owned(), octets: text.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn place(test: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("rota-node-key-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory");
        path
    }

    #[test]
    fn a_key_is_drawn_once_and_its_file_is_private() {
        let folder = place("kept");
        let path = NodeKey::beside(&folder.join("node-id"));
        assert_eq!(path, folder.join("node-id.key"));
        let first = NodeKey::find(&path).expect("a key");
        assert_eq!(std::fs::metadata(&path).expect("a file").mode() & 0o7777, 0o600);
        assert_eq!(NodeKey::find(&path).expect("the same").public(), first.public());
        assert_ne!(NodeKey::drawn().expect("a key").public(), first.public());
        assert_eq!(std::fs::read_dir(&folder).expect("a directory").count(), 1, "nothing else is left");
        let said = first.public().to_string();
        assert_eq!((said.len(), said.parse()), (64, Ok(first.public())));
        assert!(!format!("{first:?}").contains(std::fs::read_to_string(&path).expect("text").trim()));
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// RFC 8032, section 7.1, test 1.
    #[test]
    fn the_public_half_is_the_one_of_the_standard() {
        let secret = octets_of("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
        let public = NodeKey::of(&secret.expect("digits")).expect("a key").public();
        assert_eq!(public.to_string(), "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
        assert_eq!(PublicKey::of_info(&public.info()), Some(public));
        assert_eq!(PublicKey::of_info(&public.info()[1..]), None);
    }

    #[test]
    fn a_file_that_is_none_of_a_key_is_refused_and_stays() {
        let folder = place("unfit");
        let path = folder.join("node-id.key");
        let good = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60\n";
        let said = |content: &[u8], mode: u32| {
            std::fs::write(&path, content).expect("room");
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("its mode");
            let error = NodeKey::find(&path).expect_err("unfit");
            assert_eq!(std::fs::read(&path).expect("it stays"), content);
            error
        };
        for garbage in [&b""[..], b"\xff\xfe", &good.as_bytes()[..63], b"+1", &[b'0'; 200]] {
            assert!(matches!(said(garbage, 0o600), NodeKeyError::Content { .. }), "{garbage:?}");
        }
        let multi = format!("{}é", "0".repeat(62));
        assert!(matches!(said(multi.as_bytes(), 0o600), NodeKeyError::Content { .. }));
        for mode in [0o640, 0o604, 0o666] {
            let error = said(good.as_bytes(), mode);
            assert!(matches!(error, NodeKeyError::Open { mode: told, .. } if told == mode), "{error}");
        }
        std::fs::remove_file(&path).expect("a file");
        std::fs::create_dir(&path).expect("a directory");
        assert!(matches!(NodeKey::find(&path), Err(NodeKeyError::Kind(_))));
        std::fs::remove_dir(&path).expect("a directory");
        std::os::unix::fs::symlink("/dev/zero", &path).expect("a link");
        assert!(matches!(NodeKey::find(&path), Err(NodeKeyError::Kind(_))));
        assert!(matches!(NodeKey::find(&folder.join("no/such")), Err(NodeKeyError::Io { .. })));
        let _ = std::fs::remove_dir_all(&folder);
    }
}
