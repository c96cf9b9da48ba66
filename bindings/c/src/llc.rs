//! LLC messages: sockets, transmissions and what became of them.

use std::ffi::{c_char, c_int};
use std::os::fd::{AsFd, AsRawFd};

use rota::llc::{
    Address, Llc, LlcError, MessageOutcome, Progress, ReceivedMessage, Reservation, Socket, TransmitOptions,
};
use rota::{Contract, Span};

use crate::channel::{Refusal, control_name, need, opened};
use crate::face::values_mut;
use crate::face::{Done, Fault, Octets, Out, Status, export, hand_over, octets, octets_mut, tell, values};

impl From<LlcError> for Fault {
    fn from(error: LlcError) -> Self {
        let status = match error {
            LlcError::Node(error) => return error.into(),
            LlcError::InvalidSocket(_) => Status::InvalidSocket,
            LlcError::DuplicateSocket(_) => Status::DuplicateSocket,
            LlcError::TooManySockets(_) => Status::TooManySockets,
            LlcError::Busy(_) => Status::Busy,
            LlcError::PacketTooLarge { .. } => Status::TooLong,
            LlcError::LargerThanReserved { .. } => Status::TooLong,
            LlcError::NotReserved(error) => return opened(error, None),
            LlcError::NoStation(_) | LlcError::NotOneStation(_) => Status::NoSuchStation,
            LlcError::ReservationEnded { .. } => Status::Broken,
            LlcError::Priority(_) | LlcError::ReservedAlready(_) | LlcError::AckOnReserved => {
                Status::WrongUse
            }
            LlcError::NotAccepted(_) | LlcError::OtherSocket(_) => Status::WrongUse,
            _ => Status::Failed,
        };
        Self::new(status, error)
    }
}

/// `rota_address`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SocketAddress {
    socket: u8,
    node: u8,
}

impl From<SocketAddress> for Address {
    fn from(SocketAddress { socket, node }: SocketAddress) -> Self {
        Self { socket, node }
    }
}

/// `rota_transmit`.
#[repr(C)]
pub struct Options {
    time_ns: u64,
    priority: u8,
    ack: u8,
    tries: u8,
}

fn options(given: Option<&Options>) -> TransmitOptions {
    let from = |given: &Options| TransmitOptions {
        priority: given.priority,
        ack: given.ack != 0,
        tries: given.tries,
        time: (given.time_ns != 0).then(|| Span::from_nanos(given.time_ns)),
    };
    given.map(from).unwrap_or_default()
}

/// `rota_message`.
#[repr(C)]
pub struct Message {
    packet: *mut u8,
    octets: usize,
    address: SocketAddress,
    priority: u8,
    truncated: u8,
    reserved: u8,
}

fn transmit(socket: &mut Socket, message: &Message, options: &TransmitOptions) -> Result<u64, Fault> {
    let packet = octets(message.packet, message.octets, "packet")?;
    Ok(socket.transmit(message.address.into(), packet, options)?)
}

fn receive(socket: &mut Socket, message: &mut Message) -> Done {
    let room = octets_mut(message.packet, message.octets, "packet")?;
    let received = socket.receive(room)?.ok_or_else(Fault::idle)?;
    let ReceivedMessage { from, octets, truncated, priority, reserved, .. } = received;
    message.octets = octets;
    message.address = SocketAddress { socket: from.socket, node: from.node };
    message.priority = priority;
    message.truncated = u8::from(truncated);
    message.reserved = u8::from(reserved);
    Ok(())
}

fn none_reserved() -> Fault {
    Fault::new(Status::WrongUse, "this socket has reserved no channel to there")
}

/// Tells what admission said.
fn answered(answer: Result<&Contract, LlcError>, bound_ns: Out<'_, u64>, refusal: Out<'_, Refusal>) -> Done {
    match answer {
        Ok(contract) => tell(bound_ns, contract.bound_ns),
        Err(LlcError::NotReserved(error)) => return Err(opened(error, refusal)),
        Err(other) => return Err(other.into()),
    }
    Ok(())
}

/// Runs `each` until one has nothing to do; a fault counts only when it came first.
fn batch(count: usize, done: Out<'_, usize>, mut each: impl FnMut(usize) -> Done) -> Done {
    let mut worked = 0;
    let mut result = Ok(());
    while worked < count {
        result = each(worked);
        if result.is_err() {
            break;
        }
        worked += 1;
    }
    tell(done, worked);
    if worked > 0 { Ok(()) } else { result }
}

export! {
    /// Finds the LLC service of this station.
    fn rota_llc_connect(control: *const c_char, sockets: u16, llc: Out<'_, *mut Llc>) {
        let llc = need(llc, "llc")?;
        hand_over(Some(llc), Llc::connect(&control_name(control)?, sockets)?, "llc")
    }

    /// Ends it. Sockets that are open stay open.
    fn rota_llc_disconnect(llc: Option<Box<Llc>>) {
        need(llc, "llc").map(drop)
    }

    /// Opens a socket.
    fn rota_socket_open(llc: Option<&Llc>, sap: u8, socket: Out<'_, *mut Socket>) {
        let socket = need(socket, "socket")?;
        hand_over(Some(socket), need(llc, "llc")?.open(sap)?, "socket")
    }

    /// Closes it.
    fn rota_socket_close(socket: Option<Box<Socket>>) {
        need(socket, "socket").map(drop)
    }

    /// Reserves a channel to a socket of another station.
    fn rota_socket_reserve(
        socket: Option<&mut Socket>,
        to: SocketAddress,
        octets_max: u32,
        period_ns: u64,
        bound_ns: Out<'_, u64>,
        refusal: Out<'_, Refusal>,
    ) {
        let period = Span::from_nanos(period_ns);
        answered(need(socket, "socket")?.reserve(to.into(), octets_max, period), bound_ns, refusal)
    }

    /// Prepares a reservation, which another thread may wait for.
    fn rota_socket_reservation(
        socket: Option<&Socket>,
        to: SocketAddress,
        reservation: Out<'_, *mut Reservation>,
    ) {
        let made = need(socket, "socket")?.reservation(to.into())?;
        hand_over(reservation, made, "reservation")
    }

    /// Asks admission for its channel.
    fn rota_reservation_open(
        reservation: Option<&mut Reservation>,
        octets_max: u32,
        period_ns: u64,
        bound_ns: Out<'_, u64>,
        refusal: Out<'_, Refusal>,
    ) {
        let answer = need(reservation, "reservation")?.open(octets_max, Span::from_nanos(period_ns));
        answered(answer, bound_ns, refusal)
    }

    /// Closes its channel.
    fn rota_reservation_close(reservation: Option<Box<Reservation>>) {
        need(reservation, "reservation").map(drop)
    }

    /// Puts the socket on its channel.
    fn rota_socket_put(socket: Option<&mut Socket>, reservation: Option<Box<Reservation>>) {
        let reservation = need(reservation, "reservation")?;
        need(socket, "socket")?.put(*reservation)?;
        Ok(())
    }

    /// Takes the socket off a channel.
    fn rota_socket_take_off(
        socket: Option<&mut Socket>,
        to: SocketAddress,
        reservation: Out<'_, *mut Reservation>,
    ) {
        let out = need(reservation, "reservation")?;
        let taken = need(socket, "socket")?.take_off(to.into()).ok_or_else(none_reserved)?;
        hand_over(Some(out), taken, "reservation")
    }

    /// Closes that channel.
    fn rota_socket_release(socket: Option<&mut Socket>, to: SocketAddress) {
        need(socket, "socket")?.release(to.into()).then_some(()).ok_or_else(none_reserved)
    }

    /// Receives what comes on channels that others reserve, too.
    fn rota_socket_listen_reserved(socket: Option<&mut Socket>) {
        Ok(need(socket, "socket")?.listen_reserved()?)
    }

    /// Hands over one message.
    fn rota_socket_transmit(
        socket: Option<&mut Socket>,
        to: SocketAddress,
        packet: Octets,
        count: usize,
        given: Option<&Options>,
        number: Out<'_, u64>,
    ) {
        let packet = octets(packet, count, "packet")?;
        tell(number, need(socket, "socket")?.transmit(to.into(), packet, &options(given))?);
        Ok(())
    }

    /// Hands over many messages.
    fn rota_socket_transmit_batch(
        socket: Option<&mut Socket>,
        messages: *const Message,
        count: usize,
        given: Option<&Options>,
        done: Out<'_, usize>,
    ) {
        let (socket, options) = (need(socket, "socket")?, options(given));
        let messages = values(messages, count, "messages")?;
        batch(count, done, |at| transmit(socket, &messages[at], &options).map(|_| ()))
    }

    /// The next outcome.
    fn rota_socket_completion(socket: Option<&mut Socket>, number: Out<'_, u64>, outcome: Out<'_, c_int>) {
        let (told, what) = need(socket, "socket")?.completion().ok_or_else(Fault::idle)?;
        tell(number, told);
        tell(outcome, match what {
            MessageOutcome::Sent => 0,
            MessageOutcome::Acknowledged => 1,
            MessageOutcome::Failed(_) => 2,
            MessageOutcome::TimedOut => 3,
        });
        Ok(())
    }

    /// Where a message is.
    fn rota_socket_progress(socket: Option<&Socket>, number: u64, progress: Out<'_, c_int>) {
        tell(progress, match need(socket, "socket")?.progress(number) {
            Progress::Pending => 0,
            Progress::InProgress => 1,
            Progress::Done => 2,
        });
        Ok(())
    }

    /// Receives one message.
    fn rota_socket_receive(socket: Option<&mut Socket>, message: Option<&mut Message>) {
        receive(need(socket, "socket")?, need(message, "message")?)
    }

    /// Receives many messages.
    fn rota_socket_receive_batch(
        socket: Option<&mut Socket>,
        messages: *mut Message,
        count: usize,
        done: Out<'_, usize>,
    ) {
        let socket = need(socket, "socket")?;
        let messages = values_mut(messages, count, "messages")?;
        batch(count, done, |at| receive(socket, &mut messages[at]))
    }

    /// Takes back what has not left.
    fn rota_socket_cancel(socket: Option<&mut Socket>) {
        need(socket, "socket")?.cancel_transmit();
        Ok(())
    }

    /// Sleeps until there is something.
    fn rota_socket_wait(socket: Option<&mut Socket>, timeout_ns: u64) {
        need(socket, "socket")?.wait(rota::now() + Span::from_nanos(timeout_ns));
        Ok(())
    }
}

/// Binds the calling thread to the CPU of its node.
// SAFETY: the name is declared in rota.h and nowhere else.
#[unsafe(no_mangle)]
pub extern "C" fn rota_socket_stay_near_node(socket: Option<&Socket>) -> c_int {
    c_int::from(socket.is_some_and(Socket::stay_near_node))
}

/// This station's node address.
// SAFETY: the name is declared in rota.h and nowhere else.
#[unsafe(no_mangle)]
pub extern "C" fn rota_llc_node(llc: Option<&Llc>) -> u8 {
    llc.map_or(0, Llc::node_address)
}

/// What becomes readable when something came or ended, -1 for a null pointer.
// SAFETY: the name is declared in rota.h and nowhere else.
#[unsafe(no_mangle)]
pub extern "C" fn rota_socket_fd(socket: Option<&Socket>) -> c_int {
    socket.map_or(-1, |socket| socket.as_fd().as_raw_fd())
}

/// Whether the node lives, 0 for a null pointer.
// SAFETY: the name is declared in rota.h and nowhere else.
#[unsafe(no_mangle)]
pub extern "C" fn rota_socket_is_alive(socket: Option<&Socket>) -> c_int {
    socket.map_or(0, |socket| c_int::from(socket.is_alive()))
}
