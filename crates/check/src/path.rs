//! The whole certificate: packets of the messages, each hop, and the promise to each receiver that follows.

use crate::terms::{Certificate, Channel, Hop, HopTerms, Network, Packets, Promise, VERSION};
use crate::{Fault, holds, port, rether, same, slots};

/// No number is larger, two years in nanoseconds: so no sum of products leaves 128 bits.
const MAX: u64 = 1 << 56;

/// Tests if the promises follow from the assumptions of the certificate.
///
/// # Errors
/// [`Fault`]: the first number that is not what the others give, or the test that fails.
pub fn check(certificate: &Certificate<'_>) -> Result<(), Fault> {
    let Certificate { version, channel, packets, hops, promises, seal } = certificate;
    holds(*version == VERSION, Fault::Version)?;
    let (sealed, largest) = certificate.sealed();
    holds(*seal == sealed, Fault::Seal)?;
    holds(largest <= MAX, Fault::Range("size"))?;
    in_packets(channel, packets)?;
    for (hop, place) in hops.iter().zip(1..) {
        // Each hop leads to another one, or to a receiver.
        let leads_on = hops.iter().any(|next| next.terms.before == place);
        let ends = promises.iter().any(|promise| promise.hop == place);
        holds(hop.terms.before < place && (leads_on || ends), Fault::Range("before"))?;
        one_hop(hop, certificate)?;
    }
    holds(!promises.is_empty(), Fault::Range("promises"))?;
    promises.iter().try_for_each(|promise| promised(promise, certificate))
}

/// The delays of packets on their way, and its last hop. Times add up, each on its own clock: of nodes and
/// links, of clocks that are wrong, by which packets come apart, and by which they may be early.
#[derive(Default)]
struct Way<'c> {
    nodes: u128,
    errors: u128,
    varies: u128,
    early: u128,
    last: Option<&'c HopTerms>,
}

fn link(hop: &HopTerms) -> u128 {
    u128::from(hop.link_most - hop.link_least)
}

/// By how much packets leave a hop farther apart than they came.
fn leaves(hop: &HopTerms) -> u128 {
    u128::from(hop.delay.saturating_sub(hop.service_least)) + link(hop)
}

impl<'c> Way<'c> {
    /// The way to the hop at this place, from 1; each one has its place behind the one before it.
    fn to(place: u64, of: &Certificate<'c>) -> Result<Self, Fault> {
        let n = u128::from;
        let at = place.checked_sub(1).and_then(|at| usize::try_from(at).ok());
        let terms = &at.and_then(|at| of.hops.get(at)).ok_or(Fault::Range("hop"))?.terms;
        let mut way = if terms.before == 0 { Self::default() } else { Self::to(terms.before, of)? };
        if let Some(last) = way.last {
            let left = if last.regulator == 0 { way.early } else { way.varies };
            way.early = left + n(last.delay) + link(last) + n(last.error) + n(terms.error);
            way.varies = match terms.regulator {
                2 => way.varies + link(last) + n(terms.error),
                3 => 2 * n(terms.error),
                _ => way.varies + leaves(last),
            };
            way.errors = way.errors.max(n(terms.error) * n(terms.regulator / 3));
        }
        way.nodes += n(terms.delay) + n(terms.link_most);
        let (packets, far) = (&of.packets, way.nodes + way.errors);
        let window = way.early + n(terms.delay) + apart(far, of.channel.clocks);
        let (interval, x_min) = (n(packets.counted_interval), n(packets.counted_x_min));
        let (whole, rest) = (window / interval, window % interval);
        let room = whole * n(packets.burst) + (rest / x_min + 1).min(n(packets.burst));
        same("buffers", terms.buffers, room)?;
        Ok(Self { last: Some(terms), ..way })
    }
}

fn promised(promise: &Promise, of: &Certificate<'_>) -> Result<(), Fault> {
    let (channel, way) = (&of.channel, Way::to(promise.hop, of)?);
    let host = u128::from(of.packets.spread) + u128::from(channel.host_slack);
    let sum = host + way.nodes + way.errors;
    let varies = host + way.varies + way.last.map_or(0, leaves);
    same("promise.delay", promise.delay, longer(sum, channel.clocks))?;
    let jitter = varies + apart(sum, channel.clocks);
    same("promise.jitter", promise.jitter, jitter.min(u128::from(promise.delay)))?;
    spare("delay_spare", channel.delay_max, promise.delay, promise.delay_spare)?;
    let most = if channel.jitter_max == 0 { promise.jitter } else { channel.jitter_max };
    spare("jitter_spare", most, promise.jitter, promise.jitter_spare)
}

/// A sum of times on several clocks, as another one may show it: divided by 1 − κ, rounded up.
pub(crate) fn longer(sum: u128, clocks: u64) -> u128 {
    (sum * 1_000_000).div_ceil(1_000_000 - u128::from(clocks))
}

/// By how much two such sums may differ for the clocks alone.
fn apart(sum: u128, clocks: u64) -> u128 {
    2 * (longer(sum, clocks) - sum)
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
    let closer = |time: u128| time * (1_000_000 - n(channel.clocks)) / 1_000_000;
    let twice = |time: u64| closer(closer(n(time)));
    same("counted_x_min", packets.counted_x_min, twice(packets.x_min))?;
    same("counted_interval", packets.counted_interval, twice(channel.interval))?;
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
    let (frame, terms) = (&hop.frame, &hop.terms);
    let is_error_due = terms.regulator >= 2 || terms.error == 0;
    let can_be = terms.regulator <= 3 && is_error_due && terms.link_most >= terms.link_least;
    holds(can_be, Fault::Range("hop"))?;
    holds(frame.rate > 0 && frame.headers < frame.mtu, Fault::Range("frame"))?;
    let shortest = u128::from(of.channel.octets_least) + u128::from(frame.headers);
    same("service_least", terms.service_least, frame.span(shortest))?;
    match &hop.network {
        Network::Port(port, flows) => port::check(port, flows, hop, of),
        Network::Rether(shares) => {
            let begins = shares.first().is_some_and(|share| share.from <= of.channel.begins);
            holds(begins && shares.is_sorted_by_key(|share| share.from), Fault::Range("from"))?;
            let mut moments = shares.chunk_by(|one, next| one.from == next.from);
            moments.try_for_each(|slots| rether::check(slots, hop, of))
        }
        Network::Slots(own) => slots::check(own, hop, of),
    }
}
