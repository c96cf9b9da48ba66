//! The running lab.

use super::{Isolation, LabError, LabSpec, PrioritySpec};
use std::ffi::OsStr;
use std::process::Command;

/// A running LAN. Everything in it lives in unnamed namespaces held by this value: dropping it, or the
/// death of its process by any signal, removes all.
pub struct Lab {
    spec: LabSpec,
    isolation: Isolation,
}

/// Gives this process the right to build labs: nothing to do as root, a user namespace of its own otherwise.
/// Call it first thing, before any thread exists.
///
/// # Errors
/// Neither works here; the sentence says what to do.
pub fn enter_isolation() -> Result<Isolation, LabError> {
    todo!()
}

impl Lab {
    /// Builds the LAN and returns when it carries frames. [`enter_isolation`] must have been called.
    ///
    /// # Errors
    /// A spec that makes no sense, or what the kernel refused.
    pub fn build(_spec: &LabSpec) -> Result<Self, LabError> {
        todo!()
    }

    /// What it was built to.
    pub fn spec(&self) -> &LabSpec {
        &self.spec
    }

    /// How it is kept apart from the host.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// A command that will run inside station `station` (1 to N), with ROTA_LAB, ROTA_RATE and
    /// ROTA_PORT_QUEUE set. The kernel kills it when the *thread* that spawned it ends: spawn from a thread
    /// that lives as long as the lab.
    ///
    /// # Panics
    /// When the lab has no such station.
    pub fn command(&self, _station: u8, _program: impl AsRef<OsStr>) -> Command {
        todo!()
    }

    /// Gives every port of the running lab a priority class, or one queue for all.
    ///
    /// # Errors
    /// A rule that makes no sense, or what the kernel refused.
    pub fn set_priority(&mut self, _priority: Option<PrioritySpec>) -> Result<(), LabError> {
        todo!()
    }
}
