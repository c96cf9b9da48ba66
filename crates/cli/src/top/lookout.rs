//! One turn of the monitor, the same for the screen, the page and `--once`: a look at the file, and the
//! picture after it.

use super::narrow::Narrow;
use super::picture::Picture;
use super::source::{Look, Source};
use super::watch::Watch;
use rota::{Instant, Span};

/// The node's file, and what has been seen of it.
pub struct Lookout {
    source: Source,
    /// What is made of it.
    pub watch: Watch,
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
        Self { source: Source::new(), watch: Watch::new(sampling, filter) }
    }

    /// Looks once.
    ///
    /// # Errors
    /// [`Absent`].
    pub fn look(&mut self, now: Instant) -> Result<Picture, Absent> {
        match self.source.look(now) {
            Look::Seen => Ok(self.watch.picture(now, &self.source)),
            Look::Gone => Err(Absent::Gone(self.source.why().to_owned())),
            Look::NotYet => Err(Absent::NotYet),
        }
    }

    /// Whether every station that reports has been measured over an interval at least.
    pub fn is_settled(&self) -> bool {
        self.watch.is_settled(&self.source.rows)
    }
}
