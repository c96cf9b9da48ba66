//! The bounds that admission computes for this very segment, held to: L2 (theory.md §4.2), how long a station
//! with ordinary frames waits from visit to visit; A5 (§5.1), how long the switch to token mode takes.

use super::{Checker, Findings, View};
use rota_admission::{NrtRing, SegmentParams};
use rota_proto::{ModeName, Port, Settings};
use rota_units::{Instant, Span};
use rota_wire::{Phase, Token};

/// The parameters of exactly `stations` stations, not of as many as admission was told to reckon with.
fn exactly(settings: &Settings, stations: u64) -> SegmentParams {
    let stations = u16::try_from(stations).unwrap_or(u16::MAX).max(2);
    SegmentParams { stations, ..settings.params(stations) }
}

/// Access by theory.md §4.2, with `reserved` in slots; `None` when ordinary traffic may starve.
///
/// From visit to visit, and before it two cycles until a resting ring is woken: a station asks at most once a
/// cycle, and what it may not ask at once it asks at the next list. A host may be late.
pub fn access(settings: &Settings, stations: u64, reserved: Span, strict: bool) -> Option<Span> {
    let params = exactly(settings, stations);
    NrtRing::new(&params, reserved, strict).worst_gap().map(|gap| gap + woken(&params))
}

fn woken(params: &SegmentParams) -> Span {
    params.trt * 2 + params.link.host_slack + params.transit()
}

/// T_switch of theory.md §5.1 with this segment's timers; Q is the queue of the initiator's own card.
pub fn switch(settings: &Settings, stations: u64) -> Span {
    let stations = u16::try_from(stations).unwrap_or(u16::MAX);
    let card = settings.link.rate.span_of_up(settings.port_queue);
    let tries = u64::from(settings.switch_tries) + 1;
    card + settings.switch_timeout(stations) * tries + settings.link.hop
}

/// A wait that has ended, or is overdue, is held to its bound.
fn late(view: &View<'_>, host: usize, ended: Option<(Wait, Span)>, what: &str, findings: &mut Findings) {
    let Some((Wait { bound, .. }, waited)) = ended.filter(|(wait, waited)| *waited > wait.bound) else {
        return;
    };
    findings.add(view.now, "L2", format!("host {host} waited {waited} for {what}; {bound} is the bound"));
}

/// The time that the slots of a cycle take more if units have left at all ports since the cycle before then.
fn flooded(view: &View<'_>, since: Instant, slots: usize) -> Span {
    let of_cycle = view.settings.link.frame_span_max() * u64::try_from(slots).unwrap_or(u64::MAX);
    let is_flooded = view.windows.flooded_between(since.minus(view.settings.trt), view.now) > 0;
    if is_flooded { of_cycle } else { Span::ZERO }
}

fn is_left_out(view: &View<'_>, station: u16) -> bool {
    view.stations.iter().filter_map(|(_, other)| other.rether()).any(|link| link.is_dead(station))
}

/// True during the first rotation after a switch. It carries no data, and its token waits behind all that the
/// ports of the switch still hold, as much as their whole queue (`Settings::port_queue`): no bound of §4.2
/// holds before it is over.
fn is_first_rotation(view: &View<'_>, list: &Token) -> bool {
    let lists = || view.stations.iter().filter_map(|(_, station)| station.rether()?.list());
    list.phase == Phase::First && lists().all(|list| list.phase == Phase::First)
}

/// What was measured beside those bounds, windows apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// The longest that a station waited from one ordinary visit to the next.
    pub access: Span,
    /// The bound of the wait that came nearest to its own.
    pub access_bound: Span,
    /// The longest switch from plain Ethernet to a circulating token.
    pub switch: Span,
    /// The bound of all switches.
    pub switch_bound: Span,
}

impl Measured {
    /// The worse of each.
    pub fn add(&mut self, other: &Self) {
        if other.access > self.access {
            (self.access, self.access_bound) = (other.access, other.access_bound);
        }
        self.switch = self.switch.max(other.switch);
        self.switch_bound = self.switch_bound.max(other.switch_bound);
    }
}

/// A wait: since when, how often its station had been visited by then, and the longest bound meanwhile.
#[derive(Clone, Copy, Debug)]
struct Wait {
    since: Instant,
    visits: u64,
    bound: Span,
}

/// What a station waits for: any ordinary visit, and one in which more than signalling leaves.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    any: Option<Wait>,
    others: Option<Wait>,
}

/// The bounds of both.
#[derive(Clone, Copy, Debug)]
struct Access {
    any: Span,
    others: Span,
}

impl Access {
    /// Of two visits signalling has one at most, and a ring is woken once.
    fn of(settings: &Settings, stations: u64, reserved: Span, strict: bool) -> Option<Self> {
        let any = access(settings, stations, reserved, strict)?;
        Some(Self { any, others: any * 2 - woken(&exactly(settings, stations)) })
    }
}

/// Goes on with a wait, with so many visits by now and `bound`; what it came to when it ended or is overdue.
fn go_on(waits: &mut Option<Wait>, now: Instant, visits: u64, bound: Span) -> Option<(Wait, Span)> {
    let wait = waits.get_or_insert(Wait { since: now, visits, bound });
    wait.bound = wait.bound.max(bound);
    let (wait, waited) = (*wait, now.since(wait.since));
    if wait.visits == visits && waited <= wait.bound {
        return None;
    }
    *waits = Some(Wait { since: now, visits, bound });
    Some((wait, waited))
}

/// Watches every station's waits, and the segment's switches.
#[derive(Debug, Default)]
pub struct Bounds {
    /// The worst so far.
    pub worst: Measured,
    waits: Vec<Waits>,
    /// Since when somebody switches.
    switching: Option<Instant>,
    /// For how many stations, what is reserved and whether strictly bounds were computed last, and they.
    known: Option<((u64, Span, bool), Option<Access>)>,
}

impl Checker for Bounds {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        self.waits.resize(view.stations.places(), Waits::default());
        for host in view.acted() {
            self.access(view, host, findings);
            self.switch(view, host, findings);
        }
    }
}

fn is_token(port: &Port) -> bool {
    port.medium().mode() == ModeName::Token
}

impl Bounds {
    /// From one event to the next what they depend on seldom changes.
    fn bounds(&mut self, view: &View<'_>, live: u64, reserved: Span, strict: bool) -> Option<Access> {
        let of = (live, reserved, strict);
        match self.known {
            Some((known, bounds)) if known == of => bounds,
            _ => self.known.insert((of, Access::of(view.settings, live, reserved, strict))).1,
        }
    }

    fn access(&mut self, view: &View<'_>, host: usize, findings: &mut Findings) {
        let port = view.at(host).port();
        let port = port.filter(|port| is_token(port) && port.queued_frames() > 0);
        // No token visits a station that the others have declared dead, as after three hogged tokens, until
        // it rejoins.
        let port = port.filter(|port| !is_left_out(view, port.medium().station()));
        let port = port.and_then(|port| Some((port, port.medium().list()?)));
        let Some((port, list)) = port.filter(|(_, list)| !is_first_rotation(view, list)) else {
            self.emptied(view, host);
            self.waits[host] = Waits::default();
            return;
        };
        let counters = port.counters();
        let others_wait = port.queued_frames() > port.queued_signalling();
        let slots = list.slots.as_slice();
        let reserved: Span = slots.iter().map(|slot| Span::from_nanos(u64::from(slot.tht_ns))).sum();
        let strict = slots.iter().any(|slot| slot.periodic);
        let live = view.stations.iter().filter(|(_, station)| station.port().is_some()).count() as u64;
        let since = self.waits[host].any.map_or(view.now, |wait| wait.since);
        // A babbler takes as if it had reserved; where it leaves a cycle no room for a frame, nothing is
        // promised.
        let reserved = reserved + view.windows.burden_of(since, view.now) + flooded(view, since, slots.len());
        let Some(bounds) = self.bounds(view, live, reserved, strict) else {
            self.waits[host] = Waits::default();
            return;
        };
        let is_excused = |wait: &Wait| view.windows.excuse(wait.since, view.now, usize::MAX, usize::MAX);
        let Waits { any, others } = &mut self.waits[host];
        let any =
            go_on(any, view.now, counters.ordinary_visits, bounds.any).filter(|(wait, _)| !is_excused(wait));
        if !others_wait {
            *others = None;
        }
        let others =
            others_wait.then(|| go_on(others, view.now, counters.other_visits, bounds.others)).flatten();
        if let Some((wait, waited)) = any.filter(|(_, waited)| *waited > self.worst.access) {
            (self.worst.access, self.worst.access_bound) = (waited, wait.bound);
        }
        let others = others.filter(|(wait, _)| !is_excused(wait));
        late(view, host, any, "an ordinary visit", findings);
        late(view, host, others, "a visit that is not for signalling alone", findings);
    }

    /// A visit in which all that waits leaves ends a wait, too.
    fn emptied(&mut self, view: &View<'_>, host: usize) {
        let port = view.at(host).port();
        let port = port.filter(|port| is_token(port) && port.queued_frames() == 0);
        let (Some(wait), Some(port)) = (self.waits[host].any, port) else { return };
        let waited = view.now.since(wait.since);
        let is_visit = port.counters().ordinary_visits != wait.visits;
        let excused = view.windows.excuse(wait.since, view.now, usize::MAX, usize::MAX);
        if is_visit && !excused && waited > self.worst.access {
            (self.worst.access, self.worst.access_bound) = (waited, wait.bound);
        }
    }

    /// From the first station that wants a ring to the first that is in one; or to plain Ethernet again.
    fn switch(&mut self, view: &View<'_>, host: usize, findings: &mut Findings) {
        let mode = view.at(host).mode();
        let Some(since) = self.switching else {
            self.switching = (mode == Some(ModeName::Switching)).then_some(view.now);
            return;
        };
        let bound = switch(view.settings, view.stations.count() as u64);
        let took = view.now.since(since);
        let excused = view.windows.excuse(since, view.now, usize::MAX, usize::MAX);
        if took > bound && !excused {
            // Once: the next measurement begins with the next switch.
            self.switching = None;
            findings.add(view.now, "A5", format!("a switch of mode has taken {took}; {bound} is the bound"));
        } else if mode == Some(ModeName::Token) {
            self.switching = None;
            if !excused {
                (self.worst.switch, self.worst.switch_bound) = (self.worst.switch.max(took), bound);
            }
        } else {
            let switches =
                view.stations.iter().any(|(_, station)| station.mode() == Some(ModeName::Switching));
            self.switching = switches.then_some(since);
        }
    }
}
