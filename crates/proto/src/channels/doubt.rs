//! A receiver that was silent for too long asks the senders of its open channels if these go on.
//!
//! The others declare a station dead that stands still or is cut off. The senders to it end their channels at
//! once and wait for no answer, because a dead station gives none. If the station lives, a list tells it that
//! it was dead, or it learns that its ring is over. It then asks the sender of each open channel. A sender
//! that still has the channel states the contract again. A sender that has ended it repeats the end with the
//! units of the channel, so that both ends count the same units. If no sender answers, the receiver ends the
//! channel without that statement.
//!
//! A station that is outside the ring sends nothing that a sender hears: the others may hold it off for up to
//! 64 s. Meanwhile it asks no further, and it asks again when it is let in.

use super::ended::confirms;
use super::{ChannelEvent, Channels, ENDED_MAX, Incoming, SIGNAL_INTERVAL, Sending, Tells, Want};
use crate::segment::Segment;
use rota_contract::CloseCause;
use rota_units::{Instant, Span};
use rota_wire::{MacAddr, Signal, Verb};

/// How often a receiver asks. A station that joins its ring again needs up to a second for it.
pub(super) const TRIES: u8 = 10;
/// No station is held off for longer at a time. A ring that never lets this one in must not keep a program.
const PATIENCE: Span = Span::from_millis(Segment::HOLD_OFF_MAX.as_nanos() / 1_000_000 + 6_000);

/// The doubt whether an open channel goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubt {
    /// The cause of the end, if no sender answers.
    pub(super) cause: CloseCause,
    pub(super) tries: u8,
    /// When the receiver asks next.
    pub(super) again: Instant,
    /// Until when a receiver outside the ring waits to be let in.
    pub(super) patience: Instant,
}

impl Doubt {
    fn new(now: Instant, again: Instant, cause: CloseCause) -> Self {
        Self { cause, tries: 0, again, patience: now + PATIENCE }
    }
}

impl Channels {
    /// The others have declared this station dead, and their channels to it are over.
    pub(super) fn doubt_at_once(&mut self, now: Instant) {
        self.doubt(Doubt::new(now, now, CloseCause::WasSilent));
    }

    /// Outside a ring no channel goes on. A sender that ends a channel in good order says so by itself.
    pub(super) fn on_mode_changed(&mut self, now: Instant, segment: Segment<'_>) {
        if !segment.carries_channels() {
            self.doubt(Doubt::new(now, now + SIGNAL_INTERVAL, CloseCause::PeerGone));
        }
        self.events.push_back(ChannelEvent::ModeChanged);
    }

    fn doubt(&mut self, doubt: Doubt) {
        for channel in self.incoming.iter_mut().filter(|channel| channel.opened) {
            channel.doubt.get_or_insert(doubt);
        }
    }

    /// When a receiver asks next.
    pub(super) fn doubt_deadline(&self) -> Instant {
        let doubts = self.incoming.iter().filter_map(|channel| channel.doubt);
        doubts.map(|doubt| doubt.again).min().unwrap_or(Instant::FAR)
    }

    /// Asks the senders of doubtful channels, and ends the channels of those that never answer.
    pub(super) fn ask_senders(&mut self, now: Instant, segment: Segment<'_>) {
        for channel in &mut self.incoming {
            let ask = channel.ask_signal();
            let Some(doubt) = channel.doubt.as_mut().filter(|doubt| now >= doubt.again) else { continue };
            doubt.again = now + SIGNAL_INTERVAL;
            // The first question waits for the token: a station that is heard again has it at once.
            if doubt.tries > 0 && segment.is_outside() && now < doubt.patience {
                continue;
            }
            doubt.tries += 1;
            if doubt.tries <= TRIES {
                self.wants.push(Want::Signal { to: channel.hop, signal: ask });
            }
        }
        let is_over = |channel: &Incoming| channel.doubt.is_some_and(|doubt| doubt.tries > TRIES);
        while let Some(at) = self.incoming.iter().position(is_over) {
            let cause = self.incoming[at].doubt.map_or(CloseCause::PeerGone, |doubt| doubt.cause);
            self.end_incoming(at, cause, None, Tells::Sender);
        }
    }

    /// A receiver asks if a channel goes on.
    pub(super) fn on_ask(&mut self, now: Instant, from: MacAddr, signal: &Signal) {
        self.on_tally(now, from, signal);
        let known = self.answered(from, signal).map(|channel| match channel.state {
            Sending::Open { .. } | Sending::Draining => Some(channel.signal(Verb::Opened)),
            Sending::Closing(_) | Sending::Over => Some(channel.signal(Verb::Close)),
            _ => None,
        });
        let over = || self.unheard_at(from, signal).map(|at| self.unheard[at].signal(Verb::Close));
        if let Some(answer) = known.unwrap_or_else(over) {
            self.wants.push(Want::Signal { to: from, signal: answer });
        }
    }

    /// Remembers the ends that no receiver has acknowledged, of channels that were open.
    pub(super) fn remember_unheard(&mut self) {
        let was_open = |channel: &&super::Outgoing| channel.granted.bound() > rota_units::Span::ZERO;
        for channel in self.outgoing.iter().filter(was_open).filter(|channel| channel.is_given_up()) {
            if self.unheard.len() == ENDED_MAX {
                self.unheard.pop_front();
            }
            self.unheard.push_back(channel.clone());
        }
    }

    fn unheard_at(&self, from: MacAddr, signal: &Signal) -> Option<usize> {
        self.unheard.iter().position(|channel| channel.hop == from && channel.id == signal.channel)
    }

    /// A receiver that was silent has counted an end that was repeated to it. The program has gone by then;
    /// the parent is told the counts that both nodes have now.
    pub(super) fn on_late_count(&mut self, now: Instant, from: MacAddr, signal: &Signal) {
        let Some(at) = self.unheard_at(from, signal).filter(|_| confirms(signal)) else { return };
        if !self.unheard[at].may_be(now, &signal.tally) {
            self.wants.push(Want::CountRefusedTally);
            return;
        }
        let Some(mut channel) = self.unheard.remove(at) else { return };
        channel.hear(signal);
        if !channel.ending.silent {
            let (stated, tally) = (channel.final_stated(), channel.final_tally());
            self.events.push_back(ChannelEvent::Afterwards {
                channel: channel.id,
                stated,
                tally,
                sending: true,
            });
        }
    }
}

impl super::Outgoing {
    /// No answer to its end is waited for any more.
    pub(super) fn is_given_up(&self) -> bool {
        self.state == Sending::Over
    }
}

impl Incoming {
    pub(super) fn ask_signal(&self) -> Signal {
        Signal { verb: Verb::Ask, ..self.tally_signal() }
    }
}
