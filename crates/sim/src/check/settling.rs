//! S9, S5, L3, L4, L5: what is not yet so again when a fault is over must become so in time. Each is looked
//! for twice in a cycle, and its time runs only outside the windows: a fault that is still being recovered
//! from begins it anew. `quiet` asks for all of it once more in the end, where nothing changes any more.

use super::{Checker, Findings, View};
use crate::hosts::Host;
use crate::world::{Flow, FlowState};
use rota_proto::{HOLD_OFF_MAX, ModeName, Node};
use rota_units::{Instant, Span};
use std::collections::BTreeMap;

const RULES: [&str; 5] = ["S9", "S5", "L3", "L4", "L5"];
const MODE: usize = 0;
const LISTS: usize = 1;
const DEAD_LISTED: usize = 2;
const LEFT_OUT: usize = 3;
const EMPTY_RING: usize = 4;

/// A request to a station that does not answer is repeated 25 times, every 200 ms.
const REQUEST: Span = Span::from_millis(26 * 200);

/// Watches what has to settle.
#[derive(Debug, Default)]
pub struct Settling {
    /// Since when each is not so, by the order of `RULES`.
    since: [Option<Instant>; RULES.len()],
    next: Instant,
    /// The longest that each took.
    pub worst: [Span; RULES.len()],
    /// When a window was last open.
    clear: Instant,
    told: [bool; RULES.len()],
}

impl Checker for Settling {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        if view.now < self.next {
            return;
        }
        // A large segment costs more to look at, and takes longer to settle.
        let stretch = 1 + view.hosts.len() as u64 / 16;
        self.next = view.now + view.settings.trt.div_down(2) * stretch;
        if view.windows.cover(view.now) {
            (self.since, self.clear) = (Default::default(), view.now);
            return;
        }
        let wrong = wrong(view, self.clear);
        for (at, wrong) in wrong.into_iter().enumerate() {
            let Some(wrong) = wrong else {
                self.since[at] = None;
                continue;
            };
            let (since, more) = match wrong.since {
                Some(since) => (since.max(self.clear), REQUEST),
                None => (*self.since[at].get_or_insert(view.now), Span::ZERO),
            };
            let (took, bound) = (view.now.since(since), bound(view, at) + more);
            self.worst[at] = self.worst[at].max(took);
            if took > bound && !self.told[at] {
                self.told[at] = true;
                let what = format!("{}, {took} after everything was over; bound {bound}", wrong.what);
                findings.add(view.now, RULES[at], what);
            }
        }
    }
}

/// Something that is not so, and since when where that is known.
#[derive(Clone, Debug)]
struct Wrong {
    what: String,
    since: Option<Instant>,
}

fn now_wrong(what: String) -> Option<Wrong> {
    Some(Wrong { what, since: None })
}

/// How long each may take when nothing goes wrong any more.
fn bound(view: &View<'_>, rule: usize) -> Span {
    view.recovery.settled(view.hosts.len() as u64, rule == MODE || rule == LEFT_OUT)
}

/// The stations that take part: their processes run, and their settings are everybody's.
fn running<'a>(view: &'a View<'_>) -> impl Iterator<Item = (usize, &'a Host, &'a Node)> + Clone {
    let hosts = view.hosts.iter().enumerate().filter(|(at, _)| is_there(view, *at));
    hosts.filter_map(|(at, host)| Some((at, host, host.node.as_ref()?)))
}

/// What is not so, by the order of `RULES`. Nobody is held off for longer than allowed since `clear`, when
/// the last reason for it was over.
fn wrong(view: &View<'_>, clear: Instant) -> [Option<Wrong>; RULES.len()] {
    let mut wrong: [Option<Wrong>; RULES.len()] = Default::default();
    let places: BTreeMap<_, _> = view.hosts.iter().enumerate().map(|(at, host)| (host.mac.0, at)).collect();
    let may_be = view.now < clear + HOLD_OFF_MAX;
    let is_held_off = |mac| {
        may_be && running(view).any(|(_, host, node)| node.link().is_held_off(host.clock.read(view.now), mac))
    };
    let held_off: Vec<bool> = view.hosts.iter().map(|host| is_held_off(host.mac)).collect();
    let ring = |node: &Node| node.link().mode() == ModeName::Token;
    let rings = running(view).any(|(_, _, node)| ring(node));
    let plain = running(view).any(|(_, _, node)| node.link().mode() == ModeName::Plain);
    let lost = |node: &Node| matches!(node.link().mode(), ModeName::Joining | ModeName::Switching);
    if rings && plain {
        wrong[MODE] = now_wrong("some run a ring and others plain Ethernet".to_owned());
    } else if let Some((at, ..)) = running(view).find(|(at, _, node)| lost(node) && !held_off[*at]) {
        wrong[MODE] = now_wrong(format!("host {at} is in neither mode"));
    }
    let asked = |flow: &&Flow| flow.state == FlowState::Asked && is_there(view, flow.from);
    if let Some(flow) = view.flows.iter().filter(asked).min_by_key(|flow| flow.since) {
        let what = format!("a request of host {} has no answer", flow.from);
        wrong[MODE].get_or_insert(Wrong { what, since: Some(flow.since) });
    }
    let mut lists = running(view).filter_map(|(_, _, node)| Some(node.link().list()?.slots.as_slice()));
    if let Some(first) = lists.next()
        && lists.any(|list| list != first)
    {
        wrong[LISTS] = now_wrong("stations list other reservations".to_owned());
    }
    for (at, _, node) in running(view) {
        let link = node.link();
        let mut known = 0;
        for member in link.members().iter().filter(|member| member.station != 0) {
            let Some(other) = places.get(&member.mac.0).copied() else { continue };
            let dead = link.is_dead(member.station);
            if view.hosts[other].node.is_none() && !dead && ring(node) {
                wrong[DEAD_LISTED] =
                    now_wrong(format!("host {at} still counts on host {other}, which is dead"));
            }
            known += usize::from(is_there(view, other) && !held_off[other] && !(dead && ring(node)));
        }
        let others = running(view).filter(|(other, ..)| *other != at && !held_off[*other]).count();
        if known < others && !lost(node) && !held_off[at] {
            wrong[LEFT_OUT] = now_wrong(format!("host {at} knows {known} of {others} others that run"));
        }
        if link.list().is_some_and(|list| list.slots.as_slice().is_empty()) {
            wrong[EMPTY_RING] = now_wrong(format!("host {at} runs a ring without a reservation"));
        }
    }
    wrong
}

fn is_there(view: &View<'_>, host: usize) -> bool {
    view.hosts[host].settings.is_none() && view.hosts[host].is_running(view.now)
}
