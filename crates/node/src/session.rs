//! One program's connection: what it opened, what it listens to.

use crate::commands::{Command, ControlEnd, Opening, Peer, SocketMemory, SourceMemory};
use crate::control::{OwnCircuits, Untold};
use crate::ledger::Charge;
use crate::log::{Level, say};
use crate::queues::{ChannelQueue, OwnedQueue};
use crate::status::Facts;
use rota_contract::{AskedChange, ChannelId, Granted, NodeId};
use rota_shm::control::{CONTROL_VERSION, Connection, QueueInfo, Reply, Request, SocketError, UNASKED};
use rota_shm::{Board, ChannelState, NodeSocket, NodeSource};
use rota_units::{Instant, Span};
use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What a program waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Open {
        to: String,
        service: u16,
        buffers: u16,
        room_octets: u32,
        name: Option<String>,
        /// It answers an invitation.
        answers: bool,
    },
    Listen {
        from: Option<String>,
        listener: Listening,
    },
    Invitee {
        service: u16,
    },
    Status,
    /// The socket of this connection is to be attached, or its messages given up.
    Socket,
    /// The channels whose numbers on this station are above `after`.
    List {
        after: ChannelId,
    },
    /// The ends of circuits.
    Circuits,
    /// One channel, hop by hop.
    Show {
        channel: ChannelId,
    },
    Modify {
        channel: ChannelId,
    },
    /// Another receiver, or one that is to leave; its node, once it is known.
    Join {
        channel: ChannelId,
        to: String,
        node: NodeId,
        leaves: bool,
    },
}

/// A request that is not answered yet.
#[derive(Debug)]
pub(crate) struct Question {
    /// Our number for it.
    pub(crate) ask: u64,
    /// The program's number, which the answer repeats.
    pub(crate) number: u64,
    pub(crate) asked: Asked,
}

/// What a program would take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listening {
    /// Our number for it.
    pub(crate) id: u64,
    pub(crate) service: u16,
    pub(crate) buffers: u16,
    /// Its program is asked about each channel.
    pub(crate) asks: bool,
    /// Its program wants to take the frames of its channels itself.
    pub(crate) apart: bool,
    /// It has asked a source for its one channel, and no other one comes.
    pub(crate) invites: bool,
}

/// A channel that would be received, as its sender asked for it.
#[derive(Clone, Debug)]
pub(crate) struct Coming {
    pub(crate) channel: ChannelId,
    /// Its sender's number.
    pub(crate) shared: ChannelId,
    pub(crate) label: u16,
    pub(crate) peer: Peer,
    pub(crate) granted: Granted,
    /// Units of the channels that it continues.
    pub(crate) before: u64,
}

/// A channel that waits for its program's answer.
pub(crate) struct Waiting {
    pub(crate) listened: Listening,
    pub(crate) coming: Coming,
    pub(crate) until: Instant,
}

/// A channel and the session that has it.
#[derive(Default)]
pub(crate) struct Owned {
    pub(crate) channel: ChannelId,
    /// Its sender's number, by which people know it at both ends.
    pub(crate) shared: ChannelId,
    pub(crate) label: u16,
    pub(crate) sending: bool,
    pub(crate) service: u16,
    /// For a receiving channel: the listener that it came to.
    pub(crate) listener: Option<Listening>,
    pub(crate) peer: Peer,
    pub(crate) name: Option<String>,
    pub(crate) granted: Granted,
    /// Made when admitted, handed to the data thread when the program has mapped it.
    pub(crate) source: Option<NodeSource>,
    /// The charge for its memory, until the data thread takes it over.
    pub(crate) charge: Option<Charge>,
    pub(crate) board: Option<Board>,
    pub(crate) offer: Offer,
    pub(crate) buffers: u16,
    /// The largest unit that its memory holds.
    pub(crate) room_octets: u32,
    /// Units of the channels that it continues, for its receiver.
    pub(crate) before: u64,
    pub(crate) told: bool,
    /// The number of the request that this channel answers next: the one that opens it, then the one that
    /// closes it.
    pub(crate) number: u64,
    pub(crate) closing: bool,
    pub(crate) untold: Untold,
}

/// What the program of an incoming channel gets.
#[derive(Default)]
pub(crate) struct Offer {
    /// Its files, until it is told of the channel.
    pub(crate) files: Vec<OwnedFd>,
    /// The queue that the kernel fills, or why there is none where the program wants one.
    pub(crate) queue: Option<Result<(ChannelQueue, QueueInfo), String>>,
}

impl Owned {
    /// "channel 7 to n3, service 2": by its number at its sender, as at the other end.
    pub(crate) fn called(&self) -> String {
        let way = if self.sending { "to" } else { "from" };
        format!("channel {} {way} {}, service {}", self.shared, self.peer.name, self.service)
    }
}

/// A socket of link control and, until its program has mapped it, its memory.
pub(crate) struct OwnedSocket {
    pub(crate) number: u8,
    pub(crate) memory: Option<Box<NodeSocket>>,
    pub(crate) charge: Option<Charge>,
    /// The number of the request that handed its memory to the data thread; 0 before.
    pub(crate) attached: u64,
}

/// One connection.
pub(crate) struct Session {
    pub(crate) id: u64,
    /// Who connected, by the kernel's word.
    pub(crate) user: u32,
    pub(crate) connection: Connection,
    pub(crate) greeted: bool,
    /// The connection is beyond its user's limit, and may only ask for the node's state.
    pub(crate) only_asks: bool,
    /// The time of its last message, or of its connection.
    pub(crate) heard: Instant,
    pub(crate) channels: Vec<Owned>,
    /// Each channel it would still take.
    pub(crate) listens: Vec<Listening>,
    /// The sources that wait to be asked by a receiver, by our numbers.
    pub(crate) invitees: Vec<u64>,
    /// Of its channels those that answer an invitation.
    pub(crate) answers_with: Vec<ChannelId>,
    /// Channels about which it was asked.
    pub(crate) waiting: Vec<Waiting>,
    pub(crate) asked: Vec<Question>,
    /// The number of the request that [`Session::reply`] answers.
    answers: Cell<u64>,
    pub(crate) socket: Option<OwnedSocket>,
    /// Its listener, or its end, of circuits.
    pub(crate) circuits: OwnCircuits,
    /// The receive queue of its socket of UDP.
    pub(crate) queue: Option<OwnedQueue>,
    /// It does not read its answers: nobody waits for it.
    unresponsive: Cell<bool>,
}

impl Session {
    pub(crate) fn new(id: u64, user: u32, connection: Connection) -> Self {
        let (channels, listens, waiting, asked) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (invitees, answers_with) = (Vec::new(), Vec::new());
        let unresponsive = Cell::new(false);
        let heard = rota_driver::clock::now();
        let (greeted, only_asks, socket, answers) = (false, false, None, Cell::new(UNASKED));
        Self {
            id,
            user,
            connection,
            greeted,
            only_asks,
            heard,
            channels,
            listens,
            invitees,
            answers_with,
            waiting,
            asked,
            answers,
            socket,
            circuits: OwnCircuits::default(),
            queue: None,
            unresponsive,
        }
    }

    /// Channels that it has, asks for, or listens for: what counts against its user.
    pub(crate) fn weight(&self) -> usize {
        let asks = |asked: &Asked| {
            matches!(asked, Asked::Open { .. } | Asked::Listen { .. } | Asked::Invitee { .. })
        };
        let asked = self.asked.iter().filter(|question| asks(&question.asked)).count();
        let queue = usize::from(self.queue.is_some()) + self.circuits.weight();
        self.channels.len() + self.listens.len() + self.invitees.len() + self.waiting.len() + asked + queue
    }

    /// Channels that answer an invitation and that its program does not have yet: their invitees count, too.
    pub(crate) fn answering(&self) -> usize {
        let is_asked = |question: &&Question| matches!(question.asked, Asked::Open { answers: true, .. });
        let is_coming = |owned: &&Owned| !owned.told && self.answers_with.contains(&owned.channel);
        self.asked.iter().filter(is_asked).count() + self.channels.iter().filter(is_coming).count()
    }

    /// The replies that follow are to the request of this number, or are unasked.
    pub(crate) fn to(&self, number: u64) -> &Self {
        self.answers.set(number);
        self
    }

    /// The number of the request that is answered next.
    pub(crate) fn number(&self) -> u64 {
        self.answers.get()
    }

    /// True if it has the channel of this number at its sender.
    pub(crate) fn has(&self, channel: ChannelId) -> bool {
        self.channels.iter().any(|owned| owned.shared == channel)
    }

    /// False when the program is gone or does not read its answers: either way its session is over. An
    /// answer that is too long for a message becomes an error.
    pub(crate) fn reply(&self, reply: &Reply, files: &[BorrowedFd<'_>]) -> bool {
        let number = self.answers.get();
        let is_heard = match self.connection.send_reply(number, reply, files) {
            Err(SocketError::Message(error)) => {
                let sentence = format!("the answer cannot be sent: {error}");
                self.connection.send_reply(number, &Reply::Error { sentence, wrong_use: false }, &[]).is_ok()
            }
            sent => sent.is_ok(),
        };
        self.unresponsive.set(self.unresponsive.get() || !is_heard);
        is_heard
    }

    /// Tells what nobody has asked for. False when there is no room for it, which is nobody's fault.
    pub(crate) fn news(&self, reply: &Reply) -> bool {
        match self.connection.send_reply(UNASKED, reply, &[]) {
            Err(SocketError::Stuck) => false,
            told => {
                self.unresponsive.set(self.unresponsive.get() || told.is_err());
                true
            }
        }
    }

    /// Whether there is nobody to serve any more.
    pub(crate) fn is_over(&self) -> bool {
        self.unresponsive.get() || self.connection.is_gone()
    }

    pub(crate) fn answer(&self, reply: &Reply) {
        self.reply(reply, &[]);
    }

    pub(crate) fn error(&self, sentence: impl Into<String>, wrong_use: bool) {
        self.answer(&Reply::Error { sentence: sentence.into(), wrong_use });
    }

    pub(crate) fn not_there(&self, sentence: String) {
        self.answer(&Reply::NotThere { sentence });
    }

    /// One request; `ask` is a number for what the data thread must answer first.
    pub(crate) fn request(
        &mut self,
        request: Request,
        ask: u64,
        now: Instant,
        data: &ControlEnd,
        facts: &Facts,
    ) {
        if !self.greeted {
            return self.hello(&request, facts);
        }
        if let Err(error) = request.check() {
            return self.error(error.to_string(), true);
        }
        match request {
            Request::Hello { .. } => self.error("the connection has already been greeted", true),
            Request::Open { to, service, traffic, terms, buffers, name, before, probe, answers } => {
                if buffers == 0 || buffers > 64 {
                    return self.error(format!("{buffers} buffers cannot be had; 1 to 64 can"), true);
                }
                if let Err(bad) = terms.check(traffic.period) {
                    return self.error(bad.to_string(), true);
                }
                let (room_octets, is_answer) = (traffic.room_octets, answers.is_some());
                let asked =
                    Asked::Open { to: to.clone(), service, buffers, room_octets, name, answers: is_answer };
                let request = Opening { traffic, terms, before, probe, uid: self.user, answers };
                self.ask(ask, asked, Command::Open { ask, to, service, request }, data)
            }
            Request::Mapped { channel } => self.mapped(channel, data),
            Request::Bell { channel } => self.bell(channel, data),
            Request::Listen { from: None, invites: Some(_), .. } => self.nobody_asked(),
            Request::Listen { service, from, buffers, asks, invites, apart } => {
                let buffers = buffers.clamp(1, 64);
                let invited = invites.is_some();
                let listener = Listening { id: ask, service, buffers, asks, apart, invites: invited };
                let command = Command::Listen { ask, service, from: from.clone(), invites };
                self.ask(ask, Asked::Listen { from, listener }, command, data)
            }
            Request::Invitee { service } => self.wait_to_be_asked(ask, service, data),
            Request::Close { channel } => self.close(channel, data),
            // These three are answered when the data thread has told its state.
            Request::List { after } => self.wait_for(ask, Asked::List { after }),
            Request::Show { channel } => self.wait_for(ask, Asked::Show { channel }),
            Request::Status => self.wait_for(ask, Asked::Status),
            Request::Modify { channel, change } => self.modify(ask, channel, change, data),
            Request::Join { channel, to } => self.join((ask, false), channel, to, data),
            Request::Leave { channel, to } => self.join((ask, true), channel, to, data),
            Request::Circulate { duration_ns } => self.circulate(duration_ns, now, data),
            Request::Trace => self.trace(facts),
            Request::LlcAddress => self.answer(&Reply::LlcAddress { node: facts.llc.address }),
            Request::LlcOpen { .. }
            | Request::Circuit(_)
            | Request::Answer { .. }
            | Request::Incidents
            | Request::Incident { .. }
            | Request::UdpOpen { .. }
            | Request::UdpClose
            | Request::UdpDiscarded => self.error("the control thread answers this", true),
            Request::LlcMapped => self.socket_mapped(ask, data),
            Request::LlcClose => {
                self.close_socket(data);
                self.answer(&Reply::Done);
            }
            Request::LlcCancel => self.cancel_socket(ask, data),
            Request::Counters => _ = self.reply(&Reply::Counters, &[facts.counters.descriptor()]),
        }
    }

    fn modify(&mut self, ask: u64, channel: ChannelId, change: AskedChange, data: &ControlEnd) {
        match change.check() {
            Ok(()) => {
                let command = Command::Change { ask, channel, change };
                self.ask(ask, Asked::Modify { channel }, command, data)
            }
            Err(bad) => self.error(bad.to_string(), true),
        }
    }

    fn circulate(&self, duration_ns: u64, now: Instant, data: &ControlEnd) {
        let until = now + Span::from_nanos(duration_ns.min(60_000_000_000));
        self.done(Command::Circulate { until }, data);
    }

    fn nobody_asked(&self) {
        self.error("a program that asks for a channel names the station that is to send", true);
    }

    fn join(&mut self, (ask, leaves): (u64, bool), channel: ChannelId, to: String, data: &ControlEnd) {
        let asked = Asked::Join { channel, to: to.clone(), node: NodeId::UNKNOWN, leaves };
        self.ask(ask, asked, Command::Join { ask, channel, to, leaves }, data)
    }

    fn done(&self, command: Command, data: &ControlEnd) {
        data.say(command);
        self.answer(&Reply::Done);
    }

    fn trace(&self, facts: &Facts) {
        match &facts.log {
            Some(log) => _ = self.reply(&Reply::Trace, &[log.as_fd()]),
            None => self.error("this node keeps no events: it was started with --trace-events 0", false),
        }
    }

    fn cancel_socket(&mut self, ask: u64, data: &ControlEnd) {
        match &self.socket {
            Some(OwnedSocket { number, memory: None, .. }) => {
                let command = Command::CancelSocket { ask, socket: *number };
                self.ask(ask, Asked::Socket, command, data)
            }
            _ => self.error("this connection has no open socket", true),
        }
    }

    pub(crate) fn wait_for(&mut self, ask: u64, asked: Asked) {
        self.asked.push(Question { ask, number: self.answers.get(), asked });
    }

    fn ask(&mut self, ask: u64, asked: Asked, command: Command, data: &ControlEnd) {
        self.wait_for(ask, asked);
        data.say(command);
    }

    fn wait_to_be_asked(&mut self, ask: u64, service: u16, data: &ControlEnd) {
        let command = Command::Invitee { ask, service, uid: self.user };
        self.ask(ask, Asked::Invitee { service }, command, data);
    }

    /// A session that does not begin with a greeting of this version ends.
    fn hello(&mut self, request: &Request, facts: &Facts) {
        let sentence = match request {
            Request::Hello { version: CONTROL_VERSION } => {
                self.greeted = true;
                let (pid, name) = (std::process::id(), facts.name.clone());
                let version = CONTROL_VERSION;
                return self.answer(&Reply::Welcome { version, pid, station: None, name });
            }
            Request::Hello { version } => {
                format!("this node speaks version {CONTROL_VERSION}, the program version {version}")
            }
            _ => "the first message must be hello".to_owned(),
        };
        self.error(sentence, true);
        self.unresponsive.set(true);
    }

    /// The program has mapped its memory: nobody else can change it from now on, and units may flow.
    fn mapped(&mut self, channel: ChannelId, data: &ControlEnd) {
        let owned = self.channels.iter_mut().find(|owned| owned.channel == channel);
        let taken = owned.and_then(|owned| Some((owned.source.take()?, owned.charge.take())));
        let Some((mut source, charge)) = taken else {
            return self.error("no channel of yours waits to be mapped", true);
        };
        if let Err(error) = source.mapped() {
            data.say(Command::Abort { channel });
            return self.error(error.to_string(), false);
        }
        let NodeSource { ring, board, doorbell, .. } = source;
        board.set_state(ChannelState::Open, None);
        let sleeper = data.waker().sleeper(board.clone(), None);
        let memory = SourceMemory { ring, board, sleeper, doorbell, _charge: charge };
        self.done(Command::AttachSource { channel, memory }, data);
    }

    /// The program wants to poll a channel that it has.
    fn bell(&self, channel: ChannelId, data: &ControlEnd) {
        let is_it = |owned: &&Owned| owned.shared == channel && owned.told && owned.source.is_none();
        let Some(owned) = self.channels.iter().find(is_it) else {
            return self.error("no channel of yours can have a bell", true);
        };
        let (Some(board), Ok((ours, theirs))) = (&owned.board, rota_shm::bells()) else {
            return self.error("the node has no descriptor left for a bell", false);
        };
        let sleeper = data.waker().sleeper(board.clone(), Some(ours));
        data.say(Command::Bell { channel: owned.channel, sleeper });
        self.reply(&Reply::Bell, &[theirs.as_fd()]);
    }

    fn close(&mut self, channel: ChannelId, data: &ControlEnd) {
        let Some(owned) = self.channels.iter_mut().find(|owned| owned.shared == channel) else { return };
        owned.number = self.answers.get();
        // Each close states the units again: a program that repeats it would fill the log.
        if !std::mem::replace(&mut owned.closing, true) {
            if let Some(board) = &owned.board {
                board.set_state(ChannelState::Closing, None);
            }
            data.say(Command::Close { channel: owned.channel });
        }
    }

    fn socket_mapped(&mut self, ask: u64, data: &ControlEnd) {
        let taken = |owned: &mut OwnedSocket| {
            let memory = owned.memory.take()?;
            owned.attached = ask;
            Some((owned.number, memory, owned.charge.take()))
        };
        let Some((number, mut memory, charge)) = self.socket.as_mut().and_then(taken) else {
            return self.error("no socket of yours waits to be mapped", true);
        };
        if let Err(error) = memory.mapped() {
            self.socket = None;
            return self.error(error.to_string(), false);
        }
        let memory = Box::new(SocketMemory::new(*memory, &data.waker(), ask, charge));
        self.ask(ask, Asked::Socket, Command::AttachSocket { ask, socket: number, memory }, data)
    }

    pub(crate) fn close_socket(&mut self, data: &ControlEnd) {
        if let Some(OwnedSocket { number, memory: None, .. }) = self.socket.take() {
            data.say(Command::DetachSocket { socket: number });
        }
    }

    /// Closes its socket if `attached` is that socket's number, and says so to the program and, as this
    /// event, to the log.
    pub(crate) fn end_socket(&mut self, attached: u64, event: &'static str, why: &str, data: &ControlEnd) {
        let is_it = |owned: &&OwnedSocket| owned.memory.is_none() && owned.attached == attached;
        let Some(socket) = self.socket.as_ref().filter(is_it).map(|owned| owned.number) else { return };
        let text = format!("socket {socket} was closed: {why}");
        say(Level::Warn, event, &format!("{text}; {}", self.program()));
        self.close_socket(data);
        self.to(UNASKED).error(text, true);
    }

    /// The program of this connection, as the kernel named it when it connected.
    pub(crate) fn program(&self) -> String {
        let process = self.connection.peer().map_or(0, |peer| peer.pid());
        format!("the program is process {process} of user {}", self.user)
    }

    /// The program is gone: everything it had is freed. Returns its service of circuits.
    pub(crate) fn forget(&mut self, data: &ControlEnd) -> Option<u32> {
        self.close_socket(data);
        let asked = self.asked.iter().filter(|question| matches!(question.asked, Asked::Listen { .. }));
        let listens = self.listens.iter().map(|listener| listener.id);
        for listener in listens.chain(asked.map(|question| question.ask)) {
            data.say(Command::Unlisten { listener });
        }
        let asked = self.asked.iter().filter(|question| matches!(question.asked, Asked::Invitee { .. }));
        for invitee in self.invitees.iter().copied().chain(asked.map(|question| question.ask)) {
            data.say(Command::RemoveInvitee { invitee });
        }
        for Waiting { listened, coming, .. } in self.waiting.drain(..) {
            data.say(Command::Deny { channel: coming.channel });
            data.say(Command::Unlisten { listener: listened.id });
        }
        for owned in self.channels.drain(..) {
            let channel = owned.channel;
            data.say(if owned.closing { Command::Close { channel } } else { Command::Abort { channel } });
            // Of one that never opened the machine waits for the listener.
            if let Some(listener) = owned.listener.filter(|_| !owned.told) {
                data.say(Command::Unlisten { listener: listener.id });
            }
        }
        self.circuits.forget(data)
    }
}

#[cfg(test)]
pub(crate) mod tests;
