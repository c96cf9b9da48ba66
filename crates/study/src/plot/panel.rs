//! A pair of axes and all that can be drawn on them.

use super::axis::Axis;
use super::ink::{colour, diamond, escape, line, text};
use std::fmt::Write;

/// How far above the axes the first row of [`Look::Above`] stands, and how far the rows are apart.
const ABOVE: (f64, f64) = (44.0, 5.0);

/// One pair of axes.
#[derive(Debug)]
pub struct Panel {
    /// Above the axes; empty for the only panel of a figure.
    pub title: String,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// The drawing.
    pub series: Vec<Series>,
    /// Numbers that the paper printed.
    pub printed: Vec<Printed>,
    /// Coloured ground below everything else.
    pub areas: Vec<Area>,
    /// Dashed lines up.
    pub uprights: Vec<f64>,
    /// Dashed lines across.
    pub limits: Vec<Limit>,
    /// Words above points, such as the values of bars.
    pub values: Vec<(f64, f64, String)>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A line.
    Line,
    /// A dashed line.
    Dashed,
    /// A line without points.
    Rule,
    /// Points.
    Dots,
    /// Thousands of points.
    Cloud,
    /// Small strokes above the axes in this row, from 0 on top; only how far across they are counts.
    Above(u16),
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

/// A rectangle of coloured ground.
#[derive(Debug)]
pub struct Area {
    /// From and to, across.
    pub x: (f64, f64),
    /// From and to, up.
    pub y: (f64, f64),
    /// Which class gives its colour.
    pub class: &'static str,
}

/// A dashed line across.
#[derive(Debug)]
pub struct Limit {
    /// At which height.
    pub at: f64,
    /// Its words.
    pub words: String,
    /// True if its words stand at the right end.
    pub right: bool,
}

/// A printed number.
#[derive(Debug)]
pub struct Printed {
    /// Where it stands.
    pub at: (f64, f64),
    /// Its words.
    pub words: String,
    /// True if its words stand to the left of it.
    pub left: bool,
}

/// Where axes stand on the paper.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The y axis.
    pub left: f64,
    /// The end of the x axis.
    pub right: f64,
    /// The end of the y axis.
    pub top: f64,
    /// The x axis.
    pub bottom: f64,
    /// The size of the text, of 12.5 pixels.
    pub text: f64,
}

impl Panel {
    /// Empty axes.
    pub fn new(title: &str, x: Axis, y: Axis) -> Self {
        let title = title.into();
        let (series, printed, values) = (vec![], vec![], vec![]);
        Self { title, x, y, series, printed, values, areas: vec![], uprights: vec![], limits: vec![] }
    }
}

impl Series {
    /// A curve or points.
    pub fn new(name: impl Into<String>, colour: usize, look: Look, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), colour, look, points }
    }
}

impl Frame {
    fn middle(&self) -> f64 {
        (self.left + self.right) / 2.0
    }
}

impl Panel {
    /// Where a value stands on the paper.
    pub fn place(&self, frame: &Frame, (x, y): (f64, f64)) -> (f64, f64) {
        let across = frame.left + self.x.share(x) * (frame.right - frame.left);
        (across, frame.bottom - self.y.share(y) * (frame.bottom - frame.top))
    }

    /// Draws it all. A curve that leaves the axes is cut off where `clip` names that, once in a page.
    ///
    /// # Errors
    /// The writer's; a string has none.
    pub fn draw(&self, out: &mut String, frame: &Frame, clip: Option<&str>) -> std::fmt::Result {
        if !self.title.is_empty() {
            text(out, (frame.middle(), frame.top - 12.0), "m b", &self.title)?;
        }
        self.areas(out, frame)?;
        self.axes(out, frame)?;
        if let Some(id) = clip {
            let (width, height) = (frame.right - frame.left, frame.bottom - frame.top);
            writeln!(
                out,
                "<clipPath id=\"{id}\"><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" \
                 height=\"{height:.1}\"/></clipPath><g clip-path=\"url(#{id})\">",
                frame.left, frame.top
            )?;
        }
        for series in &self.series {
            series.draw(out, self, frame)?;
        }
        if clip.is_some() {
            writeln!(out, "</g>")?;
        }
        for limit in &self.limits {
            let (_, y) = self.place(frame, (self.x.range.0, limit.at));
            line(out, "l", (frame.left, y), (frame.right, y))?;
            let (x, class) = if limit.right { (frame.right - 6.0, "e lw") } else { (frame.left + 6.0, "lw") };
            text(out, (x, y - 5.0 * frame.text), class, &limit.words)?;
        }
        for (x, y, words) in &self.values {
            let (x, y) = self.place(frame, (*x, *y));
            text(out, (x, y.min(frame.bottom - 1.5) - 5.0 * frame.text), "m", words)?;
        }
        for printed in &self.printed {
            let (x, y) = self.place(frame, printed.at);
            diamond(out, (x, y))?;
            let (shift, class) = if printed.left { (-11.0, "e p") } else { (11.0, "p") };
            text(out, (x + shift, y + 4.0), class, &printed.words)?;
        }
        Ok(())
    }

    fn areas(&self, out: &mut String, frame: &Frame) -> std::fmt::Result {
        for Area { x, y, class } in &self.areas {
            let (left, bottom) = self.place(frame, (x.0, y.0));
            let (right, top) = self.place(frame, (x.1, y.1));
            let (width, height) = (right - left, bottom - top);
            writeln!(
                out,
                "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
                 height=\"{height:.1}\"/>"
            )?;
        }
        Ok(())
    }

    fn axes(&self, out: &mut String, frame: &Frame) -> std::fmt::Result {
        let Frame { left, right, top, bottom, text: size } = *frame;
        for (value, words) in self.y.ticks() {
            let (_, y) = self.place(frame, (self.x.range.0, value));
            line(out, "g", (left, y), (right, y))?;
            text(out, (left - 7.0 * size, y + 4.0 * size), "e", &words)?;
        }
        for (value, words) in self.x.ticks() {
            let (x, _) = self.place(frame, (value, self.y.range.0));
            line(out, "a", (x, bottom), (x, bottom + 4.0))?;
            text(out, (x, bottom + 18.0 * size), "m", &words)?;
        }
        for x in &self.uprights {
            let (x, _) = self.place(frame, (*x, self.y.range.0));
            line(out, "u", (x, top), (x, bottom))?;
        }
        line(out, "a", (left, bottom), (right, bottom))?;
        line(out, "a", (left, top), (left, bottom))?;
        text(out, (frame.middle(), bottom + 38.0 * size), "m", &self.x.label)?;
        let (x, y) = (left - 46.0 * size, (top + bottom) / 2.0);
        let words = escape(&self.y.label);
        let turn = format!("rotate(-90 {x:.1} {y:.1})");
        writeln!(out, "<text class=\"m\" x=\"{x:.1}\" y=\"{y:.1}\" transform=\"{turn}\">{words}</text>")
    }
}

impl Series {
    fn draw(&self, out: &mut String, panel: &Panel, frame: &Frame) -> std::fmt::Result {
        match self.look {
            Look::Bar(nth, of) => self.bars(out, panel, frame, (nth, of)),
            Look::Cloud => {
                // A line of no length with round ends is the shortest way to write a point.
                let pen = "stroke-width=\"3\" stroke-linecap=\"round\" stroke-opacity=\"0.62\"";
                self.strokes(out, pen, panel, frame, |(x, y)| format!("M{x:.1} {y:.1}h0"))
            }
            Look::Above(row) => {
                let y = frame.top - ABOVE.0 + ABOVE.1 * f64::from(row);
                self.strokes(out, "stroke-width=\"1\"", panel, frame, |(x, _)| format!("M{x:.1} {y:.0}v4"))
            }
            Look::Line | Look::Dashed | Look::Rule => {
                self.curve(out, panel, frame)?;
                if self.look == Look::Rule { Ok(()) } else { self.points(out, panel, frame, 2.4) }
            }
            Look::Dots => self.points(out, panel, frame, 4.2),
        }
    }

    fn bars(
        &self,
        out: &mut String,
        panel: &Panel,
        frame: &Frame,
        (nth, of): (usize, usize),
    ) -> std::fmt::Result {
        let colour = colour(self.colour);
        let unit = panel.place(frame, (1.0, 1.0)).0 - panel.place(frame, (0.0, 1.0)).0;
        let width = unit * 0.84 / of.max(1) as f64;
        for point in &self.points {
            let (x, y) = panel.place(frame, *point);
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
        Ok(())
    }

    fn curve(&self, out: &mut String, panel: &Panel, frame: &Frame) -> std::fmt::Result {
        if self.points.len() < 2 {
            return Ok(());
        }
        let mut path = String::new();
        for (index, point) in self.points.iter().enumerate() {
            let (x, y) = panel.place(frame, *point);
            write!(path, "{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' })?;
        }
        let colour = colour(self.colour);
        let dash = if self.look == Look::Dashed { " stroke-dasharray=\"7 5\"" } else { "" };
        writeln!(out, "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>")
    }

    fn points(&self, out: &mut String, panel: &Panel, frame: &Frame, radius: f64) -> std::fmt::Result {
        let colour = colour(self.colour);
        for point in &self.points {
            let (x, y) = panel.place(frame, *point);
            writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\"/>")?;
        }
        Ok(())
    }

    /// All points as one path, which names the series where a pointer rests on it. The pen stands in the
    /// path: a figure that is a file of its own has no style sheet of a page.
    fn strokes(
        &self,
        out: &mut String,
        pen: &str,
        panel: &Panel,
        frame: &Frame,
        stroke: impl Fn((f64, f64)) -> String,
    ) -> std::fmt::Result {
        let path: String = self.points.iter().map(|point| stroke(panel.place(frame, *point))).collect();
        let (colour, name) = (colour(self.colour), escape(&self.name));
        writeln!(
            out,
            "<path fill=\"none\" stroke=\"{colour}\" {pen} d=\"{path}\"><title>{name}</title></path>"
        )
    }
}
