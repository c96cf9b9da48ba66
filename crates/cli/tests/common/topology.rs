//! A lab of a topology file.

use super::{PATIENCE, Program, ROTA, TURN, eventually, labs_refused, text};
use serde_json::Value;
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

    pub fn status(&self, station: &str) -> Value {
        self.rota(station, &["status", "--json"]).finish().well().json()
    }

    pub fn wait_for_mode(&self, station: &str, mode: &str) {
        let is_there = || (self.status(station)["mode"] == mode).then_some(());
        assert!(eventually(PATIENCE, is_there).is_some(), "{}", self.status(station));
    }
}

impl Drop for TopologyLab {
    fn drop(&mut self) {
        let _ = self.command(&["lab", "down"], &[]).output();
    }
}
