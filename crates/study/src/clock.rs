//! The program's clock, which is the library's, and what its threads ask of the scheduler.

use rota_answer::{Asked, Failure};
use rota_driver::realtime::{Realtime, Wish};
use rota_units::{Instant, Span};

pub use rota::{now, sleep_until};

/// What a program at the end of a stream asks for; below the node, which serves all of them.
const END_PRIORITY: u8 = 10;

/// How soon a program that sleeps or waits has noticed that a signal asks it to end.
pub const NOTICE: Span = Span::from_millis(100);

/// Sleeps until then.
///
/// # Errors
/// A signal asks this program to end; see [`Asked`].
pub fn sleep_until_or_asked_to_end(then: Instant) -> Result<(), Failure> {
    loop {
        Asked::to_end()?;
        let nap = now() + NOTICE;
        sleep_until(then.min(nap));
        if then <= nap {
            return Ok(());
        }
    }
}

/// Asks that this thread, an end of a stream, be served before ordinary programs and by exact timers. Where
/// the kernel refuses, frames only become later, and the evidence of stalls says so.
pub fn ask_for_real_time() {
    let _ = Realtime::ask(Wish { fifo: Some(END_PRIORITY), cpu: None, lock: false });
}
