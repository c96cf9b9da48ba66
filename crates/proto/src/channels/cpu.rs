//! The CPU of the two nodes of a channel of one segment: which channels work, and a receiver's refusal.
//!
//! The refusal says that admission refused, as a node without CPU admission hears it, too, and has the
//! numbers in fields that a refusal does not need.

use super::{Channels, Incoming, Sending, Tells, Want};
use crate::io::ChannelId;
use rota_contract::{CloseCause, NodeId};
use rota_units::{Octets, Span};
use rota_wire::{RcapDenied, RcapTest, Signal, Verb};

/// The tests that such a refusal can name; the place behind 0 is the code.
const TESTS: [RcapTest; 2] = [RcapTest::CpuUtilisation, RcapTest::CpuResponse];

impl Channels {
    /// This host hands the units of a channel that was asked for just now over within so long, which its
    /// bound contains.
    pub(crate) fn allow_host(&mut self, id: ChannelId, host: Span) {
        if let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) {
            channel.host = host;
        }
    }

    /// True while units of a channel may come or leave here.
    pub(crate) fn is_at_work(&self, id: ChannelId) -> bool {
        let is_over = |state| matches!(state, Sending::Closing(_) | Sending::Over);
        let mut outgoing = self.outgoing.iter();
        outgoing.any(|channel| channel.id == id && !is_over(channel.state))
            || self.incoming.iter().any(|channel| channel.id == id)
    }

    /// The largest unit and the period of a channel that waits to be accepted here.
    pub(crate) fn to_be_accepted(&self, id: ChannelId) -> Option<(Octets, Span)> {
        let channel = self.incoming.iter().find(|channel| channel.id == id && !channel.accepted)?;
        Some((Octets::new(channel.granted.contract.unit_octets_max.into()), channel.granted.period()))
    }

    /// Refuses a channel for which this node has no CPU.
    pub(crate) fn decline_cpu(&mut self, id: ChannelId, denied: &RcapDenied) {
        let declined = |channel: &Incoming| channel.id == id && !channel.opened;
        let Some(at) = self.incoming.iter().position(declined) else { return };
        let channel = &self.incoming[at];
        let code = TESTS.iter().position(|test| *test == denied.test).map_or(0, |at| at as u16 + 1);
        let refuse = Signal {
            code: CloseCause::Refused.code(),
            service: code,
            unit_octets_max: denied.nearest_octets,
            period_ns: u32::try_from(denied.nearest_x_min_ns).unwrap_or(0),
            bound_ns: denied.needed.into(),
            final_unit: denied.most.into(),
            ..Signal::new(Verb::Refuse, channel.remote, channel.label)
        };
        self.wants.push(Want::Signal { to: channel.hop, signal: refuse });
        self.end_incoming(at, CloseCause::Refused, None, Tells::Nobody);
    }
}

/// The refusal of a receiver's node that has no CPU.
pub(super) fn denied(signal: &Signal, node: NodeId) -> Option<RcapDenied> {
    let test = *TESTS.get(usize::from(signal.service).checked_sub(1)?)?;
    let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    (signal.code == CloseCause::Refused.code()).then(|| RcapDenied {
        needed: number(signal.bound_ns),
        most: number(signal.final_unit),
        nearest_octets: signal.unit_octets_max,
        nearest_x_min_ns: signal.period_ns.into(),
        ..RcapDenied::simply(node, test)
    })
}
