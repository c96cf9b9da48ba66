//! Slots of a link: all that opens in a window ends in it, and a packet has no slot behind its last window.

use crate::rether::{is_pace, part, time};
use crate::terms::{Certificate, Hop, Slots};
use crate::{Fault, holds, same};

pub(crate) fn check(own: &Slots, hop: &Hop<'_>, of: &Certificate<'_>) -> Result<(), Fault> {
    let (n, frame, packets) = (u128::from, &hop.frame, &of.packets);
    holds(is_pace((own.units, own.cycles), packets.octets, frame), Fault::Range("slots"))?;
    same("packet_time", own.packet_time, time(frame, part(frame, packets.octets, own.cycles).1))?;
    same("slot", own.slot, (n(own.packet_time) + n(own.per_visit)) * n(own.units))?;
    same("ordinary", own.ordinary, frame.span(frame.mtu.into()) + n(own.card_ahead))?;
    let spare = n(own.window).checked_sub(n(own.slot) + n(own.above) + n(own.ordinary));
    same("spare", own.spare, spare.ok_or(Fault::Fails("window"))?)?;
    // A slot opens a window behind the one of so many packets before, or with its packet.
    let opens = n(own.cycles) * n(own.window);
    holds(n(own.units) * n(packets.counted_x_min) >= opens, Fault::Fails("slots carry the packets"))?;
    same("delay", hop.terms.delay, opens + n(frame.host_slack))
}
