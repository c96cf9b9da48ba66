//! Binding a thread to the CPU of its node: see [`crate::llc::Socket::stay_near_node`].

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

/// Binds the calling thread to one CPU. False when it may not run there.
pub(crate) fn bind_to(cpu: usize) -> bool {
    let mut only = CpuSet::new();
    only.set(cpu).is_ok() && sched_setaffinity(Pid::from_raw(0), &only).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sched::{sched_getaffinity, sched_getcpu};

    #[test]
    fn a_thread_is_bound_to_a_cpu_it_may_run_on_and_to_no_other() {
        // A thread of its own: the binding ends with it.
        let bound = std::thread::spawn(|| {
            let before = sched_getaffinity(Pid::from_raw(0)).unwrap();
            let allowed = (0..CpuSet::count()).rfind(|cpu| before.is_set(*cpu) == Ok(true)).unwrap();
            for none in [CpuSet::count() - 1, usize::MAX] {
                assert!(!bind_to(none));
                assert_eq!(sched_getaffinity(Pid::from_raw(0)).unwrap(), before);
            }
            assert!(bind_to(allowed));
            assert_eq!(sched_getcpu(), Ok(allowed));
        });
        bound.join().unwrap();
    }
}
