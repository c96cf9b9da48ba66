//! The recovery timers in force, in numbers and in one sentence.

use crate::status::{PortCopy, PortFacts};
use rota_proto::{TimersInForce, Why};
use rota_shm::control::TimersInfo;
use rota_units::Span;
use rota_wire::Leases;

/// As `rota status` prints it.
pub(crate) fn info(port: &PortCopy, facts: &PortFacts) -> TimersInfo {
    let timers = &port.timers;
    let named = |station: u16| match port.name_of(station) {
        "" => format!("station {station}"),
        name => format!("station {station} ({name})"),
    };
    let (why, stall, station) = match timers.why {
        Why::Configured => ("configured", None, 0),
        Why::NoNews => ("no-news", None, 0),
        Why::Unwatched(station) => ("watching", None, station),
        Why::Stall(stall, station) => ("stalls", Some(stall), station),
    };
    TimersInfo {
        death_ns: timers.death.as_nanos(),
        silence_ns: timers.silence.as_nanos(),
        hold_ns: timers.hold.as_nanos(),
        drain_ns: timers.drain.as_nanos(),
        why: why.into(),
        stall_ns: stall.map(Span::as_nanos),
        station: (station != 0).then_some(station),
        sentence: sentence(timers, facts.configured, facts.watch, &named(station)),
    }
}

/// The death timer in force and its reason, as the monitor's file has them.
pub(crate) fn words(timers: &TimersInForce) -> [u64; 4] {
    let (why, stall, station) = match timers.why {
        Why::Configured => (0, Span::ZERO, 0),
        Why::NoNews => (1, Span::ZERO, 0),
        Why::Unwatched(station) => (2, Span::ZERO, station),
        Why::Stall(stall, station) => (3, stall, station),
    };
    [timers.death.as_nanos(), why, stall.as_nanos(), u64::from(station)]
}

/// The sentence of such words while the timer follows the stalls of the hosts; `None` otherwise.
pub(crate) fn sentence_of(words: [u64; 4], configured: Span, watch: Span, station: &str) -> Option<String> {
    let [death, why, stall, number] = words;
    let number = u16::try_from(number).unwrap_or(0);
    let why = match why {
        2 => Why::Unwatched(number),
        3 => Why::Stall(Span::from_nanos(stall), number),
        _ => return None,
    };
    let (death, none) = (Span::from_nanos(death), Span::ZERO);
    let timers = TimersInForce { death, silence: none, hold: none, drain: none, why };
    Some(sentence(&timers, configured, watch, station))
}

fn sentence(timers: &TimersInForce, configured: Span, watch: Span, station: &str) -> String {
    let death = timers.death;
    let long = Span::from_millis(u64::from(Leases::LONG));
    match timers.why {
        Why::Configured => format!("death timer {death}, as configured"),
        Why::NoNews => {
            format!("death timer {death}, as configured; in token mode it follows the stalls of the hosts")
        }
        Why::Unwatched(0) => {
            format!("death timer {death}, as configured: a station has not been watched for {watch} yet")
        }
        Why::Unwatched(_) => {
            format!("death timer {death}, as configured: {station} has not been watched for {watch} yet")
        }
        Why::Stall(Span::ZERO, _) => {
            format!("death timer {death}, the shortest: no station has announced a stall")
        }
        Why::Stall(stall, _) => {
            let or_more = if stall >= long { " or more" } else { "" };
            let follows = if death < configured { "follows" } else { "as configured:" };
            format!(
                "death timer {death}, {follows} the longest stall announced, {stall}{or_more} by {station}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_monitor_give_the_same_sentence() {
        let ms = Span::from_millis;
        for (why, follows) in [
            (Why::Configured, false),
            (Why::NoNews, false),
            (Why::Unwatched(3), true),
            (Why::Stall(ms(45), 3), true),
            (Why::Stall(ms(0), 0), true),
        ] {
            let timers = TimersInForce { death: ms(120), silence: ms(1), hold: ms(1), drain: ms(1), why };
            let said = sentence_of(words(&timers), ms(500), ms(5_000), "n3");
            assert_eq!(said, follows.then(|| sentence(&timers, ms(500), ms(5_000), "n3")));
        }
    }

    #[test]
    fn the_sentence_says_which_timer_is_in_force_and_why() {
        let ms = Span::from_millis;
        let of = |death, why| {
            let timers =
                TimersInForce { death: ms(death), silence: ms(death), hold: ms(1), drain: ms(1), why };
            sentence(&timers, ms(500), ms(5_000), "station 3 (n3)")
        };
        assert_eq!(of(500, Why::Configured), "death timer 500 ms, as configured");
        assert_eq!(
            of(120, Why::Stall(ms(45), 3)),
            "death timer 120 ms, follows the longest stall announced, 45 ms by station 3 (n3)"
        );
        assert_eq!(
            of(500, Why::Stall(ms(254), 3)),
            "death timer 500 ms, as configured: the longest stall announced, 254 ms or more by station 3 (n3)"
        );
        assert_eq!(
            of(500, Why::Unwatched(3)),
            "death timer 500 ms, as configured: station 3 (n3) has not been watched for 5 s yet"
        );
        assert_eq!(
            of(71, Why::Stall(ms(0), 0)),
            "death timer 71 ms, the shortest: no station has announced a stall"
        );
    }
}
