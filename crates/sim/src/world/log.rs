//! A run as lines of text: each event, and each rule that it broke. Reading it changes nothing of the run.

use crate::check::Violation;
use rota_units::{Instant, Span};

/// Takes one line; false when it takes no more.
type Sink = Box<dyn FnMut(&str) -> bool>;

/// The receiver of the log's lines, and the part of the run that they cover.
pub(super) struct Log {
    from: Instant,
    to: Instant,
    sink: Sink,
    /// Violations written so far.
    told: usize,
    /// Nothing is wanted any more: past the end of that part, or the reader has gone.
    is_over: bool,
}

impl Log {
    /// The event that happens now, or false when this part of the run is over.
    pub(super) fn event(&mut self, begin: Instant, now: Instant, line: impl FnOnce() -> String) -> bool {
        self.is_over |= now > self.to;
        if now >= self.from && !self.is_over {
            let line = format!("{:>15} {}", now.since(begin).as_nanos(), line());
            self.is_over = !(self.sink)(&line);
        }
        !self.is_over
    }

    /// The rules that were broken since it was last called, in every part of the run.
    fn broken(&mut self, violations: &[Violation]) {
        for found in &violations[self.told..] {
            let at = found.since_start();
            self.is_over |= !(self.sink)(&format!("!! {} {} at {at}", found.rule, found.what));
        }
        self.told = violations.len();
    }
}

impl super::World {
    /// Gives `sink` a line for each event from `from` to `to` after the start, and for each broken rule. The
    /// world stops after `to`, or when the sink returns false.
    pub fn keep_log(&mut self, from: Span, to: Option<Span>, sink: Sink) {
        let to = to.map_or(Instant::FAR, |to| super::EPOCH + to);
        let from = super::EPOCH + from;
        self.log = Some(Log { from, to, sink, told: 0, is_over: false });
    }

    /// True if the log ended before the run: the rules of a run's end were then not judged.
    pub fn is_cut_short(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.is_over)
    }

    /// Writes the rules that were broken since it was last called.
    pub(super) fn log_broken(&mut self) {
        if let Some(log) = &mut self.log {
            log.broken(&self.findings.violations);
        }
    }
}
