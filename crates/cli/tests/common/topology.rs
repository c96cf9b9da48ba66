//! A lab of a topology file.

use super::{PATIENCE, Program, ROTA, TURN, eventually, labs_refused, text};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::{MutexGuard, PoisonError};

/// The lab of a file in `topologies`; it ends with this value, also when the test fails.
pub struct TopologyLab {
    name: String,
    _turn: MutexGuard<'static, ()>,
}

impl TopologyLab {
    /// `None`, said aloud, where this machine has no namespaces for us.
    pub fn up(test: &str, topology: &str, more: &[&str]) -> Option<Self> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let lab = Self { name: format!("test-{test}-{}", std::process::id()), _turn: turn };
        let file = format!("{}/../../topologies/{topology}", env!("CARGO_MANIFEST_DIR"));
        let words = [&["--topology", &file], more].concat();
        let out = lab.command(&["lab", "up"], &words).output().unwrap();
        let errors = text(&out.stderr);
        if labs_refused(&errors) {
            return None;
        }
        assert!(out.status.success() && !errors.contains("has not found"), "{errors}");
        Some(lab)
    }

    fn command(&self, verbs: &[&str], words: &[&str]) -> Command {
        let mut command = Command::new(ROTA);
        command.args(verbs).args(["--name", &self.name]).args(words).env("ROTA_DEATH_TIMEOUT", "500ms");
        command
    }

    pub fn exec(&self, station: &str, words: &[&str]) -> Program {
        Program::start(self.command(&["lab", "exec"], &[&[station, "--"], words].concat()))
    }

    pub fn rota(&self, station: &str, words: &[&str]) -> Program {
        self.exec(station, &[&[ROTA], words].concat())
    }

    pub fn node(&self, station: &str, words: &[&str]) -> Program {
        let node = self.rota(station, &[&["node", "--name", station], words].concat());
        node.wait_for_word("rota node");
        node
    }

    /// The checker accepts this certificate, and none that has another number in the place of one of its own;
    /// the checker's word on it.
    pub fn check_each_number(&self, station: &str, made: &Value) -> Value {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-numbers", self.name));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut places = Vec::new();
        places_of_numbers(made, String::new(), &mut places);
        let others = places.iter().flat_map(|place| {
            [-1, 1].map(|by| {
                let mut other = made.clone();
                let number = other.pointer_mut(place).expect("its place");
                *number = number.as_u64()?.checked_add_signed(by)?.into();
                Some(other)
            })
        });
        let all: Vec<Value> = [made.clone()].into_iter().chain(others.flatten()).collect();
        let name = |n: usize| folder.join(format!("{n}.json")).display().to_string();
        let files: Vec<String> = (0..all.len()).map(name).collect();
        for (file, certificate) in files.iter().zip(&all) {
            std::fs::write(file, certificate.to_string()).expect("room");
        }
        let words: Vec<&str> =
            ["check", "--json"].into_iter().chain(files.iter().map(String::as_str)).collect();
        let checked = self.rota(station, &words).finish().json();
        let _ = std::fs::remove_dir_all(&folder);
        let checked = checked["certificates"].as_array().expect("a list").clone();
        let hold: Vec<usize> = (0..all.len()).filter(|n| checked[*n]["holds"] == true).collect();
        assert!(all.len() > 60 && hold == [0], "{hold:?} of {}: {}", all.len(), checked[0]);
        checked[0].clone()
    }

    pub fn status(&self, station: &str) -> Value {
        self.rota(station, &["status", "--json"]).finish().well().json()
    }

    pub fn wait_for_mode(&self, station: &str, mode: &str) {
        let is_there = || (self.status(station)["mode"] == mode).then_some(());
        assert!(eventually(PATIENCE, is_there).is_some(), "{}", self.status(station));
    }
}

/// Where a document has numbers.
fn places_of_numbers(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(at),
        Value::Array(all) => {
            all.iter().enumerate().for_each(|(n, one)| places_of_numbers(one, format!("{at}/{n}"), found));
        }
        Value::Object(all) => {
            all.iter().for_each(|(name, one)| places_of_numbers(one, format!("{at}/{name}"), found));
        }
        _ => {}
    }
}

impl Drop for TopologyLab {
    fn drop(&mut self) {
        let _ = self.command(&["lab", "down"], &[]).output();
    }
}
