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

mod apart;
mod astray;
mod cpu;
mod decline;
mod doubt;
mod ended;
mod event;
pub(crate) mod follow;
mod incoming;
pub mod lateness;
mod lost;
mod meter;
#[cfg(feature = "model")]
mod model;
mod outgoing;
mod probe;
mod reach;
mod request;
mod signalling;
mod sound;
mod stated;
#[cfg(test)]
mod tests;
mod unread;
mod unstated;
mod want;
mod within;

use crate::io::{ChannelId, Destination, UnitDescriptor, channel_of};
use crate::segment::{MediumEvent, Segment, Wants};
pub use decline::Shortage;
pub use event::{ChannelEvent, ReceiverChange};
use incoming::Incoming;
use lateness::OneWay;
use meter::Meter;
pub(crate) use outgoing::Grant;
use outgoing::{Ending, Outgoing, Repeats, Sending, Units};
pub use request::{Listener, OpenRequest, RequestError, ResizeError, Sender};
use rota_admission::{Admitted, Pace};
use rota_contract::{AskedTerms, CloseCause, Granted, NodeId, TrafficSpec, UNIT_OCTETS_MAX};
use rota_units::{Instant, Span};
use rota_wire::{MacAddr, Signal, UnitHeader, Verb};
use signalling::Tells;
pub use stated::Stated;
use std::collections::VecDeque;
pub(crate) use want::Want;

/// The ledger.
#[derive(Clone, Debug)]
pub(crate) struct Channels {
    /// This host.
    own: NodeId,
    counter: u64,
    next_label: u16,
    outgoing: Vec<Outgoing>,
    incoming: Vec<Incoming>,
    listeners: Vec<Listener>,
    /// Those whose channel never opened, until the parent has had them listen again or taken them back. A
    /// station that asks for one meanwhile is not answered, and asks again.
    returning: Vec<Listener>,
    /// The listener that the newest call has taken.
    taken: Option<u64>,
    events: VecDeque<ChannelEvent>,
    /// The answers to the senders of the newest channels received here that have ended.
    ended: VecDeque<(MacAddr, Signal)>,
    /// The ends of the newest channels sent here that no receiver has acknowledged.
    unheard: VecDeque<Outgoing>,
    /// The newest channels received here that have ended without a statement of their silent sender.
    unstated: VecDeque<Incoming>,
    /// The wishes of the channels to the medium.
    wants: Wants<Want>,
}

/// A sender asks for its channel's end within seconds.
const ENDED_MAX: usize = 32;
const SIGNAL_INTERVAL: Span = Span::from_millis(200);
/// How long a receiver is kept for a sender that asked for it and never got its reservation.
const UNOPENED_PATIENCE: Span = Span::from_millis(30_000);
const CHANNELS_MAX: usize = 200;

impl Channels {
    /// `seed` differs at each boot: a receiver that has not noticed a restart must not take a new channel
    /// for one of the old boot, so that ids do not begin anew.
    pub(crate) fn new(own: NodeId, seed: u64) -> Self {
        Self {
            own,
            counter: seed & 0x7fff_ffff,
            next_label: 1,
            outgoing: Vec::with_capacity(CHANNELS_MAX),
            incoming: Vec::with_capacity(CHANNELS_MAX),
            listeners: Vec::new(),
            returning: Vec::with_capacity(CHANNELS_MAX),
            taken: None,
            events: VecDeque::with_capacity(1024),
            ended: VecDeque::with_capacity(ENDED_MAX),
            unheard: VecDeque::with_capacity(ENDED_MAX),
            unstated: VecDeque::with_capacity(ENDED_MAX),
            wants: Wants::new(want::ROOM),
        }
    }

    /// True if the channels want anything.
    #[inline]
    pub(crate) fn has_want(&self) -> bool {
        !self.wants.is_empty()
    }

    /// The next wish to the medium; the parent asks after each call until there is nothing.
    pub(crate) fn next_want(&mut self) -> Option<Want> {
        self.wants.next()
    }

    pub(crate) fn next_event(&mut self) -> Option<ChannelEvent> {
        self.events.pop_front()
    }

    pub(crate) fn has_event(&self) -> bool {
        !self.events.is_empty()
    }

    /// Channel ids are the origin's low bits above a counter, so that they differ between nodes.
    pub(crate) fn next_id(&mut self) -> ChannelId {
        // Below the origin's bits: after 2^32 channels the first ones are long closed.
        self.counter = self.counter % u64::from(u32::MAX) + 1;
        ChannelId((self.own.0 << 32) | self.counter)
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
    pub(crate) fn listen_again(&mut self, id: u64) -> Option<&Listener> {
        let at = self.returning.iter().position(|listener| listener.id == id)?;
        self.listeners.push(self.returning.swap_remove(at));
        self.listeners.last()
    }

    /// The listeners that take a channel, in their order.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = &Listener> {
        self.listeners.iter()
    }

    /// A listener takes a channel that does not go by this ledger.
    pub(crate) fn take(&mut self, id: u64) -> Option<Listener> {
        let at = self.listeners.iter().position(|listener| listener.id == id)?;
        Some(self.listeners.remove(at))
    }

    /// Its channel never opened: it may listen again.
    pub(crate) fn give_back(&mut self, listener: Listener) {
        self.returning.push(listener);
    }

    /// The listener that the newest call has taken: no other ledger of the node may give it a channel.
    pub(crate) fn take_taken(&mut self) -> Option<u64> {
        self.taken.take()
    }

    pub(crate) fn unlisten(&mut self, id: u64) {
        self.listeners.retain(|listener| listener.id != id);
        self.returning.retain(|listener| listener.id != id);
    }

    /// Opens a channel. `hop` is the station of this segment through which the destination is reached.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        request: &OpenRequest,
        hop: Option<MacAddr>,
        before: u64,
        segment: Segment<'_>,
    ) -> Result<ChannelId, RequestError> {
        let Destination::Node(peer) = request.to else { return Err(RequestError::Group) };
        if segment.station() == 0 {
            return Err(RequestError::NotJoined);
        }
        if segment.stations() > Segment::STATIONS_MAX {
            return Err(RequestError::TooManyStations(segment.stations()));
        }
        if peer == self.own {
            return Err(RequestError::OwnStation(segment.mac()));
        }
        let hop = hop.and_then(|hop| segment.member_at(hop)).ok_or(RequestError::NoSuchNode(peer))?;
        if hop.station == 0 {
            return Err(RequestError::PeerNotJoined(hop.mac));
        }
        let TrafficSpec { unit_octets_max: asked, room_octets: room, period, .. } = request.traffic;
        if asked == 0 || asked > UNIT_OCTETS_MAX {
            return Err(RequestError::UnitSize(asked));
        }
        if room < asked || room > UNIT_OCTETS_MAX {
            return Err(RequestError::Room { room, unit: asked });
        }
        let trt = segment.trt();
        let pace =
            Pace::of(period, trt).map_err(|nearest| RequestError::Period { asked: period, trt, nearest })?;
        if self.outgoing.len() >= CHANNELS_MAX {
            return Err(RequestError::TooMany(CHANNELS_MAX));
        }
        let id = self.next_id();
        let label = self.free_label();
        let traffic = TrafficSpec { period: pace.period(trt), ..request.traffic };
        let outgoing = Outgoing {
            id,
            peer,
            hop: hop.mac,
            label,
            request: OpenRequest { traffic, ..request.clone() },
            pace,
            state: Sending::Connecting(Repeats::from(now)),
            granted: Granted::default(),
            units: Units { before, ..Units::default() },
            meter: Meter::default(),
            ending: Ending::OPEN,
            began: now,
            probe: false,
            asked: AskedTerms::default(),
            grant: None,
            reach: reach::Reach::default(),
            host: Span::ZERO,
        };
        self.outgoing.push(outgoing);
        self.tick(now, segment);
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
    pub(crate) fn close(&mut self, now: Instant, id: ChannelId, segment: Segment<'_>) {
        self.end(now, id, CloseCause::ReceiverClosed, segment);
    }

    /// Somebody else than its program ends it.
    pub(crate) fn revoke(&mut self, now: Instant, id: ChannelId, segment: Segment<'_>) {
        if let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) {
            channel.ending.cause = CloseCause::Revoked;
        }
        self.end(now, id, CloseCause::Revoked, segment);
    }

    /// Sends what is ready, then gives the reservation back. A receiver's end says why to both sides.
    fn end(&mut self, now: Instant, id: ChannelId, receiver_cause: CloseCause, segment: Segment<'_>) {
        if let Some(at) = self.incoming.iter().position(|channel| channel.id == id) {
            let channel = &self.incoming[at];
            // A sender without a reservation only wants to know whether somebody listens.
            let cause = if channel.opened { receiver_cause } else { CloseCause::NoListener };
            let refuse = Signal::new(Verb::Refuse, channel.remote, channel.label);
            let (hop, refuse) = (channel.hop, Signal { code: cause.code(), ..refuse });
            self.end_incoming(at, receiver_cause, None, Tells::Sender);
            self.wants.push(Want::Signal { to: hop, signal: refuse });
            return;
        }
        let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) else { return };
        match channel.state {
            Sending::Open { .. } => channel.state = Sending::Draining,
            Sending::Connecting(_) => channel.state = Sending::Closing(Repeats::from(now)),
            Sending::Reserving => channel.release(&mut self.wants),
            Sending::Draining | Sending::Releasing | Sending::Closing(_) | Sending::Over => {}
        }
        self.tick(now, segment);
    }

    /// The node at the other end of a channel, and the station of this segment on the way there.
    pub(crate) fn peer(&self, id: ChannelId) -> Option<(NodeId, MacAddr)> {
        let outgoing = self.outgoing.iter().map(|channel| (channel.id, channel.peer, channel.hop));
        let incoming = self.incoming.iter().map(|channel| (channel.id, channel.peer, channel.hop));
        outgoing.chain(incoming).find(|(known, ..)| *known == id).map(|(_, peer, hop)| (peer, hop))
    }

    /// The channel that a station's signal answers.
    fn answered(&mut self, from: MacAddr, signal: &Signal) -> Option<&mut Outgoing> {
        self.outgoing.iter_mut().find(|channel| channel.id == signal.channel && channel.hop == from)
    }

    /// Asks for units of another size; the answer comes as an event.
    pub(crate) fn resize(
        &mut self,
        id: ChannelId,
        asked: u32,
        segment: Segment<'_>,
    ) -> Result<(), ResizeError> {
        let is_open = |channel: &&Outgoing| channel.id == id && matches!(channel.state, Sending::Open { .. });
        let channel = self.outgoing.iter().find(is_open).ok_or(ResizeError::NoChannel(id))?;
        let room = channel.request.traffic.room_octets;
        if asked == 0 || asked > room {
            return Err(ResizeError::Room { asked, room });
        }
        if !segment.has_share(id) {
            return Err(ResizeError::NoChannel(id));
        }
        self.wants.push(Want::Resize { channel: id, unit_octets_max: asked });
        Ok(())
    }

    /// The program behind the channel is dead: its reservation is freed, and no other unit begins to leave. A
    /// unit that has left in part leaves whole before: its receiver would take it for damaged by the wire.
    /// True if there is one: its octets are needed until then.
    pub(crate) fn abort(&mut self, now: Instant, id: ChannelId, segment: Segment<'_>) -> bool {
        if let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) {
            let was_open = matches!(channel.state, Sending::Open { .. } | Sending::Draining);
            // The end of a channel that has been open is news for the log of this station.
            channel.ending.silent = channel.probe || !was_open;
            channel.ending.cause = CloseCause::SenderDied;
            let due = segment.oldest_ready(id).unwrap_or(channel.meter.due());
            let goes_on = was_open && segment.has_unit_in_part(id);
            channel.withdraw(now, due, goes_on);
            if goes_on {
                self.wants.push(Want::KeepUnitInPart { channel: id });
                channel.state = Sending::Draining;
                return true;
            }
            if was_open || channel.state == Sending::Reserving {
                channel.release(&mut self.wants);
                self.tick(now, segment);
                return false;
            }
        }
        self.end(now, id, CloseCause::ReceiverDied, segment);
        false
    }

    /// The contract of a channel that this node sends on.
    pub(crate) fn granted(&self, id: ChannelId) -> Option<&Granted> {
        self.outgoing.iter().find(|channel| channel.id == id).map(|channel| &channel.granted)
    }

    pub(crate) fn deadline(&self) -> Instant {
        if !self.events.is_empty() {
            return Instant::ZERO;
        }
        let waits = self.outgoing.iter().map(|channel| channel.state.due());
        let news = self.incoming.iter().filter(|channel| channel.has_news()).map(|channel| channel.tell_at);
        let own = waits.chain(news).min().unwrap_or(Instant::FAR);
        own.min(self.silence_deadline()).min(self.doubt_deadline()).min(self.reach_deadline())
    }

    /// Repeats unanswered signals, follows draining channels, and gives up on the silent.
    pub(crate) fn tick(&mut self, now: Instant, segment: Segment<'_>) {
        for channel in &mut self.outgoing {
            channel.tick(now, segment, &mut self.wants);
        }
        self.remember_unheard();
        self.reap(Outgoing::is_given_up);
        let stale = |channel: &Incoming| !channel.opened && now.since(channel.since) > UNOPENED_PATIENCE;
        while let Some(at) = self.incoming.iter().position(stale) {
            self.end_incoming(at, CloseCause::NoAnswer, None, Tells::Nobody);
        }
        self.ask_senders(now, segment);
        self.tell_tallies(now);
        self.answer_silence(now);
        self.ask_reach(now, segment);
    }

    fn reap(&mut self, over: impl Fn(&Outgoing) -> bool) {
        while let Some(at) = self.outgoing.iter().position(&over) {
            let channel = self.outgoing.swap_remove(at);
            self.hand_on_asking(channel.hop, channel.reach.due);
            self.finish(&channel);
        }
    }

    fn finish(&mut self, channel: &Outgoing) {
        if let Some(refusal) = channel.ending.refusal.clone() {
            self.events.push_back(ChannelEvent::Refused { channel: channel.id, refusal });
        } else if let Some(denied) = channel.ending.denied {
            let (channel, name, withdrawn) = (channel.id, None, None);
            self.events.push_back(ChannelEvent::Denied { channel, denied, name, withdrawn, partition: None });
        } else if channel.is_granted_probe() {
            let (channel, granted) = (channel.id, channel.granted);
            self.events.push_back(ChannelEvent::Probed { channel, granted });
        } else if !channel.ending.silent {
            let (tally, cause, stated) =
                (channel.final_tally(), channel.ending.cause, Some(channel.final_stated()));
            let (channel, listener, awaits) = (channel.id, None, false);
            self.events.push_back(ChannelEvent::Closed { channel, cause, stated, tally, listener, awaits });
        }
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
        let channel = self.incoming.iter_mut().find(|c| c.hop == from && c.label == unit.label)?;
        // Sixteen bits on the wire; the rest follows from the last unit, either side of it.
        let step = unit.number.wrapping_sub(channel.last_number as u16).cast_signed();
        let number = channel.last_number.checked_add_signed(i64::from(step))?;
        let again = channel.newest.is_some_and(|newest| (number, unit.fragment) <= newest);
        if again {
            return None;
        }
        (channel.newest, channel.doubt) = (Some((number, unit.fragment)), None);
        channel.last_number = number;
        if !channel.opened {
            // The word that it is open was lost, but only an open channel carries data.
            channel.opened = true;
            let (channel, granted) = (channel.id, channel.granted);
            self.events.push_back(ChannelEvent::IncomingOpened { channel, granted });
        }
        let descriptor = UnitDescriptor {
            number,
            unit_octets: unit.unit_octets,
            fragment: unit.fragment,
            fragment_offset: u32::from(unit.fragment) * payload_max,
            last: unit.last,
            schedule_ns: unit.schedule_ns,
            arrived,
            left_out: unit.left_out,
        };
        channel.meter.fragment(&descriptor, octets, one_clock, channel.granted.bound());
        Some((channel.id, descriptor))
    }

    // ---- from the token machine -----------------------------------------------------------------------

    pub(crate) fn on_medium_event(&mut self, now: Instant, event: MediumEvent, segment: Segment<'_>) {
        match event {
            MediumEvent::Reserved { session, admitted } => {
                self.on_reserved(now, channel_of(session), &admitted, segment);
            }
            MediumEvent::Refused { session, refusal } => {
                let id = channel_of(session);
                // Told when the receiver is free again, so that who asks for less at once finds it listening.
                if let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) {
                    channel.ending.refusal = Some(refusal);
                }
                self.begin_closing(now, id, CloseCause::Refused, true);
            }
            MediumEvent::Resized { session, unit_octets_max, admitted, slots } => {
                let id = channel_of(session);
                let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) else { return };
                channel.request.traffic.unit_octets_max = unit_octets_max;
                channel.promise(&admitted, slots, segment);
                if matches!(channel.state, Sending::Open { .. }) {
                    channel.state = Sending::Open { telling: Some(Repeats::from(now)) };
                }
                let granted = channel.granted;
                self.events.push_back(ChannelEvent::Changed { channel: id, granted });
            }
            MediumEvent::NotResized { session, refusal } => {
                self.events.push_back(ChannelEvent::NotChanged { channel: channel_of(session), refusal });
            }
            MediumEvent::ReservationLost { session } => {
                self.begin_closing(now, channel_of(session), CloseCause::ReservationLost, false);
            }
            MediumEvent::Released { session } => {
                let id = channel_of(session);
                let cause = self
                    .outgoing
                    .iter()
                    .find(|c| c.id == id)
                    .map_or(CloseCause::Finished, |c| c.ending.cause);
                let silent = self.outgoing.iter().any(|channel| channel.id == id && channel.ending.silent);
                self.begin_closing(now, id, cause, silent);
            }
            MediumEvent::MemberGone { mac, stopped, died } => {
                let cause = if stopped { CloseCause::PeerStopped } else { CloseCause::PeerGone };
                self.on_member_gone(mac, cause, if died { Tells::Dead } else { Tells::Nobody });
                self.events.push_back(ChannelEvent::MembersChanged);
            }
            MediumEvent::MemberUp { station } => {
                self.ask_unstated(station, segment);
                self.events.push_back(ChannelEvent::MembersChanged);
            }
            MediumEvent::Renumbered => {
                self.end_unnumbered(segment);
                self.events.push_back(ChannelEvent::MembersChanged);
            }
            MediumEvent::Refusal { mac, why, here } => {
                self.events.push_back(ChannelEvent::Refusal { mac, why, here });
            }
            MediumEvent::Contested { mac, astray } => {
                self.events.push_back(ChannelEvent::Contested { mac, astray });
            }
            MediumEvent::Doubted { mac } => self.on_doubted(now, mac, segment),
            MediumEvent::Struck(excluded) => self.events.push_back(ChannelEvent::Struck(excluded)),
            MediumEvent::TakenForDead => self.doubt_at_once(now),
            // Only a hop's share is asked for more so.
            MediumEvent::Enlarged { .. } => {}
            MediumEvent::ModeChanged => self.on_mode_changed(now, segment),
        }
        self.tick(now, segment);
    }

    fn on_reserved(&mut self, now: Instant, id: ChannelId, admitted: &Admitted, segment: Segment<'_>) {
        let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) else { return };
        channel.promise(admitted, Vec::new(), segment);
        if channel.state != Sending::Reserving {
            return;
        }
        let is_absent = segment.number(channel.hop) == 0;
        channel.ending.denied = channel.denied(segment);
        if channel.probe || is_absent || channel.ending.denied.is_some() {
            // The ring may have formed without the receiver, whose units would reach nobody.
            channel.ending.cause = if is_absent { CloseCause::PeerGone } else { channel.ending.cause };
            channel.release(&mut self.wants);
            return;
        }
        channel.state = Sending::Open { telling: Some(Repeats::from(now)) };
        let (label, granted) = (channel.label, channel.granted);
        self.events.push_back(ChannelEvent::Opened { channel: id, label, granted });
    }

    fn begin_closing(&mut self, now: Instant, id: ChannelId, cause: CloseCause, silent: bool) {
        if let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) {
            channel.ending.cause = cause;
            channel.ending.silent |= silent;
            // A station that is gone answers nothing, and the program is to hear of it at once.
            let is_gone = matches!(channel.ending.cause, CloseCause::PeerGone | CloseCause::PeerStopped);
            channel.state = if is_gone { Sending::Over } else { Sending::Closing(Repeats::from(now)) };
        }
    }

    /// Stations have other numbers. A station in a ring has one: an open channel's sender that has none has
    /// left it. A request of, or by, one that has none for now goes on when it has one again.
    fn end_unnumbered(&mut self, segment: Segment<'_>) {
        let over = |channel: &Incoming| channel.opened && segment.number(channel.hop) == 0;
        while let Some(at) = self.incoming.iter().position(over) {
            self.end_incoming(at, CloseCause::PeerGone, None, Tells::Nobody);
        }
    }

    fn on_member_gone(&mut self, hop: MacAddr, cause: CloseCause, tells: Tells) {
        while let Some(at) = self.incoming.iter().position(|channel| channel.hop == hop) {
            self.end_incoming(at, cause, None, tells);
        }
        for channel in self.outgoing.iter_mut().filter(|channel| channel.hop == hop) {
            match channel.state {
                Sending::Open { .. } | Sending::Draining | Sending::Reserving => {
                    channel.ending.cause = cause;
                    channel.release(&mut self.wants);
                }
                Sending::Connecting(_) => (channel.ending.cause, channel.state) = (cause, Sending::Over),
                // It ends already, for a reason of its own: only nobody is left to be told.
                Sending::Closing(_) => channel.state = Sending::Over,
                Sending::Releasing | Sending::Over => {}
            }
        }
    }
}
