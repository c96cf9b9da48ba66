//! A lab for tests that work as a user does: every step is a `rota` command in a station of its own.
#![allow(dead_code)] // Each test program uses its part.

pub mod c;
pub mod example;
pub mod holds;
pub mod stream;
pub mod topology;

use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

pub const ROTA: &str = env!("CARGO_BIN_EXE_rota");
/// Long enough for a host that stands still now and then; a test that passes never waits so long.
pub const PATIENCE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(20);

/// Labs run one after another: two at once would disturb each other's clocks on a small machine.
static TURN: Mutex<()> = Mutex::new(());

/// A LAN of this test; it ends with this value, also when the test fails.
pub struct Lab {
    name: String,
    stations: u8,
    scratch: PathBuf,
    nodes: Vec<Program>,
    /// What `lab up` told.
    pub about: Value,
    _turn: MutexGuard<'static, ()>,
}

impl Lab {
    /// A lab with a node in every station, which all know each other. `None`, said aloud, where this machine
    /// has no namespaces for us.
    pub fn up(test: &str, stations: u8) -> Option<Self> {
        let lab = Self::without_nodes(test, stations, &[])?;
        Some(lab.with_nodes(|_, _| Vec::new()))
    }

    /// The same, each node with more arguments.
    pub fn with_nodes(self, more: impl Fn(&Self, u8) -> Vec<String>) -> Self {
        let lab = self.with_strangers(more);
        lab.wait_for_members();
        lab
    }

    /// The same, whether or not they can hear each other.
    pub fn with_strangers(mut self, more: impl Fn(&Self, u8) -> Vec<String>) -> Self {
        for k in 1..=self.stations {
            let node = self.start_node(k, &more(&self, k));
            self.nodes.push(node);
        }
        self
    }

    /// The LAN alone.
    pub fn without_nodes(test: &str, stations: u8, more: &[&str]) -> Option<Self> {
        Self::build(test, stations, |_| more.iter().map(|word| (*word).to_owned()).collect())
    }

    /// The LAN alone, its stations joined by a hub in which nothing goes wrong yet.
    pub fn with_hub(test: &str, stations: u8) -> Option<Self> {
        Self::build(test, stations, |lab| {
            std::fs::write(lab.file("script.toml"), "").unwrap();
            vec!["--hub".into(), lab.file("script.toml").display().to_string()]
        })
    }

    fn build(test: &str, stations: u8, more: impl FnOnce(&Self) -> Vec<String>) -> Option<Self> {
        let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let name = format!("test-{test}-{}", std::process::id());
        let scratch = std::env::temp_dir().join(format!("rota-{name}"));
        std::fs::create_dir_all(&scratch).unwrap();
        let mut lab = Self { name, stations, scratch, nodes: Vec::new(), about: Value::Null, _turn: turn };
        let mut up = lab.command(&["lab", "up"]);
        up.args(["--json", "--no-nodes", "--nodes", &stations.to_string()]).args(more(&lab));
        let out = up.output().unwrap();
        let errors = text(&out.stderr);
        if labs_refused(&errors) {
            return None;
        }
        assert!(out.status.success(), "{errors}");
        lab.about = serde_json::from_slice(&out.stdout).unwrap();
        Some(lab)
    }

    /// Lets the hub follow this script from now on, and no other.
    pub fn follow(&self, script: &str) {
        std::fs::write(self.file("script.toml"), script).unwrap();
        self.signal_hub("HUP");
    }

    /// Sends the hub a signal.
    pub fn signal_hub(&self, name: &str) {
        signal(u32::try_from(self.about["hub_pid"].as_u64().unwrap()).unwrap(), name);
    }

    /// Ends the lab; what its hub counted.
    pub fn down(mut self) -> Value {
        self.nodes.clear();
        let out = self.command(&["lab", "down", "--json"]).output().unwrap();
        assert!(out.status.success(), "{}", text(&out.stderr));
        let down: Value = serde_json::from_slice(&out.stdout).unwrap();
        down["hub"].clone()
    }

    fn command(&self, verbs: &[&str]) -> Command {
        let mut command = Command::new(ROTA);
        command.args(verbs).args(["--name", &self.name]);
        command
    }

    /// Any program in station `k`. A node forgives what a busy machine does: its timers do not follow stalls.
    pub fn exec(&self, k: u8, words: &[&str]) -> Command {
        let mut command = self.command(&["lab", "exec"]);
        command.args([&format!("n{k}"), "--"]).args(words).env("ROTA_DEATH_TIMEOUT", "500ms");
        command
    }

    /// `rota` in station `k`, to its end.
    pub fn rota(&self, k: u8, words: &[&str]) -> Ended {
        self.start(k, words).finish()
    }

    /// `rota` in station `k`, which goes on.
    pub fn start(&self, k: u8, words: &[&str]) -> Program {
        Program::start(self.exec(k, &[&[ROTA], words].concat()))
    }

    /// A node in station `k`; returns when programs can reach it.
    pub fn start_node(&self, k: u8, more: &[String]) -> Program {
        let name = format!("n{k}");
        let mut words = vec!["node", "--iface", "eth0", "--name", &name];
        words.extend(more.iter().map(String::as_str));
        let node = self.start(k, &words);
        node.wait_for_word("rota node");
        node
    }

    /// A receiver that already listens.
    pub fn receiver(&self, k: u8, service: &str, more: &[&str]) -> Program {
        let program = self.start(k, &[&["recv", "--json", "--service", service], more].concat());
        program.wait_for_word("listening");
        program
    }

    /// A file of this test's own.
    pub fn file(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// What the node of station `k` tells.
    pub fn status(&self, k: u8) -> Value {
        self.rota(k, &["status", "--json"]).well().json()
    }

    /// All stations.
    pub fn all(&self) -> std::ops::RangeInclusive<u8> {
        1..=self.stations
    }

    /// Waits until the node of station `k` tells what is wanted, and returns it.
    pub fn wait_for_status(&self, k: u8, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let found = eventually(PATIENCE, || {
            last = self.status(k);
            wanted(&last).then(|| last.clone())
        });
        found.unwrap_or_else(|| panic!("n{k}: {what} never came; its last status: {last}"))
    }

    /// Waits until the logs of the nodes of these stations have these words.
    pub fn nodes_said(&self, stations: &[u8], words: &str) {
        stations.iter().for_each(|k| self.nodes[usize::from(*k) - 1].wait_for_word(words));
    }

    pub fn wait_for_mode(&self, k: u8, mode: &str) {
        self.wait_for_status(k, mode, |status| status["mode"] == mode);
    }

    /// Waits until every station knows every other by its name.
    pub fn wait_for_members(&self) {
        let wanted: BTreeSet<String> = self.all().map(|k| format!("n{k}")).collect();
        for k in self.all() {
            self.wait_for_status(k, "the others' names", |status| {
                let members = status["members"].as_array().unwrap().iter();
                members.map(|m| m["name"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>() == wanted
            });
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for node in &self.nodes {
                eprintln!("{} logged:\n{}", node.words, node.err());
            }
        }
        self.nodes.clear();
        let _ = self.command(&["lab", "down"]).output();
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

/// A running program whose words are read as it says them; killed when dropped.
pub struct Program {
    words: String,
    child: Child,
    out: Arc<Mutex<String>>,
    err: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
}

impl Program {
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (out, err) = (Arc::default(), Arc::default());
        let readers = vec![
            read_into(child.stdout.take().unwrap(), Arc::clone(&out)),
            read_into(child.stderr.take().unwrap(), Arc::clone(&err)),
        ];
        Self { words: format!("{command:?}"), child, out, err, readers }
    }

    /// What it has said so far on standard output.
    pub fn out(&self) -> String {
        self.out.lock().unwrap().clone()
    }

    /// What it has said so far on standard error.
    pub fn err(&self) -> String {
        self.err.lock().unwrap().clone()
    }

    pub fn wait_for_word(&self, word: &str) {
        let found = eventually(PATIENCE, || self.err().contains(word).then_some(()));
        found.unwrap_or_else(|| panic!("'{word}' was never said, but: {}{}", self.out(), self.err()));
    }

    /// Asks it to end, as Ctrl-C would; `lab exec` passes that on.
    pub fn interrupt(&self) {
        signal(self.child.id(), "INT");
    }

    /// The process in the station that `lab exec` started.
    pub fn inner(&self) -> u32 {
        let id = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        children.split(' ').next().unwrap().parse().unwrap()
    }

    /// kill -9: what runs in the station dies with the `lab exec` that started it.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Ended {
        let ended = eventually(PATIENCE, || self.child.try_wait().unwrap());
        let Some(status) = ended else {
            panic!("{} did not end, but said: {}{}", self.words, self.out(), self.err())
        };
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        Ended { status, out: self.out(), err: self.err() }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// The exit code; -1 when a signal ended it.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or(-1)
    }

    /// The last line of standard output that is a JSON document.
    pub fn json(&self) -> Value {
        let found = self.out.lines().rev().find_map(|line| serde_json::from_str(line).ok());
        found.unwrap_or_else(|| panic!("no JSON: {}{}", self.out, self.err))
    }

    /// That a stream came to its end. On a machine that is busy with other things some units may be late,
    /// which both programs then tell with 4.
    #[track_caller]
    pub fn carried(self) -> Self {
        if self.code() == 4 && self.err.contains("the promise was broken") { self } else { self.well() }
    }

    /// That it did what it was asked to.
    #[track_caller]
    pub fn well(self) -> Self {
        assert!(self.status.success(), "{}: {}{}", self.status, self.out, self.err);
        self
    }
}

fn read_into(pipe: impl std::io::Read + Send + 'static, into: Arc<Mutex<String>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let mut said = into.lock().unwrap();
            said.push_str(&line);
            said.push('\n');
        }
    })
}

/// Tries again and again, at least once more after the time is over: a host that stood still is no failure.
pub fn eventually<T>(patience: Duration, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let end = rota::now().as_nanos() + u64::try_from(patience.as_nanos()).unwrap();
    loop {
        let is_last = rota::now().as_nanos() > end;
        if let Some(found) = attempt() {
            return Some(found);
        }
        if is_last {
            return None;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Sends a signal to a process.
pub fn signal(pid: u32, name: &str) {
    let pid = nix::unistd::Pid::from_raw(pid.cast_signed());
    let signal: nix::sys::signal::Signal = format!("SIG{name}").parse().unwrap();
    nix::sys::signal::kill(pid, signal).unwrap();
}

/// Whether a command said that this machine lets nobody build a lab; then the test is skipped, loudly.
pub fn labs_refused(errors: &str) -> bool {
    let refused = errors.contains("may not make network namespaces");
    if refused {
        skipped(errors);
    }
    refused
}

/// Says loudly that this test did not run: past the test harness, which would keep it to itself, and by the
/// name that the harness gave its thread, for a requirement that cites it must not count as shown.
pub fn skipped(why: &str) {
    let thread = std::thread::current();
    let name = thread.name().and_then(|path| path.rsplit("::").next()).unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "SKIPPED {name}: {why}");
}

pub fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).trim_end().to_owned()
}

pub fn testdata(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name).display().to_string()
}

/// The process id in a status.
pub fn pid(status: &Value) -> u32 {
    u32::try_from(status["pid"].as_u64().unwrap()).unwrap()
}
