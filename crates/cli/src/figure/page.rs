//! All figures on one HTML page that needs nothing else.

use super::chart::Figure;
use crate::report::escape;
use std::fmt::Write;

const STYLE: &str = "body{margin:0;background:#fff;color:#1b1f24;font:15px/1.5 'Helvetica Neue',Arial,sans-serif}\
    main{max-width:1000px;margin:0 auto;padding:36px 20px 80px}h1{font-size:32px;line-height:1.15;margin:0 0 8px}\
    h2{font-size:20px;margin:44px 0 6px;padding-top:14px;border-top:1px solid #d9dde2}\
    p{max-width:860px}svg{display:block;width:100%;height:auto;margin:26px 0}a{color:#0a58a8}\
    nav{columns:2;margin:18px 0}nav a{display:block}table{border-collapse:collapse;font-size:13.5px}\
    td,th{padding:3px 12px;border-bottom:1px solid #e3e6ea;text-align:right}th:first-child,td:first-child\
    {text-align:left}summary{cursor:pointer;color:#5c6670;font-size:13.5px}";

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
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>RETHER's figures, drawn again\
         </title><style>{STYLE}</style></head><body><main><h1>RETHER&rsquo;s tables and figures, drawn again</h1>\
         <p>Each figure is computed here: the paper&rsquo;s own protocol with the costs it printed, visit by \
         visit, its laboratory on a simulated CSMA/CD segment, and the node that Rota ships, in its simulator. \
         Diamonds are the numbers that the paper printed. The lines below a figure say how far off we are and \
         why. Figure curves of the paper are lost; only its printed numbers can be compared.</p><nav>"
    )?;
    for figure in figures {
        writeln!(page, "<a href=\"#{}\">{}</a>", figure.key, escape(&figure.title))?;
    }
    writeln!(page, "</nav>")?;
    let mut beyond = false;
    for figure in figures {
        if figure.key.starts_with("beyond") && !beyond {
            beyond = true;
            writeln!(page, "<h2>Beyond the paper</h2>")?;
        }
        writeln!(page, "<section id=\"{}\">{}", figure.key, figure.svg())?;
        numbers(page, figure)?;
        writeln!(page, "</section>")?;
    }
    writeln!(page, "</main></body></html>")
}

/// The points as a table, folded away.
fn numbers(page: &mut String, figure: &Figure) -> std::fmt::Result {
    writeln!(page, "<details><summary>The numbers of {}</summary>", figure.key)?;
    let csv = figure.csv();
    writeln!(page, "<pre>{}</pre></details>", escape(&csv))
}
