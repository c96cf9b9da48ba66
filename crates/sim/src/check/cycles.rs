//! R4: cycle k+1 of a strict ring begins at c_k + TRT, later by no more than one frame in front of the token
//! on the master's own link, the Form that goes before a token which is sent again, two frames of a babbler,
//! and one frame for each slot whose units leave at all ports (decision 014). Ordinary traffic that left the
//! token no way home would make it later (A1). Nor do such delays add up, but for those of slots where a
//! cycle has no time to make up for them: by the master's own clock no later cycle is further behind than
//! the next one may be.

use super::{Checker, Findings, Seen, View};
use rota_units::{Instant, Span};
use rota_wire::bodies::FORM_MEMBERS_MAX;
use rota_wire::{Form, FrameView, Kind, LINK_HEADER_OCTETS, TAG_OCTETS, Token};

/// A cycle of a strict ring: by whom it was begun, which it is, and when.
#[derive(Clone, Copy, Debug)]
struct Begun {
    host: usize,
    cycle: u32,
    at: Instant,
    /// The same by the master's clock.
    by_clock: Instant,
    /// The slots of its list.
    reserved: Span,
}

/// The newest cycle that was begun, and the first of those that nothing has disturbed since.
#[derive(Debug, Default)]
pub struct Cycles {
    last: Option<Begun>,
    first: Option<Begun>,
    /// How late the newest cycle may have begun because of slots that take longer than they are charged.
    late: Span,
}

impl Checker for Cycles {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        for seen in view.seen {
            let Seen::Sent { host, frame, kind, .. } = seen else { continue };
            if *kind != Some(Kind::List) {
                continue;
            }
            let Ok(frame) = FrameView::parse(frame, view.settings.ether_type) else { continue };
            let Ok(list) = Token::parse(frame.body()) else { continue };
            let by_clock = view.at(*host).clock.read(view.now);
            let slots = list.slots.as_slice().iter();
            let reserved = slots.map(|slot| Span::from_nanos(slot.tht_ns.into())).sum();
            let begun = Begun { host: *host, cycle: list.cycle, at: view.now, by_clock, reserved };
            let now = list.slots.is_strict().then_some(begun);
            let last = std::mem::replace(&mut self.last, now);
            let first = std::mem::replace(&mut self.first, now);
            let late = std::mem::take(&mut self.late);
            let (Some(last), Some(first), Some(now)) = (last, first, now) else { continue };
            if last.host != *host || last.cycle.wrapping_add(1) != list.cycle {
                continue;
            }
            let trt = Span::from_nanos(list.trt_ns.into());
            // A babbler's frame stands in front of the token on its own link and on the master's; one that
            // fills the links leaves no cycle.
            let burden = view.windows.burden_of(last.at, view.now);
            let frame = view.settings.link.frame_span_max();
            // Lateness is made up for in the time of the cycle that is not reserved.
            let flooded = frame * view.windows.flooded_between(last.at, view.now);
            self.late = flooded + late.minus(trt.minus(last.reserved + frame));
            let late = undisturbed(view, *host) + burden.min(frame * 2);
            let is_excused = view.windows.excuse(last.at, view.now, usize::MAX, usize::MAX);
            if burden >= trt || is_excused {
                continue;
            }
            self.first = Some(first);
            let lasted = now.at.since(last.at);
            if lasted > trt + trt.div_down(1_000) + late + flooded {
                let cycle = last.cycle;
                findings.add(view.now, "R4", format!("cycle {cycle} of host {host} lasted {lasted}"));
            }
            let cycles = now.cycle.wrapping_sub(first.cycle);
            let behind = now.by_clock.since(first.by_clock + trt * u64::from(cycles));
            let late = late + self.late;
            if behind > late {
                self.first = Some(now);
                let what =
                    format!("host {host} is {behind} behind after {cycles} cycles; {late} is the bound");
                findings.add(view.now, "R4", what);
            }
        }
    }
}

/// The last ordinary frame may be on the master's own link, in front of the token; clocks are off by less
/// than a thousandth.
fn undisturbed(view: &View<'_>, host: usize) -> Span {
    let link = &view.settings.link;
    let slack = if view.at(host).profile.is_ideal() { Span::ZERO } else { link.host_slack };
    let members = view.stations.count().min(FORM_MEMBERS_MAX);
    let form = (LINK_HEADER_OCTETS + Form::octets_for(members) + TAG_OCTETS) as u64;
    link.frame_span_max() + link.frame_span_up(form) + slack
}
