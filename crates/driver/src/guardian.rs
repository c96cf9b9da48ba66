//! The guardian of a node: a process of its own that sends the node's last will when the node has died
//! (decision 013).
//!
//! ```text
//!  node ── writes ──► will (a file in memory) ◄── reads, once the node has ended ── guardian ──► socket
//! ```
//! The guardian reads nothing from the network, and has no key and no privilege. It holds a packet socket
//! that was opened for it, and waits. It sends one frame, which the node has prepared. It sends the frame
//! after the interface has sent all frames of the node: no frame of the node follows the will.

use crate::clock;
use crate::device::Backlog;
use crate::egress::Egress;
use crate::packet::{DeviceOpenError, RawSocket};
use crate::realtime::{Realtime, Wish};
use crate::sys::interface::{self, Name};
use crate::sys::packet_socket::{self, LinkAddress};
use crate::sys::pidfd::pidfd_open;
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::prctl;
use nix::sys::signal::SigSet;
use nix::sys::socket::{MsgFlags, send, setsockopt, sockopt};
use nix::unistd::{Gid, Pid, Uid, geteuid, getppid, setgroups, setresgid, setresuid, setsid};
use rota_units::{BitRate, Span};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// The longest frame that is a will.
pub const WILL_OCTETS_MAX: usize = 128;
/// How often a will is sent, and how far apart: a copy that is lost must cost nothing.
const COPIES: u32 = 3;
const BETWEEN: Duration = Duration::from_micros(300);
/// How often it is asked whether the interface has sent everything.
const LOOK: Duration = Duration::from_micros(100);
/// After this time the others have detected the death themselves.
const PATIENCE: Span = Span::from_millis(400);
/// Without a pidfd: how often the guardian looks whether its parent is still there.
const GLANCE: Duration = Duration::from_millis(1);
/// Below the data thread, above ordinary programs.
const PRIORITY: u8 = 19;
const NOBODY: u32 = 65_534;
const LENGTH_OCTETS: usize = 2;
/// In the place of a length: the node ends in good order.
const DISMISSED: u16 = u16::MAX;

/// The last will of this process, where its guardian finds it.
#[derive(Debug)]
pub struct Testament {
    file: File,
}

impl Testament {
    /// One without a will.
    ///
    /// # Errors
    /// The kernel has no memory for it.
    pub fn create() -> io::Result<Self> {
        let file = File::from(memfd_create("rota-will", MFdFlags::MFD_CLOEXEC)?);
        let testament = Self { file };
        testament.leave(&[])?;
        Ok(testament)
    }

    /// Leaves this frame as the will; none where it is empty. One write, which a kill does not divide.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn leave(&self, will: &[u8]) -> io::Result<()> {
        let mut octets = [0; LENGTH_OCTETS + WILL_OCTETS_MAX];
        let end = LENGTH_OCTETS + will.len();
        let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "a will is one short frame");
        octets.get_mut(LENGTH_OCTETS..end).ok_or_else(wrong)?.copy_from_slice(will);
        octets[..LENGTH_OCTETS].copy_from_slice(&(will.len() as u16).to_be_bytes());
        self.file.write_all_at(&octets, 0)
    }

    /// This process ends in good order: its will is void for ever.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn dismiss(&self) -> io::Result<()> {
        self.file.write_all_at(&DISMISSED.to_be_bytes(), 0)
    }

    /// A descriptor for the guardian.
    ///
    /// # Errors
    /// There are too many.
    pub fn share(&self) -> io::Result<OwnedFd> {
        self.file.as_fd().try_clone_to_owned()
    }
}

/// The content of the will's file at the node's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// The process ended in good order, or was in no ring.
    Nothing,
    /// So many octets of the buffer are to be sent.
    Will(usize),
}

fn read_will(file: &File, frame: &mut [u8; WILL_OCTETS_MAX]) -> io::Result<Left> {
    let mut octets = [0; LENGTH_OCTETS + WILL_OCTETS_MAX];
    file.read_exact_at(&mut octets, 0)?;
    let length = u16::from_be_bytes([octets[0], octets[1]]);
    frame.copy_from_slice(&octets[LENGTH_OCTETS..]);
    let length = usize::from(length);
    Ok(if (1..=WILL_OCTETS_MAX).contains(&length) { Left::Will(length) } else { Left::Nothing })
}

/// Opens the socket through which a guardian sends; it receives nothing.
///
/// # Errors
/// As for a device.
pub fn will_socket(iface: &str, mark: u32) -> Result<OwnedFd, DeviceOpenError> {
    let raw = RawSocket::open(iface)?;
    if mark != 0 {
        setsockopt(&raw.socket, sockopt::Mark, &mark).map_err(raw.failed("SO_MARK"))?;
    }
    // Without a protocol a bound socket is given no frame.
    packet_socket::bind(raw.socket.as_fd(), &LinkAddress::new(raw.index, 0)).map_err(raw.failed("bind"))?;
    Ok(raw.socket)
}

/// True if this kernel tells at once that a process has ended.
pub fn has_pidfd() -> bool {
    pidfd_open(std::process::id()).is_ok()
}

/// The process that a guardian watches, and the interface on which it sends.
#[derive(Clone, Debug)]
pub struct Ward {
    /// The node's process, which has started the guardian.
    pub process: u32,
    /// The interface.
    pub iface: String,
    /// The link's rate, if known better than the driver knows it.
    pub rate: Option<BitRate>,
    /// Ask for real-time priority.
    pub realtime: bool,
}

/// The result of a guardian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// The node left in good order, or had nothing to leave.
    Nothing,
    /// The will was sent so long after the node's end.
    Will(Span),
    /// The interface has not sent all frames in time. No will was sent: frames of the node could follow it.
    Busy,
    /// The node has ended, and its will could not be read or sent.
    Failed(Errno),
}

/// Watches until the node has ended, and sends its will. `will` is the node's testament, `socket` from
/// [`will_socket`].
///
/// # Errors
/// The guardian cannot watch: nothing is known of the node.
pub fn watch(ward: &Ward, will: BorrowedFd<'_>, socket: BorrowedFd<'_>) -> io::Result<Spoken> {
    let file = File::from(will.try_clone_to_owned()?);
    let mut egress = egress_of(ward, socket)?;
    withdraw(ward);
    wait_for_end(ward.process)?;
    Ok(speak(&file, socket, &mut egress))
}

/// The node has ended.
fn speak(will: &File, socket: BorrowedFd<'_>, egress: &mut Egress) -> Spoken {
    let ended = clock::now();
    let mut frame = [0; WILL_OCTETS_MAX];
    let length = match read_will(will, &mut frame) {
        Ok(Left::Will(length)) => length,
        Ok(Left::Nothing) => return Spoken::Nothing,
        Err(error) => return Spoken::Failed(Errno::from_raw(error.raw_os_error().unwrap_or(0))),
    };
    egress.on_sent();
    while egress.backlog() == Backlog::Pending {
        if clock::now().since(ended) > PATIENCE {
            return Spoken::Busy;
        }
        std::thread::sleep(LOOK);
    }
    let mut outcome = Err(Errno::ENOBUFS);
    let mut first = None;
    for copy in 0..COPIES {
        if copy > 0 {
            std::thread::sleep(BETWEEN);
        }
        let sent = send(socket.as_raw_fd(), &frame[..length], MsgFlags::MSG_DONTWAIT);
        if sent.is_ok() {
            first.get_or_insert_with(|| clock::now().since(ended));
        }
        outcome = outcome.or(sent);
    }
    match (first, outcome) {
        (Some(after), _) => Spoken::Will(after),
        (None, outcome) => Spoken::Failed(outcome.err().unwrap_or(Errno::EIO)),
    }
}

fn egress_of(ward: &Ward, socket: BorrowedFd<'_>) -> io::Result<Egress> {
    let iface = ward.iface.as_str();
    let name = Name::new(iface).ok_or(Errno::ENODEV)?;
    let index = if_nametoindex(iface)?;
    let (mac, _) = interface::hardware_address(socket, &name)?;
    let mtu = u16::try_from(interface::mtu(socket, &name)?).unwrap_or(u16::MAX);
    Ok(Egress::new(socket, &name, iface, index, mac, mtu, ward.rate))
}

/// Drops all rights but those for sending one frame. The kernel may refuse a step, which is then left out.
fn withdraw(ward: &Ward) {
    // A signal to the node's process group must not end the guardian too: only the node's end counts.
    let _ = setsid();
    let _ = SigSet::all().thread_block();
    if ward.realtime {
        Realtime::ask(Wish { fifo: Some(PRIORITY), cpu: None, lock: false });
    }
    if geteuid().is_root() {
        let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        let _ = setgroups(&[]);
        let _ = setresgid(group, group, group);
        let _ = setresuid(user, user, user);
    }
    let _ = prctl::set_no_new_privs();
    let _ = prctl::set_dumpable(false);
}

/// Returns when the process has ended. It is this one's parent: once it is not, it has ended.
fn wait_for_end(process: u32) -> io::Result<()> {
    let pidfd = pidfd_open(process);
    let is_there = || getppid() == Pid::from_raw(process as i32);
    if !is_there() {
        return Ok(());
    }
    if let Ok(pidfd) = pidfd {
        loop {
            let mut fds = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
    while is_there() {
        std::thread::sleep(GLANCE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_will_is_found_and_a_void_or_dismissed_one_is_none() {
        let testament = Testament::create().expect("memory");
        let file = File::from(testament.share().expect("a descriptor"));
        let mut frame = [0; WILL_OCTETS_MAX];
        let mut left = || read_will(&file, &mut frame).map(|left| (left, frame));
        assert_eq!(left().expect("readable").0, Left::Nothing);
        testament.leave(&[7; 60]).expect("writable");
        let (length, octets) = left().expect("readable");
        assert_eq!((length, &octets[..60], octets[60]), (Left::Will(60), &[7; 60][..], 0));
        testament.leave(&[]).expect("writable");
        assert_eq!(left().expect("readable").0, Left::Nothing);
        testament.leave(&[9; WILL_OCTETS_MAX]).expect("writable");
        assert_eq!(left().expect("readable").0, Left::Will(WILL_OCTETS_MAX));
        assert!(testament.leave(&[9; WILL_OCTETS_MAX + 1]).is_err());
        testament.dismiss().expect("writable");
        assert_eq!(left().expect("readable").0, Left::Nothing);
    }

    /// It said that the node had died.
    #[test]
    fn one_that_cannot_watch_says_nothing_of_the_node() {
        let testament = Testament::create().expect("memory");
        let will = testament.share().expect("a descriptor");
        let iface = "no-such-iface".to_owned();
        let ward = Ward { process: std::process::id(), iface, rate: None, realtime: false };
        assert!(watch(&ward, will.as_fd(), will.as_fd()).is_err());
        // One that knows of the end and cannot speak says so.
        let socket = std::os::unix::net::UnixDatagram::unbound().expect("a socket");
        testament.leave(&[7; 60]).expect("writable");
        let index = if_nametoindex("lo").expect("a loopback");
        let name = Name::new("lo").expect("a name");
        let mut egress = Egress::new(socket.as_fd(), &name, "lo", index, [0; 6], 1_500, None);
        let file = File::from(testament.share().expect("a descriptor"));
        let spoken = speak(&file, socket.as_fd(), &mut egress);
        assert!(matches!(spoken, Spoken::Failed(_) | Spoken::Busy), "{spoken:?}");
    }

    /// A copy that is lost must cost nothing.
    #[test]
    fn a_will_is_sent_three_times() {
        let testament = Testament::create().expect("memory");
        testament.leave(&[7; 60]).expect("writable");
        let (socket, wire) = std::os::unix::net::UnixDatagram::pair().expect("sockets");
        let index = if_nametoindex("lo").expect("a loopback");
        let name = Name::new("lo").expect("a name");
        let mut egress = Egress::new(socket.as_fd(), &name, "lo", index, [0; 6], 1_500, None);
        let file = File::from(testament.share().expect("a descriptor"));
        let spoken = speak(&file, socket.as_fd(), &mut egress);
        assert!(matches!(spoken, Spoken::Will(_)), "{spoken:?}");
        wire.set_nonblocking(true).expect("a socket");
        let mut frame = [0; WILL_OCTETS_MAX];
        let copies = std::iter::from_fn(|| wire.recv(&mut frame).ok());
        assert_eq!(copies.collect::<Vec<_>>(), [60, 60, 60]);
    }

    #[test]
    fn the_end_of_another_than_the_parent_is_no_reason_to_wait() {
        assert!(has_pidfd(), "a kernel of 5.3 or later");
        wait_for_end(u32::MAX >> 1).expect("it is not our parent");
    }
}
