//! The way of a frame from a card over its segment to the cards of others, and what goes wrong on it.

use super::{Event, Plant, Segment, World};
use crate::check::{Blow, Scope, Seen, stamp};
use crate::faults::{Happened, Passed, Strike, is_token_for};
use crate::media::{End, Frame, Step};
use rota_proto::ModeName;
use rota_units::Span;
use rota_wire::{FrameView, Generation, Kind};

/// So many control frames of a link have to be lost close together, of the five that are said before a
/// station counts as dead.
const LINK_LOSSES: u32 = 4;

impl World {
    /// Schedules what a segment's medium wants.
    pub(super) fn follow(&mut self, on: usize) {
        let shared = self.segments[on].medium.is_shared();
        let mut steps = std::mem::take(&mut self.spare.steps);
        for (at, step) in steps.drain(..) {
            let event = match step {
                Step::Later(event) => Event::Medium { on, event },
                // A frame that the card does not pick from the segment never reaches its host.
                Step::Arrive { to, ref frame, .. } if !self.is_reached(on, to, frame, shared) => {
                    self.fragment_ends(frame, End::PassedBy);
                    continue;
                }
                Step::Split { frame, more } => {
                    self.fragment_copied(&frame, more);
                    continue;
                }
                Step::Gone { frame, end } => {
                    self.fragment_ends(&frame, end);
                    continue;
                }
                Step::Arrive { to, from, frame } => Event::Arrive { on, to, from, frame },
                Step::CardEmpty { station } => Event::CardEmpty { on, host: station },
            };
            self.engine.schedule(at, event);
        }
        self.spare.steps = steps;
        let segment = &mut self.segments[on];
        let aborts = segment.medium.counters().aborted;
        if aborts > segment.aborts {
            let more = aborts - std::mem::replace(&mut segment.aborts, aborts);
            if self.agreed_mode_on(on) == Some(ModeName::Token) {
                self.counts.ring_aborts += more;
                // A station that collides backs off, and nothing under the token bounds for how long.
                let (now, span) = (self.now(), self.token_lost(on));
                let segment = &mut self.segments[on];
                segment.windows.open(now, span + segment.recovery.slot(), Scope::All);
            }
        }
    }

    /// True if a frame at this port of the medium can reach a host. On a shared wire its card looks first;
    /// a switch has ports of hosts that are not on the segment, and no plug is in them.
    fn is_reached(&self, on: usize, to: usize, frame: &Frame, shared: bool) -> bool {
        let Some(host) = self.hosts.get(to) else { return !shared };
        host.on(on).is_some_and(|station| !shared || station.card.picks(frame))
    }

    pub(super) fn send(&mut self, on: usize, from: usize, frame: Frame) {
        if let Some(tape) = &mut self.tape {
            tape.push(frame.clone());
        }
        self.segments[on].medium.send(self.engine.now(), from, frame, &mut self.spare.steps);
        self.follow(on);
    }

    /// A frame is at the end of its wire: it passes through whatever is wrong there.
    pub(super) fn pass(&mut self, on: usize, to: usize, from: usize, frame: Frame) {
        // Nobody we know listens at a stranger's port.
        if to >= self.hosts.len() {
            self.fragment_ends(&frame, End::PassedBy);
            return;
        }
        match self.spec.plant {
            Some(Plant::Swallow) if self.is_fragment(&frame) && self.chance.test.below(4) == 0 => return,
            Some(Plant::Double) if self.is_fragment(&frame) => self.arrive(on, to, frame.clone()),
            _ => {}
        }
        if self.segments[on].wires.are_sound() {
            self.check_order(on, to, &frame);
            self.arrive(on, to, frame);
            return;
        }
        let now = self.now();
        let mut passed = std::mem::take(&mut self.spare.passed);
        let mut strikes = std::mem::take(&mut self.spare.strikes);
        let view = FrameView::parse(&frame, self.spec.settings.ether_type);
        let token = view.ok().map_or_else(Default::default, |view| stamp(&view));
        let sent = frame.clone();
        self.segments[on].wires.pass(now, from, to, frame, &mut strikes, &mut passed);
        let lost = strikes.iter().filter(|strike| strike.what.is_loss()).count();
        self.fragment_copied(&sent, (passed.len() + lost) as u64 - 1);
        (0..lost).for_each(|_| self.fragment_ends(&sent, End::Wire));
        for passed in &passed {
            self.fragment_changed(&sent, &passed.frame, passed.lie);
        }
        let is_token = strikes.iter().any(|strike| strike.kind == Some(Kind::Token));
        let mac = self.hosts.get(to).and_then(|host| host.on(on)).map(|station| station.card.mac);
        let ether_type = self.spec.settings.ether_type;
        // A station that only overhears an audited token loses nothing with it.
        let harmless = is_token && mac.is_some_and(|mac| !is_token_for(&sent, mac, ether_type));
        for strike in strikes.drain(..) {
            if harmless {
                self.happened.count(strike.what);
            } else {
                self.struck(on, from, to, &strike, token);
            }
        }
        for Passed { late, frame, lie } in passed.drain(..) {
            if late == Span::ZERO {
                if !lie {
                    self.check_order(on, to, &frame);
                }
                self.arrive_or_lie(on, to, frame, lie);
            } else {
                self.engine.schedule(now + late, Event::Late { on, to, frame, lie });
            }
        }
        (self.spare.passed, self.spare.strikes) = (passed, strikes);
    }

    pub(super) fn arrive_or_lie(&mut self, on: usize, to: usize, frame: Frame, lie: bool) {
        if lie { self.lie_at(on, to, frame) } else { self.arrive(on, to, frame) }
    }

    /// Counts a fault that touched a frame, and opens the window that it excuses.
    fn struck(&mut self, on: usize, from: usize, to: usize, strike: &Strike, token: (Generation, u64)) {
        self.happened.count(strike.what);
        let now = self.now();
        if self.spec.is_link(on) {
            return self.struck_on_link(on, from, to, strike);
        }
        let slot = self.segments[on].recovery.slot();
        let (span, scope) = match (strike.what, strike.kind) {
            (Happened::Duplicated, _) => return,
            (Happened::DelayedWithin | Happened::DelayedBeyond, Some(Kind::Data)) => {
                (strike.late, Scope::Pair(from, to))
            }
            (Happened::DelayedWithin, Some(_)) => (strike.late + slot, Scope::All),
            // Later than D it counts as lost, and comes all the same.
            (Happened::DelayedBeyond, Some(kind)) => {
                self.blow_at(on, kind, token, strike.late);
                (strike.late + self.token_lost(on) + slot, Scope::All)
            }
            (_, Some(Kind::Data)) => (Span::ZERO, Scope::Pair(from, to)),
            (Happened::Cut, Some(kind)) => {
                if kind == Kind::Token {
                    self.segments[on].losses.cut.truncate(15);
                    self.segments[on].losses.cut.push_front(token);
                }
                (self.token_lost(on) + slot, Scope::All)
            }
            (_, Some(kind)) => {
                self.blow_at(on, kind, token, Span::ZERO);
                let lost = self.token_lost(on);
                // A station that misses the end of a ring waits for its token (seed 161014 of the product's
                // timers).
                let mode = self.hosts.get(from).and_then(|host| host.on(on)?.mode());
                let is_farewell = kind == Kind::Mode && mode != Some(ModeName::Token);
                let notice =
                    if is_farewell { self.segments[on].recovery.lost_switch_back() } else { Span::ZERO };
                (lost.max(notice) + slot, Scope::All)
            }
            // Ordinary frames were promised nothing.
            (_, None) => return,
        };
        self.segments[on].windows.open(now, span, scope);
    }

    /// The same on a link. No unit waits for a control frame there; but an end that hears none for long takes
    /// the other one for dead, and all that it sends until it knows.
    fn struck_on_link(&mut self, on: usize, from: usize, to: usize, strike: &Strike) {
        let now = self.now();
        match (strike.what, strike.kind) {
            (Happened::Duplicated, _) | (_, None) => {}
            (_, Some(Kind::Data)) => {
                self.segments[on].windows.open(now, strike.late, Scope::Pair(from, to));
            }
            // It has come.
            (Happened::DelayedWithin, Some(_)) => {}
            (_, Some(_)) => {
                let Segment { losses, recovery, windows, .. } = &mut self.segments[on];
                losses.in_a_row = if now <= losses.over { losses.in_a_row + 1 } else { 1 };
                losses.over = now + recovery.crash(1);
                if losses.in_a_row >= LINK_LOSSES {
                    windows.go_on(now, recovery.crash(1) + recovery.slot());
                }
            }
        }
    }

    /// A control frame did not come, or not within D. One that is only late may do harm when it comes.
    fn blow_at(&mut self, on: usize, kind: Kind, token: (Generation, u64), late: Span) {
        let other = Blow::Other { ends: self.now() + late, silent: 0 };
        // One that was lost at a cut wire before is sent again ever more rarely: not the loss of one token.
        let alone = !self.segments[on].losses.cut.contains(&token);
        let is_lost_token = kind == Kind::Token && late == Span::ZERO && alone;
        let blow = if is_lost_token { Blow::TokenLost(token) } else { other };
        self.segments[on].saw(Seen::Struck { blow });
    }

    /// How long it may take until what a control frame was for happens after all. Losses close together are
    /// losses of one token in a row.
    fn token_lost(&mut self, on: usize) -> Span {
        let now = self.now();
        let Segment { losses, recovery, .. } = &mut self.segments[on];
        losses.in_a_row = if now <= losses.over { losses.in_a_row + 1 } else { 1 };
        let span = recovery.token_loss(losses.in_a_row);
        losses.over = now + span;
        span
    }
}
