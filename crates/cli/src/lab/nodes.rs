//! The `rota node` processes that a keeper starts, one in every station.

use super::build::Lab;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rota_units::Span;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};
use std::time::Duration;

/// How long a node may take until its control socket is there.
const READY_WITHIN: Span = Span::from_millis(5_000);
/// How long a node may take to end when asked to.
const GONE_WITHIN: Span = Span::from_millis(1_000);
const PAUSE: Duration = Duration::from_millis(10);
/// How much of what a node said last is kept.
const WORDS_MAX: usize = 4_096;

/// The nodes of a lab; dropping them ends them.
#[derive(Default)]
pub struct Nodes {
    all: Vec<NodeProcess>,
    /// Whether what they say goes to our standard error too.
    aloud: bool,
}

struct NodeProcess {
    station: u8,
    child: Child,
    errors: Option<ChildStderr>,
    words: Vec<u8>,
    ended: Option<String>,
}

impl Nodes {
    /// Starts `rota node` in every station and waits until each has opened its control socket.
    ///
    /// # Errors
    /// One sentence: a node could not be started or ended at once.
    pub fn start(lab: &Lab, aloud: bool) -> Result<(Self, Vec<String>), String> {
        let program = std::env::current_exe().map_err(|e| format!("could not find this program: {e}"))?;
        let mut nodes = Self { all: Vec::new(), aloud };
        for station in 1..=lab.spec().stations {
            let mut command = lab.command(station, &program);
            command.args(["node", "--iface", "eth0", "--name", &format!("n{station}")]);
            // A lab states its own size where that is more than a segment is taken to have.
            if u16::from(lab.spec().stations) > rota_node::STATIONS_STATED {
                command.args(["--stations", &lab.spec().stations.to_string()]);
            }
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            let mut child =
                command.spawn().map_err(|e| format!("could not start the node of n{station}: {e}"))?;
            let errors = child.stderr.take();
            if let Some(pipe) = &errors {
                let _ = fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
            }
            nodes.all.push(NodeProcess { station, child, errors, words: Vec::new(), ended: None });
        }
        let mut warnings = nodes.wait_until_ready(lab)?;
        if warnings.is_empty() {
            warnings = nodes.wait_until_met(lab, &program);
        }
        Ok((nodes, warnings))
    }

    /// Waits for the control sockets; a node without one after a while is worth a warning, not an end.
    fn wait_until_ready(&mut self, lab: &Lab) -> Result<Vec<String>, String> {
        let deadline = rota::now() + READY_WITHIN;
        loop {
            self.look();
            if let Some(node) = self.all.iter().find(|node| node.ended.is_some()) {
                return Err(node.sentence().unwrap_or_default());
            }
            let waiting: Vec<u8> =
                self.all.iter().map(|node| node.station).filter(|k| !has_control_socket(lab, *k)).collect();
            if waiting.is_empty() {
                return Ok(Vec::new());
            }
            if rota::now() > deadline {
                let late = |k| format!("the node of n{k} runs, but has opened no control socket");
                return Ok(waiting.into_iter().map(late).collect());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits until every station has found all others, so that the first command of a new lab does not come
    /// too early.
    fn wait_until_met(&mut self, lab: &Lab, program: &Path) -> Vec<String> {
        let deadline = rota::now() + READY_WITHIN;
        let all = self.all.len();
        loop {
            let strangers: Vec<u8> = self
                .all
                .iter()
                .map(|node| node.station)
                .filter(|k| members(lab, *k, program) < all)
                .collect();
            if strangers.is_empty() {
                return Vec::new();
            }
            if rota::now() > deadline {
                let late = |k| format!("n{k} has not found all other stations yet");
                return strangers.into_iter().map(late).collect();
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Takes in what the nodes said and whether they ended.
    pub fn look(&mut self) {
        for node in &mut self.all {
            node.read_words(self.aloud);
            if node.ended.is_none()
                && let Ok(Some(status)) = node.child.try_wait()
            {
                node.read_words(self.aloud);
                node.ended = Some(status.to_string());
            }
        }
    }

    /// That the node of `station` has ended, and its last words.
    pub fn warning(&self, station: u8) -> Option<String> {
        self.all.iter().find(|node| node.station == station).and_then(NodeProcess::sentence)
    }

    /// What becomes readable when a node speaks.
    pub fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.all.iter().filter_map(|node| node.errors.as_ref()).map(AsFd::as_fd)
    }
}

/// How many stations the node of station `station` knows, itself included.
fn members(lab: &Lab, station: u8, program: &Path) -> usize {
    let output = lab.command(station, program).args(["status", "--json"]).stderr(Stdio::null()).output();
    let status =
        output.ok().and_then(|output| serde_json::from_slice::<rota::StatusInfo>(&output.stdout).ok());
    status.map_or(0, |status| status.members.len())
}

impl NodeProcess {
    fn read_words(&mut self, aloud: bool) {
        let Some(pipe) = &mut self.errors else { return };
        let mut buf = [0; 1_024];
        loop {
            match pipe.read(&mut buf) {
                Ok(0) => break self.errors = None,
                Ok(len) => {
                    self.words.extend_from_slice(&buf[..len]);
                    let surplus = self.words.len().saturating_sub(WORDS_MAX);
                    self.words.drain(..surplus);
                    if aloud {
                        let _ = std::io::stderr().write_all(&buf[..len]);
                    }
                }
                Err(error) if error.raw_os_error() == Some(Errno::EAGAIN as i32) => break,
                Err(_) => break self.errors = None,
            }
        }
    }

    fn sentence(&self) -> Option<String> {
        let ended = self.ended.as_ref()?;
        let words = String::from_utf8_lossy(&self.words);
        let spoken = || words.lines().rev().filter(|line| !line.trim().is_empty());
        // A usage error ends in advice; the line that names the fault comes before it.
        let fault = spoken().find(|line| line.starts_with("rota: ") || line.starts_with("error: "));
        let last = fault.or_else(|| spoken().next()).unwrap_or("it said nothing");
        Some(format!("the node of n{} ended ({ended}): {last}", self.station))
    }
}

/// Whether the name of a node's control socket is taken in the station's network namespace.
fn has_control_socket(lab: &Lab, station: u8) -> bool {
    let table = lab.host(station).run(|| std::fs::read_to_string("/proc/thread-self/net/unix"));
    matches!(table, Ok(Ok(text)) if text.lines().any(|line| line.ends_with(" @rota/node")))
}

impl Drop for Nodes {
    fn drop(&mut self) {
        let pid = |node: &NodeProcess| Pid::from_raw(node.child.id().cast_signed());
        for node in self.all.iter().filter(|node| node.ended.is_none()) {
            let _ = kill(pid(node), Signal::SIGTERM);
        }
        let deadline = rota::now() + GONE_WITHIN;
        while self.all.iter().any(|node| node.ended.is_none()) && rota::now() < deadline {
            self.look();
            std::thread::sleep(PAUSE);
        }
        for node in self.all.iter_mut().filter(|node| node.ended.is_none()) {
            let _ = node.child.kill();
            let _ = node.child.wait();
        }
    }
}
