//! One test program: built by cargo, run in its package's folder as `cargo test` does.

use serde_json::Value;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A program that runs longer hangs; the longest takes a quarter of this.
const TIME_OUT: Duration = Duration::from_secs(600);
const PAUSE: Duration = Duration::from_millis(20);

/// A program of tests.
pub struct Program {
    /// Its package.
    pub package: String,
    /// Its name in that package.
    pub target: String,
    /// The words that start it.
    words: Vec<String>,
    folder: PathBuf,
}

/// The programs that cargo has built.
pub enum Built {
    /// A program of tests.
    Tests(Program),
    /// A program of this package that users run, and its tests.
    Product(String),
}

/// How one run of a program ended.
pub struct Outcome {
    /// All of its tests passed.
    pub passed: bool,
    /// What it printed on both streams.
    pub output: String,
    ended: String,
    took: Duration,
    stolen: Duration,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.package, self.target)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.passed { "ok" } else { "FAILED" };
        let [took, stolen] = [self.took, self.stolen].map(|time| time.as_secs_f64());
        write!(f, "{verdict} ({took:.1} s; the host took {stolen:.1} s of the processors away)")
    }
}

/// Builds all test programs with one choice of features, and hands on each when it is built.
///
/// # Errors
/// Cargo did not succeed; it has said why.
pub fn build_all(root: &Path, prefix: &[&str], mut built: impl FnMut(Built)) -> Result<(), String> {
    let cargo = cargo();
    let words = ["test", "--workspace", "--locked", "--no-run", "--message-format=json-render-diagnostics"];
    let words = [prefix, &[cargo.as_str()], &words].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(root).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().map_err(|error| format!("cargo cannot be run: {error}"))?;
    let messages = BufReader::new(child.stdout.take().expect("a pipe was asked for"));
    messages.lines().map_while(Result::ok).filter_map(|line| Built::read(&line)).for_each(&mut built);
    let ended = child.wait().map_err(|error| format!("cargo cannot be waited for: {error}"))?;
    if ended.success() { Ok(()) } else { Err("the tests cannot be built".to_owned()) }
}

/// The tests in documentation, as one program.
pub fn doc_tests(root: &Path) -> Program {
    let words = [&cargo(), "test", "--workspace", "--locked", "--doc"].map(str::to_owned);
    Program { package: "workspace".into(), target: "doc".into(), words: words.into(), folder: root.into() }
}

/// The cargo that runs this.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

impl Built {
    /// The content of one message of cargo; none where it is of another kind.
    fn read(line: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        if message["reason"] != "compiler-artifact" {
            return None;
        }
        let executable = message["executable"].as_str()?.to_owned();
        let target = &message["target"];
        let package = package_name(message["package_id"].as_str()?).to_owned();
        if message["profile"]["test"] != true {
            return (target["kind"][0] == "bin").then_some(Self::Product(package));
        }
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        let target = target["name"].as_str()?.to_owned();
        Some(Self::Tests(Program { package, target, words: vec![executable], folder }))
    }
}

impl Program {
    /// Runs it, or those of its tests that are named; `prefix` stands before its words.
    pub fn run(&self, prefix: &[&str], tests: &[&str]) -> Outcome {
        let (start, stolen) = (Instant::now(), stolen());
        let log = std::env::temp_dir().join(format!("rota-ci-{}-{}", std::process::id(), self.target_file()));
        let ended = self.start(prefix, tests, &log).and_then(|mut child| wait(&mut child, start));
        let output = std::fs::read(&log).unwrap_or_default();
        let _ = std::fs::remove_file(&log);
        Outcome {
            passed: ended.as_ref().is_ok_and(ExitStatus::success),
            output: String::from_utf8_lossy(&output).into_owned(),
            ended: ended.map_or_else(|error| error, |status| format!("ended with {status}")),
            took: start.elapsed(),
            stolen: self::stolen().saturating_sub(stolen),
        }
    }

    fn start(&self, prefix: &[&str], tests: &[&str], log: &Path) -> Result<Child, String> {
        let words: Vec<&str> = prefix.iter().copied().chain(self.words.iter().map(String::as_str)).collect();
        let file = File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
        let second = file.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        if !tests.is_empty() {
            command.arg("--exact").args(tests);
        }
        command.stdin(Stdio::null()).stdout(file).stderr(second);
        command.spawn().map_err(|error| format!("{self} cannot be run: {error}"))
    }

    fn target_file(&self) -> String {
        format!("{}-{}", self.package, self.target).replace(|c: char| !c.is_ascii_alphanumeric(), "-")
    }

    /// A program for tests: one line of a shell.
    #[cfg(test)]
    pub fn planted(package: &str, target: &str, line: &str) -> Self {
        let words = ["sh", "-c", line].map(str::to_owned).to_vec();
        Self { package: package.into(), target: target.into(), words, folder: std::env::temp_dir() }
    }
}

impl Outcome {
    /// Why it counts as failed.
    pub fn reason(&self) -> String {
        match self.failed_tests().as_slice() {
            [] => self.ended.clone(),
            tests => tests.join(", "),
        }
    }

    /// The names of the tests that failed; none where the program's output does not tell.
    pub fn failed_tests(&self) -> Vec<&str> {
        let Some((_, list)) = self.output.rsplit_once("\nfailures:\n    ") else { return vec![] };
        list.lines().map(str::trim).take_while(|line| !line.is_empty()).collect()
    }
}

/// `path+file:///a/crates/cli#rota-cli@0.1.0`, or `…/rota-cli#0.1.0` where folder and name agree.
fn package_name(identity: &str) -> &str {
    let (path, rest) = identity.rsplit_once('#').unwrap_or(("", identity));
    match rest.split_once('@') {
        Some((name, _)) => name,
        None => path.rsplit('/').next().unwrap_or(path),
    }
}

fn wait(child: &mut Child, start: Instant) -> Result<ExitStatus, String> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if start.elapsed() < TIME_OUT => std::thread::sleep(PAUSE),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("did not end within {} s", TIME_OUT.as_secs()));
            }
            Err(error) => return Err(format!("cannot be waited for: {error}")),
        }
    }
}

/// The time for which a virtual machine's processors were taken away by its host, of all processors together.
fn stolen() -> Duration {
    let ticks = || {
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        stat.lines().next()?.split_whitespace().nth(8)?.parse::<u64>().ok()
    };
    // The kernel counts in hundredths of a second here, on every architecture.
    Duration::from_millis(ticks().unwrap_or(0) * 10)
}

/// Runs a program in a folder; its output is this one's.
///
/// # Errors
/// It cannot be run, or does not succeed.
pub fn succeeds(
    folder: &Path,
    program: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments).envs(environment.iter().copied()).current_dir(folder);
    let line = format!("{program} {}", arguments.join(" "));
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{line}` ended with {status}")),
        Err(error) => Err(format!("`{line}` cannot be run: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_command_is_a_failure() {
        let root = std::env::temp_dir();
        assert!(succeeds(&root, "true", &[], &[]).is_ok());
        assert!(succeeds(&root, "false", &["x"], &[]).unwrap_err().contains("`false x` ended with"));
        assert!(succeeds(&root, "no-such-program", &[], &[]).unwrap_err().contains("cannot be run"));
    }

    #[test]
    fn a_message_of_cargo_is_read() {
        let line = r#"{"reason":"compiler-artifact","package_id":"path+file:///r/crates/cli#rota-cli@0.1.0",
            "manifest_path":"/r/crates/cli/Cargo.toml","target":{"kind":["bin"],"name":"hub"},
            "profile":{"test":true},"executable":"/r/target/debug/deps/hub-1"}"#;
        let Some(Built::Tests(program)) = Built::read(line) else { panic!("it is a program of tests") };
        assert_eq!(program.to_string(), "rota-cli hub");
        assert_eq!(
            (program.words, program.folder),
            (vec!["/r/target/debug/deps/hub-1".into()], "/r/crates/cli".into())
        );
        let product = line.replace("true", "false");
        assert!(matches!(Built::read(&product), Some(Built::Product(package)) if package == "rota-cli"));
        assert!(Built::read(&product.replace("bin", "example")).is_none());
        assert!(Built::read(&line.replace("\"/r/target/debug/deps/hub-1\"", "null")).is_none());
        assert!(Built::read("no JSON").is_none());
        assert_eq!(package_name("path+file:///r/xtask#0.1.0"), "xtask");
    }

    #[test]
    fn what_failed_is_named() {
        let said = r"test a ... FAILED\n\nfailures:\n\n---- a ----\nx\n\nfailures:\n    a\n    b::c\n\n";
        let line = &format!("printf '{said}'; exit 101");
        let outcome = Program::planted("p", "t", line).run(&[], &[]);
        assert!(!outcome.passed);
        assert_eq!((outcome.failed_tests(), outcome.reason()), (vec!["a", "b::c"], "a, b::c".to_owned()));
        let broken = Program::planted("p", "t", "echo half; kill -9 $$").run(&[], &[]);
        assert_eq!((broken.output.as_str(), broken.failed_tests().len()), ("half\n", 0));
        assert!(broken.reason().contains("signal: 9"), "{}", broken.reason());
    }
}
