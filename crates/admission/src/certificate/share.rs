//! The certificate's part of a share that a RETHER segment has granted, or a link in slots: made by its node
//! when it is granted, and put together with the parts of other nodes where the channel begins.
//!
//! The share of a channel across segments carries packets, each in one frame. That of a channel of one
//! segment carries units, in as many frames as they need and in as many cycles as the pace has. Both are the
//! same numbers.

use super::{FrameTerms, RetherTerms, SlotsTerms};
use crate::cable::{announcements, link_blocking, link_window};
use crate::grow::StandingSlot;
use crate::pace::Pace;
use crate::rether::{Admitted, SegmentParams, tht_shared_joined};
use crate::rtip::{Denied, Traffic};
use crate::subnet::{Offer, RTIP_OCTETS, RetherShare, worst_wait, worst_wait_of_group};
use rota_units::{Octets, Span};

/// A share of a segment with this much of each cycle, as its node knows it.
#[derive(Clone, Copy, Debug)]
pub struct StandingShare<'s> {
    /// The numbers that all stations of the segment shared when it was granted.
    pub params: &'s SegmentParams,
    /// The traffic that it carries.
    pub traffic: Traffic,
    /// The largest payload: of a packet, or a whole unit.
    pub octets: Octets,
    /// The shortest one.
    pub octets_least: Octets,
    /// True for packets of a channel across segments, which have an RTIP header.
    pub is_packet: bool,
    /// How often they come.
    pub pace: Pace,
    /// True if the strict period was asked for.
    pub periodic: bool,
    /// The grant.
    pub admitted: Admitted,
}

impl StandingShare<'_> {
    fn headers(&self) -> Octets {
        Octets::new(if self.is_packet { RTIP_OCTETS } else { 0 })
    }

    /// Octets of each unit in a cycle, or of a packet with its header.
    fn unit_share(&self) -> Octets {
        self.pace.share(self.octets + self.headers(), &self.params.link.framing)
    }

    /// The time of one unit's share in a slot, or of one packet.
    fn unit_time(&self) -> Span {
        tht_shared_joined(self.params, self.unit_share(), Pace::EVERY_CYCLE)
    }

    /// The bound of this traffic in the share, and its part for units that come closer together than the
    /// share carries them.
    ///
    /// # Errors
    /// [`Denied`]: the share does not carry the traffic, or looking for the worst takes too long.
    pub fn share(&self) -> Result<RetherShare, Denied> {
        let Self { params, pace, admitted, .. } = *self;
        let promised = params.trt * pace.cycles();
        // A unit that fills several cycles is alone in them, as in one long one.
        let wait = worst_wait(&self.traffic, pace, promised, self.unit_time())?;
        Ok(RetherShare { pace, admitted, delay: admitted.bound.minus(promised) + wait, wait })
    }

    /// The bound of the same traffic of a group, so many members of which send at once: the share carries the
    /// packets of all of them.
    ///
    /// # Errors
    /// As [`Self::share`].
    pub fn share_of_group(&self, at_once: u8) -> Result<RetherShare, Denied> {
        let Self { params, pace, admitted, .. } = *self;
        let (promised, at_once) = (params.trt * pace.cycles(), u64::from(at_once.max(1)));
        let wait = worst_wait_of_group(&self.traffic, (pace.units(), at_once), promised, self.unit_time())?;
        Ok(RetherShare { pace, admitted, delay: admitted.bound.minus(promised) + wait, wait })
    }

    /// The promise of the hop with this share. The transit is part of its bound.
    pub fn offer(&self, share: &RetherShare) -> Offer {
        self.offer_of(share.delay, Span::ZERO)
    }

    fn offer_of(&self, delay: Span, link_most: Span) -> Offer {
        let service_least = self.params.link.frame_span_up(self.octets_least.get() + self.frame().headers);
        Offer { delay, service_least, link_least: Span::ZERO, link_most }
    }

    /// The cost of a frame.
    pub fn frame(&self) -> FrameTerms {
        let link = &self.params.link;
        let headers = u64::from(link.framing.rota_octets) + self.headers().get();
        FrameTerms { headers, ..FrameTerms::of(link) }
    }

    /// The promise and the numbers of the part where the share is one of a link: slots (`cable.rs`). `None`
    /// where the grant is none of this traffic, or does not prove what it promised.
    pub fn slots(&self) -> Option<(Offer, FrameTerms, SlotsTerms)> {
        let Self { params, pace, admitted, .. } = *self;
        let (link, window) = (&params.link, link_window(params.trt));
        let (unit_time, ordinary) = (self.unit_time(), link_blocking(params));
        let slot = (unit_time + link.per_visit) * pace.units();
        let above = admitted.offset + announcements(params);
        let spare = window.checked_sub(slot + above + ordinary)?;
        let opens = window * pace.cycles();
        // Behind the slot a device on the cable may store a frame.
        let offer = self.offer_of(opens + link.host_slack, link.frame_span_max());
        let is_carried = self.traffic.x_min() * pace.units() >= opens;
        let is_granted = admitted.tht == slot && admitted.bound == offer.delay + offer.link_most;
        let terms = SlotsTerms {
            window: window.as_nanos(),
            per_visit: link.per_visit.as_nanos(),
            above: above.as_nanos(),
            card_ahead: ordinary.minus(link.frame_span_max()).as_nanos(),
            units: pace.units(),
            cycles: pace.cycles(),
            packet_time: unit_time.as_nanos(),
            slot: slot.as_nanos(),
            ordinary: ordinary.as_nanos(),
            spare: spare.as_nanos(),
        };
        (is_carried && is_granted).then_some((offer, self.frame(), terms))
    }

    /// The slot of the grant.
    pub fn slot(&self) -> StandingSlot {
        let Admitted { offset, tht, .. } = self.admitted;
        StandingSlot { offset, tht, share: self.unit_share(), units: self.pace.units() }
    }

    /// The numbers of a share of one slot, as it was granted. `None` where that does not carry this traffic.
    pub fn terms(&self, share: &RetherShare) -> Option<(FrameTerms, RetherTerms)> {
        Some((self.frame(), self.slot_terms(share, &self.slot())?))
    }

    /// The numbers of one of the share's slots: a change may have split it. `None` where the slot is too
    /// short for its part of a unit.
    pub fn slot_terms(&self, share: &RetherShare, slot: &StandingSlot) -> Option<RetherTerms> {
        let Self { params, pace, admitted, .. } = *self;
        let link = &params.link;
        let packet_time = tht_shared_joined(params, slot.share, Pace::EVERY_CYCLE);
        let (units, visit) = (packet_time * slot.units, link.per_visit + link.hop);
        // The slot shows if it begins a visit, and if that may begin behind a frame to its station. One that
        // a change has left longer is stated with no more than it needs.
        let rest = slot.tht.checked_sub(units)?;
        let alone = if rest >= visit { visit } else { Span::ZERO };
        let full = link.frame_span_max();
        let lead = if rest.minus(alone) >= full { full } else { Span::ZERO };
        let tht = units + alone + lead;
        let spare = params.trt.checked_sub(slot.offset + tht + admitted.t_nrt)?;
        let wait = worst_wait(&self.traffic, pace, params.trt * pace.cycles(), packet_time).ok()?;
        Some(RetherTerms {
            octets: slot.share.get().checked_sub(self.headers().get())?,
            units: slot.units,
            offset: slot.offset.as_nanos(),
            periodic: self.periodic.into(),
            joined: (alone == Span::ZERO).into(),
            receives: (lead > Span::ZERO).into(),
            tht: tht.as_nanos(),
            wait: wait.as_nanos(),
            spare: spare.as_nanos(),
            ..RetherTerms::of(params, share, packet_time)
        })
    }
}
