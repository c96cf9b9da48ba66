//! The part of one hop, as its node has stated it.

use crate::HopInfo;
use rota_admission::certificate::{
    FlowTerms, FrameTerms, HopTerms, Life, NetworkTerms, NodeTerms, PortPart, RetherTerms, Standing,
    port_terms,
};
use rota_admission::rtip::Flow;
use rota_units::Span;

/// The flows of a port, as their test and the certificate have them.
#[derive(Default)]
pub(super) struct Memory {
    flows: Vec<Flow>,
    terms: Vec<FlowTerms>,
    share: [RetherTerms; 1],
}

/// The part of a hop, or why there is none.
pub(super) fn part<'m>(hop: &HopInfo, memory: &'m mut Memory) -> Result<HopTerms<'m>, String> {
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

/// The port of a link with its flows, as its node has written it; `None` for numbers that are none.
pub fn read_port(numbers: &[u64]) -> Option<(PortPart, Vec<Standing>)> {
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
