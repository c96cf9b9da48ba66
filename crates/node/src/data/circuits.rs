//! Circuits: the commands of the control thread, and the events of the machines.

use super::Data;
use crate::circuits::{CircuitCommand, CircuitNote, flow_name};
use crate::commands::Note;
use crate::gate::Egress;
use rota_driver::device::FrameDevice;
use rota_proto::PortId;
use rota_proto::circuits::{CircuitView, EndRole};
use rota_proto::vc::Standing;
use rota_shm::control::{CircuitInfo, CircuitNow};
use rota_units::Instant;

impl<D: FrameDevice, G: Egress> Data<D, G> {
    pub(super) fn circuit_command(&mut self, at: Instant, command: CircuitCommand) {
        match command {
            CircuitCommand::Listen { ask, listening } => {
                let result = self.node.circuit_listen(at, &listening).map_err(|error| error.to_string());
                self.note(CircuitNote::Listening { ask, result });
            }
            CircuitCommand::Unlisten { service } => self.node.circuit_unlisten(at, service),
            CircuitCommand::Open { ask, to, request } => {
                let result = self.node.circuit_open(at, &to, &request);
                self.note(CircuitNote::Asked { ask, result });
            }
            // One that has ended meanwhile tells so when it is attached.
            CircuitCommand::Accept { circuit } => _ = self.node.circuit_accept(circuit),
            CircuitCommand::Decline { circuit, reason } => self.node.circuit_decline(at, circuit, reason),
            CircuitCommand::Attach { circuit, memory } => {
                let (token, watched) = self.waits.doorbell(&memory.doorbell);
                let is_there = self.node.circuit(circuit).is_some();
                self.rings.circuits.attach(circuit, token, memory, is_there);
                if let Err(error) = watched {
                    self.rings.circuits.give_up(at, circuit, &mut self.node);
                    let why = format!("its doorbell cannot be waited on: {error}");
                    self.note(CircuitNote::Hostile { circuit, why });
                }
            }
            CircuitCommand::Release { circuit } => {
                self.node.circuit_release(at, circuit);
                if let Some(remains) = self.rings.circuits.detach(circuit, |fd| self.waits.remove(fd)) {
                    self.control.say(Note::Remains(remains));
                }
            }
            CircuitCommand::List { ask } => {
                let all = self.ways.iter().filter_map(|way| {
                    let circuits = self.node.circuits_at(way.port)?;
                    Some(circuits.ends().map(|view| self.circuit_info(way.port, &way.interface, &view)))
                });
                let all = all.flatten().collect();
                self.note(CircuitNote::Listed { ask, all });
            }
        }
    }

    fn note(&self, note: CircuitNote) {
        self.control.say(Note::Circuit(note));
    }

    fn circuit_info(&self, port: PortId, interface: &str, view: &CircuitView) -> CircuitInfo {
        let CircuitView { terms, counts, taken, .. } = view;
        let Standing { stage, waits_for, window, flying, octets } = view.standing;
        CircuitInfo {
            circuit: view.name,
            sends: view.role == EndRole::Sender,
            peer: self.node.station_name(port, view.peer),
            port: interface.to_owned(),
            service: terms.service,
            window: terms.window,
            octets: u32::from(terms.tpdu),
            error_control: terms.quality.error_control,
            stream: terms.quality.stream,
            flow: flow_name(view.flow),
            tpdus: counts.tpdus,
            tpdus_taken: taken.tpdus,
            messages: counts.messages,
            messages_taken: taken.messages,
            again: view.again,
            tpdus_lost: view.lost.tpdus + view.lost.dropped,
            messages_lost: view.lost.messages,
            bad: view.bad,
            now: CircuitNow { stage, waits_for, window, flying, octets },
            channel: None,
        }
    }

    pub(super) fn circuit_events(&mut self) {
        while let Some(event) = self.node.next_circuit_event() {
            if let Some(note) = self.rings.circuits.on_event(event, &mut self.node) {
                self.note(note);
            }
        }
    }

    /// Serves the circuits whose programs or peers have done something.
    pub(super) fn look_at_circuits(&mut self, at: Instant, ready: &[u64]) -> bool {
        let control = &self.control;
        self.rings.circuits.look(at, ready, &mut self.node, |circuit, why| {
            control.say(Note::Circuit(CircuitNote::Hostile { circuit, why: why.to_string() }));
        })
    }
}
