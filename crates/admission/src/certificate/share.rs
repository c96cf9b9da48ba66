//! The certificate's part of a share that a RETHER segment has granted: made by its node when it is granted,
//! and put together with the parts of other nodes where the channel begins.
//!
//! The share of a channel across segments carries packets, each in one frame. That of a channel of one
//! segment carries units, in as many frames as they need and in as many cycles as the pace has. Both are the
//! same numbers.

use super::{FrameTerms, RetherTerms};
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

    /// The time of one unit's share in a slot, or of one packet.
    fn unit_time(&self) -> Span {
        let share = self.pace.share(self.octets + self.headers(), &self.params.link.framing);
        tht_shared_joined(self.params, share, Pace::EVERY_CYCLE)
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
        let payload = self.octets_least + self.headers();
        let link = &self.params.link;
        let rota = u64::from(link.framing.rota_octets);
        Offer {
            delay: share.delay,
            service_least: link.frame_span_up(payload.get() + rota),
            link_least: Span::ZERO,
            link_most: Span::ZERO,
        }
    }

    /// The numbers of the part; `None` where the grant is not one slot of this traffic, as after a change
    /// that split it.
    pub fn terms(&self, share: &RetherShare) -> Option<(FrameTerms, RetherTerms)> {
        let Self { params, pace, admitted, .. } = *self;
        let (unit_time, visit) = (self.unit_time(), params.link.per_visit + params.link.hop);
        let units = unit_time * pace.units();
        // The slot shows if it begins a visit, and if that may begin behind a frame to its station.
        let (joined, receives) = match admitted.tht.checked_sub(units)? {
            Span::ZERO => (true, false),
            alone if alone == visit => (false, false),
            alone if alone == visit + params.link.frame_span_max() => (false, true),
            _ => return None,
        };
        let offset = if self.periodic { Span::ZERO } else { admitted.offset };
        let rest = offset + unit_time + visit + params.transit() + params.link.host_slack;
        let spare = params.trt.checked_sub(admitted.offset + admitted.tht + admitted.t_nrt)?;
        if share.delay != share.wait + rest {
            return None;
        }
        let rota = u64::from(params.link.framing.rota_octets);
        let frame = FrameTerms { headers: rota + self.headers().get(), ..FrameTerms::of(&params.link) };
        let terms = RetherTerms {
            periodic: self.periodic.into(),
            joined: joined.into(),
            receives: receives.into(),
            spare: spare.as_nanos(),
            ..RetherTerms::of(params, share, unit_time)
        };
        Some((frame, terms))
    }
}
