//! The broker: a process that keeps the privileges which a node gives away, for a few fixed requests.
//!
//! It reads no frame and no program's message, only requests of 16 octets from its node, and ends with it.
//! Each request is checked against what a node may ask for. Requests: four numbers of 32 bits {verb, thread,
//! priority, 0}; answers: one number, 0 or the kernel's error.
//!
//! | verb | what it does | bounds |
//! |---|---|---|
//! | 1 | gives a thread SCHED_FIFO | a thread of the node, priority 1 to 20 |

use crate::role::{self, Role};
use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::socket::{MsgFlags, recv, send, setsockopt, sockopt};
use nix::sys::time::TimeVal;
use nix::unistd::Pid;
use rota_driver::confine::{SYS_NICE, forbid_all_but_scheduling, keep_capability};
use rota_driver::realtime::{PRIORITY_DEFAULT, set_fifo_of};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

const NAME: &str = "broker";
const REQUEST_OCTETS: usize = 16;
const SCHEDULE: u32 = 1;
/// Longer than it ever takes: a broker that was stopped must not stop its node.
const PATIENCE_S: i64 = 1;

/// The node's side.
#[derive(Debug)]
pub struct Broker {
    role: Role,
}

impl Broker {
    /// Starts the broker of this process.
    ///
    /// # Errors
    /// The operating system's.
    pub fn start() -> io::Result<Self> {
        Self::of(Role::start(NAME)?)
    }

    pub(crate) fn of(role: Role) -> io::Result<Self> {
        let patience = TimeVal::new(PATIENCE_S, 0);
        setsockopt(role.socket(), sockopt::ReceiveTimeout, &patience)?;
        setsockopt(role.socket(), sockopt::SendTimeout, &patience)?;
        Ok(Self { role })
    }

    /// Gives a thread of this process SCHED_FIFO at `priority`.
    ///
    /// # Errors
    /// EPERM if the broker may not, ESRCH for a thread of another process, EINVAL for a priority above a
    /// node's, or the error of a broker that has ended.
    pub fn schedule(&self, thread: Pid, priority: u8) -> Result<(), Errno> {
        self.ask([SCHEDULE, thread.as_raw().cast_unsigned(), u32::from(priority), 0])
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.role.pid()
    }

    /// Its end in words, such as "ended with signal: 9 (SIGKILL)"; `None` while it runs.
    pub(crate) fn ended(&self) -> Option<String> {
        match self.role.ended() {
            Ok(None) => None,
            Ok(Some(status)) => Some(format!("ended with {status}")),
            Err(error) => Some(format!("is lost: {error}")),
        }
    }

    /// Hangs up when it ends.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.role.socket().as_fd()
    }

    fn ask(&self, request: [u32; 4]) -> Result<(), Errno> {
        let socket = self.role.socket().as_raw_fd();
        let octets: Vec<u8> = request.iter().flat_map(|number| number.to_ne_bytes()).collect();
        send(socket, &octets, MsgFlags::MSG_NOSIGNAL)?;
        let mut answer = [0; 4];
        match recv(socket, &mut answer, MsgFlags::empty())? {
            4 => match i32::from_ne_bytes(answer) {
                0 => Ok(()),
                errno => Err(Errno::from_raw(errno)),
            },
            _ => Err(Errno::EPIPE),
        }
    }
}

/// The broker's side: serves the node at the other end of standard input until that is gone.
///
/// # Errors
/// One sentence: it was not started by a node.
pub fn serve() -> Result<(), String> {
    let stdin = io::stdin();
    let socket = stdin.as_fd();
    let node = role::node_of(&socket)?;
    // Belt and braces: the end of the socket says the same.
    let _ = set_pdeathsig(Signal::SIGKILL);
    keep_capability(SYS_NICE).map_err(|errno| format!("the broker keeps too much: {}", errno.desc()))?;
    // A kernel without filters has a broker all the same, as it has a node.
    let _ = forbid_all_but_scheduling();
    while let Some(request) = next(socket) {
        let answer = match obey(node, request) {
            Ok(()) => 0,
            Err(errno) => errno as i32,
        };
        if send(socket.as_raw_fd(), &answer.to_ne_bytes(), MsgFlags::MSG_NOSIGNAL).is_err() {
            break;
        }
    }
    Ok(())
}

/// The next request; `None` once the node is gone, or says what no node says.
fn next(socket: BorrowedFd<'_>) -> Option<[u32; 4]> {
    let mut octets = [0; REQUEST_OCTETS + 1];
    loop {
        return match recv(socket.as_raw_fd(), &mut octets, MsgFlags::empty()) {
            Ok(REQUEST_OCTETS) => Some(parse(&octets)),
            Err(Errno::EINTR) => continue,
            Ok(_) | Err(_) => None,
        };
    }
}

fn parse(octets: &[u8]) -> [u32; 4] {
    let number = |at: usize| u32::from_ne_bytes(std::array::from_fn(|k| octets[4 * at + k]));
    std::array::from_fn(number)
}

/// Does what a node may ask for, and nothing else.
fn obey(node: i32, [verb, thread, priority, spare]: [u32; 4]) -> Result<(), Errno> {
    if verb != SCHEDULE || spare != 0 || !(1..=u32::from(PRIORITY_DEFAULT)).contains(&priority) {
        return Err(Errno::EINVAL);
    }
    if !Path::new(&format!("/proc/{node}/task/{thread}")).exists() {
        return Err(Errno::ESRCH);
    }
    set_fifo_of(Pid::from_raw(thread.cast_signed()), priority.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

    fn own() -> (i32, u32) {
        (nix::unistd::getpid().as_raw(), nix::unistd::gettid().as_raw().cast_unsigned())
    }

    #[test]
    fn it_does_what_a_node_may_ask_for_and_nothing_else() {
        let (process, thread) = own();
        for wrong in
            [[0, thread, 1, 0], [2, thread, 1, 0], [1, thread, 1, 7], [1, thread, 0, 0], [1, thread, 21, 0]]
        {
            assert_eq!(obey(process, wrong), Err(Errno::EINVAL), "{wrong:?}");
        }
        // A thread of another process, such as the first one.
        for stranger in [1, 0, u32::MAX] {
            assert_eq!(obey(process, [SCHEDULE, stranger, 1, 0]), Err(Errno::ESRCH), "{stranger}");
        }
    }

    #[test]
    fn what_no_node_says_ends_it() {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (node, broker) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).unwrap();
        let say = |octets: &[u8]| send(node.as_raw_fd(), octets, MsgFlags::empty()).unwrap();
        say(&[1; REQUEST_OCTETS]);
        assert_eq!(next(broker.as_fd()), Some([0x0101_0101; 4]));
        say(&[1; REQUEST_OCTETS - 1]);
        assert_eq!(next(broker.as_fd()), None);
        say(&[1; 100]);
        assert_eq!(next(broker.as_fd()), None);
        drop(node);
        assert_eq!(next(broker.as_fd()), None, "the node is gone");
    }
}
