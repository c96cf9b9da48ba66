//! Promises of the nodes of a way to a channel beside its delay: the jitter, and how much of a bound is
//! needed where a link's discipline serves the packets.

use super::{AcrossFlow, Manner, World};
use rota_admission::path::{self, Hop};
use rota_units::Span;

/// The code of a link in the records of a way.
const LINK: u8 = 2;

/// The shortest and the longest time of units on one way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spent {
    least: Span,
    most: Span,
}

impl World {
    /// The sender knows the way: from now on its units vary by no more than the nodes promise together.
    pub(super) fn learn_promise(&mut self, at: usize) {
        let AcrossFlow { spec, channel, .. } = &self.across.flows[at];
        let detail = self.hosts[spec.from].node.as_ref().and_then(|node| node.detail(*channel));
        let Some(detail) = detail else { return };
        let hop = |record: &rota_proto::rcap::Record| record.hop.offer.hop(record.hop.regulator);
        let is_link = |record: &rota_proto::rcap::Record| record.hop.medium == LINK;
        let link = |record: &rota_proto::rcap::Record| {
            let host = usize::try_from(record.node.0).ok()?.checked_sub(1)?;
            is_link(record).then_some((host, record.port))
        };
        let links: Vec<_> = detail.hops.iter().filter_map(|(record, _)| link(record)).collect();
        let hops: Vec<Hop> = detail.hops.iter().map(|(record, _)| hop(record)).collect();
        let host = |record: &rota_proto::rcap::Record| usize::try_from(record.node.0).ok()?.checked_sub(1);
        let way: Vec<usize> = detail.hops.iter().filter_map(|(record, _)| host(record)).collect();
        let terms = detail.terms;
        let Ok(packets) = terms.messages.packets(terms.packet_max) else { return };
        let flow = &mut self.across.flows[at];
        if flow.beside.tree.is_some() {
            // Its receivers have ways of their own.
            return;
        }
        flow.jitter = path::jitter(&hops, packets.spread + terms.host_slack, terms.clocks);
        flow.over_link = detail.hops.iter().any(|(record, _)| record.hop.medium == LINK);
        flow.spent = None;
        let (burst, octets) = (packets.traffic.burst(), packets.octets.get());
        let interval = terms.messages.interval.as_nanos().max(1);
        flow.beside.octets_a_second = burst.saturating_mul(octets).saturating_mul(1_000_000_000) / interval;
        (flow.beside.links, flow.beside.way) = (links, way);
        flow.beside.way.push(flow.spec.to);
    }

    /// T1: a whole unit of a conforming source that no fault met has taken so long.
    pub(super) fn judge_jitter(&mut self, at: usize, number: u64, took: Span) {
        let now = self.now();
        let flow = &mut self.across.flows[at];
        // A unit of the first time behind a change waits for those of the contract before.
        let eases = flow.beside.former.is_some_and(|former| now <= former.until + former.bound * 2);
        if matches!(flow.spec.manner, Manner::Hasty | Manner::Hurried) || flow.jitter == Span::ZERO || eases {
            return;
        }
        let before = flow.spent.unwrap_or(Spent { least: took, most: took });
        let spent = Spent { least: before.least.min(took), most: before.most.max(took) };
        let (varies, jitter) = (spent.most.minus(spent.least), flow.jitter);
        flow.spent = Some(spent);
        flow.counts.jitter_ppm = flow.counts.jitter_ppm.max(parts(varies, jitter));
        if varies > jitter {
            let what = format!(
                "unit {number} of channel {at} makes delays vary by {varies}; the promise is {jitter}"
            );
            self.broke("T1", what);
        }
    }
}

impl AcrossFlow {
    /// A unit that no fault met has used so much of its bound, and has come in so many packets.
    pub(super) fn count_use(&mut self, (took, bound): (Span, Span), packets: u64) {
        let used = parts(took, bound);
        self.counts.longest_ppm = self.counts.longest_ppm.max(used);
        if self.over_link {
            self.counts.link_ppm = self.counts.link_ppm.max(used);
            self.counts.link_packets += packets;
        }
    }
}

/// Millionths of a promise.
fn parts(took: Span, promised: Span) -> u64 {
    took.as_nanos().saturating_mul(1_000_000) / promised.as_nanos().max(1)
}
