//! The parts of the screen.

use super::Shown;
use crate::top::picture::{Channel, KINDS, Picture, Station};
use crate::top::rates::Figures;
use crate::top::text::{bits, short_span, signed_span};
use crate::top::theme::Theme;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

/// Eighths of a cell, from nothing to all of it.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Draws parts of a picture into a buffer.
pub struct Painter<'a> {
    pub buffer: &'a mut Buffer,
    pub theme: Theme,
    pub picture: &'a Picture,
}

/// The text in exactly so many columns.
fn fit(text: &str, width: usize) -> String {
    let cut: String = text.chars().take(width).collect();
    format!("{cut:<width$}")
}

fn share(value: u64, of: u64, cells: usize) -> usize {
    if of == 0 || value == 0 {
        return 0;
    }
    // Something is never shown as nothing.
    ((u128::from(value) * cells as u128 / u128::from(of)) as usize).max(1).min(cells)
}

impl Painter<'_> {
    fn line(&mut self, area: Rect, row: u16, line: &Line<'_>) {
        if row < area.height {
            let _ = self.buffer.set_line(area.x, area.y + row, line, area.width);
        }
    }

    /// One sentence and nothing else.
    pub fn plain(&mut self, area: Rect, sentence: &str) {
        Line::raw(sentence.to_owned()).render(area, self.buffer);
    }

    /// Who, which mode, how many, how fast.
    pub fn head(&mut self, area: Rect, shown: &Shown) {
        let p = self.picture;
        let state = if shown.paused { "PAUSED" } else { &shown.rate };
        let told = if p.node {
            format!(
                " rota top  {} ({})  {}  {} stations  {}  cycle {}",
                p.name,
                p.station,
                p.mode,
                p.stations.len(),
                bits(p.link_bps),
                short_span(p.trt_ns),
            )
        } else {
            " rota top  no node".to_owned()
        };
        let width = usize::from(area.width);
        let room = width.saturating_sub(state.chars().count() + 1);
        let text = format!("{}{state} ", fit(&told, room));
        self.line(area, 0, &Line::styled(text, self.theme.bar()));
    }

    /// What somebody should look at; when there is more than fits, how much more.
    pub fn warnings(&mut self, area: Rect) {
        let warnings = &self.picture.warnings;
        if warnings.is_empty() {
            let filter = &self.picture.filter;
            let all = if filter.is_empty() { String::new() } else { format!("  filter: {filter}") };
            let line = Line::from(vec![
                Span::styled(" nothing to warn of", self.theme.good()),
                Span::styled(all, self.theme.faint()),
            ]);
            self.line(area, 0, &line);
            return;
        }
        for (row, warning) in warnings.iter().take(usize::from(area.height)).enumerate() {
            let hidden = warnings.len() - usize::from(area.height).min(warnings.len());
            let last = row + 1 == usize::from(area.height) && hidden > 0;
            let more = if last { format!("(+{hidden}) ") } else { String::new() };
            let text = format!(" ! {more}{}", warning.sentence);
            self.line(area, row as u16, &Line::styled(text, self.theme.bad()));
        }
    }

    /// Load now, on the average and at most, with its last while.
    pub fn load(&mut self, area: Rect) {
        let Figures { now, average, maximum } = self.picture.load;
        let one = |name: &str, rate: crate::top::rates::Rate| {
            vec![
                Span::styled(format!(" {name} "), self.theme.faint()),
                Span::raw(format!("{:.0} p/s {}", rate.packets_per_second, bits(rate.rate_bps))),
            ]
        };
        let mut spans = vec![Span::styled(" load", self.theme.title())];
        spans.extend([one("now", now), one("avg", average), one("max", maximum)].concat());
        let percent = self.picture.percent(now.rate_bps);
        spans.push(Span::styled(format!("  {percent:.1} %"), self.theme.faint()));
        self.line(area, 0, &Line::from(spans));
        let history = &self.picture.load_history_bps;
        let most = history.iter().copied().max().unwrap_or(0);
        let width = usize::from(area.width).saturating_sub(2);
        let shown = history.iter().rev().take(width).rev();
        let curve: String = shown.map(|bps| EIGHTHS[share(*bps, most, 8)]).collect();
        let curve = format!(" {curve:>width$}");
        self.line(area, 1, &Line::styled(curve, self.theme.kind(1)));
    }

    /// Reservations against capacity, and how long cycles last.
    pub fn reserved(&mut self, area: Rect) {
        let p = self.picture;
        let percent = p.reserved_ns * 100 / p.capacity_ns.max(1);
        let cells = usize::from(area.width / 6).clamp(8, 30);
        let full = share(p.reserved_ns, p.capacity_ns, cells);
        let rotation = &p.rotation;
        let hop =
            if area.width < 90 { String::new() } else { format!("  hop {}", short_span(rotation.hop_ns)) };
        let line = Line::from(vec![
            Span::styled(" reserved ", self.theme.title()),
            Span::styled("█".repeat(full), self.theme.kind(1)),
            Span::styled("·".repeat(cells - full), self.theme.faint()),
            Span::raw(format!(" {percent} % of {}", short_span(p.capacity_ns))),
            Span::styled("  rotation ", self.theme.title()),
            Span::raw(format!("{} max {}", short_span(rotation.last_ns), short_span(rotation.longest_ns))),
            Span::styled(hop, self.theme.faint()),
        ]);
        self.line(area, 0, &line);
    }

    /// By kind and by priority; how long cycles lasted where there is room.
    pub fn histograms(&mut self, area: Rect) {
        let wide = area.width >= 110;
        let left = if wide { area.width * 2 / 5 } else { area.width / 2 };
        let kinds = Rect { width: left, ..area };
        let levels = Rect { x: area.x + left, width: if wide { 34 } else { area.width - left }, ..area };
        self.kinds(kinds);
        let picture = self.picture;
        let packets: Vec<(String, u64)> = picture
            .levels
            .iter()
            .map(|level| (level.name.clone(), level.load.now.packets_per_second.ceil() as u64))
            .collect();
        self.columns(levels, " priority (p/s under the token)", &packets, 4, self.theme.kind(2));
        if wide {
            let x = levels.right();
            let area = Rect { x, width: area.right().saturating_sub(x), ..area };
            let tenths = picture.rotation.tenths.iter().enumerate();
            // There is room for few numbers; the tenth is the target itself.
            let name = |at: usize| if at.is_multiple_of(5) { at.to_string() } else { String::new() };
            let cycles: Vec<(String, u64)> = tenths.map(|(at, count)| (name(at), *count)).collect();
            self.columns(area, " cycles by tenths of the target", &cycles, 2, self.theme.kind(0));
        }
    }

    fn kinds(&mut self, area: Rect) {
        let title = format!(" {:<10} {:>12} {:>8}", "kind", "bit/s", "p/s");
        self.line(area, 0, &Line::styled(title, self.theme.title()));
        let most = self.picture.kinds.iter().map(|kind| kind.load.maximum.rate_bps).max().unwrap_or(0);
        let cells = usize::from(area.width).saturating_sub(34);
        for (at, kind) in self.picture.kinds.iter().enumerate() {
            let now = kind.load.now;
            let numbers =
                format!(" {:<10} {:>12} {:>8.0} ", kind.name, bits(now.rate_bps), now.packets_per_second);
            let bar = self.theme.block(at).repeat(share(now.rate_bps, most, cells));
            let line = Line::from(vec![Span::raw(numbers), Span::styled(bar, self.theme.kind(at))]);
            self.line(area, at as u16 + 1, &line);
        }
    }

    /// Upright bars, each with its name below.
    fn columns(&mut self, area: Rect, title: &str, values: &[(String, u64)], wide: usize, style: Style) {
        self.line(area, 0, &Line::styled(fit(title, usize::from(area.width)), self.theme.title()));
        let most = values.iter().map(|(_, value)| *value).max().unwrap_or(0);
        let height = usize::from(area.height).saturating_sub(2);
        let room = (usize::from(area.width).saturating_sub(1) / wide).min(values.len());
        for row in 0..height {
            let below = (height - 1 - row) * 8;
            let cells = values.iter().take(room).map(|(_, value)| {
                let eighths = share(*value, most, height * 8);
                EIGHTHS[eighths.saturating_sub(below).min(8)].repeat(wide - 1) + " "
            });
            let text = format!(" {}", cells.collect::<String>());
            self.line(area, row as u16 + 1, &Line::styled(text, style));
        }
        let names: String = values.iter().take(room).map(|(name, _)| fit(name, wide)).collect();
        self.line(area, height as u16 + 1, &Line::styled(format!(" {names}"), self.theme.faint()));
    }

    /// Each station with what it sends, one colour a kind.
    pub fn stations(&mut self, area: Rect) {
        let title = format!(
            " {:<12} {:>12} {:>12} {:>8} {:>9}  by kind",
            "station", "bit/s", "max", "p/s", "reserved"
        );
        self.line(area, 0, &Line::styled(fit(&title, usize::from(area.width)), self.theme.title()));
        let stations = &self.picture.stations;
        let most = stations.iter().map(|s| s.load.maximum.rate_bps).max().unwrap_or(0);
        let mut order: Vec<&Station> = stations.iter().collect();
        order.sort_by_key(|station| (station.load.now.rate_bps == 0, station.station));
        self.rows(area, &order, |parts, station| parts.station(station, most, area.width));
    }

    /// One row for each below a title; the last row says how many have none.
    fn rows<T>(&mut self, area: Rect, all: &[T], row_of: impl Fn(&Self, &T) -> Line<'static>) {
        let room = usize::from(area.height).saturating_sub(1);
        for (row, one) in all.iter().take(room).enumerate() {
            if row + 1 == room && all.len() > room {
                let more = format!(" … and {} more", all.len() - row);
                self.line(area, row as u16 + 1, &Line::styled(more, self.theme.faint()));
                return;
            }
            let line = row_of(self, one);
            self.line(area, row as u16 + 1, &line);
        }
    }

    fn station(&self, station: &Station, most: u64, width: u16) -> Line<'static> {
        let load = station.load;
        let mark = if station.here { "*" } else { " " };
        let name = if station.name.is_empty() { &station.mac } else { &station.name };
        let style = match (station.alive, station.reports) {
            (false, _) => self.theme.bad(),
            (true, false) => self.theme.faint(),
            (true, true) => Style::new(),
        };
        let numbers = format!(
            "{mark}{} {:>12} {:>12} {:>8.0} {:>9}  ",
            fit(name, 12),
            bits(load.now.rate_bps),
            bits(load.maximum.rate_bps),
            load.now.packets_per_second,
            if station.reserved_ns == 0 { "-".into() } else { short_span(station.reserved_ns) },
        );
        let cells = usize::from(width).saturating_sub(numbers.chars().count() + 1);
        let mut spans = vec![Span::styled(numbers, style)];
        if !station.alive {
            spans.push(Span::styled("dead to the ring", self.theme.bad()));
        } else if !station.reports {
            spans.push(Span::styled("does not report", self.theme.faint()));
        }
        let mut left = cells;
        for (kind, figures) in station.kinds.iter().enumerate().take(KINDS.len()) {
            let part = share(figures.now.rate_bps, most, cells).min(left);
            left -= part;
            spans.push(Span::styled(self.theme.block(kind).repeat(part), self.theme.kind(kind)));
        }
        Line::from(spans)
    }

    /// Each channel with its slack and how that went.
    pub fn channels(&mut self, area: Rect) {
        let title = format!(
            " {:<15} {:>11} {:>6} {:>5} {:>8} {:>8} {:>8}  history",
            "channel", "bit/s", "unit/s", "late", "bound", "longest", "slack"
        );
        self.line(area, 0, &Line::styled(fit(&title, usize::from(area.width)), self.theme.title()));
        let channels = &self.picture.channels;
        if channels.is_empty() {
            self.line(area, 1, &Line::styled(" none is open, or none passes the filter", self.theme.faint()));
        }
        self.rows(area, channels, |parts, channel| parts.channel(channel, area.width));
    }

    fn channel(&self, channel: &Channel, width: u16) -> Line<'static> {
        let told = |value: Option<u64>| value.map_or("?".into(), short_span);
        let who = format!("{} {}→{}", channel.label, channel.from, channel.to);
        let numbers = format!(
            " {} {:>11} {:>6.1} {:>5} {:>8} {:>8} ",
            fit(&who, 15),
            bits(channel.load.now.rate_bps),
            channel.load.now.packets_per_second,
            channel.late,
            told(channel.bound_ns),
            told(channel.delay_max_ns.or(channel.lateness_max_ns)),
        );
        let slack = channel.slack_ns.map_or("?".into(), signed_span);
        let style = match channel.slack_ns {
            Some(slack) if slack < 0 => self.theme.bad(),
            Some(_) => self.theme.good(),
            None => self.theme.faint(),
        };
        let cells = usize::from(width).saturating_sub(numbers.chars().count() + 8 + 3);
        let bound = channel.bound_ns.unwrap_or(0);
        let history = channel.slack_history_ns.iter().rev().take(cells).rev();
        let curve: String = history
            .map(|slack| match slack {
                Some(slack) if *slack >= 0 => EIGHTHS[share(slack.unsigned_abs(), bound, 8)],
                Some(_) => "!",
                None => " ",
            })
            .collect();
        Line::from(vec![
            Span::raw(numbers),
            Span::styled(format!("{slack:>8}"), style),
            Span::styled(format!("  {curve}"), self.theme.kind(1)),
        ])
    }

    /// Counters that should be zero, and whether they are.
    pub fn faults(&mut self, area: Rect) {
        let faults: Vec<String> = self
            .picture
            .should_be_zero
            .iter()
            .filter(|fault| fault.value > 0)
            .map(|fault| format!("{} {}", fault.name, fault.value))
            .collect();
        let count = self.picture.should_be_zero.len();
        let (text, style) = if !self.picture.node {
            (" no counters".to_owned(), self.theme.faint())
        } else if faults.is_empty() {
            (format!(" the {count} counters that should be zero are zero"), self.theme.good())
        } else {
            (format!(" should be zero: {}", faults.join(", ")), self.theme.bad())
        };
        self.line(area, 0, &Line::styled(text, style));
    }

    /// All keys, and what the colours mean.
    pub fn help(&mut self, area: Rect) {
        self.line(area, 0, &Line::styled(" keys and colours", self.theme.title()));
        let legend = KINDS.iter().enumerate().flat_map(|(at, kind)| {
            let block = Span::styled(format!(" {}", self.theme.block(at).repeat(2)), self.theme.kind(at));
            [block, Span::raw(format!(" {kind} "))]
        });
        let legend = Line::from(legend.collect::<Vec<_>>());
        self.line(area, 1, &legend);
        let rows = [
            " q Esc ^C  end            p space  pause          t  dark, light, mono",
            " /  filter, as in rota trace (Esc leaves it, an empty one shows all)",
            " + -  draw oftener, more rarely      r  averages and maxima begin anew",
        ];
        for (row, text) in rows.iter().enumerate() {
            self.line(area, row as u16 + 2, &Line::raw(*text));
        }
    }

    /// The keys, or the filter that is being typed.
    pub fn keys(&mut self, area: Rect, shown: &Shown) {
        let width = usize::from(area.width);
        if let Some(typed) = &shown.typing {
            let wrong = shown.wrong.as_deref().unwrap_or("Enter applies it, Esc leaves it");
            let line = Line::from(vec![
                Span::styled(" filter: ", self.theme.title()),
                Span::raw(typed.clone()),
                Span::styled("▏", Style::new().add_modifier(Modifier::SLOW_BLINK)),
                Span::styled(format!("  {wrong}"), self.theme.faint()),
            ]);
            self.line(area, 0, &line);
            return;
        }
        let keys = " q end  p pause  / filter  t theme  + - rate  r begin anew  ? keys";
        self.line(area, 0, &Line::styled(fit(keys, width), self.theme.bar()));
    }
}
