//! The counts of a channel's units: the same fields and the same words at both ends.

use crate::exit::{Exit, Failure};
use rota::{ChannelTally, Span};
use serde::{Deserialize, Serialize};

/// The counts of one channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Came {
    /// Units that came whole.
    pub units: u64,
    /// Of these: units that came behind their bound.
    pub late: u64,
    /// Units of which nothing came.
    pub lost: u64,
    /// Units that came in part.
    pub incomplete: u64,
    /// By how much the latest of the late units missed its bound.
    pub latest_by_ns: u64,
}

impl From<ChannelTally> for Came {
    fn from(tally: ChannelTally) -> Self {
        let ChannelTally { units, late, lost, incomplete, latest_by_ns } = tally;
        Self { units, late, lost, incomplete, latest_by_ns }
    }
}

impl Came {
    /// The end of a program that has carried these units; `None` if every promise was kept and nothing
    /// failed. A broken promise takes precedence over the cause of the end: the code is 4, and the sentence
    /// states both.
    pub fn end(&self, bound_ns: Option<u64>, failure: Option<Failure>) -> Option<Failure> {
        match (failure, self.sentence(bound_ns)) {
            (failure, None) => failure,
            (None, Some(sentence)) => Some(Failure { exit: Exit::Broken, sentence }),
            (Some(failure), Some(broken)) => {
                Some(Failure { exit: Exit::Broken, sentence: format!("{}; {broken}", failure.sentence) })
            }
        }
    }

    /// One sentence that states the broken promises; `None` if every promise was kept.
    pub fn sentence(&self, bound_ns: Option<u64>) -> Option<String> {
        let bound = bound_ns.map_or(String::new(), |bound| format!(" of {}", Span::from_nanos(bound)));
        let late = (self.late > 0).then(|| {
            let by = Span::from_nanos(self.latest_by_ns);
            format!("{} behind their bound{bound}, by at most {by}", self.late)
        });
        let lost = (self.lost > 0).then(|| format!("{} lost", self.lost));
        let part = (self.incomplete > 0).then(|| format!("{} in part", self.incomplete));
        let parts: Vec<String> = [late, lost, part].into_iter().flatten().collect();
        // The other end's numbers: none of them may be believed to be small.
        let all = self.units.saturating_add(self.lost).saturating_add(self.incomplete);
        (!parts.is_empty()).then(|| {
            let what = parts.join(", ");
            format!("the promise was broken: of {all} units {what}; 'rota trace incident' tells the cause")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_kept_promise_is_success() {
        let exit = |came: Came, failure| came.end(Some(35_400_000), failure).map(|end| end.exit);
        assert_eq!(exit(Came::default(), None), None);
        assert_eq!(exit(Came::default(), Some(Failure::failed("gone"))), Some(Exit::Failed));
        let late = Came { units: 240, late: 89, latest_by_ns: 40_000_000, ..Came::default() };
        let said = late.sentence(Some(35_400_000)).unwrap();
        assert!(said.contains("of 240 units 89 behind their bound of 35.400 ms, by at most 40 ms"), "{said}");
        for broken in [late, Came { lost: 1, ..Came::default() }, Came { incomplete: 1, ..Came::default() }] {
            assert_eq!(exit(broken, None), Some(Exit::Broken));
        }
        // The sentence names the end's cause and the broken promise.
        let both = late.end(None, Some(Failure::failed("gone"))).unwrap();
        assert_eq!((both.exit, both.sentence.starts_with("gone; the promise")), (Exit::Broken, true));
    }

    /// A station with the key may say any number: `rota send` and `rota recv` panicked.
    #[test]
    fn no_number_of_the_other_end_is_too_large() {
        let all = u64::MAX;
        let came = Came { units: all, late: all, lost: all, incomplete: all, latest_by_ns: all };
        assert_eq!(came.end(Some(all), None).map(|end| end.exit), Some(Exit::Broken));
    }
}
