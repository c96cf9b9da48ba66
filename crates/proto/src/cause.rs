//! Why channels end, and the octet that tells the other station.

/// Why a channel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseCause {
    /// Its sender closed it.
    Closed,
    /// The other station fell silent: declared dead, booted anew, or off the segment.
    PeerGone,
    /// This station was declared dead by the others, or the ring was lost: the guarantee is broken.
    ReservationLost,
    /// The other side does not answer.
    NoAnswer,
    /// Nobody listens there on that service.
    NoListener,
    /// Its sender's request was refused by admission.
    Refused,
    /// The sending program ended without closing it.
    SenderDied,
    /// The receiving program ended.
    ReceiverDied,
    /// The receiving program closed its end.
    ReceiverClosed,
    /// The other station's node was stopped in good order.
    PeerStopped,
    /// Somebody else than its program ended it, by hand.
    Revoked,
    /// The listener accepts channels of another station only.
    NotForYou,
    /// The receiver's node has no memory left for the channel.
    NoMemory,
    /// This station was silent for too long, and its sender went on without it.
    WasSilent,
    /// This station's own port is gone.
    PortGone,
}

impl CloseCause {
    /// All of them; the place is the code on the wire.
    const ALL: [Self; 15] = [
        Self::Closed,
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
    ];

    pub(crate) const fn code(self) -> u8 {
        self as u8
    }

    /// A code of a later version counts as the least that it can mean: the peer has gone.
    pub(crate) fn from_code(code: u8) -> Self {
        Self::ALL.get(usize::from(code)).copied().unwrap_or(Self::PeerGone)
    }

    /// Why a sender ended a channel, in the words of its receiver.
    pub(crate) fn of_sender(code: u8) -> Self {
        match code {
            code if code == Self::PeerGone.code() => Self::WasSilent,
            code => Self::from_code(code),
        }
    }

    /// Why a receiver ends a channel that is open: it may not claim a clean end or an end of the sender's.
    pub(crate) fn of_receiver(code: u8) -> Self {
        match Self::from_code(code) {
            cause @ (Self::ReceiverDied | Self::ReceiverClosed | Self::Revoked) => cause,
            _ => Self::PeerGone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_survives_its_code() {
        for (code, cause) in (0..).zip(CloseCause::ALL) {
            assert_eq!((cause.code(), CloseCause::from_code(code)), (code, cause));
        }
        assert_eq!(CloseCause::from_code(200), CloseCause::PeerGone);
    }

    #[test]
    fn a_receiver_cannot_end_a_stream_cleanly() {
        assert_eq!(CloseCause::of_receiver(CloseCause::Closed.code()), CloseCause::PeerGone);
        assert_eq!(CloseCause::of_receiver(CloseCause::ReceiverDied.code()), CloseCause::ReceiverDied);
    }
}
