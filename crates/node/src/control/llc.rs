//! Sockets of link control: who has which.

use super::Control;
use crate::ledger::socket_octets;
use crate::limits::Limit;
use crate::session::{Asked, OwnedSocket};
use rota_proto::llc::ASSEMBLIES;
use rota_shm::control::{LlcRefusal, Reply};
use rota_shm::layout::{COMPLETIONS, MESSAGE_PARTS_MAX};
use rota_shm::{NodeSocket, SocketShape};
use rota_wire::llc::MESSAGE_OCTETS_MAX;

/// Parts of received messages that a socket has room for: a message has one for each frame that it came in.
/// Those that wait for their program give their room to newer ones, the oldest first, and it is told.
const RX_SLOTS: u32 = 1_280;

/// The slots of a node of so many ports. An acknowledged message has a place: the incomplete messages of all
/// senders on all ports and one more fit at any time.
fn rx_slots(ports: usize) -> u32 {
    RX_SLOTS.max(((ASSEMBLIES * ports + 1) * MESSAGE_PARTS_MAX) as u32)
}

impl Control<'_> {
    pub(super) fn llc_open(&mut self, at: usize, socket: u8) {
        let taken = |session: &crate::session::Session| {
            session.socket.as_ref().is_some_and(|owned| owned.number == socket)
        };
        let (why, sentence) = if !self.facts.llc.may_open(socket) {
            let rule = "sockets are even numbers from 2 to 254, without 170 (SNAP) and, unless the node says \
                        --llc-private, without 66, 224, 240 and 254, which others use on real networks";
            (LlcRefusal::Invalid, format!("socket {socket} cannot be opened: {rule}"))
        } else if self.sessions[at].socket.is_some() {
            (LlcRefusal::Second, "this connection has a socket already; each needs one of its own".into())
        } else if self.sessions.iter().any(taken) {
            (LlcRefusal::Duplicate, format!("socket {socket} is open in another place of this station"))
        } else {
            return self.llc_make(at, socket);
        };
        self.sessions[at].answer(&Reply::LlcRefused { why, sentence });
    }

    fn llc_make(&mut self, at: usize, number: u8) {
        let octets = MESSAGE_OCTETS_MAX as u32;
        let rx_slots = rx_slots(self.facts.ports.len());
        let shape = SocketShape { messages: COMPLETIONS as u16, message_octets_max: octets, rx_slots };
        let asked = socket_octets(COMPLETIONS as u16, octets, rx_slots).unwrap_or(0);
        let charge = match self.facts.ledger.charge(self.sessions[at].user, asked) {
            Ok(charge) => Some(charge),
            Err(short) => {
                self.data.refusals().count(Limit::Memory);
                let sentence = short.sentence("a socket");
                self.sessions[at].error(format!("{sentence}; see --memory of 'rota node'"), false);
                return;
            }
        };
        let made = self.count_kernel(NodeSocket::create(shape));
        let session = &mut self.sessions[at];
        match made {
            Ok(memory) => {
                let cpu = self.realtime.pinned.and_then(|cpu| u16::try_from(cpu).ok());
                let reply = Reply::LlcOpened { node: self.facts.llc.address, cpu };
                session.reply(&reply, &memory.descriptors());
                let memory = Some(Box::new(memory));
                session.socket = Some(OwnedSocket { number, memory, charge, attached: 0 });
            }
            Err(error) => session.error(error.to_string(), false),
        }
    }

    pub(super) fn on_done(&mut self, ask: u64) {
        if let Some((session, Asked::Socket)) = self.asked(ask) {
            session.answer(&Reply::Done);
        }
    }

    /// A program wrote something impossible: it has no socket any more, and is told. Another program that has
    /// opened the same socket meanwhile is not concerned.
    pub(super) fn on_socket_ended(&mut self, attached: u64, why: &str) {
        for session in &mut self.sessions {
            session.end_socket(attached, "hostile", why, self.data);
        }
    }
}
