//! What a figure is, and how it is drawn: panels side by side as one SVG that needs nothing else.

use crate::report::escape;
use crate::report::scale::step;
use std::fmt::Write;

/// A figure of the paper, or one beyond it.
#[derive(Debug)]
pub struct Figure {
    /// Its name on the command line and of its files.
    pub key: &'static str,
    /// What it shows.
    pub title: String,
    /// With which machine and load.
    pub subtitle: String,
    /// Side by side, on axes of their own.
    pub panels: Vec<Panel>,
    /// How far off we are, and why.
    pub verdict: String,
}

/// One pair of axes.
#[derive(Debug)]
pub struct Panel {
    /// Above the axes; empty for the only panel of a figure.
    pub title: String,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Numbers that the paper printed.
    pub printed: Vec<Printed>,
    /// Dashed lines across.
    pub limits: Vec<Limit>,
    /// Words above points, such as the values of bars.
    pub values: Vec<(f64, f64, String)>,
}

/// One axis.
#[derive(Debug)]
pub struct Axis {
    /// Quantity and unit.
    pub label: String,
    /// From and to.
    pub range: (f64, f64),
    /// Logarithmic.
    pub log: bool,
    /// Names instead of numbers.
    pub names: Vec<(f64, String)>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A line.
    Line,
    /// A dashed line.
    Dashed,
    /// Points.
    Dots,
    /// The n-th bar of so many at each x.
    Bar(usize, usize),
}

/// One curve.
#[derive(Debug)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// Which of the colours.
    pub colour: usize,
    /// Line, points or bars.
    pub look: Look,
    /// In the axes' units.
    pub points: Vec<(f64, f64)>,
}

/// A dashed line across.
#[derive(Debug)]
pub struct Limit {
    /// At which height.
    pub at: f64,
    /// Its words.
    pub words: String,
    /// Whether its words stand at the right end.
    pub right: bool,
}

/// A printed number.
#[derive(Debug)]
pub struct Printed {
    /// Where it stands.
    pub at: (f64, f64),
    /// Its words.
    pub words: String,
    /// Whether its words stand to the left of it.
    pub left: bool,
}

impl Panel {
    /// Empty axes.
    pub fn new(title: &str, x: Axis, y: Axis) -> Self {
        let title = title.into();
        Self { title, x, y, series: vec![], printed: vec![], limits: vec![], values: vec![] }
    }
}

impl Series {
    /// A curve or points.
    pub fn new(name: impl Into<String>, colour: usize, look: Look, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), colour, look, points }
    }
}

impl Axis {
    /// Linear from 0.
    pub fn linear(label: &str, to: f64) -> Self {
        Self { label: label.into(), range: (0.0, to), log: false, names: Vec::new() }
    }

    /// Logarithmic.
    pub fn log(label: &str, from: f64, to: f64) -> Self {
        Self { label: label.into(), range: (from, to), log: true, names: Vec::new() }
    }

    /// Names at 0, 1, 2 …
    pub fn named(label: &str, names: &[String]) -> Self {
        let at = names.iter().enumerate().map(|(i, name)| (i as f64, name.clone())).collect();
        Self { label: label.into(), range: (-0.6, names.len() as f64 - 0.4), log: false, names: at }
    }

    /// Where a value lies between 0 and 1.
    fn share(&self, value: f64) -> f64 {
        let (from, to) = self.range;
        if self.log {
            (value.max(from * 1e-6) / from).ln() / (to / from).ln()
        } else {
            (value - from) / (to - from)
        }
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        if !self.names.is_empty() {
            return self.names.clone();
        }
        let (from, to) = self.range;
        if self.log {
            let factors: &[f64] = if to / from <= 150.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
            let decades = (from.log10().floor() as i32..=to.log10().ceil() as i32).map(|e| 10f64.powi(e));
            let all = decades.flat_map(|decade| factors.iter().map(move |factor| decade * factor));
            return all.filter(|v| (from * 0.999..=to * 1.001).contains(v)).map(|v| (v, number(v))).collect();
        }
        let step = step(to - from);
        let count = ((to - from) / step + 1e-9).floor() as usize;
        (0..=count).map(|i| from + i as f64 * step).map(|v| (v, number(v))).collect()
    }
}

/// A number without needless zeros.
fn number(value: f64) -> String {
    let words = format!("{value:.3}");
    words.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Okabe and Ito's colours, which colour-blind readers can tell apart.
const COLOURS: [&str; 8] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4d4d4d", "#b9bec4"];
const WIDTH: f64 = 960.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 18.0;
const PLOT: f64 = 300.0;
/// A character of the 12.5-pixel text, on average and a little more.
const CHARACTER: f64 = 6.6;
/// Characters of a line of text across the figure, also where only a wide font is installed.
const LINE: usize = 138;

const STYLE: &str = "text{font:12.5px 'Helvetica Neue',Arial,sans-serif;fill:#3a424a}.t{font-size:17px;\
    font-weight:700;fill:#1b1f24}.s{fill:#5c6670}.m{text-anchor:middle}.e{text-anchor:end}.b{font-weight:700;\
    fill:#1b1f24}.p{font-weight:700;fill:#1b1f24;paint-order:stroke;stroke:#fff;stroke-width:4px}\
    .g{stroke:#e6e9ec;stroke-width:1}.a{stroke:#6b7580;stroke-width:1.2}.l{stroke:#8a2a22;stroke-width:1.2;\
    stroke-dasharray:5 4}.lw{fill:#8a2a22;paint-order:stroke;stroke:#fff;stroke-width:4px}";

fn colour(series: &Series) -> &'static str {
    COLOURS[series.colour % COLOURS.len()]
}

/// Words in lines of at most so many characters.
fn wrap(words: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in words.split_whitespace() {
        let Some(line) = lines.last_mut() else { break };
        if !line.is_empty() && line.len() + word.len() + 1 > width {
            lines.push(word.into());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

impl Figure {
    /// The figure as SVG.
    pub fn svg(&self) -> String {
        let mut body = String::new();
        // Writing to a string cannot fail.
        let height = self.draw(&mut body).unwrap_or(0.0);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" \
             height=\"{height:.0}\" role=\"img\" aria-label=\"{}\"><style>{STYLE}</style>\
             <rect width=\"{WIDTH}\" height=\"{height:.0}\" fill=\"#fff\"/>\n{body}</svg>\n",
            escape(&self.title)
        )
    }

    fn draw(&self, out: &mut String) -> Result<f64, std::fmt::Error> {
        text(out, (12.0, 26.0), "t", &self.title)?;
        let mut y = 46.0;
        for line in wrap(&self.subtitle, LINE) {
            text(out, (12.0, y), "s", &line)?;
            y += 17.0;
        }
        y = self.legend(out, y + 4.0)?;
        let titled = self.panels.iter().any(|panel| !panel.title.is_empty());
        let top = y + if titled { 30.0 } else { 14.0 };
        let width = WIDTH / self.panels.len().max(1) as f64;
        for (index, panel) in self.panels.iter().enumerate() {
            let frame = Frame {
                left: width * index as f64 + LEFT,
                right: width * (index + 1) as f64 - RIGHT,
                top,
                bottom: top + PLOT,
            };
            panel.draw(out, &frame, &format!("{}-{index}", self.key))?;
        }
        y = top + PLOT + 62.0;
        for line in wrap(&self.verdict, LINE) {
            text(out, (12.0, y), "", &line)?;
            y += 17.0;
        }
        Ok(y)
    }

    /// Each name once, whatever panels it stands in; returns where the legend ends.
    fn legend(&self, out: &mut String, top: f64) -> Result<f64, std::fmt::Error> {
        let mut seen: Vec<&str> = Vec::new();
        let (mut x, mut y) = (12.0, top + 6.0);
        for series in self.panels.iter().flat_map(|panel| &panel.series) {
            if series.name.is_empty() || seen.contains(&series.name.as_str()) {
                continue;
            }
            seen.push(&series.name);
            let needs = 34.0 + series.name.chars().count() as f64 * CHARACTER + 16.0;
            if x + needs > WIDTH && x > 12.0 {
                (x, y) = (12.0, y + 18.0);
            }
            swatch(out, series, (x, y))?;
            text(out, (x + 30.0, y + 4.0), "", &series.name)?;
            x += needs;
        }
        if self.panels.iter().any(|panel| !panel.printed.is_empty()) {
            if x + 180.0 > WIDTH {
                (x, y) = (12.0, y + 18.0);
            }
            diamond(out, (x + 12.0, y))?;
            text(out, (x + 30.0, y + 4.0), "", "printed in the paper")?;
        }
        Ok(y + 8.0)
    }

    /// Every point that is drawn, one a line.
    pub fn csv(&self) -> String {
        let mut out = format!("# {}\n# {}\n# {}\n", self.title, self.subtitle, self.verdict);
        out.push_str("panel,series,x_label,x,y_label,y\n");
        for panel in &self.panels {
            let mut row = |series: &str, x: String, y: f64| {
                let words = [&panel.title, series, &panel.x.label].map(quote).join(",");
                // Writing to a string cannot fail.
                let _ = writeln!(out, "{words},{},{},{}", quote(&x), quote(&panel.y.label), number(y));
            };
            let name = |x: f64| {
                let named = panel.x.names.iter().find(|(at, _)| (at - x).abs() < 0.01);
                named.map_or_else(|| number(x), |(_, name)| name.clone())
            };
            for series in &panel.series {
                series.points.iter().for_each(|(x, y)| row(&series.name, name(*x), *y));
            }
            for printed in &panel.printed {
                row(&format!("printed: {}", printed.words), name(printed.at.0), printed.at.1);
            }
        }
        out
    }
}

fn quote(words: &str) -> String {
    if words.contains([',', '"', '\n']) {
        format!("\"{}\"", words.replace('"', "\"\""))
    } else {
        words.into()
    }
}

struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Panel {
    fn draw(&self, out: &mut String, frame: &Frame, id: &str) -> std::fmt::Result {
        let place = |(x, y): (f64, f64)| {
            let across = frame.left + self.x.share(x) * (frame.right - frame.left);
            (across, frame.bottom - self.y.share(y) * (frame.bottom - frame.top))
        };
        let middle = (frame.left + frame.right) / 2.0;
        if !self.title.is_empty() {
            text(out, (middle, frame.top - 12.0), "m b", &self.title)?;
        }
        self.axes(out, frame, place)?;
        let (width, height) = (frame.right - frame.left, frame.bottom - frame.top);
        writeln!(
            out,
            "<clipPath id=\"{id}\"><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\"/></clipPath><g clip-path=\"url(#{id})\">",
            frame.left, frame.top
        )?;
        for series in &self.series {
            series.draw(out, place, frame)?;
        }
        writeln!(out, "</g>")?;
        for limit in &self.limits {
            let (_, y) = place((self.x.range.0, limit.at));
            line(out, "l", (frame.left, y), (frame.right, y))?;
            let (x, class) = if limit.right { (frame.right - 6.0, "e lw") } else { (frame.left + 6.0, "lw") };
            text(out, (x, y - 5.0), class, &limit.words)?;
        }
        for (x, y, words) in &self.values {
            let (x, y) = place((*x, *y));
            text(out, (x, y.min(frame.bottom - 1.5) - 5.0), "m", words)?;
        }
        for printed in &self.printed {
            let (x, y) = place(printed.at);
            diamond(out, (x, y))?;
            let (shift, class) = if printed.left { (-11.0, "e p") } else { (11.0, "p") };
            text(out, (x + shift, y + 4.0), class, &printed.words)?;
        }
        Ok(())
    }

    fn axes(
        &self,
        out: &mut String,
        frame: &Frame,
        place: impl Fn((f64, f64)) -> (f64, f64),
    ) -> std::fmt::Result {
        for (value, words) in self.y.ticks() {
            let (_, y) = place((self.x.range.0, value));
            line(out, "g", (frame.left, y), (frame.right, y))?;
            text(out, (frame.left - 7.0, y + 4.0), "e", &words)?;
        }
        for (value, words) in self.x.ticks() {
            let (x, _) = place((value, self.y.range.0));
            line(out, "a", (x, frame.bottom), (x, frame.bottom + 4.0))?;
            text(out, (x, frame.bottom + 18.0), "m", &words)?;
        }
        line(out, "a", (frame.left, frame.bottom), (frame.right, frame.bottom))?;
        line(out, "a", (frame.left, frame.top), (frame.left, frame.bottom))?;
        let middle = (frame.left + frame.right) / 2.0;
        text(out, (middle, frame.bottom + 38.0), "m", &self.x.label)?;
        let (x, y) = (frame.left - 46.0, (frame.top + frame.bottom) / 2.0);
        let words = escape(&self.y.label);
        let turn = format!("rotate(-90 {x:.1} {y:.1})");
        writeln!(out, "<text class=\"m\" x=\"{x:.1}\" y=\"{y:.1}\" transform=\"{turn}\">{words}</text>")
    }
}

impl Series {
    fn draw(
        &self,
        out: &mut String,
        place: impl Fn((f64, f64)) -> (f64, f64),
        frame: &Frame,
    ) -> std::fmt::Result {
        let colour = colour(self);
        if let Look::Bar(nth, of) = self.look {
            let width = (place((1.0, 1.0)).0 - place((0.0, 1.0)).0) * 0.84 / of.max(1) as f64;
            for point in &self.points {
                let (x, y) = place(*point);
                let left = x + (nth as f64 - of as f64 / 2.0) * width;
                // Nothing at all is still a bar that can be seen.
                let top = y.min(frame.bottom - 1.5);
                let height = frame.bottom - top;
                writeln!(
                    out,
                    "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{height:.1}\" \
                     fill=\"{colour}\"/>",
                    (width - 1.0).max(1.0)
                )?;
            }
            return Ok(());
        }
        if self.look != Look::Dots && self.points.len() > 1 {
            let mut path = String::new();
            for (index, point) in self.points.iter().enumerate() {
                let (x, y) = place(*point);
                write!(path, "{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' })?;
            }
            let dash = if self.look == Look::Dashed { " stroke-dasharray=\"7 5\"" } else { "" };
            writeln!(out, "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>")?;
        }
        let radius = if self.look == Look::Dots { 4.2 } else { 2.4 };
        for point in &self.points {
            let (x, y) = place(*point);
            writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\"/>")?;
        }
        Ok(())
    }
}

fn swatch(out: &mut String, series: &Series, (x, y): (f64, f64)) -> std::fmt::Result {
    let colour = colour(series);
    match series.look {
        Look::Bar(..) => {
            let y = y - 6.0;
            writeln!(out, "<rect x=\"{x}\" y=\"{y:.1}\" width=\"22\" height=\"12\" fill=\"{colour}\"/>")
        }
        Look::Dots => {
            writeln!(out, "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4.2\" fill=\"{colour}\"/>", x + 12.0)
        }
        Look::Line | Look::Dashed => {
            let dash = if series.look == Look::Dashed { " stroke-dasharray=\"7 5\"" } else { "" };
            writeln!(
                out,
                "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" \
                 stroke-width=\"2.4\"{dash}/>",
                x + 24.0
            )
        }
    }
}

fn diamond(out: &mut String, (x, y): (f64, f64)) -> std::fmt::Result {
    writeln!(
        out,
        "<path d=\"M{x:.1} {:.1}l6.5 6.5l-6.5 6.5l-6.5 -6.5z\" fill=\"#1b1f24\" stroke=\"#fff\" \
         stroke-width=\"1.2\"/>",
        y - 6.5
    )
}

fn line(out: &mut String, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> std::fmt::Result {
    writeln!(out, "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>")
}

fn text(out: &mut String, (x, y): (f64, f64), class: &str, words: &str) -> std::fmt::Result {
    writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{}</text>", escape(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let words = |axis: Axis| axis.ticks().into_iter().map(|(_, words)| words).collect::<Vec<_>>();
        assert_eq!(words(Axis::linear("ms", 20.0)), ["0", "5", "10", "15", "20"]);
        assert_eq!(words(Axis::log("ms", 1.0, 100.0)), ["1", "2", "5", "10", "20", "50", "100"]);
        assert_eq!(words(Axis::log("ms", 1.0, 1_000.0)), ["1", "10", "100", "1000"]);
    }

    #[test]
    fn long_words_break_between_words() {
        assert_eq!(wrap("one two three four", 9), ["one two", "three", "four"]);
        assert_eq!(wrap("", 9), [""]);
    }

    #[test]
    fn a_cell_with_a_comma_is_quoted() {
        assert_eq!(quote("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
