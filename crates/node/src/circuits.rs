//! Ends of circuits: between the memory that programs map and the machines of the node.
//!
//! A sender's parts are copied from its ring into the machine as its window allows. A receiver's TPDUs are
//! copied into its cells as they come in sequence, and are taken in the machine when its program says so: the
//! sender is told what the program has, not what the node has.

use crate::commands::Remains;
use crate::ledger::Charge;
use crate::waker::{Sleeper, Wakes};
use rota_contract::FlowName;
use rota_proto::Node;
use rota_proto::circuits::{CircuitEvent, CircuitId, CircuitRequest, CircuitView, Listening, Loss};
use rota_proto::vc::End;
use rota_shm::control::CircuitInfo;
use rota_shm::{
    Board, CellWriter, CircuitEnd, CircuitState, Hostile, PART_FINISH, PART_LAST, TxReader, WaitingUnit,
};
use rota_units::Instant;
use rota_wire::{FlowControl, Terms};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// To the data thread, about circuits.
pub(crate) enum CircuitCommand {
    Listen {
        ask: u64,
        listening: Listening,
    },
    Unlisten {
        service: u32,
    },
    Open {
        ask: u64,
        to: String,
        request: CircuitRequest,
    },
    /// A program has accepted it.
    Accept {
        circuit: CircuitId,
    },
    /// A program has looked at it, and does not take it.
    Decline {
        circuit: CircuitId,
        reason: u32,
    },
    /// Its program has mapped its memory.
    Attach {
        circuit: CircuitId,
        memory: Box<CircuitMemory>,
    },
    /// Its program is gone, or has let it go.
    Release {
        circuit: CircuitId,
    },
    List {
        ask: u64,
    },
}

/// To the control thread, about circuits.
pub(crate) enum CircuitNote {
    Listening {
        ask: u64,
        result: Result<(), String>,
    },
    Asked {
        ask: u64,
        result: Result<CircuitId, rota_proto::CircuitOpenError>,
    },
    Opened {
        circuit: CircuitId,
        terms: Terms,
        name: u64,
    },
    Offered {
        circuit: CircuitId,
        from: String,
        terms: Terms,
        name: u64,
    },
    /// One whose program has no memory of it yet.
    Ended {
        circuit: CircuitId,
        end: CircuitEnd,
    },
    /// Its program wrote something impossible: it is released already.
    Hostile {
        circuit: CircuitId,
        why: String,
    },
    Listed {
        ask: u64,
        all: Vec<CircuitInfo>,
    },
}

/// The memory of one end.
pub(crate) struct CircuitMemory {
    pub(crate) ring: CircuitRing,
    pub(crate) board: Board,
    /// It has the bell.
    pub(crate) sleeper: Arc<Sleeper>,
    pub(crate) doorbell: OwnedFd,
    /// Its drop gives the octets back to their user.
    pub(crate) _charge: Option<Charge>,
}

/// The ring of one end.
pub(crate) enum CircuitRing {
    Source(TxReader),
    Sink(CellWriter),
}

/// One end that a program has.
struct Circuit {
    id: CircuitId,
    memory: Box<CircuitMemory>,
    /// What the poller calls its doorbell.
    token: u64,
    /// There may be something to do.
    waits: bool,
    /// The sender's part that the machine has taken up to here.
    part: Option<(WaitingUnit, usize)>,
    /// Parts that the machine knows to be taken.
    taken: u64,
    end: Option<CircuitEnd>,
    /// What its board says of counts: the machine of a lost port has none any more.
    counts: CircuitState,
    changed: bool,
    armed: u64,
}

/// All of them.
pub(crate) struct Circuits {
    all: Vec<Circuit>,
    /// Those that ended while no program had their memory.
    over: Vec<(CircuitId, CircuitEnd)>,
    part: Box<[u8]>,
    next: usize,
}

/// Octets that a turn copies for circuits: well below 200 µs, which the token may wait.
const OCTETS_A_TURN: usize = 131_072;
/// Ends that wait for their programs' memory: as many as there are connections, and some on their way.
const OVER_MAX: usize = 2_048;
/// What the machine's work for a part, or for one that was taken, counts beside its octets.
const OCTETS_A_PART: usize = 1_024;
/// No part is longer.
const PART_MAX: usize = 16_384;

pub(crate) const fn flow_name(flow: FlowControl) -> FlowName {
    match flow {
        FlowControl::Open => FlowName::Open,
        FlowControl::Window => FlowName::Window,
        FlowControl::Bucket => FlowName::Bucket,
        FlowControl::PacketPair => FlowName::PacketPair,
    }
}

pub(crate) fn end_of(end: End) -> CircuitEnd {
    match end {
        End::Finished { .. } => CircuitEnd::Finished,
        End::Stopped { .. } => CircuitEnd::Stopped,
        End::Refused(why) => CircuitEnd::Refused(why),
        End::Reset(why) => CircuitEnd::Reset(why),
        End::Declined(reason) => CircuitEnd::Declined(reason),
        End::NoAnswer => CircuitEnd::NoAnswer,
        End::Silent => CircuitEnd::Silent,
        End::Aborted => CircuitEnd::Aborted,
        End::Violated => CircuitEnd::Violated,
    }
}

const fn loss_of(why: Loss) -> CircuitEnd {
    match why {
        Loss::PortGone => CircuitEnd::PortGone,
        Loss::NodeStopped => CircuitEnd::NodeStopped,
        Loss::NodeDied => CircuitEnd::NodeDied,
    }
}

impl Circuits {
    pub(crate) fn new() -> Self {
        let (all, over) = (Vec::with_capacity(128), Vec::with_capacity(OVER_MAX));
        Self { all, over, part: vec![0; PART_MAX].into(), next: 0 }
    }

    /// Its doorbell is watched already. Of one that is not in the machine, and of whose end nothing is known,
    /// nothing would ever be heard: its program is told that it was given up.
    pub(crate) fn attach(&mut self, id: CircuitId, token: u64, memory: Box<CircuitMemory>, is_there: bool) {
        let end = self.over.iter().position(|(over, _)| *over == id);
        let end = end.map(|at| self.over.remove(at).1);
        let end = end.or((!is_there).then_some(CircuitEnd::Aborted));
        let (part, taken, armed, counts) = (None, 0, 0, CircuitState::default());
        self.all.push(Circuit {
            id,
            memory,
            token,
            waits: true,
            part,
            taken,
            end,
            counts,
            changed: true,
            armed,
        });
    }

    /// Its program cannot be served: it is told so on its board, which it has until the control thread
    /// releases it.
    pub(crate) fn give_up(&mut self, at: Instant, id: CircuitId, node: &mut Node) {
        if let Some(circuit) = self.all.iter_mut().find(|circuit| circuit.id == id) {
            (circuit.waits, circuit.changed, circuit.end) = (false, true, Some(CircuitEnd::Hostile));
        }
        node.circuit_release(at, id);
    }

    /// Its memory, to be let go.
    pub(crate) fn detach(&mut self, id: CircuitId, ignore: impl FnOnce(BorrowedFd<'_>)) -> Option<Remains> {
        self.over.retain(|(over, _)| *over != id);
        let at = self.all.iter().position(|circuit| circuit.id == id)?;
        let Circuit { memory, .. } = self.all.swap_remove(at);
        ignore(memory.doorbell.as_fd());
        Some(Remains::Circuit(memory))
    }

    /// The machine's event about a circuit; what the control thread is to hear of it.
    pub(crate) fn on_event(&mut self, event: CircuitEvent, node: &mut Node) -> Option<CircuitNote> {
        let name = |node: &Node, circuit| node.circuit(circuit).map_or(0, |view| view.name);
        match event {
            CircuitEvent::Opened { circuit, terms } => {
                Some(CircuitNote::Opened { circuit, terms, name: name(node, circuit) })
            }
            CircuitEvent::Offered { circuit, from, terms } => {
                let port = rota_proto::PortId(circuit.port());
                let from = node.station_name(port, from);
                Some(CircuitNote::Offered { circuit, from, terms, name: name(node, circuit) })
            }
            CircuitEvent::News { circuit } => {
                node.circuit_heard(circuit);
                self.rouse(circuit);
                None
            }
            CircuitEvent::Ended { circuit, end } => self.on_end(circuit, end_of(end)),
            CircuitEvent::Lost { circuit, why } => self.on_end(circuit, loss_of(why)),
        }
    }

    fn rouse(&mut self, id: CircuitId) {
        if let Some(circuit) = self.all.iter_mut().find(|circuit| circuit.id == id) {
            (circuit.waits, circuit.changed) = (true, true);
        }
    }

    fn on_end(&mut self, id: CircuitId, end: CircuitEnd) -> Option<CircuitNote> {
        if let Some(circuit) = self.all.iter_mut().find(|circuit| circuit.id == id) {
            // What has come is copied first: the next look does both.
            (circuit.end, circuit.waits, circuit.changed) = (Some(end), true, true);
            return None;
        }
        // More than this the control thread never leaves here: the oldest one is nobody's.
        if self.over.len() == OVER_MAX {
            self.over.remove(0);
        }
        self.over.push((id, end));
        Some(CircuitNote::Ended { circuit: id, end })
    }

    /// Serves the circuits whose doorbell rang or of which there is news, up to the budget of a turn, one
    /// after the other. False if none waited.
    pub(crate) fn look(
        &mut self,
        at: Instant,
        ready: &[u64],
        node: &mut Node,
        hostile: impl Fn(CircuitId, Hostile),
    ) -> bool {
        let (mut waited, mut left) = (false, OCTETS_A_TURN);
        for circuit in &mut self.all {
            circuit.waits |= ready.contains(&circuit.token);
        }
        for turn in 0..self.all.len() {
            let place = (self.next + turn) % self.all.len();
            let circuit = &mut self.all[place];
            if !circuit.waits {
                continue;
            }
            if left == 0 {
                self.next = place;
                return true;
            }
            waited = true;
            match circuit.serve(at, node, &mut self.part, &mut left) {
                Ok(is_done) => circuit.waits = !is_done,
                Err(why) => {
                    (circuit.waits, circuit.changed, circuit.end) = (false, true, Some(CircuitEnd::Hostile));
                    node.circuit_release(at, circuit.id);
                    hostile(circuit.id, why);
                }
            }
        }
        waited
    }

    /// True if circuits wait for the next turn.
    pub(crate) fn has_more(&self) -> bool {
        self.all.iter().any(|circuit| circuit.waits)
    }

    /// Programs are told once a turn, however much has happened.
    pub(crate) fn wake(&mut self, node: &Node, wakes: &mut Wakes) {
        for circuit in self.all.iter_mut().filter(|circuit| circuit.changed) {
            // An end that waits for what has come is told in a later turn.
            circuit.changed = circuit.end.is_some() && circuit.waits;
            circuit.tell(node.circuit(circuit.id));
            wakes.notify(&circuit.memory.sleeper);
            let armed = circuit.memory.ring.armed();
            if armed != circuit.armed {
                circuit.armed = armed;
                circuit.memory.sleeper.ring();
            }
        }
    }
}

impl CircuitRing {
    fn armed(&mut self) -> u64 {
        match self {
            Self::Source(ring) => ring.armed(),
            Self::Sink(ring) => ring.armed(),
        }
    }
}

impl Circuit {
    /// Carries what can be carried; true if nothing is left to do until there is news.
    fn serve(
        &mut self,
        at: Instant,
        node: &mut Node,
        room: &mut [u8],
        left: &mut usize,
    ) -> Result<bool, Hostile> {
        match &mut self.memory.ring {
            CircuitRing::Source(ring) => loop {
                if *left == 0 {
                    return Ok(false);
                }
                let (unit, offset) = match self.part.take() {
                    Some(part) => part,
                    None => match ring.show()? {
                        Some(unit) => (unit, 0),
                        None => return Ok(true),
                    },
                };
                if unit.route & PART_FINISH != 0 {
                    // A last message without an end stays so, and its program is told at the end of it.
                    let _ = node.circuit_close(at, self.id);
                    ring.release(&unit);
                    self.changed = true;
                    continue;
                }
                let octets = &mut room[..unit.octets as usize - offset];
                if !ring.copy(&unit, offset as u32, octets) {
                    return Err(Hostile::Sequence { found: 0, expected: unit.number });
                }
                let ends = unit.route & PART_LAST != 0;
                let written = node.circuit_write(at, self.id, octets, ends);
                *left = left.saturating_sub(written.octets + OCTETS_A_PART);
                if written.octets < octets.len() || ends && !written.ended {
                    self.part = Some((unit, offset + written.octets));
                    return Ok(true);
                }
                ring.release(&unit);
                self.changed = true;
            },
            CircuitRing::Sink(ring) => {
                let said = ring.taken()?;
                let more = (said - self.taken).min((*left / OCTETS_A_PART) as u64 + 1);
                if more > 0 {
                    node.circuit_take(at, self.id, more);
                    self.taken += more;
                    *left = left.saturating_sub(more as usize * OCTETS_A_PART);
                }
                if self.taken < said {
                    return Ok(false);
                }
                let taken = said;
                while let Some((piece, data)) = node.circuit_peek(self.id, ring.written() - taken) {
                    if *left == 0 {
                        return Ok(false);
                    }
                    // Behind a gap nothing is shown before all in front of it was taken.
                    let lost = if ring.written() == taken { node.circuit_gap(self.id) } else { 0 };
                    if !ring.push(data, piece.last, lost) {
                        break;
                    }
                    *left = left.saturating_sub(data.len() + OCTETS_A_PART);
                    self.changed = true;
                }
                Ok(true)
            }
        }
    }

    /// Writes its state on its board.
    fn tell(&mut self, view: Option<CircuitView>) {
        let counts = |counts: rota_proto::vc::Counts| (counts.tpdus, counts.messages);
        if let Some(view) = view {
            self.counts.own = counts(view.counts);
            self.counts.taken = counts(view.taken);
            self.counts.lost = (view.lost.tpdus + view.lost.dropped, view.lost.messages);
        }
        // The end is told behind all that has come.
        self.counts.end = self.end.filter(|_| !self.waits);
        self.memory.board.set_circuit(&self.counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_proto::circuits::EndRole;
    use rota_proto::vc::{Counts, Losses, Standing};
    use rota_shm::{CircuitShape, NodeCircuitSource, open_circuit_source};
    use rota_wire::{MacAddr, Quality};

    const ID: CircuitId = CircuitId(5);

    fn view() -> CircuitView {
        let (source, serial, from, service, window, tpdu) = (1, 1, 1, 7, 4, 100);
        let terms = Terms { source, serial, from, service, window, tpdu, quality: Quality::RELIABLE };
        let (role, peer, flow) = (EndRole::Sender, MacAddr([2; 6]), FlowControl::Window);
        let counts = Counts { tpdus: 9, messages: 4 };
        let taken = Counts { tpdus: 6, messages: 3 };
        let lost = Losses { tpdus: 1, dropped: 1, messages: 1 };
        let (circuit, name, again, bad, standing) = (ID, 1, 0, 0, Standing::default());
        CircuitView { circuit, role, peer, name, terms, counts, taken, again, lost, flow, bad, standing }
    }

    /// `rota pipe` said that 0 TPDUs were certainly taken.
    #[test]
    fn the_counts_of_a_circuit_stay_when_its_port_is_lost() {
        let memory = NodeCircuitSource::create(CircuitShape { parts: 4, octets: 100 }).expect("memory");
        let files = memory.descriptors();
        let files = files.iter().map(|fd| fd.try_clone_to_owned().expect("a copy")).collect();
        let program = open_circuit_source(files).expect("the client's side");
        let NodeCircuitSource { source, bell, .. } = memory;
        let waker = crate::waker::Waker::new().expect("an eventfd");
        let sleeper = waker.sleeper(source.board.clone(), Some(bell));
        let (ring, board, doorbell) = (CircuitRing::Source(source.ring), source.board, source.doorbell);
        let memory = Box::new(CircuitMemory { ring, board, sleeper, doorbell, _charge: None });
        let mut circuits = Circuits::new();
        circuits.attach(ID, 1, memory, true);
        circuits.all[0].tell(Some(view()));
        let alive = CircuitState { end: None, own: (9, 4), taken: (6, 3), lost: (2, 1) };
        assert_eq!(program.source.board.circuit(), alive);
        assert!(circuits.on_end(ID, loss_of(Loss::PortGone)).is_none());
        circuits.all[0].waits = false;
        circuits.all[0].tell(None);
        let lost = CircuitState { end: Some(CircuitEnd::PortGone), ..alive };
        assert_eq!(program.source.board.circuit(), lost);
    }

    #[test]
    fn ends_that_nobody_fetches_take_no_more_room_than_they_were_given() {
        let mut circuits = Circuits::new();
        let room = circuits.over.capacity();
        for number in 0..3 * OVER_MAX as u64 {
            circuits.on_end(CircuitId(number), CircuitEnd::Silent);
        }
        assert_eq!((circuits.over.len(), circuits.over.capacity()), (OVER_MAX, room));
        let newest = CircuitId(3 * OVER_MAX as u64 - 1);
        assert!(circuits.over.iter().any(|(over, _)| *over == newest));
        assert!(circuits.detach(newest, |_| {}).is_none());
        assert_eq!(circuits.over.len(), OVER_MAX - 1);
    }
}
