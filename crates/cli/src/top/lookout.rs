//! One turn of the monitor, the same for the screen, the page and `--once`: a look at the file, and the
//! picture after it.

use super::narrow::Narrow;
use super::picture::{Beyond, Picture};
use super::source::{Look, Source};
use super::warn;
use super::watch::Watch;
use rota::{Instant, Span};

/// The node's file, and what has been seen of it.
pub struct Lookout {
    source: Source,
    /// The rates of each port.
    watches: Vec<Watch>,
    /// The interval that each one begins with.
    sampling: Span,
    filter: Narrow,
}

/// Why there is no picture.
pub enum Absent {
    /// No node runs here, or the one that did has ended; as one sentence.
    Gone(String),
    /// There is a node, but it has not written yet.
    NotYet,
}

impl Absent {
    /// What is shown instead.
    pub fn picture(self) -> Picture {
        match self {
            Self::Gone(why) => Picture::without_node(&why),
            Self::NotYet => Picture::without_node("the node of this station begins"),
        }
    }
}

impl Lookout {
    /// Nothing is looked at yet.
    pub fn new(sampling: Span, filter: Narrow) -> Self {
        Self { source: Source::new(), watches: Vec::new(), sampling, filter }
    }

    /// Looks once.
    ///
    /// # Errors
    /// [`Absent`].
    pub fn look(&mut self, now: Instant) -> Result<Picture, Absent> {
        match self.source.look(now) {
            Look::Seen => Ok(self.picture(now)),
            Look::Gone => Err(Absent::Gone(self.source.why().to_owned())),
            Look::NotYet => Err(Absent::NotYet),
        }
    }

    /// The picture of the first port that is there, with those of the others in it.
    fn picture(&mut self, now: Instant) -> Picture {
        let ports = self.source.ports();
        self.watches.truncate(ports.len());
        while self.watches.len() < ports.len() {
            self.watches.push(Watch::new(self.sampling, self.filter.clone()));
        }
        let of = ports.iter().zip(&mut self.watches);
        let mut there = of.filter(|(seen, _)| !seen.is_lost()).map(|(seen, watch)| watch.picture(now, seen));
        let mut picture = there.next().unwrap_or_default();
        let circuits = self.source.circuits().iter();
        let circuits = circuits.filter(|circuit| self.filter.passes_circuit(&picture.name, circuit)).cloned();
        let circuits = circuits.collect();
        let (paths, other_ports) = (self.source.paths().to_vec(), there.collect());
        picture.beyond = Beyond { paths, circuits, other_ports };
        for lost in ports.iter().filter(|seen| seen.is_lost()) {
            picture.warnings.insert(0, warn::of_lost_port(&lost.rows.segment.interface()));
        }
        picture
    }

    /// True if every station that reports has been measured over an interval at least, on each port.
    pub fn is_settled(&self) -> bool {
        let mut all = self.source.ports().iter().zip(&self.watches);
        all.all(|(seen, watch)| seen.is_lost() || watch.is_settled(&seen.rows))
    }

    /// From now on only what passes is shown.
    pub fn set_filter(&mut self, filter: &Narrow) {
        self.filter = filter.clone();
        self.watches.iter_mut().for_each(|watch| watch.set_filter(filter.clone()));
    }

    /// From now on it looks so often.
    pub fn set_sampling(&mut self, sampling: Span) {
        self.sampling = sampling;
        self.watches.iter_mut().for_each(|watch| watch.set_sampling(sampling));
    }

    /// Averages and maxima begin anew.
    pub fn begin_anew(&mut self) {
        self.watches.iter_mut().for_each(Watch::begin_anew);
    }
}
