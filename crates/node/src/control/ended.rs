//! The newest channels of this station that ended early or broke their promise: their counts stay in the
//! status for a while, when no list has the channel any more.

use rota_proto::ChannelId;
use rota_units::{Instant, Span};
use std::collections::VecDeque;

/// Channels that are remembered.
const KEPT_MAX: usize = 8;
/// How long they stay in the status.
const SHOWN: Span = Span::from_millis(600_000);

/// One of them.
struct Ended {
    channel: ChannelId,
    /// Its direction, the other station and the service.
    called: String,
    /// Its counts and the cause of its end, in words.
    how: String,
    at: Instant,
}

/// Those of this station, the newest last.
#[derive(Default)]
pub(super) struct EndedChannels(VecDeque<Ended>);

impl EndedChannels {
    /// Remembers a channel.
    pub(super) fn remember(&mut self, at: Instant, channel: ChannelId, called: String, how: String) {
        if self.0.len() == KEPT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Ended { channel, called, how, at });
    }

    /// Its receiver's node has told its counts afterwards.
    pub(super) fn tell(&mut self, channel: ChannelId, how: String) {
        if let Some(ended) = self.0.iter_mut().find(|ended| ended.channel == channel) {
            ended.how = how;
        }
    }

    /// The name by which the log has called it.
    pub(super) fn called(&self, channel: ChannelId) -> String {
        let ended = self.0.iter().find(|ended| ended.channel == channel);
        ended.map_or_else(|| format!("channel {}", channel.0), |ended| ended.called.clone())
    }

    /// A note about each for the status.
    pub(super) fn notes(&self, now: Instant) -> impl Iterator<Item = String> {
        let lately = self.0.iter().filter(move |ended| now.since(ended.at) < SHOWN);
        lately.map(move |ended| {
            let seconds = now.since(ended.at).as_nanos() / 1_000_000_000;
            format!("{} ended {seconds} s ago{}", ended.called, ended.how)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_ends_are_told_for_ten_minutes_with_what_became_known_afterwards() {
        let at = |s| Instant::ZERO + Span::from_millis(1_000 * s);
        let mut ended = EndedChannels::default();
        for k in 0..9 {
            let how = format!(", {k} units: it fell silent");
            ended.remember(at(k), ChannelId(k), format!("channel {k} to n2, service 3"), how);
        }
        let notes = |ended: &EndedChannels, now| ended.notes(now).collect::<Vec<String>>();
        assert_eq!(notes(&ended, at(10)).len(), KEPT_MAX);
        assert_eq!(
            notes(&ended, at(10))[0],
            "channel 1 to n2, service 3 ended 9 s ago, 1 units: it fell silent"
        );
        ended.tell(ChannelId(8), ", 8 units: counted now".into());
        assert_eq!(
            notes(&ended, at(607)),
            ["channel 8 to n2, service 3 ended 599 s ago, 8 units: counted now"]
        );
        assert_eq!(
            (ended.called(ChannelId(8)), ended.called(ChannelId(0))),
            ("channel 8 to n2, service 3".into(), "channel 0".into())
        );
        assert_eq!(notes(&ended, at(608)), Vec::<String>::new());
    }
}
