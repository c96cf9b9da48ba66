//! The recovery timers in force, in numbers and in one sentence.

use crate::status::{Facts, Snapshot};
use rota_proto::{InForce, Why};
use rota_shm::control::TimersInfo;
use rota_units::Span;
use rota_wire::Leases;

/// As `rota status` prints it.
pub(crate) fn info(snapshot: &Snapshot, facts: &Facts) -> TimersInfo {
    let timers = &snapshot.timers;
    let named = |station: u16| match snapshot.name_of(station, facts) {
        name if name.is_empty() => format!("station {station}"),
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

fn sentence(timers: &InForce, configured: Span, watch: Span, station: &str) -> String {
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
    fn the_sentence_says_which_timer_is_in_force_and_why() {
        let ms = Span::from_millis;
        let of = |death, why| {
            let timers = InForce { death: ms(death), silence: ms(death), hold: ms(1), drain: ms(1), why };
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
