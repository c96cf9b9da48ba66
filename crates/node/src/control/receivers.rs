//! Channels to several receivers: who is in and who is not, for their programs, for those who ask, and for
//! the log.

use super::Control;
use super::logged::{counted, denial};
use super::modify::refusal_of;
use crate::log::{Level, say};
use crate::session::{Asked, Question};
use rota_contract::{NodeId, Tally};
use rota_driver::clock::now;
use rota_proto::{ChannelId, NotFound, ReceiverChange, ReceiverDetail, ReceiverState};
use rota_shm::control::{ReceiverInfo, Reply};
use rota_units::Span;
use std::collections::BTreeSet;

impl Control<'_> {
    /// A request to add a receiver, or to take one out, was taken, and is answered when the nodes of its way
    /// have decided, or was wrong.
    pub(super) fn on_joining(&mut self, ask: u64, result: Result<NodeId, NotFound>) {
        let is_it = |question: &&mut Question| question.ask == ask;
        let mut questions = self.sessions.iter_mut().flat_map(|session| &mut session.asked);
        match (result, questions.find(is_it)) {
            (Ok(node), Some(Question { asked: Asked::Join { node: waits_for, .. }, .. })) => {
                *waits_for = node
            }
            (Err(why), Some(_)) => {
                let Some((session, Asked::Join { to, .. })) = self.asked(ask) else { return };
                session.answer_not_found(&to, &why);
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
                let text = format!("receiver: {called}: {node} is in, bound {}", bound.printed_up());
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
        for (asker, number, leaves) in self.joiners(channel, to) {
            let left = leaves && matches!(change, ReceiverChange::Left { .. });
            self.sessions[asker].to(number).reply(if left { &Reply::Done } else { &reply }, &[]);
        }
        note(self.receivers.entry(channel).or_default(), info);
        let Some((at, place)) = self.owner(channel) else { return };
        let owned = &mut self.sessions[at].channels[place];
        if owned.told {
            owned.untold.add_receiver(to);
            self.tell_changes(now());
        }
    }

    /// The sessions that asked for this receiver, or for its end; their questions count as answered.
    fn joiners(&mut self, channel: ChannelId, to: NodeId) -> Vec<(usize, u64, bool)> {
        let mut askers = Vec::new();
        for (at, session) in self.sessions.iter_mut().enumerate() {
            let is_it = |question: &mut Question| match &question.asked {
                Asked::Join { channel: of, node, .. } => (*of, *node) == (channel, to),
                _ => false,
            };
            let leaves = |asked: &Asked| matches!(asked, Asked::Join { leaves: true, .. });
            let taken = session.asked.extract_if(.., is_it);
            askers.extend(taken.map(|question| (at, question.number, leaves(&question.asked))));
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

/// The newest word on a receiver. One that has left or was refused keeps the bound that it had.
fn note(receivers: &mut Vec<ReceiverInfo>, mut info: ReceiverInfo) {
    match receivers.iter_mut().find(|known| known.node_id == info.node_id) {
        Some(known) => {
            info.bound_ns = info.bound_ns.max(known.bound_ns);
            *known = info;
        }
        None => receivers.push(info),
    }
}

/// Octets that the numbers of all parts together may have in a reply, which has room for so many beside all
/// else that it tells of the most receivers behind the longest ways.
const SHARES_OCTETS_MAX: usize = 56 * 1_024;

/// The receivers of an open channel.
pub(super) fn infos(details: &[ReceiverDetail]) -> Vec<ReceiverInfo> {
    let mut infos: Vec<ReceiverInfo> = details.iter().map(info).collect();
    once(&mut infos);
    let mut octets = 0;
    for hop in infos.iter().flat_map(|info| &info.hops) {
        octets += hop.part.iter().map(|number| octets_of(*number)).sum::<usize>();
    }
    if octets > SHARES_OCTETS_MAX {
        infos.iter_mut().flat_map(|info| &mut info.hops).for_each(|hop| hop.part = Vec::new());
    }
    infos
}

/// Receivers that share a reservation have the numbers of its node with the first of them alone. They
/// share it where they have shared all nodes before, and go to the same next one.
fn once(infos: &mut [ReceiverInfo]) {
    let mut known = BTreeSet::new();
    for info in infos {
        let nodes: Vec<(NodeId, u8)> = info.hops.iter().map(|hop| (hop.node_id, hop.port)).collect();
        for (n, hop) in info.hops.iter_mut().enumerate() {
            let next = nodes.get(n + 1).map_or(info.node_id, |(next, _)| *next);
            if !hop.part.is_empty() && !known.insert((nodes[..=n].to_vec(), next)) {
                hop.part = Vec::new();
            }
        }
    }
}

/// Octets of a number in a list of JSON, with its comma.
fn octets_of(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 2
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
    use rota_wire::RcapTerms;

    fn record(node: u64, medium: u8, numbers: &[u64]) -> (Record, String) {
        let span = Span::from_nanos(1 << 40);
        let offer = Offer { delay: span, service_least: span, link_least: span, link_most: span };
        let (host_slack, late) = (Span::ZERO, rota_admission::rtip::Chance::NEVER);
        let regulator = rota_admission::rtip::Regulator::Rate;
        let hop = HopOffer { offer, regulator, host_slack, late, medium, percent: 0 };
        let counts = StatusCounts { packets: 1 << 40, dropped: 1 << 40, held: 1 << 40 };
        let (node, port) = (NodeId(node), PortId(1));
        let terms = RcapTerms::written(medium, numbers.iter().copied()).expect("room");
        (Record { node, port, is_open: true, hop, buffers: 1 << 40, counts, terms }, "n".repeat(63))
    }

    #[test]
    fn a_receiver_that_has_left_keeps_its_bound_and_has_one_place() {
        let word = |node, state: &str, bound_ns| ReceiverInfo {
            node_id: NodeId(node),
            state: state.into(),
            bound_ns,
            ..ReceiverInfo::default()
        };
        let mut receivers = Vec::new();
        for info in [word(1, "in", 70), word(2, "refused", 0), word(1, "left", 0), word(2, "in", 90)] {
            note(&mut receivers, info);
        }
        assert_eq!(receivers, [word(1, "left", 70), word(2, "in", 90)]);
    }

    /// A receiver behind seven nodes, of which the first ones, so many, state these numbers.
    fn detail(node: u64, medium: u8, (stating, numbers): (usize, &[u64])) -> ReceiverDetail {
        let of = |hop: usize| if hop < stating { numbers } else { &[] };
        ReceiverDetail {
            node: NodeId(node),
            name: "n".repeat(63),
            state: ReceiverState::In,
            by: String::new(),
            bound: Span::from_nanos(1 << 40),
            nodes: (0..7).map(|hop| record((node + 1) * 100 + hop as u64, medium, of(hop))).collect(),
            tally: Tally::default(),
        }
    }

    fn octets(infos: &[ReceiverInfo]) -> usize {
        serde_json::to_vec(infos).expect("JSON").len()
    }

    fn stating(infos: &[ReceiverInfo]) -> usize {
        infos.iter().flat_map(|info| &info.hops).filter(|hop| !hop.part.is_empty()).count()
    }

    /// With some links on the way to sixteen receivers, the numbers of all flows there exceeded a reply.
    #[test]
    fn the_receivers_of_a_channel_fit_a_reply_whatever_their_links_carry() {
        // As many numbers as a message of RCAP has room for, in an octet each.
        let numbers = [1; 1_000];
        for medium in [1, 2] {
            let all: Vec<_> = (0..16).map(|node| detail(node, medium, (7, &numbers))).collect();
            assert!(octets(&infos(&all)) < MESSAGE_OCTETS_MAX - 2_000);
        }
        let few = [detail(1, 1, (7, &numbers)), detail(2, 2, (7, &numbers))];
        assert_eq!(few.map(|of| stating(&infos(&[of]))), [7, 7], "what a node states is shown");
    }

    /// All but the last node of two ways are the same, and so is what the first six state.
    #[test]
    fn what_receivers_share_is_stated_once() {
        let [one, mut other] = [1, 1].map(|node| detail(node, 2, (7, &[1, 2, 3])));
        other.node = NodeId(2);
        let both = infos(&[one, other]);
        let parts = [0, 1].map(|at| both[at].hops.iter().filter(|hop| !hop.part.is_empty()).count());
        assert_eq!(parts, [7, 1]);
    }

    /// The hops were counted, not what they state: those of a few gateways with long parts exceeded a reply.
    #[test]
    fn the_shares_that_are_shown_fit_a_reply_at_their_limit() {
        for numbers in [&[1; 1_000][..], &[u64::MAX; 100]] {
            let part: usize = numbers.iter().map(|number| octets_of(*number)).sum();
            let fit = SHARES_OCTETS_MAX / part;
            let all = |hops: usize| {
                let of = |node: usize| (hops.saturating_sub(7 * node).min(7), numbers);
                infos(&(0..16).map(|node| detail(node as u64, 1, of(node))).collect::<Vec<_>>())
            };
            let (at_limit, beyond) = (all(fit), all(fit + 1));
            assert_eq!((stating(&at_limit), stating(&beyond)), (fit, 0), "all or none");
            let (shown, none) = (octets(&at_limit), octets(&beyond));
            assert!(shown < MESSAGE_OCTETS_MAX - 2_000, "{shown}");
            assert!(shown <= none + fit * part, "{shown} {none}: what a number takes is known");
        }
    }
}
