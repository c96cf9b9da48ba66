//! The programs of a lane that are built and have not run yet.

use crate::program::Program;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};

/// One thread builds programs into it, another one runs them.
#[derive(Default)]
pub struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    programs: VecDeque<Program>,
    is_closed: bool,
}

impl Queue {
    /// One more program.
    pub fn push(&self, program: Program) {
        self.waiting().programs.push_back(program);
        self.changed.notify_one();
    }

    /// These programs are the next, and no more come.
    pub fn close_with(&self, next: Vec<Program>) {
        let mut waiting = self.waiting();
        next.into_iter().rev().for_each(|program| waiting.programs.push_front(program));
        waiting.is_closed = true;
        self.changed.notify_one();
    }

    /// No program is to run any more.
    pub fn abandon(&self) {
        let mut waiting = self.waiting();
        waiting.programs.clear();
        waiting.is_closed = true;
        self.changed.notify_one();
    }

    /// The next program, which it waits for; none where no more come.
    pub fn next(&self) -> Option<Program> {
        let is_empty = |waiting: &mut Waiting| waiting.programs.is_empty() && !waiting.is_closed;
        let woken = self.changed.wait_while(self.waiting(), is_empty);
        woken.unwrap_or_else(std::sync::PoisonError::into_inner).programs.pop_front()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(target: &str) -> Program {
        Program::planted("a", target, "true")
    }

    fn rest(queue: &Queue) -> Vec<String> {
        std::iter::from_fn(|| queue.next()).map(|program| program.target).collect()
    }

    #[test]
    fn programs_come_in_order_and_those_at_the_close_first() {
        let queue = Queue::default();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| queue.next().map(|program| program.target));
            queue.push(program("one"));
            assert_eq!(first.join().unwrap().as_deref(), Some("one"), "it was waited for");
        });
        queue.push(program("two"));
        queue.close_with(vec![program("three"), program("four")]);
        assert_eq!(rest(&queue), ["three", "four", "two"]);
    }

    #[test]
    fn an_abandoned_queue_is_empty() {
        let queue = Queue::default();
        queue.push(program("one"));
        queue.abandon();
        assert_eq!(rest(&queue), [""; 0]);
    }
}
