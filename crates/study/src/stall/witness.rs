//! A witness of host stalls that has nothing to do with the frames: on each processor a thread sleeps half a
//! millisecond at a time and notes when it wakes late.

use super::{Stall, StallEvidence, StallLog};
use crate::clock;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use rota_driver::realtime::{PRIORITY_DEFAULT, Realtime, Wish};
use rota_units::Span;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

const TICK: Span = Span::from_micros(500);
/// A thread of this priority wakes within some tens of microseconds where nothing is wrong. Several stalls of
/// less than a millisecond in one cycle delay a frame as one long one does, so that they count too.
const LEAST: Span = Span::from_micros(250);
const WITNESS_PRIORITY: u8 = PRIORITY_DEFAULT + 10;

/// Whether the kernel grants this program real-time priority.
pub fn has_real_time() -> bool {
    // Asked for in a thread of its own: the program itself has no need of it.
    let asked = std::thread::spawn(|| {
        Realtime::ask(Wish { fifo: Some(WITNESS_PRIORITY), cpu: None, lock: false }).fifo
    });
    asked.join().unwrap_or(false)
}

/// The running threads.
pub struct StallWatch {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Stall>>>,
}

impl StallWatch {
    /// Starts one thread on each processor that this process may use.
    pub fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        let cpus = (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap_or(false));
        let threads = cpus
            .map(|cpu| {
                let stop = Arc::clone(&stop);
                std::thread::spawn(move || watch(cpu, &stop))
            })
            .collect();
        Self { stop, threads }
    }

    /// Ends the threads and returns what they saw.
    pub fn stop(self) -> Vec<Stall> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    }
}

fn watch(cpu: usize, stop: &AtomicBool) -> Vec<Stall> {
    // Above the node, so that only the host itself can make it late. A refusal makes it a witness that also
    // sees other programs in the way, which delay the streams no less.
    let _ = Realtime::ask(Wish { fifo: Some(WITNESS_PRIORITY), cpu: Some(cpu), lock: false });
    let mut log = StallLog::of_more_than(LEAST);
    while !stop.load(Ordering::Relaxed) {
        let due = clock::now() + TICK;
        clock::sleep_until(due);
        log.note(StallEvidence::Timer, due, clock::now());
    }
    log.into_stalls()
}
