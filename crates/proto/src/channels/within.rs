//! The delay and the jitter that a program bears on one segment. The medium has one bound for a reservation,
//! and no cheaper one for a longer bound: so the bound that was granted is compared with what is borne.

use super::Channels;
use crate::io::ChannelId;
use crate::segment::Segment;
use rota_contract::AskedTerms;
use rota_units::Span;
use rota_wire::{RcapDenied, RcapStanding, RcapTest};

/// The bounds that a program bears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Within {
    delay: Option<Span>,
    jitter: Option<Span>,
}

impl Channels {
    /// A channel that was asked for just now opens only if its bound is within these terms.
    pub(crate) fn keep_within(&mut self, id: ChannelId, terms: &AskedTerms) {
        if let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) {
            channel.within = Within { delay: terms.delay, jitter: terms.jitter };
        }
    }
}

impl Within {
    /// The refusal of a granted bound that is longer.
    pub(super) fn denied(self, bound: Span, segment: Segment<'_>) -> Option<RcapDenied> {
        // The shortest unit takes as long as the shortest frame, at least.
        let varies = bound.minus(segment.shortest_frame());
        let tests = [(RcapTest::PathDelay, bound, self.delay), (RcapTest::PathJitter, varies, self.jitter)];
        let (test, is, most) = tests.into_iter().find(|(_, is, most)| most.is_some_and(|most| *is > most))?;
        Some(RcapDenied {
            node: segment.own_node(),
            test,
            standing: RcapStanding::Final,
            margin_ns: is.minus(most.unwrap_or(Span::ZERO)).as_nanos(),
            nearest_delay_ns: is.as_nanos(),
            nearest_octets: 0,
        })
    }
}
