//! Other stations choose the numbers in their reports: with the segment's key they can send any number.

use super::narrow::Narrow;
use super::screen::Shown;
use super::source::Seen;
use super::svg::{document, render};
use super::text;
use super::theme::Theme;
use super::watch::Watch;
use rota::{ChannelRow, Instant, Span, StationRow};
use rota_wire::{ChannelReport, Load, MacAddr, ReportHead};

/// Four stations and the ends of their channels, every number drawn by its place.
fn source(mut at: impl FnMut(usize) -> u64) -> Seen {
    let mut source = Seen::default();
    source.rows.segment.mode = 2;
    (source.rows.segment.link_bps, source.rows.segment.capacity_ns) = (100_000_000, 30_000_000);
    source.rows.segment.frame_overhead_octets = 24;
    for station in 1..=4_u64 {
        let mut next = |field: usize| at(field * 3 + station as usize);
        let flow =
            |next: &mut dyn FnMut(usize) -> u64, field| Load { frames: next(field), octets: next(field + 1) };
        let said = ReportHead {
            at_ns: next(2),
            every_ms: u32::MAX,
            kinds: [flow(&mut next, 4); 5],
            levels: [flow(&mut next, 6); 8],
            foreign: flow(&mut next, 10),
            foreign_mac: MacAddr::from_word(next(12)),
            stalls: next(13) as u32,
            stall_longest_ns: next(14),
            faults: next(15),
            dropped: next(16),
            queued: next(17) as u32,
            ..ReportHead::default()
        };
        source.rows.stations.push(StationRow {
            station,
            mac: station,
            flags: if station == 1 { 3 } else { StationRow::ALIVE | StationRow::REPORTED },
            name: StationRow::name_words("\u{1b}[2J"),
            heard_ns: next(1),
            reserved_ns: next(3),
            received: flow(&mut next, 8),
            said,
            ..StationRow::default()
        });
        for channel in 0..2 {
            let said = ChannelReport {
                peer_station: next(20) as u16,
                channel: rota::ChannelId(station % 3),
                sending: channel == 0,
                one_clock: channel != 0,
                unit_octets_max: next(22) as u32,
                period_ns: next(23) as u32,
                tht_ns: next(24) as u32,
                bound_ns: next(25),
                units: next(26),
                fragments: next(27),
                octets: next(28),
                late: next(29),
                delay_max_ns: next(30),
                delay_recent_ns: next(31),
                ..ChannelReport::default()
            };
            source.rows.channels.push(ChannelRow { station, told_ns: next(21), said });
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
            place: (0, 1),
        };
        for size in [(80, 24), (110, 30), (200, 60)] {
            let _ = document(&render(&picture, &shown, size), Theme::Mono);
        }
    }
}
