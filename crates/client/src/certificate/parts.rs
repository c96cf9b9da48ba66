//! The part of one hop, as its node has stated it.

use crate::HopInfo;
use rota_admission::certificate::{
    FlowTerms, FrameTerms, HopTerms, Life, NetworkTerms, NodeTerms, PortPart, RetherTerms, SlotsTerms,
    Standing, port_terms,
};
use rota_admission::rtip::Flow;
use rota_units::Span;

/// The flows of a port, as their test and the certificate have them.
#[derive(Default)]
pub(super) struct Memory {
    flows: Vec<Flow>,
    terms: Vec<FlowTerms>,
    shares: Vec<RetherTerms>,
}

/// The part of a hop, or why there is none.
pub(super) fn part<'m>(hop: &HopInfo, memory: &'m mut Memory) -> Result<HopTerms<'m>, String> {
    let (frame, network) = match &*hop.medium {
        "rether" => {
            let (frame, shares) = share_of(hop).ok_or("states none for its share")?;
            memory.shares = shares;
            (frame, NetworkTerms::Rether(&memory.shares))
        }
        "link" => match slots_of(hop) {
            Some((frame, slots)) => (frame, NetworkTerms::Slots(slots)),
            None => port_of(hop, memory)?,
        },
        other => return Err(format!("states none for a {other}")),
    };
    Ok(HopTerms { node: NodeTerms::default(), frame, network })
}

/// The slots of a share, one behind another.
fn share_of(hop: &HopInfo) -> Option<(FrameTerms, Vec<RetherTerms>)> {
    let (frame, slots) = hop.part.split_at_checked(FrameTerms::NAMES.len())?;
    let frame = FrameTerms::read(&mut frame.iter().copied())?;
    let slots = slots.chunks(RetherTerms::NAMES.len());
    let slots: Option<Vec<_>> = slots.map(|slot| RetherTerms::read(&mut slot.iter().copied())).collect();
    slots.filter(|slots| !slots.is_empty()).map(|slots| (frame, slots))
}

/// The slots of a link: its node states them behind the number of its flows, which is none.
fn slots_of(hop: &HopInfo) -> Option<(FrameTerms, SlotsTerms)> {
    let mut numbers = hop.part.iter().copied();
    let no_flow = numbers.next()? == 0;
    let (frame, slots) = FrameTerms::read(&mut numbers).zip(SlotsTerms::read(&mut numbers))?;
    (no_flow && numbers.next().is_none()).then_some((frame, slots))
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
    let of_ring = || {
        let (_, slots) = share_of(hop)?;
        let (first, time) = (slots[0], slots.iter().map(|slot| slot.tht).fold(0, u64::saturating_add));
        Some((first.units, first.cycles, first.trt, time, "cycle"))
    };
    let of_link = || {
        let (_, slots) = slots_of(hop)?;
        Some((slots.units, slots.cycles, slots.window, slots.slot, "window"))
    };
    let share = match &*hop.medium {
        "rether" => of_ring(),
        "link" => of_link(),
        _ => None,
    };
    let Some((units, cycles, every, time, name)) = share else { return "-".into() };
    let span = Span::from_nanos;
    let units = if units == 1 { "1 packet".into() } else { format!("{units} packets") };
    let cycles = match cycles {
        1 => format!("each {}", span(every)),
        many => format!("{many} {name}s of {}", span(every)),
    };
    format!("{units} in {cycles}, {} a {name}", span(time))
}
