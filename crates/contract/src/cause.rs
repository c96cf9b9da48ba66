//! Why channels end.

/// Why a channel ended. The place of a cause is its code, on the wire and on the board of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseCause {
    /// The sender closed it: the stream is whole.
    Finished,
    /// The other station fell silent: declared dead, booted anew, or off the segment.
    PeerGone,
    /// The guarantee is broken: this station was silent too long, or the ring re-formed without room.
    ReservationLost,
    /// It was never open: the other side does not answer.
    NoAnswer,
    /// It was never open: no program listens there on that service.
    NoListener,
    /// It was never open: admission refused it.
    Refused,
    /// The sending program ended without closing.
    SenderDied,
    /// The receiving program ended.
    ReceiverDied,
    /// The receiving program closed its end.
    ReceiverClosed,
    /// The node of the other station was stopped in good order.
    PeerStopped,
    /// A person ended it by hand, not its program.
    Revoked,
    /// It was never open: the listener accepts channels of another station only.
    NotForYou,
    /// It was never open: the receiver's node has no memory left for it.
    NoMemory,
    /// This station was silent for too long, and the sender ended the channel.
    WasSilent,
    /// The interface of this station over which the channel went is gone.
    PortGone,
    /// The node of this station stops. It never crosses the wire.
    NodeStopped,
    /// The client wrote something impossible into its ring. It never crosses the wire.
    Hostile,
    /// The node of the sender has died, as its segment knows, and no other path can come. Of a channel across
    /// segments.
    PeerDied,
    /// The sender has taken this receiver out of a channel to several. Of a channel across segments.
    TakenOut,
    /// A code that this version does not know.
    Unknown,
}

impl CloseCause {
    /// All causes that have a code, in the order of their codes.
    pub const ALL: [Self; 19] = [
        Self::Finished,
        Self::PeerGone,
        Self::ReservationLost,
        Self::NoAnswer,
        Self::NoListener,
        Self::Refused,
        Self::SenderDied,
        Self::ReceiverDied,
        Self::ReceiverClosed,
        Self::PeerStopped,
        Self::Revoked,
        Self::NotForYou,
        Self::NoMemory,
        Self::WasSilent,
        Self::PortGone,
        Self::NodeStopped,
        Self::Hostile,
        Self::PeerDied,
        Self::TakenOut,
    ];

    /// Its code.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The cause with this code.
    pub fn from_code(code: u64) -> Self {
        let place = usize::try_from(code).ok();
        place.and_then(|place| Self::ALL.get(place).copied()).unwrap_or(Self::Unknown)
    }

    /// Whether the stream came to its intended end.
    pub fn is_clean(self) -> bool {
        matches!(self, Self::Finished | Self::TakenOut)
    }

    /// The deed of a node that ended the path of a channel, as words behind its name.
    pub fn of_node(self) -> &'static str {
        match self {
            Self::PeerGone | Self::WasSilent => "does not answer",
            Self::PeerStopped => "was stopped",
            Self::PeerDied => "died",
            Self::ReservationLost => "lost the reservation",
            Self::PortGone => "lost an interface",
            _ => "ended it",
        }
    }

    /// The cause as one sentence, for either end, with what to do next.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Finished => "the sender closed the channel",
            Self::PeerGone => {
                "the other station fell silent; see with 'rota status' whether it is back, then open the \
                 channel again"
            }
            Self::ReservationLost => {
                "the reservation was lost, because its station was silent too long or the ring re-formed \
                 without room for it; open the channel again"
            }
            Self::NoAnswer => "it was never open: the other station does not answer",
            Self::NoListener => "it was never open: nobody listens to its service there",
            Self::Refused => "it was never open: admission refused it",
            Self::SenderDied => "the sending program ended without closing the channel; start it again",
            Self::ReceiverDied => "the receiving program ended; start it again, then open the channel again",
            Self::ReceiverClosed => {
                "the receiving program closed its end; let it listen again before opening the channel \
                 again"
            }
            Self::PeerStopped => {
                "the node of the other station was stopped; start 'rota node' there, then open the \
                 channel again"
            }
            Self::Revoked => {
                "somebody ended the channel by hand, with 'rota channel close'; open it again if it is \
                 needed"
            }
            Self::NotForYou => "it was never open: the listener takes channels of another station only",
            Self::NoMemory => "it was never open: the other station's node has no memory left for it",
            Self::WasSilent => {
                "this station was silent for too long, because its node or host stood still or its link \
                 was down, and the sender ended the channel; let the program listen again before opening \
                 the channel again"
            }
            Self::PortGone => {
                "the interface of this station over which the channel went is gone; bring it back, start \
                 'rota node' anew, then open the channel again"
            }
            Self::NodeStopped => {
                "the node of this station was stopped; start 'rota node' here, then open the channel \
                 again"
            }
            Self::Hostile => {
                "the program wrote an impossible index or descriptor into its ring; use the library rota \
                 of the node's own version"
            }
            Self::PeerDied => {
                "the node of the sending station died; start 'rota node' there, then open the channel again"
            }
            Self::TakenOut => "the sender has taken this receiver out of the channel",
            Self::Unknown => {
                "the channel ended for a reason that this version does not know; update rota here"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_survives_its_code() {
        for (code, cause) in (0..).zip(CloseCause::ALL) {
            assert_eq!((cause.code(), CloseCause::from_code(u64::from(code))), (code, cause));
        }
        for code in [19, 200, u64::MAX] {
            assert_eq!(CloseCause::from_code(code), CloseCause::Unknown);
        }
        assert!(CloseCause::Finished.is_clean() && !CloseCause::SenderDied.is_clean());
    }

    /// The log said of a station without a listener that it had fallen silent.
    #[test]
    fn each_cause_has_words_of_its_own() {
        let all = CloseCause::ALL.map(CloseCause::sentence);
        for (place, sentence) in all.iter().enumerate() {
            assert!(!all[..place].contains(sentence), "{sentence}");
        }
    }
}
