//! A channel that moves to another path, on which something else is guaranteed: both ends say so.

use crate::clock;
use rota::Withdrawn;
use rota_units::{Instant, Span};
use serde::{Deserialize, Serialize};

/// How often an end looks.
const LOOK: Span = Span::from_millis(100);

/// Another path of a channel, and what is guaranteed there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// The part of the way for which nothing is guaranteed; null where all is.
    pub withdrawn: Option<Withdrawn>,
}

impl Moved {
    /// One sentence.
    pub fn words(&self) -> String {
        match self.withdrawn {
            Some(withdrawn) => format!("moved to another path: {withdrawn}"),
            None => "moved to another path, where all is guaranteed".to_owned(),
        }
    }
}

/// The statement of an end about its way, and when it is looked at again.
#[derive(Clone, Copy, Debug)]
pub struct Guarantee {
    said: Option<Withdrawn>,
    look: Instant,
}

impl Guarantee {
    /// Of a channel that has opened with this one.
    pub fn said(withdrawn: Option<Withdrawn>) -> Self {
        Self { said: withdrawn, look: clock::now() }
    }

    /// Looks, from time to time: another path, of which nothing was said.
    pub fn moved(&mut self, ask: impl FnOnce() -> Option<Withdrawn>) -> Option<Moved> {
        self.moved_by(clock::now(), ask)
    }

    fn moved_by(&mut self, now: Instant, ask: impl FnOnce() -> Option<Withdrawn>) -> Option<Moved> {
        if now < self.look {
            return None;
        }
        self.look = now + LOOK;
        let withdrawn = ask();
        if withdrawn == self.said {
            return None;
        }
        self.said = withdrawn;
        Some(Moved { withdrawn })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_guaranteed_is_said_when_it_has_changed_and_once() {
        let hop = Withdrawn { from: rota::NodeName::new("g1"), to: rota::NodeName::new("g2"), more: 0 };
        let mut guarantee = Guarantee { said: None, look: Instant::ZERO };
        let at = |ms: u64| Instant::ZERO + Span::from_millis(ms);
        assert_eq!(guarantee.moved_by(at(0), || None), None);
        assert_eq!(guarantee.moved_by(at(99), || panic!("not so soon")), None);
        let moved = guarantee.moved_by(at(100), || Some(hop)).expect("it has moved");
        assert_eq!(moved.words(), "moved to another path: no guarantee from g1 to g2");
        assert_eq!(guarantee.moved_by(at(200), || Some(hop)), None, "once");
        let back = guarantee.moved_by(at(300), || None).expect("it has moved back");
        assert_eq!(back.words(), "moved to another path, where all is guaranteed");
    }
}
