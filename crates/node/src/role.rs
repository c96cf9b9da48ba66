//! Roles: processes of the one binary that do a part of a node's work apart from it.
//!
//! A role is `rota node --role NAME`, with one end of a socket as its standard input. The node's end closes
//! when the node ends in any way; that is how a role learns that it is over. Roles are started before the
//! node gives its rights away, for afterwards it can run nothing.

use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, getsockopt, socketpair};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};

/// A running role, from its node's side; ends with this value.
#[derive(Debug)]
pub struct Role {
    socket: Option<OwnedFd>,
    pid: u32,
    child: Mutex<Child>,
}

impl Role {
    /// Starts the role `name` of this very program.
    ///
    /// # Errors
    /// The operating system's.
    pub fn start(name: &str) -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.args(["node", "--role", name]).env_clear();
        Self::run(command)
    }

    /// Starts this program with its end of the socket as standard input.
    pub(crate) fn run(mut command: Command) -> io::Result<Self> {
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        command.stdin(Stdio::from(theirs)).stdout(Stdio::null());
        let child = command.spawn()?;
        Ok(Self { socket: Some(ours), pid: child.id(), child: Mutex::new(child) })
    }

    /// The node's end of the socket.
    pub fn socket(&self) -> &OwnedFd {
        self.socket.as_ref().expect("it is taken only when this value ends")
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// How it has ended before its time; `None` while it runs.
    ///
    /// # Errors
    /// The operating system's.
    pub fn ended(&self) -> io::Result<Option<ExitStatus>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).try_wait()
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        drop(self.socket.take());
        // A process that hangs does not notice the closed socket. A node that has dropped its rights may kill
        // no process: then the kernel ends the child after the node.
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        if child.kill().is_ok() {
            let _ = child.wait();
        }
    }
}

/// In a role: the process of the node at the other end of `socket`, which must be the parent.
///
/// # Errors
/// One sentence: a process other than a node started this one.
pub fn node_of(socket: &impl AsFd) -> Result<i32, String> {
    let wrong = "a role is started by a node, and by nobody else";
    let peer = getsockopt(&socket.as_fd(), PeerCredentials).map_err(|_| wrong)?.pid();
    if peer == nix::unistd::getppid().as_raw() { Ok(peer) } else { Err(wrong.into()) }
}
