//! The node of this station, as a client sees it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rota_contract::{AskedChange, AskedTerms, ChannelId, Granted, TrafficSpec};
use rota_shm::control::{
    ChannelDetail, ChannelInfo, CircuitAnswer, CircuitAsk, CircuitInfo, ControlName, EndInfo, IncidentInfo,
    InvitationInfo, Message, ReceiverInfo, RefusalInfo, Reply, Request, SocketError, StatusInfo,
};
use rota_shm::{CounterReader, MemoryError, TraceReader, open_source};
use rota_units::Span;

use crate::certificate::{self, CertificateError};
use crate::invite::Invitee;
use crate::overdue::Overdue;
use crate::reattach::{ListenOrigin, SendOrigin};
use crate::receive::Listener;
use crate::send::SendChannel;
use crate::session::{Deadline, Greeting, LOCAL_TIMEOUT, Session, unexpected};

/// Why the node did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// There is no node, or it went away.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// Node and library are of different versions.
    #[error("the node speaks control version {version}, this program {ours}: both must be of one build")]
    Version {
        /// This library's version.
        ours: u32,
        /// The node's.
        version: u32,
    },
    /// The node says why not.
    #[error("{sentence}")]
    Denied {
        /// Why.
        sentence: String,
        /// Whether the request itself was wrong.
        wrong_use: bool,
    },
    /// A station, a channel, a listener or an incident is not there, or not yet.
    #[error("{0}")]
    NotThere(String),
    /// The node has been asked for a channel, and nothing came of it in time.
    #[error(
        "the channel to {to} is neither open nor refused after {within}: the node waits for the token, or \
         for {to} to answer; 'rota status' shows the mode and the stations"
    )]
    NotOpened {
        /// The other station, as it was called.
        to: String,
        /// How long the program waited.
        within: Span,
    },
    /// The node has been asked to change a channel, and nothing came of it in time.
    #[error(
        "channel {channel} is neither changed nor refused after {within}: the node waits for the token, \
         which decides; 'rota status' shows the mode and the stations"
    )]
    NotChanged {
        /// The channel's id, its sender's.
        channel: ChannelId,
        /// How long the program waited.
        within: Span,
    },
    /// The node answered something else than it was asked.
    #[error("the node's answer does not fit the request")]
    Confused,
    /// The memory that came with the answer cannot be used.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// Why no channel was opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Admission refused; says by how much, and what would fit.
    #[error("{}", .0.sentence)]
    Refused(Box<RefusalInfo>),
    /// No such station.
    #[error("{0}")]
    NoSuchStation(String),
    /// Nobody there listens to the service.
    #[error("{0}")]
    NoListener(String),
    /// Anything else.
    #[error(transparent)]
    Node(#[from] NodeError),
}

/// What a sending channel should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    /// Station by name, number or MAC.
    pub to: String,
    /// The service to reach there.
    pub service: u16,
    /// Its units: how large, how often.
    pub traffic: TrafficSpec,
    /// The average of its traffic and the delay that it bears, where it states them.
    pub terms: AskedTerms,
    /// Units that may wait between program and node; the node makes as many as the contract needs at least.
    pub buffers: u16,
    /// A name for people.
    pub name: Option<String>,
    /// How long admission may take.
    pub timeout: Span,
    /// The policy for overdue units, whose turn has passed: left out unless this says otherwise.
    pub overdue: Overdue,
}

impl OpenRequest {
    /// A periodic channel with four buffers, no room to grow, no name, and ten seconds for admission. Overdue
    /// units are left out, as live media want; a program that must lose none asks for [`Overdue::Keep`].
    pub fn new(to: &str, service: u16, unit_octets_max: u32, period: Span) -> Self {
        let (buffers, timeout) = (4, Span::from_millis(10_000));
        let (to, name, overdue) = (to.to_owned(), None, Overdue::default());
        let traffic = TrafficSpec::fixed(unit_octets_max, period, true);
        let terms = AskedTerms::default();
        Self { to, service, traffic, terms, buffers, name, timeout, overdue }
    }

    /// The same with room to grow by so many times, as far as units can be.
    #[must_use]
    pub fn with_room_for(self, times: u32) -> Self {
        Self { traffic: self.traffic.with_room_for(times), ..self }
    }
}

/// A channel of a station that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// It is there.
    Channel(Box<ChannelDetail>),
    /// It has ended.
    Ended(EndInfo),
}

/// A connection to the node of this station.
pub struct Node {
    control: ControlName,
    session: Session,
    greeting: Greeting,
}

impl Node {
    /// Finds the node.
    ///
    /// # Errors
    /// [`NodeError::Socket`] when none runs here, [`NodeError::Version`] when it is of another build.
    pub fn connect(control: &ControlName) -> Result<Self, NodeError> {
        let (session, greeting) = Session::begin(control)?;
        Ok(Self { control: control.clone(), session, greeting })
    }

    /// The node's process.
    pub fn pid(&self) -> u32 {
        self.greeting.pid
    }

    /// The station's id on its segment, if it had one when we connected.
    pub fn station(&self) -> Option<u16> {
        self.greeting.station
    }

    /// The station's name.
    pub fn name(&self) -> &str {
        &self.greeting.name
    }

    /// Opens a sending channel; returns when admission has accepted it.
    ///
    /// # Errors
    /// [`OpenError`]: refused with a counter-offer, no such station, no listener, or no node.
    pub fn open(&self, request: &OpenRequest) -> Result<SendChannel, OpenError> {
        open_by(&self.control, request, 0, Deadline::NONE)
    }

    /// Asks for the contract that a channel would be granted, without opening it: its receiver stays free for
    /// a channel of another program.
    ///
    /// # Errors
    /// As [`Node::open`].
    pub fn probe(&self, request: &OpenRequest) -> Result<Granted, OpenError> {
        let (session, _) = Session::begin(&self.control)?;
        let answer = ask(&session, request, (0, true, None), request.timeout)?;
        match answer.body {
            Reply::Probed { contract } => Ok(contract),
            other => Err(not_opened(other)),
        }
    }

    /// Takes channels that lead to `service`, from all stations or from one. Several may listen to a service:
    /// each channel goes to one of them.
    ///
    /// # Errors
    /// [`NodeError`], for one when there is no station called `from`.
    pub fn listen(&self, service: u16, from: Option<&str>, buffers: u16) -> Result<Listener, NodeError> {
        listen_by(self.listening(from, buffers), service, Deadline::NONE)
    }

    /// As [`Node::listen`]; the program is asked about each channel before its sender hears of an answer, by
    /// [`Listener::asked`].
    ///
    /// # Errors
    /// As [`Node::listen`].
    pub fn listen_asked(
        &self,
        service: u16,
        from: Option<&str>,
        buffers: u16,
    ) -> Result<Listener, NodeError> {
        let origin = ListenOrigin { asks: true, ..self.listening(from, buffers) };
        listen_by(origin, service, Deadline::NONE)
    }

    /// As [`Node::listen`]; the frames of each channel come through a queue that the kernel fills and this
    /// program reads, and not by the node, where that is to be had: of channels that come over a link, to one
    /// receiver. [`RecvChannel::queue`] says so. A program that is too slow loses the newest units then, and
    /// not the oldest.
    ///
    /// [`RecvChannel::queue`]: crate::RecvChannel::queue
    ///
    /// # Errors
    /// As [`Node::listen`].
    pub fn listen_apart(
        &self,
        service: u16,
        from: Option<&str>,
        buffers: u16,
    ) -> Result<Listener, NodeError> {
        let origin = ListenOrigin { apart: true, ..self.listening(from, buffers) };
        listen_by(origin, service, Deadline::NONE)
    }

    /// Takes one channel that leads to `service` from the station of that name, which is asked for it: a
    /// program there waits by [`Node::invitee`], and states the traffic. [`Listener::accept`] gives the
    /// channel, or says who refused and why.
    ///
    /// # Errors
    /// [`NodeError`], for one when there is no station called `from`.
    pub fn invite(&self, from: &str, service: u16, buffers: u16) -> Result<Listener, NodeError> {
        self.invite_back(from, service, buffers, ChannelId::NONE)
    }

    /// The same for the way back of a channel that this program sends.
    pub(crate) fn invite_back(
        &self,
        from: &str,
        service: u16,
        buffers: u16,
        pair: ChannelId,
    ) -> Result<Listener, NodeError> {
        let origin = ListenOrigin { invites: Some(pair), ..self.listening(Some(from), buffers) };
        listen_by(origin, service, Deadline::NONE)
    }

    fn listening(&self, from: Option<&str>, buffers: u16) -> ListenOrigin {
        let (control, from) = (self.control.clone(), from.map(str::to_owned));
        ListenOrigin { control, from, buffers, asks: false, invites: None, apart: false }
    }

    /// Waits to be asked for one channel of `service` by a receiver ([`Node::invite`]), on this segment or
    /// beyond.
    ///
    /// # Errors
    /// [`NodeError`], for one when this node has no neighbours.
    pub fn invitee(&self, service: u16) -> Result<Invitee, NodeError> {
        let (session, _) = Session::begin(&self.control)?;
        match session.request(&Request::Invitee { service }, LOCAL_TIMEOUT)?.body {
            Reply::Listening { .. } => Ok(Invitee::new(self.control.clone(), session, service)),
            other => Err(unexpected(other)),
        }
    }

    /// What the node is and how it fares.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn status(&mut self) -> Result<StatusInfo, NodeError> {
        match self.session.request(&Request::Status, LOCAL_TIMEOUT)?.body {
            Reply::Status(status) => Ok(*status),
            other => Err(unexpected(other)),
        }
    }

    /// The ends of circuits in the queue of eight levels.
    ///
    /// # Errors
    /// [`NodeError`].
    pub(crate) fn circuits(&mut self) -> Result<Vec<CircuitInfo>, NodeError> {
        match self.session.request(&Request::Circuit(CircuitAsk::List), LOCAL_TIMEOUT)?.body {
            Reply::Circuit(CircuitAnswer::List(all)) => Ok(all),
            other => Err(unexpected(other)),
        }
    }

    /// The channels of this station.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn channels(&mut self) -> Result<Vec<ChannelInfo>, NodeError> {
        let (mut all, mut after) = (Vec::new(), ChannelId::NONE);
        let deadline = Deadline::after(LOCAL_TIMEOUT);
        loop {
            match self.session.request(&Request::List { after }, deadline.left())?.body {
                Reply::Channels { channels, next } => {
                    all.extend(channels);
                    match next.filter(|next| *next > after) {
                        Some(next) => after = next,
                        None => return Ok(all),
                    }
                }
                other => return Err(unexpected(other)),
            }
        }
    }

    /// One channel of this station, hop by hop, or its end if it has ended lately.
    ///
    /// # Errors
    /// [`NodeError`], for one when there is no such channel.
    pub fn channel(&mut self, channel: ChannelId) -> Result<Shown, NodeError> {
        match self.session.request(&Request::Show { channel }, LOCAL_TIMEOUT)?.body {
            Reply::Channel(detail) => Ok(Shown::Channel(detail)),
            Reply::Ended(end) => Ok(Shown::Ended(end)),
            other => Err(unexpected(other)),
        }
    }

    /// The certificate of a channel that this station sends: see [`SendChannel::certificate`].
    ///
    /// # Errors
    /// [`CertificateError`]; of a channel that is received [`CertificateError::None`], since its sender's
    /// station alone knows the way.
    pub fn certificate(&mut self, channel: ChannelId) -> Result<String, CertificateError> {
        certificate::of_channel(&self.session, channel)
    }

    /// The node's counters, live: they can be read for as long as the reader lives, without the node.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn counters(&mut self) -> Result<CounterReader, NodeError> {
        let mut answer = self.session.request(&Request::Counters, LOCAL_TIMEOUT)?;
        match (answer.body, answer.descriptors.pop()) {
            (Reply::Counters, Some(file)) => Ok(CounterReader::open(file)?),
            (other, _) => Err(unexpected(other)),
        }
    }

    /// The node's event log, live: it can be read for as long as the reader lives, without the node.
    ///
    /// # Errors
    /// [`NodeError`], for one when the node keeps none.
    pub fn trace(&mut self) -> Result<TraceReader, NodeError> {
        let mut answer = self.session.request(&Request::Trace, LOCAL_TIMEOUT)?;
        match (answer.body, answer.descriptors.pop()) {
            (Reply::Trace, Some(file)) => Ok(TraceReader::open(file)?),
            (other, _) => Err(unexpected(other)),
        }
    }

    /// The incidents of which the node has kept the events, the oldest first.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn incidents(&mut self) -> Result<Vec<IncidentInfo>, NodeError> {
        match self.session.request(&Request::Incidents, LOCAL_TIMEOUT)?.body {
            Reply::Incidents(incidents) => Ok(incidents),
            other => Err(unexpected(other)),
        }
    }

    /// One incident, and the events around it.
    ///
    /// # Errors
    /// [`NodeError`], for one when it is not kept (any more).
    pub fn incident(&mut self, number: u64) -> Result<(IncidentInfo, TraceReader), NodeError> {
        let mut answer = self.session.request(&Request::Incident { number }, LOCAL_TIMEOUT)?;
        match (answer.body, answer.descriptors.pop()) {
            (Reply::Incident(info), Some(file)) => Ok((info, TraceReader::open(file)?)),
            (other, _) => Err(unexpected(other)),
        }
    }

    /// Whether the node has ended since we connected: what its counters say is then the last that it wrote.
    pub fn is_gone(&self) -> bool {
        self.session.is_gone()
    }

    /// Ends a channel of this station, whoever opened it.
    ///
    /// # Errors
    /// [`NodeError`], for one when there is no such channel.
    pub fn close_channel(&mut self, channel: ChannelId) -> Result<(), NodeError> {
        match self.session.request(&Request::Close { channel }, LOCAL_TIMEOUT)?.body {
            Reply::Closed { .. } | Reply::Done => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Changes what a sending channel of this station may send, whoever opened it: to less, or to more as
    /// far as it was opened with room for. Its units stay in time meanwhile; who has it is told.
    ///
    /// # Errors
    /// [`OpenError::Refused`] when the new size does not fit; the old contract then stays.
    pub fn modify_channel(&mut self, channel: ChannelId, unit_octets_max: u32) -> Result<Granted, OpenError> {
        self.change_channel(channel, &AskedChange::of_size(unit_octets_max))
    }

    /// The same for any part of a channel's contract. On one segment only the size of units may change.
    ///
    /// # Errors
    /// [`OpenError::Refused`] when the new contract does not fit; the old one then stays.
    pub fn change_channel(&mut self, channel: ChannelId, change: &AskedChange) -> Result<Granted, OpenError> {
        modify(&self.session, channel, change)
    }

    /// Adds a receiver to an open channel of this station to several ones, whoever opened it: the promise to
    /// it. Its first unit is the next one that comes.
    ///
    /// # Errors
    /// [`OpenError::Refused`] when its branch does not fit; the others receive on.
    pub fn join(&mut self, channel: ChannelId, to: &str) -> Result<Span, OpenError> {
        join(&self.session, channel, to)
    }

    /// Takes a receiver out of an open channel of this station to several ones, whoever opened it. The others
    /// receive on; with the last one the channel ends. Units that are on their way to it may be lost.
    ///
    /// # Errors
    /// [`NodeError`]: it is no receiver of it, among others.
    pub fn leave_channel(&mut self, channel: ChannelId, to: &str) -> Result<(), NodeError> {
        leave(&self.session, channel, to)
    }

    /// Keeps the token going round for a while although nobody has data, to measure hops.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn circulate(&mut self, duration: Span) -> Result<(), NodeError> {
        let circulate = Request::Circulate { duration_ns: duration.as_nanos() };
        match self.session.request(&circulate, LOCAL_TIMEOUT)?.body {
            Reply::Done => Ok(()),
            other => Err(unexpected(other)),
        }
    }
}

/// As [`Node::open`], by `deadline`, for a channel that continues others with `before` units.
pub(crate) fn open_by(
    control: &ControlName,
    request: &OpenRequest,
    before: u64,
    deadline: Deadline,
) -> Result<SendChannel, OpenError> {
    answer_by(control, request, (before, None), deadline)
}

/// The same, perhaps in answer to an invitation.
pub(crate) fn answer_by(
    control: &ControlName,
    request: &OpenRequest,
    (before, answers): (u64, Option<InvitationInfo>),
    deadline: Deadline,
) -> Result<SendChannel, OpenError> {
    let (session, _) = Session::begin_by(control, deadline)?;
    let asked = (before, false, answers);
    let answer = ask(&session, request, asked, deadline.allows(request.timeout))?;
    match answer.body {
        Reply::Opened { channel, label: _, contract } => {
            let origin = SendOrigin { control: control.clone(), request: request.clone() };
            Ok(begin_sending(session, channel, contract, answer.descriptors, origin, deadline)?)
        }
        other => Err(not_opened(other)),
    }
}

/// Asks for a channel that continues others with `before` units, or for its contract only.
fn ask(
    session: &Session,
    request: &OpenRequest,
    (before, probe, answers): (u64, bool, Option<InvitationInfo>),
    timeout: Span,
) -> Result<Message<Reply>, OpenError> {
    let OpenRequest { to, service, traffic, terms, buffers, name, .. } = request;
    let open = Request::Open {
        to: to.clone(),
        service: *service,
        traffic: *traffic,
        terms: *terms,
        buffers: *buffers,
        name: name.clone(),
        before,
        probe,
        answers,
    };
    session.request(&open, timeout).map_err(|error| match error {
        // The node has said hello a moment ago: it is not the socket that takes so long.
        NodeError::Socket(SocketError::TimedOut(within)) => {
            NodeError::NotOpened { to: to.clone(), within }.into()
        }
        other => other.into(),
    })
}

/// The error that an answer to a request for a channel means.
fn not_opened(reply: Reply) -> OpenError {
    match reply {
        Reply::Refused(refusal) => OpenError::Refused(Box::new(refusal)),
        Reply::NoSuchStation { sentence } => OpenError::NoSuchStation(sentence),
        Reply::NoListener { sentence } => OpenError::NoListener(sentence),
        other => unexpected(other).into(),
    }
}

/// As [`Node::listen`], by `deadline`.
pub(crate) fn listen_by(
    origin: ListenOrigin,
    service: u16,
    deadline: Deadline,
) -> Result<Listener, NodeError> {
    let (session, _) = Session::begin_by(&origin.control, deadline)?;
    let ListenOrigin { from, buffers, asks, invites, apart, .. } = origin.clone();
    let listen = Request::Listen { service, from, buffers, asks, invites, apart };
    match session.request(&listen, deadline.allows(LOCAL_TIMEOUT))?.body {
        Reply::Listening { .. } => Ok(Listener::new(Arc::new(session), service, origin)),
        other => Err(unexpected(other)),
    }
}

/// Asks over any connection for a change of a channel.
pub(crate) fn modify(
    session: &Session,
    channel: ChannelId,
    change: &AskedChange,
) -> Result<Granted, OpenError> {
    let modify = Request::Modify { channel, change: *change };
    // The node has answered on this socket before: it is not the socket that takes so long.
    let answer = session.request(&modify, LOCAL_TIMEOUT).map_err(|error| match error {
        NodeError::Socket(SocketError::TimedOut(within)) => NodeError::NotChanged { channel, within },
        other => other,
    })?;
    match answer.body {
        Reply::Modified { contract, .. } => Ok(contract),
        Reply::Refused(refusal) => Err(OpenError::Refused(Box::new(refusal))),
        other => Err(unexpected(other).into()),
    }
}

/// Asks over any connection for another receiver of a channel.
pub(crate) fn join(session: &Session, channel: ChannelId, to: &str) -> Result<Span, OpenError> {
    let join = Request::Join { channel, to: to.to_owned() };
    match session.request(&join, LOCAL_TIMEOUT)?.body {
        Reply::Joined { bound_ns, .. } => Ok(Span::from_nanos(bound_ns)),
        other => Err(not_opened(other)),
    }
}

/// Asks over any connection that a receiver of a channel leaves it.
pub(crate) fn leave(session: &Session, channel: ChannelId, to: &str) -> Result<(), NodeError> {
    match session.request(&Request::Leave { channel, to: to.to_owned() }, LOCAL_TIMEOUT)?.body {
        Reply::Done => Ok(()),
        other => Err(unexpected(other)),
    }
}

/// The receivers of a channel that is sent here to several, also where it has ended lately.
pub(crate) fn receivers(session: &Session, channel: ChannelId) -> Result<Vec<ReceiverInfo>, NodeError> {
    match session.request(&Request::Show { channel }, LOCAL_TIMEOUT)?.body {
        Reply::Channel(detail) => Ok(detail.receivers),
        Reply::Ended(end) => Ok(end.receivers),
        other => Err(unexpected(other)),
    }
}

/// Maps what came with an opened channel and tells the node, which then closes the file for other writers.
fn begin_sending(
    session: Session,
    channel: ChannelId,
    granted: Granted,
    descriptors: Vec<OwnedFd>,
    origin: SendOrigin,
    deadline: Deadline,
) -> Result<SendChannel, NodeError> {
    let source = open_source(descriptors)?;
    match session.request(&Request::Mapped { channel }, deadline.allows(LOCAL_TIMEOUT))?.body {
        Reply::Done => Ok(SendChannel::new(session, channel, granted, source, origin)),
        other => Err(unexpected(other)),
    }
}
