//! Other stations choose the numbers in their reports: with the segment's key they can send any number.

use super::narrow::Narrow;
use super::screen::Shown;
use super::source::Source;
use super::svg::{document, render};
use super::text;
use super::theme::Theme;
use super::watch::Watch;
use rota::{ChannelRow, Flow, Instant, Span, StationRow};

/// Four stations and the ends of their channels, every number drawn by its place.
fn source(mut at: impl FnMut(usize) -> u64) -> Source {
    let mut source = Source::new();
    source.rows.segment.mode = 2;
    (source.rows.segment.link_bps, source.rows.segment.capacity_ns) = (100_000_000, 30_000_000);
    source.rows.segment.frame_overhead_octets = 24;
    for station in 1..=4_u64 {
        let mut next = |field: usize| at(field * 3 + station as usize);
        let flow =
            |next: &mut dyn FnMut(usize) -> u64, field| Flow { frames: next(field), octets: next(field + 1) };
        let row = StationRow {
            station,
            mac: station,
            flags: if station == 1 { 3 } else { StationRow::ALIVE | StationRow::REPORTED },
            name: StationRow::name_words("\u{1b}[2J"),
            heard_ns: next(1),
            at_ns: next(2),
            every_ns: u64::from(u32::MAX) * 1_000_000,
            reserved_ns: next(3),
            kinds: [flow(&mut next, 4); 5],
            levels: [flow(&mut next, 6); 8],
            received: flow(&mut next, 8),
            foreign: flow(&mut next, 10),
            foreign_mac: next(12),
            stalls: next(13),
            stall_longest_ns: next(14),
            faults: next(15),
            dropped: next(16),
            queued: next(17),
            ..StationRow::default()
        };
        source.rows.stations.push(row);
        for channel in 0..2 {
            let flags = if channel == 0 { ChannelRow::SENDING } else { ChannelRow::ONE_CLOCK };
            source.rows.channels.push(ChannelRow {
                station,
                peer: next(20),
                channel: station % 3,
                flags,
                told_ns: next(21),
                unit_octets_max: next(22),
                period_ns: next(23),
                tht_ns: next(24),
                bound_ns: next(25),
                units: next(26),
                fragments: next(27),
                octets: next(28),
                late: next(29),
                delay_max_ns: next(30),
                delay_recent_ns: next(31),
                ..ChannelRow::default()
            });
        }
    }
    source
}

/// Looks at counts that stand at their ends or leap between them. A report of such ended `rota top`.
#[test]
fn no_number_that_a_station_reports_ends_the_monitor() {
    let ends = [0, 1, u64::from(u32::MAX), u64::MAX / 2, u64::MAX - 1, u64::MAX];
    let mut watch = Watch::new(Span::from_millis(500), Narrow::default());
    let at = |step: usize| ends[(step * 7 + step / 6) % ends.len()];
    for look in 0..60_usize {
        let source = source(|step| at(look + step));
        let picture = watch.picture(Instant::from_nanos(at(look * 5)), &source);
        let page = text::page(&picture);
        assert!(!page.contains('\u{1b}'), "no name reaches the terminal as it came");
        let json = serde_json::to_string(&picture).expect("it can be written");
        assert!(json.contains("stations"));
        let shown = Shown {
            theme: Theme::Mono,
            paused: false,
            help: false,
            typing: None,
            wrong: None,
            rate: "2 Hz".into(),
        };
        for size in [(80, 24), (110, 30), (200, 60)] {
            let _ = document(&render(&picture, &shown, size), Theme::Mono);
        }
    }
}
