//! The node's side of its guardian processes: keeps their will, and checks that they run.

use crate::log::{self, Level};
use crate::{NodeError, system};
use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use rota_driver::confine::keep_capabilities;
use rota_driver::guardian::{Testament, WILL_OCTETS_MAX, has_pidfd};
use rota_proto::Medium;
use rota_proto::WillName;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a guardian that has ended is missing; each further one twice as long.
const AGAIN_MIN: Duration = Duration::from_millis(100);
const AGAIN_MAX: Duration = Duration::from_secs(60);
/// A guardian that has lived for this time counts as steady.
const STEADY: Duration = Duration::from_secs(10);

/// A node that has dropped its rights can start no process. So a second guardian runs in case the first one
/// dies; when both are dead, none is left. Both send the will, which counts once.
const GUARDIANS: usize = 2;

const NONE_LEFT: &str = "none is left: the death of this node is noticed by its silence";

/// How a guardian is started: a program that calls `rota_driver::guardian::watch` with its standard input
/// and output.
#[derive(Debug)]
pub struct GuardianSpec {
    /// The program, such as `/proc/self/exe`.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The socket through which it sends.
    pub socket: OwnedFd,
}

/// Starts the guardian of a port; returns it with the writer of wills for the data thread.
pub(crate) fn begin(
    guardian: Option<GuardianSpec>,
    confine: bool,
) -> Result<(Option<Guardian>, Wills), NodeError> {
    let guardian = guardian.map(|of| Guardian::start(of, confine)).transpose();
    let guardian = guardian.map_err(system("the guardian process cannot be started"))?;
    let wills = guardian.as_ref().map(Guardian::wills).unwrap_or_default();
    Ok((guardian, wills))
}

/// The guardian's state, shared by the node's threads.
#[derive(Debug, Default)]
struct Shared {
    dismissed: AtomicBool,
    /// Those that have ended are not replaced: the node runs nothing any more.
    confined: bool,
    /// Asked once: later the node may not ask.
    has_pidfd: bool,
    /// The processes that watch.
    watching: Mutex<[Option<Watcher>; GUARDIANS]>,
}

/// A guardian process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Watcher {
    process: u32,
    /// Somebody has stopped it (SIGSTOP), and until it goes on it tells nothing.
    stopped: bool,
}

impl Shared {
    /// The processes that watch, or those that would if they were not stopped.
    fn those(&self, stopped: bool) -> Vec<u32> {
        let all = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        let those = all.iter().flatten().filter(|watcher| watcher.stopped == stopped);
        those.map(|watcher| watcher.process).collect()
    }

    fn watching(&self) -> Vec<u32> {
        self.those(false)
    }

    fn watches(&self, place: usize, process: Option<u32>) {
        let watcher = process.map(|process| Watcher { process, stopped: false });
        self.watching.lock().unwrap_or_else(PoisonError::into_inner)[place] = watcher;
    }

    /// Notes that a guardian was stopped, or goes on.
    fn stops(&self, place: usize, stopped: bool) {
        let mut all = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(watcher) = all[place].as_mut().filter(|watcher| watcher.stopped != stopped) else { return };
        watcher.stopped = stopped;
        let process = watcher.process;
        drop(all);
        if stopped {
            let who = format!("guardian process {process} was stopped and tells nothing until it goes on");
            log::say(Level::Warn, "guardian", &format!("{who}; {}", self.left()));
        } else {
            log::say(Level::Info, "guardian", &format!("guardian process {process} goes on"));
        }
    }

    /// The guardian that tells the death of this node now.
    fn left(&self) -> String {
        match self.watching().first() {
            Some(process) => format!("process {process} is left"),
            None => NONE_LEFT.to_owned(),
        }
    }
}

/// The guardian, while this process lives.
#[derive(Debug)]
pub(crate) struct Guardian {
    testament: Arc<Testament>,
    shared: Arc<Shared>,
}

impl Guardian {
    /// Starts both, each with a thread that starts another when it ends. `confine`: these threads keep no
    /// right either, and only say that it has ended.
    pub(crate) fn start(spec: GuardianSpec, confine: bool) -> io::Result<Self> {
        let (spec, testament) = (Arc::new(spec), Arc::new(Testament::create()?));
        let shared = Shared { confined: confine, has_pidfd: has_pidfd(), ..Shared::default() };
        let shared = Arc::new(shared);
        for place in 0..GUARDIANS {
            let first = spawn(&spec, &testament)?;
            shared.watches(place, Some(first.id()));
            let (spec, testament, shared) = (Arc::clone(&spec), Arc::clone(&testament), Arc::clone(&shared));
            std::thread::Builder::new().name("rota-guardian".into()).spawn(move || {
                if confine && let Err(errno) = keep_capabilities(&[]) {
                    log::say(Level::Warn, "guardian", &format!("its thread keeps rights: {}", errno.desc()));
                }
                keep(&spec, &testament, &shared, place, first);
            })?;
        }
        Ok(Self { testament, shared })
    }

    /// The writer of wills for the data thread.
    pub(crate) fn wills(&self) -> Wills {
        Wills { testament: Some(Arc::clone(&self.testament)), left: None }
    }

    /// One sentence for the operator.
    pub(crate) fn state(&self) -> String {
        let all: Vec<String> = self.shared.watching().iter().map(u32::to_string).collect();
        let stopped = self.shared.those(true);
        let stopped = stopped.iter().map(|process| {
            format!("; process {process} was stopped (SIGSTOP) and tells nothing until it goes on (SIGCONT)")
        });
        let stopped: String = stopped.collect();
        let late = if self.shared.has_pidfd { "" } else { " (it looks each millisecond: no pidfd here)" };
        match &all[..] {
            [] => format!("{NONE_LEFT}{stopped}"),
            _ => format!(
                "{} the ring when this node dies, once the interface has sent all that waits{late}; where \
                 that takes more than 0.4 s, silence tells it{stopped}",
                if let [one] = &all[..] {
                    format!("process {one} tells")
                } else {
                    format!("processes {} tell", all.join(" and "))
                }
            ),
        }
    }

    /// The node ends in good order: its guardian goes with it, without a word.
    pub(crate) fn dismiss(&self) {
        self.shared.dismissed.store(true, Ordering::Relaxed);
        if let Err(error) = self.testament.dismiss() {
            log::say(Level::Warn, "guardian", &format!("the last will cannot be withdrawn: {error}"));
        }
    }
}

fn spawn(spec: &GuardianSpec, testament: &Testament) -> io::Result<Child> {
    let socket = spec.socket.as_fd().try_clone_to_owned()?;
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).stdin(Stdio::from(testament.share()?)).stdout(Stdio::from(socket));
    command.spawn()
}

/// Waits until a guardian has ended. Says meanwhile when it is stopped, and when it goes on.
fn end_of(mut child: Child, stops: impl Fn(bool)) -> io::Result<ExitStatus> {
    let wait_for = |flags| waitid(Id::Pid(Pid::from_raw(child.id().cast_signed())), flags);
    let (stop, go) = (WaitPidFlag::WSTOPPED, WaitPidFlag::WCONTINUED);
    // The end itself stays to be taken by its owner.
    let any = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | stop | go;
    loop {
        let stopped = match wait_for(any) {
            Ok(WaitStatus::Stopped(..)) => true,
            Ok(WaitStatus::Continued(_)) => false,
            Err(Errno::EINTR) => continue,
            _ => break,
        };
        let _ = wait_for(WaitPidFlag::WNOHANG | if stopped { stop } else { go });
        stops(stopped);
    }
    child.wait()
}

/// Starts another guardian whenever one has ended, as far as the node can.
fn keep(spec: &GuardianSpec, testament: &Testament, shared: &Shared, place: usize, first: Child) {
    let (mut guardian, mut wait) = (Some(first), AGAIN_MIN);
    loop {
        let began = std::time::Duration::from_nanos(rota_driver::clock::now().as_nanos());
        let ended = guardian.take().map(|child| end_of(child, |stopped| shared.stops(place, stopped)));
        if shared.dismissed.load(Ordering::Relaxed) {
            return;
        }
        let now = std::time::Duration::from_nanos(rota_driver::clock::now().as_nanos());
        wait = if now.saturating_sub(began) > STEADY { AGAIN_MIN } else { wait };
        let why = match ended {
            Some(Ok(status)) => format!("ended with {status}"),
            Some(Err(error)) => format!("is lost: {error}"),
            None => "could not be started".to_owned(),
        };
        shared.watches(place, None);
        if shared.confined {
            let left = shared.left();
            let sentence = format!("a guardian process {why}; this node can start no other, and {left}");
            return log::say(Level::Warn, "guardian", &sentence);
        }
        log::say(Level::Warn, "guardian", &format!("a guardian process {why}; starting another"));
        std::thread::sleep(wait);
        wait = (wait * 2).min(AGAIN_MAX);
        if shared.dismissed.load(Ordering::Relaxed) {
            return;
        }
        match spawn(spec, testament) {
            Ok(child) => {
                shared.watches(place, Some(child.id()));
                log::say(Level::Info, "guardian", &format!("a guardian is process {} now", child.id()));
                guardian = Some(child);
            }
            Err(error) => {
                log::say(Level::Error, "guardian", &format!("no other guardian can be started: {error}"));
            }
        }
    }
}

/// The data thread's part: the will is renewed with each key, and void outside a ring.
#[derive(Debug, Default)]
pub(crate) struct Wills {
    testament: Option<Arc<Testament>>,
    left: Option<WillName>,
}

impl Wills {
    /// The others have been told already: the guardian has nothing to tell any more.
    pub(crate) fn withdraw(&mut self) {
        if let Some(testament) = &self.testament {
            let _ = testament.leave(&[]);
        }
        self.left = None;
    }

    /// Asked once a turn; writes only when the will is another one.
    pub(crate) fn renew(&mut self, medium: &Medium) {
        let name = medium.will_name();
        if name == self.left {
            return;
        }
        let Some(testament) = &self.testament else { return };
        let mut frame = [0; WILL_OCTETS_MAX];
        let octets = medium.write_will(&mut frame).unwrap_or(0);
        // If the will cannot be written, the old one stays, which no station believes.
        let _ = testament.leave(&frame[..octets]);
        self.left = name;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn sleeper() -> GuardianSpec {
        let socket = std::fs::File::open("/dev/null").expect("there").into();
        GuardianSpec { program: "sleep".into(), args: vec!["30".into()], socket }
    }

    fn pids(state: &str) -> Vec<String> {
        let words = state.split(' ').filter(|word| word.chars().all(|letter| letter.is_ascii_digit()));
        words.map(str::to_owned).collect()
    }

    /// It tried again each minute, and never could.
    #[test]
    fn a_confined_node_says_who_is_left_and_starts_no_other() {
        let (spec, testament) = (sleeper(), Testament::create().expect("memory"));
        let shared = Shared { confined: true, ..Shared::default() };
        shared.watches(0, Some(1));
        shared.watches(1, Some(2));
        for (place, left) in [(0, &[2][..]), (1, &[])] {
            let mut child = spawn(&spec, &testament).expect("there is sleep");
            child.kill().expect("it is ours");
            keep(&spec, &testament, &shared, place, child);
            assert_eq!(shared.watching(), left);
        }
    }

    /// The status said that it would tell the ring, and nothing said that it could not.
    #[test]
    fn a_guardian_that_is_stopped_is_in_the_status_until_it_goes_on() {
        let guardian = Guardian::start(sleeper(), true).expect("there is sleep");
        let both = pids(&guardian.state());
        let signal = |name: &str, pid: &str| {
            Command::new("kill").args([name, pid]).status().expect("there is kill");
        };
        let comes = |part: &str| {
            let there = (0..1_000).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                guardian.state().contains(part)
            });
            assert!(there, "no '{part}' in '{}'", guardian.state());
        };
        signal("-STOP", &both[0]);
        comes(&format!("process {} tells the ring", both[1]));
        comes(&format!("process {} was stopped (SIGSTOP)", both[0]));
        signal("-STOP", &both[1]);
        comes(NONE_LEFT);
        signal("-CONT", &both[0]);
        comes(&format!("process {} tells the ring", both[0]));
        signal("-CONT", &both[1]);
        comes(&format!("processes {} and {} tell the ring", both[0], both[1]));
        assert!(!guardian.state().contains("stopped"), "{}", guardian.state());
        // One that is killed while it is stopped has ended.
        signal("-STOP", &both[1]);
        comes(&format!("process {} was stopped", both[1]));
        both.iter().for_each(|pid| signal("-9", pid));
        comes(NONE_LEFT);
        guardian.dismiss();
    }

    #[test]
    fn a_guardian_that_is_killed_is_replaced_and_the_other_stays() {
        let guardian = Guardian::start(sleeper(), false).expect("there is sleep");
        let both = pids(&guardian.state());
        assert_eq!(both.len(), GUARDIANS);
        let kill = |pid: &str| Command::new("kill").args(["-9", pid]).status().expect("there is kill");
        kill(&both[0]);
        let mut again = Vec::new();
        for _ in 0..500 {
            std::thread::sleep(Duration::from_millis(10));
            again = pids(&guardian.state());
            if again.len() == GUARDIANS && again[0] != both[0] {
                break;
            }
        }
        assert!(again.len() == GUARDIANS && again[0] != both[0] && again[1] == both[1], "{again:?}");
        guardian.dismiss();
        again.iter().for_each(|pid| {
            kill(pid);
        });
    }
}
