//! `rota top`: who uses the wire, what is reserved, and how much slack is left; of the whole segment, from
//! any station (paper 004, section 2: the monitor).
//!
//! It maps the node's counters file read-only, and asks the node for nothing more than that file.

mod narrow;
mod picture;
mod rates;
mod source;
mod text;
mod warn;
mod watch;

use crate::Format;
use crate::exit::{Exit, Failure};
use narrow::Narrow;
use picture::Picture;
use rota::Span;
use source::{Look, Source};
use watch::Watch;

/// The longest that --once waits for every station's reports.
const ONCE_AT_MOST: Span = Span::from_millis(3_500);
const ONCE_LOOKS: Span = Span::from_millis(50);

/// Arguments of `rota top`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota lab exec n2 -- rota top\n         rota top --once --json")]
pub struct Args {
    /// One picture, after two reports of every station have come (about two seconds)
    #[arg(long)]
    once: bool,
    /// How often to look and to draw, such as 10hz or 500ms
    #[arg(long, value_parser = rate, default_value = "2hz", value_name = "RATE")]
    rate: Span,
    /// Show only loads and channels that pass, in the language of 'rota trace': src n3 and not kind token
    #[arg(value_name = "FILTER", trailing_var_arg = true)]
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

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    let filter =
        Narrow::parse(&args.filter.join(" ")).map_err(|error| Failure::wrong_use(error.to_string()))?;
    let picture = once(args.rate, filter)?;
    match format {
        Format::Json => {
            let json = serde_json::to_string(&picture).map_err(|e| Failure::failed(e.to_string()))?;
            outln!("{json}");
        }
        Format::Text => outln!("{}", text::page(&picture)),
    }
    Ok(Exit::Done)
}

/// Looks until every station that reports has done so twice.
fn once(sampling: Span, filter: Narrow) -> Result<Picture, Failure> {
    let (mut source, mut watch) = (Source::new(), Watch::new(sampling));
    watch.set_filter(filter);
    let until = rota::now() + ONCE_AT_MOST;
    loop {
        let now = rota::now();
        match source.look(now) {
            Look::Gone => return Err(Failure::failed(source.why())),
            Look::NotYet if now >= until => {
                return Err(Failure::failed(
                    "the node of this station writes no counters; is it of this build?",
                ));
            }
            Look::NotYet => {}
            Look::Seen => {
                let picture = watch.picture(now, &source);
                if watch.is_settled(&source.rows) || now >= until {
                    return Ok(picture);
                }
            }
        }
        rota::sleep_until(now + ONCE_LOOKS);
    }
}
