//! A channel whose sender is here.

use super::meter::Meter;
use super::reach::Reach;
use super::{Channels, Contract, OpenRequest, Stated};
use crate::cause::CloseCause;
use crate::io::ChannelId;
use rota_admission::{Admitted, Pace, Refusal};
use rota_units::{Instant, Span};
use rota_wire::{MacAddr, Signal, Verb};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    Connecting,
    Reserving,
    Open {
        acknowledged: bool,
    },
    Draining,
    Releasing,
    Closing,
    /// Nothing more is said: the next look forgets it.
    Over,
}

/// The end of a channel, as far as it is known.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    /// Why it ends, if it ends.
    pub(super) cause: CloseCause,
    pub(super) refusal: Option<Refusal>,
    /// Its end is no event: it has never opened, or another event tells it.
    pub(super) silent: bool,
    /// Its receiver's node has told of the end, and before that of every unit that was not as promised.
    pub(super) confirmed: bool,
    /// It has counted the end that was stated to it: its counts have the units that never left.
    pub(super) counted: bool,
}

impl Ending {
    /// That of a channel that has just been asked for.
    pub(super) const OPEN: Self =
        Self { cause: CloseCause::Closed, refusal: None, silent: false, confirmed: false, counted: false };

    /// How often the close is repeated. A station whose reservation is lost may first have to join its ring
    /// again, as a receiver that was silent.
    pub(super) fn close_tries(&self) -> u8 {
        if self.cause == CloseCause::ReservationLost { super::doubt::TRIES } else { super::CLOSE_TRIES }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) id: ChannelId,
    /// By its address: numbers change while rings form.
    pub(super) peer: MacAddr,
    pub(super) label: u16,
    pub(super) request: OpenRequest,
    /// Units of the channels that this one continues.
    pub(super) before: u64,
    pub(super) pace: Pace,
    pub(super) state: Sending,
    pub(super) contract: Contract,
    pub(super) units: u64,
    /// The units that were offered, and those that its node was told of.
    pub(super) offered: Stated,
    pub(super) told: Stated,
    pub(super) meter: Meter,
    pub(super) ending: Ending,
    pub(super) began: Instant,
    /// It asks only for the contract that would be granted, see [`Channels::probe`].
    pub(super) probe: bool,
    pub(super) tries: u8,
    pub(super) again: Instant,
    pub(super) reach: Reach,
}

impl Channels {
    /// True if a channel ends: a unit that is handed over now will not leave.
    pub(crate) fn is_ending(&self, id: ChannelId) -> bool {
        let channel = self.outgoing.iter().find(|channel| channel.id == id);
        channel.is_some_and(|channel| {
            let takes =
                matches!(channel.state, Sending::Connecting | Sending::Reserving | Sending::Open { .. });
            !takes
        })
    }
}

impl Outgoing {
    pub(super) fn promise(&mut self, admitted: &Admitted, cycle: Span) {
        self.contract = Contract {
            unit_octets_max: self.request.unit_octets_max,
            period: self.request.period,
            bound: admitted.bound,
            offset: admitted.offset,
            tht: admitted.tht,
            cycle,
            buffers: self.pace.buffers(),
        };
    }

    pub(super) fn signal(&self, verb: Verb) -> Signal {
        // The listener makes room for the size to which the channel may grow.
        let OpenRequest { unit_octets_max, room_octets, .. } = self.request;
        Signal {
            code: self.ending.cause.code(),
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
