//! A connection before it is a link: reached, under TLS, each side's key proved, each side's id said.

use super::connection::Connection;
use super::frame::Frame;
use super::neighbours::Neighbour;
use super::tls::{ALPN, key_of};
use super::why::Refusal;
use rota_contract::NodeId;
use rota_units::{Instant, Span};
use std::net::SocketAddr;

/// From the first octet's place to the far end's first frame.
pub(super) const GREETED_WITHIN: Span = Span::from_millis(2_000);

/// From addresses of no neighbour one connection in this time is let in, after a burst of so many: each costs
/// this node some arithmetic before the other side has proved anything.
const STRANGER_EVERY: Span = Span::from_millis(20);
const STRANGERS_AT_ONCE: u64 = 64;

/// How many strangers may come.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    /// When those that came would have come, had they kept the pace.
    paced: Instant,
}

impl Strangers {
    /// Counts one that comes; false for one too many.
    pub(super) fn may_come(&mut self, at: Instant) -> bool {
        let paced = self.paced.max(at);
        if paced.since(at) > STRANGER_EVERY * (STRANGERS_AT_ONCE - 1) {
            return false;
        }
        self.paced = paced + STRANGER_EVERY;
        true
    }
}

/// Whose idea the connection was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Somebody's at this address.
    Accepted { from: SocketAddr },
    /// This node's, to the neighbour of that place in the list.
    Dialled { peer: usize },
}

/// The outcome of a turn.
pub(super) enum Step {
    /// The far end has more to say.
    Waits,
    /// It is the neighbour of that place in the list.
    Known(usize),
    /// It is none, with a detail for the log.
    Refused(Refusal, String),
}

/// A connection that is no link yet.
pub(super) struct Greeting {
    pub(super) connection: Connection,
    pub(super) side: Side,
    pub(super) until: Instant,
    /// The kernel is on the way to the far end.
    pub(super) reaching: bool,
    /// The neighbour whose key was proved; this node's first frame is on its way to it.
    peer: Option<usize>,
}

impl Greeting {
    pub(super) fn new(connection: Connection, side: Side, at: Instant) -> Self {
        let reaching = matches!(side, Side::Dialled { .. });
        Self { connection, side, until: at + GREETED_WITHIN, reaching, peer: None }
    }

    /// Goes on after something has come, or could be written.
    pub(super) fn turn(&mut self, own: NodeId, neighbours: &[Neighbour]) -> Step {
        if self.reaching {
            if let Err(error) = self.connection.reached() {
                return Step::Refused(Refusal::Unreachable, error.to_string());
            }
            self.reaching = false;
        }
        match self.steps(own, neighbours) {
            Ok(step) | Err(step) => step,
        }
    }

    fn steps(&mut self, own: NodeId, neighbours: &[Neighbour]) -> Result<Step, Step> {
        let refused = |(refusal, detail)| Step::Refused(refusal, detail);
        let read = self.connection.read().map_err(|broken| refused(broken.refusal()));
        // Also after an error: TLS may have an alert to say, so that the far end learns why.
        let written = self.connection.write().map_err(|broken| refused(broken.refusal()));
        read?;
        written?;
        if self.connection.tls().is_handshaking() {
            return Ok(Step::Waits);
        }
        let peer = match self.peer {
            Some(peer) => peer,
            None => self.introduce(own, neighbours).map_err(refused)?,
        };
        let frame = self.connection.next_frame().map_err(|broken| refused(broken.refusal()))?;
        match frame {
            None => Ok(Step::Waits),
            Some(Frame::Hello { from, to }) if from == neighbours[peer].node && to == own => {
                Ok(Step::Known(peer))
            }
            Some(Frame::Hello { from, to }) => {
                Err(Step::Refused(Refusal::WrongId, format!("it says that it is {from} and means {to}")))
            }
            Some(_) => Err(Step::Refused(Refusal::Garbage, "its first frame is no hello".into())),
        }
    }

    /// The keys are proved: finds out whose the far end's is, and says who this node is.
    fn introduce(&mut self, own: NodeId, neighbours: &[Neighbour]) -> Result<usize, (Refusal, String)> {
        let tls = self.connection.tls();
        if tls.alpn_protocol() != Some(ALPN) {
            return Err((Refusal::Protocol, "it named no protocol".into()));
        }
        let key = key_of(tls).ok_or_else(|| (Refusal::NoKey, String::new()))?;
        let found = neighbours.iter().position(|neighbour| neighbour.key == key);
        let peer = found.ok_or_else(|| (Refusal::NotPinned, format!("its key is {key}")))?;
        if matches!(self.side, Side::Accepted { .. }) && neighbours[peer].node > own {
            return Err((Refusal::WrongSide, format!("its key is that of {}", neighbours[peer].node)));
        }
        self.connection.queue(&Frame::Hello { from: own, to: neighbours[peer].node });
        self.peer = Some(peer);
        self.connection.write().map_err(|broken| broken.refusal())?;
        Ok(peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_come_in_a_burst_and_then_fifty_a_second() {
        let (mut strangers, begin) = (Strangers::default(), Instant::from_nanos(7));
        let mut come =
            |ms: u64| (0..1_000).filter(|_| strangers.may_come(begin + Span::from_millis(ms))).count();
        assert_eq!([come(0), come(10), come(20), come(39), come(1_039)], [64, 0, 1, 0, 50]);
        assert_eq!(come(60_000), 64, "the burst is never larger");
    }
}
