//! The paper's own recovery rule (RETHER, section 2.4), small: the predecessor watches for the
//! successor's forward, which is multicast and so acknowledges; when its timer runs out it marks the
//! successor dead and sends the token on by itself. Time runs in ticks.
//!
//! Our reading: a holder forwards after one to [`HOLD`] ticks, a frame takes at most [`DELAY`], and the timer
//! is the generous one that no healthy successor can miss. A token that arrives is believed, since nothing in
//! it could tell it from another.

use stateright::{Model, Property};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A station forwards the token so many ticks after it came, at the latest.
pub const HOLD: u8 = 2;
/// A frame arrives so many ticks after it was sent, at the latest.
pub const DELAY: u8 = 1;
/// The acknowledgement timer: hold, the way there, the way back, and one tick more.
pub const TIMER: u8 = HOLD + 2 * DELAY + 1;

/// A ring under the paper's rule, and the faults that may happen to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PaperRing {
    /// How many stations.
    pub stations: u8,
    /// Acknowledgements that may be lost.
    pub lost_acks: u8,
    /// Frames that may be doubled.
    pub doubles: u8,
    /// Stations that may pause, each to resume whenever it likes.
    pub pauses: u8,
    /// Stations that may die.
    pub crashes: u8,
}

/// One station.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Station {
    alive: bool,
    paused: bool,
    /// Ticks of its hold that are left, and the dead list of the token in its hands.
    hold: Option<(u8, u8)>,
    /// Ticks left on its timer, whom it watches, and the dead list of the token that it sent.
    watch: Option<(u8, u8, u8)>,
}

/// A frame on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Frame {
    /// The token, with its dead list as a bit set.
    Token {
        /// Who sent it.
        from: u8,
        /// To whom.
        to: u8,
        /// The stations that it skips.
        dead: u8,
    },
    /// The copy of a forward that its sender's predecessor hears.
    Ack {
        /// Who forwarded.
        from: u8,
        /// Who passed the token to it.
        to: u8,
    },
}

/// The ring at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PaperState {
    stations: Vec<Station>,
    /// Frames and the ticks that they have left, sorted; a double never has to arrive.
    net: Vec<(Frame, Option<u8>)>,
    faults: PaperRing,
}

/// What may happen next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaperAction {
    /// This frame arrives.
    Deliver(Frame),
    /// This acknowledgement is lost.
    LoseAck(Frame),
    /// This frame arrives, and will once more.
    Double(Frame),
    /// The holder forwards.
    Forward(u8),
    /// The station stops.
    Pause(u8),
    /// It goes on.
    Resume(u8),
    /// It dies.
    Crash(u8),
    /// Time passes.
    Tick,
}

impl PaperState {
    fn holders(&self) -> usize {
        self.stations.iter().filter(|s| s.alive && !s.paused && s.hold.is_some()).count()
    }

    fn next(&self, of: u8, dead: u8) -> u8 {
        let n = self.stations.len() as u8;
        (1..n).map(|step| (of + step) % n).find(|s| dead & (1 << s) == 0).unwrap_or(of)
    }

    fn send(&mut self, frame: Frame) {
        self.net.push((frame, Some(DELAY)));
        self.net.sort();
    }

    /// Sends the token on; `tells` is the predecessor that hears it.
    fn forward(&mut self, from: u8, dead: u8, tells: Option<u8>) {
        let to = self.next(from, dead);
        self.send(Frame::Token { from, to, dead });
        if let Some(to) = tells {
            self.send(Frame::Ack { from, to });
        }
        self.stations[usize::from(from)].watch = Some((TIMER, to, dead));
    }

    fn take(&mut self, frame: &Frame) {
        if let Some(at) = self.net.iter().position(|(known, _)| known == frame) {
            self.net.remove(at);
        }
    }

    fn arrive(&mut self, frame: &Frame) {
        match *frame {
            Frame::Token { to, dead, .. } => {
                let station = &mut self.stations[usize::from(to)];
                if station.alive {
                    station.hold = Some((HOLD, dead));
                    station.watch = None;
                }
            }
            Frame::Ack { from, to } => {
                let station = &mut self.stations[usize::from(to)];
                if station.watch.is_some_and(|(_, watched, _)| watched == from) {
                    station.watch = None;
                }
            }
        }
    }

    /// The predecessor in the ring, which watches this station.
    fn before(&self, of: u8, dead: u8) -> u8 {
        let n = self.stations.len() as u8;
        (1..n).map(|step| (of + n - step) % n).find(|s| dead & (1 << s) == 0).unwrap_or(of)
    }

    fn tick(&mut self) {
        for (_, left) in &mut self.net {
            *left = left.map(|left: u8| left.saturating_sub(1));
        }
        self.net.sort();
        for index in 0..self.stations.len() {
            let station = &mut self.stations[index];
            if !station.alive || station.paused {
                continue;
            }
            if let Some((left, _)) = &mut station.hold {
                *left -= 1;
            }
            let Some((left, watched, dead)) = &mut station.watch else { continue };
            *left -= 1;
            if *left == 0 {
                // "the monitoring node times out and assumes that its successor is dead. It then updates the
                // list of dead nodes on the token … and sends the token to the next live successor."
                let dead = *dead | 1 << *watched;
                station.watch = None;
                self.forward(index as u8, dead, None);
            }
        }
    }

    fn may_tick(&self) -> bool {
        let waiting = self.net.iter().any(|(frame, left)| {
            let (Frame::Token { to, .. } | Frame::Ack { to, .. }) = frame;
            *left == Some(0) && !self.stations[usize::from(*to)].paused
        });
        let due = |s: &Station| s.alive && !s.paused && s.hold.is_some_and(|(left, _)| left == 0);
        !waiting && !self.stations.iter().any(due)
    }
}

impl Model for PaperRing {
    type State = PaperState;
    type Action = PaperAction;

    fn init_states(&self) -> Vec<PaperState> {
        let station = Station { alive: true, paused: false, hold: None, watch: None };
        let mut stations = vec![station; usize::from(self.stations)];
        stations[0].hold = Some((HOLD, 0));
        vec![PaperState { stations, net: Vec::new(), faults: *self }]
    }

    fn actions(&self, state: &PaperState, actions: &mut Vec<PaperAction>) {
        if state.may_tick() {
            actions.push(PaperAction::Tick);
        }
        for (frame, left) in &state.net {
            let (Frame::Token { to, .. } | Frame::Ack { to, .. }) = frame;
            if state.stations[usize::from(*to)].paused {
                continue;
            }
            actions.push(PaperAction::Deliver(frame.clone()));
            if state.faults.lost_acks > 0 && matches!(frame, Frame::Ack { .. }) {
                actions.push(PaperAction::LoseAck(frame.clone()));
            }
            if state.faults.doubles > 0 && left.is_some() {
                actions.push(PaperAction::Double(frame.clone()));
            }
        }
        for (index, station) in state.stations.iter().enumerate().filter(|(_, s)| s.alive) {
            let index = index as u8;
            match station {
                Station { paused: true, .. } => actions.push(PaperAction::Resume(index)),
                Station { hold: Some((left, _)), .. } if *left < HOLD => {
                    actions.push(PaperAction::Forward(index))
                }
                _ => {}
            }
            if state.faults.pauses > 0 && !station.paused {
                actions.push(PaperAction::Pause(index));
            }
            if state.faults.crashes > 0 {
                actions.push(PaperAction::Crash(index));
            }
        }
    }

    fn next_state(&self, last: &PaperState, action: PaperAction) -> Option<PaperState> {
        let mut state = last.clone();
        match &action {
            PaperAction::Deliver(frame) => {
                state.take(frame);
                state.arrive(frame);
            }
            PaperAction::LoseAck(frame) => {
                state.take(frame);
                state.faults.lost_acks -= 1;
            }
            PaperAction::Double(frame) => {
                state.take(frame);
                state.arrive(frame);
                state.net.push((frame.clone(), None));
                state.net.sort();
                state.faults.doubles -= 1;
            }
            PaperAction::Forward(of) => {
                let (_, dead) = state.stations[usize::from(*of)].hold.take()?;
                let tells = state.before(*of, dead);
                state.forward(*of, dead, Some(tells));
            }
            PaperAction::Pause(of) => {
                state.stations[usize::from(*of)].paused = true;
                state.faults.pauses -= 1;
            }
            PaperAction::Resume(of) => state.stations[usize::from(*of)].paused = false,
            PaperAction::Crash(of) => {
                let station = &mut state.stations[usize::from(*of)];
                *station = Station { alive: false, paused: false, hold: None, watch: None };
                state.faults.crashes -= 1;
            }
            PaperAction::Tick => state.tick(),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("one holder", |_, state: &PaperState| state.holders() <= 1)]
    }
}

/// Milliseconds that a tick lasts in the simulator.
const TICK_MS: u64 = 4;
/// Octets that occupy a 10 Mbit/s wire for nearly one tick.
const TICK_OCTETS: u64 = 4_500;
/// Of each tick that a frame takes, what the simulator's own wires take behind a full frame.
const WIRE_US: u64 = 1_600;

/// What a run of this ring is for the simulator: who holds the token for how long the first time, which frame
/// was lost, doubled or late, and who stood still or died.
///
/// The real machine acknowledges by a frame of its own, where this one's forward is heard by both: the k-th
/// acknowledgement from one station to another is the same here and there, but its timer need not cover a
/// hold.
#[derive(Default)]
struct Told {
    tick: u64,
    /// When each frame that is on its way was sent.
    sent: Vec<(Frame, u64)>,
    /// Frames that have gone from one station to another.
    gone: BTreeMap<(&'static str, u8, u8), u64>,
    /// When each station got its first token, and for how many ticks it held it.
    held: BTreeMap<u8, (u64, u64)>,
    stopped: BTreeMap<u8, u64>,
    lines: Vec<String>,
}

impl Told {
    fn of(frame: &Frame) -> (&'static str, u8, u8) {
        match *frame {
            Frame::Token { from, to, .. } => ("token", from, to),
            Frame::Ack { from, to } => ("token-ack", from, to),
        }
    }

    /// A frame reaches its receiver, or does not: its place among its like, and the ticks that it took.
    fn goes(&mut self, frame: &Frame) -> (String, u64) {
        let (kind, from, to) = Self::of(frame);
        let count = self.gone.entry((kind, from, to)).or_default();
        *count += 1;
        let at = self.sent.iter().position(|(known, _)| known == frame);
        let took = at.map_or(0, |at| self.tick - self.sent.remove(at).1);
        (format!("{count} {kind} {} {}", from + 1, to + 1), took)
    }

    fn action(&mut self, action: &PaperAction) {
        match action {
            PaperAction::Tick => self.tick += 1,
            PaperAction::Deliver(frame) => {
                if let Frame::Token { to, .. } = frame {
                    self.held.entry(*to).or_insert((self.tick, 0));
                }
                let (which, took) = self.goes(frame);
                if took > 0 {
                    self.lines.push(format!("late {which} {}us", took * TICK_MS * 1_000 - WIRE_US));
                }
            }
            PaperAction::LoseAck(frame) => {
                let (which, _) = self.goes(frame);
                self.lines.push(format!("lose {which}"));
            }
            PaperAction::Double(frame) => {
                let (which, _) = self.goes(frame);
                // The second copy comes behind whatever the first one caused.
                self.lines.push(format!("twice {which} {}ms", u64::from(TIMER) * TICK_MS));
                self.sent.push((frame.clone(), self.tick));
            }
            PaperAction::Forward(of) => {
                let (got, held) = self.held.entry(*of).or_insert((0, 0));
                if *held == 0 {
                    *held = (self.tick - *got).max(1);
                }
            }
            PaperAction::Pause(of) => drop(self.stopped.insert(*of, self.tick)),
            PaperAction::Resume(of) => {
                let since = self.stopped.remove(of).unwrap_or(self.tick);
                let lasts = (self.tick - since).max(1) * TICK_MS;
                self.lines.push(format!("pause {} at {}ms for {lasts}ms", of + 1, since * TICK_MS));
            }
            PaperAction::Crash(of) => {
                self.lines.push(format!("crash {} at {}ms", of + 1, self.tick * TICK_MS));
            }
        }
    }
}

/// Writes a counter-example as a schedule for `rota sim`.
pub fn schedule(ring: &PaperRing, actions: &[PaperAction]) -> String {
    let mut told = Told::default();
    let mut state = ring.init_states().remove(0);
    for action in actions {
        told.action(action);
        let Some(next) = ring.next_state(&state, action.clone()) else { break };
        let fresh = next.net.iter().filter(|(frame, _)| !state.net.iter().any(|(old, _)| old == frame));
        told.sent.extend(fresh.map(|(frame, _)| (frame.clone(), told.tick)));
        state = next;
    }
    let (stations, hop) = (ring.stations, TICK_MS * 2);
    let mut text = format!("stations {stations}\nhop {hop}ms\ndeath {}ms\ndelay 2ms\n", hop * 10);
    for station in 0..stations {
        let (_, held) = told.held.get(&station).copied().unwrap_or((0, 1));
        // Nobody sends to the first: what it hears from a later holder would tell it that the token arrived.
        let to = if station + 1 < stations { stations } else { station };
        let _ = writeln!(text, "reserve {} {to} {} strict", station + 1, held.max(1) * TICK_OCTETS);
    }
    text.extend(told.lines.iter().map(|line| format!("{line}\n")));
    text
}
