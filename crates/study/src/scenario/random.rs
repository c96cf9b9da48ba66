//! Random and damaged scenario files: each is refused with one line of the file and one sentence that begins
//! with a field, or it runs.

use super::*;
use proptest::prelude::*;
use rota_sim::Run;

/// What a run may take here before it has shown enough.
const EVENTS_MAX: u64 = 20_000;

/// Values that people write by mistake, and some that they mean.
const VALUES: &[&str] = &[
    "-1",
    "-5",
    "0",
    "1",
    "3",
    "250",
    "251",
    "99999999999999999999",
    "1.5",
    "-0.0",
    "nan",
    "inf",
    "true",
    "[]",
    "[1, 2]",
    "[99]",
    "{}",
    "\"\"",
    "\"-5ms\"",
    "\"0s\"",
    "\"5\"",
    "\"5ms\"",
    "\"1us\"",
    "\"1ns\"",
    "\"2s\"",
    "\"9999999h\"",
    "\"99999999999s\"",
    "\"10mbit\"",
    "\"1bit\"",
    "\"100gbit\"",
    "\"-10mbit\"",
    "\"0mbit\"",
    "\"1octets\"",
    "\"6250octets\"",
    "\"-1octets\"",
    "\"40kB\"",
    "\"9999999MiB\"",
    "\"50ppm\"",
    "\"200%\"",
    "\"-1%\"",
    "\"5%\"",
    "\"link\"",
    "\"csma-cd\"",
    "\"switch\"",
    "\"holding\"",
    "\"crash\"",
    "\"flood\"",
    "\"greedy\"",
    "\"clip\"",
    "\"tcp\"",
    "\"\\u0000\"",
    "2026-11-21",
    "\"ü\"",
];

/// Lines that could stand anywhere.
const LINES: &[&str] = &[
    "[[fault]]",
    "[[traffic]]",
    "[[reservation]]",
    "[medium]",
    "[timers]",
    "[hosts]",
    "[clocks]",
    "[mix]",
    "kind = \"link\"",
    "kind = \"csma-cd\"",
    "kind = \"partition\"",
    "kind = \"crash-loop\"",
    "at = \"0s\"",
    "lasts = \"100ms\"",
    "station = 1",
    "other = 2",
    "stations = [1, 2]",
    "from = 1",
    "to = 2",
    "unit = \"6250octets\"",
    "must-admit = true",
    "shape = \"periodic\"",
    "period = \"40ms\"",
    "mean = \"1ms\"",
    "every = \"200ms\"",
    "late = \"1%\"",
    "colour = \"red\"",
    "= 5",
    "[[[",
    "]",
    "\u{feff}",
    "hop = \"1ns\"",
    "lease = \"1ns\"",
    "drift = \"60%\"",
    "share = \"100%\"",
    "up = \"1ns\"",
    "down = \"1ns\"",
    "rate = 1e300",
];

fn files() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect()
}

/// One change to one line.
#[derive(Clone, Debug)]
struct Change {
    kind: u8,
    line: usize,
    with: usize,
}

fn change() -> impl Strategy<Value = Change> {
    (0u8..7, any::<usize>(), any::<usize>()).prop_map(|(kind, line, with)| Change { kind, line, with })
}

fn damaged(text: &str, changes: &[Change]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for Change { kind, line, with } in changes {
        let at = line % lines.len().max(1);
        let Some(this) = lines.get(at).cloned() else { break };
        let field = this.split('=').next().unwrap_or("").to_owned();
        match kind {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, this),
            2 => lines.insert(at, LINES[with % LINES.len()].to_owned()),
            3 => {
                let other = lines[with % lines.len()].clone();
                lines[at] = other;
            }
            4 => {
                let octets = this.char_indices().map(|(at, _)| at).nth(with % (this.len() + 1));
                lines[at].truncate(octets.unwrap_or(this.len()));
            }
            _ if this.contains('=') => lines[at] = format!("{field}= {}", VALUES[with % VALUES.len()]),
            _ => {}
        }
    }
    lines.join("\n")
}

/// Whether the text was refused, and that it was refused well.
fn refuses_or_runs(seed: u64, text: &str) -> Result<bool, TestCaseError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let scenario = match parse(text, &folder) {
        Ok(scenario) => scenario,
        Err((line, sentence)) => {
            prop_assert!(line >= 1 && line <= text.lines().count().max(1), "line {line}: {sentence}\n{text}");
            prop_assert!(!sentence.contains('\n') && sentence.len() > 8, "{sentence:?}");
            return Ok(true);
        }
    };
    let mut run = Run::new(seed, &scenario);
    run.advance_within(EVENTS_MAX);
    let stuck = run.world.violations().iter().find(|found| found.rule == "S7");
    prop_assert!(stuck.is_none(), "{stuck:?}");
    Ok(false)
}

#[test]
fn a_damaged_scenario_file_is_refused_by_line_and_field_or_runs() {
    let files = files();
    let cases = ProptestConfig::default().cases.max(1_500);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let counts = std::cell::Cell::new([0u32; 2]);
    let drawn = (any::<u64>(), 0..files.len(), prop::collection::vec(change(), 1..5));
    let ended = runner.run(&drawn, |(seed, file, changes)| {
        let refused = refuses_or_runs(seed, &damaged(&files[file], &changes))?;
        let mut now = counts.get();
        now[usize::from(refused)] += 1;
        counts.set(now);
        Ok(())
    });
    assert!(ended.is_ok(), "{}", ended.unwrap_err());
    let [ran, refused] = counts.get();
    assert!(ran > 100 && refused > 400, "{ran} ran and {refused} were refused");
}

proptest! {
    #[test]
    fn random_text_is_refused(text in "(\\PC|\n){0,200}") {
        prop_assert!(refuses_or_runs(1, &text)?);
    }

    #[test]
    fn random_lines_are_refused_or_run(
        picks in prop::collection::vec((any::<bool>(), any::<usize>(), any::<usize>()), 1..20)
    ) {
        let mut text = "stations = 3\nrate = \"10mbit\"\nduration = \"300ms\"\n".to_owned();
        for (whole, line, value) in picks {
            let line = LINES[line % LINES.len()];
            let line = match line.split_once('=') {
                Some((field, _)) if !whole => format!("{field}= {}", VALUES[value % VALUES.len()]),
                _ => line.to_owned(),
            };
            text += &line;
            text.push('\n');
        }
        refuses_or_runs(7, &text)?;
    }
}
