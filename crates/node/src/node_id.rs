//! This node's id: drawn once from the system's randomness and kept in a file.
//!
//! Without a file named by the operator it is `node-id` in the first of these: the directory that systemd
//! gives (`STATE_DIRECTORY`), `/var/lib/rota` for root in the machine's own network namespace, the run
//! directory of the network namespace for all others. Stations of a lab share a file system and have
//! network namespaces of their own, so that no two have one id. A node holds a lock on its file: a second
//! node that finds the same file draws an id for itself.

use crate::kept_file::{self, Unsound};
use nix::fcntl::{Flock, FlockArg};
use rota_contract::NodeId;
use rota_rundir::{NODE_ID, RunDirError};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where root's node keeps it.
const STATE: &str = "/var/lib/rota";
/// The bits of a mode by which others may write.
const OTHERS_WRITE: u32 = 0o022;
/// A file that holds more is none of a node.
const OCTETS_MAX: u64 = 64;
/// How often a file is looked for that another node makes at the same time.
const ATTEMPTS: usize = 8;
/// How long a node that was killed may hold its lock, and how often it is tried meanwhile.
const PREDECESSOR_GONE_WITHIN: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(10);

/// Why a file gives no id.
#[derive(Debug, thiserror::Error)]
enum Unfit {
    #[error(
        "{0} holds no node id: 16 hexadecimal digits should stand there, and not all of them 0; remove it, \
         and the next start of the node writes another one"
    )]
    Content(PathBuf),
    #[error("{0} is no file; a node keeps its id in a file, which --node-id-file names")]
    Kind(PathBuf),
    #[error("{path} belongs to user {owner}, it should belong to user {wanted} or to root")]
    Owner { path: PathBuf, owner: u32, wanted: u32 },
    #[error(
        "{path} is writable by others (mode {mode:04o}), who could give this node the id of another; \
         'chmod 0644 {path}' mends it"
    )]
    Writable { path: PathBuf, mode: u32 },
    #[error(
        "{0} is in use by another node of this host; give this node a file of its own with --node-id-file"
    )]
    Taken(PathBuf),
    #[error(
        "the node id cannot be {what} {path}: {source}; name a file in a directory of this user with \
             --node-id-file"
    )]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("the system has no randomness: {0}")]
    Random(io::Error),
    #[error("the node id has no place: {0}")]
    Place(#[from] RunDirError),
}

impl Unfit {
    fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, path: path.to_owned(), source }
    }

    fn of(path: &Path) -> impl FnOnce(Unsound) -> Self {
        let path = path.to_owned();
        move |unsound| match unsound {
            Unsound::Io(source) => Self::Io { what: "read from", path, source },
            Unsound::Kind => Self::Kind(path),
            Unsound::Owner { owner, wanted } => Self::Owner { path, owner, wanted },
            Unsound::Mode(mode) => Self::Writable { path, mode },
        }
    }
}

/// This node's id. The file that it came from is locked until this is dropped.
#[derive(Debug)]
pub struct KeptNodeId {
    id: NodeId,
    /// The file, unless the id is for this run only.
    path: Option<PathBuf>,
    note: Option<String>,
    _kept: Option<Flock<File>>,
}

impl KeptNodeId {
    /// The id in the file that the operator names, or in this node's usual one. The file is made where there
    /// is none. One that cannot be used is [noted](Self::note), and the node has an id for this run.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn find(named: Option<&Path>) -> io::Result<Self> {
        let path = named.map_or_else(usual, |path| Ok(path.to_owned()));
        match path.map_err(Unfit::from).and_then(|path| kept(&path).map(|kept| (path, kept))) {
            Ok((path, (id, file))) => Ok(Self { id, path: Some(path), note: None, _kept: Some(file) }),
            Err(Unfit::Random(source)) => Err(source),
            Err(unfit) => {
                let drawn = Self::drawn()?;
                let note =
                    format!("{unfit}. This run goes on with the node id {}, kept nowhere", drawn.get());
                Ok(Self { note: Some(note), ..drawn })
            }
        }
    }

    /// An id for this run, which is kept nowhere.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn drawn() -> io::Result<Self> {
        Ok(Self { id: draw()?, path: None, note: None, _kept: None })
    }

    #[cfg(test)]
    pub(crate) fn of(id: NodeId) -> Self {
        Self { id, path: None, note: None, _kept: None }
    }

    /// The id that a node here has or would have, and its file, which is made where there is none. For others
    /// than the node: the file is not locked.
    ///
    /// # Errors
    /// One sentence: the file cannot be used.
    pub fn look(named: Option<&Path>) -> Result<(NodeId, PathBuf), String> {
        let path = named.map_or_else(usual, |path| Ok(path.to_owned())).map_err(Unfit::from);
        let found = path.and_then(|path| found(&path).map(|(id, _)| (id, path)));
        found.map_err(|unfit| unfit.to_string())
    }

    /// The file that keeps it; `None` for an id of this run only.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The id.
    pub fn get(&self) -> NodeId {
        self.id
    }

    /// Why the id is for this run only, in one sentence, if it is and should not be.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }
}

/// Ids of channels begin with the lower half of their origin's id, which is therefore not 0 either.
fn draw() -> io::Result<NodeId> {
    loop {
        let id =
            getrandom::u64().map_err(|error| io::Error::new(ErrorKind::Unsupported, error.to_string()))?;
        if id as u32 != 0 {
            return Ok(NodeId(id));
        }
    }
}

/// The file that this process's node has without an operator's word.
fn usual() -> Result<PathBuf, RunDirError> {
    let is_lab = std::env::var_os("ROTA_LAB").is_some();
    let given = std::env::var("STATE_DIRECTORY").ok();
    let given = given.as_deref().and_then(|all| all.split(':').next()).map(Path::new);
    if let Some(given) = given.filter(|path| path.is_absolute() && !is_lab) {
        return Ok(given.join(NODE_ID));
    }
    let is_root = rota_rundir::outer_uid(nix::unistd::geteuid().as_raw()) == 0;
    if is_root && !is_lab && rota_rundir::is_own_network_of_the_machine() {
        // A directory that cannot be made shows when the file is written.
        let _ = std::fs::create_dir_all(STATE);
        return Ok(Path::new(STATE).join(NODE_ID));
    }
    Ok(rota_rundir::make()?.join(NODE_ID))
}

/// The id that the file holds, and the locked file; made where there is none.
fn kept(path: &Path) -> Result<(NodeId, Flock<File>), Unfit> {
    let (id, file) = found(path)?;
    Ok((id, lock(file, path)?))
}

/// The same without a lock.
fn found(path: &Path) -> Result<(NodeId, File), Unfit> {
    for _ in 0..ATTEMPTS {
        if let Some(file) = kept_file::open(path, OTHERS_WRITE).map_err(Unfit::of(path))? {
            return Ok((read(&file, path)?, file));
        }
        let id = draw().map_err(Unfit::Random)?;
        kept_file::write(path, &id.to_string(), 0o644).map_err(Unfit::io("written to", path))?;
    }
    Err(Unfit::io("read from", path)(io::Error::from(ErrorKind::NotFound)))
}

fn read(file: &File, path: &Path) -> Result<NodeId, Unfit> {
    let mut octets = Vec::new();
    let read = Read::take(file, OCTETS_MAX + 1).read_to_end(&mut octets);
    read.map_err(Unfit::io("read from", path))?;
    let text = std::str::from_utf8(&octets).unwrap_or_default().trim_end();
    let id = text.parse::<NodeId>().ok();
    id.filter(|id| id.is_known()).ok_or_else(|| Unfit::Content(path.to_owned()))
}

fn lock(mut file: File, path: &Path) -> Result<Flock<File>, Unfit> {
    for _ in 0..PREDECESSOR_GONE_WITHIN.as_millis() / PAUSE.as_millis() {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(locked) => return Ok(locked),
            Err((again, nix::errno::Errno::EWOULDBLOCK)) => file = again,
            Err((_, errno)) => return Err(Unfit::io("locked in", path)(errno.into())),
        }
        std::thread::sleep(PAUSE);
    }
    Err(Unfit::Taken(path.to_owned()))
}

#[cfg(test)]
mod tests;
