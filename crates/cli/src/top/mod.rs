//! `rota top`: who uses the wire, what is reserved, and how much slack is left; of the whole segment, from
//! any station (SHIPNET, section 2: the monitor).
//!
//! Fulfils SHIPNET-2-26, SHIPNET-2-28.
//!
//! It maps the node's counters file read-only, and asks the node itself once a second for the hops of
//! channels only.

#[cfg(test)]
mod extremes;
mod live;
mod lookout;
mod narrow;
mod picture;
mod rates;
mod screen;
mod source;
mod svg;
mod text;
mod theme;
mod warn;
mod watch;
mod web;

use lookout::{Absent, Lookout};
use narrow::Narrow;
use picture::Picture;
use rota::Span;
use rota_answer::{Exit, Failure, Format, outln};
use screen::Shown;
use std::io::IsTerminal;
use std::path::PathBuf;
use theme::Theme;

/// The longest that --once waits for every station's reports.
const ONCE_AT_MOST: Span = Span::from_millis(3_500);
const ONCE_LOOKS: Span = Span::from_millis(50);

/// Arguments of `rota top`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota lab exec n2 -- rota top\n         rota top --once --json\n         \
                        rota top --rate 10hz src n3 and not kind token")]
pub struct Args {
    /// One picture, after two reports of every station have come (about two seconds)
    #[arg(long, conflicts_with = "web")]
    once: bool,
    /// How often to look and to draw, such as 10hz or 500ms
    #[arg(long, value_parser = rate, default_value = "2hz", value_name = "RATE")]
    rate: Span,
    /// Colours for a dark or a light background, or 'mono' for none; else what NO_COLOR and COLORFGBG say
    #[arg(long, value_enum)]
    theme: Option<Theme>,
    /// A page for browsers of this host instead of the screen
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = web::ADDRESS)]
    web: Option<String>,
    /// Let other hosts read the page too; it asks for no password
    #[arg(long, requires = "web")]
    web_anywhere: bool,
    /// With --once: the screen as an SVG picture, instead of the text
    #[arg(long, requires = "once", value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Columns and rows of that picture
    #[arg(long, requires = "svg", value_parser = size, default_value = "120x40", value_name = "SIZE")]
    size: (u16, u16),
    /// Show only loads and channels that pass, in the language of 'rota trace': src n3 and not kind token
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
}

/// An interval, or how many there are in a second.
fn rate(text: &str) -> Result<Span, String> {
    let wrong = || format!("'{text}' is no rate; write one such as 10hz, or an interval such as 500ms");
    let span = match text.strip_suffix("hz").or_else(|| text.strip_suffix("Hz")) {
        Some(number) => {
            let hertz: f64 = number.trim().parse().map_err(|_| wrong())?;
            if !(hertz.is_finite() && hertz > 0.0) {
                return Err(wrong());
            }
            Span::from_nanos((1e9 / hertz) as u64)
        }
        None => rota_units::parse_span(text).map_err(|_| wrong())?,
    };
    if span < Span::from_millis(20) || span > Span::from_millis(60_000) {
        return Err(format!("a picture every {span} cannot be shown; 50hz to one a minute can"));
    }
    Ok(span)
}

/// The interval as it is shown.
fn rate_name(every: Span) -> String {
    let ns = every.as_nanos().max(1);
    if ns <= 1_000_000_000 { format!("{} Hz", 1_000_000_000 / ns) } else { format!("every {every}") }
}

/// Columns and rows.
fn size(text: &str) -> Result<(u16, u16), String> {
    let parsed = text.split_once('x').and_then(|(x, y)| Some((x.parse().ok()?, y.parse().ok()?)));
    match parsed {
        Some((columns, rows)) if (1..=500).contains(&columns) && (1..=300).contains(&rows) => {
            Ok((columns, rows))
        }
        _ => Err(format!("'{text}' is no size; write columns and rows such as 120x40, at most 500x300")),
    }
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    let wrong = |error: crate::filter::FilterError| Failure::wrong_use(error.to_string());
    let filter = Narrow::parse(&args.filter.join(" ")).map_err(wrong)?;
    if let Some(address) = &args.web {
        if format == Format::Json {
            let sentence = "--web and --json do not go together; the page serves its JSON as /picture.json";
            return Err(Failure::wrong_use(sentence));
        }
        return web::run(address, args.web_anywhere, args.rate, filter);
    }
    let theme = args.theme.unwrap_or_else(Theme::of_environment);
    let rate = rate_name(args.rate);
    let place = (0, 1);
    let shown = Shown { theme, paused: false, help: false, typing: None, wrong: None, rate, place };
    let asked_once = args.once || format == Format::Json;
    if !asked_once && std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        return live::run(args.rate, filter, shown);
    }
    if !asked_once {
        eprintln!("rota top: this is no terminal, so one picture is printed, as with --once");
    }
    let picture = once(args.rate, filter)?;
    if let Some(path) = &args.svg {
        let document = svg::document(&svg::render(&picture, &shown, args.size), theme);
        std::fs::write(path, document)
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?;
    }
    format.tell(&picture, |picture| {
        if args.svg.is_none() {
            outln!("{}", text::page(picture));
        }
    });
    Ok(Exit::Done)
}

/// Looks until every station that reports has done so twice.
fn once(sampling: Span, filter: Narrow) -> Result<Picture, Failure> {
    let mut lookout = Lookout::new(sampling, filter);
    let until = rota::now() + ONCE_AT_MOST;
    loop {
        let now = rota::now();
        match lookout.look(now) {
            Ok(picture) if lookout.is_settled() || now >= until => return Ok(picture),
            Err(Absent::Gone(sentence)) => return Err(Failure { exit: Exit::NotThere, sentence }),
            Err(Absent::NotYet) if now >= until => {
                return Err(Failure::failed(
                    "the node of this station writes no counters; is it of this build?",
                ));
            }
            Ok(_) | Err(Absent::NotYet) => {}
        }
        rota::sleep_until(now + ONCE_LOOKS);
    }
}

#[cfg(test)]
mod tests {
    use crate::Cli;
    use clap::Parser;

    #[test]
    fn options_after_a_filter_are_options() {
        let all = ["rota", "top", "src", "n3", "and", "kind", "token", "--once", "--rate", "10hz"];
        let Ok(Cli { command: crate::Command::Top(args), .. }) = Cli::try_parse_from(all) else {
            panic!("it is refused");
        };
        assert_eq!((args.filter.join(" ").as_str(), args.once), ("src n3 and kind token", true));
    }
}
