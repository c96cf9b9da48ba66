//! L6: how long the token takes to go round again, by what went wrong; never longer than theory a.6 says.

use super::{Checker, Findings, Seen, View};
use rota_proto::ModeName;
use rota_units::{Instant, Span};
use rota_wire::{FrameView, Generation};
use std::collections::VecDeque;

/// Blows further back than so many cycles have nothing to do with a silence.
const REACH_CYCLES: u64 = 12;

/// What struck, as far as recovery is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// One token frame was lost: the token of this generation and sequence.
    TokenLost((Generation, u64)),
    /// One station fell silent for longer than a lease.
    Death,
    /// A part of the segment can no longer be heard; so many stations fell silent for the larger part.
    Parting(u64),
    /// Two parts can hear each other again.
    Meeting,
    /// Anything else: its recovery has no bound of its own, and it spoils the measurement of others.
    Other,
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
}

impl Recoveries {
    /// The worse of each.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.all_mut().into_iter().zip(other.all()) {
            *mine = (*mine).max(theirs.1);
        }
    }

    /// Each with its name.
    pub fn all(&self) -> [(&'static str, Span); 6] {
        [
            ("token lost", self.token_lost),
            ("death", self.death),
            ("parting", self.parting),
            ("meeting", self.meeting),
            ("two at once", self.two),
            ("more at once", self.more),
        ]
    }

    fn all_mut(&mut self) -> [&mut Span; 6] {
        let Self { token_lost, death, parting, meeting, two, more } = self;
        [token_lost, death, parting, meeting, two, more]
    }
}

/// Measures recoveries and holds them to their bounds.
#[derive(Debug, Default)]
pub struct RecoveryTimes {
    /// The worst so far.
    pub worst: Recoveries,
    blows: VecDeque<(Instant, Blow)>,
    /// When the last token was believed anywhere.
    last: Option<Instant>,
    /// The newest that was.
    newest: (Generation, u64),
    /// Since when two parts hear each other without anything else having gone wrong.
    meeting: Option<Instant>,
}

impl Checker for RecoveryTimes {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        for seen in view.seen {
            match seen {
                Seen::Struck { blow } => self.struck(view, *blow),
                Seen::Took { accepted: true, frame, .. } => {
                    let frame = FrameView::parse(frame, view.settings.ether_type);
                    let stamp = frame.map_or_else(|_| self.newest, |frame| stamp(&frame));
                    self.newest = self.newest.max(stamp);
                    self.believed(view, findings);
                }
                Seen::Acted { host } => {
                    let mode = view.hosts[*host].node.as_ref().map(|node| node.link().mode());
                    if mode != Some(ModeName::Token) {
                        self.last = None;
                    }
                }
                _ => {}
            }
        }
        if let Some(since) = self.meeting.filter(|_| is_one_ring(view)) {
            self.meeting = None;
            let took = view.now.since(since);
            self.worst.meeting = self.worst.meeting.max(took);
            let bound = view.recovery.meeting();
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
    fn struck(&mut self, view: &View<'_>, blow: Blow) {
        if matches!(blow, Blow::TokenLost(stamp) if stamp <= self.newest) {
            // A repeated token whose first is there already.
            return;
        }
        let others =
            self.recent(view.now, view).filter(|(_, other)| !matches!(other, Blow::Parting(_))).count();
        self.meeting = (blow == Blow::Meeting && others == 0).then_some(view.now);
        // What is lost while a station stands still or is late may be sent again to it, or by it.
        let lost = matches!(blow, Blow::TokenLost(_));
        let silent = view.hosts.iter().any(|host| host.boots > 0 && !host.is_running(view.now));
        let late = view.hosts.iter().any(|host| host.profile.late_ppm > 0);
        let also = [(silent, Blow::Death), (late, Blow::Other)].into_iter().filter(|(is, _)| lost && *is);
        for blow in also.map(|(_, blow)| blow).chain([blow]) {
            if self.blows.len() == 64 {
                self.blows.pop_front();
            }
            self.blows.push_back((view.now, blow));
        }
    }

    fn recent<'a>(&'a self, from: Instant, view: &View<'_>) -> impl Iterator<Item = (Instant, Blow)> + 'a {
        let reach = view.settings.trt * REACH_CYCLES;
        self.blows.iter().copied().filter(move |(at, _)| *at + reach >= from)
    }

    fn believed(&mut self, view: &View<'_>, findings: &mut Findings) {
        let Some(last) = self.last.replace(view.now) else { return };
        let silence = view.now.since(last);
        let struck_since = self.blows.back().is_some_and(|(at, _)| *at > last);
        if !struck_since && silence <= view.settings.trt + view.recovery.hop() {
            return;
        }
        let blows: Vec<_> = self.recent(last, view).collect();
        let Some((first, _)) = blows.first().copied() else { return };
        let took = view.now.since(first.max(last));
        let recovery = view.recovery;
        let (place, bound) = match blows[..] {
            // A drowsy ring rests for many cycles whatever was lost before.
            [(_, Blow::TokenLost(_))] if !struck_since => return,
            [(_, Blow::TokenLost(_))] => (&mut self.worst.token_lost, Some(recovery.token_loss(1))),
            [(_, Blow::Death)] => (&mut self.worst.death, Some(recovery.crash(1) + recovery.rest())),
            [(_, Blow::Parting(dead))] => {
                (&mut self.worst.parting, Some(recovery.crash(dead) + recovery.rest()))
            }
            [(_, Blow::Meeting)] => return,
            [_] => (&mut self.worst.more, None),
            [(_, one), (_, other)] if one.is_bounded() && other.is_bounded() => {
                (&mut self.worst.two, Some(recovery.two() + recovery.rest() * 2))
            }
            _ => (&mut self.worst.more, None),
        };
        *place = (*place).max(took);
        if let Some(bound) = bound.filter(|bound| took > *bound) {
            findings.add(
                view.now,
                "L6",
                format!("the token came back {took} after {blows:?}; bound {bound}"),
            );
        }
    }
}

impl Blow {
    const fn is_bounded(self) -> bool {
        matches!(self, Self::TokenLost(_) | Self::Death)
    }
}

/// What a token is called.
pub(crate) fn stamp(frame: &FrameView<'_>) -> (Generation, u64) {
    (frame.header().generation, frame.header().seq)
}

/// Whether all stations that run share one generation, or none runs a ring. Who asks to be let in is outside
/// until its hold-off ends.
fn is_one_ring(view: &View<'_>) -> bool {
    let running = view.hosts.iter().filter(|host| host.is_running(view.now));
    let links = running.filter_map(|host| host.node.as_ref()).map(|node| node.link());
    let mut rings = links
        .filter(|link| link.mode() != ModeName::Joining)
        .map(|link| (link.mode() == ModeName::Token).then(|| link.generation()));
    rings.next().is_none_or(|first| rings.all(|ring| ring == first))
}
