//! Counters of refusals to programs and of their memory. The control thread counts; the values are shown
//! with the node's other counters.

use std::sync::atomic::{AtomicU64, Ordering};

/// The control thread adds; the data thread, which writes the counters file, reads.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// Octets that programs have.
    memory_octets: AtomicU64,
    memory: AtomicU64,
    descriptors: AtomicU64,
    connections: AtomicU64,
    silent: AtomicU64,
}

/// Of which limit a refusal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Memory of the user, or of all.
    Memory,
    /// The kernel has no descriptor or no memory for us.
    Descriptors,
    /// Connections of the user, or of all.
    Connections,
    /// A connection that never said hello was closed.
    Silent,
}

/// A copy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Refused {
    pub(crate) memory_octets: u64,
    pub(crate) memory: u64,
    pub(crate) descriptors: u64,
    pub(crate) connections: u64,
    pub(crate) silent: u64,
}

impl Refusals {
    pub(crate) fn count(&self, limit: Limit) {
        let counter = match limit {
            Limit::Memory => &self.memory,
            Limit::Descriptors => &self.descriptors,
            Limit::Connections => &self.connections,
            Limit::Silent => &self.silent,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn set_memory(&self, octets: u64) {
        self.memory_octets.store(octets, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Refused {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Refused {
            memory_octets: read(&self.memory_octets),
            memory: read(&self.memory),
            descriptors: read(&self.descriptors),
            connections: read(&self.connections),
            silent: read(&self.silent),
        }
    }
}
