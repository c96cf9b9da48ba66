//! A share of a RETHER segment: eq. 3, and the bound of a slot that carries several packets.

use crate::terms::{Certificate, Frame, Hop, Packets, Rether};
use crate::{Fault, holds, same};

/// Packets that the search for the longest wait may look at.
const PACKETS_MAX: u128 = 1 << 18;

pub(crate) fn check(share: &Rether, hop: &Hop<'_>, of: &Certificate<'_>) -> Result<(), Fault> {
    let (frame, packets) = (&hop.frame, &of.packets);
    let flags = [share.periodic, share.joined, share.receives];
    let is_short = share.cycles >> 18 == 0 && packets.octets >> 18 <= frame.mtu - frame.headers;
    let is_pace = share.units > 0 && share.cycles > 0 && (share.units == 1 || share.cycles == 1);
    if flags.iter().any(|flag| *flag > 1) || !is_pace || !is_short || share.trt == 0 {
        return Err(Fault::Range("share"));
    }
    let (n, full) = (u128::from, frame.span(frame.mtu.into()));
    let packet_time = part_time(frame, packets.octets, share.cycles);
    same("packet_time", share.packet_time, packet_time)?;
    let visit = n(share.per_visit) + n(share.hop);
    let lead = if share.receives == 1 { full } else { 0 };
    let alone = if share.joined == 1 { 0 } else { visit + lead };
    same("tht", share.tht, packet_time * n(share.units) + alone)?;
    let overhead = n(share.broadcasts) + frame.span(0) * n(share.stations);
    same("transit", share.transit, 2 * full + overhead)?;
    same("wait", share.wait, wait(share, packets)?)?;
    let offset = if share.periodic == 1 { 0 } else { n(share.offset) };
    let rest = packet_time + visit + n(share.transit) + n(frame.host_slack);
    same("bound", share.bound, n(share.wait) + offset + rest)?;
    holds(hop.terms.delay >= share.bound, Fault::Fails("rether bound"))?;
    // Repair A3: the reserve carries one full frame with its visit, and the way home.
    let floor = overhead + full.max(n(frame.prepare)) + n(frame.per_frame) + visit + n(share.hop);
    holds(n(share.t_nrt) >= floor, Fault::Fails("ordinary floor"))?;
    let spare = n(share.trt).checked_sub(n(share.offset) + n(share.tht) + n(share.t_nrt));
    same("spare", share.spare, spare.ok_or(Fault::Fails("eq. 3"))?)
}

/// The time of a packet's part in one cycle: as many whole frames in each cycle, or the rest.
fn part_time(frame: &Frame, octets: u64, cycles: u64) -> u128 {
    let room = frame.mtu - frame.headers;
    let frames = octets.div_ceil(room).div_ceil(cycles);
    let part = octets.min(frames.saturating_mul(room));
    u128::from(frames - 1) * frame.cost(room) + frame.cost(part - (frames - 1) * room)
}

/// The longest time from a packet's release to the begin of its place in a slot: slot by slot, for as long as
/// the queue that a missed slot began lasts, or until both repeat. Where no packet behind those of one slot
/// comes within a cycle, the queue ends with that slot.
fn wait(share: &Rether, packets: &Packets) -> Result<u128, Fault> {
    let n = u128::from;
    let (units, burst, trt) = (n(share.units), n(packets.burst), n(share.trt) * n(share.cycles));
    let released = |k: u128| k / burst * n(packets.counted_interval) + k % burst * n(packets.counted_x_min);
    let looked_at = if released(units) >= trt { units } else { burst * units };
    holds(looked_at <= PACKETS_MAX, Fault::Range("burst"))?;
    let carries = burst * trt <= units * n(packets.counted_interval);
    holds(carries, Fault::Fails("share carries the average"))?;
    let waits =
        |k: u128| ((k / units + 1) * trt + k % units * n(share.packet_time)).saturating_sub(released(k));
    Ok((0..looked_at).map(waits).fold(trt, u128::max))
}
