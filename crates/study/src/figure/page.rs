//! All figures on one HTML page that needs nothing else.

use super::chart::Figure;
use crate::plot::escape;
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");

/// The page.
pub fn html(figures: &[Figure]) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, figures);
    page
}

fn write_page(page: &mut String, figures: &[Figure]) -> std::fmt::Result {
    writeln!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>The papers' figures, \
         drawn again</title><style>{STYLE}</style></head><body><main>\
         <h1>The papers&rsquo; tables and figures, drawn again</h1><p>Each \
         figure is computed here: the paper&rsquo;s own protocol with the costs it printed, visit by \
         visit, its laboratory on a simulated CSMA/CD segment, and the node that Rota ships, in its \
         simulator. A series or a panel that was measured on a machine says so. Diamonds are the numbers \
         that the paper printed. The lines below a figure say how far off we are and why. Figure curves of \
         the paper are lost; only its printed numbers can be compared.</p><nav>"
    )?;
    for figure in figures {
        writeln!(page, "<a href=\"#{}\">{}</a>", figure.key, escape(&figure.title))?;
    }
    writeln!(page, "</nav>")?;
    let mut part = "";
    for figure in figures {
        let before = std::mem::replace(&mut part, part_of(figure));
        if part != before {
            writeln!(page, "<h2>{part}</h2>")?;
        }
        writeln!(page, "<section id=\"{}\">{}", figure.key, figure.svg())?;
        numbers(page, figure)?;
        writeln!(page, "</section>")?;
    }
    writeln!(page, "</main></body></html>")
}

/// The part of the page that a figure stands in: the papers number theirs alike.
fn part_of(figure: &Figure) -> &'static str {
    match figure.key.split('-').next() {
        Some("beyond") => "Beyond the paper",
        Some("shipnet") => "SHIPNET, 1988",
        Some("tenet") => "Tenet, 1994",
        Some("atm") => "Native-mode transport, 1996",
        Some("endhost") => "End host, 1998",
        _ => "RETHER, 1995",
    }
}

/// The points as a table, folded away.
fn numbers(page: &mut String, figure: &Figure) -> std::fmt::Result {
    writeln!(page, "<details><summary>The numbers of {}</summary>", figure.key)?;
    let csv = figure.csv();
    writeln!(page, "<pre>{}</pre></details>", escape(&csv))
}
