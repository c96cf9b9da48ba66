//! How each command of the program `rota` answers: its exit code, the sentence of its failure, its text or
//! its JSON document, and its end by a signal.
#![forbid(unsafe_code)]

mod ends;
mod exit;
pub mod json;
mod output;

pub use ends::{Asked, Ends};
pub use exit::{Exit, Failure, complain, put_error_line};
pub use output::{Output, written};

/// How a command prints its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs: one JSON document on standard output; messages go to standard error.
    Json,
}

/// As `println!`, but a reader that has gone away (`rota status | head`) is no reason to panic, and any other
/// error ends the program: what was asked for was not written.
#[macro_export]
macro_rules! outln {
    ($($words:tt)*) => {{
        use std::io::Write;
        $crate::written(writeln!(std::io::stdout(), $($words)*));
    }};
}

impl Format {
    /// Prints a value: as one document, or as `print` does for people.
    pub fn tell<T: serde::Serialize>(self, value: &T, print: impl FnOnce(&T)) {
        match self {
            Self::Json => outln!("{}", json::document(value)),
            Self::Text => print(value),
        }
    }
}
