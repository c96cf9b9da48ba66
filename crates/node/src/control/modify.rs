//! Channels that change while they live: who asked, what came of it, and who is told.

use super::Control;
use super::logged::change_denial;
use crate::session::{Asked, Question, Session};
use rota_admission::Refusal;
use rota_contract::{Granted, NodeId};
use rota_driver::clock::now;
use rota_proto::rcap::{RcapCallError, RcapDenied, RcapTest};
use rota_proto::{ChannelId, PortId, ResizeError};
use rota_shm::control::{ReceiverInfo, RefusalInfo, Reply};
use rota_units::{Instant, Span};
use std::collections::BTreeMap;

/// The refusal of a node on the way, as one sentence and in numbers.
pub(super) fn refusal_of(
    denied: &RcapDenied,
    node: String,
    sentence: String,
    partition: Option<&str>,
) -> RefusalInfo {
    let (is_packet, octets) = (denied.test == RcapTest::Packet, denied.nearest_octets);
    RefusalInfo {
        test: denied.test.name().to_owned(),
        node,
        sentence,
        margin_ns: denied.margin_ns,
        counter_offer_octets: if is_packet { 0 } else { octets },
        nearest_delay_ns: denied.nearest_delay_ns,
        nearest_jitter_ns: denied.nearest_jitter_ns,
        nearest_xmin_ns: denied.nearest_x_min_ns,
        nearest_packet_octets: if is_packet { octets } else { 0 },
        partition: partition.map(str::to_owned),
        nearest_end_ns: denied.nearest_end_ns,
        ..RefusalInfo::default()
    }
}

/// How soon a program that had no room for news may have some.
const TELL_AGAIN: Span = Span::from_millis(100);

/// News of a channel that its program has not heard.
#[derive(Default)]
pub(crate) struct Untold {
    /// Its contract has changed.
    change: bool,
    /// There is a newer word on these receivers.
    receivers: Vec<NodeId>,
}

impl Untold {
    /// A newer word on a receiver takes the place of one that was not told.
    pub(super) fn add_receiver(&mut self, node: NodeId) {
        self.receivers.retain(|untold| *untold != node);
        self.receivers.push(node);
    }

    const fn is_nothing(&self) -> bool {
        !self.change && self.receivers.is_empty()
    }
}

/// The receivers of each channel to several that is sent here.
type Receivers = BTreeMap<ChannelId, Vec<ReceiverInfo>>;

/// Tells a program of changes and of receivers that it did not ask for: true if it has heard of all.
fn tell_changes(session: &mut Session, receivers: &Receivers) -> bool {
    let mut channels = std::mem::take(&mut session.channels);
    for owned in &mut channels {
        if owned.untold.change {
            // A receiver asks what is not guaranteed on its way, too.
            owned.untold.change =
                !session.news(&Reply::Changed { channel: owned.shared, contract: owned.granted });
        }
        let channel = owned.channel;
        let newest = |node| receivers.get(&channel)?.iter().find(|known| known.node_id == node);
        let is_told = |receiver| session.news(&Reply::Receiver { channel, receiver });
        owned.untold.receivers.retain(|node| newest(*node).cloned().is_some_and(|info| !is_told(info)));
    }
    session.channels = channels;
    session.channels.iter().all(|owned| owned.untold.is_nothing())
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
            owned.untold.change = true;
            self.tell_changes(now());
        }
    }

    /// Tells programs of changes that they did not ask for. One that does not read such news keeps its
    /// channel all the same, and hears of the last change once it reads again; returns when to try.
    pub(super) fn tell_changes(&mut self, now: Instant) -> Instant {
        let mut again = Instant::FAR;
        for session in &mut self.sessions {
            if !tell_changes(session, &self.receivers) {
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
        to: Option<&str>,
    ) {
        let name = self.name_of(denied, name);
        let text = change_denial(denied, &name, partition, to);
        let info = refusal_of(denied, name, text, partition);
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

    /// The same number counts octets of a packet for one test, and those of a unit for the others.
    #[test]
    fn a_refusal_offers_a_packet_or_a_unit_and_never_both() {
        let octets = |test| {
            let denied = RcapDenied { nearest_octets: 700, ..RcapDenied::simply(NodeId(3), test) };
            let info = refusal_of(&denied, "n3".into(), "it does not fit".into(), None);
            (info.counter_offer_octets, info.nearest_packet_octets)
        };
        assert_eq!([RcapTest::Packet, RcapTest::RetherShare].map(octets), [(0, 700), (700, 0)]);
    }

    /// It kept the contract of before, for ever.
    #[test]
    fn a_receiver_with_a_full_socket_is_told_once_it_reads_and_of_the_newest_contract() {
        let (mut session, client) = session("full");
        let (shared, told) = (ChannelId(7), true);
        session.channels.push(Owned { shared, told, ..Owned::default() });
        let tell_changes = |session: &mut Session| tell_changes(session, &Receivers::new());
        let changes = |session: &mut Session, bound_ns| {
            let owned = &mut session.channels[0];
            owned.granted.contract.bound_ns = bound_ns;
            owned.untold.change = true;
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

    /// The word that a receiver had left was dropped.
    #[test]
    fn a_sender_with_a_full_socket_hears_of_its_receivers_once_it_reads_and_the_newest_word() {
        let (mut session, client) = session("full-of-receivers");
        let (channel, told) = (ChannelId(7), true);
        session.channels.push(Owned { channel, shared: channel, told, ..Owned::default() });
        let mut receivers = Receivers::new();
        let mut word = |session: &mut Session, (node, state): (u64, &str), units| {
            let node_id = NodeId(node);
            let info = ReceiverInfo { node_id, state: state.into(), units, ..ReceiverInfo::default() };
            let known = receivers.entry(channel).or_default();
            known.retain(|known| known.node_id != node_id);
            known.push(info);
            session.channels[0].untold.add_receiver(node_id);
            tell_changes(session, &receivers)
        };
        let first = (1..100_000).find(|units| !word(&mut session, (1, "in"), *units)).expect("it fills");
        assert!(first > 10 && !session.is_over());
        assert!(!word(&mut session, (1, "left"), 500_000) && !word(&mut session, (2, "refused"), 0));
        let heard = || match client.try_reply().expect("it lives")?.body {
            Reply::Receiver { channel: of, receiver } if of == channel => {
                Some((receiver.node_id.0, receiver.state, receiver.units))
            }
            other => panic!("{other:?}"),
        };
        let before: Vec<u64> = std::iter::from_fn(heard).map(|(_, _, units)| units).collect();
        assert_eq!(before, (1..first).collect::<Vec<_>>());
        assert!(tell_changes(&mut session, &receivers));
        let after: Vec<_> = std::iter::from_fn(heard).collect();
        assert_eq!(after, [(1, "left".into(), 500_000), (2, "refused".into(), 0)]);
        assert!(tell_changes(&mut session, &receivers) && heard().is_none(), "and once");
    }
}
