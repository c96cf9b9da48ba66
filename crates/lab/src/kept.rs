//! A process that a keeper starts and looks after: what it said last, and how it ended.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rota_driver::clock;
use rota_units::Span;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How long one may take to end when asked to.
const GONE_WITHIN: Span = Span::from_millis(1_000);
/// From one look to the next.
pub const PAUSE: Duration = Duration::from_millis(10);
/// How much of what one said last is kept.
const WORDS_MAX: usize = 4_096;

/// The process; it does not outlive this value.
pub struct Kept {
    /// What messages call it.
    what: String,
    child: Child,
    errors: Option<ChildStderr>,
    words: Vec<u8>,
    ended: Option<ExitStatus>,
}

impl Kept {
    /// Starts it; what it writes to standard error is kept.
    ///
    /// # Errors
    /// One sentence: it could not be started.
    pub fn start(what: String, mut command: Command) -> Result<Self, String> {
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("could not start {what}: {e}"))?;
        let errors = child.stderr.take();
        if let Some(pipe) = &errors {
            let _ = fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
        }
        Ok(Self { what, child, errors, words: Vec::new(), ended: None })
    }

    /// Takes in what it said and whether it ended. `aloud`: that goes to our standard error too.
    pub fn look(&mut self, aloud: bool) {
        self.read_words(aloud);
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.read_words(aloud);
            self.ended = Some(status);
        }
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Whether it said this lately.
    pub fn said(&self, word: &str) -> bool {
        String::from_utf8_lossy(&self.words).contains(word)
    }

    /// That it has ended, and its last words.
    pub fn sentence(&self) -> Option<String> {
        let ended = self.ended?;
        let words = String::from_utf8_lossy(&self.words);
        let spoken = || words.lines().rev().filter(|line| !line.trim().is_empty());
        // A usage error ends in advice; the line that names the fault comes before it.
        let fault = spoken().find(|line| line.starts_with("rota: ") || line.starts_with("error: "));
        // A program that is killed says nothing of it: what it said last is about something else.
        let of_itself = ended.signal().is_none_or(|signal| signal == Signal::SIGABRT as i32);
        let last = fault.or_else(|| spoken().next().or(Some("it said nothing")).filter(|_| of_itself));
        let why = last.map_or_else(String::new, |last| format!(": {last}"));
        Some(format!("{} ended ({ended}){why}", self.what))
    }

    /// What becomes readable when it speaks.
    pub fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.errors.as_ref().map(AsFd::as_fd)
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn ask_to_end(&self) {
        if self.ended.is_none() {
            let _ = kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM);
        }
    }

    /// What it wrote to standard output, where that is a pipe; to be called once it has ended.
    pub fn output(&mut self) -> String {
        let mut output = String::new();
        if let Some(pipe) = &mut self.child.stdout {
            let _ = pipe.read_to_string(&mut output);
        }
        output
    }

    fn read_words(&mut self, aloud: bool) {
        let Some(pipe) = &mut self.errors else { return };
        let mut buf = [0; 1_024];
        loop {
            match pipe.read(&mut buf) {
                Ok(0) => break self.errors = None,
                Ok(len) => {
                    self.words.extend_from_slice(&buf[..len]);
                    let surplus = self.words.len().saturating_sub(WORDS_MAX);
                    self.words.drain(..surplus);
                    if aloud {
                        let _ = std::io::stderr().write_all(&buf[..len]);
                    }
                }
                Err(error) if error.raw_os_error() == Some(Errno::EAGAIN as i32) => break,
                Err(_) => break self.errors = None,
            }
        }
    }
}

/// Ends all of them: politely first, then without asking.
pub fn end_all(all: &mut [&mut Kept]) {
    all.iter().for_each(|kept| kept.ask_to_end());
    let deadline = clock::now() + GONE_WITHIN;
    while all.iter().any(|kept| !kept.has_ended()) && clock::now() < deadline {
        all.iter_mut().for_each(|kept| kept.look(false));
        std::thread::sleep(PAUSE);
    }
    for kept in all.iter_mut().filter(|kept| !kept.has_ended()) {
        let _ = kept.child.kill();
        let _ = kept.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(script: &str) -> String {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        let mut kept = Kept::start("it".into(), shell).expect("there is a shell");
        let until = clock::now() + Span::from_millis(10_000);
        while !kept.has_ended() && clock::now() < until {
            kept.look(false);
            std::thread::sleep(PAUSE);
        }
        kept.sentence().expect("it has ended")
    }

    /// "ended (signal: 9 (SIGKILL)): the well-known lab key is in use" named a reason that is none.
    #[test]
    fn the_last_words_of_who_was_killed_are_no_reason() {
        let talk = "echo 'all is well' >&2;";
        assert_eq!(sentence(&format!("{talk} kill -9 $$")), "it ended (signal: 9 (SIGKILL))");
        assert_eq!(sentence(&format!("{talk} exit 3")), "it ended (exit status: 3): all is well");
        assert_eq!(sentence("exit 0"), "it ended (exit status: 0): it said nothing");
        let fault = "echo 'rota: no room' >&2; echo 'advice' >&2;";
        assert_eq!(sentence(&format!("{fault} exit 1")), "it ended (exit status: 1): rota: no room");
    }
}
