//! `rota sim figure`: the tables and figures of the RETHER paper again, beside its printed numbers, the same
//! axes with links and stations that it did not have, the figures of the SHIPNET paper, some of the Tenet
//! paper, those of the native-mode transport's, and those of the end-host paper. Everything is computed; what
//! was measured on a machine comes from files and says so.

mod atm;
mod atm_cost;
mod atm_overload;
mod atm_smart;
mod beyond;
mod chart;
mod delay;
mod endhost;
mod endhost_copyout;
mod measure;
mod measured;
mod page;
mod share;
mod shipnet;
mod tables;
mod tenet;
mod tenet_cost;
mod tenet_setup;
mod tenet_wan;

use chart::Figure;
use clap::ValueEnum;
use measured::Measured;
use rota_answer::{Exit, Failure, Format, outln};
use rota_units::{Span, parse_span};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Arguments of `rota sim figure`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota sim figure all --out figures")]
pub struct Args {
    /// Which figure
    #[arg(value_enum)]
    what: What,
    /// The directory for SVG, CSV and the page
    #[arg(long, value_name = "DIR", default_value = "figures")]
    out: PathBuf,
    /// Measured points: hop.json, tenet.json and setup.json (rota bench hop, tenet and setup, each with
    /// --json), access.json and calibration*.toml (rota calibrate); figures say what carried them
    #[arg(long, value_name = "DIR")]
    measured: Option<PathBuf>,
    /// Measure access.json in a lab of five namespaces first, into the directory of --measured
    #[arg(long, requires = "measured")]
    measure: bool,
    /// How long each point is measured
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = window, requires = "measure")]
    window: Span,
    /// Runs behind each simulated point of Figure 4; Table 1 takes a fifth of it
    #[arg(
        long,
        value_name = "N",
        default_value_t = 105,
        value_parser = clap::value_parser!(u64).range(5..=10_000)
    )]
    runs: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    #[value(name = "rether-table1", alias = "table1")]
    Table1,
    #[value(name = "rether-table2", alias = "table2")]
    Table2,
    #[value(name = "rether-fig4", alias = "fig4")]
    Fig4,
    #[value(name = "rether-fig5", alias = "fig5")]
    Fig5,
    #[value(name = "rether-fig6", alias = "fig6")]
    Fig6,
    #[value(name = "rether-fig7", alias = "fig7")]
    Fig7,
    #[value(name = "rether-fig8", alias = "fig8")]
    Fig8,
    #[value(name = "rether-fig9", alias = "fig9")]
    Fig9,
    /// The capacity for reservations at 10 Mbit/s to 10 Gbit/s
    BeyondRates,
    /// The capacity for reservations with up to 200 stations
    BeyondStations,
    /// The same with every station saturated, and as a guarantee
    BeyondWorst,
    #[value(name = "shipnet-fig2")]
    ShipnetFig2,
    #[value(name = "shipnet-fig3")]
    ShipnetFig3,
    #[value(name = "shipnet-fig4")]
    ShipnetFig4,
    #[value(name = "shipnet-fig5")]
    ShipnetFig5,
    #[value(name = "shipnet-fig6")]
    ShipnetFig6,
    #[value(name = "shipnet-fig7")]
    ShipnetFig7,
    #[value(name = "shipnet-fig8")]
    ShipnetFig8,
    #[value(name = "tenet-fig8")]
    TenetFig8,
    #[value(name = "tenet-fig9")]
    TenetFig9,
    #[value(name = "tenet-fig10")]
    TenetFig10,
    #[value(name = "tenet-fig12")]
    TenetFig12,
    #[value(name = "tenet-fig13")]
    TenetFig13,
    #[value(name = "tenet-fig14")]
    TenetFig14,
    #[value(name = "tenet-fig15")]
    TenetFig15,
    #[value(name = "tenet-table5")]
    TenetTable5,
    #[value(name = "atm-fig5")]
    AtmFig5,
    #[value(name = "atm-fig6")]
    AtmFig6,
    #[value(name = "atm-fig7")]
    AtmFig7,
    #[value(name = "atm-fig8")]
    AtmFig8,
    #[value(name = "atm-fig9")]
    AtmFig9,
    #[value(name = "atm-fig10")]
    AtmFig10,
    /// SMART, go-back-N and TCP's recovery over loss
    AtmSmart,
    #[value(name = "endhost-fig3")]
    EndhostFig3,
    #[value(name = "endhost-fig4")]
    EndhostFig4,
    /// The single copy's ring: packets lost by threshold and by burst
    EndhostCopyout,
    /// All of them, and one HTML page
    All,
}

/// How much work goes into simulated points.
struct Effort {
    runs: u64,
    table1_seeds: u64,
    rotations: u64,
}

/// The written files, as `--json` prints them.
#[derive(Serialize)]
struct Written {
    figure: &'static str,
    svg: PathBuf,
    csv: PathBuf,
    verdict: String,
    /// The paper's numbers beside ours, of the figures that have a table of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    beside: Vec<Beside>,
}

/// A row of that table.
#[derive(Serialize)]
struct Beside {
    what: String,
    paper: String,
    here: String,
}

fn window(text: &str) -> Result<Span, String> {
    let span = parse_span(text).map_err(|error| error.to_string())?;
    let sound = (Span::from_millis(100)..=Span::from_millis(60_000)).contains(&span);
    if sound { Ok(span) } else { Err(format!("{span} is no time to measure a point; 100ms to 60s is")) }
}

fn ms(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e6
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    if args.measure {
        measure::access(args.measured.as_deref().unwrap_or(Path::new(".")), args.window)?;
    }
    let measured = Measured::read(args.measured.as_deref())?;
    let effort = Effort { runs: args.runs, table1_seeds: (args.runs / 5).max(1), rotations: 60 };
    let dir = &args.out;
    std::fs::create_dir_all(dir)
        .map_err(|e| Failure::failed(format!("cannot make {}: {e}", dir.display())))?;
    let wanted: Vec<What> = match args.what {
        What::All => What::value_variants().iter().copied().filter(|what| *what != What::All).collect(),
        one => vec![one],
    };
    let (mut figures, mut written) = (Vec::new(), Vec::new());
    for what in wanted {
        let figure = draw(what, &effort, &measured);
        let (svg, csv) = (dir.join(format!("{}.svg", figure.key)), dir.join(format!("{}.csv", figure.key)));
        write(&svg, &figure.svg())?;
        write(&csv, &figure.csv())?;
        let beside = beside(figure.key);
        if format == Format::Text {
            outln!("{}  {}\n  {}\n", svg.display(), figure.title, figure.verdict);
            table(&beside);
        }
        written.push(Written { figure: figure.key, svg, csv, verdict: figure.verdict.clone(), beside });
        figures.push(figure);
    }
    if args.what == What::All {
        let path = dir.join("figures.html");
        write(&path, &page::html(&figures))?;
        if format == Format::Text {
            outln!("All of them: {}", path.display());
        }
    }
    if format == Format::Json {
        outln!("{}", rota_answer::json::document(&serde_json::json!({ "figures": written })));
    }
    Ok(Exit::Done)
}

/// The paper's printed numbers beside ours, for those figures that have a table.
fn beside(key: &str) -> Vec<Beside> {
    match key {
        "endhost-copyout" => endhost_copyout::beside(),
        key if key.starts_with("endhost") => endhost::beside(key),
        key => tenet_wan::beside(key),
    }
}

/// The table in columns.
fn table(rows: &[Beside]) {
    if !rows.is_empty() {
        outln!("  {:<52}  {:>16}  {}", "", "paper", "here, simulated");
        rows.iter().for_each(|Beside { what, paper, here }| outln!("  {what:<52}  {paper:>16}  {here}"));
        outln!("");
    }
}

fn draw(what: What, effort: &Effort, measured: &Measured) -> Figure {
    match what {
        What::Table1 => tables::table1(effort),
        What::Table2 => tables::table2(measured),
        What::Fig4 => delay::fig4(effort),
        What::Fig5 => delay::fig5(effort),
        What::Fig6 => delay::fig6(),
        What::Fig7 => delay::fig7(effort, measured),
        What::Fig8 => delay::fig8(effort),
        What::Fig9 => beyond::fig9(),
        What::BeyondRates => beyond::rates(measured),
        What::BeyondStations => beyond::stations(),
        What::ShipnetFig2 => shipnet::fig2(),
        What::ShipnetFig3 => shipnet::fig3(),
        What::ShipnetFig4 => shipnet::fig4(),
        What::ShipnetFig5 => shipnet::fig5(),
        What::ShipnetFig6 => shipnet::fig6(),
        What::ShipnetFig7 => shipnet::fig7(),
        What::ShipnetFig8 => shipnet::fig8(),
        What::TenetFig8 => tenet_cost::fig8(measured),
        What::TenetFig9 => tenet_cost::fig9(measured),
        What::TenetFig10 => tenet::fig10(),
        What::TenetFig12 => tenet_wan::fig12(),
        What::TenetFig13 => tenet_wan::fig13(),
        What::TenetFig14 => tenet_wan::fig14(),
        What::TenetFig15 => tenet_wan::fig15(),
        What::TenetTable5 => tenet_setup::table5(measured),
        What::AtmFig5 => atm::fig5(),
        What::AtmFig6 => atm::fig6(),
        What::AtmFig7 => atm_overload::fig7(),
        What::AtmFig8 => atm_overload::fig8(),
        What::AtmFig9 => atm_cost::fig9(),
        What::AtmFig10 => atm_cost::fig10(),
        What::AtmSmart => atm_smart::recovery(),
        What::EndhostFig3 => endhost::fig3(),
        What::EndhostFig4 => endhost::fig4(),
        What::EndhostCopyout => endhost_copyout::figure(),
        What::BeyondWorst | What::All => beyond::worst(),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|e| Failure::failed(format!("cannot write {}: {e}", path.display())))
}
