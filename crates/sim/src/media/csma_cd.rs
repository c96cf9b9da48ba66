//! One shared half-duplex segment with CSMA/CD, in integer nanoseconds (ISO/IEC 8802-3, clause 4).
//!
//! Every station hears every other one `propagation` later. A station that wants to send waits until the
//! carrier has been gone for one gap; two that start within one propagation of each other collide, jam,
//! and draw a back-off of 0..2^min(k, 10) slots after their k-th collision; after 16 the frame is
//! discarded. A station that has just succeeded starts again at k = 0 while the losers' ranges have grown:
//! this *capture* is what makes Table 1 of the RETHER paper uneven.
//!
//! ```text
//! Idle ─► Look ─► Sending ─► Idle | Look          (delivered, or discarded after 16 attempts)
//!          │ ▲        └────► Look                 (collision: jam, back-off)
//!          ▼ │
//!        Deferring                                (carrier: until the sender it waits for ends)
//! ```
//!
//! Simplified: one propagation delay for all pairs, and deference is judged when a station looks: a carrier
//! that came up in the last third of its gap is not heeded, as 8802-3 has it.

use crate::engine::Stream;
use rota_units::{BitRate, Instant, Octets, Span};
use std::collections::VecDeque;

/// Octets before the frame itself: preamble and start delimiter.
const PREAMBLE: u64 = 8;
/// Octets of a jam.
const JAM: u64 = 4;
/// The shortest frame, check sequence included; shorter ones are padded.
const FRAME_MIN: u64 = 64;
/// Collisions after which a frame is given up.
const ATTEMPTS_MAX: u32 = 16;
/// k above which the back-off range no longer doubles.
const BACKOFF_MAX: u32 = 10;

/// Whether a station that just sent keeps its advantage in the next collision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Capture {
    /// Standard back-off: the winner's range starts small again, so it tends to win again.
    #[default]
    Standard,
    /// Every frame on the wire ends everybody's old back-off range, not only the winner's, so that all start
    /// equal (the idea of Molle's binary logarithmic arbitration, 1994).
    Avoided,
}

/// What a segment is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Bits a second.
    pub rate: BitRate,
    /// From any station to any other.
    pub propagation: Span,
    /// The unit of back-off; at least twice the propagation, or collisions could pass unnoticed.
    pub slot: Span,
    /// Capture as the standard has it, or avoided.
    pub capture: Capture,
    /// Everything random follows from it.
    pub seed: u64,
}

impl Spec {
    /// 10 Mbit/s: slot 51.2 µs, gap 9.6 µs, and the 5 µs of a laboratory's cable.
    pub const fn ethernet_10(seed: u64) -> Self {
        Self {
            rate: BitRate::from_mbit(10),
            propagation: Span::from_micros(5),
            slot: Span::from_nanos(51_200),
            capture: Capture::Standard,
            seed,
        }
    }

    /// A segment of `rate`: its slot is 512 bit times, as at 10 and at 100 Mbit/s.
    pub fn ethernet(rate: BitRate, propagation: Span, capture: Capture, seed: u64) -> Self {
        Self { rate, propagation, slot: slot(rate), capture, seed }
    }

    /// The idle time before a frame: 96 bit times.
    pub fn gap(&self) -> Span {
        self.rate.span_of_up(Octets::new(12))
    }
}

/// 512 bit times, 51.2 µs at 10 Mbit/s.
pub fn slot(rate: BitRate) -> Span {
    rate.span_of_up(Octets::new(64))
}

/// One station's card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// Frames its memory holds, the one on the wire included.
    pub fifo_frames: usize,
    /// Idle time it leaves before a frame. 9.6 µs is the standard; real cards that wait less win more.
    pub gap: Span,
}

impl Card {
    /// As the standard has it, with room for `fifo_frames`.
    pub const fn standard(fifo_frames: usize) -> Self {
        Self { fifo_frames, gap: Span::from_nanos(9_600) }
    }
}

/// A station's place on the segment, from 0 in the order of [`CsmaCd::attach`].
pub type StationIndex = usize;

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameFate {
    /// Every other station has it.
    Delivered {
        /// Who sent it.
        from: StationIndex,
        /// What its sender called it.
        id: u64,
        /// When its first bit left.
        started: Instant,
        /// When its last bit left: the card has room again.
        sent: Instant,
        /// When its last bit arrived everywhere.
        at: Instant,
        /// Collisions before.
        collisions: u32,
    },
    /// Given up after 16 collisions.
    Discarded {
        /// Who tried.
        from: StationIndex,
        /// What its sender called it.
        id: u64,
        /// When.
        at: Instant,
    },
}

/// Why a frame was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The card's memory is full.
    #[error("the card of station {0} is full: wait until a frame has left it")]
    Full(StationIndex),
    /// Nobody attached that station.
    #[error("no station {0} is attached to the segment")]
    NoStation(StationIndex),
}

/// Why a segment cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// A collision could end before its sender hears it.
    #[error("the slot of {slot} is shorter than twice the propagation of {propagation}")]
    SlotTooShort {
        /// As asked for.
        slot: Span,
        /// As asked for.
        propagation: Span,
    },
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    id: u64,
    octets: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// Looks at the carrier at `at`; `gap_over` says that its gap ends just then.
    Look {
        at: Instant,
        gap_over: bool,
    },
    /// Waits for a sender that it hears.
    Deferring,
    /// On the wire until `ends`; `hit` once it has heard a collision.
    Sending {
        started: Instant,
        ends: Instant,
        hit: bool,
    },
}

#[derive(Clone, Debug)]
struct Station {
    card: Card,
    queue: VecDeque<Frame>,
    phase: Phase,
    /// Collisions of its first frame.
    collisions: u32,
    /// k of its back-off range.
    exponent: u32,
    /// The last time it was on the wire: from, until.
    last: (Instant, Instant),
    random: Stream,
}

/// Counters of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames taken by cards.
    pub sent: u64,
    /// Frames that arrived.
    pub delivered: u64,
    /// Frames given up.
    pub discarded: u64,
    /// Transmissions cut short, two or more in each collision.
    pub aborted: u64,
}

/// The segment.
#[derive(Clone, Debug)]
pub struct CsmaCd {
    spec: Spec,
    stations: Vec<Station>,
    outcomes: VecDeque<FrameFate>,
    counters: Counters,
}

impl CsmaCd {
    /// An idle segment without stations.
    ///
    /// # Errors
    /// [`SpecError`] when the slot is too short for the cable.
    pub fn new(spec: Spec) -> Result<Self, SpecError> {
        if spec.slot < spec.propagation * 2 {
            return Err(SpecError::SlotTooShort { slot: spec.slot, propagation: spec.propagation });
        }
        Ok(Self::of_sound(spec))
    }

    /// The same for a slot that is known to be long enough.
    pub(super) fn of_sound(spec: Spec) -> Self {
        Self { spec, stations: Vec::new(), outcomes: VecDeque::new(), counters: Counters::default() }
    }

    /// Adds a station.
    pub fn attach(&mut self, card: Card) -> StationIndex {
        let index = self.stations.len();
        let random = Stream::named(self.spec.seed, &format!("csma/cd {index}"));
        self.stations.push(Station {
            card,
            queue: VecDeque::new(),
            phase: Phase::Idle,
            collisions: 0,
            exponent: 0,
            last: (Instant::ZERO, Instant::ZERO),
            random,
        });
        index
    }

    /// Counters since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Frames in a station's card.
    pub fn queued(&self, station: StationIndex) -> usize {
        self.stations.get(station).map_or(0, |s| s.queue.len())
    }

    /// Hands a frame of `octets` (check sequence included, preamble not) to a station's card.
    ///
    /// Events before `now` happen first, so `now` must never go back.
    ///
    /// # Errors
    /// [`SendError`]: the card is full, or there is no such station.
    pub fn send(
        &mut self,
        now: Instant,
        station: StationIndex,
        id: u64,
        octets: Octets,
    ) -> Result<(), SendError> {
        self.run(now);
        let state = self.stations.get_mut(station).ok_or(SendError::NoStation(station))?;
        if state.queue.len() >= state.card.fifo_frames.max(1) {
            return Err(SendError::Full(station));
        }
        state.queue.push_back(Frame { id, octets: octets.get().max(FRAME_MIN) });
        self.counters.sent += 1;
        if state.phase == Phase::Idle {
            state.phase = Phase::Look { at: now, gap_over: false };
        }
        Ok(())
    }

    /// When something will happen next; [`Instant::FAR`] when nothing will.
    pub fn next_event(&self) -> Instant {
        if let Some(outcome) = self.outcomes.front() {
            return outcome.known();
        }
        self.next().map_or(Instant::FAR, |(at, _)| at)
    }

    /// Lets everything happen up to and including `now`, and returns what became of frames, oldest first.
    pub fn advance(&mut self, now: Instant) -> Vec<FrameFate> {
        self.run(now);
        self.outcomes.drain(..).collect()
    }

    fn run(&mut self, now: Instant) {
        while let Some((at, station)) = self.next().filter(|(at, _)| *at <= now) {
            match self.stations[station].phase {
                Phase::Look { gap_over, .. } => self.look(at, station, gap_over),
                Phase::Sending { started, hit, .. } => self.end(at, station, started, hit),
                Phase::Idle | Phase::Deferring => {}
            }
        }
    }

    /// The next thing that happens, and to whom; of several at one instant the lowest station's.
    fn next(&self) -> Option<(Instant, StationIndex)> {
        let at = |station: &Station| match station.phase {
            Phase::Look { at, .. } => Some(at),
            Phase::Sending { ends, .. } => Some(ends),
            Phase::Idle | Phase::Deferring => None,
        };
        let events = self.stations.iter().enumerate().filter_map(|(i, s)| Some((at(s)?, i)));
        events.min()
    }

    /// A station looks at the carrier: it sends, waits out its gap, or defers.
    fn look(&mut self, now: Instant, station: StationIndex, gap_over: bool) {
        let gap = self.stations[station].card.gap;
        // In the last third of its gap a station no longer listens.
        let deaf = if gap_over { gap.div_down(3) } else { Span::ZERO };
        let heard = |started: Instant| started + self.spec.propagation + deaf <= now;
        let hears = |other: &Station| match other.phase {
            Phase::Sending { started, .. } => heard(started),
            Phase::Idle | Phase::Look { .. } | Phase::Deferring => false,
        };
        if self.others(station).any(|(_, other)| hears(other)) {
            self.stations[station].phase = Phase::Deferring;
            return;
        }
        let ended = self.others(station).map(|(_, other)| other.last.1).filter(|at| *at > Instant::ZERO);
        let quiet_since =
            ended.map(|at| at + self.spec.propagation).fold(self.stations[station].last.1, Instant::max);
        let may_send = if quiet_since > Instant::ZERO { quiet_since + gap } else { now };
        if may_send > now {
            self.stations[station].phase = Phase::Look { at: may_send, gap_over: true };
        } else {
            self.start(now, station);
        }
    }

    fn others(&self, station: StationIndex) -> impl Iterator<Item = (StationIndex, &Station)> {
        self.stations.iter().enumerate().filter(move |(index, _)| *index != station)
    }

    /// The first bit leaves; whoever is on the wire now has not been heard here, so they collide.
    fn start(&mut self, now: Instant, station: StationIndex) {
        let octets = self.stations[station].queue.front().map_or(FRAME_MIN, |frame| frame.octets);
        let ends = now + self.spec.rate.span_of_up(Octets::new(PREAMBLE + octets));
        self.stations[station].phase = Phase::Sending { started: now, ends, hit: false };
        let propagation = self.spec.propagation;
        let sending = |s: &Station| match s.phase {
            Phase::Sending { started, .. } => Some(started),
            _ => None,
        };
        let met: Vec<(StationIndex, Instant)> =
            self.others(station).filter_map(|(i, s)| Some((i, sending(s)?))).collect();
        for (other, other_started) in met {
            self.hit(other, now + propagation);
            self.hit(station, now.max(other_started + propagation));
        }
    }

    /// A sender hears a collision: it finishes its preamble, jams and stops.
    fn hit(&mut self, station: StationIndex, heard: Instant) {
        let rate = self.spec.rate;
        let Phase::Sending { started, ends, hit } = &mut self.stations[station].phase else { return };
        let preamble_over = *started + rate.span_of_up(Octets::new(PREAMBLE));
        let stops = heard.max(preamble_over) + rate.span_of_up(Octets::new(JAM));
        // The first collision it hears ends it; a jam is not jammed again.
        if !*hit || stops < *ends {
            *ends = stops;
        }
        *hit = true;
    }

    /// The last bit, or the jam's last bit, has left.
    fn end(&mut self, now: Instant, station: StationIndex, started: Instant, hit: bool) {
        let state = &mut self.stations[station];
        state.last = (started, now);
        let Some(frame) = state.queue.front().copied() else {
            state.phase = Phase::Idle;
            return;
        };
        if hit {
            state.collisions += 1;
            state.exponent += 1;
            self.counters.aborted += 1;
        }
        if hit && state.collisions < ATTEMPTS_MAX {
            let wait = self.spec.slot * self.backoff(station);
            self.stations[station].phase = Phase::Look { at: now + wait, gap_over: false };
        } else {
            self.finish(now, station, started, frame, hit);
        }
        let propagation = self.spec.propagation;
        for (index, other) in self.stations.iter_mut().enumerate() {
            if index != station && other.phase == Phase::Deferring {
                other.phase = Phase::Look { at: now + propagation + other.card.gap, gap_over: true };
            }
        }
    }

    /// The frame leaves the card, delivered or given up.
    fn finish(&mut self, now: Instant, station: StationIndex, started: Instant, frame: Frame, hit: bool) {
        let state = &mut self.stations[station];
        state.queue.pop_front();
        let collisions = std::mem::take(&mut state.collisions);
        state.exponent = 0;
        let gap = state.card.gap;
        state.phase = match state.queue.is_empty() {
            true => Phase::Idle,
            false => Phase::Look { at: now + gap, gap_over: true },
        };
        let (from, id) = (station, frame.id);
        if hit {
            self.counters.discarded += 1;
            self.outcomes.push_back(FrameFate::Discarded { from, id, at: now });
            return;
        }
        if self.spec.capture == Capture::Avoided {
            self.stations.iter_mut().for_each(|state| state.exponent = 0);
        }
        self.counters.delivered += 1;
        let at = now + self.spec.propagation;
        self.outcomes.push_back(FrameFate::Delivered { from, id, started, sent: now, at, collisions });
    }

    /// Slots to wait after the collision that was just counted.
    fn backoff(&mut self, station: StationIndex) -> u64 {
        let state = &mut self.stations[station];
        let range = 1 << state.exponent.min(BACKOFF_MAX);
        state.random.below(range)
    }
}

impl FrameFate {
    /// When the medium knew it.
    const fn known(&self) -> Instant {
        match self {
            Self::Delivered { sent, .. } => *sent,
            Self::Discarded { at, .. } => *at,
        }
    }
}
