//! The octet in a signal that tells the other station why a channel ends.

use rota_contract::CloseCause;

/// The cause in any signal. A code of a later version counts as the least that it can mean: the peer has
/// gone. So does a cause that only a node of this host, or RCAP, may state.
pub(crate) fn from_wire(code: u8) -> CloseCause {
    match CloseCause::from_code(u64::from(code)) {
        CloseCause::PortGone
        | CloseCause::NodeStopped
        | CloseCause::Hostile
        | CloseCause::PeerDied
        | CloseCause::TakenOut
        | CloseCause::Unknown => CloseCause::PeerGone,
        cause => cause,
    }
}

/// Why a sender ended a channel, in the words of its receiver.
pub(crate) fn of_sender(code: u8) -> CloseCause {
    match code {
        code if code == CloseCause::PeerGone.code() => CloseCause::WasSilent,
        code => from_wire(code),
    }
}

/// Why a receiver ends a channel that is open: it may not claim a clean end or an end of the sender's.
pub(crate) fn of_receiver(code: u8) -> CloseCause {
    match from_wire(code) {
        cause @ (CloseCause::ReceiverDied | CloseCause::ReceiverClosed | CloseCause::Revoked) => cause,
        _ => CloseCause::PeerGone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_cannot_state_what_only_the_own_node_knows() {
        use CloseCause::{Hostile, NodeStopped, PeerDied, PortGone, TakenOut};
        let codes = [PortGone, NodeStopped, Hostile, PeerDied, TakenOut].map(CloseCause::code);
        for code in codes.into_iter().chain([200]) {
            assert_eq!(from_wire(code), CloseCause::PeerGone);
        }
        assert_eq!(from_wire(CloseCause::WasSilent.code()), CloseCause::WasSilent);
    }

    #[test]
    fn a_receiver_cannot_end_a_stream_cleanly() {
        assert_eq!(of_receiver(CloseCause::Finished.code()), CloseCause::PeerGone);
        assert_eq!(of_receiver(CloseCause::ReceiverDied.code()), CloseCause::ReceiverDied);
    }
}
