//! The picture on a terminal: everything at 80 by 24, more rows of everything where there is room.

mod parts;
#[cfg(test)]
mod tests;

use super::picture::Picture;
use super::theme::Theme;
use parts::Painter;
use ratatui::layout::Rect;
use ratatui::prelude::Frame;

/// The least that can show anything.
const LEAST: (u16, u16) = (60, 16);

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
}

/// How many rows each part gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Plan {
    warnings: u16,
    histograms: u16,
    stations: u16,
    channels: u16,
}

impl Plan {
    /// Warnings and stations get what they need, within reason; channels what is left.
    fn of(height: u16, picture: &Picture) -> Self {
        let wanted = |rows: usize, most: u16| u16::try_from(rows).unwrap_or(most).clamp(1, most);
        // The bar at the top, load, reserved, faults and the keys.
        let left = height.saturating_sub(6);
        let warnings = wanted(picture.warnings.len(), if height < 32 { 2 } else { 6 });
        let histograms = if height < 32 { 6 } else { 10 };
        let left = left.saturating_sub(warnings + histograms);
        let channels = wanted(picture.channels.len(), left / 2) + 1;
        let stations = left.saturating_sub(channels);
        let most = u16::try_from(picture.stations.len()).unwrap_or(u16::MAX).saturating_add(1);
        let stations = stations.min(most.max(3));
        Self { warnings, histograms, stations, channels: left.saturating_sub(stations) }
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
    let plan = Plan::of(area.height, picture);
    let mut top = area.y;
    let mut rows = |count: u16| {
        let part = Rect { y: top, height: count, ..area }.intersection(area);
        top += count;
        part
    };
    painter.head(rows(1), shown);
    painter.warnings(rows(plan.warnings));
    painter.load(rows(2));
    painter.reserved(rows(1));
    painter.histograms(rows(plan.histograms));
    painter.stations(rows(plan.stations));
    let channels = rows(plan.channels);
    if shown.help {
        painter.help(channels)
    } else {
        painter.channels(channels)
    }
    painter.faults(rows(1));
    let keys = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
    painter.keys(keys, shown);
}
