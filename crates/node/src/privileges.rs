//! Removes a running node's rights step by step; each step is for the thread that takes it.

use crate::broker::Broker;
use crate::log::{Level, say};
use rota_driver::confine::{self, IPC_LOCK, InForce, NET_ADMIN};
use rota_driver::realtime::{PRIORITY_DEFAULT, Realtime, Wish};
use std::sync::OnceLock;

/// The rights of a running node.
#[derive(Debug)]
pub(crate) struct Privileges {
    /// True if anything is given away: not where a node is a guest in another process.
    confine: bool,
    broker: Option<Broker>,
    /// The restrictions in force, once they are final.
    in_force: OnceLock<InForce>,
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
        Self { confine, broker, in_force: OnceLock::new() }
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

    /// In the control thread, once all threads run and have their files.
    pub(crate) fn all_have_begun(&self) {
        self.helper_begins();
        if self.confine
            && let Err(sentence) = confine::forbid_calls()
        {
            say(Level::Warn, "seccomp", &format!("system calls are not filtered: {sentence}"));
        }
    }

    /// The restrictions in force. Nothing gives rights back, so the kernel is asked only until each thread
    /// has given its rights away.
    fn in_force(&self) -> InForce {
        settled(&self.in_force, InForce::here)
    }

    /// One sentence for people; `None` for a node that is a guest in another process.
    pub(crate) fn note(&self) -> Option<String> {
        self.confine.then(|| format!("confined: {}", self.in_force()))
    }

    /// For programs.
    pub(crate) fn json(&self) -> serde_json::Value {
        let in_force = self.in_force();
        serde_json::json!({
            "confined": self.confine,
            "no_new_privs": in_force.no_new_privs,
            "seccomp": in_force.seccomp,
            "capabilities": in_force.capability_names(),
            "broker_pid": self.broker.as_ref().map(Broker::pid),
        })
    }
}

/// The known state, or the present one, which is known from now on if it is final.
fn settled(known: &OnceLock<InForce>, read: impl FnOnce() -> InForce) -> InForce {
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

    /// Each status read a file of each thread.
    #[test]
    fn the_kernel_is_asked_until_the_rights_are_given_away_and_not_again() {
        let known = OnceLock::new();
        let begun = InForce { no_new_privs: false, seccomp: false, capabilities: 0x1ff };
        let confined = InForce { no_new_privs: true, seccomp: true, capabilities: 1 << NET_ADMIN };
        assert_eq!(settled(&known, || begun.clone()), begun);
        assert_eq!(settled(&known, || confined.clone()), confined);
        assert_eq!(settled(&known, || panic!("it is known")), confined);
    }
}
