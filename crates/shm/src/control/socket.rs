//! The local control socket: sequenced packets under a path that only the node's user can make. It holds the
//! number of the network namespace, so that inside a lab station every command finds its own station's node.
//!
//! A node holds a lock beside the socket for as long as it lives. So two nodes never serve one path, and what
//! a killed node has left behind is replaced.

use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, UnixCredentials, bind,
    connect, getsockopt, listen, sendmsg, socket,
};
use rota_rundir::{Lock, RunDirError, Stranger};
use rota_units::Span;
use serde::Serialize;

use super::message::{MESSAGE_OCTETS_MAX, MessageError, Reply, Request, emit};
use super::name::{ControlName, ControlNameError};
use crate::raw;

/// What can go wrong on a control socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// No socket can have that name.
    #[error(transparent)]
    Name(#[from] ControlNameError),
    /// Nobody listens under that name.
    #[error("no node listens on control socket `{0}` in this network namespace: start one with `rota node`")]
    NoNode(String),
    /// Somebody listens there already.
    #[error("another node already listens on control socket `{0}` in this network namespace")]
    InUse(String),
    /// Its directory or file belongs to another user, or cannot be made.
    #[error(transparent)]
    Place(#[from] RunDirError),
    /// The process that serves it belongs to a user who may not serve it.
    #[error(transparent)]
    Stranger(#[from] Stranger),
    /// This user may not connect.
    #[error("{0}")]
    NotAllowed(String),
    /// The file at the path is no socket.
    #[error("{0} is there and is no socket; remove it, or name another path with ROTA_CONTROL")]
    NotSocket(PathBuf),
    /// The socket cannot be given to the group.
    #[error(
        "the control socket cannot be given to group {group}: {}; the node's user must be root or in it",
        .errno.desc()
    )]
    Group {
        /// The group's number.
        group: u32,
        /// The kernel's answer.
        errno: Errno,
    },
    /// The other side is gone.
    #[error("the other end of the control socket is gone")]
    Gone,
    /// The other side does not take its messages.
    #[error("the other end of the control socket does not read its messages")]
    Stuck,
    /// Nothing came in time.
    #[error("no answer on the control socket within {0}")]
    TimedOut(Span),
    /// The message is none of ours.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// Descriptors came where none are allowed.
    #[error("the client attached file descriptors to a request")]
    Descriptors,
    /// The kernel refused.
    #[error("the control socket failed: {0}")]
    Kernel(#[from] Errno),
}

/// A message and the descriptors that came with it.
#[derive(Debug)]
pub struct Message<T> {
    /// The message.
    pub body: T,
    /// The number of the request, or of the one that this answers.
    pub number: u64,
    /// The descriptors, close-on-exec.
    pub descriptors: Vec<OwnedFd>,
}

/// A node's end of the control socket before anybody has connected.
#[derive(Debug)]
pub struct ControlListener {
    socket: OwnedFd,
    path: PathBuf,
    _lock: Lock,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
}

impl ControlListener {
    /// Starts to listen, for root and this user.
    ///
    /// # Errors
    /// [`SocketError::InUse`] when another node does already.
    pub fn bind(name: &ControlName) -> Result<Self, SocketError> {
        Self::bind_for(name, None)
    }

    /// Starts to listen, for root, this user, and the members of a group.
    ///
    /// # Errors
    /// [`SocketError::InUse`] when another node does already; [`SocketError::Group`].
    pub fn bind_for(name: &ControlName, group: Option<u32>) -> Result<Self, SocketError> {
        let (lock, path) = name.claim()?;
        remove_remains(&path)?;
        let socket = new_socket(SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK)?;
        bind(socket.as_raw_fd(), &UnixAddr::new(&path)?)?;
        let listener = Self { socket, path, _lock: lock };
        listener.open_to(group)?;
        Ok(listener)
    }

    /// Sets owner and mode, then listens: no program can connect before both are final.
    fn open_to(&self, group: Option<u32>) -> Result<(), SocketError> {
        if let Some(group) = group {
            nix::unistd::chown(&self.path, None, Some(group.into()))
                .map_err(|errno| SocketError::Group { group, errno })?;
        }
        let mode = if group.is_some() { 0o660 } else { 0o600 };
        let kernel = |error: std::io::Error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO));
        std::fs::set_permissions(&self.path, PermissionsExt::from_mode(mode)).map_err(kernel)?;
        listen(&self.socket, Backlog::MAXCONN)?;
        Ok(())
    }

    /// The path of its socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection, or `None` when nobody waits.
    ///
    /// # Errors
    /// [`SocketError::Kernel`], out of descriptors for one; the listener stays usable.
    pub fn accept(&self) -> Result<Option<Connection>, SocketError> {
        match raw::accept(&self.socket) {
            Ok(socket) => Ok(Some(Connection { socket })),
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNABORTED) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// A waiting request and its number, if one waits.
pub type RequestResult = Result<Option<(u64, Request)>, SocketError>;

impl Connection {
    /// Connects to a node, provided that it is served by root, by this user, or by the user to whom root has
    /// given the directory.
    ///
    /// # Errors
    /// [`SocketError::NoNode`] if no process listens; [`SocketError::Stranger`].
    pub fn connect(name: &ControlName) -> Result<Self, SocketError> {
        let places = name.places()?;
        let mut obstacle = None;
        for path in &places {
            match Self::connect_to(path) {
                Ok(connection) => return Ok(connection),
                Err(SocketError::NoNode(_)) => {}
                Err(error) => obstacle = obstacle.or(Some(error)),
            }
        }
        let shown = places.first().map_or_else(|| name.as_str().into(), |path| path.display().to_string());
        Err(obstacle.unwrap_or(SocketError::NoNode(shown)))
    }

    fn connect_to(path: &Path) -> Result<Self, SocketError> {
        let socket = new_socket(SockFlag::SOCK_CLOEXEC)?;
        connect(socket.as_raw_fd(), &UnixAddr::new(path)?).map_err(|errno| match errno {
            Errno::ECONNREFUSED | Errno::ENOENT | Errno::ENOTDIR => {
                SocketError::NoNode(path.display().to_string())
            }
            Errno::EACCES => closed_to_us(path),
            other => SocketError::Kernel(other),
        })?;
        let connection = Self { socket };
        rota_rundir::check_server(path, connection.peer()?.uid())?;
        Ok(connection)
    }

    /// Sends a request under a number that its answer repeats, as a client. Never blocks.
    ///
    /// # Errors
    /// [`SocketError::Gone`] or [`SocketError::Stuck`].
    pub fn send_request(&self, number: u64, request: &Request) -> Result<(), SocketError> {
        self.send(number, request, &[])
    }

    /// The same, with a descriptor for the node.
    ///
    /// # Errors
    /// [`SocketError::Gone`] or [`SocketError::Stuck`].
    pub fn send_request_with(
        &self,
        number: u64,
        request: &Request,
        descriptor: BorrowedFd<'_>,
    ) -> Result<(), SocketError> {
        self.send(number, request, &[descriptor])
    }

    /// Sends the reply to the request `number`, as a node. Never blocks: a client that does not
    /// read is [`SocketError::Stuck`].
    ///
    /// # Errors
    /// [`SocketError::Gone`] or [`SocketError::Stuck`]; either way the connection is to be dropped.
    pub fn send_reply(
        &self,
        number: u64,
        reply: &Reply,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), SocketError> {
        self.send(number, reply, descriptors)
    }

    /// Takes a waiting request and its number, as a node; `None` when none waits. There is no
    /// room for descriptors: the kernel drops whatever a client attaches, and that is an error.
    ///
    /// # Errors
    /// [`SocketError::Gone`] at the end of the connection; any error means that it is to be dropped.
    pub fn try_request(&self) -> RequestResult {
        let mut buffer = vec![0; MESSAGE_OCTETS_MAX];
        let Some((octets, _)) = self.receive(&mut buffer, false)? else { return Ok(None) };
        Ok(Some(Request::parse(&buffer[..octets])?))
    }

    /// The same for a node that takes descriptors; those that came along, whatever else came. Closing a
    /// descriptor of a program may take as long as the program wants: that is no work for the caller.
    pub fn try_request_with(&self) -> (RequestResult, Vec<OwnedFd>) {
        let mut buffer = vec![0; MESSAGE_OCTETS_MAX];
        match self.receive(&mut buffer, true) {
            Err(error) => (Err(error), Vec::new()),
            Ok(None) => (Ok(None), Vec::new()),
            Ok(Some((octets, descriptors))) => {
                (Request::parse(&buffer[..octets]).map(Some).map_err(SocketError::from), descriptors)
            }
        }
    }

    /// Waits for a reply, as a client.
    ///
    /// # Errors
    /// [`SocketError::TimedOut`], or [`SocketError::Gone`] at the end of the connection.
    pub fn reply(&self, timeout: Span) -> Result<Message<Reply>, SocketError> {
        // The wait is in whole milliseconds: round up, so that a short timeout is not a busy loop.
        let millis = i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX);
        let ready = self.poll(PollFlags::POLLIN, millis)?;
        if ready.is_empty() {
            return Err(SocketError::TimedOut(timeout));
        }
        match self.try_reply()? {
            Some(message) => Ok(message),
            None => Err(SocketError::TimedOut(timeout)),
        }
    }

    /// Takes a waiting reply, as a client; `None` when none waits.
    ///
    /// # Errors
    /// [`SocketError::Gone`] at the end of the connection.
    pub fn try_reply(&self) -> Result<Option<Message<Reply>>, SocketError> {
        let mut buffer = vec![0; MESSAGE_OCTETS_MAX];
        let Some((octets, descriptors)) = self.receive(&mut buffer, true)? else { return Ok(None) };
        let (number, body) = Reply::parse(&buffer[..octets])?;
        Ok(Some(Message { body, number, descriptors }))
    }

    /// Whether the other end is gone. Does not wait and takes no message.
    pub fn is_gone(&self) -> bool {
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR;
        self.poll(PollFlags::empty(), 0).is_ok_and(|ready| ready.intersects(gone))
    }

    /// Who connected, as the kernel knows it.
    ///
    /// # Errors
    /// [`SocketError::Kernel`].
    pub fn peer(&self) -> Result<UnixCredentials, SocketError> {
        Ok(getsockopt(&self.socket, PeerCredentials)?)
    }

    /// The supplementary groups of the connected program, as the kernel knows them.
    ///
    /// # Errors
    /// [`SocketError::Kernel`].
    pub fn peer_groups(&self) -> Result<Vec<u32>, SocketError> {
        Ok(raw::peer_groups(&self.socket)?)
    }

    fn send(
        &self,
        number: u64,
        message: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), SocketError> {
        let octets = emit(number, message)?;
        let numbers: Vec<_> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = [ControlMessage::ScmRights(&numbers)];
        let control = if numbers.is_empty() { &rights[..0] } else { &rights[..] };
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let parts = [IoSlice::new(&octets)];
        match sendmsg::<()>(self.socket.as_raw_fd(), &parts, control, flags, None) {
            Ok(_) => Ok(()),
            Err(Errno::EPIPE | Errno::ECONNRESET | Errno::ENOTCONN) => Err(SocketError::Gone),
            Err(Errno::EAGAIN) => Err(SocketError::Stuck),
            Err(errno) => Err(errno.into()),
        }
    }

    fn receive(
        &self,
        buffer: &mut [u8],
        descriptors: bool,
    ) -> Result<Option<(usize, Vec<OwnedFd>)>, SocketError> {
        let received = match raw::receive(&self.socket, buffer, descriptors) {
            // Said once when the other end closed without reading us; its last words wait behind it.
            Err(Errno::ECONNRESET) => raw::receive(&self.socket, buffer, descriptors),
            first => first,
        };
        let received = match received {
            Ok(received) => received,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(Errno::ECONNRESET) => return Err(SocketError::Gone),
            Err(errno) => return Err(errno.into()),
        };
        if received.descriptors_cut {
            return Err(SocketError::Descriptors);
        }
        if received.cut {
            return Err(MessageError::TooLong(received.octets + 1).into());
        }
        // An empty datagram cannot be told from the end, and nobody sends one.
        if received.octets == 0 {
            return Err(SocketError::Gone);
        }
        Ok(Some((received.octets, received.descriptors)))
    }

    fn poll(&self, what: PollFlags, millis: i32) -> Result<PollFlags, SocketError> {
        let mut wanted = [PollFd::new(self.socket.as_fd(), what)];
        let timeout = PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX);
        match poll(&mut wanted, timeout) {
            Ok(_) => Ok(wanted[0].revents().unwrap_or(PollFlags::empty())),
            Err(Errno::EINTR) => Ok(PollFlags::empty()),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Drop for ControlListener {
    fn drop(&mut self) {
        // The lock is still ours, and so is what bears the name.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes the socket that a dead node of this user left; any other file there is an error.
fn remove_remains(path: &Path) -> Result<(), SocketError> {
    let Ok(there) = std::fs::symlink_metadata(path) else { return Ok(()) };
    let wanted = nix::unistd::geteuid().as_raw();
    if there.uid() != wanted {
        return Err(RunDirError::Owner { path: path.to_owned(), owner: there.uid(), wanted }.into());
    }
    if !there.file_type().is_socket() {
        return Err(SocketError::NotSocket(path.to_owned()));
    }
    let removed = std::fs::remove_file(path);
    removed.map_err(|error| SocketError::Kernel(Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))))
}

/// The error for a socket to which this user may not connect; it names the users who may.
fn closed_to_us(path: &Path) -> SocketError {
    let Ok(there) = std::fs::metadata(path) else {
        let sentence = format!("control socket {} lies in a directory that is closed to you", path.display());
        return SocketError::NotAllowed(sentence);
    };
    let (user, group, path) = (there.uid(), there.gid(), path.display());
    SocketError::NotAllowed(if there.mode() & 0o020 == 0 {
        format!(
            "the node of control socket {path} serves only root and the user it runs as (user {user}); use \
             sudo, or start it with 'rota node --group NAME' for a group of yours"
        )
    } else {
        format!(
            "the node of control socket {path} serves only root, the user it runs as (user {user}), and the \
             members of group {group}; use sudo, or be made a member"
        )
    })
}

impl AsFd for ControlListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn new_socket(flags: SockFlag) -> nix::Result<OwnedFd> {
    socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use nix::sys::socket::{send, socketpair};

    use super::*;

    fn name() -> ControlName {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        ControlName::named(&format!("test-{}-shm{count}", std::process::id())).unwrap()
    }

    fn pair() -> (Connection, Connection) {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (one, other) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).unwrap();
        (Connection { socket: one }, Connection { socket: other })
    }

    const WAIT: Span = Span::from_millis(5_000);

    #[test]
    fn requests_replies_and_descriptors_pass() {
        let name = name();
        let listener = ControlListener::bind(&name).unwrap();
        assert!(listener.accept().unwrap().is_none());
        let client = Connection::connect(&name).unwrap();
        let node = listener.accept().unwrap().unwrap();
        assert_eq!(node.peer().unwrap().uid(), nix::unistd::getuid().as_raw());
        let groups: Vec<u32> =
            nix::unistd::getgroups().unwrap().into_iter().map(|gid| gid.as_raw()).collect();
        assert_eq!(node.peer_groups().unwrap(), groups);
        assert!(node.try_request().unwrap().is_none());
        client.send_request(7, &Request::Counters).unwrap();
        assert_eq!(node.try_request().unwrap(), Some((7, Request::Counters)));
        let table = crate::CounterTable::create(&["hops"]).unwrap();
        node.send_reply(7, &Reply::Counters, &[table.descriptor()]).unwrap();
        let mut answer = client.reply(WAIT).unwrap();
        assert_eq!((answer.number, &answer.body), (7, &Reply::Counters));
        let reader = crate::CounterReader::open(answer.descriptors.pop().unwrap()).unwrap();
        table.add(0, 1);
        assert_eq!(reader.get("hops"), Some(1));
        assert!(matches!(client.reply(Span::from_millis(1)), Err(SocketError::TimedOut(_))));
    }

    #[test]
    fn a_name_is_taken_once_and_free_again_afterwards() {
        let name = name();
        let first = ControlListener::bind(&name).unwrap();
        assert!(matches!(ControlListener::bind(&name), Err(SocketError::InUse(_))));
        drop(first);
        ControlListener::bind(&name).unwrap();
        assert!(name.places().unwrap().iter().all(|place| !place.exists()), "nothing is left behind");
    }

    /// A directory of one test's own, and a name in it; both go with it.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(test: &str) -> (Self, ControlName) {
            let path = std::env::temp_dir().join(format!("rota-socket-{}-{test}", std::process::id()));
            std::fs::create_dir(&path).unwrap();
            let name = ControlName::named(path.join("control").to_str().unwrap()).unwrap();
            (Self(path), name)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_a_killed_node_leaves_is_replaced_and_what_is_no_socket_is_not() {
        let (scratch, name) = Scratch::new("stale");
        let path = scratch.0.join("control");
        // Bound, and closed without being removed: as after kill -9.
        let dead = new_socket(SockFlag::SOCK_CLOEXEC).unwrap();
        bind(dead.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
        drop(dead);
        assert!(matches!(Connection::connect(&name), Err(SocketError::NoNode(_))));
        let listener = ControlListener::bind(&name).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        Connection::connect(&name).unwrap();
        drop(listener);
        assert!(!path.exists());
        std::fs::write(&path, "precious").unwrap();
        let error = ControlListener::bind(&name).unwrap_err().to_string();
        assert!(error.contains("is no socket"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn of_many_nodes_that_race_for_a_name_one_has_it_and_is_reached() {
        let name = name();
        let bound: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| ControlListener::bind(&name))).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let good: Vec<_> = bound.into_iter().filter_map(Result::ok).collect();
        assert_eq!(good.len(), 1);
        Connection::connect(&name).unwrap();
        assert!(good[0].accept().unwrap().is_some());
    }

    #[test]
    fn a_group_of_ours_may_be_let_in_and_a_foreign_one_only_by_root() {
        let (scratch, name) = Scratch::new("group");
        let own = nix::unistd::getegid().as_raw();
        let listener = ControlListener::bind_for(&name, Some(own)).unwrap();
        let there = std::fs::metadata(scratch.0.join("control")).unwrap();
        assert_eq!((there.mode() & 0o777, there.gid()), (0o660, own));
        drop(listener);
        if !nix::unistd::geteuid().is_root() {
            let error = ControlListener::bind_for(&name, Some(0)).unwrap_err().to_string();
            assert!(error.contains("cannot be given to group 0"), "{error}");
            assert!(!scratch.0.join("control").exists());
        }
    }

    #[test]
    fn a_client_cannot_hand_descriptors_to_the_node() {
        let (client, node) = pair();
        let gift = node.as_fd();
        client.send(1, &Request::Status, &[gift, gift, gift]).unwrap();
        assert!(matches!(node.try_request(), Err(SocketError::Descriptors)));
        assert_eq!(descriptors_of(&node), 1, "the kernel dropped them");
    }

    #[test]
    fn a_node_that_takes_descriptors_has_them_whatever_else_came() {
        let (client, node) = pair();
        client.send_request_with(3, &Request::UdpClose, node.as_fd()).unwrap();
        let (request, descriptors) = node.try_request_with();
        assert_eq!((request.unwrap(), descriptors.len()), (Some((3, Request::UdpClose)), 1));
        client.send(4, &"no request", &[node.as_fd()]).unwrap();
        let (request, descriptors) = node.try_request_with();
        assert!(matches!(request, Err(SocketError::Message(_))) && descriptors.len() == 1);
        client.send_request(5, &Request::UdpClose).unwrap();
        assert!(node.try_request_with().1.is_empty());
    }

    #[test]
    fn more_descriptors_than_there_is_room_for_are_an_error_and_none_leaks() {
        let (client, node) = pair();
        node.send(1, &Reply::Done, &[node.as_fd(); 200]).unwrap();
        assert!(matches!(client.try_reply(), Err(SocketError::Descriptors)));
        assert_eq!(descriptors_of(&node), 1);
    }

    /// How many descriptors of this process refer to that socket; other tests cannot disturb the count.
    fn descriptors_of(socket: &Connection) -> usize {
        let link = |number: i32| std::fs::read_link(format!("/proc/self/fd/{number}")).ok();
        let target = link(socket.socket.as_raw_fd());
        let entries = std::fs::read_dir("/proc/self/fd").unwrap();
        let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        numbers.filter(|&number| link(number) == target).count()
    }

    #[test]
    fn junk_is_an_error_and_no_panic() {
        let (client, node) = pair();
        let long = vec![b'x'; MESSAGE_OCTETS_MAX + 1];
        for junk in [&b"{"[..], b"\xff\xff", b"{\"open\":{}}", b"{\"number\":1}", &long] {
            send(client.socket.as_raw_fd(), junk, MsgFlags::empty()).unwrap();
            assert!(matches!(node.try_request(), Err(SocketError::Message(_))));
        }
        let sentence = "x".repeat(MESSAGE_OCTETS_MAX);
        let too_long = node.send_reply(1, &Reply::NoListener { sentence }, &[]);
        assert!(matches!(too_long, Err(SocketError::Message(MessageError::TooLong(_)))));
    }

    #[test]
    fn a_client_that_does_not_read_never_blocks_the_node() {
        let (client, node) = pair();
        let stuck = (0..100_000).find_map(|_| node.send_reply(1, &Reply::Done, &[]).err());
        assert!(matches!(stuck, Some(SocketError::Stuck)), "{stuck:?}");
        drop(client);
        assert!(node.is_gone());
        assert!(matches!(node.send_reply(1, &Reply::Done, &[]), Err(SocketError::Gone)));
        assert!(matches!(node.try_request(), Err(SocketError::Gone)));
    }

    #[test]
    fn the_last_words_of_a_node_that_did_not_listen_are_read_too() {
        let (client, node) = pair();
        client.send_request(1, &Request::Status).unwrap();
        node.send_reply(1, &Reply::Done, &[]).unwrap();
        drop(node);
        assert!(matches!(client.send_request(1, &Request::Status), Err(SocketError::Gone)));
        assert_eq!(client.reply(WAIT).unwrap().body, Reply::Done);
        assert!(matches!(client.reply(WAIT), Err(SocketError::Gone)));
    }

    #[test]
    fn the_last_words_of_a_dead_node_are_still_read() {
        let (client, node) = pair();
        node.send_reply(1, &Reply::Done, &[]).unwrap();
        assert!(!client.is_gone());
        drop(node);
        assert!(client.is_gone());
        assert_eq!(client.reply(WAIT).unwrap().body, Reply::Done);
        assert!(matches!(client.reply(WAIT), Err(SocketError::Gone)));
    }
}
