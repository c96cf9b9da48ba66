//! R4: cycle k+1 of a strict ring begins at c_k + TRT, later by no more than one frame in front of the token
//! on the master's own link, the Form that goes before a token which is sent again, two frames of a babbler,
//! and one frame for each slot whose units leave at all ports (decision 014). Ordinary traffic that left the
//! token no way home would make it later (A1). Nor do such delays add up: by the master's own clock no later
//! cycle is further behind than the next one may be.

use super::{Checker, Findings, Seen, View};
use rota_units::{Instant, Span};
use rota_wire::bodies::FORM_MEMBERS_MAX;
use rota_wire::{Form, FrameView, Kind, LINK_HEADER_OCTETS, MacAddr, TAG_OCTETS, Token};

/// A cycle of a strict ring: by whom it was begun, which it is, and when.
#[derive(Clone, Copy, Debug)]
struct Begun {
    host: usize,
    cycle: u32,
    at: Instant,
    /// The same by the master's clock.
    by_clock: Instant,
}

/// The newest cycle that was begun, and the first of those that nothing has disturbed since.
#[derive(Debug, Default)]
pub struct Cycles {
    last: Option<Begun>,
    first: Option<Begun>,
    flooded: Flooded,
}

/// The slots of this cycle whose units leave at all ports of a switch. The token behind such a slot waits at
/// its own port for the slot's last frame.
#[derive(Debug, Default)]
struct Flooded {
    /// From which host to which address the last such unit went.
    last: Option<(usize, MacAddr)>,
    slots: u64,
}

impl Flooded {
    fn sent(&mut self, host: usize, frame: &[u8]) {
        let Some(to) = frame.first_chunk().map(|to| MacAddr(*to)) else { return };
        let slot = (to.0[0] & 1 == 1).then_some((host, to));
        self.slots += u64::from(slot.is_some() && slot != self.last);
        self.last = slot;
    }
}

impl Checker for Cycles {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        for seen in view.seen {
            let Seen::Sent { host, frame, kind, .. } = seen else { continue };
            if *kind == Some(Kind::Data) {
                self.flooded.sent(*host, frame);
            }
            if *kind != Some(Kind::List) {
                continue;
            }
            let flooded = std::mem::take(&mut self.flooded).slots;
            let Ok(frame) = FrameView::parse(frame, view.settings.ether_type) else { continue };
            let Ok(list) = Token::parse(frame.body()) else { continue };
            let by_clock = view.hosts[*host].clock.read(view.now);
            let begun = Begun { host: *host, cycle: list.cycle, at: view.now, by_clock };
            let now = list.slots.is_strict().then_some(begun);
            let last = std::mem::replace(&mut self.last, now);
            let first = std::mem::replace(&mut self.first, now);
            let (Some(last), Some(first), Some(now)) = (last, first, now) else { continue };
            if last.host != *host || last.cycle.wrapping_add(1) != list.cycle {
                continue;
            }
            let trt = Span::from_nanos(list.trt_ns.into());
            // A babbler's frame stands in front of the token on its own link and on the master's; one that
            // fills the links leaves no cycle.
            let burden = view.windows.burden_of(last.at, view.now);
            let frame = view.settings.link.frame_span_max();
            let late = undisturbed(view, *host) + burden.min(frame * 2) + frame * flooded;
            let is_excused = view.windows.excuse(last.at, view.now, usize::MAX, usize::MAX);
            if burden >= trt || is_excused {
                continue;
            }
            self.first = Some(first);
            let lasted = now.at.since(last.at);
            if lasted > trt + trt.div_down(1_000) + late {
                let cycle = last.cycle;
                findings.add(view.now, "R4", format!("cycle {cycle} of host {host} lasted {lasted}"));
            }
            let cycles = now.cycle.wrapping_sub(first.cycle);
            let behind = now.by_clock.since(first.by_clock + trt * u64::from(cycles));
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
    let slack = if view.hosts[host].profile.is_ideal() { Span::ZERO } else { link.host_slack };
    let members = view.hosts.len().min(FORM_MEMBERS_MAX);
    let form = (LINK_HEADER_OCTETS + Form::octets_for(members) + TAG_OCTETS) as u64;
    link.frame_span_max() + link.frame_span_up(form) + slack
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeds 692264 and 730194 of the product's timers: the master's cycle was late by a frame that had left
    /// at all ports, and the rule did not reckon with it.
    #[test]
    fn consecutive_units_to_one_group_address_are_one_flooded_slot() {
        let mut flooded = Flooded::default();
        let mut sent = |host, to: u8, unit| {
            flooded.sent(host, &[to, 0, 0, 0, 0, unit, 0]);
            flooded.slots
        };
        assert_eq!((sent(0, 2, 1), sent(0, 3, 1), sent(0, 3, 1)), (0, 1, 1), "own address, group, group");
        assert_eq!((sent(1, 3, 1), sent(1, 3, 2), sent(1, 2, 2), sent(1, 3, 2)), (2, 3, 3, 4));
    }
}
