//! The reserved channels of an LLC socket: see [`crate::llc::Socket::reserve`].
//!
//! A message is a unit behind two octets (`rota_wire::reserved`). Nothing here waits for the node but a
//! [`Reservation`], [`Reserved::listen`] and [`Reserved::end`]; how channels come, and how a poll hears of
//! them, is [`door`]'s affair.

mod door;

use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use rota_contract::Contract;
use rota_proto::LLC_BROADCAST as BROADCAST;
use rota_proto::llc::MESSAGE_OCTETS_MAX;
use rota_proto::llc::reserved::{RESERVED_HEADER_OCTETS, ReservedHeader, reserved_service};
use rota_shm::ChannelState;
use rota_shm::control::ControlName;
use rota_units::{Instant, Span};

use crate::llc::{Address, LlcError, ReceivedMessage};
use crate::node::{Node, OpenError, OpenRequest};
use crate::now;
use crate::overdue::Overdue;
use crate::receive::{self, RecvChannel, RecvError};
use crate::send::{SendChannel, SendError};
use crate::session::Sent;
use door::{Bell, Door, ring_for, system, watch};

/// Numbers of messages on channels begin here, out of the way of those that the socket's ring counts.
const FIRST_NUMBER: u64 = 1 << 63;
/// Messages that may wait between program and node; the node keeps more where the contract needs it.
const BUFFERS: u16 = 4;
/// The units that a channel has taken may need so long to leave when it is closed,
pub(crate) const DRAIN_MAX: Span = Span::from_millis(4_000);
/// and the node so long to confirm an end: together five seconds.
pub(crate) const ANSWER_MAX: Span = Span::from_millis(1_000);

/// One channel that came.
struct Incoming {
    channel: RecvChannel,
    thread: JoinHandle<()>,
}

/// One channel that was reserved.
struct Outgoing {
    to: Address,
    channel: SendChannel,
    /// Somebody was told that there is no room, and waits until there is.
    was_full: bool,
}

/// A channel that a socket is not put on yet, or no more: see [`crate::llc::Socket::reservation`]. Dropping
/// it closes the channel when what it has taken has left, which is waited for: five seconds at most.
pub struct Reservation {
    control: ControlName,
    sap: u8,
    to: Address,
    channel: Option<SendChannel>,
}

impl Reservation {
    pub(crate) fn new(control: &ControlName, sap: u8, to: Address) -> Self {
        Self { control: control.clone(), sap, to, channel: None }
    }

    pub(crate) fn socket(&self) -> u8 {
        self.sap
    }

    /// Asks admission, and waits for its answer, for seconds where the other station is silent.
    ///
    /// # Errors
    /// As [`crate::llc::Socket::reserve`]; [`LlcError::ReservedAlready`] where it was accepted before.
    pub fn open(&mut self, octets_max: u32, period: Span) -> Result<&Contract, LlcError> {
        let Self { sap, to, .. } = *self;
        if self.channel.is_some() {
            return Err(LlcError::ReservedAlready(to));
        }
        if octets_max as usize > MESSAGE_OCTETS_MAX {
            return Err(LlcError::PacketTooLarge { octets: octets_max as usize });
        }
        let header = RESERVED_HEADER_OCTETS as u32;
        let mut node = Node::connect(&self.control)?;
        let llc = node.status()?.llc;
        if to.node == BROADCAST || to.node == llc.node && to.node != 0 {
            return Err(LlcError::NotOneStation(to.node));
        }
        // By its MAC address: names may be given twice, and one station's name can be another's number.
        let peer = llc.peers.into_iter().find(|peer| peer.node == to.node);
        let station = peer.filter(|peer| peer.station != 0).ok_or(LlcError::NoStation(to.node))?.mac;
        let name = format!("llc {sap} to {}@{}", to.socket, to.node);
        let request = OpenRequest {
            buffers: BUFFERS,
            name: Some(name),
            // Messages wait for their slots, and their program is told when there is no room.
            overdue: Overdue::Keep,
            ..OpenRequest::new(&station, reserved_service(to.socket), octets_max + header, period)
        };
        let channel = node.open(&request).map_err(|error| match error {
            OpenError::Refused(mut refusal) => {
                refusal.counter_offer_octets = refusal.counter_offer_octets.saturating_sub(header);
                OpenError::Refused(refusal)
            }
            // The node's sentence names a service, of which a program that opens a socket knows nothing.
            OpenError::NoListener(_) => OpenError::NoListener(format!(
                "nobody listens to reserved channels at socket {}@{}; 'rota llc recv --reserved' does, or \
                 a program that calls listen_reserved",
                to.socket, to.node
            )),
            other => other,
        })?;
        Ok(self.channel.insert(channel).contract())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(channel) = self.channel.take() {
            Closing::begin(vec![channel], DRAIN_MAX).end();
        }
    }
}

pub(crate) struct Reserved {
    control: ControlName,
    sap: u8,
    /// Of the socket's own bell, the channels' bell, and the timer.
    all: Epoll,
    bell: Arc<Bell>,
    door: Option<Door>,
    incoming: Vec<Incoming>,
    /// Which of them is looked at first, so that a busy one leaves the others their turn.
    first: usize,
    /// Who sent the message in `message`, where the program has not taken it yet.
    from: Option<Address>,
    message: Vec<u8>,
    outgoing: Vec<Outgoing>,
    /// Rings a period after a program was told that there is no room.
    again: Option<TimerFd>,
    /// Somebody polls the descriptor.
    polled: Cell<bool>,
    sent: u64,
    unit: Vec<u8>,
    lost: u64,
}

impl Reserved {
    pub(crate) fn new(control: &ControlName, sap: u8, own_bell: BorrowedFd<'_>) -> Result<Self, LlcError> {
        let bell = Arc::new(Bell::new().map_err(LlcError::System)?);
        let all = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(system)?;
        watch(&all, own_bell, 0)?;
        watch(&all, bell.as_fd(), 0)?;
        let room = MESSAGE_OCTETS_MAX + RESERVED_HEADER_OCTETS;
        Ok(Self {
            control: control.clone(),
            sap,
            all,
            bell,
            door: None,
            incoming: Vec::new(),
            first: 0,
            from: None,
            message: Vec::with_capacity(room),
            outgoing: Vec::new(),
            again: None,
            polled: Cell::new(false),
            sent: 0,
            unit: Vec::with_capacity(room),
            lost: 0,
        })
    }

    // ---- sending ---------------------------------------------------------------------------------------

    pub(crate) fn put(&mut self, mut reservation: Reservation) -> Result<&Contract, LlcError> {
        let to = reservation.to;
        if self.has_channel(to) {
            return Err(LlcError::ReservedAlready(to));
        }
        let channel = reservation.channel.take().ok_or(LlcError::NotAccepted(to))?;
        self.outgoing.push(Outgoing { to, channel, was_full: false });
        Ok(self.outgoing[self.outgoing.len() - 1].channel.contract())
    }

    pub(crate) fn has_channel(&self, to: Address) -> bool {
        self.outgoing.iter().any(|outgoing| outgoing.to == to)
    }

    pub(crate) fn take_off(&mut self, to: Address) -> Option<Reservation> {
        let at = self.outgoing.iter().position(|outgoing| outgoing.to == to)?;
        let channel = Some(self.outgoing.swap_remove(at).channel);
        Some(Reservation { control: self.control.clone(), sap: self.sap, to, channel })
    }

    /// Begins to close every channel that was reserved, all within the time of one: closing a socket does not
    /// take the longer the more it has. All that they have taken has left then. The door closes meanwhile.
    pub(crate) fn begin_close(&mut self, drain_max: Span) -> Closing {
        self.door.iter().for_each(Door::leave);
        Closing::begin(self.outgoing.drain(..).map(|outgoing| outgoing.channel).collect(), drain_max)
    }

    /// The end of all, for which it is waited until then at most; what a silent node holds up ends by itself.
    pub(crate) fn end(mut self, closing: Closing, until: Instant) {
        closing.end();
        if let Some(door) = self.door.take() {
            door.close(until);
        }
        self.bell.end();
        let ended = self.incoming.drain(..).map(|Incoming { thread, .. }| thread);
        // All channels end before the first thread is waited for.
        for thread in ended.collect::<Vec<_>>() {
            let _ = thread.join();
        }
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
        // A program that has been served, or told that it never will be, waits no more.
        outgoing.was_full = matches!(sent, Err(LlcError::Busy(_)));
        if outgoing.was_full {
            let period = Span::from_nanos(outgoing.channel.contract().period_ns);
            self.ring_in(period);
        }
        Some(sent.map(|()| {
            self.sent += 1;
            // A program that polls must hear that an outcome is there: it never comes from the node.
            self.bell.ring();
            FIRST_NUMBER + self.sent - 1
        }))
    }

    /// Has the descriptor ring then: the node tells a sender's board of room, on which a poll cannot sleep.
    fn ring_in(&mut self, span: Span) {
        let made = match self.again.take() {
            Some(made) => made,
            None => {
                let Ok(made) = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK) else {
                    return;
                };
                if watch(&self.all, made.as_fd(), 0).is_err() {
                    return;
                }
                made
            }
        };
        let in_time = TimeSpec::from(std::time::Duration::from_nanos(span.as_nanos().max(1)));
        let _ = made.set(Expiration::OneShot(in_time), TimerSetTimeFlags::empty());
        self.again = Some(made);
    }

    /// True if a program that was told that there is no room is to try again: there is some now, or never
    /// will be.
    pub(crate) fn has_room_again(&mut self) -> bool {
        let mut found = false;
        for outgoing in self.outgoing.iter_mut().filter(|outgoing| outgoing.was_full) {
            let channel = &outgoing.channel;
            let is_over = matches!(channel.state(), ChannelState::Closed(_));
            if is_over || channel.waiting() < u64::from(channel.slots()) {
                outgoing.was_full = false;
                found = true;
            }
        }
        found
    }

    /// The shortest period of a channel that had no room: so long may a sleep be at most.
    pub(crate) fn room_within(&self) -> Option<Span> {
        let full = self.outgoing.iter().filter(|outgoing| outgoing.was_full);
        full.map(|outgoing| Span::from_nanos(outgoing.channel.contract().period_ns)).min()
    }

    // ---- receiving -------------------------------------------------------------------------------------

    /// `node` is the socket's connection to its node.
    pub(crate) fn listen(&mut self, node: BorrowedFd<'_>) -> Result<(), LlcError> {
        if self.door.is_none() {
            self.door = Some(Door::open(&self.control, reserved_service(self.sap), &self.bell, node)?);
        }
        Ok(())
    }

    pub(crate) fn is_listening(&self) -> bool {
        self.door.is_some()
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Something waits that is no message of a channel: a poll must see it.
    pub(crate) fn ring(&self) {
        self.bell.ring();
    }

    /// Takes what is on the bell, and the channels that came before.
    fn hear(&mut self) {
        self.bell.hear();
        // Its count is taken, so that it is readable no more; one that still runs goes on.
        let has_rung = self.again.as_ref().is_some_and(|again| nix::unistd::read(again, &mut [0; 8]).is_ok());
        if has_rung
            && self.polled.get()
            && let Some(period) = self.room_within()
        {
            // A program that asks for messages has heard it, and may poll again before it has tried to send.
            self.ring_in(period);
        }
        self.let_in();
    }

    /// Takes the channels that came; costs next to nothing when there are none.
    fn let_in(&mut self) {
        let arrived = self.door.as_ref().map(Door::take).unwrap_or_default();
        arrived.into_iter().for_each(|channel| self.take(channel));
    }

    /// The program has heard of every outcome; of messages that wait it is to hear still.
    pub(crate) fn no_outcomes(&mut self) {
        self.hear();
        if self.fetch(false) {
            self.bell.ring();
        }
    }

    /// Whether a message waits. Hears the bell before it says no.
    pub(crate) fn has_next(&mut self) -> bool {
        // First, so that channels which always have one do not keep later ones out.
        self.let_in();
        if self.fetch(false) {
            return true;
        }
        self.hear();
        self.fetch(true)
    }

    /// Has the oldest message of a channel in `message`, if there is one. With `doubting`, which costs a
    /// system call for each channel, those of a node that was killed and could say nothing end as well.
    fn fetch(&mut self, doubting: bool) -> bool {
        if self.from.is_some() {
            return true;
        }
        let mut left = self.incoming.len();
        while left > 0 {
            let at = self.first % self.incoming.len();
            let Incoming { channel, .. } = &mut self.incoming[at];
            let next = match doubting {
                true => channel.try_recv(&mut self.message).and_then(|next| next.ok_or(RecvError::TimedOut)),
                false => channel.recv(&mut self.message, Span::ZERO),
            };
            match next {
                Ok(receive::Received::Unit(told)) => {
                    self.lost = self.lost.saturating_add(told.lost_before);
                    match ReservedHeader::parse(&self.message) {
                        Ok((header, _)) if told.complete && header.destination == self.sap => {
                            let node = channel.peer().node;
                            self.from = Some(Address { socket: header.source, node });
                            self.first = at + 1;
                            return true;
                        }
                        // A message is whole or not there; and a unit without the two octets is none.
                        _ => self.lost = self.lost.saturating_add(1),
                    }
                }
                Err(RecvError::TimedOut) => {
                    self.first = at + 1;
                    left -= 1;
                }
                // Clean or not: what came has been delivered, and a datagram service tells no more.
                Ok(receive::Received::End(_)) | Err(_) => {
                    // Its thread has seen the end too, or ends with the socket where the node was killed.
                    drop(self.incoming.swap_remove(at));
                    left = self.incoming.len();
                }
            }
        }
        false
    }

    pub(crate) fn receive(&mut self, into: &mut [u8]) -> Option<ReceivedMessage> {
        if !self.has_next() {
            return None;
        }
        let from = self.from.take()?;
        let message = self.message.get(RESERVED_HEADER_OCTETS..).unwrap_or_default();
        let octets = message.len().min(into.len());
        into[..octets].copy_from_slice(&message[..octets]);
        let truncated = message.len() > octets;
        Some(ReceivedMessage { from, octets, truncated, priority: 0, reserved: true })
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

    fn take(&mut self, channel: RecvChannel) {
        let (bell, board) = (self.bell.clone(), channel.board());
        let thread = Builder::new().name(format!("rota-llc-{}", self.sap));
        // Without a thread the channel is dropped, and its sender hears that it is closed.
        if let Ok(thread) = thread.spawn(move || ring_for(&board, &bell)) {
            self.incoming.push(Incoming { channel, thread });
        }
    }
}

impl AsFd for Reserved {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.polled.set(true);
        self.all.0.as_fd()
    }
}

/// Channels whose end the node was asked for. They are freed whatever it answers, and when this is dropped.
pub(crate) struct Closing {
    asked: Vec<(SendChannel, Sent)>,
    until: Instant,
}

impl Closing {
    /// Waits for each as long as the units that wait may take, and a little, but for all no longer than that;
    /// then asks for the end of all. So the receiver of one that has died costs no other its messages: the
    /// node answers for that one only when it has asked it in vain.
    fn begin(channels: Vec<SendChannel>, drain_max: Span) -> Self {
        let drained = now() + drain_max;
        let mut channels = channels;
        channels.retain(|channel| {
            let Contract { period_ns, bound_ns, .. } = *channel.contract();
            let units = channel.waiting().saturating_add(1);
            let drain = Span::from_nanos(period_ns.saturating_mul(units).saturating_add(bound_ns));
            // One that has ended, or whose node has, needs nobody to end it.
            channel.drain(drain.min(drained.since(now()))).is_ok()
        });
        let ask = |channel: SendChannel| {
            let asked = channel.ask_to_close();
            (channel, asked)
        };
        let asked = channels.into_iter().map(ask).collect();
        Self { asked, until: now() + ANSWER_MAX }
    }

    /// Waits for the answers, as long as for one.
    fn end(self) {
        for (mut channel, asked) in self.asked {
            // Late when the receiver or the node is silent. The channel is freed all the same.
            let _ = channel.closed_within(asked, self.until.since(now()));
        }
    }
}

fn hand_over(
    outgoing: &mut Outgoing,
    sap: u8,
    packet: &[u8],
    ack: bool,
    unit: &mut Vec<u8>,
) -> Result<(), LlcError> {
    let Outgoing { to, channel, .. } = outgoing;
    if ack {
        return Err(LlcError::AckOnReserved);
    }
    if packet.len() > MESSAGE_OCTETS_MAX {
        return Err(LlcError::PacketTooLarge { octets: packet.len() });
    }
    let mut header = [0; RESERVED_HEADER_OCTETS];
    ReservedHeader { source: sap, destination: to.socket }.emit(&mut header);
    unit.clear();
    unit.extend_from_slice(&header);
    unit.extend_from_slice(packet);
    match channel.try_send(unit, now()) {
        Ok(_) => Ok(()),
        // Only `WouldBlock` comes: `try_send` does not wait, and a channel with `Overdue::Keep` leaves out
        // nothing. A message that was left out would be lost, and `Busy` asks the program to try again.
        Err(SendError::WouldBlock | SendError::TimedOut | SendError::LeftOut) => {
            Err(LlcError::Busy(channel.slots()))
        }
        // What it carries by now: somebody may have changed it.
        Err(SendError::TooLong { octets_max, .. }) => Err(LlcError::LargerThanReserved {
            octets: packet.len(),
            octets_max: octets_max.saturating_sub(RESERVED_HEADER_OCTETS as u32),
        }),
        Err(SendError::Closed(cause)) => Err(LlcError::ReservationEnded { to: *to, cause }),
        Err(SendError::NodeGone) => Err(LlcError::Node(rota_shm::control::SocketError::Gone.into())),
    }
}
