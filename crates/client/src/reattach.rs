//! Opens channels and listeners again after their node has died, at the next node on the same control path.
//! A wait on a dead node's channel ends within 10 ms with `NodeGone`; the units in its memory are lost.
//!
//! A peer's death is the same from this side: its end of the channel is new, and so is the channel.

use rota_contract::{ChannelId, Contract};
use rota_shm::control::ControlName;
use rota_units::Span;

use crate::node::{NodeError, OpenError, OpenRequest, listen_by, open_by};
use crate::receive::Listener;
#[cfg(doc)]
use crate::receive::RecvChannel;
use crate::send::SendChannel;
use crate::session::Deadline;
use crate::{now, sleep_until};

/// The pause between two attempts. A node takes about a second to join its segment.
const AGAIN: Span = Span::from_millis(50);

/// The control path and the request that a channel was opened with.
#[derive(Clone)]
pub(crate) struct SendOrigin {
    pub(crate) control: ControlName,
    pub(crate) request: OpenRequest,
}

/// The parameters that a listener was made with.
#[derive(Clone)]
pub(crate) struct ListenOrigin {
    pub(crate) control: ControlName,
    pub(crate) from: Option<String>,
    pub(crate) buffers: u16,
    pub(crate) asks: bool,
    /// The station is asked for the channel, perhaps for the way back of one.
    pub(crate) invites: Option<ChannelId>,
    /// Its channels have a queue that the kernel fills, where they may.
    pub(crate) apart: bool,
}

/// Repeats `attempt` until it succeeds, the time is over, or an error is final. Each attempt gets the
/// deadline, because a node that stands still does not answer.
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
    /// units that were handed over and had not left are lost. The receiver is told how many units were handed
    /// over or left out before ([`RecvChannel::units_before`]). The policy for overdue units stays as last
    /// set, and [`SendChannel::tally`] goes on. Until a reattach succeeds, this channel stays unchanged.
    ///
    /// # Errors
    /// [`OpenError::Refused`] at once; otherwise the error of the last attempt, when the time is over.
    pub fn reattach(&mut self, time: Span) -> Result<&Contract, OpenError> {
        let SendOrigin { control, request } = self.origin().clone();
        let before = self.handed_over().saturating_add(self.left_out());
        let attempt = |deadline| open_by(&control, &request, before, deadline);
        let mut again = within(time, attempt, |error| matches!(error, OpenError::Refused(_)))?;
        again.go_on_for(self);
        *self = again;
        Ok(self.contract())
    }
}

impl Listener {
    /// Listens again, because a listener takes one channel only. After its node's death it waits for a node
    /// at the same control path, for `time` at most.
    ///
    /// # Errors
    /// The error of the last attempt.
    pub fn reattach(&mut self, time: Span) -> Result<(), NodeError> {
        let (origin, service) = (self.origin().clone(), self.service());
        let attempt = |deadline| listen_by(origin.clone(), service, deadline);
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
