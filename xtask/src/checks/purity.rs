//! Floats, hash maps and clocks: each only where the house allows it.

use crate::source::{Source, is_word};
use crate::tree::{Report, Tree, room};
use std::collections::BTreeSet;

const FLOAT_FREE: &[&str] = &["units", "check", "wire", "admission", "medium", "proto"];
/// The rooms that may read a clock wherever they need it; `client` has one function for it.
const CLOCK_ROOMS: &[&str] = &["driver", "node"];

/// Checks each Rust file of each room.
pub fn check(tree: &Tree, report: &mut Report) {
    let mut client_readers = BTreeSet::new();
    for (path, source) in &tree.rust {
        let Some(name) = room(path) else { continue };
        if FLOAT_FREE.contains(&name) {
            for at in floats(source) {
                let sentence =
                    format!("no floating point in {name}: use integers with a named rounding direction");
                report.violation(path, source.line_at(at), sentence);
            }
        }
        if super::arrows::PURE.contains(&name) {
            for at in source.words("HashMap").chain(source.words("HashSet")) {
                let sentence = format!("no hash map in {name}: use BTreeMap, so that one seed gives one run");
                report.violation(path, source.line_at(at), sentence);
            }
        }
        if CLOCK_ROOMS.contains(&name) {
            continue;
        }
        let found = clocks(source);
        if name == "client" && path.starts_with("crates/client/src/") {
            // Where the type is imported, its short name reads the clock as well.
            let short = if found.is_empty() { vec![] } else { source.words("Instant::now").collect() };
            let readers =
                found.into_iter().chain(short).map(|at| (path.as_str(), enclosing_function(source, at)));
            client_readers.extend(readers);
            continue;
        }
        for at in found {
            let way_out = if ["answer", "study", "cli"].contains(&name) {
                "call the one function of the client library"
            } else {
                "take `now` as an argument"
            };
            let sentence = format!("{name} may not read a clock: {way_out}");
            report.violation(path, source.line_at(at), sentence);
        }
    }
    // A use statement is no reader: only functions count.
    client_readers.retain(|(_, function)| function.is_some());
    for (path, function) in client_readers.iter().skip(1) {
        let name = function.as_deref().unwrap_or("");
        report.violation(
            path,
            0,
            format!("fn {name} is a second reader of the clock in client; one is allowed"),
        );
    }
}

/// Where `f32`, `f64` or a literal such as `1.5` or `1e9` stands.
fn floats(source: &Source) -> Vec<usize> {
    let mut found: Vec<usize> = source.words("f32").chain(source.words("f64")).collect();
    let code = source.code.as_bytes();
    let mut i = 0;
    while i < code.len() {
        let starts = code[i].is_ascii_digit() && !(i > 0 && (is_word(code[i - 1]) || code[i - 1] == b'.'));
        if !starts {
            i += 1;
            continue;
        }
        let start = i;
        while code.get(i).is_some_and(|c| is_word(*c)) {
            i += 1;
        }
        let literal = &source.code[start..i];
        let is_point = code.get(i) == Some(&b'.') && code.get(i + 1).is_some_and(u8::is_ascii_digit);
        let is_range = i > start && code.get(i) == Some(&b'.') && code.get(i + 1) == Some(&b'.');
        let is_exponent = !literal.starts_with("0x")
            && literal.split_once(['e', 'E']).is_some_and(|(_, power)| power.parse::<u32>().is_ok());
        let has_suffix = literal.ends_with("f32") || literal.ends_with("f64");
        if (is_point && !is_range) || is_exponent || (has_suffix && !literal.starts_with("0x")) {
            found.push(start);
        }
    }
    found
}

/// Where a clock of the operating system is named.
fn clocks(source: &Source) -> Vec<usize> {
    let mut found: Vec<usize> = source.words("SystemTime").chain(source.words("clock_gettime")).collect();
    found.extend(source.words("Instant").filter(|&at| {
        let before = source.code[..at].trim_end();
        before.ends_with("time::") && before.trim_end_matches("time::").trim_end().ends_with("std::")
            || is_in_std_use(source, at)
            || (before.ends_with("time::") && source.code.contains("use std::time;"))
    }));
    found.extend(source.words("use").filter(|&at| {
        let rest = source.code[at..].split(';').next().unwrap_or("");
        rest.replace(char::is_whitespace, "").starts_with("usestd::time::*")
    }));
    found
}

/// Whether the word stands inside the braces of `use std::…time…{…}`.
fn is_in_std_use(source: &Source, at: usize) -> bool {
    let start = source.code[..at].rfind(';').map_or(0, |i| i + 1);
    let Some(statement) = source.code[start..at].rfind("use ").map(|i| &source.code[start + i + 4..at])
    else {
        return false;
    };
    let statement: String = statement.split_whitespace().collect();
    let Some(path) = statement.strip_prefix("std::") else { return false };
    // Between `time` and the word only this group may have been opened, and none closed.
    let Some((_, behind)) = path.rsplit_once("time::") else { return false };
    !behind.contains('}')
}

fn enclosing_function(source: &Source, at: usize) -> Option<String> {
    let functions = source.functions();
    functions.iter().rfind(|function| function.range.contains(&at)).map(|function| function.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, text: &str) -> Vec<String> {
        Report::sentences(check, &Tree::planted(&[(path, text)]))
    }

    #[test]
    fn floats_are_found_and_integers_are_not() {
        let path = "crates/admission/src/lib.rs";
        for text in ["let x: f64;", "x as f32", "let y = 1.5;", "2e9", "3f64", "1_000.25_f32"] {
            assert!(!faults(path, text).is_empty(), "{text}");
        }
        for text in [
            "a.0.1",
            "0..9",
            "1..=2",
            "0x1e9",
            "0xf64",
            "1_000",
            "x.1 .2",
            "// 1.5 f64",
            "\"1.5\"",
            "v1.max(2)",
        ] {
            assert_eq!(faults(path, text), [""; 0], "{text}");
        }
        assert_eq!(faults("crates/sim/src/lib.rs", "let x: f64 = 1.5;"), [""; 0]);
    }

    #[test]
    fn hash_maps_are_found_in_pure_rooms() {
        assert!(
            faults("crates/sim/src/lib.rs", "use std::collections::{BTreeMap, HashMap};")[0]
                .contains("BTreeMap")
        );
        assert_eq!(faults("crates/proto/tests/a.rs", "let s = HashSet::new();").len(), 1);
        assert_eq!(faults("crates/node/src/lib.rs", "use std::collections::HashMap;"), [""; 0]);
    }

    #[test]
    fn clocks_are_found_however_they_are_named() {
        let path = "crates/proto/src/lib.rs";
        for text in [
            "use std::time::Instant;",
            "use std::time::{Duration, Instant};",
            "use std::{fmt, time::{Duration, Instant}};",
            "std::time::Instant::now()",
            "use std::time;\nfn f() { time::Instant::now(); }",
            "use std::time::*;",
            "SystemTime::now()",
            "nix::time::clock_gettime(c)",
        ] {
            assert_eq!(faults(path, text).len(), 1, "{text}");
        }
        for text in [
            "use rota_units::{Instant, Span};",
            "use std::time::Duration;\nuse rota_units::Instant;",
            "use std::{time::{Duration}, fmt};\nfn f(x: Instant) {}",
            "/// std::time::Instant\nfn f() {}",
        ] {
            assert_eq!(faults(path, text), [""; 0], "{text}");
        }
        assert_eq!(faults("crates/node/src/lib.rs", "std::time::Instant::now()"), [""; 0]);
        assert!(faults("crates/cli/src/demo.rs", "SystemTime::now()")[0].contains("client library"));
    }

    #[test]
    fn the_client_has_one_reader_of_the_clock() {
        let path = "crates/client/src/clock.rs";
        let one = "use std::time::Instant;\nfn now() { Instant::now(); std::time::Instant::now() }";
        assert_eq!(faults(path, one), [""; 0]);
        let two = "fn now() { std::time::Instant::now() }\nfn again() { std::time::Instant::now() }";
        assert_eq!(faults(path, two).len(), 1);
        let short = "use std::time::Instant;\nfn now() { Instant::now() }\nfn again() { Instant::now() }";
        assert_eq!(faults(path, short).len(), 1);
    }
}
