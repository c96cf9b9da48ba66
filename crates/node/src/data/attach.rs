//! Rings that programs have mapped, and their doorbells. The kernel may refuse to watch one: that ends the
//! channel or the socket, and nothing else.

use super::{Data, Source};
use crate::commands::{Note, Remains, SocketMemory, SourceMemory};
use crate::gate::Egress;
use rota_driver::device::FrameDevice;
use rota_driver::poller::Trigger;
use rota_proto::ChannelId;
use rota_units::Instant;
use std::os::fd::AsFd;

impl<D: FrameDevice, G: Egress> Data<D, G> {
    pub(super) fn attach(&mut self, at: Instant, channel: ChannelId, memory: SourceMemory) {
        let peer = self.node.peer(channel);
        let source = Source::new((channel, peer), memory, self.next_token, at);
        self.next_token += 1;
        // Registered edge-triggered and never read: a client can make either of those block.
        if let Err(error) = self.poller.add(source.memory.doorbell.as_fd(), source.token, Trigger::Edge) {
            let Source { channel, memory, .. } = source;
            let why = format!("its doorbell cannot be waited on: {error}");
            self.control.say(Note::Hostile { channel, why });
            self.node.abort(at, channel);
            self.control.say(Note::Remains(Remains::Source(memory)));
            return;
        }
        self.rings.sources.push(source);
        self.offer(at, self.rings.sources.len() - 1);
    }

    pub(super) fn attach_socket(&mut self, ask: u64, socket: u8, memory: SocketMemory) {
        let token = self.next_token;
        self.next_token += 1;
        // As the doorbell of a channel: registered edge-triggered and never read.
        if let Err(error) = self.poller.add(memory.doorbell.as_fd(), token, Trigger::Edge) {
            let why = format!("its doorbell cannot be waited on: {error}");
            self.control.say(Note::HostileSocket { attached: memory.attached, why });
            self.control.say(Note::Remains(Remains::Socket(memory)));
            return;
        }
        self.rings.sockets.attach(socket, token, memory);
        self.node.llc_open(socket);
        self.control.say(Note::Done { ask });
    }
}
