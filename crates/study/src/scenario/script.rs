//! Scripts of `rota hub`: the `[[fault]]` tables of a scenario file, for a segment whose stations are real.

use super::{FaultTable, placed, wrong};
use crate::place::{read_text, syntax};
use rota_answer::Failure;
use rota_sim::{Scenario, Timed, WorldSpec};
use rota_units::Span;
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Script {
    #[serde(default)]
    fault: Vec<FaultTable>,
}

/// Reads the script at `path` for a hub that joins its ports as this world joins its stations.
///
/// # Errors
/// One sentence with file, line and field.
pub fn read(path: &Path, world: &WorldSpec) -> Result<Vec<Timed>, Failure> {
    let name = path.display();
    let text = read_text(path)?;
    parse(&text, world).map_err(|(line, sentence)| Failure::wrong_use(format!("{name}:{line}: {sentence}")))
}

/// Takes a script's text apart. The error is a line and a sentence that begins with the field.
pub fn parse(text: &str, world: &WorldSpec) -> Result<Vec<Timed>, (usize, String)> {
    let script: Script = toml::from_str(text).map_err(|error| syntax(text, &error))?;
    let mut scenario = Scenario::new("hub", world.stations, world.settings.clone());
    scenario.world = world.clone();
    // A hub runs until somebody ends it.
    scenario.duration = Span::from_nanos(u64::MAX);
    let timed = |(index, table): (usize, &FaultTable)| {
        let timed = table.timed(index, world, &[])?;
        scenario.check_fault(index, &timed)?;
        if timed.fault.is_of_segment() {
            return Ok(timed);
        }
        let sentence = "happens to a station, and a hub has only its wires: stop or kill the station's \
                        process, or use one of loss, loss-nth, delay-nth, duplicate-nth, gilbert, corrupt, \
                        resize, duplicate, delay, boundary, partition, one-way, flap, babble, forge, replay \
                        and flood";
        Err(wrong("fault", index, "kind", sentence))
    };
    let all: Result<Vec<_>, _> = script.fault.iter().enumerate().map(timed).collect();
    all.map_err(|error| placed(text, &error))
}

/// Takes any octets as a script. Nothing may panic, and an error names a line of the text.
pub fn fuzz_script(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err((line, sentence)) = parse(&text, &WorldSpec::new(3)) {
        assert!(line >= 1 && line <= text.lines().count().max(1) + 1, "line {line}: {sentence}");
        assert!(!sentence.is_empty());
    }
}
