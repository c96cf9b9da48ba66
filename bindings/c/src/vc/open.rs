//! A circuit that is open: one direction, or both.

use nix::errno::Errno;
use rota::Span;
use rota::vc::{CircuitEnd, Duplex, Receiver, Sender, VcError};

use super::no::No;

/// Its ends, as far as they are open.
pub struct Open {
    pub sender: Option<Sender>,
    pub receiver: Option<Receiver>,
    /// A message that was taken and not yet handed over.
    message: Vec<u8>,
    is_whole: bool,
    /// This program reads no more.
    pub is_deaf: bool,
    pub is_stream: bool,
    /// Something was sent.
    has_sent: bool,
}

impl Open {
    pub fn new(sender: Option<Sender>, receiver: Option<Receiver>) -> Self {
        let of_sender = sender.as_ref().map(|sender| sender.terms().stream);
        let is_stream = of_sender.or(receiver.as_ref().map(|receiver| receiver.terms().stream));
        Self {
            is_stream: is_stream.unwrap_or(true),
            sender,
            receiver,
            message: Vec::new(),
            is_whole: false,
            is_deaf: false,
            has_sent: false,
        }
    }

    pub fn duplex(Duplex { sender, receiver }: Duplex) -> Self {
        Self::new(Some(sender), Some(receiver))
    }

    /// The bound of a guaranteed circuit; zero of another one.
    pub fn bound(&self) -> Span {
        let of_sender = self.sender.as_ref().and_then(Sender::carried);
        let carried = of_sender.or_else(|| self.receiver.as_ref().and_then(Receiver::carried));
        carried.map_or(Span::ZERO, |(_, bound)| bound)
    }

    /// The reason of the other program, where that did not take the circuit.
    pub fn declined(&self) -> Option<u32> {
        match self.sender.as_ref()?.end() {
            Some(CircuitEnd::Declined(reason)) => Some(reason),
            _ => None,
        }
    }

    /// The certificate of the channel that carries the circuit, which its sender has.
    pub fn certificate(&self) -> Result<String, No> {
        let certificate = self.sender.as_ref().and_then(Sender::certificate);
        let none = || {
            No::fixed(
                Errno::EOPNOTSUPP,
                "no channel carries this circuit, or this end receives: the sender of a guaranteed circuit \
                 has the certificate",
            )
        };
        certificate.ok_or_else(none)?.map_err(|error| No::new(Errno::EIO, error))
    }

    /// Octets of a TPDU at most.
    pub fn tpdu(&self) -> u32 {
        let of_sender = self.sender.as_ref().map(|sender| sender.terms().octets);
        of_sender.or(self.receiver.as_ref().map(|receiver| receiver.terms().octets)).unwrap_or(0)
    }

    /// The end that receives.
    pub fn receiver(&mut self) -> Result<&mut Receiver, No> {
        let none =
            No::fixed(Errno::ENOTCONN, "this handle does not receive: it sends only, or has shut that side");
        self.receiver.as_mut().ok_or(none)
    }

    /// The length of the next message once it is there whole; none at the end.
    pub fn next(&mut self, most: usize) -> Result<Option<usize>, No> {
        if self.is_stream {
            return Err(No::fixed(Errno::EINVAL, "this circuit carries a stream, which has no messages"));
        }
        if self.is_whole {
            return Ok(Some(self.message.len()));
        }
        let Some(receiver) = &mut self.receiver else { return deaf(self.is_deaf).map(|()| None) };
        let got = receiver.recv(&mut self.message, Span::ZERO);
        if self.message.len() > most {
            self.receiver = None;
            let why = format!(
                "a message has more than {most} octets, and its circuit was closed; \
                               ROTA_VC_MESSAGE_MAX allows larger ones"
            );
            return Err(No::new(Errno::EMSGSIZE, why));
        }
        self.is_whole = got?;
        Ok(self.is_whole.then_some(self.message.len()))
    }

    /// A message that is there whole.
    pub const fn has_message(&self) -> bool {
        self.is_whole
    }

    pub fn recv(&mut self, into: &mut [u8], most: usize) -> Result<usize, No> {
        if self.is_stream {
            let Some(receiver) = &mut self.receiver else { return deaf(self.is_deaf).map(|()| 0) };
            return Ok(receiver.read(into, Span::ZERO)?);
        }
        let Some(octets) = self.next(most)? else { return Ok(0) };
        let Some(room) = into.get_mut(..octets) else {
            let room = into.len();
            let why = format!(
                "the message has {octets} octets where the buffer has {room}; it is kept: \
                               take it with a larger buffer"
            );
            return Err(No::new(Errno::EMSGSIZE, why));
        };
        room.copy_from_slice(&self.message);
        self.is_whole = false;
        self.message = Vec::new();
        Ok(octets)
    }

    /// How many octets were taken, and whether that is all that there was to do.
    pub fn send(&mut self, octets: &[u8], more: bool) -> Result<(usize, bool), No> {
        let no_sender = No::fixed(Errno::ENOTCONN, "this end of a simplex circuit receives only");
        let sender = self.sender.as_mut().ok_or(no_sender)?;
        let written = match sender.write(octets, !more) {
            Err(VcError::Ended(end)) if is_orderly(end) => {
                return Err(No::fixed(
                    Errno::EPIPE,
                    "the circuit has ended: the other program takes no more",
                ));
            }
            other => other?,
        };
        self.has_sent |= written.octets > 0 || written.ended;
        let is_done = written.octets == octets.len() && (written.ended || more || self.is_stream);
        Ok((written.octets, is_done))
    }

    pub fn shut_sender(&mut self) -> Result<(), No> {
        let no_sender = No::fixed(Errno::ENOTCONN, "this end of a simplex circuit receives only");
        match self.sender.as_mut().ok_or(no_sender)?.shutdown() {
            Ok(true) => Ok(()),
            Ok(false) => Err(No::idle()),
            Err(VcError::Ended(end)) if is_orderly(end) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub fn shut_receiver(&mut self) {
        (self.receiver, self.is_deaf, self.is_whole) = (None, true, false);
    }

    /// A step of the end: done where the other program has taken all that was sent. A message that comes
    /// meanwhile has no reader, and its sender is told.
    pub fn close(&mut self) -> Result<(), No> {
        if self.is_whole || self.receiver.as_ref().is_some_and(Receiver::has_octets) {
            self.shut_receiver();
        }
        let Some(sender) = &mut self.sender else { return Ok(()) };
        let ended = match sender.finish(Span::ZERO) {
            // Nothing of this program is lost.
            Err(VcError::Ended(_)) if !self.has_sent => return Ok(()),
            Err(VcError::Ended(CircuitEnd::Stopped)) => return Ok(()),
            other => other,
        };
        ended.map(|_| ()).map_err(|error| match error {
            VcError::Unfinished => No::fixed(Errno::ECONNRESET, "closed within a message: it was given up"),
            error => error.into(),
        })
    }
}

const fn is_orderly(end: CircuitEnd) -> bool {
    matches!(end, CircuitEnd::Finished | CircuitEnd::Stopped)
}

/// After this program has shut the direction it reads the end.
fn deaf(is_deaf: bool) -> Result<(), No> {
    let only = No::fixed(Errno::ENOTCONN, "this end of a simplex circuit sends only");
    if is_deaf { Ok(()) } else { Err(only) }
}
