//! Channels across segments whose path has failed: the words for it, which log, status and incidents share,
//! and the channels for which another path is looked for now.

use rota_contract::{CloseCause, NodeId};
use rota_proto::ChannelId;

/// Why a path failed: "the path failed, since node gateway does not answer; another one is looked for".
pub(crate) fn why(cause: CloseCause, node: NodeId, name: Option<&str>) -> String {
    let node = name.map_or_else(|| node.to_string(), str::to_owned);
    format!("the path failed, since node {node} {}; another one is looked for", cause.of_node())
}

/// The channels whose path has failed.
#[derive(Default)]
pub(crate) struct Rerouting {
    /// Each with its name, and why.
    channels: Vec<(ChannelId, String, String)>,
}

impl Rerouting {
    /// The path of a channel has failed.
    pub(crate) fn begin(&mut self, channel: ChannelId, called: String, why: String) {
        self.end(channel);
        self.channels.push((channel, called, why));
    }

    /// It goes on, or has ended.
    pub(crate) fn end(&mut self, channel: ChannelId) {
        self.channels.retain(|(of, ..)| *of != channel);
    }

    /// A note about each for the status.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        self.channels.iter().map(|(_, called, why)| format!("{called}: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_path_is_named_until_the_channel_goes_on_or_ends() {
        let mut rerouting = Rerouting::default();
        let said = why(CloseCause::PeerGone, NodeId(7), Some("gw1"));
        assert_eq!(said, "the path failed, since node gw1 does not answer; another one is looked for");
        let unknown = why(CloseCause::PeerStopped, NodeId(7), None);
        assert!(unknown.contains(&format!("node {} was stopped", NodeId(7))), "{unknown}");
        for _ in 0..2 {
            rerouting.begin(ChannelId(1), "channel 1 to n4, service 7".into(), said.clone());
        }
        assert_eq!(rerouting.notes().collect::<Vec<_>>(), [format!("channel 1 to n4, service 7: {said}")]);
        rerouting.end(ChannelId(1));
        assert_eq!(rerouting.notes().count(), 0);
    }
}
