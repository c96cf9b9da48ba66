//! Every number with its unit, so that no code adds a rate to a time.
//!
//! All arithmetic is exact integer arithmetic. The direction of a rounding stands in
//! the method's name (`…_up`, `…_down`); guarantee code rounds against the applicant.
//!
//! ```
//! use rota_units::{BitRate, Octets, Span, parse_rate, parse_span};
//!
//! let rate = BitRate::from_mbit(10);
//! // 1,538 octets are a full frame on the wire; 1 us holds one whole octet of it.
//! assert_eq!(rate.span_of_up(Octets::new(1_538)), Span::from_nanos(1_230_400));
//! assert_eq!(rate.octets_in_down(Span::from_micros(1)), Octets::new(1));
//! assert_eq!(parse_rate("1.5mbit")?.as_bps(), 1_500_000);
//! assert!(parse_span("33").unwrap_err().to_string().starts_with("'33' "));
//! # Ok::<(), rota_units::ParseUnitError>(())
//! ```
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
