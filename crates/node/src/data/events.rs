//! The machines' events about messages and channels, for programs and for the control thread.

use super::{Data, way};
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
        let at = now();
        while let Some(event) = self.node.next_event() {
            self.told.tracer.channel(at, &event, &self.node);
            let peer = match &event {
                ChannelEvent::Incoming { from, .. } => Some(*from),
                ChannelEvent::IncomingOpened { channel, .. } => self.node.peer(*channel),
                _ => None,
            };
            let port = match &event {
                ChannelEvent::Incoming { channel, .. } | ChannelEvent::IncomingOpened { channel, .. } => {
                    self.node.port_of(*channel)
                }
                _ => None,
            };
            let peer = peer.map(|mac| Peer::at(mac, way::medium(&self.node, port.unwrap_or_default())));
            match &event {
                ChannelEvent::Told { channel, tally } => self.rings.tell_tally(*channel, *tally),
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
            self.control.say(Note::Channel { event, peer });
        }
    }
}
