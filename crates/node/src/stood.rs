//! Stalls of this station in words for its status.

use rota_driver::stall::StallEvent;
use rota_units::{Instant, Span};

/// Shorter stalls stand in the counters only: hardly a channel notices them.
const LONG: Span = Span::from_millis(100);
/// How long a stall stays in the status.
const LATELY: Span = Span::from_millis(60_000);

/// The sentence about the longest stall of the last minute.
pub(crate) fn note(stalls: &[StallEvent], now: Instant) -> Option<String> {
    let counts = |stall: &&StallEvent| stall.length() >= LONG && now.since(stall.to) < LATELY;
    let longest = stalls.iter().filter(counts).max_by_key(|stall| stall.length())?;
    let seconds = now.since(longest.to).as_nanos() / 1_000_000_000;
    Some(format!(
        "this node stood still for {} until {seconds} s ago; if that is longer than the death timer, the \
         other stations went on without it and ended their channels to it",
        longest.length()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_driver::stall::StallKind;

    #[test]
    fn the_longest_stall_of_the_last_minute_is_told() {
        let ms = |ms| Instant::ZERO + Span::from_millis(ms);
        let stall = |from, to| StallEvent { from: ms(from), to: ms(to), kind: StallKind::TimerLate };
        let stalls = [stall(1_000, 1_050), stall(2_000, 3_000), stall(4_000, 4_200)];
        let said = note(&stalls, ms(8_500)).expect("a long one");
        assert!(said.starts_with("this node stood still for 1 s until 5 s ago;"), "{said}");
        let later = note(&stalls, ms(63_500)).expect("another one");
        assert!(later.starts_with("this node stood still for 200 ms until 59 s ago;"), "{later}");
        assert_eq!(note(&stalls, ms(64_200)), None);
        assert_eq!(note(&stalls[..1], ms(1_100)), None, "a short one");
    }
}
