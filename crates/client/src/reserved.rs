//! The reserved channels of an LLC socket: see [`crate::llc::Socket::reserve`].
//!
//! A message is a unit behind two octets (`rota_wire::reserved`). Units come on boards of their own, one for
//! each channel, and nobody can sleep on several: so each channel that came has a thread, which puts its
//! messages into the socket's inbox and an octet on its bell.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use rota_proto::llc::MESSAGE_OCTETS_MAX;
use rota_proto::llc::reserved::{RESERVED_HEADER_OCTETS, ReservedHeader, reserved_service};
use rota_shm::control::{ContractInfo, ControlName};
use rota_units::{Instant, Span};

use crate::llc::{Address, BROADCAST, LlcError, Received};
use crate::node::{Node, OpenError, OpenRequest};
use crate::now;
use crate::receive::{self, AcceptError, Listener, RecvChannel};
use crate::send::{SendChannel, SendError};
use crate::session::LOCAL_TIMEOUT;

/// Numbers of messages on channels begin here, out of the way of those that the socket's ring counts.
const FIRST_NUMBER: u64 = 1 << 63;
/// Messages that may wait for the program, as on the socket itself.
const INBOX_MAX: usize = 64;
/// Units that may wait between node and inbox, or between program and node.
const BUFFERS: u16 = 4;
/// A listener takes one channel. So many stand ready, for stations that reserve at the same time.
const AHEAD: usize = 4;
/// What an event of the epoll instance is of.
const OWN_BELL: u64 = 0;
const INBOX_BELL: u64 = 1;
const LISTENER: u64 = 2;
/// A thread whose channel was closed under it has seen so after this at the latest.
const LOOK_UP: Span = Span::from_millis(200);
/// How soon a node that gave no more listeners is asked again.
const REFILL_AGAIN: Span = Span::from_millis(200);

struct Message {
    from: Address,
    octets: Vec<u8>,
}

/// What the threads have received.
struct Inbox {
    messages: Mutex<VecDeque<Message>>,
    bell: UnixStream,
    lost: AtomicU64,
    is_over: AtomicBool,
}

impl Inbox {
    fn messages(&self) -> MutexGuard<'_, VecDeque<Message>> {
        // A queue is whole whoever died beside it.
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lose(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
    }

    fn put(&self, message: Message) {
        let mut messages = self.messages();
        let was_empty = messages.is_empty();
        if messages.len() == INBOX_MAX {
            // The oldest goes, as on the socket's own ring: news is worth more.
            messages.pop_front();
            self.lose(1);
        }
        messages.push_back(message);
        drop(messages);
        if was_empty {
            self.ring();
        }
    }

    fn ring(&self) {
        // It does not block, and where it is full there is something to hear already.
        let _ = (&self.bell).write(&[1]);
    }
}

/// One channel that came, and the listener that took it.
struct Incoming {
    channel: u64,
    listener: Listener,
    thread: JoinHandle<()>,
}

/// One channel that was reserved.
struct Outgoing {
    to: Address,
    octets_max: u32,
    channel: SendChannel,
}

pub(crate) struct Reserved {
    control: ControlName,
    sap: u8,
    /// Of the socket's own bell, the inbox's, and the listener.
    all: Epoll,
    bell: UnixStream,
    inbox: Arc<Inbox>,
    listeners: Vec<Listener>,
    is_listening: bool,
    /// When the node, which gave no more listeners, is asked again.
    refill_at: Instant,
    incoming: Vec<Incoming>,
    outgoing: Vec<Outgoing>,
    sent: u64,
    unit: Vec<u8>,
}

impl Reserved {
    pub(crate) fn new(control: &ControlName, sap: u8, own_bell: BorrowedFd<'_>) -> Result<Self, LlcError> {
        let (bell, rung) = UnixStream::pair().map_err(LlcError::System)?;
        for end in [&bell, &rung] {
            end.set_nonblocking(true).map_err(LlcError::System)?;
        }
        let all = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(system)?;
        watch(&all, own_bell, OWN_BELL)?;
        watch(&all, bell.as_fd(), INBOX_BELL)?;
        let inbox = Arc::new(Inbox {
            messages: Mutex::new(VecDeque::with_capacity(INBOX_MAX)),
            bell: rung,
            lost: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        Ok(Self {
            control: control.clone(),
            sap,
            all,
            bell,
            inbox,
            listeners: Vec::with_capacity(AHEAD),
            is_listening: false,
            refill_at: Instant::ZERO,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            sent: 0,
            unit: Vec::with_capacity(MESSAGE_OCTETS_MAX),
        })
    }

    // ---- sending ---------------------------------------------------------------------------------------

    pub(crate) fn reserve(
        &mut self,
        to: Address,
        octets_max: u32,
        period: Span,
    ) -> Result<&ContractInfo, LlcError> {
        if self.outgoing.iter().any(|outgoing| outgoing.to == to) {
            return Err(LlcError::ReservedAlready(to));
        }
        let header = RESERVED_HEADER_OCTETS as u32;
        let mut node = Node::connect(&self.control)?;
        let station = node.status()?.llc.peers.into_iter().find(|(address, _)| *address == to.node);
        let (_, station) =
            station.filter(|(address, _)| *address != BROADCAST).ok_or(LlcError::NoStation(to.node))?;
        let name = format!("llc {} to {}@{}", self.sap, to.socket, to.node);
        let request = OpenRequest {
            buffers: BUFFERS,
            name: Some(name),
            ..OpenRequest::new(&station, reserved_service(to.socket), octets_max + header, period)
        };
        let channel = node.open(&request).map_err(|error| match error {
            OpenError::Refused(mut refusal) => {
                refusal.counter_offer_octets = refusal.counter_offer_octets.saturating_sub(header);
                OpenError::Refused(refusal)
            }
            // What the node says names a service, of which whoever opens a socket knows nothing.
            OpenError::NoListener(_) => OpenError::NoListener(format!(
                "nobody listens to reserved channels at socket {}@{}; 'rota llc recv --reserved' does, or \
                 a program that calls listen_reserved",
                to.socket, to.node
            )),
            other => other,
        })?;
        self.outgoing.push(Outgoing { to, octets_max, channel });
        Ok(self.outgoing[self.outgoing.len() - 1].channel.contract())
    }

    pub(crate) fn release(&mut self, to: Address) -> bool {
        let at = self.outgoing.iter().position(|outgoing| outgoing.to == to);
        let found = at.map(|at| self.outgoing.swap_remove(at));
        found.is_some_and(|outgoing| {
            close(outgoing.channel);
            true
        })
    }

    /// The message's number where a channel is reserved to there, `None` where none is.
    pub(crate) fn transmit(
        &mut self,
        to: Address,
        packet: &[u8],
        ack: bool,
    ) -> Option<Result<u64, LlcError>> {
        let outgoing = self.outgoing.iter_mut().find(|outgoing| outgoing.to == to)?;
        let sent = hand_over(outgoing, self.sap, packet, ack, &mut self.unit);
        Some(sent.map(|()| {
            self.sent += 1;
            // Whoever polls must hear that an outcome is there: it never comes from the node.
            self.inbox.ring();
            FIRST_NUMBER + self.sent - 1
        }))
    }

    // ---- receiving -------------------------------------------------------------------------------------

    pub(crate) fn listen(&mut self) -> Result<(), LlcError> {
        while self.listeners.len() < AHEAD {
            let service = reserved_service(self.sap);
            let listener = Node::connect(&self.control)?.listen(service, None, BUFFERS)?;
            watch(&self.all, listener.as_fd(), LISTENER)?;
            self.listeners.push(listener);
            // From the first on: should the node give no more, channels come all the same.
            self.is_listening = true;
        }
        Ok(())
    }

    pub(crate) fn is_listening(&self) -> bool {
        self.is_listening
    }

    pub(crate) fn lost(&self) -> u64 {
        self.inbox.lost.load(Ordering::Relaxed)
    }

    /// Takes what is on the bell.
    fn hear(&mut self) {
        let mut away = [0; 64];
        while self.bell.read(&mut away).is_ok_and(|octets| octets > 0) {}
    }

    /// Something waits that is no message of a channel: a poll must see it.
    pub(crate) fn ring(&self) {
        self.inbox.ring();
    }

    /// The program has heard of every outcome; of messages that wait it is to hear still.
    pub(crate) fn no_outcomes(&mut self) {
        self.hear();
        if !self.inbox.messages().is_empty() {
            self.inbox.ring();
        }
    }

    /// Whether a message waits. Hears the bell and takes the channels that came before it says no.
    pub(crate) fn has_next(&mut self) -> bool {
        if !self.inbox.messages().is_empty() {
            return true;
        }
        if self.is_listening && self.listeners.len() < AHEAD && now() >= self.refill_at {
            self.incoming.retain(|incoming| !incoming.thread.is_finished());
            self.refill();
        }
        let mut events = [EpollEvent::empty(); AHEAD + 2];
        let count = self.all.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        for event in &events[..count] {
            match event.data() {
                INBOX_BELL => self.hear(),
                LISTENER => self.accept(),
                _ => {}
            }
        }
        !self.inbox.messages().is_empty()
    }

    pub(crate) fn receive(&mut self, into: &mut [u8]) -> Option<Received> {
        if !self.has_next() {
            return None;
        }
        let message = self.inbox.messages().pop_front()?;
        let octets = message.octets.len().min(into.len());
        into[..octets].copy_from_slice(&message.octets[..octets]);
        let truncated = message.octets.len() > octets;
        Some(Received { from: message.from, octets, truncated, priority: 0, reserved: true })
    }

    /// Sleeps until a bell rings, or a channel comes.
    pub(crate) fn wait(&self, timeout: Span) {
        // Rounded up, so that the last part of a millisecond is not spent looking.
        let millis = timeout.as_nanos().div_ceil(1_000_000);
        let timeout = PollTimeout::try_from(i32::try_from(millis).unwrap_or(i32::MAX));
        let mut watched = [PollFd::new(self.all.0.as_fd(), PollFlags::POLLIN)];
        // A signal cuts it short: the caller looks again.
        let _ = poll(&mut watched, timeout.unwrap_or(PollTimeout::MAX));
    }

    /// Has as many listeners ready again as the node gives; where it gives no more, those that are left must
    /// do until there may be room.
    fn refill(&mut self) {
        if self.listen().is_err() {
            self.refill_at = now() + REFILL_AGAIN;
        }
    }

    fn accept(&mut self) {
        self.incoming.retain(|incoming| !incoming.thread.is_finished());
        let mut at = 0;
        while at < self.listeners.len() {
            match self.listeners[at].accept(Span::ZERO) {
                Ok(channel) => {
                    let listener = self.listeners.swap_remove(at);
                    // What it hears from now on is of its channel, whose board tells it as well.
                    let _ = self.all.delete(listener.as_fd());
                    self.take(channel, listener);
                }
                Err(AcceptError::TimedOut { .. }) => at += 1,
                // A channel whose memory cannot be used: its sender hears of it when the listener closes. Of
                // the node's end the socket tells.
                Err(_) => drop(self.listeners.swap_remove(at)),
            }
        }
        self.refill();
    }

    fn take(&mut self, channel: RecvChannel, listener: Listener) {
        let peers = Node::connect(&self.control).and_then(|mut node| node.status());
        let peers = peers.map(|status| status.llc.peers).unwrap_or_default();
        let found = peers.into_iter().find(|(_, name)| *name == channel.peer().name);
        let node = found.map_or(0, |(address, _)| address);
        let (inbox, sap, id) = (self.inbox.clone(), self.sap, channel.id());
        let thread = Builder::new().name(format!("rota-llc-{sap}"));
        let started = thread.spawn(move || carry(channel, sap, node, &inbox));
        // Without a thread the channel was dropped, and its sender hears that it is closed.
        if let Ok(thread) = started {
            self.incoming.push(Incoming { channel: id, listener, thread });
        }
    }
}

impl AsFd for Reserved {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.all.0.as_fd()
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        for outgoing in self.outgoing.drain(..) {
            close(outgoing.channel);
        }
        self.inbox.is_over.store(true, Ordering::Relaxed);
        for incoming in self.incoming.drain(..) {
            incoming.listener.close_channel(incoming.channel);
            let _ = incoming.thread.join();
        }
    }
}

fn system(error: nix::errno::Errno) -> LlcError {
    LlcError::System(error.into())
}

fn watch(all: &Epoll, what: BorrowedFd<'_>, mark: u64) -> Result<(), LlcError> {
    all.add(what, EpollEvent::new(EpollFlags::EPOLLIN, mark)).map_err(system)
}

/// Waits as long as the units that wait may take, and a little, but for no one longer than for the node.
fn close(channel: SendChannel) {
    let ContractInfo { period_ns, bound_ns, .. } = *channel.contract();
    let units = channel.waiting().saturating_add(1);
    let drain = Span::from_nanos(period_ns.saturating_mul(units).saturating_add(bound_ns));
    let drain = drain.min(LOCAL_TIMEOUT);
    // It is freed whatever the answer is.
    let _ = channel.close(drain);
}

fn hand_over(
    outgoing: &mut Outgoing,
    sap: u8,
    packet: &[u8],
    ack: bool,
    unit: &mut Vec<u8>,
) -> Result<(), LlcError> {
    let Outgoing { to, octets_max, channel } = outgoing;
    let too_large = LlcError::LargerThanReserved { octets: packet.len(), octets_max: *octets_max };
    if ack {
        return Err(LlcError::AckOnReserved);
    }
    if packet.len() > *octets_max as usize {
        return Err(too_large);
    }
    let mut header = [0; RESERVED_HEADER_OCTETS];
    ReservedHeader { source: sap, destination: to.socket }.emit(&mut header);
    unit.clear();
    unit.extend_from_slice(&header);
    unit.extend_from_slice(packet);
    match channel.try_send(unit, now()) {
        Ok(_) => Ok(()),
        Err(SendError::WouldBlock | SendError::TimedOut) => Err(LlcError::Busy(u32::from(BUFFERS))),
        Err(SendError::TooLong { .. }) => Err(too_large),
        Err(SendError::Closed(cause)) => Err(LlcError::ReservationEnded { to: *to, cause }),
        Err(SendError::NodeGone) => Err(LlcError::Node(rota_shm::control::SocketError::Gone.into())),
    }
}

/// One channel's life: its units into the inbox until it ends, or the socket does.
fn carry(mut channel: RecvChannel, sap: u8, node: u8, inbox: &Inbox) {
    let mut unit = Vec::new();
    while !inbox.is_over.load(Ordering::Relaxed) {
        let told = match channel.recv(&mut unit, LOOK_UP) {
            Ok(receive::Received::Unit(told)) => told,
            Err(receive::RecvError::TimedOut) => continue,
            // Clean or not: what came is delivered, and a datagram service tells no more.
            Ok(receive::Received::End(_)) | Err(_) => return,
        };
        inbox.lose(told.lost_before);
        match ReservedHeader::parse(&unit) {
            Ok((header, message)) if told.complete && header.destination == sap => {
                let from = Address { socket: header.source, node };
                inbox.put(Message { from, octets: message.to_vec() });
            }
            // A message is whole or not there; and a unit without the two octets is none.
            _ => inbox.lose(1),
        }
    }
}
