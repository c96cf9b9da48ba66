//! The receiver's end of a stream.

use std::collections::VecDeque;
use std::fmt;

use rota_contract::Withdrawn;
use rota_units::{Instant, Span};

use super::AHEAD_MAX;
use super::marked::Marked;
use super::playout::Playout;
use crate::now;
use crate::receive::{End, Received, RecvChannel, RecvError, Unit};

/// The fate of a stream data unit, at its play-out point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitState {
    /// All of it is there.
    Whole,
    /// Octets are missing; they are zero in the buffer.
    InPart {
        /// So many.
        missing_octets: u32,
    },
    /// Nothing of it is there yet. It may still come, and is not played then.
    Late,
    /// Nothing of it will come: a later unit is there.
    Lost,
}

impl fmt::Display for UnitState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("came whole"),
            Self::InPart { missing_octets } => write!(f, "came in part: {missing_octets} octets are missing"),
            Self::Late => f.write_str("late: it was not there at its play-out point"),
            Self::Lost => f.write_str("lost: a later unit came without it"),
        }
    }
}

/// A stream data unit at its play-out point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamUnit {
    /// Its number: how many units the source put or left out before it.
    pub number: u64,
    /// The part of it that is there.
    pub state: UnitState,
    /// Its play-out point on this host's clock.
    pub due: Instant,
    /// The unit as the channel delivered it; none of one that is late or lost.
    pub unit: Option<Unit>,
    /// Units since the one before it that have no play-out point, because the stream began, or began anew,
    /// with this one. They count as lost.
    pub lost_before: u64,
}

/// A receiver gets one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Played {
    /// A unit, or the mark of one.
    Unit(StreamUnit),
    /// The source closed the stream, and every unit that came has been played.
    End(End),
}

/// The counts of a stream at its receiver: once it has ended, each of its units is in one of the first four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamTally {
    /// Played whole.
    pub whole: u64,
    /// Played in part.
    pub in_part: u64,
    /// Came behind their play-out point, and were not played.
    pub late: u64,
    /// Never came.
    pub lost: u64,
    /// By how much the latest came behind its play-out point.
    pub latest_by_ns: u64,
}

struct Held {
    unit: Unit,
    octets: Vec<u8>,
}

impl Held {
    /// When all of it was on this host.
    fn arrived(&self) -> Instant {
        self.unit.arrived_at.unwrap_or(self.unit.dequeued_at)
    }
}

/// The receiver of a stream: gives each unit at its play-out point.
pub struct StreamSink {
    channel: RecvChannel,
    ahead: u64,
    playout: Option<Playout>,
    held: VecDeque<Held>,
    spare: Vec<Vec<u8>>,
    tally: StreamTally,
    /// Units that were marked as late and have not come.
    marked: Marked,
    is_counted: bool,
    end: Option<Result<End, RecvError>>,
}

impl StreamSink {
    /// Begins with a channel just accepted, whose source works ahead by `ahead` units at most.
    pub fn begin(channel: RecvChannel, ahead: u16) -> Self {
        let ahead = u64::from(ahead.clamp(1, AHEAD_MAX));
        let (held, spare, marked) = (VecDeque::new(), Vec::new(), Marked::default());
        let (tally, playout, is_counted) = (StreamTally::default(), None, false);
        Self { channel, ahead, playout, held, spare, tally, marked, is_counted, end: None }
    }

    /// Waits for the play-out point of the next unit and gives the unit, or its mark; a unit's octets replace
    /// what `into` held, and a mark leaves it empty. For the first unit of all it waits at most `patience`.
    ///
    /// # Errors
    /// [`RecvError::TimedOut`] for the first unit only; [`RecvError::Broken`] and [`RecvError::NodeGone`]
    /// when all units that came are played.
    pub fn next(&mut self, into: &mut Vec<u8>, patience: Span) -> Result<Played, RecvError> {
        into.clear();
        if self.playout.is_none() {
            let give_up = now() + patience;
            while self.held.is_empty() && self.end.is_none() {
                self.read(give_up.since(now()))?;
            }
        }
        let Some(first) = self.held.front() else {
            return match &self.end {
                Some(_) => self.over(),
                None => self.play(into),
            };
        };
        if self.playout.is_none() {
            let contract = self.channel.contract();
            let period = Span::from_nanos(contract.period_ns.max(1));
            let contract = (period, Span::from_nanos(contract.bound_ns));
            let begin = (first.unit.number, first.arrived());
            let mut playout = Playout::begin(contract, self.ahead, begin);
            playout.came(begin.0, begin.1);
            self.playout = Some(playout);
            return self.play_from(into, begin.0);
        }
        self.play(into)
    }

    /// Gives the unit in front, with which the play-out begins: the units before it have no points.
    fn play_from(&mut self, into: &mut Vec<u8>, lost: u64) -> Result<Played, RecvError> {
        self.tally.lost = self.tally.lost.saturating_add(lost);
        let played = self.play(into)?;
        Ok(match played {
            Played::Unit(unit) => Played::Unit(StreamUnit { lost_before: lost, ..unit }),
            end @ Played::End(_) => end,
        })
    }

    /// Reads until the play-out point of the next unit, then gives what is there of it.
    fn play(&mut self, into: &mut Vec<u8>) -> Result<Played, RecvError> {
        let (number, due) = self.read_until_due();
        let playout = self.playout.as_mut().expect("the first unit has come");
        let Some(front) = self.held.front() else {
            if self.end.is_some() {
                return self.over();
            }
            playout.pass();
            self.marked.add(number, due);
            return Ok(marked(number, due, UnitState::Late));
        };
        if front.unit.number > number {
            if playout.is_far(front.unit.number, front.arrived()) {
                let (first, lost) = (front.unit.number, front.unit.number - number);
                playout.begin_anew(first, front.arrived());
                return self.play_from(into, lost);
            }
            playout.pass();
            self.tally.lost = self.tally.lost.saturating_add(1);
            return Ok(marked(number, due, UnitState::Lost));
        }
        playout.pass();
        let Held { unit, octets } = self.held.pop_front().expect("it was in front");
        self.spare.push(std::mem::replace(into, octets));
        let state = match unit.missing_octets {
            0 => UnitState::Whole,
            missing_octets => UnitState::InPart { missing_octets },
        };
        let count = if unit.complete { &mut self.tally.whole } else { &mut self.tally.in_part };
        *count += 1;
        Ok(Played::Unit(StreamUnit { number, state, due, unit: Some(unit), lost_before: 0 }))
    }

    /// Takes what comes until the next unit's play-out point. Its number and that point.
    fn read_until_due(&mut self) -> (u64, Instant) {
        loop {
            let playout = self.playout.as_ref().expect("the first unit has come");
            let (next, due, held_max) = (playout.next(), playout.due(), playout.held_max());
            let left = due.since(now());
            let is_over = self.end.is_some();
            if is_over && self.held.is_empty() {
                return (next, due);
            }
            if is_over || self.held.len() >= held_max {
                // The end is told when the units are played; a ring that is full keeps the newest.
                crate::sleep_until(due);
                return (next, due);
            }
            match self.read(left) {
                Err(_) if left == Span::ZERO => return (next, due),
                Ok(()) | Err(_) => {}
            }
        }
    }

    /// Takes one unit, or the end.
    fn read(&mut self, patience: Span) -> Result<(), RecvError> {
        let mut octets = self.spare.pop().unwrap_or_default();
        match self.channel.recv(&mut octets, patience) {
            Ok(Received::Unit(unit)) => self.came(Held { unit, octets }),
            Ok(Received::End(end)) => self.end = Some(Ok(end)),
            Err(RecvError::TimedOut) => {
                self.spare.push(octets);
                return Err(RecvError::TimedOut);
            }
            Err(other) => self.end = Some(Err(other)),
        }
        Ok(())
    }

    fn came(&mut self, held: Held) {
        let (number, arrived) = (held.unit.number, held.arrived());
        let next = self.playout.as_ref().map_or(0, Playout::next);
        self.settle_before(number);
        if number >= next {
            if let Some(playout) = &mut self.playout
                && !playout.is_far(number, arrived)
            {
                playout.came(number, arrived);
            }
            self.held.push_back(held);
            return;
        }
        if let Some((marked, due)) = self.marked.first().filter(|(marked, _)| *marked == number) {
            self.marked.settle_to(marked + 1);
            // Of one whose point is kept no more: behind that of a later unit.
            let by = held.unit.dequeued_at.max(arrived).since(due).as_nanos();
            self.tally.latest_by_ns = self.tally.latest_by_ns.max(by);
            self.tally.late += 1;
        }
        self.spare.push(held.octets);
    }

    /// Units come in order: those before this one that were marked as late will never come.
    fn settle_before(&mut self, number: u64) {
        let lost = self.marked.settle_to(number);
        self.tally.lost = self.tally.lost.saturating_add(lost);
    }

    /// The end, once: units that never came are lost, if the source had them.
    fn over(&mut self) -> Result<Played, RecvError> {
        let end = self.end.expect("the stream is over");
        if !std::mem::replace(&mut self.is_counted, true) {
            let stated = end.ok().and_then(|end| end.units_sent).or(self.channel.units_stated());
            self.settle_before(stated.unwrap_or(u64::MAX));
            // Marks beyond the end were of no unit.
            self.marked.clear();
            let next = self.playout.as_ref().map_or(0, Playout::next);
            let behind = stated.unwrap_or(next).saturating_sub(next);
            self.tally.lost = self.tally.lost.saturating_add(behind);
        }
        end.map(Played::End)
    }

    /// The counts so far. A unit that was marked as late counts when it has come, or is known to be lost.
    pub fn tally(&self) -> StreamTally {
        self.tally
    }

    /// The channel, for its contract, its sender and the counts of the contract.
    pub fn channel(&self) -> &RecvChannel {
        &self.channel
    }

    /// As [`RecvChannel::withdrawn`].
    pub fn withdrawn(&mut self) -> Option<Withdrawn> {
        self.channel.withdrawn()
    }
}

fn marked(number: u64, due: Instant, state: UnitState) -> Played {
    Played::Unit(StreamUnit { number, state, due, unit: None, lost_before: 0 })
}
