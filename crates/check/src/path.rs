//! The whole certificate: packets of the messages, each hop, and the promise that follows.

use crate::terms::{Certificate, Channel, Hop, HopTerms, Network, Packets, VERSION};
use crate::{Fault, edf, holds, rether, same, word};

/// No number is larger, about thirteen days in nanoseconds: so no sum of products leaves 128 bits.
const MAX: u64 = 1 << 50;

/// Tests if the promise follows from the assumptions of the certificate.
///
/// # Errors
/// [`Fault`]: the first number that is not what the others give, or the test that fails.
pub fn check(certificate: &Certificate<'_>) -> Result<(), Fault> {
    let Certificate { version, channel, packets, hops, promise, seal } = certificate;
    holds(*version == VERSION, Fault::Version)?;
    holds(*seal == certificate.sealed(), Fault::Seal)?;
    let mut largest = 0;
    certificate.each(&mut |value| largest = largest.max(value));
    holds(largest <= MAX, Fault::Range("size"))?;
    in_packets(channel, packets)?;
    let n = u128::from;
    // The parts of the host, of nodes and links, of clocks; jitter and early packets as they travel.
    let host = n(packets.spread) + n(channel.host_slack);
    let (mut nodes, mut errors, mut varies, mut early) = (0u128, 0u128, 0u128, 0u128);
    let apart = |sum: u128| 2 * (longer(sum, channel.clocks) - sum);
    let link = |hop: &HopTerms| n(hop.link_most - hop.link_least);
    let leaves = |hop: &HopTerms| n(hop.delay.saturating_sub(hop.service_least)) + link(hop);
    let mut before: Option<&HopTerms> = None;
    for hop in *hops {
        let terms = &hop.terms;
        let is_error_due = terms.regulator >= 2 || terms.error == 0;
        let can_be = terms.regulator <= 3 && is_error_due && terms.link_most >= terms.link_least;
        holds(can_be, Fault::Range("hop"))?;
        one_hop(hop, certificate)?;
        if let Some(last) = before {
            let own = link(last);
            let left = if last.regulator == 0 { early } else { varies };
            early = left + n(last.delay) + own + n(last.error) + n(terms.error);
            varies = match terms.regulator {
                2 => varies + own + n(terms.error),
                3 => 2 * n(terms.error),
                _ => varies + leaves(last),
            };
            errors = errors.max(n(terms.error) * n(terms.regulator / 3));
        }
        nodes += n(terms.delay) + n(terms.link_most);
        let window = early + n(terms.delay) + apart(nodes + errors);
        let (interval, x_min) = (n(packets.counted_interval), n(packets.counted_x_min));
        let (whole, rest) = (window / interval, window % interval);
        let room = whole * n(packets.burst) + (rest / x_min + 1).min(n(packets.burst));
        same("buffers", terms.buffers, room)?;
        before = Some(terms);
    }
    let last = before.ok_or(Fault::Range("channel"))?;
    let sum = host + nodes + errors;
    same("promise.delay", promise.delay, longer(sum, channel.clocks))?;
    let jitter = host + varies + leaves(last) + apart(sum);
    same("promise.jitter", promise.jitter, jitter.min(n(promise.delay)))?;
    spare("delay_spare", channel.delay_max, promise.delay, promise.delay_spare)?;
    let most = if channel.jitter_max == 0 { promise.jitter } else { channel.jitter_max };
    spare("jitter_spare", most, promise.jitter, promise.jitter_spare)
}

/// A sum of times on several clocks, as another one may show it: divided by 1 − κ, rounded up.
fn longer(sum: u128, clocks: u64) -> u128 {
    (sum * 1_000_000).div_ceil(1_000_000 - u128::from(clocks))
}

/// The packets that carry the messages.
fn in_packets(channel: &Channel, packets: &Packets) -> Result<(), Fault> {
    let n = u128::from;
    let traffic = channel.x_min >= 1 && channel.x_ave >= channel.x_min && channel.interval >= channel.x_ave;
    let size = channel.s_max > 0 && channel.packet_max > 0;
    holds(traffic && size && channel.clocks < 1_000_000, Fault::Range("channel"))?;
    let count = channel.s_max.div_ceil(channel.packet_max);
    same("count", packets.count, count.into())?;
    same("octets", packets.octets, channel.s_max.div_ceil(count).into())?;
    same("burst", packets.burst, n(channel.interval / channel.x_ave) * n(count))?;
    same("packets.x_min", packets.x_min, n(channel.x_min / count))?;
    same("spread", packets.spread, n(packets.x_min) * n(count - 1))?;
    // A regulator's clock shows 1 − κ of the source's at least, and a port's as much of that again.
    let closer = |time: u64| n(time) * (1_000_000 - n(channel.clocks)) / 1_000_000;
    let twice = |time: u64| word(closer(time), "clocks").map(closer);
    same("counted_x_min", packets.counted_x_min, twice(packets.x_min)?)?;
    same("counted_interval", packets.counted_interval, twice(channel.interval)?)?;
    let can_be = packets.counted_x_min > 0 && channel.octets_least <= packets.octets;
    holds(can_be, Fault::Range("packets"))
}

/// The rest that a promise leaves of the request.
fn spare(field: &'static str, asked: u64, promised: u64, stated: u64) -> Result<(), Fault> {
    let left = asked.checked_sub(promised).ok_or(Fault::Fails(field))?;
    same(field, stated, left.into())
}

/// The test of one node.
fn one_hop(hop: &Hop<'_>, of: &Certificate<'_>) -> Result<(), Fault> {
    let frame = &hop.frame;
    holds(frame.rate > 0 && frame.headers < frame.mtu, Fault::Range("frame"))?;
    let shortest = u128::from(of.channel.octets_least) + u128::from(frame.headers);
    same("service_least", hop.terms.service_least, frame.span(shortest))?;
    match &hop.network {
        Network::Edf(port, flows) => edf::check(port, flows, hop, of),
        Network::Rether(share) => rether::check(share, hop, of),
    }
}
