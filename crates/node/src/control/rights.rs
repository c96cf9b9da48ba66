//! The limits of a guest's rights: no change or end of the channels of others, no sight of their octets.

use super::Control;
use rota_contract::ChannelId;
use rota_shm::control::Request;

impl Control<'_> {
    /// True, and the program is told, where it asks for what is for another user, root or the node's user.
    pub(super) fn is_for_others(&self, at: usize, request: &Request) -> bool {
        let session = &self.sessions[at];
        let refused = match *request {
            Request::Close { channel } => self.of_another(session.user, channel, "end"),
            Request::Modify { channel, .. }
            | Request::Join { channel, .. }
            | Request::Leave { channel, .. } => self.of_another(session.user, channel, "change"),
            Request::Trace | Request::Incident { .. } => (!self.may_all(session.user)).then(|| {
                "events show what all programs of this station send: only root and the user that the node \
                 runs as may read them"
                    .to_owned()
            }),
            _ => None,
        };
        refused.is_some_and(|sentence| {
            session.error(sentence, false);
            true
        })
    }

    /// Why this user may not `verb` the channel, if it is another's.
    fn of_another(&self, user: u32, channel: ChannelId, verb: &str) -> Option<String> {
        let has = |owned: &crate::session::Owned| owned.shared == channel;
        let owners = self.sessions.iter().filter(|session| session.channels.iter().any(has));
        let owners: Vec<u32> = owners.map(|session| session.user).collect();
        let is_free = owners.is_empty() || self.may_all(user) || owners.iter().any(|of| is_same(*of, user));
        (!is_free).then(|| {
            format!(
                "channel {channel} belongs to user {}: only that user, root and the user that the node runs \
                 as may {verb} it",
                owners[0]
            )
        })
    }

    /// Root, and the user that this node runs as.
    pub(super) fn may_all(&self, user: u32) -> bool {
        user == 0 || is_same(user, self.user)
    }
}

/// Users without a number in this user namespace bear one number, and are not the same.
fn is_same(one: u32, other: u32) -> bool {
    one == other && rota_rundir::uid_is_mapped(one)
}
