//! The program's clock, which is the library's, and what its threads ask of the scheduler.

use rota_driver::realtime::{Realtime, Wish};

pub use rota::{now, sleep_until};

/// What a program at the end of a stream asks for; below the node, which serves all of them.
const END_PRIORITY: u8 = 10;

/// Asks that this thread, an end of a stream, be served before ordinary programs and by exact timers. Where
/// the kernel refuses, frames only become later, and the evidence of stalls says so.
pub fn ask_for_real_time() {
    let _ = Realtime::ask(Wish { fifo: Some(END_PRIORITY), cpu: None, lock: false });
}
