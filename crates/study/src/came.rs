//! The counts of a channel's units: the same fields and the same words at both ends.

use rota::{Span, Statistical, Tally};
use rota_answer::{Exit, Failure};

/// The rest of the counts, which only a sender has: its document and its sentence state the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// Of the lost units: those that waited when the stream ended early, and never left.
    pub unsent: u64,
    /// Units beside the others that left, but of which the receiver's node has reported nothing.
    pub unknown: u64,
}

/// The end of a program that has carried these units; `None` if every promise was kept and nothing failed. A
/// broken promise takes precedence over the cause of the end: the code is 4, and the sentence states both.
/// Lost units that never left because the stream ended early were promised nothing: they decide no code. A
/// promise of the statistical class is broken by more units only than it and chance explain.
pub fn end(
    came: &Tally,
    rest: Rest,
    (bound_ns, promise): (Option<u64>, Option<Statistical>),
    failure: Option<Failure>,
) -> Option<Failure> {
    let cut = if failure.is_some() { rest.unsent } else { 0 };
    let broken = Tally { lost: came.lost.saturating_sub(cut), ..*came };
    let is_allowed = promise.is_some_and(|promise| promise.is_kept(&broken));
    if is_allowed && failure.is_none() && rest.unknown == 0 {
        return None;
    }
    let counts = sentence(came, rest, bound_ns);
    if broken.broken() > 0 && !is_allowed {
        let why = failure.map_or(String::new(), |failure| format!("{}; ", failure.sentence));
        let counts = counts.unwrap_or_default();
        let sentence =
            format!("{why}the promise was broken: {counts}; 'rota trace incident' tells the cause");
        return Some(Failure { exit: Exit::Broken, sentence });
    }
    match (failure, counts) {
        (Some(failure), Some(counts)) => {
            Some(Failure { sentence: format!("{}; {counts}", failure.sentence), ..failure })
        }
        // Nothing else failed, but nobody knows what became of these units.
        (None, Some(counts)) => Some(Failure::failed(format!("the end was not confirmed: {counts}"))),
        (failure, None) => failure,
    }
}

/// The units that a statistical promise allows to be late or lost, in words; `None` where there are none.
pub fn allowed(came: &Tally, bound_ns: Option<u64>, promise: Option<Statistical>) -> Option<String> {
    let promise = promise.filter(|promise| promise.is_kept(came))?;
    let counts = sentence(came, Rest::default(), bound_ns)?;
    Some(format!("{counts}; the promise for {} holds", promise.words()))
}

/// The units that were not as promised or are not known, in words; `None` if every unit came in time.
fn sentence(came: &Tally, rest: Rest, bound_ns: Option<u64>) -> Option<String> {
    let bound =
        bound_ns.map_or(String::new(), |bound| format!(" of {}", Span::from_nanos(bound).printed_up()));
    let mut parts: Vec<String> = came.words_of_broken(&format!("their bound{bound}")).into_iter().collect();
    if rest.unsent > 0 {
        parts.push(format!("{} of the lost waited at the end and never left", rest.unsent));
    }
    if rest.unknown > 0 {
        parts.push(format!("{} unknown, as the receiver's node has told nothing of them", rest.unknown));
    }
    // The other end's numbers: none of them may be believed to be small.
    let all = came.units.saturating_add(came.lost).saturating_add(came.incomplete);
    let all = all.saturating_add(rest.unknown);
    (!parts.is_empty()).then(|| format!("of {all} units {}", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_REST: Rest = Rest { unsent: 0, unknown: 0 };

    #[test]
    fn only_a_kept_promise_is_success() {
        let rest = Rest { unsent: 1, unknown: 0 };
        let exit =
            |came: Tally, failure| end(&came, rest, (Some(35_400_000), None), failure).map(|end| end.exit);
        assert_eq!(end(&Tally::default(), NO_REST, (None, None), None).map(|end| end.exit), None);
        assert_eq!(exit(Tally::default(), Some(Failure::failed("gone"))), Some(Exit::Failed));
        let late = Tally { units: 240, late: 89, latest_by_ns: 40_000_000, ..Tally::default() };
        let said = sentence(&late, NO_REST, Some(35_400_000)).unwrap();
        assert!(said.contains("of 240 units 89 behind their bound of 35.400 ms, by at most 40 ms"), "{said}");
        for broken in
            [late, Tally { lost: 1, ..Tally::default() }, Tally { incomplete: 1, ..Tally::default() }]
        {
            assert_eq!(exit(broken, None), Some(Exit::Broken));
        }
        // A unit that waited when the stream ended early is no broken promise; a second one that is lost is.
        let cut = |lost| Tally { lost, ..Tally::default() };
        assert_eq!(exit(cut(1), Some(Failure::failed("gone"))), Some(Exit::Failed));
        assert_eq!(exit(cut(2), Some(Failure::failed("gone"))), Some(Exit::Broken));
        // The sentence names the end's cause and the broken promise.
        let both = end(&late, NO_REST, (None, None), Some(Failure::failed("gone"))).unwrap();
        assert_eq!((both.exit, both.sentence.starts_with("gone; the promise")), (Exit::Broken, true));
    }

    #[test]
    fn a_statistical_promise_is_broken_by_more_than_chance_alone() {
        let promise =
            Statistical { late_ppb: 10_000_000, loss_ppb: 10_000_000, burst: 1, ..Statistical::default() };
        let exit = |late, failure| {
            let came = Tally { units: 1_000, late, ..Tally::default() };
            end(&came, NO_REST, (None, Some(promise)), failure).map(|end| end.exit)
        };
        assert_eq!((exit(10, None), exit(19, None), exit(20, None)), (None, None, Some(Exit::Broken)));
        assert_eq!(exit(19, Some(Failure::failed("gone"))), Some(Exit::Failed));
        let said =
            allowed(&Tally { units: 1_000, late: 2, ..Tally::default() }, None, Some(promise)).unwrap();
        assert_eq!(said, "of 1000 units 2 behind their bound; the promise for 99 % of the units holds");
        assert_eq!(allowed(&Tally::default(), None, Some(promise)), None);
    }

    /// `rota recv` ended with 1, although nothing was lost: its program had read every unit.
    #[test]
    fn unread_units_are_stated_beside_lost_or_incomplete_ones_only() {
        let came = Tally { units: 400, unread: 54, ..Tally::default() };
        assert_eq!(end(&came, NO_REST, (None, None), None).map(|end| end.sentence), None);
        for came in [Tally { lost: 54, ..came }, Tally { incomplete: 54, ..came }] {
            let said = end(&came, NO_REST, (None, None), None).unwrap();
            assert!(said.exit == Exit::Broken && said.sentence.contains("of these 54 that the receiving"));
        }
    }

    /// The document had three lost units, and the sentence beside it two of 39.
    #[test]
    fn the_sentence_of_an_early_end_states_the_counts_of_the_document() {
        let came = Tally { units: 30, lost: 3, ..Tally::default() };
        let rest = Rest { unsent: 1, unknown: 7 };
        let said = end(&came, rest, (None, None), Some(Failure::failed("gone"))).unwrap();
        let counts = "of 40 units 3 lost, 1 of the lost waited at the end and never left, 7 unknown, as \
                      the receiver's node has told nothing of them";
        assert_eq!(said.exit, Exit::Broken);
        assert!(said.sentence.starts_with(&format!("gone; the promise was broken: {counts};")), "{said:?}");
        // Units that are unknown, or never left, are stated also where no promise is known to be broken.
        let came = Tally { units: 30, lost: 1, ..Tally::default() };
        let said = end(&came, rest, (None, None), Some(Failure::failed("gone"))).unwrap();
        assert!(said.exit == Exit::Failed && said.sentence.starts_with("gone; of 38 units 1 lost, "));
        let unknown = Rest { unsent: 0, unknown: 7 };
        let came = Tally { units: 30, ..Tally::default() };
        let said = end(&came, unknown, (None, None), None).unwrap();
        assert!(said.exit == Exit::Failed && said.sentence.contains("not confirmed: of 37 units 7 unknown"));
    }

    #[test]
    fn the_sentence_counts_each_unit_in_the_sum_of_all() {
        let came = Tally { units: 30, lost: 3, incomplete: 2, ..Tally::default() };
        let said = end(&came, Rest { unsent: 0, unknown: 5 }, (None, None), None).unwrap();
        assert!(said.sentence.contains(": of 40 units 3 lost, 2 "), "{said:?}");
    }

    /// A station with the key may say any number: `rota send` and `rota recv` panicked.
    #[test]
    fn no_number_of_the_other_end_is_too_large() {
        let all = u64::MAX;
        let (units, late, lost) = (all, all, all);
        let came = Tally { units, late, lost, incomplete: all, latest_by_ns: all, unread: all };
        let rest = Rest { unsent: all, unknown: all };
        assert_eq!(end(&came, rest, (Some(all), None), None).map(|end| end.exit), Some(Exit::Broken));
    }
}
