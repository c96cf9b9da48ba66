//! Channels to several receivers: who is in and who is not, for their programs, for those who ask, and for
//! the log.

use super::Control;
use super::logged::{counted, denial};
use super::modify::refusal_of;
use crate::log::{Level, say};
use crate::session::{Asked, Question};
use rota_contract::{NodeId, Tally};
use rota_proto::{ChannelId, NotFound, ReceiverChange, ReceiverDetail, ReceiverState};
use rota_shm::control::{ReceiverInfo, Reply};
use rota_units::Span;

impl Control<'_> {
    /// A request to add a receiver was taken, and is answered when the nodes of its way have decided, or was
    /// wrong.
    pub(super) fn on_joining(&mut self, ask: u64, result: Result<NodeId, NotFound>) {
        let is_it = |question: &&mut Question| question.ask == ask;
        let mut questions = self.sessions.iter_mut().flat_map(|session| &mut session.asked);
        match (result, questions.find(is_it)) {
            (Ok(node), Some(Question { asked: Asked::Join { node: waits_for, .. }, .. })) => {
                *waits_for = node
            }
            (Err(why), Some(_)) => {
                let Some((session, Asked::Join { to, .. })) = self.asked(ask) else { return };
                match why {
                    NotFound::Unknown { known } => session.answer(&super::no_station(&to, &known)),
                    NotFound::Wrong(error) => session.error(error.to_string(), true),
                }
            }
            _ => {}
        }
    }

    /// A receiver is in, or is not.
    pub(super) fn on_receiver(
        &mut self,
        channel: ChannelId,
        (to, name): (NodeId, Option<String>),
        change: &ReceiverChange,
    ) {
        let node = name.unwrap_or_else(|| to.to_string());
        let called = self.called(channel);
        let mut info = ReceiverInfo { node: node.clone(), node_id: to, ..ReceiverInfo::default() };
        let reply = match change {
            ReceiverChange::Joined { bound } => {
                let text = format!("receiver: {called}: {node} is in, bound {bound}");
                say(Level::Info, "receiver", &text);
                (info.state, info.bound_ns) = ("in".into(), bound.as_nanos());
                Reply::Joined { channel, bound_ns: bound.as_nanos() }
            }
            ReceiverChange::Refused { denied, by } => {
                let by = self.name_of(denied, by.as_deref());
                let why = denial(denied, &by, None, None);
                say(Level::Warn, "receiver", &format!("receiver: {called}: {node} is not in: {why}"));
                (info.state, info.why) = ("refused".into(), why.clone());
                Reply::Refused(refusal_of(denied, by, why, None))
            }
            ReceiverChange::Left { cause, tally } => {
                let how = format!("{}: {}", counted(None, tally), cause.sentence());
                let level = if cause.is_clean() && tally.broken() == 0 { Level::Info } else { Level::Warn };
                say(level, "receiver", &format!("receiver: {called}: {node} is out{how}"));
                (info.state, info.why) = ("left".into(), cause.sentence().into());
                (info.units, info.broken) = (tally.units, tally.lost);
                let sentence = format!("{node} has left: {}", cause.sentence());
                Reply::Error { sentence, wrong_use: false }
            }
        };
        for (asker, number) in self.joiners(channel, to) {
            self.sessions[asker].to(number).reply(&reply, &[]);
        }
        let receivers = self.receivers.entry(channel).or_default();
        match receivers.iter_mut().find(|known| known.node_id == to) {
            Some(known) => {
                info.bound_ns = info.bound_ns.max(known.bound_ns);
                *known = info;
            }
            None => receivers.push(info),
        }
    }

    /// The sessions that asked for this receiver; their questions count as answered.
    fn joiners(&mut self, channel: ChannelId, to: NodeId) -> Vec<(usize, u64)> {
        let mut askers = Vec::new();
        for (at, session) in self.sessions.iter_mut().enumerate() {
            let is_it = |question: &mut Question| match &question.asked {
                Asked::Join { channel: of, node, .. } => (*of, *node) == (channel, to),
                _ => false,
            };
            askers.extend(session.asked.extract_if(.., is_it).map(|question| (at, question.number)));
        }
        askers
    }

    /// Of an ended channel: programs that still wait for a receiver of it are told.
    pub(super) fn no_joiners(&mut self, channel: ChannelId) {
        let is_it = |question: &mut Question| match &question.asked {
            Asked::Join { channel: of, .. } => *of == channel,
            _ => false,
        };
        for session in &mut self.sessions {
            let asked: Vec<Question> = session.asked.extract_if(.., is_it).collect();
            for Question { number, .. } in asked {
                session.to(number).not_there(super::no_channel(channel));
            }
        }
    }
}

/// Hops of all receivers together whose shares fit a reply.
const SHARES_MAX: usize = 96;

/// The receivers of an open channel.
pub(super) fn infos(details: &[ReceiverDetail]) -> Vec<ReceiverInfo> {
    let mut infos: Vec<ReceiverInfo> = details.iter().map(info).collect();
    let hops: usize = infos.iter().map(|info| info.hops.len()).sum();
    for hop in infos.iter_mut().flat_map(|info| &mut info.hops) {
        // There is no certificate of such a channel. Of a link's part, which states all flows of a port,
        // nothing is shown; that of a segment has the share.
        if hop.medium != "rether" || hops > SHARES_MAX {
            hop.part = Vec::new();
        }
    }
    infos
}

fn info(detail: &ReceiverDetail) -> ReceiverInfo {
    let ReceiverDetail { node, name, state, by, bound, nodes, tally } = detail;
    let called = if name.is_empty() { node.to_string() } else { name.clone() };
    let (word, why) = match state {
        ReceiverState::Waits | ReceiverState::Asked => ("asked", String::new()),
        ReceiverState::In => ("in", String::new()),
        ReceiverState::Refused(denied) => {
            let by = if by.is_empty() { denied.node.to_string() } else { by.clone() };
            ("refused", denial(denied, &by, None, None))
        }
        ReceiverState::Left(cause) => ("left", cause.sentence().into()),
    };
    let hops = nodes.iter().filter(|(record, _)| record.node != *node).map(super::shown::hop);
    let Tally { units, lost, .. } = *tally;
    let bound_ns = Span::as_nanos(*bound);
    ReceiverInfo {
        node: called,
        node_id: *node,
        state: word.into(),
        why,
        bound_ns,
        units,
        broken: lost,
        hops: hops.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_admission::subnet::Offer;
    use rota_proto::PortId;
    use rota_proto::rcap::{HopOffer, Record, StatusCounts};
    use rota_shm::control::MESSAGE_OCTETS_MAX;

    fn record(node: u64, medium: u8) -> (Record, String) {
        let span = Span::from_nanos(1 << 40);
        let offer = Offer { delay: span, service_least: span, link_least: span, link_most: span };
        let (host_slack, late) = (Span::ZERO, rota_admission::rtip::Chance::NEVER);
        let regulator = rota_admission::rtip::Regulator::Rate;
        let hop = HopOffer { offer, regulator, host_slack, late, medium, percent: 0 };
        let counts = StatusCounts { packets: 1 << 40, dropped: 1 << 40, held: 1 << 40 };
        // As many numbers as a message of RCAP has room for, in an octet each.
        let terms = vec![1; 1_000];
        let (node, port) = (NodeId(node), PortId(1));
        (Record { node, port, is_open: true, hop, buffers: 1 << 40, counts, terms }, "n".repeat(63))
    }

    /// With some links on the way to sixteen receivers, the numbers of all flows there exceeded a reply.
    #[test]
    fn the_receivers_of_a_channel_fit_a_reply_whatever_their_links_carry() {
        let detail = |node: u64, medium: u8| ReceiverDetail {
            node: NodeId(node),
            name: "n".repeat(63),
            state: ReceiverState::In,
            by: String::new(),
            bound: Span::from_nanos(1 << 40),
            nodes: (0..7).map(|hop| record(hop + 100, medium)).collect(),
            tally: Tally::default(),
        };
        for medium in [1, 2] {
            let all: Vec<ReceiverDetail> = (0..16).map(|node| detail(node, medium)).collect();
            let octets = serde_json::to_vec(&infos(&all)).expect("JSON").len();
            assert!(octets < MESSAGE_OCTETS_MAX - 2_000, "{octets}");
        }
        let few = infos(&[detail(1, 1), detail(2, 2)]);
        let stated = few.iter().map(|info| info.hops.iter().filter(|hop| !hop.part.is_empty()).count());
        assert_eq!(stated.collect::<Vec<_>>(), [7, 0], "the shares of segments are shown");
    }
}
