//! Removes a running node's rights step by step; each step is for the thread that takes it.

use crate::broker::Broker;
use crate::log::{Level, say};
use rota_driver::confine::{self, Confinement, IPC_LOCK, NET_ADMIN};
use rota_driver::realtime::{PRIORITY_DEFAULT, Realtime, Wish};
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;
use std::time::Duration;

/// A broker that hangs up is looked for so often until its process has ended.
const HANGUP_LOOKS: u32 = 50;
const HANGUP_LOOK_EVERY: Duration = Duration::from_millis(1);

/// The rights of a running node.
#[derive(Debug)]
pub(crate) struct Privileges {
    /// True if anything is given away: not where a node is a guest in another process.
    confine: bool,
    broker: Option<Broker>,
    /// The sentence about the broker's end, once it has ended before its node.
    broker_end: OnceLock<String>,
    /// Why this node could not filter its calls.
    unfiltered: OnceLock<String>,
    /// The restrictions in force, once they are final.
    in_force: OnceLock<Confinement>,
}

impl Privileges {
    /// At start, while everything may still be done.
    pub(crate) fn begin(confine: bool) -> Self {
        let mut broker = None;
        if confine {
            confine::lift_memory_limit();
            match Broker::start() {
                Ok(started) => broker = Some(started),
                Err(error) => say(Level::Warn, "broker", &format!("there is no broker: {error}")),
            }
        }
        let (broker_end, unfiltered) = (OnceLock::new(), OnceLock::new());
        Self { confine, broker, broker_end, unfiltered, in_force: OnceLock::new() }
    }

    /// Hangs up when the broker ends.
    pub(crate) fn broker_socket(&self) -> Option<BorrowedFd<'_>> {
        self.broker.as_ref().map(Broker::socket)
    }

    /// Takes note of the broker's end, if it has ended before its node; the log has it once.
    pub(crate) fn look_for_broker(&self) {
        let (None, Some(broker)) = (self.broker_end.get(), &self.broker) else { return };
        if let Some(how) = broker.ended() {
            self.broker_is_gone(broker.pid(), &how);
        }
    }

    /// The broker's socket has hung up. The kernel closes it a moment before the process has ended.
    pub(crate) fn broker_hung_up(&self) {
        for _ in 0..HANGUP_LOOKS {
            self.look_for_broker();
            if self.broker_end.get().is_some() {
                return;
            }
            std::thread::sleep(HANGUP_LOOK_EVERY);
        }
        let pid = self.broker.as_ref().map_or(0, Broker::pid);
        self.broker_is_gone(pid, "has closed its socket");
    }

    fn broker_is_gone(&self, pid: u32, how: &str) {
        let sentence = format!(
            "broker: process {pid} {how}; this node can start no other: its threads keep the real-time \
             priority that they have, and no other thread gets one"
        );
        if self.broker_end.set(sentence.clone()).is_ok() {
            say(Level::Warn, "broker", &sentence);
        }
    }

    /// Asks for the data thread's place; the scheduling class by the broker, where there is one.
    pub(crate) fn realtime(&self, wanted: bool) -> Realtime {
        if !wanted {
            return Realtime::default();
        }
        let Some(broker) = &self.broker else { return Realtime::ask(Wish::all()) };
        let mut realtime = Realtime::ask(Wish { fifo: None, ..Wish::all() });
        realtime.fifo = broker.schedule(nix::unistd::gettid(), PRIORITY_DEFAULT).is_ok();
        realtime
    }

    /// In the data thread, before its first turn: the gate is opened and closed later, which needs the right
    /// to configure networks. The sockets are open.
    pub(crate) fn data_thread_begins(&self) {
        self.keep(&[NET_ADMIN]);
    }

    /// In the thread of the links: each connection that it dials later is marked, so that the gate has a door
    /// for it, which needs the same right.
    pub(crate) fn links_thread_begins(&self) {
        self.keep(&[NET_ADMIN]);
    }

    /// In the thread that opens a gate: changing its rules needs the same right.
    /// The data thread may wait for it, so it has the same class where it can have one.
    pub(crate) fn gate_thread_begins(&self, realtime: bool) {
        if let Some(broker) = self.broker.as_ref().filter(|_| realtime) {
            let _ = broker.schedule(nix::unistd::gettid(), PRIORITY_DEFAULT);
        }
        self.keep(&[NET_ADMIN]);
    }

    /// In every other thread, once it has its files.
    pub(crate) fn helper_begins(&self) {
        self.keep(&[]);
    }

    fn keep(&self, capabilities: &[u8]) {
        if self.confine
            && let Err(errno) = confine::keep_capabilities(capabilities)
        {
            say(
                Level::Warn,
                "privileges",
                &format!("capabilities could not be given away: {}", errno.desc()),
            );
        }
    }

    /// In the control thread, once all threads run and have their files. `dials` if one of them makes
    /// connections to neighbours.
    pub(crate) fn all_have_begun(&self, dials: bool) {
        self.helper_begins();
        if self.confine
            && let Err(sentence) = confine::forbid_calls(dials)
        {
            say(Level::Warn, "seccomp", &format!("system calls are not filtered: {sentence}"));
            let _ = self.unfiltered.set(sentence);
        }
    }

    /// The restrictions in force. Nothing gives rights back, so the kernel is asked only until each thread
    /// has given its rights away.
    fn in_force(&self) -> Confinement {
        let by_kernel = settled(&self.in_force, Confinement::here);
        // The kernel does not tell a container's filter, which was there before, from this node's.
        Confinement { seccomp: by_kernel.seccomp && self.unfiltered.get().is_none(), ..by_kernel }
    }

    /// Sentences for people; none for a node that is a guest in another process.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.look_for_broker();
        let confined = self.confine.then(|| format!("confined: {}", self.in_force()));
        confined.into_iter().chain(self.broker_end.get().cloned()).collect()
    }

    /// For programs.
    pub(crate) fn json(&self) -> serde_json::Value {
        let in_force = self.in_force();
        let broker = self.broker.as_ref().filter(|_| self.broker_end.get().is_none());
        serde_json::json!({
            "confined": self.confine,
            "no_new_privs": in_force.no_new_privs,
            "seccomp": in_force.seccomp,
            "capabilities": in_force.capability_names(),
            "broker_pid": broker.map(Broker::pid),
        })
    }
}

/// The known state, or the present one, which is known from now on if it is final.
fn settled(known: &OnceLock<Confinement>, read: impl FnOnce() -> Confinement) -> Confinement {
    if let Some(known) = known.get() {
        return known.clone();
    }
    let now = read();
    let more = now.capabilities & !(1 << NET_ADMIN | 1 << IPC_LOCK);
    if more == 0 && now.seccomp && now.no_new_privs {
        // Two that read at once have read the same.
        let _ = known.set(now.clone());
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::Role;
    use std::process::Command;

    fn confined() -> Privileges {
        let (broker_end, unfiltered, in_force) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Privileges { confine: true, broker: None, broker_end, unfiltered, in_force }
    }

    /// In a container, whose own filter the kernel reports, the status said that the calls are filtered.
    #[test]
    fn a_filter_of_a_container_is_not_told_as_that_of_the_node() {
        let rights = confined();
        let by_kernel = Confinement { no_new_privs: true, seccomp: true, capabilities: 1 << NET_ADMIN };
        rights.in_force.set(by_kernel).expect("it is new");
        assert!(rights.notes()[0].starts_with("confined: system calls filtered"), "{:?}", rights.notes());
        rights.unfiltered.set("Function not implemented".into()).expect("it is new");
        assert!(rights.notes()[0].starts_with("confined: system calls NOT filtered"), "{:?}", rights.notes());
        assert_eq!(rights.json()["seccomp"], false);
    }

    /// A killed broker stayed in the status as if it lived, and the log said nothing.
    #[test]
    fn a_broker_that_ends_before_its_node_is_in_the_status_as_gone() {
        let mut program = Command::new("sleep");
        program.arg("60");
        let broker = Broker::of(Role::run(program).expect("there is sleep")).expect("a socket");
        let process = broker.pid();
        let rights = Privileges { broker: Some(broker), ..confined() };
        assert_eq!((rights.notes().len(), &rights.json()["broker_pid"]), (1, &process.into()));
        let killed = Command::new("kill").args(["-9", &process.to_string()]).status();
        assert!(killed.expect("there is kill").success());
        let mut wait = rota_driver::poller::Poller::new(1).expect("a poller");
        wait.add(rights.broker_socket().expect("a socket"), 1, rota_driver::poller::Trigger::Level).unwrap();
        let soon = rota_driver::clock::now() + rota_units::Span::from_millis(20_000);
        assert!(wait.wait(soon).unwrap().any(|ready| ready.hangup), "its end is an event");
        rights.broker_hung_up();
        let said =
            format!("broker: process {process} ended with signal: 9 (SIGKILL); this node can start no");
        assert!(rights.notes()[1].starts_with(&said), "{:?}", rights.notes());
        assert!(rights.json()["broker_pid"].is_null());
    }

    /// Each status read a file of each thread.
    #[test]
    fn the_kernel_is_asked_until_the_rights_are_given_away_and_not_again() {
        let known = OnceLock::new();
        let begun = Confinement { no_new_privs: false, seccomp: false, capabilities: 0x1ff };
        let confined = Confinement { no_new_privs: true, seccomp: true, capabilities: 1 << NET_ADMIN };
        assert_eq!(settled(&known, || begun.clone()), begun);
        assert_eq!(settled(&known, || confined.clone()), confined);
        assert_eq!(settled(&known, || panic!("it is known")), confined);
    }
}
