//! The ledger of this node's channels, and how two nodes agree on one.
//!
//! ```text
//! sender    Connecting ──Accept──► Reserving ──slot─► Open ─close─► Draining ─► Releasing ─► Closing ─► gone
//!               │Refuse, silence       │refused                         (slot given back)  (told the peer)
//! receiver                 Connected ──Opened──► Open ──Close, peer dead──► gone
//! ```
//!
//! The receiver is asked first: a reservation for which nobody listens would take the segment out of plain
//! Ethernet for nothing. Signals are repeated until answered and are idempotent.

mod decline;
mod doubt;
mod ended;
mod event;
pub(crate) mod follow;
pub mod lateness;
mod meter;
#[cfg(feature = "model")]
mod model;
mod probe;
mod reach;
mod sound;
mod stated;
mod strays;
#[cfg(test)]
mod tests;
mod unread;

use crate::cause::CloseCause;
use crate::io::{ChannelId, Destination, UnitDescriptor};
use crate::planted::{Bug, planted};
use crate::rether::{Asked, LinkEvent, Rether, Sign};
pub use decline::Shortage;
pub use event::ChannelEvent;
use lateness::OneWay;
use meter::Meter;
use rota_admission::{Admitted, Pace, Refusal};
use rota_units::{Instant, Span};
use rota_wire::{MacAddr, Signal, Tally, UnitHeader, Verb};
pub use stated::Stated;
use std::collections::VecDeque;
use strays::Strays;
pub use unread::Unread;

/// What a program asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    /// Whom the channel reaches.
    pub to: Destination,
    /// Whom at the destination, like a port number.
    pub service: u16,
    /// The largest unit, octets.
    pub unit_octets_max: u32,
    /// The largest unit that it may ever grow to, for which both ends keep memory; at least the former.
    pub room_octets: u32,
    /// One unit every so long; a multiple or a whole part of the TRT reserves no more (see [`Pace`]).
    pub period: Span,
    /// Whether the sender needs the strict period.
    pub periodic: bool,
}

/// Why a request for a channel was wrong from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// No such station on the segment.
    #[error("no station {0} on this segment")]
    NoSuchStation(MacAddr),
    /// A station does not send to itself over the wire.
    #[error("a channel needs two stations; {0} is this one")]
    OwnStation(MacAddr),
    /// Two stations have the name that was given.
    #[error(
        "two stations are called so, {0} and {1}: give one of them another name, or name the one that is \
         meant by its address"
    )]
    DoubleName(MacAddr, MacAddr),
    /// The other station is still looking for its segment.
    #[error("station {0} has not joined this segment yet, which takes about a second: try again")]
    PeerNotJoined(MacAddr),
    /// Groups are not built yet.
    #[error("channels to groups are not built yet; open one channel to each station")]
    Group,
    /// A unit of no octets, or above what fragments can number.
    #[error("a unit of {0} octets in each period cannot be carried; 1 to 5000000 can: choose a lower rate")]
    UnitSize(u32),
    /// A period that is too long or too short for the segment's cycle.
    #[error(
        "a period of {} ns is too {} for the segment's cycle of {} ns; the {} is {} ns",
        .asked.as_nanos(), if .asked > .nearest { "long" } else { "short" }, .trt.as_nanos(),
        if .asked > .nearest { "longest" } else { "shortest" }, .nearest.as_nanos()
    )]
    Period {
        /// What was asked for.
        asked: Span,
        /// The segment's cycle.
        trt: Span,
        /// The longest, or the shortest, that can be had.
        nearest: Span,
    },
    /// Less memory than units.
    #[error("room for units of {room} octets is less than the {unit} that are asked for now")]
    Room {
        /// The room asked for.
        room: u32,
        /// The units asked for.
        unit: u32,
    },
    /// This station is still looking for its segment.
    #[error("this station has not joined its segment yet, which takes about a second: try again")]
    NotJoined,
    /// More stations than a ring holds.
    #[error("this segment has {0} stations; a ring holds at most 200, so nothing can be reserved here")]
    TooManyStations(u16),
    /// No more channels.
    #[error("this node already has {0} channels, which is its limit")]
    TooMany(usize),
}

/// Why a channel was not even asked to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResizeError {
    /// This node does not send on it, or it is not open.
    #[error("this station sends on no open channel {}; 'rota channel list' shows them", .0.0)]
    NoChannel(ChannelId),
    /// Larger than the memory of both ends, or nothing.
    #[error("units of {asked} octets do not fit the channel's memory: it was opened with room for {room}")]
    Room {
        /// What was asked for.
        asked: u32,
        /// What it was opened with.
        room: u32,
    },
}

/// What a channel was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Contract {
    /// The largest unit, octets.
    pub unit_octets_max: u32,
    /// One unit every so long.
    pub period: Span,
    /// From ready to delivered, proven at admission.
    pub bound: Span,
    /// Where in the cycle its slot begins.
    pub offset: Span,
    /// Its share of each cycle.
    pub tht: Span,
    /// The segment's cycle: how often its slots come.
    pub cycle: Span,
    /// Units for which the sender needs buffers, so that each can wait for its slot.
    pub buffers: u16,
}

/// A program that takes a channel to a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The parent's number for it.
    pub id: u64,
    /// The service.
    pub service: u16,
    /// The only station that it takes a channel from, by name, number or address; anybody otherwise.
    pub from: Option<String>,
}

impl From<u16> for Listener {
    /// The only listener to a service, whoever sends.
    fn from(service: u16) -> Self {
        Self { id: u64::from(service), service, from: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    Connecting,
    Reserving,
    Open { acknowledged: bool },
    Draining,
    Releasing,
    Closing,
}

#[derive(Clone, Debug)]
struct Outgoing {
    id: ChannelId,
    /// By its address: numbers change while rings form.
    peer: MacAddr,
    label: u16,
    request: OpenRequest,
    /// Units of the channels that this one continues.
    before: u64,
    pace: Pace,
    state: Sending,
    contract: Contract,
    units: u64,
    /// The units that were offered, and those that its node was told of.
    offered: Stated,
    told: Stated,
    meter: Meter,
    cause: CloseCause,
    refusal: Option<Refusal>,
    silent: bool,
    /// Its receiver's node has told of the end, and before that of every unit that was not as promised.
    confirmed: bool,
    /// It has counted the end that was stated to it: its counts have the units that never left.
    counted: bool,
    began: Instant,
    /// It asks only for the contract that would be granted, see [`Channels::probe`].
    probe: bool,
    tries: u8,
    again: Instant,
    reach: reach::Reach,
}

#[derive(Clone, Debug)]
struct Incoming {
    id: ChannelId,
    peer: MacAddr,
    remote: u64,
    label: u16,
    last_number: u64,
    /// The newest fragment: what does not exceed it is a double or a replay.
    newest: Option<(u64, u16)>,
    contract: Contract,
    /// The parent is ready for its units: the sender may be told.
    accepted: bool,
    opened: bool,
    /// Who listened, and does so again when it never opens.
    taker: Listener,
    since: Instant,
    meter: Meter,
    strays: Strays,
    /// The newest question of its sender that came.
    reached: u64,
    /// Set while it is not certain that its sender still has it.
    doubt: Option<doubt::Doubt>,
    /// The counts that were reported to its sender, and the earliest time of the next report.
    told: Tally,
    tell_at: Instant,
}

/// The ledger.
#[derive(Clone, Debug)]
pub(crate) struct Channels {
    origin: u64,
    counter: u64,
    next_label: u16,
    outgoing: Vec<Outgoing>,
    incoming: Vec<Incoming>,
    listeners: Vec<Listener>,
    /// Those whose channel never opened, until the parent has had them listen again or taken them back. Who
    /// asks for one meanwhile is not answered, and asks again.
    returning: Vec<Listener>,
    events: VecDeque<ChannelEvent>,
    /// The answers to the senders of the newest channels received here that have ended.
    ended: VecDeque<(MacAddr, Signal)>,
    /// The ends of the newest channels sent here that no receiver has acknowledged.
    unheard: VecDeque<Outgoing>,
}

/// A sender asks for its channel's end within seconds.
const ENDED_MAX: usize = 32;
const SIGNAL_INTERVAL: Span = Span::from_millis(200);
const SIGNAL_TRIES: u8 = 25;
/// How long a receiver is kept for a sender that asked for it and never got its reservation.
const UNOPENED_PATIENCE: Span = Span::from_millis(30_000);
const CHANNELS_MAX: usize = 200;
/// 12 bits number the fragments of a unit.
const UNIT_OCTETS_MAX: u32 = 5_000_000;

impl Channels {
    /// `seed` differs at each boot: a receiver that has not noticed a restart must not take a new channel
    /// for one of the old boot, so that ids do not begin anew.
    pub(crate) fn new(origin: u64, seed: u64) -> Self {
        Self {
            origin,
            counter: if planted(Bug::ChannelIdsRepeated) { 0 } else { seed & 0x7fff_ffff },
            next_label: 1,
            outgoing: Vec::with_capacity(CHANNELS_MAX),
            incoming: Vec::with_capacity(CHANNELS_MAX),
            listeners: Vec::new(),
            returning: Vec::with_capacity(CHANNELS_MAX),
            events: VecDeque::with_capacity(1024),
            ended: VecDeque::with_capacity(ENDED_MAX),
            unheard: VecDeque::with_capacity(ENDED_MAX),
        }
    }

    pub(crate) fn next_event(&mut self) -> Option<ChannelEvent> {
        self.events.pop_front()
    }

    pub(crate) fn has_event(&self) -> bool {
        !self.events.is_empty()
    }

    /// Channel ids are the origin's low bits above a counter, so that they differ between nodes.
    fn next_id(&mut self) -> ChannelId {
        // Below the origin's bits: after 2^32 channels the first ones are long closed.
        self.counter = self.counter % u64::from(u32::MAX) + 1;
        ChannelId((self.origin << 32) | self.counter)
    }

    /// Whether anybody sends here, or is about to.
    pub(crate) fn has_incoming(&self) -> bool {
        !self.incoming.is_empty()
    }

    pub(crate) fn listen(&mut self, listener: Listener) {
        self.returning.retain(|returning| returning.id != listener.id);
        self.listeners.push(listener);
    }

    /// A listener whose channel never opened is one again, unless it was taken back meanwhile.
    pub(crate) fn listen_again(&mut self, id: u64) {
        if let Some(at) = self.returning.iter().position(|listener| listener.id == id) {
            self.listeners.push(self.returning.swap_remove(at));
        }
    }

    pub(crate) fn unlisten(&mut self, id: u64) {
        self.listeners.retain(|listener| listener.id != id);
        self.returning.retain(|listener| listener.id != id);
    }

    pub(crate) fn open(
        &mut self,
        now: Instant,
        request: &OpenRequest,
        before: u64,
        link: &mut Rether,
    ) -> Result<ChannelId, OpenError> {
        let Destination::Station(to) = request.to else { return Err(OpenError::Group) };
        if link.station() == 0 {
            return Err(OpenError::NotJoined);
        }
        if link.ring_size() > crate::rether::STATIONS_MAX {
            return Err(OpenError::TooManyStations(link.ring_size()));
        }
        if to == link.mac() {
            return Err(OpenError::OwnStation(to));
        }
        let Some(peer) = link.member_at(to) else { return Err(OpenError::NoSuchStation(to)) };
        if peer.station == 0 {
            return Err(OpenError::PeerNotJoined(to));
        }
        if request.unit_octets_max == 0 || request.unit_octets_max > UNIT_OCTETS_MAX {
            return Err(OpenError::UnitSize(request.unit_octets_max));
        }
        let (asked, room, trt) = (request.unit_octets_max, request.room_octets, link.settings().trt);
        if room < asked || room > UNIT_OCTETS_MAX {
            return Err(OpenError::Room { room, unit: asked });
        }
        let pace = Pace::of(request.period, trt).map_err(|nearest| OpenError::Period {
            asked: request.period,
            trt,
            nearest,
        })?;
        if self.outgoing.len() >= CHANNELS_MAX {
            return Err(OpenError::TooMany(CHANNELS_MAX));
        }
        let id = self.next_id();
        let label = self.free_label();
        let outgoing = Outgoing {
            id,
            peer: to,
            label,
            request: OpenRequest { period: pace.period(trt), ..request.clone() },
            before,
            pace,
            state: Sending::Connecting,
            contract: Contract::default(),
            units: 0,
            offered: Stated::default(),
            told: Stated::default(),
            meter: Meter::default(),
            cause: CloseCause::Closed,
            refusal: None,
            silent: false,
            confirmed: false,
            counted: false,
            began: now,
            probe: false,
            tries: 0,
            again: now,
            reach: reach::Reach::default(),
        };
        self.outgoing.push(outgoing);
        self.tick(now, link);
        Ok(id)
    }

    fn free_label(&mut self) -> u16 {
        loop {
            let label = self.next_label;
            self.next_label = self.next_label.checked_add(1).unwrap_or(1);
            if self.outgoing.iter().all(|channel| channel.label != label) {
                return label;
            }
        }
    }

    /// Its program is done with it: sends what is ready, then gives the reservation back.
    pub(crate) fn close(&mut self, now: Instant, id: ChannelId, link: &mut Rether) {
        self.end(now, id, CloseCause::ReceiverClosed, link);
    }

    /// Somebody else than its program ends it.
    pub(crate) fn revoke(&mut self, now: Instant, id: ChannelId, link: &mut Rether) {
        if let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) {
            channel.cause = CloseCause::Revoked;
        }
        self.end(now, id, CloseCause::Revoked, link);
    }

    /// Sends what is ready, then gives the reservation back. A receiver's end says why to both sides.
    fn end(&mut self, now: Instant, id: ChannelId, receiver_cause: CloseCause, link: &mut Rether) {
        if let Some(at) = self.incoming.iter().position(|channel| channel.id == id) {
            let channel = &self.incoming[at];
            // A sender without a reservation only wants to know whether somebody listens.
            let cause = if channel.opened { receiver_cause } else { CloseCause::NoListener };
            let refuse = Signal::new(Verb::Refuse, channel.remote, channel.label);
            let (peer, refuse) = (channel.peer, Signal { code: cause.code(), ..refuse });
            self.end_incoming(at, receiver_cause, None, Some((now, &mut *link)));
            link.send_signal(now, peer, refuse);
            return;
        }
        let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) else { return };
        match channel.state {
            Sending::Open { .. } => channel.state = Sending::Draining,
            Sending::Connecting => {
                channel.state = Sending::Closing;
                channel.again = now;
                channel.tries = 0;
            }
            Sending::Reserving => {
                channel.state = Sending::Releasing;
                link.release(now, id);
            }
            Sending::Draining | Sending::Releasing | Sending::Closing => {}
        }
        self.tick(now, link);
    }

    /// The station at the other end of a channel.
    pub(crate) fn peer(&self, id: ChannelId) -> Option<MacAddr> {
        let outgoing = self.outgoing.iter().map(|channel| (channel.id, channel.peer));
        let mut all = outgoing.chain(self.incoming.iter().map(|channel| (channel.id, channel.peer)));
        all.find(|(known, _)| *known == id).map(|(_, peer)| peer)
    }

    /// The channel that a station's signal answers.
    fn answered(&mut self, from: MacAddr, signal: &Signal) -> Option<&mut Outgoing> {
        self.outgoing.iter_mut().find(|channel| channel.id.0 == signal.channel && channel.peer == from)
    }

    /// Asks for units of another size; the answer comes as an event.
    pub(crate) fn resize(&mut self, id: ChannelId, asked: u32, link: &mut Rether) -> Result<(), ResizeError> {
        let is_open = |channel: &&Outgoing| channel.id == id && matches!(channel.state, Sending::Open { .. });
        let channel = self.outgoing.iter().find(is_open).ok_or(ResizeError::NoChannel(id))?;
        let room = channel.request.room_octets;
        if asked == 0 || asked > room {
            return Err(ResizeError::Room { asked, room });
        }
        if link.resize(id, asked) { Ok(()) } else { Err(ResizeError::NoChannel(id)) }
    }

    /// The program behind the channel is dead: nothing more is sent, its reservation is freed.
    pub(crate) fn abort(&mut self, now: Instant, id: ChannelId, link: &mut Rether) {
        if let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) {
            channel.silent = true;
            channel.cause = CloseCause::SenderDied;
            channel.withdraw(now);
            if matches!(channel.state, Sending::Open { .. } | Sending::Draining | Sending::Reserving) {
                channel.state = Sending::Releasing;
                link.release(now, id);
                self.tick(now, link);
                return;
            }
        }
        self.end(now, id, CloseCause::ReceiverDied, link);
    }

    /// The contract of a channel that this node sends on.
    pub(crate) fn contract(&self, id: ChannelId) -> Option<&Contract> {
        self.outgoing.iter().find(|channel| channel.id == id).map(|channel| &channel.contract)
    }

    pub(crate) fn deadline(&self) -> Instant {
        if !self.events.is_empty() {
            return Instant::ZERO;
        }
        let waits = self.outgoing.iter().filter(|channel| {
            matches!(
                channel.state,
                Sending::Connecting | Sending::Closing | Sending::Open { acknowledged: false }
            )
        });
        let news = self.incoming.iter().filter(|channel| channel.has_news()).map(|channel| channel.tell_at);
        let own = waits.map(|channel| channel.again).chain(news).min().unwrap_or(Instant::FAR);
        own.min(self.silence_deadline()).min(self.doubt_deadline()).min(self.reach_deadline())
    }

    /// Repeats unanswered signals, follows draining channels, and gives up on the silent.
    pub(crate) fn tick(&mut self, now: Instant, link: &mut Rether) {
        for channel in &mut self.outgoing {
            if channel.state == Sending::Draining && link.is_drained(channel.id) {
                channel.state = Sending::Releasing;
                link.release(now, channel.id);
            }
            let verb = match channel.state {
                Sending::Connecting => Verb::Connect,
                Sending::Open { acknowledged: false } => Verb::Opened,
                Sending::Closing => Verb::Close,
                _ => continue,
            };
            if now < channel.again {
                continue;
            }
            channel.again = now + SIGNAL_INTERVAL;
            channel.tries += 1;
            if channel.tries > 1 {
                link.contest(now, channel.peer, Sign::Repeated);
            }
            let limit = if verb == Verb::Close { 5 } else { SIGNAL_TRIES };
            if channel.tries <= limit {
                link.send_signal(now, channel.peer, channel.signal(verb));
            } else if verb == Verb::Opened && link.number(channel.peer) == 0 {
                // It accepted and was forgotten since, maybe without a word: nobody receives.
                channel.cause = CloseCause::PeerGone;
                channel.state = Sending::Releasing;
                link.release(now, channel.id);
            } else if let Sending::Open { acknowledged } = &mut channel.state {
                // The receiver accepted; that it has not confirmed the contract's
                // figures is no reason to stop.
                *acknowledged = true;
            } else {
                if channel.state == Sending::Connecting {
                    channel.cause = CloseCause::NoAnswer;
                }
                channel.state = Sending::Closing;
                channel.tries = u8::MAX - 1;
            }
        }
        self.remember_unheard();
        self.reap(Outgoing::is_given_up);
        let stale = |channel: &Incoming| !channel.opened && now.since(channel.since) > UNOPENED_PATIENCE;
        while let Some(at) = self.incoming.iter().position(stale) {
            self.end_incoming(at, CloseCause::NoAnswer, None, None);
        }
        self.ask_senders(now, link);
        self.tell_tallies(now, link);
        self.answer_silence(now, link);
        self.ask_reach(now, link);
    }

    fn reap(&mut self, over: impl Fn(&Outgoing) -> bool) {
        while let Some(at) = self.outgoing.iter().position(&over) {
            let channel = self.outgoing.swap_remove(at);
            self.hand_on_asking(channel.peer, channel.reach.due);
            self.finish(&channel);
        }
    }

    fn finish(&mut self, channel: &Outgoing) {
        if let Some(refusal) = channel.refusal.clone() {
            self.events.push_back(ChannelEvent::Refused { channel: channel.id, refusal });
        } else if channel.is_granted_probe() {
            let (channel, contract) = (channel.id, channel.contract);
            self.events.push_back(ChannelEvent::Probed { channel, contract });
        } else if !channel.silent {
            let (tally, cause, stated) = (channel.final_tally(), channel.cause, Some(channel.final_stated()));
            let channel = channel.id;
            self.events.push_back(ChannelEvent::Closed { channel, cause, stated, tally, listener: None });
        }
    }

    // ---- from the other station -----------------------------------------------------------------------

    pub(crate) fn on_signal(&mut self, now: Instant, from: MacAddr, signal: &Signal, link: &mut Rether) {
        match signal.verb {
            Verb::Connect => self.on_connect(now, from, signal, link),
            Verb::Opened => self.on_opened(now, from, signal, link),
            Verb::Close => self.on_close(now, from, signal, link),
            // A ring may form without a station that has no number. It is asked again, and answers again.
            Verb::Accept if link.number(from) == 0 => {}
            Verb::Accept => {
                let channel = self.answered(from, signal);
                if let Some(channel) = channel.filter(|c| c.state == Sending::Connecting) {
                    channel.state = Sending::Reserving;
                    let OpenRequest { unit_octets_max, periodic, .. } = channel.request;
                    let (label, pace) = (channel.label, channel.pace);
                    let asked = Asked { to: from, label, unit_octets_max, pace, periodic };
                    link.reserve(now, channel.id, &asked);
                }
            }
            Verb::Refuse => self.on_refuse(now, from, signal, link),
            Verb::OpenedAck => {
                let channel = self.answered(from, signal);
                // An answer to an older word does not stand for one to the newest.
                let is_answer = |channel: &&mut Outgoing| channel.signal(Verb::Opened).is_answered_by(signal);
                if let Some(Outgoing { state: Sending::Open { acknowledged }, .. }) =
                    channel.filter(is_answer)
                {
                    *acknowledged = true;
                }
            }
            Verb::CloseAck => {
                self.on_tally(now, from, signal, link);
                self.on_late_count(now, from, signal, link);
                self.reap(|channel| {
                    let meant = channel.id.0 == signal.channel && channel.peer == from;
                    meant && channel.state == Sending::Closing
                });
            }
            Verb::Tally => self.on_tally(now, from, signal, link),
            Verb::Ask => self.on_ask(now, from, signal, link),
            Verb::Reach => self.on_reach(now, from, signal, link),
            Verb::Reached => self.on_reached(now, from, signal, link),
            Verb::Unknown(_) => {}
        }
    }

    fn on_connect(&mut self, now: Instant, from: MacAddr, signal: &Signal, link: &mut Rether) {
        let answer = Signal::new(Verb::Accept, signal.channel, signal.label);
        if let Some(known) = self.incoming.iter().find(|c| c.peer == from && c.remote == signal.channel) {
            if known.accepted {
                link.contest(now, from, Sign::Repeated);
                link.send_signal(now, from, answer);
            }
            return;
        }
        let at = match self.listener_for(from, signal.service, link) {
            Ok(at) => at,
            Err(None) => return,
            Err(Some(cause)) => {
                let code = cause.code();
                link.send_signal(now, from, Signal { verb: Verb::Refuse, code, ..answer });
                return;
            }
        };
        // One listener takes one channel; a program that wants more listens again.
        let taker = self.listeners.swap_remove(at);
        let listener = taker.id;
        let id = self.next_id();
        let contract = contract_of(signal, link);
        let (remote, label) = (signal.channel, signal.label);
        // An old channel under the same label is over: its sender would not use the label again.
        while let Some(old) = self.incoming.iter().position(|c| c.peer == from && c.label == label) {
            self.end_incoming(old, CloseCause::PeerGone, None, None);
        }
        self.incoming.push(Incoming {
            id,
            peer: from,
            remote,
            label,
            last_number: 0,
            newest: None,
            since: now,
            contract,
            accepted: false,
            opened: false,
            taker,
            meter: Meter::default(),
            strays: Strays::default(),
            reached: 0,
            doubt: None,
            told: Tally::default(),
            tell_at: now,
        });
        self.events.push_back(ChannelEvent::Incoming {
            channel: id,
            remote,
            label,
            listener,
            from,
            contract,
            before: signal.final_unit,
        });
    }

    /// The parent has room for the units of an incoming channel: now its sender may reserve. False when the
    /// channel has ended meanwhile.
    pub(crate) fn accept(&mut self, now: Instant, id: ChannelId, link: &mut Rether) -> bool {
        let Some(channel) = self.incoming.iter_mut().find(|channel| channel.id == id) else { return false };
        if !channel.accepted {
            channel.accepted = true;
            link.send_signal(now, channel.peer, Signal::new(Verb::Accept, channel.remote, channel.label));
        }
        true
    }

    /// Who takes a channel from that station: rather a program that waits for just this one. No cause where
    /// one is about to listen again.
    fn listener_for(&self, from: MacAddr, service: u16, link: &Rether) -> Result<usize, Option<CloseCause>> {
        if self.incoming.len() >= CHANNELS_MAX {
            return Err(Some(CloseCause::NoListener));
        }
        let sender = link.member_at(from);
        let rank = |listener: &Listener| match &listener.from {
            _ if listener.service != service => None,
            None => Some(1),
            Some(name) => sender.is_some_and(|sender| sender.is_called(name)).then_some(2),
        };
        let ranked =
            self.listeners.iter().enumerate().filter_map(|(at, listener)| Some((rank(listener)?, at)));
        ranked.max().map(|(_, at)| at).ok_or_else(|| {
            let is_listened_to = self.listeners.iter().any(|listener| listener.service == service);
            match self.returning.iter().any(|listener| rank(listener).is_some()) {
                true => None,
                false if is_listened_to => Some(CloseCause::NotForYou),
                false => Some(CloseCause::NoListener),
            }
        })
    }

    fn on_opened(&mut self, now: Instant, from: MacAddr, signal: &Signal, link: &mut Rether) {
        let Some(channel) = self.incoming.iter_mut().find(|c| c.peer == from && c.remote == signal.channel)
        else {
            // The sender was thought dead between our answer and its reservation: it would send to nobody.
            let gone = Signal::new(Verb::Refuse, signal.channel, signal.label);
            link.send_signal(now, from, Signal { code: CloseCause::PeerGone.code(), ..gone });
            return;
        };
        let contract = contract_of(signal, link);
        let is_news = channel.contract != contract;
        (channel.contract, channel.doubt) = (contract, None);
        let id = channel.id;
        if !channel.opened {
            channel.opened = true;
            self.events.push_back(ChannelEvent::IncomingOpened { channel: id, contract });
        } else if is_news {
            self.events.push_back(ChannelEvent::Changed { channel: id, contract });
        }
        link.send_signal(now, from, Signal { verb: Verb::OpenedAck, ..*signal });
    }

    fn on_close(&mut self, now: Instant, from: MacAddr, signal: &Signal, link: &mut Rether) {
        if let Some(at) = self.incoming.iter().position(|c| c.peer == from && c.remote == signal.channel) {
            let stated =
                Stated { units: signal.final_unit, left_out: signal.left_out, unsent: signal.unsent.into() };
            self.end_incoming(at, CloseCause::of_sender(signal.code), Some(stated), None);
        }
        link.send_signal(now, from, self.close_ack(from, signal));
    }

    fn on_refuse(&mut self, now: Instant, from: MacAddr, signal: &Signal, link: &mut Rether) {
        let Some(channel) = self.answered(from, signal) else { return };
        match channel.state {
            Sending::Connecting => {
                channel.cause = CloseCause::from_code(signal.code);
                let id = channel.id;
                self.tell_shortage(signal);
                self.reap(|channel| channel.id == id);
            }
            // The receiver went away while we were sending.
            Sending::Open { .. } | Sending::Draining | Sending::Reserving => {
                channel.state = Sending::Releasing;
                channel.cause = CloseCause::of_receiver(signal.code);
                // A receiver that knows nothing of the channel refuses it as gone.
                channel.confirmed = channel.cause != CloseCause::PeerGone;
                let id = channel.id;
                link.release(now, id);
            }
            Sending::Releasing | Sending::Closing => {}
        }
    }

    /// Ends a channel that is received here; reports the counts to its sender, if there is one and something
    /// went wrong.
    fn end_incoming(
        &mut self,
        at: usize,
        cause: CloseCause,
        stated: Option<Stated>,
        tell: Option<(Instant, &mut Rether)>,
    ) {
        let mut ended = self.incoming.swap_remove(at);
        let counted = stated.filter(|stated| ended.opened || stated.units == 0);
        let tally = ended.meter.end(counted);
        self.remember_end(&ended, counted.is_some());
        if let Some((now, link)) = tell.filter(|_| tally.broken() > 0) {
            link.send_signal(now, ended.peer, ended.tally_signal());
        }
        let Incoming { id: channel, opened, taker, .. } = ended;
        let listener = (!opened).then_some(taker.id);
        if !opened {
            // The parent will listen again, which takes it a while; whoever was refused may ask for less at
            // once, and is not to hear that nobody listens.
            self.returning.push(taker);
        }
        self.events.push_back(ChannelEvent::Closed { channel, cause, stated, tally, listener });
    }

    /// Which channel a fragment belongs to, and where in it; it is counted there.
    pub(crate) fn locate(
        &mut self,
        from: MacAddr,
        unit: &UnitHeader,
        arrived: Option<Instant>,
        (octets, payload_max): (usize, u32),
        one_clock: bool,
    ) -> Option<(ChannelId, UnitDescriptor)> {
        let channel = self.incoming.iter_mut().find(|c| c.peer == from && c.label == unit.label)?;
        // Sixteen bits on the wire; the rest follows from the last unit, either side of it.
        let step = unit.number.wrapping_sub(channel.last_number as u16).cast_signed();
        let number = channel.last_number.checked_add_signed(i64::from(step))?;
        let again = channel.newest.is_some_and(|newest| (number, unit.fragment) <= newest);
        if again && !planted(Bug::FragmentTwice) {
            return None;
        }
        (channel.newest, channel.doubt) = (Some((number, unit.fragment)), None);
        channel.last_number = number;
        if !channel.opened {
            // The word that it is open was lost, but only an open channel carries data.
            channel.opened = true;
            let (channel, contract) = (channel.id, channel.contract);
            self.events.push_back(ChannelEvent::IncomingOpened { channel, contract });
        }
        let misplaced = u32::from(planted(Bug::FragmentMisplaced));
        let descriptor = UnitDescriptor {
            number,
            unit_octets: unit.unit_octets,
            fragment: unit.fragment,
            fragment_offset: (u32::from(unit.fragment) - misplaced.min(u32::from(unit.fragment)))
                * payload_max,
            last: unit.last,
            schedule_ns: unit.schedule_ns,
            arrived,
            left_out: unit.left_out,
        };
        channel.meter.fragment(&descriptor, octets, one_clock, channel.contract.bound);
        Some((channel.id, descriptor))
    }

    // ---- from the token machine -----------------------------------------------------------------------

    pub(crate) fn on_link_event(&mut self, now: Instant, event: LinkEvent, link: &mut Rether) {
        match event {
            LinkEvent::Reserved { channel: id, admitted } => {
                let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) else { return };
                channel.promise(&admitted, link);
                if channel.state == Sending::Reserving && channel.probe {
                    channel.state = Sending::Releasing;
                    link.release(now, id);
                } else if channel.state == Sending::Reserving {
                    channel.state = Sending::Open { acknowledged: false };
                    channel.tries = 0;
                    channel.again = now;
                    let (label, contract) = (channel.label, channel.contract);
                    self.events.push_back(ChannelEvent::Opened { channel: id, label, contract });
                }
            }
            LinkEvent::Refused { channel: id, refusal } => {
                // Told when the receiver is free again, so that who asks for less at once finds it listening.
                if let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) {
                    channel.refusal = Some(refusal);
                }
                self.begin_closing(now, id, CloseCause::Refused, true);
            }
            LinkEvent::Resized { channel: id, unit_octets_max, admitted } => {
                let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) else { return };
                channel.request.unit_octets_max = unit_octets_max;
                channel.promise(&admitted, link);
                if matches!(channel.state, Sending::Open { .. }) {
                    channel.state = Sending::Open { acknowledged: false };
                    (channel.tries, channel.again) = (0, now);
                }
                let contract = channel.contract;
                self.events.push_back(ChannelEvent::Changed { channel: id, contract });
            }
            LinkEvent::NotResized { channel, refusal } => {
                self.events.push_back(ChannelEvent::NotChanged { channel, refusal });
            }
            LinkEvent::ReservationLost { channel } => {
                self.begin_closing(now, channel, CloseCause::ReservationLost, false);
            }
            LinkEvent::Released { channel: id } => {
                let cause = self.outgoing.iter().find(|c| c.id == id).map_or(CloseCause::Closed, |c| c.cause);
                let silent = self.outgoing.iter().any(|channel| channel.id == id && channel.silent);
                self.begin_closing(now, id, cause, silent);
            }
            LinkEvent::MemberGone { mac, stopped } => {
                let cause = if stopped { CloseCause::PeerStopped } else { CloseCause::PeerGone };
                self.on_member_gone(now, mac, cause, link);
                self.events.push_back(ChannelEvent::MembersChanged);
            }
            LinkEvent::MemberUp { .. } => self.events.push_back(ChannelEvent::MembersChanged),
            LinkEvent::Renumbered => {
                self.end_unnumbered(link);
                self.events.push_back(ChannelEvent::MembersChanged);
            }
            LinkEvent::Refusal { mac, why, here } => {
                self.events.push_back(ChannelEvent::Refusal { mac, why, here });
            }
            LinkEvent::Contested { mac, astray } => {
                self.events.push_back(ChannelEvent::Contested { mac, astray });
            }
            LinkEvent::Doubted { mac } => self.on_doubted(now, mac, link),
            LinkEvent::Struck(excluded) => self.events.push_back(ChannelEvent::Struck(excluded)),
            LinkEvent::TakenForDead => self.doubt_at_once(now),
            LinkEvent::ModeChanged => self.on_mode_changed(now, link),
        }
        self.tick(now, link);
    }

    fn begin_closing(&mut self, now: Instant, id: ChannelId, cause: CloseCause, silent: bool) {
        if let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) {
            channel.state = Sending::Closing;
            channel.cause = cause;
            channel.silent |= silent;
            // A station that is gone answers nothing, and the program is to hear of it at once.
            let is_gone = matches!(channel.cause, CloseCause::PeerGone | CloseCause::PeerStopped);
            channel.tries = if is_gone { u8::MAX - 1 } else { 0 };
            channel.again = now;
        }
    }

    /// Stations have other numbers. Who is in a ring has one: an open channel's sender that has none has left
    /// it. What was asked of, or by, one that has none for now goes on when it has one again.
    fn end_unnumbered(&mut self, link: &Rether) {
        let over = |channel: &Incoming| channel.opened && link.number(channel.peer) == 0;
        while let Some(at) = self.incoming.iter().position(over) {
            self.end_incoming(at, CloseCause::PeerGone, None, None);
        }
    }

    fn on_member_gone(&mut self, now: Instant, peer: MacAddr, cause: CloseCause, link: &mut Rether) {
        if planted(Bug::DeadPeerKept) {
            return;
        }
        while let Some(at) = self.incoming.iter().position(|channel| channel.peer == peer) {
            self.end_incoming(at, cause, None, None);
        }
        for channel in self.outgoing.iter_mut().filter(|channel| channel.peer == peer) {
            match channel.state {
                Sending::Open { .. } | Sending::Draining | Sending::Reserving => {
                    channel.cause = cause;
                    channel.state = Sending::Releasing;
                    link.release(now, channel.id);
                }
                Sending::Connecting => {
                    channel.cause = cause;
                    channel.state = Sending::Closing;
                    channel.tries = u8::MAX - 1;
                    channel.again = now;
                }
                // It ends already, for a reason of its own: only nobody is left to be told.
                Sending::Closing => {
                    channel.tries = u8::MAX - 1;
                    channel.again = now;
                }
                Sending::Releasing => {}
            }
        }
    }
}

fn contract_of(signal: &Signal, link: &Rether) -> Contract {
    let (period, cycle) = (Span::from_nanos(u64::from(signal.period_ns)), link.settings().trt);
    Contract {
        unit_octets_max: signal.unit_octets_max,
        period,
        bound: Span::from_nanos(signal.bound_ns),
        cycle,
        buffers: Pace::of(period, cycle).unwrap_or(Pace::EVERY_CYCLE).buffers(),
        ..Contract::default()
    }
}

impl Outgoing {
    fn promise(&mut self, admitted: &Admitted, link: &Rether) {
        self.contract = Contract {
            unit_octets_max: self.request.unit_octets_max,
            period: self.request.period,
            bound: admitted.bound,
            offset: admitted.offset,
            tht: admitted.tht,
            cycle: link.settings().trt,
            buffers: self.pace.buffers(),
        };
    }

    fn signal(&self, verb: Verb) -> Signal {
        // Who is asked to listen makes room for what the channel may grow to.
        let OpenRequest { unit_octets_max, room_octets, .. } = self.request;
        Signal {
            code: self.cause.code(),
            service: self.request.service,
            unit_octets_max: if verb == Verb::Connect { room_octets } else { unit_octets_max },
            period_ns: self.request.period.as_nanos() as u32,
            bound_ns: self.contract.bound.as_nanos(),
            final_unit: if verb == Verb::Connect { self.before } else { self.stated().units },
            left_out: self.stated().left_out,
            unsent: u32::try_from(self.final_stated().unsent).unwrap_or(u32::MAX),
            ..Signal::new(verb, self.id.0, self.label)
        }
    }
}
