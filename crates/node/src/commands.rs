//! What the control thread and the data thread say to each other. Each side has a queue and an eventfd.

use crate::circuits::{CircuitCommand, CircuitMemory, CircuitNote};
use crate::ledger::Charge;
use crate::limits::Refusals;
use crate::status::Snapshot;
use crate::waker::{Sleeper, Waker};
use nix::sys::eventfd::{EfdFlags, EventFd};
use rota_contract::{AskedChange, AskedTerms, NodeId, TrafficSpec};
use rota_proto::{ChannelEvent, ChannelId, Facing, Node, NotFound, PortId, ResizeError, Shortage};
use rota_shm::control::InvitationInfo;
use rota_shm::{Board, MessageWriter, NodeSocket, RxWriter, TxReader};
use rota_units::Instant;
use rota_wire::MacAddr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// What a channel is to be.
#[derive(Clone, Copy)]
pub(crate) struct Opening {
    pub(crate) traffic: TrafficSpec,
    /// Its average, and the delay that it bears.
    pub(crate) terms: AskedTerms,
    /// Units of the channels that it continues.
    pub(crate) before: u64,
    /// Only the contract is wanted.
    pub(crate) probe: bool,
    /// The user of the program.
    pub(crate) uid: u32,
    /// The invitation that it answers.
    pub(crate) answers: Option<InvitationInfo>,
}

/// The other end of a channel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    pub(crate) node_id: NodeId,
    /// The station of this node's segment on the way there. Its number is looked up when somebody asks: it
    /// may change.
    pub(crate) hop: MacAddr,
    /// The address of that station where no name of it is known.
    pub(crate) name: String,
    /// Its node address of link control; 0 where it has none.
    pub(crate) node: u8,
    /// Of a channel that comes: the facts of its frames, where the kernel can sort them out.
    pub(crate) facing: Option<Box<Facing>>,
}

impl Peer {
    /// The other end of a channel, as it is known now.
    pub(crate) fn of(channel: ChannelId, node: &Node) -> Option<Self> {
        let (node_id, hop) = (node.peer(channel)?, node.hop(channel)?);
        let medium = node.port_at(node.port_of(channel)?)?.medium();
        let said = medium.member_at(hop).map(|member| &member.announce);
        let name = said.map(|said| said.name().to_owned()).filter(|name| !name.is_empty());
        let node = said.map_or(0, |said| said.llc_address);
        let name = name.unwrap_or_else(|| hop.to_string());
        Some(Self { node_id, hop, name, node, facing: None })
    }
}

/// To the data thread.
pub(crate) enum Command {
    Open {
        ask: u64,
        to: String,
        service: u16,
        request: Opening,
    },
    AttachSource {
        channel: ChannelId,
        memory: SourceMemory,
    },
    AttachSink {
        channel: ChannelId,
        /// The units of the largest size that it holds.
        buffers: u16,
        memory: SinkMemory,
    },
    /// The program of a channel wants to poll: it sleeps on this from now on.
    Bell {
        channel: ChannelId,
        sleeper: Arc<Sleeper>,
    },
    /// Frames are in the queue of an incoming channel that the kernel fills, and it is not open yet.
    FramesCame {
        channel: ChannelId,
    },
    /// There is no memory for an incoming channel.
    Decline {
        channel: ChannelId,
        short: Shortage,
    },
    /// The program does not want an incoming channel.
    Deny {
        channel: ChannelId,
    },
    Listen {
        ask: u64,
        service: u16,
        /// The only station that it takes a channel from.
        from: Option<String>,
        /// That station is asked for it, perhaps for the way back of a channel.
        invites: Option<ChannelId>,
    },
    /// A program waits for a receiver that asks it.
    Invitee {
        ask: u64,
        service: u16,
        uid: u32,
    },
    RemoveInvitee {
        invitee: u64,
    },
    ListenAgain {
        listener: u64,
    },
    Unlisten {
        listener: u64,
    },
    Close {
        channel: ChannelId,
    },
    Revoke {
        channel: ChannelId,
    },
    Abort {
        channel: ChannelId,
    },
    Join {
        ask: u64,
        channel: ChannelId,
        to: String,
        /// It is a receiver already, and is to be one no more.
        leaves: bool,
    },
    Change {
        ask: u64,
        channel: ChannelId,
        change: AskedChange,
    },
    /// A socket of link control is mapped; answered, so that nothing sent to it afterwards is lost.
    AttachSocket {
        ask: u64,
        socket: u8,
        memory: Box<SocketMemory>,
    },
    DetachSocket {
        socket: u8,
    },
    CancelSocket {
        ask: u64,
        socket: u8,
    },
    Circulate {
        until: Instant,
    },
    /// About circuits of the native-mode transport.
    Circuit(CircuitCommand),
    Snapshot {
        ask: u64,
        /// Channels whose detail is wanted, too.
        shown: Vec<ChannelId>,
    },
    Stop,
}

/// To the control thread.
pub(crate) enum Note {
    /// The request was taken, or was wrong from the start.
    Asked {
        ask: u64,
        result: Result<(ChannelId, Peer), NotFound>,
    },
    /// Something happened to a channel of a port; of an incoming one with what is known of its sender.
    Channel {
        port: PortId,
        event: ChannelEvent,
        peer: Option<Peer>,
    },
    /// Whether the station that a listener wants to hear is known; if not, who is.
    Listening {
        ask: u64,
        result: Result<(), NotFound>,
    },
    /// Whether the change of a channel was asked for; what came of it is an event.
    Resizing {
        ask: u64,
        result: Result<(), ResizeError>,
    },
    /// The receiver that is to join or leave a channel, or why none is; the outcome is an event.
    Joining {
        ask: u64,
        result: Result<NodeId, NotFound>,
    },
    Snapshot {
        ask: u64,
        snapshot: Box<Snapshot>,
    },
    /// Something happened of which an incident should be kept: the number of its event.
    Incident {
        event: u64,
    },
    /// A session with a neighbour ends: one sentence.
    SessionEnded {
        note: String,
    },
    /// A port is gone: one sentence.
    PortLost {
        note: String,
    },
    /// A client wrote something impossible into its ring.
    Hostile {
        channel: ChannelId,
        why: String,
    },
    /// The same on a socket; `attached` tells it from a later socket of the same number.
    HostileSocket {
        attached: u64,
        why: String,
    },
    /// About circuits of the native-mode transport.
    Circuit(CircuitNote),
    /// The request is done.
    Done {
        ask: u64,
    },
    /// The memory and descriptors of an ended channel or socket, to be dropped here.
    Remains(Remains),
    /// The data thread has ended.
    Over,
}

/// Memory and descriptors that a channel or a socket had. Dropping them unmaps, which takes long.
#[expect(dead_code, reason = "kept to be dropped, and never read")]
pub(crate) enum Remains {
    Source(SourceMemory),
    Sink(SinkMemory),
    Socket(SocketMemory),
    Circuit(Box<CircuitMemory>),
}

/// The memory of a sending channel: mapped, charged and let go as one.
pub(crate) struct SourceMemory {
    pub(crate) ring: TxReader,
    pub(crate) board: Board,
    pub(crate) sleeper: Arc<Sleeper>,
    pub(crate) doorbell: OwnedFd,
    /// Its drop gives the octets back to their user.
    pub(crate) _charge: Option<Charge>,
}

/// The memory of a receiving channel.
pub(crate) struct SinkMemory {
    pub(crate) ring: RxWriter,
    pub(crate) board: Board,
    pub(crate) sleeper: Arc<Sleeper>,
    /// Its program takes the frames itself, and states what it counts.
    pub(crate) is_apart: bool,
    /// Its drop gives the octets back to their user.
    pub(crate) _charge: Option<Charge>,
}

/// The memory of a socket.
pub(crate) struct SocketMemory {
    pub(crate) messages: TxReader,
    pub(crate) received: MessageWriter,
    pub(crate) board: Board,
    /// It has the bell.
    pub(crate) sleeper: Arc<Sleeper>,
    pub(crate) doorbell: OwnedFd,
    /// The number of the request that attached it, which no other socket has.
    pub(crate) attached: u64,
    /// Its drop gives the octets back to their user.
    pub(crate) _charge: Option<Charge>,
}

impl SocketMemory {
    pub(crate) fn new(socket: NodeSocket, waker: &Waker, attached: u64, charge: Option<Charge>) -> Self {
        let NodeSocket { messages, received, board, doorbell, bell, .. } = socket;
        let sleeper = waker.sleeper(board.clone(), Some(bell));
        Self { messages, received, board, sleeper, doorbell, attached, _charge: charge }
    }
}

/// One thread's end.
pub(crate) struct Wiring<Out, In> {
    out: Sender<Out>,
    input: Receiver<In>,
    wake_other: OwnedFd,
    wake_me: OwnedFd,
    /// The refusals that the control thread counts.
    refusals: Arc<Refusals>,
    waker: Waker,
}

pub(crate) type ControlEnd = Wiring<Command, Note>;
pub(crate) type DataEnd = Wiring<Note, Command>;

impl Wiring<Command, Note> {
    /// The control thread's end and the data thread's end.
    pub(crate) fn pair() -> io::Result<(ControlEnd, DataEnd)> {
        let (commands, commanded) = channel();
        let (notes, noted) = channel();
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let data: OwnedFd = EventFd::from_flags(flags)?.into();
        let control: OwnedFd = EventFd::from_flags(flags)?.into();
        let control_end = Wiring {
            out: commands,
            input: noted,
            wake_other: data.try_clone()?,
            wake_me: control.try_clone()?,
            refusals: Arc::default(),
            waker: Waker::new()?,
        };
        let refusals = Arc::clone(&control_end.refusals);
        let waker = control_end.waker();
        let (out, input) = (notes, commanded);
        let data_end = Wiring { out, input, wake_other: control, wake_me: data, refusals, waker };
        Ok((control_end, data_end))
    }
}

/// Tells the control thread, when dropped, that the data thread has ended: in good order, with an error
/// before it began, or by a panic. Without it the node would live on and answer nobody.
pub(crate) struct Farewell {
    out: Sender<Note>,
    wake_other: OwnedFd,
}

impl Drop for Farewell {
    fn drop(&mut self) {
        let _ = self.out.send(Note::Over);
        let _ = nix::unistd::write(&self.wake_other, &1u64.to_ne_bytes());
    }
}

impl DataEnd {
    /// What the data thread must hold as long as it runs.
    pub(crate) fn farewell(&self) -> io::Result<Farewell> {
        Ok(Farewell { out: self.out.clone(), wake_other: self.wake_other.try_clone()? })
    }
}

impl<Out, In> Wiring<Out, In> {
    /// Says something to the other thread. When it has ended there is nobody to tell.
    pub(crate) fn say(&self, message: Out) {
        if self.out.send(message).is_ok() {
            let _ = nix::unistd::write(&self.wake_other, &1u64.to_ne_bytes());
        }
    }

    /// The refusals to programs, counted by the control thread.
    pub(crate) fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Wakes programs in the data thread's place.
    pub(crate) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// What the other thread has said.
    pub(crate) fn heard(&self) -> Option<In> {
        self.input.try_recv().ok()
    }

    /// Readable, edge-triggered, whenever something was said.
    pub(crate) fn wait_fd(&self) -> BorrowedFd<'_> {
        self.wake_me.as_fd()
    }
}
