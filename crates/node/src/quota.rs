//! How much one user may take of a node. Counted by user, not by connection: a program that wants more only
//! has to connect again.

/// What one user may have at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Channels, sending and receiving, those asked for and those listened for.
    pub channels: usize,
    /// Connections: each channel and each listener of the library has one of its own, beside that of the
    /// program that asked for it.
    pub connections: usize,
    /// Octets of memory that all programs together may have mapped here: of channels and sockets.
    pub memory: u64,
    /// Octets of memory that one user may have mapped.
    pub user_memory: u64,
    /// Octets a second of payload that the channels of one user through this node may have reserved, of a
    /// user of another node, too: users count by node and number.
    pub user_reserved: u64,
    /// The highest level of the queue of ordinary traffic at which circuits of a user wait; root and the user
    /// that the node runs as have all. The levels are strict: a program at the highest one could stop all
    /// other ordinary traffic of its host.
    pub level: u8,
}

/// A command that opens a channel or receives has two; a third one is for programs that look.
const CONNECTIONS_OF_CHANNEL: usize = 3;

impl Default for Quota {
    fn default() -> Self {
        let memory = crate::ledger::default_budget();
        let (user_memory, user_reserved) = (memory / 2, u64::MAX);
        let (channels, connections) = (64, Self::connections_for(64));
        Self { channels, connections, memory, user_memory, user_reserved, level: 6 }
    }
}

impl Quota {
    /// The connections of a user who may have so many channels, unless stated; as many as without a limit of
    /// channels at least.
    pub fn connections_for(channels: usize) -> usize {
        CONNECTIONS_OF_CHANNEL * channels.max(64)
    }

    /// Why a user who has so many channels gets no more.
    ///
    /// # Errors
    /// One sentence.
    pub(crate) fn one_more_channel(&self, had: usize) -> Result<(), String> {
        limit(had, self.channels, "channels and listeners", "close one", "--user-channels")
    }

    /// Why a user who has so many connections gets no more.
    ///
    /// # Errors
    /// One sentence.
    pub(crate) fn one_more_connection(&self, had: usize) -> Result<(), String> {
        let end = "end one of the programs ('rota channel list'; a command that opens a channel or receives \
                   has two)";
        limit(had, self.connections, "connections", end, "--user-connections")
    }
}

fn limit(had: usize, most: usize, what: &str, end: &str, option: &str) -> Result<(), String> {
    if had < most {
        return Ok(());
    }
    Err(format!(
        "this user already has {had} {what} at this node, which is the limit of one user; {end}, or start \
         'rota node' with a larger {option}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_as_many_as_the_limit_says_and_no_more() {
        let quota = Quota { channels: 2, connections: 3, ..Quota::default() };
        assert_eq!([0, 1, 2, 3].map(|had| quota.one_more_channel(had).is_ok()), [true, true, false, false]);
        assert_eq!(
            [1, 2, 3, 4].map(|had| quota.one_more_connection(had).is_ok()),
            [true, true, false, false]
        );
        assert!(quota.one_more_channel(2).is_err_and(|why| why.contains("--user-channels")));
        let why = quota.one_more_connection(3).expect_err("it has three");
        assert!(why.contains("end one") && why.contains("--user-connections"), "{why}");
    }

    /// Of 128 connections 62 commands took nearly all, and the 64 channels could not be had.
    #[test]
    fn commands_can_have_all_channels_of_a_user() {
        for channels in [Quota::default().channels, 1, 200] {
            let quota = Quota { channels, connections: Quota::connections_for(channels), ..Quota::default() };
            assert!(quota.one_more_connection(2 * channels + 63).is_ok(), "{channels}");
        }
    }
}
