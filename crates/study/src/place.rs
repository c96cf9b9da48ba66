//! Where in a TOML file an error stands, and the sentence that names its field.

use rota_answer::Failure;
use std::path::Path;

/// A larger file is neither a scenario nor a topology.
const FILE_OCTETS_MAX: u64 = 1 << 20;

/// The text of a file that people write.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    text_up_to(path, FILE_OCTETS_MAX).map_err(Failure::failed)
}

/// The text of a file of at most `octets_max`, whole MiB; or a sentence.
pub fn text_up_to(path: &Path, octets_max: u64) -> Result<String, String> {
    let unreadable = |reason: String| format!("cannot read {}: {reason}", path.display());
    let about = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
    if !about.is_file() {
        return Err(unreadable("it is no regular file".to_owned()));
    }
    if about.len() > octets_max {
        return Err(unreadable(format!("it is larger than {} MiB", octets_max >> 20)));
    }
    std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))
}

/// Line and sentence of a wrong field in the `index`-th table of a kind; the table's line where it lacks the
/// field.
pub fn part(text: &str, (part, index, field): (&str, usize, &str), sentence: &str) -> (usize, String) {
    let headers = [format!("[[{part}]]"), format!("[{part}]")];
    let (mut seen, mut inside, mut found) = (0, part.is_empty(), 1);
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            let ours = headers.iter().any(|header| line.starts_with(header.as_str()));
            inside = ours && seen == index;
            seen += usize::from(ours);
            if inside {
                found = at + 1;
            }
        } else if inside && line.split('=').next().is_some_and(|name| name.trim() == field) {
            found = at + 1;
        }
    }
    let dot = if part.is_empty() { "" } else { "." };
    (found, format!("{part}{dot}{field}: {sentence}"))
}

/// The line of an octet, from 1.
pub fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|octet| **octet == b'\n').count() + 1
}

/// Line and sentence of what is no TOML, or not of our fields.
pub fn syntax(text: &str, error: &toml::de::Error) -> (usize, String) {
    let line = error.span().map_or(1, |span| line_of(text, span.start));
    let written = text.lines().nth(line - 1).unwrap_or_default().trim();
    let message = error.message().lines().next().unwrap_or("cannot be read");
    // The missing field is not the one in the table's first line.
    if let Some(field) = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return (line, format!("{field}: is missing"));
    }
    let table = written.trim_matches(['[', ']']);
    if written.starts_with('[') && message.starts_with("invalid type: map, expected a sequence") {
        return (line, format!("{table}: there may be several; write [[{table}]]"));
    }
    // A list of tables would be taken for a table's values, one for each field.
    let header = text.lines().take(line).enumerate().filter(|(_, line)| line.trim().starts_with('[')).last();
    if let Some((at, header)) = header
        && let Some(table) = header.trim().strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]"))
        && ["medium", "timers", "hosts", "clocks", "mix"].contains(&table)
    {
        return (at + 1, format!("{table}: there is one only; write [{table}]"));
    }
    let message = ["usize", "u64", "u32", "u16", "u8"].iter().fold(message.to_owned(), |message, kind| {
        message.replace(&format!("expected {kind}"), "expected a whole number, 0 or more")
    });
    let field = written.split_once('=').map(|(field, _)| field.trim());
    (line, field.map_or_else(|| message.clone(), |field| format!("{field}: {message}")))
}
