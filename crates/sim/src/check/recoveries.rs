//! L6: how long the token takes to go round again, by what went wrong; never longer than `specs/rether.md`
//! proves ("Recovery bounds"). One fault has its own bound, two have theirs together, and after the last of
//! any number a ring is back within the bound of all that they silenced. Judged after every event: a token
//! that never comes back is overdue.

use super::announced::Announced;
use super::windows::Recovery;
use super::{Checker, Findings, Seen, Stations, View};
use crate::hosts::Station;
use rota_proto::rether::Rether;
use rota_proto::{Member, ModeName};
use rota_units::{Instant, Span};
use rota_wire::{FrameView, Generation, Kind, MacAddr};
use std::collections::VecDeque;

/// Blows further back than so many cycles have nothing to do with a silence.
const REACH_CYCLES: u64 = 12;
/// A station without a slot is visited in a round of all, which begins at least every 32 cycles: for so long
/// nobody may notice that it has fallen silent (seed 30000001342 of the product's timers).
const UNNOTICED_CYCLES: u64 = 34;

/// A fault that struck, as far as recovery is concerned. One that takes nothing from a ring that keeps its
/// rules is no blow: frames doubled, forged or played again, a wall clock that jumps, a clock within its
/// drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// One token frame was lost: the token of this generation and sequence.
    TokenLost((Generation, u64)),
    /// One station fell silent for longer than a lease.
    Death,
    /// One died, and all living stations have heard its last will.
    Willed,
    /// The hosts whose bits are set and the others do not hear each other any more.
    Parting(u64),
    /// Two parts can hear each other again.
    Meeting,
    /// Anything else: it goes on until `ends`, and so many stations may be silent to others meanwhile.
    Other {
        /// When it is over.
        ends: Instant,
        /// How many.
        silent: u64,
    },
}

/// The worst recoveries of a run, or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recoveries {
    /// After one lost token frame, to the next token that is believed.
    pub token_lost: Span,
    /// After one death.
    pub death: Span,
    /// After the segment fell into two parts, in the part that took longer.
    pub parting: Span,
    /// From the moment that two parts could hear each other to one generation everywhere.
    pub meeting: Span,
    /// After two blows that met.
    pub two: Span,
    /// After more.
    pub more: Span,
    /// After one death that all heard of by its last will, from when that was first sent.
    pub willed: Span,
}

impl Recoveries {
    /// The worse of each.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.all_mut().into_iter().zip(other.all()) {
            *mine = (*mine).max(theirs.1);
        }
    }

    /// Each with its name.
    pub fn all(&self) -> [(&'static str, Span); 7] {
        [
            ("token lost", self.token_lost),
            ("death", self.death),
            ("parting", self.parting),
            ("meeting", self.meeting),
            ("two at once", self.two),
            ("more at once", self.more),
            ("will heard", self.willed),
        ]
    }

    fn all_mut(&mut self) -> [&mut Span; 7] {
        let Self { token_lost, death, parting, meeting, two, more, willed } = self;
        [token_lost, death, parting, meeting, two, more, willed]
    }
}

/// One part of the segment: all of it, unless it has fallen apart.
#[derive(Clone, Copy, Debug, Default)]
struct SegmentPart {
    /// When the last token was believed in it; none while it runs no ring.
    last: Option<Instant>,
    /// Said already that its token is overdue.
    told: bool,
    /// No process ran at the last look.
    stands: bool,
}

/// Measures recoveries and holds them to their bounds.
#[derive(Debug, Default)]
pub struct RecoveryTimes {
    /// The worst so far.
    pub worst: Recoveries,
    blows: VecDeque<(Instant, Blow)>,
    /// The newest token that was believed anywhere.
    newest: (Generation, u64),
    /// The newest list that was believed anywhere, and when it first was.
    listed: (Instant, (Generation, u64)),
    /// The hosts of the second part.
    second: u64,
    parts: [SegmentPart; 2],
    /// Since when two parts hear each other without anything else having gone wrong, and how long they may
    /// take to be one ring.
    meeting: Option<(Instant, Span)>,
    /// Since the token was seen: the most stations that one station knew by a boot that is over, and that all
    /// did.
    outdated: u64,
    unnoticed: u64,
    announced: Announced,
    /// The newest token that a ring without reservations has passed on, or the last station of a ring.
    passed: (Generation, u64),
}

impl Checker for RecoveryTimes {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        self.announced.look(view);
        for seen in view.seen {
            match seen {
                Seen::Struck { blow } => self.struck(view, *blow),
                Seen::Willed { died, first } => self.willed(*died, *first),
                Seen::Took { accepted: true, frame, host } => {
                    let frame = FrameView::parse(frame, view.settings.ether_type);
                    let stamp = frame.map_or_else(|_| self.newest, |frame| stamp(&frame));
                    self.newest = self.newest.max(stamp);
                    self.believed(view, self.part(*host), findings);
                }
                Seen::Took { frame, host, .. } => self.listed(view, *host, frame, findings),
                Seen::Sent { host, frame, kind: Some(Kind::Token), .. } => self.passed_on(view, *host, frame),
                Seen::Acted { host } => self.acted(view, *host, findings),
                _ => {}
            }
        }
        self.overdue(view, findings);
        if let Some((since, bound)) = self.meeting.filter(|_| is_one_ring(view)) {
            self.meeting = None;
            let took = view.now.since(since);
            self.worst.meeting = self.worst.meeting.max(took);
            if took > bound {
                findings.add(
                    view.now,
                    "L6",
                    format!("two rings were one {took} after they met; bound {bound}"),
                );
            }
        }
    }
}

impl RecoveryTimes {
    fn part(&self, host: usize) -> usize {
        (host < 64 && self.second >> host & 1 == 1).into()
    }

    /// Those of a part whose processes run.
    fn running<'a>(&'a self, view: &'a View<'_>, part: usize) -> impl Iterator<Item = (usize, Station<'a>)> {
        let hosts = view.stations.iter();
        hosts.filter(move |(at, host)| self.part(*at) == part && host.is_running(view.now))
    }

    /// A ring that is whole has done with all that was over before its last list was sent: what strikes next
    /// is the first of its own recovery.
    fn forget(&mut self, view: &View<'_>) {
        let (listed, list) = self.listed;
        let over = |(at, blow): &(Instant, Blow)| blow.ends(*at) + view.recovery.hop() < listed;
        if self.second == 0 && self.blows.iter().any(over) && is_whole(view, list) {
            self.blows.retain(|blow| !over(blow));
        }
    }

    /// A part where somebody is in plain mode, or on the way from it, runs no ring; and a station that is
    /// alone takes no token from anybody.
    fn acted(&mut self, view: &View<'_>, host: usize, findings: &mut Findings) {
        let part = self.part(host);
        match view.at(host).mode() {
            Some(ModeName::Plain | ModeName::Switching) => {
                self.parts[part].last = None;
                // Where all have booted since the last ring, the next one may count from one again (seed
                // 137499 of the product's timers).
                if !view.stations.iter().any(|(_, host)| host.mode() == Some(ModeName::Token)) {
                    (self.newest, self.listed, self.passed) = Default::default();
                }
            }
            // A station that asks to be let in hears tokens and believes none.
            Some(ModeName::Token) if view.holds(host) && self.in_ring(view, part) == 1 => {
                self.believed(view, part, findings);
            }
            Some(ModeName::Token) => {}
            Some(ModeName::Joining | ModeName::Paced) | None => {
                if self.in_ring(view, part) == 0 {
                    self.parts[part].last = None;
                }
            }
        }
    }

    /// A master whose last reservation has ended sends no list with its token, and it may rest with it for
    /// the rest of the cycle when its successor is dead already: silence begins when the token leaves (seed
    /// 60000001843 of the product's timers). So it does where a dead station has a slot, and is master then:
    /// the last one alive rested with the token until it closed its own slot (seeds 62000002307 and
    /// 62000007541). Where another one lives, it counts from the last list.
    fn passed_on(&mut self, view: &View<'_>, host: usize, frame: &[u8]) {
        let is_empty = view.at(host).rether().is_some_and(|rether| rether.slots().is_empty());
        let Ok(frame) = FrameView::parse(frame, view.settings.ether_type) else { return };
        let (stamp, part) = (stamp(&frame), self.part(host));
        if (is_empty || self.in_ring(view, part) == 1) && stamp > self.passed.max(self.newest) {
            self.passed = stamp;
            self.parts[part].last = self.parts[part].last.map(|_| view.now);
        }
    }

    /// How many stations of a part run a ring.
    fn in_ring(&self, view: &View<'_>, part: usize) -> usize {
        self.running(view, part).filter(|(_, host)| host.mode() == Some(ModeName::Token)).count()
    }

    /// The list that a master sends when a cycle begins shows as well as the token that the ring lives.
    fn listed(&mut self, view: &View<'_>, host: usize, frame: &[u8], findings: &mut Findings) {
        let Ok(frame) = FrameView::parse(frame, view.settings.ether_type) else { return };
        if frame.header().kind != Kind::List {
            return;
        }
        let stamp = stamp(&frame);
        let rether = view.at(host).rether();
        // The node's own view counts, not what the frame says: its bits may have been turned over on the way.
        let believed =
            rether.is_some_and(|rether| rether.mode() == ModeName::Token && rether.list_stamp() == stamp);
        if believed && stamp > self.newest {
            self.newest = stamp;
            self.listed = (view.now, stamp);
            self.believed(view, self.part(host), findings);
        }
    }

    fn struck(&mut self, view: &View<'_>, blow: Blow) {
        if matches!(blow, Blow::TokenLost(stamp) if stamp <= self.newest) {
            // A repeated token whose first is there already.
            return;
        }
        match blow {
            // Of three parts or more nobody can say here which one a token belongs to.
            Blow::Parting(_) if self.second != 0 => self.unite(view, 0),
            Blow::Parting(second) => self.unite(view, second),
            Blow::Meeting => self.unite(view, 0),
            _ => {}
        }
        let others =
            self.recent(view.now, view).filter(|(_, other)| !matches!(other, Blow::Parting(_))).count();
        // A part that is amid a switch has that to end, or to give up, before it can be anybody's ring (seed
        // 87934 of the product's timers); S9 and L4 have their deadlines for it.
        let switches = self.running(view, 0).any(|(_, host)| host.mode() == Some(ModeName::Switching));
        let strangers = are_strangers(view.stations, view.now);
        let bound = if strangers { view.recovery.meeting_of_strangers() } else { view.recovery.meeting() };
        self.meeting = (blow == Blow::Meeting && others == 0 && !switches).then_some((view.now, bound));
        // A frame that is lost while a station stands still or is late may be sent again to it, or by it.
        let lost = matches!(blow, Blow::TokenLost(_));
        let silent = view.stations.iter().any(|(_, host)| is_missed(view, host));
        let late = view.stations.iter().any(|(_, host)| host.profile.late_ppm > 0);
        let other = Blow::Other { ends: view.now, silent: 1 };
        let also = [(silent, Blow::Death), (late, other)].into_iter().filter(|(is, _)| lost && *is);
        for blow in also.map(|(_, blow)| blow).chain([blow]) {
            if self.blows.len() == 64 {
                // A burst of losses must not hide who fell silent.
                let harmless = |(_, blow): &(Instant, Blow)| blow.silent(0, 0) == 0;
                let at = self.blows.iter().position(harmless).unwrap_or(0);
                self.blows.remove(at);
            }
            self.blows.push_back((view.now, blow));
        }
    }

    /// All have heard of a death by now: it counts from when its will was first sent.
    fn willed(&mut self, died: Instant, first: Instant) {
        // Each copy says so, and another may have fallen silent at the same instant.
        if self.blows.contains(&(first, Blow::Willed)) {
            return;
        }
        if let Some(at) = self.blows.iter().position(|blow| *blow == (died, Blow::Death)) {
            self.blows.remove(at);
            self.blows.push_back((first, Blow::Willed));
        }
    }

    /// From now on the hosts of `second` are a part of their own. A part that has nobody of the ring has no
    /// token to wait for: its stations may never have booted.
    fn unite(&mut self, view: &View<'_>, second: u64) {
        let last = self.parts[0].last.max(self.parts[1].last);
        self.second = second;
        let hosts = || view.stations.iter();
        let has_ring =
            |part| hosts().any(|(at, host)| self.part(at) == part && host.mode() == Some(ModeName::Token));
        let part = |part| SegmentPart { last: last.filter(|_| has_ring(part)), ..SegmentPart::default() };
        self.parts = [0, 1].map(part);
    }

    fn recent<'a>(&'a self, from: Instant, view: &View<'_>) -> impl Iterator<Item = (Instant, Blow)> + 'a {
        let slowest = view.recovery.crash(view.stations.count() as u64);
        let trt = view.settings.trt;
        let reaches = move |at: Instant, blow: &Blow| blow.ends(at) + blow.reach(trt).max(slowest) >= from;
        self.blows.iter().copied().filter(move |(at, blow)| reaches(*at, blow))
    }

    /// What a part may take after the last of these blows, however many there were: as long as if all whom
    /// they can have silenced were silent. With more than one, a claim that was under way may have made its
    /// token for a victim of the last: it had granted, and is found out like any successor (seed 1000565 of
    /// the product's timers).
    fn bound(
        &self,
        view: &View<'_>,
        recovery: &Recovery,
        part: usize,
        blows: &[(Instant, Blow)],
        last: Instant,
    ) -> Span {
        let is_willed = |(_, blow): &(Instant, Blow)| *blow == Blow::Willed;
        // Once a token has been seen since, it may rest like any other.
        if blows.iter().all(is_willed) && blows.last().is_some_and(|(at, _)| *at > last) {
            return recovery.will();
        }
        let lasts = blows.iter().any(|(at, blow)| blow.ends(*at) > *at);
        let over = if lasts { self.outdated } else { self.unnoticed };
        let silent = (silenced(view, part, blows) + over).min(view.stations.count() as u64 - 1);
        let again = if blows.len() > 1 { recovery.round(silent) } else { Span::ZERO };
        recovery.crash(silent) + again
    }

    /// No token for longer than any fault excuses.
    fn overdue(&mut self, view: &View<'_>, findings: &mut Findings) {
        for part in 0..2 {
            let Some(last) = self.parts[part].last.filter(|_| !self.parts[part].told) else { continue };
            let stands = self.running(view, part).next().is_none();
            if std::mem::replace(&mut self.parts[part].stands, stands) || stands {
                // Nobody was there to recover (seed 20000000032 of the product's timers) until now (seed
                // 62000000261).
                self.parts[part].last = Some(view.now);
                continue;
            }
            // Nothing is overdue before the shortest of all bounds.
            let willed = self.blows.back().is_some_and(|(_, blow)| *blow == Blow::Willed);
            if !willed && view.now.since(last) <= view.recovery.shortest() {
                continue;
            }
            let (one, all) = outdated(view);
            (self.outdated, self.unnoticed) = (self.outdated.max(one), self.unnoticed.max(all));
            let recovery = self.announced.recovery(view);
            let blows: Vec<_> = self.recent(last, view).collect();
            let over = blows.iter().map(|(at, blow)| blow.ends(*at)).max().unwrap_or(last);
            let (took, bound) =
                (view.now.since(over.max(last)), self.bound(view, &recovery, part, &blows, last));
            if took > bound {
                self.parts[part].told = true;
                let what = format!("no token {took} after the last of {blows:?}; bound {bound}");
                findings.add(view.now, "L6", what);
            }
        }
    }

    fn believed(&mut self, view: &View<'_>, part: usize, findings: &mut Findings) {
        let alive = SegmentPart { last: Some(view.now), ..SegmentPart::default() };
        let known = std::mem::replace(&mut self.parts[part], alive);
        let Some(last) = known.last else { return };
        self.judge(view, part, last, findings);
        (self.outdated, self.unnoticed) = (0, 0);
        self.announced.forget(view);
        self.forget(view);
    }

    /// The token is back in a part that has not seen one since `last`.
    fn judge(&mut self, view: &View<'_>, part: usize, last: Instant, findings: &mut Findings) {
        let silence = view.now.since(last);
        let struck_since = self.blows.back().is_some_and(|(at, _)| *at > last);
        if !struck_since && silence <= view.settings.trt + view.recovery.hop() {
            return;
        }
        let blows: Vec<_> = self.recent(last, view).collect();
        let Some((first, _)) = blows.first().copied() else { return };
        // A fault that lasts is measured from its end: until then it goes on striking.
        let over = blows.iter().map(|(at, blow)| blow.ends(*at)).max().unwrap_or(first);
        let lasts = blows.iter().any(|(at, blow)| blow.ends(*at) > *at);
        let took = view.now.since(if lasts { over } else { first }.max(last));
        let recovery = self.announced.recovery(view);
        let all = self.bound(view, &recovery, part, &blows, last);
        let (place, bound) = match blows[..] {
            // Lost long before: nothing is the matter with a ring that was waiting.
            [(_, Blow::TokenLost(_))] if !struck_since => return,
            [(_, Blow::TokenLost(_))] => (&mut self.worst.token_lost, recovery.token_loss(1)),
            [(_, Blow::Death)] => (&mut self.worst.death, all),
            [(_, Blow::Willed)] => (&mut self.worst.willed, all),
            [(_, Blow::Parting(_))] => (&mut self.worst.parting, all),
            [_] => (&mut self.worst.more, all),
            // From the first of two no claim that was under way is paid for twice; from the end of what lasts
            // (seeds 16989 and 20145 of the product's timers) one may be.
            [_, _] if lasts => (&mut self.worst.two, all),
            [_, _] => {
                let before = self.bound(view, &recovery, part, &blows[..1], last);
                (&mut self.worst.two, before + recovery.crash(silenced(view, part, &blows)))
            }
            // However many there were, the token is back in time after the last.
            _ => {
                self.worst.more = self.worst.more.max(took);
                let took = view.now.since(over.max(last));
                return late(view, took, all, &blows, findings);
            }
        };
        *place = (*place).max(took);
        late(view, took, bound, &blows, findings);
    }
}

/// How many stations these blows can have silenced to a part.
fn silenced(view: &View<'_>, part: usize, blows: &[(Instant, Blow)]) -> u64 {
    let stations = view.stations.count() as u64;
    let silent = blows.iter().map(|(_, blow)| blow.silent(part, stations));
    silent.sum::<u64>().min(stations - 1)
}

/// On how many boots that are over one station of a ring counts at most, and on how many all do. A station
/// that was cut off while others booted and were let in knows none of these boots, and drains for all in its
/// claim (seed 2899303 of the product's timers). A boot on which all count has ended unnoticed, however long
/// ago: where units take all of each cycle, no round of all comes to pass (seed 2974067).
fn outdated(view: &View<'_>) -> (u64, u64) {
    let boots = links(view.stations, view.now).map(|(mac, rether)| (mac, rether.incarnation()));
    let rings = links(view.stations, view.now).filter(|(_, rether)| rether.mode() == ModeName::Token);
    // The claim takes the newest list of all.
    let lives = |station| rings.clone().any(|(_, rether)| !rether.is_dead(station));
    let is_over =
        |member: &&Member| boots.clone().any(|(mac, boot)| mac == member.mac && boot != member.incarnation);
    let count = |rether: &Rether| {
        let members = rether.members().iter();
        members.filter(|member| member.station != 0 && lives(member.station)).filter(is_over).count() as u64
    };
    let counts = rings.clone().map(|(_, rether)| count(rether));
    (counts.clone().max().unwrap_or(0), counts.min().unwrap_or(0))
}

fn late(view: &View<'_>, took: Span, bound: Span, blows: &[(Instant, Blow)], findings: &mut Findings) {
    if took > bound {
        findings.add(view.now, "L6", format!("the token came back {took} after {blows:?}; bound {bound}"));
    }
}

impl Blow {
    /// How many of `stations` can be silent to those of a part because of it.
    const fn silent(self, part: usize, stations: u64) -> u64 {
        match self {
            Self::TokenLost(_) | Self::Meeting | Self::Willed => 0,
            Self::Death => 1,
            Self::Parting(second) if part == 1 => stations.saturating_sub(second.count_ones() as u64),
            Self::Parting(second) => second.count_ones() as u64,
            Self::Other { silent, .. } => silent,
        }
    }

    /// How long after its end it can still be the cause of a silence, where no recovery takes longer.
    pub(super) fn reach(&self, trt: Span) -> Span {
        trt * if self.silent(0, 2) > 0 { UNNOTICED_CYCLES } else { REACH_CYCLES }
    }

    /// When what began at `at` is over.
    const fn ends(self, at: Instant) -> Instant {
        match self {
            Self::Other { ends, .. } if ends.as_nanos() > at.as_nanos() => ends,
            _ => at,
        }
    }
}

/// What a token is called.
pub(crate) fn stamp(frame: &FrameView<'_>) -> (Generation, u64) {
    (frame.header().generation, frame.header().seq)
}

/// The stations that run, by their addresses.
fn links(stations: Stations<'_>, now: Instant) -> impl Iterator<Item = (MacAddr, &Rether)> + Clone {
    let running = stations.iter().filter(move |(_, station)| station.is_running(now));
    running.filter_map(|(_, station)| Some((station.card.mac, station.rether()?)))
}

/// Whether two of them run rings whose keys are not the same, so that neither believes the other's lists.
pub(crate) fn are_strangers(stations: Stations<'_>, now: Instant) -> bool {
    let mut rings =
        links(stations, now).map(|(_, rether)| rether).filter(|rether| rether.mode() == ModeName::Token);
    rings.next().is_some_and(|first| rings.any(|rether| !first.shares_key(rether)))
}

/// Whether all stations that any ring counts on run in one ring, under one generation, and have this list.
fn is_whole(view: &View<'_>, list: (Generation, u64)) -> bool {
    let rings = links(view.stations, view.now).filter(|(_, rether)| rether.mode() == ModeName::Token);
    let is_in = |mac| rings.clone().any(|(of, _)| of == mac);
    rings.clone().next().is_some()
        && rings.clone().all(|(_, rether)| {
            let mut members = rether.members().iter().filter(|member| member.station != 0);
            let stamp = rether.list_stamp();
            let has_it = rether.generation() == list.0.counter && stamp.0 == list.0 && stamp >= list;
            // Nor does any count on one that has died since it proved that it lives.
            let runs = |(mac, boot)| {
                links(view.stations, view.now).any(|(of, rether)| (of, rether.incarnation()) == (mac, boot))
            };
            has_it
                && members.all(|member| rether.is_dead(member.station) || is_in(member.mac))
                && rether.proven_joiners().all(runs)
        })
}

/// True if a station is silent and some ring does not know it yet, so that a token may be sent to it.
fn is_missed(view: &View<'_>, station: Station<'_>) -> bool {
    let knows = |rether: &Rether| {
        let member = rether.member_at(station.card.mac);
        rether.mode() != ModeName::Token || member.is_none_or(|member| rether.is_dead(member.station))
    };
    let is_silent = station.boots > 0 && !station.is_running(view.now);
    is_silent && !links(view.stations, view.now).all(|(_, rether)| knows(rether))
}

/// True if all stations that run share one generation and key, or none runs a ring. A station that asks to be
/// let in is outside until its hold-off ends.
fn is_one_ring(view: &View<'_>) -> bool {
    let links = links(view.stations, view.now).map(|(_, rether)| rether);
    let mut links = links.filter(|rether| rether.mode() != ModeName::Joining);
    links.next().is_none_or(|first| {
        let first_is = first.mode() == ModeName::Token;
        links.all(|rether| {
            let is_same = rether.generation() == first.generation() && rether.shares_key(first);
            (rether.mode() == ModeName::Token) == first_is && (is_same || !first_is)
        })
    })
}
