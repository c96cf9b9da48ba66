//! The receiving end of channels.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Weak};

use rota_contract::{ChannelId, CloseCause, Contract, Granted, NodeId, Statistical, Tally, Withdrawn};
use rota_proto::OneWay;
use rota_shm::control::{Message, QueueInfo, RefusalInfo, Reply, Request, SocketError};
use rota_shm::{
    ApartShape, BoardView, ChannelCounter, ChannelKey, ChannelState, ClientSink, MemoryError, NextUnit,
    RxCounts, Waited, max_slice, open_sink_with,
};
use rota_units::{Instant, Span};

use crate::node::NodeError;
use crate::reattach::ListenOrigin;
use crate::session::{LOCAL_TIMEOUT, Session, unexpected};
use crate::wait::{NODE_GONE, WaitError, wait_for};
use crate::{now, sleep_until};

/// Why no channel was accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// None came in time.
    #[error("no channel to service {service} came in time")]
    TimedOut {
        /// The service.
        service: u16,
    },
    /// The node of this station is gone.
    #[error("the node of this station is gone; start 'rota node' here, then listen again")]
    NodeGone,
    /// The channel that [`Listener::answer`] took has ended before it was open; the listener is used up.
    #[error("channel {channel} was taken and never opened: {cause}")]
    NeverOpened {
        /// Which.
        channel: ChannelId,
        /// Why, as one sentence.
        cause: String,
    },
    /// A channel came whose memory cannot be used.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The station that was asked for the channel will send nothing: its program refused, or the channel was
    /// refused to it. Another listener is to ask again.
    #[error("{}", .0.sentence)]
    Refused(Box<RefusalInfo>),
    /// No station, or no program there, was found to send; or none answered.
    #[error("{0}")]
    NotThere(String),
    /// The control socket failed.
    #[error(transparent)]
    Socket(SocketError),
}

/// Why no unit was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecvError {
    /// None came in time.
    #[error("no unit came in time")]
    TimedOut,
    /// The stream broke off; every unit that arrived has been delivered.
    #[error("the stream broke off: {}", .0.sentence())]
    Broken(CloseCause),
    /// The node of this station is gone; every unit that arrived has been delivered.
    #[error("{NODE_GONE}")]
    NodeGone,
}

/// What a receive call gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// One unit; its octets are in the caller's buffer.
    Unit(Unit),
    /// The sender closed the channel, and every unit that arrived has been delivered.
    End(End),
}

/// One received unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unit {
    /// Its number: how many units its sender handed over or left out before it.
    pub number: u64,
    /// Whether all of it is there.
    pub complete: bool,
    /// Octets that are missing; they are zero in the buffer.
    pub missing_octets: u32,
    /// The sender's schedule for it, ns of CLOCK_MONOTONIC of the *sender's* host: only differences mean
    /// something, unless both ends share a machine.
    pub schedule_ns: u64,
    /// When its last fragment reached this host, where the kernel stamped it.
    pub arrived_at: Option<Instant>,
    /// When the node took that fragment from the kernel.
    pub dequeued_at: Instant,
    /// Units since the previous one of which nothing could be delivered.
    pub lost_before: u64,
    /// Units since the previous one that were passed over because this one is newer.
    pub skipped_before: u64,
}

/// A stream's intended end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct End {
    /// Units that the sender had handed over or left out in all, where the node knows.
    pub units_sent: Option<u64>,
    /// Units after the last delivered one that were lost, where the node knows.
    pub lost_after: Option<u64>,
    /// The counts of all units of the channel; see [`RecvChannel::tally`].
    pub tally: Tally,
}

/// Who sends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// Its node, which never changes as names and numbers may; [`NodeId::UNKNOWN`] where it had not announced
    /// itself when the channel was opened.
    pub node_id: NodeId,
    /// The address of its station on this segment.
    pub mac: String,
    /// Station name.
    pub name: String,
    /// Its node address of link control; 0 where it has none.
    pub node: u8,
}

/// A channel that waits for the answer of its receiving program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asked {
    /// Its id, the same at both ends.
    pub channel: ChannelId,
    /// The promise that would be made; across segments the delay of the way alone.
    pub contract: Contract,
    /// The part of its way for which nothing is guaranteed; none where all is.
    pub withdrawn: Option<Withdrawn>,
    /// The sender.
    pub peer: Peer,
}

/// Takes channels that lead to a service.
pub struct Listener {
    session: Arc<Session>,
    service: u16,
    origin: ListenOrigin,
    /// The channel about which it was asked, and which it took.
    taken: Option<ChannelId>,
}

impl Listener {
    pub(crate) fn new(session: Arc<Session>, service: u16, origin: ListenOrigin) -> Self {
        Self { session, service, origin, taken: None }
    }

    pub(crate) fn origin(&self) -> &ListenOrigin {
        &self.origin
    }

    /// The service that it takes channels for.
    pub fn service(&self) -> u16 {
        self.service
    }

    /// Waits for the next channel.
    ///
    /// # Errors
    /// [`AcceptError`]; after [`AcceptError::TimedOut`] and [`AcceptError::Memory`] one may go on.
    pub fn accept(&mut self, timeout: Span) -> Result<RecvChannel, AcceptError> {
        let give_up = now() + timeout;
        loop {
            let message = self.next(give_up)?;
            let descriptors = message.descriptors;
            if let Reply::Closed { channel, cause, .. } = &message.body
                && self.taken == Some(*channel)
            {
                let (channel, cause) = (*channel, cause.to_string());
                return Err(AcceptError::NeverOpened { channel, cause });
            }
            // Anything else is news about channels accepted before, which their boards tell as well.
            if let Reply::Accepted {
                channel,
                from_node_id: node_id,
                from_mac: mac,
                from_name: name,
                from_node: node,
                before,
                contract,
                queue,
                no_queue,
            } = message.body
            {
                let shape = queue.map(|info| shape_of(&info, &contract));
                let queue = match (&shape, no_queue) {
                    (Some(_), _) => Queue::Kernel,
                    (None, why) => Queue::Node { why },
                };
                let sink = open_sink_with(descriptors, shape)?;
                let peer = Peer { node_id, mac, name, node };
                let session = self.session.clone();
                let came = Tally::default();
                let (newest, lost_after) = (false, None);
                return Ok(RecvChannel {
                    session,
                    channel,
                    granted: contract,
                    peer,
                    before,
                    sink,
                    newest,
                    came,
                    lost_after,
                    queue,
                });
            }
        }
    }

    /// Waits for the next channel about which a listener of [`Node::listen_asked`] is asked.
    /// [`Self::answer`] answers.
    ///
    /// # Errors
    /// As [`Self::accept`].
    ///
    /// [`Node::listen_asked`]: crate::Node::listen_asked
    pub fn asked(&mut self, timeout: Span) -> Result<Asked, AcceptError> {
        let give_up = now() + timeout;
        loop {
            if let Reply::Asked {
                channel,
                from_node_id: node_id,
                from_mac: mac,
                from_name: name,
                from_node: node,
                contract,
            } = self.next(give_up)?.body
            {
                let peer = Peer { node_id, mac, name, node };
                let Granted { contract, withdrawn, .. } = contract;
                return Ok(Asked { channel, contract, withdrawn, peer });
            }
        }
    }

    /// Takes a channel about which [`Self::asked`] has told, or denies it; finally. The node waits for an
    /// answer for a second, and denies then; where the sender has several receivers sooner, with 16 of them
    /// after three eighths of a second. [`Self::accept`] gives a channel that was taken, once it is
    /// open. Either way it was the one channel of this listener.
    ///
    /// # Errors
    /// [`NodeError::NotThere`]: the sender has given the channel up, or that time is over.
    pub fn answer(&mut self, channel: ChannelId, accepts: bool) -> Result<(), NodeError> {
        match self.session.request(&Request::Answer { channel, accepts }, LOCAL_TIMEOUT)?.body {
            Reply::Done => {
                self.taken = accepts.then_some(channel);
                Ok(())
            }
            other => Err(unexpected(other)),
        }
    }

    fn next(&self, give_up: Instant) -> Result<Message<Reply>, AcceptError> {
        loop {
            match self.session.next(give_up.since(now())) {
                Err(SocketError::TimedOut(_)) if now() < give_up => {}
                Err(SocketError::TimedOut(_)) => return Err(AcceptError::TimedOut { service: self.service }),
                Err(SocketError::Gone) => return Err(AcceptError::NodeGone),
                Err(other) => return Err(AcceptError::Socket(other)),
                Ok(Message { body: Reply::NotInvited { refusal, is_absent }, .. }) => {
                    return Err(match is_absent {
                        true => AcceptError::NotThere(refusal.sentence),
                        false => AcceptError::Refused(Box::new(refusal)),
                    });
                }
                Ok(message) => return Ok(message),
            }
        }
    }
}

impl AsFd for Listener {
    /// Readable when a channel waits to be accepted, or the node is gone.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.session.as_fd()
    }
}

/// The receiving end of a channel.
pub struct RecvChannel {
    session: Arc<Session>,
    channel: ChannelId,
    granted: Granted,
    peer: Peer,
    before: u64,
    sink: ClientSink,
    newest: bool,
    /// The counts of the units that this program received or missed.
    came: Tally,
    /// Units lost after the last one, once they are in `came`: an end that is told again counts once.
    lost_after: Option<u64>,
    queue: Queue,
}

/// The filler of a receiving channel's queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Queue {
    /// The kernel, which verifies the headers of each frame. The receive call does the rest.
    Kernel,
    /// The node.
    Node {
        /// Why not the kernel, where the program has asked for that.
        why: Option<String>,
    },
}

/// The frames of a queue that the kernel fills, and how late their units are.
fn shape_of(info: &QueueInfo, granted: &Granted) -> ApartShape {
    let QueueInfo { octets, fragment_octets, one_clock, key } = *info;
    let mut clocks = OneWay::default();
    ApartShape {
        ring_octets: octets,
        fragment_octets,
        key: ChannelKey::new(key),
        bound: granted.bound(),
        delays: Box::new(move |arrived, schedule_ns| clocks.delay(arrived, schedule_ns, one_clock)),
    }
}

impl RecvChannel {
    /// The filler of its queue.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Frames that the kernel has put into its queue and whose data tag was wrong: nothing of them was
    /// believed.
    pub fn unproven(&self) -> u64 {
        self.sink.ring.unproven()
    }

    /// As [`wait_for`], where the kernel fills the queue: no word on the board tells of a frame there, and
    /// the kernel wakes this thread. Frames may come by the node nevertheless.
    fn wait_apart(&mut self, into: &mut Vec<u8>, timeout: Span) -> Result<NextUnit, WaitError> {
        let give_up = now() + timeout;
        let mut is_gone = false;
        loop {
            // The state is read before the queue: all that came before the end is in the queue then.
            let (seen, state) = (self.sink.board.event(), self.sink.board.state());
            let ring = &mut self.sink.ring;
            let next = if self.newest { ring.newest_unit(into) } else { ring.next_unit(into) };
            if let Some(next) = next {
                return Ok(next);
            }
            if let ChannelState::Closed(cause) = state {
                return Err(WaitError::Closed(cause));
            }
            if is_gone {
                return Err(WaitError::NodeGone);
            }
            let left = give_up.since(now());
            if left == Span::ZERO {
                return Err(WaitError::TimedOut);
            }
            let _: Waited = self.sink.wait(seen, left);
            // Only where nothing came: this asks the kernel.
            is_gone = self.session.is_gone();
        }
    }

    /// The channel's id, the same at its sender.
    pub fn id(&self) -> ChannelId {
        self.channel
    }

    /// What was promised to the sender.
    pub fn contract(&self) -> &Contract {
        &self.granted.contract
    }

    /// The same with the medium's own numbers, for people and tools.
    pub fn granted(&self) -> &Granted {
        &self.granted
    }

    /// The part of its way for which nothing is guaranteed, now; none where all is. Of a channel that has
    /// moved to another path it may be another one than at the opening.
    pub fn withdrawn(&self) -> Option<Withdrawn> {
        self.session.newest(self.channel).unwrap_or(self.granted).withdrawn
    }

    /// True if the contract has changed since the last call, since somebody has asked for that or the channel
    /// has moved to another path: the contract that then stands.
    pub fn changed(&mut self) -> Option<&Granted> {
        let newest = self.session.take_changed(self.channel);
        self.granted = newest.filter(|granted| *granted != self.granted)?;
        Some(&self.granted)
    }

    /// The promise of the statistical class; none in the guaranteed one.
    pub fn statistical(&self) -> Option<Statistical> {
        self.granted.statistical
    }

    /// Who sends.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The node of the sender. Where it was unknown when the channel came, its node is asked, for so long.
    pub(crate) fn sender(&self, patience: Span) -> NodeId {
        let give_up = now() + patience;
        let mut known = self.peer.node_id;
        while !known.is_known() && now() < give_up {
            let show = Request::Show { channel: self.channel };
            match self.session.request(&show, give_up.since(now())) {
                Ok(Message { body: Reply::Channel(detail), .. }) => known = detail.info.peer_node_id,
                Ok(_) | Err(_) => return known,
            }
            if !known.is_known() {
                sleep_until(now() + Span::from_millis(10));
            }
        }
        known
    }

    /// Units that the sender had handed over or left out on the channels that this one continues
    /// ([`crate::SendChannel::reattach`]); 0 for a new stream.
    pub fn units_before(&self) -> u64 {
        self.before
    }

    /// The connection that it came by, for whoever throws away what the node tells there.
    pub(crate) fn session(&self) -> Weak<Session> {
        Arc::downgrade(&self.session)
    }

    /// Its connection and its memory, for who waits or polls.
    pub(crate) fn parts(&self) -> (&Session, &ClientSink) {
        (&self.session, &self.sink)
    }

    /// What changes when something has come or ended.
    pub(crate) fn board(&self) -> BoardView {
        self.sink.board.clone()
    }

    /// From now on every receive gives the newest unit that is there and passes over older ones, or not.
    pub fn set_newest(&mut self, newest: bool) {
        self.newest = newest;
    }

    /// Waits for the next unit, whose octets replace what `into` held. A unit of which something is missing
    /// is delivered as such, once its last fragment, a newer unit, or the end has come.
    ///
    /// # Errors
    /// [`RecvError`].
    pub fn recv(&mut self, into: &mut Vec<u8>, timeout: Span) -> Result<Received, RecvError> {
        let newest = self.newest;
        let next = if self.sink.ring.is_apart() {
            self.wait_apart(into, timeout)
        } else {
            let ClientSink { ring, board } = &mut self.sink;
            wait_for(board, &self.session, timeout, || {
                if newest { ring.newest_unit(into) } else { ring.next_unit(into) }
            })
        };
        match next {
            Ok(next) => Ok(Received::Unit(self.counted(unit(next)))),
            Err(WaitError::TimedOut) => Err(RecvError::TimedOut),
            Err(WaitError::Closed(cause)) => self.ended(into, Ok(cause)),
            Err(WaitError::NodeGone) => self.ended(into, Err(RecvError::NodeGone)),
        }
    }

    /// As [`RecvChannel::recv`], but never waits; `None` when nothing is there.
    ///
    /// # Errors
    /// [`RecvError::Broken`] or [`RecvError::NodeGone`].
    pub fn try_recv(&mut self, into: &mut Vec<u8>) -> Result<Option<Received>, RecvError> {
        match self.recv(into, Span::ZERO) {
            Err(RecvError::TimedOut) if self.session.is_gone() => {
                self.ended(into, Err(RecvError::NodeGone)).map(Some)
            }
            Err(RecvError::TimedOut) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Units of the channel as the sender states them at its end, also where that end was no clean one.
    pub fn units_stated(&self) -> Option<u64> {
        self.sink.board.final_units()
    }

    /// The same of a channel that has ended. A sender whose station fell silent, and is back, states its
    /// units after the end: waits for that, at most for `patience`, and not where its node has died or is
    /// beyond the segment.
    pub fn units_stated_within(&self, patience: Span) -> Option<u64> {
        let (board, give_up) = (&self.sink.board, now() + patience);
        loop {
            let seen = board.event();
            let (stated, left) = (board.final_units(), give_up.since(now()));
            if stated.is_some() || board.is_final() || left == Span::ZERO || self.session.is_gone() {
                return stated;
            }
            board.wait(seen, left.min(max_slice()));
        }
    }

    /// Of these: units that waited at the sender when the channel ended early, and never left it. They are
    /// among the lost ones, and nothing was promised for them.
    pub fn units_unsent(&self) -> u64 {
        self.sink.board.unsent()
    }

    /// The counts of the channel's units so far. `units`, `lost` and `incomplete` count the units that this
    /// program received or missed. `late` and `latest_by_ns` come from the node, which has the kernel's
    /// stamps, and so does `unread`: a program that is too slow loses units that its node had received, and
    /// its node reports them to the sender. Units passed over for newer ones count.
    pub fn tally(&self) -> Tally {
        if let Some(stated) = self.sink.ring.stated() {
            return Tally { late: stated.late, latest_by_ns: stated.latest_by_ns, unread: 0, ..self.came };
        }
        let Tally { late, latest_by_ns, unread, .. } = self.sink.board.tally();
        Tally { late, latest_by_ns, unread, ..self.came }
    }

    fn counted(&mut self, unit: Unit) -> Unit {
        let came = &mut self.came;
        // Numbers of units are the sending station's word: none of them makes a sum overflow.
        came.lost = came.lost.saturating_add(unit.lost_before);
        let whole = unit.skipped_before.saturating_add(u64::from(unit.complete));
        came.units = came.units.saturating_add(whole);
        came.incomplete = came.incomplete.saturating_add(u64::from(!unit.complete));
        unit
    }

    /// What was lost, skipped or refused so far.
    pub fn counts(&self) -> RxCounts {
        self.sink.ring.counts()
    }

    /// Of the lost units of [`RecvChannel::tally`]: those after the last one that came, once the end was
    /// received. Where its program died these are units that had left, were left out, or were late already.
    pub fn lost_after(&self) -> u64 {
        self.lost_after.unwrap_or(0)
    }

    /// Units that the sender had handed over or left out in all, once the channel has ended and where the
    /// node knows.
    pub fn units_sent(&self) -> Option<u64> {
        self.sink.board.final_units()
    }

    /// Where the channel is in its life.
    pub fn state(&self) -> ChannelState {
        self.sink.board.state()
    }

    /// One of the channel's counters.
    pub fn counter(&self, counter: ChannelCounter) -> u64 {
        self.sink.board.counter(counter)
    }

    /// The ring is empty and nothing more will come: the last unit's fragments first, then the end.
    fn ended(
        &mut self,
        into: &mut Vec<u8>,
        cause: Result<CloseCause, RecvError>,
    ) -> Result<Received, RecvError> {
        let ClientSink { ring, board } = &mut self.sink;
        if let Some(next) = ring.flush(into) {
            let next = unit(next);
            // Of a receiver that is taken out the unit that was on its way is in no count.
            if next.complete || !matches!(cause, Ok(CloseCause::TakenOut)) {
                return Ok(Received::Unit(self.counted(next)));
            }
        }
        let cause = cause?;
        let units_sent = board.final_units();
        let lost_after = units_sent.map(|units| units.saturating_sub(ring.expected()));
        if self.lost_after.is_none() {
            self.lost_after = Some(lost_after.unwrap_or(0));
            self.came.lost = self.came.lost.saturating_add(lost_after.unwrap_or(0));
        }
        if !cause.is_clean() {
            return Err(RecvError::Broken(cause));
        }
        Ok(Received::End(End { units_sent, lost_after, tally: self.tally() }))
    }
}

impl Drop for RecvChannel {
    fn drop(&mut self) {
        // The connection may live on for the listener and its other channels.
        let _ = self.session.tell(&Request::Close { channel: self.channel });
    }
}

fn unit(next: NextUnit) -> Unit {
    let NextUnit { unit, lost_before, skipped_before } = next;
    Unit {
        number: unit.number,
        complete: unit.missing_octets == 0,
        missing_octets: unit.missing_octets,
        schedule_ns: unit.schedule_ns,
        arrived_at: unit.arrived_at,
        dequeued_at: unit.dequeued_at,
        lost_before,
        skipped_before,
    }
}
