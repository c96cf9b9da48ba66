//! The signals of the other station of a channel, and the answers to them.

use super::astray::AstrayUnits;
use super::incoming::Incoming;
use super::meter::Meter;
use super::outgoing::{Outgoing, Sending};
use super::{CHANNELS_MAX, ChannelEvent, Channels, Listener, Stated, Want, request};
use crate::cause;
use crate::io::{ChannelId, ShareRequest};
use crate::segment::Segment;
use rota_admission::Pace;
use rota_contract::{CloseCause, Granted, Tally, TrafficSpec};
use rota_medium::door::Share;
use rota_units::{Instant, Span};
use rota_wire::{MacAddr, Signal, Verb};

/// The station that hears the counts of a channel whose receiver ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tells {
    /// Its sender is not there, or knows the end.
    Nobody,
    /// Its sender's node has died, and states nothing any more.
    Dead,
    /// Its sender, if something went wrong.
    Sender,
}

impl Channels {
    pub(crate) fn on_signal(&mut self, now: Instant, from: MacAddr, signal: &Signal, segment: Segment<'_>) {
        match signal.verb {
            Verb::Connect => self.on_connect(now, from, signal, segment),
            Verb::Opened => self.on_opened(from, signal, segment),
            Verb::Close => self.on_close(now, from, signal, segment),
            // A ring may form without a station that has no number. It is asked again, and answers again.
            Verb::Accept if segment.number(from) == 0 => {}
            Verb::Accept => {
                let channel = self.answered(from, signal);
                if let Some(channel) = channel.filter(|c| matches!(c.state, Sending::Connecting(_))) {
                    channel.state = Sending::Reserving;
                    let TrafficSpec { unit_octets_max, periodic, .. } = channel.request.traffic;
                    let (label, pace) = (channel.label, channel.pace);
                    let share = Share { unit_octets_max, pace, periodic, partition: 0, flow: None };
                    let asked = ShareRequest { to: from, label, share };
                    let channel = channel.id;
                    self.wants.push(Want::Reserve { channel, asked });
                }
            }
            Verb::Refuse => self.on_refuse(from, signal, segment),
            Verb::OpenedAck => {
                let channel = self.answered(from, signal);
                // An answer to an older word does not stand for one to the newest.
                let is_answer = |channel: &&mut Outgoing| channel.signal(Verb::Opened).is_answered_by(signal);
                if let Some(Outgoing { state: Sending::Open { telling }, .. }) = channel.filter(is_answer) {
                    *telling = None;
                }
            }
            Verb::CloseAck => {
                self.on_tally(now, from, signal);
                self.on_late_count(now, from, signal);
                self.reap(|channel| {
                    let meant = channel.id == signal.channel && channel.hop == from;
                    meant && channel.has_stated_its_end()
                });
            }
            Verb::Tally => self.on_tally(now, from, signal),
            Verb::Ask => self.on_ask(now, from, signal),
            Verb::Reach => self.on_reach(from, signal),
            Verb::Reached => self.on_reached(now, from, signal, segment),
            Verb::Unknown(_) => {}
        }
    }

    pub(super) fn on_connect(&mut self, now: Instant, from: MacAddr, signal: &Signal, segment: Segment<'_>) {
        let answer = Signal::new(Verb::Accept, signal.channel, signal.label);
        if let Some(known) = self.incoming.iter().find(|c| c.hop == from && c.remote == signal.channel) {
            if known.accepted {
                self.wants.push(Want::Contest { mac: from });
                self.wants.push(Want::Signal { to: from, signal: answer });
            }
            return;
        }
        let at = match self.listener_for(from, signal.service, segment) {
            Ok(at) => at,
            Err(None) => return,
            Err(Some(cause)) => {
                let signal = Signal { verb: Verb::Refuse, code: cause.code(), ..answer };
                self.wants.push(Want::Signal { to: from, signal });
                return;
            }
        };
        // One listener takes one channel; a program that wants more listens again.
        let taker = self.listeners.swap_remove(at);
        let listener = taker.id;
        self.taken = Some(listener);
        let id = self.next_id();
        let granted = granted_of(signal, segment);
        let (remote, label, peer) = (signal.channel, signal.label, segment.node_at(from));
        // An old channel under the same label is over: its sender would not use the label again.
        while let Some(old) = self.incoming.iter().position(|c| c.hop == from && c.label == label) {
            self.end_incoming(old, CloseCause::PeerGone, None, Tells::Nobody);
        }
        self.incoming.push(Incoming {
            id,
            peer,
            hop: from,
            remote,
            label,
            last_number: 0,
            newest: None,
            since: now,
            granted,
            accepted: false,
            opened: false,
            taker,
            meter: Meter::default(),
            astray: AstrayUnits::default(),
            reached: 0,
            doubt: None,
            told: Tally::default(),
            tell_at: now,
            apart: None,
        });
        self.events.push_back(ChannelEvent::Incoming {
            channel: id,
            remote,
            label,
            listener,
            peer,
            granted,
            before: signal.final_unit,
        });
    }

    /// The parent has room for the units of an incoming channel: now its sender may reserve. False when the
    /// channel has ended meanwhile.
    pub(crate) fn accept(&mut self, id: ChannelId) -> bool {
        let Some(channel) = self.incoming.iter_mut().find(|channel| channel.id == id) else { return false };
        if !channel.accepted {
            channel.accepted = true;
            let signal = Signal::new(Verb::Accept, channel.remote, channel.label);
            self.wants.push(Want::Signal { to: channel.hop, signal });
        }
        true
    }

    /// Who takes a channel from that station: rather a program that waits for just this one. No cause where
    /// one is about to listen again.
    pub(super) fn listener_for(
        &self,
        from: MacAddr,
        service: u16,
        segment: Segment<'_>,
    ) -> Result<usize, Option<CloseCause>> {
        if self.incoming.len() >= CHANNELS_MAX {
            return Err(Some(CloseCause::NoListener));
        }
        let sender = segment.member_at(from);
        let rank = |listener: &Listener| match &listener.from {
            _ if listener.service != service => None,
            None => Some(1),
            Some(from) => sender.is_some_and(|sender| from.is(sender)).then_some(2),
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

    pub(super) fn on_opened(&mut self, from: MacAddr, signal: &Signal, segment: Segment<'_>) {
        let Some(channel) = self.incoming.iter_mut().find(|c| c.hop == from && c.remote == signal.channel)
        else {
            // The sender was thought dead between our answer and its reservation: it would send to nobody.
            let gone = Signal::new(Verb::Refuse, signal.channel, signal.label);
            let signal = Signal { code: CloseCause::PeerGone.code(), ..gone };
            self.wants.push(Want::Signal { to: from, signal });
            return;
        };
        let granted = granted_of(signal, segment);
        let is_news = channel.granted != granted;
        (channel.granted, channel.doubt) = (granted, None);
        let id = channel.id;
        if !channel.opened {
            channel.opened = true;
            self.events.push_back(ChannelEvent::IncomingOpened { channel: id, granted });
        } else if is_news {
            self.events.push_back(ChannelEvent::Changed { channel: id, granted });
        }
        self.wants.push(Want::Signal { to: from, signal: Signal { verb: Verb::OpenedAck, ..*signal } });
    }

    pub(super) fn on_close(&mut self, now: Instant, from: MacAddr, signal: &Signal, segment: Segment<'_>) {
        if let Some(at) = self.incoming.iter().position(|c| c.hop == from && c.remote == signal.channel) {
            let stated = Stated::at_end(signal);
            if self.incoming[at].is_read_on(now, stated.units) {
                // Its sender asks again.
                return;
            }
            let may_be = self.incoming[at].may_have_had(now, &stated, segment.trt());
            if !may_be {
                self.wants.push(Want::CountRefusedTally);
            }
            self.end_incoming(at, cause::of_sender(signal.code), may_be.then_some(stated), Tells::Nobody);
        } else {
            self.on_late_end(now, from, signal, segment.trt());
        }
        self.wants.push(Want::Signal { to: from, signal: self.close_ack(from, signal) });
    }

    pub(super) fn on_refuse(&mut self, from: MacAddr, signal: &Signal, segment: Segment<'_>) {
        let meant = |channel: &&mut Outgoing| channel.id == signal.channel && channel.hop == from;
        let Some(channel) = self.outgoing.iter_mut().find(meant) else { return };
        match channel.state {
            Sending::Connecting(_) => {
                channel.ending.cause = cause::from_wire(signal.code);
                channel.ending.denied = super::cpu::denied(signal, segment.node_at(from));
                let id = channel.id;
                self.tell_shortage(signal);
                self.reap(|channel| channel.id == id);
            }
            // The receiver went away while we were sending.
            Sending::Open { .. } | Sending::Draining | Sending::Reserving => {
                channel.ending.cause = cause::of_receiver(signal.code);
                // A receiver that knows nothing of the channel refuses it as gone.
                channel.ending.confirmed = channel.ending.cause != CloseCause::PeerGone;
                channel.release(&mut self.wants);
            }
            Sending::Releasing | Sending::Closing(_) | Sending::Over => {}
        }
    }

    /// Ends a channel that is received here.
    pub(super) fn end_incoming(
        &mut self,
        at: usize,
        cause: CloseCause,
        stated: Option<Stated>,
        tells: Tells,
    ) {
        let mut ended = self.incoming.swap_remove(at);
        let counted = stated.filter(|stated| ended.opened || stated.units == 0);
        let awaits = stated.is_none() && self.remember_unstated(ended.clone(), cause) && tells != Tells::Dead;
        let tally = ended.meter.end(counted);
        self.remember_end(&ended, counted.is_some());
        if tells == Tells::Sender && tally.broken() > 0 {
            self.wants.push(Want::Signal { to: ended.hop, signal: ended.tally_signal() });
        }
        let Incoming { id: channel, opened, taker, .. } = ended;
        let listener = (!opened).then_some(taker.id);
        if !opened {
            // The parent will listen again, which takes it a while; whoever was refused may ask for less at
            // once, and is not to hear that nobody listens.
            self.returning.push(taker);
        }
        self.events.push_back(ChannelEvent::Closed { channel, cause, stated, tally, listener, awaits });
    }
}

/// The promise as the sender states it; only the sender knows its slot.
pub(super) fn granted_of(signal: &Signal, segment: Segment<'_>) -> Granted {
    let period = Span::from_nanos(u64::from(signal.period_ns));
    let pace = Pace::of(period, segment.trt()).unwrap_or(Pace::EVERY_CYCLE);
    let bound = Span::from_nanos(signal.bound_ns);
    request::granted(signal.unit_octets_max, period, bound, pace, segment)
}
