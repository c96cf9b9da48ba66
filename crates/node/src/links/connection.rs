//! One TCP connection under TLS that carries frames. Nothing here blocks.

use super::frame::{Decoder, Frame, FrameError};
use super::why::{DownCause, Refusal};
use nix::errno::Errno;
use nix::sys::socket::sockopt::{Ipv4Tos, Ipv6TClass, RcvBuf, SndBuf};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage, connect, setsockopt, socket,
};
use rustls::Connection as Tls;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

/// Octets that are read in one turn: others have a turn, too.
const READ_A_TURN: usize = 64 * 1024;
/// The octets that the kernel holds of a connection in each direction (it doubles the figure). With more a
/// node on a slow line would learn too late that the other one lives and reads.
const KERNEL_OCTETS: usize = 32 * 1024;
/// Network control (CS6): nodes agree on channels also where ordinary traffic fills the line between them.
const TRAFFIC_CLASS: i32 = 48 << 2;
/// Frames on their way that the far end has not said to have taken, for the same reason.
const FRAMES_MAX: u64 = 256;

/// Why a connection cannot go on.
#[derive(Debug)]
pub(super) enum Broken {
    /// The far end closed it.
    Closed,
    /// The kernel says so.
    Io(io::Error),
    /// It is not the TLS that is wanted.
    Tls(rustls::Error),
    /// It is no frame inside of TLS.
    Frame(FrameError),
}

impl Broken {
    /// Of a connection that was no link yet.
    pub(super) fn refusal(&self) -> (Refusal, String) {
        match self {
            Self::Closed => (Refusal::Unreachable, "the connection was closed".into()),
            Self::Io(error) => (Refusal::Unreachable, error.to_string()),
            Self::Tls(error) => (Refusal::of(error), error.to_string()),
            Self::Frame(error) => (Refusal::Garbage, error.to_string()),
        }
    }

    /// Of a link that was up.
    pub(super) fn cause(self) -> DownCause {
        match self {
            Self::Closed => DownCause::Closed,
            Self::Io(error) => DownCause::Broken(error.to_string()),
            Self::Tls(error) => DownCause::Broken(error.to_string()),
            Self::Frame(error) => DownCause::Frame(error),
        }
    }
}

/// A connection.
pub(super) struct Connection {
    stream: TcpStream,
    tls: Tls,
    decoder: Decoder,
    /// Messages that TLS has no room for yet, and frames that go before them.
    messages: VecDeque<Vec<u8>>,
    first: VecDeque<Vec<u8>>,
    /// The frame of which TLS has a part, how much of it, and whether it is a message.
    under_way: Option<(Vec<u8>, usize, bool)>,
    /// Frames handed to TLS whole, and how many of them the far end says that it has taken.
    sent: u64,
    taken: u64,
    /// Frames taken from the far end.
    heard: u64,
}

impl Connection {
    /// A connection that was accepted.
    pub(super) fn accepted(stream: TcpStream, tls: Tls) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Self::new(stream, tls)
    }

    /// One that is on its way to `to`: it is there once it can be written.
    pub(super) fn dialled(to: SocketAddr, tls: Tls) -> io::Result<Self> {
        let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let stream = socket(family, SockType::Stream, flags, SockProtocol::Tcp)?;
        let stream = TcpStream::from(stream);
        let this = Self::new(stream, tls)?;
        let fd = std::os::fd::AsRawFd::as_raw_fd(&this.stream);
        match connect(fd, &SockaddrStorage::from(to)) {
            Ok(()) | Err(Errno::EINPROGRESS) => Ok(this),
            Err(errno) => Err(errno.into()),
        }
    }

    fn new(stream: TcpStream, tls: Tls) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        setsockopt(&stream, SndBuf, &KERNEL_OCTETS)?;
        setsockopt(&stream, RcvBuf, &KERNEL_OCTETS)?;
        // One of them is of another family; without a mark the packets only wait among all others.
        let _ = setsockopt(&stream, Ipv4Tos, &TRAFFIC_CLASS);
        let _ = setsockopt(&stream, Ipv6TClass, &TRAFFIC_CLASS);
        let (messages, first) = (VecDeque::new(), VecDeque::new());
        Ok(Self {
            stream,
            tls,
            decoder: Decoder::default(),
            messages,
            first,
            under_way: None,
            sent: 0,
            taken: 0,
            heard: 0,
        })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    pub(super) fn tls(&self) -> &Tls {
        &self.tls
    }

    /// The outcome of the way to the far end, once the connection can be written.
    pub(super) fn reached(&self) -> io::Result<()> {
        self.stream.take_error()?.map_or(Ok(()), Err)
    }

    /// True if octets wait for the socket.
    pub(super) fn wants_write(&self) -> bool {
        let waits = !self.first.is_empty() || self.under_way.is_some();
        waits || self.tls.wants_write() || !self.messages.is_empty() && self.may_send()
    }

    fn may_send(&self) -> bool {
        self.sent < self.taken + FRAMES_MAX
    }

    /// The far end says that it has taken so many frames; true if these are more than before.
    pub(super) fn taken(&mut self, frames: u64) -> bool {
        let more = frames > self.taken;
        // One that says more than there were opens no larger window by that.
        self.taken = self.taken.max(frames.min(self.sent));
        more
    }

    /// True if frames are on their way that the far end has not said to have taken.
    pub(super) fn awaits(&self) -> bool {
        self.taken < self.sent || self.wants_write()
    }

    /// Frames taken so far.
    pub(super) fn heard(&self) -> u64 {
        self.heard
    }

    /// Reads what has come, and decrypts it. True if anything came, and true if there may be more.
    pub(super) fn read(&mut self) -> Result<(bool, bool), Broken> {
        let mut read = 0;
        while read < READ_A_TURN {
            match self.tls.read_tls(&mut self.stream) {
                Ok(0) => return if read > 0 { Ok((true, true)) } else { Err(Broken::Closed) },
                Ok(octets) => read += octets,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok((read > 0, false)),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(Broken::Io(error)),
            }
            let state = self.tls.process_new_packets().map_err(Broken::Tls)?;
            self.decrypted(state.plaintext_bytes_to_read())?;
            if state.peer_has_closed() {
                return Err(Broken::Closed);
            }
        }
        Ok((true, true))
    }

    fn decrypted(&mut self, octets: usize) -> Result<(), Broken> {
        if octets == 0 {
            return Ok(());
        }
        let mut plain = vec![0; octets];
        self.tls.reader().read_exact(&mut plain).map_err(Broken::Io)?;
        self.decoder.take(&plain);
        Ok(())
    }

    /// The next frame of what was read.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame>, Broken> {
        let frame = self.decoder.next_frame().map_err(Broken::Frame)?;
        self.heard += u64::from(frame.is_some());
        Ok(frame)
    }

    /// A frame for the far end. Others than messages go before all messages that wait: behind them the far
    /// end would learn too late that this one lives.
    pub(super) fn queue(&mut self, frame: &Frame) {
        let queue = if matches!(frame, Frame::Message(_)) { &mut self.messages } else { &mut self.first };
        queue.push_back(frame.octets());
    }

    /// Encrypts and writes as much as the socket takes. Returns how many messages TLS has taken whole.
    pub(super) fn write(&mut self) -> Result<usize, Broken> {
        let mut messages = 0;
        loop {
            messages += self.encrypt()?;
            if !self.tls.wants_write() {
                return Ok(messages);
            }
            match self.tls.write_tls(&mut self.stream) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(messages),
                Err(error) => return Err(Broken::Io(error)),
            }
        }
    }

    /// Gives TLS what it has room for; returns how many messages it has taken whole.
    fn encrypt(&mut self) -> Result<usize, Broken> {
        let mut messages = 0;
        loop {
            let next = self.under_way.take();
            let next = next.or_else(|| self.first.pop_front().map(|frame| (frame, 0, false)));
            let next = match next {
                None if self.may_send() => self.messages.pop_front().map(|frame| (frame, 0, true)),
                next => next,
            };
            let Some((frame, mut done, is_message)) = next else { return Ok(messages) };
            done += self.tls.writer().write(&frame[done..]).map_err(Broken::Io)?;
            if done < frame.len() {
                self.under_way = Some((frame, done, is_message));
                return Ok(messages);
            }
            self.sent += 1;
            messages += usize::from(is_message);
        }
    }

    /// Ends it: frames that wait, and what TLS still has to say (an alert, a farewell), go as far as the
    /// socket takes them at once.
    pub(super) fn end(mut self) {
        let _ = self.write();
        self.tls.send_close_notify();
        while self.tls.wants_write() && self.tls.write_tls(&mut self.stream).is_ok_and(|octets| octets > 0) {}
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}
