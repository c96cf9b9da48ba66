//! Frames of this station's other machines: signalling, and its report. In plain mode they leave at once,
//! among the medium's control frames; in token mode they wait in the queue for a grant, and then leave at
//! once as well. Such a frame is written only when its turn comes, so that it has the keys and numbers of
//! that moment.

use super::Port;
use super::queue::{Entry, Origin, SIGNALLING};
use crate::io::FrameBuf;
use rota_medium::door::Way;
use rota_medium::{BODY, FRAME_OCTETS, ModeName};
use rota_units::Instant;
use rota_wire::{Kind, MacAddr, Report, ReportHead, Signal, TALLY_OCTETS, Verb};
use std::collections::VecDeque;

/// Signals that may wait for the token.
const SIGNALS_MAX: usize = 256;
/// The charge of a visit for a signal, and a little more.
const SIGNAL_OCTETS: u16 = FRAME_OCTETS + (Signal::OCTETS - TALLY_OCTETS + 6) as u16;

/// The largest frame of a signal.
fn signal_octets(signal: &Signal) -> u16 {
    SIGNAL_OCTETS + if signal.verb.has_tally() { TALLY_OCTETS as u16 } else { 0 }
}

/// A frame whose turn among the medium's frames is to come.
#[derive(Clone, Copy, Debug)]
enum OwnFrame {
    Signal(MacAddr, Signal),
    Report,
    Introduction,
    /// The medium's frames go on behind it.
    Mark,
}

/// This station's own frames that wait.
#[derive(Clone, Debug)]
pub(super) struct Own {
    turns: VecDeque<OwnFrame>,
    /// Their turn has come, up to the next mark.
    writing: bool,
    /// Signals that wait in the queue; an entry there names its place here.
    signals: Vec<Option<(MacAddr, Signal)>>,
    /// The next report, and whether it waits; none where this station makes none.
    report: Option<Box<(Report, bool)>>,
}

impl Own {
    pub(super) fn new(reports: bool) -> Self {
        Self {
            turns: VecDeque::with_capacity(1024),
            writing: false,
            signals: Vec::with_capacity(SIGNALS_MAX),
            report: reports.then(|| Box::new((Report::new(ReportHead::default()), false))),
        }
    }

    pub(super) const fn begin(&mut self) {
        self.writing = true;
    }

    /// True if frames are written now, up to the next mark.
    pub(super) const fn is_writing(&self) -> bool {
        self.writing
    }

    pub(super) fn push_mark(&mut self) {
        self.turns.push_back(OwnFrame::Mark);
    }

    /// An entry has left the queue.
    pub(super) fn push_entry(&mut self, origin: Origin) {
        let turn = match origin {
            Origin::Announce => Some(OwnFrame::Introduction),
            Origin::Report => Some(OwnFrame::Report),
            Origin::Control(index) => {
                self.signals[usize::from(index)].take().map(|(to, signal)| OwnFrame::Signal(to, signal))
            }
            Origin::Host(_) | Origin::Llc(_) | Origin::Circuit(_) => None,
        };
        self.turns.extend(turn);
    }

    /// Signals that wait in the queue, for a model checker and for tests.
    #[cfg(any(test, feature = "model"))]
    pub(super) fn signals(&self) -> impl Iterator<Item = &(MacAddr, Signal)> {
        self.signals.iter().flatten()
    }

    /// True if no frame waits for its turn.
    pub(super) fn is_drained(&self) -> bool {
        self.turns.is_empty()
    }
}

impl Port {
    /// Queues signalling of ours: at once in plain mode, at the highest level in token mode.
    pub(crate) fn send_signal(&mut self, now: Instant, to: MacAddr, signal: Signal) {
        self.heed(now);
        if matches!(self.medium.mode(), ModeName::Plain | ModeName::Joining) {
            self.own.turns.push_back(OwnFrame::Signal(to, signal));
            self.own.push_mark();
            self.medium.queue_ports();
            return;
        }
        let signals = &mut self.own.signals;
        if signals.contains(&Some((to, signal))) {
            return;
        }
        let free = signals.iter().position(Option::is_none);
        if free.is_none() && signals.len() >= SIGNALS_MAX {
            // Every signal is repeated until it is answered, so one that finds no room is only late.
            return;
        }
        let index = free.unwrap_or_else(|| {
            signals.push(None);
            signals.len() - 1
        });
        signals[index] = Some((to, signal));
        let origin = Origin::Control(index as u16);
        self.enqueue(now, SIGNALLING, Entry { origin, octets: signal_octets(&signal) });
    }

    /// Queues this station's report, as ordinary traffic of the lowest level where the token rules. On the
    /// way between the modes nothing that can wait is sent.
    pub(crate) fn send_report(&mut self, now: Instant, report: &Report) {
        let (mode, leaving) = (self.medium.mode(), self.medium.is_leaving());
        let Some(place) = &mut self.own.report else { return };
        if place.1 || leaving || !matches!(mode, ModeName::Token | ModeName::Paced | ModeName::Plain) {
            return;
        }
        **place = (*report, true);
        if mode == ModeName::Plain {
            self.heed(now);
            self.own.turns.push_back(OwnFrame::Report);
            self.own.push_mark();
            self.medium.queue_ports();
            return;
        }
        let octets = FRAME_OCTETS + report.octets() as u16;
        self.enqueue(now, 0, Entry { origin: Origin::Report, octets });
    }

    /// The medium is free for all again: the own frames that wait in the queue leave at the place that it has
    /// kept for them. The host's frames leave at the link's pace (`flush.rs`). Link control's frames leave
    /// when they are asked for, because their messages may end before.
    pub(super) fn flush_own(&mut self) {
        while let Some(entry) = self.queue.pop_own() {
            if entry.origin == Origin::Announce {
                self.medium.take_introduction();
            }
            self.own.push_entry(entry.origin);
        }
        self.own.push_mark();
        self.lower_demand();
    }

    /// Writes the next own frame, if it is their turn, and says how long it is. One whose receiver is gone is
    /// none.
    pub(super) fn write_own(&mut self, now: Instant, frame: &mut FrameBuf<'_>) -> Option<u16> {
        while self.own.writing {
            let written = match self.own.turns.pop_front() {
                Some(OwnFrame::Signal(to, signal)) => self.write_signal(to, &signal, frame.bytes),
                Some(OwnFrame::Report) => self.write_report(frame.bytes),
                Some(OwnFrame::Introduction) => self.medium.write_introduction(now, frame.bytes),
                Some(OwnFrame::Mark) | None => {
                    self.own.writing = false;
                    None
                }
            };
            if written.is_some() {
                return written;
            }
        }
        None
    }

    fn write_signal(&mut self, to: MacAddr, signal: &Signal, frame: &mut [u8]) -> Option<u16> {
        // A question about one of the two addresses of a station goes to that one.
        let asks = signal.verb == Verb::Reach;
        let way = if asks { Way::Exactly { station: to, group: signal.code != 0 } } else { Way::Station(to) };
        let octets = signal.emit(&mut frame[BODY..]);
        self.medium.seal_for_port(frame, way, Kind::Signal, octets)
    }

    fn write_report(&mut self, frame: &mut [u8]) -> Option<u16> {
        let (report, waits) = &mut **self.own.report.as_mut()?;
        *waits = false;
        let octets = report.emit(&mut frame[BODY..]);
        self.medium.seal_for_port(frame, Way::All, Kind::Report, octets)
    }
}
