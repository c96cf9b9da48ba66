//! The picture on a terminal: everything at 80 by 24, more rows of everything where there is room.

mod bars;
mod parts;
mod tables;
#[cfg(test)]
mod tests;

use super::picture::Picture;
use super::theme::Theme;
use parts::{Painter, warning_lines};
use ratatui::layout::Rect;
use ratatui::prelude::Frame;

/// The least that can show anything.
const LEAST: (u16, u16) = (60, 16);

/// What the help wants, its title among them.
const HELP_ROWS: u16 = 5;

/// What the user has set.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The colours.
    pub theme: Theme,
    /// The picture stands still.
    pub paused: bool,
    /// All keys instead of the channels.
    pub help: bool,
    /// The filter being typed, if it is.
    pub typing: Option<String>,
    /// What the last filter had wrong.
    pub wrong: Option<String>,
    /// How often it is drawn, as text.
    pub rate: String,
    /// The place of the shown port among all ports of the node, and how many there are.
    pub place: (usize, usize),
}

/// How many rows each part gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Plan {
    filter: u16,
    warnings: u16,
    load: u16,
    histograms: u16,
    stations: u16,
    channels: u16,
}

impl Plan {
    /// Warnings and stations get what they need, within reason; channels what is left.
    fn of(area: Rect, picture: &Picture, help: bool) -> Self {
        let wanted = |rows: usize, most: u16| u16::try_from(rows).unwrap_or(most).clamp(1, most.max(1));
        let (load, histograms, warned) = match area.height {
            ..20 => (2, 6, 1),
            20..32 => (2, 6, 3),
            32..50 => (4, 10, 6),
            _ => (6, 12, 10),
        };
        let filter = u16::from(!picture.filter.is_empty());
        let warned = if area.height < 32 { warned - filter.min(warned - 1) } else { warned };
        let lines = warning_lines(&picture.warnings, area.width.into(), usize::MAX).len();
        let warnings = wanted(lines, warned);
        // The bar at the top, reserved, faults and the keys.
        let left = area.height.saturating_sub(4 + filter + load + warnings + histograms);
        let rows = picture.channels.len().max(1) + picture.beyond.rows();
        let channels = if help { HELP_ROWS } else { wanted(rows, left.saturating_sub(1) / 2) + 1 };
        let stations = left.saturating_sub(channels);
        let most = u16::try_from(picture.stations.len()).unwrap_or(u16::MAX).saturating_add(1);
        let stations = stations.min(most.max(3));
        Self { filter, warnings, load, histograms, stations, channels: left.saturating_sub(stations) }
    }
}

/// Draws the whole screen.
pub fn draw(frame: &mut Frame<'_>, picture: &Picture, shown: &Shown) {
    let area = frame.area();
    let mut painter = Painter { buffer: frame.buffer_mut(), theme: shown.theme, picture };
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let sentence = format!("{} by {} is needed; q ends", LEAST.0, LEAST.1);
        painter.plain(area, &sentence);
        return;
    }
    let plan = Plan::of(area, picture, shown.help);
    let mut top = area.y;
    let mut rows = |count: u16| {
        let part = Rect { y: top, height: count, ..area }.intersection(area);
        top += count;
        part
    };
    painter.head(rows(1), shown);
    painter.filter(rows(plan.filter));
    painter.warnings(rows(plan.warnings));
    painter.load(rows(plan.load));
    painter.reserved(rows(1));
    painter.histograms(rows(plan.histograms));
    painter.stations(rows(plan.stations));
    let channels = rows(plan.channels);
    if shown.help {
        painter.help(channels)
    } else {
        painter.channels(channels)
    }
    match &shown.wrong {
        Some(wrong) => painter.wrong(rows(1), wrong),
        None => painter.faults(rows(1)),
    }
    let keys = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
    painter.keys(keys, shown);
}
