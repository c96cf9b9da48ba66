//! Certificates: what an accepted channel assumes, and every number that its promise follows from
//! (`TENET-R16`).
//!
//! A certificate is plain numbers, so that a checker can compute each derived one again without this code;
//! the room `check` does. All times are nanoseconds, sizes octets, rates bits a second. A JSON document of
//! it is written elsewhere, with the names of `NAMES`. Each node makes its part when it has relaxed its
//! bound, and the source puts them together.
//!
//! Only guaranteed channels have one: a statistical promise rests on independence, which no number shows.

mod port;
mod share;

use crate::clocks::Clocks;
use crate::path::{self, Goal, Hop, PathDenied};
use crate::rtip::{
    Denied, Flow, Messages, NodeTest, Packets, Regulator, busy_most, edf_exact_below, load, rcsp_below,
};
use crate::slots::continues;
use crate::subnet::{Ask, PortLoad, RTIP_OCTETS, RetherSegment, RetherShare, packet_cost};
use crate::{LinkModel, rether};
pub use port::PortPart;
use rota_units::{Octets, Span};
pub use share::StandingShare;

/// The version of the format.
pub const CERTIFICATE_VERSION: u64 = 5;

macro_rules! numbers {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $what:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $(#[doc = $what] pub $field: u64,)* }

        impl $name {
            /// The names of its numbers, in the order of the format.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];

            /// The numbers in the same order.
            pub fn values(&self) -> impl Iterator<Item = u64> + use<> {
                [$(self.$field),*].into_iter()
            }

            /// The next ones of a list in that order; `None` if it ends before.
            pub fn read(numbers: &mut impl Iterator<Item = u64>) -> Option<Self> {
                Some(Self { $($field: numbers.next()?),* })
            }
        }
    };
}

numbers!(
    /// The request of the client.
    ChannelTerms {
        x_min: "X_min of messages.",
        x_ave: "X_ave of messages.",
        interval: "I.",
        s_max: "S_max.",
        delay_max: "D_max.",
        jitter_max: "J_max, or 0.",
        packet_max: "Payload of the largest packet that the path carries.",
        octets_least: "Payload of the shortest packet of the channel.",
        host_slack: "How late the sending host may hand over.",
        clocks: "κ, in millionths.",
        begins: "When its first message comes.",
        ends: "When its last one has come; 0 where it stays.",
    }
);
numbers!(
    /// The packets of the messages.
    PacketTerms {
        count: "Packets of the largest message.",
        octets: "Payload of the largest packet.",
        burst: "B of packets.",
        x_min: "X_min of packets.",
        spread: "From the first packet of a message to its last.",
        counted_x_min: "X_min as every node counts it.",
        counted_interval: "I likewise.",
    }
);
numbers!(
    /// The numbers of every hop.
    NodeTerms {
        before: "The place of the hop before it, from 1; 0 at the source.",
        regulator: "0 none, 1 rate-jitter, 2 delay-jitter by what was ahead, 3 by the timestamp.",
        error: "ε of the node, or the step of the carried time, or 0.",
        delay: "d, host slack included.",
        link_least: "The shortest time of the link behind it.",
        link_most: "π.",
        service_least: "The shortest time in which a packet passes.",
        buffers: "Packets for which it has room.",
    }
);
numbers!(
    /// The cost of a frame on the hop.
    FrameTerms {
        rate: "Of the slowest port.",
        mtu: "Largest frame payload.",
        overhead: "Octets on the wire beside it.",
        wire_least: "Octets on the wire of the shortest frame.",
        headers: "Octets of headers and tag in the frame payload.",
        per_frame: "a.",
        prepare: "What the host needs to prepare a frame.",
        host_slack: "J of the node.",
    }
);
numbers!(
    /// A channel at the same port.
    FlowTerms {
        x_min: "X_min of its packets.",
        interval: "I.",
        burst: "B.",
        octets: "Payload of its largest packet.",
        delay: "d on the port, host slack apart.",
        from: "When it begins to count.",
        until: "When it counts no more; 0 where it stays.",
        service: "s.",
    }
);
numbers!(
    /// A port that serves the earliest deadline first, or levels.
    PortTerms {
        levels: "1 if it serves levels, each named by its bound, the shortest one first.",
        card_ahead: "Wire time that a card may have ahead, beside one full frame.",
        window: "W.",
        above: "Work that goes before all packets in each W: announcements, and slots.",
        own: "The place of this channel among the flows.",
        ordinary: "s_0.",
        horizon: "L.",
        slack: "The least that is left at a deadline or a level's bound, L at most.",
    }
);
numbers!(
    /// A slot of a share of a RETHER segment, as it is from some moment on.
    RetherTerms {
        from: "This moment.",
        per_visit: "b.",
        hop: "h.",
        trt: "TRT.",
        stations: "N.",
        broadcasts: "The master's broadcasts in a cycle.",
        t_nrt: "T_NRT.",
        octets: "Of a packet, in this slot; slots of one moment carry it together.",
        offset: "Off.",
        units: "u, packets in each cycle.",
        cycles: "k, cycles of one unit; of packets 1.",
        periodic: "1 if the channel asked for the strict ring.",
        joined: "1 if the slot continues the visit before it.",
        receives: "1 if its visit may begin behind a frame to its station.",
        packet_time: "V.",
        tht: "THT.",
        wait: "The longest wait for a place in a slot, and its place.",
        transit: "T.",
        bound: "The bound of the segment.",
        spare: "What the slot leaves of the cycle.",
    }
);
numbers!(
    /// The slots of a channel of one link, which go before all packets of its port.
    SlotsTerms {
        window: "W.",
        per_visit: "b.",
        above: "Slots of the sender that go before its own, and O, in W.",
        card_ahead: "Wire time that a card may have ahead, beside one full frame.",
        units: "u, packets in each cycle.",
        cycles: "k, cycles of one packet.",
        packet_time: "The part of a packet in one slot.",
        slot: "u·S.",
        ordinary: "B.",
        spare: "The rest of W.",
    }
);
numbers!(
    /// The promise to a receiver of the channel.
    PromiseTerms {
        hop: "The place of the last hop of its way, from 1.",
        delay: "D of a message.",
        delay_spare: "D_max − D.",
        jitter: "J of a message.",
        jitter_spare: "J_max − J, or 0.",
    }
);

/// The test of one kind of network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkTerms<'c> {
    /// A port with its flows.
    Port(PortTerms, &'c [FlowTerms]),
    /// A share of a RETHER segment, each of its slots at each moment at which the list of the token changes.
    Rether(&'c [RetherTerms]),
    /// The slots of a channel of one link.
    Slots(SlotsTerms),
}

/// One hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopTerms<'c> {
    /// The numbers of every hop.
    pub node: NodeTerms,
    /// The cost of a frame.
    pub frame: FrameTerms,
    /// Its test.
    pub network: NetworkTerms<'c>,
}

/// The certificate of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certificate<'c> {
    /// [`CERTIFICATE_VERSION`].
    pub version: u64,
    /// The request.
    pub channel: ChannelTerms,
    /// In packets.
    pub packets: PacketTerms,
    /// From the source to its receivers, each behind the one before it.
    pub hops: &'c [HopTerms<'c>],
    /// The promise to each receiver.
    pub promises: &'c [PromiseTerms],
    /// Σ number_i · K^i modulo 2⁶⁴, K odd, i from 1 in the order of the format: no single number can change.
    pub seal: u64,
}

/// K of the seal: 2⁶⁴ divided by the golden ratio, made odd.
const SEAL: u64 = 0x9E37_79B9_7F4A_7C15;

/// The channel as its source knows it, without its hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The traffic of the client.
    pub messages: Messages,
    /// D_max and J_max.
    pub goal: Goal,
    /// Payload of the largest packet that every hop carries.
    pub packet_max: Octets,
    /// Payload of the shortest packet.
    pub octets_least: Octets,
    /// How late the sending host may hand over (`rota calibrate`).
    pub host_slack: Span,
    /// By how much the clocks of the path may differ.
    pub clocks: Clocks,
    /// When it is needed.
    pub life: Life,
}

/// The time in which a channel is needed, or counts at a port, from a moment that the certificate does not
/// name: the beginning of a plan, or the making of a node's part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Life {
    /// The first moment.
    pub from: Span,
    /// The first one behind it; none where it stays.
    pub until: Option<Span>,
}

impl Life {
    /// From the beginning, and for ever.
    pub const ALWAYS: Self = Self { from: Span::ZERO, until: None };

    /// True at this moment of it.
    pub fn has(&self, at: Span) -> bool {
        self.from <= at && self.until.is_none_or(|until| at < until)
    }

    /// Its end as a number, which 0 is where it stays.
    fn until_ns(&self) -> u64 {
        self.until.map_or(0, Span::as_nanos)
    }
}

/// A channel of a port, with its bound there and the time in which it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its packets.
    pub ask: Ask,
    /// d on the port, host slack apart.
    pub delay: Span,
    /// When it counts.
    pub life: Life,
}

impl Standing {
    /// One that is there for ever.
    pub const fn always((ask, delay): (Ask, Span)) -> Self {
        Self { ask, delay, life: Life::ALWAYS }
    }
}

impl FrameTerms {
    /// Of a port with these costs.
    pub fn of(link: &LinkModel) -> Self {
        Self {
            rate: link.rate.as_bps(),
            mtu: link.framing.mtu.into(),
            overhead: link.framing.overhead_octets.into(),
            wire_least: link.framing.min_wire_octets.into(),
            headers: u64::from(link.framing.rota_octets) + RTIP_OCTETS,
            per_frame: link.per_frame.as_nanos(),
            prepare: link.prepare.as_nanos(),
            host_slack: link.host_slack.as_nanos(),
        }
    }
}

/// The part of a port: its channels, `own` among them, tested at each moment in the life of that one at which
/// another one begins. `flows` and `terms` are memory of the same length.
///
/// # Errors
/// The test's own, and [`NodeTest::Load`] for a load of exactly 1: no busy period ends there that a checker
/// could find.
pub fn port_terms<'c>(
    link: &LinkModel,
    load: &PortLoad,
    channels: &[Standing],
    own: usize,
    flows: &mut [Flow],
    terms: &'c mut [FlowTerms],
) -> Result<NetworkTerms<'c>, Denied> {
    assert!(channels.len() == flows.len() && flows.len() == terms.len(), "one place for each channel");
    assert!(load.ordinary >= link.frame_span_max(), "one full frame can always be ahead");
    for (Standing { ask, delay, life }, terms) in channels.iter().zip(&mut *terms) {
        *terms = FlowTerms {
            x_min: ask.traffic.x_min().as_nanos(),
            interval: ask.traffic.interval().as_nanos(),
            burst: ask.traffic.burst(),
            octets: ask.octets.get(),
            delay: delay.as_nanos(),
            from: life.from.as_nanos(),
            until: life.until_ns(),
            service: packet_cost(link, ask.octets).as_nanos(),
        };
    }
    let (mut horizon, mut slack) = (Span::ZERO, Span::MAX);
    for (n, at) in channels.iter().map(|channel| channel.life.from).enumerate() {
        let is_first = channels[..n].iter().all(|before| before.life.from != at);
        if !channels[own].life.has(at) || !is_first {
            continue;
        }
        let mut count = 0;
        for Standing { ask, delay, .. } in channels.iter().filter(|channel| channel.life.has(at)) {
            flows[count] =
                Flow { traffic: ask.traffic, service: packet_cost(link, ask.octets), delay: *delay };
            count += 1;
        }
        let found = of_set(&flows[..count], load)?;
        (horizon, slack) = (horizon.max(found.0), slack.min(found.1));
    }
    let port = PortTerms {
        levels: load.by_levels.into(),
        card_ahead: load.ordinary.minus(link.frame_span_max()).as_nanos(),
        window: load.window.as_nanos(),
        above: load.work.as_nanos(),
        own: own as u64,
        ordinary: load.ordinary.as_nanos(),
        horizon: horizon.as_nanos(),
        slack: slack.as_nanos(),
    };
    Ok(NetworkTerms::Port(port, terms))
}

/// L of one set of flows, and the least that it leaves.
fn of_set(flows: &[Flow], load: &PortLoad) -> Result<(Span, Span), Denied> {
    let (ordinary, above) = (load.ordinary, load.above());
    let found = if load.by_levels {
        let found = rcsp_below(flows, ordinary, above.as_ref())?;
        let horizon = busy_most(flows, ordinary, above.as_ref())?;
        (horizon, found.slack.min(horizon))
    } else {
        let found = edf_exact_below(flows, ordinary, above.as_ref())?;
        (found.horizon, found.slack)
    };
    if load::is_whole(flows.iter().chain(&above)) {
        return Err(Denied::new(NodeTest::Load, Span::from_nanos(1)));
    }
    Ok(found)
}

/// The part of a RETHER segment as it is from a moment on.
pub fn rether_terms(segment: &RetherSegment<'_>, ask: &Ask, share: &RetherShare, from: Span) -> RetherTerms {
    let packet_time = rether::tht_rt_joined(&segment.params, ask.octets + Octets::new(RTIP_OCTETS));
    let joined = continues(segment.slots, segment.station, segment.partition);
    RetherTerms {
        from: from.as_nanos(),
        octets: ask.octets.get(),
        periodic: segment.periodic.into(),
        joined: joined.into(),
        receives: (segment.receives && !joined).into(),
        spare: share.admitted.spare.as_nanos(),
        ..RetherTerms::of(&segment.params, share, packet_time)
    }
}

impl RetherTerms {
    /// Of a share whose packets take so long each. Its flags, octets and time to spare are 0: the kinds of
    /// shares know them in different ways.
    fn of(params: &rether::SegmentParams, share: &RetherShare, packet_time: Span) -> Self {
        Self {
            from: 0,
            per_visit: params.link.per_visit.as_nanos(),
            hop: params.link.hop.as_nanos(),
            trt: params.trt.as_nanos(),
            stations: params.stations.into(),
            broadcasts: params.master_broadcasts.as_nanos(),
            t_nrt: share.admitted.t_nrt.as_nanos(),
            octets: 0,
            offset: share.admitted.offset.as_nanos(),
            units: share.pace.units(),
            cycles: share.pace.cycles(),
            periodic: 0,
            joined: 0,
            receives: 0,
            packet_time: packet_time.as_nanos(),
            tht: share.admitted.tht.as_nanos(),
            wait: share.wait.as_nanos(),
            transit: params.transit().as_nanos(),
            bound: share.delay.as_nanos(),
            spare: 0,
        }
    }
}

/// The way to one receiver.
#[derive(Clone, Copy, Debug)]
pub struct Branch<'w> {
    /// Its hops.
    pub hops: &'w [Hop],
    /// The places of these among all hops of the certificate, which rise. Branches that share a hop share all
    /// those before it.
    pub places: &'w [usize],
}

impl NodeTerms {
    /// Of hop `n` of a branch.
    fn of(Branch { hops, places }: Branch<'_>, n: usize, packets: &Packets, clocks: Clocks) -> Self {
        let hop = &hops[n];
        Self {
            before: n.checked_sub(1).map_or(0, |before| places[before] as u64 + 1),
            regulator: match hop.regulator {
                Regulator::None => 0,
                Regulator::Rate => 1,
                Regulator::DelayAhead { .. } => 2,
                Regulator::DelayClock { .. } => 3,
            },
            error: hop.regulator.error().as_nanos(),
            delay: hop.delay.as_nanos(),
            link_least: hop.link_least.as_nanos(),
            link_most: hop.link_most.as_nanos(),
            service_least: hop.service_least.as_nanos(),
            buffers: path::buffers(hops, n, &packets.traffic, Span::ZERO, clocks),
        }
    }
}

/// Why no certificate was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCertificate {
    /// The traffic cannot be.
    Traffic(crate::rtip::BadTraffic),
    /// The path does not keep the goal.
    Path(PathDenied),
}

/// Puts a certificate together. `branches` are the ways to its receivers, `parts` have the frames and tests
/// of all hops; what every hop has is written into them, and the promise to each receiver into `promises`.
///
/// # Errors
/// [`NoCertificate`].
pub fn certify<'c>(
    terms: &Terms,
    branches: &[Branch<'_>],
    parts: &'c mut [HopTerms<'c>],
    promises: &'c mut [PromiseTerms],
) -> Result<Certificate<'c>, NoCertificate> {
    assert_eq!(branches.len(), promises.len(), "each receiver has its promise");
    let packets = terms.messages.packets(terms.packet_max).map_err(NoCertificate::Traffic)?;
    let (host, clocks) = (packets.spread + terms.host_slack, terms.clocks);
    let counted = clocks.counted(&packets.traffic);
    for (branch, promise) in branches.iter().zip(&mut *promises) {
        let Branch { hops, places } = *branch;
        path::check(hops, host, &terms.goal, clocks).map_err(NoCertificate::Path)?;
        for (n, place) in places.iter().enumerate() {
            parts[*place].node = NodeTerms::of(*branch, n, &packets, clocks);
        }
        let (delay, jitter) = (path::delay(hops, host, clocks), path::jitter(hops, host, clocks));
        *promise = PromiseTerms {
            hop: places.last().map_or(0, |last| *last as u64 + 1),
            delay: delay.as_nanos(),
            delay_spare: terms.goal.delay.minus(delay).as_nanos(),
            jitter: jitter.as_nanos(),
            jitter_spare: terms.goal.jitter.map_or(0, |most| most.minus(jitter).as_nanos()),
        };
    }
    let mut certificate = Certificate {
        version: CERTIFICATE_VERSION,
        channel: ChannelTerms {
            x_min: terms.messages.x_min.as_nanos(),
            x_ave: terms.messages.x_ave.as_nanos(),
            interval: terms.messages.interval.as_nanos(),
            s_max: terms.messages.s_max.get(),
            delay_max: terms.goal.delay.as_nanos(),
            jitter_max: terms.goal.jitter.unwrap_or(Span::ZERO).as_nanos(),
            packet_max: terms.packet_max.get(),
            octets_least: terms.octets_least.get(),
            host_slack: terms.host_slack.as_nanos(),
            clocks: clocks.ppm(),
            begins: terms.life.from.as_nanos(),
            ends: terms.life.until_ns(),
        },
        packets: PacketTerms {
            count: packets.count,
            octets: packets.octets.get(),
            burst: packets.traffic.burst(),
            x_min: packets.traffic.x_min().as_nanos(),
            spread: packets.spread.as_nanos(),
            counted_x_min: counted.x_min().as_nanos(),
            counted_interval: counted.interval().as_nanos(),
        },
        hops: parts,
        promises,
        seal: 0,
    };
    certificate.seal = certificate.sealed();
    Ok(certificate)
}

impl Certificate<'_> {
    /// The seal of these numbers.
    pub fn sealed(&self) -> u64 {
        let (mut seal, mut power) = (0u64, 1u64);
        let mut add = |value: u64| {
            power = power.wrapping_mul(SEAL);
            seal = seal.wrapping_add(power.wrapping_mul(value));
        };
        add(self.version);
        self.channel.values().chain(self.packets.values()).for_each(&mut add);
        for hop in self.hops {
            hop.node.values().chain(hop.frame.values()).for_each(&mut add);
            match hop.network {
                NetworkTerms::Port(port, flows) => {
                    port.values().for_each(&mut add);
                    flows.iter().flat_map(FlowTerms::values).for_each(&mut add);
                }
                NetworkTerms::Rether(all) => all.iter().flat_map(RetherTerms::values).for_each(&mut add),
                NetworkTerms::Slots(slots) => slots.values().for_each(&mut add),
            }
        }
        self.promises.iter().flat_map(PromiseTerms::values).for_each(add);
        seal
    }
}
