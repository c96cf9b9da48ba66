//! Every number with its unit, so that nobody adds a rate to a time.
//!
//! All arithmetic is exact integer arithmetic. Where a result must be rounded the direction stands in
//! the method's name (`…_up`, `…_down`); guarantee code rounds against the applicant.
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

#[doc(hidden)]
pub mod fuzz;
mod parse;
mod rate;
mod time;

pub use parse::{ParseUnitError, parse_octets, parse_rate, parse_span};
pub use rate::{BitRate, Octets};
pub use time::{Instant, Span};
