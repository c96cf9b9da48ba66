//! `rota check`: has the independent checker look at certificates.

pub mod document;
pub mod open;

use crate::place::text_up_to;
use document::Document;
use rota_answer::{Exit, Failure, Format, outln};
use rota_units::Span;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Arguments of `rota check`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota plan net.toml --certificates certs && rota check certs/*.json")]
pub struct Args {
    /// Certificates, as `rota plan --certificates` writes them
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// A certificate is a statement about a path of a few nodes.
const FILE_OCTETS_MAX: u64 = 16 << 20;

#[derive(Serialize)]
struct Checked {
    file: String,
    holds: bool,
    /// The reason where it does not.
    fault: Option<String>,
    delay_ns: Option<u64>,
    delay_max_ns: Option<u64>,
    jitter_ns: Option<u64>,
    hops: Option<usize>,
    receivers: Option<usize>,
}

/// Runs the command.
///
/// # Errors
/// None; a file that proves nothing is told, and the exit code says so.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    let checked: Vec<Checked> = args.files.iter().map(|file| checked(file)).collect();
    format.tell(&serde_json::json!({ "certificates": &checked }), |_| {
        checked.iter().for_each(|one| outln!("{}", one.sentence()));
    });
    Ok(if checked.iter().all(|one| one.holds) { Exit::Done } else { Exit::Failed })
}

fn checked(path: &Path) -> Checked {
    let file = path.display().to_string();
    let document = text_up_to(path, FILE_OCTETS_MAX).and_then(|text| Document::read(&text));
    let document = document.and_then(|document| match document.check() {
        Ok(()) => Ok(document),
        Err(fault) => Err(fault.to_string()),
    });
    let document = match document {
        Ok(document) => document,
        Err(sentence) => return Checked::no(file, sentence),
    };
    let (promise, channel) = (document.promise(), document.channel());
    Checked {
        file,
        holds: true,
        fault: None,
        delay_ns: Some(promise.delay),
        delay_max_ns: Some(channel.delay_max),
        jitter_ns: Some(promise.jitter),
        hops: Some(document.hops()),
        receivers: Some(document.receivers()),
    }
}

impl Checked {
    fn no(file: String, fault: String) -> Self {
        let (delay_ns, delay_max_ns, jitter_ns, hops, receivers) = (None, None, None, None, None);
        Self { file, holds: false, fault: Some(fault), delay_ns, delay_max_ns, jitter_ns, hops, receivers }
    }

    fn sentence(&self) -> String {
        let span = |ns: Option<u64>| Span::from_nanos(ns.unwrap_or(0));
        match &self.fault {
            Some(fault) => format!("{}: proves nothing: {fault}", self.file),
            None => format!(
                "{}: holds: each message within {} over {}{} ({} were asked for), jitter {}, if its \
                 assumptions are true",
                self.file,
                span(self.delay_ns).printed_up(),
                match self.hops {
                    Some(1) => "1 hop".to_owned(),
                    hops => format!("{} hops", hops.unwrap_or(0)),
                },
                match self.receivers {
                    Some(many) if many > 1 => format!(" to each of {many} receivers"),
                    _ => String::new(),
                },
                span(self.delay_max_ns),
                span(self.jitter_ns).printed_up()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `rota plan` says it: a bound is rounded against the applicant.
    #[test]
    fn a_certificate_that_holds_is_told_with_bounds_that_are_no_shorter() {
        let said = |hops, receivers| {
            let one = Checked {
                file: "C.json".into(),
                holds: true,
                fault: None,
                delay_ns: Some(101_300_001),
                delay_max_ns: Some(500_000_000),
                jitter_ns: Some(2_000_000_001),
                hops: Some(hops),
                receivers: Some(receivers),
            };
            one.sentence()
        };
        let one = said(1, 1);
        assert!(
            one.contains("within 101.301 ms over 1 hop (500 ms were asked for), jitter 2.001 s"),
            "{one}"
        );
        assert!(said(2, 1).contains("over 2 hops ("));
        assert!(said(4, 2).contains("over 4 hops to each of 2 receivers ("));
    }
}
