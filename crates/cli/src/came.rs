//! The counts of a channel's units: the same fields and the same words at both ends.

use crate::exit::{Exit, Failure};
use rota::{ChannelTally, Span};

/// The end of a program that has carried these units; `None` if every promise was kept and nothing failed. A
/// broken promise takes precedence over the cause of the end: the code is 4, and the sentence states both.
/// The `cut` lost units that waited when a stream ended early were promised nothing: the cause is told.
pub fn end(
    came: &ChannelTally,
    bound_ns: Option<u64>,
    failure: Option<Failure>,
    cut: u64,
) -> Option<Failure> {
    let cut = if failure.is_some() { cut } else { 0 };
    let came = ChannelTally { lost: came.lost.saturating_sub(cut), ..*came };
    match (failure, sentence(&came, bound_ns)) {
        (failure, None) => failure,
        (None, Some(sentence)) => Some(Failure { exit: Exit::Broken, sentence }),
        (Some(failure), Some(broken)) => {
            Some(Failure { exit: Exit::Broken, sentence: format!("{}; {broken}", failure.sentence) })
        }
    }
}

/// One sentence that states the broken promises; `None` if every promise was kept.
fn sentence(came: &ChannelTally, bound_ns: Option<u64>) -> Option<String> {
    let bound = bound_ns.map_or(String::new(), |bound| format!(" of {}", Span::from_nanos(bound)));
    let broken = came.words_of_broken(&format!("their bound{bound}"))?;
    // The other end's numbers: none of them may be believed to be small.
    let all = came.units.saturating_add(came.lost).saturating_add(came.incomplete);
    Some(format!("the promise was broken: of {all} units {broken}; 'rota trace incident' tells the cause"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_kept_promise_is_success() {
        let exit = |came: ChannelTally, failure| end(&came, Some(35_400_000), failure, 1).map(|end| end.exit);
        assert_eq!(exit(ChannelTally::default(), None), None);
        assert_eq!(exit(ChannelTally::default(), Some(Failure::failed("gone"))), Some(Exit::Failed));
        let late = ChannelTally { units: 240, late: 89, latest_by_ns: 40_000_000, ..ChannelTally::default() };
        let said = sentence(&late, Some(35_400_000)).unwrap();
        assert!(said.contains("of 240 units 89 behind their bound of 35.400 ms, by at most 40 ms"), "{said}");
        for broken in [
            late,
            ChannelTally { lost: 1, ..ChannelTally::default() },
            ChannelTally { incomplete: 1, ..ChannelTally::default() },
        ] {
            assert_eq!(exit(broken, None), Some(Exit::Broken));
        }
        // A unit that waited when the stream ended early is no broken promise; a second one that is lost is.
        let cut = |lost| ChannelTally { lost, ..ChannelTally::default() };
        assert_eq!(exit(cut(1), Some(Failure::failed("gone"))), Some(Exit::Failed));
        assert_eq!(exit(cut(2), Some(Failure::failed("gone"))), Some(Exit::Broken));
        // The sentence names the end's cause and the broken promise.
        let both = end(&late, None, Some(Failure::failed("gone")), 0).unwrap();
        assert_eq!((both.exit, both.sentence.starts_with("gone; the promise")), (Exit::Broken, true));
    }

    /// A station with the key may say any number: `rota send` and `rota recv` panicked.
    #[test]
    fn no_number_of_the_other_end_is_too_large() {
        let all = u64::MAX;
        let came = ChannelTally { units: all, late: all, lost: all, incomplete: all, latest_by_ns: all };
        assert_eq!(end(&came, Some(all), None, all).map(|end| end.exit), Some(Exit::Broken));
    }
}
