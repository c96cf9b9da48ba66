//! Bars: lying ones by kind, upright ones by priority and by the length of cycles.

use super::parts::Painter;
use crate::top::text::bits;
use crate::top::theme::Theme;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// Eighths of a cell, from nothing to all of it: upright, and lying.
const UPRIGHT: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const LYING: [&str; 9] = [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

/// Columns that a text takes.
pub fn width_of(text: &str) -> usize {
    Span::raw(text).width()
}

/// The text in exactly so many columns; what is cut ends with a sign.
pub fn fit(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return format!("{text}{}", " ".repeat(width - width_of(text)));
    }
    let mut cut = String::new();
    for letter in text.chars() {
        if width_of(&cut) + width_of(letter.encode_utf8(&mut [0; 4])) >= width {
            break;
        }
        cut.push(letter);
    }
    if width > 0 {
        cut.push('…');
    }
    format!("{cut}{}", " ".repeat(width.saturating_sub(width_of(&cut))))
}

/// How many cells a value takes where `of` takes all.
pub fn share(value: u64, of: u64, cells: usize) -> usize {
    if of == 0 || value == 0 {
        return 0;
    }
    // Something is never shown as nothing.
    ((u128::from(value) * cells as u128 / u128::from(of)) as usize).max(1).min(cells)
}

/// A lying bar to the eighth of a cell; of whole cells where it is told by its pattern.
pub fn bar(theme: Theme, kind: usize, value: u64, of: u64, cells: usize) -> String {
    if theme == Theme::Mono {
        return theme.block(kind).repeat(share(value, of, cells));
    }
    let eighths = share(value, of, cells * 8);
    let part = if eighths.is_multiple_of(8) { "" } else { LYING[eighths % 8] };
    format!("{}{part}", LYING[8].repeat(eighths / 8))
}

/// The eighths of upright bars: `value` of `most` in a row whose bottom is so many eighths high.
pub fn step(value: u64, most: u64, eighths: usize, below: usize) -> &'static str {
    UPRIGHT[share(value, most, eighths).saturating_sub(below).min(8)]
}

impl Painter<'_> {
    /// By kind and by priority; how long cycles lasted where there is room.
    pub fn histograms(&mut self, area: Rect) {
        let wide = area.width >= 110;
        let left = if wide { area.width * 2 / 5 } else { area.width / 2 };
        let kinds = Rect { width: left, ..area };
        let levels = Rect { x: area.x + left, width: if wide { 36 } else { area.width - left }, ..area };
        self.kinds(kinds);
        let picture = self.picture;
        let packets: Vec<(String, u64)> = picture
            .levels
            .iter()
            .map(|level| (level.name.clone(), level.load.now.packets_per_second.ceil() as u64))
            .collect();
        let most = packets.iter().map(|(_, value)| *value).max().unwrap_or(0);
        let title = match most {
            // No longer than the columns of eight levels are broad, at any size.
            0 => " priority (only under the token)".to_owned(),
            most => format!(" priority, highest {most} p/s"),
        };
        let theme = self.theme;
        self.columns(levels, &title, &packets, (3, 1), |level| theme.level(level));
        if wide {
            let x = levels.right() + 1;
            let area = Rect { x, width: area.right().saturating_sub(x), ..area };
            let tenths = picture.rotation.tenths.iter().enumerate();
            // There is room for few numbers; the tenth is the target itself.
            let broad = if area.width >= 64 { (3, 1) } else { (1, 1) };
            let name = |at: usize| if at.is_multiple_of(5) { at.to_string() } else { String::new() };
            let cycles: Vec<(String, u64)> = tenths.map(|(at, count)| (name(at), *count)).collect();
            self.columns(area, " cycles by tenths of the target", &cycles, broad, |_| theme.kind(0));
        }
    }

    fn kinds(&mut self, area: Rect) {
        let title = format!(" {:<10} {:>12} {:>8}", "kind", "bit/s", "p/s");
        self.line(area, 0, &Line::styled(title, self.theme.title()));
        let most = self.picture.kinds.iter().map(|kind| kind.load.maximum.rate_bps).max().unwrap_or(0);
        let cells = usize::from(area.width).saturating_sub(35);
        for (at, kind) in self.picture.kinds.iter().enumerate() {
            let now = kind.load.now;
            let numbers = format!(" {:>12} {:>8.0} ", bits(now.rate_bps), now.packets_per_second);
            let line = Line::from(vec![
                Span::styled(format!(" {:<10}", kind.name), self.theme.kind(at)),
                Span::raw(numbers),
                Span::styled(bar(self.theme, at, now.rate_bps, most, cells), self.theme.kind(at)),
            ]);
            self.line(area, at as u16 + 1, &line);
        }
    }

    /// Upright bars below a title, each with its name below; so broad and so far from each other.
    fn columns(
        &mut self,
        area: Rect,
        title: &str,
        values: &[(String, u64)],
        (broad, gap): (usize, usize),
        style: impl Fn(usize) -> Style,
    ) {
        self.line(area, 0, &Line::styled(title.to_owned(), self.theme.title()));
        let left = Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..area };
        let room = (usize::from(left.width) / (broad + gap)).min(values.len());
        let bare: Vec<u64> = values.iter().take(room).map(|(_, value)| *value).collect();
        let height = area.height.saturating_sub(2);
        self.upright(Rect { y: area.y + 1, height, ..left }, &bare, (broad, gap), style);
        let names: String = values.iter().take(room).map(|(name, _)| fit(name, broad + gap)).collect();
        self.line(left, height + 1, &Line::styled(names, self.theme.faint()));
    }

    /// Upright bars that fill an area, as high as the largest of them.
    pub fn upright(
        &mut self,
        area: Rect,
        values: &[u64],
        (broad, gap): (usize, usize),
        style: impl Fn(usize) -> Style,
    ) {
        let most = values.iter().copied().max().unwrap_or(0);
        let height = usize::from(area.height);
        for row in 0..height {
            let below = (height - 1 - row) * 8;
            let cells = values.iter().enumerate().map(|(at, value)| {
                let text = step(*value, most, height * 8, below).repeat(broad) + &" ".repeat(gap);
                Span::styled(text, style(at))
            });
            let line = Line::from(cells.collect::<Vec<_>>());
            let _ = self.buffer.set_line(area.x, area.y + row as u16, &line, area.width);
        }
    }
}
