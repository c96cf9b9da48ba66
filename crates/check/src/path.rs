//! The whole certificate: packets of the messages, each hop, and the promise that follows.

use crate::terms::{Certificate, Channel, Hop, HopTerms, Network, Packets, VERSION};
use crate::{Fault, edf, rether, same};

/// No number is larger, about thirteen days in nanoseconds: so no sum of products leaves 128 bits.
const MAX: u64 = 1 << 50;

/// Tests if the promise follows from the assumptions of the certificate.
///
/// # Errors
/// [`Fault`]: the first number that is not what the others give, or the test that fails.
pub fn check(certificate: &Certificate<'_>) -> Result<(), Fault> {
    let Certificate { version, channel, packets, hops, promise, seal } = certificate;
    if *version != VERSION {
        return Err(Fault::Version);
    }
    if *seal != certificate.sealed() {
        return Err(Fault::Seal);
    }
    let mut largest = 0;
    certificate.each(&mut |value| largest = largest.max(value));
    if largest > MAX {
        return Err(Fault::Range("size"));
    }
    in_packets(channel, packets)?;
    let n = u128::from;
    // The parts of the host, of nodes and links, of clocks; jitter and early packets as they travel.
    let host = n(packets.spread) + n(channel.host_slack);
    let (mut delay, mut clocks, mut varies, mut early, mut gained) = (host, 0u128, 0u128, 0u128, 0u128);
    let link = |hop: &HopTerms| n(hop.link_most - hop.link_least);
    let leaves = |hop: &HopTerms| n(hop.delay.saturating_sub(hop.service_least)) + link(hop);
    let mut before: Option<&HopTerms> = None;
    for hop in *hops {
        let terms = &hop.terms;
        let is_error_due = terms.regulator >= 2 || terms.error == 0;
        if terms.regulator > 3 || !is_error_due || terms.link_most < terms.link_least {
            return Err(Fault::Range("hop"));
        }
        one_hop(hop, certificate)?;
        if let Some(last) = before {
            let own = link(last);
            let errors = n(last.error) + n(terms.error);
            let (held, left) = if last.regulator == 0 { (early, gained) } else { (0, varies) };
            gained = left + n(last.delay) + own;
            early = if terms.regulator == 3 { gained } else { held + n(last.delay) + own } + errors;
            varies = match terms.regulator {
                2 => varies + own + n(terms.error),
                3 => 2 * n(terms.error),
                _ => varies + leaves(last),
            };
            clocks = clocks.max(n(terms.error) * n(terms.regulator / 3));
        }
        let window = early + n(terms.delay);
        let (whole, rest) = (window / n(channel.interval), window % n(channel.interval));
        let room = whole * n(packets.burst) + (rest / n(packets.x_min) + 1).min(n(packets.burst));
        same("buffers", terms.buffers, room)?;
        delay += n(terms.delay) + n(terms.link_most);
        before = Some(terms);
    }
    let last = before.ok_or(Fault::Range("channel"))?;
    let jitter = host + varies + leaves(last);
    same("promise.delay", promise.delay, delay + clocks)?;
    same("promise.jitter", promise.jitter, jitter)?;
    spare("delay_spare", channel.delay_max, promise.delay, promise.delay_spare)?;
    let most = if channel.jitter_max == 0 { promise.jitter } else { channel.jitter_max };
    spare("jitter_spare", most, promise.jitter, promise.jitter_spare)
}

/// The packets that carry the messages.
fn in_packets(channel: &Channel, packets: &Packets) -> Result<(), Fault> {
    let n = u128::from;
    let traffic = channel.x_min >= 1 && channel.x_ave >= channel.x_min && channel.interval >= channel.x_ave;
    if !traffic || channel.s_max == 0 || channel.packet_max == 0 {
        return Err(Fault::Range("channel"));
    }
    let count = channel.s_max.div_ceil(channel.packet_max);
    same("count", packets.count, count.into())?;
    same("octets", packets.octets, channel.s_max.div_ceil(count).into())?;
    same("burst", packets.burst, n(channel.interval / channel.x_ave) * n(count))?;
    same("packets.x_min", packets.x_min, n(channel.x_min / count))?;
    same("spread", packets.spread, n(packets.x_min) * n(count - 1))?;
    let can_be = packets.x_min > 0 && channel.octets_least <= packets.octets;
    if can_be { Ok(()) } else { Err(Fault::Range("packets")) }
}

/// The rest that a promise leaves of the request.
fn spare(field: &'static str, asked: u64, promised: u64, stated: u64) -> Result<(), Fault> {
    let left = asked.checked_sub(promised).ok_or(Fault::Fails(field))?;
    same(field, stated, left.into())
}

/// The test of one node.
fn one_hop(hop: &Hop<'_>, of: &Certificate<'_>) -> Result<(), Fault> {
    let frame = &hop.frame;
    if frame.rate == 0 || frame.headers >= frame.mtu {
        return Err(Fault::Range("frame"));
    }
    let shortest = u128::from(of.channel.octets_least) + u128::from(frame.headers);
    same("service_least", hop.terms.service_least, frame.span(shortest))?;
    match &hop.network {
        Network::Edf(port, flows) => edf::check(port, flows, hop, of),
        Network::Rether(share) => rether::check(share, hop, of),
    }
}
