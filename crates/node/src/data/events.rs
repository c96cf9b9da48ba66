//! The machines' events about messages and channels, for programs and for the control thread.

use super::Data;
use crate::commands::{Note, Peer};
use crate::gate::Egress;
use rota_driver::clock::now;
use rota_driver::device::FrameDevice;
use rota_proto::ChannelEvent;

impl<D: FrameDevice, G: Egress> Data<D, G> {
    pub(super) fn events(&mut self) {
        while let Some(event) = self.node.next_llc_event() {
            self.rings.sockets.on_event(event);
        }
        self.circuit_events();
        let at = now();
        while let Some((port, event)) = self.node.next_port_event() {
            self.told.tracer.channel(at, port, &event, &self.node);
            let peer = match &event {
                ChannelEvent::Incoming { channel, peer, .. } => {
                    // One that has ended meanwhile is told of too, and its end afterwards.
                    let facing = self.node.facing(*channel).map(Box::new);
                    let known = Peer::of(*channel, &self.node);
                    let gone = || {
                        let name = self.node.node_name(*peer);
                        let name = if name.is_empty() { peer.to_string() } else { name };
                        Peer { node_id: *peer, name, ..Peer::default() }
                    };
                    Some(Peer { facing, ..known.unwrap_or_else(gone) })
                }
                ChannelEvent::IncomingOpened { channel, .. } => Peer::of(*channel, &self.node),
                _ => None,
            };
            match &event {
                ChannelEvent::Told { channel, tally } => self.rings.tell_tally(*channel, *tally),
                ChannelEvent::Rerouted { channel, .. } => self.rings.offer_again(*channel),
                ChannelEvent::Closed { channel, tally, stated, .. } => {
                    let (rings, tracer) = (&mut self.rings, &mut self.told.tracer);
                    rings.trace_untold(at, *channel, stated.unwrap_or_default(), tracer);
                    rings.tell_final_tally(at, *channel, *tally, &self.node);
                }
                _ => {}
            }
            match &event {
                // The board has the counts: the control thread need not wake for each unit that is left out.
                ChannelEvent::Told { .. } => continue,
                ChannelEvent::Closed { channel, .. } => {
                    self.rings.wake_receivers(&self.node);
                    self.rings.forget(*channel, &self.waits, &self.control);
                }
                _ => {}
            }
            self.control.say(Note::Channel { port, event, peer });
        }
    }
}
