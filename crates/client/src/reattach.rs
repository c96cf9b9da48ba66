//! Channels and listeners whose node has died, made again at the node that came after it, at the same control
//! path. A wait on a dead node's channel ends within 10 ms with `NodeGone`; what was in its memory is lost.
//!
//! A peer's death is the same from this side: its end of the channel is new, and so is the channel.

use rota_shm::control::{ContractInfo, ControlName};
use rota_units::Span;

use crate::node::{NodeError, OpenError, OpenRequest, listen_by, open_by};
use crate::receive::Listener;
use crate::send::SendChannel;
use crate::session::Deadline;
use crate::{now, sleep_until};

/// How soon it is tried again. A node takes about a second until it has joined its segment.
const AGAIN: Span = Span::from_millis(50);

/// What a channel was opened with.
#[derive(Clone)]
pub(crate) struct SendOrigin {
    pub(crate) control: ControlName,
    pub(crate) request: OpenRequest,
}

/// What a listener was made with.
#[derive(Clone)]
pub(crate) struct ListenOrigin {
    pub(crate) control: ControlName,
    pub(crate) from: Option<String>,
    pub(crate) buffers: u16,
}

/// Tries until it succeeds, until the time is over, or until an error is final. Each attempt is told when the
/// time is over: a node that stands still answers nothing.
fn within<T, E>(
    time: Span,
    mut attempt: impl FnMut(Deadline) -> Result<T, E>,
    is_final: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let deadline = Deadline::after(time);
    loop {
        match attempt(deadline) {
            Err(error) if !is_final(&error) && AGAIN < deadline.left() => sleep_until(now() + AGAIN),
            done => return done,
        }
    }
}

impl SendChannel {
    /// Opens the channel again after its end: waits for a node at the same control path, and asks it for the
    /// same channel to the same station and service, for `time` at most. Units are numbered from 0 again;
    /// those that were handed over and had not left are lost. What becomes of overdue units stays as it was
    /// set last, and [`SendChannel::tally`] goes on. Until it succeeds, this channel stays as it is.
    ///
    /// # Errors
    /// [`OpenError::Refused`] at once; whatever else was in the way last when the time is over.
    pub fn reattach(&mut self, time: Span) -> Result<&ContractInfo, OpenError> {
        let SendOrigin { control, request } = self.origin().clone();
        let attempt = |deadline| open_by(&control, &request, deadline);
        let mut again = within(time, attempt, |error| matches!(error, OpenError::Refused(_)))?;
        again.go_on_for(self);
        *self = again;
        Ok(self.contract())
    }
}

impl Listener {
    /// Listens again, for a listener takes one channel; after its node's death waits for a node at the same
    /// control path, for `time` at most.
    ///
    /// # Errors
    /// What was in the way last.
    pub fn reattach(&mut self, time: Span) -> Result<(), NodeError> {
        let ListenOrigin { control, from, buffers } = self.origin().clone();
        let service = self.service();
        let attempt = |deadline| listen_by(&control, (service, from.as_deref(), buffers), deadline);
        *self = within(time, attempt, |_| false)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_tried_until_it_succeeds_or_is_final_or_the_time_is_over() {
        let mut tries = 0;
        let mut third = |_| {
            tries += 1;
            if tries < 3 { Err(tries) } else { Ok(tries) }
        };
        assert_eq!(within(Span::from_millis(60_000), &mut third, |_| false), Ok(3));
        assert_eq!(within(Span::from_millis(60_000), |_| Err::<(), _>(7), |error| *error == 7), Err(7));
        let begin = now();
        assert_eq!(within(Span::from_millis(120), |_| Err::<(), _>(8), |_| false), Err(8));
        assert!(now().since(begin) < Span::from_millis(10_000));
    }
}
