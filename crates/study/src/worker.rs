//! A child process of a study: its output is read while it runs, and it never outlives its owner.

use crate::clock;
use rota_answer::Failure;
use rota_units::{Instant, Span};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

const POLL: Span = Span::from_millis(10);

/// A running `rota` command in a station.
pub struct Worker {
    label: String,
    child: Child,
    out: Option<JoinHandle<Vec<String>>>,
    err: Option<JoinHandle<Vec<String>>>,
    first_err_line: Receiver<String>,
}

/// How it ended.
pub struct Finished {
    /// Its exit code; `None` when it had to be killed.
    pub code: Option<i32>,
    /// Lines on standard output.
    pub out: Vec<String>,
    /// Lines on standard error.
    pub err: Vec<String>,
    label: String,
}

impl Worker {
    /// Starts `command`; `label` is for error messages.
    pub fn start(label: impl Into<String>, mut command: Command) -> Result<Self, Failure> {
        let label = label.into();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let spawned = command.spawn();
        let mut child = spawned.map_err(|e| Failure::failed(format!("cannot start {label}: {e}")))?;
        let (told, first_err_line) = channel();
        let out = child.stdout.take().map(|pipe| collect(pipe, None));
        let err = child.stderr.take().map(|pipe| collect(pipe, Some(told)));
        Ok(Self { label, child, out, err, first_err_line })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its first line on standard error; an error when it ends or is silent instead.
    pub fn wait_for_word(&mut self, patience: Span) -> Result<String, Failure> {
        let timeout = Duration::from_nanos(patience.as_nanos());
        let heard = self.first_err_line.recv_timeout(timeout);
        heard.map_err(|_| Failure::failed(format!("{} did not start within {patience}", self.label)))
    }

    /// Has it ended?
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Waits for its end, and ends it at `deadline`.
    pub fn finish(mut self, deadline: Instant) -> Finished {
        while !self.has_ended() && clock::now() < deadline {
            clock::sleep_until(clock::now() + POLL);
        }
        let ended = self.child.try_wait().ok().flatten();
        self.end();
        let lines =
            |thread: Option<JoinHandle<Vec<String>>>| thread.and_then(|t| t.join().ok()).unwrap_or_default();
        Finished {
            code: ended.and_then(|status| status.code()),
            out: lines(self.out.take()),
            err: lines(self.err.take()),
            label: self.label.clone(),
        }
    }

    fn end(&mut self) {
        // Both fail only when it has already ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
    }
}

impl Finished {
    /// The sentence with which it failed.
    pub fn failure(&self) -> Failure {
        let last = self.err.last().map_or("it said nothing", |line| line.trim_start_matches("rota: "));
        match self.code {
            Some(code) => Failure::failed(format!("{} ended with {code}: {last}", self.label)),
            None => Failure::failed(format!("{} had to be ended: {last}", self.label)),
        }
    }

    /// The JSON document in its last line of output.
    pub fn document<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.out.last()?).ok()
    }
}

fn collect(pipe: impl Read + Send + 'static, told: Option<Sender<String>>) -> JoinHandle<Vec<String>> {
    std::thread::spawn(move || {
        let mut lines = Vec::new();
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if let Some(told) = &told {
                // Nobody listens any more once the first word was heard.
                let _ = told.send(line.clone());
            }
            lines.push(line);
        }
        lines
    })
}
