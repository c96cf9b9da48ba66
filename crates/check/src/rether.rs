//! A share of a RETHER segment: eq. 3, and the bound of a slot that carries several packets.

use crate::terms::{Certificate, Frame, Hop, Packets, Rether};
use crate::{Fault, holds, same};

/// Packets that the search for the longest wait may look at.
const PACKETS_MAX: u128 = 1 << 18;

/// The slots of one moment, one behind another in the cycle. Packets leave in their order, and no slot stands
/// idle while one waits.
///
/// Slots that carry whole packets carry in each cycle as many as all of them have places: a packet leaves at
/// its place among these, or at a lower one of a later slot. Others carry each packet together, in whole
/// frames. They carry no less, at any time, than slots of fixed parts of each packet would, and no packet
/// ends later than the last place of the slot that ends last.
pub(crate) fn check(slots: &[Rether], hop: &Hop<'_>, of: &Certificate<'_>) -> Result<(), Fault> {
    let (n, frame, packets) = (u128::from, &hop.frame, &of.packets);
    let (frames, part) = part(frame, packets.octets, slots[0].cycles.max(1));
    let is_whole = slots.iter().all(|of| of.octets >= part && (of.cycles == 1 || slots.len() == 1));
    let places: u128 = if is_whole { slots.iter().map(|of| n(of.units)).sum() } else { n(slots[0].units) };
    slots.iter().try_for_each(|slot| one(slot, places, frame, packets))?;
    let pace = |slot: &Rether| [slot.cycles, slot.trt, slot.periodic, slot.units * u64::from(!is_whole)];
    holds(slots.iter().all(|slot| pace(slot) == pace(&slots[0])), Fault::Range("pace"))?;
    let whole: u64 = slots.iter().map(|slot| slot.octets / (frame.mtu - frame.headers)).sum();
    holds(is_whole || whole >= frames, Fault::Fails("slots carry a packet"))?;
    holds(slots.is_sorted_by(|a, b| n(a.offset) + n(a.tht) <= n(b.offset)), Fault::Range("offset"))?;
    let most = |of: &dyn Fn(&Rether) -> u128| slots.iter().map(of).fold(0, u128::max);
    // Of slots of whole packets these leave in their order; of parts in several any may be the last.
    let sending = |slot: &Rether| n(slot.packet_time) * if is_whole { 1 } else { places };
    let offset = |slot: &Rether| n(slot.offset) * n(1 - slot.periodic);
    let longest = most(&|slot| n(slot.wait)) + most(&offset) + most(&sending) + n(frame.host_slack);
    slots.iter().try_for_each(|slot| {
        let visit = n(slot.per_visit) + n(slot.hop);
        same("bound", slot.bound, longest + visit + n(slot.transit))?;
        holds(hop.terms.delay >= slot.bound, Fault::Fails("rether bound"))
    })
}

/// One slot: its time, and what it leaves of the cycle, of which all have so many places.
fn one(slot: &Rether, places: u128, frame: &Frame, packets: &Packets) -> Result<(), Fault> {
    let (n, full) = (u128::from, frame.span(frame.mtu.into()));
    let flags = [slot.periodic, slot.joined, slot.receives];
    let is_pace = is_pace((slot.units, slot.cycles), slot.octets.max(packets.octets), frame);
    let can_be = is_pace && flags.iter().all(|flag| *flag <= 1) && slot.trt > 0 && slot.octets > 0;
    holds(can_be, Fault::Range("share"))?;
    let packet_time = time(frame, slot.octets);
    same("packet_time", slot.packet_time, packet_time)?;
    let visit = n(slot.per_visit) + n(slot.hop);
    let ahead = visit * n(1 - slot.joined) + full * n(slot.receives);
    same("tht", slot.tht, packet_time * n(slot.units) + ahead)?;
    let overhead = n(slot.broadcasts) + frame.span(0) * n(slot.stations);
    same("transit", slot.transit, 2 * full + overhead)?;
    same("wait", slot.wait, wait(slot, places, packets)?)?;
    // Repair A3: the reserve carries one full frame with its visit, and the way home.
    let floor = overhead + full.max(n(frame.prepare)) + n(frame.per_frame) + visit + n(slot.hop);
    holds(n(slot.t_nrt) >= floor, Fault::Fails("ordinary floor"))?;
    let spare = n(slot.trt).checked_sub(n(slot.offset) + n(slot.tht) + n(slot.t_nrt));
    same("spare", slot.spare, spare.ok_or(Fault::Fails("eq. 3"))?)
}

/// True for several packets in a cycle, or several cycles of a packet, of so few frames that no product of
/// their times leaves 128 bits.
pub(crate) fn is_pace((units, cycles): (u64, u64), octets: u64, frame: &Frame) -> bool {
    let is_short = cycles >> 18 == 0 && octets >> 18 <= frame.mtu - frame.headers;
    is_short && units > 0 && cycles > 0 && (units == 1 || cycles == 1)
}

/// Frames and octets of a packet's part in one cycle: as many whole frames in each cycle, or the rest.
pub(crate) fn part(frame: &Frame, octets: u64, cycles: u64) -> (u64, u64) {
    let room = frame.mtu - frame.headers;
    let frames = octets.div_ceil(room).div_ceil(cycles);
    (frames, octets.min(frames.saturating_mul(room)))
}

/// The time of so many octets, some, in full frames and a last one.
pub(crate) fn time(frame: &Frame, octets: u64) -> u128 {
    let room = frame.mtu - frame.headers;
    let full = octets.div_ceil(room) - 1;
    u128::from(full) * frame.cost(room) + frame.cost(octets - full * room)
}

/// The longest time from a packet's release to the begin of its place in a slot: slot by slot, for as long as
/// the queue that a missed slot began lasts, or until both repeat. Where no packet behind those of one slot
/// comes within a cycle, the queue ends with that slot.
fn wait(slot: &Rether, units: u128, packets: &Packets) -> Result<u128, Fault> {
    let n = u128::from;
    let (burst, trt) = (n(packets.burst), n(slot.trt) * n(slot.cycles));
    let released = |k: u128| k / burst * n(packets.counted_interval) + k % burst * n(packets.counted_x_min);
    let looked_at = if released(units) >= trt { units } else { burst * units };
    holds(looked_at <= PACKETS_MAX, Fault::Range("burst"))?;
    let carries = burst * trt <= units * n(packets.counted_interval);
    holds(carries, Fault::Fails("share carries the average"))?;
    let waits =
        |k: u128| ((k / units + 1) * trt + k % units * n(slot.packet_time)).saturating_sub(released(k));
    Ok((0..looked_at).map(waits).fold(trt, u128::max))
}
