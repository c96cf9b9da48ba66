//! What is wrong with a filter, and where.

use std::fmt;

/// A filter that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// The whole filter.
    pub text: String,
    /// Where it went wrong, in letters, from 1; one beyond the last when something is missing.
    pub column: usize,
    /// What stood there, or that nothing did.
    pub found: String,
    /// What would have been right.
    pub wanted: String,
}

/// Letters of a filter that are shown before and behind the place where it went wrong.
const AROUND: usize = 60;
/// Letters of a word that are shown.
const WORD: usize = 40;

impl std::error::Error for FilterError {}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the filter, column {}: {}; {}", self.column, self.found, self.wanted)?;
        let at = self.column - 1;
        let from = at.saturating_sub(AROUND);
        let before = if from > 0 { "…" } else { "" };
        let shown: String = self.text.chars().skip(from).take(2 * AROUND).collect();
        let after = if self.text.chars().count() > from + 2 * AROUND { "…" } else { "" };
        writeln!(f, "  {before}{}{after}", harmless(&shown))?;
        write!(f, "  {}^", " ".repeat(at - from + usize::from(from > 0)))
    }
}

/// A word as it is quoted: not so much of it that the sentence is lost.
pub(super) fn quoted(word: &str) -> String {
    let cut: String = harmless(word).chars().take(WORD).collect();
    if cut.len() < word.len() && word.chars().count() > WORD {
        format!("'{cut}…'")
    } else {
        format!("'{cut}'")
    }
}

/// Letters that move nothing on a terminal.
pub(super) fn harmless(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_whitespace() { ' ' } else { letter })
        .map(|letter| if letter.is_control() { '?' } else { letter })
        .collect()
}
