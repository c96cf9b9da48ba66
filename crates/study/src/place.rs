//! Where in a TOML file an error stands, and the sentence that names its field.

/// The line of an octet, from 1.
pub fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|octet| **octet == b'\n').count() + 1
}

/// Line and sentence of what is no TOML, or not of our fields.
pub fn syntax(text: &str, error: &toml::de::Error) -> (usize, String) {
    let line = error.span().map_or(1, |span| line_of(text, span.start));
    let written = text.lines().nth(line - 1).unwrap_or_default().trim();
    let message = error.message().lines().next().unwrap_or("cannot be read");
    // What is missing is not the field that stands in the table's first line.
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
