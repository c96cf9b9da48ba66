//! Shares of packets that become more, or less, where they stand (`RETHER-2.3-14`).
//!
//! Such a share carries whole packets of one frame each, and its slots have a number of them each. One that
//! grows keeps its slots as they are; the missing packets get a slot at the end of the list, or the last slot
//! is widened where it ends the list already. Each slot is tested as a new one is ([`crate::admit`]), so no
//! slot of another session moves to the right and no promise is touched.
//!
//! *The bound.* Let the slots carry n_1, …, n_j packets, u together, and let a packet find the queue empty at
//! t. On a strict ring each slot begins once in (t, t + TRT], and once in each further window of TRT. Packets
//! leave in their order, and no slot stands idle while one waits. By induction all packets of the windows
//! before have begun to leave by the end of a window, so that its own u packets have. The packet at place p
//! of them, from 0, leaves in some slot at place p at most. So it has left by ⌈m/u⌉·TRT + p·V + THT_1 behind
//! t, which is the bound of one slot of u packets (`subnet/rether.rs`). Where the cycle restarts early all
//! slots of cycle k are reached within k·TRT + Off of that of t, with the offset of the last one.
//!
//! *Larger packets.* A slot for p packets of V each carries ⌊p·V/V'⌋ larger ones, whichever packets of V' at
//! most these are, and p of the smaller ones as before. Packets of the share before go before all others:
//! their slots carry as many of them as they did, so that they keep their bound.

use crate::grow::{StandingSlot, stands};
use crate::rether::{Admitted, Failure, Request, SegmentParams, fit, offered, refusal, share_of, tht_shared};
use crate::slots::Slot;
use crate::{Pace, Refusal, Test, tht_rt_joined};
use rota_units::{Octets, Span};

/// Most slots of one share. A list has 16 to 220 of them for all stations, and shares that grow by turns
/// would fill it: one that has so many is asked for anew, as one slot.
const PARTS_MAX: usize = 4;

/// One of the slots of a share of packets, as its station's ledger knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSlot {
    /// Which slot of the list.
    pub index: usize,
    /// The largest packet.
    pub octets: Octets,
    /// So many of these leave in a cycle.
    pub packets: u64,
}

impl PacketSlot {
    /// Packets of so many octets at most that leave in a cycle, whichever these are: no more than it has
    /// places and time for. Stations charge each packet that leaves with its time.
    pub fn carries(&self, octets: Octets, params: &SegmentParams) -> u64 {
        if octets <= self.octets {
            return self.packets;
        }
        let time = |octets| tht_rt_joined(params, octets).as_nanos().max(1);
        self.packets.min(self.packets * time(self.octets) / time(octets))
    }

    /// The time that it gives back when it carries so many packets of this size and no more.
    pub fn saves(&self, octets: Octets, packets: u64, params: &SegmentParams) -> Span {
        let kept = tht_rt_joined(params, octets) * packets;
        (tht_rt_joined(params, self.octets) * self.packets).minus(kept)
    }
}

/// A slot that carries the packets that a share lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Larger {
    /// The largest packet.
    pub octets: Octets,
    /// So many of these leave in a cycle.
    pub packets: u64,
    /// Its holding time.
    pub tht: Span,
}

/// The change of the list when a share becomes more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enlarged {
    /// The slots carry the packets as they are.
    Nothing,
    /// The last slot, which ends the list, becomes this one.
    Widened(Larger),
    /// This slot is appended.
    Added(Larger),
}

/// May a share of packets whose slots are `parts` carry those of `request`, of which none was larger than
/// `had` so far? Eq. 3 with the list as it would then be.
///
/// # Errors
/// [`Refusal`]: the failed test, by how much, and the largest packet that would be granted at that pace, if
/// any larger one would.
pub fn enlarge(
    slots: &[Slot],
    parts: &[PacketSlot],
    had: Octets,
    request: &Request,
    params: &SegmentParams,
) -> Result<Enlarged, Refusal> {
    evaluate(slots, parts, request, params).map_err(|failure| {
        let asked = request.unit_octets;
        let fits = |unit| evaluate(slots, parts, &Request { unit_octets: unit, ..*request }, params).is_ok();
        refusal(params, request.pace, &failure, offered(had, asked, fits))
    })
}

fn evaluate(
    slots: &[Slot],
    parts: &[PacketSlot],
    request: &Request,
    params: &SegmentParams,
) -> Result<Enlarged, Failure> {
    share_of(request, params)?;
    let (asked, wanted) = (request.unit_octets, request.pace.units());
    let carried: u64 = parts.iter().map(|part| part.carries(asked, params)).sum();
    if carried >= wanted {
        return Ok(Enlarged::Nothing);
    }
    let lacks = wanted - carried;
    let last = parts.last().filter(|last| last.index + 1 == slots.len());
    let (before, octets, packets) = match last {
        None if parts.len() >= PARTS_MAX => return Err(Failure::new(Test::SlotTableFull, Span::ZERO)),
        None => (slots, asked, lacks),
        // It carries what it did, too.
        Some(last) => {
            let packets = (last.carries(asked, params) + lacks).max(last.packets);
            (&slots[..last.index], asked.max(last.octets), packets)
        }
    };
    let pace = Pace::of_packets(packets).ok_or(Failure::new(Test::UnitTooLarge, Span::ZERO))?;
    let asked = Request { unit_octets: octets, pace, ..*request };
    let Admitted { tht, .. } = fit(before, &asked, octets, params)?;
    let larger = Larger { octets, packets, tht };
    Ok(if last.is_some() { Enlarged::Widened(larger) } else { Enlarged::Added(larger) })
}

/// Packets of this size that each slot carries once the share is so many and no more; one with none is
/// closed. The first slots keep theirs.
pub fn kept(
    parts: &[PacketSlot],
    octets: Octets,
    packets: u64,
    params: &SegmentParams,
) -> impl Iterator<Item = u64> {
    parts.iter().scan(packets, move |rest, part| {
        let keeps = part.carries(octets, params).min(*rest);
        *rest -= keeps;
        Some(keeps)
    })
}

/// The figures of a share of packets that stands in the list with these slots.
pub fn standing_packets(
    slots: &[Slot],
    parts: &[PacketSlot],
    request: &Request,
    params: &SegmentParams,
) -> Admitted {
    let one = tht_shared(params, request.unit_octets, Pace::EVERY_CYCLE);
    stands(slots, parts.iter().map(|part| part.index), request, params, one)
}

/// The slots of a share of packets that stands in the list with these.
pub fn standing_packet_slots(slots: &[Slot], parts: &[PacketSlot]) -> impl Iterator<Item = StandingSlot> {
    parts.iter().map(|part| StandingSlot::at(slots, part.index, part.octets, part.packets))
}

#[cfg(test)]
mod tests;
