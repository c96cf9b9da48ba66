//! Duplex: two simplex circuits, one in each direction.
//!
//! No frame says that two circuits belong together; both programs keep this rule. The opening program listens
//! to a service that it draws by lot, opens a circuit to the one that it wants, and sends a greeting of 28
//! octets first: eight that name the rule, the service drawn, and 16 of a token. The other program opens a
//! circuit back to that service, with eight other octets and the token first. A circuit that comes without
//! them, or says nothing for three seconds, is dropped. Of messages each greeting is one, of a stream the
//! first octets. The circuit back carries messages or a stream as the first one does, asks for its window,
//! and is held by a dynamic one. Both have error control, because a greeting that is lost makes no circuit.

use super::{CircuitListener, Flow, ListenOptions, Options, Receiver, Sender, VcError};
use crate::node::NodeError;
use crate::now;
use rota_shm::control::ControlName;
use rota_units::{Instant, Span};

const THERE: [u8; 8] = *b"rota-vc1";
const BACK: [u8; 8] = *b"rota-vc2";
const TOKEN: usize = 16;
/// Services that are drawn by lot; a program states none of them.
const LOTS: u32 = 0xc000_0000;

/// How long a circuit that came back may keep its greeting: one that says nothing holds up others.
const GREETING: Span = Span::from_millis(3_000);

/// Both directions of a duplex circuit.
pub struct Duplex {
    /// The direction away from this program.
    pub sender: Sender,
    /// The direction to it.
    pub receiver: Receiver,
}

fn failed(sentence: &str) -> VcError {
    VcError::Node(NodeError::Denied { sentence: sentence.to_owned(), wrong_use: false })
}

fn misused(sentence: &str) -> VcError {
    VcError::Node(NodeError::Denied { sentence: sentence.to_owned(), wrong_use: true })
}

impl Duplex {
    /// Opens a circuit to a service, and waits for the one back: until the other program has accepted.
    ///
    /// # Errors
    /// As [`Sender::connect`]; [`VcError::TimedOut`] where no circuit comes back in time, and
    /// [`VcError::Node`] where `options` are without error control.
    pub fn connect(
        control: &ControlName,
        to: &str,
        service: u32,
        options: &Options,
        timeout: Span,
    ) -> Result<Self, VcError> {
        if !options.error_control {
            return Err(misused(
                "a duplex circuit has error control, because each direction begins with a greeting that must \
                 arrive; without it open a simplex circuit from each side",
            ));
        }
        let give_up = now() + timeout;
        let (mut lot, mut token) = ([0; 4], [0; TOKEN]);
        let random = getrandom::fill(&mut lot).and_then(|()| getrandom::fill(&mut token));
        random.map_err(|_| failed("the system has no random numbers for a duplex circuit"))?;
        let lot = LOTS | u32::from_be_bytes(lot);
        let window = u32::try_from(options.window).unwrap_or(u32::MAX);
        let mut listener = CircuitListener::listen(control, lot, &ListenOptions { window, backlog: 2 })?;
        let mut sender = Sender::connect_within(control, to, service, options, give_up.since(now()))?;
        let mut greeting = Vec::with_capacity(THERE.len() + 4 + TOKEN);
        greeting.extend_from_slice(&THERE);
        greeting.extend_from_slice(&lot.to_be_bytes());
        greeting.extend_from_slice(&token);
        greet(&mut sender, &greeting, give_up)?;
        loop {
            // The other program may end before it answers.
            let slice = give_up.since(now()).min(Span::from_millis(100));
            match listener.accept(slice) {
                Ok(mut receiver) => {
                    let mut heard = [0; BACK.len() + TOKEN];
                    let is_whole = hear(&mut receiver, &mut heard, give_up.min(now() + GREETING)).is_ok();
                    if is_whole && heard[..BACK.len()] == BACK && heard[BACK.len()..] == token {
                        return Ok(Self { sender, receiver });
                    }
                }
                Err(VcError::TimedOut) => {}
                Err(error) => return Err(error),
            }
            if let Some(end) = sender.end() {
                return Err(VcError::Ended(end));
            }
            if now() >= give_up {
                return Err(VcError::TimedOut);
            }
        }
    }

    /// Opens the circuit back for one that a listener has accepted.
    ///
    /// # Errors
    /// [`VcError`]; one that began without the greeting is simplex, and dropped.
    pub fn answer(control: &ControlName, mut receiver: Receiver, timeout: Span) -> Result<Self, VcError> {
        if !receiver.terms().error_control {
            return Err(failed(
                "the other program opened a circuit without error control, which is no duplex one",
            ));
        }
        let give_up = now() + timeout;
        let mut heard = [0; THERE.len() + 4 + TOKEN];
        hear(&mut receiver, &mut heard, give_up)?;
        let (magic, rest) = heard.split_at(THERE.len());
        let (lot, token) = rest.split_at(4);
        let lot = lot.iter().fold(0, |lot, &octet| lot << 8 | u32::from(octet));
        if magic != THERE || lot < LOTS {
            return Err(failed(
                "the other program opened a simplex circuit, and this end wants a duplex one",
            ));
        }
        let terms = receiver.terms();
        let (window, stream) = (u64::from(terms.window), terms.stream);
        let options = Options { error_control: true, flow: Flow::Window, stream, window, level: 0 };
        let from = receiver.from().to_owned();
        let mut sender = Sender::connect_within(control, &from, lot, &options, give_up.since(now()))?;
        greet(&mut sender, &[&BACK[..], token].concat(), give_up)?;
        Ok(Self { sender, receiver })
    }
}

fn greet(sender: &mut Sender, greeting: &[u8], give_up: Instant) -> Result<(), VcError> {
    let left = give_up.since(now());
    if sender.terms().stream { sender.write_all(greeting, left) } else { sender.send(greeting, left) }
}

fn hear(receiver: &mut Receiver, mut into: &mut [u8], give_up: Instant) -> Result<(), VcError> {
    while !into.is_empty() {
        let octets = receiver.read(into, give_up.since(now()))?;
        if octets == 0 {
            return Err(failed("the circuit ended before its greeting was there"));
        }
        into = &mut into[octets..];
    }
    Ok(())
}
