//! A screen as a picture: what a terminal would show, as SVG, for pages and for looking at.

use super::picture::Picture;
use super::screen::{self, Shown};
use super::theme::Theme;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use std::fmt::Write;

const CELL: (u32, u32) = (9, 18);

/// The picture as a terminal of so many columns and rows would show it.
pub fn render(picture: &Picture, shown: &Shown, size: (u16, u16)) -> Buffer {
    let mut terminal = match Terminal::new(TestBackend::new(size.0, size.1)) {
        Ok(terminal) => terminal,
        Err(never) => match never {},
    };
    match terminal.draw(|frame| screen::draw(frame, picture, shown)) {
        Ok(_) => {}
        Err(never) => match never {},
    }
    terminal.backend().buffer().clone()
}

/// One of the 256 colours of terminals; beyond the first sixteen they are a cube and a row of greys.
fn colour(color: Color, otherwise: &str) -> String {
    let Color::Indexed(number) = color else { return otherwise.to_owned() };
    let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * u16::from(step) };
    match number {
        16..=231 => {
            let n = number - 16;
            format!("#{:02x}{:02x}{:02x}", level(n / 36), level(n / 6 % 6), level(n % 6))
        }
        232..=255 => {
            let grey = 8 + 10 * u16::from(number - 232);
            format!("#{grey:02x}{grey:02x}{grey:02x}")
        }
        _ => otherwise.to_owned(),
    }
}

/// The buffer as an SVG document.
pub fn document(buffer: &Buffer, theme: Theme) -> String {
    let (ink, paper) = if theme == Theme::Dark { ("#e4e4e4", "#16181d") } else { ("#1c1c1c", "#ffffff") };
    let area = buffer.area;
    let (width, height) = (u32::from(area.width) * CELL.0, u32::from(area.height) * CELL.1);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"DejaVu Sans Mono,monospace\" font-size=\"15\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{paper}\"/>\n"
    );
    for y in 0..area.height {
        for x in 0..area.width {
            let Some(cell) = buffer.cell((x, y)) else { continue };
            let reversed = cell.modifier.contains(Modifier::REVERSED);
            let fore = colour(cell.fg, ink);
            let (fore, back) = if reversed { (paper.to_owned(), Some(fore)) } else { (fore, None) };
            let (left, top) = (u32::from(x) * CELL.0, u32::from(y) * CELL.1);
            if let Some(back) = back {
                let _ = writeln!(
                    out,
                    "<rect x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{}\" fill=\"{back}\"/>",
                    CELL.0, CELL.1
                );
            }
            if cell.symbol().trim().is_empty() {
                continue;
            }
            let bold = if cell.modifier.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
            let text = cell.symbol().replace('&', "&amp;").replace('<', "&lt;");
            let _ =
                writeln!(out, "<text x=\"{left}\" y=\"{}\" fill=\"{fore}\"{bold}>{text}</text>", top + 14);
        }
    }
    out + "</svg>\n"
}
