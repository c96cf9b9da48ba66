//! The sessions with neighbouring nodes, as the data thread sees them: messages of channels across segments
//! come and go here. Another thread has their sockets and their TLS.

use super::{Data, Stopped};
use crate::commands::Note;
use crate::gate::Egress;
use crate::links::{LinkEvent, SendError};
use rota_contract::NodeId;
use rota_driver::device::FrameDevice;
use rota_units::Instant;

/// Events of neighbours that one turn takes: each may call for shares and messages.
const EVENTS_A_TURN: usize = 16;

impl<D: FrameDevice, G: Egress> Data<D, G> {
    /// Takes the events of neighbours. Each is told once, so that the rest waits for the next turn.
    pub(super) fn hear_neighbours(&mut self, at: Instant) -> Result<(), Stopped> {
        for _ in 0..EVENTS_A_TURN {
            let Some(event) = self.links.as_mut().and_then(|links| links.event()) else {
                self.work.has_neighbours = false;
                return Ok(());
            };
            match event {
                LinkEvent::Up { node } => self.node.neighbour_up(at, node),
                LinkEvent::Down { node, .. } => self.node.neighbour_lost(at, node),
                LinkEvent::Message { node, octets } => {
                    if let Err(wrong) = self.node.on_neighbour_message(at, node, &octets) {
                        self.end_session(node, &format!("it sends what is no message: {wrong}"));
                    }
                }
            }
            self.drain()?;
        }
        self.work.has_neighbours = true;
        Ok(())
    }

    /// The timers of channels across segments.
    pub(super) fn tick_across(&mut self, at: Instant) -> Result<(), Stopped> {
        if self.node.deadline_across() <= at {
            self.node.handle_deadline_across(at);
            self.drain()?;
        }
        Ok(())
    }

    /// Sends what the machines have for neighbours. A session that loses a message has to end.
    pub(super) fn tell_neighbours(&mut self) {
        while let Some((to, message)) = self.node.next_neighbour_message() {
            let Some(links) = &self.links else { continue };
            match links.send(to, message) {
                // Its end is on the way here.
                Ok(()) | Err(SendError::Down(_) | SendError::Unknown(_)) => {}
                Err(error @ (SendError::TooLong(_) | SendError::Full(_))) => {
                    self.end_session(to, &error.to_string());
                }
            }
        }
    }

    /// Ends a session; what else comes on it is not heard. This thread writes no line.
    fn end_session(&mut self, node: NodeId, why: &str) {
        if let Some(links) = &mut self.links
            && links.end(node)
        {
            let note = format!("the session with node {node} ends: {why}");
            self.control.say(Note::SessionEnded { note });
        }
    }
}
