//! Units over a reserved channel of the library `rota`.

pub mod timed;

use super::reattach::{Change, is_of_node, turns_between};
use super::stream::Stream;
use super::{Arrival, Closed, Event, Promise, Refusal, SendTurn, UnitSink, UnitSource};
use crate::came::Rest;
use crate::clock;
use crate::stall::{Stall, StallEvidence, StallLog};
use rota::{
    AcceptError, AskedTerms, CloseCause, CloseError, Contract, ControlName, Granted, Invitation, Invitee,
    Listener, Node, OpenRequest, Overdue, Pacer, Queue, Received, ReceiverInfo, RecvChannel, RecvError,
    SendChannel, SendError, Statistical, Tally, WaitError, Withdrawn,
};
use rota_answer::{Exit, Failure, complain};
use rota_units::{Instant, Span};

/// How long the first slot of an admitted channel may take: a mode switch and a first rotation.
const FIRST_SLOT_PATIENCE: Span = Span::from_millis(10_000);
/// How long the last units may take to leave.
const DRAIN: Span = Span::from_millis(2_000);
/// Units that wait at a sender: as many as the contract needs, and these at least.
const BUFFERS: u16 = 4;
/// Fragments wait in the receiver's ring while its program is not scheduled: a quarter of a second.
const RECEIVE_BUFFERS: u16 = 8;

/// The request of a sender.
#[derive(Clone, Debug)]
pub struct ChannelRequest {
    /// The receiving station; none if a receiver is to ask for the channel.
    pub to: Option<String>,
    /// The service that listens there.
    pub service: u16,
    /// The largest unit.
    pub unit_octets: u64,
    /// The time from one unit to the next.
    pub period: Span,
    /// The delay and the jitter that it bears.
    pub terms: AskedTerms,
    /// The policy for overdue units, whose turn has passed.
    pub overdue: Overdue,
    /// For how long the channel is opened again after the end of a node.
    pub reattach: Option<Span>,
}

/// Why there is no channel.
#[derive(Debug)]
pub enum ChannelFailure {
    /// Admission said no.
    Refused {
        /// The test, the margin and the counter-offer.
        refusal: Box<Refusal>,
        /// The same in words.
        sentence: String,
    },
    /// Something else went wrong.
    Failed(Failure),
}

impl From<Failure> for ChannelFailure {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

fn connect() -> Result<Node, Failure> {
    Ok(Node::connect(&ControlName::default())?)
}

struct ChannelSink {
    channel: SendChannel,
    /// For messages: the channel and both its ends.
    name: String,
    reattach: Option<Change>,
    /// The turn of the unit that found the end of the channel before.
    unsent: Option<Instant>,
    /// None before the start of a channel that is booked.
    pacer: Option<Pacer>,
    time: Booked,
    stalls: StallLog,
}

/// The time of a channel that begins later, or ends by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Booked {
    begins: Instant,
    /// [`Instant::FAR`] for none. The node's is a little later: it counts from the hearing of the request.
    ends: Instant,
}

impl Booked {
    /// Of a channel that has been asked for at this moment.
    fn since(asked: Instant, terms: &AskedTerms) -> Self {
        let begins = asked + terms.start.unwrap_or(Span::ZERO);
        Self { begins, ends: terms.end.map_or(Instant::FAR, |end| asked + end) }
    }

    /// True if the channel is over as it was asked for. The node lets what was ready leave, and tells the end
    /// behind that: a unit that is handed over meanwhile would never leave.
    fn is_over(&self) -> bool {
        clock::now() >= self.ends
    }

    /// True if this is the end that was asked for.
    fn is_end(&self, cause: CloseCause) -> bool {
        self.ends < Instant::FAR && cause == CloseCause::Finished
    }

    /// Waits for the start, and notices an earlier end.
    fn await_start(&self, channel: &SendChannel) -> Result<(), Failure> {
        loop {
            let next = self.begins.min(clock::now() + clock::NOTICE);
            clock::sleep_until_or_asked_to_end(next)?;
            match channel.wait_end(Span::ZERO) {
                Ok(None) if next < self.begins => {}
                Ok(None) => return Ok(()),
                Ok(Some(cause)) => return Err(end_of_sender(cause)),
                Err(gone) => return Err(uncounted(gone.to_string(), NOT_REPORTED)),
            }
        }
    }
}

/// Opens a channel through this station's node.
pub fn open(request: &ChannelRequest) -> Result<Box<dyn UnitSink>, ChannelFailure> {
    let asked = clock::now();
    let (mut channel, to) = open_channel(request, BUFFERS)?;
    let time = Booked::since(asked, &request.terms);
    let pacer = match request.terms.start {
        Some(_) => None,
        None => Some(channel.pacer(FIRST_SLOT_PATIENCE).map_err(end_of_wait)?),
    };
    let name = format!("the channel to service {} of {to}", request.service);
    let (reattach, stalls) = (request.reattach.map(Change::within), StallLog::default());
    Ok(Box::new(ChannelSink { channel, name, reattach, unsent: None, pacer, time, stalls }))
}

/// A channel for so many units that wait, and the name of its receiver.
fn open_channel(request: &ChannelRequest, buffers: u16) -> Result<(SendChannel, String), ChannelFailure> {
    let too_large = |_| Failure::wrong_use(format!("a unit of {} octets is too large", request.unit_octets));
    let octets = u32::try_from(request.unit_octets).map_err(too_large)?;
    let node = connect()?;
    // Room to grow, for 'rota channel modify'.
    let to = request.to.clone().unwrap_or_default();
    let ask = OpenRequest::new(&to, request.service, octets, request.period).with_room_for(2);
    let ask = OpenRequest { overdue: request.overdue, terms: request.terms, buffers, ..ask };
    let opened = match request.to {
        Some(_) => node.open(&ask).map(|channel| (channel, to)),
        None => {
            let (invitee, invitation) = invited(&node, request.service)?;
            invitee.open(&invitation, &ask).map(|channel| (channel, invitation.name))
        }
    };
    opened.map_err(|error| match error {
        rota::OpenError::Refused(info) => ChannelFailure::Refused {
            sentence: info.sentence.clone(),
            refusal: Box::new(Refusal {
                test: info.test.clone(),
                margin_bps: info.margin_bps,
                counter_offer_bps: info.counter_offer_bps,
                node: info.node.clone(),
                margin_ns: info.margin_ns,
                nearest_delay_ns: info.nearest_delay_ns,
                nearest_jitter_ns: info.nearest_jitter_ns,
                nearest_xmin_ns: info.nearest_xmin_ns,
                counter_offer_octets: info.counter_offer_octets,
                nearest_packet_octets: info.nearest_packet_octets,
            }),
        },
        other => ChannelFailure::Failed(other.into()),
    })
}

/// Waits for a receiver that asks, for as long as it takes.
fn invited(node: &Node, service: u16) -> Result<(Invitee, Invitation), Failure> {
    let mut invitee = node.invitee(service)?;
    // A script that starts the receiver waits for this line.
    complain(&format!("waiting to be asked for service {service}"));
    loop {
        rota_answer::Asked::to_end()?;
        match invitee.invited(clock::NOTICE) {
            Ok(invitation) => {
                complain(&format!("{} asks for service {service}", invitation.name));
                return Ok((invitee, invitation));
            }
            Err(AcceptError::TimedOut { .. }) => {}
            Err(other) => return Err(other.into()),
        }
    }
}

/// The receivers of a channel as far as its node still tells; of one receiver nothing is asked.
fn receivers(channel: &SendChannel) -> Vec<ReceiverInfo> {
    if channel.has_several() { channel.receivers().unwrap_or_default() } else { Vec::new() }
}

fn promise(granted: &Granted) -> Promise {
    let Granted { contract, withdrawn, statistical, group, .. } = *granted;
    Promise {
        bound_ns: contract.bound_ns,
        period_ns: contract.period_ns,
        unit_octets: u64::from(contract.unit_octets_max),
        extra_ppm: contract.extra_ppm,
        withdrawn,
        statistical,
        group,
    }
}

/// Ends a channel of which so many units were sent or left out.
fn closed(
    mut channel: SendChannel,
    played: Result<u64, Failure>,
    stalls: Vec<Stall>,
    time: Booked,
) -> Closed {
    if played.is_err() {
        // The channel ends unasked, when its connection does. The units handed over leave before.
        let _ = channel.wait_drained(DRAIN);
    }
    let closed = played.and_then(|_| match channel.finish(DRAIN) {
        Ok(_) => Ok(()),
        Err(CloseError::Closed(cause)) if time.is_end(cause) => Ok(()),
        Err(CloseError::Closed(cause)) => Err(end_of_sender(cause)),
        Err(gone @ CloseError::NodeGone) => Err(uncounted(gone.to_string(), NOT_REPORTED)),
        Err(other) => Err(Failure::failed(other)),
    });
    // If the end is not confirmed, the counts reported before it are used.
    let (tally, unknown) = (channel.tally(), channel.unknown());
    // A unit that had left in part is the receiver's: it counts it as incomplete.
    let rest = Rest { unsent: channel.unsent().min(tally.lost), unknown };
    let counted = Some((channel.handed_over(), channel.left_out()));
    let receivers = receivers(&channel);
    Closed { stalls, tally, rest, counted, receivers, failure: closed.err() }
}

impl ChannelSink {
    /// Opens the channel again after this end of it, if the program was asked to. The unit that found the end
    /// is left out: its slot is over.
    fn again(&mut self, end: Failure, schedule: Instant) -> Result<bool, Failure> {
        let opened = self.open_again(end, schedule);
        opened.map_err(|failure| judged(self.reattach, failure))
    }

    fn open_again(&mut self, mut end: Failure, schedule: Instant) -> Result<bool, Failure> {
        let Some(change) = &mut self.reattach else { return Err(end) };
        let name = &self.name;
        let pacer = loop {
            change.begin(&end, clock::now());
            change.announce(&end, &format!("{name} is opened again"), clock::now());
            if let Err(error) = self.channel.reattach(change.left(clock::now())) {
                return Err(change.failed(&end, error));
            }
            match self.channel.pacer(FIRST_SLOT_PATIENCE.min(change.left(clock::now()))) {
                Ok(pacer) => break pacer,
                Err(WaitError::Closed(cause)) if !is_of_node(cause) => return Err(end_of_sender(cause)),
                Err(ended @ (WaitError::Closed(_) | WaitError::NodeGone)) => end = end_of_wait(ended),
                Err(other) => return Err(other.into()),
            }
            if change.left(clock::now()) == Span::ZERO {
                return Err(change.gave_up(&end, "it ended again"));
            }
        };
        complain(&format!("{name} is open again"));
        self.pacer = Some(pacer);
        self.channel.leave_out(1);
        self.unsent = Some(schedule);
        Ok(false)
    }
}

impl UnitSink for ChannelSink {
    fn promise(&self) -> Option<Promise> {
        Some(promise(self.channel.granted()))
    }

    fn reservation(&self) -> Option<String> {
        self.channel.granted().reservation()
    }

    fn receivers(&self) -> Vec<ReceiverInfo> {
        receivers(&self.channel)
    }

    fn receivers_changed(&mut self) -> Vec<ReceiverInfo> {
        self.channel.receivers_changed()
    }

    fn withdrawn(&mut self) -> Option<Withdrawn> {
        self.channel.withdrawn()
    }

    fn wait_slot(&mut self, _frame: u64) -> Result<SendTurn, Failure> {
        let pacer = match &mut self.pacer {
            Some(pacer) => pacer,
            none => {
                self.time.await_start(&self.channel)?;
                none.insert(self.channel.pacer(FIRST_SLOT_PATIENCE).map_err(end_of_wait)?)
            }
        };
        self.channel.follow(pacer);
        let due = pacer.due();
        let tick = loop {
            let due = pacer.due();
            clock::sleep_until_or_asked_to_end(due)?;
            let now = clock::now();
            // A turn that is found after its slot is skipped; the sleep until the next one is no stall.
            self.stalls.note(StallEvidence::Timer, due, now);
            if let Some(tick) = pacer.take(now) {
                break tick;
            }
        };
        let skipped = self.unsent.take().map_or(tick.skipped, |last| {
            turns_between(last, tick.due, Span::from_nanos(self.channel.contract().period_ns.max(1)))
        });
        Ok(SendTurn { schedule: tick.due, waited: due, skipped })
    }

    fn changed(&mut self) -> Option<Contract> {
        self.channel.changed().copied()
    }

    fn pace_anew(&mut self) -> Result<(), Failure> {
        if let Some(pacer) = &mut self.pacer {
            *pacer = self.channel.pacer(FIRST_SLOT_PATIENCE).map_err(end_of_wait)?;
        }
        Ok(())
    }

    fn send(&mut self, _number: u64, unit: &[u8], schedule: Instant) -> Result<bool, Failure> {
        if self.time.is_over() {
            return Ok(false);
        }
        match self.channel.send(unit, schedule) {
            Ok(_) => {
                if self.channel.send_progress() > 0 {
                    self.reattach.iter_mut().for_each(Change::over);
                }
                Ok(true)
            }
            Err(SendError::LeftOut) => Ok(false),
            Err(SendError::Closed(cause)) if self.time.is_end(cause) => Ok(false),
            Err(SendError::Closed(cause)) if is_of_node(cause) => self.again(end_of_sender(cause), schedule),
            Err(SendError::Closed(cause)) => Err(end_of_sender(cause)),
            Err(gone @ SendError::NodeGone) => {
                self.again(uncounted(gone.to_string(), NOT_REPORTED), schedule)
            }
            Err(other) => Err(Failure::failed(other)),
        }
    }

    fn is_behind(&self) -> bool {
        self.channel.is_behind()
    }

    fn is_over(&self) -> bool {
        self.time.is_over()
    }

    fn leave_out(&mut self, units: u64) {
        self.channel.leave_out(units);
    }

    fn close(self: Box<Self>, played: Result<u64, Failure>) -> Closed {
        let Self { channel, stalls, time, .. } = *self;
        closed(channel, played, stalls.into_stalls(), time)
    }
}

struct ChannelSource {
    listener: Listener,
    channel: Option<RecvChannel>,
    reattach: Option<Change>,
    /// The numbers of the units of all channels, and the counts of the channels before this one.
    stream: Stream,
    tally: Tally,
    stalls: StallLog,
    /// Of the newest channel.
    withdrawn: Option<Withdrawn>,
    statistical: Option<Statistical>,
}

impl ChannelSource {
    /// Listens again after this end of the channel, if the program was asked to, and waits for its sender,
    /// also over further ends of this station's node.
    fn again(&mut self, end: Failure) -> Result<(), Failure> {
        let awaited = self.await_again(end);
        awaited.map_err(|failure| judged(self.reattach, failure))
    }

    fn await_again(&mut self, mut end: Failure) -> Result<(), Failure> {
        let (tally, service) = (self.tally(), self.listener.service());
        let Some(change) = &mut self.reattach else { return Err(end) };
        change.begin(&end, clock::now());
        self.tally = tally;
        // The count has the units lost at its end, if the sender stated them.
        let sent = self.channel.as_ref().and_then(RecvChannel::units_sent);
        sent.into_iter().for_each(|sent| self.stream.passed(sent));
        let from =
            self.channel.take().map_or(String::new(), |channel| format!(" from {}", channel.peer().name));
        let name = format!("the channel{from} to service {service}");
        let channel = loop {
            listen_again(&mut self.listener, change, &end, &format!("{name} is awaited again"))?;
            match self.listener.accept(change.left(clock::now())) {
                Ok(channel) => break channel,
                Err(AcceptError::TimedOut { .. }) => {
                    return Err(change.gave_up(&end, "no sender came back"));
                }
                Err(other) if may_go_on(&other) => end = Failure::failed(other),
                Err(other) => return Err(other.into()),
            }
            if change.left(clock::now()) == Span::ZERO {
                return Err(change.gave_up(&end, "it ended again"));
            }
        };
        let peer = channel.peer();
        let name = format!("the channel from {} to service {service}", peer.name);
        if let Some(lost) = self.stream.begin_channel(&peer.mac, channel.units_before()) {
            self.tally.lost = self.tally.lost.saturating_add(lost);
            complain(&format!("{name} is open again; {lost} units were lost at the change"));
        } else {
            complain(&format!("{name} is open with a new stream; losses before it are not known"));
        }
        self.channel = Some(channel);
        Ok(())
    }
}

/// The sender that a receiver takes a channel from.
#[derive(Clone, Copy, Debug)]
pub enum Sender<'a> {
    /// Any.
    Any,
    /// This station only.
    One(&'a str),
    /// This station, which is asked for it.
    Asked(&'a str),
}

fn listener(service: u16, from: Sender<'_>, buffers: u16, apart: bool) -> Result<Listener, Failure> {
    let node = connect()?;
    let one = match from {
        Sender::Any => None,
        Sender::One(from) | Sender::Asked(from) => Some(from),
    };
    Ok(match from {
        _ if apart => node.listen_apart(service, one, buffers)?,
        Sender::Any => node.listen(service, None, buffers)?,
        Sender::One(from) => node.listen(service, Some(from), buffers)?,
        Sender::Asked(from) => node.invite(from, service, buffers)?,
    })
}

/// Listens for a channel through this station's node; with `apart` its frames come by a queue that the kernel
/// fills, where that is to be had.
pub fn listen(
    service: u16,
    from: Sender<'_>,
    reattach: Option<Span>,
    apart: bool,
) -> Result<Box<dyn UnitSource>, Failure> {
    let listener = listener(service, from, RECEIVE_BUFFERS, apart)?;
    let (tally, stalls) = (Tally::default(), StallLog::default());
    let reattach = reattach.map(Change::within);
    let stream = Stream::default();
    let (channel, withdrawn, statistical) = (None, None, None);
    Ok(Box::new(ChannelSource { listener, channel, reattach, stream, tally, stalls, withdrawn, statistical }))
}

/// What a sender cannot know when a node is gone.
const NOT_REPORTED: &str = "what became of its newest units is not known";
/// What a receiver cannot know then.
const NOT_STATED: &str = "how many units the stream had is not known";

/// The end of a stream where the node of one end can tell no count any more: it died, it fell silent, or its
/// interface is gone.
/// Nobody knows how many units were lost, and the promise is broken at both ends.
fn uncounted(sentence: String, not_known: &str) -> Failure {
    Failure { exit: Exit::Broken, sentence: format!("{sentence}; {not_known}") }
}

fn end_of(cause: CloseCause, not_known: &str) -> Failure {
    let end = Failure::from(cause);
    match cause {
        CloseCause::PeerGone | CloseCause::PeerDied | CloseCause::WasSilent | CloseCause::PortGone => {
            uncounted(end.sentence, not_known)
        }
        _ => end,
    }
}

/// The end of a channel at its sender.
fn end_of_sender(cause: CloseCause) -> Failure {
    end_of(cause, NOT_REPORTED)
}

/// The same while it waits for its first slot.
fn end_of_wait(error: WaitError) -> Failure {
    match error {
        WaitError::Closed(cause) => end_of_sender(cause),
        gone @ WaitError::NodeGone => uncounted(gone.to_string(), NOT_REPORTED),
        other => other.into(),
    }
}

/// How long the statement of a sender is awaited whose station fell silent. A receiver whose station did asks
/// its sender for the same time.
const STATED_WITHIN: Span = Span::from_millis(2_000);

/// The end of a channel at its receiver. Nobody waits for a statement if the channel is to be had again.
fn end_of_receiver(cause: CloseCause, channel: &RecvChannel, goes_on: bool) -> Failure {
    let patience = if goes_on { Span::ZERO } else { STATED_WITHIN };
    let stated = match cause {
        CloseCause::PeerGone => channel.units_stated_within(patience),
        _ => channel.units_stated(),
    };
    end_with(cause, stated)
}

/// The same, if so many units are stated. The guarantee was broken also where all units are known.
fn end_with(cause: CloseCause, stated: Option<u64>) -> Failure {
    let end = end_of(cause, NOT_STATED);
    match stated {
        Some(_) => Failure { exit: end.exit, ..Failure::from(cause) },
        None => end,
    }
}

/// The end of a program during a change, if one is under way.
fn judged(change: Option<Change>, end: Failure) -> Failure {
    match change {
        Some(change) => change.judged(end),
        None => end,
    }
}

/// States the end of a channel or of the node, and waits for the next node, within the time of the change.
fn listen_again(
    listener: &mut Listener,
    change: &Change,
    end: &Failure,
    awaited: &str,
) -> Result<(), Failure> {
    change.announce(end, awaited, clock::now());
    let listening = listener.reattach(change.left(clock::now()));
    listening.map_err(|error| change.gave_up(end, &error.to_string()))
}

/// True if another channel can come: over the next node, or over this one if the memory of a channel could
/// not be used.
fn may_go_on(error: &AcceptError) -> bool {
    matches!(error, AcceptError::NodeGone | AcceptError::Memory(_))
}

impl UnitSource for ChannelSource {
    fn next(&mut self, unit: &mut Vec<u8>, patience: Span) -> Result<Event, Failure> {
        let Some(channel) = &mut self.channel else {
            return match self.listener.accept(patience) {
                Ok(channel) => {
                    self.stream.begin_channel(&channel.peer().mac, channel.units_before());
                    (self.withdrawn, self.statistical) = (channel.withdrawn(), channel.statistical());
                    match channel.queue() {
                        Queue::Kernel => complain("the kernel fills the channel's queue"),
                        Queue::Node { why: Some(why) } => {
                            complain(&format!("the node fills the queue: {why}"))
                        }
                        Queue::Node { why: None } => {}
                    }
                    self.channel = Some(channel);
                    self.next(unit, patience)
                }
                Err(AcceptError::TimedOut { .. }) => Ok(Event::Silence),
                Err(error) if may_go_on(&error) => {
                    let end = Failure::failed(error);
                    let service = self.listener.service();
                    let Some(change) = &mut self.reattach else { return Err(end) };
                    // No channel has been lost: this is a change of its own.
                    change.over();
                    let awaited = format!("service {service} is offered again");
                    listen_again(&mut self.listener, change, &end, &awaited)?;
                    Ok(Event::Silence)
                }
                Err(other) => Err(other.into()),
            };
        };
        match channel.recv(unit, patience) {
            Ok(Received::Unit(got)) => {
                let arrived = got.arrived_at.unwrap_or(got.dequeued_at);
                self.stalls.note(StallEvidence::Dequeue, arrived, got.dequeued_at);
                let number = self.stream.number(got.number);
                self.reattach.iter_mut().for_each(Change::over);
                Ok(Event::Unit(Arrival {
                    number,
                    complete: got.complete,
                    schedule: Instant::from_nanos(got.schedule_ns),
                    arrived,
                    dequeued: got.dequeued_at,
                }))
            }
            Ok(Received::End(end)) => Ok(Event::Closed { sent: self.stream.sent(end.units_sent) }),
            Err(RecvError::TimedOut) => Ok(Event::Silence),
            Err(RecvError::Broken(cause)) if is_of_node(cause) => {
                let end = end_of_receiver(cause, channel, self.reattach.is_some());
                self.again(end)?;
                self.next(unit, patience)
            }
            Err(RecvError::Broken(cause)) => Err(end_of(cause, NOT_STATED)),
            Err(gone @ RecvError::NodeGone) => {
                self.again(uncounted(gone.to_string(), NOT_STATED))?;
                self.next(unit, patience)
            }
            Err(other) => Err(Failure::failed(other)),
        }
    }

    fn withdrawn(&mut self) -> Option<Withdrawn> {
        if let Some(channel) = &mut self.channel {
            self.withdrawn = channel.withdrawn();
        }
        self.withdrawn
    }

    fn statistical(&self) -> Option<Statistical> {
        self.statistical
    }

    fn tally(&self) -> Tally {
        let now = self.channel.as_ref().map(RecvChannel::tally).unwrap_or_default();
        Tally {
            units: self.tally.units.saturating_add(now.units),
            late: self.tally.late.saturating_add(now.late),
            lost: self.tally.lost.saturating_add(now.lost),
            incomplete: self.tally.incomplete.saturating_add(now.incomplete),
            latest_by_ns: self.tally.latest_by_ns.max(now.latest_by_ns),
            unread: self.tally.unread.saturating_add(now.unread),
        }
    }

    fn stated(&self) -> Option<u64> {
        let stated = self.channel.as_ref()?.units_stated()?;
        Some(self.stream.sent(Some(stated)))
    }

    fn unsent(&self) -> u64 {
        self.channel.as_ref().map_or(0, RecvChannel::units_unsent)
    }

    fn stalls(self: Box<Self>) -> Vec<Stall> {
        self.stalls.into_stalls()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It said that the units of the stream were not known, beside "received 38 of 39 units".
    #[test]
    fn a_statement_that_is_there_is_not_called_unknown() {
        for cause in [CloseCause::WasSilent, CloseCause::PeerGone, CloseCause::PeerDied, CloseCause::PortGone]
        {
            let (known, unknown) = (end_with(cause, Some(39)), end_with(cause, None));
            assert!(!known.sentence.contains("is not known"), "{known:?}");
            assert!(unknown.sentence.ends_with(NOT_STATED), "{unknown:?}");
            assert_eq!((known.exit, unknown.exit), (Exit::Broken, Exit::Broken), "as at the other end");
        }
    }
}
