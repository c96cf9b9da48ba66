//! The certificate of an open channel: put together from what the nodes of its way have stated.

use super::document::{self, Document};
use rota::{ChannelDetail, HopInfo, NodeId, TermsInfo};
use rota_admission::certificate::{
    Branch, FlowTerms, FrameTerms, HopTerms, Life, NetworkTerms, NoCertificate, NodeTerms, PortPart,
    PromiseTerms, RetherTerms, Standing, Terms, certify, port_terms,
};
use rota_admission::path::{self, Goal, Hop};
use rota_admission::rtip::{Flow, Messages, Packets, Regulator};
use rota_admission::subnet::packet_span_up;
use rota_admission::{Clocks, LinkModel};
use rota_units::{Octets, Span};
use serde_json::Value;

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

/// The certificate as a document, once the independent checker has accepted it.
///
/// # Errors
/// Why there is none, in a sentence.
pub fn certificate(detail: &ChannelDetail) -> Result<Value, String> {
    let unknown =
        || "the way of the channel is known at its sender's station only, once it is open".to_owned();
    if let Some(withdrawn) = detail.info.contract.withdrawn {
        return Err(withdrawn.to_string());
    }
    if detail.info.contract.statistical.is_some() {
        return Err(
            "the promise of a statistical channel rests on independent sources, which no number shows; \
                    a channel of the guaranteed class has one"
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
    let document = document::write(&made);
    let read = Document::read(&document.to_string())?;
    read.check().map_err(|fault| format!("no checker would accept it: {fault}"))?;
    Ok(document)
}

fn terms_of(told: &TermsInfo) -> Terms {
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

/// The flows of a port, as their test and the certificate have them.
#[derive(Default)]
struct Memory {
    flows: Vec<Flow>,
    terms: Vec<FlowTerms>,
    share: [RetherTerms; 1],
}

/// The part of a hop, or why there is none.
fn part<'m>(hop: &HopInfo, memory: &'m mut Memory) -> Result<HopTerms<'m>, String> {
    let (frame, network) = match &*hop.medium {
        "rether" => {
            let why = "states none for a share that was changed or is in several slots";
            let (frame, share) = share_of(hop).ok_or(why)?;
            memory.share = [share];
            (frame, NetworkTerms::Rether(&memory.share))
        }
        "link" => port_of(hop, memory)?,
        other => return Err(format!("states none for a {other}")),
    };
    Ok(HopTerms { node: NodeTerms::default(), frame, network })
}

fn share_of(hop: &HopInfo) -> Option<(FrameTerms, RetherTerms)> {
    let mut numbers = hop.part.iter().copied();
    let (frame, share) = FrameTerms::read(&mut numbers).zip(RetherTerms::read(&mut numbers))?;
    numbers.next().is_none().then_some((frame, share))
}

/// The node states its port with all flows; their test is made here.
fn port_of<'m>(hop: &HopInfo, memory: &'m mut Memory) -> Result<(FrameTerms, NetworkTerms<'m>), String> {
    match hop.part[..] {
        [] => return Err("states none for its link; a node of an older version does so".into()),
        [0] => return Err("states none of a channel that is no flow of its link".into()),
        [flows] => return Err(format!("has a link with {flows} flows, more than a message has room for")),
        _ => {}
    }
    let unknown = || "states its link in a form that this program does not know";
    let (PortPart { frame, load, own }, flows) = read_port(&hop.part).ok_or_else(unknown)?;
    let link = frame.link().ok_or_else(unknown)?;
    let none = |of: &Standing| Flow { traffic: of.ask.traffic, service: Span::ZERO, delay: Span::ZERO };
    memory.flows = flows.iter().map(none).collect();
    memory.terms = vec![FlowTerms::default(); flows.len()];
    match port_terms(&link, &load, &flows, own, &mut memory.flows, &mut memory.terms) {
        Ok(network) => Ok((frame, network)),
        Err(denied) => Err(format!("states a link that fails its test: {denied}")),
    }
}

fn read_port(numbers: &[u64]) -> Option<(PortPart, Vec<Standing>)> {
    let (mut flows, mut lives) = (Vec::new(), Vec::new());
    let mut life = |place, life| lives.push((place, life));
    let part = PortPart::read(&mut numbers.iter().copied(), &mut |flow| flows.push(flow), &mut life)?;
    lives.into_iter().for_each(|(place, life): (usize, Life)| flows[place].life = life);
    Some((part, flows))
}

/// The share of a hop in words.
pub fn share_in_words(hop: &HopInfo) -> String {
    let read = if hop.medium == "rether" { share_of(hop) } else { None };
    let Some((_, share)) = read else { return "-".into() };
    let span = Span::from_nanos;
    let units = if share.units == 1 { "1 packet".into() } else { format!("{} packets", share.units) };
    let cycles = match share.cycles {
        1 => format!("each {}", span(share.trt)),
        many => format!("{many} cycles of {}", span(share.trt)),
    };
    format!("{units} in {cycles}, {} a cycle", span(share.tht))
}

/// Takes any octets as a node's part of a link. A part that is read can be written, and reads back as the
/// same; a certificate is made of it that the checker accepts, or there is a reason why not.
pub fn fuzz_link_part(data: &[u8]) {
    let Ok(terms) = rota_wire::RcapTerms::parse(data) else { return };
    let numbers: Vec<u64> = terms.numbers().collect();
    let Some((part, mut flows)) = read_port(&numbers) else { return };
    let Some(link) = part.frame.link() else { return };
    if let Err(why) = certify_part(numbers, &link, &flows[part.own]) {
        assert!(!why.is_empty(), "a reason has words");
    }
    let again = PortPart::of(&link, part.load, &mut flows, part.own);
    let mut numbers = Vec::new();
    again.write(&flows, &mut |number| numbers.push(number));
    assert_eq!(read_port(&numbers), Some((again, flows)), "what was written reads back");
}

/// The certificate of a channel of this link alone, whose flow is this one.
fn certify_part(part: Vec<u64>, link: &LinkModel, own: &Standing) -> Result<Value, String> {
    let Standing { ask, delay, life } = own;
    let (traffic, octets) = (ask.traffic, ask.octets.get());
    // Flows have their bound on the port: the node's own slack comes on top.
    let bound_ns = delay.as_nanos().saturating_add(link.host_slack.as_nanos());
    let terms = TermsInfo {
        x_min_ns: traffic.x_min().as_nanos(),
        x_ave_ns: traffic.interval().as_nanos() / traffic.burst().max(1),
        interval_ns: traffic.interval().as_nanos(),
        s_max_octets: octets,
        delay_max_ns: bound_ns.saturating_mul(2).saturating_add(1_000_000_000),
        packet_max_octets: octets,
        packet_least_octets: octets,
        begins_ns: life.from.as_nanos(),
        // Half of its life, so that what is sent has time behind it.
        ends_ns: life.until.map_or(0, |until| until.as_nanos() / 2),
        ..TermsInfo::default()
    };
    let hop = HopInfo {
        medium: "link".into(),
        regulator: "rate".into(),
        bound_ns,
        service_least_ns: packet_span_up(link.rate, &link.framing, ask.octets_least).as_nanos(),
        buffers: u64::MAX,
        part,
        ..HopInfo::default()
    };
    let told = [hop];
    of_ways(&terms, &Ways::of([(&told[..], None)].into_iter()).ok_or("no regulator")?)
}

#[cfg(test)]
mod tests;
