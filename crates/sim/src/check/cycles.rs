//! R4: cycle k+1 of a strict ring begins at c_k + TRT, later by no more than one frame in front of the token
//! on the master's own link, the Form that goes before a token which is sent again, and two frames of a
//! babbler. Ordinary traffic that left the token no way home would make it later (A1).

use super::{Checker, Findings, Seen, View};
use rota_units::{Instant, Span};
use rota_wire::bodies::FORM_MEMBERS_MAX;
use rota_wire::{Form, FrameView, Kind, LINK_HEADER_OCTETS, TAG_OCTETS, Token};

/// The newest cycle that was begun: by whom, which, when, and of a strict ring.
#[derive(Debug, Default)]
pub struct Cycles {
    last: Option<(usize, u32, Instant)>,
}

impl Checker for Cycles {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        for seen in view.seen {
            let Seen::Sent { host, frame, kind: Some(Kind::List), .. } = seen else { continue };
            let Ok(frame) = FrameView::parse(frame, view.settings.ether_type) else { continue };
            let Ok(list) = Token::parse(frame.body()) else { continue };
            let now = list.slots.is_strict().then_some((*host, list.cycle, view.now));
            let last = std::mem::replace(&mut self.last, now);
            let (Some((master, cycle, began)), true) = (last, now.is_some()) else { continue };
            if master != *host || cycle.wrapping_add(1) != list.cycle {
                continue;
            }
            // The last ordinary frame may be on the master's own link, in front of the token; clocks are
            // off by less than a thousandth.
            let link = &view.settings.link;
            let slack = if view.hosts[*host].profile.is_ideal() { Span::ZERO } else { link.host_slack };
            let trt = Span::from_nanos(list.trt_ns.into());
            let members = view.hosts.len().min(FORM_MEMBERS_MAX);
            let form = (LINK_HEADER_OCTETS + Form::octets_for(members) + TAG_OCTETS) as u64;
            let bound = trt + trt.div_down(1_000) + link.frame_span_max() + link.frame_span_up(form) + slack;
            // A babbler's frame stands in front of the token on its own link and on the master's; one that
            // fills the links leaves no cycle.
            let burden = view.windows.burden_of(began, view.now);
            let bound = bound + burden.min(link.frame_span_max() * 2);
            if burden >= trt {
                continue;
            }
            let lasted = view.now.since(began);
            if lasted > bound && !view.windows.excuse(began, view.now, usize::MAX, usize::MAX) {
                findings.add(view.now, "R4", format!("cycle {cycle} of host {host} lasted {lasted}"));
            }
        }
    }
}
