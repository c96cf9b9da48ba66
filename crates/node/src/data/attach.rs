//! Rings that programs have mapped, and their doorbells. The kernel may refuse to watch one: that ends the
//! channel or the socket, and nothing else.

use super::Data;
use super::units::Source;
use crate::commands::{Note, Remains, SocketMemory, SourceMemory};
use crate::gate::Egress;
use rota_driver::device::FrameDevice;
use rota_proto::ChannelId;
use rota_units::Instant;

impl<D: FrameDevice, G: Egress> Data<D, G> {
    pub(super) fn attach(&mut self, at: Instant, channel: ChannelId, memory: SourceMemory) {
        let hop = self.node.hop(channel);
        let (token, watched) = self.waits.doorbell(&memory.doorbell);
        if let Err(error) = watched {
            let why = format!("its doorbell cannot be waited on: {error}");
            self.control.say(Note::Hostile { channel, why });
            self.node.abort(at, channel);
            self.control.say(Note::Remains(Remains::Source(memory)));
            return;
        }
        self.rings.sources.push(Source::new((channel, hop), memory, token, at));
        self.offer(at, self.rings.sources.len() - 1);
    }

    pub(super) fn attach_socket(&mut self, ask: u64, socket: u8, memory: SocketMemory) {
        let (token, watched) = self.waits.doorbell(&memory.doorbell);
        if let Err(error) = watched {
            let why = format!("its doorbell cannot be waited on: {error}");
            self.control.say(Note::HostileSocket { attached: memory.attached, why });
            self.control.say(Note::Remains(Remains::Socket(memory)));
            return;
        }
        self.rings.sockets.attach(socket, token, memory);
        self.node.llc_open_on_all(socket);
        self.control.say(Note::Done { ask });
    }
}
