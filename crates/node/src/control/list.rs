//! The channels of this station, for programs: in parts that each fit a message.

use super::Control;
use crate::session::Owned;
use crate::status::Snapshot;
use rota_contract::{ChannelId, NodeId};
use rota_shm::control::{ChannelInfo, MESSAGE_OCTETS_MAX, Reply};

/// Octets of the channels in one part; the rest of the message is for what stands around them.
const PART_OCTETS: usize = MESSAGE_OCTETS_MAX / 2;

impl Control<'_> {
    /// The part of the channels whose numbers on this station are above `after`, in order.
    pub(super) fn channels(&self, snapshot: &Snapshot, after: ChannelId) -> Reply {
        let all = self.sessions.iter().flat_map(|session| &session.channels);
        let mut rest: Vec<&Owned> = all.filter(|owned| owned.channel > after).collect();
        rest.sort_unstable_by_key(|owned| owned.channel);
        part(rest.into_iter().map(|owned| (owned.channel, info(owned, snapshot))))
    }
}

/// As many of the channels as one part holds, at least one, and the number of the last if more follow.
fn part(channels: impl Iterator<Item = (ChannelId, ChannelInfo)>) -> Reply {
    let (mut taken, mut octets, mut last) = (Vec::new(), 0, ChannelId::NONE);
    for (number, info) in channels {
        octets += serde_json::to_vec(&info).map_or(0, |json| json.len() + 1);
        if octets > PART_OCTETS && !taken.is_empty() {
            return Reply::Channels { channels: taken, next: Some(last) };
        }
        taken.push(info);
        last = number;
    }
    Reply::Channels { channels: taken, next: None }
}

pub(super) fn info(owned: &Owned, snapshot: &Snapshot) -> ChannelInfo {
    // Of a channel across segments no segment counts the units, and its board does.
    let on_board = |board: &rota_shm::Board| {
        if owned.sending { board.units_sent() } else { board.tally().units }
    };
    let units = snapshot.units_of(owned.shared, owned.sending);
    ChannelInfo {
        channel: owned.shared,
        label: owned.label,
        name: owned.name.clone(),
        sending: owned.sending,
        peer_node_id: known_node(owned, snapshot),
        peer_station: snapshot.number_of(owned.peer.hop),
        peer_mac: owned.peer.hop.to_string(),
        peer_name: owned.peer.name.clone(),
        service: owned.service,
        state: match (owned.closing, owned.told) {
            (true, _) => "closing",
            (false, true) => "open",
            (false, false) => "opening",
        }
        .into(),
        contract: owned.granted,
        units: units.or(owned.board.as_ref().map(on_board)).unwrap_or(0),
        tally: owned.board.as_ref().map(rota_shm::Board::tally).unwrap_or_default().into(),
    }
}

/// The node of the peer, which may have announced itself only since the channel was opened.
fn known_node(owned: &Owned, snapshot: &Snapshot) -> NodeId {
    let at_opening = owned.peer.node_id;
    if at_opening.is_known() { at_opening } else { snapshot.node_of(owned.peer.hop) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_contract::{AskedTerms, Granted, TrafficSpec};
    use rota_shm::control::{NAME_OCTETS_MAX, Request};
    use rota_units::Span;

    fn named(number: u64, name: &str) -> (ChannelId, ChannelInfo) {
        let number = ChannelId(number);
        let info = ChannelInfo {
            channel: number,
            label: 1,
            name: Some(name.into()),
            sending: true,
            peer_node_id: rota_contract::NodeId(2),
            peer_station: 2,
            peer_mac: "02:00:00:00:00:02".into(),
            peer_name: "n2".into(),
            service: 7,
            state: "open".into(),
            contract: Granted::default(),
            units: 3,
            tally: rota_contract::Tally::default().into(),
        };
        (number, info)
    }

    /// A name of 65,200 octets once made the list too long for a message, and ended each session that asked.
    #[test]
    fn two_hundred_and_twenty_channels_with_the_longest_names_come_in_parts_that_fit() {
        // JSON takes six octets for this one.
        let name = "\u{1}".repeat(NAME_OCTETS_MAX);
        let (mut heard, mut after, mut parts) = (Vec::new(), ChannelId::NONE, 0);
        loop {
            let rest = (1..=220).filter(|number| *number > after.0).map(|number| named(number, &name));
            let reply = part(rest);
            assert!(serde_json::to_vec(&reply).unwrap().len() <= MESSAGE_OCTETS_MAX);
            let Reply::Channels { channels, next } = reply else { panic!("{reply:?}") };
            heard.extend(channels.iter().map(|info| info.channel.0));
            parts += 1;
            match next {
                Some(next) => after = next,
                None => break,
            }
        }
        assert_eq!(heard, (1..=220).collect::<Vec<u64>>());
        assert!((2..=12).contains(&parts), "{parts}");
        assert_eq!(part(std::iter::empty()), Reply::Channels { channels: Vec::new(), next: None });
    }

    #[test]
    fn a_name_has_255_octets_at_most() {
        let open = |octets| Request::Open {
            to: "n2".into(),
            service: 7,
            traffic: TrafficSpec::fixed(100, Span::from_nanos(1), true),
            terms: AskedTerms::default(),
            buffers: 4,
            name: Some("x".repeat(octets)),
            before: 0,
            probe: false,
            answers: None,
        };
        assert_eq!(open(255).check(), Ok(()));
        let said = open(256).check().unwrap_err().to_string();
        assert_eq!(said, "the channel's name has 256 octets where 255 are allowed");
    }
}
