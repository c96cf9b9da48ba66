//! The certificate of an open channel: put together from what the nodes of its way have stated (`TENET-R16`).
//! `rota check` reads it, and has a checker look at it that shares no code with the tests of the nodes.

mod document;
mod parts;

use crate::session::{LOCAL_TIMEOUT, Session, unexpected};
use crate::{ChannelDetail, HopInfo, NodeError, NodeId, TermsInfo};
pub use document::write;
use parts::{Memory, part};
pub use parts::{read_port, share_in_words};
use rota_admission::Clocks;
use rota_admission::certificate::{Branch, Life, NoCertificate, PromiseTerms, Terms, certify};
use rota_admission::path::{self, Goal, Hop};
use rota_admission::rtip::{Messages, Packets, Regulator};
use rota_contract::{ChannelId, Class, Statistical};
use rota_shm::control::{Reply, Request};
use rota_units::{Octets, Span};
use serde_json::Value;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// The node did not answer, or has no such channel.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The channel has none, for this reason.
    #[error("channel {0} has no certificate: {1}")]
    None(ChannelId, String),
    /// The channel has ended.
    #[error("{0} has ended, and its certificate with it")]
    Ended(String),
}

/// The certificate of a channel that the node of this session sends, as text.
pub(crate) fn of_channel(session: &Session, channel: ChannelId) -> Result<String, CertificateError> {
    match session.request(&Request::Show { channel }, LOCAL_TIMEOUT)?.body {
        Reply::Channel(detail) => match document(&detail) {
            Ok(document) => Ok(format!("{document:#}")),
            Err(why) => Err(CertificateError::None(channel, why)),
        },
        Reply::Ended(end) => Err(CertificateError::Ended(end.called)),
        other => Err(unexpected(other).into()),
    }
}

/// The promise to a channel, and how it adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The packets of its units.
    pub packets: Packets,
    /// The part of the sending host: the spread of a unit's packets, and its own slack.
    pub host: Span,
    /// D: the bound of a unit's delay.
    pub delay: Span,
    /// J: the bound of its jitter.
    pub jitter: Span,
}

/// How the hops of a channel add up; `None` where the way is not known here.
pub fn sum(detail: &ChannelDetail) -> Option<Sum> {
    let terms = terms_of(detail.terms.as_ref()?);
    let hops = hops_of(&detail.hops)?;
    let packets = terms.messages.packets(terms.packet_max).ok().filter(|_| !hops.is_empty())?;
    let host = packets.spread + terms.host_slack;
    Some(Sum {
        packets,
        host,
        delay: path::delay(&hops, host, terms.clocks),
        jitter: path::jitter(&hops, host, terms.clocks),
    })
}

/// The certificate of a channel as a document.
///
/// # Errors
/// Why there is none, in a sentence.
pub fn document(detail: &ChannelDetail) -> Result<Value, String> {
    let unknown =
        || "the way of the channel is known at its sender's station only, once it is open".to_owned();
    if let Some(withdrawn) = detail.info.contract.withdrawn {
        return Err(withdrawn.to_string());
    }
    let by_chance = |of: Statistical| of.class == Class::Statistical;
    if detail.info.contract.statistical.is_some_and(by_chance) {
        return Err(
            "the promise of a statistical channel rests on independent sources, which no number shows; \
                    a channel that each hop guarantees has one"
                .to_owned(),
        );
    }
    if let Some(group) = detail.info.contract.group {
        return Err(format!("its bound holds while {}, which no number shows", group.words()));
    }
    let terms = detail.terms.as_ref().ok_or_else(unknown)?;
    let ways = match detail.receivers.is_empty() {
        true => Ways::of([(&detail.hops[..], None)].into_iter()),
        false => {
            let receive = detail.receivers.iter().filter(|receiver| receiver.state == "in");
            Ways::of(receive.map(|receiver| (&receiver.hops[..], Some(receiver.node_id))))
        }
    };
    of_ways(terms, &ways.filter(|ways| !ways.all.is_empty()).ok_or_else(unknown)?)
}

/// The ways of a channel to those that receive it, as their nodes told of them and as the tests have them.
struct Ways<'d> {
    /// Each hop once, behind the one before it.
    told: Vec<&'d HopInfo>,
    /// To each receiver: its hops, and the places of them.
    all: Vec<(Vec<Hop>, Vec<usize>)>,
}

impl<'d> Ways<'d> {
    /// Of the hops to each receiver, with its node where there are several. `None` where a way is not known.
    /// Ways share a hop where they have shared all before it and go to the same next node: nodes have one
    /// reservation there.
    fn of(ways: impl Iterator<Item = (&'d [HopInfo], Option<NodeId>)>) -> Option<Self> {
        let (mut known, mut told, mut all) = (Vec::new(), Vec::<&HopInfo>::new(), Vec::new());
        for (hops, receiver) in ways {
            let mut places = Vec::new();
            for (n, hop) in hops.iter().enumerate() {
                let next = hops.get(n + 1).map(|next| next.node_id).or(receiver);
                let key = (places.last().copied(), hop.node_id, hop.port, next);
                let at = known.iter().position(|of| *of == key).unwrap_or_else(|| {
                    known.push(key);
                    told.push(hop);
                    known.len() - 1
                });
                // The node of a reservation states it to the first receiver.
                if told[at].part.is_empty() {
                    told[at] = hop;
                }
                places.push(at);
            }
            all.push((hops_of(hops).filter(|hops| !hops.is_empty())?, places));
        }
        Some(Self { told, all })
    }
}

/// The certificate of these terms over this way.
///
/// # Errors
/// As [`document`].
pub fn of_way(terms: &TermsInfo, hops: &[HopInfo]) -> Result<Value, String> {
    of_ways(terms, &Ways::of([(hops, None)].into_iter()).ok_or("a hop has no regulator")?)
}

/// The certificate of these terms over these ways.
fn of_ways(terms: &TermsInfo, Ways { told, all }: &Ways<'_>) -> Result<Value, String> {
    let terms = terms_of(terms);
    let mut memory: Vec<Memory> = told.iter().map(|_| Memory::default()).collect();
    let parts = told.iter().zip(&mut memory).enumerate().map(|(n, (hop, memory))| {
        part(hop, memory).map_err(|why| format!("hop {} has no part: {} {why}", n + 1, called(hop)))
    });
    let mut parts = parts.collect::<Result<Vec<_>, _>>()?;
    let branches: Vec<Branch<'_>> = all.iter().map(|(hops, places)| Branch { hops, places }).collect();
    let mut promises = vec![PromiseTerms::default(); branches.len()];
    let made = certify(&terms, &branches, &mut parts, &mut promises).map_err(|why| match why {
        NoCertificate::Traffic(bad) => bad.to_string(),
        NoCertificate::Path(denied) => denied.to_string(),
    })?;
    let short = told.iter().zip(made.hops).find(|(told, made)| told.buffers < made.node.buffers);
    if let (Some((told, made)), true) = (short, told.len() > 1) {
        let (node, has, needs) = (called(told), told.buffers, made.node.buffers);
        return Err(format!("{node} has room for {has} packets of the channel, and would need {needs}"));
    }
    Ok(write(&made))
}

/// The request as the tests have it.
pub fn terms_of(told: &TermsInfo) -> Terms {
    let span = Span::from_nanos;
    Terms {
        messages: Messages {
            x_min: span(told.x_min_ns),
            x_ave: span(told.x_ave_ns),
            interval: span(told.interval_ns),
            s_max: Octets::new(told.s_max_octets),
        },
        goal: Goal {
            delay: span(told.delay_max_ns),
            jitter: (told.jitter_max_ns > 0).then(|| span(told.jitter_max_ns)),
        },
        packet_max: Octets::new(told.packet_max_octets),
        octets_least: Octets::new(told.packet_least_octets),
        host_slack: span(told.host_slack_ns),
        clocks: Clocks::of(told.clocks_ppm).unwrap_or(Clocks::APART),
        life: Life { from: span(told.begins_ns), until: (told.ends_ns > 0).then(|| span(told.ends_ns)) },
    }
}

fn hops_of(told: &[HopInfo]) -> Option<Vec<Hop>> {
    let span = Span::from_nanos;
    let hop = |told: &HopInfo| {
        let regulator = match &*told.regulator {
            "none" => Regulator::None,
            "rate" => Regulator::Rate,
            "delay-ahead" => Regulator::DelayAhead { step: span(told.error_ns) },
            "delay-clock" => Regulator::DelayClock { error: span(told.error_ns) },
            _ => return None,
        };
        Some(Hop {
            delay: span(told.bound_ns),
            service_least: span(told.service_least_ns),
            link_least: span(told.link_least_ns),
            link_most: span(told.link_most_ns),
            regulator,
        })
    };
    told.iter().map(hop).collect()
}

fn called(hop: &HopInfo) -> String {
    if hop.node.is_empty() { format!("node {}", hop.node_id) } else { format!("node {}", hop.node) }
}
