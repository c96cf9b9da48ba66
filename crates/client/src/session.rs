//! One connection to the node: greeting, then request and reply.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rota_contract::{ChannelId, Granted, NodeId};
use rota_shm::control::{
    CONTROL_VERSION, Connection, ControlName, Message, ReceiverInfo, Reply, Request, SocketError, UNASKED,
};
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
    /// The number of the newest request. Answers repeat it: the late answer to one that was given up is no
    /// answer to the next.
    asked: AtomicU64,
    /// The newest contract of each channel of which its program has not asked.
    changed: Mutex<BTreeMap<ChannelId, Granted>>,
    /// The newest word on each receiver of channels to several.
    receivers: Mutex<BTreeMap<(ChannelId, NodeId), ReceiverInfo>>,
}

/// A request that was sent, by which its answer is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    number: u64,
    is_close: bool,
}

impl Sent {
    /// True if this is its answer. An end is one, too, of a channel that is to end: it may come unasked a
    /// moment earlier. So is the word of a node that ends what this connection has, or hangs up.
    fn is_answered_by(self, message: &Message<Reply>) -> bool {
        let is_unasked = message.number == UNASKED;
        match &message.body {
            Reply::Closed { .. } if self.is_close => true,
            Reply::Error { .. } if is_unasked => true,
            _ => message.number == self.number,
        }
    }
}

impl Session {
    pub(crate) fn begin(name: &ControlName) -> Result<(Self, Greeting), NodeError> {
        Self::begin_by(name, Deadline::NONE)
    }

    /// As [`Session::begin`], by `deadline`.
    pub(crate) fn begin_by(name: &ControlName, deadline: Deadline) -> Result<(Self, Greeting), NodeError> {
        let connection = Connection::connect(name)?;
        let session = Self {
            connection,
            asked: AtomicU64::new(UNASKED),
            changed: Mutex::default(),
            receivers: Mutex::default(),
        };
        let hello = Request::Hello { version: CONTROL_VERSION };
        // Without a number: a node of another version reads it, and answers.
        session.send(UNASKED, &hello)?;
        let sent = Sent { number: UNASKED, is_close: false };
        match session.answer(sent, deadline.allows(LOCAL_TIMEOUT))?.body {
            Reply::Welcome { version, pid, station, name } if version == CONTROL_VERSION => {
                Ok((session, Greeting { pid, station, name }))
            }
            Reply::Welcome { version, .. } => Err(NodeError::Version { ours: CONTROL_VERSION, version }),
            other => Err(unexpected(other)),
        }
    }

    /// Sends a request and waits for its reply. News that come in between are dropped, but for a contract
    /// that changes: of an end the board tells as well.
    pub(crate) fn request(&self, request: &Request, timeout: Span) -> Result<Message<Reply>, NodeError> {
        if let Err(error) = request.check() {
            return Err(NodeError::Denied { sentence: error.to_string(), wrong_use: true });
        }
        let sent = self.number(request);
        self.send(sent.number, request)?;
        self.answer(sent, timeout)
    }

    /// The same, with a descriptor for the node.
    pub(crate) fn request_with(
        &self,
        request: &Request,
        descriptor: BorrowedFd<'_>,
        timeout: Span,
    ) -> Result<Message<Reply>, NodeError> {
        let sent = self.number(request);
        match self.connection.send_request_with(sent.number, request, descriptor) {
            // As in `send`.
            Ok(()) | Err(SocketError::Gone) => self.answer(sent, timeout),
            Err(error) => Err(error.into()),
        }
    }

    fn number(&self, request: &Request) -> Sent {
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        Sent { number, is_close: matches!(request, Request::Close { .. }) }
    }

    fn send(&self, number: u64, request: &Request) -> Result<(), SocketError> {
        match self.connection.send_request(number, request) {
            // A node that turned us away has said why before it hung up.
            Err(SocketError::Gone) => Ok(()),
            sent => sent,
        }
    }

    /// Waits for the reply to a request that was sent: see [`Session::request`].
    pub(crate) fn answer(&self, sent: Sent, timeout: Span) -> Result<Message<Reply>, NodeError> {
        let give_up = crate::now() + timeout;
        loop {
            match self.connection.reply(give_up.since(crate::now())) {
                Ok(message) if sent.is_answered_by(&message) => return Ok(message),
                Ok(message) => self.keep(&message),
                // A signal cut the wait short.
                Err(SocketError::TimedOut(_)) if crate::now() < give_up => {}
                Err(SocketError::TimedOut(_)) => return Err(SocketError::TimedOut(timeout).into()),
                Err(other) => return Err(other.into()),
            }
        }
    }

    /// Sends a request and does not wait for its reply.
    pub(crate) fn tell(&self, request: &Request) -> Sent {
        let sent = self.number(request);
        // Best effort: a node that is gone has nothing left to free.
        let _ = self.connection.send_request(sent.number, request);
        sent
    }

    /// The next message that nobody asked for, but for a contract that changes, which is kept. Late answers
    /// to requests that were given up are dropped.
    pub(crate) fn next(&self, timeout: Span) -> Result<Message<Reply>, SocketError> {
        loop {
            let message = self.connection.reply(timeout)?;
            let is_kept = matches!(message.body, Reply::Changed { .. } | Reply::Receiver { .. });
            self.keep(&message);
            if message.number == UNASKED && !is_kept {
                return Ok(message);
            }
        }
    }

    /// Of the news that wait keeps contracts that change and words on receivers, and throws away the others,
    /// which in time would leave no room for an answer. False when there will be no more.
    pub(crate) fn discard(&self) -> bool {
        loop {
            match self.connection.reply(Span::ZERO) {
                Ok(message) => self.keep(&message),
                Err(SocketError::TimedOut(_)) => return true,
                Err(_) => return false,
            }
        }
    }

    fn keep(&self, message: &Message<Reply>) {
        match &message.body {
            Reply::Changed { channel, contract } => _ = self.changes().insert(*channel, *contract),
            Reply::Receiver { channel, receiver } => {
                self.receivers().insert((*channel, receiver.node_id), receiver.clone());
            }
            _ => {}
        }
    }

    fn receivers(&self) -> MutexGuard<'_, BTreeMap<(ChannelId, NodeId), ReceiverInfo>> {
        self.receivers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The receivers of a channel of which there is a word that was not taken yet.
    pub(crate) fn take_receivers(&self, channel: ChannelId) -> Vec<ReceiverInfo> {
        // As in `newest`.
        let _ = self.discard();
        let mut all = self.receivers();
        let of_it: Vec<_> = all.keys().filter(|(of, _)| *of == channel).copied().collect();
        of_it.iter().filter_map(|key| all.remove(key)).collect()
    }

    fn changes(&self) -> MutexGuard<'_, BTreeMap<ChannelId, Granted>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The contract to which a channel has changed since it was last taken ([`Self::take_changed`]).
    pub(crate) fn newest(&self, channel: ChannelId) -> Option<Granted> {
        // An end that is told here is told by the board too.
        let _ = self.discard();
        self.changes().get(&channel).copied()
    }

    /// The same, which the program knows from now on.
    pub(crate) fn take_changed(&self, channel: ChannelId) -> Option<Granted> {
        let newest = self.newest(channel);
        self.changes().remove(&channel);
        newest
    }

    /// An answer has told a newer contract than all news before it.
    pub(crate) fn forget_changed(&self, channel: ChannelId) {
        self.changes().remove(&channel);
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
