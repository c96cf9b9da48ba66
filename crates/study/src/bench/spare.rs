//! The processor time that a machine has left, measured by what a thread of the idle class gets done on each
//! processor.
//!
//! The kernel's own count of busy time has steps of 10 ms, and much of what a packet costs is interrupts,
//! which belong to no process. A thread that runs only where nothing else wants to loses exactly what all of
//! them take.

use rota_answer::Failure;
use rota_driver::realtime;
use rota_units::Span;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use crate::clock;

/// Of arithmetic between two counts: a fifth of a microsecond or so.
const STEPS: u64 = 100;
/// A look at an unused machine, to learn how long a count takes.
const LOOK: Span = Span::from_millis(100);
const LOOKS: usize = 10;

/// The threads, one for each processor; they end with this value.
pub struct Spare {
    counts: Vec<Arc<AtomicU64>>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Counts of all processors in a look at the unused machine.
    unused: u64,
}

impl Spare {
    /// Starts the threads, and looks how fast they count while nothing else runs.
    pub fn start() -> Result<Self, Failure> {
        let cpus = realtime::cpus();
        let mut spare = Self {
            counts: cpus.iter().map(|_| Arc::default()).collect(),
            over: Arc::default(),
            threads: Vec::new(),
            unused: 0,
        };
        for (cpu, count) in cpus.into_iter().zip(spare.counts.clone()) {
            let over = spare.over.clone();
            spare.threads.push(std::thread::spawn(move || {
                // In a normal class it would take time from what is measured.
                if realtime::only_where_idle(cpu) {
                    count_until(&over, &count);
                }
            }));
        }
        let looks = (0..LOOKS).map(|_| {
            let (before, begin) = (spare.read(), clock::now());
            clock::sleep_until(begin + LOOK);
            let counted = spare.read() - before;
            counted * LOOK.as_nanos() / clock::now().since(begin).as_nanos().max(1)
        });
        let fastest = looks.max().unwrap_or(0);
        spare.unused = fastest;
        if fastest == 0 {
            return Err(Failure::failed("the kernel gives no thread of the idle class its processors"));
        }
        Ok(spare)
    }

    /// Counts of all processors until now.
    pub fn read(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// The time that all processors have in `wall`, ns.
    pub fn nanos_of(&self, wall: Span) -> u64 {
        wall.as_nanos() * self.counts.len() as u64
    }

    /// The processor time of so many counts, ns.
    pub fn nanos(&self, counts: u64) -> u64 {
        let of_a_look = self.nanos_of(LOOK);
        u64::try_from(u128::from(counts) * u128::from(of_a_look) / u128::from(self.unused))
            .unwrap_or(u64::MAX)
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn count_until(over: &AtomicBool, count: &AtomicU64) {
    let mut word = 1_u64;
    while !over.load(Ordering::Relaxed) {
        for _ in 0..STEPS {
            word = black_box(word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17));
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_worth_its_part_of_an_unused_machine() {
        let counts = vec![Arc::new(AtomicU64::new(300)), Arc::new(AtomicU64::new(200))];
        let spare = Spare { counts, over: Arc::default(), threads: Vec::new(), unused: 1_000 };
        let all = spare.nanos_of(LOOK);
        assert_eq!((spare.read(), all), (500, 2 * LOOK.as_nanos()));
        assert_eq!(spare.nanos(spare.read()), all / 2);
    }
}
