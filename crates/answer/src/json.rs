//! JSON for programs: each document has the version of its schema, ids are strings, and errors are documents.
//!
//! An id has 64 bits. JavaScript and jq read numbers as doubles and change those above 2^53.

use crate::exit::Failure;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

/// The version of the schema in docs/json.md: raised when a key changes its meaning or goes.
pub const VERSION: u64 = 2;

/// Keys whose values are ids.
const IDS: [&str; 3] = ["channel", "circuit", "closed"];

/// True once this program has printed a document: an error then adds none.
static MADE: AtomicBool = AtomicBool::new(false);

/// A document, or a line of a log that is made of documents.
pub fn document(value: &impl Serialize) -> String {
    MADE.store(true, Ordering::Relaxed);
    let mut document = Map::from_iter([("rota".to_owned(), VERSION.into())]);
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => document.extend(fields),
        Ok(other) => {
            document.insert("value".to_owned(), other);
        }
        Err(error) => {
            document.insert("error".to_owned(), json!({ "kind": "failed", "sentence": error.to_string() }));
        }
    }
    let mut document = Value::Object(document);
    name_ids(&mut document);
    document.to_string()
}

fn name_ids(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                match field.as_u64().filter(|_| IDS.contains(&key.as_str())) {
                    Some(id) => *field = id.to_string().into(),
                    None => name_ids(field),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(name_ids),
        _ => {}
    }
}

/// The document of a failure, unless the command has printed one: a refusal has a document of its own.
pub fn of_failure(failure: &Failure) -> Option<String> {
    let told = MADE.load(Ordering::Relaxed);
    (!told).then(|| document(&json!({ "error": error_of(failure) })))
}

/// A failure as the value of the key `error`.
pub fn error_of(failure: &Failure) -> Value {
    let Failure { exit, sentence } = failure;
    error(exit.kind(), *exit as u8, sentence)
}

/// The value of the key `error`.
pub fn error(kind: &str, exit: u8, sentence: &str) -> Value {
    json!({ "kind": kind, "exit": exit, "sentence": sentence })
}

/// True if the words of a command line ask for JSON, as far as can be said of words that were not understood.
pub fn is_asked_for(words: &[String]) -> bool {
    let own = words.split(|word| word == "--").next().unwrap_or_default();
    let pair = own.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json");
    pair || own.iter().any(|word| word == "--json" || word == "--format=json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_strings_at_every_depth_and_other_numbers_stay() {
        let channel = u64::MAX - 1;
        let text = document(&json!({ "channels": [{ "channel": channel, "units": 7 }], "closed": 5 }));
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["channels"][0], json!({ "channel": "18446744073709551614", "units": 7 }));
        assert_eq!((&read["closed"], &read["rota"]), (&json!("5"), &json!(VERSION)));
    }

    #[test]
    fn words_behind_two_dashes_are_another_program_s() {
        let asked = |words: &str| is_asked_for(&words.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(asked("channel close 5 --json") && asked("--format json status") && asked("--format=json x"));
        assert!(!asked("lab exec n1 -- rota status --json") && !asked("status --format text"));
    }
}
