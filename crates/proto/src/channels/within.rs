//! The delay and the jitter that a program bears on one segment. The medium has one bound for a reservation,
//! and no cheaper one for a longer bound: so the bound that was granted is compared with what is borne.

use super::{Channels, Outgoing};
use crate::io::ChannelId;
use crate::node::detail::OwnShare;
use crate::segment::Segment;
use rota_contract::AskedTerms;
use rota_units::Span;
use rota_wire::{RcapDenied, RcapTest};

impl Channels {
    /// A channel that was asked for just now opens only if its bound is within these terms.
    pub(crate) fn keep_within(&mut self, id: ChannelId, terms: &AskedTerms) {
        if let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) {
            channel.asked = *terms;
        }
    }

    /// The share of a channel that is sent here, as it was granted.
    pub(crate) fn own_share(&self, id: ChannelId) -> Option<OwnShare> {
        self.outgoing.iter().find(|channel| channel.id == id)?.own_share()
    }
}

impl Outgoing {
    fn own_share(&self) -> Option<OwnShare> {
        Some(OwnShare {
            granted: self.granted,
            host: self.host,
            grant: self.grant.clone()?,
            pace: self.pace,
            periodic: self.request.traffic.periodic,
            asked: self.asked,
            units: self.units.sent,
        })
    }

    /// The refusal of a granted bound that is longer than its program bears.
    pub(super) fn denied(&self, segment: Segment<'_>) -> Option<RcapDenied> {
        let (bound, AskedTerms { delay, jitter, .. }) = (self.granted.bound(), self.asked);
        // The shortest unit takes as long as the shortest frame, at least.
        let varies = bound.minus(segment.shortest_frame());
        let beyond = |is: Span, most: Option<Span>| is.minus(most.unwrap_or(Span::MAX));
        let (late, uneven) = (beyond(bound, delay), beyond(varies, jitter));
        let (test, margin) = match (late, uneven) {
            (Span::ZERO, Span::ZERO) => return None,
            (Span::ZERO, uneven) => (RcapTest::PathJitter, uneven),
            (late, _) => (RcapTest::PathDelay, late),
        };
        let nearest = |beyond: Span, is: Span| if beyond > Span::ZERO { is.as_nanos() } else { 0 };
        Some(RcapDenied {
            margin_ns: margin.as_nanos(),
            nearest_delay_ns: nearest(late, bound),
            nearest_jitter_ns: nearest(uneven, varies),
            ..RcapDenied::simply(segment.own_node(), test)
        })
    }
}
