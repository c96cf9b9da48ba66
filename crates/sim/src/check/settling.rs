//! S9, S5, L3, L4, L5: what is not yet so again when a fault is over must become so in time. Each is looked
//! for twice in a cycle, and its time runs only outside the windows: a fault that is still being recovered
//! from begins it anew. `quiet` asks for all of it once more in the end, where nothing changes any more.

use super::{Checker, Findings, View};
use crate::hosts::Station;
use crate::world::{Flow, FlowState};
use rota_proto::rether::Rether;
use rota_proto::{HOLD_OFF_MAX, ModeName};
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
        let stretch = 1 + view.stations.count() as u64 / 16;
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
    view.recovery.settled(view.stations.count() as u64, rule == MODE || rule == LEFT_OUT)
}

/// The stations that take part: their processes run, and their settings are everybody's.
fn running<'a>(view: &'a View<'_>) -> impl Iterator<Item = (usize, Station<'a>, &'a Rether)> + Clone {
    let stations = view.stations.iter().filter(|(at, _)| is_there(view, *at));
    stations.filter_map(|(at, station)| Some((at, station, station.rether()?)))
}

/// What is not so, by the order of `RULES`. Nobody is held off for longer than allowed since `clear`, when
/// the last reason for it was over.
fn wrong(view: &View<'_>, clear: Instant) -> [Option<Wrong>; RULES.len()] {
    let mut wrong: [Option<Wrong>; RULES.len()] = Default::default();
    let places: BTreeMap<_, _> = view.stations.iter().map(|(at, station)| (station.card.mac.0, at)).collect();
    let may_be = view.now < clear + HOLD_OFF_MAX;
    let is_held_off =
        |mac| may_be && running(view).any(|(_, host, link)| link.is_held_off(host.clock.read(view.now), mac));
    let mut held_off = vec![false; view.stations.places()];
    view.stations.iter().for_each(|(at, station)| held_off[at] = is_held_off(station.card.mac));
    let ring = |link: &Rether| link.mode() == ModeName::Token;
    let rings = running(view).any(|(_, _, link)| ring(link));
    let plain = running(view).any(|(_, _, link)| link.mode() == ModeName::Plain);
    let lost = |link: &Rether| matches!(link.mode(), ModeName::Joining | ModeName::Switching);
    if rings && plain {
        wrong[MODE] = now_wrong("some run a ring and others plain Ethernet".to_owned());
    } else if let Some((at, ..)) = running(view).find(|(at, _, link)| lost(link) && !held_off[*at]) {
        wrong[MODE] = now_wrong(format!("host {at} is in neither mode"));
    }
    let asked = |flow: &&Flow| flow.state == FlowState::Asked && is_there(view, flow.from);
    if let Some(flow) = view.own_flows().filter(asked).min_by_key(|flow| flow.since) {
        let what = format!("a request of host {} has no answer", flow.from);
        wrong[MODE].get_or_insert(Wrong { what, since: Some(flow.since) });
    }
    let mut lists = running(view).filter_map(|(_, _, link)| Some(link.list()?.slots.as_slice()));
    if let Some(first) = lists.next()
        && lists.any(|list| list != first)
    {
        wrong[LISTS] = now_wrong("stations list other reservations".to_owned());
    }
    for (at, _, link) in running(view) {
        let mut known = 0;
        for member in link.members().iter().filter(|member| member.station != 0) {
            let Some(other) = places.get(&member.mac.0).copied() else { continue };
            let dead = link.is_dead(member.station);
            if view.at(other).rether().is_none() && !dead && ring(link) {
                wrong[DEAD_LISTED] =
                    now_wrong(format!("host {at} still counts on host {other}, which is dead"));
            }
            known += usize::from(is_there(view, other) && !held_off[other] && !(dead && ring(link)));
        }
        let others = running(view).filter(|(other, ..)| *other != at && !held_off[*other]).count();
        if known < others && !lost(link) && !held_off[at] {
            wrong[LEFT_OUT] = now_wrong(format!("host {at} knows {known} of {others} others that run"));
        }
        if link.list().is_some_and(|list| list.slots.as_slice().is_empty()) {
            wrong[EMPTY_RING] = now_wrong(format!("host {at} runs a ring without a reservation"));
        }
    }
    wrong
}

fn is_there(view: &View<'_>, host: usize) -> bool {
    view.at(host).card.settings.is_none() && view.at(host).is_running(view.now)
}
