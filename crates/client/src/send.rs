//! The sending end of a channel.

use std::os::fd::{AsFd, BorrowedFd};

use rota_contract::{AskedChange, ChannelId, CloseCause, Contract, Granted, Tally, Withdrawn};
use rota_shm::control::{ReceiverInfo, Reply, Request};
use rota_shm::{ChannelCounter, ChannelState, ClientSource, TryWriteError};
use rota_units::{Instant, Span};

use crate::certificate::{self, CertificateError};
use crate::counts::{Before, Here, beyond};
use crate::node::{NodeError, OpenError, join, leave, modify, receivers};
use crate::now;
use crate::overdue::{Overdue, is_behind_by};
use crate::pacer::Pacer;
use crate::reattach::SendOrigin;
use crate::session::{LOCAL_TIMEOUT, Sent, Session};
use crate::wait::{NODE_GONE, WaitError, wait_for};

/// Why a unit was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The unit is longer than the contract allows.
    #[error("the unit has {octets} octets where the contract allows {octets_max}")]
    TooLong {
        /// The unit's length.
        octets: usize,
        /// The contract's.
        octets_max: u32,
    },
    /// All buffers are full, and the caller did not want to wait.
    #[error("all buffers of the channel are full")]
    WouldBlock,
    /// All buffers stayed full until the time was over.
    #[error("all buffers of the channel stayed full until the time was over")]
    TimedOut,
    /// The channel leaves out what is overdue ([`Overdue::Drop`]): units before it keep it from its slot.
    #[error(
        "the unit was left out and is lost: the one before it still waits for its slot; a program that must \
         lose none keeps overdue units"
    )]
    LeftOut,
    /// The channel has ended.
    #[error("the channel has ended: {}", .0.sentence())]
    Closed(CloseCause),
    /// The node of this station is gone, and the channel with it.
    #[error("{NODE_GONE}")]
    NodeGone,
}

/// Why a channel's end was not confirmed. It is freed all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseError {
    /// The channel had ended before.
    #[error("the channel had ended before: {}", .0.sentence())]
    Closed(CloseCause),
    /// The node of this station is gone.
    #[error("the node of this station went away while the channel was closing")]
    NodeGone,
    /// The node did not confirm.
    #[error("the node did not confirm the end of the channel in time")]
    Unconfirmed,
}

/// How a channel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloseReport {
    /// Whether every unit left before the end.
    pub drained: bool,
    /// Units of which the last frame has left.
    pub units_sent: u64,
    /// The counts of these units, as the receiver's node counted them.
    pub tally: Tally,
}

/// A slot of the channel: the stretch of a cycle in which its unit leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slot {
    /// How many slots the channel has had, this one included.
    pub number: u64,
    /// When it began.
    pub at: Instant,
}

/// The sending end of an admitted channel. Dropping it without [`SendChannel::close`] frees the
/// reservation and tells the receiver that the sender died.
pub struct SendChannel {
    session: Session,
    channel: ChannelId,
    granted: Granted,
    source: ClientSource,
    slot_seen: u64,
    overdue: Overdue,
    /// When the first unit was handed over to this channel's ring.
    first: Option<Instant>,
    before: Before,
    origin: SendOrigin,
    /// True if no unit leaves any more, because the program has ended the channel.
    is_over: bool,
}

impl SendChannel {
    pub(crate) fn new(
        session: Session,
        channel: ChannelId,
        granted: Granted,
        source: ClientSource,
        origin: SendOrigin,
    ) -> Self {
        let (overdue, before, is_over) = (origin.request.overdue, Before::default(), false);
        Self {
            session,
            channel,
            granted,
            source,
            slot_seen: 0,
            overdue,
            first: None,
            before,
            origin,
            is_over,
        }
    }

    pub(crate) fn origin(&self) -> &SendOrigin {
        &self.origin
    }

    /// Its connection and its memory, for who waits or polls.
    pub(crate) fn parts(&self) -> (&Session, &ClientSource) {
        (&self.session, &self.source)
    }

    /// Continues a channel that has ended: its lost units stay lost, and the units that still waited in it
    /// count as lost.
    pub(crate) fn go_on_for(&mut self, ended: &Self) {
        let (tally, units, left_out) = (ended.count(true), ended.handed_over(), ended.left_out());
        self.before = Before { tally, units, left_out, unknown: ended.unknown_of(tally) };
        // The stream goes on: its units between the two channels are lost.
        let (left_out, handed_over) = ended.beyond();
        self.leave_out(left_out.saturating_add(handed_over));
    }

    /// Units that this program left out, and handed over, when its node had ended the channel already: they
    /// are no units of the channel, and neither node counts them.
    fn beyond(&self) -> (u64, u64) {
        let ClientSource { ring, board, .. } = &self.source;
        board.final_units().map_or((0, 0), |units| {
            let of_channel = board.units_sent().saturating_add(board.unsent());
            let handed_over = ring.written().saturating_sub(of_channel);
            beyond((ring.left_out(), ring.written()), units, handed_over)
        })
    }

    /// The channel's id.
    pub fn id(&self) -> ChannelId {
        self.channel
    }

    /// What was promised, as far as this program has been told.
    pub fn contract(&self) -> &Contract {
        &self.granted.contract
    }

    /// The same with the medium's own numbers, for people and tools.
    pub fn granted(&self) -> &Granted {
        &self.granted
    }

    /// The certificate of its promise, as JSON text that `rota check` reads: what its nodes assume, and each
    /// number that the bound follows from. It is that of the path and the contract at present.
    ///
    /// # Errors
    /// [`CertificateError::None`] with the reason where it has none: nothing is guaranteed on a part of
    /// its way, or its promise rests on what no number shows.
    pub fn certificate(&self) -> Result<String, CertificateError> {
        let _ = self.session.discard();
        certificate::of_channel(&self.session, self.channel)
    }

    /// Asks for units of another size, up to the room the channel was opened with. Units keep leaving in time
    /// meanwhile. A program that asks for less should have stopped sending more.
    ///
    /// # Errors
    /// [`OpenError::Refused`] with the margin and what would be granted; the contract then stays as it was.
    pub fn modify(&mut self, unit_octets_max: u32) -> Result<&Contract, OpenError> {
        self.change(&AskedChange::of_size(unit_octets_max))
    }

    /// The same for any part of the contract: period, average, delay and jitter, too. On one segment only the
    /// size of units may change. A unit that is put from now on keeps the new contract.
    ///
    /// # Errors
    /// As [`Self::modify`].
    pub fn change(&mut self, change: &AskedChange) -> Result<&Contract, OpenError> {
        let _ = self.session.discard();
        self.granted = modify(&self.session, self.channel, change)?;
        self.session.forget_changed(self.channel);
        Ok(&self.granted.contract)
    }

    /// True if it was opened to several receivers.
    pub fn has_several(&self) -> bool {
        self.origin.request.to.contains(',')
    }

    /// The receivers of a channel that was opened to several (`to` of its request has commas): who is in and
    /// who is not, with counts. Empty where it has one. It may be asked after [`SendChannel::finish`], too.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn receivers(&self) -> Result<Vec<ReceiverInfo>, NodeError> {
        let _ = self.session.discard();
        receivers(&self.session, self.channel)
    }

    /// Receivers of a channel that was opened to several that have come, were refused or have left since the
    /// last call: how it stands with each of them now. Also those of which this program has asked.
    pub fn receivers_changed(&mut self) -> Vec<ReceiverInfo> {
        self.session.take_receivers(self.channel)
    }

    /// Adds a receiver to a channel that was opened to several: the promise to it. Its first unit is the next
    /// one that comes.
    ///
    /// # Errors
    /// [`OpenError::Refused`] when its branch does not fit; the others receive on.
    pub fn join(&mut self, to: &str) -> Result<Span, OpenError> {
        let _ = self.session.discard();
        join(&self.session, self.channel, to)
    }

    /// Takes a receiver out of it: see [`crate::Node::leave_channel`].
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn leave(&mut self, to: &str) -> Result<(), NodeError> {
        leave(&self.session, self.channel, to)
    }

    /// True if the contract has changed since the last call, since somebody else has asked for that or the
    /// channel has moved to another path: the contract that then stands.
    pub fn changed(&mut self) -> Option<&Contract> {
        // It is told of its own changes once more.
        let newest = self.session.take_changed(self.channel);
        self.granted = newest.filter(|granted| *granted != self.granted)?;
        Some(&self.granted.contract)
    }

    /// The part of the way for which nothing is guaranteed, now; none where all is. Of a channel that has
    /// moved to another path it may be another one than at the opening.
    pub fn withdrawn(&self) -> Option<Withdrawn> {
        self.session.newest(self.channel).unwrap_or(self.granted).withdrawn
    }

    /// Whether the contract carries a unit of so many octets, if need be the one that stands by now.
    fn carries(&mut self, octets: usize) -> Result<(), SendError> {
        let fits = |contract: &Contract| octets <= contract.unit_octets_max as usize;
        if fits(&self.granted.contract) || self.changed().is_some_and(fits) {
            return Ok(());
        }
        Err(SendError::TooLong { octets, octets_max: self.granted.contract.unit_octets_max })
    }

    /// Sets the policy for overdue units from now on.
    pub fn set_overdue(&mut self, overdue: Overdue) {
        self.overdue = overdue;
        // After a reattach the stream continues with the same policy.
        self.origin.request.overdue = overdue;
    }

    /// True if a unit handed over now would be late, because units before it wait and keep it from its own
    /// slot. Before the first slot of all, units are in time until the first one is behind its bound. False
    /// for a channel that has ended: a wait for its slots would never end, and `send` returns the cause.
    pub fn is_behind(&self) -> bool {
        self.is_behind_by(now(), Span::ZERO)
    }

    /// The same for a unit that may leave by so much later.
    pub(crate) fn is_behind_by(&self, now: Instant, slack: Span) -> bool {
        // The slot first: of one that is known, the units that left in it do not wait any more.
        let newest = self.source.board.slot();
        let slots = (newest, self.first.unwrap_or(now));
        self.ended().is_none() && is_behind_by(&self.granted, slots, self.waiting(), (now, slack))
    }

    /// Why no unit is taken any more.
    pub(crate) fn ended(&self) -> Option<SendError> {
        match self.source.board.state() {
            ChannelState::Closed(cause) => Some(SendError::Closed(cause)),
            _ => self.session.is_gone().then_some(SendError::NodeGone),
        }
    }

    /// The program itself has left out so many units, because their turns had passed before it ran again:
    /// they have numbers, and count as lost at both ends. The next unit tells of them, or the end.
    pub fn leave_out(&mut self, units: u64) {
        self.source.ring.leave_out(units);
    }

    /// Units left out so far because they were overdue, on this channel and on those that it continues. After
    /// the end of the channel there is nothing to be left out.
    pub fn left_out(&self) -> u64 {
        self.before.left_out.saturating_add(self.source.ring.left_out() - self.beyond().0)
    }

    /// Hands over one unit, waiting for a free buffer as long as it takes. `schedule` is when the unit is
    /// due by the sender's own plan; it travels with the unit. Returns the unit's number: how many units of
    /// this channel were handed over or left out before it.
    ///
    /// With the default policy ([`Overdue::Drop`]) a unit is left out that units waiting before it keep from
    /// its own slot. With [`Overdue::Keep`] it waits behind them.
    ///
    /// # Errors
    /// [`SendError::LeftOut`], with the default policy only: the unit counts as lost. The channel
    /// goes on: the program continues with its next unit, and does not hand over this one again.
    ///
    /// [`SendError::TooLong`], [`SendError::Closed`] or [`SendError::NodeGone`]: the unit was not taken.
    pub fn send(&mut self, unit: &[u8], schedule: Instant) -> Result<u64, SendError> {
        self.send_timeout(unit, schedule, Span::MAX)
    }

    /// As [`SendChannel::send`], but waits at most for `timeout`.
    ///
    /// # Errors
    /// Those of [`SendChannel::send`], [`SendError::LeftOut`] among them, and [`SendError::TimedOut`].
    pub fn send_timeout(&mut self, unit: &[u8], schedule: Instant, timeout: Span) -> Result<u64, SendError> {
        match self.try_send(unit, schedule) {
            Err(SendError::WouldBlock) => {}
            done => return done,
        }
        let ClientSource { ring, board, .. } = &mut self.source;
        let written = wait_for(board, &self.session, timeout, || match ring.try_write(unit, schedule) {
            Err(TryWriteError::Full { .. }) => None,
            other => Some(other),
        });
        match written {
            Ok(answer) => self.written(answer),
            Err(WaitError::TimedOut) => Err(SendError::TimedOut),
            Err(WaitError::Closed(cause)) => Err(SendError::Closed(cause)),
            Err(WaitError::NodeGone) => Err(SendError::NodeGone),
        }
    }

    /// As [`SendChannel::send`], but never waits.
    ///
    /// # Errors
    /// Those of [`SendChannel::send`], [`SendError::LeftOut`] among them, and [`SendError::WouldBlock`].
    pub fn try_send(&mut self, unit: &[u8], schedule: Instant) -> Result<u64, SendError> {
        // A dead node takes nothing out of the ring: its buffers would fill before anybody knew.
        if let Some(ended) = self.ended() {
            return Err(ended);
        }
        self.carries(unit.len())?;
        if self.overdue == Overdue::Drop && self.is_behind() {
            self.leave_out(1);
            return Err(SendError::LeftOut);
        }
        let answer = self.source.ring.try_write(unit, schedule);
        self.written(answer)
    }

    /// Waits for the next slot of the channel; on a link, where a slot comes with a unit only, for the end of
    /// the next unit's. On a segment of RETHER this locks a live source to the cycle: a unit handed over a
    /// quarter of a period before its slot leaves in it. Slots that passed between two calls are not
    /// returned later; the number tells how many there were.
    ///
    /// # Errors
    /// [`WaitError`].
    pub fn wait_slot(&mut self, timeout: Span) -> Result<Slot, WaitError> {
        let seen = self.slot_seen;
        let board = &self.source.board;
        let mark =
            wait_for(board, &self.session, timeout, || board.slot().filter(|slot| slot.number > seen))?;
        self.slot_seen = mark.number;
        Ok(Slot { number: mark.number, at: mark.at })
    }

    /// The newest slot so far, without waiting.
    pub fn newest_slot(&self) -> Option<Slot> {
        self.source.board.slot().map(|mark| Slot { number: mark.number, at: mark.at })
    }

    /// A pacer locked to this channel's slots; waits for the first of them. On a link, which serves a unit as
    /// soon as it waits, the turns follow this host's clock from now on.
    ///
    /// # Errors
    /// [`WaitError`].
    pub fn pacer(&mut self, timeout: Span) -> Result<Pacer, WaitError> {
        let period = Span::from_nanos(self.granted.contract.period_ns.max(1));
        let Some(rether) = &self.granted.rether else {
            return Ok(Pacer::beside_slots(period, now(), now()));
        };
        let cycle = Span::from_nanos(rether.cycle_ns);
        let slot = self.wait_slot(timeout)?;
        if self.granted.contract.extra_ppm > 0 {
            return Ok(Pacer::beside_slots(period, slot.at, now()));
        }
        Ok(Pacer::locked_every(period, cycle, slot.at, now()))
    }

    /// Tells a pacer about the newest slot, if there was one since the last call: to be called once in each
    /// turn, so that the pacer follows the cycle.
    pub fn follow(&mut self, pacer: &mut Pacer) {
        let seen = self.slot_seen;
        if let Some(slot) = self.newest_slot().filter(|slot| slot.number > seen) {
            self.slot_seen = slot.number;
            pacer.observe_slot(slot.at);
        }
    }

    /// Units of which the last frame has left this station.
    pub fn send_progress(&self) -> u64 {
        self.source.board.units_sent()
    }

    /// Waits until `units` units have left this station.
    ///
    /// # Errors
    /// [`WaitError`].
    pub fn wait_progress(&self, units: u64, timeout: Span) -> Result<u64, WaitError> {
        let board = &self.source.board;
        let enough = || Some(board.units_sent()).filter(|&sent| sent >= units);
        wait_for(board, &self.session, timeout, enough)
    }

    /// Waits until every unit handed over has left.
    ///
    /// # Errors
    /// [`WaitError`].
    pub fn wait_drained(&self, timeout: Span) -> Result<(), WaitError> {
        wait_for(&self.source.board, &self.session, timeout, || (self.unsent() == 0).then_some(()))
    }

    /// Waits until the channel ends without being closed here: the cause, or `None` when the time is over.
    ///
    /// # Errors
    /// [`SendError::NodeGone`].
    pub fn wait_end(&self, timeout: Span) -> Result<Option<CloseCause>, SendError> {
        match wait_for(&self.source.board, &self.session, timeout, || None::<()>) {
            Ok(()) | Err(WaitError::TimedOut) => Ok(None),
            Err(WaitError::Closed(cause)) => Ok(Some(cause)),
            Err(WaitError::NodeGone) => Err(SendError::NodeGone),
        }
    }

    /// The counts of the units so far, as the receiver's node counted them: late, lost and incomplete units.
    /// Units left out here ([`SendChannel::left_out`]) count as lost, and so do units that still waited when
    /// the channel ended. The receiver's node reports once a second if something went wrong, and at the end;
    /// see [`CloseReport`]. While the channel is open, `units` are those that have left and were not reported
    /// as lost or incomplete. At its end only those count that its receiver's node has confirmed: the others
    /// are [`SendChannel::unknown`]. After a [`SendChannel::reattach`] the units before it still count.
    pub fn tally(&self) -> Tally {
        self.count(self.has_ended())
    }

    /// Units that have left, but of which the receiver's node has reported nothing before it fell silent or
    /// this station's node ended. Together with the units, the lost and the incomplete ones of
    /// [`SendChannel::tally`] they are all units. 0 while the channel is open, and after an end that the
    /// receiver's node has confirmed.
    pub fn unknown(&self) -> u64 {
        if self.has_ended() { self.unknown_of(self.tally()) } else { self.before.unknown }
    }

    fn has_ended(&self) -> bool {
        let is_closed = matches!(self.source.board.state(), ChannelState::Closed(_));
        self.is_over || is_closed || self.session.is_gone()
    }

    /// What these counts lack of all units.
    fn unknown_of(&self, tally: Tally) -> u64 {
        let known = tally.units.saturating_add(tally.lost).saturating_add(tally.incomplete);
        self.handed_over().saturating_add(self.left_out()).saturating_sub(known)
    }

    /// The same counts. Where the channel is over, units, lost, incomplete and unknown ones are all units.
    fn count(&self, is_over: bool) -> Tally {
        let ClientSource { ring, board, .. } = &self.source;
        let here = Here {
            sent: board.units_sent(),
            left_out: ring.left_out() - self.beyond().0,
            waiting: if is_over { self.unsent() } else { 0 },
            is_closed: matches!(board.state(), ChannelState::Closed(_)),
            is_over,
        };
        let (before, now) = (self.before.tally, here.with(board.tally()));
        Tally {
            units: before.units.saturating_add(now.units),
            late: before.late.saturating_add(now.late),
            lost: before.lost.saturating_add(now.lost),
            incomplete: before.incomplete.saturating_add(now.incomplete),
            latest_by_ns: before.latest_by_ns.max(now.latest_by_ns),
            unread: before.unread.saturating_add(now.unread),
        }
    }

    /// Units handed over so far, on this channel and on those that it continues.
    pub fn handed_over(&self) -> u64 {
        self.before.units.saturating_add(self.source.ring.written() - self.beyond().1)
    }

    /// Units handed over of which the last frame has not left. Once the channel is over they are lost.
    pub fn unsent(&self) -> u64 {
        let ClientSource { ring, board, .. } = &self.source;
        (ring.written() - self.beyond().1).saturating_sub(board.units_sent())
    }

    /// Units handed over that the node has not taken yet.
    pub fn waiting(&self) -> u64 {
        self.source.ring.waiting()
    }

    /// Units that may wait at most.
    pub(crate) fn slots(&self) -> u32 {
        self.source.ring.slots()
    }

    /// Where the channel is in its life.
    pub fn state(&self) -> ChannelState {
        self.source.board.state()
    }

    /// One of the channel's counters.
    pub fn counter(&self, counter: ChannelCounter) -> u64 {
        self.source.board.counter(counter)
    }

    /// Waits until the node has taken every unit, at most for `drain`, then ends the channel.
    ///
    /// # Errors
    /// [`CloseError`]; the channel is freed all the same.
    pub fn close(mut self, drain: Span) -> Result<CloseReport, CloseError> {
        self.finish(drain)
    }

    /// As [`SendChannel::close`]. The counts can be asked afterwards, also where the end was not confirmed.
    ///
    /// # Errors
    /// [`CloseError`]; no unit leaves any more.
    pub fn finish(&mut self, drain: Span) -> Result<CloseReport, CloseError> {
        self.drain(drain)?;
        let asked = self.ask_to_close();
        self.closed_within(asked, LOCAL_TIMEOUT.at_least(drain))
    }

    /// The first of three steps of [`SendChannel::close`], for who has several channels to close: waits until
    /// the node has taken every unit, at most for `drain`.
    pub(crate) fn drain(&self, drain: Span) -> Result<(), CloseError> {
        let ClientSource { ring, board, .. } = &self.source;
        match wait_for(board, &self.session, drain, || (ring.waiting() == 0).then_some(())) {
            Ok(()) | Err(WaitError::TimedOut) => Ok(()),
            Err(WaitError::Closed(cause)) => Err(CloseError::Closed(cause)),
            Err(WaitError::NodeGone) => Err(CloseError::NodeGone),
        }
    }

    /// The second step: asks the node to end the channel, and waits for nothing.
    pub(crate) fn ask_to_close(&self) -> Sent {
        let _ = self.session.discard();
        self.session.tell(&Request::Close { channel: self.channel })
    }

    /// The third step: waits for its answer, which it gives when the reservation is free and the receiver has
    /// confirmed the end, or was asked often enough.
    pub(crate) fn closed_within(&mut self, asked: Sent, answer: Span) -> Result<CloseReport, CloseError> {
        self.is_over = true;
        let ClientSource { ring, board, .. } = &self.source;
        match self.session.answer(asked, answer) {
            Ok(message) if matches!(message.body, Reply::Closed { .. } | Reply::Done) => {
                let tally = self.tally();
                Ok(CloseReport { drained: ring.waiting() == 0, units_sent: board.units_sent(), tally })
            }
            _ if self.session.is_gone() => Err(CloseError::NodeGone),
            _ => Err(CloseError::Unconfirmed),
        }
    }

    fn written(&mut self, answer: Result<u64, TryWriteError>) -> Result<u64, SendError> {
        match answer {
            Ok(number) => {
                self.first.get_or_insert_with(now);
                self.source.ring_doorbell();
                Ok(number)
            }
            Err(TryWriteError::Full { .. }) => Err(SendError::WouldBlock),
            Err(TryWriteError::TooLong { octets, octets_max }) => {
                Err(SendError::TooLong { octets, octets_max })
            }
        }
    }
}

impl AsFd for SendChannel {
    /// The channel's control connection: readable when the channel or the node ends.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.session.as_fd()
    }
}
