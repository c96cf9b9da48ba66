//! A fuzz target as a plain function: a fuzzer or a committed corpus calls it with any octets.

use crate::{parse_octets, parse_rate, parse_span};

/// Any octets as a rate, a time and a size. No octets may cause a panic, and a value that was read
/// must be written in a form that reads back as the same value.
pub fn fuzz_quantities(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(rate) = parse_rate(&text) {
        assert_eq!(parse_rate(&format!("{}bit", rate.as_bps())), Ok(rate));
    }
    if let Ok(span) = parse_span(&text) {
        assert_eq!(parse_span(&format!("{}ns", span.as_nanos())), Ok(span));
    }
    let _ = parse_octets(&text);
}
