//! Sockets of link control: between the rings that programs map and the machine.

use crate::commands::{Note, Remains, SocketMemory};
use crate::waker::Wakes;
use rota_contract::MessageOutcome;
use rota_proto::llc::ASSEMBLIES;
use rota_proto::{LlcAddress, LlcEvent, LlcRequest, MessageDelivery, MessagePart, Node, PORTS_MAX, PortId};
use rota_shm::layout::{COMPLETIONS, MESSAGE_CELL_OCTETS};
use rota_shm::{Hostile, MessageProgress, MessageRoom, MessageRoute, WaitingUnit};
use rota_units::Instant;
use std::os::fd::{AsFd, BorrowedFd};

/// One open socket.
pub(crate) struct Socket {
    number: u8,
    memory: SocketMemory,
    /// What the poller calls its doorbell.
    pub(crate) token: u64,
    /// The messages under way, by number modulo their count.
    under_way: [Option<WaitingUnit>; COMPLETIONS],
    /// Its doorbell rang, and its ring may still hold messages to offer.
    waits: bool,
    /// Read from the ring, but the machine had no room for it.
    stuck: Option<WaitingUnit>,
    /// Its board or its ring has changed since its program was last told.
    changed: bool,
    /// A message was delivered to it since then.
    came: bool,
    armed: u64,
}

/// The room of a message of which the machine waits for more fragments.
struct Incomplete {
    socket: u8,
    room: MessageRoom,
}

/// All of them.
pub(crate) struct Sockets {
    all: Vec<Socket>,
    /// By the machine's numbers on each port. One that the machine has given up keeps its room until another
    /// message gets its number.
    incomplete: [[Option<Incomplete>; ASSEMBLIES]; PORTS_MAX],
    /// Some sockets have messages for which the machine had no room.
    stuck: bool,
    /// A message has ended since then, which makes room.
    ended: bool,
    /// The work that this turn may still take from the rings, in octets of copying.
    left: u32,
    /// The socket that is served next.
    next: usize,
}

/// Most octets that a turn takes from all rings together. A message to one's own station is copied in the
/// turn that takes it, and the token waits meanwhile: copying this many octets takes well below 200 µs.
const OCTETS_A_TURN: u32 = 65_536;
/// The cost of a message beside the copying of its octets: two programs are woken.
const MESSAGE_COST: u32 = 4_096;

/// The result of an offered message.
enum Offered {
    Taken { cost: u32 },
    Nothing,
    NoRoom,
}

impl Sockets {
    pub(crate) fn new() -> Self {
        let incomplete = std::array::from_fn(|_| std::array::from_fn(|_| None));
        Self { all: Vec::with_capacity(128), incomplete, stuck: false, ended: false, left: 0, next: 0 }
    }

    /// Its doorbell is watched already.
    pub(crate) fn attach(&mut self, number: u8, token: u64, memory: SocketMemory) {
        self.all.push(Socket {
            number,
            memory,
            token,
            under_way: [None; COMPLETIONS],
            waits: false,
            stuck: None,
            changed: false,
            came: false,
            armed: 0,
        });
    }

    /// A port is gone: the rest of its incomplete messages never comes.
    pub(crate) fn lose_port(&mut self, port: PortId) {
        for assembly in 0..ASSEMBLIES {
            let given_up = self.incomplete[usize::from(port.0)][assembly].take();
            self.give_back(given_up);
        }
    }

    pub(crate) fn detach(&mut self, number: u8, ignore: impl FnOnce(BorrowedFd<'_>)) -> Option<Remains> {
        let at = self.all.iter().position(|socket| socket.number == number)?;
        let Socket { memory, .. } = self.all.swap_remove(at);
        for place in self.incomplete.iter_mut().flatten() {
            place.take_if(|of| of.socket == number);
        }
        ignore(memory.doorbell.as_fd());
        Some(Remains::Socket(memory))
    }

    /// All that the program still wanted sent is over, also what nobody has looked at yet: the machine need
    /// not have room for it.
    pub(crate) fn cancel(&mut self, at: Instant, number: u8, node: &mut Node, hostile: impl Fn(Note)) {
        let Some(socket) = self.of(number) else { return };
        node.llc_cancel(at, number);
        socket.stuck = None;
        // Bounded: a ring holds no more.
        for _ in 0..=COMPLETIONS {
            match socket.memory.messages.look() {
                Ok(Some(unit)) => socket.under_way[place(unit.number)] = Some(unit),
                Ok(None) => break,
                Err(why) => {
                    hostile(socket.hostile(&why));
                    break;
                }
            }
        }
        for unit in socket.under_way.iter_mut().filter_map(Option::take) {
            socket.memory.messages.finish(unit.number);
            socket.memory.board.set_completion(unit.number, MessageProgress::Over(MessageOutcome::TimedOut));
        }
        socket.changed = true;
    }

    fn of(&mut self, number: u8) -> Option<&mut Socket> {
        self.all.iter_mut().find(|socket| socket.number == number)
    }

    /// Offers the machine the messages of the rings whose doorbell rang, up to the budget of a turn. To be
    /// called once a turn. False if no ring waits.
    pub(crate) fn look(
        &mut self,
        at: Instant,
        ready: &[u64],
        node: &mut Node,
        hostile: impl Fn(Note),
    ) -> bool {
        let mut waits = false;
        for socket in &mut self.all {
            socket.waits |= ready.contains(&socket.token);
            waits |= socket.waits;
        }
        self.left = OCTETS_A_TURN;
        if waits {
            self.serve(at, node, &hostile);
        }
        waits
    }

    /// One message of each ring after the other, so that a full ring keeps no other waiting for long.
    fn serve(&mut self, at: Instant, node: &mut Node, hostile: &impl Fn(Note)) {
        let mut idle = 0;
        while idle < self.all.len() && self.left > 0 {
            self.next = if self.next < self.all.len() { self.next } else { 0 };
            let socket = &mut self.all[self.next];
            self.next += 1;
            if !socket.waits {
                idle += 1;
                continue;
            }
            idle = 0;
            match socket.offer(at, node, hostile) {
                Offered::Taken { cost } => self.left = self.left.saturating_sub(cost),
                Offered::Nothing => socket.waits = false,
                Offered::NoRoom => (socket.waits, self.stuck) = (false, true),
            }
        }
    }

    /// Octets of a message, from its program's ring.
    pub(crate) fn copy(&mut self, number: u8, message: u64, offset: u32, into: &mut [u8]) -> bool {
        let Some(socket) = self.of(number) else { return false };
        let unit = socket.under_way[place(message)].filter(|unit| unit.number == message);
        unit.is_some_and(|unit| socket.memory.messages.copy(&unit, offset, into))
    }

    /// Handles the machine's event about a message.
    pub(crate) fn on_event(&mut self, event: LlcEvent) {
        self.ended |= !matches!(event, LlcEvent::Begun { .. });
        match event {
            LlcEvent::Begun { socket, number } => {
                if let Some(socket) = self.of(socket) {
                    socket.memory.board.set_completion(number, MessageProgress::InProgress);
                    socket.changed = true;
                }
            }
            LlcEvent::Local { from, number, octets, to, level } => {
                self.deliver_here(from, number, octets, to, level);
            }
            LlcEvent::Done { socket, number, outcome } => {
                // A message that was taken back may have left its place to another since.
                if let Some(socket) = self.of(socket)
                    && socket.under_way[place(number)].take_if(|unit| unit.number == number).is_some()
                {
                    // The slot first: a program that sees the end expects room for another message.
                    socket.memory.messages.finish(number);
                    socket.memory.board.set_completion(number, MessageProgress::Over(outcome));
                    socket.changed = true;
                }
            }
        }
    }

    /// True if messages wait for the next turn: for its budget, or for room that an end has made.
    pub(crate) fn has_more(&self) -> bool {
        self.stuck && self.ended || self.all.iter().any(|socket| socket.waits)
    }

    /// Offers the machine again the messages for which it had no room, after ends have made room. Once a turn
    /// and not with each end: a program that keeps its ring full must not delay the token.
    pub(crate) fn retry(&mut self, at: Instant, node: &mut Node, hostile: impl Fn(Note)) {
        if !(self.stuck && self.ended) {
            return;
        }
        (self.stuck, self.ended) = (false, false);
        for socket in &mut self.all {
            socket.waits |= socket.stuck.is_some();
        }
        self.serve(at, node, &hostile);
    }

    /// From one program of this host to another, or to itself: straight from ring to ring.
    fn deliver_here(&mut self, from: LlcAddress, message: u64, octets: u32, to: u8, level: u8) {
        let place_of = |number| self.all.iter().position(|socket| socket.number == number);
        let (Some(sender), Some(receiver)) = (place_of(from.socket), place_of(to)) else { return };
        let unit = self.all[sender].under_way[place(message)].filter(|unit| unit.number == message);
        // A message that was taken back meanwhile gets no room: nothing would give it back.
        let Some(unit) = unit else { return };
        let room = self.all[receiver].memory.received.reserve(octets, MESSAGE_CELL_OCTETS as u16);
        let Some(room) = room else { return };
        let messages = &self.all[sender].memory.messages;
        let is_whole = self.all[receiver].memory.received.fill_from(&room, messages, &unit);
        self.all[receiver].end(&room, is_whole, from, level);
    }

    /// A message from the wire, or a part of one: from the frame straight into its program's ring.
    pub(crate) fn deliver(&mut self, port: PortId, message: &MessageDelivery, frame: &[u8]) {
        let MessageDelivery { socket, from, level, octets, offset, came, part } = *message;
        let payload = frame.get(usize::from(offset)..).and_then(|rest| rest.get(..usize::from(came)));
        let (index, room) = match part {
            MessagePart::Whole => (0, self.reserve(socket, octets, MESSAGE_CELL_OCTETS as u16)),
            MessagePart::Fragment { assembly, index, size, begins, .. } => {
                let held = self.incomplete[usize::from(port.0)][usize::from(assembly)].take();
                let room = if begins {
                    self.give_back(held);
                    self.reserve(socket, octets, size)
                } else {
                    held.map(|incomplete| incomplete.room)
                };
                (index, room)
            }
        };
        let (Some(room), Some(receiver)) = (room, self.of(socket)) else { return };
        let received = &receiver.memory.received;
        let fits = payload.is_some_and(|payload| received.fill(&room, usize::from(index), payload));
        match part {
            MessagePart::Fragment { assembly, completes: false, .. } if fits => {
                self.incomplete[usize::from(port.0)][usize::from(assembly)] =
                    Some(Incomplete { socket, room });
            }
            _ => receiver.end(&room, fits, from, level),
        }
    }

    fn reserve(&mut self, socket: u8, octets: u16, size: u16) -> Option<MessageRoom> {
        self.of(socket)?.memory.received.reserve(u32::from(octets), size)
    }

    fn give_back(&mut self, given_up: Option<Incomplete>) {
        let Some(Incomplete { socket, room }) = given_up else { return };
        if let Some(socket) = self.of(socket) {
            socket.memory.received.give_back(&room);
        }
    }

    /// Programs are woken once a turn, however much has happened.
    pub(crate) fn wake(&mut self, wakes: &mut Wakes) {
        for socket in self.all.iter_mut().filter(|socket| socket.changed) {
            socket.changed = false;
            let came = std::mem::take(&mut socket.came);
            socket.memory.board.tell();
            if socket.memory.messages.asleep().is_woken(came) {
                wakes.wake(&socket.memory.sleeper);
            }
            let armed = socket.memory.messages.armed();
            if armed != socket.armed {
                socket.armed = armed;
                socket.memory.sleeper.ring();
            }
        }
    }
}

impl Socket {
    /// Hands the oldest message that waits to the machine.
    fn offer(&mut self, at: Instant, node: &mut Node, hostile: &impl Fn(Note)) -> Offered {
        let unit = match self.stuck.take().map_or_else(|| self.memory.messages.look(), |unit| Ok(Some(unit)))
        {
            Ok(Some(unit)) => unit,
            Ok(None) => return Offered::Nothing,
            Err(why) => {
                hostile(self.hostile(&why));
                return Offered::Nothing;
            }
        };
        let route = MessageRoute::unpack(unit.route);
        let limit = unit.schedule;
        let request = LlcRequest {
            socket: self.number,
            number: unit.number,
            octets: unit.octets,
            to: LlcAddress { socket: route.socket, node: route.node },
            level: route.priority.min(7),
            ack: route.ack,
            tries: route.tries,
            until: if limit == Instant::ZERO { Instant::FAR } else { limit },
        };
        self.under_way[place(unit.number)] = Some(unit);
        if node.llc_send(at, &request).is_err() {
            self.stuck = Some(unit);
            return Offered::NoRoom;
        }
        Offered::Taken { cost: MESSAGE_COST.saturating_add(unit.octets) }
    }

    /// Publishes a received message that is whole, and takes back the room of one that never will be.
    fn end(&mut self, room: &MessageRoom, is_whole: bool, from: LlcAddress, level: u8) {
        if !is_whole {
            self.memory.received.give_back(room);
            return;
        }
        let LlcAddress { socket, node } = from;
        let route = MessageRoute { socket, node, priority: level, ..MessageRoute::default() };
        self.memory.received.publish(room, route.pack());
        (self.changed, self.came) = (true, true);
    }

    fn hostile(&self, why: &Hostile) -> Note {
        Note::HostileSocket { attached: self.memory.attached, why: why.to_string() }
    }
}

fn place(message: u64) -> usize {
    (message % COMPLETIONS as u64) as usize
}

#[cfg(test)]
mod tests;
