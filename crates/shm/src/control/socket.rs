//! The local control socket: sequenced packets under an abstract name, which the kernel scopes to the
//! network namespace. So inside a lab station every command finds its own station's node, and nothing is
//! left behind when the node dies.

use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, UnixCredentials, bind,
    connect, getsockopt, listen, sendmsg, socket,
};
use rota_units::Span;
use serde::Serialize;

use super::message::{MESSAGE_OCTETS_MAX, MessageError, Reply, Request, emit};
use crate::raw;

/// Environment variable that names another control socket than the default.
const CONTROL_VARIABLE: &str = "ROTA_CONTROL";
const DEFAULT_NAME: &str = "rota/node";
const NAME_OCTETS_MAX: usize = 100;

/// Name of a node's control socket in the abstract namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlName(String);

/// A name that no control socket can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the control name `{0}` (ROTA_CONTROL) is not usable: it must have 1 to 100 octets and no NUL")]
pub struct ControlNameError(String);

impl ControlName {
    /// The name of one's choice.
    ///
    /// # Errors
    /// [`ControlNameError`] when it is empty, longer than 100 octets, or contains a NUL.
    pub fn named(name: &str) -> Result<Self, ControlNameError> {
        if name.is_empty() || name.len() > NAME_OCTETS_MAX || name.contains('\0') {
            return Err(ControlNameError(name.to_owned()));
        }
        Ok(Self(name.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ControlName {
    /// The name in `ROTA_CONTROL`, or `rota/node` where that is unset or empty. A name there that no socket
    /// can have is kept, so that connecting says what is wrong with it.
    fn default() -> Self {
        let named = std::env::var(CONTROL_VARIABLE).ok().filter(|name| !name.is_empty());
        Self(named.unwrap_or_else(|| DEFAULT_NAME.to_owned()))
    }
}

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
    /// The descriptors, close-on-exec.
    pub descriptors: Vec<OwnedFd>,
}

/// A node's end of the control socket before anybody has connected.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
}

impl Listener {
    /// Starts to listen.
    ///
    /// # Errors
    /// [`SocketError::InUse`] when another node does already.
    pub fn bind(name: &ControlName) -> Result<Self, SocketError> {
        ControlName::named(&name.0)?;
        let socket = new_socket(SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK)?;
        let address = UnixAddr::new_abstract(name.0.as_bytes())?;
        bind(socket.as_raw_fd(), &address).map_err(|errno| match errno {
            Errno::EADDRINUSE => SocketError::InUse(name.0.clone()),
            other => SocketError::Kernel(other),
        })?;
        listen(&socket, Backlog::MAXCONN)?;
        Ok(Self { socket })
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

impl Connection {
    /// Connects to a node.
    ///
    /// # Errors
    /// [`SocketError::NoNode`] when nobody listens.
    pub fn connect(name: &ControlName) -> Result<Self, SocketError> {
        ControlName::named(&name.0)?;
        let socket = new_socket(SockFlag::SOCK_CLOEXEC)?;
        let address = UnixAddr::new_abstract(name.0.as_bytes())?;
        connect(socket.as_raw_fd(), &address).map_err(|errno| match errno {
            Errno::ECONNREFUSED | Errno::ENOENT => SocketError::NoNode(name.0.clone()),
            other => SocketError::Kernel(other),
        })?;
        Ok(Self { socket })
    }

    /// Sends a request, as a client. Never blocks.
    ///
    /// # Errors
    /// [`SocketError::Gone`] or [`SocketError::Stuck`].
    pub fn send_request(&self, request: &Request) -> Result<(), SocketError> {
        self.send(request, &[])
    }

    /// Sends a reply, as a node. Never blocks: a client that does not read is [`SocketError::Stuck`].
    ///
    /// # Errors
    /// [`SocketError::Gone`] or [`SocketError::Stuck`]; either way the connection is to be dropped.
    pub fn send_reply(&self, reply: &Reply, descriptors: &[BorrowedFd<'_>]) -> Result<(), SocketError> {
        self.send(reply, descriptors)
    }

    /// Takes a waiting request, as a node; `None` when none waits. There is no room for descriptors: the
    /// kernel drops whatever a client attaches, and that is an error.
    ///
    /// # Errors
    /// [`SocketError::Gone`] at the end of the connection; any error means that it is to be dropped.
    pub fn try_request(&self) -> Result<Option<Request>, SocketError> {
        let mut buffer = vec![0; MESSAGE_OCTETS_MAX];
        let Some((octets, _)) = self.receive(&mut buffer, false)? else { return Ok(None) };
        Ok(Some(Request::parse(&buffer[..octets])?))
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
        Ok(Some(Message { body: Reply::parse(&buffer[..octets])?, descriptors }))
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

    fn send(&self, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> Result<(), SocketError> {
        let octets = emit(message)?;
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

impl AsFd for Listener {
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
        ControlName::named(&format!("rota/test/{}/shm{count}", std::process::id())).unwrap()
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
        let listener = Listener::bind(&name).unwrap();
        assert!(listener.accept().unwrap().is_none());
        let client = Connection::connect(&name).unwrap();
        let node = listener.accept().unwrap().unwrap();
        assert_eq!(node.peer().unwrap().uid(), nix::unistd::getuid().as_raw());
        assert!(node.try_request().unwrap().is_none());
        client.send_request(&Request::Counters).unwrap();
        assert_eq!(node.try_request().unwrap(), Some(Request::Counters));
        let table = crate::CounterTable::create(&["hops"]).unwrap();
        node.send_reply(&Reply::Counters, &[table.descriptor()]).unwrap();
        let mut answer = client.reply(WAIT).unwrap();
        assert_eq!(answer.body, Reply::Counters);
        let reader = crate::CounterReader::open(answer.descriptors.pop().unwrap()).unwrap();
        table.add(0, 1);
        assert_eq!(reader.get("hops"), Some(1));
        assert!(matches!(client.reply(Span::from_millis(1)), Err(SocketError::TimedOut(_))));
    }

    #[test]
    fn a_name_is_taken_once_and_free_again_afterwards() {
        let name = name();
        let first = Listener::bind(&name).unwrap();
        assert!(matches!(Listener::bind(&name), Err(SocketError::InUse(_))));
        drop(first);
        Listener::bind(&name).unwrap();
        assert!(ControlName::named("").is_err() && ControlName::named("a\0b").is_err());
        assert!(ControlName::named(&"x".repeat(101)).is_err());
    }

    #[test]
    fn a_client_cannot_hand_descriptors_to_the_node() {
        let (client, node) = pair();
        let gift = node.as_fd();
        client.send(&Request::Status, &[gift, gift, gift]).unwrap();
        assert!(matches!(node.try_request(), Err(SocketError::Descriptors)));
        assert_eq!(descriptors_of(&node), 1, "the kernel dropped them");
    }

    #[test]
    fn more_descriptors_than_there_is_room_for_are_an_error_and_none_leaks() {
        let (client, node) = pair();
        node.send(&Reply::Done, &[node.as_fd(); 200]).unwrap();
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
        for junk in [&b"{"[..], b"\xff\xff", b"{\"open\":{}}", &long] {
            send(client.socket.as_raw_fd(), junk, MsgFlags::empty()).unwrap();
            assert!(matches!(node.try_request(), Err(SocketError::Message(_))));
        }
        let sentence = "x".repeat(MESSAGE_OCTETS_MAX);
        let too_long = node.send_reply(&Reply::NoListener { sentence }, &[]);
        assert!(matches!(too_long, Err(SocketError::Message(MessageError::TooLong(_)))));
    }

    #[test]
    fn a_client_that_does_not_read_never_blocks_the_node() {
        let (client, node) = pair();
        let stuck = (0..100_000).find_map(|_| node.send_reply(&Reply::Done, &[]).err());
        assert!(matches!(stuck, Some(SocketError::Stuck)), "{stuck:?}");
        drop(client);
        assert!(node.is_gone());
        assert!(matches!(node.send_reply(&Reply::Done, &[]), Err(SocketError::Gone)));
        assert!(matches!(node.try_request(), Err(SocketError::Gone)));
    }

    #[test]
    fn the_last_words_of_a_node_that_did_not_listen_are_read_too() {
        let (client, node) = pair();
        client.send_request(&Request::Status).unwrap();
        node.send_reply(&Reply::Done, &[]).unwrap();
        drop(node);
        assert!(matches!(client.send_request(&Request::Status), Err(SocketError::Gone)));
        assert_eq!(client.reply(WAIT).unwrap().body, Reply::Done);
        assert!(matches!(client.reply(WAIT), Err(SocketError::Gone)));
    }

    #[test]
    fn the_last_words_of_a_dead_node_are_still_read() {
        let (client, node) = pair();
        node.send_reply(&Reply::Done, &[]).unwrap();
        assert!(!client.is_gone());
        drop(node);
        assert!(client.is_gone());
        assert_eq!(client.reply(WAIT).unwrap().body, Reply::Done);
        assert!(matches!(client.reply(WAIT), Err(SocketError::Gone)));
    }
}
