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

impl std::error::Error for FilterError {}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the filter, column {}: {}; {}", self.column, self.found, self.wanted)?;
        writeln!(f, "  {}", harmless(&self.text))?;
        write!(f, "  {}^", " ".repeat(self.column - 1))
    }
}

/// Letters that move nothing on a terminal.
pub(super) fn harmless(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_whitespace() { ' ' } else { letter })
        .map(|letter| if letter.is_control() { '?' } else { letter })
        .collect()
}
