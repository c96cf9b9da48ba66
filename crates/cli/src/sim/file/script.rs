//! Scripts of `rota hub`: the `[[fault]]` tables of a scenario file, for a segment whose stations are real.

use super::{FaultTable, placed, read_text, syntax, wrong};
use crate::exit::Failure;
use rota_sim::Timed;
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Script {
    #[serde(default)]
    fault: Vec<FaultTable>,
}

/// Reads the script at `path` for a hub of so many ports.
///
/// # Errors
/// One sentence with file, line and field.
pub fn read(path: &Path, ports: usize) -> Result<Vec<Timed>, Failure> {
    let name = path.display();
    let text = read_text(path)?;
    parse(&text, ports).map_err(|(line, sentence)| Failure::wrong_use(format!("{name}:{line}: {sentence}")))
}

/// Takes a script's text apart. The error is a line and a sentence that begins with the field.
pub fn parse(text: &str, ports: usize) -> Result<Vec<Timed>, (usize, String)> {
    let script: Script = toml::from_str(text).map_err(|error| syntax(text, &error))?;
    let timed = |(index, table): (usize, &FaultTable)| {
        let timed = table.timed(index, ports)?;
        if timed.fault.is_of_frames() {
            return Ok(timed);
        }
        let sentence = "happens to a station, and a hub has only its wires: stop or kill the station's \
                        process, or use one of loss, loss-nth, gilbert, corrupt, resize, duplicate, delay, \
                        boundary, partition, one-way and flap";
        Err(wrong("fault", index, "kind", sentence))
    };
    let all: Result<Vec<_>, _> = script.fault.iter().enumerate().map(timed).collect();
    all.map_err(|error| placed(text, &error))
}

/// Takes any octets as a script. Nothing may panic, and an error names a line of the text.
#[cfg(test)]
pub fn fuzz_script(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err((line, sentence)) = parse(&text, 3) {
        assert!(line >= 1 && line <= text.lines().count().max(1) + 1, "line {line}: {sentence}");
        assert!(!sentence.is_empty());
    }
}
