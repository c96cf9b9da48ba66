//! The memory of circuits in the data thread.

use super::*;
use crate::circuits::{CircuitCommand, CircuitMemory, CircuitNote, CircuitRing};
use rota_proto::circuits::CircuitId;
use rota_shm::{CircuitEnd, CircuitShape, ClientCircuitSink, NodeCircuitSink, open_circuit_sink};
use std::os::fd::OwnedFd;

const CIRCUIT: CircuitId = CircuitId(99);

/// The memory of a receiver and its program's side; `doorbell` stands for its own one.
fn receiver(doorbell: Option<OwnedFd>) -> (ClientCircuitSink, Box<CircuitMemory>) {
    let memory = NodeCircuitSink::create(CircuitShape { parts: 4, octets: 100 }).expect("memory");
    let files = memory.descriptors();
    let files = files.iter().map(|fd| fd.try_clone_to_owned().expect("a copy")).collect();
    let program = open_circuit_sink(files).expect("the client's side");
    let NodeCircuitSink { ring, board, doorbell: own, bell, .. } = memory;
    let sleeper = Waker::new().expect("an eventfd").sleeper(board.clone(), Some(bell));
    let (ring, doorbell) = (CircuitRing::Sink(ring), doorbell.unwrap_or(own));
    (program, Box::new(CircuitMemory { ring, board, sleeper, doorbell, _charge: None }))
}

fn turn(data: &mut Data<Sink, NoGate>) {
    data.look_at_circuits(now(), &[]);
    data.rings.wake_receivers(&data.node);
}

/// Its program waited for ever.
#[test]
fn a_circuit_that_is_not_in_the_machine_has_ended_when_it_is_mapped() {
    let (mut data, _control) = alone();
    let (program, memory) = receiver(None);
    data.circuit_command(now(), CircuitCommand::Attach { circuit: CIRCUIT, memory });
    turn(&mut data);
    assert_eq!(program.board.circuit().end, Some(CircuitEnd::Aborted));
}

/// Nothing that its program does would be heard: it was released, and its program not told.
#[test]
fn a_program_whose_doorbell_cannot_be_watched_is_told_so() {
    let (mut data, control) = alone();
    // The kernel watches no such file.
    let file = std::fs::File::open("/proc/self/maps").expect("a file");
    let (program, memory) = receiver(Some(file.into()));
    data.circuit_command(now(), CircuitCommand::Attach { circuit: CIRCUIT, memory });
    let why = std::iter::from_fn(|| control.heard()).find_map(|note| match note {
        Note::Circuit(CircuitNote::Hostile { circuit: CIRCUIT, why }) => Some(why),
        Note::Remains(_) => panic!("its memory is gone before its program is told"),
        _ => None,
    });
    assert!(why.is_some_and(|why| why.contains("doorbell")));
    turn(&mut data);
    assert_eq!(program.board.circuit().end, Some(CircuitEnd::Hostile));
    data.circuit_command(now(), CircuitCommand::Release { circuit: CIRCUIT });
    let gone = std::iter::from_fn(|| control.heard()).any(|note| matches!(note, Note::Remains(_)));
    assert!(gone, "the control thread unmaps it");
}
