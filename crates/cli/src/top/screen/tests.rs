//! Screens at three sizes, of a picture taken in a lab (`rota top --once --json`): compared as text with what
//! was looked at, and painted without any trouble at every other size.

use super::*;
use crate::top::picture::Warning;
use crate::top::svg::{document, render};
use ratatui::buffer::Buffer;
use std::path::PathBuf;

fn busy() -> Picture {
    serde_json::from_str(include_str!("../../../../../testdata/top/busy.json")).expect("a recorded picture")
}

fn shown(theme: Theme) -> Shown {
    Shown { theme, paused: false, help: false, typing: None, wrong: None, rate: "2 Hz".into() }
}

fn text(buffer: &Buffer) -> String {
    let rows = (0..buffer.area.height).map(|y| {
        let row: String = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect();
        format!("{}\n", row.trim_end())
    });
    rows.collect()
}

/// With ROTA_BLESS set, what is drawn today becomes what is wanted; look at it first (ROTA_SVG names a folder
/// for pictures of it).
fn compare(name: &str, drawn: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/top").join(name);
    if std::env::var_os("ROTA_BLESS").is_some() {
        std::fs::write(&path, drawn).expect("the folder is there");
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(wanted == drawn, "{} differs; drawn today:\n{drawn}", path.display());
}

#[test]
fn three_sizes_look_as_they_were_looked_at() {
    for (columns, rows) in [(80, 24), (120, 40), (200, 60)] {
        let buffer = render(&busy(), &shown(Theme::Dark), (columns, rows));
        if let Some(folder) = std::env::var_os("ROTA_SVG") {
            let path = PathBuf::from(folder).join(format!("{columns}x{rows}.svg"));
            std::fs::write(path, document(&buffer, Theme::Dark)).expect("the folder is there");
        }
        compare(&format!("{columns}x{rows}.txt"), &text(&buffer));
    }
}

#[test]
fn without_colours_the_kinds_differ_by_their_pattern() {
    let buffer = render(&busy(), &shown(Theme::Mono), (120, 40));
    let drawn = text(&buffer);
    assert!(drawn.contains('▒') && drawn.contains('█'), "{drawn}");
    let coloured = buffer.content().iter().filter(|cell| cell.fg != ratatui::style::Color::Reset).count();
    assert_eq!(coloured, 0);
}

#[test]
fn every_size_can_be_drawn_and_no_name_breaks_a_line() {
    let mut picture = busy();
    for station in &mut picture.stations {
        station.name = "a very long name with ümläuts 漢字".into();
    }
    for columns in (0..220).step_by(7) {
        for rows in (0..70).step_by(5) {
            let _ = render(&picture, &shown(Theme::Light), (columns, rows));
        }
    }
    for help in [false, true] {
        let shown = Shown { help, ..shown(Theme::Light) };
        let _ = render(&Picture::without_node("no node"), &shown, (80, 24));
    }
}

#[test]
fn keys_warnings_and_a_wrong_filter_are_on_the_smallest_usual_screen() {
    let mut picture = busy();
    let sentence = |n: u32| format!("trouble {n}");
    picture.warnings = (1..=4).map(|n| Warning { kind: "late".into(), sentence: sentence(n) }).collect();
    let drawn = text(&render(&picture, &shown(Theme::Dark), (80, 24)));
    for wanted in ["trouble 1", "(+2) trouble 2", "q end"] {
        assert!(drawn.contains(wanted), "{drawn}");
    }
    let typing = Shown {
        typing: Some("kind tokne".into()),
        wrong: Some("column 6: 'tokne' is no kind".into()),
        ..shown(Theme::Dark)
    };
    let drawn = text(&render(&picture, &typing, (80, 24)));
    assert!(drawn.contains("filter: kind tokne") && drawn.contains("column 6"), "{drawn}");
}

#[test]
fn a_picture_is_a_document_without_anything_that_a_name_could_add() {
    let mut picture = busy();
    picture.stations[0].name = "<script>&".into();
    let buffer = render(&picture, &shown(Theme::Light), (80, 24));
    let svg = document(&buffer, Theme::Light);
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && !svg.contains("<script"));
}
