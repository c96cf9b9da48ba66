//! Words, lines and colours on the paper. A class says what a thing is; the style beside the drawing says how
//! that looks: `m` and `e` set words around or before their place, `g` is a grid line, `a` an axis, `l` a
//! limit and `lw` its words, `u` an upright line, `p` a printed number.

use std::fmt::Write;

/// Okabe and Ito's colours, which colour-blind readers can tell apart.
const COLOURS: [&str; 8] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4d4d4d", "#b9bec4"];
/// A character of the 12.5-pixel text, on average and a little more.
pub const CHARACTER: f64 = 6.6;

/// The colour of this number, from 0.
pub fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

/// Text as HTML and SVG show it.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Words at their place.
pub fn text(out: &mut String, (x, y): (f64, f64), class: &str, words: &str) -> std::fmt::Result {
    writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{}</text>", escape(words))
}

/// A straight line.
pub fn line(out: &mut String, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> std::fmt::Result {
    writeln!(out, "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>")
}

/// The mark of a number that was printed in a paper.
pub fn diamond(out: &mut String, (x, y): (f64, f64)) -> std::fmt::Result {
    writeln!(
        out,
        "<path d=\"M{x:.1} {:.1}l6.5 6.5l-6.5 6.5l-6.5 -6.5z\" fill=\"#1b1f24\" stroke=\"#fff\" \
         stroke-width=\"1.2\"/>",
        y - 6.5
    )
}
