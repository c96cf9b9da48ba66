//! Circuits of a node: each goes over the port on whose segment the station of the other node is. A service
//! is listened to on all ports.

use super::{Line, Node};
use crate::channels::RequestError;
use crate::circuits::{
    CircuitError, CircuitEvent, CircuitId, CircuitRequest, CircuitView, Circuits, Listening,
};
use crate::io::PortId;
use crate::node::NotFound;
use crate::vc::{Piece, Unfinished, Written};
use rota_units::Instant;
use rota_wire::MacAddr;

/// Why a circuit cannot be asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CircuitOpenError {
    /// No station of that name, number or address is there.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// The circuit itself.
    #[error(transparent)]
    Circuit(#[from] CircuitError),
}

impl From<RequestError> for CircuitOpenError {
    fn from(error: RequestError) -> Self {
        Self::NotFound(error.into())
    }
}

impl Node {
    /// Takes circuits of a service, on each port. [`CircuitEvent::Offered`] tells of them.
    ///
    /// # Errors
    /// [`CircuitError`]; then no port listens. A port without circuits, as that of a tunnel, is left out.
    pub fn circuit_listen(&mut self, now: Instant, listening: &Listening) -> Result<(), CircuitError> {
        self.assert_drained();
        let has_any = self.lines.iter().any(|line| line.circuits.has_any());
        for at in 0..self.lines.len() {
            if has_any && !self.lines[at].circuits.has_any() {
                continue;
            }
            if let Err(error) = self.lines[at].circuits.listen(listening) {
                for line in self.lines[..at].iter_mut().filter(|line| line.circuits.has_any()) {
                    line.tell_circuits(now, |circuits| circuits.unlisten(now, listening.service));
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Takes no more circuits of it, and gives up those that nobody has accepted.
    pub fn circuit_unlisten(&mut self, now: Instant, service: u32) {
        self.assert_drained();
        let lines = self.lines.iter_mut();
        lines.for_each(|line| line.tell_circuits(now, |circuits| circuits.unlisten(now, service)));
    }

    /// A program accepts a circuit that was offered; false if it is not there any more.
    pub fn circuit_accept(&mut self, circuit: CircuitId) -> bool {
        self.line_of_circuit(circuit).is_some_and(|line| line.circuits.accept(circuit))
    }

    /// A program does not take a circuit that was offered: its sender is told why, and nothing more is heard
    /// of it here.
    pub fn circuit_decline(&mut self, now: Instant, circuit: CircuitId, reason: u32) {
        if let Some(line) = self.line_of_circuit(circuit) {
            line.tell_circuits(now, |circuits| circuits.decline(now, circuit, reason));
        }
    }

    /// Asks the node of the station of that name, number or address for a circuit; the outcome comes as an
    /// event.
    ///
    /// # Errors
    /// [`CircuitOpenError`], without asking anybody.
    pub fn circuit_open(
        &mut self,
        now: Instant,
        to: &str,
        request: &CircuitRequest,
    ) -> Result<CircuitId, CircuitOpenError> {
        self.assert_drained();
        let way = self.find(to)?.way;
        let at = self.place(way.port).ok_or(RequestError::NoPort(way.port))?;
        let opened = self.lines[at].tell_circuits(now, |circuits| circuits.open(now, way.hop, request));
        Ok(opened?)
    }

    /// Takes what fits of the octets of a sender, and the end of its message if `end` and all fits.
    pub fn circuit_write(&mut self, now: Instant, circuit: CircuitId, octets: &[u8], end: bool) -> Written {
        let none = Written { octets: 0, ended: false };
        self.line_of_circuit(circuit).map_or(none, |line| {
            line.tell_circuits(now, |circuits| circuits.write(now, circuit, octets, end))
        })
    }

    /// The parent looks at a circuit now: [`CircuitEvent::News`] comes again for what happens from here on.
    pub fn circuit_heard(&mut self, circuit: CircuitId) {
        if let Some(line) = self.line_of_circuit(circuit) {
            line.circuits.heard(circuit);
        }
    }

    /// A TPDU that has come in sequence, so many behind the next one that the program takes.
    pub fn circuit_peek(&self, circuit: CircuitId, ahead: u64) -> Option<(Piece, &[u8])> {
        self.circuits_at(PortId(circuit.port()))?.peek(circuit, ahead)
    }

    /// TPDUs that are lost in front of what [`Self::circuit_peek`] shows with nothing ahead of it.
    pub fn circuit_gap(&self, circuit: CircuitId) -> u64 {
        self.circuits_at(PortId(circuit.port())).map_or(0, |circuits| circuits.gap(circuit))
    }

    /// The program has taken so many TPDUs; false where there were not as many.
    pub fn circuit_take(&mut self, now: Instant, circuit: CircuitId, tpdus: u64) -> bool {
        self.line_of_circuit(circuit)
            .is_some_and(|line| line.tell_circuits(now, |circuits| circuits.take(now, circuit, tpdus)))
    }

    /// The sender's program writes no more, or the receiver's wants no more: the circuit ends in order.
    ///
    /// # Errors
    /// The end of the sender's last message is missing.
    pub fn circuit_close(&mut self, now: Instant, circuit: CircuitId) -> Result<(), Unfinished> {
        self.line_of_circuit(circuit)
            .map_or(Ok(()), |line| line.tell_circuits(now, |circuits| circuits.close(now, circuit)))
    }

    /// Its program has let it go, or has died: what has not ended in order is given up, and the other end is
    /// told. Nothing more is heard of it here.
    pub fn circuit_release(&mut self, now: Instant, circuit: CircuitId) {
        if let Some(line) = self.line_of_circuit(circuit) {
            line.tell_circuits(now, |circuits| circuits.release(now, circuit));
        }
    }

    /// The next event of a circuit, after [`crate::Output::Event`]: take events until there are none.
    pub fn next_circuit_event(&mut self) -> Option<CircuitEvent> {
        let lost = self.lost_circuits.pop_front();
        lost.or_else(|| self.lines.iter_mut().find_map(|line| line.circuits.next_event()))
    }

    /// The circuits of a port, to look at; none where it is gone.
    pub fn circuits_at(&self, port: PortId) -> Option<&Circuits> {
        Some(&self.lines[self.place(port)?].circuits)
    }

    /// One circuit, to look at.
    pub fn circuit(&self, circuit: CircuitId) -> Option<CircuitView> {
        self.circuits_at(PortId(circuit.port()))?.view(circuit)
    }

    /// The name that a station of a port has announced; its address where it has announced none.
    pub fn station_name(&self, port: PortId, mac: MacAddr) -> String {
        let member = self.port_at(port).and_then(|port| port.medium().member_at(mac));
        let name = member.map(|member| member.announce.name().to_owned()).unwrap_or_default();
        if name.is_empty() { mac.to_string() } else { name }
    }

    fn line_of_circuit(&mut self, circuit: CircuitId) -> Option<&mut Line> {
        let at = self.place(PortId(circuit.port()))?;
        Some(&mut self.lines[at])
    }
}
