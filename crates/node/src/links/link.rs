//! A link that is up: messages both ways, and the proof that the far end lives and reads.

use super::connection::{Broken, Connection};
use super::frame::{Frame, FrameError};
use super::why::DownCause;
use rota_units::{Instant, Span};
use std::collections::VecDeque;

/// How often each side says that it lives, and how many frames it has taken.
pub(super) const ALIVE_EVERY: Span = Span::from_millis(400);
/// And after so many frames at once: the far end has a limit for those that are on their way.
const ALIVE_AFTER: u64 = 64;
/// A far end that says nothing for so long, or takes nothing, is down.
pub(super) const LIVES_WITHIN: Span = Span::from_millis(1_500);

/// A connection to a neighbour that has proved its key.
pub(super) struct Link {
    pub(super) connection: Connection,
    /// The number of this connection among those of the neighbour.
    pub(super) epoch: u32,
    pub(super) since: Instant,
    /// When anything came last.
    heard_at: Instant,
    alive_at: Instant,
    /// So many frames this end has said to have taken.
    said: u64,
    /// Since when the far end has taken none of the frames that are on their way to it.
    stuck: Option<Instant>,
    /// The cost of each message that TLS has not taken yet.
    costs: VecDeque<usize>,
    /// More may have come than was read.
    pub(super) more: bool,
}

impl Link {
    pub(super) fn new(connection: Connection, epoch: u32, at: Instant) -> Self {
        let costs = VecDeque::new();
        // The octets behind the first frame may have been read with it.
        let more = true;
        Self { connection, epoch, since: at, heard_at: at, alive_at: at, said: 0, stuck: None, costs, more }
    }

    /// A message for the far end, and what it counts.
    pub(super) fn send(&mut self, message: Vec<u8>, cost: usize) {
        self.connection.queue(&Frame::Message(message));
        self.costs.push_back(cost);
    }

    /// Takes what has come, until `take` has no more room.
    pub(super) fn read(
        &mut self,
        at: Instant,
        mut take: impl FnMut(Vec<u8>) -> bool,
    ) -> Result<(), DownCause> {
        // Octets that were read before come first: else they would grow while there is room for a message at
        // a time.
        if !self.frames(&mut take)? {
            return Ok(());
        }
        let read = self.connection.read();
        if let Ok((came, more)) = read {
            self.more = more;
            if came {
                self.heard_at = at;
            }
        }
        // Frames that came before the end count.
        self.frames(&mut take)?;
        read.map(|_| ()).map_err(Broken::cause)
    }

    /// Takes the frames that were read; false if `take` has no more room, and the rest stays.
    fn frames(&mut self, take: &mut impl FnMut(Vec<u8>) -> bool) -> Result<bool, DownCause> {
        while let Some(frame) = self.connection.next_frame().map_err(Broken::cause)? {
            match frame {
                Frame::Message(message) => {
                    if !take(message) {
                        self.more = true;
                        return Ok(false);
                    }
                }
                Frame::Alive { heard } => {
                    if self.connection.taken(heard) {
                        self.stuck = None;
                    }
                }
                Frame::Hello { .. } => return Err(DownCause::Frame(FrameError::Kind(1))),
            }
        }
        Ok(true)
    }

    /// Writes what the socket takes. Returns what the messages counted that are on their way, and how many
    /// these are.
    pub(super) fn write(&mut self, at: Instant) -> Result<(usize, u64), DownCause> {
        let heard = self.connection.heard();
        if at >= self.alive_at || heard - self.said >= ALIVE_AFTER {
            (self.alive_at, self.said) = (at + ALIVE_EVERY, heard);
            self.connection.queue(&Frame::Alive { heard });
        }
        let messages = self.connection.write().map_err(Broken::cause)?;
        let cost = self.costs.drain(..messages.min(self.costs.len())).sum();
        self.watch(at);
        Ok((cost, messages as u64))
    }

    fn watch(&mut self, at: Instant) {
        if self.connection.awaits() {
            self.stuck = self.stuck.or(Some(at));
        }
    }

    /// Checks that the far end lives and reads.
    pub(super) fn check(&self, at: Instant) -> Result<(), DownCause> {
        if self.more {
            // It may have spoken.
            return Ok(());
        }
        if at.since(self.heard_at) >= LIVES_WITHIN {
            return Err(DownCause::Silent);
        }
        match self.stuck {
            Some(since) if at.since(since) >= LIVES_WITHIN => Err(DownCause::NotReading),
            _ => Ok(()),
        }
    }

    /// This thread did not run for a while: the far end is not to blame.
    pub(super) fn excuse(&mut self, stood: Span) {
        self.heard_at += stood;
        if let Some(since) = &mut self.stuck {
            *since += stood;
        }
    }

    /// When to call again. Octets that are not read cannot be missed.
    pub(super) fn due(&self, paused: bool) -> Instant {
        if paused {
            return self.alive_at;
        }
        let read_by = self.stuck.map_or(Instant::FAR, |since| since + LIVES_WITHIN);
        self.alive_at.min(self.heard_at + LIVES_WITHIN).min(read_by)
    }

    /// The cost of the messages that wait here.
    pub(super) fn waiting(&self) -> usize {
        self.costs.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::identity::NodeKey;
    use super::super::tls::Tls;
    use super::*;

    /// The far end was given no time to read, either.
    #[test]
    fn a_thread_that_stood_still_blames_no_far_end() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("an address");
        let key = NodeKey::drawn().expect("a key");
        let tls = Tls::new(&key, std::iter::once(key.public())).expect("a side");
        let tls = tls.dialled(to.ip(), key.public()).expect("a side");
        let connection = Connection::dialled(to, tls).expect("it is on its way");
        let (begin, stood) = (Instant::ZERO + LIVES_WITHIN, LIVES_WITHIN * 4);
        let mut link = Link::new(connection, 1, begin);
        link.more = false;
        link.write(begin).expect("the word that this end lives waits for the far end");
        assert!(link.connection.awaits());
        link.excuse(stood);
        let almost = LIVES_WITHIN.minus(Span::from_nanos(1));
        assert!(link.check(begin + stood + almost).is_ok());
        link.heard_at = begin + stood + LIVES_WITHIN;
        assert!(matches!(link.check(begin + stood + LIVES_WITHIN), Err(DownCause::NotReading)));
    }
}
