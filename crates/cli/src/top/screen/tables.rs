//! Tables: stations with their load by kind, channels with their load and their slack.

use super::bars::{bar, fit, share, step};
use super::parts::Painter;
use crate::top::picture::{Channel, Circuit, Hop, KINDS, Station};
use crate::top::text::{bits, short_bound, short_span, signed_span};
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// How the columns of channels are laid out.
struct Columns {
    who: usize,
    load: usize,
    /// Whether there is room for units a second.
    units: bool,
    history: usize,
}

impl Columns {
    fn of(width: u16) -> Self {
        let units = width >= 90;
        let who = if width >= 110 { 22 } else { 15 };
        // Spaces and the numbers: bit/s, late, bound, longest and slack.
        let numbers = 1 + who + 1 + 11 + 1 + 1 + usize::from(units) * 7 + 5 + 9 + 9 + 9 + 2;
        let left = usize::from(width).saturating_sub(numbers + 1);
        let load = (left / 2).min(60);
        Self { who, load, units, history: left - load }
    }
}

impl Painter<'_> {
    /// Each station with what it sends, one colour a kind.
    pub fn stations(&mut self, area: Rect) {
        let title = format!(
            " {:<12} {:>12} {:>12} {:>8} {:>9}  by kind",
            "station", "bit/s", "max", "p/s", "reserved"
        );
        self.line(area, 0, &Line::styled(title, self.theme.title()));
        let stations = &self.picture.stations;
        let most = stations.iter().map(|s| s.load.maximum.rate_bps).max().unwrap_or(0);
        let mut order: Vec<&Station> = stations.iter().collect();
        // The rows that should be looked at must not be those without room.
        order.sort_by_key(|station| (station.alive, station.load.now.rate_bps == 0, station.station));
        self.rows(area, &order, |parts, _, station| parts.station(station, most, area.width));
    }

    /// One row for each below a title; the last row says how many have none.
    fn rows<T>(&mut self, area: Rect, all: &[T], row_of: impl Fn(&Self, usize, &T) -> Line<'static>) {
        let room = usize::from(area.height).saturating_sub(1);
        for (row, one) in all.iter().take(room).enumerate() {
            if row + 1 == room && all.len() > room {
                let more = format!(" … and {} more", all.len() - row);
                self.line(area, row as u16 + 1, &Line::styled(more, self.theme.faint()));
                return;
            }
            let line = row_of(self, row, one);
            self.line(area, row as u16 + 1, &line);
        }
    }

    fn station(&self, station: &Station, most: u64, width: u16) -> Line<'static> {
        let load = station.load;
        let mark = if station.here { "*" } else { " " };
        let style = match (station.alive, station.reports) {
            (false, _) => self.theme.bad(),
            (true, false) => self.theme.faint(),
            (true, true) => Style::new(),
        };
        let reserved =
            if station.reserved_ns == 0 { "-".to_owned() } else { short_span(station.reserved_ns) };
        let numbers = format!(
            "{mark}{} {:>12} {:>12} {:>8.0} {reserved:>9}  ",
            fit(station.called(), 12),
            bits(load.now.rate_bps),
            bits(load.maximum.rate_bps),
            load.now.packets_per_second,
        );
        let cells = usize::from(width).saturating_sub(numbers.chars().count() + 1);
        let mut spans = vec![Span::styled(numbers, style)];
        if station.gone {
            spans.push(Span::styled("gone", self.theme.bad()));
        } else if !station.alive {
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

    /// Each channel with its load, in a colour of its own, and with its slack and how that went.
    pub fn channels(&mut self, area: Rect) {
        let columns = Columns::of(area.width);
        let title = format!(
            " {} {:>11} {} {}{:>5} {:>8} {:>8} {:>8}  history",
            fit("channel", columns.who),
            "bit/s",
            fit("load", columns.load),
            if columns.units { "unit/s " } else { "" },
            "late",
            "bound",
            "longest",
            "slack"
        );
        self.line(area, 0, &Line::styled(title, self.theme.title()));
        let channels = &self.picture.channels;
        if channels.is_empty() {
            self.line(area, 1, &Line::styled(" none is open, or none passes the filter", self.theme.faint()));
        }
        let most = channels.iter().map(|channel| channel.load.maximum.rate_bps).max().unwrap_or(0);
        let beyond = self.picture.beyond.rows();
        // Channels, paths and circuits share what room there is; a row of the segment comes first. One row
        // says at least how much of the others has none.
        let room = usize::from(area.height).saturating_sub(1);
        let left = room.saturating_sub(channels.len().clamp(1, room.max(1)));
        let below = u16::try_from(beyond.min(left.max(usize::from(room > 1)))).unwrap_or(0);
        let above = Rect { height: area.height - below, ..area };
        self.rows(above, channels, |parts, place, channel| parts.channel(channel, place, most, &columns));
        self.beyond(Rect { y: area.y + above.height, height: below, ..area });
    }

    /// Each channel that leaves the segment with the nodes of its way, and the circuits of this station.
    fn beyond(&mut self, area: Rect) {
        let mut rows = self.paths();
        rows.extend(self.circuits(area.width));
        let hidden = rows.len().saturating_sub(area.height.into());
        rows.truncate(area.height.into());
        if let (Some(last), 1..) = (rows.last_mut(), hidden) {
            // The share of a node is what can best be spared.
            last.spans.truncate(2);
            last.spans.push(Span::styled(format!("  +{hidden} more"), self.theme.title()));
        }
        for (row, line) in rows.iter().enumerate() {
            self.line(area, row as u16, line);
        }
    }

    fn paths(&self) -> Vec<Line<'static>> {
        let mut rows = Vec::new();
        for path in &self.picture.beyond.paths {
            let told = |value: Option<u64>| value.map_or("?".into(), |value| value.to_string());
            let (to, bound) = (&path.to, short_bound(path.bound_ns));
            let but = path.withdrawn.iter().map(|withdrawn| format!(", {withdrawn}")).collect::<String>();
            let words = format!(
                " {}→{to}, service {}: bound {bound}{but}, {} units whole, ",
                self.picture.name,
                path.service,
                told(path.units)
            );
            let broken = format!("{} broken", told(path.broken));
            let is_broken = path.broken.is_some_and(|broken| broken > 0);
            let style = if is_broken { self.theme.bad() } else { self.theme.title() };
            rows.push(Line::from(vec![Span::styled(words, self.theme.title()), Span::styled(broken, style)]));
            rows.extend(path.hops.iter().map(|hop| self.hop(hop)));
        }
        rows
    }

    /// A title, and a row for each circuit.
    fn circuits(&self, width: u16) -> Vec<Line<'static>> {
        let circuits = &self.picture.beyond.circuits;
        if circuits.is_empty() {
            return Vec::new();
        }
        let wide = width >= 100;
        let title = format!(
            " {} {}{:>7} {:<11} {:>11} {:>6}  {}waits for",
            fit("circuit", 15),
            if wide { "service    " } else { "" },
            "stage",
            "class",
            "bit/s",
            "again",
            if wide { "   window  " } else { "" },
        );
        let rows = circuits.iter().map(|circuit| self.circuit(circuit, wide));
        std::iter::once(Line::styled(title, self.theme.title())).chain(rows).collect()
    }

    fn circuit(&self, circuit: &Circuit, wide: bool) -> Line<'static> {
        let Circuit { service, class, stage, rate_bps, again, lost, window, flying, .. } = circuit;
        let (from, to) = circuit.ends(&self.picture.name);
        let service = if wide { format!("{service:<11}") } else { String::new() };
        let words = format!(
            " {} {service}{stage:>7} {class:<11} {:>11} ",
            fit(&format!("{from}→{to}"), 15),
            rate_bps.map_or("-".to_owned(), bits)
        );
        let window = if wide { format!("{flying:>4}/{window:<5} ") } else { String::new() };
        let style = if *lost > 0 { self.theme.bad() } else { Style::new() };
        Line::from(vec![
            Span::raw(words),
            Span::styled(format!("{:>6}  ", again + lost), style),
            Span::raw(format!("{window}{}", circuit.waits_for_words)),
        ])
    }

    fn hop(&self, hop: &Hop) -> Line<'static> {
        let words = format!(
            "   {} {:>2} {:<6} bound {:>8}  sent {:>8}  ",
            fit(&hop.node, 12),
            hop.port,
            hop.medium,
            short_bound(hop.bound_ns),
            hop.sent
        );
        let style = if hop.dropped > 0 { self.theme.bad() } else { Style::new() };
        Line::from(vec![
            Span::raw(words),
            Span::styled(format!("dropped {:>4}", hop.dropped), style),
            Span::styled(format!("  {}", hop.share), self.theme.faint()),
        ])
    }

    fn channel(&self, channel: &Channel, place: usize, most: u64, columns: &Columns) -> Line<'static> {
        let told = |value: Option<u64>| value.map_or("?".into(), short_span);
        let now = channel.load.now;
        let colour = self.theme.channel(place);
        let who = format!("{} {}→{}", channel.label, channel.from, channel.to);
        let load = bar(self.theme, 1, now.rate_bps, most, columns.load);
        let units = if columns.units { format!("{:>6.1} ", now.packets_per_second) } else { String::new() };
        let late = if channel.units.late > 0 { self.theme.bad() } else { Style::new() };
        let slack = channel.slack_ns.map_or("?".into(), signed_span);
        let style = match channel.slack_ns {
            Some(slack) if slack < 0 => self.theme.bad(),
            Some(_) => self.theme.good(),
            None => self.theme.faint(),
        };
        let longest = told(channel.delay_max_ns.or(channel.lateness_max_ns));
        let bound = channel.bound_ns.unwrap_or(0);
        let history = &channel.slack_history_ns;
        let history = &history[history.len().saturating_sub(columns.history)..];
        let curve: String = history
            .iter()
            .map(|slack| if *slack < 0 { "!" } else { step(slack.unsigned_abs(), bound, 8, 0) })
            .collect();
        Line::from(vec![
            Span::styled(format!(" {}", fit(&who, columns.who)), colour),
            Span::raw(format!(" {:>11} ", bits(now.rate_bps))),
            Span::styled(fit(&load, columns.load), colour),
            Span::raw(format!(" {units}")),
            Span::styled(format!("{:>5}", channel.units.late), late),
            Span::raw(format!(" {:>8} {longest:>8}", channel.bound_ns.map_or("?".into(), short_bound))),
            Span::styled(format!(" {slack:>8}"), style),
            Span::styled(format!("  {curve}"), self.theme.kind(1)),
        ])
    }
}
