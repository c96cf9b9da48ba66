//! What became of a channel's units: the same fields and the same words at both ends.

use crate::exit::{Exit, Failure, complain};
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
    /// A promise that was broken is never reported as success.
    pub fn exit(&self) -> Exit {
        if self.late + self.lost + self.incomplete == 0 { Exit::Done } else { Exit::Broken }
    }

    /// How a program ends that has carried these units: in one sentence, if there is anything to say.
    ///
    /// # Errors
    /// What ended it before its time, with what was broken until then.
    pub fn end(&self, bound_ns: Option<u64>, failure: Option<Failure>) -> Result<Exit, Failure> {
        let broken = self.sentence(bound_ns);
        match (failure, broken) {
            (Some(failure), None) => Err(failure),
            (Some(Failure { exit, sentence }), Some(broken)) => {
                Err(Failure { exit, sentence: format!("{sentence}; {broken}") })
            }
            (None, broken) => {
                broken.iter().for_each(|broken| complain(broken));
                Ok(self.exit())
            }
        }
    }

    /// What was broken, as one sentence; nothing where all was kept.
    pub fn sentence(&self, bound_ns: Option<u64>) -> Option<String> {
        let bound = bound_ns.map_or(String::new(), |bound| format!(" of {}", Span::from_nanos(bound)));
        let late = (self.late > 0).then(|| {
            let by = Span::from_nanos(self.latest_by_ns);
            format!("{} behind their bound{bound}, by at most {by}", self.late)
        });
        let lost = (self.lost > 0).then(|| format!("{} lost", self.lost));
        let part = (self.incomplete > 0).then(|| format!("{} in part", self.incomplete));
        let parts: Vec<String> = [late, lost, part].into_iter().flatten().collect();
        let all = self.units + self.lost + self.incomplete;
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
        assert_eq!((Came::default().exit(), Came::default().sentence(Some(1))), (Exit::Done, None));
        let late = Came { units: 240, late: 89, latest_by_ns: 40_000_000, ..Came::default() };
        assert_eq!(late.exit(), Exit::Broken);
        let said = late.sentence(Some(35_400_000)).unwrap();
        assert!(said.contains("of 240 units 89 behind their bound of 35.400 ms, by at most 40 ms"), "{said}");
        for broken in [Came { lost: 1, ..Came::default() }, Came { incomplete: 1, ..Came::default() }] {
            assert_eq!(broken.exit(), Exit::Broken);
        }
    }
}
