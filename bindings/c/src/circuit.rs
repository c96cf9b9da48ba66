//! Reliable virtual circuits.

use std::ffi::c_int;

use rota::Span;
use rota::circuit::{CircuitError, CircuitReceiver, CircuitSender, Mark};
use rota::llc::Socket;

use crate::channel::need;
use crate::face::{
    Done, Fault, Octets, Out, Status, copy_octets, export, hand_over, octets, octets_mut, tell,
};
use crate::llc::SocketAddress;

impl From<CircuitError> for Fault {
    fn from(error: CircuitError) -> Self {
        let status = match error {
            CircuitError::Socket(error) => return error.into(),
            CircuitError::TimedOut => Status::TimedOut,
            CircuitError::Busy(_) => Status::Busy,
            CircuitError::InDoubt(_) => Status::InDoubt,
            CircuitError::TooLarge(_) => Status::TooLong,
            CircuitError::NodeGone => Status::NodeGone,
            _ => Status::Failed,
        };
        Self::new(status, error)
    }
}

/// `rota_mark`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KeptMark {
    sender: u64,
    number: u64,
}

impl From<Mark> for KeptMark {
    fn from(Mark { sender, number }: Mark) -> Self {
        Self { sender, number }
    }
}

fn read(mark: Option<&KeptMark>) -> Option<Mark> {
    mark.map(|&KeptMark { sender, number }| Mark { sender, number })
}

/// One end of a circuit.
pub enum Circuit {
    Sends(CircuitSender),
    Receives(CircuitReceiver, Vec<u8>),
}

fn sender(circuit: Option<&mut Circuit>) -> Result<&mut CircuitSender, Fault> {
    match need(circuit, "circuit")? {
        Circuit::Sends(sender) => Ok(sender),
        Circuit::Receives(..) => Err(Fault::new(Status::WrongUse, "this is the receiving end of a circuit")),
    }
}

fn receiver(circuit: Option<&mut Circuit>) -> Result<(&mut CircuitReceiver, &mut Vec<u8>), Fault> {
    match need(circuit, "circuit")? {
        Circuit::Receives(receiver, message) => Ok((receiver, message)),
        Circuit::Sends(_) => Err(Fault::new(Status::WrongUse, "this is the sending end of a circuit")),
    }
}

export! {
    /// The sending end of a circuit; takes the socket over.
    fn rota_circuit_sender(
        socket: Option<Box<Socket>>,
        to: SocketAddress,
        priority: u8,
        mark: Option<&KeptMark>,
        circuit: Out<'_, *mut Circuit>,
    ) {
        let sender = CircuitSender::new(*need(socket, "socket")?, to.into(), priority, read(mark))?;
        hand_over(circuit, Circuit::Sends(sender), "circuit")
    }

    /// The receiving end; takes the socket over.
    fn rota_circuit_receiver(
        socket: Option<Box<Socket>>,
        from: Option<&SocketAddress>,
        priority: u8,
        mark: Option<&KeptMark>,
        circuit: Out<'_, *mut Circuit>,
    ) {
        let from = from.map(|&from| from.into());
        let receiver = CircuitReceiver::new(*need(socket, "socket")?, from, priority, read(mark))?;
        hand_over(circuit, Circuit::Receives(receiver, Vec::new()), "circuit")
    }

    /// Sends a message.
    fn rota_circuit_send(circuit: Option<&mut Circuit>, message: Octets, count: usize, timeout_ns: u64) {
        let message = octets(message, count, "message")?;
        sender(circuit)?.send(message, Span::from_nanos(timeout_ns))?;
        Ok(())
    }

    /// Waits on for the message that is on its way.
    fn rota_circuit_settle(circuit: Option<&mut Circuit>, timeout_ns: u64) {
        sender(circuit)?.settle(Span::from_nanos(timeout_ns))?;
        Ok(())
    }

    /// The sender's mark.
    fn rota_circuit_mark(circuit: Option<&mut Circuit>, mark: Out<'_, KeptMark>) {
        tell(mark, sender(circuit)?.mark().into());
        Ok(())
    }

    /// Receives a message.
    fn rota_circuit_receive(
        circuit: Option<&mut Circuit>,
        buffer: *mut u8,
        count: Option<&mut usize>,
        begins: Out<'_, c_int>,
        mark: Out<'_, KeptMark>,
        timeout_ns: u64,
    ) {
        let (receiver, message) = receiver(circuit)?;
        let count = need(count, "octets")?;
        let room = octets_mut(buffer, *count, "buffer")?;
        let told = receiver.receive(message, Span::from_nanos(timeout_ns))?;
        tell(begins, c_int::from(told.begins));
        tell(mark, told.mark.into());
        *count = message.len();
        fit(message, room)
    }

    /// The program is done with the last message.
    fn rota_circuit_confirm(circuit: Option<&mut Circuit>) {
        Ok(receiver(circuit)?.0.confirm()?)
    }

    /// Ends a circuit.
    fn rota_circuit_close(circuit: Option<Box<Circuit>>, linger_ns: u64) {
        match *need(circuit, "circuit")? {
            Circuit::Sends(_) => Ok(()),
            Circuit::Receives(receiver, _) => Ok(receiver.finish(Span::from_nanos(linger_ns))?),
        }
    }
}

/// Copies a message; one that is too long is cut, and said to be.
fn fit(message: &[u8], room: &mut [u8]) -> Done {
    if !copy_octets(message, room) {
        return Ok(());
    }
    let (octets, room) = (message.len(), room.len());
    Err(Fault::new(Status::TooLong, format!("the message has {octets} octets where the buffer has {room}")))
}
