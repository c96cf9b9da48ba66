//! How a sender stands, for people who look at it.

use super::{Source, State};
use crate::vc::Standing;
use rota_contract::{CircuitStage, CircuitWait};

impl Source {
    /// How it stands, to look at.
    pub fn standing(&self) -> Standing {
        let stage = match self.state {
            State::Opening | State::Confirming => CircuitStage::Opening,
            State::Open => CircuitStage::Open,
            State::Closing => CircuitStage::Closing,
            State::Lingering | State::Ended => CircuitStage::Ended,
        };
        let window = self.flow.window().unwrap_or(u64::from(self.terms.window));
        Standing {
            stage,
            waits_for: self.waits_for(),
            window: window as u32,
            flying: self.smart.flying() as u32,
            octets: self.seen.octets,
        }
    }

    fn waits_for(&self) -> CircuitWait {
        match self.state {
            State::Opening | State::Confirming => return CircuitWait::Answer,
            State::Lingering | State::Ended => return CircuitWait::Nothing,
            State::Open | State::Closing => {}
        }
        let (next, is_lost) = (self.smart.top() + 1, self.smart.has_lost());
        if !is_lost && next > self.outbox.ready() && !self.outbox.has_part() {
            return match (self.smart.is_idle(), self.state) {
                // It could be taken by the other program only, which has the close before it.
                (true, State::Closing) => CircuitWait::Peer,
                // Room for more than is ready is the room of what the other program has yet to take.
                (true, _) if self.blocked => CircuitWait::Room,
                (true, _) => CircuitWait::Program,
                (false, _) => CircuitWait::Acknowledgement,
            };
        }
        let is_full = self.flow.window().is_some_and(|window| self.smart.flying() >= window);
        if is_full || !is_lost && !self.smart.has_room_for(next) {
            return CircuitWait::Window;
        }
        if !is_lost && next > self.limit && self.is_answered() {
            return CircuitWait::Room;
        }
        if self.flow.is_paced() { CircuitWait::Pace } else { CircuitWait::Turn }
    }
}
