//! The parts of the screen.

use super::Shown;
use super::bars::{fit, share, width_of};
use crate::top::picture::{KINDS, Picture, Rose, Warning};
use crate::top::rates::{Figures, Rate};
use crate::top::text::{bits, scaled, short_span};
use crate::top::theme::Theme;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

/// Draws parts of a picture into a buffer.
pub struct Painter<'a> {
    pub buffer: &'a mut Buffer,
    pub theme: Theme,
    pub picture: &'a Picture,
}

/// Lines of warnings, at most so many: each in full where all fit, else one line of each, and in the last one
/// how many have none.
pub fn warning_lines(warnings: &[Warning], width: usize, rows: usize) -> Vec<(String, bool)> {
    let mut all = Vec::new();
    for warning in warnings {
        let mut mark = " ! ";
        for line in wrapped(&warning.sentence, width.saturating_sub(3).max(1)) {
            all.push((format!("{mark}{line}"), warning.lately));
            mark = "   ";
        }
    }
    if all.len() <= rows {
        return all;
    }
    let hidden = warnings.len().saturating_sub(rows);
    let shown = warnings.iter().take(rows).enumerate().map(|(row, warning)| {
        let more = if row + 1 == rows && hidden > 0 { format!("(+{hidden}) ") } else { String::new() };
        (format!(" ! {more}{}", warning.sentence), warning.lately)
    });
    shown.collect()
}

/// A sentence as lines that are cut between words.
fn wrapped(sentence: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in sentence.split(' ') {
        let used = lines.last().map_or(0, |line| width_of(line));
        if used > 0 && used + 1 + width_of(word) > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

impl Painter<'_> {
    /// A text that is too long ends with a sign that says so.
    pub(super) fn line(&mut self, area: Rect, row: u16, line: &Line<'_>) {
        if row >= area.height || area.width == 0 {
            return;
        }
        let (y, last) = (area.y + row, area.right() - 1);
        let _ = self.buffer.set_line(area.x, y, line, area.width);
        if line.width() > usize::from(area.width) {
            // Half of a wide letter cannot be replaced.
            let before = last.saturating_sub(1).max(area.x);
            let is_wide = before < last && width_of(self.buffer[(before, y)].symbol()) > 1;
            self.buffer[(last, y)].set_symbol(" ");
            self.buffer[(if is_wide { before } else { last }, y)].set_symbol("…");
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
            let port = match shown.place {
                (_, 0 | 1) => String::new(),
                (at, all) => format!("  {} {}/{all}", p.interface, at + 1),
            };
            format!(
                " rota top  {} ({}){port}  {}  {} stations  {}  cycle {}",
                p.name,
                p.station,
                p.mode,
                p.members(),
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
            self.line(area, 0, &Line::styled(" nothing to warn of", self.theme.good()));
        }
        let lines = warning_lines(warnings, area.width.into(), area.height.into());
        for (row, (text, lately)) in lines.into_iter().enumerate() {
            let style = if lately { self.theme.bad() } else { self.theme.faint() };
            self.line(area, row as u16, &Line::styled(text, style));
        }
    }

    /// What is left out of everything below.
    pub fn filter(&mut self, area: Rect) {
        let line = Line::from(vec![
            Span::styled(" filter ", self.theme.title()),
            Span::raw(self.picture.filter.clone()),
            Span::styled("  (/ changes it)", self.theme.faint()),
        ]);
        self.line(area, 0, &line);
    }

    /// Load now, on the average and at most, with its last while.
    pub fn load(&mut self, area: Rect) {
        let Figures { now, average, maximum } = self.picture.load;
        let one = |name: &str, rate: Rate| {
            let packets = match rate.packets_per_second {
                few if few < 9_999.5 => format!("{few:.0} p/s"),
                many => scaled(many, "p/s"),
            };
            vec![
                Span::styled(format!(" {name}"), self.theme.faint()),
                Span::raw(format!(" {packets} {}", bits(rate.rate_bps))),
            ]
        };
        let first = if area.width < 90 { "" } else { "now" };
        let mut spans = vec![Span::styled(" load", self.theme.title())];
        spans.extend([one(first, now), one("avg", average), one("max", maximum)].concat());
        self.line(area, 0, &Line::from(spans));
        let label = format!(" {:>5.1} % ", self.picture.percent(now.rate_bps));
        let left = label.chars().count() as u16;
        self.line(area, 1, &Line::styled(label, self.theme.faint()));
        let history = &self.picture.load_history_bps;
        let width = area.width.saturating_sub(left + 1);
        let shown = &history[history.len().saturating_sub(width.into())..];
        // The newest is at the right edge.
        let x = (area.x + left + width).saturating_sub(shown.len() as u16);
        let curve = Rect { x, y: area.y + 1, width: shown.len() as u16, height: area.height - 1 };
        let style = self.theme.kind(1);
        self.upright(curve.intersection(area), shown, (1, 0), |_| style);
    }

    /// Reservations against capacity, and how long cycles last.
    pub fn reserved(&mut self, area: Rect) {
        let p = self.picture;
        let percent = p.reserved_percent();
        let cells = usize::from(area.width / 6).clamp(8, 30);
        let full = share(p.shares.reserved_ns, p.shares.capacity_ns, cells);
        let rotation = &p.rotation;
        let hop =
            if area.width < 90 { String::new() } else { format!("  hop {}", short_span(rotation.hop_ns)) };
        let line = Line::from(vec![
            Span::styled(" reserved ", self.theme.title()),
            Span::styled("█".repeat(full), self.theme.kind(1)),
            Span::styled("·".repeat(cells - full), self.theme.faint()),
            Span::raw(format!(" {percent} % of {}", short_span(p.shares.capacity_ns))),
            Span::styled("  rotation ", self.theme.title()),
            Span::raw(format!("{} max {}", short_span(rotation.last_ns), short_span(rotation.longest_ns))),
            Span::styled(hop, self.theme.faint()),
        ]);
        self.line(area, 0, &line);
    }

    /// Counters that should be zero, and whether they are.
    pub fn faults(&mut self, area: Rect) {
        let faults: Vec<String> =
            self.picture.faults().map(|fault| format!("{} {}", fault.name, fault.value)).collect();
        let count = self.picture.should_be_zero.len();
        let (text, style) = if !self.picture.node {
            (" no counters".to_owned(), self.theme.faint())
        } else if faults.is_empty() {
            (format!(" no error counters raised ({count} watched)"), self.theme.good())
        } else {
            let lately = self.picture.faults().any(|fault| fault.rose == Rose::Lately);
            let style = if lately { self.theme.bad() } else { self.theme.faint() };
            (format!(" should be zero: {}", faults.join(", ")), style)
        };
        self.line(area, 0, &Line::styled(text, style));
    }

    /// What the filter that is being typed has wrong.
    pub fn wrong(&mut self, area: Rect, sentence: &str) {
        self.line(area, 0, &Line::styled(format!(" {sentence}"), self.theme.bad()));
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
            // The end is what is being typed, so that the beginning gives way.
            let room = width.saturating_sub(44);
            let left_out = typed.chars().count().saturating_sub(room);
            let end: String = typed.chars().skip(left_out).collect();
            let line = Line::from(vec![
                Span::styled(" filter: ", self.theme.title()),
                Span::raw(if left_out > 0 { format!("…{end}") } else { end }),
                Span::styled("▏", Style::new().add_modifier(Modifier::SLOW_BLINK)),
                Span::styled("  Enter applies it, Esc leaves it", self.theme.faint()),
            ]);
            self.line(area, 0, &line);
            return;
        }
        let next = if shown.place.1 > 1 { "  Tab interface" } else { "" };
        let keys = format!(" q end{next}  p pause  / filter  t theme  + - rate  r begin anew  ? keys");
        self.line(area, 0, &Line::styled(fit(&keys, width), self.theme.bar()));
    }
}
