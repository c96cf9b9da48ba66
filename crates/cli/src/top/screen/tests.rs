//! Screens at three sizes, of a picture taken in a lab (`rota top --once --json`): compared as text with what
//! was looked at, and painted without any trouble at every other size.

use super::*;
use crate::top::picture::{Beyond, Circuit, Hop, Path, Warning};
use crate::top::svg::{document, render};
use ratatui::buffer::Buffer;
use std::path::PathBuf;

fn busy() -> Picture {
    serde_json::from_str(include_str!("../../../../../testdata/top/busy.json")).expect("a recorded picture")
}

/// The same with trouble: warnings old and new, a station that is gone, a late channel, six channels more, a
/// filter.
fn troubled() -> Picture {
    let mut picture = busy();
    let warning =
        |kind: &str, sentence: &str, lately| Warning { kind: kind.into(), sentence: sentence.into(), lately };
    picture.warnings = vec![
        warning(
            "foreign-babbling",
            "a host outside the agreement, 02:52:4f:54:41:02, babbles: 1712 frames a second (20.6 % of the \
             link), heard by n4: no bound holds against it",
            true,
        ),
        warning("late", "channel 1 from n1 to n5: 12 units came behind the proven bound", true),
        warning("gone", "n2 is gone since 12 s: it has left, died or lost its link", true),
        warning(
            "fault",
            "strikes is 4: a live station did not take the token up, or lost it (none in the last minute)",
            false,
        ),
    ];
    picture.filter = "src n1 and not kind token".into();
    let station = picture.stations.iter_mut().find(|station| station.name == "n2").expect("it is there");
    (station.gone, station.alive) = (true, false);
    station.load.now = Default::default();
    station.kinds = Default::default();
    let first = picture.channels[0].clone();
    for label in 2..=7 {
        let mut more = crate::top::picture::Channel { label, ..first.clone() };
        more.load.now.rate_bps /= label;
        more.slack_history_ns = (0..90).map(|step| 20_000_000 / (1 + step % 7) as i64).collect();
        picture.channels.push(more);
    }
    (picture.channels[0].units.late, picture.channels[0].slack_ns) = (12, Some(-4_100_000));
    picture.should_be_zero[0].value = 4;
    for (level, share) in picture.levels.iter_mut().enumerate() {
        share.load.now.packets_per_second = 400.0 / (level + 1) as f64;
    }
    picture.load_history_bps = (0..240_u64).map(|at| 10_000_000 + at * at % 97 * 120_000).collect();
    picture
}

fn shown(theme: Theme) -> Shown {
    let rate = "2 Hz".into();
    Shown { theme, paused: false, help: false, typing: None, wrong: None, rate, place: (0, 1) }
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
            let pictures = [("busy", busy()), ("troubled", troubled())];
            for ((name, picture), theme) in
                pictures.iter().flat_map(|p| [Theme::Dark, Theme::Light, Theme::Mono].map(|theme| (p, theme)))
            {
                let path = PathBuf::from(&folder).join(format!("{name}-{theme:?}-{columns}x{rows}.svg"));
                let buffer = render(picture, &shown(theme), (columns, rows));
                std::fs::write(path, document(&buffer, theme)).expect("the folder is there");
            }
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

/// At 200 columns the title of priorities that nobody waits at was cut although there was room.
#[test]
fn the_title_of_idle_priorities_is_whole_at_every_usual_size() {
    let mut picture = busy();
    for level in &mut picture.levels {
        level.load.now = Default::default();
    }
    for (columns, rows) in [(80, 24), (110, 30), (120, 40), (200, 60)] {
        let drawn = text(&render(&picture, &shown(Theme::Dark), (columns, rows)));
        assert!(drawn.contains("priority (only under the token)"), "{drawn}");
    }
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
    picture.warnings =
        (1..=5).map(|n| Warning { kind: "late".into(), sentence: sentence(n), lately: true }).collect();
    let drawn = text(&render(&picture, &shown(Theme::Dark), (80, 24)));
    for wanted in ["trouble 1", "trouble 2", "(+2) trouble 3", "q end"] {
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
fn the_filter_stands_beside_warnings_and_what_is_cut_says_so() {
    let drawn = text(&render(&troubled(), &shown(Theme::Dark), (80, 24)));
    assert!(drawn.contains(" filter src n1 and not kind token"), "{drawn}");
    assert!(drawn.contains(" ! a host outside the agreement") && drawn.contains("(+2) channel 1"), "{drawn}");
    let cut: Vec<&str> = drawn.lines().filter(|line| line.chars().count() == 80).collect();
    assert!(cut.iter().any(|line| line.contains("babbles") && line.ends_with('…')), "{drawn}");
    // Where there is room the sentence goes on in the next line.
    let drawn = text(&render(&troubled(), &shown(Theme::Dark), (120, 40)));
    assert!(drawn.contains("\n   bound holds against it"), "{drawn}");
    let longer = Picture { filter: "src n1 or ".repeat(40), ..busy() };
    let typing = Shown { typing: Some(longer.filter.clone() + "host n7"), ..shown(Theme::Dark) };
    let drawn = text(&render(&longer, &typing, (60, 16)));
    assert!(drawn.contains("host n7▏"), "the end of a long filter is what is being typed: {drawn}");
}

#[test]
fn channels_have_bars_in_colours_of_their_own() {
    for theme in [Theme::Dark, Theme::Light] {
        let buffer = render(&troubled(), &shown(theme), (120, 40));
        let mut colours = std::collections::BTreeSet::new();
        for y in 0..40 {
            let row: String = (0..120).map(|x| buffer[(x, y)].symbol()).collect();
            if row.contains("n1→n5") {
                let bar = (0..120).find(|x| buffer[(*x, y)].symbol() == "█").expect("a bar");
                colours.insert(format!("{:?}", buffer[(bar, y)].fg));
            }
        }
        assert_eq!(colours.len(), 7, "{theme:?}");
    }
}

#[test]
fn a_port_of_several_is_named_and_the_key_for_the_next_one_too() {
    let picture = Picture { interface: "eth1".into(), ..busy() };
    let drawn = |place| text(&render(&picture, &Shown { place, ..shown(Theme::Dark) }, (80, 24)));
    let of_two = drawn((1, 2));
    assert!(of_two.contains("eth1 2/2") && of_two.contains("Tab interface"), "{of_two}");
    assert!(!drawn((0, 1)).contains("eth1"));
}

#[test]
fn a_channel_that_leaves_the_segment_is_shown_node_by_node() {
    let hop = |node: &str, medium: &str, dropped| Hop {
        node: node.into(),
        medium: medium.into(),
        bound_ns: 116_620_000,
        sent: 4_711,
        dropped,
        share: "2 packets in each 33.333 ms".into(),
        ..Hop::default()
    };
    let hops = vec![hop("faith", "rether", 0), hop("sock", "link", 3)];
    let path = Path { to: "paola".into(), service: 9, bound_ns: 304_000_000, hops, ..Path::default() };
    let paths = vec![Path { broken: Some(2), units: Some(40), ..path }];
    let picture = Picture { beyond: Beyond { paths, ..Beyond::default() }, ..busy() };
    let channel = "→paola, service 9: bound 304 ms, 40 units whole, 2 broken";
    // The smallest usual screen of a busy station has room for the first node, and says what it leaves out.
    for (size, wanted) in [
        ((80, 24), &[channel, "faith", "dropped    0  +1 more"][..]),
        ((120, 40), &[channel, "sock", "dropped    3  2 packets"]),
    ] {
        let drawn = text(&render(&picture, &shown(Theme::Dark), size));
        for wanted in wanted {
            assert!(drawn.contains(wanted), "{wanted}: {drawn}");
        }
        assert!(drawn.contains("bound   117 ms  sent     4711"), "{drawn}");
    }
    let page = crate::top::text::page(&picture);
    assert!(
        page.contains("hop 2     sock        port 0, link, bound 117 ms, sent 4711, dropped 3"),
        "{page}"
    );
}

#[test]
fn a_circuit_has_a_row_with_what_it_waits_for() {
    let circuit = |peer: &str, sends, waits: &str| Circuit {
        circuit: 5_672,
        sends,
        peer: peer.into(),
        service: 7,
        class: "reliable".into(),
        stage: "open".into(),
        rate_bps: Some(48_400_000),
        again: 17,
        window: 40,
        flying: 12,
        waits_for_words: waits.into(),
        ..Circuit::default()
    };
    let circuits = vec![circuit("n2", true, "the receiver's room"), circuit("n9", false, "a missing TPDU")];
    let picture = Picture { beyond: Beyond { circuits, ..Beyond::default() }, ..busy() };
    let here = picture.name.clone();
    let (there, back) = (format!("{here}→n2"), format!("n9→{here}"));
    // The smallest usual screen says how many have no row.
    for (size, wanted) in [
        ((80, 24), &["waits for", "+"][..]),
        ((80, 40), &[&*there, &*back, "open reliable    48.4 Mbit/s     17  the receiver's room"]),
        ((120, 40), &[&*there, &*back, "7             open reliable", "12/40    a missing TPDU"]),
    ] {
        let drawn = text(&render(&picture, &shown(Theme::Dark), size));
        for wanted in wanted {
            assert!(drawn.contains(wanted), "{wanted}: {drawn}");
        }
    }
    let page = crate::top::text::page(&picture);
    let line =
        "-> n2, service 7, reliable, open: 48.4 Mbit/s, again 17, lost 0, 12 of window 40, waits for the";
    assert!(page.contains(line), "{page}");
}

#[test]
fn help_is_whole_on_the_smallest_usual_screen() {
    let drawn = text(&render(&busy(), &Shown { help: true, ..shown(Theme::Dark) }, (80, 24)));
    assert!(drawn.contains("keys and colours") && drawn.contains("begin anew"), "{drawn}");
    assert!(drawn.contains("averages and maxima"), "{drawn}");
}

#[test]
fn a_picture_is_a_document_without_anything_that_a_name_could_add() {
    let mut picture = busy();
    picture.stations[0].name = "<script>&".into();
    let buffer = render(&picture, &shown(Theme::Light), (80, 24));
    let svg = document(&buffer, Theme::Light);
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && !svg.contains("<script"));
}
