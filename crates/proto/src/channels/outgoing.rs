//! A channel whose sender is here.

use super::meter::Meter;
use super::reach::Reach;
use super::{Channels, OpenRequest, SIGNAL_INTERVAL, Stated, Want, request};
use crate::io::ChannelId;
use crate::segment::{Segment, Wants};
use rota_admission::{Admitted, Pace, Refusal, StandingSlot};
use rota_contract::{AskedTerms, CloseCause, Granted, NodeId, TrafficSpec};
use rota_units::{Instant, Span};
use rota_wire::{MacAddr, RcapDenied, Signal, Verb};

/// A signal is repeated so often.
const SIGNAL_TRIES: u8 = 25;
/// A close is repeated so often.
const CLOSE_TRIES: u8 = 5;

/// A signal that is repeated until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repeats {
    pub(super) tries: u8,
    /// When it is sent next.
    pub(super) again: Instant,
}

impl Repeats {
    /// It is sent for the first time at `now`.
    pub(super) const fn from(now: Instant) -> Self {
        Self { tries: 0, again: now }
    }

    /// The number of the try that is due, if one is.
    fn next(&mut self, now: Instant) -> Option<u8> {
        if now < self.again {
            return None;
        }
        (self.tries, self.again) = (self.tries + 1, now + SIGNAL_INTERVAL);
        Some(self.tries)
    }
}

/// The units of a channel that is sent here.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Units {
    /// Units of the channels that this one continues.
    pub(super) before: u64,
    /// Units that have left.
    pub(super) sent: u64,
    /// The units that were offered, and those that its node was told of.
    pub(super) offered: Stated,
    pub(super) told: Stated,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    Connecting(Repeats),
    Reserving,
    Open {
        /// None once the receiver has confirmed the contract's figures.
        telling: Option<Repeats>,
    },
    Draining,
    Releasing,
    Closing(Repeats),
    /// Nothing more is said: the next look forgets it.
    Over,
}

impl Sending {
    /// The signal that is repeated in this state.
    fn repeated(&mut self) -> Option<(Verb, &mut Repeats)> {
        match self {
            Self::Connecting(repeats) => Some((Verb::Connect, repeats)),
            Self::Open { telling: Some(repeats) } => Some((Verb::Opened, repeats)),
            Self::Closing(repeats) => Some((Verb::Close, repeats)),
            _ => None,
        }
    }

    /// When this state goes on by itself.
    pub(super) fn due(self) -> Instant {
        match self {
            Self::Connecting(repeats) | Self::Closing(repeats) => repeats.again,
            Self::Open { telling } => telling.map_or(Instant::FAR, |repeats| repeats.again),
            Self::Over => Instant::ZERO,
            Self::Reserving | Self::Draining | Self::Releasing => Instant::FAR,
        }
    }
}

/// The end of a channel, as far as it is known.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    /// Why it ends, if it ends.
    pub(super) cause: CloseCause,
    pub(super) refusal: Option<Refusal>,
    /// The bound that was granted is longer than its program bears.
    pub(super) denied: Option<RcapDenied>,
    /// Its end is no event: it has never opened, or another event tells it.
    pub(super) silent: bool,
    /// Its receiver's node has told of the end, and before that of every unit that was not as promised.
    pub(super) confirmed: bool,
    /// It has counted the end that was stated to it: its counts have the units that never left.
    pub(super) counted: bool,
}

impl Ending {
    /// That of a channel that has just been asked for.
    pub(super) const OPEN: Self = Self {
        cause: CloseCause::Finished,
        refusal: None,
        denied: None,
        silent: false,
        confirmed: false,
        counted: false,
    };

    /// How often the close is repeated. A station whose reservation is lost may first have to join its ring
    /// again, as a receiver that was silent.
    pub(super) fn close_tries(&self) -> u8 {
        if self.cause == CloseCause::ReservationLost { super::doubt::TRIES } else { CLOSE_TRIES }
    }
}

/// The newest grant of a share.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) admitted: Admitted,
    /// The slots behind it, where a change of a ring's share has left others than the one that is granted.
    pub(crate) slots: Vec<StandingSlot>,
    /// Stations of the segment at that time.
    pub(crate) stations: u16,
}

#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) id: ChannelId,
    /// The node at the other end.
    pub(super) peer: NodeId,
    /// The station of the segment that its frames go to, by its address: numbers change while rings form.
    /// It is a port of the peer where the peer is on this segment.
    pub(super) hop: MacAddr,
    pub(super) label: u16,
    pub(super) request: OpenRequest,
    pub(super) pace: Pace,
    pub(super) state: Sending,
    pub(super) granted: Granted,
    pub(super) units: Units,
    pub(super) meter: Meter,
    pub(super) ending: Ending,
    pub(super) began: Instant,
    /// It asks only for the contract that would be granted, see [`Channels::probe`].
    pub(super) probe: bool,
    /// The terms beyond its units, and the bounds that its program bears.
    pub(super) asked: AskedTerms,
    pub(super) grant: Option<Grant>,
    pub(super) reach: Reach,
    /// Within so long this host hands a unit over, beside the bound of the medium.
    pub(super) host: Span,
}

impl Channels {
    /// True if a channel ends: a unit that is handed over now will not leave.
    pub(crate) fn is_ending(&self, id: ChannelId) -> bool {
        let channel = self.outgoing.iter().find(|channel| channel.id == id);
        channel.is_some_and(|channel| {
            let takes =
                matches!(channel.state, Sending::Connecting(_) | Sending::Reserving | Sending::Open { .. });
            !takes
        })
    }
}

impl Outgoing {
    /// Repeats the signal that is not answered, and gives the share back once all units have left.
    pub(super) fn tick(&mut self, now: Instant, segment: Segment<'_>, wants: &mut Wants<Want>) {
        if self.state == Sending::Draining && segment.is_drained(self.id) {
            self.release(wants);
        }
        if self.state == Sending::Over {
            // It may have fallen silent because somebody uses its address.
            wants.push(Want::Contest { mac: self.hop });
        }
        let Some((verb, repeats)) = self.state.repeated() else { return };
        let Some(tries) = repeats.next(now) else { return };
        if tries > 1 {
            wants.push(Want::Contest { mac: self.hop });
        }
        let most = if verb == Verb::Close { self.ending.close_tries() } else { SIGNAL_TRIES };
        if tries <= most {
            wants.push(Want::Signal { to: self.hop, signal: self.signal(verb) });
        } else {
            self.give_up(segment, wants);
        }
    }

    /// No answer has come to any of the tries.
    fn give_up(&mut self, segment: Segment<'_>, wants: &mut Wants<Want>) {
        match self.state {
            Sending::Open { .. } if segment.number(self.hop) == 0 => {
                // It accepted and was forgotten since, maybe without a word: nobody receives.
                self.ending.cause = CloseCause::PeerGone;
                self.release(wants);
            }
            // The receiver accepted; that it has not confirmed the contract's figures is no reason to stop.
            Sending::Open { .. } => self.state = Sending::Open { telling: None },
            Sending::Connecting(_) => {
                (self.ending.cause, self.state) = (CloseCause::NoAnswer, Sending::Over);
            }
            _ => self.state = Sending::Over,
        }
    }

    /// Gives the share back.
    pub(super) fn release(&mut self, wants: &mut Wants<Want>) {
        self.state = Sending::Releasing;
        wants.push(Want::Release { channel: self.id });
    }

    pub(super) fn promise(&mut self, admitted: &Admitted, slots: Vec<StandingSlot>, segment: Segment<'_>) {
        let TrafficSpec { unit_octets_max, period, .. } = self.request.traffic;
        let bound = admitted.bound + self.host;
        let mut granted = request::granted(unit_octets_max, period, bound, self.pace, segment);
        // A unit waits for the host, too.
        let more = self.host.as_nanos().div_ceil(period.as_nanos().max(1));
        let more = u16::try_from(more).unwrap_or(u16::MAX);
        granted.contract.buffers = granted.contract.buffers.saturating_add(more);
        if let Some(share) = &mut granted.rether {
            share.slot_offset_ns = admitted.offset.as_nanos();
            share.tht_ns = admitted.tht.as_nanos();
        }
        self.granted = granted;
        self.grant = Some(Grant { admitted: *admitted, slots, stations: segment.stations() });
    }

    pub(super) fn signal(&self, verb: Verb) -> Signal {
        // The listener makes room for the size to which the channel may grow.
        let TrafficSpec { unit_octets_max, room_octets, period, .. } = self.request.traffic;
        Signal {
            code: self.ending.cause.code(),
            service: self.request.service,
            unit_octets_max: if verb == Verb::Connect { room_octets } else { unit_octets_max },
            period_ns: period.as_nanos() as u32,
            bound_ns: self.granted.bound().as_nanos(),
            final_unit: if verb == Verb::Connect { self.units.before } else { self.stated().units },
            left_out: self.stated().left_out,
            unsent: u32::try_from(self.final_stated().unsent).unwrap_or(u32::MAX),
            ..Signal::new(verb, self.id, self.label)
        }
    }
}
