//! The shares of hops at one port: which sessions of its medium are hops, and what the medium said of them.

use crate::io::{ChannelId, channel_of};
use rota_admission::{Admitted, Refusal};
use rota_contract::CloseCause;
use rota_medium::MediumEvent;
use rota_wire::MacAddr;
use std::collections::VecDeque;

/// Findings of one call at most: a change of each share, and the stations that have gone.
const ROOM: usize = 1_024;

/// A word of a medium that concerns hops. The node heeds it after the call.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    Reserved(ChannelId, Admitted),
    Refused(ChannelId, Refusal),
    /// A share was asked to carry more.
    Enlarged(ChannelId, Result<Admitted, Refusal>),
    Lost(ChannelId),
    Released(ChannelId),
    /// A station is gone, with all channels that come from it or go to it.
    Gone(MacAddr, CloseCause),
    /// Its process has ended, and says nothing any more.
    Died(MacAddr),
}

/// The hops of one port.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    hops: Vec<ChannelId>,
    /// Channels that come in on this port.
    arrivals: usize,
    found: VecDeque<Found>,
}

impl Shares {
    pub(crate) fn new() -> Self {
        Self { hops: Vec::new(), arrivals: 0, found: VecDeque::new() }
    }

    /// A hop asks for its share here. The first one takes the room for all findings.
    pub(crate) fn add(&mut self, hop: ChannelId) {
        self.found.reserve(ROOM);
        self.hops.push(hop);
    }

    /// True if the hop has a share here, or asks for one.
    pub(crate) fn has(&self, hop: ChannelId) -> bool {
        self.hops.contains(&hop)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.hops.len()
    }

    /// So many channels come in on this port.
    pub(crate) fn set_arrivals(&mut self, arrivals: usize) {
        if self.arrivals < arrivals {
            self.found.reserve(ROOM);
        }
        self.arrivals = arrivals;
    }

    /// True if a station of the segment sends a channel to this one.
    pub(crate) fn receives(&self) -> bool {
        self.arrivals > 0
    }

    /// Takes what concerns hops alone; the rest is given back, also what concerns others as well.
    pub(crate) fn take(&mut self, event: MediumEvent) -> Option<MediumEvent> {
        let found = match event {
            MediumEvent::Reserved { session, admitted } if self.has(channel_of(session)) => {
                Found::Reserved(channel_of(session), admitted)
            }
            MediumEvent::Refused { session, refusal } if self.has(channel_of(session)) => {
                Found::Refused(channel_of(session), refusal)
            }
            MediumEvent::Enlarged { session, answer } => Found::Enlarged(channel_of(session), answer),
            MediumEvent::ReservationLost { session } if self.has(channel_of(session)) => {
                Found::Lost(channel_of(session))
            }
            MediumEvent::Released { session } if self.has(channel_of(session)) => {
                Found::Released(channel_of(session))
            }
            MediumEvent::MemberGone { mac, stopped, died } => {
                if !self.hops.is_empty() || self.receives() {
                    let cause = if stopped { CloseCause::PeerStopped } else { CloseCause::PeerGone };
                    self.found.push_back(Found::Gone(mac, cause));
                }
                if died {
                    self.found.push_back(Found::Died(mac));
                }
                return Some(event);
            }
            _ => return Some(event),
        };
        if let Found::Refused(hop, _) | Found::Lost(hop) | Found::Released(hop) = &found {
            self.hops.retain(|known| known != hop);
        }
        self.found.push_back(found);
        None
    }

    /// The next finding.
    pub(crate) fn next(&mut self) -> Option<Found> {
        self.found.pop_front()
    }

    /// True if there is one.
    #[inline]
    pub(crate) fn has_next(&self) -> bool {
        !self.found.is_empty()
    }
}
