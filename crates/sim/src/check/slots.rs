//! R4: a holder sends no more real-time traffic than its slots hold. R3: a slot is as long as the unit for
//! which it was admitted.

use super::{Checker, Findings, Seen, View};
use crate::media::Frame;
use crate::world::FlowState;
use rota_admission::Pace;
use rota_units::{Octets, Span};
use rota_wire::{ETHERNET_HEADER_OCTETS, FrameView, Generation, Kind, Token};

/// A boot, and the token's name: where all have forgotten everything, generations begin anew.
type Visit = (u32, Generation, u64);

/// What each station has sent under the token's present name.
#[derive(Debug, Default)]
pub struct Slots {
    sent: Vec<(Visit, Span)>,
    /// What each had reserved before the present event, in which it may have closed a slot.
    reserved: Vec<Span>,
}

impl Checker for Slots {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        self.sent.resize(view.stations.places(), Default::default());
        self.reserved.resize(view.stations.places(), Span::ZERO);
        for seen in view.seen {
            match seen {
                Seen::Sent { host, frame, kind: Some(Kind::Data), .. } => {
                    self.count(view, *host, frame, findings)
                }
                Seen::Sent { host, frame, kind: Some(Kind::List), .. } => self.note_list(view, *host, frame),
                Seen::Flow { flow, state: FlowState::Open } => check_length(view, *flow, findings),
                _ => {}
            }
        }
        view.acted().for_each(|host| self.reserved[host] = own_slots(view, host).sum());
    }
}

/// The slots of a host in its newest list.
fn own_slots<'a>(view: &'a View<'_>, host: usize) -> impl Iterator<Item = Span> + 'a {
    let rether = view.at(host).rether();
    let station = rether.map_or(0, |rether| rether.station());
    let slots = rether.and_then(|rether| rether.list()).map_or(&[][..], |list| list.slots.as_slice());
    slots.iter().filter(move |slot| slot.station == station).map(|slot| Span::from_nanos(slot.tht_ns.into()))
}

impl Slots {
    /// A cycle master may grow a slot, use it and end its ring in one event: its list tells the slot.
    fn note_list(&mut self, view: &View<'_>, host: usize, frame: &Frame) {
        let Ok(frame) = FrameView::parse(frame, view.settings.ether_type) else { return };
        let (station, Ok(list)) = (frame.header().source, Token::parse(frame.body())) else { return };
        let own = list.slots.as_slice().iter().filter(|slot| slot.station == station);
        let reserved: Span = own.map(|slot| Span::from_nanos(slot.tht_ns.into())).sum();
        self.reserved[host] = self.reserved[host].max(reserved);
    }

    fn count(&mut self, view: &View<'_>, host: usize, frame: &Frame, findings: &mut Findings) {
        let Ok(parsed) = FrameView::parse(frame, view.settings.ether_type) else { return };
        let stamp = (view.at(host).boots, parsed.header().generation, parsed.header().seq);
        let (known, sent) = &mut self.sent[host];
        if *known != stamp {
            (*known, *sent) = (stamp, Span::ZERO);
        }
        *sent += view.settings.link.frame_span_up((frame.len() - ETHERNET_HEADER_OCTETS) as u64);
        let reserved = own_slots(view, host).sum::<Span>().max(self.reserved[host]);
        if *sent > reserved && reserved > Span::ZERO {
            let what = format!("host {host} sent {sent} of units in one cycle; {reserved} are reserved");
            findings.add(view.now, "R4", what);
        }
    }
}

fn check_length(view: &View<'_>, flow: usize, findings: &mut Findings) {
    let (from, granted) = (view.flows[flow].from, &view.flows[flow].granted);
    let (link, unit) = (&view.settings.link, Octets::new(granted.contract.unit_octets_max.into()));
    // What of its units leaves in one cycle.
    let pace = Pace::of(granted.period(), granted.cycle()).unwrap_or(Pace::EVERY_CYCLE);
    let needed = link.unit_span_joined_up(pace.share(unit, &link.framing)) * pace.units();
    if !own_slots(view, from).any(|slot| slot >= needed) {
        let what = format!("no slot of host {from} holds the {needed} of a unit of flow {flow}");
        findings.add(view.now, "R3", what);
    }
}
