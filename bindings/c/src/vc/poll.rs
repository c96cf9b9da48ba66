//! `poll` over circuits and other descriptors together.

use std::sync::Arc;

use libc::{POLLIN, POLLNVAL, POLLOUT, pollfd};
use nix::errno::Errno;
use rota::{Span, now};

use super::handle::{Handle, Side, find};
use super::no::No;

/// One entry of the program, and the circuit if it is one.
type Entry<'a> = (&'a mut pollfd, Option<Arc<Handle>>);

/// As poll(2): how many entries have something.
pub fn poll(fds: &mut [pollfd], timeout_ms: i32) -> Result<usize, No> {
    let deadline = u64::try_from(timeout_ms).ok().map(|ms| now() + Span::from_millis(ms));
    let mut entries: Vec<Entry<'_>> = fds
        .iter_mut()
        .map(|entry| {
            let handle = find(entry.fd).ok();
            (entry, handle)
        })
        .collect();
    loop {
        let circuits = entries.iter_mut().filter_map(look).count();
        // One entry that is due is no reason to leave out the others.
        let left = match deadline {
            _ if circuits > 0 => 0,
            None => -1,
            Some(deadline) => whole_ms(deadline.since(now())),
        };
        let mut asked: Vec<pollfd> = entries.iter().flat_map(ask).collect();
        let count = libc::nfds_t::try_from(asked.len()).unwrap_or(libc::nfds_t::MAX);
        // SAFETY: the vector has so many entries, and nobody else uses it.
        if unsafe { libc::poll(asked.as_mut_ptr(), count, left) } < 0 {
            return Err(No::new(Errno::last(), "a signal came, or the system refused to poll"));
        }
        let mut answers = asked.iter();
        let mut found = 0;
        for entry in &mut entries {
            let mine = ask(entry).count();
            let answered = answers.by_ref().take(mine).fold(0, |all, answer| all | answer.revents);
            if entry.1.is_none() {
                entry.0.revents = answered;
            } else {
                look(entry);
            }
            found += usize::from(entry.0.revents != 0);
        }
        if found > 0 || deadline.is_some_and(|deadline| now() >= deadline) {
            return Ok(found);
        }
    }
}

fn whole_ms(time: Span) -> i32 {
    i32::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
}

/// What a circuit has of what is asked.
fn look((entry, handle): &mut Entry<'_>) -> Option<()> {
    let handle = handle.as_ref()?;
    let (input, output) = handle.due();
    let of = |is_due: bool, event: i16| if is_due { entry.events & event } else { 0 };
    entry.revents = of(input, POLLIN) | of(output, POLLOUT);
    // Another thread has closed it meanwhile.
    if handle.is_closed() {
        entry.revents = POLLNVAL;
    }
    (entry.revents != 0).then_some(())
}

/// The descriptors that stand for an entry.
fn ask((entry, handle): &Entry<'_>) -> impl Iterator<Item = pollfd> + use<> {
    let at = |fd, events| pollfd { fd, events, revents: 0 };
    let (events, fd) = (entry.events, entry.fd);
    let sides = match handle {
        None => [Some(at(fd, events)), None],
        Some(handle) => [(POLLIN, Side::In), (POLLOUT, Side::Out)]
            .map(|(event, side)| (events & event != 0).then(|| at(handle.descriptor(side), POLLIN))),
    };
    sides.into_iter().flatten()
}
