//! The memory of circuits in the data thread.

use super::*;
use crate::circuits::{CircuitCommand, CircuitMemory, CircuitRing};
use rota_proto::circuits::CircuitId;
use rota_shm::{CircuitEnd, CircuitShape, ClientCircuitSink, NodeCircuitSink, open_circuit_sink};

const CIRCUIT: CircuitId = CircuitId(99);

/// The memory of a receiver and its program's side.
fn receiver() -> (ClientCircuitSink, Box<CircuitMemory>) {
    let memory = NodeCircuitSink::create(CircuitShape { parts: 4, octets: 100 }).expect("memory");
    let files = memory.descriptors();
    let files = files.iter().map(|fd| fd.try_clone_to_owned().expect("a copy")).collect();
    let program = open_circuit_sink(files).expect("the client's side");
    let NodeCircuitSink { ring, board, doorbell, bell, .. } = memory;
    let sleeper = Waker::new().expect("an eventfd").sleeper(board.clone(), Some(bell));
    let ring = CircuitRing::Sink(ring);
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
    let (program, memory) = receiver();
    data.circuit_command(now(), CircuitCommand::Attach { circuit: CIRCUIT, memory });
    turn(&mut data);
    assert_eq!(program.board.circuit().end, Some(CircuitEnd::Aborted));
}
