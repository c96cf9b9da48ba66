//! The ledger as a model checker compares it; see `rether/model.rs`.

use super::{Channels, Sending};
use crate::Visit;

impl Channels {
    /// Shows what can change what the ledger will do; of contracts and counts it shows nothing.
    pub(crate) fn visit(&self, visit: &mut dyn Visit) {
        assert!(self.events.is_empty() && self.wants.is_empty(), "a drained ledger is shown");
        for channel in &self.outgoing {
            visit.word(channel.id.0);
            let (state, repeats): (u64, _) = match channel.state {
                Sending::Connecting(repeats) => (0, Some(repeats)),
                Sending::Reserving => (1, None),
                Sending::Open { telling } => (if telling.is_some() { 2 } else { 3 }, telling),
                Sending::Draining => (4, None),
                Sending::Releasing => (5, None),
                Sending::Closing(repeats) => (6, Some(repeats)),
                Sending::Over => (7, None),
            };
            let tries = repeats.map_or(0, |repeats| repeats.tries);
            visit.word(u64::from(channel.hop.0[5]) << 16 | u64::from(tries) << 8 | state);
            let bits = u64::from(channel.probe) << 1 | u64::from(channel.ending.silent);
            visit.word(u64::from(channel.ending.cause.code()) << 2 | bits);
            if let Some(repeats) = repeats {
                visit.until(repeats.again);
            }
        }
        for channel in &self.incoming {
            visit.word(channel.id.0);
            let told = u64::from(channel.accepted) << 1 | u64::from(channel.opened);
            visit.word(u64::from(channel.hop.0[5]) << 2 | told);
            visit.word(channel.remote.0);
            if channel.has_news() {
                visit.until(channel.tell_at);
            }
            if let Some(doubt) = channel.doubt {
                visit.word(u64::from(doubt.cause.code()) << 8 | u64::from(doubt.tries));
                visit.until(doubt.again);
            }
            if !channel.opened {
                visit.since(channel.since, super::UNOPENED_PATIENCE);
                visit.word(channel.taker.id);
            }
        }
        self.unstated.iter().for_each(|channel| visit.word(channel.id.0));
        self.unheard.iter().for_each(|channel| visit.word(channel.id.0));
        let listeners = self.listeners.iter().chain(&self.returning);
        listeners.for_each(|listener| visit.word(listener.id));
        visit.word(self.returning.len() as u64);
    }
}
