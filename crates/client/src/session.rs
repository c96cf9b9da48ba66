//! One connection to the node: greeting, then request and reply.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rota_shm::control::{CONTROL_VERSION, Connection, ControlName, Message, Reply, Request, SocketError};
use rota_units::{Instant, Span};

use crate::node::NodeError;

/// How long the node may take for what needs no other station.
pub(crate) const LOCAL_TIMEOUT: Span = Span::from_millis(5_000);

/// When a row of steps must be over; each of them has its own time, and never more than is left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// Each step takes as long as it may.
    pub(crate) const NONE: Self = Self(Instant::FAR);

    pub(crate) fn after(time: Span) -> Self {
        Self(crate::now() + time)
    }

    /// The time for a step with a limit of its own: the shorter of `step` and the time left.
    pub(crate) fn allows(self, step: Span) -> Span {
        step.min(self.left())
    }

    pub(crate) fn left(self) -> Span {
        self.0.since(crate::now())
    }
}

/// Whom a session talks to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub pid: u32,
    pub station: Option<u16>,
    pub name: String,
}

pub(crate) struct Session {
    connection: Connection,
    /// A request that the segment decides was given up. Its answer may still come, and is no answer to the
    /// next request.
    owed: AtomicBool,
}

/// True for requests that the segment decides.
fn is_decided_later(request: &Request) -> bool {
    matches!(request, Request::Open { .. } | Request::Modify { .. })
}

/// True for what the segment decides of them.
fn is_decision(reply: &Reply) -> bool {
    matches!(
        reply,
        Reply::Opened { .. }
            | Reply::Probed { .. }
            | Reply::Refused(_)
            | Reply::NoSuchStation { .. }
            | Reply::NoListener { .. }
            | Reply::Modified { .. }
            | Reply::NotThere { .. }
    )
}

impl Session {
    pub(crate) fn begin(name: &ControlName) -> Result<(Self, Greeting), NodeError> {
        Self::begin_by(name, Deadline::NONE)
    }

    /// As [`Session::begin`], by `deadline`.
    pub(crate) fn begin_by(name: &ControlName, deadline: Deadline) -> Result<(Self, Greeting), NodeError> {
        let session = Self { connection: Connection::connect(name)?, owed: AtomicBool::new(false) };
        let hello = Request::Hello { version: CONTROL_VERSION };
        match session.request(&hello, deadline.allows(LOCAL_TIMEOUT))?.body {
            Reply::Welcome { version, pid, station, name } if version == CONTROL_VERSION => {
                Ok((session, Greeting { pid, station, name }))
            }
            Reply::Welcome { version, .. } => Err(NodeError::Version { ours: CONTROL_VERSION, version }),
            other => Err(unexpected(other)),
        }
    }

    /// Sends a request and waits for its reply; news about channels that come in between are dropped: of an
    /// end the board tells as well, and who changes a channel knows.
    pub(crate) fn request(&self, request: &Request, timeout: Span) -> Result<Message<Reply>, NodeError> {
        if let Err(error) = request.check() {
            return Err(NodeError::Denied { sentence: error.to_string(), wrong_use: true });
        }
        // The answers of these look like the one that is owed.
        if is_decided_later(request) || matches!(request, Request::Incident { .. }) {
            self.await_owed(timeout)?;
        }
        match self.connection.send_request(request) {
            // A node that turned us away has said why before it hung up.
            Ok(()) | Err(SocketError::Gone) => {}
            Err(other) => return Err(other.into()),
        }
        self.answer(request, timeout)
    }

    /// Waits for the reply to a request that was sent: see [`Session::request`].
    pub(crate) fn answer(&self, request: &Request, timeout: Span) -> Result<Message<Reply>, NodeError> {
        let closing = matches!(request, Request::Close { .. });
        let give_up = crate::now() + timeout;
        loop {
            let message = match self.next(give_up.since(crate::now())) {
                // A signal cut the wait short.
                Err(SocketError::TimedOut(_)) if crate::now() < give_up => continue,
                Err(SocketError::TimedOut(_)) => {
                    self.owed.fetch_or(is_decided_later(request), Ordering::Relaxed);
                    return Err(SocketError::TimedOut(timeout).into());
                }
                other => other?,
            };
            match message.body {
                Reply::Changed { .. } => {}
                Reply::Closed { .. } if !closing => {}
                _ => return Ok(message),
            }
        }
    }

    /// Waits until the answer to a request that was given up is there, and drops it.
    fn await_owed(&self, timeout: Span) -> Result<(), SocketError> {
        let give_up = crate::now() + timeout;
        while self.owed.load(Ordering::Relaxed) {
            match self.connection.reply(give_up.since(crate::now())) {
                Ok(message) => {
                    self.was_owed(&message);
                }
                Err(SocketError::TimedOut(_)) if crate::now() < give_up => {}
                Err(SocketError::TimedOut(_)) => return Err(SocketError::TimedOut(timeout)),
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    /// True for the answer that was owed: it is owed no more.
    fn was_owed(&self, message: &Message<Reply>) -> bool {
        is_decision(&message.body) && self.owed.swap(false, Ordering::Relaxed)
    }

    /// Sends a request and does not wait for its reply.
    pub(crate) fn tell(&self, request: &Request) {
        // Best effort: a node that is gone has nothing left to free.
        let _ = self.connection.send_request(request);
    }

    /// The next message, asked for or not.
    pub(crate) fn next(&self, timeout: Span) -> Result<Message<Reply>, SocketError> {
        loop {
            let message = self.connection.reply(timeout)?;
            if !self.was_owed(&message) {
                return Ok(message);
            }
        }
    }

    /// Throws away the news that wait, which in time would leave no room for an answer. False when there will
    /// be no more.
    pub(crate) fn discard(&self) -> bool {
        loop {
            match self.connection.reply(Span::ZERO) {
                Ok(message) => {
                    self.was_owed(&message);
                }
                Err(SocketError::TimedOut(_)) => return true,
                Err(_) => return false,
            }
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.connection.is_gone()
    }
}

impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}

/// What an answer of the wrong kind means.
pub(crate) fn unexpected(reply: Reply) -> NodeError {
    match reply {
        Reply::Error { sentence, wrong_use } => NodeError::Denied { sentence, wrong_use },
        Reply::NoSuchStation { sentence } | Reply::NoListener { sentence } | Reply::NotThere { sentence } => {
            NodeError::NotThere(sentence)
        }
        _ => NodeError::Confused,
    }
}
