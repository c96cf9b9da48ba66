//! Channels that change while they live: who asked, what came of it, and who is told.

use super::Control;
use super::logged::denial;
use crate::session::{Asked, Question, Session};
use rota_admission::Refusal;
use rota_contract::Granted;
use rota_driver::clock::now;
use rota_proto::rcap::{RcapCallError, RcapDenied};
use rota_proto::{ChannelId, PortId, ResizeError};
use rota_shm::control::{RefusalInfo, Reply};
use rota_units::{Instant, Span};

/// The refusal of a node on the way, as one sentence and in numbers.
pub(super) fn refusal_of(
    denied: &RcapDenied,
    node: String,
    sentence: String,
    partition: Option<&str>,
) -> RefusalInfo {
    RefusalInfo {
        test: denied.test.name().to_owned(),
        node,
        sentence,
        margin_ns: denied.margin_ns,
        nearest_delay_ns: denied.nearest_delay_ns,
        nearest_packet_octets: denied.nearest_octets,
        partition: partition.map(str::to_owned),
        nearest_end_ns: denied.nearest_end_ns,
        ..RefusalInfo::default()
    }
}

/// How soon a program that had no room for news may have some.
const TELL_AGAIN: Span = Span::from_millis(100);

/// Tells a program of changes that it did not ask for: true if it has heard of all.
fn tell_changes(session: &mut Session) -> bool {
    let mut channels = std::mem::take(&mut session.channels);
    for owned in channels.iter_mut().filter(|owned| owned.change_untold) {
        // A receiver asks what is not guaranteed on its way, too.
        owned.change_untold =
            !session.news(&Reply::Changed { channel: owned.shared, contract: owned.granted });
    }
    session.channels = channels;
    session.channels.iter().all(|owned| !owned.change_untold)
}

impl Control<'_> {
    /// A request to change a channel was taken, and is answered when the token has decided, or was wrong.
    pub(super) fn on_resizing(&mut self, ask: u64, result: Result<(), ResizeError>) {
        let Err(error) = result else { return };
        let Some((session, _)) = self.asked(ask) else { return };
        match error {
            ResizeError::NoChannel(_) => session.not_there(error.to_string()),
            ResizeError::Across(RcapCallError::Changing | RcapCallError::Full) => {
                session.error(error.to_string(), false);
            }
            ResizeError::Room { .. } | ResizeError::SizeOnly | ResizeError::Across(_) => {
                session.error(error.to_string(), true);
            }
        }
    }

    /// The sessions that asked for a change of a channel, and the numbers of their requests; their questions
    /// count as answered.
    pub(super) fn modifiers(&mut self, channel: ChannelId) -> Vec<(usize, u64)> {
        let mut askers = Vec::new();
        for (at, session) in self.sessions.iter_mut().enumerate() {
            let is_it = |question: &mut Question| question.asked == Asked::Modify { channel };
            askers.extend(session.asked.extract_if(.., is_it).map(|question| (at, question.number)));
        }
        askers
    }

    /// The contract is another from now on: who asked hears it, and the program that has the channel.
    pub(super) fn on_changed(&mut self, channel: ChannelId, granted: Granted) {
        let askers = self.modifiers(channel);
        for &(asker, number) in &askers {
            let modified = Reply::Modified { channel, contract: granted };
            self.sessions[asker].to(number).reply(&modified, &[]);
        }
        let Some((at, place)) = self.owner(channel) else { return };
        let owned = &mut self.sessions[at].channels[place];
        owned.granted = granted;
        if let Some(board) = &owned.board {
            board.set_bound(granted.bound());
        }
        // A receiver that has not been told of the channel yet is told with the contract that then stands. An
        // owner that has asked for the change is told, too: it may have waited for the answer no longer.
        if owned.told {
            owned.change_untold = true;
            self.tell_changes(now());
        }
    }

    /// Tells programs of changes that they did not ask for. One that does not read such news keeps its
    /// channel all the same, and hears of the last change once it reads again; returns when to try.
    pub(super) fn tell_changes(&mut self, now: Instant) -> Instant {
        let mut again = Instant::FAR;
        for session in &mut self.sessions {
            if !tell_changes(session) {
                again = now + TELL_AGAIN;
            }
        }
        again
    }

    /// A node on the way of a channel across segments has denied a change; only who asked is told.
    pub(super) fn on_change_denied(
        &mut self,
        channel: ChannelId,
        denied: &RcapDenied,
        (name, partition): (Option<&str>, Option<&str>),
    ) {
        let name = self.name_of(denied, name);
        let info = refusal_of(denied, name.clone(), denial(denied, &name, None, partition), partition);
        for (asker, number) in self.modifiers(channel) {
            self.sessions[asker].to(number).reply(&Reply::Refused(info.clone()), &[]);
        }
    }

    /// It was not granted more; only who asked is told, because nothing has changed.
    pub(super) fn on_not_changed(&mut self, port: PortId, channel: ChannelId, refusal: &Refusal) {
        let info = RefusalInfo::new(refusal, &self.facts.name, &self.facts.port(port).interface);
        for (asker, number) in self.modifiers(channel) {
            self.sessions[asker].to(number).reply(&Reply::Refused(info.clone()), &[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Owned;
    use crate::session::tests::session;

    /// It kept the contract of before, for ever.
    #[test]
    fn a_receiver_with_a_full_socket_is_told_once_it_reads_and_of_the_newest_contract() {
        let (mut session, client) = session("full");
        let (shared, told) = (ChannelId(7), true);
        session.channels.push(Owned { shared, told, ..Owned::default() });
        let changes = |session: &mut Session, bound_ns| {
            let owned = &mut session.channels[0];
            owned.granted.contract.bound_ns = bound_ns;
            owned.change_untold = true;
            tell_changes(session)
        };
        let first = (1..100_000).find(|bound_ns| !changes(&mut session, *bound_ns)).expect("it fills");
        assert!(first > 10 && !tell_changes(&mut session) && !session.is_over());
        assert!(!changes(&mut session, 500_000));
        let next = || client.try_reply().expect("it lives").map(|message| message.body);
        let bound = |reply: Reply| match reply {
            Reply::Changed { channel, contract } if channel == shared => contract.contract.bound_ns,
            other => panic!("{other:?}"),
        };
        let heard: Vec<u64> = std::iter::from_fn(next).map(bound).collect();
        assert_eq!(heard, (1..first).collect::<Vec<_>>());
        assert!(tell_changes(&mut session));
        assert_eq!(next().map(bound), Some(500_000));
        assert!(next().is_none() && tell_changes(&mut session), "and once");
    }
}
