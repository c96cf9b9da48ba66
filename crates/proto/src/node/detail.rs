//! The detail of a channel that is sent here: each hop of its way with bound, counts and the part of the
//! certificate that its node has stated.
//!
//! A node states its part when its share is granted, from the grant itself. The parts come with the accept to
//! the source (`TENET-R16`). A channel of one segment has one hop, whose part is made when somebody asks.

use super::{Node, ReceiverDetail};
use crate::across::End;
use crate::channels::Grant;
use crate::io::ChannelId;
use crate::node::offers::percent_of;
use crate::port::Port;
use crate::rcap::{ChannelRequest, EntryId, HopOffer, LINK, Record, StatusCounts};
use crate::rtip::HopShare;
use rota_admission::certificate::{self, PortPart, RetherTerms, StandingShare, Terms};
use rota_admission::path::Goal;
use rota_admission::rtip::{Chance, Messages, Regulator};
use rota_admission::subnet::{Ask, Offer};
use rota_admission::{Admitted, Clocks, Pace, StandingSlot};
use rota_contract::{AskedTerms, Granted, Group, NodeId, PartitionName};
use rota_medium::door::MediumKind;
use rota_medium::door::{GroupShare, Life};
use rota_medium::link::FlowPort;
use rota_units::{Instant, Octets, Span};
use rota_wire::RcapTerms;

/// A channel that is sent here.
#[derive(Clone, Debug)]
pub struct ChannelDetail {
    /// The request, as every node of the way has it.
    pub terms: Terms,
    /// The partition that it counts in, where a link of the way has it.
    pub partition: Option<PartitionName>,
    /// The group with which it shares what the links of its way reserve.
    pub group: Option<Group>,
    /// When it sends.
    pub life: Life,
    /// The nodes of the way with their names, the destination left out.
    pub hops: Vec<(Record, String)>,
    /// The destination of a channel across segments, once its status is known: its counts are of units, whole
    /// ones and broken ones.
    pub destination: Option<(Record, String)>,
    /// Its receivers, where it has several: each has hops of its own.
    pub receivers: Vec<ReceiverDetail>,
}

/// The numbers of a channel at its opening, from which a certificate is put together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opened {
    pub(crate) request: Option<ChannelRequest>,
    /// Payload of the largest packet.
    pub(crate) octets: Octets,
    /// The nodes before the destination, with their parts.
    pub(crate) nodes: Vec<Record>,
}

/// The share of a channel of one segment, as it was granted.
#[derive(Clone, Debug)]
pub(crate) struct OwnShare {
    pub(crate) granted: Granted,
    /// How late this host may hand over, which the bound contains.
    pub(crate) host: Span,
    pub(crate) grant: Grant,
    pub(crate) pace: Pace,
    pub(crate) periodic: bool,
    pub(crate) asked: AskedTerms,
    /// Units that have left.
    pub(crate) units: u64,
}

impl Node {
    /// The detail of a channel that is sent here; none of another one.
    pub fn detail(&self, channel: ChannelId) -> Option<ChannelDetail> {
        match self.end_across(channel) {
            Some(end) => {
                let receivers = self.receivers(channel);
                Some(ChannelDetail { receivers, ..self.detail_across(end)? })
            }
            None => self.detail_of_own(channel),
        }
    }

    fn detail_across(&self, end: &End) -> Option<ChannelDetail> {
        let Opened { request, octets, nodes } = &end.opened;
        let request = request.as_ref()?;
        let named = |record: &Record| (record.clone(), self.node_name(record.node));
        let newest = |opened: &Record| {
            let told = end.nodes.iter().find(|told| told.node == opened.node);
            named(&Record { counts: told.map_or(opened.counts, |told| told.counts), ..opened.clone() })
        };
        let terms = Terms {
            messages: request.messages,
            goal: request.goal,
            packet_max: *octets,
            octets_least: Octets::new(1),
            host_slack: request.host_slack,
            clocks: Clocks::APART,
            // As asked for: the parts of its nodes count from the asking on, too.
            life: certificate::Life { from: request.life.0, until: request.life.1 },
        };
        let destination = end.nodes.last().filter(|last| last.node == request.destination);
        let hops = nodes.iter().map(newest).collect();
        let (partition, group) = (request.partition, request.group);
        let life = Life { from: end.begins, until: end.ends };
        let destination = destination.map(named);
        Some(ChannelDetail { terms, partition, group, life, hops, destination, receivers: Vec::new() })
    }

    /// The name of a node, empty where none is known.
    pub fn node_name(&self, node: NodeId) -> String {
        let named = self.across.as_ref().and_then(|across| across.links.name(node)).map(str::to_owned);
        let member = |port: &Port| {
            let medium = port.medium();
            let is_it = |member: &&rota_medium::Member| member.announce.node_id == node;
            let other = medium.members().iter().find(is_it).map(|member| member.announce.name().to_owned());
            if medium.node_id() == node { Some(medium.name().to_owned()) } else { other }
        };
        named.or_else(|| self.ports().find_map(member)).unwrap_or_default()
    }

    fn detail_of_own(&self, channel: ChannelId) -> Option<ChannelDetail> {
        let line = self.line_of(channel);
        let share = line.channels.own_share(channel)?;
        let port = &line.port;
        let OwnShare { granted, host, asked, units, .. } = share;
        let medium = granted.bound().minus(host);
        let octets = Octets::new(granted.contract.unit_octets_max.into());
        let x_min = granted.period();
        let x_ave = asked.average_of(x_min).max(x_min);
        let interval = asked.interval_of(x_min).max(x_ave);
        let messages = Messages { x_min, x_ave, interval, s_max: octets };
        let (offer, terms) =
            part_of_own(port, &share, &messages).unwrap_or_else(|| (plain_offer(medium), Vec::new()));
        let own = port.medium().node_id();
        let hop = HopOffer { offer, ..hop_offer(medium, kind_of(port)) };
        let record = Record {
            node: own,
            port: port.id(),
            is_open: true,
            hop: HopOffer { regulator: Regulator::None, ..hop },
            buffers: granted.contract.buffers.into(),
            counts: StatusCounts { packets: units, dropped: 0, held: 0 },
            terms,
        };
        let goal = Goal { delay: asked.delay.unwrap_or(granted.bound()), jitter: asked.jitter };
        Some(ChannelDetail {
            terms: Terms {
                messages,
                goal,
                packet_max: octets,
                octets_least: Octets::new(1),
                host_slack: host,
                // Its source and the master of its segment are taken for right.
                clocks: Clocks::ONE,
                life: certificate::Life::ALWAYS,
            },
            partition: None,
            group: None,
            life: Life::ALWAYS,
            hops: vec![(record, self.node_name(own))],
            // Its counts are those of the list.
            destination: None,
            receivers: Vec::new(),
        })
    }

    /// The counts of an entry: packets of a hop, units at the destination.
    pub(super) fn counts_of(&self, entry: EntryId) -> StatusCounts {
        let Some(across) = &self.across else { return StatusCounts::default() };
        if let Some(key) = across.rcap.received_by(entry) {
            let tally = across.end_of(key, false).and_then(|id| self.hops.tally(id)).unwrap_or_default();
            return StatusCounts {
                packets: tally.units,
                dropped: tally.lost.saturating_add(tally.incomplete),
                held: 0,
            };
        }
        let hop = across.held.get(&entry).map(|held| held.hop);
        let counts = hop.and_then(|hop| self.hop_counts(hop)).unwrap_or_default();
        let given_up = counts.taken.saturating_sub(counts.sent + counts.waiting as u64);
        let dropped = given_up.saturating_add(counts.over_buffers + counts.policed);
        StatusCounts { packets: counts.sent, dropped, held: counts.held }
    }

    // ---- parts of hops across segments -----------------------------------------------------------------

    /// The offer of a share that a medium has granted to a hop. Its part of the certificate is kept until the
    /// accept comes back.
    pub(super) fn offer_of(&mut self, entry: EntryId, hop: ChannelId, admitted: &Admitted) -> HopOffer {
        self.offer_in_slots(entry, hop, admitted, &[])
    }

    /// The same where a change has split the share of a RETHER segment in these slots.
    pub(super) fn offer_in_slots(
        &mut self,
        entry: EntryId,
        hop: ChannelId,
        admitted: &Admitted,
        slots: &[StandingSlot],
    ) -> HopOffer {
        if let Some(offer) = self.offer_of_link(entry, hop, admitted.bound) {
            return offer;
        }
        let port = self.port_of_hop(hop);
        let kind = port.map_or(0, kind_of);
        let held = self.across.as_ref().and_then(|across| across.held.get(&entry)).copied();
        let partition = held.and_then(|held| held.partition);
        let percent = port.map_or(0, |port| percent_of(port.medium().settings(), partition));
        let plain = HopOffer { percent, ..hop_offer(admitted.bound, kind) };
        let part = held.zip(port).and_then(|(held, port)| match held.group {
            Some(group) => offer_of_member(port, &held.ask, &group, admitted),
            None => part_of_hop(port, &held.ask, admitted, slots),
        });
        let (Some((offer, terms)), Some(across)) = (part, &mut self.across) else { return plain };
        across.parts.insert(entry, terms);
        HopOffer { offer, ..plain }
    }

    /// The part of a hop over a link, with the bound that it has now: its port with all flows. One that no
    /// certificate has states 0 flows, one with more than a message holds their number alone.
    /// A contract that takes the place of another one is stated in the place of both, with its bound.
    pub(super) fn part_of_link(&self, now: Instant, hop: ChannelId, joint: Option<(Ask, Span)>) -> Vec<u8> {
        let written = |numbers: Vec<u64>| RcapTerms::written(2, numbers.into_iter());
        let Some(port) = self.port_of_hop(hop) else { return Vec::new() };
        let mut numbers = Vec::new();
        if let Some(FlowPort { load, mut flows, own }) = port.flow_port(now, hop) {
            if let (Some((ask, delay)), Some(of)) = (joint, flows.get_mut(own)) {
                let delay = delay.minus(port.medium().settings().link.host_slack);
                *of = certificate::Standing { ask, delay, ..*of };
            }
            let part = PortPart::of(&port.medium().settings().link, load, &mut flows, own);
            part.write(&flows, &mut |number| numbers.push(number));
        }
        let count = numbers.first().copied().unwrap_or(0);
        written(numbers).filter(|_| count > 0).or_else(|| written(vec![count])).unwrap_or_default()
    }

    /// A medium has no cheaper share for a longer bound: the offer stays, and the part goes with it.
    pub(super) fn keep_across(&mut self, now: Instant, entry: EntryId) {
        let Some(across) = &mut self.across else { return };
        let terms = across.parts.remove(&entry).unwrap_or_default();
        across.rcap.kept(now, entry, terms);
    }
}

fn kind_of(port: &Port) -> u8 {
    super::offers::kind_of(port.medium().settings())
}

fn plain_offer(bound: Span) -> Offer {
    let least = Span::ZERO;
    Offer { delay: bound, service_least: least, link_least: least, link_most: least }
}

/// The offer of a share with this bound.
fn hop_offer(bound: Span, medium: u8) -> HopOffer {
    let (host_slack, late) = (Span::ZERO, Chance::NEVER);
    let (offer, regulator) = (plain_offer(bound), Regulator::Rate);
    HopOffer { offer, regulator, host_slack, late, medium, percent: 0 }
}

/// The offer and the part of a hop with a share of a RETHER segment. The bound of the grant is that of
/// packets no closer than its slots; the offer has that of the channel's own packets.
fn part_of_hop(
    port: &Port,
    ask: &Ask,
    admitted: &Admitted,
    slots: &[StandingSlot],
) -> Option<(Offer, Vec<u8>)> {
    let settings = rether_settings(port)?;
    let params = settings.params(port.medium().stations());
    let octets = u32::try_from(ask.octets.get()).ok()?;
    let HopShare { pace, periodic, .. } = HopShare::at_peak(&ask.traffic, octets, settings.trt)?;
    let standing = StandingShare {
        params: &params,
        traffic: ask.traffic,
        octets: ask.octets,
        octets_least: ask.octets_least,
        is_packet: true,
        pace,
        periodic,
        admitted: *admitted,
    };
    part(&standing, if slots.len() > 1 { slots } else { &[] })
}

/// The offer alone.
pub(super) fn offer_of_share(port: &Port, ask: &Ask, admitted: &Admitted) -> Option<Offer> {
    part_of_hop(port, ask, admitted, &[]).map(|(offer, _)| offer)
}

/// The offer of a hop that is a member of a group, whose share carries all members that send at once. A
/// member has no certificate, and no part of one.
fn offer_of_member(
    port: &Port,
    ask: &Ask,
    group: &GroupShare,
    admitted: &Admitted,
) -> Option<(Offer, Vec<u8>)> {
    let settings = rether_settings(port)?;
    let params = settings.params(port.medium().stations());
    let octets = u32::try_from(ask.octets.get()).ok()?;
    let HopShare { pace, periodic, .. } = HopShare::of_group(ask.traffic, octets, settings.trt, *group)?;
    let standing = StandingShare {
        params: &params,
        traffic: ask.traffic,
        octets: ask.octets,
        octets_least: ask.octets_least,
        is_packet: true,
        pace,
        periodic,
        admitted: *admitted,
    };
    let share = standing.share_of_group(group.at_once).ok()?;
    Some((standing.offer(&share), Vec::new()))
}

/// The same of a channel of one segment. A link states no flow for it, and its slots.
fn part_of_own(port: &Port, share: &OwnShare, messages: &Messages) -> Option<(Offer, Vec<u8>)> {
    let params = port.medium().settings().params(share.grant.stations);
    let standing = StandingShare {
        params: &params,
        traffic: messages.packets(messages.s_max).ok()?.traffic,
        octets: messages.s_max,
        octets_least: Octets::new(1),
        is_packet: false,
        pace: share.pace,
        periodic: share.periodic,
        admitted: share.grant.admitted,
    };
    if port.medium().kind() == MediumKind::Rether {
        return part(&standing, &share.grant.slots);
    }
    let (offer, frame, slots) = standing.slots()?;
    let numbers = std::iter::once(0).chain(frame.values()).chain(slots.values());
    Some((offer, RcapTerms::written(LINK, numbers)?))
}

fn rether_settings(port: &Port) -> Option<&rota_medium::Settings> {
    (port.medium().kind() == MediumKind::Rether).then(|| port.medium().settings())
}

/// The offer and the part of a share of a RETHER segment in these slots; without any in the one of its grant.
fn part(standing: &StandingShare<'_>, slots: &[StandingSlot]) -> Option<(Offer, Vec<u8>)> {
    let (share, granted, frame) = (standing.share().ok()?, [standing.slot()], standing.frame());
    let slots = if slots.is_empty() { &granted[..] } else { slots };
    let terms: Option<Vec<RetherTerms>> =
        slots.iter().map(|slot| standing.slot_terms(&share, slot)).collect();
    let of = |terms: Vec<RetherTerms>| {
        RcapTerms::written(1, frame.values().chain(terms.iter().flat_map(RetherTerms::values)))
    };
    Some((standing.offer(&share), terms.and_then(of).unwrap_or_default()))
}
