//! The table as people see it.

use super::{Circuit, CircuitId, Circuits, Machine};
use crate::vc::{Counts, Losses, Standing};
use rota_contract::CircuitWait;
use rota_wire::{FlowControl, MacAddr, Terms};

/// Which end of a circuit is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndRole {
    /// The one that sends.
    Sender,
    /// The one that receives.
    Receiver,
}

/// One end, to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitView {
    /// Which.
    pub circuit: CircuitId,
    /// This end.
    pub role: EndRole,
    /// The station at the other end.
    pub peer: MacAddr,
    /// The circuit's name at both ends; 0 while the other end has not told it.
    pub name: u64,
    /// The agreement, or the request until then.
    pub terms: Terms,
    /// TPDUs and messages that were written or have come.
    pub counts: Counts,
    /// Those that the receiver's program is known to have taken.
    pub taken: Counts,
    /// TPDUs that were sent again, at a receiver those that came again.
    pub again: u64,
    /// At a receiver without error control: what is lost.
    pub lost: Losses,
    /// The flow control of a sender that is in use: packet-pair may have given way to the window.
    pub flow: FlowControl,
    /// TPDUs that no sound other end sends.
    pub bad: u64,
    /// How it stands at this moment.
    pub standing: Standing,
}

impl Circuit {
    fn view(&self) -> CircuitView {
        let (role, again, bad) = match &self.machine {
            Machine::Source(source) => (EndRole::Sender, source.resent(), source.bad()),
            Machine::Sink(sink) => (EndRole::Receiver, sink.doubles(), sink.bad()),
        };
        let (lost, flow) = match &self.machine {
            Machine::Source(source) => (Losses::default(), source.flow()),
            Machine::Sink(sink) => (sink.losses(), sink.terms().quality.flow),
        };
        let mut standing = match &self.machine {
            Machine::Source(source) => source.standing(),
            Machine::Sink(sink) => sink.standing(self.offered),
        };
        if role == EndRole::Sender && self.queued.is_some() {
            standing.waits_for = CircuitWait::Turn;
        }
        let (counts, taken) = self.counts();
        let (name, terms) = (self.name(), *self.terms());
        let Self { id: circuit, peer, .. } = *self;
        CircuitView { circuit, role, peer, name, terms, counts, taken, again, lost, flow, bad, standing }
    }
}

impl Circuits {
    /// The ends that programs have or are to accept.
    pub fn ends(&self) -> impl Iterator<Item = CircuitView> {
        self.ends.iter().flatten().filter(|end| end.owned).map(|end| end.view())
    }

    /// Ends that take room, those among them that only answer what comes again.
    pub fn taken_places(&self) -> usize {
        self.ends.iter().flatten().count()
    }

    /// One end.
    pub(crate) fn view(&self, circuit: CircuitId) -> Option<CircuitView> {
        self.ends[self.place_of(circuit)?].as_ref().map(|end| end.view())
    }
}
