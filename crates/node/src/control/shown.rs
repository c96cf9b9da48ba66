//! One channel of this station, hop by hop, for a program that asks.

use super::list::info;
use super::{Control, no_channel, receivers};
use crate::session::{Asked, Owned};
use crate::status::Snapshot;
use rota_admission::rtip::Regulator;
use rota_contract::ChannelId;
use rota_driver::clock::now;
use rota_proto::ChannelDetail as Detail;
use rota_proto::rcap::Record;
use rota_shm::control::{ChannelDetail, DestinationInfo, HopInfo, Reply, TermsInfo};
use rota_units::{Instant, Span};
use rota_wire::RcapTerms;
use std::collections::BTreeSet;

/// Channels whose detail one copy of the state holds: each program asks for one at a time.
const SHOWN_MAX: usize = 32;

impl Control<'_> {
    /// The channels of which programs want the detail, by their numbers on this station.
    pub(super) fn to_be_shown(&self) -> Vec<ChannelId> {
        let asked = self.sessions.iter().flat_map(|session| &session.asked);
        let named = asked.filter_map(|question| match question.asked {
            Asked::Show { channel } => self.shown(channel).map(|owned| owned.channel),
            _ => None,
        });
        let named: BTreeSet<ChannelId> = named.take(SHOWN_MAX).collect();
        named.into_iter().collect()
    }

    fn shown(&self, named: ChannelId) -> Option<&Owned> {
        let mut all = self.sessions.iter().flat_map(|session| &session.channels);
        all.find(|owned| owned.shared == named)
    }

    /// The answer to a program that wants the detail of a channel.
    pub(super) fn detail(&self, snapshot: &Snapshot, named: ChannelId) -> Reply {
        let Some(owned) = self.shown(named) else {
            return match self.ended.end_of(now(), named) {
                Some(end) => Reply::Ended(end),
                None => Reply::NotThere { sentence: no_channel(named) },
            };
        };
        let detail = snapshot.details.iter().find(|(channel, _)| *channel == owned.channel);
        let detail = detail.map(|(_, detail)| detail);
        Reply::Channel(Box::new(ChannelDetail {
            info: info(owned, snapshot),
            terms: detail.map(terms),
            hops: detail.map_or(Vec::new(), |detail| detail.hops.iter().map(hop).collect()),
            receivers: detail.map_or(Vec::new(), |of| receivers::infos(&of.receivers)),
            destination: detail.and_then(|detail| detail.destination.as_ref()).map(destination),
        }))
    }
}

fn terms(detail: &Detail) -> TermsInfo {
    let terms = &detail.terms;
    TermsInfo {
        x_min_ns: terms.messages.x_min.as_nanos(),
        x_ave_ns: terms.messages.x_ave.as_nanos(),
        interval_ns: terms.messages.interval.as_nanos(),
        s_max_octets: terms.messages.s_max.get(),
        delay_max_ns: terms.goal.delay.as_nanos(),
        jitter_max_ns: terms.goal.jitter.map_or(0, Span::as_nanos),
        packet_max_octets: terms.packet_max.get(),
        packet_least_octets: terms.octets_least.get(),
        host_slack_ns: terms.host_slack.as_nanos(),
        clocks_ppm: terms.clocks.ppm(),
        partition: detail.partition,
        group: detail.group,
        begins_ns: terms.life.from.as_nanos(),
        ends_ns: terms.life.until.map_or(0, Span::as_nanos),
        starts_in_ns: detail.life.from.since(now()).as_nanos(),
        ends_in_ns: (detail.life.until < Instant::FAR).then(|| detail.life.until.since(now()).as_nanos()),
    }
}

pub(super) fn hop((record, name): &(Record, String)) -> HopInfo {
    let offer = &record.hop.offer;
    let part = RcapTerms::parse(&record.terms).map(|terms| terms.numbers().collect());
    HopInfo {
        node: name.clone(),
        node_id: record.node,
        port: record.port.0,
        medium: match record.hop.medium {
            1 => "rether",
            2 => "link",
            3 => "switch",
            4 => "tunnel",
            _ => "none",
        }
        .into(),
        regulator: match record.hop.regulator {
            Regulator::None => "none",
            Regulator::Rate => "rate",
            Regulator::DelayAhead { .. } => "delay-ahead",
            Regulator::DelayClock { .. } => "delay-clock",
        }
        .into(),
        error_ns: record.hop.regulator.error().as_nanos(),
        bound_ns: offer.delay.as_nanos(),
        late_ppb: (u128::from(record.hop.late.get()) * 1_000_000_000).div_ceil(1 << 63) as u64,
        service_least_ns: offer.service_least.as_nanos(),
        link_least_ns: offer.link_least.as_nanos(),
        link_most_ns: offer.link_most.as_nanos(),
        buffers: record.buffers,
        sent: record.counts.packets,
        dropped: record.counts.dropped,
        held: record.counts.held,
        partition_percent: record.hop.percent,
        part: part.unwrap_or_default(),
    }
}

fn destination((record, name): &(Record, String)) -> DestinationInfo {
    DestinationInfo {
        node: name.clone(),
        node_id: record.node,
        units: record.counts.packets,
        broken: record.counts.dropped,
    }
}
