//! A figure: panels side by side with a title, a legend and a verdict, as one SVG that needs nothing else.

use crate::plot::{CHARACTER, Frame, Look, Panel, Series, colour, diamond, escape, number, text};
use crate::wrap::wrap;
use std::fmt::Write;

/// A figure of the paper, or one beyond it.
#[derive(Debug)]
pub struct Figure {
    /// Its name on the command line and of its files.
    pub key: &'static str,
    /// Its content.
    pub title: String,
    /// With which machine and load.
    pub subtitle: String,
    /// Side by side, on axes of their own.
    pub panels: Vec<Panel>,
    /// How far off we are, and why.
    pub verdict: String,
}

const WIDTH: f64 = 960.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 18.0;
const PLOT: f64 = 300.0;
/// Characters of a line of text across the figure, also where only a wide font is installed.
const LINE: usize = 138;

const STYLE: &str = "text{font:12.5px 'Helvetica Neue',Arial,sans-serif;fill:#3a424a}.t{font-size:17px;\
    font-weight:700;fill:#1b1f24}.s{fill:#5c6670}.m{text-anchor:middle}.e{text-anchor:end}.b{font-weight:700;\
    fill:#1b1f24}.p{font-weight:700;fill:#1b1f24;paint-order:stroke;stroke:#fff;stroke-width:4px}\
    .g{stroke:#e6e9ec;stroke-width:1}.a{stroke:#6b7580;stroke-width:1.2}.l{stroke:#8a2a22;stroke-width:1.2;\
    stroke-dasharray:5 4}.lw{fill:#8a2a22;paint-order:stroke;stroke:#fff;stroke-width:4px}\
    .u{stroke:#8a939c;stroke-width:0.8;stroke-dasharray:3 3}.late{fill:#fdf3f1}";

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
        for line in wrap(&self.subtitle, [LINE; 2]) {
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
                text: 1.0,
            };
            panel.draw(out, &frame, Some(&format!("{}-{index}", self.key)))?;
        }
        y = top + PLOT + 62.0;
        for line in wrap(&self.verdict, [LINE; 2]) {
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

fn swatch(out: &mut String, series: &Series, (x, y): (f64, f64)) -> std::fmt::Result {
    let colour = colour(series.colour);
    match series.look {
        Look::Bar(..) => {
            let y = y - 6.0;
            writeln!(out, "<rect x=\"{x}\" y=\"{y:.1}\" width=\"22\" height=\"12\" fill=\"{colour}\"/>")
        }
        Look::Dots => {
            writeln!(out, "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4.2\" fill=\"{colour}\"/>", x + 12.0)
        }
        Look::Line | Look::Rule | Look::Dashed | Look::Cloud | Look::Above(_) => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_with_a_comma_is_quoted() {
        assert_eq!(quote("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
